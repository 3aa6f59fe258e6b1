/*
 * shown_keys.h -- series that a narrowed credential may push, remembered (private to the engine).
 *
 * Whether a view shows a series depends on their texts alone, and senders push the same series
 * again and again: the answer "shown" is kept with exactly these texts. Series that are not shown
 * are refused and rare, and are not kept.
 *
 * Limits: N_SLOTS series of at most HEARTH_SHOWN_KEY_BYTES each; a new one takes the slot of an
 * older one.
 *
 * Threads: all functions may run at the same time.
 */
#ifndef HEARTH_ENGINE_SHOWN_KEYS_H
#define HEARTH_ENGINE_SHOWN_KEYS_H

#include "hearth/model/access.h"
#include "hearth/store/store.h"

#define HEARTH_SHOWN_KEY_BYTES 2048

struct hearth_shown_keys;

struct hearth_shown_keys *hearth_shown_keys_new(void);        /* NULL: no memory */
void hearth_shown_keys_free(struct hearth_shown_keys *shown); /* NULL-safe */

/* Texts of a view and a series, without ambiguity. Each is built by hearth_shown_key_make. */
struct hearth_shown_key {
    size_t n; /* 0: too long, never kept */
    char text[HEARTH_SHOWN_KEY_BYTES];
};

void hearth_shown_key_make(const struct hearth_view *view, const struct hearth_series_key *series,
                           struct hearth_shown_key *ret);

/* True if the key was added, and its slot has not been taken since. */
bool hearth_shown_keys_has(struct hearth_shown_keys *shown, const struct hearth_shown_key *key);
/* Forgets the key if memory is refused. */
void hearth_shown_keys_add(struct hearth_shown_keys *shown, const struct hearth_shown_key *key);

#endif
