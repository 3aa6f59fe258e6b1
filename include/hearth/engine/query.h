/*
 * query.h -- queries: which types, labels and series exist; merged stacks; totals over time.
 *
 * Ranges are milliseconds, inclusive at both ends. All queries validate them in the same way: both
 * ends must be set, start <= end, and the range must be within max_query_range. A start before
 * max_query_lookback is moved; if the end is before it, the answer is empty. Selectors are texts
 * (selector/selector.h); a series must match all of several selectors.
 *
 * Ownership: answers live in the arena of the query.
 * Threads:   safe; each query runs on one thread.
 * Errors:    INVALID_ARGUMENT if the caller can correct the query; NO_MEMORY, DEADLINE_EXCEEDED,
 *            CANCELLED, UNAVAILABLE.
 * Source:    querier.v1 semantics as in docs/reference/api-querier.md.
 */
#ifndef HEARTH_ENGINE_QUERY_H
#define HEARTH_ENGINE_QUERY_H

#include "hearth/engine/call.h"
#include "hearth/engine/filter.h"
#include "hearth/engine/limits.h"
#include "hearth/model/flame_diff.h"
#include "hearth/model/labels.h"
#include "hearth/model/noise.h"
#include "hearth/model/profile_source.h"
#include "hearth/model/profile_type.h"
#include "hearth/model/stacktree.h"

/* cache_bytes: memory for sums of blocks that later queries use again; 0: nothing is kept. */
HEARTH_MUST_CHECK
enum hearth_status hearth_query_engine_new(const struct hearth_limits *limits, /* copied */
                                           size_t cache_bytes,
                                           struct hearth_store *store, /* kept */
                                           struct hearth_query_engine **ret_engine,
                                           struct hearth_err *err);
void hearth_query_engine_free(struct hearth_query_engine *engine);
/* Replaces the limits for calls that begin from now on; keeps them until _free. */
void hearth_query_set_limits(struct hearth_query_engine *engine,
                             const struct hearth_limits *limits);
/* The limits of the server, without overrides by tenants. */
const struct hearth_limits *hearth_query_server_limits(const struct hearth_query_engine *engine);
/* The limits that apply to a tenant. */
void hearth_query_tenant_limits(const struct hearth_query_engine *engine, struct hearth_str tenant,
                                struct hearth_limits *ret);

/*
 * The limits that apply to a request about several tenants: of each the strictest. A switch is on
 * if it is on for all of them.
 */
void hearth_query_strictest_limits(const struct hearth_query_engine *engine,
                                   const struct hearth_view *tenants, size_t n,
                                   struct hearth_limits *ret);

/* How gauges are aggregated for a tenant (the setting "gauge-aggregation"). */
enum hearth_gauge_aggregation {
    HEARTH_GAUGES_UNSET, /* each API has its own default */
    HEARTH_GAUGES_SUM,
    HEARTH_GAUGES_MEAN,
};
enum hearth_gauge_aggregation
hearth_query_gauge_aggregation(const struct hearth_query_engine *engine, struct hearth_str tenant);

/* A call with a range of time. Where a function allows it, start = end = 0 means the last hour. */
struct hearth_query {
    struct hearth_call call;
    int64_t start_ms, end_ms;
    /*
     * NULL: the query runs. Otherwise nothing is read, the answer is that of an empty store, and
     * the plans of all reads are added to this, which lives as long as the arena of the call. For
     * queries whose headers say so.
     */
    struct hearth_explanation *plan;
};

/* Ids of all profile types, sorted. start = end = 0 means the last hour. */
HEARTH_MUST_CHECK
enum hearth_status hearth_query_profile_types(const struct hearth_query *query,
                                              struct hearth_str **ret_ids, size_t *ret_n,
                                              struct hearth_err *err);
/*
 * Which series a query of labels is about, and which labels it wants. Zeroed: all of both. A series
 * must match all selectors; a metric name that is a whole profile type selects that type.
 */
struct hearth_label_request {
    const struct hearth_str *selectors;
    size_t n_selectors;
    const struct hearth_str *names; /* labels of hearth_query_series; none: all labels */
    size_t n_names;
    bool legacy_only; /* leave out labels whose name is not [a-zA-Z_][a-zA-Z0-9_]* */
};

/* Names of labels, sorted. */
HEARTH_MUST_CHECK
enum hearth_status hearth_query_label_names(const struct hearth_query *query,
                                            const struct hearth_label_request *request,
                                            struct hearth_str **ret_names, size_t *ret_n,
                                            struct hearth_err *err);
/*
 * Values of a label, sorted. request->legacy_only is ignored. Errors: INVALID_ARGUMENT if name is
 * empty.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_query_label_values(const struct hearth_query *query,
                                             struct hearth_str name,
                                             const struct hearth_label_request *request,
                                             struct hearth_str **ret_values, size_t *ret_n,
                                             struct hearth_err *err);
/* Distinct label sets of series, sorted. */
HEARTH_MUST_CHECK
enum hearth_status hearth_query_series(const struct hearth_query *query,
                                       const struct hearth_label_request *request,
                                       struct hearth_labels **ret_sets, size_t *ret_n,
                                       struct hearth_err *err);

/* How stacks of Go programs are shown. */
enum hearth_go_stacks {
    HEARTH_GO_STORED,    /* as they are stored */
    HEARTH_GO_REPAIRED,  /* joined as in model/go_stacks.h */
    HEARTH_GO_OF_TENANT, /* as the limit repair-go-stacks of the tenant says */
};

/* Which samples to merge, and how. */
struct hearth_merge_spec {
    struct hearth_str profile_type; /* id of five or six parts */
    struct hearth_str selector;     /* must not be empty; "{}" selects every series */
    struct hearth_stack_filter stacks;
    struct hearth_profile_filter profiles;
    bool empty_names; /* functions without a name stay so, as in Pyroscope, instead of [unknown] */
    enum hearth_go_stacks go_stacks; /* for all answers made from a function tree; not pprof */
    /*
     * For gauges (profile_type.h): the mean per scrape instead of the sum. The sums of each series
     * are divided by the number of its profiles, added over the series, and rounded once per stack
     * trace. No effect on other types.
     */
    bool mean;
    bool has_max_nodes;
    int64_t max_nodes;  /* unset or 0: the default (flame graph) or no limit (pprof) */
    int64_t *ret_total; /* out: total of all samples, which tree and pprof lack; may be NULL */
    /* pprof only, for profile-guided optimisation; the profile is not truncated then. */
    bool go_pgo;
    uint32_t keep_locations; /* number of leaf-most locations of a stack to keep; 0: all */
    bool aggregate_callees;  /* sets the leaf's line number to 0, so that its stacks merge */
};

HEARTH_MUST_CHECK
enum hearth_status hearth_query_flamegraph(const struct hearth_query *query,
                                           const struct hearth_merge_spec *spec,
                                           struct hearth_flamegraph *ret, struct hearth_err *err);
/* Appends the answer in the tree byte format. */
HEARTH_MUST_CHECK
enum hearth_status hearth_query_tree(const struct hearth_query *query,
                                     const struct hearth_merge_spec *spec, struct hearth_buf *out,
                                     struct hearth_err *err);
/* Appends an uncompressed pprof message; nothing if there is no data. */
HEARTH_MUST_CHECK
enum hearth_status hearth_query_pprof(const struct hearth_query *query,
                                      const struct hearth_merge_spec *spec, struct hearth_buf *out,
                                      struct hearth_err *err);

struct hearth_point {
    int64_t ts_ms;
    double value;
};

struct hearth_exemplar;

struct hearth_timeseries {
    struct hearth_labels labels;
    struct hearth_point *points;
    size_t n_points;
    double sum;
    int64_t total; /* exact sum of all profiles in the points */
    /* [n_points]: the largest profile or span of each point; NULL unless the spec requests them. */
    struct hearth_exemplar *exemplars;
};

struct hearth_timeseries_spec {
    struct hearth_str profile_type, selector;
    const struct hearth_str *group_by;
    size_t n_group_by;
    double step_seconds;
    bool average;                      /* mean of the profiles of a bucket instead of their sum */
    int64_t limit;                     /* maximal number of series; 0: all */
    struct hearth_stack_filter stacks; /* a profile's value is the total of the stacks that pass */
    bool exemplars;                    /* request the largest profile of each point */
    bool span_exemplars; /* request the largest span instead; INVALID_ARGUMENT with stacks */
    bool
        whole_ms; /* the range includes its whole last millisecond, not only its first nanosecond */
};

/* Sorted by sum, descending, then by labels. */
HEARTH_MUST_CHECK
enum hearth_status hearth_query_timeseries(const struct hearth_query *query,
                                           const struct hearth_timeseries_spec *spec,
                                           struct hearth_timeseries **ret_series, size_t *ret_n,
                                           struct hearth_err *err);

/* ---- how a query would be answered ---- */

/* The step of a query that a leg belongs to. */
enum hearth_plan_step {
    HEARTH_STEP_ONLY,   /* the query has one step */
    HEARTH_STEP_TOTALS, /* changes: totals of each service */
    HEARTH_STEP_STACKS, /* diffs and changes: the stack traces of a side */
    HEARTH_STEP_PARTS,  /* diffs and changes: a side again, by slices of time and by series */
};

/* One leg of a plan: rows or blocks of one tier, for services in the same state. */
struct hearth_explained_leg {
    enum hearth_plan_step step;
    bool of_base; /* of the left, or older, side */
    enum hearth_source source;
    bool whole_service;     /* sums over all series of a service instead of one series each */
    int64_t from_ns, to_ns; /* to_ns is excluded */
    int64_t n_services;
    int64_t n_series;        /* API series that it covers */
    int64_t n_rows, n_bytes; /* profiles, blocks or segments to read; their stored size */
    double ms;               /* estimated duration */
};

struct hearth_explanation {
    int64_t from_ns, to_ns;            /* range after limits were applied, both included */
    int64_t n_services, n_series;      /* selected */
    struct hearth_explained_leg *legs; /* by step, base first, in the order of the plan */
    size_t n_legs, cap_legs;
    int64_t n_rows, n_bytes;  /* sums over the legs */
    double ms;                /* sum over the legs, and the fixed cost of a query */
    struct hearth_str *notes; /* what the answer would lack, and changes of the range */
    size_t n_notes;
    /* Plans with several reads: whether equal legs are summed; step and side of the next read. */
    bool is_summed;
    enum hearth_plan_step step;
    bool of_base;
};

/*
 * The plan that hearth_query_flamegraph and the other merges, or hearth_query_timeseries, would run
 * now, with the amount that it would read, counted in the database. Errors: the same as theirs. The
 * answer lives in the query's arena; query->call.notes is not written.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_query_explain_merge(const struct hearth_query *query,
                                              const struct hearth_merge_spec *spec,
                                              struct hearth_explanation *ret,
                                              struct hearth_err *err);
HEARTH_MUST_CHECK
enum hearth_status hearth_query_explain_timeseries(const struct hearth_query *query,
                                                   const struct hearth_timeseries_spec *spec,
                                                   struct hearth_explanation *ret,
                                                   struct hearth_err *err);
/*
 * The same of queries about single profiles. They read the totals of the profiles, as heatmaps and
 * statistics of labels do, or, with `rows`, their samples, as all queries about spans do.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_query_explain_profiles(const struct hearth_query *query,
                                                 const struct hearth_merge_spec *spec, bool rows,
                                                 struct hearth_explanation *ret,
                                                 struct hearth_err *err);

/*
 * The same for the queries of labels above. They read only the label index in memory, so there are
 * no legs: n_series and n_services count what they visit.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_query_explain_labels(const struct hearth_query *query,
                                               const struct hearth_label_request *request,
                                               struct hearth_explanation *ret,
                                               struct hearth_err *err);

/* The amount that a query reads from one source. */
struct hearth_analyzed_source {
    int64_t n_legs, n_series, n_rows, n_bytes; /* n_series: maximum over legs; n_rows as above */
};

struct hearth_analysis {
    struct hearth_analyzed_source sources[HEARTH_N_SOURCES]; /* n_legs 0: not read */
    int64_t n_series, n_bytes; /* n_series: selected; n_bytes: sum over the sources */
};

/*
 * The plan of a merge, summed by source (engine/answer/analyze.c). text: a selector with a profile
 * type in front (selector/typed_query.h); without a type, the sum over all types that it selects.
 * Errors: the same as of hearth_query_explain_merge.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_query_analyze(const struct hearth_query *query, struct hearth_str text,
                                        struct hearth_analysis *ret, struct hearth_err *err);

/*
 * The times of the oldest and newest profile of the tenant (engine/select/profile_stats.c): exact
 * to the millisecond while times of single profiles are stored, otherwise the beginning of the
 * hour. The range of the query is ignored.
 */
struct hearth_profile_stats {
    bool any; /* the tenant has profiles; otherwise the times are 0 */
    int64_t oldest_ms, newest_ms;
};

HEARTH_MUST_CHECK
enum hearth_status hearth_query_profile_stats(const struct hearth_query *query,
                                              struct hearth_profile_stats *ret,
                                              struct hearth_err *err);

/* ---- tables of functions (engine/answer/functions.c) ---- */

enum hearth_top_sort {
    HEARTH_TOP_BY_SELF,
    HEARTH_TOP_BY_TOTAL,
    HEARTH_TOP_BY_NAME,
};

struct hearth_top_spec {
    enum hearth_top_kind kind;
    struct hearth_str search; /* RE2, unanchored, matched against names; empty: all rows */
    enum hearth_top_sort sort;
    bool reverse;
    int64_t limit, offset;
};

struct hearth_top_row {
    struct hearth_str name, file, module;
    int64_t line, self, total;
    int64_t start_line; /* functions and lines: of the function; 0: not known, or several */
};

struct hearth_top {
    struct hearth_top_row *rows; /* the page */
    size_t n_rows;
    int64_t n_all; /* number of matching rows on all pages */
    int64_t total; /* sum of all selected samples */
};

HEARTH_MUST_CHECK
enum hearth_status hearth_query_top(const struct hearth_query *query,
                                    const struct hearth_merge_spec *spec,
                                    const struct hearth_top_spec *top, struct hearth_top *ret,
                                    struct hearth_err *err);

struct hearth_sandwich_node {
    struct hearth_str name;
    int32_t parent; /* index; -1: the root */
    int64_t self, total;
};

struct hearth_sandwich {
    int64_t self, total, whole; /* of the function; whole: sum of all selected samples */
    struct hearth_sandwich_node *callers, *callees; /* pre-order; [0] is the function */
    size_t n_callers, n_callees;
};

/*
 * The callers and callees of a function. spec->max_nodes limits each side. Errors: NOT_FOUND if no
 * selected stack trace contains the function.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_query_sandwich(const struct hearth_query *query,
                                         const struct hearth_merge_spec *spec,
                                         struct hearth_str function, struct hearth_sandwich *ret,
                                         struct hearth_err *err);

struct hearth_line_total {
    struct hearth_str file, mapping, build_id;
    int64_t line, self, total;
    int64_t start_line; /* of the function; 0: not known, or several */
};

struct hearth_lines {
    struct hearth_line_total *lines; /* sorted by file, mapping, line */
    size_t n_lines;
    int64_t self, total;
    struct hearth_labels *sources; /* distinct values of service_repository, _git_ref, _root_path */
    size_t n_sources;
};

/* Values by line of a function. Errors: NOT_FOUND as above. */
HEARTH_MUST_CHECK
enum hearth_status hearth_query_lines(const struct hearth_query *query,
                                      const struct hearth_merge_spec *spec,
                                      struct hearth_str function, struct hearth_lines *ret,
                                      struct hearth_err *err);

/* ---- over time (engine/answer/function_timeline.c, engine/answer/label_stats.c) ---- */

struct hearth_function_point {
    int64_t ts_ms, self, total;
};

struct hearth_function_series {
    struct hearth_str function;
    struct hearth_labels labels;
    struct hearth_function_point *points;
    size_t n_points;
};

struct hearth_function_timeline_spec {
    struct hearth_merge_spec merge;
    const struct hearth_str *functions;
    size_t n_functions;
    double step_seconds;
    const struct hearth_str *group_by;
    size_t n_group_by;
    int64_t limit; /* maximal number of groups; 0: all */
};

HEARTH_MUST_CHECK
enum hearth_status hearth_query_function_timeline(const struct hearth_query *query,
                                                  const struct hearth_function_timeline_spec *spec,
                                                  struct hearth_function_series **ret,
                                                  size_t *ret_n, struct hearth_err *err);

struct hearth_label_stat {
    struct hearth_str value; /* empty: series without the label */
    int64_t n_profiles, sum, min, max, n_series;
    double mean, deviation;
};

struct hearth_label_stats_spec {
    struct hearth_str profile_type, selector, label;
    int64_t limit; /* maximal number of values; 0: all */
};

/*
 * Values of a label, sorted by sum, descending, then by value. A profile that sample labels have
 * split counts once for a value, with the sum of its parts that have the value. *ret_n_all includes
 * the values beyond limit (0: no limit).
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_query_label_stats(const struct hearth_query *query,
                                            const struct hearth_label_stats_spec *spec,
                                            struct hearth_label_stat **ret, size_t *ret_n,
                                            int64_t *ret_n_all, struct hearth_err *err);

/* ---- two sides (engine/answer/diff.c) ---- */

/* How changes were distinguished from noise (model/noise.h). */
enum hearth_noise_method {
    HEARTH_NOISE_UNKNOWN, /* they were not distinguished */
    HEARTH_NOISE_PARTS,   /* from the variation between slices of time, and between series */
    HEARTH_NOISE_POISSON, /* from the number of samples; more variation than that is not seen */
};

struct hearth_function_change {
    struct hearth_str name;
    int64_t values[2];          /* the self, or the total, on the left and the right side */
    struct hearth_change share; /* of the value in the total of its side */
};

/*
 * Which changes of a diff are beyond noise. Only nodes and functions with at least
 * HEARTH_NOISE_LEAST_SHARE of a side are judged; others have p and q of 1.
 */
struct hearth_diff_noise {
    enum hearth_noise_method method;
    const char *reason; /* why the method is not PARTS; static text */
    int64_t slice_ns[2];
    size_t n_slices[2];          /* slices with data */
    size_t n_series[2];          /* series with data in their parts; 0: series were not compared */
    struct hearth_change *nodes; /* [diff->n_nodes]: of the node's total; numbered as parents */
    size_t n_judged_nodes, n_changed_nodes;
    /* Changed ones first, then by the size of the change. A recursive function counts once in its
     * total. */
    struct hearth_function_change *functions, *function_totals; /* by self, by total */
    size_t n_functions, n_changed_functions, n_function_totals, n_changed_totals;
    /* The total per second; not for gauges, nor without slices. */
    bool has_rate;
    double rates[2];
    struct hearth_change rate;
};

#define HEARTH_NOISE_LEAST_SHARE 0.001

/*
 * Each side has its own range; both queries have the same engine, tenant and arena. ret_noise may
 * be NULL: noise is then not estimated, which costs as much as the diff or more. Both queries may
 * have the same `plan`.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_query_diff(const struct hearth_query *left,
                                     const struct hearth_merge_spec *left_spec,
                                     const struct hearth_query *right,
                                     const struct hearth_merge_spec *right_spec,
                                     struct hearth_diff_noise *ret_noise,
                                     struct hearth_flame_diff *ret, struct hearth_err *err);

/* ---- what changed in many services (engine/answer/changes.c) ---- */

struct hearth_changes_spec {
    struct hearth_str selector;     /* must not be empty */
    struct hearth_str profile_type; /* empty: all types that the right side has */
    bool mean;                      /* as in hearth_merge_spec; totals are sums always */
    int64_t limit;                  /* maximal number of rows; 0: all */
};

/* A function of a service whose self or total changed beyond noise. */
struct hearth_service_change {
    struct hearth_str service, profile_type, unit;
    int64_t totals[2]; /* of the service, on both sides */
    /* By self and by total. If one was not judged, its values are 0, and its p and q are 1. */
    struct hearth_function_change self, total;
    bool of_total; /* `cost` is of the total: the self is within noise, or changed less */
    /* The change as a part of the right total of the type, of all services together. */
    double cost;
};

struct hearth_changes {
    struct hearth_service_change *rows; /* by |cost|, descending */
    size_t n_rows;
    int64_t n_changed; /* without the limit */
    /*
     * Pairs of a service and a profile type. Compared ones have data on both sides; unjudged ones
     * are compared ones with too few slices and series to know their noise. One-sided ones have
     * data on one side only. Pairs beyond the limit max-compared-pairs, which have the smallest
     * parts of the totals of their types, are left out.
     */
    int64_t n_compared, n_unjudged, n_one_sided, n_left_out;
    /* Selfs and totals of functions with at least HEARTH_NOISE_LEAST_SHARE of their service. */
    int64_t n_judged, n_judged_totals;
};

/*
 * Compares every service with itself, and judges the selfs of all functions together, and the
 * totals: of the changes of each of them, at most 5 % are expected to be chance. Both queries have
 * the same engine, tenant and arena. It costs a diff with noise for each compared pair. Both
 * queries may have the same `plan`. It covers all services, so it is an upper bound: the totals
 * decide which services are compared.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_query_changes(const struct hearth_query *left,
                                        const struct hearth_query *right,
                                        const struct hearth_changes_spec *spec,
                                        struct hearth_changes *ret, struct hearth_err *err);

/*
 * Appends a call graph in Graphviz' language (engine/answer/dot.c): at most max_nodes functions (0:
 * 100, or max_flamegraph_nodes if that is less), with exact values, and the calls between them.
 * Calls that a flame graph of 512 nodes, or of max_nodes if that is more, would not show are left
 * out. spec->max_nodes is ignored. Nothing is appended if there is no data.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_query_dot(const struct hearth_query *query,
                                    const struct hearth_merge_spec *spec, int64_t max_nodes,
                                    struct hearth_buf *out, struct hearth_err *err);

/* ---- single profiles and spans (engine/answer/exemplars.c, engine/answer/heatmap.c) ---- */

struct hearth_exemplar {
    int64_t ts_ms, value;
    bool has_profile;
    struct hearth_profile_id profile;
    uint64_t span_id; /* 0: no span */
    struct hearth_trace_id trace;
    struct hearth_labels labels; /* labels of the profile, without the labels of its group */
};

struct hearth_heatmap_slot {
    int64_t ts_ms;
    int32_t counts[20];
    struct hearth_exemplar *exemplars; /* at most one per cell */
    size_t n_exemplars;
};

struct hearth_heatmap_series {
    struct hearth_labels labels;
    struct hearth_heatmap_slot *slots;
    size_t n_slots;
    int64_t n_points;
};

struct hearth_heatmap {
    struct hearth_heatmap_series *series;
    size_t n_series;
    double y_min[20]; /* lower ends of the cells, the same for all series */
};

struct hearth_heatmap_spec {
    struct hearth_merge_spec merge;
    const struct hearth_str *group_by;
    size_t n_group_by;
    double step_seconds;
    bool spans;     /* count spans instead of profiles */
    bool exemplars; /* request exemplars of the cells */
    int64_t limit;  /* maximal number of series; 0: all */
};

HEARTH_MUST_CHECK
enum hearth_status hearth_query_heatmap(const struct hearth_query *query,
                                        const struct hearth_heatmap_spec *spec,
                                        struct hearth_heatmap *ret, struct hearth_err *err);

#endif
