/*
 * sample_attrs.h -- span, trace, thread, endpoint and time of single samples, kept beside a profile
 * row.
 *
 * Such labels never become series labels: they would make a series of every span. A row's `ids` and
 * `vals` hold each stack trace once with its full value; the attrs column holds, for the samples
 * that carry any attribute, the stack trace, the values and the attributes again. So a merge never
 * reads it, and the sum over spans plus the unlabelled rest equals the whole.
 *
 * Layout: see server/model/sample_attrs.c; by column: server/model/sample_attr_columns.c.
 * Threads: pure.
 * Source: label spellings of Pyroscope SDKs, dd-trace and libdatadog, parca-agent.
 */
#ifndef HEARTH_MODEL_SAMPLE_ATTRS_H
#define HEARTH_MODEL_SAMPLE_ATTRS_H

#include "hearth/base/arena.h"
#include "hearth/base/status.h"

enum hearth_attr {
    HEARTH_ATTR_NONE, /* not one of ours: an ordinary sample label */
    HEARTH_ATTR_SPAN_ID,
    HEARTH_ATTR_LOCAL_ROOT_SPAN_ID,
    HEARTH_ATTR_TRACE_ID,
    HEARTH_ATTR_SPAN_NAME,
    HEARTH_ATTR_ENDPOINT,
    HEARTH_ATTR_THREAD_ID,        /* the runtime's */
    HEARTH_ATTR_THREAD_NATIVE_ID, /* the kernel's: "thread native id", "os thread id" */
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
 * Which attribute a sample label key means. Case, spaces, '_', '-' and '.' do not matter ("span
 * id", "span_id", "spanId"); "profile_id" is Pyroscope's old name of the span id;
 * "end_timestamp_ns" is the time.
 */
enum hearth_attr hearth_attr_of_key(struct hearth_str key);

/*
 * Put one label into attrs: `str` when the label is text, else `num` (span and thread ids print as
 * unsigned). Ids as text: 16 hex digits under a key without spaces (span_id, profile_id), decimal
 * otherwise; trace ids are up to 32 hex digits; an id in another form becomes the stable XXH3-64 of
 * its text.
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

/* Encode samples (any order) into arena; *ret is empty when n is 0. NO_MEMORY on refusal. */
HEARTH_MUST_CHECK
enum hearth_status hearth_sample_attrs_encode(const struct hearth_attr_sample *samples, size_t n,
                                              uint32_t n_types, struct hearth_arena *arena,
                                              struct hearth_str *ret, struct hearth_err *err);
/* The reverse; texts borrow from `bytes`. CORRUPT for damaged bytes. */
HEARTH_MUST_CHECK
enum hearth_status hearth_sample_attrs_decode(struct hearth_str bytes, struct hearth_arena *arena,
                                              struct hearth_attr_sample **ret_samples,
                                              size_t *ret_n, uint32_t *ret_n_types,
                                              struct hearth_err *err);

/* ---- by column, for those that go over many rows: only what is wanted is made ---- */

struct hearth_attr_value {
    uint64_t hi, lo; /* an id; of traces both */
    struct hearth_str text;
};

struct hearth_attr_column {
    struct hearth_attr_value *values; /* [n_values], distinct; NULL: not wanted, or nobody has it */
    size_t n_values;
    uint32_t *index; /* [n samples]: the number of its value plus 1; 0: it has none */
};

struct hearth_attr_wish {
    uint32_t attrs;  /* bits 1 << enum hearth_attr; not TIMESTAMP */
    uint32_t column; /* of values */
    bool stacks;
};

struct hearth_attr_columns {
    size_t n; /* samples */
    int64_t *values;
    uint32_t *stack_ids; /* NULL: not wanted */
    struct hearth_attr_column of[HEARTH_ATTR_TIMESTAMP];
};

/* In arena, texts borrow from `bytes`. CORRUPT for damaged bytes and for a column that they lack, as far as they are read. */
HEARTH_MUST_CHECK
enum hearth_status hearth_sample_attrs_columns(struct hearth_str bytes,
                                               const struct hearth_attr_wish *wish,
                                               struct hearth_arena *arena,
                                               struct hearth_attr_columns *ret,
                                               struct hearth_err *err);

#endif
