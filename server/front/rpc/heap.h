/*
 * heap.h -- gives free memory of the C library's heaps back to the kernel.
 *
 * The heaps shrink only from their ends: one used block at the end keeps gigabytes of free blocks
 * before it. After a flood of stream resets from 40 connections, 500 MiB stayed resident, of which
 * 5 MiB were in use. While the process is idle, memory that pushes keep for the next ones is given
 * back, too: up to 32 arenas and inflated bodies, 20 MiB after profiles of 40 KB.
 *
 * Threads: confined to one thread.
 */
#ifndef HEARTH_FRONT_HEAP_H
#define HEARTH_FRONT_HEAP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hearth_ingest;

/* Zeroed, but for `ingest`: a new one. */
struct hearth_heap {
    struct hearth_ingest *ingest; /* its idle memory is given back as well; may be NULL */
    int64_t trim_mono_ns;         /* earliest time of the next trim that *garbage asks for */
    int64_t look_mono_ns;         /* time of the next check of the resident memory */
    size_t kept_bytes;            /* free and resident after the last trim, or less */
    int64_t cpu_ns;               /* time that the process had used at the last look */
    bool was_busy;                /* at the last look */
};

/*
 * Gives free memory back to the kernel, in two cases: *garbage is true (then resets it; at most
 * once a second), or more is free and resident than the last trim left (checked every five
 * seconds): by 64 MiB, or by 8 MiB if the process has hardly worked since the last check. In the
 * latter case pushes keep no memory for the next ones, and what the last trim left while threads
 * worked does not count.
 */
void hearth_heap_tick(struct hearth_heap *heap, _Atomic bool *garbage, int64_t now_mono_ns);

#endif
