/* heap.c -- when to trim: compares resident memory with memory in use. */
#include "rpc/heap.h"

#include "hearth/base/clock.h"
#include "hearth/engine/ingest.h"

#include <malloc.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define AFTER_GARBAGE_NS HEARTH_NS_PER_SEC
#define LOOK_NS          (5 * HEARTH_NS_PER_SEC)
#define WORTH_BYTES      ((size_t)64 << 20)
#define IDLE_WORTH_BYTES ((size_t)8 << 20)
#define IDLE_SHARE       100 /* idle: used less than a hundredth of one processor */
#define KEEP_TOP_BYTES   (1u << 20)

/* Resident memory without pages of files; 0 if the kernel does not tell. */
static size_t read_resident_bytes(void)
{
    unsigned long n_pages = 0, n_resident = 0, n_shared = 0;
    FILE *statm = fopen("/proc/self/statm", "re");
    if (statm == NULL) {
        return 0;
    }

    bool is_read = fscanf(statm, "%lu %lu %lu", &n_pages, &n_resident, &n_shared) == 3;
    (void)fclose(statm);

    return is_read && n_resident > n_shared
               ? (n_resident - n_shared) * (size_t)sysconf(_SC_PAGESIZE)
               : 0;
}

/* mallinfo2 locks each heap in turn: so it is called rarely, and not in a small process. */
static size_t count_free_bytes(size_t worth)
{
    size_t resident = read_resident_bytes();
    if (resident < worth) {
        return 0;
    }
    struct mallinfo2 info = mallinfo2();
    size_t used = info.uordblks + info.hblkhd;
    return resident > used ? resident - used : 0;
}

/* Whether the process has hardly used a processor since the last look. */
static bool was_idle(struct hearth_heap *heap)
{
    int64_t cpu_ns = (int64_t)clock() * (HEARTH_NS_PER_SEC / CLOCKS_PER_SEC);
    int64_t used_ns = cpu_ns - heap->cpu_ns;
    heap->cpu_ns = cpu_ns;
    return used_ns < LOOK_NS / IDLE_SHARE;
}

static bool is_trim_worth_it(struct hearth_heap *heap)
{
    bool is_idle = was_idle(heap);
    size_t worth = is_idle ? IDLE_WORTH_BYTES : WORTH_BYTES;

    /* What pushes keep counts as free, too. */
    if (is_idle && heap->ingest != NULL) {
        hearth_ingest_drop_idle(heap->ingest);
    }

    /* Threads that worked beside the last trim may have freed much since: now it can succeed. */
    if (is_idle && heap->was_busy) {
        heap->kept_bytes = 0;
    }
    heap->was_busy = !is_idle;

    size_t n = count_free_bytes(worth);
    if (n < heap->kept_bytes) {
        heap->kept_bytes = n;
    }
    return n >= heap->kept_bytes + worth;
}

static void trim_heaps(struct hearth_heap *heap, int64_t now_mono_ns)
{
    (void)malloc_trim(KEEP_TOP_BYTES);
    heap->kept_bytes = count_free_bytes(IDLE_WORTH_BYTES);
    heap->trim_mono_ns = now_mono_ns + AFTER_GARBAGE_NS;
}

void hearth_heap_tick(struct hearth_heap *heap, _Atomic bool *garbage, int64_t now_mono_ns)
{
    if (now_mono_ns >= heap->trim_mono_ns && atomic_exchange(garbage, false)) {
        trim_heaps(heap, now_mono_ns);
    } else if (now_mono_ns >= heap->look_mono_ns) {
        heap->look_mono_ns = now_mono_ns + LOOK_NS;
        if (is_trim_worth_it(heap)) {
            trim_heaps(heap, now_mono_ns);
        }
    }
}
