/*
 * message_map.h -- structs of the engine as protobuf messages, by a table of their members.
 *
 * A map names, for each field of a message, the member of the struct that it is filled from:
 *
 *     HEARTH_MAP_TYPES(process, struct hearth_process, Hearth__V1__Process);
 *     static const struct hearth_message_member process_members[] = {
 *         HEARTH_MAP(process, service, service),
 *         HEARTH_MAP_TEXTS(process, labels, n_labels, labels),
 *         HEARTH_MAP_LIST(process, properties, n_properties, properties, &property_map),
 *     };
 *     static const struct hearth_message_map process_map =
 *         HEARTH_MESSAGE_MAP(process, hearth__v1__process__descriptor);
 *
 * The compiler rejects a number for a text, and the reverse. Numbers of different sizes are
 * converted; a value that the field cannot hold becomes the nearest one that it can.
 *
 * Errors:  messages are allocated in the arena of the request. When it is full, fields stay unset
 *          and `rpc->arena.refused` is set, which fails the request at its end (rpc/unary.h).
 * Threads: the thread that runs the request; maps are constants.
 */
#ifndef HEARTH_FRONT_MESSAGE_MAP_H
#define HEARTH_FRONT_MESSAGE_MAP_H

#include "hearth/base/str.h"
#include "hearth/model/profile_id.h"
#include "hearth/model/trace_ids.h"

#include <protobuf-c/protobuf-c.h>

#include <stddef.h>

struct hearth_rpc;
struct hearth_message_map;

/* The C type of a member. Enumerations are integers. */
enum hearth_member_type {
    HEARTH_MEMBER_BOOL,
    HEARTH_MEMBER_I32,
    HEARTH_MEMBER_U32,
    HEARTH_MEMBER_I64,
    HEARTH_MEMBER_U64,
    HEARTH_MEMBER_DOUBLE,
    HEARTH_MEMBER_STR,  /* struct hearth_str: copied */
    HEARTH_MEMBER_CSTR, /* static text: borrowed; NULL: the field stays unset */
    /* Ids, written as texts; the field stays unset if there is no id. */
    HEARTH_MEMBER_SPAN_ID,    /* uint64_t: 16 hexadecimal digits; 0: no id */
    HEARTH_MEMBER_TRACE_ID,   /* struct hearth_trace_id: 32 hexadecimal digits */
    HEARTH_MEMBER_PROFILE_ID, /* struct hearth_profile_id: a UUID */
};

enum hearth_member_kind {
    HEARTH_MAP_FIELD,       /* a number, or a text */
    HEARTH_MAP_NS_AS_MS,    /* an int64_t in ns to one in ms */
    HEARTH_MAP_NUMBER_NAME, /* a number to its text in a table */
    HEARTH_MAP_EACH_TEXT,   /* an array of struct hearth_str to a repeated text */
    HEARTH_MAP_EACH_NUMBER, /* an array of numbers of the same size to a repeated one; borrowed */
    HEARTH_MAP_EACH_STRUCT, /* an array of structs to repeated messages */
    HEARTH_MAP_ONE_STRUCT,  /* a struct within the struct to a message */
};

struct hearth_message_member {
    enum hearth_member_kind kind;
    enum hearth_member_type from_type, to_type; /* FIELD only */
    size_t from, n_from;                        /* offsets in the struct; n_from: arrays only */
    size_t to, n_to;                            /* offsets in the message */
    const struct hearth_message_map *of;        /* of structs */
    const char *const *names;                   /* NUMBER_NAME only */
    size_t n_names;
};

struct hearth_message_map {
    const ProtobufCMessageDescriptor *descriptor;
    size_t struct_bytes;
    size_t n_members;
    const struct hearth_message_member *members;
    /* Fills fields that are made from several members, last; NULL if there are none. */
    void (*fill_rest)(struct hearth_rpc *rpc, const void *from, void *message);
};

/* ---- tables ---- */

/* Names the two types of the map `map`. */
#define HEARTH_MAP_TYPES(map, Struct, Message) \
    struct map##_map_types {                   \
        Struct from;                           \
        Message to;                            \
    }

#define HEARTH_MAP_MEMBER(map, side, member) (((struct map##_map_types *)0)->side.member)
#define HEARTH_MAP_FROM(map, member)         offsetof(struct map##_map_types, from.member)
#define HEARTH_MAP_TO(map, field) \
    (offsetof(struct map##_map_types, to.field) - offsetof(struct map##_map_types, to))

#define HEARTH_MAP_TYPE_OF(member) \
    _Generic((member),                     \
             _Bool: HEARTH_MEMBER_BOOL,    \
             int: HEARTH_MEMBER_I32,       \
             unsigned: HEARTH_MEMBER_U32,  \
             int64_t: HEARTH_MEMBER_I64,   \
             uint64_t: HEARTH_MEMBER_U64,  \
             double: HEARTH_MEMBER_DOUBLE, \
             const char *: HEARTH_MEMBER_CSTR, \
             char *: HEARTH_MEMBER_CSTR,   \
             struct hearth_str: HEARTH_MEMBER_STR, \
             struct hearth_trace_id: HEARTH_MEMBER_TRACE_ID, \
             struct hearth_profile_id: HEARTH_MEMBER_PROFILE_ID)

/* 0: a number, 1: a double, 2: a text; members of different classes do not fit. */
#define HEARTH_MAP_CLASS_OF(member)                           \
    (HEARTH_MAP_TYPE_OF(member) >= HEARTH_MEMBER_STR      ? 2 \
     : HEARTH_MAP_TYPE_OF(member) == HEARTH_MEMBER_DOUBLE ? 1 \
                                                          : 0)
/* 0, or a compile error unless `fits`. */
#define HEARTH_MAP_CHECK(fits) (0 * sizeof(char[(fits) ? 1 : -1]))

/* A number or a text; `from_member` may be a member of a member. */
#define HEARTH_MAP(map, from_member, field)                                                        \
    {                                                                                              \
        .kind = HEARTH_MAP_FIELD,                                                                  \
        .from_type = HEARTH_MAP_TYPE_OF(HEARTH_MAP_MEMBER(map, from, from_member)),                \
        .to_type = HEARTH_MAP_TYPE_OF(HEARTH_MAP_MEMBER(map, to, field)),                          \
        .from = HEARTH_MAP_FROM(map, from_member) +                                                \
                HEARTH_MAP_CHECK(HEARTH_MAP_CLASS_OF(HEARTH_MAP_MEMBER(map, from, from_member)) == \
                                 HEARTH_MAP_CLASS_OF(HEARTH_MAP_MEMBER(map, to, field))),          \
        .to = HEARTH_MAP_TO(map, field),                                                           \
    }

/* The id of a span, a uint64_t, as text. */
#define HEARTH_MAP_SPAN_ID(map, id_member, field)                                               \
    {                                                                                           \
        .kind = HEARTH_MAP_FIELD, .from_type = HEARTH_MEMBER_SPAN_ID,                           \
        .to_type = HEARTH_MEMBER_CSTR,                                                          \
        .from = HEARTH_MAP_FROM(map, id_member) +                                               \
                HEARTH_MAP_CHECK(HEARTH_MAP_TYPE_OF(HEARTH_MAP_MEMBER(map, from, id_member)) == \
                                     HEARTH_MEMBER_U64 &&                                       \
                                 HEARTH_MAP_TYPE_OF(HEARTH_MAP_MEMBER(map, to, field)) ==       \
                                     HEARTH_MEMBER_CSTR),                                       \
        .to = HEARTH_MAP_TO(map, field),                                                        \
    }

/* Nanoseconds to milliseconds. */
#define HEARTH_MAP_MS(map, ns_member, ms_field)                                                 \
    {                                                                                           \
        .kind = HEARTH_MAP_NS_AS_MS,                                                            \
        .from = HEARTH_MAP_FROM(map, ns_member) +                                               \
                HEARTH_MAP_CHECK(HEARTH_MAP_TYPE_OF(HEARTH_MAP_MEMBER(map, from, ns_member)) == \
                                     HEARTH_MEMBER_I64 &&                                       \
                                 HEARTH_MAP_TYPE_OF(HEARTH_MAP_MEMBER(map, to, ms_field)) ==    \
                                     HEARTH_MEMBER_I64),                                        \
        .to = HEARTH_MAP_TO(map, ms_field),                                                     \
    }

/* A number to the text names[number], which is borrowed; a number outside the table to names[0]. */
#define HEARTH_MAP_NAME(map, number_member, field, names_)                                        \
    {                                                                                             \
        .kind = HEARTH_MAP_NUMBER_NAME,                                                           \
        .from_type = HEARTH_MAP_TYPE_OF(HEARTH_MAP_MEMBER(map, from, number_member)),             \
        .from = HEARTH_MAP_FROM(map, number_member) +                                             \
                HEARTH_MAP_CHECK(                                                                 \
                    HEARTH_MAP_CLASS_OF(HEARTH_MAP_MEMBER(map, from, number_member)) == 0 &&      \
                    HEARTH_MAP_TYPE_OF(HEARTH_MAP_MEMBER(map, to, field)) == HEARTH_MEMBER_CSTR), \
        .to = HEARTH_MAP_TO(map, field), .names = (names_), .n_names = HEARTH_ARRAY_LEN(names_),  \
    }

#define HEARTH_MAP_ARRAY(kind_, map, array, n_member, field, fits, of_)                \
    {                                                                                  \
        .kind = (kind_), .from = HEARTH_MAP_FROM(map, array) + HEARTH_MAP_CHECK(fits), \
        .n_from = HEARTH_MAP_FROM(map, n_member), .to = HEARTH_MAP_TO(map, field),     \
        .n_to = HEARTH_MAP_TO(map, n_##field), .of = (of_),                            \
    }

/* Repeated fields, from an array and its size_t. */
#define HEARTH_MAP_TEXTS(map, array, n_member, field)                                            \
    HEARTH_MAP_ARRAY(HEARTH_MAP_EACH_TEXT, map, array, n_member, field,                          \
                     sizeof HEARTH_MAP_MEMBER(map, from, array)[0] == sizeof(struct hearth_str), \
                     NULL)
#define HEARTH_MAP_NUMBERS(map, array, n_member, field)                   \
    HEARTH_MAP_ARRAY(HEARTH_MAP_EACH_NUMBER, map, array, n_member, field, \
                     sizeof HEARTH_MAP_MEMBER(map, from, array)[0] ==     \
                         sizeof HEARTH_MAP_MEMBER(map, to, field)[0],     \
                     NULL)
#define HEARTH_MAP_LIST(map, array, n_member, field, of) \
    HEARTH_MAP_ARRAY(HEARTH_MAP_EACH_STRUCT, map, array, n_member, field, true, of)

/* A struct hearth_labels to a repeated types.v1.LabelPair. */
#define HEARTH_MAP_LABELS(map, labels_member, field) \
    HEARTH_MAP_LIST(map, labels_member.v, labels_member.n, field, &hearth_label_map)

/* A struct that is a member; its message is always set. */
#define HEARTH_MAP_ONE(map, member, field, of_)                              \
    {                                                                        \
        .kind = HEARTH_MAP_ONE_STRUCT, .from = HEARTH_MAP_FROM(map, member), \
        .to = HEARTH_MAP_TO(map, field), .of = (of_),                        \
    }

/* The map of the table `map`_members, without and with fill_rest. */
#define HEARTH_MESSAGE_MAP(map, descriptor_) HEARTH_MESSAGE_MAP_AND(map, descriptor_, NULL)
#define HEARTH_MESSAGE_MAP_AND(map, descriptor_, fill_rest_)                                       \
    {                                                                                              \
        .descriptor = &(descriptor_), .struct_bytes = sizeof(((struct map##_map_types *)0)->from), \
        .n_members = HEARTH_ARRAY_LEN(map##_members), .members = map##_members,                    \
        .fill_rest = (fill_rest_),                                                                 \
    }

/* ---- maps of all services ---- */

/* struct hearth_label to types.v1.LabelPair. */
extern const struct hearth_message_map hearth_label_map;
/* struct hearth_labels to types.v1.Labels. */
extern const struct hearth_message_map hearth_labels_map;

/* ---- use ---- */

/* Fills an initialised message of the map's type, such as the answer of a request. */
void hearth_rpc_map_into(struct hearth_rpc *rpc, const struct hearth_message_map *map,
                         const void *from, void *message);
/* A struct as a new message; NULL when the arena is full. */
void *hearth_rpc_map(struct hearth_rpc *rpc, const struct hearth_message_map *map,
                     const void *from);
/*
 * Sets the repeated field `field` of `message` to the n structs of an array; to no messages when
 * the arena is full.
 */
#define HEARTH_RPC_LIST(rpc, map, array, n, message, field) \
    hearth_rpc_map_list((rpc), (map), (array), (n), &(message)->field, &(message)->n_##field)
/* The same; ret_list is the address of an array of pointers to messages of the map's type. */
void hearth_rpc_map_list(struct hearth_rpc *rpc, const struct hearth_message_map *map,
                         const void *structs, size_t n, void *ret_list, size_t *ret_n);

#endif
