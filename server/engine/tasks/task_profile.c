/*
 * task_profile.c -- stack traces of an agent as a profile (contract: task_profile.h).
 *
 * The same symbol in the kernel and in the program makes two locations, with different mappings, so
 * that they stay apart wherever profiles are merged.
 */
#include "tasks/task_profile.h"

#include <assert.h>

enum {
    STR_EMPTY,
    STR_KERNEL,
    STR_USER,
    STR_TYPE_0,
    STR_UNIT_0,
    STR_TYPE_1,
    STR_UNIT_1,
    N_STR
};
enum {
    KERNEL,
    USER,
    N_SPACES
};

struct hearth_str hearth_task_profile_name(enum hearth_stack_kind kind)
{
    return kind == HEARTH_STACKS_OFF_CPU ? HEARTH_STR("off_cpu") : HEARTH_STR("process_cpu");
}

static const char *const g_texts[2][4] = {
    {"samples", "count", "cpu", "nanoseconds"},
    {"off_cpu", "nanoseconds", "switches", "count"},
};

static bool alloc_task_profile(const struct hearth_task_chunk *c, struct hearth_arena *arena,
                               struct hearth_profile *p)
{
    size_t n_symbols = c->n_strings, n_frames = 0;

    /* Count the frames; their ids must fit 32 bits. */
    for (uint32_t i = 0; i < c->n_records; i++) {
        const struct hearth_task_record *r = &c->records[i];
        n_frames += r->kernel == HEARTH_NO_STACK ? 0 : c->stacks[r->kernel].n;
        n_frames += r->user == HEARTH_NO_STACK ? 0 : c->stacks[r->user].n;
    }

    if (n_frames >= UINT32_MAX || n_symbols >= UINT32_MAX / 4) {
        return false;
    }

    /* Reserve all tables at their final size. */
    p->strings = hearth_arena_array(arena, n_symbols + N_STR, sizeof *p->strings);
    p->types = hearth_arena_calloc(arena, 2, sizeof *p->types);
    p->mappings = hearth_arena_calloc(arena, N_SPACES, sizeof *p->mappings);
    p->functions = hearth_arena_calloc(arena, n_symbols, sizeof *p->functions);
    p->lines = hearth_arena_calloc(arena, n_symbols, sizeof *p->lines);
    p->locations = hearth_arena_calloc(arena, n_symbols * N_SPACES, sizeof *p->locations);
    p->stack_first = hearth_arena_array(arena, (size_t)c->n_records + 1, sizeof *p->stack_first);
    p->stack_locs = hearth_arena_array(arena, n_frames, sizeof *p->stack_locs);
    p->values = hearth_arena_array(arena, (size_t)c->n_records * 2, sizeof *p->values);
    p->label_first = hearth_arena_calloc(arena, (size_t)c->n_records + 1, sizeof *p->label_first);
    p->sample_labels = hearth_arena_array(arena, 1, sizeof *p->sample_labels);

    return !arena->refused;
}

static void fill_task_symbols(const struct hearth_task_chunk *c,
                              const struct hearth_task_profile_about *about,
                              struct hearth_profile *p)
{
    const char *const *texts = g_texts[c->kind == HEARTH_STACKS_OFF_CPU];

    /* Fixed strings, then the names of the types. */
    p->strings[STR_EMPTY] = HEARTH_STR("");
    p->strings[STR_KERNEL] = HEARTH_STR(HEARTH_KERNEL_MAPPING);
    p->strings[STR_USER] = about->process.n > 0 ? about->process : HEARTH_STR(HEARTH_USER_MAPPING);
    for (uint32_t i = 0; i < 4; i++) {
        p->strings[STR_TYPE_0 + i] = hearth_str_c(texts[i]);
    }

    /* Two mappings: the kernel and the program. */
    p->mappings[KERNEL].filename = STR_KERNEL;
    p->mappings[USER].filename = STR_USER;
    p->mappings[KERNEL].has_functions = p->mappings[USER].has_functions = true;

    /* Each symbol is one function and one line, and two locations. */
    for (uint32_t i = 0; i < c->n_strings; i++) {
        p->strings[N_STR + i] = c->strings[i];
        p->functions[i].name = p->functions[i].system_name = N_STR + i;
        p->lines[i].function = i;
        for (uint32_t space = KERNEL; space < N_SPACES; space++) {
            p->locations[i * N_SPACES + space] =
                (struct hearth_location){.mapping = space, .first_line = i, .n_lines = 1};
        }
    }

    /* Set the counts. */
    p->n_strings = N_STR + c->n_strings;
    p->n_functions = p->n_lines = c->n_strings;
    p->n_locations = c->n_strings * N_SPACES;
    p->n_mappings = N_SPACES;
}

static void add_task_stack(const struct hearth_task_chunk *c, uint32_t stack, uint32_t space,
                           struct hearth_profile *p)
{
    assert(space < N_SPACES);

    if (stack != HEARTH_NO_STACK) {
        const struct hearth_task_stack *s = &c->stacks[stack];
        for (uint32_t i = 0; i < s->n; i++) {
            p->stack_locs[p->n_stack_locs++] = c->frames[s->first + i] * N_SPACES + space;
        }
    }
}

static enum hearth_status set_task_values(const struct hearth_task_chunk *c,
                                          const struct hearth_task_profile_about *about,
                                          struct hearth_profile *p, struct hearth_err *err)
{
    bool is_off = c->kind == HEARTH_STACKS_OFF_CPU;

    /* Choose the types; on-CPU time is known only if the period is. */
    p->n_types = is_off || about->oncpu_period_ns > 0 ? 2 : 1;
    p->types[0] = (struct hearth_value_type){STR_TYPE_0, STR_UNIT_0};
    p->types[1] = (struct hearth_value_type){STR_TYPE_1, STR_UNIT_1};
    p->period_type = is_off ? p->types[0] : p->types[1];
    p->period = is_off ? 0 : about->oncpu_period_ns;

    /* Off-CPU: duration and switches; on-CPU: dumps, and dumps times the period. */
    for (uint32_t i = 0; i < c->n_records; i++) {
        const struct hearth_task_record *r = &c->records[i];
        int64_t *values = &p->values[(size_t)i * p->n_types];
        values[0] = is_off ? r->duration_ns : r->count;
        if (is_off) {
            values[1] = r->count;
        } else if (p->n_types > 1 &&
                   __builtin_mul_overflow(r->count, about->oncpu_period_ns, &values[1])) {
            return HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE,
                               "a stack trace was counted %lld times; multiplied by the period "
                               "(agent-oncpu-period) that exceeds 64 bits",
                               (long long)r->count);
        }
    }

    return HEARTH_OK;
}

enum hearth_status hearth_task_profile_make(const struct hearth_task_chunk *c,
                                            const struct hearth_task_profile_about *about,
                                            struct hearth_arena *arena, struct hearth_profile *p,
                                            struct hearth_err *err)
{
    assert(c->n_records == 0 || c->records != NULL);

    *p = (struct hearth_profile){.time_ns = about->time_ns, .duration_ns = about->duration_ns};
    if (!alloc_task_profile(c, arena, p)) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    /* Concatenate the stacks, kernel frames first. */
    fill_task_symbols(c, about, p);
    for (uint32_t i = 0; i < c->n_records; i++) {
        p->stack_first[i] = p->n_stack_locs;
        add_task_stack(c, c->records[i].kernel, KERNEL, p);
        add_task_stack(c, c->records[i].user, USER, p);
    }

    p->stack_first[c->n_records] = p->n_stack_locs;
    p->n_samples = c->n_records;

    return set_task_values(c, about, p, err);
}
