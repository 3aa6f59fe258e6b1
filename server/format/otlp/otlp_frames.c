/*
 * otlp_frames.c -- the entries of the dictionary that frames are made of: mappings, functions,
 * locations with their lines.
 */
#include "otlp/otlp_scan.h"

/* The build id among the attributes of a mapping; GNU's before Go's before a hash of the file. */
static enum hearth_status choose_build_id(struct otlp_scan *s, struct pprof_cursor list, uint32_t i,
                                          int *rank)
{
    static const char *const keys[] = {"process.executable.build_id.htlhash",
                                       "process.executable.build_id.go",
                                       "process.executable.build_id.gnu"};
    uint64_t idx;

    while (list.p < list.end && pprof_int(&list, &idx)) {
        HEARTH_TRY(hearth_otlp_check_reference(s, OTLP_MAPPINGS, i, OTLP_ATTRIBUTES, idx));
        const struct otlp_attribute *attribute = &s->dictionary.attributes[idx];
        for (int k = *rank; k < (int)HEARTH_ARRAY_LEN(keys); k++) {
            if (attribute->value.text.n > 0 && hearth_str_eq_c(attribute->key, keys[k])) {
                s->dictionary.mappings[i].build_id = attribute->value.text;
                *rank = k + 1;
            }
        }
    }

    return list.why == NULL ? HEARTH_OK : hearth_otlp_damaged_entry(s, OTLP_MAPPINGS, i, list);
}

enum hearth_status hearth_otlp_read_mapping(struct otlp_scan *s, struct pprof_cursor c, uint32_t i)
{
    struct otlp_mapping *m = &s->dictionary.mappings[i];
    struct pprof_cursor list;
    uint64_t tag, filename = 0;
    int rank = 0;

    while (pprof_next(&c, &tag)) {
        if (tag == PPROF_INT(1)) {
            (void)pprof_int(&c, &m->start);
        } else if (tag == PPROF_INT(2)) {
            (void)pprof_int(&c, &m->limit);
        } else if (tag == PPROF_INT(3)) {
            (void)pprof_int(&c, &m->offset);
        } else if (tag == PPROF_INT(4)) {
            (void)pprof_int(&c, &filename);
        } else if (otlp_is_list(tag, 5) && otlp_list(&c, tag, &list)) {
            HEARTH_TRY(choose_build_id(s, list, i, &rank));
        } else if (c.why == NULL) {
            c = hearth_pprof_skip(c, tag, 5);
        }
        if (c.why != NULL) {
            return hearth_otlp_damaged_entry(s, OTLP_MAPPINGS, i, c);
        }
    }

    HEARTH_TRY(hearth_otlp_check_reference(s, OTLP_MAPPINGS, i, OTLP_STRINGS, filename));
    m->filename = (uint32_t)filename;

    return HEARTH_OK;
}

enum hearth_status hearth_otlp_read_function(struct otlp_scan *s, struct pprof_cursor c, uint32_t i)
{
    struct hearth_function *f = &s->dictionary.functions[i];
    uint64_t tag, texts[4] = {0};

    while (pprof_next(&c, &tag)) {
        if (tag == PPROF_INT(1) || tag == PPROF_INT(2) || tag == PPROF_INT(3)) {
            (void)pprof_int(&c, &texts[tag >> 3]);
        } else if (tag == PPROF_INT(4)) {
            (void)pprof_int64(&c, &f->start_line);
        } else {
            c = hearth_pprof_skip(c, tag, 4);
        }
        if (c.why != NULL) {
            return hearth_otlp_damaged_entry(s, OTLP_FUNCTIONS, i, c);
        }
    }

    for (size_t k = 1; k < HEARTH_ARRAY_LEN(texts); k++) {
        HEARTH_TRY(hearth_otlp_check_reference(s, OTLP_FUNCTIONS, i, OTLP_STRINGS, texts[k]));
    }

    f->name = (uint32_t)texts[1];
    f->system_name = (uint32_t)texts[2];
    f->filename = (uint32_t)texts[3];

    return HEARTH_OK;
}

/* A line of location i, which is appended to the lines. */
static enum hearth_status read_line(struct otlp_scan *s, struct pprof_cursor c, uint32_t i)
{
    struct hearth_location *location = &s->dictionary.locations[i];
    struct hearth_line *line = &s->dictionary.lines[location->first_line + location->n_lines];
    uint64_t tag, function = 0;

    *line = (struct hearth_line){0};
    while (pprof_next(&c, &tag)) {
        if (tag == PPROF_INT(1)) {
            (void)pprof_int(&c, &function);
        } else if (tag == PPROF_INT(2)) {
            (void)pprof_int64(&c, &line->line);
        } else {
            c = hearth_pprof_skip(c, tag, 2);
        }
        if (c.why != NULL) {
            return hearth_otlp_damaged_entry(s, OTLP_LOCATIONS, i, c);
        }
    }

    HEARTH_TRY(hearth_otlp_check_reference(s, OTLP_LOCATIONS, i, OTLP_FUNCTIONS, function));
    line->function = (uint32_t)function;
    location->n_lines++;

    return HEARTH_OK;
}

/* The mapping of a location; an empty mapping counts as no mapping. */
static uint32_t choose_mapping(const struct otlp_dictionary *d, uint64_t idx)
{
    const struct otlp_mapping *m = &d->mappings[idx];
    bool is_empty = (m->start | m->limit | m->offset | m->filename) == 0 && m->build_id.n == 0;

    return is_empty ? HEARTH_NO_INDEX : (uint32_t)idx;
}

enum hearth_status hearth_otlp_read_location(struct otlp_scan *s, struct pprof_cursor c, uint32_t i)
{
    struct otlp_dictionary *d = &s->dictionary;
    struct hearth_location *location = &d->locations[i];
    struct pprof_cursor line;
    uint64_t tag, mapping = 0;

    location->first_line = i == 0 ? 0 : location[-1].first_line + location[-1].n_lines;
    while (pprof_next(&c, &tag)) {
        if (tag == PPROF_INT(1)) {
            (void)pprof_int(&c, &mapping);
        } else if (tag == PPROF_INT(2)) {
            (void)pprof_int(&c, &location->address);
        } else if (tag == PPROF_LEN(3) && pprof_payload(&c, &line)) {
            HEARTH_TRY(read_line(s, line, i));
        } else if (c.why == NULL) {
            c = hearth_pprof_skip(c, tag, 3);
        }
        if (c.why != NULL) {
            return hearth_otlp_damaged_entry(s, OTLP_LOCATIONS, i, c);
        }
    }

    HEARTH_TRY(hearth_otlp_check_reference(s, OTLP_LOCATIONS, i, OTLP_MAPPINGS, mapping));
    location->mapping = choose_mapping(d, mapping);

    return HEARTH_OK;
}
