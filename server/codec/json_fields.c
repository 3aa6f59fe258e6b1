/* json_fields.c -- the scalar members of an object and of the objects in it. */
#include "hearth/codec/json_fields.h"

#include "json_tree.h"

#include <assert.h>

#define MAX_DEPTH      8u
#define MAX_TREE_BYTES ((size_t)1 << 20)

struct field_list {
    struct hearth_json_field *fields;
    size_t n, cap;
    struct hearth_arena *arena;
};

/* An upper bound of the number of fields. */
static size_t count_fields(json_t *object)
{
    const char *key;
    json_t *value;
    size_t n = 0;

    json_object_foreach(object, key, value)
    {
        n += json_is_object(value) ? json_object_size(value) : 1;
    }

    return n;
}

static void add_field(struct field_list *list, const char *outer, const char *key, json_t *value)
{
    assert(list->n < list->cap);

    struct hearth_json_field *field = &list->fields[list->n];
    *field = (struct hearth_json_field){0};
    if (json_is_string(value)) {
        field->kind = HEARTH_JSON_TEXT;
        field->text = hearth_arena_str(
            list->arena, hearth_str_n(json_string_value(value), json_string_length(value)));
    } else if (json_is_number(value)) {
        field->kind = HEARTH_JSON_NUMBER;
        field->number = json_number_value(value);
    } else if (json_is_boolean(value)) {
        field->kind = HEARTH_JSON_BOOL;
        field->flag = json_is_true(value);
    } else {
        return;
    }

    field->path = hearth_str_c(
        hearth_arena_printf(list->arena, "%s%s%s", outer, outer[0] == '\0' ? "" : ".", key));
    list->n++;
}

enum hearth_status hearth_json_fields_read(struct hearth_str json, struct hearth_arena *arena,
                                           struct hearth_json_field **ret_fields, size_t *ret_n,
                                           struct hearth_err *err)
{
    assert(ret_fields != NULL && ret_n != NULL);

    json_t *tree, *value, *inner;
    const char *key, *inner_key;
    if (json.n > HEARTH_JSON_FIELDS_BYTES) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "JSON of %zu bytes is too long: at most %u bytes are read here", json.n,
                           HEARTH_JSON_FIELDS_BYTES);
    }

    HEARTH_TRY(json_tree_parse(json, MAX_DEPTH, MAX_TREE_BYTES, &tree, err));

    /* One field per scalar member, at most; members of other types leave room unused. */
    struct field_list list = {.arena = arena};
    list.cap = count_fields(tree);
    list.fields = hearth_arena_array(arena, list.cap, sizeof *list.fields);
    json_object_foreach(tree, key, value)
    {
        if (list.fields != NULL && !json_is_object(value)) {
            add_field(&list, "", key, value);
        }
        json_object_foreach(value, inner_key, inner)
        {
            if (list.fields != NULL) {
                add_field(&list, key, inner_key, inner);
            }
        }
    }

    json_tree_free(tree);
    *ret_fields = list.fields;
    *ret_n = list.n;
    return arena->refused ? HEARTH_FAIL_ARENA(err, arena) : HEARTH_OK;
}

const struct hearth_json_field *hearth_json_field_find(const struct hearth_json_field *fields,
                                                       size_t n, const char *path,
                                                       enum hearth_json_kind kind)
{
    for (size_t i = 0; i < n; i++) {
        if (fields[i].kind == kind && hearth_str_eq_c(fields[i].path, path)) {
            return &fields[i];
        }
    }

    return NULL;
}
