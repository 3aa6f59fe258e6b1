/*
 * mem.h -- the only file that calls malloc.
 *
 * For components and caches; requests use arenas (arena.h). If memory is refused, the result is
 * NULL and the caller reports HEARTH_NO_MEMORY. Tests make the n-th allocation fail with
 * hearth_mem_fail_after().
 *
 * Threads: safe.
 */
#ifndef HEARTH_BASE_MEM_H
#define HEARTH_BASE_MEM_H

#include "hearth/base/compiler.h"

void *hearth_mem_alloc(size_t n_bytes);         /* uninitialised; free with hearth_mem_free */
void *hearth_mem_zalloc(size_t n_bytes);        /* zeroed */
void *hearth_mem_calloc(size_t n, size_t size); /* zeroed; NULL if n * size overflows */
void *hearth_mem_realloc(void *ptr,
                         size_t n_bytes); /* the old block stays valid if memory is refused */
void *hearth_mem_reallocarray(void *ptr, size_t n, size_t size);
char *hearth_mem_strndup(const char *p, size_t n); /* NUL-terminated copy */
void hearth_mem_free(void *ptr);                   /* NULL-safe */

/* HEARTH_CLEANUP(hearth_mem_freep) for a local pointer of any type. */
void hearth_mem_freep(void *pptr);

/*
 * Grow the array at `arr`, the address of a pointer, so that at least `want` elements of `size`
 * bytes fit; doubles. Returns false if memory is refused; array and *cap are then unchanged.
 */
HEARTH_MUST_CHECK bool hearth_mem_grow(void *arr, size_t *cap, size_t want, size_t size);

/* Test hook: the n-th allocation from now (counted from 1) and all later ones fail; 0 ends this. */
void hearth_mem_fail_after(uint64_t n);

#endif
