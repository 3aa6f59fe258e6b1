/*
 * method.h -- what the front knows of an RPC or of a plain route: path, messages, handler, pool.
 *
 * The table of all RPCs is made from methods.def by methods.c; front.c hands it to the transports.
 *
 * Threads: immutable.
 */
#ifndef HEARTH_FRONT_METHOD_H
#define HEARTH_FRONT_METHOD_H

#include "hearth/base/status.h"
#include "hearth/base/str.h"
#include "hearth/model/access.h"

struct hearth_rpc;
struct ProtobufCMessage;
struct ProtobufCMessageDescriptor;

/* The pool of threads that runs the handler. */
enum hearth_method_pool {
    HEARTH_POOL_INGEST,
    HEARTH_POOL_QUERY,
};

enum hearth_method_flags {
    /* Works on the data of a tenant, so a request must have one. */
    HEARTH_METHOD_TENANT = 1u << 0,
    /* Small requests run on the transport's thread. The handler never blocks. */
    HEARTH_METHOD_INLINE = 1u << 1,
    /* The server streams. gRPC only. */
    HEARTH_METHOD_STREAM = 1u << 2,
    /* Both stream, with one answer for each message. The handler runs on the transport's thread for
     * each message, sets rpc->answer and rpc->status, and does not end the request. */
    HEARTH_METHOD_CHAT = 1u << 3,
    /* The client streams; with STREAM, both do. gRPC only. See "collecting" in rpc.h. */
    HEARTH_METHOD_COLLECT = 1u << 4,
    /* A method of SkyWalking agents: their token is checked, agent-tenant is the default tenant,
     * and its family can be switched off (agent_methods.h). */
    HEARTH_METHOD_AGENT = 1u << 5,
    /* A method of OTLP: errors of its plain routes are messages of the type google.rpc.Status. */
    HEARTH_METHOD_OTLP = 1u << 6,
    /* Receives profiles: refusals are counted by reason and client. */
    HEARTH_METHOD_UPLOAD = 1u << 7,
    /* Receives spans by OTLP: UNIMPLEMENTED unless otlp-traces switches it on. */
    HEARTH_METHOD_SPANS = 1u << 8,
    /* Without HEARTH_METHOD_TENANT: the right in some tenant is enough; the handler finds out in
     * which. Otherwise a method without a tenant needs the right in all tenants. */
    HEARTH_METHOD_SOME_TENANT = 1u << 9,
    /* Each call is written to the audit log. */
    HEARTH_METHOD_AUDIT = 1u << 10,
    /* The request has secrets: the audit log gets what the handler says (hearth_rpc_set_object),
     * not the request. */
    HEARTH_METHOD_SECRET = 1u << 11,
    /* The handler reads the body itself (hearth_body_wire); `request` is NULL. */
    HEARTH_METHOD_WIRE = 1u << 12,
    /* Reads several tenants, "a|b", and merges their data. Only methods that read. */
    HEARTH_METHOD_MANY_TENANTS = 1u << 13,
};

/* Fills the initialised answer of a request; the status ends it (unary.h). */
typedef enum hearth_status hearth_unary_fn(struct hearth_rpc *rpc,
                                           const struct ProtobufCMessage *request,
                                           struct ProtobufCMessage *answer);

struct hearth_method {
    const char *path;                                            /* "/package.Service/Method" */
    const struct ProtobufCMessageDescriptor *request, *response; /* NULL: a plain HTTP route */
    void (*handle)(struct hearth_rpc *rpc); /* ends the request, now or later */
    hearth_unary_fn *unary; /* called by `handle` of unary methods; otherwise NULL */
    enum hearth_method_pool pool;
    enum hearth_right right; /* what the caller needs */
    unsigned flags;
};

/* All RPCs, in the order of methods.def. */
struct hearth_method_table {
    const struct hearth_method *methods;
    size_t n;
};

/*
 * The method of a path; NULL if there is none. Methods of skywalking.v3 are also found without
 * their package, methods of push.v1 also below /api/v1/profile.
 */
const struct hearth_method *hearth_method_find(const struct hearth_method_table *table,
                                               struct hearth_str path);

/* "package.Service", a view of the method's path; not for plain routes. */
struct hearth_str hearth_method_service(const struct hearth_method *method);

/* The services of the table, each once, in order of their first method. Returns their number; ret
 * has room for table->n. */
size_t hearth_method_services(const struct hearth_method_table *table, struct hearth_str *ret);

/* True for "" (the whole server) and the name of a service of the table. */
bool hearth_service_is_known(const struct hearth_method_table *table, struct hearth_str service);

/* Declares the metric of each method whose messages are counted, so that /metrics shows it from the
 * start. */
void hearth_methods_declare_metrics(const struct hearth_method_table *table);

#endif
