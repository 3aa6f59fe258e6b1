/* test_text_profile.c -- a text of unknown kind: perf script, collapsed stacks, or neither. */
#include "hearth/base/mem.h"
#include "hearth/format/text_profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

struct decoded {
    struct hearth_arena arena;
    struct hearth_profile p;
    struct hearth_text_notes notes;
    struct hearth_err err;
    enum hearth_status status;
};

static void decode(struct decoded *d, struct hearth_str text)
{
    *d = (struct decoded){.err = HEARTH_ERR_INIT};
    hearth_arena_init(&d->arena, 0);
    d->status = hearth_text_decode(text, HEARTH_STR("samples"), HEARTH_STR("count"), 1, &d->arena,
                                   &d->p, &d->notes, &d->err);
}

static int64_t total(const struct hearth_profile *p, uint32_t type)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < p->n_samples; i++) {
        sum += p->values[(size_t)i * p->n_types + type];
    }
    return sum;
}

static void assert_read(struct hearth_str text, bool is_perf_script, int64_t sum)
{
    struct decoded d;

    decode(&d, text);
    if (d.status != HEARTH_OK || d.notes.is_perf_script != is_perf_script ||
        total(&d.p, 0) != sum) {
        fail_msg("\"%.40s\": %s", text.p,
                 d.status == HEARTH_OK ? "another format or sum" : d.err.msg);
    }

    hearth_arena_release(&d.arena);
}

static void the_first_line_that_fits_only_one_format_decides(void **state)
{
    (void)state;
    assert_read(HEARTH_STR("main;f 3\nmain 4\n"), false, 7);
    assert_read(HEARTH_STR("goroutine 1 [running];main 3\n"), false, 3);
    assert_read(HEARTH_STR("a 1 1.5: 1 cycles: \n\t1 f (x)\n"), true, 1);
    assert_read(
        HEARTH_STR("# captured on: Sun Oct 25 23:31:43 2015\n#\na 1 1.5: 1 cycles: \n\t1 f (x)\n"),
        true, 1);
    assert_read(
        HEARTH_STR("perf 1 0.0: PERF_RECORD_COMM: a:1/1\nperf 1 0.0: PERF_RECORD_LOST lost 5\n"
                   "a 1 1.5: 1 cycles: \n\t1 f (x)\n"),
        true, 1);
    assert_read(HEARTH_STR("\xEF\xBB\xBF  a 1 1.5: 1 cycles: 1 f (x)\n"), true, 1);
    assert_read(HEARTH_STR("# ========\n# captured on    : Wed Nov 25 20:43:55 2026\n"
                           "# cmdline : bash -c \na;b 2026\n# ========\n"
                           "a 1 1.5: 1 cycles: 1 f (x)\n"),
                true, 1);
    static const char utf16[] = "\xfe\xff\0a\0 \0001\0 \0001\0.\0005\0:\0 \0c\0:\0 \0001\0 \0f";
    assert_read(hearth_str_n(utf16, sizeof utf16 - 1), true, 1);
}

static void assert_refused(const char *text, const char *part)
{
    struct decoded d;

    decode(&d, hearth_str_c(text));
    if (d.status != HEARTH_INVALID_ARGUMENT || strstr(d.err.msg, part) == NULL) {
        fail_msg("\"%.40s\": %s", text, d.status == HEARTH_OK ? "is taken" : d.err.msg);
    }

    hearth_arena_release(&d.arena);
}

static void text_that_is_not_a_profile_is_refused(void **state)
{
    (void)state;
    assert_refused("INFO request took 35\n", "line 1 is not of the form");
    assert_refused("replicas: 3\nname: x\nport: 8080\n", "line 2 is not of the form");
    assert_refused("replicas: 3\nport: 8080\n", "line 1, \"replicas: 3\"");
    assert_refused("main;f 3\na 1 1.5: 1 cycles:\n", "line 2 is a record of perf script");
    assert_refused("a 1 1.5: 1 cycles: 1 f (x)\nmain;f 3\n", "line 2 is not of perf script");
    assert_refused("{\n  \"a\": 1\n}\n", "line 1 is not of the form");
    assert_refused("goroutine 1 [running]:\nmain.main()\n", "a dump of goroutines (debug=2)");
    assert_refused("--- contentionz 1 ---\ncycles/second = 2800000000\n10 1 @ 0x1 0x2\n",
                   "a legacy text contention profile");
    assert_refused("heap profile:  1: 29 [  1: 29] @ heapprofile\n1: 29 [1: 29] @ 0x1\n",
                   "a legacy text heap profile");
    assert_refused("goroutine profile: total 8\n8 @ 0x1\n", "a goroutine profile in text form");
    assert_refused("# HELP a b\n# TYPE a gauge\na 5\n", "line 1 is a line of Prometheus metrics");
    assert_refused("name,value\na, 3\nb, 4\n", "line 1 is not of the form");
    assert_refused("int main(void)\n{\n    return 0;\n}\n", "line 1 is not of the form");
    assert_refused("# Overhead  Command\n    28.32%  postgres  [kernel]  [k] f\n",
                   "line 2 is not of the form");
    assert_refused("", "no line of the form");
    assert_refused(
        "# ========\n# captured on    : Wed Nov 25 20:43:55 2026\n# cmdline : sh -c \na;b 2026\n",
        "no record of perf script's output");
}

static void every_refused_allocation_is_reported_and_nothing_leaks(void **state)
{
    (void)state;
    enum hearth_status status = HEARTH_NO_MEMORY;
    for (uint64_t nth = 1; status != HEARTH_OK; nth++) {
        struct decoded d;
        hearth_mem_fail_after(nth);
        decode(&d, HEARTH_STR("\xff\xfe"
                              "a\0;\0b\0;\0c\0 \0001\0\n\0d\0;\0e\0 \0002\0"));
        hearth_mem_fail_after(0);
        status = d.status;
        assert_true(status == HEARTH_OK || status == HEARTH_NO_MEMORY);
        hearth_arena_release(&d.arena);
        assert_true(nth < 200);
    }
}

/* ---- real files ---- */

/* Totals found by independent readers; for perf, the number of samples. */
static void reads_real_files_with_their_totals(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t total;
        bool is_perf_script;
    } files[] = {{"collapsed/asprof-sample1.collapsed", 185, false},
                 {"collapsed/asprof-sample2.collapsed", 188, false},
                 {"collapsed/diff-after.txt", 80, false},
                 {"collapsed/diff-before.txt", 65, false},
                 {"collapsed/diff-expected.txt", 80, false},
                 {"collapsed/odd-crlf.txt", 14, false},
                 {"collapsed/odd-recursion.txt", 10, false},
                 {"collapsed/odd-utf16-le.txt", 14, false},
                 {"collapsed/perf-iperf-tid.txt", 200, false},
                 {"collapsed/perf-java-all.txt", 45, false},
                 {"collapsed/perf-vertx-kernel-java-all.txt", 285, false},
                 {"perf/perf-cycles-instructions-01.txt", 333, true},
                 {"perf/perf-iperf-stacks-pidtid-01.txt", 201, true},
                 {"perf/perf-java-stacks-01.txt", 46, true},
                 {"perf/perf-js-stacks-01.txt", 2, true},
                 {"perf/perf-vertx-stacks-01.txt", 286, true},
                 {"perf/rust-mangled.linux-perf.txt", 96, true},
                 {"perf/system-wide.linux-perf.txt", 556, true}};
    static char bytes[1 << 21];
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(files); i++) {
        char path[512];
        (void)snprintf(path, sizeof path, "%s/%s", HEARTH_SHARED_DATA, files[i].name);
        FILE *file = fopen(path, "rb");
        if (file == NULL) {
            print_message("no shared data at %s: real files not read\n", HEARTH_SHARED_DATA);
            skip();
        }
        size_t n = fread(bytes, 1, sizeof bytes, file);
        (void)fclose(file);
        assert_true(n > 0 && n < sizeof bytes);
        assert_read(hearth_str_n(bytes, n), files[i].is_perf_script, files[i].total);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_line_that_fits_only_one_format_decides),
        cmocka_unit_test(text_that_is_not_a_profile_is_refused),
        cmocka_unit_test(every_refused_allocation_is_reported_and_nothing_leaks),
        cmocka_unit_test(reads_real_files_with_their_totals),
    };

    return cmocka_run_group_tests_name("text_profile", tests, NULL, NULL);
}
