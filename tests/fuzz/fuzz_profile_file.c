/*
 * fuzz_profile_file.c -- any bytes as a file of any profiler: the bytes alone decide the format, and
 * give valid profiles with names, or a reason; so does each format that the sender names, and each
 * file that may use 16 times its bytes of memory and no more.
 */
#include "hearth/format/profile_file.h"

#include "check_profile.h"
#include "short_memory.h"

#define MAX_MEMORY ((size_t)32 << 20)

static void decode_as(struct hearth_str bytes, const char *format, size_t max_memory)
{
    const struct hearth_file_options options = {
        .limits = {.max_samples = 1000,
                   .max_types = 8,
                   .max_depth = 16,
                   .max_string_bytes = 64,
                   .max_entries = 100000,
                   .max_frames = 1000000,
                   .max_memory = max_memory},
        .format = format,
    };
    struct hearth_file_profiles file = {.n_profiles = 0};
    struct hearth_arena arena;
    struct hearth_err err = HEARTH_ERR_INIT;

    begin_memory(&arena);
    if (hearth_profile_file_decode(bytes, &options, &arena, &file, &err) == HEARTH_OK) {
        HEARTH_ASSERT(file.format != NULL);
    } else {
        HEARTH_ASSERT(err.msg[0] != '\0' && file.n_profiles == 0);
    }
    for (size_t i = 0; i < file.n_profiles; i++) {
        HEARTH_ASSERT(file.profiles[i].name.n > 0);
        if (strcmp(file.format, "pprof") != 0) { /* whose locations may dangle: fuzz_pprof */
            check_profile(&file.profiles[i].profile);
        }
    }
    end_memory(&arena);
}

static void run_input(const uint8_t *data, size_t size)
{
    struct hearth_str bytes = {(const char *)data, size};
    struct hearth_arena arena;

    begin_memory(&arena);
    (void)hearth_profile_file_recognise(bytes, &arena);
    end_memory(&arena);
    decode_as(bytes, NULL, MAX_MEMORY);
    decode_as(bytes, NULL, 1);
    decode_as(bytes, "speedscope", MAX_MEMORY);
    decode_as(bytes, "collapsed", MAX_MEMORY);
    decode_as(bytes, "legacy pprof", MAX_MEMORY);
}
