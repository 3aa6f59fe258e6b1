/* test_redact.c -- secrets go from captured texts in all the forms in which they come; the rest stays. */
#include "network/redact.h"
#include "rounds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static const char *const g_rules[] = {"authorization", "Set-Cookie",   "password",        "api_key",
                                      "token",         "access-token", "/\\d{4}-\\d{4}/", NULL};

static struct hearth_redactor *make(const char *const *rules)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_redactor *redactor = NULL;
    assert_int_equal(hearth_redactor_new(rules, &redactor, &err), HEARTH_OK);
    return redactor;
}

static void check(const char *text, size_t n_gone, const char *expected)
{
    struct hearth_redactor *redactor = make(g_rules);
    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    size_t n = hearth_redact(redactor, hearth_str_c(text), &out);
    hearth_buf_byte(&out, '\0');
    assert_string_equal(out.p, expected);
    assert_int_equal(n, n_gone);
    hearth_buf_release(&out);
    hearth_redactor_free(redactor);
}

#define GONE HEARTH_REDACTED

static void headers_lose_their_values_with_continuation_lines(void **state)
{
    (void)state;
    check("GET / HTTP/1.1\r\nAuthorization: Bearer s p\r\nHost: a\r\n\r\n", 1,
          "GET / HTTP/1.1\r\nAuthorization: " GONE "\r\nHost: a\r\n\r\n");
    check("set_cookie: a=b;\r\n c=d\r\nX: y\r\n", 1, "set_cookie: " GONE "\r\nX: y\r\n");
    check("AUTHORIZATION:\tx", 1, "AUTHORIZATION:\t" GONE);
    check("curl -H 'Authorization: Bearer x' http://y", 1,
          "curl -H 'Authorization: " GONE "' http://y");
}

static void fields_of_json_lose_their_values(void **state)
{
    (void)state;
    check("{\"user\":\"ann\",\"PassWord\" : \"a\\\"b\",\"n\":1}", 1,
          "{\"user\":\"ann\",\"PassWord\" : \"" GONE "\",\"n\":1}");
    check("{\"token\":12345,\"a\":2}", 1, "{\"token\":" GONE ",\"a\":2}");
    check("{\"token\":{\"x\":[\"}\",1]},\"a\":2}", 1, "{\"token\":" GONE ",\"a\":2}");
    check("{\"token\":\n  [\"a\",\n \"b\"]}", 1, "{\"token\":\n  " GONE "}");
    check("{\n  \"password\": \"x\",\n  \"b\": 1\n}", 1,
          "{\n  \"password\": \"" GONE "\",\n  \"b\": 1\n}");
    check("{\"p\\u0061ssword\":\"x\"}", 1, "{\"p\\u0061ssword\":\"" GONE "\"}");
    check("{\"in\":\"{\\\"password\\\":\\\"x\\\\\\\"y\\\",\\\"b\\\":1}\"}", 1,
          "{\"in\":\"{\\\"password\\\":\\\"" GONE "\\\",\\\"b\\\":1}\"}");
}

static void a_value_without_an_end_is_removed_to_the_end_of_the_text(void **state)
{
    (void)state;
    check("{\"password\":\"abc", 1, "{\"password\":\"" GONE);
    check("{\"password\":[1,2", 1, "{\"password\":" GONE);
    check("password=%22abc", 1, "password=%22" GONE);
}

static void queries_and_forms_lose_their_values(void **state)
{
    (void)state;
    check("POST /a?x=1&api-key=se,cret&y=2 HTTP/1.1", 1,
          "POST /a?x=1&api-key=" GONE "&y=2 HTTP/1.1");
    check("pass%77ord=a&b=c", 1, "pass%77ord=" GONE "&b=c");
    check("user[password]=a&b=c", 1, "user[password]=" GONE "&b=c");
    check("q=%7B%22token%22%3A%22abc%22%7D", 1, "q=%7B%22token%22%3A%22" GONE "%22%7D");
    check("--B\r\nContent-Disposition: form-data; name=\"password\"\r\n\r\nse\r\ncret\r\n--B--\r\n",
          1,
          "--B\r\nContent-Disposition: form-data; name=\"password\"\r\n\r\n" GONE "\r\n--B--\r\n");
}

static void xml_and_yaml_lose_their_values(void **state)
{
    (void)state;
    check("<u><password>abc</password><b>1</b></u>", 1,
          "<u><password>" GONE "</password><b>1</b></u>");
    check("<wsse:Password Type=\"x\">abc</wsse:Password><b>1</b>", 1,
          "<wsse:Password Type=\"x\">" GONE "</wsse:Password><b>1</b>");
    check("<password> <![CDATA[a<b]]>\n</password><b>1</b>", 1,
          "<password> <![CDATA[" GONE "]]>\n</password><b>1</b>");
    check("<password><![CDATA[abc", 1, "<password><![CDATA[" GONE);
    check("<password/><b>1</b>", 0, "<password/><b>1</b>");
    check("<u password=\"abc\" b=\"1\"/>", 1, "<u password=\"" GONE "\" b=\"1\"/>");
    check("<token password=\"abc\">v</token><b>1</b>", 2,
          "<token password=\"" GONE "\">" GONE "</token><b>1</b>");
    check("a: 1\n  password: two words\nb: 2\n", 1, "a: 1\n  password: " GONE "\nb: 2\n");
}

static void a_value_is_removed_to_its_end_however_it_begins(void **state)
{
    (void)state;
    check("Set-Cookie: \"x\"; id=s3cret\r\nHost: a\r\n", 1, "Set-Cookie: " GONE "\r\nHost: a\r\n");
    check("Authorization: [a] s3cret\r\nHost: a\r\n", 1, "Authorization: " GONE "\r\nHost: a\r\n");
    check("password: \"x\"\nb: 1\n", 1, "password: \"" GONE "\"\nb: 1\n");
    check("- a: b\n  password: \"x\"\n  user: ann\n", 1,
          "- a: b\n  password: \"" GONE "\"\n  user: ann\n");
    check("  token: {a: \"b\"},\n  user: ann\n", 1, "  token: " GONE ",\n  user: ann\n");
    check("password: {a: 1,\n b: 2}\nc: 1\n", 1, "password: " GONE "\nc: 1\n");
}

static void words_are_joined_in_any_way(void **state)
{
    (void)state;
    check("{\"apiKey\":\"x\",\"API_KEY\":\"y\"}", 2,
          "{\"apiKey\":\"" GONE "\",\"API_KEY\":\"" GONE "\"}");
    check("login --password=x -v", 1, "login --password=" GONE " -v");
}

static void values_named_by_the_preceding_field_are_removed(void **state)
{
    (void)state;
    check("[{\"name\":\"Authorization\",\"value\":\"a, b\"},{\"name\":\"x\",\"value\":\"y\"}]", 1,
          "[{\"name\":\"Authorization\",\"value\":\"" GONE "\"},{\"name\":\"x\",\"value\":\"y\"}]");
    check("{\\\"Key\\\":\\\"token\\\",\\\"Value\\\":\\\"a\\\"}", 1,
          "{\\\"Key\\\":\\\"token\\\",\\\"Value\\\":\\\"" GONE "\\\"}");
    check("{\"key\":\"token\",\"val\":\"a\"}", 1, "{\"key\":\"token\",\"val\":\"" GONE "\"}");
    check("<input name=\"token\" type=\"hidden\" value=\"abc\"/><b value=\"1\"/>", 1,
          "<input name=\"token\" type=\"hidden\" value=\"" GONE "\"/><b value=\"1\"/>");
    check("- name: PASSWORD\n  value: a b\n- name: X\n  value: c\n", 1,
          "- name: PASSWORD\n  value: " GONE "\n- name: X\n  value: c\n");
}

static void encodings_do_not_hide_names_nor_ends(void **state)
{
    (void)state;
    check("{&quot;password&quot;:&quot;a,b&quot;}", 1,
          "{&quot;password&quot;:&quot;" GONE "&quot;}");
    check("{\\u0022token\\u0022:\\u0022a,b\\u0022}", 1,
          "{\\u0022token\\u0022:\\u0022" GONE "\\u0022}");
    check("to=x%253Ftoken%253Dabc&b=1", 1, "to=x%253Ftoken%253D" GONE "&b=1");
    check("100%api_key=abc", 1, "100%api_key=" GONE);
    check("%25access-token=1&%accessToken=abc", 2, "%25access-token=" GONE "&%accessToken=" GONE);
}

static void expressions_match_anywhere(void **state)
{
    (void)state;
    check("card 1234-5678 and 1111-22223", 2, "card " GONE " and " GONE "3");
}

static void texts_without_secrets_stay_as_they_are(void **state)
{
    (void)state;
    static const char *const texts[] = {"",
                                        "tokens=1&mytoken=2&my_token=3",
                                        "the token is there",
                                        "{\"a\":\"token\"}",
                                        "GET /token HTTP/1.1\r\nHost: x\r\n",
                                        "password",
                                        "password=",
                                        "{\"b\":[1,2,{\"c\":null}]}",
                                        "\xff\xfe%zz\\u12"};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(texts); i++) {
        check(texts[i], 0, texts[i]);
    }
}

static void names_of_tags_are_recognised_in_any_spelling(void **state)
{
    (void)state;
    struct hearth_redactor *redactor = make(g_rules);
    assert_true(hearth_redact_is_name(redactor, HEARTH_STR("API-KEY")));
    assert_true(hearth_redact_is_name(redactor, HEARTH_STR("set_cookie")));
    assert_false(hearth_redact_is_name(redactor, HEARTH_STR("data_content")));
    assert_true(hearth_redact_is_name(redactor, HEARTH_STR("http.request.header.authorization")));
    assert_true(hearth_redact_is_name(redactor, HEARTH_STR("headers[Set-Cookie]")));
    assert_false(hearth_redact_is_name(redactor, HEARTH_STR("token.count")));
    assert_false(hearth_redact_is_name(redactor, HEARTH_STR("..")));
    hearth_redactor_free(redactor);
}

static void rules_with_asterisks_match_parts_of_names(void **state)
{
    (void)state;
    static const char *const rules[] = {"*pass-word", "card_*", "*Secret*", "pin", NULL};
    static const char *const names[] = {"password", "db_password", "DB-PASS-WORD",
                                        "card",     "cardNumber",  "secret",
                                        "a_secret", "secrets_b",   "pin"};
    static const char *const others[] = {"password1", "discard", "secre", "spin", "pins", "word"};
    struct hearth_redactor *redactor = make(rules);
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(names); i++) {
        assert_true(hearth_redact_is_name(redactor, hearth_str_c(names[i])));
    }
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(others); i++) {
        assert_false(hearth_redact_is_name(redactor, hearth_str_c(others[i])));
    }
    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    assert_int_equal(
        hearth_redact(redactor, HEARTH_STR("{\"db_password\":\"x\",\"discard\":1}"), &out), 1);
    hearth_buf_byte(&out, '\0');
    assert_string_equal(out.p, "{\"db_password\":\"" GONE "\",\"discard\":1}");
    hearth_buf_release(&out);
    hearth_redactor_free(redactor);
}

static void bad_rules_are_named(void **state)
{
    (void)state;
    static const char *const bad[] = {"a b", "/(/", "", "naïve", "*", "**", "a*b", "**a", "*-*"};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(bad); i++) {
        const char *const rules[] = {"password", bad[i], NULL};
        struct hearth_err err = HEARTH_ERR_INIT;
        struct hearth_redactor *redactor = NULL;
        assert_int_equal(hearth_redactor_new(rules, &redactor, &err), HEARTH_INVALID_ARGUMENT);
        assert_non_null(strstr(err.msg, "redact"));
    }
    hearth_redactor_free(make(NULL));
}

/* Pieces that mean something, in any order: it ends, and a secret behind its name in quotes is never left. */
static void random_pieces_never_keep_the_secret(void **state)
{
    static const char *const pieces[] = {
        "\"",    "'",    "{",  "}",     "[", "]",         ":",        "=",   "&",       "\\",
        "\\\"",  "\r\n", "\n", " ",     "<", ">",         "%22",      "%3A", "\\u0022", ",",
        "name=", "x",    "/",  "token", "-", "form-data", "\r\n\r\n", "\n--"};
    struct hearth_redactor *redactor = make(g_rules);
    (void)state;
    srand(7);
    for (int round = 0; round < test_rounds(20000); round++) {
        struct hearth_buf in, out;
        hearth_buf_init(&in, 0);
        hearth_buf_init(&out, 0);
        for (int i = rand() % 12; i > 0; i--) {
            hearth_buf_cstr(&in, pieces[(size_t)rand() % HEARTH_ARRAY_LEN(pieces)]);
        }
        hearth_buf_cstr(&in, "\n{\"password\":\"SECRET\"}");
        for (int i = rand() % 8; i > 0; i--) {
            hearth_buf_cstr(&in, pieces[(size_t)rand() % HEARTH_ARRAY_LEN(pieces)]);
        }
        assert_true(hearth_redact(redactor, hearth_buf_view(&in), &out) > 0);
        assert_false(hearth_buf_failed(&out));
        if (memmem(out.p, out.n, "SECRET", 6) != NULL) {
            print_error("%.*s\n", (int)in.n, in.p);
        }
        assert_null(memmem(out.p, out.n, "SECRET", 6));
        hearth_buf_release(&in);
        hearth_buf_release(&out);
    }
    hearth_redactor_free(redactor);
}

/* A megabyte of what makes one look far, again and again: quadratic work would take minutes. */
static void hostile_texts_take_linear_time(void **state)
{
    static const char *const parts[] = {"\\",
                                        "<token ",
                                        "form-data; name=token ",
                                        "token:{",
                                        "token ",
                                        "token=\\\"",
                                        " ",
                                        "%22token%22",
                                        "token: \"a\"\n ",
                                        "name=\"token\",",
                                        "%252525token=",
                                        "&quot;token&quot;:&quot;"};
    struct hearth_redactor *redactor = make(g_rules);
    (void)state;
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(parts); i++) {
        struct hearth_buf in, out;
        hearth_buf_init(&in, 0);
        hearth_buf_init(&out, 0);
        while (in.n < (size_t)1 << 20) {
            hearth_buf_cstr(&in, parts[i]);
        }
        (void)hearth_redact(redactor, hearth_buf_view(&in), &out);
        assert_false(hearth_buf_failed(&out));
        hearth_buf_release(&in);
        hearth_buf_release(&out);
    }
    hearth_redactor_free(redactor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headers_lose_their_values_with_continuation_lines),
        cmocka_unit_test(fields_of_json_lose_their_values),
        cmocka_unit_test(a_value_without_an_end_is_removed_to_the_end_of_the_text),
        cmocka_unit_test(queries_and_forms_lose_their_values),
        cmocka_unit_test(xml_and_yaml_lose_their_values),
        cmocka_unit_test(a_value_is_removed_to_its_end_however_it_begins),
        cmocka_unit_test(words_are_joined_in_any_way),
        cmocka_unit_test(values_named_by_the_preceding_field_are_removed),
        cmocka_unit_test(encodings_do_not_hide_names_nor_ends),
        cmocka_unit_test(expressions_match_anywhere),
        cmocka_unit_test(texts_without_secrets_stay_as_they_are),
        cmocka_unit_test(names_of_tags_are_recognised_in_any_spelling),
        cmocka_unit_test(rules_with_asterisks_match_parts_of_names),
        cmocka_unit_test(bad_rules_are_named),
        cmocka_unit_test(random_pieces_never_keep_the_secret),
        cmocka_unit_test(hostile_texts_take_linear_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
