/*
 * network_answers.c -- topology, and metrics over time (contract: hearth/engine/network.h).
 *
 * Rows are sorted by relation, end and time. So one minute of one end of one relation is summed at
 * a time, and its points are added to the lines of that end.
 */
#include "hearth/base/clock.h"
#include "hearth/model/network_metrics.h"
#include "hearth/store/store_agents.h"
#include "hearth/store/store_network.h"

#include "common/shown.h"
#include "network/network_internal.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#define MINUTE_MS INT64_C(60000)
/* Maximum number of addresses listed per node. */
#define MAX_ADDRESSES 100

static const int32_t PERCENTILES[] = {50, 75, 90, 95, 99};

const char *hearth_network_component_name(enum hearth_network_component component)
{
    switch (component) {
    case HEARTH_COMPONENT_HTTP:
        return "http";
    case HEARTH_COMPONENT_HTTPS:
        return "https";
    case HEARTH_COMPONENT_TLS:
        return "tls";
    case HEARTH_COMPONENT_TCP:
        break;
    }

    return "tcp";
}

static enum hearth_status make_network_range(const struct hearth_query *query,
                                             struct hearth_str service, struct hearth_str instance,
                                             struct hearth_network_range *ret,
                                             struct hearth_err *err)
{
    int64_t start_ms = query->start_ms, end_ms = query->end_ms;

    HEARTH_TRY(hearth_network_check_names(service, instance, err));
    if (start_ms <= 0 || end_ms < start_ms || end_ms > INT64_MAX - 2 * MINUTE_MS) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "start_ms %lld and end_ms %lld are not a range", (long long)start_ms,
                           (long long)end_ms);
    }

    *ret = (struct hearth_network_range){.service = service,
                                         .instance = instance,
                                         .from_ms = start_ms - start_ms % MINUTE_MS,
                                         .to_ms = end_ms - end_ms % MINUTE_MS + MINUTE_MS};

    return HEARTH_OK;
}

static struct hearth_str make_call_id(struct hearth_arena *arena, struct hearth_str source,
                                      struct hearth_str destination)
{
    return hearth_str_c(hearth_arena_printf(arena, "%.*s-%.*s", (int)source.n, source.p,
                                            (int)destination.n, destination.p));
}

/* ---- topology ---- */

struct topology_state {
    const struct hearth_call *call;
    const struct hearth_network_flush *relations;
    size_t n_relations;
    const struct hearth_process *processes; /* processes of the instance */
    size_t n_processes;
    struct hearth_network_topology *ret;
};

static struct hearth_network_node *find_process_node(struct topology_state *state,
                                                     struct hearth_str process_id)
{
    for (size_t i = 0; i < state->ret->n_nodes; i++) {
        if (hearth_str_eq(state->ret->nodes[i].process.process_id, process_id)) {
            return &state->ret->nodes[i];
        }
    }

    return NULL;
}

/* Find a process of another instance; a removed one has only its id. */
static enum hearth_status find_foreign_process(const struct hearth_call *call,
                                               struct hearth_str process_id,
                                               struct hearth_process *ret, struct hearth_err *err)
{
    const struct hearth_process_filter filter = {.process_id = process_id};
    struct hearth_process *found;
    size_t n = 0;

    bool shows = false;

    HEARTH_TRY(hearth_store_processes(HEARTH_CALL_SCOPE(call), &filter, &found, &n, err));
    if (n > 0) {
        HEARTH_TRY(hearth_call_shows_service(call, NULL, found[0].service, &shows, err));
    }
    *ret = shows ? found[0] : (struct hearth_process){.process_id = process_id};

    return HEARTH_OK;
}

static enum hearth_status add_process_node(struct topology_state *state,
                                           struct hearth_str process_id, struct hearth_err *err)
{
    if (find_process_node(state, process_id) != NULL) {
        return HEARTH_OK;
    }

    /* Find the process among those of the instance. */
    struct hearth_network_node *node = &state->ret->nodes[state->ret->n_nodes];
    *node = (struct hearth_network_node){0};
    size_t i = 0;
    while (i < state->n_processes && !hearth_str_eq(state->processes[i].process_id, process_id)) {
        i++;
    }

    /* Otherwise, look for it in other instances. */
    if (i < state->n_processes) {
        node->process = state->processes[i];
    } else {
        HEARTH_TRY(find_foreign_process(state->call, process_id, &node->process, err));
    }

    state->ret->n_nodes++;

    return HEARTH_OK;
}

static bool add_node_addresses(struct topology_state *state, struct hearth_str process_id,
                               struct hearth_str lines, bool *is_cut)
{
    struct hearth_network_node *node = find_process_node(state, process_id);

    if (lines.n == 0 || node == NULL) {
        return true;
    }

    /* Reserve the list when the first address is added. */
    if (node->addresses == NULL) {
        node->addresses =
            hearth_arena_array(state->call->arena, MAX_ADDRESSES, sizeof *node->addresses);
    }

    /* Add each line that is not listed yet. */
    for (size_t at = 0; at < lines.n && node->addresses != NULL;) {
        size_t to = hearth_str_find(lines, '\n', at), i = 0;
        struct hearth_str address = hearth_str_n(lines.p + at, to - at);
        while (i < node->n_addresses && !hearth_str_eq(node->addresses[i], address)) {
            i++;
        }
        if (i == node->n_addresses && i < MAX_ADDRESSES) {
            node->addresses[node->n_addresses++] = address;
        }
        *is_cut = *is_cut || i == MAX_ADDRESSES;
        at = to + 1;
    }

    return node->addresses != NULL;
}

static void add_call_component(const char **list, size_t *n,
                               enum hearth_network_component component)
{
    const char *name = hearth_network_component_name(component);

    for (size_t i = 0; i < *n; i++) {
        if (strcmp(list[i], name) == 0) {
            return;
        }
    }

    list[(*n)++] = name; /* there are as many elements as names */
}

/* Add a relation to its call. Relations are sorted, so those of one call are neighbours. */
static enum hearth_status add_relation_call(struct topology_state *state,
                                            const struct hearth_network_flush *relation,
                                            struct hearth_err *err)
{
    struct hearth_network_topology *ret = state->ret;
    struct hearth_network_call *call = ret->n_calls > 0 ? &ret->calls[ret->n_calls - 1] : NULL;

    /* Begin a new call. */
    if (call == NULL || !hearth_str_eq(call->source_id, relation->source_id) ||
        !hearth_str_eq(call->destination_id, relation->destination_id)) {
        call = &ret->calls[ret->n_calls++];
        *call = (struct hearth_network_call){
            .call_id =
                make_call_id(state->call->arena, relation->source_id, relation->destination_id),
            .source_id = relation->source_id,
            .destination_id = relation->destination_id};
        if (call->call_id.p == NULL) {
            return HEARTH_FAIL_ARENA(err, state->call->arena);
        }
    }

    /* Note the component of its side. */
    if (relation->side == HEARTH_NETWORK_CLIENT) {
        add_call_component(call->source_components, &call->n_source_components,
                           relation->component);
    } else {
        add_call_component(call->destination_components, &call->n_destination_components,
                           relation->component);
    }

    return HEARTH_OK;
}

static int compare_network_nodes(const void *left, const void *right)
{
    const struct hearth_network_node *a = left, *b = right;
    bool a_virtual = a->process.detect_type == HEARTH_DETECT_VIRTUAL;
    bool b_virtual = b->process.detect_type == HEARTH_DETECT_VIRTUAL;

    if (a_virtual != b_virtual) {
        return a_virtual ? 1 : -1;
    }
    int order = hearth_str_cmp(a->process.name, b->process.name);

    return order != 0 ? order : hearth_str_cmp(a->process.process_id, b->process.process_id);
}

static enum hearth_status draw_topology(struct topology_state *state, struct hearth_err *err)
{
    struct hearth_arena *arena = state->call->arena;
    struct hearth_network_topology *ret = state->ret;
    size_t n = state->n_relations;
    bool is_cut = false;

    /* Each relation adds at most two nodes and one call. */
    ret->nodes = hearth_arena_array(arena, 2 * n, sizeof *ret->nodes);
    ret->calls = hearth_arena_array(arena, n, sizeof *ret->calls);
    if (ret->nodes == NULL || ret->calls == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    /* Add them. */
    for (size_t i = 0; i < n; i++) {
        const struct hearth_network_flush *relation = &state->relations[i];
        HEARTH_TRY(add_process_node(state, relation->source_id, err));
        HEARTH_TRY(add_process_node(state, relation->destination_id, err));
        HEARTH_TRY(add_relation_call(state, relation, err));
        if (!add_node_addresses(state, relation->source_id, relation->source_addresses, &is_cut) ||
            !add_node_addresses(state, relation->destination_id, relation->destination_addresses,
                                &is_cut)) {
            return HEARTH_FAIL_ARENA(err, arena);
        }
    }

    /* Sort the nodes. */
    qsort(ret->nodes, ret->n_nodes, sizeof *ret->nodes, compare_network_nodes);
    if (is_cut) {
        hearth_call_note(state->call, "at most %d addresses are listed per node", MAX_ADDRESSES);
    }

    return HEARTH_OK;
}

enum hearth_status hearth_network_topology(const struct hearth_query *query,
                                           struct hearth_str service, struct hearth_str instance,
                                           struct hearth_network_topology *ret,
                                           struct hearth_err *err)
{
    struct hearth_network_range range;
    struct hearth_network_flush *relations;
    struct hearth_process *processes;
    const struct hearth_call *call = &query->call;
    struct topology_state state = {.call = call, .ret = ret};

    assert(query != NULL && ret != NULL);

    /* Read the relations and the processes of the instance. */
    HEARTH_TRY(make_network_range(query, service, instance, &range, err));
    *ret = (struct hearth_network_topology){0};
    bool shows;
    HEARTH_TRY(hearth_call_shows_service(call, NULL, service, &shows, err));
    if (!shows) {
        return HEARTH_OK;
    }
    HEARTH_TRY(hearth_store_network_relations(HEARTH_CALL_SCOPE(call), &range, &relations,
                                              &state.n_relations, err));
    const struct hearth_process_filter filter = {.service = service, .instance = instance};
    HEARTH_TRY(hearth_store_processes(HEARTH_CALL_SCOPE(call), &filter, &processes,
                                      &state.n_processes, err));
    state.relations = relations;
    state.processes = processes;

    return draw_topology(&state, err);
}

/* ---- metrics ---- */

struct line_builder {
    const struct hearth_call *call;
    bool wanted[HEARTH_NETWORK_METERS];
    int64_t max_points, n_all_points;
    struct hearth_network_line *lines;
    size_t n_lines, cap_lines;
    size_t first_of_end; /* index of the first line of the current end */
    size_t *cap_points;  /* capacity of each line's points; cap_cap_points elements */
    size_t cap_cap_points;
    /* State of the current minute; has_minute false: no minute was begun. */
    bool has_minute;
    struct hearth_str source_id, destination_id, call_id;
    enum hearth_network_side side;
    int64_t minute_ms;
    struct hearth_arena scratch;
    struct hearth_network_sums sums;
};

/* What distinguishes the lines of one end of a relation. */
struct line_key {
    unsigned meter; /* index of hearth_network_meters */
    struct hearth_str code;
    int32_t percentile;
};

/*
 * Find or make the line of the current end with the metric, code and percentile. NULL without
 * memory.
 */
static struct hearth_network_line *find_or_make_line(struct line_builder *lines,
                                                     const struct line_key *key, size_t *ret_idx)
{
    const struct hearth_network_meter *about = &hearth_network_meters[key->meter];
    struct hearth_arena *arena = lines->call->arena;

    assert(key->meter < HEARTH_NETWORK_METERS && lines->first_of_end <= lines->n_lines);

    /* Look among the lines of the current end. */
    for (size_t i = lines->first_of_end; i < lines->n_lines; i++) {
        struct hearth_network_line *line = &lines->lines[i];
        if (line->metric == about->metric && line->percentile == key->percentile &&
            hearth_str_eq(line->code, key->code)) {
            *ret_idx = i;
            return line;
        }
    }

    /* Make a new one. */
    if (!hearth_arena_grow(arena, &lines->lines, &lines->cap_lines, lines->n_lines + 1,
                           sizeof lines->lines[0]) ||
        !hearth_arena_grow(arena, &lines->cap_points, &lines->cap_cap_points, lines->n_lines + 1,
                           sizeof lines->cap_points[0])) {
        return NULL;
    }

    *ret_idx = lines->n_lines;
    lines->cap_points[lines->n_lines] = 0;
    struct hearth_network_line *line = &lines->lines[lines->n_lines++];
    *line = (struct hearth_network_line){.call_id = lines->call_id,
                                         .metric = about->metric,
                                         .unit = about->unit,
                                         .side = lines->side,
                                         .code = hearth_arena_str(arena, key->code),
                                         .percentile = key->percentile};

    return line->code.p == NULL ? NULL : line;
}

static enum hearth_status add_line_point(struct line_builder *lines, const struct line_key *key,
                                         double value, struct hearth_err *err)
{
    struct hearth_arena *arena = lines->call->arena;
    size_t at;
    struct hearth_network_line *line = find_or_make_line(lines, key, &at);

    if (line == NULL || !hearth_arena_grow(arena, &line->points, &lines->cap_points[at],
                                           line->n_points + 1, sizeof line->points[0])) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    line->points[line->n_points++] = (struct hearth_point){lines->minute_ms, value};

    if (++lines->n_all_points > lines->max_points && lines->max_points > 0) {
        return HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE,
                           "the answer has more than the %lld points that max-points allows: ask"
                           " for fewer metrics, a call or less time",
                           (long long)lines->max_points);
    }

    return HEARTH_OK;
}

static enum hearth_status add_cell_points(struct line_builder *lines, unsigned meter,
                                          struct hearth_err *err)
{
    const struct hearth_network_cell *cell = &lines->sums.cells[meter];
    struct line_key key = {.meter = meter, .code = HEARTH_STR("")};

    switch (hearth_network_meters[meter].kind) {
    case HEARTH_NETWORK_SUM:
    case HEARTH_NETWORK_MEAN:
        return add_line_point(lines, &key, hearth_network_value(meter, cell), err);
    case HEARTH_NETWORK_CODES:
        for (uint32_t i = 0; i < cell->n_items; i++) {
            key.code = cell->codes[i].code;
            HEARTH_TRY(add_line_point(lines, &key, cell->codes[i].sum, err));
        }
        return HEARTH_OK;
    case HEARTH_NETWORK_HISTOGRAM:
        break;
    }

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(PERCENTILES); i++) {
        double value = hearth_network_percentile(cell, (unsigned)PERCENTILES[i]);
        key.percentile = PERCENTILES[i];
        HEARTH_TRY(add_line_point(lines, &key, value, err));
    }

    return HEARTH_OK;
}

static enum hearth_status finish_minute(struct line_builder *lines, struct hearth_err *err)
{
    for (unsigned i = 0; lines->has_minute && i < HEARTH_NETWORK_METERS; i++) {
        if (lines->wanted[i] && lines->sums.cells[i].n > 0) {
            HEARTH_TRY(add_cell_points(lines, i, err));
        }
    }

    lines->has_minute = false;

    return HEARTH_OK;
}

static enum hearth_status begin_lines(void *context, struct hearth_err *err)
{
    struct line_builder *lines = context;

    (void)err;
    lines->n_lines = lines->first_of_end = 0;
    lines->n_all_points = 0;
    lines->has_minute = false;
    lines->source_id = lines->destination_id = (struct hearth_str){0};

    return HEARTH_OK;
}

static enum hearth_status take_flush(void *context, const struct hearth_network_flush *flush,
                                     struct hearth_err *err)
{
    struct line_builder *lines = context;
    int64_t minute_ms = flush->at_ms - flush->at_ms % MINUTE_MS;
    bool same_end = lines->source_id.p != NULL && lines->side == flush->side &&
                    hearth_str_eq(lines->source_id, flush->source_id) &&
                    hearth_str_eq(lines->destination_id, flush->destination_id);

    /* A new end or minute finishes the previous one. */
    if (!same_end || minute_ms != lines->minute_ms) {
        HEARTH_TRY(finish_minute(lines, err));
    }

    /* Begin the lines of a new end. */
    if (!same_end) {
        struct hearth_arena *arena = lines->call->arena;
        lines->first_of_end = lines->n_lines;
        lines->source_id = hearth_arena_str(arena, flush->source_id);
        lines->destination_id = hearth_arena_str(arena, flush->destination_id);
        lines->side = flush->side;
        lines->call_id = make_call_id(arena, flush->source_id, flush->destination_id);
        if (arena->refused) {
            return HEARTH_FAIL_ARENA(err, arena);
        }
    }

    /* Begin a new minute. */
    if (!lines->has_minute) {
        hearth_arena_reset(&lines->scratch);
        hearth_network_sums_init(&lines->sums, &lines->scratch);
        lines->minute_ms = minute_ms;
        lines->has_minute = true;
    }

    return hearth_network_merge(&lines->sums, flush->payload, err);
}

static int compare_network_lines(const void *left, const void *right)
{
    const struct hearth_network_line *a = left, *b = right;
    int order = hearth_str_cmp(a->call_id, b->call_id);

    order = order != 0 ? order : (int)a->side - (int)b->side;
    order = order != 0 ? order : strcmp(a->metric, b->metric);
    order = order != 0 ? order : hearth_str_cmp(a->code, b->code);

    return order != 0 ? order : (int)a->percentile - (int)b->percentile;
}

static enum hearth_status choose_metrics(const struct hearth_network_series_spec *spec,
                                         bool wanted[HEARTH_NETWORK_METERS], struct hearth_err *err)
{
    static const char prefix[] = "process_relation_";

    /* Without names, all metrics are chosen. */
    for (unsigned i = 0; i < HEARTH_NETWORK_METERS; i++) {
        wanted[i] = spec->n_metrics == 0;
    }

    /* Otherwise, each name must exist. */
    for (size_t i = 0; i < spec->n_metrics; i++) {
        struct hearth_str name = spec->metrics[i];
        if (hearth_str_starts(name, hearth_str_c(prefix))) {
            name = hearth_str_n(name.p + sizeof prefix - 1, name.n - (sizeof prefix - 1));
        }
        unsigned meter = hearth_network_meter_find(name, true);
        if (meter == HEARTH_NETWORK_METERS) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                               "there is no network metric \"" HEARTH_STR_FMT "\"",
                               HEARTH_STR_ARG(spec->metrics[i]));
        }
        wanted[meter] = true;
    }

    return HEARTH_OK;
}

enum hearth_status hearth_network_series(const struct hearth_query *query,
                                         const struct hearth_network_series_spec *spec,
                                         struct hearth_network_line **ret, size_t *ret_n,
                                         struct hearth_err *err)
{
    const struct hearth_call *call = &query->call;
    struct line_builder lines = {.call = call};
    struct hearth_network_range range;
    struct hearth_limits limits;

    assert(query != NULL && ret != NULL && ret_n != NULL);

    /* Choose metrics and range. */
    hearth_call_limits(call, &limits);
    lines.max_points = limits.max_points;
    HEARTH_TRY(make_network_range(query, spec->service, spec->instance, &range, err));
    HEARTH_TRY(choose_metrics(spec, lines.wanted, err));
    if (spec->call_id.n > 0) {
        HEARTH_TRY(
            hearth_network_split_call(spec->call_id, &range.source_id, &range.destination_id, err));
    }

    bool shows;
    HEARTH_TRY(hearth_call_shows_service(call, NULL, spec->service, &shows, err));
    if (!shows) {
        *ret = NULL;
        *ret_n = 0;
        return HEARTH_OK;
    }

    /* Read the flushes into lines. */
    const struct hearth_network_reader reader = {&lines, begin_lines, take_flush};
    hearth_arena_init_like(&lines.scratch, call->arena);
    enum hearth_status status =
        hearth_store_network_flushes(HEARTH_CALL_SCOPE(call), &range, &reader, err);
    if (status == HEARTH_OK) {
        status = finish_minute(&lines, err);
    }

    hearth_arena_release(&lines.scratch);
    HEARTH_TRY(status);

    /* Sort the lines. */
    if (lines.n_lines > 0) {
        qsort(lines.lines, lines.n_lines, sizeof *lines.lines, compare_network_lines);
    }

    *ret = lines.lines;
    *ret_n = lines.n_lines;

    return HEARTH_OK;
}
