/* test_entity_id.c -- ids of SkyWalking's own published test data. */
#include "hearth/model/entity_id.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void expect_process(const char *service, const char *instance, const char *process,
                           const char *id)
{
    struct hearth_entity_hash hash;
    assert_true(hearth_process_public_id(hearth_str_c(service), hearth_str_c(instance),
                                         hearth_str_c(process), &hash));
    assert_string_equal(hash.text, id);
}

static void ids_of_processes_are_hashes_of_name_and_instance(void **state)
{
    (void)state;
    expect_process("service", "test-instance", "service",
                   "0c106e314ae0dae7cb655c3835ca77c890caedd78f51971ff60e5919805109f9");
    expect_process("service", "test-instance", "UNKNOWN_REMOTE",
                   "cb9e9d1badbdc5fb7b1a638c3e8525de1d8b843e53c58e5406fea90974e304b9");
    expect_process("service", "test-instance", "UNKNOWN_LOCAL",
                   "8865b9563185c0b82f03724178400e8d877ec45de4a782bbee478a790742bffb");
    expect_process("sqrt", "test-instance", "sqrt",
                   "3f84517a2b0f75e4b91f6fd23b020aa6f9b2cdae0a3d075ff7ee230000ee468d");
}

static void ids_of_schedules_are_hashes_of_task_process_and_start(void **state)
{
    (void)state;
    struct hearth_entity_hash hash;
    assert_true(hearth_schedule_public_id(
        HEARTH_STR("baf5ed3f92eb501467873aa3bd5be954ee075c3d58b34d220af4be87cbfcaff1"),
        HEARTH_STR("3f84517a2b0f75e4b91f6fd23b020aa6f9b2cdae0a3d075ff7ee230000ee468d"),
        1700000001000, &hash));
    assert_string_equal(hash.text,
                        "0dd6b2a332fec0ca7d89a7c64ae3d33c335c484ae78658989185ebe286c2b6e6");
}

static void blank_names_are_replaced(void **state)
{
    (void)state;
    struct hearth_entity_hash blank, named;
    assert_true(
        hearth_process_public_id(HEARTH_STR("s"), HEARTH_STR("i"), HEARTH_STR(" "), &blank));
    assert_true(
        hearth_process_public_id(HEARTH_STR("s"), HEARTH_STR("i"), HEARTH_STR("_blank"), &named));
    assert_string_equal(blank.text, named.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_of_processes_are_hashes_of_name_and_instance),
        cmocka_unit_test(ids_of_schedules_are_hashes_of_task_process_and_start),
        cmocka_unit_test(blank_names_are_replaced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
