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

struct perf_map_node {
    struct perf_map map;
    uint64_t priority, owner;
    struct perf_map_node *left, *right;
};

/* The changes of one hearth_perf_maps_add; sticky. */
struct map_edit {
    struct perf_map_pool *pool;
    uint64_t owner;
    bool failed;
};

/* The node as one of the editor's own; NULL if there is none, or no memory. */
static struct perf_map_node *own_node(struct map_edit *edit, struct perf_map_node *node)
{
    if (node == NULL || node->owner == edit->owner) {
        return node;
    }

    struct perf_map_node *copy = hearth_arena_alloc(edit->pool->arena, sizeof *copy);
    if (copy == NULL) {
        edit->failed = true;
        return NULL;
    }

    *copy = *node;
    copy->owner = edit->owner;

    return copy;
}

static struct perf_map_node *make_node(struct map_edit *edit, const struct perf_map *map)
{
    struct perf_map_node *node = hearth_arena_alloc(edit->pool->arena, sizeof *node);
    if (node == NULL) {
        edit->failed = true;
        return NULL;
    }

    *node = (struct perf_map_node){
        .map = *map,
        .priority = hearth_hash_mix(hearth_hash_process_seed(), ++edit->pool->n_nodes),
        .owner = edit->owner,
    };

    return node;
}

/* Splits a tree into maps that start before `at`, and the others. */
static void split_maps(struct map_edit *edit, struct perf_map_node *node, uint64_t at,
                       struct perf_map_node **before, struct perf_map_node **others)
{
    while (node != NULL) {
        node = own_node(edit, node);
        if (node == NULL) {
            break;
        }
        if (node->map.start < at) {
            *before = node;
            before = &node->right;
            node = node->right;
        } else {
            *others = node;
            others = &node->left;
            node = node->left;
        }
    }

    *before = NULL;
    *others = NULL;
}

/* Joins two trees; all maps of `low` start before those of `high`. */
static struct perf_map_node *join_maps(struct map_edit *edit, struct perf_map_node *low,
                                       struct perf_map_node *high)
{
    struct perf_map_node *root = NULL, **link = &root;

    while (low != NULL && high != NULL) {
        if (low->priority > high->priority) {
            low = *link = own_node(edit, low);
            if (low != NULL) {
                link = &low->right;
                low = low->right;
            }
        } else {
            high = *link = own_node(edit, high);
            if (high != NULL) {
                link = &high->left;
                high = high->left;
            }
        }
    }

    *link = low != NULL ? low : high;

    return root;
}

static struct perf_map_node *find_last_node(struct perf_map_node *node)
{
    while (node != NULL && node->right != NULL) {
        node = node->right;
    }

    return node;
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

bool hearth_perf_maps_add(struct perf_map_pool *pool, struct perf_maps *maps,
                          const struct perf_map *map)
{
    assert(map->start < map->end);

    /* The first change after the maps were made or shared. */
    if (maps->owner == 0) {
        maps->owner = ++pool->n_owners;
    }

    /* Maps that start before the new one, within it, and after it. */
    struct map_edit edit = {.pool = pool, .owner = maps->owner};
    struct perf_map_node *low, *within, *high;
    split_maps(&edit, maps->root, map->start, &low, &within);
    split_maps(&edit, within, map->end, &within, &high);
    struct perf_map_node *node = make_node(&edit, map);
    if (edit.failed) {
        return false;
    }

    /* The last of those before may reach into or beyond it; split_maps owns the path there. */
    struct perf_map rest = {0};
    struct perf_map_node *last = find_last_node(within);
    if (last != NULL) {
        rest = cut_map_before(&last->map, map->end);
    }
    last = find_last_node(low);
    if (last != NULL && last->map.end > map->start) {
        rest = last->map.end > map->end ? cut_map_before(&last->map, map->end) : rest;
        last->map.end = map->start;
    }

    struct perf_map_node *tail = rest.end > rest.start ? make_node(&edit, &rest) : NULL;
    struct perf_map_node *root = join_maps(&edit, low, node);
    root = join_maps(&edit, root, tail);
    root = join_maps(&edit, root, high);
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

struct perf_map *hearth_perf_maps_find(const struct perf_maps *maps, uint64_t address)
{
    struct perf_map_node *node = maps->root, *found = NULL;

    while (node != NULL) {
        if (node->map.start <= address) {
            found = node;
            node = node->right;
        } else {
            node = node->left;
        }
    }

    return found != NULL && address < found->map.end ? &found->map : NULL;
}
