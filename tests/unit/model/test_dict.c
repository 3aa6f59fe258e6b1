/* test_dict.c -- dictionaries: a reader of the chunks has every stack that the writer resolved. */
#include "hearth/base/mem.h"
#include "hearth/base/varint.h"
#include "hearth/model/dict.h"

#include "dict_fixture.h"
#include "profile/dict_chunk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* Cut, apply to the reader, commit. */
static void ship(struct hearth_dict_writer *writer, struct hearth_dict *dict)
{
    struct hearth_buf chunk;
    struct hearth_dict_mark upto;
    struct hearth_err err = HEARTH_ERR_INIT;
    hearth_buf_init(&chunk, 0);
    hearth_dict_writer_cut(writer, &chunk, &upto);
    assert_false(hearth_buf_failed(&chunk));
    enum hearth_status status = hearth_dict_apply(dict, hearth_buf_view(&chunk), &err);
    if (status != HEARTH_OK) {
        fail_msg("%s", err.msg);
    }
    hearth_dict_writer_commit(writer, upto);
    hearth_buf_release(&chunk);
}

static void assert_str(struct hearth_str got, struct hearth_str want)
{
    if (!hearth_str_eq(got, want)) {
        fail_msg("\"" HEARTH_STR_FMT "\" instead of \"" HEARTH_STR_FMT "\"", HEARTH_STR_ARG(got),
                 HEARTH_STR_ARG(want));
    }
}

static void assert_same_mapping(const struct hearth_dict *dict, uint32_t id,
                                const struct hearth_profile *p, uint32_t index, bool with_range)
{
    if (index == HEARTH_NO_INDEX) {
        assert_int_equal(id, HEARTH_NO_INDEX);
        return;
    }
    const struct hearth_mapping *got = &dict->mappings[id], *want = &p->mappings[index];
    assert_str(dict->strings[got->filename], p->strings[want->filename]);
    assert_str(dict->strings[got->build_id], p->strings[want->build_id]);
    assert_int_equal(got->has_functions, want->has_functions);
    assert_int_equal(got->has_filenames, want->has_filenames);
    assert_int_equal(got->has_line_numbers, want->has_line_numbers);
    assert_int_equal(got->has_inline_frames, want->has_inline_frames);
    assert_true(got->start == (with_range ? want->start : 0));
    assert_true(got->limit == (with_range ? want->limit : 0));
    assert_true(got->offset == (with_range ? want->offset : 0));
}

static void assert_same_line(const struct hearth_dict *dict, const struct hearth_line *got,
                             const struct hearth_profile *p, const struct hearth_line *want)
{
    assert_true(got->line == want->line);
    if (want->function == HEARTH_NO_INDEX) {
        assert_int_equal(got->function, HEARTH_NO_INDEX);
        return;
    }
    const struct hearth_function *f = &dict->functions[got->function];
    const struct hearth_function *g = &p->functions[want->function];
    assert_str(dict->strings[f->name], p->strings[g->name]);
    assert_str(dict->strings[f->system_name], p->strings[g->system_name]);
    assert_str(dict->strings[f->filename], p->strings[g->filename]);
    assert_true(f->start_line == g->start_line);
}

/* Stack `id` of the dictionary equals that of sample s, down to every line. */
static void assert_same_stack(const struct hearth_dict *dict, uint32_t id,
                              const struct hearth_profile *p, uint32_t s)
{
    assert_true(id < dict->n_stacks);
    uint32_t depth = p->stack_first[s + 1] - p->stack_first[s];
    assert_int_equal(dict->stack_first[id + 1] - dict->stack_first[id], depth);
    for (uint32_t d = 0; d < depth; d++) {
        const struct hearth_location *got =
            &dict->locations[dict->stack_locs[dict->stack_first[id] + d]];
        const struct hearth_location *want = &p->locations[p->stack_locs[p->stack_first[s] + d]];
        assert_int_equal(got->n_lines, want->n_lines);
        assert_int_equal(got->is_folded, want->is_folded);
        assert_true(got->address == (want->n_lines == 0 ? want->address : 0));
        assert_same_mapping(dict, got->mapping, p, want->mapping, want->n_lines == 0);
        for (uint32_t i = 0; i < want->n_lines; i++) {
            assert_same_line(dict, &dict->lines[got->first_line + i], p,
                             &p->lines[want->first_line + i]);
        }
    }
}

static struct hearth_str frame_name(const struct hearth_profile *p,
                                    const struct hearth_location *location, uint32_t line)
{
    uint32_t function = p->lines[location->first_line + line].function;
    return function == HEARTH_NO_INDEX ? HEARTH_STR("") : p->strings[p->functions[function].name];
}

/* The path from the leaf node up to the root names the frames of sample s, leaf first. */
static void assert_same_path(const struct hearth_dict *dict, uint32_t id,
                             const struct hearth_profile *p, uint32_t s)
{
    uint32_t node = dict->stack_node[id];
    for (uint32_t i = p->stack_first[s]; i < p->stack_first[s + 1]; i++) {
        const struct hearth_location *location = &p->locations[p->stack_locs[i]];
        for (uint32_t line = 0; line < location->n_lines; line++) {
            assert_str(name_of(dict, node), frame_name(p, location, line));
            assert_true(parent_of(dict, node) < node);
            node = parent_of(dict, node);
        }
    }
    assert_int_equal(node, 0);
}

static void a_reader_learns_every_stack_that_a_writer_resolved(void **state)
{
    (void)state;
    struct hearth_arena fixed;
    hearth_arena_init(&fixed, 0);
    struct synth_world world;
    synth_world_init(&world, 1, 700, 1500, 3000, 24, &fixed);
    struct hearth_dict_writer *writer = hearth_dict_writer_new();
    struct hearth_dict *dict = hearth_dict_new();
    uint32_t *id_of = synth_array(&fixed, world.n_stacks, sizeof *id_of); /* plus one */
    for (int round = 0; round < 12; round++) {
        struct hearth_arena arena;
        hearth_arena_init(&arena, 0);
        uint32_t drawn[300];
        struct hearth_profile p = synth_profile(&world, 300, 2, &arena, drawn);
        uint32_t *ids = resolve(writer, &p, &arena);
        if (round % 3 != 1) { /* chunks of one and of two profiles */
            ship(writer, dict);
            build_tree(dict);
        }
        for (uint32_t s = 0; s < p.n_samples; s++) {
            /* Different stacks of the world may be equal by chance, so only one direction is
             * certain. */
            assert_true(id_of[drawn[s]] == 0 || id_of[drawn[s]] == ids[s] + 1);
            id_of[drawn[s]] = ids[s] + 1;
            if (round % 3 != 1) {
                assert_same_stack(dict, ids[s], &p, s);
                assert_same_path(dict, ids[s], &p, s);
            }
        }
        hearth_arena_release(&arena);
    }
    assert_int_equal(dict->n_stacks, hearth_dict_writer_stacks(writer));
    assert_false(hearth_dict_writer_pending(writer));
    assert_true(dict->n_functions <= world.n_functions && dict->n_locations <= world.n_locations);
    assert_int_equal(dict->n_mappings, 1);
    assert_true(hearth_dict_bytes(dict) > 10000 && hearth_dict_writer_bytes(writer) > 10000);
    hearth_dict_writer_free(writer);
    hearth_dict_free(dict);
    hearth_arena_release(&fixed);
}

/* Two nodes never have the same parent and name; there are as many nodes as distinct paths. */
static void the_name_tree_has_one_node_for_each_path(void **state)
{
    (void)state;
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct synth_world world;
    synth_world_init(&world, 3, 40, 120, 800, 10, &arena);
    struct hearth_dict_writer *writer = hearth_dict_writer_new();
    struct hearth_dict *dict = hearth_dict_new();
    struct hearth_profile p = synth_profile(&world, 700, 1, &arena, NULL);
    (void)resolve(writer, &p, &arena);
    ship(writer, dict);
    build_tree(dict);
    uint32_t n_nodes = hearth_name_tree_size(dict->tree);
    assert_true(n_nodes > 200);
    bool *used = synth_array(&arena, n_nodes, sizeof *used);
    for (uint32_t a = 1; a < n_nodes; a++) {
        for (uint32_t b = a + 1; b < n_nodes; b++) {
            assert_false(parent_of(dict, a) == parent_of(dict, b) &&
                         hearth_str_eq(name_of(dict, a), name_of(dict, b)));
        }
    }
    for (uint32_t s = 0; s < dict->n_stacks; s++) {
        for (uint32_t node = dict->stack_node[s]; node != 0; node = parent_of(dict, node)) {
            used[node] = true;
        }
    }
    for (uint32_t node = 1; node < n_nodes; node++) {
        assert_true(used[node]);
    }
    hearth_dict_writer_free(writer);
    hearth_dict_free(dict);
    hearth_arena_release(&arena);
}

static void two_days_have_one_node_for_each_stack(void **state)
{
    (void)state;
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct synth_world world;
    synth_world_init(&world, 3, 40, 120, 800, 10, &arena);
    struct hearth_name_tree *tree = hearth_name_tree_new();
    struct hearth_dict *dicts[2];
    struct hearth_profile profiles[2];
    uint32_t *ids[2], n_nodes = 0;
    for (unsigned day = 0; day < 2; day++) {
        struct hearth_dict_writer *writer = hearth_dict_writer_new();
        dicts[day] = hearth_dict_new();
        hearth_dict_use_tree(dicts[day], tree);
        profiles[day] = synth_profile(&world, 700, 1 + day, &arena, NULL);
        ids[day] = resolve(writer, &profiles[day], &arena);
        ship(writer, dicts[day]);
        build_tree(dicts[day]);
        hearth_dict_writer_free(writer);
        assert_true(hearth_name_tree_size(tree) > n_nodes); /* each has stacks of its own */
        n_nodes = hearth_name_tree_size(tree);
    }

    /* Whether a stack was found or walked, its path has its names. */
    for (unsigned day = 0; day < 2; day++) {
        for (uint32_t s = 0; s < profiles[day].n_samples; s++) {
            assert_same_path(dicts[day], ids[day][s], &profiles[day], s);
        }
    }
    hearth_dict_free(dicts[0]);
    hearth_dict_free(dicts[1]);
    hearth_name_tree_unref(tree);
    hearth_arena_release(&arena);
}

static void only_a_dictionary_of_mostly_new_stacks_looks_them_up(void **state)
{
    (void)state;
    struct small small;
    small_init(&small);
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_name_tree *tree = hearth_name_tree_new();
    struct hearth_stack_keys keys = keys_of(&small.profile, &arena);

    /* The first and the last stack are noted at a node where they do not end. */
    hearth_name_tree_begin(tree);
    uint32_t noted =
        hearth_name_tree_child(tree, 0, hearth_name_tree_intern(tree, HEARTH_STR("noted")));
    hearth_name_tree_note_stack(tree, keys.stack[0], noted);
    hearth_name_tree_note_stack(tree, keys.stack[4], noted);
    hearth_name_tree_end(tree);

    /* Four stacks at once, then one. */
    struct hearth_dict_writer *writer = hearth_dict_writer_new();
    struct hearth_dict *dict = hearth_dict_new();
    hearth_dict_use_tree(dict, tree);
    for (small.profile.n_samples = 4; small.profile.n_samples < 6; small.profile.n_samples++) {
        (void)resolve(writer, &small.profile, &arena);
        ship(writer, dict);
        build_tree(dict);
    }
    assert_int_equal(dict->stack_node[0], noted);
    assert_names(dict, 1, "0xffffffffffffffff;0x0;main");
    assert_names(dict, 4, "libc.so.6+0x4f0;main");

    /* Stacks that were walked are noted. */
    hearth_name_tree_begin(tree);
    assert_int_equal(hearth_name_tree_find_stack(tree, keys.stack[1]), dict->stack_node[1]);
    hearth_name_tree_end(tree);
    hearth_dict_writer_free(writer);
    hearth_dict_free(dict);
    hearth_name_tree_unref(tree);
    hearth_arena_release(&arena);
}

static void keeps_unsymbolised_inlined_folded_and_empty_stacks(void **state)
{
    (void)state;
    struct small small;
    small_init(&small);
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_dict_writer *writer = hearth_dict_writer_new();
    struct hearth_dict *dict = hearth_dict_new();
    uint32_t *ids = resolve(writer, &small.profile, &arena);
    ship(writer, dict);
    for (uint32_t s = 0; s < 5; s++) {
        assert_int_equal(ids[s], s);
        assert_same_stack(dict, ids[s], &small.profile, s);
    }
    build_tree(dict);
    assert_names(dict, 0, "libc.so.6+0x4f0;inlined;work;main");
    assert_names(dict, 1, "0xffffffffffffffff;0x0;main");
    assert_int_equal(name_of(dict, dict->stack_node[2]).n, 0);
    assert_int_equal(parent_of(dict, dict->stack_node[2]), 0);
    assert_int_equal(dict->stack_node[3], 0);
    /* main of other.c and main at another line are the same frame name: one node. */
    assert_names(dict, 4, "libc.so.6+0x4f0;main");
    assert_int_equal(parent_of(dict, dict->stack_node[4]),
                     parent_of(dict, parent_of(dict, parent_of(dict, dict->stack_node[0]))));
    /* 4 function names, `main` only once, and each name made of an address once. */
    assert_int_equal(hearth_name_tree_node(dict->tree, dict->stack_node[4]).name,
                     hearth_name_tree_node(dict->tree, dict->stack_node[0]).name);
    hearth_dict_writer_free(writer);
    hearth_dict_free(dict);
    hearth_arena_release(&arena);
}

static void names_made_of_addresses_do_not_disturb_the_ids_of_later_chunks(void **state)
{
    (void)state;
    struct small small;
    small_init(&small);
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_dict_writer *writer = hearth_dict_writer_new();
    struct hearth_dict *dict = hearth_dict_new();
    small.profile.n_samples = 2;
    (void)resolve(writer, &small.profile, &arena);
    ship(writer, dict);
    build_tree(dict);
    uint32_t n_strings = dict->n_strings;
    small.strings[WORK] = HEARTH_STR("later");
    small.strings[OTHER] = HEARTH_STR("later.c");
    small.profile.n_samples = 5;
    uint32_t *ids = resolve(writer, &small.profile, &arena);
    ship(writer, dict);
    build_tree(dict);
    assert_int_equal(dict->n_strings, n_strings + 2);
    for (uint32_t s = 0; s < 5; s++) {
        assert_same_stack(dict, ids[s], &small.profile, s);
    }
    assert_names(dict, ids[0], "libc.so.6+0x4f0;inlined;later;main");
    hearth_dict_writer_free(writer);
    hearth_dict_free(dict);
    hearth_arena_release(&arena);
}

/* The first stack's key after one change, compared with the key before. */
static void assert_change(struct small *changed, bool key_differs, const char *what)
{
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct small original;
    small_init(&original);
    struct hearth_stack_keys a = keys_of(&original.profile, &arena);
    struct hearth_stack_keys b = keys_of(&changed->profile, &arena);
    if (hearth_hash128_eq(a.stack[0], b.stack[0]) == key_differs) {
        fail_msg("%s %s the stack's key", what, key_differs ? "does not change" : "changes");
    }
    hearth_arena_release(&arena);
}

#define CHANGE(differs, assignment)                                       \
    do {                                                                  \
        struct small s;                                                   \
        small_init(&s);                                                   \
        s.profile = (struct hearth_profile){.strings = s.strings,         \
                                            .mappings = s.mappings,       \
                                            .functions = s.functions,     \
                                            .lines = s.lines,             \
                                            .locations = s.locations,     \
                                            .stack_first = s.stack_first, \
                                            .stack_locs = s.stack_locs,   \
                                            .n_strings = N_SMALL_STRINGS, \
                                            .n_mappings = 3,              \
                                            .n_functions = 4,             \
                                            .n_locations = 8,             \
                                            .n_samples = 1};              \
        assignment;                                                       \
        assert_change(&s, (differs), #assignment);                        \
    } while (0)

static void a_stack_is_identified_by_its_locations_lines_and_mappings(void **state)
{
    (void)state;
    CHANGE(true, s.strings[MAIN] = HEARTH_STR("Main"));
    CHANGE(true, s.strings[FILE_C] = HEARTH_STR("A.c"));
    CHANGE(true, s.strings[BUILD] = HEARTH_STR("b02d"));
    CHANGE(true, s.functions[0].system_name = WORK);
    CHANGE(true, s.functions[1].start_line = 1);
    CHANGE(true, s.lines[2].line = 9);
    CHANGE(true, s.lines[1].function = 0);
    CHANGE(true, {
        struct hearth_line line = s.lines[1];
        s.lines[1] = s.lines[2];
        s.lines[2] = line;
    });
    CHANGE(true, s.locations[1].n_lines = 1);
    CHANGE(true, s.locations[1].is_folded = false);
    CHANGE(true, s.locations[0].mapping = HEARTH_NO_INDEX);
    CHANGE(true, s.locations[2].address++);
    CHANGE(true, s.mappings[0].start++);
    CHANGE(true, s.mappings[0].limit++);
    CHANGE(true, s.mappings[0].offset++);
    CHANGE(true, s.mappings[0].has_functions = true);
    CHANGE(true, s.mappings[1].has_inline_frames = true);
    CHANGE(true, s.stack_locs[0] = 3);
    CHANGE(true, s.stack_first[1] = 2);
    CHANGE(true, {
        s.stack_locs[0] = 1;
        s.stack_locs[1] = 2;
    });
    /* Addresses and ranges of symbolised code and other stacks do not affect the key. */
    CHANGE(false, s.locations[1].address = 1);
    CHANGE(false, s.mappings[1].start = 99);
    CHANGE(false, s.mappings[1].limit = 99);
    CHANGE(false, s.mappings[2].start = 99);
    CHANGE(false, s.locations[3].address = 99);
    /* Neither does the numbering: the same text has another index. */
    CHANGE(false, {
        s.strings[OTHER] = HEARTH_STR("main");
        s.functions[0].name = OTHER;
    });
    CHANGE(false, {
        s.functions[3] = s.functions[0];
        s.lines[0].function = 3;
    });
}

static void long_locations_differ_in_any_line(void **state)
{
    (void)state;
    enum {
        N = 100
    };
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct small small;
    small_init(&small);
    struct hearth_line *lines = synth_array(&arena, N, sizeof *lines);
    small.profile.lines = lines;
    small.locations[0] = (struct hearth_location){.mapping = 1, .n_lines = N};
    small.locations[1].n_lines = 0;
    small.profile.n_samples = 1;
    struct hearth_hash128 seen[N + 1];
    for (uint32_t i = 0; i <= N; i++) {
        if (i < N) {
            lines[i].line = 5;
        }
        seen[i] = keys_of(&small.profile, &arena).stack[0];
        lines[i < N ? i : 0].line = 0;
        for (uint32_t j = 0; j < i; j++) {
            assert_false(hearth_hash128_eq(seen[i], seen[j]));
        }
    }
    hearth_arena_release(&arena);
}

/* Every stack over two locations up to 12 deep (recursion in every order), and deep ones around the
 * hash's blocks. */
static void order_and_depth_make_different_keys(void **state)
{
    (void)state;
    enum {
        SHORT = 12,
        DEEP = 300
    };
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct small small;
    small_init(&small);
    uint32_t n_samples = 0, n_locs = 0;
    uint32_t *first = synth_array(&arena, (1u << (SHORT + 1)) + 2 * DEEP, sizeof *first);
    uint32_t *locs = synth_array(&arena, (SHORT << (SHORT + 1)) + 2 * DEEP * DEEP, sizeof *locs);
    for (uint32_t depth = 0; depth <= SHORT; depth++) {
        for (uint32_t bits = 0; bits < 1u << depth; bits++) {
            for (uint32_t i = 0; i < depth; i++) {
                locs[n_locs++] = bits >> i & 1;
            }
            first[++n_samples] = n_locs;
        }
    }
    for (uint32_t depth = SHORT + 1; depth < DEEP; depth++) {
        for (uint32_t last = 0; last < 2; last++) {
            for (uint32_t i = 0; i + 1 < depth; i++) {
                locs[n_locs++] = 0;
            }
            locs[n_locs++] = last;
            first[++n_samples] = n_locs;
        }
    }
    small.profile.stack_first = first;
    small.profile.stack_locs = locs;
    small.profile.n_samples = n_samples;
    struct hearth_stack_keys keys = keys_of(&small.profile, &arena);
    struct hearth_idmap seen;
    hearth_idmap_init(&seen);
    for (uint32_t s = 0; s < n_samples; s++) {
        bool inserted = false;
        (void)hearth_idmap_intern(&seen, keys.stack[s], s, &inserted);
        assert_true(inserted);
        assert_false(keys.skip[s]);
    }
    hearth_idmap_release(&seen);
    /* A dangling location is noticed at every position. */
    small.profile.n_samples = 1;
    for (uint32_t depth = 1; depth < 140; depth++) {
        first[1] = depth;
        memset(locs, 0, depth * sizeof *locs);
        for (uint32_t at = 0; at < depth; at++) {
            locs[at] = HEARTH_NO_INDEX;
            assert_true(keys_of(&small.profile, &arena).skip[0]);
            locs[at] = 0;
        }
    }
    hearth_arena_release(&arena);
}

static void equal_stacks_share_an_id_and_dangling_stacks_get_no_id(void **state)
{
    (void)state;
    struct small small;
    small_init(&small);
    small.stack_first[3] = 8; /* sample 2: locations 6, 2 */
    small.stack_first[4] = 10;
    small.stack_first[5] = 12;
    small.stack_first[6] = 15;
    small.profile.n_samples = 6;
    small.stack_locs[8] = 6; /* sample 3: the same stack */
    small.stack_locs[9] = 2;
    small.stack_locs[10] = 6; /* sample 4: dangling */
    small.stack_locs[11] = HEARTH_NO_INDEX;
    memcpy(&small.stack_locs[12], &small.stack_locs[0],
           3 * sizeof(uint32_t)); /* sample 5: as sample 0 */
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_dict_writer *writer = hearth_dict_writer_new();
    uint32_t *ids = resolve(writer, &small.profile, &arena);
    const uint32_t want[] = {0, 1, 2, 2, HEARTH_NO_INDEX, 0};
    assert_memory_equal(ids, want, sizeof want);
    assert_int_equal(hearth_dict_writer_stacks(writer), 3);
    hearth_dict_writer_free(writer);
    hearth_arena_release(&arena);
}

static void a_rolled_back_cut_is_repeated_and_a_commit_removes_only_its_entries(void **state)
{
    (void)state;
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct synth_world world;
    synth_world_init(&world, 9, 300, 600, 900, 12, &arena);
    struct hearth_dict_writer *writer = hearth_dict_writer_new();
    struct hearth_dict *dict = hearth_dict_new();
    struct hearth_profile first = synth_profile(&world, 100, 1, &arena, NULL);
    struct hearth_profile second = synth_profile(&world, 100, 1, &arena, NULL);
    struct hearth_buf lost, sent, rest;
    struct hearth_dict_mark upto, later, lost_upto;
    struct hearth_err err = HEARTH_ERR_INIT;
    hearth_buf_init(&lost, 0);
    hearth_buf_init(&sent, 0);
    hearth_buf_init(&rest, 0);

    uint32_t *ids_first = resolve(writer, &first, &arena);
    hearth_dict_writer_cut(writer, &lost, &lost_upto);
    assert_int_equal(hearth_dict_writer_committed(writer).n_stacks, 0);
    hearth_dict_writer_cut(writer, &sent, &upto);
    assert_true(hearth_str_eq(hearth_buf_view(&lost), hearth_buf_view(&sent)));
    uint32_t *ids_second = resolve(writer, &second, &arena); /* while the transaction runs */
    hearth_dict_writer_commit(writer, upto);
    hearth_dict_writer_commit(writer, upto); /* a second time: no effect */
    assert_int_equal(hearth_dict_writer_committed(writer).n_stacks, upto.n_stacks);
    assert_true(hearth_dict_writer_pending(writer));
    hearth_dict_writer_cut(writer, &rest, &later);
    hearth_dict_writer_commit(writer, later);
    assert_false(hearth_dict_writer_pending(writer));

    assert_int_equal(hearth_dict_apply(dict, hearth_buf_view(&rest), &err),
                     HEARTH_CORRUPT); /* a gap */
    assert_int_equal(hearth_dict_apply(dict, hearth_buf_view(&sent), &err), HEARTH_OK);
    assert_int_equal(hearth_dict_apply(dict, hearth_buf_view(&sent), &err),
                     HEARTH_CORRUPT); /* twice */
    assert_int_equal(hearth_dict_apply(dict, hearth_buf_view(&rest), &err), HEARTH_OK);
    for (uint32_t s = 0; s < 100; s++) {
        assert_same_stack(dict, ids_first[s], &first, s);
        assert_same_stack(dict, ids_second[s], &second, s);
    }
    hearth_buf_release(&lost);
    hearth_buf_release(&sent);
    hearth_buf_release(&rest);
    hearth_dict_writer_free(writer);
    hearth_dict_free(dict);
    hearth_arena_release(&arena);
}

/* With every allocation refused in turn, the writer goes on and ends up with whole, readable
 * entries. */
static void refused_memory_leaves_the_writer_intact(void **state)
{
    (void)state;
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct synth_world world;
    synth_world_init(&world, 11, 120, 240, 400, 8, &arena);
    struct hearth_profile profiles[3];
    struct hearth_stack_keys keys[3];
    for (int i = 0; i < 3; i++) {
        profiles[i] = synth_profile(&world, 90, 1, &arena, NULL);
        keys[i] = keys_of(&profiles[i], &arena);
    }
    uint32_t n_refused = 0;
    bool refused = true;
    for (uint64_t n = 1; refused; n++) {
        refused = false;
        struct hearth_dict_writer *writer = hearth_dict_writer_new();
        struct hearth_dict *dict = hearth_dict_new();
        uint32_t ids[3][90];
        for (int i = 0; i < 3; i++) {
            struct hearth_err err = HEARTH_ERR_INIT;
            hearth_mem_fail_after(n);
            enum hearth_status status =
                hearth_dict_writer_resolve(writer, &profiles[i], &keys[i], ids[i], &err);
            hearth_mem_fail_after(0);
            if (status != HEARTH_OK) {
                assert_int_equal(status, HEARTH_NO_MEMORY);
                refused = true;
                n_refused++;
                ship(writer, dict); /* all entries are complete */
                assert_int_equal(
                    hearth_dict_writer_resolve(writer, &profiles[i], &keys[i], ids[i], &err),
                    HEARTH_OK);
            }
        }
        ship(writer, dict);
        build_tree(dict);
        for (int i = 0; i < 3; i++) {
            for (uint32_t s = 0; s < 90; s++) {
                assert_same_stack(dict, ids[i][s], &profiles[i], s);
                assert_same_path(dict, ids[i][s], &profiles[i], s);
            }
        }
        hearth_dict_writer_free(writer);
        hearth_dict_free(dict);
    }
    assert_true(n_refused > 20);
    hearth_arena_release(&arena);
}

static void refused_memory_leaves_the_reader_as_it_was(void **state)
{
    (void)state;
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct small small;
    small_init(&small);
    struct hearth_dict_writer *writer = hearth_dict_writer_new();
    uint32_t *ids = resolve(writer, &small.profile, &arena);
    struct hearth_buf chunk;
    struct hearth_dict_mark upto;
    hearth_buf_init(&chunk, 0);
    hearth_dict_writer_cut(writer, &chunk, &upto);
    bool done = false;
    for (uint64_t n = 1; !done; n++) {
        struct hearth_err err = HEARTH_ERR_INIT;
        hearth_mem_fail_after(n);
        struct hearth_dict *dict = hearth_dict_new();
        enum hearth_status applied = dict == NULL
                                         ? HEARTH_NO_MEMORY
                                         : hearth_dict_apply(dict, hearth_buf_view(&chunk), &err);
        enum hearth_status built =
            applied == HEARTH_OK ? hearth_dict_build_tree(dict, &err) : applied;
        hearth_mem_fail_after(0);
        done = built == HEARTH_OK;
        assert_true(done || built == HEARTH_NO_MEMORY);
        if (dict != NULL) {
            if (applied != HEARTH_OK) {
                assert_int_equal(dict->n_strings, 1);
                assert_int_equal(dict->n_locations + dict->n_stacks + dict->n_lines, 0);
                assert_int_equal(hearth_dict_apply(dict, hearth_buf_view(&chunk), &err), HEARTH_OK);
            }
            build_tree(dict);
            for (uint32_t s = 0; s < 5; s++) {
                assert_same_stack(dict, ids[s], &small.profile, s);
            }
            assert_names(dict, 0, "libc.so.6+0x4f0;inlined;work;main");
        }
        hearth_dict_free(dict);
    }
    hearth_buf_release(&chunk);
    hearth_dict_writer_free(writer);
    hearth_arena_release(&arena);
}

static void a_full_table_is_reported_and_known_stacks_still_resolve(void **state)
{
    (void)state;
    struct small small;
    small_init(&small);
    struct hearth_arena arena;
    struct hearth_err err = HEARTH_ERR_INIT;
    hearth_arena_init(&arena, 0);
    for (int t = 0; t <= HEARTH_DICT_N_TABLES; t++) {
        struct hearth_dict_writer *writer = hearth_dict_writer_new();
        small.profile.n_samples = 1;
        uint32_t *ids = resolve(writer, &small.profile, &arena);
        if (t < HEARTH_DICT_N_TABLES) {
            struct hearth_dict_section *section = &writer->sections[t];
            section->n_committed = UINT32_MAX - 1 - section->n_pending;
        } else {
            writer->n_frames = HEARTH_DICT_MAX_FRAMES - 3;
        }
        small.profile.n_samples = 5;
        small.strings[OTHER] = HEARTH_STR("new");
        struct hearth_stack_keys keys = keys_of(&small.profile, &arena);
        uint32_t all[5];
        assert_int_equal(hearth_dict_writer_resolve(writer, &small.profile, &keys, all, &err),
                         HEARTH_RESOURCE_EXHAUSTED);
        small.profile.n_samples = 1;
        assert_int_equal(hearth_dict_writer_resolve(writer, &small.profile, &keys, ids, &err),
                         HEARTH_OK);
        assert_int_equal(ids[0], 0);
        hearth_dict_writer_free(writer);
    }
    hearth_arena_release(&arena);
}

static void a_symbol_that_is_not_utf8_is_refused(void **state)
{
    (void)state;
    struct small small;
    small_init(&small);
    struct hearth_arena arena;
    struct hearth_err err = HEARTH_ERR_INIT;
    hearth_arena_init(&arena, 0);
    struct hearth_dict_writer *writer = hearth_dict_writer_new();
    small.strings[WORK] = HEARTH_STR("w\xffrk");
    struct hearth_stack_keys keys = keys_of(&small.profile, &arena);
    uint32_t ids[5];
    assert_int_equal(hearth_dict_writer_resolve(writer, &small.profile, &keys, ids, &err),
                     HEARTH_INVALID_ARGUMENT);
    hearth_dict_writer_free(writer);
    hearth_arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reader_learns_every_stack_that_a_writer_resolved),
        cmocka_unit_test(the_name_tree_has_one_node_for_each_path),
        cmocka_unit_test(two_days_have_one_node_for_each_stack),
        cmocka_unit_test(only_a_dictionary_of_mostly_new_stacks_looks_them_up),
        cmocka_unit_test(keeps_unsymbolised_inlined_folded_and_empty_stacks),
        cmocka_unit_test(names_made_of_addresses_do_not_disturb_the_ids_of_later_chunks),
        cmocka_unit_test(a_stack_is_identified_by_its_locations_lines_and_mappings),
        cmocka_unit_test(long_locations_differ_in_any_line),
        cmocka_unit_test(order_and_depth_make_different_keys),
        cmocka_unit_test(equal_stacks_share_an_id_and_dangling_stacks_get_no_id),
        cmocka_unit_test(a_rolled_back_cut_is_repeated_and_a_commit_removes_only_its_entries),
        cmocka_unit_test(refused_memory_leaves_the_writer_intact),
        cmocka_unit_test(refused_memory_leaves_the_reader_as_it_was),
        cmocka_unit_test(a_full_table_is_reported_and_known_stacks_still_resolve),
        cmocka_unit_test(a_symbol_that_is_not_utf8_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
