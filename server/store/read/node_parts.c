/* node_parts.c -- the services of a read, divided by nodes (contract: node_parts.h). */
#include "read/node_parts.h"

#include "hearth/base/clock.h"

#include "nodes/nodes.h"
#include "pg/pool.h"
#include "pg/store_state.h"

#include <assert.h>
#include <poll.h>

#define WAIT_STEP_MS 50

/* ---- dividing ---- */

/* Return the index of the shard in the part, which has it afterwards. */
static size_t add_shard(struct hearth_node_part *part, const struct hearth_shard *shard)
{
    size_t i = 0;
    while (i < part->n_shards && part->shards[i].ids[0] != shard->ids[0]) {
        i++;
    }

    if (i == part->n_shards) {
        part->shards[part->n_shards++] = *shard;
    }

    return i;
}

/* Make the part of a node, which has n_own of the services; `places` are those of all. */
static bool make_part(struct hearth_node_part *part, size_t n_own, const int32_t *services,
                      const struct hearth_node_place *places, size_t n, struct hearth_arena *arena)
{
    int32_t *own = hearth_arena_array(arena, n_own, sizeof own[0]);
    size_t *shard_of = hearth_arena_array(arena, n_own, sizeof shard_of[0]);
    part->shards = hearth_arena_array(arena, n_own, sizeof part->shards[0]);
    if (own == NULL || shard_of == NULL || part->shards == NULL) {
        return false;
    }

    bool has_shards = true;
    for (size_t i = 0; i < n; i++) {
        if (places[i].node == part->node) {
            has_shards = has_shards && places[i].has_shard;
            own[part->n_services] = services[i];
            shard_of[part->n_services++] = has_shards ? add_shard(part, &places[i].shard) : 0;
        }
    }

    part->services = own;
    part->shard_of = has_shards ? shard_of : NULL;
    part->n_shards = has_shards ? part->n_shards : 0;

    return true;
}

enum hearth_status hearth_node_parts(struct hearth_store *store, const int32_t *services, size_t n,
                                     struct hearth_arena *arena, struct hearth_node_part **ret,
                                     size_t *ret_n, struct hearth_err *err)
{
    *ret = NULL;
    *ret_n = 0;
    if (store->nodes == NULL || n == 0) {
        return HEARTH_OK;
    }

    struct hearth_node_place *places = hearth_arena_array(arena, n, sizeof places[0]);
    *ret = hearth_arena_calloc(arena, HEARTH_MAX_NODES + 1, sizeof(*ret)[0]);
    if (places == NULL || *ret == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    size_t n_of[HEARTH_MAX_NODES + 1] = {0};
    for (size_t i = 0; i < n; i++) {
        hearth_nodes_find_place(store->nodes, services[i], &places[i]);
        n_of[places[i].node]++;
    }

    for (unsigned node = 0; node <= HEARTH_MAX_NODES; node++) {
        if (n_of[node] > 0) {
            struct hearth_node_part *part = &(*ret)[(*ret_n)++];
            part->node = node;
            if (!make_part(part, n_of[node], services, places, n, arena)) {
                return HEARTH_FAIL_ARENA(err, arena);
            }
        }
    }

    return HEARTH_OK;
}

/* ---- text ---- */

void hearth_node_part_count(struct hearth_buf *sql, const struct hearth_node_part *part)
{
    assert(part->n_shards > 0);

    /* All tables of a shard move together; those of one table stand for all. */
    hearth_buf_printf(sql,
                      " FROM pg_catalog.pg_dist_placement WHERE groupid = %d AND shardid = ANY ('{",
                      (int)part->shards[0].group);
    for (size_t i = 0; i < part->n_shards; i++) {
        hearth_buf_printf(sql, "%s%lld", i == 0 ? "" : ",",
                          (long long)part->shards[i].ids[HEARTH_SHARD_ROLL_STATE]);
    }
    hearth_buf_cstr(sql, "}'::int8[])");
}

void hearth_shard_name(struct hearth_buf *sql, unsigned table, const struct hearth_shard *shard)
{
    hearth_buf_printf(sql, "hearth_data.%s", hearth_shard_table(table));
    if (shard != NULL) {
        hearth_buf_printf(sql, "_%lld", (long long)shard->ids[table]);
    }
}

/* ---- reading ---- */

void hearth_node_turns_begin(struct hearth_node_turn *turns, size_t n)
{
    size_t n_turns = 0;
    for (size_t i = 0; i < n; i++) {
        n_turns += turns[i].statement.sql != NULL;
    }

    /* Nodes that are connected begin while connections to others are opened. */
    for (int may_connect = 0; may_connect <= 1 && n_turns > 1; may_connect++) {
        for (size_t i = 0; i < n; i++) {
            struct hearth_node_turn *turn = &turns[i];
            if (turn->statement.sql != NULL && turn->ahead == NULL) {
                turn->is_unreached =
                    hearth_node_send_ahead(&turn->reader, turn->part->node, &turn->statement,
                                           may_connect == 1, &turn->ahead, NULL) != HEARTH_OK;
            }
        }
    }
}

/* Whether a turn has no reason to wait for its socket any more. */
static bool is_over(const struct hearth_node_turn *turn)
{
    const struct hearth_pg *pg = turn->ahead;
    int64_t age_ns = hearth_clock_mono_ns() - pg->ahead_mono_ns;

    return hearth_cancel_check(turn->reader.scope->cancel, NULL) != HEARTH_OK ||
           (pg->timeout_ms > 0 && age_ns > pg->timeout_ms * HEARTH_NS_PER_MS) ||
           hearth_node_reader_is_lost(&turn->reader);
}

/* Wait one step until a turn has news; NULL: none has. */
static struct hearth_node_turn *await_news(struct hearth_node_turn *const *turns, size_t n)
{
    struct pollfd fds[HEARTH_MAX_NODES];
    for (size_t i = 0; i < n; i++) {
        PGconn *conn = turns[i]->ahead->conn;
        bool is_sent = conn != NULL && turns[i]->ahead->ahead != NULL;
        int unsent = is_sent ? PQflush(conn) : -1;
        if (unsent < 0 || PQsocket(conn) < 0) {
            return turns[i];
        }
        fds[i] = (struct pollfd){.fd = PQsocket(conn),
                                 .events = (short)(POLLIN | (unsent > 0 ? POLLOUT : 0))};
    }

    if (poll(fds, (nfds_t)n, WAIT_STEP_MS) > 0) {
        for (size_t i = 0; i < n; i++) {
            if ((fds[i].revents & ~POLLOUT) != 0) {
                return turns[i];
            }
        }
        return NULL;
    }

    for (size_t i = 0; i < n; i++) {
        if (is_over(turns[i])) {
            return turns[i];
        }
    }

    return NULL;
}

struct hearth_node_turn *hearth_node_turns_next(struct hearth_node_turn *turns, size_t n)
{
    struct hearth_node_turn *left[HEARTH_MAX_NODES], *found = NULL;
    size_t n_left = 0;
    for (size_t i = 0; i < n; i++) {
        if (turns[i].ahead != NULL) {
            assert(n_left < HEARTH_MAX_NODES);
            left[n_left++] = &turns[i];
        }
    }

    /* The last one waits for itself. */
    found = n_left == 1 ? left[0] : NULL;
    while (found == NULL && n_left > 0) {
        found = await_news(left, n_left);
    }

    return found;
}

void hearth_node_turns_end(struct hearth_node_turn *turns, size_t n)
{
    struct hearth_pg *pgs[HEARTH_MAX_NODES] = {NULL};
    size_t n_pgs = 0;

    for (size_t i = 0; i < n; i++) {
        if (turns[i].ahead != NULL && hearth_node_reader_is_lost(&turns[i].reader)) {
            hearth_pg_close(turns[i].ahead); /* it would not hear of a cancellation */
        } else if (turns[i].ahead != NULL) {
            pgs[n_pgs++] = turns[i].ahead;
        }
    }
    hearth_pg_give_up(pgs, n_pgs);

    for (size_t i = 0; i < n; i++) {
        if (turns[i].ahead != NULL) {
            struct hearth_nodes *nodes = turns[i].reader.scope->store->nodes;
            hearth_pool_give(hearth_node_pool(nodes, turns[i].part->node), turns[i].ahead);
            turns[i].ahead = NULL;
        }
    }
}

enum hearth_status hearth_node_part_read(struct hearth_node_turn *turn, const bool *is_stale,
                                         bool *ret_done, struct hearth_err *err)
{
    const struct hearth_store_reader *reader = &turn->reader;
    struct hearth_err failure = HEARTH_ERR_INIT;
    struct hearth_pg *ahead = turn->ahead;

    turn->ahead = NULL;
    enum hearth_status status =
        turn->is_unreached ? HEARTH_UNAVAILABLE
                           : hearth_node_read(reader, turn->part->node, ahead, ret_done, &failure);
    if (*is_stale || turn->is_unreached) {
        *ret_done = false;
        hearth_nodes_suspect(reader->scope->store->nodes);
        return hearth_cancel_check(reader->scope->cancel, err);
    }

    if (status != HEARTH_OK && err != NULL) {
        *err = failure;
    }

    return status;
}
