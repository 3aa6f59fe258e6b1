/*
 * compact_days.c -- drops leaves of `profile` whose rows all lie in segments.
 *
 * A profile may arrive while a leaf is examined: one of a service that has no watermark yet is not
 * late, however old it is. So the leaf is locked against writers, for the moment that the statement
 * takes, and gets its leaving name in the same transaction: a later writer misses the leaf, and its
 * committer makes the day again (partitions_drop.c finishes the drop). An hour is in series_hour,
 * committed, before its first profile is sent; so no profile is missed.
 */
#include "hearth/base/clock.h"

#include "build/builder.h"
#include "build/roll_states.h"
#include "pg/pg.h"
#include "session/partitions.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#define SEARCH_EACH_NS (60 * HEARTH_NS_PER_SEC)
/* Readers of all days wait for the lock as well, so the wait (in ms) is short. */
#define LOCK_SCRIPT \
    HEARTH_SQL_ON_NODES "SET LOCAL lock_timeout = 40; LOCK TABLE %s IN ACCESS EXCLUSIVE MODE"

/* Runs a statement that returns one boolean. */
static enum hearth_status exec_for_bool(struct hearth_builder *builder, const char *sql, bool *ret,
                                        struct hearth_err *err)
{
    PGresult *result = NULL;
    HEARTH_TRY(hearth_pg_exec(&builder->pg, sql, NULL, NULL, &result, NULL, err));
    *ret = PQgetvalue(result, 0, 0)[0] != 0;
    PQclear(result);

    return HEARTH_OK;
}

/*
 * Whether a service has series with an hour on this day that is not compacted. A service without a
 * row of roll_state has compacted nothing. The hours are found by the primary key of series_hour
 * (service_id, hour), and only for services that are not compacted past the day.
 */
static enum hearth_status is_needed(struct hearth_builder *builder, int32_t day, bool *ret_needed,
                                    struct hearth_err *err)
{
    char sql[640];
    (void)snprintf(sql, sizeof sql,
                   "SELECT FROM hearth_data.service s LEFT JOIN " HEARTH_SQL_STATES_R
                   " USING (service_id) WHERE (r.compacted_to IS NULL OR r.compacted_to < %" PRId64
                   ") AND EXISTS (SELECT FROM hearth_data.series_hour h WHERE h.service_id ="
                   " s.service_id AND h.hour >= %" PRId64 " AND h.hour < %" PRId64
                   " AND (r.compacted_to IS NULL OR (h.hour + 1) * 3600000000000 >"
                   " r.compacted_to)) LIMIT 1",
                   (day + 1) * HEARTH_NS_PER_DAY, day * INT64_C(24), day * INT64_C(24) + 24);

    return hearth_roll_states_match(&builder->pg, sql, ret_needed, err);
}

/*
 * Gives the leaf its leaving name if none of its rows is needed; *ret_renamed: nobody can write to
 * it any more. The caller rolls back in the other cases.
 */
static enum hearth_status rename_unless_needed(struct hearth_builder *builder, int32_t day,
                                               bool *ret_renamed, struct hearth_err *err)
{
    char leaf[64], sql[256];
    bool needed;
    *ret_renamed = false;
    hearth_partition_name("profile", day, leaf);

    /* Lock it. A leaf that is read or written to just now is tried again later. */
    HEARTH_TRY(hearth_builder_begin(builder, err));
    (void)snprintf(sql, sizeof sql, LOCK_SCRIPT, leaf);
    enum hearth_pg_fault fault = HEARTH_PG_FAULT_NONE;
    enum hearth_status status = hearth_pg_script(&builder->pg, sql, &fault, err);
    if (fault == HEARTH_PG_FAULT_RETRY) {
        return HEARTH_OK;
    }

    HEARTH_TRY(status);

    /* Check again: a profile may have arrived before the lock. */
    HEARTH_TRY(is_needed(builder, day, &needed, err));
    if (needed) {
        return HEARTH_OK;
    }

    /* Rename it. */
    (void)snprintf(sql, sizeof sql, "ALTER TABLE %s RENAME TO " HEARTH_LEAVING_PREFIX "%.40s", leaf,
                   leaf + strlen(HEARTH_SCHEMA_DOT));
    HEARTH_TRY(hearth_pg_script(&builder->pg, sql, NULL, err));
    HEARTH_TRY(hearth_builder_commit(builder, err));
    hearth_partitions_forget(builder->store, day);
    *ret_renamed = true;

    return HEARTH_OK;
}

/* An empty leaf costs nothing, and the next late profile would make it again. */
static enum hearth_status has_rows(struct hearth_builder *builder, int32_t day, bool *ret_has_rows,
                                   struct hearth_err *err)
{
    char leaf[64], sql[128];
    hearth_partition_name("profile", day, leaf);
    (void)snprintf(sql, sizeof sql, "SELECT EXISTS (SELECT 1 FROM %s)", leaf);

    return exec_for_bool(builder, sql, ret_has_rows, err);
}

/* Removes a leaf that has its leaving name. If readers prevent it, the next search tries again. */
static enum hearth_status drop_renamed(struct hearth_builder *builder, int32_t day,
                                       struct hearth_err *err)
{
    enum hearth_status status =
        hearth_partitions_finish_drop(builder->store, &builder->pg, "profile", day, err);

    return status == HEARTH_UNAVAILABLE ? HEARTH_OK : status;
}

/* Finishes a drop that has begun; otherwise drops the oldest day before closed_ns that it can. */
static enum hearth_status drop_oldest_compacted(struct hearth_builder *builder, int64_t closed_ns,
                                                struct hearth_err *err)
{
    /* Finish a drop. */
    int32_t day = 0;
    bool found;
    HEARTH_TRY(hearth_partitions_leaving(&builder->pg, "profile", &day, &found, err));
    if (found) {
        return drop_renamed(builder, day, err);
    }

    /* Search the days, oldest first. */
    HEARTH_TRY(hearth_partitions_next_day(&builder->pg, "'profile'", INT32_MIN, &day, &found, err));
    while (found && (day + 1) * HEARTH_NS_PER_DAY <= closed_ns) {
        bool filled, needed, renamed = false;
        HEARTH_TRY(has_rows(builder, day, &filled, err));
        HEARTH_TRY(is_needed(builder, day, &needed, err));

        if (filled && !needed) {
            enum hearth_status status = rename_unless_needed(builder, day, &renamed, err);
            hearth_builder_rollback(builder);
            HEARTH_TRY(status);
        }

        if (renamed) {
            return drop_renamed(builder, day, err);
        }

        HEARTH_TRY(
            hearth_partitions_next_day(&builder->pg, "'profile'", day + 1, &day, &found, err));
    }

    return HEARTH_OK;
}

enum hearth_status hearth_compact_days(struct hearth_builder *builder, int64_t closed_ns,
                                       struct hearth_err *err)
{
    assert(closed_ns % HEARTH_NS_PER_HOUR == 0);

    int64_t now_ns = hearth_clock_mono_ns();
    if (now_ns < builder->next_days_mono_ns) {
        return HEARTH_OK;
    }

    builder->next_days_mono_ns = now_ns + SEARCH_EACH_NS;

    return drop_oldest_compacted(builder, closed_ns, err);
}
