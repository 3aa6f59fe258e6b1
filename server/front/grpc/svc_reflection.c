/*
 * svc_reflection.c -- grpc.reflection.v1 and v1alpha: the list of services, and the descriptors of
 * the files of proto/ as protoc wrote them.
 *
 * Each message is answered on the transport's own thread, from about 50 KB of embedded bytes. A
 * file is returned together with the files it imports. No message type has extensions.
 */
#include "hearth/base/embedded.h"
#include "hearth/base/varint.h"
#include "hearth/pb/grpc/reflection/v1/reflection.pb-c.h"

#include "handlers.h"
#include "rpc/front_internal.h"

#define MAX_FILES      64u
#define GRPC_INVALID   3
#define GRPC_NOT_FOUND 5

/* Field numbers of descriptor.proto. */
enum {
    SET_FILE = 1,
    NAME = 1, /* of a file and of each declaration in it */
    FILE_PACKAGE = 2,
    FILE_DEPENDENCY = 3,
};

/* A kind of declarations (messages, enums, ..) that a file, message, enum or service contains. */
struct declaration_kind {
    uint32_t field;                          /* of the parent's descriptor; 0 ends a list */
    const struct declaration_kind *children; /* the kinds of declarations in this one */
    bool are_siblings; /* the children's names are in the parent's scope, as enum values are */
};

static const struct declaration_kind g_leaf[] = {{0}};
static const struct declaration_kind g_of_enum[] = {{2, g_leaf, false}, {0}};
static const struct declaration_kind g_of_service[] = {{2, g_leaf, false}, {0}};
static const struct declaration_kind g_of_message[] = {
    {2, g_leaf, false}, {3, g_of_message, false}, {4, g_of_enum, true}, {8, g_leaf, false}, {0}};
static const struct declaration_kind g_of_file[] = {
    {4, g_of_message, false}, {5, g_of_enum, true}, {6, g_of_service, false}, {0}};

/* Reads the next field with a length; false at the end. The bytes are embedded, not a client's. */
static bool next_field(struct hearth_str *rest, uint32_t *ret_number, struct hearth_str *ret)
{
    const uint8_t *cur = (const uint8_t *)rest->p, *end = cur + rest->n;
    uint64_t key, value;

    while (cur < end && hearth_varint_read(&cur, end, &key)) {
        if (!hearth_varint_read(&cur, end, &value)) { /* descriptors have no fixed-size fields */
            return false;
        }
        if ((key & 7) == 2 && value <= (uint64_t)(end - cur)) {
            *ret_number = (uint32_t)(key >> 3);
            *ret = hearth_str_n((const char *)cur, (size_t)value);
            *rest = hearth_str_n((const char *)cur + value, (size_t)(end - cur) - (size_t)value);
            return true;
        }
    }

    return false;
}

static struct hearth_str find_field(struct hearth_str of, uint32_t wanted)
{
    uint32_t number;
    struct hearth_str bytes;

    while (next_field(&of, &number, &bytes)) {
        if (number == wanted) {
            return bytes;
        }
    }

    return hearth_str_n("", 0);
}

/* Removes `part` and a dot from the beginning of *name; false if *name does not begin so. */
static bool skip_name_part(struct hearth_str *name, struct hearth_str part)
{
    if (part.n == 0 || name->n <= part.n || name->p[part.n] != '.' ||
        !hearth_str_starts(*name, part)) {
        return false;
    }
    *name = hearth_str_n(name->p + part.n + 1, name->n - part.n - 1);
    return true;
}

/* True if `parent` declares the name as one of these kinds. The recursion is as deep as the nesting
 * in proto/: a few levels. */
static bool declares_name(struct hearth_str parent, const struct declaration_kind *kinds,
                          struct hearth_str name)
{
    uint32_t number;
    struct hearth_str child;

    while (next_field(&parent, &number, &child)) {
        for (const struct declaration_kind *kind = kinds; kind->field != 0; kind++) {
            if (kind->field != number) {
                continue;
            }
            struct hearth_str own = find_field(child, NAME), rest = name;
            if (hearth_str_eq(own, name) || ((kind->are_siblings || skip_name_part(&rest, own)) &&
                                             declares_name(child, kind->children, rest))) {
                return true;
            }
        }
    }

    return false;
}

static bool has_symbol(struct hearth_str file, struct hearth_str symbol)
{
    return skip_name_part(&symbol, find_field(file, FILE_PACKAGE)) &&
           declares_name(file, g_of_file, symbol);
}

static struct hearth_str get_all_files(void)
{
    return hearth_str_n((const char *)hearth_embedded_descriptors[0].bytes,
                        hearth_embedded_descriptors[0].n_bytes);
}

/* Finds a file by its name or by a symbol that it declares; empty if there is none. */
static struct hearth_str find_file(struct hearth_str wanted, bool by_symbol)
{
    struct hearth_str set = get_all_files(), file;
    uint32_t number;

    while (next_field(&set, &number, &file)) {
        if (number == SET_FILE && (by_symbol ? has_symbol(file, wanted)
                                             : hearth_str_eq(find_field(file, NAME), wanted))) {
            return file;
        }
    }

    return hearth_str_n("", 0);
}

static bool is_file_listed(const ProtobufCBinaryData *files, size_t n, struct hearth_str file)
{
    for (size_t i = 0; i < n; i++) {
        if (files[i].data == (const uint8_t *)file.p) {
            return true;
        }
    }
    return false;
}

static void add_file(ProtobufCBinaryData *files, size_t *n, struct hearth_str file)
{
    if (file.n > 0 && *n < MAX_FILES && !is_file_listed(files, *n, file)) {
        /* protobuf-c has a writable pointer, but only reads the bytes. */
        union {
            const char *in;
            uint8_t *out;
        } bytes = {.in = file.p};
        files[(*n)++] = (ProtobufCBinaryData){.data = bytes.out, .len = file.n};
    }
}

static void answer_file(struct hearth_rpc *rpc, Grpc__Reflection__V1__ServerReflectionResponse *out,
                        struct hearth_str file)
{
    Grpc__Reflection__V1__FileDescriptorResponse *answer =
        hearth_arena_alloc(&rpc->arena, sizeof *answer);
    ProtobufCBinaryData *files = hearth_arena_array(&rpc->arena, MAX_FILES, sizeof *files);
    if (answer == NULL || files == NULL) {
        return;
    }

    grpc__reflection__v1__file_descriptor_response__init(answer);
    size_t n = 0;
    add_file(files, &n, file);

    for (size_t i = 0; i < n; i++) {
        struct hearth_str rest = {(const char *)files[i].data, files[i].len}, import;
        uint32_t number;
        while (next_field(&rest, &number, &import)) {
            if (number == FILE_DEPENDENCY) {
                add_file(files, &n, find_file(import, false));
            }
        }
    }

    answer->file_descriptor_proto = files;
    answer->n_file_descriptor_proto = n;
    out->file_descriptor_response = answer;
    out->message_response_case =
        GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_FILE_DESCRIPTOR_RESPONSE;
}

static void answer_services(struct hearth_rpc *rpc,
                            Grpc__Reflection__V1__ServerReflectionResponse *out)
{
    const struct hearth_method_table *methods = rpc->front->methods;
    struct hearth_str *services = hearth_arena_array(&rpc->arena, methods->n, sizeof *services);
    if (services == NULL) {
        return;
    }

    size_t n = hearth_method_services(methods, services);
    Grpc__Reflection__V1__ListServiceResponse *answer =
        hearth_arena_alloc(&rpc->arena, sizeof *answer);
    Grpc__Reflection__V1__ServiceResponse **list = hearth_arena_array(&rpc->arena, n, sizeof *list);
    Grpc__Reflection__V1__ServiceResponse *bodies =
        hearth_arena_array(&rpc->arena, n, sizeof *bodies);
    if (answer == NULL || list == NULL || bodies == NULL) {
        return;
    }

    grpc__reflection__v1__list_service_response__init(answer);

    for (size_t i = 0; i < n; i++) {
        grpc__reflection__v1__service_response__init(&bodies[i]);
        bodies[i].name = hearth_arena_strndup(&rpc->arena, services[i].p, services[i].n);
        list[i] = &bodies[i];
    }

    answer->service = list;
    answer->n_service = n;
    out->list_services_response = answer;
    out->message_response_case =
        GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_LIST_SERVICES_RESPONSE;
}

/* An empty list: no known type has extensions. */
static void answer_extensions(struct hearth_rpc *rpc,
                              Grpc__Reflection__V1__ServerReflectionResponse *out, char *type)
{
    Grpc__Reflection__V1__ExtensionNumberResponse *answer =
        hearth_arena_alloc(&rpc->arena, sizeof *answer);

    if (answer == NULL) {
        return;
    }

    grpc__reflection__v1__extension_number_response__init(answer);
    answer->base_type_name = type;
    out->all_extension_numbers_response = answer;
    out->message_response_case =
        GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_ALL_EXTENSION_NUMBERS_RESPONSE;
}

static void answer_error(struct hearth_rpc *rpc,
                         Grpc__Reflection__V1__ServerReflectionResponse *out, int code,
                         const char *what)
{
    Grpc__Reflection__V1__ErrorResponse *answer = hearth_arena_alloc(&rpc->arena, sizeof *answer);
    char *text = hearth_arena_printf(&rpc->arena, "%.200s", what);
    if (answer == NULL || text == NULL) {
        return;
    }

    grpc__reflection__v1__error_response__init(answer);
    answer->error_code = code;
    answer->error_message = text;
    out->error_response = answer;
    out->message_response_case =
        GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_ERROR_RESPONSE;
}

static void answer_request(struct hearth_rpc *rpc,
                           const Grpc__Reflection__V1__ServerReflectionRequest *in,
                           Grpc__Reflection__V1__ServerReflectionResponse *out)
{
    struct hearth_str file = {"", 0};

    switch (in->message_request_case) {
    case GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_LIST_SERVICES:
        answer_services(rpc, out);
        return;
    case GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_FILE_BY_FILENAME:
        file = find_file(hearth_str_c(in->file_by_filename), false);
        break;
    case GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_FILE_CONTAINING_SYMBOL:
        file = find_file(hearth_str_c(in->file_containing_symbol), true);
        break;
    case GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_ALL_EXTENSION_NUMBERS_OF_TYPE:
        if (find_file(hearth_str_c(in->all_extension_numbers_of_type), true).n > 0) {
            answer_extensions(rpc, out, in->all_extension_numbers_of_type);
            return;
        }
        break;
    case GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_FILE_CONTAINING_EXTENSION:
        break;
    default:
        answer_error(rpc, out, GRPC_INVALID, "the field message_request is not set");
        return;
    }

    if (file.n > 0) {
        answer_file(rpc, out, file);
    } else {
        answer_error(rpc, out, GRPC_NOT_FOUND, "not found");
    }
}

void hearth_svc_reflection(struct hearth_rpc *rpc)
{
    union { /* the answer contains the request; packing only reads it */
        const struct ProtobufCMessage *in;
        Grpc__Reflection__V1__ServerReflectionRequest *request;
    } asked = {.in = rpc->request};
    Grpc__Reflection__V1__ServerReflectionResponse *out =
        hearth_arena_alloc(&rpc->arena, sizeof *out);
    if (out == NULL) {
        rpc->status = HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
        return;
    }

    grpc__reflection__v1__server_reflection_response__init(out);
    out->valid_host = asked.request->host;
    out->original_request = asked.request;
    answer_request(rpc, asked.request, out);
    rpc->answer = &out->base;
    rpc->status = rpc->arena.refused ? HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena) : HEARTH_OK;
}
