/*
 * store_monitors.c -- writes hearth_data.monitor_line and monitor_minute (contract:
 * hearth/store/store_policies.h).
 *
 * Two steps. First, the ids of a report's lines are found, nearly always in memory. Second, one
 * statement appends the values of all waiting reports to the rows of their lines and minutes: the
 * first waiting thread leads, the others queue for the next statement. An agent reports all its
 * values every 5 s, so a server with many agents writes some hundred rows at once.
 *
 * An id in memory is valid for the day on which it was confirmed: on another day the line is read
 * again, which marks it as used. Lines are deleted when they were not used for `retain-monitors`,
 * so no id in memory belongs to a deleted line.
 */
#include "policies/store_monitors.h"

#include "hearth/base/clock.h"
#include "hearth/base/hash.h"
#include "hearth/base/mem.h"
#include "hearth/store/store_agents.h"

#include "catalog/catalog.h"
#include "pg/store_state.h"
#include "session/partitions.h"
#include "session/statements.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#define MS_PER_MINUTE   60000
#define MINUTES_PER_DAY 1440
/*
 * Ids in memory, some 20 MB; it is emptied at this number. A process has one for each monitor of
 * its policy.
 */
#define MAX_KNOWN 400000
#define MAX_ROWS  20000 /* of one statement */

/* The id of a line. */
struct known_line {
    int32_t service_id;
    int32_t day; /* on which it was confirmed, since the epoch */
    int64_t line_id;
};

/* A thread that waits until its rows are written. */
struct waiter {
    struct waiter *next;
    const struct hearth_monitor_row *rows;
    size_t n;
    bool is_done;
    enum hearth_status status;
    struct hearth_err err;
};

struct hearth_monitors {
    struct hearth_mutex lock; /* guards the rest; never held while a statement runs */
    pthread_cond_t changed;
    struct waiter *first, **end; /* the queue */
    bool is_writing;             /* a thread leads */
    struct hearth_idmap map;     /* key of a line -> index in known */
    struct known_line *known;
    size_t n_known, cap;
};

enum hearth_status hearth_monitors_new(struct hearth_monitors **ret, struct hearth_err *err)
{
    struct hearth_monitors *monitors = hearth_mem_zalloc(sizeof *monitors);
    if (monitors == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate the writer of metrics");
    }

    hearth_mutex_init(&monitors->lock, HEARTH_RANK_MONITORS, "monitors.lock");
    hearth_cond_init(&monitors->changed);
    hearth_idmap_init(&monitors->map);
    monitors->end = &monitors->first;
    *ret = monitors;

    return HEARTH_OK;
}

void hearth_monitors_free(struct hearth_monitors *monitors)
{
    if (monitors != NULL) {
        assert(monitors->first == NULL && !monitors->is_writing);

        hearth_idmap_release(&monitors->map);
        hearth_mem_free(monitors->known);
        (void)pthread_cond_destroy(&monitors->changed);
        hearth_mutex_destroy(&monitors->lock);
        hearth_mem_free(monitors);
    }
}

/* ---- lines ---- */

/* The columns that identify a line of a service in the database. */
struct line_key {
    struct hearth_hash128 fingerprint; /* of instance, process and URI */
    struct hearth_str process;
    int32_t monitor;
    struct hearth_str uri;
};

#define LINE_KEY(kind, member) HEARTH_COLUMN(kind, struct line_key, member)
static const struct hearth_column line_key_columns[] = {
    LINE_KEY(UUID, fingerprint),
    LINE_KEY(TEXT, process),
    LINE_KEY(I32, monitor),
    LINE_KEY(TEXT, uri),
};
static const struct hearth_row_type line_key_rows =
    HEARTH_ROW_TYPE(line_key_columns, struct line_key);

/* Values of one instance at one time. */
struct metric_report {
    const struct hearth_scope *scope;
    struct hearth_str service, instance;
    int32_t day; /* since the epoch */
    const struct hearth_monitor_point *points;
    size_t n;
    int64_t max_lines;        /* of the service; 0: no limit */
    struct line_key *keys;    /* [n] */
    struct known_line *lines; /* [n]; line_id 0: not known yet */
    int32_t service_id;
};

static struct hearth_hash128 mix_text(struct hearth_hash128 hash, struct hearth_str text)
{
    struct hearth_hash128 own = hearth_hash128(text.p, text.n, text.n);
    uint64_t words[4] = {hash.hi, hash.lo, own.hi, own.lo};

    return hearth_hash128(words, sizeof words, 0);
}

static struct hearth_hash128 fingerprint_line(struct hearth_str instance,
                                              const struct hearth_monitor_point *point)
{
    struct hearth_hash128 hash = {0, 0};

    return mix_text(mix_text(mix_text(hash, instance), point->process), point->uri);
}

/* The key of a line in memory: its fingerprint with tenant, service and monitor. */
static struct hearth_hash128 make_memory_key(const struct metric_report *report, size_t i)
{
    struct hearth_hash128 hash =
        mix_text(mix_text(report->keys[i].fingerprint, report->scope->tenant), report->service);
    hash.lo = hearth_hash_mix(hash.lo, (uint64_t)report->points[i].monitor);
    /* A database that was restored to an earlier state has other lines. */
    hash.lo = hearth_hash_mix(hash.lo, report->scope->store->catalog->n_starts);

    return hash;
}

/* Fills report->lines from memory. Returns the number of missing lines, whose id is 0. */
static size_t recall_lines(struct hearth_monitors *monitors, struct metric_report *report)
{
    size_t n_missing = 0;

    hearth_mutex_lock(&monitors->lock);
    for (size_t i = 0; i < report->n; i++) {
        uint32_t at = hearth_idmap_find(&monitors->map, make_memory_key(report, i));
        bool found = at != HEARTH_IDMAP_NONE && monitors->known[at].day >= report->day;
        report->lines[i] = found ? monitors->known[at] : (struct known_line){0};
        n_missing += !found;
    }

    hearth_mutex_unlock(&monitors->lock);

    return n_missing;
}

/* Keeps the lines in memory. If memory is refused, they are read again for the next report. */
static void remember_lines(struct hearth_monitors *monitors, const struct metric_report *report)
{
    hearth_mutex_lock(&monitors->lock);

    /* Empty a full memory. */
    if (monitors->n_known + report->n > MAX_KNOWN) {
        hearth_idmap_reset(&monitors->map);
        monitors->n_known = 0;
    }

    /* Add the lines, or replace their days. */
    for (size_t i = 0; i < report->n; i++) {
        bool is_new = false;
        if (!hearth_mem_grow(&monitors->known, &monitors->cap, monitors->n_known + 1,
                             sizeof monitors->known[0])) {
            break;
        }

        uint32_t at = hearth_idmap_intern(&monitors->map, make_memory_key(report, i),
                                          (uint32_t)monitors->n_known, &is_new);
        if (at == HEARTH_IDMAP_NONE) {
            break;
        }

        assert(at <= monitors->n_known);
        monitors->known[at] = report->lines[i];
        monitors->n_known += is_new;
    }

    hearth_mutex_unlock(&monitors->lock);
}

/* Lines of the service, and how many more the report needs. */
struct line_count {
    int64_t n, n_new;
};

static const struct hearth_column line_count_columns[] = {
    HEARTH_COLUMN(I64, struct line_count, n),
    HEARTH_COLUMN(I64, struct line_count, n_new),
};
static const struct hearth_row_type line_count_rows =
    HEARTH_ROW_TYPE(line_count_columns, struct line_count);

/*
 * $1 service, $2 fingerprints, $3 processes, $4 monitors, $5 URIs. By the key (service_id, monitor,
 * fingerprint).
 */
static const char SQL_COUNT_LINES[] =
    "SELECT (SELECT count(*) FROM hearth_data.monitor_line WHERE service_id = $1),"
    " count(DISTINCT (x.monitor, x.fingerprint))"
    " FROM unnest($2::uuid[], $3::text[], $4::int4[], $5::text[])"
    " x (fingerprint, process, monitor, uri) WHERE NOT EXISTS"
    " (SELECT FROM hearth_data.monitor_line l WHERE l.service_id = $1"
    "  AND l.monitor = x.monitor AND l.fingerprint = x.fingerprint)";

/* Refuses a report whose new lines exceed the limit. Lines that exist are always accepted. */
static enum hearth_status check_line_limit(const struct metric_report *report,
                                           const struct hearth_scope *scope, struct hearth_err *err)
{
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, scope->arena);
    hearth_pg_param_i32(&params, report->service_id);
    hearth_pg_param_rows(&params, &line_key_rows, report->keys, report->n);

    struct line_count count = {0, 0};
    bool found;
    HEARTH_TRY(hearth_store_select_one(scope, SQL_COUNT_LINES, &params, &line_count_rows, &count,
                                       &found, err));
    if (report->max_lines > 0 && count.n_new > 0 && count.n + count.n_new > report->max_lines) {
        return HEARTH_FAIL(err, HEARTH_RESOURCE_EXHAUSTED,
                           "service \"" HEARTH_STR_FMT
                           "\" has %lld lines of metrics: %lld new ones would be more than the "
                           "%lld that max-monitor-lines allows",
                           HEARTH_STR_ARG(report->service), (long long)count.n,
                           (long long)count.n_new, (long long)report->max_lines);
    }

    return HEARTH_OK;
}

/*
 * Creates the lines that do not exist, raises last_day of the others, and returns the ids of all.
 * By the key (service_id, monitor, fingerprint). $1 service, $2 instance, $3 day, $4 fingerprints,
 * $5 processes, $6 monitors, $7 URIs.
 */
static const char SQL_MAKE_LINES[] =
    "INSERT INTO hearth_data.monitor_line AS l (service_id, fingerprint, instance, process,"
    " monitor, uri, last_day) SELECT DISTINCT ON (monitor, fingerprint) $1, fingerprint, $2,"
    " process, monitor, uri, $3 FROM unnest($4::uuid[], $5::text[], $6::int4[], $7::text[])"
    " x (fingerprint, process, monitor, uri) ORDER BY monitor, fingerprint"
    " ON CONFLICT (service_id, monitor, fingerprint) DO UPDATE SET last_day ="
    " greatest(l.last_day, excluded.last_day) RETURNING line_id, monitor::int4, process, uri";

struct line_row {
    int64_t line_id;
    struct line_key key;
};

#define LINE(kind, member) HEARTH_COLUMN(kind, struct line_row, member)
static const struct hearth_column line_columns[] = {
    LINE(I64, line_id),
    LINE(I32, key.monitor),
    LINE(TEXT, key.process),
    LINE(TEXT, key.uri),
};
static const struct hearth_row_type line_rows = HEARTH_ROW_TYPE(line_columns, struct line_row);

/* Fills report->lines with the ids of the rows. A line without a row keeps the id 0. */
static void take_line_ids(struct metric_report *report, const struct line_row *rows, size_t n_rows)
{
    for (size_t i = 0; i < report->n; i++) {
        const struct line_key *key = &report->keys[i];
        for (size_t row = 0; row < n_rows; row++) {
            if (rows[row].key.monitor == key->monitor &&
                hearth_str_eq(rows[row].key.process, key->process) &&
                hearth_str_eq(rows[row].key.uri, key->uri)) {
                report->lines[i] =
                    (struct known_line){report->service_id, report->day, rows[row].line_id};
                break;
            }
        }
    }
}

/* Fills report->lines from the database, where missing lines are created. */
static enum hearth_status make_lines(struct metric_report *report, const struct hearth_scope *scope,
                                     struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_service_id(scope, report->service, true, &report->service_id, err));
    HEARTH_TRY(check_line_limit(report, scope, err));

    /* Create the missing lines. */
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, scope->arena);
    hearth_pg_param_i32(&params, report->service_id);
    hearth_pg_param_text(&params, report->instance);
    hearth_pg_param_i32(&params, report->day);
    hearth_pg_param_rows(&params, &line_key_rows, report->keys, report->n);

    struct line_row *rows;
    size_t n;
    HEARTH_TRY(hearth_store_select(scope, SQL_MAKE_LINES, &params, &line_rows, &rows, &n, err));
    take_line_ids(report, rows, n);

    for (size_t i = 0; i < report->n; i++) {
        if (report->lines[i].line_id <= 0) {
            return HEARTH_FAIL(err, HEARTH_INTERNAL,
                               "the database returned no line for a metric of service "
                               "\"" HEARTH_STR_FMT "\"",
                               HEARTH_STR_ARG(report->service));
        }
    }

    return HEARTH_OK;
}

/* Fills report->lines, from memory or the database. `scope` has an arena. */
static enum hearth_status resolve_lines(struct metric_report *report,
                                        const struct hearth_scope *scope, struct hearth_err *err)
{
    assert(scope->arena != NULL && report->n > 0);

    /* Make the keys of the lines. */
    report->keys = hearth_arena_array(scope->arena, report->n, sizeof report->keys[0]);
    report->lines = hearth_arena_array(scope->arena, report->n, sizeof report->lines[0]);
    if (report->keys == NULL || report->lines == NULL) {
        return HEARTH_FAIL_ARENA(err, scope->arena);
    }

    for (size_t i = 0; i < report->n; i++) {
        const struct hearth_monitor_point *point = &report->points[i];
        report->keys[i] = (struct line_key){fingerprint_line(report->instance, point),
                                            point->process, (int32_t)point->monitor, point->uri};
    }

    /* Find their ids. */
    if (recall_lines(scope->store->monitors, report) > 0) {
        HEARTH_TRY(make_lines(report, scope, err));
        remember_lines(scope->store->monitors, report);
    }

    return HEARTH_OK;
}

/* ---- values ---- */

/*
 * Appends values, in their order, to the row of their line and minute, or creates the row. A row
 * with $6 values or more stays as it is. $1 services, $2 lines, $3 minutes, $4 offsets, $5 values.
 * By the primary key; rows are sorted by it, so that all servers lock them in one order.
 */
static const char SQL_ADD_VALUES[] =
    "INSERT INTO hearth_data.monitor_minute AS m (service_id, line_id, minute, offsets, vals)"
    " SELECT s, l, m, array_agg(o ORDER BY n), array_agg(v ORDER BY n) FROM"
    " unnest($1::int4[], $2::int8[], $3::int4[], $4::int4[], $5::float8[]) WITH ORDINALITY"
    " x (s, l, m, o, v, n) GROUP BY s, l, m ORDER BY s, l, m"
    " ON CONFLICT (service_id, line_id, minute) DO UPDATE SET offsets = m.offsets ||"
    " excluded.offsets, vals = m.vals || excluded.vals WHERE cardinality(m.offsets) < $6";

/* The rows of several waiting threads. */
struct value_batch {
    struct hearth_store *store;
    struct waiter *waiters;
    size_t n;
};

/* Makes the parameters of SQL_ADD_VALUES from the rows of all waiters, in their order. */
static enum hearth_status add_value_params(const struct value_batch *batch,
                                           struct hearth_pg_params *params, struct hearth_err *err)
{
    struct hearth_arena *arena = params->arena;

    /* Allocate the columns. */
    int32_t *services = hearth_arena_array(arena, batch->n, sizeof services[0]);
    int32_t *minutes = hearth_arena_array(arena, batch->n, sizeof minutes[0]);
    int32_t *offsets = hearth_arena_array(arena, batch->n, sizeof offsets[0]);
    int64_t *lines = hearth_arena_array(arena, batch->n, sizeof lines[0]);
    double *values = hearth_arena_array(arena, batch->n, sizeof values[0]);
    if (services == NULL || minutes == NULL || offsets == NULL || lines == NULL || values == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    /* Fill them. */
    size_t n = 0;
    for (const struct waiter *waiter = batch->waiters; waiter != NULL; waiter = waiter->next) {
        for (size_t i = 0; i < waiter->n; i++, n++) {
            services[n] = waiter->rows[i].service_id;
            lines[n] = waiter->rows[i].line_id;
            minutes[n] = waiter->rows[i].minute;
            offsets[n] = waiter->rows[i].offset_ms;
            values[n] = waiter->rows[i].value;
        }
    }

    assert(n == batch->n);

    /* Add them as $1 to $5, and the limit as $6. */
    hearth_pg_param_i32_array(params, services, n);
    hearth_pg_param_i64_array(params, lines, n);
    hearth_pg_param_i32_array(params, minutes, n);
    hearth_pg_param_i32_array(params, offsets, n);
    hearth_pg_param_f64_array(params, values, n);
    hearth_pg_param_i32(params, HEARTH_MONITOR_MAX_PER_MINUTE);

    return HEARTH_OK;
}

/* Creates missing leaves for the days of all rows: usually one day, whose leaf is known. */
static enum hearth_status ensure_value_days(const struct value_batch *batch, struct hearth_pg *pg,
                                            struct hearth_err *err)
{
    int32_t last = INT32_MIN;

    for (const struct waiter *waiter = batch->waiters; waiter != NULL; waiter = waiter->next) {
        for (size_t i = 0; i < waiter->n; i++) {
            int32_t day = waiter->rows[i].minute / MINUTES_PER_DAY;
            if (day != last) {
                HEARTH_TRY(hearth_partitions_ensure(batch->store, pg, HEARTH_LEAF_MONITOR_MINUTE,
                                                    day, err));
                last = day;
            }
        }
    }

    return HEARTH_OK;
}

/*
 * Deletes the leaves of the rows' days from the cache of leaves, after retention has dropped one of
 * them: the next attempt creates it.
 */
static void forget_value_days(const struct value_batch *batch)
{
    for (const struct waiter *waiter = batch->waiters; waiter != NULL; waiter = waiter->next) {
        hearth_partitions_forget(batch->store, waiter->rows[0].minute / MINUTES_PER_DAY);
    }
}

/* Writes the values of a batch. Called again after a passing fault. */
static enum hearth_status append_values(void *context, struct hearth_pg *pg,
                                        enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    const struct value_batch *batch = context;
    HEARTH_TRY(ensure_value_days(batch, pg, err));

    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, &arena);

    enum hearth_status status = add_value_params(batch, &params, err);
    if (status == HEARTH_OK) {
        status = hearth_pg_exec(pg, SQL_ADD_VALUES, &params, NULL, NULL, ret_fault, err);
    }
    hearth_arena_release(&arena);

    if (status != HEARTH_OK && *ret_fault == HEARTH_PG_FAULT_MISSING_TABLE) {
        forget_value_days(batch);
        *ret_fault = HEARTH_PG_FAULT_RETRY;
    }

    return status;
}

/*
 * Moves the first waiters, at least one, into the batch: as many as have up to MAX_ROWS rows. The
 * caller holds the lock; a waiter is queued.
 */
static void take_waiters(struct hearth_monitors *monitors, struct value_batch *batch)
{
    hearth_mutex_assert_held(&monitors->lock);
    assert(monitors->first != NULL);

    /* Find the end of the batch. */
    struct waiter **end = &monitors->first;
    batch->n = 0;
    while (*end != NULL && (batch->n == 0 || batch->n + (*end)->n <= MAX_ROWS)) {
        batch->n += (*end)->n;
        end = &(*end)->next;
    }

    /* Cut the queue there. */
    batch->waiters = monitors->first;
    monitors->first = *end;
    *end = NULL;
    if (monitors->first == NULL) {
        monitors->end = &monitors->first;
    }
}

/*
 * Writes batches of waiting rows until the rows of `own` are written. The caller holds the lock,
 * which is released while a statement runs.
 */
static void lead_writing(struct hearth_store *store, struct waiter *own)
{
    struct hearth_monitors *monitors = store->monitors;
    hearth_mutex_assert_held(&monitors->lock);
    assert(!monitors->is_writing && !own->is_done);
    monitors->is_writing = true;

    while (!own->is_done) {
        struct value_batch batch = {.store = store};
        take_waiters(monitors, &batch);
        hearth_mutex_unlock(&monitors->lock);

        struct hearth_err err = HEARTH_ERR_INIT;
        enum hearth_status status = hearth_store_as_owner(store, NULL, append_values, &batch, &err);

        /* Tell the waiters how their rows ended. */
        hearth_mutex_lock(&monitors->lock);
        for (struct waiter *waiter = batch.waiters, *next; waiter != NULL; waiter = next) {
            next = waiter->next; /* the waiter may be gone once it is done */
            waiter->status = status;
            waiter->err = err;
            waiter->is_done = true;
        }
    }

    monitors->is_writing = false;
    (void)pthread_cond_broadcast(&monitors->changed);
}

/* Writes the rows, together with the rows of other threads. Waits until they are written. */
static enum hearth_status write_metric_rows(struct hearth_store *store,
                                            const struct hearth_monitor_row *rows, size_t n,
                                            struct hearth_err *err)
{
    assert(rows != NULL && n > 0);

    /* Queue the rows. */
    struct hearth_monitors *monitors = store->monitors;
    struct waiter own = {.rows = rows, .n = n, .err = HEARTH_ERR_INIT};
    hearth_mutex_lock(&monitors->lock);
    *monitors->end = &own;
    monitors->end = &own.next;

    /* Wait for the leader, or lead. */
    while (!own.is_done) {
        if (monitors->is_writing) {
            hearth_mutex_wait(&monitors->lock, &monitors->changed);
        } else {
            lead_writing(store, &own);
        }
    }

    hearth_mutex_unlock(&monitors->lock);

    if (own.status != HEARTH_OK && err != NULL) {
        *err = own.err;
    }

    return own.status;
}

/* Finds the lines of the report, and writes its values. */
static enum hearth_status add_metrics(struct metric_report *report,
                                      const struct hearth_scope *scope, int64_t at_ms,
                                      struct hearth_err *err)
{
    HEARTH_TRY(resolve_lines(report, scope, err));

    struct hearth_monitor_row *rows = hearth_arena_array(scope->arena, report->n, sizeof rows[0]);
    if (rows == NULL) {
        return HEARTH_FAIL_ARENA(err, scope->arena);
    }

    for (size_t i = 0; i < report->n; i++) {
        assert(report->lines[i].line_id > 0);
        rows[i] = (struct hearth_monitor_row){
            .service_id = report->lines[i].service_id,
            .line_id = report->lines[i].line_id,
            .minute = (int32_t)(at_ms / MS_PER_MINUTE),
            .offset_ms = (int32_t)(at_ms % MS_PER_MINUTE),
            .value = report->points[i].value,
        };
    }

    return write_metric_rows(scope->store, rows, report->n, err);
}

enum hearth_status hearth_store_monitors_add(const struct hearth_scope *scope,
                                             const struct hearth_monitor_report *values,
                                             int64_t max_lines, struct hearth_err *err)
{
    assert(values->points != NULL || values->n == 0);
    HEARTH_TRY(hearth_store_check_writable(scope->store, err));
    if (values->n == 0) {
        return HEARTH_OK;
    }

    int64_t at_ms = values->at_ms;
    if (at_ms < 0 || at_ms / MS_PER_MINUTE > INT32_MAX) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "%lld is not a time in milliseconds since the epoch", (long long)at_ms);
    }

    /* scope->arena may be NULL. */
    HEARTH_CLEANUP(hearth_arena_release) struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_scope own = *scope;
    own.arena = &arena;

    struct metric_report report = {.scope = &own,
                                   .service = values->service,
                                   .instance = values->instance,
                                   .day = (int32_t)(at_ms / MS_PER_MINUTE / MINUTES_PER_DAY),
                                   .points = values->points,
                                   .n = values->n,
                                   .max_lines = max_lines};

    return add_metrics(&report, &own, at_ms, err);
}

/* ---- trimming ---- */

enum hearth_status hearth_monitors_trim(struct hearth_store *store, struct hearth_pg *pg,
                                        struct hearth_err *err)
{
    int64_t keep_ns = hearth_store_live(store)->retain_monitors_ns;
    if (keep_ns <= 0) {
        return HEARTH_OK;
    }

    /*
     * A day longer than values: an id in the memory of a server may have been confirmed just before
     * midnight.
     */
    int64_t day = (hearth_clock_wall_ns() - keep_ns) / HEARTH_NS_PER_DAY - 2;
    char sql[192];
    (void)snprintf(sql, sizeof sql,
                   "DELETE FROM hearth_data.monitor_line WHERE line_id IN (SELECT line_id FROM"
                   " hearth_data.monitor_line WHERE last_day < %" PRId64
                   " ORDER BY line_id LIMIT 10000 FOR UPDATE SKIP LOCKED)",
                   day);

    return hearth_pg_exec(pg, sql, NULL, NULL, NULL, NULL, err);
}
