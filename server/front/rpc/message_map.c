/* message_map.c -- structs of the engine as protobuf messages, by a table of their members. */
#include "rpc/message_map.h"

#include "hearth/base/clock.h"
#include "hearth/model/labels.h"
#include "hearth/pb/types/v1/types.pb-c.h"

#include "rpc/messages.h"
#include "rpc/rpc.h"

#include <assert.h>
#include <string.h>

/* ---- numbers and texts ---- */

static size_t number_bytes(enum hearth_member_type type)
{
    switch (type) {
    case HEARTH_MEMBER_BOOL:
        return sizeof(bool);
    case HEARTH_MEMBER_I32:
    case HEARTH_MEMBER_U32:
        return 4;
    default:
        return 8;
    }
}

/* The value of an integer; of a larger one than INT64_MAX, INT64_MAX. */
static int64_t load_integer(enum hearth_member_type type, const void *from)
{
    uint32_t u32;
    int32_t i32;
    int64_t i64;
    bool is_set;

    switch (type) {
    case HEARTH_MEMBER_BOOL:
        memcpy(&is_set, from, sizeof is_set);
        return is_set;
    case HEARTH_MEMBER_I32:
        memcpy(&i32, from, sizeof i32);
        return i32;
    case HEARTH_MEMBER_U32:
        memcpy(&u32, from, sizeof u32);
        return u32;
    case HEARTH_MEMBER_U64:
        memcpy(&i64, from, sizeof i64);
        return i64 < 0 ? INT64_MAX : i64;
    default:
        memcpy(&i64, from, sizeof i64);
        return i64;
    }
}

static int64_t clamp(int64_t value, int64_t least, int64_t most)
{
    return value < least ? least : value > most ? most : value;
}

static void store_integer(enum hearth_member_type type, int64_t value, void *to)
{
    if (type == HEARTH_MEMBER_I32) {
        int32_t i32 = (int32_t)clamp(value, INT32_MIN, INT32_MAX);
        memcpy(to, &i32, sizeof i32);
    } else if (type == HEARTH_MEMBER_U32) {
        uint32_t u32 = (uint32_t)clamp(value, 0, UINT32_MAX);
        memcpy(to, &u32, sizeof u32);
    } else {
        memcpy(to, &value, sizeof value);
    }
}

static char *make_id_text(struct hearth_rpc *rpc, enum hearth_member_type type, const void *from)
{
    if (type == HEARTH_MEMBER_SPAN_ID) {
        uint64_t span;
        memcpy(&span, from, sizeof span);
        return hearth_rpc_span_text(rpc, span);
    }
    if (type == HEARTH_MEMBER_TRACE_ID) {
        struct hearth_trace_id trace;
        memcpy(&trace, from, sizeof trace);
        return hearth_rpc_trace_text(rpc, trace);
    }
    assert(type == HEARTH_MEMBER_PROFILE_ID);

    struct hearth_profile_id profile;
    char text[HEARTH_PROFILE_ID_TEXT + 1];
    memcpy(&profile, from, sizeof profile);
    hearth_profile_id_format(profile, text);

    return hearth_rpc_text(rpc, hearth_str_c(text));
}

static void fill_text(struct hearth_rpc *rpc, enum hearth_member_type type, const void *from,
                      void *to)
{
    char *text = NULL;

    if (type == HEARTH_MEMBER_CSTR) {
        memcpy(&text, from, sizeof text);
    } else if (type == HEARTH_MEMBER_STR) {
        struct hearth_str str;
        memcpy(&str, from, sizeof str);
        text = str.n == 0 ? NULL : hearth_rpc_text(rpc, str);
    } else {
        text = make_id_text(rpc, type, from);
    }

    /* An initialised message has the empty text. */
    if (text != NULL) {
        memcpy(to, &text, sizeof text);
    }
}

static void fill_field(struct hearth_rpc *rpc, const struct hearth_message_member *member,
                       const void *from, void *to)
{
    if (member->to_type == HEARTH_MEMBER_CSTR) {
        fill_text(rpc, member->from_type, from, to);
    } else if (number_bytes(member->from_type) == number_bytes(member->to_type)) {
        memcpy(to, from, number_bytes(member->to_type));
    } else {
        store_integer(member->to_type, load_integer(member->from_type, from), to);
    }
}

static void fill_ms(const void *from, void *to)
{
    int64_t ns;
    memcpy(&ns, from, sizeof ns);
    store_integer(HEARTH_MEMBER_I64, ns / HEARTH_NS_PER_MS, to);
}

static void fill_name(const struct hearth_message_member *member, const void *from, void *to)
{
    int64_t number = load_integer(member->from_type, from);
    bool is_named = number >= 0 && (uint64_t)number < member->n_names;
    assert(member->n_names > 0);

    memcpy(to, &member->names[is_named ? number : 0], sizeof member->names[0]);
}

/* ---- arrays ---- */

static void fill_array(struct hearth_rpc *rpc, const struct hearth_message_member *member,
                       const void *from, size_t n, char *message)
{
    const void *array;
    void *list;

    memcpy(&array, from, sizeof array);
    if (n == 0) {
        return;
    }

    /* Structs become messages, texts are copied, numbers are borrowed. */
    if (member->kind == HEARTH_MAP_EACH_STRUCT) {
        hearth_rpc_map_list(rpc, member->of, array, n, &list, &n);
    } else if (member->kind == HEARTH_MAP_EACH_TEXT) {
        list = hearth_rpc_texts(rpc, array, n);
    } else {
        memcpy(&list, from, sizeof list);
    }

    if (list != NULL) {
        memcpy(message + member->to, &list, sizeof list);
        memcpy(message + member->n_to, &n, sizeof n);
    }
}

/* ---- maps of all services ---- */

HEARTH_MAP_TYPES(label, struct hearth_label, Types__V1__LabelPair);
static const struct hearth_message_member label_members[] = {
    HEARTH_MAP(label, name, name),
    HEARTH_MAP(label, value, value),
};
const struct hearth_message_map hearth_label_map =
    HEARTH_MESSAGE_MAP(label, types__v1__label_pair__descriptor);

HEARTH_MAP_TYPES(label_set, struct hearth_labels, Types__V1__Labels);
static const struct hearth_message_member label_set_members[] = {
    HEARTH_MAP_LIST(label_set, v, n, labels, &hearth_label_map),
};
const struct hearth_message_map hearth_labels_map =
    HEARTH_MESSAGE_MAP(label_set, types__v1__labels__descriptor);

/* ---- messages ---- */

static void fill_member(struct hearth_rpc *rpc, const struct hearth_message_member *member,
                        const char *from, char *message)
{
    switch (member->kind) {
    case HEARTH_MAP_FIELD:
        fill_field(rpc, member, from + member->from, message + member->to);
        return;
    case HEARTH_MAP_NS_AS_MS:
        fill_ms(from + member->from, message + member->to);
        return;
    case HEARTH_MAP_NUMBER_NAME:
        fill_name(member, from + member->from, message + member->to);
        return;
    case HEARTH_MAP_ONE_STRUCT: {
        void *one = hearth_rpc_map(rpc, member->of, from + member->from);
        memcpy(message + member->to, &one, sizeof one);
        return;
    }
    case HEARTH_MAP_EACH_TEXT:
    case HEARTH_MAP_EACH_NUMBER:
    case HEARTH_MAP_EACH_STRUCT: {
        size_t n;
        memcpy(&n, from + member->n_from, sizeof n);
        fill_array(rpc, member, from + member->from, n, message);
        return;
    }
    }

    HEARTH_BUG("a message map with an unknown kind of member");
}

void hearth_rpc_map_into(struct hearth_rpc *rpc, const struct hearth_message_map *map,
                         const void *from, void *message)
{
    assert(((const ProtobufCMessage *)message)->descriptor == map->descriptor);

    for (size_t i = 0; i < map->n_members; i++) {
        fill_member(rpc, &map->members[i], from, message);
    }
    if (map->fill_rest != NULL) {
        map->fill_rest(rpc, from, message);
    }
}

void *hearth_rpc_map(struct hearth_rpc *rpc, const struct hearth_message_map *map, const void *from)
{
    ProtobufCMessage *message = hearth_arena_alloc(&rpc->arena, map->descriptor->sizeof_message);

    if (message != NULL) {
        protobuf_c_message_init(map->descriptor, message);
        hearth_rpc_map_into(rpc, map, from, message);
    }

    return message;
}

void hearth_rpc_map_list(struct hearth_rpc *rpc, const struct hearth_message_map *map,
                         const void *structs, size_t n, void *ret_list, size_t *ret_n)
{
    size_t message_bytes = map->descriptor->sizeof_message;
    void **list = hearth_arena_array(&rpc->arena, n, sizeof *list);
    char *messages = hearth_arena_array(&rpc->arena, n, message_bytes);

    if (list == NULL || messages == NULL) {
        list = NULL;
        n = 0;
    }

    for (size_t i = 0; i < n; i++) {
        list[i] = messages + i * message_bytes;
        protobuf_c_message_init(map->descriptor, list[i]);
        hearth_rpc_map_into(rpc, map, (const char *)structs + i * map->struct_bytes, list[i]);
    }

    memcpy(ret_list, &list, sizeof list);
    *ret_n = n;
}
