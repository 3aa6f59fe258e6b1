/*
 * store_monitors.c -- hearth_data.monitor_line and monitor_minute: writing (contract: hearth/store/store_policies.h).
 *
 * Two steps. The lines of a report become ids: nearly always from memory. The values are appended to the rows of
 * their lines and minute by one statement for everybody who waits: the first to come leads, the others queue up
 * for the next. An agent says all its values each 5 s, so a server with many of them writes some hundred rows at once.
 *
 * Memory holds ids for the day on which they were confirmed: on another day the line is looked up again, which says that
 * it is in use. Lines are removed when they were not for `retain-monitors`, so no remembered id can be of a line that is
 * gone.
 */
#include "policies/store_monitors.h"

#include "hearth/base/clock.h"
#include "hearth/base/hash.h"
#include "hearth/base/mem.h"
#include "hearth/store/store_agents.h"

#include "catalog/catalog.h"
#include "pg/partitions.h"
#include "pg/session.h"
#include "pg/store_state.h"

#include <inttypes.h>
#include <stdio.h>

#define MS_PER_MINUTE   60000
#define MINUTES_PER_DAY 1440
/* Some 20 MB; beyond, it is emptied. Each process has one for each monitor of its policy. */
#define MAX_KNOWN 400000
/* Of one statement. */
#define MAX_ROWS 20000

struct known {
    int32_t service_id, day;
    int64_t line_id;
};

/* Somebody who waits for rows to be written. */
struct waiter {
    struct waiter *next;
    const struct hearth_monitor_row *rows;
    size_t n;
    bool is_done;
    enum hearth_status status;
    struct hearth_err err;
};

struct hearth_monitors {
    pthread_mutex_t lock; /* guards the rest; never held while a statement runs */
    pthread_cond_t changed;
    struct waiter *first, **end;
    bool is_writing;
    struct hearth_idmap map; /* key -> index in known */
    struct known *known;
    size_t n_known, cap;
};

enum hearth_status hearth_monitors_new(struct hearth_monitors **ret, struct hearth_err *err)
{
    struct hearth_monitors *monitors = hearth_mem_zalloc(sizeof *monitors);
    if (monitors == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate the writer of metrics");
    }
    (void)pthread_mutex_init(&monitors->lock, NULL);
    (void)pthread_cond_init(&monitors->changed, NULL);
    hearth_idmap_init(&monitors->map);
    monitors->end = &monitors->first;
    *ret = monitors;
    return HEARTH_OK;
}

void hearth_monitors_free(struct hearth_monitors *monitors)
{
    if (monitors != NULL) {
        hearth_idmap_release(&monitors->map);
        hearth_mem_free(monitors->known);
        (void)pthread_cond_destroy(&monitors->changed);
        (void)pthread_mutex_destroy(&monitors->lock);
        hearth_mem_free(monitors);
    }
}

/* ---- lines ---- */

struct report {
    struct hearth_store *store;
    struct hearth_str tenant, service, instance;
    int32_t day;
    const struct hearth_monitor_point *points;
    size_t n;
    int64_t max_lines;
    struct hearth_cancel *cancel;
    struct hearth_arena arena;
    struct hearth_hash128 *fingerprints; /* of instance, process and URI */
    struct known *lines;                 /* [n]; line_id 0: not known yet */
    int32_t service_id;
};

static struct hearth_hash128 mix(struct hearth_hash128 hash, struct hearth_str text)
{
    struct hearth_hash128 own = hearth_hash128(text.p, text.n, text.n);
    uint64_t words[4] = {hash.hi, hash.lo, own.hi, own.lo};
    return hearth_hash128(words, sizeof words, 0);
}

static struct hearth_hash128 fingerprint_of(struct hearth_str instance,
                                            const struct hearth_monitor_point *point)
{
    struct hearth_hash128 hash = {0, 0};
    return mix(mix(mix(hash, instance), point->process), point->uri);
}

/* What memory goes by: the same in all tenants would be a mistake. */
static struct hearth_hash128 key_of(const struct report *report, size_t i)
{
    struct hearth_hash128 hash = mix(mix(report->fingerprints[i], report->tenant), report->service);
    hash.lo = hearth_hash_mix(hash.lo, (uint64_t)report->points[i].monitor);
    /* A database that went back in time has other lines. */
    hash.lo = hearth_hash_mix(hash.lo, report->store->catalog->n_starts);
    return hash;
}

/* From memory; returns how many are not there. */
static size_t recall(struct hearth_monitors *monitors, struct report *report)
{
    size_t n_missing = 0;
    (void)pthread_mutex_lock(&monitors->lock);
    for (size_t i = 0; i < report->n; i++) {
        uint32_t at = hearth_idmap_find(&monitors->map, key_of(report, i));
        bool found = at != HEARTH_IDMAP_NONE && monitors->known[at].day >= report->day;
        report->lines[i] = found ? monitors->known[at] : (struct known){0};
        n_missing += !found;
    }
    (void)pthread_mutex_unlock(&monitors->lock);
    return n_missing;
}

/* Not remembering for want of memory costs a statement next time, nothing else. */
static void remember(struct hearth_monitors *monitors, const struct report *report)
{
    (void)pthread_mutex_lock(&monitors->lock);
    if (monitors->n_known + report->n > MAX_KNOWN) {
        hearth_idmap_reset(&monitors->map);
        monitors->n_known = 0;
    }
    for (size_t i = 0; i < report->n; i++) {
        bool is_new = false;
        if (!hearth_mem_grow(&monitors->known, &monitors->cap, monitors->n_known + 1,
                             sizeof monitors->known[0])) {
            break;
        }
        uint32_t at = hearth_idmap_intern(&monitors->map, key_of(report, i),
                                          (uint32_t)monitors->n_known, &is_new);
        if (at == HEARTH_IDMAP_NONE) {
            break;
        }
        monitors->known[at] = report->lines[i];
        monitors->n_known += is_new;
    }
    (void)pthread_mutex_unlock(&monitors->lock);
}

/* Lines that are there are looked up again each day: only new ones can be too many. */
static enum hearth_status check_count(struct report *report, const int32_t *monitors,
                                      struct hearth_pg *pg, enum hearth_pg_fault *ret_fault,
                                      struct hearth_err *err)
{
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, &report->arena);
    hearth_pg_param_i32(&params, report->service_id);
    hearth_pg_param_uuid_array(&params, report->fingerprints, report->n);
    hearth_pg_param_i32_array(&params, monitors, report->n);
    PGresult *rows = NULL;
    HEARTH_TRY(hearth_pg_exec(
        pg,
        "SELECT (SELECT count(*) FROM hearth_data.monitor_line WHERE service_id = $1),"
        " count(DISTINCT (x.monitor, x.fingerprint)) FROM unnest($2::uuid[], $3::int4[])"
        " x (fingerprint, monitor) WHERE NOT EXISTS (SELECT FROM hearth_data.monitor_line l WHERE"
        " l.service_id = $1 AND l.monitor = x.monitor AND l.fingerprint = x.fingerprint)",
        &params, report->cancel, &rows, ret_fault, err));
    int64_t n = hearth_pg_i64(rows, 0, 0), n_new = hearth_pg_i64(rows, 0, 1);
    PQclear(rows);
    if (report->max_lines > 0 && n_new > 0 && n + n_new > report->max_lines) {
        return HEARTH_FAIL(err, HEARTH_RESOURCE_EXHAUSTED,
                           "service \"" HEARTH_STR_FMT
                           "\" has %lld lines of metrics: %lld new ones would be more than the "
                           "%lld that max-monitor-lines allows",
                           HEARTH_STR_ARG(report->service), (long long)n, (long long)n_new,
                           (long long)report->max_lines);
    }
    return HEARTH_OK;
}

static const char LINES_SQL[] =
    "INSERT INTO hearth_data.monitor_line AS l (service_id, fingerprint, instance, process,"
    " monitor, uri, last_day) SELECT DISTINCT ON (monitor, fingerprint) $1, fingerprint, $2,"
    " process, monitor, uri, $3 FROM unnest($4::uuid[], $5::text[], $6::int4[], $7::text[])"
    " x (fingerprint, process, monitor, uri) ORDER BY monitor, fingerprint"
    " ON CONFLICT (service_id, monitor, fingerprint) DO UPDATE SET last_day ="
    " greatest(l.last_day, excluded.last_day) RETURNING line_id, monitor::int4, process, uri";

static enum hearth_status add_lines(struct report *report, struct hearth_pg *pg, PGresult **ret,
                                    enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct hearth_arena *arena = &report->arena;
    struct hearth_str *processes = hearth_arena_array(arena, report->n, sizeof processes[0]);
    struct hearth_str *uris = hearth_arena_array(arena, report->n, sizeof uris[0]);
    int32_t *monitors = hearth_arena_array(arena, report->n, sizeof monitors[0]);
    if (processes == NULL || uris == NULL || monitors == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }
    for (size_t i = 0; i < report->n; i++) {
        processes[i] = report->points[i].process;
        uris[i] = report->points[i].uri;
        monitors[i] = (int32_t)report->points[i].monitor;
    }
    HEARTH_TRY(check_count(report, monitors, pg, ret_fault, err));
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, arena);
    hearth_pg_param_i32(&params, report->service_id);
    hearth_pg_param_text(&params, report->instance);
    hearth_pg_param_i32(&params, report->day);
    hearth_pg_param_uuid_array(&params, report->fingerprints, report->n);
    hearth_pg_param_text_array(&params, processes, report->n);
    hearth_pg_param_i32_array(&params, monitors, report->n);
    hearth_pg_param_text_array(&params, uris, report->n);
    return hearth_pg_exec(pg, LINES_SQL, &params, report->cancel, ret, ret_fault, err);
}

static enum hearth_status make_lines(void *context, struct hearth_pg *pg,
                                     enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct report *report = context;
    PGresult *rows = NULL;
    HEARTH_TRY(add_lines(report, pg, &rows, ret_fault, err));
    for (size_t i = 0; i < report->n; i++) {
        const struct hearth_monitor_point *point = &report->points[i];
        for (int row = 0; row < PQntuples(rows); row++) {
            if (hearth_pg_i32(rows, row, 1) == (int32_t)point->monitor &&
                hearth_str_eq(hearth_pg_str(rows, row, 2), point->process) &&
                hearth_str_eq(hearth_pg_str(rows, row, 3), point->uri)) {
                report->lines[i] =
                    (struct known){report->service_id, report->day, hearth_pg_i64(rows, row, 0)};
                break;
            }
        }
    }
    PQclear(rows);
    return HEARTH_OK;
}

static enum hearth_status resolve(struct report *report, struct hearth_err *err)
{
    report->fingerprints =
        hearth_arena_array(&report->arena, report->n, sizeof report->fingerprints[0]);
    report->lines = hearth_arena_array(&report->arena, report->n, sizeof report->lines[0]);
    if (report->fingerprints == NULL || report->lines == NULL) {
        return HEARTH_FAIL_ARENA(err, &report->arena);
    }
    for (size_t i = 0; i < report->n; i++) {
        report->fingerprints[i] = fingerprint_of(report->instance, &report->points[i]);
    }
    if (recall(report->store->monitors, report) == 0) {
        return HEARTH_OK;
    }
    HEARTH_TRY(hearth_store_service_id(&(const struct hearth_scope){.store = report->store,
                                                                    .tenant = report->tenant,
                                                                    .cancel = report->cancel},
                                       report->service, true, &report->service_id, err));
    HEARTH_TRY(hearth_store_with_pg(report->store, report->cancel, make_lines, report, err));
    remember(report->store->monitors, report);
    return HEARTH_OK;
}

/* ---- values ---- */

static const char VALUES_SQL[] =
    "INSERT INTO hearth_data.monitor_minute AS m (service_id, line_id, minute, offsets, vals)"
    " SELECT s, l, m, array_agg(o ORDER BY n), array_agg(v ORDER BY n) FROM"
    " unnest($1::int4[], $2::int8[], $3::int4[], $4::int4[], $5::float8[]) WITH ORDINALITY"
    " x (s, l, m, o, v, n) GROUP BY s, l, m ORDER BY s, l, m"
    " ON CONFLICT (service_id, line_id, minute) DO UPDATE SET offsets = m.offsets ||"
    " excluded.offsets, vals = m.vals || excluded.vals WHERE cardinality(m.offsets) < $6";

struct batch {
    struct hearth_store *store;
    struct waiter *waiters;
    size_t n;
};

static enum hearth_status fill_params(const struct batch *batch, struct hearth_pg_params *params,
                                      struct hearth_err *err)
{
    struct hearth_arena *arena = params->arena;
    int32_t *services = hearth_arena_array(arena, batch->n, sizeof services[0]);
    int32_t *minutes = hearth_arena_array(arena, batch->n, sizeof minutes[0]);
    int32_t *offsets = hearth_arena_array(arena, batch->n, sizeof offsets[0]);
    int64_t *lines = hearth_arena_array(arena, batch->n, sizeof lines[0]);
    double *values = hearth_arena_array(arena, batch->n, sizeof values[0]);
    if (services == NULL || minutes == NULL || offsets == NULL || lines == NULL || values == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }
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
    hearth_pg_param_i32_array(params, services, n);
    hearth_pg_param_i64_array(params, lines, n);
    hearth_pg_param_i32_array(params, minutes, n);
    hearth_pg_param_i32_array(params, offsets, n);
    hearth_pg_param_f64_array(params, values, n);
    hearth_pg_param_i32(params, HEARTH_MONITOR_MAX_PER_MINUTE);
    return HEARTH_OK;
}

/* The days of all rows have leaves. They are mostly one, and known. */
static enum hearth_status ensure_days(const struct batch *batch, struct hearth_pg *pg,
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

static enum hearth_status write_values(void *context, struct hearth_pg *pg,
                                       enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    const struct batch *batch = context;
    HEARTH_TRY(ensure_days(batch, pg, err));
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, &arena);
    enum hearth_status status = fill_params(batch, &params, err);
    if (status == HEARTH_OK) {
        status = hearth_pg_exec(pg, VALUES_SQL, &params, NULL, NULL, ret_fault, err);
    }
    hearth_arena_release(&arena);
    if (status != HEARTH_OK && ret_fault != NULL && *ret_fault == HEARTH_PG_FAULT_MISSING_TABLE) {
        /* Retention has just taken the day that was known: known no more, and made again. */
        for (const struct waiter *waiter = batch->waiters; waiter != NULL; waiter = waiter->next) {
            hearth_partitions_forget(batch->store, waiter->rows[0].minute / MINUTES_PER_DAY);
        }
        *ret_fault = HEARTH_PG_FAULT_RETRY;
    }
    return status;
}

/* Take who waits, up to MAX_ROWS. Under the lock. */
static void take_waiters(struct hearth_monitors *monitors, struct batch *batch)
{
    struct waiter **end = &monitors->first;
    batch->n = 0;
    while (*end != NULL && (batch->n == 0 || batch->n + (*end)->n <= MAX_ROWS)) {
        batch->n += (*end)->n;
        end = &(*end)->next;
    }
    batch->waiters = monitors->first;
    monitors->first = *end;
    *end = NULL;
    if (monitors->first == NULL) {
        monitors->end = &monitors->first;
    }
}

/* Write what waits, others' too, until the own is done. Under the lock, which it lets go meanwhile. */
static void lead(struct hearth_store *store, struct waiter *own)
{
    struct hearth_monitors *monitors = store->monitors;
    monitors->is_writing = true;
    while (!own->is_done) {
        struct batch batch = {.store = store};
        take_waiters(monitors, &batch);
        (void)pthread_mutex_unlock(&monitors->lock);
        struct hearth_err err = HEARTH_ERR_INIT;
        enum hearth_status status = hearth_store_with_pg(store, NULL, write_values, &batch, &err);
        (void)pthread_mutex_lock(&monitors->lock);
        for (struct waiter *waiter = batch.waiters, *next; waiter != NULL; waiter = next) {
            next = waiter->next; /* it may be gone once it is done */
            waiter->status = status;
            waiter->err = err;
            waiter->is_done = true;
        }
    }
    monitors->is_writing = false;
    (void)pthread_cond_broadcast(&monitors->changed);
}

static enum hearth_status write_rows(struct hearth_store *store,
                                     const struct hearth_monitor_row *rows, size_t n,
                                     struct hearth_err *err)
{
    struct hearth_monitors *monitors = store->monitors;
    struct waiter own = {.rows = rows, .n = n, .err = HEARTH_ERR_INIT};
    (void)pthread_mutex_lock(&monitors->lock);
    *monitors->end = &own;
    monitors->end = &own.next;
    while (!own.is_done) {
        if (monitors->is_writing) {
            (void)pthread_cond_wait(&monitors->changed, &monitors->lock);
        } else {
            lead(store, &own);
        }
    }
    (void)pthread_mutex_unlock(&monitors->lock);
    if (own.status != HEARTH_OK && err != NULL) {
        *err = own.err;
    }
    return own.status;
}

static enum hearth_status add(struct report *report, int64_t at_ms, struct hearth_err *err)
{
    HEARTH_TRY(resolve(report, err));
    struct hearth_monitor_row *rows = hearth_arena_array(&report->arena, report->n, sizeof rows[0]);
    if (rows == NULL) {
        return HEARTH_FAIL_ARENA(err, &report->arena);
    }
    for (size_t i = 0; i < report->n; i++) {
        HEARTH_ASSERT(report->lines[i].line_id > 0);
        rows[i] = (struct hearth_monitor_row){
            .service_id = report->lines[i].service_id,
            .line_id = report->lines[i].line_id,
            .minute = (int32_t)(at_ms / MS_PER_MINUTE),
            .offset_ms = (int32_t)(at_ms % MS_PER_MINUTE),
            .value = report->points[i].value,
        };
    }
    return write_rows(report->store, rows, report->n, err);
}

enum hearth_status hearth_store_monitors_add(const struct hearth_scope *scope,
                                             struct hearth_str service, struct hearth_str instance,
                                             int64_t at_ms,
                                             const struct hearth_monitor_point *points, size_t n,
                                             int64_t max_lines, struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    if (n == 0) {
        return HEARTH_OK;
    }
    if (at_ms < 0 || at_ms / MS_PER_MINUTE > INT32_MAX) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "%lld is no time", (long long)at_ms);
    }
    struct report report = {.store = scope->store,
                            .tenant = scope->tenant,
                            .service = service,
                            .instance = instance,
                            .day = (int32_t)(at_ms / MS_PER_MINUTE / MINUTES_PER_DAY),
                            .points = points,
                            .n = n,
                            .max_lines = max_lines,
                            .cancel = scope->cancel};
    hearth_arena_init(&report.arena, 0);
    enum hearth_status status = add(&report, at_ms, err);
    hearth_arena_release(&report.arena);
    return status;
}

/* ---- trimming ---- */

enum hearth_status hearth_monitors_trim(struct hearth_store *store, struct hearth_pg *pg,
                                        struct hearth_err *err)
{
    int64_t keep_ns = store->options.retain_monitors_ns;
    if (keep_ns <= 0) {
        return HEARTH_OK;
    }
    /* A day more than its values: what a server remembers of today may have been confirmed just before midnight. */
    int64_t day = (hearth_clock_wall_ns() - keep_ns) / HEARTH_NS_PER_DAY - 2;
    char sql[192];
    (void)snprintf(sql, sizeof sql,
                   "DELETE FROM hearth_data.monitor_line WHERE line_id IN (SELECT line_id FROM"
                   " hearth_data.monitor_line WHERE last_day < %" PRId64
                   " ORDER BY line_id LIMIT 10000 FOR UPDATE SKIP LOCKED)",
                   day);
    return hearth_pg_exec(pg, sql, NULL, NULL, NULL, NULL, err);
}
