/*
 * retention.c -- how long a tenant's data is kept: the tenant's settings, otherwise the options of
 * the server.
 */
#include "build/retention.h"

#include "hearth/base/clock.h"
#include "hearth/store/settings.h"

#include "pg/store_state.h"
#include "session/session.h"

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

/* ---- history ---- */

/*
 * When a retention is raised, a tier begins later than the new retention says: what it held before
 * is deleted. A plan that does not know this reads the emptied tier, although longer blocks still
 * hold the data. So the builder records which retention it enforces before it deletes anything.
 */
static const struct {
    const char *kept, *emptied;
} NAMES[HEARTH_RETENTION_N_TIERS] = {
    {"kept-raw", "emptied-raw"},
    {"kept-10m", "emptied-10m"},
    {"kept-1h", "emptied-1h"},
    {"kept-1d", "emptied-1d"},
};

void hearth_retention_history_init(struct hearth_retention_history *history)
{
    for (size_t i = 0; i < HEARTH_RETENTION_N_TIERS; i++) {
        history->kept_ns[i] = -1;
        history->emptied_ns[i] = 0;
    }
}

void hearth_retention_history_apply(struct hearth_retention_history *history,
                                    struct hearth_str name, int64_t value_ns)
{
    for (size_t i = 0; i < HEARTH_RETENTION_N_TIERS && value_ns >= 0; i++) {
        if (hearth_str_eq_c(name, NAMES[i].kept)) {
            history->kept_ns[i] = value_ns;
        } else if (hearth_str_eq_c(name, NAMES[i].emptied)) {
            history->emptied_ns[i] = value_ns;
        }
    }
}

bool hearth_retention_history_is_empty(const struct hearth_retention_history *history)
{
    bool is_empty = true;

    for (size_t i = 0; i < HEARTH_RETENTION_N_TIERS; i++) {
        is_empty = is_empty && history->kept_ns[i] < 0 && history->emptied_ns[i] == 0;
    }

    return is_empty;
}

/* The time before which a tier was emptied, if it has wanted_ns of retention now. */
static int64_t find_emptied(const struct hearth_retention_history *history, size_t tier,
                            int64_t wanted_ns, int64_t now_ns)
{
    int64_t kept_ns = history->kept_ns[tier], emptied_ns = history->emptied_ns[tier];
    bool is_raised = kept_ns > 0 && (wanted_ns == 0 || wanted_ns > kept_ns);

    if (is_raised && kept_ns < now_ns && now_ns - kept_ns > emptied_ns) {
        emptied_ns = now_ns - kept_ns;
    }

    /* The present retention deletes this much, too. */
    bool is_past = wanted_ns > 0 && wanted_ns < now_ns && now_ns - wanted_ns >= emptied_ns;

    return is_past ? 0 : emptied_ns;
}

void hearth_retention_bound(const struct hearth_retention_history *history, int64_t now_ns,
                            struct hearth_retention *retention)
{
    retention->profiles_from_ns = find_emptied(history, 0, retention->profiles_ns, now_ns);
    retention->roll_10m_from_ns = find_emptied(history, 1, retention->roll_10m_ns, now_ns);
    retention->roll_1h_from_ns = find_emptied(history, 2, retention->roll_1h_ns, now_ns);
    retention->roll_1d_from_ns = find_emptied(history, 3, retention->roll_1d_ns, now_ns);
}

bool hearth_retention_record(struct hearth_retention_history *history,
                             const struct hearth_retention *retention, int64_t now_ns)
{
    const int64_t wanted_ns[HEARTH_RETENTION_N_TIERS] = {
        retention->profiles_ns, retention->roll_10m_ns, retention->roll_1h_ns,
        retention->roll_1d_ns};
    bool is_changed = false;

    for (size_t i = 0; i < HEARTH_RETENTION_N_TIERS; i++) {
        int64_t emptied_ns = find_emptied(history, i, wanted_ns[i], now_ns);
        is_changed = is_changed || emptied_ns != history->emptied_ns[i] ||
                     wanted_ns[i] != history->kept_ns[i];
        history->emptied_ns[i] = emptied_ns;
        history->kept_ns[i] = wanted_ns[i];
    }

    return is_changed;
}

void hearth_retention_history_list(const struct hearth_retention_history *history,
                                   struct hearth_setting ret[HEARTH_RETENTION_N_SETTINGS])
{
    for (size_t i = 0; i < HEARTH_RETENTION_N_TIERS; i++) {
        int64_t emptied_ns = history->emptied_ns[i];
        ret[2 * i] = (struct hearth_setting){hearth_str_c(NAMES[i].kept), history->kept_ns[i]};
        ret[2 * i + 1] = (struct hearth_setting){hearth_str_c(NAMES[i].emptied),
                                                 emptied_ns == 0 ? -1 : emptied_ns};
    }
}
