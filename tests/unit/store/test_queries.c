/* Every statement of sql/queries/ fits the tables that the migrations make. */
#include "pg/queries.h"
#include "store_fixture.h"

/* Run one statement that must succeed; `file` names the query in the message. */
static PGresult *run_for(PGconn *conn, const char *sql, const char *file)
{
    PGresult *result = PQexec(conn, sql);
    ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
        fail_msg("sql/queries/%s: %s", file, PQresultErrorMessage(result));
    }
    return result;
}

static void every_query_can_be_prepared(void **state)
{
    (void)state;
    char url[256], sql[16384];
    struct hearth_store *store = open_fresh(url, NULL);
    PGconn *conn = pg_cluster_connect(url);
    size_t n = 0;
    for (const struct hearth_query_text *query = hearth_query_texts; query->file != NULL; query++) {
        bool has_types = query->types[0] != '\0';
        int length = snprintf(sql, sizeof sql, "PREPARE query %s%s%s AS %s", has_types ? "(" : "",
                              query->types, has_types ? ")" : "", query->sql);
        assert_true(length > 0 && (size_t)length < sizeof sql);
        PQclear(run_for(conn, sql, query->file));
        n++;

        /* The comments name every parameter. */
        (void)snprintf(sql, sizeof sql,
                       "SELECT 1 FROM pg_prepared_statements WHERE parameter_types ="
                       " '{%s}'::regtype[]",
                       query->types);
        PGresult *result = run_for(conn, sql, query->file);
        if (PQntuples(result) != 1) {
            fail_msg("sql/queries/%s: its comments do not name all parameters", query->file);
        }
        PQclear(result);
        PQclear(run_for(conn, "DEALLOCATE query", query->file));
    }
    assert_true(n > 0);
    PQfinish(conn);
    store_close_soon(store);
}

/* Comments would be sent and parsed with each execution. */
static void queries_are_embedded_without_comments(void **state)
{
    (void)state;
    for (const struct hearth_query_text *query = hearth_query_texts; query->file != NULL; query++) {
        if (strstr(query->sql, "--") != NULL) {
            fail_msg("sql/queries/%s has a comment in the binary", query->file);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_query_can_be_prepared),
        cmocka_unit_test(queries_are_embedded_without_comments),
    };
    return cmocka_run_group_tests(tests, start_cluster, stop_cluster);
}
