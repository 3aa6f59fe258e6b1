/*
 * commit_statements.h -- the prepared statements of a committer (private to the store).
 *
 * A statement is prepared when a pipeline first runs it. Those that insert into the leaves of a day
 * name the leaves, so there are some for each of two days; a later day takes the place of the
 * older one. On a node, there is one for each shard.
 *
 * Threads: confined to the committer.
 */
#ifndef HEARTH_STORE_COMMIT_STATEMENTS_H
#define HEARTH_STORE_COMMIT_STATEMENTS_H

#include "hearth/base/arena.h"

#include "pg/pg.h"

/* Statements, by their number. Those of a leaf are there for each of two days. */
enum hearth_commit_statement {
    HEARTH_STATEMENT_CLAIM,
    HEARTH_STATEMENT_WATERMARKS,
    HEARTH_STATEMENT_PUSH_IDS,
    HEARTH_STATEMENT_LEAVES, /* the first one of a day */
    /* Within a day: one chunk; 1, 2, 4 and 8 profiles. */
    HEARTH_STATEMENT_CHUNK = 0,
    HEARTH_STATEMENT_ROWS = 1,
    HEARTH_STATEMENTS_EACH_DAY = 5,
};
#define HEARTH_MAX_INSERT_ROWS 8

/* Shards with a statement, on a node. If there are more, all are forgotten, and begin again. */
#define HEARTH_MAX_PREPARED_SHARDS 64

/* Whether the function by which Citus locks shards for a move takes all locks of an INSERT. */
enum hearth_shard_locks {
    HEARTH_LOCKS_NOT_TRIED,
    HEARTH_LOCKS_BY_INSERT,
    HEARTH_LOCKS_BY_FUNCTION,
};

/* What a committer has prepared on its connection; zero: nothing. */
struct hearth_commit_statements {
    uint64_t n_connects; /* of the connection that has them */
    uint32_t prepared;   /* a bit for each */
    int32_t days[2];     /* whose leaves they write to */
    unsigned n_scripts;  /* batches that are sent as scripts, since one was refused */
    int64_t shards[HEARTH_MAX_PREPARED_SHARDS]; /* that have a statement: batch_shards.c */
    size_t n_shards;                            /* 0: names may be taken by old ones */
    enum hearth_shard_locks locks;              /* of the connection */
};

/* One pipeline that runs them. */
struct hearth_statement_run {
    struct hearth_commit_statements *statements;
    struct hearth_pg *pg; /* direct */
    int32_t day;          /* of the leaves */
    uint32_t prepared;    /* before the pipeline and by it */
    enum hearth_pg_fault *ret_fault;
    struct hearth_err *err;
};

/* Whether a day has statements, or gets them: those before the two latest ones do not. */
bool hearth_statements_take_day(const struct hearth_commit_statements *statements, int32_t day);

/*
 * Before the pipeline: choose the statements of run->pg and run->day. Those of another connection
 * are forgotten, and dropped if the day is new.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_statements_choose(struct hearth_statement_run *run);
/* After the pipeline was committed: remember what it has prepared. */
void hearth_statements_keep(const struct hearth_statement_run *run);
/* After a pipeline that failed, on an open connection: drop all, whichever are there. */
HEARTH_MUST_CHECK enum hearth_status hearth_statements_drop(struct hearth_statement_run *run);

/* In the pipeline: run a statement that is no insert into a leaf. */
HEARTH_MUST_CHECK enum hearth_status hearth_statements_run(struct hearth_statement_run *run,
                                                           enum hearth_commit_statement statement,
                                                           const char *sql,
                                                           const struct hearth_pg_params *params);

/* Rows for COPY, to be inserted into the leaf of the day. */
struct hearth_leaf_rows {
    const char *parent, *columns; /* names, with commas */
    int n_columns;
    enum hearth_commit_statement statement; /* for a single row; those for 2, 4, .. follow */
    int most;                               /* rows of one statement */
    struct hearth_str bytes;                /* borrowed until the pipeline ends */
    size_t n;
};

/* In the pipeline: insert the rows, as many as possible by each statement. */
HEARTH_MUST_CHECK enum hearth_status hearth_statements_insert(struct hearth_statement_run *run,
                                                              const struct hearth_leaf_rows *rows);

#endif
