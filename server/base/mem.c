/* mem.c -- the only calls of malloc, with a switch for fault injection. */
#include "hearth/base/mem.h"

#include "hearth/base/compiler.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/*
 * 0: off; otherwise 1 + the number of allocations that still succeed. Relaxed: set by tests only.
 */
static _Atomic uint64_t g_fail_after;

/*
 * Larger sizes come from hostile input. They are refused here, because sanitizers abort instead of
 * returning NULL.
 */
#define MAX_BLOCK_BYTES ((size_t)1 << 39)

static bool refuse_allocation(size_t n_bytes)
{
    if (HEARTH_UNLIKELY(n_bytes > MAX_BLOCK_BYTES)) {
        return true;
    }

    uint64_t left = atomic_load_explicit(&g_fail_after, memory_order_relaxed);
    if (HEARTH_LIKELY(left == 0)) {
        return false;
    }

    if (left > 1) {
        atomic_store_explicit(&g_fail_after, left - 1, memory_order_relaxed);
        return false;
    }

    return true;
}

/* n * size, at least 1; SIZE_MAX, which is always refused, on overflow. */
static size_t multiply_sizes(size_t n, size_t size)
{
    size_t n_bytes;
    if (__builtin_mul_overflow(n, size, &n_bytes)) {
        return SIZE_MAX;
    }
    return n_bytes == 0 ? 1 : n_bytes;
}

void *hearth_mem_alloc(size_t n_bytes)
{
    return refuse_allocation(n_bytes) ? NULL : malloc(n_bytes ? n_bytes : 1);
}

void *hearth_mem_zalloc(size_t n_bytes)
{
    return refuse_allocation(n_bytes) ? NULL : calloc(1, n_bytes ? n_bytes : 1);
}

void *hearth_mem_calloc(size_t n, size_t size)
{
    return hearth_mem_zalloc(multiply_sizes(n, size));
}

void *hearth_mem_realloc(void *ptr, size_t n_bytes)
{
    return refuse_allocation(n_bytes) ? NULL : realloc(ptr, n_bytes ? n_bytes : 1);
}

void *hearth_mem_reallocarray(void *ptr, size_t n, size_t size)
{
    return hearth_mem_realloc(ptr, multiply_sizes(n, size));
}

char *hearth_mem_strndup(const char *p, size_t n)
{
    assert(p != NULL || n == 0);

    char *copy = n == SIZE_MAX ? NULL : hearth_mem_alloc(n + 1);
    if (copy != NULL) {
        if (n > 0) {
            memcpy(copy, p, n);
        }
        copy[n] = '\0';
    }

    return copy;
}

void hearth_mem_free(void *ptr)
{
    free(ptr);
}

void hearth_mem_freep(void *pptr)
{
    void *ptr;
    memcpy(&ptr, pptr, sizeof ptr);
    free(ptr);
}

bool hearth_mem_grow(void *arr, size_t *cap, size_t want, size_t size)
{
    if (want <= *cap) {
        return true;
    }

    assert(arr != NULL && size > 0);
    size_t next = *cap < 8 ? 8 : *cap;
    while (next < want) {
        if (next > SIZE_MAX / 2) {
            return false;
        }
        next *= 2;
    }

    /* The caller has any type of pointer at arr: copy it instead of casting. */
    void *old;
    memcpy(&old, arr, sizeof old);
    void *grown = hearth_mem_reallocarray(old, next, size);
    if (grown == NULL) {
        return false;
    }

    memcpy(arr, &grown, sizeof grown);
    *cap = next;
    return true;
}

void hearth_mem_fail_after(uint64_t n)
{
    atomic_store_explicit(&g_fail_after, n, memory_order_relaxed);
}
