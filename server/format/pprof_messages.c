/*
 * pprof_messages.c -- mappings, functions, locations with their lines, samples with their labels.
 *
 * The inner loops of the decoder: a sample costs no allocation, and a reference is resolved when
 * read. Switches over tags have at most four cases here, and rare fields are under `default`: from
 * five on the compiler makes jump tables, whose indirect branches made the whole scan 5 to 9 %
 * slower.
 */
#include "pprof_scan.h"

static enum hearth_status read_mapping(struct scan *s, uint32_t i)
{
    struct hearth_mapping m = {0};
    struct pprof_cursor c = message(s, KIND_MAPPING, i);
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
    HEARTH_TRY(check_string(s, "mapping", i, "file name", m.filename));
    HEARTH_TRY(check_string(s, "mapping", i, "build id", m.build_id));
    s->out->mappings[i] = m;
    return pprof_ids_note(&s->mappings, i, id, s->arena, s->err);
}

enum hearth_status hearth_pprof_read_mappings(struct scan *s)
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

static enum hearth_status read_function(struct scan *s, uint32_t i)
{
    struct hearth_function f = {0};
    struct pprof_cursor c = message(s, KIND_FUNCTION, i);
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
    if (HEARTH_LIKELY(c.why == NULL) && id == 0) {
        id = s->limits->number_functions ? (uint64_t)i + 1 : 0;
        c.why = id == 0 ? "function id is 0" : NULL;
    }
    if (HEARTH_UNLIKELY(c.why != NULL)) {
        return hearth_pprof_damaged(s, "function", i, c);
    }
    HEARTH_TRY(check_string(s, "function", i, "name", f.name));
    HEARTH_TRY(check_string(s, "function", i, "system name", f.system_name));
    HEARTH_TRY(check_string(s, "function", i, "file name", f.filename));
    s->out->functions[i] = f;
    return pprof_ids_note(&s->functions, i, id, s->arena, s->err);
}

enum hearth_status hearth_pprof_read_functions(struct scan *s)
{
    struct hearth_profile *out = s->out;
    out->n_functions = s->of[KIND_FUNCTION].n;
    s->functions = (struct pprof_ids){.what = "function", .n = out->n_functions};
    out->functions = hearth_arena_array(s->arena, out->n_functions, sizeof *out->functions);
    if (out->functions == NULL) {
        return HEARTH_FAIL_ARENA(s->err, s->arena);
    }
    for (uint32_t i = 0; i < out->n_functions; i++) {
        HEARTH_TRY(read_function(s, i));
    }
    return hearth_pprof_ids_seal(&s->functions, s->arena, s->err);
}

/* An array that fills up while messages are read. */
struct growing {
    void *arr; /* address of the pointer to its elements */
    size_t *cap;
    size_t size, used;
};

/*
 * Make room for `need` more elements: for as many as the bytes read so far foretell for the rest,
 * for half as many again at least, and never for more than the bytes that are left can hold,
 * `max_more`. So a hostile first message buys nothing.
 */
static enum hearth_status make_room(struct scan *s, struct growing g, size_t need, size_t max_more)
{
    size_t more = s->n_bytes_done == 0 || g.used == 0
                      ? s->n_messages
                      : (size_t)((uint64_t)g.used * s->n_bytes_left / s->n_bytes_done);
    more += more / 16 + 64;
    more = more < g.used / 2 ? g.used / 2 : more;
    more = more < need ? need : more;
    more = more > max_more ? max_more : more;
    void *grown = hearth_arena_array(s->arena, g.used + more, g.size);
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

static void begin(struct scan *s, enum kind kind)
{
    s->n_messages = s->of[kind].n;
    s->n_bytes_left = s->of[kind].n_bytes;
    s->n_bytes_done = 0;
}

static inline void step(struct scan *s, size_t n_bytes)
{
    s->n_bytes_left -= n_bytes;
    s->n_bytes_done += n_bytes;
}

static enum hearth_status read_line(struct scan *s, uint32_t location, struct pprof_cursor c)
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

static enum hearth_status read_location(struct scan *s, uint32_t i)
{
    struct hearth_profile *out = s->out;
    struct hearth_location l = {.first_line = out->n_lines};
    struct pprof_cursor c = message(s, KIND_LOCATION, i), payload;
    uint64_t tag, id = 0, mapping_id = 0;
    size_t n_bytes = (size_t)(c.end - c.p);
    if (HEARTH_UNLIKELY(s->cap_lines - out->n_lines < n_bytes / 2)) {
        struct growing lines = {&out->lines, &s->cap_lines, sizeof *out->lines, out->n_lines};
        HEARTH_TRY(make_room(s, lines, n_bytes / 2, s->n_bytes_left / 2));
    }
    while (pprof_next(&c, &tag)) {
        switch (tag) {
        case PPROF_INT(1):
            (void)pprof_int(&c, &id);
            break;
        case PPROF_INT(2):
            (void)pprof_int(&c, &mapping_id);
            break;
        case PPROF_INT(3):
            (void)pprof_int(&c, &l.address);
            break;
        case PPROF_LEN(4):
            if (pprof_payload(&c, &payload)) {
                HEARTH_TRY(read_line(s, i, payload));
            }
            break;
        default:
            if (tag == PPROF_INT(5)) {
                (void)pprof_bool(&c, &l.is_folded);
            } else {
                c = hearth_pprof_skip(c, tag, 5);
            }
            break;
        }
        if (HEARTH_UNLIKELY(c.why != NULL)) {
            break;
        }
    }
    if (HEARTH_LIKELY(c.why == NULL) && id == 0) {
        c.why = "location id is 0";
    }
    if (HEARTH_UNLIKELY(c.why != NULL)) {
        return hearth_pprof_damaged(s, "location", i, c);
    }
    l.mapping = pprof_ids_find(&s->mappings, mapping_id);
    l.n_lines = out->n_lines - l.first_line;
    out->locations[i] = l;
    step(s, n_bytes);
    return pprof_ids_note(&s->locations, i, id, s->arena, s->err);
}

enum hearth_status hearth_pprof_read_locations(struct scan *s)
{
    struct hearth_profile *out = s->out;
    out->n_locations = s->of[KIND_LOCATION].n;
    s->locations = (struct pprof_ids){.what = "location", .n = out->n_locations};
    begin(s, KIND_LOCATION);
    /* Mostly one line each. A location with a line takes at least six bytes. */
    s->cap_lines = (size_t)out->n_locations + out->n_locations / 8;
    s->cap_lines = s->cap_lines > s->n_bytes_left / 6 ? s->n_bytes_left / 6 : s->cap_lines;
    out->locations = hearth_arena_array(s->arena, out->n_locations, sizeof *out->locations);
    out->lines = hearth_arena_array(s->arena, s->cap_lines, sizeof *out->lines);
    if (out->locations == NULL || out->lines == NULL) {
        return HEARTH_FAIL_ARENA(s->err, s->arena);
    }
    for (uint32_t i = 0; i < out->n_locations; i++) {
        HEARTH_TRY(read_location(s, i));
    }
    return hearth_pprof_ids_seal(&s->locations, s->arena, s->err);
}

/* ---- samples ---- */

static enum hearth_status read_label(struct scan *s, uint32_t sample, struct pprof_cursor c)
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
    HEARTH_TRY(check_string(s, "sample", sample, "label key", label.key));
    HEARTH_TRY(check_string(s, "sample", sample, "label value", label.str));
    HEARTH_TRY(check_string(s, "sample", sample, "label unit", label.num_unit));
    s->out->sample_labels[s->out->n_sample_labels++] = label;
    return HEARTH_OK;
}

static enum hearth_status add_label(struct scan *s, uint32_t sample, struct pprof_cursor c)
{
    struct hearth_profile *out = s->out;
    if (HEARTH_UNLIKELY(out->n_sample_labels == s->cap_sample_labels)) {
        struct growing labels = {&out->sample_labels, &s->cap_sample_labels,
                                 sizeof *out->sample_labels, out->n_sample_labels};
        HEARTH_TRY(make_room(s, labels, 1, s->n_bytes_left / 2));
    }
    return read_label(s, sample, c);
}

/* One sample's numbers, as far as read. */
struct sample {
    uint32_t *locs;
    int64_t *values;
    uint32_t n_locs, n_values;
};

HEARTH_ALWAYS_INLINE bool read_location_id(const struct scan *s, struct pprof_cursor *c,
                                           struct sample *sample)
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

/* Values beyond the number of types are counted, not kept. */
HEARTH_ALWAYS_INLINE bool read_value(const struct scan *s, struct pprof_cursor *c,
                                     struct sample *sample)
{
    int64_t value;
    if (!pprof_int64(c, &value)) {
        return false;
    }
    if (HEARTH_LIKELY(sample->n_values < s->out->n_types)) {
        sample->values[sample->n_values] = value;
    }
    sample->n_values++;
    return true;
}

/*
 * The hottest loop: packed ids of locations numbered 1..n. Everything is in registers. The branches
 * on the length stay: of four forms without them (one and several ids at a time, from words of 8
 * and 16 bytes) none was faster over the real profiles (1.2 to 2.1 ns an id here). Stops before an
 * id that needs care.
 */
static const uint8_t *read_direct_ids(const uint8_t *p, const uint8_t *end, uint32_t n_locations,
                                      struct sample *sample)
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

/* The same for any numbering and any length. */
static struct pprof_cursor read_location_ids(const struct scan *s, struct pprof_cursor c,
                                             struct sample *sample)
{
    bool direct = s->locations.ids == NULL;
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

static struct pprof_cursor read_values(const struct scan *s, struct pprof_cursor c,
                                       struct sample *sample)
{
    while (c.p < c.end && read_value(s, &c, sample)) {
    }
    return c;
}

static enum hearth_status read_sample_fields(struct scan *s, uint32_t i, struct pprof_cursor c,
                                             struct sample *sample)
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
                payload = read_values(s, payload, sample);
                c = payload.why != NULL ? payload : c;
            }
            break;
        case PPROF_LEN(3):
            if (pprof_payload(&c, &payload)) {
                HEARTH_TRY(add_label(s, i, payload));
            }
            break;
        default:
            if (tag == PPROF_INT(1)) {
                (void)read_location_id(s, &c, sample);
            } else if (tag == PPROF_INT(2)) {
                (void)read_value(s, &c, sample);
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

/* What can only be judged when the whole sample is read. */
static enum hearth_status finish_sample(struct scan *s, uint32_t i, struct sample *sample)
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
        return HEARTH_FAIL(s->err, HEARTH_RESOURCE_EXHAUSTED,
                           "sample %u of the profile exceeds the sample labels limit "
                           "(max_profile_stacktrace_sample_labels, actual: %u, limit: %u); the "
                           "option is max-sample-labels",
                           i, n_labels, max_labels);
    }
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

static enum hearth_status read_sample(struct scan *s, uint32_t i)
{
    struct hearth_profile *out = s->out;
    struct pprof_cursor c = message(s, KIND_SAMPLE, i);
    size_t n_bytes = (size_t)(c.end - c.p); /* no more locations than bytes */
    if (HEARTH_UNLIKELY(s->cap_stack_locs - out->n_stack_locs < n_bytes)) {
        struct growing locs = {&out->stack_locs, &s->cap_stack_locs, sizeof *out->stack_locs,
                               out->n_stack_locs};
        HEARTH_TRY(make_room(s, locs, n_bytes, s->n_bytes_left));
    }
    struct sample sample = {
        .locs = out->stack_locs + out->n_stack_locs,
        .values = out->values + (size_t)i * out->n_types,
    };
    out->stack_first[i] = out->n_stack_locs;
    out->label_first[i] = out->n_sample_labels;
    HEARTH_TRY(read_sample_fields(s, i, c, &sample));
    step(s, n_bytes);
    return finish_sample(s, i, &sample);
}

enum hearth_status hearth_pprof_read_samples(struct scan *s)
{
    struct hearth_profile *out = s->out;
    uint32_t n = out->n_samples = s->of[KIND_SAMPLE].n;
    begin(s, KIND_SAMPLE);
    /* A value takes a byte at least, and samples are refused at the first that lacks one: so there
     * are never more values to write than bytes, whatever the counts claim. */
    uint64_t n_values = (uint64_t)n * out->n_types;
    n_values = n_values > s->n_bytes_left ? s->n_bytes_left : n_values;
    /* An id takes one or two bytes, and values and tags are there too: a first guess, mostly
     * enough. */
    s->cap_stack_locs = s->n_bytes_left / 8 * 5;
    out->stack_locs = hearth_arena_array(s->arena, s->cap_stack_locs, sizeof *out->stack_locs);
    out->values = hearth_arena_array(s->arena, (size_t)n_values, sizeof *out->values);
    out->stack_first = hearth_arena_array(s->arena, (size_t)n + 1, sizeof *out->stack_first);
    out->label_first = hearth_arena_array(s->arena, (size_t)n + 1, sizeof *out->label_first);
    if (out->stack_locs == NULL || out->values == NULL || out->stack_first == NULL ||
        out->label_first == NULL) {
        return HEARTH_FAIL_ARENA(s->err, s->arena);
    }
    for (uint32_t i = 0; i < n; i++) {
        HEARTH_TRY(read_sample(s, i));
    }
    out->stack_first[n] = out->n_stack_locs;
    out->label_first[n] = out->n_sample_labels;
    return HEARTH_OK;
}
