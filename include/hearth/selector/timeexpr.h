/*
 * timeexpr.h -- points in time and durations in the forms that people and clients write.
 *
 * Relative: now, now-1h30m, now+5m (units ns us ms s m h d w; M = 30 d, y = 365 d; also min and mon
 * for m and M; largest first, each at most once). Calendar: RFC 3339 and its prefixes (2026-11,
 * 2026-11-20, 2026-11-20T08:00, ...Z or offset; UTC if there is no zone). Digits: 8 = YYYYMMDD,
 * 13 = ms, 16 = us, 19 = ns, otherwise seconds (fractions of seconds are accepted). Grammar and all
 * error messages: grammar/README.md.
 *
 * Limits:  the years 1677 to 2262, durations up to 292 years, 95 bytes of text.
 * Errors:  INVALID_ARGUMENT.
 * Threads: pure.
 * Source:  RFC 3339.
 */
#ifndef HEARTH_SELECTOR_TIMEEXPR_H
#define HEARTH_SELECTOR_TIMEEXPR_H

#include "hearth/base/status.h"

HEARTH_MUST_CHECK
enum hearth_status hearth_time_parse(struct hearth_str text, int64_t now_ns, int64_t *ret_ns,
                                     struct hearth_err *err);
/*
 * A time of Pyroscope's plain HTTP ("attime" of from and until): the same forms; empty text and
 * text that is not a time mean now. *ret_understood (may be NULL) is false for non-empty text that
 * is not a time.
 */
int64_t hearth_attime_parse(struct hearth_str text, int64_t now_ns, bool *ret_understood);
/* A duration > 0: "90s", "1h30m", "7d". */
HEARTH_MUST_CHECK
enum hearth_status hearth_duration_parse(struct hearth_str text, int64_t *ret_ns,
                                         struct hearth_err *err);
/* The shortest text of that form, "1h30m". */
void hearth_duration_format(int64_t ns, char out[48]);

#endif
