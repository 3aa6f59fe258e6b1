/*
 * migrate.h -- bringing the schema up to date (private to the store).
 *
 * Threads: safe, also between servers: an advisory lock lets one of them work.
 */
#ifndef HEARTH_STORE_MIGRATE_H
#define HEARTH_STORE_MIGRATE_H

#include "pg/pg.h"

/*
 * Create schema hearth_data and apply what is missing of hearth_embedded_migrations, under an
 * advisory lock, each in a transaction, with its checksum. FAILED_PRECONDITION: the database has a
 * newer or an altered history (the message names the file).
 */
HEARTH_MUST_CHECK enum hearth_status hearth_migrate(struct hearth_pg *pg, struct hearth_err *err);

#endif
