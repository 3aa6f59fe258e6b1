/*
 * profile_totals.c -- totals of samples by the hash of their stack and labels.
 *
 * A table of totals is made of each profile, the earlier and the later one, so that samples which
 * occur several times are summed before they are compared.
 */
#include "hearth/format/profile_totals.h"

#include "hearth/base/hash.h"
#include "hearth/base/mem.h"

#include <assert.h>

#define MAX_TOTALS 4 /* sample types that are totals */

struct hearth_profile_totals {
    struct hearth_idmap rows; /* hash of a sample: its row */
    int64_t *values;          /* [row * n_columns + column] */
    uint32_t *samples;        /* [row]: its first sample in the profile */
    uint32_t n_rows;
    uint32_t columns[MAX_TOTALS]; /* indices of sample types in the profile */
    uint32_t n_columns;
    uint64_t types_hash; /* of the names of all sample types */
};

/* ---- sample types ---- */

static bool is_total(struct hearth_str type)
{
    static const char *const names[] = {"alloc_objects", "alloc_space", "contentions", "delay"};

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(names); i++) {
        if (hearth_str_eq_c(type, names[i])) {
            return true;
        }
    }

    return false;
}

static void find_total_types(const struct hearth_profile *profile,
                             struct hearth_profile_totals *totals)
{
    for (uint32_t i = 0; i < profile->n_types; i++) {
        struct hearth_str type = profile->strings[profile->types[i].type];
        totals->types_hash = hearth_hash64(type.p, type.n, totals->types_hash + 1);
        if (is_total(type) && totals->n_columns < MAX_TOTALS) {
            totals->columns[totals->n_columns++] = i;
        }
    }
}

bool hearth_profile_has_totals(const struct hearth_profile *profile)
{
    struct hearth_profile_totals totals = {0};

    find_total_types(profile, &totals);

    return totals.n_columns > 0;
}

/* ---- hashes ---- */

static uint64_t hash_string(const struct hearth_profile *profile, uint32_t string, uint64_t hash)
{
    struct hearth_str text = profile->strings[string];
    return hearth_hash64(text.p, text.n, hash);
}

static uint64_t hash_location(const struct hearth_profile *profile,
                              const struct hearth_location *location)
{
    uint64_t hash = location->address;

    if (location->mapping != HEARTH_NO_INDEX) {
        const struct hearth_mapping *mapping = &profile->mappings[location->mapping];
        hash = hash_string(profile, mapping->filename, hash);
        hash = hash_string(profile, mapping->build_id, hash);
    }

    for (uint32_t i = 0; i < location->n_lines; i++) {
        const struct hearth_line *line = &profile->lines[location->first_line + i];
        const struct hearth_function *function = &profile->functions[line->function];
        hash = hearth_hash_mix(hash_string(profile, function->name, hash), (uint64_t)line->line);
        hash = hash_string(profile, function->filename, hash);
    }

    return hash;
}

/* locations: their hashes. */
static struct hearth_hash128 hash_sample(const struct hearth_profile *profile, uint32_t sample,
                                         const uint64_t *locations)
{
    struct hearth_hash128 hash = {0, hearth_hash_process_seed()};

    for (uint32_t i = profile->stack_first[sample]; i < profile->stack_first[sample + 1]; i++) {
        uint32_t location = profile->stack_locs[i];
        uint64_t part = location == HEARTH_NO_INDEX ? 1 : locations[location];
        hash = hearth_hash128(&part, sizeof part, hearth_hash_mix(hash.lo, hash.hi));
    }

    for (uint32_t i = profile->label_first[sample]; i < profile->label_first[sample + 1]; i++) {
        const struct hearth_sample_label *label = &profile->sample_labels[i];
        const uint64_t parts[] = {hash_string(profile, label->key, 0),
                                  hash_string(profile, label->str, 0), (uint64_t)label->num};
        hash = hearth_hash128(parts, sizeof parts, hearth_hash_mix(hash.lo, hash.hi));
    }

    return hash;
}

/* ---- the table ---- */

/* Adds a sample to its row. Returns NO_MEMORY or OUT_OF_RANGE. */
static enum hearth_status add_sample_totals(struct hearth_profile_totals *totals,
                                            const struct hearth_profile *profile, uint32_t sample,
                                            struct hearth_hash128 key, struct hearth_err *err)
{
    bool is_new;
    uint32_t row = hearth_idmap_intern(&totals->rows, key, totals->n_rows, &is_new);

    if (row == HEARTH_IDMAP_NONE) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the totals of a profile");
    }
    if (is_new) {
        totals->samples[totals->n_rows++] = sample;
    }

    for (uint32_t i = 0; i < totals->n_columns; i++) {
        int64_t value = profile->values[(size_t)sample * profile->n_types + totals->columns[i]];
        int64_t *sum = &totals->values[(size_t)row * totals->n_columns + i];
        if (__builtin_add_overflow(*sum, value, sum)) {
            return HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE, "sample %u: a total exceeds 63 bits",
                               sample);
        }
    }

    return HEARTH_OK;
}

static enum hearth_status sum_samples(struct hearth_profile_totals *totals,
                                      const struct hearth_profile *profile, uint64_t *locations,
                                      struct hearth_err *err)
{
    for (uint32_t i = 0; i < profile->n_locations; i++) {
        locations[i] = hash_location(profile, &profile->locations[i]);
    }

    for (uint32_t i = 0; i < profile->n_samples; i++) {
        HEARTH_TRY(add_sample_totals(totals, profile, i, hash_sample(profile, i, locations), err));
    }

    return HEARTH_OK;
}

/* Makes the table of a profile. The caller frees *ret after OK. */
static enum hearth_status make_totals(const struct hearth_profile *profile,
                                      struct hearth_profile_totals **ret, struct hearth_err *err)
{
    struct hearth_profile_totals *totals = hearth_mem_zalloc(sizeof *totals);
    uint64_t *locations = hearth_mem_calloc(profile->n_locations + 1, sizeof *locations);
    enum hearth_status status =
        HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the totals of a profile");

    if (totals != NULL && locations != NULL) {
        hearth_idmap_init(&totals->rows);
        find_total_types(profile, totals);
        totals->values = hearth_mem_calloc((size_t)profile->n_samples * totals->n_columns + 1,
                                           sizeof *totals->values);
        totals->samples = hearth_mem_calloc(profile->n_samples + 1, sizeof *totals->samples);
        if (totals->values != NULL && totals->samples != NULL) {
            status = sum_samples(totals, profile, locations, err);
        }
    }

    hearth_mem_free(locations);
    if (status == HEARTH_OK) {
        *ret = totals;
    } else {
        hearth_profile_totals_free(totals);
    }

    return status;
}

struct hearth_profile_totals *hearth_profile_totals_new(const struct hearth_profile *profile)
{
    struct hearth_profile_totals *totals = NULL;
    struct hearth_err err = HEARTH_ERR_INIT;

    assert(profile != NULL);

    return make_totals(profile, &totals, &err) == HEARTH_OK ? totals : NULL;
}

void hearth_profile_totals_free(struct hearth_profile_totals *totals)
{
    if (totals == NULL) {
        return;
    }

    hearth_idmap_release(&totals->rows);
    hearth_mem_free(totals->values);
    hearth_mem_free(totals->samples);
    hearth_mem_free(totals);
}

/* ---- subtracting ---- */

/* True if a sum over all samples is lower than before. */
static bool has_lower_sum(const struct hearth_profile_totals *later,
                          const struct hearth_profile_totals *earlier)
{
    __extension__ typedef __int128 wide;

    for (uint32_t i = 0; i < later->n_columns; i++) {
        wide change = 0;
        for (size_t row = 0; row < later->n_rows; row++) {
            change += later->values[row * later->n_columns + i];
        }
        for (size_t row = 0; row < earlier->n_rows; row++) {
            change -= earlier->values[row * earlier->n_columns + i];
        }
        if (change < 0) {
            return true;
        }
    }

    return false;
}

/* Turns `later` into the difference. Returns false if a total is lower than before. */
static bool subtract_rows(struct hearth_profile_totals *later,
                          const struct hearth_profile_totals *earlier)
{
    uint32_t n_columns = later->n_columns;

    for (size_t slot = 0; slot < later->rows.cap; slot++) {
        const struct hearth_idmap_slot *row = &later->rows.slots[slot];
        if (row->id == 0) {
            continue;
        }

        struct hearth_hash128 key;
        memcpy(&key, row->key, sizeof key);
        uint32_t before = hearth_idmap_find(&earlier->rows, key);
        int64_t *values = &later->values[(size_t)(row->id - 1) * n_columns];
        for (uint32_t i = 0; before != HEARTH_IDMAP_NONE && i < n_columns; i++) {
            int64_t old = earlier->values[(size_t)before * n_columns + i];
            if (values[i] < old) {
                return false;
            }
            values[i] -= old;
        }
    }

    return true;
}

/* Writes the totals of each row to its first sample, and zeros to its other samples. */
static void write_totals(const struct hearth_profile_totals *totals, struct hearth_profile *profile)
{
    for (uint32_t i = 0; i < profile->n_samples; i++) {
        for (uint32_t k = 0; k < totals->n_columns; k++) {
            profile->values[(size_t)i * profile->n_types + totals->columns[k]] = 0;
        }
    }

    for (uint32_t row = 0; row < totals->n_rows; row++) {
        int64_t *values = &profile->values[(size_t)totals->samples[row] * profile->n_types];
        for (uint32_t k = 0; k < totals->n_columns; k++) {
            values[totals->columns[k]] = totals->values[(size_t)row * totals->n_columns + k];
        }
    }
}

enum hearth_status hearth_profile_subtract(struct hearth_profile *profile,
                                           const struct hearth_profile_totals *earlier,
                                           bool *ret_restarted, struct hearth_err *err)
{
    struct hearth_profile_totals *later = NULL;

    assert(profile != NULL && earlier != NULL && ret_restarted != NULL);

    HEARTH_TRY(make_totals(profile, &later, err));
    bool is_same_process = later->types_hash == earlier->types_hash &&
                           !has_lower_sum(later, earlier) && subtract_rows(later, earlier);
    if (is_same_process) {
        write_totals(later, profile);
    }

    hearth_profile_totals_free(later);
    *ret_restarted = !is_same_process;

    return HEARTH_OK;
}
