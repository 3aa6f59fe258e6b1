/*
 * store_audit.c -- adds and reads events of the audit log (contract: hearth/store/store_access.h).
 *
 * Events get their ids before they are inserted. So a batch that is inserted again, because the
 * answer to its first insertion was lost, adds nothing, even if the first one is still under way.
 */
#include "hearth/base/clock.h"
#include "hearth/store/store_access.h"

#include "access/access_write.h"
#include "session/partitions.h"

#include <assert.h>

#define MS_PER_DAY (HEARTH_NS_PER_DAY / HEARTH_NS_PER_MS)
/* The first day of the year 10000: until then, names of partitions have eight digits. */
#define END_MS (INT64_C(2932897) * MS_PER_DAY)

#define EVENT(kind, member) HEARTH_COLUMN(kind, struct hearth_audit_event, member)
static const struct hearth_column event_columns[] = {
    EVENT(I64, id),       EVENT(I64, at_ms),    EVENT(TEXT, tenant),
    EVENT(TEXT, subject), EVENT(TEXT, address), EVENT(TEXT, action),
    EVENT(TEXT, object),  EVENT(TEXT, outcome), EVENT(TEXT, message),
};
static const struct hearth_row_type event_rows =
    HEARTH_ROW_TYPE(event_columns, struct hearth_audit_event);

/* ---- adding ---- */

struct event_batch {
    const struct hearth_scope *scope;
    struct hearth_audit_event *events; /* copies, with ids */
    size_t n;
    struct hearth_pg_params params;
};

static int32_t find_event_month(const struct hearth_audit_event *event)
{
    int32_t next;
    return hearth_partition_month((int32_t)(event->at_ms / MS_PER_DAY), &next);
}

/* Copies the events with texts that PostgreSQL accepts. */
static enum hearth_status copy_events(struct event_batch *batch,
                                      const struct hearth_audit_event *events,
                                      struct hearth_arena *arena, struct hearth_err *err)
{
    batch->events = hearth_arena_array(arena, batch->n, sizeof *batch->events);
    for (size_t i = 0; batch->events != NULL && i < batch->n; i++) {
        struct hearth_audit_event *copy = &batch->events[i];
        *copy = events[i];
        if (copy->at_ms < 0 || copy->at_ms >= END_MS) {
            return HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE,
                               "an audit event has the time %lld ms; set this machine's clock",
                               (long long)copy->at_ms);
        }

        struct hearth_str *texts[] = {&copy->tenant, &copy->subject, &copy->address, &copy->action,
                                      &copy->object, &copy->outcome, &copy->message};
        for (size_t k = 0; k < HEARTH_ARRAY_LEN(texts); k++) {
            *texts[k] = hearth_access_mend(arena, *texts[k], HEARTH_MAX_AUDIT_TEXT_BYTES);
        }
    }

    return arena->refused ? HEARTH_FAIL_ARENA(err, arena) : HEARTH_OK;
}

/* Gives the events ascending ids, which no other event has. */
static enum hearth_status take_event_ids(struct event_batch *batch,
                                         const struct hearth_scope *scope, struct hearth_err *err)
{
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, scope->arena);
    hearth_pg_param_i64(&params, (int64_t)batch->n);

    int64_t *ids;
    size_t n;
    HEARTH_TRY(hearth_store_select(
        scope,
        "SELECT nextval(pg_get_serial_sequence('hearth_data.audit', 'audit_id'))"
        " FROM generate_series(1, $1) ORDER BY 1",
        &params, &hearth_i64_rows, &ids, &n, err));
    if (n != batch->n) {
        return HEARTH_FAIL(err, HEARTH_INTERNAL, "the database returned %zu ids instead of %zu", n,
                           batch->n);
    }

    for (size_t i = 0; i < n; i++) {
        batch->events[i].id = ids[i];
    }

    return HEARTH_OK;
}

/* Inserts the events. Called again after a passing fault. */
static enum hearth_status insert_events(void *context, struct hearth_pg *pg,
                                        enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct event_batch *batch = context;
    struct hearth_store *store = batch->scope->store;

    /* The months of the events. Known ones cost no statement. */
    for (size_t i = 0; i < batch->n; i++) {
        HEARTH_TRY(hearth_partitions_ensure(store, pg, HEARTH_LEAF_AUDIT,
                                            find_event_month(&batch->events[i]), err));
    }

    enum hearth_status status = hearth_pg_exec(
        pg,
        "INSERT INTO hearth_data.audit (audit_id, at, tenant, subject, address, action, object,"
        " outcome, message) OVERRIDING SYSTEM VALUE SELECT * FROM unnest($1::int8[], $2::int8[],"
        " $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[])"
        " ON CONFLICT (audit_id, at) DO NOTHING",
        &batch->params, batch->scope->cancel, NULL, ret_fault, err);
    if (status != HEARTH_OK && *ret_fault == HEARTH_PG_FAULT_MISSING_TABLE) {
        /* Retention has just dropped a month: the next attempt creates it. */
        for (size_t i = 0; i < batch->n; i++) {
            hearth_partitions_forget(store, find_event_month(&batch->events[i]));
        }
        *ret_fault = HEARTH_PG_FAULT_RETRY;
    }

    return status;
}

enum hearth_status hearth_store_audit_add(const struct hearth_scope *scope,
                                          const struct hearth_audit_event *events, size_t n,
                                          struct hearth_err *err)
{
    assert(events != NULL || n == 0);

    if (n == 0) {
        return HEARTH_OK;
    }

    HEARTH_CLEANUP(hearth_arena_release) struct hearth_arena arena;
    if (scope->arena != NULL) {
        hearth_arena_init_like(&arena, scope->arena);
    } else {
        hearth_arena_init(&arena, 0);
    }

    struct hearth_scope own = hearth_scope_of_owner(scope);
    own.arena = &arena;

    /* The rows. */
    struct event_batch batch = {.scope = &own, .n = n};
    HEARTH_TRY(copy_events(&batch, events, &arena, err));
    HEARTH_TRY(take_event_ids(&batch, &own, err));
    hearth_pg_params_init(&batch.params, &arena);
    hearth_pg_param_rows(&batch.params, &event_rows, batch.events, n);

    return hearth_store_as_owner(scope->store, scope->cancel, insert_events, &batch, err);
}

/* ---- reading ---- */

/*
 * The latest events that a filter lets through. $1 from, $2 to, $3 number of tenants, $4 tenants,
 * $5 subject, $6 prefix of the action, $7 outcome, $8 below this id, $9 limit. Only the months of
 * the time are read, by the primary key from its end, or by one of the indexes audit_at and
 * audit_tenant.
 */
static const char READ_AUDIT[] =
    "SELECT audit_id, at, tenant, subject, address, action, object, outcome, message"
    " FROM hearth_data.audit WHERE at BETWEEN $1 AND $2 AND ($3 = 0 OR tenant = ANY ($4))"
    " AND ($5 = '' OR subject = $5) AND ($6 = '' OR starts_with(action, $6))"
    " AND ($7 = '' OR outcome = $7) AND ($8 = 0 OR audit_id < $8)"
    " ORDER BY audit_id DESC LIMIT $9";

enum hearth_status hearth_store_audit(const struct hearth_scope *scope,
                                      const struct hearth_audit_filter *filter,
                                      struct hearth_audit_event **ret, size_t *ret_n,
                                      struct hearth_err *err)
{
    assert(scope->arena != NULL && filter != NULL && filter->limit > 0);
    assert(filter->tenants != NULL || filter->n_tenants == 0);

    struct hearth_pg_params params;
    hearth_pg_params_init(&params, scope->arena);
    hearth_pg_param_i64(&params, filter->from_ms);
    hearth_pg_param_i64(&params, filter->to_ms);
    hearth_pg_param_i64(&params, (int64_t)filter->n_tenants);
    hearth_pg_param_text_array(&params, filter->tenants, filter->n_tenants);
    hearth_pg_param_text(&params, filter->subject);
    hearth_pg_param_text(&params, filter->action);
    hearth_pg_param_text(&params, filter->outcome);
    hearth_pg_param_i64(&params, filter->before_id);
    hearth_pg_param_i64(&params, filter->limit);

    const struct hearth_scope own = hearth_scope_of_owner(scope);

    return hearth_store_select(&own, READ_AUDIT, &params, &event_rows, ret, ret_n, err);
}
