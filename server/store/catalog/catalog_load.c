/*
 * catalog_load.c -- bring the label indexes up to the database's version.
 *
 * Writers of the catalogue take the clock row's lock before anything else, so versions commit in
 * order: once the clock says v, every row of version <= v is visible, for good. A refresh reads the
 * clock and then, table by table, the rows between the version it knows and v; that nothing is new
 * costs one round trip. A refresh that fails half-way has added rows without moving the version;
 * the next one adds them again, which changes nothing. When the clock's epoch is another (catalog.h),
 * or a series returns that had lost all its hours here, everything is loaded anew: all tenants with
 * the number of their series, and the rows of as many as are likely to fit, those first that were
 * asked last. Rows of tenants whose index is not in memory are passed over, series counted.
 *
 * Hours are the mass (series times hours of the retention), so they come as one array per tenant
 * and hour instead of a row each; what PostgreSQL needs to gather them is bounded by work_mem.
 */
#include "catalog/catalog_load.h"

#include "hearth/base/clock.h"
#include "hearth/base/log.h"
#include "hearth/base/metrics.h"

#include "pg/pg.h"
#include "pg/session.h"
#include "pg/store_state.h"

#include <stdlib.h>

/* Rows applied under one write lock: about a millisecond, queries go in between. */
#define ROWS_PER_LOCK 2048
/* What a series takes in the index, for choosing whom to load; measured: 350 to 450. */
#define SERIES_BYTES ((size_t)512)
#define TENANT_BYTES ((size_t)8192)

/* The index that a row goes into, NULL when it is not in memory. */
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
                           "the catalogue has rows of tenant %d, which it does not know",
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

/* The same with the number of its series, and no index for now. */
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

/* What the index says about a row, as an error that names the row. */
static enum hearth_status outcome(enum hearth_status status, const char *what, int32_t id,
                                  struct hearth_err *err)
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

static enum hearth_status apply_service(struct hearth_load *load, const PGresult *rows, int row,
                                        struct hearth_err *err)
{
    struct hearth_label_index *index = NULL;
    HEARTH_TRY(index_of_row(load, hearth_pg_i32(rows, row, 0), &index, err));
    if (index == NULL) {
        return HEARTH_OK;
    }

    int32_t id = hearth_pg_i32(rows, row, 1);

    return outcome(hearth_label_index_add_service(index, id, hearth_pg_str(rows, row, 2)),
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

    return outcome(hearth_label_index_add_pair(index, id, hearth_pg_str(rows, row, 2),
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

    return outcome(hearth_label_index_add_shape(index, id, type_ids, n_types),
                   "list of profile types", id, err);
}

static enum hearth_status apply_series(struct hearth_load *load, const PGresult *rows, int row,
                                       struct hearth_err *err)
{
    struct hearth_label_index *index = NULL;
    HEARTH_TRY(index_of_row(load, hearth_pg_i32(rows, row, 0), &index, err));
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

    int32_t service_id = hearth_pg_i32(rows, row, 1), series_id = hearth_pg_i32(rows, row, 2);
    int32_t *pair_ids = NULL;
    size_t n_pairs = 0;
    HEARTH_TRY(hearth_pg_i32_array(rows, row, 4, &load->arena, &pair_ids, &n_pairs, err));

    return outcome(hearth_label_index_add_series(index, series_id, service_id,
                                                 hearth_pg_i32(rows, row, 3), pair_ids, n_pairs),
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
        if (status == HEARTH_NOT_FOUND) { /* trimmed; or deleted, then its hours say nothing */
            load->lacks_series = true;
        } else {
            HEARTH_TRY(outcome(status, "series", series_ids[i], err));
        }
    }

    return HEARTH_OK;
}

/* ---- statements: $1 < version <= $2, of the tenants $3, or of all ---- */

#define OF_VERSIONS " WHERE version > $1 AND version <= $2"
#define OF_TENANTS  OF_VERSIONS " AND ($3::int4[] = '{}' OR tenant_id = ANY ($3))"
/* Of few tenants: through the keys of the large tables. */
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

static const struct {
    const char *sql, *sql_of_few; /* parents before what refers to them */
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

static enum hearth_status apply_some(struct hearth_load *load, const PGresult *rows, int *row,
                                     int end, hearth_apply_row_fn *apply, struct hearth_err *err)
{
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
        if (load->into != NULL) { /* nobody else has it yet */
            HEARTH_TRY(hearth_cancel_check(load->cancel, err));
            status = apply_some(load, rows, &row, end, apply, err);
            continue;
        }
        HEARTH_TRY(hearth_catalog_lock(load->catalog, load->cancel, err));
        status = apply_some(load, rows, &row, end, apply, err);
        hearth_catalog_unlock(load->catalog);
    }

    load->changed = load->changed || n > 0;

    return status;
}

static void make_params(struct hearth_load *load, struct hearth_pg_params *params)
{
    hearth_arena_reset(&load->params); /* not the row's, which is reset while a statement streams */
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
    make_params(load, &params);
    PGresult *rows = NULL;
    HEARTH_TRY(hearth_pg_exec(load->pg, sql, &params, load->cancel, &rows, ret_fault, err));
    enum hearth_status status = apply_rows(load, rows, apply, err);
    PQclear(rows);
    return status;
}

/* Row by row: a whole catalogue as one result would take more memory than its indexes. */
static enum hearth_status visit_row(void *context, const PGresult *row, struct hearth_err *err)
{
    struct hearth_load *load = context;
    return apply_rows(load, row, load->visit, err);
}

static enum hearth_status stream_table(struct hearth_load *load, const char *sql,
                                       hearth_apply_row_fn *apply, enum hearth_pg_fault *ret_fault,
                                       struct hearth_err *err)
{
    struct hearth_pg_params params;
    make_params(load, &params);
    load->visit = apply;
    return hearth_pg_stream(load->pg, sql, &params, load->cancel, visit_row, load, ret_fault, err);
}

/* Everything but the tenants themselves. */
enum hearth_status hearth_load_tables(struct hearth_load *load, enum hearth_pg_fault *ret_fault,
                                      struct hearth_err *err)
{
    bool few = load->into != NULL;
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(TABLES); i++) {
        const char *sql =
            few && TABLES[i].sql_of_few != NULL ? TABLES[i].sql_of_few : TABLES[i].sql;
        /* What is new is little, and comes under few locks; everything is read before it is to be seen. */
        HEARTH_TRY(load->from > 0 ? load_table(load, sql, TABLES[i].apply, ret_fault, err)
                                  : stream_table(load, sql, TABLES[i].apply, ret_fault, err));
    }

    return stream_table(load, few ? SQL_HOURS_OF_FEW : SQL_HOURS, apply_hour, ret_fault, err);
}

/* ---- the whole ---- */

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

/* ---- everything anew ---- */

/* A tenant that may get its index loaded. */
struct candidate {
    int32_t tenant_id;
    int64_t asked_mono_ns;
    size_t n_series;
};

static int by_id(const void *left, const void *right)
{
    const struct candidate *a = left, *b = right;
    return (a->tenant_id > b->tenant_id) - (a->tenant_id < b->tenant_id);
}

/* The last asked first; of those that nobody asked, the small ones. */
static int by_merit(const void *left, const void *right)
{
    const struct candidate *a = left, *b = right;
    if (a->asked_mono_ns != b->asked_mono_ns) {
        return a->asked_mono_ns > b->asked_mono_ns ? -1 : 1;
    }

    if (a->n_series != b->n_series) {
        return a->n_series < b->n_series ? -1 : 1;
    }

    return by_id(left, right);
}

static enum hearth_status list_tenants(const struct hearth_load *load, struct hearth_arena *arena,
                                       struct candidate **ret, size_t *ret_n,
                                       struct hearth_err *err)
{
    size_t n = load->catalog->n_tenants;
    struct candidate *list = hearth_arena_array(arena, n, sizeof list[0]);

    if (list == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (size_t i = 0; i < n; i++) {
        struct hearth_catalog_tenant *tenant = &load->catalog->tenants[i];
        list[i] = (struct candidate){tenant->tenant_id, atomic_load(&tenant->asked_mono_ns),
                                     tenant->n_series};
    }

    *ret = list;
    *ret_n = n;

    return HEARTH_OK;
}

/* Empty indexes for those that are likely to fit; load->tenant_ids are theirs. */
static enum hearth_status choose_tenants(struct hearth_load *load, const struct candidate *asked,
                                         size_t n_asked, struct hearth_arena *arena,
                                         struct hearth_err *err)
{
    struct candidate *list = NULL;
    size_t n = 0, n_chosen = 0, n_bytes = 0;
    size_t limit = load->catalog->store->options.label_index_bytes;

    HEARTH_TRY(list_tenants(load, arena, &list, &n, err));
    int32_t *chosen = hearth_arena_array(arena, n + 1, sizeof chosen[0]);
    if (chosen == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (size_t i = 0; i < n && n_asked > 0; i++) {
        const struct candidate *before = bsearch(&list[i], asked, n_asked, sizeof *asked, by_id);
        list[i].asked_mono_ns = before == NULL ? 0 : before->asked_mono_ns;
    }

    if (n > 0) {
        qsort(list, n, sizeof list[0], by_merit);
    }

    for (size_t i = 0; i < n; i++) {
        struct hearth_catalog_tenant *tenant =
            hearth_catalog_tenant_of(load->catalog, list[i].tenant_id);
        size_t more = TENANT_BYTES + list[i].n_series * SERIES_BYTES;
        atomic_store(&tenant->asked_mono_ns, list[i].asked_mono_ns);
        if (limit > 0 && (more > limit || n_bytes > limit - more)) {
            continue;
        }
        n_bytes += more;
        chosen[n_chosen++] = list[i].tenant_id;
        tenant->index = hearth_catalog_new_index(load->catalog);
        if (tenant->index == NULL) {
            return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the label index of a tenant");
        }
    }

    chosen[n_chosen] = 0; /* nobody: an empty list would be everyone */
    load->tenant_ids = chosen;
    load->n_tenant_ids = n_chosen == n ? 0 : n_chosen > 0 ? n_chosen : 1;

    return HEARTH_OK;
}

static enum hearth_status load_all_rows(struct hearth_load *load, struct hearth_arena *arena,
                                        enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct hearth_catalog *catalog = load->catalog;
    struct candidate *asked = NULL;
    size_t n_asked = 0;

    HEARTH_TRY(list_tenants(load, arena, &asked, &n_asked, err));
    if (n_asked > 0) {
        qsort(asked, n_asked, sizeof asked[0], by_id);
    }

    HEARTH_TRY(hearth_catalog_lock(catalog, load->cancel, err));
    hearth_catalog_forget(catalog);
    catalog->is_partial = true;
    catalog->version = 0;
    hearth_catalog_unlock(catalog);
    load->from = 0;
    atomic_store(&catalog->must_load_all, false);
    (void)atomic_fetch_add(&catalog->n_starts, 1);
    HEARTH_TRY(load_table(load, SQL_COUNTED_TENANTS, apply_counted_tenant, ret_fault, err));
    HEARTH_TRY(hearth_catalog_lock(catalog, load->cancel, err));
    enum hearth_status status = choose_tenants(load, asked, n_asked, arena, err);
    hearth_catalog_unlock(catalog);
    HEARTH_TRY(status);

    return hearth_load_tables(load, ret_fault, err);
}

static enum hearth_status load_all(struct hearth_load *load, enum hearth_pg_fault *ret_fault,
                                   struct hearth_err *err)
{
    HEARTH_LOG(HEARTH_LOG_DEBUG, "store", "loading the catalogue anew", "known",
               hearth_log_i64(load->from), "found", hearth_log_i64(load->upto), "epoch",
               hearth_log_i64(load->epoch), NULL);
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);

    /* It may take longer than a query may: a timeout would only make it start again. */
    int64_t timeout_ms = load->pg->timeout_ms;
    load->pg->timeout_ms = 0;
    enum hearth_status status = load_all_rows(load, &arena, ret_fault, err);
    load->pg->timeout_ms = timeout_ms;
    load->tenant_ids = NULL;
    load->n_tenant_ids = 0;
    hearth_arena_release(&arena);

    return status;
}

/* ---- the refresh ---- */

/* What is new of all tenants. */
static enum hearth_status load_new(struct hearth_load *load, enum hearth_pg_fault *ret_fault,
                                   struct hearth_err *err)
{
    struct hearth_catalog *catalog = load->catalog;
    load->lacks_series = false;
    for (size_t i = 0; i < catalog->n_tenants; i++) {
        catalog->tenants[i].n_more = 0; /* of a refresh that failed */
    }
    HEARTH_TRY(load_table(load, SQL_TENANTS, apply_tenant, ret_fault, err));
    return hearth_load_tables(load, ret_fault, err);
}

static enum hearth_status finish(struct hearth_load *load, struct hearth_err *err)
{
    struct hearth_catalog *catalog = load->catalog;
    bool more = catalog->is_partial;

    for (size_t i = 0; i < catalog->n_tenants && !more; i++) {
        more = catalog->tenants[i].n_more > 0;
    }

    if (more) {
        HEARTH_TRY(hearth_catalog_lock(catalog, load->cancel, err));
        for (size_t i = 0; i < catalog->n_tenants; i++) {
            /* A full load has counted them already. */
            catalog->tenants[i].n_series += load->from > 0 ? catalog->tenants[i].n_more : 0;
            catalog->tenants[i].n_more = 0;
        }
        catalog->is_partial = false;
        hearth_catalog_unlock(catalog);
    }

    catalog->version = load->upto;
    catalog->loaded_epoch = load->epoch;

    return HEARTH_OK;
}

static enum hearth_status load_on(void *context, struct hearth_pg *pg,
                                  enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct hearth_load *load = context;
    load->pg = pg;
    load->from = load->catalog->version;
    int64_t newest = atomic_load(&load->catalog->newest);
    HEARTH_TRY(hearth_load_clock(load, ret_fault, err));
    hearth_catalog_saw_epoch(load->catalog, load->epoch);
    bool all = hearth_catalog_went_back(load->catalog, newest, load->upto) ||
               atomic_load(&load->catalog->must_load_all) ||
               (load->from > 0 && load->epoch != load->catalog->loaded_epoch) ||
               (load->from == 0 && load->upto > 0);
    hearth_catalog_note(load->catalog, load->upto);
    if (!all) {
        HEARTH_TRY(hearth_load_adopt(load, ret_fault, err));
    }

    if (!all && load->upto > load->from) {
        HEARTH_TRY(load_new(load, ret_fault, err));
        all = load->lacks_series;
    }

    if (all) {
        HEARTH_TRY(load_all(load, ret_fault, err));
    }

    return finish(load, err);
}

enum hearth_status hearth_catalog_load(struct hearth_catalog *catalog, struct hearth_cancel *cancel,
                                       struct hearth_err *err)
{
    struct hearth_load load = {.catalog = catalog, .cancel = cancel};
    hearth_arena_init(&load.arena, 0);
    hearth_arena_init(&load.params, 0);
    enum hearth_status status = hearth_store_with_pg(catalog->store, cancel, load_on, &load, err);
    hearth_arena_release(&load.arena);
    hearth_arena_release(&load.params);
    if (load.changed) {
        hearth_metric_add(HEARTH_M_CATALOG_REFRESH, 1);
    }

    if (load.changed || catalog->is_over) {
        hearth_catalog_shrink(catalog);
    }

    return status;
}

enum hearth_status hearth_catalog_trim(struct hearth_catalog *catalog, int32_t hour,
                                       struct hearth_err *err)
{
    HEARTH_TRY(hearth_catalog_lock(catalog, NULL, err));
    for (size_t i = 0; i < catalog->n_tenants; i++) {
        if (catalog->tenants[i].index != NULL) {
            hearth_label_index_trim(catalog->tenants[i].index, hour);
        }
    }

    hearth_catalog_unlock(catalog);

    return HEARTH_OK;
}
