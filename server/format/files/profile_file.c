/*
 * profile_file.c -- asks the recognisers of the formats in the order of file_formats.def, and
 * brings the result of each decoder into one form.
 */
#include "hearth/format/profile_file.h"

#include "hearth/format/chrome_profile.h"
#include "hearth/format/elf_symbols.h"
#include "hearth/format/ingest_types.h"
#include "hearth/format/jfr.h"
#include "hearth/format/legacy_profile.h"
#include "hearth/format/perf_data.h"
#include "hearth/format/speedscope.h"
#include "hearth/format/text_profile.h"

#include "json/json_file.h"
#include "pprof/decode_memory.h"
#include "pprof/pprof_text.h"
#include "text/text_bytes.h"

#include <assert.h>

#define MAX_QUOTED_PATH 128u
#define NAMELESS        "profile" /* __name__ if neither format nor sample types say more */

typedef bool hearth_recognise_file_fn(struct hearth_str bytes);
typedef enum hearth_status hearth_decode_file_fn(struct hearth_str bytes,
                                                 const struct hearth_file_options *options,
                                                 struct hearth_arena *arena,
                                                 struct hearth_file_profiles *ret,
                                                 struct hearth_err *err);

/* ---- recognisers ---- */

static bool is_never(struct hearth_str bytes)
{
    (void)bytes;
    return false;
}

static bool is_jfr_file(struct hearth_str bytes)
{
    return hearth_ingest_format_of_bytes(bytes) == HEARTH_INGEST_JFR;
}

static bool is_speedscope_file(struct hearth_str bytes)
{
    return hearth_json_file_kind(bytes) == JSON_FILE_SPEEDSCOPE;
}

static bool is_cpuprofile_file(struct hearth_str bytes)
{
    return hearth_json_file_kind(bytes) == JSON_FILE_CPU_PROFILE;
}

static bool is_heapprofile_file(struct hearth_str bytes)
{
    return hearth_json_file_kind(bytes) == JSON_FILE_HEAP_PROFILE;
}

/* No pprof begins as other known formats do. */
static bool is_pprof_file(struct hearth_str bytes)
{
    return hearth_ingest_format_of_bytes(bytes) == HEARTH_INGEST_PPROF &&
           hearth_pprof_recognise(bytes) == NULL;
}

static bool is_text_file(struct hearth_str bytes)
{
    return hearth_ingest_format_of_bytes(bytes) == HEARTH_INGEST_COLLAPSED;
}

/* ---- decoders ---- */

/* Makes room for n profiles, whose names are empty. */
static enum hearth_status make_file_profiles(size_t n, struct hearth_arena *arena,
                                             struct hearth_file_profiles *ret,
                                             struct hearth_err *err)
{
    ret->profiles = hearth_arena_calloc(arena, n, sizeof *ret->profiles);
    ret->n_profiles = n;

    return ret->profiles == NULL ? HEARTH_FAIL_ARENA(err, arena) : HEARTH_OK;
}

static enum hearth_status decode_jfr_file(struct hearth_str bytes,
                                          const struct hearth_file_options *options,
                                          struct hearth_arena *arena,
                                          struct hearth_file_profiles *ret, struct hearth_err *err)
{
    const struct hearth_jfr_options of_jfr = {
        .limits = options->limits,
        .sample_rate = options->sample_rate,
        .labels = options->labels,
    };
    struct hearth_jfr_recording *recording = hearth_arena_alloc(arena, sizeof *recording);

    if (recording == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    HEARTH_TRY(hearth_jfr_decode(bytes, &of_jfr, arena, recording, err));
    HEARTH_TRY(make_file_profiles(recording->n_profiles, arena, ret, err));
    for (size_t i = 0; i < recording->n_profiles; i++) {
        ret->profiles[i].name = hearth_str_c(recording->profiles[i].name);
        ret->profiles[i].profile = recording->profiles[i].profile;
    }

    ret->event = recording->event;
    ret->notes = recording->notes;

    return HEARTH_OK;
}

static enum hearth_status decode_speedscope_file(struct hearth_str bytes,
                                                 const struct hearth_file_options *options,
                                                 struct hearth_arena *arena,
                                                 struct hearth_file_profiles *ret,
                                                 struct hearth_err *err)
{
    struct hearth_speedscope_file file;

    HEARTH_TRY(hearth_speedscope_decode(bytes, &options->limits, arena, &file, err));
    HEARTH_TRY(make_file_profiles(file.n_profiles, arena, ret, err));
    for (size_t i = 0; i < file.n_profiles; i++) {
        ret->profiles[i].name = hearth_str_c(file.profiles[i].name);
        ret->profiles[i].profile = file.profiles[i].profile;
    }

    ret->notes = file.notes;

    return HEARTH_OK;
}

static enum hearth_status decode_cpuprofile_file(struct hearth_str bytes,
                                                 const struct hearth_file_options *options,
                                                 struct hearth_arena *arena,
                                                 struct hearth_file_profiles *ret,
                                                 struct hearth_err *err)
{
    HEARTH_TRY(make_file_profiles(1, arena, ret, err));

    return hearth_cpuprofile_decode(bytes, &options->limits, arena, &ret->profiles[0].profile,
                                    &ret->notes, err);
}

static enum hearth_status decode_heapprofile_file(struct hearth_str bytes,
                                                  const struct hearth_file_options *options,
                                                  struct hearth_arena *arena,
                                                  struct hearth_file_profiles *ret,
                                                  struct hearth_err *err)
{
    HEARTH_TRY(make_file_profiles(1, arena, ret, err));

    return hearth_heapprofile_decode(bytes, &options->limits, arena, &ret->profiles[0].profile,
                                     &ret->notes, err);
}

static enum hearth_status decode_legacy_file(struct hearth_str bytes,
                                             const struct hearth_file_options *options,
                                             struct hearth_arena *arena,
                                             struct hearth_file_profiles *ret,
                                             struct hearth_err *err)
{
    struct hearth_legacy_notes notes;

    HEARTH_TRY(make_file_profiles(1, arena, ret, err));
    HEARTH_TRY(hearth_legacy_decode(bytes, &options->limits, arena, &ret->profiles[0].profile,
                                    &notes, err));
    ret->profiles[0].name = hearth_str_c(notes.name);
    ret->skipped_lines = notes.skipped_lines;
    ret->notes = notes.cut;

    return HEARTH_OK;
}

/* Reads the symbols of the programs that are sent beside a recording. */
static enum hearth_status read_objects(const struct hearth_file_options *options,
                                       struct hearth_arena *arena,
                                       struct hearth_perf_options *of_perf, struct hearth_err *err)
{
    struct hearth_perf_object *objects =
        hearth_arena_array(arena, options->n_objects, sizeof *objects);

    if (objects == NULL && options->n_objects > 0) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (size_t i = 0; i < options->n_objects; i++) {
        const struct hearth_file_object *sent = &options->objects[i];
        enum hearth_status status =
            hearth_elf_symbols_read(sent->bytes, arena, &objects[i].symbols, err);
        if (status != HEARTH_OK) {
            hearth_err_prefix(
                err, "object \"%.*s\"",
                (int)(sent->path.n < MAX_QUOTED_PATH ? sent->path.n : MAX_QUOTED_PATH),
                sent->path.p);
            return status;
        }
        objects[i].path = sent->path;
    }

    of_perf->objects = objects;
    of_perf->n_objects = options->n_objects;

    return HEARTH_OK;
}

static enum hearth_status decode_perf_data_file(struct hearth_str bytes,
                                                const struct hearth_file_options *options,
                                                struct hearth_arena *arena,
                                                struct hearth_file_profiles *ret,
                                                struct hearth_err *err)
{
    struct hearth_perf_options of_perf = {
        .limits = options->limits,
        .find_symbols = options->find_symbols,
        .symbols_context = options->symbols_context,
    };
    struct hearth_perf_recording recording;

    HEARTH_TRY(read_objects(options, arena, &of_perf, err));
    HEARTH_TRY(hearth_perf_data_decode(bytes, &of_perf, arena, &recording, err));
    HEARTH_TRY(make_file_profiles(recording.n_profiles, arena, ret, err));
    for (size_t i = 0; i < recording.n_profiles; i++) {
        ret->profiles[i].name = recording.profiles[i].name;
        ret->profiles[i].profile = recording.profiles[i].profile;
    }

    ret->n_lost = recording.n_lost;
    ret->n_unknown = recording.n_unknown;
    ret->n_copied = recording.n_copied;
    ret->notes = recording.notes;

    return HEARTH_OK;
}

static enum hearth_status decode_pprof_file(struct hearth_str bytes,
                                            const struct hearth_file_options *options,
                                            struct hearth_arena *arena,
                                            struct hearth_file_profiles *ret,
                                            struct hearth_err *err)
{
    HEARTH_TRY(make_file_profiles(1, arena, ret, err));

    return hearth_pprof_decode(bytes, &options->limits, arena, &ret->profiles[0].profile,
                               &ret->notes, err);
}

/* Collapsed stacks or output of perf script. */
static enum hearth_status decode_text_file(struct hearth_str bytes,
                                           const struct hearth_file_options *options,
                                           struct hearth_arena *arena,
                                           struct hearth_file_profiles *ret, struct hearth_err *err)
{
    struct hearth_text_notes notes;

    HEARTH_TRY(make_file_profiles(1, arena, ret, err));
    struct hearth_profile *profile = &ret->profiles[0].profile;
    HEARTH_TRY(hearth_text_decode(bytes, HEARTH_STR("samples"), HEARTH_STR("count"), 1, arena,
                                  profile, &notes, err));
    ret->format = notes.is_perf_script ? "perf script" : "collapsed";

    return hearth_ingest_cut(&options->limits, arena, profile, &ret->notes, err);
}

/* ---- the table ---- */

struct file_format {
    const char *name;
    hearth_recognise_file_fn *recognise;
    hearth_decode_file_fn *decode;
};

static const struct file_format g_file_formats[] = {
#define FORMAT(name, recognise, decode) {name, recognise, decode},
#include "files/file_formats.def"
#undef FORMAT
};

const char *hearth_profile_file_formats(void)
{
#define FORMAT(name, recognise, decode) ", " name
    static const char names[] =
#include "files/file_formats.def"
        ;
#undef FORMAT

    return names + 2; /* without the first comma */
}

static enum hearth_status find_named_format(const char *name, const struct file_format **ret,
                                            struct hearth_err *err)
{
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_file_formats); i++) {
        if (hearth_str_eq_nocase(hearth_str_c(name), hearth_str_c(g_file_formats[i].name))) {
            *ret = &g_file_formats[i];
            return HEARTH_OK;
        }
    }

    return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "unknown format \"%.64s\"; supported are %s",
                       name, hearth_profile_file_formats());
}

static const struct file_format *find_format_of_bytes(struct hearth_str bytes)
{
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_file_formats); i++) {
        if (g_file_formats[i].recognise(bytes)) {
            return &g_file_formats[i];
        }
    }

    return NULL;
}

const char *hearth_profile_file_recognise(struct hearth_str bytes, struct hearth_arena *arena)
{
    struct hearth_str text = bytes;
    bool is_converted = hearth_text_to_utf8(bytes, arena, &text);
    const struct file_format *format = find_format_of_bytes(is_converted ? text : bytes);
    return format == NULL ? NULL : format->name;
}

static enum hearth_status recognise_format(struct hearth_str bytes, const struct file_format **ret,
                                           struct hearth_err *err)
{
    *ret = find_format_of_bytes(bytes);
    if (*ret != NULL) {
        return HEARTH_OK;
    }

    const char *known = hearth_pprof_recognise(bytes);

    return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "the file is %s; supported are %s",
                       known != NULL ? known : "of an unknown format",
                       hearth_profile_file_formats());
}

enum hearth_status hearth_profile_file_decode(struct hearth_str bytes,
                                              const struct hearth_file_options *options,
                                              struct hearth_arena *arena,
                                              struct hearth_file_profiles *ret,
                                              struct hearth_err *err)
{
    const struct file_format *format;

    assert(options != NULL && arena != NULL && ret != NULL);

    /* Windows writes texts, JSON among them, with a byte order mark. No other format begins so. */
    if (!hearth_text_to_utf8(bytes, arena, &bytes)) {
        return HEARTH_FAIL_ARENA(err, arena);
    }
    if (bytes.n == 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "the file is empty");
    }

    /* The decoder; that of a text says itself which text it was. */
    HEARTH_TRY(options->format != NULL ? find_named_format(options->format, &format, err)
                                       : recognise_format(bytes, &format, err));
    struct hearth_file_profiles file = {.format = format->name};
    struct decode_memory memory;
    hearth_decode_memory_begin(&memory, arena, options->limits.max_memory, bytes.n);
    enum hearth_status status = format->decode(bytes, options, arena, &file, err);
    HEARTH_TRY(hearth_decode_memory_end(&memory, status, err));

    for (size_t i = 0; i < file.n_profiles; i++) {
        struct hearth_file_profile *profile = &file.profiles[i];
        if (profile->name.n == 0) {
            profile->name = hearth_ingest_pprof_name(&profile->profile, NULL, 0);
        }
        if (profile->name.n == 0) {
            profile->name = HEARTH_STR(NAMELESS);
        }
    }

    *ret = file;

    return HEARTH_OK;
}
