/*
 * columns_bits.c -- sample columns in the bit form (layout in columns.h): ids and values as runs of
 * numbers.
 *
 * Ids are unpacked run by run, and one comparison checks the bound of a run, because ids ascend.
 * Most values of column 0 are 1: so 1 is added for all ids, and the rest of the larger values to
 * the few that have one.
 */
#include "columns_bits.h"

#include "hearth/base/varint.h"

#include <assert.h>
#include <string.h>

/* ---- write ---- */

/* Writes runs of the given shapes, or only counts their bytes and sets the shapes. */
struct run_writer {
    struct hearth_run_shape *shapes; /* of the next runs */
    uint8_t *out;                    /* NULL: only count */
    size_t n_bytes;
    bool failed; /* a number is too large */
};

static void write_byte(struct run_writer *w, uint8_t byte)
{
    if (w->out != NULL) {
        *w->out++ = byte;
    }
    w->n_bytes++;
}

static void write_varint(struct run_writer *w, uint64_t value)
{
    if (w->out != NULL) {
        w->out += hearth_varint_write(w->out, value);
    }
    w->n_bytes += hearth_varint_size(value);
}

static void write_run(struct run_writer *w, const uint64_t *numbers, uint32_t n)
{
    struct hearth_run_shape *shape = w->shapes++;

    if (w->out != NULL) {
        w->out = hearth_run_write(w->out, numbers, n, shape->k);
        w->n_bytes += shape->n_bytes;
        return;
    }

    bool fits = hearth_run_measure(numbers, n, shape);
    w->failed = w->failed || !fits;
    w->n_bytes += fits ? shape->n_bytes : 0;
}

static size_t end_writing(const struct run_writer *w)
{
    return w->failed ? 0 : w->n_bytes;
}

static uint32_t count_in_run(uint32_t n_left)
{
    return n_left < HEARTH_RUN_NUMBERS ? n_left : HEARTH_RUN_NUMBERS;
}

size_t hearth_ids_write_bits(const uint32_t *ids, uint32_t n, struct hearth_run_shape *shapes,
                             uint8_t *out)
{
    assert(n > 0);

    struct run_writer w = {.shapes = shapes, .out = out};
    HEARTH_UNFILLED uint64_t numbers[HEARTH_RUN_NUMBERS];
    uint32_t lowest = 0; /* that the next id can have */

    write_byte(&w, 0);
    write_varint(&w, (uint64_t)ids[n - 1] + 1);
    write_varint(&w, n);
    for (uint32_t from = 0; from < n; from += HEARTH_RUN_NUMBERS) {
        uint32_t n_run = count_in_run(n - from);
        for (uint32_t i = 0; i < n_run; i++) {
            numbers[i] = ids[from + i] - lowest;
            lowest = ids[from + i] + 1;
        }
        write_run(&w, numbers, n_run);
    }

    return end_writing(&w);
}

static void write_all_values(struct run_writer *w, const struct hearth_value_list *list)
{
    HEARTH_UNFILLED uint64_t numbers[HEARTH_RUN_NUMBERS];

    for (uint32_t from = 0; from < list->n; from += HEARTH_RUN_NUMBERS) {
        uint32_t n_run = count_in_run(list->n - from);
        for (size_t i = 0; i < n_run; i++) {
            numbers[i] = (uint64_t)list->values[(from + i) * list->stride];
        }
        write_run(w, numbers, n_run);
    }
}

uint32_t hearth_values_count_above(const struct hearth_value_list *list, int64_t base)
{
    uint32_t count = 0;
    for (size_t i = 0; i < list->n; i++) {
        count += list->values[i * list->stride] > base;
    }
    return count;
}

/* Write a bit for each sample: is its value above the base? */
static void write_flags(struct run_writer *w, const struct hearth_value_list *list, int64_t base)
{
    size_t n_bytes = ((size_t)list->n + 7) / 8;

    w->n_bytes += n_bytes;
    if (w->out == NULL) {
        return;
    }

    for (size_t from = 0; from < list->n; from += 8) {
        size_t n = list->n - from < 8 ? list->n - from : 8;
        uint32_t flags = 0;
        for (size_t i = 0; i < n; i++) {
            flags |= (uint32_t)(list->values[(from + i) * list->stride] > base) << i;
        }
        *w->out++ = (uint8_t)flags;
    }
}

static void write_values_above(struct run_writer *w, const struct hearth_value_list *list,
                               int64_t base)
{
    HEARTH_UNFILLED uint64_t numbers[2 * HEARTH_RUN_NUMBERS];
    uint32_t n_run = 0;

    write_varint(w, hearth_values_count_above(list, base));
    write_flags(w, list, base);

    /* Which values are above the base is practically random, so there is no branch on it. */
    for (uint32_t from = 0; from < list->n; from += HEARTH_RUN_NUMBERS) {
        uint32_t n = count_in_run(list->n - from);
        for (size_t i = 0; i < n; i++) {
            int64_t value = list->values[(from + i) * list->stride];
            numbers[n_run] = (uint64_t)(value - base - 1);
            n_run += value > base;
        }
        if (n_run >= HEARTH_RUN_NUMBERS) {
            write_run(w, numbers, HEARTH_RUN_NUMBERS);
            n_run -= HEARTH_RUN_NUMBERS;
            memcpy(numbers, numbers + HEARTH_RUN_NUMBERS, n_run * sizeof numbers[0]);
        }
    }

    if (n_run > 0) {
        write_run(w, numbers, n_run);
    }
}

size_t hearth_values_write_bits(const struct hearth_value_list *list, enum hearth_value_form form,
                                struct hearth_run_shape *shapes, uint8_t *out)
{
    assert(form >= HEARTH_VALUES_BITS);

    struct run_writer w = {.shapes = shapes, .out = out};

    write_byte(&w, (uint8_t)form);
    if (form == HEARTH_VALUES_BITS) {
        write_all_values(&w, list);
    } else {
        write_values_above(&w, list, form == HEARTH_VALUES_ABOVE_ONE);
    }

    return end_writing(&w);
}

