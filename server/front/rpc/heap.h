/*
 * heap.h -- memory that the C library keeps and nobody uses.
 *
 * The library's heaps shrink from their ends only: a block in use behind gigabytes of free ones keeps them all. After a
 * rapid reset from 40 connections 500 MiB stayed, of which 5 were in use.
 *
 * Threads: one.
 */
#ifndef HEARTH_FRONT_HEAP_H
#define HEARTH_FRONT_HEAP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hearth_heap {
    int64_t trim_mono_ns, look_mono_ns; /* not before */
    size_t kept_bytes; /* resident and not in use, as it was after giving back, or less */
};

/*
 * Give back to the kernel what is free: when *garbage says so, at most once a second, and it is reset; and when 64 MiB more
 * than could be given back last time are resident and not in use, which is looked at every five seconds.
 */
void hearth_heap_tick(struct hearth_heap *heap, _Atomic bool *garbage, int64_t now_mono_ns);

#endif
