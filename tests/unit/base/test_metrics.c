/* test_metrics.c -- cells, bounded label values, and the Prometheus text. */
#include "hearth/base/mem.h"
#include "hearth/base/metrics.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

/* Metrics live as long as the process: each test uses its own, and compares differences. */
static bool text_has(const char *line)
{
    struct hearth_buf out;

    hearth_buf_init(&out, 0);
    hearth_metrics_write(&out, HEARTH_METRICS_PROMETHEUS);
    hearth_buf_byte(&out, '\0');
    assert_false(hearth_buf_failed(&out));
    char wanted[600];
    (void)snprintf(wanted, sizeof wanted, "\n%s\n", line);
    bool found = strstr(out.p, wanted) != NULL;
    hearth_buf_release(&out);

    return found;
}

static void openmetrics_has_families_and_exemplars(void **state)
{
    (void)state;
    struct hearth_buf out;
    hearth_metric_observe_traced_ns(HEARTH_M_RPC_SECONDS, HEARTH_STR("traced"), 1500000000,
                                    HEARTH_STR("0af7651916cd43dd8448eb211c80319c"));

    hearth_buf_init(&out, 0);
    hearth_metrics_write(&out, HEARTH_METRICS_OPENMETRICS);
    hearth_buf_byte(&out, '\0');
    assert_non_null(strstr(out.p, "\n# TYPE hearth_request_errors counter\n"));
    assert_non_null(strstr(out.p, "_bucket{method=\"traced\",le=\"1.0\"} 0\n"));
    assert_non_null(strstr(out.p, "_bucket{method=\"traced\",le=\"2.0\"} 1 # {trace_id=\""
                                  "0af7651916cd43dd8448eb211c80319c\"} 1.500000000 "));
    assert_string_equal(out.p + out.n - 1 - strlen("\n# EOF\n"), "\n# EOF\n");
    hearth_buf_release(&out);

    /* Prometheus text has neither. */
    assert_true(text_has("hearth_request_seconds_bucket{method=\"traced\",le=\"2\"} 1"));
}

static void every_metric_is_described(void **state)
{
    (void)state;
    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    hearth_metrics_write(&out, HEARTH_METRICS_PROMETHEUS);
    hearth_buf_byte(&out, '\0');
    size_t n_help = 0;
    for (const char *p = out.p; (p = strstr(p, "# HELP ")) != NULL; p++) {
        n_help++;
    }

    assert_int_equal(n_help, HEARTH_N_METRICS);
    assert_non_null(strstr(out.p, "# TYPE hearth_commit_seconds histogram\n"));
    assert_non_null(
        strstr(out.p, "# TYPE hearth_open_connections gauge\nhearth_open_connections 0\n"));
    hearth_buf_release(&out);
}

static void counters_add_and_never_decrease(void **state)
{
    (void)state;
    hearth_metric_add(HEARTH_M_BATCHES, 2);
    hearth_metric_add(HEARTH_M_BATCHES, 3);
    hearth_metric_add(HEARTH_M_BATCHES, -4);
    assert_int_equal(hearth_metric_value(HEARTH_M_BATCHES), 5);
    assert_true(text_has("hearth_commit_batches_total 5"));
}

static void gauges_are_set_and_moved(void **state)
{
    (void)state;
    hearth_metric_set(HEARTH_M_CONNECTIONS, 10);
    hearth_metric_add(HEARTH_M_CONNECTIONS, -3);
    assert_int_equal(hearth_metric_value(HEARTH_M_CONNECTIONS), 7);
    hearth_metric_set(HEARTH_M_CONNECTIONS, -1);
    assert_true(text_has("hearth_open_connections -1"));
}

static void label_values_have_lines_of_their_own(void **state)
{
    (void)state;
    hearth_metric_add_label(HEARTH_M_BATCH_RETRIES, HEARTH_STR("slow"), 2);
    hearth_metric_add_label(HEARTH_M_BATCH_RETRIES, HEARTH_STR("lost"), 1);
    hearth_metric_add_label(HEARTH_M_BATCH_RETRIES, HEARTH_STR("slow"), 1);
    hearth_metric_add_label(HEARTH_M_BATCH_RETRIES, hearth_str_n(NULL, 0), 4);
    assert_true(text_has("hearth_commit_retries_total{reason=\"slow\"} 3"));
    assert_true(text_has("hearth_commit_retries_total{reason=\"lost\"} 1"));
    assert_true(text_has("hearth_commit_retries_total{reason=\"\"} 4"));
    assert_int_equal(hearth_metric_value(HEARTH_M_BATCH_RETRIES), 8);
}

static void two_labels_count_as_a_pair(void **state)
{
    (void)state;
    char of_300_bytes[301];
    memset(of_300_bytes, 'x', 300);
    of_300_bytes[300] = '\0';
    hearth_metric_add_labels(HEARTH_M_REJECTED, "late", "java", 1);
    hearth_metric_add_labels(HEARTH_M_REJECTED, "late", "go", 0);
    hearth_metric_add_labels(HEARTH_M_REJECTED, "late", "a,\"b", 2);
    hearth_metric_add_labels(HEARTH_M_REJECTED, "late", of_300_bytes, 5);
    assert_true(text_has("hearth_rejected_profiles_total{reason=\"late\",client=\"java\"} 1"));
    assert_true(text_has("hearth_rejected_profiles_total{reason=\"late\",client=\"go\"} 0"));
    assert_true(text_has("hearth_rejected_profiles_total{reason=\"late\",client=\"a,\\\"b\"} 2"));
    assert_true(text_has("hearth_rejected_profiles_total{reason=\"other\",client=\"other\"} 5"));
}

static void label_values_are_escaped(void **state)
{
    (void)state;
    hearth_metric_add_label(HEARTH_M_RPC_ERRORS, HEARTH_STR("a\"b\\c\nd"), 1);
    assert_true(text_has("hearth_request_errors_total{code=\"a\\\"b\\\\c\\nd\"} 1"));
}

static void only_two_hundred_label_values_get_lines(void **state)
{
    (void)state;
    for (int i = 0; i < 1000; i++) {
        char value[16];
        (void)snprintf(value, sizeof value, "v%d", i);
        hearth_metric_add_label(HEARTH_M_DISCARDED, hearth_str_c(value), 1);
    }

    hearth_metric_add_label(HEARTH_M_DISCARDED, HEARTH_STR("v7"), 1);
    assert_true(text_has("hearth_discarded_total{reason=\"v0\"} 1"));
    assert_true(text_has("hearth_discarded_total{reason=\"v7\"} 2"));
    assert_true(text_has("hearth_discarded_total{reason=\"v199\"} 1"));
    assert_false(text_has("hearth_discarded_total{reason=\"v200\"} 1"));
    assert_true(text_has("hearth_discarded_total{reason=\"other\"} 800"));
    assert_int_equal(hearth_metric_value(HEARTH_M_DISCARDED), 1001);
}

static void invalid_label_values_count_as_other(void **state)
{
    (void)state;
    char value[300];
    memset(value, 'x', sizeof value);
    hearth_metric_add_label(HEARTH_M_PG_ERRORS, hearth_str_n(value, 257), 1);
    hearth_metric_add_label(HEARTH_M_PG_ERRORS, HEARTH_STR("\xff"), 1);
    hearth_metric_add_label(HEARTH_M_PG_ERRORS, HEARTH_STR("a\0b"), 1);
    hearth_metric_add_label(HEARTH_M_PG_ERRORS, HEARTH_STR("other"), 1);
    hearth_mem_fail_after(1);
    hearth_metric_add_label(HEARTH_M_PG_ERRORS, HEARTH_STR("no memory"), 1);
    hearth_mem_fail_after(0);
    assert_true(text_has("hearth_postgres_errors_total{class=\"other\"} 5"));
    hearth_metric_add_label(HEARTH_M_PG_ERRORS, hearth_str_n(value, 256), 1);
    assert_int_equal(hearth_metric_value(HEARTH_M_PG_ERRORS), 6);
    assert_true(text_has("hearth_postgres_errors_total{class=\"other\"} 5"));
}

static void times_are_written_in_seconds(void **state)
{
    (void)state;
    hearth_metric_add_label(HEARTH_M_BUILDER_CPU, HEARTH_STR("fold"), INT64_C(1500000001));
    hearth_metric_add_label(HEARTH_M_BUILDER_CPU, HEARTH_STR("fold"), -1);
    assert_true(text_has("hearth_builder_cpu_seconds_total{step=\"fold\"} 1.500000001"));
    hearth_metric_set(HEARTH_M_RULE_LAG, -25);
    assert_true(
        text_has("# TYPE hearth_rule_lag_seconds gauge\nhearth_rule_lag_seconds -0.000000025"));
    hearth_metric_set(HEARTH_M_RULE_LAG, INT64_MIN);
    assert_true(text_has("hearth_rule_lag_seconds -9223372036.854775808"));
}

static void declared_values_have_a_line_before_their_first_event(void **state)
{
    (void)state;
    assert_false(text_has("hearth_agent_events_total{type=\"error\"} 0"));
    hearth_metrics_start("1.2.3");
    assert_true(text_has("hearth_agent_events_total{type=\"error\"} 0"));
    assert_true(text_has("hearth_request_errors_total{code=\"unavailable\"} 0"));
    assert_true(text_has("hearth_build_info{version=\"1.2.3\"} 1"));
    hearth_metric_declare(HEARTH_M_RETENTION_DAYS, "profile");
    hearth_metric_add_label(HEARTH_M_RETENTION_DAYS, HEARTH_STR("profile"), 2);
    hearth_metric_declare(HEARTH_M_RETENTION_DAYS, "profile");
    assert_true(text_has("hearth_dropped_partitions_total{table=\"profile\"} 2"));
}

static void the_process_is_measured_by_the_kernel(void **state)
{
    (void)state;
    hearth_metrics_refresh_process();
    int64_t cpu_ns = hearth_metric_value(HEARTH_M_PROCESS_CPU);
    int64_t n_fds = hearth_metric_value(HEARTH_M_PROCESS_FDS);
    assert_true(cpu_ns > 0);
    assert_true(hearth_metric_value(HEARTH_M_PROCESS_RESIDENT) > 100000);
    assert_true(hearth_metric_value(HEARTH_M_PROCESS_VIRTUAL) >
                hearth_metric_value(HEARTH_M_PROCESS_RESIDENT));
    assert_true(hearth_metric_value(HEARTH_M_PROCESS_MAX_FDS) > n_fds);

    int more = dup(0);
    hearth_metrics_refresh_process();
    assert_int_equal(hearth_metric_value(HEARTH_M_PROCESS_FDS), n_fds + 1);
    assert_true(hearth_metric_value(HEARTH_M_PROCESS_CPU) > cpu_ns);
    (void)close(more);
}

static void a_metric_without_label_ignores_values(void **state)
{
    (void)state;
    hearth_metric_add_label(HEARTH_M_QUERY_ROWS, HEARTH_STR("x"), 3);
    assert_true(text_has("hearth_query_rows_total 3"));
}

static void histograms_cumulate_buckets(void **state)
{
    (void)state;
    struct hearth_str none = {NULL, 0};
    hearth_metric_observe_ns(HEARTH_M_COMMIT_SECONDS, none, -5); /* a clock that was set back */
    hearth_metric_observe_ns(HEARTH_M_COMMIT_SECONDS, none, 500000);
    hearth_metric_observe_ns(HEARTH_M_COMMIT_SECONDS, none, 500001);
    hearth_metric_observe_ns(HEARTH_M_COMMIT_SECONDS, none, INT64_C(60000000000));
    hearth_metric_observe_ns(HEARTH_M_COMMIT_SECONDS, none, INT64_C(60000000001));
    assert_true(text_has("hearth_commit_seconds_bucket{le=\"0.0005\"} 2"));
    assert_true(text_has("hearth_commit_seconds_bucket{le=\"0.001\"} 3"));
    assert_true(text_has("hearth_commit_seconds_bucket{le=\"30\"} 3"));
    assert_true(text_has("hearth_commit_seconds_bucket{le=\"60\"} 4"));
    assert_true(text_has("hearth_commit_seconds_bucket{le=\"+Inf\"} 5"));
    assert_true(text_has("hearth_commit_seconds_sum 120.001000002"));
    assert_true(text_has("hearth_commit_seconds_count 5"));
    assert_int_equal(hearth_metric_value(HEARTH_M_COMMIT_SECONDS), 5);
}

static void histograms_are_kept_per_label_value(void **state)
{
    (void)state;
    hearth_metric_observe_ns(HEARTH_M_RPC_SECONDS, HEARTH_STR("Push"), 3000000);
    hearth_metric_observe_ns(HEARTH_M_RPC_SECONDS, HEARTH_STR("Series"), 5000000);
    assert_true(text_has("hearth_request_seconds_bucket{method=\"Push\",le=\"0.002\"} 0"));
    assert_true(text_has("hearth_request_seconds_bucket{method=\"Push\",le=\"0.004\"} 1"));
    assert_true(text_has("hearth_request_seconds_sum{method=\"Series\"} 0.005000000"));
    assert_true(text_has("hearth_request_seconds_count{method=\"Series\"} 1"));
}

enum {
    N_ROUNDS = 20000
};

static void *hammer(void *arg)
{
    unsigned seed = *(const unsigned *)arg;
    for (unsigned i = 0; i < N_ROUNDS; i++) {
        char value[16];
        (void)snprintf(value, sizeof value, "w%u", (i * 31 + seed) % 300);
        hearth_metric_add_label(HEARTH_M_INGEST_STAGE_NS, hearth_str_c(value), 1);
    }

    return NULL;
}

static void nothing_is_lost_between_threads(void **state)
{
    (void)state;
    pthread_t threads[4];
    unsigned seeds[4] = {1, 77, 130, 240};
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, hammer, &seeds[i]), 0);
    }

    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    hearth_metrics_write(&out, HEARTH_METRICS_PROMETHEUS);
    hearth_buf_release(&out);
    for (unsigned i = 0; i < 4; i++) {
        (void)pthread_join(threads[i], NULL);
    }

    assert_int_equal(hearth_metric_value(HEARTH_M_INGEST_STAGE_NS), 4 * N_ROUNDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_metric_is_described),
        cmocka_unit_test(openmetrics_has_families_and_exemplars),
        cmocka_unit_test(counters_add_and_never_decrease),
        cmocka_unit_test(gauges_are_set_and_moved),
        cmocka_unit_test(label_values_have_lines_of_their_own),
        cmocka_unit_test(two_labels_count_as_a_pair),
        cmocka_unit_test(label_values_are_escaped),
        cmocka_unit_test(only_two_hundred_label_values_get_lines),
        cmocka_unit_test(invalid_label_values_count_as_other),
        cmocka_unit_test(times_are_written_in_seconds),
        cmocka_unit_test(declared_values_have_a_line_before_their_first_event),
        cmocka_unit_test(the_process_is_measured_by_the_kernel),
        cmocka_unit_test(a_metric_without_label_ignores_values),
        cmocka_unit_test(histograms_cumulate_buckets),
        cmocka_unit_test(histograms_are_kept_per_label_value),
        cmocka_unit_test(nothing_is_lost_between_threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
