/*
 * diff_rows.h -- the answer of a diff, read as nodes and as a row for each function.
 *
 * Side 0 is the base, which the messages call left; side 1 is what is compared with it.
 *
 * Threads: not thread-safe.
 */
#ifndef HEARTH_CLIENTS_DIFF_ROWS_H
#define HEARTH_CLIENTS_DIFF_ROWS_H

#include "hearth/pb/hearth/v1/query.pb-c.h"

#include "cli.h"

struct diff_node {
    int64_t x[2], total[2], self[2]; /* of the sides */
    size_t name, parent;
    double q; /* 1: not judged; 0: noise is not known */
};

struct diff {
    const Querier__V1__FlameGraphDiff *graph;
    struct diff_node **levels;
    size_t *n_nodes; /* by level */
    double whole[2];
    struct hearth_str unit;
    const Hearth__V1__DiffNoise *noise; /* NULL: noise is not known */
};

/* What a function has on each side; a recursive call counts once in total. */
struct diff_row {
    const char *name;
    size_t name_id; /* in the graph */
    int64_t self[2], total[2];
    double change;                               /* of its self, in shares */
    const Hearth__V1__FunctionChange *judged;    /* of its self; NULL: not judged */
    const Hearth__V1__TotalChange *total_judged; /* of its total; NULL: not judged */
};

/*
 * Reads an answer, which the diff borrows. The message of INTERNAL says that the answer is
 * malformed; NO_MEMORY.
 */
HEARTH_MUST_CHECK enum hearth_status diff_read(struct cli *cli,
                                               const Hearth__V1__DiffResponse *answer,
                                               struct hearth_str unit, struct diff *ret);
/* The rows of all functions, changes beyond noise first, then by size; in the arena. NO_MEMORY. */
HEARTH_MUST_CHECK enum hearth_status diff_make_rows(struct cli *cli, const struct diff *d,
                                                    struct diff_row **ret, size_t *ret_n);
/* A value as a share of the side's total. */
double diff_share(const struct diff *d, int side, double value);
bool diff_is_beyond_noise(const struct diff_row *row);
/* The q of a row's total; 1: not judged; 0: noise is not known. */
double diff_total_q(const struct diff *d, const struct diff_row *row);

/* What a diff compares: the base and the other side. */
struct diff_sides {
    bool are_files; /* the arguments; otherwise selections */
    const char *type;
    Hearth__V1__Selection selections[2];
};

/* ---- diff_screen.c ---- */

/*
 * Shows the interactive flame graph in the colours of the diff until its user quits, and prints what
 * was copied. CLI_FAILED and others, with a message, if the terminal fails.
 */
enum cli_exit diff_run_screen(struct cli *cli, const struct diff *d, const struct diff_row *rows,
                              size_t n_rows, const struct diff_sides *sides);

/* ---- diff_files.c ---- */

/*
 * Compares the two files that are the arguments, as the server compares selections, but without
 * a judgement of noise. INVALID_ARGUMENT if one cannot be read, or the second one does not have the
 * type of the first; NO_MEMORY.
 */
HEARTH_MUST_CHECK enum hearth_status diff_ask_files(struct cli *cli, const char **ret_type,
                                                    Hearth__V1__DiffResponse **ret);

#endif
