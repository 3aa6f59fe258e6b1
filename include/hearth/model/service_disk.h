/*
 * service_disk.h -- estimated bytes on disk of a service, or of several together.
 *
 * Threads: plain data.
 */
#ifndef HEARTH_MODEL_SERVICE_DISK_H
#define HEARTH_MODEL_SERVICE_DISK_H

#include "hearth/base/str.h"

/* Bytes include a share of indexes, of dead rows and of free space within the tables. */
struct hearth_service_disk {
    struct hearth_str service; /* empty in a sum over services */
    int64_t bytes;             /* sum of the tiers, but for rounding */
    int64_t profiles;          /* rows that are not compacted, or not removed since */
    int64_t segments;          /* compacted profiles */
    int64_t rollups;           /* of 10 minutes, an hour and a day; totals of hours */
    int64_t symbols;           /* dictionaries of stack traces */
    int64_t spans;
    int64_t originals; /* files as clients sent them */
    int64_t other;     /* series, results of tasks, network data, metrics of policies */
    int64_t read; /* of `bytes`, how many the read blocks stand for; the rest is extrapolated */
};

#endif
