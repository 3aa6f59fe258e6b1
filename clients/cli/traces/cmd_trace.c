/*
 * cmd_trace.c -- hearth trace: which profiles there are of a trace or span.
 *
 * Ids do not say what they are of: each is looked up as a trace, and as a span unless samples carry the trace.
 */
#include "cmd_trace.h"

#include "hearth/base/clock.h"
#include "hearth/selector/timeexpr.h"

#include "ask.h"
#include "cli_call.h"
#include "cli_messages.h"
#include "cmd_explain.h"
#include "filters.h"
#include "text.h"

#include <stdio.h>

/* ---- the request ---- */

/* NAME=VALUE; NAME alone has the value "" where that may be. */
static enum hearth_status split_pair(struct cli *cli, const char *text, const char *flag,
                                     bool may_be_alone, char **ret_name, char **ret_value)
{
    struct hearth_str all = hearth_str_c(text);
    size_t equals = hearth_str_find(all, '=', 0);
    if (equals == 0 || (equals == all.n && !may_be_alone)) {
        return HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT, "%s \"%s\" is not NAME=VALUE", flag,
                           text);
    }
    *ret_name = hearth_arena_strndup(&cli->arena, text, equals);
    *ret_value = cli_field(cli, equals < all.n ? text + equals + 1 : "");
    return HEARTH_OK;
}

static enum hearth_status read_tags(struct cli *cli, size_t *ret_n, Hearth__V1__SpanTag ***ret)
{
    size_t n = cli->trace.tags.n;
    Hearth__V1__SpanTag *tags = hearth_arena_array(&cli->arena, n, sizeof *tags);
    *ret = hearth_arena_array(&cli->arena, n, sizeof **ret);
    if (tags == NULL || *ret == NULL) {
        return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
    }
    for (size_t i = 0; i < n; i++) {
        hearth__v1__span_tag__init(&tags[i]);
        HEARTH_TRY(
            split_pair(cli, cli->trace.tags.v[i], "--tag", false, &tags[i].key, &tags[i].value));
        (*ret)[i] = &tags[i];
    }
    *ret_n = n;
    return HEARTH_OK;
}

static enum hearth_status read_window(struct cli *cli, Hearth__V1__WindowOptions *window)
{
    size_t n = cli->trace.maps.n;
    Hearth__V1__TagMapping *maps = hearth_arena_array(&cli->arena, n, sizeof *maps);

    window->tags = hearth_arena_array(&cli->arena, n, sizeof *window->tags);
    if (maps == NULL || window->tags == NULL) {
        return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
    }
    for (size_t i = 0; i < n; i++) {
        hearth__v1__tag_mapping__init(&maps[i]);
        HEARTH_TRY(
            split_pair(cli, cli->trace.maps.v[i], "--map", true, &maps[i].tag, &maps[i].label));
        window->tags[i] = &maps[i];
    }
    window->n_tags = n;
    window->query = cli_field(cli, cli->trace.query == NULL ? "" : cli->trace.query);
    if (cli->trace.pad != NULL) {
        int64_t ns = 0;
        bool is_none = strcmp(cli->trace.pad, "0") == 0 || strcmp(cli->trace.pad, "0s") == 0;
        if (!is_none) {
            HEARTH_TRY(hearth_duration_parse(hearth_str_c(cli->trace.pad), &ns, &cli->err));
        }
        window->pad_presence_case = HEARTH__V1__WINDOW_OPTIONS__PAD_PRESENCE_PAD_MS;
        window->pad_ms = ns / HEARTH_NS_PER_MS;
    }

    return HEARTH_OK;
}

/* --start with --end or --duration; both 0 without. */
static enum hearth_status read_span_times(struct cli *cli, int64_t *ret_start, int64_t *ret_end)
{
    const char *start = cli->agent.start, *end = cli->trace.end, *length = cli->agent.duration;

    *ret_start = *ret_end = 0;
    if (start == NULL && end == NULL && length == NULL) {
        return HEARTH_OK;
    }
    if (start == NULL || (end == NULL) == (length == NULL)) {
        return HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT,
                           "time of the span required: --start T and --end T, or --start T "
                           "and --duration 250ms");
    }
    HEARTH_TRY(cli_parse_time(cli, start, ret_start));
    if (end != NULL) {
        HEARTH_TRY(cli_parse_time(cli, end, ret_end));
    } else {
        int64_t ns;
        HEARTH_TRY(hearth_duration_parse(hearth_str_c(length), &ns, &cli->err));
        *ret_end = *ret_start > INT64_MAX - ns ? INT64_MAX : *ret_start + ns;
    }

    return *ret_end < *ret_start
               ? HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT, "--start is after --end")
               : HEARTH_OK;
}

/* What is the same for each id. */
struct lookup_request {
    Hearth__V1__LookupOptions options;
    Hearth__V1__WindowOptions window;
    char *type;
    char *service;
    Hearth__V1__SpanTag **tags;
    size_t n_tags;
    int64_t start_ns, end_ns;
};

static enum hearth_status read_lookup_request(struct cli *cli, struct lookup_request *q)
{
    hearth__v1__lookup_options__init(&q->options);
    hearth__v1__window_options__init(&q->window);
    HEARTH_TRY(read_tags(cli, &q->n_tags, &q->tags));
    HEARTH_TRY(read_window(cli, &q->window));
    HEARTH_TRY(read_span_times(cli, &q->start_ns, &q->end_ns));
    q->service = cli_field(cli, cli->agent.service == NULL ? "" : cli->agent.service);
    q->options.window = &q->window;
    q->options.exact_only = cli->trace.exact;

    /* The text counts the profiles that have no line of their own. --top limits functions. */
    bool is_json = cli->output == CLI_JSON;
    q->options.max_profiles = cli_trace_wants_profile(cli) ? 1
                              : cli->has_limit             ? cli->limit
                                                           : (is_json ? 0 : 20);
    if (cli->type != NULL) {
        q->type = cli_field(cli, cli->type);
        q->options.profile_types = &q->type;
        q->options.n_profile_types = 1;
    }

    return cli->arena.refused ? HEARTH_FAIL_ARENA(&cli->err, &cli->arena) : HEARTH_OK;
}

/* ---- looking up ---- */

/* request: about n traces or spans. */
static enum hearth_status call_lookup(struct cli *cli, const char *method, const void *request,
                                      size_t n, Hearth__V1__LookupResponse **ret)
{
    HEARTH_TRY(cli_call(cli, method, request, &hearth__v1__lookup_response__descriptor, ret));

    return (*ret)->plan != NULL || (*ret)->n_results == n
               ? HEARTH_OK
               : HEARTH_FAIL(&cli->err, HEARTH_INTERNAL, "unexpected response message");
}

static enum hearth_status as_traces(struct cli *cli, struct lookup_request *q,
                                    const char *const *ids, size_t n,
                                    Hearth__V1__LookupResponse **ret)
{
    Hearth__V1__LookupTraceRequest request;

    hearth__v1__lookup_trace_request__init(&request);
    Hearth__V1__TraceRef *refs = hearth_arena_array(&cli->arena, n, sizeof *refs);
    request.traces = hearth_arena_array(&cli->arena, n, sizeof *request.traces);
    if (refs == NULL || request.traces == NULL) {
        return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
    }
    for (size_t i = 0; i < n; i++) {
        hearth__v1__trace_ref__init(&refs[i]);
        refs[i].trace_id = cli_field(cli, ids[i]);
        refs[i].service = q->service;
        refs[i].tags = q->tags;
        refs[i].n_tags = q->n_tags;
        refs[i].start_ns = q->start_ns;
        refs[i].end_ns = q->end_ns;
        request.traces[i] = &refs[i];
    }
    request.n_traces = n;
    request.options = &q->options;

    return call_lookup(cli, CLI_TRACES "LookupTrace", &request, n, ret);
}

static enum hearth_status as_spans(struct cli *cli, struct lookup_request *q,
                                   const char *const *ids, size_t n,
                                   Hearth__V1__LookupResponse **ret)
{
    Hearth__V1__LookupSpanRequest request;

    hearth__v1__lookup_span_request__init(&request);
    Hearth__V1__SpanRef *refs = hearth_arena_array(&cli->arena, n, sizeof *refs);
    request.spans = hearth_arena_array(&cli->arena, n, sizeof *request.spans);
    if (refs == NULL || request.spans == NULL) {
        return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
    }
    for (size_t i = 0; i < n; i++) {
        hearth__v1__span_ref__init(&refs[i]);
        refs[i].span_id = cli_field(cli, ids[i]);
        refs[i].service = q->service;
        refs[i].tags = q->tags;
        refs[i].n_tags = q->n_tags;
        refs[i].start_ns = q->start_ns;
        refs[i].end_ns = q->end_ns;
        request.spans[i] = &refs[i];
    }
    request.n_spans = n;
    request.options = &q->options;

    return call_lookup(cli, CLI_TRACES "LookupSpan", &request, n, ret);
}

static bool is_exact_lookup(const Hearth__V1__Lookup *lookup)
{
    return lookup != NULL && lookup->certainty == HEARTH__V1__CERTAINTY__CERTAINTY_EXACT;
}

static bool is_found(const Hearth__V1__Lookup *lookup)
{
    return lookup != NULL && lookup->certainty != HEARTH__V1__CERTAINTY__CERTAINTY_UNSPECIFIED;
}

/* Those that samples do not carry as traces, as spans; what is found by time alone counts as of the trace. */
static enum hearth_status look_up_rest(struct cli *cli, struct lookup_request *q,
                                       struct cli_found *found, size_t n)
{
    const char *ids[CLI_MAX_LABELS];
    size_t at[CLI_MAX_LABELS], n_rest = 0;
    Hearth__V1__LookupResponse *spans;

    for (size_t i = 0; i < n; i++) {
        if (!is_exact_lookup(found[i].lookup)) {
            ids[n_rest] = cli->args[i];
            at[n_rest++] = i;
        }
    }
    if (n_rest == 0) {
        return HEARTH_OK;
    }
    enum hearth_status status = as_spans(cli, q, ids, n_rest, &spans);
    for (size_t k = 0; status == HEARTH_OK && k < n_rest; k++) {
        struct cli_found *one = &found[at[k]];
        Hearth__V1__Lookup *span = spans->results[k];
        if (is_exact_lookup(span) || (is_found(span) && !is_found(one->lookup)) ||
            one->lookup == NULL) {
            *one = (struct cli_found){CLI_OF_SPAN, span};
        }
    }

    return status;
}

/* As tracers write ids of spans: 16 hexadecimal digits, or a SkyWalking segment with the number of its span. */
static bool is_span_text(const char *id)
{
    return strchr(id, '/') != NULL ||
           (strlen(id) == 16 && strspn(id, "0123456789abcdefABCDEF") == 16);
}

/* NOT_FOUND, with what the server says of that which the first id is most likely, when there is nothing of any. */
static enum hearth_status look_up_both(struct cli *cli, struct lookup_request *q,
                                       struct cli_found *found, size_t n)
{
    Hearth__V1__LookupResponse *traces = NULL;
    enum hearth_status status = as_traces(cli, q, cli->args, n, &traces);
    struct hearth_err of_traces = cli->err;

    for (size_t i = 0; i < n; i++) {
        found[i] = (struct cli_found){CLI_OF_TRACE, traces == NULL ? NULL : traces->results[i]};
    }
    if (status != HEARTH_OK && status != HEARTH_NOT_FOUND) {
        return status;
    }
    enum hearth_status second = look_up_rest(cli, q, found, n);
    if (second == HEARTH_NOT_FOUND && status == HEARTH_OK) {
        return HEARTH_OK;
    }
    if (second == HEARTH_NOT_FOUND) {
        cli->err = is_span_text(cli->args[0]) ? cli->err : of_traces;
        hearth_err_prefix(&cli->err, "tried as a trace and as a span");
    }
    if (second != HEARTH_OK || status == HEARTH_OK) {
        return second;
    }
    for (size_t i = 0; i < n; i++) {
        if (found[i].lookup == NULL) {
            return HEARTH_FAIL(&cli->err, HEARTH_INTERNAL, "unexpected response message");
        }
    }

    return HEARTH_OK;
}

/* Whether an id may be of a trace or of a span. */
static bool is_of_either(const struct cli *cli)
{
    return cli->n_args > 0 && !cli->trace.span && !cli->trace.root && !cli->trace.trace;
}

/* Looks up what the options say the ids are of; without ids, a window. */
static enum hearth_status look_up_kind(struct cli *cli, struct lookup_request *q, bool of_traces,
                                       Hearth__V1__LookupResponse **ret)
{
    if (cli->n_args == 0) {
        return as_spans(cli, q, (const char *const[]){""}, 1, ret);
    }

    return of_traces ? as_traces(cli, q, cli->args, cli->n_args, ret)
                     : as_spans(cli, q, cli->args, cli->n_args, ret);
}

static enum hearth_status look_up(struct cli *cli, struct cli_found *found, size_t n)
{
    struct lookup_request q = {0};
    Hearth__V1__LookupResponse *answer;

    HEARTH_TRY(read_lookup_request(cli, &q));
    if (is_of_either(cli)) {
        return look_up_both(cli, &q, found, n);
    }
    enum cli_id_of of = cli->n_args == 0   ? CLI_OF_WINDOW
                        : cli->trace.trace ? CLI_OF_TRACE
                        : cli->trace.root  ? CLI_OF_ROOT
                                           : CLI_OF_SPAN;
    HEARTH_TRY(look_up_kind(cli, &q, cli->trace.trace, &answer));
    for (size_t i = 0; i < n; i++) {
        found[i] = (struct cli_found){of, answer->results[i]};
    }

    return HEARTH_OK;
}

/* The plan of a look-up. Ids of which no profile is known as traces are planned as spans. */
static enum hearth_status plan_lookup(struct cli *cli, Hearth__V1__LookupResponse **ret)
{
    struct lookup_request q = {0};

    HEARTH_TRY(read_lookup_request(cli, &q));
    q.options.explain = true;
    HEARTH_TRY(look_up_kind(cli, &q, cli->trace.trace || is_of_either(cli), ret));
    bool is_none = (*ret)->plan != NULL && (*ret)->plan->n_legs == 0;

    return is_none && is_of_either(cli) ? look_up_kind(cli, &q, false, ret) : HEARTH_OK;
}

/* ---- the command ---- */

static const char *find_mistake(const struct cli *cli)
{
    bool profile = cli_trace_wants_profile(cli);
    const struct cli_trace *t = &cli->trace;
    int kinds = t->trace + t->span + t->root;

    if (kinds > 1) {
        return "an ID is one of --trace, --span and --root";
    }
    if (t->flame && t->top) {
        return "--flame or --top";
    }
    if (cli->n_args == 0 &&
        (cli->agent.start == NULL ||
         (cli->agent.service == NULL && t->tags.n == 0 && t->query == NULL) || kinds > 0)) {
        return "trace needs the ID of a trace or span, or --service, --start and --end";
    }
    if (!profile && (t->children || t->each)) {
        return "--children and --each are for --flame, --top and outputs of stack traces, such as "
               "-o pprof=FILE";
    }
    if (t->each && cli_trace_wants_stacks(cli)) {
        return "--each makes several profiles, which one output cannot hold; ask for one ID at a "
               "time";
    }
    if (!profile && cli_has_stack_filter(cli)) {
        return "--function, --without, --call-site, --class and their like are for --flame, --top "
               "and outputs of stack traces, such as -o pprof=FILE";
    }
    if (!profile && (cli->from != NULL || cli->to != NULL || cli->since != NULL)) {
        return "trace looks everywhere; --start and --end say when the span ran";
    }
    if (t->children && (t->trace || t->root)) {
        return "--children is for spans; traces and local roots have them all";
    }

    return NULL;
}

static enum cli_exit print_json(struct cli *cli, const struct cli_found *found, size_t n)
{
    Hearth__V1__LookupResponse answer;
    Hearth__V1__Lookup *results[CLI_MAX_LABELS];
    struct hearth_buf none;
    hearth__v1__lookup_response__init(&answer);
    hearth_buf_init(&none, 0);
    for (size_t i = 0; i < n; i++) {
        results[i] = found[i].lookup;
    }
    answer.results = results;
    answer.n_results = n;
    return cli_print_answer(cli, &answer.base, &none);
}

enum cli_exit cli_trace(struct cli *cli)
{
    struct cli_found found[CLI_MAX_LABELS] = {0};
    const char *mistake = find_mistake(cli);

    if (mistake != NULL) {
        return cli_usage(mistake);
    }
    size_t n = cli->n_args == 0 ? 1 : cli->n_args;
    enum hearth_status status = look_up(cli, found, n);
    if (status != HEARTH_OK) {
        enum cli_exit code = cli_trace_fail(cli, status);
        if (status == HEARTH_NOT_FOUND && cli->agent.start == NULL) {
            cli_say("hint",
                    "with --service NAME --start T --end T, profiles are also searched by time");
        }
        return code;
    }
    if (cli_trace_wants_profile(cli)) {
        return cli_trace_profile(cli, found, n);
    }
    if (cli->output == CLI_JSON) {
        return print_json(cli, found, n);
    }
    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    for (size_t i = 0; status == HEARTH_OK && i < n; i++) {
        hearth_buf_cstr(&out, i == 0 ? "" : "\n");
        status = cli_trace_print(cli, &found[i], &out);
    }
    if (status != HEARTH_OK) {
        hearth_buf_release(&out);
        return cli_fail(cli, status);
    }

    return cli_print(&out);
}

enum cli_exit cli_explain_trace(struct cli *cli)
{
    Hearth__V1__LookupResponse *answer;
    const char *mistake = find_mistake(cli);

    if (mistake != NULL) {
        return cli_usage(mistake);
    }
    if (cli_trace_wants_profile(cli)) {
        return cli_trace(cli); /* it needs the look-up, and plans the merge */
    }
    enum hearth_status status = plan_lookup(cli, &answer);
    if (status == HEARTH_OK && answer->plan != NULL && answer->plan->n_legs == 0) {
        status =
            HEARTH_FAIL(&cli->err, HEARTH_NOT_FOUND,
                        "nothing would be read: no profile is known by these ids, nor by time");
    }

    return status == HEARTH_OK
               ? cli_print_plan(cli, cli->type == NULL ? "" : cli->type, answer->plan)
               : cli_trace_fail(cli, status);
}
