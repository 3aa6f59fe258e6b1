/*
 * span_search.c -- associations of bare ids: fresh ones and those of the index (contract:
 * hearth/store/store_span_index.h).
 *
 * One statement, so one snapshot: the builder moves associations, and none may be missed or seen
 * half way. All fresh rows are searched, in PostgreSQL if there are few keys; OFFSET 0 keeps them
 * from being joined, because their number changes too fast for statistics. For each day and each
 * size of parts hearth_data.find_in_span_index returns the rows that may contain the key, by the
 * primary key. That is a function because its plan, which costs more than the lookup, is kept by
 * each connection of PostgreSQL; statements of hearthd have no names (docs/how-to/pgbouncer.md).
 */
#include "hearth/store/store_span_index.h"

#include "build/span_work.h"
#include "pg/pg_rows.h"
#include "pg/store_state.h"

#include <assert.h>
#include <stdlib.h>

#define MAX_KEYS_IN_SQL 8    /* with more keys all fresh rows are sent, and compared here */
#define PRUNE_AT        4096 /* associations */

/*
 * $1 tenant; $2, $3 sizes and buckets; $4, $5 first and last day; $6 keys, empty: send all fresh
 * rows. Rows of the index have service 0.
 */
#define FIND_STATEMENT                                                                           \
    "WITH t AS MATERIALIZED (SELECT tenant_id FROM hearth_data.tenant WHERE name = $1)"          \
    " SELECT f.service_id, 0, 0, 0, f.associations FROM (SELECT * FROM hearth_data.span_fresh e" \
    " WHERE cardinality($6::bytea[]) = 0 OR EXISTS (SELECT FROM unnest($6::bytea[]) k WHERE"     \
    " position(k IN e.associations) > 0) OFFSET 0) f WHERE (SELECT s.tenant_id FROM"             \
    " hearth_data.service s WHERE s.service_id = f.service_id) = (SELECT tenant_id FROM t)"      \
    " UNION ALL SELECT 0, i.found_day, i.found_bits, i.found_bucket, i.found FROM t,"            \
    " hearth_data.find_in_span_index(t.tenant_id, $2::int4[], $3::int4[], $4::int4, $5::int4) i"

/* A search. */
struct span_search {
    struct hearth_str tenant;
    struct hearth_span_question *questions; /* by key, each once */
    size_t n_questions;
    int64_t from_ns, to_ns;
    size_t limit;
    struct hearth_cancel *cancel;
    struct hearth_arena *arena;
    struct hearth_arena row_arena; /* for one row */
    struct hearth_association *found;
    size_t n, cap;
    size_t prune_at; /* prune at this n, at least: twice the number that was left last time */
    bool is_cut;
};

/* ---- questions ---- */

static int compare_questions(const void *left, const void *right)
{
    const struct hearth_span_question *a = left, *b = right;
    return (a->key > b->key) - (a->key < b->key);
}

static enum hearth_status sort_questions(struct span_search *search,
                                         const struct hearth_span_question *questions, size_t n,
                                         struct hearth_err *err)
{
    search->questions = hearth_arena_array(search->arena, n, sizeof *search->questions);
    if (search->questions == NULL) {
        return HEARTH_FAIL_ARENA(err, search->arena);
    }
    if (n > 0) {
        memcpy(search->questions, questions, n * sizeof *questions);
        qsort(search->questions, n, sizeof *search->questions, compare_questions);
    }
    struct hearth_span_question *last = NULL;
    for (size_t i = 0; i < n; i++) {
        if (last != NULL && last->key == search->questions[i].key) {
            last->of |= search->questions[i].of;
        } else {
            last = &search->questions[search->n_questions++];
            *last = search->questions[i];
        }
    }
    return HEARTH_OK;
}

/* Sizes and buckets, each pair once: the questions are sorted, and so are their buckets. */
static bool add_bucket_params(const struct span_search *search, struct hearth_pg_params *params)
{
    size_t most = search->n_questions * HEARTH_SPAN_N_SIZES, n = 0;
    int32_t *bits = hearth_arena_array(search->arena, most, sizeof *bits);
    int32_t *buckets = hearth_arena_array(search->arena, most, sizeof *buckets);
    if (bits == NULL || buckets == NULL) {
        return false;
    }
    for (unsigned size = 0; size < HEARTH_SPAN_N_SIZES; size++) {
        int32_t b = (int32_t)(size * HEARTH_SPAN_SIZE_BITS);
        for (size_t i = 0; i < search->n_questions; i++) {
            int32_t bucket = (int32_t)hearth_span_bucket(search->questions[i].key, (unsigned)b);
            if (n == 0 || bits[n - 1] != b || buckets[n - 1] != bucket) {
                bits[n] = b;
                buckets[n++] = bucket;
            }
        }
    }
    hearth_pg_param_i32_array(params, bits, n);
    hearth_pg_param_i32_array(params, buckets, n);
    return true;
}

static bool add_key_bytes_param(const struct span_search *search, struct hearth_pg_params *params)
{
    size_t n = search->n_questions <= MAX_KEYS_IN_SQL ? search->n_questions : 0;
    struct hearth_str keys[MAX_KEYS_IN_SQL];
    for (size_t i = 0; i < n; i++) {
        char *bytes = hearth_arena_alloc(search->arena, 8);
        if (bytes == NULL) {
            return false;
        }
        for (int k = 0; k < 8; k++) {
            bytes[k] = (char)(search->questions[i].key >> (56 - 8 * k));
        }
        keys[i] = hearth_str_n(bytes, 8);
    }
    hearth_pg_param_bytes_array(params, keys, n);
    return true;
}

/* ---- answers ---- */

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
 * Keep each association once, and those of the latest profiles and groups up to the limit: one may
 * carry many ids.
 */
static void prune_found(struct span_search *search)
{
    if (search->n == 0) {
        return;
    }

    /* The latest first; equal ones are neighbours. */
    qsort(search->found, search->n, sizeof *search->found, compare_latest);
    size_t n = 0;
    for (size_t i = 0; i < search->n; i++) {
        if (n > 0 && compare_places(&search->found[n - 1], &search->found[i]) == 0) {
            search->found[n - 1].of |= search->found[i].of;
        } else {
            search->found[n++] = search->found[i];
        }
    }

    /* Cut after the limit. */
    size_t n_places = 0;
    for (size_t i = 0; i < n && search->limit > 0; i++) {
        n_places += i == 0 || !is_same_place(&search->found[i - 1], &search->found[i]);
        if (n_places > search->limit) {
            search->is_cut = true;
            n = i;
        }
    }

    assert(n <= search->n);
    search->n = n;
    search->prune_at = 2 * n;
}

static enum hearth_status add_found(struct span_search *search,
                                    const struct hearth_association *association,
                                    struct hearth_err *err)
{
    if (search->n == search->cap) {
        size_t cap = search->cap == 0 ? 64 : 2 * search->cap;
        struct hearth_association *more = hearth_arena_array(search->arena, cap, sizeof *more);
        if (more == NULL) {
            return HEARTH_FAIL_ARENA(err, search->arena);
        }
        if (search->n > 0) {
            memcpy(more, search->found, search->n * sizeof *more);
        }
        search->found = more;
        search->cap = cap;
    }

    search->found[search->n++] = *association;
    if (search->limit > 0 && search->n >= PRUNE_AT && search->n / 4 >= search->limit &&
        search->n >= search->prune_at) {
        prune_found(search);
    }
    return HEARTH_OK;
}

/* Add the association for each question whose leading key_bits agree. */
static enum hearth_status match_association(struct span_search *search,
                                            const struct hearth_association *association,
                                            unsigned key_bits, struct hearth_err *err)
{
    unsigned shift = 64 - key_bits;
    uint64_t key = association->key >> shift;
    assert(key_bits > 0 && key_bits <= 64);

    /* The first question with these bits. */
    size_t low = 0, high = search->n_questions;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (search->questions[mid].key >> shift < key) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }

    for (; low < search->n_questions && search->questions[low].key >> shift == key; low++) {
        struct hearth_association one = *association;
        one.key = search->questions[low].key;
        one.of &= search->questions[low].of;
        if (one.of != 0 && one.ts_ns >= search->from_ns && one.ts_ns <= search->to_ns) {
            HEARTH_TRY(add_found(search, &one, err));
        }
    }
    return HEARTH_OK;
}

static enum hearth_status take_span_row(void *context, const PGresult *row, struct hearth_err *err)
{
    struct span_search *search = context;
    int32_t service_id = hearth_pg_i32(row, 0, 0);
    struct hearth_str bytes = hearth_pg_str(row, 0, 4);
    struct hearth_association *all;
    size_t n;
    unsigned key_bits = 64;

    hearth_arena_reset(&search->row_arena);
    if (service_id != 0) {
        HEARTH_TRY(
            hearth_associations_read_fresh(bytes, service_id, &search->row_arena, &all, &n, err));
    } else {
        HEARTH_TRY(hearth_associations_unpack(
            bytes, hearth_pg_i32(row, 0, 1), (unsigned)hearth_pg_i32(row, 0, 2),
            (uint32_t)hearth_pg_i32(row, 0, 3), &search->row_arena, &all, &n, &key_bits, err));
    }

    for (size_t i = 0; i < n; i++) {
        HEARTH_TRY(match_association(search, &all[i], key_bits, err));
    }
    return HEARTH_OK;
}

static enum hearth_status run_search(void *context, struct hearth_pg *pg,
                                     enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct span_search *search = context;
    search->n = 0; /* an earlier attempt may have found some */
    search->prune_at = 0;
    search->is_cut = false;
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, search->arena);
    hearth_pg_param_text(&params, search->tenant);
    bool ok = add_bucket_params(search, &params);
    hearth_pg_param_i32(&params, hearth_day_of(search->from_ns));
    hearth_pg_param_i32(&params, hearth_day_of(search->to_ns));
    ok = ok && add_key_bytes_param(search, &params);
    if (!ok || params.failed) {
        return HEARTH_FAIL_ARENA(err, search->arena);
    }
    return hearth_pg_stream(pg, FIND_STATEMENT, &params, search->cancel, take_span_row, search,
                            ret_fault, err);
}

enum hearth_status hearth_store_find_spans(const struct hearth_scope *scope,
                                           const struct hearth_span_question *questions,
                                           size_t n_questions, int64_t from_ns, int64_t to_ns,
                                           size_t limit, struct hearth_association **ret,
                                           size_t *ret_n, bool *ret_is_cut, struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    struct span_search search = {.tenant = scope->tenant,
                                 .from_ns = from_ns,
                                 .to_ns = to_ns,
                                 .limit = limit,
                                 .cancel = scope->cancel,
                                 .arena = scope->arena};
    HEARTH_TRY(sort_questions(&search, questions, n_questions, err));
    if (search.n_questions > 0) {
        hearth_arena_init_like(&search.row_arena, scope->arena);
        enum hearth_status status =
            hearth_store_read_with_pg(scope->store, scope->cancel, run_search, &search, err);
        hearth_arena_release(&search.row_arena);
        HEARTH_TRY(status);
        prune_found(&search);
        if (search.n > 0) {
            qsort(search.found, search.n, sizeof *search.found, compare_places);
        }
    }
    *ret = search.found;
    *ret_n = search.n;
    *ret_is_cut = search.is_cut;
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
