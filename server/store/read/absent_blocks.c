/* absent_blocks.c -- ranges of absent blocks as an array of numbers (contract: absent_blocks.h). */
#include "read/absent_blocks.h"

#include "hearth/base/clock.h"

#define N_NUMBERS 4 /* of a range: length, begin, end, flags */

int64_t hearth_absent_blocks_flags(const struct hearth_absent_blocks *range)
{
    return (range->whole ? HEARTH_ABSENT_WHOLE : 0) |
           (range->length_ns > 600 * HEARTH_NS_PER_SEC ? HEARTH_ABSENT_LONG : 0);
}

/* Whether a range is valid and follows the one before, which may be NULL. */
static bool is_next_range(const struct hearth_absent_blocks *range,
                          const struct hearth_absent_blocks *before)
{
    int64_t length_ns = range->length_ns;
    if ((length_ns != 600 * HEARTH_NS_PER_SEC && length_ns != HEARTH_NS_PER_HOUR &&
         length_ns != HEARTH_NS_PER_DAY) ||
        range->from_ns >= range->to_ns || range->from_ns % length_ns != 0 ||
        range->to_ns % length_ns != 0) {
        return false;
    }

    if (before == NULL || before->length_ns < length_ns) {
        return true;
    }

    /* Neighbours differ. */
    return before->length_ns == length_ns &&
           (before->to_ns < range->from_ns ||
            (before->to_ns == range->from_ns && before->whole != range->whole));
}

enum hearth_status hearth_absent_blocks_take(const PGresult *result, int row, int field,
                                             struct hearth_arena *arena,
                                             struct hearth_service_state *ret,
                                             struct hearth_err *err)
{
    int64_t *numbers;
    size_t n;
    HEARTH_TRY(hearth_pg_i64_array(result, row, field, arena, &numbers, &n, err));
    ret->absent = NULL;
    ret->n_absent = 0;
    if (n == 0) {
        return HEARTH_OK;
    }

    bool is_valid = n % N_NUMBERS == 0 && n / N_NUMBERS <= HEARTH_MAX_ABSENT;
    size_t n_ranges = is_valid ? n / N_NUMBERS : 0;
    struct hearth_absent_blocks *ranges = hearth_arena_array(arena, n_ranges, sizeof ranges[0]);
    if (ranges == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (size_t i = 0; i < n_ranges; i++) {
        const int64_t *at = numbers + i * N_NUMBERS;
        ranges[i] =
            (struct hearth_absent_blocks){at[0], at[1], at[2], (at[3] & HEARTH_ABSENT_WHOLE) != 0};
        is_valid = is_valid && at[3] == hearth_absent_blocks_flags(&ranges[i]) &&
                   is_next_range(&ranges[i], i == 0 ? NULL : &ranges[i - 1]);
    }

    if (!is_valid) {
        return HEARTH_FAIL(err, HEARTH_CORRUPT,
                           "the absent blocks of service %d are not in order in roll_state",
                           (int)ret->service_id);
    }

    ret->absent = ranges;
    ret->n_absent = n_ranges;

    return HEARTH_OK;
}
