/*
 * listing_table.c -- a listing as an aligned table.
 *
 * On a terminal a table fits the width: texts are cut first, down to MIN_TEXT cells, then columns in the middle are left
 * out, which is said. Elsewhere nothing is cut, so that the table does not depend on who reads it.
 */
#include "cli_messages.h"
#include "listing.h"
#include "text.h"

#include <limits.h>
#include <stdio.h>
#include <wchar.h>

enum {
    GAP = 2,
    MIN_TEXT = 12, /* cells that a text keeps */
    MAX_PAD =
        64, /* cells that others are padded to for the sake of a long text, without a terminal */
    MIN_BAR = 10, /* cells of a bar */
    PIPED_BAR = 40,
    MAX_BAR = 120,
};

struct column_look {
    const struct cli_column *column;
    struct hearth_str head, *texts; /* of the rows */
    int width, natural;
    bool is_number;
};

/* ---- texts ---- */

/* The cells of a text without control characters. */
static int count_cells(struct hearth_str text)
{
    mbstate_t state = {0};
    int cells = 0;

    for (size_t at = 0; at < text.n;) {
        wchar_t wide;
        size_t n = mbrtowc(&wide, text.p + at, text.n - at, &state);
        bool is_character = n != 0 && n <= text.n - at;
        int width = is_character ? wcwidth(wide) : -1;
        cells += width < 0 ? ((unsigned char)text.p[at] & 0xc0) != 0x80 : width;
        cells = cells < INT_MAX / 2 ? cells : INT_MAX / 2;
        at += is_character ? n : 1;
    }
    return cells;
}

/* Appends at most `width` cells. Returns how many. */
static int put_cut(struct hearth_str text, int width, struct hearth_buf *out)
{
    int all = count_cells(text), used = 0;
    if (all <= width) {
        hearth_buf_str(out, text);
        return all;
    }

    for (size_t at = 0; at < text.n;) {
        size_t n = 1;
        while (at + n < text.n && ((unsigned char)text.p[at + n] & 0xc0) == 0x80) {
            n++;
        }
        int cells = count_cells(hearth_str_n(text.p + at, n));
        if (used + cells > width - 1) {
            break;
        }
        hearth_buf_append(out, text.p + at, n);
        used += cells;
        at += n;
    }
    hearth_buf_cstr(out, "…");
    return used + 1;
}

/* A unit for the values of a column, if they have one. */
static bool choose_scale(const struct cli_listing *list, size_t n_rows, size_t column,
                         struct hearth_human_scale *ret)
{
    struct hearth_str unit = {0};
    double max = 0;
    bool has_parts = false;

    for (size_t row = 0; row < n_rows; row++) {
        const struct cli_cell *cell = cli_cell_at(list, row, column);
        double size = cell->real < 0 ? -cell->real : cell->real;
        if (cell->is_absent) {
            continue;
        }
        if (unit.p != NULL && !hearth_str_eq(unit, cell->text)) {
            return false;
        }
        unit = cell->text;
        max = size > max ? size : max;
        has_parts = has_parts || size != (double)(int64_t)size;
    }
    hearth_human_scale(max, unit, ret);
    ret->digits = ret->factor > 1 || !has_parts ? ret->digits : 1; /* a mean of nanoseconds */
    return true;
}

static void format_number(const struct cli_column *column, const struct cli_cell *cell,
                          const struct hearth_human_scale *scale, char out[48])
{
    switch (column->kind) {
    case CLI_COLUMN_COUNT:
        cli_count(cell->number, out);
        break;
    case CLI_COLUMN_VALUE:
        if (scale != NULL && scale->unit[0] == '\0' && !cell->is_real) {
            cli_count(cell->number, out);
        } else if (scale != NULL && scale->unit[0] != '\0') {
            hearth_human_scaled(cell->real, scale, out);
        } else {
            cli_value(cell->real, cell->text, out);
        }
        break;
    case CLI_COLUMN_DURATION:
        cli_value(cell->real, HEARTH_STR("nanoseconds"), out);
        break;
    case CLI_COLUMN_BYTES:
        cli_value(cell->real, HEARTH_STR("bytes"), out);
        break;
    case CLI_COLUMN_PERCENT:
        cli_percent(cell->real, 100, false, out);
        break;
    case CLI_COLUMN_POINTS:
        cli_percent(cell->real, 100, true, out);
        break;
    case CLI_COLUMN_CHANCE:
        (void)snprintf(out, 48, "%.2g", cell->real);
        break;
    case CLI_COLUMN_TIME:
        cli_zoned_seconds(cell->number, out);
        break;
    case CLI_COLUMN_CLOCK:
        cli_time(cell->number, out);
        break;
    default:
        (void)snprintf(out, 48, "%s", cell->number != 0 ? "yes" : "no");
    }
}

/* The text of a cell in the arena. */
static struct hearth_str format_cell(const struct cli_listing *list,
                                     const struct cli_column *column, const struct cli_cell *cell,
                                     const struct hearth_human_scale *scale)
{
    char number[48];
    struct hearth_buf text;

    if (cell->is_absent) {
        return hearth_str_c(column->absent);
    }
    if (column->kind == CLI_COLUMN_BAR) {
        return HEARTH_STR("");
    }
    if (!cli_is_text(column->kind)) {
        format_number(column, cell, scale, number);
        return hearth_arena_str(&list->cli->arena, hearth_str_c(number));
    }
    hearth_buf_init(&text, 0);
    hearth_human_escape(cell->text, &text);
    struct hearth_str kept = hearth_arena_str(&list->cli->arena, hearth_buf_view(&text));
    hearth_buf_release(&text);
    return kept;
}

static enum hearth_status look_at_column(const struct cli_listing *list, size_t n_rows, size_t at,
                                         struct column_look *ret)
{
    struct cli *cli = list->cli;
    const struct cli_column *column = &list->columns[at];
    struct hearth_human_scale scale;
    bool has_scale = column->kind == CLI_COLUMN_VALUE && choose_scale(list, n_rows, at, &scale);

    *ret = (struct column_look){.column = column};
    ret->is_number = !cli_is_text(column->kind) && column->kind != CLI_COLUMN_FLAG &&
                     column->kind != CLI_COLUMN_TIME && column->kind != CLI_COLUMN_BAR;
    ret->head = hearth_str_c(list->last_head != NULL && at + 1 == list->n_columns ? list->last_head
                                                                                  : column->head);
    ret->natural = cli->no_headers ? 0 : count_cells(ret->head);
    ret->texts = hearth_arena_array(&cli->arena, n_rows, sizeof ret->texts[0]);
    for (size_t row = 0; ret->texts != NULL && row < n_rows; row++) {
        ret->texts[row] =
            format_cell(list, column, cli_cell_at(list, row, at), has_scale ? &scale : NULL);
        int width = count_cells(ret->texts[row]);
        ret->natural = width > ret->natural ? width : ret->natural;
    }
    if (column->kind == CLI_COLUMN_BAR) {
        ret->natural = cli_is_fitted(cli) ? MIN_BAR : PIPED_BAR;
    }
    ret->width = ret->natural;

    return cli->arena.refused ? HEARTH_FAIL_ARENA(&cli->err, &cli->arena) : HEARTH_OK;
}

/* ---- widths ---- */

static int sum_widths(const struct column_look *looks, size_t n)
{
    int sum = n == 0 ? 0 : GAP * ((int)n - 1);
    for (size_t i = 0; i < n; i++) {
        sum += looks[i].width;
    }
    return sum;
}

/* Makes the widest texts narrower until the columns fit. False: they are as narrow as they may be. */
static bool narrow_texts(struct column_look *looks, size_t n, int limit)
{
    for (size_t i = 0; i < n; i++) {
        looks[i].width = looks[i].natural < limit ? looks[i].natural : limit;
    }
    while (sum_widths(looks, n) > limit) {
        struct column_look *widest = NULL;
        for (size_t i = 0; i < n; i++) {
            bool may =
                looks[i].width > MIN_TEXT && (looks[i].column->kind == CLI_COLUMN_TEXT ||
                                              (n <= 2 && looks[i].column->kind == CLI_COLUMN_ID));
            widest =
                may && (widest == NULL || looks[i].width >= widest->width) ? &looks[i] : widest;
        }
        if (widest == NULL) {
            return false;
        }
        widest->width--;
    }
    return true;
}

/* Fits the columns to the terminal. Returns how many are left. */
static size_t fit_columns(struct column_look *looks, size_t n, int limit)
{
    struct hearth_buf omitted;

    hearth_buf_init(&omitted, 0);
    while (!narrow_texts(looks, n, limit) && n > 2) {
        /* The first and the last say what a row is. */
        hearth_buf_printf(&omitted, "%s%s", omitted.n == 0 ? "" : ", ", looks[n - 2].column->name);
        looks[n - 2] = looks[n - 1];
        n--;
    }
    if (omitted.n > 0) {
        hearth_buf_cstr(&omitted, " left out at this width; -o wide prints all columns");
        hearth_buf_byte(&omitted, '\0');
        cli_say("hearth", hearth_buf_failed(&omitted) ? "columns were left out" : omitted.p);
    }
    hearth_buf_release(&omitted);

    return n;
}

/* ---- lines ---- */

static void put_spaces(int n, struct hearth_buf *out)
{
    hearth_buf_printf(out, "%*s", n > 0 ? n : 0, "");
}

/* Appends a row or the heads, without the end of the line. */
static void put_line(const struct cli_listing *list, const struct column_look *looks, size_t n,
                     size_t row, bool is_head, struct hearth_buf *out)
{
    int owed = 0; /* spaces before the next text: none stand at the end of a line */

    for (size_t i = 0; i < n; i++) {
        const struct column_look *look = &looks[i];
        struct hearth_str text = is_head ? look->head : look->texts[row];
        int room = look->width - count_cells(text), left = look->is_number && room > 0 ? room : 0;
        if (look->column->kind == CLI_COLUMN_BAR && !is_head) {
            put_spaces(owed, out);
            cli_bar(cli_cell_at(list, row, (size_t)(look->column - list->columns))->real,
                    look->width, out);
        }
        if (text.n > 0) {
            put_spaces(owed + left, out);
            owed = -left - put_cut(text, cli_is_fitted(list->cli) ? look->width : INT_MAX, out);
        }
        owed += look->width;
        owed = (owed > 0 ? owed : 0) + GAP;
    }
}

enum hearth_status cli_put_table(const struct cli_listing *list, size_t n_rows,
                                 const struct cli_shown *shown, struct hearth_buf *out)
{
    const struct cli *cli = list->cli;
    struct column_look looks[CLI_MAX_COLUMNS];
    size_t n = shown->n;

    for (size_t i = 0; i < n; i++) {
        HEARTH_TRY(look_at_column(list, n_rows, shown->at[i], &looks[i]));
    }

    /* Fit them; a bar takes the rest of the line. */
    n = cli_is_fitted(cli) ? fit_columns(looks, n, cli->width) : n;
    for (size_t i = 0; i < n; i++) {
        int rest = cli->width - sum_widths(looks, n);
        if (!cli_is_fitted(cli)) {
            looks[i].width = looks[i].natural < MAX_PAD ? looks[i].natural : MAX_PAD;
        } else if (looks[i].column->kind == CLI_COLUMN_BAR && rest > 0) {
            looks[i].width = looks[i].width + rest < MAX_BAR ? looks[i].width + rest : MAX_BAR;
        }
    }

    /* The only column of a list needs no heading, unless it was chosen among several. */
    bool has_head = list->n_columns > 1 && (shown->n > 1 || cli->columns != NULL);
    if (!cli->no_headers && has_head) {
        hearth_buf_cstr(out, cli->color ? "\033[1m" : "");
        put_line(list, looks, n, 0, true, out);
        hearth_buf_cstr(out, cli->color ? "\033[0m\n" : "\n");
    }
    for (size_t row = 0; row < n_rows; row++) {
        put_line(list, looks, n, row, false, out);
        hearth_buf_byte(out, '\n');
    }

    return HEARTH_OK;
}
