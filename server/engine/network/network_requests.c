/*
 * network_requests.c -- sampled requests and their captured data (contract:
 * hearth/engine/network.h).
 *
 * Before anything is stored, secrets are redacted (redact.h). Then data beyond max-captured-bytes
 * are truncated, tag by tag in their order, with a remark at the end of the tag.
 */
#include "hearth/base/clock.h"
#include "hearth/codec/json_fields.h"
#include "hearth/store/store_network.h"

#include "common/shown.h"
#include "network/network_internal.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

#define DEFAULT_LIMIT  20
#define MAX_LIMIT      10000
#define MAX_URI_BYTES  8192
#define MAX_ID_BYTES   1024
#define MAX_TAGS       256
#define MAX_NAME_BYTES 256
#define MAX_LATENCY_MS 1e12

static const char *const REASONS[] = {"", "slow", "status_4xx", "status_5xx"};

/* ---- texts of agents ---- */

static enum hearth_status check_captured_text(struct hearth_str text, const char *what, size_t max,
                                              struct hearth_err *err)
{
    if (text.n > max || !hearth_str_utf8_valid(text)) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "%s is not %zu bytes of UTF-8 at most",
                           what, max);
    }

    return HEARTH_OK;
}

/* Replace bytes that are not UTF-8 by '?', because bodies may contain any bytes. */
static struct hearth_str replace_invalid(struct hearth_str text, struct hearth_arena *arena)
{
    if (hearth_str_utf8_valid(text)) {
        return text;
    }

    char *copy = hearth_arena_strndup(arena, text.p, text.n);
    for (size_t i = 0; copy != NULL && i < text.n; i++) {
        copy[i] = copy[i] == '\0' || (unsigned char)copy[i] >= 0x80 ? '?' : copy[i];
    }

    return hearth_str_n(copy, copy == NULL ? 0 : text.n);
}

/* Truncate a text to at most n bytes, without splitting a character. */
static struct hearth_str truncate_text(struct hearth_str text, size_t n)
{
    if (text.n <= n) {
        return text;
    }

    while (n > 0 && ((unsigned char)text.p[n] & 0xc0) == 0x80) {
        n--;
    }

    return hearth_str_n(text.p, n);
}

static enum hearth_status redact_text(const struct hearth_call *call, struct hearth_str text,
                                      struct hearth_str *ret, int32_t *n_redacted,
                                      struct hearth_err *err)
{
    struct hearth_buf out;

    hearth_buf_init(&out, 0);
    size_t n = hearth_redact(call->engine->network->redactor, text, &out);
    bool failed = hearth_buf_failed(&out);
    if (!failed) {
        *ret = replace_invalid(hearth_buf_view(&out), call->arena);
        *ret = hearth_arena_str(call->arena, *ret);
        *n_redacted += (int32_t)(n > 1000000 ? 1000000 : n);
    }

    hearth_buf_release(&out);
    if (failed || call->arena->refused) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory to redact %zu bytes", text.n);
    }

    return HEARTH_OK;
}

static enum hearth_status require_redactor(const struct hearth_call *call, struct hearth_err *err)
{
    if (call->engine->network == NULL) {
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE, "nothing is captured by this server");
    }

    return HEARTH_OK;
}

/* ---- intake of sampled requests ---- */

struct sampled_json {
    struct hearth_json_field *fields;
    size_t n;
};

static struct hearth_str find_json_text(const struct sampled_json *json, const char *path)
{
    const struct hearth_json_field *field =
        hearth_json_field_find(json->fields, json->n, path, HEARTH_JSON_TEXT);
    return field == NULL ? HEARTH_STR("") : field->text;
}

static double find_json_number(const struct sampled_json *json, const char *path)
{
    const struct hearth_json_field *field =
        hearth_json_field_find(json->fields, json->n, path, HEARTH_JSON_NUMBER);
    return field == NULL ? (double)NAN : field->number;
}

static bool find_json_flag(const struct sampled_json *json, const char *path)
{
    const struct hearth_json_field *field =
        hearth_json_field_find(json->fields, json->n, path, HEARTH_JSON_BOOL);
    return field != NULL && field->flag;
}

static enum hearth_status parse_reason(struct hearth_str text, enum hearth_sampled_reason *ret,
                                       struct hearth_err *err)
{
    for (size_t i = 1; i < HEARTH_ARRAY_LEN(REASONS); i++) {
        if (hearth_str_eq_c(text, REASONS[i])) {
            *ret = (enum hearth_sampled_reason)i;
            return HEARTH_OK;
        }
    }

    return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                       "reason \"" HEARTH_STR_FMT "\" is not one of slow, status_4xx, status_5xx",
                       HEARTH_STR_ARG(text));
}

static enum hearth_status read_request_words(const struct sampled_json *json,
                                             struct hearth_sampled_request *ret,
                                             struct hearth_err *err)
{
    struct hearth_str side = find_json_text(json, "detect_point");
    struct hearth_str provider = find_json_text(json, "trace_provider");
    bool is_http = hearth_str_eq_c(find_json_text(json, "component"), "http");

    /* Reason, side and provider are enumerations. */
    HEARTH_TRY(parse_reason(find_json_text(json, "reason"), &ret->reason, err));
    if (!hearth_str_eq_c(side, "client") && !hearth_str_eq_c(side, "server")) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "detect_point \"" HEARTH_STR_FMT "\" is neither client nor server",
                           HEARTH_STR_ARG(side));
    }

    if (!hearth_str_eq_c(provider, "skywalking") && !hearth_str_eq_c(provider, "zipkin")) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "trace_provider \"" HEARTH_STR_FMT "\" is neither skywalking nor zipkin",
                           HEARTH_STR_ARG(provider));
    }

    /* Side, provider and component. */
    ret->side = hearth_str_eq_c(side, "client") ? HEARTH_NETWORK_CLIENT : HEARTH_NETWORK_SERVER;
    ret->provider =
        hearth_str_eq_c(provider, "zipkin") ? HEARTH_TRACE_ZIPKIN : HEARTH_TRACE_SKYWALKING;
    ret->is_ssl = find_json_flag(json, "ssl");
    ret->component = is_http       ? (ret->is_ssl ? HEARTH_COMPONENT_HTTPS : HEARTH_COMPONENT_HTTP)
                     : ret->is_ssl ? HEARTH_COMPONENT_TLS
                                   : HEARTH_COMPONENT_TCP;

    return HEARTH_OK;
}

static enum hearth_status read_request_numbers(const struct sampled_json *json,
                                               struct hearth_sampled_request *ret,
                                               struct hearth_err *err)
{
    double latency_ms = find_json_number(json, "latency"),
           status = find_json_number(json, "status");

    if (!(latency_ms >= 0 && latency_ms < MAX_LATENCY_MS)) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "latency is missing or out of range");
    }

    if (!isnan(status) && !(status >= 0 && status < 100000)) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "status %g is out of range", status);
    }

    ret->latency_us = (int64_t)llround(latency_ms * 1000);
    ret->status = isnan(status) ? 0 : (int32_t)status;

    return HEARTH_OK;
}

static enum hearth_status read_request_ends(const struct hearth_call *call,
                                            const struct sampled_json *json,
                                            struct hearth_sampled_request *ret,
                                            struct hearth_err *err)
{
    struct hearth_network_end ends[2] = {
        {.process_id = find_json_text(json, "client_process.process_id"),
         .is_local = find_json_flag(json, "client_process.local"),
         .address = find_json_text(json, "client_process.address")},
        {.process_id = find_json_text(json, "server_process.process_id"),
         .is_local = find_json_flag(json, "server_process.local"),
         .address = find_json_text(json, "server_process.address")},
    };

    HEARTH_TRY(hearth_network_check_end(&ends[0], "client", err));
    HEARTH_TRY(hearth_network_check_end(&ends[1], "server", err));
    HEARTH_TRY(hearth_network_resolve(call, ret->service, ret->instance, ends, 2, err));
    ret->source_id = ends[0].process_id;
    ret->destination_id = ends[1].process_id;

    return HEARTH_OK;
}

static enum hearth_status read_sampled_request(const struct hearth_call *call,
                                               const struct hearth_sampled_log *log,
                                               struct hearth_sampled_request *ret,
                                               struct hearth_err *err)
{
    struct sampled_json json;
    int32_t n_redacted = 0;

    /* Check the texts. */
    HEARTH_TRY(hearth_network_check_names(log->service, log->instance, err));
    HEARTH_TRY(check_captured_text(log->trace_id, "the trace id", MAX_ID_BYTES, err));
    HEARTH_TRY(check_captured_text(log->segment_id, "the segment id", MAX_ID_BYTES, err));
    if (log->trace_id.n == 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "it has no trace id");
    }

    /* Read the JSON. */
    HEARTH_TRY(hearth_json_fields_read(log->json, call->arena, &json.fields, &json.n, err));
    *ret = (struct hearth_sampled_request){
        .service = log->service,
        .instance = log->instance,
        .trace_id = log->trace_id,
        .segment_id = log->segment_id,
        .span_id = log->span_id,
        .at_ms = log->at_ms != 0 ? log->at_ms : hearth_clock_wall_ns() / HEARTH_NS_PER_MS};

    /* Check and convert its members. */
    HEARTH_TRY(hearth_network_check_time(call, ret->at_ms, err));
    HEARTH_TRY(read_request_words(&json, ret, err));
    HEARTH_TRY(read_request_numbers(&json, ret, err));

    /* Redact the URI. */
    HEARTH_TRY(redact_text(call, find_json_text(&json, "uri"), &ret->uri, &n_redacted, err));
    ret->uri = truncate_text(ret->uri, MAX_URI_BYTES);

    /* Reading the ends stores virtual processes of the service. */
    HEARTH_TRY(hearth_call_check_service(call, ret->service, err));

    return read_request_ends(call, &json, ret, err);
}

enum hearth_status hearth_network_take_sampled(const struct hearth_call *call,
                                               const struct hearth_sampled_log *log,
                                               struct hearth_err *err)
{
    struct hearth_sampled_request request;

    HEARTH_TRY(require_redactor(call, err));
    enum hearth_status status = read_sampled_request(call, log, &request, err);
    if (status != HEARTH_OK) {
        hearth_err_prefix(err, "log of a sampled request");
        return status;
    }

    return hearth_store_sampled_put(HEARTH_CALL_SCOPE(call), &request, err);
}

/* ---- intake of captured events ---- */

static struct hearth_str find_event_tag(const struct hearth_captured_event *event, const char *name)
{
    for (size_t i = 0; i < event->n_tags; i++) {
        if (hearth_str_eq_c(event->tags[i].name, name)) {
            return event->tags[i].value;
        }
    }

    return HEARTH_STR("");
}

static bool is_agent_name(struct hearth_str text)
{
    return hearth_str_trim(text).n > 0 && text.n <= HEARTH_AGENT_NAME_BYTES &&
           hearth_str_utf8_valid(text);
}

static enum hearth_status check_captured_event(const struct hearth_captured_event *event,
                                               struct hearth_err *err)
{
    HEARTH_TRY(check_captured_text(event->trace_id, "the trace id", MAX_ID_BYTES, err));
    HEARTH_TRY(check_captured_text(event->segment_id, "the segment id", MAX_ID_BYTES, err));
    HEARTH_TRY(check_captured_text(event->span_id, "the span id", MAX_ID_BYTES, err));
    HEARTH_TRY(check_captured_text(event->event, "the name of the event", MAX_NAME_BYTES, err));
    if (event->trace_id.n == 0 || event->event.n == 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "it has no trace id or no name");
    }

    if (event->n_tags > MAX_TAGS) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "it has %zu tags; %d are read",
                           event->n_tags, MAX_TAGS);
    }

    for (size_t i = 0; i < event->n_tags; i++) {
        HEARTH_TRY(
            check_captured_text(event->tags[i].name, "the name of a tag", MAX_NAME_BYTES, err));
    }

    return HEARTH_OK;
}

/* Truncate the value of a tag to `left` bytes. */
static enum hearth_status truncate_tag(struct hearth_captured_event *event,
                                       struct hearth_property *tag, size_t left,
                                       struct hearth_arena *arena, struct hearth_err *err)
{
    assert(tag != NULL);

    struct hearth_str kept = truncate_text(tag->value, left);
    size_t n_all = tag->value.n;

    event->n_cut += (int64_t)(n_all - kept.n);
    tag->value = hearth_str_c(
        hearth_arena_printf(arena, "%.*s [max-captured-bytes: cut, %zu of %zu bytes are here]",

                            (int)kept.n, kept.n == 0 ? "" : kept.p, kept.n, n_all));

    return tag->value.p == NULL ? HEARTH_FAIL_ARENA(err, arena) : HEARTH_OK;
}

static enum hearth_status redact_tags(const struct hearth_call *call,
                                      const struct hearth_captured_event *in,
                                      struct hearth_captured_event *out, struct hearth_err *err)
{
    struct hearth_limits limits;

    assert(in->tags != NULL || in->n_tags == 0);

    hearth_call_limits(call, &limits);
    size_t left = limits.max_captured_bytes > 0 ? (size_t)limits.max_captured_bytes : SIZE_MAX;
    out->tags = hearth_arena_array(call->arena, in->n_tags, sizeof *out->tags);
    if (out->tags == NULL) {
        return HEARTH_FAIL_ARENA(err, call->arena);
    }

    /* Redact each tag, then truncate it to the remaining bytes. */
    for (size_t i = 0; i < in->n_tags; i++) {
        struct hearth_property *tag = &out->tags[i];
        *tag = in->tags[i];
        if (hearth_redact_is_name(call->engine->network->redactor, tag->name)) {
            tag->value = HEARTH_STR(HEARTH_REDACTED);
            out->n_redacted++;
        } else {
            HEARTH_TRY(redact_text(call, in->tags[i].value, &tag->value, &out->n_redacted, err));
        }

        if (tag->value.n > left) {
            HEARTH_TRY(truncate_tag(out, tag, left, call->arena, err));
            left = 0;
        } else {
            left -= tag->value.n;
        }
    }

    return HEARTH_OK;
}

enum hearth_status hearth_network_take_event(const struct hearth_call *call,
                                             const struct hearth_captured_event *event,
                                             bool *ret_kept, struct hearth_err *err)
{
    struct hearth_captured_event out = *event;
    struct hearth_limits limits;

    assert(call != NULL && ret_kept != NULL);

    hearth_call_limits(call, &limits);

    /* Check the event. */
    HEARTH_TRY(require_redactor(call, err));
    enum hearth_status status = check_captured_event(event, err);
    if (status != HEARTH_OK) {
        hearth_err_prefix(err, "event of a span");
        return status;
    }

    /* Take service and instance from its tags. */
    struct hearth_str service = find_event_tag(event, "service_name");
    struct hearth_str instance = find_event_tag(event, "service_instance_name");
    bool is_named = is_agent_name(service) && is_agent_name(instance);
    int32_t n_redacted = 0;
    out.service = is_named ? service : HEARTH_STR("unknown_service");
    out.instance = is_named ? instance : HEARTH_STR("");
    out.n_redacted = 0;
    out.n_cut = 0;
    HEARTH_TRY(hearth_call_check_service(call, out.service, err));

    /* Redact it. */
    HEARTH_TRY(redact_text(call, event->event, &out.event, &n_redacted, err));
    HEARTH_TRY(redact_tags(call, event, &out, err));
    out.n_redacted += n_redacted;

    return hearth_store_captured_put(HEARTH_CALL_SCOPE(call), &out, limits.max_captured_day_bytes,
                                     ret_kept, err);
}

/* ---- queries ---- */

enum hearth_status hearth_network_requests(const struct hearth_query *query,
                                           const struct hearth_network_requests_spec *spec,
                                           struct hearth_sampled_request **ret, size_t *ret_n,
                                           struct hearth_err *err)
{
    struct hearth_sampled_filter filter = {.service = spec->service,
                                           .instance = spec->instance,
                                           .trace_id = spec->trace_id,
                                           .from_ms = query->start_ms,
                                           .to_ms = query->end_ms,
                                           .limit = spec->limit == 0 ? DEFAULT_LIMIT : spec->limit};
    const struct hearth_call *call = &query->call;

    assert(query != NULL && ret != NULL && ret_n != NULL);

    /* Check the request. */
    if (spec->service.n == 0 && spec->trace_id.n == 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "say a service or a trace_id");
    }

    if (spec->limit < 0 || spec->limit > MAX_LIMIT) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "limit is 1 to %d", MAX_LIMIT);
    }

    if (filter.from_ms < 0 || filter.to_ms < 0 ||
        (filter.to_ms > 0 && filter.to_ms < filter.from_ms)) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "start_ms %lld and end_ms %lld are not a range",
                           (long long)filter.from_ms, (long long)filter.to_ms);
    }

    /* Complete the filter. */
    if (spec->reason.n > 0) {
        HEARTH_TRY(parse_reason(spec->reason, &filter.reason, err));
    }

    if (spec->call_id.n > 0) {
        HEARTH_TRY(hearth_network_split_call(spec->call_id, &filter.source_id,
                                             &filter.destination_id, err));
    }

    /* Requests of a trace may be of any service; those of one service are read by its name. */
    struct hearth_sampled_request *found;
    struct hearth_shown shown = {0};
    size_t n, n_shown = 0;
    HEARTH_TRY(hearth_store_sampled(HEARTH_CALL_SCOPE(call), &filter, &found, &n, err));
    for (size_t i = 0; i < n; i++) {
        bool shows;
        HEARTH_TRY(hearth_call_shows_service(call, &shown, found[i].service, &shows, err));
        if (shows) {
            found[n_shown++] = found[i];
        }
    }

    *ret = found;
    *ret_n = n_shown;

    return HEARTH_OK;
}

#define MAX_NOTES 4

struct note_list {
    struct hearth_arena *arena;
    struct hearth_str *notes; /* [MAX_NOTES] */
    size_t n;
};

static void add_request_note(struct note_list *list, const char *text)
{
    assert(list->n < MAX_NOTES);

    if (text != NULL) {
        list->notes[list->n++] = hearth_arena_str(list->arena, hearth_str_c(text));
    }
}

static enum hearth_status add_request_notes(struct note_list *list,
                                            const struct hearth_captured_event *events, size_t n,
                                            int64_t n_dropped, struct hearth_err *err)
{
    int64_t n_redacted = 0, n_cut = 0;

    /* Sum over all events. */
    for (size_t i = 0; i < n; i++) {
        n_redacted += events[i].n_redacted;
        n_cut += events[i].n_cut;
    }

    list->notes = hearth_arena_array(list->arena, MAX_NOTES, sizeof list->notes[0]);
    if (list->notes == NULL) {
        return HEARTH_FAIL_ARENA(err, list->arena);
    }

    /* At most one note for each reason why something is missing. */
    if (n_redacted > 0) {
        add_request_note(list, hearth_arena_printf(list->arena,
                                                   "%lld values were redacted (option redact)",
                                                   (long long)n_redacted));
    }

    if (n_cut > 0) {
        add_request_note(list, hearth_arena_printf(
                                   list->arena, "%lld bytes were cut (option max-captured-bytes)",
                                   (long long)n_cut));
    }

    if (n == 0) {
        add_request_note(list,
                         "nothing is captured of this request: its task did not ask for it, it"
                         " has not arrived yet, or it has expired (option retain-captured)");
    }

    if (n_dropped > 0) {
        add_request_note(
            list, hearth_arena_printf(list->arena,
                                      "%lld events of the tenant were left out on that day (option"
                                      " max-captured-day-bytes)",
                                      (long long)n_dropped));
    }

    return list->arena->refused ? HEARTH_FAIL_ARENA(err, list->arena) : HEARTH_OK;
}

/* Keep the events of services that the call sees. Those that name none are of unknown_service. */
static enum hearth_status keep_shown_events(const struct hearth_call *call,
                                            struct hearth_captured_event *events, size_t *n,
                                            struct hearth_err *err)
{
    struct hearth_shown shown = {0};
    size_t n_shown = 0;

    for (size_t i = 0; i < *n; i++) {
        bool shows;
        HEARTH_TRY(hearth_call_shows_service(call, &shown, events[i].service, &shows, err));
        if (shows) {
            events[n_shown++] = events[i];
        }
    }
    *n = n_shown;

    return HEARTH_OK;
}

enum hearth_status hearth_network_request(const struct hearth_call *call,
                                          struct hearth_str request_id,
                                          struct hearth_sampled_request *ret,
                                          struct hearth_captured_event **ret_events, size_t *ret_n,
                                          struct hearth_str **ret_notes, size_t *ret_n_notes,
                                          struct hearth_err *err)
{
    const struct hearth_sampled_filter filter = {.request_id = request_id, .limit = 1};
    struct hearth_sampled_request *found;
    size_t n;
    int64_t n_dropped;

    assert(call != NULL && ret != NULL && ret_events != NULL);

    if (request_id.n != HEARTH_SAMPLED_ID_TEXT) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "request_id \"" HEARTH_STR_FMT "\" is not %d hex digits",
                           HEARTH_STR_ARG(request_id), HEARTH_SAMPLED_ID_TEXT);
    }

    bool shows = false;
    HEARTH_TRY(hearth_store_sampled(HEARTH_CALL_SCOPE(call), &filter, &found, &n, err));
    if (n > 0) {
        HEARTH_TRY(hearth_call_shows_service(call, NULL, found[0].service, &shows, err));
    }
    if (!shows) {
        return HEARTH_FAIL(err, HEARTH_NOT_FOUND,
                           "there is no sampled request \"" HEARTH_STR_FMT "\"",
                           HEARTH_STR_ARG(request_id));
    }

    *ret = found[0];
    HEARTH_TRY(
        hearth_store_captured(HEARTH_CALL_SCOPE(call), ret, ret_events, ret_n, &n_dropped, err));
    HEARTH_TRY(keep_shown_events(call, *ret_events, ret_n, err));

    struct note_list list = {.arena = call->arena};
    HEARTH_TRY(add_request_notes(&list, *ret_events, *ret_n, n_dropped, err));
    *ret_notes = list.notes;
    *ret_n_notes = list.n;

    return HEARTH_OK;
}

enum hearth_status hearth_network_attached(const struct hearth_call *call,
                                           const struct hearth_str *trace_ids, size_t n_ids,
                                           struct hearth_captured_event **ret, size_t *ret_n,
                                           struct hearth_err *err)
{
    *ret_n = 0;
    if (n_ids == 0) {
        return HEARTH_OK;
    }

    HEARTH_TRY(hearth_store_attached(HEARTH_CALL_SCOPE(call), trace_ids, n_ids, ret, ret_n, err));

    return keep_shown_events(call, *ret, ret_n, err);
}
