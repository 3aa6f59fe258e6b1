/*
 * span_scan.h -- going over what samples of a selection carry: rows with attributes, one after the other, in one
 * statement (private to the engine).
 *
 * Threads: one request is one thread.
 */
#ifndef HEARTH_ENGINE_SPAN_SCAN_H
#define HEARTH_ENGINE_SPAN_SCAN_H

#include "hearth/model/sample_attrs.h"

#include "select/grouping.h"
#include "select/planned.h"
#include "select/stack_passes.h"

/*
 * A row with identity. The values of samples that the selection leaves out are 0. Rows come in no particular order, and a
 * profile that sample labels split comes as several.
 */
typedef enum hearth_status hearth_span_visit_fn(void *context, const struct hearth_read_row *row,
                                                uint32_t hit,
                                                const struct hearth_attr_columns *columns,
                                                struct hearth_err *err);

struct hearth_span_scan {
    /* the caller's */
    const struct hearth_query *query;
    const struct hearth_merge_spec *merge; /* its `mean` does not count: values are sums */
    uint32_t attrs;                        /* which are wanted, as in struct hearth_attr_wish */
    bool whole;                            /* `total` is wanted */
    hearth_span_visit_fn *visit;
    void (*reset)(void *context); /* forget everything: it comes again, or for the first time */
    void *context;
    /* the scan's */
    struct hearth_selection selection;
    struct hearth_grouping grouping; /* of the hits */
    int64_t total;                   /* after _run: of all samples selected, whatever they carry */
    struct hearth_sums sums;
    struct hearth_stack_passes passes;
    struct hearth_arena scratch, kept_arena;
    struct hearth_kept_row *kept;
};

/* The caller has set what is his. Release it in any case. */
HEARTH_MUST_CHECK
enum hearth_status hearth_span_scan_init(struct hearth_span_scan *scan,
                                         int64_t from_ns, /* both included */
                                         int64_t to_ns, const struct hearth_str *group_by,
                                         size_t n_group_by, struct hearth_err *err);
HEARTH_MUST_CHECK
enum hearth_status hearth_span_scan_run(struct hearth_span_scan *scan, struct hearth_err *err);
void hearth_span_scan_release(struct hearth_span_scan *scan);

#endif
