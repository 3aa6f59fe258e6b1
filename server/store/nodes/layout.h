/*
 * layout.h -- where the data tables lie: in this PostgreSQL, or distributed over nodes by Citus
 * (private to the store).
 *
 * Citus' own catalogues are the record. Data tables (sql/placement.def) are distributed all or
 * none, by service_id, in one group of shards; catalogue tables never are. Statements over data are
 * the same in both layouts, but for a few, which ask hearth_layout_is_distributed:
 * docs/decisions/0043-distributed-tables.md, 0045-operating-distributed-tables.md.
 *
 * Threads: _read belongs to the boot thread; _is_distributed is safe.
 */
#ifndef HEARTH_STORE_LAYOUT_H
#define HEARTH_STORE_LAYOUT_H

#include "pg/pg.h"
#include "pg/store_state.h"

/*
 * Read the layout of a migrated database. FAILED_PRECONDITION: it is one in which statements would
 * fail, such as a distribution that was interrupted; the message names a table.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_layout_read(struct hearth_pg *pg, bool *ret_distributed,
                                                        struct hearth_err *err);

/* Return whether the data tables are distributed. Valid once the store is ready. */
static inline bool hearth_layout_is_distributed(const struct hearth_store *store)
{
    return atomic_load_explicit(&store->is_distributed, memory_order_relaxed);
}

#endif
