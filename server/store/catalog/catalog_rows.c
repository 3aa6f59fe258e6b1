/*
 * catalog_rows.c -- the statements that load label indexes, and the effect of their rows.
 *
 * Most rows are hours (series times hours of the retention), so the statement returns one array per
 * tenant and hour instead of a row each; work_mem bounds the memory in which PostgreSQL gathers
 * them.
 */
#include "catalog/catalog_load.h"
#include "pg/pg.h"

#include <assert.h>

/* Rows applied under one write lock: about a millisecond. Queries can read in between. */
#define ROWS_PER_LOCK 2048

/* Return the index for rows of a tenant; NULL: it is not in memory. */
static enum hearth_status index_of_row(const struct hearth_load *load, int32_t tenant_id,
                                       struct hearth_label_index **ret_index,
                                       struct hearth_err *err)
{
    *ret_index = load->into;
    if (load->into != NULL) {
        return HEARTH_OK;
    }

    const struct hearth_catalog_tenant *tenant = hearth_catalog_tenant_of(load->catalog, tenant_id);
    if (tenant == NULL) {
        return HEARTH_FAIL(err, HEARTH_CORRUPT,
                           "the catalogue has rows of tenant %d but not the tenant itself",
                           (int)tenant_id);
    }

    *ret_index = tenant->index;

    return HEARTH_OK;
}

/* ---- one row of each table ---- */

static enum hearth_status apply_tenant(struct hearth_load *load, const PGresult *rows, int row,
                                       struct hearth_err *err)
{
    return hearth_catalog_add_tenant(load->catalog, hearth_pg_i32(rows, row, 0),
                                     hearth_pg_str(rows, row, 1), err);
}

/* The tenant with the number of its series, without an index. */
static enum hearth_status apply_counted_tenant(struct hearth_load *load, const PGresult *rows,
                                               int row, struct hearth_err *err)
{
    HEARTH_TRY(apply_tenant(load, rows, row, err));

    struct hearth_catalog_tenant *tenant =
        hearth_catalog_tenant_of(load->catalog, hearth_pg_i32(rows, row, 0));
    int64_t n = hearth_pg_i64(rows, row, 2);
    hearth_label_index_free(tenant->index);
    tenant->index = NULL;
    tenant->n_series = n < 0 ? 0 : (size_t)n;

    return HEARTH_OK;
}

/* Turn the status of adding a row to an index into an error that names the row. */
static enum hearth_status check_added(enum hearth_status status, const char *what, int32_t id,
                                      struct hearth_err *err)
{
    if (status == HEARTH_OK) {
        return HEARTH_OK;
    }

    if (status == HEARTH_CORRUPT) {
        return HEARTH_FAIL(err, HEARTH_CORRUPT,
                           "the catalogue's %s %d is empty or refers to a row that does not exist",
                           what, (int)id);
    }

    return HEARTH_FAIL(err, status, "no memory for the label index");
}

static enum hearth_status apply_service(struct hearth_load *load, const PGresult *rows, int row,
                                        struct hearth_err *err)
{
    struct hearth_label_index *index = NULL;
    HEARTH_TRY(index_of_row(load, hearth_pg_i32(rows, row, 0), &index, err));
    if (index == NULL) {
        return HEARTH_OK;
    }

    int32_t id = hearth_pg_i32(rows, row, 1);

    return check_added(hearth_label_index_add_service(index, id, hearth_pg_str(rows, row, 2)),
                       "service", id, err);
}

static enum hearth_status apply_pair(struct hearth_load *load, const PGresult *rows, int row,
                                     struct hearth_err *err)
{
    struct hearth_label_index *index = NULL;
    HEARTH_TRY(index_of_row(load, hearth_pg_i32(rows, row, 0), &index, err));
    if (index == NULL) {
        return HEARTH_OK;
    }

    int32_t id = hearth_pg_i32(rows, row, 1);

    return check_added(hearth_label_index_add_pair(index, id, hearth_pg_str(rows, row, 2),
                                                   hearth_pg_str(rows, row, 3)),
                       "label pair", id, err);
}

static enum hearth_status apply_shape(struct hearth_load *load, const PGresult *rows, int row,
                                      struct hearth_err *err)
{
    struct hearth_label_index *index = NULL;
    HEARTH_TRY(index_of_row(load, hearth_pg_i32(rows, row, 0), &index, err));
    if (index == NULL) {
        return HEARTH_OK;
    }

    struct hearth_str *type_ids = NULL;
    size_t n_types = 0;
    HEARTH_TRY(hearth_pg_str_array(rows, row, 2, &load->arena, &type_ids, &n_types, err));
    int32_t id = hearth_pg_i32(rows, row, 1);

    return check_added(hearth_label_index_add_shape(index, id, type_ids, n_types),
                       "list of profile types", id, err);
}

static enum hearth_status apply_series(struct hearth_load *load, const PGresult *rows, int row,
                                       struct hearth_err *err)
{
    struct hearth_label_index *index = NULL;
    HEARTH_TRY(index_of_row(load, hearth_pg_i32(rows, row, 0), &index, err));

    /* Count series that the index will not count. */
    if (load->into == NULL && (index == NULL || hearth_label_index_is_cut(index))) {
        struct hearth_catalog_tenant *tenant =
            hearth_catalog_tenant_of(load->catalog, hearth_pg_i32(rows, row, 0));
        size_t n_known = index == NULL ? 0 : hearth_label_index_series(index);
        tenant->n_series = tenant->n_series < n_known ? n_known : tenant->n_series;
        tenant->n_more++;
    }

    if (index == NULL) {
        return HEARTH_OK;
    }

    /* Add the series. */
    int32_t service_id = hearth_pg_i32(rows, row, 1), series_id = hearth_pg_i32(rows, row, 2);
    int32_t *pair_ids = NULL;
    size_t n_pairs = 0;
    HEARTH_TRY(hearth_pg_i32_array(rows, row, 4, &load->arena, &pair_ids, &n_pairs, err));

    return check_added(hearth_label_index_add_series(index, series_id, service_id,
                                                     hearth_pg_i32(rows, row, 3), pair_ids,
                                                     n_pairs),
                       "series", series_id, err);
}

/* All series of one tenant that have a profile in one hour. */
static enum hearth_status apply_hour(struct hearth_load *load, const PGresult *rows, int row,
                                     struct hearth_err *err)
{
    struct hearth_label_index *index = NULL;
    HEARTH_TRY(index_of_row(load, hearth_pg_i32(rows, row, 0), &index, err));
    if (index == NULL) {
        return HEARTH_OK;
    }

    int32_t hour = hearth_pg_i32(rows, row, 1);
    int32_t *series_ids = NULL;
    size_t n = 0;
    HEARTH_TRY(hearth_pg_i32_array(rows, row, 2, &load->arena, &series_ids, &n, err));

    for (size_t i = 0; i < n; i++) {
        enum hearth_status status = hearth_label_index_add_hour(index, series_ids[i], hour);
        if (status == HEARTH_NOT_FOUND) { /* removed by a trim; or deleted, with its hours */
            load->lacks_series = true;
        } else {
            HEARTH_TRY(check_added(status, "series", series_ids[i], err));
        }
    }

    return HEARTH_OK;
}

/* ---- statements: $1 < version <= $2; tenants $3, or all if the array is empty ---- */

/* Served by the indexes on `version`, which each table has. */
#define OF_VERSIONS " WHERE version > $1 AND version <= $2"
#define OF_TENANTS  OF_VERSIONS " AND ($3::int4[] = '{}' OR tenant_id = ANY ($3))"
/* For few tenants: uses the primary keys of series and series_hour, which begin with service_id. */
#define OF_SERVICES                                                   \
    OF_VERSIONS " AND service_id = ANY (ARRAY(SELECT service_id FROM" \
                " hearth_data.service WHERE tenant_id = ANY ($3::int4[])))"
#define SERIES "SELECT tenant_id, service_id, series_id, shape_id, pair_ids FROM hearth_data.series"
#define HOURS  "SELECT tenant_id, hour, array_agg(series_id) FROM hearth_data.series_hour"

static const char SQL_TENANTS[] = "SELECT tenant_id, name FROM hearth_data.tenant" OF_TENANTS;
static const char SQL_COUNTED_TENANTS[] =
    "SELECT t.tenant_id, t.name, coalesce(s.n, 0) FROM (SELECT * FROM hearth_data.tenant" OF_TENANTS
    ") t LEFT JOIN (SELECT tenant_id, count(*) AS n FROM hearth_data.series" OF_TENANTS
    " GROUP BY 1) s ON s.tenant_id = t.tenant_id";

/* In the order of references: a series refers to rows of all tables above it. */
static const struct {
    const char *sql;
    const char *sql_of_few; /* for few tenants; NULL: the same as sql */
    hearth_apply_row_fn *apply;
} TABLES[] = {
    {"SELECT tenant_id, service_id, name FROM hearth_data.service" OF_TENANTS, NULL, apply_service},
    {"SELECT tenant_id, pair_id, name, value FROM hearth_data.label_pair" OF_TENANTS, NULL,
     apply_pair},
    {"SELECT tenant_id, shape_id, profile_types FROM hearth_data.shape" OF_TENANTS, NULL,
     apply_shape},
    {SERIES OF_TENANTS, SERIES OF_SERVICES, apply_series},
};

static const char SQL_HOURS[] = HOURS OF_TENANTS " GROUP BY 1, 2";
static const char SQL_HOURS_OF_FEW[] = HOURS OF_SERVICES " GROUP BY 1, 2";

/* Apply rows *row to end - 1. *row becomes the first row that was not applied. */
static enum hearth_status apply_range(struct hearth_load *load, const PGresult *rows, int *row,
                                      int end, hearth_apply_row_fn *apply, struct hearth_err *err)
{
    assert(*row <= end && end <= PQntuples(rows));

    enum hearth_status status = HEARTH_OK;
    for (; *row < end && status == HEARTH_OK; ++*row) {
        status = apply(load, rows, *row, err);
        hearth_arena_reset(&load->arena);
    }

    return status;
}

static enum hearth_status apply_rows(struct hearth_load *load, const PGresult *rows,
                                     hearth_apply_row_fn *apply, struct hearth_err *err)
{
    int n = PQntuples(rows);
    enum hearth_status status = HEARTH_OK;

    for (int row = 0; row < n && status == HEARTH_OK;) {
        int end = n - row > ROWS_PER_LOCK ? row + ROWS_PER_LOCK : n;
        if (load->into != NULL) { /* no other thread has the index yet */
            HEARTH_TRY(hearth_cancel_check(load->cancel, err));
            status = apply_range(load, rows, &row, end, apply, err);
            continue;
        }

        HEARTH_TRY(hearth_catalog_lock(load->catalog, load->cancel, err));
        status = apply_range(load, rows, &row, end, apply, err);
        hearth_catalog_unlock(load->catalog);
    }

    load->changed = load->changed || n > 0;

    return status;
}

/*
 * $1 and $2: versions; $3: tenants. The parameters have their own arena, because that of rows is
 * reset while a statement streams.
 */
static void make_load_params(struct hearth_load *load, struct hearth_pg_params *params)
{
    hearth_arena_reset(&load->params);
    hearth_pg_params_init(params, &load->params);
    hearth_pg_param_i64(params, load->from);
    hearth_pg_param_i64(params, load->upto);
    hearth_pg_param_i32_array(params, load->tenant_ids, load->n_tenant_ids);
}

static enum hearth_status load_table(struct hearth_load *load, const char *sql,
                                     hearth_apply_row_fn *apply, enum hearth_pg_fault *ret_fault,
                                     struct hearth_err *err)
{
    struct hearth_pg_params params;
    make_load_params(load, &params);

    PGresult *rows = NULL;
    HEARTH_TRY(hearth_pg_exec(load->pg, sql, &params, load->cancel, &rows, ret_fault, err));
    enum hearth_status status = apply_rows(load, rows, apply, err);
    PQclear(rows);
    return status;
}

static enum hearth_status apply_streamed_row(void *context, const PGresult *row,
                                             struct hearth_err *err)
{
    struct hearth_load *load = context;

    return apply_rows(load, row, load->visit, err);
}

/* Row by row: a whole catalogue as one result would take more memory than its indexes. */
static enum hearth_status stream_table(struct hearth_load *load, const char *sql,
                                       hearth_apply_row_fn *apply, enum hearth_pg_fault *ret_fault,
                                       struct hearth_err *err)
{
    struct hearth_pg_params params;
    make_load_params(load, &params);
    load->visit = apply;

    return hearth_pg_stream(load->pg, sql, &params, load->cancel, apply_streamed_row, load,
                            ret_fault, err);
}

enum hearth_status hearth_load_tables(struct hearth_load *load, enum hearth_pg_fault *ret_fault,
                                      struct hearth_err *err)
{
    assert(load->pg != NULL && (load->into == NULL || load->n_tenant_ids > 0));

    bool few = load->into != NULL;
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(TABLES); i++) {
        const char *sql =
            few && TABLES[i].sql_of_few != NULL ? TABLES[i].sql_of_few : TABLES[i].sql;
        /* New rows are few and are applied under few locks. A whole table is streamed. */
        HEARTH_TRY(load->from > 0 ? load_table(load, sql, TABLES[i].apply, ret_fault, err)
                                  : stream_table(load, sql, TABLES[i].apply, ret_fault, err));
    }

    return stream_table(load, few ? SQL_HOURS_OF_FEW : SQL_HOURS, apply_hour, ret_fault, err);
}

/* ---- clock and tenants ---- */

enum hearth_status hearth_load_clock(struct hearth_load *load, enum hearth_pg_fault *ret_fault,
                                     struct hearth_err *err)
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

enum hearth_status hearth_load_tenants(struct hearth_load *load, bool with_counts,
                                       enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    return with_counts ? load_table(load, SQL_COUNTED_TENANTS, apply_counted_tenant, ret_fault, err)
                       : load_table(load, SQL_TENANTS, apply_tenant, ret_fault, err);
}
