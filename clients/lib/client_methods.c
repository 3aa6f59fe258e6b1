/* client_methods.c -- any method with encoded messages, and streams. */
#include "hearth/base/mem.h"

#include "client_call.h"
#include "client_exchange.h"

#include <assert.h>

void hearth_client_bytes_free(struct hearth_client_bytes *bytes)
{
    if (bytes != NULL) {
        hearth_mem_free(bytes->p);
        *bytes = (struct hearth_client_bytes){0};
    }
}

enum hearth_client_status hearth_client_call(struct hearth_client *client, const char *method,
                                             const void *request, size_t n,
                                             struct hearth_client_bytes *ret_answer,
                                             struct hearth_client_error *error)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_arena arena;
    struct hearth_call call = {.method = method, .request = hearth_str_n(request, n)};

    hearth_arena_init(&arena, 0);
    enum hearth_status status = hearth_call_run(client, &call, &arena, &err);
    if (status == HEARTH_OK) {
        char *copy = hearth_mem_strndup(call.answer.p, call.answer.n);
        if (copy == NULL) {
            status = HEARTH_FAIL(&err, HEARTH_NO_MEMORY, "cannot allocate the answer");
        } else {
            *ret_answer = (struct hearth_client_bytes){.p = copy, .n = call.answer.n};
        }
    }
    hearth_arena_release(&arena);

    return hearth_call_error_out(&err, status, call.is_open, error);
}

/* ---- streams ---- */

struct stream {
    hearth_client_message_fn *message;
    void *context;
    struct hearth_arena arena; /* of one message */
};

static bool pass_message(void *context, struct hearth_str message)
{
    struct stream *stream = context;
    bool goes_on = stream->message(stream->context, message.p, message.n);

    hearth_arena_reset(&stream->arena);

    return goes_on;
}

enum hearth_client_status hearth_client_stream(struct hearth_client *client, const char *method,
                                               const void *request, size_t n, int64_t for_ms,
                                               hearth_client_message_fn *message, void *context,
                                               struct hearth_client_error *error)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct stream stream = {.message = message, .context = context};
    struct hearth_buf path;

    assert(client != NULL && method != NULL && message != NULL && for_ms > 0);
    hearth_buf_init(&path, 0);
    hearth_buf_printf(&path, "/%s", method);
    hearth_buf_byte(&path, '\0');
    if (hearth_buf_failed(&path)) {
        hearth_buf_release(&path);
        return hearth_call_error_out(
            &err, HEARTH_FAIL(&err, HEARTH_NO_MEMORY, "cannot allocate a request"), false, error);
    }

    hearth_arena_init(&stream.arena, 0);
    struct hearth_exchange x = {
        .path = path.p,
        .request = hearth_str_n(request, n),
        .timeout_ms = for_ms,
        .deadline = hearth_exchange_deadline(for_ms),
        .arena = &stream.arena,
        .message = pass_message,
        .context = &stream,
        .is_stream = true,
    };
    hearth_exchange_run(client, &x);
    enum hearth_status status = hearth_exchange_outcome(client, &x, &err);
    hearth_exchange_release(&x);
    hearth_arena_release(&stream.arena);
    hearth_buf_release(&path);

    return hearth_call_error_out(&err, status, x.was_cut, error);
}
