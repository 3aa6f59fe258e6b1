/* passwords.c -- argon2id, a few at a time. */
#include "access/passwords.h"

#include "hearth/base/clock.h"
#include "hearth/base/mem.h"
#include "hearth/base/sync.h"

#include "access/access_internal.h"
#include "common/call_internal.h"

#include <argon2.h>
#include <assert.h>
#include <stdio.h>

#define PASSES       3u
#define MEMORY_KIB   (32u * 1024)
#define LANES        1u
#define SALT_BYTES   16u
#define HASH_BYTES   32u
#define MAX_RUNNING  2
#define MAX_WAITING  16
#define ENCODED_MAX  256
#define WAIT_STEP_NS (100 * HEARTH_NS_PER_MS)

struct hearth_hashing {
    struct hearth_mutex lock; /* guards the counts */
    pthread_cond_t has_room;
    int n_running, n_waiting;
    /* A hash that no password has: what an unknown user's password is compared with. */
    char nobody[ENCODED_MAX];
};

enum hearth_status hearth_hashing_new(struct hearth_hashing **ret, struct hearth_err *err)
{
    struct hearth_hashing *hashing = hearth_mem_zalloc(sizeof *hashing);
    if (hashing == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for hashing passwords");
    }

    /* Random bytes in the place of salt and hash, in the form of an encoded hash. */
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    unsigned char random[22 + 43];
    enum hearth_status status = hearth_access_random(random, sizeof random, err);
    if (status != HEARTH_OK) {
        hearth_mem_free(hashing);
        return status;
    }

    char text[sizeof random];
    for (size_t i = 0; i < sizeof random; i++) {
        text[i] = digits[random[i] % 64];
    }

    /* The last digits of salt and hash hold fewer than six bits: the others must be 0. */
    text[21] = 'Q';
    text[sizeof text - 1] = 'w';
    (void)snprintf(hashing->nobody, sizeof hashing->nobody,
                   "$argon2id$v=19$m=%u,t=%u,p=%u$%.22s$%.43s", MEMORY_KIB, PASSES, LANES, text,
                   text + 22);
    hearth_mutex_init(&hashing->lock, HEARTH_RANK_HASHING, "hashing.lock");
    hearth_cond_init(&hashing->has_room);
    *ret = hashing;

    return HEARTH_OK;
}

void hearth_hashing_free(struct hearth_hashing *hashing)
{
    if (hashing == NULL) {
        return;
    }
    (void)pthread_cond_destroy(&hashing->has_room);
    hearth_mutex_destroy(&hashing->lock);
    hearth_mem_free(hashing);
}

/* Waits for its turn. The caller ends it with leave_hashing. */
static enum hearth_status enter_hashing(struct hearth_hashing *hashing,
                                        struct hearth_cancel *cancel, struct hearth_err *err)
{
    enum hearth_status status = HEARTH_OK;

    hearth_mutex_lock(&hashing->lock);
    if (hashing->n_running >= MAX_RUNNING && hashing->n_waiting >= MAX_WAITING) {
        hearth_mutex_unlock(&hashing->lock);
        return HEARTH_FAIL(err, HEARTH_RESOURCE_EXHAUSTED, "too many log-ins wait: retry later");
    }

    hashing->n_waiting++;
    while (status == HEARTH_OK && hashing->n_running >= MAX_RUNNING) {
        (void)hearth_mutex_wait_until(&hashing->lock, &hashing->has_room,
                                      hearth_clock_mono_ns() + WAIT_STEP_NS);
        status = hearth_cancel_check(cancel, err);
    }

    hashing->n_waiting--;
    hashing->n_running += status == HEARTH_OK ? 1 : 0;
    hearth_mutex_unlock(&hashing->lock);

    return status;
}

static void leave_hashing(struct hearth_hashing *hashing)
{
    hearth_mutex_lock(&hashing->lock);
    assert(hashing->n_running > 0);
    hashing->n_running--;
    (void)pthread_cond_signal(&hashing->has_room);
    hearth_mutex_unlock(&hashing->lock);
}

enum hearth_status hearth_password_hash(struct hearth_hashing *hashing, struct hearth_str password,
                                        struct hearth_cancel *cancel, struct hearth_arena *arena,
                                        struct hearth_str *ret, struct hearth_err *err)
{
    unsigned char salt[SALT_BYTES];
    char *encoded = hearth_arena_alloc(arena, ENCODED_MAX);

    assert(password.n <= HEARTH_PASSWORD_MAX_BYTES);
    if (encoded == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    HEARTH_TRY(hearth_access_random(salt, sizeof salt, err));
    HEARTH_TRY(enter_hashing(hashing, cancel, err));
    int rc = argon2id_hash_encoded(PASSES, MEMORY_KIB, LANES, password.p, password.n, salt,
                                   sizeof salt, HASH_BYTES, encoded, ENCODED_MAX);
    leave_hashing(hashing);
    if (rc != ARGON2_OK) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "the password cannot be hashed: %s",
                           argon2_error_message(rc));
    }

    *ret = hearth_str_c(encoded);

    return HEARTH_OK;
}

enum hearth_status hearth_password_check(struct hearth_hashing *hashing, struct hearth_str password,
                                         struct hearth_str encoded, struct hearth_cancel *cancel,
                                         bool *ret_is_right, struct hearth_err *err)
{
    char text[ENCODED_MAX];
    bool is_nobody = encoded.n == 0 || encoded.n >= sizeof text;

    (void)snprintf(text, sizeof text, "%.*s", is_nobody ? 0 : (int)encoded.n, encoded.p);
    HEARTH_TRY(enter_hashing(hashing, cancel, err));
    int rc = argon2id_verify(is_nobody ? hashing->nobody : text, password.p, password.n);
    leave_hashing(hashing);
    if (rc != ARGON2_OK && rc != ARGON2_VERIFY_MISMATCH && !is_nobody) {
        return HEARTH_FAIL(err,
                           rc == ARGON2_MEMORY_ALLOCATION_ERROR ? HEARTH_NO_MEMORY : HEARTH_CORRUPT,
                           "the password cannot be checked: %s", argon2_error_message(rc));
    }

    *ret_is_right = rc == ARGON2_OK && !is_nobody;

    return HEARTH_OK;
}
