/* shown_keys.c -- one table of texts, whose place is their hash (shown_keys.h). */
#include "ingest/shown_keys.h"

#include "hearth/base/hash.h"
#include "hearth/base/mem.h"
#include "hearth/base/sync.h"

#include "common/call_internal.h"

#include <assert.h>

#define N_SLOTS 4096u /* a power of two */

struct kept_key {
    size_t n;
    char text[];
};

struct hearth_shown_keys {
    struct hearth_mutex lock; /* guards the slots */
    struct kept_key *slots[N_SLOTS];
};

struct hearth_shown_keys *hearth_shown_keys_new(void)
{
    struct hearth_shown_keys *shown = hearth_mem_zalloc(sizeof *shown);
    if (shown != NULL) {
        hearth_mutex_init(&shown->lock, HEARTH_RANK_SHOWN_KEYS, "shown_keys.lock");
    }

    return shown;
}

void hearth_shown_keys_free(struct hearth_shown_keys *shown)
{
    if (shown == NULL) {
        return;
    }
    for (size_t i = 0; i < N_SLOTS; i++) {
        hearth_mem_free(shown->slots[i]);
    }
    hearth_mutex_destroy(&shown->lock);
    hearth_mem_free(shown);
}

/* ---- texts ---- */

/* Adds a text behind its length. False: the key is full. */
static bool add_text(struct hearth_shown_key *key, struct hearth_str text)
{
    uint32_t n = (uint32_t)text.n;

    if (text.n > sizeof key->text || sizeof key->text - key->n < sizeof n + text.n) {
        return false;
    }
    memcpy(key->text + key->n, &n, sizeof n);
    key->n += sizeof n;
    if (text.n > 0) {
        memcpy(key->text + key->n, text.p, text.n);
    }
    key->n += text.n;

    return true;
}

/* Adds the end of a list, which no length of a text equals. */
static bool add_end(struct hearth_shown_key *key)
{
    const uint32_t end = UINT32_MAX;

    if (sizeof key->text - key->n < sizeof end) {
        return false;
    }
    memcpy(key->text + key->n, &end, sizeof end);
    key->n += sizeof end;

    return true;
}

void hearth_shown_key_make(const struct hearth_view *view, const struct hearth_series_key *series,
                           struct hearth_shown_key *ret)
{
    assert(view != NULL && series != NULL && ret != NULL);

    ret->n = 0;
    bool fits = true;
    for (size_t i = 0; fits && i < view->n_selectors; i++) {
        fits = add_text(ret, view->selectors[i]);
    }
    fits = fits && add_end(ret) && add_text(ret, series->service_name);
    for (size_t i = 0; fits && i < series->n_types; i++) {
        fits = add_text(ret, series->type_ids[i]);
    }
    fits = fits && add_end(ret);
    for (size_t i = 0; fits && i < series->labels.n; i++) {
        fits = add_text(ret, series->labels.v[i].name) && add_text(ret, series->labels.v[i].value);
    }

    ret->n = fits ? ret->n : 0;
}

/* ---- table ---- */

static struct kept_key **find_shown_slot(struct hearth_shown_keys *shown,
                                         const struct hearth_shown_key *key)
{
    uint64_t hash = hearth_hash64(key->text, key->n, hearth_hash_process_seed());
    return &shown->slots[hash % N_SLOTS];
}

bool hearth_shown_keys_has(struct hearth_shown_keys *shown, const struct hearth_shown_key *key)
{
    if (key->n == 0) {
        return false;
    }

    struct kept_key **slot = find_shown_slot(shown, key);
    hearth_mutex_lock(&shown->lock);
    bool has =
        *slot != NULL && (*slot)->n == key->n && memcmp((*slot)->text, key->text, key->n) == 0;
    hearth_mutex_unlock(&shown->lock);

    return has;
}

void hearth_shown_keys_add(struct hearth_shown_keys *shown, const struct hearth_shown_key *key)
{
    if (key->n == 0) {
        return;
    }

    struct kept_key *kept = hearth_mem_alloc(sizeof *kept + key->n);
    if (kept == NULL) {
        return;
    }
    kept->n = key->n;
    memcpy(kept->text, key->text, key->n);

    struct kept_key **slot = find_shown_slot(shown, key);
    hearth_mutex_lock(&shown->lock);
    struct kept_key *older = *slot;
    *slot = kept;
    hearth_mutex_unlock(&shown->lock);
    hearth_mem_free(older);
}
