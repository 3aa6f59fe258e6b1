/*
 * listing.h -- tables as the commands print them: rows of typed values below the columns of columns.def.
 *
 * A command begins a listing, adds the cells of each row in the order of its columns, and ends it. How it is printed
 * is the matter of -o: an aligned table, jsonl, csv (RFC 4180), tsv, yaml, or, with -o json, the answer itself. The
 * names, kinds and order of columns are a contract: docs/reference/cli-columns.md is made of columns.def.
 *
 * Ownership: texts are kept, as long as the listing lives; answers and the arena of the client live longer.
 * Errors: a failed allocation is reported by cli_list_end.
 * Threads: not thread-safe.
 */
#ifndef HEARTH_CLIENTS_LISTING_H
#define HEARTH_CLIENTS_LISTING_H

#include "hearth/pb/types/v1/types.pb-c.h"

#include "cli.h"

/* The values of a column; in parentheses: in jsonl, csv, tsv and yaml. */
enum cli_column_kind {
    CLI_COLUMN_TEXT,  /* (text) */
    CLI_COLUMN_ID,    /* (text); it is to be copied, and is not cut while columns can be left out */
    CLI_COLUMN_COUNT, /* a whole number (the number) */
    CLI_COLUMN_VALUE, /* an amount in the unit of its cell, one unit for the whole column (a number in that unit) */
    CLI_COLUMN_DURATION, /* (nanoseconds) */
    CLI_COLUMN_BYTES,    /* (bytes) */
    CLI_COLUMN_PERCENT,  /* (a number from 0 to 100) */
    CLI_COLUMN_POINTS,   /* a change of a percentage, with its sign (a number) */
    CLI_COLUMN_CHANCE,   /* a probability (a number from 0 to 1) */
    CLI_COLUMN_TIME,     /* (RFC 3339 in UTC) */
    CLI_COLUMN_CLOCK,    /* the same, in the table short and in the zone of the client, for axes */
    CLI_COLUMN_FLAG,     /* yes or no (true or false) */
    CLI_COLUMN_BAR,      /* a share as a bar (left out) */
};

enum cli_column_when {
    CLI_ALWAYS,
    CLI_IF_ANY,    /* not in a table without any value in it */
    CLI_IF_VARIES, /* not in a table whose rows all have the same text in it, but -o wide */
    CLI_IF_WIDE    /* not in a table but -o wide */
};

static inline bool cli_is_text(enum cli_column_kind kind)
{
    return kind == CLI_COLUMN_TEXT || kind == CLI_COLUMN_ID;
}

struct cli_column {
    const char *name, *head;
    enum cli_column_kind kind;
    enum cli_column_when when;
    const char *absent; /* shown in a table where there is no value */
};

struct cli_cell {
    struct hearth_str text; /* or the unit of a number */
    int64_t number;
    double real;
    bool is_real, is_absent;
};

#define CLI_MAX_COLUMNS 24

struct cli_listing {
    struct cli *cli;
    const struct cli_column *columns;
    size_t n_columns, n_cells;
    struct hearth_str unit;  /* of values that have none of their own */
    const char *last_head;   /* of the last column; NULL: that of columns.def */
    const char *empty;       /* said instead of a table without rows; NULL: nothing */
    struct hearth_buf cells; /* struct cli_cell */
    struct hearth_buf foot;  /* lines below the table; not in other formats */
    /* `foot` is a picture of the rows: a table is for -o wide, --columns and --no-headers. */
    bool is_drawn;
};

/* The columns of a command, by its words; *ret_n is 0 if it prints no listing. */
const struct cli_column *cli_columns_of(const char *words, size_t *ret_n);
/* Refuses names in --columns that the command does not have, with the nearest, and options of tables that the format
 * does not have. */
HEARTH_MUST_CHECK enum cli_exit cli_check_columns(struct cli *cli, const char *words);

/* ---- rows ---- */

/* Begins the listing of the command that runs. */
void cli_list_begin(struct cli *cli, struct cli_listing *ret);
/* Begins the listing of another command. */
void cli_list_begin_like(struct cli *cli, const char *words, struct cli_listing *ret);
void cli_list_text(struct cli_listing *list, const char *text);
/* A text in the arena that the caller has made; NULL: the arena is full. */
void cli_list_str(struct cli_listing *list, struct hearth_str text);
/* A number of any kind but times and texts. */
void cli_list_number(struct cli_listing *list, int64_t number);
void cli_list_real(struct cli_listing *list, double number);
/* A value with a unit of its own. */
void cli_list_value(struct cli_listing *list, int64_t number, struct hearth_str unit);
/* 100 * part / whole. */
void cli_list_share(struct cli_listing *list, double part, double whole);
/* Adds a time in milliseconds; 0 stands for no time. */
void cli_list_time(struct cli_listing *list, int64_t ms);
void cli_list_absent(struct cli_listing *list);
/* Moves the contents of a buffer into the arena and adds them as a text. Releases the buffer. */
void cli_list_take(struct cli_listing *list, struct hearth_buf *text);

/* Appends labels as a selector, {name="value"}: exact texts. */
void cli_put_labels(Types__V1__LabelPair *const *labels, size_t n, struct hearth_buf *out);
void cli_list_labels(struct cli_listing *list, Types__V1__LabelPair *const *labels, size_t n);

/* Releases a listing that is not printed. */
void cli_list_drop(struct cli_listing *list);
/* Appends the listing, which is not -o json, and releases it. */
HEARTH_MUST_CHECK enum hearth_status cli_list_put(struct cli_listing *list, struct hearth_buf *out);
/* Prints the listing as -o says, and releases it. `answer` is printed by -o json. */
enum cli_exit cli_list_end(struct cli_listing *list, const ProtobufCMessage *answer);

/* ---- listing_table.c, listing_formats.c ---- */

/* Columns that are printed: their indexes. */
struct cli_shown {
    size_t at[CLI_MAX_COLUMNS];
    size_t n;
};

static inline const struct cli_cell *cli_cell_at(const struct cli_listing *list, size_t row,
                                                 size_t column)
{
    return (const struct cli_cell *)(const void *)list->cells.p + row * list->n_columns + column;
}
/* Appends the table. On a terminal, columns that do not fit are left out, with a note. */
HEARTH_MUST_CHECK enum hearth_status cli_put_table(const struct cli_listing *list, size_t n_rows,
                                                   const struct cli_shown *shown,
                                                   struct hearth_buf *out);
/* Appends jsonl, csv, tsv or yaml. */
void cli_put_format(const struct cli_listing *list, size_t n_rows, const struct cli_shown *shown,
                    struct hearth_buf *out);

#endif
