/*
 * http_render.c -- GET /pyroscope/render and /render-diff: Pyroscope's plain HTTP for dashboards
 * and scripts.
 */
#include "hearth/engine/span_profiles.h"
#include "hearth/model/flame_text.h"
#include "hearth/selector/typed_query.h"

#include "handlers.h"
#include "http/http_call.h"
#include "query/flamebearer.h"
#include "query/svc_querier.h"
#include "rpc/front_internal.h"
#include "rpc/gauges.h"

#include <assert.h>
#include <math.h>

#define MAX_POINTS       1500 /* of a timeline, before its step is rounded */
#define MAX_IDS          100  /* of an argument */
#define MIN_STEP_MS      15000
#define TEXT_MIN_PERCENT 0.5
#define TEXT_NAME_WIDTH  200
#define NO_LABEL         "*" /* the group of series that lack the label */

/* ---- arguments ---- */

static int64_t read_time(struct hearth_rpc *rpc, const char *name, int64_t now_ns)
{
    return hearth_http_time(rpc, name, now_ns) / HEARTH_NS_PER_MS;
}

/* Reads max-nodes or maxNodes; a text that is not a number is ignored. */
static void read_max_nodes(struct hearth_rpc *rpc, struct hearth_merge_spec *spec)
{
    struct hearth_str text = hearth_http_arg(rpc, "max-nodes");
    text = text.p != NULL ? text : hearth_http_arg(rpc, "maxNodes");
    spec->has_max_nodes = text.p != NULL && hearth_str_to_i64(text, &spec->max_nodes);
}

static enum hearth_status read_go_stacks(struct hearth_rpc *rpc, enum hearth_go_stacks *ret)
{
    struct hearth_str text = hearth_http_arg(rpc, "go-stacks");

    if (text.p == NULL || text.n == 0) {
        *ret = HEARTH_GO_OF_TENANT;
    } else if (hearth_str_eq_c(text, "stored")) {
        *ret = HEARTH_GO_STORED;
    } else if (hearth_str_eq_c(text, "repaired")) {
        *ret = HEARTH_GO_REPAIRED;
    } else {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                           "go-stacks is stored or repaired, not \"" HEARTH_STR_FMT "\"",
                           HEARTH_STR_ARG(text));
    }

    return HEARTH_OK;
}

/* One selection: names of its three arguments. */
struct side_args {
    const char *query, *from, *until;
};

static enum hearth_status read_selection(struct hearth_rpc *rpc, const struct side_args *args,
                                         struct hearth_query *query, struct hearth_merge_spec *spec)
{
    struct hearth_str text = hearth_http_arg(rpc, args->query);
    struct hearth_typed_query typed;
    int64_t now_ns = hearth_clock_wall_ns();

    if (text.p == NULL || text.n == 0) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT, "%s is required", args->query);
    }

    /* The query needs a profile type. */
    enum hearth_status status = hearth_typed_query_parse(text, &rpc->arena, &typed, &rpc->err);
    if (status != HEARTH_OK) {
        hearth_err_prefix(&rpc->err, "%s", args->query);
        return status;
    }

    if (typed.profile_type.n == 0) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                           "%s must begin with a profile type: "
                           "process_cpu:cpu:nanoseconds:cpu:nanoseconds{...}",
                           args->query);
    }

    /* Read the options of the merge. */
    *spec = (struct hearth_merge_spec){
        .profile_type = typed.profile_type, .selector = typed.selector, .empty_names = true};
    read_max_nodes(rpc, spec);
    HEARTH_TRY(read_go_stacks(rpc, &spec->go_stacks));
    const char *type = hearth_rpc_text(rpc, typed.profile_type);
    if (type == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    spec->mean = hearth_rpc_gauge_mean(rpc, type);

    /* Read the range. */
    int64_t from_ms = read_time(rpc, args->from, now_ns);
    *query = hearth_rpc_query(rpc, from_ms, read_time(rpc, args->until, now_ns));

    return HEARTH_OK;
}

static enum hearth_status describe_type(struct hearth_rpc *rpc,
                                        const struct hearth_merge_spec *spec,
                                        struct hearth_flamebearer_about *ret)
{
    struct hearth_profile_type type;
    HEARTH_TRY(hearth_profile_type_parse(spec->profile_type, &type, &rpc->err));
    *ret = (struct hearth_flamebearer_about){
        .name = type.sample_type, .type = type.sample_type, .unit = type.sample_unit};
    return HEARTH_OK;
}

/* ---- timelines ---- */

/* Grafana's intervals in seconds: a step of at most `below` is rounded to `step`. */
static const struct {
    double below;
    int64_t step;
} g_ladder[] = {
    {17.5, 15},
    {25, 20},
    {45, 30},
    {90, 60},
    {210, 120},
    {450, 300},
    {750, 600},
    {1050, 900},
    {1500, 1200},
    {2700, 1800},
    {5400, 3600},
    {9000, 7200},
    {16200, 10800},
    {32400, 21600},
    {86400, 43200},
    {604800, 86400},
    {1814400, 604800},
    {3628800, 2592000},
    {INFINITY, 31536000},
};

static int64_t choose_step(int64_t start_ms, int64_t end_ms)
{
    double range_ms = (double)end_ms - (double)start_ms;
    double step = fmax(range_ms / MAX_POINTS, MIN_STEP_MS) / 1000;

    /* The last interval has no upper bound. */
    size_t i = 0;
    while (step > g_ladder[i].below) {
        i++;
    }

    assert(i < HEARTH_ARRAY_LEN(g_ladder));

    return g_ladder[i].step;
}

struct timelines {
    int64_t start_ms, end_ms;
    int64_t step; /* seconds */
    struct hearth_timeseries *series;
    size_t n_series;
    struct hearth_str group_by; /* empty: not grouped */
};

/* A mean is rounded: clients expect samples to be whole numbers. */
static int64_t round_sample(double value)
{
    return value >= 0x1p63 ? INT64_MAX : value <= -0x1p63 ? INT64_MIN : (int64_t)llround(value);
}

/*
 * Writes one sample for each step from start to end; steps without profiles are 0. The reported
 * start is rounded down to whole steps, as in Pyroscope: it lies within the step of the first
 * sample.
 */
static void write_timeline(struct hearth_json *json, const struct timelines *lines,
                           const struct hearth_timeseries *series)
{
    int64_t start_ms = lines->start_ms, step_ms = lines->step * 1000;
    int64_t start = start_ms / 1000;

    assert(lines->step > 0); /* otherwise there is no timeline */

    /* Write the start. */
    hearth_json_object(json);
    hearth_json_key_c(json, "startTime");
    hearth_json_i64(json, start - start % lines->step);
    hearth_json_key_c(json, "samples");
    hearth_json_array(json);

    /* Points and steps are both sorted by time. */
    size_t next = 0;
    for (int64_t at = start_ms; at <= lines->end_ms; at += step_ms) {
        int64_t sum = 0;
        for (; next < series->n_points && series->points[next].ts_ms <= at; next++) {
            sum += round_sample(series->points[next].value);
        }

        hearth_json_i64(json, sum);
    }

    hearth_json_array_end(json);

    /* Write the step. */
    hearth_json_key_c(json, "durationDelta");
    hearth_json_i64(json, lines->step);
    hearth_json_key_c(json, "watermarks");
    hearth_json_null(json);
    hearth_json_object_end(json);
}

/* Whether points are means, by the argument; without it, by the tenant's setting for gauges. */
static bool wants_average(const struct hearth_rpc *rpc, const struct hearth_merge_spec *spec)
{
    struct hearth_str aggregation = hearth_http_arg(rpc, "aggregation");
    return hearth_str_eq_c(aggregation, "avg") ||
           (spec->mean && !hearth_str_eq_c(aggregation, "sum"));
}

static enum hearth_status query_timelines(struct hearth_rpc *rpc, const struct hearth_query *query,
                                          const struct hearth_merge_spec *spec,
                                          struct timelines *lines)
{
    *lines = (struct timelines){
        .start_ms = query->start_ms,
        .end_ms = query->end_ms,
        .step = choose_step(query->start_ms, query->end_ms),
        .group_by = hearth_http_arg(rpc, "groupBy"),
    };

    /* The selection is that of the flame graph. */
    struct hearth_timeseries_spec over_time = {
        .profile_type = spec->profile_type,
        .selector = spec->selector,
        .group_by = &lines->group_by,
        .n_group_by = lines->group_by.n > 0,
        .step_seconds = (double)lines->step,
        .average = wants_average(rpc, spec),
    };
    struct hearth_query quiet = *query; /* the flame graph of the same range has added the notes */
    quiet.call.notes = NULL;

    return hearth_query_timeseries(&quiet, &over_time, &lines->series, &lines->n_series, &rpc->err);
}

/* ---- the text ---- */

/* Writes a single series; otherwise zeros. Diffs and spans have no timeline: null. */
static void write_timeline_value(struct hearth_json *json, const struct timelines *lines)
{
    static const struct hearth_timeseries empty;
    if (lines->step == 0) {
        hearth_json_null(json);
    } else {
        write_timeline(json, lines, lines->n_series == 1 ? &lines->series[0] : &empty);
    }
}

/* The answer on its way to JSON, in the request's arena. */
struct rendering {
    struct hearth_json json;
    struct hearth_flamebearer bearer;
    struct timelines lines; /* {0} for diffs and spans */
    bool has_graph;         /* the flame graph is written */
    size_t n_groups;        /* number of groups that are written */
};

static void write_timeline_member(struct hearth_json *json, const struct timelines *lines)
{
    hearth_json_key_c(json, "timeline");
    write_timeline_value(json, lines);
    hearth_json_key_c(json, "groups");
    if (lines->group_by.n > 0) {
        hearth_json_object(json);
    } else {
        hearth_json_null(json);
    }
}

static void write_group(struct hearth_json *json, const struct timelines *lines,
                        const struct hearth_timeseries *series)
{
    assert(lines->group_by.n > 0);

    struct hearth_str value = hearth_labels_get(&series->labels, lines->group_by);
    hearth_json_key(json, value.p != NULL ? value : HEARTH_STR(NO_LABEL));
    write_timeline(json, lines, series);
}

static void end_rendering(struct hearth_json *json, const struct timelines *lines)
{
    if (lines->group_by.n > 0) {
        hearth_json_object_end(json);
    }

    hearth_json_key_c(json, "heatmap");
    hearth_json_null(json);
    hearth_json_object_end(json);
}

/* Writes the next piece (struct hearth_pieces); false: the answer is complete. */
static bool render_more(void *context, size_t n_bytes, struct hearth_buf *out)
{
    struct rendering *r = context;
    size_t from = out->n, n = r->lines.group_by.n > 0 ? r->lines.n_series : 0;

    assert(r->n_groups <= n);
    r->json.out = out;

    /* First the flame graph, then the single timeline. */
    if (!r->has_graph) {
        if (hearth_flamebearer_more(&r->bearer, n_bytes, &r->json)) {
            return true;
        }

        r->has_graph = true;
        write_timeline_member(&r->json, &r->lines);
    }

    /* Then the groups. */
    while (r->n_groups < n && out->n - from < n_bytes && !hearth_buf_failed(out)) {
        write_group(&r->json, &r->lines, &r->lines.series[r->n_groups++]);
    }

    if (r->n_groups < n) {
        return true;
    }

    end_rendering(&r->json, &r->lines);

    return false;
}

static enum hearth_status answer_rendering(struct hearth_rpc *rpc, struct hearth_flamebearer bearer,
                                           struct timelines lines)
{
    assert(rpc->http != NULL);

    struct rendering *r = hearth_arena_alloc(&rpc->arena, sizeof *r);
    if (r == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    /* Set the start of the text; the rest is written in pieces. */
    r->bearer = bearer;
    r->lines = lines;
    r->has_graph = false;
    r->n_groups = 0;
    hearth_json_init(&r->json, &rpc->packed);
    hearth_json_object(&r->json);
    rpc->http->answer_type = "application/json";

    return hearth_rpc_answer_in_pieces(rpc,
                                       (struct hearth_pieces){.more = render_more, .context = r});
}

/* ---- render ---- */

static enum hearth_status write_text(struct hearth_rpc *rpc, const struct hearth_flamegraph *graph,
                                     struct hearth_str profile_type)
{
    struct hearth_profile_type type;

    HEARTH_TRY(hearth_profile_type_parse(profile_type, &type, &rpc->err));

    /* A graph without samples has no tree to show. */
    struct hearth_flame_text how = {
        .unit = type.sample_unit, .min_percent = TEXT_MIN_PERCENT, .name_width = TEXT_NAME_WIDTH};
    rpc->http->answer_type = "text/plain; charset=utf-8";
    if (graph->total == 0) {
        hearth_buf_cstr(&rpc->packed, "no samples\n");
        return HEARTH_OK;
    }

    return hearth_flame_text_write(graph, &how, &rpc->arena, &rpc->packed, &rpc->err);
}

static enum hearth_status render_json(struct hearth_rpc *rpc, const struct hearth_query *query,
                                      const struct hearth_merge_spec *spec)
{
    struct hearth_flamebearer_about about;
    struct hearth_flamegraph graph = {0};
    struct timelines lines;

    /* Query the graph and its timeline, and answer. */
    HEARTH_TRY(describe_type(rpc, spec, &about));
    HEARTH_TRY(hearth_query_flamegraph(query, spec, &graph, &rpc->err));
    HEARTH_TRY(query_timelines(rpc, query, spec, &lines));

    return answer_rendering(rpc, hearth_flamebearer_single(&graph, &about), lines);
}

/* Reads ids separated by commas, at most MAX_IDS; they borrow from the request. */
static enum hearth_status read_id_list(struct hearth_rpc *rpc, const char *name,
                                       const struct hearth_str **ret, size_t *ret_n)
{
    struct hearth_str text = hearth_http_arg(rpc, name);
    struct hearth_str *ids = hearth_arena_array(&rpc->arena, MAX_IDS, sizeof *ids);
    size_t n = 0;
    if (ids == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    /* Split at the commas; empty ids are ignored. */
    for (size_t from = 0; from < text.n;) {
        size_t to = hearth_str_find(text, ',', from);
        if (to > from && n == MAX_IDS) {
            return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT, "%s: more than %d ids", name,
                               MAX_IDS);
        }

        if (to > from) {
            ids[n++] = hearth_str_n(text.p + from, to - from);
        }

        from = to + 1;
    }

    *ret = ids;
    *ret_n = n;

    return HEARTH_OK;
}

/* Renders the samples of spans and traces; without from and until, of all times. */
static enum hearth_status render_spans(struct hearth_rpc *rpc, struct hearth_query *query,
                                       const struct hearth_merge_spec *spec,
                                       struct hearth_str format)
{
    struct hearth_span_profile_spec of = {.merge = *spec, .format = HEARTH_SPAN_FLAMEGRAPH};
    struct hearth_span_profile found;
    struct hearth_flamebearer_about about;

    /* Read the ids and the range. */
    HEARTH_TRY(read_id_list(rpc, "span-id", &of.span_ids, &of.n_span_ids));
    HEARTH_TRY(read_id_list(rpc, "trace-id", &of.trace_ids, &of.n_trace_ids));
    if (hearth_str_eq_c(format, "dot")) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                           "span-id and trace-id take the formats json and text");
    }

    if (hearth_http_arg(rpc, "from").p == NULL && hearth_http_arg(rpc, "until").p == NULL) {
        query->start_ms = query->end_ms = 0;
    }

    /* Query and answer. */
    HEARTH_TRY(describe_type(rpc, spec, &about));
    HEARTH_TRY(hearth_query_span_profile(query, &of, &found, &rpc->err));
    if (hearth_str_eq_c(format, "text")) {
        return write_text(rpc, &found.flamegraph, spec->profile_type);
    }

    return answer_rendering(rpc, hearth_flamebearer_single(&found.flamegraph, &about),
                            (struct timelines){0});
}

static enum hearth_status render_text(struct hearth_rpc *rpc, const struct hearth_query *query,
                                      const struct hearth_merge_spec *spec)
{
    struct hearth_flamegraph graph = {0};
    HEARTH_TRY(hearth_query_flamegraph(query, spec, &graph, &rpc->err));
    return write_text(rpc, &graph, spec->profile_type);
}

static enum hearth_status render_selection(struct hearth_rpc *rpc)
{
    static const struct side_args names = {"query", "from", "until"};
    struct hearth_query query;
    struct hearth_merge_spec spec;

    /* Read the arguments. */
    HEARTH_TRY(read_selection(rpc, &names, &query, &spec));
    struct hearth_str format = hearth_http_arg(rpc, "format");
    spec.empty_names = !hearth_str_eq_c(format, "text"); /* texts for people name all frames */
    if (hearth_http_arg(rpc, "span-id").n > 0 || hearth_http_arg(rpc, "trace-id").n > 0) {
        return render_spans(rpc, &query, &spec, format);
    }

    if (hearth_str_eq_c(format, "text")) {
        return render_text(rpc, &query, &spec);
    }

    if (!hearth_str_eq_c(format, "dot")) {
        return render_json(rpc, &query, &spec);
    }

    rpc->http->answer_type = "text/plain; charset=utf-8";

    return hearth_rpc_dot(rpc, &query, &spec, &rpc->packed);
}

void hearth_http_render(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, render_selection(rpc));
}

static enum hearth_status render_diff(struct hearth_rpc *rpc)
{
    static const struct side_args names[2] = {{"leftQuery", "leftFrom", "leftUntil"},
                                              {"rightQuery", "rightFrom", "rightUntil"}};
    struct hearth_query queries[2];
    struct hearth_merge_spec specs[2];
    struct hearth_flamebearer_about about;
    struct hearth_flame_diff diff = {0};

    /* Read both sides. */
    for (int i = 0; i < 2; i++) {
        HEARTH_TRY(read_selection(rpc, &names[i], &queries[i], &specs[i]));
    }

    if (!hearth_str_eq(specs[0].profile_type, specs[1].profile_type)) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                           "leftQuery and rightQuery must have the same profile type");
    }

    /* Query and answer. */
    HEARTH_TRY(describe_type(rpc, &specs[0], &about));
    HEARTH_TRY(
        hearth_query_diff(&queries[0], &specs[0], &queries[1], &specs[1], NULL, &diff, &rpc->err));

    return answer_rendering(rpc, hearth_flamebearer_double(&diff, &about), (struct timelines){0});
}

void hearth_http_render_diff(struct hearth_rpc *rpc)
{
    hearth_rpc_end(rpc, render_diff(rpc));
}
