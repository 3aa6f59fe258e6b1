/*
 * listed_one.h -- the stored rows of one upload, found by its id (private to the engine).
 *
 * Threads: belongs to one call.
 */
#ifndef HEARTH_ENGINE_LISTED_ONE_H
#define HEARTH_ENGINE_LISTED_ONE_H

#include "listed/listed_scan.h"

/* A value column of a stored row of the upload. */
struct one_value {
    uint32_t hit; /* of scan.selection, which has all columns of each series */
    int64_t ts_ns, duration_ns, total;
};

struct listed_one {
    struct hearth_query query; /* its range holds all rows */
    struct listed_scan scan;   /* its query and selection are set */
    struct hearth_profile_id id;
    struct hearth_buf values; /* struct one_value */
    struct one_value *v;      /* [n], by hit and time */
    size_t n;
};

/*
 * Reads the totals of the upload's rows, at least one. Release it in any case. Errors: NOT_FOUND.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_listed_one_read(struct listed_one *one, const struct hearth_call *call,
                                          struct hearth_profile_id id, struct hearth_err *err);
void hearth_listed_one_release(struct listed_one *one);

/* The text of a selector for the upload's service, in the call's arena. */
HEARTH_MUST_CHECK
enum hearth_status hearth_listed_one_selector(const struct listed_one *one,
                                              struct hearth_str service, struct hearth_str *ret,
                                              struct hearth_err *err);

#endif
