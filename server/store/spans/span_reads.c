/*
 * span_reads.c -- spans and snapshots out of their tables (contract: hearth/store/store_spans.h).
 */
#include "hearth/store/store_spans.h"

#include "pg/queries.h"
#include "spans/span_group_rows.h"

#include <assert.h>

/* For a LIMIT; 0: no limit. */
static int64_t limit_or_all(size_t limit)
{
    return limit == 0 || limit > INT64_MAX ? INT64_MAX : (int64_t)limit;
}

/* An int8[] parameter: the keys by which ids of traces or segments are found. */
static void add_key_param(struct hearth_pg_params *params, const struct hearth_str *ids, size_t n,
                          bool is_raw)
{
    int64_t *keys = hearth_arena_array(params->arena, n, sizeof *keys);
    if (keys == NULL) {
        params->failed = true;
        return;
    }

    for (size_t i = 0; i < n; i++) {
        keys[i] = hearth_trace_key(ids[i], is_raw);
    }

    hearth_pg_param_i64_array(params, keys, n);
}

/* ---- groups ---- */

int32_t hearth_span_group_flags_of(const struct hearth_span_group *group)
{
    return (group->is_raw ? HEARTH_GROUP_RAW : 0) | (group->has_error ? HEARTH_GROUP_ERRORS : 0) |
           (group->is_cut ? HEARTH_GROUP_CUT : 0);
}

/* A group, and the columns that become members of it. */
struct stored_group {
    struct hearth_span_group group;
    int64_t duration_ns;
    int32_t flags;
};

#define GROUP(kind, member) HEARTH_COLUMN(kind, struct stored_group, member)
static const struct hearth_column group_columns[] = {
    GROUP(I32, group.service_id),   GROUP(TEXT, group.service),
    GROUP(TEXT, group.instance),    GROUP(BYTES, group.trace_id),
    GROUP(BYTES, group.segment_id), GROUP(I64, group.start_ns),
    GROUP(I64, duration_ns),        GROUP(I32, group.n_spans),
    GROUP(I32, group.kind),         GROUP(I32, flags),
    GROUP(TEXT, group.endpoint),    GROUP(BYTES, group.spans),
};
static const struct hearth_row_type group_rows =
    HEARTH_ROW_TYPE(group_columns, struct stored_group);

enum hearth_status hearth_select_span_groups(const struct hearth_scope *scope, const char *sql,
                                             const struct hearth_pg_params *params,
                                             struct hearth_span_group **ret, size_t *ret_n,
                                             struct hearth_err *err)
{
    struct stored_group *stored;
    size_t n;
    assert(sql != NULL && ret != NULL && ret_n != NULL);

    /* Read the rows, then make groups of them. */
    HEARTH_TRY(hearth_store_select(scope, sql, params, &group_rows, &stored, &n, err));

    struct hearth_span_group *groups = hearth_arena_array(scope->arena, n, sizeof *groups);
    if (groups == NULL) {
        return HEARTH_FAIL_ARENA(err, scope->arena);
    }

    for (size_t i = 0; i < n; i++) {
        groups[i] = stored[i].group;
        groups[i].end_ns = groups[i].start_ns + stored[i].duration_ns;
        groups[i].is_raw = (stored[i].flags & HEARTH_GROUP_RAW) != 0;
        groups[i].has_error = (stored[i].flags & HEARTH_GROUP_ERRORS) != 0;
        groups[i].is_cut = (stored[i].flags & HEARTH_GROUP_CUT) != 0;
    }

    *ret = groups;
    *ret_n = n;

    return HEARTH_OK;
}

/* A service of the tenant that may have groups. */
struct span_service {
    int32_t service_id;
    struct hearth_str name;
};

#define SERVICE(kind, member) HEARTH_COLUMN(kind, struct span_service, member)
static const struct hearth_column span_service_columns[] = {SERVICE(I32, service_id),
                                                            SERVICE(TEXT, name)};
static const struct hearth_row_type span_service_rows =
    HEARTH_ROW_TYPE(span_service_columns, struct span_service);

/*
 * $1 and $2 the services and their names. A condition follows, which is served by the index on
 * trace_key or segment_key, or by the primary key (service_id, start_at, segment_key).
 */
#define SELECT_GROUPS                                                                            \
    "SELECT g.service_id, s.name, g.instance, g.trace_id, g.segment_id, g.start_at, g.duration," \
    " g.n_spans, g.kind::int4, g.flags::int4, g.endpoint, g.spans FROM hearth_data.span_group g" \
    " JOIN unnest($1::int4[], $2::text[]) s (service_id, name) USING (service_id) WHERE "
#define LATEST_FIRST " ORDER BY g.start_at DESC, g.segment_key LIMIT "

/*
 * True if one of the ids is `id`, or there are none. Ids with equal keys are nearly always the
 * same; for two texts it can be checked.
 */
static bool contains_id(const struct hearth_str *ids, size_t n, bool is_raw, struct hearth_str id,
                        bool id_is_raw)
{
    int64_t key = hearth_trace_key(id, id_is_raw);

    for (size_t i = 0; i < n; i++) {
        bool same_form = id_is_raw == is_raw && ids[i].n != 32;
        if (same_form ? hearth_str_eq(ids[i], id) : hearth_trace_key(ids[i], is_raw) == key) {
            return true;
        }
    }

    return n == 0;
}

static bool matches_ids(const struct hearth_span_query *query,
                        const struct hearth_span_group *group)
{
    if (query->n_trace_ids > 0) {
        return contains_id(query->trace_ids, query->n_trace_ids, query->is_raw, group->trace_id,
                           group->is_raw);
    }

    return contains_id(query->segment_ids, query->n_segment_ids, query->is_raw, group->segment_id,
                       group->is_raw);
}

/* $3 keys, $4 limit. */
static const char *make_id_statement(const struct hearth_span_query *query,
                                     struct hearth_pg_params *params)
{
    bool by_trace = query->n_trace_ids > 0;

    add_key_param(params, by_trace ? query->trace_ids : query->segment_ids,
                  by_trace ? query->n_trace_ids : query->n_segment_ids, query->is_raw);
    hearth_pg_param_i64(params, limit_or_all(query->limit));

    return by_trace ? SELECT_GROUPS "g.trace_key = ANY ($3)" LATEST_FIRST "$4"
                    : SELECT_GROUPS "g.segment_key = ANY ($3)" LATEST_FIRST "$4";
}

#define PLACE(kind, member) HEARTH_COLUMN(kind, struct hearth_group_place, member)
static const struct hearth_column place_columns[] = {PLACE(I32, service_id), PLACE(I64, start_ns)};
static const struct hearth_row_type place_rows =
    HEARTH_ROW_TYPE(place_columns, struct hearth_group_place);

/* $3 services, $4 starts, $5 limit. */
static const char *make_place_statement(const struct hearth_span_query *query,
                                        struct hearth_pg_params *params)
{
    hearth_pg_param_rows(params, &place_rows, query->places, query->n_places);
    hearth_pg_param_i64(params, limit_or_all(query->limit));

    return SELECT_GROUPS "(g.service_id, g.start_at) IN (SELECT p.service, p.start_at FROM"
                         " unnest($3::int4[], $4::int8[]) p (service, start_at))" LATEST_FIRST "$5";
}

/* $3 from, $4 to, $5 instance, $6 endpoint, $7 limit. */
static const char *make_service_statement(const struct hearth_span_query *query,
                                          struct hearth_pg_params *params)
{
    hearth_pg_param_i64(params, query->from_ns);
    hearth_pg_param_i64(params, query->to_ns);
    hearth_pg_param_text(params, query->instance);
    hearth_pg_param_text(params, query->endpoint);
    hearth_pg_param_i64(params, limit_or_all(query->limit));

    return SELECT_GROUPS "g.start_at >= $3 AND g.start_at <= $4 AND ($5 = '' OR g.instance = $5)"
                         " AND ($6 = '' OR g.endpoint = $6)" LATEST_FIRST "$7";
}

/* Returns the services, of any tenant, that have groups with the ids. */
static enum hearth_status find_services_of_ids(const struct hearth_scope *scope,
                                               const struct hearth_span_query *query, int32_t **ret,
                                               size_t *ret_n, struct hearth_err *err)
{
    bool by_trace = query->n_trace_ids > 0;
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, scope->arena);
    add_key_param(&params, by_trace ? query->trace_ids : query->segment_ids,
                  by_trace ? query->n_trace_ids : query->n_segment_ids, query->is_raw);

    return hearth_store_select(
        scope,
        by_trace ? "SELECT DISTINCT service_id FROM hearth_data.span_group WHERE trace_key ="
                   " ANY ($1)"
                 : "SELECT DISTINCT service_id FROM hearth_data.span_group WHERE segment_key ="
                   " ANY ($1)",
        &params, &hearth_i32_rows, ret, ret_n, err);
}

/*
 * Returns the tenant's services that the query is about. Spans are data and services are catalogue:
 * a look-up by ids asks first which services have them.
 */
static enum hearth_status find_span_services(const struct hearth_scope *scope,
                                             const struct hearth_span_query *query,
                                             struct span_service **ret, size_t *ret_n,
                                             struct hearth_err *err)
{
    bool by_id = query->n_trace_ids > 0 || query->n_segment_ids > 0;
    int32_t *ids = NULL;
    size_t n = query->n_places;
    *ret_n = 0;

    if (by_id) {
        HEARTH_TRY(find_services_of_ids(scope, query, &ids, &n, err));
        if (n == 0) {
            return HEARTH_OK;
        }
    } else {
        ids = hearth_arena_array(scope->arena, n, sizeof *ids);
        if (ids == NULL) {
            return HEARTH_FAIL_ARENA(err, scope->arena);
        }

        for (size_t i = 0; i < n; i++) {
            ids[i] = query->places[i].service_id;
        }
    }

    struct hearth_pg_params params;
    hearth_pg_params_init(&params, scope->arena);
    hearth_pg_param_text(&params, scope->tenant);
    hearth_pg_param_i32_array(&params, ids, n);
    hearth_pg_param_text(&params, query->service);

    return hearth_store_select(
        scope,
        "SELECT s.service_id, s.name FROM hearth_data.service s JOIN hearth_data.tenant n ON"
        " n.tenant_id = s.tenant_id AND n.name = $1 WHERE s.service_id = ANY ($2) OR"
        " (cardinality($2) = 0 AND s.name = $3)",
        &params, &span_service_rows, ret, ret_n, err);
}

enum hearth_status hearth_store_span_groups(const struct hearth_scope *scope,
                                            const struct hearth_span_query *query,
                                            struct hearth_span_group **ret, size_t *ret_n,
                                            struct hearth_err *err)
{
    bool by_id = query->n_trace_ids > 0 || query->n_segment_ids > 0;
    assert(query->places != NULL || query->n_places == 0);

    struct span_service *services = NULL;
    size_t n_services;
    *ret = NULL;
    *ret_n = 0;
    HEARTH_TRY(find_span_services(scope, query, &services, &n_services, err));
    if (n_services == 0) {
        return HEARTH_OK;
    }

    /* Choose the statement. */
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, scope->arena);
    hearth_pg_param_rows(&params, &span_service_rows, services, n_services);
    const char *sql = by_id                 ? make_id_statement(query, &params)
                      : query->n_places > 0 ? make_place_statement(query, &params)
                                            : make_service_statement(query, &params);

    struct hearth_span_group *groups;
    size_t n_found, n = 0;
    HEARTH_TRY(hearth_select_span_groups(scope, sql, &params, &groups, &n_found, err));

    /* Other ids may have the same keys. */
    for (size_t i = 0; i < n_found; i++) {
        if (matches_ids(query, &groups[i])) {
            groups[n++] = groups[i];
        }
    }
    assert(by_id || n == n_found);

    *ret = groups;
    *ret_n = n;

    return HEARTH_OK;
}

enum hearth_status hearth_store_has_span_groups(const struct hearth_scope *scope, bool *ret,
                                                struct hearth_err *err)
{
    size_t n;
    HEARTH_TRY(
        hearth_store_run(scope, "SELECT 1 FROM hearth_data.span_group LIMIT 1", NULL, &n, err));
    *ret = n > 0;

    return HEARTH_OK;
}

/* ---- snapshots ---- */

#define RUN(kind, member) HEARTH_COLUMN(kind, struct hearth_snapshot_run, member)
static const struct hearth_column run_columns[] = {
    RUN(TEXT, task_id),    RUN(TEXT, segment_id), RUN(I32, first_sequence), RUN(I32, last_sequence),
    RUN(I32, n_snapshots), RUN(I64, first_ms),    RUN(I64, last_ms),        RUN(BYTES, snapshots),
};
static const struct hearth_row_type run_rows =
    HEARTH_ROW_TYPE(run_columns, struct hearth_snapshot_run);

enum hearth_status hearth_store_snapshot_runs(const struct hearth_scope *scope,
                                              const struct hearth_str *segment_ids, size_t n_ids,
                                              struct hearth_snapshot_run **ret, size_t *ret_n,
                                              struct hearth_err *err)
{
    assert(segment_ids != NULL || n_ids == 0);

    struct hearth_pg_params params;
    hearth_pg_params_init(&params, scope->arena);
    hearth_pg_param_text(&params, scope->tenant);
    hearth_pg_param_text_array(&params, segment_ids, n_ids);
    add_key_param(&params, segment_ids, n_ids, false);

    return hearth_store_select(
        scope,
        "SELECT r.task_id, r.segment_id, r.first_sequence, r.last_sequence, r.n_snapshots,"
        " r.first_at, r.last_at, r.snapshots"
        " FROM hearth_data.task_snapshot r JOIN hearth_data.service s USING (service_id)"
        " JOIN hearth_data.tenant n ON n.tenant_id = s.tenant_id AND n.name = $1"
        " WHERE r.segment_key = ANY ($3) AND r.segment_id = ANY ($2)"
        " ORDER BY r.segment_id COLLATE \"C\", r.first_sequence, r.received_at, r.content",
        &params, &run_rows, ret, ret_n, err);
}

/* Snapshots of a segment, and how its group is found. */
struct counted_segment {
    struct hearth_segment_snapshots found;
    int32_t service_id;
    int64_t segment_key;
};

#define COUNTED(kind, member) HEARTH_COLUMN(kind, struct counted_segment, member)
static const struct hearth_column counted_segment_columns[] = {
    COUNTED(TEXT, found.task_id),    COUNTED(TEXT, found.segment_id), COUNTED(TEXT, found.instance),
    COUNTED(I64, found.n_snapshots), COUNTED(I64, found.first_ms),    COUNTED(I64, found.last_ms),
    COUNTED(I32, service_id),        COUNTED(I64, segment_key),
};
static const struct hearth_row_type counted_segment_rows =
    HEARTH_ROW_TYPE(counted_segment_columns, struct counted_segment);

/* The same as parameters: service, key, id. */
static const struct hearth_column segment_place_columns[] = {
    COUNTED(I32, service_id), COUNTED(I64, segment_key), COUNTED(TEXT, found.segment_id)};
static const struct hearth_row_type segment_place_rows =
    HEARTH_ROW_TYPE(segment_place_columns, struct counted_segment);

/* The instance of a segment that is stored. */
struct segment_instance {
    int64_t at; /* of the segment among the parameters, from 1 on */
    struct hearth_str instance;
};

#define INSTANCE(kind, member) HEARTH_COLUMN(kind, struct segment_instance, member)
static const struct hearth_column segment_instance_columns[] = {INSTANCE(I64, at),
                                                                INSTANCE(TEXT, instance)};
static const struct hearth_row_type segment_instance_rows =
    HEARTH_ROW_TYPE(segment_instance_columns, struct segment_instance);

/* Sets the instances of the segments that are in span_group, by its index span_group_segment. */
static enum hearth_status set_instances(const struct hearth_scope *scope,
                                        struct counted_segment *segments, size_t n,
                                        struct hearth_err *err)
{
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, scope->arena);
    hearth_pg_param_rows(&params, &segment_place_rows, segments, n);

    struct segment_instance *instances = NULL;
    size_t n_instances = 0;
    HEARTH_TRY(hearth_store_select(
        scope,
        "SELECT u.at, g.instance FROM unnest($1::int4[], $2::int8[], $3::text[]) WITH ORDINALITY"
        " u (service_id, segment_key, segment_id, at) JOIN hearth_data.span_group g ON "
        "g.segment_key ="
        " u.segment_key AND g.service_id = u.service_id AND g.segment_id ="
        " convert_to(u.segment_id, 'UTF8')",
        &params, &segment_instance_rows, &instances, &n_instances, err));

    for (size_t i = 0; i < n_instances; i++) {
        assert(instances[i].at >= 1 && (size_t)instances[i].at <= n);
        segments[instances[i].at - 1].found.instance = instances[i].instance;
    }

    return HEARTH_OK;
}

enum hearth_status hearth_store_segment_snapshots(const struct hearth_scope *scope,
                                                  const struct hearth_str *task_ids, size_t n_ids,
                                                  struct hearth_segment_snapshots **ret,
                                                  size_t *ret_n, struct hearth_err *err)
{
    assert(task_ids != NULL || n_ids == 0);

    struct hearth_pg_params params;
    hearth_pg_params_init(&params, scope->arena);
    hearth_pg_param_text(&params, scope->tenant);
    hearth_pg_param_text_array(&params, task_ids, n_ids);

    struct counted_segment *segments = NULL;
    size_t n = 0;
    HEARTH_TRY(hearth_store_select(scope, hearth_sql_count_segment_snapshots, &params,
                                   &counted_segment_rows, &segments, &n, err));
    if (n > 0) {
        HEARTH_TRY(set_instances(scope, segments, n, err));
    }

    *ret = hearth_arena_array(scope->arena, n, sizeof **ret);
    if (*ret == NULL) {
        return HEARTH_FAIL_ARENA(err, scope->arena);
    }

    for (size_t i = 0; i < n; i++) {
        (*ret)[i] = segments[i].found;
    }
    *ret_n = n;

    return HEARTH_OK;
}
