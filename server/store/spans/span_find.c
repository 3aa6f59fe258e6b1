/*
 * span_find.c -- associations of bare ids: fresh ones and those of the index (contract: hearth/store/store_span_index.h).
 *
 * One statement, so one snapshot: the builder moves associations, and none may be missed or seen half way. Fresh rows are all
 * looked at, in PostgreSQL while the keys are few; OFFSET 0 keeps them from being joined: how many there are changes too fast for
 * statistics. Of each day and each size of parts hearth_data.find_in_span_index takes the rows that may have the key, by
 * the primary key. That is a function because its plan, which costs more than the lookup, is kept with each
 * connection of PostgreSQL; statements of hearthd have no names (docs/how-to/pgbouncer.md).
 */
#include "hearth/store/store_span_index.h"

#include "build/span_work.h"
#include "pg/pg.h"
#include "pg/session.h"
#include "pg/store_state.h"

#include <stdlib.h>

#define MAX_KEYS_IN_SQL 8 /* of fresh rows: more are compared here */
#define PRUNE_AT        4096

/* $1 tenant; $2, $3 sizes and buckets; $4, $5 days; $6 keys, empty: send all fresh rows. What is not fresh has service 0. */
#define STATEMENT                                                                                \
    "WITH t AS MATERIALIZED (SELECT tenant_id FROM hearth_data.tenant WHERE name = $1)"          \
    " SELECT f.service_id, 0, 0, 0, f.associations FROM (SELECT * FROM hearth_data.span_fresh e" \
    " WHERE cardinality($6::bytea[]) = 0 OR EXISTS (SELECT FROM unnest($6::bytea[]) k WHERE"     \
    " position(k IN e.associations) > 0) OFFSET 0) f WHERE (SELECT s.tenant_id FROM"             \
    " hearth_data.service s WHERE s.service_id = f.service_id) = (SELECT tenant_id FROM t)"      \
    " UNION ALL SELECT 0, i.found_day, i.found_bits, i.found_bucket, i.found FROM t,"            \
    " hearth_data.find_in_span_index(t.tenant_id, $2::int4[], $3::int4[], $4::int4, $5::int4) i"

struct find {
    struct hearth_str tenant;
    struct hearth_span_question *questions; /* by key, each once */
    size_t n_questions;
    int64_t from_ns, to_ns;
    size_t limit;
    struct hearth_cancel *cancel;
    struct hearth_arena *arena, row_arena;
    struct hearth_association *found;
    size_t n, cap;
    size_t prune_at; /* twice what the last time left, at least */
    bool is_cut;
};

/* ---- questions ---- */

static int compare_questions(const void *left, const void *right)
{
    const struct hearth_span_question *a = left, *b = right;
    return (a->key > b->key) - (a->key < b->key);
}

static enum hearth_status take_questions(struct find *find,
                                         const struct hearth_span_question *questions, size_t n,
                                         struct hearth_err *err)
{
    find->questions = hearth_arena_array(find->arena, n, sizeof *find->questions);
    if (find->questions == NULL) {
        return HEARTH_FAIL_ARENA(err, find->arena);
    }
    if (n > 0) {
        memcpy(find->questions, questions, n * sizeof *questions);
        qsort(find->questions, n, sizeof *find->questions, compare_questions);
    }
    struct hearth_span_question *last = NULL;
    for (size_t i = 0; i < n; i++) {
        if (last != NULL && last->key == find->questions[i].key) {
            last->of |= find->questions[i].of;
        } else {
            last = &find->questions[find->n_questions++];
            *last = find->questions[i];
        }
    }
    return HEARTH_OK;
}

/* Sizes and buckets, each pair once: the questions are in order, and so are their buckets. */
static bool param_buckets(const struct find *find, struct hearth_pg_params *params)
{
    size_t most = find->n_questions * HEARTH_SPAN_N_SIZES, n = 0;
    int32_t *bits = hearth_arena_array(find->arena, most, sizeof *bits);
    int32_t *buckets = hearth_arena_array(find->arena, most, sizeof *buckets);
    if (bits == NULL || buckets == NULL) {
        return false;
    }
    for (unsigned size = 0; size < HEARTH_SPAN_N_SIZES; size++) {
        int32_t b = (int32_t)(size * HEARTH_SPAN_SIZE_BITS);
        for (size_t i = 0; i < find->n_questions; i++) {
            int32_t bucket = (int32_t)hearth_span_bucket(find->questions[i].key, (unsigned)b);
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

static bool param_keys(const struct find *find, struct hearth_pg_params *params)
{
    size_t n = find->n_questions <= MAX_KEYS_IN_SQL ? find->n_questions : 0;
    struct hearth_str keys[MAX_KEYS_IN_SQL];
    for (size_t i = 0; i < n; i++) {
        char *bytes = hearth_arena_alloc(find->arena, 8);
        if (bytes == NULL) {
            return false;
        }
        for (int k = 0; k < 8; k++) {
            bytes[k] = (char)(find->questions[i].key >> (56 - 8 * k));
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

/* Each once, and of more profiles or groups than the limit those of the latest: one may carry many of the ids. */
static void prune(struct find *find)
{
    if (find->n == 0) {
        return;
    }
    qsort(find->found, find->n, sizeof *find->found, compare_latest);
    size_t n = 0;
    for (size_t i = 0; i < find->n; i++) {
        if (n > 0 && compare_places(&find->found[n - 1], &find->found[i]) == 0) {
            find->found[n - 1].of |= find->found[i].of;
        } else {
            find->found[n++] = find->found[i];
        }
    }
    size_t n_places = 0;
    for (size_t i = 0; i < n && find->limit > 0; i++) {
        n_places += i == 0 || !is_same_place(&find->found[i - 1], &find->found[i]);
        if (n_places > find->limit) {
            find->is_cut = true;
            n = i;
        }
    }
    find->n = n;
    find->prune_at = 2 * n;
}

static enum hearth_status add(struct find *find, const struct hearth_association *association,
                              struct hearth_err *err)
{
    if (find->n == find->cap) {
        size_t cap = find->cap == 0 ? 64 : 2 * find->cap;
        struct hearth_association *more = hearth_arena_array(find->arena, cap, sizeof *more);
        if (more == NULL) {
            return HEARTH_FAIL_ARENA(err, find->arena);
        }
        if (find->n > 0) {
            memcpy(more, find->found, find->n * sizeof *more);
        }
        find->found = more;
        find->cap = cap;
    }
    find->found[find->n++] = *association;
    if (find->limit > 0 && find->n >= PRUNE_AT && find->n / 4 >= find->limit &&
        find->n >= find->prune_at) {
        prune(find);
    }
    return HEARTH_OK;
}

/* Of each question whose leading key_bits agree. */
static enum hearth_status match(struct find *find, const struct hearth_association *association,
                                unsigned key_bits, struct hearth_err *err)
{
    unsigned shift = 64 - key_bits;
    uint64_t key = association->key >> shift;
    size_t low = 0, high = find->n_questions;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (find->questions[mid].key >> shift < key) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    for (; low < find->n_questions && find->questions[low].key >> shift == key; low++) {
        struct hearth_association one = *association;
        one.key = find->questions[low].key;
        one.of &= find->questions[low].of;
        if (one.of != 0 && one.ts_ns >= find->from_ns && one.ts_ns <= find->to_ns) {
            HEARTH_TRY(add(find, &one, err));
        }
    }
    return HEARTH_OK;
}

static enum hearth_status take_row(void *context, const PGresult *row, struct hearth_err *err)
{
    struct find *find = context;
    int32_t service_id = hearth_pg_i32(row, 0, 0);
    struct hearth_str bytes = hearth_pg_str(row, 0, 4);
    struct hearth_association *all;
    size_t n;
    unsigned key_bits = 64;
    hearth_arena_reset(&find->row_arena);
    if (service_id != 0) {
        HEARTH_TRY(
            hearth_associations_read_fresh(bytes, service_id, &find->row_arena, &all, &n, err));
    } else {
        HEARTH_TRY(hearth_associations_unpack(
            bytes, hearth_pg_i32(row, 0, 1), (unsigned)hearth_pg_i32(row, 0, 2),
            (uint32_t)hearth_pg_i32(row, 0, 3), &find->row_arena, &all, &n, &key_bits, err));
    }
    for (size_t i = 0; i < n; i++) {
        HEARTH_TRY(match(find, &all[i], key_bits, err));
    }
    return HEARTH_OK;
}

static enum hearth_status find_on(void *context, struct hearth_pg *pg,
                                  enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct find *find = context;
    find->n = 0; /* what an attempt on a lost connection has found comes again */
    find->prune_at = 0;
    find->is_cut = false;
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, find->arena);
    hearth_pg_param_text(&params, find->tenant);
    bool ok = param_buckets(find, &params);
    hearth_pg_param_i32(&params, hearth_day_of(find->from_ns));
    hearth_pg_param_i32(&params, hearth_day_of(find->to_ns));
    ok = ok && param_keys(find, &params);
    if (!ok || params.failed) {
        return HEARTH_FAIL_ARENA(err, find->arena);
    }
    return hearth_pg_stream(pg, STATEMENT, &params, find->cancel, take_row, find, ret_fault, err);
}

enum hearth_status hearth_store_find_spans(const struct hearth_scope *scope,
                                           const struct hearth_span_question *questions,
                                           size_t n_questions, int64_t from_ns, int64_t to_ns,
                                           size_t limit, struct hearth_association **ret,
                                           size_t *ret_n, bool *ret_is_cut, struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    struct find find = {.tenant = scope->tenant,
                        .from_ns = from_ns,
                        .to_ns = to_ns,
                        .limit = limit,
                        .cancel = scope->cancel,
                        .arena = scope->arena};
    HEARTH_TRY(take_questions(&find, questions, n_questions, err));
    if (find.n_questions > 0) {
        hearth_arena_init_like(&find.row_arena, scope->arena);
        enum hearth_status status =
            hearth_store_read_with_pg(scope->store, scope->cancel, find_on, &find, err);
        hearth_arena_release(&find.row_arena);
        HEARTH_TRY(status);
        prune(&find);
        if (find.n > 0) {
            qsort(find.found, find.n, sizeof *find.found, compare_places);
        }
    }
    *ret = find.found;
    *ret_n = find.n;
    *ret_is_cut = find.is_cut;
    return HEARTH_OK;
}

/* ---- since when ---- */

static enum hearth_status since_on(void *context, struct hearth_pg *pg,
                                   enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    int64_t *ret_since_ns = context;
    PGresult *rows = NULL;
    HEARTH_TRY(hearth_pg_exec(pg, "SELECT since FROM hearth_data.span_index_begin", NULL, NULL,
                              &rows, ret_fault, err));
    *ret_since_ns = PQntuples(rows) > 0 ? hearth_pg_i64(rows, 0, 0) : 0;
    PQclear(rows);
    return HEARTH_OK;
}

enum hearth_status hearth_store_span_index_since(const struct hearth_scope *scope,
                                                 int64_t *ret_since_ns, struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    return hearth_store_with_pg(scope->store, scope->cancel, since_on, ret_since_ns, err);
}
