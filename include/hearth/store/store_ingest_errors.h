/*
 * store_ingest_errors.h -- stores refused uploads (model/ingest_error.h).
 *
 * Rows vanish retain_ingest_errors_ns after their latest upload; of a tenant, the store keeps the
 * max_ingest_errors rows with the latest uploads.
 *
 * Threads: safe, also between servers.
 * Errors:  UNAVAILABLE, INTERNAL, NO_MEMORY.
 */
#ifndef HEARTH_STORE_STORE_INGEST_ERRORS_H
#define HEARTH_STORE_STORE_INGEST_ERRORS_H

#include "hearth/model/ingest_error.h"
#include "hearth/store/store.h"

/* Which rows to read. */
struct hearth_ingest_error_filter {
    int64_t from_ms;          /* of the latest upload */
    struct hearth_str client; /* empty: all, like the next one */
    struct hearth_str route;
    int64_t limit;
};

/*
 * Add errors of any tenants: a row with the same key gets the counts and the latest upload. After a
 * COMMIT without an answer, errors may be counted twice. The scope's tenant is ignored.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_ingest_errors_add(const struct hearth_scope *scope,
                                                  const struct hearth_ingest_error *errors,
                                                  size_t n, struct hearth_err *err);
/* The rows of the tenant, the latest upload first. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_ingest_errors(const struct hearth_scope *scope,
                                              const struct hearth_ingest_error_filter *filter,
                                              struct hearth_ingest_error **ret, size_t *ret_n,
                                              struct hearth_err *err);

#endif
