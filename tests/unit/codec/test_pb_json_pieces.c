/*
 * test_pb_json_pieces.c -- JSON written piece by piece equals JSON written at once, for any message
 * and any size of the pieces.
 */
#include "hearth/base/base64.h"
#include "hearth/base/mem.h"
#include "hearth/codec/json_writer.h"
#include "hearth/codec/pb.h"
#include "hearth/pb/adhocprofiles/v1/adhocprofiles.pb-c.h"
#include "hearth/pb/capabilities/v1/feature_flags.pb-c.h"
#include "hearth/pb/google/v1/profile.pb-c.h"
#include "hearth/pb/grpc/health/v1/health.pb-c.h"
#include "hearth/pb/hearth/v1/admin.pb-c.h"
#include "hearth/pb/hearth/v1/query.pb-c.h"
#include "hearth/pb/push/v1/push.pb-c.h"
#include "hearth/pb/querier/v1/querier.pb-c.h"
#include "hearth/pb/settings/v1/recording_rules.pb-c.h"
#include "hearth/pb/settings/v1/settings.pb-c.h"
#include "hearth/pb/types/v1/types.pb-c.h"

#include "json_checks.h"
#include "rounds.h"

#define FILL_DEPTH 6u
#define LONG_BYTES 40000u /* length of a text that is written in parts */

static const ProtobufCMessageDescriptor *const g_types[] = {
    ALL,
    &querier__v1__profile_types_response__descriptor,
    &querier__v1__series_response__descriptor,
    &querier__v1__select_merge_stacktraces_response__descriptor,
    &querier__v1__select_merge_span_profile_response__descriptor,
    &querier__v1__select_series_response__descriptor,
    &querier__v1__select_heatmap_response__descriptor,
    &querier__v1__diff_response__descriptor,
    &querier__v1__analyze_query_response__descriptor,
    &types__v1__label_names_response__descriptor,
    &types__v1__label_values_response__descriptor,
    &types__v1__get_profile_stats_response__descriptor,
    &google__v1__profile__descriptor,
    &push__v1__push_request__descriptor,
    &hearth__v1__merge_response__descriptor,
    &hearth__v1__timeline_response__descriptor,
    &hearth__v1__top_response__descriptor,
    &hearth__v1__sandwich_response__descriptor,
    &hearth__v1__lines_response__descriptor,
    &hearth__v1__label_stats_response__descriptor,
    &hearth__v1__explain_response__descriptor,
    &hearth__v1__status_response__descriptor,
    &settings__v1__get_settings_response__descriptor,
    &settings__v1__list_recording_rules_response__descriptor,
    &adhocprofiles__v1__ad_hoc_profiles_get_response__descriptor,
    &capabilities__v1__get_feature_flags_response__descriptor,
    &grpc__health__v1__health_check_response__descriptor,
};

static uint32_t g_random = 2463534242u;

static uint32_t any(uint32_t n)
{
    g_random ^= g_random << 13;
    g_random ^= g_random >> 17;
    g_random ^= g_random << 5;
    return g_random % n;
}

/* Characters of one to four bytes, some to be escaped; now and then a long text. */
static char *any_text(void)
{
    static const char *const characters[] = {
        "a", "\"", "\n", "\xc3\xa4", "\xe2\x80\xa8", "\xf0\x9f\x94\xa5", "x", "\x01"};
    size_t n = any(50) == 0 ? LONG_BYTES : any(12);
    char *text = hearth_arena_alloc(&g_arena, n + 5);
    size_t at = 0;
    while (at < n) {
        const char *c = characters[any(HEARTH_ARRAY_LEN(characters))];
        memcpy(text + at, c, strlen(c));
        at += strlen(c);
    }

    text[at] = '\0';

    return text;
}

static ProtobufCMessage *any_message(const ProtobufCMessageDescriptor *type, unsigned depth);

static void fill_value(const ProtobufCFieldDescriptor *field, void *to, unsigned depth)
{
    uint64_t bits = (uint64_t)any(UINT32_MAX) << 32 | any(UINT32_MAX);
    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING:
        *(char **)to = any_text();
        return;
    case PROTOBUF_C_TYPE_BYTES: {
        char *text = any_text();
        *(ProtobufCBinaryData *)to =
            (ProtobufCBinaryData){.data = (uint8_t *)text, .len = strlen(text)};
        return;
    }
    case PROTOBUF_C_TYPE_MESSAGE:
        *(ProtobufCMessage **)to = any_message(field->descriptor, depth + 1);
        return;
    case PROTOBUF_C_TYPE_BOOL:
        *(protobuf_c_boolean *)to = (protobuf_c_boolean)any(2);
        return;
    case PROTOBUF_C_TYPE_ENUM:
        *(int *)to = (int)any(4);
        return;
    case PROTOBUF_C_TYPE_FLOAT:
        *(float *)to = (float)any(1000) / 8;
        return;
    case PROTOBUF_C_TYPE_DOUBLE:
        *(double *)to = (double)any(1000) / 7;
        return;
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        *(uint32_t *)to = (uint32_t)bits >> any(32);
        return;
    default:
        *(uint64_t *)to = bits >> any(64);
    }
}

static void fill_repeated(const ProtobufCFieldDescriptor *field, char *message, unsigned depth)
{
    static const size_t room = sizeof(ProtobufCBinaryData); /* size of the largest value */
    bool is_integers = field->type == PROTOBUF_C_TYPE_INT64 || field->type == PROTOBUF_C_TYPE_INT32;
    size_t n = depth > FILL_DEPTH ? 0 : is_integers ? any(700) : any(4);
    char *values = hearth_arena_calloc(&g_arena, n + 1, room);
    char *one = hearth_arena_calloc(&g_arena, 1, room);
    size_t size =
        field->type == PROTOBUF_C_TYPE_BYTES ? sizeof(ProtobufCBinaryData)
        : field->type == PROTOBUF_C_TYPE_STRING || field->type == PROTOBUF_C_TYPE_MESSAGE
            ? sizeof(void *)
        : field->type == PROTOBUF_C_TYPE_BOOL ? sizeof(protobuf_c_boolean)
        : field->type == PROTOBUF_C_TYPE_INT64 || field->type == PROTOBUF_C_TYPE_UINT64 ||
                field->type == PROTOBUF_C_TYPE_SINT64 || field->type == PROTOBUF_C_TYPE_FIXED64 ||
                field->type == PROTOBUF_C_TYPE_SFIXED64 || field->type == PROTOBUF_C_TYPE_DOUBLE
            ? 8
            : 4;
    for (size_t i = 0; i < n; i++) {
        fill_value(field, one, depth);
        memcpy(values + i * size, one, size);
    }

    memcpy(message + field->quantifier_offset, &n, sizeof n);
    memcpy(message + field->offset, &values, sizeof values);
}

static ProtobufCMessage *any_message(const ProtobufCMessageDescriptor *type, unsigned depth)
{
    char *message = hearth_arena_zalloc(&g_arena, type->sizeof_message);

    protobuf_c_message_init(type, message);
    for (unsigned i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &type->fields[i];
        bool is_time = strncmp(type->name, "google.protobuf.", 16) == 0;
        if (field->label == PROTOBUF_C_LABEL_REPEATED) {
            fill_repeated(field, message, depth);
        } else if (is_time) {
            memcpy(message + field->offset, &(int32_t){5}, sizeof(int32_t));
        } else if (field->type != PROTOBUF_C_TYPE_MESSAGE || depth < FILL_DEPTH) {
            if ((field->flags & (uint32_t)PROTOBUF_C_FIELD_FLAG_ONEOF) != 0) {
                memcpy(message + field->quantifier_offset, &field->id, sizeof field->id);
            }
            fill_value(field, message + field->offset, depth);
        }
    }

    return (ProtobufCMessage *)message;
}

static void assert_pieces(const ProtobufCMessage *message, size_t n, struct hearth_str want)
{
    struct hearth_buf piece, all;

    hearth_buf_init(&piece, 0);
    hearth_buf_init(&all, 0);
    struct hearth_pb_json *json = hearth_pb_json_new(message, &g_arena);
    assert_non_null(json);
    bool more = true;
    while (more) {
        hearth_buf_reset(&piece);
        more = hearth_pb_json_more(json, n, &piece);
        assert_false(hearth_buf_failed(&piece));
        assert_true(!more || piece.n >= n);
        assert_true(piece.n < n + HEARTH_PB_JSON_STEP_BYTES);
        hearth_buf_str(&all, hearth_buf_view(&piece));
    }

    hearth_pb_json_release(json);
    assert_int_equal(all.n, want.n);
    assert_memory_equal(all.p, want.p, want.n);
    hearth_buf_release(&piece);
    hearth_buf_release(&all);
}

static void pieces_of_any_size_make_the_whole_text_of_every_message(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 2, 7, 63, 1000, 65536, SIZE_MAX - 100000};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_types); i++) {
        for (int k = 0; k < test_rounds(8); k++) {
            hearth_arena_reset(&g_arena);
            const ProtobufCMessage *message = any_message(g_types[i], 1);
            const char *want = write_json(message);
            for (size_t s = 0; s < HEARTH_ARRAY_LEN(sizes); s++) {
                assert_pieces(message, sizes[s], hearth_str_c(want));
            }
        }
    }
}

/* Compare with the streaming writer, which writes no parts. */
static void assert_text(const char *text)
{
    struct all_types message;
    struct hearth_buf want;
    struct hearth_json json;

    protobuf_c_message_init(ALL, &message);
    message.one_string = (char *)(uintptr_t)text;
    hearth_buf_init(&want, 0);
    hearth_json_init(&json, &want);
    hearth_json_object(&json);
    hearth_json_key_c(&json, "oneString");
    hearth_json_string_c(&json, text);
    hearth_json_object_end(&json);
    assert_pieces(&message.base, 1, hearth_buf_view(&want));
    hearth_buf_release(&want);
}

static void a_long_text_is_never_divided_inside_a_character(void **state)
{
    (void)state;
    static const char *const characters[] = {"\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x94\xa5", "\x80",
                                             "\xf0\x9f"};
    static char text[LONG_BYTES + 16];
    for (size_t k = 0; k < HEARTH_ARRAY_LEN(characters); k++) {
        for (size_t shift = 0; shift < 5; shift++) { /* moves the ends of the parts */
            memset(text, 'x', shift);
            size_t at = shift, n = strlen(characters[k]);
            for (; at + n < LONG_BYTES; at += n) {
                memcpy(text + at, characters[k], n);
            }
            text[at] = '\0';
            assert_text(text);
        }
    }

    for (int k = 0; k < test_rounds(50); k++) { /* random bytes */
        for (size_t i = 0; i < LONG_BYTES; i++) {
            text[i] = (char)(1 + any(255));
        }
        text[LONG_BYTES] = '\0';
        assert_text(text);
    }
}

static void long_bytes_are_one_base64(void **state)
{
    (void)state;
    static uint8_t bytes[LONG_BYTES];
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (uint8_t)any(256);
    }

    for (size_t n = sizeof bytes - 3; n <= sizeof bytes; n++) {
        struct all_types message;
        struct hearth_buf want;
        protobuf_c_message_init(ALL, &message);
        message.one_bytes = (ProtobufCBinaryData){.data = bytes, .len = n};
        hearth_buf_init(&want, 0);
        hearth_buf_cstr(&want, "{\"oneBytes\":\"");
        hearth_base64_encode(hearth_str_n((const char *)bytes, n), &want);
        hearth_buf_cstr(&want, "\"}");
        assert_pieces(&message.base, 1, hearth_buf_view(&want));
        hearth_buf_release(&want);
    }
}

static void an_abandoned_text_leaves_no_memory(void **state)
{
    (void)state;
    struct all_types *message =
        read_json(ALL, "{\"byName\":{\"a\":\"1\",\"b\":\"2\",\"c\":\"3\"},\"oneInt32\":1}");
    for (size_t n = 1; n < 40; n++) { /* the sanitizer builds find leaks */
        struct hearth_buf out;
        hearth_buf_init(&out, 0);
        struct hearth_pb_json *json = hearth_pb_json_new(&message->base, &g_arena);
        (void)hearth_pb_json_more(json, n, &out);
        hearth_pb_json_release(json);
        hearth_buf_release(&out);
    }
}

static void a_full_buffer_ends_the_text(void **state)
{
    (void)state;
    struct all_types *message = read_json(ALL, "{\"manyString\":[\"aaaa\",\"bbbb\",\"cccc\"]}");
    struct hearth_buf out;
    hearth_buf_init(&out, 20);
    struct hearth_pb_json *json = hearth_pb_json_new(&message->base, &g_arena);
    assert_true(hearth_pb_json_more(json, SIZE_MAX, &out));
    assert_true(hearth_buf_failed(&out));
    hearth_pb_json_release(json);
    hearth_buf_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        JSON_TEST(pieces_of_any_size_make_the_whole_text_of_every_message),
        JSON_TEST(a_long_text_is_never_divided_inside_a_character),
        JSON_TEST(long_bytes_are_one_base64),
        JSON_TEST(an_abandoned_text_leaves_no_memory),
        JSON_TEST(a_full_buffer_ends_the_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
