/*
 * client.h -- libhearth, the client library: blocking calls to a Hearth server over gRPC.
 *
 * This header needs no other header of Hearth. A program is compiled and linked with
 * `pkg-config --cflags --libs hearth`; docs/how-to/client-library.md has a complete example.
 *
 * Calls: each function that makes calls returns the status of the last one. Its `error`, which may
 *        be NULL, then has the message of the server, or says why no answer was received.
 * Time:  a call ends after `timeout_ms` of the client at the latest, with all of its repetitions.
 * Retry: a call that may be repeated is repeated for `retry_ms` while the server is unavailable: it
 *        restarts, or its database is away. Repeatable are calls that only read, and pushes whose
 *        profiles have an id, since the server stores an id once within an hour. A server that was
 *        never reached is reported at once.
 * Units: times are milliseconds since 1970-01-01 UTC.
 *
 * Ownership: texts and bytes of the caller are borrowed during the call. Each answer has a function
 *            that frees it.
 * Threads:   safe: several threads may make calls with one client. hearth_client_set_token and
 *            hearth_client_free need the client alone. Callbacks run in the thread of their call.
 *            After fork(), the child must not use clients of its parent.
 * Source:    gRPC over HTTP/2, without or with TLS, directly or through a proxy by HTTP's CONNECT;
 *            the messages are those of proto/.
 */
#ifndef HEARTH_CLIENT_H
#define HEARTH_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Functions that the library exports; the result of a CHECK function must be used. */
#define HEARTH_CLIENT_API   __attribute__((visibility("default")))
#define HEARTH_CLIENT_CHECK HEARTH_CLIENT_API __attribute__((warn_unused_result))

/* The numbers of gRPC. */
enum hearth_client_status {
    HEARTH_CLIENT_OK = 0,
    HEARTH_CLIENT_CANCELLED = 1,           /* a callback ended the call */
    HEARTH_CLIENT_UNKNOWN = 2,             /* by servers other than Hearth only */
    HEARTH_CLIENT_INVALID_ARGUMENT = 3,    /* the request breaks a rule */
    HEARTH_CLIENT_DEADLINE_EXCEEDED = 4,   /* no answer within timeout_ms */
    HEARTH_CLIENT_NOT_FOUND = 5,           /* the named object does not exist */
    HEARTH_CLIENT_ALREADY_EXISTS = 6,      /* the object exists with other content */
    HEARTH_CLIENT_PERMISSION_DENIED = 7,   /* the credential does not allow this */
    HEARTH_CLIENT_RESOURCE_EXHAUSTED = 8,  /* a limit was reached, or memory is short */
    HEARTH_CLIENT_FAILED_PRECONDITION = 9, /* not in the present state */
    HEARTH_CLIENT_ABORTED = 10,            /* something changed meanwhile */
    HEARTH_CLIENT_OUT_OF_RANGE = 11,       /* a value is out of its range */
    HEARTH_CLIENT_UNIMPLEMENTED = 12,      /* this server does not offer it */
    HEARTH_CLIENT_INTERNAL = 13,           /* an error in Hearth */
    HEARTH_CLIENT_UNAVAILABLE = 14,        /* cannot be reached, or a part of it is away */
    HEARTH_CLIENT_DATA_LOSS = 15,          /* stored data failed a check */
    HEARTH_CLIENT_UNAUTHENTICATED = 16,    /* the credential is missing or wrong */
};

struct hearth_client_error {
    enum hearth_client_status status;
    /* The connection or the time ended after the request was sent: it may have been carried out. */
    bool is_open;
    char text[480]; /* one sentence in UTF-8: lower case, no full stop */
};

struct hearth_client;

#define HEARTH_CLIENT_MAX_HEADERS      32
#define HEARTH_CLIENT_MAX_HEADER_BYTES ((size_t)4 << 10) /* of a name with its value */

struct hearth_client_options {
    const char *url;    /* http://HOST:PORT, https://HOST:PORT or HOST:PORT */
    const char *tenant; /* X-Scope-OrgID; NULL: not sent */
    /* Sent with each call as gRPC metadata: texts "NAME: VALUE", at most HEARTH_CLIENT_MAX_HEADERS;
     * copied. */
    const char *const *headers;
    size_t n_headers;
    /* http://[USER:PASSWORD@]HOST:PORT of a proxy, which connects to the server; NULL: none. The
     * proxy resolves the server's name. Without TLS, the proxy can read the calls. */
    const char *proxy;
    int64_t timeout_ms;      /* time limit of one call; default 60,000 */
    int64_t retry_ms;        /* how long calls are repeated; default 10,000; 0: they are not */
    size_t max_answer_bytes; /* largest answer; default 1 GiB */
    /* For https, PEM files; all are read by hearth_client_new. */
    const char *ca_file; /* authorities that the server is verified by; NULL: the system's */
    const char *cert_file, *key_file; /* the client's certificate and its key; NULL: none */
    bool skip_verify; /* accept any certificate of any server: anybody between can read and write */
    /* Called for each decoded note of an answer (hearth-note: what the answer lacks, or what was
     * changed) in the thread of the call, before it returns. The text is valid during the callback.
     * NULL: notes are ignored. */
    void (*note)(void *context, const char *text);
    void *note_context;
    /* Called each second, in the thread of the call, while a call that has lasted waiting_after_ms
     * has no answer; then once with HEARTH_CLIENT_WAITED. It may make calls of other clients.
     * NULL: not called. */
    void (*waiting)(void *context, int64_t waited_ms);
    void *waiting_context;
    int64_t waiting_after_ms;
};

#define HEARTH_CLIENT_WAITED (-1) /* in place of waited_ms: the call has ended */

HEARTH_CLIENT_API void hearth_client_options_init(struct hearth_client_options *options);

/*
 * Does not connect. INVALID_ARGUMENT for a malformed URL of the server or the proxy, for a header
 * that HTTP, gRPC or the client set themselves or that they cannot carry, or for a file of TLS that
 * cannot be read or is given without https; RESOURCE_EXHAUSTED if memory is refused. No message
 * contains the value of a header.
 */
HEARTH_CLIENT_CHECK
enum hearth_client_status hearth_client_new(const struct hearth_client_options *options,
                                            struct hearth_client **ret_client,
                                            struct hearth_client_error *error);
HEARTH_CLIENT_API void hearth_client_free(struct hearth_client *client); /* NULL-safe */

/*
 * Sends the token with each later call, as "authorization: Bearer TOKEN". Keeps a copy. Not while
 * calls run. INVALID_ARGUMENT for an empty text and one with other bytes than visible ASCII, which
 * no header can carry, and if the client has this header already; the message does not contain the
 * text. RESOURCE_EXHAUSTED.
 */
HEARTH_CLIENT_CHECK
enum hearth_client_status hearth_client_set_token(struct hearth_client *client, const char *token,
                                                  struct hearth_client_error *error);

/* ---- any method of proto/ ---- */

/* Bytes that a call gives, followed by a NUL that n does not count. */
struct hearth_client_bytes {
    char *p;
    size_t n;
};
HEARTH_CLIENT_API void hearth_client_bytes_free(struct hearth_client_bytes *bytes);

/* One unary call, "querier.v1.QuerierService/Series", with an encoded message of protobuf. */
HEARTH_CLIENT_CHECK
enum hearth_client_status hearth_client_call(struct hearth_client *client, const char *method,
                                             const void *request, size_t n,
                                             struct hearth_client_bytes *ret_answer,
                                             struct hearth_client_error *error);

/* Called with each encoded message of a stream; false ends the stream with CANCELLED. */
typedef bool hearth_client_message_fn(void *context, const void *message, size_t n);
/*
 * Calls a method that answers with a stream, such as "grpc.health.v1.Health/Watch". Returns when
 * the server ends the stream, or after for_ms. It is not repeated.
 */
HEARTH_CLIENT_CHECK
enum hearth_client_status hearth_client_stream(struct hearth_client *client, const char *method,
                                               const void *request, size_t n, int64_t for_ms,
                                               hearth_client_message_fn *message, void *context,
                                               struct hearth_client_error *error);

/* ---- push ---- */

struct hearth_client_label {
    const char *name, *value;
};

/* The labels service_name and __name__ ("process_cpu", "memory", ...) are required. */
struct hearth_client_profile {
    const struct hearth_client_label *labels;
    size_t n_labels;
    const void *pprof; /* profile.proto: plain, gzip or zstd */
    size_t n_bytes;
    /*
     * The profile is stored once within an hour under this id. NULL: a random id for this call, so
     * that the library can repeat it; a second call then stores the profile once more.
     */
    const char *id;
};

struct hearth_client_pushed {
    /* What the server did not store or changed, by reason: "repeated_profiles=1". Often empty. */
    char dropped[256];
};

/*
 * Stores all profiles or, on failure, none or all of them (error->is_open). ret may be NULL.
 * Success means that they are committed in the database.
 */
HEARTH_CLIENT_CHECK
enum hearth_client_status hearth_client_push(struct hearth_client *client,
                                             const struct hearth_client_profile *profiles, size_t n,
                                             struct hearth_client_pushed *ret,
                                             struct hearth_client_error *error);

/* ---- flame graphs ---- */

struct hearth_client_query {
    const char *selector;   /* "{service_name=\"api\"}" */
    const char *type;       /* "process_cpu:cpu:nanoseconds:cpu:nanoseconds" */
    int64_t from_ms, to_ms; /* both ends included */
    int64_t max_nodes;      /* 0: the server's default */
};

struct hearth_client_node {
    const char *name; /* "other": nodes beyond max_nodes */
    int64_t self, total;
    uint32_t parent; /* index of the caller; its own index for the root */
};

/* A merged flame graph. nodes[0] is the root; parents stand before their children. n_nodes is 0 if
 * the query has no data. */
struct hearth_client_flame {
    const char *unit; /* "nanoseconds", "bytes", "count", ... */
    int64_t total;
    size_t n_nodes;
    const struct hearth_client_node *nodes;
};

HEARTH_CLIENT_CHECK
enum hearth_client_status hearth_client_flame(struct hearth_client *client,
                                              const struct hearth_client_query *query,
                                              const struct hearth_client_flame **ret,
                                              struct hearth_client_error *error);
HEARTH_CLIENT_API void hearth_client_flame_free(const struct hearth_client_flame *flame);

/* ---- profiling tasks ---- */

enum hearth_client_task_kind {
    HEARTH_CLIENT_TASK_ON_CPU = 1,
    HEARTH_CLIENT_TASK_OFF_CPU = 2,
    HEARTH_CLIENT_TASK_NETWORK = 3,
    HEARTH_CLIENT_TASK_TRACE = 4,
    HEARTH_CLIENT_TASK_ASYNC_PROFILER = 5,
    HEARTH_CLIENT_TASK_PPROF = 6,
};

/* What is 0 or NULL is not set; which fields a kind needs: docs/reference/api-tasks.md. */
struct hearth_client_task_request {
    enum hearth_client_task_kind kind;
    const char *service;
    const char *instance;         /* network */
    const char *const *instances; /* async-profiler, pprof */
    size_t n_instances;
    const char *endpoint;      /* trace */
    const char *const *events; /* async-profiler, pprof */
    size_t n_events;
    int64_t start_ms; /* 0: now */
    int64_t duration_ms;
    int32_t min_duration_ms, dump_period_ms, max_samples; /* trace; pprof: dump_period_ms */
};

/* Creates a task. *ret_id is its id. It is not repeated: look with ListTasks if error->is_open. */
HEARTH_CLIENT_CHECK
enum hearth_client_status hearth_client_task_create(struct hearth_client *client,
                                                    const struct hearth_client_task_request *task,
                                                    struct hearth_client_bytes *ret_id,
                                                    struct hearth_client_error *error);

struct hearth_client_task {
    const char *id;
    const char *state;  /* without its prefix: "RUNNING", "FINISHED", ... of tasks.proto */
    const char *reason; /* a sentence; may be empty */
    bool has_ended;
    bool has_data; /* FINISHED; false for tasks that failed or sampled nothing */
};

/* Called with the first state and each later one; false ends the call with CANCELLED. */
typedef bool hearth_client_task_fn(void *context, const struct hearth_client_task *task);

/* Follows a task until it has ended, by a call each second; after for_ms DEADLINE_EXCEEDED.
 * INT64_MAX: no limit. */
HEARTH_CLIENT_CHECK
enum hearth_client_status hearth_client_task_follow(struct hearth_client *client, const char *id,
                                                    int64_t for_ms, hearth_client_task_fn *changed,
                                                    void *context,
                                                    struct hearth_client_error *error);

#ifdef __cplusplus
}
#endif

#endif
