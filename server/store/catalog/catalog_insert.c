/*
 * catalog_insert.c -- one transaction that creates a group of series and their hours.
 *
 * The clock row is updated first. Its lock is held until COMMIT, so there is one writer at a time
 * over all servers, versions commit in order, and missing rows are inserted after a look-up,
 * without ON CONFLICT (which would use up identities for rows that exist). A transaction whose
 * COMMIT was not answered is run again, and finds the rows of the first one.
 *
 * Rows are found by (parent, fingerprint). The parent is the tenant; for a series, its service. A
 * fingerprint is a stable XXH3-128 of:
 *   service  its name
 *   pair     the label set that consists of the pair
 *   shape    the label set whose names are the profile types in order and whose values are empty
 *   series   32 bytes: the fingerprints of its shape and of its labels, low word first,
 *            little-endian
 */
#include "hearth/base/mem.h"

#include "catalog/catalog.h"
#include "catalog/catalog_group.h"
#include "pg/pg.h"
#include "pg/store_state.h"
#include "session/partitions.h"
#include "session/session.h"

#include <assert.h>
#include <endian.h>

#define GROUP_ARENA_BYTES ((size_t)1 << 30)

/*
 * A server that hangs in its transaction would keep all others from creating series, so PostgreSQL
 * ends it. Look-ups always use an index: their cost must depend on the number of rows looked up,
 * not on the size of the tables or the time of their last ANALYZE.
 */
#define SQL_BEGIN                                                                          \
    "BEGIN ISOLATION LEVEL READ COMMITTED;"                                                \
    "SET LOCAL idle_in_transaction_session_timeout = 10000;"                               \
    "SET LOCAL lock_timeout = 15000;"                                                      \
    "SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off;"                   \
    "SET LOCAL jit = off;"                                                                 \
    "UPDATE hearth_data.catalog_clock SET version = version + 1 RETURNING version, epoch;" \
    "SET LOCAL enable_seqscan = off;"

/* ---- tenants ---- */

static const char SQL_FIND_TENANTS[] = "SELECT u.n, t.tenant_id"
                                       " FROM unnest($1::text[]) WITH ORDINALITY u (name, n)"
                                       " JOIN hearth_data.tenant t ON t.name = u.name";
static const char SQL_ADD_TENANTS[] =
    "INSERT INTO hearth_data.tenant (name, version)"
    " SELECT name, $2 FROM unnest($1::text[]) u (name)"
    " WHERE NOT EXISTS (SELECT 1 FROM hearth_data.tenant t WHERE t.name = u.name)";

/* Set ids[i] for each tenant that exists. *ret_all: all do. */
static enum hearth_status find_tenants(struct hearth_group *group, const struct hearth_str *names,
                                       int32_t *ids, size_t n, bool *ret_all)
{
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, &group->arena);
    hearth_pg_param_text_array(&params, names, n);
    PGresult *result = NULL;
    HEARTH_TRY(hearth_group_run(group, SQL_FIND_TENANTS, &params, &result));
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

/* Set the tenant ids of all items, creating missing tenants. */
static enum hearth_status settle_tenants(struct hearth_group *group)
{
    struct hearth_str *names = hearth_arena_array(&group->arena, group->n, sizeof *names);
    int32_t *ids = hearth_arena_calloc(&group->arena, group->n, sizeof *ids);
    uint32_t *of_item = hearth_arena_array(&group->arena, group->n, sizeof *of_item);

    if (names == NULL || ids == NULL || of_item == NULL) {
        return hearth_group_no_memory(group);
    }

    /* Gather the distinct names. */
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
        return hearth_group_no_memory(group);
    }

    /* Find them, or create the missing ones and find them all. */
    bool all = false;
    HEARTH_TRY(find_tenants(group, names, ids, n, &all));
    if (!all) {
        struct hearth_pg_params params;
        hearth_pg_params_init(&params, &group->arena);
        hearth_pg_param_text_array(&params, names, n);
        hearth_pg_param_i64(&params, group->version);
        HEARTH_TRY(hearth_group_run(group, SQL_ADD_TENANTS, &params, NULL));
        HEARTH_TRY(find_tenants(group, names, ids, n, &all));
    }

    if (!all) {
        return HEARTH_FAIL(group->err, HEARTH_INTERNAL, "an inserted tenant was not found");
    }

    for (size_t i = 0; i < group->n; i++) {
        group->items[i]->ids.tenant_id = ids[of_item[i]];
    }

    return HEARTH_OK;
}

/* ---- series ---- */

static struct hearth_hash128 shape_fingerprint(const struct hearth_series_key *series,
                                               struct hearth_label *scratch)
{
    for (size_t k = 0; k < series->n_types; k++) {
        scratch[k] = (struct hearth_label){.name = series->type_ids[k]};
    }
    struct hearth_labels types = {scratch, series->n_types};
    return hearth_labels_fingerprint(&types);
}

static struct hearth_hash128 series_fingerprint(struct hearth_hash128 shape,
                                                struct hearth_hash128 labels)
{
    uint64_t words[4] = {htole64(shape.lo), htole64(shape.hi), htole64(labels.lo),
                         htole64(labels.hi)};
    return hearth_hash128(words, sizeof words, 0);
}

/* Intern the service, the shape and the pairs of each item without ids. */
static enum hearth_status gather_parts(struct hearth_group *group)
{
    for (size_t i = 0; i < group->n; i++) {
        struct hearth_group_links *links = &group->links[i];
        const struct hearth_series_key *series = group->items[i]->series;
        int32_t tenant_id = group->items[i]->ids.tenant_id;
        if (group->items[i]->has_ids) {
            continue;
        }

        struct hearth_label *scratch =
            hearth_arena_array(&group->arena, series->n_types, sizeof *scratch);
        links->pairs = hearth_arena_array(&group->arena, series->labels.n, sizeof *links->pairs);
        if (scratch == NULL || links->pairs == NULL) {
            return hearth_group_no_memory(group);
        }

        /* The service. */
        bool is_new = false;
        struct hearth_hash128 print =
            hearth_hash128(series->service_name.p, series->service_name.n, 0);
        links->service =
            hearth_group_intern(&group->tables[HEARTH_GROUP_SERVICES], tenant_id, print, &is_new);
        if (links->service != HEARTH_IDMAP_NONE && is_new) {
            group->tables[HEARTH_GROUP_SERVICES].v[links->service].u.name = series->service_name;
        }

        /* The shape. */
        links->shape = hearth_group_intern(&group->tables[HEARTH_GROUP_SHAPES], tenant_id,
                                           shape_fingerprint(series, scratch), &is_new);
        if (links->shape != HEARTH_IDMAP_NONE && is_new) {
            group->tables[HEARTH_GROUP_SHAPES].v[links->shape].u.series = series;
        }

        /* The pairs. */
        bool refused = links->service == HEARTH_IDMAP_NONE || links->shape == HEARTH_IDMAP_NONE;
        for (size_t k = 0; k < series->labels.n && !refused; k++) {
            struct hearth_labels one = {&series->labels.v[k], 1};
            links->pairs[k] = hearth_group_intern(&group->tables[HEARTH_GROUP_PAIRS], tenant_id,
                                                  hearth_labels_fingerprint(&one), &is_new);
            refused = links->pairs[k] == HEARTH_IDMAP_NONE;
            if (!refused && is_new) {
                group->tables[HEARTH_GROUP_PAIRS].v[links->pairs[k]].u.pair = &series->labels.v[k];
            }
        }
        if (refused) {
            return hearth_group_no_memory(group);
        }
        group->n_pair_ids += series->labels.n;
    }

    return HEARTH_OK;
}

/* Labels are sorted by name, but pairs by id. Insertion sort, because a set has 5 to 60 labels. */
static void sort_pair_ids(int32_t *ids, size_t n)
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

/* Intern the series of each item without ids. The ids of services, shapes and pairs are known. */
static enum hearth_status gather_series(struct hearth_group *group)
{
    group->pair_ids = hearth_arena_array(&group->arena, group->n_pair_ids, sizeof *group->pair_ids);
    if (group->pair_ids == NULL) {
        return hearth_group_no_memory(group);
    }

    size_t n_pair_ids = 0;
    for (size_t i = 0; i < group->n; i++) {
        struct hearth_group_links *links = &group->links[i];
        const struct hearth_series_key *series = group->items[i]->series;
        if (group->items[i]->has_ids) {
            continue;
        }

        const struct hearth_group_row *shape = &group->tables[HEARTH_GROUP_SHAPES].v[links->shape];
        bool is_new = false;
        links->series = hearth_group_intern(
            &group->tables[HEARTH_GROUP_SERIES],
            group->tables[HEARTH_GROUP_SERVICES].v[links->service].id,
            series_fingerprint(shape->fingerprint, hearth_labels_fingerprint(&series->labels)),
            &is_new);
        if (links->series == HEARTH_IDMAP_NONE) {
            return hearth_group_no_memory(group);
        }
        if (!is_new) {
            continue;
        }

        struct hearth_group_row *row = &group->tables[HEARTH_GROUP_SERIES].v[links->series];
        row->u.s.tenant_id = group->items[i]->ids.tenant_id;
        row->u.s.shape_id = shape->id;
        row->u.s.first_pair = n_pair_ids;
        row->u.s.n_pairs = series->labels.n;
        for (size_t k = 0; k < series->labels.n; k++) {
            group->pair_ids[n_pair_ids++] = group->tables[HEARTH_GROUP_PAIRS].v[links->pairs[k]].id;
        }
        sort_pair_ids(group->pair_ids + row->u.s.first_pair, row->u.s.n_pairs);
    }

    assert(n_pair_ids <= group->n_pair_ids);
    group->n_pair_ids = n_pair_ids;

    return HEARTH_OK;
}

/* Set the ids of all items without ids, creating missing rows. */
static enum hearth_status settle_series(struct hearth_group *group)
{
    HEARTH_TRY(gather_parts(group));
    HEARTH_TRY(hearth_group_settle(group, HEARTH_GROUP_SERVICES, HEARTH_GROUP_PAIRS));
    HEARTH_TRY(gather_series(group));
    HEARTH_TRY(hearth_group_settle(group, HEARTH_GROUP_SERIES, HEARTH_GROUP_SERIES));
    for (size_t i = 0; i < group->n; i++) {
        struct hearth_catalog_item *item = group->items[i];
        if (!item->has_ids) {
            const struct hearth_group_row *row =
                &group->tables[HEARTH_GROUP_SERIES].v[group->links[i].series];
            item->ids.ref =
                (struct hearth_series_ref){.service_id = row->parent, .series_id = row->id};
        }
    }

    return HEARTH_OK;
}

/* ---- scripts ---- */

static void append_id_column(struct hearth_buf *sql, const struct hearth_group *group, int column)
{
    hearth_buf_cstr(sql, column == 0 ? "'{" : ", '{");
    for (size_t i = 0; i < group->n; i++) {
        const struct hearth_catalog_item *item = group->items[i];
        const int32_t columns[] = {item->ids.ref.service_id, item->hour, item->ids.ref.series_id,
                                   item->ids.tenant_id};
        hearth_buf_printf(sql, i == 0 ? "%d" : ",%d", (int)columns[column]);
    }

    hearth_buf_cstr(sql, "}'::int4[]");
}

/*
 * Insert the hours of all items, and COMMIT: the end of every transaction, and after SQL_BEGIN all
 * of a transaction in which only hours are new. The parameters are numbers, so the text contains
 * them, and the script is one message. ON CONFLICT, because another server may have inserted the
 * hour, and several items may have the same one. The join with series, served by its primary key,
 * skips a deleted series; then the epoch has changed (must_start_over).
 */
static void append_hours_and_commit(struct hearth_buf *sql, const struct hearth_group *group)
{
    hearth_buf_cstr(sql,
                    "INSERT INTO hearth_data.series_hour (service_id, hour, series_id, tenant_id,"
                    " version) SELECT u.s, u.h, u.i, u.t, (SELECT version FROM"
                    " hearth_data.catalog_clock)"
                    " FROM unnest(");
    for (int column = 0; column < 4; column++) {
        append_id_column(sql, group, column);
    }

    hearth_buf_cstr(sql, ") u (s, h, i, t) JOIN hearth_data.series e ON e.service_id = u.s AND"
                         " e.series_id = u.i ON CONFLICT DO NOTHING; COMMIT");
}

/* Run the script. If it reads the clock, group->version and epoch are set. */
static enum hearth_status run_group_script(struct hearth_group *group, struct hearth_buf *sql)
{
    hearth_buf_byte(sql, '\0');
    if (hearth_buf_failed(sql)) {
        return hearth_group_no_memory(group);
    }

    HEARTH_TRY(hearth_pg_script_send(group->pg, sql->p, group->ret_fault, group->err));
    for (;;) {
        PGresult *result = NULL;
        HEARTH_TRY(hearth_pg_script_next(group->pg, &result, group->ret_fault, group->err));
        if (result == NULL) {
            return HEARTH_OK;
        }
        if (PQntuples(result) == 1 &&
            (!hearth_str_to_i64(hearth_pg_str(result, 0, 0), &group->version) ||
             !hearth_str_to_i64(hearth_pg_str(result, 0, 1), &group->epoch))) {
            group->version = 0;
        }
        PQclear(result);
    }
}

/* ---- the transaction ---- */

/* Before the transaction: DDL under the clock's lock would make all servers wait. */
static enum hearth_status ensure_hour_leaves(struct hearth_group *group)
{
    int32_t known = INT32_MIN;
    for (size_t i = 0; i < group->n; i++) {
        int32_t day = hearth_day_of(group->items[i]->hour * HEARTH_NS_PER_HOUR);
        if (day != known) {
            HEARTH_TRY(hearth_partitions_ensure(group->catalog->store, group->pg,
                                                HEARTH_LEAF_SERIES_HOUR, day, group->err));
            known = day;
        }
    }

    return HEARTH_OK;
}

static void forget_hour_leaves(struct hearth_group *group)
{
    for (size_t i = 0; i < group->n; i++) {
        hearth_partitions_forget(group->catalog->store,
                                 hearth_day_of(group->items[i]->hour * HEARTH_NS_PER_HOUR));
    }
}

static bool only_hours_are_new(const struct hearth_group *group)
{
    for (size_t i = 0; i < group->n; i++) {
        if (!group->items[i]->has_ids) {
            return false;
        }
    }
    return true;
}

/*
 * Return true if ids in memory may be of deleted rows, or of a state that the database has lost:
 * then all ids are looked up again. The transaction holds, or held, the clock's lock, so its rows
 * were written in group->epoch.
 */
static bool must_start_over(struct hearth_group *group, int64_t newest)
{
    hearth_catalog_saw_epoch(group->catalog, group->epoch);
    bool stale = hearth_catalog_went_back(group->catalog, newest + 1, group->version);
    for (size_t i = 0; i < group->n && !stale; i++) {
        stale = group->items[i]->has_ids && group->items[i]->epoch != group->epoch;
    }

    for (size_t i = 0; i < group->n; i++) {
        group->items[i]->has_ids = group->items[i]->has_ids && !stale;
        group->items[i]->epoch = group->epoch;
    }

    return stale;
}

static enum hearth_status write_hours(struct hearth_group *group, struct hearth_buf *sql)
{
    hearth_buf_cstr(sql, SQL_BEGIN);
    append_hours_and_commit(sql, group);
    return run_group_script(group, sql);
}

static enum hearth_status write_series(struct hearth_group *group, int64_t newest,
                                       struct hearth_buf *sql)
{
    hearth_buf_cstr(sql, SQL_BEGIN);
    HEARTH_TRY(run_group_script(group, sql));

    if (group->version == 0) {
        return HEARTH_FAIL(group->err, HEARTH_CORRUPT, "the catalogue's clock has no row");
    }

    /* Look up all rows, create the missing ones. */
    (void)must_start_over(group, newest);
    group->links = hearth_arena_calloc(&group->arena, group->n, sizeof *group->links);
    if (group->links == NULL) {
        return hearth_group_no_memory(group);
    }

    HEARTH_TRY(settle_tenants(group));
    HEARTH_TRY(settle_series(group));
    /* Insert the hours. */
    hearth_buf_reset(sql);
    append_hours_and_commit(sql, group);

    return run_group_script(group, sql);
}

static enum hearth_status insert_on(void *context, struct hearth_pg *pg,
                                    enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct hearth_group *group = context;
    group->pg = pg;
    group->ret_fault = ret_fault;
    group->err = err;
    group->version = 0;
    HEARTH_TRY(ensure_hour_leaves(group));

    /* All versions up to `newest` are committed, so the transaction gets a higher one. */
    int64_t newest = atomic_load(&group->catalog->newest);
    struct hearth_buf sql;
    hearth_buf_init(&sql, 0);
    enum hearth_status status;
    if (!only_hours_are_new(group)) {
        status = write_series(group, newest, &sql);
    } else {
        status = write_hours(group, &sql);
        if (status == HEARTH_OK && must_start_over(group, newest)) {
            *ret_fault = HEARTH_PG_FAULT_RETRY;
            status = HEARTH_FAIL(err, HEARTH_UNAVAILABLE, "series may have been deleted; retry");
        }
    }

    if (status == HEARTH_OK) {
        hearth_catalog_note(group->catalog, group->version);
    } else {
        hearth_pg_rollback(pg);
    }

    if (*ret_fault == HEARTH_PG_FAULT_UNIQUE) {
        /* The row was written without the clock's lock (a restore by hand): it is found now. */
        *ret_fault = HEARTH_PG_FAULT_RETRY;
    } else if (*ret_fault == HEARTH_PG_FAULT_MISSING_TABLE) {
        forget_hour_leaves(group); /* retention dropped one: the next attempt creates it again */
        *ret_fault = HEARTH_PG_FAULT_RETRY;
    }

    hearth_buf_release(&sql);
    hearth_group_reset(group);

    return status;
}

enum hearth_status hearth_catalog_insert(struct hearth_catalog *catalog,
                                         struct hearth_catalog_item *const *items, size_t n,
                                         struct hearth_err *err)
{
    assert(n > 0);

    struct hearth_group group = {.catalog = catalog, .items = items, .n = n};
    hearth_arena_init(&group.arena, GROUP_ARENA_BYTES);
    enum hearth_status status = hearth_store_as_owner(catalog->store, NULL, insert_on, &group, err);
    hearth_arena_release(&group.arena);
    return status;
}
