/*
 * pb.c -- protobuf-c messages in arenas.
 *
 * protobuf-c recurses once per nested message without a limit, does not check strings and truncates
 * them at a NUL. So check_message walks the wire form first, with the descriptor: it checks
 * everything that protobuf-c relies on, and recurses at most HEARTH_PB_MAX_DEPTH deep. After it,
 * unpacking can only fail for lack of memory.
 */
#include "hearth/codec/pb.h"

#include "hearth/base/varint.h"

#include "pb_field.h"

#include <assert.h>

/* While protobuf-c scans a message, it needs 40 bytes in the arena for each field. */
#define MAX_FIELDS (1u << 24)

struct wire_walk {
    const uint8_t *start, *end;
    uint32_t n_fields;
    struct hearth_err *err;
    bool mends;   /* invalid texts are counted, and repaired in `copy` if there is one */
    size_t n_bad; /* invalid texts found */
    char *copy;   /* a copy of all bytes from `start`, or NULL */
};

static enum hearth_status fail_at(const struct wire_walk *walk, const uint8_t *at,
                                  const ProtobufCMessageDescriptor *descriptor, const char *field,
                                  const char *what)
{
    return HEARTH_FAIL(walk->err, HEARTH_INVALID_ARGUMENT,
                       "invalid protobuf at byte %zu: %s%s%s: %s", (size_t)(at - walk->start),
                       descriptor->name, field == NULL ? "" : ".", field == NULL ? "" : field,
                       what);
}

/* The wire type of a single value of `type`. */
static unsigned find_wire_type(ProtobufCType type)
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

/* Check that packed values fill [cur, end) exactly. Returns NULL or what is wrong. */
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

/*
 * Check one occurrence of a known field with the payload [cur, end). Returns NULL or what is wrong.
 */
static const char *check_value(struct wire_walk *walk, const ProtobufCFieldDescriptor *field,
                               unsigned wire_type, const uint8_t *cur, const uint8_t *end)
{
    unsigned own = find_wire_type(field->type);
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
        return "text is not UTF-8, or contains a NUL";
    }

    walk->n_bad++;
    if (walk->copy != NULL) {
        hearth_str_utf8_mend(walk->copy + (cur - walk->start), text.n);
    }

    return NULL;
}

/*
 * Skip the payload at *cur; *ret_start is its start, after a length if any. Returns NULL or what is
 * wrong.
 */
static const char *skip_payload(unsigned wire_type, const uint8_t **cur, const uint8_t *end,
                                const uint8_t **ret_start)
{
    uint64_t n;
    *ret_start = *cur;

    switch (wire_type) {
    case PROTOBUF_C_WIRE_TYPE_VARINT:
        return hearth_varint_read(cur, end, &n) ? NULL : "a varint is truncated or too long";
    case PROTOBUF_C_WIRE_TYPE_64BIT:
        n = 8;
        break;
    case PROTOBUF_C_WIRE_TYPE_32BIT:
        n = 4;
        break;
    case PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED:
        if (!hearth_varint_read(cur, end, &n) || *cur - *ret_start > 5 || n > INT32_MAX) {
            return "a length is truncated or too large";
        }
        *ret_start = *cur;
        break;
    default:
        return "groups are not supported";
    }

    if (n > (size_t)(end - *cur)) {
        return "a value ends after the end of the message";
    }

    *cur += n;
    return NULL;
}

static enum hearth_status check_message(struct wire_walk *walk,
                                        const ProtobufCMessageDescriptor *descriptor,
                                        const uint8_t *cur, const uint8_t *end, unsigned depth)
{
    assert(cur <= end && end <= walk->end);

    if (depth > HEARTH_PB_MAX_DEPTH) {
        return fail_at(walk, cur, descriptor, NULL, "messages are nested too deep");
    }

    while (cur < end) {
        const uint8_t *at = cur, *payload;
        uint64_t tag;

        /* The tag: field number and wire type, at most 5 bytes. */
        if (!hearth_varint_read(&cur, end, &tag) || cur - at > 5 || tag > UINT32_MAX || tag < 8) {
            return fail_at(walk, at, descriptor, NULL,
                           "a field number is truncated or out of range");
        }
        if (++walk->n_fields > MAX_FIELDS) {
            return fail_at(walk, at, descriptor, NULL, "too many fields");
        }

        /* The payload: its length, and its value if the field is known. */
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

static void *alloc_in_arena(void *arena, size_t n_bytes)
{
    return hearth_arena_alloc(arena, n_bytes);
}

static void free_in_arena(void *arena, void *ptr)
{
    (void)arena;
    (void)ptr;
}

/*
 * Check the wire form. If texts must be repaired, *wire becomes a copy in which a second walk
 * repairs them.
 */
static enum hearth_status check_wire(const ProtobufCMessageDescriptor *descriptor,
                                     struct hearth_str *wire, struct hearth_arena *arena,
                                     struct hearth_err *err)
{
    const uint8_t *start = (const uint8_t *)(wire->n == 0 ? "" : wire->p);
    struct wire_walk walk = {
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
    assert(descriptor != NULL && ret_message != NULL);

    HEARTH_TRY(check_wire(descriptor, &wire, arena, err));
    const uint8_t *start = (const uint8_t *)(wire.n == 0 ? "" : wire.p);
    ProtobufCAllocator allocator = {alloc_in_arena, free_in_arena, arena};

    /* Only a refusal during this call explains a failure of protobuf-c. */
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
                                 "invalid protobuf: the bytes are not a %s", descriptor->name);
}

void hearth_pb_pack(const struct ProtobufCMessage *message, struct hearth_buf *out)
{
    size_t n = protobuf_c_message_get_packed_size(message);
    char *to = hearth_buf_reserve(out, n);
    if (to != NULL) {
        size_t n_packed = protobuf_c_message_pack(message, (uint8_t *)to);
        assert(n_packed == n);
        out->n += n_packed;
    }
}
