/*
 * diff.c -- compares two selections, which are summed one after the other.
 *
 * Both trees are made whole and truncated together: if each were truncated by itself, their boxes
 * "other" would differ.
 */
#include "answer/diff_noise.h"
#include "select/planned.h"

#include <assert.h>

struct diff_side {
    const char *name;
    bool is_base;
    const struct hearth_query *query;
    const struct hearth_merge_spec *spec;
    struct hearth_stacktree tree;
};

/* Appends the notes of a side to those of the query, each line with the side's name. */
static enum hearth_status append_side_notes(const struct diff_side *side, struct hearth_str lines,
                                            struct hearth_err *err)
{
    for (size_t from = 0; from < lines.n;) {
        size_t to = hearth_str_find(lines, '\n', from);
        hearth_buf_printf(side->query->call.notes, "%s: ", side->name);
        hearth_buf_str(side->query->call.notes, hearth_str_n(lines.p + from, to - from));
        hearth_buf_byte(side->query->call.notes, '\n');
        from = to + 1;
    }

    return side->query->call.notes != NULL && hearth_buf_failed(side->query->call.notes)
               ? HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate the notes of an answer")
               : HEARTH_OK;
}

/* Makes the tree of a side. */
static enum hearth_status make_diff_side(struct diff_side *side, struct hearth_err *err)
{
    struct hearth_buf notes;
    struct hearth_query query = *side->query;

    hearth_buf_init(&notes, 0);
    query.call.notes = query.call.notes == NULL ? NULL : &notes;
    hearth_plan_begin(&query, HEARTH_STEP_STACKS, side->is_base);
    enum hearth_status status = hearth_query_function_tree(&query, side->spec, 0, &side->tree, err);
    if (status == HEARTH_OK) {
        status = append_side_notes(side, hearth_buf_view(&notes), err);
    }

    hearth_buf_release(&notes);
    return status;
}

/* Checks a side without reading any data. */
static enum hearth_status check_diff_side(const struct diff_side *side, int64_t *ret_max_nodes,
                                          struct hearth_err *err)
{
    struct hearth_profile_type type;
    struct hearth_range range;
    HEARTH_TRY(hearth_profile_type_parse(side->spec->profile_type, &type, err));
    HEARTH_TRY(hearth_query_range(side->query, &range, err));
    return hearth_query_max_nodes(side->query, side->spec, ret_max_nodes, err);
}

/* The larger requested number of nodes; the default if neither side requests one. */
static int64_t find_common_max_nodes(const struct diff_side sides[2], const int64_t max_nodes[2])
{
    bool is_set[2];

    for (int i = 0; i < 2; i++) {
        is_set[i] = sides[i].spec->has_max_nodes && sides[i].spec->max_nodes != 0;
    }

    if (is_set[0] != is_set[1]) {
        return max_nodes[is_set[1]];
    }

    return max_nodes[0] > max_nodes[1] ? max_nodes[0] : max_nodes[1];
}

static enum hearth_status note_folded_frames(const struct hearth_query *query,
                                             const struct hearth_flame_diff *diff,
                                             int64_t max_nodes, struct hearth_err *err)
{
    if (query->call.notes == NULL || diff->left_folded + diff->right_folded == 0) {
        return HEARTH_OK;
    }

    hearth_buf_printf(query->call.notes,
                      "%lld frames of the left and %lld of the right are folded into \"other\""
                      " (max_nodes %lld): ask for more with max_nodes\n",
                      (long long)diff->left_folded, (long long)diff->right_folded,
                      (long long)max_nodes);

    return hearth_buf_failed(query->call.notes)
               ? HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate the notes of an answer")
               : HEARTH_OK;
}

static enum hearth_status compare_sides(struct diff_side sides[2],
                                        struct hearth_diff_noise *ret_noise,
                                        struct hearth_flame_diff *ret, struct hearth_err *err)
{
    int64_t max_nodes[2];

    /* Both sides are checked before any work is done. */
    for (int i = 0; i < 4; i++) {
        struct diff_side *side = &sides[i % 2];
        enum hearth_status status =
            i < 2 ? check_diff_side(side, &max_nodes[i], err) : make_diff_side(side, err);
        if (status != HEARTH_OK) {
            hearth_err_prefix(err, "%s", side->name);
            return status;
        }
    }

    int64_t n = find_common_max_nodes(sides, max_nodes);
    HEARTH_TRY(hearth_flame_diff_make(&sides[0].tree, &sides[1].tree, n, sides[0].query->call.arena,
                                      ret, err));
    if (ret_noise != NULL) {
        const struct hearth_noise_task task = {{sides[0].query, sides[1].query},
                                               {sides[0].spec, sides[1].spec},
                                               {&sides[0].tree, &sides[1].tree},
                                               ret};
        HEARTH_TRY(hearth_diff_noise_make(&task, ret_noise, err));
    }

    return note_folded_frames(sides[0].query, ret, n, err);
}

enum hearth_status hearth_query_diff(const struct hearth_query *left,
                                     const struct hearth_merge_spec *left_spec,
                                     const struct hearth_query *right,
                                     const struct hearth_merge_spec *right_spec,
                                     struct hearth_diff_noise *ret_noise,
                                     struct hearth_flame_diff *ret, struct hearth_err *err)
{
    assert(left->call.arena == right->call.arena);

    struct diff_side sides[2] = {
        {.name = "left", .is_base = true, .query = left, .spec = left_spec},
        {.name = "right", .query = right, .spec = right_spec},
    };
    for (int i = 0; i < 2; i++) {
        hearth_stacktree_init(&sides[i].tree, sides[i].query->call.arena);
    }

    enum hearth_status status = compare_sides(sides, ret_noise, ret, err);
    for (int i = 0; i < 2; i++) {
        hearth_stacktree_release(&sides[i].tree);
    }

    return status;
}
