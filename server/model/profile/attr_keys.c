/*
 * attr_keys.c -- which sample labels are attributes, in all the spellings that clients use, and how
 * their values are read.
 */
#include "hearth/model/sample_attrs.h"
#include "hearth/model/trace_ids.h"

#define FOLDED(literal)                 \
    {                                   \
        "" literal, sizeof(literal) - 1 \
    }

static const struct {
    struct hearth_str folded; /* lower case, without separators */
    enum hearth_attr attr;
} spellings[] = {
    {FOLDED("spanid"), HEARTH_ATTR_SPAN_ID},
    {FOLDED("profileid"), HEARTH_ATTR_SPAN_ID},
    {FOLDED("localrootspanid"), HEARTH_ATTR_LOCAL_ROOT_SPAN_ID},
    {FOLDED("rootspanid"), HEARTH_ATTR_LOCAL_ROOT_SPAN_ID},
    {FOLDED("traceid"), HEARTH_ATTR_TRACE_ID},
    {FOLDED("spanname"), HEARTH_ATTR_SPAN_NAME},
    {FOLDED("traceendpoint"), HEARTH_ATTR_ENDPOINT},
    {FOLDED("threadid"), HEARTH_ATTR_THREAD_ID},
    {FOLDED("threadnativeid"), HEARTH_ATTR_THREAD_NATIVE_ID},
    {FOLDED("nativethreadid"), HEARTH_ATTR_THREAD_NATIVE_ID},
    {FOLDED("osthreadid"), HEARTH_ATTR_THREAD_NATIVE_ID},
    {FOLDED("threadname"), HEARTH_ATTR_THREAD_NAME},
    {FOLDED("endtimestampns"), HEARTH_ATTR_TIMESTAMP},
    {FOLDED("timestampns"), HEARTH_ATTR_TIMESTAMP},
};

enum hearth_attr hearth_attr_of_key(struct hearth_str key)
{
    char folded[20]; /* longer than any spelling */
    size_t n = 0;

    /* Fold the key: lower case, no separators. */
    for (size_t i = 0; i < key.n; i++) {
        char c = key.p[i];
        if (c == ' ' || c == '_' || c == '-' || c == '.') {
            continue;
        }
        if (n == sizeof folded) {
            return HEARTH_ATTR_NONE;
        }
        folded[n++] = (char)(c >= 'A' && c <= 'Z' ? c + 32 : c);
    }

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(spellings); i++) {
        if (hearth_str_eq(hearth_str_n(folded, n), spellings[i].folded)) {
            return spellings[i].attr;
        }
    }

    return HEARTH_ATTR_NONE;
}

/* Datadog's keys have spaces, and its ids are decimal. */
static enum hearth_id_spelling choose_spelling(struct hearth_str key)
{
    return hearth_str_find(key, ' ', 0) < key.n ? HEARTH_ID_DECIMAL : HEARTH_ID_HEX;
}

/* The number of a numeric thread id; any other text is hashed like an id. */
static uint64_t parse_thread_id(struct hearth_str text)
{
    return hearth_span_id_of_text(text, HEARTH_ID_DECIMAL);
}

static void set_trace_id(struct hearth_sample_attrs *attrs, struct hearth_str key,
                         struct hearth_str text)
{
    struct hearth_trace_id id = hearth_trace_id_of_text(text, choose_spelling(key));
    attrs->trace_id_hi = id.hi;
    attrs->trace_id_lo = id.lo;
}

void hearth_sample_attrs_set(struct hearth_sample_attrs *attrs, enum hearth_attr attr,
                             struct hearth_str key, struct hearth_str str, int64_t num)
{
    bool is_text = str.n > 0;

    switch (attr) {
    case HEARTH_ATTR_SPAN_ID:
        attrs->span_id =
            is_text ? hearth_span_id_of_text(str, choose_spelling(key)) : (uint64_t)num;
        break;
    case HEARTH_ATTR_LOCAL_ROOT_SPAN_ID:
        attrs->local_root_span_id =
            is_text ? hearth_span_id_of_text(str, choose_spelling(key)) : (uint64_t)num;
        break;
    case HEARTH_ATTR_TRACE_ID:
        if (is_text) {
            set_trace_id(attrs, key, str);
        } else {
            attrs->trace_id_hi = 0;
            attrs->trace_id_lo = (uint64_t)num;
        }
        break;
    case HEARTH_ATTR_SPAN_NAME:
        attrs->span_name = str;
        break;
    case HEARTH_ATTR_ENDPOINT:
        attrs->endpoint = str;
        break;
    case HEARTH_ATTR_THREAD_ID:
        attrs->thread_id = is_text ? parse_thread_id(str) : (uint64_t)num;
        break;
    case HEARTH_ATTR_THREAD_NATIVE_ID:
        attrs->thread_native_id = is_text ? parse_thread_id(str) : (uint64_t)num;
        break;
    case HEARTH_ATTR_THREAD_NAME:
        attrs->thread_name = str;
        break;
    case HEARTH_ATTR_TIMESTAMP:
        if (!is_text) {
            attrs->timestamp_ns = num;
        } else if (!hearth_str_to_i64(str, &attrs->timestamp_ns)) {
            attrs->timestamp_ns = 0;
        }
        break;
    case HEARTH_ATTR_NONE:
        break;
    }
}
