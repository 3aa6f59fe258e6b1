/*
 * audit.c -- the audit log: events that callers wait for, and events that are noted.
 *
 * Noted events gather in a table of fixed size, one row for each kind, so that a flood of refusals
 * becomes a few rows with a number. The thread of this room writes them.
 */
#include "hearth/base/clock.h"
#include "hearth/base/mem.h"
#include "hearth/base/metrics.h"

#include "access/access_internal.h"
#include "access/access_rules.h"
#include "common/call_internal.h"

#include <assert.h>
#include <stdio.h>

#define MAX_KINDS         256
#define MAX_TEXT_BYTES    256
#define MAX_OBJECT_BYTES  2048
#define MAX_MESSAGE_BYTES 512
#define FLUSH_EACH_NS     HEARTH_NS_PER_SEC
#define DEFAULT_LIMIT     100
#define MAX_LIMIT         1000

/* An event that waits; its texts end with a NUL. */
struct waiting_event {
    int64_t at_ms, n; /* of the latest one; how often it happened */
    char tenant[MAX_TEXT_BYTES], subject[MAX_TEXT_BYTES + 32], address[64], action[MAX_TEXT_BYTES];
    char object[MAX_MESSAGE_BYTES], outcome[32], message[MAX_MESSAGE_BYTES];
};

struct hearth_audit_buffer {
    struct hearth_mutex lock; /* guards waiting and n */
    size_t n;
    struct waiting_event waiting[MAX_KINDS];
    int64_t flushed_mono_ns;                 /* of the thread */
    struct waiting_event written[MAX_KINDS]; /* of the thread: events that are being written */
    size_t n_written;
};

enum hearth_status hearth_audit_init(struct hearth_access *access, struct hearth_err *err)
{
    access->audit = hearth_mem_zalloc(sizeof *access->audit);
    if (access->audit == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the audit log");
    }
    hearth_mutex_init(&access->audit->lock, HEARTH_RANK_AUDIT, "audit.lock");
    return HEARTH_OK;
}

void hearth_audit_free(struct hearth_access *access)
{
    if (access->audit != NULL) {
        hearth_mutex_destroy(&access->audit->lock);
        hearth_mem_free(access->audit);
    }
}

static void keep_text(char *out, size_t cap, struct hearth_str text)
{
    size_t n = text.n < cap ? text.n : cap - 1;

    if (n > 0) {
        memcpy(out, text.p, n);
    }
    hearth_str_utf8_mend(out, n);
    out[n] = '\0';
}

#define KEEP(row, member, event) keep_text((row)->member, sizeof(row)->member, (event)->member)

/* Equal but for time, object and message. */
static bool is_same_kind(const struct waiting_event *row, const struct hearth_audit_event *event)
{
    return hearth_str_eq_c(event->tenant, row->tenant) &&
           hearth_str_eq_c(event->subject, row->subject) &&
           hearth_str_eq_c(event->address, row->address) &&
           hearth_str_eq_c(event->action, row->action) &&
           hearth_str_eq_c(event->outcome, row->outcome);
}

/* The row of the event's kind, a new one with n == 0; NULL if the table is full. */
static struct waiting_event *find_event_row(struct hearth_audit_buffer *audit,
                                            const struct hearth_audit_event *event)
{
    hearth_mutex_assert_held(&audit->lock);
    for (size_t i = 0; i < audit->n; i++) {
        if (is_same_kind(&audit->waiting[i], event)) {
            return &audit->waiting[i];
        }
    }
    if (audit->n == MAX_KINDS) {
        return NULL;
    }

    struct waiting_event *row = &audit->waiting[audit->n++];
    row->n = 0;
    KEEP(row, tenant, event);
    KEEP(row, subject, event);
    KEEP(row, address, event);
    KEEP(row, action, event);
    KEEP(row, outcome, event);

    return row;
}

void hearth_audit_note(struct hearth_access *access, const struct hearth_audit_event *event)
{
    struct hearth_audit_buffer *audit = access->audit;

    hearth_mutex_lock(&audit->lock);
    struct waiting_event *row = find_event_row(audit, event);
    if (row != NULL) {
        row->at_ms = hearth_access_now_ms();
        row->n++;
        KEEP(row, object, event);
        KEEP(row, message, event);
    }
    hearth_mutex_unlock(&audit->lock);

    if (row == NULL) {
        hearth_metric_add(HEARTH_M_AUDIT_UNRECORDED, 1);
    }
}

/* Moves the events that wait to those that the thread writes. */
static void take_waiting_events(struct hearth_audit_buffer *audit)
{
    hearth_mutex_lock(&audit->lock);
    memcpy(audit->written, audit->waiting, audit->n * sizeof audit->waiting[0]);
    audit->n_written = audit->n;
    audit->n = 0;
    hearth_mutex_unlock(&audit->lock);

    /* Say how many events a row stands for. */
    for (size_t i = 0; i < audit->n_written; i++) {
        struct waiting_event *row = &audit->written[i];
        char message[MAX_MESSAGE_BYTES];
        if (row->n > 1) {
            (void)snprintf(message, sizeof message, "%lld times; the last one: %.400s",
                           (long long)row->n, row->message);
            keep_text(row->message, sizeof row->message, hearth_str_c(message));
        }
    }
}

static struct hearth_audit_event view_event(const struct waiting_event *row)
{
    return (struct hearth_audit_event){
        .at_ms = row->at_ms,
        .tenant = hearth_str_c(row->tenant),
        .subject = hearth_str_c(row->subject),
        .address = hearth_str_c(row->address),
        .action = hearth_str_c(row->action),
        .object = hearth_str_c(row->object),
        .outcome = hearth_str_c(row->outcome),
        .message = hearth_str_c(row->message),
    };
}

void hearth_audit_flush(struct hearth_access *access, struct hearth_cancel *cancel, bool is_end)
{
    struct hearth_audit_buffer *audit = access->audit;
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_audit_event events[MAX_KINDS];
    int64_t now = hearth_clock_mono_ns();

    if (now - audit->flushed_mono_ns < FLUSH_EACH_NS && !is_end) {
        return;
    }

    /* Events that could not be written are tried again first. */
    audit->flushed_mono_ns = now;
    if (audit->n_written == 0) {
        take_waiting_events(audit);
    }
    if (audit->n_written == 0) {
        return;
    }

    for (size_t i = 0; i < audit->n_written; i++) {
        events[i] = view_event(&audit->written[i]);
    }
    if (hearth_store_audit_add(HEARTH_ACCESS_SCOPE(access, cancel, NULL), events, audit->n_written,
                               &err) == HEARTH_OK) {
        audit->n_written = 0;
    }
}

enum hearth_status hearth_audit_write(struct hearth_access *access,
                                      const struct hearth_audit_event *event,
                                      struct hearth_cancel *cancel, struct hearth_err *err)
{
    struct hearth_audit_event stored = *event;

    assert(event->object.n <= MAX_OBJECT_BYTES);
    stored.at_ms = hearth_access_now_ms();

    return hearth_store_audit_add(HEARTH_ACCESS_SCOPE(access, cancel, NULL), &stored, 1, err);
}

/* ---- reading ---- */

/* The tenants that the caller administers, in the arena; *ret_all: all of them and the server. */
static enum hearth_status list_own_tenants(const struct hearth_access_call *call,
                                           struct hearth_str **ret, size_t *ret_n, bool *ret_all,
                                           struct hearth_err *err)
{
    struct hearth_grant *grants;
    struct hearth_view view;
    struct hearth_err ignored = HEARTH_ERR_INIT;
    size_t n, n_tenants = 0;

    *ret_all = hearth_access_allow(call->admission, HEARTH_RIGHT_ADMIN,
                                   HEARTH_STR(HEARTH_ALL_TENANTS), &view, &ignored) == HEARTH_OK;
    *ret = NULL;
    *ret_n = 0;
    if (*ret_all) {
        return HEARTH_OK;
    }

    HEARTH_TRY(hearth_access_grants_of(call->admission, call->arena, &grants, &n, err));
    struct hearth_str *tenants = hearth_arena_array(call->arena, n, sizeof *tenants);
    if (tenants == NULL) {
        return HEARTH_FAIL_ARENA(err, call->arena);
    }

    for (size_t i = 0; i < n; i++) {
        if (grants[i].selector.n == 0 && hearth_role_gives(grants[i].role, HEARTH_RIGHT_ADMIN)) {
            tenants[n_tenants++] = grants[i].tenant;
        }
    }
    *ret = tenants;
    *ret_n = n_tenants;

    return n_tenants > 0
               ? HEARTH_OK
               : HEARTH_FAIL(err, HEARTH_PERMISSION_DENIED, HEARTH_STR_FMT " administers no tenant",
                             HEARTH_STR_ARG(call->admission->subject));
}

enum hearth_status hearth_audit_list(const struct hearth_access_call *call,
                                     const struct hearth_audit_query *query,
                                     struct hearth_audit_event **ret, size_t *ret_n,
                                     struct hearth_err *err)
{
    struct hearth_str *tenants;
    size_t n_tenants;
    bool is_all;

    if (query->limit < 0 || query->limit > MAX_LIMIT) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "limit %lld is not within 0 and %d",
                           (long long)query->limit, MAX_LIMIT);
    }

    HEARTH_TRY(list_own_tenants(call, &tenants, &n_tenants, &is_all, err));
    if (query->tenant.n > 0) {
        HEARTH_TRY(hearth_access_check_admin(call, query->tenant, err));
    }

    const struct hearth_audit_filter filter = {
        .from_ms = query->from_ms,
        .to_ms = query->to_ms == 0 ? INT64_MAX : query->to_ms,
        .tenants = query->tenant.n > 0 ? &query->tenant : tenants,
        .n_tenants = query->tenant.n > 0 ? 1 : n_tenants,
        .subject = query->subject,
        .action = query->action,
        .outcome = query->outcome,
        .before_id = query->before_id,
        .limit = query->limit == 0 ? DEFAULT_LIMIT : query->limit,
    };

    return hearth_store_audit(HEARTH_ACCESS_SCOPE(call->access, call->cancel, call->arena), &filter,
                              ret, ret_n, err);
}
