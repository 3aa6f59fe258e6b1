/*
 * rows.c -- one group of samples to one stored row: sort by stack id, merge equals, encode; attributes and their ids beside.
 */

#include "ingest/ingest_internal.h"

struct entry {
    uint32_t id, row; /* of the values */
};

/* Values of samples: row r at v + r * n_types. */
struct values {
    const int64_t *v;
    bool is_packed; /* rows are positions in the group's list of samples, else sample indices */
};

static uint32_t row_of(const struct values *values, const struct hearth_group *group, uint32_t i)
{
    return values->is_packed ? i : group->samples[i];
}

/* The profile's values, or a copy without the types that the group does not have. */
static bool take_values(const struct hearth_profile *profile, const struct hearth_group *group,
                        struct hearth_arena *scratch, struct values *ret)
{
    if (group->n_types == profile->n_types) {
        *ret = (struct values){.v = profile->values};
        return true;
    }
    int64_t *packed =
        hearth_arena_array(scratch, (size_t)group->n_samples * group->n_types, sizeof packed[0]);
    if (packed == NULL) {
        return false;
    }
    *ret = (struct values){.v = packed, .is_packed = true};
    for (uint32_t i = 0; i < group->n_samples; i++) {
        const int64_t *from = profile->values + (size_t)group->samples[i] * profile->n_types;
        for (uint32_t k = 0; k < group->n_types; k++) {
            *packed++ = from[group->types[k]];
        }
    }
    return true;
}

/*
 * Least significant digit first, eight bits a pass: profiles have hundreds of samples and ids of two
 * bytes, so a pass should not cost more for its buckets than for its entries. Stable, so samples of
 * one stack keep their order. Returns the array that holds the result.
 */
static struct entry *radix_sort(struct entry *from, struct entry *to, uint32_t n)
{
    enum {
        BITS = 8,
        BUCKETS = 1 << BITS
    };
    uint32_t any = 0;
    for (uint32_t i = 0; i < n; i++) {
        any |= from[i].id;
    }
    for (unsigned shift = 0; shift < 32 && any >> shift != 0; shift += BITS) {
        uint32_t count[BUCKETS] = {0};
        for (uint32_t i = 0; i < n; i++) {
            count[from[i].id >> shift & (BUCKETS - 1)]++;
        }
        uint32_t at = 0;
        for (uint32_t b = 0; b < BUCKETS; b++) {
            uint32_t here = count[b];
            count[b] = at;
            at += here;
        }
        for (uint32_t i = 0; i < n; i++) {
            to[count[from[i].id >> shift & (BUCKETS - 1)]++] = from[i];
        }
        struct entry *swap = from;
        from = to;
        to = swap;
    }
    return from;
}

/* Sum samples with equal stacks; writes ids[] and values[], returns how many are left or 0 on
 * overflow. */
static uint32_t merge_equal(const int64_t *rows, uint32_t n_types, const struct entry *sorted,
                            uint32_t n, uint32_t *ids, int64_t *values, uint32_t *ret_overflow_type)
{
    uint32_t n_out = 0;
    for (uint32_t i = 0; i < n; i++) {
        const int64_t *from = rows + (size_t)sorted[i].row * n_types;
        int64_t *to = values + (size_t)n_out * n_types;
        if (n_out > 0 && ids[n_out - 1] == sorted[i].id) {
            to -= n_types;
            for (uint32_t k = 0; k < n_types; k++) {
                if (__builtin_add_overflow(to[k], from[k], &to[k])) {
                    *ret_overflow_type = k;
                    return 0;
                }
            }
            continue;
        }
        ids[n_out++] = sorted[i].id;
        memcpy(to, from, n_types * sizeof to[0]);
    }
    return n_out;
}

static enum hearth_status put_attrs(const struct hearth_profile *profile,
                                    const struct hearth_group *group, const struct values *values,
                                    const uint32_t *stack_ids, struct hearth_arena *scratch,
                                    struct hearth_arena *keep, struct hearth_push_row *row,
                                    struct hearth_err *err)
{
    struct hearth_attr_sample *samples =
        hearth_arena_array(scratch, group->n_samples, sizeof samples[0]);
    if (samples == NULL) {
        return HEARTH_FAIL_ARENA(err, scratch);
    }
    /* Labels of samples mostly come in the same order; key 0 is the empty text, which is no attribute. */
    struct {
        uint32_t key;
        enum hearth_attr attr;
    } seen[8] = {{0, HEARTH_ATTR_NONE}};
    size_t n = 0;
    for (uint32_t i = 0; i < group->n_samples; i++) {
        uint32_t s = group->samples[i];
        struct hearth_attr_sample *out = &samples[n];
        *out = (struct hearth_attr_sample){
            .stack_id = stack_ids[s],
            .values = values->v + (size_t)row_of(values, group, i) * group->n_types,
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
    HEARTH_TRY(hearth_associations_of_samples(samples, n, scratch, keep, &associations,
                                              &row->n_associations, err));
    row->associations = associations;
    return hearth_sample_attrs_encode(samples, n, group->n_types, keep, &row->attrs, err);
}

enum hearth_status hearth_group_encode(const struct hearth_profile *profile,
                                       const struct hearth_group *group, const uint32_t *stack_ids,
                                       bool has_attrs, struct hearth_arena *scratch,
                                       struct hearth_arena *keep, uint64_t *discards,
                                       struct hearth_push_row *ret_row, struct hearth_err *err)
{
    uint32_t n = group->n_samples, n_types = group->n_types;
    struct values from;
    struct entry *a = hearth_arena_array(scratch, n, sizeof a[0]);
    struct entry *b = hearth_arena_array(scratch, n, sizeof b[0]);
    uint32_t *ids = hearth_arena_array(scratch, n, sizeof ids[0]);
    int64_t *values = hearth_arena_array(scratch, (size_t)n * n_types, sizeof values[0]);
    if (a == NULL || b == NULL || ids == NULL || values == NULL ||
        !take_values(profile, group, scratch, &from)) {
        return HEARTH_FAIL_ARENA(err, scratch);
    }
    for (uint32_t i = 0; i < n; i++) {
        a[i] = (struct entry){stack_ids[group->samples[i]], row_of(&from, group, i)};
    }
    const struct entry *sorted = radix_sort(a, b, n);
    uint32_t overflow_type = 0;
    uint32_t n_ids = merge_equal(from.v, n_types, sorted, n, ids, values, &overflow_type);
    if (n_ids == 0) {
        uint32_t type = profile->types[group->types[overflow_type]].type;
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "values of sample type '" HEARTH_STR_FMT
                           "' overflow 64 bits when equal stacks are summed",
                           HEARTH_STR_ARG(profile->strings[type]));
    }
    discards[HEARTH_DISCARD_MERGED_SAMPLES] += n - n_ids;
    *ret_row = (struct hearth_push_row){
        .duration_ns = profile->duration_ns,
        .period = profile->period,
    };
    enum hearth_status status =
        hearth_columns_encode(ids, values, n_ids, n_types, keep, &ret_row->columns, err);
    if (status == HEARTH_OUT_OF_RANGE) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "the profile's values overflow 64 bits when they are summed");
    }
    HEARTH_TRY(status);
    if (has_attrs) {
        HEARTH_TRY(put_attrs(profile, group, &from, stack_ids, scratch, keep, ret_row, err));
    }
    return HEARTH_OK;
}
