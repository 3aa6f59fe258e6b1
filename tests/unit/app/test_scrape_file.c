/* test_scrape_file.c -- the file of --scrape-config: what it means, and its mistakes. */
#include "arena_fixture.h"
#include "scrape_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static struct hearth_err g_err;

static enum hearth_status load(const char *text, struct hearth_scrape_options *ret)
{
    char path[] = "/tmp/hearth-scrape-XXXXXX";
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    (void)close(fd);
    *ret = (struct hearth_scrape_options){0};
    g_err = (struct hearth_err)HEARTH_ERR_INIT;
    enum hearth_status status = hearth_scrape_file_load(path, &g_arena, ret, &g_err);
    (void)unlink(path);

    return status;
}

static void a_job_has_the_usual_profiles_of_go(void **state)
{
    static const char *const paths[] = {"/debug/pprof/allocs", "/debug/pprof/block",
                                        "/debug/pprof/goroutine", "/debug/pprof/mutex",
                                        "/debug/pprof/profile"};
    struct hearth_scrape_options options;

    (void)state;
    assert_int_equal(load("scrape_configs:\n"
                          "  - job_name: shop\n"
                          "    static_configs:\n"
                          "      - targets: [\"127.0.0.1:6060\", 'b:80']\n",
                          &options),
                     HEARTH_OK);
    assert_int_equal(options.n_jobs, 1);
    const struct hearth_scrape_job *job = &options.jobs[0];
    assert_string_equal(job->name, "shop");
    assert_string_equal(job->tenant, "anonymous");
    assert_string_equal(job->scheme, "http");
    assert_null(job->bearer);
    assert_int_equal(job->interval_ns, 15000000000);
    assert_int_equal(job->n_groups, 1);
    assert_int_equal(job->groups[0].n_addresses, 2);
    assert_string_equal(job->groups[0].addresses[1], "b:80");
    assert_int_equal(job->n_paths, 5);
    for (size_t i = 0; i < job->n_paths; i++) {
        assert_string_equal(job->paths[i].path, paths[i]);
        assert_int_equal(job->paths[i].is_measured, i == 4);
    }
}

static void every_key_of_a_job_is_read(void **state)
{
    struct hearth_scrape_options options;

    (void)state;
    assert_int_equal(load("scrape_configs:\n"
                          "  - job_name: a\n"
                          "    static_configs: [{targets: ['x:1']}]\n"
                          "  - job_name: shop\n"
                          "    tenant: t\n"
                          "    scheme: https\n"
                          "    bearer_token: secret\n"
                          "    scrape_interval: 1m\n"
                          "    scrape_timeout: 5s\n"
                          "    static_configs:\n"
                          "      - targets: ['x:1']\n"
                          "        labels: {env: prod, service_name: api}\n"
                          "    dns_sd_configs:\n"
                          "      - names: [pods.shop]\n"
                          "        type: A\n"
                          "        port: 6060\n"
                          "    profiling_config:\n"
                          "      path_prefix: /api\n"
                          "      pprof_config:\n"
                          "        memory: {enabled: false}\n"
                          "        block: {enabled: false}\n"
                          "        goroutine: {enabled: false}\n"
                          "        mutex: {enabled: false}\n"
                          "        fgprof: {enabled: true}\n"
                          "        mine: {path: '/x?y=1', delta: true}\n",
                          &options),
                     HEARTH_OK);
    assert_int_equal(options.n_jobs, 2);
    const struct hearth_scrape_job *job = &options.jobs[1];
    assert_string_equal(job->tenant, "t");
    assert_string_equal(job->scheme, "https");
    assert_true(hearth_secret_equals(job->bearer, HEARTH_STR("secret")));
    assert_int_equal(job->interval_ns, 60000000000);
    assert_int_equal(job->timeout_ns, 5000000000);
    assert_int_equal(job->n_groups, 2);
    assert_int_equal(job->groups[0].n_labels, 2);
    assert_true(hearth_str_eq_c(job->groups[0].labels[1].value, "api"));
    assert_true(job->groups[1].is_dns);
    assert_int_equal(job->groups[1].port, 6060);
    assert_int_equal(job->n_paths, 3);
    assert_string_equal(job->paths[0].path, "/api/debug/pprof/profile");
    assert_string_equal(job->paths[1].path, "/api/debug/fgprof");
    assert_string_equal(job->paths[2].path, "/api/x?y=1");
    assert_true(job->paths[2].is_measured);
}

static void mistakes_are_named_with_their_line(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "line 1: the file is empty"},
        {"scrape_configs: [\n", "line 2: "},
        {"jobs: []\n", "line 1: \"jobs\" is unknown here"},
        {"scrape_configs: 7\n", "line 1: expected a list"},
        {"scrape_configs:\n - scheme: http\n", "line 2: job_name is missing"},
        {"scrape_configs:\n - job_name: a\n   relabel_configs: []\n",
         "line 3: \"relabel_configs\" is unknown here"},
        {"scrape_configs:\n - job_name: a\n   scheme: ftp\n",
         "line 3: scheme must be http or https"},
        {"scrape_configs:\n - job_name: a\n   scrape_interval: 1ms\n",
         "line 3: expected a duration from 1s to 1d"},
        {"scrape_configs:\n - job_name: a\n   static_configs: [{targets: ['x']}]\n",
         "line 3: \"x\" is not an address HOST:PORT"},
        {"scrape_configs:\n - job_name: a\n   static_configs: [{targets: ['::1']}]\n",
         "line 3: \"::1\" is not an address HOST:PORT"},
        {"scrape_configs:\n - job_name: a\n   static_configs: [{targets: ['[::1]:80', 'x:1:2']}]\n",
         "line 3: \"x:1:2\" is not an address HOST:PORT"},
        {"scrape_configs:\n - job_name: a\n   static_configs: [{targets: ['u@x:1']}]\n",
         "line 3: \"u@x:1\" is not an address HOST:PORT"},
        {"scrape_configs:\n - job_name: a\n   static_configs: [{labels: {job: b}}]\n",
         "line 3: the label job is set by the scraper"},
        {"scrape_configs:\n - job_name: a\n   static_configs: [{labels: {'': b}}]\n",
         "line 3: the name of a label is empty"},
        {"scrape_configs:\n - job_name: a\n   static_configs: [{labels: {b: c, &d}}]\n",
         "line 3: expected a text"},
        {"scrape_configs:\n - job_name: a\n   static_configs: [{labels: {b: c,\n  b: d}}]\n",
         "line 4: \"b\" is already set on line 3"},
        {"scrape_configs:\n - job_name: a\n   scheme: http\n   job_name: a\n",
         "line 4: \"job_name\" is already set on line 2"},
        {"scrape_configs:\n - job_name: a\n   dns_sd_configs: [{names: [x]}]\n",
         "line 3: the names need a port"},
        {"scrape_configs:\n - job_name: a\n   dns_sd_configs: [{names: [x], type: SRV}]\n",
         "line 3: type must be A or AAAA"},
        {"scrape_configs:\n - job_name: a\n   profiling_config: {pprof_config: {mine: {}}}\n",
         "line 3: \"mine\" needs a path"},
        {"scrape_configs:\n - job_name: a\n - job_name: a\n", "line 3: there is another job \"a\""},
    };
    struct hearth_scrape_options options;
    char text[1024];

    /* An URL that is cut would be the one of another profile. */
    (void)state;
    (void)snprintf(
        text, sizeof text,
        "scrape_configs:\n - job_name: a\n   static_configs: [{targets: ['%0300d:1']}]\n", 0);
    assert_int_equal(load(text, &options), HEARTH_INVALID_ARGUMENT);
    assert_non_null(strstr(g_err.msg, "line 3: the address has more than 279 bytes"));
    (void)snprintf(text, sizeof text,
                   "scrape_configs:\n - job_name: a\n   profiling_config: {path_prefix: /%0700d}\n",
                   0);
    assert_int_equal(load(text, &options), HEARTH_INVALID_ARGUMENT);
    assert_non_null(strstr(g_err.msg, "line 2: the path of \"memory\" has more than 700 bytes"));

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(load(cases[i].text, &options), HEARTH_INVALID_ARGUMENT);
        if (strstr(g_err.msg, cases[i].message) == NULL) {
            fail_msg("\"%s\" is not in \"%s\"", cases[i].message, g_err.msg);
        }
    }

    assert_int_equal(hearth_scrape_file_load("/no/such/file", &g_arena, &options, &g_err),
                     HEARTH_INVALID_ARGUMENT);
    assert_non_null(strstr(g_err.msg, "/no/such/file: No such file or directory"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_has_the_usual_profiles_of_go),
        cmocka_unit_test(every_key_of_a_job_is_read),
        cmocka_unit_test(mistakes_are_named_with_their_line),
    };

    return cmocka_run_group_tests(tests, make_arena, free_arena);
}
