/*
 * ingest.h -- from pushed bytes to committed rows.
 *
 * Each profile of a request is inflated, decoded, validated, normalised, split by sample labels;
 * its stacks are resolved; its rows are encoded and submitted to the store. Profiles are
 * independent: a failure of one does not stop the others. The request's status is that of the first
 * failure, and its message names the profile. The request is done when every profile is committed
 * or has failed.
 *
 * Normalisation:
 *   - negative samples, samples whose values are all 0, and samples with a dangling location are
 *     dropped;
 *   - a series lacks the types that are 0 in all of its samples;
 *   - samples with equal stacks and equal labels are merged;
 *   - numeric sample labels are dropped; string sample labels split series, but if a label of the
 *     series has the same name, it wins;
 *   - span, trace, thread, endpoint and time labels are stored as attributes of the sample
 *     (model/sample_attrs.h).
 * Everything that is dropped, cut or merged is counted by reason, in the request's discards and in
 * hearth_discarded_total.
 *
 * Ownership: the caller keeps a request and its receipts alive until its `done` has run. The inputs
 *            (view, series, texts, profiles) are borrowed until hearth_ingest_push returns.
 * Threads:   hearth_ingest_push does the CPU work on the calling thread; `done` is called from
 *            within this call or by a committer.
 * Source:    push.v1 semantics as in docs/reference/api-push.md, "Push" and "Ingest".
 */
#ifndef HEARTH_ENGINE_INGEST_H
#define HEARTH_ENGINE_INGEST_H

#include "hearth/engine/limits.h"
#include "hearth/format/ingest_types.h"
#include "hearth/model/access.h"
#include "hearth/model/labels.h"
#include "hearth/model/profile_id.h"

#include <stdatomic.h>

/* Reasons for a loss or change that does not refuse the profile; the name contains the unit. */
enum hearth_discard {
#define X(id, name, meaning) HEARTH_DISCARD_##id,
#include "hearth/engine/discards.def"
#undef X
    HEARTH_N_DISCARDS
};

/* The name in metrics and in the hearth-dropped header. */
const char *hearth_discard_name(enum hearth_discard discard);
/* Makes every reason appear in hearth_discarded_total, with 0, from the start. */
void hearth_discards_declare(void);
/* Adds to hearth_discarded_total. Pushes count their own discards. */
void hearth_discards_count(const uint64_t discards[HEARTH_N_DISCARDS]);

struct hearth_spool;
struct hearth_tenant_uses;

struct hearth_ingest_options {
    struct hearth_limits limits;
    /*
     * Labels that name the service, NULL-terminated; the first one that a series has wins.
     * service_name precedes them all, unless it is in the list.
     */
    const char *const *service_labels;
    struct hearth_budget *budget;    /* memory of decoding; kept; NULL: no limit */
    struct hearth_tenant_uses *uses; /* counts what tenants push; kept; may be NULL */
    struct hearth_spool *spool;      /* for pushes while the database is away; kept; NULL: none */
};

struct hearth_ingest;

HEARTH_MUST_CHECK
enum hearth_status hearth_ingest_new(const struct hearth_ingest_options *options,
                                     struct hearth_store *store, /* kept */
                                     struct hearth_ingest **ret_ingest, struct hearth_err *err);
void hearth_ingest_free(struct hearth_ingest *ingest);
/* Replaces the limits for pushes that begin from now on; keeps them until _free. */
void hearth_ingest_set_limits(struct hearth_ingest *ingest, const struct hearth_limits *limits);
/*
 * Releases memory that is kept for later pushes. Called when the budget has refused a request, and
 * while the server is idle.
 */
void hearth_ingest_drop_idle(struct hearth_ingest *ingest);

/*
 * Parameters of an upload to /ingest that describe its profile. The series has no __name__: it is
 * taken from the type, or from the sample types of a pprof.
 */
struct hearth_push_hints {
    enum hearth_ingest_format format;      /* PPROF, COLLAPSED, LINES, TRIE or TREE */
    const struct hearth_ingest_type *type; /* text formats only */
    int64_t sample_rate;                   /* Hz; text formats only */
    struct hearth_str spy;                 /* the parameter spyName */
    const struct hearth_json_cell *cells;  /* pprof only: its sample_type_config */
    size_t n_cells;
    int64_t from_ns, until_ns; /* used if the profile has no time or no duration */
};

/* The outcome of one profile. */
struct hearth_push_receipt {
    enum hearth_status status;
    bool is_repeated;                 /* an earlier push had the same id: profile is {0, 0} */
    struct hearth_profile_id profile; /* its stored id; {0, 0} if no sample was left */
};

/*
 * Makes profile i of a source in the arena when its turn comes, and counts what it cuts. The
 * profile is within the limits. Errors: INVALID_ARGUMENT, NO_MEMORY.
 */
typedef enum hearth_status hearth_push_read_fn(const void *source, size_t i,
                                               struct hearth_arena *arena,
                                               struct hearth_profile *ret, uint64_t *discards,
                                               struct hearth_err *err);

/*
 * A file to keep next to the profiles that were made of it. Its samples share one, and the first of
 * them that has something to store takes it along.
 */
struct hearth_push_file {
    struct hearth_str name;        /* valid UTF-8 without NUL; as the client said */
    struct hearth_str bytes;       /* as sent */
    int32_t part;                  /* number of the file in the upload, from 0 */
    struct hearth_str client_tags; /* as hearth_original.client_tags; valid UTF-8 without NUL */
    bool is_taken;                 /* in and out: false at first */
};

struct hearth_push_sample {
    struct hearth_str profile; /* gzip, zstd or plain; pprof unless hints name a format */
    struct hearth_str id;      /* idempotency key; may be empty; ignored if there are hints */
    /* NULL: not an upload to /ingest. Either all samples of a series have hints, or none has. */
    const struct hearth_push_hints *hints;
    /*
     * A decoded profile instead of bytes, with n_bytes as its size when it was sent; hints must be
     * NULL then. It is within the limits, and its maker has counted what it cut. NULL: use
     * `profile`.
     */
    const struct hearth_profile *decoded;
    size_t n_bytes;
    /*
     * A function that makes the profile instead of bytes, in the order of the samples; n_bytes
     * counts, and hints must be NULL. For sources whose profiles together need much more memory
     * than one. NULL: use `decoded` or `profile`.
     */
    hearth_push_read_fn *read;
    const void *source;
    size_t source_idx;
    struct hearth_push_file *file;       /* to keep; NULL: no file is kept */
    struct hearth_push_receipt *receipt; /* out: filled before `done`; may be NULL */
};

struct hearth_push_series {
    struct hearth_label *labels; /* as sent, in any order */
    size_t n_labels;
    struct hearth_push_sample *samples;
    size_t n_samples;
};

/* A push that is read back from the spool. Its series have no hints. */
struct hearth_push_replay {
    int64_t received_ns; /* when it was received; its times are judged as of then */
    /* With the number of the profile, the id of each that has none of its own. */
    struct hearth_hash128 key;
};

struct hearth_push_request {
    struct hearth_str tenant;
    /*
     * The part of the tenant that the sender may push to; NULL: all of it. A profile with a series
     * that the view does not match is refused with PERMISSION_DENIED; others are not affected.
     */
    const struct hearth_view *view;
    struct hearth_push_series *series;
    size_t n_series;
    const char *client; /* label of hearth_rejected_profiles_total, static; NULL: a task */
    size_t held_bytes;  /* bytes of the budget that the request itself holds, such as its body */
    /*
     * The profiles are parts of one upload, such as a recording: those of one service and minute
     * share an id. Otherwise each profile is an upload of its own.
     */
    bool is_one_upload;
    struct hearth_str app_name; /* application name of the protocol, if it has one; may be empty */
    bool may_spool; /* the answer can say that profiles are on the disk only (engine/spool.h) */
    /*
     * NULL: an ordinary push. Otherwise it was checked, charged and counted before, so rates, sizes
     * and discards do not count.
     */
    const struct hearth_push_replay *replay;
    void (*done)(struct hearth_push_request *request); /* called once */

    /* Filled before `done`. */
    enum hearth_status status;
    struct hearth_err err;
    bool is_unreadable; /* with hints: the first failure was that the bytes cannot be decoded */
    uint64_t discards[HEARTH_N_DISCARDS];
    uint32_t n_profiles, n_failed, n_repeated;
    uint32_t n_refused; /* of n_failed: those whose repetition would fail again */
    uint32_t n_spooled; /* neither stored nor failed: on the disk until the database is back */

    /*
     * Filled before hearth_ingest_push returns: profiles may have to be read again, to be spooled.
     * False unless may_spool, without a spool, and while half of the budget is in use.
     */
    bool needs_input;

    /* Private to the engine; zero before the push. */
    struct hearth_push_state *state;
    _Atomic uint32_t n_pending;
    _Atomic bool is_given_up;
};

/*
 * Pushes all profiles of the request; `done` may run during this call. When the call returns, the
 * caller may free what the request refers to, such as its tenant, labels and profiles, but only
 * after `done` if request->needs_input. The request itself and its receipts live until `done`.
 */
void hearth_ingest_push(struct hearth_ingest *ingest, struct hearth_push_request *request);

/*
 * Withdraws a push that no client waits for any more. why: DEADLINE_EXCEEDED, CANCELLED (the client
 * has left) or UNAVAILABLE (the server is stopping). Profiles that are in no transaction yet are
 * not stored: profiles in the commit queue end at once, so `done` may run during this call.
 *
 * Returns the status to answer if `done` has not run: UNAVAILABLE or CANCELLED; err says whether
 * the push may still be stored. The caller keeps the request alive during the call, even after
 * `done`. Call it at most once, from any thread; hearth_ingest_push may be running.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_ingest_give_up(struct hearth_ingest *ingest,
                                         struct hearth_push_request *request,
                                         enum hearth_status why, struct hearth_err *err);
/* Why a push was given up, as the beginning of a sentence: "the client left". */
const char *hearth_give_up_cause(enum hearth_status why);

#endif
