/*
 * perf_maps.c -- a treap of maps that do not overlap, by start. A node is changed in place if it
 * belongs to the tree that changes, otherwise copied.
 *
 * Priorities are hashes under the seed of the process, so nobody can prepare a deep tree. No
 * function recurses.
 */
#include "perf/perf_maps.h"

#include "hearth/base/hash.h"

#include <assert.h>

#define BLOCK_NODES 1024u

struct perf_map_node {
    struct perf_map map;
    uint32_t priority, owner;
    uint32_t left, right; /* numbers of nodes; 0: none */
};

_Static_assert(sizeof(struct perf_map_node) == 48, "large recordings have a million of them");

/* The changes of one hearth_perf_maps_add; sticky. */
struct map_edit {
    struct perf_map_pool *pool;
    uint32_t owner;
    bool failed;
};

/* ---- nodes ---- */

static struct perf_map_node *get_node(const struct perf_map_pool *pool, uint32_t node)
{
    assert(node > 0 && node <= pool->n_nodes);

    return &pool->blocks[(node - 1) / BLOCK_NODES][(node - 1) % BLOCK_NODES];
}

/* The number of a new node; 0: none. */
static uint32_t add_node(struct map_edit *edit, const struct perf_map_node *copied)
{
    struct perf_map_pool *pool = edit->pool;

    pool->is_full = pool->n_nodes == (pool->max_nodes > 0 ? pool->max_nodes : UINT32_MAX);
    if (!pool->is_full && pool->n_nodes == pool->n_blocks * BLOCK_NODES) {
        struct perf_map_node *block = hearth_arena_array(pool->arena, BLOCK_NODES, sizeof *block);
        if (block != NULL && hearth_arena_regrow(pool->arena, &pool->blocks, &pool->cap_blocks,
                                                 pool->n_blocks + 1, sizeof *pool->blocks)) {
            pool->blocks[pool->n_blocks++] = block;
        }
    }
    if (pool->is_full || pool->n_nodes == pool->n_blocks * BLOCK_NODES) {
        edit->failed = true;
        return 0;
    }

    uint32_t node = ++pool->n_nodes;
    *get_node(pool, node) = *copied;
    get_node(pool, node)->owner = edit->owner;

    return node;
}

/* The node as one of the editor's own; 0 if there is none, or none could be added. */
static uint32_t own_node(struct map_edit *edit, uint32_t node)
{
    if (node == 0 || get_node(edit->pool, node)->owner == edit->owner) {
        return node;
    }

    return add_node(edit, get_node(edit->pool, node));
}

static uint32_t make_node(struct map_edit *edit, const struct perf_map *map)
{
    const struct perf_map_node node = {
        .map = *map,
        .priority = (uint32_t)hearth_hash_mix(hearth_hash_process_seed(), edit->pool->n_nodes),
    };

    return add_node(edit, &node);
}

/* ---- trees ---- */

/* Splits a tree into maps that start before `at`, and the others. */
static void split_maps(struct map_edit *edit, uint32_t root, uint64_t at, uint32_t *before,
                       uint32_t *others)
{
    while (root != 0) {
        root = own_node(edit, root);
        if (root == 0) {
            break;
        }
        struct perf_map_node *node = get_node(edit->pool, root);
        edit->pool->n_visits++;
        if (node->map.start < at) {
            *before = root;
            before = &node->right;
            root = node->right;
        } else {
            *others = root;
            others = &node->left;
            root = node->left;
        }
    }

    *before = 0;
    *others = 0;
}

/* Joins two trees; all maps of `low` start before those of `high`. */
static uint32_t join_maps(struct map_edit *edit, uint32_t low, uint32_t high)
{
    struct perf_map_pool *pool = edit->pool;
    uint32_t root = 0, *link = &root;

    while (low != 0 && high != 0) {
        bool is_low = get_node(pool, low)->priority > get_node(pool, high)->priority;
        uint32_t top = *link = own_node(edit, is_low ? low : high);
        pool->n_visits++;
        if (top == 0) {
            break;
        }
        link = is_low ? &get_node(pool, top)->right : &get_node(pool, top)->left;
        *(is_low ? &low : &high) = *link;
    }

    *link = low != 0 ? low : high;

    return root;
}

static struct perf_map_node *find_last_node(struct perf_map_pool *pool, uint32_t root)
{
    while (root != 0 && get_node(pool, root)->right != 0) {
        root = get_node(pool, root)->right;
        pool->n_visits++;
    }

    return root == 0 ? NULL : get_node(pool, root);
}

/* The part of a map from `at` on; an empty one if it ends before. */
static struct perf_map cut_map_before(const struct perf_map *map, uint64_t at)
{
    struct perf_map rest = *map;

    if (map->end > at) {
        rest.offset += at - map->start;
        rest.start = at;
    } else {
        rest.start = rest.end = 0;
    }

    return rest;
}

/* ---- adding ---- */

/* Whether nothing is mapped in a range. */
static bool is_range_free(struct perf_map_pool *pool, uint32_t root, uint64_t start, uint64_t end)
{
    while (root != 0) {
        const struct perf_map_node *node = get_node(pool, root);
        pool->n_visits++;
        if (node->map.start < end && node->map.end > start) {
            return false;
        }
        root = node->map.start < start ? node->right : node->left;
    }

    return true;
}

/* Adds a map where nothing is mapped: a new leaf, which then takes the place of its priority. */
static uint32_t insert_map(struct map_edit *edit, uint32_t root, const struct perf_map *map)
{
    struct perf_map_pool *pool = edit->pool;
    uint32_t added = make_node(edit, map), at = root, *link = &root;

    if (added == 0) {
        return root;
    }

    struct perf_map_node *node = get_node(pool, added);
    while (at != 0 && get_node(pool, at)->priority >= node->priority) {
        at = *link = own_node(edit, at);
        if (at == 0) {
            return root;
        }
        link = get_node(pool, at)->map.start < map->start ? &get_node(pool, at)->right
                                                          : &get_node(pool, at)->left;
        at = *link;
        pool->n_visits++;
    }

    *link = added;
    split_maps(edit, at, map->start, &node->left, &node->right);

    return root;
}

/* Adds a map in the place of others. */
static uint32_t replace_maps(struct map_edit *edit, uint32_t root, const struct perf_map *map)
{
    struct perf_map_pool *pool = edit->pool;
    uint32_t low, within, high;

    /* Maps that start before the new one, within it, and after it. */
    split_maps(edit, root, map->start, &low, &within);
    split_maps(edit, within, map->end, &within, &high);
    uint32_t node = make_node(edit, map);
    if (edit->failed) {
        return 0;
    }

    /* The last of those before may reach into or beyond it; split_maps owns the path there. */
    struct perf_map rest = {0};
    struct perf_map_node *last = find_last_node(pool, within);
    if (last != NULL) {
        rest = cut_map_before(&last->map, map->end);
    }
    last = find_last_node(pool, low);
    if (last != NULL && last->map.end > map->start) {
        rest = last->map.end > map->end ? cut_map_before(&last->map, map->end) : rest;
        last->map.end = map->start;
    }

    uint32_t tail = rest.end > rest.start ? make_node(edit, &rest) : 0;
    root = join_maps(edit, low, node);
    root = join_maps(edit, root, tail);

    return join_maps(edit, root, high);
}

bool hearth_perf_maps_add(struct perf_map_pool *pool, struct perf_maps *maps,
                          const struct perf_map *map)
{
    assert(map->start < map->end);

    /* The first change after the maps were made or shared. */
    if (maps->owner == 0) {
        maps->owner = ++pool->n_owners;
    }

    struct map_edit edit = {.pool = pool, .owner = maps->owner};
    uint32_t root = is_range_free(pool, maps->root, map->start, map->end)
                        ? insert_map(&edit, maps->root, map)
                        : replace_maps(&edit, maps->root, map);
    if (!edit.failed) {
        maps->root = root;
    }

    return !edit.failed;
}

void hearth_perf_maps_share(struct perf_maps *parent, struct perf_maps *child)
{
    parent->owner = child->owner = 0;
    child->root = parent->root;
}

struct perf_map *hearth_perf_maps_find(const struct perf_map_pool *pool,
                                       const struct perf_maps *maps, uint64_t address)
{
    struct perf_map_node *found = NULL;

    for (uint32_t at = maps->root; at != 0;) {
        struct perf_map_node *node = get_node(pool, at);
        if (node->map.start <= address) {
            found = node;
            at = node->right;
        } else {
            at = node->left;
        }
    }

    return found != NULL && address < found->map.end ? &found->map : NULL;
}
