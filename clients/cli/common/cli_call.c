/* cli_call.c -- calls of a server, and what is shown while they last. */
#include "cli_call.h"

#include "hearth/pb/hearth/v1/admin.pb-c.h"

#include "cli_credential.h"
#include "cli_messages.h"
#include "progress.h"
#include "text.h"

#include <assert.h>
#include <stdio.h>

#define WAITING_MS 5000 /* before a call says that it takes long */
#define RETRY_MS   3000 /* a restart; then somebody wants to read the reason */
#define ASK_WHY_MS 2000

/* ---- the client ---- */

static void print_note(void *context, const char *text)
{
    const struct cli *cli = context;

    if (cli->kept_notes != NULL) {
        hearth_buf_cstr(cli->kept_notes, cli->kept_notes->n > 0 ? "; " : "");
        hearth_buf_cstr(cli->kept_notes, text);
    } else if (!cli->is_quiet) {
        cli_say("note", text);
    }
}

/* Prints that an upload takes long, and the reason if the server knows it. */
static void say_upload_waits(struct cli *cli)
{
    struct hearth_client_options options;
    struct hearth_client *client = NULL;
    struct hearth_err why = HEARTH_ERR_INIT;
    cli_client_options(cli, &options);
    options.timeout_ms = ASK_WHY_MS;
    options.retry_ms = 0;
    options.waiting = NULL;

    /* A query fails at once with the reason if the database is away; a push waits. */
    enum hearth_status status = cli_connect(cli, &options, &client, &why);
    if (status == HEARTH_OK) {
        Hearth__V1__StatusRequest request;
        struct ProtobufCMessage *answer;
        hearth__v1__status_request__init(&request);
        struct hearth_call call = {.method = "hearth.v1.AdminService/Status"};
        status = hearth_call_message(client, &call, &request.base,
                                     &hearth__v1__status_response__descriptor, &cli->arena, &answer,
                                     &why);
        hearth_client_free(client);
    }
    bool is_known = status == HEARTH_UNAVAILABLE;
    struct hearth_buf line;
    hearth_buf_init(&line, 0);
    hearth_buf_printf(&line, "not acknowledged yet, still waiting%s%s", is_known ? ": " : "",
                      is_known ? why.msg : "");
    hearth_buf_byte(&line, '\0');
    if (!hearth_buf_failed(&line)) {
        cli_say(cli->uploading, line.p);
    }
    hearth_buf_release(&line);
}

/* Shows how long a call lasts; the context is a struct cli. */
static void show_waiting(void *context, int64_t waited_ms)
{
    struct cli *cli = context;

    if (waited_ms == HEARTH_CLIENT_WAITED) {
        cli_progress_end();
        return;
    }
    if (cli->uploading != NULL && waited_ms == WAITING_MS) {
        say_upload_waits(cli);
    }
    cli_progress(cli, "waiting for %s, %lld s", cli->url, (long long)(waited_ms / 1000));
}

void cli_client_options(struct cli *cli, struct hearth_client_options *ret_options)
{
    hearth_client_options_init(ret_options);
    ret_options->retry_ms = RETRY_MS;
    ret_options->url = cli->url;
    ret_options->tenant = cli->tenant;
    ret_options->headers = cli->header_lines;
    ret_options->n_headers = cli->n_headers;
    ret_options->proxy = cli->proxy;
    ret_options->ca_file = cli->ca_file;
    ret_options->cert_file = cli->cert_file;
    ret_options->key_file = cli->key_file;
    ret_options->skip_verify = cli->skip_verify;
    ret_options->timeout_ms = cli->timeout_ms > 0 ? cli->timeout_ms : ret_options->timeout_ms;
    ret_options->note = print_note;
    ret_options->note_context = cli;
    ret_options->waiting = show_waiting;
    ret_options->waiting_context = cli;
    ret_options->waiting_after_ms = WAITING_MS;
}

/* ---- requests and answers ---- */

char *cli_field(struct cli *cli, const char *text)
{
    assert(text != NULL);

    return hearth_arena_strndup(&cli->arena, text, strlen(text));
}

enum hearth_status cli_call(struct cli *cli, const char *method, const void *request,
                            const struct ProtobufCMessageDescriptor *answer_type, void *ret_answer)
{
    assert(cli->client != NULL); /* offline commands make no request */
    struct ProtobufCMessage *answer;
    struct hearth_call call = {.method = method};
    enum hearth_status status = hearth_call_message(cli->client, &call, request, answer_type,
                                                    &cli->arena, &answer, &cli->err);
    if (status == HEARTH_OK) {
        memcpy(ret_answer, &answer, sizeof answer);
    }
    return status;
}

enum cli_exit cli_print_answer(struct cli *cli, const ProtobufCMessage *answer,
                               struct hearth_buf *text)
{
    assert(answer != NULL && text != NULL);

    if (cli_is_table(cli)) {
        return cli_print(text);
    }
    hearth_buf_release(text);
    struct hearth_buf json, seen;
    hearth_buf_init(&json, 0);
    hearth_pb_to_json(answer, &json);
    if (cli->is_terminal) {
        /* Escapes keep the meaning. */
        hearth_buf_init(&seen, 0);
        hearth_human_escape(hearth_buf_view(&json), &seen);
        seen.failed = seen.failed || hearth_buf_failed(&json);
        hearth_buf_release(&json);
        json = seen;
    }
    hearth_buf_byte(&json, '\n');
    return cli_print_exact(&json);
}
