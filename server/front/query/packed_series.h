/*
 * packed_series.h -- sets of labels and series over time, written as protobuf at once.
 *
 * An answer may have 100,000 of them: as messages of protobuf-c, each label would be an object, a
 * pointer and two copies of texts, which are then measured and written. JSON is made from messages,
 * so it is not written here.
 *
 * Both append to `out`, byte for byte what protobuf-c would; check hearth_buf_failed(out).
 * Threads: safe.
 */
#ifndef HEARTH_FRONT_PACKED_SERIES_H
#define HEARTH_FRONT_PACKED_SERIES_H

#include "hearth/base/buf.h"
#include "hearth/engine/query.h"

/* A querier.v1.SeriesResponse. */
void hearth_pack_label_sets(struct hearth_buf *out, const struct hearth_labels *sets, size_t n);

/* A querier.v1.SelectSeriesResponse. No series has exemplars. */
void hearth_pack_timeseries(struct hearth_buf *out, const struct hearth_timeseries *series,
                            size_t n);

#endif
