/* config_options.c -- options.def as a table, with a check of the types of the members. */
#include "config_options.h"

const struct hearth_option hearth_options[] = {
#define G(name) {.group = (name)},
#define X(kind, member, flag, def, help) \
    {NULL, kind, offsetof(struct hearth_config, member), flag, def, help},
#include "hearth/app/options.def"
#undef X
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
#define G(name)
#define X(kind, member, flag, def, help)                                                           \
    _Static_assert(_Generic(&((struct hearth_config *)0)->member, kind##_TYPE * : 1, default : 0), \
                   "the type of " flag);
#include "hearth/app/options.def"
#undef X
#undef G
