/*
 * erase.c -- the first half of a deletion: its profiles are hidden at once, it is logged, its
 * series leave the catalogue. The builder does the second half: it removes the rows (erase_step.c).
 *
 * All in one transaction. roll_state rows come before the catalogue's clock: the builder may hold
 * one of them for a while, and if we had the clock's lock meanwhile, the new series of all servers
 * would wait as well.
 */
#include "hearth/base/clock.h"
#include "hearth/base/log.h"
#include "hearth/store/background.h"

#include "catalog/catalog_prune.h"
#include "pg/pg.h"
#include "pg/store_state.h"
#include "session/session.h"

#include <assert.h>
#include <stdlib.h>

#define ERASE_ARENA_BYTES ((size_t)1 << 30)
#define MINUTE_NS         (60 * HEARTH_NS_PER_SEC)

struct erase {
    const struct hearth_erase_request *request;
    struct hearth_str tenant;
    int32_t *service_ids, *series_ids; /* n pairs, distinct, by service and series */
    size_t n;
    int32_t first_hour, last_hour; /* hours wholly within the range; first > last: no hour is */
    int64_t erasure_id;
    size_t n_gone; /* series that left the catalogue */
    struct hearth_arena arena;
    struct hearth_prune prune;
};

/* ---- series and hours ---- */

static int compare_hits(const void *left, const void *right)
{
    const struct hearth_series_hit *a = left, *b = right;
    if (a->service_id != b->service_id) {
        return a->service_id < b->service_id ? -1 : 1;
    }
    return (a->series_id > b->series_id) - (a->series_id < b->series_id);
}

/* Takes the distinct series of the hits, which may be several columns of one. */
static enum hearth_status take_series(struct erase *erase, struct hearth_err *err)
{
    size_t n_hits = erase->request->n_hits;
    struct hearth_series_hit *sorted = hearth_arena_array(&erase->arena, n_hits, sizeof *sorted);
    erase->service_ids = hearth_arena_array(&erase->arena, n_hits, sizeof *erase->service_ids);
    erase->series_ids = hearth_arena_array(&erase->arena, n_hits, sizeof *erase->series_ids);
    if (sorted == NULL || erase->service_ids == NULL || erase->series_ids == NULL) {
        return HEARTH_FAIL_ARENA(err, &erase->arena);
    }

    if (n_hits > 0) {
        memcpy(sorted, erase->request->hits, n_hits * sizeof *sorted);
        qsort(sorted, n_hits, sizeof *sorted, compare_hits);
    }

    for (size_t i = 0; i < n_hits; i++) {
        if (i == 0 || compare_hits(&sorted[i - 1], &sorted[i]) != 0) {
            erase->service_ids[erase->n] = sorted[i].service_id;
            erase->series_ids[erase->n++] = sorted[i].series_id;
        }
    }

    return HEARTH_OK;
}

/* Finds the hours that lie wholly within the range. */
static void take_hours(struct erase *erase)
{
    /* The ends are clamped so that sums do not overflow: "to" may be the end of time. */
    int64_t from_ns = erase->request->from_ns, to_ns = erase->request->to_ns;
    to_ns = to_ns == INT64_MAX ? INT64_MAX - 1 : to_ns;
    if (from_ns > INT64_MAX - HEARTH_NS_PER_HOUR) {
        from_ns = INT64_MAX - HEARTH_NS_PER_HOUR;
    }

    erase->first_hour = hearth_hour_of(from_ns + HEARTH_NS_PER_HOUR - 1);
    erase->last_hour = hearth_hour_of(to_ns + 1) - 1;
    if (erase->last_hour < erase->first_hour) {
        erase->last_hour = erase->first_hour - 1;
    }
}

/* ---- statements ---- */

/* $1 and $2 of most statements: the services and series. */
static void set_erase_params(struct erase *erase, struct hearth_pg_params *params)
{
    hearth_pg_params_init(params, &erase->arena);
    hearth_pg_param_i32_array(params, erase->service_ids, erase->n);
    hearth_pg_param_i32_array(params, erase->series_ids, erase->n);
}

static enum hearth_status exec_erase_sql(struct erase *erase, const char *sql,
                                         const struct hearth_pg_params *params,
                                         PGresult **ret_result, struct hearth_err *err)
{
    return hearth_pg_exec(erase->prune.pg, sql, params, NULL, ret_result, erase->prune.ret_fault,
                          err);
}

/* Series that may leave the catalogue: service_ids[i] is the service of series_ids[i]. */
struct doomed {
    int32_t *service_ids, *series_ids;
    size_t n;
};

/*
 * Finds the series that have no hour outside the hours to remove. Without a lock:
 * hearth_prune_series keeps those that have got an hour since.
 */
static enum hearth_status find_doomed(struct erase *erase, struct doomed *doomed,
                                      struct hearth_err *err)
{
    HEARTH_TRY(hearth_prune_version(&erase->prune, err));

    struct hearth_pg_params params;
    set_erase_params(erase, &params);
    hearth_pg_param_i32(&params, erase->first_hour);
    hearth_pg_param_i32(&params, erase->last_hour);

    PGresult *result = NULL;
    HEARTH_TRY(exec_erase_sql(
        erase,
        "SELECT u.s, u.i FROM unnest($1::int4[], $2::int4[]) u (s, i) WHERE NOT EXISTS"
        " (SELECT FROM hearth_data.series_hour h WHERE h.service_id = u.s AND"
        " h.series_id = u.i AND (h.hour < $3 OR h.hour > $4))",
        &params, &result, err));

    size_t n = (size_t)PQntuples(result);
    doomed->service_ids = hearth_arena_array(&erase->arena, n, sizeof *doomed->service_ids);
    doomed->series_ids = hearth_arena_array(&erase->arena, n, sizeof *doomed->series_ids);
    doomed->n = n;
    enum hearth_status status = doomed->service_ids == NULL || doomed->series_ids == NULL
                                    ? HEARTH_FAIL_ARENA(err, &erase->arena)
                                    : HEARTH_OK;
    for (size_t i = 0; i < n && status == HEARTH_OK; i++) {
        doomed->service_ids[i] = hearth_pg_i32(result, (int)i, 0);
        doomed->series_ids[i] = hearth_pg_i32(result, (int)i, 1);
    }
    PQclear(result);

    return status;
}

/* Writes the log's row. A deletion without series is done at once. */
static enum hearth_status log_erasure(struct erase *erase, struct hearth_err *err)
{
    const struct hearth_erase_request *request = erase->request;
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, &erase->arena);
    hearth_pg_param_text(&params, erase->tenant);
    hearth_pg_param_text(&params, request->selector);
    hearth_pg_param_i64(&params, request->from_ns);
    hearth_pg_param_i64(&params, request->to_ns);
    hearth_pg_param_text(&params, request->requested_by);
    hearth_pg_param_i64(&params, (int64_t)erase->n);

    PGresult *result = NULL;
    HEARTH_TRY(
        exec_erase_sql(erase,
                       "INSERT INTO hearth_data.erasure (tenant_id, selector, from_ts, to_ts,"
                       " requested_by, n_series, done_at) SELECT tenant_id, $2, $3, $4, $5, $6,"
                       " CASE WHEN $6 = 0 THEN now() END FROM hearth_data.tenant WHERE name = $1"
                       " RETURNING erasure_id",
                       &params, &result, err));
    bool found = PQntuples(result) == 1;
    erase->erasure_id = found ? hearth_pg_i64(result, 0, 0) : 0;
    PQclear(result);

    return found ? HEARTH_OK
                 : HEARTH_FAIL(err, HEARTH_NOT_FOUND, "no tenant \"" HEARTH_STR_FMT "\"",
                               HEARTH_STR_ARG(erase->tenant));
}

/* Writes a tombstone for each service. Readers read them again when the generation has risen. */
static enum hearth_status insert_tombstones(struct erase *erase, struct hearth_err *err)
{
    struct hearth_pg_params params;
    set_erase_params(erase, &params);
    hearth_pg_param_i64(&params, erase->erasure_id);
    hearth_pg_param_i64(&params, erase->request->from_ns);
    hearth_pg_param_i64(&params, erase->request->to_ns);

    /* The builder needs the series of a tombstone in ascending order. */
    return exec_erase_sql(erase,
                          "INSERT INTO hearth_data.tombstone (service_id, erasure_id, from_ts,"
                          " to_ts, series_ids) SELECT s, $3, $4, $5, array_agg(i ORDER BY i)"
                          " FROM unnest($1::int4[], $2::int4[]) u (s, i) GROUP BY s",
                          &params, NULL, err);
}

/* PERMISSION_DENIED if one of the originals belongs to a service that must keep its own. */
static enum hearth_status check_kept_originals(struct erase *erase, int64_t from_ns, int64_t to_ns,
                                               struct hearth_err *err)
{
    const struct hearth_index_texts *whole = erase->request->whole_services;
    struct hearth_pg_params params;
    PGresult *result = NULL;

    if (whole == NULL) {
        return HEARTH_OK;
    }

    hearth_pg_params_init(&params, &erase->arena);
    hearth_pg_param_i32_array(&params, erase->service_ids, erase->n);
    hearth_pg_param_i64(&params, from_ns);
    hearth_pg_param_i64(&params, to_ns);
    hearth_pg_param_text_array(&params, whole->v, whole->n);
    HEARTH_TRY(exec_erase_sql(
        erase,
        "SELECT FROM hearth_data.original o JOIN hearth_data.service v ON v.service_id ="
        " o.service_id WHERE o.service_id = ANY ($1) AND o.ts BETWEEN $2 AND $3 AND"
        " NOT v.name = ANY ($4) LIMIT 1",
        &params, &result, err));
    bool found = PQntuples(result) > 0;
    PQclear(result);

    return !found ? HEARTH_OK
                  : HEARTH_FAIL(err, HEARTH_PERMISSION_DENIED,
                                "files that were kept as they were sent would be deleted with the "
                                "series, and may contain series that the credential does not see");
}

/*
 * Deletes the originals of the services in the minutes of the range. An original has the samples of
 * several series, so it is deleted even if other series of its upload stay.
 */
static enum hearth_status delete_erased_originals(struct erase *erase, struct hearth_err *err)
{
    const struct hearth_erase_request *request = erase->request;
    int64_t from_ns = INT64_MIN, to_ns = INT64_MAX;

    /* The profiles of an upload lie within a minute; the original has the time of one of them. */
    if (request->from_ns > INT64_MIN + MINUTE_NS) {
        from_ns = request->from_ns - MINUTE_NS;
    }
    if (request->to_ns < INT64_MAX - MINUTE_NS) {
        to_ns = request->to_ns + MINUTE_NS;
    }

    HEARTH_TRY(check_kept_originals(erase, from_ns, to_ns, err));
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, &erase->arena);
    hearth_pg_param_i32_array(&params, erase->service_ids, erase->n);
    hearth_pg_param_i64(&params, from_ns);
    hearth_pg_param_i64(&params, to_ns);

    return exec_erase_sql(erase,
                          "DELETE FROM hearth_data.original r USING (SELECT o.original_no FROM"
                          " hearth_data.original o WHERE o.service_id = ANY ($1) AND o.ts BETWEEN"
                          " $2 AND $3 ORDER BY o.original_no FOR UPDATE) d"
                          " WHERE r.original_no = d.original_no",
                          &params, NULL, err);
}

/* A service without roll-ups gets its row now, with times before all profiles. */
static enum hearth_status raise_generations(struct erase *erase, struct hearth_err *err)
{
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, &erase->arena);
    hearth_pg_param_i32_array(&params, erase->service_ids, erase->n);

    return exec_erase_sql(
        erase,
        "INSERT INTO hearth_data.roll_state AS r (service_id, watermark, built_to,"
        " compacted_to, generation) SELECT s, t, t, t, 1 FROM (SELECT DISTINCT unnest($1) s)"
        " u, (SELECT -106751 * 86400000000000 t) v ORDER BY s"
        " ON CONFLICT (service_id) DO UPDATE SET generation = r.generation + 1",
        &params, NULL, err);
}

/* Removes the hours that lie wholly within the range, so that label queries do not see them. */
static enum hearth_status remove_hours(struct erase *erase, struct hearth_err *err)
{
    assert(erase->first_hour <= erase->last_hour + 1);

    struct hearth_pg_params params;
    set_erase_params(erase, &params);
    hearth_pg_param_i32(&params, erase->first_hour);
    hearth_pg_param_i32(&params, erase->last_hour);

    return exec_erase_sql(
        erase,
        "DELETE FROM hearth_data.series_hour h USING unnest($1::int4[], $2::int4[]) u (s, i)"
        " WHERE h.service_id = u.s AND h.series_id = u.i AND h.hour BETWEEN $3 AND $4",
        &params, NULL, err);
}

static enum hearth_status erase_in_transaction(struct erase *erase, struct hearth_err *err)
{
    struct hearth_prune *prune = &erase->prune;
    struct doomed doomed = {0};
    HEARTH_TRY(find_doomed(erase, &doomed, err));

    HEARTH_TRY(
        hearth_pg_script(prune->pg, "BEGIN ISOLATION LEVEL READ COMMITTED", prune->ret_fault, err));
    HEARTH_TRY(log_erasure(erase, err));

    /* Hide the profiles first, then lock the catalogue. */
    if (erase->n > 0) {
        HEARTH_TRY(insert_tombstones(erase, err));
        HEARTH_TRY(delete_erased_originals(erase, err));
        HEARTH_TRY(raise_generations(erase, err));
        HEARTH_TRY(hearth_prune_lock(prune, err));
        HEARTH_TRY(remove_hours(erase, err));
        HEARTH_TRY(hearth_prune_series(prune, doomed.service_ids, doomed.series_ids, doomed.n,
                                       &erase->n_gone, err));
    }

    return hearth_pg_script(prune->pg, "COMMIT", prune->ret_fault, err);
}

/* A COMMIT that was not answered is repeated: a second deletion of the same rows does no harm. */
static enum hearth_status erase_on(void *context, struct hearth_pg *pg,
                                   enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct erase *erase = context;
    erase->prune = (struct hearth_prune){.pg = pg, .arena = &erase->arena, .ret_fault = ret_fault};
    enum hearth_status status = erase_in_transaction(erase, err);
    if (status != HEARTH_OK) {
        hearth_pg_rollback(pg);
    }

    return status;
}

enum hearth_status hearth_store_erase(struct hearth_store *store, struct hearth_str tenant,
                                      const struct hearth_erase_request *request,
                                      int64_t *ret_erasure_id, struct hearth_err *err)
{
    assert(request->hits != NULL || request->n_hits == 0);

    HEARTH_TRY(hearth_store_check_open(store, err));
    if (request->from_ns > request->to_ns) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "the range to delete ends before it begins");
    }

    /* Erase. */
    struct erase erase = {.request = request, .tenant = tenant};
    hearth_arena_init(&erase.arena, ERASE_ARENA_BYTES);
    take_hours(&erase);
    enum hearth_status status = take_series(&erase, err);
    if (status == HEARTH_OK) {
        status = hearth_store_as_owner(store, NULL, erase_on, &erase, err);
    }

    /* Report it. */
    if (status == HEARTH_OK) {
        *ret_erasure_id = erase.erasure_id;
        HEARTH_LOG(HEARTH_LOG_INFO, "store", "deletion: hidden, to be removed", "erasure",
                   hearth_log_i64(erase.erasure_id), "series", hearth_log_i64((int64_t)erase.n),
                   "series_gone", hearth_log_i64((int64_t)erase.n_gone), NULL);
    }
    hearth_arena_release(&erase.arena);

    return status;
}

/* ---- the log ---- */

struct erasure_list {
    struct hearth_str tenant;
    struct hearth_arena *arena;
    struct hearth_erasure *erasures;
    size_t n;
};

static enum hearth_status take_erasures(struct erasure_list *list, const PGresult *rows,
                                        struct hearth_err *err)
{
    list->n = (size_t)PQntuples(rows);
    list->erasures = hearth_arena_array(list->arena, list->n, sizeof *list->erasures);
    if (list->erasures == NULL) {
        return HEARTH_FAIL_ARENA(err, list->arena);
    }

    for (size_t i = 0; i < list->n; i++) {
        int row = (int)i;
        struct hearth_erasure *erasure = &list->erasures[i];
        *erasure = (struct hearth_erasure){
            .erasure_id = hearth_pg_i64(rows, row, 0),
            .selector = hearth_arena_str(list->arena, hearth_pg_str(rows, row, 1)),
            .requested_by = hearth_arena_str(list->arena, hearth_pg_str(rows, row, 2)),
            .from_ns = hearth_pg_i64(rows, row, 3),
            .to_ns = hearth_pg_i64(rows, row, 4),
            .requested_at_ns = hearth_pg_i64(rows, row, 5),
            .done_at_ns = hearth_pg_i64(rows, row, 6),
            .n_series = hearth_pg_i64(rows, row, 7),
            .n_rows = hearth_pg_i64(rows, row, 8),
        };
        if (erasure->selector.p == NULL || erasure->requested_by.p == NULL) {
            return HEARTH_FAIL_ARENA(err, list->arena);
        }
    }

    return HEARTH_OK;
}

static enum hearth_status list_erasures_on(void *context, struct hearth_pg *pg,
                                           enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct erasure_list *list = context;
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, list->arena);
    hearth_pg_param_text(&params, list->tenant);

    PGresult *rows = NULL;
    HEARTH_TRY(hearth_pg_exec(
        pg,
        "SELECT erasure_id, selector, requested_by, from_ts, to_ts,"
        " (extract(epoch FROM requested_at) * 1000000000)::int8,"
        " coalesce((extract(epoch FROM done_at) * 1000000000)::int8, 0), n_series, n_rows"
        " FROM hearth_data.erasure JOIN hearth_data.tenant USING (tenant_id) WHERE name = $1"
        " ORDER BY erasure_id DESC LIMIT 1000",
        &params, NULL, &rows, ret_fault, err));
    enum hearth_status status = take_erasures(list, rows, err);
    PQclear(rows);

    return status;
}

enum hearth_status hearth_store_erasures(struct hearth_store *store, struct hearth_str tenant,
                                         struct hearth_arena *arena, struct hearth_erasure **ret,
                                         size_t *ret_n, struct hearth_err *err)
{
    assert(arena != NULL);

    HEARTH_TRY(hearth_store_check_open(store, err));
    struct erasure_list list = {.tenant = tenant, .arena = arena};
    HEARTH_TRY(hearth_store_as_owner(store, NULL, list_erasures_on, &list, err));
    *ret = list.erasures;
    *ret_n = list.n;

    return HEARTH_OK;
}
