/*
 * catalog_tables.c -- services, shapes, label pairs and series of a group: look them up, insert the
 * missing ones.
 *
 * All statements work on sets: one looks up services, shapes and pairs, one the series, and each
 * table with missing rows costs one more.
 */
#include "hearth/base/limit.h"
#include "hearth/base/mem.h"
#include "hearth/store/settings.h"

#include "catalog/catalog.h"
#include "catalog/catalog_group.h"
#include "catalog/services.h"
#include "pg/pg.h"
#include "pg/store_state.h"

#include <assert.h>
#include <endian.h>

enum hearth_status hearth_group_no_memory(const struct hearth_group *group)
{
    return HEARTH_FAIL(group->err, HEARTH_NO_MEMORY, "no memory to write new series");
}

/* ---- distinct rows ---- */

static struct hearth_hash128 hash_row_key(int32_t parent, struct hearth_hash128 fingerprint)
{
    return (struct hearth_hash128){hearth_hash_mix(fingerprint.lo, (uint32_t)parent),
                                   fingerprint.hi};
}

uint32_t hearth_group_intern(struct hearth_group_rows *rows, int32_t parent,
                             struct hearth_hash128 fingerprint, bool *ret_new)
{
    if (rows->n >= UINT32_MAX - 1 ||
        !hearth_mem_grow(&rows->v, &rows->cap, rows->n + 1, sizeof rows->v[0])) {
        return HEARTH_IDMAP_NONE;
    }

    uint32_t at = hearth_idmap_intern(&rows->map, hash_row_key(parent, fingerprint),
                                      (uint32_t)rows->n, ret_new);
    if (at != HEARTH_IDMAP_NONE && *ret_new) {
        rows->v[rows->n++] =
            (struct hearth_group_row){.fingerprint = fingerprint, .parent = parent};
    }

    return at;
}

static void release_rows(struct hearth_group_rows *rows)
{
    hearth_idmap_release(&rows->map);
    hearth_mem_free(rows->v);
    *rows = (struct hearth_group_rows){0};
}

void hearth_group_reset(struct hearth_group *group)
{
    for (int table = 0; table < HEARTH_GROUP_N_TABLES; table++) {
        release_rows(&group->tables[table]);
    }
    hearth_arena_reset(&group->arena);
    group->n_pair_ids = 0;
}

/* ---- statements and their rows ---- */

enum hearth_status hearth_group_run(struct hearth_group *group, const char *sql,
                                    struct hearth_pg_params *params, PGresult **ret_result)
{
    return hearth_pg_exec(group->pg, sql, params, NULL, ret_result, group->ret_fault, group->err);
}

/*
 * Add the keys of the rows without an id as int4[] and uuid[]. (*ret_index)[i] is the index in
 * `rows` of key i.
 */
static enum hearth_status add_key_params(struct hearth_group *group,
                                         const struct hearth_group_rows *rows,
                                         struct hearth_pg_params *params, uint32_t **ret_index,
                                         size_t *ret_n)
{
    int32_t *parents = hearth_arena_array(&group->arena, rows->n, sizeof *parents);
    struct hearth_hash128 *prints = hearth_arena_array(&group->arena, rows->n, sizeof *prints);
    uint32_t *index = hearth_arena_array(&group->arena, rows->n, sizeof *index);

    if (parents == NULL || prints == NULL || index == NULL) {
        return hearth_group_no_memory(group);
    }

    size_t n = 0;
    for (size_t i = 0; i < rows->n; i++) {
        if (rows->v[i].id == 0) {
            parents[n] = rows->v[i].parent;
            prints[n] = rows->v[i].fingerprint;
            index[n++] = (uint32_t)i;
        }
    }

    hearth_pg_param_i32_array(params, parents, n);
    hearth_pg_param_uuid_array(params, prints, n);
    *ret_index = index;
    *ret_n = n;

    return HEARTH_OK;
}

static struct hearth_hash128 read_uuid_column(const PGresult *result, int row, int column)
{
    struct hearth_str bytes = hearth_pg_str(result, row, column);
    uint64_t hi, lo;
    HEARTH_ASSERT(bytes.n == sizeof hi + sizeof lo);
    memcpy(&hi, bytes.p, sizeof hi);
    memcpy(&lo, bytes.p + sizeof hi, sizeof lo);
    return (struct hearth_hash128){.lo = be64toh(lo), .hi = be64toh(hi)};
}

/* Set the ids of rows. Rows of the result: table, parent, fingerprint, id. */
static enum hearth_status take_row_ids(struct hearth_group *group, const PGresult *result)
{
    for (int i = 0; i < PQntuples(result); i++) {
        int32_t table = hearth_pg_i32(result, i, 0), id = hearth_pg_i32(result, i, 3);
        HEARTH_ASSERT(table >= 0 && table < HEARTH_GROUP_N_TABLES);
        struct hearth_group_rows *rows = &group->tables[table];
        struct hearth_hash128 key =
            hash_row_key(hearth_pg_i32(result, i, 1), read_uuid_column(result, i, 2));
        uint32_t at = hearth_idmap_find(&rows->map, key);
        if (at == HEARTH_IDMAP_NONE || id < 1) {
            return HEARTH_FAIL(
                group->err, HEARTH_CORRUPT,
                "the catalogue returned a row that was not looked up, or an id below 1");
        }
        rows->v[at].id = id;
    }

    return HEARTH_OK;
}

static enum hearth_status query_ids(struct hearth_group *group, const char *sql,
                                    struct hearth_pg_params *params)
{
    PGresult *result = NULL;
    HEARTH_TRY(hearth_group_run(group, sql, params, &result));
    enum hearth_status status = take_row_ids(group, result);
    PQclear(result);
    return status;
}

/* ---- columns of new rows ---- */

static enum hearth_status add_service_columns(struct hearth_group *group,
                                              const struct hearth_group_rows *rows,
                                              const uint32_t *index, size_t n,
                                              struct hearth_pg_params *params)
{
    struct hearth_str *names = hearth_arena_array(&group->arena, n, sizeof *names);
    if (names == NULL) {
        return hearth_group_no_memory(group);
    }

    for (size_t i = 0; i < n; i++) {
        names[i] = rows->v[index[i]].u.name;
    }

    hearth_pg_param_text_array(params, names, n);

    return HEARTH_OK;
}

static enum hearth_status add_pair_columns(struct hearth_group *group,
                                           const struct hearth_group_rows *rows,
                                           const uint32_t *index, size_t n,
                                           struct hearth_pg_params *params)
{
    struct hearth_str *texts = hearth_arena_array(&group->arena, n * 2, sizeof *texts);
    if (texts == NULL) {
        return hearth_group_no_memory(group);
    }

    for (size_t i = 0; i < n; i++) {
        texts[i] = rows->v[index[i]].u.pair->name;
        texts[n + i] = rows->v[index[i]].u.pair->value;
    }

    hearth_pg_param_text_array(params, texts, n);
    hearth_pg_param_text_array(params, texts + n, n);

    return HEARTH_OK;
}

/*
 * SQL has no arrays of arrays with different lengths: all lists are one array, and slices say where
 * each list begins and ends.
 */
struct slices {
    int32_t *from, *to; /* [n], 1-based, inclusive; from > to: an empty list */
};

static enum hearth_status new_slices(struct hearth_group *group, size_t n, struct slices *ret)
{
    ret->from = hearth_arena_array(&group->arena, n, sizeof *ret->from);
    ret->to = hearth_arena_array(&group->arena, n, sizeof *ret->to);
    return ret->from == NULL || ret->to == NULL ? hearth_group_no_memory(group) : HEARTH_OK;
}

static enum hearth_status add_shape_columns(struct hearth_group *group,
                                            const struct hearth_group_rows *rows,
                                            const uint32_t *index, size_t n,
                                            struct hearth_pg_params *params)
{
    struct slices slices;
    HEARTH_TRY(new_slices(group, n, &slices));
    size_t n_types = 0;
    for (size_t i = 0; i < n; i++) {
        n_types += rows->v[index[i]].u.series->n_types;
    }

    struct hearth_str *types = hearth_arena_array(&group->arena, n_types, sizeof *types);
    if (types == NULL || n_types > INT32_MAX - 1) {
        return hearth_group_no_memory(group);
    }

    n_types = 0;
    for (size_t i = 0; i < n; i++) {
        const struct hearth_series_key *series = rows->v[index[i]].u.series;
        slices.from[i] = (int32_t)n_types + 1;
        for (size_t k = 0; k < series->n_types; k++) {
            types[n_types++] = series->type_ids[k];
        }
        slices.to[i] = (int32_t)n_types;
    }

    hearth_pg_param_text_array(params, types, n_types);
    hearth_pg_param_i32_array(params, slices.from, n);
    hearth_pg_param_i32_array(params, slices.to, n);

    return HEARTH_OK;
}

static enum hearth_status add_series_columns(struct hearth_group *group,
                                             const struct hearth_group_rows *rows,
                                             const uint32_t *index, size_t n,
                                             struct hearth_pg_params *params)
{
    struct slices slices;
    HEARTH_TRY(new_slices(group, n, &slices));
    int32_t *tenants = hearth_arena_array(&group->arena, n, sizeof *tenants);
    int32_t *shapes = hearth_arena_array(&group->arena, n, sizeof *shapes);
    if (tenants == NULL || shapes == NULL || group->n_pair_ids > INT32_MAX - 1) {
        return hearth_group_no_memory(group);
    }

    for (size_t i = 0; i < n; i++) {
        const struct hearth_group_row *row = &rows->v[index[i]];
        tenants[i] = row->u.s.tenant_id;
        shapes[i] = row->u.s.shape_id;
        slices.from[i] = (int32_t)row->u.s.first_pair + 1;
        slices.to[i] = (int32_t)(row->u.s.first_pair + row->u.s.n_pairs);
    }

    hearth_pg_param_i32_array(params, tenants, n);
    hearth_pg_param_i32_array(params, shapes, n);
    hearth_pg_param_i32_array(params, group->pair_ids, group->n_pair_ids);
    hearth_pg_param_i32_array(params, slices.from, n);
    hearth_pg_param_i32_array(params, slices.to, n);

    return HEARTH_OK;
}

/* ---- statements: the unique index on (parent, fingerprint) serves the look-ups ---- */

#define FIND(number, id, table, parent, parents, prints)                                   \
    "SELECT " number ", u.parent, u.fp, t." id " FROM unnest(" parents "::int4[], " prints \
    "::uuid[]) u (parent, fp)"                                                             \
    " JOIN hearth_data." table " t ON t." parent " = u.parent AND t.fingerprint = u.fp"

static const char SQL_FIND_PARTS[] =
    FIND("0", "service_id", "service", "tenant_id", "$1", "$2") " UNION ALL " FIND(
        "1", "shape_id", "shape", "tenant_id", "$3",
        "$4") " UNION ALL " FIND("2", "pair_id", "label_pair", "tenant_id", "$5", "$6");

/*
 * While statistics say that a service has few series, as they do when many have just been added,
 * PostgreSQL may prefer the primary key (service_id, series_id) to the unique index and read all
 * series of the service for each that is looked up. Only the unique index has the order asked for
 * here.
 */
static const char SQL_FIND_SERIES[] =
    "SELECT 3, u.parent, u.fp, t.series_id FROM unnest($1::int4[], $2::uuid[]) u (parent, fp)"
    " CROSS JOIN LATERAL (SELECT s.series_id, s.fingerprint FROM hearth_data.series s"
    " WHERE s.service_id = u.parent AND s.fingerprint >= u.fp ORDER BY s.fingerprint LIMIT 1) t"
    " WHERE t.fingerprint = u.fp";

/* Add the parameters after $3, the columns of the table, for the n rows that `index` lists. */
typedef enum hearth_status add_columns_fn(struct hearth_group *group,
                                          const struct hearth_group_rows *rows,
                                          const uint32_t *index, size_t n,
                                          struct hearth_pg_params *params);

static const struct {
    const char *insert; /* $1 parents, $2 fingerprints, $3 version, then the columns */
    add_columns_fn *add_columns;
} INSERTS[HEARTH_GROUP_N_TABLES] = {
    [HEARTH_GROUP_SERVICES] =
        {"INSERT INTO hearth_data.service (tenant_id, fingerprint, name, version)"
         " SELECT parent, fp, name, $3 FROM unnest($1::int4[], $2::uuid[], $4::text[])"
         " u (parent, fp, name) RETURNING 0, tenant_id, fingerprint, service_id",
         add_service_columns},
    [HEARTH_GROUP_SHAPES] =
        {"INSERT INTO hearth_data.shape (tenant_id, fingerprint, profile_types, version)"
         " SELECT parent, fp, ($4::text[])[a:b], $3"
         " FROM unnest($1::int4[], $2::uuid[], $5::int4[], $6::int4[]) u (parent, fp, a, b)"
         " RETURNING 1, tenant_id, fingerprint, shape_id",
         add_shape_columns},
    [HEARTH_GROUP_PAIRS] =
        {"INSERT INTO hearth_data.label_pair (tenant_id, fingerprint, name, value, version)"
         " SELECT parent, fp, name, value, $3 FROM unnest($1::int4[], $2::uuid[], $4::text[],"
         " $5::text[]) u (parent, fp, name, value)"
         " RETURNING 2, tenant_id, fingerprint, pair_id",
         add_pair_columns},
    [HEARTH_GROUP_SERIES] =
        {"INSERT INTO hearth_data.series"
         " (service_id, fingerprint, tenant_id, shape_id, pair_ids, version)"
         " SELECT parent, fp, tenant, shape, ($6::int4[])[a:b], $3"
         " FROM unnest($1::int4[], $2::uuid[], $4::int4[], $5::int4[], $7::int4[], $8::int4[])"
         " u (parent, fp, tenant, shape, a, b)"
         " RETURNING 3, service_id, fingerprint, series_id",
         add_series_columns},
};

/*
 * Return the tenant's own limit, or the server's. Its name is that of an item, because the label
 * index may not know the tenant yet.
 */
static size_t find_tenant_limit(const struct hearth_group *group, int32_t tenant_id,
                                const char *name, size_t limit)
{
    for (size_t i = 0; i < group->n; i++) {
        if (group->items[i]->ids.tenant_id == tenant_id) {
            return (size_t)hearth_store_setting(group->catalog->store, group->items[i]->tenant,
                                                name, (int64_t)limit);
        }
    }

    return limit;
}

/* The number of services of a tenant. The transaction holds the clock's lock, so it is exact. */
static enum hearth_status count_services(struct hearth_group *group, int32_t tenant_id,
                                         int64_t *ret_n)
{
    struct hearth_pg_params params;
    PGresult *rows = NULL;

    hearth_pg_params_init(&params, &group->arena);
    hearth_pg_param_i32(&params, tenant_id);
    HEARTH_TRY(hearth_group_run(
        group, "SELECT count(*) FROM hearth_data.service WHERE tenant_id = $1", &params, &rows));
    *ret_n = hearth_pg_i64(rows, 0, 0);
    PQclear(rows);

    return HEARTH_OK;
}

/* Refuse new services of a tenant beyond max_services. */
static enum hearth_status check_service_limit(struct hearth_group *group,
                                              const struct hearth_group_rows *rows,
                                              const uint32_t *index, size_t n)
{
    int32_t checked = 0;
    for (size_t i = 0; i < n; i++) {
        int32_t tenant_id = rows->v[index[i]].parent;
        size_t limit = find_tenant_limit(group, tenant_id, "max-services",
                                         hearth_store_live(group->catalog->store)->max_services);
        if (tenant_id == checked || limit == 0) {
            continue;
        }

        checked = tenant_id;
        int64_t n_new = 0, n_old;
        for (size_t k = 0; k < n; k++) {
            n_new += rows->v[index[k]].parent == tenant_id;
        }
        HEARTH_TRY(count_services(group, tenant_id, &n_old));
        if (n_old + n_new > (int64_t)limit) {
            return hearth_services_refuse(n_old, n_new, (int64_t)limit, group->err);
        }
    }

    return HEARTH_OK;
}

/*
 * Refuse new series of a tenant beyond max_series: those in its label index at the last refresh, at
 * most half a minute ago, and the new ones of this group.
 */
static enum hearth_status check_series_limit(struct hearth_group *group,
                                             const struct hearth_group_rows *rows,
                                             const uint32_t *index, size_t n)
{
    int32_t checked = 0;
    for (size_t i = 0; i < n; i++) {
        int32_t tenant_id = rows->v[index[i]].u.s.tenant_id;
        if (tenant_id == checked) {
            continue;
        }

        checked = tenant_id;
        size_t limit = find_tenant_limit(group, tenant_id, "max-series",
                                         hearth_store_live(group->catalog->store)->max_series);
        size_t n_new = 0;
        for (size_t k = 0; k < n; k++) {
            n_new += rows->v[index[k]].u.s.tenant_id == tenant_id;
        }
        size_t n_old = hearth_catalog_count_series(group->catalog, tenant_id);
        if (limit > 0 && n_old + n_new > limit) {
            return HEARTH_FAIL(
                group->err, HEARTH_RESOURCE_EXHAUSTED,
                "the tenant has %zu series and %zu new ones would exceed the limit of "
                "%zu" HEARTH_RAISE_LIMIT("max-series"),
                n_old, n_new, limit);
        }
    }

    return HEARTH_OK;
}

/* Insert the rows that have no id. */
static enum hearth_status insert_missing_rows(struct hearth_group *group,
                                              enum hearth_group_table table)
{
    const struct hearth_group_rows *rows = &group->tables[table];
    struct hearth_pg_params params;
    uint32_t *index = NULL;
    size_t n = 0;

    /* Gather their keys. */
    hearth_pg_params_init(&params, &group->arena);
    HEARTH_TRY(add_key_params(group, rows, &params, &index, &n));
    if (n == 0) {
        return HEARTH_OK;
    }

    if (table == HEARTH_GROUP_SERIES) {
        HEARTH_TRY(check_series_limit(group, rows, index, n));
    } else if (table == HEARTH_GROUP_SERVICES) {
        HEARTH_TRY(check_service_limit(group, rows, index, n));
    }

    /* Insert them, and take their ids. */
    hearth_pg_param_i64(&params, group->version);
    HEARTH_TRY(INSERTS[table].add_columns(group, rows, index, n, &params));
    HEARTH_TRY(query_ids(group, INSERTS[table].insert, &params));
    for (size_t i = 0; i < n; i++) {
        if (rows->v[index[i]].id == 0) {
            return HEARTH_FAIL(group->err, HEARTH_INTERNAL, "an inserted row was not returned");
        }
    }

    return HEARTH_OK;
}

enum hearth_status hearth_group_settle(struct hearth_group *group, enum hearth_group_table first,
                                       enum hearth_group_table last)
{
    struct hearth_pg_params params;
    uint32_t *index = NULL;
    size_t n = 0;
    assert(first <= last && last < HEARTH_GROUP_N_TABLES);

    /* Look all rows up. */
    hearth_pg_params_init(&params, &group->arena);
    for (int table = (int)first; table <= (int)last; table++) {
        HEARTH_TRY(add_key_params(group, &group->tables[table], &params, &index, &n));
    }

    HEARTH_TRY(
        query_ids(group, last == HEARTH_GROUP_SERIES ? SQL_FIND_SERIES : SQL_FIND_PARTS, &params));

    /* Insert the missing ones. */
    for (int table = (int)first; table <= (int)last; table++) {
        HEARTH_TRY(insert_missing_rows(group, (enum hearth_group_table)table));
    }

    return HEARTH_OK;
}
