/* test_task_profile.c -- stack traces of agents as profiles: types, values, and two spaces that stay apart. */
#include "tasks/task_profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static struct hearth_str g_strings[] = {{"main", 4}, {"read", 4}};
static struct hearth_task_stack g_stacks[] = {{0, 2}, {2, 1}};
static uint32_t g_frames[] = {1, 0, 1}; /* read called by main; read */
static struct hearth_task_record g_records[] = {
    {1, 0, 7, 8, 3, 500}, /* kernel: read; program: main, read */
    {HEARTH_NO_STACK, 1, 0, 9, 4, 0},
};

static struct hearth_task_chunk chunk_of(enum hearth_stack_kind kind)
{
    return (struct hearth_task_chunk){.kind = kind,
                                      .strings = g_strings,
                                      .n_strings = 2,
                                      .stacks = g_stacks,
                                      .n_stacks = 2,
                                      .frames = g_frames,
                                      .n_frames = 3,
                                      .records = g_records,
                                      .n_records = 2};
}

static void assert_text(const struct hearth_profile *p, uint32_t string, const char *expected)
{
    assert_true(hearth_str_eq_c(p->strings[string], expected));
}

/* "file:function" of frame i of sample s. */
static void assert_frame(const struct hearth_profile *p, uint32_t s, uint32_t i, const char *file,
                         const char *name)
{
    const struct hearth_location *l = &p->locations[p->stack_locs[p->stack_first[s] + i]];
    assert_int_equal(l->n_lines, 1);
    assert_text(p, p->mappings[l->mapping].filename, file);
    assert_text(p, p->functions[p->lines[l->first_line].function].name, name);
}

static void kernel_frames_come_first_and_are_locations_of_their_own(void **state)
{
    (void)state;
    struct hearth_arena arena;
    struct hearth_profile p;
    struct hearth_err err = HEARTH_ERR_INIT;
    const struct hearth_task_chunk chunk = chunk_of(HEARTH_STACKS_ON_CPU);
    const struct hearth_task_profile_about about = {
        .process = {"app", 3}, .oncpu_period_ns = 9, .time_ns = 5, .duration_ns = 6};
    hearth_arena_init(&arena, 0);
    assert_int_equal(hearth_task_profile_make(&chunk, &about, &arena, &p, &err), HEARTH_OK);
    assert_int_equal(p.n_samples, 2);
    assert_int_equal(p.stack_first[1] - p.stack_first[0], 3);
    assert_frame(&p, 0, 0, "[kernel]", "read");
    assert_frame(&p, 0, 1, "app", "read");
    assert_frame(&p, 0, 2, "app", "main");
    assert_frame(&p, 1, 0, "app", "read");
    assert_int_equal(p.time_ns, 5);
    assert_int_equal(p.duration_ns, 6);
    assert_int_equal(p.n_types, 2);
    assert_int_equal(p.values[0], 3);
    assert_int_equal(p.values[1], 27);
    assert_text(&p, p.types[0].type, "samples");
    assert_text(&p, p.types[1].type, "cpu");
    assert_text(&p, p.period_type.type, "cpu");
    hearth_arena_release(&arena);
}

static void without_a_period_dumps_are_only_counted(void **state)
{
    (void)state;
    struct hearth_arena arena;
    struct hearth_profile p;
    struct hearth_err err = HEARTH_ERR_INIT;
    const struct hearth_task_chunk chunk = chunk_of(HEARTH_STACKS_ON_CPU);
    const struct hearth_task_profile_about about = {0};
    hearth_arena_init(&arena, 0);
    assert_int_equal(hearth_task_profile_make(&chunk, &about, &arena, &p, &err), HEARTH_OK);
    assert_int_equal(p.n_types, 1);
    assert_int_equal(p.values[0], 3);
    assert_int_equal(p.values[1], 4);
    assert_int_equal(p.period, 0);
    assert_frame(&p, 1, 0, "[user]", "read");
    hearth_arena_release(&arena);
}

static void off_cpu_has_nanoseconds_and_switches(void **state)
{
    (void)state;
    struct hearth_arena arena;
    struct hearth_profile p;
    struct hearth_err err = HEARTH_ERR_INIT;
    const struct hearth_task_chunk chunk = chunk_of(HEARTH_STACKS_OFF_CPU);
    const struct hearth_task_profile_about about = {.oncpu_period_ns = 9};
    hearth_arena_init(&arena, 0);
    assert_int_equal(hearth_task_profile_make(&chunk, &about, &arena, &p, &err), HEARTH_OK);
    assert_int_equal(p.n_types, 2);
    assert_text(&p, p.types[0].type, "off_cpu");
    assert_text(&p, p.types[1].type, "switches");
    assert_int_equal(p.values[0], 500);
    assert_int_equal(p.values[1], 3);
    assert_true(hearth_str_eq_c(hearth_task_profile_name(HEARTH_STACKS_OFF_CPU), "off_cpu"));
    assert_true(hearth_str_eq_c(hearth_task_profile_name(HEARTH_STACKS_ON_CPU), "process_cpu"));
    hearth_arena_release(&arena);
}

static void nanoseconds_beyond_64_bits_are_an_error(void **state)
{
    (void)state;
    struct hearth_arena arena;
    struct hearth_profile p;
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_task_record record = {HEARTH_NO_STACK, 0, 0, 1, INT64_MAX / 2, 0};
    struct hearth_task_chunk chunk = chunk_of(HEARTH_STACKS_ON_CPU);
    chunk.records = &record;
    chunk.n_records = 1;
    const struct hearth_task_profile_about about = {.oncpu_period_ns = 9000000};
    hearth_arena_init(&arena, 0);
    assert_int_equal(hearth_task_profile_make(&chunk, &about, &arena, &p, &err),
                     HEARTH_OUT_OF_RANGE);
    hearth_arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernel_frames_come_first_and_are_locations_of_their_own),
        cmocka_unit_test(without_a_period_dumps_are_only_counted),
        cmocka_unit_test(off_cpu_has_nanoseconds_and_switches),
        cmocka_unit_test(nanoseconds_beyond_64_bits_are_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
