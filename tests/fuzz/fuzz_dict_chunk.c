/*
 * fuzz_dict_chunk.c -- hostile dictionary chunks: apply, build the name tree, walk everything.
 *
 * Input: chunks, each behind a two-byte little-endian length. A chunk that is refused must change
 * nothing; one that is accepted must leave every index in range.
 */
#include "hearth/base/mem.h"
#include "hearth/model/dict.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
    if (!ok) {
        abort();
    }
}

static void walk(const struct hearth_dict *dict)
{
    for (uint32_t i = 0; i < dict->n_strings; i++) {
        require(hearth_str_utf8_valid(dict->strings[i]));
    }
    for (uint32_t i = 0; i < dict->n_mappings; i++) {
        require(dict->mappings[i].filename < dict->n_strings);
        require(dict->mappings[i].build_id < dict->n_strings);
    }
    for (uint32_t i = 0; i < dict->n_functions; i++) {
        require(dict->functions[i].name < dict->n_strings);
        require(dict->functions[i].system_name < dict->n_strings);
        require(dict->functions[i].filename < dict->n_strings);
    }
    for (uint32_t i = 0; i < dict->n_lines; i++) {
        uint32_t function = dict->lines[i].function;
        require(function == HEARTH_NO_INDEX || function < dict->n_functions);
    }
    for (uint32_t i = 0; i < dict->n_locations; i++) {
        const struct hearth_location *location = &dict->locations[i];
        require(location->mapping == HEARTH_NO_INDEX || location->mapping < dict->n_mappings);
        require((uint64_t)location->first_line + location->n_lines <= dict->n_lines);
    }
    for (uint32_t s = 0; s < dict->n_stacks; s++) {
        require(dict->stack_first[s] <= dict->stack_first[s + 1]);
        for (uint32_t i = dict->stack_first[s]; i < dict->stack_first[s + 1]; i++) {
            require(dict->stack_locs[i] < dict->n_locations);
        }
        require(dict->stack_node[s] < hearth_name_tree_size(dict->tree));
    }
    for (uint32_t i = 1; i < hearth_name_tree_size(dict->tree); i++) {
        struct hearth_name_node node = hearth_name_tree_node(dict->tree, i);
        require(node.parent < i);
        require(node.name < hearth_name_tree_n_names(dict->tree));
    }
    require(hearth_name_tree_n_dead(dict->tree) == 0);
    require(dict->n_tree_stacks == dict->n_stacks);
}

static void require_unchanged(const struct hearth_dict *dict, const struct hearth_dict *before)
{
    require(dict->n_strings == before->n_strings && dict->n_stacks == before->n_stacks);
    require(dict->n_locations == before->n_locations && dict->n_lines == before->n_lines);
    require(dict->n_functions == before->n_functions && dict->n_mappings == before->n_mappings);
}

/* Each stack has a key. */
static void make_keys(const struct hearth_dict *dict)
{
    const struct hearth_hash128 *keys = NULL;
    struct hearth_arena scratch;
    struct hearth_err err = HEARTH_ERR_INIT;

    hearth_arena_init(&scratch, 0);
    require(hearth_dict_stack_keys(dict, &scratch, &keys, &err) == HEARTH_OK);
    require(keys != NULL || dict->n_stacks == 0);
    hearth_arena_release(&scratch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hearth_mem_fail_after(1 + size % 5);
    struct hearth_dict *dict = hearth_dict_new();
    hearth_mem_fail_after(0);
    struct hearth_name_tree *shared = size % 2 == 0 ? NULL : hearth_name_tree_new();

    dict = dict == NULL ? hearth_dict_new() : dict;
    require(dict != NULL);
    if (shared != NULL) { /* a tree of several dictionaries */
        hearth_dict_use_tree(dict, shared);
        hearth_name_tree_unref(shared);
    }
    size_t empty_bytes = hearth_dict_bytes(dict);
    while (size >= 2) {
        size_t n = (size_t)data[0] | (size_t)data[1] << 8;
        data += 2;
        size -= 2;
        n = n < size ? n : size;
        struct hearth_err err = HEARTH_ERR_INIT;
        struct hearth_dict before = *dict;
        struct hearth_str chunk = hearth_str_n((const char *)data, n);
        /* Refused memory first: the same chunk is applied when there is memory again. */
        hearth_mem_fail_after(1 + size % 16);
        bool is_applied = hearth_dict_apply(dict, chunk, &err) == HEARTH_OK;
        hearth_mem_fail_after(0);
        if (!is_applied) {
            require_unchanged(dict, &before);
            is_applied = hearth_dict_apply(dict, chunk, &err) == HEARTH_OK;
        }
        if (!is_applied) {
            require_unchanged(dict, &before);
        }
        require(hearth_dict_build_tree(dict, &err) == HEARTH_OK);
        walk(dict);
        data += n;
        size -= n;
    }
    make_keys(dict);
    make_keys(dict); /* the kept ones */
    require(hearth_dict_bytes(dict) >= empty_bytes);
    hearth_dict_free(dict);
    return 0;
}
