/*
 * application.h -- a service as its owners see it, and rules that switch profiling.
 *
 * Threads: plain data.
 */
#ifndef HEARTH_MODEL_APPLICATION_H
#define HEARTH_MODEL_APPLICATION_H

#include "hearth/base/str.h"

/* Whether profiles are accepted. The numbers are stored. */
enum hearth_profiling {
    HEARTH_PROFILING_UNSET = 0, /* as the rules say; without a rule, on */
    HEARTH_PROFILING_ON = 1,
    HEARTH_PROFILING_OFF = 2,
};

struct hearth_application {
    struct hearth_str name; /* of the service */
    struct hearth_str owner, description;
    int32_t profiling;                   /* enum hearth_profiling */
    int32_t approved;                    /* 0 or 1 */
    int64_t first_seen_ms, last_seen_ms; /* in a pushed profile; 0: never */
    struct hearth_str updated_by;
    int64_t updated_ms; /* 0: never changed */
};

struct hearth_application_rule {
    struct hearth_str name, selector;
    int32_t profiling; /* ON or OFF */
    struct hearth_str updated_by;
    int64_t updated_ms;
};

/* What becomes of a profile. */
enum hearth_acceptance {
    HEARTH_ACCEPTED,
    HEARTH_APPLICATION_OFF,
    HEARTH_NOT_APPROVED,
};

#endif
