/*
 * failures.h -- counts wrong credentials by a key, such as an address or a user.
 *
 * A table of fixed size: a flood of keys displaces the keys that failed least, so that memory and
 * time are bounded. A count is forgotten a minute after its first failure.
 *
 * Threads: safe.
 */
#ifndef HEARTH_ENGINE_FAILURES_H
#define HEARTH_ENGINE_FAILURES_H

#include "hearth/base/str.h"
#include "hearth/base/sync.h"

#define HEARTH_FAILURE_BUCKETS 1024
#define HEARTH_FAILURE_WAYS    4

struct hearth_failure {
    uint64_t key;          /* hash; 0: unused */
    int64_t since_mono_ns; /* the first failure that counts */
    uint32_t n;
};

struct hearth_failures {
    struct hearth_mutex lock;
    struct hearth_failure table[HEARTH_FAILURE_BUCKETS][HEARTH_FAILURE_WAYS];
};

void hearth_failures_init(struct hearth_failures *failures);
void hearth_failures_destroy(struct hearth_failures *failures);
/* Counts a failure. */
void hearth_failures_add(struct hearth_failures *failures, struct hearth_str key);
/* The failures of the last minute. */
uint32_t hearth_failures_count(struct hearth_failures *failures, struct hearth_str key);
/* Takes one failure back: what was counted before it was checked was right. */
void hearth_failures_undo(struct hearth_failures *failures, struct hearth_str key);
/* Forgets the failures of a key. */
void hearth_failures_forget(struct hearth_failures *failures, struct hearth_str key);

#endif
