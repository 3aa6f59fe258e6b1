/* readiness.c -- whether the server takes work, for /ready and health checks. */
#include "rpc/front_internal.h"

#include <stdio.h>

bool hearth_front_is_ready(struct hearth_front *front, char reason[256])
{
    if (atomic_load(&front->is_draining)) {
        hearth_mutex_lock(&front->drain_lock);
        memcpy(reason, front->drain_reason, sizeof front->drain_reason);
        hearth_mutex_unlock(&front->drain_lock);
        return false;
    }
    return front->ready == NULL || front->ready(front->ready_context, reason);
}

void hearth_front_drain(struct hearth_front *front, const char *reason)
{
    hearth_mutex_lock(&front->drain_lock);
    (void)snprintf(front->drain_reason, sizeof front->drain_reason, "%s", reason);
    hearth_mutex_unlock(&front->drain_lock);
    atomic_store(&front->is_draining, true);
}
