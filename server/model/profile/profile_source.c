/* profile_source.c -- names of sources, and how long their blocks are. */
#include "hearth/model/profile_source.h"

#include "hearth/base/clock.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

const char *hearth_source_name(enum hearth_source source)
{
    static const char *const names[HEARTH_N_SOURCES] = {
        "profile", "late", "segment", "totals", "roll_10m", "roll_1h", "roll_1d",
    };

    assert(source >= 0 && source < HEARTH_N_SOURCES);
    return names[source];
}

int64_t hearth_source_length_ns(enum hearth_source source)
{
    switch (source) {
    case HEARTH_SOURCE_TOTALS:
    case HEARTH_SOURCE_ROLL_1H:
        return HEARTH_NS_PER_HOUR;

    case HEARTH_SOURCE_ROLL_10M:
        return HEARTH_NS_PER_HOUR / 6;

    case HEARTH_SOURCE_ROLL_1D:
        return HEARTH_NS_PER_DAY;

    default:
        return 0;
    }
}

int hearth_read_instant_compare(const void *a, const void *b)
{
    struct hearth_read_instant left, right;

    memcpy(&left, a, sizeof left);
    memcpy(&right, b, sizeof right);
    if (left.service_id != right.service_id) {
        return left.service_id < right.service_id ? -1 : 1;
    }

    if (left.series_id != right.series_id) {
        return left.series_id < right.series_id ? -1 : 1;
    }

    return (left.ts_ns > right.ts_ns) - (left.ts_ns < right.ts_ns);
}

size_t hearth_read_instants_sort(struct hearth_read_instant *v, size_t n)
{
    size_t n_distinct = 0;

    if (n > 1) {
        qsort(v, n, sizeof v[0], hearth_read_instant_compare);
    }

    for (size_t i = 0; i < n; i++) {
        if (n_distinct == 0 || hearth_read_instant_compare(&v[n_distinct - 1], &v[i]) != 0) {
            v[n_distinct++] = v[i];
        }
    }

    return n_distinct;
}
