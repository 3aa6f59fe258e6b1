/* noise_answer.c -- DiffNoise: levels parallel to those of the flame graph, functions, the rate. */
#include "query/noise_answer.h"

#include "query/query_maps.h"
#include "rpc/messages.h"

/* Functions within noise beyond this number changed too little to be listed. */
#define MAX_FUNCTION_CHANGES 1000u

/* Fills a level with the changes of its n nodes. False: memory was refused. */
static bool fill_noise_level(struct hearth_rpc *rpc, const struct hearth_change *changes, size_t n,
                             Hearth__V1__NoiseLevel *level)
{
    float *all = hearth_arena_array(&rpc->arena, 3 * n, sizeof all[0]);
    if (all == NULL) {
        return false;
    }

    hearth__v1__noise_level__init(level);
    level->low = all;
    level->high = all + n;
    level->q = all + 2 * n;
    level->n_low = level->n_high = level->n_q = n;
    for (size_t i = 0; i < n; i++) {
        level->low[i] = (float)changes[i].low;
        level->high[i] = (float)changes[i].high;
        level->q[i] = (float)changes[i].q;
    }

    return true;
}

/* Fills all levels, if the diff was judged. */
static void fill_noise_levels(struct hearth_rpc *rpc, const struct hearth_flame_diff *diff,
                              const struct hearth_change *changes, Hearth__V1__DiffNoise *out)
{
    Hearth__V1__NoiseLevel **levels =
        hearth_arena_array(&rpc->arena, diff->n_levels, sizeof levels[0]);
    Hearth__V1__NoiseLevel *bodies =
        hearth_arena_array(&rpc->arena, diff->n_levels, sizeof bodies[0]);
    if (levels == NULL || bodies == NULL) {
        return;
    }

    for (size_t l = 0; l < diff->n_levels; l++) {
        size_t n = diff->levels[l].n / 7;
        if (!fill_noise_level(rpc, changes, n, &bodies[l])) {
            return;
        }
        levels[l] = &bodies[l];
        changes += n;
    }

    out->levels = levels;
    out->n_levels = diff->n_levels;
}

/* The number of functions to list: changed ones, which come first, are never left out. */
static size_t count_listed_changes(size_t n, size_t n_changed)
{
    size_t most = n_changed > MAX_FUNCTION_CHANGES ? n_changed : MAX_FUNCTION_CHANGES;

    return n < most ? n : most;
}

static void fill_rate(struct hearth_rpc *rpc, const struct hearth_diff_noise *noise,
                      Hearth__V1__DiffNoise *out)
{
    out->rate = hearth_arena_alloc(&rpc->arena, sizeof *out->rate);
    if (out->rate != NULL) {
        hearth__v1__rate_change__init(out->rate);
        out->rate->left = noise->rates[0];
        out->rate->right = noise->rates[1];
        out->rate->low = noise->rate.low;
        out->rate->high = noise->rate.high;
        out->rate->p = noise->rate.p;
    }
}

Hearth__V1__DiffNoise *hearth_rpc_diff_noise(struct hearth_rpc *rpc,
                                             const struct hearth_flame_diff *diff,
                                             const struct hearth_diff_noise *noise)
{
    Hearth__V1__DiffNoise *out = hearth_arena_alloc(&rpc->arena, sizeof *out);
    if (out == NULL) {
        return NULL;
    }

    hearth__v1__diff_noise__init(out);
    if (noise->reason != NULL) {
        out->reason = hearth_rpc_text(rpc, hearth_str_c(noise->reason));
    }

    out->method = noise->method == HEARTH_NOISE_PARTS ? HEARTH__V1__NOISE_METHOD__NOISE_METHOD_PARTS
                  : noise->method == HEARTH_NOISE_POISSON
                      ? HEARTH__V1__NOISE_METHOD__NOISE_METHOD_POISSON
                      : HEARTH__V1__NOISE_METHOD__NOISE_METHOD_UNSPECIFIED;
    out->left_slice_seconds = noise->slice_ns[0] / HEARTH_NS_PER_SEC;
    out->right_slice_seconds = noise->slice_ns[1] / HEARTH_NS_PER_SEC;
    out->left_slices = (int64_t)noise->n_slices[0];
    out->right_slices = (int64_t)noise->n_slices[1];
    out->left_series = (int64_t)noise->n_series[0];
    out->right_series = (int64_t)noise->n_series[1];
    if (noise->method == HEARTH_NOISE_UNKNOWN) {
        return out;
    }

    out->judged_nodes = (int64_t)noise->n_judged_nodes;
    out->changed_nodes = (int64_t)noise->n_changed_nodes;
    out->judged_functions = (int64_t)noise->n_functions;
    out->changed_functions = (int64_t)noise->n_changed_functions;
    fill_noise_levels(rpc, diff, noise->nodes, out);
    HEARTH_RPC_LIST(rpc, &hearth_function_change_map, noise->functions,
                    count_listed_changes(noise->n_functions, noise->n_changed_functions), out,
                    functions);
    HEARTH_RPC_LIST(rpc, &hearth_total_change_map, noise->function_totals,
                    count_listed_changes(noise->n_function_totals, noise->n_changed_totals), out,
                    totals);
    if (noise->has_rate) {
        fill_rate(rpc, noise, out);
    }

    return out;
}
