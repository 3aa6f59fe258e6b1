/* push_spool.h -- profiles of a push that go to the disk instead of the database (private). */
#ifndef HEARTH_ENGINE_PUSH_SPOOL_H
#define HEARTH_ENGINE_PUSH_SPOOL_H

#include "ingest/push_job.h"

/*
 * Whether the profiles of this push are to be spooled now. Counts a spool that is full. has_failed:
 * a statement of the push has just failed, so the database may be away although nobody has noticed.
 */
bool hearth_push_wants_spool(const struct hearth_push_state *state, bool has_failed);
/* Add a prepared profile to the record of its push. False: it does not fit, or has no memory. */
HEARTH_MUST_CHECK bool hearth_push_spool_job(struct hearth_push_job *job,
                                             const struct hearth_profile *profile,
                                             const struct hearth_stack_keys *keys,
                                             struct hearth_str name);
/* Whether the profile is kept as it was received; it need not be decoded for that. */
bool hearth_push_is_pprof(const struct hearth_push_job *job);
/* Note that the commit queue gave a profile back, with the error if it cannot be spooled. */
void hearth_push_note_given_back(struct hearth_push_job *job, const struct hearth_err *err);
/*
 * At the end of a push: have the profiles spooled that were given back; the push ends later. Return
 * false if no profile was given back, or if they have failed, because the client has left or the
 * spool stops.
 */
HEARTH_MUST_CHECK bool hearth_push_keep_given_back(struct hearth_push_state *state);
/*
 * Hand the record over if there is one; then hearth_push_end_spooled is called later. Returns false
 * if the push has no record, or if the spool refused it, which fails its profiles.
 */
HEARTH_MUST_CHECK bool hearth_push_hand_to_spool(struct hearth_push_state *state);
/* End a push whose record is on the disk, or could not be written (ingest.c). */
void hearth_push_end_spooled(struct hearth_push_state *state);

#endif
