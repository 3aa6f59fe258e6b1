/*
 * notes.h -- what an answer lacks or was changed, as values of the header `hearth-note`.
 *
 * Handlers append lines; a client gets one value for each: ASCII, with `%` and everything that is
 * not printable percent-encoded (as in grpc-message). Clients of gRPC take 8 KiB of metadata by
 * default, so both the number and the length are bounded, and what is cut says so.
 *
 * Threads: pure.
 * Source:  docs/reference/api-transports.md, "Notes".
 */
#ifndef HEARTH_FRONT_NOTES_H
#define HEARTH_FRONT_NOTES_H

#include "hearth/base/arena.h"

#define HEARTH_MAX_NOTES      8u
#define HEARTH_MAX_NOTE_BYTES 400u /* of one value */

/* Empty lines are skipped. Values live in arena; those that it refuses are left out. */
size_t hearth_notes_encode(struct hearth_str lines, struct hearth_arena *arena,
                           const char *values[HEARTH_MAX_NOTES]);

#endif
