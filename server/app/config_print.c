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

void hearth_config_help(struct hearth_buf *out)
{
    hearth_buf_cstr(
        out,
        "hearthd -- the Hearth continuous-profiling server\n\n"
        "usage: hearthd [--config FILE] [--OPTION VALUE]...\n"
        "       hearthd check-config [--config FILE] [--OPTION VALUE]...\n"
        "       hearthd migrate [--dry-run] --database-url URL [--OPTION VALUE]...\n\n"
        "  check-config      check the configuration and exit: 0 if it is valid, otherwise 2\n"
        "  migrate           bring the schema of a database up to date and exit; hearthd does\n"
        "                    the same when it starts. --dry-run prints what is missing, and exits\n"
        "                    with 1 if something is\n"
        "  --config FILE     read \"key = value\" lines; keys are the options below\n"
        "  --print-config    print the effective configuration and exit\n"
        "  --version         print the version and exit\n"
        "  --help            print this text and exit\n\n"
        "Every option can also be set in the environment: --max-samples is HEARTH_MAX_SAMPLES.\n"
        "Flags override the environment, which overrides the file. Bytes take k, m, g (powers of\n"
        "1024); durations look like 500ms, 90s, 2h, 7d; lists have commas, or the flag is "
        "repeated.\n"
        "Defaults are in brackets. A limit of 0 means no limit, unless its text says otherwise.\n");

    /* Each option with its default, under the name of its group. */
    for (size_t i = 0; i < hearth_n_options; i++) {
        const struct hearth_option *o = &hearth_options[i];
        if (o->group != NULL) {
            hearth_buf_printf(out, "\n%s\n", o->group);
            continue;
        }
        hearth_buf_printf(out, "  --%-26s %s", o->flag, o->help);
        if (o->def[0] != '\0') {
            hearth_buf_printf(out, " [%s]", o->def);
        }
        hearth_buf_byte(out, '\n');
    }
}

/* In the form that load_line reads: white space and quotes at the ends need surrounding quotes. */
static void print_text(const char *text, struct hearth_buf *out)
{
    struct hearth_str all = hearth_str_c(text);
    bool quote = hearth_str_trim(all).n != all.n || (all.n > 0 && all.p[0] == '"');
    hearth_buf_printf(out, "%s%s%s", quote ? "\"" : "", text, quote ? "\"" : "");
}

static void print_list(const char *const *list, struct hearth_buf *out)
{
    bool quote = list[0] != NULL && list[0][0] == '"';

    hearth_buf_cstr(out, quote ? "\"" : "");
    for (size_t i = 0; list[i] != NULL; i++) {
        hearth_buf_printf(out, "%s%s", i == 0 ? "" : ",", list[i]);
    }

    hearth_buf_cstr(out, quote ? "\"" : "");
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

static void print_options(const struct hearth_config *config, bool set_only, struct hearth_buf *out)
{
    struct hearth_arena scratch;

    hearth_arena_init(&scratch, 0);
    for (size_t i = 0; i < hearth_n_options; i++) {
        const struct hearth_option *o = &hearth_options[i];
        if (o->group != NULL) {
            if (!set_only) {
                hearth_buf_printf(out, "%s# %s\n", i == 0 ? "" : "\n", o->group);
            }
            continue;
        }

        const char *origin = config->origins[i];
        if (set_only && strcmp(origin, "default") == 0) {
            continue;
        }

        /* A secret from a file is a comment: printed, the file's option sets it. */
        bool is_read = hearth_option_is_secret(o) && strcmp(origin, "default") != 0 &&
                       strcmp(origin, hearth_option_find_file(o)->flag) == 0;
        hearth_buf_printf(out, "%s%s = ", is_read ? "# " : "", o->flag);
        print_value(config, o, &scratch, out);
        hearth_buf_byte(out, '\n');
        if (strcmp(origin, "default") != 0) {
            hearth_buf_printf(out, "#   from %s\n", origin);
        }
    }

    hearth_arena_release(&scratch);
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

void hearth_config_write_part(const struct hearth_config *config, enum hearth_front_config which,
                              struct hearth_buf *out)
{
    if (which != HEARTH_FRONT_CONFIG_DEFAULT) {
        print_options(config, which == HEARTH_FRONT_CONFIG_DIFF, out);
        return;
    }

    struct hearth_config defaults;
    char *const nothing[] = {NULL};
    if (hearth_config_load(&defaults, 0, nothing, nothing, NULL) == HEARTH_OK) {
        print_options(&defaults, false, out);
    }

    hearth_config_release(&defaults);
}
