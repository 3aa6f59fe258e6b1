/*
 * plan.h -- how a query is answered: which parts of its range come from which tier.
 *
 * For each group of services in the same state, the range is divided into the cheapest exact mix:
 *   - blocks of days, hours and 10 minutes that lie wholly within the range and are built;
 *   - among them blocks of whole services, where the selection covers every series of a service and
 *     shape (never for gauge types: a mean per scrape cannot be computed from sums of a service);
 *   - profiles or segments at the edges and where no block is built yet;
 *   - late profiles of the whole range.
 * Blocks that a tombstone overlaps are not used. Parts of the range that retention has deleted are
 * left out, with a note: where no profiles are stored any more, the range is shortened to whole
 * blocks.
 *
 * Ownership: everything lives in the given arena.
 * Threads:   pure functions: no I/O, no clock.
 * Source:    docs/decisions/0009-reads-in-one-statement.md, 0011-roll-ups.md, 0046-sparse-data.md.
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
    int64_t now_ns;         /* the time from which retention counts back */
    struct hearth_retention retention;
    const struct hearth_read_state *state;
    bool totals; /* the query wants the total of each profile (a time series): no blocks of sums */
    bool rows;   /* the query wants single profiles: neither blocks nor totals */
    bool gauge;  /* the profile type is a gauge */
    /*
     * Longer blocks are used only for times that no shorter blocks cover, so that sums can be
     * assigned to parts of the range; 0: any block.
     */
    int64_t longest_block_ns;
    /* The (service_id, shape_id, column) all of whose series are selected, by the label index. */
    const struct hearth_series_hit *covered; /* series_id = -shape_id; sorted like hits */
    size_t n_covered;
};

/* Makes the plan in arena; appends notes, one a line, if notes is not NULL. Errors: NO_MEMORY. */
HEARTH_MUST_CHECK
enum hearth_status hearth_plan_make(const struct hearth_plan_input *input,
                                    struct hearth_arena *arena, struct hearth_read_plan *ret,
                                    struct hearth_buf *notes, struct hearth_err *err);

/* The first time, a whole hour, from which single profiles are read; INT64_MIN: no bound. */
int64_t hearth_plan_profiles_from(const struct hearth_retention *keep, int64_t now_ns);
/* Writes a time in the form that notes use; returns out. */
const char *hearth_plan_moment(int64_t ns, char out[32]);

#endif
