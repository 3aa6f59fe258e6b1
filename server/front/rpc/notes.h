/*
 * notes.h -- notes on an answer (what is missing or was changed), as values of the header
 * `hearth-note`.
 *
 * Handlers append lines. The client gets one value for each line: ASCII, with `%` and all bytes
 * that are not printable percent-encoded, as in grpc-message. gRPC clients accept 8 KiB of metadata
 * by default, so the number and the length of notes are limited; a truncated note ends with "...",
 * and the last note says how many more there are.
 *
 * Threads: pure.
 * Source:  docs/reference/api-transports.md, "Notes".
 */
#ifndef HEARTH_FRONT_NOTES_H
#define HEARTH_FRONT_NOTES_H

#include "hearth/base/arena.h"

#define HEARTH_MAX_NOTES      8u
#define HEARTH_MAX_NOTE_BYTES 400u /* encoded length of one note */

/*
 * Encodes lines as notes; empty lines are ignored. The values live in arena. Notes for which arena
 * has no room are left out. Returns the number of notes.
 */
size_t hearth_notes_encode(struct hearth_str lines, struct hearth_arena *arena,
                           const char *values[HEARTH_MAX_NOTES]);

#endif
