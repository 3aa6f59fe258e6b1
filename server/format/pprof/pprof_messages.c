/*
 * pprof_messages.c -- mappings, functions, locations with their lines, samples with their labels.
 *
 * The inner loops of the decoder: a sample needs no allocation, and a reference is resolved when it
 * is read. Hot switches over tags have at most four cases, and rare fields are handled under
 * `default`: with five cases the compiler makes jump tables, whose indirect branches made the whole
 * scan 5 to 9 % slower.
 */
#include "hearth/base/limit.h"

#include "pprof/pprof_packed.h"
#include "pprof/pprof_runs.h"

#include <assert.h>

static enum hearth_status read_mapping(struct pprof_scan *s, uint32_t i)
{
    struct hearth_mapping m = {0};
    struct pprof_cursor c = pprof_message(s, KIND_MAPPING, i);
    uint64_t tag, id = 0;
    while (pprof_next(&c, &tag)) {
        switch (tag) {
        case PPROF_INT(1):
            (void)pprof_int(&c, &id);
            break;
        case PPROF_INT(2):
            (void)pprof_int(&c, &m.start);
            break;
        case PPROF_INT(3):
            (void)pprof_int(&c, &m.limit);
            break;
        case PPROF_INT(4):
            (void)pprof_int(&c, &m.offset);
            break;
        case PPROF_INT(5):
            (void)pprof_string_index(&c, &m.filename);
            break;
        case PPROF_INT(6):
            (void)pprof_string_index(&c, &m.build_id);
            break;
        case PPROF_INT(7):
            (void)pprof_bool(&c, &m.has_functions);
            break;
        case PPROF_INT(8):
            (void)pprof_bool(&c, &m.has_filenames);
            break;
        case PPROF_INT(9):
            (void)pprof_bool(&c, &m.has_line_numbers);
            break;
        case PPROF_INT(10):
            (void)pprof_bool(&c, &m.has_inline_frames);
            break;
        default:
            c = hearth_pprof_skip(c, tag, 10);
            break;
        }
        if (c.why != NULL) {
            break;
        }
    }

    if (c.why != NULL) {
        return hearth_pprof_damaged(s, "mapping", i, c);
    }

    HEARTH_TRY(pprof_check_string(s, "mapping", i, "file name", m.filename));
    HEARTH_TRY(pprof_check_string(s, "mapping", i, "build id", m.build_id));
    s->out->mappings[i] = m;

    return pprof_ids_note(&s->mappings, i, id, s->arena, s->err);
}

enum hearth_status hearth_pprof_read_mappings(struct pprof_scan *s)
{
    struct hearth_profile *out = s->out;

    out->n_mappings = s->of[KIND_MAPPING].n;
    s->mappings = (struct pprof_ids){.what = "mapping", .n = out->n_mappings};
    out->mappings = hearth_arena_array(s->arena, out->n_mappings, sizeof *out->mappings);
    if (out->mappings == NULL) {
        return HEARTH_FAIL_ARENA(s->err, s->arena);
    }

    for (uint32_t i = 0; i < out->n_mappings; i++) {
        HEARTH_TRY(read_mapping(s, i));
    }

    return hearth_pprof_ids_seal(&s->mappings, s->arena, s->err);
}

/* The fields of a function in any order. Faults are reported in c->why. */
static void read_function_fields(struct pprof_cursor *at, struct hearth_function *ret_f,
                                 uint64_t *ret_id)
{
    struct pprof_cursor c = *at;
    struct hearth_function f = {0};
    uint64_t tag, id = 0;
    while (pprof_next(&c, &tag)) {
        switch (tag) {
        case PPROF_INT(1):
            (void)pprof_int(&c, &id);
            break;
        case PPROF_INT(2):
            (void)pprof_string_index(&c, &f.name);
            break;
        case PPROF_INT(3):
            (void)pprof_string_index(&c, &f.system_name);
            break;
        case PPROF_INT(4):
            (void)pprof_string_index(&c, &f.filename);
            break;
        default:
            if (tag == PPROF_INT(5)) {
                (void)pprof_int64(&c, &f.start_line);
            } else {
                c = hearth_pprof_skip(c, tag, 5);
            }
            break;
        }
        if (HEARTH_UNLIKELY(c.why != NULL)) {
            break;
        }
    }

    *at = c;
    *ret_f = f;
    *ret_id = id;
}

static enum hearth_status read_function(struct pprof_scan *s, uint32_t i)
{
    struct hearth_function f;
    struct pprof_cursor c = pprof_message(s, KIND_FUNCTION, i);
    uint64_t id;

    read_function_fields(&c, &f, &id);
    if (HEARTH_LIKELY(c.why == NULL) && id == 0) {
        id = s->limits->number_functions ? (uint64_t)i + 1 : 0;
        c.why = id == 0 ? "function id is 0" : NULL;
    }

    if (HEARTH_UNLIKELY(c.why != NULL)) {
        return hearth_pprof_damaged(s, "function", i, c);
    }

    HEARTH_TRY(pprof_check_string(s, "function", i, "name", f.name));
    HEARTH_TRY(pprof_check_string(s, "function", i, "system name", f.system_name));
    HEARTH_TRY(pprof_check_string(s, "function", i, "file name", f.filename));
    s->out->functions[i] = f;

    return pprof_ids_note(&s->functions, i, id, s->arena, s->err);
}

enum hearth_status hearth_pprof_read_functions(struct pprof_scan *s)
{
    struct hearth_profile *out = s->out;

    out->n_functions = s->of[KIND_FUNCTION].n;
    s->functions = (struct pprof_ids){.what = "function", .n = out->n_functions};
    out->functions = hearth_arena_array(s->arena, out->n_functions, sizeof *out->functions);
    if (out->functions == NULL) {
        return HEARTH_FAIL_ARENA(s->err, s->arena);
    }

    for (uint32_t i = 0; i < out->n_functions; i++) {
        i = s->limits->portable ? i : hearth_pprof_run_functions(s, i);
        if (i < out->n_functions) {
            HEARTH_TRY(read_function(s, i));
        }
    }

    return hearth_pprof_ids_seal(&s->functions, s->arena, s->err);
}

/* An array that grows while messages are read. */
struct growing_array {
    void *arr; /* address of the pointer to the elements */
    size_t *cap;
    size_t size, used;
    size_t n_spare; /* elements behind the capacity, which may be written but do not count */
};

/*
 * Make room for at least `need` more elements. The growth is extrapolated from the bytes read so
 * far, is at least half of the used size, and at most max_more, the number of elements that the
 * remaining bytes can hold: so a hostile first message gains nothing.
 */
static enum hearth_status grow_array(struct pprof_scan *s, struct growing_array g, size_t need,
                                     size_t max_more)
{
    assert(need <= max_more);

    size_t more = s->n_bytes_done == 0 || g.used == 0
                      ? s->n_messages
                      : (size_t)((uint64_t)g.used * s->n_bytes_left / s->n_bytes_done);
    more += more / 16 + 64;
    more = more < g.used / 2 ? g.used / 2 : more;
    more = more < need ? need : more;
    more = more > max_more ? max_more : more;
    void *grown = hearth_arena_array(s->arena, g.used + more + g.n_spare, g.size);
    if (grown == NULL) {
        return HEARTH_FAIL_ARENA(s->err, s->arena);
    }

    if (g.used > 0) {
        void *old;
        memcpy(&old, g.arr, sizeof old);
        memcpy(grown, old, g.used * g.size);
    }

    memcpy(g.arr, &grown, sizeof grown);
    *g.cap = g.used + more;
    return HEARTH_OK;
}

/* Start to read the messages of a kind: resets the figures for grow_array. */
static void begin_kind(struct pprof_scan *s, enum pprof_kind kind)
{
    s->n_messages = s->of[kind].n;
    s->n_bytes_left = s->of[kind].n_bytes;
    s->n_bytes_done = 0;
}

/* The fields of a location but its lines. */
struct location_fields {
    uint64_t id, mapping_id, address;
    bool is_folded;
};

static enum hearth_status read_location_line(struct pprof_scan *s, uint32_t location,
                                             struct pprof_cursor c)
{
    struct hearth_line line = {0};
    uint64_t tag, function_id = 0, number = 0, column;
    while (pprof_next(&c, &tag)) {
        switch (tag) {
        case PPROF_INT(1):
            (void)pprof_random_int(&c, &function_id);
            break;
        case PPROF_INT(2):
            (void)pprof_random_int(&c, &number);
            break;
        case PPROF_INT(3):
            (void)pprof_int(&c, &column);
            break;
        default:
            c = hearth_pprof_skip(c, tag, 3);
            break;
        }
        if (HEARTH_UNLIKELY(c.why != NULL)) {
            break;
        }
    }

    line.line = (int64_t)number;
    line.function = pprof_ids_find(&s->functions, function_id);
    if (HEARTH_UNLIKELY(c.why == NULL && line.function == HEARTH_NO_INDEX)) {
        c.why =
            function_id == 0 ? "function id is 0" : "line has a function id that no function has";
    }

    if (HEARTH_UNLIKELY(c.why != NULL)) {
        return hearth_pprof_damaged(s, "location", location, c);
    }

    s->out->lines[s->out->n_lines++] = line;

    return HEARTH_OK;
}

/* The fields of a location in any order. Faults of its own are reported in c->why. */
static enum hearth_status read_location_fields(struct pprof_scan *s, uint32_t i,
                                               struct pprof_cursor *at, struct location_fields *l)
{
    struct pprof_cursor c = *at, payload;
    uint64_t tag;
    while (pprof_next(&c, &tag)) {
        switch (tag) {
        case PPROF_INT(1):
            (void)pprof_int(&c, &l->id);
            break;
        case PPROF_INT(2):
            (void)pprof_int(&c, &l->mapping_id);
            break;
        case PPROF_INT(3):
            (void)pprof_int(&c, &l->address);
            break;
        case PPROF_LEN(4):
            if (pprof_payload(&c, &payload)) {
                HEARTH_TRY(read_location_line(s, i, payload));
            }
            break;
        default:
            if (tag == PPROF_INT(5)) {
                (void)pprof_bool(&c, &l->is_folded);
            } else {
                c = hearth_pprof_skip(c, tag, 5);
            }
            break;
        }
        if (HEARTH_UNLIKELY(c.why != NULL)) {
            break;
        }
    }

    *at = c;

    return HEARTH_OK;
}

static enum hearth_status read_location(struct pprof_scan *s, uint32_t i)
{
    struct hearth_profile *out = s->out;
    uint32_t first_line = out->n_lines;
    struct location_fields l = {0};
    struct pprof_cursor c = pprof_message(s, KIND_LOCATION, i);
    size_t n_bytes = (size_t)(c.end - c.p);
    if (HEARTH_UNLIKELY(s->cap_lines - out->n_lines < n_bytes / 2)) {
        struct growing_array lines = {&out->lines, &s->cap_lines, sizeof *out->lines, out->n_lines,
                                      0};
        HEARTH_TRY(grow_array(s, lines, n_bytes / 2, s->n_bytes_left / 2));
    }

    HEARTH_TRY(read_location_fields(s, i, &c, &l));
    if (HEARTH_LIKELY(c.why == NULL) && l.id == 0) {
        c.why = "location id is 0";
    }
    if (HEARTH_UNLIKELY(c.why != NULL)) {
        return hearth_pprof_damaged(s, "location", i, c);
    }

    out->locations[i] = (struct hearth_location){
        .address = l.address,
        .mapping = pprof_ids_find(&s->mappings, l.mapping_id),
        .first_line = first_line,
        .n_lines = out->n_lines - first_line,
        .is_folded = l.is_folded,
    };
    pprof_count_bytes_read(s, n_bytes);

    return pprof_ids_note(&s->locations, i, l.id, s->arena, s->err);
}

enum hearth_status hearth_pprof_read_locations(struct pprof_scan *s)
{
    struct hearth_profile *out = s->out;

    out->n_locations = s->of[KIND_LOCATION].n;
    s->locations = (struct pprof_ids){.what = "location", .n = out->n_locations};
    begin_kind(s, KIND_LOCATION);

    /*
     * Most locations have one line, in programs with inlined calls 1.2 to 1.4. A location with a
     * line has at least six bytes.
     */
    s->cap_lines = (size_t)out->n_locations + out->n_locations / 2;
    s->cap_lines = s->cap_lines > s->n_bytes_left / 6 ? s->n_bytes_left / 6 : s->cap_lines;
    s->cap_lines += PPROF_SPARE_LINES;
    out->locations = hearth_arena_array(s->arena, out->n_locations, sizeof *out->locations);
    out->lines = hearth_arena_array(s->arena, s->cap_lines, sizeof *out->lines);
    if (out->locations == NULL || out->lines == NULL) {
        return HEARTH_FAIL_ARENA(s->err, s->arena);
    }

    for (uint32_t i = 0; i < out->n_locations; i++) {
        i = s->limits->portable ? i : hearth_pprof_run_locations(s, i);
        if (i < out->n_locations) {
            HEARTH_TRY(read_location(s, i));
        }
    }

    return hearth_pprof_ids_seal(&s->locations, s->arena, s->err);
}

/* ---- samples ---- */

static enum hearth_status read_sample_label(struct pprof_scan *s, uint32_t sample,
                                            struct pprof_cursor c)
{
    struct hearth_sample_label label = {0};
    uint64_t tag;
    while (pprof_next(&c, &tag)) {
        switch (tag) {
        case PPROF_INT(1):
            (void)pprof_string_index(&c, &label.key);
            break;
        case PPROF_INT(2):
            (void)pprof_string_index(&c, &label.str);
            break;
        case PPROF_INT(3):
            (void)pprof_int64(&c, &label.num);
            break;
        case PPROF_INT(4):
            (void)pprof_string_index(&c, &label.num_unit);
            break;
        default:
            c = hearth_pprof_skip(c, tag, 4);
            break;
        }
        if (HEARTH_UNLIKELY(c.why != NULL)) {
            return hearth_pprof_damaged(s, "sample", sample, c);
        }
    }

    if (HEARTH_UNLIKELY(c.why != NULL)) {
        return hearth_pprof_damaged(s, "sample", sample, c);
    }

    HEARTH_TRY(pprof_check_string(s, "sample", sample, "label key", label.key));
    HEARTH_TRY(pprof_check_string(s, "sample", sample, "label value", label.str));
    HEARTH_TRY(pprof_check_string(s, "sample", sample, "label unit", label.num_unit));
    s->out->sample_labels[s->out->n_sample_labels++] = label;

    return HEARTH_OK;
}

static enum hearth_status add_sample_label(struct pprof_scan *s, uint32_t sample,
                                           struct pprof_cursor c)
{
    struct hearth_profile *out = s->out;
    if (HEARTH_UNLIKELY(out->n_sample_labels == s->cap_sample_labels)) {
        struct growing_array labels = {&out->sample_labels, &s->cap_sample_labels,
                                       sizeof *out->sample_labels, out->n_sample_labels, 0};
        HEARTH_TRY(grow_array(s, labels, 1, s->n_bytes_left / 2));
    }

    return read_sample_label(s, sample, c);
}

/* The locations and values of a sample, as far as they have been read. */
struct sample_numbers {
    uint32_t *locs;
    int64_t *values;
    uint32_t n_locs, n_values;
};

HEARTH_ALWAYS_INLINE bool read_location_id(const struct pprof_scan *s, struct pprof_cursor *c,
                                           struct sample_numbers *sample)
{
    uint64_t id;
    if (!pprof_int(c, &id)) {
        return false;
    }

    if (HEARTH_UNLIKELY(id == 0)) {
        c->why = "location id is 0";
        return false;
    }

    sample->locs[sample->n_locs++] = pprof_ids_find(&s->locations, id);

    return true;
}

/* Values beyond the number of types are counted, but not stored. */
HEARTH_ALWAYS_INLINE void add_sample_value(const struct pprof_scan *s, int64_t value,
                                           struct sample_numbers *sample)
{
    if (HEARTH_LIKELY(sample->n_values < s->out->n_types)) {
        sample->values[sample->n_values] = value;
    }

    sample->n_values++;
}

HEARTH_ALWAYS_INLINE bool read_sample_value(const struct pprof_scan *s, struct pprof_cursor *c,
                                            struct sample_numbers *sample)
{
    int64_t value;
    if (!pprof_int64(c, &value)) {
        return false;
    }

    add_sample_value(s, value, sample);

    return true;
}

/*
 * Packed ids of locations that are numbered 1..n, where pprof_packed.c does not help. All state is
 * in registers. The branches on the length are deliberate: four variants without them (one or
 * several ids at a time, from words of 8 and 16 bytes) were not faster on real profiles (1.2 to 2.1
 * ns per id here). Stops before an id that the general reader must handle: longer than three bytes,
 * at the end, or 0.
 */
static const uint8_t *read_direct_ids(const uint8_t *p, const uint8_t *end, uint32_t n_locations,
                                      struct sample_numbers *sample)
{
    uint32_t *out = sample->locs + sample->n_locs;

    while (p < end) {
        uint32_t id = p[0];
        if (id < 0x80) {
            p++;
        } else if (end - p >= 2 && p[1] < 0x80) {
            id = (id & 0x7f) | (uint32_t)p[1] << 7;
            p += 2;
        } else if (end - p >= 3 && p[2] < 0x80) {
            id = (id & 0x7f) | (p[1] & 0x7fu) << 7 | (uint32_t)p[2] << 14;
            p += 3;
        } else {
            break;
        }

        if (HEARTH_UNLIKELY(id == 0)) {
            p--;
            break;
        }

        id--;
        *out++ = id < n_locations ? id : HEARTH_NO_INDEX;
    }

    sample->n_locs = (uint32_t)(out - sample->locs);

    return p;
}

/* Read packed location ids of any numbering and length. */
static struct pprof_cursor read_location_ids(const struct pprof_scan *s, struct pprof_cursor c,
                                             struct sample_numbers *sample)
{
    bool direct = s->locations.ids == NULL;
    size_t n;
    if (HEARTH_LIKELY(direct && s->has_shuffles && pprof_has_slack(s, c)) &&
        hearth_pprof_packed_read(c.p, c.end, s->locations.n, sample->locs + sample->n_locs, &n)) {
        sample->n_locs += (uint32_t)n;
        return (struct pprof_cursor){c.end, c.end, NULL};
    }

    while (c.p < c.end) {
        if (HEARTH_LIKELY(direct)) {
            c.p = read_direct_ids(c.p, c.end, s->locations.n, sample);
        }
        if (c.p < c.end && !read_location_id(s, &c, sample)) {
            break;
        }
    }

    return c;
}

static struct pprof_cursor read_sample_values(const struct pprof_scan *s, struct pprof_cursor c,
                                              struct sample_numbers *sample)
{
    bool has_slack = pprof_has_slack(s, c);
    while (c.p < c.end) {
        const uint8_t *p = c.p;
        uint64_t value;

        /* Nanoseconds have four bytes or more. */
        if (HEARTH_LIKELY(has_slack && pprof_word_int(&p, &value) && p <= c.end)) {
            add_sample_value(s, (int64_t)value, sample);
            c.p = p;
        } else if (!read_sample_value(s, &c, sample)) {
            break;
        }
    }

    return c;
}

static enum hearth_status read_sample_fields(struct pprof_scan *s, uint32_t i,
                                             struct pprof_cursor c, struct sample_numbers *sample)
{
    struct pprof_cursor payload;
    uint64_t tag;
    while (pprof_next(&c, &tag)) {
        switch (tag) {
        case PPROF_LEN(1):
            if (pprof_payload(&c, &payload)) {
                payload = read_location_ids(s, payload, sample);
                c = payload.why != NULL ? payload : c;
            }
            break;
        case PPROF_LEN(2):
            if (pprof_payload(&c, &payload)) {
                payload = read_sample_values(s, payload, sample);
                c = payload.why != NULL ? payload : c;
            }
            break;
        case PPROF_LEN(3):
            if (pprof_payload(&c, &payload)) {
                HEARTH_TRY(add_sample_label(s, i, payload));
            }
            break;
        default:
            if (tag == PPROF_INT(1)) {
                (void)read_location_id(s, &c, sample);
            } else if (tag == PPROF_INT(2)) {
                (void)read_sample_value(s, &c, sample);
            } else {
                c = hearth_pprof_skip(c, tag, 3);
            }
            break;
        }
        if (HEARTH_UNLIKELY(c.why != NULL)) {
            break;
        }
    }

    return HEARTH_LIKELY(c.why == NULL) ? HEARTH_OK : hearth_pprof_damaged(s, "sample", i, c);
}

/* The checks and the truncation that need the whole sample. */
static enum hearth_status finish_sample(struct pprof_scan *s, uint32_t i,
                                        struct sample_numbers *sample)
{
    struct hearth_profile *out = s->out;
    uint32_t max_depth = s->limits->max_depth, max_labels = s->limits->max_sample_labels;
    uint32_t n_labels = out->n_sample_labels - out->label_first[i];

    if (HEARTH_UNLIKELY(sample->n_values != out->n_types)) {
        return HEARTH_FAIL(s->err, HEARTH_INVALID_ARGUMENT,
                           "sample %u: sample value length mismatch: %u values for %u sample types",
                           i, sample->n_values, out->n_types);
    }

    if (HEARTH_UNLIKELY(max_labels != 0 && n_labels > max_labels)) {
        return HEARTH_FAIL(
            s->err, HEARTH_RESOURCE_EXHAUSTED,
            "sample %u of the profile exceeds the sample labels limit "
            "(max-sample-labels, actual: %u, limit: %u)" HEARTH_RAISE_LIMIT("max-sample-labels"),
            i, n_labels, max_labels);
    }

    /* The leaf end of a deep stack is removed: locations are leaf first. */
    if (HEARTH_UNLIKELY(max_depth != 0 && sample->n_locs > max_depth)) {
        uint32_t n_cut = sample->n_locs - max_depth;
        memmove(sample->locs, sample->locs + n_cut, max_depth * sizeof *sample->locs);
        sample->n_locs = max_depth;
        s->notes->stacks_cut++;
        s->notes->frames_cut += n_cut;
    }

    out->n_stack_locs += sample->n_locs;

    return HEARTH_OK;
}

static enum hearth_status read_sample(struct pprof_scan *s, uint32_t i)
{
    struct hearth_profile *out = s->out;
    struct pprof_cursor c = pprof_message(s, KIND_SAMPLE, i);
    size_t n_bytes = (size_t)(c.end - c.p); /* an upper bound of its locations */
    if (HEARTH_UNLIKELY(s->cap_stack_locs - out->n_stack_locs < n_bytes)) {
        struct growing_array locs = {&out->stack_locs, &s->cap_stack_locs, sizeof *out->stack_locs,
                                     out->n_stack_locs, PPROF_PACKED_SPARE};
        HEARTH_TRY(grow_array(s, locs, n_bytes, s->n_bytes_left));
    }

    struct sample_numbers sample = {
        .locs = out->stack_locs + out->n_stack_locs,
        .values = out->values + (size_t)i * out->n_types,
    };

    out->stack_first[i] = out->n_stack_locs;
    out->label_first[i] = out->n_sample_labels;
    HEARTH_TRY(read_sample_fields(s, i, c, &sample));
    pprof_count_bytes_read(s, n_bytes);

    return finish_sample(s, i, &sample);
}

enum hearth_status hearth_pprof_read_samples(struct pprof_scan *s)
{
    struct hearth_profile *out = s->out;
    uint32_t n = out->n_samples = s->of[KIND_SAMPLE].n;

    begin_kind(s, KIND_SAMPLE);
    s->has_shuffles = !s->limits->portable && hearth_pprof_packed_works() &&
                      s->locations.n <= PPROF_PACKED_MAX_LOCATIONS;

    /*
     * A value has at least one byte, and the first sample with too few values is refused: so at
     * most as many values are written as there are bytes, even if the product of the counts is
     * larger.
     */
    uint64_t n_values = (uint64_t)n * out->n_types;
    n_values = n_values > s->n_bytes_left ? s->n_bytes_left : n_values;

    /*
     * A first estimate, mostly sufficient: an id has one or two bytes, and there are values and
     * tags.
     */
    s->cap_stack_locs = s->n_bytes_left / 8 * 5;
    out->stack_locs = hearth_arena_array(s->arena, s->cap_stack_locs + PPROF_PACKED_SPARE,
                                         sizeof *out->stack_locs);
    out->values = hearth_arena_array(s->arena, (size_t)n_values, sizeof *out->values);
    out->stack_first = hearth_arena_array(s->arena, (size_t)n + 1, sizeof *out->stack_first);
    out->label_first = hearth_arena_array(s->arena, (size_t)n + 1, sizeof *out->label_first);
    if (out->stack_locs == NULL || out->values == NULL || out->stack_first == NULL ||
        out->label_first == NULL) {
        return HEARTH_FAIL_ARENA(s->err, s->arena);
    }

    for (uint32_t i = 0; i < n; i++) {
        i = hearth_pprof_run_samples(s, i);
        if (i < n) {
            HEARTH_TRY(read_sample(s, i));
        }
    }

    out->stack_first[n] = out->n_stack_locs;
    out->label_first[n] = out->n_sample_labels;

    return HEARTH_OK;
}
