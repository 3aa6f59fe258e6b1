/*
 * fuzz_task_archive.c -- hostile archives of tasks: decoded without a crash, for memory in proportion; what comes out
 * goes in again, byte for byte.
 */
#include "hearth/format/task_archive_format.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
    if (!ok) {
        abort();
    }
}

/* Records of one kind together: as the writer has them, too. */
static void encode(const struct hearth_task_archive *a, struct hearth_buf *out)
{
    hearth_archive_put_task(&a->task, out);
    for (size_t i = 0; i < a->n_logs; i++) {
        hearth_archive_put_log(&a->logs[i], out);
    }
    for (size_t i = 0; i < a->n_runs; i++) {
        hearth_archive_put_run(&a->runs[i], out);
    }
    for (size_t i = 0; i < a->n_chunks; i++) {
        hearth_archive_put_chunk(&a->chunks[i], out);
    }
    for (size_t i = 0; i < a->n_uploads; i++) {
        hearth_archive_put_upload(&a->uploads[i], out);
    }
    for (size_t i = 0; i < a->n_segments; i++) {
        hearth_archive_put_segment(&a->segments[i], out);
    }
    for (size_t i = 0; i < a->n_snapshots; i++) {
        hearth_archive_put_snapshots(&a->snapshots[i], out);
    }
    hearth_archive_end(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_arena arena;
    struct hearth_task_archive archive, again;
    hearth_arena_init(&arena, (size + 1024) * 512);
    enum hearth_status status =
        hearth_archive_decode(hearth_str_n((const char *)data, size), &arena, &archive, &err);
    require(status == HEARTH_OK || status == HEARTH_INVALID_ARGUMENT);
    if (status == HEARTH_OK) {
        struct hearth_buf first, second;
        hearth_buf_init(&first, 0);
        hearth_buf_init(&second, 0);
        encode(&archive, &first);
        require(hearth_archive_decode(hearth_buf_view(&first), &arena, &again, &err) == HEARTH_OK);
        encode(&again, &second);
        require(first.n == second.n && memcmp(first.p, second.p, first.n) == 0);
        hearth_buf_release(&first);
        hearth_buf_release(&second);
    }
    hearth_arena_release(&arena);
    return 0;
}
