/*
 * pprof_scan.h -- the state of one decoding, shared by the files of the pprof decoder.
 *
 * pprof_decode.c scans the top level and reads strings and types; pprof_messages.c reads mappings,
 * functions, locations and samples, which refer to them, in any form; pprof_runs.c in the usual
 * one.
 */
#ifndef HEARTH_FORMAT_PPROF_SCAN_H
#define HEARTH_FORMAT_PPROF_SCAN_H

#include "hearth/format/pprof.h"

#include "pprof/pprof_ids.h"
#include "pprof/pprof_wire.h"

/* The field numbers of the repeated top-level fields. */
enum pprof_kind {
    KIND_TYPE = 1,
    KIND_SAMPLE,
    KIND_MAPPING,
    KIND_LOCATION,
    KIND_FUNCTION,
    KIND_STRING,
    N_KINDS
};

/* The messages of one kind: at[i] is the offset of the length of message i. */
struct pprof_offsets {
    uint32_t *at;
    uint32_t n, cap;
    size_t n_bytes; /* sum of the payloads */
};

struct pprof_scan {
    const uint8_t *base;
    size_t n_bytes; /* below 4 GiB, so no table has more than UINT32_MAX entries */
    const struct hearth_pprof_limits *limits;
    struct hearth_arena *arena;
    struct hearth_profile *out;
    struct hearth_pprof_notes *notes;
    struct hearth_err *err;
    struct pprof_offsets of[N_KINDS];
    struct pprof_ids mappings, functions, locations;
    size_t cap_stack_locs, cap_sample_labels, cap_lines;
    bool has_shuffles; /* pprof_packed.h may be used; ids of two bytes reach every location */
    /*
     * The current kind: its messages, and its payload bytes before and after the current message.
     */
    uint32_t n_messages;
    size_t n_bytes_done, n_bytes_left;
};

/*
 * Room for so many lines makes a location with a length of one byte fit, because a line takes two
 * bytes. cap_lines is never less.
 */
#define PPROF_SPARE_LINES 64

/* The payload of message i of a kind. read_top_level has checked its length. */
static inline struct pprof_cursor pprof_message(const struct pprof_scan *s, enum pprof_kind kind,
                                                uint32_t i)
{
    struct pprof_cursor c = {s->base + s->of[kind].at[i], s->base + s->n_bytes, NULL};
    struct pprof_cursor payload = c;
    (void)pprof_payload(&c, &payload);
    return payload;
}

/* A message of the current kind with n_bytes of payload has been read. */
static inline void pprof_count_bytes_read(struct pprof_scan *s, size_t n_bytes)
{
    s->n_bytes_left -= n_bytes;
    s->n_bytes_done += n_bytes;
}

/* True if so many bytes follow the end of the message that words may be read beyond it. */
#define PPROF_SLACK_BYTES 64
static inline bool pprof_has_slack(const struct pprof_scan *s, struct pprof_cursor c)
{
    return (size_t)(s->base + s->n_bytes - c.end) >= PPROF_SLACK_BYTES;
}

/* INVALID_ARGUMENT: `what` number i is damaged at the position of c. */
enum hearth_status hearth_pprof_damaged(const struct pprof_scan *s, const char *what, uint32_t i,
                                        struct pprof_cursor c);

/*
 * INVALID_ARGUMENT: a field of `what` number i (HEARTH_NO_INDEX: there is only one) is an index
 * beyond the string table.
 */
enum hearth_status hearth_pprof_no_such_string(const struct pprof_scan *s, const char *what,
                                               uint32_t i, const char *field);

HEARTH_MUST_CHECK static inline enum hearth_status pprof_check_string(const struct pprof_scan *s,
                                                                      const char *what, uint32_t i,
                                                                      const char *field,
                                                                      uint32_t string)
{
    return HEARTH_LIKELY(string < s->out->n_strings)
               ? HEARTH_OK
               : hearth_pprof_no_such_string(s, what, i, field);
}

/* Call them in this order; each refers to the tables of those before it. */
HEARTH_MUST_CHECK enum hearth_status hearth_pprof_read_mappings(struct pprof_scan *s);
HEARTH_MUST_CHECK enum hearth_status hearth_pprof_read_functions(struct pprof_scan *s);
HEARTH_MUST_CHECK enum hearth_status hearth_pprof_read_locations(struct pprof_scan *s);
HEARTH_MUST_CHECK enum hearth_status hearth_pprof_read_samples(struct pprof_scan *s);

#endif
