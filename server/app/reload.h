/*
 * reload.h -- reads the configuration again while hearthd runs (private to app).
 *
 * Options of options.def that are marked as live take their new values, all at once; the others
 * keep those of the start and are named in the log, in /ready and in metrics until hearthd is
 * restarted. If there is a mistake anywhere, nothing changes.
 *
 * Ownership: each configuration that has been in effect is kept until _release, because threads
 *            read it without a lock: some kilobytes for each reload that changes an option.
 * Threads:   _run and _release from one thread; the others from any.
 */
#ifndef HEARTH_APP_RELOAD_H
#define HEARTH_APP_RELOAD_H

#include "hearth/app/config.h"
#include "hearth/base/sync.h"

#include <stdatomic.h>

/* What else belongs to the configuration. */
struct hearth_reload_hooks {
    /* Checks that `next` can be applied; otherwise nothing is. */
    enum hearth_status (*check)(void *context, struct hearth_config *next, struct hearth_err *err);
    /* Applies it; `now` lives until _release. */
    void (*apply)(void *context, const struct hearth_config *now);
    void *context;
};

struct hearth_reload {
    int argc; /* the sources */
    char *const *argv, *const *environment;
    struct hearth_reload_hooks hooks;
    _Atomic(const struct hearth_config *) now;
    struct hearth_reloaded *reloaded; /* all that have been in effect, but for the first */
    struct hearth_mutex lock;         /* guards problem */
    char problem[256];                /* of the last reload; empty: none */
};

/* Keeps `start`, which the caller releases after _release, and the sources. */
void hearth_reload_init(struct hearth_reload *reload, const struct hearth_config *start, int argc,
                        char *const *argv, char *const *environment,
                        const struct hearth_reload_hooks *hooks);
void hearth_reload_release(struct hearth_reload *reload);

/* Read the sources again; the log says what has changed. */
void hearth_reload_run(struct hearth_reload *reload);

/* Write how the sources differ from the configuration in effect; empty: they do not. */
void hearth_reload_explain(struct hearth_reload *reload, char reason[256]);

/* The callback of front, as hearth_config_write_part; `reload` is a struct hearth_reload. */
void hearth_reload_write_config(void *reload, enum hearth_front_config which,
                                struct hearth_buf *out);

#endif
