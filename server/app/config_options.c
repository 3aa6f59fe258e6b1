/* config_options.c -- options.def as a table, with a check of the types of the members. */
#include "config_options.h"

const struct hearth_option hearth_options[] = {
#define G(name, key) {.group = (name), .section = (key)},
#define ROW(is_live, kind, member, flag, def, help) \
    {NULL, NULL, kind, is_live, offsetof(struct hearth_config, member), flag, def, help},
#define X(...) ROW(false, __VA_ARGS__)
#define R(...) ROW(true, __VA_ARGS__)
#include "hearth/app/options.def"
#undef R
#undef X
#undef ROW
#undef G
};

const size_t hearth_n_options = HEARTH_ARRAY_LEN(hearth_options);

const struct hearth_option *hearth_option_find(struct hearth_str flag)
{
    for (size_t i = 0; i < hearth_n_options; i++) {
        if (hearth_options[i].flag != NULL && hearth_str_eq_c(flag, hearth_options[i].flag)) {
            return &hearth_options[i];
        }
    }

    return NULL;
}

const char *hearth_option_section(const struct hearth_option *option)
{
    while (option->section == NULL) {
        option--; /* the table begins with a group */
    }

    return option->section;
}

const char *hearth_option_key(const struct hearth_option *option)
{
    const char *section = hearth_option_section(option);
    size_t n = strlen(section);
    bool is_prefixed = strncmp(option->flag, section, n) == 0 && option->flag[n] == '.';

    return option->flag + (is_prefixed ? n + 1 : 0);
}

const struct hearth_option *hearth_option_find_section(struct hearth_str name)
{
    for (size_t i = 0; i < hearth_n_options; i++) {
        if (hearth_options[i].section != NULL && hearth_str_eq_c(name, hearth_options[i].section)) {
            return &hearth_options[i];
        }
    }

    return NULL;
}

const struct hearth_option *hearth_option_find_key(const struct hearth_option *section,
                                                   struct hearth_str key)
{
    const struct hearth_option *end = hearth_options + hearth_n_options;

    for (const struct hearth_option *o = section + 1; o < end && o->section == NULL; o++) {
        if (hearth_str_eq_c(key, hearth_option_key(o))) {
            return o;
        }
    }

    return NULL;
}

/* ---- similar names ---- */

#define MAX_NAME 64

/*
 * Letters to insert, delete or replace in a to get b; neither is longer than MAX_NAME. If they are
 * more than `most`, any larger number: a file may have many thousands of unknown keys.
 */
static size_t count_edits(struct hearth_str a, struct hearth_str b, size_t most)
{
    size_t row[MAX_NAME + 1]; /* edits from the first letters of a to each start of b */

    if ((a.n > b.n ? a.n - b.n : b.n - a.n) > most) {
        return most + 1;
    }

    for (size_t j = 0; j <= b.n; j++) {
        row[j] = j;
    }
    for (size_t i = 0; i < a.n; i++) {
        size_t diagonal = row[0], least = i + 1;
        row[0] = i + 1;
        for (size_t j = 0; j < b.n; j++) {
            size_t replaced = diagonal + (a.p[i] == b.p[j] ? 0 : 1);
            size_t other = 1 + (row[j] < row[j + 1] ? row[j] : row[j + 1]);
            diagonal = row[j + 1];
            row[j + 1] = replaced < other ? replaced : other;
            least = row[j + 1] < least ? row[j + 1] : least;
        }
        if (least > most) {
            return most + 1; /* a row never has fewer edits than the one before it */
        }
    }

    return row[b.n];
}

static const char *find_nearest(struct hearth_str text, bool sections)
{
    const char *nearest = NULL;
    size_t fewest = 1 + text.n / 4; /* more are another word */

    if (text.n > MAX_NAME) {
        return NULL;
    }

    for (size_t i = 0; i < hearth_n_options; i++) {
        const char *name = sections ? hearth_options[i].section : hearth_options[i].flag;
        size_t n = name == NULL || strlen(name) > MAX_NAME
                       ? fewest + 1
                       : count_edits(text, hearth_str_c(name), fewest);
        if (n < fewest || (n == fewest && nearest == NULL)) {
            nearest = name;
            fewest = n;
        }
    }

    return nearest;
}

const char *hearth_option_nearest(struct hearth_str text)
{
    return find_nearest(text, false);
}

const char *hearth_option_nearest_section(struct hearth_str text)
{
    return find_nearest(text, true);
}

/* ---- help ---- */

const char *hearth_option_help(const char *flag)
{
    const struct hearth_option *option = hearth_option_find(hearth_str_c(flag));

    return option == NULL ? NULL : option->help;
}

/* The character of a variable's name for one of a flag: HEARTH_LIMITS_PROFILE is limits.profile. */
static char convert_to_variable(char c)
{
    return (char)(c == '-' || c == '.' ? '_' : c >= 'a' && c <= 'z' ? c - 32 : c);
}

const struct hearth_option *hearth_option_find_variable(struct hearth_str name)
{
    if (!hearth_str_starts(name, HEARTH_STR("HEARTH_"))) {
        return NULL;
    }

    struct hearth_str rest = hearth_str_n(name.p + 7, name.n - 7);
    for (size_t i = 0; i < hearth_n_options; i++) {
        const char *flag = hearth_options[i].flag;
        size_t n = 0;
        while (flag != NULL && n < rest.n && flag[n] != '\0' &&
               convert_to_variable(flag[n]) == rest.p[n]) {
            n++;
        }
        if (flag != NULL && n == rest.n && flag[n] == '\0') {
            return &hearth_options[i];
        }
    }

    return NULL;
}

/* Values are written through the offset, so a member must have the type of its kind. */
#define TEXT_TYPE     const char *
#define SECRET_TYPE   struct hearth_secret *
#define TOKEN_TYPE    struct hearth_secret *
#define LIST_TYPE     const char *const *
#define INT_TYPE      int64_t
#define BYTES_TYPE    int64_t
#define DURATION_TYPE int64_t
#define BOOL_TYPE     bool
#define G(name, key)
#define X(kind, member, flag, def, help)                                                           \
    _Static_assert(_Generic(&((struct hearth_config *)0)->member, kind##_TYPE * : 1, default : 0), \
                   "the type of " flag);
#define R(...) X(__VA_ARGS__)
#include "hearth/app/options.def"
#undef R
#undef X
#undef G
