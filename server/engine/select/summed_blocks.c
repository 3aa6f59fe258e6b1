/*
 * summed_blocks.c -- divides the blocks of a plan, and its closed profiles, into slots, and fills
 * them from the cache or from rows.
 */
#include "select/summed_blocks.h"

#include "hearth/model/columns.h"

#include "select/plan_internal.h"

#include <assert.h>
#include <string.h>

/* The blocks of one size of a service, or its closed profiles of one table. */
struct hearth_block_slot {
    enum hearth_source source;
    int32_t service_id;
    bool is_kept; /* the key says all that its sums depend on */
    bool is_open; /* profiles that may become more: they are not summed here */
    struct hearth_hash128 key;
    const struct hearth_cached_sums *cached; /* NULL: not in the cache */
    struct hearth_sums sums;                 /* of its rows, if it was not in the cache */
};

/* ---- what is summed ---- */

static bool is_block(enum hearth_source source)
{
    return source >= HEARTH_SOURCE_ROLL_10M;
}

/* Late profiles wait in a table of their own until the builder adds them to the others. */
static bool may_be_summed(const struct hearth_summed_blocks *sums, enum hearth_source source)
{
    return is_block(source) || (sums->with_profiles && (source == HEARTH_SOURCE_PROFILE ||
                                                        source == HEARTH_SOURCE_SEGMENT));
}

/*
 * Profiles before built_to are as closed as blocks: whatever changes them raises the generation of
 * their service.
 */
static bool is_leg_closed(const struct hearth_read_leg *leg,
                          const struct hearth_service_state *state)
{
    return state != NULL && leg->to_ns <= state->built_to_ns;
}

/* Whether a plan reads whole profiles, and all of them. */
static bool reads_plain_rows(const struct hearth_selection *selection,
                             const struct hearth_read_plan *plan)
{
    const struct hearth_read_detail *detail = &plan->detail;

    return selection->match == NULL && !detail->identity && !detail->some && !detail->has_end &&
           detail->attrs == HEARTH_ATTRS_NOT_READ && detail->n_profile_nos == 0 &&
           detail->n_attrs_with == 0;
}

/* ---- slots ---- */

static struct hearth_hash128 make_slot_key(enum hearth_source source, int32_t service_id)
{
    const int32_t parts[2] = {service_id, (int32_t)source};
    return hearth_hash128(parts, sizeof parts, hearth_hash_process_seed());
}

/* NULL: the service has nothing of this source in the plan that may be summed. */
static struct hearth_block_slot *find_summed_slot(struct hearth_summed_blocks *sums,
                                                  enum hearth_source source, int32_t service_id)
{
    /* Neighbouring rows and hits mostly have the same slot. */
    if (sums->last < sums->n_slots && sums->slots[sums->last].service_id == service_id &&
        sums->slots[sums->last].source == source) {
        return &sums->slots[sums->last];
    }

    uint32_t i = hearth_idmap_find(&sums->by_service, make_slot_key(source, service_id));
    if (i == HEARTH_IDMAP_NONE) {
        return NULL;
    }

    sums->last = i;
    return &sums->slots[i];
}

/* The end of the hits that have the service of hits[first]. */
static size_t find_service_hits_end(const struct hearth_series_hit *hits, size_t n, size_t first)
{
    size_t end = first;
    while (end < n && hits[end].service_id == hits[first].service_id) {
        end++;
    }

    return end;
}

/* The slot of a service and source, made if it is new. NULL: memory was refused. */
static struct hearth_block_slot *need_slot(struct hearth_summed_blocks *sums,
                                           const struct hearth_read_plan *plan,
                                           enum hearth_source source, int32_t service_id,
                                           struct hearth_arena *arena)
{
    struct hearth_block_slot *slot = find_summed_slot(sums, source, service_id);
    if (slot != NULL) {
        return slot;
    }

    bool inserted;
    if (!hearth_arena_grow(arena, &sums->slots, &sums->cap_slots, sums->n_slots + 1,
                           sizeof sums->slots[0]) ||
        hearth_idmap_intern(&sums->by_service, make_slot_key(source, service_id),
                            (uint32_t)sums->n_slots, &inserted) == HEARTH_IDMAP_NONE) {
        return NULL;
    }

    /* A service without a state has no generation, and its blocks are not kept. */
    const struct hearth_service_state *state = hearth_plan_find_state(plan->state, service_id);
    struct {
        int64_t generation;
        int32_t service_id, source;
    } head = {state == NULL ? 0 : state->generation, service_id, (int32_t)source};
    sums->last = sums->n_slots;
    slot = &sums->slots[sums->n_slots++];
    *slot = (struct hearth_block_slot){
        .source = source,
        .service_id = service_id,
        .is_kept = head.generation != 0,
        .key = hearth_hash128(&head, sizeof head, hearth_hash_process_seed())};
    slot->sums = sums->empty;
    return slot;
}

static void add_to_key(struct hearth_block_slot *slot, struct hearth_hash128 part)
{
    /* A sum, because the order of legs with the same blocks does not matter. */
    slot->key.lo += part.lo;
    slot->key.hi += part.hi;
}

/* Adds a part of a leg, the hits of one service, to the key of its slot. */
static void name_blocks(struct hearth_block_slot *slot, const struct hearth_read_leg *leg,
                        const struct hearth_series_hit *hits, size_t n)
{
    struct hearth_hash128 series =
        hearth_hash128(hits, n * sizeof hits[0], hearth_hash_process_seed());
    const uint64_t part[4] = {(uint64_t)leg->from_ns, (uint64_t)leg->to_ns, series.lo, series.hi};
    add_to_key(slot, hearth_hash128(part, sizeof part, hearth_hash_process_seed()));
}

/*
 * Blocks of a whole service are valid for the selected series only (planned.c): adds these to the
 * keys of the service's slots.
 */
static void name_selected_series(struct hearth_summed_blocks *sums,
                                 const struct hearth_selection *selection)
{
    for (size_t i = 0, end; i < selection->n_hits; i = end) {
        end = find_service_hits_end(selection->hits, selection->n_hits, i);
        struct hearth_hash128 series =
            hearth_hash128(&selection->hits[i], (end - i) * sizeof selection->hits[0],
                           hearth_hash_process_seed() + 1);
        for (int source = HEARTH_SOURCE_ROLL_10M; source <= HEARTH_SOURCE_ROLL_1D; source++) {
            struct hearth_block_slot *slot =
                find_summed_slot(sums, (enum hearth_source)source, selection->hits[i].service_id);
            if (slot != NULL) {
                add_to_key(slot, series);
            }
        }
    }
}

/*
 * Makes the slots of the plan, with their keys. If one leg of a service and table is open, all are:
 * a row does not say which leg it is of.
 */
static enum hearth_status make_slots(struct hearth_summed_blocks *sums,
                                     const struct hearth_read_plan *plan,
                                     struct hearth_arena *arena, struct hearth_err *err)
{
    for (size_t i = 0; i < plan->n_legs; i++) {
        const struct hearth_read_leg *leg = &plan->legs[i];
        if (!may_be_summed(sums, leg->source)) {
            continue;
        }
        for (size_t h = 0, end; h < leg->n_hits; h = end) {
            end = find_service_hits_end(leg->hits, leg->n_hits, h);
            struct hearth_block_slot *slot =
                need_slot(sums, plan, leg->source, leg->hits[h].service_id, arena);
            if (slot == NULL) {
                return HEARTH_FAIL_ARENA(err, arena);
            }
            name_blocks(slot, leg, &leg->hits[h], end - h);
            slot->is_open =
                slot->is_open ||
                (!is_block(leg->source) &&
                 !is_leg_closed(leg, hearth_plan_find_state(plan->state, slot->service_id)));
        }
    }

    return HEARTH_OK;
}

/* Removes the hits of services whose sums were found in the cache. */
static enum hearth_status shorten_leg(struct hearth_summed_blocks *sums,
                                      struct hearth_read_leg *leg, struct hearth_arena *arena,
                                      struct hearth_err *err)
{
    struct hearth_series_hit *kept = hearth_arena_array(arena, leg->n_hits, sizeof kept[0]);
    size_t n = 0;
    if (kept == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (size_t h = 0, end; h < leg->n_hits; h = end) {
        end = find_service_hits_end(leg->hits, leg->n_hits, h);
        if (find_summed_slot(sums, leg->source, leg->hits[h].service_id)->cached == NULL) {
            memcpy(kept + n, &leg->hits[h], (end - h) * sizeof kept[0]);
            n += end - h;
        }
    }

    leg->hits = kept;
    leg->n_hits = n;
    return HEARTH_OK;
}

enum hearth_status hearth_summed_blocks_plan(struct hearth_summed_blocks *sums,
                                             const struct hearth_query *query,
                                             const struct hearth_selection *selection,
                                             struct hearth_read_plan *plan,
                                             struct hearth_arena *arena, struct hearth_err *err)
{
    assert(sums != NULL && query != NULL && selection != NULL && plan != NULL);

    *sums = (struct hearth_summed_blocks){.query = query,
                                          .cache = query->call.engine->sum_cache,
                                          .with_profiles = reads_plain_rows(selection, plan)};
    hearth_sums_init(&sums->empty, query, NULL);
    HEARTH_TRY(make_slots(sums, plan, arena, err));
    name_selected_series(sums, selection);

    size_t n_found = 0;
    for (size_t i = 0; i < sums->n_slots; i++) {
        struct hearth_block_slot *slot = &sums->slots[i];
        if (slot->is_kept && !slot->is_open) {
            slot->cached = hearth_sum_cache_find(sums->cache, slot->key);
            n_found += slot->cached != NULL;
        }
    }

    if (n_found == 0) {
        return HEARTH_OK;
    }

    size_t n_legs = 0;
    for (size_t i = 0; i < plan->n_legs; i++) {
        struct hearth_read_leg *leg = &plan->legs[i];
        if (may_be_summed(sums, leg->source)) {
            HEARTH_TRY(shorten_leg(sums, leg, arena, err));
        }
        if (leg->n_hits > 0) {
            plan->legs[n_legs++] = *leg;
        }
    }

    plan->n_legs = n_legs;
    return HEARTH_OK;
}

/* ---- rows ---- */

enum hearth_status hearth_summed_blocks_row(struct hearth_summed_blocks *sums,
                                            const struct hearth_read_row *row, bool *ret_added,
                                            struct hearth_err *err)
{
    enum hearth_source source = (enum hearth_source)row->source;
    struct hearth_block_slot *slot = sums->n_slots == 0 || !may_be_summed(sums, source)
                                         ? NULL
                                         : find_summed_slot(sums, source, row->service_id);
    size_t dict;

    *ret_added = slot != NULL && !slot->is_open;
    sums->n_others += *ret_added ? 0 : 1;
    return !*ret_added ? HEARTH_OK : hearth_sums_add_row(&slot->sums, row, &dict, err);
}

/* Writes the sums of a dictionary as a row, in arena. */
static enum hearth_status write_sums_row(const struct hearth_dict_sums *dict,
                                         const struct hearth_block_slot *slot,
                                         struct hearth_arena *arena, struct hearth_read_row *ret,
                                         struct hearth_err *err)
{
    uint32_t *ids = hearth_arena_array(arena, dict->bound, sizeof ids[0]);
    int64_t *values = hearth_arena_array(arena, dict->bound, sizeof values[0]);
    uint32_t n = 0;
    if (ids == NULL || values == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (uint32_t id = 0; id < dict->bound; id++) {
        ids[n] = id;
        values[n] = dict->acc[id];
        n += dict->acc[id] != 0;
    }

    struct hearth_columns columns;
    HEARTH_TRY(hearth_columns_encode_bytes(ids, values, n, 1, arena, &columns, err));
    *ret = (struct hearth_read_row){.service_id = dict->service_id,
                                    .writer_id = dict->writer_id,
                                    .ts_ns = dict->day * HEARTH_NS_PER_DAY,
                                    .is_column0 = true,
                                    .ids = columns.ids,
                                    .val = columns.vals[0],
                                    .source = (int)slot->source};
    return HEARTH_OK;
}

/* Gives the rows of a slot to the reader. */
static enum hearth_status read_rows(const struct hearth_reader *reader,
                                    const struct hearth_cached_sums *sums, struct hearth_err *err)
{
    for (size_t i = 0; i < sums->n_rows; i++) {
        HEARTH_TRY(reader->row(reader->context, &sums->rows[i], err));
    }

    return HEARTH_OK;
}

/* The same with the sums of a slot that was not in the cache, and keeps them. */
static enum hearth_status finish_slot(struct hearth_summed_blocks *sums,
                                      struct hearth_block_slot *slot, struct hearth_arena *arena,
                                      const struct hearth_reader *reader, struct hearth_err *err)
{
    struct hearth_cached_sums made = {.n_rows = slot->sums.n_dicts};
    struct hearth_read_row *rows = hearth_arena_array(arena, made.n_rows, sizeof rows[0]);
    if (rows == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (size_t i = 0; i < made.n_rows; i++) {
        HEARTH_TRY(write_sums_row(&slot->sums.dicts[i], slot, arena, &rows[i], err));
    }

    made.rows = rows;
    hearth_sums_release(&slot->sums);
    if (slot->is_kept) {
        hearth_sum_cache_add(sums->cache, slot->key, rows, made.n_rows);
    }

    return read_rows(reader, &made, err);
}

/* Whether all sums were in the cache, and nothing else was read; then makes their key. */
static bool make_whole_key(const struct hearth_summed_blocks *sums, struct hearth_hash128 *ret)
{
    *ret = (struct hearth_hash128){0};
    for (size_t i = 0; i < sums->n_slots; i++) {
        if (sums->slots[i].is_open || sums->slots[i].cached == NULL) {
            return false;
        }
        ret->lo += sums->slots[i].key.lo;
        ret->hi += sums->slots[i].key.hi;
    }

    return sums->n_others == 0;
}

enum hearth_status hearth_summed_blocks_finish(struct hearth_summed_blocks *sums,
                                               const struct hearth_reader *reader,
                                               struct hearth_err *err)
{
    assert(sums != NULL && reader != NULL);

    if (sums->n_slots == 0) {
        return HEARTH_OK;
    }

    struct hearth_hash128 key;
    if (reader->known != NULL && make_whole_key(sums, &key) &&
        reader->known(reader->context, key)) {
        return HEARTH_OK;
    }

    enum hearth_status status = HEARTH_OK;
    struct hearth_arena arena;
    hearth_arena_init_like(&arena, sums->query->call.arena);

    for (size_t i = 0; i < sums->n_slots && status == HEARTH_OK; i++) {
        struct hearth_block_slot *slot = &sums->slots[i];
        if (slot->is_open) {
            continue;
        }
        hearth_arena_reset(&arena);
        status = slot->cached != NULL ? read_rows(reader, slot->cached, err)
                                      : finish_slot(sums, slot, &arena, reader, err);
    }

    hearth_arena_release(&arena);
    return status;
}

void hearth_summed_blocks_release(struct hearth_summed_blocks *sums)
{
    for (size_t i = 0; i < sums->n_slots; i++) {
        if (sums->slots[i].cached != NULL) {
            hearth_sum_cache_release(sums->cache, sums->slots[i].cached);
        }
        hearth_sums_release(&sums->slots[i].sums);
    }

    hearth_idmap_release(&sums->by_service);
    *sums = (struct hearth_summed_blocks){0};
}
