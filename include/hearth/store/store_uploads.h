/*
 * store_uploads.h -- files that people upload: their parts, and the queue of parsers
 * (sql/0015_uploads.sql; model/profile_upload.h).
 *
 * Ownership: inputs are borrowed, answers live in scope->arena.
 * Threads:   safe, also between servers.
 * Errors:    UNAVAILABLE, INTERNAL, NO_MEMORY, and the errors named at each function.
 */
#ifndef HEARTH_STORE_STORE_UPLOADS_H
#define HEARTH_STORE_STORE_UPLOADS_H

#include "hearth/model/profile_upload.h"
#include "hearth/store/store.h"

/* ---- receiving ---- */

/* What a tenant may have; 0: no limit. */
struct hearth_upload_quota {
    int64_t max_uploads;
    int64_t max_bytes; /* of all files */
};

/*
 * Create an upload in the state RECEIVING, with the members up to sha256 and created_ms. A second
 * call with the same id changes nothing. RESOURCE_EXHAUSTED: the quota (the message names its
 * option), or the disk is too full.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_upload_create(const struct hearth_scope *scope,
                                              const struct hearth_profile_upload *upload,
                                              const struct hearth_upload_quota *quota,
                                              struct hearth_err *err);

/*
 * Store a part, or replace it. The caller has checked its number and size. FAILED_PRECONDITION: the
 * upload receives no more parts, or was deleted. RESOURCE_EXHAUSTED: the disk is too full.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_upload_part(const struct hearth_scope *scope,
                                            const struct hearth_profile_upload *upload,
                                            int32_t part, struct hearth_str bytes,
                                            struct hearth_err *err);

/* The numbers of the first `limit` parts that have not been received. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_upload_missing(const struct hearth_scope *scope,
                                               const struct hearth_profile_upload *upload,
                                               int32_t limit, int32_t **ret, size_t *ret_n,
                                               struct hearth_err *err);

/*
 * Move an upload from RECEIVING to QUEUED, with its checksum; any other state stays. NOT_FOUND.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_upload_queue(const struct hearth_scope *scope,
                                             struct hearth_str upload_id, struct hearth_str sha256,
                                             struct hearth_err *err);

/*
 * Wait until the synchronous standbys, if there are any, have the state that an earlier call gave
 * to an upload: the wait of that call may have been cancelled.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_upload_settle(const struct hearth_scope *scope,
                                              struct hearth_err *err);

/* Delete an upload with its parts and results; stored profiles stay. NOT_FOUND. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_upload_delete(const struct hearth_scope *scope,
                                              struct hearth_str upload_id, struct hearth_err *err);

/* ---- reading ---- */

/* An upload of the tenant. NOT_FOUND. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_upload_get(const struct hearth_scope *scope,
                                           struct hearth_str upload_id,
                                           struct hearth_profile_upload *ret,
                                           struct hearth_err *err);
/* The latest `limit` uploads of the tenant, newest first. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_uploads(const struct hearth_scope *scope, int32_t limit,
                                        struct hearth_profile_upload **ret, size_t *ret_n,
                                        struct hearth_err *err);
/* What was stored of an upload, by profile and type. The tenant of the scope is ignored. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_upload_results(const struct hearth_scope *scope, int64_t upload_no,
                                               struct hearth_profile_upload_result **ret,
                                               size_t *ret_n, struct hearth_err *err);

/* Callbacks. `begin` is called first, and again if the read restarts: discard earlier parts. */
struct hearth_upload_reader {
    void *context;
    enum hearth_status (*begin)(void *context, struct hearth_err *err);
    enum hearth_status (*part)(void *context, struct hearth_str bytes, /* valid during the call */
                               struct hearth_err *err);
};

/*
 * Visit the stored parts with the numbers from `first` to first + n - 1, in order. The tenant of
 * the scope is ignored.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_upload_read(const struct hearth_scope *scope, int64_t upload_no,
                                            int32_t first, int32_t n,
                                            const struct hearth_upload_reader *reader,
                                            struct hearth_err *err);

/* ---- the queue ---- */

/*
 * Claim the upload that has waited longest: one that is QUEUED, or PARSING with an expired lease.
 * It becomes PARSING, leased for lease_ms. The tenant of the scope is ignored.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_upload_claim(const struct hearth_scope *scope, int64_t lease_ms,
                                             struct hearth_profile_upload *ret, bool *ret_found,
                                             struct hearth_err *err);

/*
 * The functions below act on upload->upload_no while upload->claim is its latest claim. ABORTED:
 * the claim is lost, because the upload was deleted or another server has claimed it.
 */

HEARTH_MUST_CHECK
enum hearth_status hearth_store_upload_extend(const struct hearth_scope *scope,
                                              const struct hearth_profile_upload *upload,
                                              int64_t lease_ms, struct hearth_err *err);
/*
 * Write storing_ms, the numbers of profiles and samples, `dropped`, and add results; rows of
 * results that exist stay.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_upload_progress(const struct hearth_scope *scope,
                                                const struct hearth_profile_upload *upload,
                                                const struct hearth_profile_upload_result *results,
                                                size_t n_results, struct hearth_err *err);
/* Back to QUEUED, not to be claimed for delay_ms, with upload->reason. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_upload_again(const struct hearth_scope *scope,
                                             const struct hearth_profile_upload *upload,
                                             int64_t delay_ms, struct hearth_err *err);
/* To upload->state, DONE or FAILED, with upload->reason and ended_ms. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_upload_end(const struct hearth_scope *scope,
                                           const struct hearth_profile_upload *upload,
                                           struct hearth_err *err);

#endif
