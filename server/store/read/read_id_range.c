/*
 * read_id_range.c -- totals of many series with few profiles (contract: read_internal.h).
 *
 * PostgreSQL estimates each element of a list of series, and searches the index for it: 1.3 us
 * each. Reading the index in order, from the first to the last id, takes 0.5 us a profile, but also
 * passes profiles of other times and series. So it pays only if the leaf holds little else, which
 * its size says without statistics, and if almost all ids of the range are selected.
 */
#include "pg/partitions.h"
#include "pg/session.h"
#include "read/read_internal.h"

#include <assert.h>

/* With fewer series, asking for sizes costs more than it saves. */
#define MANY_SERIES 4096
/* Size of a leaf for each series: two to four profiles with their index. */
#define BYTES_PER_SERIES 4096
/* Days of a leg; of more, sizes are not asked for. */
#define MAX_DAYS 31

struct size_query {
    const struct hearth_scope *scope;
    struct hearth_pg_params params;
    int64_t bytes;
};

static enum hearth_status read_sizes_on(void *context, struct hearth_pg *pg,
                                        enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct size_query *query = context;
    PGresult *result = NULL;
    enum hearth_status status =
        hearth_pg_exec(pg,
                       "SELECT coalesce(sum(pg_total_relation_size(to_regclass(leaf))), 0)::int8"
                       " FROM unnest($1::text[]) leaf",
                       &query->params, query->scope->cancel, &result, ret_fault, err);
    if (status == HEARTH_OK) {
        query->bytes = hearth_pg_i64(result, 0, 0);
    }

    PQclear(result);
    return status;
}

/* The mean size of the leaves of a leg. */
static enum hearth_status read_leg_size(const struct hearth_scope *scope,
                                        const struct hearth_read_leg *leg,
                                        struct hearth_arena *arena, int64_t *ret,
                                        struct hearth_err *err)
{
    int32_t day = hearth_day_of(leg->from_ns), last = hearth_day_of(leg->to_ns - 1);
    char names[MAX_DAYS][64];
    struct hearth_str leaves[MAX_DAYS];
    size_t n = 0;
    if (last < day || last - day >= MAX_DAYS) {
        return HEARTH_OK;
    }

    for (; day <= last; day++, n++) {
        hearth_partition_name("profile", day, names[n]);
        leaves[n] = hearth_str_c(names[n]);
    }

    struct size_query query = {.scope = scope};
    hearth_pg_params_init(&query.params, arena);
    hearth_pg_param_text_array(&query.params, leaves, n);
    const struct hearth_store_reader reader = {scope, NULL, 0, read_sizes_on, &query};
    HEARTH_TRY(hearth_store_read_with_pg(&reader, err));
    *ret = query.bytes / (int64_t)n;
    return HEARTH_OK;
}

enum hearth_status hearth_read_leaf_bytes(const struct hearth_scope *scope,
                                          const struct hearth_read_plan *plan,
                                          struct hearth_arena *arena, int64_t **ret,
                                          struct hearth_err *err)
{
    *ret = NULL;
    for (size_t i = 0; i < plan->n_legs && !plan->detail.some; i++) {
        const struct hearth_read_leg *leg = &plan->legs[i];
        if (leg->source != HEARTH_SOURCE_PROFILE || leg->n_hits < MANY_SERIES ||
            leg->from_ns >= leg->to_ns) {
            continue;
        }

        if (*ret == NULL) {
            *ret = hearth_arena_array(arena, plan->n_legs, sizeof **ret);
            if (*ret == NULL) {
                return HEARTH_FAIL_ARENA(err, arena);
            }
            for (size_t k = 0; k < plan->n_legs; k++) {
                (*ret)[k] = INT64_MAX;
            }
        }

        HEARTH_TRY(read_leg_size(scope, leg, arena, &(*ret)[i], err));
    }

    return HEARTH_OK;
}

bool hearth_read_by_id_range(struct read_branch *branch, int64_t leaf_bytes, const int32_t *series,
                             size_t n, struct hearth_arena *arena)
{
    assert(n > 0);

    if (branch->leg->source != HEARTH_SOURCE_PROFILE || n < MANY_SERIES ||
        leaf_bytes / BYTES_PER_SERIES >= (int64_t)n) {
        return false;
    }

    int32_t first = series[0], last = series[0];
    for (size_t i = 1; i < n; i++) {
        first = series[i] < first ? series[i] : first;
        last = series[i] > last ? series[i] : last;
    }

    size_t n_ids = (size_t)((int64_t)last - first + 1);
    if (n_ids - n > n / 4) {
        return false;
    }

    uint64_t *wanted = hearth_arena_calloc(arena, n_ids / 64 + 1, sizeof wanted[0]);
    if (wanted == NULL) {
        return false;
    }

    for (size_t i = 0; i < n; i++) {
        uint32_t id = (uint32_t)series[i] - (uint32_t)first;
        wanted[id / 64] |= UINT64_C(1) << id % 64;
    }

    branch->wanted = wanted;
    branch->first_id = first;
    branch->last_id = last;
    return true;
}
