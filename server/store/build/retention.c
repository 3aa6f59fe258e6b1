/*
 * retention.c -- how long a tenant's data is kept: the tenant's settings, otherwise the options of
 * the server.
 */
#include "build/retention.h"

#include "hearth/base/clock.h"
#include "hearth/store/settings.h"

#include "pg/session.h"
#include "pg/store_state.h"

#include <assert.h>

void hearth_retention_default(const struct hearth_store *store, struct hearth_retention *ret)
{
    const struct hearth_store_options *options = hearth_store_live(store);
    *ret = (struct hearth_retention){.profiles_ns = options->retain_raw_ns,
                                     .roll_10m_ns = options->retain_10m_ns,
                                     .roll_1h_ns = options->retain_1h_ns,
                                     .roll_1d_ns = options->retain_1d_ns,
                                     .spans_ns = options->retain_spans_ns,
                                     .monitors_ns = options->retain_monitors_ns,
                                     .network_ns = options->retain_network_ns};
}

/* Finds the field of a setting; NULL: no retention has this name. */
static int64_t *find_retention_field(struct hearth_retention *retention, struct hearth_str name)
{
    return hearth_str_eq_c(name, "retain-raw")   ? &retention->profiles_ns
           : hearth_str_eq_c(name, "retain-10m") ? &retention->roll_10m_ns
           : hearth_str_eq_c(name, "retain-1h")  ? &retention->roll_1h_ns
           : hearth_str_eq_c(name, "retain-1d")  ? &retention->roll_1d_ns
                                                 : NULL;
}

void hearth_retention_apply(struct hearth_retention *retention, struct hearth_str name,
                            int64_t value_ns)
{
    int64_t *field = find_retention_field(retention, name);

    if (field != NULL && value_ns >= 0) {
        *field = value_ns;
    }
}

struct tenant_retention {
    struct hearth_retention retention;
    struct hearth_retention_history history;
};

static void apply_setting(void *context, struct hearth_str name, int64_t value)
{
    struct tenant_retention *own = context;

    hearth_retention_apply(&own->retention, name, value);
    hearth_retention_history_apply(&own->history, name, value);
}

static void apply_history(void *context, struct hearth_str name, int64_t value)
{
    hearth_retention_history_apply(context, name, value);
}

void hearth_store_retention(struct hearth_store *store, struct hearth_str tenant,
                            struct hearth_retention *ret)
{
    assert(ret != NULL);

    struct tenant_retention own;
    hearth_retention_default(store, &own.retention);
    hearth_retention_history_init(&own.history);
    hearth_store_settings(store, tenant, apply_setting, &own);
    if (hearth_retention_history_is_empty(&own.history)) {
        hearth_store_settings(store, HEARTH_STR(HEARTH_RETENTION_DEFAULT), apply_history,
                              &own.history);
    }

    hearth_retention_bound(&own.history, hearth_clock_wall_ns(), &own.retention);
    *ret = own.retention;
}

enum hearth_status hearth_store_retention_set(struct hearth_store *store, struct hearth_str tenant,
                                              struct hearth_str name, int64_t value_ns,
                                              struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(store, err));
    struct hearth_retention any;
    if (find_retention_field(&any, name) == NULL) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "no setting \"" HEARTH_STR_FMT "\": there are retain-raw, retain-10m, "
                           "retain-1h and retain-1d",
                           HEARTH_STR_ARG(name));
    }

    struct hearth_setting setting = {name, value_ns};

    return hearth_store_settings_set(store, tenant, false, &setting, 1, err);
}
