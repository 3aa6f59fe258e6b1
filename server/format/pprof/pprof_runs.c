/*
 * pprof_runs.c -- loops over messages in their usual form, with all state in registers.
 *
 * A field that is not there costs one comparison. Ids and indices mostly count up, so the processor
 * foresees whether they have one byte or two, and branches are cheap. Line numbers, addresses and
 * values differ from message to message: they are read without a branch on their length.
 *
 * A message has to end where its last field ends; until that is known, a field may be read beyond
 * it. So there are RUN_SLACK_BYTES behind every message that is read here: no message is read more
 * than its last field too far.
 */
#include "pprof/pprof_runs.h"

#define RUN_SLACK_BYTES   64
#define MAX_SHORT_BYTES   0x7f /* of a message whose length is one byte */
#define SHORT_SLACK_BYTES (1 + MAX_SHORT_BYTES + RUN_SLACK_BYTES)

/*
 * Where n bytes are left at least, or fewer: a message with up to n bytes that begins before it has
 * them.
 */
static const uint8_t *find_limit(const struct pprof_scan *s, size_t n)
{
    return s->base + (s->n_bytes > n ? s->n_bytes - n : 0);
}

/* The id or index in field `tag` at *p, if that stands there. False: longer than eight bytes. */
HEARTH_ALWAYS_INLINE bool read_steady(const uint8_t **p, uint8_t tag, uint64_t *ret)
{
    const uint8_t *at = *p;
    if (HEARTH_UNLIKELY(at[0] != tag)) {
        return true;
    }

    if (at[1] < 0x80) {
        *ret = at[1];
        *p = at + 2;
        return true;
    }
    if (HEARTH_LIKELY(at[2] < 0x80)) {
        *ret = at[1] + ((uint64_t)at[2] << 7) - 0x80;
        *p = at + 3;
        return true;
    }

    *p = at + 1;
    return pprof_word_int(p, ret);
}

/* A number that mostly has one or two bytes, which nothing foretells. */
HEARTH_ALWAYS_INLINE bool read_short(const uint8_t **p, uint64_t *ret)
{
    const uint8_t *at = *p;
    if (HEARTH_UNLIKELY((at[0] & at[1] & 0x80) != 0)) {
        return pprof_word_int(p, ret);
    }

    uint64_t is_long = at[0] >> 7;
    *ret = (at[0] & 0x7fu) | ((uint64_t)at[1] << 7 & (0 - is_long));
    *p = at + 1 + is_long;
    return true;
}

/*
 * Whether the id of message i can be noted here: the first that is not i + 1 needs memory. `direct`:
 * all before it are like that.
 */
HEARTH_ALWAYS_INLINE bool note_id(const struct pprof_ids *ids, bool direct, uint32_t i, uint64_t id)
{
    if (direct) {
        return id == (uint64_t)i + 1;
    }

    ids->ids[i] = id;
    return id != 0;
}

/* ---- the usual beginning of a message, eight bytes at a time ---- */

#define WORD(b0, b1, b2, b3, b4, b5, b6, b7)                                              \
    ((uint64_t)(b0) | (uint64_t)(b1) << 8 | (uint64_t)(b2) << 16 | (uint64_t)(b3) << 24 | \
     (uint64_t)(b4) << 32 | (uint64_t)(b5) << 40 | (uint64_t)(b6) << 48 | (uint64_t)(b7) << 56)

/* The number of two bytes from byte n of a word on, of which the first has its top bit. */
#define TWO_BYTES(w, n) \
    ((uint32_t)((w) >> (8 * (n)) & 0x7f) | (uint32_t)((w) >> (8 * (n) + 1) & 0x3f80))

/*
 * The id of message i + 1, of which message i is known, as the first three bytes of a word: id i + 2
 * in two bytes. 0 if it is not of two bytes, or if the last of n messages is not.
 */
static uint64_t make_next_head(uint32_t i, uint32_t n)
{
    uint64_t id = (uint64_t)i + 2;
    return id >= 0x80 && n <= 0x3fff
               ? WORD(PPROF_INT(1), (id & 0x7f) | 0x80, id >> 7, 0, 0, 0, 0, 0)
               : 0;
}

/* The same for the next one: the carry of the lower seven bits reaches the upper ones. */
HEARTH_ALWAYS_INLINE uint64_t advance_head(uint64_t head)
{
    return (head + 0x100) | 0x8000;
}

/* ---- functions ---- */

/* The fields of a function after its id. */
HEARTH_ALWAYS_INLINE bool read_names(const uint8_t **at, struct hearth_function *f,
                                     uint64_t n_strings)
{
    const uint64_t tags = WORD(0xff, 0x80, 0x80, 0xff, 0x80, 0x80, 0xff, 0);
    const uint8_t *p = *at;
    uint64_t w = pprof_load8(p), name = 0, system_name = 0, filename = 0, start_line = 0;
    if (HEARTH_LIKELY((w & tags) ==
                      WORD(PPROF_INT(2), 0x80, 0, PPROF_INT(3), 0x80, 0, PPROF_INT(4), 0))) {
        name = TWO_BYTES(w, 1);
        system_name = TWO_BYTES(w, 4);
        p += 6;
    } else if (!read_steady(&p, PPROF_INT(2), &name) ||
               !read_steady(&p, PPROF_INT(3), &system_name)) {
        return false;
    }

    if (HEARTH_UNLIKELY(!read_steady(&p, PPROF_INT(4), &filename))) {
        return false;
    }
    if (*p == PPROF_INT(5)) {
        p++;
        if (HEARTH_UNLIKELY(!read_short(&p, &start_line))) {
            return false;
        }
    }

    *at = p;
    f->name = (uint32_t)name;
    f->system_name = (uint32_t)system_name;
    f->filename = (uint32_t)filename;
    f->start_line = (int64_t)start_line;

    return name < n_strings && system_name < n_strings && filename < n_strings;
}

HEARTH_ALWAYS_INLINE uint32_t run_functions(struct pprof_scan *s, uint32_t i, bool direct)
{
    const uint8_t *base = s->base, *limit = find_limit(s, SHORT_SLACK_BYTES);
    const uint32_t *at = s->of[KIND_FUNCTION].at;
    struct hearth_function *functions = s->out->functions;
    uint32_t n = s->functions.n, n_strings = s->out->n_strings;
    uint64_t head = 0; /* of the next message: its id */

    for (; i < n; i++) {
        const uint8_t *p = base + at[i], *end = p + 1 + *p;
        if (HEARTH_UNLIKELY(p >= limit || *p++ > MAX_SHORT_BYTES)) {
            break;
        }

        if (HEARTH_LIKELY(direct && (pprof_load8(p) & 0xffffff) == head)) {
            p += 3;
            head = advance_head(head);
        } else {
            uint64_t id = 0;
            if (!read_steady(&p, PPROF_INT(1), &id) || !note_id(&s->functions, direct, i, id)) {
                break;
            }
            head = make_next_head(i, n);
        }

        if (HEARTH_UNLIKELY(!read_names(&p, &functions[i], n_strings) || p != end)) {
            break;
        }
    }

    return i;
}

uint32_t hearth_pprof_run_functions(struct pprof_scan *s, uint32_t i)
{
    return s->functions.ids == NULL ? run_functions(s, i, true) : run_functions(s, i, false);
}
