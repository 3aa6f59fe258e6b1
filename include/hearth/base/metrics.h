/*
 * metrics.h -- counters, gauges and histograms, declared once in metrics.def, served as Prometheus
 * text.
 *
 * A metric has at most one label, or two that count as one pair, whose values are bounded (a reason, a method, a tenant): the first
 * HEARTH_METRIC_MAX_VALUES distinct values get a line of their own, later ones are counted under
 * "other". Tenant names appear as label values only where metrics.def says so.
 *
 * Values longer than 256 bytes or not UTF-8 count under "other" too. A counter ignores negative
 * amounts.
 *
 * Threads: safe; updates are relaxed atomics, a known label value is found without a lock.
 * Source: Prometheus text exposition format 0.0.4.
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

#define HEARTH_METRIC_MAX_VALUES 200

void hearth_metric_add(enum hearth_metric metric, int64_t value);
/* With a label value; {NULL,0} is the empty value. */
void hearth_metric_add_label(enum hearth_metric metric, struct hearth_str label_value,
                             int64_t value);
/* Of a metric with two labels; no comma in `first`. */
void hearth_metric_add_labels(enum hearth_metric metric, const char *first, const char *second,
                              int64_t value);
/* Without a label: a gauge, or a counter that is kept elsewhere and never falls. */
void hearth_metric_set(enum hearth_metric metric, int64_t value);
/* Gives a label value its line before its first event, so that a rate sees this event, too. */
void hearth_metric_declare(enum hearth_metric metric, const char *label_value);
/* Histograms: seconds, from nanoseconds. Buckets: 0.5 ms ... 60 s, powers of about 2. */
void hearth_metric_observe_ns(enum hearth_metric metric, struct hearth_str label_value, int64_t ns);
int64_t hearth_metric_value(enum hearth_metric metric); /* sum over label values; for tests */
void hearth_metrics_write(struct hearth_buf *out);

/* Once, when the process starts: what metrics.def says is there from the start, and hearth_build_info. */
void hearth_metrics_start(const char *version);
/* Reads the process_ metrics from the kernel. Source: proc(5); names as Prometheus' client libraries have them. */
void hearth_metrics_refresh_process(void);

#endif
