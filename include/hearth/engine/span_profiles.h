/*
 * span_profiles.h -- from traces to profiles and back: which profiles a span has, what it cost, which spans burned a cost.
 *
 *   engine/spans/span_tags.c     tags of a span to a selector
 *   engine/spans/span_window.c   profiles that were being taken while something ran
 *   engine/spans/span_exact.c    profiles whose samples carry ids, by the span index
 *   engine/spans/span_lookup.c   both, and what is stored of the span itself
 *   engine/spans/span_profile.c  merged stack traces of spans
 *   engine/spans/span_counts.c, engine/spans/span_rows.c   how many, and which, of a selection
 *
 * Ownership: answers live in the query's arena; texts of requests are borrowed.
 * Threads:   safe; one request is one thread.
 * Errors:    as in query.h.
 * Source:    proto/hearth/v1/traces.proto; Grafana's documented "Trace to profiles" for tags and windows.
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
    struct hearth_str tag, label; /* label empty: the tag, with '_' for what labels cannot have */
};

struct hearth_tag_rules {
    const struct hearth_tag_mapping *mappings; /* none: the six defaults */
    size_t n_mappings;
    /* A custom selector with ${__tags}, ${__span.tags.NAME}, ${__span.spanId}, ${__span.traceId}, ${__span.name} and
     * ${__trace.traceId} in it; empty: {${__tags}}. */
    struct hearth_str query;
};

/* What is known of a span; empty: not known. */
struct hearth_known_span {
    struct hearth_str service;
    const struct hearth_span_tag *tags;
    size_t n_tags;
    struct hearth_str span_id, trace_id, name; /* what these variables of a query are */
};

/*
 * The selector for a span: matchers of the mapped tags that it has, service_name as its service unless a tag says it. The first
 * of several equal labels counts, and of several equal tags; an empty tag is none. What ${__tags} means may be nothing, and
 * goes with its comma; a tag, an id or a name that the query names has to be there. Behind =~ and !~ it means its text.
 * Empty, with a sentence in *ret_reason: something that the query names is not there, or nothing is known that could select.
 * INVALID_ARGUMENT, saying where: a query that cannot be read, variables it does not know. Pure but for the arena.
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
    struct hearth_str profile_type; /* id of five parts */
    struct hearth_str unit;
    int64_t total, n_profiles;
};

struct hearth_found_profile {
    struct hearth_profile_id id;
    struct hearth_str service;
    struct hearth_labels labels; /* of the series of its first row */
    int64_t time_ns, duration_ns;
};

/* A span as it was stored. */
struct hearth_stored_span {
    uint64_t span_id, parent_id; /* of SkyWalking: numbers within the segment */
    struct hearth_trace_id trace;
    struct hearth_str service, instance;
    struct hearth_str trace_text, segment; /* of SkyWalking, whose ids are texts; else empty */
    const struct hearth_span *span;
};

struct hearth_found_span {
    uint64_t span_id;
    struct hearth_str service; /* empty: of several */
    struct hearth_found_type *types;
    size_t n_types;
    const struct hearth_stored_span *stored; /* NULL: not stored */
};

struct hearth_found {
    enum hearth_certainty certainty;
    struct hearth_found_type *types; /* by profile type */
    size_t n_types;
    struct hearth_found_profile *profiles; /* by time, then id */
    size_t n_profiles;
    int64_t n_all_profiles;
    struct hearth_str selector; /* with start, end: to ask further */
    int64_t start_ms, end_ms;
    uint64_t *span_ids;
    size_t n_span_ids;
    struct hearth_trace_id *trace_ids;
    size_t n_trace_ids;
    struct hearth_found_span *spans;
    size_t n_spans;
    const struct hearth_stored_span **stored; /* of a trace all, by start; of a span itself */
    size_t n_stored;
    struct hearth_str searched, reason;
};

/*
 * Profiles of a selector with [time, time + duration] meeting [start_ns - pad_ns, end_ns + pad_ns], ends included. Profiles
 * that began more than span_window_lookback before it are not looked at. profile_types: none: all, at most 100.
 * max_profiles 0: 100. A profile that sample labels split is one; its labels are those of its first series, without those that
 * say one of its types. start_ms and end_ms hold the times of all that were found. `searched` is set in any
 * case, `reason` when there are none, both say from when on profiles are kept. INVALID_ARGUMENT: end_ns < start_ns, pad_ns < 0,
 * profile types or a selector that cannot be parsed, a window beyond max_query_range.
 */
struct hearth_span_window {
    struct hearth_str selector;
    int64_t start_ns, end_ns, pad_ns;
    const struct hearth_str *profile_types;
    size_t n_profile_types;
    size_t max_profiles;
    struct hearth_idmap *
        seen; /* of windows that belong together: what one has counted the next does not. NULL: alone */
};

HEARTH_MUST_CHECK
enum hearth_status
hearth_span_window(const struct hearth_query *query, /* its range is not looked at */
                   const struct hearth_span_window *window, struct hearth_found *ret,
                   struct hearth_err *err);

/* What is asked about. */
struct hearth_span_subject {
    bool is_trace;
    struct hearth_str id; /* in any spelling; empty: by window alone */
    /* What the caller knows; what is left out is taken from stored spans. */
    struct hearth_str service;
    const struct hearth_span_tag *tags;
    size_t n_tags;
    int64_t start_ns, end_ns; /* both 0: not known */
};

struct hearth_lookup_options {
    const struct hearth_str *profile_types; /* none: all */
    size_t n_profile_types;
    struct hearth_tag_rules rules;
    int64_t pad_ns;
    bool exact_only;
    size_t max_profiles;
};

/* A subject without profiles: certainty NONE with `searched` and `reason`. ret: [n_subjects]. */
HEARTH_MUST_CHECK
enum hearth_status
hearth_query_lookup_spans(const struct hearth_query *query, /* its range is not looked at */
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
    struct hearth_merge_spec merge; /* profiles (ids) is not looked at; selector may be empty */
    const struct hearth_str *span_ids, *local_root_ids, *trace_ids; /* in any spelling */
    size_t n_span_ids, n_local_root_ids, n_trace_ids;
    bool children;
    enum hearth_span_profile_format format;
};

struct hearth_span_profile {
    int64_t total;
    uint64_t *span_ids; /* counted; children included */
    size_t n_span_ids;
    struct hearth_flamegraph flamegraph; /* by the format */
    struct hearth_str bytes;             /* TREE, PPROF */
    struct hearth_top top;
};

/*
 * One profile of all ids together. A range of 0, 0 means wherever they are found. NOT_FOUND, saying what was searched, when no
 * sample carries any of them.
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
    const struct hearth_str *group_by; /* none: service_name */
    size_t n_group_by;
    int64_t limit; /* 0: all */
};

/*
 * By n_spans descending, then labels. A point at ts_ms has the profiles of (ts_ms - step, ts_ms], times cut to milliseconds,
 * the first one, too: as disjoint as what hearth_query_span_rows finds with whole_ms.
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
    uint64_t span_id, local_root_id; /* 0: none, or several */
    struct hearth_trace_id trace;
    struct hearth_str name, endpoint, service; /* empty: none, or several */
    int64_t value, n_profiles, first_ns, last_ns, n_spans;
    /* The span or local root; NULL: not stored, by what else, or beyond the first HEARTH_MAX_NAMED_ROWS of a page. */
    const struct hearth_stored_span *stored;
};

#define HEARTH_MAX_NAMED_ROWS 100

struct hearth_span_rows {
    struct hearth_span_row *rows; /* the page, by value descending, then id */
    size_t n_rows;
    int64_t n_all;
    int64_t total, unlabelled; /* the rows of all pages and unlabelled add up to total */
};

struct hearth_span_rows_spec {
    struct hearth_merge_spec merge; /* what passes its stacks counts, everywhere */
    enum hearth_spans_by by;
    bool whole_ms; /* all of the range's last millisecond counts, not its first nanosecond alone */
    int64_t limit, offset; /* limit 0: 100 */
};

HEARTH_MUST_CHECK
enum hearth_status hearth_query_span_rows(const struct hearth_query *query,
                                          const struct hearth_span_rows_spec *spec,
                                          struct hearth_span_rows *ret, struct hearth_err *err);

#endif
