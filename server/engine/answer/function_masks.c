/*
 * function_masks.c -- finds functions of stacks by the name tree: a node has its parent's functions
 * and its own.
 */
#include "answer/function_masks.h"

#include "hearth/base/mem.h"
#include "hearth/model/frame_name.h"

#include "select/stack_filter.h"

#include <assert.h>

enum hearth_status hearth_function_masks_init(struct hearth_function_masks *table,
                                              struct hearth_err *err)
{
    return hearth_row_mask_init(&table->rows, table->stacks, table->query->call.arena, err);
}

void hearth_function_masks_release(struct hearth_function_masks *table)
{
    hearth_row_mask_release(&table->rows);
    hearth_idmap_release(&table->by_key);
    hearth_mem_free(table->masks);
    table->masks = NULL;
    table->n = table->cap = 0;
}

/* function_of[name]: index of the name's function; HEARTH_MAX_FUNCTIONS: another name. */
static enum hearth_status map_names_to_functions(const struct hearth_function_masks *table,
                                                 const struct hearth_name_tree *tree,
                                                 struct hearth_arena *arena, uint8_t **ret,
                                                 struct hearth_err *err)
{
    uint32_t n = hearth_name_tree_n_names(tree);
    uint8_t *function_of = hearth_arena_array(arena, n, sizeof function_of[0]);
    if (function_of == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (uint32_t i = 0; i < n; i++) {
        struct hearth_str name = hearth_frame_shown(hearth_name_tree_name(tree, i));
        size_t f = 0;
        while (f < table->n_functions && !hearth_str_eq(name, table->functions[f])) {
            f++;
        }
        function_of[i] = f == table->n_functions ? HEARTH_MAX_FUNCTIONS : (uint8_t)f;
    }

    *ret = function_of;
    return HEARTH_OK;
}

/* Fills the mask of a dictionary. */
static enum hearth_status fill_function_mask(struct hearth_function_masks *table,
                                             const struct hearth_dict *dict,
                                             struct hearth_function_mask *mask,
                                             struct hearth_arena *scratch, struct hearth_err *err)
{
    struct hearth_arena *arena = table->query->call.arena;
    uint32_t n_nodes = hearth_name_tree_size(dict->tree);
    uint8_t *function_of;
    bool *inside;
    const bool *rows;

    HEARTH_TRY(map_names_to_functions(table, dict->tree, scratch, &function_of, err));
    HEARTH_TRY(
        hearth_stack_filter_nodes(table->stacks, dict->tree, n_nodes, scratch, &inside, err));
    HEARTH_TRY(hearth_row_mask_stacks(&table->rows, dict, dict->n_tree_stacks, NULL, &rows, err));
    uint64_t *of_node = hearth_arena_array(scratch, n_nodes, sizeof of_node[0]);
    mask->total = hearth_arena_array(arena, dict->n_tree_stacks, sizeof mask->total[0]);
    mask->self = hearth_arena_array(arena, dict->n_tree_stacks, sizeof mask->self[0]);
    if (of_node == NULL) {
        return HEARTH_FAIL_ARENA(err, scratch);
    }

    if (mask->total == NULL || mask->self == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    /* Parents precede their children. */
    of_node[0] = 0;
    for (uint32_t i = 1; i < n_nodes; i++) {
        struct hearth_name_node node = hearth_name_tree_node(dict->tree, i);
        uint8_t f = function_of[node.name];
        of_node[i] = of_node[node.parent] | (f < HEARTH_MAX_FUNCTIONS ? UINT64_C(1) << f : 0);
    }

    for (uint32_t s = 0; s < dict->n_tree_stacks; s++) {
        uint32_t leaf = dict->stack_node[s];
        bool passes = (inside == NULL || inside[leaf]) && (rows == NULL || rows[s]);
        mask->total[s] = passes ? of_node[leaf] : 0;
        mask->self[s] = passes && leaf != 0
                            ? function_of[hearth_name_tree_node(dict->tree, leaf).name]
                            : HEARTH_MAX_FUNCTIONS;
    }

    mask->n_stacks = dict->n_tree_stacks;
    return HEARTH_OK;
}

/* Loads the dictionary of a mask and fills it. */
static enum hearth_status load_function_mask(struct hearth_function_masks *table,
                                             struct hearth_function_mask *mask, uint32_t bound,
                                             struct hearth_err *err)
{
    const struct hearth_query *query = table->query;
    const struct hearth_dict *dict;

    HEARTH_TRY(hearth_store_read_dict(
        HEARTH_CALL_SCOPE(&query->call),
        (struct hearth_dict_key){mask->service_id, mask->day, mask->writer_id}, bound, &dict, err));
    struct hearth_arena scratch;
    hearth_arena_init_like(&scratch, query->call.arena);
    enum hearth_status status = fill_function_mask(table, dict, mask, &scratch, err);
    hearth_arena_release(&scratch);
    hearth_store_read_dict_release(query->call.engine->store, dict);

    return status;
}

enum hearth_status hearth_function_masks_of(struct hearth_function_masks *table,
                                            const struct hearth_read_row *row, uint32_t bound,
                                            const struct hearth_function_mask **ret,
                                            struct hearth_err *err)
{
    int32_t parts[3] = {row->service_id, hearth_day_of(row->ts_ns), row->writer_id};

    assert(table->n_functions <= HEARTH_MAX_FUNCTIONS);
    struct hearth_hash128 key = hearth_hash128(parts, sizeof parts, hearth_hash_process_seed());
    bool inserted;
    uint32_t i = hearth_idmap_intern(&table->by_key, key, (uint32_t)table->n, &inserted);
    if (i == HEARTH_IDMAP_NONE ||
        (inserted &&
         !hearth_mem_grow(&table->masks, &table->cap, table->n + 1, sizeof table->masks[0]))) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate the functions of stacks");
    }

    if (inserted) {
        table->masks[table->n++] =
            (struct hearth_function_mask){parts[0], parts[1], parts[2], 0, NULL, NULL};
    }

    if (table->masks[i].n_stacks < bound) {
        HEARTH_TRY(load_function_mask(table, &table->masks[i], bound, err));
    }

    *ret = &table->masks[i];
    return HEARTH_OK;
}
