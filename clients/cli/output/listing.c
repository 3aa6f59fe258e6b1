/* listing.c -- the columns of commands, the cells of a listing, and which columns are printed. */
#include "listing.h"

#include "hearth/model/labels.h"

#include "cli_call.h"
#include "cli_messages.h"
#include "guess.h"
#include "text.h"
#include "word_list.h"

#include <assert.h>

/* A row of columns.def: a table, which has the words of its commands in `name`, or a column. */
#define TABLE(commands) {(commands), NULL, CLI_COLUMN_TEXT, CLI_ALWAYS, NULL},
#define COLUMN(name, kind, head, when, absent, help) \
    {(name), (head), CLI_COLUMN_##kind, CLI_##when, (absent)},
static const struct cli_column g_columns[] = {
#include "columns.def"
};
#undef TABLE
#undef COLUMN

/* ---- columns ---- */

/* Whether "a|b|c" has these words. */
static bool names_command(const char *commands, const char *words)
{
    const char *at = NULL;
    struct hearth_str one;

    while (cli_next_value(commands, &at, &one)) {
        if (hearth_str_eq_c(one, words)) {
            return true;
        }
    }
    return false;
}

const struct cli_column *cli_columns_of(const char *words, size_t *ret_n)
{
    const size_t n = HEARTH_ARRAY_LEN(g_columns);

    for (size_t i = 0; i < n; i++) {
        if (g_columns[i].head == NULL && names_command(g_columns[i].name, words)) {
            size_t end = i + 1;
            while (end < n && g_columns[end].head != NULL) {
                end++;
            }
            *ret_n = end - i - 1;
            return &g_columns[i + 1];
        }
    }
    *ret_n = 0;
    return NULL;
}

/* The words of the command whose list is printed. */
static const char *words_of_list(const struct cli *cli, const char *words)
{
    bool lists_spans = strcmp(words, "query exemplars") == 0 && cli_is_by_span(cli);

    return lists_spans ? "spans list" : words;
}

/* The next name of "a,b,c" at *at, which moves past it; false: the list has ended. */
static bool next_column_name(const char **at, struct hearth_str *ret)
{
    if (*at == NULL) {
        return false;
    }
    size_t n = strcspn(*at, ",");
    *ret = hearth_str_n(*at, n);
    *at = (*at)[n] == ',' ? *at + n + 1 : NULL;

    return true;
}

static size_t find_column(const struct cli_column *columns, size_t n, struct hearth_str name)
{
    size_t i = 0;
    while (i < n && !hearth_str_eq_c(name, columns[i].name)) {
        i++;
    }
    return i;
}

enum cli_exit cli_check_columns(struct cli *cli, const char *words)
{
    size_t n, n_named = 0;
    const struct cli_column *columns = cli_columns_of(words_of_list(cli, words), &n);
    const char *at = cli->columns;
    struct hearth_str name;

    assert(n > 0 || at == NULL); /* only commands with columns take --columns */
    if ((at != NULL || cli->no_headers) && cli->output > CLI_YAML) {
        return cli_usage("--columns and --no-headers are for tables, and -o names another format");
    }
    if (at != NULL && cli->output == CLI_JSON) {
        return cli_usage(
            "--columns chooses columns of tables, and -o json prints none; -o jsonl does");
    }
    if (cli->no_headers &&
        (cli->output == CLI_JSON || cli->output == CLI_JSONL || cli->output == CLI_YAML)) {
        return cli_usage(
            "--no-headers is for -o table, wide, csv and tsv; this format has no line with names");
    }
    while (next_column_name(&at, &name)) {
        if (find_column(columns, n, name) < n && ++n_named <= CLI_MAX_COLUMNS) {
            continue;
        }

        struct hearth_buf out;
        struct cli_guess guess;
        char *text = hearth_arena_strndup(&cli->arena, name.p, name.n);
        hearth_buf_init(&out, 0);
        hearth_buf_cstr(&out, n_named > CLI_MAX_COLUMNS ? "--columns has too many names, from \""
                                                        : "there is no column \"");
        cli_fit(name, 60, false, &out);
        hearth_buf_cstr(&out, "\"; columns are ");
        cli_guess_begin(&guess, text == NULL ? "" : text);
        for (size_t i = 0; i < n; i++) {
            hearth_buf_printf(&out, "%s%s", i == 0 ? "" : ", ", columns[i].name);
            cli_guess_try(&guess, hearth_str_c(columns[i].name));
        }
        cli_guess_say(&guess, &out);
        hearth_buf_byte(&out, '\0');
        enum cli_exit code = cli_usage(hearth_buf_failed(&out) ? "--columns is wrong" : out.p);
        hearth_buf_release(&out);
        return code;
    }

    return CLI_OK;
}

/* ---- cells ---- */

void cli_list_begin(struct cli *cli, struct cli_listing *ret)
{
    cli_list_begin_like(cli, words_of_list(cli, cli->command->words), ret);
}

void cli_list_begin_like(struct cli *cli, const char *words, struct cli_listing *ret)
{
    *ret = (struct cli_listing){.cli = cli};
    ret->columns = cli_columns_of(words, &ret->n_columns);
    assert(ret->n_columns > 0 && ret->n_columns <= CLI_MAX_COLUMNS);
    hearth_buf_init(&ret->cells, 0);
    hearth_buf_init(&ret->foot, 0);
}

/* Adds a cell of a column that has texts, or others. */
static void add_cell(struct cli_listing *list, bool is_text, struct cli_cell cell)
{
    assert(cell.is_absent ||
           is_text == cli_is_text(list->columns[list->n_cells % list->n_columns].kind));
    (void)is_text; /* without assertions */
    hearth_buf_append(&list->cells, &cell, sizeof cell);
    list->n_cells++;
}

void cli_list_absent(struct cli_listing *list)
{
    add_cell(list, false, (struct cli_cell){.is_absent = true});
}

void cli_list_str(struct cli_listing *list, struct hearth_str text)
{
    add_cell(list, true, (struct cli_cell){.text = text, .is_absent = text.n == 0});
}

void cli_list_text(struct cli_listing *list, const char *text)
{
    cli_list_str(list, hearth_str_c(text));
}

void cli_list_take(struct cli_listing *list, struct hearth_buf *text)
{
    struct hearth_str kept = hearth_arena_str(&list->cli->arena, hearth_buf_view(text));
    list->cells.failed = list->cells.failed || hearth_buf_failed(text);
    hearth_buf_release(text);
    cli_list_str(list, kept);
}

void cli_put_labels(Types__V1__LabelPair *const *labels, size_t n, struct hearth_buf *out)
{
    struct hearth_label one;
    const struct hearth_labels set = {&one, 1};

    for (size_t i = 0; i < n; i++) {
        struct hearth_buf pair;
        one = (struct hearth_label){hearth_str_c(labels[i]->name), hearth_str_c(labels[i]->value)};
        hearth_buf_init(&pair, 0);
        hearth_labels_format(&set, 0, &pair);
        if (pair.n > 2) { /* without its own braces */
            hearth_buf_cstr(out, i == 0 ? "{" : ", ");
            hearth_buf_append(out, pair.p + 1, pair.n - 2);
        }
        hearth_buf_release(&pair);
    }
    hearth_buf_cstr(out, n > 0 ? "}" : "{}");
}

void cli_list_labels(struct cli_listing *list, Types__V1__LabelPair *const *labels, size_t n)
{
    struct hearth_buf text;

    hearth_buf_init(&text, 0);
    cli_put_labels(labels, n, &text);
    cli_list_take(list, &text);
}

void cli_list_value(struct cli_listing *list, int64_t number, struct hearth_str unit)
{
    add_cell(list, false,
             (struct cli_cell){.text = unit, .number = number, .real = (double)number});
}

void cli_list_number(struct cli_listing *list, int64_t number)
{
    cli_list_value(list, number, list->unit);
}

void cli_list_real(struct cli_listing *list, double number)
{
    add_cell(list, false, (struct cli_cell){.text = list->unit, .real = number, .is_real = true});
}

void cli_list_share(struct cli_listing *list, double part, double whole)
{
    cli_list_real(list, whole > 0 ? 100.0 * part / whole : 0);
}

void cli_list_time(struct cli_listing *list, int64_t ms)
{
    add_cell(list, false, (struct cli_cell){.number = ms, .is_absent = ms == 0});
}

/* ---- printing ---- */

static bool has_value(const struct cli_listing *list, size_t n_rows, size_t column)
{
    for (size_t row = 0; row < n_rows; row++) {
        if (!cli_cell_at(list, row, column)->is_absent) {
            return true;
        }
    }
    return false;
}

static bool varies(const struct cli_listing *list, size_t n_rows, size_t column)
{
    for (size_t row = 1; row < n_rows; row++) {
        struct hearth_str first = cli_cell_at(list, 0, column)->text;
        if (!hearth_str_eq(first, cli_cell_at(list, row, column)->text)) {
            return true;
        }
    }
    return false;
}

/* Whether a table without --columns has a column. */
static bool is_in_table(const struct cli_listing *list, size_t n_rows, size_t column)
{
    bool is_wide = list->cli->output == CLI_WIDE;

    switch (list->columns[column].when) {
    case CLI_ALWAYS:
        return true;
    case CLI_IF_ANY:
        return has_value(list, n_rows, column);
    case CLI_IF_VARIES:
        return is_wide || varies(list, n_rows, column);
    case CLI_IF_WIDE:
        return is_wide;
    }

    return true;
}

/* The columns of --columns, otherwise those of the format. */
static void choose_columns(const struct cli_listing *list, size_t n_rows, struct cli_shown *ret)
{
    const struct cli *cli = list->cli;
    const char *at = cli->columns;
    struct hearth_str name;

    ret->n = 0;
    while (next_column_name(&at, &name)) {
        ret->at[ret->n++] = find_column(list->columns, list->n_columns, name);
    }
    for (size_t i = 0; cli->columns == NULL && i < list->n_columns; i++) {
        const struct cli_column *column = &list->columns[i];
        bool is_shown =
            cli_is_table(cli) ? is_in_table(list, n_rows, i) : column->kind != CLI_COLUMN_BAR;
        if (is_shown) {
            ret->at[ret->n++] = i;
        }
    }
}

static enum hearth_status put_listing(struct cli_listing *list, struct hearth_buf *out)
{
    struct cli *cli = list->cli;
    size_t n_rows = list->n_cells / list->n_columns;
    struct cli_shown shown;

    assert(list->n_cells % list->n_columns == 0);
    if (hearth_buf_failed(&list->cells) || cli->arena.refused) {
        return HEARTH_FAIL(&cli->err, HEARTH_NO_MEMORY, "cannot allocate the rows of a table");
    }
    choose_columns(list, n_rows, &shown);
    if (list->is_drawn && cli->output == CLI_TABLE && cli->columns == NULL && !cli->no_headers) {
        hearth_buf_str(out, hearth_buf_view(&list->foot));
        return HEARTH_OK;
    }
    if (!cli_is_table(cli)) {
        cli_put_format(list, n_rows, &shown, out);
        return HEARTH_OK;
    }

    /* The zone of short times is named. */
    bool has_clock = false;
    for (size_t i = 0; i < shown.n; i++) {
        has_clock = has_clock || list->columns[shown.at[i]].kind == CLI_COLUMN_CLOCK;
    }
    if (has_clock && n_rows > 0) {
        cli_say_zone();
    }
    if (n_rows > 0) {
        HEARTH_TRY(cli_put_table(list, n_rows, &shown, out));
    } else if (list->empty != NULL) {
        cli_say("hearth", list->empty);
    }
    if (!list->is_drawn && !cli->no_headers) {
        hearth_buf_str(out, hearth_buf_view(&list->foot));
    }

    return HEARTH_OK;
}

void cli_list_drop(struct cli_listing *list)
{
    hearth_buf_release(&list->cells);
    hearth_buf_release(&list->foot);
}

enum hearth_status cli_list_put(struct cli_listing *list, struct hearth_buf *out)
{
    enum hearth_status status = put_listing(list, out);
    cli_list_drop(list);
    return status;
}

enum cli_exit cli_list_end(struct cli_listing *list, const ProtobufCMessage *answer)
{
    struct cli *cli = list->cli;
    struct hearth_buf out;
    enum hearth_status status = HEARTH_OK;

    hearth_buf_init(&out, 0);
    if (cli->output != CLI_JSON) {
        status = put_listing(list, &out);
    }
    cli_list_drop(list);
    if (status != HEARTH_OK) {
        hearth_buf_release(&out);
        return cli_fail(cli, status);
    }

    return cli->output == CLI_JSON ? cli_print_answer(cli, answer, &out)
           : cli_is_table(cli)     ? cli_print(&out)
                                   : cli_print_exact(&out);
}
