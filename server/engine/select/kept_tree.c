/*
 * kept_tree.c -- a function tree as bytes: a head, its nodes, the end of each name, and the texts.
 */
#include "select/kept_tree.h"

#include "hearth/base/mem.h"

#include "select/sum_cache.h"

#include <assert.h>
#include <string.h>

struct head {
    uint64_t n_nodes, n_names, is_cut, n_left_out;
    struct hearth_joined_stacks joined;
};

void hearth_kept_tree_init(struct hearth_kept_tree *kept, const struct hearth_query *query,
                           const struct hearth_merge_spec *spec, int64_t max_nodes)
{
    assert(kept != NULL && query != NULL && spec != NULL);
    assert(spec->go_stacks != HEARTH_GO_OF_TENANT);

    *kept = (struct hearth_kept_tree){.cache = query->call.engine->sum_cache};
    kept->is_wanted = max_nodes >= 1 && hearth_stack_filter_is_empty(&spec->stacks) &&
                      hearth_profile_filter_is_empty(&spec->profiles);
    const struct {
        struct hearth_hash128 type; /* says how deep stacks are that Go may have cut */
        int64_t max_nodes, go_stacks, empty_names;
    } form = {
        hearth_hash128(spec->profile_type.p, spec->profile_type.n, hearth_hash_process_seed()),
        max_nodes, spec->go_stacks, spec->empty_names};
    kept->form = hearth_hash128(&form, sizeof form, hearth_hash_process_seed());
}

void hearth_kept_tree_release(struct hearth_kept_tree *kept)
{
    if (kept->found != NULL) {
        hearth_sum_cache_release(kept->cache, kept->found);
    }
    *kept = (struct hearth_kept_tree){0};
}

bool hearth_kept_tree_find(void *context, struct hearth_hash128 sums_key)
{
    struct hearth_kept_tree *kept = context;
    if (!kept->is_wanted) {
        return false;
    }

    assert(!kept->has_key);
    const struct hearth_hash128 both[2] = {sums_key, kept->form};
    kept->key = hearth_hash128(both, sizeof both, hearth_hash_process_seed());
    kept->has_key = true;
    kept->found = hearth_sum_cache_find_bytes(kept->cache, kept->key);

    return kept->found != NULL;
}

/* ---- from bytes ---- */

static enum hearth_status read_names(struct hearth_stacktree *tree, const uint32_t *ends,
                                     uint64_t n_names, const char *texts, struct hearth_err *err)
{
    for (uint64_t i = 1; i < n_names; i++) {
        struct hearth_str text = hearth_str_n(texts + ends[i - 1], ends[i] - ends[i - 1]);
        uint32_t name = hearth_stacktree_name(tree, text);
        if (name == HEARTH_IDMAP_NONE) {
            return HEARTH_FAIL_ARENA(err, tree->arena);
        }
        HEARTH_ASSERT(name == i);
    }

    return HEARTH_OK;
}

enum hearth_status hearth_kept_tree_read(const struct hearth_kept_tree *kept,
                                         struct hearth_stacktree *tree,
                                         struct hearth_joined_stacks *ret_joined,
                                         struct hearth_err *err)
{
    assert(kept != NULL && kept->found != NULL && tree != NULL && tree->n_nodes == 0);

    struct head head;
    const char *at = kept->found->bytes.p;
    memcpy(&head, at, sizeof head);
    at += sizeof head;
    const struct hearth_tree_node *nodes = (const struct hearth_tree_node *)(const void *)at;
    const uint32_t *ends = (const uint32_t *)(const void *)(nodes + head.n_nodes);
    if (!hearth_stacktree_reserve(tree, head.n_nodes)) {
        return HEARTH_FAIL_ARENA(err, tree->arena);
    }

    HEARTH_TRY(read_names(tree, ends, head.n_names, (const char *)(ends + head.n_names), err));
    memcpy(tree->nodes, nodes, head.n_nodes * sizeof nodes[0]);
    tree->n_nodes = head.n_nodes;
    tree->is_cut = head.is_cut != 0;
    tree->n_left_out = head.n_left_out;
    *ret_joined = head.joined;

    return HEARTH_OK;
}

/* ---- to bytes ---- */

/*
 * Numbers the names that nodes have, in number[], which is 0 at first: a truncated tree has more
 * names. Returns how many there are.
 */
static uint32_t number_names(const struct hearth_stacktree *tree, uint32_t *number)
{
    uint32_t n = 1; /* the root's */
    for (size_t i = 1; i < tree->n_nodes; i++) {
        uint32_t name = tree->nodes[i].name;
        if (name != 0 && number[name] == 0) {
            number[name] = n++;
        }
    }

    return n;
}

/* Appends the ends of the names that have a number, then their texts. False: memory was refused. */
static bool append_names(const struct hearth_stacktree *tree, const uint32_t *number, uint32_t n,
                         struct hearth_buf *out)
{
    HEARTH_CLEANUP(hearth_mem_freep) struct hearth_str *names = hearth_mem_calloc(n, sizeof *names);
    if (names == NULL) {
        return false;
    }

    for (size_t name = 1; name < tree->n_names; name++) {
        if (number[name] != 0) {
            names[number[name]] = tree->names[name];
        }
    }

    uint32_t end = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (__builtin_add_overflow(end, names[i].n, &end)) {
            return false;
        }
        hearth_buf_append(out, &end, sizeof end);
    }

    for (uint32_t i = 1; i < n; i++) {
        hearth_buf_str(out, names[i]);
    }

    return !hearth_buf_failed(out);
}

/* False: memory was refused, or the tree is too large. */
static bool write_tree(const struct hearth_stacktree *tree,
                       const struct hearth_joined_stacks *joined, struct hearth_buf *out)
{
    HEARTH_CLEANUP(hearth_mem_freep)
    uint32_t *number = hearth_mem_calloc(tree->n_names, sizeof *number);
    if (number == NULL) {
        return false;
    }

    const struct head head = {.n_nodes = tree->n_nodes,
                              .n_names = number_names(tree, number),
                              .is_cut = tree->is_cut,
                              .n_left_out = tree->n_left_out,
                              .joined = *joined};
    hearth_buf_append(out, &head, sizeof head);
    for (size_t i = 0; i < tree->n_nodes; i++) {
        struct hearth_tree_node node = tree->nodes[i];
        node.name = number[node.name];
        hearth_buf_append(out, &node, sizeof node);
    }

    return append_names(tree, number, (uint32_t)head.n_names, out);
}

void hearth_kept_tree_add(const struct hearth_kept_tree *kept, const struct hearth_stacktree *tree,
                          const struct hearth_joined_stacks *joined)
{
    assert(kept != NULL && tree != NULL && joined != NULL);

    if (!kept->has_key || tree->n_nodes == 0) {
        return;
    }

    struct hearth_buf bytes;
    hearth_buf_init(&bytes, hearth_sum_cache_largest(kept->cache));
    if (write_tree(tree, joined, &bytes)) {
        hearth_sum_cache_add_bytes(kept->cache, kept->key, hearth_buf_view(&bytes));
    }
    hearth_buf_release(&bytes);
}
