/*
 * name_tree.c -- nodes and names in segments that never move, found through hash tables of the
 * adding side.
 *
 * Whoever reads knows a size that was published after the entries below it were written, so the
 * plain reads of segments and their pointers happen after the writes. Whoever adds writes entries
 * and pointers that no published size covers yet.
 *
 * Most nodes were made right after their parent, as stacks are walked from the root: such a child is
 * looked for there, and only the others stand in the hash table of children.
 *
 * Use is counted where a dictionary's stack ends. A node is alive while a stack ends in it or a
 * child is alive, so a dictionary costs one count per stack, not one per node.
 */
#include "hearth/model/name_tree.h"

#include "hearth/base/arena.h"
#include "hearth/base/hash.h"
#include "hearth/base/mem.h"

#include <pthread.h>

/* Below these a tree is not given up, however dead. */
#define STALE_NODES (UINT32_C(64) << 10)
#define STALE_BYTES ((size_t)4 << 20)

struct hearth_name_tree_impl {
    _Atomic uint32_t refs;
    pthread_mutex_t lock; /* of everything below and of the unpublished entries */
    uint32_t n_nodes, n_names;
    /* Stacks that end in a node plus its live children; of a name: dictionaries and live nodes. */
    uint32_t *node_uses[HEARTH_NAME_TREE_SEGMENTS], *name_uses[HEARTH_NAME_TREE_SEGMENTS];
    uint32_t n_live_nodes;
    size_t text_bytes, live_text_bytes;
    struct hearth_arena texts;
    struct hearth_idmap name_ids;
    /* Children that do not follow their parents: node number, 0 for empty (the root is nobody's
     * child). Power of two, at most half full. */
    uint32_t *children;
    size_t n_children, cap_children;
    size_t segment_bytes;
    uint64_t seed;
    /* For those who only look. */
    _Atomic size_t n_bytes;
    _Atomic uint32_t n_dead;
    _Atomic bool stale;
};

static uint32_t *uses_of(uint32_t *const *segments, uint32_t i)
{
    uint32_t at, segment = hearth_name_tree_segment(i, &at);
    return segments[segment] + at;
}

/* Room for entry i in `*segment` (of elements of `size` bytes) and in its counts. */
static bool make_room(struct hearth_name_tree_impl *impl, uint32_t i, void *segments, size_t size,
                      uint32_t **uses)
{
    if (i >= HEARTH_NAME_TREE_MAX) {
        return false;
    }

    uint32_t at, segment = hearth_name_tree_segment(i, &at);
    if (at != 0 || uses[segment] != NULL) {
        return true;
    }

    size_t n = (size_t)HEARTH_NAME_TREE_FIRST << segment;
    void *entries = hearth_mem_reallocarray(NULL, n, size);
    uses[segment] = entries == NULL ? NULL : hearth_mem_calloc(n, sizeof uses[segment][0]);
    if (uses[segment] == NULL) {
        hearth_mem_free(entries);
        return false;
    }

    memcpy((char *)segments + segment * sizeof entries, &entries, sizeof entries);
    impl->segment_bytes += n * (size + sizeof uses[segment][0]);

    return true;
}

struct hearth_name_tree *hearth_name_tree_new(void)
{
    struct hearth_name_tree *tree = hearth_mem_zalloc(sizeof *tree);
    struct hearth_name_tree_impl *impl = hearth_mem_zalloc(sizeof *impl);

    if (tree == NULL || impl == NULL) {
        hearth_mem_free(tree);
        hearth_mem_free(impl);
        return NULL;
    }

    tree->impl = impl;
    atomic_init(&impl->refs, 1);
    (void)pthread_mutex_init(&impl->lock, NULL);
    hearth_arena_init(&impl->texts, 0);
    hearth_idmap_init(&impl->name_ids);
    impl->seed = hearth_hash_process_seed();
    if (!make_room(impl, 0, tree->nodes, sizeof tree->nodes[0][0], impl->node_uses) ||
        !make_room(impl, 0, tree->names, sizeof tree->names[0][0], impl->name_uses)) {
        hearth_name_tree_unref(tree);
        return NULL;
    }

    tree->nodes[0][0] = (struct hearth_name_node){0};
    tree->names[0][0] = HEARTH_STR("");
    impl->n_nodes = impl->n_names = 1;
    hearth_name_tree_begin(tree);
    hearth_name_tree_end(tree);

    return tree;
}

struct hearth_name_tree *hearth_name_tree_ref(struct hearth_name_tree *tree)
{
    (void)atomic_fetch_add_explicit(&tree->impl->refs, 1, memory_order_relaxed);
    return tree;
}

void hearth_name_tree_unref(struct hearth_name_tree *tree)
{
    if (tree == NULL || atomic_fetch_sub_explicit(&tree->impl->refs, 1, memory_order_acq_rel) > 1) {
        return;
    }

    struct hearth_name_tree_impl *impl = tree->impl;
    for (unsigned i = 0; i < HEARTH_NAME_TREE_SEGMENTS; i++) {
        hearth_mem_free(tree->nodes[i]);
        hearth_mem_free(tree->names[i]);
        hearth_mem_free(impl->node_uses[i]);
        hearth_mem_free(impl->name_uses[i]);
    }

    hearth_mem_free(impl->children);
    hearth_idmap_release(&impl->name_ids);
    hearth_arena_release(&impl->texts);
    (void)pthread_mutex_destroy(&impl->lock);
    hearth_mem_free(impl);
    hearth_mem_free(tree);
}

size_t hearth_name_tree_bytes(const struct hearth_name_tree *tree)
{
    return atomic_load_explicit(&tree->impl->n_bytes, memory_order_relaxed);
}

bool hearth_name_tree_is_stale(const struct hearth_name_tree *tree)
{
    return atomic_load_explicit(&tree->impl->stale, memory_order_relaxed);
}

uint32_t hearth_name_tree_n_dead(const struct hearth_name_tree *tree)
{
    return atomic_load_explicit(&tree->impl->n_dead, memory_order_relaxed);
}

void hearth_name_tree_begin(struct hearth_name_tree *tree)
{
    (void)pthread_mutex_lock(&tree->impl->lock);
}

void hearth_name_tree_end(struct hearth_name_tree *tree)
{
    struct hearth_name_tree_impl *impl = tree->impl;
    uint32_t n_dead = impl->n_nodes - 1 - impl->n_live_nodes;
    size_t dead_bytes = impl->text_bytes - impl->live_text_bytes;
    bool full =
        impl->n_nodes > HEARTH_NAME_TREE_MAX / 4 || impl->n_names > HEARTH_NAME_TREE_MAX / 4;
    bool dead = (n_dead > STALE_NODES && n_dead > impl->n_live_nodes) ||
                (dead_bytes > STALE_BYTES && dead_bytes > impl->live_text_bytes);

    atomic_store_explicit(&impl->n_dead, n_dead, memory_order_relaxed);
    atomic_store_explicit(&impl->stale, dead || full, memory_order_relaxed);
    atomic_store_explicit(
        &impl->n_bytes,
        sizeof *tree + sizeof *impl + impl->segment_bytes + impl->texts.used_bytes +
            impl->cap_children * sizeof impl->children[0] + hearth_idmap_bytes(&impl->name_ids),
        memory_order_relaxed);
    /* Names first: who sees a node sees its name. */
    atomic_store_explicit(&tree->n_names, impl->n_names, memory_order_release);
    atomic_store_explicit(&tree->n_nodes, impl->n_nodes, memory_order_release);
    (void)pthread_mutex_unlock(&impl->lock);
}

uint32_t hearth_name_tree_intern(struct hearth_name_tree *tree, struct hearth_str text)
{
    struct hearth_name_tree_impl *impl = tree->impl;

    if (text.n == 0) {
        return 0;
    }

    struct hearth_hash128 key = hearth_hash128(text.p, text.n, impl->seed);
    uint32_t name = hearth_idmap_find(&impl->name_ids, key);
    if (name != HEARTH_IDMAP_NONE) {
        return name;
    }

    name = impl->n_names;
    if (!make_room(impl, name, tree->names, sizeof tree->names[0][0], impl->name_uses)) {
        return HEARTH_NO_INDEX;
    }

    struct hearth_str copy = hearth_arena_str(&impl->texts, text);
    bool inserted;
    if (copy.p == NULL ||
        hearth_idmap_intern(&impl->name_ids, key, name, &inserted) == HEARTH_IDMAP_NONE) {
        return HEARTH_NO_INDEX;
    }

    uint32_t at, segment = hearth_name_tree_segment(name, &at);
    tree->names[segment][at] = copy;
    impl->text_bytes += copy.n;
    impl->n_names++;

    return name;
}

/* ---- children ---- */

static size_t child_slot(const struct hearth_name_tree *tree, const uint32_t *table, size_t cap,
                         struct hearth_name_node want)
{
    uint64_t h = hearth_hash_mix(tree->impl->seed ^ want.parent, want.name);
    size_t i = (size_t)(h ^ h >> 32) & (cap - 1);

    for (; table[i] != 0; i = (i + 1) & (cap - 1)) {
        struct hearth_name_node node = hearth_name_tree_node(tree, table[i]);
        if (node.parent == want.parent && node.name == want.name) {
            break;
        }
    }

    return i;
}

static bool grow_children(struct hearth_name_tree *tree)
{
    struct hearth_name_tree_impl *impl = tree->impl;
    size_t cap = impl->cap_children == 0 ? 64 : impl->cap_children * 2;
    uint32_t *table = hearth_mem_calloc(cap, sizeof table[0]);

    if (table == NULL) {
        return false;
    }

    for (size_t i = 0; i < impl->cap_children; i++) {
        uint32_t node = impl->children[i];
        if (node != 0) {
            table[child_slot(tree, table, cap, hearth_name_tree_node(tree, node))] = node;
        }
    }

    hearth_mem_free(impl->children);
    impl->children = table;
    impl->cap_children = cap;

    return true;
}

uint32_t hearth_name_tree_child(struct hearth_name_tree *tree, uint32_t parent, uint32_t name)
{
    struct hearth_name_tree_impl *impl = tree->impl;
    struct hearth_name_node want = {parent, name};
    uint32_t node = impl->n_nodes;
    size_t slot = 0;

    if (parent + 1 < node) { /* else it is the newest: it has no children */
        struct hearth_name_node next = hearth_name_tree_node(tree, parent + 1);
        if (next.parent == parent && next.name == name) {
            return parent + 1;
        }
        if (impl->n_children * 2 >= impl->cap_children && !grow_children(tree)) {
            return HEARTH_NO_INDEX;
        }
        slot = child_slot(tree, impl->children, impl->cap_children, want);
        if (impl->children[slot] != 0) {
            return impl->children[slot];
        }
    }

    if (!make_room(impl, node, tree->nodes, sizeof tree->nodes[0][0], impl->node_uses)) {
        return HEARTH_NO_INDEX;
    }

    uint32_t at, segment = hearth_name_tree_segment(node, &at);
    tree->nodes[segment][at] = want;
    if (parent + 1 < node) {
        impl->children[slot] = node;
        impl->n_children++;
    }

    impl->n_nodes++;

    return node;
}

/* ---- use ---- */

void hearth_name_tree_use_name(struct hearth_name_tree *tree, uint32_t name)
{
    struct hearth_name_tree_impl *impl = tree->impl;
    if ((*uses_of(impl->name_uses, name))++ == 0) {
        impl->live_text_bytes += hearth_name_tree_name(tree, name).n;
    }
}

void hearth_name_tree_drop_name(struct hearth_name_tree *tree, uint32_t name)
{
    struct hearth_name_tree_impl *impl = tree->impl;
    if (--*uses_of(impl->name_uses, name) == 0) {
        impl->live_text_bytes -= hearth_name_tree_name(tree, name).n;
    }
}

void hearth_name_tree_use_node(struct hearth_name_tree *tree, uint32_t node)
{
    struct hearth_name_tree_impl *impl = tree->impl;
    while (node != 0 && (*uses_of(impl->node_uses, node))++ == 0) {
        struct hearth_name_node born = hearth_name_tree_node(tree, node);
        impl->n_live_nodes++;
        hearth_name_tree_use_name(tree, born.name);
        node = born.parent;
    }
}

void hearth_name_tree_drop_node(struct hearth_name_tree *tree, uint32_t node)
{
    struct hearth_name_tree_impl *impl = tree->impl;
    while (node != 0 && --*uses_of(impl->node_uses, node) == 0) {
        struct hearth_name_node dead = hearth_name_tree_node(tree, node);
        impl->n_live_nodes--;
        hearth_name_tree_drop_name(tree, dead.name);
        node = dead.parent;
    }
}
