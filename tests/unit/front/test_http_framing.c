/* test_http_framing.c -- which heads are refused, as libmicrohttpd leaves them in its buffer. */
#include "http/http_framing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define MAX_HEAD 512

/*
 * Changes a head of well formed lines as the library does: blanks of the request line, colons and
 * ends of lines become NUL bytes. NUL bytes that a test has put into the head stay.
 */
static struct hearth_http_framing check(const char *text, size_t n)
{
    static char head[MAX_HEAD];
    struct hearth_http_framing framing;
    struct hearth_str names[16], values[16];
    size_t n_fields = 0;
    assert_in_range(n, 1, MAX_HEAD);
    memcpy(head, text, n);

    char *eol = memchr(head, '\n', n);
    assert_non_null(eol);
    eol[0] = '\0';
    if (eol[-1] == '\r') {
        eol[-1] = '\0';
    }
    char *uri = strchr(head, ' ') + 1,
         *version = (char *)memrchr(head, ' ', (size_t)(eol - head)) + 1;
    uri[-1] = version[-1] = '\0';

    for (char *line = eol + 1; line < head + n;) {
        eol = memchr(line, '\n', (size_t)(head + n - line));
        assert_non_null(eol);
        eol[0] = '\0';
        if (eol > line && eol[-1] == '\r') {
            eol[-1] = '\0';
        }
        char *colon = strchr(line, ':');
        if (colon != NULL) {
            *colon++ = '\0';
            colon += strspn(colon, " \t");
            names[n_fields] = hearth_str_c(line);
            values[n_fields++] = hearth_str_c(colon);
        }
        line = eol + 1;
    }
    hearth_http_framing_uri(&framing, hearth_str_c(uri));
    hearth_http_framing_begin(&framing, hearth_str_c(head), hearth_str_c(version), head + n);
    for (size_t i = 0; i < n_fields; i++) {
        hearth_http_framing_field(&framing, names[i], values[i]);
    }
    hearth_http_framing_end(&framing, hearth_str_c(version));
    return framing;
}

static void assert_code(unsigned code, const char *text, size_t n)
{
    struct hearth_http_framing framing = check(text, n);
    if (framing.code != code) {
        fail_msg("%u instead of %u (%s) for %s", framing.code, code,
                 framing.text != NULL ? framing.text : "", text);
    }
    assert_true((framing.text != NULL) == (code != 0));
}

#define ASSERT_CODE(code, text) assert_code(code, text, sizeof(text) - 1)
#define POST                    "POST /x HTTP/1.1\r\nHost: y\r\n"

static void a_correct_head_is_accepted(void **state)
{
    (void)state;
    ASSERT_CODE(0, "GET / HTTP/1.0\r\n\r\n");
    ASSERT_CODE(0, "GET /a?b=c HTTP/1.1\r\nHost:\r\n\r\n");
    ASSERT_CODE(0, POST "Content-Length: 2\r\nX-A:\r\nX-B: \t b \t\r\nX-C: \xc3\xa9\r\n\r\n");
    ASSERT_CODE(0, POST "transfer-encoding:\tChunked\r\n\r\n");
}

static void lines_end_with_cr_lf(void **state)
{
    (void)state;
    ASSERT_CODE(400, "GET / HTTP/1.1\nHost: y\r\n\r\n");
    ASSERT_CODE(400, "GET / HTTP/1.1\r\nHost: y\n\r\n");
    ASSERT_CODE(400, "GET / HTTP/1.1\r\nHost: y\r\n\n");
    ASSERT_CODE(400, "GET / HTTP/1.1\r\nX: a\nHost: y\r\n\r\n");
    ASSERT_CODE(400, POST "X: a\rb\r\n\r\n");
    ASSERT_CODE(400, POST "X: a\r\r\n\r\n");
}

static void nul_bytes_hide_nothing(void **state)
{
    (void)state;
    ASSERT_CODE(400, POST "X: a\0\r\n\r\n");
    ASSERT_CODE(400, POST "X: a\0\0Content-Length: 5\r\n\r\n");
    ASSERT_CODE(400, POST "Content-Length: 5\0\0\r\n\r\n");
    ASSERT_CODE(400, POST "X\0: a\r\n\r\n");
    ASSERT_CODE(400, POST "\0\0X: a\r\n\r\n");
    ASSERT_CODE(400, "GET /a\0b HTTP/1.1\r\nHost: y\r\n\r\n");
    ASSERT_CODE(400, "GET /a%00 HTTP/1.1\r\nHost: y\r\n\r\n");
    ASSERT_CODE(0, "GET /a%0?b=%00 HTTP/1.1\r\nHost: y\r\n\r\n");
}

static void text_without_a_field_hides_nothing(void **state)
{
    (void)state;
    ASSERT_CODE(400, POST "no colon\r\n\r\n");
    ASSERT_CODE(400, POST "no colon\r\nX: a\r\n\r\n");
    ASSERT_CODE(400, POST "X: a\r\n folded\r\n\r\n");
}

static void a_field_that_the_library_moved_is_refused(void **state)
{
    (void)state;
    static const char head[] = "GET\0/\0HTTP/1.0\0\0Content\0 5\0\0 -Length\0\0\0";
    struct hearth_http_framing framing;
    hearth_http_framing_uri(&framing, hearth_str_n(head + 4, 1));
    hearth_http_framing_begin(&framing, hearth_str_n(head, 3), hearth_str_n(head + 6, 8),
                              head + sizeof head - 1);
    assert_int_equal(framing.code, 0);
    hearth_http_framing_field(&framing, HEARTH_STR("Content-Length"), hearth_str_n(head + 25, 1));
    assert_int_equal(framing.code, 400);
}

static void names_are_tokens(void **state)
{
    (void)state;
    ASSERT_CODE(400, POST "Content-Length : 2\r\n\r\n");
    ASSERT_CODE(400, POST "Content-Length\t: 2\r\n\r\n");
    ASSERT_CODE(400, POST " X: a\r\n\r\n");
    ASSERT_CODE(400, POST ": a\r\n\r\n");
    ASSERT_CODE(400, POST "X\x0b: a\r\n\r\n");
    ASSERT_CODE(400, POST "X\xa0: a\r\n\r\n");
    ASSERT_CODE(400, POST "\"X\": a\r\n\r\n");
    ASSERT_CODE(0, POST "!#$%&'*+-.^_`|~09azAZ: a\r\n\r\n");
}

static void values_hold_no_control_bytes(void **state)
{
    (void)state;
    ASSERT_CODE(400, POST "X: \x0b"
                          "a\r\n\r\n");
    ASSERT_CODE(400, POST "X: \x7f\r\n\r\n");
    ASSERT_CODE(0, POST "X: a\tb\r\n\r\n");
}

static void exactly_one_host_is_required(void **state)
{
    (void)state;
    ASSERT_CODE(400, "GET / HTTP/1.1\r\n\r\n");
    ASSERT_CODE(400, POST "HOST: z\r\n\r\n");
}

static void one_length_or_chunks_are_accepted(void **state)
{
    (void)state;
    ASSERT_CODE(400, POST "Content-Length: 2\r\nContent-Length: 3\r\n\r\n");
    ASSERT_CODE(400, POST "Content-Length: 2\r\ncontent-length: 2\r\n\r\n");
    ASSERT_CODE(400, POST "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n");
    ASSERT_CODE(400, POST "Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n");
    ASSERT_CODE(400, "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n");
}

static void chunked_is_the_only_transfer_coding(void **state)
{
    (void)state;
    ASSERT_CODE(501, POST "Transfer-Encoding: gzip\r\n\r\n");
    ASSERT_CODE(501, POST "Transfer-Encoding: gzip, chunked\r\n\r\n");
    ASSERT_CODE(501, POST "Transfer-Encoding: chunked, identity\r\n\r\n");
    ASSERT_CODE(501, POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n");
    ASSERT_CODE(400, POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n");
    ASSERT_CODE(400, POST "Transfer-Encoding: chunked, chunked\r\n\r\n");
    ASSERT_CODE(400, POST "Transfer-Encoding:\r\n\r\n");
    ASSERT_CODE(400, POST "Transfer-Encoding: ,\r\n\r\n");
    ASSERT_CODE(400, POST "Transfer-Encoding: chunked,\r\n\r\n");
    ASSERT_CODE(400, POST "Transfer-Encoding: chunked \r\n\r\n");
    ASSERT_CODE(400, POST "Transfer-Encoding: chunked;q=1\r\n\r\n");
    ASSERT_CODE(400, POST "Transfer-Encoding: \"chunked\"\r\n\r\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_correct_head_is_accepted),
        cmocka_unit_test(lines_end_with_cr_lf),
        cmocka_unit_test(nul_bytes_hide_nothing),
        cmocka_unit_test(text_without_a_field_hides_nothing),
        cmocka_unit_test(a_field_that_the_library_moved_is_refused),
        cmocka_unit_test(names_are_tokens),
        cmocka_unit_test(values_hold_no_control_bytes),
        cmocka_unit_test(exactly_one_host_is_required),
        cmocka_unit_test(one_length_or_chunks_are_accepted),
        cmocka_unit_test(chunked_is_the_only_transfer_coding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
