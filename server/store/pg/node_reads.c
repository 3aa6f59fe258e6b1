/* node_reads.c -- reads on the node that owns the services (contract: node_reads.h). */
#include "pg/node_reads.h"

#include "pg/nodes.h"
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

enum hearth_status hearth_node_read(const struct hearth_store_reader *reader, unsigned node,
                                    bool *ret_done, struct hearth_err *err)
{
    struct hearth_store *store = reader->scope->store;
    struct hearth_nodes *nodes = store->nodes;
    struct hearth_node_set lost = {0};
    lost.has[node] = true;
    hearth_store_known_lost(store, &lost);
    if (lost.has[node]) {
        char name[HEARTH_NODE_NAME_BYTES];
        hearth_store_node_name(store, node, name);
        *ret_done = true;
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE, "the node %s does not answer", name);
    }

    if (!hearth_node_is_reached(nodes, node)) {
        *ret_done = false;
        return HEARTH_OK;
    }

    struct hearth_pool *pool = hearth_node_pool(nodes, node);
    struct hearth_cancel *cancel = reader->scope->cancel;
    struct hearth_pg *pg = NULL;
    enum hearth_pg_fault fault = HEARTH_PG_FAULT_CONNECTION;
    struct hearth_err failure = HEARTH_ERR_INIT;

    /* Row-level security is off on distributed tables: no wall. */
    enum hearth_status status = hearth_pool_take(pool, cancel, &pg, &failure);
    if (status == HEARTH_OK) {
        pg->wall = NULL;
        fault = HEARTH_PG_FAULT_NONE;
        status = reader->fn(reader->context, pg, &fault, &failure);
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

    /* The node is lost. */
    hearth_nodes_suspect(nodes);
    HEARTH_TRY(hearth_cancel_check(cancel, err));
    if (fault == HEARTH_PG_FAULT_CONNECTION || fault == HEARTH_PG_FAULT_RETRY) {
        *ret_done = false;
        return HEARTH_OK;
    }

    return HEARTH_FAIL(err, HEARTH_ABORTED, "a node gave up a read: %s; try again", failure.msg);
}
