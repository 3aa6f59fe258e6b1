/*
 * fuzz_stack_trees.c -- any bytes as a trie and as a tree: all indices of what is read hold, and it can be
 * cut and scaled.
 */
#include "hearth/base/mem.h"
#include "hearth/format/ingest_types.h"
#include "hearth/format/stack_trees.h"

#include "short_memory.h"

static void check(struct hearth_profile *p, struct hearth_arena *arena)
{
    const struct hearth_pprof_limits limits = {.max_depth = 3, .max_string_bytes = 5};
    struct hearth_pprof_notes notes = {0};
    struct hearth_str service;
    HEARTH_ASSERT(p->n_types == 1 && p->n_samples > 0);
    HEARTH_ASSERT(hearth_ingest_cut(&limits, arena, p, &notes, NULL) == HEARTH_OK);
    HEARTH_ASSERT(p->stack_first[p->n_samples] == p->n_stack_locs);
    for (uint32_t i = 0; i < p->n_samples; i++) {
        uint32_t depth = p->stack_first[i + 1] - p->stack_first[i];
        HEARTH_ASSERT(depth > 0 && depth <= limits.max_depth);
        HEARTH_ASSERT(p->values[i] > 0);
    }
    for (uint32_t i = 0; i < p->n_stack_locs; i++) {
        HEARTH_ASSERT(p->stack_locs[i] < p->n_locations);
    }
    for (uint32_t i = 0; i < p->n_strings; i++) {
        HEARTH_ASSERT(hearth_str_utf8_valid(p->strings[i]));
    }
    const struct hearth_ingest_values values = {.sample_rate = 100};
    struct hearth_ingest_type type;
    HEARTH_ASSERT(hearth_ingest_type_find(HEARTH_STR("a.cpu"), &values, &type, &service, NULL) ==
                  HEARTH_OK);
    (void)!hearth_ingest_scale(hearth_ingest_factor(&type, 100), p, NULL);
}

static void run_input(const uint8_t *data, size_t size)
{
    struct hearth_str bytes = {(const char *)data, size};
    for (int is_trie = 0; is_trie < 2; is_trie++) {
        struct hearth_arena arena;
        struct hearth_profile profile;
        struct hearth_err err = HEARTH_ERR_INIT;
        begin_memory(&arena);
        enum hearth_status status = (is_trie ? hearth_trie_decode : hearth_tree_decode)(
            bytes, HEARTH_STR("cpu"), HEARTH_STR("nanoseconds"), &arena, &profile, &err);
        if (status == HEARTH_OK) {
            check(&profile, &arena);
        } else {
            HEARTH_ASSERT(err.msg[0] != '\0');
        }
        end_memory(&arena);
    }
}
