/* test_task_commands.c -- commands as SkyWalking's agents read them, argument by argument. */
#include "arena_fixture.h"
#include "tasks/tasks_internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define START INT64_C(1763546400000)

/* "Name Key=value Key=value ..." */
static void expect(const struct hearth_task *task, struct hearth_str *process_ids,
                   size_t n_process_ids, const char *expected)
{
    struct hearth_command command;
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_buf text;
    const struct hearth_told_task told = {.task = *task,
                                          .cursor_ms = START + 7,
                                          .process_ids = process_ids,
                                          .n_process_ids = n_process_ids};
    assert_int_equal(hearth_task_command(&told, HEARTH_STR("serial"), &g_arena, &command, &err),
                     HEARTH_OK);
    hearth_buf_init(&text, 0);
    hearth_buf_cstr(&text, command.name);
    for (size_t i = 0; i < command.n_args; i++) {
        hearth_buf_printf(&text, "\n%s=", command.args[i].key);
        hearth_buf_str(&text, command.args[i].value);
    }
    hearth_buf_byte(&text, 0);
    assert_string_equal(text.p, expected);
    hearth_buf_release(&text);
}

static struct hearth_task make_task(enum hearth_task_kind kind)
{
    return (struct hearth_task){
        .task_id = HEARTH_STR("t"), .kind = kind, .start_ms = START, .duration_ms = 120000};
}

static void tasks_of_processes_have_all_eight_arguments(void **state)
{
    (void)state;
    struct hearth_str ids[] = {HEARTH_STR("aa"), HEARTH_STR("bb")};
    struct hearth_task task = make_task(HEARTH_TASK_ON_CPU);
    expect(&task, ids, 1,
           "EBPFProfilingTaskQuery\nSerialNumber=serial\nTaskId=t\nProcessId=aa\n"
           "TaskUpdateTime=1763546400007\nTriggerType=FIXED_TIME\nTargetType=ON_CPU\n"
           "TaskStartTime=1763546400000\nExtensionConfigJSON=null\nFixedTriggerDuration=120");
    task = make_task(HEARTH_TASK_OFF_CPU);
    expect(&task, ids, 1,
           "EBPFProfilingTaskQuery\nSerialNumber=serial\nTaskId=t\nProcessId=aa\n"
           "TaskUpdateTime=1763546400007\nTriggerType=FIXED_TIME\nTargetType=OFF_CPU\n"
           "TaskStartTime=1763546400000\nExtensionConfigJSON=null\nFixedTriggerDuration=120");
    task = make_task(HEARTH_TASK_NETWORK);
    task.sampling = HEARTH_STR("[{\"When4xx\": true}]");
    expect(&task, ids, 2,
           "EBPFProfilingTaskQuery\nSerialNumber=serial\nTaskId=t\nProcessId=aa,bb\n"
           "TaskUpdateTime=1763546400007\nTriggerType=FIXED_TIME\nTargetType=NETWORK\n"
           "TaskStartTime=1763546400000\n"
           "ExtensionConfigJSON={\"NetworkSamplings\":[{\"When4xx\": true}]}\n"
           "FixedTriggerDuration=120");
}

static void tasks_of_instances_have_the_units_of_their_kind(void **state)
{
    (void)state;
    struct hearth_task task = make_task(HEARTH_TASK_TRACE);
    task.endpoint = HEARTH_STR("/pay");
    task.min_duration_ms = 5;
    task.dump_period_ms = 10;
    task.max_samples = 3;
    expect(&task, NULL, 0,
           "ProfileTaskQuery\nSerialNumber=serial\nTaskId=t\nEndpointName=/pay\nDuration=2\n"
           "MinDurationThreshold=5\nDumpPeriod=10\nMaxSamplingCount=3\nStartTime=1763546400000\n"
           "CreateTime=1763546400007");
    struct hearth_str events[] = {HEARTH_STR("cpu"), HEARTH_STR("alloc")};
    task = make_task(HEARTH_TASK_ASYNC_PROFILER);
    task.events = events;
    task.n_events = 2;
    expect(&task, NULL, 0,
           "AsyncProfilerTaskQuery\nSerialNumber=serial\nTaskId=t\nDuration=120\n"
           "ExecArgs=event=cpu,alloc\nCreateTime=1763546400007");
    task.exec_args = HEARTH_STR("live,chunksize=1M");
    expect(&task, NULL, 0,
           "AsyncProfilerTaskQuery\nSerialNumber=serial\nTaskId=t\nDuration=120\n"
           "ExecArgs=event=cpu,alloc,live,chunksize=1M\nCreateTime=1763546400007");
    task = make_task(HEARTH_TASK_PPROF);
    task.events = events;
    task.n_events = 1;
    task.dump_period_ms = 9;
    expect(&task, NULL, 0,
           "PprofTaskQuery\nSerialNumber=serial\nTaskId=t\nEvents=cpu\nDuration=2\n"
           "CreateTime=1763546400007\nDumpPeriod=9");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tasks_of_processes_have_all_eight_arguments),
        cmocka_unit_test(tasks_of_instances_have_the_units_of_their_kind),
    };
    return cmocka_run_group_tests(tests, make_arena, free_arena);
}
