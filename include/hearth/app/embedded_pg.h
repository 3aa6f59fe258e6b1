/*
 * embedded_pg.h -- a private PostgreSQL that hearthd runs in its data directory.
 *
 * An ordinary cluster: DIR/postgres (data), DIR/run (unix socket, the only way to connect),
 * DIR/postgres.log. It is created once by initdb; DIR/postgres/hearth.conf is rewritten at every
 * start. Superuser "hearth", database "postgres"; connections are trusted, because only the owner
 * can enter the directory of the socket. If hearthd is started as root, the cluster belongs to and
 * runs as another user, which hearthd becomes (run_user.h).
 *
 * The server process ends with hearthd (the kernel sends it SIGINT, even after kill -9) and is
 * restarted if it ends by itself. It is not started while another PostgreSQL runs on the cluster,
 * such as that of a killed hearthd which is still shutting down.
 *
 * The programs are run by a small process that is forked before hearthd has threads.
 *
 * Threads:   all calls come from one thread, which must live as long as the cluster (the kernel
 *            watches the thread that forked).
 * Source:    PostgreSQL 15 documentation, chapters 19.2-19.5; prctl(2) PR_SET_PDEATHSIG.
 */
#ifndef HEARTH_APP_EMBEDDED_PG_H
#define HEARTH_APP_EMBEDDED_PG_H

#include "hearth/app/run_user.h"
#include "hearth/base/arena.h"
#include "hearth/base/status.h"

struct hearth_embedded_pg;

/*
 * Create the directories and lock the data directory until stop; starts nothing. Keeps the texts.
 * An empty bin_dir means the newest installed version. FAILED_PRECONDITION if another hearthd has
 * locked the data directory.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_embedded_pg_new(const char *data_dir, const char *bin_dir,
                                          const struct hearth_identity *owner,
                                          struct hearth_embedded_pg **ret_pg,
                                          struct hearth_err *err);
/* Fork the process that runs PostgreSQL's programs. The calling process has no other threads. */
HEARTH_MUST_CHECK
enum hearth_status hearth_embedded_pg_prepare(struct hearth_embedded_pg *pg,
                                              struct hearth_err *err);
/* libpq connection string of the cluster; valid before it runs. */
const char *hearth_embedded_pg_url(const struct hearth_embedded_pg *pg);
/* Run initdb if there is no cluster, then start it. Returns before it accepts connections. */
HEARTH_MUST_CHECK
enum hearth_status hearth_embedded_pg_start(struct hearth_embedded_pg *pg, struct hearth_err *err);
/*
 * Call about once a second: restarts a server process that has ended, with growing pauses, and logs
 * it.
 */
void hearth_embedded_pg_watch(struct hearth_embedded_pg *pg);
/* Fast shutdown, by SIGKILL after the deadline; frees pg. NULL-safe. */
void hearth_embedded_pg_stop(struct hearth_embedded_pg *pg, int64_t deadline_mono_ns);

#endif
