/*
 * trace_ids.h -- ids of spans and traces as numbers: the only place that maps their spellings.
 *
 * A span id is 64 bits, a trace id 128; 0 means no id. A text may be hexadecimal (W3C: 16 and 32
 * digits) or decimal (Datadog: unsigned 64 bits); any other text (SkyWalking's ids) becomes its
 * stable XXH3-64. Intakes know the spelling of their clients. A query does not know it, and
 * searches for every number that its text may mean.
 *
 * Threads: pure.
 * Source:  W3C Trace Context section 3.2; label spellings of Pyroscope SDKs, dd-trace, libdatadog.
 */
#ifndef HEARTH_MODEL_TRACE_IDS_H
#define HEARTH_MODEL_TRACE_IDS_H

#include "hearth/base/str.h"

struct hearth_trace_id {
    uint64_t hi, lo; /* both 0: none */
};

static inline bool hearth_trace_id_is_none(struct hearth_trace_id id)
{
    return id.hi == 0 && id.lo == 0;
}

enum hearth_id_spelling {
    HEARTH_ID_HEX,     /* 16 hexadecimal digits first, then decimal */
    HEARTH_ID_DECIMAL, /* decimal first, even for 16 digits */
};

/* The number of an intake's text; 0 only for an empty text and for zero itself. */
uint64_t hearth_span_id_of_text(struct hearth_str text, enum hearth_id_spelling spelling);
/*
 * Up to 32 hexadecimal digits; with DECIMAL, decimal of 64 bits is tried first, except for 32
 * digits. Otherwise a hash in lo.
 */
struct hearth_trace_id hearth_trace_id_of_text(struct hearth_str text,
                                               enum hearth_id_spelling spelling);
/* Big-endian bytes: 8 for a span, 16 or 8 for a trace; the result is 0 for other lengths. */
uint64_t hearth_span_id_of_bytes(struct hearth_str bytes);
struct hearth_trace_id hearth_trace_id_of_bytes(struct hearth_str bytes);

#define HEARTH_SPAN_ID_MEANINGS  3
#define HEARTH_TRACE_ID_MEANINGS 3

/*
 * All distinct numbers that the text of a query may mean; returns how many, 0 for an empty text or
 * zero. One meaning of a 128-bit trace id is its low 64 bits, because some profilers store only
 * those with samples.
 */
size_t hearth_span_id_meanings(struct hearth_str text, uint64_t ret[HEARTH_SPAN_ID_MEANINGS]);
size_t hearth_trace_id_meanings(struct hearth_str text,
                                struct hearth_trace_id ret[HEARTH_TRACE_ID_MEANINGS]);

/* 16 or 32 hexadecimal digits. */
#define HEARTH_SPAN_ID_TEXT  16 /* without the NUL */
#define HEARTH_TRACE_ID_TEXT 32
void hearth_span_id_format(uint64_t id, char out[HEARTH_SPAN_ID_TEXT + 1]);
void hearth_trace_id_format(struct hearth_trace_id id, char out[HEARTH_TRACE_ID_TEXT + 1]);

#endif
