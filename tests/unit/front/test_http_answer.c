/* test_http_answer.c -- errors of OTLP over HTTP: codes, encodings, and which ones may be retried.
 * */
#include "hearth/codec/pb.h"
#include "hearth/pb/google/rpc/status.pb-c.h"

#include "http/http_answer.h"
#include "http/http_call.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static struct hearth_http_answer answer_of(enum hearth_http_errors errors,
                                           enum hearth_status status, unsigned code)
{
    static struct hearth_http_call call;
    static struct hearth_rpc rpc;
    call = (struct hearth_http_call){.errors = errors, .code = code};
    memset(&rpc, 0, sizeof rpc);
    rpc.http = &call;
    rpc.status = status;
    (void)HEARTH_FAIL(&rpc.err, status, "said \"so\"");
    struct hearth_http_answer answer;
    hearth_http_answer_make(&rpc, NULL, true, &answer);
    return answer;
}

static bool is_told_when(const struct hearth_http_answer *answer)
{
    return answer->n_headers == 1 && strcmp(answer->headers[0].name, "Retry-After") == 0 &&
           strcmp(answer->headers[0].value, "1") == 0;
}

static void errors_are_statuses_in_the_encoding_of_the_request(void **state)
{
    static const struct {
        enum hearth_status status;
        unsigned set, code;
        int grpc;
        bool again;
    } cases[] = {
        {HEARTH_INVALID_ARGUMENT, 0, 400, 3, false}, {HEARTH_INVALID_ARGUMENT, 415, 415, 3, false},
        {HEARTH_UNIMPLEMENTED, 0, 404, 12, false},   {HEARTH_UNAUTHENTICATED, 0, 401, 16, false},
        {HEARTH_TOO_LARGE, 0, 413, 8, false},        {HEARTH_NO_MEMORY, 0, 429, 8, true},
        {HEARTH_UNAVAILABLE, 0, 503, 14, true},      {HEARTH_INTERNAL, 0, 500, 13, false},
    };
    (void)state;
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        struct hearth_arena arena;
        struct hearth_err err = HEARTH_ERR_INIT;
        ProtobufCMessage *message = NULL;
        hearth_arena_init(&arena, 1u << 16);
        struct hearth_http_answer answer =
            answer_of(HEARTH_HTTP_ERRORS_STATUS, cases[i].status, cases[i].set);
        assert_int_equal(answer.code, cases[i].code);
        assert_int_equal(is_told_when(&answer), cases[i].again);
        assert_string_equal(answer.content_type, "application/x-protobuf");
        assert_int_equal(hearth_pb_unpack(&google__rpc__status__descriptor,
                                          hearth_buf_view(&answer.body), &arena, &message, &err),
                         HEARTH_OK);
        assert_int_equal(((Google__Rpc__Status *)message)->code, cases[i].grpc);
        assert_string_equal(((Google__Rpc__Status *)message)->message, "said \"so\"");
        hearth_buf_release(&answer.body);
        hearth_arena_release(&arena);
        answer = answer_of(HEARTH_HTTP_ERRORS_STATUS_JSON, cases[i].status, cases[i].set);
        assert_int_equal(answer.code, cases[i].code);
        assert_int_equal(is_told_when(&answer), cases[i].again);
        assert_string_equal(answer.content_type, "application/json");
        char want[64];
        (void)snprintf(want, sizeof want, "{\"code\":%d,\"message\":\"said \\\"so\\\"\"}",
                       cases[i].grpc);
        assert_true(hearth_str_eq_c(hearth_buf_view(&answer.body), want));
        hearth_buf_release(&answer.body);
    }
}

static void errors_of_other_routes_are_connect_errors(void **state)
{
    (void)state;
    struct hearth_http_answer answer =
        answer_of(HEARTH_HTTP_ERRORS_CONNECT, HEARTH_UNIMPLEMENTED, 0);
    assert_int_equal(answer.code, 501);
    assert_true(hearth_str_eq_c(hearth_buf_view(&answer.body),
                                "{\"code\":\"unimplemented\",\"message\":\"said \\\"so\\\"\"}"));
    hearth_buf_release(&answer.body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_are_statuses_in_the_encoding_of_the_request),
        cmocka_unit_test(errors_of_other_routes_are_connect_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
