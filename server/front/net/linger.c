/* linger.c -- a few descriptors in an epoll set, each with a limit of time and bytes. */
#include "net/linger.h"

#include "hearth/base/clock.h"
#include "hearth/base/mem.h"

#include "rpc/front_internal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_LINGERS      64
#define LINGER_NS        (3 * HEARTH_NS_PER_SEC)
#define MAX_BYTES        ((int64_t)256 << 20)
#define BYTES_PER_ROUND  ((size_t)4 << 20) /* so that the acceptor's thread is not held up */
#define EVENTS_PER_ROUND 16

struct lingering {
    int fd; /* -1: the place is free */
    int64_t until_mono_ns, bytes_left;
};

struct hearth_lingers {
    int epoll_fd;             /* data: the index into `all` */
    struct hearth_mutex lock; /* guards `all` */
    struct lingering all[MAX_LINGERS];
};

enum hearth_status hearth_lingers_new(struct hearth_lingers **ret_lingers, struct hearth_err *err)
{
    struct hearth_lingers *lingers = hearth_mem_zalloc(sizeof *lingers);
    int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (lingers == NULL || epoll_fd < 0) {
        hearth_mem_free(lingers);
        if (epoll_fd >= 0) {
            (void)close(epoll_fd);
        }
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE, "no memory or descriptor for the acceptor");
    }

    lingers->epoll_fd = epoll_fd;
    hearth_mutex_init(&lingers->lock, HEARTH_RANK_LINGERS, "lingers.lock");

    for (size_t i = 0; i < MAX_LINGERS; i++) {
        lingers->all[i].fd = -1;
    }

    *ret_lingers = lingers;

    return HEARTH_OK;
}

static void close_lingering(struct lingering *one)
{
    if (one->fd >= 0) {
        (void)close(one->fd); /* the last copy: also removes it from the epoll set */
        one->fd = -1;
    }
}

void hearth_lingers_free(struct hearth_lingers *lingers)
{
    if (lingers == NULL) {
        return;
    }
    for (size_t i = 0; i < MAX_LINGERS; i++) {
        close_lingering(&lingers->all[i]);
    }
    (void)close(lingers->epoll_fd);
    hearth_mutex_destroy(&lingers->lock);
    hearth_mem_free(lingers);
}

int hearth_lingers_fd(const struct hearth_lingers *lingers)
{
    return lingers->epoll_fd;
}

void hearth_lingers_add(struct hearth_lingers *lingers, int fd)
{
    hearth_mutex_lock(&lingers->lock);

    for (size_t i = 0; i < MAX_LINGERS; i++) {
        struct lingering *one = &lingers->all[i];
        if (one->fd >= 0) {
            continue;
        }
        struct epoll_event event = {.events = EPOLLIN, .data.u64 = i};
        one->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
        one->until_mono_ns = hearth_clock_mono_ns() + LINGER_NS;
        one->bytes_left = MAX_BYTES;
        if (one->fd >= 0 && epoll_ctl(lingers->epoll_fd, EPOLL_CTL_ADD, one->fd, &event) != 0) {
            close_lingering(one);
        }
        break;
    }

    hearth_mutex_unlock(&lingers->lock);
}

/* False if the connection has ended or has used its bytes. */
static bool drop_input(struct lingering *one)
{
    /* With MSG_TRUNC, TCP drops the bytes without copying them. */
    ssize_t n = recv(one->fd, NULL, BYTES_PER_ROUND, MSG_TRUNC | MSG_DONTWAIT);
    if (n < 0) {
        return errno == EAGAIN || errno == EINTR;
    }
    one->bytes_left -= n;
    return n > 0 && one->bytes_left > 0;
}

void hearth_lingers_work(struct hearth_lingers *lingers, int64_t now_mono_ns)
{
    struct epoll_event events[EVENTS_PER_ROUND];

    hearth_mutex_lock(&lingers->lock);
    int n = epoll_wait(lingers->epoll_fd, events, EVENTS_PER_ROUND, 0);
    for (int i = 0; i < n; i++) {
        assert(events[i].data.u64 < MAX_LINGERS);
        struct lingering *one = &lingers->all[events[i].data.u64];
        if (one->fd >= 0 && !drop_input(one)) {
            close_lingering(one);
        }
    }

    for (size_t i = 0; i < MAX_LINGERS; i++) {
        if (lingers->all[i].fd >= 0 && lingers->all[i].until_mono_ns <= now_mono_ns) {
            close_lingering(&lingers->all[i]);
        }
    }

    hearth_mutex_unlock(&lingers->lock);
}
