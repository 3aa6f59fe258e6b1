/*
 * text_table.h -- the common form of packed spans and snapshots: a table of texts, followed by
 * varints (private to the model).
 *
 * The writer collects numbers in a separate body, because the table, which comes first, is known
 * last. The reader's failure is sticky: after it every number is 0 and every text "".
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
/* Append the number of the text to the body; the number of "" is 0. */
void hearth_text_put(struct hearth_text_writer *writer, struct hearth_str text);
void hearth_number_put(struct hearth_text_writer *writer, uint64_t value);
void hearth_signed_put(struct hearth_text_writer *writer, int64_t value);
/* Append version, table and body, and free the writer. If memory was refused, `out` fails. */
void hearth_text_writer_finish(struct hearth_text_writer *writer, uint64_t version,
                               struct hearth_buf *out);

struct hearth_text_reader {
    const uint8_t *at, *end;
    struct hearth_str *texts;
    uint32_t n;
    bool failed;
};

/*
 * Read version and table; the reader fails for another version. False if the arena refused memory.
 */
HEARTH_MUST_CHECK bool hearth_text_reader_init(struct hearth_text_reader *reader,
                                               struct hearth_str bytes, uint64_t version,
                                               struct hearth_arena *arena);
uint64_t hearth_number_get(struct hearth_text_reader *reader);
int64_t hearth_signed_get(struct hearth_text_reader *reader);
/* A number of at most `max`; otherwise the reader fails. */
uint64_t hearth_below_get(struct hearth_text_reader *reader, uint64_t max);
struct hearth_str hearth_text_get(struct hearth_text_reader *reader);
/* A number of items, each of which takes at least min_bytes of the remaining bytes. */
size_t hearth_count_get(struct hearth_text_reader *reader, size_t min_bytes);

#endif
