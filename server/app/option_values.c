/* option_values.c -- values of options from text (contract: config_options.h). */
#include "hearth/selector/timeexpr.h"

#include "config_options.h"

#include <assert.h>

static void *find_member(struct hearth_config *config, const struct hearth_option *option)
{
    return (char *)config + option->offset;
}

const char *hearth_config_quote(struct hearth_config *config, struct hearth_str text)
{
    const char *copy = hearth_arena_strndup(&config->arena, text.p, text.n);
    const char *masked = copy == NULL ? NULL : hearth_config_mask_url(copy, &config->arena);
    return masked == NULL ? "***" : hearth_arena_printf(&config->arena, "%.200s", masked);
}

void hearth_option_copy(struct hearth_config *to, const struct hearth_config *from,
                        const struct hearth_option *option)
{
    static const size_t sizes[] = {
        [TEXT] = sizeof(char *),   [LIST] = sizeof(char **),     [INT] = sizeof(int64_t),
        [BYTES] = sizeof(int64_t), [DURATION] = sizeof(int64_t), [BOOL] = sizeof(bool)};

    assert(!hearth_option_is_secret(option));
    memcpy(find_member(to, option), (const char *)from + option->offset, sizes[option->kind]);
    to->origins[option - hearth_options] = from->origins[option - hearth_options];
}

/* A value must be one line of text, so that a printed configuration can be read again. */
static bool is_line(struct hearth_str text)
{
    for (size_t i = 0; i < text.n; i++) {
        if ((unsigned char)text.p[i] < 0x20 && text.p[i] != '\t') {
            return false;
        }
    }

    return true;
}

static bool parse_int(struct hearth_str text, bool bytes, int64_t *ret)
{
    int64_t factor = 1;
    if (bytes && text.n > 1) {
        char unit = text.p[text.n - 1];
        factor = unit == 'k' || unit == 'K'   ? 1024
                 : unit == 'm' || unit == 'M' ? 1024 * 1024
                 : unit == 'g' || unit == 'G' ? 1024 * 1024 * 1024
                                              : 1;
        text.n -= factor > 1 ? 1 : 0;
    }

    int64_t value;

    if (!hearth_str_to_i64(text, &value) || value < 0 || value > INT64_MAX / factor) {
        return false;
    }
    *ret = value * factor;

    return true;
}

/*
 * Set *list to a NULL-terminated array in the config's arena: the comma-separated items of the text
 * or, with `more`, the present items and these. False if memory is refused.
 */
static bool parse_list(struct hearth_config *config, const char *const **list,
                       struct hearth_str text, bool more)
{
    size_t n_old = 0;
    while (more && *list != NULL && (*list)[n_old] != NULL) {
        n_old++;
    }

    /* One item more than there are commas, and NULL. */
    size_t n_max = n_old + 2;
    for (size_t i = 0; i < text.n; i++) {
        n_max += text.p[i] == ',' ? 1 : 0;
    }

    const char **items = hearth_arena_calloc(&config->arena, n_max, sizeof items[0]);
    if (items == NULL) {
        return false;
    }

    for (size_t i = 0; i < n_old; i++) {
        items[i] = (*list)[i];
    }

    /* Empty items are ignored. */
    for (size_t from = 0; from < text.n;) {
        size_t to = hearth_str_find(text, ',', from);
        struct hearth_str item = hearth_str_trim(hearth_str_n(text.p + from, to - from));
        if (item.n > 0) {
            items[n_old++] = hearth_arena_strndup(&config->arena, item.p, item.n);
        }
        from = to + 1;
    }

    *list = items;
    return true;
}

enum hearth_status hearth_option_set_items(struct hearth_config *config,
                                           const struct hearth_option *option,
                                           const struct hearth_str *items, size_t n,
                                           const char *from, struct hearth_err *err)
{
    assert(option->kind == LIST);

    const char **list = hearth_arena_calloc(&config->arena, n + 1, sizeof list[0]);
    if (list == NULL) {
        return HEARTH_FAIL_ARENA(err, &config->arena);
    }

    for (size_t i = 0; i < n; i++) {
        if (items[i].n == 0 || !is_line(items[i])) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                               "%s: item %zu of %s = \"%s\" is not one line of text", from, i + 1,
                               option->flag, hearth_config_quote(config, items[i]));
        }
        list[i] = hearth_arena_strndup(&config->arena, items[i].p, items[i].n);
        if (list[i] == NULL) {
            return HEARTH_FAIL_ARENA(err, &config->arena);
        }
    }

    memcpy(find_member(config, option), &list, sizeof list);
    config->origins[option - hearth_options] = from;

    return HEARTH_OK;
}

static bool parse_bool(struct hearth_str text, bool *ret)
{
    static const char *const yes[] = {"true", "1", "yes", "on"};
    static const char *const no[] = {"false", "0", "no", "off"};

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(yes); i++) {
        if (hearth_str_eq_c(text, yes[i])) {
            *ret = true;
            return true;
        }
        if (hearth_str_eq_c(text, no[i])) {
            *ret = false;
            return true;
        }
    }

    return false;
}

static bool parse_duration(struct hearth_str text, int64_t *ret)
{
    if (hearth_str_eq_c(text, "0")) {
        *ret = 0;
        return true;
    }
    return hearth_duration_parse(text, ret, NULL) == HEARTH_OK;
}

/* False if memory is refused or the text is too long. */
static bool replace_secret(void *to, struct hearth_str text)
{
    struct hearth_secret *old, *made = NULL;
    if (hearth_secret_new(text, &made, NULL) != HEARTH_OK) {
        return false;
    }

    memcpy(&old, to, sizeof old);
    hearth_secret_free(old);
    memcpy(to, &made, sizeof made);

    return true;
}

enum hearth_status hearth_option_set(struct hearth_config *config,
                                     const struct hearth_option *option, struct hearth_str text,
                                     const char *from, bool more, struct hearth_err *err)
{
    assert(option->flag != NULL && from != NULL);

    if (hearth_option_was_wiped(config, option)) {
        return HEARTH_OK; /* it was copied, and overrides the file */
    }

    void *to = find_member(config, option);
    bool ok = false;
    const char *wanted = "";
    const char *copy;

    switch (option->kind) {
    case SECRET:
    case TOKEN:
        wanted = "one line of text";
        ok = is_line(text) && replace_secret(to, text);
        break;
    case TEXT:
        wanted = "one line of text";
        copy = hearth_arena_strndup(&config->arena, text.p, text.n);
        ok = copy != NULL && is_line(text);
        if (ok) {
            memcpy(to, &copy, sizeof copy);
        }
        break;
    case LIST:
        wanted = "a list on one line";
        ok = is_line(text) && parse_list(config, to, text, more);
        break;
    case INT:
        wanted = "a whole number";
        ok = parse_int(text, false, to);
        break;
    case BYTES:
        wanted = "a number of bytes (64k, 16m, 2g)";
        ok = parse_int(text, true, to);
        break;
    case DURATION:
        wanted = "a duration (500ms, 90s, 2h, 7d)";
        ok = parse_duration(text, to);
        break;
    case BOOL:
        wanted = "true or false";
        ok = parse_bool(text, to);
        break;
    }

    if (!ok) { /* values of secrets are never shown */
        return HEARTH_FAIL(
            err, HEARTH_INVALID_ARGUMENT, "%s: %s = \"%s\" is not %s", from, option->flag,
            hearth_option_is_secret(option) ? "***" : hearth_config_quote(config, text), wanted);
    }

    config->origins[option - hearth_options] = from;
    return HEARTH_OK;
}
