/*
 * upload_values.c -- the difference of a task's pprof to the previous file (contract:
 * task_uploads_internal.h).
 *
 * Go counts allocations and contentions from the start of the process, so a later profile contains
 * an earlier one. The earlier values are subtracted from the later ones, sample by sample; the sum
 * of both is then what the process counted. Samples are matched by stack trace and labels. If an
 * earlier profile has a larger value in any sample, it is from another process, and nothing is
 * subtracted.
 */
#include "select/query_internal.h"
#include "tasks/task_uploads_internal.h"

#include <assert.h>

#define MAX_COLUMNS 8

/* The cumulative columns of a profile, and the same columns of the previous profile. */
struct cumulative_columns {
    uint32_t of[MAX_COLUMNS], before[MAX_COLUMNS];
    size_t n;
};

/* Find the columns in both profiles; false: there are none, or the previous profile lacks one. */
static bool find_cumulative_columns(const struct hearth_profile *p,
                                    const struct hearth_profile *before, struct hearth_str event,
                                    struct cumulative_columns *ret)
{
    ret->n = 0;
    for (uint32_t t = 0; t < p->n_types; t++) {
        if (!hearth_upload_is_cumulative(event, p->strings[p->types[t].type])) {
            continue;
        }

        uint32_t b = 0;
        while (b < before->n_types && (!hearth_str_eq(before->strings[before->types[b].type],
                                                      p->strings[p->types[t].type]) ||
                                       !hearth_str_eq(before->strings[before->types[b].unit],
                                                      p->strings[p->types[t].unit]))) {
            b++;
        }
        if (b == before->n_types || ret->n == MAX_COLUMNS) {
            return false;
        }

        ret->of[ret->n] = t;
        ret->before[ret->n++] = b;
    }

    return ret->n > 0;
}

static void append_key_text(struct hearth_buf *out, struct hearth_str text)
{
    hearth_buf_append(out, &text.n, sizeof text.n);
    hearth_buf_str(out, text);
}

static void append_location_key(const struct hearth_profile *p, uint32_t loc,
                                struct hearth_buf *out)
{
    const struct hearth_location *location = &p->locations[loc];

    hearth_buf_append(out, &location->address, sizeof location->address);
    for (uint32_t i = 0; i < location->n_lines; i++) {
        const struct hearth_line *line = &p->lines[location->first_line + i];
        append_key_text(out, p->strings[p->functions[line->function].name]);
        hearth_buf_append(out, &line->line, sizeof line->line);
    }
}

static void append_label_keys(const struct hearth_profile *p, uint32_t sample,
                              struct hearth_buf *out)
{
    for (uint32_t l = p->label_first[sample]; l < p->label_first[sample + 1]; l++) {
        const struct hearth_sample_label *label = &p->sample_labels[l];
        append_key_text(out, p->strings[label->key]);
        append_key_text(out, p->strings[label->str]);
        hearth_buf_append(out, &label->num, sizeof label->num);
    }
}

static struct hearth_hash128 finish_key(struct hearth_buf *text)
{
    struct hearth_hash128 hash =
        hearth_hash128(text->n > 0 ? text->p : "", text->n, hearth_hash_process_seed());

    if (!hearth_buf_failed(text)) { /* a failure is checked once, at the end */
        hearth_buf_reset(text);
    }

    return hash;
}

/* Make the keys by which samples are matched: (*ret_keys)[s] for sample s. */
static enum hearth_status make_sample_keys(const struct hearth_profile *p,
                                           struct hearth_arena *arena,
                                           struct hearth_hash128 **ret_keys, struct hearth_err *err)
{
    struct hearth_hash128 *keys = hearth_arena_array(arena, p->n_samples, sizeof *keys);
    struct hearth_hash128 *locations =
        hearth_arena_array(arena, (size_t)p->n_locations + 1, sizeof *locations);

    if (keys == NULL || locations == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    struct hearth_buf text;
    hearth_buf_init(&text, 0);

    /* Hash each location once. */
    for (uint32_t l = 0; l < p->n_locations; l++) {
        append_location_key(p, l, &text);
        locations[l] = finish_key(&text);
    }

    locations[p->n_locations] = finish_key(&text); /* key of a missing location */

    /* A sample's key has its locations and labels. */
    for (uint32_t s = 0; s < p->n_samples; s++) {
        for (uint32_t i = p->stack_first[s]; i < p->stack_first[s + 1]; i++) {
            uint32_t loc = p->stack_locs[i];
            hearth_buf_append(&text, &locations[loc == HEARTH_NO_INDEX ? p->n_locations : loc],
                              sizeof *locations);
        }
        append_label_keys(p, s, &text);
        keys[s] = finish_key(&text);
    }

    enum hearth_status status =
        hearth_buf_failed(&text) ? (enum hearth_status)HEARTH_FAIL(
                                       err, HEARTH_NO_MEMORY, "no memory to compare two profiles")
                                 : HEARTH_OK;
    hearth_buf_release(&text);
    *ret_keys = keys;

    return status;
}

/*
 * Add the values of the samples to sums[id * n_columns + c]. False: a value is negative, or a sum
 * exceeds 64 bits.
 */
static bool sum_columns(const struct hearth_profile *p, const uint32_t *columns, size_t n_columns,
                        const uint32_t *ids, int64_t *sums)
{
    assert(n_columns <= MAX_COLUMNS);

    for (uint32_t s = 0; s < p->n_samples; s++) {
        for (size_t c = 0; c < n_columns && ids[s] != HEARTH_IDMAP_NONE; c++) {
            int64_t value = p->values[(size_t)s * p->n_types + columns[c]];
            int64_t *sum = &sums[ids[s] * n_columns + c];
            if (value < 0 || __builtin_add_overflow(*sum, value, sum)) {
                return false;
            }
        }
    }

    return true;
}

/* Subtract the sums in `left` from the samples with the same ids. */
static void subtract_sums(struct hearth_profile *p, const struct cumulative_columns *columns,
                          const uint32_t *ids, int64_t *left)
{
    for (uint32_t s = 0; s < p->n_samples; s++) {
        for (size_t c = 0; c < columns->n && ids[s] != HEARTH_IDMAP_NONE; c++) {
            int64_t *value = &p->values[(size_t)s * p->n_types + columns->of[c]];
            int64_t *rest = &left[ids[s] * columns->n + c];
            int64_t taken = *value < *rest ? *value : *rest;
            *value -= taken;
            *rest -= taken;
        }
    }
}

/*
 * The samples of two profiles with the same keys: before[s] is the number of the key of the earlier
 * profile's sample s, of[s] the number of the same key for the later profile's sample s, or NONE.
 */
struct sample_match {
    const uint32_t *of, *before;
    size_t n_ids; /* numbers of keys are below */
};

static enum hearth_status match_samples(const struct hearth_profile *p,
                                        const struct hearth_profile *before,
                                        struct hearth_arena *arena, struct sample_match *ret,
                                        struct hearth_err *err)
{
    struct hearth_hash128 *keys, *keys_before;

    /* Make the keys of both profiles. */
    HEARTH_TRY(make_sample_keys(p, arena, &keys, err));
    HEARTH_TRY(make_sample_keys(before, arena, &keys_before, err));
    uint32_t *of = hearth_arena_array(arena, p->n_samples, sizeof *of);
    uint32_t *ids = hearth_arena_array(arena, before->n_samples, sizeof *ids);
    if (of == NULL || ids == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    /* Number the keys of the earlier one. */
    struct hearth_idmap map;
    hearth_idmap_init(&map);
    uint32_t n = 0;
    enum hearth_status status = HEARTH_OK;
    for (uint32_t s = 0; s < before->n_samples && status == HEARTH_OK; s++) {
        bool inserted = false;
        ids[s] = hearth_idmap_intern(&map, keys_before[s], n, &inserted);
        n += inserted;
        if (ids[s] == HEARTH_IDMAP_NONE) {
            status = HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory to compare two profiles");
        }
    }

    /* Find them in the later one. */
    for (uint32_t s = 0; s < p->n_samples && status == HEARTH_OK; s++) {
        of[s] = hearth_idmap_find(&map, keys[s]);
    }

    hearth_idmap_release(&map);
    *ret = (struct sample_match){.of = of, .before = ids, .n_ids = n};

    return status;
}

enum hearth_status hearth_upload_subtract(struct hearth_profile *p,
                                          const struct hearth_profile *before,
                                          struct hearth_str event, struct hearth_arena *arena,
                                          bool *ret_contains, struct hearth_err *err)
{
    struct cumulative_columns columns;
    struct sample_match match;

    assert(ret_contains != NULL);

    /* Match the samples. */
    *ret_contains = false;
    if (!find_cumulative_columns(p, before, event, &columns)) {
        return HEARTH_OK;
    }

    HEARTH_TRY(match_samples(p, before, arena, &match, err));

    /* A later profile of the same process has at least the earlier value of each sample. */
    int64_t *sums = hearth_arena_calloc(arena, match.n_ids * columns.n, sizeof *sums);
    int64_t *left = hearth_arena_calloc(arena, match.n_ids * columns.n, sizeof *left);
    if (sums == NULL || left == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    bool contains = sum_columns(p, columns.of, columns.n, match.of, sums) &&
                    sum_columns(before, columns.before, columns.n, match.before, left);
    for (size_t i = 0; i < match.n_ids * columns.n && contains; i++) {
        contains = sums[i] >= left[i];
    }

    if (contains) {
        subtract_sums(p, &columns, match.of, left);
    }

    *ret_contains = contains;

    return HEARTH_OK;
}

/* Whether the profile has a cumulative type. */
static bool has_cumulative_types(const struct hearth_profile *p, struct hearth_str event)
{
    uint32_t t = 0;

    while (t < p->n_types && !hearth_upload_is_cumulative(event, p->strings[p->types[t].type])) {
        t++;
    }
    return t < p->n_types;
}

enum hearth_status hearth_upload_values(const struct hearth_call *call, struct hearth_str upload_id,
                                        struct hearth_profile *profile,
                                        struct hearth_upload_values *ret, struct hearth_err *err)
{
    struct hearth_upload_origin origin;
    struct hearth_task_upload file;
    struct hearth_profile before;
    struct hearth_pprof_notes notes;
    bool contains = false;

    assert(call != NULL && ret != NULL);

    /* Find the previous file of the process. */
    HEARTH_TRY(hearth_store_task_upload_origin(HEARTH_CALL_SCOPE(call), upload_id, &origin, err));
    *ret = (struct hearth_upload_values){.event = origin.event};
    if (origin.before_id.n == 0 || !has_cumulative_types(profile, origin.event)) {
        return HEARTH_OK;
    }

    /* Subtract it. */
    enum hearth_status status =
        hearth_store_task_upload_get(HEARTH_CALL_SCOPE(call), origin.before_id, &file, err);
    if (status == HEARTH_NOT_FOUND) { /* deleted in the meantime */
        return HEARTH_OK;
    }

    HEARTH_TRY(status);
    HEARTH_TRY(hearth_upload_decode(call, file.content, &before, &notes, err));
    HEARTH_TRY(hearth_upload_subtract(profile, &before, origin.event, call->arena, &contains, err));
    ret->before_ms = contains ? origin.before_ms : 0;

    return HEARTH_OK;
}
