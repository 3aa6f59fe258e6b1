/*
 * threads.c -- values by thread: the sums of a merge, and the values of samples that have a thread.
 *
 * Threads are attributes of single samples, whose values are also in the rows: the value without a
 * thread is the difference. A filter of stacks needs dictionaries: until they are read, values are
 * kept by stack.
 */
#include "answer/threads.h"

#include "hearth/base/budget.h"

#include "common/texts.h"
#include "select/planned.h"
#include "select/stack_passes.h"
#include "select/thread_filter.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

/* The value of a thread in a dictionary, by stack if there is a filter of stacks. */
struct thread_entry {
    uint32_t dict, stack, thread; /* thread: number of its text; without a filter, stack is 0 */
    int64_t value;
};

struct thread_run {
    const struct hearth_query *query;
    const struct hearth_merge_spec *spec;
    struct hearth_sums sums;
    bool by_stack; /* there is a filter of stacks */
    struct hearth_arena *arena;
    struct hearth_stack_passes passes;
    struct hearth_thread_filter threads;
    struct hearth_texts texts;
    struct thread_entry *entries;
    size_t n_entries, cap_entries;
    struct hearth_idmap by_key;  /* dict, stack, thread -> entries */
    size_t budgeted_bytes;       /* of by_key */
    struct hearth_top_row *rows; /* by number of text; rows[0]: no thread */
    int64_t total;
};

/* Adds a value to the entry of a dictionary, stack and thread. */
static enum hearth_status add_thread_value(struct thread_run *run, uint32_t dict, uint32_t stack,
                                           struct hearth_str thread, int64_t value,
                                           struct hearth_err *err)
{
    struct thread_entry entry = {.dict = dict, .stack = run->by_stack ? stack : 0};

    entry.thread = hearth_texts_id(&run->texts, thread);
    uint32_t key[3] = {entry.dict, entry.stack, entry.thread};
    bool inserted = false;

    /* Equal keys share an entry. */
    uint32_t at =
        entry.thread == HEARTH_IDMAP_NONE
            ? HEARTH_IDMAP_NONE
            : hearth_idmap_intern(&run->by_key,
                                  hearth_hash128(key, sizeof key, hearth_hash_process_seed()),
                                  (uint32_t)run->n_entries, &inserted);
    if (at == HEARTH_IDMAP_NONE ||
        !hearth_idmap_account(&run->by_key, run->arena, &run->budgeted_bytes) ||
        !hearth_arena_grow(run->arena, &run->entries, &run->cap_entries, run->n_entries + 1,
                           sizeof run->entries[0])) {
        return HEARTH_FAIL_ARENA(err, run->arena);
    }

    if (inserted) {
        run->entries[run->n_entries++] = entry;
    }

    int64_t *sum = &run->entries[at].value;
    return __builtin_add_overflow(*sum, value, sum)
               ? HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE, "a sum over threads exceeds 64 bits")
               : HEARTH_OK;
}

/* Adds the samples of a row that have a thread. */
static enum hearth_status add_thread_samples(struct thread_run *run,
                                             const struct hearth_read_row *row, uint32_t dict,
                                             struct hearth_arena *scratch, struct hearth_err *err)
{
    struct hearth_attr_sample *samples;
    size_t n;

    HEARTH_TRY(hearth_row_samples(row, scratch, &samples, &n, err));
    for (size_t i = 0; i < n; i++) {
        char out[HEARTH_THREAD_NAME_BYTES];
        int64_t value = samples[i].values[row->column];
        struct hearth_str thread = hearth_thread_name(&samples[i].attrs, out);
        if (thread.n == 0 || value == 0 ||
            (run->sums.match != NULL &&
             !hearth_profile_match_sample(run->sums.match, &samples[i].attrs)) ||
            !hearth_thread_filter_passes(&run->threads, &samples[i].attrs)) {
            continue;
        }
        /* The row's stacks were summed just now, so each must be below the bound. */
        if (value < 0 || samples[i].stack_id >= run->sums.dicts[dict].bound) {
            return HEARTH_FAIL(err, HEARTH_CORRUPT,
                               "profiles of series %d: damaged sample attributes", row->series_id);
        }
        HEARTH_TRY(add_thread_value(run, dict, samples[i].stack_id, thread, value, err));
    }

    return HEARTH_OK;
}

/* Adds a row to the sums, and its samples to the entries. */
static enum hearth_status add_thread_row(void *context, const struct hearth_read_row *row,
                                         struct hearth_err *err)
{
    struct thread_run *run = context;
    size_t dict;

    HEARTH_TRY(hearth_sums_add_row(&run->sums, row, &dict, err));
    if (row->attrs.n == 0 || dict == SIZE_MAX) {
        return HEARTH_OK;
    }

    struct hearth_arena scratch;
    hearth_arena_init_like(&scratch, run->arena);
    enum hearth_status status = add_thread_samples(run, row, (uint32_t)dict, &scratch, err);
    hearth_arena_release(&scratch);

    return status;
}

static void reset_thread_rows(void *context)
{
    struct thread_run *run = context;
    hearth_sums_forget(&run->sums);
    hearth_idmap_reset(&run->by_key);
    run->n_entries = 0;
}

/* ---- the answer ---- */

static int compare_thread_entries(const void *left, const void *right)
{
    const struct thread_entry *a = left, *b = right;
    return (a->dict > b->dict) - (a->dict < b->dict);
}

/*
 * Adds the sums and the n entries of one dictionary to total and rows; passes[stack] may be NULL:
 * all pass. False: overflow.
 */
static bool add_dict_threads(struct thread_run *run, const struct hearth_dict_sums *sums,
                             const struct thread_entry *entries, size_t n, const bool *passes)
{
    bool overflow = false;

    for (uint32_t s = 0; s < sums->bound; s++) {
        if (passes == NULL || passes[s]) {
            overflow |= __builtin_add_overflow(run->total, sums->acc[s], &run->total);
        }
    }

    for (size_t i = 0; i < n; i++) {
        if (passes == NULL || passes[entries[i].stack]) {
            int64_t *value = &run->rows[entries[i].thread].total;
            overflow |= __builtin_add_overflow(*value, entries[i].value, value);
        }
    }

    return !overflow;
}

/* The same for the stacks that pass the filter, if there is one. */
static enum hearth_status add_filtered_dict(struct thread_run *run,
                                            const struct hearth_dict_sums *sums,
                                            const struct thread_entry *entries, size_t n,
                                            struct hearth_err *err)
{
    const bool *passes = NULL;

    if (run->by_stack) {
        const struct hearth_dict_name name = {sums->service_id, sums->day, sums->writer_id};
        const struct hearth_stack_pass *pass;
        HEARTH_TRY(hearth_stack_passes_load(&run->passes, name, sums->bound, &pass, err));
        passes = pass->passes;
    }

    return add_dict_threads(run, sums, entries, n, passes)
               ? HEARTH_OK
               : HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE, "a sum over threads exceeds 64 bits");
}

/* Sums rows and total over all dictionaries. */
static enum hearth_status sum_thread_rows(struct thread_run *run, struct hearth_err *err)
{
    enum hearth_status status =
        hearth_stack_passes_init(&run->passes, run->query, &run->spec->stacks, err);

    if (run->n_entries > 0) {
        qsort(run->entries, run->n_entries, sizeof run->entries[0], compare_thread_entries);
    }

    /* Entries are sorted by dictionary. */
    size_t from = 0, to = 0;
    for (size_t d = 0; status == HEARTH_OK && d < run->sums.n_dicts; d++, from = to) {
        while (to < run->n_entries && run->entries[to].dict == d) {
            to++;
        }
        status = add_filtered_dict(run, &run->sums.dicts[d], to > from ? &run->entries[from] : NULL,
                                   to - from, err);
    }

    hearth_stack_passes_release(&run->passes);
    return status;
}

/* Makes the rows of the answer; the value without a thread is the rest of the total. */
static enum hearth_status make_thread_rows(struct thread_run *run, struct hearth_top_row **ret_rows,
                                           size_t *ret_n, int64_t *ret_total,
                                           struct hearth_err *err)
{
    size_t n_texts = run->texts.n == 0 ? 1 : run->texts.n, n = 0;
    struct hearth_top_row *rows = hearth_arena_calloc(run->arena, n_texts, sizeof rows[0]);
    if (rows == NULL) {
        return HEARTH_FAIL_ARENA(err, run->arena);
    }

    run->rows = rows;
    run->total = 0;
    HEARTH_TRY(sum_thread_rows(run, err));
    rows[0].total = run->total;
    for (size_t i = 1; i < n_texts; i++) {
        rows[0].total -= rows[i].total; /* threads are parts of the whole, which fits */
    }

    for (size_t i = 0; i < n_texts; i++) {
        if (rows[i].total != 0) {
            rows[n] = (struct hearth_top_row){.name = i == 0 ? HEARTH_STR("") : run->texts.v[i],
                                              .file = HEARTH_STR(""),
                                              .module = HEARTH_STR(""),
                                              .self = rows[i].total,
                                              .total = rows[i].total};
            n++;
        }
    }

    *ret_total = run->total;
    *ret_rows = rows;
    *ret_n = n;
    return HEARTH_OK;
}

enum hearth_status hearth_query_threads(const struct hearth_query *query,
                                        const struct hearth_merge_spec *spec,
                                        struct hearth_arena *arena,
                                        struct hearth_top_row **ret_rows, size_t *ret_n,
                                        int64_t *ret_total, struct hearth_err *err)
{
    assert(query != NULL && spec != NULL && arena != NULL && ret_rows != NULL);

    struct hearth_selection selection;
    HEARTH_TRY(hearth_merge_select(query, spec, &selection, err));
    selection.rows = true;
    if (selection.detail.attrs == HEARTH_ATTRS_NOT_READ) {
        selection.detail.attrs = HEARTH_ATTRS_BESIDE;
    }

    struct thread_run run = {.query = query,
                             .spec = spec,
                             .arena = arena,
                             .by_stack = hearth_stack_filter_needs_stacks(&spec->stacks)};

    /* Sums and entries are filled by the same rows. */
    hearth_sums_init(&run.sums, query, selection.match);
    hearth_texts_init(&run.texts, arena);
    hearth_idmap_init(&run.by_key);

    const struct hearth_reader reader = {
        .reset = reset_thread_rows, .row = add_thread_row, .context = &run};
    run.sums.threads = &run.threads;
    enum hearth_status status = hearth_thread_filter_init(&run.threads, &spec->stacks, arena, err);
    if (status == HEARTH_OK) {
        status = hearth_selection_read(query, &selection, &reader, err);
    }

    if (status == HEARTH_OK) {
        status = make_thread_rows(&run, ret_rows, ret_n, ret_total, err);
    }

    hearth_sums_release(&run.sums);
    hearth_thread_filter_release(&run.threads);
    hearth_texts_release(&run.texts);
    hearth_idmap_release(&run.by_key);
    hearth_budget_give(arena->budget, run.budgeted_bytes);

    return status;
}
