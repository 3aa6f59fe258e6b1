/* json_table.c -- the strings of an object of objects. */
#include "hearth/codec/json_table.h"

#include "json_tree.h"

#include <assert.h>

#define MAX_DEPTH      4u
#define MAX_TREE_BYTES ((size_t)1 << 20)

static size_t count_cells(json_t *table)
{
    const char *row, *column;

    json_t *members, *value;
    size_t n = 0;
    json_object_foreach(table, row, members)
    {
        json_object_foreach(members, column, value)
        {
            n += json_is_string(value);
        }
    }

    return n;
}

/* `cells` has room for count_cells(table) cells. */
static enum hearth_status copy_cells(json_t *table, struct hearth_arena *arena,
                                     struct hearth_json_cell *cells, struct hearth_err *err)
{
    const char *row, *column;

    json_t *members, *value;
    size_t n = 0;
    json_object_foreach(table, row, members)
    {
        if (!json_is_object(members) && !json_is_null(members)) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                               "invalid JSON: an object is expected at \"%.64s\"", row);
        }

        json_object_foreach(members, column, value)
        {
            if (!json_is_string(value)) {
                continue;
            }

            struct hearth_json_cell cell = {
                .row = hearth_arena_str(arena, hearth_str_c(row)),
                .column = hearth_arena_str(arena, hearth_str_c(column)),
                .text = hearth_arena_str(
                    arena, hearth_str_n(json_string_value(value), json_string_length(value))),
            };

            if (cell.row.p == NULL || cell.column.p == NULL || cell.text.p == NULL) {
                return HEARTH_FAIL_ARENA(err, arena);
            }

            cells[n++] = cell;
        }
    }

    return HEARTH_OK;
}

enum hearth_status hearth_json_table_read(struct hearth_str json, struct hearth_arena *arena,
                                          struct hearth_json_cell **ret_cells, size_t *ret_n,
                                          struct hearth_err *err)
{
    assert(ret_cells != NULL && ret_n != NULL);

    json_t *table;
    if (json.n > HEARTH_JSON_TABLE_BYTES) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "JSON of %zu bytes is too long: at most %u bytes are read here", json.n,
                           HEARTH_JSON_TABLE_BYTES);
    }

    HEARTH_TRY(json_tree_parse(json, MAX_DEPTH, MAX_TREE_BYTES, &table, err));
    size_t n = count_cells(table);
    struct hearth_json_cell *cells = hearth_arena_array(arena, n, sizeof *cells);
    enum hearth_status status;
    if (cells != NULL) {
        status = copy_cells(table, arena, cells, err);
    } else {
        status = HEARTH_FAIL_ARENA(err, arena);
    }

    json_tree_free(table);
    if (status == HEARTH_OK) {
        *ret_cells = cells;
        *ret_n = n;
    }

    return status;
}
