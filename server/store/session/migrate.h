/*
 * migrate.h -- brings the schema up to date (private to the store).
 *
 * Threads: safe, also between servers: an advisory lock admits one of them at a time.
 */
#ifndef HEARTH_STORE_MIGRATE_H
#define HEARTH_STORE_MIGRATE_H

#include "pg/pg.h"

/* `name` is a file such as "0001_init.sql". */
typedef void hearth_migration_fn(void *arg, const char *name);

/*
 * Create schema hearth_data and apply the missing files of hearth_embedded_migrations, each in a
 * transaction under an advisory lock; the history records each with its checksum. `applied`, which
 * may be NULL, is called after each. `pg` must not be in a transaction. A file that does not get
 * the lock of a table within half a second is rolled back and tried again, for about a minute.
 * FAILED_PRECONDITION: the database has a newer or an altered history (the message names the file).
 * UNAVAILABLE: no connection, or a lock that others hold all the time.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_migrate(struct hearth_pg *pg,
                                                    hearth_migration_fn *applied, void *arg,
                                                    struct hearth_err *err);

/*
 * Finds the newest migration that this hearthd does not know, because a newer hearthd applied it.
 * The name is empty if this hearthd knows all migrations, or the database has no history. Changes
 * nothing.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_migrate_find_newer(struct hearth_pg *pg, char name[128],
                                                               struct hearth_err *err);

/* Calls `missing` for each file that hearth_migrate would apply, and changes nothing. The same
 * errors. */
HEARTH_MUST_CHECK enum hearth_status hearth_migrate_plan(struct hearth_pg *pg,
                                                         hearth_migration_fn *missing, void *arg,
                                                         struct hearth_err *err);

#endif
