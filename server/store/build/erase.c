/*
 * erase.c -- a deletion's first half: hidden at once, logged, out of the catalogue (the second half,
 * removing it physically, is the builder's: erase_step.c).
 *
 * One transaction. roll_state rows come before the catalogue's clock: the builder may hold one of
 * them for a while, and all servers' new series would wait with us if we had the clock's lock.
 */
#include "hearth/base/log.h"
#include "hearth/store/background.h"

#include "catalog/catalog_prune.h"
#include "pg/pg.h"
#include "pg/session.h"
#include "pg/store_state.h"

#include <stdlib.h>

#define ERASE_ARENA_BYTES ((size_t)1 << 30)

struct erase {
    struct hearth_store *store;
    struct hearth_str tenant, selector, requested_by;
    int32_t *service_ids, *series_ids; /* distinct, by service and series */
    size_t n;
    int64_t from_ns, to_ns;
    int32_t first_hour, last_hour; /* wholly within the range; none: first > last */
    int64_t erasure_id;
    size_t n_gone;
    struct hearth_arena arena;
    struct hearth_prune prune;
};

/* ---- what is deleted ---- */

static int compare_hits(const void *left, const void *right)
{
    const struct hearth_series_hit *a = left, *b = right;
    if (a->service_id != b->service_id) {
        return a->service_id < b->service_id ? -1 : 1;
    }
    return (a->series_id > b->series_id) - (a->series_id < b->series_id);
}

static enum hearth_status take_series(struct erase *erase, const struct hearth_series_hit *hits,
                                      size_t n_hits, struct hearth_err *err)
{
    struct hearth_series_hit *sorted = hearth_arena_array(&erase->arena, n_hits, sizeof *sorted);
    erase->service_ids = hearth_arena_array(&erase->arena, n_hits, sizeof *erase->service_ids);
    erase->series_ids = hearth_arena_array(&erase->arena, n_hits, sizeof *erase->series_ids);
    if (sorted == NULL || erase->service_ids == NULL || erase->series_ids == NULL) {
        return HEARTH_FAIL_ARENA(err, &erase->arena);
    }
    if (n_hits > 0) {
        memcpy(sorted, hits, n_hits * sizeof *sorted);
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

static void take_hours(struct erase *erase)
{
    /* Beyond any hour: "to" may be the end of time. */
    int64_t to_ns = erase->to_ns == INT64_MAX ? INT64_MAX - 1 : erase->to_ns;
    int64_t from_ns = erase->from_ns > INT64_MAX - HEARTH_NS_PER_HOUR
                          ? INT64_MAX - HEARTH_NS_PER_HOUR
                          : erase->from_ns;
    erase->first_hour = hearth_hour_of(from_ns + HEARTH_NS_PER_HOUR - 1);
    erase->last_hour = hearth_hour_of(to_ns + 1) - 1;
    if (erase->last_hour < erase->first_hour) {
        erase->last_hour = erase->first_hour - 1;
    }
}

/* ---- statements ---- */

static void set_params(struct erase *erase, struct hearth_pg_params *params)
{
    hearth_pg_params_init(params, &erase->arena);
    hearth_pg_param_i32_array(params, erase->service_ids, erase->n);
    hearth_pg_param_i32_array(params, erase->series_ids, erase->n);
}

static enum hearth_status run(struct erase *erase, const char *sql,
                              const struct hearth_pg_params *params, PGresult **ret_result,
                              struct hearth_err *err)
{
    return hearth_pg_exec(erase->prune.pg, sql, params, NULL, ret_result, erase->prune.ret_fault,
                          err);
}

/* Without a lock: those of the series that have no hour but what goes now. In place, in the arena. */
static enum hearth_status find_doomed(struct erase *erase, int32_t **ret_services,
                                      int32_t **ret_series, size_t *ret_n, struct hearth_err *err)
{
    HEARTH_TRY(hearth_prune_version(&erase->prune, err));
    struct hearth_pg_params params;
    set_params(erase, &params);
    hearth_pg_param_i32(&params, erase->first_hour);
    hearth_pg_param_i32(&params, erase->last_hour);
    PGresult *result = NULL;
    HEARTH_TRY(run(erase,
                   "SELECT u.s, u.i FROM unnest($1::int4[], $2::int4[]) u (s, i) WHERE NOT EXISTS"
                   " (SELECT FROM hearth_data.series_hour h WHERE h.service_id = u.s AND"
                   " h.series_id = u.i AND (h.hour < $3 OR h.hour > $4))",
                   &params, &result, err));
    size_t n = (size_t)PQntuples(result);
    *ret_services = hearth_arena_array(&erase->arena, n, sizeof **ret_services);
    *ret_series = hearth_arena_array(&erase->arena, n, sizeof **ret_series);
    *ret_n = n;
    enum hearth_status status = *ret_services == NULL || *ret_series == NULL
                                    ? HEARTH_FAIL_ARENA(err, &erase->arena)
                                    : HEARTH_OK;
    for (size_t i = 0; i < n && status == HEARTH_OK; i++) {
        (*ret_services)[i] = hearth_pg_i32(result, (int)i, 0);
        (*ret_series)[i] = hearth_pg_i32(result, (int)i, 1);
    }
    PQclear(result);
    return status;
}

static enum hearth_status log_erasure(struct erase *erase, struct hearth_err *err)
{
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, &erase->arena);
    hearth_pg_param_text(&params, erase->tenant);
    hearth_pg_param_text(&params, erase->selector);
    hearth_pg_param_i64(&params, erase->from_ns);
    hearth_pg_param_i64(&params, erase->to_ns);
    hearth_pg_param_text(&params, erase->requested_by);
    hearth_pg_param_i64(&params, (int64_t)erase->n);
    PGresult *result = NULL;
    HEARTH_TRY(run(erase,
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

/* Readers look for tombstones by the generation. */
static enum hearth_status hide(struct erase *erase, struct hearth_err *err)
{
    struct hearth_pg_params params;
    set_params(erase, &params);
    hearth_pg_param_i64(&params, erase->erasure_id);
    hearth_pg_param_i64(&params, erase->from_ns);
    hearth_pg_param_i64(&params, erase->to_ns);
    return run(erase,
               "INSERT INTO hearth_data.tombstone (service_id, erasure_id, from_ts, to_ts,"
               " series_ids) SELECT s, $3, $4, $5, array_agg(i ORDER BY i)"
               " FROM unnest($1::int4[], $2::int4[]) u (s, i) GROUP BY s",
               &params, NULL, err);
}

/* A service that nothing was rolled up of yet gets a row whose times are before everything. */
static enum hearth_status raise_generations(struct erase *erase, struct hearth_err *err)
{
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, &erase->arena);
    hearth_pg_param_i32_array(&params, erase->service_ids, erase->n);
    return run(erase,
               "INSERT INTO hearth_data.roll_state AS r (service_id, watermark, built_to,"
               " compacted_to, generation) SELECT s, t, t, t, 1 FROM (SELECT DISTINCT unnest($1) s)"
               " u, (SELECT -106751 * 86400000000000 t) v ORDER BY s"
               " ON CONFLICT (service_id) DO UPDATE SET generation = r.generation + 1",
               &params, NULL, err);
}

static enum hearth_status remove_hours(struct erase *erase, struct hearth_err *err)
{
    struct hearth_pg_params params;
    set_params(erase, &params);
    hearth_pg_param_i32(&params, erase->first_hour);
    hearth_pg_param_i32(&params, erase->last_hour);
    return run(erase,
               "DELETE FROM hearth_data.series_hour h USING unnest($1::int4[], $2::int4[]) u (s, i)"
               " WHERE h.service_id = u.s AND h.series_id = u.i AND h.hour BETWEEN $3 AND $4",
               &params, NULL, err);
}

static enum hearth_status erase_in_transaction(struct erase *erase, struct hearth_err *err)
{
    int32_t *services = NULL, *series = NULL;
    size_t n_doomed = 0;
    HEARTH_TRY(find_doomed(erase, &services, &series, &n_doomed, err));
    HEARTH_TRY(hearth_pg_script(erase->prune.pg, "BEGIN ISOLATION LEVEL READ COMMITTED",
                                erase->prune.ret_fault, err));
    HEARTH_TRY(log_erasure(erase, err));
    if (erase->n > 0) {
        HEARTH_TRY(hide(erase, err));
        HEARTH_TRY(raise_generations(erase, err));
        HEARTH_TRY(hearth_prune_lock(&erase->prune, err));
        HEARTH_TRY(remove_hours(erase, err));
        HEARTH_TRY(
            hearth_prune_series(&erase->prune, services, series, n_doomed, &erase->n_gone, err));
    }
    return hearth_pg_script(erase->prune.pg, "COMMIT", erase->prune.ret_fault, err);
}

/* A COMMIT that went unanswered is done again: a second deletion of the same does no harm. */
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
                                      const struct hearth_series_hit *hits, size_t n_hits,
                                      struct hearth_str selector, struct hearth_str requested_by,
                                      int64_t from_ns, int64_t to_ns, int64_t *ret_erasure_id,
                                      struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(store, err));
    if (from_ns > to_ns) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "the range to delete ends before it begins");
    }
    struct erase erase = {.store = store,
                          .tenant = tenant,
                          .selector = selector,
                          .requested_by = requested_by,
                          .from_ns = from_ns,
                          .to_ns = to_ns};
    hearth_arena_init(&erase.arena, ERASE_ARENA_BYTES);
    take_hours(&erase);
    enum hearth_status status = take_series(&erase, hits, n_hits, err);
    if (status == HEARTH_OK) {
        status = hearth_store_with_pg(store, NULL, erase_on, &erase, err);
    }
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

struct list {
    struct hearth_str tenant;
    struct hearth_arena *arena;
    struct hearth_erasure *erasures;
    size_t n;
};

static enum hearth_status take_erasures(struct list *list, const PGresult *rows,
                                        struct hearth_err *err)
{
    list->n = (size_t)PQntuples(rows);
    list->erasures = hearth_arena_array(list->arena, list->n, sizeof *list->erasures);
    for (size_t i = 0; i < list->n && list->erasures != NULL; i++) {
        int row = (int)i;
        list->erasures[i] = (struct hearth_erasure){
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
        if (list->erasures[i].selector.p == NULL || list->erasures[i].requested_by.p == NULL) {
            return HEARTH_FAIL_ARENA(err, list->arena);
        }
    }
    return list->erasures == NULL ? HEARTH_FAIL_ARENA(err, list->arena) : HEARTH_OK;
}

static enum hearth_status list_on(void *context, struct hearth_pg *pg,
                                  enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct list *list = context;
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
    HEARTH_TRY(hearth_store_check_open(store, err));
    struct list list = {.tenant = tenant, .arena = arena};
    HEARTH_TRY(hearth_store_with_pg(store, NULL, list_on, &list, err));
    *ret = list.erasures;
    *ret_n = list.n;
    return HEARTH_OK;
}
