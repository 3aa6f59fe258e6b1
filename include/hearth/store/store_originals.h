/*
 * store_originals.h -- files as clients sent them, by the id of the upload that was made of them.
 * They are written with the profiles (struct hearth_push_original in store.h), or are files of
 * tasks (task_results.h).
 *
 * Ownership: results live in the arena of the scope.
 * Threads:   safe.
 * Errors:    UNAVAILABLE, DEADLINE_EXCEEDED, CANCELLED, NO_MEMORY.
 */
#ifndef HEARTH_STORE_ORIGINALS_H
#define HEARTH_STORE_ORIGINALS_H

#include "hearth/base/status.h"
#include "hearth/model/original.h"
#include "hearth/model/profile_id.h"
#include "hearth/store/scope.h"

/* Whether a file of n bytes fits into max-originals-bytes at all. */
bool hearth_store_original_fits(const struct hearth_store *store, size_t n_bytes);

/* The files of an upload of the tenant, in the order in which they were sent; there may be none. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_originals(const struct hearth_scope *scope,
                                          struct hearth_profile_id id, struct hearth_original **ret,
                                          size_t *ret_n, struct hearth_err *err);

/*
 * At most n bytes of a file, from the byte `offset` (0 or more) on; none beyond its end. NOT_FOUND:
 * it was deleted. The tenant of the scope is ignored: take original_no from hearth_store_originals.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_original_read(const struct hearth_scope *scope, int64_t original_no,
                                              int64_t offset, int32_t n, struct hearth_str *ret,
                                              struct hearth_err *err);

#endif
