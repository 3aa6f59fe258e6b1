/* test_multipart.c -- forms and their files, as sent by clients, and malformed ones. */
#include "hearth/format/multipart.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define TYPE "multipart/form-data; boundary=xYz"
#define FILE_HEAD(name) \
    "Content-Disposition: form-data; name=\"" name "\"; filename=\"" name ".bin\"\r\n"

static struct hearth_multipart g_form;
static struct hearth_err g_err;

static enum hearth_status parse(const char *type, struct hearth_str body)
{
    g_err.msg[0] = '\0';
    return hearth_multipart_parse(hearth_str_c(type), body, &g_form, &g_err);
}

static void assert_file(const char *name, const char *filename, struct hearth_str body)
{
    const struct hearth_multipart_file *file = hearth_multipart_find(&g_form, name);
    assert_non_null(file);
    assert_true(hearth_str_eq_c(file->filename, filename));
    assert_true(hearth_str_eq(file->body, body));
}

static void returns_files_and_plain_fields(void **state)
{
    (void)state;
    struct hearth_str body = HEARTH_STR("preamble\r\n--xYz\r\n" FILE_HEAD(
        "profile") "Content-Type: application/octet-stream\r\n\r\n\x1f\x8b\r\n\0--x\r\n--xYzz"
                   "\r\n--xYz\r\nContent-Disposition: form-data; name=\"plain\"\r\n\r\nfield\r\n"
                   "--xYz  \r\n" FILE_HEAD("empty") "\r\n\r\n--xYz--\r\nepilogue --xYz");
    assert_int_equal(parse(TYPE, body), HEARTH_OK);
    assert_int_equal(g_form.n_files, 2);
    assert_file("profile", "profile.bin", HEARTH_STR("\x1f\x8b\r\n\0--x\r\n--xYzz"));
    assert_file("empty", "empty.bin", HEARTH_STR(""));
    assert_null(hearth_multipart_find(&g_form, "plain"));
    assert_int_equal(g_form.n_fields, 1);
    assert_true(hearth_str_eq_c(g_form.fields[0].name, "plain"));
    assert_true(hearth_str_eq_c(g_form.fields[0].value, "field"));
}

static void reads_lines_that_end_with_lf_and_parameters_in_any_form(void **state)
{
    (void)state;
    struct hearth_str body =
        HEARTH_STR("--xYz\ncontent-disposition:form-data;filename=f ; name = p\n\nbytes\n--xYz--");
    assert_int_equal(parse("Multipart/Form-Data; charset=\"a;b\"; BOUNDARY=\"xYz\"", body),
                     HEARTH_OK);
    assert_file("p", "f", HEARTH_STR("bytes"));
    body = HEARTH_STR("--xYz\r\nContent-Disposition: form-data; name=\"a;\\\"b\"; "
                      "filename=\"; name=c\"\r\n\r\nx\r\n--xYz--");
    assert_int_equal(parse(TYPE, body), HEARTH_OK);
    assert_file("a;\\\"b", "; name=c", HEARTH_STR("x"));
}

static void the_first_of_several_files_with_one_name_is_found(void **state)
{
    (void)state;
    struct hearth_str body = HEARTH_STR(
        "--xYz\r\n" FILE_HEAD("p") "\r\n1\r\n--xYz\r\n" FILE_HEAD("p") "\r\n2\r\n--xYz--\r\n");
    assert_int_equal(parse(TYPE, body), HEARTH_OK);
    assert_int_equal(g_form.n_files, 2);
    assert_file("p", "p.bin", HEARTH_STR("1"));
}

static void a_form_without_parts_is_empty(void **state)
{
    (void)state;
    assert_int_equal(parse(TYPE, HEARTH_STR("--xYz--\r\n")), HEARTH_OK);
    assert_int_equal(g_form.n_files, 0);
}

static void assert_refused(const char *type, struct hearth_str body, const char *part)
{
    assert_int_equal(parse(type, body), HEARTH_INVALID_ARGUMENT);
    if (strstr(g_err.msg, part) == NULL) {
        fail_msg("\"%s\" is not in \"%s\"", part, g_err.msg);
    }
}

static void refuses_bad_boundaries(void **state)
{
    (void)state;
    struct hearth_str body = HEARTH_STR("--xYz--\r\n");
    char type[200] = "multipart/form-data; boundary=";
    assert_refused("multipart/form-data", body, "has no boundary");
    assert_refused("multipart/form-data; boundary=", body, "has no boundary");
    assert_refused("multipart/form-data; boundary=\"open", body, "has no boundary");
    assert_refused("multipart/form-data; boundary=\"a\rb\"", body, "RFC 2046");
    assert_refused("multipart/form-data; boundary=\"a \"", body, "RFC 2046");
    memset(type + strlen(type), 'b', 71);
    assert_refused(type, body, "RFC 2046");
}

static void refuses_truncated_and_malformed_forms(void **state)
{
    (void)state;
    assert_refused(TYPE, HEARTH_STR(""), "is truncated");
    assert_refused(TYPE, HEARTH_STR("no form"), "is truncated");
    assert_refused(TYPE, HEARTH_STR("--xYz\r\n" FILE_HEAD("p") "\r\nbytes"), "is truncated");
    assert_refused(TYPE, HEARTH_STR("--xYz\r\n" FILE_HEAD("p") "\r\nbytes--xYz--"), "is truncated");
    assert_refused(TYPE, HEARTH_STR("--xYz\r\nA: b\r\n\r\nx\r\n--xYz--"), "Content-Disposition");
    assert_refused(
        TYPE, HEARTH_STR("--xYz\r\nContent-Disposition: attachment; name=a\r\n\r\n\r\n--xYz--"),
        "Content-Disposition");
    assert_refused(TYPE, HEARTH_STR("--xYz\r\nContent-Disposition: form-data\r\n\r\n\r\n--xYz--"),
                   "Content-Disposition");
    assert_refused(TYPE, HEARTH_STR("--xYz\r\nA: b\r\n--xYz--"), "headers do not end");
}

static void limits_parts_and_headers(void **state)
{
    (void)state;
    static char body[HEARTH_MULTIPART_MAX_HEADER_BYTES * 2 + 65 * 128];
    for (unsigned n = HEARTH_MULTIPART_MAX_PARTS; n <= HEARTH_MULTIPART_MAX_PARTS + 1; n++) {
        size_t at = 0;
        for (unsigned i = 0; i < n; i++) {
            at += (size_t)snprintf(body + at, sizeof body - at,
                                   "--xYz\r\n" FILE_HEAD("p") "\r\n%u\r\n", i);
        }
        at += (size_t)snprintf(body + at, sizeof body - at, "--xYz--");
        enum hearth_status status = parse(TYPE, hearth_str_n(body, at));
        assert_int_equal(status,
                         n <= HEARTH_MULTIPART_MAX_PARTS ? HEARTH_OK : HEARTH_INVALID_ARGUMENT);
    }

    int at = snprintf(body, sizeof body, "--xYz\r\n" FILE_HEAD("p") "X: ");
    memset(body + at, 'y', HEARTH_MULTIPART_MAX_HEADER_BYTES);
    at += (int)HEARTH_MULTIPART_MAX_HEADER_BYTES;
    at += snprintf(body + at, sizeof body - (size_t)at, "\r\n\r\nx\r\n--xYz--");
    assert_refused(TYPE, hearth_str_n(body, (size_t)at), "headers do not end");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(returns_files_and_plain_fields),
        cmocka_unit_test(reads_lines_that_end_with_lf_and_parameters_in_any_form),
        cmocka_unit_test(the_first_of_several_files_with_one_name_is_found),
        cmocka_unit_test(a_form_without_parts_is_empty),
        cmocka_unit_test(refuses_bad_boundaries),
        cmocka_unit_test(refuses_truncated_and_malformed_forms),
        cmocka_unit_test(limits_parts_and_headers),
    };

    return cmocka_run_group_tests_name("multipart", tests, NULL, NULL);
}
