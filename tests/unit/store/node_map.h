/*
 * node_map.h -- a map of nodes made by hand: the same committers as before nodes of Citus, which
 * tests/integration/test_citus.py has, but over one PostgreSQL.
 */
#ifndef HEARTH_TESTS_UNIT_STORE_NODE_MAP_H
#define HEARTH_TESTS_UNIT_STORE_NODE_MAP_H

#include "commit/committers.h"
#include "nodes/nodes.h"
#include "pg/store_state.h"
#include "store_fixture.h"

/* Where nothing listens. */
#define NOWHERE "/nowhere"

/* A node of Citus: its group, and the folder of its socket. */
struct test_node {
    int32_t group;
    const char *host;
};

/* An empty map, to be freed after its store was closed. */
static inline struct hearth_nodes *make_nodes(struct hearth_store *store)
{
    struct hearth_nodes *nodes = NULL;
    assert_ok(hearth_nodes_new(&store->options, &nodes, &err));
    return nodes;
}

/* Divide all services among n nodes, in equal ranges of hashes; committers follow. */
static inline void divide(struct hearth_store *store, struct hearth_nodes *nodes,
                          const struct test_node *of, unsigned n)
{
    struct hearth_node_shard shards[8];
    assert_true(n <= HEARTH_ARRAY_LEN(shards));
    for (unsigned i = 0; i < n; i++) {
        shards[i] = (struct hearth_node_shard){
            .first_hash = (int32_t)(INT32_MIN + ((int64_t)i << 32) / n),
            .group = of[i].group,
            .host = hearth_str_c(of[i].host),
            .port = 5432,
            .is_usable = true,
            .n_copies = 1,
        };
    }
    assert_ok(hearth_nodes_take(nodes, shards, n, &err));
    assert_ok(hearth_committers_follow(store->committers, nodes, &err));
}

#endif
