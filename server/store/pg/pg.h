/*
 * pg.h -- one PostgreSQL connection: statements, COPY, errors by SQLSTATE (private to the store).
 *
 * Statements are unnamed and leave no session state, so that PgBouncer in transaction mode works;
 * prepared ones need a direct connection. Values are sent in binary. Waiting is poll(2) in steps of
 * at most 50 ms, so that cancellation and deadlines reach PostgreSQL (PQcancel). When a statement
 * is given up because of them, or by its visitor, its connection is closed too (fault CANCELLED,
 * conn NULL).
 *
 * A commit that somebody told to wait no longer for its synchronous standby is made, but a failover
 * may lose it. PostgreSQL answers it with a warning; here it fails as if the connection were lost
 * before the answer (fault CONNECTION, conn NULL).
 *
 * On a connection with a wall, a transaction begins by entering the tenants of the wall: this
 * statement and the caller's are sent as one pipeline, which is one transaction and one round trip.
 *
 * Threads: a connection belongs to one thread at a time.
 */
#ifndef HEARTH_STORE_PG_H
#define HEARTH_STORE_PG_H

#include "hearth/base/arena.h"
#include "hearth/base/buf.h"
#include "hearth/base/cancel.h"
#include "hearth/base/clock.h"
#include "hearth/base/hash.h"
#include "hearth/base/secret.h"

#include <libpq-fe.h>

struct hearth_pg_params;
struct hearth_lineage;

/* Where a connection goes instead of the host and port of its URL. */
struct hearth_pg_address {
    char host[256], port[8];
};

/* Asked each 50 ms while a statement waits: whether to wait is of no use any more. */
struct hearth_pg_doubt {
    bool (*is_pointless)(const void *context);
    const void *context;
};

/*
 * One of the last statements of a connection that were said to be run again (is_repeated of their
 * parameters). All are forgotten when it connects.
 */
#define HEARTH_PG_REPEATED 16
/*
 * A statement with one plan for all values (one_plan_if of its parameters) is prepared again after
 * HEARTH_PG_PREPARED_NS, because PostgreSQL made the plan for the sizes that the tables had. It is
 * prepared only if it runs again within HEARTH_PG_RUN_AGAIN_NS, and if its last run returned at
 * most HEARTH_PG_PREPARED_ROWS rows: the plan reads each row by the index, which costs 0.5 us a row
 * more than a plan for the values of one run.
 */
#define HEARTH_PG_PREPARED_NS   (60 * HEARTH_NS_PER_SEC)
#define HEARTH_PG_RUN_AGAIN_NS  (20 * HEARTH_NS_PER_SEC)
#define HEARTH_PG_PREPARED_ROWS 400
struct hearth_pg_repeated {
    struct hearth_hash128 text; /* its hash */
    int64_t last_run;           /* n_repeated then; 0: the entry is empty */
    int64_t last_mono_ns;       /* when */
    uint32_t number;            /* its name, if it is prepared; 0: it is not */
    int64_t prepared_mono_ns;   /* when it was, or when one_plan_if said no; 0: neither */
    bool has_one_plan;          /* or would have */
};

/* Not moved while it is connected: libpq keeps its address. */
struct hearth_pg {
    PGconn *conn; /* NULL or bad: the owner calls hearth_pg_connect again */
    /*
     * The connection was closed because PostgreSQL answered a commit before its synchronous standby
     * had it: the statement did not end the process that ran it. Reset by connecting.
     */
    bool lacks_standby;
    /*
     * The connection was closed because of one that PostgreSQL itself had lost, to another node:
     * the statement did not end the process that ran it. Reset by connecting.
     */
    bool is_node_lost;
    /*
     * The process that answers is the one that the connection began with, so no pooler is in
     * between, and what is prepared stays prepared. Known after the check of the lineage.
     */
    bool is_direct;
    uint64_t n_connects; /* since the beginning: prepared statements end with their connection */
    /*
     * Parameters of hearth_data.enter_tenants (wall.h). If set, each transaction enters these
     * tenants first, in the same message; NULL: statements run as the owner of the tables.
     */
    const struct hearth_pg_params *wall;
    /*
     * Why nothing may be written; each transaction is read-only then, and a statement that writes
     * fails with this text. NULL: writing is allowed.
     */
    const char *read_only;
    const struct hearth_secret *url;
    const struct hearth_pg_address *address; /* NULL: that of the URL */
    /* Checked by each connect; if it is lost, the connection is not usable. NULL: not checked. */
    struct hearth_lineage *lineage;
    struct hearth_cancel *cancel; /* for statements without one of their own; may be NULL */
    /* If it says so, statements and connecting are given up with UNAVAILABLE. NULL: none. */
    const struct hearth_pg_doubt *doubt;
    int64_t timeout_ms;    /* for statements without a deadline; 0: no limit */
    const char *ahead;     /* the text of a statement that was sent ahead; NULL: none */
    int64_t ahead_mono_ns; /* when */
    struct hearth_pg_repeated repeated[HEARTH_PG_REPEATED];
    bool is_one_plan;    /* the statement of the last message stands between two settings */
    size_t n_visited;    /* rows of the last hearth_pg_stream; 0 after hearth_pg_exec */
    int64_t n_repeated;  /* runs of such statements */
    uint32_t n_prepared; /* of them, each with the next number for its name */
};

/* Meaning of an error for the caller, by a prefix of its SQLSTATE; the longest prefix counts. */
enum hearth_pg_fault {
    HEARTH_PG_FAULT_NONE,
    /*
     * 08, 57P, 25006, 25P03 or a broken socket: outcome of a COMMIT unknown; or the synchronous
     * standby may lack it. conn NULL
     */
    HEARTH_PG_FAULT_CONNECTION,
    /*
     * 40 (serialization, deadlock), 53 (resources) except 53100, 55P03, 55006; or Citus lost a node
     * in the midst of a command
     */
    HEARTH_PG_FAULT_RETRY,
    HEARTH_PG_FAULT_UNIQUE,        /* 23505 */
    HEARTH_PG_FAULT_DISK_FULL,     /* 53100 */
    HEARTH_PG_FAULT_CANCELLED,     /* 57014 */
    HEARTH_PG_FAULT_MISSING_TABLE, /* 42P01, or 23514: the row has no partition */
    HEARTH_PG_FAULT_OTHER,
};

enum hearth_pg_fault hearth_pg_classify(const char *sqlstate);

/*
 * True when libpq can parse the URL, and reads the same password in it as a person would: text
 * before the last '@' that has '/', '?', '#' or another '@' must be percent-encoded, because libpq
 * takes a part of it for the host, which it names in errors. Error texts of libpq may quote a
 * password, so they are not returned.
 */
bool hearth_pg_url_valid(const struct hearth_secret *url);

/*
 * Connect, after closing an old connection. UNAVAILABLE: the reason of libpq, without password, or
 * the loss of the lineage.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_pg_connect(struct hearth_pg *pg, int64_t timeout_ms,
                                                       struct hearth_err *err);
/* Set the address; a connection to another one is closed. */
void hearth_pg_set_address(struct hearth_pg *pg, const struct hearth_pg_address *address);
void hearth_pg_close(struct hearth_pg *pg);
bool hearth_pg_usable(const struct hearth_pg *pg);
/* True when the connection is usable and the server has not closed it meanwhile (one poll(2)). */
bool hearth_pg_alive(struct hearth_pg *pg);

/* Parameters of one statement, big-endian binary, in an arena. At most 32. */
struct hearth_pg_params {
    struct hearth_arena *arena;
    int n;
    bool failed; /* memory was refused */
    /*
     * The text is likely to be run again, with other values of the same types. hearth_pg_exec and
     * hearth_pg_stream prepare it then after its second run, on a direct connection without a wall,
     * so that PostgreSQL need not parse it each time, nor plan it, if it finds one plan for all
     * values to be good. To be set after _init, which sets false.
     */
    bool is_repeated;
    /*
     * With is_repeated, for hearth_pg_stream only: when prepared, the statement always has one plan
     * for all values. This is a statement without parameters that returns one boolean, whether that
     * is worth it; asked before. NULL: PostgreSQL chooses. Lives as long as the parameters.
     */
    const char *one_plan_if;
    Oid types[32];
    const char *values[32];
    int lengths[32], formats[32];
};

void hearth_pg_params_init(struct hearth_pg_params *params, struct hearth_arena *arena);
void hearth_pg_param_i32(struct hearth_pg_params *params, int32_t value);
void hearth_pg_param_i64(struct hearth_pg_params *params, int64_t value);
void hearth_pg_param_text(struct hearth_pg_params *params, struct hearth_str value);
void hearth_pg_param_bytes(struct hearth_pg_params *params, struct hearth_str value);
void hearth_pg_param_uuid(struct hearth_pg_params *params,
                          struct hearth_hash128 value); /* hi then lo */
void hearth_pg_param_i32_array(struct hearth_pg_params *params, const int32_t *values, size_t n);
void hearth_pg_param_i64_array(struct hearth_pg_params *params, const int64_t *values, size_t n);
void hearth_pg_param_f64_array(struct hearth_pg_params *params, const double *values, size_t n);
void hearth_pg_param_text_array(struct hearth_pg_params *params, const struct hearth_str *values,
                                size_t n);
void hearth_pg_param_bytes_array(struct hearth_pg_params *params, const struct hearth_str *values,
                                 size_t n);
void hearth_pg_param_uuid_array(struct hearth_pg_params *params,
                                const struct hearth_hash128 *values, size_t n);

/*
 * Run one statement; params may be NULL. ret_result may be NULL when the rows are not needed;
 * *ret_result has binary format, and the caller frees it with PQclear. On failure *ret_fault
 * (ret_fault may be NULL) is the class of the error, and the message has the SQLSTATE and
 * PostgreSQL's primary message.
 */
HEARTH_MUST_CHECK enum hearth_status
hearth_pg_exec(struct hearth_pg *pg, const char *sql, const struct hearth_pg_params *params,
               struct hearth_cancel *cancel, PGresult **ret_result, enum hearth_pg_fault *ret_fault,
               struct hearth_err *err);

/*
 * A script is several statements in one message (PostgreSQL's simple protocol: no parameters, text
 * results), so that they cost one round trip. It has its own transaction statements. After a failed
 * script its transaction is still open: the caller rolls it back.
 *   _send    send the script
 *   _next    return the next result (free with PQclear); NULL at the end. After PGRES_COPY_IN the
 *            caller makes the three _copy_ calls below.
 *   script   send the script and ignore its results
 */
HEARTH_MUST_CHECK enum hearth_status hearth_pg_script_send(struct hearth_pg *pg, const char *sql,
                                                           enum hearth_pg_fault *ret_fault,
                                                           struct hearth_err *err);
HEARTH_MUST_CHECK enum hearth_status hearth_pg_script_next(struct hearth_pg *pg,
                                                           PGresult **ret_result,
                                                           enum hearth_pg_fault *ret_fault,
                                                           struct hearth_err *err);
HEARTH_MUST_CHECK enum hearth_status hearth_pg_script(struct hearth_pg *pg, const char *sql,
                                                      enum hearth_pg_fault *ret_fault,
                                                      struct hearth_err *err);

/*
 * A pipeline of prepared statements is one transaction and one round trip: without BEGIN, it ends
 * with _end. Only on a direct connection without a wall, outside a transaction.
 *   _begin    begin it
 *   _prepare  prepare a statement, whose name is free
 *   _run      run a prepared statement with n parameters in binary, at most
 *             HEARTH_PG_MAX_FIELDS; NULL values are NULL. Results are binary.
 *   _end      send the end of the transaction, which may be committed from now on
 *   _next     return the next result (free with PQclear), a statement's or that of preparing one;
 *             NULL when the transaction was committed
 * After a failure nothing of the pipeline is left: an open connection is outside a transaction, and
 * nothing was committed. What it has prepared may be there or not.
 */
#define HEARTH_PG_MAX_FIELDS 128
HEARTH_MUST_CHECK enum hearth_status hearth_pg_pipeline_begin(struct hearth_pg *pg,
                                                              enum hearth_pg_fault *ret_fault,
                                                              struct hearth_err *err);
HEARTH_MUST_CHECK enum hearth_status hearth_pg_pipeline_prepare(struct hearth_pg *pg,
                                                                const char *name, const char *sql,
                                                                enum hearth_pg_fault *ret_fault,
                                                                struct hearth_err *err);
HEARTH_MUST_CHECK enum hearth_status
hearth_pg_pipeline_run(struct hearth_pg *pg, const char *name, int n, const char *const *values,
                       const int *lengths, enum hearth_pg_fault *ret_fault, struct hearth_err *err);
HEARTH_MUST_CHECK enum hearth_status hearth_pg_pipeline_end(struct hearth_pg *pg,
                                                            enum hearth_pg_fault *ret_fault,
                                                            struct hearth_err *err);
HEARTH_MUST_CHECK enum hearth_status hearth_pg_pipeline_next(struct hearth_pg *pg,
                                                             PGresult **ret_result,
                                                             enum hearth_pg_fault *ret_fault,
                                                             struct hearth_err *err);

/*
 * Return the wall, which may be NULL, and remove it: the next transactions run as the owner, until
 * the caller sets pg->wall again. For work that a request needs, but no tenant may do: creating
 * partitions and services.
 */
const struct hearth_pg_params *hearth_pg_leave_wall(struct hearth_pg *pg);

/*
 * Begin a transaction: `begin` is the statement. The only way to begin one on a connection with a
 * wall, which refuses scripts outside a transaction.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_pg_begin(struct hearth_pg *pg, const char *begin,
                                                     enum hearth_pg_fault *ret_fault,
                                                     struct hearth_err *err);

/* Run ROLLBACK; close the connection when that fails. Does nothing outside a transaction. */
void hearth_pg_rollback(struct hearth_pg *pg);

/*
 * COPY within a script: _start sends the header, _put any number of whole or partial rows, _finish
 * the trailer and the end. The outcome of the COPY is the next result of the script.
 */
HEARTH_MUST_CHECK enum hearth_status
hearth_pg_copy_start(struct hearth_pg *pg, enum hearth_pg_fault *ret_fault, struct hearth_err *err);
HEARTH_MUST_CHECK enum hearth_status hearth_pg_copy_put(struct hearth_pg *pg,
                                                        struct hearth_str bytes,
                                                        enum hearth_pg_fault *ret_fault,
                                                        struct hearth_err *err);
HEARTH_MUST_CHECK enum hearth_status hearth_pg_copy_finish(struct hearth_pg *pg,
                                                           enum hearth_pg_fault *ret_fault,
                                                           struct hearth_err *err);

/* End the COPY with a failure instead: the statement and the script fail with this reason. */
HEARTH_MUST_CHECK enum hearth_status hearth_pg_copy_refuse(struct hearth_pg *pg, const char *reason,
                                                           enum hearth_pg_fault *ret_fault,
                                                           struct hearth_err *err);

/*
 * Run one query in single-row mode; `visit` gets a PGresult with one row each time (do not clear).
 */
typedef enum hearth_status hearth_pg_row_fn(void *context, const PGresult *row,
                                            struct hearth_err *err);
HEARTH_MUST_CHECK enum hearth_status
hearth_pg_stream(struct hearth_pg *pg, const char *sql, const struct hearth_pg_params *params,
                 struct hearth_cancel *cancel, hearth_pg_row_fn *visit, void *context,
                 enum hearth_pg_fault *ret_fault, struct hearth_err *err);

/*
 * Statements on several connections at the same time: each is sent ahead, and runs while the caller
 * fetches the result of another one. The next call on the connection is _exec, or _stream if
 * is_streamed, with the same text and parameters, which fetches the result; or _give_up. A
 * statement that does not begin its transaction (wall, read_only) is not sent, until that call.
 * Until then, all that PostgreSQL has to say waits in the buffers of the sockets.
 *   _send_ahead  send it, without waiting; after a failure the connection is closed
 *   _give_up     cancel what was sent ahead on the connections, and close them; waits for all
 *                together no longer than HEARTH_PG_CANCEL_WAIT_NS. At most HEARTH_PG_MAX_CANCELS.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_pg_send_ahead(struct hearth_pg *pg, const char *sql,
                                                          const struct hearth_pg_params *params,
                                                          bool is_streamed, struct hearth_err *err);
void hearth_pg_give_up(struct hearth_pg *const *pgs, size_t n);

/* Run COPY ... FROM STDIN (FORMAT binary) with all rows from one buffer. */
HEARTH_MUST_CHECK enum hearth_status
hearth_pg_copy(struct hearth_pg *pg, const char *copy_sql,
               struct hearth_str rows, /* header and trailer are added */
               enum hearth_pg_fault *ret_fault, struct hearth_err *err);

/* Binary COPY rows into a buffer. */
void hearth_copy_row(struct hearth_buf *out, int16_t n_fields);
void hearth_copy_i32(struct hearth_buf *out, int32_t value);
void hearth_copy_i64(struct hearth_buf *out, int64_t value);
void hearth_copy_bytes(struct hearth_buf *out, struct hearth_str value);
void hearth_copy_null(struct hearth_buf *out);
void hearth_copy_i32_array(struct hearth_buf *out, const int32_t *values, size_t n);
void hearth_copy_i64_array(struct hearth_buf *out, const int64_t *values, size_t n);
void hearth_copy_bytes_array(struct hearth_buf *out, const struct hearth_str *values, size_t n);

/* Reading binary columns of a result row. */
int32_t hearth_pg_i32(const PGresult *result, int row, int column);
int64_t hearth_pg_i64(const PGresult *result, int row, int column);
struct hearth_str hearth_pg_str(const PGresult *result, int row,
                                int column); /* {NULL, 0} for NULL */
bool hearth_pg_is_null(const PGresult *result, int row, int column);
/*
 * Read an array column of int4, int8, float8 or text into the arena. NO_MEMORY; CORRUPT for NULL
 * elements or more than one dimension.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_pg_i32_array(const PGresult *result, int row,
                                                         int column, struct hearth_arena *arena,
                                                         int32_t **ret, size_t *ret_n,
                                                         struct hearth_err *err);
HEARTH_MUST_CHECK enum hearth_status hearth_pg_i64_array(const PGresult *result, int row,
                                                         int column, struct hearth_arena *arena,
                                                         int64_t **ret, size_t *ret_n,
                                                         struct hearth_err *err);
HEARTH_MUST_CHECK enum hearth_status hearth_pg_f64_array(const PGresult *result, int row,
                                                         int column, struct hearth_arena *arena,
                                                         double **ret, size_t *ret_n,
                                                         struct hearth_err *err);
/* The same for text or bytea: _array copies the texts, _array_views borrow from the result. */
HEARTH_MUST_CHECK enum hearth_status
hearth_pg_str_array_views(const PGresult *result, int row, int column, struct hearth_arena *arena,
                          struct hearth_str **ret, size_t *ret_n, struct hearth_err *err);
HEARTH_MUST_CHECK enum hearth_status hearth_pg_str_array(const PGresult *result, int row,
                                                         int column, struct hearth_arena *arena,
                                                         struct hearth_str **ret, size_t *ret_n,
                                                         struct hearth_err *err);

#endif
