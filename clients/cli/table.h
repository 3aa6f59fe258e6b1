/*
 * table.h -- the tables of commands and options, commands.def and options.def, and look-ups in them.
 *
 * Immutable.
 */
#ifndef HEARTH_CLIENTS_TABLE_H
#define HEARTH_CLIENTS_TABLE_H

#include "cli.h"

enum cli_option_kind {
    CLI_KIND_TEXT,
    CLI_KIND_LIST,
    CLI_KIND_SWITCH,
    CLI_KIND_COUNT,
    CLI_KIND_LIMIT,
    CLI_KIND_NATURAL,
    CLI_KIND_PERCENT,
    CLI_KIND_BY,
    CLI_KIND_LABEL,
    CLI_KIND_OUTPUT,
    CLI_KIND_EXPLAIN,
    CLI_KIND_TRANSFORM,
};

/* A row of options.def. */
struct cli_option {
    const char *key;
    enum cli_option_kind kind;
    size_t at; /* offset of the field in struct cli */
    const char *flag, *brief, *value, *values, *help;
};

enum cli_row_of {
    CLI_ROW_SECTION,
    CLI_ROW_GROUP,
    CLI_ROW_COMMAND,
};

/* A row of commands.def. A section has only its title, in `help`. */
struct cli_command {
    enum cli_row_of row;
    const char *words;
    const char *arguments;
    size_t min_args, max_args;
    cli_command_fn *run, *explain;
    const char *options, *help, *examples[2];
};

extern const struct cli_command cli_commands[];
extern const size_t cli_n_commands;
extern const struct cli_option cli_options[];
extern const size_t cli_n_options;

/* Whether `keys`, a list of keys and @SETs, has this key. "@NAME" is the set itself. */
bool cli_has_key(const char *keys, const char *key);
bool cli_takes_option(const struct cli_command *command, const struct cli_option *option);
/* By the long or the short form, among the options of a command; NULL command: among all. NULL: none. */
const struct cli_option *cli_find_option(const struct cli_command *command, const char *flag);
bool cli_has_value(const struct cli_option *option);
/* The row that the first arguments name, the one of most words; a command rather than its group. NULL: none. */
const struct cli_command *cli_find_command(const char *const *args, size_t n_args);
size_t cli_count_words(const char *words);
/* Whether `words` begin with all words of `first`. "" is the beginning of all. */
bool cli_words_begin(const char *words, const char *first);
/* The first word after the words of `first`, at most 63 bytes. */
void cli_word_after(const char *words, const char *first, char ret[64]);

/* The value of `values`, "a|b|c", at *at, which moves past it; false: the list has ended. */
bool cli_next_value(const char *values, const char **at, struct hearth_str *ret);
/* NAME of a value "NAME=FILE" or "NAME[=FILE]"; *ret_after: '=' or '[', NUL for a value without FILE. */
struct hearth_str cli_value_name(struct hearth_str value, char *ret_after);

/* ---- did you mean ---- */

/* The candidate that is nearest to a mistyped text. */
struct cli_guess {
    struct hearth_str text;
    struct hearth_str best; /* p is NULL: none is near */
    int distance;
};
void cli_guess_begin(struct cli_guess *guess, const char *text);
void cli_guess_try(struct cli_guess *guess, struct hearth_str candidate);
/* Appends "; did you mean X?" if a candidate is near. */
void cli_guess_say(const struct cli_guess *guess, struct hearth_buf *out);

#endif
