/* network.c -- metrics of network profiling (contract: hearth/engine/meters.h): none is kept yet. */
#include "hearth/engine/meters.h"

enum hearth_status hearth_network_take(const struct hearth_query *query,
                                       const struct hearth_meter_set *set,
                                       size_t *ret_n_taken,
                                       struct hearth_err *err)
{
    (void)query;
    (void)set;
    (void)err;
    *ret_n_taken = 0;
    return HEARTH_OK;
}
