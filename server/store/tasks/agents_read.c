/*
 * agents_read.c -- reads the reported services, instances and processes (contract:
 * hearth/store/store_agents.h).
 */
#include "hearth/store/store_agents.h"

#include "catalog/services.h"
#include "session/statements.h"

#include <assert.h>

/* Two columns: names and values of the properties of table `t`, sorted by name. */
#define PROPERTIES(t)                                                                      \
    "ARRAY(SELECT key FROM jsonb_each_text(" t ".properties) ORDER BY key COLLATE \"C\")," \
    " ARRAY(SELECT value FROM jsonb_each_text(" t ".properties) ORDER BY key COLLATE \"C\")"
#define PROCESS_PROPERTIES  PROPERTIES("p")
#define INSTANCE_PROPERTIES PROPERTIES("i")

/*
 * $1 tenant, $2 name of the service or '', $3 fingerprint of $2. Served by the key (tenant_id,
 * fingerprint).
 */
#define OF_TENANT  "s.tenant_id = (SELECT tenant_id FROM hearth_data.tenant WHERE name = $1)"
#define OF_SERVICE "($2 = '' OR s.fingerprint = $3)"

static void make_service_params(const struct hearth_scope *scope, struct hearth_str service,
                                struct hearth_pg_params *params)
{
    assert(scope->arena != NULL);

    hearth_pg_params_init(params, scope->arena);
    hearth_pg_param_text(params, scope->tenant);
    hearth_pg_param_text(params, service);
    hearth_pg_param_uuid(params, hearth_service_fingerprint(service));
}

/* ---- processes ---- */

/*
 * Processes that pass the filter: $4 instance, $5 process id, $6 agent, $7 labels, $8 and $9 bounds
 * of the times seen, $10 1: without virtual processes (3), $11 1: only processes that can be
 * profiled. Joined from the services of the tenant by the index on service_id.
 */
static const char SQL_PROCESSES[] =
    "SELECT p.process_id, s.name, i.name, p.name, i.layer, p.detect_type::int4, p.agent_id,"
    " p.labels, " PROCESS_PROPERTIES ", p.can_be_profiled::int4, p.first_seen, p.last_seen"
    " FROM hearth_data.service s JOIN hearth_data.process p USING (service_id)"
    " JOIN hearth_data.instance i USING (instance_id)"
    " WHERE " OF_TENANT " AND " OF_SERVICE
    " AND ($4 = '' OR i.name = $4) AND ($5 = '' OR p.process_id = $5)"
    " AND ($6 = '' OR p.agent_id = $6) AND p.labels @> $7"
    " AND p.last_seen >= $8 AND ($9 = 0 OR p.first_seen <= $9)"
    " AND ($10 = 0 OR p.detect_type <> 3) AND ($11 = 0 OR p.can_be_profiled)"
    " ORDER BY s.name COLLATE \"C\", i.name COLLATE \"C\", p.name COLLATE \"C\"";

#define PROCESS(kind, member) HEARTH_COLUMN(kind, struct hearth_process, member)
#define PROCESS_LIST(kind, member) \
    HEARTH_COLUMN_LIST(kind, struct hearth_process, member, n_##member)
static const struct hearth_column process_columns[] = {
    PROCESS(TEXT, process_id),
    PROCESS(TEXT, service),
    PROCESS(TEXT, instance),
    PROCESS(TEXT, name),
    PROCESS(TEXT, layer),
    PROCESS(I32, detect_type),
    PROCESS(TEXT, agent_id),
    PROCESS_LIST(TEXTS, labels),
    PROCESS_LIST(PAIRS, properties),
    PROCESS(BOOL, can_be_profiled),
    PROCESS(I64, first_seen_ms),
    PROCESS(I64, last_seen_ms),
};
static const struct hearth_row_type process_rows =
    HEARTH_ROW_TYPE(process_columns, struct hearth_process);

enum hearth_status hearth_store_processes(const struct hearth_scope *scope,
                                          const struct hearth_process_filter *filter,
                                          struct hearth_process **ret, size_t *ret_n,
                                          struct hearth_err *err)
{
    assert(filter->labels != NULL || filter->n_labels == 0);

    struct hearth_pg_params params;
    make_service_params(scope, filter->service, &params);
    hearth_pg_param_text(&params, filter->instance);
    hearth_pg_param_text(&params, filter->process_id);
    hearth_pg_param_text(&params, filter->agent_id);
    hearth_pg_param_text_array(&params, filter->labels, filter->n_labels);
    hearth_pg_param_i64(&params, filter->seen_after_ms);
    hearth_pg_param_i64(&params, filter->seen_before_ms);
    hearth_pg_param_i32(&params, filter->without_virtual);
    hearth_pg_param_i32(&params, filter->only_profilable);

    return hearth_store_select(scope, SQL_PROCESSES, &params, &process_rows, ret, ret_n, err);
}

/* ---- instances ---- */

/* Instances of the services; $4 is the lower bound of the time last seen. By service_id. */
static const char SQL_INSTANCES[] =
    "SELECT s.name, i.name, i.layer, " INSTANCE_PROPERTIES ", i.first_seen, i.last_seen"
    " FROM hearth_data.service s JOIN hearth_data.instance i USING (service_id)"
    " WHERE " OF_TENANT " AND " OF_SERVICE " AND i.last_seen >= $4"
    " ORDER BY s.name COLLATE \"C\", i.name COLLATE \"C\"";

#define INSTANCE(kind, member) HEARTH_COLUMN(kind, struct hearth_instance, member)
static const struct hearth_column instance_columns[] = {
    INSTANCE(TEXT, service),
    INSTANCE(TEXT, name),
    INSTANCE(TEXT, layer),
    HEARTH_COLUMN_LIST(PAIRS, struct hearth_instance, properties, n_properties),
    INSTANCE(I64, first_seen_ms),
    INSTANCE(I64, last_seen_ms),
};
static const struct hearth_row_type instance_rows =
    HEARTH_ROW_TYPE(instance_columns, struct hearth_instance);

enum hearth_status hearth_store_instances(const struct hearth_scope *scope,
                                          struct hearth_str service, int64_t seen_after_ms,
                                          struct hearth_instance **ret, size_t *ret_n,
                                          struct hearth_err *err)
{
    struct hearth_pg_params params;
    make_service_params(scope, service, &params);
    hearth_pg_param_i64(&params, seen_after_ms);

    return hearth_store_select(scope, SQL_INSTANCES, &params, &instance_rows, ret, ret_n, err);
}

/* ---- services ---- */

/*
 * Services with an instance seen since $4, with the labels and the number of their processes that
 * are not virtual (3). The layer is that of the instance seen last. By the indexes on service_id.
 */
static const char SQL_SERVICES[] =
    "SELECT s.service_id, s.name, i.layer,"
    " ARRAY(SELECT DISTINCT l COLLATE \"C\" FROM hearth_data.process p, unnest(p.labels) l"
    "  WHERE p.service_id = s.service_id AND p.detect_type <> 3 AND p.last_seen >= $4 ORDER BY 1),"
    " i.n::int4,"
    " (SELECT count(*) FROM hearth_data.process p"
    "  WHERE p.service_id = s.service_id AND p.detect_type <> 3 AND p.last_seen >= $4)::int4,"
    " i.first_seen, i.last_seen"
    " FROM hearth_data.service s CROSS JOIN LATERAL"
    " (SELECT count(*) n, min(first_seen) first_seen, max(last_seen) last_seen,"
    "  (array_agg(layer ORDER BY last_seen DESC, name))[1] layer"
    "  FROM hearth_data.instance i WHERE i.service_id = s.service_id AND i.last_seen >= $4) i"
    " WHERE " OF_TENANT " AND " OF_SERVICE " AND i.n > 0 ORDER BY s.name COLLATE \"C\"";

#define SERVICE(kind, member) HEARTH_COLUMN(kind, struct hearth_reported_service, member)
static const struct hearth_column service_columns[] = {
    SERVICE(I32, service_id),
    SERVICE(TEXT, name),
    SERVICE(TEXT, layer),
    HEARTH_COLUMN_LIST(TEXTS, struct hearth_reported_service, labels, n_labels),
    SERVICE(I32, n_instances),
    SERVICE(I32, n_processes),
    SERVICE(I64, first_seen_ms),
    SERVICE(I64, last_seen_ms),
};
static const struct hearth_row_type service_rows =
    HEARTH_ROW_TYPE(service_columns, struct hearth_reported_service);

enum hearth_status hearth_store_reported_services(const struct hearth_scope *scope,
                                                  struct hearth_str service, int64_t seen_after_ms,
                                                  struct hearth_reported_service **ret,
                                                  size_t *ret_n, struct hearth_err *err)
{
    struct hearth_pg_params params;
    make_service_params(scope, service, &params);
    hearth_pg_param_i64(&params, seen_after_ms);

    return hearth_store_select(scope, SQL_SERVICES, &params, &service_rows, ret, ret_n, err);
}
