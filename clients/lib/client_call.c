/*
 * client_call.c -- a call with its repetitions.
 *
 * A server that restarts sends GOAWAY, finishes its calls and closes its port; until its successor
 * listens, connections are refused. The core repeats by itself only calls that never left the
 * process. All others are repeated here, if that cannot do twice what was to be done once, and only
 * where the server has been reached before: a wrong address is an answer.
 */
#include "client_call.h"

#include "hearth/base/clock.h"
#include "hearth/base/hash.h"
#include "hearth/pb/push/v1/push.pb-c.h"

#include "client_exchange.h"

#include <assert.h>
#include <stdio.h>
#include <time.h>

#define FIRST_PAUSE_MS 100
#define MAX_PAUSE_MS   1000

enum hearth_status hearth_call_error_in(const struct hearth_client_error *error,
                                        struct hearth_err *err)
{
    return HEARTH_FAIL(err, hearth_status_from_grpc((int)error->status), "%s", error->text);
}

enum hearth_client_status hearth_call_error_out(const struct hearth_err *err,
                                                enum hearth_status status, bool is_open,
                                                struct hearth_client_error *error)
{
    int number = hearth_status_grpc(status);
    enum hearth_client_status code = (enum hearth_client_status)number;

    if (status != HEARTH_OK && error != NULL) {
        *error = (struct hearth_client_error){.status = code, .is_open = is_open};
        (void)snprintf(error->text, sizeof error->text, "%s", err->msg);
    }

    return code;
}

/* ---- which calls may be repeated ---- */

/* Services and names that only read. */
static bool is_read(const char *method)
{
    static const char *const services[] = {"querier.v1.QuerierService/", "hearth.v1.QueryService/",
                                           "hearth.v1.TraceProfileService/",
                                           "hearth.v1.ProfileService/", "grpc.health.v1.Health/"};
    static const char *const verbs[] = {"Get",    "List",  "Analyze", "Status",  "Doctor",
                                        "WhoAmI", "Usage", "Disk",    "ReadPart"};

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(services); i++) {
        if (strncmp(method, services[i], strlen(services[i])) == 0) {
            return true;
        }
    }
    const char *slash = strrchr(method, '/');
    for (size_t i = 0; slash != NULL && i < HEARTH_ARRAY_LEN(verbs); i++) {
        if (strncmp(slash + 1, verbs[i], strlen(verbs[i])) == 0) {
            return true;
        }
    }

    return false;
}

/* The server stores a profile with an id once within an hour. */
static bool is_push_with_ids(const struct ProtobufCMessage *message)
{
    const Push__V1__PushRequest *request = (const void *)message;

    if (message->descriptor != &push__v1__push_request__descriptor) {
        return false;
    }
    for (size_t i = 0; i < request->n_series; i++) {
        for (size_t k = 0; k < request->series[i]->n_samples; k++) {
            if (request->series[i]->samples[k]->id[0] == '\0') {
                return false;
            }
        }
    }

    return true;
}

/* ---- what the server says beside its answer ---- */

static const char *find_dropped(const grpc_metadata_array *metadata, struct hearth_arena *arena,
                                const char *found)
{
    for (size_t i = 0; i < metadata->count; i++) {
        grpc_slice value = metadata->metadata[i].value;
        if (grpc_slice_str_cmp(metadata->metadata[i].key, "hearth-dropped") == 0) {
            found = hearth_arena_strndup(arena, (const char *)GRPC_SLICE_START_PTR(value),
                                         GRPC_SLICE_LENGTH(value));
        }
    }
    return found;
}

/* %XX back to bytes; anything else stands for itself. */
static void decode_note(struct hearth_str value, struct hearth_buf *out)
{
    for (size_t i = 0; i < value.n; i++) {
        uint64_t byte;
        if (value.p[i] == '%' && i + 2 < value.n &&
            hearth_str_hex_to_u64(hearth_str_n(value.p + i + 1, 2), &byte)) {
            hearth_buf_byte(out, (unsigned char)byte);
            i += 2;
        } else {
            hearth_buf_byte(out, (unsigned char)value.p[i]);
        }
    }
    hearth_buf_byte(out, '\0');
}

static void tell_notes(const struct hearth_client *client, const grpc_metadata_array *metadata)
{
    for (size_t i = 0; client->options.note != NULL && i < metadata->count; i++) {
        if (grpc_slice_str_cmp(metadata->metadata[i].key, "hearth-note") != 0) {
            continue;
        }
        grpc_slice value = metadata->metadata[i].value;
        struct hearth_buf text;
        hearth_buf_init(&text, 0);
        decode_note(
            hearth_str_n((const char *)GRPC_SLICE_START_PTR(value), GRPC_SLICE_LENGTH(value)),
            &text);
        if (!hearth_buf_failed(&text)) {
            client->options.note(client->options.note_context, text.p);
        }
        hearth_buf_release(&text);
    }
}

/* ---- the call ---- */

static bool keep_answer(void *context, struct hearth_str message)
{
    struct hearth_call *call = context;
    bool is_first = call->answer.p == NULL;

    call->answer = message;

    return is_first; /* a second message of a unary call ends it */
}

/* Half of the pause and a random part of the other half, so that clients of a server that restarts
 * do not return all at once. */
static void pause_for(int64_t pause_ms)
{
    uint64_t now = (uint64_t)hearth_clock_mono_ns();
    uint64_t random = hearth_hash128(&now, sizeof now, hearth_hash_process_seed()).lo;
    int64_t ns =
        (pause_ms / 2 + (int64_t)(random % (uint64_t)(pause_ms / 2 + 1))) * HEARTH_NS_PER_MS;
    const struct timespec pause = {.tv_sec = ns / HEARTH_NS_PER_SEC,
                                   .tv_nsec = ns % HEARTH_NS_PER_SEC};
    (void)nanosleep(&pause, NULL);
}

int64_t hearth_call_until_ns(int64_t ms)
{
    int64_t ns;
    bool is_beyond = __builtin_mul_overflow(ms, HEARTH_NS_PER_MS, &ns) ||
                     __builtin_add_overflow(ns, hearth_clock_mono_ns(), &ns);

    return is_beyond ? INT64_MAX : ns;
}

enum hearth_status hearth_call_run(struct hearth_client *client, struct hearth_call *call,
                                   struct hearth_arena *arena, struct hearth_err *err)
{
    assert(client != NULL && arena != NULL && call->method != NULL && call->method[0] != '/');

    char *path = hearth_arena_printf(arena, "/%s", call->method);
    if (path == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }
    const struct hearth_client_options *options = &client->options;
    struct hearth_exchange x = {
        .path = path,
        .request = call->request,
        .timeout_ms = options->timeout_ms,
        .deadline = hearth_exchange_deadline(options->timeout_ms),
        .started = gpr_now(GPR_CLOCK_REALTIME),
        .arena = arena,
        .message = keep_answer,
        .context = call,
    };
    bool is_repeatable = call->is_repeatable || is_read(call->method);
    int64_t repeat_ms =
        options->retry_ms < options->timeout_ms ? options->retry_ms : options->timeout_ms;
    int64_t repeat_until_ns = hearth_call_until_ns(repeat_ms);

    for (int64_t pause_ms = FIRST_PAUSE_MS;; pause_ms = 2 * pause_ms) {
        /* Run one attempt. */
        call->answer = (struct hearth_str){0};
        hearth_exchange_run(client, &x);
        call->is_open = call->is_open || x.was_cut || x.code == GRPC_STATUS_DEADLINE_EXCEEDED;

        /* Repeat it after a pause, unless the time ends before. */
        pause_ms = pause_ms < MAX_PAUSE_MS ? pause_ms : MAX_PAUSE_MS;
        if (x.code != GRPC_STATUS_UNAVAILABLE || !is_repeatable ||
            !atomic_load(&client->was_reached) ||
            hearth_clock_mono_ns() + pause_ms * HEARTH_NS_PER_MS >= repeat_until_ns) {
            break;
        }
        hearth_exchange_release(&x);
        pause_for(pause_ms);
    }

    if (x.waited_ms > 0) {
        options->waiting(options->waiting_context, HEARTH_CLIENT_WAITED);
    }

    enum hearth_status status = hearth_exchange_outcome(client, &x, err);
    if (status == HEARTH_OK && call->answer.p == NULL) {
        status = HEARTH_FAIL(err, HEARTH_INTERNAL, "the server sent no message");
    }
    call->dropped = find_dropped(&x.trailing, arena, find_dropped(&x.initial, arena, NULL));
    tell_notes(client, &x.trailing);
    hearth_exchange_release(&x);

    return status;
}

enum hearth_status hearth_call_message(struct hearth_client *client, struct hearth_call *call,
                                       const struct ProtobufCMessage *request,
                                       const struct ProtobufCMessageDescriptor *answer_type,
                                       struct hearth_arena *arena,
                                       struct ProtobufCMessage **ret_answer, struct hearth_err *err)
{
    assert(request != NULL && answer_type != NULL && ret_answer != NULL);

    struct hearth_buf wire;
    hearth_buf_init(&wire, 0);
    hearth_pb_pack(request, &wire);
    enum hearth_status status;
    if (hearth_buf_failed(&wire)) {
        status = HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate a request");
    } else {
        call->request = hearth_buf_view(&wire);
        call->is_repeatable = is_push_with_ids(request);
        status = hearth_call_run(client, call, arena, err);
    }
    hearth_buf_release(&wire);

    return status == HEARTH_OK ? hearth_pb_unpack(answer_type, call->answer, arena, ret_answer, err)
                               : status;
}
