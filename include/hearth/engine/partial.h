/*
 * partial.h -- answers that do without the services of nodes that are lost (hearth_call.partial).
 *
 * All reads of a call leave out the same nodes, so that the two sides of a diff, for example, have
 * the same services. A node of which the call has read services is not left out any more: if it is
 * lost then, the call fails, and the next one does without it.
 *
 * Threads: belongs to its call.
 * Source:  docs/decisions/0049-partial-answers.md.
 */
#ifndef HEARTH_ENGINE_PARTIAL_H
#define HEARTH_ENGINE_PARTIAL_H

#include "hearth/base/arena.h"

#define HEARTH_PARTIAL_NOTE_BYTES 400

struct hearth_partial;

/* For one call, in its arena. NULL: memory was refused. */
struct hearth_partial *hearth_partial_new(struct hearth_arena *arena);

/*
 * Write the note of an answer, which begins with "partial: "; an empty text if nothing was left
 * out.
 */
void hearth_partial_note(const struct hearth_partial *partial, char out[HEARTH_PARTIAL_NOTE_BYTES]);

#endif
