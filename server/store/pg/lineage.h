/*
 * lineage.h -- whether the database still has all commits that this process relies on (private to
 * the store).
 *
 * Memory holds series ids, dictionaries, label indexes and sums of the database. They are wrong
 * after a restore to an earlier state, or after the promotion of a standby that lacked commits: the
 * database may give the same ids to other things. So each new connection is checked before its
 * first statement, and one connection each second (as a whole when its backend or the tables have
 * changed, and each ten seconds; else only the end of the WAL, which costs half as much):
 *
 *   cluster and database    system_identifier and oid; the oid of hearth_data.writer, which is
 *                           another one after pg_restore; on a node of distributed tables, which
 *                           has no such table, that of hearth_data.roll_state
 *   timeline                PostgreSQL begins a new one at a promotion, and at the end of a restore
 *                           from an archive
 *   end of the WAL on disk  never smaller than before; it is after a copy of the files was put back
 *
 * A promotion counts as a loss even if the standby had everything, because no view of PostgreSQL
 * says where its timeline begins. A lineage that is lost stays lost: no connection is usable any
 * more, and the store has to be closed.
 *
 * Threads: safe.
 */
#ifndef HEARTH_STORE_LINEAGE_H
#define HEARTH_STORE_LINEAGE_H

#include "hearth/base/sync.h"

#include "pg/pg.h"

#define HEARTH_LINEAGE_IDENTITY_BYTES 64

/* SQL: the last column of a SELECT without FROM, a text that names the cluster and the database. */
#define HEARTH_LINEAGE_IDENTITY                                               \
    "(SELECT system_identifier FROM pg_control_system())::text || '/' || oid" \
    " FROM pg_database WHERE datname = current_database()"

/* What the database says about itself. */
struct hearth_lineage_mark {
    char identity[HEARTH_LINEAGE_IDENTITY_BYTES]; /* empty: nothing is known yet */
    char timeline[16];                            /* hexadecimal */
    int64_t tables_oid;                           /* of the table; 0: no such table */
    int64_t lsn;                                  /* end of the WAL on disk, in bytes */
    int64_t backend;                              /* process id */
};

struct hearth_lineage {
    _Atomic bool is_lost;
    const char *table;        /* another one after a restore of a dump */
    struct hearth_mutex lock; /* guards the rest */
    struct hearth_lineage_mark known;
    char reason[256]; /* why it is lost; not changed afterwards */
};

/* What the last whole check of a connection found. Zeroed: none was made. */
struct hearth_lineage_seen {
    int64_t backend;    /* its process id; behind a pooler another one may answer next */
    int64_t tables_oid; /* 0: no whole check yet */
    int64_t mono_ns;
};

/* table: with its schema, a constant. */
void hearth_lineage_init(struct hearth_lineage *lineage, const char *table);
void hearth_lineage_release(struct hearth_lineage *lineage);

/*
 * Compare the database behind an open connection, outside a transaction, with the known one. The
 * first database that has tables becomes the known one. UNAVAILABLE: the lineage is lost, the
 * tables are missing now, or the connection is broken.
 */
HEARTH_MUST_CHECK enum hearth_status
hearth_lineage_check(struct hearth_lineage *lineage, struct hearth_pg *pg, struct hearth_err *err);

/*
 * The same for a connection that is checked again and again: a backend that has been checked cannot
 * come to another cluster, database or timeline. *seen is kept between the calls.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_lineage_recheck(struct hearth_lineage *lineage,
                                                            struct hearth_pg *pg,
                                                            struct hearth_lineage_seen *seen,
                                                            struct hearth_err *err);

/* Whether a database with tables was seen. */
bool hearth_lineage_is_known(struct hearth_lineage *lineage);

/* It is lost for a reason of the caller: that of a node. */
void hearth_lineage_lose(struct hearth_lineage *lineage, const char *reason);

/* Return whether it is lost, and then write why. */
bool hearth_lineage_explain(struct hearth_lineage *lineage, char reason[256]);

#endif
