/*
 * access_write.h -- what all writes of tokens, users, sessions and grants share: the lock of the
 * clock, the version, and texts that may be hostile (private to the store).
 *
 * Threads: safe, also between servers.
 */
#ifndef HEARTH_STORE_ACCESS_WRITE_H
#define HEARTH_STORE_ACCESS_WRITE_H

#include "session/statements.h"

/* struct hearth_token and struct hearth_user, as they are read and written. */
extern const struct hearth_row_type hearth_token_rows, hearth_user_rows;

/*
 * The statements of a write, while it holds the lock of the clock. May be called several times.
 * *ret_changed, false before the call: whether a row changed, so that the version must rise.
 */
typedef enum hearth_status hearth_access_write_fn(void *context,
                                                  struct hearth_transaction *transaction,
                                                  bool *ret_changed, struct hearth_err *err);

/*
 * Run `fn` in a transaction that first locks the row of access_clock. So writes run one at a time,
 * over all servers, and versions become visible in their order.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_access_write(const struct hearth_scope *scope, hearth_access_write_fn *fn,
                                       void *context, struct hearth_err *err);

/*
 * Return the text, or a copy in arena that PostgreSQL accepts: cut to max_bytes, with '?' for each
 * NUL and each byte that is not UTF-8. If memory is refused, the text is empty and the arena says
 * so.
 */
struct hearth_str hearth_access_mend(struct hearth_arena *arena, struct hearth_str text,
                                     size_t max_bytes);

#endif
