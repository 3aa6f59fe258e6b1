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

enum {
    USUAL_BITS = 8,            /* of remainders: those of eight numbers fit into a word */
    USUAL_QUOTIENT_BYTES = 64, /* of a run; positions and places then fit into 16 bits */
    /* The last word read may hold 64 ones, and eight lanes are written for each byte. */
    POSITIONS_ROOM = HEARTH_RUN_NUMBERS + 64 + 8,
};

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

typedef uint64_t two_numbers HEARTH_VECTOR(16);

/* The sum of the numbers shifted by k, two at a time; *ret_any: all of these or-ed together. */
HEARTH_ALWAYS_INLINE uint64_t sum_shifted(const uint64_t *numbers, uint32_t n, uint32_t k,
                                          uint64_t *ret_any)
{
    two_numbers sum = {0}, any = {0};
    uint32_t i = 0;

    for (; i + 2 <= n; i += 2) {
        two_numbers two;
        memcpy(&two, numbers + i, sizeof two);
        two >>= k;
        sum += two;
        any |= two;
    }

    uint64_t last = i < n ? numbers[i] >> k : 0;
    *ret_any = any[0] | any[1] | last;

    return sum[0] + sum[1] + last;
}

bool hearth_run_measure(const uint64_t *numbers, uint32_t n, struct hearth_run_shape *ret)
{
    assert(n > 0 && n <= HEARTH_RUN_NUMBERS);

    uint64_t any, unused;
    uint64_t sum = sum_shifted(numbers, n, 0, &any);

    if (any >> HEARTH_RUN_MAX_BITS != 0) {
        return false;
    }

    /*
     * With k bits for the mean, quotients are at most two on average, so the run is bounded. One
     * bit less is often better: it saves n bits of remainders.
     */
    uint64_t mean = sum / n;
    uint32_t k = mean > 1 ? 63 - (uint32_t)__builtin_clzll(mean) : 0;
    uint64_t quotients = sum_shifted(numbers, n, k, &unused);
    if (k > 0) {
        uint64_t longer = sum_shifted(numbers, n, k - 1, &unused);
        if (longer < quotients + n) {
            k--;
            quotients = longer;
        }
    }

    size_t remainders = ((size_t)n * k + 7) / 8;
    *ret = (struct hearth_run_shape){
        .n_bytes = (uint16_t)(1 + remainders + (size_t)(quotients + n + 7) / 8),
        .k = (uint8_t)k,
    };

    return true;
}

static void store_word(uint8_t *out, uint64_t word)
{
    word = swap_on_big_endian(word);
    memcpy(out, &word, sizeof word);
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
    store_word(w->out, w->bits);
    w->n_bits += n;
    w->out += w->n_bits / 8;
    w->bits >>= w->n_bits & 56;
    w->n_bits &= 7;
}

static uint8_t *end_byte(const struct bit_writer *w)
{
    return w->out + (w->n_bits > 0);
}

/* Write the remainders of k > 0 bits; returns their end. */
static uint8_t *write_remainders(uint8_t *out, const uint64_t *numbers, uint32_t n, uint32_t k)
{
    uint64_t mask = (UINT64_C(1) << k) - 1;
    uint32_t i = 0;

    /* Those of eight numbers are k bytes. */
    for (; k <= USUAL_BITS && i + 8 <= n; i += 8) {
        uint64_t word = 0;
        for (uint32_t j = 8; j > 0; j--) {
            word = word << k | (numbers[i + j - 1] & mask);
        }
        store_word(out, word);
        out += k;
    }

    struct bit_writer w = {.out = out};
    for (; i < n; i++) {
        write_bits(&w, numbers[i] & mask, k);
    }

    return end_byte(&w);
}

/*
 * Write the quotients; returns their end. A word is full after some twenty of them, so the branch
 * on that is seldom mispredicted, and the next quotient need not wait for the word to be shifted.
 */
static uint8_t *write_quotients(uint8_t *out, const uint64_t *numbers, uint32_t n, uint32_t k)
{
    uint64_t word = 0, place = 0; /* in the word */

    for (uint32_t i = 0; i < n; i++) {
        place += numbers[i] >> k;
        while (HEARTH_UNLIKELY(place >= 64)) {
            store_word(out, word);
            out += 8;
            word = 0;
            place -= 64;
        }
        word |= UINT64_C(1) << place++;
    }

    store_word(out, word);

    return out + (place + 7) / 8;
}

uint8_t *hearth_run_write(uint8_t *out, const uint64_t *numbers, uint32_t n, uint32_t k)
{
    assert(n > 0 && n <= HEARTH_RUN_NUMBERS && k <= HEARTH_RUN_MAX_BITS);

    *out++ = (uint8_t)k;
    if (k > 0) {
        out = write_remainders(out, numbers, n, k);
    }

    return write_quotients(out, numbers, n, k);
}

/* ---- the parts of a run ---- */

/* Where remainders and quotients start. */
struct parts {
    uint32_t k;
    const uint8_t *remainders, *quotients;
};

HEARTH_ALWAYS_INLINE bool find_parts(const struct hearth_run_reader *reader, uint32_t n,
                                     struct parts *ret)
{
    const uint8_t *at = reader->at;
    if (at >= reader->end || *at > HEARTH_RUN_MAX_BITS) {
        return false;
    }

    ret->k = *at++;
    size_t n_bytes = ((size_t)n * ret->k + 7) / 8;
    if ((size_t)(reader->end - at) < n_bytes) {
        return false;
    }

    ret->remainders = at;
    ret->quotients = at + n_bytes;

    return true;
}

/* ---- read a usual run ---- */

/* Positions of the ones in each byte, ascending. */
#define IS_ONE(byte, bit, nth) \
    (((byte) >> (bit)&1) != 0 && __builtin_popcount((byte) & ((1 << (bit)) - 1)) == (nth))
#define POSITION(byte, nth)                                                           \
    (1 * IS_ONE(byte, 1, nth) + 2 * IS_ONE(byte, 2, nth) + 3 * IS_ONE(byte, 3, nth) + \
     4 * IS_ONE(byte, 4, nth) + 5 * IS_ONE(byte, 5, nth) + 6 * IS_ONE(byte, 6, nth) + \
     7 * IS_ONE(byte, 7, nth))
#define POSITIONS(byte)                                                                \
    {                                                                                  \
        POSITION(byte, 0), POSITION(byte, 1), POSITION(byte, 2), POSITION(byte, 3),    \
            POSITION(byte, 4), POSITION(byte, 5), POSITION(byte, 6), POSITION(byte, 7) \
    }
#define POSITIONS_4(byte) \
    POSITIONS(byte), POSITIONS(byte + 1), POSITIONS(byte + 2), POSITIONS(byte + 3)
#define POSITIONS_16(byte) \
    POSITIONS_4(byte), POSITIONS_4(byte + 4), POSITIONS_4(byte + 8), POSITIONS_4(byte + 12)
#define POSITIONS_64(byte) \
    POSITIONS_16(byte), POSITIONS_16(byte + 16), POSITIONS_16(byte + 32), POSITIONS_16(byte + 48)

typedef uint16_t eight_lanes HEARTH_VECTOR(16);
typedef uint32_t eight_places HEARTH_VECTOR(32);
typedef uint64_t eight_numbers HEARTH_VECTOR(64);

static const eight_lanes g_positions[256] = {POSITIONS_64(0), POSITIONS_64(64), POSITIONS_64(128),
                                             POSITIONS_64(192)};

/*
 * Write the positions of the ones of one byte of `word`. `ones` has the number of ones in each byte
 * and those below it.
 */
HEARTH_ALWAYS_INLINE void write_positions(uint16_t *positions, uint64_t word, uint64_t ones,
                                          eight_lanes base, unsigned byte)
{
    uint64_t before = byte == 0 ? 0 : ones >> (8 * byte - 8) & 0xff;
    eight_lanes here = g_positions[word >> 8 * byte & 0xff] + base;
    memcpy(positions + before, &here, sizeof here);
}

/*
 * Find the positions of the first n ones from `at` on. False if there are fewer in the bytes of a
 * usual run.
 */
HEARTH_ALWAYS_INLINE bool find_ones(const uint8_t *at, const uint8_t *end, uint32_t n,
                                    uint16_t *positions)
{
    const uint8_t *limit = end - at < USUAL_QUOTIENT_BYTES ? end : at + USUAL_QUOTIENT_BYTES;
    eight_lanes base = {0};

    uint32_t found = 0;
    do {
        if (HEARTH_UNLIKELY(at >= limit)) {
            return false;
        }

        uint64_t word = load_bounded(at, end);
        uint64_t ones = word - (word >> 1 & UINT64_C(0x5555555555555555));
        ones = (ones & UINT64_C(0x3333333333333333)) + (ones >> 2 & UINT64_C(0x3333333333333333));
        ones = (ones + (ones >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
        ones *= UINT64_C(0x0101010101010101);

        write_positions(positions + found, word, ones, base, 0);
        write_positions(positions + found, word, ones, base + 8, 1);
        write_positions(positions + found, word, ones, base + 16, 2);
        write_positions(positions + found, word, ones, base + 24, 3);
        write_positions(positions + found, word, ones, base + 32, 4);
        write_positions(positions + found, word, ones, base + 40, 5);
        write_positions(positions + found, word, ones, base + 48, 6);
        write_positions(positions + found, word, ones, base + 56, 7);
        base += 64;
        found += (uint32_t)(ones >> 56);
        at += 8;
    } while (found < n);

    return true;
}

/* What it takes to spread the remainders of four numbers over the lanes of a word. */
struct spread {
    uint32_t k;
    uint64_t four, pairs, lanes; /* masks: 4 k bits, 2 k of each half, k of each lane */
};

HEARTH_ALWAYS_INLINE uint64_t spread_remainders(const struct spread *s, uint64_t word)
{
    word &= s->four;
    word = (word | word << (32 - 2 * s->k)) & s->pairs;
    return (word | word << (16 - s->k)) & s->lanes;
}

/* Four places from the positions of their ones and the sum of the remainders up to each of them. */
HEARTH_ALWAYS_INLINE void write_places(uint16_t *places, const uint16_t *positions, uint64_t i,
                                       uint64_t remainders, uint32_t k)
{
    uint64_t word, numbers = i * LANES + LANE_NUMBERS;
    memcpy(&word, positions + i, sizeof word);
    word = ((word - numbers) << k) + remainders + numbers;
    memcpy(places + i, &word, sizeof word);
}

/*
 * Read the places of a usual run: at most 2^15 for the quotients, as the positions of their ones
 * are below 8 * (USUAL_QUOTIENT_BYTES + 8), and 2^15 for all remainders. False, with the reader
 * unchanged, if the run is not usual or damaged.
 */
HEARTH_ALWAYS_INLINE bool read_usual(struct hearth_run_reader *reader, uint32_t n, uint16_t *places)
{
    struct parts parts;
    HEARTH_UNFILLED uint16_t positions[POSITIONS_ROOM];

    if (__BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__ || !find_parts(reader, n, &parts) ||
        parts.k > USUAL_BITS || !find_ones(parts.quotients, reader->end, n, positions)) {
        return false;
    }

    uint32_t k = parts.k, last = positions[n - 1];
    if (HEARTH_UNLIKELY((last + 1 - n) << k > INT16_MAX)) {
        return false;
    }

    const struct spread spread = {
        .k = k,
        .four = (UINT64_C(1) << 4 * k) - 1,
        .pairs = ((UINT64_C(1) << 2 * k) - 1) * UINT64_C(0x0000000100000001),
        .lanes = ((UINT64_C(1) << k) - 1) * LANES,
    };
    uint64_t before = 0; /* sum of all earlier remainders, in each lane */
    uint32_t i = 0;
    do {
        uint64_t word = load_bounded(parts.remainders, reader->end);
        parts.remainders += k;

        uint64_t sums = spread_remainders(&spread, word) * LANES;
        write_places(places, positions, i, sums + before, k);
        before += (sums >> 48) * LANES;

        sums = spread_remainders(&spread, word >> 4 * k) * LANES;
        write_places(places, positions, i + 4, sums + before, k);
        before += (sums >> 48) * LANES;
        i += 8;
    } while (i < n);

    reader->at = parts.quotients + last / 8 + 1;
    assert(reader->at <= reader->end);

    return true;
}

/* Count the zeros from *bit of `from` on, and move *bit behind the one after them. */
static bool read_quotient(const uint8_t *from, const uint8_t *end, uint64_t *bit, uint64_t *ret)
{
    uint64_t start = *bit;

    for (const uint8_t *at = from + start / 8; at < end; at = from + *bit / 8) {
        uint64_t word = load_bounded(at, end) >> *bit % 8;
        if (word != 0) {
            *bit += (uint64_t)__builtin_ctzll(word);
            *ret = *bit - start;
            *bit += 1;
            return true;
        }
        *bit += 64 - *bit % 8;
    }

    return false;
}

/* ---- read any run ---- */

/* Find the quotients of a run, of any size, and where the run ends. */
static bool read_quotients(const uint8_t *from, const uint8_t *end, uint32_t n, uint64_t *ret,
                           const uint8_t **ret_end)
{
    HEARTH_UNFILLED uint16_t positions[POSITIONS_ROOM];
    uint64_t bit = 0;

    if (find_ones(from, end, n, positions)) {
        ret[0] = positions[0];
        for (uint32_t i = 1; i < n; i++) {
            ret[i] = (uint64_t)(positions[i] - positions[i - 1] - 1);
        }
        *ret_end = from + positions[n - 1] / 8 + 1;
        return true;
    }

    for (uint32_t i = 0; i < n; i++) {
        if (!read_quotient(from, end, &bit, &ret[i])) {
            return false;
        }
    }
    *ret_end = from + (bit + 7) / 8;

    return true;
}

/* Numbers and their sum have at most 63 bits. */
static bool read_any(struct hearth_run_reader *reader, uint32_t n, uint64_t *numbers)
{
    struct parts parts;
    const uint8_t *end;
    uint64_t sum = 0;

    if (!find_parts(reader, n, &parts) ||
        !read_quotients(parts.quotients, reader->end, n, numbers, &end)) {
        return false;
    }

    uint64_t mask = (UINT64_C(1) << parts.k) - 1, most = (uint64_t)INT64_MAX >> parts.k;
    for (uint32_t i = 0; i < n; i++) {
        size_t bit = (size_t)i * parts.k;
        uint64_t remainder = load_bounded(parts.remainders + bit / 8, reader->end) >> bit % 8;
        if (numbers[i] > most) {
            return false;
        }
        numbers[i] = numbers[i] << parts.k | (remainder & mask);
        sum += numbers[i]; /* both have 63 bits */
        if (sum > INT64_MAX) {
            return false;
        }
    }

    reader->at = end;

    return true;
}

bool hearth_run_read_places(struct hearth_run_reader *reader, uint32_t n, uint32_t *places)
{
    assert(n > 0 && n <= HEARTH_RUN_NUMBERS);

    HEARTH_UNFILLED uint16_t usual[HEARTH_RUN_NUMBERS];

    if (HEARTH_LIKELY(read_usual(reader, n, usual))) {
        for (uint32_t i = 0; i < n; i += 8) {
            eight_lanes here;
            memcpy(&here, usual + i, sizeof here);
            eight_places wide = __builtin_convertvector(here, eight_places);
            memcpy(places + i, &wide, sizeof wide);
        }
        return true;
    }

    HEARTH_UNFILLED uint64_t numbers[HEARTH_RUN_NUMBERS];
    uint64_t place = 0;
    if (!read_any(reader, n, numbers)) {
        return false;
    }

    for (uint32_t i = 0; i < n; i++) {
        place += numbers[i]; /* the sum of all numbers has 63 bits */
        if (place + i > UINT32_MAX) {
            return false;
        }
        places[i] = (uint32_t)(place + i);
    }

    return true;
}

bool hearth_run_read_numbers(struct hearth_run_reader *reader, uint32_t n, uint64_t *numbers)
{
    assert(n > 0 && n <= HEARTH_RUN_NUMBERS);

    /* A place is the one before, plus the number, plus one. */
    HEARTH_UNFILLED uint16_t usual[1 + HEARTH_RUN_NUMBERS];
    usual[0] = UINT16_MAX;

    if (HEARTH_UNLIKELY(!read_usual(reader, n, usual + 1))) {
        return read_any(reader, n, numbers);
    }

    for (uint32_t i = 0; i < n; i += 8) {
        eight_lanes here, before;
        memcpy(&before, usual + i, sizeof before);
        memcpy(&here, usual + 1 + i, sizeof here);
        eight_numbers wide = __builtin_convertvector(here - before - 1, eight_numbers);
        memcpy(numbers + i, &wide, sizeof wide);
    }

    return true;
}
