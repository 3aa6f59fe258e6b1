/*
 * http_datadog.c -- uploads of Datadog's profilers: from a form with an event and attachments to a
 * push of the engine.
 *
 * The parts of the form come in any order, each compressed as its client likes. An attachment that
 * cannot be read does not stop the others; the answer is then an error, although they are stored.
 * Datadog's clients say nothing of refusals, so each one is logged here, a few a second.
 */
#include "hearth/base/clock.h"
#include "hearth/base/limit.h"
#include "hearth/base/log.h"
#include "hearth/base/log_rate.h"
#include "hearth/base/metrics.h"
#include "hearth/codec/compress.h"
#include "hearth/codec/json_pick.h"
#include "hearth/engine/datadog_uploads.h"
#include "hearth/format/datadog_event.h"
#include "hearth/selector/timeexpr.h"

#include "handlers.h"
#include "http/http_call.h"
#include "ingest/kept_originals.h"
#include "rpc/client_family.h"
#include "rpc/push_call.h"
#include "rpc/request_log.h"

#include <assert.h>

#define LOG_LINES_PER_SECOND 2
#define MAX_LOGGED_BYTES     64u /* of a name that the client chose */

/* The kind of a file by its name: a profile, unless it is one of these. */
#define METRICS_FILE    "metrics.json"
#define PROVENANCE_FILE "code-provenance.json"
#define TRACE_FILE      "go.trace"

struct datadog_attachment {
    struct hearth_str filename; /* borrows from the request's body */
    size_t at, n;               /* of the inflated bytes in call->body */
    size_t n_sent;
    struct hearth_str sent; /* until the body of the request is dropped */
    size_t sent_at;         /* of its copy in call->body, if originals are kept */
    struct hearth_push_file file;
};

/* The first refusal of an attachment; lives as long as the request. */
struct datadog_refusal {
    enum hearth_status status; /* OK: none was refused */
    struct hearth_err err;
};

struct datadog_request {
    struct hearth_rpc *rpc;
    struct hearth_push_call *call;
    struct hearth_multipart form;
    struct hearth_datadog_event event;
    int64_t from_ns, until_ns;
    struct datadog_attachment attachments[HEARTH_MULTIPART_MAX_PARTS];
    size_t n_attachments, n_refused;
    struct datadog_refusal *refusal;
};

/* ---- refusals ---- */

/* Logs a refusal, by route, client and reason. */
static void report_datadog_refusal(const char *route, const char *client, struct hearth_str what,
                                   const char *reason)
{
    static struct hearth_log_rate rate;
    int missed;
    char name[MAX_LOGGED_BYTES + 1];
    size_t n = what.n < MAX_LOGGED_BYTES ? what.n : MAX_LOGGED_BYTES;

    if (!hearth_log_rate_take(&rate, LOG_LINES_PER_SECOND, hearth_clock_mono_ns(), &missed)) {
        return;
    }

    if (n > 0) {
        memcpy(name, what.p, n);
    }
    name[n] = '\0';
    HEARTH_LOG(HEARTH_LOG_WARN, "front", "upload of a Datadog client refused", "route", route,
               "client", client, "part", name, "reason", reason, "missed", hearth_log_i64(missed),
               NULL);
}

/* Refuses one attachment; the first refusal becomes the answer. */
static void refuse_attachment(struct datadog_request *d, struct hearth_str filename,
                              enum hearth_status status)
{
    struct hearth_rpc *rpc = d->rpc;

    hearth_err_prefix(&rpc->err, "attachment \"%.*s\"",
                      (int)(filename.n < MAX_LOGGED_BYTES ? filename.n : MAX_LOGGED_BYTES),
                      filename.p);
    report_datadog_refusal(rpc->method->path, rpc->client, filename, rpc->err.msg);
    hearth_metric_add_labels(HEARTH_M_REJECTED, hearth_status_name(status), rpc->client, 1);
    if (d->n_refused++ == 0) {
        *d->refusal = (struct datadog_refusal){status, rpc->err};
    }
}

/*
 * The push_call's `conclude`: a refused attachment is the answer if the others were stored.
 *
 * A service that is switched off, or waits for approval, is refused on purpose, with all profiles
 * of the upload. Libraries would log an error for each: the answer is success, and the refusal is
 * listed.
 */
static enum hearth_status conclude_datadog(struct hearth_push_call *call, enum hearth_status status)
{
    const struct datadog_refusal *refusal = call->session;

    bool is_on_purpose = status == HEARTH_PERMISSION_DENIED && call->request.status == status &&
                         call->request.discards[HEARTH_DISCARD_HIDDEN_SERIES] == 0;
    if (is_on_purpose) {
        hearth_request_note_refusal(call->rpc, hearth_status_name(status), call->rpc->err.msg);
        return HEARTH_OK;
    }

    if (status != HEARTH_OK || refusal->status == HEARTH_OK) {
        return status;
    }

    call->rpc->err = refusal->err;

    return refusal->status;
}

/* The end of a request without a push. */
static void end_datadog_request(struct datadog_request *d, enum hearth_status status)
{
    struct hearth_rpc *rpc = d->rpc;

    if (status == HEARTH_OK && d->n_refused > 0) {
        rpc->counts_refusals = true; /* each one was counted and logged */
    } else if (status != HEARTH_OK) {
        report_datadog_refusal(rpc->method->path, rpc->client, HEARTH_STR(""), rpc->err.msg);
    }

    hearth_push_call_end(d->call, status);
}

/* The push_call's `explain`: refusals of the engine are logged, too. */
static void log_push_failure(struct hearth_push_call *call, enum hearth_status status)
{
    const struct hearth_rpc *rpc = call->rpc;

    /* Refused attachments were logged before; a service that is off is refused on purpose. */
    if (call->request.status != HEARTH_OK && status != HEARTH_PERMISSION_DENIED) {
        report_datadog_refusal(rpc->method->path, rpc->client, HEARTH_STR(""), rpc->err.msg);
    }
}

/* ---- the event ---- */

static bool is_event_file(const struct hearth_multipart_file *file)
{
    return hearth_str_eq_c(file->name, "event") || hearth_str_eq_c(file->filename, "event.json");
}

/* The part with event.json, which some programs send as a plain field; p is NULL without one. */
static struct hearth_str find_event_part(const struct hearth_multipart *form)
{
    for (size_t i = 0; i < form->n_files; i++) {
        if (is_event_file(&form->files[i])) {
            return form->files[i].body;
        }
    }

    for (size_t i = 0; i < form->n_fields; i++) {
        if (hearth_str_eq_c(form->fields[i].name, "event")) {
            return form->fields[i].value;
        }
    }

    return hearth_str_n(NULL, 0);
}

/* Inflates a small part into the arena, if it is compressed. */
static enum hearth_status inflate_event(struct datadog_request *d, struct hearth_str *part)
{
    struct hearth_rpc *rpc = d->rpc;
    enum hearth_compression compression = hearth_compression_detect(*part);

    if (compression == HEARTH_COMPRESSION_NONE) {
        return HEARTH_OK;
    }

    enum hearth_status status =
        hearth_inflate_in_arena(hearth_rpc_inflater(), compression, *part, HEARTH_JSON_PICK_BYTES,
                                &d->call->arena, part, &rpc->err);

    return status == HEARTH_RESOURCE_EXHAUSTED ? HEARTH_INVALID_ARGUMENT : status;
}

/* *ret_ns is 0 if there is no time. */
static enum hearth_status read_event_time(struct datadog_request *d, struct hearth_str text,
                                          const char *name, int64_t *ret_ns)
{
    struct hearth_err *err = &d->rpc->err;

    if (text.n == 0) {
        *ret_ns = 0;
        return HEARTH_OK;
    }

    enum hearth_status status = hearth_time_parse(text, hearth_clock_wall_ns(), ret_ns, err);
    if (status != HEARTH_OK) {
        hearth_err_prefix(err, "%s", name);
    }

    return status;
}

/* Copies the labels of a form: the engine may read them when the request's body is gone. */
static enum hearth_status keep_labels(struct datadog_request *d)
{
    struct hearth_arena *arena = &d->call->arena;

    for (size_t i = 0; i < d->event.n_labels; i++) {
        struct hearth_label *label = &d->event.labels[i];
        label->name = hearth_arena_str(arena, label->name);
        label->value = hearth_arena_str(arena, label->value);
    }

    return arena->refused ? HEARTH_FAIL_ARENA(&d->rpc->err, arena) : HEARTH_OK;
}

static enum hearth_status read_event_part(struct datadog_request *d)
{
    struct hearth_rpc *rpc = d->rpc;
    struct hearth_arena *arena = &d->call->arena;
    struct hearth_str json = find_event_part(&d->form);
    enum hearth_status status;

    if (json.p != NULL) {
        HEARTH_TRY(inflate_event(d, &json));
        status = hearth_datadog_event_read(json, arena, &d->event, &rpc->err);
    } else if (d->form.n_fields > 0) {
        status = hearth_datadog_event_read_form(&d->form, arena, &d->event, &rpc->err);
        status = status == HEARTH_OK ? keep_labels(d) : status;
    } else {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                           "the form has no part \"event\" and no fields: nothing says whose "
                           "profiles these are");
    }

    if (status == HEARTH_OK) {
        status = read_event_time(d, d->event.start, "start", &d->from_ns);
    }

    return status == HEARTH_OK ? read_event_time(d, d->event.end, "end", &d->until_ns) : status;
}

/* Reads what the upload says about its profiles. */
static enum hearth_status read_datadog_event(struct datadog_request *d)
{
    enum hearth_status status = read_event_part(d);

    if (status != HEARTH_OK) {
        hearth_err_prefix(&d->rpc->err, "event");
        return status;
    }

    const char *client = hearth_client_of_language(d->event.family);
    d->rpc->client = client != NULL ? client : d->rpc->client;
    d->call->dropped[HEARTH_DISCARD_IGNORED_TAGS] += d->event.n_dropped_tags;

    return HEARTH_OK;
}

/* ---- attachments ---- */

/* Whether a file is a profile; others are counted by name. */
static bool is_profile_file(struct hearth_str filename)
{
    static const char *const known[] = {METRICS_FILE, PROVENANCE_FILE, TRACE_FILE};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(known); i++) {
        if (hearth_str_eq_c(filename, known[i])) {
            hearth_metric_add_label(HEARTH_M_DATADOG_FILES, filename, 1);
            return false;
        }
    }

    if (hearth_str_ends(filename, HEARTH_STR(".json")) ||
        hearth_str_ends(filename, HEARTH_STR(".trace"))) {
        hearth_metric_add_label(HEARTH_M_DATADOG_FILES, HEARTH_STR("other"), 1);
        return false;
    }

    return true;
}

/*
 * Appends the plain bytes of a file to the body of the call, which is the memory that outlives the
 * request. A damaged file is refused; the status is that of the whole upload.
 */
static enum hearth_status inflate_attachment(struct datadog_request *d,
                                             const struct hearth_multipart_file *file)
{
    struct hearth_rpc *rpc = d->rpc;
    struct hearth_buf *body = &d->call->body;
    struct hearth_inflater *inflater = hearth_rpc_inflater();
    size_t cap = (size_t)rpc->front->options.max_request_bytes, at = body->n;

    if (inflater == NULL) {
        return HEARTH_FAIL(&rpc->err, HEARTH_NO_MEMORY, "no memory for a decompressor");
    }

    enum hearth_status status = hearth_inflate(inflater, hearth_compression_detect(file->body),
                                               file->body, cap - at, body, &rpc->err);
    if (status == HEARTH_INVALID_ARGUMENT) {
        refuse_attachment(d, file->filename, status);
        return HEARTH_OK;
    }
    if (status == HEARTH_RESOURCE_EXHAUSTED) {
        return HEARTH_FAIL(&rpc->err, HEARTH_TOO_LARGE,
                           "the attachments inflate to more than the limit of %zu "
                           "bytes" HEARTH_RAISE_OPTION("max-request-bytes"),
                           cap);
    }

    HEARTH_TRY(status);
    d->attachments[d->n_attachments++] = (struct datadog_attachment){
        .filename = file->filename,
        .at = at,
        .n = body->n - at,
        .n_sent = file->body.n,
        .sent = file->body,
    };

    return HEARTH_OK;
}

static enum hearth_status inflate_attachments(struct datadog_request *d)
{
    for (size_t i = 0; i < d->form.n_files; i++) {
        const struct hearth_multipart_file *file = &d->form.files[i];
        if (is_event_file(file) || !is_profile_file(file->filename)) {
            continue;
        }
        if (file->body.n == 0) {
            d->call->dropped[HEARTH_DISCARD_MISSING_PROFILES]++;
            continue;
        }
        HEARTH_TRY(inflate_attachment(d, file));
    }

    return HEARTH_OK;
}

/* What the client said of itself beyond the labels, as struct hearth_original has it. */
static struct hearth_str write_client_tags(const struct datadog_request *d)
{
    struct hearth_buf text;
    hearth_buf_init(&text, 0);

    for (size_t i = 0; i < d->event.n_facts; i++) {
        hearth_buf_printf(&text, "%s" HEARTH_STR_FMT ":" HEARTH_STR_FMT, text.n > 0 ? "," : "",
                          HEARTH_STR_ARG(d->event.facts[i].name),
                          HEARTH_STR_ARG(d->event.facts[i].value));
    }

    struct hearth_str copy = hearth_buf_failed(&text)
                                 ? (struct hearth_str){0}
                                 : hearth_arena_str(&d->call->arena, hearth_buf_view(&text));
    hearth_buf_release(&text);

    return copy;
}

/*
 * Copies the attachments as they were sent behind the inflated ones, so that they outlive the
 * request, and gives them names.
 */
static enum hearth_status keep_attachments(struct datadog_request *d)
{
    struct hearth_buf *body = &d->call->body;

    if (!hearth_front_keeps(d->rpc->front, HEARTH_KEPT_DATADOG)) {
        return HEARTH_OK;
    }

    for (size_t i = 0; i < d->n_attachments; i++) {
        d->attachments[i].sent_at = body->n;
        hearth_buf_append(body, d->attachments[i].sent.p, d->attachments[i].sent.n);
    }
    if (hearth_buf_failed(body)) {
        return HEARTH_FAIL(&d->rpc->err, HEARTH_NO_MEMORY, "no memory to keep the attachments");
    }

    struct hearth_str client_tags = write_client_tags(d);
    for (size_t i = 0; i < d->n_attachments; i++) {
        struct datadog_attachment *a = &d->attachments[i];
        a->file = (struct hearth_push_file){
            .name = hearth_original_name_of_client(&d->call->arena, a->filename),
            .bytes = hearth_str_n(body->p + a->sent_at, a->sent.n),
            .part = (int32_t)i,
            .client_tags = client_tags,
        };
        if (a->file.name.p == NULL || client_tags.p == NULL) {
            return HEARTH_FAIL_ARENA(&d->rpc->err, &d->call->arena);
        }
    }

    return HEARTH_OK;
}

/* Adds the profiles of all attachments to the push. An attachment that cannot be read is refused.
 */
static enum hearth_status decode_attachments(struct datadog_request *d)
{
    struct hearth_push_call *call = d->call;
    size_t cap = 0;

    for (size_t i = 0; i < d->n_attachments; i++) {
        struct datadog_attachment *attachment = &d->attachments[i];
        const struct hearth_datadog_upload upload = {
            .tenant = hearth_rpc_tenant(d->rpc),
            .filename = attachment->filename,
            .bytes = hearth_str_n(call->body.p + attachment->at, attachment->n),
            .n_bytes = attachment->n_sent,
            .from_ns = d->from_ns,
            .until_ns = d->until_ns,
            .labels = d->event.labels,
            .n_labels = d->event.n_labels,
            .custom_keys = d->event.custom_keys,
            .n_custom_keys = d->event.n_custom_keys,
            .file = attachment->file.bytes.n > 0 ? &attachment->file : NULL,
        };
        size_t n_before = call->request.n_series;
        enum hearth_status status =
            hearth_ingest_read_datadog(d->rpc->front->ingest, &upload, &call->arena, call->dropped,
                                       &call->request, &cap, &d->rpc->err);
        if (status == HEARTH_INVALID_ARGUMENT) {
            refuse_attachment(d, attachment->filename, status);
        } else if (status != HEARTH_OK) {
            return status;
        } else if (call->request.n_series == n_before) {
            call->dropped[HEARTH_DISCARD_EMPTY_PROFILES]++;
        }
    }

    return HEARTH_OK;
}

/* ---- the request ---- */

static void ingest_datadog_request(struct datadog_request *d)
{
    struct hearth_rpc *rpc = d->rpc;
    struct hearth_push_call *call = d->call;

    enum hearth_status status =
        hearth_multipart_parse(rpc->http->content_type, rpc->body, &d->form, &rpc->err);
    if (status == HEARTH_OK) {
        status = read_datadog_event(d);
    }
    if (status == HEARTH_OK) {
        status = inflate_attachments(d);
    }
    if (status == HEARTH_OK) {
        status = keep_attachments(d);
    }
    if (status == HEARTH_OK) {
        status = decode_attachments(d);
    }

    /* Clients expect a body of JSON. */
    rpc->http->answer_type = "application/json";
    hearth_buf_cstr(&rpc->packed, "{}");
    if (status != HEARTH_OK || call->request.n_series == 0) {
        end_datadog_request(d, status);
        return;
    }

    if (rpc->drop_body != NULL) {
        rpc->drop_body(rpc);
        rpc->drop_body = NULL;
    }

    call->explain = log_push_failure;
    hearth_push_call_run(call);
}

void hearth_http_datadog(struct hearth_rpc *rpc)
{
    struct hearth_push_call *call = hearth_push_call_new(rpc);
    if (call == NULL) {
        hearth_rpc_end(rpc, HEARTH_FAIL(&rpc->err, HEARTH_NO_MEMORY, "no memory for an upload"));
        return;
    }

    struct datadog_request *request = hearth_arena_zalloc(&call->arena, sizeof *request);
    struct datadog_refusal *refusal = hearth_arena_zalloc(&rpc->arena, sizeof *refusal);
    if (request == NULL || refusal == NULL) {
        hearth_push_call_end(call,
                             HEARTH_FAIL(&rpc->err, HEARTH_NO_MEMORY, "no memory for an upload"));
        return;
    }

    assert(rpc->http != NULL); /* a plain route */
    request->rpc = rpc;
    request->call = call;
    request->refusal = refusal;
    call->session = refusal;
    call->conclude = conclude_datadog;
    call->request.is_one_upload = true;
    ingest_datadog_request(request);
}
