/*
 * bench_store.c -- what a committed profile row costs: PostgreSQL's CPU, the committer's CPU, rows
 * a second.
 *
 * bench_store [seconds per line]. A PostgreSQL of its own (fsync on), one committer, profiles of
 * 660 samples of 10 services, encoded beforehand; each line commits batches of one size, one after
 * the other. The floor beside it is the same COPY into the same leaf from one buffer, without
 * queue, batch row or dictionary.
 */
#include "hearth/base/metrics.h"

#include "cluster_cpu.h"
#include "pg_cluster.h"
#include "store_push.h"

#include <time.h>

enum {
    N_SERVICES = 10,
    N_PUSHES = 1000
};

static void commit_batch(struct store_push **pushes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct store_push *push = pushes[i];
        struct hearth_err err = HEARTH_ERR_INIT;
        atomic_store(&push->ended, false);
        if (hearth_store_dict_acquire(push->store, push->item.service_id, push->item.ts_ns,
                                      &push->item.dict, &err) != HEARTH_OK) {
            (void)fprintf(stderr, "%s\n", err.msg);
            abort();
        }
    }
    for (size_t i = 0; i < n; i++) {
        store_push_submit(pushes[i]);
    }
    for (size_t i = 0; i < n; i++) {
        while (!atomic_load(&pushes[i]->ended)) {
            struct timespec nap = {0, 20000};
            (void)nanosleep(&nap, NULL);
        }
        if (pushes[i]->status != HEARTH_OK) {
            (void)fprintf(stderr, "%s\n", pushes[i]->err.msg);
            abort();
        }
    }
}

/* Pushes whose stacks are all committed, spread over the services. */
static struct hearth_store *open_loaded(const char *url, size_t batch, struct synth_world *world,
                                        struct store_push **pushes)
{
    struct hearth_store_options options;
    hearth_store_options_init(&options);
    options.n_committers = 1;
    options.max_batch_rows = batch;
    options.linger_ns = HEARTH_NS_PER_SEC; /* a full batch ends it */
    struct hearth_store *store = store_open_url(url, &options);
    if (!store_wait_ready(store)) {
        abort();
    }
    int64_t ts_ns = hearth_clock_wall_ns();
    for (int i = 0; i < N_PUSHES; i++) {
        char service[16];
        (void)snprintf(service, sizeof service, "svc-%d", i % N_SERVICES);
        struct hearth_err err = HEARTH_ERR_INIT;
        pushes[i] = store_push_make(store, world, service, ts_ns + i, 660, 0, &err);
        if (pushes[i] == NULL) {
            (void)fprintf(stderr, "%s\n", err.msg);
            abort();
        }
        hearth_store_dict_release(store, pushes[i]->item.dict);
    }
    for (int i = 0; i < N_PUSHES; i += (int)batch) {
        commit_batch(pushes + i, batch);
    }
    return store;
}

struct line {
    double rows_per_s, pg_us, client_us;
};

static struct line line_of(size_t n, int64_t wall_ns, int64_t pg_ns, int64_t client_ns)
{
    double rows = (double)n;
    return (struct line){rows * 1e9 / (double)wall_ns, (double)pg_ns / 1e3 / rows,
                         (double)client_ns / 1e3 / rows};
}

static struct line run_commits(const struct pg_cluster *cluster, struct store_push **pushes,
                               size_t batch, double seconds)
{
    int64_t pg_ns = cluster_cpu_ns(cluster), from_ns = hearth_clock_mono_ns(), now_ns = from_ns;
    int64_t client_ns = hearth_metric_value(HEARTH_M_INGEST_STAGE_NS);
    size_t n = 0;
    for (; now_ns - from_ns < (int64_t)(seconds * 1e9); now_ns = hearth_clock_mono_ns()) {
        commit_batch(pushes + n % N_PUSHES, batch);
        n += batch;
    }
    return line_of(n, now_ns - from_ns, cluster_cpu_ns(cluster) - pg_ns,
                   hearth_metric_value(HEARTH_M_INGEST_STAGE_NS) - client_ns);
}

/* Rows of the leaf in COPY's binary format, `batch` of them. */
static size_t fetch_rows(PGconn *conn, size_t batch, char **ret_bytes)
{
    char sql[128], *part = NULL;
    (void)snprintf(sql, sizeof sql,
                   "COPY (SELECT * FROM hearth_data.profile LIMIT %zu) TO STDOUT (FORMAT binary)",
                   batch);
    PQclear(PQexec(conn, sql));
    size_t n = 0;
    char *bytes = malloc((size_t)64 << 20);
    for (int got; (got = PQgetCopyData(conn, &part, 0)) > 0; PQfreemem(part)) {
        memcpy(bytes + n, part, (size_t)got);
        n += (size_t)got;
    }
    PQclear(PQgetResult(conn));
    *ret_bytes = bytes;
    return n;
}

/* The floor: the same rows into a table like the leaf, one COPY a transaction, nothing else. */
static struct line run_floor(const struct pg_cluster *cluster, const char *url, size_t batch,
                             double seconds)
{
    PGconn *conn = pg_cluster_connect(url);
    PQclear(PQexec(
        conn, "CREATE TABLE twin (LIKE hearth_data.profile INCLUDING STORAGE INCLUDING INDEXES)"
              " WITH (toast_tuple_target = 8160)"));
    char *bytes = NULL;
    size_t n_bytes = fetch_rows(conn, batch, &bytes);
    int64_t pg_ns = cluster_cpu_ns(cluster), from_ns = hearth_clock_mono_ns(), now_ns = from_ns;
    int64_t client_ns = hearth_clock_thread_cpu_ns();
    size_t n = 0;
    for (; now_ns - from_ns < (int64_t)(seconds * 1e9); now_ns = hearth_clock_mono_ns()) {
        PQclear(PQexec(conn, "COPY twin FROM STDIN (FORMAT binary)"));
        (void)PQputCopyData(conn, bytes, (int)n_bytes);
        (void)PQputCopyEnd(conn, NULL);
        PGresult *result;
        while ((result = PQgetResult(conn)) != NULL) {
            if (PQresultStatus(result) != PGRES_COMMAND_OK) {
                (void)fprintf(stderr, "%s\n", PQerrorMessage(conn));
                abort();
            }
            PQclear(result);
        }
        n += batch;
    }
    client_ns = hearth_clock_thread_cpu_ns() - client_ns;
    struct line line = line_of(n, now_ns - from_ns, cluster_cpu_ns(cluster) - pg_ns, client_ns);
    PQfinish(conn);
    free(bytes);
    return line;
}

static void measure(struct pg_cluster *cluster, size_t batch, double seconds)
{
    static struct store_push *pushes[N_PUSHES];
    char url[256];
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct synth_world world;
    synth_world_init(&world, 3, 4000, 12000, 20000, 30, &arena);
    pg_cluster_database(cluster, url);
    struct hearth_store *store = open_loaded(url, batch, &world, pushes);
    pg_cluster_run(url, "CHECKPOINT");
    struct line line = run_commits(cluster, pushes, batch, seconds);
    double disk = (double)pg_cluster_int(
        url, "SELECT sum(pg_total_relation_size(inhrelid)) / (SELECT count(*)"
             " FROM hearth_data.profile) FROM pg_inherits WHERE inhparent ="
             " 'hearth_data.profile'::regclass");
    double payload = (double)pg_cluster_int(
        url,
        "SELECT avg(length(ids) + length(vals[1]) + length(vals[2])) FROM hearth_data.profile");
    struct line low = run_floor(cluster, url, batch, seconds);
    (void)printf("%6zu %9.0f %8.1f %8.1f | %9.0f %8.1f %8.1f | %5.2f | %7.0f %7.0f\n", batch,
                 line.rows_per_s, line.pg_us, line.client_us, low.rows_per_s, low.pg_us,
                 low.client_us, line.pg_us / low.pg_us, payload, disk);
    (void)fflush(stdout);
    for (int i = 0; i < N_PUSHES; i++) {
        store_push_free(pushes[i]);
    }
    store_close_soon(store);
    hearth_arena_release(&arena);
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? strtod(argv[1], NULL) : 5;
    struct pg_cluster cluster;
    pg_cluster_start(&cluster, true);
    (void)printf("%6s %28s | %28s | %5s | %15s\n", "", "committed", "floor: COPY alone", "ratio",
                 "bytes a row");
    (void)printf("%6s %9s %8s %8s | %9s %8s %8s | %5s | %7s %7s\n", "batch", "rows/s", "pg us",
                 "client us", "rows/s", "pg us", "client us", "pg", "payload", "disk");
    static const size_t batches[] = {1, 10, 100, 1000};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(batches); i++) {
        measure(&cluster, batches[i], seconds);
    }
    pg_cluster_stop(&cluster);
    return 0;
}
