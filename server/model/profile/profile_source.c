/* profile_source.c -- names of sources, and how long their blocks are. */
#include "hearth/model/profile_source.h"

#include "hearth/base/clock.h"

#include <assert.h>

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
