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

#include "pprof/pprof_packed.h"

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

/* A number that mostly has up to four bytes. */
HEARTH_ALWAYS_INLINE bool read_middle(const uint8_t **p, uint64_t *ret)
{
    uint32_t w = (uint32_t)pprof_load8(*p), stop = ~w & 0x80808080u;
    if (HEARTH_UNLIKELY(stop == 0)) {
        return pprof_word_int(p, ret);
    }

    /* Keep the bytes up to the first without the top bit, then close the gaps between sevens. */
    *p += ((unsigned)__builtin_ctz(stop) >> 3) + 1;
    w &= (stop ^ (stop - 1)) & 0x7f7f7f7fu;
    w = (w & 0x007f007fu) | (w & 0x7f007f00u) >> 1;
    *ret = (w & 0x3fffu) | (w & 0x3fff0000u) >> 2;
    return true;
}

/*
 * Whether the id of message i can be noted here: the first that is not i + 1 needs memory.
 * `direct`: all before it are like that.
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

/* No masked word is equal to it. */
#define NO_HEAD UINT64_MAX

/*
 * The id of message i + 1, of which message i is known, as the first three bytes of a word: id
 * i + 2 in two bytes. NO_HEAD if it is not of two bytes, or if the last of n messages is not.
 */
static uint64_t make_next_head(uint32_t i, uint32_t n)
{
    uint64_t id = (uint64_t)i + 2;
    return id >= 0x80 && n <= 0x3fff
               ? WORD(PPROF_INT(1), (id & 0x7f) | 0x80, id >> 7, 0, 0, 0, 0, 0)
               : NO_HEAD;
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
    uint64_t head = NO_HEAD; /* of the next message: its id */

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

/* ---- locations ---- */

/* What a location refers to, and what the next one probably begins with. */
struct location_tables {
    const struct pprof_ids *functions, *mappings;
    uint32_t n_functions, n_mappings, n_locations;
    bool direct; /* ids are indices + 1 */
    /*
     * The next id, and the mapping of the location before, or the tag of the address if that had
     * no mapping there; or NO_HEAD. Compared under the mask; n_head bytes of it are read then.
     */
    uint64_t head, head_mask;
    uint32_t n_head;
    uint32_t mapping; /* index */
};

HEARTH_ALWAYS_INLINE uint32_t find_id(const struct pprof_ids *ids, uint32_t n, bool direct,
                                      uint64_t id)
{
    if (direct) {
        return id - 1 < n ? (uint32_t)(id - 1) : HEARTH_NO_INDEX;
    }
    return pprof_ids_find(ids, id);
}

/*
 * The lines at *at, appended to *to; both move behind them. False if they are not like that, or one
 * has an unknown function.
 */
HEARTH_ALWAYS_INLINE bool read_lines(const struct location_tables *tables, const uint8_t **at,
                                     const uint8_t *end, struct hearth_line **to)
{
    const uint64_t tags = WORD(0xff, 0, 0xff, 0x80, 0x80, 0xff, 0, 0);
    const uint8_t *p = *at;
    struct hearth_line *line = *to;
    while (p < end) {
        uint64_t w = pprof_load8(p), function_id = 0, number = 0;
        const uint8_t *line_end = p + 2 + (w >> 8 & 0xff);
        if (HEARTH_LIKELY((w & tags) ==
                          WORD(PPROF_LEN(4), 0, PPROF_INT(1), 0x80, 0, PPROF_INT(2), 0, 0))) {
            function_id = TWO_BYTES(w, 3);
            p += 6;
            if (HEARTH_UNLIKELY(!read_short(&p, &number))) {
                return false;
            }
        } else {
            if (*p != PPROF_LEN(4)) {
                break;
            }
            p += 2;
            if (!read_steady(&p, PPROF_INT(1), &function_id)) {
                return false;
            }
            if (*p == PPROF_INT(2)) {
                p++;
                if (!read_short(&p, &number)) {
                    return false;
                }
            }
        }

        uint32_t function =
            find_id(tables->functions, tables->n_functions, tables->direct, function_id);
        if (HEARTH_UNLIKELY(p != line_end || function == HEARTH_NO_INDEX)) {
            return false;
        }
        line->function = function;
        line->line = (int64_t)number;
        line++;
    }

    *at = p;
    *to = line;
    return true;
}

HEARTH_ALWAYS_INLINE uint32_t find_mapping(const struct location_tables *tables, uint64_t id)
{
    return find_id(tables->mappings, tables->n_mappings, tables->direct, id);
}

/* What location i + 1 begins with if it is like location i, which began with this mapping id. */
HEARTH_ALWAYS_INLINE void predict_head(struct location_tables *tables, uint32_t i,
                                       uint64_t mapping_id)
{
    uint64_t next = make_next_head(i, tables->n_locations);
    if (mapping_id == 0) {
        tables->head = next | WORD(0, 0, 0, PPROF_INT(3), 0, 0, 0, 0);
        tables->head_mask = 0xffffffff;
        tables->n_head = 3;
    } else {
        tables->head =
            mapping_id > 0x7f ? NO_HEAD : next | WORD(0, 0, 0, PPROF_INT(2), mapping_id, 0, 0, 0);
        tables->head_mask = 0xffffffffff;
        tables->n_head = 5;
    }
}

/* The id of location i, and its mapping if that is next. False: they are not like that. */
HEARTH_ALWAYS_INLINE bool read_head(const struct pprof_scan *s, struct location_tables *tables,
                                    uint32_t i, const uint8_t **at)
{
    uint64_t id = 0, mapping_id = 0;
    if (HEARTH_LIKELY(tables->direct && (pprof_load8(*at) & tables->head_mask) == tables->head)) {
        *at += tables->n_head;
        tables->head = advance_head(tables->head);
        return true;
    }

    if (!read_steady(at, PPROF_INT(1), &id) || !read_steady(at, PPROF_INT(2), &mapping_id) ||
        !note_id(&s->locations, tables->direct, i, id)) {
        return false;
    }

    tables->mapping = find_mapping(tables, mapping_id);
    predict_head(tables, i, mapping_id);

    return true;
}

/* The mapping of a location from p to its end: Go's runtime puts it behind the lines. */
HEARTH_ALWAYS_INLINE bool read_late_mapping(const struct location_tables *tables, const uint8_t *p,
                                            const uint8_t *end, uint32_t *ret)
{
    uint64_t id = 0;
    if (p > end || !read_steady(&p, PPROF_INT(2), &id)) {
        return false;
    }

    *ret = find_mapping(tables, id);
    return p == end;
}

HEARTH_ALWAYS_INLINE uint32_t run_locations(struct pprof_scan *s, uint32_t i, bool direct)
{
    struct location_tables tables = {
        .functions = &s->functions,
        .mappings = &s->mappings,
        .n_functions = s->functions.n,
        .n_mappings = s->mappings.n,
        .n_locations = s->locations.n,
        .direct = direct,
        .head = NO_HEAD,
    };
    const uint8_t *base = s->base, *limit = find_limit(s, SHORT_SLACK_BYTES);
    const uint32_t *at = s->of[KIND_LOCATION].at;
    struct hearth_location *locations = s->out->locations;
    struct hearth_line *lines = s->out->lines, *line = lines + s->out->n_lines;
    const struct hearth_line *last = lines + s->cap_lines - PPROF_SPARE_LINES;
    uint32_t n = s->locations.n;
    size_t n_bytes = 0;

    for (; i < n; i++) {
        const uint8_t *p = base + at[i];
        size_t length = *p++;
        const uint8_t *end = p + length;
        uint64_t address = 0;
        struct hearth_line *first_line = line;
        if (HEARTH_UNLIKELY(p > limit || length > MAX_SHORT_BYTES || line > last)) {
            break;
        }

        if (HEARTH_UNLIKELY(!read_head(s, &tables, i, &p))) {
            break;
        }
        if (HEARTH_LIKELY(*p == PPROF_INT(3))) {
            p++;
            if (HEARTH_UNLIKELY(!read_middle(&p, &address))) {
                break;
            }
        }
        struct hearth_location *to = &locations[i];
        to->mapping = tables.mapping;
        if (HEARTH_UNLIKELY(!read_lines(&tables, &p, end, &line)) ||
            (p != end && !read_late_mapping(&tables, p, end, &to->mapping))) {
            line = first_line;
            break;
        }

        to->first_line = (uint32_t)(first_line - lines);
        to->n_lines = (uint32_t)(line - first_line);
        to->is_folded = false;
        to->address = address;
        n_bytes += length;
    }

    s->out->n_lines = (uint32_t)(line - lines);
    pprof_count_bytes_read(s, n_bytes);

    return i;
}

uint32_t hearth_pprof_run_locations(struct pprof_scan *s, uint32_t i)
{
    bool direct = s->locations.ids == NULL && s->functions.ids == NULL && s->mappings.ids == NULL;
    if (direct) {
        return run_locations(s, i, true);
    }
    return s->locations.ids == NULL ? i : run_locations(s, i, false);
}

/* ---- samples ---- */

/* A length of one or two bytes. False if it is longer. */
HEARTH_ALWAYS_INLINE bool read_length(const uint8_t **p, size_t *ret)
{
    const uint8_t *at = *p;
    if (HEARTH_LIKELY(at[0] < 0x80)) {
        *ret = at[0];
        *p = at + 1;
        return true;
    }

    *ret = at[0] + ((size_t)at[1] << 7) - 0x80;
    *p = at + 2;
    return at[1] < 0x80;
}

/* Counts mostly have one byte; nanoseconds have four or more. */
HEARTH_ALWAYS_INLINE bool read_value(const uint8_t **p, uint64_t *ret)
{
    if (**p < 0x80) {
        *ret = *(*p)++;
        return true;
    }
    return read_middle(p, ret);
}

/* The packed values from p to `end`: exactly n. */
HEARTH_ALWAYS_INLINE bool read_packed_values(const uint8_t *p, const uint8_t *end, int64_t *values,
                                             uint32_t n)
{
    for (uint32_t k = 0; k < n; k++) {
        uint64_t value;
        if (HEARTH_UNLIKELY(p >= end || !read_value(&p, &value))) {
            return false;
        }
        values[k] = (int64_t)value;
    }

    return p == end;
}

/* Exactly n values at *at: packed, or one by one, as writers put one or two of them. */
HEARTH_ALWAYS_INLINE bool read_values(const uint8_t **at, const uint8_t *end, int64_t *values,
                                      uint32_t n)
{
    const uint8_t *p = *at;
    if (p < end && *p == PPROF_LEN(2)) {
        *at = p + 2 + p[1];
        return HEARTH_LIKELY(p[1] < 0x80 && *at <= end) &&
               read_packed_values(p + 2, *at, values, n);
    }

    for (uint32_t k = 0; k < n; k++) {
        uint64_t value;
        if (HEARTH_UNLIKELY(p >= end || *p++ != PPROF_INT(2) || !read_value(&p, &value))) {
            return false;
        }
        values[k] = (int64_t)value;
    }

    *at = p;
    return true;
}

/* The location ids at *at: packed, or one by one, as writers put one or two of them; or none. */
HEARTH_ALWAYS_INLINE bool read_ids(const uint8_t **at, const uint8_t *end, uint32_t n_locations,
                                   uint32_t *locs, size_t *ret_n)
{
    const uint8_t *p = *at;
    size_t length, n = 0;
    if (HEARTH_LIKELY(p < end && *p == PPROF_LEN(1))) {
        p++;
        if (HEARTH_UNLIKELY(!read_length(&p, &length) || p > end || length > (size_t)(end - p))) {
            return false;
        }
        *at = p + length;
        return hearth_pprof_packed_read(p, p + length, n_locations, locs, ret_n);
    }

    while (p < end && *p == PPROF_INT(1)) {
        uint64_t id = 0;
        if (!read_steady(&p, PPROF_INT(1), &id) || id - 1 >= n_locations) {
            return false;
        }
        locs[n++] = (uint32_t)(id - 1);
    }

    *at = p;
    *ret_n = n;
    return true;
}

/* Where labels of samples are written to. */
struct label_run {
    struct hearth_sample_label *labels;
    uint32_t n, n_strings;
    size_t cap;
};

/* The labels from p to the end of a sample. */
HEARTH_ALWAYS_INLINE bool read_labels(const uint8_t *p, const uint8_t *end, struct label_run *run)
{
    while (p < end) {
        const uint8_t *label_end = p + 2 + p[1];
        uint64_t key = 0, str = 0, num = 0, unit = 0;
        if (HEARTH_UNLIKELY(*p != PPROF_LEN(3) || p[1] >= 0x80 || label_end > end ||
                            run->n >= run->cap)) {
            return false;
        }

        p += 2;
        if (!read_steady(&p, PPROF_INT(1), &key) || !read_steady(&p, PPROF_INT(2), &str)) {
            return false;
        }
        if (*p == PPROF_INT(3)) {
            p++;
            if (!pprof_word_int(&p, &num)) {
                return false;
            }
        }
        if (!read_steady(&p, PPROF_INT(4), &unit) || p != label_end || key >= run->n_strings ||
            str >= run->n_strings || unit >= run->n_strings) {
            return false;
        }

        run->labels[run->n++] = (struct hearth_sample_label){
            .key = (uint32_t)key,
            .str = (uint32_t)str,
            .num_unit = (uint32_t)unit,
            .num = (int64_t)num,
        };
    }

    return p == end;
}

/* The ids and values of a sample, in this order, or in the other one, as Go's runtime does. */
HEARTH_ALWAYS_INLINE bool read_numbers(const struct pprof_scan *s, const uint8_t **p,
                                       const uint8_t *end, int64_t *values, uint32_t *locs,
                                       size_t *ret_n_locs)
{
    uint32_t n_types = s->out->n_types, n_locations = s->locations.n;
    if (**p == PPROF_LEN(1) || **p == PPROF_INT(1)) {
        return read_ids(p, end, n_locations, locs, ret_n_locs) &&
               read_values(p, end, values, n_types);
    }

    return read_values(p, end, values, n_types) && read_ids(p, end, n_locations, locs, ret_n_locs);
}

uint32_t hearth_pprof_run_samples(struct pprof_scan *s, uint32_t i)
{
    struct hearth_profile *out = s->out;
    const uint8_t *base = s->base, *limit = find_limit(s, RUN_SLACK_BYTES);
    const uint32_t *at = s->of[KIND_SAMPLE].at;
    uint32_t n = out->n_samples;
    uint32_t max_depth = s->limits->max_depth == 0 ? UINT32_MAX : s->limits->max_depth;
    uint32_t max_labels =
        s->limits->max_sample_labels == 0 ? UINT32_MAX : s->limits->max_sample_labels;
    uint32_t *loc = out->stack_locs + out->n_stack_locs;
    const uint32_t *locs_end = out->stack_locs + s->cap_stack_locs;
    struct label_run labels = {out->sample_labels, out->n_sample_labels, out->n_strings,
                               s->cap_sample_labels};
    size_t n_bytes = 0;

    if (!s->has_shuffles || s->locations.ids != NULL) {
        return i;
    }

    for (; i < n; i++) {
        const uint8_t *p = base + at[i];
        size_t length, n_locs;
        if (HEARTH_UNLIKELY(p >= limit || !read_length(&p, &length) || p > limit ||
                            length > (size_t)(limit - p) || (size_t)(locs_end - loc) < length)) {
            break;
        }

        const uint8_t *end = p + length;
        int64_t *values = out->values + (size_t)i * out->n_types;
        if (HEARTH_UNLIKELY(!read_numbers(s, &p, end, values, loc, &n_locs) ||
                            n_locs > max_depth)) {
            break;
        }

        uint32_t first_label = labels.n;
        if (HEARTH_UNLIKELY(!read_labels(p, end, &labels) || labels.n - first_label > max_labels)) {
            labels.n = first_label;
            break;
        }

        out->stack_first[i] = (uint32_t)(loc - out->stack_locs);
        out->label_first[i] = first_label;
        loc += n_locs;
        n_bytes += length;
    }

    out->n_stack_locs = (uint32_t)(loc - out->stack_locs);
    out->n_sample_labels = labels.n;
    pprof_count_bytes_read(s, n_bytes);

    return i;
}
