/*
 * settings.c -- hearth_data.tenant_setting in memory (contract: settings.h).
 *
 * A refresh reads the whole table, which is small: settings are made by hand, and the builder adds
 * a few to each tenant that has some (retention.c). Refreshes take turns, so that a refresh
 * that read before a change never restores the old value after it.
 */
#include "hearth/store/settings.h"

#include "hearth/base/mem.h"

#include "catalog/settings_cache.h"
#include "pg/pg.h"
#include "pg/store_state.h"
#include "session/session.h"

#include <assert.h>

#define LOCK_NAME "settings.lock"

struct tenant_settings {
    struct hearth_str tenant;
    struct hearth_setting *v; /* sorted by name */
    size_t n;
};

struct hearth_settings {
    struct hearth_mutex refreshing;  /* held by a refresh from its statement to its end */
    pthread_rwlock_t lock;           /* guards the rest */
    struct hearth_arena arena;       /* holds what tenants points to */
    struct tenant_settings *tenants; /* sorted by name */
    size_t n;
};

enum hearth_status hearth_settings_new(struct hearth_settings **ret, struct hearth_err *err)
{
    struct hearth_settings *settings = hearth_mem_zalloc(sizeof *settings);
    if (settings == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate the settings of tenants");
    }

    hearth_mutex_init(&settings->refreshing, HEARTH_RANK_SETTINGS_REFRESH, "settings.refreshing");
    (void)pthread_rwlock_init(&settings->lock, NULL);
    hearth_arena_init(&settings->arena, 0);
    *ret = settings;

    return HEARTH_OK;
}

void hearth_settings_free(struct hearth_settings *settings)
{
    if (settings != NULL) {
        hearth_arena_release(&settings->arena);
        (void)pthread_rwlock_destroy(&settings->lock);
        hearth_mutex_destroy(&settings->refreshing);
        hearth_mem_free(settings);
    }
}

/* ---- reading ---- */

static int compare_tenant_names(struct hearth_str a, struct hearth_str b)
{
    size_t n = a.n < b.n ? a.n : b.n;
    int order = n == 0 ? 0 : memcmp(a.p, b.p, n);
    return order != 0 ? order : (a.n > b.n) - (a.n < b.n);
}

void hearth_store_settings(struct hearth_store *store, struct hearth_str tenant,
                           hearth_setting_fn *visit, void *context)
{
    assert(store != NULL && visit != NULL);

    struct hearth_settings *settings = store->settings;
    hearth_lock_check(&settings->lock, HEARTH_RANK_SETTINGS, LOCK_NAME);
    (void)pthread_rwlock_rdlock(&settings->lock);
    hearth_lock_acquired(&settings->lock, HEARTH_RANK_SETTINGS, LOCK_NAME);

    /* Binary search by the tenant's name. */
    size_t low = 0, high = settings->n;
    while (low < high) {
        size_t mid = (low + high) / 2;
        int order = compare_tenant_names(settings->tenants[mid].tenant, tenant);
        if (order == 0) {
            for (size_t i = 0; i < settings->tenants[mid].n; i++) {
                const struct hearth_setting *setting = &settings->tenants[mid].v[i];
                visit(context, setting->name, setting->value);
            }
            break;
        }
        low = order < 0 ? mid + 1 : low;
        high = order < 0 ? high : mid;
    }

    hearth_lock_released(&settings->lock, LOCK_NAME);
    (void)pthread_rwlock_unlock(&settings->lock);
}

struct wanted_setting {
    const char *name;
    int64_t value;
};

static void take_wanted_setting(void *context, struct hearth_str name, int64_t value)
{
    struct wanted_setting *wanted = context;
    if (hearth_str_eq_c(name, wanted->name)) {
        wanted->value = value;
    }
}

int64_t hearth_store_setting(struct hearth_store *store, struct hearth_str tenant, const char *name,
                             int64_t other)
{
    struct wanted_setting wanted = {name, other};
    hearth_store_settings(store, tenant, take_wanted_setting, &wanted);
    return wanted.value;
}

/* Set fresh->tenants, in its arena. Rows, by tenant: name of the tenant, name, value. */
static enum hearth_status take_setting_rows(struct hearth_settings *fresh, const PGresult *rows,
                                            struct hearth_err *err)
{
    size_t n = (size_t)PQntuples(rows);
    struct hearth_arena *arena = &fresh->arena;
    struct hearth_setting *all = hearth_arena_array(arena, n, sizeof all[0]);

    fresh->tenants = hearth_arena_array(arena, n, sizeof fresh->tenants[0]);
    if (all == NULL || fresh->tenants == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (size_t i = 0; i < n; i++) {
        struct hearth_str tenant = hearth_pg_str(rows, (int)i, 0);
        if (fresh->n == 0 || !hearth_str_eq(fresh->tenants[fresh->n - 1].tenant, tenant)) {
            fresh->tenants[fresh->n++] =
                (struct tenant_settings){hearth_arena_str(arena, tenant), &all[i], 0};
        }
        all[i] = (struct hearth_setting){hearth_arena_str(arena, hearth_pg_str(rows, (int)i, 1)),
                                         hearth_pg_i64(rows, (int)i, 2)};
        fresh->tenants[fresh->n - 1].n++;
    }

    return arena->refused ? HEARTH_FAIL_ARENA(err, arena) : HEARTH_OK;
}

static enum hearth_status read_settings(struct hearth_settings *fresh, struct hearth_pg *pg,
                                        struct hearth_err *err)
{
    PGresult *rows = NULL;
    HEARTH_TRY(hearth_pg_exec(pg,
                              "SELECT coalesce(t.name, ''), s.name, s.value FROM"
                              " hearth_data.tenant_setting s LEFT JOIN hearth_data.tenant t USING"
                              " (tenant_id) WHERE t.name IS NOT NULL OR s.tenant_id = 0"
                              " ORDER BY coalesce(t.name, '') COLLATE \"C\", s.name COLLATE \"C\"",
                              NULL, NULL, &rows, NULL, err));
    enum hearth_status status = take_setting_rows(fresh, rows, err);
    PQclear(rows);

    return status;
}

enum hearth_status hearth_settings_refresh(struct hearth_store *store, struct hearth_pg *pg,
                                           struct hearth_err *err)
{
    struct hearth_settings *settings = store->settings;
    struct hearth_settings fresh = {0};

    hearth_arena_init(&fresh.arena, 0);
    hearth_mutex_lock(&settings->refreshing);
    enum hearth_status status = read_settings(&fresh, pg, err);
    if (status == HEARTH_OK) {
        hearth_lock_check(&settings->lock, HEARTH_RANK_SETTINGS, LOCK_NAME);
        (void)pthread_rwlock_wrlock(&settings->lock);
        hearth_lock_acquired(&settings->lock, HEARTH_RANK_SETTINGS, LOCK_NAME);
        struct hearth_arena old = settings->arena;
        settings->arena = fresh.arena;
        settings->tenants = fresh.tenants;
        settings->n = fresh.n;
        hearth_lock_released(&settings->lock, LOCK_NAME);
        (void)pthread_rwlock_unlock(&settings->lock);
        fresh.arena = old;
    }

    hearth_mutex_unlock(&settings->refreshing);
    hearth_arena_release(&fresh.arena);

    return status;
}

/* ---- setting ---- */

struct settings_change {
    struct hearth_store *store;
    struct hearth_str tenant;
    bool make_tenant;
    const struct hearth_setting *settings;
    size_t n;
};

/*
 * Create the tenant unless it exists. The clock's row is updated first, as in all writes of the
 * catalogue: servers find new tenants by their version.
 */
static enum hearth_status create_setting_tenant(const struct settings_change *change,
                                                struct hearth_pg *pg,
                                                enum hearth_pg_fault *ret_fault,
                                                struct hearth_err *err)
{
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, &arena);
    hearth_pg_param_text(&params, change->tenant);
    PGresult *rows = NULL;
    enum hearth_status status =
        hearth_pg_exec(pg, "SELECT 1 FROM hearth_data.tenant WHERE name = $1", &params, NULL, &rows,
                       ret_fault, err);
    bool found = status == HEARTH_OK && PQntuples(rows) == 1;
    PQclear(rows);
    if (status == HEARTH_OK && !found) {
        status = hearth_pg_exec(pg,
                                "WITH c AS (UPDATE hearth_data.catalog_clock SET version = version"
                                " + 1 RETURNING version) INSERT INTO hearth_data.tenant (name,"
                                " version) SELECT $1, version FROM c ON CONFLICT (name) DO NOTHING",
                                &params, NULL, NULL, ret_fault, err);
    }

    hearth_arena_release(&arena);

    return status;
}

static enum hearth_status set_settings_on(void *context, struct hearth_pg *pg,
                                          enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    const struct settings_change *change = context;
    struct hearth_arena arena;

    hearth_arena_init(&arena, 0);
    if (change->make_tenant) {
        HEARTH_TRY(create_setting_tenant(change, pg, ret_fault, err));
    }

    struct hearth_str *names = hearth_arena_array(&arena, change->n, sizeof names[0]);
    int64_t *values = hearth_arena_array(&arena, change->n, sizeof values[0]);
    if (names == NULL || values == NULL) {
        enum hearth_status refused = HEARTH_FAIL_ARENA(err, &arena);

        hearth_arena_release(&arena);
        return refused;
    }

    for (size_t i = 0; i < change->n; i++) {
        names[i] = change->settings[i].name;
        values[i] = change->settings[i].value;
    }

    struct hearth_pg_params params;
    hearth_pg_params_init(&params, &arena);
    hearth_pg_param_text(&params, change->tenant);
    hearth_pg_param_text_array(&params, names, change->n);
    hearth_pg_param_i64_array(&params, values, change->n);

    /*
     * Delete the settings with a negative value and upsert the others, all by the primary key
     * (tenant_id, name); of a repeated name, the last one. No row: the tenant does not exist.
     */
    PGresult *rows = NULL;
    enum hearth_status status = hearth_pg_exec(
        pg,
        "WITH t AS (SELECT tenant_id FROM hearth_data.tenant WHERE name = $1),"
        " u AS (SELECT DISTINCT ON (name) name, value FROM unnest($2::text[], $3::int8[])"
        " WITH ORDINALITY x (name, value, n) ORDER BY name, n DESC),"
        " gone AS (DELETE FROM hearth_data.tenant_setting s USING t, u WHERE"
        " s.tenant_id = t.tenant_id AND s.name = u.name AND u.value < 0),"
        " made AS (INSERT INTO hearth_data.tenant_setting (tenant_id, name, value) SELECT"
        " tenant_id, name, value FROM t, u WHERE value >= 0 ON CONFLICT (tenant_id, name) DO"
        " UPDATE SET value = excluded.value)"
        " SELECT 1 FROM t",
        &params, NULL, &rows, ret_fault, err);
    bool found = status == HEARTH_OK && PQntuples(rows) == 1;
    PQclear(rows);
    hearth_arena_release(&arena);
    HEARTH_TRY(status);
    if (!found) {
        return HEARTH_FAIL(err, HEARTH_NOT_FOUND, "no tenant \"" HEARTH_STR_FMT "\"",
                           HEARTH_STR_ARG(change->tenant));
    }

    return hearth_settings_refresh(change->store, pg, err);
}

enum hearth_status hearth_store_settings_set(struct hearth_store *store, struct hearth_str tenant,
                                             bool make, const struct hearth_setting *settings,
                                             size_t n, struct hearth_err *err)
{
    assert(store != NULL && (n == 0 || settings != NULL));

    HEARTH_TRY(hearth_store_check_open(store, err));

    struct settings_change change = {store, tenant, make, settings, n};
    return hearth_store_as_owner(store, NULL, set_settings_on, &change, err);
}
