/* members.c -- sets of series as delta varints (layout in block.h). */
#include "hearth/base/varint.h"
#include "hearth/model/block.h"

#include <assert.h>

void hearth_members_encode(const int32_t *series_ids, size_t n, struct hearth_buf *out)
{
    assert(out != NULL && (series_ids != NULL || n == 0));

    int32_t previous = 0;
    for (size_t i = 0; i < n; i++) {
        assert(series_ids[i] > previous);
        hearth_buf_varint(out, (uint64_t)((int64_t)series_ids[i] - previous));
        previous = series_ids[i];
    }
}

/* The end of the bytes. Adding to a NULL pointer is avoided. */
static const uint8_t *find_end(struct hearth_str bytes)
{
    return bytes.n == 0 ? (const uint8_t *)bytes.p : (const uint8_t *)bytes.p + bytes.n;
}

/* Read the next id; *id is the previous one. False at the end and for damaged bytes. */
static bool read_member(const uint8_t **at, const uint8_t *end, int32_t *id)
{
    uint64_t delta;
    if (!hearth_varint_read(at, end, &delta) || delta == 0 || delta > (uint64_t)(INT32_MAX - *id)) {
        return false;
    }
    *id += (int32_t)delta;
    return true;
}

enum hearth_status hearth_members_decode(struct hearth_str bytes, struct hearth_arena *arena,
                                         int32_t **ret_series_ids, size_t *ret_n,
                                         struct hearth_err *err)
{
    assert(arena != NULL && ret_series_ids != NULL && ret_n != NULL);

    const uint8_t *at = (const uint8_t *)bytes.p, *end = find_end(bytes);
    size_t n = 0;

    /* Every id ends in one byte below 0x80: count them, then decode. */
    for (size_t i = 0; i < bytes.n; i++) {
        n += at[i] < 0x80;
    }

    int32_t *ids = hearth_arena_array(arena, n, sizeof *ids), id = 0;
    if (ids == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    size_t n_read = 0;
    while (n_read < n && read_member(&at, end, &id)) {
        ids[n_read++] = id;
    }

    if (n_read < n || at != end) {
        return HEARTH_FAIL(err, HEARTH_CORRUPT, "a set of series is damaged (%zu bytes)", bytes.n);
    }

    *ret_series_ids = ids;
    *ret_n = n;

    return HEARTH_OK;
}

bool hearth_members_within(struct hearth_str bytes, const int32_t *series_ids, size_t n)
{
    const uint8_t *at = (const uint8_t *)bytes.p, *end = find_end(bytes);
    int32_t id = 0;

    for (size_t i = 0; at < end; i++) {
        if (!read_member(&at, end, &id)) {
            return false;
        }

        /* Both lists ascend. */
        while (i < n && series_ids[i] < id) {
            i++;
        }
        if (i == n || series_ids[i] != id) {
            return false;
        }
    }

    return true;
}
