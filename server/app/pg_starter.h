/*
 * pg_starter.h -- the process that starts PostgreSQL for hearthd.
 *
 * It is forked before hearthd has threads, connections or a system-call filter, and executes two
 * commands that were fixed then: initdb and postgres. So hearthd itself need not be able to start
 * programs, and PostgreSQL does not inherit the filter. It reads requests of one byte from a
 * socket, and takes nothing else from hearthd.
 *
 * The kernel kills it when hearthd ends, even by kill -9; it sends SIGINT to PostgreSQL when the
 * starter ends, so that PostgreSQL shuts down.
 *
 * Threads:   all calls come from the thread that opened it, which lives as long as hearthd (the
 *            kernel watches the thread that forked).
 * Errors:    UNAVAILABLE if the starter has ended: hearthd must be started again.
 * Source:    prctl(2) PR_SET_PDEATHSIG; unix(7) SOCK_SEQPACKET.
 */
#ifndef HEARTH_APP_PG_STARTER_H
#define HEARTH_APP_PG_STARTER_H

#include "hearth/base/status.h"

#include <sys/types.h>

struct hearth_pg_starter;

struct hearth_pg_programs { /* kept by the starter's copy of the memory */
    const char *bin_dir, *pg_dir, *log_path;
    uid_t uid; /* of PostgreSQL, if this process is root; 0: this process's own */
    gid_t gid;
};

/* Forks. The process has no other threads yet. */
HEARTH_MUST_CHECK
enum hearth_status hearth_pg_starter_open(const struct hearth_pg_programs *programs,
                                          struct hearth_pg_starter **ret, struct hearth_err *err);
/* Ends the starter; PostgreSQL is not running. NULL-safe. */
void hearth_pg_starter_close(struct hearth_pg_starter *starter);

/* Run initdb to its end. */
HEARTH_MUST_CHECK
enum hearth_status hearth_pg_starter_initdb(struct hearth_pg_starter *starter,
                                            struct hearth_err *err);
/* Start PostgreSQL; it does not run. */
HEARTH_MUST_CHECK
enum hearth_status hearth_pg_starter_run(struct hearth_pg_starter *starter, pid_t *ret_pid,
                                         struct hearth_err *err);
/* True if PostgreSQL does not run, or nothing is known about it because the starter has ended. */
bool hearth_pg_starter_has_ended(struct hearth_pg_starter *starter);
/* Ask PostgreSQL to shut down: fast, or at once without a checkpoint. */
void hearth_pg_starter_stop(struct hearth_pg_starter *starter, bool at_once);

#endif
