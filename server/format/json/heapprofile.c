/*
 * heapprofile.c -- V8's sampling heap profile: nodes nested in nodes, read without recursion. The
 * reader's own levels say whether a node or its list of children is being read.
 */
#include "hearth/format/chrome_profile.h"

#include "json/chrome_frames.h"

#include <assert.h>

/* A node takes two levels of JSON. */
#define MAX_OPEN (HEARTH_JSON_READER_MAX_DEPTH / 2 + 1)

/* The nodes that are being read, the innermost last. */
struct open_nodes {
    struct open_node {
        uint32_t node; /* of the tree */
        bool has_frame, has_size;
    } v[MAX_OPEN];
    size_t n;
};

/* Begins the node that comes next. */
static void enter_heap_node(struct chrome_profile *p, struct hearth_json_reader *r,
                            struct open_nodes *open)
{
    uint32_t parent = open->n == 0 ? HEARTH_NO_INDEX : open->v[open->n - 1].node;

    hearth_json_reader_object(r);
    if (hearth_json_reader_failed(r)) {
        return;
    }

    /* The frame follows, perhaps after the children. */
    uint32_t node = hearth_call_tree_add(&p->tree, parent, HEARTH_NO_INDEX);
    if (node == HEARTH_NO_INDEX) {
        hearth_call_tree_fail(&p->tree, r);
        return;
    }

    assert(open->n < MAX_OPEN);
    open->v[open->n++] = (struct open_node){.node = node};
}

/* Reads a member of the innermost node; of its children, only the bracket. */
static void read_heap_member(struct chrome_profile *p, struct hearth_json_reader *r,
                             struct hearth_str key, struct open_node *open)
{
    struct call_node *node = &p->tree.nodes[open->node];

    if (hearth_str_eq_c(key, "children")) {
        hearth_json_reader_array(r);
    } else if (hearth_str_eq_c(key, "callFrame")) {
        node->location = hearth_chrome_frame(p, r);
        open->has_frame = true;
    } else if (hearth_str_eq_c(key, "selfSize")) {
        int64_t size = hearth_json_reader_scaled(r, 1);
        if (size < 0) {
            hearth_json_reader_fail(r, "the size of a node is negative");
        }
        node->values[0] = size;
        open->has_size = true;
    } else {
        hearth_json_reader_skip(r);
    }
}

/* Ends the innermost node. CPU profiles of old versions of Chrome have nodes without a size. */
static void leave_heap_node(struct hearth_json_reader *r, struct open_nodes *open)
{
    const struct open_node *last = &open->v[--open->n];

    if (!last->has_frame || !last->has_size) {
        hearth_json_reader_fail(r, "the node that ends here has no %s",
                                last->has_frame ? "selfSize" : "callFrame");
    }
}

static enum hearth_status read_heap_nodes(struct chrome_profile *p, struct hearth_json_reader *r,
                                          struct hearth_err *err)
{
    struct open_nodes open = {.n = 0};
    struct hearth_str key;

    enter_heap_node(p, r, &open);
    while (open.n > 0 && !hearth_json_reader_failed(r)) {
        if (!hearth_json_reader_is_in_object(r)) {
            if (hearth_json_reader_element(r)) {
                enter_heap_node(p, r, &open);
            }
        } else if (hearth_json_reader_member(r, &key)) {
            read_heap_member(p, r, key, &open.v[open.n - 1]);
        } else {
            leave_heap_node(r, &open);
        }
    }

    return hearth_json_reader_status(r, err);
}

static enum hearth_status read_heap_profile(struct chrome_profile *p, struct hearth_str bytes,
                                            struct hearth_profile *ret,
                                            struct hearth_pprof_notes *notes,
                                            struct hearth_err *err)
{
    struct hearth_json_reader r;
    struct hearth_str key;
    bool has_head = false;

    if (hearth_profile_builder_type(p->builder, HEARTH_STR("inuse_space"), HEARTH_STR("bytes")) ==
        HEARTH_NO_INDEX) {
        return HEARTH_FAIL_ARENA(err, p->arena);
    }

    hearth_json_reader_init(&r, bytes);
    hearth_json_reader_object(&r);
    while (hearth_json_reader_member(&r, &key)) {
        if (hearth_str_eq_c(key, "head") && !has_head) {
            has_head = true;
            HEARTH_TRY(read_heap_nodes(p, &r, err));
        } else {
            hearth_json_reader_skip(&r);
        }
    }
    HEARTH_TRY(hearth_json_reader_end(&r, err));
    if (!has_head) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "the file has no \"head\"");
    }

    return hearth_chrome_finish(p, ret, notes, err);
}

enum hearth_status hearth_heapprofile_decode(struct hearth_str bytes,
                                             const struct hearth_pprof_limits *limits,
                                             struct hearth_arena *arena, struct hearth_profile *ret,
                                             struct hearth_pprof_notes *notes,
                                             struct hearth_err *err)
{
    struct chrome_profile p;

    assert(limits != NULL && arena != NULL && ret != NULL && notes != NULL);
    enum hearth_status status = hearth_chrome_init(&p, limits, arena, err);
    if (status == HEARTH_OK) {
        status = read_heap_profile(&p, bytes, ret, notes, err);
    }
    hearth_chrome_release(&p);

    return status;
}
