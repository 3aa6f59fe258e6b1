/* sha256.c -- FIPS 180-4, in plain C: the inputs are names of processes, a few bytes each. */
#include "hearth/base/sha256.h"

#include <assert.h>

#define BLOCK_BYTES 64

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes (4.2.2). */
static const uint32_t g_rounds[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate_right(uint32_t value, unsigned n)
{
    return value >> n | value << (32 - n);
}

/* One round whose variable a is v[at]. With a constant `at`, all variables stay in registers. */
static inline void run_round(uint32_t v[8], size_t at, uint32_t key)
{
    uint32_t *a = &v[at], *b = &v[(at + 1) % 8], *c = &v[(at + 2) % 8], *d = &v[(at + 3) % 8];
    uint32_t *e = &v[(at + 4) % 8], *f = &v[(at + 5) % 8], *g = &v[(at + 6) % 8];
    uint32_t *h = &v[(at + 7) % 8];

    uint32_t s1 = rotate_right(*e, 6) ^ rotate_right(*e, 11) ^ rotate_right(*e, 25);
    uint32_t choice = (*e & *f) ^ (~*e & *g);
    uint32_t t1 = *h + s1 + choice + key;
    uint32_t s0 = rotate_right(*a, 2) ^ rotate_right(*a, 13) ^ rotate_right(*a, 22);
    uint32_t majority = (*a & *b) ^ (*a & *c) ^ (*b & *c);
    *d += t1;
    *h = t1 + s0 + majority; /* the next round's a */
}

static void hash_block(struct hearth_sha256 *hash, const unsigned char *block)
{
    /* The message schedule (6.2.2, step 1). */
    uint32_t w[64];
    for (size_t i = 0; i < 16; i++) {
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
               (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    }

    for (size_t i = 16; i < 64; i++) {
        uint32_t s0 = rotate_right(w[i - 15], 7) ^ rotate_right(w[i - 15], 18) ^ w[i - 15] >> 3;
        uint32_t s1 = rotate_right(w[i - 2], 17) ^ rotate_right(w[i - 2], 19) ^ w[i - 2] >> 10;
        w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }

    /*
     * The working variables a to h, and 64 rounds (steps 2 and 3). In round i, a is at v[-i], b
     * behind it, and so on, modulo 8: so no variable moves from one round to the next.
     */
    uint32_t v[8];
    memcpy(v, hash->state, sizeof v);
    for (size_t i = 0; i < 64; i += 8) {
        run_round(v, 0, g_rounds[i] + w[i]);
        run_round(v, 7, g_rounds[i + 1] + w[i + 1]);
        run_round(v, 6, g_rounds[i + 2] + w[i + 2]);
        run_round(v, 5, g_rounds[i + 3] + w[i + 3]);
        run_round(v, 4, g_rounds[i + 4] + w[i + 4]);
        run_round(v, 3, g_rounds[i + 5] + w[i + 5]);
        run_round(v, 2, g_rounds[i + 6] + w[i + 6]);
        run_round(v, 1, g_rounds[i + 7] + w[i + 7]);
    }

    /* The new hash value (step 4). */
    for (size_t i = 0; i < 8; i++) {
        hash->state[i] += v[i];
    }
}

void hearth_sha256_init(struct hearth_sha256 *hash)
{
    *hash = (struct hearth_sha256){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                             0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void hearth_sha256_add(struct hearth_sha256 *hash, struct hearth_str bytes)
{
    assert(bytes.p != NULL || bytes.n == 0);

    const unsigned char *p = (const unsigned char *)bytes.p;
    size_t left = bytes.n;
    while (left > 0) {
        size_t at = (size_t)(hash->n_bytes % BLOCK_BYTES);
        size_t n = left < BLOCK_BYTES - at ? left : BLOCK_BYTES - at;
        memcpy(hash->block + at, p, n);
        hash->n_bytes += n;
        p += n;
        left -= n;
        if (at + n == BLOCK_BYTES) {
            hash_block(hash, hash->block);
        }
    }
}

void hearth_sha256_end(struct hearth_sha256 *hash, unsigned char ret[HEARTH_SHA256_BYTES])
{
    /* Padding: a 1 bit, then zeroes up to 8 bytes before the end of a block (5.1.1). */
    static const char padding[BLOCK_BYTES] = {(char)0x80};
    uint64_t n_bits = hash->n_bytes * 8;
    size_t at = (size_t)(hash->n_bytes % BLOCK_BYTES);

    hearth_sha256_add(hash, hearth_str_n(padding, at < 56 ? 56 - at : 120 - at));

    /* The last 8 bytes of the last block are the length in bits, big-endian. */
    assert(hash->n_bytes % BLOCK_BYTES == BLOCK_BYTES - 8);
    char length[8];
    for (size_t i = 0; i < sizeof length; i++) {
        length[i] = (char)(unsigned char)(n_bits >> (56 - 8 * i));
    }

    hearth_sha256_add(hash, hearth_str_n(length, sizeof length));
    assert(hash->n_bytes % BLOCK_BYTES == 0);

    for (size_t i = 0; i < HEARTH_SHA256_BYTES; i++) {
        ret[i] = (unsigned char)(hash->state[i / 4] >> (24 - 8 * (i % 4)));
    }
}

void hearth_sha256_end_hex(struct hearth_sha256 *hash, char ret[HEARTH_SHA256_HEX + 1])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char bytes[HEARTH_SHA256_BYTES];

    hearth_sha256_end(hash, bytes);
    for (size_t i = 0; i < HEARTH_SHA256_BYTES; i++) {
        ret[2 * i] = digits[bytes[i] >> 4];
        ret[2 * i + 1] = digits[bytes[i] & 15];
    }

    ret[HEARTH_SHA256_HEX] = '\0';
}
