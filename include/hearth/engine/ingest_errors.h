/*
 * ingest_errors.h -- remembers refused uploads for people, because many clients never report them.
 *
 * Errors are noted in memory and written to the database by a thread, once a second, so an upload
 * never waits for it. Errors of a tenant that differ only in numbers, or in the upload that their
 * message names first, share a row. While 256 kinds of errors wait, further kinds are counted in
 * hearth_ingest_errors_unrecorded_total. A killed server loses the errors that wait.
 *
 * Threads: note and list are safe; start and stop from one thread.
 */
#ifndef HEARTH_ENGINE_INGEST_ERRORS_H
#define HEARTH_ENGINE_INGEST_ERRORS_H

#include "hearth/engine/call.h"
#include "hearth/model/ingest_error.h"

struct hearth_store;
struct hearth_ingest_errors;

#define HEARTH_INGEST_ERROR_BODY_BYTES 4096 /* of a body that its hash covers */
#define HEARTH_INGEST_ERRORS_MAX       1000 /* rows of an answer */

/* Start the thread. The database need not be reachable yet. */
HEARTH_MUST_CHECK
enum hearth_status hearth_ingest_errors_start(struct hearth_store *store, /* kept */
                                              struct hearth_ingest_errors **ret,
                                              struct hearth_err *err);
/* Write the errors that wait, if the database answers within a second; stop the thread. The store
 * must still be open. NULL-safe. */
void hearth_ingest_errors_stop(struct hearth_ingest_errors *errors);

/*
 * Note a refused upload. error->key, n and times are set here; client, route and code must be
 * static; tenant and message are copied, the message up to 511 bytes.
 */
void hearth_ingest_errors_note(struct hearth_ingest_errors *errors,
                               const struct hearth_ingest_error *error);

/* Which errors to list; texts may be empty: all. */
struct hearth_ingest_errors_query {
    int64_t from_ms; /* of the latest upload */
    struct hearth_str client, route;
    int64_t limit; /* 0: 100; at most HEARTH_INGEST_ERRORS_MAX */
};

/* The tenant's errors, the latest first. INVALID_ARGUMENT: limit. */
HEARTH_MUST_CHECK
enum hearth_status hearth_ingest_errors_list(const struct hearth_call *call,
                                             const struct hearth_ingest_errors_query *query,
                                             struct hearth_ingest_error **ret, size_t *ret_n,
                                             struct hearth_err *err);

#endif
