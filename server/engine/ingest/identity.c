/*
 * identity.c -- to whom a pushed profile belongs: labels, service, profile types, time.
 *
 * Clients send labels in any order. The result is canonical: sorted, distinct, without empty values
 * and without the labels that Hearth derives, so that equal series have equal fingerprints.
 */
#include "hearth/base/clock.h"
#include "hearth/base/limit.h"
#include "hearth/model/profile_type.h"

#include "ingest/ingest_internal.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#define GODELTA "godeltaprof_"

/* A message is one line of bounded length: quotations must leave room for the rest. */
#define MAX_QUOTED_LABELS 128
#define MAX_QUOTED_NAME   64

static const char *const g_reserved[] = {
    HEARTH_LABEL_NAME,
    HEARTH_LABEL_PROFILE_TYPE,
    HEARTH_LABEL_TYPE,
    HEARTH_LABEL_UNIT,
    HEARTH_LABEL_PERIOD_TYPE,
    HEARTH_LABEL_PERIOD_UNIT,
    HEARTH_LABEL_SERVICE_DUP,
    HEARTH_LABEL_SERVICE,
    "__delta__",
    "__order__",
    "__session_id__",
};

bool hearth_label_is_reserved(struct hearth_str name)
{
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_reserved); i++) {
        if (hearth_str_eq_c(name, g_reserved[i])) {
            return true;
        }
    }

    return false;
}

/* The labels of a series as text for messages, at most MAX_QUOTED_LABELS bytes. */
static const char *format_series_labels(const struct hearth_push_series *series,
                                        struct hearth_arena *arena)
{
    struct hearth_labels labels = {series->labels, series->n_labels};
    struct hearth_buf text;

    hearth_buf_init(&text, 0);
    hearth_labels_format(&labels, MAX_QUOTED_LABELS, &text);

    char *copy = hearth_arena_strndup(arena, text.p, text.n);
    hearth_buf_release(&text);

    return copy == NULL ? "{...}" : copy;
}

/* The first bytes of a name, for messages. */
static struct hearth_str cut_quoted_name(struct hearth_str name)
{
    return hearth_str_n(name.p, name.n > MAX_QUOTED_NAME ? MAX_QUOTED_NAME : name.n);
}

static enum hearth_status check_pushed_label(const struct hearth_push_work *work,
                                             const struct hearth_push_series *series,
                                             const struct hearth_label *label,
                                             struct hearth_err *err)
{
    const struct hearth_limits *limits = work->limits;
    struct hearth_arena *arena = work->arena;

    if (label->name.n == 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "invalid labels '%s' with error: invalid label name ''",
                           format_series_labels(series, arena));
    }

    if (limits->max_label_name_bytes > 0 &&
        label->name.n > (uint64_t)limits->max_label_name_bytes) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "profile with labels '%s' has label name too long: '" HEARTH_STR_FMT
                           "' (%zu bytes, limit %lld)" HEARTH_RAISE_LIMIT("max-label-name-bytes"),
                           format_series_labels(series, arena),
                           HEARTH_STR_ARG(cut_quoted_name(label->name)), label->name.n,
                           (long long)limits->max_label_name_bytes);
    }

    if (limits->max_label_value_bytes > 0 &&
        label->value.n > (uint64_t)limits->max_label_value_bytes) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "profile with labels '%s' has label value too long: '" HEARTH_STR_FMT
                           "' (%zu bytes, limit %lld)" HEARTH_RAISE_LIMIT("max-label-value-bytes"),
                           format_series_labels(series, arena),
                           HEARTH_STR_ARG(cut_quoted_name(label->name)), label->value.n,
                           (long long)limits->max_label_value_bytes);
    }

    return HEARTH_OK;
}

/*
 * The name of the service: the first of service_name, the configured labels, and the application
 * name that has a value; otherwise unknown_service. If the configured labels include service_name,
 * only their order counts.
 */
static struct hearth_str find_service_name(const struct hearth_push_work *work,
                                           const struct hearth_labels *sorted,
                                           bool *ret_is_app_name)
{
    *ret_is_app_name = false;
    bool is_listed = false;

    for (size_t i = 0; work->service_labels[i] != NULL; i++) {
        is_listed = is_listed || strcmp(work->service_labels[i], HEARTH_LABEL_SERVICE) == 0;
    }

    struct hearth_str value = {0};
    if (!is_listed) {
        value = hearth_labels_get(sorted, HEARTH_STR(HEARTH_LABEL_SERVICE));
    }

    for (size_t i = 0; value.n == 0 && work->service_labels[i] != NULL; i++) {
        value = hearth_labels_get(sorted, hearth_str_c(work->service_labels[i]));
    }

    if (value.n == 0 && work->app_name.n > 0) {
        value = work->app_name;
        *ret_is_app_name = true;
    }

    return value.n > 0 ? value : HEARTH_STR("unknown_service");
}

/*
 * Makes a sorted copy of the labels, with room for two more. Errors: INVALID_ARGUMENT if a name is
 * repeated.
 */
static enum hearth_status sort_series_labels(const struct hearth_push_series *series,
                                             struct hearth_arena *arena,
                                             struct hearth_labels *ret_sorted,
                                             struct hearth_err *err)
{
    struct hearth_labels sorted = {
        hearth_arena_array(arena, series->n_labels + 2, sizeof sorted.v[0]), series->n_labels};
    if (sorted.v == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    if (sorted.n > 0) {
        memcpy(sorted.v, series->labels, sorted.n * sizeof sorted.v[0]);
    }

    hearth_labels_sort(&sorted);
    for (size_t i = 1; i < sorted.n; i++) {
        if (hearth_str_eq(sorted.v[i - 1].name, sorted.v[i].name)) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                               "profile with labels '%s' has duplicate label name: '" HEARTH_STR_FMT
                               "'",
                               format_series_labels(series, arena),
                               HEARTH_STR_ARG(cut_quoted_name(sorted.v[i].name)));
        }
    }

    *ret_sorted = sorted;
    return HEARTH_OK;
}

/* Removes labels without a value, derived labels, __name__ and service_name, in place. */
static void keep_own_labels(struct hearth_labels *labels, uint64_t *discards)
{
    size_t n = 0;

    for (size_t i = 0; i < labels->n; i++) {
        const struct hearth_label *label = &labels->v[i];
        if (label->value.n == 0) {
            discards[HEARTH_DISCARD_EMPTY_LABELS]++;
        } else if (hearth_str_eq_c(label->name, HEARTH_LABEL_NAME) ||
                   hearth_str_eq_c(label->name, HEARTH_LABEL_SERVICE)) {
            continue; /* stored as name and service of the identity */
        } else if (hearth_label_is_reserved(label->name)) {
            discards[HEARTH_DISCARD_RESERVED_LABELS]++;
        } else {
            labels->v[n++] = *label;
        }
    }

    labels->n = n;
}

/*
 * Sets a label of Hearth's own in sorted labels, which have room for it; it replaces a label of
 * that name.
 */
static void put_label(struct hearth_labels *labels, const char *name, struct hearth_str value)
{
    for (size_t i = 0; i < labels->n; i++) {
        if (hearth_str_eq_c(labels->v[i].name, name)) {
            labels->v[i].value = value;
            return;
        }
    }

    labels->v[labels->n++] = (struct hearth_label){hearth_str_c(name), value};
    hearth_labels_sort(labels);
}

enum hearth_status hearth_identity_make(const struct hearth_push_work *work,
                                        const struct hearth_push_series *series,
                                        struct hearth_identity *ret, struct hearth_err *err)
{
    assert(work != NULL && series != NULL && ret != NULL);

    const struct hearth_limits *limits = work->limits;
    struct hearth_arena *arena = work->arena;
    struct hearth_str app_name = work->app_name;

    assert(series->n_labels == 0 || series->labels != NULL);
    if (series->n_labels == 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "error at least one label pair is required per profile");
    }

    /* Each label must be within the limits, as must the application name, which may become one. */
    for (size_t i = 0; i < series->n_labels; i++) {
        HEARTH_TRY(check_pushed_label(work, series, &series->labels[i], err));
    }

    const struct hearth_label app = {HEARTH_STR("app_name"), app_name};
    HEARTH_TRY(check_pushed_label(work, series, &app, err));

    struct hearth_labels labels;
    HEARTH_TRY(sort_series_labels(series, arena, &labels, err));
    struct hearth_str name = hearth_labels_get(&labels, HEARTH_STR(HEARTH_LABEL_NAME));
    if (name.n == 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "invalid labels '%s' with error: invalid metric name: label __name__ is "
                           "required",
                           format_series_labels(series, arena));
    }

    /*
     * Find the service. If another label names it, the sent name becomes the application name, if
     * free.
     */
    bool is_app_name;
    struct hearth_str service = find_service_name(work, &labels, &is_app_name);
    struct hearth_str sent = hearth_labels_get(&labels, HEARTH_STR(HEARTH_LABEL_SERVICE));
    if (sent.n > 0 && !hearth_str_eq(sent, service)) {
        bool has_app_name =
            app_name.n > 0 || hearth_labels_get(&labels, HEARTH_STR("app_name")).n > 0;
        work->discards[HEARTH_DISCARD_RESERVED_LABELS] += has_app_name;
        app_name = has_app_name ? app_name : sent;
    }

    /* Keep own labels only; their number is limited. */
    keep_own_labels(&labels, work->discards);
    size_t n_names = labels.n + 2; /* __name__ and service_name */
    if (limits->max_label_names > 0 && n_names > (uint64_t)limits->max_label_names) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "profile series '%s' has %zu label names; limit %lld" HEARTH_RAISE_LIMIT(
                               "max-label-names"),
                           format_series_labels(series, arena), n_names,
                           (long long)limits->max_label_names);
    }

    /* Go's delta profiler names its profiles after itself; clients query the plain name. */
    if (hearth_str_starts(name, HEARTH_STR(GODELTA)) && name.n > sizeof GODELTA - 1) {
        put_label(&labels, "__name_replaced__", name);
        name = hearth_str_n(name.p + sizeof GODELTA - 1, name.n - (sizeof GODELTA - 1));
    }

    if (app_name.n > 0 && !is_app_name &&
        hearth_labels_get(&labels, HEARTH_STR("app_name")).n == 0) {
        put_label(&labels, "app_name", app_name);
    }

    *ret = (struct hearth_identity){.name = name, .service_name = service, .labels = labels};
    return HEARTH_OK;
}

enum hearth_status hearth_identity_make_named(const struct hearth_push_work *work,
                                              const struct hearth_push_series *series,
                                              struct hearth_str name, struct hearth_identity *ret,
                                              struct hearth_err *err)
{
    assert(work != NULL && series != NULL && ret != NULL);

    size_t n = series->n_labels;
    struct hearth_arena *arena = work->arena;
    struct hearth_push_series named = {.n_labels = n + 1};

    named.labels = hearth_arena_array(arena, n + 1, sizeof *named.labels);
    if (named.labels == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    if (n > 0) {
        memcpy(named.labels, series->labels, n * sizeof *named.labels);
    }

    named.labels[n] = (struct hearth_label){HEARTH_STR(HEARTH_LABEL_NAME), name};
    return hearth_identity_make(work, &named, ret, err);
}

/*
 * Checks a type and its parts, which are values of labels (__type__, __profile_type__ and so on).
 */
static enum hearth_status check_type_texts(const struct hearth_limits *limits,
                                           const struct hearth_profile_type *type,
                                           struct hearth_str id, struct hearth_err *err)
{
    const struct {
        const char *what;
        struct hearth_str text;
    } texts[] = {
        {"sample type", type->sample_type},
        {"unit of a sample type", type->sample_unit},
        {"period type", type->period_type},
        {"unit of the period type", type->period_unit},
        {"profile type", id},
    };

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(texts) && limits->max_label_value_bytes > 0; i++) {
        if (texts[i].text.n > (uint64_t)limits->max_label_value_bytes) {
            return HEARTH_FAIL(
                err, HEARTH_INVALID_ARGUMENT,
                "%s too long: '" HEARTH_STR_FMT
                "' (%zu bytes, limit %lld)" HEARTH_RAISE_LIMIT("max-label-value-bytes"),
                texts[i].what, HEARTH_STR_ARG(cut_quoted_name(texts[i].text)), texts[i].text.n,
                (long long)limits->max_label_value_bytes);
        }
    }

    return HEARTH_OK;
}

enum hearth_status hearth_identity_types(const struct hearth_push_work *work,
                                         const struct hearth_identity *identity,
                                         struct hearth_str **ret_type_ids, struct hearth_err *err)
{
    assert(work != NULL && ret_type_ids != NULL);

    const struct hearth_profile *profile = work->profile;
    struct hearth_arena *arena = work->arena;

    assert(profile != NULL);

    struct hearth_str *ids = hearth_arena_array(arena, profile->n_types, sizeof ids[0]);
    if (ids == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (uint32_t i = 0; i < profile->n_types; i++) {
        struct hearth_profile_type type = {
            .name = identity->name,
            .sample_type = profile->strings[profile->types[i].type],
            .sample_unit = profile->strings[profile->types[i].unit],
            .period_type = profile->strings[profile->period_type.type],
            .period_unit = profile->strings[profile->period_type.unit],
        };

        struct hearth_buf text;
        hearth_buf_init(&text, 0);
        hearth_profile_type_format(&type, &text);
        ids[i] = hearth_arena_str(arena, hearth_buf_view(&text));
        bool failed = hearth_buf_failed(&text) || ids[i].p == NULL;
        hearth_buf_release(&text);
        if (failed) {
            return HEARTH_FAIL_ARENA(err, arena);
        }

        HEARTH_TRY(check_type_texts(work->limits, &type, ids[i], err));
    }

    *ret_type_ids = ids;
    return HEARTH_OK;
}

/*
 * The ids of the types of a group: the given array if it has all of them, otherwise a selection.
 * NULL: no memory.
 */
static const struct hearth_str *select_group_type_ids(const struct hearth_str *type_ids,
                                                      uint32_t n_types,
                                                      const struct hearth_group *group,
                                                      struct hearth_arena *arena)
{
    if (group->n_types == n_types) {
        return type_ids;
    }

    struct hearth_str *ids = hearth_arena_array(arena, group->n_types, sizeof ids[0]);
    for (uint32_t k = 0; ids != NULL && k < group->n_types; k++) {
        ids[k] = type_ids[group->types[k]];
    }

    return ids;
}

enum hearth_status hearth_identity_keys(const struct hearth_push_work *work,
                                        const struct hearth_identity *identity,
                                        const struct hearth_split *split,
                                        struct hearth_series_key **ret_keys, struct hearth_err *err)
{
    assert(work != NULL && split != NULL && ret_keys != NULL);

    const struct hearth_profile *profile = work->profile;
    struct hearth_arena *arena = work->arena;
    struct hearth_str *type_ids;

    assert(split->n_groups == 0 || split->groups != NULL);
    HEARTH_TRY(hearth_identity_types(work, identity, &type_ids, err));
    struct hearth_series_key *keys = hearth_arena_array(arena, split->n_groups, sizeof keys[0]);
    if (keys == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (size_t g = 0; g < split->n_groups; g++) {
        const struct hearth_group *group = &split->groups[g];
        keys[g] = (struct hearth_series_key){
            .service_name = identity->service_name,
            .type_ids = select_group_type_ids(type_ids, profile->n_types, group, arena),
            .n_types = group->n_types,
            .labels = group->labels,
        };
        if (keys[g].type_ids == NULL) {
            return HEARTH_FAIL_ARENA(err, arena);
        }
    }

    *ret_keys = keys;
    return HEARTH_OK;
}

/* The labels of an identity as text for messages; returns out. */
static const char *format_identity_labels(const struct hearth_identity *identity, char out[256])
{
    struct hearth_buf text;

    hearth_buf_init(&text, 0);
    hearth_labels_format(&identity->labels, MAX_QUOTED_LABELS, &text);

    (void)snprintf(out, 256, "{service_name=\"" HEARTH_STR_FMT "\"%s%.*s",
                   HEARTH_STR_ARG(cut_quoted_name(identity->service_name)),
                   identity->labels.n == 0 ? "" : ", ", text.n == 0 ? 0 : (int)text.n - 1,
                   text.n == 0 ? "" : text.p + 1);

    hearth_buf_release(&text);
    return out;
}

enum hearth_status hearth_identity_time(const struct hearth_limits *limits,
                                        const struct hearth_identity *identity, int64_t time_ns,
                                        int64_t now_ns, int64_t clock_ahead_ns, int64_t *ret_ts_ns,
                                        struct hearth_err *err)
{
    assert(limits != NULL && ret_ts_ns != NULL);

    if (time_ns <= 0) {
        *ret_ts_ns = now_ns;
        return HEARTH_OK;
    }

    /* The window reaches from the older of the two clocks to the newer one. */
    int64_t first_ns = clock_ahead_ns < 0 ? now_ns + clock_ahead_ns : now_ns;
    int64_t last_ns = clock_ahead_ns > 0 ? now_ns + clock_ahead_ns : now_ns;
    int64_t oldest = limits->reject_older_than_ns > 0 ? first_ns - limits->reject_older_than_ns : 0;
    int64_t newest;
    if (limits->reject_newer_than_ns <= 0 ||
        __builtin_add_overflow(last_ns, limits->reject_newer_than_ns, &newest)) {
        newest = INT64_MAX;
    }

    /* Outside of it, the message names the window and the difference of the clocks. */
    if (time_ns < oldest || time_ns > newest) {
        char at[32], from[32], to[32];
        hearth_clock_format(time_ns, at);
        hearth_clock_format(oldest, from);
        hearth_clock_format(newest, to);

        char labels[256], clocks[96] = "";
        if (clock_ahead_ns != 0) {
            (void)snprintf(clocks, sizeof clocks,
                           "; the server's clock is %lld s %s the database's",
                           (llabs(clock_ahead_ns) + HEARTH_NS_PER_SEC / 2) / HEARTH_NS_PER_SEC,
                           clock_ahead_ns > 0 ? "behind" : "ahead of");
        }
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "profile with labels '%s' is outside of ingestion window (profile "
                           "timestamp: %s, the ingestion "
                           "window starts at %s and ends at %s%s)" HEARTH_RAISE_LIMIT("%s"),
                           format_identity_labels(identity, labels), at, from, to, clocks,
                           time_ns < oldest ? "reject-older-than" : "reject-newer-than");
    }

    *ret_ts_ns = time_ns;
    return HEARTH_OK;
}
