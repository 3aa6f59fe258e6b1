/* speedscope_samples.c -- parts with samples and weights; frames and labels of all parts. */
#include "json/speedscope_parts.h"

#include <inttypes.h>

#define MAX_STACK 65536u /* frames of one sample */

uint32_t hearth_speedscope_frame(const struct speedscope_pass *pass, struct hearth_json_reader *r)
{
    int64_t idx = hearth_json_reader_i64(r);

    if (hearth_json_reader_failed(r)) {
        return 0;
    }
    if (idx < 0 || (uint64_t)idx >= pass->n_locations) {
        hearth_json_reader_fail(r, "frame %" PRId64 " is not one of the %zu frames", idx,
                                pass->n_locations);
        return 0;
    }

    return pass->locations[idx];
}

/* A frame's index. Some exporters write it in brackets of its own, which speedscope accepts. */
static uint32_t read_stack_frame(const struct speedscope_pass *pass, struct hearth_json_reader *r)
{
    if (hearth_json_reader_peek(r) != '[') {
        return hearth_speedscope_frame(pass, r);
    }

    hearth_json_reader_array(r);
    bool has_frame = hearth_json_reader_element(r);
    uint32_t location = has_frame ? hearth_speedscope_frame(pass, r) : 0;
    if (!has_frame || hearth_json_reader_element(r)) {
        hearth_json_reader_fail(r, "an array in a stack has exactly one frame");
    }

    return location;
}

/* Reads a stack to pass->stack, leaf first, and returns its depth. */
static uint32_t read_sample_stack(struct speedscope_pass *pass, struct hearth_json_reader *r)
{
    uint32_t n = 0;

    hearth_json_reader_array(r);
    while (hearth_json_reader_element(r)) {
        if (n == MAX_STACK) {
            hearth_json_reader_fail(r, "the stack has more than %u frames", MAX_STACK);
            return 0;
        }
        if (!hearth_arena_regrow(pass->arena, &pass->stack, &pass->cap_stack, (size_t)n + 1,
                                 sizeof *pass->stack)) {
            hearth_json_reader_fail_arena(r, pass->arena);
            return 0;
        }
        pass->stack[n++] = read_stack_frame(pass, r);
    }

    for (uint32_t i = 0; i < n / 2; i++) {
        uint32_t location = pass->stack[i];
        pass->stack[i] = pass->stack[n - 1 - i];
        pass->stack[n - 1 - i] = location;
    }

    return n;
}

static enum hearth_status read_weighted_sample(struct speedscope_pass *pass,
                                               struct speedscope_part *part, size_t idx,
                                               struct hearth_err *err)
{
    if (!hearth_json_reader_element(&pass->weights)) {
        HEARTH_TRY(hearth_json_reader_status(&pass->weights, err));
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "profile %u has only %zu weights for its samples", part->idx, idx);
    }

    uint32_t depth = read_sample_stack(pass, &pass->samples);
    int64_t weight = hearth_json_reader_scaled(&pass->weights, part->unit->factor);
    if (weight < 0) {
        hearth_json_reader_fail(&pass->weights, "the weight is negative");
    }
    if (hearth_json_reader_failed(&pass->samples) || hearth_json_reader_failed(&pass->weights)) {
        enum hearth_status status = hearth_json_reader_status(&pass->samples, err);
        status = status != HEARTH_OK ? status : hearth_json_reader_status(&pass->weights, err);
        hearth_err_prefix(err, "sample %zu of profile %u", idx, part->idx);
        return status;
    }

    if (weight == 0) {
        return HEARTH_OK;
    }

    return hearth_profile_builder_labelled_sample(
        pass->builder, depth == 0 ? &pass->no_stack : pass->stack, depth == 0 ? 1 : depth,
        &pass->label, pass->n_labels, &weight, err);
}

enum hearth_status hearth_speedscope_samples(struct speedscope_pass *pass,
                                             struct speedscope_part *part, struct hearth_err *err)
{
    if (part->samples_at == 0 || part->weights_at == 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "profile %u has no \"%s\"", part->idx,
                           part->samples_at == 0 ? "samples" : "weights");
    }

    hearth_json_reader_array(&pass->samples);
    hearth_json_reader_array(&pass->weights);
    size_t n = 0;
    while (hearth_json_reader_element(&pass->samples)) {
        HEARTH_TRY(read_weighted_sample(pass, part, n, err));
        n++;
    }

    if (hearth_json_reader_element(&pass->weights)) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "profile %u has more weights than its %zu samples", part->idx, n);
    }
    HEARTH_TRY(hearth_json_reader_status(&pass->samples, err));

    return hearth_json_reader_status(&pass->weights, err);
}
