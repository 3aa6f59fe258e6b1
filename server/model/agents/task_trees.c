/*
 * task_trees.c -- trees of the stack traces of a task, one for each outermost frame (contract:
 * hearth/model/task_chunk.h).
 *
 * A node is identified by its parent, symbol and space, so a symbol of the kernel never equals one
 * of the program. The total of a node includes all nodes below it.
 */
#include "hearth/base/mem.h"
#include "hearth/model/task_chunk.h"

#include <assert.h>
#include <stdlib.h>

#define NO_NODE UINT32_MAX

struct forest_node {
    uint32_t parent; /* NO_NODE: a root */
    uint32_t symbol;
    enum hearth_stack_space space;
    int64_t total;
};

struct hearth_stack_forest {
    struct hearth_arena *arena;
    struct hearth_idmap symbol_ids, node_ids;
    struct hearth_str *symbols;
    struct forest_node *nodes;
    uint32_t n_symbols, cap_symbols, n_nodes, cap_nodes;
    uint32_t *of_chunk; /* string of the chunk that is being added -> symbol */
    size_t cap_of_chunk;
    uint64_t seed;
};

struct hearth_stack_forest *hearth_stack_forest_new(struct hearth_arena *arena)
{
    assert(arena != NULL);

    struct hearth_stack_forest *f = hearth_mem_zalloc(sizeof *f);

    if (f != NULL) {
        f->arena = arena;
        f->seed = hearth_hash_process_seed();
        hearth_idmap_init(&f->symbol_ids);
        hearth_idmap_init(&f->node_ids);
    }

    return f;
}

void hearth_stack_forest_free(struct hearth_stack_forest *f)
{
    if (f != NULL) {
        hearth_idmap_release(&f->symbol_ids);
        hearth_idmap_release(&f->node_ids);
        hearth_mem_free(f);
    }
}

/*
 * Double the room of an array in the arena. False if memory was refused, or if the maps have
 * outgrown the arena's limit.
 */
static bool grow_table(struct hearth_stack_forest *f, void **p, uint32_t n, uint32_t *cap,
                       size_t size)
{
    size_t larger = *cap == 0 ? 256 : (size_t)*cap * 2;
    size_t maps = hearth_idmap_bytes(&f->symbol_ids) + hearth_idmap_bytes(&f->node_ids);
    bool fits = larger < UINT32_MAX && (f->arena->limit_bytes == 0 || maps < f->arena->limit_bytes);
    void *grown = fits ? hearth_arena_array(f->arena, larger, size) : NULL;

    if (grown == NULL) {
        f->arena->refused = true;
        return false;
    }

    if (n > 0) {
        memcpy(grown, *p, n * size);
    }

    *p = grown;
    *cap = (uint32_t)larger;

    return true;
}

static uint32_t intern_symbol(struct hearth_stack_forest *f, struct hearth_str text)
{
    struct hearth_hash128 key = hearth_hash128(text.p, text.n, f->seed);
    uint32_t id = hearth_idmap_find(&f->symbol_ids, key);

    if (id != HEARTH_IDMAP_NONE) {
        return id;
    }

    void *p = f->symbols;
    if (f->n_symbols == f->cap_symbols &&
        !grow_table(f, &p, f->n_symbols, &f->cap_symbols, sizeof *f->symbols)) {
        return HEARTH_IDMAP_NONE;
    }

    /* Copy the text. */
    f->symbols = p;
    struct hearth_str copy = hearth_arena_str(f->arena, text);
    bool inserted;
    id = copy.p == NULL ? HEARTH_IDMAP_NONE
                        : hearth_idmap_intern(&f->symbol_ids, key, f->n_symbols, &inserted);
    if (id != HEARTH_IDMAP_NONE) {
        f->symbols[f->n_symbols++] = copy;
    }

    return id;
}

/* Find or make a child. NO_NODE: memory was refused. */
static uint32_t intern_node(struct hearth_stack_forest *f, uint32_t parent, uint32_t symbol,
                            enum hearth_stack_space space)
{
    const uint64_t where = (uint64_t)parent << 32 | symbol;
    const struct hearth_hash128 key = {hearth_hash_mix(where, f->seed ^ (uint64_t)space),
                                       where * 2 + (uint64_t)space};
    bool inserted;

    if (f->n_nodes == f->cap_nodes) {
        void *p = f->nodes;
        if (!grow_table(f, &p, f->n_nodes, &f->cap_nodes, sizeof *f->nodes)) {
            return NO_NODE;
        }
        f->nodes = p;
    }

    uint32_t id = hearth_idmap_intern(&f->node_ids, key, f->n_nodes, &inserted);
    if (id != HEARTH_IDMAP_NONE && inserted) {
        f->nodes[f->n_nodes++] = (struct forest_node){parent, symbol, space, 0};
    }

    return id;
}

/* Look up or add the symbols of all strings of the chunk. */
static bool map_symbols(struct hearth_stack_forest *f, const struct hearth_task_chunk *chunk)
{
    if (chunk->n_strings > f->cap_of_chunk) {
        size_t cap = (size_t)chunk->n_strings * 2;
        f->of_chunk = hearth_arena_array(f->arena, cap, sizeof *f->of_chunk);
        f->cap_of_chunk = f->of_chunk == NULL ? 0 : cap;
        if (f->of_chunk == NULL) {
            return false;
        }
    }

    for (uint32_t i = 0; i < chunk->n_strings; i++) {
        f->of_chunk[i] = intern_symbol(f, chunk->strings[i]);
        if (f->of_chunk[i] == HEARTH_IDMAP_NONE) {
            return false;
        }
    }

    return true;
}

/* The frames of a record in one space, leaf first. */
struct frame_run {
    const uint32_t *frames; /* strings of the chunk */
    uint32_t n;
    enum hearth_stack_space space;
};

static struct frame_run find_frames(const struct hearth_task_chunk *chunk, uint32_t stack,
                                    enum hearth_stack_space space)
{
    if (stack == HEARTH_NO_STACK) {
        return (struct frame_run){.space = space};
    }

    const struct hearth_task_stack *s = &chunk->stacks[stack];
    return (struct frame_run){&chunk->frames[s->first], s->n, space};
}

/* Add the frames below *at, root end first; *at becomes the last node. */
static enum hearth_status add_frames(struct hearth_stack_forest *f, struct frame_run run,
                                     int64_t weight, uint32_t *at, struct hearth_err *err)
{
    for (uint32_t i = run.n; i > 0; i--) {
        *at = intern_node(f, *at, f->of_chunk[run.frames[i - 1]], run.space);
        if (*at == NO_NODE) {
            return HEARTH_FAIL_ARENA(err, f->arena);
        }

        int64_t *total = &f->nodes[*at].total;
        if (__builtin_add_overflow(*total, weight, total)) {
            return HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE,
                               "the sum of the stack traces exceeds 64 bits: shorten the range");
        }
    }

    return HEARTH_OK;
}

enum hearth_status hearth_stack_forest_add(struct hearth_stack_forest *f,
                                           const struct hearth_task_chunk *chunk,
                                           enum hearth_stack_weight weight, struct hearth_err *err)
{
    assert(f != NULL && chunk != NULL);

    bool by_duration = weight == HEARTH_STACK_DURATION && chunk->kind == HEARTH_STACKS_OFF_CPU;

    if (!map_symbols(f, chunk)) {
        return HEARTH_FAIL_ARENA(err, f->arena);
    }

    for (uint32_t i = 0; i < chunk->n_records; i++) {
        const struct hearth_task_record *record = &chunk->records[i];
        int64_t value = by_duration ? record->duration_ns : record->count;
        uint32_t at = NO_NODE; /* the program's frames are above the kernel's */
        if (value > 0) {
            struct frame_run user = find_frames(chunk, record->user, HEARTH_STACK_USER);
            struct frame_run kernel = find_frames(chunk, record->kernel, HEARTH_STACK_KERNEL);
            HEARTH_TRY(add_frames(f, user, value, &at, err));
            HEARTH_TRY(add_frames(f, kernel, value, &at, err));
        }
    }

    return HEARTH_OK;
}

/* ---- output ---- */

/* A node at its place in the output; it has all that a comparison needs. */
struct placed {
    const struct hearth_stack_forest *forest;
    uint32_t parent_place, node;
};

/* Order of siblings: largest first, then by symbol, then the kernel's first. */
static int compare_nodes(const void *va, const void *vb)
{
    const struct placed *pa = va, *pb = vb;

    if (pa->parent_place != pb->parent_place) {
        return pa->parent_place < pb->parent_place ? -1 : 1;
    }

    const struct forest_node *a = &pa->forest->nodes[pa->node];
    const struct forest_node *b = &pb->forest->nodes[pb->node];
    if (a->total != b->total) {
        return a->total > b->total ? -1 : 1;
    }

    int order = hearth_str_cmp(pa->forest->symbols[a->symbol], pb->forest->symbols[b->symbol]);

    return order != 0 ? order : (int)a->space - (int)b->space;
}

/* Nodes by parent: list[first[p] .. first[p + 1]) are the children of p; roots have p = n_nodes. */
struct children {
    uint32_t *first, *list;
};

static bool find_children(struct hearth_stack_forest *f, struct children *ret)
{
    uint32_t n = f->n_nodes;

    ret->first = hearth_arena_calloc(f->arena, (size_t)n + 2, sizeof *ret->first);
    ret->list = hearth_arena_array(f->arena, (size_t)n + 1, sizeof *ret->list);
    uint32_t *at = hearth_arena_array(f->arena, (size_t)n + 1, sizeof *at);
    if (ret->first == NULL || ret->list == NULL || at == NULL) {
        return false;
    }

    /* Count the children of each node. */
    for (uint32_t i = 0; i < n; i++) {
        ret->first[(f->nodes[i].parent == NO_NODE ? n : f->nodes[i].parent) + 1]++;
    }

    /* Counts become positions. */
    for (uint32_t p = 0; p <= n; p++) {
        ret->first[p + 1] += ret->first[p];
        at[p] = ret->first[p];
    }

    /* List the children. */
    for (uint32_t i = 0; i < n; i++) {
        ret->list[at[f->nodes[i].parent == NO_NODE ? n : f->nodes[i].parent]++] = i;
    }

    return true;
}

/* Nodes in the order of the output: breadth first. */
struct node_queue {
    const struct hearth_stack_forest *forest;
    const struct children *children;
    struct placed *v; /* room for all nodes */
    uint32_t n;
};

/* Append the children of a node, sorted; `place` is that of the node. */
static void append_children(struct node_queue *queue, uint32_t node, uint32_t place)
{
    const struct children *children = queue->children;
    uint32_t from = queue->n;

    for (uint32_t k = children->first[node]; k < children->first[node + 1]; k++) {
        queue->v[queue->n++] = (struct placed){queue->forest, place, children->list[k]};
    }

    if (queue->n - from > 1) {
        qsort(&queue->v[from], queue->n - from, sizeof queue->v[0], compare_nodes);
    }
}

/* Write one tree; returns the number of its elements. */
static size_t make_stack_tree(struct node_queue *queue, uint32_t root,
                              struct hearth_stack_element *elements)
{
    const struct hearth_stack_forest *f = queue->forest;

    queue->v[0] = (struct placed){f, NO_NODE, root};
    queue->n = 1;
    for (uint32_t at = 0; at < queue->n; at++) {
        const struct placed placed = queue->v[at];
        const struct forest_node *node = &f->nodes[placed.node];
        elements[at] = (struct hearth_stack_element){
            .id = at + 1,
            .parent_id = at == 0 ? 0 : placed.parent_place + 1,
            .symbol = f->symbols[node->symbol],
            .space = node->space,
            .total = node->total,
        };

        append_children(queue, placed.node, at);
    }

    return queue->n;
}

enum hearth_status hearth_stack_forest_trees(struct hearth_stack_forest *f,
                                             struct hearth_stack_tree **ret, size_t *ret_n,
                                             struct hearth_err *err)
{
    assert(f != NULL && ret != NULL && ret_n != NULL);

    struct children children;
    struct hearth_arena *arena = f->arena;
    size_t n = f->n_nodes;
    struct node_queue roots = {f, &children, hearth_arena_array(arena, n + 1, sizeof *roots.v), 0};
    struct node_queue queue = {f, &children, hearth_arena_array(arena, n + 1, sizeof *queue.v), 0};
    struct hearth_stack_element *elements = hearth_arena_array(arena, n + 1, sizeof *elements);

    if (roots.v == NULL || queue.v == NULL || elements == NULL || !find_children(f, &children)) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    /* Roots in order. */
    append_children(&roots, (uint32_t)n, NO_NODE);
    struct hearth_stack_tree *trees = hearth_arena_array(arena, (size_t)roots.n + 1, sizeof *trees);
    if (trees == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    /* All trees share one array of elements. */
    for (size_t i = 0; i < roots.n; i++) {
        trees[i].elements = elements;
        trees[i].n = make_stack_tree(&queue, roots.v[i].node, elements);
        elements += trees[i].n;
    }

    *ret = trees;
    *ret_n = roots.n;

    return HEARTH_OK;
}
