/*
 * speedscope.c -- reads a file once for the heads of its parts and the places of its tables; then
 * for each kind of unit frames become locations, and each part of the kind adds its samples.
 */
#include "hearth/format/speedscope.h"

#include "hearth/base/limit.h"
#include "hearth/format/ingest_types.h"
#include "hearth/model/frame_name.h"

#include "json/speedscope_parts.h"
#include "text/named_frame.h"

#include <assert.h>

/* ---- units ---- */

static_assert(N_KINDS == HEARTH_SPEEDSCOPE_MAX_PROFILES, "one profile for each kind of unit");

static const struct speedscope_unit g_units[] = {
    {"none", KIND_COUNT, 1},
    {"nanoseconds", KIND_TIME, 1},
    {"microseconds", KIND_TIME, 1000},
    {"milliseconds", KIND_TIME, 1000000},
    {"seconds", KIND_TIME, 1000000000},
    {"bytes", KIND_BYTES, 1},
};

static const struct {
    const char *name, *type, *unit, *period_type, *period_unit;
} g_kinds[N_KINDS] = {
    [KIND_TIME] = {"wall", "wall", "nanoseconds", "cpu", "nanoseconds"},
    [KIND_BYTES] = {"memory", "samples", "bytes", "", ""},
    [KIND_COUNT] = {"process_cpu", "samples", "count", "", ""},
};

/* ---- heads of parts ---- */

static void read_part_unit(struct hearth_json_reader *r, struct hearth_arena *arena,
                           struct speedscope_part *part)
{
    struct hearth_str name = hearth_json_reader_text(r, arena);

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_units); i++) {
        if (hearth_str_eq_c(name, g_units[i].name)) {
            part->unit = &g_units[i];
            return;
        }
    }

    hearth_json_reader_fail(r, "profile %u has the unknown unit \"" HEARTH_STR_FMT "\"", part->idx,
                            HEARTH_STR_ARG(name));
}

static void read_part_type(struct hearth_json_reader *r, struct hearth_arena *arena,
                           struct speedscope_part *part)
{
    struct hearth_str type = hearth_json_reader_text(r, arena);

    part->is_evented = hearth_str_eq_c(type, "evented");
    if (!part->is_evented && !hearth_str_eq_c(type, "sampled")) {
        hearth_json_reader_fail(r, "profile %u has the unknown type \"" HEARTH_STR_FMT "\"",
                                part->idx, HEARTH_STR_ARG(type));
    }
}

/* The number at an index of the text; 0 without one. */
static int64_t read_part_time(struct speedscope_pass *pass, size_t at,
                              const struct speedscope_part *part, struct hearth_json_reader *r)
{
    struct hearth_json_reader value;

    if (at == 0 || hearth_json_reader_failed(r)) {
        return 0;
    }

    hearth_json_reader_init_at(&value, pass->text, at);
    int64_t time = hearth_json_reader_scaled(&value, part->unit->factor);
    if (hearth_json_reader_failed(&value)) {
        hearth_json_reader_fail(r, "profile %u has no number as startValue or endValue", part->idx);
    }

    return time;
}

/* Reads the heads of the part that comes next; its tables are only skipped. */
static void read_part_heads(struct speedscope_pass *pass, struct hearth_json_reader *r,
                            struct speedscope_part *part)
{
    size_t start_at = 0, end_at = 0;
    const struct {
        const char *key;
        size_t *at;
    } tables[] = {{"samples", &part->samples_at},
                  {"weights", &part->weights_at},
                  {"events", &part->events_at},
                  {"startValue", &start_at},
                  {"endValue", &end_at}};
    struct hearth_str key;

    hearth_json_reader_object(r);
    while (hearth_json_reader_member(r, &key)) {
        for (size_t i = 0; i < HEARTH_ARRAY_LEN(tables); i++) {
            *tables[i].at = hearth_str_eq_c(key, tables[i].key) ? r->at : *tables[i].at;
        }

        bool is_text = hearth_json_reader_peek(r) == '"';
        if (is_text && hearth_str_eq_c(key, "type")) {
            read_part_type(r, pass->arena, part);
        } else if (is_text && hearth_str_eq_c(key, "unit")) {
            read_part_unit(r, pass->arena, part);
        } else if (is_text && hearth_str_eq_c(key, "name")) {
            part->name = hearth_json_reader_text(r, pass->arena);
        } else {
            hearth_json_reader_skip(r);
        }
    }

    if (part->unit == NULL) {
        hearth_json_reader_fail(r, "profile %u has no unit", part->idx);
        return;
    }
    part->start = read_part_time(pass, start_at, part, r);
    part->end = read_part_time(pass, end_at, part, r);
}

/* Reads the heads of all parts. */
static void read_all_heads(struct speedscope_pass *pass, struct hearth_json_reader *r)
{
    uint32_t max = pass->limits->max_entries;

    pass->has_parts = true;
    pass->n_parts = 0;
    hearth_json_reader_array(r);
    while (hearth_json_reader_element(r)) {
        if (max > 0 && pass->n_parts == max) {
            hearth_json_reader_fail(
                r, "more than %u profiles" HEARTH_RAISE_LIMIT("max-table-entries"), max);
            return;
        }
        if (!hearth_arena_regrow(pass->arena, &pass->parts, &pass->cap_parts, pass->n_parts + 1,
                                 sizeof *pass->parts)) {
            hearth_json_reader_fail_arena(r, pass->arena);
            return;
        }

        struct speedscope_part *part = &pass->parts[pass->n_parts];
        *part = (struct speedscope_part){.idx = (uint32_t)pass->n_parts++};
        read_part_heads(pass, r, part);
    }
}

/* ---- frames ---- */

static uint32_t add_frame_location(struct speedscope_pass *pass, struct hearth_json_reader *r)
{
    struct hearth_named_frame frame = {.line = 0};
    struct hearth_str key;

    hearth_json_reader_object(r);
    while (hearth_json_reader_member(r, &key)) {
        char type = hearth_json_reader_peek(r);
        if (type == '"' && hearth_str_eq_c(key, "name")) {
            frame.name = hearth_json_reader_text(r, pass->arena);
        } else if (type == '"' && hearth_str_eq_c(key, "file")) {
            frame.filename = hearth_json_reader_text(r, pass->arena);
        } else if (type == '0' && hearth_str_eq_c(key, "line")) {
            frame.line = hearth_json_reader_scaled(r, 1);
        } else {
            hearth_json_reader_skip(r);
        }
    }

    frame.name = hearth_frame_shown(frame.name);

    return hearth_named_location(pass->builder, HEARTH_NO_INDEX, &frame, 1);
}

static enum hearth_status read_frames(struct speedscope_pass *pass, struct hearth_err *err)
{
    struct hearth_json_reader r;
    uint32_t max = pass->limits->max_entries;

    pass->n_locations = 0;
    hearth_json_reader_init_at(&r, pass->text, pass->frames_at);
    hearth_json_reader_array(&r);
    while (hearth_json_reader_element(&r)) {
        if (max > 0 && pass->n_locations == max) {
            hearth_json_reader_fail(
                &r, "more than %u frames" HEARTH_RAISE_LIMIT("max-table-entries"), max);
            break;
        }

        uint32_t location = add_frame_location(pass, &r);
        if (location == HEARTH_NO_INDEX ||
            !hearth_arena_regrow(pass->arena, &pass->locations, &pass->cap_locations,
                                 pass->n_locations + 1, sizeof *pass->locations)) {
            return HEARTH_FAIL_ARENA(err, pass->arena);
        }
        pass->locations[pass->n_locations++] = location;
    }

    return hearth_json_reader_status(&r, err);
}

/* ---- the file ---- */

/* Finds the table of frames in "shared", whose value comes next. */
static void find_frames(struct speedscope_pass *pass, struct hearth_json_reader *r)
{
    struct hearth_str key;

    hearth_json_reader_object(r);
    while (hearth_json_reader_member(r, &key)) {
        pass->frames_at = hearth_str_eq_c(key, "frames") ? r->at : pass->frames_at;
        hearth_json_reader_skip(r);
    }
}

/* Finds the tables of the file. */
static enum hearth_status find_tables(struct speedscope_pass *pass, struct hearth_err *err)
{
    struct hearth_json_reader r;
    struct hearth_str key;

    hearth_json_reader_init(&r, pass->text);
    hearth_json_reader_object(&r);
    while (hearth_json_reader_member(&r, &key)) {
        if (hearth_str_eq_c(key, "profiles")) {
            read_all_heads(pass, &r);
        } else if (hearth_str_eq_c(key, "shared")) {
            find_frames(pass, &r);
        } else {
            hearth_json_reader_skip(&r);
        }
    }

    HEARTH_TRY(hearth_json_reader_end(&r, err));
    if (!pass->has_parts || pass->frames_at == 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "the file has no \"%s\"",
                           !pass->has_parts ? "profiles" : "shared.frames");
    }

    return HEARTH_OK;
}

/* Several parts are told apart by their names. */
static enum hearth_status label_part(struct speedscope_pass *pass,
                                     const struct speedscope_part *part, struct hearth_err *err)
{
    pass->n_labels = 0;
    if (pass->n_parts == 1 || part->name.n == 0) {
        return HEARTH_OK;
    }

    pass->n_labels = 1;
    pass->label = (struct hearth_sample_label){
        .key = hearth_profile_builder_string(pass->builder, HEARTH_STR("thread name")),
        .str = hearth_profile_builder_string(pass->builder, part->name),
    };

    return pass->label.key == HEARTH_NO_INDEX || pass->label.str == HEARTH_NO_INDEX
               ? HEARTH_FAIL_ARENA(err, pass->arena)
               : HEARTH_OK;
}

/* Adds the samples of all parts of the kind to the builder. */
static enum hearth_status read_parts(struct speedscope_pass *pass, struct hearth_err *err)
{
    pass->duration_ns = 0;
    for (size_t i = 0; i < pass->n_parts; i++) {
        struct speedscope_part *part = &pass->parts[i];
        int64_t duration;
        if (part->unit->kind != pass->kind) {
            continue;
        }

        hearth_json_reader_init_at(&pass->samples, pass->text, part->samples_at);
        hearth_json_reader_init_at(&pass->weights, pass->text, part->weights_at);
        hearth_json_reader_init_at(&pass->events, pass->text, part->events_at);
        HEARTH_TRY(label_part(pass, part, err));
        HEARTH_TRY(part->is_evented ? hearth_speedscope_events(pass, part, err)
                                    : hearth_speedscope_samples(pass, part, err));
        if (!__builtin_sub_overflow(part->end, part->start, &duration) &&
            duration > pass->duration_ns) {
            pass->duration_ns = duration;
        }
    }

    return HEARTH_OK;
}

static enum hearth_status read_kind(struct speedscope_pass *pass, struct hearth_profile *ret,
                                    struct hearth_err *err)
{
    struct hearth_profile_builder *b = pass->builder;
    const struct hearth_named_frame no_stack = {.name = HEARTH_STR("[no stack]")};

    if (hearth_profile_builder_type(b, hearth_str_c(g_kinds[pass->kind].type),
                                    hearth_str_c(g_kinds[pass->kind].unit)) == HEARTH_NO_INDEX) {
        return HEARTH_FAIL_ARENA(err, pass->arena);
    }
    pass->no_stack = hearth_named_location(b, HEARTH_NO_INDEX, &no_stack, 1);
    uint32_t period_type =
        hearth_profile_builder_string(b, hearth_str_c(g_kinds[pass->kind].period_type));
    uint32_t period_unit =
        hearth_profile_builder_string(b, hearth_str_c(g_kinds[pass->kind].period_unit));
    if (pass->no_stack == HEARTH_NO_INDEX || period_type == HEARTH_NO_INDEX ||
        period_unit == HEARTH_NO_INDEX) {
        return HEARTH_FAIL_ARENA(err, pass->arena);
    }

    HEARTH_TRY(read_frames(pass, err));
    HEARTH_TRY(read_parts(pass, err));
    HEARTH_TRY(hearth_profile_builder_finish(b, ret, err));
    ret->period_type = (struct hearth_value_type){period_type, period_unit};
    ret->duration_ns = pass->kind == KIND_TIME ? pass->duration_ns : 0;

    return hearth_ingest_cut(pass->limits, pass->arena, ret, &pass->notes, err);
}

static enum hearth_status read_kinds(struct speedscope_pass *pass,
                                     struct hearth_speedscope_file *ret, struct hearth_err *err)
{
    bool has_kind[N_KINDS] = {false};

    for (size_t i = 0; i < pass->n_parts; i++) {
        has_kind[pass->parts[i].unit->kind] = true;
    }

    for (int kind = 0; kind < N_KINDS; kind++) {
        if (!has_kind[kind]) {
            continue;
        }

        pass->kind = (enum unit_kind)kind;
        pass->builder = hearth_profile_builder_new(pass->arena);
        if (pass->builder == NULL) {
            return HEARTH_FAIL_ARENA(err, pass->arena);
        }
        hearth_profile_builder_limit(pass->builder, pass->limits->max_frames);
        enum hearth_status status = read_kind(pass, &ret->profiles[ret->n_profiles].profile, err);
        hearth_profile_builder_free(pass->builder);
        HEARTH_TRY(status);
        ret->profiles[ret->n_profiles++].name = g_kinds[kind].name;
    }

    return HEARTH_OK;
}

enum hearth_status hearth_speedscope_decode(struct hearth_str bytes,
                                            const struct hearth_pprof_limits *limits,
                                            struct hearth_arena *arena,
                                            struct hearth_speedscope_file *ret,
                                            struct hearth_err *err)
{
    struct speedscope_pass pass = {.limits = limits, .arena = arena, .text = bytes};
    struct hearth_speedscope_file file = {.n_profiles = 0};

    assert(limits != NULL && arena != NULL && ret != NULL);
    HEARTH_TRY(find_tables(&pass, err));

    hearth_call_tree_init(&pass.tree, limits, arena);
    enum hearth_status status = read_kinds(&pass, &file, err);
    HEARTH_TRY(status);

    file.notes = pass.notes;
    *ret = file;

    return HEARTH_OK;
}
