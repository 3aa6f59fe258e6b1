/*
 * query.h -- the questions: which types, labels and series exist; merged stacks; totals over time.
 *
 * Ranges are milliseconds, inclusive at both ends, validated the same way for every question: both
 * ends must be set, start <= end, the range within max_query_range; a start before
 * max_query_lookback is moved, an end before it answers empty. Selectors are texts
 * (query/selector.h); several are ANDed.
 *
 * Ownership: answers live in the request's arena.
 * Threads:   safe; one request is one thread.
 * Errors:    INVALID_ARGUMENT for what the caller can mend; NO_MEMORY, DEADLINE_EXCEEDED,
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
#include "hearth/model/profile_source.h"
#include "hearth/model/profile_type.h"
#include "hearth/model/stacktree.h"

HEARTH_MUST_CHECK
enum hearth_status hearth_query_engine_new(const struct hearth_limits *limits, /* copied */
                                           struct hearth_store *store,         /* kept */
                                           struct hearth_query_engine **ret_engine,
                                           struct hearth_err *err);
void hearth_query_engine_free(struct hearth_query_engine *engine);
/* The server's, and what holds for a tenant. */
const struct hearth_limits *hearth_query_server_limits(const struct hearth_query_engine *engine);
void hearth_query_tenant_limits(const struct hearth_query_engine *engine, struct hearth_str tenant,
                                struct hearth_limits *ret);

/* What a tenant wants of gauges (the setting "gauge-aggregation"). */
enum hearth_gauge_aggregation {
    HEARTH_GAUGES_UNSET, /* each API has its own default */
    HEARTH_GAUGES_SUM,
    HEARTH_GAUGES_MEAN,
};
enum hearth_gauge_aggregation
hearth_query_gauge_aggregation(const struct hearth_query_engine *engine, struct hearth_str tenant);

/* A call with a range of time. Both zero: the last hour. */
struct hearth_query {
    struct hearth_call call;
    int64_t start_ms, end_ms;
};

/* Sorted by id. start = end = 0 means the last hour. */
HEARTH_MUST_CHECK
enum hearth_status hearth_query_profile_types(const struct hearth_query *query,
                                              struct hearth_str **ret_ids, size_t *ret_n,
                                              struct hearth_err *err);
/* legacy_only leaves out names that are not [a-zA-Z_][a-zA-Z0-9_]*. */
HEARTH_MUST_CHECK
enum hearth_status hearth_query_label_names(const struct hearth_query *query,
                                            const struct hearth_str *selectors, size_t n_selectors,
                                            bool legacy_only, struct hearth_str **ret_names,
                                            size_t *ret_n, struct hearth_err *err);
HEARTH_MUST_CHECK
enum hearth_status hearth_query_label_values(const struct hearth_query *query,
                                             struct hearth_str name,
                                             const struct hearth_str *selectors, size_t n_selectors,
                                             struct hearth_str **ret_values, size_t *ret_n,
                                             struct hearth_err *err);
HEARTH_MUST_CHECK
enum hearth_status hearth_query_series(const struct hearth_query *query,
                                       const struct hearth_str *selectors, size_t n_selectors,
                                       const struct hearth_str *names, size_t n_names,
                                       bool legacy_only, struct hearth_labels **ret_sets,
                                       size_t *ret_n, struct hearth_err *err);

/* Stacks of Go programs: as they are stored, or as in model/go_stacks.h. */
enum hearth_go_stacks {
    HEARTH_GO_STORED,
    HEARTH_GO_REPAIRED,
    HEARTH_GO_OF_TENANT, /* as repair-go-stacks says */
};

/* What to merge. */
struct hearth_merge_spec {
    struct hearth_str profile_type; /* id of five or six parts */
    struct hearth_str selector;     /* must not be empty; "{}" is everything */
    struct hearth_stack_filter stacks;
    struct hearth_profile_filter profiles;
    bool empty_names; /* of functions stay empty, as Pyroscope has them, instead of [unknown] */
    enum hearth_go_stacks go_stacks; /* of all that is made of a function tree; pprof: none */
    /*
     * Of gauges (profile_type.h): the mean per scrape instead of the sum. The sums of each series are divided by the
     * number of its profiles, added over the series, and rounded once per stack trace. Other types: no effect.
     */
    bool mean;
    bool has_max_nodes;
    int64_t max_nodes; /* unset or 0: the default (flame graph) or no limit (pprof) */
    int64_t *
        ret_total; /* tree and pprof: gets what all samples come to, which their bytes do not say; NULL: nobody asks */
    /* pprof only, for profile-guided optimisation; no cut then. */
    bool go_pgo;
    uint32_t keep_locations; /* leaf-most locations of a stack that stay; 0: all */
    bool aggregate_callees;  /* the leaf's line number becomes 0, so that its stacks merge */
};

HEARTH_MUST_CHECK
enum hearth_status hearth_query_flamegraph(const struct hearth_query *query,
                                           const struct hearth_merge_spec *spec,
                                           struct hearth_flamegraph *ret, struct hearth_err *err);
/* The tree byte format. */
HEARTH_MUST_CHECK
enum hearth_status hearth_query_tree(const struct hearth_query *query,
                                     const struct hearth_merge_spec *spec, struct hearth_buf *out,
                                     struct hearth_err *err);
/* A pprof message, plain; nothing is appended when there is no data. */
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
    int64_t total; /* of all profiles in the points, exact */
    struct hearth_exemplar
        *exemplars; /* [n_points]: the largest profile, or span, of each; NULL unless asked */
};

struct hearth_timeseries_spec {
    struct hearth_str profile_type, selector;
    const struct hearth_str *group_by;
    size_t n_group_by;
    double step_seconds;
    bool average;                      /* mean of the profiles of a bucket instead of their sum */
    int64_t limit;                     /* 0: all */
    struct hearth_stack_filter stacks; /* a profile's value is the total of the stacks that pass */
    bool exemplars;                    /* the largest profile of each point */
    bool span_exemplars; /* instead: the largest span of a profile; INVALID_ARGUMENT with stacks */
    bool whole_ms; /* all of the range's last millisecond counts, not its first nanosecond alone */
};

/* By sum descending, then labels. */
HEARTH_MUST_CHECK
enum hearth_status hearth_query_timeseries(const struct hearth_query *query,
                                           const struct hearth_timeseries_spec *spec,
                                           struct hearth_timeseries **ret_series, size_t *ret_n,
                                           struct hearth_err *err);

/* ---- how a question would be answered ---- */

/* One part of a plan: rows or blocks of one tier, of services that stand alike. */
struct hearth_explained_leg {
    enum hearth_source source;
    bool whole_service;     /* sums over all series of a service instead of one series each */
    int64_t from_ns, to_ns; /* to_ns is excluded */
    int64_t n_services;
    int64_t n_series;        /* API series that it answers for */
    int64_t n_rows, n_bytes; /* profiles, blocks or segments to read; bytes as stored */
    double ms;               /* estimated */
};

struct hearth_explanation {
    int64_t from_ns, to_ns;            /* of the question, both included, after limits of ranges */
    int64_t n_services, n_series;      /* selected */
    struct hearth_explained_leg *legs; /* in the order of the plan: late and edges first */
    size_t n_legs;
    int64_t n_rows, n_bytes;  /* of all legs */
    double ms;                /* of all legs and the fixed cost of a query */
    struct hearth_str *notes; /* what the answer would lack, or how the range is changed */
    size_t n_notes;
};

/*
 * The plan that hearth_query_flamegraph and its siblings, or hearth_query_timeseries, would run now,
 * with what it would read, counted in the database. The same errors as those. In the query's arena;
 * query->call.notes is not written.
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

/* What a question with a selector like process_cpu:cpu:nanoseconds:cpu:nanoseconds{...} reads from one source. */
struct hearth_analyzed_source {
    int64_t n_legs, n_series, n_rows, n_bytes; /* n_series: the most of any leg; rows as above */
};

struct hearth_analysis {
    struct hearth_analyzed_source sources[HEARTH_N_SOURCES]; /* n_legs 0: not read */
    int64_t n_series, n_bytes;                               /* selected; of all sources */
};

/*
 * The plan of a merge by source (engine/answer/analyze.c). text: selector/typed_query.h; without a profile type, the sum
 * over all types that it selects. The same errors as hearth_query_explain_merge.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_query_analyze(const struct hearth_query *query, struct hearth_str text,
                                        struct hearth_analysis *ret, struct hearth_err *err);

/*
 * The oldest and newest profile of the tenant (engine/select/profile_stats.c), to the millisecond as long as
 * times of single profiles are kept, else the beginning of the hour. The range is not looked at.
 */
struct hearth_profile_stats {
    bool any;
    int64_t oldest_ms, newest_ms;
};

HEARTH_MUST_CHECK
enum hearth_status hearth_query_profile_stats(const struct hearth_query *query,
                                              struct hearth_profile_stats *ret,
                                              struct hearth_err *err);

/* ---- tables of functions (engine/answer/functions.c) ---- */

enum hearth_top_kind {
    HEARTH_TOP_FUNCTION,
    HEARTH_TOP_LINE,
    HEARTH_TOP_FILE,
    HEARTH_TOP_DIRECTORY,
    HEARTH_TOP_CLASS,
    HEARTH_TOP_PACKAGE,
    HEARTH_TOP_MODULE,
    HEARTH_TOP_THREAD, /* reads single profiles: threads stand beside samples */
};

enum hearth_top_sort {
    HEARTH_TOP_BY_SELF,
    HEARTH_TOP_BY_TOTAL,
    HEARTH_TOP_BY_NAME,
};

struct hearth_top_spec {
    enum hearth_top_kind kind;
    struct hearth_str search; /* RE2, unanchored, of names; empty: all */
    enum hearth_top_sort sort;
    bool reverse;
    int64_t limit, offset;
};

struct hearth_top_row {
    struct hearth_str name, file, module;
    int64_t line, self, total;
};

struct hearth_top {
    struct hearth_top_row *rows; /* the page */
    size_t n_rows;
    int64_t n_all; /* that match, on all pages */
    int64_t total; /* of everything selected */
};

HEARTH_MUST_CHECK
enum hearth_status hearth_query_top(const struct hearth_query *query,
                                    const struct hearth_merge_spec *spec,
                                    const struct hearth_top_spec *top, struct hearth_top *ret,
                                    struct hearth_err *err);

struct hearth_sandwich_node {
    struct hearth_str name;
    int32_t parent; /* -1: none */
    int64_t self, total;
};

struct hearth_sandwich {
    int64_t self, total, whole;
    struct hearth_sandwich_node *callers, *callees; /* pre-order; [0] is the function */
    size_t n_callers, n_callees;
};

/* spec->max_nodes is of each side. NOT_FOUND when no selected stack trace contains the function. */
HEARTH_MUST_CHECK
enum hearth_status hearth_query_sandwich(const struct hearth_query *query,
                                         const struct hearth_merge_spec *spec,
                                         struct hearth_str function, struct hearth_sandwich *ret,
                                         struct hearth_err *err);

struct hearth_line_total {
    struct hearth_str file, mapping, build_id;
    int64_t line, self, total;
};

struct hearth_lines {
    struct hearth_line_total *lines; /* by file, mapping, line */
    size_t n_lines;
    int64_t self, total;
    struct hearth_labels *sources; /* distinct values of service_repository, _git_ref, _root_path */
    size_t n_sources;
};

/* NOT_FOUND as above. */
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
    int64_t limit; /* 0: all */
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

/*
 * By sum, descending, then value. A profile that sample labels split counts once for a value, with the sum of
 * its parts that have the value. *ret_n_all also counts those beyond limit (0: there is no limit).
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_query_label_stats(const struct hearth_query *query,
                                            struct hearth_str profile_type,
                                            struct hearth_str selector, struct hearth_str label,
                                            int64_t limit, struct hearth_label_stat **ret,
                                            size_t *ret_n, int64_t *ret_n_all,
                                            struct hearth_err *err);

/* ---- two sides (engine/answer/diff.c) ---- */

/* Each side has its own range: queries with the same engine, tenant and arena. */
HEARTH_MUST_CHECK
enum hearth_status hearth_query_diff(const struct hearth_query *left,
                                     const struct hearth_merge_spec *left_spec,
                                     const struct hearth_query *right,
                                     const struct hearth_merge_spec *right_spec,
                                     struct hearth_flame_diff *ret, struct hearth_err *err);

/*
 * Graphviz of at most max_nodes functions (0: 100, or what is allowed), with exact values, and the calls between
 * them (engine/answer/dot.c); calls that a flame graph of 512 nodes, or of max_nodes if that is more, would not show are
 * left out. spec->max_nodes does not count. Nothing is appended without data.
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
    uint64_t span_id; /* 0: none */
    struct hearth_trace_id trace;
    struct hearth_labels labels; /* of the profile, without those grouped by */
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
    double y_min[20]; /* lower ends of the cells, of all series */
};

struct hearth_heatmap_spec {
    struct hearth_merge_spec merge;
    const struct hearth_str *group_by;
    size_t n_group_by;
    double step_seconds;
    bool spans, exemplars;
    int64_t limit; /* 0: all */
};

HEARTH_MUST_CHECK
enum hearth_status hearth_query_heatmap(const struct hearth_query *query,
                                        const struct hearth_heatmap_spec *spec,
                                        struct hearth_heatmap *ret, struct hearth_err *err);

#endif
