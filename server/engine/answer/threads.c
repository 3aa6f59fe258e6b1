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
#include "select/stack_filter.h"

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
    struct hearth_stack_mask mask;
    struct hearth_texts texts;
    struct thread_entry *entries;
    size_t n_entries, cap_entries;
    struct hearth_idmap by_key;  /* dict, stack, thread -> entries */
    size_t budgeted_bytes;       /* of by_key */
    struct hearth_top_row *rows; /* by number of text; rows[0]: no thread */
    int64_t total;
};

/* The name of a sample's thread, or its id; empty if it has none. */
static struct hearth_str find_thread_name(const struct hearth_sample_attrs *attrs, char out[24])
{
    uint64_t id = attrs->thread_native_id != 0 ? attrs->thread_native_id : attrs->thread_id;
    if (attrs->thread_name.n > 0 || id == 0) {
        return attrs->thread_name;
    }
    return hearth_str_n(out, (size_t)snprintf(out, 24, "%llu", (unsigned long long)id));
}

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
        char out[24];
        int64_t value = samples[i].values[row->column];
        struct hearth_str thread = find_thread_name(&samples[i].attrs, out);
        if (thread.n == 0 || value == 0 ||
            (run->sums.match != NULL &&
             !hearth_profile_match_sample(run->sums.match, &samples[i].attrs))) {
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
 * Adds the sums and the n entries of one dictionary to total and rows; inside may be NULL. False:
 * overflow.
 */
static bool add_dict_threads(struct thread_run *run, const struct hearth_dict_sums *sums,
                             const struct thread_entry *entries, size_t n,
                             const struct hearth_dict *dict, const bool *inside)
{
    bool overflow = false;
    const uint32_t *stack_node = inside == NULL ? NULL : dict->stack_node;

    for (uint32_t s = 0; s < sums->bound; s++) {
        if (inside == NULL || inside[stack_node[s]]) {
            overflow |= __builtin_add_overflow(run->total, sums->acc[s], &run->total);
        }
    }

    for (size_t i = 0; i < n; i++) {
        if (inside == NULL || inside[stack_node[entries[i].stack]]) {
            int64_t *value = &run->rows[entries[i].thread].total;
            overflow |= __builtin_add_overflow(*value, entries[i].value, value);
        }
    }

    return !overflow;
}

/* The same with the filter of stacks, which needs the dictionary. */
static enum hearth_status add_filtered_dict(struct thread_run *run,
                                            const struct hearth_dict_sums *sums,
                                            const struct thread_entry *entries, size_t n,
                                            struct hearth_err *err)
{
    struct hearth_store *store = run->query->call.engine->store;
    const struct hearth_dict *dict;
    const bool *inside;

    HEARTH_TRY(hearth_store_read_dict(
        store, (struct hearth_dict_key){sums->service_id, sums->day, sums->writer_id}, sums->bound,
        run->query->call.cancel, &dict, err));
    enum hearth_status status = hearth_stack_mask_of(&run->mask, dict->tree, &inside, err);
    if (status == HEARTH_OK && !add_dict_threads(run, sums, entries, n, dict, inside)) {
        status = HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE, "a sum over threads exceeds 64 bits");
    }

    hearth_store_read_dict_release(store, dict);
    return status;
}

/* Sums rows and total over all dictionaries. */
static enum hearth_status sum_thread_rows(struct thread_run *run, struct hearth_err *err)
{
    enum hearth_status status = HEARTH_OK;

    hearth_stack_mask_init(&run->mask, &run->spec->stacks, run->arena);
    if (run->n_entries > 0) {
        qsort(run->entries, run->n_entries, sizeof run->entries[0], compare_thread_entries);
    }

    /* Entries are sorted by dictionary. */
    size_t from = 0, to = 0;
    for (size_t d = 0; status == HEARTH_OK && d < run->sums.n_dicts; d++, from = to) {
        while (to < run->n_entries && run->entries[to].dict == d) {
            to++;
        }
        if (run->by_stack) {
            status =
                add_filtered_dict(run, &run->sums.dicts[d], run->entries + from, to - from, err);
        } else if (!add_dict_threads(run, &run->sums.dicts[d], run->entries + from, to - from, NULL,
                                     NULL)) {
            status = HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE, "a sum over threads exceeds 64 bits");
        }
    }

    hearth_stack_mask_release(&run->mask);
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
                             .by_stack = !hearth_stack_filter_is_empty(&spec->stacks)};

    /* Sums and entries are filled by the same rows. */
    hearth_sums_init(&run.sums, query, selection.match);
    hearth_texts_init(&run.texts, arena);
    hearth_idmap_init(&run.by_key);

    const struct hearth_reader reader = {
        .reset = reset_thread_rows, .row = add_thread_row, .context = &run};
    enum hearth_status status = hearth_selection_read(query, &selection, &reader, err);
    if (status == HEARTH_OK) {
        status = make_thread_rows(&run, ret_rows, ret_n, ret_total, err);
    }

    hearth_sums_release(&run.sums);
    hearth_texts_release(&run.texts);
    hearth_idmap_release(&run.by_key);
    hearth_budget_give(arena->budget, run.budgeted_bytes);

    return status;
}
