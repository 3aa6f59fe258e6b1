/*
 * sums.c -- sums of rows by dictionary, in dense arrays, without hashing samples.
 *
 * A row's stack ids belong to the dictionary of its service, its day and its writer. The
 * dictionaries themselves are needed only after the scan, so the stream never waits for a second
 * statement.
 */
#include "hearth/base/budget.h"
#include "hearth/base/mem.h"

#include "select/thread_filter.h"

#include <stdlib.h>

void hearth_sums_release(struct hearth_sums *sums)
{
    for (size_t i = 0; i < sums->n_dicts; i++) {
        hearth_mem_free(sums->dicts[i].acc);
    }

    hearth_mem_free(sums->dicts);
    hearth_idmap_release(&sums->by_key);
    hearth_budget_give(sums->budget, sums->n_bytes);
    *sums = (struct hearth_sums){0};
}

/* The sums of a row's dictionary, made if it is new. NULL: memory was refused. */
static struct hearth_dict_sums *find_dict_of_row(struct hearth_sums *sums,
                                                 const struct hearth_read_row *row,
                                                 struct hearth_err *err)
{
    int32_t day = hearth_day_of(row->ts_ns);

    /* Neighbouring rows mostly have the same dictionary. */
    if (sums->last < sums->n_dicts) {
        struct hearth_dict_sums *last = &sums->dicts[sums->last];
        if (last->service_id == row->service_id && last->day == day &&
            last->writer_id == row->writer_id) {
            return last;
        }
    }

    int32_t parts[3] = {row->service_id, day, row->writer_id};
    struct hearth_hash128 key = hearth_hash128(parts, sizeof parts, hearth_hash_process_seed());
    bool inserted;
    uint32_t i = hearth_idmap_intern(&sums->by_key, key, (uint32_t)sums->n_dicts, &inserted);
    if (i == HEARTH_IDMAP_NONE ||
        (inserted && !hearth_mem_grow(&sums->dicts, &sums->cap_dicts, sums->n_dicts + 1,
                                      sizeof sums->dicts[0]))) {
        (void)HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate sums for a dictionary");
        return NULL;
    }

    if (inserted) {
        sums->dicts[sums->n_dicts] = (struct hearth_dict_sums){.service_id = row->service_id,
                                                               .day = day,
                                                               .writer_id = row->writer_id,
                                                               .arrival = sums->n_dicts};
        sums->n_dicts++;
    }

    sums->last = i;
    return &sums->dicts[i];
}

/* Makes room for stacks below bound; new sums are 0. */
static enum hearth_status grow_dict_sums(struct hearth_sums *sums, struct hearth_dict_sums *dict,
                                         uint32_t bound, struct hearth_err *err)
{
    if (bound <= dict->cap) {
        dict->bound = bound > dict->bound ? bound : dict->bound;
        return HEARTH_OK;
    }

    size_t cap = dict->cap < 8 ? 8 : dict->cap;
    while (cap < bound) {
        cap *= 2;
    }

    size_t more = (cap - dict->cap) * sizeof dict->acc[0];
    if (sums->limit_bytes > 0 && more > sums->limit_bytes - sums->n_bytes) {
        return HEARTH_FAIL(
            err, HEARTH_NO_MEMORY,
            "the query needs more than max-query-memory-bytes (%zu): shorten the range "
            "or add label matchers",
            sums->limit_bytes);
    }

    if (!hearth_budget_take(sums->budget, more)) {
        return HEARTH_FAIL_BUDGET(err, sums->budget);
    }

    sums->n_bytes += more; /* even if memory is refused: returned to the budget with the rest */
    int64_t *acc = hearth_mem_reallocarray(dict->acc, cap, sizeof acc[0]);
    if (acc == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate sums for a dictionary");
    }

    memset(acc + dict->cap, 0, more);
    dict->acc = acc;
    dict->cap = cap;
    dict->bound = bound;

    return HEARTH_OK;
}

/*
 * With a filter by span or trace: adds the samples of a row that pass, with the values of their
 * attributes.
 */
static enum hearth_status add_sample_sums(struct hearth_sums *sums,
                                          const struct hearth_read_row *row,
                                          const struct hearth_attr_sample *samples, size_t n,
                                          size_t *ret_dict, struct hearth_err *err)
{
    struct hearth_dict_sums *dict = NULL;

    for (size_t i = 0; i < n; i++) {
        int64_t value = samples[i].values[row->column];
        if (!hearth_profile_match_sample(sums->match, &samples[i].attrs) ||
            (sums->threads != NULL &&
             !hearth_thread_filter_passes(sums->threads, &samples[i].attrs))) {
            continue;
        }
        if (value < 0 || samples[i].stack_id == UINT32_MAX) {
            return HEARTH_FAIL(err, HEARTH_CORRUPT,
                               "profiles of series %d: damaged sample attributes", row->series_id);
        }
        if (dict == NULL) {
            dict = find_dict_of_row(sums, row, err);
            if (dict == NULL) {
                return HEARTH_NO_MEMORY;
            }
            *ret_dict = (size_t)(dict - sums->dicts);
        }
        if (sums->match->counted != NULL && value > 0) {
            hearth_span_set_add(sums->match->counted, samples[i].attrs.span_id);
        }
        HEARTH_TRY(grow_dict_sums(sums, dict, samples[i].stack_id + 1, err));
        int64_t *sum = &dict->acc[samples[i].stack_id];
        if (__builtin_add_overflow(*sum, value, sum)) {
            return HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE, "a sum over samples exceeds 64 bits");
        }
    }

    return HEARTH_OK;
}

/* Decodes the attributes of a row, and adds its samples. */
static enum hearth_status sum_row_samples(struct hearth_sums *sums,
                                          const struct hearth_read_row *row, size_t *ret_dict,
                                          struct hearth_err *err)
{
    struct hearth_arena arena;

    hearth_arena_init(&arena, sums->limit_bytes);
    arena.budget = sums->budget;
    struct hearth_attr_sample *samples;
    size_t n;
    enum hearth_status status = hearth_row_samples(row, &arena, &samples, &n, err);
    if (status == HEARTH_OK) {
        status = add_sample_sums(sums, row, samples, n, ret_dict, err);
    }

    hearth_arena_release(&arena);
    return status;
}

enum hearth_status hearth_sums_add_row(struct hearth_sums *sums, const struct hearth_read_row *row,
                                       size_t *ret_dict, struct hearth_err *err)
{
    *ret_dict = SIZE_MAX;
    if (sums->match != NULL && !hearth_profile_match_row(sums->match, row)) {
        return HEARTH_OK;
    }

    if (sums->match != NULL && sums->match->of_samples) {
        return sum_row_samples(sums, row, ret_dict, err);
    }

    struct hearth_dict_sums *dict = find_dict_of_row(sums, row, err);
    if (dict == NULL) {
        return HEARTH_NO_MEMORY;
    }

    uint32_t bound;

    if (!hearth_columns_id_bound(row->ids, &bound)) {
        return HEARTH_FAIL(err, HEARTH_CORRUPT, "profiles of series %d: damaged ids",
                           row->series_id);
    }

    HEARTH_TRY(grow_dict_sums(sums, dict, bound, err));
    *ret_dict = (size_t)(dict - sums->dicts);
    const struct hearth_arena like = {.limit_bytes = sums->limit_bytes, .budget = sums->budget};
    return hearth_row_merge(sums->threads, row, &like, dict->acc, dict->bound, err);
}

static size_t find_memory_limit(const struct hearth_query *query)
{
    struct hearth_limits limits;
    hearth_call_limits(&query->call, &limits);
    return limits.max_query_memory_bytes > 0 ? (size_t)limits.max_query_memory_bytes : 0;
}

void hearth_sums_init(struct hearth_sums *sums, const struct hearth_query *query,
                      const struct hearth_profile_match *match)
{
    *sums = (struct hearth_sums){.match = match,
                                 .limit_bytes = find_memory_limit(query),
                                 .budget = query->call.arena->budget};
}

void hearth_sums_forget(struct hearth_sums *sums)
{
    struct hearth_sums empty = {.match = sums->match,
                                .threads = sums->threads,
                                .limit_bytes = sums->limit_bytes,
                                .budget = sums->budget};

    hearth_sums_release(sums);
    *sums = empty;
    if (sums->match != NULL && sums->match->counted != NULL) {
        sums->match->counted->n = 0;
    }
}

/* The order of rows must not show in an answer. */
static int compare_dicts_by_key(const void *left, const void *right)
{
    const struct hearth_dict_sums *a = left, *b = right;
    if (a->service_id != b->service_id) {
        return a->service_id < b->service_id ? -1 : 1;
    }

    if (a->day != b->day) {
        return a->day < b->day ? -1 : 1;
    }

    return (a->writer_id > b->writer_id) - (a->writer_id < b->writer_id);
}

void hearth_sums_sort(struct hearth_sums *sums)
{
    if (sums->n_dicts > 0) {
        qsort(sums->dicts, sums->n_dicts, sizeof sums->dicts[0], compare_dicts_by_key);
    }
}
