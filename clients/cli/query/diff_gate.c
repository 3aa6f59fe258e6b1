/* diff_gate.c -- reads conditions on a diff, and checks them (contract: diff_gate.h). */
#include "diff_gate.h"

#include "flame_cells.h"
#include "text.h"

#include <math.h>
#include <stdio.h>

/* The server judges functions with at least this share of a side. */
#define LEAST_SHARE 0.001

enum diff_measure {
    RELATIVE_SHARE,
    POINTS,
    VALUE,
};

struct diff_unit {
    const char *name;
    enum diff_measure measure;
    const char *of; /* the unit of profile types whose values it measures; NULL: any other */
    double factor;
};

static const struct diff_unit g_units[] = {
    {"%", RELATIVE_SHARE, NULL, 1},
    {"pt", POINTS, NULL, 1},
    {"ns", VALUE, "nanoseconds", 1},
    {"us", VALUE, "nanoseconds", 1e3},
    {"ms", VALUE, "nanoseconds", 1e6},
    {"s", VALUE, "nanoseconds", 1e9},
    {"min", VALUE, "nanoseconds", 60e9},
    {"h", VALUE, "nanoseconds", 3600e9},
    {"B", VALUE, "bytes", 1},
    {"kB", VALUE, "bytes", 1e3},
    {"MB", VALUE, "bytes", 1e6},
    {"GB", VALUE, "bytes", 1e9},
    {"KiB", VALUE, "bytes", 1024.0},
    {"MiB", VALUE, "bytes", 1048576.0},
    {"GiB", VALUE, "bytes", 1073741824.0},
    {"", VALUE, NULL, 1},
};

/* ---- reading ---- */

static enum hearth_status refuse_condition(struct cli *cli, const char *text)
{
    return HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT,
                       "--fail-on \"%.200s\" is not of the form \"self(REGEX) > +2%%\": self or "
                       "total, a function, >, >=, < or <=, a number, and %%, pt or a unit like ms "
                       "or MB",
                       text);
}

/* Reads what follows the function: "> +2%". */
static bool read_comparison(const char *at, struct diff_gate *gate)
{
    at += strspn(at, " ");
    gate->is_above = at[0] == '>';
    if (at[0] != '>' && at[0] != '<') {
        return false;
    }
    gate->or_equal = at[1] == '=';
    at += gate->or_equal ? 2 : 1;

    at += strspn(at, " ");
    size_t n = strspn(at, "+-.0123456789");
    if (!hearth_str_to_double(hearth_str_n(at, n), &gate->limit)) {
        return false;
    }
    at += n;

    at += strspn(at, " ");
    struct hearth_str unit = hearth_str_c(at);
    while (unit.n > 0 && unit.p[unit.n - 1] == ' ') {
        unit.n--;
    }
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_units); i++) {
        if (hearth_str_eq_c(unit, g_units[i].name)) {
            gate->unit = &g_units[i];
            gate->limit *= g_units[i].factor;
        }
    }

    return gate->unit != NULL;
}

static enum hearth_status read_gate(struct cli *cli, const char *text, struct diff_gate *gate)
{
    const char *open = strchr(text, '('), *close = strrchr(text, ')');
    struct hearth_str name = hearth_str_n(text, open == NULL ? 0 : (size_t)(open - text));

    gate->text = text;
    gate->is_total = hearth_str_eq_c(name, "total");
    if ((!gate->is_total && !hearth_str_eq_c(name, "self")) || close == NULL || close <= open + 1 ||
        !read_comparison(close + 1, gate)) {
        return refuse_condition(cli, text);
    }

    return hearth_pattern_new(hearth_str_n(open + 1, (size_t)(close - open - 1)), "--fail-on",
                              &gate->function, &cli->err);
}

enum hearth_status diff_gates_read(struct cli *cli, struct diff_gates *ret)
{
    *ret = (struct diff_gates){0};
    if (cli->fail_on.n == 0 && (cli->junit != NULL || cli->annotate != NULL)) {
        return HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT,
                           "--junit and --annotate report conditions: give --fail-on");
    }
    ret->v = hearth_arena_calloc(&cli->arena, cli->fail_on.n, sizeof ret->v[0]);
    if (ret->v == NULL) {
        return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
    }
    for (; ret->n < cli->fail_on.n; ret->n++) {
        HEARTH_TRY(read_gate(cli, cli->fail_on.v[ret->n], &ret->v[ret->n]));
    }

    return HEARTH_OK;
}

void diff_gates_release(struct diff_gates *gates)
{
    for (size_t i = 0; i < gates->n; i++) {
        hearth_pattern_free(gates->v[i].function);
    }
}

/* ---- checking ---- */

static enum hearth_status check_unit(struct cli *cli, const struct diff_gate *gate,
                                     const struct diff *d)
{
    bool is_time = hearth_str_eq_c(d->unit, "nanoseconds");
    bool is_plain = !is_time && !hearth_str_eq_c(d->unit, "bytes");
    const char *of = gate->unit->of;

    if (gate->unit->measure == VALUE && (of == NULL ? !is_plain : !hearth_str_eq_c(d->unit, of))) {
        return HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT,
                           "--fail-on \"%.200s\": the profile is measured in %.*s; allowed units: "
                           "%s, %% and pt",
                           gate->text, (int)d->unit.n, d->unit.p,
                           is_plain  ? "none"
                           : is_time ? "ns to h"
                                     : "B to GiB");
    }

    return HEARTH_OK;
}

/* How much a function changed, in the unit's measure. A new function grew without bound. */
static double measure_change(const struct diff_gate *gate, const struct diff *d,
                             const int64_t values[2])
{
    double base = diff_share(d, 0, (double)values[0]), now = diff_share(d, 1, (double)values[1]);

    switch (gate->unit->measure) {
    case RELATIVE_SHARE:
        return base > 0 ? 100 * (now - base) / base : now > 0 ? HUGE_VAL : 0;
    case POINTS:
        return 100 * (now - base);
    case VALUE:
        return (double)values[1] - (double)values[0];
    }

    return 0;
}

/* The q of a change; 1: not judged. */
static double find_q(const struct diff_gate *gate, const struct diff *d, const struct diff_row *row)
{
    double self_q = row->judged != NULL ? row->judged->q : 1;
    double q = gate->is_total ? diff_total_q(d, row) : self_q;
    const Hearth__V1__RateChange *rate = d->noise->rate;

    return gate->unit->measure == VALUE && rate != NULL && rate->p < q ? rate->p : q;
}

/* A function that is smaller on both sides changes by chance, whether noise is known or not. */
static bool is_large_enough(const struct diff_gate *gate, const struct diff *d,
                            const struct diff_row *row)
{
    const int64_t *values = gate->is_total ? row->total : row->self;

    return diff_share(d, 0, (double)values[0]) >= LEAST_SHARE ||
           diff_share(d, 1, (double)values[1]) >= LEAST_SHARE;
}

static bool is_crossed(const struct diff_gate *gate, const struct diff *d,
                       const struct diff_row *row, double change)
{
    bool is_beyond = gate->is_above ? change > gate->limit : change < gate->limit;

    return (is_beyond || (gate->or_equal && change == gate->limit)) &&
           is_large_enough(gate, d, row) &&
           (d->noise == NULL || find_q(gate, d, row) <= FLAME_BEYOND_Q);
}

/* "main.parse: self 4.10% -> 5.06%, +23.41%, q = 0.0003", in the arena. */
static char *describe_crossing(struct cli *cli, const struct diff_gate *gate, const struct diff *d,
                               const struct diff_row *row, double change)
{
    const int64_t *values = gate->is_total ? row->total : row->self;
    char sides[2][48], by[64], q[48] = "noise is not known";
    struct hearth_buf name;

    for (int i = 0; i < 2; i++) {
        if (gate->unit->measure == VALUE) {
            cli_value((double)values[i], d->unit, sides[i]);
        } else {
            cli_percent((double)values[i], d->whole[i], false, sides[i]);
        }
    }
    if (gate->unit->measure == VALUE) {
        char text[48];
        cli_value(change, d->unit, text);
        (void)snprintf(by, sizeof by, "%s%s", change > 0 ? "+" : "", text);
    } else {
        (void)snprintf(by, sizeof by, isinf(change) ? "new" : "%+.2f%s", change,
                       gate->unit->measure == POINTS ? " pt" : "%");
    }
    if (d->noise != NULL) {
        (void)snprintf(q, sizeof q, "q = %.2g", find_q(gate, d, row));
    }
    hearth_buf_init(&name, 0);
    cli_fit(hearth_str_c(row->name), 200, false, &name);
    char *ret = hearth_arena_printf(&cli->arena, "%.*s: %s %s -> %s, %s, %s", (int)name.n,
                                    name.n > 0 ? name.p : "", gate->is_total ? "total" : "self",
                                    sides[0], sides[1], by, q);
    hearth_buf_release(&name);

    return ret;
}

size_t diff_gate_n_listed(const struct diff_gate *gate)
{
    return gate->n_crossed < DIFF_GATE_LISTED ? gate->n_crossed : DIFF_GATE_LISTED;
}

enum hearth_status diff_gates_check(struct cli *cli, struct diff_gates *gates, const struct diff *d,
                                    const struct diff_row *rows, size_t n_rows)
{
    for (size_t i = 0; i < gates->n; i++) {
        struct diff_gate *gate = &gates->v[i];
        HEARTH_TRY(check_unit(cli, gate, d));
        for (size_t k = 0; k < n_rows; k++) {
            const struct diff_row *row = &rows[k];
            if (!hearth_pattern_occurs(gate->function, hearth_str_c(row->name))) {
                continue;
            }
            gate->n_matched++;
            double change = measure_change(gate, d, gate->is_total ? row->total : row->self);
            if (!is_crossed(gate, d, row, change)) {
                continue;
            }
            if (gate->n_crossed < DIFF_GATE_LISTED) {
                gate->functions[gate->n_crossed] = row->name;
                gate->crossings[gate->n_crossed] = describe_crossing(cli, gate, d, row, change);
            }
            gate->n_crossed++;
        }
    }

    return cli->arena.refused ? HEARTH_FAIL_ARENA(&cli->err, &cli->arena) : HEARTH_OK;
}
