/*
 * listed_pprof.c -- one upload as one pprof with all of its types.
 *
 * The profile of each type is made by the merge that answers all queries, and added to one builder,
 * which joins equal stack traces. The order of the types is that in which they were sent: readers
 * of a pprof show its last type first.
 */
#include "hearth/format/pprof.h"
#include "hearth/format/profile_builder.h"

#include "listed/listed_scan.h"

#include <assert.h>
#include <stdlib.h>

/* The profile of one type, while it is added. */
struct type_import {
    struct hearth_profile_builder *builder;
    struct hearth_arena *arena;
    const struct hearth_profile *from;
    uint32_t *strings, *functions, *mappings, *locations; /* indices of `from` to the builder's */
    uint32_t type, n_types;
};

static struct hearth_str name_of_type(struct hearth_str profile_type)
{
    return hearth_str_n(profile_type.p, hearth_str_find(profile_type, ':', 0));
}

/* By the name of the profile, then as sent. */
static int compare_sent_types(const void *left, const void *right)
{
    const struct hearth_listed_value *a = left, *b = right;
    int order = hearth_str_cmp(name_of_type(a->profile_type), name_of_type(b->profile_type));

    if (order == 0) {
        order = a->column - b->column;
    }

    return order != 0 ? order : hearth_str_cmp(a->profile_type, b->profile_type);
}

/* Adds the sample type of profile type t; its name is added if another type is called the same. */
static bool add_sample_type(struct hearth_profile_builder *builder, struct hearth_arena *arena,
                            const struct hearth_profile_type *types, size_t n, size_t t)
{
    struct hearth_str name = types[t].sample_type;

    for (size_t i = 0; i < n; i++) {
        if (i != t && hearth_str_eq(types[i].sample_type, types[t].sample_type) &&
            hearth_str_eq(types[i].sample_unit, types[t].sample_unit)) {
            const char *joined =
                hearth_arena_printf(arena, HEARTH_STR_FMT "_" HEARTH_STR_FMT,
                                    HEARTH_STR_ARG(types[t].name), HEARTH_STR_ARG(name));
            name = hearth_str_c(joined != NULL ? joined : "");
            break;
        }
    }

    return hearth_profile_builder_type(builder, name, types[t].sample_unit) != HEARTH_NO_INDEX;
}

/* ---- translation ---- */

static bool import_symbols(struct type_import *in)
{
    const struct hearth_profile *from = in->from;
    bool ok = true;

    for (uint32_t i = 0; ok && i < from->n_strings; i++) {
        in->strings[i] = hearth_profile_builder_string(in->builder, from->strings[i]);
        ok = in->strings[i] != HEARTH_NO_INDEX;
    }

    for (uint32_t i = 0; ok && i < from->n_functions; i++) {
        struct hearth_function function = from->functions[i];
        function.name = in->strings[function.name];
        function.system_name = in->strings[function.system_name];
        function.filename = in->strings[function.filename];
        in->functions[i] = hearth_profile_builder_function(in->builder, &function);
        ok = in->functions[i] != HEARTH_NO_INDEX;
    }

    for (uint32_t i = 0; ok && i < from->n_mappings; i++) {
        struct hearth_mapping mapping = from->mappings[i];
        mapping.filename = in->strings[mapping.filename];
        mapping.build_id = in->strings[mapping.build_id];
        in->mappings[i] = hearth_profile_builder_mapping(in->builder, &mapping);
        ok = in->mappings[i] != HEARTH_NO_INDEX;
    }

    return ok;
}

static bool import_locations(struct type_import *in)
{
    const struct hearth_profile *from = in->from;
    struct hearth_line *lines = hearth_arena_array(in->arena, from->n_lines, sizeof lines[0]);
    bool ok = lines != NULL;

    for (uint32_t i = 0; ok && i < from->n_lines; i++) {
        uint32_t function = from->lines[i].function;
        lines[i] = from->lines[i];
        lines[i].function = function == HEARTH_NO_INDEX ? function : in->functions[function];
    }

    for (uint32_t i = 0; ok && i < from->n_locations; i++) {
        struct hearth_location location = from->locations[i];
        location.mapping =
            location.mapping == HEARTH_NO_INDEX ? HEARTH_NO_INDEX : in->mappings[location.mapping];
        in->locations[i] = hearth_profile_builder_location(
            in->builder, &location, lines + location.first_line, location.n_lines);
        ok = in->locations[i] != HEARTH_NO_INDEX;
    }

    return ok;
}

/* Adds the samples; only the value of the import's type is not 0. */
static enum hearth_status import_samples(struct type_import *in, struct hearth_err *err)
{
    const struct hearth_profile *from = in->from;
    int64_t *values = hearth_arena_calloc(in->arena, in->n_types, sizeof values[0]);
    uint32_t *stack = hearth_arena_array(in->arena, from->n_stack_locs, sizeof stack[0]);
    if (values == NULL || stack == NULL) {
        return HEARTH_FAIL_ARENA(err, in->arena);
    }

    for (uint32_t s = 0; s < from->n_samples; s++) {
        uint32_t first = from->stack_first[s], n = from->stack_first[s + 1] - first;
        for (uint32_t i = 0; i < n; i++) {
            stack[i] = in->locations[from->stack_locs[first + i]];
        }
        values[in->type] = from->values[s];
        HEARTH_TRY(hearth_profile_builder_sample(in->builder, stack, n, values, err));
    }

    return HEARTH_OK;
}

/* Adds the profile of a type, as hearth_query_pprof has encoded it. */
static enum hearth_status import_type(struct type_import *in, struct hearth_str bytes,
                                      struct hearth_err *err)
{
    struct hearth_pprof_limits no_limits = {0};
    struct hearth_pprof_notes notes;
    struct hearth_profile profile;

    HEARTH_TRY(hearth_pprof_decode(bytes, &no_limits, in->arena, &profile, &notes, err));
    in->from = &profile;
    in->strings = hearth_arena_array(in->arena, profile.n_strings, sizeof in->strings[0]);
    in->functions = hearth_arena_array(in->arena, profile.n_functions, sizeof in->functions[0]);
    in->mappings = hearth_arena_array(in->arena, profile.n_mappings, sizeof in->mappings[0]);
    in->locations = hearth_arena_array(in->arena, profile.n_locations, sizeof in->locations[0]);
    if (in->strings == NULL || in->functions == NULL || in->mappings == NULL ||
        in->locations == NULL || !import_symbols(in) || !import_locations(in)) {
        return HEARTH_FAIL_ARENA(err, in->arena);
    }

    return import_samples(in, err);
}

/* ---- the upload ---- */

/* Queries each type of the upload and adds it to the builder. */
static enum hearth_status import_types(const struct hearth_call *call,
                                       const struct hearth_listed_detail *detail,
                                       struct hearth_profile_builder *builder,
                                       struct hearth_err *err)
{
    const struct hearth_query query = {
        .call = *call, .start_ms = detail->start_ms, .end_ms = detail->end_ms + 1};
    struct hearth_merge_spec spec = {
        .selector = detail->selector,
        .profiles = {.profiles = &detail->upload.id, .n_profiles = 1},
    };
    struct hearth_buf bytes;
    hearth_buf_init(&bytes, 0);
    bytes.budget = call->arena->budget;

    enum hearth_status status = HEARTH_OK;
    for (size_t t = 0; status == HEARTH_OK && t < detail->n_values; t++) {
        struct hearth_arena arena;
        hearth_arena_init_like(&arena, call->arena);
        struct type_import in = {.builder = builder,
                                 .arena = &arena,
                                 .type = (uint32_t)t,
                                 .n_types = (uint32_t)detail->n_values};
        hearth_buf_reset(&bytes);
        spec.profile_type = detail->values[t].profile_type;
        status = hearth_query_pprof(&query, &spec, &bytes, err);
        if (status == HEARTH_OK && bytes.n > 0) {
            status = import_type(&in, hearth_buf_view(&bytes), err);
        }
        hearth_arena_release(&arena);
    }
    hearth_buf_release(&bytes);

    return status;
}

static enum hearth_status build_upload(const struct hearth_call *call,
                                       const struct hearth_listed_detail *detail,
                                       struct hearth_profile_builder *builder,
                                       struct hearth_buf *out, struct hearth_err *err)
{
    struct hearth_profile_type *types =
        hearth_arena_array(call->arena, detail->n_values, sizeof types[0]);
    bool ok = types != NULL;

    /* All types, before the first sample. */
    for (size_t t = 0; ok && t < detail->n_values; t++) {
        HEARTH_TRY(hearth_profile_type_parse(detail->values[t].profile_type, &types[t], err));
    }
    for (size_t t = 0; ok && t < detail->n_values; t++) {
        ok = add_sample_type(builder, call->arena, types, detail->n_values, t);
    }
    if (!ok) {
        return HEARTH_FAIL_ARENA(err, call->arena);
    }
    HEARTH_TRY(import_types(call, detail, builder, err));

    /* The head of the message. */
    const struct hearth_value_type period_type = {
        hearth_profile_builder_string(builder, types[0].period_type),
        hearth_profile_builder_string(builder, types[0].period_unit),
    };
    struct hearth_profile profile;
    HEARTH_TRY(hearth_profile_builder_finish(builder, &profile, err));
    if (period_type.type != HEARTH_NO_INDEX && period_type.unit != HEARTH_NO_INDEX) {
        profile.period_type = period_type;
    }
    profile.time_ns = detail->upload.ts_ns;
    profile.duration_ns = detail->upload.duration_ns;
    hearth_pprof_encode(&profile, out);

    return hearth_buf_failed(out)
               ? HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate the pprof message")
               : HEARTH_OK;
}

enum hearth_status hearth_listed_pprof(const struct hearth_call *call, struct hearth_profile_id id,
                                       struct hearth_buf *out, struct hearth_err *err)
{
    assert(call != NULL && out != NULL);

    struct hearth_listed_detail detail;
    HEARTH_TRY(hearth_listed_find(call, id, &detail, err));
    assert(detail.n_values > 0);
    qsort(detail.values, detail.n_values, sizeof detail.values[0], compare_sent_types);

    struct hearth_profile_builder *builder = hearth_profile_builder_new(call->arena);
    if (builder == NULL) {
        return HEARTH_FAIL_ARENA(err, call->arena);
    }
    enum hearth_status status = build_upload(call, &detail, builder, out, err);
    hearth_profile_builder_free(builder);

    return status;
}
