/*
 * http_ingest.c -- POST /ingest: from an upload of an agent to a push of the engine.
 *
 * An upload is one profile. The URL has its name, times and format; the profile is the body or a
 * file of a form. The HTTP statuses are those that agents of Pyroscope know: 400 for errors in the
 * URL; 422 for a profile that cannot be read. If labels or times are refused, the status is 422 for
 * a pprof and 400 for a text format.
 */
#include "hearth/base/clock.h"
#include "hearth/base/limit.h"
#include "hearth/base/log.h"
#include "hearth/codec/compress.h"
#include "hearth/engine/ingest_files.h"
#include "hearth/format/ingest_name.h"
#include "hearth/format/multipart.h"

#include "handlers.h"
#include "http/http_call.h"
#include "rpc/client_family.h"
#include "rpc/log_rate.h"
#include "rpc/push_call.h"

#include <assert.h>

#define UNPROCESSABLE        422u
#define DEFAULT_SAMPLE_RATE  100
#define MAX_INFLATIONS       2 /* a compressed profile in a compressed body */
#define LOG_LINES_PER_SECOND 1

#define MAX_CONTEXT_LABEL_BYTES (4u << 20)

struct upload {
    struct hearth_rpc *rpc;
    struct hearth_push_call *call;
    struct hearth_ingest_name name;
    struct hearth_str app; /* the application name; for text formats without the profile type */
    struct hearth_ingest_values values;
    struct hearth_ingest_type type; /* of a text format */
    struct hearth_str profile;
    struct hearth_str context_labels; /* of a JFR recording */
    struct hearth_push_hints hints;
    struct hearth_multipart form;
};

/* ---- statuses ---- */

static const char *get_format_name(enum hearth_ingest_format format)
{
    static const char *const names[] = {
        [HEARTH_INGEST_UNKNOWN] = "unknown",
        [HEARTH_INGEST_PPROF] = "pprof",
        [HEARTH_INGEST_MULTIPART] = "pprof",
        [HEARTH_INGEST_COLLAPSED] = "collapsed",
        [HEARTH_INGEST_LINES] = "lines",
        [HEARTH_INGEST_TRIE] = "trie",
        [HEARTH_INGEST_TREE] = "tree",
        [HEARTH_INGEST_JFR] = "jfr",
        [HEARTH_INGEST_SPEEDSCOPE] = "speedscope",
    };

    assert((size_t)format < HEARTH_ARRAY_LEN(names));

    return names[format];
}

/* Answers 422: the profile itself is refused. */
static void answer_unprocessable(struct hearth_rpc *rpc, const char *format)
{
    assert(rpc->http != NULL);
    hearth_err_prefix(&rpc->err, "pushing IngestInput-%s failed", format);
    rpc->http->code = UNPROCESSABLE;
    rpc->http->error_code = "unknown";
}

static bool is_refusal(enum hearth_status status)
{
    return status == HEARTH_INVALID_ARGUMENT || status == HEARTH_OUT_OF_RANGE;
}

static void explain_push_failure(struct hearth_push_call *call, enum hearth_status status)
{
    assert(call->format != NULL); /* set before the push runs */

    bool is_binary = strcmp(call->format, get_format_name(HEARTH_INGEST_PPROF)) == 0 ||
                     strcmp(call->format, get_format_name(HEARTH_INGEST_JFR)) == 0;
    if (is_refusal(status) && (is_binary || call->request.is_unreadable)) {
        answer_unprocessable(call->rpc, call->format);
    }
}

/* ---- the URL ---- */

/*
 * The value of a parameter that clients spell in two ways; empty if it is absent. The copy lives as
 * long as the call.
 */
static enum hearth_status read_spelled_argument(struct upload *u, const char *name,
                                                const char *other, struct hearth_str *ret)
{
    struct hearth_str value = hearth_http_arg(u->rpc, name);
    struct hearth_str second = hearth_http_arg(u->rpc, other);
    if (value.n > 0 && second.n > 0 && !hearth_str_eq(value, second)) {
        return HEARTH_FAIL(&u->rpc->err, HEARTH_INVALID_ARGUMENT,
                           "%s and %s have different values; one of them is enough", name, other);
    }

    *ret = hearth_arena_str(&u->call->arena, value.n > 0 ? value : second);
    return ret->p == NULL ? HEARTH_FAIL_ARENA(&u->rpc->err, &u->call->arena) : HEARTH_OK;
}

/*
 * What the parameters say about the values. For all formats an unknown unit or aggregation is
 * refused; DeepFlow's documents and code spell them differently.
 */
static enum hearth_status read_value_arguments(struct upload *u)
{
    HEARTH_TRY(read_spelled_argument(u, "units", "unit", &u->values.unit));
    HEARTH_TRY(
        read_spelled_argument(u, "aggregationType", "aggregrationType", &u->values.aggregation));

    return hearth_ingest_values_check(&u->values, &u->rpc->err);
}

/* Sets the sample rate. Profiles in pprof have their own, and any value is ignored. */
static enum hearth_status read_sample_rate(struct upload *u)
{
    struct hearth_str text = hearth_http_arg(u->rpc, "sampleRate");
    int64_t rate = DEFAULT_SAMPLE_RATE;
    bool is_rate = text.n == 0 || (hearth_str_to_i64(text, &rate) && rate >= 0);

    if (!is_rate && u->hints.format != HEARTH_INGEST_PPROF) {
        return HEARTH_FAIL(&u->rpc->err, HEARTH_INVALID_ARGUMENT,
                           "sampleRate \"%.*s\" is no number of samples per second",
                           (int)(text.n > 64 ? 64 : text.n), text.p);
    }

    u->values.sample_rate = is_rate ? rate : DEFAULT_SAMPLE_RATE;
    u->hints.sample_rate = u->values.sample_rate;

    return HEARTH_OK;
}

static enum hearth_status read_url_arguments(struct upload *u)
{
    struct hearth_rpc *rpc = u->rpc;
    struct hearth_push_hints *hints = &u->hints;
    struct hearth_arena *arena = &u->call->arena;
    int64_t now_ns = hearth_clock_wall_ns();

    /* Copied, because the engine may still read them when the stop has ended the request. */
    struct hearth_str name = hearth_arena_str(arena, hearth_http_arg(rpc, "name"));
    hints->spy = hearth_arena_str(arena, hearth_http_arg(rpc, "spyName"));
    if (name.p == NULL || hints->spy.p == NULL) {
        return HEARTH_FAIL_ARENA(&rpc->err, arena);
    }

    HEARTH_TRY(hearth_ingest_name_parse(name, arena, &u->name, &rpc->err));
    hints->from_ns = hearth_http_time(rpc, "from", now_ns);
    hints->until_ns = hearth_http_time(rpc, "until", now_ns);
    HEARTH_TRY(read_value_arguments(u));

    const char *client = hearth_client_of_spy(hints->spy);
    rpc->client = client != NULL ? client : rpc->client;
    if (hints->spy.n == 0) {
        hints->spy = HEARTH_STR("unknown");
    }

    if (!hearth_str_utf8_valid(hints->spy)) {
        return HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT, "spyName is not UTF-8");
    }

    hints->format =
        hearth_ingest_format_of(hearth_http_arg(rpc, "format"), rpc->http->content_type);

    return HEARTH_OK;
}

static bool has_label(const struct hearth_ingest_name *name, const char *wanted)
{
    for (size_t i = 0; i < name->n_labels; i++) {
        if (hearth_str_eq_c(name->labels[i].name, wanted)) {
            return name->labels[i].value.n > 0;
        }
    }

    return false;
}

/* ---- the body ---- */

/* Makes the decompressed bytes of `packed`, which may be a part of the body, the body. */
static enum hearth_status inflate_body(struct upload *u, struct hearth_str packed)
{
    struct hearth_rpc *rpc = u->rpc;
    struct hearth_buf *body = &u->call->body, plain;
    struct hearth_inflater *inflater = hearth_rpc_inflater();
    size_t cap = (size_t)rpc->front->options.max_request_bytes;

    if (inflater == NULL) {
        return HEARTH_FAIL(&rpc->err, HEARTH_NO_MEMORY, "no memory for a decompressor");
    }

    hearth_buf_init(&plain, 0);
    plain.budget = body->budget;
    enum hearth_status status =
        hearth_inflate(inflater, hearth_compression_detect(packed), packed, cap, &plain, &rpc->err);
    if (status == HEARTH_OK) {
        hearth_buf_release(body);
        *body = plain;
        return HEARTH_OK;
    }

    hearth_buf_release(&plain);
    if (status == HEARTH_RESOURCE_EXHAUSTED) {
        return HEARTH_FAIL(
            &rpc->err, HEARTH_TOO_LARGE,
            "request body inflates to more than the limit of %zu bytes" HEARTH_RAISE_OPTION(
                "max-request-bytes"),
            cap);
    }

    return status;
}

/* Replaces the labels of contexts, which live in the arena, by their decompressed bytes. */
static enum hearth_status inflate_context_labels(struct upload *u)
{
    struct hearth_rpc *rpc = u->rpc;
    struct hearth_inflater *inflater = hearth_rpc_inflater();
    enum hearth_compression compression = hearth_compression_detect(u->context_labels);
    struct hearth_buf plain;

    if (compression == HEARTH_COMPRESSION_NONE) {
        return HEARTH_OK;
    }
    if (inflater == NULL) {
        return HEARTH_FAIL(&rpc->err, HEARTH_NO_MEMORY, "no memory for a decompressor");
    }

    hearth_buf_init(&plain, 0);
    plain.budget = u->call->body.budget;
    enum hearth_status status = hearth_inflate(inflater, compression, u->context_labels,
                                               MAX_CONTEXT_LABEL_BYTES, &plain, &rpc->err);
    if (status == HEARTH_OK) {
        u->context_labels = hearth_arena_str(&u->call->arena, hearth_buf_view(&plain));
        status =
            u->context_labels.p == NULL ? HEARTH_FAIL_ARENA(&rpc->err, &u->call->arena) : HEARTH_OK;
    } else if (status == HEARTH_RESOURCE_EXHAUSTED) {
        status = HEARTH_FAIL(&rpc->err, HEARTH_INVALID_ARGUMENT,
                             "the part \"labels\" inflates to more than %u bytes",
                             MAX_CONTEXT_LABEL_BYTES);
    }

    hearth_buf_release(&plain);

    return status;
}

/*
 * Takes the body from the request. The engine decompresses profiles, but forms, bodies with a
 * Content-Encoding, and formats that are recognised by their bytes are decompressed here.
 */
static enum hearth_status take_upload_body(struct upload *u)
{
    struct hearth_rpc *rpc = u->rpc;
    struct hearth_buf *body = &u->call->body;

    hearth_buf_str(body, rpc->body);
    if (hearth_buf_failed(body)) {
        return HEARTH_FAIL(&rpc->err, HEARTH_NO_MEMORY, "no memory for the body");
    }

    if (rpc->drop_body != NULL) {
        rpc->drop_body(rpc);
        rpc->drop_body = NULL;
    }

    enum hearth_ingest_format format = u->hints.format;
    bool is_ours = rpc->http->content_encoding.n > 0 || format == HEARTH_INGEST_MULTIPART ||
                   format == HEARTH_INGEST_JFR || format == HEARTH_INGEST_UNKNOWN;
    for (int i = 0; is_ours && i < MAX_INFLATIONS; i++) {
        if (hearth_compression_detect(hearth_buf_view(body)) == HEARTH_COMPRESSION_NONE) {
            break;
        }

        HEARTH_TRY(inflate_body(u, hearth_buf_view(body)));
    }

    u->profile = hearth_buf_view(body);
    if (format == HEARTH_INGEST_UNKNOWN) {
        u->hints.format = hearth_ingest_format_of_bytes(u->profile);
    }

    return HEARTH_OK;
}

/* A form of the Java SDK: the recording, and the labels of its contexts. Both may be compressed. */
static enum hearth_status read_recording_form(struct upload *u)
{
    struct hearth_arena *arena = &u->call->arena;
    const struct hearth_multipart_file *jfr = hearth_multipart_find(&u->form, "jfr");
    const struct hearth_multipart_file *labels = hearth_multipart_find(&u->form, "labels");

    assert(jfr != NULL);
    u->hints.format = HEARTH_INGEST_JFR;
    u->profile = jfr->body;

    /* The form borrows from the body, which the decompressed recording replaces. */
    if (labels != NULL) {
        u->context_labels = hearth_arena_str(arena, labels->body);
        if (u->context_labels.p == NULL) {
            return HEARTH_FAIL_ARENA(&u->rpc->err, arena);
        }
    }
    if (hearth_compression_detect(u->profile) != HEARTH_COMPRESSION_NONE) {
        HEARTH_TRY(inflate_body(u, u->profile));
        u->profile = hearth_buf_view(&u->call->body);
    }

    return inflate_context_labels(u);
}

static enum hearth_status read_upload_form(struct upload *u)
{
    struct hearth_err *err = &u->rpc->err;
    struct hearth_arena *arena = &u->call->arena;
    struct hearth_json_cell *cells;

    HEARTH_TRY(hearth_multipart_parse(u->rpc->http->content_type, u->profile, &u->form, err));
    const struct hearth_multipart_file *profile = hearth_multipart_find(&u->form, "profile");
    const struct hearth_multipart_file *config =
        hearth_multipart_find(&u->form, "sample_type_config");
    if (hearth_multipart_find(&u->form, "prev_profile") != NULL) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "unsupported client version: it sends cumulative profiles "
                           "(prev_profile), please update it");
    }

    if (config != NULL && config->body.n > 0) {
        enum hearth_status status =
            hearth_json_table_read(config->body, arena, &cells, &u->hints.n_cells, err);
        if (status != HEARTH_OK) {
            hearth_err_prefix(err, "sample_type_config");
            return status;
        }

        u->hints.cells = cells;
    }

    if (profile == NULL && hearth_multipart_find(&u->form, "jfr") != NULL) {
        return read_recording_form(u);
    }

    u->hints.format = HEARTH_INGEST_PPROF;
    u->profile = profile != NULL ? profile->body : HEARTH_STR("");

    return HEARTH_OK;
}

static enum hearth_status read_upload_body(struct upload *u)
{
    HEARTH_TRY(take_upload_body(u));
    bool is_form = hearth_ingest_format_of(HEARTH_STR(""), u->rpc->http->content_type) ==
                   HEARTH_INGEST_MULTIPART;
    if (u->hints.format == HEARTH_INGEST_MULTIPART ||
        (is_form && u->hints.format == HEARTH_INGEST_JFR)) {
        HEARTH_TRY(read_upload_form(u));
    }

    if (u->hints.format == HEARTH_INGEST_SPEEDSCOPE) {
        u->rpc->refusal = HEARTH_UNSUPPORTED_FORMAT;
        return HEARTH_FAIL(&u->rpc->err, HEARTH_INVALID_ARGUMENT,
                           "this format is not supported; supported are " HEARTH_INGEST_FORMATS);
    }

    return HEARTH_OK;
}

/* ---- the push ---- */

static enum hearth_status find_profile_type(struct upload *u)
{
    u->app = u->name.app;
    HEARTH_TRY(read_sample_rate(u));
    if (u->hints.format == HEARTH_INGEST_PPROF || u->hints.format == HEARTH_INGEST_JFR) {
        return HEARTH_OK;
    }

    u->hints.type = &u->type;

    return hearth_ingest_type_find(u->name.app, &u->values, &u->type, &u->app, &u->rpc->err);
}

static enum hearth_status fill_upload_labels(struct upload *u, struct hearth_push_series *series)
{
    series->labels =
        hearth_arena_array(&u->call->arena, u->name.n_labels + 1, sizeof *series->labels);
    if (series->labels == NULL) {
        return HEARTH_FAIL_ARENA(&u->rpc->err, &u->call->arena);
    }

    for (size_t i = 0; i < u->name.n_labels; i++) {
        struct hearth_label label = u->name.labels[i];
        bool is_private = hearth_str_starts(label.name, HEARTH_STR("__"));
        if (is_private || hearth_str_eq_c(label.name, "pyroscope_spy")) {
            u->call->dropped[HEARTH_DISCARD_RESERVED_LABELS]++;
        } else {
            series->labels[series->n_labels++] = label;
        }
    }

    assert(series->n_labels <= u->name.n_labels); /* room for one more */
    series->labels[series->n_labels++] =
        (struct hearth_label){HEARTH_STR("pyroscope_spy"), u->hints.spy};

    /* The service, unless a label names it. */
    u->call->request.app_name = u->app;

    return HEARTH_OK;
}

/* The series of a recording, one for each kind of profile in it. */
static enum hearth_status fill_recording_push(struct upload *u)
{
    struct hearth_push_call *call = u->call;
    struct hearth_push_series base = {0};

    HEARTH_TRY(fill_upload_labels(u, &base));
    const struct hearth_file_upload upload = {
        .tenant = hearth_rpc_tenant(u->rpc),
        .bytes = u->profile,
        .format = "JFR",
        .context_labels = u->context_labels,
        .n_bytes = u->rpc->body_bytes,
        .sample_rate = u->hints.sample_rate,
        .from_ns = hearth_http_arg(u->rpc, "from").n > 0 ? u->hints.from_ns : 0,
        .until_ns = u->hints.until_ns,
        .labels = base.labels,
        .n_labels = base.n_labels,
    };

    return hearth_ingest_read_file(u->rpc->front->ingest, &upload, &call->arena, call->dropped,
                                   &call->request, &u->rpc->err);
}

static enum hearth_status fill_upload_push(struct upload *u)
{
    struct hearth_push_call *call = u->call;

    struct {
        struct hearth_push_series series;
        struct hearth_push_sample sample;
        struct hearth_push_hints hints;
    } *push = hearth_arena_zalloc(&call->arena, sizeof *push);
    if (push == NULL) {
        return HEARTH_FAIL_ARENA(&u->rpc->err, &call->arena);
    }

    push->hints = u->hints;
    push->sample = (struct hearth_push_sample){.profile = u->profile, .hints = &push->hints};
    push->series.samples = &push->sample;
    push->series.n_samples = 1;
    call->request.series = &push->series;
    call->request.n_series = 1;

    return fill_upload_labels(u, &push->series);
}

/* ---- uploads that are not stored ---- */

static void log_span_upload(const struct upload *u)
{
    static struct hearth_log_rate rate;
    int missed;

    if (!hearth_log_rate_take(&rate, LOG_LINES_PER_SECOND, hearth_clock_mono_ns(), &missed)) {
        return;
    }

    char app[65];
    size_t n = u->name.app.n < sizeof app ? u->name.app.n : sizeof app - 1;
    memcpy(app, u->name.app.p, n);
    app[n] = '\0';
    HEARTH_LOG(HEARTH_LOG_WARN, "front", "upload with a profile_id is not stored", "app", app,
               "missed", hearth_log_i64(missed), NULL);
}

/* True for uploads that are acknowledged but not stored, as Pyroscope does. */
static bool is_ignored_upload(struct upload *u)
{
    if (has_label(&u->name, "profile_id")) {
        u->call->dropped[HEARTH_DISCARD_SPAN_UPLOADS]++;
        log_span_upload(u);
        return true;
    }

    if (u->profile.n == 0) {
        u->call->dropped[HEARTH_DISCARD_MISSING_PROFILES]++;
        return true;
    }

    return false;
}

static void ingest_upload(struct upload *u)
{
    struct hearth_rpc *rpc = u->rpc;
    struct hearth_push_call *call = u->call;
    enum hearth_status status = read_url_arguments(u);
    if (status == HEARTH_OK) {
        status = read_upload_body(u);
        if (is_refusal(status)) {
            answer_unprocessable(rpc, get_format_name(u->hints.format));
        }
    }

    if (status == HEARTH_OK) {
        status = find_profile_type(u);
    }

    if (status != HEARTH_OK || is_ignored_upload(u)) {
        hearth_push_call_end(call, status);
        return;
    }

    /* The engine. A recording is decoded here, because it holds several profiles. */
    bool is_recording = u->hints.format == HEARTH_INGEST_JFR;
    status = is_recording ? fill_recording_push(u) : fill_upload_push(u);
    if (is_recording && is_refusal(status)) {
        answer_unprocessable(rpc, get_format_name(u->hints.format));
    }

    if (status == HEARTH_OK && call->request.n_series == 0) {
        call->dropped[HEARTH_DISCARD_EMPTY_PROFILES]++;
        hearth_push_call_end(call, HEARTH_OK);
        return;
    }
    if (status != HEARTH_OK) {
        hearth_push_call_end(call, status);
        return;
    }

    call->explain = explain_push_failure;
    call->format = get_format_name(u->hints.format);
    hearth_push_call_run(call);
}

void hearth_http_ingest(struct hearth_rpc *rpc)
{
    struct hearth_push_call *call = hearth_push_call_new(rpc);
    if (call == NULL) {
        hearth_rpc_end(rpc, HEARTH_FAIL(&rpc->err, HEARTH_NO_MEMORY, "no memory for an upload"));
        return;
    }

    struct upload *upload = hearth_arena_zalloc(&call->arena, sizeof *upload);
    if (upload == NULL) {
        hearth_push_call_end(call, HEARTH_FAIL_ARENA(&rpc->err, &call->arena));
        return;
    }

    upload->rpc = rpc;
    upload->call = call;
    ingest_upload(upload);
}
