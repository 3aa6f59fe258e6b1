/* config_print.c -- prints the options: --help, and the effective configuration as a file. */
#include "hearth/selector/timeexpr.h"

#include "config_options.h"

#include <assert.h>
#include <stdio.h>

static const void *find_const_member(const struct hearth_config *config,
                                     const struct hearth_option *option)
{
    return (const char *)config + option->offset;
}

static void print_help_line(const struct hearth_option *option, struct hearth_buf *out)
{
    hearth_buf_printf(out, "  --%-26s %s", option->flag, option->help);
    if (option->def[0] != '\0') {
        hearth_buf_printf(out, " [%s]", option->def);
    }
    hearth_buf_byte(out, '\n');
}

void hearth_config_help(bool all, struct hearth_buf *out)
{
    hearth_buf_cstr(
        out,
        "hearthd -- the Hearth continuous-profiling server\n\n"
        "usage: hearthd [--config FILE] [--OPTION VALUE]...\n"
        "       hearthd check-config [--origin] [--config FILE] [--OPTION VALUE]...\n"
        "       hearthd migrate [--dry-run] --database-url URL [--OPTION VALUE]...\n"
        "       hearthd scale-out [--dry-run | --undo] --database-url URL [--OPTION VALUE]...\n\n"
        "  check-config      check the configuration and exit: 0 if it is valid, otherwise 2;\n"
        "                    --origin prints the options that are set, and where\n"
        "  migrate           bring the schema of a database up to date and exit; hearthd does\n"
        "                    the same when it starts. --dry-run prints what is missing, and exits\n"
        "                    with 1 if something is\n"
        "  scale-out         distribute the tables that grow over the nodes of Citus and exit;\n"
        "                    no hearthd may run. --dry-run prints what would move, and exits with\n"
        "                    1 if something would; --undo moves all rows to the coordinator again\n"
        "  --config FILE     read options from a YAML file with a section for each group of them\n"
        "  --print-config    print the effective configuration as such a file and exit\n"
        "  --version         print the version and exit\n"
        "  --help            print this text and exit; --help-all: with all options\n\n"
        "Every option can also be set in the environment: --max-samples is HEARTH_MAX_SAMPLES.\n"
        "Flags override the environment, which overrides the file. Bytes take k, m, g (powers of\n"
        "1024); durations look like 500ms, 90s, 2h, 7d; lists have commas, or the flag is "
        "repeated.\n"
        "Defaults are in brackets. A limit of 0 means no limit, unless its text says otherwise.\n");

    if (!all) {
        static const char *const first[] = {"listen",       "data-dir",   "database-url-file",
                                            "auth",         "retain-raw", "scrape-config",
                                            "multitenancy", "log-level"};
        hearth_buf_cstr(out, "\nThe first options to know; --help-all prints all of them:\n");
        for (size_t i = 0; i < HEARTH_ARRAY_LEN(first); i++) {
            const struct hearth_option *option = hearth_option_find(hearth_str_c(first[i]));
            HEARTH_ASSERT(option != NULL);
            print_help_line(option, out);
        }
        return;
    }

    /* Each option with its default, under the name of its group. */
    for (size_t i = 0; i < hearth_n_options; i++) {
        if (hearth_options[i].group != NULL) {
            hearth_buf_printf(out, "\n%s\n", hearth_options[i].group);
        } else {
            print_help_line(&hearth_options[i], out);
        }
    }
}

/* True for a text that YAML reads as itself without quotes, in a list, too. */
static bool is_plain(const char *text)
{
    size_t n = strlen(text);
    size_t n_plain = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "_./+:-");

    return n > 0 && n_plain == n && text[n - 1] != ':' && text[0] != '-' && text[0] != ':' &&
           strcmp(text, "null") != 0;
}

/*
 * The bytes of the character at `text` if YAML has it only as an escape: a control, a line break, a
 * mark of the byte order, or a code that is no character. 0: any other.
 */
static size_t find_special(const char *text, unsigned *ret_code)
{
    const unsigned char *p = (const unsigned char *)text;

    if (p[0] < ' ' || p[0] == 0x7f) {
        *ret_code = p[0];
        return 1;
    }
    if (p[0] == 0xc2 && p[1] >= 0x80 && p[1] < 0xa0) {
        *ret_code = p[1];
        return 2;
    }
    if ((p[0] & 0xf0) != 0xe0 || (p[1] & 0xc0) != 0x80 || (p[2] & 0xc0) != 0x80) {
        return 0;
    }

    unsigned code = (p[0] & 0x0fu) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu);
    *ret_code = code;
    return code == 0x2028 || code == 0x2029 || code == 0xfeff || code >= 0xfffe ? 3 : 0;
}

static void print_text(const char *text, struct hearth_buf *out)
{
    if (is_plain(text)) {
        hearth_buf_cstr(out, text);
        return;
    }

    hearth_buf_byte(out, '"');
    for (size_t n; *text != '\0'; text += n) {
        unsigned code;
        n = find_special(text, &code);
        if (n > 0) {
            hearth_buf_printf(out, code == '\t' ? "\\t" : code < 256 ? "\\x%02X" : "\\u%04X", code);
            continue;
        }

        hearth_buf_cstr(out, *text == '"' || *text == '\\' ? "\\" : "");
        hearth_buf_append(out, text, 1);
        n = 1;
    }
    hearth_buf_byte(out, '"');
}

static void print_list(const char *const *list, struct hearth_buf *out)
{
    hearth_buf_byte(out, '[');
    for (size_t i = 0; list[i] != NULL; i++) {
        hearth_buf_cstr(out, i == 0 ? "" : ", ");
        print_text(list[i], out);
    }
    hearth_buf_byte(out, ']');
}

static void print_value(const struct hearth_config *config, const struct hearth_option *option,
                        struct hearth_arena *scratch, struct hearth_buf *out)
{
    assert(option->flag != NULL);

    const void *at = find_const_member(config, option);
    const struct hearth_secret *secret;
    const char *text;
    const char *const *list;
    int64_t number;
    bool flag;
    char duration[48];

    switch (option->kind) {
    case TEXT:
        memcpy(&text, at, sizeof text);
        print_text(text, out);
        break;
    case SECRET:
        memcpy(&secret, at, sizeof secret);
        text = hearth_config_mask_url(hearth_secret_reveal(secret), scratch);
        print_text(text == NULL ? "***" : text, out);
        break;
    case TOKEN:
        memcpy(&secret, at, sizeof secret);
        print_text(secret == NULL ? "" : "***", out);
        break;
    case LIST:
        memcpy(&list, at, sizeof list);
        print_list(list, out);
        break;
    case INT:
    case BYTES:
        memcpy(&number, at, sizeof number);
        hearth_buf_printf(out, "%lld", (long long)number);
        break;
    case DURATION:
        memcpy(&number, at, sizeof number);
        if (number == 0) {
            hearth_buf_cstr(out, "0");
        } else {
            hearth_duration_format(number, duration);
            hearth_buf_cstr(out, duration);
        }
        break;
    case BOOL:
        memcpy(&flag, at, sizeof flag);
        hearth_buf_cstr(out, flag ? "true" : "false");
        break;
    }
}

static bool is_same_list(const char *const *a, const char *const *b)
{
    size_t i = 0;

    if (a == NULL || b == NULL) {
        return a == b;
    }

    while (a[i] != NULL && b[i] != NULL && strcmp(a[i], b[i]) == 0) {
        i++;
    }

    return a[i] == NULL && b[i] == NULL;
}

static bool is_same_value(const struct hearth_config *a, const struct hearth_config *b,
                          const struct hearth_option *option)
{
    const void *at = find_const_member(a, option), *bt = find_const_member(b, option);
    const struct hearth_secret *secret_a, *secret_b;
    const char *text_a, *text_b;
    const char *const *list_a, *const *list_b;
    bool same = false;

    switch (option->kind) {
    case SECRET:
    case TOKEN:
        memcpy(&secret_a, at, sizeof secret_a);
        memcpy(&secret_b, bt, sizeof secret_b);
        same = hearth_secret_same(secret_a, secret_b);
        break;
    case TEXT:
        memcpy(&text_a, at, sizeof text_a);
        memcpy(&text_b, bt, sizeof text_b);
        same = strcmp(text_a, text_b) == 0;
        break;
    case LIST:
        memcpy(&list_a, at, sizeof list_a);
        memcpy(&list_b, bt, sizeof list_b);
        same = is_same_list(list_a, list_b);
        break;
    case INT:
    case BYTES:
    case DURATION:
        same = memcmp(at, bt, sizeof(int64_t)) == 0;
        break;
    case BOOL:
        same = memcmp(at, bt, sizeof(bool)) == 0;
        break;
    }

    return same;
}

bool hearth_config_is_set(const struct hearth_config *config, const char *flag)
{
    const struct hearth_option *option = hearth_option_find(hearth_str_c(flag));
    HEARTH_ASSERT(option != NULL);
    return strcmp(config->origins[option - hearth_options], "default") != 0;
}

size_t hearth_config_changes(const struct hearth_config *a, const struct hearth_config *b,
                             bool live, struct hearth_buf *out)
{
    size_t n = 0;

    for (size_t i = 0; i < hearth_n_options; i++) {
        const struct hearth_option *option = &hearth_options[i];
        if (option->group == NULL && option->is_live == live && !is_same_value(a, b, option)) {
            hearth_buf_printf(out, "%s%s", n == 0 ? "" : ", ", option->flag);
            n++;
        }
    }

    return n;
}

static void print_option(const struct hearth_config *config, const struct hearth_option *option,
                         struct hearth_arena *scratch, struct hearth_buf *out)
{
    const char *origin = config->origins[option - hearth_options];
    bool is_set = strcmp(origin, "default") != 0;

    /* A secret from a file is a comment: printed, the file's option sets it. */
    bool is_read = hearth_option_is_secret(option) && is_set &&
                   strcmp(origin, hearth_option_find_file(option)->flag) == 0;
    hearth_buf_printf(out, "  %s%s: ", is_read ? "# " : "", hearth_option_key(option));
    print_value(config, option, scratch, out);
    hearth_buf_printf(out, "%s%s\n", is_set ? "  # from " : "", is_set ? origin : "");
}

static void print_options(const struct hearth_config *config, bool set_only, struct hearth_buf *out)
{
    const struct hearth_option *section = NULL; /* one whose name is not printed yet */
    struct hearth_arena scratch;

    hearth_arena_init(&scratch, 0);
    for (size_t i = 0; i < hearth_n_options; i++) {
        const struct hearth_option *option = &hearth_options[i];
        if (option->section != NULL) {
            section = option;
            continue;
        }
        if (set_only && strcmp(config->origins[i], "default") == 0) {
            continue;
        }

        if (section != NULL) {
            hearth_buf_printf(out, "%s# %s\n%s:\n", out->n == 0 ? "" : "\n", section->group,
                              section->section);
            section = NULL;
        }
        print_option(config, option, &scratch, out);
    }

    hearth_arena_release(&scratch);
}

void hearth_config_print_set(const struct hearth_config *config, struct hearth_buf *out)
{
    print_options(config, true, out);
}

void hearth_config_print(const struct hearth_config *config, struct hearth_buf *out)
{
    print_options(config, false, out);
}

void hearth_config_print_mistakes(const struct hearth_config *config)
{
    for (size_t i = 0; i < config->n_mistakes && i < HEARTH_MAX_MISTAKES; i++) {
        (void)fprintf(stderr, "hearthd: %s\n", config->mistakes[i]);
    }

    if (config->n_mistakes > HEARTH_MAX_MISTAKES) {
        (void)fprintf(stderr, "hearthd: %zu further mistakes are not shown\n",
                      config->n_mistakes - HEARTH_MAX_MISTAKES);
    }
}

/* "max-samples: 5 (/etc/hearth/hearthd.yaml:3) instead of 4, ..." */
static void print_differences(const struct hearth_config *now, const struct hearth_config *next,
                              bool live, struct hearth_buf *out)
{
    struct hearth_arena scratch;
    size_t n = 0;

    hearth_arena_init(&scratch, 0);
    for (size_t i = 0; i < hearth_n_options; i++) {
        const struct hearth_option *option = &hearth_options[i];
        if (option->group != NULL || option->is_live != live || is_same_value(now, next, option)) {
            continue;
        }

        hearth_buf_cstr(out, n > 0 ? ", " : out->n > 0 ? "; " : "");
        if (n++ == 0) {
            hearth_buf_cstr(out, live ? "SIGHUP applies " : "a restart applies ");
        }
        hearth_buf_printf(out, "%s: ", option->flag);
        print_value(next, option, &scratch, out);
        hearth_buf_printf(out, " (%s) instead of ", next->origins[i]);
        print_value(now, option, &scratch, out);
    }

    hearth_arena_release(&scratch);
}

void hearth_config_write_differences(const struct hearth_config *now,
                                     const struct hearth_config *next, struct hearth_buf *out)
{
    print_differences(now, next, true, out);
    print_differences(now, next, false, out);
}

/* "max-samples: 5 (flag), ..." of the options that a source sets to another value. */
static void print_changed(const struct hearth_config *config, const struct hearth_config *defaults,
                          struct hearth_buf *out)
{
    struct hearth_arena scratch;
    bool is_first = true;

    hearth_arena_init(&scratch, 0);
    for (size_t i = 0; i < hearth_n_options; i++) {
        const struct hearth_option *option = &hearth_options[i];
        if (option->group != NULL || strcmp(config->origins[i], "default") == 0 ||
            is_same_value(config, defaults, option)) {
            continue;
        }

        hearth_buf_printf(out, "%s%s: ", is_first ? "" : ", ", option->flag);
        print_value(config, option, &scratch, out);
        hearth_buf_printf(out, " (%s)", config->origins[i]);
        is_first = false;
    }

    hearth_arena_release(&scratch);
}

void hearth_config_write_part(const struct hearth_config *config, enum hearth_front_config which,
                              struct hearth_buf *out)
{
    if (which == HEARTH_FRONT_CONFIG_ALL || which == HEARTH_FRONT_CONFIG_DIFF) {
        print_options(config, which == HEARTH_FRONT_CONFIG_DIFF, out);
        return;
    }

    struct hearth_config defaults;
    char *const nothing[] = {NULL};
    if (hearth_config_load(&defaults, 0, nothing, nothing, NULL) != HEARTH_OK) {
        /* There was no memory: nothing is written. */
    } else if (which == HEARTH_FRONT_CONFIG_CHANGED) {
        print_changed(config, &defaults, out);
    } else {
        print_options(&defaults, false, out);
    }

    hearth_config_release(&defaults);
}
