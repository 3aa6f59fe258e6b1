/*
 * batch_prepared.h -- small batches by prepared statements (private to the store).
 *
 * Parsing and planning the script of a batch, and beginning its COPY, cost PostgreSQL more than a
 * few rows do. So a batch of few rows is sent as one pipeline of prepared statements, which is one
 * transaction and one round trip:
 *
 *   INSERT ingest_batch (the ingest lock, shared); SELECT watermarks; [INSERT push_id;]
 *   [INSERT dict_chunk leaf;]...  INSERT profile leaf; ...
 *
 * What a script would find out between two statements makes the pipeline fail instead: a late
 * profile and a push id that is known divide by zero. Then nothing is stored, the batch is sent as
 * a script, and so are the next ones.
 *
 * Only on a direct connection to one PostgreSQL: a pooler may run each transaction in another
 * session. On a node of distributed tables, most of a small commit is its INSERT through Citus,
 * which is planned each time (docs/decisions/0044-connections-to-nodes.md).
 *
 * Threads: confined to the committer.
 */
#ifndef HEARTH_STORE_BATCH_PREPARED_H
#define HEARTH_STORE_BATCH_PREPARED_H

#include "commit/batch.h"
#include "commit/commit_statements.h"

/* Whether the batch can be sent in this way on this connection. */
bool hearth_batch_is_small(const struct hearth_batch *batch, const struct hearth_pg *pg);

/*
 * Attempt once. *ret_refused: PostgreSQL refused it, so nothing is stored, and the script has to be
 * sent. Otherwise as hearth_batch_send.
 */
HEARTH_MUST_CHECK enum hearth_status
hearth_batch_send_small(struct hearth_batch *batch, struct hearth_pg *pg, bool *ret_refused,
                        enum hearth_pg_fault *ret_fault, struct hearth_err *err);

#endif
