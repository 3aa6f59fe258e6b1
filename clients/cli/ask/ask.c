/* ask.c -- ranges, selectors and calls that several commands need. */
#include "ask.h"

#include "hearth/base/clock.h"
#include "hearth/format/pprof.h"
#include "hearth/model/labels.h"
#include "hearth/selector/selector.h"
#include "hearth/selector/timeexpr.h"

#include "cli_call.h"
#include "filters.h"
#include "text.h"
#include "why.h"

#include <assert.h>
#include <stdio.h>
#include <time.h>

#define PGO_LOCATIONS 5 /* the inliner looks at few callers; profilecli has the same default */

/* Whether a text is a date, or a date and a time, without a zone. */
static bool has_no_zone(const char *text)
{
    size_t digits = strspn(text, "0123456789");

    if (digits == 8) { /* YYYYMMDD */
        return text[digits] == '\0';
    }
    if (digits != 4 || text[digits] != '-') {
        return false;
    }
    const char *time_of_day = strpbrk(text, "Tt ");

    return time_of_day == NULL || strpbrk(time_of_day, "Zz+-") == NULL;
}

enum hearth_status cli_parse_time(struct cli *cli, const char *text, int64_t *ret_ns)
{
    int64_t ns;

    HEARTH_TRY(hearth_time_parse(hearth_str_c(text), cli->now_ns, &ns, &cli->err));
    if (!has_no_zone(text)) {
        *ret_ns = ns;
        return HEARTH_OK;
    }

    /* The parser read it as UTC: the same date and time of day in the local zone. */
    int64_t rest = ns % HEARTH_NS_PER_SEC;
    rest += rest < 0 ? HEARTH_NS_PER_SEC : 0;
    time_t seconds = (time_t)((ns - rest) / HEARTH_NS_PER_SEC);
    struct tm tm;
    if (gmtime_r(&seconds, &tm) == NULL) {
        return HEARTH_FAIL(&cli->err, HEARTH_OUT_OF_RANGE, "%.60s is out of range", text);
    }
    tm.tm_isdst = -1;
    *ret_ns = (int64_t)mktime(&tm) * HEARTH_NS_PER_SEC + rest;

    return HEARTH_OK;
}

enum hearth_status cli_resolve_range(struct cli *cli)
{
    int64_t to = cli->now_ns, from;

    if (cli->to != NULL) {
        HEARTH_TRY(cli_parse_time(cli, cli->to, &to));
    }
    if (cli->from != NULL) {
        HEARTH_TRY(cli_parse_time(cli, cli->from, &from));
    } else {
        int64_t since;
        HEARTH_TRY(hearth_duration_parse(hearth_str_c(cli->since == NULL ? "1h" : cli->since),
                                         &since, &cli->err));
        from = to - since;
    }
    if (from > to) {
        return HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT, "--from is after --to");
    }
    cli->from_ms = from / HEARTH_NS_PER_MS;
    cli->to_ms = to / HEARTH_NS_PER_MS + (to % HEARTH_NS_PER_MS > 0);
    if (cli->from != NULL || cli->to != NULL || cli->since != NULL) {
        char a[32], b[32];
        cli_zoned(from, a);
        cli_zoned(to, b);
        (void)fprintf(stderr, "range: %s to %s\n", a, b);
    }

    return HEARTH_OK;
}

enum hearth_status cli_selector(struct cli *cli, size_t arg, const char **ret_selector)
{
    const char *text = arg < cli->n_args ? cli->args[arg] : "{}";
    struct hearth_selector selector;

    hearth_selector_init(&selector);
    size_t offset = 0;
    enum hearth_status status =
        hearth_selector_parse(&selector, hearth_str_c(text), &cli->arena, &offset, &cli->err);
    hearth_selector_release(&selector);
    if (status != HEARTH_OK) {
        struct hearth_buf caret;
        hearth_buf_init(&caret, 0);
        hearth_selector_caret(hearth_str_c(text), offset, &caret);
        (void)fprintf(stderr, "%.*s", (int)caret.n, caret.n ? caret.p : "");
        hearth_buf_release(&caret);
        if (strchr(text, '=') != NULL && strchr(text, '"') == NULL) {
            (void)fputs("note: the shell may have taken the quotes; put the selector in single "
                        "quotes\n",
                        stderr);
        }
        return status;
    }
    *ret_selector = cli->selector = text;

    return HEARTH_OK;
}

/* Whether a text is a name without braces, as people write a service. */
static bool is_bare_word(const char *text)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:-";
    return text[0] != '\0' && text[strspn(text, letters)] == '\0';
}

enum hearth_status cli_query_selector(struct cli *cli, size_t arg, const char **ret_selector)
{
    if (arg < cli->n_args && is_bare_word(cli->args[arg])) {
        HEARTH_TRY(cli_complete_selector(cli, cli->args[arg], &cli->args[arg]));
    }
    return cli_selector(cli, arg, ret_selector);
}

/* Processor time, then what `go tool pprof` shows first of a heap and of waiting. */
static int type_rank(const char *type)
{
    /* Some clients count samples under the name cpu. */
    static const char *const worst_first[] = {
        "block:delay:", "mutex:delay:",     "memory:inuse_space:",
        "wall:cpu:",    "process_cpu:cpu:", "process_cpu:cpu:nanoseconds:"};
    int rank = 0;

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(worst_first); i++) {
        rank =
            hearth_str_starts(hearth_str_c(type), hearth_str_c(worst_first[i])) ? (int)i + 1 : rank;
    }

    return rank;
}

const char *cli_prefer_type(const char *first, const char *second)
{
    return type_rank(second) > type_rank(first) ? second : first;
}

enum hearth_status cli_profile_type(struct cli *cli, const char *selector, const char **ret_type)
{
    if (cli->type != NULL) {
        HEARTH_TRY(cli_complete_type(cli, selector));
        *ret_type = cli->type;
        return HEARTH_OK;
    }
    char **types;
    size_t n;
    HEARTH_TRY(cli_ask_values(cli, HEARTH_LABEL_PROFILE_TYPE, selector, cli->from_ms, cli->to_ms,
                              &types, &n));
    if (n == 0) {
        return cli_fail_no_data(cli);
    }
    const char *best = types[0];
    for (size_t i = 1; i < n; i++) {
        best = cli_prefer_type(best, types[i]);
    }
    if (n > 1) {
        (void)fprintf(stderr, "type: %s (of %zu; choose with --type)\n", best, n);
    }
    *ret_type = best;

    return HEARTH_OK;
}

enum hearth_status cli_ask_profile(struct cli *cli, Hearth__V1__Selection *selection,
                                   struct hearth_str *ret_wire, struct hearth_profile *ret_profile)
{
    Hearth__V1__MergeRequest request;
    Hearth__V1__MergeResponse *answer;

    hearth__v1__merge_request__init(&request);
    request.selection = selection;
    request.format = QUERIER__V1__PROFILE_FORMAT__PROFILE_FORMAT_PPROF;
    request.max_nodes = cli->max_nodes;
    Types__V1__GoPGO pgo = TYPES__V1__GO_PGO__INIT;
    if (cli->is_for_pgo) {
        pgo.keep_locations =
            cli->keep_locations == 0 ? PGO_LOCATIONS : (uint32_t)cli->keep_locations;
        pgo.aggregate_callees = !cli->all_callees;
        request.go_pgo = &pgo;
    }
    HEARTH_TRY(cli_call(cli, "hearth.v1.QueryService/Merge", &request,
                        &hearth__v1__merge_response__descriptor, &answer));
    cli_say_aggregation(selection, answer->aggregation);
    *ret_profile = (struct hearth_profile){0};
    const Google__V1__Profile *profile = answer->pprof == NULL ? NULL : answer->pprof->profile;
    if (profile == NULL || profile->n_sample == 0) {
        *ret_wire = (struct hearth_str){0};
        return HEARTH_OK;
    }
    struct hearth_buf wire;
    hearth_buf_init(&wire, 0);
    hearth_pb_pack(&profile->base, &wire);
    *ret_wire = hearth_arena_str(&cli->arena, hearth_buf_view(&wire));
    hearth_buf_release(&wire);
    if (ret_wire->p == NULL) {
        return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
    }
    struct hearth_pprof_limits limits = {0};
    struct hearth_pprof_notes notes;

    return hearth_pprof_decode(*ret_wire, &limits, &cli->arena, ret_profile, &notes, &cli->err);
}

enum hearth_status cli_timeline_step(struct cli *cli, double *ret_seconds)
{
    assert(cli->from_ms <= cli->to_ms); /* cli_resolve_range refuses others */

    if (cli->step == NULL) {
        double step = (double)(cli->to_ms - cli->from_ms) / 1000.0 / 60.0;
        *ret_seconds = step < 1 ? 1 : (double)(int64_t)step;
        return HEARTH_OK;
    }
    int64_t ns;
    HEARTH_TRY(hearth_duration_parse(hearth_str_c(cli->step), &ns, &cli->err));
    *ret_seconds = (double)ns / 1e9;
    return HEARTH_OK;
}

/* Whether a label of --label has the name of "K=V". */
static bool has_label(const struct cli *cli, const char *pair)
{
    size_t n = strcspn(pair, "=") + 1;
    for (size_t i = 0; i < cli->n_labels; i++) {
        if (strncmp(cli->labels[i], pair, n) == 0) {
            return true;
        }
    }
    return false;
}

bool cli_names_service(const struct cli *cli)
{
    for (size_t i = 0; i < cli->n_labels; i++) {
        if (strncmp(cli->labels[i], "service_name=", strlen("service_name=")) == 0) {
            return true;
        }
    }

    return false;
}

enum hearth_status cli_label_pairs(struct cli *cli, const char *const *more, size_t n_more,
                                   Types__V1__LabelPair ***ret, size_t *ret_n)
{
    size_t n = cli->n_labels + n_more, n_pairs = 0;
    Types__V1__LabelPair *pairs = hearth_arena_array(&cli->arena, n, sizeof pairs[0]);
    Types__V1__LabelPair **list = hearth_arena_array(&cli->arena, n, sizeof list[0]);

    for (size_t i = 0; pairs != NULL && list != NULL && i < n; i++) {
        bool is_own = i >= cli->n_labels;
        const char *text = is_own ? more[i - cli->n_labels] : cli->labels[i];
        if (text == NULL || (is_own && has_label(cli, text))) {
            continue;
        }
        size_t n_name = strcspn(text, "=");
        Types__V1__LabelPair *pair = list[n_pairs] = &pairs[n_pairs];
        types__v1__label_pair__init(pair);
        pair->name = hearth_arena_strndup(&cli->arena, text, n_name);
        pair->value = cli_field(cli, text + n_name + 1);
        n_pairs++;
    }
    if (cli->arena.refused) {
        return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
    }
    *ret = list;
    *ret_n = n_pairs;

    return HEARTH_OK;
}

static enum hearth_status read_aggregation(struct cli *cli, Hearth__V1__Aggregation *ret)
{
    if (cli->aggregation == NULL) {
        *ret = HEARTH__V1__AGGREGATION__AGGREGATION_UNSPECIFIED;
    } else if (strcmp(cli->aggregation, "sum") == 0) {
        *ret = HEARTH__V1__AGGREGATION__AGGREGATION_SUM;
    } else if (strcmp(cli->aggregation, "mean") == 0) {
        *ret = HEARTH__V1__AGGREGATION__AGGREGATION_MEAN;
    } else {
        return HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT, "--aggregation must be sum or mean");
    }
    return HEARTH_OK;
}

enum hearth_status cli_selection(struct cli *cli, size_t arg, Hearth__V1__Selection *ret)
{
    const char *selector, *type;
    Hearth__V1__StackFilter *stacks = hearth_arena_alloc(&cli->arena, sizeof *stacks);

    if (stacks == NULL) {
        return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
    }
    HEARTH_TRY(cli_query_selector(cli, arg, &selector));
    HEARTH_TRY(cli_resolve_range(cli));
    HEARTH_TRY(cli_profile_type(cli, selector, &type));
    hearth__v1__selection__init(ret);
    hearth__v1__stack_filter__init(stacks);
    HEARTH_TRY(read_aggregation(cli, &ret->aggregation));
    ret->profile_type = cli_field(cli, type);
    ret->label_selector = cli_field(cli, selector);
    ret->start = cli->from_ms;
    ret->end = cli->to_ms;
    ret->stacks = stacks;
    cli_stack_filter(cli, stacks);
    ret->n_profile_ids = cli->profile_ids.n;
    ret->profile_ids = cli_repeated(cli, &cli->profile_ids);
    ret->n_span_ids = cli->span_ids.n;
    ret->span_ids = cli_repeated(cli, &cli->span_ids);
    ret->n_trace_ids = cli->trace_ids.n;
    ret->trace_ids = cli_repeated(cli, &cli->trace_ids);

    return cli->arena.refused ? HEARTH_FAIL_ARENA(&cli->err, &cli->arena) : HEARTH_OK;
}
