/*
 * collapsed.h -- "root;child;leaf 123" lines, in and out.
 *
 * In: the value follows the last space (a fraction is rounded to the nearest integer). CRLF, and
 * UTF-16 of either byte order with its mark, are accepted. Between two ';' nothing is no frame, blanks
 * are a frame "[unknown]"; a line without any frame counts as the frame "[no stack]". A line that
 * begins with '#' is a comment, unless a name follows at once and a ';' later.
 *
 * A line without a value is skipped and counted. INVALID_ARGUMENT, naming the line: more lines are
 * skipped than understood, where lines that are as likely prose or settings ("key: 12", several words
 * without ';') count as skipped; or a stack begins as only other text does: JSON, XML, a date, an
 * address in front of a blank. A ';' in front makes any text a stack.
 *
 * Out: one line per distinct stack of names, root first, ';' in names replaced by ':'. A ';' is put in
 * front of a stack that would be taken for other text.
 * Threads: pure.
 */
#ifndef HEARTH_FORMAT_COLLAPSED_H
#define HEARTH_FORMAT_COLLAPSED_H

#include "hearth/base/arena.h"
#include "hearth/base/buf.h"
#include "hearth/base/status.h"
#include "hearth/model/profile.h"

/* type and unit name the one sample type. *ret_skipped_lines counts what was not understood. */
HEARTH_MUST_CHECK
enum hearth_status hearth_collapsed_decode(struct hearth_str text, struct hearth_str type,
                                           struct hearth_str unit, struct hearth_arena *arena,
                                           struct hearth_profile *ret_profile,
                                           uint64_t *ret_skipped_lines, struct hearth_err *err);
/*
 * The same without values: each line is a stack, "root;child;leaf", that counts 1; one without a frame
 * is skipped.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_lines_decode(struct hearth_str text, struct hearth_str type,
                                       struct hearth_str unit, struct hearth_arena *arena,
                                       struct hearth_profile *ret_profile,
                                       uint64_t *ret_skipped_lines, struct hearth_err *err);
/*
 * Sample type `type_idx` of the profile; stacks with value 0 are left out. A location without lines
 * is named by its address ("0x1f"), a dangling one "[unknown]", an empty stack "[no stack]". `out`
 * fails when memory was refused or values of one stack of names sum to more than 64 bits.
 */
void hearth_collapsed_encode(const struct hearth_profile *profile, uint32_t type_idx,
                             struct hearth_buf *out);

#endif
