/*
 * plan.h -- how a query is answered: which parts of its range come from which tier.
 *
 * The range is cut, per group of services in the same state, into the cheapest exact mix: days,
 * hours and 10 minutes that lie wholly within it and are built, whole-service blocks where the
 * selection covers every series of a service and shape (never for gauge types: the mean per scrape
 * does not decompose), profiles or segments at the edges and where nothing is built yet, and late
 * profiles of the whole range. Blocks that a tombstone touches are not used. What retention has
 * taken is cut, with a note: beyond the profiles, the range is drawn inward to whole blocks.
 *
 * Pure: no I/O, no clock. Ownership: everything lives in the arena given.
 * Source: storage design sections 5 and 7.
 */
#ifndef HEARTH_ENGINE_PLAN_H
#define HEARTH_ENGINE_PLAN_H

#include "hearth/base/buf.h"
#include "hearth/store/background.h"
#include "hearth/store/read.h"

struct hearth_plan_input {
    const struct hearth_series_hit *hits; /* by (service_id, series_id, column) */
    size_t n_hits;
    int64_t from_ns, to_ns; /* both included */
    int64_t now_ns;         /* retention counts from here */
    struct hearth_retention retention;
    const struct hearth_read_state *state;
    bool totals; /* of each profile (a time series): no blocks of sums */
    bool rows;   /* single profiles are wanted: neither blocks nor totals */
    bool gauge;
    /* Whole-service blocks may serve (service_id, shape_id, column): what the label index says. */
    const struct hearth_series_hit *covered; /* series_id = -shape_id; sorted like hits */
    size_t n_covered;
};

/* notes may be NULL. OK; NO_MEMORY. */
HEARTH_MUST_CHECK
enum hearth_status hearth_plan_make(const struct hearth_plan_input *input,
                                    struct hearth_arena *arena, struct hearth_read_plan *ret,
                                    struct hearth_buf *notes, struct hearth_err *err);

/* From where on single profiles are still read, a whole hour; INT64_MIN: from the first. */
int64_t hearth_plan_profiles_from(const struct hearth_retention *keep, int64_t now_ns);
/* A moment as notes write it; returns out. */
const char *hearth_plan_moment(int64_t ns, char out[32]);

#endif
