/*
 * otlp_build.c -- samples to a hearth_profile.
 *
 * The dictionary belongs to all profiles of the request, so a profile gets only the entries that
 * its samples use: otherwise the work would be the number of profiles times the size of the
 * dictionary. An entry that is used for the first time in a profile is copied to its tables; its
 * place is remembered with the number of the profile. Nothing is hashed or compared.
 */
#include "hearth/base/limit.h"

#include "otlp/otlp_scan.h"

#define LABELS_OF_LINK 2u

/* Makes room for `more` elements in a table of the profile. */
#define GROW(b, what, more)                                                                       \
    hearth_arena_grow((b)->arena, &(b)->out->what, &(b)->cap_##what, (b)->out->n_##what + (more), \
                      sizeof *(b)->out->what)

/* A profile while it is built. Its tables grow in the arena. */
struct build {
    struct otlp_scan *s;
    struct hearth_arena *arena;
    struct hearth_profile *out;
    struct hearth_pprof_notes *notes;
    size_t cap_strings, cap_mappings, cap_functions, cap_lines, cap_locations;
    uint32_t span_key, trace_key; /* string indices; 0: not used yet */
    bool failed;                  /* the arena has refused memory */
};

/* ---- entries ---- */

static uint32_t add_string(struct build *b, struct hearth_str text)
{
    uint32_t n = b->out->n_strings;

    if (!GROW(b, strings, 1)) {
        b->failed = true;
        return 0;
    }

    b->out->strings[n] = text;
    b->out->n_strings = n + 1;

    return n;
}

/* True if the entry is not in this profile yet; it then gets the place idx. */
static bool is_first_use(struct build *b, struct otlp_local *local, uint32_t idx)
{
    if (local->built == b->s->workspace.built) {
        return false;
    }

    *local = (struct otlp_local){b->s->workspace.built, idx, 0};

    return true;
}

static uint32_t use_string(struct build *b, uint32_t idx)
{
    struct otlp_local *local = &b->s->workspace.strings[idx];
    struct hearth_str text = b->s->dictionary.strings[idx];

    if (is_first_use(b, local, 0) && text.n > 0) {
        local->idx = add_string(b, text);
    }

    return local->idx;
}

static uint32_t use_mapping(struct build *b, uint32_t idx)
{
    struct otlp_workspace *w = &b->s->workspace;
    const struct otlp_mapping *m = &b->s->dictionary.mappings[idx];

    if (!is_first_use(b, &w->mappings[idx], b->out->n_mappings)) {
        return w->mappings[idx].idx;
    }

    uint32_t filename = use_string(b, m->filename);
    uint32_t build_id = m->build_id.n > 0 ? add_string(b, m->build_id) : 0;
    if (!GROW(b, mappings, 1)) {
        b->failed = true;
        return 0;
    }

    b->out->mappings[b->out->n_mappings++] = (struct hearth_mapping){
        .start = m->start,
        .limit = m->limit,
        .offset = m->offset,
        .filename = filename,
        .build_id = build_id,
        .has_functions = true, /* until a location without lines refers to it */
    };

    return w->mappings[idx].idx;
}

static uint32_t use_function(struct build *b, uint32_t idx)
{
    struct otlp_workspace *w = &b->s->workspace;
    const struct hearth_function *f = &b->s->dictionary.functions[idx];

    if (!is_first_use(b, &w->functions[idx], b->out->n_functions)) {
        return w->functions[idx].idx;
    }

    if (!GROW(b, functions, 1)) {
        b->failed = true;
        return 0;
    }

    b->out->functions[b->out->n_functions++] = (struct hearth_function){
        .name = use_string(b, f->name),
        .system_name = use_string(b, f->system_name),
        .filename = use_string(b, f->filename),
        .start_line = f->start_line,
    };

    return w->functions[idx].idx;
}

static uint32_t use_location(struct build *b, uint32_t idx)
{
    struct otlp_workspace *w = &b->s->workspace;
    const struct hearth_location *in = &b->s->dictionary.locations[idx];

    if (!is_first_use(b, &w->locations[idx], b->out->n_locations)) {
        return w->locations[idx].idx;
    }

    struct hearth_location out = *in;
    out.first_line = b->out->n_lines;
    out.mapping = in->mapping == HEARTH_NO_INDEX ? in->mapping : use_mapping(b, in->mapping);
    if (b->failed || !GROW(b, lines, in->n_lines) || !GROW(b, locations, 1)) {
        b->failed = true;
        return 0;
    }

    for (uint32_t i = 0; i < in->n_lines; i++) {
        const struct hearth_line *line = &b->s->dictionary.lines[in->first_line + i];
        b->out->lines[b->out->n_lines++] =
            (struct hearth_line){use_function(b, line->function), line->line};
    }

    if (in->n_lines == 0 && out.mapping != HEARTH_NO_INDEX) {
        b->out->mappings[out.mapping].has_functions = false;
    }
    b->out->locations[b->out->n_locations++] = out;

    return w->locations[idx].idx;
}

/* ---- labels ---- */

static void add_attribute_label(struct build *b, uint32_t idx)
{
    const struct otlp_attribute *attribute = &b->s->dictionary.attributes[idx];
    const struct otlp_value *value = &attribute->value;
    struct otlp_local *local = &b->s->workspace.attributes[idx];

    if (attribute->role == OTLP_SERVICE || attribute->key.n == 0) {
        return;
    }
    if (value->kind == OTLP_COMPLEX || value->text.n == 0) {
        return;
    }

    if (is_first_use(b, local, 0)) {
        local->key = add_string(b, attribute->key);
        local->idx = value->kind == OTLP_TEXT ? add_string(b, value->text) : 0;
    }

    b->out->sample_labels[b->out->n_sample_labels++] = (struct hearth_sample_label){
        .key = local->key,
        .str = local->idx,
        .num = local->idx == 0 ? value->number : 0,
    };
}

static void add_link_labels(struct build *b, uint32_t idx)
{
    const struct otlp_link *link = &b->s->dictionary.links[idx];
    struct otlp_local *local = &b->s->workspace.links[idx];

    if (link->has_trace) {
        b->trace_key = b->trace_key == 0 ? add_string(b, HEARTH_STR("trace_id")) : b->trace_key;
        if (is_first_use(b, local, 0)) {
            local->idx = add_string(b, hearth_str_n(link->trace, sizeof link->trace));
        }
        b->out->sample_labels[b->out->n_sample_labels++] =
            (struct hearth_sample_label){.key = b->trace_key, .str = local->idx};
    }

    if (link->span_id != 0) {
        b->span_key = b->span_key == 0 ? add_string(b, HEARTH_STR("span_id")) : b->span_key;
        b->out->sample_labels[b->out->n_sample_labels++] =
            (struct hearth_sample_label){.key = b->span_key, .num = (int64_t)link->span_id};
    }
}

/* ---- samples ---- */

/* The part of a stack within the limit: a deeper one loses its leaf end. */
static uint32_t cut_stack(const struct otlp_scan *s, uint32_t stack, uint32_t *ret_first)
{
    uint32_t first = s->dictionary.stack_first[stack];
    uint32_t n = s->dictionary.stack_first[stack + 1] - first;
    uint32_t max = s->options->limits.max_depth;
    uint32_t kept = max > 0 && n > max ? max : n;

    *ret_first = first + (n - kept);

    return kept;
}

static void copy_sample(struct build *b, const struct otlp_sample *sample)
{
    struct otlp_scan *s = b->s;
    struct hearth_profile *out = b->out;
    uint32_t first, n = cut_stack(s, sample->stack, &first);
    uint32_t cut = first - s->dictionary.stack_first[sample->stack];

    out->stack_first[out->n_samples] = out->n_stack_locs;
    for (uint32_t i = 0; i < n; i++) {
        out->stack_locs[out->n_stack_locs++] = use_location(b, s->dictionary.stack_locs[first + i]);
    }
    b->notes->stacks_cut += cut > 0;
    b->notes->frames_cut += cut;

    out->label_first[out->n_samples] = out->n_sample_labels;
    for (uint32_t i = 0; i < sample->n_attributes; i++) {
        add_attribute_label(b, s->samples.attributes[sample->first_attribute + i]);
    }
    add_link_labels(b, sample->link);

    out->values[out->n_samples++] = sample->value;
}

/* Makes the arrays of samples, which have exact or greatest possible sizes. */
static enum hearth_status make_sample_arrays(struct build *b, const uint32_t *order, uint32_t n)
{
    uint32_t max = b->s->options->limits.max_frames;
    struct hearth_profile *out = b->out;
    struct hearth_arena *arena = b->arena;
    uint64_t n_locs = 0, n_labels = 0;
    uint32_t ignored;

    for (uint32_t i = 0; i < n; i++) {
        const struct otlp_sample *sample = &b->s->samples.v[order[i]];
        n_locs += cut_stack(b->s, sample->stack, &ignored);
        n_labels += sample->n_attributes + LABELS_OF_LINK;
    }
    if (n_locs > (max > 0 ? max : UINT32_MAX) || n_labels > UINT32_MAX) {
        return HEARTH_FAIL(b->s->err, HEARTH_RESOURCE_EXHAUSTED,
                           "the stacks of the samples have %llu frames in sum; the limit is "
                           "%u" HEARTH_RAISE_LIMIT("max-stack-frames"),
                           (unsigned long long)n_locs, max);
    }

    out->stack_first = hearth_arena_array(arena, (size_t)n + 1, sizeof *out->stack_first);
    out->label_first = hearth_arena_array(arena, (size_t)n + 1, sizeof *out->label_first);
    out->stack_locs = hearth_arena_array(arena, n_locs, sizeof *out->stack_locs);
    out->sample_labels = hearth_arena_array(arena, n_labels, sizeof *out->sample_labels);
    out->values = hearth_arena_array(arena, n, sizeof *out->values);

    return out->stack_first == NULL || out->label_first == NULL || out->stack_locs == NULL ||
                   out->sample_labels == NULL || out->values == NULL
               ? HEARTH_FAIL_ARENA(b->s->err, arena)
               : HEARTH_OK;
}

static int64_t clamp_ns(uint64_t ns)
{
    return ns > INT64_MAX ? INT64_MAX : (int64_t)ns;
}

static void set_times(const struct otlp_head *head, const struct otlp_samples *samples,
                      struct hearth_profile *out)
{
    out->time_ns = clamp_ns(head->time_ns != 0 ? head->time_ns : samples->first_ns);
    out->duration_ns = clamp_ns(head->duration_ns);
    if (head->time_ns == 0 && head->duration_ns == 0) {
        out->duration_ns = clamp_ns(samples->last_ns - samples->first_ns);
    }
}

/* Adds the empty string, and the type and period of the profile. */
static bool begin_profile(struct build *b, const struct otlp_head *head)
{
    struct hearth_profile *out = b->out;

    (void)add_string(b, HEARTH_STR(""));
    out->types = hearth_arena_alloc(b->arena, sizeof *out->types);
    if (b->failed || out->types == NULL) {
        return false;
    }

    out->types[0] =
        (struct hearth_value_type){add_string(b, head->type), add_string(b, head->unit)};
    if (head->period_type.n > 0) {
        out->period_type = (struct hearth_value_type){add_string(b, head->period_type),
                                                      add_string(b, head->period_unit)};
    }
    out->period = head->period;
    set_times(head, &b->s->samples, out);

    return !b->failed;
}

enum hearth_status hearth_otlp_build_part(struct otlp_scan *s,
                                          const struct hearth_otlp_profile *profile,
                                          struct hearth_arena *arena, struct hearth_profile *ret,
                                          struct hearth_pprof_notes *notes)
{
    const struct otlp_samples *samples = &s->samples;
    const uint32_t *order = samples->order + samples->first[profile->group];
    uint32_t n = samples->first[profile->group + 1] - samples->first[profile->group];
    struct hearth_profile out = {.n_types = 1};
    struct build b = {.s = s, .arena = arena, .out = &out, .notes = notes};

    s->workspace.built++;
    if (!begin_profile(&b, &profile->part->head)) {
        return HEARTH_FAIL_ARENA(s->err, arena);
    }
    HEARTH_TRY(make_sample_arrays(&b, order, n));

    for (uint32_t i = 0; i < n && !b.failed; i++) {
        copy_sample(&b, &samples->v[order[i]]);
    }
    if (b.failed) {
        return HEARTH_FAIL_ARENA(s->err, arena);
    }

    out.stack_first[out.n_samples] = out.n_stack_locs;
    out.label_first[out.n_samples] = out.n_sample_labels;
    *ret = out;

    return HEARTH_OK;
}
