/*
 * trace_ids.h -- ids of spans and traces as numbers, whatever their spelling: the one place that maps them.
 *
 * A span id is 64 bits, a trace id 128; 0 means none. Who writes an id as text may mean hexadecimal (W3C: 16 and 32 digits) or
 * decimal (Datadog: unsigned 64 bits); anything else (SkyWalking's ids) becomes the stable XXH3-64 of its text. Intakes know
 * which their client means; who asks does not say, so a question looks for all that its text may mean.
 *
 * Threads: pure. Source: W3C Trace Context section 3.2; label spellings of Pyroscope SDKs, dd-trace and libdatadog.
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
    HEARTH_ID_DECIMAL, /* decimal first, also of 16 digits */
};

/* What an intake's text means. Never 0, but for an empty text and for zero itself. */
uint64_t hearth_span_id_of_text(struct hearth_str text, enum hearth_id_spelling spelling);
/* Hexadecimal with up to 32 digits, in DECIMAL after decimal of 64 bits (but of 32 digits); else a hash in lo. */
struct hearth_trace_id hearth_trace_id_of_text(struct hearth_str text,
                                               enum hearth_id_spelling spelling);
/* Big-endian bytes: 8 of a span, 16 or 8 of a trace; none of other lengths. */
uint64_t hearth_span_id_of_bytes(struct hearth_str bytes);
struct hearth_trace_id hearth_trace_id_of_bytes(struct hearth_str bytes);

#define HEARTH_SPAN_ID_MEANINGS  3
#define HEARTH_TRACE_ID_MEANINGS 3

/*
 * All that a question's text may mean, each once; returns how many, 0 for an empty text or zero. A trace id of 128 bits may
 * also stand beside samples with its low 64 bits alone, because some profilers have no more.
 */
size_t hearth_span_id_meanings(struct hearth_str text, uint64_t ret[HEARTH_SPAN_ID_MEANINGS]);
size_t hearth_trace_id_meanings(struct hearth_str text,
                                struct hearth_trace_id ret[HEARTH_TRACE_ID_MEANINGS]);

/* 16 and 32 hexadecimal digits. */
#define HEARTH_SPAN_ID_TEXT  16 /* without the NUL */
#define HEARTH_TRACE_ID_TEXT 32
void hearth_span_id_format(uint64_t id, char out[HEARTH_SPAN_ID_TEXT + 1]);
void hearth_trace_id_format(struct hearth_trace_id id, char out[HEARTH_TRACE_ID_TEXT + 1]);

#endif
