/*
 * test_dict_ranges.c -- only locations without lines keep the memory range of their mapping, in a
 * dictionary and in the keys of its stacks.
 */
#include "hearth/model/dict.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum {
    FIRST = 0x400000,  /* where a process has the file mapped */
    SECOND = 0x500000, /* where another process has it */
};

/*
 * Stack traces of one process: sample 0 is code with lines, sample 1 an address of the same file.
 */
static uint32_t learn(struct hearth_dict_writer *writer, uint64_t start, bool has_functions)
{
    struct hearth_str strings[] = {HEARTH_STR(""), HEARTH_STR("/bin/part"), HEARTH_STR("main")};
    struct hearth_mapping mapping = {.start = start,
                                     .limit = start + 4096,
                                     .offset = 64,
                                     .filename = 1,
                                     .has_functions = has_functions};
    struct hearth_function function = {.name = 2};
    struct hearth_line line = {0, 12};
    struct hearth_location locations[] = {{.n_lines = 1, .address = start + 1},
                                          {.address = 0x400010}};
    uint32_t stack_first[] = {0, 1, 2}, stack_locs[] = {0, 1};
    const struct hearth_profile profile = {.strings = strings,
                                           .mappings = &mapping,
                                           .functions = &function,
                                           .lines = &line,
                                           .locations = locations,
                                           .stack_first = stack_first,
                                           .stack_locs = stack_locs,
                                           .n_strings = 3,
                                           .n_mappings = 1,
                                           .n_functions = 1,
                                           .n_lines = 1,
                                           .n_locations = 2,
                                           .n_samples = 2,
                                           .n_stack_locs = 2};
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_stack_keys keys;
    uint32_t ids[2];
    assert_int_equal(hearth_stack_keys_make(&profile, &arena, &keys, &err), HEARTH_OK);
    assert_int_equal(hearth_dict_writer_resolve(writer, &profile, &keys, ids, &err), HEARTH_OK);
    hearth_arena_release(&arena);
    assert_int_equal(ids[0], 0); /* one location, at whatever address it is mapped */
    return ids[1];
}

/* Applies to `dict` what the writer learned since the last call. */
static void read_more(struct hearth_dict_writer *writer, struct hearth_dict *dict)
{
    struct hearth_dict_mark upto;
    struct hearth_buf chunk;
    struct hearth_err err = HEARTH_ERR_INIT;
    hearth_buf_init(&chunk, 0);
    hearth_dict_writer_cut(writer, &chunk, &upto);
    assert_int_equal(hearth_dict_apply(dict, hearth_buf_view(&chunk), &err), HEARTH_OK);
    hearth_dict_writer_commit(writer, upto);
    hearth_buf_release(&chunk);
}

static void assert_mapping(const struct hearth_dict *dict, uint32_t stack, uint64_t start,
                           uint64_t limit, uint64_t offset)
{
    uint32_t location = dict->stack_locs[dict->stack_first[stack]];
    const struct hearth_mapping *mapping = &dict->mappings[dict->locations[location].mapping];
    assert_int_equal(mapping->start, start);
    assert_int_equal(mapping->limit, limit);
    assert_int_equal(mapping->offset, offset);
    assert_true(hearth_str_eq_c(dict->strings[mapping->filename], "/bin/part"));
}

static void a_location_without_lines_keeps_the_range_and_one_with_lines_does_not(void **state)
{
    (void)state;
    for (int has_functions = 0; has_functions < 2; has_functions++) {
        struct hearth_dict_writer *writer = hearth_dict_writer_new();
        assert_int_equal(learn(writer, FIRST, has_functions), 1);
        assert_int_equal(learn(writer, SECOND, has_functions), 2);
        assert_int_equal(learn(writer, FIRST, has_functions), 1);

        struct hearth_dict *dict = hearth_dict_new();
        read_more(writer, dict);
        assert_int_equal(dict->n_stacks, 3);
        assert_int_equal(dict->n_mappings, 3);
        assert_mapping(dict, 0, 0, 0, 0);
        assert_mapping(dict, 1, FIRST, FIRST + 4096, 64);
        assert_mapping(dict, 2, SECOND, SECOND + 4096, 64);
        for (uint32_t i = 0; i < dict->n_mappings; i++) {
            assert_int_equal(dict->mappings[i].has_functions, has_functions);
        }
        hearth_dict_free(dict);
        hearth_dict_writer_free(writer);
    }
}

static const struct hearth_hash128 *keys_of(const struct hearth_dict *dict)
{
    struct hearth_arena scratch;
    hearth_arena_init(&scratch, 0);
    const struct hearth_hash128 *keys;
    struct hearth_err err = HEARTH_ERR_INIT;
    assert_int_equal(hearth_dict_stack_keys(dict, &scratch, &keys, &err), HEARTH_OK);
    hearth_arena_release(&scratch);
    return keys;
}

static void equal_stacks_of_two_dictionaries_have_equal_keys(void **state)
{
    (void)state;
    struct hearth_dict_writer *writers[] = {hearth_dict_writer_new(), hearth_dict_writer_new()};
    struct hearth_dict *dicts[] = {hearth_dict_new(), hearth_dict_new()};

    /* The addresses have other ids in the second dictionary. */
    assert_int_equal(learn(writers[0], FIRST, true), 1);
    assert_int_equal(learn(writers[1], SECOND, true), 1);
    read_more(writers[0], dicts[0]);
    read_more(writers[1], dicts[1]);
    const struct hearth_hash128 *a = keys_of(dicts[0]), *b = keys_of(dicts[1]);
    assert_ptr_equal(a, keys_of(dicts[0])); /* they are kept */
    assert_true(hearth_hash128_eq(a[0], b[0]));
    assert_false(hearth_hash128_eq(a[1], b[1]));

    /* Keys of stacks that follow are made, too. */
    assert_int_equal(learn(writers[1], FIRST, true), 2);
    read_more(writers[1], dicts[1]);
    b = keys_of(dicts[1]);
    assert_true(hearth_hash128_eq(a[0], b[0]));
    assert_true(hearth_hash128_eq(a[1], b[2]));
    assert_false(hearth_hash128_eq(b[1], b[2]));

    for (int i = 0; i < 2; i++) {
        hearth_dict_writer_free(writers[i]);
        hearth_dict_free(dicts[i]);
    }
}

/* Chunks older than the flag of the range: has_functions, and no bytes after the flags. */
static void a_stored_mapping_that_has_functions_may_lack_its_range(void **state)
{
    (void)state;
    /*
     * Version; then start, count and bytes of strings, mappings, functions, locations and stacks.
     */
    static const char chunk[] = "\1\1\1\2\0\1\3\0\0\0\0\1\3\0\1\2"
                                "\1a"
                                "\1\0\1"  /* file name, build id, flags */
                                "\1\0\20" /* mapping, lines, address */
                                "\1\0";
    struct hearth_dict *dict = hearth_dict_new();
    struct hearth_err err = HEARTH_ERR_INIT;
    assert_int_equal(hearth_dict_apply(dict, hearth_str_n(chunk, sizeof chunk - 1), &err),
                     HEARTH_OK);
    assert_true(dict->mappings[0].has_functions);
    assert_int_equal(dict->mappings[0].start, 0);
    assert_int_equal(dict->locations[0].address, 16);
    hearth_dict_free(dict);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_location_without_lines_keeps_the_range_and_one_with_lines_does_not),
        cmocka_unit_test(equal_stacks_of_two_dictionaries_have_equal_keys),
        cmocka_unit_test(a_stored_mapping_that_has_functions_may_lack_its_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
