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

/* ---- numbers ---- */

/*
 * A number says where the profile is stored, so that its id alone is enough to find it. Bits, from
 * the first: sign 1 (always 0), minute of the profile's time since the epoch 26, lower bits of the
 * service id 12, lower bits of a count 25. Minute 0 means that the place is not known: numbers of
 * older servers, which were only a count, and times that 26 bits cannot hold (before 1970, after
 * 2097).
 */
#define HEARTH_PROFILE_NO_SERVICES (1 << 12)

/* count: of the uploads of a writer. Profiles of one upload, minute and service share a number. */
int64_t hearth_profile_no_make(int32_t service_id, int64_t ts_ns, int64_t count);
/*
 * The minute as a number of which only its bits are set: 0 if the place is not known. Subtracted
 * from the numbers of neighbouring profiles, it leaves small differences.
 */
int64_t hearth_profile_no_base(int64_t ts_ns);

/* Profiles of the service have from_ns <= time < to_ns. */
struct hearth_profile_place {
    int64_t from_ns, to_ns;
    int32_t service_bits; /* service_id % HEARTH_PROFILE_NO_SERVICES */
};

/* False if the place is not known. */
HEARTH_MUST_CHECK bool hearth_profile_no_place(int64_t profile_no,
                                               struct hearth_profile_place *ret);

#endif
