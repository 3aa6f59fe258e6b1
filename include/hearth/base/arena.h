/*
 * arena.h -- bump allocation with one lifetime and a byte limit fixed at creation.
 *
 * A request owns an arena; everything allocated for the request is freed with it. Allocations are
 * aligned to 16 bytes and never freed singly. If the limit or the system refuses memory,
 * hearth_arena_alloc returns NULL and the arena stays usable; callers report HEARTH_NO_MEMORY (a
 * hostile profile must not kill the server).
 *
 * An arena with a budget (budget.h) also charges its chunks to that budget.
 *
 * Threads: not thread-safe.
 */
#ifndef HEARTH_BASE_ARENA_H
#define HEARTH_BASE_ARENA_H

#include "hearth/base/status.h"
#include "hearth/base/str.h"

struct hearth_arena_chunk;
struct hearth_budget;

struct hearth_arena {
    struct hearth_arena_chunk *chunks; /* newest first */
    char *cur, *end;
    size_t used_bytes;  /* bytes given to callers, with alignment */
    size_t limit_bytes; /* 0: no limit */
    size_t next_chunk_bytes;
    bool refused;                 /* an allocation has failed since init or reset */
    bool over_budget;             /* the latest failure was a refusal by the budget */
    bool over_limit;              /* the latest failure was a refusal because of limit_bytes */
    struct hearth_budget *budget; /* NULL: no budget; set after init, before the first allocation */
};

void hearth_arena_init(struct hearth_arena *arena, size_t limit_bytes);
/*
 * Initialise an arena with the limit and the budget of `other`, for scratch memory with a shorter
 * life.
 */
void hearth_arena_init_like(struct hearth_arena *arena, const struct hearth_arena *other);
void hearth_arena_release(struct hearth_arena *arena);
/* Free all allocations; keeps the largest chunk for reuse. */
void hearth_arena_reset(struct hearth_arena *arena);

/* The bytes that the arena has charged to its budget. */
size_t hearth_arena_held_bytes(const struct hearth_arena *arena);

void *hearth_arena_alloc(struct hearth_arena *arena, size_t n_bytes); /* uninitialised */
void *hearth_arena_zalloc(struct hearth_arena *arena, size_t n_bytes);
void *hearth_arena_calloc(struct hearth_arena *arena, size_t n,
                          size_t size); /* zeroed; overflow-checked */
void *hearth_arena_array(struct hearth_arena *arena, size_t n,
                         size_t size); /* uninitialised; overflow-checked */
/*
 * Make room for at least `want` elements of `size` bytes in the array at `arr`, the address of a
 * pointer, with *cap elements; doubles. The old array stays in the arena, so pointers into it
 * remain valid. Returns false if memory is refused; array and *cap are then unchanged.
 */
HEARTH_MUST_CHECK bool hearth_arena_grow(struct hearth_arena *arena, void *arr, size_t *cap,
                                         size_t want, size_t size);
/*
 * The same for an array to which nothing points: a large one is moved instead of copied, so that
 * the arena keeps no outgrown copies of it. A large array grows by a half.
 */
HEARTH_MUST_CHECK bool hearth_arena_regrow(struct hearth_arena *arena, void *arr, size_t *cap,
                                           size_t want, size_t size);
/* NUL-terminated copy. */
char *hearth_arena_strndup(struct hearth_arena *arena, const char *p, size_t n);
/* Copy followed by a NUL, which .n does not count; .p is NULL if memory is refused. */
struct hearth_str hearth_arena_str(struct hearth_arena *arena, struct hearth_str s);
char *hearth_arena_printf(struct hearth_arena *arena, const char *fmt, ...) HEARTH_PRINTF(2, 3);

/* Set `err` to NO_MEMORY with a message that says why the latest allocation was refused. */
void hearth_arena_explain(const struct hearth_arena *arena, struct hearth_err *err,
                          const char *file, uint32_t line);

/* The standard error of a caller whose allocation was refused. */
#define HEARTH_FAIL_ARENA(err, arena) \
    (hearth_arena_explain((arena), (err), __FILE__, (uint32_t)__LINE__), HEARTH_NO_MEMORY)

#endif
