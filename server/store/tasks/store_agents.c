/*
 * store_agents.c -- stores reports of services, instances and processes (contract:
 * hearth/store/store_agents.h; reading: agents_read.c).
 *
 * A report is sent to the database as two JSON arrays, one element for each instance and process.
 * The first statement finds entities that merging would not change, raises their last_seen if it is
 * older than stale_ms, and returns their number: an unchanged report needs no other statement. It
 * never waits: it skips a row that another transaction is changing. A changed report is merged in a
 * transaction under the tenant's lock. The lock makes the limits exact, and writers cannot
 * deadlock; instances are locked before processes, as expiry does.
 */
#include "hearth/store/store_agents.h"

#include "hearth/base/mem.h"
#include "hearth/codec/json_writer.h"
#include "hearth/model/entity_id.h"

#include "catalog/services.h"
#include "pg/pg.h"
#include "pg/store_state.h"
#include "session/session.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

/* The shortest time between two rises of last_seen, unless retain-agents is short. */
#define STALE_MS 10000

#define STRING_OF(x) #x
#define STRING(x)    STRING_OF(x)

static int64_t choose_stale_ms(const struct hearth_store *store)
{
    int64_t quarter_ms = hearth_store_live(store)->retain_agents_ns / HEARTH_NS_PER_MS / 4;
    return quarter_ms > 0 && quarter_ms < STALE_MS ? quarter_ms : STALE_MS;
}

/* ---- the report, each entity once ---- */

/* An instance of the report. */
struct reported_instance {
    struct hearth_str service, name, layer;
    const struct hearth_instance *reported; /* NULL: only named by a process */
    size_t order;                           /* in the report */
};

/* A process of the report. */
struct reported_process {
    const struct hearth_process *reported;
    struct hearth_entity_hash id;
    size_t order; /* in the report */
};

/* A report, each entity once, and its parameters. */
struct agent_report {
    struct hearth_store *store;
    struct hearth_str tenant;
    int64_t max_instances, max_processes; /* of the tenant; 0: no limit */
    int64_t now_ms;                       /* the latest last_seen_ms */
    int64_t stale_ms;                     /* an older last_seen is raised */
    struct hearth_cancel *cancel;
    struct hearth_arena arena;
    struct reported_instance *instances; /* sorted by service and name */
    struct reported_process *processes;  /* sorted by id */
    struct hearth_str *services;         /* sorted by name */
    size_t n_instances, n_processes, n_services;
    struct hearth_buf instances_json, processes_json;
};

/* By service and name; of equal ones the entity to be kept is the first. */
static int compare_instances(const void *left, const void *right)
{
    const struct reported_instance *a = left, *b = right;
    int order = hearth_str_cmp(a->service, b->service);
    order = order != 0 ? order : hearth_str_cmp(a->name, b->name);
    if (order != 0) {
        return order;
    }

    if ((a->reported == NULL) != (b->reported == NULL)) {
        return a->reported == NULL ? 1 : -1; /* its own report before those of its processes */
    }

    return (a->order < b->order) - (a->order > b->order); /* the last one first */
}

/* By id; of equal ones the last reported is the first. */
static int compare_processes(const void *left, const void *right)
{
    const struct reported_process *a = left, *b = right;
    int order = memcmp(a->id.text, b->id.text, sizeof a->id.text);

    return order != 0 ? order : (a->order < b->order) - (a->order > b->order);
}

/* Sorts both arrays, keeps the first of equal entities, and lists the services. */
static void deduplicate_report(struct agent_report *report)
{
    /* Sort. */
    qsort(report->instances, report->n_instances, sizeof *report->instances, compare_instances);
    qsort(report->processes, report->n_processes, sizeof *report->processes, compare_processes);

    /* Keep instances, and list their services. */
    size_t n = 0;
    for (size_t i = 0; i < report->n_instances; i++) {
        struct reported_instance *at = &report->instances[i];
        if (n > 0 && hearth_str_eq(at->service, report->instances[n - 1].service) &&
            hearth_str_eq(at->name, report->instances[n - 1].name)) {
            continue;
        }

        if (n == 0 || !hearth_str_eq(at->service, report->instances[n - 1].service)) {
            report->services[report->n_services++] = at->service;
        }

        report->instances[n++] = *at;
    }

    report->n_instances = n;

    /* Keep processes. */
    n = 0;
    for (size_t i = 0; i < report->n_processes; i++) {
        if (n == 0 || memcmp(report->processes[i].id.text, report->processes[n - 1].id.text,
                             HEARTH_ENTITY_HASH_TEXT) != 0) {
            report->processes[n++] = report->processes[i];
        }
    }

    report->n_processes = n;
    assert(report->n_services <= report->n_instances);
}

/* `what`: the noun of the error, with its article. */
static enum hearth_status check_agent_name(struct hearth_str name, const char *what,
                                           struct hearth_err *err)
{
    if (hearth_str_trim(name).n > 0 && name.n <= HEARTH_AGENT_NAME_BYTES &&
        hearth_str_utf8_valid(name)) {
        return HEARTH_OK;
    }

    return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                       "the name of %s is 1 to %d bytes of UTF-8 and not blank: \"" HEARTH_STR_FMT
                       "\" is not",
                       what, HEARTH_AGENT_NAME_BYTES, HEARTH_STR_ARG(name));
}

static enum hearth_status check_properties(const struct hearth_property *properties, size_t n,
                                           struct hearth_err *err)
{
    for (size_t i = 0; i < n; i++) {
        if (!hearth_str_utf8_valid(properties[i].name) ||
            !hearth_str_utf8_valid(properties[i].value)) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                               "property \"" HEARTH_STR_FMT "\" is not UTF-8 without NUL",
                               HEARTH_STR_ARG(properties[i].name));
        }
    }

    return HEARTH_OK;
}

/* Checks a process, and appends it and its instance. */
static enum hearth_status add_process(struct agent_report *report,
                                      const struct hearth_process *process, struct hearth_err *err)
{
    assert(process->labels != NULL || process->n_labels == 0);

    /* Check its texts. */
    HEARTH_TRY(check_agent_name(process->service, "a service", err));
    HEARTH_TRY(check_agent_name(process->instance, "an instance", err));
    HEARTH_TRY(check_agent_name(process->name, "a process", err));
    HEARTH_TRY(check_properties(process->properties, process->n_properties, err));
    for (size_t i = 0; i < process->n_labels; i++) {
        HEARTH_TRY(check_agent_name(process->labels[i], "a label", err));
    }

    if (!hearth_str_utf8_valid(process->layer) || !hearth_str_utf8_valid(process->agent_id)) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "a layer or agent id is not UTF-8");
    }

    /* Append its instance, then the process. */
    report->instances[report->n_instances] = (struct reported_instance){
        .service = process->service,
        .name = process->instance,
        .layer = process->layer,
        .order = report->n_instances,
    };
    report->n_instances++;

    struct reported_process *to = &report->processes[report->n_processes];
    *to = (struct reported_process){.reported = process, .order = report->n_processes};
    report->n_processes++;
    if (!hearth_process_public_id(process->service, process->instance, process->name, &to->id)) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the id of a process");
    }

    return HEARTH_OK;
}

/* Checks an instance, and appends it. */
static enum hearth_status add_instance(struct agent_report *report,
                                       const struct hearth_instance *instance,
                                       struct hearth_err *err)
{
    HEARTH_TRY(check_agent_name(instance->service, "a service", err));
    HEARTH_TRY(check_agent_name(instance->name, "an instance", err));
    HEARTH_TRY(check_properties(instance->properties, instance->n_properties, err));
    if (!hearth_str_utf8_valid(instance->layer)) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "a layer is not UTF-8");
    }

    report->instances[report->n_instances] = (struct reported_instance){
        .service = instance->service,
        .name = instance->name,
        .layer = instance->layer,
        .reported = instance,
        .order = report->n_instances,
    };
    report->n_instances++;

    return HEARTH_OK;
}

static int64_t later_ms(int64_t a_ms, int64_t b_ms)
{
    return a_ms > b_ms ? a_ms : b_ms;
}

/* Checks the entities, and gathers each once. */
static enum hearth_status gather_report(struct agent_report *report,
                                        const struct hearth_agent_report *from,
                                        struct hearth_err *err)
{
    size_t n = from->n_instances + from->n_processes;
    report->instances = hearth_arena_array(&report->arena, n, sizeof *report->instances);
    report->processes =
        hearth_arena_array(&report->arena, from->n_processes, sizeof *report->processes);
    report->services = hearth_arena_array(&report->arena, n, sizeof *report->services);
    if (report->arena.refused) {
        return HEARTH_FAIL_ARENA(err, &report->arena);
    }

    /* Append all. */
    for (size_t i = 0; i < from->n_instances; i++) {
        HEARTH_TRY(add_instance(report, &from->instances[i], err));
        report->now_ms = later_ms(report->now_ms, from->instances[i].last_seen_ms);
    }

    for (size_t i = 0; i < from->n_processes; i++) {
        HEARTH_TRY(add_process(report, &from->processes[i], err));
        report->now_ms = later_ms(report->now_ms, from->processes[i].last_seen_ms);
    }

    assert(report->n_instances == n && report->n_processes == from->n_processes);
    deduplicate_report(report);

    return HEARTH_OK;
}

/* ---- as JSON ---- */

static void put_json_text(struct hearth_json *json, const char *key, struct hearth_str text)
{
    hearth_json_key_c(json, key);
    hearth_json_string(json, text);
}

static void put_service(struct hearth_json *json, struct hearth_str service)
{
    struct hearth_hash128 print = hearth_service_fingerprint(service);
    char text[33];
    (void)snprintf(text, sizeof text, "%016" PRIx64 "%016" PRIx64, print.hi, print.lo);
    put_json_text(json, "s", hearth_str_c(text));
}

static void put_properties(struct hearth_json *json, const struct hearth_property *properties,
                           size_t n)
{
    hearth_json_key_c(json, "p");
    hearth_json_object(json);
    for (size_t i = 0; i < n; i++) {
        hearth_json_key(json, properties[i].name);
        hearth_json_string(json, properties[i].value);
    }

    hearth_json_object_end(json);
}

static int compare_label_texts(const void *left, const void *right)
{
    return hearth_str_cmp(*(const struct hearth_str *)left, *(const struct hearth_str *)right);
}

/* Writes the labels, sorted, each once. NO_MEMORY: report->arena has refused it. */
static enum hearth_status put_labels(struct agent_report *report, struct hearth_json *json,
                                     const struct hearth_process *process)
{
    /* Sort a copy. */
    struct hearth_str *labels =
        hearth_arena_array(&report->arena, process->n_labels, sizeof *labels);
    if (labels == NULL) {
        return HEARTH_NO_MEMORY;
    }

    if (process->n_labels > 0) {
        memcpy(labels, process->labels, process->n_labels * sizeof *labels);
        qsort(labels, process->n_labels, sizeof *labels, compare_label_texts);
    }

    /* Write it. */
    hearth_json_key_c(json, "l");
    hearth_json_array(json);
    for (size_t i = 0; i < process->n_labels; i++) {
        if (i == 0 || !hearth_str_eq(labels[i - 1], labels[i])) {
            hearth_json_string(json, labels[i]);
        }
    }

    hearth_json_array_end(json);

    return HEARTH_OK;
}

/* Writes the two arrays. Keys are the column names of REPORTED_INSTANCES and PROCESS_COLUMNS. */
static enum hearth_status write_report_json(struct agent_report *report, struct hearth_err *err)
{
    struct hearth_json json;

    /* Write the instances. */
    hearth_json_init(&json, &report->instances_json);
    hearth_json_array(&json);
    for (size_t i = 0; i < report->n_instances; i++) {
        const struct reported_instance *at = &report->instances[i];
        hearth_json_object(&json);
        put_service(&json, at->service);
        put_json_text(&json, "n", at->name);
        put_json_text(&json, "y", at->layer);
        hearth_json_key_c(&json, "e");
        hearth_json_bool(&json, at->reported != NULL);
        put_properties(&json, at->reported != NULL ? at->reported->properties : NULL,
                       at->reported != NULL ? at->reported->n_properties : 0);
        hearth_json_object_end(&json);
    }

    hearth_json_array_end(&json);

    /* Write the processes. */
    hearth_json_init(&json, &report->processes_json);
    hearth_json_array(&json);
    for (size_t i = 0; i < report->n_processes; i++) {
        const struct hearth_process *reported = report->processes[i].reported;
        hearth_json_object(&json);
        put_service(&json, reported->service);
        put_json_text(&json, "i", reported->instance);
        put_json_text(&json, "n", reported->name);
        put_json_text(&json, "h", hearth_str_c(report->processes[i].id.text));
        hearth_json_key_c(&json, "d");
        hearth_json_i64(&json, (int64_t)reported->detect_type);
        put_json_text(&json, "a", reported->agent_id);
        put_properties(&json, reported->properties, reported->n_properties);
        hearth_json_key_c(&json, "c");
        hearth_json_bool(&json, reported->can_be_profiled);
        if (put_labels(report, &json, reported) != HEARTH_OK) {
            return HEARTH_FAIL_ARENA(err, &report->arena);
        }

        hearth_json_object_end(&json);
    }

    hearth_json_array_end(&json);

    if (hearth_buf_failed(&report->instances_json) || hearth_buf_failed(&report->processes_json)) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for a report of %zu processes",
                           report->n_processes);
    }

    return HEARTH_OK;
}

/* ---- statements: $1 tenant, $2 instances, $3 processes, $4 now ---- */

#define REPORTED_INSTANCES                                                          \
    "t AS (SELECT tenant_id FROM hearth_data.tenant WHERE name = $1),"              \
    " r AS MATERIALIZED (SELECT s.service_id, u.* FROM json_to_recordset($2::json)" \
    " u (s uuid, n text, y text, e bool, p jsonb) JOIN hearth_data.service s ON"    \
    " s.tenant_id = (SELECT tenant_id FROM t) AND s.fingerprint = u.s)"

#define PROCESS_COLUMNS \
    "u (s uuid, i text, n text, h text, d int2, a text, p jsonb, c bool, l text[])"

/*
 * Counts the instances with a known service (r), and the entities that merging would not change (i,
 * k). Raises last_seen of those that are older than $5 (ti, tp). Services are found by the key
 * (tenant_id, fingerprint), entities by their keys.
 */
static const char SQL_TOUCH[] =
    "WITH " REPORTED_INSTANCES ","
    " q AS MATERIALIZED (SELECT s.service_id, u.* FROM json_to_recordset($3::json) " PROCESS_COLUMNS
    " JOIN hearth_data.service s ON s.tenant_id = (SELECT tenant_id FROM t) AND"
    " s.fingerprint = u.s),"
    " i AS MATERIALIZED (SELECT o.instance_id, o.last_seen FROM r JOIN hearth_data.instance o ON"
    " o.service_id = r.service_id AND o.name = r.n WHERE NOT r.e OR ((r.y = '' OR o.layer = r.y)"
    " AND o.properties @> r.p)),"
    " k AS MATERIALIZED (SELECT o.service_id, o.process_id, o.last_seen FROM q JOIN"
    " hearth_data.process o ON o.service_id = q.service_id AND o.process_id = q.h WHERE"
    " (q.a = '' OR q.a = o.agent_id) AND (q.d = 0 OR q.d = o.detect_type) AND"
    " (q.l = '{}' OR q.l = o.labels) AND o.properties @> q.p AND o.can_be_profiled = q.c),"
    " ti AS (UPDATE hearth_data.instance o SET last_seen = greatest(o.last_seen, $4) FROM"
    " (SELECT x.instance_id FROM i JOIN hearth_data.instance x USING (instance_id) WHERE"
    " i.last_seen < $4 - $5 FOR NO KEY UPDATE OF x SKIP LOCKED) l"
    " WHERE o.instance_id = l.instance_id),"
    " tp AS (UPDATE hearth_data.process o SET last_seen = greatest(o.last_seen, $4) FROM"
    " (SELECT x.service_id, x.process_id FROM k JOIN hearth_data.process x USING (service_id,"
    " process_id) WHERE k.last_seen < $4 - $5 FOR NO KEY UPDATE OF x SKIP LOCKED) l"
    " WHERE o.service_id = l.service_id AND o.process_id = l.process_id)"
    " SELECT (SELECT count(*) FROM r), (SELECT count(*) FROM i), (SELECT count(*) FROM k)";

/* Locks the services $2, so that they stay in the catalogue until COMMIT. */
static const char SQL_LOCK_SERVICES[] =
    "SELECT e.service_id FROM hearth_data.service e WHERE e.tenant_id = (SELECT tenant_id FROM"
    " hearth_data.tenant WHERE name = $1) AND e.fingerprint = ANY ($2) ORDER BY e.service_id"
    " FOR KEY SHARE";

/* Whether the tenant may have all new entities, too. $5 is its limit. */
#define MISSING_WITHIN(table)                                                             \
    " room AS MATERIALIZED (SELECT $5 = 0 OR NOT EXISTS (SELECT FROM missing) OR (SELECT" \
    " count(*) FROM missing) + (SELECT count(*) FROM hearth_data." table " x JOIN"        \
    " hearth_data.service y USING (service_id) WHERE y.tenant_id ="                       \
    " (SELECT tenant_id FROM t)) <= $5 AS ok),"
#define INSTANCES_WITHIN MISSING_WITHIN("instance")
#define PROCESSES_WITHIN MISSING_WITHIN("process")

/*
 * Merged properties above the limit are replaced by the reported ones: agents could add more
 * without end.
 */
#define MERGED_PROPERTIES                                                          \
    " properties = CASE WHEN octet_length((o.properties || r.p)::text) > " STRING( \
        HEARTH_AGENT_MERGED_BYTES) " THEN r.p ELSE o.properties || r.p END,"

#define COUNTS " SELECT (SELECT count(*) FROM missing), (SELECT ok FROM room)::int4"

/*
 * Locks the stored instances (old) in the order of their keys, updates them (merged), and creates
 * the missing ones. Returns the number of the missing, and whether they were created. Entities are
 * found by their keys.
 */
static const char SQL_MERGE_INSTANCES[] =
    "WITH " REPORTED_INSTANCES ","
    " old AS MATERIALIZED (SELECT o.instance_id, o.service_id, o.name FROM r JOIN"
    " hearth_data.instance o ON o.service_id = r.service_id AND o.name = r.n"
    " ORDER BY o.service_id, o.name FOR NO KEY UPDATE OF o),"
    " missing AS MATERIALIZED (SELECT * FROM r WHERE NOT EXISTS (SELECT FROM old WHERE"
    " old.service_id = r.service_id AND old.name = r.n))," INSTANCES_WITHIN
    " merged AS (UPDATE hearth_data.instance o SET" MERGED_PROPERTIES
    " layer = CASE WHEN r.e AND r.y <> '' THEN r.y ELSE o.layer END,"
    " last_seen = greatest(o.last_seen, $4) FROM r JOIN old ON old.service_id = r.service_id"
    " AND old.name = r.n WHERE o.instance_id = old.instance_id),"
    " made AS (INSERT INTO hearth_data.instance (service_id, name, layer, properties,"
    " first_seen, last_seen) SELECT service_id, n, y, p, $4, $4 FROM missing"
    " WHERE (SELECT ok FROM room))" COUNTS;

/* The same for processes. Their instances exist, if they are within the limit. */
static const char SQL_MERGE_PROCESSES[] =
    "WITH t AS (SELECT tenant_id FROM hearth_data.tenant WHERE name = $1),"
    " r AS MATERIALIZED (SELECT s.service_id, x.instance_id, u.*"
    " FROM json_to_recordset($3::json) " PROCESS_COLUMNS
    " JOIN hearth_data.service s ON s.tenant_id = (SELECT tenant_id FROM t) AND"
    " s.fingerprint = u.s JOIN hearth_data.instance x ON x.service_id = s.service_id AND"
    " x.name = u.i),"
    " old AS MATERIALIZED (SELECT o.service_id, o.process_id FROM r JOIN hearth_data.process o ON"
    " o.service_id = r.service_id AND o.process_id = r.h ORDER BY o.service_id, o.process_id"
    " FOR NO KEY UPDATE OF o),"
    " missing AS MATERIALIZED (SELECT * FROM r WHERE NOT EXISTS (SELECT FROM old WHERE"
    " old.service_id = r.service_id AND old.process_id = r.h))," PROCESSES_WITHIN
    " merged AS (UPDATE hearth_data.process o SET" MERGED_PROPERTIES
    " agent_id = CASE WHEN r.a <> '' THEN r.a ELSE o.agent_id END,"
    " detect_type = CASE WHEN r.d > 0 THEN r.d ELSE o.detect_type END,"
    " labels = CASE WHEN r.l <> '{}' THEN r.l ELSE o.labels END, can_be_profiled = r.c,"
    " last_seen = greatest(o.last_seen, $4) FROM r JOIN old ON old.service_id = r.service_id"
    " AND old.process_id = r.h WHERE o.service_id = old.service_id AND"
    " o.process_id = old.process_id),"
    " made AS (INSERT INTO hearth_data.process (service_id, process_id, instance_id, name,"
    " detect_type, agent_id, labels, properties, can_be_profiled, first_seen, last_seen)"
    " SELECT service_id, h, instance_id, n, d, a, l, p, c, $4, $4 FROM missing"
    " WHERE (SELECT ok FROM room))" COUNTS;

/* Makes the parameters of a statement; the meaning of the fifth differs. */
static void make_report_params(struct agent_report *report, struct hearth_pg_params *params,
                               int64_t fifth)
{
    assert(report->instances_json.n > 0 && report->processes_json.n > 0);

    hearth_pg_params_init(params, &report->arena);
    hearth_pg_param_text(params, report->tenant);
    hearth_pg_param_text(params, hearth_buf_view(&report->instances_json));
    hearth_pg_param_text(params, hearth_buf_view(&report->processes_json));
    hearth_pg_param_i64(params, report->now_ms);
    hearth_pg_param_i64(params, fifth);
}

/* What SQL_TOUCH found out. */
struct touched {
    bool has_services; /* all services are known */
    bool is_unchanged; /* all entities are known, and merging would not change them */
};

static enum hearth_status touch_unchanged(struct agent_report *report, struct hearth_pg *pg,
                                          struct touched *ret, enum hearth_pg_fault *ret_fault,
                                          struct hearth_err *err)
{
    struct hearth_pg_params params;
    make_report_params(report, &params, report->stale_ms);

    PGresult *rows = NULL;
    HEARTH_TRY(hearth_pg_exec(pg, SQL_TOUCH, &params, report->cancel, &rows, ret_fault, err));
    size_t n_in_services = (size_t)hearth_pg_i64(rows, 0, 0);
    ret->has_services = n_in_services == report->n_instances;
    ret->is_unchanged = (size_t)hearth_pg_i64(rows, 0, 1) == report->n_instances &&
                        (size_t)hearth_pg_i64(rows, 0, 2) == report->n_processes;
    PQclear(rows);

    return HEARTH_OK;
}

/* Locks the services of the report; UNAVAILABLE, and to be repeated, if one is being deleted. */
static enum hearth_status lock_reported_services(struct agent_report *report, struct hearth_pg *pg,
                                                 enum hearth_pg_fault *ret_fault,
                                                 struct hearth_err *err)
{
    assert(report->n_services > 0);

    /* Services are found by their fingerprints. */
    struct hearth_hash128 *prints =
        hearth_arena_array(&report->arena, report->n_services, sizeof *prints);
    if (prints == NULL) {
        return HEARTH_FAIL_ARENA(err, &report->arena);
    }

    for (size_t i = 0; i < report->n_services; i++) {
        prints[i] = hearth_service_fingerprint(report->services[i]);
    }

    struct hearth_pg_params params;
    hearth_pg_params_init(&params, &report->arena);
    hearth_pg_param_text(&params, report->tenant);
    hearth_pg_param_uuid_array(&params, prints, report->n_services);

    /* Lock those that exist. */
    PGresult *rows = NULL;
    HEARTH_TRY(
        hearth_pg_exec(pg, SQL_LOCK_SERVICES, &params, report->cancel, &rows, ret_fault, err));
    bool all = (size_t)PQntuples(rows) == report->n_services;
    PQclear(rows);
    if (!all) {
        *ret_fault = HEARTH_PG_FAULT_RETRY;
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE,
                           "a service of the report is just being deleted; retry");
    }

    return HEARTH_OK;
}

/* A merge of instances or of processes. */
struct entity_merge {
    const char *sql;
    int64_t max;       /* of the tenant; 0: no limit */
    int64_t n_refused; /* result: new entities that were left out */
};

static enum hearth_status merge_entities(struct agent_report *report, struct entity_merge *merge,
                                         struct hearth_pg *pg, enum hearth_pg_fault *ret_fault,
                                         struct hearth_err *err)
{
    struct hearth_pg_params params;
    make_report_params(report, &params, merge->max);

    PGresult *rows = NULL;
    HEARTH_TRY(hearth_pg_exec(pg, merge->sql, &params, report->cancel, &rows, ret_fault, err));
    merge->n_refused = hearth_pg_i32(rows, 0, 1) != 0 ? 0 : hearth_pg_i64(rows, 0, 0);
    PQclear(rows);

    return HEARTH_OK;
}

/* Merges the report in a transaction. Known entities are merged even if new ones are refused. */
static enum hearth_status merge_report(struct agent_report *report, struct hearth_pg *pg,
                                       enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct entity_merge instances = {.sql = SQL_MERGE_INSTANCES, .max = report->max_instances};
    struct entity_merge processes = {.sql = SQL_MERGE_PROCESSES, .max = report->max_processes};

    /* Lock the tenant, then the services; merge instances, then processes. */
    HEARTH_TRY(hearth_tenant_begin(pg, report->tenant, report->cancel, ret_fault, err));
    HEARTH_TRY(lock_reported_services(report, pg, ret_fault, err));
    HEARTH_TRY(merge_entities(report, &instances, pg, ret_fault, err));
    if (report->n_processes > 0) {
        HEARTH_TRY(merge_entities(report, &processes, pg, ret_fault, err));
    }

    HEARTH_TRY(hearth_pg_script(pg, "COMMIT", ret_fault, err));

    /* Report what was refused. */
    if (instances.n_refused > 0) {
        return HEARTH_FAIL(err, HEARTH_RESOURCE_EXHAUSTED,
                           "%" PRId64 " new instances would exceed the %" PRId64
                           " that a tenant may have (max-agent-instances)",
                           instances.n_refused, report->max_instances);
    }

    if (processes.n_refused > 0) {
        return HEARTH_FAIL(err, HEARTH_RESOURCE_EXHAUSTED,
                           "%" PRId64 " new processes would exceed the %" PRId64
                           " that a tenant may have (max-agent-processes)",
                           processes.n_refused, report->max_processes);
    }

    return HEARTH_OK;
}

/* Runs again after a COMMIT without an answer: if that was executed, nothing is left to change. */
static enum hearth_status store_report(void *context, struct hearth_pg *pg,
                                       enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct agent_report *report = context;
    struct touched touched = {0};

    /* An unchanged report is done now. */
    HEARTH_TRY(touch_unchanged(report, pg, &touched, ret_fault, err));
    if (touched.is_unchanged) {
        return HEARTH_OK;
    }

    /* Create missing services, then merge. */
    if (!touched.has_services) {
        HEARTH_TRY(hearth_services_make(report->store, pg, report->tenant, report->services,
                                        report->n_services, report->cancel, ret_fault, err));
    }

    enum hearth_status status = merge_report(report, pg, ret_fault, err);
    hearth_pg_rollback(pg);
    if (*ret_fault == HEARTH_PG_FAULT_UNIQUE) {
        *ret_fault = HEARTH_PG_FAULT_RETRY; /* another transaction created it without the lock */
    }

    return status;
}

enum hearth_status hearth_store_report_agents(const struct hearth_scope *scope,
                                              const struct hearth_agent_report *reported,
                                              struct hearth_err *err)
{
    assert(reported->instances != NULL || reported->n_instances == 0);
    assert(reported->processes != NULL || reported->n_processes == 0);
    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    if (reported->n_instances + reported->n_processes == 0) {
        return HEARTH_OK;
    }

    struct agent_report report = {.store = scope->store,
                                  .tenant = scope->tenant,
                                  .max_instances = reported->max_instances,
                                  .max_processes = reported->max_processes,
                                  .stale_ms = choose_stale_ms(scope->store),
                                  .cancel = scope->cancel};
    hearth_arena_init(&report.arena, 0);
    hearth_buf_init(&report.instances_json, 0);
    hearth_buf_init(&report.processes_json, 0);

    /* Gather the report, write it as JSON, and store it. */
    enum hearth_status status = gather_report(&report, reported, err);
    if (status == HEARTH_OK) {
        status = write_report_json(&report, err);
    }

    if (status == HEARTH_OK) {
        status = hearth_store_with_pg(scope, store_report, &report, err);
    }

    hearth_buf_release(&report.processes_json);
    hearth_buf_release(&report.instances_json);
    hearth_arena_release(&report.arena);

    return status;
}
