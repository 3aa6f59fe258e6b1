/*
 * catalog_insert.c -- one transaction that makes a group of series, and their hours, exist.
 *
 * The clock row is updated first: its lock is held until COMMIT, so there is one writer at a time
 * over all servers, versions commit in order, and "look up, insert what is missing" needs no ON
 * CONFLICT (which would use up identities for what exists). Everything is set-based: a table costs
 * one statement when nothing is missing, else two. A transaction whose COMMIT went unanswered is
 * simply run again: what it left is found.
 *
 * Keys are (parent, fingerprint): parent is the tenant, of a series its service. Fingerprints are
 * stable XXH3-128: service  of its name            pair   of the label set {name=value} shape    of
 * the label set whose names are the profile types in order, without values series   of the 32 bytes
 * (shape lo, hi, labels lo, hi), little-endian
 */
#include "hearth/base/mem.h"

#include "catalog.h"

#include <endian.h>

#define GROUP_ARENA_BYTES ((size_t)1 << 30)

/* A server that hangs in its transaction would keep all others from new series: PostgreSQL ends it.
 */
static const char SQL_BEGIN[] = "BEGIN ISOLATION LEVEL READ COMMITTED;"
                                "SET LOCAL idle_in_transaction_session_timeout = 10000;"
                                "SET LOCAL lock_timeout = 15000;"
                                "UPDATE hearth_data.catalog_clock SET version = version + 1"
                                " RETURNING version";

/* One distinct row of a table in this group. */
struct row {
    struct hearth_hash128 fingerprint;
    int32_t parent, id; /* id 0: not known yet */
    union {
        struct hearth_str name;                 /* service */
        const struct hearth_label *pair;        /* pair */
        const struct hearth_series_key *series; /* shape: its types */
        struct {
            int32_t tenant_id, shape_id;
            size_t first_pair, n_pairs; /* in group.pair_ids */
        } s;
    } u;
};

struct rows {
    struct hearth_idmap map; /* (parent, fingerprint) -> index */
    struct row *v;
    size_t n, cap;
};

/* The rows that one item stands for. */
struct links {
    int32_t tenant_id;
    uint32_t service, shape, series;
    uint32_t *pairs; /* [labels.n] */
};

struct group {
    struct hearth_catalog *catalog;
    struct hearth_catalog_item *const *items;
    size_t n;
    struct hearth_pg *pg;
    enum hearth_pg_fault *ret_fault;
    struct hearth_err *err;
    struct hearth_arena arena;
    int64_t version;
    struct links *links;
    struct rows services, pairs, shapes, series;
    int32_t *pair_ids; /* of all new-looking series, one after the other */
    size_t n_pair_ids;
};

static enum hearth_status no_memory(const struct group *group)
{
    return HEARTH_FAIL(group->err, HEARTH_NO_MEMORY, "no memory to write new series");
}

/* ---- distinct rows ---- */

static struct hearth_hash128 key_of(int32_t parent, struct hearth_hash128 fingerprint)
{
    return (struct hearth_hash128){hearth_hash_mix(fingerprint.lo, (uint32_t)parent),
                                   fingerprint.hi};
}

/* The index of the row, added when it is new; HEARTH_IDMAP_NONE when memory was refused. */
static uint32_t
intern(struct rows *rows, int32_t parent, struct hearth_hash128 fingerprint, bool *ret_new)
{
    if (rows->n >= UINT32_MAX - 1 ||
        !hearth_mem_grow(&rows->v, &rows->cap, rows->n + 1, sizeof rows->v[0])) {
        return HEARTH_IDMAP_NONE;
    }
    uint32_t at =
        hearth_idmap_intern(&rows->map, key_of(parent, fingerprint), (uint32_t)rows->n, ret_new);
    if (at != HEARTH_IDMAP_NONE && *ret_new) {
        rows->v[rows->n++] = (struct row){.fingerprint = fingerprint, .parent = parent};
    }
    return at;
}

static void rows_release(struct rows *rows)
{
    hearth_idmap_release(&rows->map);
    hearth_mem_free(rows->v);
    *rows = (struct rows){0};
}

static void group_reset(struct group *group)
{
    rows_release(&group->services);
    rows_release(&group->pairs);
    rows_release(&group->shapes);
    rows_release(&group->series);
    hearth_arena_reset(&group->arena);
    group->n_pair_ids = 0;
}

/* ---- looking up and inserting rows of one table ---- */

static enum hearth_status
run(struct group *group, const char *sql, struct hearth_pg_params *params, PGresult **ret_result)
{
    return hearth_pg_exec(group->pg, sql, params, NULL, ret_result, group->ret_fault, group->err);
}

/* The keys of the rows without an id as $1 int4[], $2 uuid[]. *ret_index: which rows they are. */
static enum hearth_status key_params(struct group *group,
                                     const struct rows *rows,
                                     struct hearth_pg_params *params,
                                     uint32_t **ret_index,
                                     size_t *ret_n)
{
    int32_t *parents = hearth_arena_array(&group->arena, rows->n, sizeof *parents);
    struct hearth_hash128 *prints = hearth_arena_array(&group->arena, rows->n, sizeof *prints);
    uint32_t *index = hearth_arena_array(&group->arena, rows->n, sizeof *index);
    if (parents == NULL || prints == NULL || index == NULL) {
        return no_memory(group);
    }
    size_t n = 0;
    for (size_t i = 0; i < rows->n; i++) {
        if (rows->v[i].id == 0) {
            parents[n] = rows->v[i].parent;
            prints[n] = rows->v[i].fingerprint;
            index[n++] = (uint32_t)i;
        }
    }
    hearth_pg_params_init(params, &group->arena);
    hearth_pg_param_i32_array(params, parents, n);
    hearth_pg_param_uuid_array(params, prints, n);
    *ret_index = index;
    *ret_n = n;
    return HEARTH_OK;
}

/* Answers are (number in the question from 1, id). */
static enum hearth_status take_ids(
    struct group *group, struct rows *rows, const uint32_t *index, size_t n, const PGresult *result)
{
    for (int i = 0; i < PQntuples(result); i++) {
        int64_t number = hearth_pg_i64(result, i, 0);
        int32_t id = hearth_pg_i32(result, i, 1);
        if (number < 1 || (uint64_t)number > n || id < 1) {
            return HEARTH_FAIL(group->err, HEARTH_CORRUPT, "the catalogue has an id below 1");
        }
        rows->v[index[number - 1]].id = id;
    }
    return HEARTH_OK;
}

static enum hearth_status look_up(struct group *group, struct rows *rows, const char *sql)
{
    struct hearth_pg_params params;
    uint32_t *index = NULL;
    size_t n = 0;
    PGresult *result = NULL;
    HEARTH_TRY(key_params(group, rows, &params, &index, &n));
    HEARTH_TRY(run(group, sql, &params, &result));
    enum hearth_status status = take_ids(group, rows, index, n, result);
    PQclear(result);
    return status;
}

/* Adds the columns of the table behind $1 and $2 for the n rows of index. */
typedef enum hearth_status add_columns_fn(struct group *group,
                                          const struct rows *rows,
                                          const uint32_t *index,
                                          size_t n,
                                          struct hearth_pg_params *params);

struct table {
    const char *what;
    const char *find;   /* $1 parents, $2 fingerprints -> (number, id) */
    const char *insert; /* $1 parents, $2 fingerprints, $3 version, ... */
    add_columns_fn *add_columns;
};

/* Ids for all rows of the table, creating what is missing. */
static enum hearth_status settle(struct group *group, struct rows *rows, const struct table *table)
{
    HEARTH_TRY(look_up(group, rows, table->find));
    struct hearth_pg_params params;
    uint32_t *index = NULL;
    size_t n = 0;
    HEARTH_TRY(key_params(group, rows, &params, &index, &n));
    if (n == 0) {
        return HEARTH_OK;
    }
    hearth_pg_param_i64(&params, group->version);
    HEARTH_TRY(table->add_columns(group, rows, index, n, &params));
    HEARTH_TRY(run(group, table->insert, &params, NULL));
    HEARTH_TRY(look_up(group, rows, table->find));
    for (size_t i = 0; i < n; i++) {
        if (rows->v[index[i]].id == 0) {
            return HEARTH_FAIL(group->err, HEARTH_INTERNAL,
                               "a new %s was not found after its insert", table->what);
        }
    }
    return HEARTH_OK;
}

/* ---- the tables ---- */

static enum hearth_status service_columns(struct group *group,
                                          const struct rows *rows,
                                          const uint32_t *index,
                                          size_t n,
                                          struct hearth_pg_params *params)
{
    struct hearth_str *names = hearth_arena_array(&group->arena, n, sizeof *names);
    if (names == NULL) {
        return no_memory(group);
    }
    for (size_t i = 0; i < n; i++) {
        names[i] = rows->v[index[i]].u.name;
    }
    hearth_pg_param_text_array(params, names, n);
    return HEARTH_OK;
}

static enum hearth_status pair_columns(struct group *group,
                                       const struct rows *rows,
                                       const uint32_t *index,
                                       size_t n,
                                       struct hearth_pg_params *params)
{
    struct hearth_str *texts = hearth_arena_array(&group->arena, n * 2, sizeof *texts);
    if (texts == NULL) {
        return no_memory(group);
    }
    for (size_t i = 0; i < n; i++) {
        texts[i] = rows->v[index[i]].u.pair->name;
        texts[n + i] = rows->v[index[i]].u.pair->value;
    }
    hearth_pg_param_text_array(params, texts, n);
    hearth_pg_param_text_array(params, texts + n, n);
    return HEARTH_OK;
}

/* Arrays of arrays do not exist in SQL: all lists one after the other, and where each begins and
 * ends. */
struct slices {
    int32_t *from, *to; /* 1-based, inclusive; from > to: empty */
};

static enum hearth_status slices_new(struct group *group, size_t n, struct slices *ret)
{
    ret->from = hearth_arena_array(&group->arena, n, sizeof *ret->from);
    ret->to = hearth_arena_array(&group->arena, n, sizeof *ret->to);
    return ret->from == NULL || ret->to == NULL ? no_memory(group) : HEARTH_OK;
}

static enum hearth_status shape_columns(struct group *group,
                                        const struct rows *rows,
                                        const uint32_t *index,
                                        size_t n,
                                        struct hearth_pg_params *params)
{
    struct slices slices;
    HEARTH_TRY(slices_new(group, n, &slices));
    size_t n_types = 0;
    for (size_t i = 0; i < n; i++) {
        n_types += rows->v[index[i]].u.series->n_types;
    }
    struct hearth_str *types = hearth_arena_array(&group->arena, n_types, sizeof *types);
    if (types == NULL || n_types > INT32_MAX - 1) {
        return no_memory(group);
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

static enum hearth_status series_columns(struct group *group,
                                         const struct rows *rows,
                                         const uint32_t *index,
                                         size_t n,
                                         struct hearth_pg_params *params)
{
    struct slices slices;
    HEARTH_TRY(slices_new(group, n, &slices));
    int32_t *tenants = hearth_arena_array(&group->arena, n, sizeof *tenants);
    int32_t *shapes = hearth_arena_array(&group->arena, n, sizeof *shapes);
    if (tenants == NULL || shapes == NULL || group->n_pair_ids > INT32_MAX - 1) {
        return no_memory(group);
    }
    for (size_t i = 0; i < n; i++) {
        const struct row *row = &rows->v[index[i]];
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

#define FIND(id, table, parent)                                                                  \
    "SELECT u.n, t." id " FROM unnest($1::int4[], $2::uuid[]) WITH ORDINALITY u (parent, fp, n)" \
    " JOIN hearth_data." table " t ON t." parent " = u.parent AND t.fingerprint = u.fp"

static const struct table SERVICE = {
    "service",
    FIND("service_id", "service", "tenant_id"),
    "INSERT INTO hearth_data.service (tenant_id, fingerprint, name, version)"
    " SELECT parent, fp, name, $3 FROM unnest($1::int4[], $2::uuid[], $4::text[])"
    " u (parent, fp, name)",
    service_columns,
};

static const struct table PAIR = {
    "label pair",
    FIND("pair_id", "label_pair", "tenant_id"),
    "INSERT INTO hearth_data.label_pair (tenant_id, fingerprint, name, value, version)"
    " SELECT parent, fp, name, value, $3"
    " FROM unnest($1::int4[], $2::uuid[], $4::text[], $5::text[]) u (parent, fp, name, value)",
    pair_columns,
};

static const struct table SHAPE = {
    "shape",
    FIND("shape_id", "shape", "tenant_id"),
    "INSERT INTO hearth_data.shape (tenant_id, fingerprint, profile_types, version)"
    " SELECT parent, fp, ($4::text[])[a:b], $3"
    " FROM unnest($1::int4[], $2::uuid[], $5::int4[], $6::int4[]) u (parent, fp, a, b)",
    shape_columns,
};

static const struct table SERIES = {
    "series",
    FIND("series_id", "series", "service_id"),
    "INSERT INTO hearth_data.series"
    " (service_id, fingerprint, tenant_id, shape_id, pair_ids, version)"
    " SELECT parent, fp, tenant, shape, ($6::int4[])[a:b], $3"
    " FROM unnest($1::int4[], $2::uuid[], $4::int4[], $5::int4[], $7::int4[], $8::int4[])"
    " u (parent, fp, tenant, shape, a, b)",
    series_columns,
};

/* ---- tenants ---- */

static const char SQL_FIND_TENANTS[] = "SELECT u.n, t.tenant_id"
                                       " FROM unnest($1::text[]) WITH ORDINALITY u (name, n)"
                                       " JOIN hearth_data.tenant t ON t.name = u.name";
static const char SQL_ADD_TENANTS[] =
    "INSERT INTO hearth_data.tenant (name, version)"
    " SELECT name, $2 FROM unnest($1::text[]) u (name)"
    " WHERE NOT EXISTS (SELECT 1 FROM hearth_data.tenant t WHERE t.name = u.name)";

static enum hearth_status find_tenants(
    struct group *group, const struct hearth_str *names, int32_t *ids, size_t n, bool *ret_all)
{
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, &group->arena);
    hearth_pg_param_text_array(&params, names, n);
    PGresult *result = NULL;
    HEARTH_TRY(run(group, SQL_FIND_TENANTS, &params, &result));
    int n_found = PQntuples(result);
    for (int i = 0; i < n_found; i++) {
        int64_t number = hearth_pg_i64(result, i, 0);
        HEARTH_ASSERT(number >= 1 && (uint64_t)number <= n);
        ids[number - 1] = hearth_pg_i32(result, i, 1);
    }
    PQclear(result);
    *ret_all = (size_t)n_found == n;
    return HEARTH_OK;
}

/* links[].tenant_id for all items. */
static enum hearth_status settle_tenants(struct group *group)
{
    struct hearth_str *names = hearth_arena_array(&group->arena, group->n, sizeof *names);
    int32_t *ids = hearth_arena_calloc(&group->arena, group->n, sizeof *ids);
    uint32_t *of_item = hearth_arena_array(&group->arena, group->n, sizeof *of_item);
    if (names == NULL || ids == NULL || of_item == NULL) {
        return no_memory(group);
    }
    struct hearth_idmap map;
    hearth_idmap_init(&map);
    size_t n = 0;
    bool refused = false;
    for (size_t i = 0; i < group->n && !refused; i++) {
        struct hearth_str name = group->items[i]->tenant;
        bool is_new = false;
        struct hearth_hash128 key = hearth_hash128(name.p, name.n, hearth_hash_process_seed());
        of_item[i] = hearth_idmap_intern(&map, key, (uint32_t)n, &is_new);
        refused = of_item[i] == HEARTH_IDMAP_NONE;
        if (is_new) {
            names[n++] = name;
        }
    }
    hearth_idmap_release(&map);
    if (refused) {
        return no_memory(group);
    }
    bool all = false;
    HEARTH_TRY(find_tenants(group, names, ids, n, &all));
    if (!all) {
        struct hearth_pg_params params;
        hearth_pg_params_init(&params, &group->arena);
        hearth_pg_param_text_array(&params, names, n);
        hearth_pg_param_i64(&params, group->version);
        HEARTH_TRY(run(group, SQL_ADD_TENANTS, &params, NULL));
        HEARTH_TRY(find_tenants(group, names, ids, n, &all));
        if (!all) {
            return HEARTH_FAIL(group->err, HEARTH_INTERNAL,
                               "a new tenant was not found after its insert");
        }
    }
    for (size_t i = 0; i < group->n; i++) {
        group->links[i].tenant_id = ids[of_item[i]];
    }
    return HEARTH_OK;
}

/* ---- series ---- */

static struct hearth_hash128 shape_print(const struct hearth_series_key *series,
                                         struct hearth_label *scratch)
{
    for (size_t k = 0; k < series->n_types; k++) {
        scratch[k] = (struct hearth_label){.name = series->type_ids[k]};
    }
    struct hearth_labels types = {scratch, series->n_types};
    return hearth_labels_fingerprint(&types);
}

static struct hearth_hash128 series_print(struct hearth_hash128 shape, struct hearth_hash128 labels)
{
    uint64_t words[4] = {htole64(shape.lo), htole64(shape.hi), htole64(labels.lo),
                         htole64(labels.hi)};
    return hearth_hash128(words, sizeof words, 0);
}

/* Distinct services, shapes and pairs of the items that have no ids. */
static enum hearth_status gather_parts(struct group *group)
{
    for (size_t i = 0; i < group->n; i++) {
        struct links *links = &group->links[i];
        const struct hearth_series_key *series = group->items[i]->series;
        if (group->items[i]->has_ref) {
            continue;
        }
        struct hearth_label *scratch =
            hearth_arena_array(&group->arena, series->n_types, sizeof *scratch);
        links->pairs = hearth_arena_array(&group->arena, series->labels.n, sizeof *links->pairs);
        if (scratch == NULL || links->pairs == NULL) {
            return no_memory(group);
        }
        bool is_new = false;
        struct hearth_hash128 print =
            hearth_hash128(series->service_name.p, series->service_name.n, 0);
        links->service = intern(&group->services, links->tenant_id, print, &is_new);
        if (links->service != HEARTH_IDMAP_NONE && is_new) {
            group->services.v[links->service].u.name = series->service_name;
        }
        links->shape =
            intern(&group->shapes, links->tenant_id, shape_print(series, scratch), &is_new);
        if (links->shape != HEARTH_IDMAP_NONE && is_new) {
            group->shapes.v[links->shape].u.series = series;
        }
        bool refused = links->service == HEARTH_IDMAP_NONE || links->shape == HEARTH_IDMAP_NONE;
        for (size_t k = 0; k < series->labels.n && !refused; k++) {
            struct hearth_labels one = {&series->labels.v[k], 1};
            links->pairs[k] =
                intern(&group->pairs, links->tenant_id, hearth_labels_fingerprint(&one), &is_new);
            refused = links->pairs[k] == HEARTH_IDMAP_NONE;
            if (!refused && is_new) {
                group->pairs.v[links->pairs[k]].u.pair = &series->labels.v[k];
            }
        }
        if (refused) {
            return no_memory(group);
        }
        group->n_pair_ids += series->labels.n;
    }
    return HEARTH_OK;
}

/* Labels are sorted by name, pairs are kept sorted by id: sets have 5 to 60. */
static void sort_ids(int32_t *ids, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        int32_t id = ids[i];
        size_t at = i;
        for (; at > 0 && ids[at - 1] > id; at--) {
            ids[at] = ids[at - 1];
        }
        ids[at] = id;
    }
}

/* Distinct series, now that the ids of their parts are known. */
static enum hearth_status gather_series(struct group *group)
{
    group->pair_ids = hearth_arena_array(&group->arena, group->n_pair_ids, sizeof *group->pair_ids);
    if (group->pair_ids == NULL) {
        return no_memory(group);
    }
    size_t n_pair_ids = 0;
    for (size_t i = 0; i < group->n; i++) {
        struct links *links = &group->links[i];
        const struct hearth_series_key *series = group->items[i]->series;
        if (group->items[i]->has_ref) {
            continue;
        }
        const struct row *shape = &group->shapes.v[links->shape];
        bool is_new = false;
        links->series = intern(
            &group->series, group->services.v[links->service].id,
            series_print(shape->fingerprint, hearth_labels_fingerprint(&series->labels)), &is_new);
        if (links->series == HEARTH_IDMAP_NONE) {
            return no_memory(group);
        }
        if (!is_new) {
            continue;
        }
        struct row *row = &group->series.v[links->series];
        row->u.s.tenant_id = links->tenant_id;
        row->u.s.shape_id = shape->id;
        row->u.s.first_pair = n_pair_ids;
        row->u.s.n_pairs = series->labels.n;
        for (size_t k = 0; k < series->labels.n; k++) {
            group->pair_ids[n_pair_ids++] = group->pairs.v[links->pairs[k]].id;
        }
        sort_ids(group->pair_ids + row->u.s.first_pair, row->u.s.n_pairs);
    }
    group->n_pair_ids = n_pair_ids;
    return HEARTH_OK;
}

static enum hearth_status settle_series(struct group *group)
{
    HEARTH_TRY(gather_parts(group));
    if (group->services.n == 0) {
        return HEARTH_OK; /* only hours are new */
    }
    HEARTH_TRY(settle(group, &group->services, &SERVICE));
    HEARTH_TRY(settle(group, &group->shapes, &SHAPE));
    if (group->pairs.n > 0) {
        HEARTH_TRY(settle(group, &group->pairs, &PAIR));
    }
    HEARTH_TRY(gather_series(group));
    HEARTH_TRY(settle(group, &group->series, &SERIES));
    for (size_t i = 0; i < group->n; i++) {
        struct hearth_catalog_item *item = group->items[i];
        if (!item->has_ref) {
            const struct row *row = &group->series.v[group->links[i].series];
            item->ref = (struct hearth_series_ref){.service_id = row->parent, .series_id = row->id};
        }
    }
    return HEARTH_OK;
}

/* ---- hours ---- */

/* Another server may know the hour already, and several items of a group may have it. */
static const char SQL_ADD_HOURS[] =
    "INSERT INTO hearth_data.series_hour (service_id, hour, series_id, tenant_id, version)"
    " SELECT s, h, i, t, $5 FROM unnest($1::int4[], $2::int4[], $3::int4[], $4::int4[])"
    " u (s, h, i, t) ON CONFLICT DO NOTHING";

static enum hearth_status add_hours(struct group *group)
{
    int32_t *columns[4];
    for (size_t k = 0; k < HEARTH_ARRAY_LEN(columns); k++) {
        columns[k] = hearth_arena_array(&group->arena, group->n, sizeof *columns[k]);
        if (columns[k] == NULL) {
            return no_memory(group);
        }
    }
    for (size_t i = 0; i < group->n; i++) {
        columns[0][i] = group->items[i]->ref.service_id;
        columns[1][i] = group->items[i]->hour;
        columns[2][i] = group->items[i]->ref.series_id;
        columns[3][i] = group->links[i].tenant_id;
    }
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, &group->arena);
    for (size_t k = 0; k < HEARTH_ARRAY_LEN(columns); k++) {
        hearth_pg_param_i32_array(&params, columns[k], group->n);
    }
    hearth_pg_param_i64(&params, group->version);
    return run(group, SQL_ADD_HOURS, &params, NULL);
}

/* ---- the transaction ---- */

/* Leaves are made outside the transaction: DDL under the clock's lock would hold up every server.
 */
static enum hearth_status ensure_days(struct group *group)
{
    int32_t known = INT32_MIN;
    for (size_t i = 0; i < group->n; i++) {
        int32_t day = hearth_day_of(group->items[i]->hour * HEARTH_NS_PER_HOUR);
        if (day != known) {
            HEARTH_TRY(hearth_partitions_ensure(group->catalog->store, group->pg, day, group->err));
            known = day;
        }
    }
    return HEARTH_OK;
}

static enum hearth_status begin(struct group *group)
{
    bool has_version = false;
    HEARTH_TRY(hearth_pg_script_send(group->pg, SQL_BEGIN, group->ret_fault, group->err));
    for (;;) {
        PGresult *result = NULL;
        HEARTH_TRY(hearth_pg_script_next(group->pg, &result, group->ret_fault, group->err));
        if (result == NULL) {
            break;
        }
        if (PQntuples(result) == 1) {
            has_version = hearth_str_to_i64(hearth_pg_str(result, 0, 0), &group->version);
        }
        PQclear(result);
    }
    return has_version
               ? HEARTH_OK
               : HEARTH_FAIL(group->err, HEARTH_CORRUPT, "the catalogue's clock has no row");
}

static enum hearth_status write_transaction(struct group *group)
{
    HEARTH_TRY(begin(group));
    group->links = hearth_arena_calloc(&group->arena, group->n, sizeof *group->links);
    if (group->links == NULL) {
        return no_memory(group);
    }
    HEARTH_TRY(settle_tenants(group));
    HEARTH_TRY(settle_series(group));
    HEARTH_TRY(add_hours(group));
    return run(group, "COMMIT", NULL, NULL);
}

static enum hearth_status insert_on(void *context,
                                    struct hearth_pg *pg,
                                    enum hearth_pg_fault *ret_fault,
                                    struct hearth_err *err)
{
    struct group *group = context;
    group->pg = pg;
    group->ret_fault = ret_fault;
    group->err = err;
    HEARTH_TRY(ensure_days(group));
    enum hearth_status status = write_transaction(group);
    if (status != HEARTH_OK) {
        hearth_pg_rollback(pg);
    }
    if (*ret_fault == HEARTH_PG_FAULT_UNIQUE) {
        /* Somebody wrote without the clock (a restore by hand): the next attempt finds it. */
        *ret_fault = HEARTH_PG_FAULT_RETRY;
    }
    group_reset(group);
    return status;
}

enum hearth_status hearth_catalog_insert(struct hearth_catalog *catalog,
                                         struct hearth_catalog_item *const *items,
                                         size_t n,
                                         struct hearth_err *err)
{
    struct group group = {.catalog = catalog, .items = items, .n = n};
    hearth_arena_init(&group.arena, GROUP_ARENA_BYTES);
    enum hearth_status status = hearth_store_with_pg(catalog->store, NULL, insert_on, &group, err);
    hearth_arena_release(&group.arena);
    return status;
}
