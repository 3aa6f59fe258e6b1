/* node_health.c -- which nodes answer (contracts: node_health.h, hearth/store/lost_nodes.h). */
#include "nodes/node_health.h"

#include "hearth/base/clock.h"

#include "nodes/nodes.h"
#include "pg/pool.h"
#include "pg/store_state.h"

#include <stdio.h>

#define ASK_NODE_NS        (2 * HEARTH_NS_PER_SEC)
#define ASK_COORDINATOR_NS (3 * HEARTH_NS_PER_SEC)
#define WATCH_EACH_NS      (2 * HEARTH_NS_PER_SEC)

/* What asking has shown. */
enum answer {
    ANSWER_YES,
    ANSWER_NO,
    ANSWER_UNKNOWN, /* there was no time to wait for it, or nobody to ask */
};

/* ---- asking ---- */

/* Who asks, and for how long. */
struct look {
    struct hearth_store *store; /* for a connection to the coordinator, if pg is NULL */
    struct hearth_nodes *nodes;
    struct hearth_pg *pg; /* to the coordinator */
    int64_t until_ns;
};

static void init_patience(struct hearth_cancel *patience, const struct look *look, int64_t ns)
{
    int64_t until_ns = hearth_clock_mono_ns() + ns;
    hearth_cancel_init(patience, until_ns < look->until_ns ? until_ns : look->until_ns);
}

/* Silence says something only if it was listened to for long enough. */
static enum answer judge_failure(const struct look *look, enum hearth_status status)
{
    bool is_silent = status == HEARTH_DEADLINE_EXCEEDED;
    return is_silent && hearth_clock_mono_ns() >= look->until_ns ? ANSWER_UNKNOWN : ANSWER_NO;
}

/*
 * A new connection is the question: one of the pool may be busy, and to give up a statement on it
 * means to connect once more, without a time-out.
 */
static enum answer ask_node(const struct look *look, const struct hearth_node_view *view,
                            struct hearth_err *ret_why)
{
    struct hearth_cancel patience;
    init_patience(&patience, look, ASK_NODE_NS);
    struct hearth_pg pg = {
        .url = hearth_nodes_url(look->nodes), .address = view->address, .cancel = &patience};
    enum hearth_status status = hearth_pg_connect(&pg, 2 * ASK_NODE_NS / HEARTH_NS_PER_MS, ret_why);
    hearth_pg_close(&pg);
    if (status == HEARTH_DEADLINE_EXCEEDED) {
        (void)HEARTH_FAIL(ret_why, status, "it is silent");
    }

    return status == HEARTH_OK ? ANSWER_YES : judge_failure(look, status);
}

/* Citus' function tries to connect to the node, with a time-out of its own. */
static enum answer ask_about(const struct look *look, struct hearth_pg *pg,
                             const struct hearth_pg_address *known)
{
    struct hearth_cancel patience;
    struct hearth_arena arena;
    struct hearth_pg_params params;
    PGresult *result = NULL;

    init_patience(&patience, look, ASK_COORDINATOR_NS);
    hearth_arena_init(&arena, 0);
    hearth_pg_params_init(&params, &arena);
    hearth_pg_param_text(&params, hearth_str_c(known->host));
    hearth_pg_param_text(&params, hearth_str_c(known->port));
    enum hearth_status status =
        hearth_pg_exec(pg, "SELECT citus_check_connection_to_node($1, $2::int4)::int4", &params,
                       &patience, &result, NULL, NULL);
    bool is_reached = status == HEARTH_OK && hearth_pg_i32(result, 0, 0) == 1;
    PQclear(result);
    hearth_arena_release(&arena);

    if (status == HEARTH_OK) {
        return is_reached ? ANSWER_YES : ANSWER_NO;
    }

    return status == HEARTH_DEADLINE_EXCEEDED ? judge_failure(look, status) : ANSWER_UNKNOWN;
}

static enum answer ask_coordinator(const struct look *look, const struct hearth_pg_address *known)
{
    if (look->pg != NULL) {
        return ask_about(look, look->pg, known);
    }

    struct hearth_cancel patience;
    struct hearth_pg *pg = NULL;
    init_patience(&patience, look, ASK_COORDINATOR_NS);
    if (hearth_pool_take(look->store->pool, &patience, &pg, NULL) != HEARTH_OK) {
        return ANSWER_UNKNOWN;
    }

    enum answer answer = ask_about(look, pg, known);
    hearth_pool_give(look->store->pool, pg);

    return answer;
}

/* ---- what is learnt ---- */

static void look_at(const struct look *look, unsigned node, const struct hearth_node_view *view)
{
    struct hearth_err why = HEARTH_ERR_INIT;
    enum answer answer = ask_node(look, view, &why);
    if (answer == ANSWER_YES) {
        hearth_node_set_reach(look->nodes, node, view->address, HEARTH_NODE_ANSWERS, "");
    }
    if (answer != ANSWER_NO) {
        return;
    }

    answer = ask_coordinator(look, &view->known);
    static const enum hearth_node_reach found[] = {[ANSWER_YES] = HEARTH_NODE_CUT_OFF,
                                                   [ANSWER_NO] = HEARTH_NODE_LOST,
                                                   [ANSWER_UNKNOWN] = HEARTH_NODE_AWAY};
    hearth_node_set_reach(look->nodes, node, view->address, found[answer], why.msg);
}

void hearth_nodes_watch(struct hearth_store *store, struct hearth_pg *pg, int64_t *next_mono_ns)
{
    struct hearth_nodes *nodes = store->nodes;
    struct hearth_node_view views[HEARTH_MAX_NODES + 1];
    const struct look look = {.nodes = nodes, .pg = pg, .until_ns = INT64_MAX};
    bool is_due = hearth_clock_mono_ns() >= *next_mono_ns;

    if ((!is_due && !hearth_nodes_have_lost(nodes)) || !hearth_nodes_begin_look(nodes, NULL)) {
        return;
    }

    unsigned last = hearth_nodes_list(nodes, views);
    for (unsigned i = 1; i <= last && !atomic_load(&store->closing); i++) {
        if (views[i].address != NULL && (is_due || views[i].reach != HEARTH_NODE_ANSWERS)) {
            look_at(&look, i, &views[i]);
        }
    }

    hearth_nodes_end_look(nodes);
    *next_mono_ns = is_due ? hearth_clock_mono_ns() + WATCH_EACH_NS : *next_mono_ns;
}

/* ---- for queries ---- */

bool hearth_store_has_lost_nodes(const struct hearth_store *store)
{
    return store->nodes != NULL && hearth_nodes_have_lost(store->nodes);
}

unsigned hearth_store_node_of(struct hearth_store *store, int32_t service_id)
{
    return store->nodes == NULL ? 0 : hearth_node_of(store->nodes, service_id);
}

void hearth_store_node_name(struct hearth_store *store, unsigned node,
                            char out[HEARTH_NODE_NAME_BYTES])
{
    struct hearth_node_view views[HEARTH_MAX_NODES + 1];
    unsigned last = store->nodes == NULL ? 0 : hearth_nodes_list(store->nodes, views);

    out[0] = '\0';
    if (node >= 1 && node <= last) {
        (void)snprintf(out, HEARTH_NODE_NAME_BYTES, "%s:%s", views[node].known.host,
                       views[node].known.port);
    }
}

void hearth_store_known_lost(struct hearth_store *store, struct hearth_node_set *set)
{
    struct hearth_node_view views[HEARTH_MAX_NODES + 1];
    unsigned last = hearth_store_has_lost_nodes(store) ? hearth_nodes_list(store->nodes, views) : 0;

    for (unsigned i = 0; i <= HEARTH_MAX_NODES; i++) {
        set->has[i] = set->has[i] && i >= 1 && i <= last && views[i].reach == HEARTH_NODE_LOST;
    }
}

void hearth_store_find_lost(struct hearth_store *store, struct hearth_cancel *cancel,
                            struct hearth_node_set *set)
{
    struct hearth_node_view views[HEARTH_MAX_NODES + 1];
    int64_t now_ns = hearth_clock_mono_ns();
    struct look look = {.store = store,
                        .nodes = store->nodes,
                        .until_ns = now_ns + HEARTH_NODE_LOOK_MS * HEARTH_NS_PER_MS};

    if (cancel != NULL && cancel->deadline_mono_ns < INT64_MAX) {
        int64_t half_ns = now_ns + (cancel->deadline_mono_ns - now_ns) / 2;
        look.until_ns = half_ns < look.until_ns ? half_ns : look.until_ns;
    }

    if (store->nodes != NULL && hearth_nodes_begin_look(store->nodes, cancel)) {
        unsigned last = hearth_nodes_list(store->nodes, views);
        for (unsigned i = 1; i <= last; i++) {
            if (set->has[i] && views[i].address != NULL && views[i].reach != HEARTH_NODE_LOST) {
                look_at(&look, i, &views[i]);
            }
        }
        hearth_nodes_end_look(store->nodes);
    }

    hearth_store_known_lost(store, set);
}
