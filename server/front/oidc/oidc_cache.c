/* oidc_cache.c -- the table of verified JWTs. */
#include "oidc/oidc_cache.h"

#include "hearth/base/mem.h"

#include <assert.h>

struct cached_jwt {
    struct hearth_oidc_key key;
    const struct hearth_oidc_issuer *issuer; /* NULL: the place is free */
    int64_t expires_ms;
    size_t n_subjects;
    char *text; /* the subjects, each followed by a NUL */
    size_t n_bytes;
};

struct hearth_oidc_cache {
    size_t n_sets;
    struct cached_jwt *places; /* [n_sets * HEARTH_OIDC_CACHE_WAYS] */
};

enum hearth_status hearth_oidc_cache_new(int64_t max_entries, struct hearth_oidc_cache **ret,
                                         struct hearth_err *err)
{
    size_t n_sets = ((size_t)max_entries + HEARTH_OIDC_CACHE_WAYS - 1) / HEARTH_OIDC_CACHE_WAYS;
    struct hearth_oidc_cache *cache = hearth_mem_zalloc(sizeof *cache);
    struct cached_jwt *places = hearth_mem_zalloc(n_sets * HEARTH_OIDC_CACHE_WAYS * sizeof *places);

    assert(n_sets > 0);
    if (cache == NULL || places == NULL) {
        hearth_mem_free(cache);
        hearth_mem_free(places);
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the table of JWTs");
    }

    cache->n_sets = n_sets;
    cache->places = places;
    *ret = cache;

    return HEARTH_OK;
}

static void free_place(struct cached_jwt *place)
{
    hearth_mem_free(place->text);
    *place = (struct cached_jwt){.issuer = NULL};
}

void hearth_oidc_cache_free(struct hearth_oidc_cache *cache)
{
    if (cache == NULL) {
        return;
    }

    for (size_t i = 0; i < cache->n_sets * HEARTH_OIDC_CACHE_WAYS; i++) {
        free_place(&cache->places[i]);
    }
    hearth_mem_free(cache->places);
    hearth_mem_free(cache);
}

static struct cached_jwt *find_jwt_set(struct hearth_oidc_cache *cache,
                                       const struct hearth_oidc_key *key)
{
    uint64_t number;

    memcpy(&number, key->hash, sizeof number);

    return &cache->places[number % cache->n_sets * HEARTH_OIDC_CACHE_WAYS];
}

static bool copy_cached(const struct cached_jwt *place, struct hearth_arena *arena,
                        struct hearth_oidc_identity *ret)
{
    struct hearth_str *subjects = hearth_arena_array(arena, place->n_subjects, sizeof *subjects);
    const char *text = hearth_arena_strndup(arena, place->text, place->n_bytes);

    if (subjects == NULL || text == NULL) {
        return false;
    }

    for (size_t i = 0; i < place->n_subjects; i++) {
        subjects[i] = hearth_str_c(text);
        text += subjects[i].n + 1;
    }
    *ret = (struct hearth_oidc_identity){
        .subjects = subjects, .n_subjects = place->n_subjects, .expires_ms = place->expires_ms};

    return true;
}

bool hearth_oidc_cache_find(struct hearth_oidc_cache *cache, const struct hearth_oidc_key *key,
                            int64_t now_ms, struct hearth_arena *arena,
                            struct hearth_oidc_identity *ret)
{
    struct cached_jwt *set = find_jwt_set(cache, key);

    for (size_t i = 0; i < HEARTH_OIDC_CACHE_WAYS; i++) {
        if (set[i].issuer == NULL || memcmp(&set[i].key, key, sizeof *key) != 0) {
            continue;
        }
        if (set[i].expires_ms <= now_ms) {
            free_place(&set[i]);
            return false;
        }
        return copy_cached(&set[i], arena, ret);
    }

    return false;
}

void hearth_oidc_cache_add(struct hearth_oidc_cache *cache, const struct hearth_oidc_key *key,
                           const struct hearth_oidc_identity *identity,
                           const struct hearth_oidc_issuer *issuer)
{
    struct cached_jwt *set = find_jwt_set(cache, key), *place = &set[0];
    size_t n_bytes = 0, at = 0;

    for (size_t i = 0; i < identity->n_subjects; i++) {
        n_bytes += identity->subjects[i].n + 1;
    }
    char *text = hearth_mem_alloc(n_bytes);
    if (text == NULL) {
        return;
    }
    for (size_t i = 0; i < identity->n_subjects; i++) {
        memcpy(text + at, identity->subjects[i].p, identity->subjects[i].n);
        at += identity->subjects[i].n;
        text[at++] = '\0';
    }

    /* The place of the same JWT, a free one, or the one that ends first. */
    for (size_t i = 0; i < HEARTH_OIDC_CACHE_WAYS; i++) {
        if (memcmp(&set[i].key, key, sizeof *key) == 0) {
            place = &set[i];
            break;
        }
        if (set[i].expires_ms < place->expires_ms) {
            place = &set[i];
        }
    }
    free_place(place);
    *place = (struct cached_jwt){.key = *key,
                                 .issuer = issuer,
                                 .expires_ms = identity->expires_ms,
                                 .n_subjects = identity->n_subjects,
                                 .text = text,
                                 .n_bytes = n_bytes};
}

void hearth_oidc_cache_drop(struct hearth_oidc_cache *cache,
                            const struct hearth_oidc_issuer *issuer)
{
    for (size_t i = 0; i < cache->n_sets * HEARTH_OIDC_CACHE_WAYS; i++) {
        if (cache->places[i].issuer == issuer) {
            free_place(&cache->places[i]);
        }
    }
}
