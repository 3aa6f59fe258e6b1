/*
 * ingest_types.h -- the format of an upload to /ingest, the names of its profile types, and
 * corrections for known mistakes of agents.
 *
 * Threads: pure.
 * Source:  docs/reference/api-push.md, "Ingest".
 */
#ifndef HEARTH_FORMAT_INGEST_TYPES_H
#define HEARTH_FORMAT_INGEST_TYPES_H

#include "hearth/codec/json_table.h"
#include "hearth/format/pprof.h"
#include "hearth/model/profile.h"

enum hearth_ingest_format {
    HEARTH_INGEST_UNKNOWN, /* the bytes must decide */
    HEARTH_INGEST_PPROF,
    HEARTH_INGEST_MULTIPART, /* a form that contains pprof */
    HEARTH_INGEST_COLLAPSED, /* text: collapsed stacks, or output of perf script (text_profile.h) */
    HEARTH_INGEST_LINES,
    HEARTH_INGEST_TRIE,
    HEARTH_INGEST_TREE,
    HEARTH_INGEST_JFR,        /* a file of several profiles: jfr.h */
    HEARTH_INGEST_SPEEDSCOPE, /* another one; decided by the bytes: any JSON */
    HEARTH_INGEST_FILE,       /* any other file of profiles: profile_file.h */
};

/* Decides by the parameter `format` and the Content-Type. */
enum hearth_ingest_format hearth_ingest_format_of(struct hearth_str format,
                                                  struct hearth_str content_type);
/* Decides by the inflated bytes: one of PPROF, COLLAPSED, JFR, SPEEDSCOPE. */
enum hearth_ingest_format hearth_ingest_format_of_bytes(struct hearth_str bytes);

/* The profile type of a text format. */
struct hearth_ingest_type {
    const char *suffix; /* the ending of an application's name */
    const char *name;   /* __name__ */
    const char *type, *unit, *period_type, *period_unit;
    int64_t factor; /* multiplies each value; 0: the nanoseconds between two samples do */
};

/* What the parameters of an upload say about the values of a text format. */
struct hearth_ingest_values {
    struct hearth_str unit;        /* `units`; empty: not said */
    struct hearth_str aggregation; /* `aggregationType`; empty: not said */
    int64_t sample_rate;           /* Hz; 0: unknown */
};

/* INVALID_ARGUMENT, with the values that are known, for an unknown unit or aggregation. */
HEARTH_MUST_CHECK
enum hearth_status hearth_ingest_values_check(const struct hearth_ingest_values *values,
                                              struct hearth_err *err);
/*
 * The type that "service.suffix" names, and the name without the suffix. If the suffix is unknown,
 * the whole name is the service, and the unit and the aggregation name the type; without a unit, a
 * name without a dot means cpu. Values of CPU and wall time are numbers of samples, unless the unit
 * is a time; with a sample rate of 0 Hz they remain numbers.
 *
 * INVALID_ARGUMENT if neither names a type, if they contradict each other, or if the unit or the
 * aggregation is unknown.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_ingest_type_find(struct hearth_str app,
                                           const struct hearth_ingest_values *values,
                                           struct hearth_ingest_type *ret_type,
                                           struct hearth_str *ret_service, struct hearth_err *err);
/* "cpu, itimer, ...", for messages; static. */
const char *hearth_ingest_type_suffixes(void);

/*
 * The __name__ of a pprof, determined by its sample types, which the cells (row, "display-name") of
 * sample_type_config rename first. The result is static or borrows from profile or cells.
 */
struct hearth_str hearth_ingest_pprof_name(const struct hearth_profile *profile,
                                           const struct hearth_json_cell *cells, size_t n_cells);

/*
 * Correct known mistakes of the agent named by spyName: pyspy, rbspy and scripting put the file
 * before the function's name (pyspy: unless the path is absolute); dotnetspy's sample types have
 * "_" instead of "-". Changes the profile; new texts and tables are in the arena.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_ingest_fix_spy(struct hearth_str spy, struct hearth_arena *arena,
                                         struct hearth_profile *profile, struct hearth_err *err);

/*
 * What the values of a text format are multiplied by to have the unit of its type: 1 to 1e9.
 * sample_rate: in Hz, the one that `type` was determined with.
 */
int64_t hearth_ingest_factor(const struct hearth_ingest_type *type, int64_t sample_rate);

/* Multiply all values. OUT_OF_RANGE if a product needs more than 63 bits. */
HEARTH_MUST_CHECK
enum hearth_status hearth_ingest_scale(int64_t factor, struct hearth_profile *profile,
                                       struct hearth_err *err);

/*
 * Apply the limits of pprof to a profile of a text format: truncates and counts as the pprof
 * decoder does. RESOURCE_EXHAUSTED for too many samples or sample types; NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_ingest_cut(const struct hearth_pprof_limits *limits,
                                     struct hearth_arena *arena, struct hearth_profile *profile,
                                     struct hearth_pprof_notes *notes, struct hearth_err *err);

#endif
