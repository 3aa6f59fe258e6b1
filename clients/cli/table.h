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

/* ---- options.c, help.c ---- */

/* Reads options and arguments into `cli`. *ret: the command or the group; NULL: none. CLI_USAGE, with
 * a message, for mistakes. */
HEARTH_MUST_CHECK enum cli_exit cli_parse(struct cli *cli, int argc, char **argv,
                                          const struct cli_command **ret);
/* Says that a group, "" for all commands, has no such command. */
enum cli_exit cli_no_such(const char *group, const char *word);
/* The help of a command or group; NULL: the list of commands. */
enum cli_exit cli_print_help(const struct cli_command *command);
/* The help of everything. */
enum cli_exit cli_print_manual(void);

#endif
