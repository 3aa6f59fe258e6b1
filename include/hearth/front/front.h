/*
 * front.h -- the network side: one port for gRPC (HTTP/2 without TLS) and HTTP/1.1 (Connect, JSON,
 * plain routes).
 *
 * An acceptor thread per front owns all listening sockets, looks at the first bytes of each
 * connection without taking them, and hands it to the gRPC core ("PRI ") or to the HTTP server.
 * Requests run on two pools: ingest and query. Nothing blocks a thread of the libraries.
 *
 * Threads: start and stop from one thread; everything else is internal.
 */
#ifndef HEARTH_FRONT_FRONT_H
#define HEARTH_FRONT_FRONT_H

#include "hearth/base/budget.h"
#include "hearth/base/cancel.h"
#include "hearth/engine/admin.h"
#include "hearth/engine/ingest.h"
#include "hearth/engine/query.h"

struct hearth_front;

/* Which part of the configuration is asked for. */
enum hearth_front_config {
    HEARTH_FRONT_CONFIG_ALL,     /* as it is in force */
    HEARTH_FRONT_CONFIG_DIFF,    /* what was set */
    HEARTH_FRONT_CONFIG_DEFAULT, /* what it would be if nothing was set */
};

/* Text for people, without secrets. Called from any thread. */
typedef void hearth_front_config_fn(void *context, enum hearth_front_config which,
                                    struct hearth_buf *out);

/*
 * The CPU profile of this process as gzipped pprof; takes duration_ns of the calling thread's time. RESOURCE_EXHAUSTED
 * when one is being taken.
 */
typedef enum hearth_status hearth_front_profile_fn(int64_t duration_ns,
                                                   struct hearth_cancel *cancel,
                                                   struct hearth_buf *out, struct hearth_err *err);

/* Of SkyWalking's agents. The booleans switch families of their methods: docs/reference/skywalking.md. */
struct hearth_agent_options {
    const char *token;  /* kept; NULL and "": none is asked */
    const char *tenant; /* kept; of those who name none; NULL and "": they have to */
    bool processes, ebpf, policies, trace_profiling, async_profiler, pprof;
    bool segments, meters, logs, management;
    const char *segments_keep; /* kept: "all", "profiled", "none"; NULL: all */
};

/* Of OpenTelemetry's protocol: docs/reference/otlp.md. */
struct hearth_otlp_options {
    bool traces;                        /* else its methods are unimplemented */
    const char *traces_ratio;           /* kept: a number from 0 to 1; NULL: 1 */
    const char *const *span_attributes; /* kept, NULL-terminated; NULL: none */
};

struct hearth_front_options {
    const char *const *listen; /* "HOST:PORT", "[::1]:4040", port 0 for any; NULL-terminated */
    bool multitenancy; /* X-Scope-OrgID required; else every request is tenant "anonymous" */
    int64_t
        max_connections; /* 8192 (lowered to what descriptors allow); above: accepted and closed at once, counted */
    int64_t max_header_bytes;       /* 64 KiB */
    int64_t max_streams;            /* concurrent calls of one gRPC connection; 256 */
    int64_t max_request_bytes;      /* inflated; as in limits */
    int64_t first_bytes_timeout_ns; /* a connection that says nothing is closed; 10 s */
    int64_t
        head_timeout_ns; /* a head, or HTTP/2's first frames, that takes longer is cut; 20 s; 0: none is */
    int64_t
        min_body_rate; /* bytes per second, over head_timeout_ns: a slower body is cut; 256; 0: none is */
    int64_t http_idle_timeout_ns; /* 120 s; never cuts a connection with a request in work */
    int64_t grpc_keepalive_ns;    /* ping of quiet connections; 60 s */
    int64_t default_deadline_ns;  /* of requests without one; 60 s; 0: none */
    unsigned ingest_threads, query_threads; /* 0: as the options say */
    int64_t max_query_memory_bytes;         /* arena of one query; as in limits */
    int64_t max_queued_requests;            /* per pool; 4096; above: UNAVAILABLE */
    int64_t memory_quota_bytes;             /* gRPC resource quota; 256 MiB, the least */
    struct hearth_agent_options agents;     /* "anonymous", no token, all on */
    struct hearth_otlp_options otlp;        /* off */
    /* Kept, borrowed until the front has stopped; NULL: no limit. */
    struct hearth_budget *query_memory;   /* all queries, with answers that are being sent */
    struct hearth_budget *push_memory;    /* all bodies, and pushes until they wait for a commit */
    const char *version;                  /* for buildinfo */
    hearth_front_config_fn *write_config; /* NULL: not offered */
    void *hooks_context;                  /* of write_config */
    hearth_front_profile_fn *cpu_profile; /* NULL: not offered */
};

/*
 * True when the server can do its work; else false and one line why. A line with true: what is wrong all the same; else
 * it is empty. Called from any thread.
 */
typedef bool hearth_front_ready_fn(void *context, char reason[256]);

void hearth_front_options_init(struct hearth_front_options *options);

HEARTH_MUST_CHECK
enum hearth_status
hearth_front_start(const struct hearth_front_options *options, struct hearth_ingest *ingest,
                   struct hearth_query_engine *query, struct hearth_admin *admin,
                   hearth_front_ready_fn *ready, /* for /ready and health checks */
                   void *ready_context, struct hearth_front **ret_front, struct hearth_err *err);
/* The i-th bound address as "127.0.0.1:4040"; NULL past the end. For port 0. */
const char *hearth_front_address(const struct hearth_front *front, size_t i);
/* /ready answers 503 from now on with this reason; listening goes on. */
void hearth_front_drain(struct hearth_front *front, const char *reason);
/* Stop accepting, let requests finish until the deadline, cancel the rest, free. NULL-safe. */
void hearth_front_stop(struct hearth_front *front, int64_t deadline_mono_ns);

#endif
