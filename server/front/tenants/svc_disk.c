/* svc_disk.c -- hearth.v1.AdminService: estimated bytes on disk of a tenant's services. */
#include "hearth/engine/tenant_disk.h"
#include "hearth/pb/hearth/v1/disk.pb-c.h"

#include "handlers.h"
#include "rpc/front_internal.h"
#include "rpc/message_map.h"
#include "rpc/unary.h"

HEARTH_MAP_TYPES(service_disk, struct hearth_service_disk, Hearth__V1__ServiceDisk);
static const struct hearth_message_member service_disk_members[] = {
    HEARTH_MAP(service_disk, service, service_name), HEARTH_MAP(service_disk, bytes, bytes),
    HEARTH_MAP(service_disk, profiles, profiles),    HEARTH_MAP(service_disk, segments, segments),
    HEARTH_MAP(service_disk, rollups, rollups),      HEARTH_MAP(service_disk, symbols, symbols),
    HEARTH_MAP(service_disk, spans, spans),          HEARTH_MAP(service_disk, originals, originals),
    HEARTH_MAP(service_disk, other, other),
};
static const struct hearth_message_map service_disk_map =
    HEARTH_MESSAGE_MAP(service_disk, hearth__v1__service_disk__descriptor);

HEARTH_MAP_TYPES(disk, struct hearth_tenant_disk, Hearth__V1__DiskResponse);
static const struct hearth_message_member disk_members[] = {
    HEARTH_MAP_LIST(disk, services, n, services, &service_disk_map),
    HEARTH_MAP(disk, n_services, total_services),
    HEARTH_MAP_ONE(disk, total, total, &service_disk_map),
    HEARTH_MAP(disk, read_percent, read_percent),
};
static const struct hearth_message_map disk_map =
    HEARTH_MESSAGE_MAP(disk, hearth__v1__disk_response__descriptor);

HEARTH_UNARY(hearth_svc_admin_disk, Hearth__V1__DiskRequest, Hearth__V1__DiskResponse)
{
    struct hearth_call call = hearth_rpc_call(rpc);
    struct hearth_tenant_disk disk;

    HEARTH_TRY(hearth_tenant_disk_read(&call, in->limit, &disk, &rpc->err));
    hearth_rpc_map_into(rpc, &disk_map, &disk, out);

    return HEARTH_OK;
}
