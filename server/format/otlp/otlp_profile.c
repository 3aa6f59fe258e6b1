/*
 * otlp_profile.c -- one profile of a request: its fields, type, name, and its parts.
 *
 * A profile is read twice: its own fields, which say how many samples follow, then its samples. Its
 * faults leave out the profile; damage of the bytes refuses the request. If its samples name
 * several services, it is divided.
 */
#include "hearth/base/limit.h"

#include "otlp/otlp_scan.h"

#include <stdio.h>

#define CPU         "cpu"
#define WALL        "wall"
#define NANOSECONDS "nanoseconds"

static enum hearth_status find_type_string(const struct otlp_scan *s, uint64_t idx,
                                           struct hearth_str *ret)
{
    if (idx >= s->dictionary.n_strings) {
        return HEARTH_FAIL(s->err, HEARTH_INVALID_ARGUMENT,
                           "a type refers to string %lld; the string_table has %u", (long long)idx,
                           s->dictionary.n_strings);
    }

    *ret = s->dictionary.strings[idx];

    return HEARTH_OK;
}

static enum hearth_status read_type_and_unit(const struct otlp_scan *s, struct pprof_cursor c,
                                             struct hearth_str *ret_type,
                                             struct hearth_str *ret_unit)
{
    uint64_t tag, type = 0, unit = 0;

    while (pprof_next(&c, &tag)) {
        if (tag == PPROF_INT(1)) {
            (void)pprof_int(&c, &type);
        } else if (tag == PPROF_INT(2)) {
            (void)pprof_int(&c, &unit);
        } else {
            c = hearth_pprof_skip(c, tag, 2);
        }
        if (c.why != NULL) {
            return hearth_otlp_damaged(s, "a type", c);
        }
    }

    HEARTH_TRY(find_type_string(s, type, ret_type));
    return find_type_string(s, unit, ret_unit);
}

/* Adds the attributes of a profile to the labels that it has from around it. */
static enum hearth_status add_profile_labels(struct otlp_scan *s, struct pprof_cursor list,
                                             struct otlp_labels *labels)
{
    uint64_t idx;

    while (list.p < list.end && pprof_int(&list, &idx)) {
        if (idx >= s->dictionary.n_attributes) {
            return HEARTH_FAIL(s->err, HEARTH_INVALID_ARGUMENT,
                               "a profile refers to attribute %lld; the attribute_table has %u",
                               (long long)idx, s->dictionary.n_attributes);
        }
        hearth_otlp_add_label(s, labels, &s->dictionary.attributes[idx]);
    }

    return list.why == NULL ? HEARTH_OK
                            : hearth_otlp_damaged(s, "the attributes of a profile", list);
}

/* Reads the field of a profile whose tag was just read, unless it is a plain number. */
static enum hearth_status read_head_message(struct otlp_scan *s, struct pprof_cursor *c,
                                            uint64_t tag, struct otlp_head *head)
{
    struct pprof_cursor payload;

    if (otlp_is_list(tag, 11)) {
        if (!otlp_list(c, tag, &payload)) {
            return HEARTH_OK;
        }
        hearth_otlp_begin_labels(s, &head->labels);
        return add_profile_labels(s, payload, &head->labels);
    }
    if ((tag == PPROF_LEN(1) || tag == PPROF_LEN(2) || tag == PPROF_LEN(5) ||
         tag == PPROF_LEN(7)) &&
        !pprof_payload(c, &payload)) {
        return HEARTH_OK;
    }

    if (tag == PPROF_LEN(1)) {
        return read_type_and_unit(s, payload, &head->type, &head->unit);
    }
    if (tag == PPROF_LEN(2)) {
        head->n_samples++;
    } else if (tag == PPROF_LEN(5)) {
        return read_type_and_unit(s, payload, &head->period_type, &head->period_unit);
    } else if (tag == PPROF_LEN(7)) {
        head->id = otlp_view(payload);
    } else {
        *c = hearth_pprof_skip(*c, tag, 7);
    }

    return HEARTH_OK;
}

static enum hearth_status read_head(struct otlp_scan *s, struct pprof_cursor c,
                                    struct otlp_head *head)
{
    uint64_t tag;

    while (pprof_next(&c, &tag)) {
        if (tag == OTLP_FIXED64(3)) {
            (void)otlp_fixed64(&c, &head->time_ns);
        } else if (tag == PPROF_INT(4)) {
            (void)pprof_int(&c, &head->duration_ns);
        } else if (tag == PPROF_INT(6)) {
            (void)pprof_int64(&c, &head->period);
        } else {
            HEARTH_TRY(read_head_message(s, &c, tag, head));
        }
        if (c.why != NULL) {
            return hearth_otlp_damaged(s, "a profile", c);
        }
    }

    return head->labels.v != NULL && head->labels.v == s->gathered
               ? hearth_otlp_end_labels(s, &head->labels)
               : HEARTH_OK;
}

static bool is_one_of(struct hearth_str text, const char *const *names)
{
    while (*names != NULL && !hearth_str_eq_c(text, *names)) {
        names++;
    }
    return *names != NULL;
}

/*
 * Samples of time are nanoseconds of the CPU, also where async-profiler names its timer, or of the
 * wall clock. Counted ones are multiplied by their period.
 */
static void convert_type(struct otlp_head *head)
{
    static const char *const cpu[] = {CPU, "itimer", "ctimer", NULL};
    static const char *const wall[] = {WALL, NULL};
    static const char *const ns[] = {NANOSECONDS, "ns", NULL};

    bool is_cpu = is_one_of(head->period_type, cpu);
    bool is_time =
        (is_cpu || is_one_of(head->period_type, wall)) && is_one_of(head->period_unit, ns) &&
        (hearth_str_eq_c(head->type, "samples") || hearth_str_eq(head->type, head->period_type));
    bool is_counted = hearth_str_eq_c(head->unit, "count") && head->period > 0;

    head->factor = 1;
    if (is_time && (is_counted || is_one_of(head->unit, ns))) {
        head->type = head->period_type = hearth_str_c(is_cpu ? CPU : WALL);
        head->unit = head->period_unit = HEARTH_STR(NANOSECONDS);
        head->factor = is_counted ? head->period : 1;
    }
}

/* The __name__ under which other profilers push values of this type; otherwise the type itself. */
static struct hearth_str find_family_name(struct hearth_str type)
{
    static const struct {
        const char *type, *name;
        bool is_prefix;
    } known[] = {
        {CPU, "process_cpu", false},     {"alloc_", "memory", true},
        {"inuse_", "memory", true},      {"space", "memory", false},
        {"objects", "memory", false},    {"goroutine", "goroutines", false},
        {"contentions", "mutex", false}, {"delay", "mutex", false},
    };

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(known); i++) {
        struct hearth_str wanted = hearth_str_c(known[i].type);
        if (known[i].is_prefix ? hearth_str_starts(type, wanted) : hearth_str_eq(type, wanted)) {
            return hearth_str_c(known[i].name);
        }
    }

    return type;
}

/* Counted samples are named by what is sampled, other values by their type. */
static struct hearth_str choose_name(const struct otlp_head *head)
{
    bool is_counted =
        hearth_str_eq_c(head->type, "samples") || hearth_str_eq_c(head->type, "events");
    bool is_period = (is_counted || head->type.n == 0) && head->period_type.n > 0;

    return find_family_name(is_period ? head->period_type : head->type);
}

/* The id of a part of a profile, distinct for the types and services that share a profile_id. */
static enum hearth_status make_part_id(const struct otlp_scan *s, const struct otlp_head *head,
                                       size_t part, struct hearth_str *ret)
{
    static const char zeros[16];

    *ret = hearth_str_n(NULL, 0);
    if (head->id.n != sizeof zeros || memcmp(head->id.p, zeros, sizeof zeros) == 0) {
        return HEARTH_OK;
    }

    char hex[2 * sizeof zeros + 1];
    for (size_t i = 0; i < sizeof zeros; i++) {
        (void)snprintf(hex + 2 * i, 3, "%02x", (unsigned char)head->id.p[i]);
    }

    char *text =
        hearth_arena_printf(s->arena, "%s:%zu:%.*s", hex, part, (int)head->type.n, head->type.p);
    if (text == NULL) {
        return HEARTH_FAIL_ARENA(s->err, s->arena);
    }
    *ret = hearth_str_c(text);

    return HEARTH_OK;
}

/* Adds a part for each service of the samples that were just read. */
static enum hearth_status add_parts(struct otlp_scan *s, const struct otlp_head *head,
                                    struct pprof_cursor message)
{
    const struct otlp_samples *samples = &s->samples;
    struct hearth_otlp_export *out = s->out;
    struct hearth_otlp_part *part = hearth_arena_alloc(s->arena, sizeof *part);

    HEARTH_TRY(hearth_otlp_check_number(s, "profiles", out->n_profiles + samples->n_groups));
    if (part == NULL ||
        !hearth_arena_regrow(s->arena, &out->profiles, &s->cap_profiles,
                             out->n_profiles + samples->n_groups, sizeof *out->profiles)) {
        return HEARTH_FAIL_ARENA(s->err, s->arena);
    }

    *part = (struct hearth_otlp_part){*head, message};
    for (size_t g = 0; g < samples->n_groups; g++) {
        struct hearth_otlp_profile *profile = &out->profiles[out->n_profiles++];
        *profile = (struct hearth_otlp_profile){
            .name = choose_name(head),
            .service = samples->services[g],
            .labels = head->labels.v,
            .n_labels = head->labels.n,
            .part = part,
            .group = (uint32_t)g,
        };
        HEARTH_TRY(make_part_id(s, head, g, &profile->id));
    }

    return HEARTH_OK;
}

/* Whether a profile can be read at all; otherwise it is rejected. */
static bool check_head(struct otlp_scan *s, const struct otlp_head *head)
{
    uint32_t max = s->options->limits.max_samples;

    if (head->type.n == 0 && head->period_type.n == 0) {
        hearth_otlp_keep_reason(s, " has no sample_type");
    } else if (max > 0 && head->n_samples > max) {
        hearth_otlp_keep_reason(
            s, " has %u samples; the limit is %u" HEARTH_RAISE_LIMIT("max-samples"),
            head->n_samples, max);
    } else if (head->labels.is_full) {
        hearth_otlp_keep_reason(s, " has more than %u attributes", HEARTH_OTLP_MAX_LABELS);
    } else {
        return true;
    }

    return false;
}

enum hearth_status hearth_otlp_read_profile(struct otlp_scan *s, const struct otlp_labels *labels,
                                            struct pprof_cursor c)
{
    struct hearth_otlp_export *out = s->out;
    struct otlp_head head = {.labels = *labels};

    out->n_received++;
    HEARTH_TRY(read_head(s, c, &head));
    if (head.n_samples == 0) {
        out->n_empty++;
        return HEARTH_OK;
    }
    if (!check_head(s, &head)) {
        out->n_rejected++;
        return HEARTH_OK;
    }

    /* A profile whose samples are all left out is rejected. */
    convert_type(&head);
    HEARTH_TRY(hearth_otlp_read_samples(s, &head, c));
    if (s->samples.n == 0) {
        out->n_rejected++;
        return HEARTH_OK;
    }
    out->n_bad_samples += s->samples.n_bad;

    return add_parts(s, &head, c);
}
