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
#include "hearth/model/columns.h"

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
                               int64_t base, uint32_t n_above)
{
    HEARTH_UNFILLED uint64_t numbers[2 * HEARTH_RUN_NUMBERS];
    uint32_t n_run = 0;

    write_varint(w, n_above);
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
                                uint32_t n_above, struct hearth_run_shape *shapes, uint8_t *out)
{
    assert(form >= HEARTH_VALUES_BITS);

    struct run_writer w = {.shapes = shapes, .out = out};

    write_byte(&w, (uint8_t)form);
    if (form == HEARTH_VALUES_BITS) {
        write_all_values(&w, list);
    } else {
        write_values_above(&w, list, form == HEARTH_VALUES_ABOVE_ONE, n_above);
    }

    return end_writing(&w);
}

/* ---- merge ---- */

struct bits_merge {
    enum hearth_value_form form;
    struct hearth_run_reader ids, vals;
    uint64_t factor;
    uint64_t bound;  /* highest id plus one */
    uint64_t lowest; /* id that the next sample can have */
    uint32_t n;      /* samples */
    uint32_t at;     /* the first sample of the run */
    int64_t *acc;
    uint32_t places[HEARTH_RUN_NUMBERS];  /* ids of the run, less `lowest` */
    uint64_t numbers[HEARTH_RUN_NUMBERS]; /* values of the run's samples */
};

/* The values above the base, and which samples have them. */
struct above {
    const uint8_t *flags; /* of the samples from m->at on */
    uint32_t n_unread;
    uint32_t n, at; /* numbers[at] is the next value */
    uint64_t numbers[HEARTH_RUN_NUMBERS];
};

/* True if the sum overflows; nothing is added then. */
HEARTH_ALWAYS_INLINE bool add_one(int64_t *to, int64_t value)
{
    int64_t sum;
    if (HEARTH_UNLIKELY(__builtin_add_overflow(*to, value, &sum))) {
        return true;
    }
    *to = sum;
    return false;
}

static enum hearth_status add_same(int64_t *acc, const uint32_t *places, uint32_t n, int64_t value)
{
    uint32_t i = 0;

    for (; i + 4 <= n; i += 4) {
        if (add_one(&acc[places[i]], value) || add_one(&acc[places[i + 1]], value) ||
            add_one(&acc[places[i + 2]], value) || add_one(&acc[places[i + 3]], value)) {
            return HEARTH_OUT_OF_RANGE;
        }
    }

    for (; i < n; i++) {
        if (add_one(&acc[places[i]], value)) {
            return HEARTH_OUT_OF_RANGE;
        }
    }

    return HEARTH_OK;
}

HEARTH_ALWAYS_INLINE enum hearth_status add_multiple(int64_t *to, uint64_t value, uint64_t factor)
{
    int64_t sum;

    if (HEARTH_UNLIKELY(__builtin_mul_overflow(value, factor, &value) || value > INT64_MAX)) {
        return HEARTH_CORRUPT;
    }

    if (HEARTH_UNLIKELY(__builtin_add_overflow(*to, (int64_t)value, &sum))) {
        return HEARTH_OUT_OF_RANGE;
    }

    *to = sum;

    return HEARTH_OK;
}

/* Each sample of the run has a value of its own. */
static enum hearth_status add_own_values(struct bits_merge *m, int64_t *acc, uint32_t n)
{
    if (m->form == HEARTH_VALUES_BITS) {
        if (!hearth_run_read_numbers(&m->vals, n, m->numbers)) {
            return HEARTH_CORRUPT;
        }
    } else {
        for (uint32_t i = 0; i < n; i++) {
            if (!hearth_varint_read(&m->vals.at, m->vals.end, &m->numbers[i])) {
                return HEARTH_CORRUPT;
            }
        }
    }

    for (uint32_t i = 0; i < n; i++) {
        HEARTH_TRY(add_multiple(&acc[m->places[i]], m->numbers[i], m->factor));
    }

    return HEARTH_OK;
}

static bool read_above(struct bits_merge *m, struct above *above)
{
    above->n = count_in_run(above->n_unread);
    above->n_unread -= above->n;
    above->at = 0;
    return above->n > 0 && hearth_run_read_numbers(&m->vals, above->n, above->numbers);
}

/* The next flags, up to 64; `n` of them are left. */
static uint64_t take_flags(struct above *above, uint32_t n)
{
    uint64_t flags = 0;

    if (HEARTH_LIKELY(n >= 64)) {
        memcpy(&flags, above->flags, sizeof flags);
        above->flags += sizeof flags;
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        flags = __builtin_bswap64(flags);
#endif
        return flags;
    }

    for (uint32_t i = 0; i < n; i += 8) {
        flags |= (uint64_t)*above->flags++ << i;
    }

    return flags & ((UINT64_C(1) << n) - 1);
}

/* Add what the values of the run's n samples are above the base. */
static enum hearth_status add_above(struct bits_merge *m, struct above *above, int64_t *acc,
                                    uint32_t n)
{
    const uint64_t factor = m->factor;

    for (uint32_t from = 0; from < n; from += 64) {
        const uint32_t *places = m->places + from;
        uint64_t flags = take_flags(above, n - from);
        for (; flags != 0; flags &= flags - 1) {
            if (HEARTH_UNLIKELY(above->at == above->n) && !read_above(m, above)) {
                return HEARTH_CORRUPT;
            }
            uint64_t more = above->numbers[above->at++] + 1;
            HEARTH_TRY(add_multiple(&acc[places[__builtin_ctzll(flags)]], more, factor));
        }
    }

    return HEARTH_OK;
}

/* Read what stands before the runs. */
static bool read_heads(struct bits_merge *m, size_t n_acc, struct above *above)
{
    uint64_t n, n_above = 0;

    m->ids.at++; /* the mark of the form */
    if (!hearth_varint_read(&m->ids.at, m->ids.end, &m->bound) || m->bound > n_acc ||
        m->bound > UINT32_MAX || !hearth_varint_read(&m->ids.at, m->ids.end, &n) || n == 0 ||
        n > m->bound || m->vals.at == m->vals.end) {
        return false;
    }

    m->n = (uint32_t)n;
    m->form = (enum hearth_value_form) * m->vals.at++;
    if (m->form == HEARTH_VALUES_BYTES || m->form == HEARTH_VALUES_BITS) {
        return true;
    }

    size_t n_flag_bytes = ((size_t)m->n + 7) / 8;
    if ((m->form != HEARTH_VALUES_ABOVE_ONE && m->form != HEARTH_VALUES_ABOVE_ZERO) ||
        !hearth_varint_read(&m->vals.at, m->vals.end, &n_above) || n_above > n ||
        n_flag_bytes > (size_t)(m->vals.end - m->vals.at)) {
        return false;
    }

    above->n_unread = (uint32_t)n_above;
    above->flags = m->vals.at;
    m->vals.at += n_flag_bytes;

    return true;
}

enum hearth_status hearth_columns_merge_bits(struct hearth_str ids, struct hearth_str val,
                                             uint64_t factor, int64_t *acc, size_t n_acc)
{
    assert(hearth_ids_in_bits(ids));

    HEARTH_UNFILLED struct bits_merge m;
    HEARTH_UNFILLED struct above above;

    m.ids.at = (const uint8_t *)ids.p;
    m.ids.end = m.ids.at + ids.n;
    m.vals.at = (const uint8_t *)val.p;
    m.vals.end = m.vals.at + val.n;
    m.factor = factor;
    m.lowest = 0;
    m.at = 0;
    above.n = above.at = above.n_unread = 0;
    if (factor > INT64_MAX || !read_heads(&m, n_acc, &above)) {
        return HEARTH_CORRUPT;
    }

    while (m.at < m.n) {
        uint32_t n = count_in_run(m.n - m.at);
        if (!hearth_run_read_places(&m.ids, n, m.places) || m.lowest + m.places[n - 1] >= m.bound) {
            return HEARTH_CORRUPT;
        }

        int64_t *from = acc + m.lowest;
        if (m.form == HEARTH_VALUES_BYTES || m.form == HEARTH_VALUES_BITS) {
            HEARTH_TRY(add_own_values(&m, from, n));
        } else {
            if (m.form == HEARTH_VALUES_ABOVE_ONE) {
                HEARTH_TRY(add_same(from, m.places, n, (int64_t)factor));
            }
            HEARTH_TRY(add_above(&m, &above, from, n));
        }

        m.lowest += m.places[n - 1] + UINT64_C(1);
        m.at += n;
    }

    bool all_read = m.ids.at == m.ids.end && m.vals.at == m.vals.end && above.n_unread == 0 &&
                    above.at == above.n;

    return all_read && m.lowest == m.bound ? HEARTH_OK : HEARTH_CORRUPT;
}

/* ---- ids alone ---- */

void hearth_ids_walk_begin(struct hearth_ids_walk *walk, struct hearth_str ids)
{
    uint64_t bound, n = 0;

    walk->at = (const uint8_t *)ids.p;
    walk->end = walk->at + ids.n;
    walk->in_bits = hearth_ids_in_bits(ids);
    walk->at += walk->in_bits;
    walk->lowest = 0;
    walk->n = walk->next = 0;
    if (!hearth_varint_read(&walk->at, walk->end, &bound) ||
        (walk->in_bits && !hearth_varint_read(&walk->at, walk->end, &n)) || n > bound ||
        bound > UINT32_MAX) {
        walk->at = walk->end;
        n = 0;
    }
    walk->n_left = (uint32_t)n;
}

bool hearth_ids_walk_read(struct hearth_ids_walk *walk)
{
    static_assert(HEARTH_IDS_WALK_CHUNK == HEARTH_RUN_NUMBERS, "a run is a chunk");
    uint32_t n = 0;

    walk->n = walk->next = 0;
    if (!walk->in_bits) {
        uint64_t step;
        while (n < HEARTH_IDS_WALK_CHUNK && walk->at < walk->end &&
               hearth_varint_read(&walk->at, walk->end, &step)) {
            walk->lowest += step >> 1;
            walk->ids[n++] = (uint32_t)walk->lowest;
        }
        walk->n = n;
        return n > 0;
    }

    struct hearth_run_reader reader = {walk->at, walk->end};
    n = count_in_run(walk->n_left);
    if (n == 0 || !hearth_run_read_places(&reader, n, walk->ids)) {
        return false;
    }

    for (uint32_t i = 0; i < n; i++) {
        walk->ids[i] += (uint32_t)walk->lowest;
    }
    walk->lowest = walk->ids[n - 1] + UINT64_C(1);
    walk->at = reader.at;
    walk->n_left -= n;
    walk->n = n;

    return true;
}
