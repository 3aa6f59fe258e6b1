/* dict_fixture.h -- a small profile, a writer that resolves it, and names in the reader's tree. */
#ifndef HEARTH_TESTS_DICT_FIXTURE_H
#define HEARTH_TESTS_DICT_FIXTURE_H

#include "hearth/model/dict.h"

#include "synth_profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static inline struct hearth_stack_keys keys_of(const struct hearth_profile *profile,
                                               struct hearth_arena *arena)
{
    struct hearth_stack_keys keys;
    struct hearth_err err = HEARTH_ERR_INIT;
    assert_int_equal(hearth_stack_keys_make(profile, arena, &keys, &err), HEARTH_OK);
    return keys;
}

static inline uint32_t *resolve(struct hearth_dict_writer *writer,
                                const struct hearth_profile *profile, struct hearth_arena *arena)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_stack_keys keys = keys_of(profile, arena);
    uint32_t *ids = synth_array(arena, profile->n_samples, sizeof *ids);
    enum hearth_status status = hearth_dict_writer_resolve(writer, profile, &keys, ids, &err);
    if (status != HEARTH_OK) {
        fail_msg("%s", err.msg);
    }
    return ids;
}

static inline uint32_t parent_of(const struct hearth_dict *dict, uint32_t node)
{
    return hearth_name_tree_node(dict->tree, node).parent;
}

static inline struct hearth_str name_of(const struct hearth_dict *dict, uint32_t node)
{
    return hearth_name_tree_name(dict->tree, hearth_name_tree_node(dict->tree, node).name);
}

static inline void build_tree(struct hearth_dict *dict)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    assert_int_equal(hearth_dict_build_tree(dict, &err), HEARTH_OK);
    assert_int_equal(dict->n_tree_stacks, dict->n_stacks);
}

/* A profile of a few hand-made locations; tests change it before they resolve it. */
struct small {
    struct hearth_str strings[12];
    struct hearth_mapping mappings[3];
    struct hearth_function functions[4];
    struct hearth_line lines[6];
    struct hearth_location locations[8];
    uint32_t stack_first[8], stack_locs[16];
    struct hearth_profile profile;
};

enum {
    EMPTY,
    LIB,
    MAIN,
    WORK,
    INLINED,
    FILE_C,
    BUILD,
    OTHER,
    N_SMALL_STRINGS
};

static inline void small_init(struct small *s)
{
    *s = (struct small){
        .strings = {HEARTH_STR(""), HEARTH_STR("/usr/lib/libc.so.6"), HEARTH_STR("main"),
                    HEARTH_STR("work"), HEARTH_STR("inlined"), HEARTH_STR("a.c"),
                    HEARTH_STR("b01d"), HEARTH_STR("other.c")},
        .mappings =
            {{.start = 4096, .limit = 8192, .offset = 64, .filename = LIB, .build_id = BUILD},
             {.start = 1, .limit = 2, .filename = LIB, .has_functions = true},
             {.start = 7, .limit = 9}},
        .functions = {{MAIN, MAIN, FILE_C, 3},
                      {WORK, EMPTY, FILE_C, -5},
                      {INLINED, WORK, FILE_C, 0},
                      {MAIN, MAIN, OTHER, 3}},
        .lines = {{0, 12}, {2, 7}, {1, -9}, {3, 12}, {HEARTH_NO_INDEX, 0}, {0, 13}},
        .locations =
            {{.mapping = 1, .first_line = 0, .n_lines = 1, .address = 77},
             {.mapping = 1, .first_line = 1, .n_lines = 2, .address = 78, .is_folded = true},
             {.mapping = 0, .address = 0x4f0},
             {.mapping = HEARTH_NO_INDEX, .address = UINT64_MAX},
             {.mapping = 2, .address = 0},
             {.mapping = 1, .first_line = 3, .n_lines = 1},
             {.mapping = 1, .first_line = 4, .n_lines = 1},
             {.mapping = 1, .first_line = 5, .n_lines = 1}},
        .stack_first = {0, 3, 6, 7, 7, 9},
        .stack_locs = {2, 1, 0, 3, 4, 5, 6, 2, 7},
    };
    s->profile = (struct hearth_profile){.strings = s->strings,
                                         .mappings = s->mappings,
                                         .functions = s->functions,
                                         .lines = s->lines,
                                         .locations = s->locations,
                                         .stack_first = s->stack_first,
                                         .stack_locs = s->stack_locs,
                                         .n_strings = N_SMALL_STRINGS,
                                         .n_mappings = 3,
                                         .n_functions = 4,
                                         .n_lines = 6,
                                         .n_locations = 8,
                                         .n_samples = 5,
                                         .n_stack_locs = 9};
}

static inline void assert_names(const struct hearth_dict *dict, uint32_t stack,
                                const char *leaf_first)
{
    char got[256] = "";
    size_t n = 0;
    for (uint32_t node = dict->stack_node[stack]; node != 0; node = parent_of(dict, node)) {
        struct hearth_str name = name_of(dict, node);
        n += (size_t)snprintf(got + n, sizeof got - n, "%s" HEARTH_STR_FMT, n > 0 ? ";" : "",
                              HEARTH_STR_ARG(name));
    }
    assert_string_equal(got, leaf_first);
}

#endif
