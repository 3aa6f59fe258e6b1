/*
 * network.c -- meters of network tasks, and the ends of their connections (contracts:
 * hearth/engine/meters.h, network.h).
 *
 * A set is one flush of an instance. Its meters are grouped by relation, end and component; each
 * group becomes one row. Meters with names that no table has (network_metrics.h) are ignored:
 * agents send more meters than are used.
 */
#include "hearth/base/clock.h"
#include "hearth/base/mem.h"
#include "hearth/engine/meters.h"
#include "hearth/model/network_metrics.h"
#include "hearth/store/store_agents.h"
#include "hearth/store/store_network.h"

#include "common/shown.h"
#include "network/network_internal.h"

#include <assert.h>

#define PREFIX HEARTH_STR("rover_net_p_")
/*
 * Interval at which a virtual process is reported again, to update its last_seen, and to restore it
 * if it was removed.
 */
#define SEEN_NS (30 * HEARTH_NS_PER_SEC)
/* Bytes of the addresses of one end in one flush; further addresses are not listed. */
#define MAX_ADDRESS_BYTES 8192

/* ---- ends ---- */

static bool is_process_id(struct hearth_str text)
{
    bool ok = text.n == HEARTH_ENTITY_HASH_TEXT;

    for (size_t i = 0; i < text.n && ok; i++) {
        ok = (text.p[i] >= '0' && text.p[i] <= '9') || (text.p[i] >= 'a' && text.p[i] <= 'f');
    }
    return ok;
}

enum hearth_status hearth_network_check_end(const struct hearth_network_end *end, const char *role,
                                            struct hearth_err *err)
{
    assert(end != NULL && role != NULL);

    /* A process is named by its id. */
    if (end->process_id.n > 0) {
        return is_process_id(end->process_id)
                   ? HEARTH_OK
                   : HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                                 "its %s process \"" HEARTH_STR_FMT "\" is not %d hex digits", role,
                                 HEARTH_STR_ARG(end->process_id), HEARTH_ENTITY_HASH_TEXT);
    }

    /* Any other end is local, or has an address. */
    bool ok = end->address.n <= HEARTH_ADDRESS_BYTES && hearth_str_utf8_valid(end->address) &&
              hearth_str_find(end->address, '\n', 0) == end->address.n;
    if (!ok || (!end->is_local && end->address.n == 0)) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "its %s is neither a process nor local nor an address of %d bytes at"
                           " most",
                           role, HEARTH_ADDRESS_BYTES);
    }

    return HEARTH_OK;
}

enum hearth_status hearth_network_split_call(struct hearth_str call_id,
                                             struct hearth_str *ret_source,
                                             struct hearth_str *ret_destination,
                                             struct hearth_err *err)
{
    size_t dash = hearth_str_find(call_id, '-', 0);

    assert(ret_source != NULL && ret_destination != NULL);

    *ret_source = hearth_str_n(call_id.p, dash);
    *ret_destination = dash == call_id.n ? HEARTH_STR("")
                                         : hearth_str_n(call_id.p + dash + 1, call_id.n - dash - 1);
    if (is_process_id(*ret_source) && is_process_id(*ret_destination)) {
        return HEARTH_OK;
    }

    return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                       "call_id \"" HEARTH_STR_FMT "\" is not two process ids with a dash between",
                       HEARTH_STR_ARG(call_id));
}

enum hearth_status hearth_network_check_names(struct hearth_str service, struct hearth_str instance,
                                              struct hearth_err *err)
{
    const struct hearth_str names[] = {service, instance};
    const char *const what[] = {"service", "instance"};

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(names); i++) {
        if (hearth_str_trim(names[i]).n == 0 || names[i].n > HEARTH_AGENT_NAME_BYTES ||
            !hearth_str_utf8_valid(names[i])) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                               "the %s is missing, or not 1 to %d bytes of UTF-8", what[i],
                               HEARTH_AGENT_NAME_BYTES);
        }
    }

    return HEARTH_OK;
}

enum hearth_status hearth_network_check_time(const struct hearth_call *call, int64_t at_ms,
                                             struct hearth_err *err)
{
    struct hearth_limits limits;

    hearth_call_limits(call, &limits);
    int64_t now_ms = hearth_clock_wall_ns() / HEARTH_NS_PER_MS;
    int64_t older_ms = limits.reject_older_than_ns / HEARTH_NS_PER_MS;
    int64_t newer_ms = limits.reject_newer_than_ns / HEARTH_NS_PER_MS;

    /* Check both ends of the ingestion window. */
    if (at_ms <= 0 || (older_ms > 0 && at_ms < now_ms - older_ms)) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "its time %lld ms is older than reject-older-than allows",
                           (long long)at_ms);
    }

    if (newer_ms > 0 && at_ms > now_ms + newer_ms) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "its time %lld ms is further in the future than reject-newer-than"
                           " allows",
                           (long long)at_ms);
    }

    return HEARTH_OK;
}

/* Whether a process was reported within SEEN_NS; if not, it counts as reported now. */
static bool note_reported(struct hearth_network *network, uint64_t key, int64_t now_ns)
{
    size_t at = (size_t)(key % HEARTH_NETWORK_SEEN);

    hearth_mutex_lock(&network->lock);
    bool seen = network->seen[at].key == key && network->seen[at].mono_ns > now_ns - SEEN_NS;
    network->seen[at].key = key;
    network->seen[at].mono_ns = seen ? network->seen[at].mono_ns : now_ns;
    hearth_mutex_unlock(&network->lock);

    return seen;
}

static void forget_reported(struct hearth_network *network, uint64_t key)
{
    hearth_mutex_lock(&network->lock);
    network->seen[key % HEARTH_NETWORK_SEEN].key = 0;
    network->seen[key % HEARTH_NETWORK_SEEN].mono_ns = 0;
    hearth_mutex_unlock(&network->lock);
}

static enum hearth_status report_virtual_processes(const struct hearth_call *call,
                                                   struct hearth_str service,
                                                   struct hearth_str instance,
                                                   const struct hearth_network_end *ends, size_t n,
                                                   struct hearth_err *err)
{
    struct hearth_network *network = call->engine->network;
    struct hearth_process *due = hearth_arena_calloc(call->arena, n, sizeof *due);
    uint64_t *keys = hearth_arena_array(call->arena, n, sizeof *keys);

    assert(ends != NULL || n == 0);

    if (due == NULL || keys == NULL) {
        return HEARTH_FAIL_ARENA(err, call->arena);
    }

    /* List the processes that were not reported lately. */
    int64_t now_ns = hearth_clock_mono_ns();
    uint64_t tenant = hearth_hash64(call->tenant.p, call->tenant.n, hearth_hash_process_seed());
    size_t n_due = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t key = hearth_hash64(ends[i].process_id.p, ends[i].process_id.n, tenant) | 1;
        if (ends[i].name.n == 0 || (network != NULL && note_reported(network, key, now_ns))) {
            continue;
        }
        keys[n_due] = key;
        due[n_due++] =
            (struct hearth_process){.service = service,
                                    .instance = instance,
                                    .name = ends[i].name,
                                    .detect_type = HEARTH_DETECT_VIRTUAL,
                                    .last_seen_ms = hearth_clock_wall_ns() / HEARTH_NS_PER_MS};
    }

    if (n_due == 0) {
        return HEARTH_OK;
    }

    /* Store them; after a failure they are due again. */
    struct hearth_limits limits;
    hearth_call_limits(call, &limits);
    struct hearth_agent_report report = {
        .processes = due,
        .n_processes = n_due,
        .max_instances = limits.max_agent_instances,
        .max_processes = limits.max_agent_processes,
    };
    enum hearth_status status = hearth_store_report_agents(HEARTH_CALL_SCOPE(call), &report, err);
    for (size_t i = 0; status != HEARTH_OK && network != NULL && i < n_due; i++) {
        forget_reported(network, keys[i]);
    }

    return status;
}

enum hearth_status hearth_network_resolve(const struct hearth_call *call, struct hearth_str service,
                                          struct hearth_str instance,
                                          struct hearth_network_end *ends, size_t n,
                                          struct hearth_err *err)
{
    struct hearth_str *addresses = hearth_arena_array(call->arena, n, sizeof *addresses);
    struct hearth_str *names = hearth_arena_array(call->arena, n, sizeof *names);

    assert(ends != NULL || n == 0);

    if (addresses == NULL || names == NULL) {
        return HEARTH_FAIL_ARENA(err, call->arena);
    }

    /* Look up the names of all remote addresses at once. */
    size_t n_addresses = 0, at = 0;
    for (size_t i = 0; i < n; i++) {
        if (ends[i].process_id.n == 0 && !ends[i].is_local) {
            addresses[n_addresses++] = ends[i].address;
        }
    }

    HEARTH_TRY(hearth_network_names(call, addresses, n_addresses, names, err));

    /* Name each end that is not a process, and derive its process id. */
    for (size_t i = 0; i < n; i++) {
        if (ends[i].process_id.n > 0) {
            continue;
        }
        if (ends[i].is_local) {
            ends[i].name = HEARTH_STR(HEARTH_UNKNOWN_LOCAL);
        } else {
            ends[i].name = names[at].n > 0 ? names[at] : HEARTH_STR(HEARTH_UNKNOWN_REMOTE);
            at++;
        }

        struct hearth_entity_hash id;
        if (!hearth_process_public_id(service, instance, ends[i].name, &id)) {
            return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the id of a process");
        }
        ends[i].process_id = hearth_arena_str(call->arena, hearth_str_c(id.text));
        if (ends[i].process_id.p == NULL) {
            return HEARTH_FAIL_ARENA(err, call->arena);
        }
    }

    return report_virtual_processes(call, service, instance, ends, n, err);
}

/* ---- one meter ---- */

static struct hearth_str find_label(const struct hearth_meter *meter, const char *name)
{
    for (size_t i = 0; i < meter->n_labels; i++) {
        if (hearth_str_eq_c(meter->labels[i].name, name)) {
            return meter->labels[i].value;
        }
    }

    return HEARTH_STR("");
}

/* A meter to be stored, and its relation. */
struct kept_meter {
    const struct hearth_meter *meter;
    unsigned number;
    size_t relation; /* index */
};

struct relation {
    struct hearth_network_end ends[2]; /* client, server */
    enum hearth_network_side side;
    enum hearth_network_component component;
    size_t row; /* index */
};

static enum hearth_status read_meter_relation(const struct hearth_meter *meter,
                                              struct relation *ret, struct hearth_err *err)
{
    static const char *const labels[2][3] = {
        {"client_process_id", "client_local", "client_address"},
        {"server_process_id", "server_local", "server_address"}};
    static const char *const roles[2] = {"client", "server"};

    /* Read both ends. */
    *ret = (struct relation){0};
    for (int i = 0; i < 2; i++) {
        ret->ends[i] = (struct hearth_network_end){
            .process_id = find_label(meter, labels[i][0]),
            .is_local = hearth_str_eq_c(find_label(meter, labels[i][1]), "true"),
            .address = find_label(meter, labels[i][2])};
        HEARTH_TRY(hearth_network_check_end(&ret->ends[i], roles[i], err));
    }

    /* Read the side and the component. */
    struct hearth_str side = find_label(meter, "side");
    if (!hearth_str_eq_c(side, "client") && !hearth_str_eq_c(side, "server")) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "its side \"" HEARTH_STR_FMT "\" is neither client nor server",
                           HEARTH_STR_ARG(side));
    }

    ret->side = hearth_str_eq_c(side, "client") ? HEARTH_NETWORK_CLIENT : HEARTH_NETWORK_SERVER;
    bool is_http = hearth_str_eq_c(find_label(meter, "protocol"), "http");
    bool is_ssl = hearth_str_eq_c(find_label(meter, "is_ssl"), "true");
    ret->component = is_http  ? (is_ssl ? HEARTH_COMPONENT_HTTPS : HEARTH_COMPONENT_HTTP)
                     : is_ssl ? HEARTH_COMPONENT_TLS
                              : HEARTH_COMPONENT_TCP;

    return HEARTH_OK;
}

static enum hearth_status add_meter_to_sums(struct hearth_network_sums *sums,
                                            const struct kept_meter *kept, struct hearth_err *err)
{
    const struct hearth_meter *meter = kept->meter;
    bool is_histogram = hearth_network_meters[kept->number].kind == HEARTH_NETWORK_HISTOGRAM;

    /* A number is one value. */
    if (!is_histogram) {
        if (meter->n_buckets > 0) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "it has buckets, but is a number");
        }
        return hearth_network_add_value(sums, kept->number, find_label(meter, "code"), meter->value,
                                        err);
    }

    /* A histogram is several buckets. */
    for (size_t i = 0; i < meter->n_buckets; i++) {
        const struct hearth_network_bucket bucket = {meter->buckets[i].lower_bound,
                                                     meter->buckets[i].count};
        HEARTH_TRY(hearth_network_add_bucket(sums, kept->number, bucket, err));
    }

    return HEARTH_OK;
}

/* ---- a set ---- */

struct meter_gathering {
    const struct hearth_call *call;
    const struct hearth_meter_set *set;
    struct kept_meter *kept;
    struct relation *relations; /* as agents sent them */
    struct hearth_network_flush *rows;
    struct hearth_network_sums *sums; /* [n_rows] */
    struct hearth_buf *addresses;     /* [2 * n_rows]: addresses of source and destination */
    size_t n_kept, n_relations, n_rows;
};

static bool is_same_end(const struct hearth_network_end *a, const struct hearth_network_end *b)
{
    return a->is_local == b->is_local && hearth_str_eq(a->process_id, b->process_id) &&
           hearth_str_eq(a->address, b->address);
}

static uint64_t hash_end(const struct hearth_network_end *end, uint64_t seed)
{
    seed = hearth_hash64(end->process_id.p, end->process_id.n, seed + end->is_local);
    return hearth_hash64(end->address.p, end->address.n, seed);
}

static enum hearth_status prefix_meter_error(const struct hearth_meter *meter,
                                             enum hearth_status status, struct hearth_err *err)
{
    if (status != HEARTH_OK) {
        hearth_err_prefix(err, "meter \"" HEARTH_STR_FMT "\"", HEARTH_STR_ARG(meter->name));
    }
    return status == HEARTH_OUT_OF_RANGE ? HEARTH_INVALID_ARGUMENT : status;
}

/* Find the meters to be stored, and their distinct relations. */
static enum hearth_status find_relations(struct meter_gathering *g, struct hearth_idmap *map,
                                         struct hearth_err *err)
{
    for (size_t i = 0; i < g->set->n_meters; i++) {
        const struct hearth_meter *meter = &g->set->meters[i];
        if (!hearth_str_starts(meter->name, PREFIX)) {
            continue;
        }

        unsigned number = hearth_network_meter_find(
            hearth_str_n(meter->name.p + PREFIX.n, meter->name.n - PREFIX.n), false);
        if (number == HEARTH_NETWORK_METERS) {
            continue;
        }

        struct relation relation;
        HEARTH_TRY(prefix_meter_error(meter, read_meter_relation(meter, &relation, err), err));
        uint64_t seed = (uint64_t)relation.side << 8 | (uint64_t)relation.component;
        struct hearth_hash128 key = {hash_end(&relation.ends[0], seed),
                                     hash_end(&relation.ends[1], ~seed)};
        bool is_new = false;
        uint32_t at = hearth_idmap_intern(map, key, (uint32_t)g->n_relations, &is_new);
        if (at == HEARTH_IDMAP_NONE) {
            return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for %zu meters", g->set->n_meters);
        }
        if (is_new) {
            g->relations[g->n_relations++] = relation;
        } else if (!is_same_end(&relation.ends[0], &g->relations[at].ends[0]) ||
                   !is_same_end(&relation.ends[1], &g->relations[at].ends[1])) {
            return HEARTH_FAIL(err, HEARTH_UNAVAILABLE, "two relations have one hash; retry");
        }

        g->kept[g->n_kept++] = (struct kept_meter){meter, number, at};
    }

    return HEARTH_OK;
}

static enum hearth_status resolve_relations(struct meter_gathering *g, struct hearth_err *err)
{
    size_t n = 2 * g->n_relations;
    struct hearth_network_end *ends = hearth_arena_array(g->call->arena, n, sizeof *ends);

    if (ends == NULL) {
        return HEARTH_FAIL_ARENA(err, g->call->arena);
    }

    /* Resolve the ends of all relations at once. */
    for (size_t i = 0; i < n; i++) {
        ends[i] = g->relations[i / 2].ends[i % 2];
    }

    HEARTH_TRY(hearth_network_resolve(g->call, g->set->service, g->set->instance, ends, n, err));
    for (size_t i = 0; i < n; i++) {
        g->relations[i / 2].ends[i % 2] = ends[i];
    }

    return HEARTH_OK;
}

static void add_end_address(struct hearth_buf *list, const struct hearth_network_end *end)
{
    /* Ignore ends without address, and addresses beyond the limit. */
    if (end->name.n == 0 || end->address.n == 0 ||
        list->n + end->address.n + 1 > MAX_ADDRESS_BYTES) {
        return;
    }

    /* Each address is listed once. */
    struct hearth_str have = hearth_buf_view(list);
    for (size_t at = 0; at < have.n;) {
        size_t to = hearth_str_find(have, '\n', at);
        if (hearth_str_eq(hearth_str_n(have.p + at, to - at), end->address)) {
            return;
        }
        at = to + 1;
    }

    hearth_buf_cstr(list, list->n > 0 ? "\n" : "");
    hearth_buf_str(list, end->address);
}

/* Make the rows; relations with the same processes at their ends share one. */
static enum hearth_status make_relation_rows(struct meter_gathering *g, struct hearth_idmap *map,
                                             struct hearth_err *err)
{
    /* Give each relation its row. */
    for (size_t i = 0; i < g->n_relations; i++) {
        struct relation *relation = &g->relations[i];
        struct hearth_str source = relation->ends[0].process_id;
        struct hearth_str destination = relation->ends[1].process_id;
        uint64_t seed = (uint64_t)relation->side << 8 | (uint64_t)relation->component;
        struct hearth_hash128 key = {hearth_hash64(source.p, source.n, seed),
                                     hearth_hash64(destination.p, destination.n, ~seed)};
        bool is_new = false;
        uint32_t at = hearth_idmap_intern(map, key, (uint32_t)g->n_rows, &is_new);
        if (at == HEARTH_IDMAP_NONE) {
            return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for %zu relations",
                               g->n_relations);
        }

        relation->row = at;
        if (is_new) {
            hearth_network_sums_init(&g->sums[at], g->call->arena);
            hearth_buf_init(&g->addresses[2 * at], 0);
            hearth_buf_init(&g->addresses[2 * at + 1], 0);
            g->rows[at] = (struct hearth_network_flush){.source_id = source,
                                                        .destination_id = destination,
                                                        .side = relation->side,
                                                        .component = relation->component};
            g->n_rows++;
        }
        add_end_address(&g->addresses[2 * at], &relation->ends[0]);
        add_end_address(&g->addresses[2 * at + 1], &relation->ends[1]);
    }

    /* Add each meter to the sums of its row. */
    for (size_t i = 0; i < g->n_kept; i++) {
        struct kept_meter *kept = &g->kept[i];
        HEARTH_TRY(prefix_meter_error(
            kept->meter, add_meter_to_sums(&g->sums[g->relations[kept->relation].row], kept, err),
            err));
    }

    return HEARTH_OK;
}

static enum hearth_status write_relation_rows(struct meter_gathering *g, struct hearth_err *err)
{
    struct hearth_arena *arena = g->call->arena;

    /* Encode the sums of each row. */
    for (size_t i = 0; i < g->n_rows; i++) {
        struct hearth_buf payload;
        hearth_buf_init(&payload, 0);
        hearth_network_encode(&g->sums[i], &payload);
        bool failed = hearth_buf_failed(&payload) || hearth_buf_failed(&g->addresses[2 * i]) ||
                      hearth_buf_failed(&g->addresses[2 * i + 1]);

        if (!failed) {
            g->rows[i].payload = hearth_arena_str(arena, hearth_buf_view(&payload));
            g->rows[i].source_addresses = hearth_buf_view(&g->addresses[2 * i]);
            g->rows[i].destination_addresses = hearth_buf_view(&g->addresses[2 * i + 1]);
        }
        hearth_buf_release(&payload);
        if (failed || arena->refused) {
            return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for %zu relations", g->n_rows);
        }
    }

    /* Store all rows. */
    struct hearth_network_report report = {
        .service = g->set->service,
        .instance = g->set->instance,
        .at_ms = g->set->at_ms,
        .flushes = g->rows,
        .n = g->n_rows,
    };

    return hearth_store_network_add(HEARTH_CALL_SCOPE(g->call), &report, err);
}

static enum hearth_status store_meters(struct meter_gathering *g, struct hearth_err *err)
{
    struct hearth_idmap map;

    hearth_idmap_init(&map);

    /* Find the meters of network tasks; without any, nothing else is checked. */
    enum hearth_status status = find_relations(g, &map, err);
    if (status == HEARTH_OK && g->n_kept > 0) {
        status = hearth_network_check_names(g->set->service, g->set->instance, err);
    }

    if (status == HEARTH_OK && g->n_kept > 0) {
        status = hearth_call_check_service(g->call, g->set->service, err);
    }

    if (status == HEARTH_OK && g->n_kept > 0) {
        status = prefix_meter_error(g->kept[0].meter,
                                    hearth_network_check_time(g->call, g->set->at_ms, err), err);
    }

    /* Resolve the ends. */
    if (status == HEARTH_OK && g->n_kept > 0) {
        status = resolve_relations(g, err);
    }

    /* Make and write the rows. */
    if (status == HEARTH_OK && g->n_kept > 0) {
        g->rows = hearth_arena_array(g->call->arena, g->n_relations, sizeof *g->rows);
        g->sums = hearth_arena_array(g->call->arena, g->n_relations, sizeof *g->sums);
        g->addresses = hearth_arena_array(g->call->arena, 2 * g->n_relations, sizeof *g->addresses);
        hearth_idmap_reset(&map);
        if (g->call->arena->refused) {
            status = HEARTH_FAIL_ARENA(err, g->call->arena);
        } else {
            status = make_relation_rows(g, &map, err);
        }
        status = status == HEARTH_OK ? write_relation_rows(g, err) : status;
        for (size_t i = 0; i < 2 * g->n_rows; i++) {
            hearth_buf_release(&g->addresses[i]);
        }
    }

    hearth_idmap_release(&map);

    return status;
}

enum hearth_status hearth_network_take(const struct hearth_call *call,
                                       const struct hearth_meter_set *set, size_t *ret_n_taken,
                                       struct hearth_err *err)
{
    struct meter_gathering g = {.call = call, .set = set};

    assert(call != NULL && ret_n_taken != NULL);

    /* Both lists have at most one element per meter. */
    g.kept = hearth_arena_array(call->arena, set->n_meters, sizeof *g.kept);
    g.relations = hearth_arena_array(call->arena, set->n_meters, sizeof *g.relations);
    *ret_n_taken = 0;
    if (g.kept == NULL || g.relations == NULL) {
        return HEARTH_FAIL_ARENA(err, call->arena);
    }

    HEARTH_TRY(store_meters(&g, err));
    *ret_n_taken = g.n_kept;

    return HEARTH_OK;
}
