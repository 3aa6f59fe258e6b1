/*
 * catalog_load.c -- bring the label indexes up to the database's version.
 *
 * Writers of the catalogue take the clock row's lock before anything else, so versions commit in
 * order: once the clock says v, every row of version <= v is visible, for good. A refresh reads the
 * clock and then, table by table, the rows between the version it knows and v; that nothing is new
 * costs one round trip. A refresh that fails half-way has added rows without moving the version;
 * the next one adds them again, which changes nothing. When the clock's epoch is another (catalog.h),
 * or a series returns that had lost all its hours here, everything is loaded anew.
 *
 * Hours are the mass (series times hours of the retention), so they come as one array per tenant
 * and hour instead of a row each; what PostgreSQL needs to gather them is bounded by work_mem.
 */
#include "hearth/base/log.h"
#include "hearth/base/metrics.h"

#include "catalog.h"

/* Rows applied under one write lock: about a millisecond, queries go in between. */
#define ROWS_PER_LOCK 2048

struct load {
    struct hearth_catalog *catalog;
    struct hearth_cancel *cancel;
    struct hearth_pg *pg;
    int64_t from, upto; /* versions above from, up to upto */
    int64_t epoch;
    struct hearth_arena arena; /* of one row */
    bool changed;
    bool lacks_series; /* an hour came of one that the index does not have (any more) */
};

/* Apply one row to the indexes; the write lock is held. */
typedef enum hearth_status
apply_row_fn(struct load *load, const PGresult *rows, int row, struct hearth_err *err);

static enum hearth_status index_of_row(const struct load *load,
                                       int32_t tenant_id,
                                       struct hearth_label_index **ret_index,
                                       struct hearth_err *err)
{
    *ret_index = hearth_catalog_index_of(load->catalog, tenant_id);
    if (*ret_index == NULL) {
        return HEARTH_FAIL(err, HEARTH_CORRUPT,
                           "the catalogue has rows of tenant %d, which it does not know",
                           (int)tenant_id);
    }
    return HEARTH_OK;
}

/* ---- one row of each table ---- */

static enum hearth_status
apply_tenant(struct load *load, const PGresult *rows, int row, struct hearth_err *err)
{
    return hearth_catalog_add_tenant(load->catalog, hearth_pg_i32(rows, row, 0),
                                     hearth_pg_str(rows, row, 1), err);
}

/* What the index says about a row, as an error that names the row. */
static enum hearth_status
outcome(enum hearth_status status, const char *what, int32_t id, struct hearth_err *err)
{
    if (status == HEARTH_OK) {
        return HEARTH_OK;
    }
    if (status == HEARTH_CORRUPT) {
        return HEARTH_FAIL(err, HEARTH_CORRUPT,
                           "the catalogue's %s %d is empty or refers to what is not there", what,
                           (int)id);
    }
    return HEARTH_FAIL(err, status, "no memory for the label index");
}

static enum hearth_status
apply_service(struct load *load, const PGresult *rows, int row, struct hearth_err *err)
{
    struct hearth_label_index *index = NULL;
    HEARTH_TRY(index_of_row(load, hearth_pg_i32(rows, row, 0), &index, err));
    int32_t id = hearth_pg_i32(rows, row, 1);
    return outcome(hearth_label_index_add_service(index, id, hearth_pg_str(rows, row, 2)),
                   "service", id, err);
}

static enum hearth_status
apply_pair(struct load *load, const PGresult *rows, int row, struct hearth_err *err)
{
    struct hearth_label_index *index = NULL;
    HEARTH_TRY(index_of_row(load, hearth_pg_i32(rows, row, 0), &index, err));
    int32_t id = hearth_pg_i32(rows, row, 1);
    return outcome(hearth_label_index_add_pair(index, id, hearth_pg_str(rows, row, 2),
                                               hearth_pg_str(rows, row, 3)),
                   "label pair", id, err);
}

static enum hearth_status
apply_shape(struct load *load, const PGresult *rows, int row, struct hearth_err *err)
{
    struct hearth_label_index *index = NULL;
    HEARTH_TRY(index_of_row(load, hearth_pg_i32(rows, row, 0), &index, err));
    struct hearth_str *type_ids = NULL;
    size_t n_types = 0;
    HEARTH_TRY(hearth_pg_str_array(rows, row, 2, &load->arena, &type_ids, &n_types, err));
    int32_t id = hearth_pg_i32(rows, row, 1);
    return outcome(hearth_label_index_add_shape(index, id, type_ids, n_types),
                   "list of profile types", id, err);
}

static enum hearth_status
apply_series(struct load *load, const PGresult *rows, int row, struct hearth_err *err)
{
    struct hearth_label_index *index = NULL;
    HEARTH_TRY(index_of_row(load, hearth_pg_i32(rows, row, 0), &index, err));
    int32_t service_id = hearth_pg_i32(rows, row, 1), series_id = hearth_pg_i32(rows, row, 2);
    int32_t *pair_ids = NULL;
    size_t n_pairs = 0;
    HEARTH_TRY(hearth_pg_i32_array(rows, row, 4, &load->arena, &pair_ids, &n_pairs, err));
    return outcome(hearth_label_index_add_series(index, series_id, service_id,
                                                 hearth_pg_i32(rows, row, 3), pair_ids, n_pairs),
                   "series", series_id, err);
}

/* All series of one tenant that have a profile in one hour. */
static enum hearth_status
apply_hour(struct load *load, const PGresult *rows, int row, struct hearth_err *err)
{
    struct hearth_label_index *index = NULL;
    HEARTH_TRY(index_of_row(load, hearth_pg_i32(rows, row, 0), &index, err));
    int32_t hour = hearth_pg_i32(rows, row, 1);
    int32_t *series_ids = NULL;
    size_t n = 0;
    HEARTH_TRY(hearth_pg_i32_array(rows, row, 2, &load->arena, &series_ids, &n, err));
    for (size_t i = 0; i < n; i++) {
        enum hearth_status status = hearth_label_index_add_hour(index, series_ids[i], hour);
        if (status == HEARTH_NOT_FOUND) { /* trimmed; or deleted, then its hours say nothing */
            load->lacks_series = true;
        } else {
            HEARTH_TRY(outcome(status, "series", series_ids[i], err));
        }
    }
    return HEARTH_OK;
}

/* ---- statements ---- */

static const struct {
    const char *sql; /* $1 < version <= $2; parents before what refers to them */
    apply_row_fn *apply;
} TABLES[] = {
    {"SELECT tenant_id, name FROM hearth_data.tenant WHERE version > $1 AND version <= $2",
     apply_tenant},
    {"SELECT tenant_id, service_id, name FROM hearth_data.service"
     " WHERE version > $1 AND version <= $2",
     apply_service},
    {"SELECT tenant_id, pair_id, name, value FROM hearth_data.label_pair"
     " WHERE version > $1 AND version <= $2",
     apply_pair},
    {"SELECT tenant_id, shape_id, profile_types FROM hearth_data.shape"
     " WHERE version > $1 AND version <= $2",
     apply_shape},
    {"SELECT tenant_id, service_id, series_id, shape_id, pair_ids FROM hearth_data.series"
     " WHERE version > $1 AND version <= $2",
     apply_series},
};

static const char SQL_HOURS[] = "SELECT tenant_id, hour, array_agg(series_id)"
                                " FROM hearth_data.series_hour"
                                " WHERE version > $1 AND version <= $2 GROUP BY 1, 2";
static enum hearth_status
apply_rows(struct load *load, const PGresult *rows, apply_row_fn *apply, struct hearth_err *err)
{
    int n = PQntuples(rows);
    enum hearth_status status = HEARTH_OK;
    for (int row = 0; row < n && status == HEARTH_OK;) {
        HEARTH_TRY(hearth_catalog_lock(load->catalog, load->cancel, err));
        int end = n - row > ROWS_PER_LOCK ? row + ROWS_PER_LOCK : n;
        for (; row < end && status == HEARTH_OK; row++) {
            status = apply(load, rows, row, err);
            hearth_arena_reset(&load->arena);
        }
        (void)pthread_rwlock_unlock(&load->catalog->rw);
    }
    load->changed = load->changed || n > 0;
    return status;
}

static void
versions_param(const struct load *load, struct hearth_arena *arena, struct hearth_pg_params *params)
{
    hearth_pg_params_init(params, arena);
    hearth_pg_param_i64(params, load->from);
    hearth_pg_param_i64(params, load->upto);
}

static enum hearth_status load_table(struct load *load,
                                     const char *sql,
                                     apply_row_fn *apply,
                                     enum hearth_pg_fault *ret_fault,
                                     struct hearth_err *err)
{
    struct hearth_pg_params params;
    versions_param(load, &load->arena, &params);
    PGresult *rows = NULL;
    HEARTH_TRY(hearth_pg_exec(load->pg, sql, &params, load->cancel, &rows, ret_fault, err));
    enum hearth_status status = apply_rows(load, rows, apply, err);
    PQclear(rows);
    return status;
}

/* One row of single-row mode: the array of an hour. */
static enum hearth_status visit_hour(void *context, const PGresult *row, struct hearth_err *err)
{
    return apply_rows(context, row, apply_hour, err);
}

static enum hearth_status
load_hours(struct load *load, enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct hearth_arena arena; /* not the row's, which is reset while the statement streams */
    struct hearth_pg_params params;
    hearth_arena_init(&arena, 0);
    versions_param(load, &arena, &params);
    enum hearth_status status = hearth_pg_stream(load->pg, SQL_HOURS, &params, load->cancel,
                                                 visit_hour, load, ret_fault, err);
    hearth_arena_release(&arena);
    return status;
}

/* ---- the whole ---- */

static enum hearth_status
read_clock(struct load *load, enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    PGresult *rows = NULL;
    HEARTH_TRY(hearth_pg_exec(load->pg, "SELECT version, epoch FROM hearth_data.catalog_clock",
                              NULL, load->cancel, &rows, ret_fault, err));
    enum hearth_status status = HEARTH_OK;
    if (PQntuples(rows) == 1) {
        load->upto = hearth_pg_i64(rows, 0, 0);
        load->epoch = hearth_pg_i64(rows, 0, 1);
    } else {
        status =
            HEARTH_FAIL(err, HEARTH_CORRUPT, "the catalogue's clock has %d rows", PQntuples(rows));
    }
    PQclear(rows);
    return status;
}

bool hearth_catalog_went_back(struct hearth_catalog *catalog, int64_t at_least, int64_t version)
{
    if (version >= at_least) {
        return false;
    }
    hearth_series_cache_clear(catalog->series);
    atomic_store(&catalog->must_load_all, true);
    atomic_store(&catalog->newest, version - 1); /* it may not be committed yet */
    return true;
}

void hearth_catalog_saw_epoch(struct hearth_catalog *catalog, int64_t epoch)
{
    /* First the number, then the memory: who puts something in looks at the number afterwards. */
    if (atomic_exchange(&catalog->epoch, epoch) != epoch) {
        hearth_series_cache_clear(catalog->series);
    }
}

void hearth_catalog_note(struct hearth_catalog *catalog, int64_t version)
{
    int64_t newest = atomic_load(&catalog->newest);
    while (newest < version && !atomic_compare_exchange_weak(&catalog->newest, &newest, version)) {
    }
}

static enum hearth_status start_over(struct load *load, struct hearth_err *err)
{
    HEARTH_LOG(HEARTH_LOG_DEBUG, "store", "loading the catalogue anew", "known",
               hearth_log_i64(load->from), "found", hearth_log_i64(load->upto), "epoch",
               hearth_log_i64(load->epoch), NULL);
    HEARTH_TRY(hearth_catalog_lock(load->catalog, load->cancel, err));
    hearth_catalog_forget(load->catalog);
    load->catalog->is_partial = true;
    load->catalog->version = 0;
    (void)pthread_rwlock_unlock(&load->catalog->rw);
    load->from = 0;
    atomic_store(&load->catalog->must_load_all, false);
    return HEARTH_OK;
}

static void count_series(const struct hearth_catalog *catalog)
{
    size_t n = 0;
    for (size_t i = 0; i < catalog->n_tenants; i++) {
        n += hearth_label_index_series(catalog->tenants[i].index);
    }
    hearth_metric_set(HEARTH_M_CATALOG_SERIES, (int64_t)n);
}

static enum hearth_status finish(struct load *load, struct hearth_err *err)
{
    if (load->catalog->is_partial) {
        HEARTH_TRY(hearth_catalog_lock(load->catalog, load->cancel, err));
        load->catalog->is_partial = false;
        (void)pthread_rwlock_unlock(&load->catalog->rw);
    }
    load->catalog->version = load->upto;
    load->catalog->loaded_epoch = load->epoch;
    return HEARTH_OK;
}

static enum hearth_status
load_tables(struct load *load, enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(TABLES); i++) {
        HEARTH_TRY(load_table(load, TABLES[i].sql, TABLES[i].apply, ret_fault, err));
    }
    return load_hours(load, ret_fault, err);
}

/* What is new, or everything. */
static enum hearth_status
load_new(struct load *load, enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    if (load->upto <= load->from) {
        return HEARTH_OK;
    }
    /* Everything may take longer than a query may: a timeout would only make it start again. */
    int64_t timeout_ms = load->pg->timeout_ms;
    load->pg->timeout_ms = load->from == 0 ? 0 : timeout_ms;
    load->lacks_series = false;
    enum hearth_status status = load_tables(load, ret_fault, err);
    load->pg->timeout_ms = timeout_ms;
    return status;
}

static enum hearth_status load_on(void *context,
                                  struct hearth_pg *pg,
                                  enum hearth_pg_fault *ret_fault,
                                  struct hearth_err *err)
{
    struct load *load = context;
    load->pg = pg;
    load->from = load->catalog->version;
    int64_t newest = atomic_load(&load->catalog->newest);
    HEARTH_TRY(read_clock(load, ret_fault, err));
    hearth_catalog_saw_epoch(load->catalog, load->epoch);
    if (hearth_catalog_went_back(load->catalog, newest, load->upto) ||
        atomic_load(&load->catalog->must_load_all) ||
        (load->from > 0 && load->epoch != load->catalog->loaded_epoch)) {
        HEARTH_TRY(start_over(load, err));
    }
    hearth_catalog_note(load->catalog, load->upto);
    HEARTH_TRY(load_new(load, ret_fault, err));
    if (load->lacks_series && load->from > 0) {
        HEARTH_TRY(start_over(load, err));
        HEARTH_TRY(load_new(load, ret_fault, err));
    }
    return finish(load, err);
}

enum hearth_status hearth_catalog_load(struct hearth_catalog *catalog,
                                       struct hearth_cancel *cancel,
                                       struct hearth_err *err)
{
    struct load load = {.catalog = catalog, .cancel = cancel};
    hearth_arena_init(&load.arena, 0);
    enum hearth_status status = hearth_store_with_pg(catalog->store, cancel, load_on, &load, err);
    hearth_arena_release(&load.arena);
    if (load.changed) {
        hearth_metric_add(HEARTH_M_CATALOG_REFRESH, 1);
        /* Only this thread changes the indexes, so it may read them without the lock. */
        count_series(catalog);
    }
    return status;
}

enum hearth_status
hearth_catalog_trim(struct hearth_catalog *catalog, int32_t hour, struct hearth_err *err)
{
    HEARTH_TRY(hearth_catalog_lock(catalog, NULL, err));
    for (size_t i = 0; i < catalog->n_tenants; i++) {
        hearth_label_index_trim(catalog->tenants[i].index, hour);
    }
    (void)pthread_rwlock_unlock(&catalog->rw);
    return HEARTH_OK;
}
