/*
 * node_layout.h -- the nodes of a database that Citus distributes, or could, and its data tables.
 *
 * Ownership: texts and arrays are borrowed. Threads: plain values.
 */
#ifndef HEARTH_MODEL_NODE_LAYOUT_H
#define HEARTH_MODEL_NODE_LAYOUT_H

#include "hearth/base/str.h"

/* A PostgreSQL that Citus knows. If it does not answer, members after n_bytes are empty or 0. */
struct hearth_node {
    struct hearth_str name; /* host:port */
    bool is_coordinator;
    bool holds_data;                   /* Citus may place shards on it */
    struct hearth_str failure;         /* why it does not answer; empty: it does */
    int64_t n_shards, n_bytes;         /* of data tables, with indexes */
    struct hearth_str postgres, citus; /* versions */
    int64_t n_prepared;                /* transactions that Citus has prepared on it */
    int64_t oldest_prepared_s;         /* age of the oldest of them; 0 if n_prepared is 0 */
    int64_t max_prepared, max_connections, recover_2pc_ms, cached_connections; /* settings */
    struct hearth_str modify_mode, wal_level;                                  /* settings */
};

struct hearth_data_table {
    struct hearth_str table; /* "profile", ..; with its partitions */
    bool is_distributed;
    int64_t n_bytes; /* on the nodes, or here if it is not distributed */
    int64_t move_s;  /* how long distributing it will take, estimated; 0: it is distributed */
};

struct hearth_node_layout {
    struct hearth_str citus;   /* version of the extension; empty: the database lacks it */
    struct hearth_node *nodes; /* the coordinator first, if Citus knows it */
    size_t n_nodes;
    struct hearth_data_table *tables; /* sorted by name */
    size_t n_tables, n_distributed;
    int64_t n_unidentified; /* distributed tables that shards cannot be moved of under load */
    /* The largest group of shards, the smallest part that can move to another node. */
    int64_t n_largest_bytes;
    struct hearth_str largest_node, largest_services; /* some of its services, separated by ", " */
};

#endif
