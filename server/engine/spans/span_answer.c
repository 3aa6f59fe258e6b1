/*
 * span_answer.c -- the answer about a span or trace: its samples; otherwise the profiles taken
 * while it ran; otherwise why there are none, and what was searched.
 */
#include "hearth/engine/plan.h"
#include "hearth/selector/timeexpr.h"

#include "spans/span_lookup.h"

#include <assert.h>
#include <stdlib.h>

#define MAX_WINDOWS  20 /* selectors of one trace */
#define MAX_SERVICES 50 /* services in a selector */

struct answer_state {
    const struct hearth_query *query;
    const struct hearth_lookup_options *options;
    const struct hearth_lookup_subject *subject;
    struct hearth_found *found;
    struct hearth_buf searched;
    struct hearth_str reason;
};

/* ---- exact ---- */

/* Make a selector of the services; it selects everything if they are too many. */
static enum hearth_status make_service_selector(const struct answer_state *answer,
                                                const struct hearth_str *services, size_t n,
                                                struct hearth_str *ret, struct hearth_err *err)
{
    struct hearth_buf text, value;

    hearth_buf_init(&text, 0);
    hearth_buf_init(&value, 0);

    assert(services != NULL || n == 0);

    /* Join the services with '|'; several make a regular expression. */
    for (size_t i = 0; i < n; i++) {
        hearth_buf_cstr(&value, i == 0 ? "" : "|");
        for (size_t k = 0; k < services[i].n; k++) {
            char c = services[i].p[k];
            if (n > 1 && strchr("\\.+*?()|[]{}^$", c) != NULL && c != '\0') {
                hearth_buf_byte(&value, '\\');
            }
            hearth_buf_byte(&value, (unsigned char)c);
        }
    }

    /* Write the matcher, with the text quoted. */
    hearth_buf_cstr(&text, "{");
    if (n > 0 && n <= MAX_SERVICES) {
        hearth_buf_printf(&text, "%s%s\"", HEARTH_LABEL_SERVICE, n == 1 ? "=" : "=~");
        for (size_t k = 0; k < value.n; k++) {
            if (value.p[k] == '"' || value.p[k] == '\\') {
                hearth_buf_byte(&text, '\\');
            }
            hearth_buf_byte(&text, (unsigned char)value.p[k]);
        }
        hearth_buf_cstr(&text, "\"");
    }

    /* Give the selector. */
    hearth_buf_cstr(&text, "}");
    *ret = hearth_arena_str(answer->query->call.arena, hearth_buf_view(&text));
    bool failed = hearth_buf_failed(&text) || hearth_buf_failed(&value) || ret->p == NULL;
    hearth_buf_release(&text);
    hearth_buf_release(&value);

    return failed ? HEARTH_FAIL_ARENA(err, answer->query->call.arena) : HEARTH_OK;
}

static int64_t round_down_ms(int64_t ns)
{
    return ns / HEARTH_NS_PER_MS - (ns % HEARTH_NS_PER_MS < 0);
}

static int64_t round_up_ms(int64_t ns)
{
    return ns / HEARTH_NS_PER_MS + (ns % HEARTH_NS_PER_MS > 0);
}

/* Find the stored span; NULL: it is not stored, or the arena is full. */
static const struct hearth_stored_span *find_stored_span(const struct answer_state *answer,
                                                         uint64_t span_id)
{
    const struct hearth_lookup_subject *subject = answer->subject;

    for (size_t g = 0; g < subject->n_groups; g++) {
        const struct hearth_span *span = hearth_stored_span_in(subject->groups[g], span_id);
        if (span != NULL) {
            return hearth_stored_span_make(subject->groups[g], span, answer->query->call.arena);
        }
    }

    return NULL;
}

static enum hearth_status answer_exact(struct answer_state *answer,
                                       const struct hearth_exact *exact, struct hearth_err *err)
{
    struct hearth_found *found = answer->found;

    /* Copy the result. */
    found->certainty = HEARTH_CERTAINTY_EXACT;
    found->types = exact->types;
    found->n_types = exact->n_types;
    found->profiles = exact->profiles;
    found->n_profiles = exact->n_profiles;
    found->n_all_profiles = exact->n_all_profiles;
    found->start_ms = round_down_ms(exact->first_ns);
    found->end_ms = round_up_ms(exact->last_ns);
    found->span_ids = exact->span_ids;
    found->n_span_ids = exact->n_span_ids;
    found->trace_ids = exact->trace_ids;
    found->n_trace_ids = exact->n_trace_ids;
    found->spans = exact->spans;
    found->n_spans = exact->n_spans;

    /* Add the stored spans, and a selector of the services. */
    for (size_t i = 0; i < found->n_spans; i++) {
        found->spans[i].stored = find_stored_span(answer, found->spans[i].span_id);
    }

    return make_service_selector(answer, exact->services, exact->n_services, &found->selector, err);
}

/* ---- by window ---- */

struct span_window {
    struct hearth_str selector, service;
    int64_t start_ns, end_ns;
};

struct windows {
    struct span_window v[MAX_WINDOWS];
    size_t n;
    bool is_cut;
};

/* Add a window; windows with the same selector are joined. */
static void add_span_window(struct windows *windows, const struct span_window *more)
{
    assert(windows->n <= MAX_WINDOWS);

    for (size_t i = 0; i < windows->n; i++) {
        struct span_window *at = &windows->v[i];
        if (hearth_str_eq(at->selector, more->selector)) {
            at->start_ns = more->start_ns < at->start_ns ? more->start_ns : at->start_ns;
            at->end_ns = more->end_ns > at->end_ns ? more->end_ns : at->end_ns;
            return;
        }
    }

    if (windows->n == MAX_WINDOWS) {
        windows->is_cut = true;
        return;
    }

    windows->v[windows->n++] = *more;
}

static struct hearth_str format_span_id(const struct answer_state *answer, uint64_t id)
{
    char text[HEARTH_SPAN_ID_TEXT + 1];
    hearth_span_id_format(id, text);
    return hearth_arena_str(answer->query->call.arena, hearth_str_c(id == 0 ? "" : text));
}

static struct hearth_str format_trace_id(const struct answer_state *answer,
                                         struct hearth_trace_id id)
{
    char text[HEARTH_TRACE_ID_TEXT + 1];
    hearth_trace_id_format(id, text);
    return hearth_arena_str(answer->query->call.arena,
                            hearth_str_c(hearth_trace_id_is_none(id) ? "" : text));
}

/*
 * Fill in ids and name for a custom selector, spelled as in answers; an id that is not a number
 * stays as requested.
 */
static void fill_known_ids(const struct answer_state *answer,
                           const struct hearth_stored_span *stored, struct hearth_known_span *known)
{
    const struct hearth_lookup_subject *subject = answer->subject;
    struct hearth_arena *arena = answer->query->call.arena;

    if (stored != NULL) {
        bool is_raw = stored->segment.n == 0;
        const char *in_segment = is_raw ? ""
                                        : hearth_arena_printf(arena, HEARTH_STR_FMT "/%lld",
                                                              HEARTH_STR_ARG(stored->segment),
                                                              (long long)stored->span_id);
        known->span_id =
            is_raw ? format_span_id(answer, stored->span_id) : hearth_str_c(in_segment);
        known->trace_id = is_raw ? format_trace_id(answer, stored->trace) : stored->trace_text;
        known->name = stored->span->name;
    } else if (subject->asked->is_trace) {
        known->trace_id =
            subject->n_traces > 0 ? format_trace_id(answer, subject->traces[0]) : HEARTH_STR("");
    } else if (subject->n_spans > 0) {
        known->span_id = hearth_lookup_is_text(subject->asked->id)
                             ? subject->asked->id
                             : format_span_id(answer, subject->spans[0]);
    }
}

/*
 * Choose start and end: the caller's values; otherwise those of the stored span (NULL: not stored);
 * otherwise each other. False: neither is known.
 */
static bool choose_window_times(const struct hearth_span_subject *asked,
                                const struct hearth_span *span, struct span_window *window)
{
    int64_t start_ns = asked->start_ns, end_ns = asked->end_ns;

    if (start_ns == 0) {
        start_ns = span != NULL ? span->start_ns : end_ns;
        start_ns = end_ns != 0 && end_ns < start_ns ? end_ns : start_ns;
    }

    if (end_ns == 0) {
        end_ns = span != NULL && span->end_ns > start_ns ? span->end_ns : start_ns;
    }

    window->start_ns = start_ns;
    window->end_ns = end_ns;

    return span != NULL || asked->start_ns != 0 || asked->end_ns != 0;
}

/* Make a window from the caller's knowledge, completed by the stored span (NULL: not stored). */
static enum hearth_status make_span_window(struct answer_state *answer,
                                           const struct hearth_stored_span *stored,
                                           struct windows *windows, struct hearth_err *err)
{
    const struct hearth_span_subject *asked = answer->subject->asked;
    const struct hearth_span *span = stored == NULL ? NULL : stored->span;
    struct hearth_arena *arena = answer->query->call.arena;
    size_t n_stored = span == NULL ? 0 : span->n_tags, n = 0;
    struct hearth_span_tag *tags =
        hearth_arena_array(arena, asked->n_tags + n_stored, sizeof *tags);

    if (tags == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    /* Tags of the caller precede tags of the stored span. */
    for (size_t i = 0; i < asked->n_tags; i++) {
        tags[n++] = asked->tags[i];
    }

    for (size_t i = 0; i < n_stored; i++) {
        tags[n++] = span->tags[i];
    }

    /* Without a time there is no window. */
    struct span_window window = {.service = asked->service};
    if (window.service.n == 0 && stored != NULL) {
        window.service = stored->service;
    }

    if (!choose_window_times(asked, span, &window)) {
        if (!answer->subject->is_expired) {
            answer->reason =
                answer->options->n_profile_types > 0
                    ? HEARTH_STR("no sample of these profile types carries the id, and its time is "
                                 "unknown: no span with it is stored, and no start and end are "
                                 "given")
                    : HEARTH_STR("no sample carries the id, and its time is unknown: no span with "
                                 "it is stored, and no start and end are given");
        }
        return HEARTH_OK;
    }

    /* Make the selector from what is known. */
    struct hearth_known_span known = {.service = window.service, .tags = tags, .n_tags = n};
    if (answer->options->rules.query.n > 0) {
        fill_known_ids(answer, stored, &known);
    }

    if (arena->refused) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    HEARTH_TRY(hearth_span_selector(&answer->options->rules, &known, arena, &window.selector,
                                    &answer->reason, err));
    if (window.selector.n > 0) {
        add_span_window(windows, &window);
    }

    return HEARTH_OK;
}

static enum hearth_status make_span_windows(struct answer_state *answer, struct windows *windows,
                                            struct hearth_err *err)
{
    const struct hearth_lookup_subject *subject = answer->subject;

    if (!subject->asked->is_trace) {
        return make_span_window(answer, subject->stored, windows, err);
    }

    /* A trace has a window for each stored span. */
    for (size_t g = 0; g < subject->n_groups; g++) {
        const struct hearth_stored_group *group = subject->groups[g];
        for (size_t i = 0; i < group->n_spans; i++) {
            const struct hearth_stored_span *stored =
                hearth_stored_span_make(group, &group->spans[i], answer->query->call.arena);
            if (stored == NULL) {
                return HEARTH_FAIL_ARENA(err, answer->query->call.arena);
            }
            HEARTH_TRY(make_span_window(answer, stored, windows, err));
        }
    }

    return subject->n_groups > 0 ? HEARTH_OK : make_span_window(answer, NULL, windows, err);
}

/*
 * Add the result of a window to the answer; the window skipped profiles that earlier ones counted.
 */
static enum hearth_status join_window_result(struct answer_state *answer,
                                             const struct hearth_found *more,
                                             struct hearth_err *err)
{
    struct hearth_found *found = answer->found;
    struct hearth_arena *arena = answer->query->call.arena;
    size_t n_types = found->n_types, n_profiles = found->n_profiles;
    struct hearth_found_type *types =
        hearth_arena_array(arena, n_types + more->n_types, sizeof types[0]);
    struct hearth_found_profile *profiles =
        hearth_arena_array(arena, n_profiles + more->n_profiles, sizeof profiles[0]);

    /* Join the types; both lists are sorted. */
    if (types == NULL || profiles == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    size_t a = 0, b = 0, n = 0;
    while (a < n_types || b < more->n_types) {
        int order = a == n_types ? 1
                    : b == more->n_types
                        ? -1
                        : hearth_str_cmp(found->types[a].profile_type, more->types[b].profile_type);
        types[n] = order <= 0 ? found->types[a++] : more->types[b++];
        if (order == 0) {
            const struct hearth_found_type *other = &more->types[b++];
            types[n].n_profiles += other->n_profiles;
            if (__builtin_add_overflow(types[n].total, other->total, &types[n].total)) {
                return HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE, "a total of profiles exceeds 64 bits");
            }
        }
        n++;
    }

    found->types = types;
    found->n_types = n;

    /* Join the profiles; both lists are sorted by time. */
    for (a = 0, b = 0, n = 0; a < n_profiles || b < more->n_profiles; n++) {
        bool first = b == more->n_profiles ||
                     (a < n_profiles && found->profiles[a].time_ns <= more->profiles[b].time_ns);
        profiles[n] = first ? found->profiles[a++] : more->profiles[b++];
    }

    found->profiles = profiles;
    found->n_profiles = n < answer->options->max_profiles ? n : answer->options->max_profiles;
    found->n_all_profiles += more->n_all_profiles;

    /* Join the times. */
    if (more->certainty == HEARTH_CERTAINTY_WINDOW) {
        bool first = found->certainty != HEARTH_CERTAINTY_WINDOW;
        found->certainty = HEARTH_CERTAINTY_WINDOW;
        found->start_ms =
            first || more->start_ms < found->start_ms ? more->start_ms : found->start_ms;
        found->end_ms = first || more->end_ms > found->end_ms ? more->end_ms : found->end_ms;
    }

    return HEARTH_OK;
}

static int compare_service_names(const void *left, const void *right)
{
    struct hearth_str a, b;
    memcpy(&a, left, sizeof a);
    memcpy(&b, right, sizeof b);
    return hearth_str_cmp(a, b);
}

/* Make one selector that covers the selectors of all windows. */
static enum hearth_status join_window_selectors(struct answer_state *answer,
                                                const struct windows *windows,
                                                struct hearth_err *err)
{
    struct hearth_str services[MAX_WINDOWS];
    size_t n = 0;

    if (windows->n == 1) {
        answer->found->selector = windows->v[0].selector;
        return HEARTH_OK;
    }

    for (size_t i = 0; i < windows->n; i++) {
        services[i] = windows->v[i].service;
    }

    /* Each service once. */
    qsort(services, windows->n, sizeof services[0], compare_service_names);
    for (size_t i = 0; i < windows->n; i++) {
        if (n == 0 || !hearth_str_eq(services[n - 1], services[i])) {
            services[n++] = services[i];
        }
    }

    return make_service_selector(answer, services, n, &answer->found->selector, err);
}

/* Search each window. of_ids: why nothing was found by ids. */
static enum hearth_status search_each_window(struct answer_state *answer,
                                             const struct windows *windows,
                                             struct hearth_str of_ids, struct hearth_idmap *seen,
                                             struct hearth_err *err)
{
    for (size_t i = 0; i < windows->n; i++) {
        const struct hearth_span_window window = {
            .seen = windows->n > 1 ? seen : NULL,
            .selector = windows->v[i].selector,
            .start_ns = windows->v[i].start_ns,
            .end_ns = windows->v[i].end_ns,
            .pad_ns = answer->options->pad_ns,
            .profile_types = answer->options->profile_types,
            .n_profile_types = answer->options->n_profile_types,
            .max_profiles = answer->options->max_profiles,
        };
        struct hearth_found found;

        /* Search, and join the result. */
        HEARTH_TRY(hearth_span_window(answer->query, &window, &found, err));
        HEARTH_TRY(join_window_result(answer, &found, err));

        /* Describe the search and its outcome. */
        hearth_buf_printf(&answer->searched, "%s%s", answer->searched.n > 0 ? "; " : "",
                          i == 0 ? "by window: " : "");
        hearth_buf_str(&answer->searched, found.searched);
        answer->reason = found.reason;
        if (answer->subject->asked->id.n > 0 && found.reason.n > 0) {
            answer->reason = hearth_str_c(hearth_arena_printf(
                answer->query->call.arena, HEARTH_STR_FMT "; by window: " HEARTH_STR_FMT,
                HEARTH_STR_ARG(of_ids), HEARTH_STR_ARG(found.reason)));
        }
    }

    return HEARTH_OK;
}

static enum hearth_status search_windows(struct answer_state *answer, struct hearth_err *err)
{
    struct windows windows = {0};
    struct hearth_idmap seen;
    const struct hearth_str of_ids =
        answer->reason; /* making windows sets the reason if there are none */

    HEARTH_TRY(make_span_windows(answer, &windows, err));
    hearth_idmap_init(&seen);
    enum hearth_status status = search_each_window(answer, &windows, of_ids, &seen, err);
    hearth_idmap_release(&seen);
    HEARTH_TRY(status);
    if (windows.is_cut) {
        hearth_buf_printf(&answer->searched, "; only %d of its services' selectors", MAX_WINDOWS);
    }

    return windows.n > 0 ? join_window_selectors(answer, &windows, err) : HEARTH_OK;
}

/* ---- texts ---- */

static void describe_ids(struct answer_state *answer)
{
    const struct hearth_lookup_subject *subject = answer->subject;
    struct hearth_buf *out = &answer->searched;

    /* Ids of spans or traces, in all their meanings. */
    for (size_t i = 0; i < subject->n_spans; i++) {
        char text[HEARTH_SPAN_ID_TEXT + 1];
        hearth_span_id_format(subject->spans[i], text);
        hearth_buf_printf(out, "%s%s", i == 0 ? "samples of span " : " or ", text);
    }

    for (size_t i = 0; i < subject->n_traces; i++) {
        char text[HEARTH_TRACE_ID_TEXT + 1];
        hearth_trace_id_format(subject->traces[i], text);
        hearth_buf_printf(out, "%s%s", i == 0 ? "samples of trace " : " or ", text);
    }

    /* Stored spans of a trace are searched too. */
    if (subject->asked->is_trace && subject->n_traces > 0) {
        size_t n = 0;
        for (size_t g = 0; g < subject->n_groups; g++) {
            n += subject->groups[g]->n_spans;
        }
        hearth_buf_printf(out, ", and of %zu spans that are stored of it", n);
    }
}

/* Describe which samples can be found at all. */
static void describe_retention(struct answer_state *answer, int64_t since_ns)
{
    struct hearth_retention keep;
    struct hearth_limits limits;
    struct hearth_buf *out = &answer->searched;
    char moment[48];

    /* Nothing was searched by id without an id. */
    hearth_call_limits(&answer->query->call, &limits);
    hearth_store_retention(answer->query->call.engine->store, answer->query->call.tenant, &keep);
    if (answer->subject->asked->id.n == 0) {
        return;
    }

    if (!answer->subject->asked->is_trace) {
        hearth_buf_cstr(out, ", then those whose local root it is");
    }

    /* Limits of what is stored and searched. */
    if (since_ns > 0) {
        hearth_buf_printf(out, ", stored since %s, when the index of spans begins",
                          hearth_plan_moment(since_ns, moment));
    }

    int64_t kept_from_ns = hearth_plan_profiles_from(&keep, hearth_clock_wall_ns());
    if (kept_from_ns > INT64_MIN) {
        hearth_buf_printf(out, "; samples are kept from %s on (retain-raw)",
                          hearth_plan_moment(kept_from_ns, moment));
    }

    if (limits.max_query_lookback_ns > 0) {
        hearth_buf_printf(out, ", and looked for from %s on (max-query-lookback)",
                          hearth_plan_moment(hearth_lookup_from_ns(&limits), moment));
    }

    if (keep.spans_ns > 0) {
        hearth_duration_format(keep.spans_ns, moment);
        hearth_buf_printf(out, ", spans of traces for %s (retain-spans)", moment);
    }
}

static enum hearth_status finish_answer(struct answer_state *answer, struct hearth_err *err)
{
    struct hearth_found *found = answer->found;

    found->searched =
        hearth_arena_str(answer->query->call.arena, hearth_buf_view(&answer->searched));
    found->reason = found->certainty == HEARTH_CERTAINTY_NONE ? answer->reason : HEARTH_STR("");
    if (found->reason.n > 0 && answer->subject->is_cut) {
        found->reason = hearth_str_c(hearth_arena_printf(
            answer->query->call.arena,
            HEARTH_STR_FMT "; of the profiles that may carry it the latest were read, as many as "
                           "max-lookup-profiles allows",
            HEARTH_STR_ARG(found->reason)));
    }

    return hearth_buf_failed(&answer->searched) || found->searched.p == NULL
               ? HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory to say what was searched")
               : HEARTH_OK;
}

/* A stored span is shown even without samples. */
static enum hearth_status show_stored_span(struct answer_state *answer, struct hearth_err *err)
{
    const struct hearth_stored_span *stored = answer->subject->stored;
    struct hearth_found *found = answer->found;

    if (stored == NULL) {
        return HEARTH_OK;
    }

    found->spans = hearth_arena_zalloc(answer->query->call.arena, sizeof found->spans[0]);
    if (found->spans == NULL) {
        return HEARTH_FAIL_ARENA(err, answer->query->call.arena);
    }

    found->spans[0] = (struct hearth_found_span){
        .span_id = stored->span_id, .service = stored->service, .stored = stored};
    found->n_spans = 1;

    return HEARTH_OK;
}

static int compare_span_starts(const void *left, const void *right)
{
    const struct hearth_stored_span *const *a = left, *const *b = right;

    if ((*a)->span->start_ns != (*b)->span->start_ns) {
        return (*a)->span->start_ns < (*b)->span->start_ns ? -1 : 1;
    }
    int order = hearth_str_cmp((*a)->segment, (*b)->segment);

    return order != 0 ? order : ((*a)->span_id > (*b)->span_id) - ((*a)->span_id < (*b)->span_id);
}

/*
 * List the stored span, or all spans of a trace, each once even if its tracer sent it again, up to
 * the limit.
 */
static enum hearth_status list_stored_spans(struct answer_state *answer, struct hearth_err *err)
{
    const struct hearth_lookup_subject *subject = answer->subject;
    struct hearth_found *found = answer->found;
    struct hearth_arena *arena = answer->query->call.arena;
    size_t n = subject->stored != NULL, at = 0;

    if (subject->max_stored == 0) {
        return HEARTH_OK;
    }

    /* Count the spans. */
    for (size_t g = 0; subject->asked->is_trace && g < subject->n_groups; g++) {
        n += subject->groups[g]->n_spans;
    }

    found->stored = hearth_arena_array(arena, n, sizeof found->stored[0]);
    if (found->stored == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    /* List them. */
    if (!subject->asked->is_trace && subject->stored != NULL) {
        found->stored[at++] = subject->stored;
    }

    for (size_t g = 0; subject->asked->is_trace && g < subject->n_groups; g++) {
        for (size_t i = 0; i < subject->groups[g]->n_spans; i++) {
            found->stored[at++] =
                hearth_stored_span_make(subject->groups[g], &subject->groups[g]->spans[i], arena);
        }
    }

    if (arena->refused) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    /* Sort them, and drop repeated ones. */
    if (at > 1) {
        qsort(found->stored, at, sizeof found->stored[0], compare_span_starts);
    }

    for (size_t i = 0; i < at && found->n_stored < subject->max_stored; i++) {
        if (i == 0 || compare_span_starts(&found->stored[i - 1], &found->stored[i]) != 0) {
            found->stored[found->n_stored++] = found->stored[i];
        }
    }

    return HEARTH_OK;
}

static enum hearth_status make_answer(struct answer_state *answer, struct hearth_err *err)
{
    const struct hearth_exact *exact = answer->subject->exact;

    /* Samples of the id itself. */
    describe_ids(answer);
    HEARTH_TRY(list_stored_spans(answer, err));
    if (exact[0].n_types > 0) {
        HEARTH_TRY(answer_exact(answer, &exact[0], err));
        return finish_answer(answer, err);
    }

    /* Samples whose local root it is. */
    describe_retention(answer, answer->subject->since_ns);
    if (exact[1].n_types > 0) {
        HEARTH_TRY(answer_exact(answer, &exact[1], err));
        return finish_answer(answer, err);
    }

    /* Neither: search by window. */
    answer->reason = answer->subject->is_expired
                         ? HEARTH_STR("the profiles with its samples are gone (retain-raw)")
                     : answer->options->n_profile_types > 0
                         ? HEARTH_STR("no sample of these profile types carries the id")
                         : HEARTH_STR("no sample carries the id");
    HEARTH_TRY(show_stored_span(answer, err));
    if (!answer->options->exact_only) {
        HEARTH_TRY(search_windows(answer, err));
    }

    return finish_answer(answer, err);
}

enum hearth_status hearth_lookup_answer(const struct hearth_query *query,
                                        const struct hearth_lookup_options *options,
                                        const struct hearth_lookup_subject *subject,
                                        struct hearth_found *ret, struct hearth_err *err)
{
    assert(query != NULL && ret != NULL);

    *ret = (struct hearth_found){0};
    struct answer_state answer = {
        .query = query, .options = options, .subject = subject, .found = ret};
    hearth_buf_init(&answer.searched, 0);
    enum hearth_status status = make_answer(&answer, err);
    hearth_buf_release(&answer.searched);

    return status;
}
