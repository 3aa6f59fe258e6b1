/* agents_read.c -- services, instances and processes as they were reported (contract: hearth/store/store_agents.h). */
#include "hearth/store/store_agents.h"

#include "catalog/services.h"
#include "pg/pg.h"
#include "pg/session.h"

/* Names and values of an object, both by name. */
#define PROPERTIES(of)                                                                      \
    "ARRAY(SELECT key FROM jsonb_each_text(" of ".properties) ORDER BY key COLLATE \"C\")," \
    " ARRAY(SELECT value FROM jsonb_each_text(" of ".properties) ORDER BY key COLLATE \"C\")"

#define OF_TENANT "s.tenant_id = (SELECT tenant_id FROM hearth_data.tenant WHERE name = $1)"
/* $2 name, $3 its fingerprint. */
#define OF_SERVICE "($2 = '' OR s.fingerprint = $3)"

static const char SQL_PROCESSES[] =
    "SELECT p.process_id, s.name, i.name, p.name, i.layer, p.detect_type::int4, p.agent_id,"
    " p.labels, " PROPERTIES(
        "p") ", p.can_be_profiled::int4, p.first_seen, p.last_seen"
             " FROM hearth_data.service s JOIN hearth_data.process p USING (service_id)"
             " JOIN hearth_data.instance i USING (instance_id) WHERE " OF_TENANT " AND " OF_SERVICE
             " AND ($4 = '' OR i.name = $4) AND ($5 = '' OR p.process_id = $5)"
             " AND ($6 = '' OR p.agent_id = $6) AND p.labels @> $7"
             " AND p.last_seen >= $8 AND ($9 = 0 OR p.first_seen <= $9)"
             " AND ($10 = 0 OR p.detect_type <> 3) AND ($11 = 0 OR p.can_be_profiled)"
             " ORDER BY s.name COLLATE \"C\", i.name COLLATE \"C\", p.name COLLATE \"C\"";

static const char SQL_INSTANCES[] = "SELECT s.name, i.name, i.layer, " PROPERTIES(
    "i") ", i.first_seen, i.last_seen"
         " FROM hearth_data.service s JOIN hearth_data.instance i USING (service_id) "
         "WHERE " OF_TENANT " AND " OF_SERVICE " AND i.last_seen >= $4"
         " ORDER BY s.name COLLATE \"C\", i.name COLLATE \"C\"";

/* The layer is that of the instance that was seen last. */
static const char SQL_SERVICES[] =
    "SELECT s.service_id, s.name, i.layer, ARRAY(SELECT DISTINCT l COLLATE \"C\" FROM"
    " hearth_data.process p, unnest(p.labels) l WHERE p.service_id = s.service_id AND"
    " p.detect_type <> 3 AND p.last_seen >= $4 ORDER BY 1), i.n::int4, (SELECT count(*) FROM"
    " hearth_data.process p WHERE p.service_id = s.service_id AND p.detect_type <> 3 AND"
    " p.last_seen >= $4)::int4, i.first_seen, i.last_seen FROM hearth_data.service s CROSS JOIN"
    " LATERAL (SELECT count(*) n, min(first_seen) first_seen, max(last_seen) last_seen,"
    " (array_agg(layer ORDER BY last_seen DESC, name))[1] layer FROM hearth_data.instance i WHERE"
    " i.service_id = s.service_id AND i.last_seen >= $4) i WHERE " OF_TENANT " AND " OF_SERVICE
    " AND i.n > 0 ORDER BY s.name COLLATE \"C\"";

struct question {
    struct hearth_str tenant, service;
    const struct hearth_process_filter *filter;
    int64_t seen_after_ms;
    struct hearth_cancel *cancel;
    struct hearth_arena *arena;
    struct hearth_process *processes;
    struct hearth_instance *instances;
    struct hearth_reported_service *services;
    size_t n;
};

static void common_params(const struct question *question, struct hearth_pg_params *params)
{
    hearth_pg_params_init(params, question->arena);
    hearth_pg_param_text(params, question->tenant);
    hearth_pg_param_text(params, question->service);
    hearth_pg_param_uuid(params, hearth_service_fingerprint(question->service));
}

static struct hearth_str text_at(const struct question *question, const PGresult *rows, size_t row,
                                 int column)
{
    return hearth_arena_str(question->arena, hearth_pg_str(rows, (int)row, column));
}

static enum hearth_status take_properties(const struct question *question, const PGresult *rows,
                                          size_t row, int column, struct hearth_property **ret,
                                          size_t *ret_n, struct hearth_err *err)
{
    struct hearth_str *names, *values;
    size_t n_names = 0, n_values = 0;
    HEARTH_TRY(hearth_pg_str_array(rows, (int)row, column, question->arena, &names, &n_names, err));
    HEARTH_TRY(
        hearth_pg_str_array(rows, (int)row, column + 1, question->arena, &values, &n_values, err));
    HEARTH_ASSERT(n_names == n_values);
    struct hearth_property *properties =
        hearth_arena_array(question->arena, n_names, sizeof *properties);
    if (properties == NULL) {
        return HEARTH_FAIL_ARENA(err, question->arena);
    }
    for (size_t i = 0; i < n_names; i++) {
        properties[i] = (struct hearth_property){names[i], values[i]};
    }
    *ret = properties;
    *ret_n = n_names;
    return HEARTH_OK;
}

/* ---- processes ---- */

static enum hearth_status take_processes(struct question *question, const PGresult *rows,
                                         struct hearth_err *err)
{
    question->n = (size_t)PQntuples(rows);
    question->processes =
        hearth_arena_calloc(question->arena, question->n, sizeof *question->processes);
    if (question->processes == NULL) {
        return HEARTH_FAIL_ARENA(err, question->arena);
    }
    for (size_t i = 0; i < question->n; i++) {
        struct hearth_process *to = &question->processes[i];
        to->process_id = text_at(question, rows, i, 0);
        to->service = text_at(question, rows, i, 1);
        to->instance = text_at(question, rows, i, 2);
        to->name = text_at(question, rows, i, 3);
        to->layer = text_at(question, rows, i, 4);
        int32_t detect_type = hearth_pg_i32(rows, (int)i, 5);
        to->detect_type = (enum hearth_detect_type)detect_type;
        to->agent_id = text_at(question, rows, i, 6);
        HEARTH_TRY(
            hearth_pg_str_array(rows, (int)i, 7, question->arena, &to->labels, &to->n_labels, err));
        HEARTH_TRY(take_properties(question, rows, i, 8, &to->properties, &to->n_properties, err));
        to->can_be_profiled = hearth_pg_i32(rows, (int)i, 10) != 0;
        to->first_seen_ms = hearth_pg_i64(rows, (int)i, 11);
        to->last_seen_ms = hearth_pg_i64(rows, (int)i, 12);
    }
    return question->arena->refused ? HEARTH_FAIL_ARENA(err, question->arena) : HEARTH_OK;
}

static enum hearth_status read_processes(void *context, struct hearth_pg *pg,
                                         enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct question *question = context;
    const struct hearth_process_filter *filter = question->filter;
    struct hearth_pg_params params;
    common_params(question, &params);
    hearth_pg_param_text(&params, filter->instance);
    hearth_pg_param_text(&params, filter->process_id);
    hearth_pg_param_text(&params, filter->agent_id);
    hearth_pg_param_text_array(&params, filter->labels, filter->n_labels);
    hearth_pg_param_i64(&params, filter->seen_after_ms);
    hearth_pg_param_i64(&params, filter->seen_before_ms);
    hearth_pg_param_i32(&params, filter->without_virtual);
    hearth_pg_param_i32(&params, filter->only_profilable);
    PGresult *rows = NULL;
    HEARTH_TRY(hearth_pg_exec(pg, SQL_PROCESSES, &params, question->cancel, &rows, ret_fault, err));
    enum hearth_status status = take_processes(question, rows, err);
    PQclear(rows);
    return status;
}

enum hearth_status hearth_store_processes(const struct hearth_scope *scope,
                                          const struct hearth_process_filter *filter,
                                          struct hearth_process **ret, size_t *ret_n,
                                          struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    struct question question = {.tenant = scope->tenant,
                                .service = filter->service,
                                .filter = filter,
                                .cancel = scope->cancel,
                                .arena = scope->arena};
    HEARTH_TRY(hearth_store_with_pg(scope->store, scope->cancel, read_processes, &question, err));
    *ret = question.processes;
    *ret_n = question.n;
    return HEARTH_OK;
}

/* ---- instances ---- */

static enum hearth_status take_instances(struct question *question, const PGresult *rows,
                                         struct hearth_err *err)
{
    question->n = (size_t)PQntuples(rows);
    question->instances =
        hearth_arena_calloc(question->arena, question->n, sizeof *question->instances);
    if (question->instances == NULL) {
        return HEARTH_FAIL_ARENA(err, question->arena);
    }
    for (size_t i = 0; i < question->n; i++) {
        struct hearth_instance *to = &question->instances[i];
        to->service = text_at(question, rows, i, 0);
        to->name = text_at(question, rows, i, 1);
        to->layer = text_at(question, rows, i, 2);
        HEARTH_TRY(take_properties(question, rows, i, 3, &to->properties, &to->n_properties, err));
        to->first_seen_ms = hearth_pg_i64(rows, (int)i, 5);
        to->last_seen_ms = hearth_pg_i64(rows, (int)i, 6);
    }
    return question->arena->refused ? HEARTH_FAIL_ARENA(err, question->arena) : HEARTH_OK;
}

static enum hearth_status read_instances(void *context, struct hearth_pg *pg,
                                         enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct question *question = context;
    struct hearth_pg_params params;
    common_params(question, &params);
    hearth_pg_param_i64(&params, question->seen_after_ms);
    PGresult *rows = NULL;
    HEARTH_TRY(hearth_pg_exec(pg, SQL_INSTANCES, &params, question->cancel, &rows, ret_fault, err));
    enum hearth_status status = take_instances(question, rows, err);
    PQclear(rows);
    return status;
}

enum hearth_status hearth_store_instances(const struct hearth_scope *scope,
                                          struct hearth_str service, int64_t seen_after_ms,
                                          struct hearth_instance **ret, size_t *ret_n,
                                          struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    struct question question = {.tenant = scope->tenant,
                                .service = service,
                                .seen_after_ms = seen_after_ms,
                                .cancel = scope->cancel,
                                .arena = scope->arena};
    HEARTH_TRY(hearth_store_with_pg(scope->store, scope->cancel, read_instances, &question, err));
    *ret = question.instances;
    *ret_n = question.n;
    return HEARTH_OK;
}

/* ---- services ---- */

static enum hearth_status take_services(struct question *question, const PGresult *rows,
                                        struct hearth_err *err)
{
    question->n = (size_t)PQntuples(rows);
    question->services =
        hearth_arena_calloc(question->arena, question->n, sizeof *question->services);
    if (question->services == NULL) {
        return HEARTH_FAIL_ARENA(err, question->arena);
    }
    for (size_t i = 0; i < question->n; i++) {
        struct hearth_reported_service *to = &question->services[i];
        to->service_id = hearth_pg_i32(rows, (int)i, 0);
        to->name = text_at(question, rows, i, 1);
        to->layer = text_at(question, rows, i, 2);
        HEARTH_TRY(
            hearth_pg_str_array(rows, (int)i, 3, question->arena, &to->labels, &to->n_labels, err));
        to->n_instances = hearth_pg_i32(rows, (int)i, 4);
        to->n_processes = hearth_pg_i32(rows, (int)i, 5);
        to->first_seen_ms = hearth_pg_i64(rows, (int)i, 6);
        to->last_seen_ms = hearth_pg_i64(rows, (int)i, 7);
    }
    return question->arena->refused ? HEARTH_FAIL_ARENA(err, question->arena) : HEARTH_OK;
}

static enum hearth_status read_services(void *context, struct hearth_pg *pg,
                                        enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct question *question = context;
    struct hearth_pg_params params;
    common_params(question, &params);
    hearth_pg_param_i64(&params, question->seen_after_ms);
    PGresult *rows = NULL;
    HEARTH_TRY(hearth_pg_exec(pg, SQL_SERVICES, &params, question->cancel, &rows, ret_fault, err));
    enum hearth_status status = take_services(question, rows, err);
    PQclear(rows);
    return status;
}

enum hearth_status hearth_store_reported_services(const struct hearth_scope *scope,
                                                  struct hearth_str service, int64_t seen_after_ms,
                                                  struct hearth_reported_service **ret,
                                                  size_t *ret_n, struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    struct question question = {.tenant = scope->tenant,
                                .service = service,
                                .seen_after_ms = seen_after_ms,
                                .cancel = scope->cancel,
                                .arena = scope->arena};
    HEARTH_TRY(hearth_store_with_pg(scope->store, scope->cancel, read_services, &question, err));
    *ret = question.services;
    *ret_n = question.n;
    return HEARTH_OK;
}
