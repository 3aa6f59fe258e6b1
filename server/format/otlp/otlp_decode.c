/*
 * otlp_decode.c -- the resources and scopes of a request (the other files: otlp_scan.h).
 *
 * The dictionary may follow the profiles, so it is searched first.
 */
#include "otlp/otlp_scan.h"
#include "pprof/decode_memory.h"

/* ---- around profiles ---- */

/* The next field with this number; false at the end. INVALID_ARGUMENT for damage. */
static enum hearth_status find_next(const struct otlp_scan *s, struct pprof_cursor *c,
                                    uint32_t field, struct pprof_cursor *ret, bool *ret_found)
{
    uint64_t tag;

    *ret_found = false;
    while (!*ret_found && pprof_next(c, &tag)) {
        if (tag == PPROF_LEN(field)) {
            *ret_found = pprof_payload(c, ret);
        } else { /* the other one of the fields 1 and 2, or an unknown field */
            *c = hearth_pprof_skip(*c, tag, tag == PPROF_LEN(3 - field) ? 0 : 2);
        }
        if (c->why != NULL) {
            break;
        }
    }

    return c->why == NULL ? HEARTH_OK : hearth_otlp_damaged(s, "the list of profiles", *c);
}

/*
 * Adds the labels of a resource or scope to those around it. They are field `field` of the message
 * that is field 1.
 */
static enum hearth_status extend_labels(struct otlp_scan *s, struct pprof_cursor message,
                                        uint32_t field, struct otlp_labels *labels)
{
    struct pprof_cursor owner;
    bool found;

    HEARTH_TRY(find_next(s, &message, 1, &owner, &found));
    if (!found) {
        return HEARTH_OK;
    }

    hearth_otlp_begin_labels(s, labels);
    HEARTH_TRY(hearth_otlp_add_labels(s, owner, field, labels));

    return hearth_otlp_end_labels(s, labels);
}

static enum hearth_status read_scope(struct otlp_scan *s, const struct otlp_labels *around,
                                     struct pprof_cursor c)
{
    struct otlp_labels labels = *around;
    struct pprof_cursor profile;
    bool found;

    HEARTH_TRY(extend_labels(s, c, 3, &labels));
    for (s->at_profile = 0;; s->at_profile++) {
        HEARTH_TRY(find_next(s, &c, 2, &profile, &found));
        if (!found) {
            return HEARTH_OK;
        }
        HEARTH_TRY(hearth_otlp_read_profile(s, &labels, profile));
    }
}

static enum hearth_status read_resource(struct otlp_scan *s, struct pprof_cursor c)
{
    struct otlp_labels labels = {0};
    struct pprof_cursor scope;
    bool found;

    HEARTH_TRY(extend_labels(s, c, 1, &labels));
    for (s->at_scope = 0;; s->at_scope++) {
        HEARTH_TRY(find_next(s, &c, 2, &scope, &found));
        if (!found) {
            return HEARTH_OK;
        }
        HEARTH_TRY(read_scope(s, &labels, scope));
    }
}

/* ---- the request ---- */

/* Places of the entries of the dictionary in profiles. */
static bool make_workspace(struct otlp_scan *s)
{
    const struct otlp_dictionary *d = &s->dictionary;
    struct otlp_workspace *w = &s->workspace;
    struct hearth_arena *arena = s->arena;

    s->gathered = hearth_arena_array(arena, HEARTH_OTLP_MAX_LABELS, sizeof *s->gathered);
    w->strings = hearth_arena_calloc(arena, d->n_strings, sizeof *w->strings);
    w->attributes = hearth_arena_calloc(arena, d->n_attributes, sizeof *w->attributes);
    w->mappings = hearth_arena_calloc(arena, d->n_mappings, sizeof *w->mappings);
    w->functions = hearth_arena_calloc(arena, d->n_functions, sizeof *w->functions);
    w->locations = hearth_arena_calloc(arena, d->n_locations, sizeof *w->locations);
    w->links = hearth_arena_calloc(arena, d->n_links, sizeof *w->links);
    w->groups = hearth_arena_calloc(arena, (size_t)d->n_attributes + 1, sizeof *w->groups);

    return s->gathered != NULL && w->strings != NULL && w->attributes != NULL &&
           w->mappings != NULL && w->functions != NULL && w->locations != NULL &&
           w->links != NULL && w->groups != NULL;
}

/* The dictionary: the last one, as everywhere in protobuf. */
static enum hearth_status find_dictionary(struct otlp_scan *s, struct pprof_cursor message,
                                          struct pprof_cursor *ret)
{
    struct pprof_cursor payload;
    uint32_t n_resources = 0;
    uint64_t tag;

    *ret = (struct pprof_cursor){s->base, s->base, NULL};
    while (pprof_next(&message, &tag)) {
        if ((tag == PPROF_LEN(1) || tag == PPROF_LEN(2)) && pprof_payload(&message, &payload)) {
            *ret = tag == PPROF_LEN(2) ? payload : *ret;
            n_resources += tag == PPROF_LEN(1);
            HEARTH_TRY(hearth_otlp_check_number(s, "resources", n_resources));
        } else if (message.why == NULL) {
            message = hearth_pprof_skip(message, tag, 2);
        }
        if (message.why != NULL) {
            break;
        }
    }

    return message.why == NULL ? HEARTH_OK
                               : hearth_otlp_damaged(s, "the list of profiles", message);
}

static enum hearth_status read_export(struct otlp_scan *s, struct pprof_cursor message)
{
    struct pprof_cursor dictionary, resource;
    bool found;

    HEARTH_TRY(find_dictionary(s, message, &dictionary));
    HEARTH_TRY(hearth_otlp_count_tables(s, dictionary));
    HEARTH_TRY(hearth_otlp_check_layout(s, message));
    HEARTH_TRY(hearth_otlp_read_dictionary(s, dictionary));
    if (!make_workspace(s)) {
        return HEARTH_FAIL_ARENA(s->err, s->arena);
    }

    for (s->at_resource = 0;; s->at_resource++) {
        HEARTH_TRY(find_next(s, &message, 1, &resource, &found));
        if (!found) {
            return HEARTH_OK;
        }
        HEARTH_TRY(read_resource(s, resource));
    }
}

enum hearth_status hearth_otlp_decode(struct hearth_str bytes,
                                      const struct hearth_otlp_options *options,
                                      struct hearth_arena *arena, struct hearth_otlp_export *ret,
                                      struct hearth_err *err)
{
    assert(options != NULL && arena != NULL && ret != NULL);
    if (bytes.n >= UINT32_MAX) {
        return HEARTH_FAIL(err, HEARTH_RESOURCE_EXHAUSTED, "an export of %zu bytes is too large",
                           bytes.n);
    }

    struct hearth_otlp_reader *reader = hearth_arena_zalloc(arena, sizeof *reader);
    if (reader == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    const uint8_t *base = (const uint8_t *)bytes.p;
    const struct pprof_cursor message = {base, bytes.n == 0 ? base : base + bytes.n, NULL};
    reader->options = *options;
    reader->scan = (struct otlp_scan){
        .base = base,
        .options = &reader->options,
        .arena = arena,
        .out = &reader->out,
        .err = err,
    };

    struct decode_memory memory;
    hearth_decode_memory_begin(&memory, arena, options->limits.max_memory, bytes.n);
    enum hearth_status status = read_export(&reader->scan, message);
    HEARTH_TRY(hearth_decode_memory_end(&memory, status, err));
    *ret = reader->out;
    ret->reader = reader;

    return HEARTH_OK;
}

enum hearth_status hearth_otlp_build(const struct hearth_otlp_export *export, size_t i,
                                     struct hearth_arena *arena, struct hearth_profile *ret,
                                     struct hearth_pprof_notes *notes, struct hearth_err *err)
{
    assert(export->reader != NULL && i < export->n_profiles);

    const struct hearth_otlp_profile *profile = &export->profiles[i];
    struct hearth_otlp_reader *reader = export->reader;
    struct otlp_scan *s = &reader->scan;

    /* The samples, unless the previous profile is a part of the same message. */
    s->err = err;
    if (reader->current != profile->part) {
        reader->current = NULL;
        HEARTH_TRY(hearth_otlp_read_samples(s, &profile->part->head, profile->part->message));
        reader->current = profile->part;
    }

    return hearth_otlp_build_part(s, profile, arena, ret, notes);
}
