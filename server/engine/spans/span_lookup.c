/*
 * span_lookup.c -- which profiles there are of spans and traces: those whose samples carry the id, else those that were being
 * taken while it ran.
 *
 * Everything that is asked about in one request is looked up together: the spans that are stored of its traces, then the
 * index, then the profiles it names, then the spans that it names. Only windows are looked at one by one.
 *
 * A span without samples of its own may be the local root of others; so its id is looked for as both, and the second counts
 * when the first finds nothing.
 */
#include "spans/span_lookup.h"

#include "hearth/engine/plan.h"

#include "spans/span_exact.h"
#include "spans/span_stored.h"

#include <stdlib.h>

struct lookup {
    const struct hearth_query *query;
    const struct hearth_lookup_options *options;
    struct hearth_limits limits;
    struct hearth_lookup_subject *subjects;
    size_t n;
    struct hearth_exact_id
        *ids; /* result_no: twice the subject's number, and one more of local roots */
    size_t n_ids, cap_ids;
    struct hearth_association *found;
    size_t n_found;
    bool is_cut;
    struct hearth_exact *exact; /* [2 * n] */
    int64_t since_ns;           /* of the index */
    int64_t kept_from_ns;       /* samples; INT64_MIN: all */
};

static enum hearth_status fail_arena(const struct lookup *lookup, struct hearth_err *err)
{
    return HEARTH_FAIL_ARENA(err, lookup->query->call.arena);
}

/* ---- what is asked ---- */

static enum hearth_status check_subject(const struct hearth_span_subject *asked, size_t i,
                                        struct hearth_err *err)
{
    const char *what = asked->is_trace ? "trace" : "span";
    struct hearth_trace_id traces[HEARTH_TRACE_ID_MEANINGS];
    uint64_t spans[HEARTH_SPAN_ID_MEANINGS];
    if (asked->id.n > 0 && (asked->is_trace ? hearth_trace_id_meanings(asked->id, traces)
                                            : hearth_span_id_meanings(asked->id, spans)) == 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "%s id \"%.*s\" is that of none", what,
                           asked->id.n > 64 ? 64 : (int)asked->id.n, asked->id.p);
    }
    if (asked->id.n == 0 && asked->service.n == 0 && asked->n_tags == 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "%s %zu has neither an id nor a service or tags", what, i + 1);
    }
    if (asked->id.n == 0 && asked->start_ns == 0 && asked->end_ns == 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "%s %zu has no id: its start and end are required", what, i + 1);
    }
    if (asked->end_ns != 0 && asked->end_ns < asked->start_ns) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "%s %zu ends before it begins", what,
                           i + 1);
    }
    return HEARTH_OK;
}

static enum hearth_status take_subjects(struct lookup *lookup,
                                        const struct hearth_span_subject *asked,
                                        struct hearth_err *err)
{
    struct hearth_arena *arena = lookup->query->call.arena;
    if (lookup->n > hearth_lookup_limit(lookup->limits.max_lookup_ids)) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "%zu spans or traces are asked about, max-lookup-ids allows %lld",
                           lookup->n, (long long)lookup->limits.max_lookup_ids);
    }
    lookup->subjects = hearth_arena_calloc(arena, lookup->n, sizeof lookup->subjects[0]);
    if (lookup->subjects == NULL) {
        return fail_arena(lookup, err);
    }
    for (size_t i = 0; i < lookup->n; i++) {
        struct hearth_lookup_subject *subject = &lookup->subjects[i];
        HEARTH_TRY(check_subject(&asked[i], i, err));
        subject->asked = &asked[i];
        if (asked[i].is_trace) {
            subject->n_traces = hearth_trace_id_meanings(asked[i].id, subject->traces);
        } else {
            subject->n_spans = hearth_span_id_meanings(asked[i].id, subject->spans);
        }
    }
    return HEARTH_OK;
}

static enum hearth_status add_group(const struct lookup *lookup,
                                    struct hearth_lookup_subject *subject,
                                    const struct hearth_stored_group *group, struct hearth_err *err)
{
    if (subject->n_groups == subject->cap_groups) {
        size_t cap = subject->cap_groups == 0 ? 8 : 2 * subject->cap_groups;
        const struct hearth_stored_group **v =
            hearth_arena_array(lookup->query->call.arena, cap, sizeof v[0]);
        if (v == NULL) {
            return fail_arena(lookup, err);
        }
        if (subject->n_groups > 0) {
            memcpy(v, subject->groups, subject->n_groups * sizeof v[0]);
        }
        subject->groups = v;
        subject->cap_groups = cap;
    }
    subject->groups[subject->n_groups++] = group;
    return HEARTH_OK;
}

/* ---- spans stored of traces, and segments that are asked about by their text ---- */

struct named {
    int64_t key;
    size_t subject;
};

static int by_key(const void *left, const void *right)
{
    const struct named *a = left, *b = right;
    if (a->key != b->key) {
        return a->key < b->key ? -1 : 1;
    }
    return (a->subject > b->subject) - (a->subject < b->subject);
}

static size_t first_of_key(const struct named *names, size_t n, int64_t key)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (names[mid].key < key) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low;
}

/* Give each group to those who asked for its key. */
static enum hearth_status hand_out(const struct lookup *lookup,
                                   const struct hearth_stored_groups *groups,
                                   const struct named *names, size_t n, bool by_trace,
                                   struct hearth_err *err)
{
    for (size_t g = 0; g < groups->n; g++) {
        const struct hearth_span_group *group = &groups->v[g].group;
        struct hearth_str id = by_trace ? group->trace_id : group->segment_id;
        int64_t key = hearth_trace_key(id, group->is_raw);
        size_t last = SIZE_MAX;
        for (size_t k = first_of_key(names, n, key); k < n && names[k].key == key; k++) {
            if (names[k].subject != last) {
                last = names[k].subject;
                HEARTH_TRY(add_group(lookup, &lookup->subjects[last], &groups->v[g], err));
            }
        }
    }
    return HEARTH_OK;
}

bool hearth_lookup_is_text(struct hearth_str id)
{
    uint64_t number;
    return id.n > 0 && !(id.n == HEARTH_SPAN_ID_TEXT && hearth_str_hex_to_u64(id, &number)) &&
           !hearth_str_to_u64(id, &number);
}

static enum hearth_status read_named(struct lookup *lookup, bool traces, bool *ret_is_cut,
                                     struct hearth_err *err)
{
    struct hearth_arena *arena = lookup->query->call.arena;
    size_t n = 0;
    struct hearth_str *texts =
        hearth_arena_array(arena, lookup->n * HEARTH_TRACE_TEXTS, sizeof texts[0]);
    struct named *names =
        hearth_arena_array(arena, lookup->n * HEARTH_TRACE_TEXTS, sizeof names[0]);
    if (texts == NULL || names == NULL) {
        return fail_arena(lookup, err);
    }
    for (size_t i = 0; i < lookup->n; i++) {
        const struct hearth_span_subject *asked = lookup->subjects[i].asked;
        size_t n_new = 0;
        if (traces && asked->is_trace && asked->id.n > 0) {
            HEARTH_TRY(hearth_stored_trace_texts(asked->id, arena, texts + n, &n_new, err));
        } else if (!traces && !asked->is_trace && hearth_lookup_is_text(asked->id)) {
            /* It may be that of a segment of SkyWalking. */
            texts[n] = asked->id;
            n_new = 1;
        }
        for (size_t k = 0; k < n_new; k++, n++) {
            names[n] = (struct named){hearth_trace_key(texts[n], false), i};
        }
    }
    if (n == 0) {
        return HEARTH_OK;
    }
    struct hearth_span_query asked = {.trace_ids = traces ? texts : NULL,
                                      .n_trace_ids = traces ? n : 0,
                                      .segment_ids = traces ? NULL : texts,
                                      .n_segment_ids = traces ? 0 : n};
    struct hearth_stored_groups groups;
    HEARTH_TRY(hearth_stored_groups_read(lookup->query, &asked, &groups, err));
    qsort(names, n, sizeof names[0], by_key);
    *ret_is_cut = *ret_is_cut || groups.is_cut;
    return hand_out(lookup, &groups, names, n, traces, err);
}

/* ---- the index ---- */

static enum hearth_status add_id(struct lookup *lookup, struct hearth_trace_id id, uint8_t of,
                                 size_t result_no, struct hearth_err *err)
{
    if (hearth_trace_id_is_none(id)) {
        return HEARTH_OK;
    }
    if (lookup->n_ids == lookup->cap_ids) {
        size_t cap = lookup->cap_ids == 0 ? 64 : 2 * lookup->cap_ids;
        struct hearth_exact_id *v = hearth_arena_array(lookup->query->call.arena, cap, sizeof v[0]);
        if (v == NULL) {
            return fail_arena(lookup, err);
        }
        if (lookup->n_ids > 0) {
            memcpy(v, lookup->ids, lookup->n_ids * sizeof v[0]);
        }
        lookup->ids = v;
        lookup->cap_ids = cap;
    }
    lookup->ids[lookup->n_ids++] =
        (struct hearth_exact_id){.id = id, .of = of, .result_no = (uint32_t)result_no};
    return HEARTH_OK;
}

static enum hearth_status add_profile_ids(struct lookup *lookup, const struct hearth_span *span,
                                          size_t i, struct hearth_err *err)
{
    uint64_t ids[HEARTH_SPAN_ID_MEANINGS];
    size_t n = hearth_stored_profile_ids(span, ids);
    for (size_t k = 0; k < n; k++) {
        HEARTH_TRY(add_id(lookup, (struct hearth_trace_id){0, ids[k]}, HEARTH_OF_SPAN, 2 * i, err));
    }
    return HEARTH_OK;
}

/* A trace is its id beside samples, and the ids of its spans, which some profilers have alone. */
static enum hearth_status add_trace_ids(struct lookup *lookup, size_t i, struct hearth_err *err)
{
    const struct hearth_lookup_subject *subject = &lookup->subjects[i];
    for (size_t k = 0; k < subject->n_traces; k++) {
        HEARTH_TRY(add_id(lookup, subject->traces[k], HEARTH_OF_TRACE, 2 * i, err));
    }
    for (size_t g = 0; g < subject->n_groups; g++) {
        const struct hearth_stored_group *group = subject->groups[g];
        for (size_t k = 0; k < group->n_spans && group->group.is_raw; k++) {
            struct hearth_trace_id id = {0, (uint64_t)group->spans[k].span_id};
            HEARTH_TRY(add_id(lookup, id, HEARTH_OF_SPAN, 2 * i, err));
            HEARTH_TRY(add_id(lookup, id, HEARTH_OF_LOCAL_ROOT, 2 * i, err));
            HEARTH_TRY(add_profile_ids(lookup, &group->spans[k], i, err));
        }
    }
    return HEARTH_OK;
}

static enum hearth_status name_ids(struct lookup *lookup, struct hearth_err *err)
{
    for (size_t i = 0; i < lookup->n; i++) {
        const struct hearth_lookup_subject *subject = &lookup->subjects[i];
        for (size_t k = 0; k < subject->n_spans; k++) {
            struct hearth_trace_id id = {0, subject->spans[k]};
            HEARTH_TRY(add_id(lookup, id, HEARTH_OF_SPAN, 2 * i, err));
            HEARTH_TRY(add_id(lookup, id, HEARTH_OF_LOCAL_ROOT, 2 * i + 1, err));
        }
        if (subject->asked->is_trace) {
            HEARTH_TRY(add_trace_ids(lookup, i, err));
        }
    }
    return HEARTH_OK;
}

static enum hearth_status ask_index(struct lookup *lookup, struct hearth_err *err)
{
    const struct hearth_query *query = lookup->query;
    struct hearth_span_question *questions =
        hearth_arena_array(query->call.arena, lookup->n_ids, sizeof questions[0]);
    if (questions == NULL) {
        return fail_arena(lookup, err);
    }
    for (size_t i = 0; i < lookup->n_ids; i++) {
        const struct hearth_exact_id *id = &lookup->ids[i];
        bool of_trace = lookup->subjects[id->result_no / 2].asked->is_trace;
        questions[i] = (struct hearth_span_question){
            hearth_trace_id_key(id->id),
            (uint8_t)(id->of | (of_trace ? 0 : HEARTH_OF_STORED_SPAN))};
    }
    if (lookup->n_ids == 0) {
        return HEARTH_OK;
    }
    return hearth_store_find_spans(HEARTH_CALL_SCOPE(&query->call), questions, lookup->n_ids,
                                   hearth_lookup_from_ns(&lookup->limits), INT64_MAX,
                                   hearth_lookup_limit(lookup->limits.max_lookup_profiles),
                                   &lookup->found, &lookup->n_found, &lookup->is_cut, err);
}

static enum hearth_status read_samples(struct lookup *lookup, struct hearth_exact **ret,
                                       struct hearth_err *err)
{
    const struct hearth_lookup_options *options = lookup->options;
    struct hearth_span_places places;
    struct hearth_exact *exact =
        hearth_arena_calloc(lookup->query->call.arena, 2 * lookup->n, sizeof exact[0]);
    if (exact == NULL) {
        return fail_arena(lookup, err);
    }
    HEARTH_TRY(hearth_span_places_of(lookup->found, lookup->n_found, lookup->query->call.arena,
                                     &places, err));
    const struct hearth_exact_search search = {.places = &places,
                                               .ids = lookup->ids,
                                               .n_ids = lookup->n_ids,
                                               .n_results = 2 * lookup->n,
                                               .profile_types = options->profile_types,
                                               .n_profile_types = options->n_profile_types,
                                               .max_profiles = options->max_profiles};
    *ret = exact;
    return hearth_exact_find(lookup->query, &search, exact, err);
}

/* Whose profiles the index still names although retention has taken them. */
static enum hearth_status find_expired(struct lookup *lookup, struct hearth_err *err)
{
    const struct hearth_query *query = lookup->query;
    struct hearth_retention keep;
    hearth_store_retention(query->call.engine->store, query->call.tenant, &keep);
    lookup->kept_from_ns = hearth_plan_profiles_from(&keep, hearth_clock_wall_ns());
    struct named *names = hearth_arena_array(query->call.arena, lookup->n_ids, sizeof names[0]);
    if (names == NULL) {
        return fail_arena(lookup, err);
    }
    for (size_t i = 0; i < lookup->n_ids; i++) {
        names[i] = (struct named){(int64_t)hearth_trace_id_key(lookup->ids[i].id),
                                  lookup->ids[i].result_no / 2};
    }
    if (lookup->n_ids > 1) {
        qsort(names, lookup->n_ids, sizeof names[0], by_key);
    }
    for (size_t i = 0; i < lookup->n_found; i++) {
        const struct hearth_association *found = &lookup->found[i];
        if (found->ts_ns >= lookup->kept_from_ns || (found->of & ~HEARTH_OF_STORED_SPAN) == 0) {
            continue;
        }
        for (size_t k = first_of_key(names, lookup->n_ids, (int64_t)found->key);
             k < lookup->n_ids && names[k].key == (int64_t)found->key; k++) {
            lookup->subjects[names[k].subject].is_expired = true;
        }
    }
    return HEARTH_OK;
}

/* ---- spans that are asked about, as they were stored ---- */

static enum hearth_status take_stored(const struct lookup *lookup,
                                      const struct hearth_stored_groups *groups,
                                      struct hearth_err *err)
{
    for (size_t i = 0; i < lookup->n; i++) {
        struct hearth_lookup_subject *subject = &lookup->subjects[i];
        for (size_t g = 0; g < groups->n; g++) {
            const struct hearth_span *span = NULL;
            for (size_t k = 0; k < subject->n_spans && span == NULL; k++) {
                span = hearth_stored_span_in(&groups->v[g], subject->spans[k]);
            }
            if (span != NULL) {
                subject->stored =
                    hearth_stored_span_make(&groups->v[g], span, lookup->query->call.arena);
                HEARTH_TRY(add_group(lookup, subject, &groups->v[g], err));
                break;
            }
        }
        /* A segment stands for the span that it begins with. */
        if (subject->stored == NULL && !subject->asked->is_trace && subject->n_groups > 0 &&
            subject->groups[0]->n_spans > 0) {
            subject->stored = hearth_stored_span_make(
                subject->groups[0], &subject->groups[0]->spans[0], lookup->query->call.arena);
        }
    }
    return lookup->query->call.arena->refused ? fail_arena(lookup, err) : HEARTH_OK;
}

static enum hearth_status find_stored(struct lookup *lookup, struct hearth_err *err)
{
    struct hearth_group_place *places =
        hearth_arena_array(lookup->query->call.arena, lookup->n_found, sizeof places[0]);
    struct hearth_span_query asked = {.places = places};
    struct hearth_stored_groups groups = {0};
    if (places == NULL) {
        return fail_arena(lookup, err);
    }
    for (size_t i = 0; i < lookup->n_found; i++) {
        if ((lookup->found[i].of & HEARTH_OF_STORED_SPAN) != 0) {
            places[asked.n_places++] =
                (struct hearth_group_place){lookup->found[i].service_id, lookup->found[i].ts_ns};
        }
    }
    if (asked.n_places > 0) {
        HEARTH_TRY(hearth_stored_groups_read(lookup->query, &asked, &groups, err));
    }
    return take_stored(lookup, &groups, err);
}

/* A span may say under which other id its samples are. */
static enum hearth_status follow_profile_ids(struct lookup *lookup, struct hearth_err *err)
{
    struct hearth_exact *exact;
    bool was_cut = lookup->is_cut;
    lookup->n_ids = 0;
    for (size_t i = 0; i < lookup->n; i++) {
        const struct hearth_stored_span *stored = lookup->subjects[i].stored;
        if (stored != NULL && lookup->exact[2 * i].n_types == 0) {
            HEARTH_TRY(add_profile_ids(lookup, stored->span, i, err));
        }
    }
    if (lookup->n_ids == 0) {
        return HEARTH_OK;
    }
    HEARTH_TRY(ask_index(lookup, err));
    HEARTH_TRY(read_samples(lookup, &exact, err));
    for (size_t i = 0; i < lookup->n; i++) {
        if (exact[2 * i].n_types > 0) {
            lookup->exact[2 * i] = exact[2 * i];
        }
    }
    lookup->is_cut = lookup->is_cut || was_cut;
    return HEARTH_OK;
}

/* ---- the whole ---- */

static void note_cuts(const struct lookup *lookup, bool spans_cut)
{
    if (lookup->is_cut) {
        hearth_call_note(
            &lookup->query->call,
            "more profiles carry these ids than one request reads: the latest %lld are "
            "taken (max-lookup-profiles)",
            (long long)lookup->limits.max_lookup_profiles);
    }
    if (spans_cut) {
        hearth_call_note(&lookup->query->call,
                         "more spans are stored of these traces than one request looks at: the "
                         "latest %lld are taken (max-lookup-spans)",
                         (long long)lookup->limits.max_lookup_spans);
    }
}

static enum hearth_status look_up(struct lookup *lookup, const struct hearth_span_subject *subjects,
                                  struct hearth_found *ret, struct hearth_err *err)
{
    bool spans_cut = false;
    HEARTH_TRY(take_subjects(lookup, subjects, err));
    HEARTH_TRY(read_named(lookup, true, &spans_cut, err));
    HEARTH_TRY(read_named(lookup, false, &spans_cut, err));
    HEARTH_TRY(name_ids(lookup, err));
    HEARTH_TRY(ask_index(lookup, err));
    HEARTH_TRY(read_samples(lookup, &lookup->exact, err));
    HEARTH_TRY(find_expired(lookup, err));
    HEARTH_TRY(find_stored(lookup, err));
    HEARTH_TRY(follow_profile_ids(lookup, err));
    HEARTH_TRY(hearth_span_index_since(lookup->query, &lookup->since_ns, err));
    size_t room = hearth_lookup_limit(lookup->limits.max_lookup_spans);
    for (size_t i = 0; i < lookup->n; i++) {
        lookup->subjects[i].max_stored = room;
        lookup->subjects[i].is_cut = lookup->is_cut;
        HEARTH_TRY(hearth_lookup_answer(lookup->query, lookup->options, &lookup->subjects[i],
                                        &lookup->exact[2 * i], lookup->since_ns, &ret[i], err));
        room -= ret[i].n_stored;
    }
    note_cuts(lookup, spans_cut);
    return HEARTH_OK;
}

enum hearth_status hearth_query_lookup_spans(const struct hearth_query *query,
                                             const struct hearth_span_subject *subjects,
                                             size_t n_subjects,
                                             const struct hearth_lookup_options *options,
                                             struct hearth_found *ret, struct hearth_err *err)
{
    struct lookup lookup = {.query = query, .options = options, .n = n_subjects};
    hearth_call_limits(&query->call, &lookup.limits);
    if (options->pad_ns < 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "the pad is %lld ns, less than nothing",
                           (long long)options->pad_ns);
    }
    return look_up(&lookup, subjects, ret, err);
}
