/*
 * fuzz_perf_data.c -- any bytes as a recording of perf, and as the records of a stream: a decoded
 * one has valid indices.
 */
#include "hearth/base/buf.h"
#include "hearth/format/perf_data.h"

#include "check_profile.h"
#include "short_memory.h"

static void decode(struct hearth_str bytes)
{
    const struct hearth_perf_options options = {
        .limits = {.max_depth = 100, .max_entries = 100000, .max_frames = 1000000}};
    struct hearth_perf_recording recording = {0};
    struct hearth_arena arena;
    struct hearth_err err = HEARTH_ERR_INIT;

    begin_memory(&arena);
    enum hearth_status status = hearth_perf_data_decode(bytes, &options, &arena, &recording, &err);
    HEARTH_ASSERT(status == HEARTH_OK || err.msg[0] != '\0');
    for (size_t i = 0; status == HEARTH_OK && i < recording.n_profiles; i++) {
        HEARTH_ASSERT(recording.profiles[i].name.n > 0);
        HEARTH_ASSERT(recording.profiles[i].profile.n_types > 0);
        check_profile(&recording.profiles[i].profile);
    }
    end_memory(&arena);
}

static void run_input(const uint8_t *data, size_t size)
{
    struct hearth_buf stream;

    decode(hearth_str_n((const char *)data, size));

    hearth_buf_init(&stream, 0);
    hearth_buf_append(&stream, "PERFILE2\20\0\0\0\0\0\0\0", 16);
    hearth_buf_append(&stream, data, size);
    decode(hearth_buf_view(&stream));
    hearth_buf_release(&stream);
}
