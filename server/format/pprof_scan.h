/*
 * pprof_scan.h -- the state of one decoding, shared by the two halves of the pprof decoder.
 *
 * pprof_decode.c steps over the top level and reads strings and types; pprof_messages.c reads
 * mappings, functions, locations and samples, which refer to them.
 */
#ifndef HEARTH_FORMAT_PPROF_SCAN_H
#define HEARTH_FORMAT_PPROF_SCAN_H

#include "hearth/format/pprof.h"

#include "pprof_ids.h"
#include "pprof_wire.h"

/* The field numbers of the top level whose messages are many. */
enum kind {
    KIND_TYPE = 1,
    KIND_SAMPLE,
    KIND_MAPPING,
    KIND_LOCATION,
    KIND_FUNCTION,
    KIND_STRING,
    N_KINDS
};

/* Where the messages of one kind are: at[i] is the offset of message i's length. */
struct offsets {
    uint32_t *at;
    uint32_t n, cap;
    size_t n_bytes; /* payloads together */
};

struct scan {
    const uint8_t *base;
    size_t n_bytes; /* below 4 GiB: so no table has more than UINT32_MAX entries */
    const struct hearth_pprof_limits *limits;
    struct hearth_arena *arena;
    struct hearth_profile *out;
    struct hearth_pprof_notes *notes;
    struct hearth_err *err;
    struct offsets of[N_KINDS];
    struct pprof_ids mappings, functions, locations;
    size_t cap_stack_locs, cap_sample_labels, cap_lines;
    /* Of the kind being read: messages, and payload bytes before and from the current message on.
     */
    uint32_t n_messages;
    size_t n_bytes_done, n_bytes_left;
};

/* Message i of a kind. The step over the top level has checked its length. */
static inline struct pprof_cursor message(const struct scan *s, enum kind kind, uint32_t i)
{
    struct pprof_cursor c = {s->base + s->of[kind].at[i], s->base + s->n_bytes, NULL};
    struct pprof_cursor payload = c;
    (void)pprof_payload(&c, &payload);
    return payload;
}

/* INVALID_ARGUMENT: `what` number i is damaged where c stands. */
enum hearth_status hearth_pprof_damaged(const struct scan *s, const char *what, uint32_t i,
                                        struct pprof_cursor c);

/*
 * INVALID_ARGUMENT: a field of `what` number i (HEARTH_NO_INDEX: there is but one) is an index
 * beyond the string table.
 */
enum hearth_status hearth_pprof_no_such_string(const struct scan *s, const char *what, uint32_t i,
                                               const char *field);

HEARTH_MUST_CHECK static inline enum hearth_status
check_string(const struct scan *s, const char *what, uint32_t i, const char *field, uint32_t string)
{
    return HEARTH_LIKELY(string < s->out->n_strings)
               ? HEARTH_OK
               : hearth_pprof_no_such_string(s, what, i, field);
}

/* In this order; each refers to those before it. */
HEARTH_MUST_CHECK enum hearth_status hearth_pprof_read_mappings(struct scan *s);
HEARTH_MUST_CHECK enum hearth_status hearth_pprof_read_functions(struct scan *s);
HEARTH_MUST_CHECK enum hearth_status hearth_pprof_read_locations(struct scan *s);
HEARTH_MUST_CHECK enum hearth_status hearth_pprof_read_samples(struct scan *s);

#endif
