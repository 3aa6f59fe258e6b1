/*
 * answers_text.h -- the answers to every kind of question about profiles, as text, so that a test
 * can compare two ways of asking.
 */
#ifndef HEARTH_TESTS_UNIT_ENGINE_ANSWERS_TEXT_H
#define HEARTH_TESTS_UNIT_ENGINE_ANSWERS_TEXT_H

#include "hearth/engine/listed.h"
#include "hearth/engine/query.h"

#include "store_fixture.h"

/* What is asked. */
struct asked {
    struct hearth_query query;
    const char *selector, *type;
    struct hearth_str group_by[2];
    size_t n_group_by;
    struct hearth_str function; /* set by write_functions */
    bool with_ids;              /* ids of profiles, and what depends on dictionaries */
};

static inline void write_status(struct hearth_buf *out, const char *what, enum hearth_status status,
                                const struct hearth_err *err)
{
    hearth_buf_printf(out, "-- %s: %s %s\n", what, hearth_status_name(status),
                      status == HEARTH_OK ? "" : err->msg);
}

static inline void write_label_set(struct hearth_buf *out, const struct hearth_labels *labels)
{
    hearth_labels_format(labels, 0, out);
    hearth_buf_printf(out, "\n");
}

static inline void write_texts(struct hearth_buf *out, const struct hearth_str *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        hearth_buf_printf(out, "  " HEARTH_STR_FMT "\n", HEARTH_STR_ARG(v[i]));
    }
}

static inline struct hearth_merge_spec merge_of(const struct asked *a)
{
    return (struct hearth_merge_spec){.profile_type = hearth_str_c(a->type),
                                      .selector = hearth_str_c(a->selector)};
}

/* ---- labels ---- */

static inline void write_series(const struct asked *a, const struct hearth_str *names, size_t n,
                                struct hearth_buf *out)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_str selector = hearth_str_c(a->selector);
    const struct hearth_label_request request = {
        .selectors = &selector, .n_selectors = 1, .names = names, .n_names = n};
    struct hearth_labels *sets = NULL;
    size_t n_sets = 0;

    write_status(out, "series", hearth_query_series(&a->query, &request, &sets, &n_sets, &err),
                 &err);
    for (size_t i = 0; i < n_sets; i++) {
        write_label_set(out, &sets[i]);
    }
}

static inline void write_labels(const struct asked *a, struct hearth_buf *out)
{
    static const char *const names[] = {"service_name",     "team",   "env", "pod",
                                        "__profile_type__", "no_such"};
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_str selector = hearth_str_c(a->selector), *v = NULL;
    const struct hearth_label_request request = {.selectors = &selector, .n_selectors = 1};
    size_t n = 0;

    write_status(out, "names", hearth_query_label_names(&a->query, &request, &v, &n, &err), &err);
    write_texts(out, v, n);
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(names); i++) {
        n = 0;
        write_status(
            out, names[i],
            hearth_query_label_values(&a->query, hearth_str_c(names[i]), &request, &v, &n, &err),
            &err);
        write_texts(out, v, n);
    }

    const struct hearth_str some[] = {HEARTH_STR("team"), HEARTH_STR("service_name")};
    const struct hearth_str types[] = {HEARTH_STR("env"), HEARTH_STR("__type__"),
                                       HEARTH_STR("service_name")};
    write_series(a, NULL, 0, out);
    write_series(a, some, 2, out);
    write_series(a, types, 3, out);
}

/* ---- merges ---- */

static inline void write_flamegraph(const struct asked *a, const struct hearth_merge_spec *spec,
                                    struct hearth_buf *out)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_flamegraph flame = {0};

    write_status(out, "flame", hearth_query_flamegraph(&a->query, spec, &flame, &err), &err);
    hearth_buf_printf(out, "%lld %lld\n", (long long)flame.total, (long long)flame.max_self);
    write_texts(out, flame.names, flame.n_names);
    for (size_t i = 0; i < flame.n_levels; i++) {
        for (size_t k = 0; k < flame.levels[i].n; k++) {
            hearth_buf_printf(out, " %lld", (long long)flame.levels[i].values[k]);
        }
        hearth_buf_printf(out, "\n");
    }
}

static inline void write_bytes(struct hearth_buf *out, const char *what, enum hearth_status status,
                               const struct hearth_err *err, struct hearth_buf *bytes, bool whole)
{
    write_status(out, what, status, err);
    hearth_buf_printf(out, "%zu bytes, hash %016llx\n", whole ? bytes->n : 0,
                      whole ? (unsigned long long)hearth_hash64(bytes->p, bytes->n, 1) : 0);
    hearth_buf_release(bytes);
}

static inline void write_merges(const struct asked *a, struct hearth_buf *out)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    int64_t total = 0;
    struct hearth_merge_spec spec = merge_of(a), means = spec;
    struct hearth_buf bytes;

    write_flamegraph(a, &spec, out);
    means.mean = true;
    write_flamegraph(a, &means, out);
    spec.ret_total = &total;
    hearth_buf_init(&bytes, 0);
    write_bytes(out, "tree", hearth_query_tree(&a->query, &spec, &bytes, &err), &err, &bytes, true);
    hearth_buf_init(&bytes, 0);
    write_bytes(out, "pprof", hearth_query_pprof(&a->query, &spec, &bytes, &err), &err, &bytes,
                a->with_ids);
    hearth_buf_printf(out, "total %lld\n", (long long)total);
    hearth_buf_init(&bytes, 0);
    spec.ret_total = NULL;
    write_bytes(out, "dot", hearth_query_dot(&a->query, &spec, 0, &bytes, &err), &err, &bytes,
                true);
}

static inline void write_sandwich(const struct asked *a, struct hearth_buf *out)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    const struct hearth_merge_spec spec = merge_of(a);
    struct hearth_sandwich sandwich = {0};
    struct hearth_lines lines = {0};

    write_status(out, "sandwich",
                 hearth_query_sandwich(&a->query, &spec, a->function, &sandwich, &err), &err);
    hearth_buf_printf(out, "%lld %lld %lld\n", (long long)sandwich.self, (long long)sandwich.total,
                      (long long)sandwich.whole);
    for (size_t i = 0; i < sandwich.n_callers; i++) {
        hearth_buf_printf(out, HEARTH_STR_FMT " %lld\n", HEARTH_STR_ARG(sandwich.callers[i].name),
                          (long long)sandwich.callers[i].total);
    }
    write_status(out, "lines", hearth_query_lines(&a->query, &spec, a->function, &lines, &err),
                 &err);
    for (size_t i = 0; i < lines.n_lines; i++) {
        hearth_buf_printf(out, HEARTH_STR_FMT ":%lld %lld %lld\n",
                          HEARTH_STR_ARG(lines.lines[i].file), (long long)lines.lines[i].line,
                          (long long)lines.lines[i].self, (long long)lines.lines[i].total);
    }
}

static inline void write_functions(struct asked *a, struct hearth_buf *out)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    const struct hearth_merge_spec spec = merge_of(a);
    const struct hearth_top_spec by_total = {.sort = HEARTH_TOP_BY_TOTAL, .limit = 50};
    struct hearth_top top = {0};

    write_status(out, "top", hearth_query_top(&a->query, &spec, &by_total, &top, &err), &err);
    hearth_buf_printf(out, "%lld rows, %lld\n", (long long)top.n_all, (long long)top.total);
    for (size_t i = 0; i < top.n_rows; i++) {
        hearth_buf_printf(out, HEARTH_STR_FMT " %lld %lld\n", HEARTH_STR_ARG(top.rows[i].name),
                          (long long)top.rows[i].self, (long long)top.rows[i].total);
    }
    a->function = top.n_rows > 0 ? top.rows[top.n_rows / 2].name : HEARTH_STR("main");
    write_sandwich(a, out);
}

static inline void write_diff(const struct asked *a, struct hearth_buf *out)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    const struct hearth_merge_spec spec = merge_of(a);
    struct hearth_query left = a->query, right = a->query;
    struct hearth_flame_diff diff = {0};

    left.end_ms = right.start_ms = left.start_ms + (left.end_ms - left.start_ms) / 3;
    write_status(out, "diff", hearth_query_diff(&left, &spec, &right, &spec, NULL, &diff, &err),
                 &err);
    hearth_buf_printf(out, "%lld %lld\n", (long long)diff.left_total, (long long)diff.right_total);
    for (size_t i = 0; i < diff.n_levels; i++) {
        for (size_t k = 0; k < diff.levels[i].n; k++) {
            hearth_buf_printf(out, " %lld", (long long)diff.levels[i].values[k]);
        }
    }
}

/* ---- over time ---- */

static inline void write_exemplar(const struct asked *a, const struct hearth_exemplar *exemplar,
                                  struct hearth_buf *out)
{
    hearth_buf_printf(out, " [%d %lld", exemplar->has_profile, (long long)exemplar->value);
    if (a->with_ids) {
        hearth_buf_printf(out, " %lld %d/%lld ", (long long)exemplar->ts_ms,
                          (int)exemplar->profile.writer_id,
                          (long long)exemplar->profile.profile_no);
        hearth_labels_format(&exemplar->labels, 0, out);
    }
    hearth_buf_printf(out, "]");
}

static inline void write_timeline(const struct asked *a, bool exemplars, struct hearth_buf *out)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    const struct hearth_timeseries_spec spec = {
        .profile_type = hearth_str_c(a->type),
        .selector = hearth_str_c(a->selector),
        .group_by = a->group_by,
        .n_group_by = a->n_group_by,
        .step_seconds = 1800,
        .exemplars = exemplars,
    };
    struct hearth_timeseries *series = NULL;
    size_t n = 0;

    write_status(out, "timeline", hearth_query_timeseries(&a->query, &spec, &series, &n, &err),
                 &err);
    for (size_t i = 0; i < n; i++) {
        write_label_set(out, &series[i].labels);
        for (size_t k = 0; k < series[i].n_points; k++) {
            hearth_buf_printf(out, " %lld:%.17g", (long long)series[i].points[k].ts_ms,
                              series[i].points[k].value);
            if (exemplars) {
                write_exemplar(a, &series[i].exemplars[k], out);
            }
        }
        hearth_buf_printf(out, "\n");
    }
}

static inline void write_function_timeline(const struct asked *a, struct hearth_buf *out)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    const struct hearth_function_timeline_spec spec = {.merge = merge_of(a),
                                                       .functions = &a->function,
                                                       .n_functions = 1,
                                                       .step_seconds = 3600,
                                                       .group_by = a->group_by,
                                                       .n_group_by = a->n_group_by};
    struct hearth_function_series *series = NULL;
    size_t n = 0;

    write_status(out, "function timeline",
                 hearth_query_function_timeline(&a->query, &spec, &series, &n, &err), &err);
    for (size_t i = 0; i < n; i++) {
        write_label_set(out, &series[i].labels);
        for (size_t k = 0; k < series[i].n_points; k++) {
            hearth_buf_printf(out, " %lld/%lld", (long long)series[i].points[k].self,
                              (long long)series[i].points[k].total);
        }
        hearth_buf_printf(out, "\n");
    }
}

static inline void write_heatmap(const struct asked *a, struct hearth_buf *out)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    const struct hearth_heatmap_spec spec = {.merge = merge_of(a),
                                             .group_by = a->group_by,
                                             .n_group_by = a->n_group_by,
                                             .step_seconds = 3600};
    struct hearth_heatmap heat = {0};

    write_status(out, "heatmap", hearth_query_heatmap(&a->query, &spec, &heat, &err), &err);
    for (size_t i = 0; i < heat.n_series; i++) {
        write_label_set(out, &heat.series[i].labels);
        for (size_t s = 0; s < heat.series[i].n_slots; s++) {
            for (size_t c = 0; c < 20; c++) {
                hearth_buf_printf(out, " %d", (int)heat.series[i].slots[s].counts[c]);
            }
        }
        hearth_buf_printf(out, "\n");
    }
}

static inline void write_label_stats(const struct asked *a, const char *label,
                                     struct hearth_buf *out)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    const struct hearth_label_stats_spec spec = {hearth_str_c(a->type), hearth_str_c(a->selector),
                                                 hearth_str_c(label), 0};
    struct hearth_label_stat *stats = NULL;
    size_t n = 0;
    int64_t n_all = 0;

    write_status(out, "label stats",
                 hearth_query_label_stats(&a->query, &spec, &stats, &n, &n_all, &err), &err);
    for (size_t i = 0; i < n; i++) {
        hearth_buf_printf(out, HEARTH_STR_FMT " %lld %lld %lld %lld %lld %.17g %.17g\n",
                          HEARTH_STR_ARG(stats[i].value), (long long)stats[i].n_profiles,
                          (long long)stats[i].sum, (long long)stats[i].min, (long long)stats[i].max,
                          (long long)stats[i].n_series, stats[i].mean, stats[i].deviation);
    }
}

/* ---- plans and lists ---- */

static inline void write_plan(const struct asked *a, struct hearth_buf *out)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    const struct hearth_merge_spec spec = merge_of(a);
    struct hearth_explanation plan = {0};
    struct hearth_analysis analysis = {0};

    write_status(out, "explain", hearth_query_explain_merge(&a->query, &spec, &plan, &err), &err);
    hearth_buf_printf(out, "%lld services, %lld series, %lld rows, %lld bytes\n",
                      (long long)plan.n_services, (long long)plan.n_series, (long long)plan.n_rows,
                      (long long)plan.n_bytes);
    for (size_t i = 0; i < plan.n_legs; i++) {
        hearth_buf_printf(out, "%d whole %d, %lld series, %lld rows\n", (int)plan.legs[i].source,
                          plan.legs[i].whole_service, (long long)plan.legs[i].n_series,
                          (long long)plan.legs[i].n_rows);
    }
    write_status(out, "analyze",
                 hearth_query_analyze(&a->query, hearth_str_c(a->selector), &analysis, &err), &err);
    hearth_buf_printf(out, "%lld series, %lld bytes\n", (long long)analysis.n_series,
                      (long long)analysis.n_bytes);
}

static inline void write_listed(const struct asked *a, struct hearth_buf *out)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    const struct hearth_listed_filter filter = {.selector = hearth_str_c(a->selector)};
    const struct hearth_listed_page page = {.limit = 1000};
    const struct hearth_str labels[] = {HEARTH_STR("service_name"), HEARTH_STR("team"),
                                        HEARTH_STR("env")};
    struct hearth_listed_uploads uploads = {0};
    struct hearth_facets facets = {0};

    write_status(out, "listed", hearth_listed_uploads(&a->query, &filter, &page, &uploads, &err),
                 &err);
    for (size_t i = 0; i < uploads.n; i++) {
        const struct hearth_listed_upload *u = &uploads.v[i];
        hearth_buf_printf(out, "%lld %lld %lld ", (long long)u->ts_ns,
                          a->with_ids ? (long long)u->id.profile_no : 0, (long long)u->n_series);
        write_label_set(out, &u->labels);
    }
    const struct hearth_facet_spec spec = {.labels = labels, .n_labels = 3};
    write_status(out, "facets", hearth_listed_facets(&a->query, &filter, &spec, &facets, &err),
                 &err);
    for (size_t i = 0; i < facets.n; i++) {
        for (size_t k = 0; k < facets.v[i].n_values; k++) {
            hearth_buf_printf(out, HEARTH_STR_FMT " %lld\n",
                              HEARTH_STR_ARG(facets.v[i].values[k].value),
                              (long long)facets.v[i].values[k].n_uploads);
        }
    }
}

/* All answers. */
static inline void write_answers(struct asked *a, struct hearth_buf *out)
{
    write_labels(a, out);
    write_merges(a, out);
    write_functions(a, out);
    write_diff(a, out);
    write_timeline(a, false, out);
    write_timeline(a, true, out);
    write_function_timeline(a, out);
    write_heatmap(a, out);
    write_label_stats(a, "team", out);
    write_label_stats(a, "service_name", out);
    write_listed(a, out);
    if (a->with_ids) {
        write_plan(a, out);
    }
    assert_false(hearth_buf_failed(out));
}

#endif
