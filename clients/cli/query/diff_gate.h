/*
 * diff_gate.h -- the conditions of `hearth diff --fail-on`, and reports of those that are crossed.
 *
 * A condition is  self(REGEX) > +2%  or  total(REGEX) ..., with >, >=, < or <=. It holds for each
 * function whose name REGEX matches (RE2, unanchored). The number is signed, with its unit:
 *
 *     %                      change of the function's share, in percent of the share of the base
 *     pt                     change of the share in points
 *     ns us ms s min h       change of the value, for profiles of time
 *     B kB MB GB KiB MiB GiB change of the value, for profiles of memory
 *     none                   change of the value, for all others
 *
 * A function with less than 0.1 % of both sides crosses nothing. Where noise is known, neither does a
 * change within noise; a value is also beyond noise if the total per second is.
 *
 * Threads: not thread-safe.
 */
#ifndef HEARTH_CLIENTS_DIFF_GATE_H
#define HEARTH_CLIENTS_DIFF_GATE_H

#include "hearth/selector/pattern.h"

#include "cli.h"
#include "diff_rows.h"

/* Crossings that are reported by name; the others are counted. */
#define DIFF_GATE_LISTED 20

struct diff_unit; /* a row of the table above */

/* A line of source. */
struct diff_place {
    const char *path; /* as the profile has it, relative to the CI job's clone; NULL: unknown */
    int64_t line;     /* from 1 */
};

struct diff_gate {
    const char *text; /* as given */
    bool is_total, is_above, or_equal;
    double limit; /* in percent, points, nanoseconds, bytes or samples */
    const struct diff_unit *unit;
    struct hearth_pattern *function;
    size_t n_matched, n_crossed;             /* functions */
    char *crossings[DIFF_GATE_LISTED];       /* a sentence each, in the arena */
    const char *functions[DIFF_GATE_LISTED]; /* of the crossings */
    struct diff_place places[DIFF_GATE_LISTED];
};

struct diff_gates {
    struct diff_gate *v;
    size_t n;
};

/* Reads --fail-on. INVALID_ARGUMENT names what is wrong; NO_MEMORY. Release in every case. */
HEARTH_MUST_CHECK enum hearth_status diff_gates_read(struct cli *cli, struct diff_gates *ret);
void diff_gates_release(struct diff_gates *gates);

/* Finds the crossings. INVALID_ARGUMENT if a unit does not fit the profile type; NO_MEMORY. */
HEARTH_MUST_CHECK enum hearth_status diff_gates_check(struct cli *cli, struct diff_gates *gates,
                                                      const struct diff *d,
                                                      const struct diff_row *rows, size_t n_rows);

/* Number of crossings that are reported by name. */
size_t diff_gate_n_listed(const struct diff_gate *gate);

/* ---- diff_places.c ---- */

/* Finds the places of the crossings. Errors of a call, or of a file. */
HEARTH_MUST_CHECK enum hearth_status diff_find_places(struct cli *cli, struct diff_gates *gates,
                                                      struct diff_sides *sides);

/* ---- diff_reports.c ---- */

/* Writes a report into a file and releases it. False, with a message, if that failed. */
bool diff_save_report(const char *path, struct hearth_buf *out);

/*
 * Prints the outcome on standard error, and writes it as --junit and --annotate say. `missing` says
 * why nothing was compared; NULL: diff_gates_check has run. Returns CLI_OK, CLI_NO_DATA if `missing`
 * is given, or CLI_FAILED if a condition is crossed or a file cannot be written.
 */
enum cli_exit diff_gates_report(struct cli *cli, const struct diff_gates *gates,
                                const char *missing);

#endif
