/* task_archive_format.c -- writes and reads exported tasks: records that begin with a tag. */
#include "hearth/format/task_archive_format.h"

#include "hearth/base/varint.h"

#include <assert.h>

#define MAGIC "hearth task 1\n"

enum archive_tag {
    TAG_TASK = 1,
    TAG_LOG,
    TAG_RUN,
    TAG_CHUNK,
    TAG_UPLOAD,
    TAG_END,
    TAG_SEGMENT,
    TAG_SNAPSHOTS,
};

/* ---- writing ---- */

static void put_archive_text(struct hearth_buf *out, struct hearth_str text)
{
    hearth_buf_varint(out, text.n);
    if (text.n > 0) {
        hearth_buf_str(out, text);
    }
}

static void put_archive_number(struct hearth_buf *out, int64_t number)
{
    hearth_buf_varint(out, hearth_zigzag(number));
}

void hearth_archive_put_task(const struct hearth_archive_task *task, struct hearth_buf *out)
{
    hearth_buf_cstr(out, MAGIC);
    hearth_buf_varint(out, TAG_TASK);
    for (size_t i = 0; i < HEARTH_ARCHIVE_N_TEXTS; i++) {
        put_archive_text(out, task->texts[i]);
    }

    for (size_t i = 0; i < HEARTH_ARCHIVE_N_NUMBERS; i++) {
        put_archive_number(out, task->numbers[i]);
    }

    for (size_t i = 0; i < HEARTH_ARCHIVE_N_LISTS; i++) {
        hearth_buf_varint(out, task->lists[i].n);
        for (size_t k = 0; k < task->lists[i].n; k++) {
            put_archive_text(out, task->lists[i].v[k]);
        }
    }
}

void hearth_archive_put_log(const struct hearth_archive_log *log, struct hearth_buf *out)
{
    hearth_buf_varint(out, TAG_LOG);
    put_archive_text(out, log->instance);
    put_archive_text(out, log->process_id);
    put_archive_text(out, log->message);
    put_archive_number(out, log->event);
    put_archive_number(out, log->at_ms);
    put_archive_number(out, log->last_at_ms);
}

void hearth_archive_put_run(const struct hearth_archive_run *run, struct hearth_buf *out)
{
    hearth_buf_varint(out, TAG_RUN);
    put_archive_text(out, run->process_id);
    put_archive_text(out, run->process);
    put_archive_text(out, run->instance);
    put_archive_number(out, run->start_ms);
    put_archive_number(out, run->end_ms);
}

void hearth_archive_put_chunk(const struct hearth_archive_chunk *chunk, struct hearth_buf *out)
{
    hearth_buf_varint(out, TAG_CHUNK);
    hearth_buf_varint(out, chunk->run);
    put_archive_number(out, chunk->at_ms);
    put_archive_text(out, chunk->bytes);
}

void hearth_archive_put_upload(const struct hearth_archive_upload *upload, struct hearth_buf *out)
{
    hearth_buf_varint(out, TAG_UPLOAD);
    put_archive_text(out, upload->service);
    put_archive_text(out, upload->instance);
    put_archive_text(out, upload->format);
    put_archive_number(out, upload->received_ms);
    put_archive_text(out, upload->content);
}

void hearth_archive_put_segment(const struct hearth_archive_segment *segment,
                                struct hearth_buf *out)
{
    hearth_buf_varint(out, TAG_SEGMENT);
    put_archive_text(out, segment->service);
    put_archive_text(out, segment->instance);
    put_archive_text(out, segment->endpoint);
    put_archive_text(out, segment->trace_id);
    put_archive_text(out, segment->segment_id);
    put_archive_number(out, segment->start_ns);
    put_archive_number(out, segment->end_ns);
    put_archive_number(out, segment->kind);
    put_archive_number(out, segment->flags);
    put_archive_text(out, segment->spans);
}

void hearth_archive_put_snapshots(const struct hearth_archive_snapshots *snapshots,
                                  struct hearth_buf *out)
{
    hearth_buf_varint(out, TAG_SNAPSHOTS);
    put_archive_text(out, snapshots->segment_id);
    put_archive_text(out, snapshots->bytes);
}

void hearth_archive_end(struct hearth_buf *out)
{
    hearth_buf_varint(out, TAG_END);
}

/* ---- reading ---- */

struct archive_reader {
    const uint8_t *begin, *at, *end;
    struct hearth_arena *arena;
    struct hearth_err *err;
    size_t caps[TAG_SNAPSHOTS + 1]; /* capacities of the arrays, by tag */
};

static enum hearth_status fail_damaged(const struct archive_reader *r, const char *what)
{
    return HEARTH_FAIL(r->err, HEARTH_INVALID_ARGUMENT,
                       "the file is not an exported task, or is damaged: %s at byte %zu", what,
                       (size_t)(r->at - r->begin));
}

static enum hearth_status take_varint(struct archive_reader *r, uint64_t *ret)
{
    return hearth_varint_read(&r->at, r->end, ret) ? HEARTH_OK : fail_damaged(r, "invalid number");
}

static enum hearth_status take_number(struct archive_reader *r, int64_t *ret)
{
    uint64_t n;
    HEARTH_TRY(take_varint(r, &n));
    *ret = hearth_unzigzag(n);
    return HEARTH_OK;
}

static enum hearth_status take_bytes(struct archive_reader *r, struct hearth_str *ret)
{
    uint64_t n;

    HEARTH_TRY(take_varint(r, &n));
    if (n > (uint64_t)(r->end - r->at)) {
        return fail_damaged(r, "a text ends after the end");
    }

    *ret = hearth_str_n((const char *)r->at, (size_t)n);
    r->at += n;

    return HEARTH_OK;
}

static enum hearth_status take_text(struct archive_reader *r, struct hearth_str *ret)
{
    HEARTH_TRY(take_bytes(r, ret));
    return hearth_str_utf8_valid(*ret) ? HEARTH_OK : fail_damaged(r, "a text is not UTF-8");
}

static enum hearth_status take_list(struct archive_reader *r, struct hearth_archive_list *ret)
{
    uint64_t n;

    HEARTH_TRY(take_varint(r, &n));
    if (n > (uint64_t)(r->end - r->at)) { /* each text has at least one byte */
        return fail_damaged(r, "a list ends after the end");
    }

    ret->n = (size_t)n;
    ret->v = hearth_arena_array(r->arena, ret->n, sizeof *ret->v);
    if (ret->v == NULL) {
        return HEARTH_FAIL_ARENA(r->err, r->arena);
    }

    for (size_t i = 0; i < ret->n; i++) {
        HEARTH_TRY(take_text(r, &ret->v[i]));
    }

    return HEARTH_OK;
}

static enum hearth_status take_task(struct archive_reader *r, struct hearth_archive_task *task)
{
    for (size_t i = 0; i < HEARTH_ARCHIVE_N_TEXTS; i++) {
        HEARTH_TRY(take_text(r, &task->texts[i]));
    }

    for (size_t i = 0; i < HEARTH_ARCHIVE_N_NUMBERS; i++) {
        HEARTH_TRY(take_number(r, &task->numbers[i]));
    }

    for (size_t i = 0; i < HEARTH_ARCHIVE_N_LISTS; i++) {
        HEARTH_TRY(take_list(r, &task->lists[i]));
    }

    return HEARTH_OK;
}

static enum hearth_status take_log(struct archive_reader *r, struct hearth_archive_log *log)
{
    HEARTH_TRY(take_text(r, &log->instance));
    HEARTH_TRY(take_text(r, &log->process_id));
    HEARTH_TRY(take_text(r, &log->message));
    HEARTH_TRY(take_number(r, &log->event));
    HEARTH_TRY(take_number(r, &log->at_ms));

    return take_number(r, &log->last_at_ms);
}

static enum hearth_status take_run(struct archive_reader *r, struct hearth_archive_run *run)
{
    HEARTH_TRY(take_text(r, &run->process_id));
    HEARTH_TRY(take_text(r, &run->process));
    HEARTH_TRY(take_text(r, &run->instance));
    HEARTH_TRY(take_number(r, &run->start_ms));
    return take_number(r, &run->end_ms);
}

static enum hearth_status take_chunk(struct archive_reader *r, size_t n_runs,
                                     struct hearth_archive_chunk *chunk)
{
    HEARTH_TRY(take_varint(r, &chunk->run));
    if (chunk->run >= n_runs) {
        return fail_damaged(r, "stack traces of a run that does not exist");
    }

    HEARTH_TRY(take_number(r, &chunk->at_ms));

    return take_bytes(r, &chunk->bytes);
}

static enum hearth_status take_upload(struct archive_reader *r,
                                      struct hearth_archive_upload *upload)
{
    HEARTH_TRY(take_text(r, &upload->service));
    HEARTH_TRY(take_text(r, &upload->instance));
    HEARTH_TRY(take_text(r, &upload->format));
    HEARTH_TRY(take_number(r, &upload->received_ms));
    return take_bytes(r, &upload->content);
}

static enum hearth_status take_segment(struct archive_reader *r,
                                       struct hearth_archive_segment *segment)
{
    HEARTH_TRY(take_text(r, &segment->service));
    HEARTH_TRY(take_text(r, &segment->instance));
    HEARTH_TRY(take_text(r, &segment->endpoint));
    HEARTH_TRY(take_bytes(r, &segment->trace_id));
    HEARTH_TRY(take_bytes(r, &segment->segment_id));
    HEARTH_TRY(take_number(r, &segment->start_ns));
    HEARTH_TRY(take_number(r, &segment->end_ns));
    HEARTH_TRY(take_number(r, &segment->kind));
    HEARTH_TRY(take_number(r, &segment->flags));

    return take_bytes(r, &segment->spans);
}

static enum hearth_status take_snapshots(struct archive_reader *r,
                                         struct hearth_archive_snapshots *ret)
{
    HEARTH_TRY(take_text(r, &ret->segment_id));
    return take_bytes(r, &ret->bytes);
}

/* The array with room for one more element; NULL if memory is refused. */
static void *grow_records(struct archive_reader *r, enum archive_tag tag, void *p, size_t n,
                          size_t size)
{
    assert(tag < HEARTH_ARRAY_LEN(r->caps) && n <= r->caps[tag]);

    size_t *cap = &r->caps[tag];
    if (n < *cap) {
        return p;
    }

    size_t larger = *cap == 0 ? 8 : *cap * 2;
    void *grown = hearth_arena_array(r->arena, larger, size);
    if (grown != NULL) {
        if (n > 0) {
            memcpy(grown, p, n * size);
        }
        *cap = larger;
    }

    return grown;
}

/* Read one record, after its tag. */
static enum hearth_status take_record(struct archive_reader *r, uint64_t tag,
                                      struct hearth_task_archive *a)
{
    void *p;

    switch (tag) {
    case TAG_LOG:
        p = grow_records(r, TAG_LOG, a->logs, a->n_logs, sizeof *a->logs);
        a->logs = p;
        return p == NULL ? (enum hearth_status)HEARTH_FAIL_ARENA(r->err, r->arena)
                         : take_log(r, &a->logs[a->n_logs++]);
    case TAG_RUN:
        p = grow_records(r, TAG_RUN, a->runs, a->n_runs, sizeof *a->runs);
        a->runs = p;
        return p == NULL ? (enum hearth_status)HEARTH_FAIL_ARENA(r->err, r->arena)
                         : take_run(r, &a->runs[a->n_runs++]);
    case TAG_CHUNK:
        p = grow_records(r, TAG_CHUNK, a->chunks, a->n_chunks, sizeof *a->chunks);
        a->chunks = p;
        return p == NULL ? (enum hearth_status)HEARTH_FAIL_ARENA(r->err, r->arena)
                         : take_chunk(r, a->n_runs, &a->chunks[a->n_chunks++]);
    case TAG_UPLOAD:
        p = grow_records(r, TAG_UPLOAD, a->uploads, a->n_uploads, sizeof *a->uploads);
        a->uploads = p;
        return p == NULL ? (enum hearth_status)HEARTH_FAIL_ARENA(r->err, r->arena)
                         : take_upload(r, &a->uploads[a->n_uploads++]);
    case TAG_SEGMENT:
        p = grow_records(r, TAG_SEGMENT, a->segments, a->n_segments, sizeof *a->segments);
        a->segments = p;
        return p == NULL ? (enum hearth_status)HEARTH_FAIL_ARENA(r->err, r->arena)
                         : take_segment(r, &a->segments[a->n_segments++]);
    case TAG_SNAPSHOTS:
        p = grow_records(r, TAG_SNAPSHOTS, a->snapshots, a->n_snapshots, sizeof *a->snapshots);
        a->snapshots = p;
        return p == NULL ? (enum hearth_status)HEARTH_FAIL_ARENA(r->err, r->arena)
                         : take_snapshots(r, &a->snapshots[a->n_snapshots++]);
    default:
        return fail_damaged(r, "record of an unknown kind");
    }
}

enum hearth_status hearth_archive_decode(struct hearth_str bytes, struct hearth_arena *arena,
                                         struct hearth_task_archive *ret, struct hearth_err *err)
{
    struct archive_reader r = {.begin = (const uint8_t *)bytes.p, .arena = arena, .err = err};
    uint64_t tag;

    r.at = r.begin;
    r.end = r.begin + bytes.n;
    *ret = (struct hearth_task_archive){0};
    if (!hearth_str_starts(bytes, HEARTH_STR(MAGIC))) {
        return fail_damaged(&r, "unknown beginning");
    }

    /* The task is the first record, the end the last one. */
    r.at += sizeof MAGIC - 1;
    HEARTH_TRY(take_varint(&r, &tag));
    if (tag != TAG_TASK) {
        return fail_damaged(&r, "the first record is not the task");
    }

    HEARTH_TRY(take_task(&r, &ret->task));
    for (;;) {
        HEARTH_TRY(take_varint(&r, &tag));
        if (tag == TAG_END) {
            return r.at == r.end ? HEARTH_OK : fail_damaged(&r, "bytes after the last record");
        }
        HEARTH_TRY(take_record(&r, tag, ret));
    }
}
