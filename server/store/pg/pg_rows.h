/*
 * pg_rows.h -- rows of a result as structs: which column is which member (private to the store).
 *
 * A row type is a table of the columns in the SELECT list of its statement, in the same order:
 *
 *     #define COLUMN(kind, member) HEARTH_COLUMN(kind, struct hearth_adhoc, member)
 *     static const struct hearth_column columns[] = {COLUMN(TEXT, id),
 *                                                    COLUMN(I64, uploaded_at_ms)};
 *     static const struct hearth_row_type adhoc_rows =
 *         HEARTH_ROW_TYPE(columns, struct hearth_adhoc);
 *
 * Members that no column names are zero. NULL is 0, false or an empty text; it is not allowed for
 * an array.
 *
 * A result with another number of columns than its row type is a mistake in this layer: INTERNAL,
 * with the names of the result's columns; an assertion in builds that have them.
 *
 * Ownership: rows and their texts are copies in the arena. Parameters are borrowed; callers make
 *            them once, before a connection is taken.
 * Threads:   safe, each call with its own arena.
 * Errors:    of the statement; NO_MEMORY; CORRUPT for an array with NULL elements or several
 *            dimensions, and for pairs with more names than values or the reverse.
 */
#ifndef HEARTH_STORE_PG_ROWS_H
#define HEARTH_STORE_PG_ROWS_H

#include "pg/pg.h"

#include <stddef.h>

enum hearth_column_kind {
    HEARTH_COLUMN_I32,   /* int4: int32_t, or an enumeration */
    HEARTH_COLUMN_I64,   /* int8: int64_t */
    HEARTH_COLUMN_BOOL,  /* int4: bool */
    HEARTH_COLUMN_TEXT,  /* text: struct hearth_str */
    HEARTH_COLUMN_BYTES, /* bytea: struct hearth_str */
    HEARTH_COLUMN_TEXTS, /* text[]: struct hearth_str *, and its count; results only */
    HEARTH_COLUMN_I32S,  /* int4[]: int32_t *, and its count; results only */
    HEARTH_COLUMN_I64S,  /* int8[]: int64_t *, and its count; results only */
    /* Two text[] columns, names and values: struct hearth_property *, its count; results only */
    HEARTH_COLUMN_PAIRS,
    HEARTH_COLUMN_UUID, /* uuid: struct hearth_hash128; parameters only */
};

struct hearth_column {
    enum hearth_column_kind kind;
    size_t offset;
    size_t n_offset; /* of the count of a list */
};

/* Size of the member for each kind: a member of another size does not compile. */
#define HEARTH_COLUMN_BYTES_OF_I32   sizeof(int32_t)
#define HEARTH_COLUMN_BYTES_OF_I64   sizeof(int64_t)
#define HEARTH_COLUMN_BYTES_OF_BOOL  sizeof(bool)
#define HEARTH_COLUMN_BYTES_OF_TEXT  sizeof(struct hearth_str)
#define HEARTH_COLUMN_BYTES_OF_BYTES sizeof(struct hearth_str)
#define HEARTH_COLUMN_BYTES_OF_TEXTS sizeof(struct hearth_str *)
#define HEARTH_COLUMN_BYTES_OF_I32S  sizeof(int32_t *)
#define HEARTH_COLUMN_BYTES_OF_I64S  sizeof(int64_t *)
#define HEARTH_COLUMN_BYTES_OF_PAIRS sizeof(struct hearth_property *)
#define HEARTH_COLUMN_BYTES_OF_UUID  sizeof(struct hearth_hash128)
#define HEARTH_COLUMN_OFFSET(kind, type, member) \
    (offsetof(type, member) +                    \
     0 * sizeof(char[sizeof(((type *)0)->member) == HEARTH_COLUMN_BYTES_OF_##kind ? 1 : -1]))

#define HEARTH_COLUMN(kind, type, member)                                 \
    {                                                                     \
        HEARTH_COLUMN_##kind, HEARTH_COLUMN_OFFSET(kind, type, member), 0 \
    }
#define HEARTH_COLUMN_LIST(kind, type, member, n_member)                                         \
    {                                                                                            \
        HEARTH_COLUMN_##kind, HEARTH_COLUMN_OFFSET(kind, type, member), offsetof(type, n_member) \
    }

struct hearth_row_type {
    const struct hearth_column *columns;
    size_t n_columns, row_bytes;
};

#define HEARTH_ROW_TYPE(columns, type)                   \
    {                                                    \
        columns, HEARTH_ARRAY_LEN(columns), sizeof(type) \
    }

/* One int8 column, stored in an int64_t; one int4 column, in an int32_t. */
extern const struct hearth_row_type hearth_i64_rows;
extern const struct hearth_row_type hearth_i32_rows;

/* ---- a statement ---- */

/* A statement, its row type and the owner of its rows. All members are borrowed. */
struct hearth_pg_query {
    const char *sql;
    const struct hearth_pg_params *params; /* may be NULL */
    const struct hearth_row_type *type;    /* NULL: of hearth_pg_run, rows are ignored */
    struct hearth_cancel *cancel;          /* may be NULL */
    struct hearth_arena *arena;
};

struct hearth_pg_selected {
    void *rows; /* structs of the row type; NULL without a type */
    size_t n;   /* rows of the result */
};

/*
 * Run the statement once, on a connection that the caller holds. Rows are ignored without a type.
 * ret_fault: may be NULL.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_pg_run(struct hearth_pg *pg, const struct hearth_pg_query *query,
                                 struct hearth_pg_selected *ret, enum hearth_pg_fault *ret_fault,
                                 struct hearth_err *err);

/* Run it and return its rows: ret_rows is the address of a pointer to the struct of the type. */
HEARTH_MUST_CHECK
enum hearth_status hearth_pg_select(struct hearth_pg *pg, const struct hearth_pg_query *query,
                                    void *ret_rows, size_t *ret_n, enum hearth_pg_fault *ret_fault,
                                    struct hearth_err *err);

/* ---- parameters ---- */

/*
 * Add an array parameter for each column of `type`, with the values of all n rows, for unnest:
 * int4[] (I32, BOOL), int8[], text[], bytea[] or uuid[]. A refused allocation marks params as
 * failed.
 */
void hearth_pg_param_rows(struct hearth_pg_params *params, const struct hearth_row_type *type,
                          const void *rows, size_t n);

#endif
