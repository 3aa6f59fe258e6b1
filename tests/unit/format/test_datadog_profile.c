/* test_datadog_profile.c -- attachments of Datadog's profilers, divided into profiles of Hearth. */
#include "hearth/format/datadog_profile.h"
#include "hearth/format/profile_builder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct label {
    const char *key, *text; /* text NULL: a number */
};

static struct hearth_arena g_arena;
static struct hearth_profile_builder *g_builder;
static struct hearth_profile g_profile;
static struct hearth_datadog_profile g_parts[HEARTH_DATADOG_MAX_FAMILIES];
static struct hearth_datadog_notes g_notes;
static size_t g_n;
static struct hearth_err g_err;

static int start(void **state)
{
    (void)state;
    hearth_arena_init(&g_arena, 0);
    g_builder = hearth_profile_builder_new(&g_arena);
    return g_builder == NULL ? -1 : 0;
}

static int stop(void **state)
{
    (void)state;
    hearth_profile_builder_free(g_builder);
    hearth_arena_release(&g_arena);
    return 0;
}

static uint32_t text(const char *c)
{
    return hearth_profile_builder_string(g_builder, hearth_str_c(c));
}

static void add_type(const char *type, const char *unit)
{
    (void)hearth_profile_builder_type(g_builder, hearth_str_c(type), hearth_str_c(unit));
}

/* A sample of one function, with up to four labels. */
static void add_sample(const char *function, const int64_t *values, const struct label *labels)
{
    struct hearth_function f = {.name = text(function)};
    struct hearth_line line = {hearth_profile_builder_function(g_builder, &f), 1};
    struct hearth_location at = {.mapping = HEARTH_NO_INDEX};
    uint32_t location = hearth_profile_builder_location(g_builder, &at, &line, 1);
    struct hearth_sample_label list[4] = {0};
    uint32_t n = 0;

    for (; labels != NULL && n < 4 && labels[n].key != NULL; n++) {
        list[n].key = text(labels[n].key);
        list[n].str = labels[n].text == NULL ? 0 : text(labels[n].text);
        list[n].num = 7;
    }

    assert_int_equal(
        hearth_profile_builder_labelled_sample(g_builder, &location, 1, list, n, values, &g_err),
        HEARTH_OK);
}

static void divide(const char *filename)
{
    static const struct hearth_str custom = {"order kind", 10};

    uint32_t type = text("cpu-time"), unit = text("nanoseconds");
    assert_int_equal(hearth_profile_builder_finish(g_builder, &g_profile, &g_err), HEARTH_OK);
    g_profile.period_type = (struct hearth_value_type){type, unit};
    g_profile.period = 10;
    assert_int_equal(hearth_datadog_profile_divide(&g_profile, hearth_str_c(filename), &custom, 1,
                                                   &g_arena, g_parts, &g_n, &g_notes),
                     HEARTH_OK);
}

static const struct hearth_profile *find_part(const char *name)
{
    for (size_t i = 0; i < g_n; i++) {
        if (strcmp(g_parts[i].name, name) == 0) {
            return &g_parts[i].profile;
        }
    }

    fail_msg("no profile %s", name);
    return NULL;
}

static void assert_type(const struct hearth_profile *p, uint32_t k, const char *type,
                        const char *unit, int64_t sum)
{
    int64_t found = 0;

    assert_true(k < p->n_types);
    assert_true(hearth_str_eq_c(p->strings[p->types[k].type], type));
    assert_true(hearth_str_eq_c(p->strings[p->types[k].unit], unit));
    for (uint32_t s = 0; s < p->n_samples; s++) {
        found += p->values[(size_t)s * p->n_types + k];
    }
    assert_int_equal(found, sum);
}

static void assert_period(const struct hearth_profile *p, const char *type, const char *unit)
{
    assert_true(hearth_str_eq_c(p->strings[p->period_type.type], type));
    assert_true(hearth_str_eq_c(p->strings[p->period_type.unit], unit));
}

static void one_attachment_becomes_profiles_of_several_families(void **state)
{
    (void)state;
    add_type("cpu-time", "nanoseconds");
    add_type("wall-time", "nanoseconds");
    add_type("cpu-samples", "count");
    add_type("alloc_space", "bytes");
    add_type("heap-live-samples", "count");
    add_type("gpu-time", "nanoseconds");
    add_type("lock-acquire", "count");
    add_sample("burn", (int64_t[]){10, 20, 1, 0, 0, 0, 0}, NULL);
    add_sample("wait", (int64_t[]){0, 30, 0, 0, 0, 0, 2}, NULL);
    add_sample("make", (int64_t[]){0, 0, 0, 4096, 3, 0, 0}, NULL);
    add_sample("nothing", (int64_t[]){0, 0, 0, 0, 0, 0, 0}, NULL);
    divide("profile.pprof");

    assert_int_equal(g_n, 4);
    assert_type(find_part("lock"), 0, "acquires", "count", 2);
    assert_period(find_part("lock"), "", "");
    const struct hearth_profile *cpu = find_part("process_cpu"), *wall = find_part("wall");
    const struct hearth_profile *memory = find_part("memory");
    assert_int_equal(cpu->n_types, 2);
    assert_int_equal(cpu->n_samples, 1);
    assert_type(cpu, 0, "cpu", "nanoseconds", 10);
    assert_type(cpu, 1, "samples", "count", 1);
    assert_period(cpu, "cpu", "nanoseconds");
    assert_int_equal(wall->n_samples, 2);
    assert_type(wall, 0, "wall", "nanoseconds", 50);
    assert_period(wall, "wall", "nanoseconds");
    assert_int_equal(memory->n_samples, 1);
    assert_type(memory, 0, "alloc_space", "bytes", 4096);
    assert_type(memory, 1, "inuse_objects", "count", 3);
    assert_int_equal(g_notes.zero_samples, 1);

    /* A sample takes its stack with it. */
    assert_int_equal(wall->stack_first[2], 2);
    uint32_t location = wall->stack_locs[1];
    uint32_t function = wall->lines[wall->locations[location].first_line].function;
    assert_true(hearth_str_eq_c(wall->strings[wall->functions[function].name], "wait"));
}

static void types_that_are_not_known_keep_their_names(void **state)
{
    (void)state;
    add_type("heap-space", "bytes");
    add_type("heap-live-size", "bytes");
    add_type("custom-1", "count");
    add_type("cpu-time", "milliseconds");
    add_sample("f", (int64_t[]){1, 2, 3, 4}, NULL);
    divide("profile.pprof");
    assert_int_equal(g_n, 2);
    assert_type(find_part("memory"), 0, "inuse_space", "bytes", 1);
    const struct hearth_profile *other = find_part("other");
    assert_type(other, 0, "heap-live-size", "bytes", 2);
    assert_type(other, 1, "custom-1", "count", 3);
    assert_type(other, 2, "cpu-time", "milliseconds", 4);
}

static void the_file_name_distinguishes_block_from_mutex(void **state)
{
    (void)state;
    add_type("contentions", "count");
    add_type("delay", "nanoseconds");
    add_sample("lock", (int64_t[]){1, 900}, NULL);
    divide("delta-block.pprof");
    assert_int_equal(g_n, 1);
    assert_type(find_part("block"), 1, "delay", "nanoseconds", 900);
    assert_period(find_part("block"), "cpu-time", "nanoseconds"); /* as it is */

    /* The only family shares the tables of the attachment. */
    assert_ptr_equal(find_part("block")->values, g_profile.values);
    divide("delta-mutex.pprof");
    assert_type(find_part("mutex"), 0, "contentions", "count", 1);
}

static void labels_with_many_values_are_dropped_and_counted(void **state)
{
    (void)state;
    static const struct label first[] = {
        {"span id", NULL}, {"lock name", "a.py:7"}, {"trace type", "web"}, {NULL, NULL}};
    static const struct label second[] = {
        {"thread name", "main"}, {"order kind", "gift"}, {"port", NULL}, {NULL, NULL}};

    add_type("wall", "nanoseconds");
    add_sample("f", (int64_t[]){5}, first);
    add_sample("f", (int64_t[]){6}, second);
    divide("wall.pprof");
    assert_int_equal(g_notes.unlisted_labels, 1);
    assert_int_equal(g_notes.numeric_labels, 1);

    const struct hearth_profile *p = find_part("wall");
    static const char *const want[] = {"span id", "trace_type", "thread name", "order_kind"};
    assert_int_equal(p->n_sample_labels, 4);
    assert_int_equal(p->label_first[1], 2);
    for (size_t i = 0; i < 4; i++) {
        assert_true(hearth_str_eq_c(p->strings[p->sample_labels[i].key], want[i]));
    }
    assert_int_equal(p->sample_labels[0].num, 7);
    assert_true(hearth_str_eq_c(p->strings[p->sample_labels[1].str], "web"));
}

/* A string table may hold the same text many times; each label is made once. */
static void equal_keys_at_many_indices_are_one_label(void **state)
{
    (void)state;
    enum {
        N = 100
    };
    static struct hearth_str strings[N + 3];
    static struct hearth_sample_label labels[N];
    static uint32_t label_first[] = {0, N}, stack_first[] = {0, 0};
    static int64_t value = 1;
    static struct hearth_value_type type = {N + 1, N + 2};
    struct hearth_profile p = {.strings = strings,
                               .n_strings = N + 3,
                               .types = &type,
                               .n_types = 1,
                               .values = &value,
                               .n_samples = 1,
                               .label_first = label_first,
                               .stack_first = stack_first,
                               .sample_labels = labels,
                               .n_sample_labels = N};
    static const struct hearth_str custom = {"order kind", 10};

    strings[0] = HEARTH_STR("");
    for (uint32_t i = 0; i < N; i++) {
        strings[i + 1] = i % 2 == 0 ? HEARTH_STR("trace type") : custom;
        labels[i] = (struct hearth_sample_label){.key = i + 1, .str = 1};
    }
    strings[N + 1] = HEARTH_STR("wall");
    strings[N + 2] = HEARTH_STR("nanoseconds");
    assert_int_equal(hearth_datadog_profile_divide(&p, HEARTH_STR("p"), &custom, 1, &g_arena,
                                                   g_parts, &g_n, &g_notes),
                     HEARTH_OK);
    assert_int_equal(p.n_sample_labels, N);
    for (uint32_t i = 2; i < N; i++) {
        assert_int_equal(p.sample_labels[i].key, p.sample_labels[i % 2].key);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_attachment_becomes_profiles_of_several_families, start,
                                        stop),
        cmocka_unit_test_setup_teardown(types_that_are_not_known_keep_their_names, start, stop),
        cmocka_unit_test_setup_teardown(the_file_name_distinguishes_block_from_mutex, start, stop),
        cmocka_unit_test_setup_teardown(equal_keys_at_many_indices_are_one_label, start, stop),
        cmocka_unit_test_setup_teardown(labels_with_many_values_are_dropped_and_counted, start,
                                        stop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
