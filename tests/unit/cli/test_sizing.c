/* test_sizing.c -- the calculator against the measurements its constants come from. */
#include "sizing.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define DAY 86400.0

static void defaults(double in[SIZING_N_INPUTS])
{
    for (size_t i = 0; i < SIZING_N_INPUTS; i++) {
        struct hearth_err err = HEARTH_ERR_INIT;
        assert_int_equal(
            sizing_parse((enum sizing_input_id)i, sizing_fields[i].text_default, &in[i], &err),
            HEARTH_OK);
    }
}

static void near(double got, double expected, double tolerance)
{
    if (fabs(got - expected) > expected * tolerance) {
        print_message("%g is not within %g%% of %g\n", got, tolerance * 100, expected);
    }
    assert_true(fabs(got - expected) <= expected * tolerance);
}

/* One service of ten pods, as the prototype measured its blocks. */
static void ten_pods(double in[SIZING_N_INPUTS])
{
    defaults(in);
    in[SIZING_PROCESSES] = 10;
    in[SIZING_SERVICES] = 1;
    in[SIZING_SAMPLES] = 660;
}

static void rates_follow_from_processes_and_interval(void **state)
{
    double in[SIZING_N_INPUTS];
    struct sizing s;
    (void)state;
    defaults(in);
    in[SIZING_PROCESSES] = 5000;
    in[SIZING_INTERVAL] = 10;
    sizing_compute(in, &s);
    near(s.profiles_per_s, 500, 0);
    near(s.samples_per_s, 300000, 0);
    near(s.wire_bytes_per_s, 300000 * 66.0, 0.01);
}

static void a_profile_costs_what_the_bench_measured(void **state)
{
    double in[SIZING_N_INPUTS];
    struct sizing s;
    (void)state;
    defaults(in);
    in[SIZING_PROCESSES] = 4000;
    in[SIZING_INTERVAL] = 1;
    in[SIZING_SAMPLES] = 595;
    sizing_compute(in, &s);
    /* 456 us in hearthd, 31 in PostgreSQL: docs/benchmarks.md. */
    near(s.cores[SIZING_CORE_RECEIVE] / 4000 * 1e6, 459, 0.02);
    near(s.cores[SIZING_CORE_COMMIT] / 4000 * 1e6, 36, 0.05);
    in[SIZING_RETAIN_RAW] = 9 * DAY;
    in[SIZING_COMPACTION] = 0;
    sizing_compute(in, &s);
    near(s.disk[SIZING_DISK_PROFILE].bytes / (4000 * 10 * DAY), 855, 0.01);
    assert_true(s.disk[SIZING_DISK_SEGMENT].bytes <= 0);
    assert_true(s.cores[SIZING_CORE_COMPACT] <= 0);
}

static void blocks_are_as_large_as_measured(void **state)
{
    double in[SIZING_N_INPUTS];
    struct sizing s;
    (void)state;
    ten_pods(in);
    sizing_compute(in, &s);
    /* A day of blocks of ten pods and of their service, over the days that are kept. */
    double days_10m = s.disk[SIZING_DISK_10M].kept_s / DAY;
    double days_1h = s.disk[SIZING_DISK_1H].kept_s / DAY;
    double days_1d = s.disk[SIZING_DISK_1D].kept_s / DAY;
    near(s.disk[SIZING_DISK_10M].bytes / days_10m, 144 * (10 * 5450.0 + 13600), 0.1);
    near(s.disk[SIZING_DISK_1H].bytes / days_1h, 24 * (10 * 11450.0 + 18900), 0.1);
    near(s.disk[SIZING_DISK_1D].bytes / days_1d, 10 * 22000.0 + 34000, 0.1);
}

static void blocks_of_few_profiles_take_no_disk_while_the_profiles_exist(void **state)
{
    double in[SIZING_N_INPUTS];
    struct sizing few, all, alone;
    (void)state;
    ten_pods(in);
    in[SIZING_INTERVAL] = 600; /* 1, 6 and 144 profiles in a block; 10 and 60 of the service */
    sizing_compute(in, &few);
    assert_true(few.disk[SIZING_DISK_10M].bytes <= 0);
    in[SIZING_RETAIN_RAW] = DAY; /* shorter than that of any block, and than two days */
    sizing_compute(in, &all);
    assert_true(all.disk[SIZING_DISK_10M].bytes > 0);

    /* Ten services of one pod have the hours of the ten pods twice. */
    in[SIZING_SERVICES] = 10;
    sizing_compute(in, &alone);
    double of_pods = alone.disk[SIZING_DISK_1H].bytes / 2 / 32;

    /* Those of the pods are stored for 25 days of 32, and those of the service all the time. */
    near(all.disk[SIZING_DISK_1H].bytes - few.disk[SIZING_DISK_1H].bytes, 7 * of_pods, 1e-9);
    near(few.disk[SIZING_DISK_1D].bytes, all.disk[SIZING_DISK_1D].bytes, 1e-9);
}

static void compaction_saves_disk_and_keeps_both_forms_for_a_while(void **state)
{
    double in[SIZING_N_INPUTS];
    struct sizing with, without;
    (void)state;
    defaults(in);
    sizing_compute(in, &with);
    in[SIZING_COMPACTION] = 0;
    sizing_compute(in, &without);
    assert_true(with.disk_bytes < without.disk_bytes);
    assert_true(with.cores_busy > without.cores_busy);
    double kept = 8 * DAY; /* 7 d, and the day's table goes as a whole */
    near(without.disk[SIZING_DISK_PROFILE].kept_s, kept, 0);
    near(with.disk[SIZING_DISK_PROFILE].kept_s, DAY + 7 * 3600.0, 0);
    near(with.disk[SIZING_DISK_SEGMENT].kept_s, kept - 6 * 3600.0, 0);
    /* Nothing is compacted that goes before. */
    in[SIZING_COMPACTION] = 1;
    in[SIZING_RETAIN_RAW] = 3600;
    sizing_compute(in, &with);
    assert_true(with.disk[SIZING_DISK_SEGMENT].bytes <= 0);
}

static void everything_grows_with_the_fleet_and_with_retention(void **state)
{
    static const enum sizing_input_id grow[] = {SIZING_PROCESSES,  SIZING_SAMPLES,
                                                SIZING_RETAIN_RAW, SIZING_RETAIN_10M,
                                                SIZING_RETAIN_1H,  SIZING_RETAIN_1D};
    double in[SIZING_N_INPUTS];
    struct sizing small, large;
    (void)state;
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(grow); i++) {
        defaults(in);
        sizing_compute(in, &small);
        in[grow[i]] *= 2;
        sizing_compute(in, &large);
        assert_true(large.disk_bytes > small.disk_bytes);
        assert_true(large.cores_busy >= small.cores_busy);
    }
}

static void memory_is_bounded_by_the_limits_of_the_dictionaries(void **state)
{
    double in[SIZING_N_INPUTS];
    struct sizing small, large;
    (void)state;
    defaults(in);
    in[SIZING_PROCESSES] = 100;
    sizing_compute(in, &small);
    in[SIZING_PROCESSES] = 10000;
    sizing_compute(in, &large);
    assert_true(small.server_bytes < 400e6);
    assert_true(large.server_bytes > small.server_bytes && large.server_bytes < 1.1e9);
}

static void sums_are_the_sums_of_their_lines(void **state)
{
    double in[SIZING_N_INPUTS], disk = 0, cores = 0;
    struct sizing s;
    (void)state;
    defaults(in);
    sizing_compute(in, &s);
    for (size_t i = 0; i < SIZING_N_DISKS; i++) {
        disk += s.disk[i].bytes;
    }
    for (size_t i = 0; i < SIZING_N_CORES; i++) {
        cores += s.cores[i];
    }
    near(s.disk_bytes, disk, 1e-9);
    near(s.cores_busy, cores, 1e-9);
    assert_true(s.disk_wanted_bytes > s.disk_bytes);
    assert_true(s.cores_wanted >= 1);
}

static void extremes_stay_finite(void **state)
{
    static const struct {
        double processes, services, interval, samples;
    } cases[] = {{1, 1, 86400, 1}, {1, 5, 1e-3, 1e9}, {1e9, 1e9, 10, 1e9}, {1e9, 1, 1, 1}};
    double in[SIZING_N_INPUTS];
    struct sizing s;
    (void)state;
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        defaults(in);
        in[SIZING_PROCESSES] = cases[i].processes;
        in[SIZING_SERVICES] = cases[i].services;
        in[SIZING_INTERVAL] = cases[i].interval;
        in[SIZING_SAMPLES] = cases[i].samples;
        sizing_compute(in, &s);
        assert_true(isfinite(s.disk_wanted_bytes) && s.disk_wanted_bytes > 0);
        assert_true(isfinite(s.cores_wanted) && s.cores_wanted >= 1);
        assert_true(isfinite(s.cache_bytes) && isfinite(s.server_bytes));
    }
}

static void wrong_inputs_name_their_flag(void **state)
{
    static const struct {
        enum sizing_input_id id;
        const char *text, *flag;
    } cases[] = {
        {SIZING_PROCESSES, "many", "--processes"},  {SIZING_PROCESSES, "0", "--processes"},
        {SIZING_SAMPLES, "-5", "--samples"},        {SIZING_STACKS, "1000000001", "--stacks"},
        {SIZING_INTERVAL, "soon", "--interval"},    {SIZING_RETAIN_1H, "0", "--retain-1h"},
        {SIZING_COMPACTION, "yes", "--compaction"},
    };
    (void)state;
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        struct hearth_err err = HEARTH_ERR_INIT;
        double value;
        assert_int_equal(sizing_parse(cases[i].id, cases[i].text, &value, &err),
                         HEARTH_INVALID_ARGUMENT);
        assert_memory_equal(err.msg, cases[i].flag, strlen(cases[i].flag));
    }
    double services = -1;
    assert_int_equal(sizing_parse(SIZING_SERVICES, "0", &services, NULL), HEARTH_OK);
    assert_true(services >= 0 && services <= 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_follow_from_processes_and_interval),
        cmocka_unit_test(a_profile_costs_what_the_bench_measured),
        cmocka_unit_test(blocks_are_as_large_as_measured),
        cmocka_unit_test(blocks_of_few_profiles_take_no_disk_while_the_profiles_exist),
        cmocka_unit_test(compaction_saves_disk_and_keeps_both_forms_for_a_while),
        cmocka_unit_test(everything_grows_with_the_fleet_and_with_retention),
        cmocka_unit_test(memory_is_bounded_by_the_limits_of_the_dictionaries),
        cmocka_unit_test(sums_are_the_sums_of_their_lines),
        cmocka_unit_test(extremes_stay_finite),
        cmocka_unit_test(wrong_inputs_name_their_flag),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
