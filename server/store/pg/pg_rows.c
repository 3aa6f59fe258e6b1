/*
 * pg_rows.c -- values of a result into structs, and values of structs into array parameters
 * (contract: pg_rows.h).
 */
#include "pg/pg_rows.h"

#include "hearth/model/agent.h"

#include <assert.h>
#include <stdio.h>

static const struct hearth_column i64_columns[] = {{HEARTH_COLUMN_I64, 0, 0}};
const struct hearth_row_type hearth_i64_rows = HEARTH_ROW_TYPE(i64_columns, int64_t);
static const struct hearth_column i32_columns[] = {{HEARTH_COLUMN_I32, 0, 0}};
const struct hearth_row_type hearth_i32_rows = HEARTH_ROW_TYPE(i32_columns, int32_t);

/* Destination and type of rows. */
struct row_target {
    const struct hearth_row_type *type;
    struct hearth_arena *arena;
    char *rows; /* the array */
    size_t n;
};

/* ---- results ---- */

static enum hearth_status check_columns(const PGresult *result, const struct hearth_row_type *type,
                                        struct hearth_err *err)
{
    int expected = 0;

    for (size_t i = 0; i < type->n_columns; i++) {
        expected += type->columns[i].kind == HEARTH_COLUMN_PAIRS ? 2 : 1;
    }

    if (PQnfields(result) == expected) {
        return HEARTH_OK;
    }

    char names[512] = "";
    size_t at = 0;
    for (int i = 0; i < PQnfields(result) && at < sizeof names; i++) {
        int n =
            snprintf(names + at, sizeof names - at, "%s%s", i > 0 ? ", " : "", PQfname(result, i));
        at += n < 0 ? 0 : (size_t)n;
    }

    return HEARTH_FAIL(err, HEARTH_INTERNAL,
                       "a statement returns %d columns, but its row type has %d: %s",
                       PQnfields(result), expected, names);
}

/* A column of a row, and the arena of its value. */
struct cell {
    const PGresult *result;
    int row, column;
    struct hearth_arena *arena;
};

/* Read a column of names and the next column, of values. */
static enum hearth_status read_pairs(const struct cell *cell, struct hearth_property **ret,
                                     size_t *ret_n, struct hearth_err *err)
{
    struct hearth_str *names, *values;
    size_t n_names = 0, n_values = 0;

    HEARTH_TRY(hearth_pg_str_array(cell->result, cell->row, cell->column, cell->arena, &names,
                                   &n_names, err));
    HEARTH_TRY(hearth_pg_str_array(cell->result, cell->row, cell->column + 1, cell->arena, &values,
                                   &n_values, err));
    if (n_names != n_values) {
        return HEARTH_FAIL(err, HEARTH_CORRUPT,
                           "a stored list of properties has %zu names, but %zu values", n_names,
                           n_values);
    }

    struct hearth_property *pairs = hearth_arena_array(cell->arena, n_names, sizeof *pairs);
    if (pairs == NULL) {
        return HEARTH_FAIL_ARENA(err, cell->arena);
    }

    for (size_t i = 0; i < n_names; i++) {
        pairs[i] = (struct hearth_property){names[i], values[i]};
    }

    *ret = pairs;
    *ret_n = n_names;

    return HEARTH_OK;
}

/* Read an array column into the pointer at `member`. */
static enum hearth_status read_array(const struct cell *cell, enum hearth_column_kind kind,
                                     char *member, size_t *ret_n, struct hearth_err *err)
{
    const PGresult *result = cell->result;
    struct hearth_arena *arena = cell->arena;
    int row = cell->row, column = cell->column;

    if (kind == HEARTH_COLUMN_I32S) {
        int32_t *values;
        HEARTH_TRY(hearth_pg_i32_array(result, row, column, arena, &values, ret_n, err));
        memcpy(member, &values, sizeof values);
    } else if (kind == HEARTH_COLUMN_I64S) {
        int64_t *values;
        HEARTH_TRY(hearth_pg_i64_array(result, row, column, arena, &values, ret_n, err));
        memcpy(member, &values, sizeof values);
    } else if (kind == HEARTH_COLUMN_PAIRS) {
        struct hearth_property *pairs;
        HEARTH_TRY(read_pairs(cell, &pairs, ret_n, err));
        memcpy(member, &pairs, sizeof pairs);
    } else {
        assert(kind == HEARTH_COLUMN_TEXTS);
        struct hearth_str *texts;
        HEARTH_TRY(hearth_pg_str_array(result, row, column, arena, &texts, ret_n, err));
        memcpy(member, &texts, sizeof texts);
    }

    return HEARTH_OK;
}

/* Read a cell into its member of the struct at `target`. */
static enum hearth_status read_value(const struct cell *cell, const struct hearth_column *to,
                                     char *target, struct hearth_err *err)
{
    const PGresult *result = cell->result;
    char *member = target + to->offset;
    bool is_null = hearth_pg_is_null(result, cell->row, cell->column);

    switch (to->kind) {
    case HEARTH_COLUMN_I32: {
        int32_t value = is_null ? 0 : hearth_pg_i32(result, cell->row, cell->column);
        memcpy(member, &value, sizeof value);
        return HEARTH_OK;
    }

    case HEARTH_COLUMN_I64: {
        int64_t value = is_null ? 0 : hearth_pg_i64(result, cell->row, cell->column);
        memcpy(member, &value, sizeof value);
        return HEARTH_OK;
    }

    case HEARTH_COLUMN_BOOL: {
        bool value = !is_null && hearth_pg_i32(result, cell->row, cell->column) != 0;
        memcpy(member, &value, sizeof value);
        return HEARTH_OK;
    }

    case HEARTH_COLUMN_TEXT:
    case HEARTH_COLUMN_BYTES: {
        /* A refusal sticks to the arena, which fill_rows checks. */
        struct hearth_str value =
            hearth_arena_str(cell->arena, hearth_pg_str(result, cell->row, cell->column));
        memcpy(member, &value, sizeof value);
        return HEARTH_OK;
    }

    case HEARTH_COLUMN_TEXTS:
    case HEARTH_COLUMN_I32S:
    case HEARTH_COLUMN_I64S:
    case HEARTH_COLUMN_PAIRS: {
        size_t n;
        HEARTH_TRY(read_array(cell, to->kind, member, &n, err));
        memcpy(target + to->n_offset, &n, sizeof n);
        return HEARTH_OK;
    }

    case HEARTH_COLUMN_UUID:
        break;
    }

    HEARTH_BUG("this kind of column cannot be read");
}

/* Read the n rows of the result into target->rows, which has room for them and is zeroed. */
static enum hearth_status fill_rows(const PGresult *result, size_t n, struct row_target *target,
                                    struct hearth_err *err)
{
    enum hearth_status status = check_columns(result, target->type, err);
    assert(status == HEARTH_OK); /* the SELECT list and the row type are ours */
    HEARTH_TRY(status);

    for (size_t row = 0; row < n; row++) {
        char *to_row = target->rows + row * target->type->row_bytes;
        struct cell cell = {result, (int)row, 0, target->arena};
        for (size_t i = 0; i < target->type->n_columns; i++) {
            const struct hearth_column *to = &target->type->columns[i];
            HEARTH_TRY(read_value(&cell, to, to_row, err));
            cell.column += to->kind == HEARTH_COLUMN_PAIRS ? 2 : 1;
        }
    }

    target->n = n;

    return target->arena->refused ? HEARTH_FAIL_ARENA(err, target->arena) : HEARTH_OK;
}

/* Read all rows into a new array. */
static enum hearth_status take_all_rows(const PGresult *result, struct row_target *target,
                                        struct hearth_err *err)
{
    size_t n = (size_t)PQntuples(result);

    target->rows = hearth_arena_calloc(target->arena, n, target->type->row_bytes);
    if (target->rows == NULL) {
        return HEARTH_FAIL_ARENA(err, target->arena);
    }

    return fill_rows(result, n, target, err);
}

/* ---- a statement ---- */

enum hearth_status hearth_pg_run(struct hearth_pg *pg, const struct hearth_pg_query *query,
                                 struct hearth_pg_selected *ret, enum hearth_pg_fault *ret_fault,
                                 struct hearth_err *err)
{
    PGresult *result = NULL;

    *ret = (struct hearth_pg_selected){0};
    HEARTH_TRY(
        hearth_pg_exec(pg, query->sql, query->params, query->cancel, &result, ret_fault, err));

    enum hearth_status status = HEARTH_OK;
    ret->n = (size_t)PQntuples(result);
    if (query->type != NULL) {
        struct row_target target = {query->type, query->arena, NULL, 0};
        status = take_all_rows(result, &target, err);
        ret->rows = target.rows;
    }
    PQclear(result);

    return status;
}

enum hearth_status hearth_pg_select(struct hearth_pg *pg, const struct hearth_pg_query *query,
                                    void *ret_rows, size_t *ret_n, enum hearth_pg_fault *ret_fault,
                                    struct hearth_err *err)
{
    assert(query->arena != NULL && ret_rows != NULL && ret_n != NULL);

    struct hearth_pg_selected selected;
    HEARTH_TRY(hearth_pg_run(pg, query, &selected, ret_fault, err));
    memcpy(ret_rows, &selected.rows, sizeof selected.rows);
    *ret_n = selected.n;

    return HEARTH_OK;
}

/* ---- parameters ---- */

static size_t value_bytes(enum hearth_column_kind kind)
{
    switch (kind) {
    case HEARTH_COLUMN_I32:
    case HEARTH_COLUMN_BOOL:
        return sizeof(int32_t);
    case HEARTH_COLUMN_I64:
        return sizeof(int64_t);
    case HEARTH_COLUMN_TEXT:
    case HEARTH_COLUMN_BYTES:
        return sizeof(struct hearth_str);
    case HEARTH_COLUMN_UUID:
        return sizeof(struct hearth_hash128);
    case HEARTH_COLUMN_TEXTS:
    case HEARTH_COLUMN_I32S:
    case HEARTH_COLUMN_I64S:
    case HEARTH_COLUMN_PAIRS:
        break;
    }

    HEARTH_BUG("this kind of column cannot be a parameter");
}

/* Copy the values of one column into an array; a bool becomes an int32_t. */
static void gather_values(const struct hearth_row_type *type, const struct hearth_column *column,
                          const char *rows, size_t n, char *values)
{
    size_t n_bytes = value_bytes(column->kind);

    for (size_t i = 0; i < n; i++) {
        const char *member = rows + i * type->row_bytes + column->offset;
        if (column->kind == HEARTH_COLUMN_BOOL) {
            bool flag;
            memcpy(&flag, member, sizeof flag);
            int32_t value = flag;
            memcpy(values + i * n_bytes, &value, n_bytes);
        } else {
            memcpy(values + i * n_bytes, member, n_bytes);
        }
    }
}

static void add_array_param(struct hearth_pg_params *params, enum hearth_column_kind kind,
                            const void *values, size_t n)
{
    switch (kind) {
    case HEARTH_COLUMN_I32:
    case HEARTH_COLUMN_BOOL:
        hearth_pg_param_i32_array(params, values, n);
        break;

    case HEARTH_COLUMN_I64:
        hearth_pg_param_i64_array(params, values, n);
        break;
    case HEARTH_COLUMN_TEXT:
        hearth_pg_param_text_array(params, values, n);
        break;
    case HEARTH_COLUMN_BYTES:
        hearth_pg_param_bytes_array(params, values, n);
        break;
    case HEARTH_COLUMN_UUID:
        hearth_pg_param_uuid_array(params, values, n);
        break;

    case HEARTH_COLUMN_TEXTS:
    case HEARTH_COLUMN_I32S:
    case HEARTH_COLUMN_I64S:
    case HEARTH_COLUMN_PAIRS:
        HEARTH_BUG("this kind of column cannot be a parameter");
    }
}

void hearth_pg_param_rows(struct hearth_pg_params *params, const struct hearth_row_type *type,
                          const void *rows, size_t n)
{
    assert(rows != NULL || n == 0);

    for (size_t i = 0; i < type->n_columns; i++) {
        const struct hearth_column *column = &type->columns[i];
        char *values = hearth_arena_array(params->arena, n, value_bytes(column->kind));
        if (values == NULL) {
            params->failed = true;
            return;
        }

        gather_values(type, column, rows, n, values);
        add_array_param(params, column->kind, values, n);
    }
}
