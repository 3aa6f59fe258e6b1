/*
 * secret.c -- secrets in pages of their own (contract: secret.h).
 *
 * The pages hold the struct, too: nothing about a secret is on the heap. Advice that the kernel
 * refuses is not an error: a secret that could be swapped out is better than a server that does
 * not start.
 */
#include "hearth/base/secret.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct hearth_secret {
    size_t n_mapped; /* bytes of the mapping */
    size_t n;
    char text[]; /* [n + 1], ends with NUL */
};

/* ---- memory ---- */

static enum hearth_status map_secret(size_t n, struct hearth_secret **ret, struct hearth_err *err)
{
    if (n > HEARTH_MAX_SECRET_BYTES) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "a secret has more than %zu bytes",
                           HEARTH_MAX_SECRET_BYTES);
    }

    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t n_mapped = (sizeof(struct hearth_secret) + n + 1 + page - 1) / page * page;
    void *at = mmap(NULL, n_mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for a secret");
    }

    (void)madvise(at, n_mapped, MADV_DONTDUMP);
    (void)madvise(at, n_mapped, MADV_WIPEONFORK);
    (void)mlock(at, n_mapped);
    struct hearth_secret *secret = at;
    secret->n_mapped = n_mapped;
    secret->n = n;
    *ret = secret;

    return HEARTH_OK;
}

static struct hearth_str view_secret(const struct hearth_secret *secret)
{
    return secret == NULL ? HEARTH_STR("") : hearth_str_n(secret->text, secret->n);
}

void hearth_secret_free(struct hearth_secret *secret)
{
    if (secret != NULL) {
        size_t n_mapped = secret->n_mapped;
        explicit_bzero(secret, n_mapped);
        (void)munmap(secret, n_mapped);
    }
}

void hearth_secret_wipe(char *text)
{
    assert(text != NULL);

    size_t n = strlen(text);
    explicit_bzero(text, n);
    memset(text, '*', n < 3 ? n : 3);
}

/* ---- sources ---- */

enum hearth_status hearth_secret_join(struct hearth_str before, const struct hearth_secret *secret,
                                      struct hearth_str after, struct hearth_secret **ret,
                                      struct hearth_err *err)
{
    struct hearth_str parts[] = {before, view_secret(secret), after};
    struct hearth_secret *made = NULL;
    size_t n = 0;

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(parts); i++) {
        if (parts[i].n > HEARTH_MAX_SECRET_BYTES || memchr(parts[i].p, '\0', parts[i].n) != NULL) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                               "a secret contains a NUL byte or has more than %zu bytes",
                               HEARTH_MAX_SECRET_BYTES);
        }
        n += parts[i].n;
    }

    if (n == 0) {
        *ret = NULL;
        return HEARTH_OK;
    }

    HEARTH_TRY(map_secret(n, &made, err));
    char *to = made->text;
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(parts); i++) {
        if (parts[i].n > 0) {
            memcpy(to, parts[i].p, parts[i].n);
            to += parts[i].n;
        }
    }

    *to = '\0';
    *ret = made;

    return HEARTH_OK;
}

enum hearth_status hearth_secret_new(struct hearth_str text, struct hearth_secret **ret,
                                     struct hearth_err *err)
{
    return hearth_secret_join(text, NULL, HEARTH_STR(""), ret, err);
}

enum hearth_status hearth_secret_copy(const struct hearth_secret *secret,
                                      struct hearth_secret **ret, struct hearth_err *err)
{
    return hearth_secret_join(HEARTH_STR(""), secret, HEARTH_STR(""), ret, err);
}

/* Read up to the capacity of `secret`, and set its length; false with errno. */
static bool fill_secret(int fd, struct hearth_secret *secret, size_t capacity)
{
    secret->n = 0;
    while (secret->n < capacity) {
        ssize_t got = read(fd, secret->text + secret->n, capacity - secret->n);
        if (got < 0 && errno != EINTR) {
            return false;
        }
        if (got == 0) {
            break;
        }
        secret->n += got > 0 ? (size_t)got : 0;
    }

    secret->text[secret->n] = '\0';

    return true;
}

/* Remove the newline at the end; what is left must be one line of text. */
static enum hearth_status check_line(struct hearth_secret *secret, const char *path,
                                     struct hearth_err *err)
{
    static const char ends[] = {'\n', '\r'};

    if (secret->n == HEARTH_MAX_SECRET_BYTES) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "the secret's file \"%s\" has %zu bytes or more", path,
                           HEARTH_MAX_SECRET_BYTES);
    }

    for (size_t i = 0; i < sizeof ends; i++) {
        if (secret->n > 0 && secret->text[secret->n - 1] == ends[i]) {
            secret->text[--secret->n] = '\0';
        }
    }

    if (secret->n == 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "the secret's file \"%s\" is empty", path);
    }

    for (size_t i = 0; i < secret->n; i++) {
        if ((unsigned char)secret->text[i] < 0x20) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                               "the secret's file \"%s\" must have one line of text, without "
                               "control characters",
                               path);
        }
    }

    return HEARTH_OK;
}

enum hearth_status hearth_secret_read(const char *path, struct hearth_secret **ret,
                                      bool *ret_public, struct hearth_err *err)
{
    assert(path != NULL && ret != NULL && ret_public != NULL);

    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "cannot open the secret's file \"%s\": %s",
                           path, strerrordesc_np(errno));
    }

    /* The bytes are read directly into a secret. */
    struct hearth_secret *secret = NULL;
    struct stat about;
    enum hearth_status status = map_secret(HEARTH_MAX_SECRET_BYTES, &secret, err);
    if (status == HEARTH_OK &&
        (fstat(fd, &about) != 0 || !fill_secret(fd, secret, HEARTH_MAX_SECRET_BYTES))) {
        status =
            HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "cannot read the secret's file \"%s\": %s",
                        path, strerrordesc_np(errno));
    }
    (void)close(fd);
    if (status == HEARTH_OK) {
        status = check_line(secret, path, err);
    }

    if (status == HEARTH_OK) {             /* a copy needs fewer pages */
        bool is_container = getpid() == 1; /* engines mount secrets with mode 0444 or 0644 */
        *ret_public = !is_container && S_ISREG(about.st_mode) && (about.st_mode & S_IROTH) != 0;
        status = hearth_secret_copy(secret, ret, err);
    }
    hearth_secret_free(secret);

    return status;
}

/* ---- use ---- */

bool hearth_secret_equals(const struct hearth_secret *secret, struct hearth_str given)
{
    bool equal = hearth_str_eq_secret(given, view_secret(secret));
    return secret != NULL && equal;
}

bool hearth_secret_same(const struct hearth_secret *a, const struct hearth_secret *b)
{
    return (a == NULL) == (b == NULL) && hearth_str_eq_secret(view_secret(a), view_secret(b));
}

size_t hearth_secret_bytes(const struct hearth_secret *secret)
{
    return secret == NULL ? 0 : secret->n;
}

const char *hearth_secret_reveal(const struct hearth_secret *secret)
{
    return secret == NULL ? "" : secret->text;
}
