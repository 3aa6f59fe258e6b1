/*
 * test_view_objects.c -- a narrowed call and what is no series: agents, tasks, policies, uploads,
 * settings; and what a narrowed sender may push.
 *
 * Service svc-1 has series of two teams, svc-2 of team-1 only; svc-0 has agents but no series.
 */
#include "hearth/engine/agents.h"
#include "hearth/engine/client_settings.h"
#include "hearth/engine/exported_spans.h"
#include "hearth/engine/policies.h"
#include "hearth/engine/rules.h"
#include "hearth/engine/task_uploads.h"
#include "hearth/engine/tasks.h"
#include "hearth/engine/uploads.h"

#include "ingest/push_wait.h"
#include "views_fixture.h"

static const struct hearth_str g_team[] = {HEARTH_STR("{team=\"team-1\"}")};
static const struct hearth_str g_name[] = {HEARTH_STR("{team=\"none\"}"),
                                           HEARTH_STR("{service_name=~\"svc-[01]\"}")};
static const struct hearth_view g_of_team = {TENANT, g_team, 1}, g_of_name = {TENANT, g_name, 2};
static struct hearth_arena g_memory;
static struct hearth_str g_task_id;

static struct hearth_call call_under(const struct hearth_view *view)
{
    struct hearth_call call = query_of(&g_memory, TENANT).call;
    call.view = view;
    return call;
}

/* ---- what there is ---- */

static void store_series(int service, int team)
{
    struct hearth_arena arena;
    struct drawn d = {.service = service, .team = team, .env = 1, .ts_ns = first_ns()};
    hearth_arena_init(&arena, 0);
    struct hearth_profile profile = synth_profile(&g_world, 4, 2, &arena, NULL);
    (void)store_drawn(&d, &profile, TENANT, NULL);
    hearth_arena_release(&arena);
}

static enum hearth_status report_process_of(const struct hearth_call *call, const char *service,
                                            const char *agent_id, struct hearth_err *err)
{
    struct hearth_property can = {HEARTH_STR(HEARTH_PROPERTY_CAN_PROFILE), HEARTH_STR("true")};
    const struct hearth_reported reported = {
        .path = "processes[0]",
        .process = {.service = hearth_str_c(service),
                    .instance = HEARTH_STR("host"),
                    .name = HEARTH_STR("main"),
                    .layer = HEARTH_STR("GENERAL"),
                    .detect_type = 1,
                    .agent_id = hearth_str_c(agent_id),
                    .properties = &can,
                    .n_properties = 1},
    };
    return hearth_agents_report_processes(call, &reported, 1, err);
}

static enum hearth_status report_process(const struct hearth_call *call, const char *service,
                                         struct hearth_err *err)
{
    return report_process_of(call, service, service, err);
}

static enum hearth_status create_task(const struct hearth_call *call, const char *service,
                                      struct hearth_task_view *ret, struct hearth_err *err)
{
    const struct hearth_task_request request = {
        .kind = HEARTH_TASK_ON_CPU, .service = hearth_str_c(service), .duration_ms = 60000};
    return hearth_tasks_create(call, &request, ret, err);
}

static int start_objects(void **state)
{
    int status = start_views(state);
    struct hearth_task_view task;

    hearth_arena_init(&g_memory, 0);
    store_series(1, 1);
    store_series(1, 2);
    store_series(2, 1);
    struct hearth_call all = call_under(NULL);
    assert_ok(report_process(&all, "svc-0", &err));
    assert_ok(report_process(&all, "svc-1", &err));
    assert_ok(report_process(&all, "svc-2", &err));
    assert_ok(create_task(&all, "svc-1", &task, &err));
    g_task_id = hearth_arena_str(&g_memory, task.task.task_id);

    return status;
}

static int stop_objects(void **state)
{
    hearth_arena_release(&g_memory);
    return stop_views(state);
}

/* ---- services ---- */

static void assert_services(const struct hearth_view *view, const char *want)
{
    struct hearth_reported_service *services;
    struct hearth_call call = call_under(view);
    struct hearth_buf names;
    size_t n;

    hearth_buf_init(&names, 0);
    assert_ok(hearth_agents_services(&call, 0, &services, &n, &err));
    for (size_t i = 0; i < n; i++) {
        hearth_buf_printf(&names, HEARTH_STR_FMT " ", HEARTH_STR_ARG(services[i].name));
    }
    hearth_buf_append(&names, "", 1);
    assert_string_equal(names.p, want);
    hearth_buf_release(&names);
}

static void services_are_listed_if_all_their_series_are_visible(void **state)
{
    (void)state;
    assert_services(NULL, "svc-0 svc-1 svc-2 ");
    assert_services(&g_of_team, "svc-2 ");
    assert_services(&g_of_name, "svc-0 svc-1 ");
}

static void agents_report_for_services_that_their_credential_sees(void **state)
{
    (void)state;
    struct hearth_call team = call_under(&g_of_team), name = call_under(&g_of_name);
    struct hearth_command *commands;
    struct hearth_err err = HEARTH_ERR_INIT;
    size_t n;

    assert_int_equal(report_process(&team, "svc-1", &err), HEARTH_PERMISSION_DENIED);
    assert_non_null(strstr(err.msg, "narrowed to {team=\"team-1\"}"));
    assert_int_equal(report_process(&team, "svc-0", &err), HEARTH_PERMISSION_DENIED);
    assert_int_equal(report_process(&team, "svc-2", &err), HEARTH_OK);
    assert_int_equal(report_process(&name, "svc-0", &err), HEARTH_OK);
    assert_ok(hearth_tasks_ask_agent(&team, HEARTH_STR("svc-1"), 0, &commands, &n, &err));
    assert_int_equal(n, 0);
    assert_int_equal(hearth_tasks_ask_agent(&name, HEARTH_STR("svc-1"), 0, &commands, &n, &err),
                     HEARTH_OK);
    assert_int_equal(n, 1);
}

static void an_id_of_an_agent_does_not_reveal_its_hidden_services(void **state)
{
    (void)state;
    struct hearth_call all = call_under(NULL), team = call_under(&g_of_team);
    struct hearth_command *commands;
    struct hearth_err err = HEARTH_ERR_INIT;
    size_t n;

    assert_ok(report_process_of(&all, "svc-1", "both", &err));
    assert_ok(report_process_of(&all, "svc-2", "both", &err));
    assert_ok(hearth_tasks_ask_agent(&all, HEARTH_STR("both"), 0, &commands, &n, &err));
    assert_int_equal(hearth_tasks_ask_agent(&team, HEARTH_STR("both"), 0, &commands, &n, &err),
                     HEARTH_PERMISSION_DENIED);
    assert_non_null(strstr(err.msg, "does not see all services of agent \"both\""));
    assert_null(strstr(err.msg, "svc-1"));
}

/* ---- tasks and policies ---- */

static void tasks_of_hidden_services_do_not_exist(void **state)
{
    (void)state;
    struct hearth_call team = call_under(&g_of_team), name = call_under(&g_of_name);
    const struct hearth_task_filter filter = {.limit = 10};
    struct hearth_task_view task, *tasks;
    struct hearth_target_view *targets;
    struct hearth_task_log *log;
    struct hearth_task_upload *uploads;
    struct hearth_err err = HEARTH_ERR_INIT, unknown = HEARTH_ERR_INIT;
    struct hearth_str note;
    size_t n, n_log;

    assert_ok(hearth_tasks_list(&team, &filter, false, &tasks, &n, &err));
    assert_int_equal(n, 0);
    assert_ok(hearth_tasks_list(&name, &filter, false, &tasks, &n, &err));
    assert_int_equal(n, 1);

    assert_int_equal(hearth_tasks_get(&team, g_task_id, &task, &targets, &n, &log, &n_log, &err),
                     HEARTH_NOT_FOUND);
    assert_int_equal(
        hearth_tasks_get(&team, HEARTH_STR("nothing"), &task, &targets, &n, &log, &n_log, &unknown),
        HEARTH_NOT_FOUND);
    assert_string_equal(unknown.msg, "no task \"nothing\"");
    assert_int_equal(strncmp(err.msg, "no task \"", 9), 0);
    assert_int_equal(hearth_tasks_cancel(&team, g_task_id, &task, &note, &err), HEARTH_NOT_FOUND);
    assert_ok(hearth_tasks_get(&name, g_task_id, &task, &targets, &n, &log, &n_log, &err));
    assert_ok(hearth_task_uploads(&team, g_task_id, &uploads, &n, &err));
    assert_int_equal(n, 0);

    assert_int_equal(create_task(&team, "svc-1", &task, &err), HEARTH_PERMISSION_DENIED);
    assert_ok(create_task(&team, "svc-2", &task, &err));
}

static void policies_follow_their_service(void **state)
{
    (void)state;
    struct hearth_call all = call_under(NULL), team = call_under(&g_of_team);
    struct hearth_policy_change change = {
        .policy = {.service = HEARTH_STR("svc-1"), .modified_by = HEARTH_STR("test")},
        .expected_version = -1};
    struct hearth_policy stored, *versions;
    struct hearth_policy_state found, *states;
    struct hearth_str *warnings;
    struct hearth_err err = HEARTH_ERR_INIT;
    size_t n;

    assert_int_equal(hearth_policies_set(&team, &change, &stored, &warnings, &n, &err),
                     HEARTH_PERMISSION_DENIED);
    assert_ok(hearth_policies_set(&all, &change, &stored, &warnings, &n, &err));
    assert_int_equal(hearth_policies_get(&team, HEARTH_STR("svc-1"), &found, &err),
                     HEARTH_NOT_FOUND);
    assert_string_equal(err.msg, "service \"svc-1\" has no policy");
    assert_ok(hearth_policies_list(&team, &states, &n, &err));
    assert_int_equal(n, 0);
    assert_ok(hearth_policies_history(&team, HEARTH_STR("svc-1"), &versions, &n, &err));
    assert_int_equal(n, 0);
    assert_int_equal(hearth_policies_delete(&team, HEARTH_STR("svc-1"), HEARTH_STR("test"), &err),
                     HEARTH_PERMISSION_DENIED);
    assert_ok(hearth_policies_list(&all, &states, &n, &err));
    assert_int_equal(n, 1);
}

/* ---- files ---- */

static enum hearth_status create_upload(const struct hearth_call *call, const char *service,
                                        struct hearth_str *ret_id, struct hearth_err *err)
{
    static struct hearth_property label;
    label = (struct hearth_property){HEARTH_STR("service_name"), hearth_str_c(service)};
    struct hearth_profile_upload upload = {
        .file_name = HEARTH_STR("cpu.pb.gz"), .labels = &label, .n_labels = 1, .n_bytes = 100};
    enum hearth_status status = hearth_upload_create(call, &upload, err);
    *ret_id = upload.upload_id;
    return status;
}

static void files_are_accepted_from_credentials_that_name_the_service(void **state)
{
    (void)state;
    struct hearth_call all = call_under(NULL), team = call_under(&g_of_team);
    struct hearth_call name = call_under(&g_of_name);
    struct hearth_upload_details details;
    struct hearth_profile_upload *uploads;
    struct hearth_str id;
    struct hearth_err err = HEARTH_ERR_INIT;
    size_t n;

    assert_int_equal(create_upload(&team, "svc-1", &id, &err), HEARTH_PERMISSION_DENIED);
    assert_int_equal(create_upload(&team, "svc-2", &id, &err), HEARTH_PERMISSION_DENIED);
    assert_non_null(strstr(err.msg, "need one that names the service alone"));
    assert_ok(create_upload(&name, "svc-1", &id, &err));
    assert_ok(hearth_upload_get(&name, id, &details, &err));
    assert_int_equal(hearth_upload_get(&team, id, &details, &err), HEARTH_NOT_FOUND);
    assert_int_equal(hearth_upload_delete(&team, id, &err), HEARTH_NOT_FOUND);
    assert_ok(hearth_upload_list(&team, &uploads, &n, &err));
    assert_int_equal(n, 0);
    assert_ok(hearth_upload_list(&all, &uploads, &n, &err));
    assert_int_equal(n, 1);
}

/* ---- spans ---- */

static void spans_are_accepted_for_services_that_the_sender_sees_completely(void **state)
{
    (void)state;
    struct hearth_call team = call_under(&g_of_team), name = call_under(&g_of_name);
    struct hearth_export_resource resource = {.service = HEARTH_STR("svc-1")};
    struct hearth_segment segment = {.trace_id = HEARTH_STR("t"),
                                     .segment_id = HEARTH_STR("s"),
                                     .service = HEARTH_STR("svc-1"),
                                     .instance = HEARTH_STR("host")};
    struct hearth_span span = {.start_ns = hearth_clock_wall_ns(), .parent_id = -1};
    struct hearth_traces_waiter waiter = {0};
    struct hearth_export_outcome outcome;
    struct hearth_err err = HEARTH_ERR_INIT;

    assert_int_equal(hearth_traces_take_export(&team, 1, &resource, 1, &waiter, &outcome, &err),
                     HEARTH_PERMISSION_DENIED);
    assert_ok(hearth_traces_take_export(&name, 1, &resource, 1, &waiter, &outcome, &err));
    segment.spans = &span;
    segment.n_spans = 1;
    assert_int_equal(
        hearth_traces_take_segments(&team, HEARTH_KEEP_NONE, &segment, 1, &waiter, &err),
        HEARTH_PERMISSION_DENIED);
    assert_ok(hearth_traces_take_segments(&name, HEARTH_KEEP_NONE, &segment, 1, &waiter, &err));
}

/* ---- objects of the tenant ---- */

static void objects_without_a_service_are_not_visible(void **state)
{
    (void)state;
    struct hearth_call all = call_under(NULL), name = call_under(&g_of_name);
    struct hearth_client_setting setting = {.name = HEARTH_STR("a"), .value = HEARTH_STR("b")};
    struct hearth_client_setting *settings;
    struct hearth_rule rule = {.id = HEARTH_STR("rule"), .metric_name = HEARTH_STR("m")}, *rules;
    struct hearth_err err = HEARTH_ERR_INIT;
    size_t n;

    assert_ok(hearth_client_settings_set(&all, &setting, &err));
    assert_int_equal(hearth_client_settings_set(&name, &setting, &err), HEARTH_PERMISSION_DENIED);
    assert_non_null(strstr(err.msg, "{team=\"none\"} or {service_name=~\"svc-[01]\"}"));
    assert_ok(hearth_client_settings_get(&name, &settings, &n, &err));
    assert_int_equal(n, 0);
    assert_ok(hearth_client_settings_get(&all, &settings, &n, &err));
    assert_int_equal(n, 1);
    assert_int_equal(hearth_rules_put(&name, &rule, &err), HEARTH_PERMISSION_DENIED);
    assert_ok(hearth_rules_list(&name, &rules, &n, &err));
    assert_int_equal(n, 0);
}

/* ---- pushes ---- */

static struct hearth_ingest *open_ingest(void)
{
    static const char *const service_labels[] = {"service_name", NULL};
    const struct hearth_ingest_options options = {.limits = g_limits,
                                                  .service_labels = service_labels};
    struct hearth_ingest *ingest;
    assert_ok(hearth_ingest_new(&options, g_fix.store, &ingest, &err));
    return ingest;
}

/* Pushes a profile of svc-9 with a team; empty: none. sample_team: a label of its first sample. */
static enum hearth_status push_team(struct hearth_ingest *ingest, const struct hearth_view *view,
                                    const char *team, const char *sample_team,
                                    struct hearth_push_outcome *ret, struct hearth_err *err)
{
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_profile profile = synth_profile(&g_world, 4, 1, &arena, NULL);
    struct hearth_value_type type = {synth_string(&profile, "cpu"),
                                     synth_string(&profile, "nanoseconds")};
    profile.types[0] = profile.period_type = type;
    struct hearth_sample_label label = {.key = synth_string(&profile, "team"),
                                        .str = synth_string(&profile, sample_team)};
    if (sample_team[0] != '\0') {
        profile.sample_labels = &label;
        profile.n_sample_labels = 1;
        for (uint32_t s = 1; s <= profile.n_samples; s++) {
            profile.label_first[s] = 1;
        }
    }

    struct hearth_label labels[] = {{HEARTH_STR("__name__"), HEARTH_STR("process_cpu")},
                                    {HEARTH_STR("service_name"), HEARTH_STR("svc-9")},
                                    {HEARTH_STR("team"), hearth_str_c(team)}};
    struct hearth_push_sample sample = {.decoded = &profile};
    struct hearth_push_series series = {
        .labels = labels, .n_labels = team[0] == '\0' ? 2 : 3, .samples = &sample, .n_samples = 1};
    const struct hearth_push_request push = {
        .tenant = TENANT, .view = view, .series = &series, .n_series = 1};
    *ret = (struct hearth_push_outcome){0};
    enum hearth_status status = hearth_push_wait_outcome(ingest, &push, NULL, ret, err);
    hearth_arena_release(&arena);

    return status;
}

static void a_push_of_a_series_outside_of_the_view_is_refused_and_counted(void **state)
{
    (void)state;
    static const struct hearth_str typed[] = {HEARTH_STR("{__type__=\"cpu\", team!=\"team-2\"}")};
    const struct hearth_view of_type = {TENANT, typed, 1};
    struct hearth_ingest *ingest = open_ingest();
    struct hearth_push_outcome outcome;
    struct hearth_err err = HEARTH_ERR_INIT;
    char sql[] = "SELECT count(*) FROM hearth_data.series s JOIN hearth_data.service v"
                 " USING (service_id) WHERE v.name = 'svc-9'";

    assert_int_equal(push_team(ingest, &g_of_team, "team-2", "", &outcome, &err),
                     HEARTH_PERMISSION_DENIED);
    assert_non_null(strstr(err.msg, "narrowed to {team=\"team-1\"}"));
    assert_non_null(strstr(err.msg, "{team=\"team-2\"}"));
    assert_int_equal(outcome.n_failed, 1);
    assert_int_equal(outcome.discards[HEARTH_DISCARD_HIDDEN_SERIES], 1);
    assert_int_equal(push_team(ingest, &g_of_team, "", "", &outcome, &err),
                     HEARTH_PERMISSION_DENIED);
    assert_int_equal(push_team(ingest, &g_of_name, "team-1", "", &outcome, &err),
                     HEARTH_PERMISSION_DENIED);

    /* One sample's label makes a second series, which the view does not match. */
    assert_int_equal(push_team(ingest, &of_type, "", "team-2", &outcome, &err),
                     HEARTH_PERMISSION_DENIED);
    assert_int_equal(outcome.discards[HEARTH_DISCARD_HIDDEN_SERIES], 1);
    assert_int_equal(pg_cluster_int(g_fix.url, sql), 0);

    assert_ok(push_team(ingest, &g_of_team, "team-1", "", &outcome, &err));
    assert_ok(push_team(ingest, &of_type, "", "", &outcome, &err));
    assert_ok(push_team(ingest, NULL, "team-2", "", &outcome, &err));
    assert_int_equal(pg_cluster_int(g_fix.url, sql), 3);
    hearth_ingest_free(ingest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(services_are_listed_if_all_their_series_are_visible),
        cmocka_unit_test(agents_report_for_services_that_their_credential_sees),
        cmocka_unit_test(an_id_of_an_agent_does_not_reveal_its_hidden_services),
        cmocka_unit_test(tasks_of_hidden_services_do_not_exist),
        cmocka_unit_test(policies_follow_their_service),
        cmocka_unit_test(files_are_accepted_from_credentials_that_name_the_service),
        cmocka_unit_test(spans_are_accepted_for_services_that_the_sender_sees_completely),
        cmocka_unit_test(objects_without_a_service_are_not_visible),
        cmocka_unit_test(a_push_of_a_series_outside_of_the_view_is_refused_and_counted),
    };
    return cmocka_run_group_tests(tests, start_objects, stop_objects);
}
