/*
 * snapshot_trees.c -- thread snapshots and CPU profiles of requests as trees with durations
 * (contract: hearth/model/snapshot_trees.h).
 *
 * Snapshots are added in the order of segments and numbers, so a node stores only its current run.
 */
#include "hearth/model/snapshot_trees.h"

#include "hearth/base/hash.h"
#include "hearth/model/frame_name.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#define DEFAULT_PERIOD_MS 10

struct building_node {
    struct hearth_str code;
    uint32_t parent; /* NONE: a root */
    uint32_t first_child, next_sibling;
    int64_t count, duration_ms;
    int64_t children_ms; /* sum of the children's durations */
    /* The current run: last segment and number, times of the first and the last snapshot. */
    uint32_t segment;
    int32_t sequence;
    int64_t first_ms, last_ms;
};

#define NONE UINT32_MAX

struct snapshot_forest {
    struct hearth_arena *arena;
    struct hearth_idmap ids;
    struct building_node *nodes;
    uint32_t n, cap;
    uint32_t first_root;
};

static void forest_init(struct snapshot_forest *forest, struct hearth_arena *arena)
{
    *forest = (struct snapshot_forest){.arena = arena, .first_root = NONE};
    hearth_idmap_init(&forest->ids);
}

static enum hearth_status make_node_room(struct snapshot_forest *forest, struct hearth_err *err)
{
    if (forest->n < forest->cap) {
        return HEARTH_OK;
    }

    uint32_t cap = forest->cap == 0 ? 64 : forest->cap * 2;
    struct building_node *nodes = hearth_arena_array(forest->arena, cap, sizeof *nodes);
    if (nodes == NULL || cap < forest->cap) {
        return HEARTH_FAIL_ARENA(err, forest->arena);
    }

    if (forest->n > 0) {
        memcpy(nodes, forest->nodes, forest->n * sizeof *nodes);
    }

    forest->nodes = nodes;
    forest->cap = cap;

    return HEARTH_OK;
}

/* Find or make the child of that name. parent NONE: a root. */
static enum hearth_status intern_child(struct snapshot_forest *forest, uint32_t parent,
                                       struct hearth_str code, uint32_t *ret,
                                       struct hearth_err *err)
{
    HEARTH_TRY(make_node_room(forest, err));

    bool is_new = false;
    uint32_t id = hearth_idmap_intern(&forest->ids, hearth_hash128(code.p, code.n, parent),
                                      forest->n, &is_new);

    if (id == HEARTH_IDMAP_NONE) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for a tree of %" PRIu32 " nodes",
                           forest->n);
    }

    if (is_new) {
        uint32_t *first = parent == NONE ? &forest->first_root : &forest->nodes[parent].first_child;
        forest->nodes[id] = (struct building_node){
            .code = code, .parent = parent, .first_child = NONE, .next_sibling = *first};
        *first = id;
        forest->n++;
    }

    *ret = id;

    return HEARTH_OK;
}

/* ---- snapshots ---- */

/* Add the duration of the current run. A clock that was set back causes no negative duration. */
static void end_run(struct building_node *node)
{
    if (node->last_ms > node->first_ms) {
        node->duration_ms += node->last_ms - node->first_ms;
    }
}

/* Count a snapshot in a node; it continues the node's run or begins a new one. */
static void pass_through(struct building_node *node, const struct hearth_snapshot *snapshot)
{
    bool goes_on = node->count > 0 && node->segment == snapshot->segment &&
                   (int64_t)node->sequence + 1 == snapshot->sequence;

    if (!goes_on) {
        end_run(node);
        node->first_ms = snapshot->at_ms;
    }

    node->segment = snapshot->segment;
    node->sequence = snapshot->sequence;
    node->last_ms = snapshot->at_ms;
    node->count++;
}

static enum hearth_status add_snapshot(struct snapshot_forest *forest,
                                       const struct hearth_snapshot *snapshot,
                                       struct hearth_err *err)
{
    uint32_t at = NONE;
    for (uint32_t i = 0; i < snapshot->n_frames; i++) {
        HEARTH_TRY(intern_child(forest, at, snapshot->frames[i], &at, err));
        pass_through(&forest->nodes[at], snapshot);
    }
    return HEARTH_OK;
}

static int compare_snapshots(const void *left, const void *right)
{
    const struct hearth_snapshot *a = *(const struct hearth_snapshot *const *)left;
    const struct hearth_snapshot *b = *(const struct hearth_snapshot *const *)right;

    if (a->segment != b->segment) {
        return a->segment < b->segment ? -1 : 1;
    }

    if (a->sequence != b->sequence) {
        return a->sequence < b->sequence ? -1 : 1;
    }

    return a < b ? -1 : a > b; /* equal numbers: in the given order */
}

/* The snapshots that a query selects: numbers [from, to) of a segment. */
struct number_range {
    uint32_t segment;
    int64_t from, to;
};

/* What all queries select together. */
struct snapshot_selection {
    const struct hearth_snapshot *all;
    size_t n_all;
    struct number_range *ranges; /* room for one per query */
    size_t n_ranges;
    const struct hearth_snapshot **chosen; /* each once, sorted */
    size_t n_chosen;
};

/*
 * Add the numbers that a query selects, if any, at most `limit` (0: all). Returns how many there
 * are without the limit.
 */
static int64_t select_range(struct snapshot_selection *selection,
                            const struct hearth_snapshot_query *query, int64_t limit)
{
    int64_t min = INT64_MAX, max = INT64_MIN;

    for (size_t i = 0; i < selection->n_all; i++) {
        const struct hearth_snapshot *it = &selection->all[i];
        if (it->segment == query->segment && it->at_ms >= query->start_ms &&
            it->at_ms <= query->end_ms) {
            min = it->sequence < min ? it->sequence : min;
            max = it->sequence > max ? it->sequence : max;
        }
    }

    if (min > max) {
        return 0;
    }

    int64_t end = limit > 0 && max + 1 - min > limit ? min + limit : max + 1;
    selection->ranges[selection->n_ranges++] = (struct number_range){query->segment, min, end};

    return max + 1 - min;
}

static bool is_selected(const struct snapshot_selection *selection,
                        const struct hearth_snapshot *snapshot)
{
    for (size_t i = 0; i < selection->n_ranges; i++) {
        const struct number_range *range = &selection->ranges[i];
        if (range->segment == snapshot->segment && snapshot->sequence >= range->from &&
            snapshot->sequence < range->to) {
            return true;
        }
    }
    return false;
}

/* Collect the selected snapshots, each once, sorted. */
static enum hearth_status collect_selected(struct snapshot_selection *selection,
                                           struct hearth_arena *arena, struct hearth_err *err)
{
    const struct hearth_snapshot **chosen =
        hearth_arena_array(arena, selection->n_all, sizeof *chosen);

    if (chosen == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    size_t n_chosen = 0;
    for (size_t i = 0; i < selection->n_all; i++) {
        if (is_selected(selection, &selection->all[i])) {
            chosen[n_chosen++] = &selection->all[i];
        }
    }

    /* Sort, and remove duplicates. */
    qsort(chosen, n_chosen, sizeof *chosen, compare_snapshots);
    size_t n_kept = 0;
    for (size_t i = 0; i < n_chosen; i++) {
        if (n_kept == 0 || chosen[n_kept - 1]->segment != chosen[i]->segment ||
            chosen[n_kept - 1]->sequence != chosen[i]->sequence) {
            chosen[n_kept++] = chosen[i];
        }
    }

    selection->chosen = chosen;
    selection->n_chosen = n_kept;

    return HEARTH_OK;
}

/* ---- output ---- */

/* Order of siblings: longest first, then most counted, then by name. */
static bool is_before(const struct snapshot_forest *forest, uint32_t left, uint32_t right)
{
    const struct building_node *a = &forest->nodes[left], *b = &forest->nodes[right];

    if (a->duration_ms != b->duration_ms) {
        return a->duration_ms > b->duration_ms;
    }

    if (a->count != b->count) {
        return a->count > b->count;
    }

    return hearth_str_cmp(a->code, b->code) < 0;
}

/* Merge two sorted lists of siblings. */
static uint32_t merge_lists(struct snapshot_forest *forest, uint32_t a, uint32_t b)
{
    uint32_t first = NONE, *end = &first;

    while (a != NONE && b != NONE) {
        uint32_t *from = is_before(forest, b, a) ? &b : &a;
        *end = *from;
        end = &forest->nodes[*from].next_sibling;
        *from = *end;
    }

    *end = a != NONE ? a : b;

    return first;
}

/* Sort siblings by merging runs of 1, 2, 4, .. elements, as a binary counter carries. */
static uint32_t sort_siblings(struct snapshot_forest *forest, uint32_t first)
{
    uint32_t runs[32];

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(runs); i++) {
        runs[i] = NONE;
    }

    /* runs[i] is empty or has 2^i elements. */
    while (first != NONE) {
        uint32_t run = first;
        first = forest->nodes[run].next_sibling;
        forest->nodes[run].next_sibling = NONE;

        size_t i = 0;
        for (; runs[i] != NONE; i++) {
            run = merge_lists(forest, runs[i], run);
            runs[i] = NONE;
        }

        runs[i] = run;
    }

    uint32_t all = NONE;
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(runs); i++) {
        all = merge_lists(forest, runs[i], all);
    }

    return all;
}

/* Write one tree, breadth first; `order` has room for all nodes. */
static bool write_tree(struct snapshot_forest *forest, uint32_t root, uint32_t *order,
                       struct hearth_snapshot_tree *ret)
{
    size_t n = 0;

    /* Find the order of the nodes. */
    order[n++] = root;
    for (size_t i = 0; i < n; i++) {
        struct building_node *node = &forest->nodes[order[i]];
        node->first_child = sort_siblings(forest, node->first_child);
        for (uint32_t c = node->first_child; c != NONE; c = forest->nodes[c].next_sibling) {
            order[n++] = c;
        }
    }

    struct hearth_snapshot_node *out = hearth_arena_calloc(forest->arena, n, sizeof *out);
    if (out == NULL) {
        return false;
    }

    /* Children follow in the order of their parents. */
    size_t next_child = 1;
    for (size_t i = 0; i < n; i++) {
        const struct building_node *node = &forest->nodes[order[i]];
        out[i].id = (int32_t)i + 1;
        out[i].code = node->code;
        out[i].count = node->count;
        out[i].duration_ms = node->duration_ms;
        out[i].duration_child_excluded_ms = node->duration_ms - node->children_ms;

        for (uint32_t c = node->first_child; c != NONE; c = forest->nodes[c].next_sibling) {
            out[next_child++].parent_id = (int32_t)i + 1;
        }
    }

    *ret = (struct hearth_snapshot_tree){out, n};

    return true;
}

static enum hearth_status write_trees(struct snapshot_forest *forest,
                                      struct hearth_snapshot_trees *ret, struct hearth_err *err)
{
    /* Sum the durations of children. */
    for (uint32_t i = 0; i < forest->n; i++) {
        uint32_t parent = forest->nodes[i].parent;
        if (parent != NONE) {
            forest->nodes[parent].children_ms += forest->nodes[i].duration_ms;
        }
    }

    /* Sort and count the roots. */
    forest->first_root = sort_siblings(forest, forest->first_root);
    for (uint32_t r = forest->first_root; r != NONE; r = forest->nodes[r].next_sibling) {
        ret->n_trees++;
    }

    /* Write their trees. */
    uint32_t *order = hearth_arena_array(forest->arena, forest->n, sizeof *order);
    ret->trees = hearth_arena_array(forest->arena, ret->n_trees, sizeof *ret->trees);
    bool ok = order != NULL && ret->trees != NULL;
    size_t i = 0;
    for (uint32_t r = forest->first_root; ok && r != NONE; r = forest->nodes[r].next_sibling) {
        ok = write_tree(forest, r, order, &ret->trees[i++]);
    }

    return ok ? HEARTH_OK : HEARTH_FAIL_ARENA(err, forest->arena);
}

static enum hearth_status add_snapshots(struct snapshot_forest *forest,
                                        const struct hearth_snapshot *const *snapshots, size_t n,
                                        struct hearth_err *err)
{
    for (size_t i = 0; i < n; i++) {
        HEARTH_TRY(add_snapshot(forest, snapshots[i], err));
    }
    for (uint32_t i = 0; i < forest->n; i++) {
        end_run(&forest->nodes[i]);
    }
    return HEARTH_OK;
}

enum hearth_status hearth_snapshot_trees_make(const struct hearth_snapshot_choice *choice,
                                              struct hearth_arena *arena,
                                              struct hearth_snapshot_trees *ret,
                                              struct hearth_err *err)
{
    assert(choice->snapshots != NULL || choice->n == 0);
    assert(choice->queries != NULL || choice->n_queries == 0);
    assert(arena != NULL && ret != NULL);

    /* Select the snapshots. */
    *ret = (struct hearth_snapshot_trees){0};
    struct snapshot_selection selection = {
        .all = choice->snapshots,
        .n_all = choice->n,
        .ranges = hearth_arena_array(arena, choice->n_queries, sizeof *selection.ranges)};
    if (selection.ranges == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (size_t i = 0; i < choice->n_queries; i++) {
        ret->n_found += select_range(&selection, &choice->queries[i], choice->limit);
    }

    HEARTH_TRY(collect_selected(&selection, arena, err));
    for (size_t i = 0; i < selection.n_chosen; i++) {
        ret->n_cut += selection.chosen[i]->is_cut;
    }

    /* Build the trees of them. */
    struct snapshot_forest forest;
    forest_init(&forest, arena);
    enum hearth_status status = add_snapshots(&forest, selection.chosen, selection.n_chosen, err);
    if (status == HEARTH_OK) {
        status = write_trees(&forest, ret, err);
    }

    hearth_idmap_release(&forest.ids);

    return status;
}

/* ---- CPU profiles ---- */

static int64_t get_period_ms(const struct hearth_profile *profile)
{
    struct hearth_str unit = profile->strings[profile->period_type.unit];
    int64_t period = profile->period, ms = 0;

    if (period <= 0) {
        return DEFAULT_PERIOD_MS;
    }

    if (hearth_str_eq_c(unit, "nanoseconds") || hearth_str_eq_c(unit, "ns")) {
        ms = period / 1000000;
    } else if (hearth_str_eq_c(unit, "microseconds") || hearth_str_eq_c(unit, "us")) {
        ms = period / 1000;
    } else if (hearth_str_eq_c(unit, "milliseconds") || hearth_str_eq_c(unit, "ms")) {
        ms = period;
    } else if (hearth_str_eq_c(unit, "seconds") || hearth_str_eq_c(unit, "s")) {
        ms = period > INT64_MAX / 1000 ? INT64_MAX : period * 1000;
    } else if (hearth_str_eq_c(unit, "hz") || hearth_str_eq_c(unit, "hertz")) {
        ms = 1000 / period;
    } else {
        return DEFAULT_PERIOD_MS;
    }

    return ms > 0 ? ms : 1;
}

/* "function:line;function:line"; the address if the location has no lines. */
static struct hearth_str name_location(const struct hearth_profile *profile, uint32_t location,
                                       struct hearth_arena *arena)
{
    const struct hearth_location *it = &profile->locations[location];

    if (it->n_lines == 0) {
        return hearth_str_c(hearth_arena_printf(arena, "0x%" PRIx64, it->address));
    }

    struct hearth_str all = {0};
    for (uint32_t i = 0; i < it->n_lines; i++) {
        const struct hearth_line *line = &profile->lines[it->first_line + i];
        struct hearth_str name = profile->strings[profile->functions[line->function].name];
        all = hearth_str_c(hearth_arena_printf(
            arena, "%.*s%s%.*s:%" PRId64, (int)all.n, all.n == 0 ? "" : all.p, i == 0 ? "" : ";",
            (int)(name.n > INT32_MAX ? INT32_MAX : name.n), name.n == 0 ? "" : name.p, line->line));
        if (all.p == NULL) {
            return all;
        }
    }

    return all;
}

static int64_t add_saturating(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

/* A profile whose samples become paths of a forest. */
struct sampled_profile {
    const struct hearth_profile *profile;
    struct hearth_str *names; /* by location */
    int64_t period_ms;
};

static enum hearth_status add_profile_sample(struct snapshot_forest *forest,
                                             const struct sampled_profile *source, uint32_t sample,
                                             struct hearth_err *err)
{
    const struct hearth_profile *profile = source->profile;
    int64_t count = profile->n_types == 0 ? 1 : profile->values[(size_t)sample * profile->n_types];
    int64_t ms;

    if (count <= 0) {
        return HEARTH_OK;
    }

    if (__builtin_mul_overflow(count, source->period_ms, &ms)) {
        ms = INT64_MAX;
    }

    /* From the root to the leaf. */
    uint32_t at = NONE;
    for (uint32_t k = profile->stack_first[sample + 1]; k > profile->stack_first[sample]; k--) {
        uint32_t location = profile->stack_locs[k - 1];
        struct hearth_str code =
            location == HEARTH_NO_INDEX ? HEARTH_FRAME_UNKNOWN : source->names[location];
        HEARTH_TRY(intern_child(forest, at, code, &at, err));
        forest->nodes[at].count = add_saturating(forest->nodes[at].count, count);
        forest->nodes[at].duration_ms = add_saturating(forest->nodes[at].duration_ms, ms);
    }

    return HEARTH_OK;
}

/* Put several roots below a common one. */
static enum hearth_status join_roots(struct snapshot_forest *forest, struct hearth_err *err)
{
    uint32_t first = forest->first_root, root;

    if (first == NONE || forest->nodes[first].next_sibling == NONE) {
        return HEARTH_OK;
    }

    forest->first_root = NONE;
    HEARTH_TRY(make_node_room(forest, err));
    root = forest->n++;
    forest->nodes[root] = (struct building_node){
        .code = HEARTH_STR("root"), .parent = NONE, .first_child = first, .next_sibling = NONE};
    forest->first_root = root;

    for (uint32_t c = first; c != NONE; c = forest->nodes[c].next_sibling) {
        struct building_node *node = &forest->nodes[c];
        node->parent = root;
        forest->nodes[root].count = add_saturating(forest->nodes[root].count, node->count);
        forest->nodes[root].duration_ms =
            add_saturating(forest->nodes[root].duration_ms, node->duration_ms);
    }

    return HEARTH_OK;
}

static enum hearth_status add_profile(struct snapshot_forest *forest,
                                      const struct hearth_profile *profile,
                                      bool (*is_wanted)(void *context, uint32_t sample),
                                      void *context, struct hearth_err *err)
{
    struct sampled_profile source = {.profile = profile, .period_ms = get_period_ms(profile)};

    source.names = hearth_arena_array(forest->arena, profile->n_locations, sizeof source.names[0]);
    if (source.names == NULL) {
        return HEARTH_FAIL_ARENA(err, forest->arena);
    }

    /* Name each location once. */
    for (uint32_t i = 0; i < profile->n_locations; i++) {
        source.names[i] = name_location(profile, i, forest->arena);
        if (source.names[i].p == NULL) {
            return HEARTH_FAIL_ARENA(err, forest->arena);
        }
    }

    /* Add the samples. */
    for (uint32_t s = 0; s < profile->n_samples; s++) {
        if (is_wanted == NULL || is_wanted(context, s)) {
            HEARTH_TRY(add_profile_sample(forest, &source, s, err));
        }
    }

    return join_roots(forest, err);
}

enum hearth_status
hearth_snapshot_trees_of_profile(const struct hearth_profile *profile,
                                 bool (*is_wanted)(void *context, uint32_t sample), void *context,
                                 struct hearth_arena *arena, struct hearth_snapshot_trees *ret,
                                 struct hearth_err *err)
{
    assert(profile != NULL && arena != NULL && ret != NULL);

    *ret = (struct hearth_snapshot_trees){0};
    struct snapshot_forest forest;
    forest_init(&forest, arena);
    enum hearth_status status = add_profile(&forest, profile, is_wanted, context, err);
    if (status == HEARTH_OK) {
        status = write_trees(&forest, ret, err);
    }

    hearth_idmap_release(&forest.ids);

    return status;
}
