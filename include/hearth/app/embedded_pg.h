/*
 * embedded_pg.h -- a private PostgreSQL that hearthd keeps below its data directory.
 *
 * An ordinary cluster: DIR/postgres (data), DIR/run (unix socket, the only way in),
 * DIR/postgres.log. Made by initdb once; DIR/postgres/hearth.conf is rewritten at every start.
 * Superuser "hearth", database "postgres", trust on a socket in a directory that only its owner may
 * enter. When hearthd is root the cluster belongs to and runs as another user.
 *
 * The server process dies with hearthd (SIGINT by the kernel, even after kill -9) and is started
 * again when it dies alone. While another PostgreSQL runs on the cluster (that of a killed hearthd, until it
 * has ended), none is started.
 *
 * Threads:   all calls from one thread, which must live as long as the cluster (the kernel watches
 *            the thread that forked).
 * Source:    PostgreSQL 15 documentation, chapters 19.2-19.5; prctl(2) PR_SET_PDEATHSIG.
 */
#ifndef HEARTH_APP_EMBEDDED_PG_H
#define HEARTH_APP_EMBEDDED_PG_H

#include "hearth/base/arena.h"
#include "hearth/base/status.h"

struct hearth_embedded_pg;

/* Texts are kept; they must outlive it. bin_dir "" finds the newest installed. Locks the data directory until stop,
 * FAILED_PRECONDITION when another hearthd has it; creates directories, starts nothing. */
HEARTH_MUST_CHECK
enum hearth_status hearth_embedded_pg_new(const char *data_dir, const char *bin_dir,
                                          const char *user, struct hearth_embedded_pg **ret_pg,
                                          struct hearth_err *err);
/* libpq connection text of the cluster, before it runs. */
const char *hearth_embedded_pg_url(const struct hearth_embedded_pg *pg);
/* initdb when there is no cluster, then start. Returns before it accepts connections. */
HEARTH_MUST_CHECK
enum hearth_status hearth_embedded_pg_start(struct hearth_embedded_pg *pg, struct hearth_err *err);
/* Call about once a second: starts a dead server again (logged, with growing pauses). */
void hearth_embedded_pg_watch(struct hearth_embedded_pg *pg);
/* Fast shutdown; kills it at the deadline. Frees. NULL-safe. */
void hearth_embedded_pg_stop(struct hearth_embedded_pg *pg, int64_t deadline_mono_ns);

#endif
