/* doctor_nodes.c -- the doctor's rules for the nodes of Citus: docs/how-to/scale-out.md. */
#include "hearth/base/clock.h"

#include "doctor/doctor.h"
#include "nodes/nodes.h"
#include "pg/store_state.h"

#include <assert.h>
#include <inttypes.h>

/* A prepared transaction that is older was left: Citus ends others in seconds. */
#define LEFT_S 60
/* Connections that PostgreSQL keeps for superusers, if nobody has changed that. */
#define RESERVED 3
/* Smaller databases are not worth balancing. */
#define BALANCED_BYTES (256 * HEARTH_MB)

enum node_rule {
    RULE_ANSWERS,
    RULE_VERSIONS,
    RULE_PREPARED,
    RULE_MODIFY_MODE,
    RULE_CACHED,
    RULE_RECOVER,
    RULE_MAX_PREPARED,
    RULE_CONNECTIONS,
    RULE_WAL_LEVEL,
};

static const struct {
    enum node_rule rule;
    const char *name;
    enum hearth_verdict verdict; /* of a node that breaks the rule */
    const char *advice;
} RULES[] = {
    {RULE_ANSWERS, "nodes", HEARTH_VERDICT_WRONG,
     "its services cannot be pushed or queried, and roll-ups wait: start it, or look at its log"},
    {RULE_VERSIONS, "nodes: versions", HEARTH_VERDICT_ADVICE,
     "let all nodes run the same PostgreSQL and the same Citus"},
    {RULE_PREPARED, "nodes: prepared transactions", HEARTH_VERDICT_WRONG,
     "profiles in it are stored, but not visible, and roll-ups wait for it: SELECT "
     "recover_prepared_transactions() on the node that began it, whose group is the first number "
     "of its gid in pg_prepared_xacts"},
    {RULE_MODIFY_MODE, "nodes: citus.multi_shard_modify_mode", HEARTH_VERDICT_ADVICE,
     "a commit opens a connection for each shard: set it to sequential"},
    {RULE_CACHED, "nodes: citus.max_cached_conns_per_worker", HEARTH_VERDICT_ADVICE,
     "each commit opens new connections: set it to 8"},
    {RULE_RECOVER, "nodes: citus.recover_2pc_interval", HEARTH_VERDICT_ADVICE,
     "after a failure, profiles stay invisible and roll-ups wait for so long: set it to 1s"},
    {RULE_MAX_PREPARED, "nodes: max_prepared_transactions", HEARTH_VERDICT_WRONG,
     "commits over several nodes fail when it is exhausted: set it to twice max_connections"},
    {RULE_CONNECTIONS, "nodes: max_connections", HEARTH_VERDICT_ADVICE,
     "a node that is full refuses connections, and answers then lack its services: raise "
     "max_connections, lower --readers, or let --node-addresses name poolers"},
    {RULE_WAL_LEVEL, "nodes: wal_level", HEARTH_VERDICT_ADVICE,
     "shards can move only while pushes wait: set it to logical"},
};

/* Return whether the node obeys, and what it has. Other rules than the first need an answer. */
static bool obeys_node_rule(struct hearth_doctor *doctor, enum node_rule rule,
                            const struct hearth_node *node, const struct hearth_node *first,
                            const char **ret_found)
{
    struct hearth_arena *arena = doctor->arena;
    int64_t n_needed;

    switch (rule) {
    case RULE_ANSWERS:
        *ret_found = node->failure.n == 0 ? "answers"
                                          : hearth_arena_printf(arena, HEARTH_STR_FMT,
                                                                HEARTH_STR_ARG(node->failure));
        return node->failure.n == 0;
    case RULE_VERSIONS:
        *ret_found =
            hearth_arena_printf(arena, "PostgreSQL " HEARTH_STR_FMT ", Citus " HEARTH_STR_FMT,
                                HEARTH_STR_ARG(node->postgres), HEARTH_STR_ARG(node->citus));
        return hearth_str_eq(node->postgres, first->postgres) &&
               hearth_str_eq(node->citus, first->citus);
    case RULE_PREPARED:
        *ret_found =
            hearth_arena_printf(arena, "%" PRId64 " transactions, the oldest is %" PRId64 " s old",
                                node->n_prepared, node->oldest_prepared_s);
        return node->oldest_prepared_s <= LEFT_S;
    case RULE_MODIFY_MODE:
        *ret_found = hearth_arena_printf(arena, HEARTH_STR_FMT, HEARTH_STR_ARG(node->modify_mode));
        return hearth_str_eq_c(node->modify_mode, "sequential");
    case RULE_CACHED:
        *ret_found = hearth_arena_printf(arena, "%" PRId64, node->cached_connections);
        return node->cached_connections >= 8;
    case RULE_RECOVER:
        *ret_found = hearth_arena_printf(arena, "%" PRId64 " ms", node->recover_2pc_ms);
        return node->recover_2pc_ms > 0 && node->recover_2pc_ms <= 10000;
    case RULE_MAX_PREPARED:
        *ret_found = hearth_arena_printf(arena, "%" PRId64 ", with %" PRId64 " connections",
                                         node->max_prepared, node->max_connections);
        return node->max_prepared >= node->max_connections;
    case RULE_CONNECTIONS:
        n_needed = hearth_doctor_count_connections(doctor, !node->is_coordinator);
        *ret_found = hearth_arena_printf(
            arena, "%" PRId64 " hearthd can need %" PRId64 " of %" PRId64 " connections",
            doctor->n_servers, n_needed, node->max_connections - RESERVED);
        return n_needed <= node->max_connections - RESERVED;
    case RULE_WAL_LEVEL:
        *ret_found = hearth_arena_printf(arena, HEARTH_STR_FMT, HEARTH_STR_ARG(node->wal_level));
        return hearth_str_eq_c(node->wal_level, "logical");
    }

    HEARTH_BUG("rule of nodes");
}

/* Report a rule once: the first node that breaks it, and how many do. */
static void report_node_rule(struct hearth_doctor *doctor, size_t rule,
                             const struct hearth_node_layout *layout)
{
    const struct hearth_node *first = NULL, *bad = NULL;
    const char *found = "no node answers", *found_bad = NULL;
    size_t n = 0, n_bad = 0;

    for (size_t i = 0; i < layout->n_nodes; i++) {
        const struct hearth_node *node = &layout->nodes[i];
        if (RULES[rule].rule != RULE_ANSWERS && node->failure.n > 0) {
            continue;
        }

        const char *has;
        first = first == NULL ? node : first;
        n++;
        bool obeys = obeys_node_rule(doctor, RULES[rule].rule, node, first, &has);
        found = n == 1 ? has : found;
        if (!obeys) {
            n_bad++;
            bad = bad == NULL ? node : bad;
            found_bad = found_bad == NULL ? has : found_bad;
        }
    }

    const char *text =
        bad == NULL ? hearth_arena_printf(doctor->arena, "%s (%zu nodes)", found, n)
                    : hearth_arena_printf(doctor->arena, HEARTH_STR_FMT ": %s (%zu of %zu nodes)",
                                          HEARTH_STR_ARG(bad->name), found_bad, n_bad, n);
    hearth_doctor_report(doctor, RULES[rule].name,
                         bad == NULL ? HEARTH_VERDICT_OK : RULES[rule].verdict,
                         text == NULL ? "" : text, RULES[rule].advice);
}

/* How evenly the bytes lie on the nodes that may hold them. */
static void report_balance(struct hearth_doctor *doctor, const struct hearth_node_layout *layout)
{
    const struct hearth_node *fullest = NULL;
    int64_t n_bytes = 0, n_holding = 0;
    for (size_t i = 0; i < layout->n_nodes; i++) {
        const struct hearth_node *node = &layout->nodes[i];
        n_bytes += node->n_bytes;
        n_holding += node->holds_data && node->failure.n == 0;
        fullest = fullest == NULL || node->n_bytes > fullest->n_bytes ? node : fullest;
    }

    if (fullest == NULL || n_holding == 0) {
        return;
    }

    int64_t mean = n_bytes / n_holding;
    bool is_large = n_bytes >= BALANCED_BYTES;
    bool is_uneven = is_large && fullest->n_bytes > mean + mean / 2;
    hearth_doctor_report(
        doctor, "nodes: balance", is_uneven ? HEARTH_VERDICT_ADVICE : HEARTH_VERDICT_OK,
        hearth_arena_printf(doctor->arena,
                            HEARTH_STR_FMT " holds %" PRId64 " MiB, %" PRId64 " MiB are the mean",
                            HEARTH_STR_ARG(fullest->name), fullest->n_bytes >> 20, mean >> 20),
        "SELECT citus_rebalance_start(rebalance_strategy => 'by_disk_size') on the coordinator; "
        "hearthd may run");

    bool is_huge = is_large && n_holding > 1 && layout->n_largest_bytes > mean;
    hearth_doctor_report(
        doctor, "nodes: largest group of services",
        is_huge ? HEARTH_VERDICT_ADVICE : HEARTH_VERDICT_OK,
        hearth_arena_printf(doctor->arena,
                            "%" PRId64 " MiB on " HEARTH_STR_FMT ", with " HEARTH_STR_FMT,
                            layout->n_largest_bytes >> 20, HEARTH_STR_ARG(layout->largest_node),
                            HEARTH_STR_ARG(layout->largest_services)),
        "it is larger than an even share of a node, and moves only as a whole: give its node more "
        "disk and processors, or keep less of its services");
}

/* Memory may rely on commits that a promoted standby lacks: only its own connections tell. */
static void report_no_connections(struct hearth_doctor *doctor)
{
    if (!doctor->store->options.node_connections) {
        hearth_doctor_report(doctor, "nodes: reached by this hearthd", HEARTH_VERDICT_ADVICE,
                             "not tried: node-connections is false",
                             "after a standby of a node was promoted, or a node was restored, "
                             "restart every hearthd, which does not notice it");
    }
}

/*
 * Whether this server reaches the nodes at its own addresses; the check before says what the
 * coordinator reaches.
 */
static void report_reach(struct hearth_doctor *doctor)
{
    struct hearth_nodes *nodes = doctor->store->nodes;
    struct hearth_node_view views[HEARTH_MAX_NODES + 1];
    unsigned n_used = 0, n_away = 0;

    if (nodes == NULL) {
        report_no_connections(doctor);
        return;
    }

    const struct hearth_node_view *worst = &views[0];
    unsigned last = hearth_nodes_list(nodes, views);
    views[0] = (struct hearth_node_view){.reach = HEARTH_NODE_ANSWERS};
    for (unsigned i = 1; i <= last; i++) {
        bool is_used = views[i].address != NULL;
        n_used += is_used;
        n_away += is_used && views[i].reach != HEARTH_NODE_ANSWERS;
        worst = is_used && views[i].reach > worst->reach ? &views[i] : worst;
    }

    struct hearth_arena *arena = doctor->arena;
    const char *found = hearth_arena_printf(arena, "%u of %u nodes", n_used - n_away, n_used);
    if (n_away > 0) {
        int64_t away_ns = hearth_clock_mono_ns() - worst->since_mono_ns;
        found = hearth_arena_printf(
            arena, "%s; not %s:%s, which Citus has at %s:%s, for %" PRId64 " s: %s", found,
            worst->address->host, worst->address->port, worst->known.host, worst->known.port,
            away_ns / HEARTH_NS_PER_SEC, worst->why);
    }

    hearth_doctor_report(
        doctor, "nodes: reached by this hearthd",
        n_away > 0 ? HEARTH_VERDICT_WRONG : HEARTH_VERDICT_OK, found,
        worst->reach == HEARTH_NODE_CUT_OFF
            ? "only the coordinator reaches it, so profiles of its services wait: name the address "
              "for hearthd in --node-addresses, or set --node-connections=false"
            : "profiles of its services wait: start it, or look at its log");
}

/* Whether node-addresses has an effect, if it is given. */
static void report_addresses(struct hearth_doctor *doctor)
{
    const char *given = doctor->store->options.node_addresses;
    struct hearth_nodes *nodes = doctor->store->nodes;
    char name[264] = "";

    if (given == NULL || given[0] == '\0') {
        return;
    }

    size_t n = nodes == NULL ? 0 : hearth_nodes_unknown_addresses(nodes, name);
    const char *found = "each is that of a node";
    if (nodes == NULL) {
        found = "not used: node-connections is false";
    } else if (n > 0) {
        found =
            hearth_arena_printf(doctor->arena, "%zu name a node that has no shards: %s", n, name);
    }

    hearth_doctor_report(
        doctor, "nodes: node-addresses",
        nodes == NULL || n > 0 ? HEARTH_VERDICT_ADVICE : HEARTH_VERDICT_OK, found,
        "write the name and port by which Citus knows the node (SELECT nodename, nodeport FROM "
        "pg_dist_node), or leave the entry out");
}

bool hearth_doctor_check_nodes(struct hearth_doctor *doctor,
                               const struct hearth_node_layout *layout)
{
    if (layout->citus.n == 0) {
        return true;
    }

    bool is_partly = layout->n_distributed > 0 && layout->n_distributed < layout->n_tables;
    hearth_doctor_report(
        doctor, "citus", is_partly ? HEARTH_VERDICT_WRONG : HEARTH_VERDICT_OK,
        hearth_arena_printf(doctor->arena,
                            "version " HEARTH_STR_FMT ", %zu of %zu data tables are distributed",
                            HEARTH_STR_ARG(layout->citus), layout->n_distributed, layout->n_tables),
        "stop every hearthd and run hearthd scale-out again: it goes on where it was stopped");
    if (layout->n_distributed == 0) {
        return true;
    }

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(RULES); i++) {
        report_node_rule(doctor, i, layout);
    }

    report_reach(doctor);
    report_addresses(doctor);
    report_balance(doctor, layout);
    hearth_doctor_report(
        doctor, "nodes: replica identity",
        layout->n_unidentified > 0 ? HEARTH_VERDICT_ADVICE : HEARTH_VERDICT_OK,
        hearth_arena_printf(doctor->arena, "%" PRId64 " distributed tables lack one",
                            layout->n_unidentified),
        "shards can move only while pushes wait: stop every hearthd and run hearthd scale-out");

    for (size_t i = 0; i < layout->n_nodes; i++) {
        if (layout->nodes[i].failure.n > 0) {
            return false;
        }
    }

    return true;
}
