/*
 * diff_noise.c -- judges the nodes and functions of a diff by their values in the parts of both
 * sides (contract: diff_noise.h).
 */
#include "answer/diff_noise.h"

#include "answer/diff_items.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

/* A unit of time from which on sample values are taken for multiples of a sampling period. */
#define MIN_PERIOD_NS 1000

#define RATE_BATCHES 8u

struct noise_run {
    const struct hearth_noise_task *task;
    struct hearth_query quiet[2]; /* those of the task, without notes */
    struct hearth_diff_parts parts;
    struct hearth_diff_items items;
    /* [n] of the families */
    struct hearth_change *node_changes, *function_changes, *function_total_changes;
};

/* ---- judgement ---- */

/*
 * The value of one sample, if it is known: 1 for counted samples, the greatest common divisor of
 * all values where it is a period of time. Otherwise 0.
 */
static int64_t find_quantum(const struct noise_run *run)
{
    struct hearth_profile_type type;
    struct hearth_err unused = HEARTH_ERR_INIT;
    uint64_t divisor = 0;

    if (hearth_profile_type_parse(run->task->specs[0]->profile_type, &type, &unused) != HEARTH_OK) {
        return 0;
    }

    if (hearth_str_eq_c(type.sample_type, "samples")) {
        return 1;
    }

    for (size_t s = 0; s < 2; s++) {
        for (size_t i = 0; i < run->task->trees[s]->n_nodes; i++) {
            uint64_t a = (uint64_t)run->task->trees[s]->nodes[i].self;
            while (a != 0) {
                uint64_t rest = divisor % a;
                divisor = a;
                a = rest;
            }
        }
    }

    return hearth_str_eq_c(type.sample_unit, "nanoseconds") && divisor >= MIN_PERIOD_NS
               ? (int64_t)divisor
               : 0;
}

/* Judges the items of a family; *method is how. */
static enum hearth_status judge_family(struct noise_run *run,
                                       const struct hearth_diff_family *family,
                                       struct hearth_change **ret, enum hearth_noise_method *method,
                                       struct hearth_err *err)
{
    const int64_t *const values[2] = {family->values[0], family->values[1]};
    struct hearth_noise noise;

    *ret = hearth_arena_calloc(run->items.arena, family->n, sizeof(*ret)[0]);
    if (*ret == NULL) {
        return HEARTH_FAIL_ARENA(err, run->items.arena);
    }

    HEARTH_TRY(hearth_noise_init(&noise, HEARTH_NOISE_SHARES, family->n, values, run->items.totals,
                                 run->items.arena, err));
    for (size_t d = 0; d < HEARTH_DIFF_N_DIVISIONS; d++) {
        bool used;
        struct hearth_noise_side sides[2];
        for (size_t s = 0; s < 2; s++) {
            sides[s] = (struct hearth_noise_side){run->items.weights[d][s], family->parts[d][s]};
        }
        if (run->parts.n_parts[d] > 0) {
            HEARTH_TRY(hearth_noise_divide(&noise, run->parts.n_parts[d], sides, &used, err));
        }
    }

    int64_t quantum = noise.n_divisions > 0 ? 0 : find_quantum(run);
    if (quantum > 0) {
        hearth_noise_assume(&noise, (double)quantum);
    }

    *method = quantum > 0             ? HEARTH_NOISE_POISSON
              : noise.n_divisions > 0 ? HEARTH_NOISE_PARTS
                                      : HEARTH_NOISE_UNKNOWN;
    return hearth_noise_finish(&noise, *ret, err);
}

/*
 * Sums slices of a side to at most RATE_BATCHES batches. Profiles may be rarer than slices, and a
 * slice without any would seem to be one without load.
 */
static void sum_batches(const struct noise_run *run, size_t side, size_t first,
                        int64_t durations[2 * RATE_BATCHES], int64_t totals[2 * RATE_BATCHES])
{
    const struct hearth_diff_part_side *of = &run->parts.sides[side];
    size_t n_each = (of->n_slices + RATE_BATCHES - 1) / RATE_BATCHES;

    for (size_t i = 0; i < of->n_slices; i++) {
        size_t part = of->first_part + i, batch = first + i / n_each;
        durations[batch] += hearth_diff_slice_overlap(of, part);
        totals[batch] += run->items.weights[HEARTH_DIFF_BY_SLICES][side][part];
    }
}

/* Judges the total per second. */
static enum hearth_status judge_rate(struct noise_run *run, struct hearth_diff_noise *ret,
                                     struct hearth_err *err)
{
    const struct hearth_diff_part_side *sides = run->parts.sides;
    int64_t durations[2][2 * RATE_BATCHES] = {{0}}, totals[2][2 * RATE_BATCHES] = {{0}};
    int64_t duration[2] = {0, 0};
    bool is_same_time =
        sides[0].first_part == sides[1].first_part && sides[0].n_slices == sides[1].n_slices;

    sum_batches(run, 0, 0, durations[0], totals[0]);
    sum_batches(run, 1, is_same_time ? 0 : RATE_BATCHES, durations[1], totals[1]);
    for (size_t s = 0; s < 2; s++) {
        for (size_t i = 0; i < 2 * RATE_BATCHES; i++) {
            if (__builtin_add_overflow(duration[s], durations[s][i], &duration[s])) {
                duration[s] = INT64_MAX; /* a range may be longer than 64 bits hold */
            }
        }
    }

    struct hearth_noise noise;
    const int64_t *const whole[2] = {&run->items.totals[0], &run->items.totals[1]};
    const struct hearth_noise_side parts[2] = {{durations[0], totals[0]},
                                               {durations[1], totals[1]}};
    HEARTH_TRY(
        hearth_noise_init(&noise, HEARTH_NOISE_RATES, 1, whole, duration, run->items.arena, err));
    HEARTH_TRY(hearth_noise_divide(&noise, 2 * RATE_BATCHES, parts, &ret->has_rate, err));
    HEARTH_TRY(hearth_noise_finish(&noise, &ret->rate, err));

    /* From nanoseconds to seconds. No rate is less than 0. */
    ret->rates[0] = noise.left[0] * HEARTH_NS_PER_SEC;
    ret->rates[1] = noise.right[0] * HEARTH_NS_PER_SEC;
    ret->rate.change *= HEARTH_NS_PER_SEC;
    ret->rate.low = fmax(ret->rate.low * HEARTH_NS_PER_SEC, -ret->rates[0]);
    ret->rate.high *= HEARTH_NS_PER_SEC;

    return HEARTH_OK;
}

/* ---- the answer ---- */

static bool is_changed(const struct hearth_change *change)
{
    return change->q <= HEARTH_NOISE_Q;
}

static enum hearth_status fill_nodes(const struct noise_run *run, struct hearth_diff_noise *ret,
                                     struct hearth_err *err)
{
    const struct hearth_diff_family *nodes = &run->items.nodes;

    ret->nodes = hearth_arena_calloc(run->items.arena, nodes->n_of, sizeof ret->nodes[0]);
    if (ret->nodes == NULL) {
        return HEARTH_FAIL_ARENA(err, run->items.arena);
    }

    for (size_t i = 0; i < nodes->n_of; i++) {
        uint32_t item = nodes->item_of[i];
        ret->nodes[i] = item == HEARTH_DIFF_NO_ITEM ? (struct hearth_change){.p = 1, .q = 1}
                                                    : run->node_changes[item];
        ret->n_judged_nodes += item != HEARTH_DIFF_NO_ITEM;
        ret->n_changed_nodes += item != HEARTH_DIFF_NO_ITEM && is_changed(&ret->nodes[i]);
    }

    return HEARTH_OK;
}

static int compare_function_changes(const void *left, const void *right)
{
    struct hearth_function_change a, b;
    memcpy(&a, left, sizeof a);
    memcpy(&b, right, sizeof b);
    if (is_changed(&a.share) != is_changed(&b.share)) {
        return is_changed(&a.share) ? -1 : 1;
    }

    double x = fabs(a.share.change), y = fabs(b.share.change);
    return x != y ? (x < y) - (x > y) : hearth_str_cmp(a.name, b.name);
}

/* Lists the items of a family of functions with their changes. */
static enum hearth_status list_functions(const struct noise_run *run,
                                         const struct hearth_diff_family *family,
                                         const struct hearth_change *changes,
                                         struct hearth_function_change **ret, size_t *ret_n_changed,
                                         struct hearth_err *err)
{
    struct hearth_function_change *list =
        hearth_arena_calloc(run->items.arena, family->n, sizeof list[0]);
    size_t n = 0, n_changed = 0;

    if (list == NULL) {
        return HEARTH_FAIL_ARENA(err, run->items.arena);
    }

    for (size_t i = 0; i < family->n_of; i++) {
        uint32_t item = family->item_of[i];
        if (item == HEARTH_DIFF_NO_ITEM) {
            continue;
        }
        struct hearth_function_change *to = &list[n++];
        to->name = hearth_arena_str(run->items.arena, run->items.shown.names[i]);
        to->values[0] = family->values[0][item];
        to->values[1] = family->values[1][item];
        to->share = changes[item];
        n_changed += is_changed(&to->share);
        if (to->name.p == NULL) {
            return HEARTH_FAIL_ARENA(err, run->items.arena);
        }
    }

    HEARTH_ASSERT(n == family->n);
    if (n > 0) {
        qsort(list, n, sizeof list[0], compare_function_changes);
    }
    *ret = list;
    *ret_n_changed = n_changed;

    return HEARTH_OK;
}

/* Counts the parts with data, and says why the method is not the best one. */
static void describe_method(const struct noise_run *run, struct hearth_diff_noise *ret)
{
    for (size_t s = 0; s < 2; s++) {
        const struct hearth_diff_part_side *side = &run->parts.sides[s];
        ret->slice_ns[s] = side->slice_ns;
        for (size_t i = 0; i < run->parts.n_parts[HEARTH_DIFF_BY_SLICES]; i++) {
            ret->n_slices[s] += run->items.weights[HEARTH_DIFF_BY_SLICES][s][i] > 0;
        }
        ret->n_series[s] = run->parts.n_parts[HEARTH_DIFF_BY_SERIES] == 0 ? 0 : side->n_series;
    }

    if (ret->method == HEARTH_NOISE_POISSON) {
        ret->reason = "a side has data in fewer than 4 slices of time and 4 series, so only the "
                      "number of samples counts";
    } else if (ret->method == HEARTH_NOISE_UNKNOWN) {
        ret->reason = "a side has data in fewer than 4 slices of time and 4 series, and values of "
                      "this type do not tell the number of samples";
    }
}

/* The sides are read a second time, and have been noted the first time. */
static enum hearth_status read_parts(struct noise_run *run, struct hearth_err *err)
{
    for (size_t s = 0; s < 2; s++) {
        run->quiet[s] = *run->task->queries[s];
        run->quiet[s].call.notes = NULL;
    }

    return hearth_diff_parts_read(
        &run->parts, (const struct hearth_query *const[2]){&run->quiet[0], &run->quiet[1]},
        run->task->specs, err);
}

static enum hearth_status make_noise(struct noise_run *run, struct hearth_diff_noise *ret,
                                     struct hearth_err *err)
{
    const struct hearth_noise_task *task = run->task;

    HEARTH_TRY(hearth_diff_items_choose(&run->items, task->trees, task->diff,
                                        task->queries[0]->call.arena, err));
    HEARTH_TRY(read_parts(run, err));
    HEARTH_TRY(hearth_diff_items_add_parts(&run->items, &run->parts, err));

    /* Judge all families, which have the same parts and so the same method, and the rate. */
    HEARTH_TRY(judge_family(run, &run->items.nodes, &run->node_changes, &ret->method, err));
    HEARTH_TRY(judge_family(run, &run->items.functions, &run->function_changes, &ret->method, err));
    HEARTH_TRY(judge_family(run, &run->items.function_totals, &run->function_total_changes,
                            &ret->method, err));
    describe_method(run, ret);
    if (!run->parts.sides[0].selection.gauge && ret->method == HEARTH_NOISE_PARTS) {
        HEARTH_TRY(judge_rate(run, ret, err));
    }

    HEARTH_TRY(fill_nodes(run, ret, err));
    ret->n_functions = run->items.functions.n;
    ret->n_function_totals = run->items.function_totals.n;
    HEARTH_TRY(list_functions(run, &run->items.functions, run->function_changes, &ret->functions,
                              &ret->n_changed_functions, err));
    return list_functions(run, &run->items.function_totals, run->function_total_changes,
                          &ret->function_totals, &ret->n_changed_totals, err);
}

/* Both sides are read a second time if both have data. */
static enum hearth_status plan_parts(struct noise_run *run, struct hearth_err *err)
{
    const struct hearth_explanation *plan = run->task->queries[0]->plan;
    int64_t n_rows[2] = {0, 0};

    for (size_t i = 0; i < plan->n_legs; i++) {
        const struct hearth_explained_leg *leg = &plan->legs[i];
        n_rows[leg->of_base] += leg->step == HEARTH_STEP_STACKS ? leg->n_rows : 0;
    }
    if (n_rows[0] == 0 || n_rows[1] == 0) {
        return HEARTH_OK;
    }

    enum hearth_status status = read_parts(run, err);
    hearth_diff_parts_release(&run->parts);
    return status;
}

enum hearth_status hearth_diff_noise_make(const struct hearth_noise_task *task,
                                          struct hearth_diff_noise *ret, struct hearth_err *err)
{
    struct noise_run run = {.task = task};

    *ret = (struct hearth_diff_noise){0};
    if (task->queries[0]->plan != NULL) {
        return plan_parts(&run, err);
    }
    if (task->diff->left_total == 0 || task->diff->right_total == 0) {
        ret->reason = "a side has no data";
        return HEARTH_OK;
    }

    enum hearth_status status = make_noise(&run, ret, err);
    hearth_diff_parts_release(&run.parts);
    hearth_diff_items_release(&run.items);
    return status;
}
