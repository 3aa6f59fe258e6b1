/*
 * run_user.h -- the user that hearthd runs as.
 *
 * Started as root, hearthd prepares what needs root (directories, sockets, files of root) and then
 * becomes an unprivileged user for good: one user for hearthd and its PostgreSQL, the owner of the
 * cluster. In order: --user; the owner of the cluster that is there; --postgres-user, if it was
 * set; "hearth", if there is such a user; the default of --postgres-user; with --database-url also
 * "nobody". --user root keeps root: then PostgreSQL alone runs as --postgres-user.
 *
 * Started as another user, hearthd stays that user and gives up its capabilities.
 *
 * Threads:   called while the process has no other threads, because capabilities and
 *            no_new_privs belong to threads.
 * Errors:    FAILED_PRECONDITION or INVALID_ARGUMENT names the user and the option.
 * Source:    credentials(7), capabilities(7), prctl(2), proc(5) coredump_filter.
 */
#ifndef HEARTH_APP_RUN_USER_H
#define HEARTH_APP_RUN_USER_H

#include "hearth/base/status.h"

#include <sys/types.h>

struct hearth_config;

struct hearth_identity {
    uid_t uid; /* owner of the embedded cluster; 0: the user of this process */
    gid_t gid;
    bool is_switched; /* hearthd becomes this user, too */
    char name[64];    /* of the user, for messages; may be a number */
    char home[256];   /* home directory; "": unknown */
};

HEARTH_MUST_CHECK
enum hearth_status hearth_identity_choose(const struct hearth_config *config,
                                          struct hearth_identity *ret, struct hearth_err *err);

/*
 * Become the user: no supplementary groups, no capabilities, HOME of the user. Programs that are
 * executed cannot regain any right. If it is not switched, only capabilities are given up, unless
 * the process is root.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_identity_take(const struct hearth_identity *identity,
                                        struct hearth_err *err);

/*
 * Keep the memory of this process from core dumps and, but for root, from debuggers. With
 * `dumpable`: allow both, as for other programs.
 */
void hearth_process_hide(bool dumpable);

#endif
