/*
 * ingest_internal.h -- the steps of one profile through ingest (private to the engine).
 *
 *   ingest.c         requests
 *   push_profile.c   runs the steps of a profile (push_job.h)
 *   push_give_up.c   pushes that no client waits for any more
 *   ingest_decode.c  bytes of any format to a profile
 *   ingest_file.c    a file of any profiler to one profile or several
 *   exported_profiles.c  an export of OpenTelemetry's protocol to several profiles
 *   datadog_upload.c an attachment of a Datadog client to several profiles
 *   identity.c       labels, service, profile types, time: to whom the profile belongs
 *   split.c          samples: normalise, group by label set, find attributes
 *   rows.c           groups to encoded rows
 *
 * Threads: a profile is worked on by one thread.
 */
#ifndef HEARTH_ENGINE_INGEST_INTERNAL_H
#define HEARTH_ENGINE_INGEST_INTERNAL_H

#include "hearth/engine/ingest.h"
#include "hearth/format/pprof.h"
#include "hearth/model/sample_attrs.h"
#include "hearth/store/store.h"

/*
 * The work on one profile: what each step reads and where it writes. All steps allocate results in
 * arena, unless stated otherwise, and count in discards what they drop or change.
 */
struct hearth_push_work {
    const struct hearth_limits *limits;
    const char *const *service_labels; /* as in hearth_ingest_options */
    struct hearth_str app_name;        /* as in hearth_push_request */
    struct hearth_arena *arena;        /* scratch, until the row is submitted */
    struct hearth_arena *keep;         /* memory of the row, until the commit */
    uint64_t *discards;                /* [HEARTH_N_DISCARDS] */
    struct hearth_profile *profile;    /* set by hearth_ingest_decode, read by later steps */
};

/* The identity of a pushed series; made once per series of a request. */
struct hearth_identity {
    struct hearth_str name; /* __name__ as it is stored */
    struct hearth_str service_name;
    struct hearth_labels labels; /* own labels: sorted, without derived ones and service_name */
};

/*
 * Validates and sorts the labels of a series and finds its service. Texts borrow from the request
 * or live in arena. Errors: INVALID_ARGUMENT names the label and the limit; NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_identity_make(const struct hearth_push_work *work,
                                        const struct hearth_push_series *series,
                                        struct hearth_identity *ret, struct hearth_err *err);

/* The same for a series without __name__, whose profile has that name. */
HEARTH_MUST_CHECK
enum hearth_status hearth_identity_make_named(const struct hearth_push_work *work,
                                              const struct hearth_push_series *series,
                                              struct hearth_str name, struct hearth_identity *ret,
                                              struct hearth_err *err);

/* The limits that apply to a tenant. */
void hearth_ingest_limits(const struct hearth_ingest *ingest, struct hearth_str tenant,
                          struct hearth_limits *ret);

/* Adds what a decoder cut or repaired to the discards. */
void hearth_ingest_count_notes(const struct hearth_pprof_notes *notes, uint64_t *discards);

/* A limit in the type of decoders: 0 for none, at most UINT32_MAX. */
uint32_t hearth_ingest_clamp_limit(int64_t limit);
/* The limits of a tenant in the form that decoders use; 0 means no limit in both. */
struct hearth_pprof_limits hearth_ingest_pprof_limits(const struct hearth_limits *limits);

/*
 * Decodes inflated bytes into *work->profile, within the limits. hints may be NULL: the bytes are a
 * pprof, and *ret_name is empty. Otherwise hints name the format, and *ret_name is the profile's
 * __name__. Errors: INVALID_ARGUMENT, NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_ingest_decode(const struct hearth_push_work *work,
                                        const struct hearth_push_hints *hints,
                                        struct hearth_str bytes, struct hearth_str *ret_name,
                                        struct hearth_err *err);

/*
 * Ids of the profile's types in column order: an array of n_types. Errors: INVALID_ARGUMENT if one
 * is longer than the value of a label may be; NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_identity_types(const struct hearth_push_work *work,
                                         const struct hearth_identity *identity,
                                         struct hearth_str **ret_type_ids, struct hearth_err *err);

/*
 * The time of a profile: time_ns if it is in the ingestion window, now_ns if it is 0 or negative.
 * clock_ahead_ns: by how much another clock is ahead of now_ns; a profile is accepted if its time
 * is in the window of either clock. Errors: INVALID_ARGUMENT outside of the window.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_identity_time(const struct hearth_limits *limits,
                                        const struct hearth_identity *identity, int64_t time_ns,
                                        int64_t now_ns, int64_t clock_ahead_ns, int64_t *ret_ts_ns,
                                        struct hearth_err *err);

/* True for names that Hearth derives or manages, which are never own labels. */
bool hearth_label_is_reserved(struct hearth_str name);

/* Samples of one label set. */
struct hearth_group {
    struct hearth_labels labels; /* own labels of the series, sample labels included */
    uint32_t *samples;           /* sample indices, ascending */
    uint32_t n_samples;
    uint32_t *types; /* ascending: columns in which a sample is not 0; others make no series */
    uint32_t n_types;
};

struct hearth_split {
    struct hearth_group *groups;
    size_t n_groups;
    bool has_attrs; /* a sample of the profile has a span, trace, thread, endpoint or time */
};

/* The series of each group: an array of n_groups. Errors: as hearth_identity_types. */
HEARTH_MUST_CHECK
enum hearth_status hearth_identity_keys(const struct hearth_push_work *work,
                                        const struct hearth_identity *identity,
                                        const struct hearth_split *split,
                                        struct hearth_series_key **ret_keys,
                                        struct hearth_err *err);

/*
 * Marks dropped samples in skip[n_samples] (true: left out; entries that are true already stay so)
 * and groups the others. Errors: NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_split_samples(const struct hearth_push_work *work,
                                        const struct hearth_labels *series_labels, bool *skip,
                                        struct hearth_split *ret, struct hearth_err *err);

/*
 * Encodes one group of at least one sample: equal stacks are merged, sorted by id; attributes are
 * encoded next to them if has_attrs. stack_ids has an id for each sample of the profile that is not
 * left out. The row lives in work->keep. Errors: INVALID_ARGUMENT if sums overflow; NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_group_encode(const struct hearth_push_work *work,
                                       const struct hearth_group *group, const uint32_t *stack_ids,
                                       bool has_attrs, struct hearth_push_row *ret_row,
                                       struct hearth_err *err);

/*
 * Withdraws the push's profiles from the commit queue; they end with `status` and `err`. Returns
 * whether any of them is or may be stored; also true if that is not known, because the push has
 * just begun or ended.
 */
bool hearth_push_withdraw(struct hearth_ingest *ingest, struct hearth_push_request *request,
                          enum hearth_status status, const struct hearth_err *err);

#endif
