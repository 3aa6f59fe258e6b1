/* json_pick.c -- chosen members of a JSON object. */
#include "hearth/codec/json_pick.h"

#include "json_tree.h"

#include <assert.h>

#define MAX_DEPTH      16u
#define MAX_TREE_BYTES ((size_t)16 << 20)
#define MAX_NAME_BYTES 64u /* of a member in a path */

/* The member that the path names; NULL if there is none. */
static json_t *find_member(json_t *tree, const char *path)
{
    while (tree != NULL) {
        char name[MAX_NAME_BYTES];
        size_t n = strcspn(path, ".");
        assert(n > 0 && n < sizeof name);
        memcpy(name, path, n);
        name[n] = '\0';

        tree = json_object_get(tree, name);
        if (path[n] == '\0') {
            return tree;
        }
        path += n + 1;
    }

    return NULL;
}

static struct hearth_str copy_json_text(const json_t *value, struct hearth_arena *arena)
{
    return hearth_arena_str(arena,
                            hearth_str_n(json_string_value(value), json_string_length(value)));
}

static enum hearth_status copy_json_items(const json_t *array, struct hearth_json_pick *pick,
                                          struct hearth_arena *arena, struct hearth_err *err)
{
    size_t n = json_array_size(array);

    pick->items = hearth_arena_array(arena, n, sizeof pick->items[0]);
    for (size_t i = 0; i < n && pick->items != NULL; i++) {
        const json_t *item = json_array_get(array, i);
        if (json_is_string(item)) {
            pick->items[pick->n_items++] = copy_json_text(item, arena);
        }
    }

    return arena->refused ? HEARTH_FAIL_ARENA(err, arena) : HEARTH_OK;
}

static enum hearth_status pick_member(json_t *tree, struct hearth_json_pick *pick,
                                      struct hearth_arena *arena, struct hearth_err *err)
{
    const json_t *found = find_member(tree, pick->path);

    pick->text = hearth_str_n(NULL, 0);
    pick->items = NULL;
    pick->n_items = 0;
    if (found == NULL || json_is_null(found)) {
        return HEARTH_OK;
    }

    if (pick->is_array ? !json_is_array(found) : !json_is_string(found)) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "the member \"%s\" is not %s", pick->path,
                           pick->is_array ? "an array" : "a string");
    }

    if (pick->is_array) {
        return copy_json_items(found, pick, arena, err);
    }

    pick->text = copy_json_text(found, arena);
    return pick->text.p == NULL ? HEARTH_FAIL_ARENA(err, arena) : HEARTH_OK;
}

enum hearth_status hearth_json_pick(struct hearth_str json, struct hearth_json_pick *picks,
                                    size_t n, struct hearth_arena *arena, struct hearth_err *err)
{
    json_t *tree;

    assert(picks != NULL);
    if (json.n > HEARTH_JSON_PICK_BYTES) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "JSON of %zu bytes is too long: at most %u bytes are read here", json.n,
                           HEARTH_JSON_PICK_BYTES);
    }

    enum hearth_status status = json_tree_parse(json, MAX_DEPTH, MAX_TREE_BYTES, &tree, err);
    if (status != HEARTH_OK) {
        return json_tree_is_over_limit() ? HEARTH_INVALID_ARGUMENT : status;
    }

    for (size_t i = 0; i < n && status == HEARTH_OK; i++) {
        status = pick_member(tree, &picks[i], arena, err);
    }

    json_tree_free(tree);

    return status;
}
