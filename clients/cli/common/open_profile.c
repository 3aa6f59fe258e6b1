/* open_profile.c -- reads, inflates and decodes files. */
#include "open_profile.h"

#include "hearth/codec/compress.h"

#include "local_symbols.h"

#include <errno.h>
#include <stdio.h>

#define MAX_FILE_BYTES ((size_t)1 << 30)
#define MAX_TIME_BYTES 11 /* what an upload may append: a key and the longest varint */

enum hearth_status cli_read_file(struct cli *cli, const char *path, struct hearth_buf *out)
{
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rbe");

    if (file == NULL) {
        return HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT, "cannot open: %s",
                           strerrordesc_np(errno));
    }
    size_t n = 1;
    while (n > 0) {
        char *room = hearth_buf_reserve(out, 65536);
        n = room == NULL ? 0 : fread(room, 1, 65536, file);
        out->n += n;
    }
    bool failed = ferror(file) != 0;
    int saved = errno;
    if (file != stdin) {
        (void)fclose(file);
    }
    if (failed || hearth_buf_failed(out)) {
        return failed ? HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT, "cannot read: %s",
                                    strerrordesc_np(saved))
                      : HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT, "larger than %zu MiB",
                                    out->limit_bytes >> 20);
    }

    return HEARTH_OK;
}

/* Inflates a file, and leaves room for a time that an upload appends. */
static enum hearth_status inflate_file(struct cli *cli, struct hearth_str bytes,
                                       struct hearth_buf *plain)
{
    struct hearth_inflater *inflater = hearth_inflater_new();

    if (inflater == NULL) {
        return HEARTH_FAIL(&cli->err, HEARTH_NO_MEMORY, "cannot allocate an inflater");
    }
    enum hearth_status status = hearth_inflate(inflater, hearth_compression_detect(bytes), bytes,
                                               MAX_FILE_BYTES, plain, &cli->err);
    hearth_inflater_free(inflater);
    HEARTH_TRY(status);

    /* Profiles may borrow from these bytes, which must not move any more. */
    return hearth_buf_reserve(plain, MAX_TIME_BYTES) == NULL
               ? HEARTH_FAIL(&cli->err, HEARTH_NO_MEMORY, "cannot allocate the profile")
               : HEARTH_OK;
}

/* Prints what the file has and its profiles lack. */
static void print_notes(const char *path, const struct hearth_file_profiles *file)
{
    const struct {
        uint64_t n;
        const char *one, *many;
    } notes[] = {
        {file->skipped_lines, "line of its mappings was not understood",
         "lines of its mappings were not understood"},
        {file->n_lost, "sample was lost while it was recorded",
         "samples were lost while it was recorded"},
        {file->n_unknown, "sample has an event that it does not describe",
         "samples have events that it does not describe"},
        {file->n_copied, "sample has only its leaf: its stack was not unwound",
         "samples have only their leaf: their stacks were not unwound"},
    };

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(notes); i++) {
        if (notes[i].n > 0) {
            (void)fprintf(stderr, "%s: %llu %s\n", path, (unsigned long long)notes[i].n,
                          notes[i].n == 1 ? notes[i].one : notes[i].many);
        }
    }
}

/* Decodes a file; a recording of perf gets the symbols of this machine's programs. */
static enum hearth_status decode_file(struct cli *cli, struct hearth_str plain,
                                      struct hearth_file_profiles *ret)
{
    struct local_symbols *symbols = hearth_arena_zalloc(&cli->arena, sizeof *symbols);

    if (symbols == NULL) {
        return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
    }

    symbols->arena = &cli->arena;
    const struct hearth_file_options options = {.find_symbols = cli_local_symbols,
                                                .symbols_context = symbols};
    enum hearth_status status =
        hearth_profile_file_decode(plain, &options, &cli->arena, ret, &cli->err);
    cli_local_symbols_release(symbols);

    return status;
}

enum hearth_status cli_open_profile(struct cli *cli, const char *path, struct hearth_buf *plain,
                                    struct hearth_file_profiles *ret)
{
    struct hearth_buf file;

    hearth_buf_init(&file, MAX_FILE_BYTES);
    enum hearth_status status = cli_read_file(cli, path, &file);
    if (status == HEARTH_OK) {
        status = inflate_file(cli, hearth_buf_view(&file), plain);
    }
    hearth_buf_release(&file);
    HEARTH_TRY(status);

    HEARTH_TRY(decode_file(cli, hearth_buf_view(plain), ret));
    print_notes(path, ret);

    return ret->n_profiles > 0 ? HEARTH_OK
                               : HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT,
                                             "the file has no profile (format: %s)", ret->format);
}
