/*
 * text_table.h -- what packed spans and snapshots share: a table of texts in front, varints behind
 * (private to the model).
 *
 * The writer gathers numbers in a body of its own, because the table, which stands first, is known
 * last. The reader's failure is sticky: after it everything reads as 0 or "".
 */
#ifndef HEARTH_MODEL_TEXT_TABLE_H
#define HEARTH_MODEL_TEXT_TABLE_H

#include "hearth/base/arena.h"
#include "hearth/base/buf.h"
#include "hearth/base/hash.h"

struct hearth_text_writer {
    struct hearth_idmap ids;
    struct hearth_buf texts, body;
    uint32_t n;
    bool failed;
};

void hearth_text_writer_init(struct hearth_text_writer *writer);
/* The number of the text goes into the body; that of "" is 0. */
void hearth_text_put(struct hearth_text_writer *writer, struct hearth_str text);
void hearth_number_put(struct hearth_text_writer *writer, uint64_t value);
void hearth_signed_put(struct hearth_text_writer *writer, int64_t value);
/* Append version, table and body; free the writer. A refusal fails `out`. */
void hearth_text_writer_finish(struct hearth_text_writer *writer, uint64_t version,
                               struct hearth_buf *out);

struct hearth_text_reader {
    const uint8_t *at, *end;
    struct hearth_str *texts;
    uint32_t n;
    bool failed;
};

/* Reads version and table; fails for another version. False: the arena is full. */
HEARTH_MUST_CHECK bool hearth_text_reader_init(struct hearth_text_reader *reader,
                                               struct hearth_str bytes, uint64_t version,
                                               struct hearth_arena *arena);
uint64_t hearth_number_get(struct hearth_text_reader *reader);
int64_t hearth_signed_get(struct hearth_text_reader *reader);
/* At most `max`, or it fails. */
uint64_t hearth_below_get(struct hearth_text_reader *reader, uint64_t max);
struct hearth_str hearth_text_get(struct hearth_text_reader *reader);
/* A number of things of which each takes at least min_bytes of what is left. */
size_t hearth_count_get(struct hearth_text_reader *reader, size_t min_bytes);

#endif
