/* test_log.c -- lines as written to standard error. */
#include "hearth/base/clock.h"
#include "hearth/base/log.h"
#include "hearth/base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

static char g_line[8192];
static int g_stderr, g_pipe[2];

static void capture(void)
{
    assert_int_equal(pipe2(g_pipe, O_NONBLOCK), 0);
    g_stderr = dup(STDERR_FILENO);
    assert_true(dup2(g_pipe[1], STDERR_FILENO) >= 0);
}

/* One read(2): a line is one write(2). */
static const char *captured(void)
{
    (void)dup2(g_stderr, STDERR_FILENO);
    (void)close(g_stderr);
    (void)close(g_pipe[1]);
    ssize_t n = read(g_pipe[0], g_line, sizeof g_line - 1);
    (void)close(g_pipe[0]);
    g_line[n > 0 ? n : 0] = '\0';

    return g_line;
}

static int use_fixed_time(void **state)
{
    (void)state;
    hearth_clock_fake(INT64_C(1795170990123000000));
    hearth_log_set_level(HEARTH_LOG_INFO);
    hearth_log_set_json(false);
    return 0;
}

static int use_real_time(void **state)
{
    (void)state;
    hearth_clock_fake(0);
    return 0;
}

#define PREFIX "ts=2026-11-20T10:36:30.123Z level=info component=t msg="

static void writes_logfmt(void **state)
{
    (void)state;
    capture();
    HEARTH_LOG(HEARTH_LOG_INFO, "t", "listening", "addr", "127.0.0.1:4040", "n", hearth_log_i64(-5),
               NULL);
    assert_string_equal(captured(), PREFIX "listening addr=127.0.0.1:4040 n=-5\n");
}

static void quotes_and_escapes_values(void **state)
{
    (void)state;
    capture();
    HEARTH_LOG(HEARTH_LOG_INFO, "t", "two words", "a", "x=\"y\"\\", "b", "line\nfeed\x01\x7f", "c",
               "", "d", NULL, NULL);
    assert_string_equal(
        captured(),
        PREFIX "\"two words\" a=\"x=\\\"y\\\"\\\\\" b=\"line\\nfeed\\u0001\\u007f\" c=\"\" "
               "d=\"\"\n");
}

static void writes_json(void **state)
{
    (void)state;
    hearth_log_set_json(true);
    capture();
    HEARTH_LOG(HEARTH_LOG_INFO, "t", "m", "k", "v\"", NULL);
    assert_string_equal(
        captured(), "{\"ts\":\"2026-11-20T10:36:30.123Z\",\"level\":\"info\",\"component\":\"t\","
                    "\"msg\":\"m\",\"k\":\"v\\\"\"}\n");
}

static void numbers_are_numbers_in_json_and_texts_of_digits_are_not(void **state)
{
    (void)state;
    hearth_log_set_json(true);
    capture();
    HEARTH_LOG(HEARTH_LOG_INFO, "t", "m", "a", hearth_log_i64(-5), "b", "42", "c",
               hearth_log_i64(INT64_MIN), NULL);
    assert_non_null(strstr(captured(), ",\"a\":-5,\"b\":\"42\",\"c\":-9223372036854775808}\n"));
}

static void replaces_broken_utf8(void **state)
{
    (void)state;
    capture();
    HEARTH_LOG(HEARTH_LOG_INFO, "t", "m", "k", "caf\xc3\xa9 \xff\xe2\x82", NULL);
    assert_string_equal(captured(), PREFIX "m k=\"caf\xc3\xa9 ???\"\n");
}

/*
 * For a value of any length: at most 4 KB, the quote is closed, the truncation marked, later pairs
 * omitted.
 */
static void cuts_long_values_and_marks_the_cut(void **state)
{
    (void)state;
    for (int json = 0; json < 2; json++) {
        hearth_log_set_json(json == 1);
        const char *tail = json == 1 ? "\",\"cut\":1}\n" : "\" cut=1\n";
        for (size_t n = 3900; n < 4200; n++) {
            char value[4200];

            memset(value, 'v', n);
            value[n] = '\0';
            capture();
            HEARTH_LOG(HEARTH_LOG_INFO, "t", "m", "k", value, "after", "a", NULL);
            struct hearth_str line = hearth_str_c(captured());
            assert_true(line.n <= 4096);
            bool whole = hearth_str_ends(
                line, hearth_str_c(json == 1 ? ",\"after\":\"a\"}\n" : " after=a\n"));
            bool dropped =
                hearth_str_ends(line, hearth_str_c(json == 1 ? "v\",\"cut\":1}\n" : "v\" cut=1\n"));
            bool emptied = hearth_str_ends(line, HEARTH_STR("\"after\":\"\",\"cut\":1}\n"));
            assert_true(whole || dropped || emptied);
            assert_true(n < 4100 || hearth_str_ends(line, hearth_str_c(tail)));
            size_t quotes = 0;
            for (size_t i = 0; i < line.n; i++) {
                quotes += line.p[i] == '"';
            }

            assert_int_equal(quotes % 2, 0);
        }
    }
}

static void a_long_message_is_cut_too(void **state)
{
    (void)state;
    char msg[6000];
    memset(msg, 'm', sizeof msg - 1);
    msg[sizeof msg - 1] = '\0';
    hearth_log_set_json(true);
    capture();
    HEARTH_LOG(HEARTH_LOG_INFO, "t", msg, "k", "v", NULL);
    struct hearth_str line = hearth_str_c(captured());
    assert_true(hearth_str_ends(line, HEARTH_STR("mm\",\"cut\":1}\n")));
    assert_true(line.n > 4000 && line.n <= 4096);
}

static void omits_lines_below_the_level(void **state)
{
    (void)state;
    enum hearth_log_level level;
    assert_true(hearth_log_parse_level("warn", &level));
    assert_int_equal(level, HEARTH_LOG_WARN);
    assert_false(hearth_log_parse_level("loud", &level));
    hearth_log_set_level(HEARTH_LOG_WARN);
    assert_false(hearth_log_enabled(HEARTH_LOG_INFO));
    assert_true(hearth_log_enabled(HEARTH_LOG_ERROR));
    capture();
    HEARTH_LOG(HEARTH_LOG_INFO, "t", "not seen", NULL);
    assert_string_equal(captured(), "");
}

static void leaves_errno_alone(void **state)
{
    (void)state;
    int saved = dup(STDERR_FILENO);
    (void)close(STDERR_FILENO);
    errno = ENOENT;
    HEARTH_LOG(HEARTH_LOG_INFO, "t", "nowhere to go", NULL);
    int after = errno;
    (void)dup2(saved, STDERR_FILENO);
    (void)close(saved);
    assert_int_equal(after, ENOENT);
}

static void eight_numbers_fit_one_line(void **state)
{
    (void)state;
    const char *first = hearth_log_i64(INT64_MIN);
    for (int i = 0; i < 7; i++) {
        (void)hearth_log_i64(i);
    }

    assert_string_equal(first, "-9223372036854775808");
}

static void formats_times_before_and_after_the_epoch(void **state)
{
    (void)state;
    char text[32];
    hearth_clock_format(0, text);
    assert_string_equal(text, "1970-01-01T00:00:00.000Z");
    hearth_clock_format(-1, text);
    assert_string_equal(text, "1969-12-31T23:59:59.999Z");
    hearth_clock_format(INT64_MAX, text);
    assert_string_equal(text, "2262-04-11T23:47:16.854Z");
    hearth_clock_format(INT64_MIN, text);
    assert_string_equal(text, "1677-09-21T00:12:43.145Z");
    assert_int_equal(hearth_day_of(0), 0);
    assert_int_equal(hearth_day_of(-1), -1);
    assert_int_equal(hearth_day_of(HEARTH_NS_PER_DAY - 1), 0);
    assert_int_equal(hearth_day_of(HEARTH_NS_PER_DAY), 1);
    assert_int_equal(hearth_day_of(-HEARTH_NS_PER_DAY), -1);
    assert_int_equal(hearth_hour_of(-HEARTH_NS_PER_HOUR - 1), -2);

    int64_t mono = hearth_clock_mono_ns(), cpu = hearth_clock_thread_cpu_ns();
    assert_true(hearth_clock_mono_ns() >= mono && hearth_clock_thread_cpu_ns() >= cpu);
}

#define LOG_TEST(f) cmocka_unit_test_setup_teardown(f, use_fixed_time, use_real_time)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOG_TEST(writes_logfmt),
        LOG_TEST(quotes_and_escapes_values),
        LOG_TEST(writes_json),
        LOG_TEST(numbers_are_numbers_in_json_and_texts_of_digits_are_not),
        LOG_TEST(replaces_broken_utf8),
        LOG_TEST(cuts_long_values_and_marks_the_cut),
        LOG_TEST(a_long_message_is_cut_too),
        LOG_TEST(omits_lines_below_the_level),
        LOG_TEST(leaves_errno_alone),
        LOG_TEST(eight_numbers_fit_one_line),
        LOG_TEST(formats_times_before_and_after_the_epoch),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
