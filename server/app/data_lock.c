/* data_lock.c -- the lock file of a data directory. */
#include "data_lock.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* Between the two calls of a try, the holder may end and another process may take the lock. */
#define MAX_TRIES 100

/*
 * Try to lock the file. *ret_pid: 0 if this process has the lock now, otherwise the process that
 * has it, or -1 if that process is outside our container. Returns false, with errno, if neither can
 * be determined.
 */
static bool try_lock(int fd, pid_t *ret_pid)
{
    for (int i = 0; i < MAX_TRIES; i++) {
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        if (fcntl(fd, F_SETLK, &lock) == 0) {
            *ret_pid = 0;
            return true;
        }
        if (errno != EAGAIN && errno != EACCES) {
            return false;
        }

        /* The lock is taken: by which process? It may be free again by now. */
        if (fcntl(fd, F_GETLK, &lock) != 0) {
            return false;
        }
        if (lock.l_type != F_UNLCK) {
            *ret_pid = lock.l_pid > 0 ? lock.l_pid : -1;
            return true;
        }
    }

    errno = EAGAIN;

    return false;
}

enum hearth_status hearth_data_lock_take(const char *dir, int *ret_fd, struct hearth_err *err)
{
    assert(dir != NULL && ret_fd != NULL);

    char path[4096];
    (void)snprintf(path, sizeof path, "%s/lock", dir);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    pid_t pid = 0;
    if (fd < 0 || !try_lock(fd, &pid)) {
        int saved = errno;
        if (fd >= 0) {
            (void)close(fd);
        }
        return HEARTH_FAIL(err, HEARTH_FAILED_PRECONDITION, "cannot lock \"%s\": %s", path,
                           strerrordesc_np(saved));
    }

    if (pid != 0) {
        (void)close(fd);
        return pid > 0
                   ? HEARTH_FAIL(err, HEARTH_FAILED_PRECONDITION,
                                 "data directory \"%s\" is in use by another hearthd, process %ld; "
                                 "stop it, or choose another directory with --data-dir",
                                 dir, (long)pid)
                   : HEARTH_FAIL(
                         err, HEARTH_FAILED_PRECONDITION,
                         "data directory \"%s\" is in use by a hearthd in another container; "
                         "stop it, or choose another directory with --data-dir",
                         dir);
    }

    *ret_fd = fd;
    return HEARTH_OK;
}
