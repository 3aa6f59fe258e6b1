/* datadog_labels.c -- which labels of samples stay, and under which keys. */
#include "datadog/datadog_labels.h"

#include "hearth/model/sample_attrs.h"

#include "datadog/datadog_names.h"

#include <assert.h>

static const struct {
    const char *key, *label;
} g_kept_labels[] = {
#define KEPT(key, label) {key, label},
#include "datadog/datadog_labels.def"
#undef KEPT
};

struct label_filter {
    struct hearth_profile *profile;
    const struct hearth_str *custom_keys;
    size_t n_custom_keys;
    struct hearth_arena *arena;
    struct hearth_datadog_notes *notes;
    uint32_t cap_strings; /* of profile->strings, after it was copied */
    uint32_t *labels;     /* string indices of the labels of g_kept_labels, then of custom_keys; 0:
                             not made yet */
    uint32_t *kept_keys;  /* [n_strings]: 0: not known yet; HEARTH_NO_INDEX: the label is dropped;
                             otherwise the key that it gets */
};

/* Makes the tables, and room for more strings. */
static bool make_label_tables(struct label_filter *f, size_t n_more_strings)
{
    struct hearth_profile *p = f->profile;
    size_t n_labels = HEARTH_ARRAY_LEN(g_kept_labels) + f->n_custom_keys;
    size_t cap = (size_t)p->n_strings + n_labels + n_more_strings;
    struct hearth_str *strings = hearth_arena_array(f->arena, cap, sizeof *strings);
    f->labels = hearth_arena_calloc(f->arena, n_labels, sizeof f->labels[0]);
    f->kept_keys = hearth_arena_calloc(f->arena, p->n_strings, sizeof f->kept_keys[0]);
    if (strings == NULL || f->labels == NULL || f->kept_keys == NULL || cap > UINT32_MAX) {
        return false;
    }

    memcpy(strings, p->strings, p->n_strings * sizeof *strings);
    p->strings = strings;
    f->cap_strings = (uint32_t)(cap - n_more_strings);

    return true;
}

/* The string of a label, made once: a profile may have the same key at many indices. */
static uint32_t find_label_string(struct label_filter *f, size_t label, struct hearth_str name)
{
    if (f->labels[label] == 0 && name.p != NULL) {
        assert(f->profile->n_strings < f->cap_strings);
        f->profile->strings[f->profile->n_strings] = name;
        f->labels[label] = f->profile->n_strings++;
    }

    return f->labels[label] == 0 ? HEARTH_NO_INDEX : f->labels[label];
}

/* The key that labels with this key get; HEARTH_NO_INDEX: they are dropped. */
static uint32_t choose_label_key(struct label_filter *f, uint32_t key)
{
    struct hearth_str text = f->profile->strings[key];
    const size_t n_kept = HEARTH_ARRAY_LEN(g_kept_labels);

    if (hearth_attr_of_key(text) != HEARTH_ATTR_NONE) {
        return key;
    }

    for (size_t i = 0; i < n_kept; i++) {
        if (hearth_str_eq_c(text, g_kept_labels[i].key)) {
            return find_label_string(f, i, hearth_str_c(g_kept_labels[i].label));
        }
    }

    for (size_t i = 0; i < f->n_custom_keys; i++) {
        if (hearth_str_eq(text, f->custom_keys[i])) {
            return find_label_string(f, n_kept + i, hearth_datadog_label_name(text, f->arena));
        }
    }

    return HEARTH_NO_INDEX;
}

/* Whether a label stays; its key becomes that of the table. */
static bool keep_sample_label(struct label_filter *f, struct hearth_sample_label *label)
{
    if (label->key == 0) {
        f->notes->unlisted_labels++;
        return false;
    }

    if (f->kept_keys[label->key] == 0) {
        f->kept_keys[label->key] = choose_label_key(f, label->key);
    }

    uint32_t key = f->kept_keys[label->key];
    bool is_number = label->str == 0;
    bool is_attr = is_number && key != HEARTH_NO_INDEX &&
                   hearth_attr_of_key(f->profile->strings[key]) != HEARTH_ATTR_NONE;
    if (is_number && !is_attr) {
        f->notes->numeric_labels++;
        return false;
    }
    if (key == HEARTH_NO_INDEX) {
        f->notes->unlisted_labels++;
        return false;
    }

    label->key = key;
    return true;
}

bool hearth_datadog_labels_filter(struct hearth_profile *profile,
                                  const struct hearth_str *custom_keys, size_t n_custom_keys,
                                  size_t n_more_strings, struct hearth_arena *arena,
                                  struct hearth_datadog_notes *notes)
{
    struct label_filter f = {
        .profile = profile,
        .custom_keys = custom_keys,
        .n_custom_keys = n_custom_keys,
        .arena = arena,
        .notes = notes,
    };
    uint32_t n = 0, from = 0;

    if (!make_label_tables(&f, n_more_strings)) {
        return false;
    }

    /* Compact the labels of all samples in place. */
    for (uint32_t s = 0; s < profile->n_samples; s++) {
        uint32_t end = profile->label_first[s + 1];
        profile->label_first[s] = n;
        for (; from < end; from++) {
            struct hearth_sample_label label = profile->sample_labels[from];
            if (keep_sample_label(&f, &label)) {
                profile->sample_labels[n++] = label;
            }
        }
    }

    profile->label_first[profile->n_samples] = n;
    profile->n_sample_labels = n;

    return !arena->refused;
}
