/* test_dict_damage.c -- dictionaries: damaged and hostile chunks change nothing. */
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

/* Everything in a dictionary that a chunk may change. */
static void assert_unchanged(const struct hearth_dict *dict, const struct hearth_dict *before)
{
    assert_int_equal(dict->n_strings, before->n_strings);
    assert_int_equal(dict->n_mappings, before->n_mappings);
    assert_int_equal(dict->n_functions, before->n_functions);
    assert_int_equal(dict->n_lines, before->n_lines);
    assert_int_equal(dict->n_locations, before->n_locations);
    assert_int_equal(dict->n_stacks, before->n_stacks);
    assert_int_equal(dict->n_tree_stacks, before->n_tree_stacks);
}

static void apply_exact(struct hearth_dict *dict, const char *bytes, size_t n, bool must_fail)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_dict before = *dict;
    char *copy = malloc(n == 0 ? 1 : n);
    memcpy(copy, bytes, n);
    enum hearth_status status = hearth_dict_apply(dict, hearth_str_n(copy, n), &err);
    free(copy);
    assert_true(!must_fail || status == HEARTH_CORRUPT);
    if (status != HEARTH_OK) {
        assert_unchanged(dict, &before);
    }
    assert_int_equal(hearth_dict_build_tree(dict, &err), HEARTH_OK);
}

static void damaged_chunks_change_nothing(void **state)
{
    (void)state;
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct small small;
    small_init(&small);
    struct hearth_dict_writer *writer = hearth_dict_writer_new();
    (void)resolve(writer, &small.profile, &arena);
    struct hearth_buf chunk;
    struct hearth_dict_mark upto;
    hearth_buf_init(&chunk, 0);
    hearth_dict_writer_cut(writer, &chunk, &upto);
    for (size_t n = 0; n < chunk.n; n++) {
        struct hearth_dict *dict = hearth_dict_new();
        apply_exact(dict, chunk.p, n, true);
        apply_exact(dict, chunk.p, chunk.n, false);
        assert_int_equal(dict->n_stacks, 5);
        hearth_dict_free(dict);
    }
    hearth_buf_byte(&chunk, 0);
    struct hearth_dict *dict = hearth_dict_new();
    apply_exact(dict, chunk.p, chunk.n--, true);
    hearth_dict_free(dict);
    for (size_t i = 0; i < chunk.n; i++) {
        for (unsigned bit = 0; bit < 256; bit++) {
            char was = chunk.p[i];
            chunk.p[i] = (char)(unsigned char)bit;
            dict = hearth_dict_new();
            apply_exact(dict, chunk.p, chunk.n, false);
            hearth_dict_free(dict);
            chunk.p[i] = was;
        }
    }
    hearth_buf_release(&chunk);
    hearth_dict_writer_free(writer);
    hearth_arena_release(&arena);
}

/* Text of a chunk made by hand: the five sections, each with its count. */
struct section_text {
    uint32_t start, count;
    struct hearth_str bytes;
};

static enum hearth_status apply_sections(struct hearth_dict *dict,
                                         const struct section_text *sections)
{
    struct hearth_buf chunk;
    struct hearth_err err = HEARTH_ERR_INIT;
    hearth_buf_init(&chunk, 0);
    hearth_buf_byte(&chunk, 1);
    for (int t = 0; t < HEARTH_DICT_N_TABLES; t++) {
        hearth_buf_varint(&chunk, sections[t].start);
        hearth_buf_varint(&chunk, sections[t].count);
        hearth_buf_varint(&chunk, sections[t].bytes.n);
    }
    for (int t = 0; t < HEARTH_DICT_N_TABLES; t++) {
        hearth_buf_str(&chunk, sections[t].bytes);
    }
    enum hearth_status status = hearth_dict_apply(dict, hearth_buf_view(&chunk), &err);
    hearth_buf_release(&chunk);
    return status;
}

static void indices_beyond_their_table_are_corrupt(void **state)
{
    (void)state;
    const struct section_text good[HEARTH_DICT_N_TABLES] = {
        {1, 1, HEARTH_STR("\x01x")},
        {0, 1, HEARTH_STR("\x01\x00\x01")},
        {0, 1, HEARTH_STR("\x01\x01\x00\x00")},
        {0, 1, HEARTH_STR("\x01\x02\x01\x0e")},
        {0, 1, HEARTH_STR("\x02\x00\x00")},
    };
    const struct {
        int table;
        struct section_text section;
    } bad[] = {
        {0, {1, 1, HEARTH_STR("\x02x")}},    /* text longer than the section */
        {0, {1, 1, HEARTH_STR("\x01\xff")}}, /* not UTF-8 */
        {0, {1, 1, HEARTH_STR("\x01\x00")}}, /* NUL */
        {0, {1, 1, HEARTH_STR("\x01xy")}},   /* left over */
        {0, {0, 1, HEARTH_STR("\x01x")}},    /* string 0 is implied */
        {0, {1, 0, HEARTH_STR("\x01x")}},
        {1, {0, 1, HEARTH_STR("\x02\x00\x01")}},     /* file name */
        {1, {0, 1, HEARTH_STR("\x00\x02\x01")}},     /* build id */
        {1, {0, 1, HEARTH_STR("\x00\x00\x11")}},     /* unknown flag */
        {1, {0, 1, HEARTH_STR("\x00\x00\x00")}},     /* no range */
        {2, {0, 1, HEARTH_STR("\x02\x00\x00\x00")}}, /* name */
        {2, {0, 1, HEARTH_STR("\x00\x02\x00\x00")}}, /* system name */
        {2, {0, 1, HEARTH_STR("\x00\x00\x02\x00")}}, /* file name */
        {3, {0, 1, HEARTH_STR("\x02\x02\x01\x0e")}}, /* mapping */
        {3, {0, 1, HEARTH_STR("\x01\x02\x02\x0e")}}, /* function */
        {3, {0, 1, HEARTH_STR("\x01\x04\x01\x0e")}}, /* more lines than bytes */
        {3, {0, 1, HEARTH_STR("\x01\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01\x01")}},
        {4, {0, 1, HEARTH_STR("\x02\x00\x02")}}, /* location */
        {4, {0, 1, HEARTH_STR("\x02\x00\x01")}}, /* location -1 */
        {4, {0, 1, HEARTH_STR("\x03\x00\x00")}}, /* deeper than its bytes */
        {4, {0, 1, HEARTH_STR("\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")}},
        {4, {0, 4, HEARTH_STR("\x02\x00\x00")}}, /* a count that cannot fit */
    };
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(bad); i++) {
        struct section_text sections[HEARTH_DICT_N_TABLES];
        memcpy(sections, good, sizeof good);
        sections[bad[i].table] = bad[i].section;
        struct hearth_dict *dict = hearth_dict_new();
        if (apply_sections(dict, sections) != HEARTH_CORRUPT) {
            fail_msg("bad section %zu is accepted", i);
        }
        assert_int_equal(dict->n_strings, 1);
        assert_int_equal(apply_sections(dict, good), HEARTH_OK);
        build_tree(dict);
        assert_names(dict, 0, "x;x");
        hearth_dict_free(dict);
    }
}

/* A few bytes can refer to many frames: a location with many lines, many times. */
static void a_frame_bomb_is_refused_before_it_costs_memory(void **state)
{
    (void)state;
    enum {
        N_LINES = 20000,
        DEPTH = 5000
    };
    struct hearth_buf locations, stacks;
    hearth_buf_init(&locations, 0);
    hearth_buf_init(&stacks, 0);
    hearth_buf_byte(&locations, 0);
    hearth_buf_varint(&locations, (uint64_t)N_LINES << 1);
    for (int i = 0; i < N_LINES; i++) {
        hearth_buf_byte(&locations, 0);
        hearth_buf_byte(&locations, 0);
    }
    hearth_buf_varint(&stacks, DEPTH);
    for (int i = 0; i < DEPTH; i++) {
        hearth_buf_byte(&stacks, 0);
    }
    const struct section_text sections[HEARTH_DICT_N_TABLES] = {
        {1, 0, {NULL, 0}},
        {0, 0, {NULL, 0}},
        {0, 0, {NULL, 0}},
        {0, 1, hearth_buf_view(&locations)},
        {0, 1, hearth_buf_view(&stacks)},
    };
    struct hearth_dict *dict = hearth_dict_new();
    assert_int_equal(apply_sections(dict, sections), HEARTH_RESOURCE_EXHAUSTED);
    assert_int_equal(dict->n_locations, 0);
    hearth_dict_free(dict);
    hearth_buf_release(&locations);
    hearth_buf_release(&stacks);
}

/* One stack, `depth` times the same location. */
static void put_stack(struct hearth_buf *out, uint32_t depth, uint32_t location)
{
    hearth_buf_varint(out, depth);
    for (uint32_t i = 0; i < depth; i++) {
        hearth_buf_varint(out, i == 0 ? hearth_zigzag(location) : 0);
    }
}

static void frames_are_counted_exactly_where_locations_differ_in_length(void **state)
{
    (void)state;
    enum {
        N_LINES = 20000,
        LONG = 0,
        SHORT = 1
    };
    /* The last depth that is allowed fills the dictionary up to a frame of the short location. */
    const uint32_t fill = (HEARTH_DICT_MAX_FRAMES - 5000) / N_LINES;
    const uint32_t rest = HEARTH_DICT_MAX_FRAMES - 5000 - fill * N_LINES;
    const struct {
        uint32_t depth, location;
        enum hearth_status status;
    } steps[] = {
        {5000, SHORT, HEARTH_OK}, /* times the lines of the long one it would be too many */
        {fill, LONG, HEARTH_OK},  {1, LONG, HEARTH_RESOURCE_EXHAUSTED},
        {rest, SHORT, HEARTH_OK}, {1, SHORT, HEARTH_RESOURCE_EXHAUSTED},
    };
    struct hearth_buf locations, stacks;
    hearth_buf_init(&locations, 0);
    hearth_buf_init(&stacks, 0);
    hearth_buf_byte(&locations, 0);
    hearth_buf_varint(&locations, (uint64_t)N_LINES << 1);
    for (int i = 0; i < 2 * N_LINES; i++) {
        hearth_buf_byte(&locations, 0);
    }
    for (int i = 0; i < 3; i++) {
        hearth_buf_byte(&locations, 0);
    }

    struct hearth_dict *dict = hearth_dict_new();
    struct section_text sections[HEARTH_DICT_N_TABLES] = {
        {1, 0, {NULL, 0}},
        {0, 0, {NULL, 0}},
        {0, 0, {NULL, 0}},
        {0, 2, hearth_buf_view(&locations)},
    };
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(steps); i++) {
        hearth_buf_reset(&stacks);
        put_stack(&stacks, steps[i].depth, steps[i].location);
        sections[HEARTH_DICT_STACKS] =
            (struct section_text){dict->n_stacks, 1, hearth_buf_view(&stacks)};
        assert_int_equal(apply_sections(dict, sections), steps[i].status);
        sections[HEARTH_DICT_LOCATIONS] = (struct section_text){2, 0, {NULL, 0}};
    }
    assert_int_equal(dict->n_stacks, 3);
    hearth_dict_free(dict);
    hearth_buf_release(&locations);
    hearth_buf_release(&stacks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damaged_chunks_change_nothing),
        cmocka_unit_test(indices_beyond_their_table_are_corrupt),
        cmocka_unit_test(a_frame_bomb_is_refused_before_it_costs_memory),
        cmocka_unit_test(frames_are_counted_exactly_where_locations_differ_in_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
