/* http_answer.c -- status codes, headers and bodies of answers. */
#include "http/http_answer.h"

#include "hearth/base/base64.h"
#include "hearth/codec/pb.h"
#include "hearth/pb/google/rpc/status.pb-c.h"

#include "http/grpc_web.h"
#include "http/http_call.h"

#include <assert.h>

#define GZIP_MIN_BYTES 1024u
#define GZIP_LEVEL     3

static void add_answer_header(struct hearth_http_answer *answer, const char *name,
                              const char *value)
{
    assert(answer->n_headers < HEARTH_HTTP_ANSWER_HEADERS);
    answer->headers[answer->n_headers++] = (struct hearth_rpc_header){name, value};
}

/* True if the handler has compressed the body. */
static bool is_gzip_already(const struct hearth_buf *body)
{
    return body->n >= 2 && memcmp(body->p, "\x1f\x8b", 2) == 0;
}

/* Compresses the body, with n_before free bytes before it. False, and the body unchanged, if that
 * does not make it smaller. */
static bool gzip_body(struct hearth_buf *body, size_t n_before)
{
    if (body->n < GZIP_MIN_BYTES || is_gzip_already(body)) {
        return false;
    }

    struct hearth_buf packed;
    hearth_buf_init(&packed, 0);
    packed.budget = body->budget;
    if (n_before > 0 && hearth_buf_reserve(&packed, n_before) != NULL) {
        packed.n += n_before;
    }

    if (hearth_buf_failed(&packed) ||
        hearth_gzip(hearth_buf_view(body), GZIP_LEVEL, &packed, NULL) != HEARTH_OK ||
        hearth_buf_failed(&packed) || packed.n >= body->n) {
        hearth_buf_release(&packed);
        return false;
    }

    hearth_buf_release(body);
    *body = packed;

    return true;
}

static struct hearth_buf take_packed(struct hearth_rpc *rpc)
{
    struct hearth_buf body = rpc->packed;
    hearth_buf_init(&rpc->packed, 0);
    return body;
}

static void write_status(const struct hearth_rpc *rpc, bool as_json, struct hearth_buf *out)
{
    Google__Rpc__Status status;
    const char *message = hearth_rpc_message(rpc);

    google__rpc__status__init(&status);
    status.code = hearth_status_grpc(rpc->status);
    status.message = (char *)(uintptr_t)message;
    if (as_json) {
        hearth_pb_to_json(&status.base, out);
    } else {
        hearth_pb_pack(&status.base, out);
    }
}

/* A method that is switched off answers 404. A client that may retry is told when. */
static void make_otlp_error(struct hearth_rpc *rpc, struct hearth_http_answer *answer)
{
    bool as_json = rpc->http->errors == HEARTH_HTTP_ERRORS_STATUS_JSON;

    if (rpc->status == HEARTH_UNIMPLEMENTED && rpc->http->code == 0) {
        answer->code = 404;
    }

    answer->content_type = as_json ? HEARTH_OTLP_JSON : HEARTH_OTLP_PROTO;
    write_status(rpc, as_json, &answer->body);
    if (answer->code == 429 || answer->code == 503) {
        add_answer_header(answer, "Retry-After", "1");
    }
}

/* An answer by Connect or of a plain route. */
static void make_plain_answer(struct hearth_rpc *rpc, const struct hearth_rpc_media *media,
                              bool takes_gzip, struct hearth_http_answer *answer)
{
    const struct hearth_http_call *call = rpc->http;
    assert(call != NULL || media != NULL);
    if (call != NULL && call->code != 0) {
        answer->code = call->code;
    } else if (rpc->status != HEARTH_OK) {
        answer->code = (unsigned)hearth_status_http(rpc->status);
    }

    if (rpc->status != HEARTH_OK && call != NULL && call->errors != HEARTH_HTTP_ERRORS_CONNECT) {
        make_otlp_error(rpc, answer);
        return;
    }

    if (rpc->status != HEARTH_OK) {
        answer->content_type = "application/json";
        const char *code = call != NULL ? call->error_code : NULL;
        hearth_connect_write_error(code != NULL ? code : hearth_status_name(rpc->status),
                                   hearth_rpc_message(rpc), rpc->err.selector_place, &answer->body);
        bool is_short = rpc->status == HEARTH_UNAVAILABLE ||
                        (rpc->err.is_passing && rpc->method->pool == HEARTH_POOL_QUERY);
        if (is_short) {
            add_answer_header(answer, "Retry-After", "1");
        } else if (rpc->err.is_passing) {
            add_answer_header(answer, "Retry-After", "30");
        }
        return;
    }

    answer->content_type = call != NULL ? call->answer_type : media->type;
    answer->is_in_pieces = rpc->pieces.more != NULL;
    if (answer->is_in_pieces) {
        return;
    }

    answer->body = take_packed(rpc);
    if (rpc->is_gzip || (takes_gzip && gzip_body(&answer->body, 0))) {
        add_answer_header(answer, "Content-Encoding", "gzip");
        add_answer_header(answer, "Vary", "Accept-Encoding");
    }
}

/* The message in its frame, compressed if that makes it smaller. */
static void frame_message(struct hearth_rpc *rpc, bool takes_gzip,
                          struct hearth_http_answer *answer)
{
    const size_t n_frame = HEARTH_GRPC_WEB_FRAME_BYTES;

    answer->body = take_packed(rpc);
    struct hearth_buf *body = &answer->body;
    bool is_gzip = takes_gzip && gzip_body(body, n_frame);
    if (is_gzip) {
        add_answer_header(answer, "grpc-encoding", "gzip");
    } else if (hearth_buf_reserve(body, n_frame) != NULL) {
        memmove(body->p + n_frame, body->p, body->n);
        body->n += n_frame;
    }

    if (!hearth_buf_failed(body)) {
        unsigned char head[HEARTH_GRPC_WEB_FRAME_BYTES];
        hearth_grpc_web_frame(head, is_gzip, body->n - n_frame);
        memcpy(body->p, head, n_frame);
    }
}

/* An answer by gRPC or gRPC-Web. */
static void make_grpc_answer(struct hearth_rpc *rpc, const struct hearth_rpc_media *media,
                             bool takes_gzip, struct hearth_http_answer *answer)
{
    answer->content_type = media->type;
    add_answer_header(answer, "grpc-accept-encoding", "identity, deflate, gzip");
    if (rpc->status == HEARTH_OK) {
        frame_message(rpc, takes_gzip, answer);
    }

    if (media->protocol == HEARTH_RPC_GRPC) {
        answer->has_trailers = true;
        hearth_grpc_trailers(rpc->status, hearth_rpc_message(rpc), rpc->note_values, rpc->n_notes,
                             &answer->trailers);
        return;
    }

    hearth_grpc_web_trailers(rpc->status, hearth_rpc_message(rpc), rpc->note_values, rpc->n_notes,
                             &answer->body);
    if (media->protocol == HEARTH_RPC_GRPC_WEB_TEXT && !hearth_buf_failed(&answer->body)) {
        struct hearth_buf text;
        hearth_buf_init(&text, 0);
        text.budget = answer->body.budget;
        hearth_base64_encode(hearth_buf_view(&answer->body), &text);
        hearth_buf_release(&answer->body);
        answer->body = text;
    }
}

void hearth_http_answer_make(struct hearth_rpc *rpc, const struct hearth_rpc_media *media,
                             bool takes_gzip, struct hearth_http_answer *ret_answer)
{
    *ret_answer = (struct hearth_http_answer){.code = 200};
    hearth_buf_init(&ret_answer->body, 0);
    hearth_buf_init(&ret_answer->trailers, 0);
    if (media != NULL && media->protocol != HEARTH_RPC_CONNECT) {
        make_grpc_answer(rpc, media, takes_gzip, ret_answer);
    } else {
        make_plain_answer(rpc, media, takes_gzip, ret_answer);
    }
}
