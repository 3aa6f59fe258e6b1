/*
 * client_exchange.c -- one attempt of a call. Unary calls are streams of one message. Each attempt
 * has a completion queue of its own, so that threads do not take each other's events.
 */
#include "client_exchange.h"

#include <grpc/byte_buffer_reader.h>
#include <grpc/support/alloc.h>

#include <assert.h>

/* The batches of an attempt; their addresses are the tags of their events. */
struct batches {
    char request, message, status;
};

#define WAITING_STEP_MS 1000 /* between two calls of options.waiting */

static bool start_batch(struct hearth_exchange *x, const grpc_op *ops, size_t n, void *tag)
{
    return grpc_call_start_batch(x->call, ops, n, tag, NULL) == GRPC_CALL_OK;
}

static void await_batch(struct hearth_exchange *x, void *tag)
{
    (void)grpc_completion_queue_pluck(x->queue, tag, gpr_inf_future(GPR_CLOCK_REALTIME), NULL);
}

static bool start_request(struct hearth_client *client, struct hearth_exchange *x,
                          struct batches *tags)
{
    /* A copy: the core may hold it longer than the call. */
    grpc_slice slice = grpc_slice_from_copied_buffer(x->request.p, x->request.n);
    grpc_byte_buffer *message = grpc_raw_byte_buffer_create(&slice, 1);
    grpc_slice_unref(slice);

    const grpc_op ops[] = {
        {.op = GRPC_OP_SEND_INITIAL_METADATA,
         .data.send_initial_metadata = {.count = client->metadata.n,
                                        .metadata = client->metadata.v}},
        {.op = GRPC_OP_SEND_MESSAGE, .data.send_message.send_message = message},
        {.op = GRPC_OP_SEND_CLOSE_FROM_CLIENT},
        {.op = GRPC_OP_RECV_INITIAL_METADATA,
         .data.recv_initial_metadata.recv_initial_metadata = &x->initial},
    };
    bool is_started = start_batch(x, ops, HEARTH_ARRAY_LEN(ops), &tags->request);
    grpc_byte_buffer_destroy(message); /* the call has a reference of its own */

    return is_started;
}

static bool start_status(struct hearth_exchange *x, struct batches *tags)
{
    const grpc_op op = {.op = GRPC_OP_RECV_STATUS_ON_CLIENT,
                        .data.recv_status_on_client = {.trailing_metadata = &x->trailing,
                                                       .status = &x->code,
                                                       .status_details = &x->details}};
    return start_batch(x, &op, 1, &tags->status);
}

/* Until there is a message or the call has ended. */
static void await_message(const struct hearth_client *client, struct hearth_exchange *x,
                          struct batches *tags)
{
    const struct hearth_client_options *options = &client->options;

    if (options->waiting == NULL || x->is_stream) {
        await_batch(x, &tags->message);
        return;
    }

    int64_t due_ms = x->waited_ms == 0 ? options->waiting_after_ms : x->waited_ms;
    while (grpc_completion_queue_pluck(
               x->queue, &tags->message,
               gpr_time_add(x->started, gpr_time_from_millis(due_ms, GPR_TIMESPAN)), NULL)
               .type == GRPC_QUEUE_TIMEOUT) {
        options->waiting(options->waiting_context, due_ms);

        /* The callback may have taken long. */
        gpr_timespec passed = gpr_time_sub(gpr_now(GPR_CLOCK_REALTIME), x->started);
        while (due_ms <= gpr_time_to_millis(passed)) {
            due_ms += WAITING_STEP_MS;
        }
        x->waited_ms = due_ms;
    }
}

/* The bytes of the received message in one piece; p is NULL if the arena refuses them. */
static struct hearth_str join_message(struct hearth_exchange *x)
{
    grpc_byte_buffer_reader reader;

    if (!grpc_byte_buffer_reader_init(&reader, x->received)) {
        return (struct hearth_str){0};
    }
    size_t n = grpc_byte_buffer_length(reader.buffer_out), at = 0;
    char *bytes = hearth_arena_alloc(x->arena, n);
    grpc_slice slice;
    while (bytes != NULL && grpc_byte_buffer_reader_next(&reader, &slice)) {
        memcpy(bytes + at, GRPC_SLICE_START_PTR(slice), GRPC_SLICE_LENGTH(slice));
        at += GRPC_SLICE_LENGTH(slice);
        grpc_slice_unref(slice);
    }
    grpc_byte_buffer_reader_destroy(&reader);

    return hearth_str_n(bytes, at);
}

/* Gives the messages to the caller until the call has ended. */
static void read_messages(const struct hearth_client *client, struct hearth_exchange *x,
                          struct batches *tags)
{
    const grpc_op op = {.op = GRPC_OP_RECV_MESSAGE, .data.recv_message.recv_message = &x->received};

    while (start_batch(x, &op, 1, &tags->message)) {
        await_message(client, x, tags);
        if (x->received == NULL) {
            return;
        }
        struct hearth_str message = join_message(x);
        grpc_byte_buffer_destroy(x->received);
        x->received = NULL;
        x->was_refused = message.p == NULL;
        if (x->was_refused || !x->message(x->context, message)) {
            (void)grpc_call_cancel(x->call, NULL);
        }
    }
}

gpr_timespec hearth_exchange_deadline(int64_t timeout_ms)
{
    return gpr_time_add(gpr_now(GPR_CLOCK_REALTIME),
                        gpr_time_from_millis(timeout_ms, GPR_TIMESPAN));
}

void hearth_exchange_run(struct hearth_client *client, struct hearth_exchange *x)
{
    struct batches tags;

    assert(x->path != NULL && x->message != NULL && x->arena != NULL);
    grpc_metadata_array_init(&x->initial);
    grpc_metadata_array_init(&x->trailing);
    x->code = GRPC_STATUS_INTERNAL;
    x->details = grpc_empty_slice();
    x->received = NULL;
    x->was_refused = false;
    x->queue = grpc_completion_queue_create_for_pluck(NULL);
    grpc_slice path = grpc_slice_from_copied_string(x->path);
    x->call = grpc_channel_create_call(client->channel, NULL, GRPC_PROPAGATE_DEFAULTS, x->queue,
                                       path, NULL, x->deadline, NULL);

    bool has_request = start_request(client, x, &tags);
    bool has_status = start_status(x, &tags);
    if (has_request && has_status) {
        read_messages(client, x, &tags);
    } else {
        (void)grpc_call_cancel(x->call, NULL);
    }
    if (has_request) {
        await_batch(x, &tags.request);
    }
    if (has_status) {
        await_batch(x, &tags.status);
    }

    /* A channel that cannot connect is in TRANSIENT_FAILURE; one whose connection has ended is idle
     * or connects again. */
    bool is_answered = hearth_exchange_is_answered(x);
    x->was_cut =
        !is_answered && x->code == GRPC_STATUS_UNAVAILABLE &&
        grpc_channel_check_connectivity_state(client->channel, 0) != GRPC_CHANNEL_TRANSIENT_FAILURE;
    if (is_answered || x->was_cut) {
        atomic_store(&client->was_reached, true);
    }
    grpc_slice_unref(path);
}

void hearth_exchange_release(struct hearth_exchange *x)
{
    grpc_slice_unref(x->details);
    grpc_metadata_array_destroy(&x->initial);
    grpc_metadata_array_destroy(&x->trailing);

    /* The texts of the metadata are the call's. */
    grpc_call_unref(x->call);
    grpc_completion_queue_shutdown(x->queue);
    grpc_completion_queue_destroy(x->queue);
}

/* The cause at the end of the core's text, "Connection refused": before it are its own layers. */
static struct hearth_str last_cause(struct hearth_str details)
{
    for (size_t i = details.n; i > 2; i--) {
        if (details.p[i - 2] == ':' && details.p[i - 1] == ' ') {
            return hearth_str_n(details.p + i, details.n - i);
        }
    }
    return details;
}

enum hearth_status hearth_exchange_outcome(const struct hearth_client *client,
                                           const struct hearth_exchange *x, struct hearth_err *err)
{
    if (x->code == GRPC_STATUS_OK) {
        return HEARTH_OK;
    }
    if (x->was_refused) {
        return HEARTH_FAIL_ARENA(err, x->arena);
    }
    enum hearth_status status = hearth_status_from_grpc((int)x->code);
    struct hearth_str details = {(const char *)GRPC_SLICE_START_PTR(x->details),
                                 GRPC_SLICE_LENGTH(x->details)};

    /* Without an answer at all the core's text is about sockets: say what was tried. */
    bool is_answered = hearth_exchange_is_answered(x);
    if (status == HEARTH_DEADLINE_EXCEEDED && !is_answered) {
        return HEARTH_FAIL(err, status, "no answer from %s within %.3g s", client->target,
                           (double)x->timeout_ms / 1000);
    }
    if (status == HEARTH_UNAVAILABLE && !is_answered) {
        return HEARTH_FAIL(err, status, "cannot reach %s: " HEARTH_STR_FMT, client->target,
                           HEARTH_STR_ARG(last_cause(details)));
    }

    return HEARTH_FAIL(err, status, "%.*s", (int)details.n, details.p);
}
