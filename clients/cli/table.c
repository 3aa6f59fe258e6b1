/* table.c -- the tables of commands and options; look-ups; the nearest of several names. */
#include "table.h"

#include <stddef.h>
#include <string.h>

#define SECTION(title)    {.row = CLI_ROW_SECTION, .words = "", .help = (title)},
#define GROUP(name, text) {.row = CLI_ROW_GROUP, .words = (name), .help = (text)},
#define COMMAND(words, arguments, min, max, run, explain, options, help, one, two) \
    {CLI_ROW_COMMAND, words, arguments, min, max, run, explain, options, help, {one, two}},
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

static bool list_has(const char *keys, const char *key)
{
    size_t n = strlen(key);

    for (const char *at = keys; *at != '\0';) {
        size_t word = strcspn(at, " ");
        if (word == n && memcmp(at, key, n) == 0) {
            return true;
        }
        at += word + strspn(at + word, " ");
    }

    return false;
}

bool cli_has_key(const char *keys, const char *key)
{
    if (list_has(keys, key)) {
        return true;
    }

    for (const char *at = strchr(keys, '@'); at != NULL; at = strchr(at + 1, '@')) {
        if (list_has(find_set(at + 1, strcspn(at + 1, " ")), key)) {
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

struct hearth_str cli_value_name(struct hearth_str value, char *ret_after)
{
    size_t n = 0;

    while (n < value.n && value.p[n] != '=' && value.p[n] != '[') {
        n++;
    }
    *ret_after = n < value.n ? value.p[n] : '\0';

    return hearth_str_n(value.p, n);
}

bool cli_next_value(const char *values, const char **at, struct hearth_str *ret)
{
    const char *from = *at == NULL ? values : *at;

    if (values == NULL || values[0] == '@' || *from == '\0') {
        return false;
    }
    size_t n = strcspn(from, "|");
    *ret = hearth_str_n(from, n);
    *at = from + n + (from[n] == '|' ? 1 : 0);

    return true;
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

/* ---- did you mean ---- */

enum {
    LONGEST = 64 /* bytes of a text that is compared */
};

/* Changes, insertions, deletions and swaps of neighbours that make b of a. */
static int edit_distance(struct hearth_str a, struct hearth_str b)
{
    int rows[3][LONGEST + 1];
    int *before = rows[0], *last = rows[1], *now = rows[2];

    for (size_t j = 0; j <= b.n; j++) {
        last[j] = (int)j;
    }
    for (size_t i = 1; i <= a.n; i++) {
        now[0] = (int)i;
        for (size_t j = 1; j <= b.n; j++) {
            int best = last[j - 1] + (a.p[i - 1] != b.p[j - 1]);
            best = last[j] + 1 < best ? last[j] + 1 : best;
            best = now[j - 1] + 1 < best ? now[j - 1] + 1 : best;
            bool is_swap = i > 1 && j > 1 && a.p[i - 1] == b.p[j - 2] && a.p[i - 2] == b.p[j - 1];
            now[j] = is_swap && before[j - 2] + 1 < best ? before[j - 2] + 1 : best;
        }
        int *oldest = before;
        before = last;
        last = now;
        now = oldest;
    }

    return last[b.n];
}

void cli_guess_begin(struct cli_guess *guess, const char *text)
{
    *guess = (struct cli_guess){.text = hearth_str_c(text)};
    /* A third of the letters may be wrong. */
    guess->distance = 1 + (int)(guess->text.n < LONGEST ? guess->text.n : LONGEST) / 3;
}

void cli_guess_try(struct cli_guess *guess, struct hearth_str candidate)
{
    if (guess->text.n == 0 || guess->text.n > LONGEST || candidate.n > LONGEST) {
        return;
    }

    /* The beginning of a long name is nearer than any name with a wrong letter. */
    bool is_start = guess->text.n >= 3 && hearth_str_starts(candidate, guess->text);
    int distance = is_start ? 1 : edit_distance(guess->text, candidate);
    if (distance < guess->distance) {
        guess->distance = distance;
        guess->best = candidate;
    }
}

void cli_guess_say(const struct cli_guess *guess, struct hearth_buf *out)
{
    if (guess->best.p != NULL) {
        hearth_buf_cstr(out, "; did you mean ");
        cli_fit(guess->best, 100, false, out);
        hearth_buf_byte(out, '?');
    }
}
