/*
 * passwords.h -- hashing and checking passwords with argon2id.
 *
 * A hash takes 32 MiB and some 50 ms of one processor, so few run at a time and few more wait:
 * log-ins cannot exhaust the server.
 *
 * Threads: safe.
 * Source:  RFC 9106, section 4 (parameters: docs/threat-model.md).
 */
#ifndef HEARTH_ENGINE_PASSWORDS_H
#define HEARTH_ENGINE_PASSWORDS_H

#include "hearth/base/arena.h"
#include "hearth/base/cancel.h"

#define HEARTH_PASSWORD_MIN_BYTES 12
#define HEARTH_PASSWORD_MAX_BYTES 1024

struct hearth_hashing;

HEARTH_MUST_CHECK enum hearth_status hearth_hashing_new(struct hearth_hashing **ret,
                                                        struct hearth_err *err);
void hearth_hashing_free(struct hearth_hashing *hashing); /* NULL-safe */

/*
 * The encoded hash of a password with a random salt, in the arena. RESOURCE_EXHAUSTED if too many
 * wait; DEADLINE_EXCEEDED, CANCELLED while waiting.
 */
HEARTH_MUST_CHECK enum hearth_status
hearth_password_hash(struct hearth_hashing *hashing, struct hearth_str password,
                     struct hearth_cancel *cancel, struct hearth_arena *arena,
                     struct hearth_str *ret, struct hearth_err *err);
/*
 * Whether the password has that hash. An empty hash matches no password, and takes as long as
 * another one. Errors as above.
 */
HEARTH_MUST_CHECK enum hearth_status
hearth_password_check(struct hearth_hashing *hashing, struct hearth_str password,
                      struct hearth_str encoded, struct hearth_cancel *cancel, bool *ret_is_right,
                      struct hearth_err *err);

#endif
