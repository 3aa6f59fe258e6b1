/* trace_parts_store.c -- an attempt to store parts on their node (contract: trace_parts.h). */
#include "hearth/base/clock.h"
#include "hearth/store/lost_nodes.h"

#include "nodes/nodes.h"
#include "pg/lineage.h"
#include "pg/pg_rows.h"
#include "pg/store_state.h"
#include "session/partitions.h"
#include "session/session.h"
#include "spans/trace_parts.h"

#define CONNECT_TIMEOUT_MS  5000
#define MAX_PARTITION_TRIES 3

/* What one transaction stores. */
struct taken {
    struct hearth_trace_target *to;
    const struct hearth_trace_part *parts;
    struct hearth_arena arena;
    struct hearth_trace_row *rows;
    size_t n;
};

static enum hearth_status gather_rows(struct taken *taken, struct hearth_err *err)
{
    size_t n = 0;
    for (const struct hearth_trace_part *part = taken->parts; part != NULL; part = part->next) {
        n += part->n;
    }

    taken->rows = hearth_arena_array(&taken->arena, n, sizeof *taken->rows);
    if (taken->rows == NULL) {
        return HEARTH_FAIL_ARENA(err, &taken->arena);
    }

    for (const struct hearth_trace_part *part = taken->parts; part != NULL; part = part->next) {
        memcpy(&taken->rows[taken->n], part->rows, part->n * sizeof part->rows[0]);
        taken->n += part->n;
    }

    return HEARTH_OK;
}

/* Tables are made on the coordinator, on all nodes at once. */
static enum hearth_status make_leaves(void *context, struct hearth_pg *pg,
                                      enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    const struct taken *taken = context;

    (void)ret_fault;
    for (size_t i = 0; i < taken->n; i++) {
        HEARTH_TRY(hearth_partitions_ensure(taken->to->store, pg, HEARTH_LEAF_SPAN_GROUP,
                                            hearth_day_of(taken->rows[i].start_ns), err));
    }

    return HEARTH_OK;
}

static enum hearth_status ensure_leaves(struct taken *taken, struct hearth_err *err)
{
    const struct hearth_trace_target *to = taken->to;
    bool are_known = true;

    for (size_t i = 0; i < taken->n && are_known; i++) {
        are_known = hearth_partitions_are_known(to->store, HEARTH_LEAF_SPAN_GROUP,
                                                hearth_day_of(taken->rows[i].start_ns));
    }

    enum hearth_status status =
        are_known ? HEARTH_OK
                  : hearth_store_as_owner(to->store, to->cancel, make_leaves, taken, err);

    /* To wait for the node would hold up spans of days that have leaves. */
    return status == HEARTH_UNAVAILABLE && hearth_store_has_lost_nodes(to->store) ? HEARTH_ABORTED
                                                                                  : status;
}

/* Without an address, as after its last shard has moved, the coordinator takes the statements. */
static enum hearth_status connect_target(struct hearth_trace_target *to, struct hearth_err *err)
{
    struct hearth_store *store = to->store;
    struct hearth_pg *pg = &to->pg;
    char reason[256];

    /* Ids come from the catalogue: if that has lost commits, nodes get nothing either. */
    if (hearth_lineage_explain(&store->lineage, reason)) {
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE, "%s", reason);
    }

    hearth_pg_set_address(pg, to->node == 0 ? NULL : hearth_node_address(store->nodes, to->node));
    pg->lineage =
        pg->address == NULL ? &store->lineage : hearth_node_lineage(store->nodes, to->node);

    return hearth_pg_alive(pg) ? HEARTH_OK : hearth_pg_connect(pg, CONNECT_TIMEOUT_MS, err);
}

/*
 * See that all services still exist. Who removes a service locks it, and then looks for spans: the
 * lock here waits for him, and he finds these spans if he comes later.
 */
static enum hearth_status check_services(void *context, struct hearth_pg *pg,
                                         enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct taken *taken = context;
    int32_t *ids = hearth_arena_array(&taken->arena, taken->n, sizeof *ids);
    if (ids == NULL) {
        return HEARTH_FAIL_ARENA(err, &taken->arena);
    }

    for (size_t i = 0; i < taken->n; i++) {
        ids[i] = taken->rows[i].service_id;
    }

    struct hearth_pg_params params;
    PGresult *result = NULL;
    hearth_pg_params_init(&params, &taken->arena);
    hearth_pg_param_i32_array(&params, ids, taken->n);
    HEARTH_TRY(hearth_pg_exec(pg,
                              "SELECT 1 FROM unnest($1) AS r (service_id) WHERE r.service_id NOT IN"
                              " (SELECT s.service_id FROM hearth_data.service s WHERE"
                              " s.service_id = ANY ($1) ORDER BY s.service_id FOR KEY SHARE OF s)"
                              " LIMIT 1",
                              &params, taken->to->cancel, &result, ret_fault, err));
    bool is_gone = PQntuples(result) > 0;
    PQclear(result);

    return !is_gone ? HEARTH_OK
                    : HEARTH_FAIL(err, HEARTH_ABORTED, "a service of the spans was removed; retry");
}

/*
 * In a transaction block, which lets Citus insert into several shards by this session. A statement
 * alone goes through a second connection of the node to itself, and a two-phase commit. All rows
 * may be repeated: the message lets the commit wait for the standbys of the node even then.
 */
static enum hearth_status insert_in_block(struct taken *taken, enum hearth_pg_fault *ret_fault,
                                          struct hearth_err *err)
{
    struct hearth_pg *pg = &taken->to->pg;

    enum hearth_status status = hearth_pg_script(pg, "BEGIN", ret_fault, err);
    if (status == HEARTH_OK) {
        status = hearth_trace_rows_insert(taken->rows, taken->n, pg, &taken->arena,
                                          taken->to->cancel, ret_fault, err);
    }
    if (status == HEARTH_OK) {
        status = hearth_pg_script(pg, HEARTH_SQL_SETTLE "; COMMIT", ret_fault, err);
    }
    if (status != HEARTH_OK) {
        hearth_pg_rollback(pg);
    }

    return status;
}

static enum hearth_status insert_taken(struct taken *taken, struct hearth_err *err)
{
    struct hearth_trace_target *to = taken->to;

    for (int i = 1;; i++) {
        enum hearth_pg_fault fault = HEARTH_PG_FAULT_NONE;
        HEARTH_TRY(ensure_leaves(taken, err));
        HEARTH_TRY(connect_target(to, err));
        enum hearth_status status = insert_in_block(taken, &fault, err);
        if (status == HEARTH_OK) {
            break;
        }
        if (to->pg.conn == NULL) {
            hearth_nodes_suspect(to->store->nodes);
        }
        if (fault != HEARTH_PG_FAULT_MISSING_TABLE || i == MAX_PARTITION_TRIES) {
            return status;
        }
        for (size_t k = 0; k < taken->n; k++) {
            hearth_partitions_forget(to->store, hearth_day_of(taken->rows[k].start_ns));
        }
    }

    return hearth_store_as_owner(to->store, to->cancel, check_services, taken, err);
}

enum hearth_status hearth_trace_parts_store(struct hearth_trace_target *to,
                                            const struct hearth_trace_part *parts,
                                            struct hearth_err *err)
{
    struct taken taken = {.to = to, .parts = parts};

    hearth_arena_init(&taken.arena, 0);
    enum hearth_status status = gather_rows(&taken, err);
    status = status == HEARTH_OK ? insert_taken(&taken, err) : status;
    hearth_arena_release(&taken.arena);

    return status;
}
