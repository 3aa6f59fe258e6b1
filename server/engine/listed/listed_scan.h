/*
 * listed_scan.h -- visits the uploads of a selection in order of time (private to the engine).
 *
 * Threads: a scan belongs to one call.
 */
#ifndef HEARTH_ENGINE_LISTED_SCAN_H
#define HEARTH_ENGINE_LISTED_SCAN_H

#include "hearth/engine/listed.h"

#include "select/planned.h"

/* A stored row of a selected series. */
struct listed_row {
    int64_t ts_ns, duration_ns, profile_no, total;
    int32_t writer_id;
    uint32_t hit;
};

/* Adjacent rows with one id, in the order of their hits. */
struct listed_rows {
    const struct listed_row *rows;
    size_t n;
    struct hearth_listed_place place; /* by time; the time is the earliest of the rows */
    int64_t duration_ns, total;       /* the longest; the sum */
};

/* *ret_stop is false before the call; true ends the scan. */
typedef enum hearth_status listed_visit_fn(void *context, const struct listed_rows *upload,
                                           bool *ret_stop, struct hearth_err *err);

struct listed_scan {
    const struct hearth_query *query;
    struct hearth_selection selection; /* hits: one for each series, or those of the type */
    int64_t from_ns, to_ns;            /* both included */
    struct hearth_buf rows;            /* struct listed_row, of the piece that is read */
    size_t few_rows, many_rows;        /* pieces grow below few, and are halved above many */
    size_t max_rows;                   /* of the piece that is read */
    bool is_too_long;                  /* the piece has more */
    uint32_t last_hit;
};

/*
 * Selects the series of the filter, for the range of the query. Release it in any case. Errors:
 * INVALID_ARGUMENT, NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_listed_scan_init(struct listed_scan *scan,
                                           const struct hearth_query *query,
                                           const struct hearth_listed_filter *filter,
                                           struct hearth_err *err);
void hearth_listed_scan_release(struct listed_scan *scan);

/*
 * Visits all uploads of the scan, the newest first if `newest` is true, otherwise the oldest first;
 * of the same time by id.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_listed_scan_run(struct listed_scan *scan, bool newest,
                                          listed_visit_fn *visit, void *context,
                                          struct hearth_err *err);

/* The order of places: by key, then by time, then by id. Negative: a is before b. */
int hearth_listed_place_compare(const struct hearth_listed_place *a,
                                const struct hearth_listed_place *b);

/* Series and labels of an upload that was visited, as hits of the scan. */
struct listed_hits {
    const uint32_t *v;
    size_t n;
};

/*
 * Fills service, labels, types and n_series of an upload; texts are copied to the query's arena.
 * The caller holds the lock of the index. A series that was deleted meanwhile is left out.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_listed_describe(const struct listed_scan *scan,
                                          const struct hearth_call_index *index,
                                          struct listed_hits hits,
                                          struct hearth_listed_upload *upload,
                                          struct hearth_err *err);

/* The labels of a hit that its client sent, and service_name; texts borrow from the index. */
HEARTH_MUST_CHECK
enum hearth_status hearth_listed_labels(const struct hearth_call_index *index,
                                        const struct hearth_series_hit *hit,
                                        struct hearth_arena *arena, struct hearth_labels *ret,
                                        struct hearth_err *err);

#endif
