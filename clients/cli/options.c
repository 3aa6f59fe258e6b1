/*
 * options.c -- command, arguments and options out of the command line, as the tables say.
 *
 * Options may stand anywhere, also before the command. The words are therefore read twice: first for the command, then
 * for the options that it takes.
 */
#include "cli_messages.h"
#include "flame_transforms.h"
#include "guess.h"
#include "listing.h"
#include "table.h"
#include "text.h"
#include "word_list.h"

#include <limits.h>
#include <stdio.h>

#define MOST_GROUPS 4 /* whose commands are offered for a word */

/* A word of the command line, or an option with its value. */
struct word {
    const char *text;                /* as given */
    const char *flag;                /* NULL: an argument */
    const char *value;               /* NULL: none is given */
    bool is_joined;                  /* --flag=value */
    const struct cli_option *option; /* the first of this flag; NULL: unknown */
};

/* ---- values ---- */

static bool parse_count(const char *value, int64_t *ret)
{
    return hearth_str_to_i64(hearth_str_c(value), ret) && *ret > 0;
}

/* Labels after --by, separated by commas. */
static bool parse_by(struct cli *cli, const char *value)
{
    struct hearth_str all = hearth_str_c(value);

    for (size_t from = 0; from <= all.n;) {
        size_t to = hearth_str_find(all, ',', from);
        if (to > from) {
            if (cli->n_by == CLI_MAX_LABELS) {
                return false;
            }
            cli->by[cli->n_by++] = hearth_arena_strndup(&cli->arena, value + from, to - from);
        }
        from = to + 1;
    }

    return true;
}

static bool add_text(struct cli *cli, struct cli_texts *list, const char *value)
{
    /* The row of everything unknown has an empty name. */
    bool is_row = (const char *)list >= (const char *)cli->rows &&
                  (const char *)list < (const char *)(cli->rows + CLI_ROW_KINDS);
    if (list->n == CLI_MAX_LABELS || (value[0] == '\0' && !is_row)) {
        return false;
    }
    list->v[list->n++] = value;
    return true;
}

static bool add_label(struct cli *cli, const char *value)
{
    if (cli->n_labels == CLI_MAX_LABELS || strchr(value, '=') == NULL || value[0] == '=') {
        return false;
    }
    cli->labels[cli->n_labels++] = value;
    return true;
}

static bool parse_output(struct cli *cli, const char *value)
{
    static const struct {
        const char *name;
        enum cli_output output;
    } outputs[] = {
        {"table", CLI_TABLE},
        {"wide", CLI_WIDE},
        {"json", CLI_JSON},
        {"jsonl", CLI_JSONL},
        {"csv", CLI_CSV},
        {"tsv", CLI_TSV},
        {"yaml", CLI_YAML},
        {"pprof", CLI_PPROF},
        {"collapsed", CLI_COLLAPSED},
        {"html", CLI_HTML},
        {"svg", CLI_SVG},
        {"dot", CLI_DOT},
        {"flame", CLI_FLAME},
        {"speedscope", CLI_SPEEDSCOPE},
    };
    size_t n = strcspn(value, "=");

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(outputs); i++) {
        if (strncmp(outputs[i].name, value, n) == 0 && outputs[i].name[n] == '\0') {
            cli->output = outputs[i].output;
        }
    }
    cli->output_file = value[n] == '=' ? value + n + 1 : NULL;

    return cli->output_file == NULL || cli->output_file[0] != '\0';
}

/* Whether a value is one of "a|b|NAME=FILE|NAME[=FILE]". */
static bool is_listed(const struct cli_option *option, const char *value)
{
    const char *at = NULL;
    struct hearth_str one;
    bool has_any = false;

    while (cli_next_value(option->values, &at, &one)) {
        char after;
        struct hearth_str name = cli_value_name(one, &after);
        bool begins = strncmp(value, name.p, name.n) == 0;
        has_any = true;
        if (begins &&
            ((value[name.n] == '\0' && after != '=') || (value[name.n] == '=' && after != '\0'))) {
            return true;
        }
    }

    return !has_any;
}

/* Puts a value into its field; false: it is wrong. */
static bool set_value(struct cli *cli, const struct cli_option *option, const char *value)
{
    void *at = (char *)cli + option->at;

    switch (option->kind) {
    case CLI_KIND_TEXT:
        *(const char **)at = value;
        return true;
    case CLI_KIND_LIST:
        return add_text(cli, at, value);
    case CLI_KIND_SWITCH:
        *(bool *)at = true;
        return value == NULL;
    case CLI_KIND_EXPLAIN:
        *(bool *)at = true;
        cli->output = value == NULL ? cli->output : CLI_JSON;
        return value == NULL || strcmp(value, "json") == 0;
    case CLI_KIND_LIMIT:
        cli->has_limit = true;
        return parse_count(value, at);
    case CLI_KIND_COUNT:
        return parse_count(value, at);
    case CLI_KIND_NATURAL:
        return hearth_str_to_i64(hearth_str_c(value), at) && *(int64_t *)at >= 0;
    case CLI_KIND_PERCENT:
        return hearth_str_to_double(hearth_str_c(value), at) && *(double *)at >= 0 &&
               *(double *)at <= 100;
    case CLI_KIND_BY:
        return parse_by(cli, value);
    case CLI_KIND_LABEL:
        return add_label(cli, value);
    case CLI_KIND_TRANSFORM:
        return cli_add_transform(cli, option->flag, value);
    case CLI_KIND_OUTPUT:
        return parse_output(cli, value);
    }

    return false;
}

/* ---- mistakes ---- */

/* Prints a message that is in a buffer, and releases it. */
static enum cli_exit end_usage(struct hearth_buf *message)
{
    hearth_buf_byte(message, '\0');
    enum cli_exit code =
        cli_usage(hearth_buf_failed(message) ? "the command line is wrong" : message->p);
    hearth_buf_release(message);
    return code;
}

/* Whether an option lists a value, "svg" or "svg=FILE". */
static bool lists_value(const struct cli_option *option, const char *value)
{
    struct hearth_str name = hearth_str_n(value, strcspn(value, "="));
    const char *at = NULL;
    struct hearth_str one;
    char after;

    while (option != NULL && cli_next_value(option->values, &at, &one)) {
        if (hearth_str_eq(cli_value_name(one, &after), name)) {
            return value[name.n] == '=' ? after != '\0' && value[name.n + 1] != '\0' : after != '=';
        }
    }

    return false;
}

/* Appends the first command whose option takes a value that this one does not. */
static void add_value_taker(const struct word *word, struct hearth_buf *out)
{
    for (size_t i = 0; i < cli_n_commands; i++) {
        if (cli_commands[i].row == CLI_ROW_COMMAND &&
            lists_value(cli_find_option(&cli_commands[i], word->flag), word->value)) {
            hearth_buf_printf(out, "; hearth %s takes it", cli_commands[i].words);
            return;
        }
    }
}

static enum cli_exit wrong_value(const struct word *word, const struct cli_option *option)
{
    struct hearth_buf out;
    struct cli_guess guess;
    const char *at = NULL;
    struct hearth_str one;
    size_t n = 0;

    hearth_buf_init(&out, 0);
    hearth_buf_byte(&out, '"');
    cli_fit(hearth_str_c(word->value), 100, false, &out);
    hearth_buf_printf(&out, "\" is not a value for %.60s", word->flag);
    cli_guess_begin(&guess, word->value);
    while (cli_next_value(option->values, &at, &one)) {
        hearth_buf_cstr(&out, n++ == 0 ? ", which takes " : *at == '\0' ? " or " : ", ");
        hearth_buf_str(&out, one);
        char after;
        cli_guess_try(&guess, cli_value_name(one, &after));
    }
    if (n == 0 && cli_has_value(option)) {
        hearth_buf_printf(&out, ", which takes %s", option->value);
    }
    if (guess.best.p == NULL) {
        add_value_taker(word, &out);
    }
    cli_guess_say(&guess, &out);

    return end_usage(&out);
}

/* Appends the commands that take any option of a flag, at most eight. */
static void add_takers(const char *flag, struct hearth_buf *out)
{
    size_t n = 0;

    for (size_t i = 0; i < cli_n_commands; i++) {
        if (cli_commands[i].row != CLI_ROW_COMMAND ||
            cli_find_option(&cli_commands[i], flag) == NULL) {
            continue;
        }
        if (n == 8) {
            hearth_buf_cstr(out, ", ..");
            return;
        }
        hearth_buf_printf(out, "%s%s", n++ == 0 ? ": it is for " : ", ", cli_commands[i].words);
    }
}

/* An option that does not exist, or that the command does not take. */
static enum cli_exit wrong_option(const struct cli_command *command, const struct word *word)
{
    struct hearth_buf out;
    struct cli_guess guess;

    hearth_buf_init(&out, 0);
    if (word->option != NULL && command != NULL) {
        hearth_buf_printf(&out, "%s does not take %s", command->words, word->flag);
        add_takers(word->flag, &out);
    } else {
        hearth_buf_cstr(&out, "there is no option ");
        cli_fit(hearth_str_c(word->flag), 60, false, &out);
    }
    /* --json, as other clients have it. */
    const struct cli_option *output = command == NULL ? NULL : cli_find_option(command, "-o");
    bool is_long = word->flag[1] == '-';
    if (is_long && output != NULL && lists_value(output, word->flag + 2)) {
        hearth_buf_printf(&out, "; did you mean -o %s?", word->flag + 2);
        return end_usage(&out);
    }

    cli_guess_begin(&guess, word->flag);
    for (size_t i = 0; is_long && i < cli_n_options; i++) {
        if (command == NULL || cli_takes_option(command, &cli_options[i])) {
            cli_guess_try(&guess, hearth_str_c(cli_options[i].flag));
        }
    }
    cli_guess_say(&guess, &out);

    return end_usage(&out);
}

/* Finds the first command of a group, from index `from` on, whose last word is `word`. Returns
 * cli_n_commands if no command matches. */
static size_t find_grouped(const char *word, size_t from)
{
    for (; from < cli_n_commands; from++) {
        const char *last = strrchr(cli_commands[from].words, ' ');
        if (cli_commands[from].row == CLI_ROW_COMMAND && last != NULL &&
            strcmp(last + 1, word) == 0) {
            break;
        }
    }

    return from;
}

/* Appends the commands of groups that end in a word, for people who leave the group out. Words that
 * most groups have, such as list, say too little. */
static void guess_group(const char *word, struct hearth_buf *out)
{
    size_t n = 0;

    for (size_t i = find_grouped(word, 0); i < cli_n_commands; i = find_grouped(word, i + 1)) {
        n++;
    }
    if (n == 0 || n > MOST_GROUPS) {
        return;
    }
    n = 0;
    for (size_t i = find_grouped(word, 0); i < cli_n_commands; i = find_grouped(word, i + 1)) {
        hearth_buf_printf(out, "%s%s", n++ == 0 ? "; did you mean " : " or ",
                          cli_commands[i].words);
    }
    hearth_buf_byte(out, '?');
}

enum cli_exit cli_no_such(const char *group, const char *word)
{
    struct hearth_buf out;
    struct cli_guess guess;
    char next[64];

    hearth_buf_init(&out, 0);
    hearth_buf_printf(&out, "there is no such %s%scommand: ", group, group[0] == '\0' ? "" : " ");
    cli_fit(hearth_str_c(word), 60, false, &out);
    cli_guess_begin(&guess, word);
    for (size_t i = 0; i < cli_n_commands; i++) {
        if (cli_commands[i].row != CLI_ROW_SECTION &&
            cli_words_begin(cli_commands[i].words, group)) {
            cli_word_after(cli_commands[i].words, group, next);
            int before = guess.distance;
            cli_guess_try(&guess, hearth_str_c(next));
            /* `next` is overwritten: keep the word of the table. */
            if (guess.distance < before) {
                size_t from = strlen(group) + (group[0] == '\0' ? 0 : 1);
                guess.best = hearth_str_n(cli_commands[i].words + from, strlen(next));
            }
        }
    }
    cli_guess_say(&guess, &out);
    if (group[0] == '\0' && guess.best.p == NULL) {
        guess_group(word, &out);
    }

    return end_usage(&out);
}

static enum cli_exit wrong_count(const struct cli_command *command, const char *const *args,
                                 size_t n_args)
{
    struct hearth_buf out;
    bool has_selector = strstr(command->arguments, "SELECTOR") != NULL;

    hearth_buf_init(&out, 0);
    hearth_buf_printf(&out, "%s: ", command->words);
    if (n_args < command->min_args) {
        /* The word of the missing argument. */
        const char *at = command->arguments;
        for (size_t i = 0; i < n_args; i++) {
            at += strcspn(at, " ");
            at += strspn(at, " ");
        }
        hearth_buf_append(&out, at, strcspn(at, " ."));
        hearth_buf_cstr(&out, " is missing");
    } else {
        hearth_buf_byte(&out, '"');
        cli_fit(hearth_str_c(args[command->max_args]), 100, false, &out);
        hearth_buf_cstr(&out, "\" is one argument too many");
        hearth_buf_cstr(&out, has_selector ? "; quote the selector: it is one argument" : "");
    }
    hearth_buf_printf(&out, "; usage: hearth %s%s%s [OPTIONS]", command->words,
                      command->arguments[0] == '\0' ? "" : " ", command->arguments);

    return end_usage(&out);
}

/* Whether the only argument is a selector, but the command wants a name before it. A function may be
 * called "{main}". */
static bool lacks_name(const struct cli_command *command, const char *const *args, size_t n_args)
{
    bool wants_name = strncmp(command->arguments, "LABEL ", 6) == 0 ||
                      strncmp(command->arguments, "FUNCTION ", 9) == 0;

    return wants_name && n_args == 1 && args[0][0] == '{' &&
           (strstr(args[0], "=\"") != NULL || strstr(args[0], "~\"") != NULL);
}

/* ---- words ---- */

/*
 * Reads the word at *i, which moves behind it. False: the end, or "--", behind which *i is. The
 * command, as far as it is known, decides which of several options with one flag is meant.
 */
static bool next_word(struct cli *cli, const struct cli_command *command, int argc, char **argv,
                      int *i, struct word *ret)
{
    if (*i >= argc) {
        return false;
    }
    const char *arg = argv[(*i)++];
    *ret = (struct word){.text = arg};
    if (strcmp(arg, "--") == 0) {
        return false;
    }
    if (arg[0] != '-' || arg[1] == '\0') {
        return true;
    }

    /* --flag=value, -fVALUE, or the next word is the value. */
    bool is_long = arg[1] == '-';
    size_t n = is_long ? strcspn(arg, "=") : 2;
    ret->flag = hearth_arena_strndup(&cli->arena, arg, n);
    ret->option = ret->flag == NULL ? NULL : cli_find_option(command, ret->flag);
    if (ret->option == NULL && ret->flag != NULL) {
        ret->option = cli_find_option(NULL, ret->flag);
    }
    if (!is_long && ret->option == NULL) {
        ret->flag = arg;
    } else if (arg[n] != '\0') {
        ret->is_joined = true;
        ret->value = arg + n + (arg[n] == '=' ? 1 : 0);
    } else if (ret->option != NULL && cli_has_value(ret->option) && *i < argc) {
        ret->value = argv[(*i)++];
    }
    ret->flag = ret->flag == NULL ? arg : ret->flag;

    return true;
}

/* Reads arguments, --help, --help-all and --version; sees no other option. */
static enum cli_exit read_arguments(struct cli *cli, int argc, char **argv)
{
    struct word word;
    int i = 1;

    while (next_word(cli, cli_find_command(cli->args, cli->n_args), argc, argv, &i, &word)) {
        if (word.flag != NULL) {
            bool is_help = strcmp(word.flag, "--help") == 0 || strcmp(word.flag, "-h") == 0;
            bool is_manual = strcmp(word.flag, "--help-all") == 0;
            cli->wants_help = cli->wants_help || is_help || is_manual;
            cli->wants_manual = cli->wants_manual || is_manual;
            cli->wants_version = cli->wants_version || strcmp(word.flag, "--version") == 0;
            continue;
        }
        if (cli->n_args == CLI_MAX_ARGS) {
            return cli_usage("there are more than 1024 arguments");
        }
        cli->args[cli->n_args++] = word.text;
    }
    cli->program = i > 1 && i <= argc && strcmp(argv[i - 1], "--") == 0 ? &argv[i] : NULL;

    return CLI_OK;
}

static enum cli_exit read_options(struct cli *cli, const struct cli_command *command, int argc,
                                  char **argv)
{
    struct word word;
    int i = 1;

    while (next_word(cli, command, argc, argv, &i, &word)) {
        if (word.flag == NULL) {
            continue;
        }
        const struct cli_option *option = cli_find_option(command, word.flag);
        if (option == NULL) {
            return wrong_option(command, &word);
        }
        if (word.value == NULL && cli_has_value(option)) {
            char message[128];
            (void)snprintf(message, sizeof message, "%.60s needs a value: %s", word.flag,
                           option->value);
            return cli_usage(message);
        }
        bool is_right =
            word.value == NULL || !cli_has_value(option) || is_listed(option, word.value);
        if (!is_right || !set_value(cli, option, word.value)) {
            return wrong_value(&word, option);
        }
    }

    return CLI_OK;
}

/* Words behind "--": a program, or arguments that begin with a dash. */
static enum cli_exit take_rest(struct cli *cli, const struct cli_command *command)
{
    if (cli->program == NULL || strstr(command->arguments, "PROGRAM") != NULL) {
        return CLI_OK;
    }
    for (char **at = cli->program; *at != NULL; at++) {
        if (cli->n_args == CLI_MAX_ARGS) {
            return cli_usage("there are more than 1024 arguments");
        }
        cli->args[cli->n_args++] = *at;
    }
    cli->program = NULL;
    return CLI_OK;
}

/* No command is called like the first argument. It may be the value of an option that is unknown. */
static enum cli_exit no_command(struct cli *cli, int argc, char **argv)
{
    struct word word;
    int i = 1;

    while (next_word(cli, NULL, argc, argv, &i, &word) && word.flag != NULL) {
        if (word.option == NULL) {
            return wrong_option(NULL, &word);
        }
    }

    return cli_no_such("", cli->args[0]);
}

enum cli_exit cli_parse(struct cli *cli, int argc, char **argv, const struct cli_command **ret)
{
    *ret = NULL;

    /* Find the command. */
    enum cli_exit code = read_arguments(cli, argc, argv);
    if (code != CLI_OK || cli->wants_version) {
        return code;
    }
    const struct cli_command *command = cli_find_command(cli->args, cli->n_args);
    cli_set_usage(command == NULL ? "" : command->words);
    if (command == NULL || cli->wants_help) {
        *ret = command;
        return cli->wants_help   ? CLI_OK
               : cli->n_args > 0 ? no_command(cli, argc, argv)
                                 : read_options(cli, NULL, argc, argv);
    }
    size_t n_words = cli_count_words(command->words);
    if (command->row == CLI_ROW_GROUP && cli->n_args > n_words) {
        return cli_no_such(command->words, cli->args[n_words]);
    }
    *ret = command;
    if (command->row == CLI_ROW_GROUP) {
        return CLI_OK;
    }

    /* Read its options, and check its arguments, which begin after its words. */
    code = read_options(cli, command, argc, argv);
    if (code == CLI_OK) {
        code = take_rest(cli, command);
    }
    if (code == CLI_OK) {
        code = cli_check_columns(cli, command->words);
    }
    size_t n = cli->n_args - n_words;
    if (code == CLI_OK && (n < command->min_args || n > command->max_args)) {
        code = wrong_count(command, cli->args + n_words, n);
    }
    if (code == CLI_OK && lacks_name(command, cli->args + n_words, n)) {
        code = wrong_count(command, cli->args + n_words, 0);
    }
    cli->n_args -= n_words;
    memmove(cli->args, cli->args + n_words, cli->n_args * sizeof cli->args[0]);

    return code;
}
