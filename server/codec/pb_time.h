/*
 * pb_time.h -- google.protobuf.Timestamp and Duration as JSON text. Private to codec.
 * Source: ProtoJSON format; RFC 3339.
 */
#ifndef HEARTH_CODEC_PB_TIME_H
#define HEARTH_CODEC_PB_TIME_H

#include "hearth/base/buf.h"

struct pb_time {
    int64_t seconds;
    int32_t nanos;
};

/* "2026-11-20T10:36:30.500Z"; false outside the years 1 to 9999. */
bool pb_timestamp_write(struct pb_time time, struct hearth_buf *out);
bool pb_timestamp_parse(struct hearth_str text, struct pb_time *ret);
/* "-1.500s"; false beyond 10,000 years or when the signs disagree. */
bool pb_duration_write(struct pb_time time, struct hearth_buf *out);
bool pb_duration_parse(struct hearth_str text, struct pb_time *ret);

#endif
