/*
 * task_chunk.h -- stack traces that agents take for a task: as they are gathered, stored and analysed.
 *
 * A chunk holds records of one process, task and flush. A record is one stack trace of the kernel, of the
 * program, or both, with what was counted since the flush before: dumps (on-CPU), or switches and the
 * nanoseconds between them (off-CPU). Within a flush a record is identified by the agent's numbers of its
 * stack traces: the first one with them counts, so data that come twice count once.
 *
 * Frames of a stack are indices of strings, leaf first, as agents send them. A whole trace, leaf first, is the
 * kernel's frames and then the program's.
 *
 * Bytes: see server/model/task_chunk.c. They are stored inside a zstd frame.
 *
 * Ownership: a builder's chunk is valid until the next add; what is decoded lives in the arena and borrows from
 *            the bytes. Trees live in the forest's arena and borrow nothing.
 * Threads:   pure; a builder and a forest belong to one thread.
 */
#ifndef HEARTH_MODEL_TASK_STACKS_H
#define HEARTH_MODEL_TASK_STACKS_H

#include "hearth/base/arena.h"
#include "hearth/base/buf.h"
#include "hearth/base/hash.h"

#define HEARTH_NO_STACK UINT32_MAX

enum hearth_stack_kind {
    HEARTH_STACKS_ON_CPU = 1,
    HEARTH_STACKS_OFF_CPU = 2,
};

/* As in hearth.v1.StackType. */
enum hearth_stack_space {
    HEARTH_STACK_KERNEL = 1,
    HEARTH_STACK_USER = 2,
};

struct hearth_task_stack {
    uint32_t first, n; /* of the chunk's frames */
};

struct hearth_task_record {
    uint32_t kernel, user; /* indices of stacks, or HEARTH_NO_STACK; one of them is there */
    int32_t kernel_id, user_id;
    int64_t count, duration_ns; /* at least 0; on-CPU: no duration */
};

struct hearth_task_chunk {
    enum hearth_stack_kind kind;
    uint64_t n_cut; /* records whose stack trace lost frames, or symbols their head */
    struct hearth_str *strings;
    struct hearth_task_stack *stacks;
    uint32_t *frames;
    struct hearth_task_record *records;
    uint32_t n_strings, n_stacks, n_frames, n_records;
};

/* ---- gathering ---- */

struct hearth_task_limits {
    uint32_t
        max_depth; /* of kernel and program together; deeper ones lose their leaf end; 0: none */
    uint32_t max_symbol_bytes; /* longer ones keep their tail; 0: none */
};

struct hearth_task_datum {
    bool has_kernel, has_user;
    int32_t kernel_id, user_id;
    const struct hearth_str *kernel, *user; /* leaf first */
    size_t n_kernel, n_user;
    int64_t count, duration_ns;
};

struct hearth_task_notes {
    uint64_t stacks_cut, frames_cut, strings_cut; /* as the limits say */
    uint64_t n_empty;                             /* data without a frame or without a value */
    uint64_t n_repeated;                          /* data whose identity was there already */
};

struct hearth_task_builder;

/* NULL without memory. The arena's limit and budget hold for texts, frames and records. */
struct hearth_task_builder *hearth_task_builder_new(enum hearth_stack_kind kind,
                                                    const struct hearth_task_limits *limits,
                                                    struct hearth_arena *arena);
void hearth_task_builder_free(struct hearth_task_builder *builder);
/* INVALID_ARGUMENT for a negative count or duration; NO_MEMORY. Nothing is changed then. */
HEARTH_MUST_CHECK
enum hearth_status hearth_task_builder_add(struct hearth_task_builder *builder,
                                           const struct hearth_task_datum *datum,
                                           struct hearth_task_notes *notes, struct hearth_err *err);
void hearth_task_builder_chunk(const struct hearth_task_builder *builder,
                               struct hearth_task_chunk *ret);
/* About what it holds. */
size_t hearth_task_builder_bytes(const struct hearth_task_builder *builder);

/* ---- chunks ---- */

/* What tells a record from the others of its flush. */
struct hearth_hash128 hearth_task_record_key(const struct hearth_task_record *record);
/* Of what the chunk says, whatever the order of its tables. */
struct hearth_hash128 hearth_task_chunk_hash(const struct hearth_task_chunk *chunk);
/* Append the bytes; failures are the buffer's. */
void hearth_task_chunk_encode(const struct hearth_task_chunk *chunk, struct hearth_buf *out);
/* CORRUPT for bytes that are no chunk; NO_MEMORY. */
HEARTH_MUST_CHECK
enum hearth_status hearth_task_chunk_decode(struct hearth_str bytes, struct hearth_arena *arena,
                                            struct hearth_task_chunk *ret, struct hearth_err *err);

/* ---- trees ---- */

enum hearth_stack_weight {
    HEARTH_STACK_COUNT = 1,
    HEARTH_STACK_DURATION = 2, /* on-CPU: as COUNT */
};

struct hearth_stack_element {
    uint32_t id, parent_id; /* from 1, of its tree; parent 0: a root */
    struct hearth_str symbol;
    enum hearth_stack_space space;
    int64_t total;
};

/* Breadth first: elements of one parent stand together, the largest first, then by symbol. */
struct hearth_stack_tree {
    struct hearth_stack_element *elements;
    size_t n;
};

struct hearth_stack_forest;

/* NULL without memory. The arena is kept; its limit holds for the tables by themselves, too. */
struct hearth_stack_forest *hearth_stack_forest_new(struct hearth_arena *arena);
void hearth_stack_forest_free(struct hearth_stack_forest *forest);
/* OUT_OF_RANGE when a sum exceeds 64 bits; NO_MEMORY. */
HEARTH_MUST_CHECK
enum hearth_status hearth_stack_forest_add(struct hearth_stack_forest *forest,
                                           const struct hearth_task_chunk *chunk,
                                           enum hearth_stack_weight weight, struct hearth_err *err);
/* One tree for each root and its space, the largest first. Once, at the end. */
HEARTH_MUST_CHECK
enum hearth_status hearth_stack_forest_trees(struct hearth_stack_forest *forest,
                                             struct hearth_stack_tree **ret, size_t *ret_n,
                                             struct hearth_err *err);

#endif
