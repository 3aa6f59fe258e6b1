/*
 * listed_originals.c -- the files that an upload was made of, as clients sent them.
 *
 * An original is shown only while its upload is listed, so that it is gone when the profiles are.
 */
#include "hearth/store/store_originals.h"

#include "listed/listed_scan.h"

#include <assert.h>

enum hearth_status hearth_listed_original(const struct hearth_call *call,
                                          const struct hearth_original_spec *spec,
                                          struct hearth_original_bytes *ret, struct hearth_err *err)
{
    struct hearth_listed_detail detail;

    assert(call != NULL && spec != NULL && ret != NULL);
    if (spec->index < 0 || spec->offset < 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "index (%d) and offset (%lld) of an original count from 0",
                           (int)spec->index, (long long)spec->offset);
    }

    HEARTH_TRY(hearth_listed_find(call, spec->id, &detail, err));
    if ((size_t)spec->index >= detail.n_originals) {
        return HEARTH_FAIL(err, HEARTH_NOT_FOUND,
                           "the profile has %zu originals, none with index %d: keep-originals says "
                           "which are kept, max-originals-bytes how many",
                           detail.n_originals, (int)spec->index);
    }

    const struct hearth_original *original = &detail.originals[spec->index];
    ret->name = original->name;
    ret->n_all = original->n_bytes;

    return hearth_store_original_read(HEARTH_CALL_SCOPE(call), original->original_no, spec->offset,
                                      HEARTH_LISTED_ORIGINAL_BYTES, &ret->bytes, err);
}
