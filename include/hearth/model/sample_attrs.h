/*
 * sample_attrs.h -- attributes of single samples (span, trace, thread, endpoint, time), stored in a
 * column of their own next to a profile row.
 *
 * Such labels never become series labels: otherwise every span would be a series. A row's `ids` and
 * `vals` hold each stack trace once with its full value. For the samples with any attribute, the
 * attrs column repeats stack trace and values and adds the attributes. So a merge never reads it,
 * and the sum over spans plus the unlabelled rest equals the whole.
 *
 * Layout:  see server/model/profile/sample_attrs.c; by column: sample_attr_columns.c.
 * Threads: pure.
 * Source:  label spellings of Pyroscope SDKs, dd-trace and libdatadog, parca-agent.
 */
#ifndef HEARTH_MODEL_SAMPLE_ATTRS_H
#define HEARTH_MODEL_SAMPLE_ATTRS_H

#include "hearth/base/arena.h"
#include "hearth/base/status.h"

enum hearth_attr {
    HEARTH_ATTR_NONE, /* no attribute: an ordinary sample label */
    HEARTH_ATTR_SPAN_ID,
    HEARTH_ATTR_LOCAL_ROOT_SPAN_ID,
    HEARTH_ATTR_TRACE_ID,
    HEARTH_ATTR_SPAN_NAME,
    HEARTH_ATTR_ENDPOINT,
    HEARTH_ATTR_THREAD_ID,        /* thread id of the runtime */
    HEARTH_ATTR_THREAD_NATIVE_ID, /* thread id of the kernel: "thread native id", "os thread id" */
    HEARTH_ATTR_THREAD_NAME,
    HEARTH_ATTR_TIMESTAMP,
};

struct hearth_sample_attrs {
    uint64_t span_id, local_root_span_id;               /* 0: absent */
    uint64_t trace_id_hi, trace_id_lo;                  /* both 0: absent */
    uint64_t thread_id, thread_native_id;               /* 0: absent */
    int64_t timestamp_ns;                               /* since the epoch; 0: absent */
    struct hearth_str span_name, endpoint, thread_name; /* empty: absent */
};

/*
 * The attribute that a sample label key means. Case, spaces, '_', '-' and '.' are ignored ("span
 * id", "span_id", "spanId"). "profile_id" is Pyroscope's old name of the span id,
 * "end_timestamp_ns" the time.
 */
enum hearth_attr hearth_attr_of_key(struct hearth_str key);

/*
 * Set one attribute from a label: from `str` if the label is text, otherwise from `num` (span and
 * thread ids are then unsigned). Ids as text: 16 hex digits under a key without spaces (span_id,
 * profile_id), decimal otherwise; trace ids have up to 32 hex digits; an id in another form becomes
 * the stable XXH3-64 of its text.
 */
void hearth_sample_attrs_set(struct hearth_sample_attrs *attrs, enum hearth_attr attr,
                             struct hearth_str key, struct hearth_str str, int64_t num);
bool hearth_sample_attrs_empty(const struct hearth_sample_attrs *attrs);
bool hearth_sample_attrs_eq(const struct hearth_sample_attrs *a,
                            const struct hearth_sample_attrs *b);

struct hearth_attr_sample {
    uint32_t stack_id;
    const int64_t *values; /* [n_types] */
    struct hearth_sample_attrs attrs;
};

/* Encode samples (any order) into arena; *ret is empty if n is 0. NO_MEMORY. */
HEARTH_MUST_CHECK
enum hearth_status hearth_sample_attrs_encode(const struct hearth_attr_sample *samples, size_t n,
                                              uint32_t n_types, struct hearth_arena *arena,
                                              struct hearth_str *ret, struct hearth_err *err);
/* The reverse; arrays in arena, texts borrow from `bytes`. CORRUPT for damaged bytes; NO_MEMORY. */
HEARTH_MUST_CHECK
enum hearth_status hearth_sample_attrs_decode(struct hearth_str bytes, struct hearth_arena *arena,
                                              struct hearth_attr_sample **ret_samples,
                                              size_t *ret_n, uint32_t *ret_n_types,
                                              struct hearth_err *err);

/* ---- by column, for readers of many rows: only requested columns are made ---- */

struct hearth_attr_value {
    uint64_t hi, lo; /* an id; hi is 0 except for trace ids */
    struct hearth_str text;
};

struct hearth_attr_column {
    struct hearth_attr_value *values; /* [n_values], distinct; NULL: not requested, or none */
    size_t n_values;
    uint32_t *index; /* [n samples]: index into values plus 1; 0: the sample lacks the attribute */
};

struct hearth_attr_wish {
    uint32_t attrs;  /* requested attributes: bits 1 << enum hearth_attr; TIMESTAMP is ignored */
    uint32_t column; /* the value column to return */
    bool stacks;     /* whether stack_ids are requested */
};

struct hearth_attr_columns {
    size_t n; /* samples */
    int64_t *values;
    uint32_t *stack_ids; /* NULL: not requested */
    struct hearth_attr_column of[HEARTH_ATTR_TIMESTAMP];
};

/*
 * Decode the requested columns into arena; texts borrow from `bytes`. CORRUPT for damage in the
 * bytes that are read, and if wish->column does not exist; NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_sample_attrs_columns(struct hearth_str bytes,
                                               const struct hearth_attr_wish *wish,
                                               struct hearth_arena *arena,
                                               struct hearth_attr_columns *ret,
                                               struct hearth_err *err);

#endif
