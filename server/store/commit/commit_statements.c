/* commit_statements.c -- preparing and running statements (contract: commit_statements.h). */
#include "commit/commit_statements.h"

#include "session/partitions.h"

#include <assert.h>
#include <stdio.h>

/* ---- days and connections ---- */

/* The place of a day among those with statements; -1: it gets none. */
static int find_day_place(const struct hearth_commit_statements *statements, int32_t day)
{
    const int32_t *days = statements->days;
    int older = days[0] <= days[1] ? 0 : 1;

    if (days[0] == day || days[1] == day) {
        return days[0] == day ? 0 : 1;
    }

    /* Only a later day takes the place of another one, so statements are seldom prepared. */
    return day > days[older] ? older : -1;
}

bool hearth_statements_take_day(const struct hearth_commit_statements *statements, int32_t day)
{
    return find_day_place(statements, day) >= 0;
}

enum hearth_status hearth_statements_drop(struct hearth_statement_run *run)
{
    run->statements->prepared = run->prepared = 0;
    return hearth_pg_script(run->pg, "DEALLOCATE ALL", run->ret_fault, run->err);
}

enum hearth_status hearth_statements_choose(struct hearth_statement_run *run)
{
    struct hearth_commit_statements *statements = run->statements;
    int place = find_day_place(statements, run->day);
    assert(place >= 0);

    if (statements->n_connects != run->pg->n_connects) {
        statements->n_connects = run->pg->n_connects;
        statements->prepared = 0;
    }

    if (statements->days[place] != run->day) {
        statements->days[place] = run->day;
        if (statements->prepared != 0) {
            HEARTH_TRY(hearth_statements_drop(run));
        }
    }

    run->prepared = statements->prepared;

    return HEARTH_OK;
}

void hearth_statements_keep(const struct hearth_statement_run *run)
{
    run->statements->prepared = run->prepared;
}

/* ---- running ---- */

static void name_statement(unsigned number, char name[16])
{
    (void)snprintf(name, 16, "hearth_%u", number);
}

static bool lacks_statement(const struct hearth_statement_run *run, unsigned number)
{
    return (run->prepared >> number & 1) == 0;
}

static enum hearth_status prepare_statement(struct hearth_statement_run *run, unsigned number,
                                            const char *sql)
{
    char name[16];

    name_statement(number, name);
    run->prepared |= 1u << number;

    return hearth_pg_pipeline_prepare(run->pg, name, sql, run->ret_fault, run->err);
}

static enum hearth_status run_statement(struct hearth_statement_run *run, unsigned number, int n,
                                        const char *const *values, const int *lengths)
{
    char name[16];

    name_statement(number, name);

    return hearth_pg_pipeline_run(run->pg, name, n, values, lengths, run->ret_fault, run->err);
}

enum hearth_status hearth_statements_run(struct hearth_statement_run *run,
                                         enum hearth_commit_statement statement, const char *sql,
                                         const struct hearth_pg_params *params)
{
    assert(statement < HEARTH_STATEMENT_LEAVES);

    if (params->failed) {
        return HEARTH_FAIL_ARENA(run->err, params->arena);
    }

    if (lacks_statement(run, statement)) {
        HEARTH_TRY(prepare_statement(run, statement, sql));
    }

    return run_statement(run, statement, params->n, params->values, params->lengths);
}

/* ---- rows ---- */

static uint32_t read_be(const char *at, size_t n)
{
    uint32_t value = 0;
    for (size_t i = 0; i < n; i++) {
        value = value << 8 | (uint8_t)at[i];
    }
    return value;
}

/*
 * Take the fields of n rows for COPY as parameters, which have the same form. Before the fields of
 * a row stands their number in two bytes; before each, its length in four, or -1. Returns their
 * end.
 */
static const char *take_rows(const char *at, int n, int n_columns, const char **values,
                             int *lengths)
{
    for (int i = 0; i < n * n_columns; i++) {
        at += i % n_columns == 0 ? 2 : 0;
        int32_t length = (int32_t)read_be(at, 4);
        at += 4;
        values[i] = length < 0 ? NULL : at;
        lengths[i] = length < 0 ? 0 : length;
        at += lengths[i];
    }

    return at;
}

static enum hearth_status prepare_insert(struct hearth_statement_run *run, unsigned number,
                                         const struct hearth_leaf_rows *rows, int n)
{
    char leaf[64];
    HEARTH_CLEANUP(hearth_buf_release) struct hearth_buf sql;

    hearth_buf_init(&sql, 0);
    hearth_partition_name(rows->parent, run->day, leaf);
    hearth_buf_printf(&sql, "INSERT INTO %s (%s) VALUES ", leaf, rows->columns);
    for (int i = 0; i < n * rows->n_columns; i++) {
        const char *before = i == 0 ? "(" : i % rows->n_columns == 0 ? "),(" : ",";
        hearth_buf_printf(&sql, "%s$%d", before, i + 1);
    }
    hearth_buf_append(&sql, ")", sizeof ")");

    if (hearth_buf_failed(&sql)) {
        return HEARTH_FAIL(run->err, HEARTH_NO_MEMORY, "no memory for a statement of a batch");
    }

    return prepare_statement(run, number, sql.p);
}

enum hearth_status hearth_statements_insert(struct hearth_statement_run *run,
                                            const struct hearth_leaf_rows *rows)
{
    const char *values[HEARTH_PG_MAX_FIELDS], *at = rows->bytes.p;
    int lengths[HEARTH_PG_MAX_FIELDS], place = find_day_place(run->statements, run->day);
    unsigned first =
        HEARTH_STATEMENT_LEAVES + HEARTH_STATEMENTS_EACH_DAY * (unsigned)place + rows->statement;
    size_t n_left = rows->n;

    assert(place >= 0 && rows->most * rows->n_columns <= HEARTH_PG_MAX_FIELDS);
    for (int n = rows->most; n_left > 0; n_left -= (size_t)n) {
        while ((size_t)n > n_left) {
            n /= 2;
        }
        unsigned number = first + (unsigned)__builtin_ctz((unsigned)n);
        at = take_rows(at, n, rows->n_columns, values, lengths);
        if (lacks_statement(run, number)) {
            HEARTH_TRY(prepare_insert(run, number, rows, n));
        }
        HEARTH_TRY(run_statement(run, number, n * rows->n_columns, values, lengths));
    }

    assert((size_t)(at - rows->bytes.p) == rows->bytes.n);

    return HEARTH_OK;
}
