/*
 * partitions.h -- the leaves of partitioned tables, one for each day: creating, naming and removing
 * them (private to the store).
 *
 * The audit log has a leaf for each month. Its day is the first one of the month; functions that
 * create a leaf accept any day of the month.
 *
 * partitions.c creates leaves, partitions_drop.c removes them.
 *
 * Threads: safe, also between servers.
 */
#ifndef HEARTH_STORE_PARTITIONS_H
#define HEARTH_STORE_PARTITIONS_H

#include "hearth/store/store.h"

#include "pg/pg.h"

struct hearth_partitions;

HEARTH_MUST_CHECK enum hearth_status
hearth_partitions_new(struct hearth_partitions **ret_partitions, struct hearth_err *err);
void hearth_partitions_free(struct hearth_partitions *partitions); /* NULL-safe */

/* Leaves of a day, a bit for each partitioned table. */
enum {
    HEARTH_LEAF_PROFILE = 1 << 0,
    HEARTH_LEAF_DICT_CHUNK = 1 << 1,
    HEARTH_LEAF_SERIES_HOUR = 1 << 2,
    HEARTH_LEAF_ROLL_10M = 1 << 3,
    HEARTH_LEAF_ROLL_1H = 1 << 4,
    HEARTH_LEAF_ROLL_1D = 1 << 5,
    HEARTH_LEAF_HOUR_TOTALS = 1 << 6,
    HEARTH_LEAF_SEGMENT = 1 << 7,
    HEARTH_LEAF_SPAN_GROUP = 1 << 8,
    HEARTH_LEAF_SPAN_INDEX = 1 << 9,
    HEARTH_LEAF_MONITOR_MINUTE = 1 << 10,
    HEARTH_LEAF_NETWORK_SAMPLE = 1 << 11,
    HEARTH_LEAF_AUDIT = 1 << 12, /* a month */
    HEARTH_LEAVES_ALL = (1 << 13) - 1,
    HEARTH_LEAVES_ROLL =
        HEARTH_LEAF_ROLL_10M | HEARTH_LEAF_ROLL_1H | HEARTH_LEAF_ROLL_1D | HEARTH_LEAF_HOUR_TOTALS,
};

/*
 * Before SET LOCAL in a transaction over leaves: the setting holds on the nodes of distributed
 * tables, too. On plain tables the setting has no effect.
 */
#define HEARTH_SQL_ON_NODES "SET LOCAL citus.propagate_set_commands = 'local'; "

/* Write "hearth_data.profile_20261120" for ("profile", day). */
void hearth_partition_name(const char *parent, int32_t day, char out[64]);
/* Return the first day of the month of `day`; *ret_next: the first day of the next month. */
int32_t hearth_partition_month(int32_t day, int32_t *ret_next);

/* ---- partitions.c ---- */

/* Forget the known leaves of the day: a statement has failed because a table is missing. */
void hearth_partitions_forget(struct hearth_store *store, int32_t day);

/* Whether these leaves of the day are known to exist, so that _ensure needs no connection. */
bool hearth_partitions_are_known(struct hearth_store *store, unsigned leaves, int32_t day);

/*
 * Create these leaves (HEARTH_LEAF_...) of the day (days since the epoch) if they do not exist.
 * Callers name only leaves that they are about to write: creating a leaf takes a few milliseconds,
 * and while retention drops a leaf of the day, no new one can be created (UNAVAILABLE), nor while a
 * node of distributed tables is lost (UNAVAILABLE, which names it; hearth_store_has_lost_nodes is
 * true then). Known leaves cost no statement. `pg` must not be in a transaction.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_partitions_ensure(struct hearth_store *store,
                                                              struct hearth_pg *pg, unsigned leaves,
                                                              int32_t day, struct hearth_err *err);

/* Return whether a leaf of the parent and day is being dropped, so that no new one can be created.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_partitions_is_leaving(struct hearth_pg *pg,
                                                                  const char *parent, int32_t day,
                                                                  bool *ret_leaving,
                                                                  struct hearth_err *err);

/* ---- partitions_drop.c ---- */

#define HEARTH_SCHEMA_DOT     "hearth_data."
#define HEARTH_LEAVING_PREFIX "drop_" /* a leaf that is being dropped: drop_profile_20261120 */

/*
 * Remove the leaf of the day without blocking readers or writers. If a leaf of the day is already
 * being dropped, only that leaf is removed: a leaf that was created since has profiles of its own.
 * OK: the leaf is removed, or did not exist. UNAVAILABLE: statements that began earlier still read
 * it; call again later. A kill in the middle does no harm, and several servers may call it. `pg`
 * must not be in a transaction; it may be reconnected.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_partitions_drop(struct hearth_store *store,
                                                            struct hearth_pg *pg,
                                                            const char *parent, int32_t day,
                                                            struct hearth_err *err);

/* The same for a leaf that already has its drop_ name; no other leaf is removed. */
HEARTH_MUST_CHECK enum hearth_status hearth_partitions_finish_drop(struct hearth_store *store,
                                                                   struct hearth_pg *pg,
                                                                   const char *parent, int32_t day,
                                                                   struct hearth_err *err);

/* Find the first day >= from_day with a leaf of one of the parents ("'profile', 'segment'"). */
HEARTH_MUST_CHECK enum hearth_status
hearth_partitions_next_day(struct hearth_pg *pg, const char *quoted_parents, int32_t from_day,
                           int32_t *ret_day, bool *ret_found, struct hearth_err *err);

/* The first days of a parent: with a leaf, and with a leaf that is being dropped. */
struct hearth_oldest_leaf {
    int32_t day, leaving_day;
    bool exists, is_leaving; /* false: there is no such day */
};

/* Find the first days of each parent, with one statement for all. ret[n_parents] is filled. */
HEARTH_MUST_CHECK enum hearth_status
hearth_partitions_oldest(struct hearth_pg *pg, const struct hearth_str *parents, size_t n_parents,
                         struct hearth_oldest_leaf *ret, struct hearth_err *err);

/* Find the first day whose leaf of this parent is being dropped. */
HEARTH_MUST_CHECK enum hearth_status hearth_partitions_leaving(struct hearth_pg *pg,
                                                               const char *parent, int32_t *ret_day,
                                                               bool *ret_found,
                                                               struct hearth_err *err);

#endif
