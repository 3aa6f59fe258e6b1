/*
 * profile_id.h -- the public id of a pushed profile: a UUID of version 8 that encodes the profile's
 * key in the database, (writer_id, profile_no).
 *
 * Bits, from the first: writer_id 32, profile_no bits 63-48 16, version 4, profile_no bits 47-36
 * 12, variant 2, profile_no bits 35-0 36, zero 26. So an id needs no table and no index, and
 * survives compaction. It is no secret: tenants are separated by their series, not by ids. A
 * profile keeps one id, even if ingest splits it into several rows.
 * Threads: pure.
 * Source:  RFC 9562 section 5.8.
 */
#ifndef HEARTH_MODEL_PROFILE_ID_H
#define HEARTH_MODEL_PROFILE_ID_H

#include "hearth/base/str.h"

#define HEARTH_PROFILE_ID_TEXT 36 /* without the NUL */

struct hearth_profile_id {
    int32_t writer_id;
    int64_t profile_no;
};

void hearth_profile_id_format(struct hearth_profile_id id, char out[HEARTH_PROFILE_ID_TEXT + 1]);
/*
 * False if the text is not a UUID (8-4-4-4-12 hex digits). For a UUID that no profile can have,
 * returns true and sets *ret to {0, 0}, which identifies no profile.
 */
HEARTH_MUST_CHECK bool hearth_profile_id_parse(struct hearth_str text,
                                               struct hearth_profile_id *ret);

#endif
