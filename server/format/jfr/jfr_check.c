/* jfr_check.c -- checks the chunk headers of recordings of Java's Flight Recorder. */
#include "hearth/format/jfr.h"

#define MAJOR_AT 4
#define SIZE_AT  8

static uint64_t read_big_endian(const uint8_t *p, size_t n)
{
    uint64_t value = 0;
    for (size_t i = 0; i < n; i++) {
        value = value << 8 | p[i];
    }
    return value;
}

enum hearth_status hearth_jfr_check(struct hearth_str bytes, struct hearth_err *err)
{
    size_t at = 0;

    do {
        const uint8_t *chunk = (const uint8_t *)bytes.p + at;
        size_t n_left = bytes.n - at;
        if (n_left < HEARTH_JFR_HEADER_BYTES) {
            return HEARTH_FAIL(
                err, HEARTH_INVALID_ARGUMENT,
                "not a JFR recording: %zu bytes at byte %zu are not a chunk, whose header "
                "has %d bytes",
                n_left, at, HEARTH_JFR_HEADER_BYTES);
        }
        if (memcmp(chunk, "FLR", 4) != 0) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                               "not a JFR recording: no chunk begins at byte %zu", at);
        }

        uint64_t major = read_big_endian(chunk + MAJOR_AT, 2),
                 size = read_big_endian(chunk + SIZE_AT, 8);
        if (major < 1 || major > 2) {
            return HEARTH_FAIL(
                err, HEARTH_INVALID_ARGUMENT,
                "the JFR chunk at byte %zu has version %llu; versions 1 and 2 are supported", at,
                (unsigned long long)major);
        }

        if (size < HEARTH_JFR_HEADER_BYTES || size > n_left) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                               "the JFR chunk at byte %zu declares %llu bytes; %zu are left", at,
                               (unsigned long long)size, n_left);
        }

        at += (size_t)size;
    } while (at < bytes.n);

    return HEARTH_OK;
}
