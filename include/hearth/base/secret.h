/*
 * secret.h -- a text that must not be shown: a password, a token, a URL that contains one.
 *
 * A secret has pages of its own: they are left out of core dumps, are not swapped out where the
 * limit of locked memory allows that, are empty in a forked process, and are overwritten before
 * they are returned. No function prints a secret or returns its text except hearth_secret_reveal,
 * which tests/lint/secrets.sh allows in few files.
 *
 * NULL is a valid secret for all functions: none is set.
 *
 * Limits:    one to HEARTH_MAX_SECRET_BYTES bytes, without NUL.
 * Threads:   immutable after it was made.
 * Errors:    NO_MEMORY; INVALID_ARGUMENT names the file and never quotes its contents.
 * Source:    madvise(2) MADV_DONTDUMP and MADV_WIPEONFORK, mlock(2), explicit_bzero(3).
 */
#ifndef HEARTH_BASE_SECRET_H
#define HEARTH_BASE_SECRET_H

#include "hearth/base/status.h"
#include "hearth/base/str.h"

#define HEARTH_MAX_SECRET_BYTES ((size_t)64 * 1024)

struct hearth_secret;

/* A copy of the text; the caller wipes the original. An empty text gives NULL. */
HEARTH_MUST_CHECK
enum hearth_status hearth_secret_new(struct hearth_str text, struct hearth_secret **ret,
                                     struct hearth_err *err);
/* The concatenation of the three. */
HEARTH_MUST_CHECK
enum hearth_status hearth_secret_join(struct hearth_str before, const struct hearth_secret *secret,
                                      struct hearth_str after, struct hearth_secret **ret,
                                      struct hearth_err *err);
HEARTH_MUST_CHECK
enum hearth_status hearth_secret_copy(const struct hearth_secret *secret,
                                      struct hearth_secret **ret, struct hearth_err *err);
/*
 * The contents of a file without one newline (\n or \r\n) at the end. *ret_public: every user of
 * the machine can read the file; never so in the first process of a container, which has no other
 * users. A file that is empty or has more than one line is refused.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_secret_read(const char *path, struct hearth_secret **ret,
                                      bool *ret_public, struct hearth_err *err);
/* Overwrites the text; NULL-safe. */
void hearth_secret_free(struct hearth_secret *secret);

/* The duration depends on the length of `given` only. No secret equals no text, not even "". */
bool hearth_secret_equals(const struct hearth_secret *secret, struct hearth_str given);
/* True if both are NULL or have the same text. */
bool hearth_secret_same(const struct hearth_secret *a, const struct hearth_secret *b);

/* Its length, which tells nothing of the text; 0 for NULL. */
size_t hearth_secret_bytes(const struct hearth_secret *secret);
/*
 * The text, NUL-terminated, for the library that needs it; "" for NULL. It lives as long as the
 * secret. The caller does not print or copy it.
 */
const char *hearth_secret_reveal(const struct hearth_secret *secret);

/* Overwrite a text that contained a secret with "***" and NULs. */
void hearth_secret_wipe(char *text);

#endif
