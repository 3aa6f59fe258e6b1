/*
 * floor_blocks.c -- the floor of a question that is answered from blocks: unpacking and merging blocks that lie in memory,
 * and nothing else. floor_blocks URL SERVICE
 *
 * Takes up to MAX_BLOCKS blocks of each tier, of series and of the whole service, and prints one line of JSON each: bytes
 * of a block as stored, its stacks, microseconds to unpack and to merge one (the first value column).
 */
#include "hearth/base/clock.h"
#include "hearth/base/mem.h"
#include "hearth/codec/compress.h"
#include "hearth/model/columns.h"

#include <libpq-fe.h>

#include <stdio.h>
#include <stdlib.h>

enum {
    MAX_BLOCKS = 1000,
    ROUNDS = 5,
    MAX_BYTES = 64 << 20
};

static struct hearth_err g_err = HEARTH_ERR_INIT;

static void must(bool ok, const char *what)
{
    if (!ok) {
        (void)fprintf(stderr, "floor_blocks: %s\n", what);
        exit(1);
    }
}

static struct hearth_str bytes_of(const PGresult *result, int row, int column)
{
    return hearth_str_n(PQgetvalue(result, row, column), (size_t)PQgetlength(result, row, column));
}

static void measure(PGresult *result, const char *table, bool whole)
{
    struct hearth_inflater *inflater = hearth_inflater_new();
    int n = PQntuples(result);
    uint32_t bound = 1;
    size_t n_stored = 0, n_plain = 0;
    struct hearth_str *ids = hearth_mem_calloc((size_t)n + 1, sizeof ids[0]);
    struct hearth_str *vals = hearth_mem_calloc((size_t)n + 1, sizeof vals[0]);
    struct hearth_buf *plain = hearth_mem_calloc((size_t)n * 2 + 1, sizeof plain[0]);
    int64_t unpack_ns = INT64_MAX, merge_ns = INT64_MAX;
    for (int round = 0; round < ROUNDS; round++) {
        int64_t from = hearth_clock_thread_cpu_ns();
        for (int i = 0; i < n; i++) {
            for (int k = 0; k < 2; k++) {
                struct hearth_buf *to = &plain[i * 2 + k];
                if (round == 0) {
                    hearth_buf_init(to, 0);
                    n_stored += bytes_of(result, i, k).n;
                }
                hearth_buf_reset(to);
                must(hearth_unpack(inflater, bytes_of(result, i, k), MAX_BYTES, to,
                                   k == 0 ? &ids[i] : &vals[i], &g_err) == HEARTH_OK,
                     g_err.msg);
            }
        }
        int64_t ns = hearth_clock_thread_cpu_ns() - from;
        unpack_ns = ns < unpack_ns ? ns : unpack_ns;
    }
    for (int i = 0; i < n; i++) {
        uint32_t here = 0;
        must(hearth_columns_id_bound(ids[i], &here), "a damaged block");
        bound = here > bound ? here : bound;
        n_plain += ids[i].n + vals[i].n;
    }
    int64_t *acc = hearth_mem_calloc(bound, sizeof acc[0]);
    for (int round = 0; round < ROUNDS; round++) {
        int64_t from = hearth_clock_thread_cpu_ns();
        for (int i = 0; i < n; i++) {
            must(hearth_columns_merge(ids[i], vals[i], vals[i], true, acc, bound, &g_err) ==
                     HEARTH_OK,
                 g_err.msg);
        }
        int64_t ns = hearth_clock_thread_cpu_ns() - from;
        merge_ns = ns < merge_ns ? ns : merge_ns;
    }
    double blocks = n == 0 ? 1 : n;
    (void)printf("{\"table\": \"%s\", \"whole\": %s, \"blocks\": %d, \"stored\": %.0f, "
                 "\"plain\": %.0f, \"stacks\": %u, \"unpack_us\": %.2f, \"merge_us\": %.2f}\n",
                 table, whole ? "true" : "false", n, (double)n_stored / blocks,
                 (double)n_plain / blocks, bound, n == 0 ? 0 : (double)unpack_ns / 1e3 / blocks,
                 n == 0 ? 0 : (double)merge_ns / 1e3 / blocks);
}

int main(int argc, char **argv)
{
    must(argc == 3, "usage: floor_blocks URL SERVICE");
    PGconn *conn = PQconnectdb(argv[1]);
    must(PQstatus(conn) == CONNECTION_OK, PQerrorMessage(conn));
    static const char *const tables[] = {"roll_10m", "roll_1h", "roll_1d"};
    for (int t = 0; t < 3; t++) {
        for (int whole = 0; whole < 2; whole++) {
            char sql[512];
            const char *parameters[1] = {argv[2]};
            (void)snprintf(sql, sizeof sql,
                           "SELECT ids, vals[1] FROM hearth_data.%s JOIN hearth_data.service USING "
                           "(service_id) WHERE name = $1 AND series_id %s 0 "
                           "ORDER BY n_profiles DESC LIMIT %d",
                           tables[t], whole ? "<" : ">", MAX_BLOCKS);
            PGresult *result = PQexecParams(conn, sql, 1, NULL, parameters, NULL, NULL, 1);
            must(PQresultStatus(result) == PGRES_TUPLES_OK, PQerrorMessage(conn));
            measure(result, tables[t], whole);
            PQclear(result);
        }
    }
    PQfinish(conn);
    return 0;
}
