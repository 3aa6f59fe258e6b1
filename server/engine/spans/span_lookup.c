/*
 * span_lookup.c -- profiles of spans and traces: those whose samples carry the id, otherwise those
 * taken while it ran.
 *
 * All subjects of a request are looked up together: the stored spans of the traces, then the index,
 * then the profiles it names, then the spans it names. Only windows are searched one by one.
 *
 * A span without samples of its own may be the local root of others. So its id is searched as both,
 * and the second counts if the first finds nothing.
 */
#include "spans/span_lookup.h"

#include "hearth/engine/plan.h"

#include "spans/span_exact.h"
#include "spans/span_stored.h"

#include <assert.h>
#include <stdlib.h>

struct lookup {
    const struct hearth_query *query;
    const struct hearth_lookup_options *options;
    struct hearth_limits limits;
    struct hearth_lookup_subject *subjects;
    size_t n;
    struct hearth_exact_id *ids; /* result_no: twice the subject's number, plus 1 for local roots */
    size_t n_ids, cap_ids;
    struct hearth_association *found;
    size_t n_found;
    bool is_cut;
    struct hearth_exact *exact; /* [2 * n] */
    int64_t since_ns;           /* time at which the index begins */
    int64_t kept_from_ns;       /* time from which samples are retained; INT64_MIN: all */
};

static enum hearth_status fail_lookup_arena(const struct lookup *lookup, struct hearth_err *err)
{
    return HEARTH_FAIL_ARENA(err, lookup->query->call.arena);
}

/* ---- subjects ---- */

static enum hearth_status check_lookup_subject(const struct hearth_span_subject *asked, size_t i,
                                               struct hearth_err *err)
{
    const char *what = asked->is_trace ? "trace" : "span";
    struct hearth_trace_id traces[HEARTH_TRACE_ID_MEANINGS];
    uint64_t spans[HEARTH_SPAN_ID_MEANINGS];

    /* The id must have a meaning. */
    if (asked->id.n > 0 && (asked->is_trace ? hearth_trace_id_meanings(asked->id, traces)
                                            : hearth_span_id_meanings(asked->id, spans)) == 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "%s id \"%.*s\" is that of none", what,
                           asked->id.n > 64 ? 64 : (int)asked->id.n, asked->id.p);
    }

    /* Without an id, service or tags and a time are required. */
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

static enum hearth_status take_lookup_subjects(struct lookup *lookup,
                                               const struct hearth_span_subject *asked,
                                               struct hearth_err *err)
{
    struct hearth_arena *arena = lookup->query->call.arena;

    /* Check the number of subjects. */
    if (lookup->n > hearth_lookup_limit(lookup->limits.max_lookup_ids)) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "the request has %zu spans or traces; max-lookup-ids allows %lld",
                           lookup->n, (long long)lookup->limits.max_lookup_ids);
    }

    lookup->subjects = hearth_arena_calloc(arena, lookup->n, sizeof lookup->subjects[0]);
    if (lookup->subjects == NULL) {
        return fail_lookup_arena(lookup, err);
    }

    /* Read the meanings of their ids. */
    for (size_t i = 0; i < lookup->n; i++) {
        struct hearth_lookup_subject *subject = &lookup->subjects[i];
        HEARTH_TRY(check_lookup_subject(&asked[i], i, err));
        subject->asked = &asked[i];
        if (asked[i].is_trace) {
            subject->n_traces = hearth_trace_id_meanings(asked[i].id, subject->traces);
        } else {
            subject->n_spans = hearth_span_id_meanings(asked[i].id, subject->spans);
        }
    }

    return HEARTH_OK;
}

static enum hearth_status add_subject_group(const struct lookup *lookup,
                                            struct hearth_lookup_subject *subject,
                                            const struct hearth_stored_group *group,
                                            struct hearth_err *err)
{
    if (!hearth_arena_grow(lookup->query->call.arena, &subject->groups, &subject->cap_groups,
                           subject->n_groups + 1, sizeof subject->groups[0])) {
        return fail_lookup_arena(lookup, err);
    }

    subject->groups[subject->n_groups++] = group;

    return HEARTH_OK;
}

/* ---- stored spans of traces, and segments given by their text ids ---- */

struct subject_key {
    int64_t key;
    size_t subject;
};

static int compare_subject_keys(const void *left, const void *right)
{
    const struct subject_key *a = left, *b = right;

    if (a->key != b->key) {
        return a->key < b->key ? -1 : 1;
    }
    return (a->subject > b->subject) - (a->subject < b->subject);
}

/* The texts that name traces (of_traces) or segments. */
struct subject_keys {
    struct subject_key *v; /* sorted, when groups are given to their subjects */
    size_t n;
    bool of_traces;
};

static size_t find_first_key(const struct subject_keys *keys, int64_t key)
{
    size_t low = 0, high = keys->n;

    assert(keys->v != NULL || keys->n == 0);

    while (low < high) {
        size_t mid = (low + high) / 2;
        if (keys->v[mid].key < key) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }

    return low;
}

/* Give each group to the subjects with its key. */
static enum hearth_status give_groups_to_subjects(const struct lookup *lookup,
                                                  const struct hearth_stored_groups *groups,
                                                  const struct subject_keys *keys,
                                                  struct hearth_err *err)
{
    const struct subject_key *names = keys->v;

    for (size_t g = 0; g < groups->n; g++) {
        const struct hearth_span_group *group = &groups->v[g].group;
        struct hearth_str id = keys->of_traces ? group->trace_id : group->segment_id;
        int64_t key = hearth_trace_key(id, group->is_raw);
        size_t last = SIZE_MAX;

        for (size_t k = find_first_key(keys, key); k < keys->n && names[k].key == key; k++) {
            if (names[k].subject != last) {
                last = names[k].subject;
                HEARTH_TRY(add_subject_group(lookup, &lookup->subjects[last], &groups->v[g], err));
            }
        }
    }

    return HEARTH_OK;
}

static enum hearth_status read_stored_groups(struct lookup *lookup, bool traces, bool *ret_is_cut,
                                             struct hearth_err *err)
{
    struct hearth_arena *arena = lookup->query->call.arena;
    size_t n = 0;
    struct hearth_str *texts =
        hearth_arena_array(arena, lookup->n * HEARTH_TRACE_TEXTS, sizeof texts[0]);
    struct subject_key *names =
        hearth_arena_array(arena, lookup->n * HEARTH_TRACE_TEXTS, sizeof names[0]);

    if (texts == NULL || names == NULL) {
        return fail_lookup_arena(lookup, err);
    }

    /* List the texts that name traces or segments, with their subjects. */
    for (size_t i = 0; i < lookup->n; i++) {
        const struct hearth_span_subject *asked = lookup->subjects[i].asked;
        size_t n_new = 0;
        if (traces && asked->is_trace && asked->id.n > 0) {
            HEARTH_TRY(hearth_stored_trace_texts(asked->id, arena, texts + n, &n_new, err));
        } else if (!traces && !asked->is_trace && hearth_lookup_is_text(asked->id)) {
            /* It may be the id of a segment of SkyWalking. */
            texts[n] = asked->id;
            n_new = 1;
        }
        for (size_t k = 0; k < n_new; k++, n++) {
            names[n] = (struct subject_key){hearth_trace_key(texts[n], false), i};
        }
    }

    if (n == 0) {
        return HEARTH_OK;
    }

    /* Read the groups, and give them to the subjects. */
    struct hearth_span_query asked = {.trace_ids = traces ? texts : NULL,
                                      .n_trace_ids = traces ? n : 0,
                                      .segment_ids = traces ? NULL : texts,
                                      .n_segment_ids = traces ? 0 : n};
    struct hearth_stored_groups groups;
    HEARTH_TRY(hearth_stored_groups_read(lookup->query, &asked, &groups, err));
    qsort(names, n, sizeof names[0], compare_subject_keys);
    *ret_is_cut = *ret_is_cut || groups.is_cut;

    const struct subject_keys keys = {names, n, traces};
    return give_groups_to_subjects(lookup, &groups, &keys, err);
}

/* ---- the index ---- */

static enum hearth_status add_exact_id(struct lookup *lookup, struct hearth_trace_id id, uint8_t of,
                                       size_t result_no, struct hearth_err *err)
{
    if (hearth_trace_id_is_none(id)) {
        return HEARTH_OK;
    }

    if (!hearth_arena_grow(lookup->query->call.arena, &lookup->ids, &lookup->cap_ids,
                           lookup->n_ids + 1, sizeof lookup->ids[0])) {
        return fail_lookup_arena(lookup, err);
    }

    lookup->ids[lookup->n_ids++] =
        (struct hearth_exact_id){.id = id, .of = of, .result_no = (uint32_t)result_no};

    return HEARTH_OK;
}

static enum hearth_status add_profile_span_ids(struct lookup *lookup,
                                               const struct hearth_span *span, size_t i,
                                               struct hearth_err *err)
{
    uint64_t ids[HEARTH_SPAN_ID_MEANINGS];
    size_t n = hearth_stored_profile_ids(span, ids);

    for (size_t k = 0; k < n; k++) {
        HEARTH_TRY(
            add_exact_id(lookup, (struct hearth_trace_id){0, ids[k]}, HEARTH_OF_SPAN, 2 * i, err));
    }

    return HEARTH_OK;
}

/*
 * Add the ids of a trace: its own, and those of its stored spans, because some profilers attach
 * only span ids.
 */
static enum hearth_status add_trace_span_ids(struct lookup *lookup, size_t i,
                                             struct hearth_err *err)
{
    const struct hearth_lookup_subject *subject = &lookup->subjects[i];

    /* The trace's id. */
    for (size_t k = 0; k < subject->n_traces; k++) {
        HEARTH_TRY(add_exact_id(lookup, subject->traces[k], HEARTH_OF_TRACE, 2 * i, err));
    }

    /* The ids of its stored spans. */
    for (size_t g = 0; g < subject->n_groups; g++) {
        const struct hearth_stored_group *group = subject->groups[g];
        for (size_t k = 0; k < group->n_spans && group->group.is_raw; k++) {
            struct hearth_trace_id id = {0, (uint64_t)group->spans[k].span_id};
            HEARTH_TRY(add_exact_id(lookup, id, HEARTH_OF_SPAN, 2 * i, err));
            HEARTH_TRY(add_exact_id(lookup, id, HEARTH_OF_LOCAL_ROOT, 2 * i, err));
            HEARTH_TRY(add_profile_span_ids(lookup, &group->spans[k], i, err));
        }
    }

    return HEARTH_OK;
}

static enum hearth_status list_exact_ids(struct lookup *lookup, struct hearth_err *err)
{
    for (size_t i = 0; i < lookup->n; i++) {
        const struct hearth_lookup_subject *subject = &lookup->subjects[i];
        for (size_t k = 0; k < subject->n_spans; k++) {
            struct hearth_trace_id id = {0, subject->spans[k]};
            HEARTH_TRY(add_exact_id(lookup, id, HEARTH_OF_SPAN, 2 * i, err));
            HEARTH_TRY(add_exact_id(lookup, id, HEARTH_OF_LOCAL_ROOT, 2 * i + 1, err));
        }
        if (subject->asked->is_trace) {
            HEARTH_TRY(add_trace_span_ids(lookup, i, err));
        }
    }

    return HEARTH_OK;
}

static enum hearth_status query_span_index(struct lookup *lookup, struct hearth_err *err)
{
    const struct hearth_query *query = lookup->query;
    struct hearth_span_lookup *lookups =
        hearth_arena_array(query->call.arena, lookup->n_ids, sizeof lookups[0]);

    if (lookups == NULL) {
        return fail_lookup_arena(lookup, err);
    }

    /* Ask for profiles of all ids; for spans also where they are stored. */
    for (size_t i = 0; i < lookup->n_ids; i++) {
        const struct hearth_exact_id *id = &lookup->ids[i];
        bool of_trace = lookup->subjects[id->result_no / 2].asked->is_trace;
        lookups[i] =
            (struct hearth_span_lookup){hearth_trace_id_key(id->id),
                                        (uint8_t)(id->of | (of_trace ? 0 : HEARTH_OF_STORED_SPAN))};
    }

    if (lookup->n_ids == 0) {
        return HEARTH_OK;
    }

    const struct hearth_span_search search = {
        .lookups = lookups,
        .n_lookups = lookup->n_ids,
        .from_ns = hearth_lookup_from_ns(&lookup->limits),
        .to_ns = INT64_MAX,
        .limit = hearth_lookup_limit(lookup->limits.max_lookup_profiles),
    };
    struct hearth_found_spans found;
    HEARTH_TRY(hearth_store_find_spans(HEARTH_CALL_SCOPE(&query->call), &search, &found, err));
    lookup->found = found.associations;
    lookup->n_found = found.n;
    lookup->is_cut = found.is_cut;

    return HEARTH_OK;
}

static enum hearth_status read_exact_samples(struct lookup *lookup, struct hearth_exact **ret,
                                             struct hearth_err *err)
{
    const struct hearth_lookup_options *options = lookup->options;
    struct hearth_span_places places;
    struct hearth_exact *exact =
        hearth_arena_calloc(lookup->query->call.arena, 2 * lookup->n, sizeof exact[0]);

    if (exact == NULL) {
        return fail_lookup_arena(lookup, err);
    }

    /* Read the profiles that the index names. */
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

/* Find the subjects whose profiles the index still names although retention has removed them. */
static enum hearth_status find_expired_subjects(struct lookup *lookup, struct hearth_err *err)
{
    const struct hearth_query *query = lookup->query;
    struct hearth_retention keep;

    /* Find the time from which profiles are retained. */
    hearth_store_retention(query->call.engine->store, query->call.tenant, &keep);
    lookup->kept_from_ns = hearth_plan_profiles_from(&keep, hearth_clock_wall_ns());
    struct subject_key *names =
        hearth_arena_array(query->call.arena, lookup->n_ids, sizeof names[0]);
    if (names == NULL) {
        return fail_lookup_arena(lookup, err);
    }

    /* Sort the ids by key. */
    for (size_t i = 0; i < lookup->n_ids; i++) {
        names[i] = (struct subject_key){(int64_t)hearth_trace_id_key(lookup->ids[i].id),
                                        lookup->ids[i].result_no / 2};
    }

    if (lookup->n_ids > 1) {
        qsort(names, lookup->n_ids, sizeof names[0], compare_subject_keys);
    }

    /* Mark the subjects of older associations. */
    const struct subject_keys keys = {.v = names, .n = lookup->n_ids};
    for (size_t i = 0; i < lookup->n_found; i++) {
        const struct hearth_association *found = &lookup->found[i];
        if (found->ts_ns >= lookup->kept_from_ns || (found->of & ~HEARTH_OF_STORED_SPAN) == 0) {
            continue;
        }

        for (size_t k = find_first_key(&keys, (int64_t)found->key);
             k < keys.n && names[k].key == (int64_t)found->key; k++) {
            lookup->subjects[names[k].subject].is_expired = true;
        }
    }

    return HEARTH_OK;
}

/* ---- the stored spans of subjects ---- */

static enum hearth_status assign_stored_spans(const struct lookup *lookup,
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
                HEARTH_TRY(add_subject_group(lookup, subject, &groups->v[g], err));
                break;
            }
        }
        /* A segment's id means the span that it begins with. */
        if (subject->stored == NULL && !subject->asked->is_trace && subject->n_groups > 0 &&
            subject->groups[0]->n_spans > 0) {
            subject->stored = hearth_stored_span_make(
                subject->groups[0], &subject->groups[0]->spans[0], lookup->query->call.arena);
        }
    }

    return lookup->query->call.arena->refused ? fail_lookup_arena(lookup, err) : HEARTH_OK;
}

static enum hearth_status find_stored_subjects(struct lookup *lookup, struct hearth_err *err)
{
    struct hearth_group_place *places =
        hearth_arena_array(lookup->query->call.arena, lookup->n_found, sizeof places[0]);
    struct hearth_span_query asked = {.places = places};
    struct hearth_stored_groups groups = {0};

    if (places == NULL) {
        return fail_lookup_arena(lookup, err);
    }

    /* List the groups that the index names. */
    for (size_t i = 0; i < lookup->n_found; i++) {
        if ((lookup->found[i].of & HEARTH_OF_STORED_SPAN) != 0) {
            places[asked.n_places++] =
                (struct hearth_group_place){lookup->found[i].service_id, lookup->found[i].ts_ns};
        }
    }

    /* Read them. */
    if (asked.n_places > 0) {
        HEARTH_TRY(hearth_stored_groups_read(lookup->query, &asked, &groups, err));
    }

    return assign_stored_spans(lookup, &groups, err);
}

/* Search again for spans that name another id of their samples. */
static enum hearth_status follow_profile_ids(struct lookup *lookup, struct hearth_err *err)
{
    struct hearth_exact *exact;
    bool was_cut = lookup->is_cut;

    /* List the other ids. */
    lookup->n_ids = 0;
    for (size_t i = 0; i < lookup->n; i++) {
        const struct hearth_stored_span *stored = lookup->subjects[i].stored;
        if (stored != NULL && lookup->exact[2 * i].n_types == 0) {
            HEARTH_TRY(add_profile_span_ids(lookup, stored->span, i, err));
        }
    }

    if (lookup->n_ids == 0) {
        return HEARTH_OK;
    }

    /* Search for them. */
    HEARTH_TRY(query_span_index(lookup, err));
    HEARTH_TRY(read_exact_samples(lookup, &exact, err));
    for (size_t i = 0; i < lookup->n; i++) {
        if (exact[2 * i].n_types > 0) {
            lookup->exact[2 * i] = exact[2 * i];
        }
    }

    /* Either search may have been limited. */
    lookup->is_cut = lookup->is_cut || was_cut;

    return HEARTH_OK;
}

/* ---- the whole ---- */

static void note_lookup_limits(const struct lookup *lookup, bool spans_cut)
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

/* Whether a plan is complete: each search is for what the one before did not find. */
static bool is_planned(const struct lookup *lookup)
{
    return lookup->query->plan != NULL && lookup->query->plan->n_legs > 0;
}

static enum hearth_status look_up_subjects(struct lookup *lookup,
                                           const struct hearth_span_subject *subjects,
                                           struct hearth_found *ret, struct hearth_err *err)
{
    bool spans_cut = false;

    /* Collect the stored spans and the ids. */
    HEARTH_TRY(take_lookup_subjects(lookup, subjects, err));
    HEARTH_TRY(read_stored_groups(lookup, true, &spans_cut, err));
    HEARTH_TRY(read_stored_groups(lookup, false, &spans_cut, err));
    HEARTH_TRY(list_exact_ids(lookup, err));

    /* Find the samples. */
    HEARTH_TRY(query_span_index(lookup, err));
    HEARTH_TRY(read_exact_samples(lookup, &lookup->exact, err));
    if (is_planned(lookup)) {
        return HEARTH_OK;
    }
    HEARTH_TRY(find_expired_subjects(lookup, err));

    /* Find the stored spans of the subjects, and their other ids. */
    HEARTH_TRY(find_stored_subjects(lookup, err));
    HEARTH_TRY(follow_profile_ids(lookup, err));
    if (is_planned(lookup)) {
        return HEARTH_OK;
    }
    HEARTH_TRY(hearth_span_index_since(lookup->query, &lookup->since_ns, err));

    /* Make the answers. */
    size_t room = hearth_lookup_limit(lookup->limits.max_lookup_spans);
    for (size_t i = 0; i < lookup->n; i++) {
        lookup->subjects[i].max_stored = room;
        lookup->subjects[i].is_cut = lookup->is_cut;
        lookup->subjects[i].exact = &lookup->exact[2 * i];
        lookup->subjects[i].since_ns = lookup->since_ns;
        HEARTH_TRY(hearth_lookup_answer(lookup->query, lookup->options, &lookup->subjects[i],
                                        &ret[i], err));
        room -= ret[i].n_stored;
    }

    note_lookup_limits(lookup, spans_cut);

    return HEARTH_OK;
}

enum hearth_status hearth_query_lookup_spans(const struct hearth_query *query,
                                             const struct hearth_span_subject *subjects,
                                             size_t n_subjects,
                                             const struct hearth_lookup_options *options,
                                             struct hearth_found *ret, struct hearth_err *err)
{
    struct lookup lookup = {.query = query, .options = options, .n = n_subjects};

    assert(query != NULL && ret != NULL);

    hearth_call_limits(&query->call, &lookup.limits);
    if (options->pad_ns < 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "the pad is %lld ns; it must not be negative",
                           (long long)options->pad_ns);
    }

    return look_up_subjects(&lookup, subjects, ret, err);
}
