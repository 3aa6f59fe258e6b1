/*
 * sha256.h -- SHA-256, for ids that other programs compute as well. For our own keys hash.h is
 * faster.
 *
 * Threads:   a state belongs to one thread.
 * Source:    FIPS 180-4, sections 4.1.2, 5.1.1 and 6.2.
 */
#ifndef HEARTH_BASE_SHA256_H
#define HEARTH_BASE_SHA256_H

#include "hearth/base/str.h"

#define HEARTH_SHA256_BYTES 32
#define HEARTH_SHA256_HEX   64 /* hex digits, without the NUL */

struct hearth_sha256 {
    uint32_t state[8];
    uint64_t n_bytes;
    unsigned char block[64]; /* the bytes of an incomplete block */
};

void hearth_sha256_init(struct hearth_sha256 *hash);
void hearth_sha256_add(struct hearth_sha256 *hash, struct hearth_str bytes);
/* Write the digest. Afterwards the state must be initialised again. */
void hearth_sha256_end(struct hearth_sha256 *hash, unsigned char ret[HEARTH_SHA256_BYTES]);
/* The same as lower-case hexadecimal digits and a NUL. */
void hearth_sha256_end_hex(struct hearth_sha256 *hash, char ret[HEARTH_SHA256_HEX + 1]);

#endif
