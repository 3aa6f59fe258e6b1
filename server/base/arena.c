/*
 * arena.c -- bump allocator: chunks double from 4 KB to 1 MB; a block larger than a quarter of the
 * next chunk gets a chunk of its own.
 */
#include "hearth/base/arena.h"

#include "hearth/base/budget.h"
#include "hearth/base/mem.h"

#include <assert.h>
#include <stdio.h>

#if defined(__SANITIZE_ADDRESS__)
#    define ASAN_IS_ON 1
#elif defined(__has_feature)
#    if __has_feature(address_sanitizer)
#        define ASAN_IS_ON 1
#    endif
#endif

#ifdef ASAN_IS_ON
#    include <sanitizer/asan_interface.h>
#    define POISON(p, n)   ASAN_POISON_MEMORY_REGION((p), (n))
#    define UNPOISON(p, n) ASAN_UNPOISON_MEMORY_REGION((p), (n))
#    define RED_ZONE       16u
#else
#    define POISON(p, n)   ((void)(p), (void)(n))
#    define UNPOISON(p, n) ((void)(p), (void)(n))
#    define RED_ZONE       0u
#endif

#define ALIGN             16u
#define FIRST_CHUNK_BYTES 4096u
#define MAX_CHUNK_BYTES   (1024u * 1024u)

struct hearth_arena_chunk {
    struct hearth_arena_chunk *next;
    size_t n_bytes; /* size of the payload, which follows this header */
};

_Static_assert(sizeof(struct hearth_arena_chunk) % ALIGN == 0, "payload stays aligned");

static char *chunk_payload(struct hearth_arena_chunk *chunk)
{
    return (char *)(chunk + 1);
}

void hearth_arena_init(struct hearth_arena *arena, size_t limit_bytes)
{
    *arena =
        (struct hearth_arena){.limit_bytes = limit_bytes, .next_chunk_bytes = FIRST_CHUNK_BYTES};
}

void hearth_arena_init_like(struct hearth_arena *arena, const struct hearth_arena *other)
{
    struct hearth_budget *budget = other->budget; /* it may be the same arena */
    hearth_arena_init(arena, other->limit_bytes);
    arena->budget = budget;
}

static void free_chunks(struct hearth_arena *arena, struct hearth_arena_chunk *chunk)
{
    while (chunk != NULL) {
        struct hearth_arena_chunk *next = chunk->next;
        UNPOISON(chunk_payload(chunk), chunk->n_bytes);
        hearth_budget_give(arena->budget, sizeof *chunk + chunk->n_bytes);
        hearth_mem_free(chunk);
        chunk = next;
    }
}

void hearth_arena_release(struct hearth_arena *arena)
{
    free_chunks(arena, arena->chunks);
    hearth_arena_init_like(arena, arena);
}

void hearth_arena_reset(struct hearth_arena *arena)
{
    /* The largest chunk stays, unless it is a huge block that one request needed. */
    struct hearth_arena_chunk *keep = NULL;
    for (struct hearth_arena_chunk *c = arena->chunks; c != NULL; c = c->next) {
        if (c->n_bytes <= MAX_CHUNK_BYTES && (keep == NULL || c->n_bytes > keep->n_bytes)) {
            keep = c;
        }
    }

    /* Free all other chunks. */
    for (struct hearth_arena_chunk *c = arena->chunks, *next; c != NULL; c = next) {
        next = c->next;
        if (c != keep) {
            c->next = NULL;
            free_chunks(arena, c);
        }
    }

    /* The kept chunk becomes the current one. */
    size_t next_chunk_bytes = arena->next_chunk_bytes;
    hearth_arena_init_like(arena, arena);
    if (keep != NULL) {
        keep->next = NULL;
        arena->chunks = keep;
        arena->cur = chunk_payload(keep);
        arena->end = arena->cur + keep->n_bytes;
        arena->next_chunk_bytes = next_chunk_bytes;
        POISON(arena->cur, keep->n_bytes);
    }
}

size_t hearth_arena_held_bytes(const struct hearth_arena *arena)
{
    size_t n_bytes = 0;
    for (const struct hearth_arena_chunk *c = arena->chunks; c != NULL; c = c->next) {
        n_bytes += sizeof *c + c->n_bytes;
    }
    return n_bytes;
}

/*
 * Make room for `need` bytes. Large requests get a chunk of their own, in *ret_block; for others a
 * new chunk becomes the current one, and *ret_block is unchanged.
 */
static bool add_chunk(struct hearth_arena *arena, size_t need, char **ret_block)
{
    assert(need > 0 && need % ALIGN == 0);

    bool alone = need > arena->next_chunk_bytes / 4;
    size_t n_bytes = alone ? need : arena->next_chunk_bytes;
    if (n_bytes > SIZE_MAX - sizeof(struct hearth_arena_chunk)) {
        return false;
    }

    /* Charge the budget first: memory that it refuses is never allocated. */
    arena->over_limit = false;
    arena->over_budget =
        !hearth_budget_take(arena->budget, sizeof(struct hearth_arena_chunk) + n_bytes);
    if (arena->over_budget) {
        return false;
    }

    struct hearth_arena_chunk *chunk = hearth_mem_alloc(sizeof *chunk + n_bytes);
    if (chunk == NULL) {
        hearth_budget_give(arena->budget, sizeof *chunk + n_bytes);
        return false;
    }

    chunk->n_bytes = n_bytes;
    chunk->next = arena->chunks;
    arena->chunks = chunk;
    POISON(chunk_payload(chunk), n_bytes);

    /* A large block leaves the current chunk in use. */
    if (alone) {
        *ret_block = chunk_payload(chunk);
        return true;
    }

    if (arena->next_chunk_bytes < MAX_CHUNK_BYTES) {
        arena->next_chunk_bytes *= 2;
    }

    arena->cur = chunk_payload(chunk);
    arena->end = arena->cur + n_bytes;

    return true;
}

/* The bytes that a block takes. The caller has checked that this does not overflow. */
static size_t round_up(size_t n_bytes)
{
    size_t need = (n_bytes + RED_ZONE + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    return need == 0 ? ALIGN : need;
}

void *hearth_arena_alloc(struct hearth_arena *arena, size_t n_bytes)
{
    if (n_bytes > SIZE_MAX - ALIGN - RED_ZONE) {
        arena->refused = true;
        return NULL;
    }

    size_t need = round_up(n_bytes);
    if (arena->limit_bytes != 0 &&
        (need > arena->limit_bytes || arena->used_bytes > arena->limit_bytes - need)) {
        arena->refused = arena->over_limit = true;
        arena->over_budget = false;
        return NULL;
    }

    char *p = NULL;
    if (arena->cur == NULL || (size_t)(arena->end - arena->cur) < need) {
        if (!add_chunk(arena, need, &p)) {
            arena->refused = true;
            return NULL;
        }
    }

    if (p == NULL) {
        p = arena->cur;
        arena->cur += need;
    }

    arena->used_bytes += need;
    UNPOISON(p, n_bytes);

    return p;
}

void *hearth_arena_zalloc(struct hearth_arena *arena, size_t n_bytes)
{
    void *p = hearth_arena_alloc(arena, n_bytes);
    if (p != NULL) {
        memset(p, 0, n_bytes);
    }
    return p;
}

void *hearth_arena_array(struct hearth_arena *arena, size_t n, size_t size)
{
    size_t n_bytes;
    if (__builtin_mul_overflow(n, size, &n_bytes)) {
        arena->refused = true;
        return NULL;
    }

    return hearth_arena_alloc(arena, n_bytes);
}

void *hearth_arena_calloc(struct hearth_arena *arena, size_t n, size_t size)
{
    void *p = hearth_arena_array(arena, n, size);
    if (p != NULL) {
        memset(p, 0, n * size);
    }
    return p;
}

bool hearth_arena_grow(struct hearth_arena *arena, void *arr, size_t *cap, size_t want, size_t size)
{
    if (HEARTH_LIKELY(want <= *cap)) {
        return true;
    }

    /* Twice the capacity, or as often as needed: the elements are in memory, so it cannot wrap. */
    assert(arr != NULL && size > 0 && want <= SIZE_MAX / 2);
    size_t more = *cap < 64 ? 64 : *cap * 2;
    while (more < want) {
        more *= 2;
    }

    void *grown = hearth_arena_array(arena, more, size);
    if (grown == NULL) {
        return false;
    }

    /* The caller has any type of pointer at arr: copy it instead of casting. */
    void *old;
    memcpy(&old, arr, sizeof old);
    if (*cap > 0) {
        memcpy(grown, old, *cap * size);
    }
    memcpy(arr, &grown, sizeof grown);
    *cap = more;
    return true;
}

/* Where the chunk of a block is linked, if it has no other block; otherwise NULL. */
static struct hearth_arena_chunk **find_chunk_alone(struct hearth_arena *arena, const void *block,
                                                    size_t n_bytes)
{
    for (struct hearth_arena_chunk **link = &arena->chunks; *link != NULL; link = &(*link)->next) {
        /* A block that shares its chunk is at most a quarter of it. */
        if (chunk_payload(*link) == block) {
            return (*link)->n_bytes == round_up(n_bytes) ? link : NULL;
        }
    }

    return NULL;
}

/* Makes the only block of a chunk larger; NULL if memory is refused, and nothing has changed. */
static void *resize_chunk(struct hearth_arena *arena, struct hearth_arena_chunk **link,
                          size_t n_bytes)
{
    size_t old = (*link)->n_bytes, need = round_up(n_bytes), more = need - old;

    assert(need > old);
    arena->over_limit = arena->limit_bytes != 0 && (more > arena->limit_bytes ||
                                                    arena->used_bytes > arena->limit_bytes - more);
    arena->over_budget = !arena->over_limit && !hearth_budget_take(arena->budget, more);
    if (arena->over_limit || arena->over_budget) {
        return NULL;
    }

    UNPOISON(chunk_payload(*link), old);
    struct hearth_arena_chunk *chunk = hearth_mem_realloc(*link, sizeof *chunk + need);
    if (chunk == NULL) {
        hearth_budget_give(arena->budget, more);
        return NULL;
    }

    *link = chunk;
    chunk->n_bytes = need;
    arena->used_bytes += more;
    POISON(chunk_payload(chunk) + n_bytes, need - n_bytes);

    return chunk_payload(chunk);
}

bool hearth_arena_regrow(struct hearth_arena *arena, void *arr, size_t *cap, size_t want,
                         size_t size)
{
    void *old;

    if (HEARTH_LIKELY(want <= *cap)) {
        return true;
    }

    assert(arr != NULL && size > 0 && want <= SIZE_MAX / 4);
    memcpy(&old, arr, sizeof old);
    struct hearth_arena_chunk **link = *cap == 0 ? NULL : find_chunk_alone(arena, old, *cap * size);
    if (link == NULL) {
        return hearth_arena_grow(arena, arr, cap, want, size);
    }

    size_t n_bytes, more = *cap + *cap / 2;
    more = more < want ? want : more;
    if (__builtin_mul_overflow(more, size, &n_bytes) ||
        n_bytes > SIZE_MAX - ALIGN - RED_ZONE - sizeof **link) {
        arena->refused = true;
        return false;
    }

    void *grown = resize_chunk(arena, link, n_bytes);
    if (grown == NULL) {
        arena->refused = true;
        return false;
    }
    memcpy(arr, &grown, sizeof grown);
    *cap = more;

    return true;
}

char *hearth_arena_strndup(struct hearth_arena *arena, const char *p, size_t n)
{
    assert(p != NULL || n == 0);

    if (n == SIZE_MAX) {
        arena->refused = true;
        return NULL;
    }

    char *copy = hearth_arena_alloc(arena, n + 1);
    if (copy != NULL) {
        if (n > 0) {
            memcpy(copy, p, n);
        }
        copy[n] = '\0';
    }

    return copy;
}

struct hearth_str hearth_arena_str(struct hearth_arena *arena, struct hearth_str s)
{
    char *copy = hearth_arena_strndup(arena, s.p, s.n);
    return (struct hearth_str){copy, copy == NULL ? 0 : s.n};
}

char *hearth_arena_printf(struct hearth_arena *arena, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    arena->refused = arena->refused || n < 0;
    char *text = n < 0 ? NULL : hearth_arena_alloc(arena, (size_t)n + 1);
    if (text != NULL) {
        (void)vsnprintf(text, (size_t)n + 1, fmt, again);
    }

    va_end(again);

    return text;
}

void hearth_arena_explain(const struct hearth_arena *arena, struct hearth_err *err,
                          const char *file, uint32_t line)
{
    /* A part has the same limit as the arena, and other arenas may have taken its last bytes. */
    if (arena->over_budget || (arena->budget != NULL && arena->budget->is_part)) {
        hearth_budget_explain(arena->budget, err, file, line);
        return;
    }

    hearth_err_set(err, HEARTH_NO_MEMORY, file, line,
                   "request needs more than its memory limit of %zu bytes", arena->limit_bytes);
}
