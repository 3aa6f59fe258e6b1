/* table.c -- the tables of commands and options, and look-ups in them. */
#include "table.h"

#include "word_list.h"

#include <stddef.h>
#include <string.h>

#define SECTION(title)    {.row = CLI_ROW_SECTION, .words = "", .help = (title)},
#define GROUP(name, text) {.row = CLI_ROW_GROUP, .words = (name), .help = (text)},
#define COMMAND(words, arguments, min, max, run, explain, options, help, one, two) \
    {CLI_ROW_COMMAND, words, arguments, min, max, options, help, {one, two}},
const struct cli_command cli_commands[] = {
#include "commands.def"
};
const size_t cli_n_commands = HEARTH_ARRAY_LEN(cli_commands);
#undef SECTION
#undef GROUP
#undef COMMAND

#define OPTION(key, kind, field, flag, brief, value, values, help) \
    {key, CLI_KIND_##kind, offsetof(struct cli, field), flag, brief, value, values, help},
#define SET(name, keys)
#define INPUT(id, flag, kind, text_default, text) \
    {"sizing",                                    \
     CLI_KIND_TEXT,                               \
     offsetof(struct cli, sizing[SIZING_##id]),   \
     "--" flag,                                   \
     NULL,                                        \
     "N",                                         \
     NULL,                                        \
     text " [" text_default "]"},
const struct cli_option cli_options[] = {
#include "options.def"
#include "sizing.def"
};
const size_t cli_n_options = HEARTH_ARRAY_LEN(cli_options);
#undef OPTION
#undef SET

static const struct {
    const char *name, *keys;
} g_sets[] = {
#define OPTION(key, kind, field, flag, brief, value, values, help)
#define SET(name, keys) {name, keys},
#include "options.def"
#undef OPTION
#undef SET
};

/* ---- options ---- */

static const char *find_set(const char *name, size_t n)
{
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_sets); i++) {
        if (strlen(g_sets[i].name) == n && memcmp(g_sets[i].name, name, n) == 0) {
            return g_sets[i].keys;
        }
    }
    return "";
}

bool cli_has_key(const char *keys, const char *key)
{
    if (cli_list_has(keys, key)) {
        return true;
    }

    for (const char *at = strchr(keys, '@'); at != NULL; at = strchr(at + 1, '@')) {
        if (cli_list_has(find_set(at + 1, strcspn(at + 1, " ")), key)) {
            return true;
        }
    }

    return false;
}

bool cli_takes_option(const struct cli_command *command, const struct cli_option *option)
{
    return command->row == CLI_ROW_COMMAND && cli_has_key(command->options, option->key);
}

const struct cli_option *cli_find_option(const struct cli_command *command, const char *flag)
{
    for (size_t i = 0; i < cli_n_options; i++) {
        const struct cli_option *o = &cli_options[i];
        bool is_it =
            strcmp(flag, o->flag) == 0 || (o->brief != NULL && strcmp(flag, o->brief) == 0);
        if (is_it && (command == NULL || cli_takes_option(command, o))) {
            return o;
        }
    }
    return NULL;
}

bool cli_has_value(const struct cli_option *option)
{
    return option->kind != CLI_KIND_SWITCH && option->kind != CLI_KIND_EXPLAIN;
}

/* ---- commands ---- */

size_t cli_count_words(const char *words)
{
    size_t n = words[0] == '\0' ? 0 : 1;
    for (const char *at = words; *at != '\0'; at++) {
        n += *at == ' ' ? 1 : 0;
    }
    return n;
}

bool cli_words_begin(const char *words, const char *first)
{
    size_t n = strlen(first);
    return strncmp(words, first, n) == 0 && (n == 0 || words[n] == '\0' || words[n] == ' ');
}

void cli_word_after(const char *words, const char *first, char ret[64])
{
    const char *at = words + strlen(first);
    at += strspn(at, " ");
    size_t n = strcspn(at, " ");
    n = n < 63 ? n : 63;
    memcpy(ret, at, n);
    ret[n] = '\0';
}

/* Whether the first arguments are these words. */
static bool are_words(const char *words, const char *const *args, size_t n_args)
{
    size_t i = 0;

    for (const char *at = words; *at != '\0'; i++) {
        size_t n = strcspn(at, " ");
        if (i == n_args || strlen(args[i]) != n || memcmp(args[i], at, n) != 0) {
            return false;
        }
        at += n + strspn(at + n, " ");
    }

    return i > 0;
}

const struct cli_command *cli_find_command(const char *const *args, size_t n_args)
{
    const struct cli_command *best = NULL;
    size_t best_words = 0;

    /* A group stands above its command of the same words, which replaces it. */
    for (size_t i = 0; i < cli_n_commands; i++) {
        size_t n = cli_count_words(cli_commands[i].words);
        if (n >= best_words && are_words(cli_commands[i].words, args, n_args)) {
            bool is_other_word = best != NULL && n == best_words && n_args > n;
            best = is_other_word ? best : &cli_commands[i];
            best_words = n;
        }
    }

    return best;
}
