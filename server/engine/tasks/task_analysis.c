/*
 * task_analysis.c -- trees of the stack traces of on-CPU and off-CPU tasks (contract:
 * hearth/engine/task_stacks.h).
 */
#include "hearth/engine/task_stacks.h"
#include "hearth/store/task_results.h"

#include "common/shown.h"
#include "select/query_internal.h"

#include <assert.h>
#include <stdlib.h>

/* State of an analysis while its chunks are read. */
struct stack_analysis {
    const struct hearth_call *call;
    enum hearth_stack_weight weight;
    struct hearth_task_schedule *schedules;
    struct hearth_task_range *ranges; /* sorted, disjoint */
    size_t n_schedules, n_ranges;
    struct hearth_stack_forest *forest;
    enum hearth_stack_kind kind; /* kind of the chunks read; 0: none read yet */
    uint64_t n_cut, n_chunks;
};

enum hearth_status hearth_task_schedules(const struct hearth_call *call, struct hearth_str task_id,
                                         struct hearth_task_schedule **ret, size_t *ret_n,
                                         struct hearth_err *err)
{
    if (task_id.n == 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "task_id is empty");
    }

    const struct hearth_task_schedule_filter filter = {.task_id = task_id};

    bool shows;

    HEARTH_TRY(hearth_call_shows_task(call, task_id, &shows, err));
    if (!shows) {
        *ret = NULL;
        *ret_n = 0;
        return HEARTH_OK;
    }

    return hearth_store_task_schedules(HEARTH_CALL_SCOPE(call), &filter, ret, ret_n, err);
}

/* ---- requests ---- */

static int compare_ranges(const void *va, const void *vb)
{
    const struct hearth_task_range *a = va, *b = vb;
    return (a->from_ms > b->from_ms) - (a->from_ms < b->from_ms);
}

/* Sort the ranges and join overlapping ones, so that a stack trace counts once. */
static enum hearth_status join_task_ranges(struct stack_analysis *a,
                                           const struct hearth_task_range *ranges, size_t n,
                                           struct hearth_err *err)
{
    struct hearth_arena *arena = a->call->arena;
    struct hearth_task_range *joined = hearth_arena_array(arena, n, sizeof *joined);

    assert(ranges != NULL || n == 0);

    if (joined == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    /* Copy and check the ranges. */
    for (size_t i = 0; i < n; i++) {
        if (ranges[i].from_ms > ranges[i].to_ms) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                               "a range ends at %lld, before its start at %lld",
                               (long long)ranges[i].to_ms, (long long)ranges[i].from_ms);
        }
        joined[i] = ranges[i];
    }

    if (n > 0) {
        qsort(joined, n, sizeof *joined, compare_ranges);
    }

    /* Join each range with the previous one if they overlap. */
    size_t last = 0;
    for (size_t i = 1; i < n; i++) {
        if (joined[i].from_ms > joined[last].to_ms) {
            joined[++last] = joined[i];
        } else if (joined[i].to_ms > joined[last].to_ms) {
            joined[last].to_ms = joined[i].to_ms;
        }
    }

    a->ranges = joined;
    a->n_ranges = n == 0 ? 0 : last + 1;

    return HEARTH_OK;
}

static enum hearth_status find_task_schedules(struct stack_analysis *a,
                                              const struct hearth_str *ids, size_t n_ids,
                                              struct hearth_err *err)
{
    if (n_ids == 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "schedule_ids is empty");
    }

    const struct hearth_task_schedule_filter filter = {HEARTH_STR(""), ids, n_ids};
    HEARTH_TRY(hearth_store_task_schedules(HEARTH_CALL_SCOPE(a->call), &filter, &a->schedules,
                                           &a->n_schedules, err));

    /* Every requested schedule must exist, and be of a task that the call sees. */
    for (size_t i = 0; i < n_ids; i++) {
        size_t k = 0;
        bool shows = false;
        while (k < a->n_schedules && !hearth_str_eq(a->schedules[k].schedule_id, ids[i])) {
            k++;
        }
        if (k < a->n_schedules) {
            HEARTH_TRY(hearth_call_shows_task(a->call, a->schedules[k].task_id, &shows, err));
        }
        if (!shows) {
            return HEARTH_FAIL(err, HEARTH_NOT_FOUND, "no schedule \"" HEARTH_STR_FMT "\"",
                               HEARTH_STR_ARG(ids[i]));
        }
    }

    return HEARTH_OK;
}

/* ---- reading ---- */

static enum hearth_status begin_analysis(void *context, struct hearth_err *err)
{
    struct stack_analysis *a = context;

    assert(a->call != NULL);

    /* The read may begin again, so results of an earlier attempt are discarded. */
    hearth_stack_forest_free(a->forest);
    a->forest = hearth_stack_forest_new(a->call->arena);
    a->kind = (enum hearth_stack_kind)0;
    a->n_cut = a->n_chunks = 0;

    return a->forest == NULL ? (enum hearth_status)HEARTH_FAIL(err, HEARTH_NO_MEMORY,
                                                               "no memory for stack traces")
                             : HEARTH_OK;
}

static enum hearth_status add_analysis_chunk(void *context,
                                             const struct hearth_task_schedule *schedule,
                                             int64_t at_ms, const struct hearth_task_chunk *chunk,
                                             struct hearth_err *err)
{
    (void)schedule;
    (void)at_ms;
    struct stack_analysis *a = context;
    if (a->kind != 0 && a->kind != chunk->kind) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "the schedules are of on-CPU and of off-CPU tasks: ask for one kind");
    }

    a->kind = chunk->kind;
    a->n_cut += chunk->n_cut;
    a->n_chunks++;

    return hearth_stack_forest_add(a->forest, chunk, a->weight, err);
}

/* ---- answers ---- */

static const char *choose_unit(const struct stack_analysis *a)
{
    if (a->kind == HEARTH_STACKS_ON_CPU) {
        return "dumps";
    }
    if (a->kind == HEARTH_STACKS_OFF_CPU) {
        return a->weight == HEARTH_STACK_DURATION ? "nanoseconds" : "switches";
    }

    return "";
}

static enum hearth_status make_stack_tip(const struct stack_analysis *a, struct hearth_str *ret,
                                         struct hearth_err *err)
{
    struct hearth_arena *arena = a->call->arena;
    char *text = NULL;

    /* Without data, tell when the schedules ran; otherwise, whether stack traces were truncated. */
    *ret = HEARTH_STR("");
    if (a->n_chunks == 0) {
        int64_t from = INT64_MAX, to = 0;
        for (size_t i = 0; i < a->n_schedules; i++) {
            from = a->schedules[i].start_ms < from ? a->schedules[i].start_ms : from;
            to = a->schedules[i].end_ms > to ? a->schedules[i].end_ms : to;
        }
        text = hearth_arena_printf(
            arena, "no stack traces %s; the schedules run from %lld to %lld (milliseconds)%s",
            a->n_ranges > 0 ? "in these ranges" : "are kept", (long long)from, (long long)to,
            a->n_ranges > 0 ? "" : ", what they had is older than retain-tasks");
    } else if (a->n_cut > 0) {
        text = hearth_arena_printf(arena,
                                   "%llu stack traces were cut when they came (max-stack-depth, "
                                   "max-symbol-bytes)",
                                   (unsigned long long)a->n_cut);
    } else {
        return HEARTH_OK;
    }

    *ret = hearth_str_c(text);

    return text == NULL ? (enum hearth_status)HEARTH_FAIL_ARENA(err, arena) : HEARTH_OK;
}

enum hearth_status hearth_task_analyze_stacks(const struct hearth_call *call,
                                              const struct hearth_str *schedule_ids, size_t n_ids,
                                              const struct hearth_task_range *ranges,
                                              size_t n_ranges, enum hearth_stack_weight weight,
                                              struct hearth_stack_analysis *ret,
                                              struct hearth_err *err)
{
    struct stack_analysis a = {.call = call, .weight = weight};
    const struct hearth_task_chunk_reader reader = {&a, begin_analysis, add_analysis_chunk};

    assert(call != NULL && ret != NULL);

    /* Read the chunks of the schedules into a forest. */
    HEARTH_TRY(join_task_ranges(&a, ranges, n_ranges, err));
    HEARTH_TRY(find_task_schedules(&a, schedule_ids, n_ids, err));
    struct hearth_task_chunk_filter filter = {a.schedules, a.n_schedules, a.ranges, a.n_ranges};
    enum hearth_status status =
        hearth_store_task_chunks(HEARTH_CALL_SCOPE(call), &filter, &reader, err);

    /* Make the trees, the unit and the tip. */
    if (status == HEARTH_OK) {
        status = hearth_stack_forest_trees(a.forest, &ret->trees, &ret->n_trees, err);
    }

    if (status == HEARTH_OK) {
        ret->unit = choose_unit(&a);
        status = make_stack_tip(&a, &ret->tip, err);
    }

    hearth_stack_forest_free(a.forest);

    return status;
}
