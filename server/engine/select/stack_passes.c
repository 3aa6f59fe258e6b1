/* stack_passes.c -- a filter's verdict on the leaf of each stack, remembered by stack id. */
#include "select/stack_passes.h"

#include "hearth/base/arena.h"
#include "hearth/base/budget.h"

#include <assert.h>

enum hearth_status hearth_stack_passes_init(struct hearth_stack_passes *table,
                                            const struct hearth_query *query,
                                            const struct hearth_stack_filter *filter,
                                            struct hearth_err *err)
{
    assert(query != NULL && filter != NULL);

    *table = (struct hearth_stack_passes){.query = query};
    hearth_stack_mask_init(&table->mask, filter, query->call.arena);
    hearth_idmap_init(&table->by_key);
    return hearth_row_mask_init(&table->rows, filter, query->call.arena, err);
}

void hearth_stack_passes_release(struct hearth_stack_passes *table)
{
    hearth_stack_mask_release(&table->mask);
    hearth_row_mask_release(&table->rows);
    hearth_idmap_release(&table->by_key);
    hearth_budget_give(table->query->call.arena->budget, table->budgeted_bytes);
}

static struct hearth_hash128 make_dict_key(int32_t service_id, int32_t day, int32_t writer_id)
{
    int32_t parts[3] = {service_id, day, writer_id};
    return hearth_hash128(parts, sizeof parts, hearth_hash_process_seed());
}

const struct hearth_stack_pass *hearth_stack_passes_find(struct hearth_stack_passes *table,
                                                         int32_t service_id, int32_t day,
                                                         int32_t writer_id)
{
    if (table->last < table->n) {
        const struct hearth_stack_pass *last = &table->v[table->last];
        if (last->service_id == service_id && last->day == day && last->writer_id == writer_id) {
            return last;
        }
    }

    uint32_t i = hearth_idmap_find(&table->by_key, make_dict_key(service_id, day, writer_id));
    table->last = i == HEARTH_IDMAP_NONE ? table->last : i;
    return i == HEARTH_IDMAP_NONE ? NULL : &table->v[i];
}

/* Finds the verdict of each stack of a dictionary. */
static enum hearth_status fill_stack_pass(struct hearth_stack_passes *table,
                                          const struct hearth_dict *dict,
                                          struct hearth_stack_pass *pass, struct hearth_err *err)
{
    const bool *inside, *rows;

    HEARTH_TRY(hearth_stack_mask_of(&table->mask, dict->tree, &inside, err));
    HEARTH_TRY(hearth_row_mask_stacks(&table->rows, dict, dict->n_tree_stacks, NULL, &rows, err));
    pass->passes =
        hearth_arena_array(table->query->call.arena, dict->n_tree_stacks, sizeof pass->passes[0]);
    if (pass->passes == NULL) {
        return HEARTH_FAIL_ARENA(err, table->query->call.arena);
    }

    for (uint32_t s = 0; s < dict->n_tree_stacks; s++) {
        pass->passes[s] =
            (inside == NULL || inside[dict->stack_node[s]]) && (rows == NULL || rows[s]);
    }

    pass->n_stacks = dict->n_tree_stacks;
    return HEARTH_OK;
}

enum hearth_status hearth_stack_passes_load(struct hearth_stack_passes *table,
                                            struct hearth_dict_name name, uint32_t bound,
                                            const struct hearth_stack_pass **ret,
                                            struct hearth_err *err)
{
    struct hearth_arena *arena = table->query->call.arena;
    struct hearth_store *store = table->query->call.engine->store;
    bool inserted;
    uint32_t i = hearth_idmap_intern(&table->by_key,
                                     make_dict_key(name.service_id, name.day, name.writer_id),
                                     (uint32_t)table->n, &inserted);
    if (i == HEARTH_IDMAP_NONE ||
        !hearth_idmap_account(&table->by_key, arena, &table->budgeted_bytes) ||
        !hearth_arena_grow(arena, &table->v, &table->cap, table->n + 1, sizeof table->v[0])) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    if (inserted) {
        table->v[table->n++] =
            (struct hearth_stack_pass){name.service_id, name.day, name.writer_id, 0, NULL};
    }

    struct hearth_stack_pass *pass = &table->v[i];
    if (pass->n_stacks < bound) {
        const struct hearth_dict *dict;
        HEARTH_TRY(hearth_store_read_dict(
            HEARTH_CALL_SCOPE(&table->query->call),
            (struct hearth_dict_key){name.service_id, name.day, name.writer_id}, bound, &dict,
            err));
        enum hearth_status status = fill_stack_pass(table, dict, pass, err);
        hearth_store_read_dict_release(store, dict);
        HEARTH_TRY(status);
    }

    *ret = pass;
    return HEARTH_OK;
}
