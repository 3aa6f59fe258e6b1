/*
 * number_run.c -- write and read runs of numbers in Rice code (layout in number_run.h).
 *
 * Reading runs decides how fast queries over rows are, and its cost is the number of instructions
 * for each number. So usual runs (k up to 8, small quotients) are read without a branch for each
 * number: a table gives the positions of the ones in a byte of quotients, up to eight at a time,
 * and remainders are spread over the four 16-bit lanes of a word, where one multiplication adds
 * them up. Other runs are read number by number.
 */
#include "number_run.h"

#include <assert.h>
#include <string.h>

#define LANES        UINT64_C(0x0001000100010001) /* one in each lane */
#define LANE_NUMBERS UINT64_C(0x0003000200010000)

static uint64_t swap_on_big_endian(uint64_t word)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    return __builtin_bswap64(word);
#else
    return word;
#endif
}

/* The eight bytes at `at`; those at and after `end` are zero. */
HEARTH_ALWAYS_INLINE uint64_t load_bounded(const uint8_t *at, const uint8_t *end)
{
    uint64_t word = 0;
    if (HEARTH_LIKELY(end - at >= 8)) {
        memcpy(&word, at, sizeof word);
    } else if (end > at) {
        memcpy(&word, at, (size_t)(end - at));
    }
    return swap_on_big_endian(word);
}

/* ---- write ---- */

bool hearth_run_measure(const uint64_t *numbers, uint32_t n, struct hearth_run_shape *ret)
{
    assert(n > 0 && n <= HEARTH_RUN_NUMBERS);

    uint64_t sum = 0, any = 0;

    for (uint32_t i = 0; i < n; i++) {
        sum += numbers[i];
        any |= numbers[i];
    }

    if (any >> HEARTH_RUN_MAX_BITS != 0) {
        return false;
    }

    /*
     * With k bits for the mean, quotients are at most two on average, so the run is bounded. One
     * bit less is often better: it saves n bits of remainders.
     */
    uint64_t mean = sum / n, quotients = 0, longer = 0;
    uint32_t k = mean > 1 ? 63 - (uint32_t)__builtin_clzll(mean) : 0, fewer = k > 0 ? k - 1 : 0;
    for (uint32_t i = 0; i < n; i++) {
        quotients += numbers[i] >> k;
        longer += numbers[i] >> fewer;
    }

    if (longer < quotients + n) {
        k = fewer;
        quotients = longer;
    }

    size_t remainders = ((size_t)n * k + 7) / 8;
    *ret = (struct hearth_run_shape){
        .n_bytes = (uint16_t)(1 + remainders + (size_t)(quotients + n + 7) / 8),
        .k = (uint8_t)k,
    };

    return true;
}

/* Bits that are being written: n_bits of them, less than 8, are not in `out` yet. */
struct bit_writer {
    uint8_t *out;
    uint64_t bits;
    uint32_t n_bits;
};

/* Write the n <= 56 lowest bits of `bits`; the others are 0. */
HEARTH_ALWAYS_INLINE void write_bits(struct bit_writer *w, uint64_t bits, uint32_t n)
{
    w->bits |= bits << w->n_bits;
    uint64_t little = swap_on_big_endian(w->bits);
    memcpy(w->out, &little, sizeof little);
    w->n_bits += n;
    w->out += w->n_bits / 8;
    w->bits >>= w->n_bits & 56;
    w->n_bits &= 7;
}

static void end_byte(struct bit_writer *w)
{
    w->out += w->n_bits > 0;
    w->bits = 0;
    w->n_bits = 0;
}

uint8_t *hearth_run_write(uint8_t *out, const uint64_t *numbers, uint32_t n, uint32_t k)
{
    assert(n > 0 && n <= HEARTH_RUN_NUMBERS && k <= HEARTH_RUN_MAX_BITS);

    struct bit_writer w = {.out = out};
    uint64_t mask = (UINT64_C(1) << k) - 1;

    *w.out++ = (uint8_t)k;
    for (uint32_t i = 0; i < n && k > 0; i++) {
        write_bits(&w, numbers[i] & mask, k);
    }

    end_byte(&w);
    for (uint32_t i = 0; i < n; i++) {
        uint64_t quotient = numbers[i] >> k;
        for (; quotient >= 56; quotient -= 56) {
            write_bits(&w, 0, 56);
        }
        write_bits(&w, UINT64_C(1) << quotient, (uint32_t)quotient + 1);
    }

    end_byte(&w);

    return w.out;
}

