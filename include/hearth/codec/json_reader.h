/*
 * json_reader.h -- reads JSON from its first byte to its last, without a tree: the memory of a
 * reader does not depend on the text.
 *
 * The caller asks for the values that it expects, in order:
 *
 *     hearth_json_reader_object(&r);
 *     while (hearth_json_reader_member(&r, &key)) {
 *         if (hearth_str_eq_c(key, "samples")) {
 *             hearth_json_reader_array(&r);
 *             while (hearth_json_reader_element(&r)) {
 *                 sum += hearth_json_reader_i64(&r);
 *             }
 *         } else {
 *             hearth_json_reader_skip(&r);
 *         }
 *     }
 *     return hearth_json_reader_end(&r, err);
 *
 * The first fault is kept and ends every loop: members and elements end, texts are empty, numbers
 * 0. Faults: text that is not JSON, a value of another type than the caller asks for, more than
 * HEARTH_JSON_READER_MAX_DEPTH levels. After a member or an element, its value must be read or
 * skipped.
 *
 * Ownership: borrows the text; results borrow from it, or live in the caller's arena.
 * Threads:   not thread-safe.
 * Source:    RFC 8259. Accepted in addition: text that is not UTF-8 within strings.
 */
#ifndef HEARTH_CODEC_JSON_READER_H
#define HEARTH_CODEC_JSON_READER_H

#include "hearth/base/arena.h"
#include "hearth/base/status.h"

#define HEARTH_JSON_READER_MAX_DEPTH 1024u

struct hearth_json_reader {
    struct hearth_str text;
    size_t at;      /* index of the next byte */
    unsigned depth; /* open arrays and objects */
    /* Bit n % 64 of word n / 64: level n is an object; it has an element before `at`. */
    uint64_t is_object[HEARTH_JSON_READER_MAX_DEPTH / 64];
    uint64_t is_started[HEARTH_JSON_READER_MAX_DEPTH / 64];
    struct hearth_err fault;
};

/* A copy of a reader reads the same value again. */
void hearth_json_reader_init(struct hearth_json_reader *r, struct hearth_str text);
/*
 * Begins at the value at index `at`, which another reader has reached: a reader is large, its index
 * is not. Only this value may be read.
 */
void hearth_json_reader_init_at(struct hearth_json_reader *r, struct hearth_str text, size_t at);

/*
 * The type of the next value: '{', '[', '"', '0' (a number), 'b' (true or false), 'n' (null); 0 at
 * the end, after a fault, and before a byte that begins no value.
 */
char hearth_json_reader_peek(struct hearth_json_reader *r);

/* Begin an object; each call of _member gives the next key, as it is written, without quotes. */
void hearth_json_reader_object(struct hearth_json_reader *r);
bool hearth_json_reader_member(struct hearth_json_reader *r, struct hearth_str *ret_key);
/* Begin an array; each call of _element is before the next value. False: the array has ended. */
void hearth_json_reader_array(struct hearth_json_reader *r);
bool hearth_json_reader_element(struct hearth_json_reader *r);

/* True within an object, false within an array and at the outermost level. */
bool hearth_json_reader_is_in_object(const struct hearth_json_reader *r);

/* A string; in the arena if it has escapes. Half a surrogate pair and \u0000 become U+FFFD. */
struct hearth_str hearth_json_reader_text(struct hearth_json_reader *r, struct hearth_arena *arena);
/* A number, of any form that has no fraction ("1e3", "2.0"), within 64 bits. */
int64_t hearth_json_reader_i64(struct hearth_json_reader *r);
/*
 * A number times `factor`, which is 1 to 10^18, rounded to the nearest integer, halves away from 0.
 * Exact, but for digits after the 19th. A fault outside of 64 bits.
 */
int64_t hearth_json_reader_scaled(struct hearth_json_reader *r, int64_t factor);
/* Skips a value of any type. */
void hearth_json_reader_skip(struct hearth_json_reader *r);

/* Makes the text a fault with the caller's reason; earlier faults are kept. */
void hearth_json_reader_fail(struct hearth_json_reader *r, const char *fmt, ...)
    HEARTH_PRINTF(2, 3);
/* For a refused allocation. */
void hearth_json_reader_fail_arena(struct hearth_json_reader *r, const struct hearth_arena *arena);
static inline bool hearth_json_reader_failed(const struct hearth_json_reader *r)
{
    return r->fault.status != HEARTH_OK;
}
/* OK, or the first fault. */
HEARTH_MUST_CHECK
enum hearth_status hearth_json_reader_status(const struct hearth_json_reader *r,
                                             struct hearth_err *err);
/* The same; text after the value is a fault, too. */
HEARTH_MUST_CHECK
enum hearth_status hearth_json_reader_end(struct hearth_json_reader *r, struct hearth_err *err);

#endif
