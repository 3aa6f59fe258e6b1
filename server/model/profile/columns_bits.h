/*
 * columns_bits.h -- the bit form of sample columns (layout in columns.h; private to the room).
 *
 * A column is written twice: first with `out` NULL, which returns its size (0: the column has no
 * such form) and the shapes of its runs; then, with these shapes, to room for that size and
 * HEARTH_RUN_SLACK. There is a shape for each HEARTH_RUN_NUMBERS samples and one more.
 *
 * Threads: pure.
 */
#ifndef HEARTH_MODEL_COLUMNS_BITS_H
#define HEARTH_MODEL_COLUMNS_BITS_H

#include "hearth/base/status.h"

#include "number_run.h"

/* First byte of a value column. */
enum hearth_value_form {
    HEARTH_VALUES_BYTES = 0,
    HEARTH_VALUES_MULTIPLE = 1,
    HEARTH_VALUES_BITS = 2,
    HEARTH_VALUES_ABOVE_ONE = 3,
    HEARTH_VALUES_ABOVE_ZERO = 4,
};

/* Value i of the column is values[i * stride]. */
struct hearth_value_list {
    const int64_t *values;
    uint32_t n, stride;
};

/* True if the column is in the bit form. */
static inline bool hearth_ids_in_bits(struct hearth_str ids)
{
    return ids.n > 0 && ids.p[0] == 0;
}

/* n > 0 ascending, distinct ids. */
size_t hearth_ids_write_bits(const uint32_t *ids, uint32_t n, struct hearth_run_shape *shapes,
                             uint8_t *out);
/*
 * form: one of those after HEARTH_VALUES_MULTIPLE; ABOVE_ONE if no value is 0. n_above: the number
 * of values above the base of these two forms.
 */
size_t hearth_values_write_bits(const struct hearth_value_list *list, enum hearth_value_form form,
                                uint32_t n_above, struct hearth_run_shape *shapes, uint8_t *out);

/* The number of values that are more than `base`. */
uint32_t hearth_values_count_above(const struct hearth_value_list *list, int64_t base);

/*
 * hearth_columns_merge for ids in the bit form. `val` is a column with values of its own, which are
 * multiplied by `factor`. CORRUPT and OUT_OF_RANGE come without a message.
 */
enum hearth_status hearth_columns_merge_bits(struct hearth_str ids, struct hearth_str val,
                                             uint64_t factor, int64_t *acc, size_t n_acc);

#endif
