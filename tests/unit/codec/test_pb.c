/* test_pb.c -- unpacking of the wire form, and input that is refused before protobuf-c reads it. */
#include "hearth/base/mem.h"
#include "hearth/codec/pb.h"
#include "hearth/pb/google/v1/profile.pb-c.h"
#include "hearth/pb/opentelemetry/proto/trace/v1/trace.pb-c.h"
#include "hearth/pb/querier/v1/querier.pb-c.h"
#include "hearth/pb/types/v1/types.pb-c.h"

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

/* From an exact-size copy, so that ASan sees a read past the end. */
static void *unpack(const ProtobufCMessageDescriptor *type, struct hearth_str wire)
{
    char *exact = hearth_mem_alloc(wire.n);

    assert_non_null(exact);
    if (wire.n > 0) {
        memcpy(exact, wire.p, wire.n);
    }

    ProtobufCMessage *message = NULL;
    enum hearth_status status =
        hearth_pb_unpack(type, hearth_str_n(exact, wire.n), &g_arena, &message, &g_err);
    assert_int_equal(status == HEARTH_OK, message != NULL);
    hearth_mem_free(exact);

    return message;
}

static void refuses(const ProtobufCMessageDescriptor *type, struct hearth_str wire, const char *why)
{
    assert_null(unpack(type, wire));
    assert_int_equal(g_err.status, HEARTH_INVALID_ARGUMENT);
    if (strstr(g_err.msg, why) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", g_err.msg, why);
    }
}

static void unpacks_copies_into_the_arena(void **state)
{
    (void)state;
    Types__V1__LabelPair *pair =
        unpack(&types__v1__label_pair__descriptor, HEARTH_STR("\x0a\4name\x12\5value"));
    assert_string_equal(pair->name, "name");
    assert_string_equal(pair->value, "value");
    assert_non_null(unpack(&types__v1__label_pair__descriptor, hearth_str_n(NULL, 0)));
}

static void packs_rows_that_it_unpacked(void **state)
{
    (void)state;
    Querier__V1__Level level = QUERIER__V1__LEVEL__INIT;
    int64_t values[] = {0, -1, INT64_MIN, INT64_MAX, 300};
    level.n_values = HEARTH_ARRAY_LEN(values);
    level.values = values;
    Querier__V1__Level *levels[] = {&level, &level};
    char *names[] = {(char[]){"total"}, (char[]){"main"}};
    Querier__V1__FlameGraph graph = QUERIER__V1__FLAME_GRAPH__INIT;
    graph.n_names = 2;
    graph.names = names;
    graph.n_levels = 2;
    graph.levels = levels;
    graph.max_self = 7;
    struct hearth_buf wire, again;
    hearth_buf_init(&wire, 0);
    hearth_buf_init(&again, 0);
    hearth_buf_cstr(&wire, "x");
    hearth_pb_pack(&graph.base, &wire);
    Querier__V1__FlameGraph *back =
        unpack(&querier__v1__flame_graph__descriptor, hearth_str_n(wire.p + 1, wire.n - 1));
    assert_int_equal(back->n_levels, 2);
    assert_memory_equal(back->levels[1]->values, values, sizeof values);
    hearth_buf_cstr(&again, "x");
    hearth_pb_pack(&back->base, &again);
    assert_true(hearth_str_eq(hearth_buf_view(&wire), hearth_buf_view(&again)));
    hearth_buf_release(&again);
    hearth_buf_release(&wire);
}

static void takes_packed_and_unpacked_numbers(void **state)
{
    (void)state;
    Google__V1__Sample *sample =
        unpack(&google__v1__sample__descriptor, HEARTH_STR("\x0a\2\1\2\x08\3\x10\4\x12\1\5"));
    assert_int_equal(sample->n_location_id, 3);
    assert_int_equal(sample->location_id[2], 3);
    assert_int_equal(sample->n_value, 2);
    assert_int_equal(sample->value[1], 5);
}

static void keeps_unknown_fields(void **state)
{
    (void)state;
    struct hearth_str wire =
        HEARTH_STR("\x0a\1a\xf8\1\5\xfa\1\2zz\xfd\1\1\2\3\4\xf9\1\1\2\3\4\5\6\7\x08");
    ProtobufCMessage *message = unpack(&types__v1__label_pair__descriptor, wire);
    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    hearth_pb_pack(message, &out);
    assert_true(hearth_str_eq(hearth_buf_view(&out), wire));
    hearth_buf_release(&out);
}

static void refuses_malformed_bytes_and_names_their_place(void **state)
{
    (void)state;
    const ProtobufCMessageDescriptor *pair = &types__v1__label_pair__descriptor;
    const ProtobufCMessageDescriptor *sample = &google__v1__sample__descriptor;
    refuses(pair, HEARTH_STR("\x0a\1a\x12\5v"),
            "byte 3: types.v1.LabelPair.value: a value ends after");
    refuses(pair, HEARTH_STR("\x0a"), "a length is truncated");
    refuses(pair, HEARTH_STR("\x0a\xff\xff\xff\xff\x0f"), "a length is truncated or too large");
    refuses(pair,
            HEARTH_STR("\x0a\x81\x80\x80\x80\x80\x00"
                       "a"),
            "a length is truncated or too large");
    refuses(pair, HEARTH_STR("\x08\1"), "name: wire type does not fit");
    refuses(pair, HEARTH_STR("\x00\1"), "field number");
    refuses(pair, HEARTH_STR("\x80"), "field number");
    refuses(pair, HEARTH_STR("\xff\xff\xff\xff\x1f\1"), "field number");
    refuses(pair, HEARTH_STR("\xf8\1\xff\xff\xff\xff\xff\xff\xff\xff\xff\2"),
            "a varint is truncated");
    refuses(pair, HEARTH_STR("\xfb\1\xfc\1"), "groups are not supported");
    refuses(pair, HEARTH_STR("\xfe\1"), "groups are not supported");
    refuses(pair, HEARTH_STR("\xf9\1\1\2\3"), "ends after");
    refuses(sample, HEARTH_STR("\x12\2\1\x80"), "value: packed values end inside");
    refuses(&all_types_descriptor, HEARTH_STR("\x82\2\7zzzzzzz"), "many_double: packed values end");
}

static void repairs_texts_of_opentelemetry(void **state)
{
    (void)state;
    const ProtobufCMessageDescriptor *span = &opentelemetry__proto__trace__v1__span__descriptor;

    /* name, trace state, key and value of an attribute, and an id, which is not text */
    Opentelemetry__Proto__Trace__V1__Span *found = unpack(
        span, HEARTH_STR("\x2a\3a\0b\x1a\2ok\x4a\x0a\x0a\2\xff\x6b\x12\4\x0a\2\xc3z\x12\2\xff\0"));
    assert_string_equal(found->name, "a?b");
    assert_string_equal(found->trace_state, "ok");
    assert_string_equal(found->attributes[0]->key, "?k");
    assert_string_equal(found->attributes[0]->value->string_value, "?z");
    assert_memory_equal(found->span_id.data, "\xff", 2);
    refuses(span, HEARTH_STR("\x2a\1\xff\x2a\7z"), "name: a value ends after");
    hearth_arena_release(&g_arena);
    hearth_arena_init(&g_arena, 2000);
    char large[1503] = "\x2a\xdc\x0b";
    assert_null(unpack(span, hearth_str_n(large, sizeof large)));
    assert_int_equal(g_err.status, HEARTH_NO_MEMORY);
}

static void refuses_text_that_is_not_utf8_or_holds_a_nul(void **state)
{
    (void)state;
    const ProtobufCMessageDescriptor *pair = &types__v1__label_pair__descriptor;
    refuses(pair, HEARTH_STR("\x0a\1\xff"), "name: text is not UTF-8");
    refuses(pair, HEARTH_STR("\x12\3a\0b"), "value: text is not UTF-8, or contains a NUL");
    refuses(&querier__v1__flame_graph__descriptor, HEARTH_STR("\x0a\2\xc3("), "names: text");

    /* bytes may be anything */
    Querier__V1__SelectMergeStacktracesResponse *response = unpack(
        &querier__v1__select_merge_stacktraces_response__descriptor, HEARTH_STR("\x12\3\xff\0\1"));
    assert_int_equal(response->tree.len, 3);
}

/* `depth` messages, each in field `tag` of the one before. */
static struct hearth_buf nested(unsigned depth, unsigned tag)
{
    struct hearth_buf inner;

    hearth_buf_init(&inner, 0);
    for (unsigned i = 1; i < depth; i++) {
        struct hearth_buf outer;
        hearth_buf_init(&outer, 0);
        hearth_buf_varint(&outer, tag << 3 | 2);
        hearth_buf_varint(&outer, inner.n);
        hearth_buf_str(&outer, hearth_buf_view(&inner));
        hearth_buf_release(&inner);
        inner = outer;
    }

    return inner;
}

static void nesting_ends_at_the_limit(void **state)
{
    (void)state;
    static const unsigned tags[] = {18, 38};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(tags); i++) {
        struct hearth_buf deepest = nested(HEARTH_PB_MAX_DEPTH, tags[i]);
        assert_non_null(unpack(&all_types_descriptor, hearth_buf_view(&deepest)));
        hearth_buf_release(&deepest);
        struct hearth_buf beyond = nested(HEARTH_PB_MAX_DEPTH + 1, tags[i]);
        refuses(&all_types_descriptor, hearth_buf_view(&beyond), "nested too deep");
        hearth_buf_release(&beyond);
        struct hearth_buf bomb = nested(10001, tags[i]);
        refuses(&all_types_descriptor, hearth_buf_view(&bomb), "nested too deep");
        hearth_buf_release(&bomb);
    }
}

static void the_limit_of_the_arena_bounds_the_message(void **state)
{
    (void)state;
    struct hearth_buf wire;
    hearth_buf_init(&wire, 0);
    for (unsigned i = 0; i < 100000; i++) { /* 200 KB of empty labels: some 10 MB of messages */
        hearth_buf_append(&wire, "\x0a\0", 2);
    }

    struct hearth_arena small;
    hearth_arena_init(&small, 1 << 20);
    ProtobufCMessage *message = NULL;
    assert_int_equal(hearth_pb_unpack(&types__v1__labels__descriptor, hearth_buf_view(&wire),
                                      &small, &message, &g_err),
                     HEARTH_NO_MEMORY);
    assert_null(message);
    assert_true(small.refused);
    assert_string_equal(g_err.msg, "request needs more than its memory limit of 1048576 bytes");
    hearth_arena_release(&small);
    assert_non_null(unpack(&types__v1__labels__descriptor, hearth_buf_view(&wire)));
    hearth_buf_release(&wire);
}

static void packing_respects_the_limit_of_the_buffer(void **state)
{
    (void)state;
    Types__V1__LabelPair pair = TYPES__V1__LABEL_PAIR__INIT;
    pair.name = (char[]){"abc"};
    struct hearth_buf out;
    hearth_buf_init(&out, 5);
    hearth_pb_pack(&pair.base, &out);
    assert_int_equal(out.n, 5);
    hearth_pb_pack(&pair.base, &out);
    assert_true(hearth_buf_failed(&out));
    hearth_buf_release(&out);
}

#define PB_TEST(f) cmocka_unit_test_setup_teardown(f, start, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PB_TEST(unpacks_copies_into_the_arena),
        PB_TEST(packs_rows_that_it_unpacked),
        PB_TEST(takes_packed_and_unpacked_numbers),
        PB_TEST(keeps_unknown_fields),
        PB_TEST(refuses_malformed_bytes_and_names_their_place),
        PB_TEST(refuses_text_that_is_not_utf8_or_holds_a_nul),
        PB_TEST(repairs_texts_of_opentelemetry),
        PB_TEST(nesting_ends_at_the_limit),
        PB_TEST(the_limit_of_the_arena_bounds_the_message),
        PB_TEST(packing_respects_the_limit_of_the_buffer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
