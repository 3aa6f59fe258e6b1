/*
 * spool.h -- pushes on the disk while the database is away, and their way into it afterwards.
 *
 * One file, DIR/spool, of records (format/spool_record.h); a record is the part of a push that
 * could not be stored. DIR/key has the 32 random bytes that seal the headers of records; it is made
 * together with the file. A push is acknowledged as spooled when its record is on the disk; pushes
 * that arrive together share an fsync. While the database can be reached, threads push waiting
 * records as clients do, with ids, so that a record is stored once although hearthd was killed
 * before it was marked: ids are known for an hour after they were stored. When no record waits, the
 * file is emptied.
 *
 * Records whose checksum is wrong, and records that are refused for good, are marked, counted and
 * logged; the others go on. A torn record at the end was never acknowledged and is cut off.
 *
 * Limits:    max_bytes of the file, stored records included; HEARTH_SPOOL_MAX_BODY of a record.
 *            Memory: each of the few threads holds one record, charged to the budget of pushes.
 * Ownership: a spool outlives the ingest and the store that hearth_spool_start receives.
 * Threads:   open, start, stop and close from one thread; look and explain are safe.
 * Errors:    FAILED_PRECONDITION names the directory and what is wrong with it.
 */
#ifndef HEARTH_ENGINE_SPOOL_H
#define HEARTH_ENGINE_SPOOL_H

#include "hearth/base/status.h"

struct hearth_ingest;
struct hearth_ingest_error;
struct hearth_spool;
struct hearth_store;

/*
 * Make or open the spool in `dir`, which is made if it is missing, and lock it. The process's user
 * must own the directory, and no other user may write to it.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_spool_open(const char *dir, int64_t max_bytes, struct hearth_spool **ret,
                                     struct hearth_err *err);
/* Called for each push that is refused for good, by any thread; texts are borrowed. */
typedef void hearth_spool_refused_fn(void *context, const struct hearth_ingest_error *error);

/*
 * Start the threads, also after _stop. The database need not be reachable yet. `refused` may be
 * NULL.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_spool_start(struct hearth_spool *spool, struct hearth_ingest *ingest,
                                      struct hearth_store *store, hearth_spool_refused_fn *refused,
                                      void *refused_context, struct hearth_err *err);
/*
 * Write the records that wait for the disk, and stop the threads; the store is still open.
 * NULL-safe.
 */
void hearth_spool_stop(struct hearth_spool *spool);
void hearth_spool_close(struct hearth_spool *spool); /* NULL-safe */

/* What a spool holds at the moment. */
struct hearth_spool_look {
    int64_t n_waiting; /* records */
    int64_t n_bytes, max_bytes;
    int64_t oldest_ns; /* time of the first record that waits, since the Unix epoch; 0: unknown */
    bool is_broken;    /* an fsync failed: nothing is written any more */
};
void hearth_spool_look(struct hearth_spool *spool, struct hearth_spool_look *ret);

/* Writes one line about the waiting records; an empty text if no record waits. NULL-safe. */
void hearth_spool_explain(struct hearth_spool *spool, char text[128]);

#endif
