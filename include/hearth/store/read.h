/*
 * read.h -- reading by plan: blocks, packed totals, segments, profiles and late profiles in one
 * statement.
 *
 * A query first reads the state of its services (hearth_store_read_state), plans (engine/plan.h)
 * and runs the plan (hearth_store_read, hearth_store_read_totals). The statement has one snapshot
 * and checks in it that the generations still equal the plan's. If the builder changed one in
 * between, the status is HEARTH_ABORTED: the caller discards the visited rows, reads the state
 * again and plans again.
 *
 * Threads: safe. Ownership: arrays are the caller's, or in the given arena.
 * Source:  docs/decisions/0009-reads-in-one-statement.md, 0011-roll-ups.md.
 */
#ifndef HEARTH_STORE_READ_H
#define HEARTH_STORE_READ_H

#include "hearth/model/profile_source.h"
#include "hearth/store/store.h"

/*
 * Series of the service have no blocks of this length whose time lies in [from_ns, to_ns): they
 * would sum too few profiles. Totals are there. Retention keeps the profiles of a service from the
 * first day on that lacks blocks of an hour or a day, until the builder has written these.
 */
struct hearth_absent_blocks {
    int64_t length_ns, from_ns, to_ns; /* both times are multiples of the length */
    bool whole;                        /* there are no blocks of the whole service either */
};

#define HEARTH_MAX_ABSENT 64 /* ranges of a service */

/* A row of hearth_data.roll_state. A service without a row has times INT64_MIN, generation 0. */
struct hearth_service_state {
    int32_t service_id;
    int64_t watermark_ns, built_to_ns, compacted_to_ns, generation;
    /* By length and time, disjoint for each length; those after built_to_ns mean nothing. */
    const struct hearth_absent_blocks *absent;
    size_t n_absent;
};

/* Profiles of these series with from_ns <= ts <= to_ns are deleted, but may still be stored. */
struct hearth_tombstone {
    int32_t service_id;
    int64_t from_ns, to_ns;
    int32_t *series_ids; /* ascending */
    size_t n_series;
};

struct hearth_read_state {
    struct hearth_service_state *services; /* the requested services, ascending by id */
    size_t n_services;
    struct hearth_tombstone *tombstones; /* of these services, sorted by service */
    size_t n_tombstones;
};

/*
 * Read the state of these services into scope->arena. service_ids: ascending and distinct. Services
 * of other tenants are returned as services without a row.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_read_state(const struct hearth_scope *scope,
                                           const int32_t *service_ids, size_t n_services,
                                           struct hearth_read_state *ret, struct hearth_err *err);

/*
 * A leg: rows or blocks of some series with from_ns <= time < to_ns. A block's time is its t0, and
 * a leg of blocks must begin and end at whole blocks. Only TOTALS, which hold each profile's time,
 * may begin and end anywhere. A whole-service leg has hits with series_id = -shape_id.
 */
struct hearth_read_leg {
    enum hearth_source source;
    int64_t from_ns, to_ns;
    const struct hearth_series_hit *hits; /* sorted by (service_id, series_id, column) */
    size_t n_hits;
};

/* Whether rows include the attributes of their samples (model/sample_attrs.h). */
enum hearth_read_attrs {
    HEARTH_ATTRS_NOT_READ,
    HEARTH_ATTRS_BESIDE, /* in addition to ids and val */
    HEARTH_ATTRS_ALONE,  /* without ids and val; rows without attributes are skipped */
};

/*
 * Additional fields of single profiles, and filters on them, for plans that have only PROFILE, LATE
 * and SEGMENT legs. All zero: no additional field, no filter. Arrays are borrowed.
 */
struct hearth_read_detail {
    bool identity; /* rows and totals include writer_id, profile_no and duration_ns */
    enum hearth_read_attrs attrs;
    bool some;                                  /* only profiles of these instants */
    const struct hearth_read_instant *instants; /* sorted by (service, series, ts), distinct */
    size_t n_instants;

    /*
     * Hints: the store may skip rows that have another number, rows whose attributes contain no
     * text of attrs_with, and rows that ended before end_ns. It may also return such rows.
     */
    const int64_t *profile_nos;
    size_t n_profile_nos;
    const struct hearth_str *attrs_with;
    size_t n_attrs_with;
    bool has_end;
    int64_t end_ns; /* the earliest end (time + duration) of a profile, if has_end */
};

struct hearth_read_plan {
    struct hearth_read_leg *legs;
    size_t n_legs;
    const struct hearth_read_state *state; /* the state that the plan was made for */
    struct hearth_budget *budget;          /* for unpacked bytes; NULL: no budget */
    struct hearth_read_detail detail;
};

/*
 * Visit all rows of the plan, in no particular order. Blocks are unpacked and visited as rows whose
 * n_profiles may exceed 1; rows of segments are visited like rows of profile. PROFILE rows before
 * their service's compacted_to are skipped, so a leg may reach over it. Rows under a tombstone are
 * skipped (a plan does not use blocks that a tombstone touches). ABORTED: see above. The arena of
 * the scope is not used.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_read(const struct hearth_scope *scope,
                                     const struct hearth_read_plan *plan, hearth_read_row_fn *visit,
                                     void *context, struct hearth_err *err);

/* Visit the totals of a plan in the same way; its legs are PROFILE, LATE, SEGMENT or TOTALS. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_read_totals(const struct hearth_scope *scope,
                                            const struct hearth_read_plan *plan,
                                            hearth_read_total_fn *visit, void *context,
                                            struct hearth_err *err);

/*
 * The same, but totals that are stored packed are visited together, which takes less time for each
 * of them.
 */
struct hearth_total_visitor {
    hearth_read_total_fn *total;
    hearth_read_totals_fn *totals; /* NULL: one by one */
    void *context;
};

HEARTH_MUST_CHECK
enum hearth_status hearth_store_visit_totals(const struct hearth_scope *scope,
                                             const struct hearth_read_plan *plan,
                                             const struct hearth_total_visitor *visitor,
                                             struct hearth_err *err);

/* The size of a leg, counted in the database without reading values. */
struct hearth_leg_cost {
    int64_t n_rows, n_bytes; /* blocks, profiles, or segments; bytes as stored */
};

/* Count the rows and bytes of each leg. costs: [plan->n_legs]. ABORTED: see above. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_read_cost(const struct hearth_scope *scope,
                                          const struct hearth_read_plan *plan,
                                          struct hearth_leg_cost *costs, struct hearth_err *err);

#endif
