/*
 * task_chunks.h -- unpacks stored stack traces (private to the store).
 *
 * Threads: safe, each call with its own inflater and arena.
 */
#ifndef HEARTH_STORE_TASK_CHUNKS_H
#define HEARTH_STORE_TASK_CHUNKS_H

#include "hearth/codec/compress.h"
#include "hearth/model/task_chunk.h"

/* Unpack the payload of a row; the chunk lives in the arena. CORRUPT, NO_MEMORY. */
HEARTH_MUST_CHECK enum hearth_status hearth_task_chunk_unpack(struct hearth_inflater *inflater,
                                                              struct hearth_str payload,
                                                              struct hearth_arena *arena,
                                                              struct hearth_task_chunk *ret,
                                                              struct hearth_err *err);

#endif
