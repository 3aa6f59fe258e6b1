/*
 * lineage.c -- notices a database that lost commits (contract: lineage.h).
 */
#include "pg/lineage.h"

#include "hearth/base/clock.h"
#include "hearth/base/log.h"

#include "pg/store_state.h"

#include <assert.h>
#include <stdio.h>

#define WAL_BLOCK_BYTES 8192
#define WHOLE_EACH_NS   (10 * HEARTH_NS_PER_SEC)
#define LSN_FMT         "%X/%X"
#define LSN_ARG(lsn)    (unsigned)((uint64_t)(lsn) >> 32), (unsigned)(uint64_t)(lsn)

void hearth_lineage_init(struct hearth_lineage *lineage, const char *table)
{
    *lineage = (struct hearth_lineage){.table = table};
    hearth_mutex_init(&lineage->lock, HEARTH_RANK_LINEAGE, "lineage.lock");
}

void hearth_lineage_release(struct hearth_lineage *lineage)
{
    hearth_mutex_destroy(&lineage->lock);
}

/*
 * The timeline is that of the names of WAL files: pg_control_checkpoint() still has the old one
 * until the first checkpoint after a promotion.
 */
static enum hearth_status read_mark(struct hearth_pg *pg, const char *table,
                                    struct hearth_lineage_mark *ret, struct hearth_err *err)
{
    char sql[512];
    (void)snprintf(sql, sizeof sql,
                   "SELECT (pg_current_wal_flush_lsn() - '0/0'::pg_lsn)::int8,"
                   " left(pg_walfile_name(pg_current_wal_flush_lsn()), 8),"
                   " coalesce(to_regclass('%s')::oid::int8, 0), pg_backend_pid()::int8,"
                   " " HEARTH_LINEAGE_IDENTITY,
                   table);
    PGresult *result = NULL;

    HEARTH_TRY(hearth_pg_exec(pg, sql, NULL, NULL, &result, NULL, err));
    if (PQntuples(result) != 1) {
        PQclear(result);
        return HEARTH_FAIL(err, HEARTH_INTERNAL,
                           "the database did not return its identity and WAL position");
    }

    struct hearth_str timeline = hearth_pg_str(result, 0, 1);
    struct hearth_str identity = hearth_pg_str(result, 0, 4);
    *ret = (struct hearth_lineage_mark){.tables_oid = hearth_pg_i64(result, 0, 2),
                                        .lsn = hearth_pg_i64(result, 0, 0),
                                        .backend = hearth_pg_i64(result, 0, 3)};
    (void)snprintf(ret->timeline, sizeof ret->timeline, HEARTH_STR_FMT, HEARTH_STR_ARG(timeline));
    (void)snprintf(ret->identity, sizeof ret->identity, HEARTH_STR_FMT, HEARTH_STR_ARG(identity));
    PQclear(result);
    pg->is_direct = ret->backend == PQbackendPID(pg->conn);

    return HEARTH_OK;
}

/* Write how `found` shows a loss of commits; an empty text if it does not. */
static void find_loss(const struct hearth_lineage_mark *known,
                      const struct hearth_lineage_mark *found, char reason[256])
{
    reason[0] = '\0';

    if (strcmp(known->identity, found->identity) != 0) {
        (void)snprintf(reason, 256,
                       "the database is another one (cluster/oid %s, it was %s): it was replaced",
                       found->identity, known->identity);
    } else if (strcmp(known->timeline, found->timeline) != 0) {
        (void)snprintf(reason, 256,
                       "the database is on timeline %s, it was on %s: a standby was promoted, or "
                       "an archive was restored, and it may lack commits",
                       found->timeline, known->timeline);
    } else if (known->tables_oid != found->tables_oid) {
        (void)snprintf(reason, 256,
                       "the tables of hearth_data are new ones (oid %lld, it was %lld): a dump was "
                       "restored",
                       (long long)found->tables_oid, (long long)known->tables_oid);
    } else if (found->lsn < known->lsn) {
        (void)snprintf(reason, 256,
                       "the WAL of the database ends at " LSN_FMT ", it ended at " LSN_FMT
                       " before: an older copy of its files was put back",
                       LSN_ARG(found->lsn), LSN_ARG(known->lsn));
    }
}

/* Keep the mark, or the reason of a loss, which is the first one; returns whether it is lost. */
static bool take_mark(struct hearth_lineage *lineage, const struct hearth_lineage_mark *found,
                      const char *reason)
{
    hearth_mutex_lock(&lineage->lock);
    bool is_first = reason[0] != '\0' && lineage->reason[0] == '\0';
    if (is_first) {
        (void)snprintf(lineage->reason, sizeof lineage->reason, "%s", reason);
        atomic_store(&lineage->is_lost, true);
    } else if (lineage->known.identity[0] == '\0') {
        lineage->known = *found;
        lineage->known.lsn = 0;
    }

    /*
     * A position at a page boundary may lie within a record. Recovery after a crash drops such a
     * record, and its WAL ends before this position.
     */
    if (found->lsn > lineage->known.lsn && found->lsn % WAL_BLOCK_BYTES != 0) {
        lineage->known.lsn = found->lsn;
    }
    hearth_mutex_unlock(&lineage->lock);

    if (is_first) {
        HEARTH_LOG(HEARTH_LOG_ERROR, "store", "the database may have lost commits", "reason",
                   reason, NULL);
    }

    return atomic_load(&lineage->is_lost);
}

bool hearth_lineage_is_known(struct hearth_lineage *lineage)
{
    hearth_mutex_lock(&lineage->lock);
    bool is_known = lineage->known.identity[0] != '\0';
    hearth_mutex_unlock(&lineage->lock);

    return is_known;
}

void hearth_lineage_lose(struct hearth_lineage *lineage, const char *reason)
{
    assert(reason[0] != '\0');

    const struct hearth_lineage_mark nothing = {.lsn = 0};
    (void)take_mark(lineage, &nothing, reason);
}

/* hearth_lineage_check, which also tells what it found. */
static enum hearth_status check_whole(struct hearth_lineage *lineage, struct hearth_pg *pg,
                                      struct hearth_lineage_seen *ret_seen, struct hearth_err *err)
{
    assert(PQtransactionStatus(pg->conn) == PQTRANS_IDLE);

    /* Known before the statement: other threads may see a later end of the WAL meanwhile. */
    hearth_mutex_lock(&lineage->lock);
    struct hearth_lineage_mark known = lineage->known;
    hearth_mutex_unlock(&lineage->lock);

    struct hearth_lineage_mark found;
    HEARTH_TRY(read_mark(pg, lineage->table, &found, err));

    /* Without tables there are no ids either: a migration or a restore is about to make them. */
    bool is_known = known.identity[0] != '\0';
    *ret_seen =
        (struct hearth_lineage_seen){found.backend, found.tables_oid, hearth_clock_mono_ns()};
    if (found.tables_oid == 0 && !is_known) {
        return HEARTH_OK;
    }
    if (found.tables_oid == 0) {
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE, "the database has no table %s any more",
                           lineage->table);
    }

    char reason[256] = "";
    if (is_known) {
        find_loss(&known, &found, reason);
    }
    if (!take_mark(lineage, &found, reason)) {
        return HEARTH_OK;
    }

    (void)hearth_lineage_explain(lineage, reason);

    return HEARTH_FAIL(err, HEARTH_UNAVAILABLE, "%s", reason);
}

enum hearth_status hearth_lineage_check(struct hearth_lineage *lineage, struct hearth_pg *pg,
                                        struct hearth_err *err)
{
    struct hearth_lineage_seen unused;

    return check_whole(lineage, pg, &unused, err);
}

enum hearth_status hearth_lineage_recheck(struct hearth_lineage *lineage, struct hearth_pg *pg,
                                          struct hearth_lineage_seen *seen, struct hearth_err *err)
{
    char sql[256];
    (void)snprintf(sql, sizeof sql,
                   "SELECT pg_backend_pid()::int8, coalesce(to_regclass('%s')::oid::int8, 0),"
                   " (pg_current_wal_flush_lsn() - '0/0'::pg_lsn)::int8",
                   lineage->table);
    PGresult *result = NULL;

    hearth_mutex_lock(&lineage->lock);
    struct hearth_lineage_mark mark = lineage->known;
    hearth_mutex_unlock(&lineage->lock);

    HEARTH_TRY(hearth_pg_exec(pg, sql, NULL, NULL, &result, NULL, err));
    int64_t backend = hearth_pg_i64(result, 0, 0), tables_oid = hearth_pg_i64(result, 0, 1);
    int64_t lsn = hearth_pg_i64(result, 0, 2);
    PQclear(result);

    bool is_same = seen->tables_oid != 0 && backend == seen->backend &&
                   tables_oid == seen->tables_oid && lsn >= mark.lsn;
    if (is_same && hearth_clock_mono_ns() - seen->mono_ns < WHOLE_EACH_NS) {
        mark.lsn = lsn;
        if (!take_mark(lineage, &mark, "")) {
            return HEARTH_OK;
        }
    }

    return check_whole(lineage, pg, seen, err);
}

bool hearth_lineage_explain(struct hearth_lineage *lineage, char reason[256])
{
    if (!atomic_load(&lineage->is_lost)) {
        return false;
    }

    hearth_mutex_lock(&lineage->lock);
    (void)snprintf(reason, 256, "%s", lineage->reason);
    hearth_mutex_unlock(&lineage->lock);

    return true;
}
