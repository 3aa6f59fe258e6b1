/*
 * profile_id.c -- converts (writer_id, profile_no) to a UUID of version 8 and back.
 *
 * The first 64 bits:  writer_id 32, profile_no >> 48 16, version 4, profile_no >> 36 & fff 12.
 * The other 64 bits:  variant 2, profile_no & fffffffff 36, zero 26.
 */
#include "hearth/model/profile_id.h"

#include "hearth/base/clock.h"

#include <assert.h>

#define VERSION      UINT64_C(8)
#define VARIANT      UINT64_C(2)
#define LOW_BITS     36
#define PADDING_BITS 26

/* The parts of a number. */
#define MINUTE_BITS  26
#define SERVICE_BITS 12
#define COUNT_BITS   25
#define NS_PER_MIN   (INT64_C(60) * HEARTH_NS_PER_SEC)

static_assert(MINUTE_BITS + SERVICE_BITS + COUNT_BITS == 63, "the sign bit remains 0");
static_assert(1 << SERVICE_BITS == HEARTH_PROFILE_NO_SERVICES, "as the header says");

static bool is_dash(size_t at)
{
    return at == 8 || at == 13 || at == 18 || at == 23;
}

static void put_hex(uint64_t bits, char **at, const char *text)
{
    for (int shift = 60; shift >= 0; shift -= 4) {
        assert(*at - text < HEARTH_PROFILE_ID_TEXT);
        if (is_dash((size_t)(*at - text))) {
            *(*at)++ = '-';
        }
        *(*at)++ = "0123456789abcdef"[bits >> shift & 15];
    }
}

void hearth_profile_id_format(struct hearth_profile_id id, char out[HEARTH_PROFILE_ID_TEXT + 1])
{
    uint64_t no = (uint64_t)id.profile_no;
    uint64_t hi = (uint64_t)(uint32_t)id.writer_id << 32 | no >> 48 << 16 | VERSION << 12 |
                  (no >> LOW_BITS & 0xfff);
    uint64_t lo = VARIANT << 62 | (no & ((UINT64_C(1) << LOW_BITS) - 1)) << PADDING_BITS;
    char *at = out;

    put_hex(hi, &at, out);
    put_hex(lo, &at, out);
    *at = '\0';
}

bool hearth_profile_id_parse(struct hearth_str text, struct hearth_profile_id *ret)
{
    if (text.n != HEARTH_PROFILE_ID_TEXT) {
        return false;
    }

    /* Remove the dashes. */
    char digits[32];
    size_t n = 0;
    for (size_t i = 0; i < text.n; i++) {
        if (!is_dash(i)) {
            digits[n++] = text.p[i];
        } else if (text.p[i] != '-') {
            return false;
        }
    }

    /* Parse both halves. */
    uint64_t hi, lo;
    if (!hearth_str_hex_to_u64(hearth_str_n(digits, 16), &hi) ||
        !hearth_str_hex_to_u64(hearth_str_n(digits + 16, 16), &lo)) {
        return false;
    }

    /* Only a UUID of this form identifies a profile. */
    *ret = (struct hearth_profile_id){0};
    if ((hi >> 12 & 15) == VERSION && lo >> 62 == VARIANT &&
        (lo & ((UINT64_C(1) << PADDING_BITS) - 1)) == 0) {
        uint64_t no = (hi >> 16 & 0xffff) << 48 | (hi & 0xfff) << LOW_BITS |
                      (lo >> PADDING_BITS & ((UINT64_C(1) << LOW_BITS) - 1));
        *ret = (struct hearth_profile_id){(int32_t)(uint32_t)(hi >> 32), (int64_t)no};
    }

    return true;
}

/* ---- numbers ---- */

int64_t hearth_profile_no_base(int64_t ts_ns)
{
    int64_t minute = ts_ns / NS_PER_MIN;

    return ts_ns < 0 || minute >= INT64_C(1) << MINUTE_BITS ? 0
                                                            : minute << (SERVICE_BITS + COUNT_BITS);
}

int64_t hearth_profile_no_make(int32_t service_id, int64_t ts_ns, int64_t count)
{
    assert(service_id >= 0 && count >= 0);

    int64_t service = (int64_t)service_id & (HEARTH_PROFILE_NO_SERVICES - 1);

    return hearth_profile_no_base(ts_ns) | service << COUNT_BITS |
           (count & ((INT64_C(1) << COUNT_BITS) - 1));
}

bool hearth_profile_no_place(int64_t profile_no, struct hearth_profile_place *ret)
{
    int64_t minute = profile_no >> (SERVICE_BITS + COUNT_BITS);
    if (minute <= 0) {
        return false;
    }

    *ret = (struct hearth_profile_place){
        .from_ns = minute * NS_PER_MIN,
        .to_ns = (minute + 1) * NS_PER_MIN,
        .service_bits = (int32_t)(profile_no >> COUNT_BITS & (HEARTH_PROFILE_NO_SERVICES - 1)),
    };

    return true;
}
