/*
 * compact_days.c -- leaves of profile whose rows all lie in segments go as a whole.
 *
 * A profile may arrive while we look: one of a service that has no watermark yet is not late,
 * however old it is. So the leaf is locked against those who write, for the moment that the question
 * takes, and gets its leaving name in the same transaction: who comes later misses the leaf, and
 * its committer makes the day again (partitions_drop.c goes on from there). An hour is in series_hour,
 * committed, before the first profile of it is sent; so nothing is missed.
 */
#include "hearth/base/clock.h"

#include "build/builder.h"
#include "pg/partitions.h"
#include "pg/pg.h"

#include <inttypes.h>
#include <stdio.h>

#define LOOK_EACH_NS (60 * HEARTH_NS_PER_SEC)
/* Readers of all days wait behind us for no longer. */
#define LOCK_SCRIPT "SET LOCAL lock_timeout = 40; LOCK TABLE %s IN ACCESS EXCLUSIVE MODE"

static enum hearth_status ask(struct hearth_builder *builder, const char *sql, bool *ret,
                              struct hearth_err *err)
{
    PGresult *result = NULL;
    HEARTH_TRY(hearth_pg_exec(&builder->pg, sql, NULL, NULL, &result, NULL, err));
    *ret = PQgetvalue(result, 0, 0)[0] != 0;
    PQclear(result);
    return HEARTH_OK;
}

/* Has the day an hour of a service that is not compacted past it? No row: nothing is. */
static enum hearth_status is_needed(struct hearth_builder *builder, int32_t day, bool *ret,
                                    struct hearth_err *err)
{
    char sql[640];
    (void)snprintf(sql, sizeof sql,
                   "SELECT EXISTS (SELECT FROM hearth_data.service s LEFT JOIN"
                   " hearth_data.roll_state r USING (service_id) WHERE (r.compacted_to IS NULL OR"
                   " r.compacted_to < %" PRId64
                   ") AND EXISTS (SELECT FROM hearth_data.series_hour h WHERE h.service_id ="
                   " s.service_id AND h.hour >= %" PRId64 " AND h.hour < %" PRId64
                   " AND (r.compacted_to IS NULL OR (h.hour + 1) * 3600000000000 >"
                   " r.compacted_to)))",
                   (day + 1) * HEARTH_NS_PER_DAY, day * INT64_C(24), day * INT64_C(24) + 24);
    return ask(builder, sql, ret, err);
}

/* Under the lock; *ret_renamed: nothing of it is needed, and nobody can write to it any more. */
static enum hearth_status rename_unless_needed(struct hearth_builder *builder, int32_t day,
                                               bool *ret_renamed, struct hearth_err *err)
{
    char leaf[64], sql[256];
    bool needed;
    *ret_renamed = false;
    hearth_partition_name("profile", day, leaf);
    HEARTH_TRY(hearth_builder_begin(builder, err));
    (void)snprintf(sql, sizeof sql, LOCK_SCRIPT, leaf);
    enum hearth_pg_fault fault = HEARTH_PG_FAULT_NONE;
    enum hearth_status status = hearth_pg_script(&builder->pg, sql, &fault, err);
    if (fault == HEARTH_PG_FAULT_RETRY) {
        return HEARTH_OK; /* it is being written to, or read: another time */
    }
    HEARTH_TRY(status);
    HEARTH_TRY(is_needed(builder, day, &needed, err));
    if (needed) {
        return HEARTH_OK;
    }
    (void)snprintf(sql, sizeof sql, "ALTER TABLE %s RENAME TO " HEARTH_LEAVING_PREFIX "%.40s", leaf,
                   leaf + strlen(HEARTH_SCHEMA_DOT));
    HEARTH_TRY(hearth_pg_script(&builder->pg, sql, NULL, err));
    HEARTH_TRY(hearth_builder_commit(builder, err));
    hearth_partitions_forget(builder->store, day);
    *ret_renamed = true;
    return HEARTH_OK;
}

/* An empty leaf costs nothing, and would only be made again by the next late profile. */
static enum hearth_status has_rows(struct hearth_builder *builder, int32_t day, bool *ret,
                                   struct hearth_err *err)
{
    char leaf[64], sql[128];
    hearth_partition_name("profile", day, leaf);
    (void)snprintf(sql, sizeof sql, "SELECT EXISTS (SELECT FROM %s)", leaf);
    return ask(builder, sql, ret, err);
}

static enum hearth_status drop(struct hearth_builder *builder, int32_t day, struct hearth_err *err)
{
    enum hearth_status status =
        hearth_partitions_finish_drop(builder->store, &builder->pg, "profile", day, err);
    return status == HEARTH_UNAVAILABLE ? HEARTH_OK : status; /* its readers end some time */
}

/* The days before closed_ns, from the oldest on, until one was dropped. */
static enum hearth_status look(struct hearth_builder *builder, int64_t closed_ns,
                               struct hearth_err *err)
{
    int32_t day = 0;
    bool found;
    HEARTH_TRY(hearth_partitions_leaving(&builder->pg, "profile", &day, &found, err));
    if (found) {
        return drop(builder, day, err);
    }
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
            return drop(builder, day, err);
        }
        HEARTH_TRY(
            hearth_partitions_next_day(&builder->pg, "'profile'", day + 1, &day, &found, err));
    }
    return HEARTH_OK;
}

enum hearth_status hearth_compact_days(struct hearth_builder *builder, int64_t closed_ns,
                                       struct hearth_err *err)
{
    int64_t now_ns = hearth_clock_mono_ns();
    if (now_ns < builder->next_days_mono_ns) {
        return HEARTH_OK;
    }
    builder->next_days_mono_ns = now_ns + LOOK_EACH_NS;
    return look(builder, closed_ns, err);
}
