/*
 * pool.h -- a file of made profiles that the load generators share: gzip bodies whose time can still be set.
 *
 * The profile's time stands in a stored block of its own at the end of the deflate stream (pprof may have
 * its fields in any order), so each push has another time for the price of 23 bytes: pool_tail() makes
 * them, and body + tail is one ordinary gzip member.
 *
 * Layout, in the byte order of the machine that made it: struct pool_head, n_services * n_profiles of
 * struct pool_entry, bodies.
 */
#ifndef HEARTH_BENCH_POOL_H
#define HEARTH_BENCH_POOL_H

#include <zlib.h>

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define POOL_MAGIC      UINT64_C(0x32304c4f4f504848)
#define POOL_TIME_BYTES 10 /* tag of time_nanos, varint of nine bytes: until the year 2262 */
#define POOL_TAIL_BYTES (5 + POOL_TIME_BYTES + 8)

struct pool_head {
    uint64_t magic;
    uint32_t n_services, n_profiles; /* of each service */
    uint32_t is_heap;                /* four value types, __name__ memory; else CPU with two */
    uint32_t
        n_builds; /* profile i is one of build i % n_builds, none of whose stacks another has */
};

struct pool_entry {
    uint64_t offset;     /* of the body in the file */
    uint32_t n_bytes;    /* gzip header and all blocks but the last */
    uint32_t crc, n_raw; /* of what they inflate to */
    uint32_t n_samples;
};

struct pool {
    const struct pool_head *head;
    const struct pool_entry *entries;
    const unsigned char *bytes;
    z_crc_t crc_op;
};

static inline void pool_open(const char *path, struct pool *ret)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    void *p = MAP_FAILED;
    if (fd >= 0 && fstat(fd, &st) == 0 && (size_t)st.st_size > sizeof *ret->head) {
        p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
    }
    if (p == MAP_FAILED || ((const struct pool_head *)p)->magic != POOL_MAGIC) {
        (void)fprintf(stderr, "%s is no pool of profiles\n", path);
        exit(1);
    }
    (void)close(fd);
    *ret = (struct pool){
        .head = p,
        .entries = (const struct pool_entry *)((const struct pool_head *)p + 1),
        .bytes = p,
        .crc_op = (z_crc_t)crc32_combine_gen(POOL_TIME_BYTES),
    };
}

static inline const struct pool_entry *pool_entry(const struct pool *pool, uint32_t service,
                                                  uint32_t profile)
{
    return &pool->entries[(size_t)service * pool->head->n_profiles + profile];
}

static inline void pool_put_u32(unsigned char *to, uint32_t n)
{
    for (int i = 0; i < 4; i++) {
        to[i] = (unsigned char)(n >> (8 * i));
    }
}

/* The last block and the trailer that complete the body of `entry` with a time. */
static inline void pool_tail(const struct pool *pool, const struct pool_entry *entry,
                             int64_t time_ns, unsigned char out[POOL_TAIL_BYTES])
{
    static const unsigned char stored[5] = {1, POOL_TIME_BYTES, 0, 0xff ^ POOL_TIME_BYTES, 0xff};
    memcpy(out, stored, sizeof stored);
    unsigned char *time = out + sizeof stored;
    time[0] = 9 << 3;
    for (int i = 0; i < 9; i++) {
        time[1 + i] = (unsigned char)((time_ns >> (7 * i) & 0x7f) | (i < 8 ? 0x80 : 0));
    }
    uint32_t crc = (uint32_t)crc32(0, time, POOL_TIME_BYTES);
    crc = (uint32_t)crc32_combine_op(entry->crc, crc, pool->crc_op);
    pool_put_u32(time + POOL_TIME_BYTES, crc);
    pool_put_u32(time + POOL_TIME_BYTES + 4, entry->n_raw + POOL_TIME_BYTES);
}

#endif
