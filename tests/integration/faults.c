/*
 * faults.c -- preloaded into hearthd or PostgreSQL by test_faults.py and test_spool.py: a wall clock that jumps, a disk
 * that is slow, and one that fails.
 *
 * FAULTS_FILE names a file of three int64 that is mapped for as long as the process lives: nanoseconds that are added to
 * CLOCK_REALTIME, microseconds that each fsync and fdatasync takes longer, and the error with which they fail then (0:
 * none). Other clocks are not changed, so waits that end by the monotonic clock are true.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000

struct faults {
    int64_t clock_ns, sync_us, sync_errno;
};

static const volatile struct faults *g_faults;

/* Before main: later, the sandbox of hearthd may refuse to open files. */
__attribute__((constructor)) static void map_faults(void)
{
    static const struct faults none;
    const char *path = getenv("FAULTS_FILE");
    int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *mapped = fd >= 0 ? mmap(NULL, sizeof none, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;

    g_faults = mapped != MAP_FAILED ? mapped : &none;
    if (fd >= 0)
        close(fd);
}

int clock_gettime(clockid_t id, struct timespec *ret_ts)
{
    long failed = syscall(SYS_clock_gettime, id, ret_ts);
    if (failed == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE) && g_faults != NULL) {
        int64_t ns = ret_ts->tv_sec * (int64_t)NS_PER_S + ret_ts->tv_nsec + g_faults->clock_ns;
        ret_ts->tv_sec = ns / NS_PER_S;
        ret_ts->tv_nsec = ns % NS_PER_S;
    }
    return (int)failed;
}

int gettimeofday(struct timeval *restrict ret_tv, void *restrict zone)
{
    struct timespec ts;
    (void)zone;
    (void)clock_gettime(CLOCK_REALTIME, &ts);
    ret_tv->tv_sec = ts.tv_sec;
    ret_tv->tv_usec = ts.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *ret_time)
{
    struct timespec ts;
    (void)clock_gettime(CLOCK_REALTIME, &ts);
    if (ret_time != NULL)
        *ret_time = ts.tv_sec;
    return ts.tv_sec;
}

/* Returns false, with errno, if the disk fails. */
static int wait_for_disk(void)
{
    int64_t us = g_faults != NULL ? g_faults->sync_us : 0;
    struct timespec pause = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
    while (us > 0 && nanosleep(&pause, &pause) != 0) {
    }
    if (g_faults != NULL && g_faults->sync_errno != 0)
        errno = (int)g_faults->sync_errno;
    return g_faults == NULL || g_faults->sync_errno == 0;
}

int fsync(int fd)
{
    return wait_for_disk() ? (int)syscall(SYS_fsync, fd) : -1;
}

int fdatasync(int fd)
{
    return wait_for_disk() ? (int)syscall(SYS_fdatasync, fd) : -1;
}
