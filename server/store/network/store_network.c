/*
 * store_network.c -- writes and reads flushes of connections and names of addresses (contract:
 * hearth/store/store_network.h; sampled requests and captured events: network_captured.c).
 */
#include "hearth/store/store_network.h"

#include "hearth/base/clock.h"
#include "hearth/store/store_agents.h"

#include "catalog/services.h"
#include "network/network_rows.h"
#include "session/partitions.h"
#include "session/statements.h"

#include <assert.h>

#define MS_PER_DAY (HEARTH_NS_PER_DAY / HEARTH_NS_PER_MS)

/* ---- writing ---- */

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
    assert(write != NULL && n_services != NULL);
    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    HEARTH_TRY(hearth_store_with_pg(scope, write, context, err));

    /* The service does not exist yet, or was just removed: create it and write again. */
    for (int i = 0; *n_services == 0 && i < 3; i++) {
        int32_t service_id;
        HEARTH_TRY(hearth_store_service_id(scope, service, true, &service_id, err));
        HEARTH_TRY(hearth_store_with_pg(scope, write, context, err));
    }

    return *n_services > 0 ? HEARTH_OK
                           : HEARTH_FAIL(err, HEARTH_UNAVAILABLE,
                                         "service \"" HEARTH_STR_FMT "\" is being deleted; retry",
                                         HEARTH_STR_ARG(service));
}

/* A row of network_sample, besides service, time and instance. */
struct sample_row {
    int64_t key;
    struct hearth_str source_id, destination_id;
    int32_t side, component;
    struct hearth_str source_addresses, destination_addresses, payload;
};

#define NETWORK_SAMPLE(kind, member) HEARTH_COLUMN(kind, struct sample_row, member)
static const struct hearth_column sample_columns[] = {
    NETWORK_SAMPLE(I64, key),
    NETWORK_SAMPLE(TEXT, source_id),
    NETWORK_SAMPLE(TEXT, destination_id),
    NETWORK_SAMPLE(I32, side),
    NETWORK_SAMPLE(I32, component),
    NETWORK_SAMPLE(TEXT, source_addresses),
    NETWORK_SAMPLE(TEXT, destination_addresses),
    NETWORK_SAMPLE(BYTES, payload),
};
static const struct hearth_row_type sample_rows =
    HEARTH_ROW_TYPE(sample_columns, struct sample_row);

/*
 * Inserts flushes, unless they are stored. $1 tenant, $2 fingerprint of the service, $3 time, $4
 * instance, $5 to $12 the columns of sample_rows. Returns 0 if the service does not exist. FOR KEY
 * SHARE keeps the service while the statement runs. By the key (tenant_id, fingerprint).
 */
static const char SQL_ADD[] =
    "WITH s AS MATERIALIZED (SELECT e.service_id FROM hearth_data.service e"
    "  WHERE e.tenant_id = (SELECT tenant_id FROM hearth_data.tenant WHERE name = $1)"
    "  AND e.fingerprint = $2 FOR KEY SHARE),"
    " i AS (INSERT INTO hearth_data.network_sample (service_id, at, sample_key, instance,"
    "  source_id, destination_id, side, component, source_addresses, destination_addresses,"
    "  payload) SELECT s.service_id, $3, x.k, $4, x.f, x.t, x.s, x.c,"
    "  string_to_array(x.fa, E'\\n'), string_to_array(x.ta, E'\\n'), x.p"
    "  FROM s, unnest($5::int8[], $6::text[], $7::text[], $8::int4[], $9::int4[], $10::text[],"
    "  $11::text[], $12::bytea[]) x (k, f, t, s, c, fa, ta, p) ON CONFLICT DO NOTHING)"
    " SELECT count(*) FROM s";

/* Flushes to be stored. */
struct network_add {
    const struct hearth_scope *scope;
    int32_t day;
    struct hearth_pg_params params;
    int64_t n_services; /* result; 0: the service does not exist */
};

/* The key of a flush: a hash of all its members but the addresses. */
static int64_t make_sample_key(struct hearth_str instance, const struct hearth_network_flush *flush)
{
    const struct hearth_str texts[] = {instance, flush->source_id, flush->destination_id,
                                       flush->payload};
    uint64_t key = (uint64_t)flush->side << 32 | (uint64_t)flush->component;

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(texts); i++) {
        key = hearth_hash64(texts[i].p, texts[i].n, key);
    }

    return (int64_t)key;
}

/* Adds the parameters $5 to $12 of SQL_ADD. If memory is refused, params->failed is set. */
static void add_flush_params(struct hearth_pg_params *params, struct hearth_str instance,
                             const struct hearth_network_flush *flushes, size_t n)
{
    struct sample_row *rows = hearth_arena_array(params->arena, n, sizeof *rows);
    if (rows == NULL) {
        params->failed = true;
        return;
    }

    for (size_t i = 0; i < n; i++) {
        rows[i] = (struct sample_row){
            .key = make_sample_key(instance, &flushes[i]),
            .source_id = flushes[i].source_id,
            .destination_id = flushes[i].destination_id,
            .side = (int32_t)flushes[i].side,
            .component = (int32_t)flushes[i].component,
            .source_addresses = flushes[i].source_addresses,
            .destination_addresses = flushes[i].destination_addresses,
            .payload = flushes[i].payload,
        };
    }

    hearth_pg_param_rows(params, &sample_rows, rows, n);
}

/* Stores flushes. Called again after a passing fault. */
static enum hearth_status add_flushes(void *context, struct hearth_pg *pg,
                                      enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct network_add *add = context;
    struct hearth_store *store = add->scope->store;

    /* Insert the rows. */
    HEARTH_TRY(hearth_partitions_ensure(store, pg, HEARTH_LEAF_NETWORK_SAMPLE, add->day, err));

    PGresult *rows = NULL;
    enum hearth_status status =
        hearth_pg_exec(pg, SQL_ADD, &add->params, add->scope->cancel, &rows, ret_fault, err);
    if (status != HEARTH_OK) {
        if (*ret_fault == HEARTH_PG_FAULT_MISSING_TABLE) {
            /* Retention has just dropped the leaf: the next attempt creates it. */
            hearth_partitions_forget(store, add->day);
            *ret_fault = HEARTH_PG_FAULT_RETRY;
        }

        return status;
    }

    add->n_services = hearth_pg_i64(rows, 0, 0);
    PQclear(rows);

    return HEARTH_OK;
}

enum hearth_status hearth_store_network_add(const struct hearth_scope *scope,
                                            const struct hearth_network_report *report,
                                            struct hearth_err *err)
{
    assert(report->flushes != NULL || report->n == 0);
    int64_t at_ms = report->at_ms;
    if (at_ms < 0 || at_ms / MS_PER_DAY > INT32_MAX) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "%lld is not a time in milliseconds since the epoch", (long long)at_ms);
    }

    HEARTH_CLEANUP(hearth_arena_release) struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct network_add add = {.scope = scope, .day = (int32_t)(at_ms / MS_PER_DAY)};
    hearth_pg_params_init(&add.params, &arena);
    hearth_network_param_service(&add.params, scope->tenant, report->service);
    hearth_pg_param_i64(&add.params, at_ms);
    hearth_pg_param_text(&add.params, report->instance);
    add_flush_params(&add.params, report->instance, report->flushes, report->n);

    return hearth_network_write(scope, report->service, add_flushes, &add, &add.n_services, err);
}

/* ---- reading ---- */

/*
 * $1 tenant, $2 fingerprint of the service, $3 from, $4 to, $5 instance, $6 source and $7
 * destination or ''. Served by the primary key, which begins with service_id and at.
 */
#define OF_SERVICE                                                                           \
    "service_id = (SELECT service_id FROM hearth_data.service e WHERE e.tenant_id = (SELECT" \
    " tenant_id FROM hearth_data.tenant WHERE name = $1) AND e.fingerprint = $2)"
#define OF_INSTANCE OF_SERVICE " AND at >= $3 AND at < $4 AND instance = $5"
#define OF_RELATION \
    OF_INSTANCE " AND ($6 = '' OR source_id = $6) AND ($7 = '' OR destination_id = $7)"

static void make_range_params(const struct hearth_scope *scope,
                              const struct hearth_network_range *range, struct hearth_arena *arena,
                              struct hearth_pg_params *params)
{
    hearth_pg_params_init(params, arena);
    hearth_network_param_service(params, scope->tenant, range->service);
    hearth_pg_param_i64(params, range->from_ms);
    hearth_pg_param_i64(params, range->to_ms);
    hearth_pg_param_text(params, range->instance);
    hearth_pg_param_text(params, range->source_id);
    hearth_pg_param_text(params, range->destination_id);
}

/* Relations of flushes with their addresses; of sampled requests, without addresses. */
static const char SQL_RELATIONS[] =
    "SELECT source_id, destination_id, side::int4, component,"
    " array_to_string(source_addresses, E'\\n'), array_to_string(destination_addresses, E'\\n')"
    " FROM hearth_data.network_sample WHERE " OF_RELATION
    " GROUP BY source_id, destination_id, side, component, source_addresses, destination_addresses"
    " UNION SELECT source_id, destination_id, side::int4, component, '', ''"
    " FROM hearth_data.network_request WHERE " OF_RELATION " ORDER BY 1, 2, 3, 4, 5, 6";

#define FLUSH(kind, member) HEARTH_COLUMN(kind, struct hearth_network_flush, member)
static const struct hearth_column relation_columns[] = {
    FLUSH(TEXT, source_id), FLUSH(TEXT, destination_id),   FLUSH(I32, side),
    FLUSH(I32, component),  FLUSH(TEXT, source_addresses), FLUSH(TEXT, destination_addresses),
};
static const struct hearth_row_type relation_rows =
    HEARTH_ROW_TYPE(relation_columns, struct hearth_network_flush);

enum hearth_status hearth_store_network_relations(const struct hearth_scope *scope,
                                                  const struct hearth_network_range *range,
                                                  struct hearth_network_flush **ret, size_t *ret_n,
                                                  struct hearth_err *err)
{
    assert(scope->arena != NULL);

    struct hearth_pg_params params;
    make_range_params(scope, range, scope->arena, &params);

    return hearth_store_select(scope, SQL_RELATIONS, &params, &relation_rows, ret, ret_n, err);
}

/* A read of flushes, row by row. */
struct flush_read {
    const struct hearth_scope *scope;
    const struct hearth_network_reader *reader;
    struct hearth_pg_params params;
};

/* Passes the flush of a row to the reader. */
static enum hearth_status visit_flush(void *context, const PGresult *row, struct hearth_err *err)
{
    const struct flush_read *read = context;
    int32_t side = hearth_pg_i32(row, 0, 2), component = hearth_pg_i32(row, 0, 3);

    struct hearth_network_flush flush = {
        .source_id = hearth_pg_str(row, 0, 0),
        .destination_id = hearth_pg_str(row, 0, 1),
        .side = (enum hearth_network_side)side,
        .component = (enum hearth_network_component)component,
        .at_ms = hearth_pg_i64(row, 0, 4),
        .payload = hearth_pg_str(row, 0, 5),
    };

    return read->reader->flush(read->reader->context, &flush, err);
}

static enum hearth_status stream_flushes(void *context, struct hearth_pg *pg,
                                         enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct flush_read *read = context;
    HEARTH_TRY(read->reader->begin(read->reader->context, err));

    return hearth_pg_stream(pg,
                            "SELECT source_id, destination_id, side::int4, component, at, payload"
                            " FROM hearth_data.network_sample WHERE " OF_RELATION
                            " ORDER BY source_id, destination_id, side, at, sample_key",
                            &read->params, read->scope->cancel, visit_flush, read, ret_fault, err);
}

enum hearth_status hearth_store_network_flushes(const struct hearth_scope *scope,
                                                const struct hearth_network_range *range,
                                                const struct hearth_network_reader *reader,
                                                struct hearth_err *err)
{
    assert(reader->begin != NULL && reader->flush != NULL);
    HEARTH_TRY(hearth_store_check_open(scope->store, err));

    HEARTH_CLEANUP(hearth_arena_release) struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct flush_read read = {.scope = scope, .reader = reader};
    make_range_params(scope, range, &arena, &read.params);

    return hearth_store_with_pg(scope, stream_flushes, &read, err);
}

/* ---- addresses ---- */

#define ADDRESS(kind, member) HEARTH_COLUMN(kind, struct hearth_address_name, member)
static const struct hearth_column address_columns[] = {ADDRESS(TEXT, address), ADDRESS(TEXT, name)};
static const struct hearth_row_type address_rows =
    HEARTH_ROW_TYPE(address_columns, struct hearth_address_name);

enum hearth_status hearth_store_addresses(const struct hearth_scope *scope,
                                          const struct hearth_str *addresses, size_t n,
                                          struct hearth_address_name **ret, size_t *ret_n,
                                          struct hearth_err *err)
{
    assert(scope->arena != NULL);

    /* addresses NULL: all. */
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, scope->arena);
    hearth_pg_param_text(&params, scope->tenant);
    if (addresses != NULL) {
        hearth_pg_param_text_array(&params, addresses, n);
    }

    return hearth_store_select(
        scope,
        addresses != NULL
            ? "SELECT address, name FROM hearth_data.network_address WHERE tenant = $1"
              " AND address = ANY ($2) ORDER BY address COLLATE \"C\""
            : "SELECT address, name FROM hearth_data.network_address WHERE tenant = $1"
              " ORDER BY address COLLATE \"C\"",
        &params, &address_rows, ret, ret_n, err);
}

/* Names to be set. */
struct address_set {
    const struct hearth_address_name *names;
    size_t n;
    int64_t max_addresses;
};

/* Counts the addresses of the tenant that have a name. */
static enum hearth_status count_addresses(struct hearth_transaction *transaction, int64_t *ret_n,
                                          struct hearth_err *err)
{
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, transaction->arena);
    hearth_pg_param_text(&params, transaction->scope->tenant);

    bool found;

    return hearth_transaction_select_one(
        transaction, transaction->arena,
        "SELECT count(*) FROM hearth_data.network_address WHERE tenant = $1", &params,
        &hearth_i64_rows, ret_n, &found, err);
}

/*
 * Sets and deletes names. $1 tenant, $2 addresses, $3 names. If an address is repeated, its last
 * name counts; an empty name deletes the address. After a COMMIT without an answer the same names
 * are set again.
 */
static enum hearth_status set_addresses(void *context, struct hearth_transaction *transaction,
                                        struct hearth_err *err)
{
    const struct address_set *set = context;
    HEARTH_TRY(hearth_transaction_lock_tenant(transaction, err));

    /* Set the names. */
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, transaction->arena);
    hearth_pg_param_text(&params, transaction->scope->tenant);
    hearth_pg_param_rows(&params, &address_rows, set->names, set->n);
    HEARTH_TRY(hearth_transaction_run(
        transaction,
        "WITH x AS MATERIALIZED (SELECT DISTINCT ON (a) a, n FROM unnest($2::text[], $3::text[])"
        "  WITH ORDINALITY u (a, n, o) ORDER BY a, o DESC),"
        " d AS (DELETE FROM hearth_data.network_address k USING x"
        "  WHERE k.tenant = $1 AND k.address = x.a AND x.n = '')"
        " INSERT INTO hearth_data.network_address (tenant, address, name)"
        " SELECT $1, a, n FROM x WHERE n <> ''"
        " ON CONFLICT (tenant, address) DO UPDATE SET name = excluded.name",
        &params, NULL, err));

    /* Check the limit. */
    int64_t n = 0;
    HEARTH_TRY(count_addresses(transaction, &n, err));
    if (set->max_addresses > 0 && n > set->max_addresses) {
        return HEARTH_FAIL(err, HEARTH_RESOURCE_EXHAUSTED,
                           "the tenant would have names of %lld addresses, more than the %lld that"
                           " max-addresses allows",
                           (long long)n, (long long)set->max_addresses);
    }

    return HEARTH_OK;
}

enum hearth_status hearth_store_addresses_set(const struct hearth_scope *scope,
                                              const struct hearth_address_name *names, size_t n,
                                              int64_t max_addresses, struct hearth_err *err)
{
    assert(names != NULL || n == 0);

    struct address_set set = {names, n, max_addresses};

    return hearth_store_in_transaction(scope, set_addresses, &set, err);
}
