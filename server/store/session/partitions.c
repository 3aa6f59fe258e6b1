/*
 * partitions.c -- the leaves of a day: creates profile, dict_chunk, series_hour and the others
 * before they are needed; and the month's leaf of the audit log.
 *
 * A leaf is created by CREATE TABLE .. (LIKE parent ..) and ATTACH, two statements in one
 * transaction under an advisory lock: so only one server creates it, and the same text runs on
 * Citus. Existing leaves stay as they are; an existing leaf that is not attached is attached. Known
 * leaves are kept in memory, because committers and the catalogue call hearth_partitions_ensure for
 * each batch. Callers name the tables that they write to: today and the days ahead have all leaves,
 * an older day only the leaves that some batch needed.
 */
#include "session/partitions.h"

#include "hearth/base/clock.h"
#include "hearth/base/mem.h"
#include "hearth/store/lost_nodes.h"

#include "nodes/layout.h"
#include "nodes/nodes.h"
#include "pg/store_state.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

struct known_day {
    int32_t day;     /* since the epoch */
    unsigned leaves; /* HEARTH_LEAF_... that are known to exist */
};

struct hearth_partitions {
    struct hearth_mutex lock; /* guards the rest */
    struct known_day *days;   /* unsorted; few, at most the days that retention keeps */
    size_t n_days, cap;
};

/*
 * Options of leaves whose rows are only inserted. Index-only scans need the visibility map, which
 * autovacuum would otherwise not update before a fifth of the leaf is new. toast_tuple_target: a
 * row that fits a page is stored in the page, uncompressed.
 */
#define LEAF_OPTIONS                                                         \
    "toast_tuple_target = 8160, autovacuum_vacuum_insert_threshold = 50000," \
    " autovacuum_vacuum_insert_scale_factor = 0.02"

/*
 * Turns statistics off for a column of packed values: no statement has a condition on it, and no
 * plan depends on it. ANALYZE would store the most frequent elements of such an array whole, which
 * is megabytes for each leaf. A session that plans a query reads the statistics of all columns that
 * the query selects, and keeps them in memory.
 */
#define NO_STATISTICS(column) "ALTER " column " SET STATISTICS 0"
#define BLOCK_STATISTICS    \
    NO_STATISTICS("totals") \
    ", " NO_STATISTICS("members") ", " NO_STATISTICS("ids") ", " NO_STATISTICS("vals")

static const struct {
    const char *name, *options;
    int64_t units_per_day;  /* length of a day in the unit of the partition key */
    const char *statistics; /* actions of ALTER TABLE on a new leaf; NULL: none */
} PARENTS[] = {
    /* in the order of the bits HEARTH_LEAF_... */
    {"profile", LEAF_OPTIONS, HEARTH_NS_PER_DAY,
     NO_STATISTICS("totals") ", " NO_STATISTICS("ids") ", " NO_STATISTICS("vals")},
    {"dict_chunk", "toast_tuple_target = 8160", 1, NO_STATISTICS("payload")},
    {"series_hour", "fillfactor = 100", 24, NULL},
    {"roll_10m", "toast_tuple_target = 8160", HEARTH_NS_PER_DAY, BLOCK_STATISTICS},
    {"roll_1h", "toast_tuple_target = 8160", HEARTH_NS_PER_DAY, BLOCK_STATISTICS},
    {"roll_1d", "toast_tuple_target = 8160", HEARTH_NS_PER_DAY, BLOCK_STATISTICS},
    {"hour_totals", "toast_tuple_target = 8160", HEARTH_NS_PER_DAY,
     NO_STATISTICS("ts") ", " NO_STATISTICS("vals")},
    {"segment", "toast_tuple_target = 8160", HEARTH_NS_PER_DAY,
     NO_STATISTICS("heads") ", " NO_STATISTICS("payload")},
    {"span_group", LEAF_OPTIONS, HEARTH_NS_PER_DAY, NULL},
    /* Parts are merged often: vacuum makes the space of dead rows usable early. */
    {"span_index", "toast_tuple_target = 8160, autovacuum_vacuum_scale_factor = 0.05", 1, NULL},
    /* A row grows for a minute: free space on its page avoids writes to the indexes. */
    {"monitor_minute", "fillfactor = 60", 1440, NULL},
    {"network_sample", LEAF_OPTIONS, HEARTH_NS_PER_DAY / HEARTH_NS_PER_MS, NULL},
    /* Of months; they refuse TRUNCATE. */
    {"audit", LEAF_OPTIONS, HEARTH_NS_PER_DAY / HEARTH_NS_PER_MS, NULL},
};

_Static_assert(HEARTH_LEAVES_ALL + 1 == 1 << HEARTH_ARRAY_LEN(PARENTS), "a bit for each parent");

/* ---- days ---- */

/*
 * Return the proleptic Gregorian date of a day since the epoch (the era method: 400 years are
 * 146,097 days).
 */
static void split_date(int32_t day, int *ret_year, unsigned *ret_month, unsigned *ret_day)
{
    /* Count from March, so that the leap day is the last day of a year. */
    int64_t z = (int64_t)day + 719468; /* days since 0000-03-01 */
    int64_t era = (z >= 0 ? z : z - 146096) / 146097;
    unsigned doe = (unsigned)(z - era * 146097);
    unsigned yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    unsigned doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    unsigned mp = (5 * doy + 2) / 153; /* months since March */
    assert(doe < 146097 && doy < 366 && mp < 12);

    *ret_day = doy - (153 * mp + 2) / 5 + 1;
    *ret_month = mp < 10 ? mp + 3 : mp - 9;
    *ret_year = (int)(yoe + era * 400) + (*ret_month <= 2);
}

void hearth_partition_name(const char *parent, int32_t day, char out[64])
{
    int year;
    unsigned month, mday;

    split_date(day, &year, &month, &mday);
    (void)snprintf(out, 64, "hearth_data.%s_%04d%02u%02u", parent, year, month, mday);
}

int32_t hearth_partition_month(int32_t day, int32_t *ret_next)
{
    int year;
    unsigned month, mday;

    split_date(day, &year, &month, &mday);
    int32_t first = day - (int32_t)mday + 1;

    /* The 31st day after the first of a month lies in the next month. */
    split_date(first + 31, &year, &month, &mday);
    *ret_next = first + 31 - (int32_t)mday + 1;

    return first;
}

/* ---- known days ---- */

enum hearth_status hearth_partitions_new(struct hearth_partitions **ret_partitions,
                                         struct hearth_err *err)
{
    struct hearth_partitions *partitions = hearth_mem_zalloc(sizeof *partitions);
    if (partitions == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate the set of partitions");
    }

    hearth_mutex_init(&partitions->lock, HEARTH_RANK_PARTITIONS, "partitions.lock");
    *ret_partitions = partitions;

    return HEARTH_OK;
}

void hearth_partitions_free(struct hearth_partitions *partitions)
{
    if (partitions != NULL) {
        hearth_mutex_destroy(&partitions->lock);
        hearth_mem_free(partitions->days);
        hearth_mem_free(partitions);
    }
}

/* Return the position of the day, or n_days. The caller holds the lock. */
static size_t find_day(const struct hearth_partitions *partitions, int32_t day)
{
    size_t i = 0;

    hearth_mutex_assert_held(&partitions->lock);
    while (i < partitions->n_days && partitions->days[i].day != day) {
        i++;
    }

    return i;
}

static unsigned get_known_leaves(struct hearth_partitions *partitions, int32_t day)
{
    hearth_mutex_lock(&partitions->lock);
    size_t i = find_day(partitions, day);
    unsigned leaves = i < partitions->n_days ? partitions->days[i].leaves : 0;
    hearth_mutex_unlock(&partitions->lock);

    return leaves;
}

/* Add known leaves. If memory is refused, the next call only runs its statements again. */
static void remember_leaves(struct hearth_partitions *partitions, unsigned leaves, int32_t day)
{
    hearth_mutex_lock(&partitions->lock);
    size_t i = find_day(partitions, day);
    if (i < partitions->n_days) {
        partitions->days[i].leaves |= leaves;
    } else if (hearth_mem_grow(&partitions->days, &partitions->cap, partitions->n_days + 1,
                               sizeof partitions->days[0])) {
        partitions->days[partitions->n_days++] = (struct known_day){day, leaves};
    }

    hearth_mutex_unlock(&partitions->lock);
}

void hearth_partitions_forget(struct hearth_store *store, int32_t day)
{
    struct hearth_partitions *partitions = store->partitions;

    hearth_mutex_lock(&partitions->lock);
    size_t i = find_day(partitions, day);
    if (i < partitions->n_days) {
        partitions->days[i] = partitions->days[--partitions->n_days];
    }

    hearth_mutex_unlock(&partitions->lock);
}

/* ---- creating leaves ---- */

/* The state of a leaf in PostgreSQL's catalogs. */
struct leaf_state {
    bool exists, is_attached;
    bool is_occupied; /* an earlier leaf of the day, which is being dropped, has the bounds */
};

static enum hearth_status look_up_leaf(struct hearth_pg *pg, const char *parent, const char *leaf,
                                       struct leaf_state *ret, struct hearth_err *err)
{
    assert(hearth_str_starts(hearth_str_c(leaf), HEARTH_STR(HEARTH_SCHEMA_DOT)));

    char sql[640];
    (void)snprintf(sql, sizeof sql,
                   "SELECT to_regclass('%s') IS NOT NULL, EXISTS (SELECT FROM pg_inherits WHERE"
                   " inhrelid = to_regclass('%s') AND inhparent = 'hearth_data.%s'::regclass),"
                   " EXISTS (SELECT FROM pg_inherits WHERE inhrelid ="
                   " to_regclass('" HEARTH_SCHEMA_DOT HEARTH_LEAVING_PREFIX "%s'))",
                   leaf, leaf, parent, leaf + strlen(HEARTH_SCHEMA_DOT));
    PGresult *result = NULL;
    HEARTH_TRY(hearth_pg_exec(pg, sql, NULL, NULL, &result, NULL, err));
    ret->exists = PQgetvalue(result, 0, 0)[0] != 0;
    ret->is_attached = PQgetvalue(result, 0, 1)[0] != 0;
    ret->is_occupied = PQgetvalue(result, 0, 2)[0] != 0;
    PQclear(result);

    return HEARTH_OK;
}

static bool is_audit(size_t parent)
{
    return 1u << parent == HEARTH_LEAF_AUDIT;
}

/* The days of a leaf and its bounds, in the unit of the partition key. */
struct leaf_span {
    int32_t day; /* the first one, which names the leaf */
    int64_t from, to;
};

static enum hearth_status find_leaf_span(size_t parent, int32_t day, struct leaf_span *ret,
                                         struct hearth_err *err)
{
    struct leaf_span span = {.day = day};
    int64_t next = (int64_t)day + 1;

    if (is_audit(parent) && day < INT32_MAX - 31 && day > INT32_MIN + 31) {
        int32_t next_month;
        span.day = hearth_partition_month(day, &next_month);
        next = next_month;
    }

    if (__builtin_mul_overflow(PARENTS[parent].units_per_day, (int64_t)span.day, &span.from) ||
        __builtin_mul_overflow(PARENTS[parent].units_per_day, next, &span.to)) {
        return HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE, "day %" PRId32 " has no partition", day);
    }

    *ret = span;

    return HEARTH_OK;
}

/* Gives the leaf the trigger that PostgreSQL does not copy from its parent. */
static enum hearth_status forbid_truncate(struct hearth_pg *pg, const char *leaf,
                                          struct hearth_err *err)
{
    char sql[320];

    (void)snprintf(sql, sizeof sql,
                   "CREATE TRIGGER leaf_no_truncate BEFORE TRUNCATE ON %s FOR EACH STATEMENT"
                   " EXECUTE FUNCTION hearth_data.refuse_audit_change()",
                   leaf);
    HEARTH_TRY(hearth_pg_exec(pg, sql, NULL, NULL, NULL, NULL, err));

    (void)snprintf(sql, sizeof sql, "ALTER TABLE %s ENABLE ALWAYS TRIGGER leaf_no_truncate", leaf);

    return hearth_pg_exec(pg, sql, NULL, NULL, NULL, NULL, err);
}

/* Lets logical replication, by which Citus moves shards, delete rows of a leaf without a key. */
static enum hearth_status identify_rows(struct hearth_pg *pg, const char *leaf,
                                        struct hearth_err *err)
{
    char sql[128];
    (void)snprintf(sql, sizeof sql, "ALTER TABLE %s REPLICA IDENTITY FULL", leaf);

    return hearth_pg_exec(pg, sql, NULL, NULL, NULL, NULL, err);
}

/* Lets ANALYZE skip columns; a new table does not inherit that. */
static enum hearth_status skip_statistics(struct hearth_pg *pg, size_t parent, const char *leaf,
                                          struct hearth_err *err)
{
    char sql[320];

    if (PARENTS[parent].statistics == NULL) {
        return HEARTH_OK;
    }

    (void)snprintf(sql, sizeof sql, "ALTER TABLE %s %s", leaf, PARENTS[parent].statistics);

    return hearth_pg_exec(pg, sql, NULL, NULL, NULL, NULL, err);
}

static enum hearth_status create_leaf(struct hearth_pg *pg, size_t parent, const char *leaf,
                                      bool is_distributed, struct hearth_err *err)
{
    char sql[512];

    (void)snprintf(sql, sizeof sql,
                   "CREATE TABLE %s (LIKE hearth_data.%s INCLUDING DEFAULTS INCLUDING STORAGE"
                   " INCLUDING CONSTRAINTS) WITH (%s)",
                   leaf, PARENTS[parent].name, PARENTS[parent].options);
    HEARTH_TRY(hearth_pg_exec(pg, sql, NULL, NULL, NULL, NULL, err));
    HEARTH_TRY(skip_statistics(pg, parent, leaf, err));
    if (is_distributed && 1u << parent == HEARTH_LEAF_PROFILE) {
        HEARTH_TRY(identify_rows(pg, leaf, err));
    }

    return is_audit(parent) ? forbid_truncate(pg, leaf, err) : HEARTH_OK;
}

static enum hearth_status ensure_leaf(struct hearth_store *store, struct hearth_pg *pg,
                                      size_t parent, int32_t day, struct hearth_err *err)
{
    assert(parent < HEARTH_ARRAY_LEN(PARENTS));

    char leaf[64], sql[512];
    struct leaf_span span;
    struct leaf_state state;
    HEARTH_TRY(find_leaf_span(parent, day, &span, err));
    hearth_partition_name(PARENTS[parent].name, span.day, leaf);
    HEARTH_TRY(look_up_leaf(pg, PARENTS[parent].name, leaf, &state, err));
    if (state.is_occupied && !state.is_attached) {
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE, "%s is being dropped; retry", leaf);
    }

    /* While a node is lost, Citus would only try to connect to it, which may take half a minute. */
    if (!state.is_attached && hearth_store_has_lost_nodes(store)) {
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE, "a node does not answer");
    }

    /* Create and attach it, as far as that is missing. */
    if (!state.exists) {
        HEARTH_TRY(create_leaf(pg, parent, leaf, hearth_layout_is_distributed(store), err));
    }

    if (!state.is_attached) {
        (void)snprintf(sql, sizeof sql,
                       "ALTER TABLE hearth_data.%s ATTACH PARTITION %s FOR VALUES FROM (%" PRId64
                       ") TO (%" PRId64 ")",
                       PARENTS[parent].name, leaf, span.from, span.to);
        HEARTH_TRY(hearth_pg_exec(pg, sql, NULL, NULL, NULL, NULL, err));
    }

    return HEARTH_OK;
}

static enum hearth_status create_leaves(struct hearth_store *store, struct hearth_pg *pg,
                                        unsigned leaves, int32_t day, struct hearth_err *err)
{
    HEARTH_TRY(hearth_pg_script(
        pg, "BEGIN; SELECT pg_advisory_xact_lock(" HEARTH_LOCK_PARTITIONS ")", NULL, err));

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(PARENTS); i++) {
        if ((leaves >> i & 1) != 0) {
            HEARTH_TRY(ensure_leaf(store, pg, i, day, err));
        }
    }

    return hearth_pg_script(pg, "COMMIT", NULL, err);
}

/*
 * Citus makes a table on all nodes or on none. If creating leaves has failed, and a node does not
 * answer, say so: what PostgreSQL says of it depends on the moment, and is no reason to give up.
 */
static enum hearth_status explain_lost_node(struct hearth_store *store, int32_t day,
                                            enum hearth_status status, struct hearth_err *err)
{
    struct hearth_node_set all;
    struct hearth_node_view views[HEARTH_MAX_NODES + 1];
    char leaf[64];

    if (store->nodes == NULL || status == HEARTH_RESOURCE_EXHAUSTED) {
        return status;
    }

    memset(all.has, true, sizeof all.has);
    all.has[0] = false;
    if (!hearth_store_has_lost_nodes(store)) {
        hearth_store_find_lost(store, NULL, &all);
    }

    unsigned last = hearth_nodes_list(store->nodes, views);
    unsigned i = 1;
    while (i <= last && views[i].reach != HEARTH_NODE_LOST) {
        i++;
    }
    if (i > last) {
        return status;
    }

    hearth_partition_name("day", day, leaf);
    return HEARTH_FAIL(err, HEARTH_UNAVAILABLE,
                       "no partition of day %s can be made while the node %.60s:%s does not "
                       "answer; retry",
                       strrchr(leaf, '_') + 1, views[i].known.host, views[i].known.port);
}

bool hearth_partitions_are_known(struct hearth_store *store, unsigned leaves, int32_t day)
{
    return (leaves & ~get_known_leaves(store->partitions, day)) == 0;
}

enum hearth_status hearth_partitions_ensure(struct hearth_store *store, struct hearth_pg *pg,
                                            unsigned leaves, int32_t day, struct hearth_err *err)
{
    assert((leaves & ~(unsigned)HEARTH_LEAVES_ALL) == 0);
    assert(PQtransactionStatus(pg->conn) != PQTRANS_INTRANS);

    unsigned missing = leaves & ~get_known_leaves(store->partitions, day);
    if (missing == 0) {
        return HEARTH_OK;
    }

    const struct hearth_pg_params *wall = hearth_pg_leave_wall(pg);
    enum hearth_status status = create_leaves(store, pg, missing, day, err);
    pg->wall = wall;
    if (status != HEARTH_OK) {
        hearth_pg_rollback(pg);
        hearth_err_prefix(err, "partitions of day %" PRId32, day);
        return explain_lost_node(store, day, status, err);
    }

    remember_leaves(store->partitions, missing, day);

    return HEARTH_OK;
}

enum hearth_status hearth_partitions_is_leaving(struct hearth_pg *pg, const char *parent,
                                                int32_t day, bool *ret_leaving,
                                                struct hearth_err *err)
{
    char leaf[64];
    struct leaf_state state;

    hearth_partition_name(parent, day, leaf);
    HEARTH_TRY(look_up_leaf(pg, parent, leaf, &state, err));
    *ret_leaving = state.is_occupied && !state.is_attached;

    return HEARTH_OK;
}
