/*
 * name_tree.c -- nodes and names in segments that never move; a writer finds them by hash tables.
 *
 * A reader knows a size that was published after the entries below it were written, so its plain
 * reads of segments and their pointers happen after the writes. A writer only writes entries and
 * pointers that no published size covers yet.
 *
 * Most nodes were made right after their parent, because stacks are walked from the root. Such a
 * child is searched at parent + 1; only the others are in the hash table of children.
 *
 * Uses are counted at the node where a dictionary's stack ends. A node is alive if a stack ends in
 * it or a child is alive. So a dictionary costs one count per stack, not one per node.
 *
 * The dictionaries of several days have mostly the same stacks. Where a stack ends is noted by its
 * key, so that dictionaries after the first find it without a walk. Stacks may be noted that no
 * dictionary has any more, so the number of notes is bounded by that of the stacks in use.
 */
#include "hearth/model/name_tree.h"

#include "hearth/base/arena.h"
#include "hearth/base/hash.h"
#include "hearth/base/mem.h"
#include "hearth/base/sync.h"

#include <assert.h>

/* Below these sizes a tree is never stale because of dead entries. */
#define STALE_NODES (UINT32_C(64) << 10)
#define STALE_BYTES ((size_t)4 << 20)

/* Notes of stacks are kept below this number, however few stacks are in use. */
#define KEPT_NOTES (UINT32_C(64) << 10)

/* Ranks of the layer's locks (hearth/base/sync.h): there is one. */
enum hearth_model_rank {
    HEARTH_RANK_NAME_TREE = HEARTH_RANKS_MODEL, /* name_tree.lock: one tree, while it grows */
};

struct hearth_name_tree_impl {
    _Atomic uint32_t refs;
    struct hearth_mutex lock; /* guards all members below and the unpublished entries */
    uint32_t n_nodes, n_names;
    /* node_uses: stacks that end in a node, plus its live children. name_uses: dictionaries that
     * use a name, plus its live nodes. */
    uint32_t *node_uses[HEARTH_NAME_TREE_SEGMENTS], *name_uses[HEARTH_NAME_TREE_SEGMENTS];
    uint32_t n_live_nodes;
    uint64_t n_stack_uses;           /* uses by stacks, of all nodes */
    struct hearth_idmap stack_nodes; /* where stacks end, by their keys */
    size_t text_bytes, live_text_bytes;
    struct hearth_arena texts;
    struct hearth_idmap name_ids;
    /*
     * Hash table of children that do not follow their parents: node numbers, 0 for an empty slot
     * (the root is no child). The size is a power of two; at most half of the slots are in use.
     */
    uint32_t *children;
    size_t n_children, cap_children;
    size_t segment_bytes;
    uint64_t seed;
    /* Published by _end; read without the lock. */
    _Atomic size_t n_bytes;
    _Atomic uint32_t n_dead;
    _Atomic bool stale;
};

/* The use count of entry i. */
static uint32_t *find_uses(uint32_t *const *segments, uint32_t i)
{
    uint32_t at, segment = hearth_name_tree_segment(i, &at);
    return segments[segment] + at;
}

/*
 * Make room for entry i in `segments` (an array of pointers to elements of `size` bytes) and in its
 * use counts. False if memory was refused or the tree is full.
 */
static bool make_entry_room(struct hearth_name_tree_impl *impl, uint32_t i, void *segments,
                            size_t size, uint32_t **uses)
{
    if (i >= HEARTH_NAME_TREE_MAX) {
        return false;
    }

    /* Only the first entry of a segment needs memory. */
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

    /* Start with the root and its empty name, published. */
    tree->impl = impl;
    atomic_init(&impl->refs, 1);
    hearth_mutex_init(&impl->lock, HEARTH_RANK_NAME_TREE, "name_tree.lock");
    hearth_arena_init(&impl->texts, 0);
    hearth_idmap_init(&impl->name_ids);
    hearth_idmap_init(&impl->stack_nodes);
    impl->seed = hearth_hash_process_seed();
    if (!make_entry_room(impl, 0, tree->nodes, sizeof tree->nodes[0][0], impl->node_uses) ||
        !make_entry_room(impl, 0, tree->names, sizeof tree->names[0][0], impl->name_uses)) {
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
    hearth_idmap_release(&impl->stack_nodes);
    hearth_arena_release(&impl->texts);
    hearth_mutex_destroy(&impl->lock);
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
    hearth_mutex_lock(&tree->impl->lock);
}

void hearth_name_tree_end(struct hearth_name_tree *tree)
{
    struct hearth_name_tree_impl *impl = tree->impl;
    assert(impl->n_nodes > impl->n_live_nodes);

    uint32_t n_dead = impl->n_nodes - 1 - impl->n_live_nodes;
    size_t dead_bytes = impl->text_bytes - impl->live_text_bytes;
    bool full =
        impl->n_nodes > HEARTH_NAME_TREE_MAX / 4 || impl->n_names > HEARTH_NAME_TREE_MAX / 4;
    bool dead = (n_dead > STALE_NODES && n_dead > impl->n_live_nodes) ||
                (dead_bytes > STALE_BYTES && dead_bytes > impl->live_text_bytes);

    /* Statistics. */
    atomic_store_explicit(&impl->n_dead, n_dead, memory_order_relaxed);
    atomic_store_explicit(&impl->stale, dead || full, memory_order_relaxed);
    atomic_store_explicit(
        &impl->n_bytes,
        sizeof *tree + sizeof *impl + impl->segment_bytes + impl->texts.used_bytes +
            impl->cap_children * sizeof impl->children[0] + hearth_idmap_bytes(&impl->name_ids) +
            hearth_idmap_bytes(&impl->stack_nodes),
        memory_order_relaxed);

    /* Publish names first: a reader that sees a node must see its name. */
    atomic_store_explicit(&tree->n_names, impl->n_names, memory_order_release);
    atomic_store_explicit(&tree->n_nodes, impl->n_nodes, memory_order_release);
    hearth_mutex_unlock(&impl->lock);
}

uint32_t hearth_name_tree_intern(struct hearth_name_tree *tree, struct hearth_str text)
{
    assert(tree != NULL);
    hearth_mutex_assert_held(&tree->impl->lock);

    struct hearth_name_tree_impl *impl = tree->impl;

    if (text.n == 0) {
        return 0;
    }

    struct hearth_hash128 key = hearth_hash128(text.p, text.n, impl->seed);
    uint32_t name = hearth_idmap_find(&impl->name_ids, key);
    if (name != HEARTH_IDMAP_NONE) {
        return name;
    }

    /* Add it: everything that can fail comes first. */
    name = impl->n_names;
    if (!make_entry_room(impl, name, tree->names, sizeof tree->names[0][0], impl->name_uses)) {
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

/* The slot of a child in a table, or the empty slot where it belongs. */
static size_t find_child_slot(const struct hearth_name_tree *tree, const uint32_t *table,
                              size_t cap, struct hearth_name_node want)
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
            table[find_child_slot(tree, table, cap, hearth_name_tree_node(tree, node))] = node;
        }
    }

    hearth_mem_free(impl->children);
    impl->children = table;
    impl->cap_children = cap;

    return true;
}

uint32_t hearth_name_tree_child(struct hearth_name_tree *tree, uint32_t parent, uint32_t name)
{
    hearth_mutex_assert_held(&tree->impl->lock);
    assert(parent < tree->impl->n_nodes && name < tree->impl->n_names);

    struct hearth_name_tree_impl *impl = tree->impl;
    struct hearth_name_node want = {parent, name};
    uint32_t node = impl->n_nodes;
    size_t slot = 0;

    /* Search at parent + 1, then in the table. The newest node has no children. */
    if (parent + 1 < node) {
        struct hearth_name_node next = hearth_name_tree_node(tree, parent + 1);
        if (next.parent == parent && next.name == name) {
            return parent + 1;
        }

        if (impl->n_children * 2 >= impl->cap_children && !grow_children(tree)) {
            return HEARTH_NO_INDEX;
        }
        slot = find_child_slot(tree, impl->children, impl->cap_children, want);
        if (impl->children[slot] != 0) {
            return impl->children[slot];
        }
    }

    /* Add it. */
    if (!make_entry_room(impl, node, tree->nodes, sizeof tree->nodes[0][0], impl->node_uses)) {
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

/* ---- stacks ---- */

uint32_t hearth_name_tree_find_stack(const struct hearth_name_tree *tree, struct hearth_hash128 key)
{
    hearth_mutex_assert_held(&tree->impl->lock);

    uint32_t node = hearth_idmap_find(&tree->impl->stack_nodes, key);
    return node == HEARTH_IDMAP_NONE ? HEARTH_NO_INDEX : node;
}

void hearth_name_tree_note_stack(struct hearth_name_tree *tree, struct hearth_hash128 key,
                                 uint32_t node)
{
    hearth_mutex_assert_held(&tree->impl->lock);
    assert(node < tree->impl->n_nodes);

    /* Most of too many notes are of stacks that no dictionary has any more. */
    struct hearth_name_tree_impl *impl = tree->impl;
    if (impl->stack_nodes.n >= KEPT_NOTES && impl->stack_nodes.n / 2 >= impl->n_stack_uses) {
        hearth_idmap_release(&impl->stack_nodes);
    }

    bool is_new;
    (void)hearth_idmap_intern(&impl->stack_nodes, key, node, &is_new);
}

/* ---- use ---- */

void hearth_name_tree_use_name(struct hearth_name_tree *tree, uint32_t name)
{
    hearth_mutex_assert_held(&tree->impl->lock);
    assert(name < tree->impl->n_names);

    struct hearth_name_tree_impl *impl = tree->impl;
    if ((*find_uses(impl->name_uses, name))++ == 0) {
        impl->live_text_bytes += hearth_name_tree_name(tree, name).n;
    }
}

void hearth_name_tree_drop_name(struct hearth_name_tree *tree, uint32_t name)
{
    hearth_mutex_assert_held(&tree->impl->lock);
    assert(name < tree->impl->n_names);
    assert(*find_uses(tree->impl->name_uses, name) > 0);

    struct hearth_name_tree_impl *impl = tree->impl;
    if (--*find_uses(impl->name_uses, name) == 0) {
        impl->live_text_bytes -= hearth_name_tree_name(tree, name).n;
    }
}

void hearth_name_tree_use_node(struct hearth_name_tree *tree, uint32_t node)
{
    hearth_mutex_assert_held(&tree->impl->lock);
    assert(node < tree->impl->n_nodes);

    struct hearth_name_tree_impl *impl = tree->impl;
    impl->n_stack_uses++;
    while (node != 0 && (*find_uses(impl->node_uses, node))++ == 0) {
        struct hearth_name_node born = hearth_name_tree_node(tree, node);
        impl->n_live_nodes++;
        hearth_name_tree_use_name(tree, born.name);
        node = born.parent;
    }
}

void hearth_name_tree_drop_node(struct hearth_name_tree *tree, uint32_t node)
{
    hearth_mutex_assert_held(&tree->impl->lock);
    assert(node < tree->impl->n_nodes);
    assert(node == 0 || *find_uses(tree->impl->node_uses, node) > 0);

    struct hearth_name_tree_impl *impl = tree->impl;
    impl->n_stack_uses--;
    while (node != 0 && --*find_uses(impl->node_uses, node) == 0) {
        struct hearth_name_node dead = hearth_name_tree_node(tree, node);
        impl->n_live_nodes--;
        hearth_name_tree_drop_name(tree, dead.name);
        node = dead.parent;
    }
}
