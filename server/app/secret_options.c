/*
 * secret_options.c -- secrets among the options: reads those that stand in files of their own, and
 * overwrites those that stand in the arguments and the environment of the process.
 *
 * The option of the file of "agent-token" is "agent-token-file". A file that every user can read
 * is a warning rather than an error: containers mount secrets that way, and the only user there is
 * hearthd's.
 */
#include "config_options.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CREDENTIAL "credential:" /* before the name of a file in $CREDENTIALS_DIRECTORY */

bool hearth_option_is_secret(const struct hearth_option *option)
{
    return option->flag != NULL && (option->kind == SECRET || option->kind == TOKEN);
}

const struct hearth_option *hearth_option_find_file(const struct hearth_option *secret)
{
    char flag[64];

    assert(hearth_option_is_secret(secret));
    (void)snprintf(flag, sizeof flag, "%s-file", secret->flag);

    return hearth_option_find(hearth_str_c(flag));
}

/* ---- files ---- */

/* The path that the value of a -file option means. */
static enum hearth_status find_secret_path(struct hearth_config *config, const char *value,
                                           char *const *environment, const char **ret,
                                           struct hearth_err *err)
{
    static const char variable[] = "CREDENTIALS_DIRECTORY=";
    const char *directory = NULL;

    if (!hearth_str_starts(hearth_str_c(value), HEARTH_STR(CREDENTIAL))) {
        *ret = value;
        return HEARTH_OK;
    }

    const char *name = value + sizeof CREDENTIAL - 1;
    if (name[0] == '\0' || strchr(name, '/') != NULL) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "\"%s\" does not name a credential",
                           value);
    }

    for (; *environment != NULL && directory == NULL; environment++) {
        if (strncmp(*environment, variable, sizeof variable - 1) == 0) {
            directory = *environment + sizeof variable - 1;
        }
    }
    if (directory == NULL) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "\"%s\" is a credential of a service of systemd, and "
                           "CREDENTIALS_DIRECTORY is not set; use LoadCredential= in the unit",
                           value);
    }

    *ret = hearth_arena_printf(&config->arena, "%s/%s", directory, name);

    return *ret == NULL ? HEARTH_FAIL_ARENA(err, &config->arena) : HEARTH_OK;
}

/* The config owns `secret` from now on; the one before is overwritten. */
static void set_secret(struct hearth_config *config, const struct hearth_option *option,
                       struct hearth_secret *secret, const char *origin)
{
    struct hearth_secret *old;

    memcpy(&old, (char *)config + option->offset, sizeof old);
    hearth_secret_free(old);
    memcpy((char *)config + option->offset, &secret, sizeof secret);
    config->origins[option - hearth_options] = origin;
}

static enum hearth_status read_secret_option(struct hearth_config *config,
                                             const struct hearth_option *option,
                                             char *const *environment, struct hearth_err *err)
{
    const struct hearth_option *file = hearth_option_find_file(option);
    struct hearth_secret *secret = NULL;
    const char *value, *path;
    bool is_public;

    HEARTH_ASSERT(file != NULL);
    memcpy(&value, (char *)config + file->offset, sizeof value);
    const char **origin = &config->origins[option - hearth_options];
    bool was_read = strcmp(*origin, file->flag) == 0; /* of a reload */
    if (value[0] == '\0') {
        if (was_read) {
            set_secret(config, option, NULL, "default");
        }
        return HEARTH_OK;
    }

    if (!was_read && strcmp(*origin, "default") != 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "%s (%s) and %s (%s) are both set; remove one of them", option->flag,
                           *origin, file->flag, config->origins[file - hearth_options]);
    }

    HEARTH_TRY(find_secret_path(config, value, environment, &path, err));

    /* Root has read it at the start, and was given up. */
    bool is_compared = config->before != NULL && !option->is_live; /* and used after a restart */
    if (was_read && access(path, R_OK) != 0 && errno == EACCES) {
        if (is_compared) {
            return HEARTH_OK;
        }
        hearth_config_warn(config, hearth_arena_printf(&config->arena,
                                                       "%s: hearthd's user cannot read \"%s\" "
                                                       "again, and keeps the secret that it has",
                                                       file->flag, path));
        return HEARTH_OK;
    }

    enum hearth_status status = hearth_secret_read(path, &secret, &is_public, err);
    if (status != HEARTH_OK && is_compared) {
        return HEARTH_OK; /* such a file may be there at the start only */
    }
    if (status != HEARTH_OK) {
        hearth_err_prefix(err, "%s", file->flag);
        return status;
    }

    if (is_public && !is_compared) {
        hearth_config_warn(config, hearth_arena_printf(&config->arena,
                                                       "%s: every user of this machine can read "
                                                       "\"%s\"; chmod o-r it",
                                                       file->flag, path));
    }

    set_secret(config, option, secret, file->flag);

    return HEARTH_OK;
}

void hearth_config_read_secrets(struct hearth_config *config, char *const *environment)
{
    for (size_t i = 0; i < hearth_n_options; i++) {
        const struct hearth_option *option = &hearth_options[i];
        struct hearth_err why = HEARTH_ERR_INIT;
        if (hearth_option_is_secret(option)) {
            hearth_config_note(config, read_secret_option(config, option, environment, &why), &why);
        }
    }
}

/* ---- copies ---- */

bool hearth_option_was_wiped(const struct hearth_config *config, const struct hearth_option *option)
{
    if (config->before == NULL || !hearth_option_is_secret(option)) {
        return false;
    }
    const char *origin = config->before->origins[option - hearth_options];

    return strcmp(origin, HEARTH_FROM_FLAG) == 0 || strcmp(origin, HEARTH_FROM_ENVIRONMENT) == 0;
}

static enum hearth_status copy_secret(struct hearth_config *config,
                                      const struct hearth_option *option, struct hearth_err *err)
{
    const struct hearth_config *before = config->before;
    struct hearth_secret *secret, *copy = NULL;

    memcpy(&secret, (const char *)before + option->offset, sizeof secret);
    HEARTH_TRY(hearth_secret_copy(secret, &copy, err));
    set_secret(config, option, copy, before->origins[option - hearth_options]);

    return HEARTH_OK;
}

enum hearth_status hearth_config_copy_secrets(struct hearth_config *config, struct hearth_err *err)
{
    assert(config->before != NULL);

    for (size_t i = 0; i < hearth_n_options; i++) {
        const struct hearth_option *option = &hearth_options[i];
        if (!hearth_option_is_secret(option)) {
            continue;
        }
        bool was_read =
            strcmp(config->before->origins[i], hearth_option_find_file(option)->flag) == 0;
        if (was_read || hearth_option_was_wiped(config, option)) {
            HEARTH_TRY(copy_secret(config, option, err));
        }
    }

    return HEARTH_OK;
}

enum hearth_status hearth_config_keep_start_secrets(struct hearth_config *config,
                                                    struct hearth_err *err)
{
    for (size_t i = 0; i < hearth_n_options; i++) {
        if (hearth_option_is_secret(&hearth_options[i]) && !hearth_options[i].is_live) {
            HEARTH_TRY(copy_secret(config, &hearth_options[i], err));
        }
    }

    return HEARTH_OK;
}

void hearth_config_free_secrets(struct hearth_config *config)
{
    for (size_t i = 0; i < hearth_n_options; i++) {
        struct hearth_secret *secret;
        if (hearth_option_is_secret(&hearth_options[i])) {
            memcpy(&secret, (char *)config + hearth_options[i].offset, sizeof secret);
            hearth_secret_free(secret);
        }
    }
}

/* ---- arguments and environment ---- */

/* "--flag=value", or "--flag" and the next argument; returns the number of arguments used. */
static int wipe_argument(char *arg, char *next)
{
    struct hearth_str all = hearth_str_c(arg);
    size_t eq = hearth_str_find(all, '=', 0);

    if (!hearth_str_starts(all, HEARTH_STR("--"))) {
        return 1;
    }

    struct hearth_str flag = hearth_str_n(arg + 2, eq - 2);
    const struct hearth_option *option = hearth_option_find(flag);
    bool takes_next = eq == all.n &&
                      ((option != NULL && option->kind != BOOL) || hearth_str_eq_c(flag, "config"));
    if (option != NULL && hearth_option_is_secret(option)) {
        if (eq < all.n) {
            hearth_secret_wipe(arg + eq + 1);
        } else if (next != NULL) {
            hearth_secret_wipe(next);
        }
    }

    return takes_next ? 2 : 1;
}

void hearth_config_wipe(int argc, char *const *argv, char *const *environment)
{
    for (int i = 1; i < argc;) {
        i += wipe_argument(argv[i], i + 1 < argc ? argv[i + 1] : NULL);
    }

    for (; *environment != NULL; environment++) {
        struct hearth_str pair = hearth_str_c(*environment);
        size_t eq = hearth_str_find(pair, '=', 0);
        const struct hearth_option *option =
            eq < pair.n ? hearth_option_find_variable(hearth_str_n(pair.p, eq)) : NULL;
        if (option != NULL && hearth_option_is_secret(option)) {
            hearth_secret_wipe(*environment + eq + 1);
        }
    }
}
