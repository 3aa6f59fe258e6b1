/*
 * otlp_dictionary.c -- the dictionary of a request as flat tables.
 *
 * Entry 0 of each table stands for "none" and is empty. It is read like any other, because some
 * senders use it; a table that the message lacks gets an empty one. Each table refers only to
 * tables that are read before it, and each index is checked: a dictionary with a dangling index was
 * written by a faulty encoder, and nothing in it can be trusted.
 */
#include "hearth/base/limit.h"
#include "hearth/model/trace_ids.h"

#include "otlp/otlp_scan.h"
#include "pprof/pprof_text.h"

enum hearth_status hearth_otlp_count_tables(struct otlp_scan *s, struct pprof_cursor c)
{
    uint32_t n = 0, max = s->options->limits.max_entries;
    struct pprof_cursor payload;
    uint64_t tag;

    while (pprof_next(&c, &tag)) {
        uint64_t field = tag >> 3;
        if ((tag & 7) == 2 && field > 0 && field < OTLP_N_TABLES && pprof_payload(&c, &payload)) {
            s->counts[field]++;
            if (max > 0 && ++n > max) {
                return HEARTH_FAIL(s->err, HEARTH_RESOURCE_EXHAUSTED,
                                   "the dictionary has more than %u entries" HEARTH_RAISE_LIMIT(
                                       "max-table-entries"),
                                   max);
            }
        } else if (c.why == NULL) {
            c = hearth_pprof_skip(c, tag, OTLP_N_TABLES - 1);
        }
        if (c.why != NULL) {
            break;
        }
    }

    return c.why == NULL ? HEARTH_OK : hearth_otlp_damaged(s, "the dictionary", c);
}

/* Calls `read` for each entry of a table. count_entries has checked the lengths. */
static enum hearth_status read_entries(struct otlp_scan *s, struct pprof_cursor c,
                                       enum otlp_table table, otlp_read_entry_fn *read)
{
    struct pprof_cursor payload = {0};
    uint32_t i = 0;
    uint64_t tag;

    while (pprof_next(&c, &tag)) {
        if (tag == PPROF_LEN(table) && pprof_payload(&c, &payload)) {
            HEARTH_TRY(read(s, payload, i++));
        } else {
            c = hearth_pprof_skip(c, tag, 0);
        }
    }

    return HEARTH_OK;
}

/* ---- entries ---- */

static enum hearth_status read_string_entry(struct otlp_scan *s, struct pprof_cursor c, uint32_t i)
{
    s->dictionary.strings[i] = otlp_view(c);
    return hearth_pprof_mend_text(&s->dictionary.strings[i], s->options->limits.max_string_bytes,
                                  s->arena, &s->out->notes)
               ? HEARTH_OK
               : HEARTH_FAIL_ARENA(s->err, s->arena);
}

static enum hearth_status read_attribute_entry(struct otlp_scan *s, struct pprof_cursor c,
                                               uint32_t i)
{
    struct otlp_attribute *attribute = &s->dictionary.attributes[i];

    HEARTH_TRY(hearth_otlp_read_attribute(s, c, true, attribute));
    attribute->role = hearth_str_eq_c(attribute->key, OTLP_SERVICE_NAME)      ? OTLP_SERVICE
                      : hearth_str_eq_c(attribute->key, OTLP_EXECUTABLE_NAME) ? OTLP_EXECUTABLE
                                                                              : OTLP_LABEL;

    return HEARTH_OK;
}

/* Big-endian bytes as hexadecimal digits; false if all are 0. */
static bool print_hex(struct hearth_str bytes, char *to)
{
    static const char digits[] = "0123456789abcdef";
    bool is_set = false;

    for (size_t i = 0; i < bytes.n; i++) {
        unsigned char byte = (unsigned char)bytes.p[i];
        to[2 * i] = digits[byte >> 4];
        to[2 * i + 1] = digits[byte & 15];
        is_set = is_set || byte != 0;
    }

    return is_set;
}

static enum hearth_status read_link_entry(struct otlp_scan *s, struct pprof_cursor c, uint32_t i)
{
    struct otlp_link *link = &s->dictionary.links[i];
    struct pprof_cursor id;
    uint64_t tag;

    while (pprof_next(&c, &tag)) {
        size_t n = tag == PPROF_LEN(1) ? 16 : 8;
        if ((tag == PPROF_LEN(1) || tag == PPROF_LEN(2)) && pprof_payload(&c, &id)) {
            struct hearth_str bytes = otlp_view(id);
            if (bytes.n != n && bytes.n != 0) {
                return HEARTH_FAIL(s->err, HEARTH_INVALID_ARGUMENT,
                                   "dictionary.link_table[%u].%s has %zu bytes instead of %zu", i,
                                   n == 16 ? "trace_id" : "span_id", bytes.n, n);
            }
            link->has_trace = n == 16 ? print_hex(bytes, link->trace) : link->has_trace;
            link->span_id = n == 8 ? hearth_span_id_of_bytes(bytes) : link->span_id;
        } else if (c.why == NULL) {
            c = hearth_pprof_skip(c, tag, 2);
        }
        if (c.why != NULL) {
            return hearth_otlp_damaged_entry(s, OTLP_LINKS, i, c);
        }
    }

    return HEARTH_OK;
}

static enum hearth_status read_stack_entry(struct otlp_scan *s, struct pprof_cursor c, uint32_t i)
{
    struct otlp_dictionary *d = &s->dictionary;
    uint32_t at = d->stack_first[i];
    struct pprof_cursor list;
    uint64_t tag, idx;

    while (pprof_next(&c, &tag)) {
        if (otlp_is_list(tag, 1) && otlp_list(&c, tag, &list)) {
            while (list.p < list.end && pprof_int(&list, &idx)) {
                HEARTH_TRY(hearth_otlp_check_reference(s, OTLP_STACKS, i, OTLP_LOCATIONS, idx));
                d->stack_locs[at++] = (uint32_t)idx;
            }
            c.why = list.why;
        } else if (c.why == NULL) {
            c = hearth_pprof_skip(c, tag, 1);
        }
        if (c.why != NULL) {
            return hearth_otlp_damaged_entry(s, OTLP_STACKS, i, c);
        }
    }

    d->stack_first[i + 1] = at;

    return HEARTH_OK;
}

/* ---- tables ---- */

/* The lines of all locations, or the locations of all stacks: both are field `field`. */
static size_t count_parts(struct pprof_cursor c, enum otlp_table table, uint32_t field)
{
    struct pprof_cursor entry, list;
    uint64_t tag;
    size_t n = 0;

    while (c.why == NULL && pprof_next(&c, &tag)) {
        if (tag != PPROF_LEN(table) || !pprof_payload(&c, &entry)) {
            c = c.why == NULL ? hearth_pprof_skip(c, tag, 0) : c;
            continue;
        }
        while (entry.why == NULL && pprof_next(&entry, &tag)) {
            if (otlp_is_list(tag, field) && otlp_list(&entry, tag, &list)) {
                n += table == OTLP_STACKS ? otlp_count_integers(list) : 1;
            } else if (entry.why == NULL) {
                entry = hearth_pprof_skip(entry, tag, 0);
            }
        }
    }

    return n;
}

/* A zeroed array with at least one entry. */
static void *make_table(struct otlp_scan *s, uint32_t *n, size_t size)
{
    *n = *n == 0 ? 1 : *n;
    return hearth_arena_calloc(s->arena, *n, size);
}

/* The arrays of the items inside entries: lines of locations, locations of stacks. */
static enum hearth_status make_parts(struct otlp_scan *s, struct pprof_cursor payload)
{
    const struct hearth_pprof_limits *limits = &s->options->limits;
    size_t n_lines = count_parts(payload, OTLP_LOCATIONS, 3);
    size_t n_frames = count_parts(payload, OTLP_STACKS, 1);

    if (limits->max_entries > 0 && n_lines > limits->max_entries) {
        return HEARTH_FAIL(
            s->err, HEARTH_RESOURCE_EXHAUSTED,
            "the locations have %zu lines; the limit is %u" HEARTH_RAISE_LIMIT("max-table-entries"),
            n_lines, limits->max_entries);
    }
    if (limits->max_frames > 0 && n_frames > limits->max_frames) {
        return HEARTH_FAIL(
            s->err, HEARTH_RESOURCE_EXHAUSTED,
            "the stacks have %zu frames; the limit is %u" HEARTH_RAISE_LIMIT("max-stack-frames"),
            n_frames, limits->max_frames);
    }

    s->dictionary.lines = hearth_arena_array(s->arena, n_lines, sizeof *s->dictionary.lines);
    s->dictionary.stack_locs =
        hearth_arena_array(s->arena, n_frames, sizeof *s->dictionary.stack_locs);

    return s->dictionary.lines == NULL || s->dictionary.stack_locs == NULL
               ? HEARTH_FAIL_ARENA(s->err, s->arena)
               : HEARTH_OK;
}

static enum hearth_status make_tables(struct otlp_scan *s, struct pprof_cursor payload)
{
    struct otlp_dictionary *d = &s->dictionary;
    const uint32_t *counts = s->counts;

    /* Exact sizes: all arrays are linear in the message. */
    d->n_strings = counts[OTLP_STRINGS];
    d->n_attributes = counts[OTLP_ATTRIBUTES];
    d->n_mappings = counts[OTLP_MAPPINGS];
    d->n_functions = counts[OTLP_FUNCTIONS];
    d->n_locations = counts[OTLP_LOCATIONS];
    d->n_links = counts[OTLP_LINKS];
    d->n_stacks = counts[OTLP_STACKS] == 0 ? 1 : counts[OTLP_STACKS];
    d->strings = make_table(s, &d->n_strings, sizeof *d->strings);
    d->attributes = make_table(s, &d->n_attributes, sizeof *d->attributes);
    d->mappings = make_table(s, &d->n_mappings, sizeof *d->mappings);
    d->functions = make_table(s, &d->n_functions, sizeof *d->functions);
    d->locations = make_table(s, &d->n_locations, sizeof *d->locations);
    d->links = make_table(s, &d->n_links, sizeof *d->links);
    d->stack_first = hearth_arena_calloc(s->arena, (size_t)d->n_stacks + 1, sizeof *d->stack_first);

    if (s->arena->refused) {
        return HEARTH_FAIL_ARENA(s->err, s->arena);
    }

    return make_parts(s, payload);
}

enum hearth_status hearth_otlp_read_dictionary(struct otlp_scan *s, struct pprof_cursor payload)
{
    static const struct {
        enum otlp_table table;
        otlp_read_entry_fn *read;
    } order[] = {
        {OTLP_STRINGS, read_string_entry},
        {OTLP_ATTRIBUTES, read_attribute_entry},
        {OTLP_MAPPINGS, hearth_otlp_read_mapping},
        {OTLP_FUNCTIONS, hearth_otlp_read_function},
        {OTLP_LOCATIONS, hearth_otlp_read_location},
        {OTLP_LINKS, read_link_entry},
        {OTLP_STACKS, read_stack_entry},
    };

    HEARTH_TRY(make_tables(s, payload));
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(order); i++) {
        HEARTH_TRY(read_entries(s, payload, order[i].table, order[i].read));
    }

    s->dictionary.locations[0].mapping =
        s->counts[OTLP_LOCATIONS] == 0 ? HEARTH_NO_INDEX : s->dictionary.locations[0].mapping;

    return HEARTH_OK;
}
