/* usage.c -- what a tenant has in the catalogue, for hearth.v1.AdminService/Usage. */
#include "hearth/engine/tenant_use.h"
#include "hearth/store/tenant_counts.h"

#include "common/call_internal.h"
#include "common/shown.h"

enum hearth_status hearth_tenant_stock_read(const struct hearth_call *call,
                                            struct hearth_tenant_stock *ret, struct hearth_err *err)
{
    struct hearth_tenant_counts counts = {0};

    HEARTH_TRY(hearth_call_check_whole(call, err)); /* sums tell about hidden services */
    HEARTH_TRY(hearth_store_tenant_counts(HEARTH_CALL_SCOPE(call), &counts, err));
    *ret = (struct hearth_tenant_stock){counts.n_services, counts.n_series, counts.n_tasks};

    return HEARTH_OK;
}
