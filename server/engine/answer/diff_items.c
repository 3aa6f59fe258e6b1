/*
 * diff_items.c -- chooses the items of a diff, and finds their values in its parts (contract:
 * diff_items.h).
 *
 * The sums of a part become a function tree like those of a side. Its nodes are found by name among
 * the shown nodes of the diff; what is not shown there belongs to the node "other" of its parent.
 */
#include "answer/diff_items.h"

#include "hearth/engine/query.h"

#include <assert.h>

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

    if (!init_family(items, nodes, diff->n_nodes)) {
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
                add_item(nodes, node, left, right);
            }
        }
    }

    return HEARTH_OK;
}

/* The selfs of all functions of a side, by their shown names. */
static enum hearth_status collect_selfs(struct hearth_diff_items *items, size_t side, int64_t **ret,
                                        size_t *ret_n, struct hearth_err *err)
{
    const struct hearth_stacktree *tree = items->trees[side];
    struct hearth_function_total *functions;
    size_t n;

    HEARTH_TRY(hearth_stacktree_functions(tree, items->arena, &functions, &n, err));
    for (size_t i = 0; i < n; i++) {
        if (functions[i].self > 0 &&
            hearth_stacktree_name(&items->shown, tree->names[functions[i].name]) ==
                HEARTH_IDMAP_NONE) {
            return HEARTH_FAIL_ARENA(err, items->arena);
        }
    }

    int64_t *selfs = hearth_arena_calloc(items->arena, items->shown.n_names, sizeof selfs[0]);
    if (selfs == NULL) {
        return HEARTH_FAIL_ARENA(err, items->arena);
    }

    for (size_t i = 0; i < n; i++) {
        if (functions[i].self > 0) {
            selfs[find_shown_name(items, tree->names[functions[i].name])] = functions[i].self;
        }
    }

    *ret = selfs;
    *ret_n = items->shown.n_names;
    return HEARTH_OK;
}

/* Makes items of the functions whose selfs are large. */
static enum hearth_status choose_functions(struct hearth_diff_items *items, struct hearth_err *err)
{
    int64_t *selfs[2];
    size_t n[2];

    for (size_t s = 0; s < 2; s++) {
        HEARTH_TRY(collect_selfs(items, s, &selfs[s], &n[s], err));
    }

    if (!init_family(items, &items->functions, n[1])) {
        return HEARTH_FAIL_ARENA(err, items->arena);
    }

    for (size_t i = 0; i < n[1]; i++) {
        int64_t left = i < n[0] ? selfs[0][i] : 0;
        if (is_large(items, left, selfs[1][i])) {
            add_item(&items->functions, i, left, selfs[1][i]);
        }
    }

    return HEARTH_OK;
}

/* ---- parts ---- */

/* Adds the tree of a part to the values of its items. */
static enum hearth_status add_part_tree(struct hearth_diff_items *items,
                                        const struct hearth_stacktree *tree, int64_t *nodes,
                                        int64_t *functions, struct hearth_arena *scratch,
                                        struct hearth_err *err)
{
    uint32_t *name_of = hearth_arena_array(scratch, tree->n_names, sizeof name_of[0]);
    uint32_t *node_of = hearth_arena_array(scratch, tree->n_nodes, sizeof node_of[0]);
    if (name_of == NULL || node_of == NULL) {
        return HEARTH_FAIL_ARENA(err, scratch);
    }

    for (size_t i = 0; i < tree->n_names; i++) {
        name_of[i] = find_shown_name(items, tree->names[i]);
    }

    uint32_t other = find_shown_name(items, HEARTH_STR("other"));
    for (size_t i = 0; i < tree->n_nodes; i++) {
        const struct hearth_tree_node *from = &tree->nodes[i];
        uint32_t name = name_of[from->name], parent = i == 0 ? 0 : node_of[from->parent];

        /* The self counts for the function, wherever the node is shown. */
        uint32_t item =
            name < items->functions.n_of ? items->functions.item_of[name] : HEARTH_DIFF_NO_ITEM;
        if (item != HEARTH_DIFF_NO_ITEM) {
            functions[item] += from->self;
        }

        /* The total counts for the shown node, or for the rest of its parent. */
        node_of[i] = HEARTH_NO_NODE;
        uint32_t counted = i == 0 ? 0 : HEARTH_NO_NODE;
        if (i > 0 && parent != HEARTH_NO_NODE) {
            counted = name == HEARTH_IDMAP_NONE
                          ? HEARTH_NO_NODE
                          : hearth_stacktree_find(&items->shown, parent, name);
        }
        node_of[i] = counted;
        if (counted == HEARTH_NO_NODE && parent != HEARTH_NO_NODE && other != HEARTH_IDMAP_NONE) {
            counted = hearth_stacktree_find(&items->shown, parent, other);
        }

        /* A node that shares its parent's item has the parent's values. */
        item = counted == HEARTH_NO_NODE ? HEARTH_DIFF_NO_ITEM : items->nodes.item_of[counted];
        if (item != HEARTH_DIFF_NO_ITEM &&
            (counted == 0 || items->nodes.item_of[items->diff->parents[counted]] != item)) {
            nodes[item] += from->total;
        }
    }

    return HEARTH_OK;
}

static enum hearth_status add_part(struct hearth_diff_items *items, struct hearth_diff_parts *parts,
                                   enum hearth_diff_division division, size_t side, size_t part,
                                   struct hearth_err *err)
{
    struct hearth_diff_part_side *of = &parts->sides[side];
    struct hearth_query quiet = *of->query;
    struct hearth_arena scratch;
    struct hearth_stacktree tree;

    /* What is said of the whole need not be said of its parts. */
    quiet.call.notes = NULL;
    hearth_arena_init_like(&scratch, items->arena);
    quiet.call.arena = &scratch;
    hearth_stacktree_init(&tree, &scratch);
    enum hearth_status status =
        hearth_sums_tree(&quiet, of->spec, &of->sums[division][part], 0, &tree, err);
    if (status == HEARTH_OK && tree.n_nodes > 0) {
        items->weights[division][side][part] = tree.nodes[0].total;
        status = add_part_tree(
            items, &tree, items->nodes.parts[division][side] + part * items->nodes.n,
            items->functions.parts[division][side] + part * items->functions.n, &scratch, err);
    }

    hearth_stacktree_release(&tree);
    hearth_arena_release(&scratch);
    return status;
}

static bool init_part_values(struct hearth_diff_items *items, size_t n_parts,
                             enum hearth_diff_division division, size_t side)
{
    struct hearth_diff_family *const families[2] = {&items->nodes, &items->functions};

    items->weights[division][side] =
        hearth_arena_calloc(items->arena, n_parts, sizeof items->weights[division][side][0]);
    for (size_t f = 0; f < 2; f++) {
        families[f]->parts[division][side] =
            hearth_arena_calloc(items->arena, n_parts * families[f]->n, sizeof(int64_t));
        if (families[f]->parts[division][side] == NULL) {
            return false;
        }
    }

    return items->weights[division][side] != NULL;
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
            for (size_t i = 0; i < parts->n_parts[d]; i++) {
                HEARTH_TRY(add_part(items, parts, d, s, i, err));
            }
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
    hearth_stacktree_release(&items->shown);
}
