/* test_agents.c -- what agents report: made, merged, counted, answered, forgotten. */
#include "hearth/model/entity_id.h"
#include "hearth/store/store_agents.h"

#include "catalog/catalog_prune.h"
#include "catalog/services.h"
#include "pg/pg.h"
#include "step_fixture.h"
#include "store_scope.h"
#include "tasks/tasks_expire.h"

#define S HEARTH_STR("shop")
#define I HEARTH_STR("pod-1")

static struct hearth_process process_named(const char *name, int64_t now_ms)
{
    return (struct hearth_process){.service = S,
                                   .instance = I,
                                   .name = hearth_str_c(name),
                                   .layer = HEARTH_STR("K8S_SERVICE"),
                                   .detect_type = HEARTH_DETECT_KUBERNETES,
                                   .agent_id = HEARTH_STR("rover-1"),
                                   .can_be_profiled = true,
                                   .last_seen_ms = now_ms};
}

static enum hearth_status report_within(struct fixture *fix,
                                        const struct hearth_instance *instances, size_t n_instances,
                                        const struct hearth_process *processes, size_t n_processes,
                                        int64_t max_instances, int64_t max_processes)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_agent_report report = {instances,   n_instances,   processes,
                                         n_processes, max_instances, max_processes};
    return hearth_store_report_agents(STORE_SCOPE(fix->store, TENANT, NULL), &report, &err);
}

static void report(struct fixture *fix, const struct hearth_process *processes, size_t n)
{
    assert_int_equal(report_within(fix, NULL, 0, processes, n, 0, 0), HEARTH_OK);
}

static size_t find(struct fixture *fix, struct hearth_str tenant,
                   const struct hearth_process_filter *filter, struct hearth_process **ret)
{
    size_t n = 0;
    assert_ok(hearth_store_processes(STORE_SCOPE(fix->store, tenant, &fix->arena), filter, ret, &n,
                                     &err));
    return n;
}

/* The one process of the tenant. */
static struct hearth_process only_process(struct fixture *fix)
{
    const struct hearth_process_filter all = {0};
    struct hearth_process *processes;
    assert_int_equal(find(fix, TENANT, &all, &processes), 1);
    return processes[0];
}

static void expect_property(const struct hearth_property *at, const char *name, const char *value)
{
    assert_string_equal(at->name.p, name);
    assert_string_equal(at->value.p, value);
}

static void a_process_is_read_back_as_it_was_reported(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    struct hearth_str labels[] = {HEARTH_STR("web"), HEARTH_STR("eu"), HEARTH_STR("web")};
    struct hearth_property properties[] = {
        {HEARTH_STR("pid"), HEARTH_STR("7")},
        {HEARTH_STR("command_line"), HEARTH_STR("a \"b\" \\ ü\n")}};
    struct hearth_process process = process_named("java", 1000);
    process.labels = labels;
    process.n_labels = 3;
    process.properties = properties;
    process.n_properties = 2;
    report(&fix, &process, 1);
    struct hearth_process got = only_process(&fix);
    struct hearth_entity_hash id;
    assert_true(hearth_process_public_id(S, I, HEARTH_STR("java"), &id));
    assert_string_equal(got.process_id.p, id.text);
    assert_string_equal(got.service.p, "shop");
    assert_string_equal(got.instance.p, "pod-1");
    assert_string_equal(got.name.p, "java");
    assert_string_equal(got.layer.p, "K8S_SERVICE");
    assert_string_equal(got.agent_id.p, "rover-1");
    assert_int_equal(got.detect_type, HEARTH_DETECT_KUBERNETES);
    assert_int_equal(got.n_labels, 2);
    assert_string_equal(got.labels[0].p, "eu");
    assert_string_equal(got.labels[1].p, "web");
    assert_int_equal(got.n_properties, 2);
    expect_property(&got.properties[0], "command_line", "a \"b\" \\ ü\n");
    expect_property(&got.properties[1], "pid", "7");
    assert_true(got.can_be_profiled);
    assert_int_equal(got.first_seen_ms, 1000);
    assert_int_equal(got.last_seen_ms, 1000);
    close_fixture(&fix);
}

static void fields_absent_from_a_later_report_stay(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    struct hearth_str labels[] = {HEARTH_STR("web")}, other[] = {HEARTH_STR("db")};
    struct hearth_property first[] = {{HEARTH_STR("a"), HEARTH_STR("1")},
                                      {HEARTH_STR("b"), HEARTH_STR("1")}};
    struct hearth_property second[] = {{HEARTH_STR("b"), HEARTH_STR("2")},
                                       {HEARTH_STR("c"), HEARTH_STR("2")}};
    struct hearth_process process = process_named("java", 1000);
    process.labels = labels;
    process.n_labels = 1;
    process.properties = first;
    process.n_properties = 2;
    report(&fix, &process, 1);
    /* A keep-alive: no labels, no agent, no type; but it says that it cannot be profiled any more. */
    struct hearth_process ping = {.service = S,
                                  .instance = I,
                                  .name = HEARTH_STR("java"),
                                  .properties = second,
                                  .n_properties = 2,
                                  .last_seen_ms = 2000};
    report(&fix, &ping, 1);
    struct hearth_process got = only_process(&fix);
    assert_int_equal(got.n_properties, 3);
    expect_property(&got.properties[0], "a", "1");
    expect_property(&got.properties[1], "b", "2");
    expect_property(&got.properties[2], "c", "2");
    assert_string_equal(got.labels[0].p, "web");
    assert_string_equal(got.agent_id.p, "rover-1");
    assert_int_equal(got.detect_type, HEARTH_DETECT_KUBERNETES);
    assert_false(got.can_be_profiled);
    assert_int_equal(got.first_seen_ms, 1000);
    assert_int_equal(got.last_seen_ms, 2000);
    process.labels = other;
    process.agent_id = HEARTH_STR("rover-2");
    process.detect_type = HEARTH_DETECT_HOST;
    process.last_seen_ms = 1500; /* of a server whose clock is behind */
    report(&fix, &process, 1);
    got = only_process(&fix);
    assert_int_equal(got.n_labels, 1);
    assert_string_equal(got.labels[0].p, "db");
    assert_string_equal(got.agent_id.p, "rover-2");
    assert_int_equal(got.detect_type, HEARTH_DETECT_HOST);
    assert_true(got.can_be_profiled);
    assert_int_equal(got.last_seen_ms, 2000);
    close_fixture(&fix);
}

static void properties_of_a_process_are_limited_to_256_kib(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    static char value[60000];
    memset(value, 'x', sizeof value);
    for (int i = 0; i < 6; i++) {
        char name[8];
        (void)snprintf(name, sizeof name, "p%d", i);
        struct hearth_property property = {hearth_str_c(name), hearth_str_n(value, sizeof value)};
        struct hearth_process process = process_named("java", 1000 + i);
        process.properties = &property;
        process.n_properties = 1;
        report(&fix, &process, 1);
        /* Four of them fit into 256 KiB. */
        assert_int_equal(only_process(&fix).n_properties, i < 4 ? i + 1 : i - 3);
    }
    close_fixture(&fix);
}

static void a_repeated_report_is_written_only_if_it_changes_something(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    struct hearth_process process = process_named("java", 100000);
    report(&fix, &process, 1);
    static const char version[] = "SELECT xmin::text::int8 FROM hearth_data.process";
    long long before = pg_cluster_int(fix.url, version);
    process.last_seen_ms = 109000;
    report(&fix, &process, 1);
    assert_int_equal(pg_cluster_int(fix.url, version), before);
    process.last_seen_ms = 111000;
    report(&fix, &process, 1);
    assert_int_not_equal(pg_cluster_int(fix.url, version), before);
    assert_int_equal(only_process(&fix).last_seen_ms, 111000);
    process.can_be_profiled = false; /* news, however soon */
    process.last_seen_ms = 111001;
    report(&fix, &process, 1);
    assert_false(only_process(&fix).can_be_profiled);
    /* And the instance, which the process names, lives as long as it. */
    assert_int_equal(pg_cluster_int(fix.url, "SELECT last_seen FROM hearth_data.instance"), 111001);
    close_fixture(&fix);
}

static void an_instance_has_the_layer_that_it_reports(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    struct hearth_process process = process_named("java", 1000);
    report(&fix, &process, 1);
    struct hearth_property properties[] = {{HEARTH_STR("ipv4"), HEARTH_STR("10.0.0.1")}};
    struct hearth_instance instance = {.service = S,
                                       .name = I,
                                       .layer = HEARTH_STR("GENERAL"),
                                       .properties = properties,
                                       .n_properties = 1,
                                       .last_seen_ms = 2000};
    assert_int_equal(report_within(&fix, &instance, 1, NULL, 0, 0, 0), HEARTH_OK);
    report(&fix, &process, 1);
    struct hearth_instance *got;
    size_t n;
    assert_ok(
        hearth_store_instances(STORE_SCOPE(fix.store, TENANT, &fix.arena), S, 0, &got, &n, &err));
    assert_int_equal(n, 1);
    assert_string_equal(got[0].layer.p, "GENERAL");
    assert_int_equal(got[0].n_properties, 1);
    expect_property(&got[0].properties[0], "ipv4", "10.0.0.1");
    assert_int_equal(got[0].first_seen_ms, 1000);
    assert_int_equal(got[0].last_seen_ms, 2000);
    assert_ok(hearth_store_instances(STORE_SCOPE(fix.store, TENANT, &fix.arena), S, 2001, &got, &n,
                                     &err));
    assert_int_equal(n, 0);
    assert_ok(hearth_store_instances(STORE_SCOPE(fix.store, TENANT, &fix.arena),
                                     HEARTH_STR("other"), 0, &got, &n, &err));
    assert_int_equal(n, 0);
    close_fixture(&fix);
}

static void filters_restrict_the_fields_that_they_name(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    struct hearth_str labels[] = {HEARTH_STR("a"), HEARTH_STR("b")};
    struct hearth_process processes[] = {process_named("one", 1000), process_named("two", 1000),
                                         process_named("three", 1000)};
    processes[0].labels = labels;
    processes[0].n_labels = 2;
    processes[1].labels = labels;
    processes[1].n_labels = 1;
    processes[1].instance = HEARTH_STR("pod-2");
    processes[1].agent_id = HEARTH_STR("rover-2");
    processes[1].can_be_profiled = false;
    processes[2].detect_type = HEARTH_DETECT_VIRTUAL;
    processes[2].agent_id = HEARTH_STR("");
    processes[2].service = HEARTH_STR("wms");
    report(&fix, processes, 3);
    struct hearth_entity_hash id;
    assert_true(hearth_process_public_id(HEARTH_STR("wms"), I, HEARTH_STR("three"), &id));
    const struct {
        struct hearth_process_filter filter;
        const char *names;
    } cases[] = {
        {{0}, "one two three "},
        {{.service = S}, "one two "},
        {{.service = S, .instance = HEARTH_STR("pod-2")}, "two "},
        {{.process_id = hearth_str_c(id.text)}, "three "},
        {{.agent_id = HEARTH_STR("rover-1")}, "one "},
        {{.labels = labels, .n_labels = 1}, "one two "},
        {{.labels = labels, .n_labels = 2}, "one "},
        {{.without_virtual = true}, "one two "},
        {{.only_profilable = true, .without_virtual = true}, "one "},
        {{.seen_after_ms = 1000}, "one two three "},
        {{.seen_after_ms = 1001}, ""},
        {{.seen_before_ms = 1000}, "one two three "},
        {{.seen_before_ms = 999}, ""},
    };
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        struct hearth_process *got;
        size_t n = find(&fix, TENANT, &cases[i].filter, &got);
        char names[64] = "";
        for (size_t k = 0; k < n; k++) {
            size_t at = strlen(names);
            (void)snprintf(names + at, sizeof names - at, "%s ", got[k].name.p);
        }
        assert_string_equal(names, cases[i].names);
        assert_int_equal(find(&fix, HEARTH_STR("other"), &cases[i].filter, &got), 0);
    }
    close_fixture(&fix);
}

static void a_service_has_the_labels_of_its_real_processes(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    struct hearth_str labels[] = {HEARTH_STR("web"), HEARTH_STR("eu"), HEARTH_STR("never")};
    struct hearth_process processes[] = {process_named("one", 1000), process_named("two", 3000),
                                         process_named("three", 1000)};
    processes[0].labels = labels;
    processes[0].n_labels = 2;
    processes[1].labels = labels;
    processes[1].n_labels = 1;
    processes[1].instance = HEARTH_STR("pod-2");
    processes[2].labels = labels + 2;
    processes[2].n_labels = 1;
    processes[2].detect_type = HEARTH_DETECT_VIRTUAL;
    report(&fix, processes, 1);
    report(&fix, processes + 1, 2);
    push(fix.store, 1, 1, T0); /* a service with profiles only is none of agents */
    struct hearth_reported_service *got;
    size_t n;
    assert_ok(hearth_store_reported_services(STORE_SCOPE(fix.store, TENANT, &fix.arena),
                                             HEARTH_STR(""), 0, &got, &n, &err));
    assert_int_equal(n, 1);
    assert_string_equal(got[0].name.p, "shop");
    assert_string_equal(got[0].layer.p, "K8S_SERVICE");
    assert_int_equal(got[0].n_instances, 2);
    assert_int_equal(got[0].n_processes, 2);
    assert_int_equal(got[0].n_labels, 2);
    assert_string_equal(got[0].labels[0].p, "eu");
    assert_string_equal(got[0].labels[1].p, "web");
    assert_int_equal(got[0].first_seen_ms, 1000);
    assert_int_equal(got[0].last_seen_ms, 3000);
    int32_t service_id = 0;
    assert_ok(
        hearth_store_service_id(STORE_SCOPE(fix.store, TENANT, NULL), S, false, &service_id, &err));
    assert_int_equal(service_id, got[0].service_id);
    close_fixture(&fix);
}

static void a_service_of_agents_is_the_service_of_profiles(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    int32_t made = 0, found = 0;
    struct hearth_err err = HEARTH_ERR_INIT;
    assert_int_equal(hearth_store_service_id(STORE_SCOPE(fix.store, TENANT, NULL),
                                             HEARTH_STR("svc-1"), false, &found, &err),
                     HEARTH_NOT_FOUND);
    assert_ok(hearth_store_service_id(STORE_SCOPE(fix.store, TENANT, NULL), HEARTH_STR("svc-1"),
                                      true, &made, &err));
    assert_ok(hearth_store_service_id(STORE_SCOPE(fix.store, TENANT, NULL), HEARTH_STR("svc-1"),
                                      true, &found, &err));
    assert_int_equal(found, made);
    assert_int_equal(resolve_one(fix.store, TENANT, 1, 1, T0).service_id, made);
    int32_t other = 0;
    assert_ok(hearth_store_service_id(STORE_SCOPE(fix.store, HEARTH_STR("other"), NULL),
                                      HEARTH_STR("svc-1"), true, &other, &err));
    assert_int_not_equal(other, made);
    /* And the other way round. */
    int32_t profiled = resolve_one(fix.store, TENANT, 2, 1, T0).service_id;
    assert_ok(hearth_store_service_id(STORE_SCOPE(fix.store, TENANT, NULL), HEARTH_STR("svc-2"),
                                      true, &found, &err));
    assert_int_equal(found, profiled);
    assert_int_equal(count(&fix, "service"), 3);
    close_fixture(&fix);
}

static void two_tenants_may_have_the_same_process(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    struct hearth_process process = process_named("java", 1000);
    report(&fix, &process, 1);
    process.agent_id = HEARTH_STR("rover-9");
    struct hearth_agent_report one = {.processes = &process, .n_processes = 1};
    assert_ok(
        hearth_store_report_agents(STORE_SCOPE(fix.store, HEARTH_STR("other"), NULL), &one, &err));
    assert_string_equal(only_process(&fix).agent_id.p, "rover-1");
    assert_int_equal(count(&fix, "process"), 2);
    close_fixture(&fix);
}

static void beyond_a_limit_only_known_processes_stay_alive(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    struct hearth_process processes[] = {process_named("one", 1000), process_named("two", 1000),
                                         process_named("three", 1000)};
    assert_int_equal(report_within(&fix, NULL, 0, processes, 2, 1, 2), HEARTH_OK);
    for (int i = 0; i < 3; i++) {
        processes[i].last_seen_ms = 50000;
    }
    assert_int_equal(report_within(&fix, NULL, 0, processes, 3, 1, 2), HEARTH_RESOURCE_EXHAUSTED);
    assert_int_equal(count(&fix, "process"), 2);
    assert_int_equal(pg_cluster_int(fix.url, "SELECT min(last_seen) FROM hearth_data.process"),
                     50000);
    struct hearth_instance instance = {.service = S,
                                       .name = HEARTH_STR("pod-2"),
                                       .layer = HEARTH_STR("GENERAL"),
                                       .last_seen_ms = 1};
    assert_int_equal(report_within(&fix, &instance, 1, NULL, 0, 1, 2), HEARTH_RESOURCE_EXHAUSTED);
    processes[2].instance = HEARTH_STR("pod-2"); /* without its instance it has no place either */
    assert_int_equal(report_within(&fix, NULL, 0, processes + 2, 1, 1, 0),
                     HEARTH_RESOURCE_EXHAUSTED);
    assert_int_equal(count(&fix, "instance"), 1);
    assert_int_equal(count(&fix, "process"), 2);
    assert_int_equal(report_within(&fix, &instance, 1, NULL, 0, 2, 2), HEARTH_OK);
    close_fixture(&fix);
}

static void names_that_cannot_be_stored_are_refused_whole(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    char long_name[HEARTH_AGENT_NAME_BYTES + 2];
    memset(long_name, 'a', sizeof long_name);
    long_name[sizeof long_name - 1] = '\0';
    const struct hearth_str bad[] = {HEARTH_STR(""), HEARTH_STR(" "), HEARTH_STR("a\0b"),
                                     HEARTH_STR("\xff"), hearth_str_c(long_name)};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(bad); i++) {
        for (int field = 0; field < 4; field++) {
            struct hearth_process processes[] = {process_named("one", 1), process_named("two", 1)};
            struct hearth_str label = HEARTH_STR("l");
            processes[1].labels = &label;
            processes[1].n_labels = 1;
            struct hearth_str *const at[] = {&processes[1].service, &processes[1].instance,
                                             &processes[1].name, &label};
            *at[field] = bad[i];
            assert_int_equal(report_within(&fix, NULL, 0, processes, 2, 0, 0),
                             HEARTH_INVALID_ARGUMENT);
        }
        struct hearth_err err = HEARTH_ERR_INIT;
        int32_t service_id;
        if (i != 1) {
            assert_int_equal(hearth_store_service_id(STORE_SCOPE(fix.store, TENANT, NULL), bad[i],
                                                     true, &service_id, &err),
                             HEARTH_INVALID_ARGUMENT);
        }
    }
    struct hearth_property property = {HEARTH_STR("p"), HEARTH_STR("\xff")};
    struct hearth_process process = process_named("one", 1);
    process.properties = &property;
    process.n_properties = 1;
    assert_int_equal(report_within(&fix, NULL, 0, &process, 1, 0, 0), HEARTH_INVALID_ARGUMENT);
    assert_int_equal(count(&fix, "service"), 0);
    close_fixture(&fix);
}

/* ---- many at once ---- */

#define RACERS    6
#define PROCESSES 200

struct racer {
    struct hearth_store *store;
    int number;
    enum hearth_status status;
    char message[256];
};

static void *race(void *arg)
{
    struct racer *racer = arg;
    struct hearth_process *processes = hearth_mem_calloc(PROCESSES, sizeof *processes);
    char(*names)[2][32] = hearth_mem_calloc(PROCESSES, sizeof *names);
    for (int round = 0; round < 8 && racer->status == HEARTH_OK; round++) {
        for (int i = 0; i < PROCESSES; i++) {
            /* The same entities, half of the racers in the opposite order; the agent id changes each time. */
            int at = racer->number % 2 == 0 ? i : PROCESSES - 1 - i;
            (void)snprintf(names[i][0], 32, "p%d", at);
            (void)snprintf(names[i][1], 32, "svc-%d", at % 7);
            processes[i] = process_named(names[i][0], 1000 + 20000 * round);
            processes[i].service = hearth_str_c(names[i][1]);
            processes[i].agent_id = racer->number % 3 == 0 ? HEARTH_STR("a") : HEARTH_STR("b");
        }
        struct hearth_err err = HEARTH_ERR_INIT;
        struct hearth_agent_report report = {.processes = processes, .n_processes = PROCESSES};
        racer->status =
            hearth_store_report_agents(STORE_SCOPE(racer->store, TENANT, NULL), &report, &err);
        (void)snprintf(racer->message, sizeof racer->message, "%s", err.msg);
    }
    hearth_mem_free(processes);
    hearth_mem_free(names);
    return NULL;
}

static void two_servers_report_equal_processes_without_a_deadlock(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    struct hearth_store *second = open_without_builder(fix.url);
    struct racer racers[RACERS];
    pthread_t threads[RACERS];
    for (int i = 0; i < RACERS; i++) {
        racers[i] = (struct racer){.store = i < RACERS / 2 ? fix.store : second, .number = i};
        assert_int_equal(pthread_create(&threads[i], NULL, race, &racers[i]), 0);
    }
    for (int i = 0; i < RACERS; i++) {
        (void)pthread_join(threads[i], NULL);
        assert_string_equal(racers[i].message, "");
        assert_int_equal(racers[i].status, HEARTH_OK);
    }
    assert_int_equal(count(&fix, "process"), PROCESSES);
    assert_int_equal(count(&fix, "instance"), 7);
    assert_int_equal(count(&fix, "service"), 7);
    assert_int_equal(pg_cluster_int(fix.url,
                                    "SELECT deadlocks FROM pg_stat_database WHERE datname ="
                                    " current_database()"),
                     0);
    /* Identities were only used for what is new. */
    assert_true(pg_cluster_int(fix.url, "SELECT max(instance_id) FROM hearth_data.instance") < 14);
    close_store(second);
    close_fixture(&fix);
}

/* ---- forgetting ---- */

static void agents_that_stop_reporting_are_forgotten(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    int64_t now_ms = hearth_clock_wall_ns() / HEARTH_NS_PER_MS, old_ms = now_ms - 100000;
    struct hearth_process processes[] = {process_named("gone", old_ms),
                                         process_named("here", now_ms)};
    struct hearth_process lone = process_named("gone too", old_ms);
    struct hearth_process profiled = process_named("gone three", old_ms);
    lone.service = HEARTH_STR("only-agents");
    profiled.service = HEARTH_STR("svc-1");
    report(&fix, processes, 1);
    report(&fix, processes + 1, 1);
    report(&fix, &lone, 1);
    report(&fix, &profiled, 1);
    push(fix.store, 1, 1, T0);
    assert_ok(hearth_agents_expire(&fix.builder.pg, 200 * HEARTH_NS_PER_SEC, &err));
    assert_int_equal(count(&fix, "process"), 4);
    assert_ok(hearth_agents_expire(&fix.builder.pg, 0, &err)); /* for ever */
    assert_int_equal(count(&fix, "process"), 4);
    assert_ok(hearth_agents_expire(&fix.builder.pg, 50 * HEARTH_NS_PER_SEC, &err));
    assert_string_equal(only_process(&fix).name.p, "here");
    assert_int_equal(count(&fix, "instance"), 1);
    /* The one with profiles stays a service. */
    assert_int_equal(count(&fix, "service WHERE name = 'only-agents'"), 0);
    assert_int_equal(count(&fix, "service WHERE name IN ('shop', 'svc-1')"), 2);
    report(&fix, &lone, 1); /* and comes back under another id, on a server that knew the old one */
    assert_int_equal(count(&fix, "service WHERE name = 'only-agents'"), 1);
    push(fix.store, 1, 1, T0 + 1);
    close_fixture(&fix);
}

/* In SQL: what has just ended is kept by the housekeeper, who looks now and then. */
#define NOW_MS "(extract(epoch FROM now()) * 1000)::int8"

/* A task of the service with these SQL values. */
static void insert_task(struct fixture *fix, const char *task_id, const char *instance,
                        const char *process_id, const char *instances)
{
    char sql[1024];
    (void)snprintf(
        sql, sizeof sql,
        "INSERT INTO hearth_data.task (task_id, service_id, kind, origin, instance,"
        " process_id, labels, instances, endpoint, events, exec_args, start_at, duration,"
        " created_at, updated_at, min_duration, dump_period, max_samples)"
        " SELECT '%s', service_id, 1, 1, %s, %s, '{}', %s, '', '{}', '', " NOW_MS
        ", 1, 1, 1, 0, 0, 0 FROM hearth_data.service",
        task_id, instance, process_id, instances);
    pg_cluster_run(fix->url, sql);
}

static void objects_that_a_task_names_are_kept(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    struct hearth_process processes[4] = {process_named("a", 1000), process_named("b", 1000),
                                          process_named("c", 1000), process_named("d", 1000)};
    processes[1].instance = HEARTH_STR("pod-2");
    processes[2].instance = HEARTH_STR("pod-3");
    report(&fix, processes, 4);
    insert_task(&fix, "t1", "NULL", "(SELECT process_id FROM hearth_data.process WHERE name = 'a')",
                "'{}'");
    insert_task(&fix, "t2", "'pod-2'", "NULL", "'{}'");
    insert_task(&fix, "t3", "NULL", "NULL", "'{pod-3}'");
    assert_ok(hearth_agents_expire(&fix.builder.pg, 50 * HEARTH_NS_PER_SEC, &err));
    assert_int_equal(count(&fix, "instance"), 3);
    assert_int_equal(count(&fix, "process WHERE name IN ('a', 'b')"), 2);
    assert_int_equal(count(&fix, "process WHERE name = 'd'"), 0);
    pg_cluster_run(fix.url, "DELETE FROM hearth_data.task WHERE task_id <> 't3'");
    assert_ok(hearth_agents_expire(&fix.builder.pg, 50 * HEARTH_NS_PER_SEC, &err));
    assert_int_equal(count(&fix, "instance"), 1);
    assert_int_equal(count(&fix, "service"), 1);
    pg_cluster_run(fix.url, "DELETE FROM hearth_data.instance");
    struct hearth_process other = process_named("e", 1000);
    other.instance = HEARTH_STR("pod-4");
    report(&fix, &other, 1);
    assert_ok(hearth_agents_expire(&fix.builder.pg, 50 * HEARTH_NS_PER_SEC, &err));
    assert_int_equal(count(&fix, "instance"), 0);
    assert_int_equal(count(&fix, "service"), 1); /* the task still has it */
    close_fixture(&fix);
}

static void a_process_with_results_stays(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    struct hearth_process processes[] = {process_named("a", 1000), process_named("b", 1000)};
    report(&fix, processes, 2);
    pg_cluster_run(
        fix.url,
        "INSERT INTO hearth_data.task_schedule (tenant_id, service_id, schedule_id, task_id,"
        " process_id, start_at, end_at) SELECT tenant_id, service_id, repeat('0', 64), 't',"
        " process_id, 1, " NOW_MS
        " FROM hearth_data.process JOIN hearth_data.service s USING (service_id)"
        " WHERE process.name = 'a'");
    assert_ok(hearth_agents_expire(&fix.builder.pg, 50 * HEARTH_NS_PER_SEC, &err));
    assert_string_equal(only_process(&fix).name.p, "a");
    pg_cluster_run(fix.url, "DELETE FROM hearth_data.task_schedule");
    assert_ok(hearth_agents_expire(&fix.builder.pg, 50 * HEARTH_NS_PER_SEC, &err));
    assert_int_equal(count(&fix, "instance"), 0);
    assert_int_equal(count(&fix, "service"), 0);
    close_fixture(&fix);
}

/* Or removing a service would fail. */
static void every_table_that_refers_to_services_prevents_their_deletion(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    static const char referring[] = "SELECT count(*) FROM pg_constraint c JOIN pg_class t ON t.oid "
                                    "= c.conrelid WHERE c.confrelid ="
                                    " 'hearth_data.service'::regclass AND c.confdeltype <> 'c'";
    char sql[2048];
    (void)snprintf(sql, sizeof sql,
                   "%s AND position('hearth_data.' || t.relname || ' x ' IN $text$%s$text$) = 0",
                   referring, HEARTH_SERVICE_IS_NEEDED);
    assert_true(pg_cluster_int(fix.url, referring) >= 3);
    assert_int_equal(pg_cluster_int(fix.url, sql), 0);
    close_fixture(&fix);
}

static void a_service_with_agents_outlives_its_profiles(void **state)
{
    (void)state;
    struct fixture fix;
    open_fixture(&fix);
    struct hearth_series_ref refs[2] = {resolve_one(fix.store, TENANT, 1, 1, T0),
                                        resolve_one(fix.store, TENANT, 2, 1, T0)};
    struct hearth_process process = process_named("java", 1000);
    process.service = HEARTH_STR("svc-1");
    report(&fix, &process, 1);
    pg_cluster_run(fix.url, "DELETE FROM hearth_data.series_hour");
    struct hearth_prune prune = {.pg = &fix.builder.pg, .arena = &fix.arena};
    const int32_t service_ids[] = {refs[0].service_id, refs[1].service_id};
    const int32_t series_ids[] = {refs[0].series_id, refs[1].series_id};
    size_t n_gone = 0;
    assert_ok(hearth_prune_version(&prune, &err));
    pg_cluster_run(fix.url, "UPDATE hearth_data.catalog_clock SET version = version + 1");
    assert_ok(hearth_pg_script(prune.pg, "BEGIN", NULL, &err));
    assert_ok(hearth_prune_lock(&prune, &err));
    assert_ok(hearth_prune_series(&prune, service_ids, series_ids, 2, &n_gone, &err));
    assert_ok(hearth_pg_script(prune.pg, "COMMIT", NULL, &err));
    assert_int_equal(n_gone, 2);
    assert_int_equal(count(&fix, "service"), 1);
    assert_int_equal(count(&fix, "service WHERE name = 'svc-1'"), 1);
    assert_int_equal(resolve_one(fix.store, TENANT, 1, 1, T0).service_id, refs[0].service_id);
    close_fixture(&fix);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_is_read_back_as_it_was_reported),
        cmocka_unit_test(fields_absent_from_a_later_report_stay),
        cmocka_unit_test(properties_of_a_process_are_limited_to_256_kib),
        cmocka_unit_test(a_repeated_report_is_written_only_if_it_changes_something),
        cmocka_unit_test(an_instance_has_the_layer_that_it_reports),
        cmocka_unit_test(filters_restrict_the_fields_that_they_name),
        cmocka_unit_test(a_service_has_the_labels_of_its_real_processes),
        cmocka_unit_test(a_service_of_agents_is_the_service_of_profiles),
        cmocka_unit_test(two_tenants_may_have_the_same_process),
        cmocka_unit_test(beyond_a_limit_only_known_processes_stay_alive),
        cmocka_unit_test(names_that_cannot_be_stored_are_refused_whole),
        cmocka_unit_test(two_servers_report_equal_processes_without_a_deadlock),
        cmocka_unit_test(agents_that_stop_reporting_are_forgotten),
        cmocka_unit_test(objects_that_a_task_names_are_kept),
        cmocka_unit_test(a_process_with_results_stays),
        cmocka_unit_test(every_table_that_refers_to_services_prevents_their_deletion),
        cmocka_unit_test(a_service_with_agents_outlives_its_profiles),
    };
    return cmocka_run_group_tests(tests, start_cluster, stop_cluster);
}
