/* legacy_types.c -- the types of a profile's values. */
#include "legacy/legacy_reader.h"

#include <assert.h>

enum hearth_status hearth_legacy_add_types(struct legacy_reader *r, const struct legacy_type *types,
                                           size_t n, struct hearth_err *err)
{
    assert(n <= LEGACY_MAX_TYPES);
    for (size_t i = 0; i < n; i++) {
        if (hearth_profile_builder_type(r->builder, hearth_str_c(types[i].type),
                                        hearth_str_c(types[i].unit)) == HEARTH_NO_INDEX) {
            return HEARTH_FAIL_ARENA(err, r->arena);
        }
    }

    return HEARTH_OK;
}
