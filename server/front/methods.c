/* methods.c -- the table of RPCs, made from methods.def. */
#include "hearth/pb/adhocprofiles/v1/adhocprofiles.pb-c.h"
#include "hearth/pb/capabilities/v1/feature_flags.pb-c.h"
#include "hearth/pb/google/v1/profile.pb-c.h"
#include "hearth/pb/grpc/health/v1/health.pb-c.h"
#include "hearth/pb/grpc/reflection/v1/reflection.pb-c.h"
#include "hearth/pb/hearth/v1/access.pb-c.h"
#include "hearth/pb/hearth/v1/admin.pb-c.h"
#include "hearth/pb/hearth/v1/applications.pb-c.h"
#include "hearth/pb/hearth/v1/network.pb-c.h"
#include "hearth/pb/hearth/v1/policies.pb-c.h"
#include "hearth/pb/hearth/v1/processes.pb-c.h"
#include "hearth/pb/hearth/v1/profiles.pb-c.h"
#include "hearth/pb/hearth/v1/query.pb-c.h"
#include "hearth/pb/hearth/v1/tasks.pb-c.h"
#include "hearth/pb/hearth/v1/traces.pb-c.h"
#include "hearth/pb/hearth/v1/uploads.pb-c.h"
#include "hearth/pb/opentelemetry/proto/collector/profiles/v1development/profiles_service.pb-c.h"
#include "hearth/pb/opentelemetry/proto/collector/trace/v1/trace_service.pb-c.h"
#include "hearth/pb/push/v1/push.pb-c.h"
#include "hearth/pb/querier/v1/querier.pb-c.h"
#include "hearth/pb/settings/v1/recording_rules.pb-c.h"
#include "hearth/pb/settings/v1/settings.pb-c.h"
#include "hearth/pb/skywalking/v10/async_profiler.pb-c.h"
#include "hearth/pb/skywalking/v10/pprof.pb-c.h"
#include "hearth/pb/skywalking/v3/common.pb-c.h"
#include "hearth/pb/skywalking/v3/ebpf.pb-c.h"
#include "hearth/pb/skywalking/v3/logging.pb-c.h"
#include "hearth/pb/skywalking/v3/management.pb-c.h"
#include "hearth/pb/skywalking/v3/meter.pb-c.h"
#include "hearth/pb/skywalking/v3/profile.pb-c.h"
#include "hearth/pb/skywalking/v3/trace.pb-c.h"
#include "hearth/pb/types/v1/types.pb-c.h"
#include "hearth/pb/vcs/v1/vcs.pb-c.h"
#include "hearth/pb/version/v1/version.pb-c.h"

#include "handlers.h"
#include "rpc/unary.h"
#include "tables.h"

#define METHOD(service, method_, request_, response_, handle_, unary_, pool_, right_, flags_) \
    {.path = "/" service "/" method_,                                                         \
     .request = &request_##__descriptor,                                                      \
     .response = &response_##__descriptor,                                                    \
     .handle = (handle_),                                                                     \
     .unary = (unary_),                                                                       \
     .pool = HEARTH_POOL_##pool_,                                                             \
     .right = HEARTH_RIGHT_##right_,                                                          \
     .flags = (flags_)},

static const struct hearth_method g_methods[] = {
#define X(id, service, method, request, response, handler, pool, right, flags) \
    METHOD(service, method, request, response, handler, NULL, pool, right, flags)
#define UNARY(id, service, method, request, response, handler, pool, right, flags) \
    METHOD(service, method, request, response, hearth_rpc_run_unary, handler, pool, right, flags)
#include "methods.def"
#undef X
#undef UNARY
};

const struct hearth_method_table hearth_method_table = {
    .methods = g_methods,
    .n = HEARTH_ARRAY_LEN(g_methods),
};
