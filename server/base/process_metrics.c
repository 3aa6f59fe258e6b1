/* process_metrics.c -- the process_ metrics, read from the kernel for each scrape. */
#include "hearth/base/clock.h"
#include "hearth/base/metrics.h"

#include <dirent.h>
#include <malloc.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static void read_memory(void)
{
    FILE *statm = fopen("/proc/self/statm", "re");
    if (statm == NULL) {
        return;
    }

    long n_pages, n_resident;
    if (fscanf(statm, "%ld %ld", &n_pages, &n_resident) == 2) {
        int64_t page_bytes = sysconf(_SC_PAGESIZE);
        hearth_metric_set(HEARTH_M_PROCESS_VIRTUAL, n_pages * page_bytes);
        hearth_metric_set(HEARTH_M_PROCESS_RESIDENT, n_resident * page_bytes);
    }

    (void)fclose(statm);
}

/* Growth of this is a leak; growth of resident memory may be what the C library keeps. */
static void read_heap(void)
{
    struct mallinfo2 info = mallinfo2();
    hearth_metric_set(HEARTH_M_HEAP_USED, (int64_t)(info.uordblks + info.hblkhd));
}

static void count_descriptors(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        hearth_metric_set(HEARTH_M_PROCESS_MAX_FDS,
                          limit.rlim_cur > INT64_MAX ? INT64_MAX : (int64_t)limit.rlim_cur);
    }

    DIR *dir = opendir("/proc/self/fd");
    if (dir == NULL) {
        return;
    }

    int64_t n = -1; /* the descriptor of the directory itself is not counted */
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        n += entry->d_name[0] != '.' ? 1 : 0;
    }

    (void)closedir(dir);
    hearth_metric_set(HEARTH_M_PROCESS_FDS, n);
}

void hearth_metrics_refresh_process(void)
{
    struct timespec cpu;
    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu) == 0) {
        hearth_metric_set(HEARTH_M_PROCESS_CPU, cpu.tv_sec * HEARTH_NS_PER_SEC + cpu.tv_nsec);
    }

    read_memory();
    read_heap();
    count_descriptors();
}
