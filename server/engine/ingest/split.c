/*
 * split.c -- which samples count, and to which series each of them belongs.
 *
 * A profile with string sample labels is several series: one per distinct label set. Most profiles
 * have none, or only labels that are attributes (span, thread, time); those take a short way: one
 * group with every sample. A series has the types in which a sample of it is not 0.
 *
 * Label sets are compared twice: first by the string indices of a sample (cheap, exact within one
 * string table), then by content, because a string table may hold the same text at two indices.
 */
#include "hearth/base/hash.h"
#include "hearth/base/mem.h"

#include "ingest/ingest_internal.h"

#include <assert.h>
#include <stdlib.h>

/* Meaning of a sample label's key; found once per string index. */
enum key_kind {
    KEY_UNKNOWN,
    KEY_ATTR,     /* an attribute of the sample */
    KEY_SERIES,   /* splits series if its value is a string */
    KEY_RESERVED, /* derived by Hearth, or also a label of the series, which wins */
    KEY_TOO_LONG, /* longer than max-label-name-bytes */
};

struct splitter {
    const struct hearth_limits *limits;   /* work->limits */
    const struct hearth_profile *profile; /* work->profile */
    const struct hearth_labels *series_labels;
    struct hearth_arena *arena;
    uint64_t *discards;
    unsigned char *key_kinds;       /* [n_strings]: enum key_kind */
    struct hearth_idmap by_index;   /* string indices of a sample's labels -> index set */
    struct hearth_idmap by_content; /* label set -> group */
    uint32_t *of_index_set;         /* [n_index_sets]: the group of each index set */
    size_t n_index_sets, cap_index_sets;
    struct hearth_group *groups;
    size_t n_groups, cap_groups;
};

static enum key_kind find_key_kind(struct splitter *s, uint32_t key)
{
    if (s->key_kinds[key] == KEY_UNKNOWN) {
        struct hearth_str text = s->profile->strings[key];
        enum key_kind kind = KEY_SERIES;
        if (hearth_attr_of_key(text) != HEARTH_ATTR_NONE) {
            kind = KEY_ATTR;
        } else if (text.n == 0 || hearth_label_is_reserved(text) ||
                   hearth_labels_get(s->series_labels, text).n > 0) {
            kind = KEY_RESERVED;
        } else if (s->limits->max_label_name_bytes > 0 &&
                   text.n > (uint64_t)s->limits->max_label_name_bytes) {
            kind = KEY_TOO_LONG;
        }
        s->key_kinds[key] = (unsigned char)kind;
    }

    return (enum key_kind)s->key_kinds[key];
}

/* Whether a sample counts; otherwise counts the reason. */
HEARTH_ALWAYS_INLINE bool check_sample(const struct hearth_profile *profile, uint32_t sample,
                                       bool dangling, uint64_t *discards)
{
    const int64_t *values = profile->values + (size_t)sample * profile->n_types;
    int64_t any = 0; /* negative if a value is */
    for (uint32_t k = 0; k < profile->n_types; k++) {
        any |= values[k];
    }

    if (HEARTH_LIKELY(any > 0 && !dangling)) {
        return true;
    }

    discards[dangling  ? HEARTH_DISCARD_DANGLING_SAMPLES
             : any < 0 ? HEARTH_DISCARD_NEGATIVE_SAMPLES
                       : HEARTH_DISCARD_ZERO_SAMPLES]++;

    return false;
}

/* A label of a sample, as indices of strings. */
struct index_pair {
    uint32_t key, str;
};

static int compare_pairs_by_key(const void *a, const void *b)
{
    const struct index_pair *x = a, *y = b;
    if (x->key != y->key) {
        return x->key < y->key ? -1 : 1;
    }
    return (x->str > y->str) - (x->str < y->str);
}

/*
 * Finds the labels of a sample that split series, as at most max pairs of distinct keys. If a key
 * is repeated, the value with the lowest string index wins. Counts labels that are left out.
 */
static uint32_t collect_splitting_labels(struct splitter *s, uint32_t sample,
                                         struct index_pair *pairs, uint32_t max, bool *ret_attrs)
{
    const struct hearth_profile *p = s->profile;
    uint32_t n = 0;

    /* Keep the labels that split series; note attributes, and count the reasons for the others. */
    for (uint32_t l = p->label_first[sample]; l < p->label_first[sample + 1]; l++) {
        const struct hearth_sample_label *label = &p->sample_labels[l];
        enum key_kind kind = find_key_kind(s, label->key);
        if (kind == KEY_ATTR) {
            *ret_attrs = true;
        } else if (label->str == 0) {
            s->discards[HEARTH_DISCARD_NUMERIC_LABELS]++;
        } else if (kind == KEY_RESERVED) {
            s->discards[HEARTH_DISCARD_RESERVED_LABELS]++;
        } else if (p->strings[label->str].n == 0) {
            s->discards[HEARTH_DISCARD_EMPTY_LABELS]++;
        } else if (kind == KEY_TOO_LONG ||
                   (s->limits->max_label_value_bytes > 0 &&
                    p->strings[label->str].n > (uint64_t)s->limits->max_label_value_bytes)) {
            s->discards[HEARTH_DISCARD_LONG_LABELS]++;
        } else if (n < max) {
            pairs[n++] = (struct index_pair){label->key, label->str};
        }
    }

    /* Sorted by key and value, the first pair of each key wins. */
    qsort(pairs, n, sizeof pairs[0], compare_pairs_by_key);
    uint32_t n_distinct = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (n_distinct == 0 || pairs[n_distinct - 1].key != pairs[i].key) {
            pairs[n_distinct++] = pairs[i];
        } else if (pairs[n_distinct - 1].str != pairs[i].str) {
            s->discards[HEARTH_DISCARD_REPEATED_LABELS]++;
        }
    }

    return n_distinct;
}

/*
 * Joins the labels of the series with those of a sample; a name with two string indices counts
 * once.
 */
static bool join_sample_labels(struct splitter *s, const struct index_pair *pairs, uint32_t n_pairs,
                               struct hearth_labels *ret)
{
    size_t n = s->series_labels->n;
    struct hearth_label *v = hearth_arena_array(s->arena, n + n_pairs, sizeof v[0]);
    if (v == NULL) {
        return false;
    }

    if (n > 0) {
        memcpy(v, s->series_labels->v, n * sizeof v[0]);
    }

    for (uint32_t i = 0; i < n_pairs; i++) {
        v[n++] = (struct hearth_label){s->profile->strings[pairs[i].key],
                                       s->profile->strings[pairs[i].str]};
    }

    struct hearth_labels labels = {v, n};
    hearth_labels_sort(&labels);

    /* Names are distinct by index only: drop repetitions of the same text. */
    size_t n_distinct = 0;
    for (size_t i = 0; i < labels.n; i++) {
        if (n_distinct == 0 || !hearth_str_eq(v[n_distinct - 1].name, v[i].name)) {
            v[n_distinct++] = v[i];
        }
    }

    labels.n = n_distinct;
    *ret = labels;
    return true;
}

/*
 * Finds the columns of a group in which a sample is not 0. In most groups the first samples have
 * all.
 */
static bool find_group_types(const struct splitter *s, struct hearth_group *group)
{
    const struct hearth_profile *p = s->profile;

    group->types = hearth_arena_array(s->arena, p->n_types, sizeof group->types[0]);
    if (group->types == NULL) {
        return false;
    }

    for (uint32_t k = 0; k < p->n_types; k++) {
        uint32_t i = 0;
        while (i < group->n_samples && p->values[(size_t)group->samples[i] * p->n_types + k] == 0) {
            i++;
        }
        if (i < group->n_samples) {
            group->types[group->n_types++] = k;
        }
    }

    HEARTH_ASSERT(group->n_types > 0); /* samples that are 0 in all columns are in no group */
    s->discards[HEARTH_DISCARD_ZERO_TYPES] += p->n_types - group->n_types;

    return true;
}

/*
 * Finds or makes the group of a label set. A set beyond the limits falls back to the labels of the
 * series.
 */
static uint32_t make_group_of_pairs(struct splitter *s, const struct index_pair *pairs,
                                    uint32_t n_pairs)
{
    const struct hearth_limits *limits = s->limits;
    struct hearth_labels labels;

    if (!join_sample_labels(s, pairs, n_pairs, &labels)) {
        return HEARTH_IDMAP_NONE;
    }

    /* __name__ and service_name are label names, too, but are not in `labels`: 2 more. */
    bool too_many = limits->max_label_names > 0 && labels.n + 2 > (uint64_t)limits->max_label_names;
    bool full = limits->max_label_sets > 0 && s->n_groups >= (uint64_t)limits->max_label_sets;
    if (n_pairs > 0 && (too_many || full)) {
        struct hearth_hash128 key = hearth_labels_fingerprint(&labels);
        uint32_t known = hearth_idmap_find(&s->by_content, key);
        if (known != HEARTH_IDMAP_NONE) {
            return known;
        }
        s->discards[HEARTH_DISCARD_SPLIT_LABELS]++;
        labels = *s->series_labels;
    }

    /* Equal sets of different indices share a group. */
    bool inserted;
    uint32_t group = hearth_idmap_intern(&s->by_content, hearth_labels_fingerprint(&labels),
                                         (uint32_t)s->n_groups, &inserted);
    if (group == HEARTH_IDMAP_NONE || !inserted) {
        return group;
    }

    if (!hearth_mem_grow(&s->groups, &s->cap_groups, s->n_groups + 1, sizeof s->groups[0])) {
        return HEARTH_IDMAP_NONE;
    }

    s->groups[s->n_groups++] = (struct hearth_group){.labels = labels};
    return group;
}

/* Finds the group of a sample by its label indices; makes it for indices that are new. */
static uint32_t find_group_of_sample(struct splitter *s, struct index_pair *pairs, uint32_t n_pairs)
{
    bool inserted;
    struct hearth_hash128 key =
        hearth_hash128(pairs, n_pairs * sizeof pairs[0], hearth_hash_process_seed());
    uint32_t set = hearth_idmap_intern(&s->by_index, key, (uint32_t)s->n_index_sets, &inserted);
    if (set == HEARTH_IDMAP_NONE) {
        return HEARTH_IDMAP_NONE;
    }

    /* New indices: their content decides. of_index_set grows in step with the map. */
    if (inserted) {
        uint32_t group = make_group_of_pairs(s, pairs, n_pairs);
        if (group == HEARTH_IDMAP_NONE ||
            !hearth_mem_grow(&s->of_index_set, &s->cap_index_sets, s->n_index_sets + 1,
                             sizeof s->of_index_set[0])) {
            return HEARTH_IDMAP_NONE;
        }
        s->of_index_set[s->n_index_sets++] = group;
    }

    return s->of_index_set[set];
}

/*
 * Makes the list of samples of each group from the group of each sample; lists keep the order of
 * samples.
 */
static bool list_group_samples(struct splitter *s, const uint32_t *group_of,
                               struct hearth_split *ret)
{
    uint32_t n = s->profile->n_samples;

    ret->groups = hearth_arena_array(s->arena, s->n_groups, sizeof ret->groups[0]);
    uint32_t *lists = hearth_arena_array(s->arena, n, sizeof lists[0]);
    if (ret->groups == NULL || lists == NULL) {
        return false;
    }

    if (s->n_groups > 0) {
        memcpy(ret->groups, s->groups, s->n_groups * sizeof ret->groups[0]);
    }

    /* Counting sort: count, set the beginning of each list, fill. */
    for (uint32_t i = 0; i < n; i++) {
        if (group_of[i] != HEARTH_NO_INDEX) {
            ret->groups[group_of[i]].n_samples++;
        }
    }

    for (size_t g = 0; g < s->n_groups; g++) {
        ret->groups[g].samples = lists;
        lists += ret->groups[g].n_samples;
        ret->groups[g].n_samples = 0;
    }

    for (uint32_t i = 0; i < n; i++) {
        if (group_of[i] != HEARTH_NO_INDEX) {
            struct hearth_group *group = &ret->groups[group_of[i]];
            group->samples[group->n_samples++] = i;
        }
    }

    for (size_t g = 0; g < s->n_groups; g++) {
        if (!find_group_types(s, &ret->groups[g])) {
            return false;
        }
    }

    ret->n_groups = s->n_groups;
    return true;
}

/* Assigns each sample that counts to the group of its labels. */
static enum hearth_status assign_samples(struct splitter *s, bool *skip, struct hearth_split *ret,
                                         struct hearth_err *err)
{
    const struct hearth_profile *p = s->profile;
    uint32_t max_labels = 0;

    for (uint32_t i = 0; i < p->n_samples; i++) {
        uint32_t n = p->label_first[i + 1] - p->label_first[i];
        max_labels = n > max_labels ? n : max_labels;
    }

    uint32_t *group_of = hearth_arena_array(s->arena, p->n_samples, sizeof group_of[0]);
    struct index_pair *pairs = hearth_arena_array(s->arena, max_labels, sizeof pairs[0]);
    s->key_kinds = hearth_arena_zalloc(s->arena, p->n_strings);

    if (group_of == NULL || pairs == NULL || s->key_kinds == NULL) {
        return HEARTH_FAIL_ARENA(err, s->arena);
    }

    for (uint32_t i = 0; i < p->n_samples; i++) {
        /* Samples that do not count are in no group. */
        group_of[i] = HEARTH_NO_INDEX;
        if (!check_sample(p, i, skip[i], s->discards)) {
            skip[i] = true;
            continue;
        }

        uint32_t n_pairs = 0;
        if (p->label_first[i] != p->label_first[i + 1]) {
            n_pairs = collect_splitting_labels(s, i, pairs, max_labels, &ret->has_attrs);
        }

        group_of[i] = find_group_of_sample(s, pairs, n_pairs);
        if (group_of[i] == HEARTH_IDMAP_NONE) {
            return HEARTH_FAIL_ARENA(err, s->arena);
        }
    }

    return list_group_samples(s, group_of, ret) ? HEARTH_OK : HEARTH_FAIL_ARENA(err, s->arena);
}

/*
 * Puts every sample that counts into one group: the short way for profiles without sample labels.
 */
static enum hearth_status make_single_group(struct splitter *s, bool *skip,
                                            struct hearth_split *ret, struct hearth_err *err)
{
    const struct hearth_profile *p = s->profile;
    struct hearth_group *group = hearth_arena_zalloc(s->arena, sizeof *group);
    uint32_t *samples = hearth_arena_array(s->arena, p->n_samples, sizeof samples[0]);
    if (group == NULL || samples == NULL) {
        return HEARTH_FAIL_ARENA(err, s->arena);
    }

    group->labels = *s->series_labels;
    group->samples = samples;

    /* All samples share the labels of the series. */
    for (uint32_t i = 0; i < p->n_samples; i++) {
        if (check_sample(p, i, skip[i], s->discards)) {
            samples[group->n_samples++] = i;
        } else {
            skip[i] = true;
        }
    }

    ret->groups = group;
    ret->n_groups = group->n_samples > 0 ? 1 : 0;

    if (ret->n_groups > 0 && !find_group_types(s, group)) {
        return HEARTH_FAIL_ARENA(err, s->arena);
    }

    return HEARTH_OK;
}

enum hearth_status hearth_split_samples(const struct hearth_push_work *work,
                                        const struct hearth_labels *series_labels, bool *skip,
                                        struct hearth_split *ret, struct hearth_err *err)
{
    assert(work != NULL && ret != NULL);

    const struct hearth_profile *profile = work->profile;
    struct splitter s = {
        .limits = work->limits,
        .profile = profile,
        .series_labels = series_labels,
        .arena = work->arena,
        .discards = work->discards,
    };

    assert(profile->n_samples == 0 || skip != NULL);

    *ret = (struct hearth_split){0};
    if (profile->n_sample_labels == 0) {
        return make_single_group(&s, skip, ret, err);
    }

    hearth_idmap_init(&s.by_index);
    hearth_idmap_init(&s.by_content);
    enum hearth_status status = assign_samples(&s, skip, ret, err);

    hearth_idmap_release(&s.by_index);
    hearth_idmap_release(&s.by_content);
    hearth_mem_free(s.of_index_set);
    hearth_mem_free(s.groups);

    return status;
}
