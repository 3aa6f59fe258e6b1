/*
 * fuzz_perf_data.c -- any bytes as a recording of perf, and as the records of a stream: a decoded
 * one has valid indices. A program may follow the recording, after the word "objects": it is given
 * beside the file, and is what is found for each object of the stream.
 */
#include "hearth/base/buf.h"
#include "hearth/format/elf_symbols.h"
#include "hearth/format/perf_data.h"

#include "check_profile.h"
#include "short_memory.h"

static const struct hearth_elf_symbols *find_symbols(void *context, struct hearth_str path)
{
    (void)path;
    return context;
}

/* Symbols: NULL, if there is no program. Small limits are those that small inputs reach. */
static void decode(struct hearth_str bytes, const struct hearth_elf_symbols *symbols,
                   bool is_stream, bool has_small_limits)
{
    const struct hearth_perf_object object = {HEARTH_STR("bin/spin"), symbols};
    const struct hearth_perf_options options = {
        .limits = {.max_depth = 100,
                   .max_entries = has_small_limits ? 6 : 100000,
                   .max_frames = has_small_limits ? 50 : 1000000},
        .objects = &object,
        .n_objects = symbols != NULL && !is_stream,
        .find_symbols = is_stream ? find_symbols : NULL,
        .symbols_context = (void *)(uintptr_t)symbols,
    };
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

/* Cuts a program off: the bytes after the last "objects", or else nothing. */
static struct hearth_str split_program(struct hearth_str *bytes)
{
    static const struct hearth_str mark = HEARTH_STR("objects");

    struct hearth_str before = *bytes;
    while (before.n > 0) {
        const char *last = memrchr(before.p, 's', before.n); /* not a traced comparison each */
        before.n = last == NULL ? 0 : (size_t)(last - before.p) + 1;
        if (hearth_str_ends(before, mark)) {
            struct hearth_str program = hearth_str_n(bytes->p + before.n, bytes->n - before.n);
            bytes->n = before.n - mark.n;
            return program;
        }
        before.n -= before.n > 0;
    }

    return HEARTH_STR("");
}

static void run_input(const uint8_t *data, size_t size)
{
    struct hearth_str bytes = {(const char *)data, size};
    const struct hearth_elf_symbols *symbols = NULL;
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_arena arena;
    struct hearth_buf stream;

    begin_memory(&arena);
    struct hearth_str program = split_program(&bytes);
    if (program.n == 0 || hearth_elf_symbols_read(program, &arena, &symbols, &err) != HEARTH_OK) {
        symbols = NULL;
    }
    decode(bytes, symbols, false, size % 8 == 0);

    hearth_buf_init(&stream, 0);
    hearth_buf_append(&stream, "PERFILE2\20\0\0\0\0\0\0\0", 16);
    hearth_buf_str(&stream, bytes);
    decode(hearth_buf_view(&stream), symbols, true, size % 8 == 1);
    hearth_buf_release(&stream);
    end_memory(&arena);
}
