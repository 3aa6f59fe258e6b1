/*
 * rollup_fixture.h -- roll-ups compared with the profiles they are sums of, in one snapshot.
 */
#ifndef HEARTH_TESTS_ROLLUP_FIXTURE_H
#define HEARTH_TESTS_ROLLUP_FIXTURE_H

#include "hearth/codec/compress.h"

#include "store_fixture.h"

#include <inttypes.h>

#define MINUTE_NS (60 * HEARTH_NS_PER_SEC)
#define BUCKET_NS (10 * MINUTE_NS)

static const struct rollup_tier {
    const char *table;
    int64_t length_ns;
} ROLLUP_TIERS[] = {
    {"roll_10m", BUCKET_NS}, {"roll_1h", HEARTH_NS_PER_HOUR}, {"roll_1d", HEARTH_NS_PER_DAY}};

static inline PGconn *rollup_snapshot(const char *url)
{
    PGconn *conn = pg_cluster_connect(url);
    PGresult *result =
        conn == NULL ? NULL : PQexec(conn, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
    if (PQresultStatus(result) != PGRES_COMMAND_OK) {
        PQclear(result);
        PQfinish(conn);
        return NULL; /* the server is being killed */
    }
    PQclear(result);
    return conn;
}

/* The first two numbers of a query; false when the connection is lost. */
static inline bool rollup_ask(PGconn *conn, const char *sql, long long ret[2])
{
    PGresult *result = PQexec(conn, sql);
    bool ok = PQresultStatus(result) == PGRES_TUPLES_OK;
    if (!ok) {
        (void)fprintf(stderr, "rollup: %s", PQerrorMessage(conn));
    }
    for (int i = 0; ok && i < 2; i++) {
        ret[i] = strtoll(PQgetvalue(result, 0, i), NULL, 10);
    }
    PQclear(result);
    return ok;
}

/* Wrong keys and all keys of a tier: numbers and totals of its blocks beside those of the profiles,
 * of every series and of every shape of a whole service, where they are not absent. */
static inline bool rollup_compare_tier(PGconn *conn, const struct rollup_tier *tier,
                                       long long ret[2])
{
    char sql[4096];
    long long n = (long long)tier->length_ns;
    (void)snprintf(
        sql, sizeof sql,
        "WITH p AS (SELECT p.service_id, p.series_id, p.ts / %lld * %lld AS t0, p.writer_id,"
        " p.totals, -s.shape_id AS shape, (SELECT r.absent[i + 3] & 1 FROM generate_series(1,"
        " cardinality(r.absent), 4) i WHERE r.absent[i] = %lld AND p.ts >= r.absent[i + 1] AND"
        " p.ts < r.absent[i + 2]) AS absent FROM hearth_data.profile p JOIN hearth_data.roll_state "
        "r"
        " ON r.service_id = p.service_id JOIN hearth_data.series s ON s.service_id = p.service_id"
        " AND s.series_id = p.series_id WHERE p.ts / %lld * %lld + %lld <= r.built_to),"
        " want AS (SELECT service_id, series_id, t0, writer_id, count(*) AS n, sum(totals[1]) AS a,"
        " sum(totals[2]) AS b FROM (SELECT service_id, series_id, t0, writer_id, totals FROM p"
        " WHERE absent IS NULL UNION ALL SELECT service_id, shape, t0, writer_id, totals FROM p"
        " WHERE absent IS DISTINCT FROM 1) x GROUP BY 1, 2, 3, 4),"
        " got AS (SELECT service_id, series_id, t0, writer_id, sum(n_profiles) AS n,"
        " sum(totals[1]) AS a, sum(totals[2]) AS b FROM hearth_data.%s GROUP BY 1, 2, 3, 4)"
        " SELECT count(*) FILTER (WHERE want.n IS DISTINCT FROM got.n OR want.a IS DISTINCT FROM"
        " got.a OR want.b IS DISTINCT FROM got.b), count(*) FROM want FULL JOIN got USING"
        " (service_id, series_id, t0, writer_id)",
        n, n, n, n, n, n, tier->table);
    return rollup_ask(conn, sql, ret);
}

static inline bool rollup_compare_totals(PGconn *conn, long long ret[2])
{
    return rollup_ask(
        conn,
        "WITH want AS (SELECT p.service_id, p.series_id, p.ts / 3600000000000 * 3600000000000 AS"
        " t0, count(*) AS n FROM hearth_data.profile p JOIN hearth_data.roll_state r ON"
        " r.service_id = p.service_id WHERE p.ts < r.built_to GROUP BY 1, 2, 3),"
        " got AS (SELECT service_id, series_id, t0, sum(n) AS n FROM (SELECT service_id, series_id,"
        " t0, n_profiles AS n FROM hearth_data.hour_totals WHERE series_id > 0 UNION ALL SELECT"
        " service_id, (totals[i] >> 32)::int4, t0, (totals[i] & 4294967295)::int4 FROM"
        " hearth_data.hour_totals, generate_series(1, cardinality(totals), cardinality(vals) + 1) i"
        " WHERE series_id = 0) h GROUP BY 1, 2, 3)"
        " SELECT count(*) FILTER (WHERE want.n IS DISTINCT FROM got.n), count(*) FROM want FULL"
        " JOIN got USING (service_id, series_id, t0)",
        ret);
}

/* Wrong and all, of everything, in one snapshot; false when the server went away. */
static inline bool rollup_compare(const char *url, long long *ret_wrong, long long *ret_all)
{
    PGconn *conn = rollup_snapshot(url);
    bool ok = conn != NULL;
    *ret_wrong = *ret_all = 0;
    for (size_t i = 0; ok && i <= HEARTH_ARRAY_LEN(ROLLUP_TIERS); i++) {
        long long found[2];
        ok = i < HEARTH_ARRAY_LEN(ROLLUP_TIERS) ? rollup_compare_tier(conn, &ROLLUP_TIERS[i], found)
                                                : rollup_compare_totals(conn, found);
        if (ok) {
            *ret_wrong += found[0];
            *ret_all += found[1];
        }
    }
    PQfinish(conn);
    return ok;
}

/* ---- stack by stack ---- */

#define ROLLUP_MAX_STACKS 65536

struct rollup_sums {
    int64_t acc[2][ROLLUP_MAX_STACKS];
};

/* A bytea[] of two elements, binary. */
static inline void rollup_pair(PGresult *result, int row, int column, struct hearth_str ret[2])
{
    const char *p = PQgetvalue(result, row, column) + 20;
    for (int k = 0; k < 2; k++) {
        uint32_t n = 0;
        for (int i = 0; i < 4; i++) {
            n = n << 8 | (unsigned char)p[i];
        }
        ret[k] = hearth_str_n(p + 4, n);
        p += 4 + n;
    }
}

/* Add rows of (ids, vals) to the sums; packed ones are blocks. False when damaged. */
static inline bool rollup_add(struct rollup_sums *sums, struct hearth_inflater *inflater,
                              PGresult *result, bool packed)
{
    bool ok = true;
    struct hearth_buf scratch[3];
    for (int i = 0; i < 3; i++) {
        hearth_buf_init(&scratch[i], 0);
    }
    for (int row = 0; row < PQntuples(result) && ok; row++) {
        struct hearth_str text[3];
        text[0] = hearth_str_n(PQgetvalue(result, row, 0), (size_t)PQgetlength(result, row, 0));
        rollup_pair(result, row, 1, text + 1);
        for (int i = 0; packed && i < 3; i++) {
            hearth_buf_reset(&scratch[i]);
            ok = ok && hearth_unpack(inflater, text[i], (size_t)1 << 24, &scratch[i], &text[i],
                                     NULL) == HEARTH_OK;
        }
        for (int k = 0; k < 2 && ok; k++) {
            ok = hearth_columns_merge(text[0], text[1 + k], text[1], k == 0, sums->acc[k],
                                      ROLLUP_MAX_STACKS, NULL) == HEARTH_OK;
        }
    }
    for (int i = 0; i < 3; i++) {
        hearth_buf_release(&scratch[i]);
    }
    return ok;
}

static inline PGresult *rollup_binary(PGconn *conn, const char *sql)
{
    PGresult *result = PQexecParams(conn, sql, 0, NULL, NULL, NULL, NULL, 1);
    if (PQresultStatus(result) != PGRES_TUPLES_OK) {
        (void)fprintf(stderr, "rollup: %s", PQerrorMessage(conn));
        abort();
    }
    return result;
}

/* Random keys of a tier, each compared stack by stack; how many differ. *ret_n: how many there were.
 */
static inline int rollup_compare_stacks(const char *url, const struct rollup_tier *tier, int n_keys,
                                        int *ret_n)
{
    PGconn *conn = rollup_snapshot(url);
    struct hearth_inflater *inflater = hearth_inflater_new();
    struct rollup_sums *want = malloc(sizeof *want), *got = malloc(sizeof *got);
    char sql[1024];
    (void)snprintf(sql, sizeof sql,
                   "SELECT service_id, series_id, t0, writer_id FROM (SELECT DISTINCT service_id,"
                   " series_id, t0, writer_id FROM hearth_data.%s) k ORDER BY random() LIMIT %d",
                   tier->table, n_keys);
    PGresult *keys = PQexec(conn, sql);
    int n_wrong = 0;
    *ret_n = PQntuples(keys);
    for (int i = 0; i < *ret_n; i++) {
        const char *service = PQgetvalue(keys, i, 0), *series = PQgetvalue(keys, i, 1);
        const char *t0 = PQgetvalue(keys, i, 2), *writer = PQgetvalue(keys, i, 3);
        memset(want, 0, sizeof *want);
        memset(got, 0, sizeof *got);
        (void)snprintf(sql, sizeof sql,
                       "SELECT ids, vals FROM hearth_data.%s WHERE service_id = %s AND series_id ="
                       " %s AND t0 = %s AND writer_id = %s",
                       tier->table, service, series, t0, writer);
        PGresult *blocks = rollup_binary(conn, sql);
        (void)snprintf(sql, sizeof sql,
                       "SELECT ids, vals FROM hearth_data.profile p WHERE service_id = %s AND ts >="
                       " %s AND ts < %s + %lld AND writer_id = %s AND (series_id = %s OR (SELECT"
                       " -shape_id FROM hearth_data.series s WHERE s.service_id = p.service_id AND"
                       " s.series_id = p.series_id) = %s)",
                       service, t0, t0, (long long)tier->length_ns, writer, series, series);
        PGresult *rows = rollup_binary(conn, sql);
        bool same = rollup_add(got, inflater, blocks, true) &&
                    rollup_add(want, inflater, rows, false) &&
                    memcmp(want, got, sizeof *want) == 0 && PQntuples(rows) > 0;
        n_wrong += !same;
        PQclear(blocks);
        PQclear(rows);
    }
    PQclear(keys);
    PQfinish(conn);
    free(want);
    free(got);
    hearth_inflater_free(inflater);
    return n_wrong;
}

/* ---- waiting ---- */

/* Wait until every service is built up to its watermark, that is at least min_ns, and no profile
 * is late; false if that does not happen. */
static inline bool rollup_wait(const char *url, int64_t min_ns)
{
    char sql[320];
    (void)snprintf(sql, sizeof sql,
                   "SELECT (SELECT count(*) FROM hearth_data.service) - (SELECT count(*) FROM"
                   " hearth_data.roll_state WHERE built_to >= %" PRId64 " AND built_to = watermark)"
                   " + (SELECT count(*) FROM hearth_data.profile_late l JOIN hearth_data.roll_state"
                   " r USING (service_id) WHERE l.ts < r.built_to)",
                   min_ns);
    int64_t until_ns = hearth_clock_mono_ns() + STORE_PATIENCE_NS;
    PGconn *conn = pg_cluster_connect(url); /* a new one for each look costs milliseconds */
    char left[64] = "";
    pg_cluster_ask(conn, sql, left, sizeof left);
    while (strcmp(left, "0") != 0 && hearth_clock_mono_ns() <= until_ns) {
        (void)usleep(10000);
        pg_cluster_ask(conn, sql, left, sizeof left);
    }
    PQfinish(conn);
    return strcmp(left, "0") == 0;
}

#endif
