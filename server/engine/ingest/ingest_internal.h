/*
 * ingest_internal.h -- the steps of one profile through ingest (private to the engine).
 *
 *   ingest.c     requests: inflate, decode, run the steps, submit, answer
 *   push_give_up.c   requests that nobody waits for any more
 *   ingest_decode.c  bytes of any format to a profile
 *   identity.c   labels, service, profile types, time: who the profile belongs to
 *   split.c      samples: normalise, group by label set, gather attributes
 *   rows.c       groups to encoded rows
 */
#ifndef HEARTH_ENGINE_INGEST_INTERNAL_H
#define HEARTH_ENGINE_INGEST_INTERNAL_H

#include "hearth/engine/ingest.h"
#include "hearth/format/pprof.h"
#include "hearth/model/sample_attrs.h"
#include "hearth/store/store.h"

/* Who a pushed series is; made once per series of a request. */
struct hearth_identity {
    struct hearth_str name; /* __name__ as it is stored */
    struct hearth_str service_name;
    struct hearth_labels labels; /* own labels: sorted, without derived ones and service_name */
};

/*
 * Validate and sort the labels of a series; find its service. Texts borrow from the request or live
 * in arena. discards is counted up. INVALID_ARGUMENT names the label and the limit.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_identity_make(const struct hearth_ingest_options *options,
                                        const struct hearth_push_series *series,
                                        struct hearth_str app_name, struct hearth_arena *arena,
                                        uint64_t *discards, struct hearth_identity *ret,
                                        struct hearth_err *err);

/* The same for a series without __name__, whose profile has that name. */
HEARTH_MUST_CHECK
enum hearth_status hearth_identity_make_named(const struct hearth_ingest_options *options,
                                              const struct hearth_push_series *series,
                                              struct hearth_str name, struct hearth_str app_name,
                                              struct hearth_arena *arena, uint64_t *discards,
                                              struct hearth_identity *ret, struct hearth_err *err);

/* The limits of a tenant as decoders know them. */
struct hearth_pprof_limits hearth_ingest_pprof_limits(const struct hearth_limits *limits);

/*
 * Inflated bytes to a profile within the limits; with hints, as they say: *ret_name is its __name__
 * then, else empty. In arena; what was changed is counted in discards. INVALID_ARGUMENT or
 * NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_ingest_decode(const struct hearth_limits *limits,
                                        const struct hearth_push_hints *hints,
                                        struct hearth_str bytes, struct hearth_arena *arena,
                                        uint64_t *discards, struct hearth_profile *ret_profile,
                                        struct hearth_str *ret_name, struct hearth_err *err);

/*
 * Ids of the profile's types in column order: array of n_types in arena. INVALID_ARGUMENT when one is longer than the
 * value of a label may be.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_identity_types(const struct hearth_limits *limits,
                                         const struct hearth_identity *identity,
                                         const struct hearth_profile *profile,
                                         struct hearth_arena *arena,
                                         struct hearth_str **ret_type_ids, struct hearth_err *err);

/*
 * The profile's time in the ingestion window, now for a profile without one. clock_ahead_ns: how far another clock is
 * ahead of now; a profile is taken if either allows it.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_identity_time(const struct hearth_limits *limits,
                                        const struct hearth_identity *identity, int64_t time_ns,
                                        int64_t now_ns, int64_t clock_ahead_ns, int64_t *ret_ts_ns,
                                        struct hearth_err *err);

/* True for names that Hearth derives or manages: never own labels. */
bool hearth_label_is_reserved(struct hearth_str name);

/* Samples of one label set. */
struct hearth_group {
    struct hearth_labels labels; /* own labels of the series, sample labels included */
    uint32_t *samples;           /* sample indices */
    uint32_t n_samples;
    uint32_t *types; /* ascending: columns in which some sample is not 0; others make no series */
    uint32_t n_types;
};

struct hearth_split {
    struct hearth_group *groups;
    size_t n_groups;
    bool has_attrs; /* some sample carries a span, trace, thread, endpoint or time */
};

/* The series of each group, in arena. INVALID_ARGUMENT as hearth_identity_types, NO_MEMORY. */
HEARTH_MUST_CHECK
enum hearth_status
hearth_identity_keys(const struct hearth_limits *limits, const struct hearth_identity *identity,
                     const struct hearth_profile *profile, const struct hearth_split *split,
                     struct hearth_arena *arena, struct hearth_series_key **ret_keys,
                     struct hearth_err *err);

/*
 * Mark what is dropped in skip[n_samples] (true: leave out; entries already true stay) and group
 * the rest. In arena.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_split_samples(const struct hearth_limits *limits,
                                        const struct hearth_profile *profile,
                                        const struct hearth_labels *series_labels, bool *skip,
                                        struct hearth_arena *arena, uint64_t *discards,
                                        struct hearth_split *ret, struct hearth_err *err);

/*
 * Encode one group: equal stacks are merged, ids sorted; attributes go beside. Scratch memory from
 * `scratch`, output in `keep`.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_group_encode(const struct hearth_profile *profile,
                                       const struct hearth_group *group, const uint32_t *stack_ids,
                                       bool has_attrs, struct hearth_arena *scratch,
                                       struct hearth_arena *keep, uint64_t *discards,
                                       struct hearth_push_row *ret_row, struct hearth_err *err);

/*
 * Take the push's profiles out of the commit queue; `status` and `err` are their end. Returns whether any of them is or
 * may be stored; true also when that cannot be known, because the push has just begun or ended.
 */
bool hearth_push_withdraw(struct hearth_ingest *ingest, struct hearth_push_request *request,
                          enum hearth_status status, const struct hearth_err *err);

#endif
