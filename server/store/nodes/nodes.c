/* nodes.c -- which node owns a service, and connections to the nodes (contract: nodes.h). */
#include "nodes/nodes.h"

#include "hearth/base/clock.h"
#include "hearth/base/log.h"
#include "hearth/base/mem.h"
#include "hearth/base/metrics.h"

#include "nodes/node_aliases.h"
#include "nodes/node_shards.h"
#include "pg/lineage.h"
#include "pg/pool.h"
#include "pg/store_state.h"

#include <assert.h>
#include <stdio.h>

#define REFRESH_EACH_NS   (10 * HEARTH_NS_PER_SEC)
#define REFRESH_LEAST_NS  HEARTH_NS_PER_SEC
#define LOOK_STEP_NS      (50 * HEARTH_NS_PER_MS)
#define MEET_NS           (2 * HEARTH_NS_PER_SEC)
#define MAX_REFRESH_BYTES ((size_t)64 << 20) /* Citus allows 64,000 shards */

/* One address that a node has had. Readers may use it without a lock, so it lives on. */
struct node_address {
    struct hearth_pg_address address;
    struct node_address *next;
};

struct node {
    int32_t group; /* Citus' number of a primary and its standbys */
    const struct hearth_pg_address *address;
    struct hearth_pg_address known; /* Citus' own name of it */
    bool is_unmet;                  /* it cannot be met where Citus has it now */
    enum hearth_node_reach reach;
    int64_t since_mono_ns;           /* when it did not answer first */
    char why[HEARTH_NODE_WHY_BYTES]; /* it does not */
    struct hearth_pool *pool;
    struct hearth_lineage lineage;
};

struct hearth_nodes {
    const struct hearth_store_options *options;
    struct hearth_node_aliases *aliases;
    bool is_checked;       /* Citus places the samples as hearthd does */
    atomic_int n_lost;     /* nodes[].reach; changed under the lock */
    pthread_cond_t looked; /* with lock: a thread has looked at nodes */

    struct hearth_mutex lock;                /* guards the rest */
    struct node nodes[HEARTH_MAX_NODES + 1]; /* [0] is not used */
    unsigned last;
    struct node_address *addresses;
    struct hearth_node_range *ranges;
    struct hearth_shard *shards; /* of the ranges; all ids are 0 if they are not known */
    size_t n_ranges;
    uint64_t version;     /* of the ranges */
    int64_t read_mono_ns; /* when the map was read last, or was tried; 0: never */
    bool is_suspected, is_full;
    uint64_t n_suspicions;
    bool is_looking; /* a thread looks at nodes */
};

/* ---- making ---- */

/* hostaddr would override the host of every node. */
static enum hearth_status check_url(const struct hearth_secret *url, struct hearth_err *err)
{
    bool has_hostaddr = false;
    PQconninfoOption *parsed = PQconninfoParse(hearth_secret_reveal(url), NULL);
    for (const PQconninfoOption *option = parsed; option != NULL && option->keyword != NULL;
         option++) {
        has_hostaddr |= strcmp(option->keyword, "hostaddr") == 0 && option->val != NULL;
    }
    PQconninfoFree(parsed);

    return !has_hostaddr
               ? HEARTH_OK
               : HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                             "the database URL has hostaddr, which would replace the host of every "
                             "node: write host only, or set --node-connections=false");
}

enum hearth_status hearth_nodes_new(const struct hearth_store_options *options,
                                    struct hearth_nodes **ret_nodes, struct hearth_err *err)
{
    struct hearth_nodes *nodes = hearth_mem_zalloc(sizeof *nodes);
    if (nodes == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate the map of nodes");
    }

    nodes->options = options;
    hearth_mutex_init(&nodes->lock, HEARTH_RANK_NODES, "nodes.lock");
    hearth_cond_init(&nodes->looked);
    const char *text = options->node_addresses == NULL ? "" : options->node_addresses;
    enum hearth_status status = check_url(options->url, err);
    status = status == HEARTH_OK ? hearth_node_aliases_parse(text, &nodes->aliases, err) : status;
    if (status != HEARTH_OK) {
        hearth_nodes_free(nodes);
        return status;
    }

    *ret_nodes = nodes;

    return HEARTH_OK;
}

void hearth_nodes_free(struct hearth_nodes *nodes)
{
    if (nodes == NULL) {
        return;
    }

    for (unsigned i = 1; i <= nodes->last; i++) {
        hearth_pool_free(nodes->nodes[i].pool);
        hearth_lineage_release(&nodes->nodes[i].lineage);
    }

    while (nodes->addresses != NULL) {
        struct node_address *next = nodes->addresses->next;
        hearth_mem_free(nodes->addresses);
        nodes->addresses = next;
    }

    hearth_metric_set(HEARTH_M_NODES_AWAY, 0);
    (void)pthread_cond_destroy(&nodes->looked);
    hearth_mutex_destroy(&nodes->lock);
    hearth_mem_free(nodes->ranges);
    hearth_mem_free(nodes->shards);
    hearth_node_aliases_free(nodes->aliases);
    hearth_mem_free(nodes);
}

unsigned hearth_node_of(struct hearth_nodes *nodes, int32_t service_id)
{
    hearth_mutex_lock(&nodes->lock);
    unsigned node = hearth_node_in_ranges(nodes->ranges, nodes->n_ranges, service_id);
    hearth_mutex_unlock(&nodes->lock);

    return node;
}

void hearth_nodes_find_place(struct hearth_nodes *nodes, int32_t service_id,
                             struct hearth_node_place *ret)
{
    *ret = (struct hearth_node_place){0};
    hearth_mutex_lock(&nodes->lock);
    const struct hearth_node_range *range =
        hearth_node_find_range(nodes->ranges, nodes->n_ranges, service_id);
    if (range != NULL) {
        ret->node = range->node;
        ret->shard = nodes->shards[range - nodes->ranges];
        ret->has_shard = range->node != 0 && ret->shard.ids[0] != 0 && !nodes->is_suspected;
    }
    hearth_mutex_unlock(&nodes->lock);
}

/* ---- taking the map over ---- */

/* Citus' name of the node that has a shard. */
static struct hearth_pg_address name_node(const struct hearth_node_shard *shard)
{
    struct hearth_pg_address name;
    (void)snprintf(name.host, sizeof name.host, HEARTH_STR_FMT, HEARTH_STR_ARG(shard->host));
    (void)snprintf(name.port, sizeof name.port, "%d", (int)shard->port);
    return name;
}

static bool is_same_address(const struct hearth_pg_address *a, const struct hearth_pg_address *b)
{
    return strcmp(a->host, b->host) == 0 && strcmp(a->port, b->port) == 0;
}

/* Remember whether a node answers. Returns whether that is new. */
static bool set_reach(struct hearth_nodes *nodes, struct node *node, enum hearth_node_reach reach,
                      const char *why)
{
    hearth_mutex_assert_held(&nodes->lock);

    /* A commit that fails knows less than a look. */
    enum hearth_node_reach before = node->reach;
    bool is_worse = reach != HEARTH_NODE_ANSWERS && before == HEARTH_NODE_ANSWERS;
    if (reach != before && reach == HEARTH_NODE_AWAY && !is_worse) {
        return false;
    }

    (void)snprintf(node->why, sizeof node->why, "%s", why);
    if (reach == before) {
        return false;
    }

    node->since_mono_ns = is_worse ? hearth_clock_mono_ns() : node->since_mono_ns;
    node->reach = reach;
    (void)atomic_fetch_add(&nodes->n_lost,
                           (reach == HEARTH_NODE_LOST) - (before == HEARTH_NODE_LOST));

    int64_t n_away = 0;
    for (unsigned i = 1; i <= nodes->last; i++) {
        n_away += nodes->nodes[i].reach != HEARTH_NODE_ANSWERS;
    }
    hearth_metric_set(HEARTH_M_NODES_AWAY, n_away);

    return true;
}

/* Let connections of a node go to this address from now on; NULL: to the coordinator. */
static enum hearth_status move_node(struct hearth_nodes *nodes, unsigned number,
                                    const struct hearth_pg_address *address, struct hearth_err *err)
{
    hearth_mutex_assert_held(&nodes->lock);

    struct node *node = &nodes->nodes[number];
    bool is_same = address == NULL || node->address == NULL
                       ? node->address == address
                       : is_same_address(address, node->address);
    if (is_same) {
        return HEARTH_OK;
    }

    struct node_address *kept = NULL;
    if (address != NULL) {
        kept = hearth_mem_zalloc(sizeof *kept);
        if (kept == NULL) {
            return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate the address of a node");
        }
        *kept = (struct node_address){*address, nodes->addresses};
        nodes->addresses = kept;
    }

    node->address = kept == NULL ? NULL : &kept->address;
    (void)set_reach(nodes, node, HEARTH_NODE_ANSWERS, ""); /* as far as is known */
    hearth_pool_set_address(node->pool, node->address);
    HEARTH_LOG(HEARTH_LOG_INFO, "store",
               kept == NULL ? "a node is not used any more" : "a node is used", "node",
               hearth_log_i64(number), "group", hearth_log_i64(node->group), "host",
               kept == NULL ? "" : address->host, "port", kept == NULL ? "" : address->port, NULL);

    return HEARTH_OK;
}

/* Find the node of a group, or make it. 0: there are too many. */
static enum hearth_status find_node(struct hearth_nodes *nodes, int32_t group, unsigned *ret,
                                    struct hearth_err *err)
{
    hearth_mutex_assert_held(&nodes->lock);

    for (unsigned i = 1; i <= nodes->last; i++) {
        if (nodes->nodes[i].group == group) {
            *ret = i;
            return HEARTH_OK;
        }
    }

    *ret = 0;
    if (nodes->last == HEARTH_MAX_NODES) {
        if (!nodes->is_full) {
            HEARTH_LOG(HEARTH_LOG_WARN, "store",
                       "Citus has more nodes than hearthd connects to; the coordinator takes the "
                       "statements of the others",
                       "limit", hearth_log_i64(HEARTH_MAX_NODES), NULL);
        }
        nodes->is_full = true;
        return HEARTH_OK;
    }

    struct hearth_pool *pool = NULL;
    HEARTH_TRY(hearth_pool_new(nodes->options->url, nodes->options->max_readers, &pool, err));
    hearth_pool_set_timeout(pool, nodes->options->statement_timeout_ms);
    nodes->last++;
    struct node *node = &nodes->nodes[nodes->last];
    *node = (struct node){.group = group, .pool = pool};
    hearth_lineage_init(&node->lineage, "hearth_data.roll_state");
    hearth_pool_set_lineage(pool, &node->lineage);
    *ret = nodes->last;

    return HEARTH_OK;
}

/* The owner of a shard; 0 for what the coordinator has to write. */
static enum hearth_status place_shard(struct hearth_nodes *nodes,
                                      const struct hearth_node_shard *shard,
                                      bool is_used[HEARTH_MAX_NODES + 1], unsigned *ret,
                                      struct hearth_err *err)
{
    *ret = 0;
    if (shard->group == 0 || !shard->is_usable || shard->n_copies != 1) {
        return HEARTH_OK;
    }

    HEARTH_TRY(find_node(nodes, shard->group, ret, err));
    if (*ret == 0 || is_used[*ret]) {
        return HEARTH_OK;
    }

    struct hearth_pg_address address =
        hearth_node_aliases_find(nodes->aliases, shard->host, shard->port);
    is_used[*ret] = true;
    nodes->nodes[*ret].known = name_node(shard);
    nodes->nodes[*ret].is_unmet = false;

    return move_node(nodes, *ret, &address, err);
}

/* Make the nodes of the shards, and write their ranges. Under the lock. */
static enum hearth_status place_shards(struct hearth_nodes *nodes,
                                       const struct hearth_node_shard *shards, size_t n,
                                       struct hearth_node_range *ranges, struct hearth_err *err)
{
    bool is_used[HEARTH_MAX_NODES + 1] = {false};

    hearth_node_aliases_reset(nodes->aliases);
    for (size_t i = 0; i < n; i++) {
        unsigned node = 0;
        HEARTH_TRY(place_shard(nodes, &shards[i], is_used, &node, err));
        ranges[i] = (struct hearth_node_range){shards[i].first_hash, node};
    }

    for (unsigned i = 1; i <= nodes->last; i++) {
        if (!is_used[i]) {
            HEARTH_TRY(move_node(nodes, i, NULL, err));
        }
    }

    return HEARTH_OK;
}

static bool are_ranges_same(const struct hearth_nodes *nodes,
                            const struct hearth_node_range *ranges, size_t n)
{
    bool is_same = nodes->n_ranges == n;
    for (size_t i = 0; i < n && is_same; i++) {
        is_same = nodes->ranges[i].first_hash == ranges[i].first_hash &&
                  nodes->ranges[i].node == ranges[i].node;
    }
    return is_same;
}

enum hearth_status hearth_nodes_take(struct hearth_nodes *nodes,
                                     const struct hearth_node_shard *shards, size_t n,
                                     struct hearth_err *err)
{
    struct hearth_node_range *ranges = hearth_mem_calloc(n + 1, sizeof ranges[0]);
    struct hearth_shard *tables = hearth_mem_calloc(n + 1, sizeof tables[0]);
    if (ranges == NULL || tables == NULL) {
        hearth_mem_free(ranges);
        hearth_mem_free(tables);
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the map of nodes");
    }

    for (size_t i = 0; i < n; i++) {
        tables[i].group = shards[i].group;
        if (shards[i].n_ids == HEARTH_N_SHARD_TABLES) {
            memcpy(tables[i].ids, shards[i].ids, sizeof tables[i].ids);
        }
    }

    hearth_mutex_lock(&nodes->lock);
    enum hearth_status status = place_shards(nodes, shards, n, ranges, err);
    struct hearth_node_range *unused = ranges;
    struct hearth_shard *unused_tables = tables;
    if (status == HEARTH_OK) {
        unused_tables = nodes->shards;
        nodes->shards = tables;
        nodes->is_suspected = false;
    }
    if (status == HEARTH_OK && !are_ranges_same(nodes, ranges, n)) {
        unused = nodes->ranges;
        nodes->ranges = ranges;
        nodes->n_ranges = n;
        nodes->version++;
    }
    hearth_mutex_unlock(&nodes->lock);
    hearth_mem_free(unused);
    hearth_mem_free(unused_tables);

    return status;
}

/* Whether Citus places services as hearthd computes. */
static enum hearth_status check_places(struct hearth_pg *pg, struct hearth_arena *arena,
                                       const struct hearth_node_shard *shards, size_t n,
                                       struct hearth_err *err)
{
    struct hearth_node_range *ranges = hearth_arena_calloc(arena, n + 1, sizeof ranges[0]);
    if (ranges == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (size_t i = 0; i < n; i++) {
        ranges[i].first_hash = shards[i].first_hash;
    }

    return hearth_node_shards_check(pg, arena, ranges, n, err);
}

/* ---- meeting nodes ---- */

/* Connect to a node, which compares its history with what is known of it. */
static enum hearth_status greet(struct hearth_nodes *nodes, unsigned number,
                                const struct hearth_pg_address *address, struct hearth_err *err)
{
    struct hearth_cancel patience;
    hearth_cancel_init(&patience, hearth_clock_mono_ns() + MEET_NS);
    struct hearth_pg pg = {.url = nodes->options->url,
                           .address = address,
                           .lineage = hearth_node_lineage(nodes, number),
                           .cancel = &patience};
    enum hearth_status status = hearth_pg_connect(&pg, MEET_NS / HEARTH_NS_PER_MS, err);
    hearth_pg_close(&pg);

    return status;
}

/* Remember, and log once, whether a node can be met where Citus has it now. */
static void note_met(struct hearth_nodes *nodes, unsigned number,
                     const struct hearth_pg_address *name, const char *why)
{
    hearth_mutex_lock(&nodes->lock);
    struct node *node = &nodes->nodes[number];
    bool is_new = !node->is_unmet && why != NULL;
    node->is_unmet = why != NULL;
    hearth_mutex_unlock(&nodes->lock);

    if (is_new) {
        HEARTH_LOG(HEARTH_LOG_WARN, "store",
                   "a node cannot be used at the address that Citus has now", "host", name->host,
                   "port", name->port, "reason", why, NULL);
    }
}

/*
 * Meet the node of a shard at the address that Citus has for it now. A standby that was promoted
 * may lack commits, and nothing may reach it before that is known: not even through the
 * coordinator, to which its services belong until Citus has told all nodes of its new address. So a
 * node that is known must be met; one that is new may be down.
 */
static enum hearth_status meet(struct hearth_nodes *nodes, const struct hearth_node_shard *shard,
                               bool is_tried[HEARTH_MAX_NODES + 1], struct hearth_err *err)
{
    struct hearth_pg_address name = name_node(shard);
    unsigned number = 0;

    hearth_mutex_lock(&nodes->lock);
    enum hearth_status status =
        shard->group == 0 ? HEARTH_OK : find_node(nodes, shard->group, &number, err);
    struct hearth_pg_address known = nodes->nodes[number].known;
    hearth_mutex_unlock(&nodes->lock);
    if (status != HEARTH_OK || number == 0 || is_tried[number]) {
        return status;
    }

    is_tried[number] = true;
    bool is_new = !hearth_lineage_is_known(hearth_node_lineage(nodes, number));
    if (!is_new && is_same_address(&known, &name)) {
        return HEARTH_OK;
    }

    struct hearth_err why = HEARTH_ERR_INIT;
    struct hearth_pg_address address =
        hearth_node_aliases_find(nodes->aliases, shard->host, shard->port);
    status = greet(nodes, number, &address, &why);
    note_met(nodes, number, &name, status == HEARTH_OK ? NULL : why.msg);
    if (status != HEARTH_OK && !is_new) {
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE, "node %s:%s: %s", name.host, name.port,
                           why.msg);
    }

    hearth_mutex_lock(&nodes->lock);
    nodes->nodes[number].known = name;
    hearth_mutex_unlock(&nodes->lock);

    return HEARTH_OK;
}

static enum hearth_status read_map(struct hearth_nodes *nodes, struct hearth_pg *pg,
                                   struct hearth_arena *arena, struct hearth_err *err)
{
    struct hearth_node_shard *shards = NULL;
    bool is_tried[HEARTH_MAX_NODES + 1] = {false};
    size_t n = 0;
    HEARTH_TRY(hearth_node_shards_read(pg, arena, &shards, &n, err));

    if (!nodes->is_checked) {
        HEARTH_TRY(check_places(pg, arena, shards, n, err));
        nodes->is_checked = true;
    }

    for (size_t i = 0; i < n; i++) {
        HEARTH_TRY(meet(nodes, &shards[i], is_tried, err));
    }

    return hearth_nodes_take(nodes, shards, n, err);
}

enum hearth_status hearth_nodes_refresh(struct hearth_nodes *nodes, struct hearth_pg *pg,
                                        struct hearth_err *err)
{
    hearth_mutex_lock(&nodes->lock);
    nodes->read_mono_ns = hearth_clock_mono_ns();
    uint64_t n_before = nodes->n_suspicions;
    hearth_mutex_unlock(&nodes->lock);

    struct hearth_arena arena;
    hearth_arena_init(&arena, MAX_REFRESH_BYTES);
    enum hearth_status status = read_map(nodes, pg, &arena, err);
    hearth_arena_release(&arena);
    if (status != HEARTH_OK) {
        hearth_nodes_suspect(nodes);
    }

    /* A suspicion that came while it was read may concern it, too. */
    hearth_mutex_lock(&nodes->lock);
    nodes->is_suspected = nodes->is_suspected || nodes->n_suspicions != n_before;
    hearth_mutex_unlock(&nodes->lock);

    return status;
}

void hearth_nodes_suspect(struct hearth_nodes *nodes)
{
    hearth_mutex_lock(&nodes->lock);
    nodes->is_suspected = true;
    nodes->n_suspicions++;
    hearth_mutex_unlock(&nodes->lock);
}

bool hearth_nodes_are_due(struct hearth_nodes *nodes)
{
    hearth_mutex_lock(&nodes->lock);
    int64_t each_ns = nodes->is_suspected ? REFRESH_LEAST_NS : REFRESH_EACH_NS;
    bool is_due =
        nodes->read_mono_ns == 0 || hearth_clock_mono_ns() - nodes->read_mono_ns >= each_ns;
    hearth_mutex_unlock(&nodes->lock);

    return is_due;
}

struct hearth_pool *hearth_node_pool(struct hearth_nodes *nodes, unsigned node)
{
    assert(node >= 1 && node <= HEARTH_MAX_NODES);

    hearth_mutex_lock(&nodes->lock);
    struct hearth_pool *pool = nodes->nodes[node].pool;
    hearth_mutex_unlock(&nodes->lock);
    assert(pool != NULL);

    return pool;
}

struct hearth_lineage *hearth_node_lineage(struct hearth_nodes *nodes, unsigned node)
{
    assert(node >= 1 && node <= HEARTH_MAX_NODES);

    return &nodes->nodes[node].lineage;
}

bool hearth_nodes_find_loss(struct hearth_nodes *nodes, char reason[256])
{
    bool is_lost = false;

    hearth_mutex_lock(&nodes->lock);
    for (unsigned i = 1; i <= nodes->last && !is_lost; i++) {
        struct node *node = &nodes->nodes[i];
        char why[256];
        is_lost = hearth_lineage_explain(&node->lineage, why);
        if (is_lost) {
            (void)snprintf(reason, 256, "node %.40s:%s: %.190s",
                           node->address == NULL ? "" : node->address->host,
                           node->address == NULL ? "" : node->address->port, why);
        }
    }
    hearth_mutex_unlock(&nodes->lock);

    return is_lost;
}

const struct hearth_pg_address *hearth_node_address(struct hearth_nodes *nodes, unsigned node)
{
    assert(node >= 1 && node <= HEARTH_MAX_NODES);

    hearth_mutex_lock(&nodes->lock);
    const struct hearth_pg_address *address = nodes->nodes[node].address;
    hearth_mutex_unlock(&nodes->lock);

    return address;
}

unsigned hearth_nodes_count(struct hearth_nodes *nodes)
{
    hearth_mutex_lock(&nodes->lock);
    unsigned n = nodes->last;
    hearth_mutex_unlock(&nodes->lock);

    return n;
}

size_t hearth_nodes_unknown_addresses(struct hearth_nodes *nodes, char name[264])
{
    hearth_mutex_lock(&nodes->lock);
    name[0] = '\0';
    size_t n = nodes->version == 0 ? 0 : hearth_node_aliases_unknown(nodes->aliases, name);
    hearth_mutex_unlock(&nodes->lock);

    return n;
}

/* ---- commits ---- */

uint64_t hearth_nodes_version(struct hearth_nodes *nodes)
{
    hearth_mutex_lock(&nodes->lock);
    uint64_t version = nodes->version;
    hearth_mutex_unlock(&nodes->lock);

    return version;
}

enum hearth_status hearth_nodes_ranges(struct hearth_nodes *nodes,
                                       struct hearth_node_range **ret_ranges, size_t *ret_n,
                                       uint64_t *ret_version, struct hearth_err *err)
{
    hearth_mutex_lock(&nodes->lock);
    size_t n = nodes->n_ranges;
    struct hearth_node_range *ranges = hearth_mem_calloc(n + 1, sizeof ranges[0]);
    if (ranges != NULL && n > 0) {
        memcpy(ranges, nodes->ranges, n * sizeof ranges[0]);
    }
    *ret_version = nodes->version;
    hearth_mutex_unlock(&nodes->lock);
    if (ranges == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the ranges of nodes");
    }

    *ret_ranges = ranges;
    *ret_n = n;

    return HEARTH_OK;
}

/* ---- whether nodes answer ---- */

static void log_reach(const struct hearth_pg_address *known, enum hearth_node_reach reach,
                      const char *why)
{
    static const char *const texts[] = {
        [HEARTH_NODE_ANSWERS] = "a node answers again",
        [HEARTH_NODE_AWAY] = "a node is away; profiles of its services wait",
        [HEARTH_NODE_CUT_OFF] = "only the coordinator reaches a node; profiles of its services "
                                "wait: see --node-addresses",
        [HEARTH_NODE_LOST] = "a node does not answer; profiles of its services wait, and queries "
                             "leave them out",
    };

    HEARTH_LOG(reach == HEARTH_NODE_ANSWERS ? HEARTH_LOG_INFO : HEARTH_LOG_WARN, "store",
               texts[reach], "host", known->host, "port", known->port, "reason", why, NULL);
}

void hearth_node_set_reach(struct hearth_nodes *nodes, unsigned number,
                           const struct hearth_pg_address *address, enum hearth_node_reach reach,
                           const char *why)
{
    assert(number >= 1 && number <= HEARTH_MAX_NODES);

    hearth_mutex_lock(&nodes->lock);
    struct node *node = &nodes->nodes[number];
    struct hearth_pg_address known = node->known;
    bool is_new = node->address == address && set_reach(nodes, node, reach, why);
    nodes->is_suspected |= reach != HEARTH_NODE_ANSWERS;
    nodes->n_suspicions += reach != HEARTH_NODE_ANSWERS;
    hearth_mutex_unlock(&nodes->lock);

    if (is_new) {
        log_reach(&known, reach, why);
    }
}

bool hearth_node_is_reached(struct hearth_nodes *nodes, unsigned node)
{
    assert(node >= 1 && node <= HEARTH_MAX_NODES);

    hearth_mutex_lock(&nodes->lock);
    bool is_reached = nodes->nodes[node].reach == HEARTH_NODE_ANSWERS;
    hearth_mutex_unlock(&nodes->lock);

    return is_reached;
}

void hearth_nodes_explain(struct hearth_nodes *nodes, char reason[256])
{
    static const char *const texts[] = {
        [HEARTH_NODE_AWAY] = "wait",
        [HEARTH_NODE_CUT_OFF] = "wait: hearthd cannot reach it, the coordinator can "
                                "(--node-addresses)",
        [HEARTH_NODE_LOST] = "wait, and queries lack them",
    };
    const struct node *worst = NULL;
    unsigned n = 0;

    hearth_mutex_lock(&nodes->lock);
    for (unsigned i = 1; i <= nodes->last; i++) {
        const struct node *node = &nodes->nodes[i];
        bool is_away = node->reach != HEARTH_NODE_ANSWERS;
        n += is_away;
        worst = is_away && (worst == NULL || node->reach > worst->reach) ? node : worst;
    }

    reason[0] = '\0';
    if (worst != NULL) {
        char more[32] = "";
        if (n > 1) {
            (void)snprintf(more, sizeof more, " (and %u more)", n - 1);
        }
        int64_t away_ns = hearth_clock_mono_ns() - worst->since_mono_ns;
        (void)snprintf(reason, 256, "profiles of services on node %.40s:%s%s %s: %.90s; for %lld s",
                       worst->known.host, worst->known.port, more, texts[worst->reach], worst->why,
                       (long long)(away_ns / HEARTH_NS_PER_SEC));
    }
    hearth_mutex_unlock(&nodes->lock);
}

const struct hearth_secret *hearth_nodes_url(const struct hearth_nodes *nodes)
{
    return nodes->options->url;
}

unsigned hearth_nodes_list(struct hearth_nodes *nodes,
                           struct hearth_node_view ret[HEARTH_MAX_NODES + 1])
{
    hearth_mutex_lock(&nodes->lock);
    unsigned last = nodes->last;
    for (unsigned i = 1; i <= last; i++) {
        const struct node *node = &nodes->nodes[i];
        ret[i] = (struct hearth_node_view){.address = node->address,
                                           .known = node->known,
                                           .reach = node->reach,
                                           .since_mono_ns = node->since_mono_ns};
        memcpy(ret[i].why, node->why, sizeof ret[i].why);
    }
    hearth_mutex_unlock(&nodes->lock);

    return last;
}

bool hearth_nodes_have_lost(const struct hearth_nodes *nodes)
{
    return atomic_load_explicit(&nodes->n_lost, memory_order_relaxed) > 0;
}

bool hearth_nodes_begin_look(struct hearth_nodes *nodes, struct hearth_cancel *cancel)
{
    bool has_waited = false, is_over = false;

    hearth_mutex_lock(&nodes->lock);
    while (nodes->is_looking && !is_over) {
        has_waited = true;
        is_over = hearth_cancel_check(cancel, NULL) != HEARTH_OK;
        (void)hearth_mutex_wait_until(&nodes->lock, &nodes->looked,
                                      hearth_clock_mono_ns() + LOOK_STEP_NS);
    }
    nodes->is_looking = nodes->is_looking || !has_waited;
    hearth_mutex_unlock(&nodes->lock);

    return !has_waited;
}

void hearth_nodes_end_look(struct hearth_nodes *nodes)
{
    hearth_mutex_lock(&nodes->lock);
    assert(nodes->is_looking);
    nodes->is_looking = false;
    (void)pthread_cond_broadcast(&nodes->looked);
    hearth_mutex_unlock(&nodes->lock);
}
