/*
 * store_network.c -- flushes of connections, and names of addresses (contract: hearth/store/store_network.h; sampled requests
 * and what was captured of them: network_captured.c).
 */
#include "hearth/store/store_network.h"

#include "hearth/base/clock.h"
#include "hearth/store/store_agents.h"

#include "catalog/services.h"
#include "network/network_rows.h"
#include "pg/partitions.h"
#include "pg/pg.h"
#include "pg/session.h"

#define MS_PER_DAY (HEARTH_NS_PER_DAY / HEARTH_NS_PER_MS)

/* What all questions here share. */
struct question {
    struct hearth_store *store;
    struct hearth_str tenant, service, instance;
    int64_t at_ms, max;
    const struct hearth_network_flush *flushes;
    const struct hearth_network_range *range;
    const struct hearth_network_reader *reader;
    const struct hearth_str *addresses;
    const struct hearth_address_name *names;
    size_t n;
    struct hearth_cancel *cancel;
    struct hearth_arena *arena;
    /* The answer. */
    struct hearth_network_flush *found;
    struct hearth_address_name *found_names;
    size_t n_found;
    int64_t n_services;
};

/* ---- writing ---- */

/* $1 tenant, $2 fingerprint of the service, $3 time, $4 instance. The service stays as long as the statement runs. */
static const char SQL_ADD[] =
    "WITH s AS MATERIALIZED (SELECT e.service_id FROM hearth_data.service e WHERE e.tenant_id ="
    " (SELECT tenant_id FROM hearth_data.tenant WHERE name = $1) AND e.fingerprint = $2 FOR KEY"
    " SHARE), i AS (INSERT INTO hearth_data.network_sample (service_id, at, sample_key, instance,"
    " source_id, destination_id, side, component, source_addresses, destination_addresses,"
    " payload) SELECT s.service_id, $3, x.k, $4, x.f, x.t, x.s, x.c, string_to_array(x.fa,"
    " E'\\n'), string_to_array(x.ta, E'\\n'), x.p FROM s, unnest($5::int8[], $6::text[],"
    " $7::text[], $8::int4[], $9::int4[], $10::text[], $11::text[], $12::bytea[])"
    " x (k, f, t, s, c, fa, ta, p) ON CONFLICT DO NOTHING) SELECT count(*) FROM s";

static int64_t key_of(const struct question *question, const struct hearth_network_flush *flush)
{
    const struct hearth_str texts[] = {question->instance, flush->source_id, flush->destination_id,
                                       flush->payload};
    uint64_t key = (uint64_t)flush->side << 32 | (uint64_t)flush->component;
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(texts); i++) {
        key = hearth_hash64(texts[i].p, texts[i].n, key);
    }
    return (int64_t)key;
}

static enum hearth_status add_params(const struct question *question,
                                     struct hearth_pg_params *params, struct hearth_err *err)
{
    size_t n = question->n;
    int64_t *keys = hearth_arena_array(question->arena, n, sizeof *keys);
    int32_t *numbers = hearth_arena_array(question->arena, 2 * n, sizeof *numbers);
    struct hearth_str *texts = hearth_arena_array(question->arena, 5 * n, sizeof *texts);
    if (keys == NULL || numbers == NULL || texts == NULL) {
        return HEARTH_FAIL_ARENA(err, question->arena);
    }
    for (size_t i = 0; i < n; i++) {
        const struct hearth_network_flush *flush = &question->flushes[i];
        keys[i] = key_of(question, flush);
        texts[i] = flush->source_id;
        texts[n + i] = flush->destination_id;
        numbers[i] = (int32_t)flush->side;
        numbers[n + i] = (int32_t)flush->component;
        texts[2 * n + i] = flush->source_addresses;
        texts[3 * n + i] = flush->destination_addresses;
        texts[4 * n + i] = flush->payload;
    }
    hearth_pg_params_init(params, question->arena);
    hearth_network_param_service(params, question->tenant, question->service);
    hearth_pg_param_i64(params, question->at_ms);
    hearth_pg_param_text(params, question->instance);
    hearth_pg_param_i64_array(params, keys, n);
    hearth_pg_param_text_array(params, texts, n);
    hearth_pg_param_text_array(params, texts + n, n);
    hearth_pg_param_i32_array(params, numbers, n);
    hearth_pg_param_i32_array(params, numbers + n, n);
    hearth_pg_param_text_array(params, texts + 2 * n, n);
    hearth_pg_param_text_array(params, texts + 3 * n, n);
    hearth_pg_param_bytes_array(params, texts + 4 * n, n);
    return HEARTH_OK;
}

static enum hearth_status add(void *context, struct hearth_pg *pg, enum hearth_pg_fault *ret_fault,
                              struct hearth_err *err)
{
    struct question *question = context;
    int32_t day = (int32_t)(question->at_ms / MS_PER_DAY);
    struct hearth_pg_params params;
    HEARTH_TRY(hearth_partitions_ensure(question->store, pg, HEARTH_LEAF_NETWORK_SAMPLE, day, err));
    HEARTH_TRY(add_params(question, &params, err));
    PGresult *rows = NULL;
    enum hearth_status status =
        hearth_pg_exec(pg, SQL_ADD, &params, question->cancel, &rows, ret_fault, err);
    if (status != HEARTH_OK) {
        if (*ret_fault == HEARTH_PG_FAULT_MISSING_TABLE) {
            /* Retention has just taken the day that was known: made again. */
            hearth_partitions_forget(question->store, day);
            *ret_fault = HEARTH_PG_FAULT_RETRY;
        }
        return status;
    }
    question->n_services = hearth_pg_i64(rows, 0, 0);
    PQclear(rows);
    return HEARTH_OK;
}

void hearth_network_param_service(struct hearth_pg_params *params, struct hearth_str tenant,
                                  struct hearth_str service)
{
    hearth_pg_param_text(params, tenant);
    hearth_pg_param_uuid(params, hearth_service_fingerprint(service));
}

enum hearth_status hearth_network_write(const struct hearth_scope *scope, struct hearth_str service,
                                        hearth_with_pg_fn *write, void *context,
                                        const int64_t *n_services, struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    HEARTH_TRY(hearth_store_with_pg(scope->store, scope->cancel, write, context, err));
    for (int i = 0; *n_services == 0 && i < 3; i++) { /* it is made, or was just removed */
        int32_t service_id;
        HEARTH_TRY(hearth_store_service_id(scope, service, true, &service_id, err));
        HEARTH_TRY(hearth_store_with_pg(scope->store, scope->cancel, write, context, err));
    }
    return *n_services > 0
               ? HEARTH_OK
               : HEARTH_FAIL(err, HEARTH_UNAVAILABLE, "the service is being removed; retry");
}

enum hearth_status hearth_store_network_add(const struct hearth_scope *scope,
                                            struct hearth_str service, struct hearth_str instance,
                                            int64_t at_ms,
                                            const struct hearth_network_flush *flushes, size_t n,
                                            struct hearth_err *err)
{
    if (at_ms < 0 || at_ms / MS_PER_DAY > INT32_MAX) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "%lld is no time", (long long)at_ms);
    }
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct question question = {.store = scope->store,
                                .tenant = scope->tenant,
                                .service = service,
                                .instance = instance,
                                .at_ms = at_ms,
                                .flushes = flushes,
                                .n = n,
                                .cancel = scope->cancel,
                                .arena = &arena};
    enum hearth_status status =
        hearth_network_write(scope, service, add, &question, &question.n_services, err);
    hearth_arena_release(&arena);
    return status;
}

/* ---- reading ---- */

#define OF_SERVICE                                                                           \
    "service_id = (SELECT service_id FROM hearth_data.service e WHERE e.tenant_id = (SELECT" \
    " tenant_id FROM hearth_data.tenant WHERE name = $1) AND e.fingerprint = $2)"
#define OF_INSTANCE OF_SERVICE " AND at >= $3 AND at < $4 AND instance = $5"
#define OF_RELATION \
    OF_INSTANCE " AND ($6 = '' OR source_id = $6) AND ($7 = '' OR destination_id = $7)"

static const char SQL_RELATIONS[] =
    "SELECT source_id, destination_id, side::int4, component, array_to_string(source_addresses,"
    " E'\\n'), array_to_string(destination_addresses, E'\\n') FROM hearth_data.network_sample"
    " WHERE " OF_RELATION
    " GROUP BY source_id, destination_id, side, component, source_addresses, destination_addresses"
    " UNION SELECT source_id, destination_id, side::int4, component, '', '' FROM"
    " hearth_data.network_request WHERE " OF_RELATION " ORDER BY 1, 2, 3, 4, 5, 6";

static const char SQL_FLUSHES[] =
    "SELECT source_id, destination_id, side::int4, component, at, payload FROM"
    " hearth_data.network_sample WHERE " OF_RELATION
    " ORDER BY source_id, destination_id, side, at, sample_key";

static void range_params(const struct question *question, struct hearth_pg_params *params)
{
    const struct hearth_network_range *range = question->range;
    hearth_pg_params_init(params, question->arena);
    hearth_network_param_service(params, question->tenant, range->service);
    hearth_pg_param_i64(params, range->from_ms);
    hearth_pg_param_i64(params, range->to_ms);
    hearth_pg_param_text(params, range->instance);
    hearth_pg_param_text(params, range->source_id);
    hearth_pg_param_text(params, range->destination_id);
}

static struct hearth_network_flush view_flush(const PGresult *rows, int row)
{
    int32_t side = hearth_pg_i32(rows, row, 2), component = hearth_pg_i32(rows, row, 3);
    return (struct hearth_network_flush){
        .source_id = hearth_pg_str(rows, row, 0),
        .destination_id = hearth_pg_str(rows, row, 1),
        .side = (enum hearth_network_side)side,
        .component = (enum hearth_network_component)component,
    };
}

static enum hearth_status read_relations(void *context, struct hearth_pg *pg,
                                         enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct question *question = context;
    struct hearth_pg_params params;
    range_params(question, &params);
    PGresult *rows = NULL;
    HEARTH_TRY(hearth_pg_exec(pg, SQL_RELATIONS, &params, question->cancel, &rows, ret_fault, err));
    question->n_found = (size_t)PQntuples(rows);
    question->found =
        hearth_arena_array(question->arena, question->n_found, sizeof *question->found);
    for (size_t i = 0; i < question->n_found && question->found != NULL; i++) {
        struct hearth_network_flush *flush = &question->found[i];
        *flush = view_flush(rows, (int)i);
        flush->source_id = hearth_arena_str(question->arena, flush->source_id);
        flush->destination_id = hearth_arena_str(question->arena, flush->destination_id);
        flush->source_addresses = hearth_arena_str(question->arena, hearth_pg_str(rows, (int)i, 4));
        flush->destination_addresses =
            hearth_arena_str(question->arena, hearth_pg_str(rows, (int)i, 5));
    }
    PQclear(rows);
    return question->arena->refused ? HEARTH_FAIL_ARENA(err, question->arena) : HEARTH_OK;
}

enum hearth_status hearth_store_network_relations(const struct hearth_scope *scope,
                                                  const struct hearth_network_range *range,
                                                  struct hearth_network_flush **ret, size_t *ret_n,
                                                  struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    struct question question = {
        .tenant = scope->tenant, .range = range, .cancel = scope->cancel, .arena = scope->arena};
    HEARTH_TRY(hearth_store_with_pg(scope->store, scope->cancel, read_relations, &question, err));
    *ret = question.found;
    *ret_n = question.n_found;
    return HEARTH_OK;
}

static enum hearth_status take_flush(void *context, const PGresult *row, struct hearth_err *err)
{
    struct question *question = context;
    struct hearth_network_flush flush = view_flush(row, 0);
    flush.at_ms = hearth_pg_i64(row, 0, 4);
    flush.payload = hearth_pg_str(row, 0, 5);
    return question->reader->flush(question->reader->context, &flush, err);
}

static enum hearth_status read_flushes(void *context, struct hearth_pg *pg,
                                       enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct question *question = context;
    struct hearth_pg_params params;
    range_params(question, &params);
    HEARTH_TRY(question->reader->begin(question->reader->context, err));
    return hearth_pg_stream(pg, SQL_FLUSHES, &params, question->cancel, take_flush, question,
                            ret_fault, err);
}

enum hearth_status hearth_store_network_flushes(const struct hearth_scope *scope,
                                                const struct hearth_network_range *range,
                                                const struct hearth_network_reader *reader,
                                                struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct question question = {.tenant = scope->tenant,
                                .range = range,
                                .reader = reader,
                                .cancel = scope->cancel,
                                .arena = &arena};
    enum hearth_status status =
        hearth_store_with_pg(scope->store, scope->cancel, read_flushes, &question, err);
    hearth_arena_release(&arena);
    return status;
}

/* ---- addresses ---- */

static enum hearth_status read_addresses(void *context, struct hearth_pg *pg,
                                         enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct question *question = context;
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, question->arena);
    hearth_pg_param_text(&params, question->tenant);
    if (question->addresses != NULL) {
        hearth_pg_param_text_array(&params, question->addresses, question->n);
    }
    PGresult *rows = NULL;
    HEARTH_TRY(hearth_pg_exec(
        pg,
        question->addresses != NULL
            ? "SELECT address, name FROM hearth_data.network_address WHERE tenant = $1 AND"
              " address = ANY ($2) ORDER BY address COLLATE \"C\""
            : "SELECT address, name FROM hearth_data.network_address WHERE tenant = $1"
              " ORDER BY address COLLATE \"C\"",
        &params, question->cancel, &rows, ret_fault, err));
    question->n_found = (size_t)PQntuples(rows);
    question->found_names =
        hearth_arena_array(question->arena, question->n_found, sizeof *question->found_names);
    for (size_t i = 0; i < question->n_found && question->found_names != NULL; i++) {
        question->found_names[i] = (struct hearth_address_name){
            hearth_arena_str(question->arena, hearth_pg_str(rows, (int)i, 0)),
            hearth_arena_str(question->arena, hearth_pg_str(rows, (int)i, 1))};
    }
    PQclear(rows);
    return question->arena->refused ? HEARTH_FAIL_ARENA(err, question->arena) : HEARTH_OK;
}

enum hearth_status hearth_store_addresses(const struct hearth_scope *scope,
                                          const struct hearth_str *addresses, size_t n,
                                          struct hearth_address_name **ret, size_t *ret_n,
                                          struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    struct question question = {.tenant = scope->tenant,
                                .addresses = addresses,
                                .n = n,
                                .cancel = scope->cancel,
                                .arena = scope->arena};
    HEARTH_TRY(hearth_store_with_pg(scope->store, scope->cancel, read_addresses, &question, err));
    *ret = question.found_names;
    *ret_n = question.n_found;
    return HEARTH_OK;
}

static enum hearth_status set_in_transaction(struct question *question, struct hearth_pg *pg,
                                             enum hearth_pg_fault *ret_fault,
                                             struct hearth_err *err)
{
    struct hearth_str *texts = hearth_arena_array(question->arena, 2 * question->n, sizeof *texts);
    if (texts == NULL) {
        return HEARTH_FAIL_ARENA(err, question->arena);
    }
    for (size_t i = 0; i < question->n; i++) {
        texts[i] = question->names[i].address;
        texts[question->n + i] = question->names[i].name;
    }
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, question->arena);
    hearth_pg_param_text(&params, question->tenant);
    hearth_pg_param_text_array(&params, texts, question->n);
    hearth_pg_param_text_array(&params, texts + question->n, question->n);
    HEARTH_TRY(hearth_tenant_begin(pg, question->tenant, question->cancel, ret_fault, err));
    HEARTH_TRY(hearth_pg_exec(
        pg,
        "WITH x AS MATERIALIZED (SELECT DISTINCT ON (a) a, n FROM unnest($2::text[], $3::text[])"
        " WITH ORDINALITY u (a, n, o) ORDER BY a, o DESC), d AS (DELETE FROM"
        " hearth_data.network_address k USING x WHERE k.tenant = $1 AND k.address = x.a AND"
        " x.n = '') INSERT INTO hearth_data.network_address (tenant, address, name) SELECT $1, a, n"
        " FROM x WHERE n <> '' ON CONFLICT (tenant, address) DO UPDATE SET name = excluded.name",
        &params, question->cancel, NULL, ret_fault, err));
    hearth_pg_params_init(&params, question->arena);
    hearth_pg_param_text(&params, question->tenant);
    PGresult *rows = NULL;
    HEARTH_TRY(hearth_pg_exec(pg,
                              "SELECT count(*) FROM hearth_data.network_address WHERE tenant = $1",
                              &params, question->cancel, &rows, ret_fault, err));
    int64_t n = hearth_pg_i64(rows, 0, 0);
    PQclear(rows);
    if (question->max > 0 && n > question->max) {
        return HEARTH_FAIL(err, HEARTH_RESOURCE_EXHAUSTED,
                           "the tenant would have names of %lld addresses, more than the %lld that"
                           " max-addresses allows",
                           (long long)n, (long long)question->max);
    }
    return hearth_pg_script(pg, "COMMIT", ret_fault, err);
}

static enum hearth_status set_addresses(void *context, struct hearth_pg *pg,
                                        enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    enum hearth_status status = set_in_transaction(context, pg, ret_fault, err);
    hearth_pg_rollback(pg);
    return status;
}

enum hearth_status hearth_store_addresses_set(const struct hearth_scope *scope,
                                              const struct hearth_address_name *names, size_t n,
                                              int64_t max_addresses, struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct question question = {.tenant = scope->tenant,
                                .names = names,
                                .n = n,
                                .max = max_addresses,
                                .cancel = scope->cancel,
                                .arena = &arena};
    enum hearth_status status =
        hearth_store_with_pg(scope->store, scope->cancel, set_addresses, &question, err);
    hearth_arena_release(&arena);
    return status;
}
