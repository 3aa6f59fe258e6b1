/* access.c -- roles and their rights; names of the ways to authenticate. */
#include "hearth/model/access.h"

#include <assert.h>
#include <string.h>

static const struct {
    const char *name;
    unsigned rights; /* bits of enum hearth_right */
} g_roles[] = {
#define X(NAME, name, rights, meaning) {name, rights},
#include "hearth/model/roles.def"
#undef X
};

static const struct {
    const char *name;
    enum hearth_auth_mode mode;
} g_modes[] = {
    {"none", HEARTH_AUTH_NONE}, {"token", HEARTH_AUTH_TOKEN}, {"user", HEARTH_AUTH_USER},
    {"mtls", HEARTH_AUTH_MTLS}, {"oidc", HEARTH_AUTH_OIDC},   {"proxy", HEARTH_AUTH_PROXY},
};

const char *hearth_role_name(enum hearth_role role)
{
    assert((unsigned)role < HEARTH_N_ROLES);
    return g_roles[role].name;
}

bool hearth_role_parse(struct hearth_str text, enum hearth_role *ret)
{
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_roles); i++) {
        if (hearth_str_eq_c(text, g_roles[i].name)) {
            *ret = (enum hearth_role)i;
            return true;
        }
    }
    return false;
}

bool hearth_role_gives(enum hearth_role role, enum hearth_right right)
{
    assert((unsigned)role < HEARTH_N_ROLES && (unsigned)right < HEARTH_N_RIGHTS);
    return right == HEARTH_RIGHT_PUBLIC || (g_roles[role].rights & (1u << right)) != 0;
}

/* 0 for a name that is not a mode. */
static unsigned find_mode(struct hearth_str name)
{
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_modes); i++) {
        if (hearth_str_eq_c(name, g_modes[i].name)) {
            return g_modes[i].mode;
        }
    }
    return 0;
}

enum hearth_status hearth_auth_modes_parse(struct hearth_str text, unsigned *ret_modes,
                                           struct hearth_err *err)
{
    unsigned modes = 0;

    for (size_t at = 0; at <= text.n;) {
        size_t end = hearth_str_find(text, ',', at);
        struct hearth_str name = hearth_str_trim(hearth_str_n(text.p + at, end - at));
        unsigned mode = find_mode(name);
        if (mode == 0) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                               "\"" HEARTH_STR_FMT "\" is no way to authenticate; "
                               "there are none, token, user, mtls, oidc and proxy",
                               HEARTH_STR_ARG(name));
        }
        if ((modes & mode) != 0) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                               "\"" HEARTH_STR_FMT "\" is named twice", HEARTH_STR_ARG(name));
        }

        modes |= mode;
        at = end + 1;
    }

    if ((modes & HEARTH_AUTH_NONE) != 0 && modes != HEARTH_AUTH_NONE) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "\"none\" lets everybody in, so the others have no effect; remove it");
    }

    *ret_modes = modes;

    return HEARTH_OK;
}

static bool is_tenant_byte(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != 0 && strchr("!-_.*'()", c) != NULL);
}

enum hearth_status hearth_tenant_name_check(struct hearth_str name, struct hearth_err *err)
{
    if (name.n > HEARTH_MAX_TENANT_BYTES) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "tenant ID is %zu bytes long; at most %d are allowed", name.n,
                           HEARTH_MAX_TENANT_BYTES);
    }

    if (hearth_str_eq_c(name, ".") || hearth_str_eq_c(name, "..")) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "tenant ID may not be \".\" or \"..\"");
    }

    for (size_t i = 0; i < name.n; i++) {
        if (!is_tenant_byte((unsigned char)name.p[i])) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                               "tenant ID \"" HEARTH_STR_FMT "\" has a character that is not "
                               "allowed at byte %zu; letters, digits and !-_.*'() are",
                               HEARTH_STR_ARG(name), i);
        }
    }

    return HEARTH_OK;
}

struct hearth_view *hearth_view_copy(const struct hearth_view *view, struct hearth_arena *arena)
{
    assert(view != NULL && arena != NULL);

    struct hearth_view *copy = hearth_arena_zalloc(arena, sizeof *copy);
    struct hearth_str *selectors =
        hearth_arena_array(arena, view->n_selectors, sizeof selectors[0]);
    if (copy == NULL || selectors == NULL) {
        return NULL;
    }

    for (size_t i = 0; i < view->n_selectors; i++) {
        selectors[i] = hearth_arena_str(arena, view->selectors[i]);
    }
    *copy =
        (struct hearth_view){hearth_arena_str(arena, view->tenant), selectors, view->n_selectors};

    return arena->refused ? NULL : copy;
}
