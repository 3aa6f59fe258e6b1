/* client.c -- blocking unary calls over the gRPC C core. Each call has a completion queue of its
 * own. */
#include "hearth/client.h"

#include "hearth/base/mem.h"

#include "client_headers.h"
#include "client_tls.h"

#include <grpc/byte_buffer_reader.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/support/alloc.h>

#include <assert.h>

#define WAITING_STEP_MS 1000 /* between two calls of options.waiting */

struct hearth_client {
    grpc_channel *channel;
    char *target;
    struct client_metadata metadata; /* of each call */
    int64_t timeout_ms;
    void (*note)(void *context, struct hearth_str text);
    void *note_context;
    void (*waiting)(void *context, int64_t waited_ms);
    void *waiting_context;
    int64_t waiting_after_ms;
};

void hearth_client_options_init(struct hearth_client_options *options)
{
    *options = (struct hearth_client_options){
        .url = "http://127.0.0.1:4040",
        .timeout_ms = 60000,
        .max_answer_bytes = (size_t)1 << 30,
    };
}

/* HOST:PORT of a URL; a missing port is 4040. In the arena-less world of a client: malloc'ed, or
 * NULL. */
static char *target_of_url(struct hearth_str given, bool *ret_is_tls, struct hearth_err *err)
{
    struct hearth_str url = given;

    *ret_is_tls = hearth_str_starts(url, HEARTH_STR("https://"));
    if (*ret_is_tls) {
        url = hearth_str_n(url.p + 8, url.n - 8);
    } else if (hearth_str_starts(url, HEARTH_STR("http://"))) {
        url = hearth_str_n(url.p + 7, url.n - 7);
    }
    if (url.n > 0 && url.p[url.n - 1] == '/') {
        url.n--;
    }
    bool has_port = false;
    for (size_t i = 0; i < url.n; i++) {
        has_port = url.p[i] == ':' ? true : url.p[i] == ']' ? false : has_port;
    }
    if (url.n == 0 || hearth_str_find(url, '/', 0) < url.n) {
        (void)HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                          "url \"" HEARTH_STR_FMT "\" is not http://HOST:PORT or https://HOST:PORT",
                          HEARTH_STR_ARG(given));
        return NULL;
    }
    char *target = hearth_mem_alloc(url.n + sizeof ":4040");
    if (target == NULL) {
        (void)HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate a client");
        return NULL;
    }
    memcpy(target, url.p, url.n);
    memcpy(target + url.n, has_port ? "" : ":4040", has_port ? 1 : sizeof ":4040");

    return target;
}

/* Whether a text is http://[USER:PASSWORD@]HOST:PORT, as the core reads it. */
static bool is_proxy(struct hearth_str url)
{
    const struct hearth_str scheme = HEARTH_STR("http://");

    for (size_t i = 0; i < url.n; i++) {
        if (url.p[i] <= ' ' || url.p[i] >= 0x7f) {
            return false;
        }
    }
    size_t slash = hearth_str_starts(url, scheme) ? hearth_str_find(url, '/', scheme.n) : 0;
    size_t n_digits = 0;
    while (n_digits < url.n && url.p[url.n - 1 - n_digits] >= '0' &&
           url.p[url.n - 1 - n_digits] <= '9') {
        n_digits++;
    }

    return slash >= url.n && n_digits > 0 && n_digits <= 5 && url.n > scheme.n + n_digits + 1 &&
           url.p[url.n - 1 - n_digits] == ':';
}

static grpc_channel *open_channel(const char *target, grpc_channel_credentials *credentials,
                                  const struct hearth_client_options *options)
{
    size_t max_bytes = options->max_answer_bytes;
    grpc_arg args[] = {
        {.type = GRPC_ARG_INTEGER,
         .key = (char[]){GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH},
         .value.integer = max_bytes > INT32_MAX ? INT32_MAX : (int)max_bytes},
        {.type = GRPC_ARG_INTEGER,
         .key = (char[]){GRPC_ARG_MAX_SEND_MESSAGE_LENGTH},
         .value.integer = -1},
        /* One server, one user: a refused connection is an answer, not the start of a long
           back-off. */
        {.type = GRPC_ARG_INTEGER,
         .key = (char[]){GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS},
         .value.integer = 200},
        /* Otherwise the core reads variables itself, and takes https_proxy for servers without TLS. */
        {.type = GRPC_ARG_INTEGER,
         .key = (char[]){GRPC_ARG_ENABLE_HTTP_PROXY},
         .value.integer = options->proxy != NULL},
        {.type = GRPC_ARG_STRING,
         .key = (char[]){GRPC_ARG_HTTP_PROXY},
         .value.string = (char *)(uintptr_t)options->proxy},
    };
    size_t n_args = HEARTH_ARRAY_LEN(args) - (options->proxy == NULL);
    grpc_channel_args channel_args = {.num_args = n_args, .args = args};
    return grpc_channel_create(target, credentials, &channel_args);
}

static enum hearth_status make_credentials(const struct hearth_client_options *options, bool is_tls,
                                           grpc_channel_credentials **ret_credentials,
                                           struct hearth_err *err)
{
    bool has_files = options->ca_file != NULL || options->cert_file != NULL ||
                     options->key_file != NULL || options->skip_verify;

    if (is_tls) {
        return hearth_client_tls(options, ret_credentials, err);
    }
    if (has_files) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "url \"%.200s\": certificates are for https://HOST:PORT", options->url);
    }
    *ret_credentials = grpc_insecure_credentials_create();

    return HEARTH_OK;
}

enum hearth_status hearth_client_new(const struct hearth_client_options *options,
                                     struct hearth_client **ret_client, struct hearth_err *err)
{
    assert(options != NULL && options->url != NULL && ret_client != NULL);
    assert(options->timeout_ms > 0);
    assert(options->waiting == NULL || options->waiting_after_ms >= 0);

    bool is_tls;
    char *target = target_of_url(hearth_str_c(options->url), &is_tls, err);

    if (target == NULL) {
        return err != NULL && err->status != HEARTH_OK ? err->status : HEARTH_INVALID_ARGUMENT;
    }
    struct hearth_client *client = hearth_mem_zalloc(sizeof *client);
    if (client == NULL) {
        hearth_mem_free(target);
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate a client");
    }

    /* Check what the calls send, and where to. */
    grpc_init();
    client->target = target;
    client->timeout_ms = options->timeout_ms;
    client->note = options->note;
    client->note_context = options->note_context;
    client->waiting = options->waiting;
    client->waiting_context = options->waiting_context;
    client->waiting_after_ms = options->waiting_after_ms;
    enum hearth_status status = client_metadata_fill(&client->metadata, options, err);
    if (status == HEARTH_OK && options->proxy != NULL && !is_proxy(hearth_str_c(options->proxy))) {
        status = HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                             "the proxy is not http://HOST:PORT or http://USER:PASSWORD@HOST:PORT");
    }

    grpc_channel_credentials *credentials = NULL;
    if (status == HEARTH_OK) {
        status = make_credentials(options, is_tls, &credentials, err);
    }
    if (status != HEARTH_OK) {
        hearth_client_free(client);
        return status;
    }
    client->channel = open_channel(target, credentials, options);
    grpc_channel_credentials_release(credentials);
    *ret_client = client;

    return HEARTH_OK;
}

void hearth_client_free(struct hearth_client *client)
{
    if (client == NULL) {
        return;
    }
    if (client->channel != NULL) {
        grpc_channel_destroy(client->channel);
    }
    client_metadata_release(&client->metadata);
    grpc_shutdown();
    hearth_mem_free(client->target);
    hearth_mem_free(client);
}

enum hearth_status hearth_client_set_token(struct hearth_client *client, struct hearth_str token,
                                           struct hearth_err *err)
{
    assert(client != NULL);

    /* gRPC refuses a call with other bytes, without saying why. */
    bool is_text = token.n > 0;
    for (size_t i = 0; i < token.n; i++) {
        is_text = is_text && token.p[i] > ' ' && token.p[i] < 0x7f;
    }
    if (!is_text) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "a token is one word of visible ASCII characters");
    }
    if (client_metadata_has(&client->metadata, "authorization")) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "the header authorization is given already: a token is sent in it");
    }

    struct hearth_buf value;
    hearth_buf_init(&value, 0);
    hearth_buf_cstr(&value, "Bearer ");
    hearth_buf_str(&value, token);
    enum hearth_status status = HEARTH_OK;
    if (hearth_buf_failed(&value)) {
        status = HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate a client");
    } else {
        client_metadata_add(&client->metadata, HEARTH_STR("authorization"),
                            hearth_buf_view(&value));
    }
    hearth_buf_release(&value);

    return status;
}

/* ---- one call ---- */

struct exchange {
    grpc_completion_queue *queue;
    grpc_call *call;
    grpc_byte_buffer *request, *answer;
    grpc_metadata_array initial, trailing;
    grpc_status_code code;
    grpc_slice details;
};

static grpc_byte_buffer *pack_request(const struct ProtobufCMessage *request)
{
    struct hearth_buf wire;
    hearth_buf_init(&wire, 0);
    hearth_pb_pack(request, &wire);
    grpc_byte_buffer *buffer = NULL;
    if (!hearth_buf_failed(&wire)) {
        grpc_slice slice = grpc_slice_from_copied_buffer(wire.p, wire.n);
        buffer = grpc_raw_byte_buffer_create(&slice, 1);
        grpc_slice_unref(slice);
    }
    hearth_buf_release(&wire);
    return buffer;
}

/* Until the call has ended, by its deadline at the latest. */
static void await_end(const struct hearth_client *client, struct exchange *x)
{
    gpr_timespec start = gpr_now(GPR_CLOCK_REALTIME);
    gpr_timespec never = gpr_inf_future(GPR_CLOCK_REALTIME);
    int64_t waited_ms = client->waiting_after_ms;
    bool has_told = false;

    while (grpc_completion_queue_pluck(
               x->queue, x,
               client->waiting == NULL
                   ? never
                   : gpr_time_add(start, gpr_time_from_millis(waited_ms, GPR_TIMESPAN)),
               NULL)
               .type == GRPC_QUEUE_TIMEOUT) {
        client->waiting(client->waiting_context, waited_ms);
        has_told = true;

        /* The callback may have taken long. */
        gpr_timespec passed = gpr_time_sub(gpr_now(GPR_CLOCK_REALTIME), start);
        while (waited_ms <= gpr_time_to_millis(passed)) {
            waited_ms += WAITING_STEP_MS;
        }
    }
    if (has_told) {
        client->waiting(client->waiting_context, HEARTH_CLIENT_WAITED);
    }
}

static void run_exchange(struct hearth_client *client, struct exchange *x)
{
    grpc_op ops[6] = {
        {.op = GRPC_OP_SEND_INITIAL_METADATA,
         .data.send_initial_metadata = {.count = client->metadata.n,
                                        .metadata = client->metadata.v}},
        {.op = GRPC_OP_SEND_MESSAGE, .data.send_message.send_message = x->request},
        {.op = GRPC_OP_SEND_CLOSE_FROM_CLIENT},
        {.op = GRPC_OP_RECV_INITIAL_METADATA,
         .data.recv_initial_metadata.recv_initial_metadata = &x->initial},
        {.op = GRPC_OP_RECV_MESSAGE, .data.recv_message.recv_message = &x->answer},
        {.op = GRPC_OP_RECV_STATUS_ON_CLIENT,
         .data.recv_status_on_client = {.trailing_metadata = &x->trailing,
                                        .status = &x->code,
                                        .status_details = &x->details}},
    };
    if (grpc_call_start_batch(x->call, ops, HEARTH_ARRAY_LEN(ops), x, NULL) == GRPC_CALL_OK) {
        await_end(client, x);
    } else {
        x->code = GRPC_STATUS_INTERNAL;
    }
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

static enum hearth_status answer_status(const struct hearth_client *client,
                                        const struct exchange *x, struct hearth_err *err)
{
    if (x->code == GRPC_STATUS_OK) {
        return HEARTH_OK;
    }
    enum hearth_status status = hearth_status_from_grpc((int)x->code);
    struct hearth_str details = {(const char *)GRPC_SLICE_START_PTR(x->details),
                                 GRPC_SLICE_LENGTH(x->details)};

    /* Without an answer at all the core's text is about sockets: say what was tried. */
    bool is_answered = x->initial.count > 0 || x->trailing.count > 0;
    if (status == HEARTH_DEADLINE_EXCEEDED && !is_answered) {
        return HEARTH_FAIL(err, status, "no answer from %s within %.3g s", client->target,
                           (double)client->timeout_ms / 1000);
    }
    if (status == HEARTH_UNAVAILABLE && !is_answered) {
        return HEARTH_FAIL(err, status, "cannot reach %s: " HEARTH_STR_FMT, client->target,
                           HEARTH_STR_ARG(last_cause(details)));
    }

    return HEARTH_FAIL(err, status, "%.*s", (int)details.n, details.p);
}

/* The message's bytes in one piece, in arena. */
static enum hearth_status collect_answer(grpc_byte_buffer *answer, struct hearth_arena *arena,
                                         struct hearth_str *ret, struct hearth_err *err)
{
    grpc_byte_buffer_reader reader;

    if (answer == NULL || !grpc_byte_buffer_reader_init(&reader, answer)) {
        return HEARTH_FAIL(err, HEARTH_INTERNAL, "the server sent no message");
    }
    size_t n = grpc_byte_buffer_length(reader.buffer_out), at = 0;
    char *bytes = hearth_arena_alloc(arena, n);
    grpc_slice slice;
    while (bytes != NULL && grpc_byte_buffer_reader_next(&reader, &slice)) {
        memcpy(bytes + at, GRPC_SLICE_START_PTR(slice), GRPC_SLICE_LENGTH(slice));
        at += GRPC_SLICE_LENGTH(slice);
        grpc_slice_unref(slice);
    }
    grpc_byte_buffer_reader_destroy(&reader);
    *ret = hearth_str_n(bytes, at);

    return bytes == NULL ? HEARTH_FAIL_ARENA(err, arena) : HEARTH_OK;
}

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
}

static void tell_notes(const struct hearth_client *client, const grpc_metadata_array *metadata)
{
    for (size_t i = 0; client->note != NULL && i < metadata->count; i++) {
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
            client->note(client->note_context, hearth_buf_view(&text));
        }
        hearth_buf_release(&text);
    }
}

enum hearth_status hearth_client_call(struct hearth_client *client, const char *method,
                                      const struct ProtobufCMessage *request,
                                      const struct ProtobufCMessageDescriptor *answer_type,
                                      struct hearth_arena *arena,
                                      struct ProtobufCMessage **ret_answer,
                                      const char **ret_dropped, struct hearth_err *err)
{
    assert(client != NULL && arena != NULL && ret_answer != NULL);
    assert(method != NULL && method[0] != '/');
    assert(request != NULL && answer_type != NULL);

    char *path = hearth_arena_printf(arena, "/%s", method);
    struct exchange x = {.request = pack_request(request), .details = grpc_empty_slice()};
    if (path == NULL || x.request == NULL) {
        grpc_byte_buffer_destroy(x.request);
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate a request");
    }
    grpc_metadata_array_init(&x.initial);
    grpc_metadata_array_init(&x.trailing);
    x.queue = grpc_completion_queue_create_for_pluck(NULL);
    gpr_timespec deadline = gpr_time_add(gpr_now(GPR_CLOCK_REALTIME),
                                         gpr_time_from_millis(client->timeout_ms, GPR_TIMESPAN));
    grpc_slice path_slice = grpc_slice_from_copied_string(path);
    x.call = grpc_channel_create_call(client->channel, NULL, GRPC_PROPAGATE_DEFAULTS, x.queue,
                                      path_slice, NULL, deadline, NULL);
    run_exchange(client, &x);

    enum hearth_status status = answer_status(client, &x, err);
    struct hearth_str wire = {0};
    if (status == HEARTH_OK) {
        status = collect_answer(x.answer, arena, &wire, err);
    }
    if (ret_dropped != NULL) {
        *ret_dropped = find_dropped(&x.trailing, arena, find_dropped(&x.initial, arena, NULL));
    }
    tell_notes(client, &x.trailing);
    grpc_slice_unref(path_slice);
    grpc_slice_unref(x.details);
    grpc_byte_buffer_destroy(x.request);
    grpc_byte_buffer_destroy(x.answer);
    grpc_metadata_array_destroy(&x.initial);
    grpc_metadata_array_destroy(&x.trailing);
    grpc_call_unref(x.call);
    grpc_completion_queue_shutdown(x.queue);
    grpc_completion_queue_destroy(x.queue);
    return status == HEARTH_OK ? hearth_pb_unpack(answer_type, wire, arena, ret_answer, err)
                               : status;
}
