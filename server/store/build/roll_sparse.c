/* roll_sparse.c -- which blocks of series are left out (contract: roll_sparse.h). */
#include "build/roll_sparse.h"

#include "pg/pg.h"
#include "read/absent_blocks.h"

#include <assert.h>

/* ---- the set ---- */

enum hearth_status hearth_absent_set_take(const PGresult *result, int row, int field,
                                          struct hearth_absent_set *ret, struct hearth_err *err)
{
    HEARTH_CLEANUP(hearth_arena_release) struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_service_state state = {0};
    HEARTH_TRY(hearth_absent_blocks_take(result, row, field, &arena, &state, err));
    assert(state.n_absent <= HEARTH_ARRAY_LEN(ret->ranges));

    ret->n = state.n_absent;
    for (size_t i = 0; i < ret->n; i++) {
        ret->ranges[i] = state.absent[i];
    }

    return HEARTH_OK;
}

bool hearth_absent_set_param(struct hearth_pg_params *params, struct hearth_arena *arena,
                             const struct hearth_absent_set *set)
{
    int64_t *numbers = hearth_arena_array(arena, 3 * set->n + 1, sizeof *numbers);
    if (numbers == NULL) {
        return false;
    }

    for (size_t i = 0; i < set->n; i++) {
        numbers[3 * i] = set->ranges[i].length_ns;
        numbers[3 * i + 1] = set->ranges[i].from_ns;
        numbers[3 * i + 2] = set->ranges[i].to_ns;
    }

    hearth_pg_param_i64_array(params, numbers, 3 * set->n);

    return true;
}

bool hearth_absent_set_meets(const struct hearth_absent_set *set, int64_t length_ns,
                             int64_t from_ns, int64_t to_ns)
{
    for (size_t i = 0; i < set->n; i++) {
        const struct hearth_absent_blocks *range = &set->ranges[i];
        if (range->length_ns == length_ns && range->from_ns < to_ns && range->to_ns > from_ns) {
            return true;
        }
    }

    return false;
}
