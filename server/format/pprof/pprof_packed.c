/*
 * pprof_packed.c -- each byte that ends an id makes one: its own seven bits, above those of the
 * byte before if that continues. This is done for eight bytes at once, in lanes of 16 bits; then a
 * shuffle brings the lanes of such bytes together. No step waits for the length of an id, and no
 * branch depends on it.
 *
 * Source: J. Plaisance, N. Kurz, D. Lemire, Vectorized VByte Decoding, 2015 (shuffles by a mask of
 *         the top bits).
 */
#include "pprof/pprof_packed.h"

#ifdef __x86_64__

#    include <string.h>
#    include <tmmintrin.h>

#    define BLOCK_BYTES 8
#    define MAX_ID      0x3fff /* of two bytes */

/* Twice the place of the set bit number k of m, counted from 0; 16 if there is no such bit. */
#    define UPTO(m, k, i) (__builtin_popcount((m) & ((2 << (i)) - 1)) <= (k))
#    define PLACE(m, k)                                                                       \
        (2 * (UPTO(m, k, 0) + UPTO(m, k, 1) + UPTO(m, k, 2) + UPTO(m, k, 3) + UPTO(m, k, 4) + \
              UPTO(m, k, 5) + UPTO(m, k, 6) + UPTO(m, k, 7)))
#    define PLACES(m)                                                                     \
        {                                                                                 \
            PLACE(m, 0), PLACE(m, 1), PLACE(m, 2), PLACE(m, 3), PLACE(m, 4), PLACE(m, 5), \
                PLACE(m, 6), PLACE(m, 7)                                                  \
        }
#    define PLACES_4(m)  PLACES(m), PLACES((m) + 1), PLACES((m) + 2), PLACES((m) + 3)
#    define PLACES_16(m) PLACES_4(m), PLACES_4((m) + 4), PLACES_4((m) + 8), PLACES_4((m) + 12)
#    define PLACES_64(m) PLACES_16(m), PLACES_16((m) + 16), PLACES_16((m) + 32), PLACES_16((m) + 48)

/* [ends]: the first byte of each lane that ends an id, in their order. */
static const uint8_t g_places[256][BLOCK_BYTES] = {PLACES_64(0), PLACES_64(64), PLACES_64(128),
                                                   PLACES_64(192)};

bool hearth_pprof_packed_works(void)
{
    return __builtin_cpu_supports("ssse3") && __builtin_cpu_supports("popcnt");
}

__attribute__((target("ssse3,popcnt"))) const uint8_t *
hearth_pprof_packed_read(const uint8_t *p, const uint8_t *end, uint32_t n_locations, uint32_t **out)
{
    const uint8_t *begin = p;
    const __m128i zero = _mm_setzero_si128(), low_bits = _mm_set1_epi16(0x7f);
    const __m128i last = _mm_set1_epi16((int16_t)(n_locations < MAX_ID ? n_locations - 1 : MAX_ID));
    uint32_t *to = *out;

    while (p < end && n_locations > 0) {
        size_t left = (size_t)(end - p);
        unsigned wanted = left >= BLOCK_BYTES ? 0xff : (1u << left) - 1;
        __m128i bytes = _mm_loadu_si64(p), bytes_before = _mm_loadu_si64(p - 1);

        /* The index of an id, if it ended here, at each of the bytes. */
        __m128i here = _mm_unpacklo_epi8(bytes, zero);
        __m128i before = _mm_unpacklo_epi8(bytes_before, zero);
        __m128i is_second = _mm_cmpgt_epi16(before, low_bits);
        __m128i two = _mm_or_si128(_mm_slli_epi16(here, 7), _mm_and_si128(before, low_bits));
        __m128i indices = _mm_add_epi16(
            _mm_or_si128(_mm_and_si128(is_second, two), _mm_andnot_si128(is_second, here)),
            _mm_set1_epi16(-1));

        /* Stop at an id with a third byte, and at one of no location. */
        unsigned continues = (unsigned)_mm_movemask_epi8(bytes) & wanted;
        unsigned ends = continues ^ wanted;
        __m128i is_known = _mm_cmpeq_epi16(_mm_subs_epu16(indices, last), zero);
        unsigned known = (unsigned)_mm_movemask_epi8(_mm_packs_epi16(is_known, zero));
        unsigned odd = ((unsigned)_mm_movemask_epi8(bytes_before) & continues) | (ends & ~known);
        if (HEARTH_UNLIKELY(odd != 0)) {
            break;
        }

        /* Bring the indices together. */
        __m128i first = _mm_loadu_si64(g_places[ends]);
        __m128i places = _mm_unpacklo_epi8(first, _mm_add_epi8(first, _mm_set1_epi8(1)));
        indices = _mm_shuffle_epi8(indices, places);
        _mm_storeu_si128((void *)to, _mm_unpacklo_epi16(indices, zero));
        _mm_storeu_si128((void *)(to + 4), _mm_unpackhi_epi16(indices, zero));
        to += __builtin_popcount(ends);
        p += left < BLOCK_BYTES ? left : BLOCK_BYTES;
    }

    *out = to;

    /* The last byte may begin an id. */
    return p > begin && p[-1] >= 0x80 ? p - 1 : p;
}

#else

bool hearth_pprof_packed_works(void)
{
    return false;
}

const uint8_t *hearth_pprof_packed_read(const uint8_t *p, const uint8_t *end, uint32_t n_locations,
                                        uint32_t **out)
{
    (void)end;
    (void)n_locations;
    (void)out;
    return p;
}

#endif
