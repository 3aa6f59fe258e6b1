/* ingest_name.c -- app{key=value,...}, in one pass from left to right. */
#include "hearth/format/ingest_name.h"

#include <assert.h>

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.';
}

/*
 * The index of the first byte that is not a letter, a digit, "_", "." or in `more`; s.n if there is
 * none.
 */
static size_t find_invalid_byte(struct hearth_str s, const char *more)
{
    for (size_t i = 0; i < s.n; i++) {
        if (!is_name_char(s.p[i]) && (s.p[i] == '\0' || strchr(more, s.p[i]) == NULL)) {
            return i;
        }
    }

    return s.n;
}

static enum hearth_status check_app(struct hearth_str app, struct hearth_err *err)
{
    if (app.n == 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "bad name, the application name before \"{\" is empty");
    }

    size_t invalid = find_invalid_byte(app, "-/");
    if (invalid < app.n) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "bad name, the application name \"" HEARTH_STR_FMT
                           "\" has a character other than letters, digits and _ . - / at byte %zu",
                           HEARTH_STR_ARG(app), invalid);
    }

    return HEARTH_OK;
}

static enum hearth_status check_key(struct hearth_str key, struct hearth_err *err)
{
    if (key.n == 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "bad name, a label has an empty key");
    }

    size_t invalid = find_invalid_byte(key, "");
    if (invalid < key.n) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "bad name, the key \"" HEARTH_STR_FMT
                           "\" has a character other than letters, digits, _ and . at byte %zu",
                           HEARTH_STR_ARG(key), invalid);
    }

    return HEARTH_OK;
}

static struct hearth_str unquote(struct hearth_str value)
{
    if (value.n >= 2 && value.p[0] == '"' && value.p[value.n - 1] == '"') {
        return hearth_str_n(value.p + 1, value.n - 2);
    }
    return value;
}

/* Add a label, or replace its value if the name exists. */
static void set_label(struct hearth_ingest_name *name, struct hearth_label label)
{
    for (size_t i = 0; i < name->n_labels; i++) {
        if (hearth_str_eq(name->labels[i].name, label.name)) {
            name->labels[i].value = label.value;
            return;
        }
    }

    assert(name->n_labels < HEARTH_INGEST_NAME_MAX_LABELS);
    name->labels[name->n_labels++] = label;
}

static enum hearth_status add_pair(struct hearth_str pair, struct hearth_ingest_name *name,
                                   struct hearth_err *err)
{
    size_t equals = hearth_str_find(pair, '=', 0);
    struct hearth_label label = {.name = hearth_str_trim(hearth_str_n(pair.p, equals))};

    HEARTH_TRY(check_key(label.name, err));
    label.value = HEARTH_STR("");
    if (equals < pair.n) {
        label.value =
            unquote(hearth_str_trim(hearth_str_n(pair.p + equals + 1, pair.n - equals - 1)));
    }

    if (name->n_labels == HEARTH_INGEST_NAME_MAX_LABELS) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "bad name, more than %u labels",
                           HEARTH_INGEST_NAME_MAX_LABELS);
    }

    set_label(name, label);

    return HEARTH_OK;
}

enum hearth_status hearth_ingest_name_parse(struct hearth_str text, struct hearth_arena *arena,
                                            struct hearth_ingest_name *ret, struct hearth_err *err)
{
    assert(ret != NULL);

    if (!hearth_str_utf8_valid(text)) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "bad name, it is not UTF-8");
    }

    size_t open = hearth_str_find(text, '{', 0);
    struct hearth_ingest_name name = {.app = hearth_str_trim(hearth_str_n(text.p, open))};
    HEARTH_TRY(check_app(name.app, err));
    if (open < text.n) {
        size_t close = hearth_str_find(text, '}', open);

        name.labels = hearth_arena_array(arena, HEARTH_INGEST_NAME_MAX_LABELS, sizeof *name.labels);
        if (name.labels == NULL) {
            return HEARTH_FAIL_ARENA(err, arena);
        }

        struct hearth_str pairs = {text.p, close};
        for (size_t from = open + 1; from < close;) {
            size_t end = hearth_str_find(pairs, ',', from);
            struct hearth_str pair = hearth_str_trim(hearth_str_n(text.p + from, end - from));
            if (pair.n > 0) {
                HEARTH_TRY(add_pair(pair, &name, err));
            }
            from = end + 1;
        }
    }

    *ret = name;
    return HEARTH_OK;
}
