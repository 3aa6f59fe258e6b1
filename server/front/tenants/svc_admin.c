/*
 * svc_admin.c -- hearth.v1.AdminService: status and checks of the background work, rebuilding of
 * roll-ups, deletion and retention.
 */
#include "hearth/base/clock.h"
#include "hearth/engine/admin.h"
#include "hearth/pb/hearth/v1/admin.pb-c.h"

#include "handlers.h"
#include "rpc/front_internal.h"
#include "rpc/message_map.h"
#include "rpc/messages.h"
#include "rpc/unary.h"

#define REQUESTED_BY_MAX_BYTES 256u

/* ---- status ---- */

HEARTH_MAP_TYPES(table, struct hearth_table_size, Hearth__V1__TableSize);
static const struct hearth_message_member table_members[] = {
    HEARTH_MAP(table, table, table),
    HEARTH_MAP(table, n_bytes, bytes),
};
static const struct hearth_message_map table_map =
    HEARTH_MESSAGE_MAP(table, hearth__v1__table_size__descriptor);

HEARTH_MAP_TYPES(state, struct hearth_background_state, Hearth__V1__StatusResponse);
static const struct hearth_message_member state_members[] = {
    HEARTH_MAP(state, has_builder, has_builder),
    HEARTH_MAP(state, builder_writer, builder_writer),
    HEARTH_MAP(state, builder_host, builder_host),
    HEARTH_MAP(state, lease_token, lease_token),
    HEARTH_MAP_MS(state, lag_ns, lag_ms),
    HEARTH_MAP(state, n_late_rows, late_rows),
    HEARTH_MAP(state, n_tombstones, tombstones),
    HEARTH_MAP_MS(state, oldest_profile_ns, oldest_profile_ms),
    HEARTH_MAP_LIST(state, tables, n_tables, tables, &table_map),
};
static const struct hearth_message_map state_map =
    HEARTH_MESSAGE_MAP(state, hearth__v1__status_response__descriptor);

/* What callers learn that do not administer all tenants: nothing about the data of others. */
static struct hearth_background_state restrict_state(const struct hearth_background_state *state)
{
    return (struct hearth_background_state){.has_builder = state->has_builder,
                                            .lag_ns = state->lag_ns};
}

HEARTH_UNARY(hearth_svc_admin_status, Hearth__V1__StatusRequest, Hearth__V1__StatusResponse)
{
    struct hearth_background_state state = {0};

    HEARTH_TRY(hearth_admin_state(rpc->front->admin, &rpc->arena, &state, &rpc->err));
    if (state.oldest_profile_ns == INT64_MAX) {
        state.oldest_profile_ns = 0; /* there are no profiles */
    }

    struct hearth_view view;
    struct hearth_err unused = HEARTH_ERR_INIT;
    out->restricted =
        hearth_access_allow(&rpc->caller.admission, HEARTH_RIGHT_ADMIN,
                            HEARTH_STR(HEARTH_ALL_TENANTS), &view, &unused) != HEARTH_OK;
    if (out->restricted) {
        state = restrict_state(&state);
    }

    hearth_rpc_map_into(rpc, &state_map, &state, out);

    return HEARTH_OK;
}

static void fill_verdict(struct hearth_rpc *rpc HEARTH_UNUSED, const void *from, void *message)
{
    static const Hearth__V1__Verdict verdicts[] = {
        [HEARTH_VERDICT_OK] = HEARTH__V1__VERDICT__VERDICT_OK,
        [HEARTH_VERDICT_ADVICE] = HEARTH__V1__VERDICT__VERDICT_ADVICE,
        [HEARTH_VERDICT_WRONG] = HEARTH__V1__VERDICT__VERDICT_WRONG,
    };
    const struct hearth_check *check = from;
    Hearth__V1__Check *out = message;

    assert((size_t)check->verdict < HEARTH_ARRAY_LEN(verdicts));
    out->verdict = verdicts[check->verdict];
}

HEARTH_MAP_TYPES(check, struct hearth_check, Hearth__V1__Check);
static const struct hearth_message_member check_members[] = {
    HEARTH_MAP(check, name, name),
    HEARTH_MAP(check, found, found),
    HEARTH_MAP(check, advice, advice),
};
static const struct hearth_message_map check_map =
    HEARTH_MESSAGE_MAP_AND(check, hearth__v1__check__descriptor, fill_verdict);

/* A part of the configuration, in the arena; p is NULL: no memory. */
static struct hearth_str write_config(struct hearth_rpc *rpc, enum hearth_front_config which)
{
    const struct hearth_front_options *options = &rpc->front->options;
    struct hearth_str text = {0};
    struct hearth_buf buf;

    hearth_buf_init(&buf, 0);
    options->write_config(options->hooks_context, which, &buf);
    if (!hearth_buf_failed(&buf)) {
        text = hearth_str_n(hearth_arena_strndup(&rpc->arena, buf.p, buf.n), buf.n);
    }
    hearth_buf_release(&buf);

    return text;
}

/* Checks of this server's configuration. */
#define N_CONFIG_CHECKS 3

static enum hearth_status check_config(struct hearth_rpc *rpc, struct hearth_check *ret)
{
    struct hearth_str changed = write_config(rpc, HEARTH_FRONT_CONFIG_CHANGED);
    struct hearth_str problem = write_config(rpc, HEARTH_FRONT_CONFIG_PROBLEM);
    struct hearth_str unapplied = write_config(rpc, HEARTH_FRONT_CONFIG_UNAPPLIED);
    if (changed.p == NULL || problem.p == NULL || unapplied.p == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    ret[0].name = HEARTH_STR("options that are not the defaults");
    ret[0].verdict = HEARTH_VERDICT_OK;
    ret[0].found = changed.n > 0 ? changed : HEARTH_STR("none");
    ret[1].name = HEARTH_STR("configuration");
    ret[1].verdict = problem.n > 0 ? HEARTH_VERDICT_ADVICE : HEARTH_VERDICT_OK;
    ret[1].found = problem.n > 0 ? problem : HEARTH_STR("in effect");
    if (problem.n > 0) {
        ret[1].advice =
            HEARTH_STR("check it by hearthd check-config; then restart hearthd, or send "
                       "it SIGHUP if no option needs a restart");
    }
    ret[2].name = HEARTH_STR("options that are not in effect");
    ret[2].verdict = unapplied.n > 0 ? HEARTH_VERDICT_ADVICE : HEARTH_VERDICT_OK;
    ret[2].found = unapplied.n > 0 ? unapplied : HEARTH_STR("none");
    if (unapplied.n > 0) {
        ret[2].advice = HEARTH_STR("send hearthd SIGHUP (systemctl reload hearthd), or restart it");
    }

    return HEARTH_OK;
}

/* The age of the oldest push is left out while a pass has not met it yet. */
static const char *describe_spool(struct hearth_rpc *rpc, const struct hearth_spool_look *look)
{
    const char *age = "";

    if (look->oldest_ns > 0) {
        int64_t age_ns = hearth_clock_wall_ns() - look->oldest_ns;
        age = hearth_arena_printf(&rpc->arena, "; the oldest is %lld s old",
                                  (long long)(age_ns > 0 ? age_ns / HEARTH_NS_PER_SEC : 0));
    }

    return hearth_arena_printf(
        &rpc->arena, "%s%lld %s; %lld of %lld bytes%s",
        look->is_broken ? "it takes no more pushes, because its disk failed; " : "",
        (long long)look->n_waiting, look->n_waiting == 1 ? "push waits" : "pushes wait",
        (long long)look->n_bytes, (long long)look->max_bytes, age == NULL ? "" : age);
}

static enum hearth_status check_spool(struct hearth_rpc *rpc, struct hearth_check *ret)
{
    struct hearth_spool *spool = rpc->front->options.spool;
    struct hearth_spool_look look = {0};

    *ret = (struct hearth_check){
        .name = HEARTH_STR("spool"),
        .verdict = HEARTH_VERDICT_OK,
        .found = HEARTH_STR("off: pushes are refused while the database is away")};
    if (spool == NULL) {
        return HEARTH_OK;
    }

    hearth_spool_look(spool, &look);
    const char *found = describe_spool(rpc, &look);
    if (found == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }
    ret->found = hearth_str_c(found);
    if (look.is_broken) {
        ret->verdict = HEARTH_VERDICT_WRONG;
        ret->advice =
            HEARTH_STR("mend or replace the disk of spool-dir, then restart hearthd; what "
                       "waits is kept");
    } else if (look.n_waiting > 0) {
        ret->verdict = HEARTH_VERDICT_ADVICE;
        ret->advice =
            HEARTH_STR("they are stored while the database can be reached; if they do not "
                       "become fewer, the log says why (component spool)");
    }

    return HEARTH_OK;
}

HEARTH_UNARY(hearth_svc_admin_doctor, Hearth__V1__DoctorRequest, Hearth__V1__DoctorResponse)
{
    struct hearth_check *checks = NULL;
    size_t n = 0;

    HEARTH_TRY(hearth_admin_doctor(rpc->front->admin, &rpc->arena, &checks, &n, &rpc->err));

    /* The store knows the database, this layer what this server is told and keeps. */
    struct hearth_check *all =
        hearth_arena_calloc(&rpc->arena, n + N_CONFIG_CHECKS + 1, sizeof *all);
    if (all == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }
    memcpy(all, checks, n * sizeof *all);
    HEARTH_TRY(check_spool(rpc, &all[n++]));
    if (rpc->front->options.write_config != NULL) {
        HEARTH_TRY(check_config(rpc, &all[n]));
        n += N_CONFIG_CHECKS;
    }
    HEARTH_RPC_LIST(rpc, &check_map, all, n, out, checks);

    return HEARTH_OK;
}

/* ---- roll-ups ---- */

HEARTH_UNARY(hearth_svc_admin_rebuild, Hearth__V1__RebuildRequest, Hearth__V1__RebuildResponse)
{
    struct hearth_str service = hearth_str_c(in->service_name);
    if (in->all_services == (service.n > 0)) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                           "set either service_name or all_services");
    }

    if (in->from_ms <= 0) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                           "from_ms is %lld; set the first time to rebuild, in milliseconds",
                           (long long)in->from_ms);
    }

    const struct hearth_call call = hearth_rpc_call(rpc);
    return hearth_admin_rebuild(&call, service, in->from_ms, &rpc->err);
}

/* ---- deletion ---- */

/* The requester for the log of deletions: the client's own text, if any, and its address. */
static enum hearth_status read_requester(struct hearth_rpc *rpc, const char *said,
                                         struct hearth_str *ret)
{
    char peer[HEARTH_PEER_TEXT_BYTES];

    if (strlen(said) > REQUESTED_BY_MAX_BYTES) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                           "requested_by has %zu bytes; at most %u are allowed", strlen(said),
                           REQUESTED_BY_MAX_BYTES);
    }

    /* The address is added in any case. */
    assert(rpc->peer_text != NULL);
    rpc->peer_text(rpc, peer);
    char *text = said[0] == '\0' ? hearth_arena_strndup(&rpc->arena, peer, strlen(peer))
                                 : hearth_arena_printf(&rpc->arena, "%s (%s)", said, peer);
    *ret = hearth_str_c(text);

    return text == NULL ? HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena) : HEARTH_OK;
}

/*
 * Counts or deletes. A deletion must state the number of series that the caller expects, because a
 * mistaken selector usually matches a different number.
 */
static enum hearth_status count_or_erase(struct hearth_rpc *rpc, const Hearth__V1__EraseRequest *in,
                                         struct hearth_admin_erased *erased)
{
    const struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_admin_erase what = {
        .selector = hearth_str_c(in->label_selector),
        .from_ms = in->start,
        .to_ms = in->end,
        .only_count = true,
    };
    bool is_expected = in->expected_series_presence_case != 0;
    if (!in->dry_run && !is_expected) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                           "expected_series is missing: send dry_run first, then the number of "
                           "series that it counted");
    }

    /* Count the series. */
    HEARTH_TRY(read_requester(rpc, in->requested_by, &what.requested_by));
    HEARTH_TRY(hearth_admin_erase(&call, &what, erased, &rpc->err));
    if (in->dry_run) {
        return HEARTH_OK;
    }

    if ((int64_t)erased->n_series != in->expected_series) {
        return HEARTH_FAIL(&rpc->err, HEARTH_FAILED_PRECONDITION,
                           "the selector matches %zu series, not %lld: nothing was deleted; send "
                           "dry_run again",
                           erased->n_series, (long long)in->expected_series);
    }

    /* Delete them. */
    what.only_count = false;

    return hearth_admin_erase(&call, &what, erased, &rpc->err);
}

HEARTH_MAP_TYPES(erased, struct hearth_admin_erased, Hearth__V1__EraseResponse);
static const struct hearth_message_member erased_members[] = {
    HEARTH_MAP(erased, n_series, series),
    HEARTH_MAP(erased, n_services, services),
    HEARTH_MAP(erased, erasure_id, erasure_id),
};
static const struct hearth_message_map erased_map =
    HEARTH_MESSAGE_MAP(erased, hearth__v1__erase_response__descriptor);

HEARTH_UNARY(hearth_svc_admin_erase, Hearth__V1__EraseRequest, Hearth__V1__EraseResponse)
{
    struct hearth_admin_erased erased = {0};

    HEARTH_TRY(count_or_erase(rpc, in, &erased));
    hearth_rpc_map_into(rpc, &erased_map, &erased, out);

    return HEARTH_OK;
}

HEARTH_MAP_TYPES(erasure, struct hearth_erasure, Hearth__V1__Erasure);
static const struct hearth_message_member erasure_members[] = {
    HEARTH_MAP(erasure, erasure_id, erasure_id),
    HEARTH_MAP(erasure, selector, label_selector),
    HEARTH_MAP(erasure, requested_by, requested_by),
    HEARTH_MAP_MS(erasure, from_ns, start),
    HEARTH_MAP_MS(erasure, to_ns, end),
    HEARTH_MAP_MS(erasure, requested_at_ns, requested_at_ms),
    HEARTH_MAP_MS(erasure, done_at_ns, done_at_ms),
    HEARTH_MAP(erasure, n_series, series),
    HEARTH_MAP(erasure, n_rows, rows),
};
static const struct hearth_message_map erasure_map =
    HEARTH_MESSAGE_MAP(erasure, hearth__v1__erasure__descriptor);

HEARTH_UNARY(hearth_svc_admin_erasures, Hearth__V1__ErasuresRequest, Hearth__V1__ErasuresResponse)
{
    const struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_erasure *erasures = NULL;
    size_t n = 0;

    HEARTH_TRY(hearth_admin_erasures(&call, &erasures, &n, &rpc->err));
    HEARTH_RPC_LIST(rpc, &erasure_map, erasures, n, out, erasures);

    return HEARTH_OK;
}

/* ---- retention ---- */

HEARTH_MAP_TYPES(retention, struct hearth_retention, Hearth__V1__Retention);
static const struct hearth_message_member retention_members[] = {
    HEARTH_MAP_MS(retention, profiles_ns, profiles_ms),
    HEARTH_MAP_MS(retention, roll_10m_ns, roll_10m_ms),
    HEARTH_MAP_MS(retention, roll_1h_ns, roll_1h_ms),
    HEARTH_MAP_MS(retention, roll_1d_ns, roll_1d_ms),
};
static const struct hearth_message_map retention_map =
    HEARTH_MESSAGE_MAP(retention, hearth__v1__retention__descriptor);

static void answer_retention(struct hearth_rpc *rpc, Hearth__V1__Retention *out)
{
    struct hearth_retention retention = {0};

    hearth_admin_retention(rpc->front->admin, hearth_rpc_tenant(rpc), &retention);
    hearth_rpc_map_into(rpc, &retention_map, &retention, out);
}

HEARTH_UNARY(hearth_svc_admin_get_retention, Hearth__V1__GetRetentionRequest, Hearth__V1__Retention)
{
    answer_retention(rpc, out);
    return HEARTH_OK;
}

HEARTH_UNARY(hearth_svc_admin_set_retention, Hearth__V1__SetRetentionRequest, Hearth__V1__Retention)
{
    const struct hearth_call call = hearth_rpc_call(rpc);
    int64_t value_ns = -1;

    if (in->value_case == HEARTH__V1__SET_RETENTION_REQUEST__VALUE_DURATION_MS) {
        if (in->duration_ms < 0 ||
            __builtin_mul_overflow(in->duration_ms, HEARTH_NS_PER_MS, &value_ns)) {
            return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                               "duration_ms is %lld; it must be 0 (for ever), or at most 292 years",
                               (long long)in->duration_ms);
        }
    } else if (in->value_case != HEARTH__V1__SET_RETENTION_REQUEST__VALUE_RESET || !in->reset) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                           "set either duration_ms, or reset to true");
    }

    HEARTH_TRY(hearth_admin_retention_set(&call, hearth_str_c(in->name), value_ns, &rpc->err));

    answer_retention(rpc, out);

    return HEARTH_OK;
}
