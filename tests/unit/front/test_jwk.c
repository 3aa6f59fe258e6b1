/* test_jwk.c -- key sets and signatures, by the examples of the specifications. */
#include "hearth/base/base64.h"

#include "oidc/jwk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

/* RFC 7515, appendix A.2 and A.3: the keys; RFC 8037, appendix A.2. */
#define RSA_N                                                                                      \
    "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4" \
    "d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5re" \
    "xMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxX" \
    "FvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ"
#define RSA_KEY "\"kty\":\"RSA\",\"n\":\"" RSA_N "\",\"e\":\"AQAB\""
#define EC_KEY                                               \
    "\"kty\":\"EC\",\"crv\":\"P-256\","                      \
    "\"x\":\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU\"," \
    "\"y\":\"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0\""
#define ED_KEY \
    "\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\""
#define CLAIMS                                                                                   \
    "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cn" \
    "VlfQ"

static struct hearth_jwks *must_parse(const char *json)
{
    struct hearth_jwks *set = NULL;
    struct hearth_err err = HEARTH_ERR_INIT;

    if (hearth_jwks_parse(hearth_str_c(json), &set, &err) != HEARTH_OK) {
        print_error("%s\n", err.msg);
        fail();
    }

    return set;
}

static bool verifies(const struct hearth_jwks *set, const char *alg_name, const char *text,
                     const char *signature)
{
    const struct hearth_jwt_alg *alg = hearth_jwt_alg_find(hearth_str_c(alg_name));
    const struct hearth_jwk *key = hearth_jwks_find(set, hearth_str_n(NULL, 0), alg);
    struct hearth_arena arena;
    struct hearth_str bytes;

    assert_non_null(key);
    hearth_arena_init(&arena, 0);
    assert_true(hearth_base64_decode(hearth_str_c(signature), &arena, &bytes));
    bool is_right = hearth_jwk_verify(key, alg, hearth_str_c(text), bytes);
    hearth_arena_release(&arena);

    return is_right;
}

static void verifies_the_examples_of_the_specifications(void **state)
{
    (void)state;
    static const struct {
        const char *json, *alg, *text, *signature;
    } cases[] = {
        {"{\"keys\":[{" RSA_KEY "}]}", "RS256", "eyJhbGciOiJSUzI1NiJ9." CLAIMS,
         "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_"
         "O8W2F"
         "p5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_"
         "nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQB"
         "MHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-"
         "eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeY"
         "I2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw"},
        {"{\"keys\":[{" EC_KEY "}]}", "ES256", "eyJhbGciOiJFUzI1NiJ9." CLAIMS,
         "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q"},
        {"{\"keys\":[{" ED_KEY "}]}", "EdDSA",
         "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc",
         "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg"},
    };

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        struct hearth_jwks *set = must_parse(cases[i].json);
        assert_true(verifies(set, cases[i].alg, cases[i].text, cases[i].signature));
        assert_false(verifies(set, cases[i].alg, "another text", cases[i].signature));
        assert_false(verifies(set, cases[i].alg, cases[i].text, "AAAA"));
        assert_false(verifies(set, cases[i].alg, cases[i].text, ""));
        hearth_jwks_release(set);
    }
}

static void has_no_algorithm_that_needs_a_shared_secret(void **state)
{
    (void)state;
    static const char *const names[] = {"none",  "None", "HS256", "HS512",
                                        "rs256", "RS1",  "",      "ES256K"};

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(names); i++) {
        assert_null(hearth_jwt_alg_find(hearth_str_c(names[i])));
    }
}

static void an_algorithm_finds_only_keys_of_its_kind(void **state)
{
    (void)state;
    struct hearth_jwks *set =
        must_parse("{\"keys\":[{\"kid\":\"a\"," RSA_KEY ",\"alg\":\"RS256\"},{\"kid\":\"a\"," EC_KEY
                   "},{\"kid\":\"b\"," EC_KEY "}]}");
    static const struct {
        const char *alg, *id; /* id NULL: the JWT has none */
        int found;            /* -1: none */
    } cases[] = {{"RS256", "a", 0},  {"RS384", "a", -1}, {"PS256", "a", -1}, {"ES256", "a", 1},
                 {"ES256", "b", 2},  {"RS256", "b", -1}, {"ES384", "a", -1}, {"ES256", "", -1},
                 {"RS256", NULL, 0}, {"ES256", NULL, -1}};

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        const struct hearth_jwk *key = hearth_jwks_find(
            set, hearth_str_c(cases[i].id), hearth_jwt_alg_find(hearth_str_c(cases[i].alg)));
        assert_ptr_equal(key, cases[i].found < 0 ? NULL : &set->keys[cases[i].found]);
    }
    hearth_jwks_release(set);
}

static void keys_that_are_not_for_us_are_ignored(void **state)
{
    (void)state;
    static const char *const keys[] = {
        "{\"kty\":\"oct\",\"k\":\"AAAA\"}",
        "{" RSA_KEY ",\"use\":\"enc\"}",
        "{" RSA_KEY ",\"alg\":\"ES256\"}",
        "{" RSA_KEY ",\"alg\":\"RSA-OAEP\"}",
        "{" RSA_KEY ",\"key_ops\":[\"encrypt\"]}",
        "{\"kty\":\"RSA\",\"n\":\"" RSA_N "\",\"e\":\"AQ\"}",   /* 1 */
        "{\"kty\":\"RSA\",\"n\":\"" RSA_N "\",\"e\":\"AQAA\"}", /* even */
        "{\"kty\":\"RSA\",\"n\":\"AQAB\",\"e\":\"AQAB\"}",      /* short */
        "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"AAAA\",\"y\":\"AAAA\"}",
        "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU\","
        "\"y\":\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU\"}", /* not on the curve */
        "{\"kty\":\"EC\",\"crv\":\"secp256k1\"}",
        "{\"kty\":\"OKP\",\"crv\":\"X25519\",\"x\":\"11qYAYKxCrfVS_"
        "7TyWQHOg7hcvPapiMlrwIaaPcHURo\"}",
        "{}",
        "7",
    };
    char json[2048];
    struct hearth_jwks *set;
    struct hearth_err err = HEARTH_ERR_INIT;

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(keys); i++) {
        (void)snprintf(json, sizeof json, "{\"keys\":[%s]}", keys[i]);
        assert_int_equal(hearth_jwks_parse(hearth_str_c(json), &set, &err),
                         HEARTH_INVALID_ARGUMENT);
        (void)snprintf(json, sizeof json, "{\"keys\":[%s,{" EC_KEY "}]}", keys[i]);
        set = must_parse(json);
        assert_int_equal(set->n, 1);
        hearth_jwks_release(set);
    }
}

static void texts_that_are_not_key_sets_are_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "[]", "{}", "{\"keys\":{}}", "{\"keys\":[{" EC_KEY "}"};
    struct hearth_jwks *set;
    struct hearth_err err = HEARTH_ERR_INIT;

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(texts); i++) {
        assert_int_equal(hearth_jwks_parse(hearth_str_c(texts[i]), &set, &err),
                         HEARTH_INVALID_ARGUMENT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verifies_the_examples_of_the_specifications),
        cmocka_unit_test(has_no_algorithm_that_needs_a_shared_secret),
        cmocka_unit_test(an_algorithm_finds_only_keys_of_its_kind),
        cmocka_unit_test(keys_that_are_not_for_us_are_ignored),
        cmocka_unit_test(texts_that_are_not_key_sets_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
