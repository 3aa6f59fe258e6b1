/*
 * task_chunk.h -- stack traces that agents collect for a task: gathered, stored and analysed.
 *
 * A chunk holds the records of one process, task and flush. A record is one stack trace of the
 * kernel, of the program, or of both, with its counts since the previous flush: dumps (on-CPU), or
 * switches and the nanoseconds between them (off-CPU). Within a flush, the agent's numbers of its
 * stack traces identify a record. The first record with given numbers is kept, so duplicates count
 * once.
 *
 * Frames of a stack are indices of strings, leaf first, as agents send them. A whole trace, leaf
 * first, is the kernel's frames followed by the program's.
 *
 * Bytes: see server/model/agents/task_chunk.c. They are stored inside a zstd frame.
 *
 * Ownership: a builder's chunk is valid until the next add; a decoded chunk lives in the arena and
 *            borrows from the bytes. Trees live in the forest's arena and borrow nothing.
 * Threads:   pure; a builder and a forest belong to one thread.
 */
#ifndef HEARTH_MODEL_TASK_CHUNK_H
#define HEARTH_MODEL_TASK_CHUNK_H

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
    uint32_t first, n; /* its part of the chunk's frames */
};

struct hearth_task_record {
    uint32_t kernel, user; /* indices of stacks; HEARTH_NO_STACK for at most one of them */
    int32_t kernel_id, user_id;
    int64_t count, duration_ns; /* >= 0; on-CPU: duration_ns is unused */
};

struct hearth_task_chunk {
    enum hearth_stack_kind kind;
    uint64_t n_cut; /* records whose stack trace lost frames, or whose symbols lost their head */
    struct hearth_str *strings;
    struct hearth_task_stack *stacks;
    uint32_t *frames;
    struct hearth_task_record *records;
    uint32_t n_strings, n_stacks, n_frames, n_records;
};

/* ---- gathering ---- */

struct hearth_task_limits {
    /*
     * Most frames of kernel and program together; deeper stacks lose their leaf end. 0: no limit.
     */
    uint32_t max_depth;
    uint32_t max_symbol_bytes; /* longer symbols keep their tail; 0: no limit */
};

struct hearth_task_datum {
    bool has_kernel, has_user;
    int32_t kernel_id, user_id;
    const struct hearth_str *kernel, *user; /* leaf first */
    size_t n_kernel, n_user;
    int64_t count, duration_ns;
};

struct hearth_task_notes {
    uint64_t stacks_cut, frames_cut, strings_cut; /* by the limits */
    uint64_t n_empty;                             /* data without a frame or without a value */
    uint64_t n_repeated;                          /* data whose numbers were present already */
};

struct hearth_task_builder;

/* NULL if memory was refused. The arena's limit and budget apply to texts, frames and records. */
struct hearth_task_builder *hearth_task_builder_new(enum hearth_stack_kind kind,
                                                    const struct hearth_task_limits *limits,
                                                    struct hearth_arena *arena);
void hearth_task_builder_free(struct hearth_task_builder *builder);
/* INVALID_ARGUMENT for a negative count or duration; NO_MEMORY. The builder is then unchanged. */
HEARTH_MUST_CHECK
enum hearth_status hearth_task_builder_add(struct hearth_task_builder *builder,
                                           const struct hearth_task_datum *datum,
                                           struct hearth_task_notes *notes, struct hearth_err *err);
/* The chunk of all data added so far. */
void hearth_task_builder_chunk(const struct hearth_task_builder *builder,
                               struct hearth_task_chunk *ret);
/* Approximate size of the gathered data. */
size_t hearth_task_builder_bytes(const struct hearth_task_builder *builder);

/* ---- chunks ---- */

/* Identifies a record within its flush. */
struct hearth_hash128 hearth_task_record_key(const struct hearth_task_record *record);
/* Hash of the chunk's content, independent of the order of its tables. */
struct hearth_hash128 hearth_task_chunk_hash(const struct hearth_task_chunk *chunk);
/* Append the bytes; failures stick to the buffer. */
void hearth_task_chunk_encode(const struct hearth_task_chunk *chunk, struct hearth_buf *out);
/* CORRUPT for damaged bytes; NO_MEMORY. */
HEARTH_MUST_CHECK
enum hearth_status hearth_task_chunk_decode(struct hearth_str bytes, struct hearth_arena *arena,
                                            struct hearth_task_chunk *ret, struct hearth_err *err);

/* ---- trees ---- */

enum hearth_stack_weight {
    HEARTH_STACK_COUNT = 1,
    HEARTH_STACK_DURATION = 2, /* on-CPU: as COUNT */
};

struct hearth_stack_element {
    uint32_t id, parent_id; /* from 1 within the tree; parent_id of a root: 0 */
    struct hearth_str symbol;
    enum hearth_stack_space space;
    int64_t total;
};

/* Breadth first: siblings are adjacent, sorted by total descending, then symbol. */
struct hearth_stack_tree {
    struct hearth_stack_element *elements;
    size_t n;
};

struct hearth_stack_forest;

/* NULL if memory was refused. The arena is kept; its limit applies separately to the tables. */
struct hearth_stack_forest *hearth_stack_forest_new(struct hearth_arena *arena);
void hearth_stack_forest_free(struct hearth_stack_forest *forest);
/* Add the records of a chunk. OUT_OF_RANGE if a sum exceeds 64 bits; NO_MEMORY. */
HEARTH_MUST_CHECK
enum hearth_status hearth_stack_forest_add(struct hearth_stack_forest *forest,
                                           const struct hearth_task_chunk *chunk,
                                           enum hearth_stack_weight weight, struct hearth_err *err);
/* One tree per root symbol and space, the largest first. Call once, after the last _add. */
HEARTH_MUST_CHECK
enum hearth_status hearth_stack_forest_trees(struct hearth_stack_forest *forest,
                                             struct hearth_stack_tree **ret, size_t *ret_n,
                                             struct hearth_err *err);

#endif
