/*
 * tenant_disk.h -- estimated bytes on disk of a tenant, by service and tier.
 *
 * Ownership: answers live in the call's arena.
 * Threads:   safe.
 * Errors:    INVALID_ARGUMENT for a limit out of range; UNAVAILABLE, CANCELLED, DEADLINE_EXCEEDED,
 *            NO_MEMORY.
 */
#ifndef HEARTH_ENGINE_TENANT_DISK_H
#define HEARTH_ENGINE_TENANT_DISK_H

#include "hearth/engine/call.h"
#include "hearth/model/service_disk.h"

struct hearth_tenant_disk {
    struct hearth_service_disk *services; /* the largest first */
    size_t n;                             /* at most the limit */
    int64_t n_services;                   /* all that the call sees */
    struct hearth_service_disk total;     /* of all that the call sees */
    double read_percent;                  /* of total.bytes; 100 without any */
};

/*
 * Estimate the bytes of the services that the call sees wholly. limit: how many are returned; 0:
 * 100; at most 1,000.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_tenant_disk_read(const struct hearth_call *call, int64_t limit,
                                           struct hearth_tenant_disk *ret, struct hearth_err *err);

#endif
