/* methods.h -- the table of RPCs (methods.def) and their handlers. Threads: immutable. */
#ifndef HEARTH_FRONT_METHODS_H
#define HEARTH_FRONT_METHODS_H

#include "hearth/base/str.h"

struct hearth_rpc;
struct ProtobufCMessageDescriptor;

enum hearth_method_pool {
    HEARTH_POOL_INGEST,
    HEARTH_POOL_QUERY,
};

enum hearth_method_flags {
    HEARTH_METHOD_TENANT = 1u << 0, /* belongs to a tenant */
    HEARTH_METHOD_INLINE = 1u << 1, /* small ones run on the transport's thread: never blocks */
    HEARTH_METHOD_STREAM = 1u << 2, /* the server streams; gRPC only */
};

struct hearth_method {
    const char *path; /* "/package.Service/Method" */
    const struct ProtobufCMessageDescriptor *request, *response;
    void (*handle)(struct hearth_rpc *rpc);
    enum hearth_method_pool pool;
    unsigned flags;
};

/* The method of a path, or NULL. */
const struct hearth_method *hearth_method_find(struct hearth_str path);
/* True for "" (the whole server) and the name of a service of the table. */
bool hearth_service_is_known(struct hearth_str service);

/* The handlers; each ends its request exactly once. */
void hearth_svc_push(struct hearth_rpc *rpc);
void hearth_svc_profile_types(struct hearth_rpc *rpc);
void hearth_svc_label_names(struct hearth_rpc *rpc);
void hearth_svc_label_values(struct hearth_rpc *rpc);
void hearth_svc_series(struct hearth_rpc *rpc);
void hearth_svc_select_merge_stacktraces(struct hearth_rpc *rpc);
void hearth_svc_select_merge_profile(struct hearth_rpc *rpc);
void hearth_svc_select_series(struct hearth_rpc *rpc);
void hearth_svc_explain(struct hearth_rpc *rpc);
void hearth_svc_admin_status(struct hearth_rpc *rpc);
void hearth_svc_admin_doctor(struct hearth_rpc *rpc);
void hearth_svc_admin_rebuild(struct hearth_rpc *rpc);
void hearth_svc_admin_erase(struct hearth_rpc *rpc);
void hearth_svc_admin_erasures(struct hearth_rpc *rpc);
void hearth_svc_admin_get_retention(struct hearth_rpc *rpc);
void hearth_svc_admin_set_retention(struct hearth_rpc *rpc);
void hearth_svc_health_check(struct hearth_rpc *rpc);
void hearth_svc_health_watch(struct hearth_rpc *rpc);

#endif
