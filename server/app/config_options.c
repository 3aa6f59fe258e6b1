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

/* Values are written through the offset, so a member must have the type of its kind. */
#define TEXT_TYPE     const char *
#define SECRET_TYPE   const char *
#define TOKEN_TYPE    const char *
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
