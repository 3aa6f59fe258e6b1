/* mem.c -- malloc behind one door, with a switch for fault injection. */
#include "hearth/base/mem.h"

#include "hearth/base/compiler.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* 0: off; otherwise the number of allocations that still succeed, plus one. Relaxed: tests only. */
static _Atomic uint64_t g_fail_after;

/* No block is this large, so such a size is hostile; sanitizers abort where malloc says no. */
#define MAX_BLOCK_BYTES ((size_t)1 << 39)

static bool refuse(size_t n_bytes)
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

/* n * size, at least 1; SIZE_MAX, which is refused, where that overflows. */
static size_t product(size_t n, size_t size)
{
    size_t n_bytes;
    if (__builtin_mul_overflow(n, size, &n_bytes)) {
        return SIZE_MAX;
    }
    return n_bytes == 0 ? 1 : n_bytes;
}

void *hearth_mem_alloc(size_t n_bytes)
{
    return refuse(n_bytes) ? NULL : malloc(n_bytes ? n_bytes : 1);
}

void *hearth_mem_zalloc(size_t n_bytes)
{
    return refuse(n_bytes) ? NULL : calloc(1, n_bytes ? n_bytes : 1);
}

void *hearth_mem_calloc(size_t n, size_t size)
{
    return hearth_mem_zalloc(product(n, size));
}

void *hearth_mem_realloc(void *ptr, size_t n_bytes)
{
    return refuse(n_bytes) ? NULL : realloc(ptr, n_bytes ? n_bytes : 1);
}

void *hearth_mem_reallocarray(void *ptr, size_t n, size_t size)
{
    return hearth_mem_realloc(ptr, product(n, size));
}

char *hearth_mem_strndup(const char *p, size_t n)
{
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
    size_t next = *cap < 8 ? 8 : *cap;
    while (next < want) {
        if (next > SIZE_MAX / 2) {
            return false;
        }
        next *= 2;
    }
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
