/* run_user.c -- chooses the user that hearthd runs as, and becomes it (contract: run_user.h). */
#include "hearth/app/run_user.h"

#include "hearth/app/config.h"
#include "hearth/base/log.h"

#include "config_options.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PASSWD_ROOM 16384

/* ---- choosing ---- */

static void fill_identity(const struct passwd *entry, struct hearth_identity *ret)
{
    *ret = (struct hearth_identity){.uid = entry->pw_uid, .gid = entry->pw_gid};
    (void)snprintf(ret->name, sizeof ret->name, "%s", entry->pw_name);
    (void)snprintf(ret->home, sizeof ret->home, "%s", entry->pw_dir);
}

static bool find_user_named(const char *name, struct hearth_identity *ret)
{
    char room[PASSWD_ROOM];
    struct passwd entry, *found = NULL;

    if (name[0] == '\0' || getpwnam_r(name, &entry, room, sizeof room, &found) != 0 ||
        found == NULL) {
        return false;
    }

    fill_identity(&entry, ret);
    return true;
}

/* The owner of the cluster in the data directory; false: there is none, or it belongs to root. */
static bool find_cluster_owner(const char *data_dir, struct hearth_identity *ret)
{
    char path[4096], room[PASSWD_ROOM];
    struct stat about;
    struct passwd entry, *found = NULL;

    (void)snprintf(path, sizeof path, "%s/postgres/PG_VERSION", data_dir);
    if (lstat(path, &about) != 0 || about.st_uid == 0) {
        return false;
    }

    if (getpwuid_r(about.st_uid, &entry, room, sizeof room, &found) == 0 && found != NULL) {
        fill_identity(&entry, ret);
    } else {
        *ret = (struct hearth_identity){.uid = about.st_uid, .gid = about.st_gid};
        (void)snprintf(ret->name, sizeof ret->name, "%lu", (unsigned long)about.st_uid);
    }

    return true;
}

static enum hearth_status require_user(const char *name, const char *option,
                                       struct hearth_identity *ret, struct hearth_err *err)
{
    return find_user_named(name, ret) ? HEARTH_OK
                                      : HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                                                    "%s: there is no user \"%.60s\"", option, name);
}

/* --user was not given. */
static enum hearth_status choose_by_default(const struct hearth_config *config,
                                            struct hearth_identity *ret, struct hearth_err *err)
{
    bool is_embedded = config->database_url == NULL;

    if (is_embedded && find_cluster_owner(config->data_dir, ret)) {
        return HEARTH_OK;
    }
    if (hearth_config_is_set(config, "postgres-user")) {
        return require_user(config->postgres_user, "postgres-user", ret, err);
    }
    if (find_user_named("hearth", ret) || find_user_named(config->postgres_user, ret) ||
        (!is_embedded && find_user_named("nobody", ret))) {
        return HEARTH_OK;
    }

    return HEARTH_FAIL(err, HEARTH_FAILED_PRECONDITION,
                       "hearthd was started as root, and there is neither a user \"hearth\" nor "
                       "\"%.60s\" that it could become; create one, or name another with --user",
                       config->postgres_user);
}

/* A cluster cannot be used by another user than its owner. */
static enum hearth_status check_cluster_owner(const struct hearth_config *config,
                                              const struct hearth_identity *chosen,
                                              struct hearth_err *err)
{
    struct hearth_identity owner;

    if (config->database_url != NULL || !find_cluster_owner(config->data_dir, &owner) ||
        owner.uid == chosen->uid) {
        return HEARTH_OK;
    }

    return HEARTH_FAIL(err, HEARTH_FAILED_PRECONDITION,
                       "the cluster in \"%.200s/postgres\" belongs to user \"%s\", not to \"%s\"; "
                       "set --user %s, or give it away: chown -R %s: DIR",
                       config->data_dir, owner.name, chosen->name, owner.name, chosen->name);
}

enum hearth_status hearth_identity_choose(const struct hearth_config *config,
                                          struct hearth_identity *ret, struct hearth_err *err)
{
    struct hearth_identity named = {0};
    bool is_named = config->user[0] != '\0';

    if (is_named) {
        HEARTH_TRY(require_user(config->user, "user", &named, err));
    }

    /* Not root: no choice. */
    *ret = (struct hearth_identity){0};
    if (geteuid() != 0) {
        return !is_named || named.uid == geteuid()
                   ? HEARTH_OK
                   : HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                                 "user: only root can become user \"%s\"", named.name);
    }

    /* Root stays root on demand; PostgreSQL refuses to run as root. */
    if (is_named && named.uid == 0) {
        if (config->database_url == NULL) {
            HEARTH_TRY(require_user(config->postgres_user, "postgres-user", ret, err));
            if (ret->uid == 0) {
                return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                                   "postgres-user: PostgreSQL does not run as root");
            }
        }
        HEARTH_LOG(HEARTH_LOG_WARN, "app",
                   "hearthd stays root, as --user says: a flaw in it would give away the machine",
                   NULL);
        return HEARTH_OK;
    }

    if (is_named) {
        *ret = named;
    } else {
        HEARTH_TRY(choose_by_default(config, ret, err));
    }
    if (ret->uid == 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "postgres-user: PostgreSQL does not run as root");
    }

    ret->is_switched = true;

    return check_cluster_owner(config, ret, err);
}

/* ---- becoming ---- */

/* No program that this process executes can have a capability. Needs root; ignored otherwise. */
static void drop_bounding_set(void)
{
    for (unsigned long i = 0; prctl(PR_CAPBSET_DROP, i, 0, 0, 0) == 0; i++) {
    }
}

static enum hearth_status drop_capabilities(struct hearth_err *err)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {0};
    struct __user_cap_data_struct present[_LINUX_CAPABILITY_U32S_3] = {0};

    /* A service manager that has taken them may also have forbidden capset. */
    (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    if (syscall(SYS_capget, &header, present) == 0 && memcmp(present, none, sizeof none) == 0) {
        return HEARTH_OK;
    }

    if (syscall(SYS_capset, &header, none) != 0) {
        return HEARTH_FAIL(err, HEARTH_FAILED_PRECONDITION, "cannot give up capabilities: %s",
                           strerrordesc_np(errno));
    }

    return HEARTH_OK;
}

enum hearth_status hearth_identity_take(const struct hearth_identity *identity,
                                        struct hearth_err *err)
{
    if (identity->is_switched) {
        assert(identity->uid != 0);
        drop_bounding_set();
        if (setgroups(0, NULL) != 0 ||
            setresgid(identity->gid, identity->gid, identity->gid) != 0 ||
            setresuid(identity->uid, identity->uid, identity->uid) != 0 || setuid(0) == 0) {
            return HEARTH_FAIL(err, HEARTH_FAILED_PRECONDITION,
                               "cannot become user \"%s\": %s; --user root keeps root",
                               identity->name, strerrordesc_np(errno));
        }

        /* libpq reads files in HOME, and root's would be refused. */
        (void)setenv("HOME", identity->home[0] != '\0' ? identity->home : "/", 1);
    }

    return geteuid() == 0 ? HEARTH_OK : drop_capabilities(err);
}

void hearth_process_hide(bool dumpable)
{
    /*
     * No kind of memory is written to core files, also to those that root asks for. The file of the
     * filter belongs to root while the process is not dumpable, as after a change of its user.
     */
    (void)prctl(PR_SET_DUMPABLE, 1);
    int fd = dumpable ? -1 : open("/proc/self/coredump_filter", O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        ssize_t n = write(fd, "0", 1);
        (void)n; /* a kernel without core files has no such file either */
        (void)close(fd);
    }

    /* The leak check of a sanitizer traces this process. */
    (void)prctl(PR_SET_DUMPABLE, dumpable || HEARTH_IS_SANITIZED ? 1 : 0);
}
