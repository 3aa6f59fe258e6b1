/*
 * fuzz_pprof_changes.c -- what is done to a decoded profile before it is stored: repaired names of spies, readable
 * names, scaled values, limits, differences of totals, and entries of a dictionary whose chunks are read again.
 *
 * Input: the first byte chooses the changes, the rest is a pprof.
 */
#include "hearth/format/demangle_names.h"
#include "hearth/format/ingest_types.h"
#include "hearth/format/pprof.h"
#include "hearth/format/profile_totals.h"
#include "hearth/model/dict.h"

#include "short_memory.h"

static void check_indices(const struct hearth_profile *p)
{
    for (uint32_t i = 0; i < p->n_functions; i++) {
        HEARTH_ASSERT(p->functions[i].name < p->n_strings &&
                      p->functions[i].system_name < p->n_strings &&
                      p->functions[i].filename < p->n_strings);
    }
    for (uint32_t i = 0; i < p->n_types; i++) {
        HEARTH_ASSERT(p->types[i].type < p->n_strings && p->types[i].unit < p->n_strings);
    }
    for (uint32_t i = 0; i < p->n_stack_locs; i++) {
        HEARTH_ASSERT(p->stack_locs[i] < p->n_locations || p->stack_locs[i] == HEARTH_NO_INDEX);
    }
    HEARTH_ASSERT(p->stack_first[p->n_samples] == p->n_stack_locs);
}

/* Changes of the intakes; false: one was refused. */
static bool change(unsigned which, struct hearth_arena *arena, struct hearth_profile *p)
{
    static const char *const spies[] = {"gospy", "pyspy", "rbspy", "dotnetspy"};
    const struct hearth_pprof_limits limits = {
        .max_depth = 3, .max_string_bytes = 9, .max_types = 4};
    const struct hearth_ingest_values values = {HEARTH_STR("samples"), HEARTH_STR("sum"),
                                                which & 8 ? 100 : 0};
    struct hearth_pprof_notes notes = {0};
    struct hearth_ingest_type type;
    struct hearth_str service;
    struct hearth_err err = HEARTH_ERR_INIT;

    enum hearth_status status =
        hearth_ingest_fix_spy(hearth_str_c(spies[which & 3]), arena, p, &err);
    if (status == HEARTH_OK) {
        check_indices(p);
        status = hearth_profile_demangle(
            p, which & 4 ? HEARTH_DEMANGLE_FULL : HEARTH_DEMANGLE_SIMPLE, arena, &err);
    }
    if (status == HEARTH_OK && p->n_types == 1 &&
        hearth_ingest_type_find(HEARTH_STR("app.cpu"), &values, &type, &service, &err) ==
            HEARTH_OK) {
        check_indices(p);
        status = hearth_ingest_scale(hearth_ingest_factor(&type, values.sample_rate), p, &err);
    }
    if (status == HEARTH_OK && (which & 16) != 0) {
        status = hearth_ingest_cut(&limits, arena, p, &notes, &err);
    }
    HEARTH_ASSERT(status == HEARTH_OK || err.msg[0] != '\0');

    return status == HEARTH_OK;
}

/* A profile without its own totals has none left, or keeps its values. */
static void check_difference(struct hearth_profile *p)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_profile_totals *totals =
        hearth_profile_has_totals(p) ? hearth_profile_totals_new(p) : NULL;
    bool restarted = false;

    if (totals != NULL) {
        int64_t first = p->n_samples > 0 ? p->values[0] : 0;
        if (hearth_profile_subtract(p, totals, &restarted, &err) != HEARTH_OK) {
            HEARTH_ASSERT(p->n_samples == 0 || p->values[0] == first);
        }
    }
    hearth_profile_totals_free(totals);
}

/* The stacks of the profile are those that a reader of the chunk has. */
static void check_chunk(const struct hearth_profile *p, const uint32_t *ids,
                        struct hearth_str chunk)
{
    struct hearth_dict *dict = hearth_dict_new();
    struct hearth_err err = HEARTH_ERR_INIT;

    HEARTH_ASSERT(dict != NULL);
    HEARTH_ASSERT(hearth_dict_apply(dict, chunk, &err) == HEARTH_OK);
    for (uint32_t s = 0; s < p->n_samples; s++) {
        if (ids[s] == HEARTH_NO_INDEX) {
            continue;
        }
        HEARTH_ASSERT(ids[s] < dict->n_stacks);
        uint32_t n = p->stack_first[s + 1] - p->stack_first[s];
        uint32_t at = dict->stack_first[ids[s]];
        HEARTH_ASSERT(dict->stack_first[ids[s] + 1] - at == n);
        for (uint32_t i = 0; i < n; i++) {
            const struct hearth_location *own = &p->locations[p->stack_locs[p->stack_first[s] + i]];
            HEARTH_ASSERT(dict->locations[dict->stack_locs[at + i]].n_lines == own->n_lines);
        }
    }
    hearth_dict_free(dict);
}

static void write_dictionary(const struct hearth_profile *p, struct hearth_arena *arena)
{
    struct hearth_dict_writer *writer = hearth_dict_writer_new();
    struct hearth_dict_mark mark;
    struct hearth_stack_keys keys;
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_buf chunk;
    uint32_t *ids = hearth_arena_array(arena, p->n_samples, sizeof ids[0]);

    hearth_buf_init(&chunk, 0);
    HEARTH_ASSERT(writer != NULL);
    if (ids != NULL && hearth_stack_keys_make(p, arena, &keys, &err) == HEARTH_OK &&
        hearth_dict_writer_resolve(writer, p, &keys, ids, &err) == HEARTH_OK &&
        hearth_dict_writer_pending(writer)) {
        hearth_dict_writer_cut(writer, &chunk, &mark);
        check_chunk(p, ids, hearth_buf_view(&chunk));
        hearth_dict_writer_commit(writer, mark);
        HEARTH_ASSERT(!hearth_dict_writer_pending(writer));
    }
    hearth_buf_release(&chunk);
    hearth_dict_writer_free(writer);
}

static void run_input(const uint8_t *data, size_t size)
{
    const struct hearth_pprof_limits limits = {.max_samples = 100000, .max_types = 64};
    struct hearth_str bytes = {(const char *)data + 1, size - 1};
    struct hearth_pprof_notes notes;
    struct hearth_profile profile;
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_arena arena;

    if (size == 0) {
        return;
    }
    begin_memory(&arena);
    if (hearth_pprof_decode(bytes, &limits, &arena, &profile, &notes, &err) == HEARTH_OK) {
        check_difference(&profile);
        if (change(data[0], &arena, &profile)) {
            check_indices(&profile);
            write_dictionary(&profile, &arena);
        }
    }
    end_memory(&arena);
}
