/* text_table.c -- texts and numbers of packed spans and snapshots (text_table.h). */
#include "profile/text_table.h"

#include "hearth/base/varint.h"

#include <assert.h>

/* ---- writing ---- */

void hearth_text_writer_init(struct hearth_text_writer *writer)
{
    *writer = (struct hearth_text_writer){0};
    hearth_idmap_init(&writer->ids);
    hearth_buf_init(&writer->texts, 0);
    hearth_buf_init(&writer->body, 0);
}

void hearth_text_put(struct hearth_text_writer *writer, struct hearth_str text)
{
    assert(writer != NULL);

    if (text.n == 0) {
        hearth_buf_varint(&writer->body, 0);
        return;
    }

    bool is_new = false;
    uint32_t id = hearth_idmap_intern(&writer->ids, hearth_hash128(text.p, text.n, 0),
                                      writer->n + 1, &is_new);
    if (id == HEARTH_IDMAP_NONE) {
        writer->failed = true;
        return;
    }

    if (is_new) {
        writer->n++;
        hearth_buf_varint(&writer->texts, text.n);
        hearth_buf_str(&writer->texts, text);
    }

    hearth_buf_varint(&writer->body, id);
}

void hearth_number_put(struct hearth_text_writer *writer, uint64_t value)
{
    hearth_buf_varint(&writer->body, value);
}

void hearth_signed_put(struct hearth_text_writer *writer, int64_t value)
{
    hearth_buf_varint(&writer->body, hearth_zigzag(value));
}

void hearth_text_writer_finish(struct hearth_text_writer *writer, uint64_t version,
                               struct hearth_buf *out)
{
    assert(writer != NULL && out != NULL);

    hearth_buf_varint(out, version);
    hearth_buf_varint(out, writer->n);
    hearth_buf_str(out, hearth_buf_view(&writer->texts));
    hearth_buf_str(out, hearth_buf_view(&writer->body));
    out->failed = out->failed || writer->failed || writer->texts.failed || writer->body.failed;
    hearth_idmap_release(&writer->ids);
    hearth_buf_release(&writer->texts);
    hearth_buf_release(&writer->body);
}

/* ---- reading ---- */

uint64_t hearth_number_get(struct hearth_text_reader *reader)
{
    uint64_t value = 0;
    if (reader->failed || !hearth_varint_read(&reader->at, reader->end, &value)) {
        reader->failed = true;
        return 0;
    }
    return value;
}

int64_t hearth_signed_get(struct hearth_text_reader *reader)
{
    return hearth_unzigzag(hearth_number_get(reader));
}

uint64_t hearth_below_get(struct hearth_text_reader *reader, uint64_t max)
{
    uint64_t value = hearth_number_get(reader);
    reader->failed = reader->failed || value > max;
    return reader->failed ? 0 : value;
}

size_t hearth_count_get(struct hearth_text_reader *reader, size_t min_bytes)
{
    assert(min_bytes > 0);

    uint64_t n = hearth_number_get(reader);
    assert(reader->at <= reader->end);
    reader->failed = reader->failed || n > (size_t)(reader->end - reader->at) / min_bytes;

    return reader->failed ? 0 : (size_t)n;
}

struct hearth_str hearth_text_get(struct hearth_text_reader *reader)
{
    uint64_t id = hearth_below_get(reader, reader->n);
    return id == 0 ? HEARTH_STR("") : reader->texts[id - 1];
}

bool hearth_text_reader_init(struct hearth_text_reader *reader, struct hearth_str bytes,
                             uint64_t version, struct hearth_arena *arena)
{
    assert(reader != NULL && arena != NULL);

    const uint8_t *at = bytes.n == 0 ? (const uint8_t *)"" : (const uint8_t *)bytes.p;

    *reader = (struct hearth_text_reader){.at = at, .end = at + bytes.n};
    reader->failed = hearth_number_get(reader) != version;
    reader->n = (uint32_t)hearth_count_get(reader, 1);
    reader->texts = hearth_arena_array(arena, reader->n, sizeof *reader->texts);
    if (reader->texts == NULL) {
        return false;
    }

    for (uint32_t i = 0; i < reader->n; i++) {
        size_t n = hearth_count_get(reader, 1);
        reader->texts[i] = hearth_str_n((const char *)reader->at, n);
        reader->at += n;
    }

    return true;
}
