/*
 * http_request.c -- heads, bodies and answers of HTTP/1.1.
 *
 * A request that is refused is answered when its body has come, because closing a connection with
 * unread bytes resets it, and the client may lose the answer. A long body is not waited for: the
 * request is answered at once, and the rest of the body is dropped for a moment (net/linger.h). If
 * the body turns out to be long only while it comes, the library would send no answer before its
 * end; so the answer is then written here.
 */
#include "http/http_request.h"

#include "hearth/base/base64.h"
#include "hearth/base/limit.h"
#include "hearth/base/mem.h"
#include "hearth/base/metrics.h"

#include "http/grpc_web.h"
#include "http/http_answer.h"
#include "http/http_call.h"
#include "http/http_head.h"
#include "http/http_trailers.h"
#include "http/quiet_routes.h"
#include "http/routes.h"
#include "http/web_page.h"
#include "net/acceptor.h"
#include "net/peer_caller.h"
#include "rpc/client_family.h"
#include "rpc/front_internal.h"
#include "rpc/request_log.h"

#include <assert.h>
#include <stdio.h>
#include <sys/socket.h>

/* Without Basic, for which a browser would ask for a password. */
#define AUTHENTICATE_VALUE  "Bearer realm=\"hearth\""
#define DISCARD_MAX_BYTES   (INT64_C(16) << 20)
#define ANSWER_NOW_BYTES    (INT64_C(64) << 10) /* longer announced bodies are not waited for */
#define FIRST_RESERVE_BYTES (64u << 10)

enum request_state {
    REQUEST_NEW,        /* the request line was read */
    REQUEST_READING,    /* the head was read; the body is collected */
    REQUEST_DISCARDING, /* the answer is made; the rest of the body is dropped, then it is queued */
    REQUEST_WORKING, /* with the rpc's handler; the connection is suspended unless it runs inline */
    REQUEST_ANSWERED, /* the answer is made, or queued in the library */
};

struct http_request {
    struct hearth_rpc rpc; /* initialised if has_rpc */
    struct hearth_http *http;
    struct MHD_Connection *connection;
    /* enum request_state. Stored by the thread that ends the request, loaded by the daemon's. */
    _Atomic int state;
    bool has_rpc;      /* false for requests that are answered at once */
    bool is_suspended; /* the connection is suspended; cleared before it is resumed */
    bool takes_gzip;   /* the client accepts gzip */
    bool is_http_1_0;
    bool is_quiet; /* a quiet route: a body that is announced is read to its end and dropped */
    const struct hearth_rpc_media *media;  /* of an RPC; NULL for plain routes */
    enum hearth_compression grpc_encoding; /* of gRPC messages with the flag "compressed" */
    struct hearth_http_framing framing;
    char *query;                  /* the part of the target after the '?', as sent; NULL: none */
    struct hearth_http_call call; /* for plain routes that run on pools */
    struct hearth_buf body;       /* collected so far */
    int64_t discarded_bytes;
    struct MHD_Response *response; /* NULL without memory, and after it was queued */
    struct hearth_str text;        /* its body, if that is in memory and may be sent as it is */
    unsigned code;                 /* of the response */
    size_t n_sent;                 /* of an answer in pieces: bytes of rpc.packed that were sent */
};

/* ---- answers ---- */

static void add_response_header(struct http_request *request, const char *name, const char *value)
{
    if (request->response != NULL) {
        (void)MHD_add_response_header(request->response, name, value);
    }
}

static void set_response_head(struct http_request *request, unsigned code, const char *content_type)
{
    request->code = code;
    if (content_type != NULL) {
        add_response_header(request, MHD_HTTP_HEADER_CONTENT_TYPE, content_type);
    }
    if (atomic_load_explicit(&request->http->front->is_stopping, memory_order_relaxed)) {
        add_response_header(request, MHD_HTTP_HEADER_CONNECTION, "close");
    }
}

/* Takes the bytes of the buffer. Without memory for a response, the connection will be closed. */
static void set_response(struct http_request *request, unsigned code, const char *content_type,
                         struct hearth_buf *body)
{
    size_t n = 0;
    char *bytes = hearth_buf_take(body, &n);

    if (n > 0) {
        request->response =
            MHD_create_response_from_buffer_with_free_callback(n, bytes, hearth_mem_free);
    } else {
        hearth_mem_free(bytes);
        request->response = MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
    }

    if (n > 0 && request->response == NULL) {
        hearth_mem_free(bytes);
        n = 0;
    }

    request->text = hearth_str_n(bytes, n);
    set_response_head(request, code, content_type);
}

/* A callback on the daemon's thread: reads the next bytes of an answer in pieces. */
static ssize_t read_answer_pieces(void *cls, uint64_t position, char *to, size_t n)
{
    struct http_request *request = cls;
    struct hearth_rpc *rpc = &request->rpc;

    (void)position;
    ssize_t n_read = hearth_pieces_read(&rpc->pieces, &rpc->packed, &request->n_sent, to, n);
    if (n_read < 0) {
        hearth_request_log_cut(rpc);
        return MHD_CONTENT_READER_END_WITH_ERROR;
    }

    return n_read == 0 ? MHD_CONTENT_READER_END_OF_STREAM : n_read;
}

static void set_pieces_response(struct http_request *request, unsigned code,
                                const char *content_type)
{
    request->response = MHD_create_response_from_callback(
        MHD_SIZE_UNKNOWN, HEARTH_PIECES_WINDOW_BYTES, read_answer_pieces, request, NULL);
    set_response_head(request, code, content_type);
}

/* Answers at once with a text; "": without a body. */
static void set_text_response(struct http_request *request, unsigned code, const char *text)
{
    struct hearth_buf body;
    hearth_buf_init(&body, 0);
    hearth_buf_cstr(&body, text);
    set_response(request, code, text[0] == '\0' ? NULL : "text/plain; charset=utf-8", &body);
    request->state = REQUEST_DISCARDING;
}

static bool is_grpc(const struct http_request *request)
{
    return request->media != NULL && request->media->protocol != HEARTH_RPC_CONNECT;
}

/* The rpc's `finish`. Runs on any thread. */
static void finish_request(struct hearth_rpc *rpc)
{
    struct http_request *request = HEARTH_CONTAINER_OF(rpc, struct http_request, rpc);
    struct hearth_http *http = request->http;
    assert(request->state == REQUEST_READING || request->state == REQUEST_WORKING);

    /* The body, or its source. */
    struct hearth_http_answer answer;
    hearth_http_answer_make(rpc, request->media, request->takes_gzip, &answer);
    if (answer.is_in_pieces) {
        set_pieces_response(request, answer.code, answer.content_type);
    } else if (answer.has_trailers) {
        request->response = hearth_http_trailed_response(&answer.body, &answer.trailers);
        set_response_head(request, answer.code, answer.content_type);
        add_response_header(request, MHD_HTTP_HEADER_TRAILER, "grpc-status, grpc-message");
    } else {
        set_response(request, answer.code, answer.content_type, &answer.body);
    }

    /* The headers. */
    if (rpc->status == HEARTH_UNAUTHENTICATED) {
        add_response_header(request, MHD_HTTP_HEADER_WWW_AUTHENTICATE, AUTHENTICATE_VALUE);
    }
    add_response_header(request, HEARTH_REQUEST_ID_HEADER, rpc->ids.request_id);
    for (size_t i = 0; i < answer.n_headers; i++) {
        add_response_header(request, answer.headers[i].name, answer.headers[i].value);
    }

    for (size_t i = 0; i < rpc->n_headers; i++) {
        add_response_header(request, rpc->headers[i].name, rpc->headers[i].value);
    }

    for (size_t i = 0; i < rpc->n_notes && !is_grpc(request); i++) {
        add_response_header(request, "Hearth-Note", rpc->note_values[i]);
    }

    /* Once the connection is resumed, the daemon's thread may free the request. */
    bool is_suspended = request->is_suspended;
    request->is_suspended = false;
    request->state = request->state == REQUEST_WORKING ? REQUEST_ANSWERED : REQUEST_DISCARDING;
    if (is_suspended) {
        MHD_resume_connection(request->connection);
        (void)atomic_fetch_sub(&http->n_suspended, 1);
    }
}

static enum MHD_Result queue_answer(struct http_request *request)
{
    if (request->response == NULL) {
        return MHD_NO;
    }

    enum MHD_Result result =
        MHD_queue_response(request->connection, request->code, request->response);
    MHD_destroy_response(request->response);
    request->response = NULL;
    request->state = REQUEST_ANSWERED;

    return result;
}

/* -1 if the library does not tell. */
static int get_connection_fd(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info != NULL ? info->connect_fd : -1;
}

/* Queues the answer now. The library reads no more of the request, and closes the connection after
 * the answer. */
static enum MHD_Result answer_early(struct http_request *request)
{
    hearth_acceptor_linger(request->http->front->acceptor, get_connection_fd(request->connection));
    return queue_answer(request);
}

/* ---- the head ---- */

static void drop_http_body(struct hearth_rpc *rpc)
{
    struct http_request *request = HEARTH_CONTAINER_OF(rpc, struct http_request, rpc);
    hearth_buf_release(&request->body);
    hearth_rpc_let_body_go(rpc);
    rpc->body = hearth_str_n(NULL, 0);
}

static void write_connection_text(struct MHD_Connection *connection,
                                  char out[HEARTH_PEER_TEXT_BYTES])
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    static const struct sockaddr nobody = {.sa_family = AF_UNSPEC};
    hearth_address_text(info != NULL ? info->client_addr : &nobody, out);
}

static void write_client_text(struct hearth_rpc *rpc, char out[HEARTH_PEER_TEXT_BYTES])
{
    write_connection_text(HEARTH_CONTAINER_OF(rpc, struct http_request, rpc)->connection, out);
}

static void refuse_request(struct http_request *request, enum hearth_status status)
{
    hearth_rpc_refuse(&request->rpc, status);
}

static enum hearth_status check_tenant_and_length(struct hearth_rpc *rpc,
                                                  const struct hearth_http_head *head)
{
    const struct hearth_front_options *options = &rpc->front->options;
    struct hearth_front_caller caller = head->caller;

    HEARTH_TRY(hearth_front_admit(rpc->front, rpc->method, &caller, &rpc->caller, &rpc->err));
    if (head->content_length > options->max_request_bytes) {
        return HEARTH_FAIL(&rpc->err, HEARTH_TOO_LARGE,
                           "request body is %lld bytes; the limit is %lld" HEARTH_RAISE_OPTION(
                               "max-request-bytes"),
                           (long long)head->content_length, (long long)options->max_request_bytes);
    }

    /* Refuse a body that does not fit now, before it is sent. */
    return hearth_rpc_expect_body(rpc, head->content_length);
}

static enum hearth_status read_connect_head(struct http_request *request,
                                            const struct hearth_http_head *head)
{
    struct hearth_rpc *rpc = &request->rpc;
    struct hearth_connect_call call;

    HEARTH_TRY(hearth_connect_parse_head(&head->connect, &call, &rpc->err));
    rpc->compression = call.compression;
    hearth_rpc_set_timeout(rpc, call.timeout_ms == HEARTH_CONNECT_NO_TIMEOUT
                                    ? INT64_MAX
                                    : call.timeout_ms * HEARTH_NS_PER_MS);

    return HEARTH_OK;
}

/* The rpc's `open_body`, on a pool thread: takes the message out of its frame. */
static enum hearth_status open_grpc_body(struct hearth_rpc *rpc)
{
    struct http_request *request = HEARTH_CONTAINER_OF(rpc, struct http_request, rpc);
    if (request->media->protocol == HEARTH_RPC_GRPC_WEB_TEXT &&
        !hearth_base64_decode(rpc->body, &rpc->arena, &rpc->body)) {
        return rpc->arena.refused
                   ? HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena)
                   : HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT, "the body is not base64");
    }

    return hearth_grpc_web_read(rpc->body, request->grpc_encoding, &rpc->body, &rpc->compression,
                                &rpc->err);
}

static enum hearth_status read_grpc_head(struct http_request *request,
                                         const struct hearth_http_head *head)
{
    struct hearth_rpc *rpc = &request->rpc;
    struct hearth_str encoding = hearth_str_trim(head->connect.content_encoding);
    int64_t timeout_ns = INT64_MAX;

    request->takes_gzip = hearth_grpc_accepts_gzip(head->grpc_accept_encoding);
    rpc->pieces_way = HEARTH_PIECES_AT_ONCE; /* the frame begins with the length of the message */
    rpc->open_body = open_grpc_body;
    if (encoding.n > 0 && !hearth_str_eq_nocase(encoding, HEARTH_STR("identity"))) {
        return HEARTH_FAIL(&rpc->err, HEARTH_UNIMPLEMENTED,
                           "gRPC compresses messages (grpc-encoding), not the body");
    }

    HEARTH_TRY(hearth_grpc_parse_encoding(head->grpc_encoding, &request->grpc_encoding, &rpc->err));
    if (head->grpc_timeout.n > 0 && !hearth_grpc_parse_timeout(head->grpc_timeout, &timeout_ns)) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                           "grpc-timeout \"" HEARTH_STR_FMT
                           "\" is not a number of at most eight digits and a unit (one of HMSmun)",
                           HEARTH_STR_ARG(head->grpc_timeout));
    }

    hearth_rpc_set_timeout(rpc, timeout_ns);

    return HEARTH_OK;
}

static enum hearth_status check_rpc(struct http_request *request,
                                    const struct hearth_http_head *head)
{
    struct hearth_rpc *rpc = &request->rpc;

    HEARTH_TRY(is_grpc(request) ? read_grpc_head(request, head) : read_connect_head(request, head));
    if (hearth_rpc_is_collecting(rpc)) {
        return HEARTH_FAIL(&rpc->err, HEARTH_UNIMPLEMENTED,
                           "%s takes a stream of messages, which is offered over gRPC only",
                           rpc->method->path + 1);
    }

    if ((rpc->method->flags & HEARTH_METHOD_STREAM) != 0) {
        return HEARTH_FAIL(&rpc->err, HEARTH_UNIMPLEMENTED,
                           "%s streams its answer, which is offered over gRPC only",
                           rpc->method->path + 1);
    }

    return check_tenant_and_length(rpc, head);
}

static void init_rpc(struct http_request *request, const struct hearth_method *method,
                     const struct hearth_http_head *head, const struct hearth_accept *accept)
{
    struct hearth_rpc *rpc = &request->rpc;

    assert(!request->has_rpc && request->state == REQUEST_READING);
    hearth_rpc_init(rpc, request->http->front, method);
    request->has_rpc = true;
    request->takes_gzip = hearth_accept_encoding_has(head->accept_encoding, HEARTH_STR("gzip"));
    rpc->pieces_way = request->takes_gzip ? HEARTH_PIECES_AS_GZIP : HEARTH_PIECES_AS_SENT;
    hearth_buf_init(&request->body, 0);
    rpc->transport = "http";
    if ((method->flags & HEARTH_METHOD_UPLOAD) != 0) {
        rpc->client = hearth_client_of_user_agent(head->user_agent);
    }

    hearth_request_ids_take_id(&rpc->ids, head->request_id);
    hearth_request_ids_take_traceparent(&rpc->ids, head->traceparent);
    rpc->utf8_label_names = accept->utf8_label_names;
    rpc->peer_text = write_client_text;
    rpc->drop_body = drop_http_body;
    rpc->finish = finish_request;
}

/* Prepares for the body, or refuses the request if status is not OK. */
static void await_body(struct http_request *request, const struct hearth_http_head *head,
                       enum hearth_status status)
{
    if (status != HEARTH_OK) {
        refuse_request(request, status);
        return;
    }

    if (head->content_length > 0) {
        size_t first = head->content_length < (int64_t)FIRST_RESERVE_BYTES
                           ? (size_t)head->content_length
                           : FIRST_RESERVE_BYTES;
        (void)hearth_buf_reserve(&request->body, first);
    }
}

static enum hearth_status check_plain_call(struct http_request *request,
                                           const struct hearth_http_head *head)
{
    struct hearth_rpc *rpc = &request->rpc;
    struct hearth_http_call *call = &request->call;
    const struct hearth_connect_head *said = &head->connect;

    if ((rpc->method->flags & HEARTH_METHOD_OTLP) != 0) {
        enum hearth_rpc_codec codec;
        call->errors =
            hearth_otlp_media_find(said->content_type, &codec) && codec == HEARTH_RPC_PROTO
                ? HEARTH_HTTP_ERRORS_STATUS
                : HEARTH_HTTP_ERRORS_STATUS_JSON;
    }

    HEARTH_TRY(check_tenant_and_length(rpc, head));
    call->content_type = hearth_arena_str(&rpc->arena, said->content_type);
    call->content_encoding = hearth_arena_str(&rpc->arena, said->content_encoding);
    if (head->caller.login.p != NULL) {
        call->login_cookie = hearth_arena_str(&rpc->arena, head->caller.login);
    }
    if (call->content_type.p == NULL || call->content_encoding.p == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, &rpc->arena);
    }

    hearth_rpc_set_timeout(rpc, INT64_MAX);
    rpc->arguments = hearth_str_c(request->query);

    return hearth_http_args_parse(rpc->arguments, &rpc->arena, &call->args, &call->n_args,
                                  &rpc->err);
}

static void refuse_method(struct http_request *request, const char *method, const char *allowed)
{
    char text[128];

    (void)snprintf(text, sizeof text, "the method %.32s is not allowed here; use %s\n", method,
                   allowed);
    set_text_response(request, 405, text);
    add_response_header(request, MHD_HTTP_HEADER_ALLOW, allowed);
}

/* A plain route that runs on a pool. */
static void begin_plain_call(struct http_request *request, const struct hearth_http_route *route,
                             const char *method, const struct hearth_http_head *head)
{
    if (!hearth_http_route_allows(route, hearth_str_c(method))) {
        refuse_method(request, method,
                      hearth_http_route_allow(request->http->front->routes,
                                              hearth_str_c(route->method.path)));
        return;
    }

    struct hearth_accept accept = {0};
    (void)!hearth_accept_parse(head->accept, &accept); /* a browser's is never in the way */
    init_rpc(request, &route->method, head, &accept);
    request->call.method = hearth_str_c(method);
    request->rpc.http = &request->call;
    await_body(request, head, check_plain_call(request, head));
}

static void begin_rpc(struct http_request *request, const struct hearth_method *rpc_method,
                      const char *method, const struct hearth_http_head *head)
{
    if (strcmp(method, MHD_HTTP_METHOD_POST) != 0) {
        refuse_method(request, method, "POST");
        return;
    }

    const struct hearth_rpc_media *media = hearth_rpc_media_find(head->connect.content_type);
    if (media == NULL) {
        set_text_response(request, 415,
                          "this Content-Type is not supported; Accept-Post lists those that are\n");
        if ((rpc_method->flags & HEARTH_METHOD_UPLOAD) != 0) {
            hearth_metric_add_labels(HEARTH_M_REJECTED, "unsupported_media_type",
                                     hearth_client_of_user_agent(head->user_agent), 1);
        }
        add_response_header(request, "Accept-Post", HEARTH_ACCEPT_POST);
        return;
    }

    if (media->protocol == HEARTH_RPC_GRPC && request->is_http_1_0) {
        set_text_response(request, 505, "gRPC needs HTTP/1.1, because its status is a trailer\n");
        return;
    }

    struct hearth_accept accept;
    if (!hearth_accept_parse(head->accept, &accept)) {
        set_text_response(request, 400, "malformed Accept header\n");
        return;
    }

    init_rpc(request, rpc_method, head, &accept);
    request->media = media;
    request->rpc.codec = media->codec;
    await_body(request, head, check_rpc(request, head));
}

/* A route of Datadog's agent whose data is not stored (quiet_routes.h). */
static void begin_quiet_route(struct http_request *request, const struct hearth_quiet_route *route,
                              const char *method, const struct hearth_http_head *head)
{
    bool is_json = route->answer[0] == '{';
    struct hearth_buf body;

    if (!hearth_quiet_route_allows(hearth_str_c(method))) {
        refuse_method(request, method, HEARTH_QUIET_ROUTE_ALLOW);
        return;
    }

    hearth_quiet_route_count(route, head->trace_count);
    hearth_buf_init(&body, 0);
    hearth_buf_cstr(&body, route->answer);
    set_response(request, route->code, is_json ? "application/json" : "text/plain; charset=utf-8",
                 &body);
    request->state = REQUEST_DISCARDING;
    request->is_quiet = true;
}

/* Answers an instant route with an error. */
static void set_refusal(struct http_request *request, enum hearth_status status,
                        const struct hearth_err *err)
{
    char text[sizeof err->msg + 1];

    (void)snprintf(text, sizeof text, "%s\n", err->msg);
    set_text_response(request, (unsigned)hearth_status_http(status), text);
    if (status == HEARTH_UNAUTHENTICATED) {
        add_response_header(request, MHD_HTTP_HEADER_WWW_AUTHENTICATE, AUTHENTICATE_VALUE);
    }
}

/* Takes the body of the answer. */
static void set_route_answer(struct http_request *request, struct hearth_route_answer *answer)
{
    if (answer->fixed.n > 0) {
        request->response = MHD_create_response_from_buffer(
            answer->fixed.n, (void *)(uintptr_t)answer->fixed.p, MHD_RESPMEM_PERSISTENT);
        set_response_head(request, answer->code, answer->content_type);
    } else {
        set_response(request, answer->code, answer->content_type, &answer->body);
    }

    for (size_t i = 0; i < answer->n_headers; i++) {
        add_response_header(request, answer->headers[i].name, answer->headers[i].value);
    }
    request->state = REQUEST_DISCARDING;
}

/* A plain route that is answered at once (routes.h), or a file of the web page. */
static void begin_route(struct http_request *request, struct hearth_str path, const char *method,
                        const struct hearth_http_head *head)
{
    const struct hearth_method *route = hearth_route_find(path);
    struct hearth_front *front = request->http->front;
    struct hearth_front_caller caller = head->caller;
    struct hearth_admitted admitted;
    struct hearth_err err = HEARTH_ERR_INIT;

    struct hearth_route_answer answer;
    bool is_root = hearth_str_eq_c(path, "/");
    if ((route == NULL || is_root) && caller.is_reading &&
        hearth_web_page_get(path, head, &answer)) {
        set_route_answer(request, &answer);
        return;
    }

    if (route == NULL) {
        set_text_response(request, 404, "404 page not found\n");
        return;
    }

    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0) {
        refuse_method(request, method, "GET, HEAD");
        return;
    }

    enum hearth_status status = hearth_front_admit(front, route, &caller, &admitted, &err);
    if (status != HEARTH_OK) {
        set_refusal(request, status, &err);
        return;
    }
    hearth_admitted_release(&admitted);

    struct hearth_accept accept = {0};
    (void)!hearth_accept_parse(head->accept, &accept); /* a browser's is never in the way */
    hearth_route_get(front, route, &accept, &answer);
    set_route_answer(request, &answer);
}

/* What the connection says of the caller. */
static void set_caller(struct http_request *request, const char *method,
                       struct hearth_front_caller *caller, struct hearth_peer_names *names)
{
    struct hearth_front *front = request->http->front;
    struct hearth_peer peer;

    hearth_peers_find(hearth_acceptor_peers(front->acceptor),
                      get_connection_fd(request->connection), &peer);
    hearth_peer_describe(front, &peer, caller, names);
    caller->is_reading =
        strcmp(method, MHD_HTTP_METHOD_GET) == 0 || strcmp(method, MHD_HTTP_METHOD_HEAD) == 0;
}

static void read_head(struct http_request *request, const char *method, const char *version,
                      struct hearth_http_head *ret_head)
{
    const struct hearth_front_options *options = &request->http->front->options;
    const struct hearth_proxy_headers proxy = {options->proxy_user_header,
                                               options->proxy_groups_header};

    hearth_http_head_read(request->connection, &proxy, method, version, &request->framing,
                          ret_head);
}

/* RPCs, plain routes on pools, quiet routes, plain routes that are answered at once. */
static void begin_by_path(struct http_request *request, struct hearth_str path, const char *method,
                          const struct hearth_http_head *head)
{
    const struct hearth_method *rpc_method =
        hearth_method_find(request->http->front->methods, path);
    const struct hearth_http_route *route =
        hearth_http_route_find(request->http->front->routes, path, hearth_str_c(method));
    const struct hearth_quiet_route *quiet = hearth_quiet_route_find(path);

    if (rpc_method != NULL) {
        begin_rpc(request, rpc_method, method, head);
    } else if (route != NULL) {
        begin_plain_call(request, route, method, head);
    } else if (quiet != NULL) {
        begin_quiet_route(request, quiet, method, head);
    } else {
        begin_route(request, path, method, head);
    }
}

static enum MHD_Result begin_request(struct http_request *request, const char *url,
                                     const char *method, const char *version)
{
    struct hearth_http_head head;
    struct hearth_peer_names names;

    read_head(request, method, version, &head);
    request->is_http_1_0 = strcmp(version, "HTTP/1.0") == 0;
    if (request->framing.code != 0) {
        /* The end of the request is in doubt: following bytes must not be read as another one. */
        set_text_response(request, request->framing.code, request->framing.text);
        return answer_early(request);
    }

    set_caller(request, method, &head.caller, &names);
    begin_by_path(request, hearth_str_c(url), method, &head);
    hearth_peer_names_release(&names);

    int64_t most_bytes = request->is_quiet ? DISCARD_MAX_BYTES : ANSWER_NOW_BYTES;
    if (request->state == REQUEST_DISCARDING &&
        (head.expects_continue || head.content_length > most_bytes)) {
        return answer_early(request);
    }

    return MHD_YES;
}

/* ---- the body ---- */

static enum MHD_Result write_field(void *cls, enum MHD_ValueKind kind, const char *name,
                                   const char *value)
{
    (void)kind;
    hearth_buf_printf(cls, "%s: %s\r\n", name, value);
    return MHD_YES;
}

/*
 * Writes the answer to the socket while the body still comes: it is short, and nothing else waits
 * to be written. The library then closes its copy of the descriptor.
 */
static enum MHD_Result answer_within_body(struct http_request *request)
{
    int fd = get_connection_fd(request->connection);
    struct hearth_buf out;

    if (request->text.n == 0) {
        return MHD_NO;
    }

    hearth_buf_init(&out, 0);
    hearth_buf_printf(&out, "HTTP/1.1 %u %s\r\nConnection: close\r\nContent-Length: %zu\r\n",
                      request->code, MHD_get_reason_phrase_for(request->code), request->text.n);
    (void)MHD_get_response_headers(request->response, write_field, &out);
    hearth_buf_cstr(&out, "\r\n");
    hearth_buf_str(&out, request->text);
    if (!hearth_buf_failed(&out) &&
        send(fd, out.p, out.n, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)out.n) {
        hearth_acceptor_linger(request->http->front->acceptor, fd);
    }
    hearth_buf_release(&out);

    return MHD_NO;
}

static enum MHD_Result take_upload(struct http_request *request, const char *upload, size_t n)
{
    if (request->state != REQUEST_READING) {
        request->discarded_bytes += (int64_t)n;
        return request->discarded_bytes > DISCARD_MAX_BYTES ? answer_within_body(request) : MHD_YES;
    }

    /* Collect the body within its own limit ... */
    struct hearth_rpc *rpc = &request->rpc;
    const struct hearth_front_options *options = &rpc->front->options;
    if (n > (size_t)options->max_request_bytes - request->body.n) {
        refuse_request(
            request, HEARTH_FAIL(&rpc->err, HEARTH_TOO_LARGE,
                                 "request body exceeds the limit of %lld bytes" HEARTH_RAISE_OPTION(
                                     "max-request-bytes"),
                                 (long long)options->max_request_bytes));
        return MHD_YES;
    }

    hearth_buf_append(&request->body, upload, n);
    if (hearth_buf_failed(&request->body)) {
        refuse_request(request, HEARTH_FAIL(&rpc->err, HEARTH_NO_MEMORY, "no memory for the body"));
        return MHD_YES;
    }

    /* ... and within the memory of pushes. */
    size_t n_held = request->body.n <= FIRST_RESERVE_BYTES ? request->body.n : request->body.cap;
    enum hearth_status status = hearth_rpc_hold_body(rpc, n_held);
    if (status != HEARTH_OK) {
        refuse_request(request, status);
    }

    return MHD_YES;
}

/* The request is complete. */
static enum MHD_Result start_work(struct http_request *request)
{
    struct hearth_http *http = request->http;
    struct hearth_rpc *rpc = &request->rpc;

    assert(request->has_rpc && request->state == REQUEST_READING);
    rpc->body = hearth_buf_view(&request->body);
    request->state = REQUEST_WORKING;
    if (hearth_rpc_is_inline(rpc)) {
        hearth_rpc_start(rpc);
        return queue_answer(request);
    }

    /* The stop sets is_shut, then waits for n_suspended: it waits for this request, or this request
     * sees is_shut. */
    (void)atomic_fetch_add(&http->n_suspended, 1);
    if (atomic_load(&http->is_shut)) {
        (void)atomic_fetch_sub(&http->n_suspended, 1);
        refuse_request(request,
                       HEARTH_FAIL(&rpc->err, HEARTH_UNAVAILABLE, "the server is stopping"));
        return queue_answer(request);
    }

    /* The connection sleeps until finish_request resumes it. */
    rpc->fd = get_connection_fd(request->connection);
    request->is_suspended = true;
    MHD_suspend_connection(request->connection);
    hearth_rpc_start(rpc);

    return MHD_YES;
}

/*
 * The library reads arguments leniently, and takes 48 bytes of the connection's memory for each:
 * when that memory is used up, the client gets no answer at all. So the arguments are removed from
 * the library's buffer here, before it reads them.
 */
void *hearth_http_on_uri(void *cls, const char *uri, struct MHD_Connection *connection)
{
    struct http_request *request = hearth_mem_zalloc(sizeof *request);
    if (request == NULL) {
        return NULL;
    }

    request->http = cls;
    request->connection = connection;
    hearth_http_framing_uri(&request->framing, hearth_str_c(uri));
    char *mark = strchr(uri, '?');
    if (mark == NULL) {
        return request;
    }

    size_t n = strlen(mark);
    request->query = hearth_mem_alloc(n); /* with the NUL, without the mark */
    if (request->query == NULL) {
        hearth_mem_free(request);
        return NULL;
    }

    memcpy(request->query, mark + 1, n);
    memset(mark, 0, n);

    return request;
}

/* For the guard against slow clients (net/peers_pace.c). */
static void report_stage(struct hearth_http *http, struct MHD_Connection *connection,
                         enum hearth_peer_stage stage)
{
    hearth_peers_stage(hearth_acceptor_peers(http->front->acceptor), get_connection_fd(connection),
                       stage);
}

enum MHD_Result hearth_http_on_request(void *cls, struct MHD_Connection *connection,
                                       const char *url, const char *method, const char *version,
                                       const char *upload, size_t *upload_bytes, void **slot)
{
    struct hearth_http *http = cls;
    struct http_request *request = *slot;

    if (request == NULL) { /* hearth_http_on_uri had no memory */
        return MHD_NO;
    }

    /* The library calls this with the head, with each part of the body, and at the end of the body.
     * */
    if (request->state == REQUEST_NEW) {
        request->state = REQUEST_READING;
        report_stage(http, connection, HEARTH_PEER_BODY);
        (void)atomic_fetch_add(&http->n_open, 1);
        return begin_request(request, url, method, version);
    }

    if (*upload_bytes > 0) {
        size_t n = *upload_bytes;
        *upload_bytes = 0;
        return take_upload(request, upload, n);
    }

    report_stage(http, connection, HEARTH_PEER_WORK);

    return request->state == REQUEST_READING ? start_work(request) : queue_answer(request);
}

void hearth_http_on_completed(void *cls, struct MHD_Connection *connection, void **slot,
                              enum MHD_RequestTerminationCode how)
{
    struct hearth_http *http = cls;
    struct http_request *request = *slot;

    (void)how;
    report_stage(http, connection, HEARTH_PEER_IDLE);
    if (request == NULL) {
        return;
    }

    HEARTH_ASSERT(request->state != REQUEST_WORKING && !request->is_suspended);
    if (request->response != NULL) {
        MHD_destroy_response(request->response);
    }

    if (request->has_rpc) {
        drop_http_body(&request->rpc);
        hearth_rpc_release(&request->rpc);
    }

    if (request->state != REQUEST_NEW) {
        (void)atomic_fetch_sub(&http->n_open, 1);
    }

    hearth_mem_free(request->query);
    hearth_mem_free(request);
    *slot = NULL;
}
