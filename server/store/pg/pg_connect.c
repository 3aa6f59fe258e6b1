/*
 * pg_connect.c -- opening and closing one PostgreSQL connection, and whether it is still open
 * (contract: pg.h).
 *
 * Connecting polls in steps of at most 50 ms, so that cancellation and the time limit end it. The
 * socket is non-blocking afterwards. No text shows a password.
 */
#include "hearth/base/clock.h"
#include "hearth/base/metrics.h"

#include "pg/lineage.h"
#include "pg/pg.h"
#include "pg/pg_wait.h"

#include <assert.h>
#include <poll.h>

/* ---- connecting ---- */

/*
 * A notice of PostgreSQL, which libpq would print to stderr ("already exists, skipping"). All are
 * ignored but one: a commit that was told to wait no longer for its synchronous standby succeeds,
 * with a warning that has no code of its own. The name of its function is not translated.
 */
static void receive_notice(void *context, const PGresult *result)
{
    struct hearth_pg *pg = context;
    const char *function = PQresultErrorField(result, PG_DIAG_SOURCE_FUNCTION);

    pg->lacks_standby |= function != NULL && strcmp(function, "SyncRepWaitForLSN") == 0;
}

/* True if "?key=" stands here. */
static bool is_parameter(const char *at)
{
    size_t n = at[0] == '?' ? strspn(at + 1, "abcdefghijklmnopqrstuvwxyz_") : 0;
    return n > 0 && at[1 + n] == '=';
}

/*
 * False for a URI whose part before the last '@' has characters that end the part for libpq: a
 * piece of a password would be read as a host, and errors name hosts.
 */
static bool is_user_encoded(const char *url)
{
    static const char *const schemes[] = {"postgresql://", "postgres://"};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(schemes); i++) {
        struct hearth_str all = hearth_str_c(url);
        if (!hearth_str_starts(all, hearth_str_c(schemes[i]))) {
            continue;
        }

        /* Parameters may contain '@'; a '?' without "key=" after it may be part of a password. */
        size_t from = strlen(schemes[i]), end = from, at = from;
        while (end < all.n && !is_parameter(url + end)) {
            at = all.p[end] == '@' ? end : at;
            end++;
        }

        return from + strcspn(url + from, "@/?#") >= at;
    }

    return true;
}

/* False if a port is not a number: in "postgresql://user:password" it is the password. */
static bool are_ports_numbers(const PQconninfoOption *options)
{
    for (; options != NULL && options->keyword != NULL; options++) {
        const char *value = options->val;
        if (value != NULL && strcmp(options->keyword, "port") == 0 &&
            value[strspn(value, "0123456789,")] != '\0') {
            return false;
        }
    }

    return true;
}

bool hearth_pg_url_valid(const struct hearth_secret *secret)
{
    const char *url = hearth_secret_reveal(secret);
    char *text = NULL;
    PQconninfoOption *parsed = is_user_encoded(url) ? PQconninfoParse(url, &text) : NULL;

    PQfreemem(text); /* never shown: it may quote a piece of a password */
    bool ok = parsed != NULL && are_ports_numbers(parsed);
    PQconninfoFree(parsed);

    return ok;
}

/* Run poll(2) once; return false on timeout. Errors count as readable: libpq reports them. */
static bool poll_once(int fd, short events, int64_t until_mono_ns)
{
    struct pollfd p = {.fd = fd, .events = events};
    int n = poll(&p, 1, hearth_pg_limit_poll(until_mono_ns, hearth_clock_mono_ns()));

    return n != 0;
}

static enum hearth_status run_connect(struct hearth_pg *pg, int64_t deadline_ns,
                                      struct hearth_err *err)
{
    PostgresPollingStatusType want = PGRES_POLLING_WRITING;
    while (want != PGRES_POLLING_OK) {
        if (want == PGRES_POLLING_FAILED) {
            char text[320];
            hearth_pg_flatten(PQerrorMessage(pg->conn), text);
            return HEARTH_FAIL(err, HEARTH_UNAVAILABLE, "%s", text);
        }

        if (hearth_clock_mono_ns() >= deadline_ns) {
            return HEARTH_FAIL(err, HEARTH_UNAVAILABLE, "the database did not answer in time");
        }

        if (pg->doubt != NULL && pg->doubt->is_pointless(pg->doubt->context)) {
            return HEARTH_FAIL(err, HEARTH_UNAVAILABLE, "the node does not answer");
        }

        HEARTH_TRY(hearth_cancel_check(pg->cancel, err));
        int fd = PQsocket(pg->conn);
        if (fd < 0 ||
            poll_once(fd, want == PGRES_POLLING_READING ? POLLIN : POLLOUT, deadline_ns)) {
            want = PQconnectPoll(pg->conn);
        }
    }

    return HEARTH_OK;
}

/*
 * Lets PostgreSQL end a statement whose client has gone. Otherwise it would run to its end, or wait
 * for its lock, after a server was killed, and after a cancel request that overtook its statement,
 * which PostgreSQL ignores. Behind a pooler the session serves others, too, and stays as it is.
 */
static enum hearth_status watch_client(struct hearth_pg *pg, struct hearth_err *err)
{
    char sql[128];
    if (PQserverVersion(pg->conn) < 140000) {
        return HEARTH_OK;
    }

    (void)snprintf(sql, sizeof sql,
                   "SELECT set_config('client_connection_check_interval', '2s', false)"
                   " WHERE pg_backend_pid() = %d",
                   PQbackendPID(pg->conn));
    enum hearth_status status = hearth_pg_exec(pg, sql, NULL, NULL, NULL, NULL, err);

    return hearth_pg_usable(pg) ? HEARTH_OK : status; /* not all systems have it */
}

enum hearth_status hearth_pg_connect(struct hearth_pg *pg, int64_t timeout_ms,
                                     struct hearth_err *err)
{
    assert(pg->url != NULL && timeout_ms > 0);

    hearth_pg_close(pg);
    pg->lacks_standby = pg->is_node_lost = pg->is_direct = false;
    pg->n_connects++;
    memset(pg->repeated, 0, sizeof pg->repeated);
    if (!hearth_pg_url_valid(pg->url)) {
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE, "the database URL cannot be parsed");
    }

    /* Keys before dbname (the URL) are defaults; keys after it override the URL. */
    static const char *const keys[] = {"fallback_application_name",
                                       "keepalives_idle",
                                       "keepalives_interval",
                                       "keepalives_count",
                                       "tcp_user_timeout",
                                       "target_session_attrs",
                                       "dbname",
                                       "client_encoding",
                                       "host",
                                       "port",
                                       NULL};
    const char *values[] = {"hearthd",
                            "10",
                            "5",
                            "3",
                            "30000",
                            "read-write",
                            hearth_secret_reveal(pg->url),
                            "UTF8",
                            pg->address == NULL ? NULL : pg->address->host,
                            pg->address == NULL ? NULL : pg->address->port,
                            NULL};
    pg->conn = PQconnectStartParams(keys, values, 1);
    if (pg->conn == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate a database connection");
    }

    /* Poll until the connection is open. */
    int64_t deadline_ns = hearth_clock_mono_ns() + timeout_ms * HEARTH_NS_PER_MS;
    enum hearth_status status = HEARTH_OK;
    if (PQstatus(pg->conn) == CONNECTION_BAD) {
        char text[320];
        hearth_pg_flatten(PQerrorMessage(pg->conn), text);
        status = HEARTH_FAIL(err, HEARTH_UNAVAILABLE, "%s", text);
    } else {
        status = run_connect(pg, deadline_ns, err);
    }

    if (status == HEARTH_OK && PQsetnonblocking(pg->conn, 1) != 0) {
        status = HEARTH_FAIL(err, HEARTH_UNAVAILABLE,
                             "cannot make the database connection non-blocking");
    }

    if (status == HEARTH_OK) {
        (void)PQsetNoticeReceiver(pg->conn, receive_notice, pg);
        status = pg->lineage == NULL ? HEARTH_OK : hearth_lineage_check(pg->lineage, pg, err);
    }

    if (status == HEARTH_OK) {
        status = watch_client(pg, err);
    }

    if (status != HEARTH_OK) {
        hearth_pg_close(pg);
        return status;
    }

    hearth_metric_add(HEARTH_M_PG_CONNECTS, 1);

    return HEARTH_OK;
}

void hearth_pg_set_address(struct hearth_pg *pg, const struct hearth_pg_address *address)
{
    if (pg->address != address) {
        hearth_pg_close(pg);
        pg->address = address;
    }
}

bool hearth_pg_usable(const struct hearth_pg *pg)
{
    return pg->conn != NULL && PQstatus(pg->conn) == CONNECTION_OK &&
           PQtransactionStatus(pg->conn) == PQTRANS_IDLE &&
           (pg->lineage == NULL || !atomic_load(&pg->lineage->is_lost));
}

bool hearth_pg_alive(struct hearth_pg *pg)
{
    if (!hearth_pg_usable(pg)) {
        return false;
    }

    /*
     * Input on an idle connection means that the server closed it, or is so rare that a new
     * connection is cheap.
     */
    struct pollfd p = {.fd = PQsocket(pg->conn), .events = POLLIN};

    return poll(&p, 1, 0) == 0;
}
