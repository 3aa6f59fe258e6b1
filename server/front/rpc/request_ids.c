/*
 * request_ids.c -- ids of requests: reading those of clients, making others.
 *
 * Ids need not be secret, only distinct: they are hashes of a counter with the seed of the process.
 */
#include "rpc/request_ids.h"

#include "hearth/base/hash.h"

#include <assert.h>
#include <stdatomic.h>

#define TRACEPARENT_BYTES 55u /* VV-TRACE-SPAN-FF, of 2, 32, 16 and 2 digits */
#define TRACE_AT          3u
#define SPAN_AT           36u
#define FLAGS_AT          53u

static struct hearth_trace_id make_id(void)
{
    static _Atomic uint64_t g_next;
    uint64_t n = atomic_fetch_add_explicit(&g_next, 1, memory_order_relaxed);
    struct hearth_hash128 hash = hearth_hash128(&n, sizeof n, hearth_hash_process_seed());

    return (struct hearth_trace_id){.hi = hash.hi, .lo = hash.lo | 1};
}

/* A random number that is not 0. Safe. */
static uint64_t make_span_id(void)
{
    return make_id().lo;
}

void hearth_request_ids_init(struct hearth_request_ids *ids)
{
    *ids = (struct hearth_request_ids){.span = 0};
    hearth_trace_id_format(make_id(), ids->request_id);
}

static bool is_id_character(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c != '\0' && strchr("-_.:/+=", c) != NULL);
}

void hearth_request_ids_take_id(struct hearth_request_ids *ids, struct hearth_str value)
{
    if (value.n == 0 || value.n > HEARTH_REQUEST_ID_MAX_BYTES) {
        return;
    }

    for (size_t i = 0; i < value.n; i++) {
        if (!is_id_character(value.p[i])) {
            return;
        }
    }

    memcpy(ids->request_id, value.p, value.n);
    ids->request_id[value.n] = '\0';
}

/* The specification allows lower-case digits only. -1: another character. */
static int read_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool read_hex(struct hearth_str text, size_t at, size_t n_digits, uint64_t *ret)
{
    uint64_t number = 0;

    assert(n_digits <= 16 && at + n_digits <= text.n);
    for (size_t i = at; i < at + n_digits; i++) {
        int digit = read_digit(text.p[i]);
        if (digit < 0) {
            return false;
        }
        number = number << 4 | (uint64_t)digit;
    }

    *ret = number;

    return true;
}

void hearth_request_ids_take_traceparent(struct hearth_request_ids *ids, struct hearth_str value)
{
    uint64_t version, hi, lo, span, flags;

    /* The shape: later versions may append fields after a further '-'. */
    if (value.n < TRACEPARENT_BYTES || value.p[TRACE_AT - 1] != '-' ||
        value.p[SPAN_AT - 1] != '-' || value.p[FLAGS_AT - 1] != '-' ||
        !read_hex(value, 0, 2, &version) || version == 0xff ||
        (value.n > TRACEPARENT_BYTES && (version == 0 || value.p[TRACEPARENT_BYTES] != '-'))) {
        return;
    }

    /* The ids: neither may be zero. */
    if (!read_hex(value, TRACE_AT, 16, &hi) || !read_hex(value, TRACE_AT + 16, 16, &lo) ||
        !read_hex(value, SPAN_AT, 16, &span) || !read_hex(value, FLAGS_AT, 2, &flags) ||
        (hi == 0 && lo == 0) || span == 0) {
        return;
    }

    ids->trace = (struct hearth_trace_id){.hi = hi, .lo = lo};
    ids->parent_span = span;
    ids->is_sampled = (flags & 1) != 0;
}

bool hearth_request_ids_begin_span(struct hearth_request_ids *ids, int64_t one_in)
{
    assert(one_in >= 1);

    if (hearth_trace_id_is_none(ids->trace)) {
        struct hearth_trace_id trace = make_id();
        if (trace.hi % (uint64_t)one_in != 0) {
            return false;
        }
        ids->trace = trace;
        ids->is_sampled = true;
    }

    if (ids->is_sampled) {
        ids->span = make_span_id();
    }

    return ids->is_sampled;
}
