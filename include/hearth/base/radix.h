/*
 * radix.h -- a stable radix sort of arrays whose entries have an unsigned key.
 *
 * Entries are copied to a second array of the caller and back; nothing is allocated. All functions
 * are inlined, and callers pass a constant layout, so a pass is a loop of plain loads and stores.
 *
 * Threads: pure.
 * Source:  Knuth, The Art of Computer Programming, volume 3, section 5.2.5 (algorithm R).
 */
#ifndef HEARTH_BASE_RADIX_H
#define HEARTH_BASE_RADIX_H

#include "hearth/base/compiler.h"

#include <assert.h>
#include <string.h>

#define HEARTH_RADIX_MAX_BITS 11u /* of a digit: a pass counts in 8 KiB of the stack */

/* The layout of an entry, in bytes. Keys have 4 or 8 bytes, in the machine's byte order. */
struct hearth_radix_entry {
    size_t size, key_at, key_size;
};

/* Initialises the layout of `type` with its member `key`. */
#define HEARTH_RADIX_ENTRY(type, key)                               \
    {                                                               \
        sizeof(type), offsetof(type, key), sizeof(((type *)0)->key) \
    }

/* The key of entry i. */
HEARTH_ALWAYS_INLINE uint64_t hearth_radix_key(const void *v, size_t i,
                                               struct hearth_radix_entry entry)
{
    const unsigned char *key = (const unsigned char *)v + i * entry.size + entry.key_at;
    uint32_t key32;
    uint64_t key64;

    if (entry.key_size == sizeof key32) {
        memcpy(&key32, key, sizeof key32);
        return key32;
    }
    assert(entry.key_size == sizeof key64);
    memcpy(&key64, key, sizeof key64);

    return key64;
}

/*
 * Copy n entries to `to`, sorted by one digit of their keys: `bits` bits from bit `shift` on.
 * Entries with equal digits keep their order, so passes from the lowest digit to the highest sort
 * by all of these digits.
 */
HEARTH_ALWAYS_INLINE void hearth_radix_pass(const void *from, void *to, size_t n,
                                            struct hearth_radix_entry entry, unsigned shift,
                                            unsigned bits)
{
    HEARTH_UNFILLED uint32_t places[1u << HEARTH_RADIX_MAX_BITS];
    const size_t n_digits = (size_t)1 << bits;
    const unsigned char *in = from;
    unsigned char *out = to;
    uint32_t place = 0;

    assert(n <= UINT32_MAX && bits <= HEARTH_RADIX_MAX_BITS && shift < 64);

    /* Count the entries of each digit. */
    memset(places, 0, n_digits * sizeof places[0]);
    for (size_t i = 0; i < n; i++) {
        places[hearth_radix_key(from, i, entry) >> shift & (n_digits - 1)]++;
    }

    /* Replace each count by the place of the digit's first entry. */
    for (size_t digit = 0; digit < n_digits; digit++) {
        uint32_t count = places[digit];
        places[digit] = place;
        place += count;
    }

    /* Distribute the entries. */
    for (size_t i = 0; i < n; i++) {
        size_t at = places[hearth_radix_key(from, i, entry) >> shift & (n_digits - 1)]++;
        memcpy(out + at * entry.size, in + i * entry.size, entry.size);
    }
}

/* The bits in which the keys of n entries differ from each other. */
HEARTH_ALWAYS_INLINE uint64_t hearth_radix_differ(const void *v, size_t n,
                                                  struct hearth_radix_entry entry)
{
    uint64_t differ = 0;

    for (size_t i = 1; i < n; i++) {
        differ |= hearth_radix_key(v, i, entry) ^ hearth_radix_key(v, 0, entry);
    }

    return differ;
}

/*
 * Sort n entries by key, ascending, in passes of eight bits: the places of larger digits would cost
 * more than the entries of a usual profile or answer. differ: all bits in which keys differ, maybe
 * others; bytes of a key without such a bit take no pass. spare: [n]. Returns the array that holds
 * the result, v or spare; the content of the other one is undefined.
 */
HEARTH_ALWAYS_INLINE void *hearth_radix_sort(void *v, void *spare, size_t n,
                                             struct hearth_radix_entry entry, uint64_t differ)
{
    const unsigned bits = 8;

    for (unsigned shift = 0; shift < 8 * entry.key_size; shift += bits) {
        if ((differ >> shift & ((1u << bits) - 1)) != 0) {
            hearth_radix_pass(v, spare, n, entry, shift, bits);
            void *sorted = spare;
            spare = v;
            v = sorted;
        }
    }

    return v;
}

#endif
