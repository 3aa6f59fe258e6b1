/* datadog_event.c -- from tags to labels; event.json and the older form. */
#include "hearth/format/datadog_event.h"

#include "hearth/codec/json_pick.h"

#include "datadog/datadog_names.h"

#include <assert.h>

/* Tags that begin so are for Datadog's own use. */
#define OWN_PREFIX "_dd."

/* Room for the labels that no tag names: service_name, env, version, language. */
#define MORE_LABELS 4u

static const struct {
    const char *tag, *label; /* label NULL: the tag is a fact */
} g_known_tags[] = {
#define RENAMED(tag, label) {tag, label},
#define FACT(tag, why)      {tag, NULL},
#include "datadog/datadog_tags.def"
#undef RENAMED
#undef FACT
};

struct tag_reader {
    struct hearth_datadog_event *event;
    size_t cap; /* of event->labels */
    struct hearth_arena *arena;
    struct hearth_err *err;
};

/* ---- labels ---- */

static bool has_event_label(const struct hearth_datadog_event *event, struct hearth_str name)
{
    for (size_t i = 0; i < event->n_labels; i++) {
        if (hearth_str_eq(event->labels[i].name, name)) {
            return true;
        }
    }

    return false;
}

/* Adds a label unless its name is taken. */
static void add_event_label(struct tag_reader *r, struct hearth_str name, struct hearth_str value)
{
    struct hearth_datadog_event *event = r->event;

    if (value.n == 0 || has_event_label(event, name)) {
        return;
    }

    assert(event->n_labels < r->cap);
    event->labels[event->n_labels++] = (struct hearth_label){name, value};
}

/* ---- tags ---- */

static enum hearth_status add_named_tag(struct tag_reader *r, struct hearth_str key,
                                        struct hearth_str value)
{
    /* Renamed, or no label. */
    if (hearth_str_starts(key, HEARTH_STR(OWN_PREFIX))) {
        return HEARTH_OK;
    }

    struct hearth_str name = key;
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_known_tags); i++) {
        if (hearth_str_eq_c(key, g_known_tags[i].tag)) {
            if (g_known_tags[i].label == NULL) {
                r->event->facts[r->event->n_facts++] = (struct hearth_label){key, value};
                return HEARTH_OK;
            }
            name = hearth_str_c(g_known_tags[i].label);
        }
    }

    name = hearth_datadog_label_name(name, r->arena);
    if (name.p == NULL) {
        return HEARTH_FAIL_ARENA(r->err, r->arena);
    }

    /* The others are labels. */
    if (hearth_str_starts(name, HEARTH_STR("__")) || has_event_label(r->event, name)) {
        r->event->n_dropped_tags++;
    } else {
        add_event_label(r, name, value);
    }

    return HEARTH_OK;
}

static enum hearth_status read_tag(struct tag_reader *r, struct hearth_str tag)
{
    tag = hearth_str_trim(tag);
    if (tag.n == 0) {
        return HEARTH_OK; /* a stray comma */
    }

    size_t colon = hearth_str_find(tag, ':', 0);
    struct hearth_str key = hearth_str_trim(hearth_str_n(tag.p, colon));
    if (colon == tag.n || key.n == 0) {
        r->event->n_dropped_tags++;
        return HEARTH_OK;
    }

    struct hearth_str value = hearth_str_trim(hearth_str_n(tag.p + colon + 1, tag.n - colon - 1));
    if (value.n == 0) {
        r->event->n_dropped_tags++;
        return HEARTH_OK;
    }

    return add_named_tag(r, key, value);
}

static size_t count_tags(struct hearth_str tags)
{
    size_t n = 1;
    for (size_t i = 0; i < tags.n; i++) {
        n += tags.p[i] == ',';
    }

    return n;
}

/* Makes room for n tags. */
static enum hearth_status expect_tags(struct tag_reader *r, size_t n)
{
    if (n > HEARTH_DATADOG_MAX_TAGS) {
        return HEARTH_FAIL(r->err, HEARTH_INVALID_ARGUMENT,
                           "the upload has %zu tags; the limit is %u", n, HEARTH_DATADOG_MAX_TAGS);
    }

    r->cap = n + MORE_LABELS;
    r->event->labels = hearth_arena_array(r->arena, r->cap, sizeof r->event->labels[0]);
    r->event->facts = hearth_arena_array(r->arena, n, sizeof r->event->facts[0]);
    return r->event->labels == NULL || r->event->facts == NULL ? HEARTH_FAIL_ARENA(r->err, r->arena)
                                                               : HEARTH_OK;
}

/* Tags separated by commas. */
static enum hearth_status read_tags(struct tag_reader *r, struct hearth_str tags)
{
    for (size_t at = 0; at < tags.n;) {
        size_t end = hearth_str_find(tags, ',', at);
        HEARTH_TRY(read_tag(r, hearth_str_n(tags.p + at, end - at)));
        at = end + 1;
    }

    return HEARTH_OK;
}

/* ---- event.json ---- */

enum hearth_status hearth_datadog_event_read(struct hearth_str json, struct hearth_arena *arena,
                                             struct hearth_datadog_event *ret,
                                             struct hearth_err *err)
{
    enum {
        TAGS,
        START,
        END,
        FAMILY,
        CUSTOM,
        SERVICE,
        ENV,
        VERSION,
        N_PICKS
    };
    struct hearth_json_pick picks[N_PICKS] = {
        [TAGS] = {.path = "tags_profiler"},
        [START] = {.path = "start"},
        [END] = {.path = "end"},
        [FAMILY] = {.path = "family"},
        [CUSTOM] = {.path = "custom_attributes", .is_array = true},
        [SERVICE] = {.path = "info.application.service"},
        [ENV] = {.path = "info.application.env"},
        [VERSION] = {.path = "info.application.version"},
    };
    struct hearth_datadog_event event = {0};
    struct tag_reader r = {.event = &event, .arena = arena, .err = err};

    HEARTH_TRY(hearth_json_pick(json, picks, N_PICKS, arena, err));
    if (picks[CUSTOM].n_items > HEARTH_DATADOG_MAX_CUSTOM_KEYS) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "the upload has %zu custom_attributes; the limit is %u",
                           picks[CUSTOM].n_items, HEARTH_DATADOG_MAX_CUSTOM_KEYS);
    }

    HEARTH_TRY(expect_tags(&r, count_tags(picks[TAGS].text)));
    HEARTH_TRY(read_tags(&r, picks[TAGS].text));

    /* What the tags do not name. */
    add_event_label(&r, HEARTH_STR("service_name"), picks[SERVICE].text);
    add_event_label(&r, HEARTH_STR("env"), picks[ENV].text);
    add_event_label(&r, HEARTH_STR("version"), picks[VERSION].text);
    add_event_label(&r, HEARTH_STR("language"), picks[FAMILY].text);
    event.start = picks[START].text;
    event.end = picks[END].text;
    event.family = picks[FAMILY].text;
    event.custom_keys = picks[CUSTOM].items;
    event.n_custom_keys = picks[CUSTOM].n_items;
    *ret = event;

    return HEARTH_OK;
}

/* ---- the form of version 3 ---- */

/* The value of the first field that is there; empty if none is. */
static struct hearth_str find_field(const struct hearth_multipart *form, const char *const *names)
{
    for (; *names != NULL; names++) {
        for (size_t i = 0; i < form->n_fields; i++) {
            if (hearth_str_eq_c(form->fields[i].name, *names)) {
                return hearth_str_trim(form->fields[i].value);
            }
        }
    }

    return HEARTH_STR("");
}

static bool is_tags_field(const struct hearth_multipart_field *field)
{
    return hearth_str_eq_c(field->name, "tags[]") || hearth_str_eq_c(field->name, "tags");
}

enum hearth_status hearth_datadog_event_read_form(const struct hearth_multipart *form,
                                                  struct hearth_arena *arena,
                                                  struct hearth_datadog_event *ret,
                                                  struct hearth_err *err)
{
    static const char *const start[] = {"recording-start", "start", NULL};
    static const char *const end[] = {"recording-end", "end", NULL};
    static const char *const family[] = {"family", "runtime", "language", NULL};
    struct hearth_datadog_event event = {0};
    struct tag_reader r = {.event = &event, .arena = arena, .err = err};
    size_t n_tags = 0;

    for (size_t i = 0; i < form->n_fields; i++) {
        if (!hearth_str_utf8_valid(form->fields[i].value)) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "field %zu of the form is not UTF-8",
                               i);
        }
        n_tags += is_tags_field(&form->fields[i]) ? count_tags(form->fields[i].value) : 0;
    }

    HEARTH_TRY(expect_tags(&r, n_tags));
    for (size_t i = 0; i < form->n_fields; i++) {
        if (is_tags_field(&form->fields[i])) {
            HEARTH_TRY(read_tags(&r, form->fields[i].value));
        }
    }

    event.start = find_field(form, start);
    event.end = find_field(form, end);
    event.family = find_field(form, family);
    add_event_label(&r, HEARTH_STR("language"), event.family);
    *ret = event;

    return HEARTH_OK;
}
