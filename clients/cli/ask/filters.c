/* filters.c -- --function, --class, --span-id and their like as fields of requests. */
#include "filters.h"

#include "hearth/model/profile_type.h"
#include "hearth/pb/hearth/v1/query.pb-c.h"

#include "cli_call.h"

#include <stdio.h>

char **cli_repeated(struct cli *cli, const struct cli_texts *texts)
{
    char **out = hearth_arena_array(&cli->arena, texts->n, sizeof out[0]);
    for (size_t i = 0; out != NULL && i < texts->n; i++) {
        out[i] = cli_field(cli, texts->v[i]);
    }
    return out;
}

char **cli_by_names(struct cli *cli)
{
    char **names = hearth_arena_array(&cli->arena, cli->n_by, sizeof names[0]);
    for (size_t i = 0; names != NULL && i < cli->n_by; i++) {
        names[i] = hearth_arena_strndup(&cli->arena, cli->by[i], strlen(cli->by[i]));
    }
    return names;
}

const char *const cli_row_kinds[CLI_ROW_KINDS] = {NULL,        "function",  "line",    "file",
                                                  "directory", "class",     "package", "module",
                                                  "thread",    "frame-kind"};

bool cli_has_stack_filter(const struct cli *cli)
{
    size_t n = cli->functions.n + cli->without.n + cli->call_site.n;
    for (size_t i = 0; i < CLI_ROW_KINDS; i++) {
        n += cli->rows[i].with.n + cli->rows[i].without.n;
    }
    return n > 0;
}

bool cli_is_beyond_page(const struct cli *cli)
{
    return cli_has_stack_filter(cli) || cli->aggregation != NULL || cli->go_stacks != NULL ||
           cli->profile_ids.n + cli->span_ids.n + cli->trace_ids.n > 0;
}

enum hearth_status cli_read_go_stacks(struct cli *cli, Hearth__V1__GoStacks *ret)
{
    if (cli->go_stacks == NULL || strcmp(cli->go_stacks, "stored") == 0) {
        *ret = HEARTH__V1__GO_STACKS__GO_STACKS_STORED;
    } else if (strcmp(cli->go_stacks, "repaired") == 0) {
        *ret = HEARTH__V1__GO_STACKS__GO_STACKS_REPAIRED;
    } else {
        return HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT,
                           "--go-stacks must be stored or repaired");
    }
    return HEARTH_OK;
}

bool cli_is_expression(const char *value)
{
    size_t n = strlen(value);
    return n > 2 && value[0] == '/' && value[n - 1] == '/';
}

/* Adds a value as an alternative of a regular expression, which matches an exact name only. */
static void add_alternative(struct hearth_buf *out, const char *value)
{
    hearth_buf_cstr(out, out->n > 0 ? "|" : "");
    if (cli_is_expression(value)) {
        hearth_buf_cstr(out, "(?:");
        hearth_buf_append(out, value + 1, strlen(value) - 2);
        hearth_buf_byte(out, ')');
        return;
    }

    hearth_buf_byte(out, '^');
    for (const char *p = value; *p != '\0'; p++) {
        bool is_special = strchr("\\.+*?()|[]{}^$", *p) != NULL;
        hearth_buf_cstr(out, is_special ? "\\" : "");
        hearth_buf_byte(out, (uint8_t)*p);
    }
    hearth_buf_byte(out, '$');
}

/*
 * Makes the condition of one option: names, or one expression if a value is one, because a condition
 * of the server demands both. False: memory was refused.
 */
static bool make_row_condition(struct cli *cli, const struct cli_texts *values, char ***ret_names,
                               size_t *ret_n, char **ret_regex)
{
    struct hearth_buf regex;
    bool expression = false;

    for (size_t i = 0; i < values->n; i++) {
        expression = expression || cli_is_expression(values->v[i]);
    }

    if (!expression) {
        *ret_names = cli_repeated(cli, values);
        *ret_n = values->n;
        return !cli->arena.refused;
    }

    hearth_buf_init(&regex, 0);
    for (size_t i = 0; i < values->n; i++) {
        add_alternative(&regex, values->v[i]);
    }
    char *text =
        hearth_buf_failed(&regex) ? NULL : hearth_arena_strndup(&cli->arena, regex.p, regex.n);
    hearth_buf_release(&regex);
    *ret_regex = text != NULL ? text : *ret_regex;
    return text != NULL;
}

/* Puts --class, --not-thread and their like into a message. */
static void add_row_filters(struct cli *cli, Hearth__V1__StackFilter *ret)
{
    Hearth__V1__RowFilter *rows = hearth_arena_array(&cli->arena, CLI_ROW_KINDS, sizeof rows[0]);
    ret->rows = hearth_arena_array(&cli->arena, CLI_ROW_KINDS, sizeof ret->rows[0]);

    for (size_t i = 0; rows != NULL && ret->rows != NULL && i < CLI_ROW_KINDS; i++) {
        const struct cli_rows *from = &cli->rows[i];
        Hearth__V1__RowFilter *row = &rows[i];
        if (from->with.n + from->without.n == 0) {
            continue;
        }
        hearth__v1__row_filter__init(row);
        row->kind = (Hearth__V1__TopKind)i;
        if (!make_row_condition(cli, &from->with, &row->names, &row->n_names, &row->regex) ||
            !make_row_condition(cli, &from->without, &row->without, &row->n_without,
                                &row->without_regex)) {
            cli->arena.refused = true;
            return;
        }
        ret->rows[ret->n_rows++] = row;
    }
}

void cli_stack_filter(struct cli *cli, Hearth__V1__StackFilter *ret)
{
    ret->n_call_site = cli->call_site.n;
    ret->call_site = cli_repeated(cli, &cli->call_site);
    ret->n_functions = cli->functions.n;
    ret->functions = cli_repeated(cli, &cli->functions);
    ret->n_without = cli->without.n;
    ret->without = cli_repeated(cli, &cli->without);
    add_row_filters(cli, ret);
}

void cli_say_aggregation(const Hearth__V1__Selection *selection,
                         Hearth__V1__Aggregation aggregation)
{
    struct hearth_profile_type parts;
    if (selection->aggregation == HEARTH__V1__AGGREGATION__AGGREGATION_UNSPECIFIED &&
        hearth_profile_type_parse(hearth_str_c(selection->profile_type), &parts, NULL) ==
            HEARTH_OK &&
        hearth_profile_type_is_gauge(&parts)) {
        (void)fputs(aggregation == HEARTH__V1__AGGREGATION__AGGREGATION_MEAN
                        ? "gauge: averaged over scrapes, summed over series (--aggregation sum "
                          "adds up all)\n"
                        : "gauge: sum of all scrapes (--aggregation mean averages them)\n",
                    stderr);
    }
}

double cli_line_figure(double sum, size_t n_points, Hearth__V1__Aggregation aggregation)
{
    bool is_mean = aggregation == HEARTH__V1__AGGREGATION__AGGREGATION_MEAN && n_points > 0;
    return is_mean ? sum / (double)n_points : sum;
}
