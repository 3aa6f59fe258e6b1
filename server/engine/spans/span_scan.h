/*
 * span_scan.h -- visits the attributes of the samples of a selection, row by row, in one statement
 * (private to the engine).
 *
 * Threads: one request runs on one thread.
 */
#ifndef HEARTH_ENGINE_SPAN_SCAN_H
#define HEARTH_ENGINE_SPAN_SCAN_H

#include "hearth/model/sample_attrs.h"

#include "select/grouping.h"
#include "select/planned.h"
#include "select/stack_passes.h"
#include "select/thread_filter.h"

/*
 * Visits a row with identity. The values of samples outside the selection are 0. Rows are in no
 * particular order, and a profile that sample labels split has several.
 */
typedef enum hearth_status hearth_span_visit_fn(void *context, const struct hearth_read_row *row,
                                                uint32_t hit,
                                                const struct hearth_attr_columns *columns,
                                                struct hearth_err *err);

struct hearth_span_scan {
    /* set by the caller */
    const struct hearth_query *query;
    const struct hearth_merge_spec *merge; /* its `mean` is ignored: values are sums */
    uint32_t attrs;                        /* wanted attributes, as in struct hearth_attr_wish */
    bool whole;                            /* compute `total` */
    hearth_span_visit_fn *visit;
    /* Discards everything: rows are read from the start, for the first time or again. */
    void (*reset)(void *context);
    void *context;
    /* set by the scan */
    struct hearth_selection selection;
    struct hearth_grouping grouping; /* groups of the hits */
    int64_t total; /* after _run: sum of all selected samples, with or without attributes */
    struct hearth_sums sums;
    struct hearth_stack_passes passes;
    struct hearth_thread_filter threads;
    struct hearth_arena scratch, kept_arena;
    struct hearth_kept_row *kept; /* in kept_arena; attributes only */
};

/* Set up a scan; the caller has set its members. Release it in any case. */
HEARTH_MUST_CHECK
enum hearth_status hearth_span_scan_init(struct hearth_span_scan *scan,
                                         int64_t from_ns, /* both included */
                                         int64_t to_ns, const struct hearth_str *group_by,
                                         size_t n_group_by, struct hearth_err *err);
HEARTH_MUST_CHECK
enum hearth_status hearth_span_scan_run(struct hearth_span_scan *scan, struct hearth_err *err);
void hearth_span_scan_release(struct hearth_span_scan *scan);

/* NO_MEMORY: the spans of a scan exceed the query's memory. */
enum hearth_status hearth_span_fail_memory(struct hearth_err *err);

#endif
