/*
 * network_captured.c -- writes and reads sampled requests and their captured events (contract:
 * hearth/store/store_network.h).
 *
 * Tags are stored as lengths and bytes: their number, then for each the length of its name, the
 * name, the length of its value, the value; lengths are varints; packed as codec/compress.h packs
 * texts.
 */
#include "hearth/base/clock.h"
#include "hearth/base/varint.h"
#include "hearth/codec/compress.h"
#include "hearth/model/spans.h"
#include "hearth/store/store_network.h"

#include "network/network_rows.h"
#include "pg/store_state.h"
#include "session/statements.h"

#include <assert.h>
#include <stdio.h>

#define MAX_TAG_BYTES ((size_t)1 << 30)

static int64_t wall_clock_ms(void)
{
    return hearth_clock_wall_ns() / HEARTH_NS_PER_MS;
}

/* Events received before this time cannot be read, even if they are not deleted yet. */
static int64_t captured_since_ms(const struct hearth_store *store)
{
    int64_t keep_ns = hearth_store_live(store)->retain_captured_ns;
    return keep_ns <= 0 ? INT64_MIN : wall_clock_ms() - keep_ns / HEARTH_NS_PER_MS;
}

/* Adds a text to the hash, with its length. */
static void hash_text(struct hearth_hash128 *hash, struct hearth_str text)
{
    uint64_t seed = hearth_hash_mix(hash->lo, text.n);
    *hash = hearth_hash128(text.p, text.n, hearth_hash_mix(seed, hash->hi));
}

static void hash_number(struct hearth_hash128 *hash, int64_t number)
{
    hash->lo = hearth_hash_mix(hash->lo, (uint64_t)number);
    hash->hi = hearth_hash_mix(hash->hi, ~(uint64_t)number);
}

/* ---- writing sampled requests ---- */

/*
 * Inserts a request, unless it is stored. $1 tenant, $2 fingerprint of the service, $3 to $20 the
 * columns. Returns 0 if the service does not exist. FOR KEY SHARE keeps the service while the
 * statement runs. By the key (tenant_id, fingerprint).
 */
static const char SQL_PUT_REQUEST[] =
    "WITH s AS MATERIALIZED (SELECT e.service_id FROM hearth_data.service e"
    "  WHERE e.tenant_id = (SELECT tenant_id FROM hearth_data.tenant WHERE name = $1)"
    "  AND e.fingerprint = $2 FOR KEY SHARE),"
    " i AS (INSERT INTO hearth_data.network_request (service_id, at, request_id,"
    "  received_at, instance, source_id, destination_id, side, component, reason, trace_provider,"
    "  trace_key, trace_id, segment_id, span_id, uri, latency_us, status, is_ssl)"
    "  SELECT s.service_id, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17,"
    "  $18, $19, $20 <> 0 FROM s ON CONFLICT DO NOTHING)"
    " SELECT count(*) FROM s";

/* A request to be stored. */
struct request_put {
    struct hearth_pg_params params;
    struct hearth_cancel *cancel;
    int64_t n_services; /* result; 0: the service does not exist */
};

/* The id of a request: the hash of all its members. */
static struct hearth_hash128 make_request_key(struct hearth_str tenant,
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
        hash_text(&hash, texts[i]);
    }

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(numbers); i++) {
        hash_number(&hash, numbers[i]);
    }

    return hash;
}

/* Makes the parameters of SQL_PUT_REQUEST. */
static void make_request_params(struct hearth_str tenant,
                                const struct hearth_sampled_request *request,
                                struct hearth_arena *arena, struct hearth_pg_params *params)
{
    hearth_pg_params_init(params, arena);
    hearth_network_param_service(params, tenant, request->service);
    hearth_pg_param_i64(params, request->at_ms);
    hearth_pg_param_uuid(params, make_request_key(tenant, request));
    hearth_pg_param_i64(params, wall_clock_ms());

    hearth_pg_param_text(params, request->instance);
    hearth_pg_param_text(params, request->source_id);
    hearth_pg_param_text(params, request->destination_id);
    hearth_pg_param_i32(params, (int32_t)request->side);
    hearth_pg_param_i32(params, (int32_t)request->component);
    hearth_pg_param_i32(params, (int32_t)request->reason);

    hearth_pg_param_i32(params, (int32_t)request->provider);
    hearth_pg_param_i64(params, hearth_trace_key(request->trace_id, false));
    hearth_pg_param_text(params, request->trace_id);
    hearth_pg_param_text(params, request->segment_id);
    hearth_pg_param_text(params, request->span_id);

    hearth_pg_param_text(params, request->uri);
    hearth_pg_param_i64(params, request->latency_us);
    hearth_pg_param_i32(params, request->status);
    hearth_pg_param_i32(params, request->is_ssl);
}

static enum hearth_status put_request(void *context, struct hearth_pg *pg,
                                      enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct request_put *put = context;
    assert(put->params.arena != NULL);

    PGresult *rows = NULL;
    HEARTH_TRY(
        hearth_pg_exec(pg, SQL_PUT_REQUEST, &put->params, put->cancel, &rows, ret_fault, err));

    put->n_services = hearth_pg_i64(rows, 0, 0);
    PQclear(rows);

    return HEARTH_OK;
}

enum hearth_status hearth_store_sampled_put(const struct hearth_scope *scope,
                                            const struct hearth_sampled_request *request,
                                            struct hearth_err *err)
{
    HEARTH_CLEANUP(hearth_arena_release) struct hearth_arena arena;
    hearth_arena_init(&arena, 0);

    struct request_put put = {.cancel = scope->cancel};
    make_request_params(scope->tenant, request, &arena, &put.params);

    return hearth_network_write(scope, request->service, put_request, &put, &put.n_services, err);
}

/* ---- reading sampled requests ---- */

/*
 * Events c of a request r, received since $2: events of its trace that name its instance or no
 * instance. If both name a segment or span, it must be the same. Only services of the tenant count.
 * By the index on trace_key.
 */
#define EVENTS_OF_REQUEST                                                                         \
    " hearth_data.captured_event c JOIN hearth_data.service cs ON cs.service_id = c.service_id"   \
    " AND cs.tenant_id = s.tenant_id WHERE c.trace_key = r.trace_key AND c.trace_id = r.trace_id" \
    " AND c.received_at >= $2 AND (c.instance = '' OR (c.instance = r.instance AND c.service_id"  \
    " = r.service_id)) AND (r.segment_id = '' OR c.segment_id IN ('', r.segment_id)) AND"         \
    " (r.span_id = '' OR c.span_id IN ('', r.span_id))"

/*
 * Requests that pass the filter, the slowest first. $1 tenant, $2 the earliest readable event. A
 * parameter '' or 0 does not restrict: $3 id, $4 service, $5 instance, $6 trace and $7 its key, $8
 * source, $9 destination, $10 reason; $11 and $12 times, $13 limit. Indexes on request_id and
 * trace_key serve $3 and $7.
 */
static const char SQL_REQUESTS[] =
    "SELECT replace(r.request_id::text, '-', ''), s.name, r.instance, r.source_id,"
    " r.destination_id, r.side::int4, r.component, r.reason::int4, r.trace_provider::int4,"
    " r.trace_id, r.segment_id, r.span_id, r.uri, r.latency_us, r.at, r.status, r.is_ssl::int4,"
    " r.service_id, (SELECT count(*)::int4 FROM" EVENTS_OF_REQUEST ")"
    " FROM hearth_data.network_request r JOIN hearth_data.service s USING (service_id)"
    " WHERE s.tenant_id = (SELECT tenant_id FROM hearth_data.tenant WHERE name = $1)"
    " AND ($3 = '' OR r.request_id = nullif($3, '')::uuid) AND ($4 = '' OR s.name = $4)"
    " AND ($5 = '' OR r.instance = $5)"
    " AND ($6 = '' OR (r.trace_id = $6 AND r.trace_key = $7))"
    " AND ($8 = '' OR r.source_id = $8) AND ($9 = '' OR r.destination_id = $9)"
    " AND ($10 = 0 OR r.reason = $10) AND r.at >= $11 AND r.at <= $12"
    " ORDER BY r.latency_us DESC, r.at DESC, r.request_id LIMIT $13";

#define REQUEST(kind, member) HEARTH_COLUMN(kind, struct hearth_sampled_request, member)
static const struct hearth_column request_columns[] = {
    REQUEST(TEXT, request_id), REQUEST(TEXT, service),        REQUEST(TEXT, instance),
    REQUEST(TEXT, source_id),  REQUEST(TEXT, destination_id), REQUEST(I32, side),
    REQUEST(I32, component),   REQUEST(I32, reason),          REQUEST(I32, provider),
    REQUEST(TEXT, trace_id),   REQUEST(TEXT, segment_id),     REQUEST(TEXT, span_id),
    REQUEST(TEXT, uri),        REQUEST(I64, latency_us),      REQUEST(I64, at_ms),
    REQUEST(I32, status),      REQUEST(BOOL, is_ssl),         REQUEST(I32, service_id),
    REQUEST(I32, n_events),
};
static const struct hearth_row_type request_rows =
    HEARTH_ROW_TYPE(request_columns, struct hearth_sampled_request);

/*
 * Writes the id in a form that PostgreSQL reads as a uuid; an empty id stays empty. False: `id` is
 * neither an id nor empty.
 */
static bool format_request_id(struct hearth_str id, char out[64])
{
    uint64_t half;
    bool is_id = id.n == HEARTH_SAMPLED_ID_TEXT &&
                 hearth_str_hex_to_u64(hearth_str_n(id.p, 16), &half) &&
                 hearth_str_hex_to_u64(hearth_str_n(id.p + 16, 16), &half);

    (void)snprintf(out, 64, "%.*s", is_id ? HEARTH_SAMPLED_ID_TEXT : 0, is_id ? id.p : "");

    return is_id || id.n == 0;
}

enum hearth_status hearth_store_sampled(const struct hearth_scope *scope,
                                        const struct hearth_sampled_filter *filter,
                                        struct hearth_sampled_request **ret, size_t *ret_n,
                                        struct hearth_err *err)
{
    assert(scope->arena != NULL);

    /* No request has an id that is not an id. */
    char id[64];
    if (!format_request_id(filter->request_id, id)) {
        HEARTH_TRY(hearth_store_check_open(scope->store, err));
        *ret = NULL;
        *ret_n = 0;
        return HEARTH_OK;
    }

    struct hearth_pg_params params;
    hearth_pg_params_init(&params, scope->arena);
    hearth_pg_param_text(&params, scope->tenant);
    hearth_pg_param_i64(&params, captured_since_ms(scope->store));
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

    return hearth_store_select(scope, SQL_REQUESTS, &params, &request_rows, ret, ret_n, err);
}

/* ---- writing captured events ---- */

/* Encodes the tags as the head of this file says, and packs them. */
static enum hearth_status pack_tags(const struct hearth_captured_event *event,
                                    struct hearth_buf *out, struct hearth_err *err)
{
    struct hearth_buf plain;

    /* Encode the tags. */
    hearth_buf_init(&plain, 0);
    hearth_buf_varint(&plain, event->n_tags);
    for (size_t i = 0; i < event->n_tags; i++) {
        hearth_buf_varint(&plain, event->tags[i].name.n);
        hearth_buf_str(&plain, event->tags[i].name);
        hearth_buf_varint(&plain, event->tags[i].value.n);
        hearth_buf_str(&plain, event->tags[i].value);
    }

    /* Pack them. */
    enum hearth_status status;
    if (hearth_buf_failed(&plain)) {
        status = HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for a captured event");
    } else {
        status = hearth_pack_text(hearth_buf_view(&plain), out, err);
    }

    hearth_buf_release(&plain);

    return status;
}

/* The key of an event: the hash of all its members but the service. */
static struct hearth_hash128 make_event_key(const struct hearth_captured_event *event)
{
    const struct hearth_str texts[] = {event->instance, event->trace_id, event->segment_id,
                                       event->span_id, event->event};
    struct hearth_hash128 hash = {0, 0};

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(texts); i++) {
        hash_text(&hash, texts[i]);
    }

    for (size_t i = 0; i < event->n_tags; i++) {
        hash_text(&hash, event->tags[i].name);
        hash_text(&hash, event->tags[i].value);
    }

    hash_number(&hash, event->start_ns);
    hash_number(&hash, event->end_ns);
    hash_number(&hash, (int64_t)event->provider);

    return hash;
}

/*
 * Inserts an event, unless it is stored or the day is full. $1 tenant, $2 fingerprint of the
 * service, $3 day, $4 bytes, $5 limit of a day, $6 to $19 the columns. `x` is the event if it is
 * already stored; otherwise `d` adds its bytes to the day's row if they fit, and `i` inserts it.
 * Returns the number of services (0 or 1), and whether the event is stored. By the primary keys.
 */
static const char SQL_PUT_EVENT[] =
    "WITH s AS MATERIALIZED (SELECT e.service_id, e.tenant_id FROM hearth_data.service e"
    "  WHERE e.tenant_id = (SELECT tenant_id FROM hearth_data.tenant WHERE name = $1)"
    "  AND e.fingerprint = $2 FOR KEY SHARE),"
    " x AS MATERIALIZED (SELECT FROM hearth_data.captured_event c, s"
    "  WHERE c.service_id = s.service_id AND c.trace_key = $6 AND c.event_key = $7),"
    " d AS (INSERT INTO hearth_data.captured_day AS d (tenant_id, day, n_bytes, n_dropped)"
    "  SELECT tenant_id, $3, $4, 0 FROM s WHERE ($5 = 0 OR $4 <= $5)"
    "  AND NOT EXISTS (SELECT FROM x)"
    "  ON CONFLICT (tenant_id, day) DO UPDATE SET n_bytes = d.n_bytes + excluded.n_bytes"
    "  WHERE $5 = 0 OR d.n_bytes + excluded.n_bytes <= $5 RETURNING 1),"
    " i AS (INSERT INTO hearth_data.captured_event (service_id, trace_key, event_key,"
    "  received_at, instance, trace_provider, trace_id, segment_id, span_id, event, start_at,"
    "  end_at, n_redacted, n_cut, tags)"
    "  SELECT s.service_id, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19"
    "  FROM s WHERE EXISTS (SELECT FROM d) ON CONFLICT DO NOTHING)"
    " SELECT (SELECT count(*) FROM s), (SELECT count(*) FROM d) + (SELECT count(*) FROM x)";

/* Counts an event that was not stored. $1 tenant, $2 day. */
static const char SQL_COUNT_DROPPED[] =
    "INSERT INTO hearth_data.captured_day AS d (tenant_id, day, n_bytes, n_dropped)"
    " SELECT tenant_id, $2, 0, 1 FROM hearth_data.tenant WHERE name = $1"
    " ON CONFLICT (tenant_id, day) DO UPDATE SET n_dropped = d.n_dropped + 1";

/* An event to be stored. */
struct event_put {
    const struct hearth_scope *scope;
    struct hearth_pg_params params, dropped_params;
    int64_t max_day_bytes; /* of the tenant; 0: no limit */
    int64_t n_services;    /* result; 0: the service does not exist */
    bool is_kept;          /* result: the event is stored */
};

/* Makes the parameters of SQL_PUT_EVENT and SQL_COUNT_DROPPED. tags: packed. */
static void make_event_params(struct event_put *put, const struct hearth_captured_event *event,
                              struct hearth_str tags, struct hearth_arena *arena)
{
    const struct hearth_scope *scope = put->scope;
    int64_t now_ms = wall_clock_ms();
    int32_t day = (int32_t)(now_ms * HEARTH_NS_PER_MS / HEARTH_NS_PER_DAY);

    struct hearth_pg_params *params = &put->params;
    hearth_pg_params_init(params, arena);
    hearth_network_param_service(params, scope->tenant, event->service);
    hearth_pg_param_i32(params, day);
    hearth_pg_param_i64(params, (int64_t)tags.n);
    hearth_pg_param_i64(params, put->max_day_bytes);
    hearth_pg_param_i64(params, hearth_trace_key(event->trace_id, false));
    hearth_pg_param_uuid(params, make_event_key(event));
    hearth_pg_param_i64(params, now_ms);
    hearth_pg_param_text(params, event->instance);
    hearth_pg_param_i32(params, (int32_t)event->provider);
    hearth_pg_param_text(params, event->trace_id);
    hearth_pg_param_text(params, event->segment_id);
    hearth_pg_param_text(params, event->span_id);
    hearth_pg_param_text(params, event->event);
    hearth_pg_param_i64(params, event->start_ns);
    hearth_pg_param_i64(params, event->end_ns);
    hearth_pg_param_i32(params, event->n_redacted);
    hearth_pg_param_i64(params, event->n_cut);
    hearth_pg_param_bytes(params, tags);

    hearth_pg_params_init(&put->dropped_params, arena);
    hearth_pg_param_text(&put->dropped_params, scope->tenant);
    hearth_pg_param_i32(&put->dropped_params, day);
}

/* Stores an event, or counts it as dropped. */
static enum hearth_status put_event(void *context, struct hearth_pg *pg,
                                    enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct event_put *put = context;
    PGresult *rows = NULL;
    HEARTH_TRY(
        hearth_pg_exec(pg, SQL_PUT_EVENT, &put->params, put->scope->cancel, &rows, ret_fault, err));
    put->n_services = hearth_pg_i64(rows, 0, 0);
    put->is_kept = hearth_pg_i64(rows, 0, 1) > 0;
    PQclear(rows);

    if (put->n_services == 0 || put->is_kept) {
        return HEARTH_OK;
    }

    return hearth_pg_exec(pg, SQL_COUNT_DROPPED, &put->dropped_params, put->scope->cancel, NULL,
                          ret_fault, err);
}

enum hearth_status hearth_store_captured_put(const struct hearth_scope *scope,
                                             const struct hearth_captured_event *event,
                                             int64_t max_day_bytes, bool *ret_kept,
                                             struct hearth_err *err)
{
    assert(event->tags != NULL || event->n_tags == 0);

    HEARTH_CLEANUP(hearth_arena_release) struct hearth_arena arena;
    HEARTH_CLEANUP(hearth_buf_release) struct hearth_buf tags;
    hearth_arena_init(&arena, 0);
    hearth_buf_init(&tags, 0);

    /* Pack the tags, and store the event. */
    struct event_put put = {.scope = scope, .max_day_bytes = max_day_bytes};
    enum hearth_status status = pack_tags(event, &tags, err);
    if (status == HEARTH_OK) {
        make_event_params(&put, event, hearth_buf_view(&tags), &arena);
        status = hearth_network_write(scope, event->service, put_event, &put, &put.n_services, err);
    }

    *ret_kept = put.is_kept;

    return status;
}

/* ---- reading captured events ---- */

#define EVENT_COLUMNS                                                                            \
    "cs.name, c.instance, c.trace_provider::int4, c.trace_id, c.segment_id, c.span_id, c.event," \
    " c.start_at, c.end_at, c.n_redacted, c.n_cut, c.tags"

/*
 * Events of one request. $1 tenant, $2 the earliest readable time, $3 service, $4 time, $5 id of
 * the request. By the primary key of network_request, then by the index on trace_key.
 */
static const char SQL_EVENTS[] =
    "SELECT " EVENT_COLUMNS " FROM hearth_data.network_request r"
    " JOIN hearth_data.service s USING (service_id),"
    " LATERAL (SELECT c.*, cs.name FROM" EVENTS_OF_REQUEST ") c, LATERAL (SELECT c.name) cs"
    " WHERE s.tenant_id = (SELECT tenant_id FROM hearth_data.tenant WHERE name = $1)"
    " AND r.service_id = $3 AND r.at = $4 AND r.request_id = $5::text::uuid"
    " ORDER BY c.start_at, c.end_at, c.event, c.event_key";

/*
 * Events of traces. $1 tenant, $2 the earliest readable time, $3 keys and $4 ids of traces. By the
 * index on trace_key.
 */
static const char SQL_ATTACHED[] =
    "SELECT " EVENT_COLUMNS " FROM hearth_data.captured_event c"
    " JOIN hearth_data.service cs USING (service_id)"
    " WHERE cs.tenant_id = (SELECT tenant_id FROM hearth_data.tenant WHERE name = $1)"
    " AND c.received_at >= $2 AND c.trace_key = ANY ($3) AND c.trace_id = ANY ($4)"
    " ORDER BY c.trace_id, c.start_at, c.end_at, c.event, c.event_key";

/* An event and its packed tags. */
struct stored_event {
    struct hearth_captured_event event;
    struct hearth_str packed_tags;
};

#define EVENT(kind, member) HEARTH_COLUMN(kind, struct stored_event, member)
static const struct hearth_column event_columns[] = {
    EVENT(TEXT, event.service),   EVENT(TEXT, event.instance),   EVENT(I32, event.provider),
    EVENT(TEXT, event.trace_id),  EVENT(TEXT, event.segment_id), EVENT(TEXT, event.span_id),
    EVENT(TEXT, event.event),     EVENT(I64, event.start_ns),    EVENT(I64, event.end_ns),
    EVENT(I32, event.n_redacted), EVENT(I64, event.n_cut),       EVENT(BYTES, packed_tags),
};
static const struct hearth_row_type event_rows =
    HEARTH_ROW_TYPE(event_columns, struct stored_event);

/* Reads a text and the length before it. False: the bytes are damaged. */
static bool read_counted_text(const uint8_t **at, const uint8_t *end, struct hearth_str *ret)
{
    uint64_t n;
    if (!hearth_varint_read(at, end, &n) || n > (uint64_t)(end - *at)) {
        return false;
    }

    *ret = hearth_str_n((const char *)*at, (size_t)n);
    *at += n;

    return true;
}

/* A read of events. */
struct event_read {
    const struct hearth_scope *scope;
    bool without_bodies; /* tags with bodies are left out */
    struct hearth_inflater *inflater;
    struct hearth_buf scratch; /* tags of one event */
};

/* Sets event->tags to the tags of `plain`, copied to the arena. */
static enum hearth_status parse_tags(const struct event_read *read, struct hearth_str plain,
                                     struct hearth_captured_event *event, struct hearth_err *err)
{
    /* Allocate room for all. */
    struct hearth_arena *arena = read->scope->arena;
    const uint8_t *at = (const uint8_t *)plain.p, *end = at + plain.n;
    uint64_t n;
    bool ok = hearth_varint_read(&at, end, &n) && n <= plain.n;
    event->tags = ok ? hearth_arena_array(arena, (size_t)n, sizeof *event->tags) : NULL;

    /* Copy them. */
    for (uint64_t i = 0; event->tags != NULL && ok && i < n; i++) {
        struct hearth_property tag;
        ok = read_counted_text(&at, end, &tag.name) && read_counted_text(&at, end, &tag.value);
        if (!ok || (read->without_bodies && hearth_str_eq_c(tag.name, HEARTH_CAPTURED_BODY))) {
            continue;
        }

        event->tags[event->n_tags++] = (struct hearth_property){hearth_arena_str(arena, tag.name),
                                                                hearth_arena_str(arena, tag.value)};
    }

    if (arena->refused) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    return ok ? HEARTH_OK
              : HEARTH_FAIL(err, HEARTH_CORRUPT, "the stored tags of a captured event are damaged");
}

/* Makes the events of n rows, with their tags. */
static enum hearth_status unpack_events(struct event_read *read, const struct stored_event *stored,
                                        size_t n, struct hearth_captured_event *events,
                                        struct hearth_err *err)
{
    assert(read->inflater != NULL);

    for (size_t i = 0; i < n; i++) {
        struct hearth_str plain;
        hearth_buf_reset(&read->scratch);
        HEARTH_TRY(hearth_unpack(read->inflater, stored[i].packed_tags, MAX_TAG_BYTES,
                                 &read->scratch, &plain, err));
        events[i] = stored[i].event;
        HEARTH_TRY(parse_tags(read, plain, &events[i], err));
    }

    return HEARTH_OK;
}

/* Reads events by a statement whose columns are EVENT_COLUMNS. */
static enum hearth_status select_events(struct event_read *read, const char *sql,
                                        const struct hearth_pg_params *params,
                                        struct hearth_captured_event **ret, size_t *ret_n,
                                        struct hearth_err *err)
{
    struct hearth_arena *arena = read->scope->arena;
    assert(arena != NULL);

    /* Read the rows. */
    struct stored_event *stored;
    size_t n;
    HEARTH_TRY(hearth_store_select(read->scope, sql, params, &event_rows, &stored, &n, err));

    struct hearth_captured_event *events = hearth_arena_array(arena, n, sizeof *events);
    if (events == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    /* Unpack their tags. */
    read->inflater = hearth_inflater_new();
    if (read->inflater == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for captured events");
    }

    hearth_buf_init(&read->scratch, 0);
    enum hearth_status status = unpack_events(read, stored, n, events, err);
    hearth_buf_release(&read->scratch);
    hearth_inflater_free(read->inflater);
    HEARTH_TRY(status);

    *ret = events;
    *ret_n = n;

    return HEARTH_OK;
}

/* Reads the number of the tenant's events that were dropped on the day of at_ms. */
static enum hearth_status read_dropped(const struct hearth_scope *scope, int64_t at_ms,
                                       int64_t *ret_n, struct hearth_err *err)
{
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, scope->arena);
    hearth_pg_param_text(&params, scope->tenant);
    hearth_pg_param_i32(&params, (int32_t)(at_ms / (HEARTH_NS_PER_DAY / HEARTH_NS_PER_MS)));

    int64_t n = 0;
    bool found;
    HEARTH_TRY(hearth_store_select_one(
        scope,
        "SELECT n_dropped FROM hearth_data.captured_day JOIN hearth_data.tenant t"
        " USING (tenant_id) WHERE t.name = $1 AND day = $2",
        &params, &hearth_i64_rows, &n, &found, err));
    *ret_n = n;

    return HEARTH_OK;
}

enum hearth_status hearth_store_captured(const struct hearth_scope *scope,
                                         const struct hearth_sampled_request *request,
                                         struct hearth_captured_event **ret, size_t *ret_n,
                                         int64_t *ret_dropped, struct hearth_err *err)
{
    char id[64];
    (void)format_request_id(request->request_id, id);

    struct hearth_pg_params params;
    hearth_pg_params_init(&params, scope->arena);
    hearth_pg_param_text(&params, scope->tenant);
    hearth_pg_param_i64(&params, captured_since_ms(scope->store));
    hearth_pg_param_i32(&params, request->service_id);
    hearth_pg_param_i64(&params, request->at_ms);
    hearth_pg_param_text(&params, hearth_str_c(id));

    struct event_read read = {.scope = scope};
    int64_t n_dropped;
    HEARTH_TRY(select_events(&read, SQL_EVENTS, &params, ret, ret_n, err));
    HEARTH_TRY(read_dropped(scope, request->at_ms, &n_dropped, err));
    *ret_dropped = n_dropped;

    return HEARTH_OK;
}

enum hearth_status hearth_store_attached(const struct hearth_scope *scope,
                                         const struct hearth_str *trace_ids, size_t n_ids,
                                         struct hearth_captured_event **ret, size_t *ret_n,
                                         struct hearth_err *err)
{
    assert(trace_ids != NULL || n_ids == 0);

    /* The index has the keys of traces. */
    int64_t *keys = hearth_arena_array(scope->arena, n_ids, sizeof *keys);
    if (keys == NULL) {
        return HEARTH_FAIL_ARENA(err, scope->arena);
    }

    for (size_t i = 0; i < n_ids; i++) {
        keys[i] = hearth_trace_key(trace_ids[i], false);
    }

    struct hearth_pg_params params;
    hearth_pg_params_init(&params, scope->arena);
    hearth_pg_param_text(&params, scope->tenant);
    hearth_pg_param_i64(&params, captured_since_ms(scope->store));
    hearth_pg_param_i64_array(&params, keys, n_ids);
    hearth_pg_param_text_array(&params, trace_ids, n_ids);

    struct event_read read = {.scope = scope, .without_bodies = true};

    return select_events(&read, SQL_ATTACHED, &params, ret, ret_n, err);
}
