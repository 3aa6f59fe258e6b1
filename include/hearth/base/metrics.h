/*
 * metrics.h -- counters, gauges and histograms, declared in metrics.def and served as Prometheus
 * text or as OpenMetrics.
 *
 * A metric has at most one label, or two that are used as one pair. Label values are bounded (a
 * reason, a method, a tenant): the first HEARTH_METRIC_MAX_VALUES distinct values get lines of
 * their own, all later ones are counted as "other", and so are values longer than 256 bytes or not
 * in UTF-8. Tenant names are label values only where metrics.def says so.
 *
 * A counter ignores negative amounts.
 *
 * Threads: safe; updates are relaxed atomics, and a known label value is found without a lock.
 * Source: Prometheus text exposition format 0.0.4; OpenMetrics 1.0.0.
 */
#ifndef HEARTH_BASE_METRICS_H
#define HEARTH_BASE_METRICS_H

#include "hearth/base/buf.h"

enum hearth_metric {
#define X(id, kind, name, label, help) HEARTH_M_##id,
#include "hearth/base/metrics.def"
#undef X
    HEARTH_N_METRICS
};

#define HEARTH_METRIC_MAX_VALUES  200
#define HEARTH_METRIC_TRACE_BYTES 32u

void hearth_metric_add(enum hearth_metric metric, int64_t value);
/* For a metric with one label; {NULL, 0} is the empty value. */
void hearth_metric_add_label(enum hearth_metric metric, struct hearth_str label_value,
                             int64_t value);
/* For a metric with two labels; `first` contains no comma. */
void hearth_metric_add_labels(enum hearth_metric metric, const char *first, const char *second,
                              int64_t value);
/* For a gauge, or a counter whose value is computed elsewhere and never decreases. */
void hearth_metric_set(enum hearth_metric metric, int64_t value);
void hearth_metric_set_label(enum hearth_metric metric, struct hearth_str label_value,
                             int64_t value);
/* The same for a metric with two labels; `first` contains no comma. */
void hearth_metric_set_labels(enum hearth_metric metric, const char *first, const char *second,
                              int64_t value);
/* Give a label value its line before its first event, so that rate() includes that event. */
void hearth_metric_declare(enum hearth_metric metric, const char *label_value);
/*
 * For histograms: nanoseconds in, seconds out. Buckets from 0.5 ms to 60 s, in powers of about 2.
 */
void hearth_metric_observe_ns(enum hearth_metric metric, struct hearth_str label_value, int64_t ns);
/*
 * The same for work of a trace. The latest trace of each bucket is its exemplar in OpenMetrics.
 *
 * trace_id  HEARTH_METRIC_TRACE_BYTES hexadecimal digits; empty: the work has no trace
 */
void hearth_metric_observe_traced_ns(enum hearth_metric metric, struct hearth_str label_value,
                                     int64_t ns, struct hearth_str trace_id);
int64_t hearth_metric_value(enum hearth_metric metric); /* sum over all label values; for tests */

enum hearth_metrics_format {
    HEARTH_METRICS_PROMETHEUS,
    HEARTH_METRICS_OPENMETRICS, /* with exemplars */
};

/* Appends all metrics. */
void hearth_metrics_write(struct hearth_buf *out, enum hearth_metrics_format format);

/*
 * Call once at start-up: declares the label values listed in metrics.def and sets
 * hearth_build_info.
 */
void hearth_metrics_start(const char *version);
/*
 * Read the process_ metrics from the kernel. Source: proc(5); names as in Prometheus' client
 * libraries.
 */
void hearth_metrics_refresh_process(void);

#endif
