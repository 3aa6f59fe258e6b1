/*
 * snapshot_trees.c -- thread snapshots and CPU profiles of requests as trees with durations (contract:
 * hearth/model/snapshot_trees.h).
 *
 * Snapshots come in the order of segments and numbers, so a node needs to remember only the run that it is in.
 */
#include "hearth/model/snapshot_trees.h"

#include "hearth/base/hash.h"
#include "hearth/model/frame_name.h"

#include <inttypes.h>
#include <stdlib.h>

#define DEFAULT_PERIOD_MS 10

struct node {
    struct hearth_str code;
    uint32_t parent; /* NONE: a root */
    uint32_t first_child, next_sibling;
    int64_t count, duration_ms;
    int64_t children_ms; /* sum of theirs */
    uint32_t segment;    /* of the run that goes on */
    int32_t sequence;
    int64_t first_ms, last_ms;
};

#define NONE UINT32_MAX

struct growing {
    struct hearth_arena *arena;
    struct hearth_idmap ids;
    struct node *nodes;
    uint32_t n, cap;
    uint32_t first_root;
};

static void growing_init(struct growing *growing, struct hearth_arena *arena)
{
    *growing = (struct growing){.arena = arena, .first_root = NONE};
    hearth_idmap_init(&growing->ids);
}

static enum hearth_status make_room(struct growing *growing, struct hearth_err *err)
{
    if (growing->n < growing->cap) {
        return HEARTH_OK;
    }

    uint32_t cap = growing->cap == 0 ? 64 : growing->cap * 2;
    struct node *nodes = hearth_arena_array(growing->arena, cap, sizeof *nodes);
    if (nodes == NULL || cap < growing->cap) {
        return HEARTH_FAIL_ARENA(err, growing->arena);
    }

    if (growing->n > 0) {
        memcpy(nodes, growing->nodes, growing->n * sizeof *nodes);
    }

    growing->nodes = nodes;
    growing->cap = cap;

    return HEARTH_OK;
}

/* The child of that name, made when there is none. parent NONE: a root. */
static enum hearth_status child_of(struct growing *growing, uint32_t parent, struct hearth_str code,
                                   uint32_t *ret, struct hearth_err *err)
{
    HEARTH_TRY(make_room(growing, err));
    bool is_new = false;
    uint32_t id = hearth_idmap_intern(&growing->ids, hearth_hash128(code.p, code.n, parent),
                                      growing->n, &is_new);
    if (id == HEARTH_IDMAP_NONE) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for a tree of %" PRIu32 " nodes",
                           growing->n);
    }

    if (is_new) {
        uint32_t *first =
            parent == NONE ? &growing->first_root : &growing->nodes[parent].first_child;
        growing->nodes[id] = (struct node){
            .code = code, .parent = parent, .first_child = NONE, .next_sibling = *first};
        *first = id;
        growing->n++;
    }

    *ret = id;

    return HEARTH_OK;
}

/* ---- snapshots ---- */

/* A clock that was set back makes no negative durations. */
static void end_run(struct node *node)
{
    if (node->last_ms > node->first_ms) {
        node->duration_ms += node->last_ms - node->first_ms;
    }
}

static void pass_through(struct node *node, const struct hearth_snapshot *snapshot)
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

static enum hearth_status add_snapshot(struct growing *growing,
                                       const struct hearth_snapshot *snapshot,
                                       struct hearth_err *err)
{
    uint32_t at = NONE;
    for (uint32_t i = 0; i < snapshot->n_frames; i++) {
        HEARTH_TRY(child_of(growing, at, snapshot->frames[i], &at, err));
        pass_through(&growing->nodes[at], snapshot);
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

    return a < b ? -1 : a > b; /* of two with one number, the first given */
}

/* The numbers that a query takes: [from, to). False: none. */
struct taken {
    uint32_t segment;
    int64_t from, to;
};

static bool take(const struct hearth_snapshot *snapshots, size_t n,
                 const struct hearth_snapshot_query *query, int64_t limit, struct taken *ret,
                 int64_t *n_found)
{
    int64_t min = INT64_MAX, max = INT64_MIN;

    for (size_t i = 0; i < n; i++) {
        const struct hearth_snapshot *it = &snapshots[i];
        if (it->segment == query->segment && it->at_ms >= query->start_ms &&
            it->at_ms <= query->end_ms) {
            min = it->sequence < min ? it->sequence : min;
            max = it->sequence > max ? it->sequence : max;
        }
    }

    if (min > max) {
        return false;
    }

    *n_found += max + 1 - min;
    int64_t end = limit > 0 && max + 1 - min > limit ? min + limit : max + 1;
    *ret = (struct taken){query->segment, min, end};

    return true;
}

static bool is_taken(const struct taken *taken, size_t n, const struct hearth_snapshot *snapshot)
{
    for (size_t i = 0; i < n; i++) {
        if (taken[i].segment == snapshot->segment && snapshot->sequence >= taken[i].from &&
            snapshot->sequence < taken[i].to) {
            return true;
        }
    }
    return false;
}

/* Those that any query takes, each once, in order. */
static enum hearth_status choose(const struct hearth_snapshot *snapshots, size_t n,
                                 const struct taken *taken, size_t n_taken,
                                 struct hearth_arena *arena, const struct hearth_snapshot ***ret,
                                 size_t *ret_n, struct hearth_err *err)
{
    const struct hearth_snapshot **chosen = hearth_arena_array(arena, n, sizeof *chosen);

    if (chosen == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    size_t n_chosen = 0;
    for (size_t i = 0; i < n; i++) {
        if (is_taken(taken, n_taken, &snapshots[i])) {
            chosen[n_chosen++] = &snapshots[i];
        }
    }

    qsort(chosen, n_chosen, sizeof *chosen, compare_snapshots);
    size_t n_kept = 0;
    for (size_t i = 0; i < n_chosen; i++) {
        if (n_kept == 0 || chosen[n_kept - 1]->segment != chosen[i]->segment ||
            chosen[n_kept - 1]->sequence != chosen[i]->sequence) {
            chosen[n_kept++] = chosen[i];
        }
    }

    *ret = chosen;
    *ret_n = n_kept;

    return HEARTH_OK;
}

/* ---- as an answer ---- */

/* The longest first, then the most often seen, then by name. */
static bool comes_before(const struct growing *growing, uint32_t left, uint32_t right)
{
    const struct node *a = &growing->nodes[left], *b = &growing->nodes[right];

    if (a->duration_ms != b->duration_ms) {
        return a->duration_ms > b->duration_ms;
    }

    if (a->count != b->count) {
        return a->count > b->count;
    }

    return hearth_str_cmp(a->code, b->code) < 0;
}

/* Merge two sorted lists of siblings. */
static uint32_t merge_lists(struct growing *growing, uint32_t a, uint32_t b)
{
    uint32_t first = NONE, *end = &first;

    while (a != NONE && b != NONE) {
        uint32_t *from = comes_before(growing, b, a) ? &b : &a;
        *end = *from;
        end = &growing->nodes[*from].next_sibling;
        *from = *end;
    }

    *end = a != NONE ? a : b;

    return first;
}

/* Siblings in order: runs of 1, 2, 4, .. merged as a counter carries. */
static uint32_t sort_siblings(struct growing *growing, uint32_t first)
{
    uint32_t runs[32];

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(runs); i++) {
        runs[i] = NONE;
    }

    while (first != NONE) {
        uint32_t run = first;
        first = growing->nodes[run].next_sibling;
        growing->nodes[run].next_sibling = NONE;
        size_t i = 0;
        for (; runs[i] != NONE; i++) {
            run = merge_lists(growing, runs[i], run);
            runs[i] = NONE;
        }
        runs[i] = run;
    }

    uint32_t all = NONE;
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(runs); i++) {
        all = merge_lists(growing, runs[i], all);
    }

    return all;
}

/* One tree, breadth first; `order` has room for all nodes. */
static bool write_tree(struct growing *growing, uint32_t root, uint32_t *order,
                       struct hearth_snapshot_tree *ret)
{
    size_t n = 0;

    order[n++] = root;
    for (size_t i = 0; i < n; i++) {
        struct node *node = &growing->nodes[order[i]];
        node->first_child = sort_siblings(growing, node->first_child);
        for (uint32_t c = node->first_child; c != NONE; c = growing->nodes[c].next_sibling) {
            order[n++] = c;
        }
    }

    struct hearth_snapshot_node *out = hearth_arena_calloc(growing->arena, n, sizeof *out);
    if (out == NULL) {
        return false;
    }

    size_t next_child = 1; /* children follow in the order of their parents */
    for (size_t i = 0; i < n; i++) {
        const struct node *node = &growing->nodes[order[i]];
        out[i].id = (int32_t)i + 1;
        out[i].code = node->code;
        out[i].count = node->count;
        out[i].duration_ms = node->duration_ms;
        out[i].duration_child_excluded_ms = node->duration_ms - node->children_ms;
        for (uint32_t c = node->first_child; c != NONE; c = growing->nodes[c].next_sibling) {
            out[next_child++].parent_id = (int32_t)i + 1;
        }
    }

    *ret = (struct hearth_snapshot_tree){out, n};

    return true;
}

static enum hearth_status write_trees(struct growing *growing, struct hearth_snapshot_trees *ret,
                                      struct hearth_err *err)
{
    for (uint32_t i = 0; i < growing->n; i++) {
        uint32_t parent = growing->nodes[i].parent;
        if (parent != NONE) {
            growing->nodes[parent].children_ms += growing->nodes[i].duration_ms;
        }
    }

    growing->first_root = sort_siblings(growing, growing->first_root);
    for (uint32_t r = growing->first_root; r != NONE; r = growing->nodes[r].next_sibling) {
        ret->n_trees++;
    }

    uint32_t *order = hearth_arena_array(growing->arena, growing->n, sizeof *order);
    ret->trees = hearth_arena_array(growing->arena, ret->n_trees, sizeof *ret->trees);
    bool ok = order != NULL && ret->trees != NULL;
    size_t i = 0;
    for (uint32_t r = growing->first_root; ok && r != NONE; r = growing->nodes[r].next_sibling) {
        ok = write_tree(growing, r, order, &ret->trees[i++]);
    }

    return ok ? HEARTH_OK : HEARTH_FAIL_ARENA(err, growing->arena);
}

static enum hearth_status grow(struct growing *growing,
                               const struct hearth_snapshot *const *snapshots, size_t n,
                               struct hearth_err *err)
{
    for (size_t i = 0; i < n; i++) {
        HEARTH_TRY(add_snapshot(growing, snapshots[i], err));
    }
    for (uint32_t i = 0; i < growing->n; i++) {
        end_run(&growing->nodes[i]);
    }
    return HEARTH_OK;
}

enum hearth_status hearth_snapshot_trees_make(const struct hearth_snapshot *snapshots, size_t n,
                                              const struct hearth_snapshot_query *queries,
                                              size_t n_queries, int64_t limit,
                                              struct hearth_arena *arena,
                                              struct hearth_snapshot_trees *ret,
                                              struct hearth_err *err)
{
    *ret = (struct hearth_snapshot_trees){0};
    struct taken *taken = hearth_arena_array(arena, n_queries, sizeof *taken);
    if (taken == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    size_t n_taken = 0;
    for (size_t i = 0; i < n_queries; i++) {
        n_taken += take(snapshots, n, &queries[i], limit, &taken[n_taken], &ret->n_found);
    }

    const struct hearth_snapshot **chosen;
    size_t n_chosen;
    HEARTH_TRY(choose(snapshots, n, taken, n_taken, arena, &chosen, &n_chosen, err));
    for (size_t i = 0; i < n_chosen; i++) {
        ret->n_cut += chosen[i]->is_cut;
    }

    struct growing growing;
    growing_init(&growing, arena);
    enum hearth_status status = grow(&growing, chosen, n_chosen, err);
    if (status == HEARTH_OK) {
        status = write_trees(&growing, ret, err);
    }

    hearth_idmap_release(&growing.ids);

    return status;
}

/* ---- CPU profiles ---- */

static int64_t period_ms_of(const struct hearth_profile *profile)
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

/* "function:line;function:line"; of a location without lines, its address. */
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

static enum hearth_status add_sample(struct growing *growing, const struct hearth_profile *profile,
                                     const struct hearth_str *names, uint32_t sample,
                                     int64_t period_ms, struct hearth_err *err)
{
    int64_t count = profile->n_types == 0 ? 1 : profile->values[(size_t)sample * profile->n_types];
    int64_t ms;

    if (count <= 0) {
        return HEARTH_OK;
    }

    if (__builtin_mul_overflow(count, period_ms, &ms)) {
        ms = INT64_MAX;
    }

    uint32_t at = NONE;
    for (uint32_t k = profile->stack_first[sample + 1]; k > profile->stack_first[sample]; k--) {
        uint32_t location = profile->stack_locs[k - 1];
        struct hearth_str code =
            location == HEARTH_NO_INDEX ? HEARTH_FRAME_UNKNOWN : names[location];
        HEARTH_TRY(child_of(growing, at, code, &at, err));
        growing->nodes[at].count = add_saturating(growing->nodes[at].count, count);
        growing->nodes[at].duration_ms = add_saturating(growing->nodes[at].duration_ms, ms);
    }

    return HEARTH_OK;
}

/* Several roots get one above them. */
static enum hearth_status join_roots(struct growing *growing, struct hearth_err *err)
{
    uint32_t first = growing->first_root, root;

    if (first == NONE || growing->nodes[first].next_sibling == NONE) {
        return HEARTH_OK;
    }

    growing->first_root = NONE;
    HEARTH_TRY(make_room(growing, err));
    root = growing->n++;
    growing->nodes[root] = (struct node){
        .code = HEARTH_STR("root"), .parent = NONE, .first_child = first, .next_sibling = NONE};
    growing->first_root = root;
    for (uint32_t c = first; c != NONE; c = growing->nodes[c].next_sibling) {
        struct node *node = &growing->nodes[c];
        node->parent = root;
        growing->nodes[root].count = add_saturating(growing->nodes[root].count, node->count);
        growing->nodes[root].duration_ms =
            add_saturating(growing->nodes[root].duration_ms, node->duration_ms);
    }

    return HEARTH_OK;
}

static enum hearth_status grow_profile(struct growing *growing,
                                       const struct hearth_profile *profile,
                                       bool (*is_wanted)(void *context, uint32_t sample),
                                       void *context, struct hearth_err *err)
{
    struct hearth_str *names =
        hearth_arena_array(growing->arena, profile->n_locations, sizeof *names);

    if (names == NULL) {
        return HEARTH_FAIL_ARENA(err, growing->arena);
    }

    for (uint32_t i = 0; i < profile->n_locations; i++) {
        names[i] = name_location(profile, i, growing->arena);
        if (names[i].p == NULL) {
            return HEARTH_FAIL_ARENA(err, growing->arena);
        }
    }

    int64_t period_ms = period_ms_of(profile);
    for (uint32_t s = 0; s < profile->n_samples; s++) {
        if (is_wanted == NULL || is_wanted(context, s)) {
            HEARTH_TRY(add_sample(growing, profile, names, s, period_ms, err));
        }
    }

    return join_roots(growing, err);
}

enum hearth_status
hearth_snapshot_trees_of_profile(const struct hearth_profile *profile,
                                 bool (*is_wanted)(void *context, uint32_t sample), void *context,
                                 struct hearth_arena *arena, struct hearth_snapshot_trees *ret,
                                 struct hearth_err *err)
{
    *ret = (struct hearth_snapshot_trees){0};
    struct growing growing;
    growing_init(&growing, arena);
    enum hearth_status status = grow_profile(&growing, profile, is_wanted, context, err);
    if (status == HEARTH_OK) {
        status = write_trees(&growing, ret, err);
    }

    hearth_idmap_release(&growing.ids);

    return status;
}
