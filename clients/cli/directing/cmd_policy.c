/* cmd_policy.c -- hearth policy: its commands out of a table; get, list, set, apply, diff, history, delete. */
#include "cmd_policy.h"

#include "cli_call.h"
#include "cli_messages.h"
#include "policy_file.h"
#include "text.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- files ---- */

static enum hearth_status read_policy_file(struct cli *cli, struct hearth_buf *out)
{
    const char *path = cli->agent.file;
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rbe");
    if (file == NULL) {
        return HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT, "cannot open %s: %s", path,
                           strerrordesc_np(errno));
    }
    char *room = hearth_buf_reserve(out, POLICY_FILE_BYTES + 1);
    out->n = room == NULL ? 0 : fread(room, 1, POLICY_FILE_BYTES + 1, file);
    bool failed = room == NULL || ferror(file) != 0;
    if (file != stdin) {
        (void)fclose(file);
    }
    return failed ? HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT, "cannot read %s", path)
                  : HEARTH_OK;
}

static Hearth__V1__PolicyTarget *make_target(struct cli *cli,
                                             const struct hearth_policy_target *target)
{
    Hearth__V1__PolicyTarget *out = hearth_arena_alloc(&cli->arena, sizeof *out);
    Hearth__V1__CheckItem *bodies =
        hearth_arena_array(&cli->arena, target->n_items, sizeof *bodies);
    Hearth__V1__CheckItem **items = hearth_arena_array(&cli->arena, target->n_items, sizeof *items);

    if (out == NULL || bodies == NULL || items == NULL) {
        return NULL;
    }
    hearth__v1__policy_target__init(out);
    out->kind = (Hearth__V1__TaskKind)target->kind;
    out->check_items = items;
    out->n_check_items = target->n_items;
    for (size_t i = 0; i < target->n_items; i++) {
        const struct hearth_check_item *item = &target->items[i];
        hearth__v1__check_item__init(&bodies[i]);
        bodies[i].monitor = (Hearth__V1__MonitorKind)item->monitor;
        bodies[i].threshold = item->threshold;
        bodies[i].period_seconds = item->period_seconds;
        bodies[i].count = item->count;
        bodies[i].uri_regex =
            hearth_arena_strndup(&cli->arena, item->uri_regex.p, item->uri_regex.n);
        bodies[i].uri_paths =
            hearth_arena_array(&cli->arena, item->n_uri_paths, sizeof *bodies[i].uri_paths);
        for (size_t k = 0; bodies[i].uri_paths != NULL && k < item->n_uri_paths; k++) {
            bodies[i].uri_paths[k] =
                hearth_arena_strndup(&cli->arena, item->uri_paths[k].p, item->uri_paths[k].n);
        }
        bodies[i].n_uri_paths = item->n_uri_paths;
        items[i] = &bodies[i];
    }

    return out;
}

static enum hearth_status make_policy(struct cli *cli, const char *service,
                                      const struct hearth_policy_target *targets, size_t n,
                                      Hearth__V1__Policy **ret)
{
    Hearth__V1__Policy *out = hearth_arena_alloc(&cli->arena, sizeof *out);
    Hearth__V1__PolicyTarget **list = hearth_arena_array(&cli->arena, n, sizeof *list);

    if (out == NULL || list == NULL) {
        return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
    }
    const char *by = cli->agent.modified_by != NULL ? cli->agent.modified_by : getenv("USER");
    hearth__v1__policy__init(out);
    out->service = cli_field(cli, service);
    out->modified_by = cli_field(cli, by == NULL ? "" : by);
    for (size_t i = 0; i < n; i++) {
        list[i] = make_target(cli, &targets[i]);
    }
    out->targets = list;
    out->n_targets = n;
    *ret = out;

    return cli->arena.refused ? HEARTH_FAIL_ARENA(&cli->err, &cli->arena) : HEARTH_OK;
}

enum hearth_status cli_policy_from_file(struct cli *cli, const char *service,
                                        Hearth__V1__Policy **ret)
{
    if (cli->agent.file == NULL) {
        return HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT,
                           "-f FILE is required: the policy (-: standard input)");
    }
    struct hearth_buf text;
    struct hearth_policy_target *targets = NULL;
    size_t n = 0;
    hearth_buf_init(&text, 0);
    enum hearth_status status = read_policy_file(cli, &text);
    if (status == HEARTH_OK) {
        status = policy_file_read(hearth_buf_view(&text), &cli->arena, &targets, &n, &cli->err);
        if (status != HEARTH_OK) {
            hearth_err_prefix(&cli->err, "%s", cli->agent.file);
        }
    }
    hearth_buf_release(&text);

    return status == HEARTH_OK ? make_policy(cli, service, targets, n, ret) : status;
}

/*
 * What is worth looking at before there is a policy. The thresholds do not matter: nothing is to start. HTTP monitors are
 * left out: for these the agent traces the connections of the processes, so a file has to ask for them.
 */
static enum hearth_status make_observer(struct cli *cli, const char *service,
                                        Hearth__V1__Policy **ret)
{
    struct hearth_check_item items[HEARTH_MONITOR_END - 1];
    size_t n = 0;
    for (enum hearth_monitor i = 1; i < HEARTH_MONITOR_END; i++) {
        if (!hearth_monitor_is_http(i)) {
            items[n++] = (struct hearth_check_item){
                .monitor = i, .threshold = 100, .period_seconds = 5, .count = 5};
        }
    }
    struct hearth_policy_target target = {HEARTH_POLICY_ON_CPU, items, n};
    return make_policy(cli, service, &target, 1, ret);
}

/* ---- policies as text ---- */

static void append_text(struct hearth_buf *out, const char *text)
{
    cli_fit(hearth_str_c(text), INT_MAX, false, out);
}

/* A line that says all of an item. */
static void print_item(Hearth__V1__TaskKind kind, const Hearth__V1__CheckItem *item,
                       struct hearth_buf *out)
{
    enum hearth_monitor monitor = (enum hearth_monitor)item->monitor;
    hearth_buf_printf(out, "%-8s %-23s >= %lld %s in %d of %d s",
                      hearth_policy_kind_name((enum hearth_policy_kind)kind),
                      hearth_monitor_name(monitor), (long long)item->threshold,
                      hearth_monitor_unit(monitor), item->count, item->period_seconds);
    for (size_t i = 0; i < item->n_uri_paths; i++) {
        hearth_buf_cstr(out, i == 0 ? " on " : ", ");
        append_text(out, item->uri_paths[i]);
    }
    if (item->uri_regex[0] != '\0') {
        hearth_buf_cstr(out, " on those that match ");
        append_text(out, item->uri_regex);
    }
    hearth_buf_byte(out, '\n');
}

static void print_items(const Hearth__V1__Policy *policy, const char *lead, struct hearth_buf *out)
{
    for (size_t i = 0; i < policy->n_targets; i++) {
        for (size_t k = 0; k < policy->targets[i]->n_check_items; k++) {
            hearth_buf_cstr(out, lead);
            print_item(policy->targets[i]->kind, policy->targets[i]->check_items[k], out);
        }
    }
}

static void print_policy(const Hearth__V1__Policy *policy, struct hearth_buf *out)
{
    char at[32];
    append_text(out, policy->service);
    if (policy->version > 0) {
        cli_date(policy->modified_ms, at);
        hearth_buf_printf(out, "  version %lld, %s", (long long)policy->version, at);
    }
    if (policy->modified_by[0] != '\0') {
        hearth_buf_cstr(out, " by ");
        append_text(out, policy->modified_by);
    }
    hearth_buf_cstr(out, policy->n_targets == 0 ? ": nothing starts by itself\n"
                         : policy->is_observing ? ": observing, nothing starts by itself\n"
                                                : "\n");
    print_items(policy, "  ", out);
}

static void print_policy_state(const Hearth__V1__GetPolicyResponse *state, struct hearth_buf *out)
{
    char at[32];
    print_policy(state->policy, out);
    for (size_t i = 0; i < state->n_status; i++) {
        const Hearth__V1__PolicyTargetStatus *status = state->status[i];
        hearth_buf_printf(out, "  %-8s triggered %d times in 48 hours",
                          hearth_policy_kind_name((enum hearth_policy_kind)status->kind),
                          status->triggered_count);
        if (status->last_triggered_ms > 0) {
            cli_date(status->last_triggered_ms, at);
            hearth_buf_printf(out, ", last %s", at);
        }
        hearth_buf_byte(out, '\n');
    }
}

/* ---- reading ---- */

static enum hearth_status ask_policy(struct cli *cli, const char *service,
                                     Hearth__V1__GetPolicyResponse **ret)
{
    Hearth__V1__GetPolicyRequest request;
    hearth__v1__get_policy_request__init(&request);
    request.service = cli_field(cli, service);
    return cli_call(cli, CLI_POLICIES "GetPolicy", &request,
                    &hearth__v1__get_policy_response__descriptor, ret);
}

enum cli_exit cli_policy_get(struct cli *cli)
{
    Hearth__V1__GetPolicyResponse *answer = NULL;
    enum hearth_status status = ask_policy(cli, cli->args[0], &answer);
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    print_policy_state(answer, &out);
    return cli_print_answer(cli, &answer->base, &out);
}

/* Adds service, version, author and size. */
static void add_policy(struct cli_listing *list, const Hearth__V1__Policy *policy)
{
    size_t n_items = 0;

    for (size_t i = 0; i < policy->n_targets; i++) {
        n_items += policy->targets[i]->n_check_items;
    }
    cli_list_text(list, policy->service);
    cli_list_number(list, policy->version);
    cli_list_time(list, policy->modified_ms);
    cli_list_text(list, policy->modified_by);
    cli_list_number(list, policy->is_observing);
    cli_list_number(list, (int64_t)n_items);
}

static void add_policy_state(struct cli_listing *list, const Hearth__V1__GetPolicyResponse *state)
{
    int64_t triggered = 0, last_ms = 0;

    for (size_t i = 0; i < state->n_status; i++) {
        triggered += state->status[i]->triggered_count;
        last_ms = state->status[i]->last_triggered_ms > last_ms
                      ? state->status[i]->last_triggered_ms
                      : last_ms;
    }
    add_policy(list, state->policy);
    cli_list_number(list, triggered);
    cli_list_time(list, last_ms);
}

/* Ends a list whose picture has the checks of each policy. */
static enum cli_exit end_policies(struct cli_listing *list, const ProtobufCMessage *answer,
                                  const char *none)
{
    bool is_empty = list->n_cells == 0;

    if (is_empty) {
        cli_say("hearth", none);
    }
    enum cli_exit code = cli_list_end(list, answer);
    return code == CLI_OK && is_empty ? CLI_NO_DATA : code;
}

enum cli_exit cli_policy_list(struct cli *cli)
{
    Hearth__V1__ListPoliciesRequest request;
    Hearth__V1__ListPoliciesResponse *answer = NULL;
    hearth__v1__list_policies_request__init(&request);
    enum hearth_status status = cli_call(cli, CLI_POLICIES "ListPolicies", &request,
                                         &hearth__v1__list_policies_response__descriptor, &answer);
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    struct cli_listing list;
    cli_list_begin(cli, &list);
    list.is_drawn = true;
    for (size_t i = 0; i < answer->n_policies; i++) {
        print_policy_state(answer->policies[i], &list.foot);
        add_policy_state(&list, answer->policies[i]);
    }
    return end_policies(&list, &answer->base, "no service has a policy");
}

enum cli_exit cli_policy_history(struct cli *cli)
{
    Hearth__V1__PolicyHistoryRequest request;
    Hearth__V1__PolicyHistoryResponse *answer = NULL;

    hearth__v1__policy_history_request__init(&request);
    request.service = cli_field(cli, cli->args[0]);
    enum hearth_status status = cli_call(cli, CLI_POLICIES "PolicyHistory", &request,
                                         &hearth__v1__policy_history_response__descriptor, &answer);
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    struct cli_listing list;
    cli_list_begin(cli, &list);
    list.is_drawn = true;
    for (size_t i = 0; i < answer->n_versions; i++) {
        print_policy(answer->versions[i], &list.foot);
        add_policy(&list, answer->versions[i]);
    }

    return end_policies(&list, &answer->base, "the service never had a policy");
}

/* ---- changing ---- */

static enum cli_exit send_policy(struct cli *cli, Hearth__V1__SetPolicyRequest *request)
{
    Hearth__V1__SetPolicyResponse *answer = NULL;
    enum hearth_status status = cli_call(cli, CLI_POLICIES "SetPolicy", request,
                                         &hearth__v1__set_policy_response__descriptor, &answer);
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    print_policy(answer->policy, &out);
    for (size_t i = 0; i < answer->n_warnings; i++) {
        cli_say("warning", answer->warnings[i]);
    }
    return cli_print_answer(cli, &answer->base, &out);
}

enum cli_exit cli_policy_set(struct cli *cli)
{
    Hearth__V1__SetPolicyRequest request;
    hearth__v1__set_policy_request__init(&request);
    request.observe = cli->agent.observe;
    enum hearth_status status = request.observe && cli->agent.file == NULL
                                    ? make_observer(cli, cli->args[0], &request.policy)
                                    : cli_policy_from_file(cli, cli->args[0], &request.policy);
    return status == HEARTH_OK ? send_policy(cli, &request) : cli_fail(cli, status);
}

static bool has_line(struct hearth_str text, struct hearth_str line)
{
    for (size_t from = 0, to; from < text.n; from = to + 1) {
        to = hearth_str_find(text, '\n', from);
        if (hearth_str_eq(hearth_str_n(text.p + from, to - from), line)) {
            return true;
        }
    }
    return false;
}

/* The lines of `text` that `other` has not. */
static size_t print_missing(struct hearth_str text, struct hearth_str other, char sign,
                            struct hearth_buf *out)
{
    size_t n = 0;
    for (size_t from = 0, to; from < text.n; from = to + 1) {
        to = hearth_str_find(text, '\n', from);
        struct hearth_str line = hearth_str_n(text.p + from, to - from);
        if (!has_line(other, line)) {
            hearth_buf_byte(out, (unsigned char)sign);
            hearth_buf_byte(out, ' ');
            hearth_buf_str(out, line);
            hearth_buf_byte(out, '\n');
            n++;
        }
    }
    return n;
}

/* What -f changes of what is stored; *ret_n: lines of it. */
static enum hearth_status compare_policies(struct cli *cli, Hearth__V1__SetPolicyRequest *request,
                                           struct hearth_buf *out, size_t *ret_n)
{
    Hearth__V1__GetPolicyResponse *stored = NULL;

    HEARTH_TRY(cli_policy_from_file(cli, cli->args[0], &request->policy));
    request->observe = cli->agent.observe;
    enum hearth_status status = ask_policy(cli, cli->args[0], &stored);
    if (status != HEARTH_OK && status != HEARTH_NOT_FOUND) {
        return status;
    }
    request->expected_version_presence_case =
        HEARTH__V1__SET_POLICY_REQUEST__EXPECTED_VERSION_PRESENCE_EXPECTED_VERSION;
    struct hearth_buf before, after;
    hearth_buf_init(&before, 0);
    hearth_buf_init(&after, 0);
    bool was_observing = false;
    if (status == HEARTH_OK) {
        print_items(stored->policy, "", &before);
        was_observing = stored->policy->is_observing;
        request->expected_version = stored->policy->version;
    }
    print_items(request->policy, "", &after);
    *ret_n = print_missing(hearth_buf_view(&before), hearth_buf_view(&after), '-', out) +
             print_missing(hearth_buf_view(&after), hearth_buf_view(&before), '+', out);
    if (was_observing != (bool)request->observe) {
        hearth_buf_printf(out, "%s", was_observing ? "- observing\n" : "+ observing\n");
        (*ret_n)++;
    }
    bool failed = hearth_buf_failed(&before) || hearth_buf_failed(&after);
    hearth_buf_release(&before);
    hearth_buf_release(&after);

    return failed ? HEARTH_FAIL(&cli->err, HEARTH_NO_MEMORY, "cannot allocate the comparison")
                  : HEARTH_OK;
}

enum cli_exit cli_policy_diff(struct cli *cli)
{
    Hearth__V1__SetPolicyRequest request;
    hearth__v1__set_policy_request__init(&request);
    struct hearth_buf out;
    size_t n = 0;
    hearth_buf_init(&out, 0);
    enum hearth_status status = compare_policies(cli, &request, &out, &n);
    if (status != HEARTH_OK) {
        hearth_buf_release(&out);
        return cli_fail(cli, status);
    }
    if (n == 0) {
        hearth_buf_cstr(&out, "nothing changes\n");
    }
    return cli_print(&out);
}

enum cli_exit cli_policy_apply(struct cli *cli)
{
    Hearth__V1__SetPolicyRequest request;
    hearth__v1__set_policy_request__init(&request);
    struct hearth_buf out;
    size_t n = 0;
    hearth_buf_init(&out, 0);
    enum hearth_status status = compare_policies(cli, &request, &out, &n);
    if (status == HEARTH_OK && cli->output != CLI_JSON) {
        (void)fwrite(out.p, 1, out.n, stderr);
    }
    hearth_buf_release(&out);
    return status == HEARTH_OK ? send_policy(cli, &request) : cli_fail(cli, status);
}

enum cli_exit cli_policy_delete(struct cli *cli)
{
    Hearth__V1__DeletePolicyRequest request;
    Hearth__V1__DeletePolicyResponse *answer = NULL;
    const char *by = cli->agent.modified_by != NULL ? cli->agent.modified_by : getenv("USER");
    hearth__v1__delete_policy_request__init(&request);
    request.service = cli_field(cli, cli->args[0]);
    request.modified_by = cli_field(cli, by == NULL ? "" : by);
    enum hearth_status status = cli_call(cli, CLI_POLICIES "DeletePolicy", &request,
                                         &hearth__v1__delete_policy_response__descriptor, &answer);
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    return cli_print_answer(cli, &answer->base, &out);
}
