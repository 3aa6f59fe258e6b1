/* svc_ingest_errors.c -- hearth.v1.AdminService: uploads that were refused. */
#include "hearth/engine/ingest_errors.h"
#include "hearth/pb/hearth/v1/admin.pb-c.h"

#include "handlers.h"
#include "rpc/front_internal.h"
#include "rpc/message_map.h"
#include "rpc/unary.h"

#include <inttypes.h>

static void fill_body_hash(struct hearth_rpc *rpc, const void *from, void *message)
{
    const struct hearth_ingest_error *error = from;
    Hearth__V1__IngestError *out = message;

    if (error->body_hash != 0) {
        out->body_hash =
            hearth_arena_printf(&rpc->arena, "%016" PRIx64, (uint64_t)error->body_hash);
    }
}

HEARTH_MAP_TYPES(ingest_error, struct hearth_ingest_error, Hearth__V1__IngestError);
static const struct hearth_message_member ingest_error_members[] = {
    HEARTH_MAP(ingest_error, last_ms, last_ms), HEARTH_MAP(ingest_error, first_ms, first_ms),
    HEARTH_MAP(ingest_error, n, uploads),       HEARTH_MAP(ingest_error, client, client),
    HEARTH_MAP(ingest_error, route, route),     HEARTH_MAP(ingest_error, code, code),
    HEARTH_MAP(ingest_error, message, message), HEARTH_MAP(ingest_error, n_bytes, body_bytes),
};
static const struct hearth_message_map ingest_error_map =
    HEARTH_MESSAGE_MAP_AND(ingest_error, hearth__v1__ingest_error__descriptor, fill_body_hash);

HEARTH_UNARY(hearth_svc_admin_ingest_errors, Hearth__V1__IngestErrorsRequest,
             Hearth__V1__IngestErrorsResponse)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    const struct hearth_ingest_errors_query query = {.from_ms = in->from_ms,
                                                     .client = hearth_str_c(in->client),
                                                     .route = hearth_str_c(in->route),
                                                     .limit = in->limit};
    struct hearth_ingest_error *errors;
    size_t n;

    HEARTH_TRY(hearth_ingest_errors_list(&call, &query, &errors, &n, &rpc->err));
    HEARTH_RPC_LIST(rpc, &ingest_error_map, errors, n, out, errors);

    return HEARTH_OK;
}
