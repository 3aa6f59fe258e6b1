/*
 * known_applications.c -- applications and rules in memory, and which services were seen
 * (known_applications.h).
 *
 * Two parts. The *known* applications are a copy of the tables, read again as a whole when the
 * clock's version has changed: a version changes when a person changes something, and when new
 * services were seen, both of which are rare. The *seen* services are those of this server; a new
 * one is written within seconds, the time of a known one about once a minute.
 */
#include "tenants/known_applications.h"

#include "hearth/base/clock.h"
#include "hearth/base/mem.h"
#include "hearth/selector/selector.h"
#include "hearth/store/settings.h"

#include "pg/store_state.h"
#include "session/session.h"

#include <assert.h>

#define MAX_SEEN     65536u /* services; further ones are noted when the table was emptied */
#define MAX_BATCH    1000u  /* rows of one statement */
#define FLUSH_MS     60000
#define LOCK_NAME    "known_applications.lock"
#define SERVICE_NAME "service_name"

struct known_application {
    uint8_t profiling, approved;
};

struct known_rule {
    int32_t profiling;
    struct hearth_selector selector;
};

/* The rules of a tenant: n, from first. */
struct rule_tenant {
    struct hearth_str tenant;
    size_t first, n;
};

struct known_state {
    struct hearth_idmap map; /* of tenant and name, to an index of `applications` */
    struct known_application *applications;
    struct rule_tenant *tenants; /* sorted by name */
    size_t n_tenants;
    struct known_rule *rules;
    size_t n_rules;
    struct hearth_arena arena;
    int64_t version;
};

struct seen_service {
    struct hearth_str tenant, name;
    int64_t first_ms, last_ms, written_ms; /* written_ms 0: not yet */
    bool is_approved;
};

struct hearth_known_applications {
    struct hearth_mutex refreshing; /* held during a step */
    pthread_rwlock_t lock;          /* guards known */
    struct known_state known;
    struct hearth_mutex seen_lock; /* guards the rest */
    struct hearth_idmap seen_map;
    struct seen_service *seen; /* [MAX_SEEN], made with the first */
    struct hearth_arena seen_arena;
};

/* ---- life ---- */

static void release_known(struct known_state *known)
{
    for (size_t i = 0; i < known->n_rules; i++) {
        hearth_selector_release(&known->rules[i].selector);
    }
    hearth_idmap_release(&known->map);
    hearth_arena_release(&known->arena);
}

enum hearth_status hearth_known_applications_new(struct hearth_known_applications **ret,
                                                 struct hearth_err *err)
{
    struct hearth_known_applications *table = hearth_mem_zalloc(sizeof *table);
    if (table == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate the table of applications");
    }

    hearth_mutex_init(&table->refreshing, HEARTH_RANK_SETTINGS_REFRESH,
                      "known_applications.refreshing");
    hearth_mutex_init(&table->seen_lock, HEARTH_RANK_SEEN, "known_applications.seen_lock");
    (void)pthread_rwlock_init(&table->lock, NULL);
    hearth_idmap_init(&table->known.map);
    hearth_idmap_init(&table->seen_map);
    hearth_arena_init(&table->known.arena, 0);
    hearth_arena_init(&table->seen_arena, 0);
    *ret = table;

    return HEARTH_OK;
}

void hearth_known_applications_free(struct hearth_known_applications *table)
{
    if (table == NULL) {
        return;
    }
    release_known(&table->known);
    hearth_idmap_release(&table->seen_map);
    hearth_arena_release(&table->seen_arena);
    hearth_mem_free(table->seen);
    (void)pthread_rwlock_destroy(&table->lock);
    hearth_mutex_destroy(&table->seen_lock);
    hearth_mutex_destroy(&table->refreshing);
    hearth_mem_free(table);
}

/* ---- deciding ---- */

static struct hearth_hash128 make_application_key(struct hearth_str tenant, struct hearth_str name)
{
    struct hearth_hash128 outer = hearth_hash128(tenant.p, tenant.n, hearth_hash_process_seed());
    return hearth_hash128(name.p, name.n, hearth_hash_mix(outer.lo, outer.hi));
}

static bool does_rule_match(const struct known_rule *rule, struct hearth_str service,
                            const struct hearth_labels *labels)
{
    for (size_t i = 0; i < rule->selector.n; i++) {
        const struct hearth_matcher *matcher = &rule->selector.matchers[i];
        struct hearth_str value = hearth_str_eq_c(matcher->name, SERVICE_NAME)
                                      ? service
                                      : hearth_labels_get(labels, matcher->name);
        if (!hearth_matcher_matches(matcher, value)) {
            return false;
        }
    }

    return true;
}

/* What the rules of the tenant say; the last that matches counts. */
static int32_t ask_rules(const struct known_state *known, struct hearth_str tenant,
                         struct hearth_str service, const struct hearth_labels *labels)
{
    const struct rule_tenant *found = NULL;
    int32_t profiling = HEARTH_PROFILING_UNSET;

    for (size_t low = 0, high = known->n_tenants; low < high && found == NULL;) {
        size_t mid = (low + high) / 2;
        int order = hearth_str_cmp(known->tenants[mid].tenant, tenant);
        found = order == 0 ? &known->tenants[mid] : NULL;
        low = order < 0 ? mid + 1 : low;
        high = order < 0 ? high : mid;
    }

    for (size_t i = 0; found != NULL && i < found->n; i++) {
        const struct known_rule *rule = &known->rules[found->first + i];
        if (does_rule_match(rule, service, labels)) {
            profiling = rule->profiling;
        }
    }

    return profiling;
}

/* Note that a service was seen. Returns true if that was before approval was required. */
static bool note_service(struct hearth_known_applications *table, struct hearth_str tenant,
                         struct hearth_str name, struct hearth_hash128 key, bool is_approved)
{
    hearth_mutex_lock(&table->seen_lock);
    uint32_t i = hearth_idmap_find(&table->seen_map, key);
    if (i == HEARTH_IDMAP_NONE && table->seen_map.n < MAX_SEEN) {
        if (table->seen == NULL) {
            table->seen = hearth_mem_calloc(MAX_SEEN, sizeof table->seen[0]);
        }
        struct hearth_str tenant_copy = hearth_arena_str(&table->seen_arena, tenant);
        struct hearth_str name_copy = hearth_arena_str(&table->seen_arena, name);
        bool is_new = false;
        if (table->seen != NULL && tenant_copy.p != NULL && name_copy.p != NULL) {
            i = hearth_idmap_intern(&table->seen_map, key, (uint32_t)table->seen_map.n, &is_new);
        }
        if (is_new) {
            table->seen[i] =
                (struct seen_service){tenant_copy, name_copy, .is_approved = is_approved};
        }
    }

    /* Without memory it is noted another time. */
    if (i != HEARTH_IDMAP_NONE) {
        struct seen_service *seen = &table->seen[i];
        seen->last_ms = hearth_clock_wall_ns() / HEARTH_NS_PER_MS;
        seen->first_ms = seen->first_ms > 0 ? seen->first_ms : seen->last_ms;
        is_approved = seen->is_approved;
    }

    hearth_mutex_unlock(&table->seen_lock);

    return is_approved;
}

enum hearth_acceptance hearth_store_accepts(struct hearth_store *store, struct hearth_str tenant,
                                            struct hearth_str service,
                                            const struct hearth_labels *labels,
                                            bool require_approval)
{
    struct hearth_known_applications *table = store->known_applications;
    struct hearth_hash128 key = make_application_key(tenant, service);

    hearth_lock_check(&table->lock, HEARTH_RANK_KNOWN_APPLICATIONS, LOCK_NAME);
    (void)pthread_rwlock_rdlock(&table->lock);
    hearth_lock_acquired(&table->lock, HEARTH_RANK_KNOWN_APPLICATIONS, LOCK_NAME);
    const struct known_state *known = &table->known;
    uint32_t i = hearth_idmap_find(&known->map, key);
    bool is_known = i != HEARTH_IDMAP_NONE;
    int32_t profiling = is_known ? known->applications[i].profiling : HEARTH_PROFILING_UNSET;
    bool is_approved = is_known && known->applications[i].approved != 0;
    if (profiling == HEARTH_PROFILING_UNSET && known->n_rules > 0) {
        profiling = ask_rules(known, tenant, service, labels);
    }
    hearth_lock_released(&table->lock, LOCK_NAME);
    (void)pthread_rwlock_unlock(&table->lock);

    /* The table decides about a service that it has; until then, this server's first sight. */
    bool was_approved = note_service(table, tenant, service, key, !require_approval);
    is_approved = is_known ? is_approved : was_approved;
    if (require_approval && !is_approved) {
        return HEARTH_NOT_APPROVED;
    }

    return profiling == HEARTH_PROFILING_OFF ? HEARTH_APPLICATION_OFF : HEARTH_ACCEPTED;
}

/* ---- writing what was seen ---- */

struct seen_batch {
    struct hearth_str tenants[MAX_BATCH], names[MAX_BATCH];
    struct hearth_hash128 keys[MAX_BATCH];
    int64_t first[MAX_BATCH], last[MAX_BATCH], approved[MAX_BATCH], max[MAX_BATCH];
    uint32_t index[MAX_BATCH];
    size_t n;
};

/* Gather services to be written, from *at on. The texts stay: only a step empties the table. */
static void gather_seen(struct hearth_known_applications *table, size_t *at,
                        struct seen_batch *batch)
{
    batch->n = 0;

    hearth_mutex_lock(&table->seen_lock);
    for (; *at < table->seen_map.n && batch->n < MAX_BATCH; ++*at) {
        const struct seen_service *seen = &table->seen[*at];
        if (seen->written_ms > 0 && seen->last_ms < seen->written_ms + FLUSH_MS) {
            continue;
        }
        size_t n = batch->n++;
        batch->tenants[n] = seen->tenant;
        batch->names[n] = seen->name;
        batch->keys[n] = hearth_hash128(seen->name.p, seen->name.n, 0);
        batch->first[n] = seen->first_ms;
        batch->last[n] = seen->last_ms;
        batch->approved[n] = seen->is_approved;
        batch->index[n] = (uint32_t)*at;
    }

    hearth_mutex_unlock(&table->seen_lock);
}

/*
 * Insert new services, up to the tenant's limit, and raise the times of known ones. The clock moves
 * if a row was inserted: xmax of such a row is 0. Rows are sorted by their keys, so that servers
 * never wait in a circle.
 */
static enum hearth_status write_seen_batch(struct hearth_store *store, struct hearth_pg *pg,
                                           struct seen_batch *batch, struct hearth_err *err)
{
    struct hearth_arena arena;
    struct hearth_pg_params params;

    for (size_t i = 0; i < batch->n; i++) {
        batch->max[i] = hearth_store_setting(store, batch->tenants[i], "max-services",
                                             (int64_t)hearth_store_live(store)->max_services);
    }

    hearth_arena_init(&arena, 0);
    hearth_pg_params_init(&params, &arena);
    hearth_pg_param_text_array(&params, batch->tenants, batch->n);
    hearth_pg_param_uuid_array(&params, batch->keys, batch->n);
    hearth_pg_param_text_array(&params, batch->names, batch->n);
    hearth_pg_param_i64_array(&params, batch->first, batch->n);
    hearth_pg_param_i64_array(&params, batch->last, batch->n);
    hearth_pg_param_i64_array(&params, batch->approved, batch->n);
    hearth_pg_param_i64_array(&params, batch->max, batch->n);

    enum hearth_pg_fault fault = HEARTH_PG_FAULT_NONE;
    enum hearth_status status = hearth_pg_exec(
        pg,
        "WITH seen AS (SELECT * FROM unnest($1::text[], $2::uuid[], $3::text[], $4::int8[],"
        " $5::int8[], $6::int8[], $7::int8[]) AS s (tenant, name_key, name, first_seen, last_seen,"
        " approved, most) ORDER BY tenant, name_key), counts AS (SELECT t.tenant, (SELECT count(*)"
        " FROM hearth_data.application a WHERE a.tenant = t.tenant) AS n FROM (SELECT DISTINCT"
        " tenant FROM seen) t), done AS (INSERT INTO hearth_data.application AS a (tenant,"
        " name_key, name, first_seen, last_seen, approved) SELECT s.tenant, s.name_key, s.name,"
        " s.first_seen, s.last_seen, s.approved::int4 FROM seen s JOIN counts c USING (tenant)"
        " WHERE s.most = 0 OR c.n < s.most OR EXISTS (SELECT FROM hearth_data.application o WHERE"
        " o.tenant = s.tenant AND o.name_key = s.name_key) ON CONFLICT (tenant, name_key) DO"
        " UPDATE SET last_seen = greatest(a.last_seen, excluded.last_seen), first_seen = CASE WHEN"
        " a.first_seen = 0 THEN excluded.first_seen ELSE a.first_seen END RETURNING xmax = 0 AS"
        " is_new) UPDATE hearth_data.application_clock SET version = version + 1 WHERE EXISTS"
        " (SELECT FROM done WHERE is_new)",
        &params, NULL, NULL, &fault, err);
    hearth_arena_release(&arena);

    return status;
}

static enum hearth_status write_seen(struct hearth_store *store, struct hearth_pg *pg,
                                     struct hearth_err *err)
{
    struct hearth_known_applications *table = store->known_applications;
    struct seen_batch *batch = hearth_mem_zalloc(sizeof *batch);
    enum hearth_status status = HEARTH_OK;
    size_t at = 0;

    if (batch == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for services that were seen");
    }

    while (status == HEARTH_OK) {
        gather_seen(table, &at, batch);
        if (batch->n == 0) {
            break;
        }
        status = write_seen_batch(store, pg, batch, err);
        hearth_mutex_lock(&table->seen_lock);
        for (size_t i = 0; i < batch->n && status == HEARTH_OK; i++) {
            table->seen[batch->index[i]].written_ms = batch->last[i];
        }
        hearth_mutex_unlock(&table->seen_lock);
    }

    /* A full table is emptied: it is filled again by the services that are still there. */
    hearth_mutex_lock(&table->seen_lock);
    if (status == HEARTH_OK && table->seen_map.n == MAX_SEEN) {
        hearth_idmap_reset(&table->seen_map);
        hearth_arena_reset(&table->seen_arena);
    }
    hearth_mutex_unlock(&table->seen_lock);
    hearth_mem_free(batch);

    return status;
}

/* ---- reading ---- */

/* Columns: tenant, name, profiling, approved. */
static enum hearth_status take_applications(struct known_state *fresh, const PGresult *rows,
                                            struct hearth_err *err)
{
    size_t n = (size_t)PQntuples(rows);
    fresh->applications = hearth_arena_array(&fresh->arena, n, sizeof fresh->applications[0]);
    if (fresh->applications == NULL) {
        return HEARTH_FAIL_ARENA(err, &fresh->arena);
    }

    for (size_t i = 0; i < n; i++) {
        struct hearth_hash128 key =
            make_application_key(hearth_pg_str(rows, (int)i, 0), hearth_pg_str(rows, (int)i, 1));
        bool is_new;
        uint32_t at = hearth_idmap_intern(&fresh->map, key, (uint32_t)fresh->map.n, &is_new);
        if (at == HEARTH_IDMAP_NONE) {
            return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for %zu applications", n);
        }
        fresh->applications[at] = (struct known_application){
            (uint8_t)hearth_pg_i32(rows, (int)i, 2), (uint8_t)hearth_pg_i32(rows, (int)i, 3)};
    }

    return HEARTH_OK;
}

/* Columns: tenant, selector, profiling; sorted by tenant and name. A selector was checked when it
 * was set; one that is not understood any more matches nothing. */
static enum hearth_status take_rules(struct known_state *fresh, const PGresult *rows,
                                     struct hearth_err *err)
{
    size_t n = (size_t)PQntuples(rows);
    fresh->rules = hearth_arena_calloc(&fresh->arena, n, sizeof fresh->rules[0]);
    fresh->tenants = hearth_arena_calloc(&fresh->arena, n, sizeof fresh->tenants[0]);
    if (fresh->rules == NULL || fresh->tenants == NULL) {
        return HEARTH_FAIL_ARENA(err, &fresh->arena);
    }

    for (size_t i = 0; i < n; i++) {
        struct hearth_str tenant = hearth_pg_str(rows, (int)i, 0);
        struct known_rule *rule = &fresh->rules[fresh->n_rules];
        hearth_selector_init(&rule->selector);
        if (hearth_selector_parse(&rule->selector,
                                  hearth_arena_str(&fresh->arena, hearth_pg_str(rows, (int)i, 1)),
                                  &fresh->arena, NULL, NULL) != HEARTH_OK) {
            continue;
        }
        rule->profiling = hearth_pg_i32(rows, (int)i, 2);
        if (fresh->n_tenants == 0 ||
            !hearth_str_eq(fresh->tenants[fresh->n_tenants - 1].tenant, tenant)) {
            fresh->tenants[fresh->n_tenants++] =
                (struct rule_tenant){hearth_arena_str(&fresh->arena, tenant), fresh->n_rules, 0};
        }
        fresh->tenants[fresh->n_tenants - 1].n++;
        fresh->n_rules++;
    }

    return fresh->arena.refused ? HEARTH_FAIL_ARENA(err, &fresh->arena) : HEARTH_OK;
}

/* The version is read first: a change after it is read again by the next step. */
static enum hearth_status read_known_tables(struct known_state *fresh, struct hearth_pg *pg,
                                            struct hearth_err *err)
{
    PGresult *rows = NULL;

    HEARTH_TRY(hearth_pg_exec(pg,
                              "SELECT tenant, name, profiling, approved FROM"
                              " hearth_data.application",
                              NULL, NULL, &rows, NULL, err));
    enum hearth_status status = take_applications(fresh, rows, err);
    PQclear(rows);
    HEARTH_TRY(status);

    HEARTH_TRY(hearth_pg_exec(pg,
                              "SELECT tenant, selector, profiling FROM"
                              " hearth_data.application_rule ORDER BY tenant COLLATE \"C\","
                              " name COLLATE \"C\"",
                              NULL, NULL, &rows, NULL, err));
    status = take_rules(fresh, rows, err);
    PQclear(rows);

    return status;
}

static enum hearth_status read_version(struct hearth_pg *pg, int64_t *ret, struct hearth_err *err)
{
    PGresult *rows = NULL;
    HEARTH_TRY(hearth_pg_exec(pg, "SELECT max(version) FROM hearth_data.application_clock", NULL,
                              NULL, &rows, NULL, err));
    *ret = hearth_pg_i64(rows, 0, 0);
    PQclear(rows);

    return HEARTH_OK;
}

static enum hearth_status refresh_known(struct hearth_known_applications *table,
                                        struct hearth_pg *pg, struct hearth_err *err)
{
    struct known_state fresh = {.n_rules = 0};

    HEARTH_TRY(read_version(pg, &fresh.version, err));
    if (fresh.version == table->known.version) {
        return HEARTH_OK;
    }

    /* Read it, and put it in the place of the old one. */
    hearth_idmap_init(&fresh.map);
    hearth_arena_init(&fresh.arena, 0);
    enum hearth_status status = read_known_tables(&fresh, pg, err);
    if (status == HEARTH_OK) {
        hearth_lock_check(&table->lock, HEARTH_RANK_KNOWN_APPLICATIONS, LOCK_NAME);
        (void)pthread_rwlock_wrlock(&table->lock);
        hearth_lock_acquired(&table->lock, HEARTH_RANK_KNOWN_APPLICATIONS, LOCK_NAME);
        struct known_state old = table->known;
        table->known = fresh;
        fresh = old;
        hearth_lock_released(&table->lock, LOCK_NAME);
        (void)pthread_rwlock_unlock(&table->lock);
    }

    release_known(&fresh);

    return status;
}

enum hearth_status hearth_known_applications_step(struct hearth_store *store, struct hearth_pg *pg,
                                                  struct hearth_err *err)
{
    struct hearth_known_applications *table = store->known_applications;

    hearth_mutex_lock(&table->refreshing);
    enum hearth_status status = write_seen(store, pg, err);
    if (status == HEARTH_OK) {
        status = refresh_known(table, pg, err);
    }
    hearth_mutex_unlock(&table->refreshing);

    return status;
}
