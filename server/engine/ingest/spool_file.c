/*
 * spool_file.c -- the spool's file: opening, reading, marking, emptying (contracts:
 * hearth/engine/spool.h, spool_internal.h).
 */
#include "hearth/base/clock.h"
#include "hearth/base/log.h"
#include "hearth/base/mem.h"
#include "hearth/base/metrics.h"

#include "common/call_internal.h"
#include "ingest/spool_internal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define WINDOW_BYTES 65536 /* in which a header is searched behind damaged bytes */

/* ---- opening ---- */

static enum hearth_status check_directory(const char *dir, int fd, struct hearth_err *err)
{
    struct stat about;

    if (fd < 0 || fstat(fd, &about) != 0) {
        return HEARTH_FAIL(err, HEARTH_FAILED_PRECONDITION, "spool-dir \"%s\": %s", dir,
                           strerrordesc_np(errno));
    }
    if (about.st_uid != geteuid()) {
        return HEARTH_FAIL(err, HEARTH_FAILED_PRECONDITION,
                           "spool-dir \"%s\" belongs to user %ld, but hearthd runs as %ld", dir,
                           (long)about.st_uid, (long)geteuid());
    }
    if ((about.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        return HEARTH_FAIL(err, HEARTH_FAILED_PRECONDITION,
                           "others may write to spool-dir \"%s\": chmod go-w", dir);
    }

    return HEARTH_OK;
}

/* Open the file in the directory and lock it; the lock ends with the process. */
static enum hearth_status open_file(const char *dir, int dir_fd, int *ret_fd,
                                    struct hearth_err *err)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int fd = openat(dir_fd, "spool", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    bool is_open = fd >= 0 && fsync(dir_fd) == 0;

    if (is_open && fcntl(fd, F_SETLK, &lock) == 0) {
        *ret_fd = fd;
        return HEARTH_OK;
    }

    int saved = errno;
    if (fd >= 0) {
        (void)close(fd);
    }
    bool is_held = is_open && (saved == EAGAIN || saved == EACCES);

    return is_held
               ? HEARTH_FAIL(err, HEARTH_FAILED_PRECONDITION,
                             "spool-dir \"%s\" is in use by another hearthd", dir)
               : HEARTH_FAIL(err, HEARTH_FAILED_PRECONDITION,
                             "cannot open and lock \"%s/spool\": %s", dir, strerrordesc_np(saved));
}

/* Make DIR/key, which is on the disk before any record is. */
static enum hearth_status make_key(const char *dir, int dir_fd, struct hearth_spool_key *ret,
                                   struct hearth_err *err)
{
    int fd = openat(dir_fd, "key.new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    bool ok = fd >= 0 && getrandom(ret, sizeof *ret, 0) == (ssize_t)sizeof *ret &&
              write(fd, ret, sizeof *ret) == (ssize_t)sizeof *ret && fsync(fd) == 0;
    int saved = errno;

    if (fd >= 0) {
        (void)close(fd);
    }
    if (ok && (renameat(dir_fd, "key.new", dir_fd, "key") != 0 || fsync(dir_fd) != 0)) {
        saved = errno;
        ok = false;
    }

    return ok ? HEARTH_OK
              : HEARTH_FAIL(err, HEARTH_FAILED_PRECONDITION, "cannot make \"%s/key\": %s", dir,
                            strerrordesc_np(saved));
}

/* Read the key of the records, or make one for a file without records. The file is locked. */
static enum hearth_status load_key(const char *dir, int dir_fd, struct hearth_spool *spool,
                                   struct hearth_err *err)
{
    struct stat about;
    int fd = openat(dir_fd, "key", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    int saved = errno;

    if (fstat(spool->fd, &about) != 0) {
        saved = errno;
    } else if (fd < 0 && saved == ENOENT && about.st_size == 0) {
        return make_key(dir, dir_fd, &spool->key, err);
    }

    ssize_t n = fd < 0 ? -1 : read(fd, &spool->key, sizeof spool->key);
    if (fd >= 0) {
        saved = n < 0 ? errno : EIO;
        (void)close(fd);
    }

    return n == (ssize_t)sizeof spool->key
               ? HEARTH_OK
               : HEARTH_FAIL(err, HEARTH_FAILED_PRECONDITION,
                             "cannot read \"%s/key\", which tells records from bytes of clients: "
                             "%s; put it back, or move \"%s/spool\" away and lose its records",
                             dir, strerrordesc_np(saved), dir);
}

/* Count the records that wait, and cut off what is torn. */
static enum hearth_status scan_file(struct hearth_spool *spool, struct hearth_err *err)
{
    struct stat about;
    struct hearth_spool_header header;
    int64_t at = 0, end = 0;
    int unread;

    if (fstat(spool->fd, &about) != 0) {
        return HEARTH_FAIL(err, HEARTH_FAILED_PRECONDITION, "the spool: %s",
                           strerrordesc_np(errno));
    }

    while (hearth_spool_find(spool, &at, about.st_size, &header, &unread)) {
        if (header.state == HEARTH_SPOOL_WAITING && spool->n_waiting++ == 0) {
            spool->oldest_ns = header.received_ns;
        }
        at += HEARTH_SPOOL_HEADER_BYTES + (int64_t)header.n_body;
        end = at;
    }

    if (unread != 0) { /* nothing is cut off: acknowledged records may follow */
        return HEARTH_FAIL(err, HEARTH_FAILED_PRECONDITION, "cannot read the spool: %s",
                           strerrordesc_np(unread));
    }

    if (end < about.st_size) {
        HEARTH_LOG(HEARTH_LOG_WARN, "spool", "a torn record was cut off; it was not acknowledged",
                   "bytes", hearth_log_i64(about.st_size - end), NULL);
        hearth_metric_add(HEARTH_M_SPOOL_DAMAGED, 1);
    }
    if (end < about.st_size && (ftruncate(spool->fd, end) != 0 || fdatasync(spool->fd) != 0)) {
        return HEARTH_FAIL(err, HEARTH_FAILED_PRECONDITION, "cannot cut the spool: %s",
                           strerrordesc_np(errno));
    }

    spool->end = end;

    return HEARTH_OK;
}

enum hearth_status hearth_spool_open(const char *dir, int64_t max_bytes, struct hearth_spool **ret,
                                     struct hearth_err *err)
{
    assert(dir != NULL && ret != NULL);

    struct hearth_spool *spool = hearth_mem_zalloc(sizeof *spool);
    if (spool == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate the spool");
    }

    spool->fd = -1;
    spool->max_bytes = max_bytes;
    spool->last = &spool->first;
    spool->last_job = &spool->first_job;
    hearth_mutex_init(&spool->lock, HEARTH_RANK_SPOOL, "spool.lock");
    hearth_cond_init(&spool->written);
    hearth_cond_init(&spool->waiting);

    bool is_there = mkdir(dir, 0700) == 0 || errno == EEXIST;
    int dir_fd = is_there ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    enum hearth_status status = check_directory(dir, dir_fd, err);
    if (status == HEARTH_OK) {
        status = open_file(dir, dir_fd, &spool->fd, err);
    }
    if (status == HEARTH_OK) {
        status = load_key(dir, dir_fd, spool, err);
    }
    if (dir_fd >= 0) {
        (void)close(dir_fd);
    }
    if (status == HEARTH_OK) {
        status = scan_file(spool, err);
    }
    if (status != HEARTH_OK) {
        hearth_spool_close(spool);
        return status;
    }

    hearth_metric_set(HEARTH_M_SPOOL_LIMIT, max_bytes);
    if (spool->n_waiting > 0) {
        HEARTH_LOG(HEARTH_LOG_INFO, "spool", "pushes wait for the database", "records",
                   hearth_log_i64(spool->n_waiting), NULL);
    }
    *ret = spool;

    return HEARTH_OK;
}

void hearth_spool_close(struct hearth_spool *spool)
{
    if (spool == NULL) {
        return;
    }

    assert(spool->n_threads == 0 && spool->first == NULL);
    if (spool->fd >= 0) {
        (void)close(spool->fd);
    }
    (void)pthread_cond_destroy(&spool->written);
    (void)pthread_cond_destroy(&spool->waiting);
    hearth_mutex_destroy(&spool->lock);
    explicit_bzero(&spool->key, sizeof spool->key);
    hearth_mem_free(spool);
}

/* ---- reading and marking ---- */

/* Read at most n bytes at a place before the end of the file. Returns 0, with errno, on failure. */
static size_t read_spool(const struct hearth_spool *spool, char *bytes, size_t n, int64_t at)
{
    ssize_t got = pread(spool->fd, bytes, n, at);
    if (got == 0) { /* somebody else has cut the file */
        errno = EIO;
    }
    return got > 0 ? (size_t)got : 0;
}

/* Search for a header behind damaged bytes. */
static bool find_behind_damage(const struct hearth_spool *spool, int64_t *at, int64_t end,
                               int *ret_errno)
{
    char window[WINDOW_BYTES];

    for (int64_t from = *at + 1; from + HEARTH_SPOOL_HEADER_BYTES <= end;) {
        size_t n = read_spool(spool, window, sizeof window, from);
        if (n < HEARTH_SPOOL_HEADER_BYTES) {
            *ret_errno = n > 0 ? EIO : errno;
            return false;
        }
        size_t place = hearth_spool_header_find(&spool->key, hearth_str_n(window, n));
        if (place < n) {
            *at = from + (int64_t)place;
            return true;
        }
        from += (int64_t)n - (HEARTH_SPOOL_HEADER_BYTES - 1);
    }

    return false;
}

bool hearth_spool_find(const struct hearth_spool *spool, int64_t *at, int64_t end,
                       struct hearth_spool_header *ret, int *ret_errno)
{
    char bytes[HEARTH_SPOOL_HEADER_BYTES];
    int64_t begin = *at;

    *ret_errno = 0;
    while (*at + HEARTH_SPOOL_HEADER_BYTES <= end) {
        size_t n = read_spool(spool, bytes, sizeof bytes, *at);
        if (n < sizeof bytes) {
            *ret_errno = n > 0 ? EIO : errno;
            return false;
        }
        if (hearth_spool_header_read(&spool->key, bytes, ret) &&
            *at + HEARTH_SPOOL_HEADER_BYTES + (int64_t)ret->n_body <= end) {
            if (*at > begin) {
                HEARTH_LOG(HEARTH_LOG_ERROR, "spool", "damaged bytes are left out", "at",
                           hearth_log_i64(begin), "bytes", hearth_log_i64(*at - begin), NULL);
            }
            return true;
        }
        if (!find_behind_damage(spool, at, end, ret_errno)) {
            return false;
        }
    }

    return false;
}

void hearth_spool_mark(struct hearth_spool *spool, int64_t at, enum hearth_spool_state state)
{
    uint8_t byte = (uint8_t)state;

    /* Lost in a crash of the machine, the record is pushed again, under the same id. */
    if (pwrite(spool->fd, &byte, 1, at + HEARTH_SPOOL_STATE_AT) != 1) {
        HEARTH_LOG(HEARTH_LOG_ERROR, "spool", "cannot mark a record", "error",
                   strerrordesc_np(errno), NULL);
    }
}

void hearth_spool_trim(struct hearth_spool *spool)
{
    hearth_mutex_assert_held(&spool->lock);

    if (spool->n_waiting > 0 || spool->n_active > 0 || spool->n_reserved > 0 || spool->end == 0) {
        return;
    }
    if (ftruncate(spool->fd, 0) == 0) {
        spool->end = spool->cursor = 0;
        HEARTH_LOG(HEARTH_LOG_INFO, "spool", "all spooled pushes are settled", NULL);
    }
}

void hearth_spool_publish(struct hearth_spool *spool)
{
    hearth_mutex_assert_held(&spool->lock);

    bool has_age = spool->n_waiting > 0 && spool->oldest_ns > 0;
    int64_t age_ns = has_age ? hearth_clock_wall_ns() - spool->oldest_ns : 0;
    hearth_metric_set(HEARTH_M_SPOOL_BYTES, spool->end + spool->n_reserved);
    hearth_metric_set(HEARTH_M_SPOOL_RECORDS, spool->n_waiting);
    hearth_metric_set(HEARTH_M_SPOOL_OLDEST, age_ns > 0 ? age_ns : 0);
}

void hearth_spool_look(struct hearth_spool *spool, struct hearth_spool_look *ret)
{
    assert(spool != NULL && ret != NULL);

    hearth_mutex_lock(&spool->lock);
    *ret = (struct hearth_spool_look){.n_waiting = spool->n_waiting,
                                      .n_bytes = spool->end + spool->n_reserved,
                                      .max_bytes = spool->max_bytes,
                                      .oldest_ns = spool->n_waiting > 0 ? spool->oldest_ns : 0,
                                      .is_broken = spool->is_broken};
    hearth_mutex_unlock(&spool->lock);
}

void hearth_spool_explain(struct hearth_spool *spool, char text[128])
{
    struct hearth_spool_look look;

    text[0] = '\0';
    if (spool == NULL) {
        return;
    }

    hearth_spool_look(spool, &look);
    if (look.n_waiting > 0) {
        (void)snprintf(text, 128, "%lld spooled %s for the database (%lld of %lld bytes)",
                       (long long)look.n_waiting,
                       look.n_waiting == 1 ? "push waits" : "pushes wait", (long long)look.n_bytes,
                       (long long)look.max_bytes);
    }
}
