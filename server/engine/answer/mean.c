/*
 * mean.c -- the mean per scrape of gauges: the sums of each series, divided by the number of its
 * profiles in the range. Series with equal labels count as one here: a profile is in another series
 * if other types of it are 0.
 *
 * The result is exact, so that an answer does not depend on roll-ups: the sums of a series in a
 * dictionary are integers that are the same from every source, and so are the numbers of profiles.
 * A quotient has 60 binary digits after the point and is rounded down; the sum of quotients is less
 * than the true value by less than one such digit for each quotient, so a sum that close to a half
 * counts as a half.
 *
 * A dictionary is of one day and writer, so the same stack trace has many ids in a long range. Its
 * values are added by content before they are rounded; otherwise a month would be rounded thirty
 * times.
 */
#include "hearth/base/mem.h"

#include "select/planned.h"

#include <assert.h>
#include <stdlib.h>

#define PAGE_STACKS   64u
#define FRACTION_BITS 60

__extension__ typedef __int128 i128;

/*
 * The sums of one series in one dictionary. Ids of a series are clustered, hence pages of a few
 * stacks.
 */
struct mean_part {
    size_t dict, series;
    int64_t **pages; /* [n_pages]; NULL: all 0 */
    uint32_t n_pages;
};

/* A stack trace of the range, and the first dictionary and id that it has. */
struct mean_trace {
    i128 value;
    size_t dict;
    uint32_t stack;
};

struct mean_run {
    const struct hearth_query *query;
    const struct hearth_selection *selection;
    struct hearth_sums *sums; /* while rows are read, acc is 0 between them */
    struct hearth_arena arena;
    struct mean_part *parts;
    size_t n_parts, cap_parts;
    int64_t *n_profiles; /* [n_series] */
    size_t n_series, cap_series;
    struct hearth_idmap by_part, by_series;
    struct hearth_idmap by_trace;   /* content of a stack trace -> traces */
    struct hearth_arena dict_arena; /* memory of the current dictionary */
    struct mean_trace *traces;
    size_t n_traces, cap_traces;
    i128 slack; /* number of quotients, in last digits of a value */
};

/* ---- rows ---- */

static void release_mean(struct mean_run *mean)
{
    hearth_idmap_release(&mean->by_part);
    hearth_idmap_release(&mean->by_series);
    hearth_idmap_release(&mean->by_trace);
    hearth_mem_free(mean->parts);
    hearth_mem_free(mean->n_profiles);
    hearth_mem_free(mean->traces);
    hearth_arena_release(&mean->arena);
    hearth_arena_release(&mean->dict_arena);
}

static void reset_mean(void *context)
{
    struct mean_run *mean = context;
    hearth_sums_forget(mean->sums);
    hearth_idmap_reset(&mean->by_part);
    hearth_idmap_reset(&mean->by_series);
    hearth_arena_reset(&mean->arena);
    mean->n_parts = mean->n_series = 0;
}

static uint32_t intern_ids(struct hearth_idmap *map, const int32_t *parts, size_t n, size_t next)
{
    bool inserted;
    struct hearth_hash128 key =
        hearth_hash128(parts, n * sizeof parts[0], hearth_hash_process_seed());
    return hearth_idmap_intern(map, key, (uint32_t)next, &inserted);
}

/* Finds or makes the part of a row's series and dictionary, and counts the row's profiles. */
static enum hearth_status find_mean_part(struct mean_run *mean, const struct hearth_read_row *row,
                                         size_t dict, struct mean_part **ret,
                                         struct hearth_err *err)
{
    uint32_t scraped = hearth_selection_scraped(mean->selection, row);
    if (scraped == HEARTH_IDMAP_NONE) {
        return HEARTH_FAIL(err, HEARTH_CORRUPT, "a row of series %d was returned but not selected",
                           (int)row->series_id);
    }

    const int32_t key[2] = {(int32_t)scraped, (int32_t)dict};
    uint32_t series = intern_ids(&mean->by_series, key, 1, mean->n_series);
    uint32_t part = intern_ids(&mean->by_part, key, 2, mean->n_parts);
    if (series == HEARTH_IDMAP_NONE || part == HEARTH_IDMAP_NONE ||
        !hearth_mem_grow(&mean->n_profiles, &mean->cap_series, mean->n_series + 1,
                         sizeof mean->n_profiles[0]) ||
        !hearth_mem_grow(&mean->parts, &mean->cap_parts, mean->n_parts + 1,
                         sizeof mean->parts[0])) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate the sums of a series");
    }

    if (series == mean->n_series) {
        mean->n_profiles[mean->n_series++] = 0;
    }

    if (part == mean->n_parts) {
        mean->parts[mean->n_parts++] = (struct mean_part){.dict = dict, .series = series};
    }

    if (row->n_profiles < 1 || __builtin_add_overflow(mean->n_profiles[series], row->n_profiles,
                                                      &mean->n_profiles[series])) {
        return HEARTH_FAIL(err, HEARTH_CORRUPT, "a row of series %d has %lld profiles",
                           (int)row->series_id, (long long)row->n_profiles);
    }

    *ret = &mean->parts[part];
    return HEARTH_OK;
}

/* The page of a stack, made on demand; NULL: no memory. */
static int64_t *find_sums_page(struct mean_run *mean, struct mean_part *part, uint32_t stack)
{
    uint32_t page = stack / PAGE_STACKS;
    if (page >= part->n_pages) {
        uint32_t n = page + 1 < 2 * part->n_pages ? 2 * part->n_pages : page + 1;
        int64_t **pages = hearth_arena_calloc(&mean->arena, n, sizeof pages[0]);
        if (pages == NULL) {
            return NULL;
        }
        if (part->n_pages > 0) {
            memcpy(pages, part->pages, part->n_pages * sizeof pages[0]);
        }
        part->pages = pages;
        part->n_pages = n;
    }

    if (part->pages[page] == NULL) {
        part->pages[page] = hearth_arena_calloc(&mean->arena, PAGE_STACKS, sizeof(int64_t));
    }

    return part->pages[page];
}

/* Moves the sum of a stack from its dictionary, where it becomes 0 again, to the series. */
static enum hearth_status move_stack_sum(struct mean_run *mean, struct mean_part *part,
                                         uint32_t stack, int64_t *sum, struct hearth_err *err)
{
    int64_t *page = find_sums_page(mean, part, stack);
    if (page == NULL) {
        return HEARTH_FAIL_ARENA(err, &mean->arena);
    }

    int64_t *to = &page[stack % PAGE_STACKS];
    if (__builtin_add_overflow(*to, *sum, to)) {
        return HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE, "a sum of a series exceeds 64 bits");
    }

    *sum = 0;
    return HEARTH_OK;
}

/* Moves the sums of a whole row; its ids name the stacks. */
static enum hearth_status move_row_sums(struct mean_run *mean, struct mean_part *part,
                                        struct hearth_str ids, const struct hearth_dict_sums *dict,
                                        struct hearth_err *err)
{
    HEARTH_UNFILLED struct hearth_ids_walk walk;
    uint32_t stack;

    hearth_ids_walk_begin(&walk, ids);
    while (hearth_ids_walk_next(&walk, &stack)) {
        HEARTH_TRY(move_stack_sum(mean, part, stack, &dict->acc[stack], err));
    }

    return HEARTH_OK;
}

/* Moves the sums of some samples of a row, whose stacks are not listed. */
static enum hearth_status move_sample_sums(struct mean_run *mean, struct mean_part *part,
                                           const struct hearth_dict_sums *dict,
                                           struct hearth_err *err)
{
    for (uint32_t stack = 0; stack < dict->bound; stack++) {
        if (dict->acc[stack] != 0) {
            HEARTH_TRY(move_stack_sum(mean, part, stack, &dict->acc[stack], err));
        }
    }

    return HEARTH_OK;
}

static enum hearth_status add_mean_row(void *context, const struct hearth_read_row *row,
                                       struct hearth_err *err)
{
    struct mean_run *mean = context;
    struct hearth_sums *sums = mean->sums;
    size_t dict;
    struct mean_part *part;

    HEARTH_TRY(hearth_sums_add_row(sums, row, &dict, err));
    if (dict == SIZE_MAX) {
        return HEARTH_OK;
    }

    HEARTH_TRY(find_mean_part(mean, row, dict, &part, err));
    bool of_samples = sums->match != NULL && sums->match->of_samples;
    return of_samples ? move_sample_sums(mean, part, &sums->dicts[dict], err)
                      : move_row_sums(mean, part, row->ids, &sums->dicts[dict], err);
}

/* ---- division ---- */

static enum hearth_status fail_mean_range(struct hearth_err *err)
{
    return HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE, "a mean exceeds 64 bits");
}

/* Rounds half away from zero, after adding the slack. */
static enum hearth_status round_mean(const struct mean_run *mean, i128 value, int64_t *ret,
                                     struct hearth_err *err)
{
    i128 size = value < 0 ? -value : value;
    i128 whole = (size + ((i128)1 << (FRACTION_BITS - 1)) + mean->slack) >> FRACTION_BITS;
    if (whole > INT64_MAX) {
        return fail_mean_range(err);
    }

    *ret = value < 0 ? -(int64_t)whole : (int64_t)whole;
    return HEARTH_OK;
}

/* Adds the quotients of all series of a dictionary to values[stack]. */
static enum hearth_status divide_parts(struct mean_run *mean, const struct mean_part *parts,
                                       size_t n, i128 *values, struct hearth_err *err)
{
    for (size_t i = 0; i < n; i++) {
        const struct mean_part *part = &parts[i];
        i128 n_profiles = mean->n_profiles[part->series];
        for (size_t page = 0; page < part->n_pages; page++) {
            const int64_t *sums = part->pages[page];
            for (size_t k = 0; sums != NULL && k < PAGE_STACKS; k++) {
                i128 *value = &values[page * PAGE_STACKS + k];
                i128 sum = (i128)sums[k] * ((i128)1 << FRACTION_BITS);
                if (sum != 0 && __builtin_add_overflow(*value, sum / n_profiles, value)) {
                    return fail_mean_range(err);
                }
                mean->slack += sum != 0;
            }
        }
    }

    return HEARTH_OK;
}

static int compare_parts_by_dict(const void *a, const void *b)
{
    const struct mean_part *x = a, *y = b;
    return x->dict != y->dict ? (x->dict > y->dict) - (x->dict < y->dict)
                              : (x->series > y->series) - (x->series < y->series);
}

/* ---- the same stack trace in several dictionaries ---- */

/* Adds the values of a dictionary's stacks to the traces of the range, by content. */
static enum hearth_status add_dict_traces(struct mean_run *mean, const struct hearth_dict *dict,
                                          size_t dict_index, const i128 *values,
                                          struct hearth_err *err)
{
    struct hearth_arena *arena = &mean->dict_arena;
    const struct hearth_hash128 *keys;
    HEARTH_TRY(hearth_dict_stack_keys(dict, arena, &keys, err));

    /* Equal traces of several dictionaries share an element. */
    uint32_t bound = mean->sums->dicts[dict_index].bound;
    for (uint32_t stack = 0; stack < bound; stack++) {
        if (values[stack] == 0) {
            continue;
        }
        bool inserted;
        uint32_t at =
            hearth_idmap_intern(&mean->by_trace, keys[stack], (uint32_t)mean->n_traces, &inserted);
        if (at == HEARTH_IDMAP_NONE ||
            !hearth_mem_grow(&mean->traces, &mean->cap_traces, mean->n_traces + 1,
                             sizeof mean->traces[0])) {
            return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate the stack traces of a mean");
        }
        if (inserted) {
            mean->traces[mean->n_traces++] = (struct mean_trace){0, dict_index, stack};
        }
        if (__builtin_add_overflow(mean->traces[at].value, values[stack],
                                   &mean->traces[at].value)) {
            return fail_mean_range(err);
        }
    }

    return HEARTH_OK;
}

/*
 * Sorts the dictionaries and parts by the keys of dictionaries: which dictionary gets the value of
 * a stack trace must not depend on the order of rows.
 */
static enum hearth_status sort_mean_dicts(struct mean_run *mean, struct hearth_err *err)
{
    struct hearth_sums *sums = mean->sums;
    size_t *place = hearth_arena_array(&mean->arena, sums->n_dicts, sizeof place[0]);
    if (place == NULL) {
        return HEARTH_FAIL_ARENA(err, &mean->arena);
    }

    hearth_sums_sort(sums);
    for (size_t i = 0; i < sums->n_dicts; i++) {
        place[sums->dicts[i].arrival] = i;
    }

    for (size_t i = 0; i < mean->n_parts; i++) {
        mean->parts[i].dict = place[mean->parts[i].dict];
    }

    if (mean->n_parts > 0) {
        qsort(mean->parts, mean->n_parts, sizeof mean->parts[0], compare_parts_by_dict);
    }

    return HEARTH_OK;
}

/*
 * Divides the parts of dictionary i, which begin at *first, and adds its traces. *first moves to
 * the next dictionary.
 */
static enum hearth_status divide_dict(struct mean_run *mean, size_t i, size_t *first,
                                      struct hearth_err *err)
{
    const struct hearth_query *query = mean->query;
    struct hearth_arena *arena = &mean->dict_arena;
    struct hearth_dict_sums *sums = &mean->sums->dicts[i];
    const struct mean_part *parts = &mean->parts[*first];
    size_t n = 0;

    while (*first + n < mean->n_parts && parts[n].dict == i) {
        n++;
    }

    *first += n;

    /* Pages may extend beyond the highest stack. */
    i128 *values =
        hearth_arena_calloc(arena, (size_t)sums->bound + 2 * PAGE_STACKS, sizeof values[0]);
    if (values == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    HEARTH_TRY(divide_parts(mean, parts, n, values, err));

    const struct hearth_dict *dict;
    HEARTH_TRY(hearth_store_read_dict(
        HEARTH_CALL_SCOPE(&query->call),
        (struct hearth_dict_key){sums->service_id, sums->day, sums->writer_id}, sums->bound, &dict,
        err));
    enum hearth_status status = add_dict_traces(mean, dict, i, values, err);
    hearth_store_read_dict_release(query->call.engine->store, dict);

    return status;
}

/* Turns the sums of all parts into rounded means, in sums->dicts. */
static enum hearth_status divide_sums(struct mean_run *mean, struct hearth_err *err)
{
    enum hearth_status status = sort_mean_dicts(mean, err);
    size_t first = 0;

    for (size_t i = 0; i < mean->sums->n_dicts && status == HEARTH_OK; i++) {
        hearth_arena_reset(&mean->dict_arena);
        status = divide_dict(mean, i, &first, err);
    }

    /* sums->dicts gets each trace's value once; all other sums are 0. */
    for (size_t i = 0; i < mean->n_traces && status == HEARTH_OK; i++) {
        const struct mean_trace *trace = &mean->traces[i];
        status =
            round_mean(mean, trace->value, &mean->sums->dicts[trace->dict].acc[trace->stack], err);
    }

    return status;
}

enum hearth_status hearth_mean_sum(const struct hearth_query *query,
                                   struct hearth_selection *selection, struct hearth_sums *sums,
                                   struct hearth_err *err)
{
    assert(selection->gauge);
    struct mean_run mean = {.query = query, .selection = selection, .sums = sums};
    hearth_arena_init_like(&mean.arena, query->call.arena);
    hearth_arena_init_like(&mean.dict_arena, query->call.arena);
    hearth_idmap_init(&mean.by_part);
    hearth_idmap_init(&mean.by_series);
    hearth_idmap_init(&mean.by_trace);

    const struct hearth_reader reader = {
        .reset = reset_mean, .row = add_mean_row, .context = &mean};
    enum hearth_status status = hearth_selection_read(query, selection, &reader, err);
    if (status == HEARTH_OK) {
        status = divide_sums(&mean, err);
    }

    release_mean(&mean);
    return status;
}
