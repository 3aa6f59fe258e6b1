/*
 * rows.c -- one group of samples to one stored row: sorted by stack id, equal stacks merged,
 * encoded; attributes and their ids are encoded next to it.
 */

#include "hearth/base/radix.h"

#include "ingest/ingest_internal.h"

#include <assert.h>

struct row_entry {
    uint32_t id, row; /* stack id; row of the values */
};

/* Sums by stack, filled by merge_equal_stacks. */
struct stack_sums {
    uint32_t *ids;          /* [n], ascending */
    int64_t *values;        /* [n * n_types] */
    uint32_t overflow_type; /* the column whose sum overflowed */
};

/* Values of samples; row r begins at v + r * n_types. */
struct sample_values {
    const int64_t *v;
    bool is_packed; /* rows are positions in the group's list of samples, not sample indices */
};

static uint32_t find_value_row(const struct sample_values *values, const struct hearth_group *group,
                               uint32_t i)
{
    return values->is_packed ? i : group->samples[i];
}

/* Selects the profile's values, or copies them without the types that the group lacks. */
static bool select_values(const struct hearth_profile *profile, const struct hearth_group *group,
                          struct hearth_arena *scratch, struct sample_values *ret)
{
    if (group->n_types == profile->n_types) {
        *ret = (struct sample_values){.v = profile->values};
        return true;
    }

    int64_t *packed =
        hearth_arena_array(scratch, (size_t)group->n_samples * group->n_types, sizeof packed[0]);
    if (packed == NULL) {
        return false;
    }

    *ret = (struct sample_values){.v = packed, .is_packed = true};
    for (uint32_t i = 0; i < group->n_samples; i++) {
        const int64_t *from = profile->values + (size_t)group->samples[i] * profile->n_types;
        for (uint32_t k = 0; k < group->n_types; k++) {
            *packed++ = from[group->types[k]];
        }
    }

    return true;
}

/*
 * Sums samples with equal stacks into *sums. Returns how many stacks are left, or 0 if a sum
 * overflows.
 */
static uint32_t merge_equal_stacks(const int64_t *rows, uint32_t n_types,
                                   const struct row_entry *sorted, uint32_t n,
                                   struct stack_sums *sums)
{
    uint32_t *ids = sums->ids;
    int64_t *values = sums->values;
    uint32_t n_out = 0;

    for (uint32_t i = 0; i < n; i++) {
        const int64_t *from = rows + (size_t)sorted[i].row * n_types;
        int64_t *to = values + (size_t)n_out * n_types;

        if (n_out > 0 && ids[n_out - 1] == sorted[i].id) {
            to -= n_types;
            for (uint32_t k = 0; k < n_types; k++) {
                if (__builtin_add_overflow(to[k], from[k], &to[k])) {
                    sums->overflow_type = k;
                    return 0;
                }
            }
            continue;
        }

        ids[n_out++] = sorted[i].id;
        for (uint32_t k = 0; k < n_types; k++) { /* a call of memcpy costs more than two values */
            to[k] = from[k];
        }
    }

    return n_out;
}

/* Encodes the attributes of the group's samples that have any, and the ids for the span index. */
static enum hearth_status encode_attrs(const struct hearth_push_work *work,
                                       const struct hearth_group *group,
                                       const struct sample_values *values,
                                       const uint32_t *stack_ids, struct hearth_push_row *row,
                                       struct hearth_err *err)
{
    const struct hearth_profile *profile = work->profile;
    struct hearth_attr_sample *samples =
        hearth_arena_array(work->arena, group->n_samples, sizeof samples[0]);
    if (samples == NULL) {
        return HEARTH_FAIL_ARENA(err, work->arena);
    }

    /*
     * The meaning of the last keys, by position: samples mostly have their labels in the same
     * order. Key 0 is the empty string, which is no attribute.
     */
    struct {
        uint32_t key;
        enum hearth_attr attr;
    } seen[8] = {{0, HEARTH_ATTR_NONE}};

    /* Samples without attributes are overwritten by the next one. */
    size_t n = 0;
    for (uint32_t i = 0; i < group->n_samples; i++) {
        uint32_t s = group->samples[i];
        struct hearth_attr_sample *out = &samples[n];
        *out = (struct hearth_attr_sample){
            .stack_id = stack_ids[s],
            .values = values->v + (size_t)find_value_row(values, group, i) * group->n_types,
        };

        for (uint32_t l = profile->label_first[s]; l < profile->label_first[s + 1]; l++) {
            const struct hearth_sample_label *label = &profile->sample_labels[l];
            struct hearth_str key = profile->strings[label->key];
            size_t place = (l - profile->label_first[s]) % HEARTH_ARRAY_LEN(seen);
            if (seen[place].key != label->key) {
                seen[place].key = label->key;
                seen[place].attr = hearth_attr_of_key(key);
            }
            if (seen[place].attr != HEARTH_ATTR_NONE) {
                hearth_sample_attrs_set(&out->attrs, seen[place].attr, key,
                                        profile->strings[label->str], label->num);
            }
        }
        n += hearth_sample_attrs_empty(&out->attrs) ? 0 : 1;
    }

    struct hearth_association *associations;
    HEARTH_TRY(hearth_associations_of_samples(samples, n, work->arena, work->keep, &associations,
                                              &row->n_associations, err));
    row->associations = associations;

    return hearth_sample_attrs_encode(samples, n, group->n_types, work->keep, &row->attrs, err);
}

enum hearth_status hearth_group_encode(const struct hearth_push_work *work,
                                       const struct hearth_group *group, const uint32_t *stack_ids,
                                       bool has_attrs, struct hearth_push_row *ret_row,
                                       struct hearth_err *err)
{
    const struct hearth_profile *profile = work->profile;
    struct hearth_arena *scratch = work->arena;
    uint32_t n = group->n_samples, n_types = group->n_types;
    struct sample_values from;
    struct stack_sums sums = {.overflow_type = 0};

    assert(n > 0 && n_types > 0 && n_types <= profile->n_types);

    struct row_entry *a = hearth_arena_array(scratch, n, sizeof a[0]);
    struct row_entry *b = hearth_arena_array(scratch, n, sizeof b[0]);
    sums.ids = hearth_arena_array(scratch, n, sizeof sums.ids[0]);
    sums.values = hearth_arena_array(scratch, (size_t)n * n_types, sizeof sums.values[0]);
    if (a == NULL || b == NULL || sums.ids == NULL || sums.values == NULL ||
        !select_values(profile, group, scratch, &from)) {
        return HEARTH_FAIL_ARENA(err, scratch);
    }

    /* Sort the samples by stack, then sum equal stacks. */
    uint32_t id_bits = 0;
    for (uint32_t i = 0; i < n; i++) {
        a[i] = (struct row_entry){stack_ids[group->samples[i]], find_value_row(&from, group, i)};
        id_bits |= a[i].id;
    }

    const struct hearth_radix_entry by_id = HEARTH_RADIX_ENTRY(struct row_entry, id);
    const struct row_entry *sorted = hearth_radix_sort(a, b, n, by_id, id_bits);
    uint32_t n_ids = merge_equal_stacks(from.v, n_types, sorted, n, &sums);
    if (n_ids == 0) {
        uint32_t type = profile->types[group->types[sums.overflow_type]].type;
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "values of sample type '" HEARTH_STR_FMT
                           "' overflow 64 bits when equal stacks are summed",
                           HEARTH_STR_ARG(profile->strings[type]));
    }

    work->discards[HEARTH_DISCARD_MERGED_SAMPLES] += n - n_ids;

    *ret_row = (struct hearth_push_row){
        .duration_ns = profile->duration_ns,
        .period = profile->period,
    };
    enum hearth_status status = hearth_columns_encode(sums.ids, sums.values, n_ids, n_types,
                                                      work->keep, &ret_row->columns, err);
    if (status == HEARTH_OUT_OF_RANGE) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "the profile's values overflow 64 bits when they are summed");
    }

    HEARTH_TRY(status);

    if (has_attrs) {
        HEARTH_TRY(encode_attrs(work, group, &from, stack_ids, ret_row, err));
    }

    return HEARTH_OK;
}
