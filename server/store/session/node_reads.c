/* node_reads.c -- reads on the node that owns the services (contract: node_reads.h). */
#include "session/node_reads.h"

#include "nodes/nodes.h"
#include "pg/pool.h"
#include "pg/store_state.h"

unsigned hearth_node_of_reader(const struct hearth_store_reader *reader)
{
    struct hearth_nodes *nodes = reader->scope->store->nodes;
    if (nodes == NULL || reader->n_services == 0) {
        return 0;
    }

    unsigned node = hearth_node_of(nodes, reader->services[0]);
    for (size_t i = 1; i < reader->n_services && node != 0; i++) {
        node = hearth_node_of(nodes, reader->services[i]) == node ? node : 0;
    }

    return node;
}

/* ---- nodes that are lost during a read ---- */

bool hearth_node_reader_is_lost(const void *context)
{
    const struct hearth_store_reader *reader = context;
    struct hearth_store *store = reader->scope->store;
    struct hearth_node_set set = {0};
    bool is_lost = false;

    if (!hearth_store_has_lost_nodes(store)) {
        return false;
    }

    for (size_t i = 0; i < reader->n_services; i++) {
        unsigned node = hearth_node_of(store->nodes, reader->services[i]);
        set.has[node] = node > 0;
    }
    hearth_store_known_lost(store, &set);
    for (unsigned i = 1; i <= HEARTH_MAX_NODES; i++) {
        is_lost |= set.has[i];
    }

    return is_lost;
}

/* Run the reader's function, but do not wait for a node that is lost. */
static enum hearth_status run_reader(const struct hearth_store_reader *reader, struct hearth_pg *pg,
                                     enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    const struct hearth_pg_doubt doubt = {hearth_node_reader_is_lost, reader};

    pg->doubt = &doubt;
    enum hearth_status status = reader->fn(reader->context, pg, ret_fault, err);
    pg->doubt = NULL;

    return status;
}

static enum hearth_status fail_lost(struct hearth_store *store, unsigned node,
                                    struct hearth_err *err)
{
    char name[HEARTH_NODE_NAME_BYTES];
    hearth_store_node_name(store, node, name);

    return HEARTH_FAIL(err, HEARTH_UNAVAILABLE, "the node %s does not answer", name);
}

static enum hearth_status run_with_pg(void *context, struct hearth_pg *pg,
                                      enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    const struct hearth_store_reader *reader = context;

    return run_reader(reader, pg, ret_fault, err);
}

enum hearth_status hearth_node_read_all(const struct hearth_store_reader *reader,
                                        const struct hearth_pg_params *wall, struct hearth_err *err)
{
    struct hearth_store_reader own = *reader;

    return hearth_store_run_on_primary(reader->scope->store, reader->scope->cancel, wall,
                                       run_with_pg, &own, err);
}

enum hearth_status hearth_node_send_ahead(const struct hearth_store_reader *reader, unsigned node,
                                          const struct hearth_node_statement *statement,
                                          bool may_connect, struct hearth_pg **ret_pg,
                                          struct hearth_err *err)
{
    struct hearth_nodes *nodes = reader->scope->store->nodes;
    *ret_pg = NULL;
    if (hearth_node_reader_is_lost(reader) || !hearth_node_is_reached(nodes, node)) {
        return HEARTH_OK;
    }

    struct hearth_pool *pool = hearth_node_pool(nodes, node);
    const struct hearth_pg_doubt doubt = {hearth_node_reader_is_lost, reader};
    struct hearth_pg *pg = NULL;
    HEARTH_TRY(hearth_pool_take_free(pool, reader->scope->cancel, &doubt, may_connect, &pg, err));
    if (pg == NULL) {
        return HEARTH_OK;
    }

    /* Row-level security is off on distributed tables: no wall. */
    pg->doubt = NULL;
    pg->wall = NULL;
    enum hearth_status status =
        hearth_pg_send_ahead(pg, statement->sql, statement->params, statement->is_streamed, err);
    if (status != HEARTH_OK) {
        hearth_pool_give(pool, pg);
        return status;
    }
    *ret_pg = pg;

    return HEARTH_OK;
}

/* Take a connection for a read; it is not worth waiting for that of a node that is lost. */
static enum hearth_status take_for_read(const struct hearth_store_reader *reader,
                                        struct hearth_pool *pool, struct hearth_pg **ret_pg,
                                        struct hearth_err *err)
{
    const struct hearth_pg_doubt doubt = {hearth_node_reader_is_lost, reader};
    struct hearth_cancel *cancel = reader->scope->cancel;
    HEARTH_TRY(hearth_pool_take_free(pool, cancel, &doubt, true, ret_pg, err));

    if (*ret_pg == NULL) {
        return hearth_pool_take(pool, cancel, ret_pg, err);
    }
    (*ret_pg)->doubt = NULL; /* run_reader has one of its own */

    return HEARTH_OK;
}

enum hearth_status hearth_node_read(const struct hearth_store_reader *reader, unsigned node,
                                    struct hearth_pg *ahead, bool *ret_done, struct hearth_err *err)
{
    struct hearth_store *store = reader->scope->store;
    struct hearth_nodes *nodes = store->nodes;
    struct hearth_pool *pool = hearth_node_pool(nodes, node);

    if (hearth_node_reader_is_lost(reader)) {
        if (ahead != NULL) {
            hearth_pg_close(ahead);
            hearth_pool_give(pool, ahead);
        }
        *ret_done = true;
        return fail_lost(store, node, err);
    }

    if (ahead == NULL && !hearth_node_is_reached(nodes, node)) {
        *ret_done = false;
        return HEARTH_OK;
    }

    struct hearth_cancel *cancel = reader->scope->cancel;
    struct hearth_pg *pg = ahead;
    enum hearth_pg_fault fault = HEARTH_PG_FAULT_CONNECTION;
    struct hearth_err failure = HEARTH_ERR_INIT;

    /* Row-level security is off on distributed tables: no wall. */
    enum hearth_status status =
        ahead != NULL ? HEARTH_OK : take_for_read(reader, pool, &pg, &failure);
    if (status == HEARTH_OK) {
        pg->wall = NULL;
        fault = HEARTH_PG_FAULT_NONE;
        status = run_reader(reader, pg, &fault, &failure);
        hearth_pool_give(pool, pg);
    }

    /* Done, also with an error that every node would return. */
    *ret_done = true;
    if (status != HEARTH_UNAVAILABLE) {
        if (err != NULL && status != HEARTH_OK) {
            *err = failure;
        }
        return status;
    }

    hearth_nodes_suspect(nodes);
    HEARTH_TRY(hearth_cancel_check(cancel, err));
    if (hearth_node_reader_is_lost(reader)) {
        return fail_lost(store, node, err);
    }
    if (fault == HEARTH_PG_FAULT_CONNECTION || fault == HEARTH_PG_FAULT_RETRY) {
        *ret_done = false;
        return HEARTH_OK;
    }

    return HEARTH_FAIL(err, HEARTH_ABORTED, "a node gave up a read: %s; try again", failure.msg);
}
