/*
 * json_checks.h -- what the tests of proto3 JSON share. Include after cmocka.h.
 */
#ifndef HEARTH_TEST_JSON_CHECKS_H
#define HEARTH_TEST_JSON_CHECKS_H

#include "hearth/codec/pb.h"

#include "all_types.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct hearth_arena g_arena;
static struct hearth_err g_err;

static int start(void **state)
{
    (void)state;
    hearth_arena_init(&g_arena, 0);
    g_err = (struct hearth_err)HEARTH_ERR_INIT;
    return 0;
}

static int stop(void **state)
{
    (void)state;
    hearth_arena_release(&g_arena);
    return 0;
}

static void *read_json(const ProtobufCMessageDescriptor *type, const char *json)
{
    ProtobufCMessage *message = NULL;
    enum hearth_status status =
        hearth_pb_from_json(type, hearth_str_c(json), &g_arena, &message, &g_err);
    assert_int_equal(status == HEARTH_OK, message != NULL);
    return message;
}

static const char *write_json(const void *message)
{
    struct hearth_buf out;

    hearth_buf_init(&out, 0);
    hearth_pb_to_json(message, &out);
    assert_false(hearth_buf_failed(&out));
    const char *text = hearth_arena_strndup(&g_arena, out.p, out.n);
    hearth_buf_release(&out);

    return text;
}

/* Reading `json` and writing it again gives `want`. */
static void becomes(const ProtobufCMessageDescriptor *type, const char *json, const char *want)
{
    void *message = read_json(type, json);
    if (message == NULL) {
        fail_msg("%s: %s", json, g_err.msg);
    }
    assert_string_equal(write_json(message), want);
}

static void refuses(const ProtobufCMessageDescriptor *type, const char *json, const char *why)
{
    if (read_json(type, json) != NULL) {
        fail_msg("accepts %s", json);
    }

    assert_int_equal(g_err.status, HEARTH_INVALID_ARGUMENT);
    if (strstr(g_err.msg, why) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", g_err.msg, why);
    }
}

#define ALL          &all_types_descriptor
#define JSON_TEST(f) cmocka_unit_test_setup_teardown(f, start, stop)

#endif
