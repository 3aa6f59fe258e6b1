/*
 * disk_metrics.h -- bytes on disk by tenant and tier, for /metrics (private to the store).
 *
 * Threads: confined to the boot thread.
 */
#ifndef HEARTH_STORE_DISK_METRICS_H
#define HEARTH_STORE_DISK_METRICS_H

#include "hearth/store/store.h"

#include "pg/pg.h"

/*
 * Estimates them as store_disk.h does, and sets hearth_tenant_disk_bytes, if the option
 * disk_metric_tenants is not 0. Reads at most max_disk_sample_bytes of each table.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_disk_metrics_publish(struct hearth_store *store,
                                                                 struct hearth_pg *pg,
                                                                 struct hearth_err *err);

#endif
