/* listing_formats.c -- rows as jsonl, csv, tsv and yaml: exact texts, numbers without units. */
#include "hearth/base/clock.h"
#include "hearth/base/human.h"
#include "hearth/codec/json_writer.h"

#include "cli.h"
#include "listing.h"

/* The unit of numbers is in the kind of the column, or in a column of its own. */
static void put_json_value(const struct cli_column *column, const struct cli_cell *cell,
                           struct hearth_json *json)
{
    char date[32];

    if (cell->is_absent) {
        hearth_json_null(json);
        return;
    }
    switch (column->kind) {
    case CLI_COLUMN_TEXT:
    case CLI_COLUMN_ID:
        hearth_json_string(json, cell->text);
        break;
    case CLI_COLUMN_TIME:
    case CLI_COLUMN_CLOCK:
        hearth_clock_format(cell->number * HEARTH_NS_PER_MS, date);
        hearth_json_string_c(json, date);
        break;
    case CLI_COLUMN_FLAG:
        hearth_json_bool(json, cell->number != 0);
        break;
    default:
        if (cell->is_real) {
            hearth_json_double(json, cell->real);
        } else {
            hearth_json_i64(json, cell->number);
        }
    }
}

/* An object for each row. Escapes keep the meaning, so that they do no harm where no terminal is. */
static void put_json_lines(const struct cli_listing *list, size_t n_rows,
                           const struct cli_shown *shown, struct hearth_buf *out)
{
    for (size_t row = 0; row < n_rows; row++) {
        struct hearth_buf line;
        struct hearth_json json;
        hearth_buf_init(&line, 0);
        hearth_json_init(&json, &line);
        hearth_json_object(&json);
        for (size_t i = 0; i < shown->n; i++) {
            hearth_json_key_c(&json, list->columns[shown->at[i]].name);
            put_json_value(&list->columns[shown->at[i]], cli_cell_at(list, row, shown->at[i]),
                           &json);
        }
        hearth_json_object_end(&json);
        out->failed = out->failed || hearth_buf_failed(&line);
        hearth_human_escape(hearth_buf_view(&line), out);
        hearth_buf_byte(out, '\n');
        hearth_buf_release(&line);
    }
}

/* A value as JSON has it, which YAML and, without quotes, csv have as well. */
static void take_value(const struct cli_listing *list, size_t row, size_t column,
                       struct hearth_buf *ret)
{
    struct hearth_json json;

    hearth_buf_init(ret, 0);
    hearth_json_init(&json, ret);
    put_json_value(&list->columns[column], cli_cell_at(list, row, column), &json);
}

static void put_yaml(const struct cli_listing *list, size_t n_rows, const struct cli_shown *shown,
                     struct hearth_buf *out)
{
    hearth_buf_cstr(out, n_rows == 0 ? "[]\n" : "");
    for (size_t row = 0; row < n_rows; row++) {
        for (size_t i = 0; i < shown->n; i++) {
            struct hearth_buf value;
            take_value(list, row, shown->at[i], &value);
            hearth_buf_printf(out, "%s%s: ", i == 0 ? "- " : "  ",
                              list->columns[shown->at[i]].name);
            out->failed = out->failed || hearth_buf_failed(&value);
            hearth_human_escape(hearth_buf_view(&value), out);
            hearth_buf_byte(out, '\n');
            hearth_buf_release(&value);
        }
    }
}

/* RFC 4180: in quotes, which are doubled, where the text needs it. */
static void put_csv_text(struct hearth_str text, struct hearth_buf *out)
{
    bool is_plain = true;

    for (size_t i = 0; i < text.n; i++) {
        is_plain = is_plain && strchr(",\"\r\n", text.p[i]) == NULL;
    }
    if (is_plain) {
        hearth_buf_str(out, text);
        return;
    }

    hearth_buf_byte(out, '"');
    for (size_t i = 0; i < text.n; i++) {
        hearth_buf_cstr(out, text.p[i] == '"' ? "\"" : "");
        hearth_buf_byte(out, (unsigned char)text.p[i]);
    }
    hearth_buf_byte(out, '"');
}

/* A row is a line, a tab separates fields: both are escaped within a text, as PostgreSQL does. */
static void put_tsv_text(struct hearth_str text, struct hearth_buf *out)
{
    static const char special[] = "\t\n\r\\", names[] = "tnr\\";

    for (size_t i = 0; i < text.n; i++) {
        const char *at = text.p[i] == '\0' ? NULL : strchr(special, text.p[i]);
        if (at == NULL) {
            hearth_buf_byte(out, (unsigned char)text.p[i]);
        } else {
            hearth_buf_byte(out, '\\');
            hearth_buf_byte(out, (unsigned char)names[at - special]);
        }
    }
}

static void put_field(const struct cli_listing *list, size_t row, size_t column,
                      struct hearth_buf *out)
{
    const struct cli_cell *cell = cli_cell_at(list, row, column);
    struct hearth_buf value, field;

    if (cell->is_absent) {
        return;
    }

    /* A date is a text without the quotes of JSON. */
    take_value(list, row, column, &value);
    bool is_quoted = value.n > 1 && value.p[0] == '"';
    struct hearth_str text = cli_is_text(list->columns[column].kind) ? cell->text
                             : is_quoted ? hearth_str_n(value.p + 1, value.n - 2)
                                         : hearth_buf_view(&value);
    hearth_buf_init(&field, 0);
    if (list->cli->output == CLI_CSV) {
        put_csv_text(text, &field);
    } else {
        put_tsv_text(text, &field);
    }
    out->failed = out->failed || hearth_buf_failed(&value) || hearth_buf_failed(&field);

    /* No terminal gets the control bytes of a text. */
    if (list->cli->is_terminal) {
        hearth_human_escape(hearth_buf_view(&field), out);
    } else {
        hearth_buf_str(out, hearth_buf_view(&field));
    }
    hearth_buf_release(&value);
    hearth_buf_release(&field);
}

static void put_separated(const struct cli_listing *list, size_t n_rows,
                          const struct cli_shown *shown, struct hearth_buf *out)
{
    bool is_csv = list->cli->output == CLI_CSV;
    const char *separator = is_csv ? "," : "\t", *end = is_csv ? "\r\n" : "\n";

    for (size_t i = 0; i < shown->n && !list->cli->no_headers; i++) {
        hearth_buf_printf(out, "%s%s%s", i == 0 ? "" : separator, list->columns[shown->at[i]].name,
                          i + 1 == shown->n ? end : "");
    }
    for (size_t row = 0; row < n_rows; row++) {
        for (size_t i = 0; i < shown->n; i++) {
            hearth_buf_cstr(out, i == 0 ? "" : separator);
            put_field(list, row, shown->at[i], out);
        }
        hearth_buf_cstr(out, end);
    }
}

void cli_put_format(const struct cli_listing *list, size_t n_rows, const struct cli_shown *shown,
                    struct hearth_buf *out)
{
    switch (list->cli->output) {
    case CLI_JSONL:
        put_json_lines(list, n_rows, shown, out);
        break;
    case CLI_YAML:
        put_yaml(list, n_rows, shown, out);
        break;
    default:
        put_separated(list, n_rows, shown, out);
    }
}
