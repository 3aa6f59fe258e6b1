/* tenant_disk.c -- bytes on disk of a tenant (contract: hearth/engine/tenant_disk.h). */
#include "hearth/engine/tenant_disk.h"

#include "hearth/store/store_disk.h"

#include "common/call_internal.h"
#include "common/shown.h"

#include <inttypes.h>

#define DEFAULT_SERVICES 100
#define MAX_SERVICES     1000

static void add_service_disk(struct hearth_service_disk *sum,
                             const struct hearth_service_disk *service)
{
    sum->bytes += service->bytes;
    sum->profiles += service->profiles;
    sum->segments += service->segments;
    sum->rollups += service->rollups;
    sum->symbols += service->symbols;
    sum->spans += service->spans;
    sum->originals += service->originals;
    sum->other += service->other;
    sum->read += service->read;
}

enum hearth_status hearth_tenant_disk_read(const struct hearth_call *call, int64_t limit,
                                           struct hearth_tenant_disk *ret, struct hearth_err *err)
{
    struct hearth_tenant_disk disk = {0};
    struct hearth_shown shown = {0};
    size_t n;

    if (limit < 0 || limit > MAX_SERVICES) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "limit is %" PRId64 "; it must be 0 (%d services) to %d", limit,
                           DEFAULT_SERVICES, MAX_SERVICES);
    }
    limit = limit == 0 ? DEFAULT_SERVICES : limit;

    /* Hidden services count nowhere: a sum would tell about them. */
    HEARTH_TRY(hearth_store_disk_services(HEARTH_CALL_SCOPE(call), &disk.services, &n, err));
    for (size_t i = 0; i < n; i++) {
        bool shows = true;
        if (hearth_call_is_narrow(call)) {
            HEARTH_TRY(
                hearth_call_shows_service(call, &shown, disk.services[i].service, &shows, err));
        }
        if (shows) {
            add_service_disk(&disk.total, &disk.services[i]);
            disk.services[disk.n_services++] = disk.services[i];
        }
    }

    disk.n = (size_t)(disk.n_services < limit ? disk.n_services : limit);
    disk.read_percent =
        disk.total.bytes > 0 ? 100.0 * (double)disk.total.read / (double)disk.total.bytes : 100;
    *ret = disk;

    return HEARTH_OK;
}
