/*
 * svc_admin.c -- hearth.v1.AdminService: status and checks of the background work, rebuilding of
 * roll-ups, deletion and retention.
 */
#include "hearth/engine/admin.h"
#include "hearth/pb/hearth/v1/admin.pb-c.h"

#include "handlers.h"
#include "rpc/front_internal.h"
#include "rpc/messages.h"

#define REQUESTED_BY_MAX_BYTES 256u

/* ---- status ---- */

static enum hearth_status status(struct hearth_rpc *rpc)
{
    struct hearth_background_state state = {0};

    HEARTH_TRY(hearth_admin_state(rpc->front->admin, &rpc->arena, &state, &rpc->err));

    /* Build the answer in the request's arena. */
    Hearth__V1__StatusResponse *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    Hearth__V1__TableSize **tables =
        hearth_arena_array(&rpc->arena, state.n_tables, sizeof *tables);
    Hearth__V1__TableSize *bodies = hearth_arena_array(&rpc->arena, state.n_tables, sizeof *bodies);
    if (out == NULL || tables == NULL || bodies == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    hearth__v1__status_response__init(out);
    out->has_builder = state.has_builder;
    out->builder_writer = state.builder_writer;
    out->builder_host = hearth_rpc_text(rpc, state.builder_host);
    out->lease_token = state.lease_token;
    out->lag_ms = state.lag_ns / HEARTH_NS_PER_MS;
    out->late_rows = state.n_late_rows;
    out->tombstones = state.n_tombstones;
    out->oldest_profile_ms =
        state.oldest_profile_ns == INT64_MAX ? 0 : state.oldest_profile_ns / HEARTH_NS_PER_MS;
    out->tables = tables;
    out->n_tables = state.n_tables;

    for (size_t i = 0; i < state.n_tables; i++) {
        hearth__v1__table_size__init(&bodies[i]);
        bodies[i].table = hearth_rpc_text(rpc, state.tables[i].table);
        bodies[i].bytes = state.tables[i].n_bytes;
        tables[i] = &bodies[i];
    }

    rpc->answer = &out->base;

    return rpc->arena.refused ? HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena) : HEARTH_OK;
}

void hearth_svc_admin_status(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, status(rpc));
}

static Hearth__V1__Verdict verdict_of(enum hearth_verdict verdict)
{
    switch (verdict) {
    case HEARTH_VERDICT_OK:
        return HEARTH__V1__VERDICT__VERDICT_OK;
    case HEARTH_VERDICT_ADVICE:
        return HEARTH__V1__VERDICT__VERDICT_ADVICE;
    default:
        return HEARTH__V1__VERDICT__VERDICT_WRONG;
    }
}

static enum hearth_status doctor(struct hearth_rpc *rpc)
{
    struct hearth_check *checks = NULL;
    size_t n = 0;

    HEARTH_TRY(hearth_admin_doctor(rpc->front->admin, &rpc->arena, &checks, &n, &rpc->err));

    /* Build the answer in the request's arena. */
    Hearth__V1__DoctorResponse *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    Hearth__V1__Check **list = hearth_arena_array(&rpc->arena, n, sizeof *list);
    Hearth__V1__Check *bodies = hearth_arena_array(&rpc->arena, n, sizeof *bodies);
    if (out == NULL || list == NULL || bodies == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    hearth__v1__doctor_response__init(out);

    for (size_t i = 0; i < n; i++) {
        hearth__v1__check__init(&bodies[i]);
        bodies[i].name = hearth_rpc_text(rpc, checks[i].name);
        bodies[i].verdict = verdict_of(checks[i].verdict);
        bodies[i].found = hearth_rpc_text(rpc, checks[i].found);
        bodies[i].advice = hearth_rpc_text(rpc, checks[i].advice);
        list[i] = &bodies[i];
    }

    out->n_checks = n;
    out->checks = list;
    rpc->answer = &out->base;

    return rpc->arena.refused ? HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena) : HEARTH_OK;
}

void hearth_svc_admin_doctor(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, doctor(rpc));
}

/* ---- roll-ups ---- */

static enum hearth_status rebuild(struct hearth_rpc *rpc)
{
    const Hearth__V1__RebuildRequest *in = (const Hearth__V1__RebuildRequest *)rpc->request;
    struct hearth_str service = hearth_str_c(in->service_name);
    if (in->all_services == (service.n > 0)) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                           "either service_name or all_services says what is built again");
    }

    if (in->from_ms <= 0) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                           "from_ms is %lld; it is the time to begin at, in milliseconds",
                           (long long)in->from_ms);
    }

    HEARTH_TRY(hearth_admin_rebuild(rpc->front->admin, hearth_rpc_tenant(rpc), service, in->from_ms,
                                    &rpc->cancel, &rpc->arena, &rpc->err));

    /* Build the answer in the request's arena. */
    Hearth__V1__RebuildResponse *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    if (out == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    hearth__v1__rebuild_response__init(out);
    rpc->answer = &out->base;

    return HEARTH_OK;
}

void hearth_svc_admin_rebuild(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, rebuild(rpc));
}

/* ---- deletion ---- */

/* The requester for the log of deletions: the client's own text, if any, and its address. */
static enum hearth_status requester(struct hearth_rpc *rpc, const char *said,
                                    struct hearth_str *ret)
{
    char peer[HEARTH_PEER_TEXT_BYTES];

    if (strlen(said) > REQUESTED_BY_MAX_BYTES) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                           "requested_by has %zu bytes; it may have %u", strlen(said),
                           REQUESTED_BY_MAX_BYTES);
    }

    rpc->peer_text(rpc, peer);

    char *text = said[0] == '\0' ? hearth_arena_strndup(&rpc->arena, peer, strlen(peer))
                                 : hearth_arena_printf(&rpc->arena, "%s (%s)", said, peer);

    *ret = hearth_str_c(text);

    return text == NULL ? HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena) : HEARTH_OK;
}

/*
 * Count or delete. A deletion must state the number of series that the caller expects, because a
 * mistaken selector usually matches a different number.
 */
static enum hearth_status erase_all(struct hearth_rpc *rpc, struct hearth_admin_erased *erased)
{
    const Hearth__V1__EraseRequest *in = (const Hearth__V1__EraseRequest *)rpc->request;
    struct hearth_admin_erase what = {
        .tenant = hearth_rpc_tenant(rpc),
        .selector = hearth_str_c(in->label_selector),
        .from_ms = in->start,
        .to_ms = in->end,
        .only_count = true,
    };
    bool is_expected = in->expected_series_presence_case != 0;
    if (!in->dry_run && !is_expected) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                           "expected_series is missing: ask with dry_run first, then say how many "
                           "series it counted");
    }

    HEARTH_TRY(requester(rpc, in->requested_by, &what.requested_by));
    HEARTH_TRY(
        hearth_admin_erase(rpc->front->admin, &what, &rpc->cancel, &rpc->arena, erased, &rpc->err));

    if (in->dry_run) {
        return HEARTH_OK;
    }

    if ((int64_t)erased->n_series != in->expected_series) {
        return HEARTH_FAIL(&rpc->err, HEARTH_FAILED_PRECONDITION,
                           "the selector takes %zu series, not %lld: nothing was deleted; ask with "
                           "dry_run again",
                           erased->n_series, (long long)in->expected_series);
    }

    what.only_count = false;

    return hearth_admin_erase(rpc->front->admin, &what, &rpc->cancel, &rpc->arena, erased,
                              &rpc->err);
}

static enum hearth_status erase(struct hearth_rpc *rpc)
{
    struct hearth_admin_erased erased = {0};

    HEARTH_TRY(erase_all(rpc, &erased));

    /* Build the answer in the request's arena. */
    Hearth__V1__EraseResponse *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    if (out == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    hearth__v1__erase_response__init(out);
    out->series = (int64_t)erased.n_series;
    out->services = (int64_t)erased.n_services;
    out->erasure_id = erased.erasure_id;
    rpc->answer = &out->base;

    return HEARTH_OK;
}

void hearth_svc_admin_erase(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, erase(rpc));
}

static enum hearth_status erasures(struct hearth_rpc *rpc)
{
    struct hearth_erasure *found = NULL;
    size_t n = 0;

    HEARTH_TRY(hearth_admin_erasures(rpc->front->admin, hearth_rpc_tenant(rpc), &rpc->arena, &found,
                                     &n, &rpc->err));

    /* Build the answer in the request's arena. */
    Hearth__V1__ErasuresResponse *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    Hearth__V1__Erasure **list = hearth_arena_array(&rpc->arena, n, sizeof *list);
    Hearth__V1__Erasure *bodies = hearth_arena_array(&rpc->arena, n, sizeof *bodies);
    if (out == NULL || list == NULL || bodies == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    hearth__v1__erasures_response__init(out);

    for (size_t i = 0; i < n; i++) {
        hearth__v1__erasure__init(&bodies[i]);
        bodies[i].erasure_id = found[i].erasure_id;
        bodies[i].label_selector = hearth_rpc_text(rpc, found[i].selector);
        bodies[i].requested_by = hearth_rpc_text(rpc, found[i].requested_by);
        bodies[i].start = found[i].from_ns / HEARTH_NS_PER_MS;
        bodies[i].end = found[i].to_ns / HEARTH_NS_PER_MS;
        bodies[i].requested_at_ms = found[i].requested_at_ns / HEARTH_NS_PER_MS;
        bodies[i].done_at_ms = found[i].done_at_ns / HEARTH_NS_PER_MS;
        bodies[i].series = found[i].n_series;
        bodies[i].rows = found[i].n_rows;
        list[i] = &bodies[i];
    }

    out->n_erasures = n;
    out->erasures = list;
    rpc->answer = &out->base;

    return rpc->arena.refused ? HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena) : HEARTH_OK;
}

void hearth_svc_admin_erasures(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, erasures(rpc));
}

/* ---- retention ---- */

static enum hearth_status answer_retention(struct hearth_rpc *rpc)
{
    struct hearth_retention retention = {0};

    hearth_admin_retention(rpc->front->admin, hearth_rpc_tenant(rpc), &retention);

    /* Build the answer in the request's arena. */
    Hearth__V1__Retention *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    if (out == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    hearth__v1__retention__init(out);
    out->profiles_ms = retention.profiles_ns / HEARTH_NS_PER_MS;
    out->roll_10m_ms = retention.roll_10m_ns / HEARTH_NS_PER_MS;
    out->roll_1h_ms = retention.roll_1h_ns / HEARTH_NS_PER_MS;
    out->roll_1d_ms = retention.roll_1d_ns / HEARTH_NS_PER_MS;
    rpc->answer = &out->base;

    return HEARTH_OK;
}

void hearth_svc_admin_get_retention(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, answer_retention(rpc));
}

static enum hearth_status set_retention(struct hearth_rpc *rpc)
{
    const Hearth__V1__SetRetentionRequest *in =
        (const Hearth__V1__SetRetentionRequest *)rpc->request;
    int64_t value_ns = -1;

    if (in->value_case == HEARTH__V1__SET_RETENTION_REQUEST__VALUE_DURATION_MS) {
        if (in->duration_ms < 0 ||
            __builtin_mul_overflow(in->duration_ms, HEARTH_NS_PER_MS, &value_ns)) {
            return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                               "duration_ms is %lld; it is 0 (for ever) or at most 292 years",
                               (long long)in->duration_ms);
        }
    } else if (in->value_case != HEARTH__V1__SET_RETENTION_REQUEST__VALUE_RESET || !in->reset) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                           "either duration_ms or reset says what the setting becomes");
    }

    HEARTH_TRY(hearth_admin_retention_set(rpc->front->admin, hearth_rpc_tenant(rpc),
                                          hearth_str_c(in->name), value_ns, &rpc->err));

    return answer_retention(rpc);
}

void hearth_svc_admin_set_retention(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, set_retention(rpc));
}
