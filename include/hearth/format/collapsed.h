/*
 * collapsed.h -- reads and writes lines of the form "root;child;leaf 123".
 *
 * Reading: the value follows the last space; the product of a value, which may have a fraction, and
 * the factor is rounded to the nearest integer. CRLF line ends and UTF-16 of either byte order with
 * a byte order mark are accepted. An empty text between two ';' is ignored; blanks there are a
 * frame "[unknown]"; a line without any frame has the frame "[no stack]". A line that begins with
 * '#' is a comment, unless a name follows immediately and a ';' later.
 *
 * The text is INVALID_ARGUMENT, with the number of the line, in three cases: a line has no value; a
 * stack begins in a way that only other texts do (JSON, XML, a date, an address followed by a
 * blank, a record of perf script); most lines could just as well be prose or settings, such as
 * "key: 12" or several words without ';'. A leading ';' makes any text a stack.
 *
 * Writing: one line per distinct stack of names, root first; ';' in names becomes ':'. A ';' is put
 * before a stack that would be read as other text.
 *
 * Threads: pure.
 */
#ifndef HEARTH_FORMAT_COLLAPSED_H
#define HEARTH_FORMAT_COLLAPSED_H

#include "hearth/base/arena.h"
#include "hearth/base/buf.h"
#include "hearth/base/status.h"
#include "hearth/model/profile.h"

/*
 * type and unit name the only sample type; values are multiplied by the factor, 1 to 1e9.
 * OUT_OF_RANGE if a product needs more than 63 bits.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_collapsed_decode(struct hearth_str text, struct hearth_str type,
                                           struct hearth_str unit, int64_t factor,
                                           struct hearth_arena *arena,
                                           struct hearth_profile *ret_profile,
                                           struct hearth_err *err);
/*
 * The same without values: each line is a stack "root;child;leaf" that counts 1. A line without a
 * frame is refused.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_lines_decode(struct hearth_str text, struct hearth_str type,
                                       struct hearth_str unit, struct hearth_arena *arena,
                                       struct hearth_profile *ret_profile, struct hearth_err *err);
/*
 * Append sample type `type_idx` of the profile; stacks with value 0 are omitted. A location without
 * lines is named by its address ("0x1f"), a location index without a location "[unknown]", an empty
 * stack "[no stack]". `out` fails if memory is refused or the values of one stack of names exceed
 * 64 bits in sum.
 */
void hearth_collapsed_encode(const struct hearth_profile *profile, uint32_t type_idx,
                             struct hearth_buf *out);

#endif
