/*
 * mem.h -- the only place that calls malloc.
 *
 * Allocation of components and caches. Requests use arenas (arena.h). A refusal returns NULL and is
 * reported by the caller as HEARTH_NO_MEMORY. Tests make the n-th allocation fail with
 * hearth_mem_fail_after().
 *
 * Threads: safe.
 */
#ifndef HEARTH_BASE_MEM_H
#define HEARTH_BASE_MEM_H

#include "hearth/base/compiler.h"

void *hearth_mem_alloc(size_t n_bytes);              /* uninitialised; free with hearth_mem_free */
void *hearth_mem_zalloc(size_t n_bytes);             /* zeroed */
void *hearth_mem_calloc(size_t n, size_t size);      /* zeroed; NULL when n * size overflows */
void *hearth_mem_realloc(void *ptr, size_t n_bytes); /* old block survives a refusal */
void *hearth_mem_reallocarray(void *ptr, size_t n, size_t size);
char *hearth_mem_strndup(const char *p, size_t n); /* NUL-terminated copy */
void hearth_mem_free(void *ptr);                   /* NULL-safe */

/* HEARTH_CLEANUP(hearth_mem_freep) for a local pointer of any type. */
void hearth_mem_freep(void *pptr);

/*
 * Grow `*arr` (element size `size`) so that at least `want` elements fit; doubles. false on
 * refusal.
 */
HEARTH_MUST_CHECK bool hearth_mem_grow(void *arr, size_t *cap, size_t want, size_t size);

/* Test hook: the n-th allocation from now (1-based) and all later ones fail; 0 switches off. */
void hearth_mem_fail_after(uint64_t n);

#endif
