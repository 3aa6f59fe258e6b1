/*
 * pb.c -- protobuf-c messages in arenas.
 *
 * protobuf-c recurses once per nested message without a limit, takes strings as they come and cuts
 * them at a NUL. So a walk over the wire form goes first (check_message): it knows the descriptor,
 * checks everything that protobuf-c would trip over, and recurses at most HEARTH_PB_MAX_DEPTH deep.
 * After it, unpacking can fail for lack of memory only.
 */
#include "hearth/codec/pb.h"

#include "hearth/base/varint.h"

#include "pb_field.h"

/* protobuf-c keeps 40 bytes for each field of a message while it scans, in the arena. */
#define MAX_FIELDS (1u << 24)

struct walk {
    const uint8_t *start, *end;
    uint32_t n_fields;
    struct hearth_err *err;
    bool mends; /* texts that are none: counted, and mended in the copy if there is one */
    size_t n_bad;
    char *copy;
};

static enum hearth_status fail_at(const struct walk *walk, const uint8_t *at,
                                  const ProtobufCMessageDescriptor *descriptor, const char *field,
                                  const char *what)
{
    return HEARTH_FAIL(walk->err, HEARTH_INVALID_ARGUMENT,
                       "invalid protobuf at byte %zu: %s%s%s: %s", (size_t)(at - walk->start),
                       descriptor->name, field == NULL ? "" : ".", field == NULL ? "" : field,
                       what);
}

/* Wire type of one value of `type`. */
static unsigned wire_type_of(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE:
        return PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED;
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return PROTOBUF_C_WIRE_TYPE_64BIT;
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
        return PROTOBUF_C_WIRE_TYPE_32BIT;
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_BOOL:
    case PROTOBUF_C_TYPE_ENUM:
        break;
    }
    return PROTOBUF_C_WIRE_TYPE_VARINT;
}

/* The values of a packed field fill [cur, end) exactly. NULL or what is wrong. */
static const char *check_packed(unsigned wire_type, const uint8_t *cur, const uint8_t *end)
{
    size_t n = (size_t)(end - cur);
    if (wire_type == PROTOBUF_C_WIRE_TYPE_64BIT || wire_type == PROTOBUF_C_WIRE_TYPE_32BIT) {
        size_t size = wire_type == PROTOBUF_C_WIRE_TYPE_64BIT ? 8 : 4;
        return n % size == 0 ? NULL : "packed values end inside a value";
    }
    while (cur < end) {
        uint64_t value;
        if (!hearth_varint_read(&cur, end, &value)) {
            return "packed values end inside a varint, or one is too long";
        }
    }
    return NULL;
}

/* One occurrence of a known field: its wire type, and its payload [cur, end). NULL or what is
 * wrong. */
static const char *check_value(struct walk *walk, const ProtobufCFieldDescriptor *field,
                               unsigned wire_type, const uint8_t *cur, const uint8_t *end)
{
    unsigned own = wire_type_of(field->type);
    if (wire_type != own) {
        bool packed = field->label == PROTOBUF_C_LABEL_REPEATED &&
                      wire_type == PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED;
        return packed ? check_packed(own, cur, end) : "wire type does not fit the field";
    }
    struct hearth_str text = hearth_str_n((const char *)cur, (size_t)(end - cur));
    if (field->type != PROTOBUF_C_TYPE_STRING || hearth_str_utf8_valid(text)) {
        return NULL;
    }
    if (!walk->mends) {
        return "text is not UTF-8, or holds a NUL";
    }
    walk->n_bad++;
    if (walk->copy != NULL) {
        hearth_str_utf8_mend(walk->copy + (cur - walk->start), text.n);
    }
    return NULL;
}

/* Step over the payload at *cur; *ret_start is where it begins (behind a length). NULL or what is
 * wrong. */
static const char *skip_payload(unsigned wire_type, const uint8_t **cur, const uint8_t *end,
                                const uint8_t **ret_start)
{
    uint64_t n;
    *ret_start = *cur;
    switch (wire_type) {
    case PROTOBUF_C_WIRE_TYPE_VARINT:
        return hearth_varint_read(cur, end, &n) ? NULL : "a varint is cut or too long";
    case PROTOBUF_C_WIRE_TYPE_64BIT:
        n = 8;
        break;
    case PROTOBUF_C_WIRE_TYPE_32BIT:
        n = 4;
        break;
    case PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED:
        if (!hearth_varint_read(cur, end, &n) || *cur - *ret_start > 5 || n > INT32_MAX) {
            return "a length is cut or too large";
        }
        *ret_start = *cur;
        break;
    default:
        return "groups are not supported";
    }
    if (n > (size_t)(end - *cur)) {
        return "a value ends behind the end of the message";
    }
    *cur += n;
    return NULL;
}

static enum hearth_status check_message(struct walk *walk,
                                        const ProtobufCMessageDescriptor *descriptor,
                                        const uint8_t *cur, const uint8_t *end, unsigned depth)
{
    if (depth > HEARTH_PB_MAX_DEPTH) {
        return fail_at(walk, cur, descriptor, NULL, "messages are nested too deep");
    }
    while (cur < end) {
        const uint8_t *at = cur, *payload;
        uint64_t tag;
        if (!hearth_varint_read(&cur, end, &tag) || cur - at > 5 || tag > UINT32_MAX || tag < 8) {
            return fail_at(walk, at, descriptor, NULL, "a field number is cut or out of range");
        }
        if (++walk->n_fields > MAX_FIELDS) {
            return fail_at(walk, at, descriptor, NULL, "too many fields");
        }
        const ProtobufCFieldDescriptor *field =
            protobuf_c_message_descriptor_get_field(descriptor, (unsigned)(tag >> 3));
        unsigned wire_type = (unsigned)(tag & 7);
        const char *wrong = skip_payload(wire_type, &cur, end, &payload);
        if (wrong == NULL && field != NULL) {
            wrong = check_value(walk, field, wire_type, payload, cur);
        }
        if (wrong != NULL) {
            return fail_at(walk, at, descriptor, field == NULL ? NULL : field->name, wrong);
        }
        if (field != NULL && field->type == PROTOBUF_C_TYPE_MESSAGE) {
            HEARTH_TRY(check_message(walk, field->descriptor, payload, cur, depth + 1));
        }
    }
    return HEARTH_OK;
}

static void *arena_alloc(void *arena, size_t n_bytes)
{
    return hearth_arena_alloc(arena, n_bytes);
}

static void arena_free(void *arena, void *ptr)
{
    (void)arena;
    (void)ptr;
}

/* The walk, and where a text is to be mended, another one over a copy that stands for `wire` then. */
static enum hearth_status check(const ProtobufCMessageDescriptor *descriptor,
                                struct hearth_str *wire, struct hearth_arena *arena,
                                struct hearth_err *err)
{
    const uint8_t *start = (const uint8_t *)(wire->n == 0 ? "" : wire->p);
    struct walk walk = {
        .start = start, .end = start + wire->n, .err = err, .mends = pb_is_mended(descriptor)};
    HEARTH_TRY(check_message(&walk, descriptor, start, walk.end, 1));
    if (walk.n_bad == 0) {
        return HEARTH_OK;
    }
    walk.n_fields = 0;
    walk.copy = hearth_arena_alloc(arena, wire->n);
    if (walk.copy == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }
    memcpy(walk.copy, wire->p, wire->n);
    *wire = hearth_str_n(walk.copy, wire->n);
    return check_message(&walk, descriptor, start, walk.end, 1);
}

enum hearth_status hearth_pb_unpack(const struct ProtobufCMessageDescriptor *descriptor,
                                    struct hearth_str wire, struct hearth_arena *arena,
                                    struct ProtobufCMessage **ret_message, struct hearth_err *err)
{
    HEARTH_TRY(check(descriptor, &wire, arena, err));
    const uint8_t *start = (const uint8_t *)(wire.n == 0 ? "" : wire.p);
    ProtobufCAllocator allocator = {arena_alloc, arena_free, arena};
    bool refused_before = arena->refused;
    arena->refused = false;
    ProtobufCMessage *message = protobuf_c_message_unpack(descriptor, &allocator, wire.n, start);
    bool refused = arena->refused;
    arena->refused = refused || refused_before;
    if (message != NULL) {
        *ret_message = message;
        return HEARTH_OK;
    }
    return refused ? HEARTH_FAIL_ARENA(err, arena)
                   : HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                                 "invalid protobuf: the bytes are no %s", descriptor->name);
}

void hearth_pb_pack(const struct ProtobufCMessage *message, struct hearth_buf *out)
{
    size_t n = protobuf_c_message_get_packed_size(message);
    char *to = hearth_buf_reserve(out, n);
    if (to != NULL) {
        out->n += protobuf_c_message_pack(message, (uint8_t *)to);
    }
}
