/*
 * retention.h -- how long tenants' data is kept; the sweep of the catalogue (private to the store).
 *
 * Threads: hearth_retention_... safe; hearth_sweep is confined to the builder's thread.
 */
#ifndef HEARTH_STORE_RETENTION_H
#define HEARTH_STORE_RETENTION_H

#include "hearth/store/background.h"
#include "hearth/store/settings.h"

#define HEARTH_RETENTION_N_TIERS 4 /* profiles, roll-ups of 10 minutes, an hour, a day */

/* Return the options of the server, which apply to tenants without settings. */
void hearth_retention_default(const struct hearth_store *store, struct hearth_retention *ret);

/* Set the value of one setting. Settings of other names, and values below 0, change nothing. */
void hearth_retention_apply(struct hearth_retention *retention, struct hearth_str name,
                            int64_t value_ns);

/* ---- history ---- */

/*
 * What retention has deleted so far, by tier. It is kept as settings "kept-<tier>" and
 * "emptied-<tier>": those of a tenant that has, or had, settings of its own, and those of
 * HEARTH_RETENTION_DEFAULT for all other tenants.
 */
struct hearth_retention_history {
    int64_t kept_ns
        [HEARTH_RETENTION_N_TIERS]; /* the retention enforced last; 0: for ever; -1: none yet */
    int64_t
        emptied_ns[HEARTH_RETENTION_N_TIERS]; /* what ended before was deleted; 0: nothing was */
};

#define HEARTH_RETENTION_DEFAULT    "" /* in place of the name of a tenant */
#define HEARTH_RETENTION_N_SETTINGS (2 * HEARTH_RETENTION_N_TIERS)

void hearth_retention_history_init(struct hearth_retention_history *history);

/* Set the value of one setting. Settings of other names change nothing. */
void hearth_retention_history_apply(struct hearth_retention_history *history,
                                    struct hearth_str name, int64_t value_ns);

bool hearth_retention_history_is_empty(const struct hearth_retention_history *history);

/* Set the times from which on nothing was deleted that the retention keeps. */
void hearth_retention_bound(const struct hearth_retention_history *history, int64_t now_ns,
                            struct hearth_retention *retention);

/* Note that the retention is enforced from now on. Return whether this changes the history. */
bool hearth_retention_record(struct hearth_retention_history *history,
                             const struct hearth_retention *retention, int64_t now_ns);

/* List the settings of a history; a negative value deletes one. Their names are constants. */
void hearth_retention_history_list(const struct hearth_retention_history *history,
                                   struct hearth_setting ret[HEARTH_RETENTION_N_SETTINGS]);

struct hearth_builder;

/*
 * Take series that have no hour left out of the catalogue, for about a second: service by service,
 * from the one after store->retention.sweep_service on. *ret_done: no service is left.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_sweep(struct hearth_builder *builder, bool *ret_done,
                                                  struct hearth_err *err);

#endif
