/*
 * network_captured.c -- sampled requests, and what was captured of them (contract: hearth/store/store_network.h).
 *
 * Tags are stored as lengths and bytes: how many, then for each the length of its name, the name, the length of its value,
 * the value; lengths are varints; packed as codec/compress.h packs texts.
 */
#include "hearth/base/clock.h"
#include "hearth/base/varint.h"
#include "hearth/codec/compress.h"
#include "hearth/model/spans.h"
#include "hearth/store/store_network.h"

#include "network/network_rows.h"
#include "pg/pg.h"
#include "pg/session.h"
#include "pg/store_state.h"

#include <stdio.h>

#define MAX_TAG_BYTES ((size_t)1 << 30)

struct question {
    struct hearth_store *store;
    struct hearth_str tenant;
    const struct hearth_sampled_request *request;
    const struct hearth_captured_event *event;
    const struct hearth_sampled_filter *filter;
    const struct hearth_str *ids;
    size_t n_ids;
    struct hearth_str tags; /* packed */
    struct hearth_hash128 key;
    int64_t now_ms, max_day_bytes;
    bool without_bodies;
    struct hearth_cancel *cancel;
    struct hearth_arena *arena;
    /* The answer. */
    struct hearth_sampled_request *requests;
    struct hearth_captured_event *events;
    size_t n;
    int64_t n_services, n_dropped;
    bool is_kept;
};

static int64_t now_ms(void)
{
    return hearth_clock_wall_ns() / HEARTH_NS_PER_MS;
}

/* What was received before it is not readable. */
static int64_t captured_since_ms(const struct hearth_store *store)
{
    int64_t keep_ns = store->options.retain_captured_ns;
    return keep_ns <= 0 ? INT64_MIN : now_ms() - keep_ns / HEARTH_NS_PER_MS;
}

static void hash_in(struct hearth_hash128 *hash, struct hearth_str text)
{
    uint64_t seed = hearth_hash_mix(hash->lo, text.n);
    *hash = hearth_hash128(text.p, text.n, hearth_hash_mix(seed, hash->hi));
}

static void hash_number(struct hearth_hash128 *hash, int64_t number)
{
    hash->lo = hearth_hash_mix(hash->lo, (uint64_t)number);
    hash->hi = hearth_hash_mix(hash->hi, ~(uint64_t)number);
}

/* ---- sampled requests ---- */

static const char SQL_PUT_REQUEST[] =
    "WITH s AS MATERIALIZED (SELECT e.service_id FROM hearth_data.service e WHERE e.tenant_id ="
    " (SELECT tenant_id FROM hearth_data.tenant WHERE name = $1) AND e.fingerprint = $2 FOR KEY"
    " SHARE), i AS (INSERT INTO hearth_data.network_request (service_id, at, request_id,"
    " received_at, instance, source_id, destination_id, side, component, reason, trace_provider,"
    " trace_key, trace_id, segment_id, span_id, uri, latency_us, status, is_ssl) SELECT"
    " s.service_id, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19,"
    " $20 <> 0 FROM s ON CONFLICT DO NOTHING) SELECT count(*) FROM s";

static struct hearth_hash128 request_key(struct hearth_str tenant,
                                         const struct hearth_sampled_request *request)
{
    const struct hearth_str texts[] = {tenant,
                                       request->service,
                                       request->instance,
                                       request->source_id,
                                       request->destination_id,
                                       request->trace_id,
                                       request->segment_id,
                                       request->span_id,
                                       request->uri};
    const int64_t numbers[] = {request->side,     request->component, request->reason,
                               request->provider, request->at_ms,     request->latency_us,
                               request->status,   request->is_ssl};
    struct hearth_hash128 hash = {0, 0};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(texts); i++) {
        hash_in(&hash, texts[i]);
    }
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(numbers); i++) {
        hash_number(&hash, numbers[i]);
    }
    return hash;
}

static enum hearth_status put_request(void *context, struct hearth_pg *pg,
                                      enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct question *question = context;
    const struct hearth_sampled_request *request = question->request;
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, question->arena);
    hearth_network_param_service(&params, question->tenant, request->service);
    hearth_pg_param_i64(&params, request->at_ms);
    hearth_pg_param_uuid(&params, request_key(question->tenant, request));
    hearth_pg_param_i64(&params, now_ms());
    hearth_pg_param_text(&params, request->instance);
    hearth_pg_param_text(&params, request->source_id);
    hearth_pg_param_text(&params, request->destination_id);
    hearth_pg_param_i32(&params, (int32_t)request->side);
    hearth_pg_param_i32(&params, (int32_t)request->component);
    hearth_pg_param_i32(&params, (int32_t)request->reason);
    hearth_pg_param_i32(&params, (int32_t)request->provider);
    hearth_pg_param_i64(&params, hearth_trace_key(request->trace_id, false));
    hearth_pg_param_text(&params, request->trace_id);
    hearth_pg_param_text(&params, request->segment_id);
    hearth_pg_param_text(&params, request->span_id);
    hearth_pg_param_text(&params, request->uri);
    hearth_pg_param_i64(&params, request->latency_us);
    hearth_pg_param_i32(&params, request->status);
    hearth_pg_param_i32(&params, request->is_ssl);
    PGresult *rows = NULL;
    HEARTH_TRY(
        hearth_pg_exec(pg, SQL_PUT_REQUEST, &params, question->cancel, &rows, ret_fault, err));
    question->n_services = hearth_pg_i64(rows, 0, 0);
    PQclear(rows);
    return HEARTH_OK;
}

enum hearth_status hearth_store_sampled_put(const struct hearth_scope *scope,
                                            const struct hearth_sampled_request *request,
                                            struct hearth_err *err)
{
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct question question = {
        .tenant = scope->tenant, .request = request, .cancel = scope->cancel, .arena = &arena};
    enum hearth_status status = hearth_network_write(scope, request->service, put_request,
                                                     &question, &question.n_services, err);
    hearth_arena_release(&arena);
    return status;
}

/* Events c of a request r, received since $2. A tenant's trace ids are its own. */
#define EVENTS_OF_REQUEST                                                                         \
    " hearth_data.captured_event c JOIN hearth_data.service cs ON cs.service_id = c.service_id"   \
    " AND cs.tenant_id = s.tenant_id WHERE c.trace_key = r.trace_key AND c.trace_id = r.trace_id" \
    " AND c.received_at >= $2 AND (c.instance = '' OR (c.instance = r.instance AND c.service_id"  \
    " = r.service_id)) AND (r.segment_id = '' OR c.segment_id IN ('', r.segment_id)) AND"         \
    " (r.span_id = '' OR c.span_id IN ('', r.span_id))"

static const char SQL_REQUESTS[] =
    "SELECT replace(r.request_id::text, '-', ''), s.name, r.instance, r.source_id,"
    " r.destination_id, r.side::int4, r.component, r.reason::int4, r.trace_provider::int4,"
    " r.trace_id, r.segment_id, r.span_id, r.uri, r.latency_us, r.at, r.status, r.is_ssl::int4,"
    " r.service_id, (SELECT count(*)::int4 FROM" EVENTS_OF_REQUEST ") FROM"
    " hearth_data.network_request r JOIN hearth_data.service s USING (service_id) WHERE"
    " s.tenant_id = (SELECT tenant_id FROM hearth_data.tenant WHERE name = $1)"
    " AND ($3 = '' OR r.request_id = nullif($3, '')::uuid) AND ($4 = '' OR s.name = $4) AND ($5 = "
    "'' OR"
    " r.instance = $5) AND ($6 = '' OR (r.trace_id = $6 AND r.trace_key = $7)) AND ($8 = '' OR"
    " r.source_id = $8) AND ($9 = '' OR r.destination_id = $9) AND ($10 = 0 OR r.reason = $10)"
    " AND r.at >= $11 AND r.at <= $12 ORDER BY r.latency_us DESC, r.at DESC, r.request_id LIMIT"
    " $13";

static struct hearth_str take(struct question *question, const PGresult *rows, int row, int column)
{
    return hearth_arena_str(question->arena, hearth_pg_str(rows, row, column));
}

static void take_request(struct question *question, const PGresult *rows, int row)
{
    int32_t numbers[4];
    for (int i = 0; i < 4; i++) {
        numbers[i] = hearth_pg_i32(rows, row, 5 + i);
    }
    question->requests[row] = (struct hearth_sampled_request){
        .request_id = take(question, rows, row, 0),
        .service = take(question, rows, row, 1),
        .instance = take(question, rows, row, 2),
        .source_id = take(question, rows, row, 3),
        .destination_id = take(question, rows, row, 4),
        .side = (enum hearth_network_side)numbers[0],
        .component = (enum hearth_network_component)numbers[1],
        .reason = (enum hearth_sampled_reason)numbers[2],
        .provider = (enum hearth_trace_provider)numbers[3],
        .trace_id = take(question, rows, row, 9),
        .segment_id = take(question, rows, row, 10),
        .span_id = take(question, rows, row, 11),
        .uri = take(question, rows, row, 12),
        .latency_us = hearth_pg_i64(rows, row, 13),
        .at_ms = hearth_pg_i64(rows, row, 14),
        .status = hearth_pg_i32(rows, row, 15),
        .is_ssl = hearth_pg_i32(rows, row, 16) != 0,
        .service_id = hearth_pg_i32(rows, row, 17),
        .n_events = hearth_pg_i32(rows, row, 18),
    };
}

/* As PostgreSQL reads a uuid; empty stays empty. False: it is no id, and not found. */
static bool uuid_text(struct hearth_str id, char out[64])
{
    uint64_t half;
    bool is_id = id.n == HEARTH_SAMPLED_ID_TEXT &&
                 hearth_str_hex_to_u64(hearth_str_n(id.p, 16), &half) &&
                 hearth_str_hex_to_u64(hearth_str_n(id.p + 16, 16), &half);
    (void)snprintf(out, 64, "%.*s", is_id ? HEARTH_SAMPLED_ID_TEXT : 0, is_id ? id.p : "");
    return is_id || id.n == 0;
}

static enum hearth_status read_requests(void *context, struct hearth_pg *pg,
                                        enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct question *question = context;
    const struct hearth_sampled_filter *filter = question->filter;
    char id[64];
    if (!uuid_text(filter->request_id, id)) {
        question->n = 0;
        return HEARTH_OK;
    }
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, question->arena);
    hearth_pg_param_text(&params, question->tenant);
    hearth_pg_param_i64(&params, captured_since_ms(question->store));
    hearth_pg_param_text(&params, hearth_str_c(id));
    hearth_pg_param_text(&params, filter->service);
    hearth_pg_param_text(&params, filter->instance);
    hearth_pg_param_text(&params, filter->trace_id);
    hearth_pg_param_i64(&params, hearth_trace_key(filter->trace_id, false));
    hearth_pg_param_text(&params, filter->source_id);
    hearth_pg_param_text(&params, filter->destination_id);
    hearth_pg_param_i32(&params, (int32_t)filter->reason);
    hearth_pg_param_i64(&params, filter->from_ms);
    hearth_pg_param_i64(&params, filter->to_ms == 0 ? INT64_MAX : filter->to_ms);
    hearth_pg_param_i64(&params, filter->limit == 0 ? INT64_MAX : filter->limit);
    PGresult *rows = NULL;
    HEARTH_TRY(hearth_pg_exec(pg, SQL_REQUESTS, &params, question->cancel, &rows, ret_fault, err));
    question->n = (size_t)PQntuples(rows);
    question->requests =
        hearth_arena_array(question->arena, question->n, sizeof *question->requests);
    for (size_t i = 0; i < question->n && question->requests != NULL; i++) {
        take_request(question, rows, (int)i);
    }
    PQclear(rows);
    return question->arena->refused ? HEARTH_FAIL_ARENA(err, question->arena) : HEARTH_OK;
}

enum hearth_status hearth_store_sampled(const struct hearth_scope *scope,
                                        const struct hearth_sampled_filter *filter,
                                        struct hearth_sampled_request **ret, size_t *ret_n,
                                        struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    struct question question = {.store = scope->store,
                                .tenant = scope->tenant,
                                .filter = filter,
                                .cancel = scope->cancel,
                                .arena = scope->arena};
    HEARTH_TRY(hearth_store_with_pg(scope->store, scope->cancel, read_requests, &question, err));
    *ret = question.requests;
    *ret_n = question.n;
    return HEARTH_OK;
}

/* ---- captured events: in ---- */

static enum hearth_status pack_tags(const struct hearth_captured_event *event,
                                    struct hearth_buf *out, struct hearth_err *err)
{
    struct hearth_buf plain;
    hearth_buf_init(&plain, 0);
    hearth_buf_varint(&plain, event->n_tags);
    for (size_t i = 0; i < event->n_tags; i++) {
        hearth_buf_varint(&plain, event->tags[i].name.n);
        hearth_buf_str(&plain, event->tags[i].name);
        hearth_buf_varint(&plain, event->tags[i].value.n);
        hearth_buf_str(&plain, event->tags[i].value);
    }
    enum hearth_status status;
    if (hearth_buf_failed(&plain)) {
        status = HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for a captured event");
    } else {
        status = hearth_pack_text(hearth_buf_view(&plain), out, err);
    }
    hearth_buf_release(&plain);
    return status;
}

static struct hearth_hash128 event_key(const struct hearth_captured_event *event)
{
    const struct hearth_str texts[] = {event->instance, event->trace_id, event->segment_id,
                                       event->span_id, event->event};
    struct hearth_hash128 hash = {0, 0};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(texts); i++) {
        hash_in(&hash, texts[i]);
    }
    for (size_t i = 0; i < event->n_tags; i++) {
        hash_in(&hash, event->tags[i].name);
        hash_in(&hash, event->tags[i].value);
    }
    hash_number(&hash, event->start_ns);
    hash_number(&hash, event->end_ns);
    hash_number(&hash, (int64_t)event->provider);
    return hash;
}

/* $1 tenant, $2 fingerprint, $3 day, $4 bytes, $5 limit. The day's row takes the bytes if they fit; not of what is there. */
static const char SQL_PUT_EVENT[] =
    "WITH s AS MATERIALIZED (SELECT e.service_id, e.tenant_id FROM hearth_data.service e WHERE"
    " e.tenant_id = (SELECT tenant_id FROM hearth_data.tenant WHERE name = $1) AND e.fingerprint"
    " = $2 FOR KEY SHARE), x AS MATERIALIZED (SELECT FROM hearth_data.captured_event c, s WHERE"
    " c.service_id = s.service_id AND c.trace_key = $6 AND c.event_key = $7), d AS (INSERT INTO "
    "hearth_data.captured_day AS d (tenant_id, day,"
    " n_bytes, n_dropped) SELECT tenant_id, $3, $4, 0 FROM s WHERE ($5 = 0 OR $4 <= $5) AND NOT "
    "EXISTS"
    " (SELECT FROM x) ON CONFLICT"
    " (tenant_id, day) DO UPDATE SET n_bytes = d.n_bytes + excluded.n_bytes WHERE $5 = 0 OR"
    " d.n_bytes + excluded.n_bytes <= $5 RETURNING 1), i AS (INSERT INTO"
    " hearth_data.captured_event (service_id, trace_key, event_key, received_at, instance,"
    " trace_provider, trace_id, segment_id, span_id, event, start_at, end_at, n_redacted, n_cut,"
    " tags) SELECT s.service_id, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19"
    " FROM s WHERE EXISTS (SELECT FROM d) ON CONFLICT DO NOTHING) SELECT (SELECT count(*) FROM s),"
    " (SELECT count(*) FROM d) + (SELECT count(*) FROM x)";

static const char SQL_DROPPED[] =
    "INSERT INTO hearth_data.captured_day AS d (tenant_id, day, n_bytes, n_dropped) SELECT"
    " tenant_id, $2, 0, 1 FROM hearth_data.tenant WHERE name = $1 ON CONFLICT (tenant_id, day)"
    " DO UPDATE SET n_dropped = d.n_dropped + 1";

static enum hearth_status put_event(void *context, struct hearth_pg *pg,
                                    enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct question *question = context;
    const struct hearth_captured_event *event = question->event;
    int32_t day = (int32_t)(question->now_ms * HEARTH_NS_PER_MS / HEARTH_NS_PER_DAY);
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, question->arena);
    hearth_network_param_service(&params, question->tenant, event->service);
    hearth_pg_param_i32(&params, day);
    hearth_pg_param_i64(&params, (int64_t)question->tags.n);
    hearth_pg_param_i64(&params, question->max_day_bytes);
    hearth_pg_param_i64(&params, hearth_trace_key(event->trace_id, false));
    hearth_pg_param_uuid(&params, question->key);
    hearth_pg_param_i64(&params, question->now_ms);
    hearth_pg_param_text(&params, event->instance);
    hearth_pg_param_i32(&params, (int32_t)event->provider);
    hearth_pg_param_text(&params, event->trace_id);
    hearth_pg_param_text(&params, event->segment_id);
    hearth_pg_param_text(&params, event->span_id);
    hearth_pg_param_text(&params, event->event);
    hearth_pg_param_i64(&params, event->start_ns);
    hearth_pg_param_i64(&params, event->end_ns);
    hearth_pg_param_i32(&params, event->n_redacted);
    hearth_pg_param_i64(&params, event->n_cut);
    hearth_pg_param_bytes(&params, question->tags);
    PGresult *rows = NULL;
    HEARTH_TRY(hearth_pg_exec(pg, SQL_PUT_EVENT, &params, question->cancel, &rows, ret_fault, err));
    question->n_services = hearth_pg_i64(rows, 0, 0);
    question->is_kept = hearth_pg_i64(rows, 0, 1) > 0;
    PQclear(rows);
    if (question->n_services == 0 || question->is_kept) {
        return HEARTH_OK;
    }
    hearth_pg_params_init(&params, question->arena);
    hearth_pg_param_text(&params, question->tenant);
    hearth_pg_param_i32(&params, day);
    return hearth_pg_exec(pg, SQL_DROPPED, &params, question->cancel, NULL, ret_fault, err);
}

enum hearth_status hearth_store_captured_put(const struct hearth_scope *scope,
                                             const struct hearth_captured_event *event,
                                             int64_t max_day_bytes, bool *ret_kept,
                                             struct hearth_err *err)
{
    struct hearth_arena arena;
    struct hearth_buf tags;
    hearth_arena_init(&arena, 0);
    hearth_buf_init(&tags, 0);
    struct question question = {.tenant = scope->tenant,
                                .event = event,
                                .key = event_key(event),
                                .now_ms = now_ms(),
                                .max_day_bytes = max_day_bytes,
                                .cancel = scope->cancel,
                                .arena = &arena};
    enum hearth_status status = pack_tags(event, &tags, err);
    if (status == HEARTH_OK) {
        question.tags = hearth_buf_view(&tags);
        status = hearth_network_write(scope, event->service, put_event, &question,
                                      &question.n_services, err);
    }
    *ret_kept = question.is_kept;
    hearth_buf_release(&tags);
    hearth_arena_release(&arena);
    return status;
}

/* ---- captured events: out ---- */

#define EVENT_COLUMNS                                                                            \
    "cs.name, c.instance, c.trace_provider::int4, c.trace_id, c.segment_id, c.span_id, c.event," \
    " c.start_at, c.end_at, c.n_redacted, c.n_cut, c.tags"

static const char SQL_EVENTS[] =
    "SELECT " EVENT_COLUMNS " FROM hearth_data.network_request r JOIN hearth_data.service s USING"
    " (service_id), LATERAL (SELECT c.*, cs.name FROM" EVENTS_OF_REQUEST ") c, LATERAL (SELECT"
    " c.name) cs WHERE s.tenant_id = (SELECT tenant_id FROM hearth_data.tenant WHERE name = $1)"
    " AND r.service_id = $3 AND r.at = $4 AND r.request_id = $5::text::uuid"
    " ORDER BY c.start_at, c.end_at, c.event, c.event_key";

static const char SQL_ATTACHED[] =
    "SELECT " EVENT_COLUMNS " FROM hearth_data.captured_event c JOIN hearth_data.service cs USING"
    " (service_id) WHERE cs.tenant_id = (SELECT tenant_id FROM hearth_data.tenant WHERE name = $1)"
    " AND c.received_at >= $2 AND c.trace_key = ANY ($3) AND c.trace_id = ANY ($4)"
    " ORDER BY c.trace_id, c.start_at, c.end_at, c.event, c.event_key";

static bool take_part(const uint8_t **at, const uint8_t *end, struct hearth_str *ret)
{
    uint64_t n;
    if (!hearth_varint_read(at, end, &n) || n > (uint64_t)(end - *at)) {
        return false;
    }
    *ret = hearth_str_n((const char *)*at, (size_t)n);
    *at += n;
    return true;
}

static enum hearth_status unpack_tags(struct question *question, struct hearth_str plain,
                                      struct hearth_captured_event *event, struct hearth_err *err)
{
    const uint8_t *at = (const uint8_t *)plain.p, *end = at + plain.n;
    uint64_t n;
    bool ok = hearth_varint_read(&at, end, &n) && n <= plain.n;
    event->tags = ok ? hearth_arena_array(question->arena, (size_t)n, sizeof *event->tags) : NULL;
    for (uint64_t i = 0; event->tags != NULL && ok && i < n; i++) {
        struct hearth_property tag;
        ok = take_part(&at, end, &tag.name) && take_part(&at, end, &tag.value);
        if (!ok || (question->without_bodies && hearth_str_eq_c(tag.name, HEARTH_CAPTURED_BODY))) {
            continue;
        }
        event->tags[event->n_tags++] =
            (struct hearth_property){hearth_arena_str(question->arena, tag.name),
                                     hearth_arena_str(question->arena, tag.value)};
    }
    if (question->arena->refused) {
        return HEARTH_FAIL_ARENA(err, question->arena);
    }
    return ok ? HEARTH_OK : HEARTH_FAIL(err, HEARTH_CORRUPT, "a captured event is damaged");
}

static enum hearth_status take_event(struct question *question, const PGresult *rows, int row,
                                     struct hearth_inflater *inflater, struct hearth_buf *scratch,
                                     struct hearth_err *err)
{
    struct hearth_captured_event *event = &question->events[row];
    int32_t provider = hearth_pg_i32(rows, row, 2);
    *event = (struct hearth_captured_event){
        .service = take(question, rows, row, 0),
        .instance = take(question, rows, row, 1),
        .provider = (enum hearth_trace_provider)provider,
        .trace_id = take(question, rows, row, 3),
        .segment_id = take(question, rows, row, 4),
        .span_id = take(question, rows, row, 5),
        .event = take(question, rows, row, 6),
        .start_ns = hearth_pg_i64(rows, row, 7),
        .end_ns = hearth_pg_i64(rows, row, 8),
        .n_redacted = hearth_pg_i32(rows, row, 9),
        .n_cut = hearth_pg_i64(rows, row, 10),
    };
    struct hearth_str plain;
    hearth_buf_reset(scratch);
    HEARTH_TRY(
        hearth_unpack(inflater, hearth_pg_str(rows, row, 11), MAX_TAG_BYTES, scratch, &plain, err));
    return unpack_tags(question, plain, event, err);
}

static enum hearth_status take_events(struct question *question, const PGresult *rows,
                                      struct hearth_err *err)
{
    question->n = (size_t)PQntuples(rows);
    question->events = hearth_arena_array(question->arena, question->n, sizeof *question->events);
    struct hearth_inflater *inflater = hearth_inflater_new();
    struct hearth_buf scratch;
    hearth_buf_init(&scratch, 0);
    enum hearth_status status = HEARTH_OK;
    if (question->events == NULL) {
        status = HEARTH_FAIL_ARENA(err, question->arena);
    } else if (inflater == NULL) {
        status = HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for captured events");
    }
    for (size_t i = 0; i < question->n && status == HEARTH_OK; i++) {
        status = take_event(question, rows, (int)i, inflater, &scratch, err);
    }
    hearth_buf_release(&scratch);
    hearth_inflater_free(inflater);
    return status;
}

static enum hearth_status read_dropped(struct question *question, struct hearth_pg *pg,
                                       enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, question->arena);
    hearth_pg_param_text(&params, question->tenant);
    hearth_pg_param_i32(
        &params, (int32_t)(question->request->at_ms / (HEARTH_NS_PER_DAY / HEARTH_NS_PER_MS)));
    PGresult *rows = NULL;
    HEARTH_TRY(hearth_pg_exec(pg,
                              "SELECT n_dropped FROM hearth_data.captured_day JOIN"
                              " hearth_data.tenant t USING (tenant_id) WHERE t.name = $1 AND day ="
                              " $2",
                              &params, question->cancel, &rows, ret_fault, err));
    question->n_dropped = PQntuples(rows) > 0 ? hearth_pg_i64(rows, 0, 0) : 0;
    PQclear(rows);
    return HEARTH_OK;
}

static enum hearth_status read_events(void *context, struct hearth_pg *pg,
                                      enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct question *question = context;
    struct hearth_pg_params params;
    char id[64];
    hearth_pg_params_init(&params, question->arena);
    hearth_pg_param_text(&params, question->tenant);
    hearth_pg_param_i64(&params, captured_since_ms(question->store));
    if (question->request != NULL) {
        (void)uuid_text(question->request->request_id, id);
        hearth_pg_param_i32(&params, question->request->service_id);
        hearth_pg_param_i64(&params, question->request->at_ms);
        hearth_pg_param_text(&params, hearth_str_c(id));
    } else {
        int64_t *keys = hearth_arena_array(question->arena, question->n_ids, sizeof *keys);
        if (keys == NULL) {
            return HEARTH_FAIL_ARENA(err, question->arena);
        }
        for (size_t i = 0; i < question->n_ids; i++) {
            keys[i] = hearth_trace_key(question->ids[i], false);
        }
        hearth_pg_param_i64_array(&params, keys, question->n_ids);
        hearth_pg_param_text_array(&params, question->ids, question->n_ids);
    }
    PGresult *rows = NULL;
    HEARTH_TRY(hearth_pg_exec(pg, question->request != NULL ? SQL_EVENTS : SQL_ATTACHED, &params,
                              question->cancel, &rows, ret_fault, err));
    enum hearth_status status = take_events(question, rows, err);
    PQclear(rows);
    if (status == HEARTH_OK && question->request != NULL) {
        status = read_dropped(question, pg, ret_fault, err);
    }
    return status;
}

enum hearth_status hearth_store_captured(const struct hearth_scope *scope,
                                         const struct hearth_sampled_request *request,
                                         struct hearth_captured_event **ret, size_t *ret_n,
                                         int64_t *ret_dropped, struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    struct question question = {.store = scope->store,
                                .tenant = scope->tenant,
                                .request = request,
                                .cancel = scope->cancel,
                                .arena = scope->arena};
    HEARTH_TRY(hearth_store_with_pg(scope->store, scope->cancel, read_events, &question, err));
    *ret = question.events;
    *ret_n = question.n;
    *ret_dropped = question.n_dropped;
    return HEARTH_OK;
}

enum hearth_status hearth_store_attached(const struct hearth_scope *scope,
                                         const struct hearth_str *trace_ids, size_t n_ids,
                                         struct hearth_captured_event **ret, size_t *ret_n,
                                         struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    struct question question = {.store = scope->store,
                                .tenant = scope->tenant,
                                .ids = trace_ids,
                                .n_ids = n_ids,
                                .without_bodies = true,
                                .cancel = scope->cancel,
                                .arena = scope->arena};
    HEARTH_TRY(hearth_store_with_pg(scope->store, scope->cancel, read_events, &question, err));
    *ret = question.events;
    *ret_n = question.n;
    return HEARTH_OK;
}
