/*
 * network_answers.c -- topology, and metrics over time (contract: hearth/engine/network.h).
 *
 * Rows come by relation, end and time, so one minute of one end of one relation is summed at a time; its points go to
 * the lines of that end.
 */
#include "hearth/base/clock.h"
#include "hearth/model/network_metrics.h"
#include "hearth/store/store_agents.h"
#include "hearth/store/store_network.h"

#include "network/network_internal.h"

#include <stdio.h>
#include <stdlib.h>

#define MINUTE_MS INT64_C(60000)
/* Addresses listed of one node. */
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

static enum hearth_status range_of(const struct hearth_query *query, struct hearth_str service,
                                   struct hearth_str instance, struct hearth_network_range *ret,
                                   struct hearth_err *err)
{
    int64_t start_ms = query->start_ms, end_ms = query->end_ms;
    HEARTH_TRY(hearth_network_check_names(service, instance, err));
    if (start_ms <= 0 || end_ms < start_ms || end_ms > INT64_MAX - 2 * MINUTE_MS) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "start_ms %lld and end_ms %lld are no range", (long long)start_ms,
                           (long long)end_ms);
    }
    *ret = (struct hearth_network_range){.service = service,
                                         .instance = instance,
                                         .from_ms = start_ms - start_ms % MINUTE_MS,
                                         .to_ms = end_ms - end_ms % MINUTE_MS + MINUTE_MS};
    return HEARTH_OK;
}

static struct hearth_str call_id_of(struct hearth_arena *arena, struct hearth_str source,
                                    struct hearth_str destination)
{
    return hearth_str_c(hearth_arena_printf(arena, "%.*s-%.*s", (int)source.n, source.p,
                                            (int)destination.n, destination.p));
}

/* ---- topology ---- */

struct drawing {
    const struct hearth_call *call;
    const struct hearth_network_flush *relations;
    size_t n_relations;
    const struct hearth_process *processes; /* of the instance */
    size_t n_processes;
    struct hearth_network_topology *ret;
};

static struct hearth_network_node *find_node(struct drawing *drawing, struct hearth_str process_id)
{
    for (size_t i = 0; i < drawing->ret->n_nodes; i++) {
        if (hearth_str_eq(drawing->ret->nodes[i].process.process_id, process_id)) {
            return &drawing->ret->nodes[i];
        }
    }
    return NULL;
}

/* A process of another instance, or one that is gone: then it has its id only. */
static enum hearth_status find_process(const struct hearth_call *call, struct hearth_str process_id,
                                       struct hearth_process *ret, struct hearth_err *err)
{
    const struct hearth_process_filter filter = {.process_id = process_id};
    struct hearth_process *found;
    size_t n = 0;
    HEARTH_TRY(hearth_store_processes(HEARTH_CALL_SCOPE(call), &filter, &found, &n, err));
    *ret = n > 0 ? found[0] : (struct hearth_process){.process_id = process_id};
    return HEARTH_OK;
}

static enum hearth_status add_node(struct drawing *drawing, struct hearth_str process_id,
                                   struct hearth_err *err)
{
    if (find_node(drawing, process_id) != NULL) {
        return HEARTH_OK;
    }
    struct hearth_network_node *node = &drawing->ret->nodes[drawing->ret->n_nodes];
    *node = (struct hearth_network_node){0};
    size_t i = 0;
    while (i < drawing->n_processes &&
           !hearth_str_eq(drawing->processes[i].process_id, process_id)) {
        i++;
    }
    if (i < drawing->n_processes) {
        node->process = drawing->processes[i];
    } else {
        HEARTH_TRY(find_process(drawing->call, process_id, &node->process, err));
    }
    drawing->ret->n_nodes++;
    return HEARTH_OK;
}

static bool list_addresses(struct drawing *drawing, struct hearth_str process_id,
                           struct hearth_str lines, bool *is_cut)
{
    struct hearth_network_node *node = find_node(drawing, process_id);
    if (lines.n == 0 || node == NULL) {
        return true;
    }
    if (node->addresses == NULL) {
        node->addresses =
            hearth_arena_array(drawing->call->arena, MAX_ADDRESSES, sizeof *node->addresses);
    }
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

static void add_component(const char **list, size_t *n, enum hearth_network_component component)
{
    const char *name = hearth_network_component_name(component);
    for (size_t i = 0; i < *n; i++) {
        if (strcmp(list[i], name) == 0) {
            return;
        }
    }
    list[(*n)++] = name; /* there are as many names as places */
}

/* Relations come sorted: those of a call follow each other. */
static enum hearth_status add_call(struct drawing *drawing,
                                   const struct hearth_network_flush *relation,
                                   struct hearth_err *err)
{
    struct hearth_network_topology *ret = drawing->ret;
    struct hearth_network_call *call = ret->n_calls > 0 ? &ret->calls[ret->n_calls - 1] : NULL;
    if (call == NULL || !hearth_str_eq(call->source_id, relation->source_id) ||
        !hearth_str_eq(call->destination_id, relation->destination_id)) {
        call = &ret->calls[ret->n_calls++];
        *call = (struct hearth_network_call){
            .call_id =
                call_id_of(drawing->call->arena, relation->source_id, relation->destination_id),
            .source_id = relation->source_id,
            .destination_id = relation->destination_id};
        if (call->call_id.p == NULL) {
            return HEARTH_FAIL_ARENA(err, drawing->call->arena);
        }
    }
    if (relation->side == HEARTH_NETWORK_CLIENT) {
        add_component(call->source_components, &call->n_source_components, relation->component);
    } else {
        add_component(call->destination_components, &call->n_destination_components,
                      relation->component);
    }
    return HEARTH_OK;
}

static int compare_nodes(const void *left, const void *right)
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

static enum hearth_status draw(struct drawing *drawing, struct hearth_err *err)
{
    struct hearth_arena *arena = drawing->call->arena;
    struct hearth_network_topology *ret = drawing->ret;
    size_t n = drawing->n_relations;
    bool is_cut = false;
    ret->nodes = hearth_arena_array(arena, 2 * n, sizeof *ret->nodes);
    ret->calls = hearth_arena_array(arena, n, sizeof *ret->calls);
    if (ret->nodes == NULL || ret->calls == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }
    for (size_t i = 0; i < n; i++) {
        const struct hearth_network_flush *relation = &drawing->relations[i];
        HEARTH_TRY(add_node(drawing, relation->source_id, err));
        HEARTH_TRY(add_node(drawing, relation->destination_id, err));
        HEARTH_TRY(add_call(drawing, relation, err));
        if (!list_addresses(drawing, relation->source_id, relation->source_addresses, &is_cut) ||
            !list_addresses(drawing, relation->destination_id, relation->destination_addresses,
                            &is_cut)) {
            return HEARTH_FAIL_ARENA(err, arena);
        }
    }
    qsort(ret->nodes, ret->n_nodes, sizeof *ret->nodes, compare_nodes);
    if (is_cut) {
        hearth_call_note(drawing->call, "of each node %d addresses are listed", MAX_ADDRESSES);
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
    struct drawing drawing = {.call = call, .ret = ret};
    HEARTH_TRY(range_of(query, service, instance, &range, err));
    *ret = (struct hearth_network_topology){0};
    HEARTH_TRY(hearth_store_network_relations(HEARTH_CALL_SCOPE(call), &range, &relations,
                                              &drawing.n_relations, err));
    const struct hearth_process_filter filter = {.service = service, .instance = instance};
    HEARTH_TRY(hearth_store_processes(HEARTH_CALL_SCOPE(call), &filter, &processes,
                                      &drawing.n_processes, err));
    drawing.relations = relations;
    drawing.processes = processes;
    return draw(&drawing, err);
}

/* ---- metrics ---- */

struct lines {
    const struct hearth_call *call;
    bool wanted[HEARTH_NETWORK_METERS];
    int64_t max_points, n_all_points;
    struct hearth_network_line *lines;
    size_t n_lines, cap_lines;
    size_t first_of_end; /* index of the first line of the current end of a relation */
    size_t *cap_points;  /* [cap_lines] */
    /* The current minute. */
    bool has_minute;
    struct hearth_str source_id, destination_id, call_id;
    enum hearth_network_side side;
    int64_t minute_ms;
    struct hearth_arena scratch;
    struct hearth_network_sums sums;
};

static bool grow(struct hearth_arena *arena, void **items, size_t *cap, size_t n, size_t size)
{
    if (n < *cap) {
        return true;
    }
    size_t more = *cap == 0 ? 16 : *cap * 2;
    void *p = hearth_arena_array(arena, more, size);
    if (p == NULL) {
        return false;
    }
    if (n > 0) {
        memcpy(p, *items, n * size);
    }
    *items = p;
    *cap = more;
    return true;
}

/* The line of this end with the metric, code and percentile; made when it is new. NULL without memory. */
static struct hearth_network_line *line_of(struct lines *lines, unsigned meter,
                                           struct hearth_str code, int32_t percentile, size_t *at)
{
    const struct hearth_network_meter *about = &hearth_network_meters[meter];
    for (size_t i = lines->first_of_end; i < lines->n_lines; i++) {
        struct hearth_network_line *line = &lines->lines[i];
        if (line->metric == about->metric && line->percentile == percentile &&
            hearth_str_eq(line->code, code)) {
            *at = i;
            return line;
        }
    }
    struct hearth_arena *arena = lines->call->arena;
    void *items = lines->lines, *caps = lines->cap_points;
    size_t cap = lines->cap_lines, cap_too = lines->cap_lines;
    if (!grow(arena, &items, &cap, lines->n_lines, sizeof lines->lines[0]) ||
        !grow(arena, &caps, &cap_too, lines->n_lines, sizeof lines->cap_points[0])) {
        return NULL;
    }
    lines->lines = items;
    lines->cap_points = caps;
    lines->cap_lines = cap;
    *at = lines->n_lines;
    struct hearth_network_line *line = &lines->lines[lines->n_lines++];
    *line = (struct hearth_network_line){.call_id = lines->call_id,
                                         .metric = about->metric,
                                         .unit = about->unit,
                                         .side = lines->side,
                                         .code = hearth_arena_str(arena, code),
                                         .percentile = percentile};
    lines->cap_points[*at] = 0;
    return line->code.p == NULL ? NULL : line;
}

static enum hearth_status add_point(struct lines *lines, unsigned meter, struct hearth_str code,
                                    int32_t percentile, double value, struct hearth_err *err)
{
    size_t at;
    struct hearth_network_line *line = line_of(lines, meter, code, percentile, &at);
    void *points = line == NULL ? NULL : line->points;
    if (line == NULL || !grow(lines->call->arena, &points, &lines->cap_points[at], line->n_points,
                              sizeof line->points[0])) {
        return HEARTH_FAIL_ARENA(err, lines->call->arena);
    }
    line->points = points;
    line->points[line->n_points++] = (struct hearth_point){lines->minute_ms, value};
    if (++lines->n_all_points > lines->max_points && lines->max_points > 0) {
        return HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE,
                           "the answer has more than the %lld points that max-points allows: ask"
                           " for fewer metrics, a call or less time",
                           (long long)lines->max_points);
    }
    return HEARTH_OK;
}

static enum hearth_status add_cell(struct lines *lines, unsigned meter, struct hearth_err *err)
{
    const struct hearth_network_cell *cell = &lines->sums.cells[meter];
    const struct hearth_str none = HEARTH_STR("");
    switch (hearth_network_meters[meter].kind) {
    case HEARTH_NETWORK_SUM:
    case HEARTH_NETWORK_MEAN:
        return add_point(lines, meter, none, 0, hearth_network_value(meter, cell), err);
    case HEARTH_NETWORK_CODES:
        for (uint32_t i = 0; i < cell->n_items; i++) {
            HEARTH_TRY(add_point(lines, meter, cell->codes[i].code, 0, cell->codes[i].sum, err));
        }
        return HEARTH_OK;
    case HEARTH_NETWORK_HISTOGRAM:
        break;
    }
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(PERCENTILES); i++) {
        double value = hearth_network_percentile(cell, (unsigned)PERCENTILES[i]);
        HEARTH_TRY(add_point(lines, meter, none, PERCENTILES[i], value, err));
    }
    return HEARTH_OK;
}

static enum hearth_status end_minute(struct lines *lines, struct hearth_err *err)
{
    for (unsigned i = 0; lines->has_minute && i < HEARTH_NETWORK_METERS; i++) {
        if (lines->wanted[i] && lines->sums.cells[i].n > 0) {
            HEARTH_TRY(add_cell(lines, i, err));
        }
    }
    lines->has_minute = false;
    return HEARTH_OK;
}

static enum hearth_status begin_lines(void *context, struct hearth_err *err)
{
    struct lines *lines = context;
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
    struct lines *lines = context;
    int64_t minute_ms = flush->at_ms - flush->at_ms % MINUTE_MS;
    bool same_end = lines->source_id.p != NULL && lines->side == flush->side &&
                    hearth_str_eq(lines->source_id, flush->source_id) &&
                    hearth_str_eq(lines->destination_id, flush->destination_id);
    if (!same_end || minute_ms != lines->minute_ms) {
        HEARTH_TRY(end_minute(lines, err));
    }
    if (!same_end) {
        struct hearth_arena *arena = lines->call->arena;
        lines->first_of_end = lines->n_lines;
        lines->source_id = hearth_arena_str(arena, flush->source_id);
        lines->destination_id = hearth_arena_str(arena, flush->destination_id);
        lines->side = flush->side;
        lines->call_id = call_id_of(arena, flush->source_id, flush->destination_id);
        if (arena->refused) {
            return HEARTH_FAIL_ARENA(err, arena);
        }
    }
    if (!lines->has_minute) {
        hearth_arena_reset(&lines->scratch);
        hearth_network_sums_init(&lines->sums, &lines->scratch);
        lines->minute_ms = minute_ms;
        lines->has_minute = true;
    }
    return hearth_network_merge(&lines->sums, flush->payload, err);
}

static int compare_lines(const void *left, const void *right)
{
    const struct hearth_network_line *a = left, *b = right;
    int order = hearth_str_cmp(a->call_id, b->call_id);
    order = order != 0 ? order : (int)a->side - (int)b->side;
    order = order != 0 ? order : strcmp(a->metric, b->metric);
    order = order != 0 ? order : hearth_str_cmp(a->code, b->code);
    return order != 0 ? order : (int)a->percentile - (int)b->percentile;
}

static enum hearth_status want(const struct hearth_network_series_spec *spec,
                               bool wanted[HEARTH_NETWORK_METERS], struct hearth_err *err)
{
    static const char prefix[] = "process_relation_";
    for (unsigned i = 0; i < HEARTH_NETWORK_METERS; i++) {
        wanted[i] = spec->n_metrics == 0;
    }
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
    struct lines lines = {.call = call};
    struct hearth_network_range range;
    struct hearth_limits limits;
    hearth_call_limits(call, &limits);
    lines.max_points = limits.max_points;
    HEARTH_TRY(range_of(query, spec->service, spec->instance, &range, err));
    HEARTH_TRY(want(spec, lines.wanted, err));
    if (spec->call_id.n > 0) {
        HEARTH_TRY(
            hearth_network_split_call(spec->call_id, &range.source_id, &range.destination_id, err));
    }
    const struct hearth_network_reader reader = {&lines, begin_lines, take_flush};
    hearth_arena_init_like(&lines.scratch, call->arena);
    enum hearth_status status =
        hearth_store_network_flushes(HEARTH_CALL_SCOPE(call), &range, &reader, err);
    if (status == HEARTH_OK) {
        status = end_minute(&lines, err);
    }
    hearth_arena_release(&lines.scratch);
    HEARTH_TRY(status);
    if (lines.n_lines > 0) {
        qsort(lines.lines, lines.n_lines, sizeof *lines.lines, compare_lines);
    }
    *ret = lines.lines;
    *ret_n = lines.n_lines;
    return HEARTH_OK;
}
