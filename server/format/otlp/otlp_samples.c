/*
 * otlp_samples.c -- the samples of a profile: values, attributes, services.
 *
 * A sample has values, timestamps or both. Timestamps alone count 1 each; one value stands for all
 * timestamps; otherwise there is one value for each timestamp. A sample that breaks a rule is left
 * out by itself, with the reason of the first one.
 */
#include "hearth/base/limit.h"

#include "otlp/otlp_scan.h"

#include <stdio.h>

/* The fields of a sample while it is read. */
struct sample_fields {
    uint64_t stack, link;
    size_t n_attributes; /* of which those within the limit are kept */
    uint64_t n_values, n_timestamps;
    int64_t sum;
    bool overflows;
};

static void leave_out(struct otlp_scan *s, struct otlp_samples *samples, uint32_t k,
                      const char *fmt, ...) HEARTH_PRINTF(4, 5);

static void leave_out(struct otlp_scan *s, struct otlp_samples *samples, uint32_t k,
                      const char *fmt, ...)
{
    samples->n_bad++;
    if (s->out->first.status != HEARTH_OK) {
        return;
    }

    char why[200];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(why, sizeof why, fmt, args);
    va_end(args);
    hearth_otlp_keep_reason(s, ".samples[%u]%s", k, why);
}

/* ---- fields ---- */

static void add_timestamp(struct otlp_samples *samples, uint64_t ns)
{
    if (ns != 0 && (samples->first_ns == 0 || ns < samples->first_ns)) {
        samples->first_ns = ns;
    }
    samples->last_ns = ns > samples->last_ns ? ns : samples->last_ns;
}

/* A timestamp, or a packed list of them. */
static bool read_timestamps(struct pprof_cursor *c, uint64_t tag, struct otlp_samples *samples,
                            uint64_t *n)
{
    struct pprof_cursor list;
    uint64_t ns;

    if (tag == OTLP_FIXED64(5)) {
        if (!otlp_fixed64(c, &ns)) {
            return false;
        }
        add_timestamp(samples, ns);
        (*n)++;
        return true;
    }

    if (!pprof_payload(c, &list)) {
        return false;
    }
    while (list.p < list.end && otlp_fixed64(&list, &ns)) {
        add_timestamp(samples, ns);
        (*n)++;
    }
    c->why = list.why;

    return list.why == NULL;
}

static bool read_values(struct pprof_cursor *c, uint64_t tag, struct sample_fields *fields)
{
    struct pprof_cursor list;
    int64_t value;

    if (!otlp_list(c, tag, &list)) {
        return false;
    }

    while (list.p < list.end && pprof_int64(&list, &value)) {
        fields->overflows =
            __builtin_add_overflow(fields->sum, value, &fields->sum) || fields->overflows;
        fields->n_values++;
    }
    c->why = list.why;

    return list.why == NULL;
}

/*
 * Appends indices; one beyond 32 bits becomes UINT32_MAX, which is beyond every table. Those of a
 * sample that has too many are only counted.
 */
static enum hearth_status read_attribute_list(struct otlp_scan *s, struct pprof_cursor *c,
                                              uint64_t tag, struct otlp_samples *samples,
                                              struct sample_fields *fields)
{
    uint32_t limit = s->options->limits.max_sample_labels;
    struct pprof_cursor list;
    uint32_t idx;

    if (!otlp_list(c, tag, &list)) {
        return HEARTH_OK;
    }

    size_t n = otlp_count_integers(list);
    fields->n_attributes += n;
    if (limit > 0 && fields->n_attributes > limit) {
        return HEARTH_OK;
    }

    if (!hearth_arena_regrow(s->arena, &samples->attributes, &samples->cap_attributes,
                             samples->n_attributes + n, sizeof *samples->attributes)) {
        return HEARTH_FAIL_ARENA(s->err, s->arena);
    }

    while (list.p < list.end && pprof_string_index(&list, &idx)) {
        samples->attributes[samples->n_attributes++] = idx;
    }
    c->why = list.why;

    return HEARTH_OK;
}

static enum hearth_status read_fields(struct otlp_scan *s, struct pprof_cursor c,
                                      struct otlp_samples *samples, struct sample_fields *fields)
{
    uint64_t tag;

    while (pprof_next(&c, &tag)) {
        if (tag == PPROF_INT(1)) {
            (void)pprof_int(&c, &fields->stack);
        } else if (otlp_is_list(tag, 2)) {
            HEARTH_TRY(read_attribute_list(s, &c, tag, samples, fields));
        } else if (tag == PPROF_INT(3)) {
            (void)pprof_int(&c, &fields->link);
        } else if (otlp_is_list(tag, 4)) {
            (void)read_values(&c, tag, fields);
        } else if (tag == PPROF_LEN(5) || tag == OTLP_FIXED64(5)) {
            (void)read_timestamps(&c, tag, samples, &fields->n_timestamps);
        } else {
            c = hearth_pprof_skip(c, tag, 5);
        }
        if (c.why != NULL) {
            return hearth_otlp_damaged(s, "a sample", c);
        }
    }

    return HEARTH_OK;
}

/* ---- services ---- */

/* The name of the service that an attribute of the sample decides; NO_INDEX: none does. */
static enum hearth_status make_service(struct otlp_scan *s, const struct otlp_head *head,
                                       uint32_t attribute, struct hearth_str *ret)
{
    struct hearth_str executable = head->labels.executable;

    *ret = head->labels.service;
    if (attribute != HEARTH_NO_INDEX) {
        const struct otlp_attribute *a = &s->dictionary.attributes[attribute];
        *ret = a->role == OTLP_SERVICE ? a->value.text : *ret;
        executable = a->role == OTLP_EXECUTABLE ? a->value.text : executable;
    }
    if (ret->n > 0) {
        return HEARTH_OK;
    }

    if (executable.n == 0) {
        *ret = HEARTH_STR("unknown_service");
        return HEARTH_OK;
    }

    static const char prefix[] = "unknown_service:";
    char *text = hearth_arena_alloc(s->arena, sizeof prefix + executable.n);
    if (text == NULL) {
        return HEARTH_FAIL_ARENA(s->err, s->arena);
    }

    memcpy(text, prefix, sizeof prefix - 1);
    memcpy(text + sizeof prefix - 1, executable.p, executable.n);
    *ret = hearth_str_n(text, sizeof prefix - 1 + executable.n);

    return HEARTH_OK;
}

/* The attribute of the sample that decides its service. */
static uint32_t choose_service_attribute(const struct otlp_scan *s, const struct otlp_head *head,
                                         const uint32_t *attributes, size_t n)
{
    uint32_t chosen = HEARTH_NO_INDEX;

    for (size_t i = 0; i < n; i++) {
        const struct otlp_attribute *a = &s->dictionary.attributes[attributes[i]];
        if (a->role == OTLP_SERVICE && a->value.text.n > 0) {
            return attributes[i];
        }
        if (a->role == OTLP_EXECUTABLE && a->value.text.n > 0 && head->labels.service.n == 0) {
            chosen = attributes[i];
        }
    }

    return chosen;
}

static enum hearth_status find_group(struct otlp_scan *s, const struct otlp_head *head,
                                     uint32_t attribute, struct otlp_samples *samples,
                                     uint32_t *ret)
{
    /* The last slot is that of samples without such an attribute. */
    uint32_t slot = attribute == HEARTH_NO_INDEX ? s->dictionary.n_attributes : attribute;
    struct otlp_local *group = &s->workspace.groups[slot];

    if (group->built != s->workspace.read) {
        struct hearth_str service;
        HEARTH_TRY(make_service(s, head, attribute, &service));
        if (!hearth_arena_regrow(s->arena, &samples->services, &samples->cap_services,
                                 samples->n_groups + 1, sizeof *samples->services)) {
            return HEARTH_FAIL_ARENA(s->err, s->arena);
        }
        samples->services[samples->n_groups] = service;
        *group = (struct otlp_local){s->workspace.read, (uint32_t)samples->n_groups++, 0};
    }

    *ret = group->idx;

    return HEARTH_OK;
}

/* ---- samples ---- */

/* Checks the rules of a sample; false: it was left out. */
static bool check_fields(struct otlp_scan *s, struct otlp_samples *samples, uint32_t k,
                         struct sample_fields *f, int64_t factor)
{
    const struct otlp_dictionary *d = &s->dictionary;
    uint64_t nv = f->n_values, nt = f->n_timestamps;

    if (f->stack >= d->n_stacks) {
        leave_out(s, samples, k, ".stack_index is %lld; the stack_table has %u entries",
                  (long long)f->stack, d->n_stacks);
    } else if (f->link >= d->n_links) {
        leave_out(s, samples, k, ".link_index is %lld; the link_table has %u entries",
                  (long long)f->link, d->n_links);
    } else if (nv == 0 && nt == 0) {
        leave_out(s, samples, k, " has neither values nor timestamps");
    } else if (nv > 1 && nv != nt) {
        leave_out(s, samples, k, " has %llu values and %llu timestamps", (unsigned long long)nv,
                  (unsigned long long)nt);
    } else {
        f->sum = nv == 0 ? (int64_t)nt : f->sum;
        if (!f->overflows && !__builtin_mul_overflow(f->sum, factor, &f->sum)) {
            return true;
        }
        leave_out(s, samples, k, " has a value of more than 63 bits");
    }

    return false;
}

static bool check_attributes(struct otlp_scan *s, struct otlp_samples *samples, uint32_t k,
                             size_t first, size_t n)
{
    uint32_t limit = s->options->limits.max_sample_labels;

    if (limit > 0 && n > limit) {
        leave_out(s, samples, k,
                  " has %zu attributes; the limit is %u" HEARTH_RAISE_LIMIT("max-sample-labels"), n,
                  limit);
        return false;
    }

    for (size_t i = first; i < samples->n_attributes; i++) {
        if (samples->attributes[i] >= s->dictionary.n_attributes) {
            leave_out(s, samples, k,
                      ".attribute_indices has %d; the attribute_table has %u entries",
                      (int)samples->attributes[i], s->dictionary.n_attributes);
            return false;
        }
    }

    for (size_t i = first; i < samples->n_attributes; i++) {
        s->out->n_complex +=
            s->dictionary.attributes[samples->attributes[i]].value.kind == OTLP_COMPLEX;
    }

    return true;
}

/* Reads message k, and appends it unless it is left out. */
static enum hearth_status take_sample(struct otlp_scan *s, const struct otlp_head *head,
                                      struct pprof_cursor c, uint32_t k,
                                      struct otlp_samples *samples)
{
    struct sample_fields fields = {0};
    size_t first = samples->n_attributes;

    HEARTH_TRY(read_fields(s, c, samples, &fields));
    if (!check_fields(s, samples, k, &fields, head->factor) ||
        !check_attributes(s, samples, k, first, fields.n_attributes)) {
        samples->n_attributes = first;
        return HEARTH_OK;
    }

    size_t n = samples->n_attributes - first;
    if (samples->n_attributes > UINT32_MAX) {
        return HEARTH_FAIL(s->err, HEARTH_RESOURCE_EXHAUSTED, "a profile has too many attributes");
    }

    struct otlp_sample *sample = &samples->v[samples->n];
    const uint32_t *attributes = n == 0 ? NULL : samples->attributes + first;
    *sample = (struct otlp_sample){
        (uint32_t)fields.stack, (uint32_t)fields.link, (uint32_t)first, (uint32_t)n, fields.sum, 0};
    HEARTH_TRY(find_group(s, head, choose_service_attribute(s, head, attributes, n), samples,
                          &sample->group));
    samples->n++;

    return HEARTH_OK;
}

/* Sorts the samples by service: a counting sort, whose first[] is shifted while it is filled. */
static enum hearth_status sort_by_service(const struct otlp_scan *s, struct otlp_samples *samples)
{
    size_t n_first = samples->n_groups + 2;

    if (!hearth_arena_regrow(s->arena, &samples->order, &samples->cap_order, samples->n,
                             sizeof *samples->order) ||
        !hearth_arena_regrow(s->arena, &samples->first, &samples->cap_first, n_first,
                             sizeof *samples->first)) {
        return HEARTH_FAIL_ARENA(s->err, s->arena);
    }

    uint32_t *first = samples->first;
    memset(first, 0, n_first * sizeof *first);
    for (uint32_t i = 0; i < samples->n; i++) {
        first[samples->v[i].group + 2]++;
    }
    for (size_t g = 2; g < n_first; g++) {
        first[g] += first[g - 1];
    }
    for (uint32_t i = 0; i < samples->n; i++) {
        samples->order[first[samples->v[i].group + 1]++] = i;
    }

    return HEARTH_OK;
}

enum hearth_status hearth_otlp_read_samples(struct otlp_scan *s, const struct otlp_head *head,
                                            struct pprof_cursor profile)
{
    struct otlp_samples *samples = &s->samples;
    struct pprof_cursor payload = {0};
    uint32_t k = 0;
    uint64_t tag;

    s->workspace.read++;
    samples->n = samples->n_bad = 0;
    samples->n_attributes = samples->n_groups = 0;
    samples->first_ns = samples->last_ns = 0;
    if (!hearth_arena_regrow(s->arena, &samples->v, &samples->cap_v, head->n_samples,
                             sizeof *samples->v)) {
        return HEARTH_FAIL_ARENA(s->err, s->arena);
    }

    /* The fields of the profile were checked when its head was read. */
    while (pprof_next(&profile, &tag)) {
        if (tag == PPROF_LEN(2) && pprof_payload(&profile, &payload)) {
            assert(k < head->n_samples);
            HEARTH_TRY(take_sample(s, head, payload, k++, samples));
        } else {
            profile = hearth_pprof_skip(profile, tag, 0);
        }
    }

    return sort_by_service(s, samples);
}
