/*
 * span_profiles.h -- from traces to profiles and back: profiles of a span, their sums, and the
 * spans of a selection of profiles.
 *
 *   engine/spans/span_tags.c      makes a selector from the tags of a span
 *   engine/spans/span_window.c    finds profiles taken while a span ran
 *   engine/spans/span_exact.c     finds profiles whose samples carry ids, by the span index
 *   engine/spans/span_lookup.c    combines both with the stored span itself
 *   engine/spans/span_profile.c   merges the stack traces of spans
 *   engine/spans/span_counts.c    counts the spans of a selection over time
 *   engine/spans/span_rows.c      lists the spans of a selection
 *
 * Ownership: answers live in the query's arena; texts of requests are borrowed.
 * Threads:   safe; one request runs on one thread.
 * Errors:    as in query.h.
 * Source:    proto/hearth/v1/traces.proto; Grafana's documented "Trace to profiles" for tags and
 *            windows.
 */
#ifndef HEARTH_ENGINE_SPAN_PROFILES_H
#define HEARTH_ENGINE_SPAN_PROFILES_H

#include "hearth/base/hash.h"
#include "hearth/engine/query.h"
#include "hearth/model/labels.h"
#include "hearth/model/spans.h"
#include "hearth/model/trace_ids.h"

/* ---- tags to a selector ---- */

struct hearth_tag_mapping {
    struct hearth_str tag, label; /* label empty: the tag, '_' for invalid characters */
};

struct hearth_tag_rules {
    const struct hearth_tag_mapping *mappings; /* empty list: the six default mappings */
    size_t n_mappings;
    /* A custom selector, which may contain the variables ${__tags}, ${__span.tags.NAME},
     * ${__span.spanId}, ${__span.traceId}, ${__span.name} and ${__trace.traceId}. Empty:
     * {${__tags}}. */
    struct hearth_str query;
};

/* The caller's knowledge of a span; an empty text means unknown. */
struct hearth_known_span {
    struct hearth_str service;
    const struct hearth_span_tag *tags;
    size_t n_tags;
    struct hearth_str span_id, trace_id, name; /* values of the variables of the same names */
};

/*
 * Make the selector for a span: one matcher for each mapped tag that the span has, and service_name
 * from the span's service unless a tag sets it. The first of several equal labels counts, and the
 * first of several equal tags; an empty tag counts as absent.
 *
 * In a custom selector, ${__tags} may expand to nothing; the comma next to it is then removed.
 * After =~ and !~ a variable stands for its literal text. Every tag, id or name that the selector
 * uses must be known.
 *
 * The selector is empty, and *ret_reason a sentence, if something that the custom selector uses is
 * unknown, or if nothing is known that could select. INVALID_ARGUMENT, with the position: the
 * custom selector cannot be parsed, or uses an unknown variable. No side effects except on the
 * arena.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_span_selector(const struct hearth_tag_rules *rules,
                                        const struct hearth_known_span *span,
                                        struct hearth_arena *arena, struct hearth_str *ret_selector,
                                        struct hearth_str *ret_reason, struct hearth_err *err);

/* ---- what is found ---- */

enum hearth_certainty {
    HEARTH_CERTAINTY_NONE,
    HEARTH_CERTAINTY_EXACT,
    HEARTH_CERTAINTY_WINDOW,
};

struct hearth_found_type {
    struct hearth_str profile_type; /* the profile type's id of five parts */
    struct hearth_str unit;
    int64_t total, n_profiles;
};

struct hearth_found_profile {
    struct hearth_profile_id id;
    struct hearth_str service;
    struct hearth_labels labels; /* labels of the series of its first row */
    int64_t time_ns, duration_ns;
};

/* A stored span. */
struct hearth_stored_span {
    uint64_t span_id, parent_id; /* for SkyWalking's spans, numbers within the segment */
    struct hearth_trace_id trace;
    struct hearth_str service, instance;
    struct hearth_str trace_text, segment; /* SkyWalking's ids, which are texts; otherwise empty */
    const struct hearth_span *span;
};

struct hearth_found_span {
    uint64_t span_id;
    struct hearth_str service; /* empty: several services */
    struct hearth_found_type *types;
    size_t n_types;
    const struct hearth_stored_span *stored; /* NULL: the span is not stored */
};

struct hearth_found {
    enum hearth_certainty certainty;
    struct hearth_found_type *types; /* sorted by profile type */
    size_t n_types;
    struct hearth_found_profile *profiles; /* sorted by time, then id */
    size_t n_profiles;
    int64_t n_all_profiles;
    struct hearth_str selector; /* with start_ms and end_ms, selects these profiles again */
    int64_t start_ms, end_ms;
    uint64_t *span_ids;
    size_t n_span_ids;
    struct hearth_trace_id *trace_ids;
    size_t n_trace_ids;
    struct hearth_found_span *spans;
    size_t n_spans;
    const struct hearth_stored_span **stored; /* the span, or all of the trace by start */
    size_t n_stored;
    struct hearth_str searched, reason;
};

/*
 * Find the profiles of a selector whose [time, time + duration] overlaps [start_ns - pad_ns, end_ns
 * + pad_ns], ends included. Profiles that began more than span_window_lookback before the window
 * are ignored.
 *
 * profile_types: an empty list selects all; at most 100. max_profiles: 0 means 100.
 *
 * A profile that sample labels split into rows counts as one; its labels are those of its first
 * series, without the labels that name one of its types. start_ms and end_ms span the times of all
 * found profiles. `searched` is always set, `reason` if no profile was found; both tell since when
 * profiles are kept. INVALID_ARGUMENT: end_ns < start_ns, pad_ns < 0, a profile type or selector
 * that cannot be parsed, a window longer than max_query_range.
 */
struct hearth_span_window {
    struct hearth_str selector;
    int64_t start_ns, end_ns, pad_ns;
    const struct hearth_str *profile_types;
    size_t n_profile_types;
    size_t max_profiles;
    /* Profiles that other windows of the lookup counted; this one skips them. May be NULL. */
    struct hearth_idmap *seen;
};

HEARTH_MUST_CHECK
enum hearth_status hearth_span_window(const struct hearth_query *query, /* its range is ignored */
                                      const struct hearth_span_window *window,
                                      struct hearth_found *ret, struct hearth_err *err);

/* The span or trace to look up. */
struct hearth_span_subject {
    bool is_trace;
    struct hearth_str id; /* in any spelling; empty: search by window only */
    /* The caller's knowledge; omitted members are filled in from stored spans. */
    struct hearth_str service;
    const struct hearth_span_tag *tags;
    size_t n_tags;
    int64_t start_ns, end_ns; /* both 0: unknown */
};

struct hearth_lookup_options {
    const struct hearth_str *profile_types; /* empty list: all */
    size_t n_profile_types;
    struct hearth_tag_rules rules;
    int64_t pad_ns;
    bool exact_only;
    size_t max_profiles;
};

/*
 * Look up n_subjects spans or traces; ret has n_subjects elements. A subject without profiles has
 * certainty NONE, `searched` and `reason`. The query may have a `plan`: of the profiles that the
 * index of spans names, otherwise of those in the windows; stored spans and the index are read.
 */
HEARTH_MUST_CHECK
enum hearth_status
hearth_query_lookup_spans(const struct hearth_query *query, /* its range is ignored */
                          const struct hearth_span_subject *subjects, size_t n_subjects,
                          const struct hearth_lookup_options *options, struct hearth_found *ret,
                          struct hearth_err *err);

/* ---- merged stack traces of spans ---- */

enum hearth_span_profile_format {
    HEARTH_SPAN_FLAMEGRAPH,
    HEARTH_SPAN_TREE,
    HEARTH_SPAN_PPROF,
    HEARTH_SPAN_TOP,
};

struct hearth_span_profile_spec {
    struct hearth_merge_spec merge; /* profiles (ids) is ignored; selector may be empty */
    const struct hearth_str *span_ids, *local_root_ids, *trace_ids; /* in any spelling */
    size_t n_span_ids, n_local_root_ids, n_trace_ids;
    bool children;
    enum hearth_span_profile_format format;
};

struct hearth_span_profile {
    int64_t total;
    uint64_t *span_ids; /* the spans whose samples were summed, children included */
    size_t n_span_ids;
    struct hearth_flamegraph flamegraph; /* for FLAMEGRAPH */
    struct hearth_str bytes;             /* TREE, PPROF */
    struct hearth_top top;
};

/*
 * Merge the samples of all ids into one profile. The range 0, 0 covers all times at which the ids
 * are found. NOT_FOUND, with what was searched: no sample carries any of the ids. The query may
 * have a `plan`.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_query_span_profile(const struct hearth_query *query,
                                             const struct hearth_span_profile_spec *spec,
                                             struct hearth_span_profile *ret,
                                             struct hearth_err *err);

/* ---- spans of a selection ---- */

struct hearth_span_count_point {
    int64_t ts_ms, n_spans, value;
};

struct hearth_span_count_series {
    struct hearth_labels labels;
    struct hearth_span_count_point *points;
    size_t n_points;
    int64_t n_spans;
};

struct hearth_span_counts_spec {
    struct hearth_merge_spec merge;
    double step_seconds;
    const struct hearth_str *group_by; /* empty list: service_name */
    size_t n_group_by;
    int64_t limit; /* 0: all */
};

/*
 * Count the spans of a selection, per group and step. Series are sorted by n_spans descending, then
 * labels. A point at ts_ms, the first one included, covers the profiles of (ts_ms - step, ts_ms],
 * with times truncated to milliseconds: the same disjoint sets that hearth_query_span_rows covers
 * with whole_ms.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_query_span_counts(const struct hearth_query *query,
                                            const struct hearth_span_counts_spec *spec,
                                            struct hearth_span_count_series **ret, size_t *ret_n,
                                            struct hearth_err *err);

enum hearth_spans_by {
    HEARTH_SPANS_BY_SPAN,
    HEARTH_SPANS_BY_TRACE,
    HEARTH_SPANS_BY_LOCAL_ROOT,
    HEARTH_SPANS_BY_ENDPOINT,
    HEARTH_SPANS_BY_NAME,
};

struct hearth_span_row {
    uint64_t span_id, local_root_id; /* 0: none or several */
    struct hearth_trace_id trace;
    struct hearth_str name, endpoint, service; /* empty: none or several */
    int64_t value, n_profiles, first_ns, last_ns, n_spans;
    /* The stored span or local root. NULL: it is not stored, rows are grouped by something else, or
     * the row is beyond the first HEARTH_MAX_NAMED_ROWS of a page. */
    const struct hearth_stored_span *stored;
};

#define HEARTH_MAX_NAMED_ROWS 100

struct hearth_span_rows {
    struct hearth_span_row *rows; /* one page, sorted by value descending, then id */
    size_t n_rows;
    int64_t n_all;
    int64_t total, unlabelled; /* total: the rows of all pages plus unlabelled */
};

struct hearth_span_rows_spec {
    struct hearth_merge_spec merge; /* its stack filter restricts all values and counts */
    enum hearth_spans_by by;
    bool whole_ms;         /* include all of the range's last millisecond */
    int64_t limit, offset; /* limit 0: 100 */
};

HEARTH_MUST_CHECK
enum hearth_status hearth_query_span_rows(const struct hearth_query *query,
                                          const struct hearth_span_rows_spec *spec,
                                          struct hearth_span_rows *ret, struct hearth_err *err);

#endif
