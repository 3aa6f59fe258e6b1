/*
 * read.h -- reading by plan: blocks, packed totals, segments, profiles and late profiles in one
 * statement.
 *
 * A query first asks what stands where for its services (hearth_store_read_state), plans
 * (engine/plan.h) and runs the plan (hearth_store_read, hearth_store_read_totals). The statement has
 * one snapshot and looks in it whether the generations are still those of the plan; when the
 * builder was in between, the answer is HEARTH_ABORTED: forget what was visited, ask the state
 * again, plan again.
 *
 * Threads: safe. Ownership: arrays are the caller's, or in the arena given.
 * Source:  storage design sections 5 and 7; docs/decisions/0011-roll-ups.md.
 */
#ifndef HEARTH_STORE_READ_H
#define HEARTH_STORE_READ_H

#include "hearth/model/profile_source.h"
#include "hearth/store/store.h"

/* hearth_data.roll_state; of a service without a row: INT64_MIN in all times, generation 0. */
struct hearth_service_state {
    int32_t service_id;
    int64_t watermark_ns, built_to_ns, compacted_to_ns, generation;
};

/* Profiles of these series with from_ns <= ts <= to_ns are deleted, but may still be stored. */
struct hearth_tombstone {
    int32_t service_id;
    int64_t from_ns, to_ns;
    int32_t *series_ids; /* ascending */
    size_t n_series;
};

struct hearth_read_state {
    struct hearth_service_state *services; /* as asked, ascending */
    size_t n_services;
    struct hearth_tombstone *tombstones; /* of these services, by service */
    size_t n_tombstones;
};

/* In arena. service_ids ascending and distinct. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_read_state(struct hearth_store *store, const int32_t *service_ids,
                                           size_t n_services, struct hearth_cancel *cancel,
                                           struct hearth_arena *arena,
                                           struct hearth_read_state *ret, struct hearth_err *err);

/*
 * Rows or blocks with from_ns <= time < to_ns of some series. A block's time is its t0, and the leg
 * must begin and end at whole blocks; only TOTALS, which hold each profile's time, may begin and end
 * anywhere. A whole-service leg has hits with series_id = -shape_id.
 */
struct hearth_read_leg {
    enum hearth_source source;
    int64_t from_ns, to_ns;
    const struct hearth_series_hit *hits; /* by (service_id, series_id, column) */
    size_t n_hits;
};

/* Whether rows bring the attributes of their samples (model/sample_attrs.h). */
enum hearth_read_attrs {
    HEARTH_ATTRS_NOT_READ,
    HEARTH_ATTRS_BESIDE, /* besides ids and val */
    HEARTH_ATTRS_ALONE,  /* without ids and val; rows without attributes do not come */
};

/*
 * What else is wanted of single profiles, and of which: for plans of PROFILE, LATE and SEGMENT legs
 * alone. All zero: nothing, of all. Arrays are borrowed.
 */
struct hearth_read_detail {
    bool identity; /* rows and totals bring writer_id, profile_no and duration_ns */
    enum hearth_read_attrs attrs;
    bool some;                                  /* only the profiles of these instants */
    const struct hearth_read_instant *instants; /* by (service_id, series_id, ts_ns), distinct */
    size_t n_instants;
    /* Hints: rows with other numbers, whose attributes hold none of these bytes, or that ended before, may not come. */
    const int64_t *profile_nos;
    size_t n_profile_nos;
    const struct hearth_str *attrs_with;
    size_t n_attrs_with;
    bool has_end; /* of time and duration, from end_ns on */
    int64_t end_ns;
};

struct hearth_read_plan {
    struct hearth_read_leg *legs;
    size_t n_legs;
    const struct hearth_read_state *state; /* that it was made for */
    struct hearth_budget *budget;          /* of what reading it unpacks; NULL: none */
    struct hearth_read_detail detail;
};

/*
 * Visit everything the plan names, in no particular order. Blocks come unpacked, as rows whose
 * n_profiles may exceed 1. PROFILE rows before their service's compacted_to do not come, so a leg may
 * reach over it. Rows of segments come out like others. Rows under a tombstone do not come
 * (a plan does not use blocks that a tombstone touches). ABORTED: see above.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_read(struct hearth_store *store,
                                     const struct hearth_read_plan *plan,
                                     struct hearth_cancel *cancel, hearth_read_row_fn *visit,
                                     void *context, struct hearth_err *err);
/* The same for totals; legs: PROFILE, LATE, SEGMENT, TOTALS. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_read_totals(struct hearth_store *store,
                                            const struct hearth_read_plan *plan,
                                            struct hearth_cancel *cancel,
                                            hearth_read_total_fn *visit, void *context,
                                            struct hearth_err *err);

/* What each leg would read, counted in the database without reading values. */
struct hearth_leg_cost {
    int64_t n_rows, n_bytes; /* blocks, profiles, or segments; bytes as stored */
};
/* costs: [plan->n_legs]. ABORTED as above. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_read_cost(struct hearth_store *store,
                                          const struct hearth_read_plan *plan,
                                          struct hearth_cancel *cancel,
                                          struct hearth_leg_cost *costs, struct hearth_err *err);

#endif
