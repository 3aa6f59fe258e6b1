/*
 * pg_cluster.h -- a PostgreSQL of one's own for a test program: initdb in a new directory, unix
 * socket only, gone at the end.
 *
 * It lies in HEARTH_TEST_ROOT and is a copy of that run's template (initdb.sh), both by ./dev test;
 * else, and whenever fsync matters, in /tmp, made by the installed initdb.
 *
 * It runs as `postgres` when the test is root (PostgreSQL refuses root) and dies with the test
 * process. Each test takes a fresh database from it. Everything that fails here ends the program:
 * nothing can be tested without.
 *
 * Threads: start and stop from one; queries from any (each has its own connection).
 */
#ifndef HEARTH_TESTS_PG_CLUSTER_H
#define HEARTH_TESTS_PG_CLUSTER_H

#include "hearth/base/compiler.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <grp.h>
#include <poll.h>
#include <postgresql/libpq-fe.h>
#include <pthread.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct pg_cluster {
    char bin[256], dir[128];
    pid_t pid; /* of the postmaster; 0: not running */
    uid_t uid;
    gid_t gid;
    bool fsync;
    int n_databases;
};

HEARTH_NORETURN static inline void pg_cluster_die(const char *what)
{
    (void)fprintf(stderr, "pg_cluster: %s: %s\n", what, strerror(errno));
    abort();
}

/* That of the test run, or the newest installed version. */
static inline void pg_cluster_find_bin(struct pg_cluster *cluster, const char *root)
{
    if (root != NULL) {
        (void)snprintf(cluster->bin, sizeof cluster->bin, "%s/bin", root);
        return;
    }
    glob_t found;
    if (glob("/usr/lib/postgresql/*/bin/postgres", 0, NULL, &found) != 0 || found.gl_pathc == 0) {
        pg_cluster_die("no /usr/lib/postgresql/*/bin/postgres");
    }
    (void)snprintf(cluster->bin, sizeof cluster->bin, "%s", found.gl_pathv[found.gl_pathc - 1]);
    cluster->bin[strlen(cluster->bin) - strlen("/postgres")] = '\0';
    globfree(&found);
}

/* Run a program of PostgreSQL as its user, output to DIR/log. */
static inline pid_t pg_cluster_spawn(struct pg_cluster *cluster, char *argv[])
{
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid != 0) {
        return pid;
    }
    char path[512];
    (void)snprintf(path, sizeof path, "%s/log", cluster->dir);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0666);
    if (fd < 0 || dup2(fd, 1) < 0 || dup2(fd, 2) < 0 || chdir(cluster->dir) != 0) {
        _exit(126);
    }
    if (getuid() == 0 &&
        (setgroups(0, NULL) != 0 || setgid(cluster->gid) != 0 || setuid(cluster->uid) != 0)) {
        _exit(126);
    }
    sigset_t none;
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)prctl(PR_SET_PDEATHSIG, SIGQUIT); /* immediate shutdown; kept across exec */
    if (getppid() != parent) {
        _exit(126);
    }
    (void)setenv("LC_ALL", "C.UTF-8", 1);
    (void)snprintf(path, sizeof path, "%s/%s", cluster->bin, argv[0]);
    argv[0] = path; /* initdb looks for postgres beside itself, by the name it was called */
    (void)execv(path, argv);
    _exit(127);
}

static inline PGconn *pg_cluster_connect(const char *url)
{
    PGconn *conn = PQconnectdb(url);
    if (PQstatus(conn) != CONNECTION_OK) {
        PQfinish(conn);
        return NULL;
    }
    return conn;
}

/*
 * The connection of the last statement, kept for the next one to the same database: a new one costs
 * 5 ms of processor time, most of it in PostgreSQL. The session is reset after each statement.
 */
static struct {
    pthread_mutex_t lock;
    char url[300];
    PGconn *conn; /* NULL: none */
} pg_cluster_kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Close the kept connection, and keep `conn` instead; NULL: keep none. */
static inline void pg_cluster_keep(const char *url, PGconn *conn)
{
    (void)pthread_mutex_lock(&pg_cluster_kept.lock);
    PGconn *previous = pg_cluster_kept.conn;
    pg_cluster_kept.conn = conn;
    (void)snprintf(pg_cluster_kept.url, sizeof pg_cluster_kept.url, "%s", url);
    (void)pthread_mutex_unlock(&pg_cluster_kept.lock);
    PQfinish(previous);
}

/* Return the kept connection if it is to this database and still open, otherwise a new one. */
static inline PGconn *pg_cluster_take(const char *url)
{
    PGconn *conn = NULL;
    (void)pthread_mutex_lock(&pg_cluster_kept.lock);
    if (strcmp(pg_cluster_kept.url, url) == 0) {
        conn = pg_cluster_kept.conn;
        pg_cluster_kept.conn = NULL;
    }
    (void)pthread_mutex_unlock(&pg_cluster_kept.lock);

    /* PostgreSQL sends nothing to an idle session before it ends it. */
    struct pollfd said = {.fd = conn == NULL ? -1 : PQsocket(conn), .events = POLLIN};
    if (conn != NULL && poll(&said, 1, 0) == 0) {
        return conn;
    }

    PQfinish(conn);
    return pg_cluster_connect(url);
}

/* Reset the session of a connection that was taken, and keep it; close it if that fails. */
static inline void pg_cluster_give_back(const char *url, PGconn *conn)
{
    PGresult *result =
        PQtransactionStatus(conn) == PQTRANS_IDLE ? PQexec(conn, "DISCARD ALL") : NULL;
    if (PQresultStatus(result) == PGRES_COMMAND_OK && strlen(url) < sizeof pg_cluster_kept.url) {
        pg_cluster_keep(url, conn);
    } else {
        PQfinish(conn);
    }
    PQclear(result);
}

static inline void pg_cluster_url(const struct pg_cluster *cluster, const char *db, char out[256])
{
    (void)snprintf(out, 256, "host=%s dbname=%s user=postgres", cluster->dir, db);
}

/* Start the postmaster (also again after a stop or a kill) and wait until it answers. */
static inline void pg_cluster_resume(struct pg_cluster *cluster)
{
    char socket_dir[192], data[192], url[256];
    (void)snprintf(socket_dir, sizeof socket_dir, "unix_socket_directories=%s", cluster->dir);
    (void)snprintf(data, sizeof data, "%s/data", cluster->dir);
    char *argv[] = {"postgres",
                    "-D",
                    data,
                    "-c",
                    socket_dir,
                    "-c",
                    "listen_addresses=",
                    "-c",
                    cluster->fsync ? "fsync=on" : "fsync=off",
                    "-c",
                    "shared_buffers=64MB",
                    "-c",
                    "max_connections=60",
                    "-c",
                    "max_wal_size=512MB",
                    "-c",
                    "jit=off",
                    NULL};
    pg_cluster_url(cluster, "postgres", url);
    for (int i = 0; i < 2000; i++) {
        /* A postmaster does not start while backends of a killed one are still there. */
        if (cluster->pid != 0 && waitpid(cluster->pid, NULL, WNOHANG) == cluster->pid) {
            cluster->pid = 0;
        }
        if (cluster->pid == 0) {
            cluster->pid = pg_cluster_spawn(cluster, argv);
        }
        PGconn *conn = pg_cluster_connect(url);
        if (conn != NULL) {
            PQfinish(conn);
            return;
        }
        (void)usleep(20000);
    }
    pg_cluster_die("the server does not start (see its log)");
}

static inline void pg_cluster_start(struct pg_cluster *cluster, bool fsync_on)
{
    *cluster = (struct pg_cluster){.fsync = fsync_on};
    const char *root = fsync_on ? NULL : getenv("HEARTH_TEST_ROOT");
    (void)snprintf(cluster->dir, sizeof cluster->dir, "%s/hearth-pg-XXXXXX",
                   root != NULL ? root : "/tmp");
    pg_cluster_find_bin(cluster, root);
    const struct passwd *user = getuid() == 0 ? getpwnam("postgres") : getpwuid(getuid());
    if (user == NULL || mkdtemp(cluster->dir) == NULL ||
        chown(cluster->dir, user->pw_uid, user->pw_gid) != 0) {
        pg_cluster_die("cannot make its directory");
    }
    cluster->uid = user->pw_uid;
    cluster->gid = user->pw_gid;
    char *argv[] = {"initdb",           "-A",        "trust", "-U",   "postgres", "-E", "UTF8",
                    "--locale=C.UTF-8", "--no-sync", "-D",    "data", NULL};
    int state = 0;
    pid_t pid = pg_cluster_spawn(cluster, argv);
    if (pid < 0 || waitpid(pid, &state, 0) != pid || state != 0) {
        pg_cluster_die("initdb failed");
    }
    pg_cluster_resume(cluster);
}

/* SIGINT: fast shutdown; SIGQUIT: immediate; SIGKILL: crash (its backends notice by themselves). */
static inline void pg_cluster_halt(struct pg_cluster *cluster, int signal_number)
{
    pg_cluster_keep("", NULL);
    if (cluster->pid != 0) {
        (void)kill(cluster->pid, signal_number);
        (void)waitpid(cluster->pid, NULL, 0);
        cluster->pid = 0;
    }
}

static inline void pg_cluster_stop(struct pg_cluster *cluster)
{
    pg_cluster_halt(cluster, SIGQUIT);
    char command[192];
    (void)snprintf(command, sizeof command, "rm -rf '%s'", cluster->dir);
    if (system(command) != 0) {
        (void)fprintf(stderr, "pg_cluster: cannot remove %s\n", cluster->dir);
    }
}

/* Run SQL; the first column of the first row as text ("" when there is none). Ends the program on
 * an error. */
static inline void pg_cluster_ask(PGconn *conn, const char *sql, char *out, size_t n)
{
    PGresult *result = conn == NULL ? NULL : PQexec(conn, sql);
    ExecStatusType state = PQresultStatus(result);
    if (state != PGRES_COMMAND_OK && state != PGRES_TUPLES_OK) {
        (void)fprintf(stderr, "pg_cluster: %s: %s\n", sql,
                      conn == NULL ? "" : PQerrorMessage(conn));
        abort();
    }
    (void)snprintf(out, n, "%s", PQntuples(result) > 0 ? PQgetvalue(result, 0, 0) : "");
    PQclear(result);
}

/* Run the statement in a session that no other thread uses at the same time. */
static inline void pg_cluster_text(const char *url, const char *sql, char *out, size_t n)
{
    PGconn *conn = pg_cluster_take(url);
    pg_cluster_ask(conn, sql, out, n);
    pg_cluster_give_back(url, conn);
}

static inline long long pg_cluster_int(const char *url, const char *sql)
{
    char text[64];
    pg_cluster_text(url, sql, text, sizeof text);
    return strtoll(text, NULL, 10);
}

static inline void pg_cluster_run(const char *url, const char *sql)
{
    char text[8];
    pg_cluster_text(url, sql, text, sizeof text);
}

/* A new database, copied from another; its URL. */
static inline void pg_cluster_copy(struct pg_cluster *cluster, const char *source, char url[256])
{
    char admin[256], sql[96], name[32];
    (void)snprintf(name, sizeof name, "test_%d", ++cluster->n_databases);
    (void)snprintf(sql, sizeof sql, "CREATE DATABASE %s TEMPLATE %s", name, source);
    pg_cluster_url(cluster, "postgres", admin);
    pg_cluster_keep("", NULL); /* CREATE DATABASE fails while a session uses the source */
    pg_cluster_run(admin, sql);
    pg_cluster_url(cluster, name, url);
}

/* A new database for a store; in a test run, it has the schema already. */
static inline void pg_cluster_database(struct pg_cluster *cluster, char url[256])
{
    pg_cluster_copy(cluster, "template1", url);
}

/* A new database without anything. */
static inline void pg_cluster_empty_database(struct pg_cluster *cluster, char url[256])
{
    pg_cluster_copy(cluster, "template0", url);
}

#endif
