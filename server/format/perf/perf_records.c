/* perf_records.c -- walks the records of a recording, and inflates those that are compressed. */
#include "hearth/codec/compress.h"

#include "perf/perf_file.h"

#define HEADER_BYTES 8

/* A walk over plain records, or over inflated ones, which contain no compressed ones. */
struct record_walk {
    struct perf_file *file;
    bool is_inflated;
    struct hearth_unzstd_stream *stream; /* NULL before the first compressed record */
    perf_visit_record_fn *visit;
    void *context;
};

/* The bytes that follow a record without being part of it. */
static uint64_t count_trailing_bytes(const struct perf_record *record)
{
    struct perf_cursor c = perf_cursor_at(record->body);

    if (record->type == PERF_AUXTRACE) {
        return perf_u64(&c);
    }
    if (record->type == PERF_TRACING_DATA) {
        return ((uint64_t)perf_u32(&c) + 7) & ~UINT64_C(7);
    }

    return 0;
}

static enum hearth_status visit_record(struct record_walk *w, const struct perf_record *record,
                                       struct hearth_err *err)
{
    struct perf_cursor c = perf_cursor_at(record->body);

    if (w->is_inflated || (record->type != PERF_COMPRESSED && record->type != PERF_COMPRESSED2)) {
        return w->visit(w->context, record, err);
    }

    /* The newer form says how many of its bytes are no padding. */
    uint64_t n = record->type == PERF_COMPRESSED2 ? perf_u64(&c) : perf_left(&c);
    struct hearth_str piece = perf_bytes(&c, n);
    if (c.failed) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "it has fewer compressed bytes than %llu",
                           (unsigned long long)n);
    }

    /* Most recordings have no compressed record, and need no decompressor. */
    if (w->stream == NULL) {
        w->stream = hearth_unzstd_stream_new();
    }
    if (w->stream == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory to inflate compressed records");
    }

    return hearth_unzstd_stream_add(w->stream, piece, &w->file->inflated, err);
}

static enum hearth_status walk_records(struct record_walk *w, struct hearth_str records,
                                       size_t first_at, struct hearth_err *err)
{
    struct perf_cursor c = perf_cursor_at(records);

    while (perf_left(&c) > 0) {
        size_t at = first_at + records.n - perf_left(&c);
        struct perf_record record = {.type = perf_u32(&c)};
        record.misc = perf_u16(&c);
        uint16_t size = perf_u16(&c);
        if (c.failed || size < HEADER_BYTES) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "no record begins at %sbyte %zu",
                               w->is_inflated ? "inflated " : "", at);
        }

        record.body = perf_bytes(&c, size - HEADER_BYTES);
        perf_skip(&c, count_trailing_bytes(&record));
        if (c.failed) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                               "the record at %sbyte %zu does not end: the recording is truncated",
                               w->is_inflated ? "inflated " : "", at);
        }

        enum hearth_status status = visit_record(w, &record, err);
        if (status != HEARTH_OK) {
            hearth_err_prefix(err, "the record at %sbyte %zu", w->is_inflated ? "inflated " : "",
                              at);
            return status;
        }
    }

    return HEARTH_OK;
}

enum hearth_status hearth_perf_visit_records(struct perf_file *file, perf_visit_record_fn *visit,
                                             void *context, struct hearth_err *err)
{
    struct record_walk walk = {.file = file, .visit = visit, .context = context};

    enum hearth_status status = walk_records(&walk, file->records, file->records_at, err);
    hearth_unzstd_stream_free(walk.stream);
    if (status == HEARTH_OK && file->inflated.n > 0) {
        walk.is_inflated = true;
        status = walk_records(&walk, hearth_buf_view(&file->inflated), 0, err);
    }

    return status;
}
