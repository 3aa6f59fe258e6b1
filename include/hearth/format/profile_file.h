/*
 * profile_file.h -- a file of any profiler as profiles: recognises the format and decodes it.
 *
 * The formats are in server/format/files/file_formats.def; each has a header of its own that says
 * how its parts become samples. A file holds one profile or several, such as one for each kind of
 * event of a recording.
 *
 * Threads: pure.
 */
#ifndef HEARTH_FORMAT_PROFILE_FILE_H
#define HEARTH_FORMAT_PROFILE_FILE_H

#include "hearth/base/arena.h"
#include "hearth/base/status.h"
#include "hearth/format/perf_data.h"
#include "hearth/format/pprof.h"
#include "hearth/model/profile.h"

/* A program or library (ELF) that is given with a recording of perf, for names of functions. */
struct hearth_file_object {
    struct hearth_str path; /* as recorded, or its last part; used if there is no build id */
    struct hearth_str bytes;
};

struct hearth_file_options {
    struct hearth_pprof_limits limits;
    const char *format;       /* one of hearth_profile_file_formats; NULL: the bytes decide */
    int64_t sample_rate;      /* Hz, of recordings that do not tell theirs; 0: unknown */
    struct hearth_str labels; /* of a JFR recording: a LabelsSnapshot, inflated; may be empty */
    const struct hearth_file_object *objects; /* of a perf.data; other formats ignore them */
    size_t n_objects;
    hearth_perf_symbols_fn *find_symbols; /* of a perf.data: perf_data.h; may be NULL */
    void *symbols_context;
};

struct hearth_file_profile {
    struct hearth_str name; /* __name__; never empty */
    struct hearth_profile profile;
};

struct hearth_file_profiles {
    const char *format; /* "pprof", "JFR", ...: static */
    struct hearth_file_profile *profiles;
    size_t n_profiles;       /* 0: a recording without samples */
    struct hearth_str event; /* async-profiler's setting: "cpu", "wall", ...; empty if none */
    uint64_t skipped_lines;  /* lines among the mappings of a legacy profile */
    uint64_t n_lost;         /* samples that the profiler lost while it recorded */
    uint64_t n_unknown;      /* samples of events that the file does not describe; left out */
    uint64_t n_copied;       /* samples with a stack that was not unwound: only the leaf is known */
    struct hearth_pprof_notes notes;
};

/*
 * Decodes plain (inflated) bytes. Arrays live in the arena; texts may borrow from the bytes. If the
 * format does not name a profile, its sample types do, as for a pprof at /ingest. Texts, JSON among
 * them, are UTF-8, or UTF-16 with a byte order mark.
 *
 * Returns OK; INVALID_ARGUMENT, which names the fault and its place, or, for bytes of no known
 * format, what they are and the supported formats; OUT_OF_RANGE if values exceed 63 bits in sum;
 * RESOURCE_EXHAUSTED for one of the limits; NO_MEMORY. *ret is set on success only.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_profile_file_decode(struct hearth_str bytes,
                                              const struct hearth_file_options *options,
                                              struct hearth_arena *arena,
                                              struct hearth_file_profiles *ret,
                                              struct hearth_err *err);

/*
 * The name of the format that the plain bytes have by their beginning, which may be damaged further
 * on; NULL for no known format. Static. UTF-16 is converted in the arena; if that refuses memory,
 * it counts as collapsed stacks.
 */
const char *hearth_profile_file_recognise(struct hearth_str bytes, struct hearth_arena *arena);

/* "pprof, JFR, ...": the names of the formats, for messages; static. */
const char *hearth_profile_file_formats(void);

#endif
