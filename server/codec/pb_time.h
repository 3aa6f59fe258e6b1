/*
 * pb_time.h -- google.protobuf.Timestamp and Duration as JSON text (private to codec).
 *
 * Source: ProtoJSON format; RFC 3339.
 */
#ifndef HEARTH_CODEC_PB_TIME_H
#define HEARTH_CODEC_PB_TIME_H

#include "hearth/base/buf.h"

struct pb_time {
    int64_t seconds;
    int32_t nanos;
};

/*
 * Append "2026-11-20T10:36:30.500Z" in quotes; false, without effect, outside the years 1 to 9999.
 */
bool pb_timestamp_write(struct pb_time time, struct hearth_buf *out);
bool pb_timestamp_parse(struct hearth_str text, struct pb_time *ret);
/* Append "-1.500s" in quotes; false, without effect, beyond 10,000 years or if the signs differ. */
bool pb_duration_write(struct pb_time time, struct hearth_buf *out);
bool pb_duration_parse(struct hearth_str text, struct pb_time *ret);

#endif
