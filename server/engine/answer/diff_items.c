/*
 * diff_items.c -- chooses the items of a diff, and finds their values in its parts (contract:
 * diff_items.h).
 *
 * Nodes of a name tree are found by name among the shown nodes of the diff, once for all parts;
 * what is not shown there belongs to the node "other" of its parent. Then a part adds the value of
 * each stack to the item nearest to the stack's leaf, and adds up the items, of which there are
 * few.
 *
 * The total of a function is the sum of all stacks that contain it, once each. A stack is added to
 * its path: the functions with an item that it contains, each at its outermost call. Paths form a
 * tree of their own, so that one pass from its leaves adds up all totals.
 *
 * If stacks that Go's runtime cut are to be joined, this is done in each part by itself: the part
 * becomes a function tree like a side, and its nodes are found in the same way.
 */
#include "answer/diff_items.h"

#include "hearth/base/mem.h"
#include "hearth/engine/query.h"
#include "hearth/model/frame_name.h"

#include "select/stack_filter.h"

#include <assert.h>

/* Which items the nodes of a tree count for. */
struct hearth_diff_map {
    struct hearth_name_tree *tree; /* a reference; NULL: the map is that of a function tree */
    uint32_t n_nodes;
    uint32_t *node_of;       /* [n_nodes]: the shown node, or HEARTH_NO_NODE */
    uint32_t *item_of;       /* [n_nodes]: of it or the nearest node above that has one */
    uint32_t *function_of;   /* [n_nodes]: the item of its function, or NO_ITEM */
    uint32_t *path_of;       /* [n_nodes] */
    struct diff_path *paths; /* [n_nodes]; path 0 is empty, and parents stand before children */
    uint32_t n_paths;
};

/* The functions of a stack whose totals are items. */
struct diff_path {
    uint32_t parent, item; /* the path without the innermost function, and that function's item */
    int64_t value;         /* of the stacks being added; otherwise 0 */
};

/* The values of a part: [n] of each family. */
struct part_values {
    int64_t *nodes, *functions, *function_totals;
};

/* ---- items ---- */

/* The index of a name among the shown ones; HEARTH_IDMAP_NONE if no shown node or item has it. */
static uint32_t find_shown_name(const struct hearth_diff_items *items, struct hearth_str name)
{
    return hearth_idmap_find(&items->shown.name_ids,
                             hearth_hash128(name.p, name.n, items->shown.seed));
}

static bool is_large(const struct hearth_diff_items *items, int64_t left, int64_t right)
{
    return (double)left >= HEARTH_NOISE_LEAST_SHARE * (double)items->totals[0] ||
           (double)right >= HEARTH_NOISE_LEAST_SHARE * (double)items->totals[1];
}

/* Rebuilds the tree of the diff. */
static enum hearth_status make_shown_tree(struct hearth_diff_items *items, struct hearth_err *err)
{
    const struct hearth_flame_diff *diff = items->diff;
    size_t node = 0;

    if (hearth_stacktree_root(&items->shown) == HEARTH_NO_NODE) {
        return HEARTH_FAIL_ARENA(err, items->arena);
    }

    for (size_t l = 0; l < diff->n_levels; l++) {
        for (size_t i = 0; i < diff->levels[l].n; i += 7, node++) {
            if (node == 0) {
                continue;
            }
            uint32_t name =
                hearth_stacktree_name(&items->shown, diff->names[diff->levels[l].values[i + 6]]);
            if (name == HEARTH_IDMAP_NONE ||
                hearth_stacktree_child(&items->shown, diff->parents[node], name) ==
                    HEARTH_NO_NODE) {
                return HEARTH_FAIL_ARENA(err, items->arena);
            }
        }
    }

    HEARTH_ASSERT(items->shown.n_nodes == diff->n_nodes);
    items->other = find_shown_name(items, HEARTH_STR("other"));
    return HEARTH_OK;
}

static bool init_family(struct hearth_diff_items *items, struct hearth_diff_family *family,
                        size_t n_of)
{
    family->n_of = n_of;
    family->item_of = hearth_arena_array(items->arena, n_of, sizeof family->item_of[0]);
    for (size_t s = 0; s < 2; s++) {
        family->values[s] = hearth_arena_calloc(items->arena, n_of, sizeof family->values[s][0]);
    }

    for (size_t i = 0; family->item_of != NULL && i < n_of; i++) {
        family->item_of[i] = HEARTH_DIFF_NO_ITEM;
    }

    return family->item_of != NULL && family->values[0] != NULL && family->values[1] != NULL;
}

static void add_item(struct hearth_diff_family *family, size_t of, int64_t left, int64_t right)
{
    family->values[0][family->n] = left;
    family->values[1][family->n] = right;
    family->item_of[of] = (uint32_t)family->n++;
}

/* Makes items of the nodes that are large; a node with the values of its parent is its parent's. */
static enum hearth_status choose_nodes(struct hearth_diff_items *items, struct hearth_err *err)
{
    const struct hearth_flame_diff *diff = items->diff;
    struct hearth_diff_family *nodes = &items->nodes;
    size_t node = 0;

    items->parent_item =
        hearth_arena_array(items->arena, diff->n_nodes, sizeof items->parent_item[0]);
    if (items->parent_item == NULL || !init_family(items, nodes, diff->n_nodes)) {
        return HEARTH_FAIL_ARENA(err, items->arena);
    }

    for (size_t l = 0; l < diff->n_levels; l++) {
        for (size_t i = 0; i < diff->levels[l].n; i += 7, node++) {
            int64_t left = diff->levels[l].values[i + 1], right = diff->levels[l].values[i + 4];
            uint32_t above = nodes->item_of[diff->parents[node]];
            if (above != HEARTH_DIFF_NO_ITEM && nodes->values[0][above] == left &&
                nodes->values[1][above] == right) {
                nodes->item_of[node] = above;
            } else if (is_large(items, left, right)) {
                /* The nodes above are as large, and therefore items. */
                HEARTH_ASSERT(node == 0 || above != HEARTH_DIFF_NO_ITEM);
                items->parent_item[nodes->n] = node == 0 ? 0 : above;
                add_item(nodes, node, left, right);
            }
        }
    }

    return HEARTH_OK;
}

/* The values of all functions of a side, by their shown names. */
struct side_functions {
    int64_t *selfs, *totals;
    size_t n;
};

static enum hearth_status collect_functions(struct hearth_diff_items *items, size_t side,
                                            struct side_functions *ret, struct hearth_err *err)
{
    const struct hearth_stacktree *tree = items->trees[side];
    struct hearth_function_total *functions;
    size_t n;

    HEARTH_TRY(hearth_stacktree_functions(tree, items->arena, &functions, &n, err));
    for (size_t i = 0; i < n; i++) {
        if (hearth_stacktree_name(&items->shown, tree->names[functions[i].name]) ==
            HEARTH_IDMAP_NONE) {
            return HEARTH_FAIL_ARENA(err, items->arena);
        }
    }

    ret->n = items->shown.n_names;
    ret->selfs = hearth_arena_calloc(items->arena, ret->n, sizeof ret->selfs[0]);
    ret->totals = hearth_arena_calloc(items->arena, ret->n, sizeof ret->totals[0]);
    if (ret->selfs == NULL || ret->totals == NULL) {
        return HEARTH_FAIL_ARENA(err, items->arena);
    }

    for (size_t i = 0; i < n; i++) {
        uint32_t name = find_shown_name(items, tree->names[functions[i].name]);
        ret->selfs[name] = functions[i].self;
        ret->totals[name] = functions[i].total;
    }

    return HEARTH_OK;
}

/* Makes items of the selfs that are large, and of the totals. */
static enum hearth_status choose_functions(struct hearth_diff_items *items, struct hearth_err *err)
{
    struct side_functions left, right;

    HEARTH_TRY(collect_functions(items, 0, &left, err));
    HEARTH_TRY(collect_functions(items, 1, &right, err));
    if (!init_family(items, &items->functions, right.n) ||
        !init_family(items, &items->function_totals, right.n)) {
        return HEARTH_FAIL_ARENA(err, items->arena);
    }

    /* The right side has the names of both. */
    for (size_t i = 0; i < right.n; i++) {
        int64_t self = i < left.n ? left.selfs[i] : 0, total = i < left.n ? left.totals[i] : 0;
        if (is_large(items, self, right.selfs[i])) {
            add_item(&items->functions, i, self, right.selfs[i]);
        }
        if (is_large(items, total, right.totals[i])) {
            add_item(&items->function_totals, i, total, right.totals[i]);
        }
    }

    return HEARTH_OK;
}

/* ---- parts ---- */

static enum hearth_status fail_part_range(struct hearth_err *err)
{
    return HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE, "a sum of a part of the diff exceeds 64 bits");
}

static bool init_map(struct hearth_diff_map *map, uint32_t n_nodes, struct hearth_arena *arena)
{
    map->n_nodes = n_nodes;
    map->node_of = hearth_arena_array(arena, n_nodes, sizeof map->node_of[0]);
    map->item_of = hearth_arena_array(arena, n_nodes, sizeof map->item_of[0]);
    map->function_of = hearth_arena_array(arena, n_nodes, sizeof map->function_of[0]);
    map->path_of = hearth_arena_array(arena, n_nodes, sizeof map->path_of[0]);
    map->paths = hearth_arena_array(arena, n_nodes, sizeof map->paths[0]);

    return map->node_of != NULL && map->item_of != NULL && map->function_of != NULL &&
           map->path_of != NULL && map->paths != NULL;
}

/* Finds the path of a function's node below a path, or makes it. */
static uint32_t extend_path(struct hearth_diff_map *map, uint32_t parent, uint32_t item)
{
    if (item == HEARTH_DIFF_NO_ITEM) {
        return parent;
    }
    for (uint32_t at = parent; at != 0; at = map->paths[at].parent) {
        if (map->paths[at].item == item) {
            return parent; /* an inner call of a recursive function */
        }
    }

    map->paths[map->n_paths] = (struct diff_path){.parent = parent, .item = item};
    return map->n_paths++;
}

/* Maps node i with a shown name, or HEARTH_IDMAP_NONE, after its parent. */
static void map_node(struct hearth_diff_items *items, struct hearth_diff_map *map, uint32_t i,
                     uint32_t parent, uint32_t name)
{
    /* The self counts for the function, wherever the node is shown. */
    map->function_of[i] =
        name < items->functions.n_of ? items->functions.item_of[name] : HEARTH_DIFF_NO_ITEM;
    if (i == 0) {
        map->node_of[0] = 0;
        map->item_of[0] = items->nodes.item_of[0];
        map->path_of[0] = 0;
        map->paths[0] = (struct diff_path){0};
        map->n_paths = 1;
        return;
    }

    map->path_of[i] =
        extend_path(map, map->path_of[parent],
                    name < items->function_totals.n_of ? items->function_totals.item_of[name]
                                                       : HEARTH_DIFF_NO_ITEM);

    /* The total counts for the shown node, or for the rest of its parent. */
    uint32_t above = map->node_of[parent], counted = HEARTH_NO_NODE;
    if (above != HEARTH_NO_NODE && name != HEARTH_IDMAP_NONE) {
        counted = hearth_stacktree_find(&items->shown, above, name);
    }
    map->node_of[i] = counted;
    if (counted == HEARTH_NO_NODE && above != HEARTH_NO_NODE && items->other != HEARTH_IDMAP_NONE) {
        counted = hearth_stacktree_find(&items->shown, above, items->other);
    }

    uint32_t item = counted == HEARTH_NO_NODE ? HEARTH_DIFF_NO_ITEM : items->nodes.item_of[counted];
    map->item_of[i] = item == HEARTH_DIFF_NO_ITEM ? map->item_of[parent] : item;
}

/* Adds the self of node i to the item nearest to it, its function and its path. False: overflow. */
static bool add_self_to_items(const struct hearth_diff_map *map, uint32_t i, int64_t self,
                              const struct part_values *values)
{
    int64_t *node = &values->nodes[map->item_of[i]], *path = &map->paths[map->path_of[i]].value;
    uint32_t function = map->function_of[i];
    if (self < 0 || __builtin_add_overflow(*node, self, node) ||
        __builtin_add_overflow(*path, self, path)) {
        return false;
    }

    return function == HEARTH_DIFF_NO_ITEM ||
           !__builtin_add_overflow(values->functions[function], self, &values->functions[function]);
}

/* Moves the values of all paths to the totals of their functions. False: overflow. */
static bool add_paths_to_totals(const struct hearth_diff_map *map, const struct part_values *values)
{
    bool overflow = false;

    for (uint32_t i = map->n_paths; i-- > 1;) {
        struct diff_path *path = &map->paths[i];
        int64_t *above = &map->paths[path->parent].value;
        int64_t *total = &values->function_totals[path->item];
        overflow |= __builtin_add_overflow(*above, path->value, above);
        overflow |= __builtin_add_overflow(*total, path->value, total);
        path->value = 0;
    }
    map->paths[0].value = 0;

    return !overflow;
}

/* Makes the map of a name tree as it is now. */
static enum hearth_status map_name_tree(struct hearth_diff_items *items,
                                        struct hearth_diff_map *map, struct hearth_err *err)
{
    const struct hearth_name_tree *tree = map->tree;
    uint32_t n_nodes = hearth_name_tree_size(tree), n_names = hearth_name_tree_n_names(tree);
    uint32_t *name_of = hearth_arena_array(items->arena, n_names, sizeof name_of[0]);

    if (name_of == NULL || !init_map(map, n_nodes, items->arena)) {
        return HEARTH_FAIL_ARENA(err, items->arena);
    }

    for (uint32_t i = 0; i < n_names; i++) {
        name_of[i] = find_shown_name(items, hearth_frame_shown(hearth_name_tree_name(tree, i)));
    }

    for (uint32_t i = 0; i < n_nodes; i++) {
        struct hearth_name_node node = hearth_name_tree_node(tree, i);
        map_node(items, map, i, node.parent, i == 0 ? HEARTH_IDMAP_NONE : name_of[node.name]);
    }

    return HEARTH_OK;
}

/* Finds the map of a tree, which covers all its current nodes; a new one is made. */
static enum hearth_status find_map(struct hearth_diff_items *items, struct hearth_name_tree *tree,
                                   const struct hearth_diff_map **ret, struct hearth_err *err)
{
    size_t i = 0;

    while (i < items->n_maps && items->maps[i].tree != tree) {
        i++;
    }

    if (i == items->n_maps) {
        if (!hearth_mem_grow(&items->maps, &items->cap_maps, i + 1, sizeof items->maps[0])) {
            return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate the items of a diff");
        }
        items->maps[items->n_maps++] = (struct hearth_diff_map){.tree = hearth_name_tree_ref(tree)};
    }

    struct hearth_diff_map *map = &items->maps[i];
    *ret = map;
    return map->n_nodes < hearth_name_tree_size(tree) ? map_name_tree(items, map, err) : HEARTH_OK;
}

/* A side whose parts are added. */
struct added_side {
    struct hearth_diff_items *items;
    const struct hearth_diff_part_side *of;
    struct hearth_stack_mask mask;
    struct hearth_arena scratch; /* of a part */
    struct part_values values;
};

/* Adds the values of a dictionary's stacks to the nearest items. */
static enum hearth_status add_dict_selfs(void *context, const struct hearth_dict *dict,
                                         const struct hearth_dict_sums *sums,
                                         struct hearth_err *err)
{
    struct added_side *side = context;
    const struct hearth_diff_map *map;
    const bool *inside;
    bool fits = true;

    HEARTH_TRY(find_map(side->items, dict->tree, &map, err));
    HEARTH_TRY(hearth_stack_mask_of(&side->mask, dict->tree, &inside, err));
    for (uint32_t s = 0; s < sums->bound; s++) {
        uint32_t node = dict->stack_node[s];
        if (sums->acc[s] != 0 && (inside == NULL || inside[node])) {
            fits &= add_self_to_items(map, node, sums->acc[s], &side->values);
        }
    }

    fits &= add_paths_to_totals(map, &side->values);
    return fits ? HEARTH_OK : fail_part_range(err);
}

/* Adds the selfs of a part's stacks, after those of Go were joined, to the nearest items. */
static enum hearth_status add_repaired_selfs(struct added_side *side,
                                             const struct hearth_query *query,
                                             struct hearth_sums *sums, struct hearth_err *err)
{
    struct hearth_stacktree tree;
    struct hearth_diff_map map = {0};
    bool fits = true;

    hearth_stacktree_init(&tree, &side->scratch);
    enum hearth_status status = hearth_sums_tree(query, side->of->spec, sums, 0, &tree, err);
    if (status == HEARTH_OK && !init_map(&map, (uint32_t)tree.n_nodes, &side->scratch)) {
        status = HEARTH_FAIL_ARENA(err, &side->scratch);
    }

    for (uint32_t i = 0; status == HEARTH_OK && i < map.n_nodes; i++) {
        const struct hearth_tree_node *node = &tree.nodes[i];
        map_node(side->items, &map, i, node->parent,
                 find_shown_name(side->items, tree.names[node->name]));
        fits &= add_self_to_items(&map, i, node->self, &side->values);
    }

    fits &= status != HEARTH_OK || add_paths_to_totals(&map, &side->values);
    hearth_stacktree_release(&tree);
    return status != HEARTH_OK || fits ? status : fail_part_range(err);
}

/* Finds the values of a part from its sums, which it releases. */
static enum hearth_status add_part(struct added_side *side, struct hearth_sums *sums,
                                   struct hearth_err *err)
{
    const struct hearth_merge_spec *spec = side->of->spec;

    /* What is said of the whole need not be said of its parts. */
    struct hearth_query quiet = *side->of->query;
    quiet.call.notes = NULL;
    quiet.call.arena = &side->scratch;
    enum hearth_status status =
        spec->go_stacks == HEARTH_GO_STORED
            ? hearth_sums_visit(&quiet, &spec->stacks, sums, add_dict_selfs, side, err)
            : add_repaired_selfs(side, &quiet, sums, err);
    hearth_sums_release(sums);

    /* An item contains those below it, which have higher numbers. */
    bool overflow = false;
    for (size_t i = side->items->nodes.n; status == HEARTH_OK && i-- > 1;) {
        int64_t *above = &side->values.nodes[side->items->parent_item[i]];
        overflow |= __builtin_add_overflow(*above, side->values.nodes[i], above);
    }

    return overflow ? fail_part_range(err) : status;
}

static bool init_part_values(struct hearth_diff_items *items, size_t n_parts,
                             enum hearth_diff_division division, size_t side)
{
    struct hearth_diff_family *const families[] = {&items->nodes, &items->functions,
                                                   &items->function_totals};

    items->weights[division][side] =
        hearth_arena_calloc(items->arena, n_parts, sizeof items->weights[division][side][0]);
    for (size_t f = 0; f < HEARTH_ARRAY_LEN(families); f++) {
        families[f]->parts[division][side] =
            hearth_arena_calloc(items->arena, n_parts * families[f]->n, sizeof(int64_t));
        if (families[f]->parts[division][side] == NULL) {
            return false;
        }
    }

    return items->weights[division][side] != NULL;
}

/* Adds all parts of a side. */
static enum hearth_status add_side_parts(struct hearth_diff_items *items,
                                         struct hearth_diff_parts *parts,
                                         enum hearth_diff_division division, size_t s,
                                         struct hearth_err *err)
{
    const struct hearth_diff_part_side *of = &parts->sides[s];
    struct added_side side = {.items = items,
                              .of = of,
                              .values = {items->nodes.parts[division][s],
                                         items->functions.parts[division][s],
                                         items->function_totals.parts[division][s]}};
    enum hearth_status status = HEARTH_OK;

    HEARTH_ASSERT(!of->spec->empty_names); /* otherwise functions could have the root's name */
    hearth_stack_mask_init(&side.mask, &of->spec->stacks, items->arena);
    hearth_arena_init_like(&side.scratch, items->arena);
    for (size_t i = 0; status == HEARTH_OK && i < parts->n_parts[division]; i++) {
        hearth_arena_reset(&side.scratch);
        status = add_part(&side, &of->sums[division][i], err);
        items->weights[division][s][i] = side.values.nodes[0]; /* item 0 is the root */
        side.values.nodes += items->nodes.n;
        side.values.functions += items->functions.n;
        side.values.function_totals += items->function_totals.n;
    }

    hearth_arena_release(&side.scratch);
    hearth_stack_mask_release(&side.mask);
    return status;
}

enum hearth_status hearth_diff_items_add_parts(struct hearth_diff_items *items,
                                               struct hearth_diff_parts *parts,
                                               struct hearth_err *err)
{
    for (enum hearth_diff_division d = 0; d < HEARTH_DIFF_N_DIVISIONS; d++) {
        for (size_t s = 0; parts->n_parts[d] > 0 && s < 2; s++) {
            if (!init_part_values(items, parts->n_parts[d], d, s)) {
                return HEARTH_FAIL_ARENA(err, items->arena);
            }
            HEARTH_TRY(add_side_parts(items, parts, d, s, err));
        }
    }

    return HEARTH_OK;
}

enum hearth_status hearth_diff_items_choose(struct hearth_diff_items *items,
                                            const struct hearth_stacktree *const trees[2],
                                            const struct hearth_flame_diff *diff,
                                            struct hearth_arena *arena, struct hearth_err *err)
{
    assert(diff->left_total > 0 && diff->right_total > 0);

    *items = (struct hearth_diff_items){.trees = trees,
                                        .diff = diff,
                                        .arena = arena,
                                        .totals = {diff->left_total, diff->right_total}};
    hearth_stacktree_init(&items->shown, arena);
    HEARTH_TRY(make_shown_tree(items, err));
    HEARTH_TRY(choose_nodes(items, err));
    return choose_functions(items, err);
}

void hearth_diff_items_release(struct hearth_diff_items *items)
{
    for (size_t i = 0; i < items->n_maps; i++) {
        hearth_name_tree_unref(items->maps[i].tree);
    }
    hearth_mem_free(items->maps);
    hearth_stacktree_release(&items->shown);
}
