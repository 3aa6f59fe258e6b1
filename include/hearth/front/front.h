/*
 * front.h -- the network side: each port serves gRPC (HTTP/2) and HTTP/1.1 (Connect, gRPC,
 * gRPC-Web, plain routes), plain or over TLS.
 *
 * One acceptor thread owns all listening sockets, peeks at the first bytes of each connection, and
 * hands it to the gRPC core ("PRI ") or to the HTTP server. Requests run on two pools: ingest and
 * query. Nothing blocks a thread of the libraries.
 *
 * Threads: start and stop from one thread; hearth_front_drain from any.
 */
#ifndef HEARTH_FRONT_FRONT_H
#define HEARTH_FRONT_FRONT_H

#include "hearth/base/budget.h"
#include "hearth/base/cancel.h"
#include "hearth/base/secret.h"
#include "hearth/engine/access_control.h"
#include "hearth/engine/admin.h"
#include "hearth/engine/ingest.h"
#include "hearth/engine/ingest_errors.h"
#include "hearth/engine/query.h"
#include "hearth/engine/spool.h"

struct hearth_front;
struct hearth_listeners;
struct hearth_tenant_uses;

/* A part of the configuration. */
enum hearth_front_config {
    HEARTH_FRONT_CONFIG_ALL,     /* the values in force */
    HEARTH_FRONT_CONFIG_DIFF,    /* the options that were set */
    HEARTH_FRONT_CONFIG_DEFAULT, /* the defaults */
    HEARTH_FRONT_CONFIG_CHANGED, /* on one line: options whose values are not the defaults */
    HEARTH_FRONT_CONFIG_PROBLEM, /* on one line: what the last reload left undone; empty: nothing */
    /* On one line: options that have other values in their sources now than in effect; empty: none.
     * Reads files. */
    HEARTH_FRONT_CONFIG_UNAPPLIED,
};

/* Appends the configuration as text for people, without secrets. Called from any thread. */
typedef void hearth_front_config_fn(void *context, enum hearth_front_config which,
                                    struct hearth_buf *out);

/*
 * Appends a CPU profile of this process as gzipped pprof; blocks the calling thread for
 * duration_ns. RESOURCE_EXHAUSTED if another profile is being taken.
 */
typedef enum hearth_status hearth_front_profile_fn(int64_t duration_ns,
                                                   struct hearth_cancel *cancel,
                                                   struct hearth_buf *out, struct hearth_err *err);

/* Options for SkyWalking agents: docs/reference/skywalking.md. Pointers are kept. */
struct hearth_agent_options {
    /* Agents must send it; NULL: no token is needed. */
    _Atomic(const struct hearth_secret *) token;
    const char *tenant; /* of agents that name no tenant; NULL and "": agents must name one */
    /* Switches of families of methods: true is on. */
    bool processes, ebpf, policies, trace_profiling, async_profiler, pprof;
    bool segments, meters, logs, management;
    const char *segments_keep; /* "all", "profiled" or "none"; NULL: all */
};

/* Options for OTLP: docs/reference/otlp.md. Pointers are kept. */
struct hearth_otlp_options {
    bool traces;                        /* false: the methods are UNIMPLEMENTED */
    const char *traces_ratio;           /* a number from 0 to 1; NULL: 1 */
    const char *const *span_attributes; /* NULL-terminated; NULL: none */
};

/* Traces of the front's own requests: docs/observability/README.md. */
struct hearth_own_traces_options {
    const char *url; /* of a receiver of OTLP/HTTP; kept; NULL or "": none */
    int64_t one_in;  /* new traces for each that is recorded; at least 1 */
};

/*
 * Issuers of OpenID Connect: docs/reference/authentication.md. Pointers are kept; texts are never
 * NULL.
 */
struct hearth_oidc_options {
    const char *const *issuers; /* "https://HOST/PATH" or "NAME=https://..."; NULL-terminated */
    const char *audience;       /* that JWTs are for; "": client_id */
    const char *client_id;      /* of log-ins by people, at the first issuer; "": none */
    struct hearth_secret *client_secret; /* NULL: a public client */
    const char *redirect_url;            /* of /api/v1/oidc/callback, as browsers reach it */
    const char *scopes;
    const char *subject_claim, *groups_claim;
    const char *ca_file;              /* PEM; "": the authorities of the system */
    const char *const *private_hosts; /* besides the issuers' own; NULL-terminated; NULL: none */
    int64_t clock_skew_ns;            /* at most 10 min */
    int64_t refresh_ns;               /* between two fetches of the keys; at least 10 s */
    int64_t keys_max_age_ns; /* how long they hold while the issuer is away; >= refresh_ns */
    int64_t max_cached;      /* verified JWTs in memory */
    int64_t max_logins;      /* that are finished at the same time */
};

enum hearth_client_auth {
    HEARTH_CLIENT_AUTH_NONE,    /* clients are not asked for certificates */
    HEARTH_CLIENT_AUTH_REQUEST, /* a client may send none; one that it sends must be valid */
    HEARTH_CLIENT_AUTH_REQUIRE,
};

/* TLS of listeners that begin with https://. Texts are copied. */
struct hearth_tls_options {
    const char *cert_file, *key_file; /* PEM; the certificate may be followed by its chain */
    const char *client_ca_file;       /* PEM; verifies clients; NULL or empty: none */
    enum hearth_client_auth client_auth;
    bool only_tls13;  /* false: TLS 1.2, too */
    unsigned threads; /* for relays; 0: half the number of processors, at least 1, at most 8 */
};

struct hearth_front_options {
    /* ---- connections ---- */

    const char *const *listen; /* texts of listen_text.h; port 0 for any; NULL-terminated */
    /* Sockets that hearth_front_bind has bound; hearth_front_start takes their descriptors. NULL:
     * it binds `listen`. */
    struct hearth_listeners *bound;
    unsigned auth_modes; /* enum hearth_auth_mode; default HEARTH_AUTH_NONE */
    /* Headers of an authenticating proxy; NULL or "": none. Kept. */
    const char *proxy_user_header, *proxy_groups_header;
    /* Addresses such as "10.0.0.0/8" whose headers are believed; NULL-terminated; kept. */
    const char *const *proxy_trusted;
    struct hearth_oidc_options oidc; /* default: no issuers */
    int64_t session_max_ns;          /* how long a browser keeps the cookie of a session */
    struct hearth_access *access;  /* credentials and the audit log; borrowed; NULL: none (tests) */
    struct hearth_tls_options tls; /* default: no files */
    bool multitenancy;        /* X-Scope-OrgID is required; otherwise every tenant is "anonymous" */
    int64_t max_read_tenants; /* of one request, "a|b"; at least 1; default 16 */
    /* Lowered to fit the limit of open files. More connections are accepted, closed and counted. */
    int64_t max_connections;        /* default 8192 */
    int64_t max_header_bytes;       /* default 64 KiB */
    int64_t max_streams;            /* concurrent calls of one gRPC connection; default 256 */
    int64_t first_bytes_timeout_ns; /* a connection without any bytes is closed; default 10 s */
    /* A head, or the first frames of HTTP/2, that takes longer is cut; 0: never. Default 20 s. */
    int64_t head_timeout_ns;
    /* A body slower than so many bytes per second over head_timeout_ns is cut; so is a gRPC call
     * whose client takes the answer more slowly, and longer than that. 0: never. Default 256. */
    int64_t min_body_rate;
    /* An idle connection is closed, but never one with a request in work. Default 120 s. */
    int64_t http_idle_timeout_ns;
    int64_t grpc_keepalive_ns; /* between pings on quiet connections; default 60 s */

    /* ---- requests ---- */

    /* What an option of hearthd does: a sentence, static; NULL: unknown. May itself be NULL. */
    const char *(*option_help)(const char *name);
    int64_t max_request_bytes;          /* decompressed; default 64 MiB */
    int64_t default_deadline_ns;        /* for requests without a deadline; 0: none; default 60 s */
    unsigned ingest_threads;            /* 0: twice the number of processors, at least 16 */
    unsigned query_threads;             /* 0: twice the number of processors */
    int64_t max_query_memory_bytes;     /* for one query; default 384 MiB */
    int64_t max_queued_requests;        /* per pool; beyond it, UNAVAILABLE; default 4096 */
    int64_t memory_quota_bytes;         /* of the gRPC core; at least and by default 256 MiB */
    struct hearth_agent_options agents; /* default: tenant "anonymous", no token, all on */
    struct hearth_otlp_options otlp;    /* default: off */
    struct hearth_own_traces_options own_traces; /* default: none */
    /* Protocols whose files are kept as sent: "datadog", "ingest", "push". NULL-terminated; NULL:
     * none. */
    const char *const *keep_originals;
    /* Budgets, borrowed until the front has stopped; NULL: no limit. */
    struct hearth_budget *query_memory; /* for all queries and for answers that are being sent */
    struct hearth_budget *push_memory; /* for all bodies, and pushes until they wait for a commit */
    struct hearth_tenant_uses *tenant_uses;     /* counts what tenants use; borrowed; may be NULL */
    struct hearth_spool *spool;                 /* for the doctor; borrowed; NULL: none */
    struct hearth_ingest_errors *ingest_errors; /* notes refused uploads; borrowed; may be NULL */

    /* ---- the process ---- */

    const char *version;                  /* for buildinfo; copied */
    hearth_front_config_fn *write_config; /* NULL: not offered */
    void *hooks_context;                  /* of write_config */
    hearth_front_profile_fn *cpu_profile; /* NULL: not offered */
};

/*
 * True if the server can work; otherwise false, with the reason in one line. With true, `reason` is
 * a line about a problem that does not stop the work, or empty. Called from any thread.
 */
typedef bool hearth_front_ready_fn(void *context, char reason[256]);

/* True for an address or a range such as "10.0.0.0/8" (proxy_trusted). */
bool hearth_address_range_is_valid(const char *text);
/* Sets the defaults. */
void hearth_front_options_init(struct hearth_front_options *options);

/*
 * Checks what hearth_front_start would refuse after other parts have been started: options out of
 * their range, and the files of TLS, which it reads. INVALID_ARGUMENT; NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_front_check(const struct hearth_front_options *options,
                                      struct hearth_err *err);
/*
 * Bind the addresses, before the process gives up the right to use ports below 1024. Nothing is
 * accepted yet. An address of one of `sockets` is not bound; that socket is taken instead. At most
 * 16 sockets. Errors: those of hearth_front_start for addresses; INVALID_ARGUMENT for a socket that
 * does not listen, or whose address is not in `listen`.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_front_bind(const char *const *listen, const int *sockets,
                                     size_t n_sockets, struct hearth_listeners **ret,
                                     struct hearth_err *err);
/*
 * Duplicate the descriptors: connections that come while no front has them wait for the next one.
 * NO_MEMORY; UNAVAILABLE without a free descriptor.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_front_share(const struct hearth_listeners *bound,
                                      struct hearth_listeners **ret, struct hearth_err *err);
/* Close the sockets that were not taken, and free. NULL-safe. */
void hearth_front_unbind(struct hearth_listeners *bound);

/*
 * Starts the front: binds all addresses, starts all threads. Engine and budgets are borrowed until
 * hearth_front_stop.
 *
 * Returns  OK; INVALID_ARGUMENT for an option out of its range or a malformed address; UNAVAILABLE
 *          if an address cannot be bound or a thread cannot be started; NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status
hearth_front_start(const struct hearth_front_options *options, struct hearth_ingest *ingest,
                   struct hearth_query_engine *query, struct hearth_admin *admin,
                   hearth_front_ready_fn *ready, /* for /ready and health checks */
                   void *ready_context, struct hearth_front **ret_front, struct hearth_err *err);
/* The i-th bound address, such as "127.0.0.1:4040"; NULL after the last one. Tells which port was
 * chosen for port 0. */
const char *hearth_front_address(const struct hearth_front *front, size_t i);
/* Time until which all periodic threads of the front are known to have run, by the monotonic clock.
 * It is at most a few seconds ago, unless one of them hangs. From any thread. */
int64_t hearth_front_progress_ns(const struct hearth_front *front);
/* True if the i-th bound address uses TLS. */
bool hearth_front_is_tls(const struct hearth_front *front, size_t i);
/*
 * INVALID_ARGUMENT for options that no front could start with. _reload gets them afterwards; the
 * ways to authenticate stay as at the start.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_front_check_reload(const struct hearth_front *front,
                                             const struct hearth_front_options *options,
                                             struct hearth_err *err);
/*
 * Uses the token of agents and the options of OpenID Connect from these options, which are kept as
 * long as the front and have been checked, and fetches the issuers' keys again. From one thread.
 */
void hearth_front_reload(struct hearth_front *front, const struct hearth_front_options *options);
/* Loads the files of TLS again; after a failure, which is logged, the old ones stay. Not
 * thread-safe: one thread calls this and hearth_front_check_tls. */
void hearth_front_load_tls(struct hearth_front *front);
/* Loads the files of TLS if one has changed. Reads them once a minute at most. */
void hearth_front_check_tls(struct hearth_front *front);
/* From now on /ready answers 503 with this reason. The front still accepts connections. */
void hearth_front_drain(struct hearth_front *front, const char *reason);
/* Stops accepting, lets requests finish until the deadline, cancels the rest, frees. NULL-safe. */
void hearth_front_stop(struct hearth_front *front, int64_t deadline_mono_ns);

#endif
