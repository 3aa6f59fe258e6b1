/* help.c -- help of commands, groups and topics, made of the tables, 80 columns wide. */
#include "cli_messages.h"
#include "listing.h"
#include "table.h"
#include "text.h"
#include "word_list.h"

#include <stdio.h>

enum {
    WIDTH = 80,
    COMMAND_COLUMN = 18, /* of the texts of commands */
    OPTION_COLUMN = 26,  /* of the texts of options */
};

/* ---- lines ---- */

/* Appends a text, broken at spaces; the first line continues at `column`, the others are indented to
 * `indent`. */
static void put_text(struct hearth_buf *out, size_t column, size_t indent, const char *text)
{
    for (const char *at = text; *at != '\0';) {
        size_t n = strcspn(at, " ");
        if (column > indent && column + 1 + n > WIDTH) {
            hearth_buf_printf(out, "\n%*s", (int)indent, "");
            column = indent;
        } else if (column > indent) {
            hearth_buf_byte(out, ' ');
            column++;
        }
        hearth_buf_append(out, at, n);
        column += n;
        at += n + strspn(at + n, " ");
    }
    hearth_buf_byte(out, '\n');
}

/* Appends "  LEFT    text"; a long LEFT has a line of its own. */
static void put_row(struct hearth_buf *out, const char *left, size_t column, const char *text)
{
    size_t n = 2 + strlen(left);

    hearth_buf_printf(out, "  %s", left);
    if (n + 1 > column) {
        hearth_buf_byte(out, '\n');
        n = 0;
    }
    hearth_buf_printf(out, "%*s", (int)(column - n), "");
    put_text(out, column, column, text);
}

static void put_option(struct hearth_buf *out, const struct cli_option *option)
{
    char left[96], help[512];
    char values[160] = "";

    (void)snprintf(left, sizeof left, "%s%s%s%s%s", option->brief == NULL ? "" : option->brief,
                   option->brief == NULL ? "" : ", ", option->flag,
                   option->value == NULL ? "" : " ", option->value == NULL ? "" : option->value);
    size_t n = 0;
    const char *at = NULL;
    struct hearth_str one;
    while (cli_next_value(option->values, &at, &one)) {
        int wrote = snprintf(values + n, sizeof values - n, "%s" HEARTH_STR_FMT, n == 0 ? "" : ", ",
                             HEARTH_STR_ARG(one));
        n += wrote > 0 && (size_t)wrote < sizeof values - n ? (size_t)wrote : 0;
    }
    (void)snprintf(help, sizeof help, "%s%s%s", option->help, n == 0 ? "" : ": ", values);
    put_row(out, left, OPTION_COLUMN, help);
}

/* Appends the flags of a set that a command takes in one paragraph. */
static void put_flags(struct hearth_buf *out, const struct cli_command *command, const char *set,
                      const char *title)
{
    struct hearth_buf line;
    size_t n = 0;

    hearth_buf_init(&line, 0);
    hearth_buf_cstr(&line, title);
    for (size_t i = 0; i < cli_n_options; i++) {
        if (cli_has_key(set, cli_options[i].key) && cli_takes_option(command, &cli_options[i])) {
            hearth_buf_printf(&line, "%s %s", n++ == 0 ? ":" : ",", cli_options[i].flag);
        }
    }
    hearth_buf_byte(&line, '\0');
    if (n > 0 && !hearth_buf_failed(&line)) {
        hearth_buf_byte(out, '\n');
        put_text(out, 0, 2, line.p);
    }
    hearth_buf_release(&line);
}

/* ---- commands and groups ---- */

/* The columns of the table that a command prints, if it prints one. */
static void put_columns(struct hearth_buf *out, const char *words)
{
    size_t n;
    const struct cli_column *columns = cli_columns_of(words, &n);
    struct hearth_buf text;

    if (n == 0) {
        return;
    }
    hearth_buf_init(&text, 0);
    hearth_buf_cstr(&text, "Columns:");
    for (size_t i = 0; i < n; i++) {
        hearth_buf_printf(&text, "%s %s", i == 0 ? "" : ",", columns[i].name);
    }
    hearth_buf_byte(&text, '\0');
    hearth_buf_byte(out, '\n');
    put_text(out, 0, 2, hearth_buf_failed(&text) ? "" : text.p);
    hearth_buf_release(&text);
}

static void put_command(struct hearth_buf *out, const struct cli_command *command)
{
    char usage[160];

    (void)snprintf(usage, sizeof usage, "usage: hearth %s%s%s%s", command->words,
                   command->arguments[0] == '\0' ? "" : " ", command->arguments,
                   command->options[0] == '\0' ? "" : " [OPTIONS]");
    put_text(out, 0, 2, usage);
    hearth_buf_byte(out, '\n');
    put_text(out, 0, 0, command->help);

    size_t n = 0;
    for (size_t i = 0; i < cli_n_options; i++) {
        const struct cli_option *o = &cli_options[i];
        bool has_paragraph = cli_has_key("@net @stacks @drawn", o->key);
        if (cli_takes_option(command, o) && !has_paragraph) {
            hearth_buf_cstr(out, n++ == 0 ? "\nOptions\n" : "");
            put_option(out, o);
        }
    }
    put_flags(out, command, "@stacks", "Filters (hearth help filters)");
    put_flags(out, command, "@net", "Connection (hearth help connection)");
    put_flags(out, command, "@drawn", "Output (hearth help output)");
    put_columns(out, command->words);

    hearth_buf_printf(out, "\nExamples\n  %s\n  %s\n", command->examples[0], command->examples[1]);
}

/* Whether a row stands directly below a group: one word more. */
static bool is_below(const struct cli_command *row, const char *words)
{
    return row->row != CLI_ROW_SECTION && cli_words_begin(row->words, words) &&
           cli_count_words(row->words) == cli_count_words(words) + 1;
}

/* The words of the rows below a group, separated by commas, each once. */
static void put_names_below(struct hearth_buf *out, const char *words)
{
    char last[64] = "", next[64];
    size_t n = 0;

    for (size_t i = 0; i < cli_n_commands; i++) {
        if (is_below(&cli_commands[i], words)) {
            cli_word_after(cli_commands[i].words, words, next);
            if (strcmp(next, last) != 0) {
                hearth_buf_printf(out, "%s%s", n++ == 0 ? "" : ", ", next);
            }
            memcpy(last, next, sizeof last);
        }
    }
}

/* Appends a row of a list; a group is followed by the names of its commands. */
static void put_listed(struct hearth_buf *out, const struct cli_command *row, const char *below)
{
    const char *left = row->words + strlen(below) + (below[0] == '\0' ? 0 : 1);
    char words[64];
    struct hearth_buf text;

    (void)snprintf(words, sizeof words, "%s%s", left, row->row == CLI_ROW_GROUP ? " ..." : "");
    hearth_buf_init(&text, 0);
    hearth_buf_cstr(&text, row->help);
    if (row->row == CLI_ROW_GROUP) {
        hearth_buf_cstr(&text, ": ");
        put_names_below(&text, row->words);
    }
    hearth_buf_byte(&text, '\0');
    put_row(out, words, COMMAND_COLUMN, hearth_buf_failed(&text) ? row->help : text.p);
    hearth_buf_release(&text);
}

/* Appends the rows below a group, "" for all commands. A command of the words of a group is hidden. */
static void put_list(struct hearth_buf *out, const char *below)
{
    const char *last = "";

    for (size_t i = 0; i < cli_n_commands; i++) {
        const struct cli_command *row = &cli_commands[i];
        if (row->row == CLI_ROW_SECTION && below[0] == '\0') {
            hearth_buf_printf(out, "\n%s\n", row->help);
        } else if (is_below(row, below) && strcmp(row->words, last) != 0) {
            put_listed(out, row, below);
            last = row->words;
        }
    }
}

static void put_group(struct hearth_buf *out, const struct cli_command *group)
{
    hearth_buf_printf(out, "usage: hearth %s COMMAND [ARGUMENTS] [OPTIONS]\n\n", group->words);
    put_text(out, 0, 0, group->help);
    hearth_buf_cstr(out, "\nCommands\n");
    put_list(out, group->words);
    hearth_buf_printf(out, "\nOptions and examples of a command: hearth %s COMMAND --help\n",
                      group->words);
}

static const char g_exit_codes[] =
    "Exit codes\n"
    "  0 done, 1 failed, 2 usage, 3 no data, 4 not allowed, 5 server or network\n";

static void put_overview(struct hearth_buf *out)
{
    hearth_buf_cstr(out, "hearth -- client of the Hearth continuous-profiling server\n\n"
                         "usage: hearth COMMAND [ARGUMENTS] [OPTIONS]\n");
    put_list(out, "");
    hearth_buf_printf(out,
                      "\nOptions and examples of a command: hearth COMMAND --help\n"
                      "Help of everything: hearth --help-all\n"
                      "Help of options that many commands share: hearth help connection, range,\n"
                      "  filters, selectors, options\n\n%s\n"
                      "Examples\n"
                      "  hearth upload cpu.pb.gz --label service_name=api\n"
                      "  hearth top '{service_name=\"api\"}' --since 30m\n"
                      "  hearth flame '{service_name=\"api\"}'\n",
                      g_exit_codes);
}

enum cli_exit cli_print_help(const struct cli_command *command)
{
    struct hearth_buf out;

    hearth_buf_init(&out, 0);
    if (command == NULL) {
        put_overview(&out);
    } else if (command->row == CLI_ROW_GROUP) {
        put_group(&out, command);
    } else {
        put_command(&out, command);
    }

    return cli_print(&out);
}

/* ---- topics ---- */

static void put_set(struct hearth_buf *out, const char *title, const char *set)
{
    hearth_buf_printf(out, "%s\n", title);
    for (size_t i = 0; i < cli_n_options; i++) {
        if (cli_has_key(set, cli_options[i].key)) {
            put_option(out, &cli_options[i]);
        }
    }
}

static void put_connection(struct hearth_buf *out)
{
    put_set(out, "Options of the connection, of all commands that ask a server", "@net");
}

static void put_range(struct hearth_buf *out)
{
    put_set(out, "Options of the range", "@range");
    hearth_buf_cstr(
        out, "\nA duration is a number with a unit, such as 90s, 1h30m, 7d.\n"
             "T is 2026-11-20T10:36:00 or a prefix of it, unix time, or now-30m. A date is of\n"
             "the zone of $TZ or of the machine, unless it has Z or an offset like +01:00,\n"
             "or --utc is given.\n");
}

static void put_output(struct hearth_buf *out)
{
    put_set(out, "Options of commands that print tables", "@table");
    hearth_buf_cstr(
        out, "\ntable and wide are for people: on a terminal, table fits its width, and wide\n"
             "has all columns. jsonl, csv, tsv and yaml have exact texts, numbers without\n"
             "units, and times in UTC; json is the answer of the server. Names of columns\n"
             "do not change.\n");
}

static void put_filters(struct hearth_buf *out)
{
    put_set(out, "Filters; samples must match all of them", "@stacks profile-id span-id trace-id");
    hearth_buf_cstr(out,
                    "\nNAME is exact, /RE/ is a regular expression, '' is everything unknown.\n");
}

static void put_selectors(struct hearth_buf *out)
{
    hearth_buf_cstr(out, "A selector chooses series by their labels, as in PromQL:\n"
                         "  {service_name=\"api\"}                    equal\n"
                         "  {service_name=\"api\", region!=\"eu\"}      and not equal\n"
                         "  {region=~\"eu|us\", pod!~\"test-.*\"}       regular expressions\n"
                         "  {}                                      everything\n\n"
                         "Put it in single quotes: the shell takes double quotes and braces.\n");
}

static void put_exit_codes(struct hearth_buf *out)
{
    hearth_buf_cstr(out, g_exit_codes);
}

/* Appends every option with the commands that take it. */
static void put_all_options(struct hearth_buf *out)
{
    for (size_t i = 0; i < cli_n_options; i++) {
        put_option(out, &cli_options[i]);
    }
}

/* Appends the versions in which commands and options appeared. */
static void put_versions(struct hearth_buf *out)
{
#define SINCE(name, version) {(name), (version)},
    static const struct {
        const char *name, *version;
    } since[] = {
#include "since.def"
    };
#undef SINCE

    hearth_buf_cstr(out, "Since which version\n");
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(since); i++) {
        const char *name = since[i].name[0] == '\0' ? "all others" : since[i].name;
        put_row(out, since[i].version, COMMAND_COLUMN, name);
    }
}

/* The whole manual: the overview, then each command. */
static void put_manual(struct hearth_buf *out)
{
    put_overview(out);
    hearth_buf_byte(out, '\n');
    put_connection(out);
    hearth_buf_byte(out, '\n');
    put_range(out);
    hearth_buf_byte(out, '\n');
    put_filters(out);
    hearth_buf_byte(out, '\n');
    put_output(out);
    hearth_buf_byte(out, '\n');
    put_selectors(out);
    for (size_t i = 0; i < cli_n_commands; i++) {
        if (cli_commands[i].row == CLI_ROW_COMMAND) {
            hearth_buf_printf(out, "\n\nhearth %s\n\n", cli_commands[i].words);
            put_command(out, &cli_commands[i]);
        }
    }
    hearth_buf_cstr(out, "\n\n");
    put_versions(out);
}

enum cli_exit cli_print_manual(void)
{
    struct hearth_buf out;

    hearth_buf_init(&out, 0);
    put_manual(&out);

    return cli_print(&out);
}

static void put_topics(struct hearth_buf *out);

static const struct {
    const char *name, *help;
    void (*put)(struct hearth_buf *out);
} g_topics[] = {
    {"connection", "server, tenant, token, https", put_connection},
    {"range", "times", put_range},
    {"filters", "stack traces, spans, rows of top", put_filters},
    {"output", "tables, formats, colours", put_output},
    {"selectors", "series by their labels", put_selectors},
    {"options", "every option", put_all_options},
    {"exit-codes", "what a script can test", put_exit_codes},
    {"manual", "everything", put_manual},
    {"topics", "this list", put_topics},
};

static void put_topics(struct hearth_buf *out)
{
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_topics); i++) {
        put_row(out, g_topics[i].name, COMMAND_COLUMN, g_topics[i].help);
    }
}

enum cli_exit cli_help(struct cli *cli)
{
    struct hearth_buf out;
    const struct cli_command *command = cli_find_command(cli->args, cli->n_args);

    /* A topic, unless a command has the name. */
    for (size_t i = 0; command == NULL && cli->n_args == 1 && i < HEARTH_ARRAY_LEN(g_topics); i++) {
        if (strcmp(cli->args[0], g_topics[i].name) == 0) {
            hearth_buf_init(&out, 0);
            g_topics[i].put(&out);
            return cli_print(&out);
        }
    }

    /* All words must name a command. */
    size_t n_words = command == NULL ? 0 : cli_count_words(command->words);
    if (n_words < cli->n_args) {
        cli_set_usage(command == NULL ? "" : command->words); /* whose help is there */
        return cli_no_such(command == NULL ? "" : command->words, cli->args[n_words]);
    }

    return cli_print_help(command);
}

enum cli_exit cli_version(struct cli *cli)
{
    (void)cli;
    (void)printf("hearth %s\n", HEARTH_VERSION);
    return CLI_OK;
}
