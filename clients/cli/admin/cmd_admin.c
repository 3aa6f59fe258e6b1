/* cmd_admin.c -- hearth admin: status, doctor, rebuild, retention. */
#include "hearth/base/clock.h"
#include "hearth/pb/hearth/v1/admin.pb-c.h"
#include "hearth/selector/timeexpr.h"

#include "ask.h"
#include "cli_call.h"
#include "cli_messages.h"
#include "listing.h"
#include "text.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#define ADMIN "hearth.v1.AdminService/"

/* ---- status ---- */

static int by_bytes(const void *a, const void *b)
{
    const Hearth__V1__TableSize *x = *(Hearth__V1__TableSize *const *)a;
    const Hearth__V1__TableSize *y = *(Hearth__V1__TableSize *const *)b;
    return x->bytes < y->bytes ? 1 : x->bytes > y->bytes ? -1 : strcmp(x->table, y->table);
}

static void print_size(const char *name, double bytes, struct hearth_buf *out)
{
    char size[48];
    cli_value(bytes, HEARTH_STR("bytes"), size);
    cli_fit(hearth_str_c(name), 16, true, out);
    hearth_buf_printf(out, " %11s\n", size);
}

/* The largest first; those below a hundredth of all in one line. */
static void print_tables(const Hearth__V1__StatusResponse *s, struct hearth_buf *out)
{
    double all = 0, rest = 0;
    size_t n_rest = 0;

    qsort(s->tables, s->n_tables, sizeof s->tables[0], by_bytes);
    for (size_t i = 0; i < s->n_tables; i++) {
        all += (double)s->tables[i]->bytes;
    }
    hearth_buf_printf(out, "\n%-16s %11s\n", "table", "size");
    for (size_t i = 0; i < s->n_tables; i++) {
        double bytes = (double)s->tables[i]->bytes;
        if (bytes >= all / 100) {
            print_size(s->tables[i]->table, bytes, out);
        } else {
            rest += bytes;
            n_rest++;
        }
    }
    if (n_rest > 0) {
        char name[64];
        cli_number((int64_t)n_rest, "other", "others", name);
        print_size(name, rest, out);
    }
    print_size("all", all, out);
}

static void print_builder_state(struct cli *cli, const Hearth__V1__StatusResponse *s,
                                struct hearth_buf *out)
{
    char a[64], b[64];

    hearth_buf_cstr(out, "builder     ");
    if (s->restricted && s->has_builder) {
        hearth_buf_cstr(out, "a server builds\n");
    } else if (s->has_builder) {
        cli_fit(hearth_str_c(s->builder_host), 60, false, out);
        hearth_buf_printf(out, " (writer %d, lease %lld)\n", (int)s->builder_writer,
                          (long long)s->lease_token);
    } else {
        hearth_buf_cstr(out, "none: no server has the lease, so nothing is rolled up or removed; "
                             "is one running with --builder true?\n");
    }
    cli_value((double)s->lag_ms * 1e6, HEARTH_STR("nanoseconds"), a);
    hearth_buf_printf(out, "behind      %s\n",
                      s->lag_ms == 0 ? "nothing: all that is due is built" : a);
    if (s->restricted) {
        hearth_buf_cstr(out, "the rest    is shown to administrators of all tenants\n");
        return;
    }
    cli_count(s->late_rows, a);
    hearth_buf_printf(out, "late        %s%s\n", s->late_rows == 0 ? "" : a,
                      s->late_rows == 0 ? "nothing" : " profiles wait to be folded into roll-ups");
    cli_count(s->tombstones, a);
    hearth_buf_printf(out, "deletions   %s%s\n", s->tombstones == 0 ? "" : a,
                      s->tombstones == 0 ? "all done" : " hidden, not removed yet");
    if (s->oldest_profile_ms == 0) {
        hearth_buf_cstr(out, "oldest      there are no profiles\n");
    } else {
        cli_date(s->oldest_profile_ms, a);
        double age = (double)cli->now_ns - (double)s->oldest_profile_ms * 1e6;
        cli_value(age < 0 ? 0 : age, HEARTH_STR("nanoseconds"), b);
        hearth_buf_printf(out, "oldest      %s, %s ago\n", a, b);
    }
    print_tables(s, out);
}

enum cli_exit cli_admin_status(struct cli *cli)
{
    Hearth__V1__StatusRequest request;
    hearth__v1__status_request__init(&request);
    Hearth__V1__StatusResponse *answer = NULL;
    enum hearth_status status =
        cli_call(cli, ADMIN "Status", &request, &hearth__v1__status_response__descriptor, &answer);
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    struct hearth_buf text;
    hearth_buf_init(&text, 0);
    print_builder_state(cli, answer, &text);
    return cli_print_answer(cli, &answer->base, &text);
}

/* ---- doctor ---- */

struct verdict {
    const char *name, *color;
};

static struct verdict verdict_of(Hearth__V1__Verdict verdict)
{
    switch (verdict) {
    case HEARTH__V1__VERDICT__VERDICT_OK:
        return (struct verdict){"ok", "\033[32m"};
    case HEARTH__V1__VERDICT__VERDICT_ADVICE:
        return (struct verdict){"advice", "\033[33m"};
    default:
        return (struct verdict){"wrong", "\033[31m"};
    }
}

static void print_checks(const struct cli *cli, const Hearth__V1__DoctorResponse *answer,
                         struct hearth_buf *out)
{
    size_t width = 0, n_ok = 0, n_advice = 0;

    for (size_t i = 0; i < answer->n_checks; i++) {
        size_t n = strlen(answer->checks[i]->name);
        width = n > width ? n : width;
    }
    width = width > 40 ? 40 : width;
    for (size_t i = 0; i < answer->n_checks; i++) {
        const Hearth__V1__Check *check = answer->checks[i];
        struct verdict v = verdict_of(check->verdict);
        n_ok += check->verdict == HEARTH__V1__VERDICT__VERDICT_OK ? 1 : 0;
        n_advice += check->verdict == HEARTH__V1__VERDICT__VERDICT_ADVICE ? 1 : 0;
        hearth_buf_printf(out, "%s%-6s%s  ", cli->color ? v.color : "", v.name,
                          cli->color ? "\033[0m" : "");
        cli_fit(hearth_str_c(check->name), (int)width, true, out);
        hearth_buf_cstr(out, "  ");
        cli_fit(hearth_str_c(check->found), INT_MAX, false, out);
        hearth_buf_byte(out, '\n');
        if (check->advice[0] != '\0') {
            hearth_buf_cstr(out, "        ");
            cli_fit(hearth_str_c(check->advice), INT_MAX, false, out);
            hearth_buf_byte(out, '\n');
        }
    }
    hearth_buf_printf(out, "%zu checks: %zu ok, %zu advice, %zu wrong\n", answer->n_checks, n_ok,
                      n_advice, answer->n_checks - n_ok - n_advice);
}

enum cli_exit cli_admin_doctor(struct cli *cli)
{
    Hearth__V1__DoctorRequest request;

    hearth__v1__doctor_request__init(&request);
    Hearth__V1__DoctorResponse *answer = NULL;
    enum hearth_status status =
        cli_call(cli, ADMIN "Doctor", &request, &hearth__v1__doctor_response__descriptor, &answer);
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    bool wrong = false;
    for (size_t i = 0; i < answer->n_checks; i++) {
        Hearth__V1__Verdict verdict = answer->checks[i]->verdict;
        wrong = wrong || (verdict != HEARTH__V1__VERDICT__VERDICT_OK &&
                          verdict != HEARTH__V1__VERDICT__VERDICT_ADVICE);
    }
    struct cli_listing list;
    cli_list_begin(cli, &list);
    list.is_drawn = true;
    print_checks(cli, answer, &list.foot);
    for (size_t i = 0; i < answer->n_checks; i++) {
        const Hearth__V1__Check *check = answer->checks[i];
        cli_list_text(&list, verdict_of(check->verdict).name);
        cli_list_text(&list, check->name);
        cli_list_text(&list, check->found);
        cli_list_text(&list, check->advice);
    }
    enum cli_exit code = cli_list_end(&list, &answer->base);

    return code == CLI_OK && wrong ? CLI_FAILED : code;
}

/* ---- rebuild ---- */

enum cli_exit cli_admin_rebuild(struct cli *cli)
{
    if (cli->all == (cli->n_args > 0)) {
        return cli_usage("admin rebuild requires a service name or --all");
    }
    if (cli->since == NULL && cli->from == NULL) {
        return cli_usage("admin rebuild requires a start time: --since 2d or --from T");
    }
    enum hearth_status status = cli_resolve_range(cli);
    Hearth__V1__RebuildRequest request;
    hearth__v1__rebuild_request__init(&request);
    Hearth__V1__RebuildResponse *answer = NULL;
    request.service_name = cli_field(cli, cli->all ? "" : cli->args[0]);
    request.all_services = cli->all;
    request.from_ms = cli->from_ms;
    if (status == HEARTH_OK) {
        status = cli_call(cli, ADMIN "Rebuild", &request, &hearth__v1__rebuild_response__descriptor,
                          &answer);
    }
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    hearth_buf_printf(&out,
                      "roll-ups of %s are built again; `hearth admin status` says how far "
                      "it is\n",
                      cli->all ? "all services" : cli->args[0]);

    return cli_print(&out);
}

/* ---- retention ---- */

static const struct {
    const char *shorthand, *name, *text;
} g_tiers[] = {
    {"raw", "retain-raw", "profiles"},
    {"10m", "retain-10m", "roll-ups of 10 minutes"},
    {"1h", "retain-1h", "roll-ups of an hour, totals over time"},
    {"1d", "retain-1d", "roll-ups of a day"},
};

static enum cli_exit print_retention(struct cli *cli, const Hearth__V1__Retention *r)
{
    const int64_t values[] = {r->profiles_ms, r->roll_10m_ms, r->roll_1h_ms, r->roll_1d_ms};
    struct cli_listing list;
    cli_list_begin(cli, &list);
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_tiers); i++) {
        cli_list_text(&list, g_tiers[i].shorthand);
        if (values[i] == 0) {
            cli_list_absent(&list);
        } else {
            cli_list_number(&list, values[i] * HEARTH_NS_PER_MS);
        }
        cli_list_text(&list, g_tiers[i].text);
    }

    return cli_list_end(&list, &r->base);
}

static enum hearth_status read_setting(struct cli *cli, bool is_reset,
                                       Hearth__V1__SetRetentionRequest *request)
{
    const char *name = cli->args[0];

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_tiers); i++) {
        if (strcmp(name, g_tiers[i].shorthand) == 0 || strcmp(name, g_tiers[i].name) == 0) {
            request->name = cli_field(cli, g_tiers[i].name);
        }
    }
    if (request->name[0] == '\0') {
        return HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT,
                           "unknown tier \"%.60s\"; tiers are raw, 10m, 1h, 1d", name);
    }
    if (is_reset) {
        request->value_case = HEARTH__V1__SET_RETENTION_REQUEST__VALUE_RESET;
        request->reset = true;
        return HEARTH_OK;
    }
    int64_t ns = 0;
    const char *value = cli->args[1];
    if (strcmp(value, "forever") != 0 && strcmp(value, "0") != 0) {
        HEARTH_TRY(hearth_duration_parse(hearth_str_c(value), &ns, &cli->err));
        if (ns < HEARTH_NS_PER_MS) {
            return HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT,
                               "retention \"%.60s\" is too short", value);
        }
    }
    request->value_case = HEARTH__V1__SET_RETENTION_REQUEST__VALUE_DURATION_MS;
    request->duration_ms = ns / HEARTH_NS_PER_MS;

    return HEARTH_OK;
}

static enum cli_exit change_retention(struct cli *cli, bool is_reset)
{
    Hearth__V1__SetRetentionRequest request;
    hearth__v1__set_retention_request__init(&request);
    Hearth__V1__Retention *answer = NULL;
    enum hearth_status status = read_setting(cli, is_reset, &request);
    if (status == HEARTH_OK) {
        status = cli_call(cli, ADMIN "SetRetention", &request, &hearth__v1__retention__descriptor,
                          &answer);
    }
    return status == HEARTH_OK ? print_retention(cli, answer) : cli_fail(cli, status);
}

enum cli_exit cli_retention_set(struct cli *cli)
{
    return change_retention(cli, false);
}

enum cli_exit cli_retention_reset(struct cli *cli)
{
    return change_retention(cli, true);
}

enum cli_exit cli_retention_show(struct cli *cli)
{
    Hearth__V1__GetRetentionRequest request;
    hearth__v1__get_retention_request__init(&request);
    Hearth__V1__Retention *answer = NULL;
    enum hearth_status status =
        cli_call(cli, ADMIN "GetRetention", &request, &hearth__v1__retention__descriptor, &answer);

    return status == HEARTH_OK ? print_retention(cli, answer) : cli_fail(cli, status);
}
