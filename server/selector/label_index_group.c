/*
 * label_index_group.c -- groups hits by some of their labels.
 *
 * Values are compared by their ordinals, and only the texts of new groups are read. With one name
 * an array of its values finds the group, if it is not much longer than the list of hits; otherwise
 * a hash table of rows of ordinals does. Labels and texts of a group are neighbours in memory,
 * because answers read them in another order than that of the hits.
 */
#include "label_index_internal.h"

#include <assert.h>

/* The array of values may be this many times as long as the list of hits. */
#define VALUES_PER_HIT 4u

struct grouper {
    const struct hearth_label_index *index;
    struct hearth_arena *arena;
    struct index_wanted *wanted; /* sorted by text, distinct */
    size_t n_wanted;
    uint32_t *row;            /* [n_wanted]: value ordinals of the current hit */
    uint32_t *of_value;       /* one name: by value the group + 1, 0: none; NULL: `seen` is used */
    struct hearth_idmap seen; /* hashes of rows */
    struct hearth_label_groups *groups;
};

/* Reads the values of a hit into the row. */
static enum hearth_status read_row(struct grouper *g, const struct hearth_series_hit *hit,
                                   struct hearth_err *err)
{
    const struct hearth_label_index *index = g->index;
    const struct index_series *series = hearth_index_series_of(index, hit);

    if (series == NULL) {
        return HEARTH_FAIL(err, HEARTH_NOT_FOUND, "series %d has no column %u in the label index",
                           (int)hit->series_id, hit->column);
    }

    for (size_t i = 0; i < g->n_wanted; i++) {
        g->row[i] = hearth_index_value_of(index, &g->wanted[i], series, hit->column);
    }

    return HEARTH_OK;
}

/* Adds a group with the labels of the row. */
static enum hearth_status add_group(struct grouper *g, struct hearth_err *err)
{
    struct hearth_labels labels = {
        .v = hearth_arena_array(g->arena, g->n_wanted, sizeof labels.v[0])};

    if (labels.v == NULL) {
        return HEARTH_FAIL_ARENA(err, g->arena);
    }

    for (size_t i = 0; i < g->n_wanted; i++) {
        if (g->row[i] == 0) {
            continue;
        }
        struct hearth_str value =
            hearth_arena_str(g->arena, hearth_index_value_text(g->index, &g->wanted[i], g->row[i]));
        if (value.p == NULL) {
            return HEARTH_FAIL_ARENA(err, g->arena);
        }
        labels.v[labels.n++] = (struct hearth_label){g->wanted[i].text, value};
    }

    g->groups->v[g->groups->n++] = labels;

    return HEARTH_OK;
}

/* The number of the row's group; *ret_new: it is the next one, which must be added. */
static enum hearth_status find_group(struct grouper *g, uint32_t *ret, bool *ret_new,
                                     struct hearth_err *err)
{
    uint32_t next = (uint32_t)g->groups->n;

    if (g->of_value != NULL) {
        uint32_t *group = &g->of_value[g->row[0]];
        *ret_new = *group == 0;
        *group = *ret_new ? next + 1 : *group;
        *ret = *group - 1;
        return HEARTH_OK;
    }

    struct hearth_hash128 key =
        hearth_hash128(g->row, g->n_wanted * sizeof g->row[0], g->index->seed);
    *ret = hearth_idmap_intern(&g->seen, key, next, ret_new);

    return *ret != HEARTH_IDMAP_NONE
               ? HEARTH_OK
               : HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate the groups of a query");
}

static enum hearth_status group_hits(struct grouper *g, const struct hearth_series_hits *hits,
                                     struct hearth_err *err)
{
    for (size_t i = 0; i < hits->n; i++) {
        bool is_new;
        HEARTH_TRY(read_row(g, &hits->v[i], err));
        HEARTH_TRY(find_group(g, &g->groups->of_hit[i], &is_new, err));
        if (is_new) {
            HEARTH_TRY(add_group(g, err));
        }
    }

    return HEARTH_OK;
}

enum hearth_status hearth_label_index_group(const struct hearth_label_index *index,
                                            const struct hearth_series_hits *hits,
                                            struct hearth_projected_names names,
                                            struct hearth_arena *arena,
                                            struct hearth_label_groups *ret_groups,
                                            struct hearth_err *err)
{
    assert(index != NULL && hits != NULL && arena != NULL && ret_groups != NULL);
    assert(names.v != NULL && names.n > 0);

    struct grouper g = {.index = index, .arena = arena, .groups = ret_groups};

    /* There are at most as many groups as hits. */
    *ret_groups = (struct hearth_label_groups){
        .v = hearth_arena_array(arena, hits->n, sizeof ret_groups->v[0]),
        .of_hit = hearth_arena_array(arena, hits->n, sizeof ret_groups->of_hit[0])};
    g.row = hearth_arena_array(arena, names.n, sizeof g.row[0]);
    if (ret_groups->v == NULL || ret_groups->of_hit == NULL || g.row == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    HEARTH_TRY(hearth_index_look_up_all(index, names, arena, &g.wanted, &g.n_wanted, err));
    if (g.n_wanted == 1 && g.wanted[0].n_values / VALUES_PER_HIT <= hits->n) {
        g.of_value = hearth_arena_calloc(arena, g.wanted[0].n_values, sizeof g.of_value[0]);
        if (g.of_value == NULL) {
            return HEARTH_FAIL_ARENA(err, arena);
        }
    }

    hearth_idmap_init(&g.seen);
    enum hearth_status status = group_hits(&g, hits, err);
    hearth_idmap_release(&g.seen);

    return status;
}
