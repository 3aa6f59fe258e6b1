/*
 * fuzz_spool_record.c -- hostile records of the spool. The first byte decides: 0 searches headers in the rest; otherwise
 * the rest is a body with a right checksum, decoded without a crash, for memory in proportion. What was decoded is
 * written, and read again as the same.
 */
#include "hearth/format/spool_record.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct hearth_spool_key g_key = {"the key of the seeds in corpus/"};

static void require(bool ok)
{
    if (!ok) {
        abort();
    }
}

static void write_again(const struct hearth_spool_record *record, struct hearth_buf *out)
{
    hearth_buf_init(out, 0);
    hearth_spool_put_head(&record->head, out);
    for (size_t i = 0; i < record->n_files; i++) {
        hearth_spool_put_file(&record->files[i], out);
    }
    for (size_t i = 0; i < record->n_profiles; i++) {
        hearth_spool_put_profile(&record->profiles[i], out);
    }
    require(hearth_spool_end(&g_key, 1, out));
}

static void read_body(struct hearth_str body)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_spool_header header = {.n_body = (uint32_t)body.n,
                                         .body_hash = hearth_hash64(body.p, body.n, 0)};
    struct hearth_spool_record record, again;
    struct hearth_arena arena;
    struct hearth_buf out;

    hearth_arena_init(&arena, (body.n + 1024) * 64);
    enum hearth_status status = hearth_spool_body_read(&header, body, &arena, &record, &err);
    require(status == HEARTH_OK || status == HEARTH_INVALID_ARGUMENT);
    if (status == HEARTH_OK) {
        write_again(&record, &out);
        require(hearth_spool_header_read(&g_key, out.p, &header));
        body = hearth_str_n(out.p + HEARTH_SPOOL_HEADER_BYTES, out.n - HEARTH_SPOOL_HEADER_BYTES);
        require(hearth_spool_body_read(&header, body, &arena, &again, &err) == HEARTH_OK);
        require(again.n_profiles == record.n_profiles && again.n_files == record.n_files);
        hearth_buf_release(&out);
    }
    hearth_arena_release(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) {
        return 0;
    }

    struct hearth_str rest = hearth_str_n((const char *)data + 1, size - 1);
    if (data[0] == 0) {
        struct hearth_spool_header header;
        size_t at = hearth_spool_header_find(&g_key, rest);
        require(at <= rest.n &&
                (at == rest.n || hearth_spool_header_read(&g_key, rest.p + at, &header)));
    } else {
        read_body(rest);
    }

    return 0;
}
