/*
 * otlp_layout.c -- which release of OpenTelemetry's protocol wrote a message.
 *
 * The releases gave the same numbers to different fields, so a message in an older layout would be
 * read as nonsense. Before 1.8, fields of the wrong wire type prove it:
 *
 *   release     Profile                                  Sample
 *   1.3         field 2 is fixed64 (a time)
 *   1.4 to 1.7  fields 3, 4, 6 are messages or lists     field 6 exists; field 2 is an integer, 3 a
 *                                                        list
 *
 * 1.8 and 1.9 differ from 1.10 only in samples, whose lists may be packed or not:
 *
 *   field       1.8, 1.9       1.10
 *   2           values         attributes
 *   3           attributes     link
 *   4           link           values
 *   5           timestamps     timestamps
 *
 * So each sample is held against both: a link is one integer; links and attributes are within their
 * tables; there are values or timestamps, and as many if there are several. A message is old if its
 * samples contradict 1.10, and fewer of them contradict 1.9.
 */
#include "otlp/otlp_scan.h"

/* Samples that are judged: enough for a verdict on a sender, which writes one layout. */
#define MAX_JUDGED (1u << 17)

struct evidence {
    uint32_t n_attributes, n_links; /* of the dictionary */
    bool is_1_3, is_1_4;            /* proven by a single field */
    uint32_t n_not_1_9, n_not_1_10; /* samples that contradict a layout */
    uint32_t n_scopes, n_profiles, n_judged;
};

/* A field of a sample that may be repeated. */
struct repeated {
    uint64_t n, max;
    bool is_packed;
};

/* Goes to the next field; false at the end and for damage, which is reported by the decoder. */
static bool next_payload(struct pprof_cursor *c, uint32_t field, struct pprof_cursor *ret)
{
    uint64_t tag;
    while (pprof_next(c, &tag)) {
        if (tag == PPROF_LEN(field)) {
            return pprof_payload(c, ret);
        }

        *c = hearth_pprof_skip(*c, tag, 0);
        if (c->why != NULL) {
            return false;
        }
    }
    return false;
}

static void add_list(struct pprof_cursor list, struct repeated *to)
{
    uint64_t value;
    while (list.p < list.end && pprof_int(&list, &value)) {
        to->n++;
        to->max = value > to->max ? value : to->max;
    }
}

/* Whether the fields can be those of a sample. */
static bool is_possible(const struct evidence *e, const struct repeated *values,
                        const struct repeated *attributes, const struct repeated *link,
                        uint64_t n_timestamps)
{
    bool has_links = !link->is_packed && link->n <= 1 && link->max < e->n_links;
    bool has_attributes = attributes->n == 0 || attributes->max < e->n_attributes;
    bool has_values =
        values->n == 0 ? n_timestamps > 0 : values->n == 1 || values->n == n_timestamps;

    return has_links && has_attributes && has_values;
}

static void judge_sample(struct pprof_cursor c, struct evidence *e)
{
    struct repeated fields[8] = {0};
    struct pprof_cursor list;
    bool has_length = false; /* field 2 is an integer by itself */
    uint64_t tag;

    while (pprof_next(&c, &tag)) {
        uint64_t field = tag >> 3;
        has_length = has_length || tag == PPROF_INT(2);
        if (field >= 2 && field <= 4 && otlp_is_list(tag, (uint32_t)field) &&
            otlp_list(&c, tag, &list)) {
            fields[field].is_packed = fields[field].is_packed || (tag & 7) == 2;
            add_list(list, &fields[field]);
        } else if (tag == PPROF_LEN(5) && pprof_payload(&c, &list)) {
            fields[5].n += (uint64_t)(list.end - list.p) / 8;
        } else if (c.why == NULL) {
            fields[field < 8 ? field : 0].n++;
            c = hearth_pprof_skip(c, tag, 0);
        }
        if (c.why != NULL) {
            return;
        }
    }

    e->is_1_4 = e->is_1_4 || fields[6].n > 0 || (has_length && fields[3].is_packed);
    e->n_not_1_9 += !is_possible(e, &fields[2], &fields[3], &fields[4], fields[5].n);
    e->n_not_1_10 += !is_possible(e, &fields[4], &fields[2], &fields[3], fields[5].n);
}

static void judge_profile(struct pprof_cursor c, struct evidence *e)
{
    struct pprof_cursor sample;
    uint64_t tag;

    while (e->n_judged < MAX_JUDGED && pprof_next(&c, &tag)) {
        e->is_1_3 = e->is_1_3 || tag == OTLP_FIXED64(2);
        e->is_1_4 = e->is_1_4 || tag == PPROF_LEN(3) || tag == PPROF_LEN(4) || tag == PPROF_LEN(6);
        if (tag == PPROF_LEN(2) && pprof_payload(&c, &sample)) {
            judge_sample(sample, e);
            e->n_judged++;
        } else if (c.why == NULL) {
            c = hearth_pprof_skip(c, tag, 0);
        }
        if (c.why != NULL) {
            return;
        }
    }
}

static void judge_message(struct pprof_cursor message, struct evidence *e)
{
    struct pprof_cursor resource, scope, profile;

    while (next_payload(&message, 1, &resource)) {
        while (next_payload(&resource, 2, &scope)) {
            e->n_scopes++;
            while (next_payload(&scope, 2, &profile)) {
                e->n_profiles++;
                judge_profile(profile, e);
                if (e->n_profiles > HEARTH_OTLP_MAX_PROFILES) {
                    return;
                }
            }
            if (e->n_scopes > HEARTH_OTLP_MAX_PROFILES) {
                return;
            }
        }
    }
}

enum hearth_status hearth_otlp_check_layout(const struct otlp_scan *s, struct pprof_cursor message)
{
    struct evidence e = {.n_attributes = s->counts[OTLP_ATTRIBUTES],
                         .n_links = s->counts[OTLP_LINKS]};

    /* A table has at least the empty entry. */
    e.n_attributes += e.n_attributes == 0;
    e.n_links += e.n_links == 0;
    judge_message(message, &e);
    HEARTH_TRY(hearth_otlp_check_number(s, "scopes", e.n_scopes));
    HEARTH_TRY(hearth_otlp_check_number(s, "profiles", e.n_profiles));
    if (!e.is_1_3 && !e.is_1_4 && e.n_not_1_10 <= e.n_not_1_9) {
        return HEARTH_OK;
    }

    return HEARTH_FAIL(s->err, HEARTH_INVALID_ARGUMENT,
                       "the profiles have the layout of opentelemetry-proto %s; read is the one of "
                       "1.10 and later: update the sender (OpenTelemetry Collector 0.148, "
                       "async-profiler 4.5, an eBPF profiler since March 2026, or later)",
                       e.is_1_3   ? "1.3 or earlier"
                       : e.is_1_4 ? "1.4 to 1.7"
                                  : "1.8 or 1.9");
}
