/*
 * ingest.h -- from pushed bytes to committed rows.
 *
 * For every profile of a request: inflate, decode, validate, normalise, split by sample labels,
 * resolve stacks, encode, submit. Profiles are independent: one that fails does not stop the
 * others; the request's status is that of the first failure, its message names the profile. The
 * request is done when every profile is committed or failed.
 *
 * Normalisation: negative and all-zero samples are dropped; samples with a dangling location are
 * dropped; a series does not have the types that are 0 in all of its samples; equal stacks with equal labels are merged; numeric sample labels are dropped; string
 * sample labels split series (series labels win); span, trace, thread, endpoint and time labels
 * stay beside the sample (model/sample_attrs.h). Whatever is dropped, cut or merged is counted by
 * reason: in the request's notes and in hearth_discarded_total.
 *
 * Ownership: a request is the caller's until its `done` ran, and so are receipts; its inputs (series, texts,
 *            profiles) are borrowed until hearth_ingest_push returns.
 * Threads:   hearth_ingest_push runs the CPU work on the calling thread; `done` comes from this
 *            call or from a committer.
 * Source:    push.v1 semantics as in docs/reference/api-push.md, "Push" and "Ingest".
 */
#ifndef HEARTH_ENGINE_INGEST_H
#define HEARTH_ENGINE_INGEST_H

#include "hearth/engine/limits.h"
#include "hearth/format/ingest_types.h"
#include "hearth/model/labels.h"
#include "hearth/model/profile_id.h"

#include <stdatomic.h>

/* Reasons of loss or change that do not refuse a profile; the unit is in the name. */
enum hearth_discard {
#define X(id, name, meaning) HEARTH_DISCARD_##id,
#include "hearth/engine/discards.def"
#undef X
    HEARTH_N_DISCARDS
};

const char *hearth_discard_name(enum hearth_discard discard);
/* Add to hearth_discarded_total; pushes do so themselves. _declare gives every reason its line at the start. */
void hearth_discards_declare(void);
void hearth_discards_count(const uint64_t discards[HEARTH_N_DISCARDS]);

struct hearth_ingest_options {
    struct hearth_limits limits;
    /*
     * Labels that name the service, first match wins; NULL-terminated. service_name precedes them all, unless
     * it is one of them.
     */
    const char *const *service_labels;
    struct hearth_budget *budget; /* of decoding; kept; NULL: no limit */
};

struct hearth_ingest;

HEARTH_MUST_CHECK
enum hearth_status hearth_ingest_new(const struct hearth_ingest_options *options,
                                     struct hearth_store *store, /* kept */
                                     struct hearth_ingest **ret_ingest, struct hearth_err *err);
void hearth_ingest_free(struct hearth_ingest *ingest);
/* Gives back the memory that is kept for later pushes: when its budget has refused something. */
void hearth_ingest_drop_idle(struct hearth_ingest *ingest);

/*
 * What an upload to /ingest says about a profile beside its bytes. Its __name__ comes from the type,
 * or from the sample types of a pprof; the series has none.
 */
struct hearth_push_hints {
    enum hearth_ingest_format format;      /* PPROF, COLLAPSED, LINES, TRIE or TREE */
    const struct hearth_ingest_type *type; /* of text formats */
    int64_t sample_rate;                   /* Hz; of text formats */
    struct hearth_str spy;                 /* spyName */
    const struct hearth_json_cell *cells;  /* sample_type_config of a pprof */
    size_t n_cells;
    int64_t from_ns, until_ns; /* for a profile without a time or duration of its own */
};

/* What became of one profile, for who wants to know. */
struct hearth_push_receipt {
    enum hearth_status status;
    bool is_repeated;                 /* it was there: profile is {0, 0} */
    struct hearth_profile_id profile; /* as it is stored; {0, 0}: no sample was left */
};

struct hearth_push_sample {
    struct hearth_str profile; /* gzip, zstd or plain; pprof, unless hints say something else */
    struct hearth_str id;      /* idempotency key; may be empty; not looked at with hints */
    const struct hearth_push_hints
        *hints; /* NULL: none; all samples of a series have them, or none */
    /*
     * Instead of bytes: a profile within the limits (its maker counts what it cut), with n_bytes as it was sent. No
     * hints then. NULL: none.
     */
    const struct hearth_profile *decoded;
    size_t n_bytes;
    struct hearth_push_receipt *receipt; /* filled before `done`; NULL: not wanted */
};

struct hearth_push_series {
    struct hearth_label *labels; /* as sent: any order */
    size_t n_labels;
    struct hearth_push_sample *samples;
    size_t n_samples;
};

struct hearth_push_request {
    struct hearth_str tenant;
    struct hearth_push_series *series;
    size_t n_series;
    const char *client; /* static: the client of hearth_rejected_profiles_total; NULL: a task */
    size_t held_bytes;  /* of the budget, by the request itself: told apart from what others hold */
    struct hearth_str app_name; /* application name where the protocol has one; may be empty */
    void (*done)(struct hearth_push_request *request);
    /* Filled when done. */
    enum hearth_status status;
    struct hearth_err err;
    bool is_unreadable; /* with hints: what failed first is that the bytes are no such profile */
    uint64_t discards[HEARTH_N_DISCARDS];
    uint32_t n_profiles, n_failed, n_repeated;
    /* The engine's own; zero before the push. */
    struct hearth_push_state *state;
    _Atomic uint32_t n_pending;
    _Atomic bool is_given_up;
};

void hearth_ingest_push(struct hearth_ingest *ingest, struct hearth_push_request *request);

/*
 * Nobody waits for the push any more. why: DEADLINE_EXCEEDED, CANCELLED (its client has left), or UNAVAILABLE (the
 * server is stopping). Profiles that are in no transaction yet are not stored: those that wait for their commit end at
 * once, so that `done` may be called during this call. Returns what to answer if it was not: UNAVAILABLE, or CANCELLED;
 * err says whether the push may still be stored. The caller keeps the request alive during the call, also after its
 * `done`. Any thread, once, also while hearth_ingest_push runs.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_ingest_give_up(struct hearth_ingest *ingest,
                                         struct hearth_push_request *request,
                                         enum hearth_status why, struct hearth_err *err);
/* "the client left": the beginning of a sentence about that. */
const char *hearth_give_up_cause(enum hearth_status why);

#endif
