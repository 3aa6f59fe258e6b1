/*
 * http_ingest.c -- POST /ingest: from an upload of an agent to a push of the engine.
 *
 * An upload is one profile, or one file of several. The URL has its name, times and format; the
 * profile is the body or a file of a form (upload_body.c). The HTTP statuses are those that agents
 * of Pyroscope know: 400 for errors in the URL; 422 for a profile that cannot be read. If labels or
 * times are refused, the status is 400 for a text format, otherwise 422.
 */
#include "hearth/base/clock.h"
#include "hearth/base/log.h"
#include "hearth/base/log_rate.h"
#include "hearth/engine/ingest_files.h"

#include "handlers.h"
#include "http/http_call.h"
#include "ingest/upload.h"
#include "rpc/client_family.h"

#include <assert.h>

#define ACCEPTED             202u
#define UNPROCESSABLE        422u
#define DEFAULT_SAMPLE_RATE  100
#define LOG_LINES_PER_SECOND 1

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
        [HEARTH_INGEST_FILE] = "file",
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
    static const enum hearth_ingest_format texts[] = {HEARTH_INGEST_COLLAPSED, HEARTH_INGEST_LINES,
                                                      HEARTH_INGEST_TRIE, HEARTH_INGEST_TREE};
    bool is_text = false;
    assert(call->format != NULL); /* set before the push runs */
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(texts); i++) {
        is_text = is_text || strcmp(call->format, get_format_name(texts[i])) == 0;
    }

    if (is_refusal(status) && (!is_text || call->request.is_unreadable)) {
        answer_unprocessable(call->rpc, call->format);
    }
}

/* The push_call's `conclude`: a profile that is only on the disk was accepted, but not stored. */
static enum hearth_status accept_spooled(struct hearth_push_call *call, enum hearth_status status)
{
    if (status == HEARTH_OK && call->request.n_spooled > 0) {
        call->rpc->http->code = ACCEPTED;
    }

    return status;
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

/* ---- the push ---- */

static enum hearth_status find_profile_type(struct upload *u)
{
    u->app = u->name.app;
    HEARTH_TRY(read_sample_rate(u));
    if (u->hints.format == HEARTH_INGEST_PPROF || u->file_format != NULL) {
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

/* The series of a file, one for each profile in it. */
static enum hearth_status fill_file_push(struct upload *u)
{
    struct hearth_push_call *call = u->call;
    struct hearth_push_series base = {0};

    HEARTH_TRY(fill_upload_labels(u, &base));
    const struct hearth_file_upload upload = {
        .tenant = hearth_rpc_tenant(u->rpc),
        .bytes = u->profile,
        .format = u->file_format[0] == '\0' ? NULL : u->file_format,
        .context_labels = u->context_labels,
        .n_bytes = u->rpc->body_bytes,
        .sample_rate = u->hints.sample_rate,
        .from_ns = hearth_http_arg(u->rpc, "from").n > 0 ? u->hints.from_ns : 0,
        .until_ns = u->hints.until_ns,
        .labels = base.labels,
        .n_labels = base.n_labels,
        .objects = u->objects,
        .n_objects = u->n_objects,
        .file = u->keeps ? &u->file : NULL,
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
    push->sample = (struct hearth_push_sample){
        .profile = u->profile, .hints = &push->hints, .file = u->keeps ? &u->file : NULL};
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
        status = hearth_upload_read_body(u);
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

    /* The engine. A file is decoded here, because it may hold several profiles. */
    bool is_file = u->file_format != NULL;
    status = is_file ? fill_file_push(u) : fill_upload_push(u);
    if (is_file && is_refusal(status)) {
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

    /* The Go SDK takes every status but 200 for a failure; those of Java and Node accept 202. */
    call->conclude = hearth_str_eq_c(u->hints.spy, "gospy") ? NULL : accept_spooled;
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
