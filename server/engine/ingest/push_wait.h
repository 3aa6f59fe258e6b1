/*
 * push_wait.h -- push profiles and wait until each of them ended (private to the engine).
 *
 * Threads: safe; the caller waits for committers.
 */
#ifndef HEARTH_ENGINE_PUSH_WAIT_H
#define HEARTH_ENGINE_PUSH_WAIT_H

#include "hearth/base/cancel.h"
#include "hearth/engine/ingest.h"

/*
 * Pushes the samples of the series in their order; ret_receipts[i] becomes the receipt of the i-th
 * sample (ret_receipts may be NULL). Of `what`, tenant, view, series and is_one_upload are used.
 * This call sets the receipts of the samples. Returns the status of the first failure; CANCELLED or
 * UNAVAILABLE if `cancel` ended the wait: err says whether some profiles may be stored.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_push_wait(struct hearth_ingest *ingest,
                                    const struct hearth_push_request *what,
                                    struct hearth_cancel *cancel,
                                    struct hearth_push_receipt *ret_receipts,
                                    struct hearth_err *err);

/* How a push ended. */
struct hearth_push_outcome {
    struct hearth_push_receipt *receipts; /* in: room for one per sample, or NULL; then filled */
    bool has_ended; /* false: `cancel` ended the wait, and profiles may be stored */
    /* As in struct hearth_push_request; n_profiles is 0 if the request was refused as a whole. */
    uint64_t discards[HEARTH_N_DISCARDS];
    uint32_t n_profiles, n_failed, n_repeated;
};

/*
 * The same; of `what`, client, app_name and replay are used, too. The other members of *ret are
 * set.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_push_wait_outcome(struct hearth_ingest *ingest,
                                            const struct hearth_push_request *what,
                                            struct hearth_cancel *cancel,
                                            struct hearth_push_outcome *ret,
                                            struct hearth_err *err);

#endif
