/* task_chunks.h -- stored stack traces as they are in their rows (private to the store). */
#ifndef HEARTH_STORE_TASK_CHUNKS_H
#define HEARTH_STORE_TASK_CHUNKS_H

#include "hearth/codec/compress.h"
#include "hearth/model/task_chunk.h"

/* A payload; the chunk lives in the arena. CORRUPT, NO_MEMORY. */
HEARTH_MUST_CHECK enum hearth_status hearth_task_chunk_unpack(struct hearth_inflater *inflater,
                                                              struct hearth_str payload,
                                                              struct hearth_arena *arena,
                                                              struct hearth_task_chunk *ret,
                                                              struct hearth_err *err);

#endif
