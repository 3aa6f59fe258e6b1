/*
 * wall.h -- row-level security: transactions for a request see only rows of its tenants (private to
 * the store).
 *
 * The role OWNER_tenant, where OWNER owns the schema, may use the tables that have a policy
 * (sql/0021_row_level_security.sql). A transaction on a connection with a wall becomes this role
 * and names its tenants in the message of its first statement (pg.h); both end with the
 * transaction, so PgBouncer in transaction mode works. docs/decisions/0032-row-level-security.md
 * says which statements run so, and which as the owner.
 *
 * Threads: hearth_wall_raise and _explain belong to the boot thread and to any thread; a struct
 * hearth_wall to one thread.
 */
#ifndef HEARTH_STORE_WALL_H
#define HEARTH_STORE_WALL_H

#include "hearth/store/store.h"

#include "pg/pg.h"

/*
 * Prepare the role as store->options.row_level_security says: find or create it, and grant it what
 * it lacks. Does nothing after the first success. FAILED_PRECONDITION: it is required and cannot be
 * used; the message says what an administrator has to do.
 */
HEARTH_MUST_CHECK enum hearth_status
hearth_wall_raise(struct hearth_store *store, struct hearth_pg *pg, struct hearth_err *err);

/* Write why there is no wall although the options want one; an empty text otherwise. */
void hearth_wall_explain(struct hearth_store *store, char out[256]);

/* The tenants and services of a call, as parameters of hearth_data.enter_tenants. */
struct hearth_wall {
    struct hearth_arena arena;
    struct hearth_pg_params params;
    bool is_up; /* false: the call runs as the owner */
};

/*
 * Make the wall of a scope. services: the ones whose stored profiles are read; may be NULL. If
 * memory is refused, the first statement fails. The caller releases it.
 */
void hearth_wall_init(struct hearth_wall *wall, const struct hearth_scope *scope,
                      const int32_t *services, size_t n_services);
void hearth_wall_release(struct hearth_wall *wall);

/* Whether the statements of a scope see rows of its tenants only. */
bool hearth_wall_stands(const struct hearth_scope *scope);
/* The wall for a connection's member `wall`; NULL: the owner. */
const struct hearth_pg_params *hearth_wall_params(const struct hearth_wall *wall);

#endif
