/* svc_scrape.c -- hearth.v1.AdminService: targets that servers fetch profiles from. */
#include "hearth/engine/scrape.h"
#include "hearth/pb/hearth/v1/admin.pb-c.h"

#include "handlers.h"
#include "rpc/front_internal.h"
#include "rpc/message_map.h"
#include "rpc/unary.h"

HEARTH_MAP_TYPES(target, struct hearth_scrape_target, Hearth__V1__ScrapeTarget);
static const struct hearth_message_member target_members[] = {
    HEARTH_MAP(target, job, job),
    HEARTH_MAP(target, address, address),
    HEARTH_MAP(target, path, path),
    HEARTH_MAP(target, is_claimed, claimed),
    HEARTH_MAP(target, scraped_ms, scraped_ms),
    HEARTH_MAP(target, took_ms, took_ms),
    HEARTH_MAP(target, n_bytes, bytes),
    HEARTH_MAP(target, failure, failure),
};
static const struct hearth_message_map target_map =
    HEARTH_MESSAGE_MAP(target, hearth__v1__scrape_target__descriptor);

HEARTH_UNARY(hearth_svc_admin_scrape_targets, Hearth__V1__ScrapeTargetsRequest,
             Hearth__V1__ScrapeTargetsResponse)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_scrape_target *targets;
    size_t n;

    HEARTH_TRY(hearth_scrape_targets(&call, &targets, &n, &rpc->err));
    HEARTH_RPC_LIST(rpc, &target_map, targets, n, out, targets);

    return HEARTH_OK;
}
