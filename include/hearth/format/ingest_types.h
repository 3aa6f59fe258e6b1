/*
 * ingest_types.h -- what an upload to /ingest is: its format, the names of what it holds, and what
 * its agent is known to get wrong.
 *
 * Threads: pure.
 * Source:  docs/api.md, "Ingest".
 */
#ifndef HEARTH_FORMAT_INGEST_TYPES_H
#define HEARTH_FORMAT_INGEST_TYPES_H

#include "hearth/codec/json_table.h"
#include "hearth/format/pprof.h"
#include "hearth/model/profile.h"

enum hearth_ingest_format {
    HEARTH_INGEST_UNKNOWN, /* look at the bytes */
    HEARTH_INGEST_PPROF,
    HEARTH_INGEST_MULTIPART, /* a form with pprof in it */
    HEARTH_INGEST_COLLAPSED, /* a text: collapsed stacks or output of perf script (text_profile.h) */
    HEARTH_INGEST_LINES,
    HEARTH_INGEST_TRIE,
    HEARTH_INGEST_TREE,
    HEARTH_INGEST_JFR,        /* recognised, not read */
    HEARTH_INGEST_SPEEDSCOPE, /* the same */
};

#define HEARTH_INGEST_FORMATS \
    "pprof, collapsed (also groups, folded), perf script, lines, trie and tree"

/* By the parameter `format` and the Content-Type. */
enum hearth_ingest_format hearth_ingest_format_of(struct hearth_str format,
                                                  struct hearth_str content_type);
/* By inflated bytes: one of PPROF, COLLAPSED, JFR, SPEEDSCOPE. */
enum hearth_ingest_format hearth_ingest_format_of_bytes(struct hearth_str bytes);

/* What text formats hold, by the end of the application's name. */
struct hearth_ingest_type {
    const char *suffix;
    const char *name; /* __name__ */
    const char *type, *unit, *period_type, *period_unit;
    int64_t factor; /* of each value; 0: nanoseconds between two samples */
};

/*
 * The type that "service.suffix" names (no dot: cpu) and the name without the suffix. With a sample
 * rate of 0 Hz, samples of CPU and wall time are counts. NULL for suffixes that name no type.
 */
const struct hearth_ingest_type *hearth_ingest_type_of(struct hearth_str app, int64_t sample_rate,
                                                       struct hearth_str *ret_service);
/* "cpu, itimer, ...": for messages; static. */
const char *hearth_ingest_type_suffixes(void);

/*
 * __name__ of a pprof by its sample types; cells (row, "display-name") of sample_type_config rename
 * them first. Static, or a text of profile or cells.
 */
struct hearth_str hearth_ingest_pprof_name(const struct hearth_profile *profile,
                                           const struct hearth_json_cell *cells, size_t n_cells);

/*
 * What is known of agents, by spyName: pyspy, rbspy and scripting put the file in front of the
 * function's name (pyspy: unless the path is absolute); dotnetspy's sample types have "_" for "-".
 * Changes the profile; new texts and tables are in the arena.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_ingest_fix_spy(struct hearth_str spy, struct hearth_arena *arena,
                                         struct hearth_profile *profile, struct hearth_err *err);

/*
 * Turn values of a text format into the unit of its type and set the period. sample_rate in Hz, as type
 * was chosen by it. OUT_OF_RANGE when a value needs more than 63 bits then.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_ingest_scale(const struct hearth_ingest_type *type, int64_t sample_rate,
                                       struct hearth_profile *profile, struct hearth_err *err);

/*
 * Hold a profile of a text format to the limits that hold for pprof: cuts and counts like the pprof
 * decoder. RESOURCE_EXHAUSTED for too many samples or sample types; NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_ingest_cut(const struct hearth_pprof_limits *limits,
                                     struct hearth_arena *arena, struct hearth_profile *profile,
                                     struct hearth_pprof_notes *notes, struct hearth_err *err);

#endif
