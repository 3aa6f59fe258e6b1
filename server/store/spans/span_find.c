/*
 * span_find.c -- associations of bare ids: fresh ones and those of the index (contract:
 * hearth/store/store_span_index.h).
 *
 * One statement (sql/queries/find_spans.sql) returns the rows that may have the keys, and the
 * associations in them are matched here. All fresh rows are searched, in PostgreSQL if there are
 * few keys. For each day and each size of parts, hearth_data.find_in_span_index returns rows of the
 * index. It is a function because its plan costs more than the lookup: each connection of
 * PostgreSQL keeps the plan, while statements of hearthd have no names (docs/how-to/pgbouncer.md).
 */
#include "hearth/store/store_span_index.h"

#include "build/span_work.h"
#include "pg/queries.h"
#include "pg/store_state.h"
#include "session/statements.h"

#include <assert.h>
#include <stdlib.h>

#define MAX_KEYS_IN_SQL 8    /* with more keys all fresh rows are sent, and compared here */
#define PRUNE_AT        4096 /* associations */

/* A search while its statement runs. */
struct span_finder {
    const struct hearth_scope *scope;
    const struct hearth_span_search *search;
    struct hearth_span_lookup *lookups; /* sorted by key, each key once */
    size_t n_lookups;
    struct hearth_arena row_arena; /* associations of the current row */
    struct hearth_association *found;
    size_t n, cap;
    size_t prune_at; /* prune again at this n: twice the number that was left the last time */
    bool is_cut;     /* some were removed because of the limit */
};

/* ---- lookups ---- */

static int compare_lookups(const void *left, const void *right)
{
    const struct hearth_span_lookup *a = left, *b = right;
    return (a->key > b->key) - (a->key < b->key);
}

static enum hearth_status sort_lookups(struct span_finder *finder, struct hearth_err *err)
{
    size_t n = finder->search->n_lookups;
    struct hearth_arena *arena = finder->scope->arena;

    finder->lookups = hearth_arena_array(arena, n, sizeof *finder->lookups);
    if (finder->lookups == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    if (n > 0) {
        memcpy(finder->lookups, finder->search->lookups, n * sizeof *finder->lookups);
        qsort(finder->lookups, n, sizeof *finder->lookups, compare_lookups);
    }

    /* Unite lookups of one key. */
    struct hearth_span_lookup *last = NULL;
    for (size_t i = 0; i < n; i++) {
        if (last != NULL && last->key == finder->lookups[i].key) {
            last->of |= finder->lookups[i].of;
        } else {
            last = &finder->lookups[finder->n_lookups++];
            *last = finder->lookups[i];
        }
    }

    assert(finder->n_lookups <= n);

    return HEARTH_OK;
}

/*
 * Add arrays of sizes and buckets, each pair once: lookups are sorted by key, so equal buckets are
 * neighbours.
 */
static bool add_bucket_params(const struct span_finder *finder, struct hearth_pg_params *params)
{
    size_t cap = finder->n_lookups * HEARTH_SPAN_N_SIZES, n = 0;
    int32_t *bits = hearth_arena_array(params->arena, cap, sizeof *bits);
    int32_t *buckets = hearth_arena_array(params->arena, cap, sizeof *buckets);
    if (bits == NULL || buckets == NULL) {
        return false;
    }

    for (unsigned size = 0; size < HEARTH_SPAN_N_SIZES; size++) {
        int32_t b = (int32_t)(size * HEARTH_SPAN_SIZE_BITS);
        for (size_t i = 0; i < finder->n_lookups; i++) {
            int32_t bucket = (int32_t)hearth_span_bucket(finder->lookups[i].key, (unsigned)b);
            if (n == 0 || bits[n - 1] != b || buckets[n - 1] != bucket) {
                bits[n] = b;
                buckets[n++] = bucket;
            }
        }
    }

    assert(n <= cap);
    hearth_pg_param_i32_array(params, bits, n);
    hearth_pg_param_i32_array(params, buckets, n);

    return true;
}

/* Add the array of keys as bytes; empty if there are more than MAX_KEYS_IN_SQL. */
static bool add_key_bytes_param(const struct span_finder *finder, struct hearth_pg_params *params)
{
    size_t n = finder->n_lookups <= MAX_KEYS_IN_SQL ? finder->n_lookups : 0;
    struct hearth_str keys[MAX_KEYS_IN_SQL];

    for (size_t i = 0; i < n; i++) {
        char *bytes = hearth_arena_alloc(params->arena, 8);
        if (bytes == NULL) {
            return false;
        }

        for (int k = 0; k < 8; k++) {
            bytes[k] = (char)(finder->lookups[i].key >> (56 - 8 * k));
        }

        keys[i] = hearth_str_n(bytes, 8);
    }

    hearth_pg_param_bytes_array(params, keys, n);

    return true;
}

/* ---- found associations ---- */

static int compare_places(const void *left, const void *right)
{
    const struct hearth_association *a = left, *b = right;
    int order = (a->service_id > b->service_id) - (a->service_id < b->service_id);
    order = order != 0 ? order : (a->series_id > b->series_id) - (a->series_id < b->series_id);
    order = order != 0 ? order : (a->ts_ns > b->ts_ns) - (a->ts_ns < b->ts_ns);
    return order != 0 ? order : (a->key > b->key) - (a->key < b->key);
}

static int compare_latest(const void *left, const void *right)
{
    const struct hearth_association *a = left, *b = right;
    int order = (a->ts_ns < b->ts_ns) - (a->ts_ns > b->ts_ns);
    return order != 0 ? order : compare_places(a, b);
}

static bool is_same_place(const struct hearth_association *a, const struct hearth_association *b)
{
    return a->service_id == b->service_id && a->series_id == b->series_id && a->ts_ns == b->ts_ns;
}

/*
 * Keep each association once, and only those of the latest profiles and groups up to the limit,
 * which counts profiles and groups because one may carry many ids.
 */
static void prune_found(struct span_finder *finder)
{
    if (finder->n == 0) {
        return;
    }

    /* The latest first. Equal associations are neighbours: unite them. */
    qsort(finder->found, finder->n, sizeof *finder->found, compare_latest);
    size_t n = 0;
    for (size_t i = 0; i < finder->n; i++) {
        if (n > 0 && compare_places(&finder->found[n - 1], &finder->found[i]) == 0) {
            finder->found[n - 1].of |= finder->found[i].of;
        } else {
            finder->found[n++] = finder->found[i];
        }
    }

    /* Cut after the limit. */
    size_t n_places = 0;
    for (size_t i = 0; i < n && finder->search->limit > 0; i++) {
        n_places += i == 0 || !is_same_place(&finder->found[i - 1], &finder->found[i]);
        if (n_places > finder->search->limit) {
            finder->is_cut = true;
            n = i;
        }
    }

    assert(n <= finder->n);
    finder->n = n;
    finder->prune_at = 2 * n;
}

static enum hearth_status add_found(struct span_finder *finder,
                                    const struct hearth_association *association,
                                    struct hearth_err *err)
{
    /* Make room. */
    if (finder->n == finder->cap) {
        size_t cap = finder->cap == 0 ? 64 : 2 * finder->cap;
        struct hearth_association *more =
            hearth_arena_array(finder->scope->arena, cap, sizeof *more);
        if (more == NULL) {
            return HEARTH_FAIL_ARENA(err, finder->scope->arena);
        }

        if (finder->n > 0) {
            memcpy(more, finder->found, finder->n * sizeof *more);
        }

        finder->found = more;
        finder->cap = cap;
    }

    /* Add it; prune when much was added since the last time. */
    assert(finder->n < finder->cap);
    finder->found[finder->n++] = *association;
    if (finder->search->limit > 0 && finder->n >= PRUNE_AT &&
        finder->n / 4 >= finder->search->limit && finder->n >= finder->prune_at) {
        prune_found(finder);
    }

    return HEARTH_OK;
}

/* Add the association for each lookup with the same leading key_bits. */
static enum hearth_status match_association(struct span_finder *finder,
                                            const struct hearth_association *association,
                                            unsigned key_bits, struct hearth_err *err)
{
    assert(key_bits > 0 && key_bits <= 64);
    unsigned shift = 64 - key_bits;
    uint64_t key = association->key >> shift;

    /* Find the first lookup with these bits. */
    size_t low = 0, high = finder->n_lookups;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (finder->lookups[mid].key >> shift < key) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }

    /* Add the association for all of them. */
    for (; low < finder->n_lookups && finder->lookups[low].key >> shift == key; low++) {
        struct hearth_association one = *association;
        one.key = finder->lookups[low].key;
        one.of &= finder->lookups[low].of;
        if (one.of != 0 && one.ts_ns >= finder->search->from_ns &&
            one.ts_ns <= finder->search->to_ns) {
            HEARTH_TRY(add_found(finder, &one, err));
        }
    }

    return HEARTH_OK;
}

/* Match the associations of one row, a fresh one or one of the index. */
static enum hearth_status take_span_row(void *context, const PGresult *row, struct hearth_err *err)
{
    struct span_finder *finder = context;
    int32_t service_id = hearth_pg_i32(row, 0, 0);
    struct hearth_str bytes = hearth_pg_str(row, 0, 4);
    struct hearth_association *all;
    size_t n;
    unsigned key_bits = 64;

    hearth_arena_reset(&finder->row_arena);
    if (service_id != 0) {
        HEARTH_TRY(
            hearth_associations_read_fresh(bytes, service_id, &finder->row_arena, &all, &n, err));
    } else {
        HEARTH_TRY(hearth_associations_unpack(
            &(struct hearth_association_row){bytes, hearth_pg_i32(row, 0, 1),
                                             (unsigned)hearth_pg_i32(row, 0, 2),
                                             (uint32_t)hearth_pg_i32(row, 0, 3)},
            &finder->row_arena, &all, &n, &key_bits, err));
    }

    for (size_t i = 0; i < n; i++) {
        HEARTH_TRY(match_association(finder, &all[i], key_bits, err));
    }

    return HEARTH_OK;
}

static enum hearth_status find_spans_on(void *context, struct hearth_pg *pg,
                                        enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct span_finder *finder = context;
    struct hearth_arena *arena = finder->scope->arena;

    /* Forget the associations of an earlier attempt. */
    finder->n = 0;
    finder->prune_at = 0;
    finder->is_cut = false;

    struct hearth_pg_params params;
    hearth_pg_params_init(&params, arena);
    hearth_pg_param_text(&params, finder->scope->tenant);
    bool ok = add_bucket_params(finder, &params);
    hearth_pg_param_i32(&params, hearth_day_of(finder->search->from_ns));
    hearth_pg_param_i32(&params, hearth_day_of(finder->search->to_ns));
    ok = ok && add_key_bytes_param(finder, &params);
    if (!ok || params.failed) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    return hearth_pg_stream(pg, hearth_sql_find_spans, &params, finder->scope->cancel,
                            take_span_row, finder, ret_fault, err);
}

enum hearth_status hearth_store_find_spans(const struct hearth_scope *scope,
                                           const struct hearth_span_search *search,
                                           struct hearth_found_spans *ret, struct hearth_err *err)
{
    assert(search->lookups != NULL || search->n_lookups == 0);
    HEARTH_TRY(hearth_store_check_open(scope->store, err));

    struct span_finder finder = {.scope = scope, .search = search};
    HEARTH_TRY(sort_lookups(&finder, err));

    if (finder.n_lookups > 0) {
        hearth_arena_init_like(&finder.row_arena, scope->arena);
        enum hearth_status status = hearth_store_read_with_pg(
            &(struct hearth_store_reader){.scope = scope, .fn = find_spans_on, .context = &finder},
            err);
        hearth_arena_release(&finder.row_arena);
        HEARTH_TRY(status);

        prune_found(&finder);
        if (finder.n > 0) {
            qsort(finder.found, finder.n, sizeof *finder.found, compare_places);
        }
    }

    *ret = (struct hearth_found_spans){finder.found, finder.n, finder.is_cut};

    return HEARTH_OK;
}

/* ---- the begin of the index ---- */

enum hearth_status hearth_store_span_index_since(const struct hearth_scope *scope,
                                                 int64_t *ret_since_ns, struct hearth_err *err)
{
    HEARTH_CLEANUP(hearth_arena_release) struct hearth_arena arena;
    hearth_arena_init(&arena, 0);

    struct hearth_scope own = *scope; /* scope->arena may be NULL */
    own.arena = &arena;

    int64_t since_ns = 0;
    bool found;
    HEARTH_TRY(hearth_store_select_one(&own, "SELECT since FROM hearth_data.span_index_begin", NULL,
                                       &hearth_i64_rows, &since_ns, &found, err));
    *ret_since_ns = since_ns;

    return HEARTH_OK;
}
