/*
 * cpuprofile.c -- V8's CPU profile: a list of nodes in any order, which name their children or
 * parents, and the sampled nodes with the times between samples.
 */
#include "hearth/base/budget.h"
#include "hearth/base/hash.h"
#include "hearth/base/limit.h"
#include "hearth/format/chrome_profile.h"

#include "json/chrome_frames.h"

#include <assert.h>
#include <inttypes.h>

#define US_NS 1000

__extension__ typedef unsigned __int128 u128;

enum {
    TYPE_SAMPLES,
    TYPE_WALL,
    N_TYPES
};
static_assert(N_TYPES == HEARTH_CALL_TREE_TYPES, "both types are values of a node");

struct cpu_node {
    int64_t id, hits;
    int64_t parent_id; /* if names_parent */
    bool names_parent;
    uint32_t location; /* HEARTH_NO_INDEX: (root) */
    uint32_t parent;   /* index; HEARTH_NO_INDEX: none */
    uint32_t tree_node;
    uint32_t first_child, next_sibling; /* indices; HEARTH_NO_INDEX: none */
};

/* A child that a node names, perhaps before the child itself is read. */
struct cpu_edge {
    uint32_t parent; /* index */
    int64_t child;   /* id */
};

struct cpu_file {
    struct chrome_profile profile;
    struct hearth_json_reader nodes_at, samples_at, deltas_at; /* text.p NULL: absent */
    int64_t start_ns, end_ns;
    struct cpu_node *nodes;
    size_t n_nodes, cap_nodes;
    struct cpu_edge *edges;
    size_t n_edges, cap_edges;
    struct hearth_idmap by_id; /* outside the arena */
    size_t held_bytes;         /* of the map, charged to the arena's budget */
};

/* ---- nodes ---- */

static struct hearth_hash128 make_id_key(int64_t id)
{
    return hearth_hash128(&id, sizeof id, hearth_hash_process_seed());
}

/* The index of a node; HEARTH_NO_INDEX, and a fault of the reader, if there is none. */
static uint32_t find_cpu_node(const struct cpu_file *f, struct hearth_json_reader *r, int64_t id)
{
    uint32_t node = hearth_idmap_find(&f->by_id, make_id_key(id));

    if (node == HEARTH_IDMAP_NONE) {
        hearth_json_reader_fail(r, "there is no node %" PRId64, id);
        return HEARTH_NO_INDEX;
    }

    return node;
}

static void read_children(struct cpu_file *f, struct hearth_json_reader *r)
{
    struct hearth_arena *arena = f->profile.arena;
    uint32_t max = f->profile.limits->max_entries;

    hearth_json_reader_array(r);
    while (hearth_json_reader_element(r)) {
        int64_t child = hearth_json_reader_i64(r);
        if (max > 0 && f->n_edges == max) {
            hearth_json_reader_fail(
                r, "the nodes have more than %u children" HEARTH_RAISE_LIMIT("max-table-entries"),
                max);
            return;
        }
        if (!hearth_arena_regrow(arena, &f->edges, &f->cap_edges, f->n_edges + 1,
                                 sizeof *f->edges)) {
            hearth_json_reader_fail_arena(r, arena);
            return;
        }
        f->edges[f->n_edges++] = (struct cpu_edge){(uint32_t)f->n_nodes, child};
    }
}

/* Adds the node that comes next, without parent. */
static void read_cpu_node(struct cpu_file *f, struct hearth_json_reader *r)
{
    struct hearth_arena *arena = f->profile.arena;
    struct cpu_node node = {.location = HEARTH_NO_INDEX,
                            .parent = HEARTH_NO_INDEX,
                            .first_child = HEARTH_NO_INDEX,
                            .next_sibling = HEARTH_NO_INDEX};
    uint32_t max = f->profile.limits->max_entries;
    struct hearth_str key;
    bool has_frame = false, inserted;

    hearth_json_reader_object(r);
    while (hearth_json_reader_member(r, &key)) {
        if (hearth_str_eq_c(key, "id")) {
            node.id = hearth_json_reader_i64(r);
        } else if (hearth_str_eq_c(key, "callFrame")) {
            node.location = hearth_chrome_frame(&f->profile, r);
            has_frame = true;
        } else if (hearth_str_eq_c(key, "hitCount")) {
            node.hits = hearth_json_reader_i64(r);
        } else if (hearth_str_eq_c(key, "children")) {
            read_children(f, r);
        } else if (hearth_str_eq_c(key, "parent") && hearth_json_reader_peek(r) == '0') {
            node.parent_id = hearth_json_reader_i64(r);
            node.names_parent = true;
        } else {
            hearth_json_reader_skip(r);
        }
    }

    if (!has_frame) {
        hearth_json_reader_fail(r, "node %" PRId64 " has no callFrame", node.id);
    } else if (node.hits < 0) {
        hearth_json_reader_fail(r, "node %" PRId64 " has a negative hitCount", node.id);
    } else if (max > 0 && f->n_nodes == max) {
        hearth_json_reader_fail(r, "more than %u nodes" HEARTH_RAISE_LIMIT("max-table-entries"),
                                max);
    }
    if (hearth_json_reader_failed(r)) {
        return;
    }

    uint32_t idx = (uint32_t)f->n_nodes;
    if (!hearth_arena_regrow(arena, &f->nodes, &f->cap_nodes, f->n_nodes + 1, sizeof *f->nodes) ||
        hearth_idmap_intern(&f->by_id, make_id_key(node.id), idx, &inserted) == HEARTH_IDMAP_NONE ||
        !hearth_idmap_account(&f->by_id, arena, &f->held_bytes)) {
        hearth_json_reader_fail_arena(r, arena);
        return;
    }
    if (!inserted) {
        hearth_json_reader_fail(r, "node %" PRId64 " is there twice", node.id);
    }
    f->nodes[f->n_nodes++] = node;
}

/* Puts a child before the other children of its parent. */
static void link_child(struct cpu_file *f, struct hearth_json_reader *r, uint32_t parent,
                       uint32_t child)
{
    if (f->nodes[child].parent != HEARTH_NO_INDEX) {
        hearth_json_reader_fail(r, "node %" PRId64 " has two parents", f->nodes[child].id);
        return;
    }

    f->nodes[child].parent = parent;
    f->nodes[child].next_sibling = f->nodes[parent].first_child;
    f->nodes[parent].first_child = child;
}

/* Gives each child its parent. From the last to the first, so that siblings keep their order. */
static void link_nodes(struct cpu_file *f, struct hearth_json_reader *r)
{
    for (size_t i = f->n_edges; i > 0 && !hearth_json_reader_failed(r); i--) {
        uint32_t child = find_cpu_node(f, r, f->edges[i - 1].child);
        if (child != HEARTH_NO_INDEX) {
            link_child(f, r, f->edges[i - 1].parent, child);
        }
    }

    for (size_t i = f->n_nodes; i > 0 && !hearth_json_reader_failed(r); i--) {
        const struct cpu_node *node = &f->nodes[i - 1];
        uint32_t parent = HEARTH_NO_INDEX;
        if (node->names_parent) {
            parent = find_cpu_node(f, r, node->parent_id);
        }
        if (parent != node->parent && parent != HEARTH_NO_INDEX) {
            link_child(f, r, parent, (uint32_t)i - 1);
        }
    }
}

/* Adds the nodes to the tree, parents first. */
static void grow_tree(struct cpu_file *f, struct hearth_json_reader *r)
{
    struct hearth_arena *arena = f->profile.arena;
    uint32_t *queue = hearth_arena_array(arena, f->n_nodes, sizeof *queue);
    size_t n = 0;

    if (queue == NULL) {
        hearth_json_reader_fail_arena(r, arena);
        return;
    }

    for (uint32_t i = 0; i < f->n_nodes; i++) {
        if (f->nodes[i].parent == HEARTH_NO_INDEX) {
            queue[n++] = i;
        }
    }

    for (size_t at = 0; at < n; at++) {
        struct cpu_node *node = &f->nodes[queue[at]];
        uint32_t parent =
            node->parent == HEARTH_NO_INDEX ? HEARTH_NO_INDEX : f->nodes[node->parent].tree_node;
        node->tree_node = hearth_call_tree_add(&f->profile.tree, parent, node->location);
        if (node->tree_node == HEARTH_NO_INDEX) {
            hearth_call_tree_fail(&f->profile.tree, r);
            return;
        }
        for (uint32_t child = node->first_child; child != HEARTH_NO_INDEX;
             child = f->nodes[child].next_sibling) {
            queue[n++] = child;
        }
    }

    /* Each node has at most one parent: those that no root leads to are cycles. */
    if (n < f->n_nodes) {
        hearth_json_reader_fail(r, "%zu nodes are among their own callers", f->n_nodes - n);
    }
}

static enum hearth_status read_cpu_nodes(struct cpu_file *f, struct hearth_err *err)
{
    struct hearth_json_reader r = f->nodes_at;

    hearth_json_reader_array(&r);
    while (hearth_json_reader_element(&r)) {
        read_cpu_node(f, &r);
    }
    if (!hearth_json_reader_failed(&r)) {
        link_nodes(f, &r);
    }
    if (!hearth_json_reader_failed(&r)) {
        grow_tree(f, &r);
    }

    return hearth_json_reader_status(&r, err);
}

/* ---- values ---- */

static enum hearth_status count_node(struct cpu_file *f, uint32_t node, int64_t samples,
                                     int64_t wall_ns, struct hearth_err *err)
{
    uint32_t tree_node = f->nodes[node].tree_node;

    HEARTH_TRY(hearth_call_tree_count(&f->profile.tree, tree_node, TYPE_SAMPLES, samples, err));

    return hearth_call_tree_count(&f->profile.tree, tree_node, TYPE_WALL, wall_ns, err);
}

/* The time of a sample, from the time of the one before it and the delta that comes next. */
static int64_t read_sample_time(struct hearth_json_reader *deltas, int64_t before_ns)
{
    int64_t delta_ns = hearth_json_reader_scaled(deltas, US_NS), time_ns;

    if (__builtin_add_overflow(before_ns, delta_ns, &time_ns)) {
        hearth_json_reader_fail(deltas, "the times of the samples exceed 64 bits");
        return before_ns;
    }

    return time_ns;
}

/* Each sample lasts from its time until that of the next one. */
static enum hearth_status count_samples(struct cpu_file *f, struct hearth_err *err)
{
    struct hearth_json_reader samples = f->samples_at, deltas = f->deltas_at;
    int64_t time_ns = f->start_ns, since_ns = f->start_ns;
    uint32_t last = HEARTH_NO_INDEX;
    size_t n = 0;

    hearth_json_reader_array(&samples);
    hearth_json_reader_array(&deltas);
    while (hearth_json_reader_element(&samples)) {
        uint32_t node = find_cpu_node(f, &samples, hearth_json_reader_i64(&samples));
        if (!hearth_json_reader_element(&deltas)) {
            hearth_json_reader_fail(&samples, "sample %zu has no time in timeDeltas", n);
        }
        HEARTH_TRY(hearth_json_reader_status(&samples, err));
        time_ns = read_sample_time(&deltas, time_ns);
        HEARTH_TRY(hearth_json_reader_status(&deltas, err));

        /* A delta may be negative: the time stands still until the clock has caught up. */
        int64_t now_ns = time_ns > since_ns ? time_ns : since_ns;
        if (last != HEARTH_NO_INDEX) {
            HEARTH_TRY(count_node(f, last, 1, now_ns - since_ns, err));
        }
        last = node;
        since_ns = now_ns;
        n++;
    }

    HEARTH_TRY(hearth_json_reader_status(&samples, err));
    if (hearth_json_reader_element(&deltas)) {
        hearth_json_reader_fail(&deltas, "more timeDeltas than the %zu samples", n);
    }
    HEARTH_TRY(hearth_json_reader_status(&deltas, err));

    return last == HEARTH_NO_INDEX
               ? HEARTH_OK
               : count_node(f, last, 1, f->end_ns > since_ns ? f->end_ns - since_ns : 0, err);
}

/* Each hit lasts the same part of the profile's time. */
static enum hearth_status count_hits(struct cpu_file *f, struct hearth_err *err)
{
    int64_t total = 0, duration_ns = f->end_ns > f->start_ns ? f->end_ns - f->start_ns : 0;

    for (size_t i = 0; i < f->n_nodes; i++) {
        if (__builtin_add_overflow(total, f->nodes[i].hits, &total)) {
            return HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE, "the hits exceed 63 bits in sum");
        }
    }

    /* The rest of one node's division is the next one's, so that the sum is the duration. */
    u128 rest = 0;
    for (uint32_t i = 0; i < f->n_nodes; i++) {
        if (f->nodes[i].hits == 0) {
            continue;
        }
        u128 part = (u128)(uint64_t)duration_ns * (uint64_t)f->nodes[i].hits + rest;
        rest = part % (uint64_t)total;
        HEARTH_TRY(count_node(f, i, f->nodes[i].hits, (int64_t)(part / (uint64_t)total), err));
    }

    return HEARTH_OK;
}

/* ---- the file ---- */

static enum hearth_status find_cpu_tables(struct cpu_file *f, struct hearth_str bytes,
                                          struct hearth_err *err)
{
    struct hearth_json_reader r;
    struct hearth_str key;

    hearth_json_reader_init(&r, bytes);
    hearth_json_reader_object(&r);
    while (hearth_json_reader_member(&r, &key)) {
        bool is_start = hearth_str_eq_c(key, "startTime");
        if (is_start || hearth_str_eq_c(key, "endTime")) {
            int64_t time_ns = hearth_json_reader_scaled(&r, US_NS);
            if (time_ns < 0) {
                hearth_json_reader_fail(&r, "the time is negative");
            }
            *(is_start ? &f->start_ns : &f->end_ns) = time_ns;
            continue;
        }

        if (hearth_str_eq_c(key, "nodes")) {
            f->nodes_at = r;
        } else if (hearth_str_eq_c(key, "samples")) {
            f->samples_at = r;
        } else if (hearth_str_eq_c(key, "timeDeltas")) {
            f->deltas_at = r;
        }
        hearth_json_reader_skip(&r);
    }

    HEARTH_TRY(hearth_json_reader_end(&r, err));
    if (f->nodes_at.text.p == NULL) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "the file has no \"nodes\"");
    }
    if ((f->samples_at.text.p == NULL) != (f->deltas_at.text.p == NULL)) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "the file has only one of \"samples\" and \"timeDeltas\"");
    }

    return HEARTH_OK;
}

static enum hearth_status read_cpu_profile(struct cpu_file *f, struct hearth_str bytes,
                                           struct hearth_profile *ret,
                                           struct hearth_pprof_notes *notes, struct hearth_err *err)
{
    struct hearth_profile_builder *b = f->profile.builder;
    struct hearth_str cpu = HEARTH_STR("cpu"), ns = HEARTH_STR("nanoseconds");

    HEARTH_TRY(find_cpu_tables(f, bytes, err));
    uint32_t period_type = hearth_profile_builder_string(b, cpu);
    uint32_t period_unit = hearth_profile_builder_string(b, ns);
    if (hearth_profile_builder_type(b, HEARTH_STR("samples"), HEARTH_STR("count")) ==
            HEARTH_NO_INDEX ||
        hearth_profile_builder_type(b, HEARTH_STR("wall"), ns) == HEARTH_NO_INDEX ||
        period_type == HEARTH_NO_INDEX || period_unit == HEARTH_NO_INDEX) {
        return HEARTH_FAIL_ARENA(err, f->profile.arena);
    }

    HEARTH_TRY(read_cpu_nodes(f, err));
    HEARTH_TRY(f->samples_at.text.p != NULL ? count_samples(f, err) : count_hits(f, err));
    HEARTH_TRY(hearth_chrome_finish(&f->profile, ret, notes, err));
    ret->period_type = (struct hearth_value_type){period_type, period_unit};
    ret->duration_ns = f->end_ns > f->start_ns ? f->end_ns - f->start_ns : 0;

    return HEARTH_OK;
}

enum hearth_status hearth_cpuprofile_decode(struct hearth_str bytes,
                                            const struct hearth_pprof_limits *limits,
                                            struct hearth_arena *arena, struct hearth_profile *ret,
                                            struct hearth_pprof_notes *notes,
                                            struct hearth_err *err)
{
    struct cpu_file f = {.n_nodes = 0};

    assert(limits != NULL && arena != NULL && ret != NULL && notes != NULL);
    hearth_idmap_init(&f.by_id);
    enum hearth_status status = hearth_chrome_init(&f.profile, limits, arena, err);
    if (status == HEARTH_OK) {
        status = read_cpu_profile(&f, bytes, ret, notes, err);
    }
    hearth_idmap_release(&f.by_id);
    hearth_budget_give(arena->budget, f.held_bytes);
    hearth_chrome_release(&f.profile);

    return status;
}
