/*
 * read_id_range.c -- totals of many series with few profiles (contract: read_internal.h).
 *
 * PostgreSQL estimates each element of a list of series, and searches the index for it: 1.3 us
 * each. Reading the index in order, from the first to the last id, takes 0.5 us a profile, but also
 * passes profiles of other times and series. So it pays only if the leaf holds little else, which
 * its size says without statistics, and if almost all ids of the range are selected.
 */
#include "read/read_internal.h"
#include "session/partitions.h"
#include "session/session.h"

#include <assert.h>

/* With fewer series, asking for sizes costs more than it saves. */
#define MANY_SERIES 4096
/* Size of a leaf for each series: two to four profiles with their index. */
#define BYTES_PER_SERIES 4096
/* Days of a leg; of more, sizes are not asked for. */
#define MAX_DAYS 31
/*
 * All profiles of the leaves may be of the ids of one array, so those of larger leaves come one by
 * one: a profile takes at least 200 bytes of a leaf, and 36 of arrays.
 */
#define MAX_LEAVES_BYTES ((int64_t)512 << 20)

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

/* Count the series of the branch's column, and find their least and largest id. */
static size_t find_ids(const struct read_branch *branch, int32_t *ret_first, int32_t *ret_last)
{
    const struct hearth_read_leg *leg = branch->leg;
    int32_t first = INT32_MAX, last = INT32_MIN;
    size_t n = 0;

    for (size_t i = 0; i < leg->n_hits; i++) {
        const struct hearth_series_hit *hit = &leg->hits[i];
        if (hit->column == branch->column) {
            first = hit->series_id < first ? hit->series_id : first;
            last = hit->series_id > last ? hit->series_id : last;
            n++;
        }
    }

    *ret_first = first;
    *ret_last = last;

    return n;
}

bool hearth_read_by_id_range(struct read_branch *branch, int64_t leaf_bytes,
                             struct hearth_arena *arena)
{
    const struct hearth_read_leg *leg = branch->leg;
    int32_t first, last;

    if (leg->source != HEARTH_SOURCE_PROFILE || leg->n_hits < MANY_SERIES) {
        return false;
    }

    size_t n = find_ids(branch, &first, &last);
    if (n < MANY_SERIES || leaf_bytes / BYTES_PER_SERIES >= (int64_t)n) {
        return false;
    }

    size_t n_ids = (size_t)((int64_t)last - first + 1);
    if (n_ids - n > n / 4) {
        return false;
    }

    int32_t *services = hearth_arena_calloc(arena, n_ids, sizeof services[0]);
    if (services == NULL) {
        return false;
    }

    for (size_t i = 0; i < leg->n_hits; i++) {
        if (leg->hits[i].column == branch->column) {
            services[(size_t)((int64_t)leg->hits[i].series_id - first)] = leg->hits[i].service_id;
        }
    }

    branch->services = services;
    branch->first_id = first;
    branch->last_id = last;
    int64_t n_days = (int64_t)hearth_day_of(leg->to_ns - 1) - hearth_day_of(leg->from_ns) + 1;
    branch->in_arrays = n_days > 0 && leaf_bytes <= MAX_LEAVES_BYTES / n_days;

    return true;
}
