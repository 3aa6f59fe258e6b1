/*
 * retention_history.c -- what retention deleted while it was shorter than it is now.
 *
 * When a retention is raised, a tier begins later than the new retention says: what it held before
 * is deleted. A plan that does not know this reads the emptied tier, although longer blocks still
 * hold the data. So the builder records which retention it enforces before it deletes anything.
 */
#include "build/retention.h"

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
