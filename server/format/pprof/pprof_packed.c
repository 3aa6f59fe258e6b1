/*
 * pprof_packed.c -- each byte that ends an id makes one: its own seven bits, above those of the
 * byte before if that continues. This is done for eight bytes at once, in lanes of 16 bits; then a
 * shuffle brings the lanes of such bytes together. No step waits for the length of an id, and no
 * branch depends on it. Faults are gathered, and looked at once.
 *
 * Source: J. Plaisance, N. Kurz, D. Lemire, Vectorized VByte Decoding, 2015 (shuffles by a mask of
 *         the top bits).
 */
#include "pprof/pprof_packed.h"

#ifdef __x86_64__

#    include <immintrin.h>

#    define BLOCK_BYTES 8

/* The byte number b of the place of the clear bit number k of m, counted from 0; 0x80: no such. */
#    define UPTO(m, k, i) (__builtin_popcount(~(m) & ((2 << (i)) - 1)) <= (k))
#    define PLACE(m, k)                                                                  \
        (UPTO(m, k, 0) + UPTO(m, k, 1) + UPTO(m, k, 2) + UPTO(m, k, 3) + UPTO(m, k, 4) + \
         UPTO(m, k, 5) + UPTO(m, k, 6) + UPTO(m, k, 7))
#    define LANE(m, k) \
        PLACE(m, k) == 8 ? 0x80 : 2 * PLACE(m, k), PLACE(m, k) == 8 ? 0x80 : 2 * PLACE(m, k) + 1
#    define LANES(m)                                                                            \
        {                                                                                       \
            LANE(m, 0), LANE(m, 1), LANE(m, 2), LANE(m, 3), LANE(m, 4), LANE(m, 5), LANE(m, 6), \
                LANE(m, 7)                                                                      \
        }
#    define LANES_4(m)  LANES(m), LANES((m) + 1), LANES((m) + 2), LANES((m) + 3)
#    define LANES_16(m) LANES_4(m), LANES_4((m) + 4), LANES_4((m) + 8), LANES_4((m) + 12)
#    define LANES_64(m) LANES_16(m), LANES_16((m) + 16), LANES_16((m) + 32), LANES_16((m) + 48)

/* [mask of the bytes that continue]: a shuffle that brings the lanes of the others together. */
_Alignas(16) static const uint8_t g_shuffles[256][16] = {LANES_64(0), LANES_64(64), LANES_64(128),
                                                         LANES_64(192)};

/* From BLOCK_BYTES - n on: keeps the byte before a block and its first n. */
static const uint8_t g_keep[BLOCK_BYTES + 16] = {0xff, 0xff, 0xff, 0xff, 0xff,
                                                 0xff, 0xff, 0xff, 0xff};

/* What is known after some blocks. */
struct packed_state {
    __m128i largest;   /* of the indices, in each lane: 0xffff is that of id 0 */
    __m128i continues; /* top bit of a lane: a second byte that continues */
    uint32_t *to;
};

bool hearth_pprof_packed_works(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("popcnt");
}

/* Reads the ids that end in a block. Each lane of `pairs` is a byte, below it the one before. */
__attribute__((always_inline, target("avx2,popcnt"))) static inline void
read_block(__m128i pairs, unsigned continues, struct packed_state *state)
{
    /* The byte before has its top bit, 128, set if it counts: 128 times here + before - 128. */
    __m128i before_on_top = _mm_slli_epi16(pairs, 8);
    __m128i is_second = _mm_srai_epi16(before_on_top, 15);
    __m128i one = _mm_srli_epi16(pairs, 8);
    __m128i two = _mm_add_epi16(_mm_maddubs_epi16(_mm_set1_epi16((int16_t)0x8001), pairs),
                                _mm_set1_epi16(128));
    __m128i indices = _mm_add_epi16(_mm_blendv_epi8(one, two, is_second), _mm_set1_epi16(-1));

    state->continues = _mm_or_si128(state->continues, _mm_and_si128(before_on_top, pairs));
    indices = _mm_shuffle_epi8(indices, _mm_load_si128((const void *)g_shuffles[continues]));
    state->largest = _mm_max_epu16(state->largest, indices);
    _mm256_storeu_si256((void *)state->to, _mm256_cvtepu16_epi32(indices));
    state->to += BLOCK_BYTES - __builtin_popcount(continues);
}

__attribute__((target("avx2,popcnt"))) bool hearth_pprof_packed_read(const uint8_t *p,
                                                                     const uint8_t *end,
                                                                     uint32_t n_locations,
                                                                     uint32_t *to, size_t *ret_n)
{
    const __m128i last = _mm_set1_epi16((int16_t)(n_locations - 1));
    const __m128i pair_up = _mm_setr_epi8(0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8);
    struct packed_state state = {_mm_setzero_si128(), _mm_setzero_si128(), to};

    /* An id that begins with the last byte is cut off. */
    if (n_locations == 0 || n_locations > PPROF_PACKED_MAX_LOCATIONS ||
        (p < end && end[-1] >= 0x80)) {
        return false;
    }

    for (; end - p >= BLOCK_BYTES; p += BLOCK_BYTES) {
        __m128i bytes = _mm_loadu_si64(p);
        __m128i pairs = _mm_shuffle_epi8(_mm_loadu_si128((const void *)(p - 1)), pair_up);
        read_block(pairs, (unsigned)_mm_movemask_epi8(bytes), &state);
    }
    if (p < end) {
        size_t left = (size_t)(end - p);
        unsigned ours = (1u << left) - 1;
        __m128i keep = _mm_loadu_si128((const void *)(g_keep + BLOCK_BYTES - left));
        __m128i bytes = _mm_and_si128(_mm_loadu_si128((const void *)(p - 1)), keep);
        unsigned continues = (unsigned)_mm_movemask_epi8(bytes) >> 1 | (ours ^ 0xff);
        read_block(_mm_shuffle_epi8(bytes, pair_up), continues, &state);
    }

    __m128i odd =
        _mm_or_si128(_mm_subs_epu16(state.largest, last), _mm_srli_epi16(state.continues, 15));
    *ret_n = (size_t)(state.to - to);

    return _mm_testz_si128(odd, odd) != 0;
}

#else

bool hearth_pprof_packed_works(void)
{
    return false;
}

bool hearth_pprof_packed_read(const uint8_t *p, const uint8_t *end, uint32_t n_locations,
                              uint32_t *to, size_t *ret_n)
{
    (void)p;
    (void)end;
    (void)n_locations;
    (void)to;
    (void)ret_n;
    return false;
}

#endif
