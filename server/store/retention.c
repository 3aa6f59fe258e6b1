/*
 * retention.c -- how long a tenant's data is kept: the server's options, and what
 * hearth_data.tenant_setting says instead. In memory, refreshed by housekeeping.
 */
#include "retention.h"

#include "hearth/base/clock.h"
#include "hearth/base/mem.h"

#include "catalog.h"

struct entry {
    char *name; /* owned */
    size_t n_name;
    struct hearth_retention retention;
};

struct hearth_retentions {
    pthread_mutex_t lock;  /* guards the rest */
    struct entry *entries; /* tenants that have settings of their own */
    size_t n;
};

enum hearth_status hearth_retentions_new(struct hearth_retentions **ret, struct hearth_err *err)
{
    struct hearth_retentions *retentions = hearth_mem_zalloc(sizeof *retentions);
    if (retentions == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate the settings of tenants");
    }
    (void)pthread_mutex_init(&retentions->lock, NULL);
    *ret = retentions;
    return HEARTH_OK;
}

static void free_entries(struct entry *entries, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        hearth_mem_free(entries[i].name);
    }
    hearth_mem_free(entries);
}

void hearth_retentions_free(struct hearth_retentions *retentions)
{
    if (retentions != NULL) {
        free_entries(retentions->entries, retentions->n);
        (void)pthread_mutex_destroy(&retentions->lock);
        hearth_mem_free(retentions);
    }
}

/* ---- names and values ---- */

void hearth_retention_default(const struct hearth_store *store, struct hearth_retention *ret)
{
    const struct hearth_store_options *options = &store->options;
    *ret = (struct hearth_retention){.profiles_ns = options->retain_raw_ns,
                                     .roll_10m_ns = options->retain_10m_ns,
                                     .roll_1h_ns = options->retain_1h_ns,
                                     .roll_1d_ns = options->retain_1d_ns};
}

/* The field of that name; NULL: no such setting. */
static int64_t *field_of(struct hearth_retention *retention, struct hearth_str name)
{
    return hearth_str_eq_c(name, "retain-raw")   ? &retention->profiles_ns
           : hearth_str_eq_c(name, "retain-10m") ? &retention->roll_10m_ns
           : hearth_str_eq_c(name, "retain-1h")  ? &retention->roll_1h_ns
           : hearth_str_eq_c(name, "retain-1d")  ? &retention->roll_1d_ns
                                                 : NULL;
}

void hearth_retention_apply(struct hearth_retention *retention,
                            struct hearth_str name,
                            int64_t value_ns)
{
    int64_t *field = field_of(retention, name);
    if (field != NULL && value_ns >= 0) {
        *field = value_ns;
    }
}

/* ---- memory ---- */

static enum hearth_status take_settings(struct hearth_store *store,
                                        const PGresult *rows,
                                        struct entry *entries,
                                        size_t *ret_n,
                                        struct hearth_err *err)
{
    size_t n = 0;
    for (int row = 0; row < PQntuples(rows); row++) {
        struct hearth_str name = hearth_pg_str(rows, row, 0);
        if (n == 0 ||
            !hearth_str_eq(name, hearth_str_n(entries[n - 1].name, entries[n - 1].n_name))) {
            entries[n].name = hearth_mem_strndup(name.p, name.n);
            if (entries[n].name == NULL) {
                *ret_n = n;
                return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the settings of tenants");
            }
            entries[n].n_name = name.n;
            hearth_retention_default(store, &entries[n++].retention);
        }
        hearth_retention_apply(&entries[n - 1].retention, hearth_pg_str(rows, row, 1),
                               hearth_pg_i64(rows, row, 2));
    }
    *ret_n = n;
    return HEARTH_OK;
}

enum hearth_status
hearth_retentions_refresh(struct hearth_store *store, struct hearth_pg *pg, struct hearth_err *err)
{
    PGresult *rows = NULL;
    HEARTH_TRY(
        hearth_pg_exec(pg,
                       "SELECT t.name, s.name, s.value FROM hearth_data.tenant_setting s JOIN"
                       " hearth_data.tenant t USING (tenant_id) WHERE s.name LIKE 'retain-%'"
                       " ORDER BY t.tenant_id",
                       NULL, NULL, &rows, NULL, err));
    size_t n = 0;
    struct entry *entries = hearth_mem_calloc((size_t)PQntuples(rows) + 1, sizeof *entries);
    enum hearth_status status = HEARTH_OK;
    if (entries == NULL) {
        status = HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the settings of tenants");
    } else {
        status = take_settings(store, rows, entries, &n, err);
    }
    PQclear(rows);
    if (status == HEARTH_OK) {
        struct hearth_retentions *retentions = store->retentions;
        (void)pthread_mutex_lock(&retentions->lock);
        struct entry *old = retentions->entries;
        size_t n_old = retentions->n;
        retentions->entries = entries;
        retentions->n = n;
        (void)pthread_mutex_unlock(&retentions->lock);
        entries = old;
        n = n_old;
    }
    free_entries(entries, n);
    return status;
}

void hearth_store_retention(struct hearth_store *store,
                            struct hearth_str tenant,
                            struct hearth_retention *ret)
{
    struct hearth_retentions *retentions = store->retentions;
    hearth_retention_default(store, ret);
    (void)pthread_mutex_lock(&retentions->lock);
    for (size_t i = 0; i < retentions->n; i++) {
        const struct entry *entry = &retentions->entries[i];
        if (hearth_str_eq(tenant, hearth_str_n(entry->name, entry->n_name))) {
            *ret = entry->retention;
        }
    }
    (void)pthread_mutex_unlock(&retentions->lock);
}

/* ---- setting ---- */

struct setting {
    struct hearth_store *store;
    struct hearth_str tenant, name;
    int64_t value_ns;
};

static enum hearth_status
set_on(void *context, struct hearth_pg *pg, enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    const struct setting *setting = context;
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, &arena);
    hearth_pg_param_text(&params, setting->tenant);
    hearth_pg_param_text(&params, setting->name);
    hearth_pg_param_i64(&params, setting->value_ns);
    const char *sql = setting->value_ns < 0
                          ? "WITH t AS (SELECT tenant_id FROM hearth_data.tenant WHERE name = $1),"
                            " gone AS (DELETE FROM hearth_data.tenant_setting s USING t WHERE"
                            " s.tenant_id = t.tenant_id AND s.name = $2 AND $3 < 0)"
                            " SELECT 1 FROM t"
                          : "INSERT INTO hearth_data.tenant_setting (tenant_id, name, value) SELECT"
                            " tenant_id, $2, $3 FROM hearth_data.tenant WHERE name = $1"
                            " ON CONFLICT (tenant_id, name) DO UPDATE SET value = excluded.value"
                            " RETURNING 1";
    PGresult *rows = NULL;
    enum hearth_status status = hearth_pg_exec(pg, sql, &params, NULL, &rows, ret_fault, err);
    bool found = status == HEARTH_OK && PQntuples(rows) == 1;
    PQclear(rows);
    hearth_arena_release(&arena);
    HEARTH_TRY(status);
    if (!found) {
        return HEARTH_FAIL(err, HEARTH_NOT_FOUND, "no tenant \"" HEARTH_STR_FMT "\"",
                           HEARTH_STR_ARG(setting->tenant));
    }
    return hearth_retentions_refresh(setting->store, pg, err);
}

enum hearth_status hearth_store_retention_set(struct hearth_store *store,
                                              struct hearth_str tenant,
                                              struct hearth_str name,
                                              int64_t value_ns,
                                              struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(store, err));
    struct hearth_retention any;
    if (field_of(&any, name) == NULL) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "no setting \"" HEARTH_STR_FMT "\": there are retain-raw, retain-10m, "
                           "retain-1h and retain-1d",
                           HEARTH_STR_ARG(name));
    }
    struct setting setting = {store, tenant, name, value_ns};
    return hearth_store_with_pg(store, NULL, set_on, &setting, err);
}
