/*
 * cmd_completion.c -- hearth completion: scripts for shells, and the words that they offer.
 *
 * The scripts ask `hearth completion words -- WORD...` for what may follow; the last word is the one that is typed.
 * Commands, options and values are those of the tables; services, labels and types are asked of the server, which has
 * 300 ms to answer, and whose answer is kept for half a minute. Without an answer nothing is offered.
 */
#include "hearth/base/clock.h"
#include "hearth/model/labels.h"

#include "cli_messages.h"
#include "cli_settings.h"
#include "listing.h"
#include "table.h"
#include "text.h"
#include "why.h"
#include "word_list.h"

#include <limits.h>
#include <stdio.h>

enum {
    LIVE_DAYS = 1 /* age of the services that are offered */
};

/* ---- scripts ---- */

static const char g_bash[] =
    "# eval \"$(hearth completion bash)\", or into /etc/bash_completion.d\n"
    "_hearth() {\n"
    "    local words cword cur\n"
    "    if declare -F _get_comp_words_by_ref > /dev/null; then\n"
    "        _get_comp_words_by_ref -n =: words cword cur\n"
    "    else\n"
    "        words=(\"${COMP_WORDS[@]}\") cword=$COMP_CWORD cur=${COMP_WORDS[COMP_CWORD]}\n"
    "    fi\n"
    "    mapfile -t COMPREPLY < <(hearth completion words -- \"${words[@]:1:cword}\" 2> "
    "/dev/null)\n"
    "    if declare -F __ltrim_colon_completions > /dev/null; then\n"
    "        __ltrim_colon_completions \"$cur\"\n"
    "    fi\n"
    "}\n"
    "complete -o default -F _hearth hearth\n";

static const char g_zsh[] =
    "#compdef hearth\n"
    "_hearth() {\n"
    "    local -a found\n"
    "    found=(${(f)\"$(hearth completion words -- \"${(@)words[2,CURRENT]}\" 2> /dev/null)\"})\n"
    "    if (( $#found )); then compadd -a found; else _files; fi\n"
    "}\n"
    "compdef _hearth hearth\n";

static const char g_fish[] =
    "complete -c hearth -a '(hearth completion words -- (commandline -opc)[2..-1] (commandline "
    "-ct) 2> /dev/null)'\n";

/* ---- words ---- */

/* Appends a candidate if it begins with the typed word. */
static void offer(struct hearth_buf *out, const char *typed, struct hearth_str candidate)
{
    if (candidate.n > 0 && hearth_str_starts(candidate, hearth_str_c(typed))) {
        cli_fit(candidate, INT_MAX, false, out);
        hearth_buf_byte(out, '\n');
    }
}

/*
 * Whether every shell reads the name as the word that it is. Bash puts what is offered on the command
 * line as it stands, and names come from strangers: "$(...)" would run.
 */
static bool is_plain_word(const char *name)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_./:@%+,-";

    return name[0] != '-' && name[strspn(name, plain)] == '\0';
}

/* Appends the names that the server has, a line each; false: it did not answer in time. */
static bool ask_live(struct cli *cli, const char *label, struct hearth_buf *out)
{
    int64_t now_ms = cli->now_ns / HEARTH_NS_PER_MS;
    char **names = NULL;
    size_t n = 0;

    bool is_answered =
        label == NULL ? cli_ask_labels(cli, &names, &n) == HEARTH_OK
                      : cli_ask_values(cli, label, "{}",
                                       now_ms - LIVE_DAYS * HEARTH_NS_PER_DAY / HEARTH_NS_PER_MS,
                                       now_ms, &names, &n) == HEARTH_OK;
    for (size_t i = 0; is_answered && i < n; i++) {
        bool is_inner = label == NULL && strncmp(names[i], "__", 2) == 0;
        if (!is_inner && is_plain_word(names[i])) {
            hearth_buf_printf(out, "%s\n", names[i]);
        }
    }

    return is_answered;
}

static void offer_live(struct cli *cli, struct hearth_buf *out, const char *typed,
                       const char *label)
{
    const char *kind = label == NULL ? "labels" : label;
    struct hearth_str names;
    struct hearth_buf live;

    hearth_buf_init(&live, 0);
    if (!cli_cache_find(cli, kind, &names)) {
        if (ask_live(cli, label, &live) && !hearth_buf_failed(&live)) {
            cli_cache_keep(cli, kind, hearth_buf_view(&live));
        }
        names = hearth_buf_view(&live);
    }
    for (size_t from = 0, to; from < names.n; from = to + 1) {
        to = hearth_str_find(names, '\n', from);
        offer(out, typed, hearth_str_n(names.p + from, to - from));
    }
    hearth_buf_release(&live);
}

/* Offers the columns of a command, after those that are typed already. */
static void offer_columns(struct cli *cli, struct hearth_buf *out, const char *typed,
                          const struct cli_command *command)
{
    size_t n;
    const struct cli_column *columns = cli_columns_of(command->words, &n);
    const char *comma = strrchr(typed, ',');
    int before = comma == NULL ? 0 : (int)(comma + 1 - typed);

    for (size_t i = 0; i < n; i++) {
        const char *all =
            hearth_arena_printf(&cli->arena, "%.*s%s", before, typed, columns[i].name);
        offer(out, typed, hearth_str_c(all == NULL ? "" : all));
    }
}

static void offer_contexts(struct cli *cli, struct hearth_buf *out, const char *typed)
{
    struct cli_contexts contexts;

    if (cli_read_contexts(cli, &contexts) == HEARTH_OK) {
        for (size_t i = 0; i < contexts.n; i++) {
            offer(out, typed, hearth_str_c(contexts.v[i].name));
        }
    }
}

static void offer_values(struct cli *cli, struct hearth_buf *out, const char *typed,
                         const char *values)
{
    const char *at = NULL;
    struct hearth_str one;

    while (cli_next_value(values, &at, &one)) {
        char after;
        struct hearth_str name = cli_value_name(one, &after);
        offer(out, typed, after == '=' ? hearth_str_n(one.p, name.n + 1) : name);
    }
    if (values != NULL && strcmp(values, "@contexts") == 0) {
        offer_contexts(cli, out, typed);
    } else if (values != NULL && values[0] == '@') {
        offer_live(cli, out, typed,
                   strcmp(values, "@labels") == 0     ? NULL
                   : strcmp(values, "@services") == 0 ? HEARTH_LABEL_SERVICE
                                                      : HEARTH_LABEL_PROFILE_TYPE);
    }
}

static void offer_flags(struct hearth_buf *out, const char *typed,
                        const struct cli_command *command)
{
    for (size_t i = 0; i < cli_n_options; i++) {
        if (command != NULL && cli_takes_option(command, &cli_options[i])) {
            offer(out, typed, hearth_str_c(cli_options[i].flag));
        }
    }
    offer(out, typed, HEARTH_STR("--help"));
}

/* Offers the words that may follow the words of a group, "" for all commands. */
static void offer_commands(struct hearth_buf *out, const char *typed, const char *below)
{
    char next[64], last[64] = "";

    for (size_t i = 0; i < cli_n_commands; i++) {
        if (cli_commands[i].row != CLI_ROW_SECTION &&
            cli_words_begin(cli_commands[i].words, below)) {
            cli_word_after(cli_commands[i].words, below, next);
            if (strcmp(next, last) != 0) {
                offer(out, typed, hearth_str_c(next));
            }
            memcpy(last, next, sizeof last);
        }
    }
}

/* Offers values of the argument at a position; of files nothing, which the shell offers itself. */
static void offer_argument(struct cli *cli, struct hearth_buf *out, const char *typed,
                           const struct cli_command *command, size_t position)
{
    const char *at = command->arguments;

    for (size_t i = 0; i < position && *at != '\0'; i++) {
        at += strcspn(at, " ");
        at += strspn(at, " ");
    }
    at += at[0] == '[' ? 1 : 0;
    if (strncmp(at, "SELECTOR", 8) == 0 || strncmp(at, "SERVICE", 7) == 0) {
        offer_live(cli, out, typed, HEARTH_LABEL_SERVICE);
    } else if (strncmp(at, "LABEL", 5) == 0) {
        offer_live(cli, out, typed, NULL);
    } else if (strncmp(at, "CONTEXT", 7) == 0) {
        offer_contexts(cli, out, typed);
    } else if (strncmp(at, "KIND", 4) == 0) {
        offer_values(cli, out, typed, "oncpu|offcpu|network|trace|async|pprof");
    } else if (strncmp(at, "SHELL", 5) == 0) {
        offer_values(cli, out, typed, "bash|zsh|fish");
    }
}

static void offer_words(struct cli *cli, const char *const *words, size_t n, struct hearth_buf *out)
{
    const char *typed = words[n - 1];
    const char **arguments = hearth_arena_array(&cli->arena, n, sizeof arguments[0]);
    size_t n_arguments = 0;
    const char *waiting = NULL; /* an option whose value is typed */

    /* The words before it: arguments, and options with their values. */
    for (size_t i = 0; arguments != NULL && i + 1 < n; i++) {
        const struct cli_option *option =
            words[i][0] == '-' ? cli_find_option(NULL, words[i]) : NULL;
        if (option != NULL && cli_has_value(option)) {
            waiting = i + 2 == n ? words[i] : NULL;
            i++;
        } else if (words[i][0] != '-') {
            arguments[n_arguments++] = words[i];
        }
    }
    const struct cli_command *command = cli_find_command(arguments, n_arguments);
    size_t n_words = command == NULL ? 0 : cli_count_words(command->words);

    if (waiting != NULL) {
        const struct cli_option *option = cli_find_option(
            command == NULL || command->row == CLI_ROW_GROUP ? NULL : command, waiting);
        if (option != NULL && strcmp(option->key, "columns") == 0) {
            offer_columns(cli, out, typed, command);
        } else {
            offer_values(cli, out, typed, option == NULL ? NULL : option->values);
        }
    } else if (typed[0] == '-') {
        offer_flags(out, typed, command);
    } else if (n_arguments == n_words) {
        offer_commands(out, typed, command == NULL ? "" : command->words);
    }
    if (waiting == NULL && typed[0] != '-' && command != NULL && command->row == CLI_ROW_COMMAND) {
        offer_argument(cli, out, typed, command, n_arguments - n_words);
    }
}

enum cli_exit cli_completion(struct cli *cli)
{
    static const struct {
        const char *shell, *script;
    } scripts[] = {{"bash", g_bash}, {"zsh", g_zsh}, {"fish", g_fish}};
    struct hearth_buf out;

    hearth_buf_init(&out, 0);
    if (strcmp(cli->args[0], "words") == 0) {
        if (cli->n_args > 1) {
            offer_words(cli, cli->args + 1, cli->n_args - 1, &out);
        }
        return cli_print(&out);
    }
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(scripts); i++) {
        if (strcmp(cli->args[0], scripts[i].shell) == 0) {
            hearth_buf_cstr(&out, scripts[i].script);
            return cli_print(&out);
        }
    }

    return cli_usage("SHELL of completion must be bash, zsh or fish");
}
