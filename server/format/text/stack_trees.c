/*
 * stack_trees.c -- trie and tree: one walk over the nodes for both, with different meanings of a
 * node.
 *
 * The walk does not recurse: for each open node it keeps the number of children that follow, and
 * the length of the text or stack before the node.
 */
#include "hearth/format/stack_trees.h"

#include "hearth/base/buf.h"
#include "hearth/base/varint.h"

#include "text/named_frame.h"
#include "text/stack_text.h"

#include <assert.h>

#define MIN_SPELLED_BYTES ((size_t)64 << 20)

struct open_node {
    uint64_t children_left; /* children that follow */
    size_t n_before;        /* trie: bytes of text before this node; tree: frames before it */
};

struct tree_walk {
    struct hearth_str bytes;
    const uint8_t *at, *end;
    struct hearth_stack_text stacks;
    struct open_node open[HEARTH_STACK_TREE_MAX_DEPTH];
    size_t n_open;
    struct hearth_buf text;                           /* trie: the stack of the current node */
    uint32_t frames[HEARTH_STACK_TREE_MAX_DEPTH];     /* tree: locations, root first */
    uint32_t leaf_first[HEARTH_STACK_TREE_MAX_DEPTH]; /* tree: the same, leaf first */
    size_t n_frames;
    size_t spelled_left; /* trie: bytes that further stacks may have */
    uint64_t n_samples;
    struct hearth_err *err;
};

struct tree_node {
    struct hearth_str text;
    int64_t value;
    uint64_t n_children;
};

static enum hearth_status fail_in_tree(const struct tree_walk *w, const char *what)
{
    return HEARTH_FAIL(w->err, HEARTH_INVALID_ARGUMENT, "tree of stacks: %s, at byte %zu of %zu",
                       what, (size_t)(w->at - (const uint8_t *)w->bytes.p), w->bytes.n);
}

static enum hearth_status read_node(struct tree_walk *w, struct tree_node *ret)
{
    uint64_t n, value;
    if (!hearth_varint_read(&w->at, w->end, &n) || n > (uint64_t)(w->end - w->at)) {
        return fail_in_tree(w, "a name ends after the end");
    }

    ret->text = hearth_str_n((const char *)w->at, (size_t)n);
    w->at += n;
    if (!hearth_varint_read(&w->at, w->end, &value) ||
        !hearth_varint_read(&w->at, w->end, &ret->n_children)) {
        return fail_in_tree(w, "a number ends after the end");
    }

    if (value > INT64_MAX) {
        return HEARTH_FAIL(w->err, HEARTH_OUT_OF_RANGE,
                           "tree of stacks: a value has more than 63 bits");
    }

    /* A node has at least three bytes. */
    if (ret->n_children > (uint64_t)(w->end - w->at) / 3) {
        return fail_in_tree(w, "there are more children than bytes");
    }

    ret->value = (int64_t)value;

    return HEARTH_OK;
}

static enum hearth_status add_trie_node(struct tree_walk *w, const struct tree_node *node)
{
    bool added;

    hearth_buf_append(&w->text, node->text.p, node->text.n);
    if (hearth_buf_failed(&w->text)) {
        return HEARTH_FAIL(w->err, HEARTH_NO_MEMORY, "no memory for a stack of a trie");
    }
    if (node->value == 0) {
        return HEARTH_OK;
    }

    if (w->text.n > w->spelled_left) {
        return HEARTH_FAIL(w->err, HEARTH_INVALID_ARGUMENT,
                           "the stacks of a trie of %zu bytes have too much text", w->bytes.n);
    }

    w->spelled_left -= w->text.n;
    HEARTH_TRY(
        hearth_stack_text_add(&w->stacks, hearth_buf_view(&w->text), node->value, &added, w->err));
    w->n_samples += added;

    return HEARTH_OK;
}

static enum hearth_status add_tree_node(struct tree_walk *w, const struct tree_node *node)
{
    bool is_root = w->n_open == 1;
    if (!is_root || node->text.n > 0) {
        struct hearth_named_frame frame = {.name = node->text.n > 0 ? node->text
                                                                    : HEARTH_FRAME_UNKNOWN};
        uint32_t location = hearth_named_location(w->stacks.builder, HEARTH_NO_INDEX, &frame, 1);
        if (location == HEARTH_NO_INDEX) {
            return HEARTH_FAIL_ARENA(w->err, w->stacks.arena);
        }
        assert(w->n_frames < HEARTH_STACK_TREE_MAX_DEPTH);
        w->frames[w->n_frames++] = location;
    }

    if (node->value == 0 || w->n_frames == 0) {
        return HEARTH_OK;
    }

    for (size_t i = 0; i < w->n_frames; i++) {
        w->leaf_first[i] = w->frames[w->n_frames - 1 - i];
    }

    w->n_samples++;

    return hearth_profile_builder_sample(w->stacks.builder, w->leaf_first, (uint32_t)w->n_frames,
                                         &node->value, w->err);
}

/* Close the nodes without further children. */
static void close_nodes(struct tree_walk *w, bool is_trie)
{
    while (w->n_open > 0 && w->open[w->n_open - 1].children_left == 0) {
        size_t n_before = w->open[--w->n_open].n_before;
        assert(n_before <= (is_trie ? w->text.n : w->n_frames));
        if (is_trie) {
            w->text.n = n_before;
        } else {
            w->n_frames = n_before;
        }
    }
}

static enum hearth_status read_nodes(struct tree_walk *w, bool is_trie)
{
    do {
        struct tree_node node;
        HEARTH_TRY(read_node(w, &node));
        if (w->n_open == HEARTH_STACK_TREE_MAX_DEPTH) {
            return fail_in_tree(w, "nested too deep");
        }
        if (w->n_open > 0) {
            w->open[w->n_open - 1].children_left--;
        }

        /* Open the node, add its sample, and close it and its parents if they are complete. */
        w->open[w->n_open++] = (struct open_node){
            .children_left = node.n_children,
            .n_before = is_trie ? w->text.n : w->n_frames,
        };
        HEARTH_TRY(is_trie ? add_trie_node(w, &node) : add_tree_node(w, &node));
        close_nodes(w, is_trie);
    } while (w->n_open > 0);
    if (w->at != w->end) {
        return fail_in_tree(w, "there are bytes after the tree");
    }

    return w->n_samples > 0 ? HEARTH_OK
                            : HEARTH_FAIL(w->err, HEARTH_INVALID_ARGUMENT,
                                          "tree of stacks: no stack has a value");
}

static enum hearth_status decode_tree(struct hearth_str bytes, bool is_trie, struct hearth_str type,
                                      struct hearth_str unit, struct hearth_arena *arena,
                                      struct hearth_profile *ret_profile, struct hearth_err *err)
{
    /* The arrays are written before they are read: to zero them took longer than a small tree. */
    struct tree_walk *w = hearth_arena_alloc(arena, sizeof *w);
    if (w == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    w->n_open = w->n_frames = 0;
    w->n_samples = 0;
    w->bytes = bytes;
    w->at = (const uint8_t *)bytes.p;
    w->end = w->at + bytes.n;
    w->err = err;
    w->spelled_left = bytes.n > MIN_SPELLED_BYTES / 16 ? bytes.n * 16 : MIN_SPELLED_BYTES;
    hearth_buf_init(&w->text, 0);
    w->text.budget = arena->budget;
    enum hearth_status status = hearth_stack_text_init(&w->stacks, type, unit, arena, err);
    if (status == HEARTH_OK) {
        status = read_nodes(w, is_trie);
    }
    if (status == HEARTH_OK) {
        status = hearth_profile_builder_finish(w->stacks.builder, ret_profile, err);
    }

    hearth_stack_text_release(&w->stacks);
    hearth_buf_release(&w->text);

    return status;
}

enum hearth_status hearth_trie_decode(struct hearth_str bytes, struct hearth_str type,
                                      struct hearth_str unit, struct hearth_arena *arena,
                                      struct hearth_profile *ret_profile, struct hearth_err *err)
{
    return decode_tree(bytes, true, type, unit, arena, ret_profile, err);
}

enum hearth_status hearth_tree_decode(struct hearth_str bytes, struct hearth_str type,
                                      struct hearth_str unit, struct hearth_arena *arena,
                                      struct hearth_profile *ret_profile, struct hearth_err *err)
{
    return decode_tree(bytes, false, type, unit, arena, ret_profile, err);
}
