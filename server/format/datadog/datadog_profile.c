/*
 * datadog_profile.c -- divides the columns of a profile into families.
 *
 * A family with all columns shares all tables. Otherwise a family has its own samples: those that
 * are not 0 in its columns.
 */
#include "hearth/format/datadog_profile.h"

#include "datadog/datadog_labels.h"

#include <assert.h>

enum family {
#define FAMILY(id, name, period_type, period_unit) FAMILY_##id,
#define TYPE(family, type, unit, name_here)
#include "datadog/datadog_types.def"
#undef FAMILY
#undef TYPE
    N_FAMILIES
};

_Static_assert(N_FAMILIES <= HEARTH_DATADOG_MAX_FAMILIES, "the caller has room for all families");

static const struct {
    const char *name, *period_type, *period_unit;
} g_families[] = {
#define FAMILY(id, name, period_type, period_unit) {name, period_type, period_unit},
#define TYPE(family, type, unit, name_here)
#include "datadog/datadog_types.def"
#undef FAMILY
#undef TYPE
};

static const struct known_type {
    enum family family;
    const char *type, *unit, *name;
} g_known_types[] = {
#define FAMILY(id, name, period_type, period_unit)
#define TYPE(family, type, unit, name_here) {FAMILY_##family, type, unit, name_here},
#include "datadog/datadog_types.def"
#undef FAMILY
#undef TYPE
};

/* The place of a column. */
struct column {
    enum family family;
    uint32_t type; /* string index of its name in Hearth */
};

struct divider {
    struct hearth_profile *profile;
    struct hearth_arena *arena;
    struct hearth_datadog_notes *notes;
    uint32_t cap_strings;   /* of profile->strings */
    struct column *columns; /* [n_types] */
};

static uint32_t add_static_string(struct divider *d, const char *text)
{
    assert(d->profile->n_strings < d->cap_strings);

    d->profile->strings[d->profile->n_strings] = hearth_str_c(text);
    return d->profile->n_strings++;
}

/* ---- types ---- */

/* Equal but for "-" and "_". */
static bool is_type_name(struct hearth_str text, const char *name)
{
    if (text.n != strlen(name)) {
        return false;
    }

    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        if ((c == '_' ? '-' : c) != name[i]) {
            return false;
        }
    }

    return true;
}

static bool contains_word(struct hearth_str text, struct hearth_str word)
{
    for (size_t i = 0; i + word.n <= text.n; i++) {
        if (memcmp(text.p + i, word.p, word.n) == 0) {
            return true;
        }
    }

    return false;
}

static const struct known_type *find_known_type(const struct hearth_profile *p,
                                                struct hearth_value_type type, bool is_block)
{
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_known_types); i++) {
        const struct known_type *known = &g_known_types[i];
        bool is_elsewhere = known->family == (is_block ? FAMILY_MUTEX : FAMILY_BLOCK);
        if (!is_elsewhere && is_type_name(p->strings[type.type], known->type) &&
            hearth_str_eq_c(p->strings[type.unit], known->unit)) {
            return known;
        }
    }

    return NULL;
}

/* Whether an earlier column has this place. */
static bool is_place_taken(const struct divider *d, uint32_t n, const struct known_type *known)
{
    for (uint32_t k = 0; k < n; k++) {
        if (d->columns[k].family == known->family &&
            hearth_str_eq_c(d->profile->strings[d->columns[k].type], known->name)) {
            return true;
        }
    }

    return false;
}

static void place_columns(struct divider *d, struct hearth_str filename)
{
    struct hearth_profile *p = d->profile;
    bool is_block = contains_word(filename, HEARTH_STR("block"));

    for (uint32_t k = 0; k < p->n_types; k++) {
        const struct known_type *known = find_known_type(p, p->types[k], is_block);
        if (known == NULL || is_place_taken(d, k, known)) {
            d->columns[k] = (struct column){FAMILY_OTHER, p->types[k].type};
        } else {
            d->columns[k] = (struct column){known->family, add_static_string(d, known->name)};
        }
    }
}

/* ---- families ---- */

static void set_family_period(struct divider *d, enum family family, struct hearth_profile *part)
{
    const struct hearth_str *strings = d->profile->strings;
    const char *type = g_families[family].period_type, *unit = g_families[family].period_unit;

    bool is_own = hearth_str_eq_c(strings[part->period_type.type], type) &&
                  hearth_str_eq_c(strings[part->period_type.unit], unit);
    bool is_only = part->n_types == d->profile->n_types;
    if (is_own || (type[0] == '*' && is_only)) {
        return;
    }

    /* Otherwise the period is that of another type. */
    part->period = 0;
    part->period_type = (struct hearth_value_type){0, 0};
    if (type[0] != '*' && type[0] != '\0') {
        part->period_type.type = add_static_string(d, type);
        part->period_type.unit = add_static_string(d, unit);
    }
}

/* A family in the making. */
struct family_columns {
    uint32_t *columns; /* of the divided profile */
    uint32_t n;
};

/* Whether a sample is not 0 in a column of the family. */
static bool has_family_value(const struct hearth_profile *p, uint32_t sample,
                             const struct family_columns *own)
{
    const int64_t *values = p->values + (size_t)sample * p->n_types;

    for (uint32_t k = 0; k < own->n; k++) {
        if (values[own->columns[k]] != 0) {
            return true;
        }
    }

    return false;
}

/* Allocates the sample tables of a family; false if it has no samples, or no memory. */
static bool make_family_tables(const struct divider *d, const struct family_columns *own,
                               struct hearth_profile *part)
{
    const struct hearth_profile *p = d->profile;
    uint32_t n_samples = 0, n_locs = 0, n_labels = 0;

    for (uint32_t s = 0; s < p->n_samples; s++) {
        if (has_family_value(p, s, own)) {
            n_samples++;
            n_locs += p->stack_first[s + 1] - p->stack_first[s];
            n_labels += p->label_first[s + 1] - p->label_first[s];
        }
    }

    if (n_samples == 0) {
        return false;
    }

    struct hearth_arena *arena = d->arena;
    part->n_samples = n_samples;
    part->stack_first = hearth_arena_array(arena, (size_t)n_samples + 1, sizeof(uint32_t));
    part->label_first = hearth_arena_array(arena, (size_t)n_samples + 1, sizeof(uint32_t));
    part->stack_locs = hearth_arena_array(arena, n_locs, sizeof(uint32_t));
    part->sample_labels = hearth_arena_array(arena, n_labels, sizeof part->sample_labels[0]);
    part->values = hearth_arena_array(arena, (size_t)n_samples * part->n_types, sizeof(int64_t));

    return !arena->refused;
}

/* Copies the samples of a family into its tables. */
static void fill_family_tables(const struct divider *d, const struct family_columns *own,
                               struct hearth_profile *part)
{
    const struct hearth_profile *p = d->profile;
    uint32_t n = 0, n_locs = 0, n_labels = 0;
    int64_t *value = part->values;

    for (uint32_t s = 0; s < p->n_samples; s++) {
        if (!has_family_value(p, s, own)) {
            continue;
        }

        uint32_t locs = p->stack_first[s + 1] - p->stack_first[s];
        uint32_t labels = p->label_first[s + 1] - p->label_first[s];
        part->stack_first[n] = n_locs;
        part->label_first[n++] = n_labels;
        if (locs > 0) {
            memcpy(part->stack_locs + n_locs, p->stack_locs + p->stack_first[s],
                   locs * sizeof(uint32_t));
        }
        if (labels > 0) {
            memcpy(part->sample_labels + n_labels, p->sample_labels + p->label_first[s],
                   labels * sizeof part->sample_labels[0]);
        }

        n_locs += locs;
        n_labels += labels;
        for (uint32_t k = 0; k < own->n; k++) {
            *value++ = p->values[(size_t)s * p->n_types + own->columns[k]];
        }
    }

    assert(n == part->n_samples);
    part->stack_first[n] = part->n_stack_locs = n_locs;
    part->label_first[n] = part->n_sample_labels = n_labels;
}

/* Makes the profile of a family; false if it has no samples, or no memory. */
static bool make_family(struct divider *d, enum family family, struct hearth_profile *part)
{
    const struct hearth_profile *p = d->profile;
    struct family_columns own = {0};

    *part = *p;
    part->n_types = 0;
    part->default_type = 0;
    part->types = hearth_arena_array(d->arena, p->n_types, sizeof part->types[0]);
    own.columns = hearth_arena_array(d->arena, p->n_types, sizeof own.columns[0]);
    if (part->types == NULL || own.columns == NULL) {
        return false;
    }

    for (uint32_t k = 0; k < p->n_types; k++) {
        if (d->columns[k].family == family) {
            own.columns[own.n++] = k;
            part->types[part->n_types++] =
                (struct hearth_value_type){d->columns[k].type, p->types[k].unit};
        }
    }

    if (part->n_types == 0) {
        return false;
    }

    set_family_period(d, family, part);
    if (part->n_types == p->n_types) {
        return true; /* it shares all tables */
    }

    if (!make_family_tables(d, &own, part)) {
        return false;
    }

    fill_family_tables(d, &own, part);

    return true;
}

/* Samples that are 0 in all columns are in no family, unless there is only one family. */
static void count_lost_samples(const struct divider *d)
{
    const struct hearth_profile *p = d->profile;

    for (uint32_t s = 0; s < p->n_samples; s++) {
        int64_t any = 0;
        for (uint32_t k = 0; k < p->n_types; k++) {
            any |= p->values[(size_t)s * p->n_types + k];
        }
        d->notes->zero_samples += any == 0;
    }
}

enum hearth_status hearth_datadog_profile_divide(struct hearth_profile *profile,
                                                 struct hearth_str filename,
                                                 const struct hearth_str *custom_keys,
                                                 size_t n_custom_keys, struct hearth_arena *arena,
                                                 struct hearth_datadog_profile *ret, size_t *ret_n,
                                                 struct hearth_datadog_notes *ret_notes)
{
    struct divider d = {.profile = profile, .arena = arena, .notes = ret_notes};
    size_t n = 0, n_names = (size_t)profile->n_types + 2 * N_FAMILIES;

    assert(profile->n_types > 0);
    *ret_notes = (struct hearth_datadog_notes){0};
    d.columns = hearth_arena_array(arena, profile->n_types, sizeof d.columns[0]);
    if (d.columns == NULL || !hearth_datadog_labels_filter(profile, custom_keys, n_custom_keys,
                                                           n_names, arena, ret_notes)) {
        return HEARTH_NO_MEMORY;
    }

    d.cap_strings = (uint32_t)(profile->n_strings + n_names);
    place_columns(&d, filename);
    for (unsigned family = 0; family < N_FAMILIES; family++) {
        if (make_family(&d, (enum family)family, &ret[n].profile)) {
            ret[n++].name = g_families[family].name;
        } else if (arena->refused) {
            return HEARTH_NO_MEMORY;
        }
    }

    if (n != 1 || ret[0].profile.n_types != profile->n_types) {
        count_lost_samples(&d);
    }

    /* The names that were added are in the table of all families. */
    for (size_t i = 0; i < n; i++) {
        ret[i].profile.strings = profile->strings;
        ret[i].profile.n_strings = profile->n_strings;
    }

    *ret_n = n;
    return HEARTH_OK;
}
