/* reload.c -- reads the configuration again (contract: reload.h). */
#include "reload.h"

#include "hearth/base/clock.h"
#include "hearth/base/mem.h"
#include "hearth/base/metrics.h"

#include <stdio.h>

/* Under reload.lock nothing else is acquired. */
#define RANK_RELOAD HEARTH_RANKS_APP

struct hearth_reloaded {
    struct hearth_reloaded *older;
    struct hearth_config config;
};

void hearth_reload_init(struct hearth_reload *reload, const struct hearth_config *start, int argc,
                        char *const *argv, char *const *environment,
                        const struct hearth_reload_hooks *hooks)
{
    *reload = (struct hearth_reload){
        .argc = argc, .argv = argv, .environment = environment, .hooks = *hooks};
    atomic_init(&reload->now, start);
    hearth_mutex_init(&reload->lock, RANK_RELOAD, "reload.lock");
    hearth_metric_set(HEARTH_M_CONFIG_RELOADED, 1);
    hearth_metric_set(HEARTH_M_CONFIG_RELOAD_TIME, hearth_clock_wall_ns());
}

static void free_reloaded(struct hearth_reloaded *reloaded)
{
    hearth_config_release(&reloaded->config);
    hearth_mem_free(reloaded);
}

void hearth_reload_release(struct hearth_reload *reload)
{
    while (reload->reloaded != NULL) {
        struct hearth_reloaded *older = reload->reloaded->older;
        free_reloaded(reload->reloaded);
        reload->reloaded = older;
    }
    hearth_mutex_destroy(&reload->lock);
}

static void set_problem(struct hearth_reload *reload, const char *problem)
{
    hearth_mutex_lock(&reload->lock);
    (void)snprintf(reload->problem, sizeof reload->problem, "%s", problem);
    hearth_mutex_unlock(&reload->lock);
}

/* Say that nothing has changed, and why. */
static void report_mistakes(struct hearth_reload *reload, const struct hearth_config *next)
{
    char problem[256];

    for (size_t i = 0; i < next->n_mistakes && i < HEARTH_MAX_MISTAKES; i++) {
        HEARTH_LOG(HEARTH_LOG_WARN, "app",
                   "configuration not reloaded; the old one stays in effect", "error",
                   next->mistakes[i], NULL);
    }

    (void)snprintf(problem, sizeof problem,
                   "the configuration was not reloaded, the old one stays in effect: %.170s",
                   next->first_mistake.msg);
    set_problem(reload, problem);
    hearth_metric_set(HEARTH_M_CONFIG_RELOADED, 0);
}

/* Say what has changed, and what would need a restart. */
static void report_changes(struct hearth_reload *reload, const struct hearth_config *next,
                           const char *changed, const char *waiting, size_t n_waiting)
{
    char problem[256] = "";

    HEARTH_LOG(HEARTH_LOG_INFO, "app", "configuration reloaded", "log_level", next->log_level,
               "changed", changed, "needs_restart", waiting, NULL);
    if (n_waiting > 0) {
        (void)snprintf(problem, sizeof problem,
                       "the configuration has changed, and hearthd needs a restart for: %.180s",
                       waiting);
    }

    set_problem(reload, problem);
    hearth_metric_set(HEARTH_M_CONFIG_RELOADED, 1);
    hearth_metric_set(HEARTH_M_CONFIG_RELOAD_TIME, hearth_clock_wall_ns());
    hearth_metric_set(HEARTH_M_CONFIG_WAITING, (int64_t)n_waiting);
}

/* Options that differ from those in effect, and those of them that wait for a restart. */
struct changes {
    struct hearth_buf changed, waiting; /* names, NUL-terminated */
    size_t n_changed, n_waiting;
};

static void find_changes(const struct hearth_config *next, struct changes *ret)
{
    hearth_buf_init(&ret->changed, 0);
    hearth_buf_init(&ret->waiting, 0);
    ret->n_changed = hearth_config_changes(next->before, next, true, &ret->changed);
    ret->n_waiting = hearth_config_changes(next->before, next, false, &ret->waiting);
    hearth_buf_byte(&ret->changed, '\0');
    hearth_buf_byte(&ret->waiting, '\0');
}

static void release_changes(struct changes *changes)
{
    hearth_buf_release(&changes->changed);
    hearth_buf_release(&changes->waiting);
}

/* Apply a configuration without mistakes, and keep it if it changes anything now. */
static void apply_next(struct hearth_reload *reload, struct hearth_reloaded *reloaded,
                       const struct changes *changes)
{
    struct hearth_config *next = &reloaded->config;

    if (changes->n_changed > 0) {
        reloaded->older = reload->reloaded;
        reload->reloaded = reloaded;
        atomic_store_explicit(&reload->now, next, memory_order_release);
    }
    reload->hooks.apply(reload->hooks.context, atomic_load(&reload->now));

    /* Say so, now that it is true. */
    for (size_t i = 0; i < next->n_warnings; i++) {
        HEARTH_LOG(HEARTH_LOG_WARN, "app", next->warnings[i], NULL);
    }
    report_changes(reload, next, hearth_buf_failed(&changes->changed) ? "" : changes->changed.p,
                   hearth_buf_failed(&changes->waiting) ? "" : changes->waiting.p,
                   changes->n_waiting);
    if (changes->n_changed == 0) {
        free_reloaded(reloaded);
    }
}

void hearth_reload_run(struct hearth_reload *reload)
{
    struct hearth_err why = HEARTH_ERR_INIT, unfit = HEARTH_ERR_INIT;
    struct hearth_reloaded *reloaded = hearth_mem_zalloc(sizeof *reloaded);
    if (reloaded == NULL) {
        HEARTH_LOG(HEARTH_LOG_ERROR, "app", "no memory to read the configuration again", NULL);
        return;
    }

    struct hearth_config *next = &reloaded->config;
    enum hearth_status status = hearth_config_reload(next, atomic_load(&reload->now), reload->argc,
                                                     reload->argv, reload->environment, &why);
    if (next->n_mistakes == 0) {
        hearth_config_note(next, status, &why);
    }
    if (next->n_mistakes == 0) {
        status = reload->hooks.check(reload->hooks.context, next, &unfit);
        hearth_config_note(next, status, &unfit);
    }

    if (next->n_mistakes > 0) {
        report_mistakes(reload, next);
        free_reloaded(reloaded);
        return;
    }

    struct changes changes;
    find_changes(next, &changes);
    status = hearth_config_keep_start_values(next, &unfit);
    if (status == HEARTH_OK) {
        apply_next(reload, reloaded, &changes);
    } else {
        hearth_config_note(next, status, &unfit);
        report_mistakes(reload, next);
        free_reloaded(reloaded);
    }
    release_changes(&changes);
}

void hearth_reload_explain(struct hearth_reload *reload, char reason[256])
{
    hearth_mutex_lock(&reload->lock);
    (void)snprintf(reason, 256, "%s", reload->problem);
    hearth_mutex_unlock(&reload->lock);
}

/* Read the sources as a reload would, and compare. */
static void write_differences(struct hearth_reload *reload, struct hearth_buf *out)
{
    const struct hearth_config *now = atomic_load_explicit(&reload->now, memory_order_acquire);
    struct hearth_err why = HEARTH_ERR_INIT;
    struct hearth_config *next = hearth_mem_zalloc(sizeof *next);
    if (next == NULL) {
        hearth_buf_cstr(out, "not known: there is no memory to read the sources");
        return;
    }

    if (hearth_config_reload(next, now, reload->argc, reload->argv, reload->environment, &why) ==
        HEARTH_OK) {
        hearth_config_write_differences(now, next, out);
    } else {
        hearth_buf_printf(out, "not known, the sources have mistakes: %s", why.msg);
    }
    hearth_config_release(next);
    hearth_mem_free(next);
}

void hearth_reload_write_config(void *reload, enum hearth_front_config which,
                                struct hearth_buf *out)
{
    struct hearth_reload *self = reload;
    char problem[256];

    if (which == HEARTH_FRONT_CONFIG_UNAPPLIED) {
        write_differences(self, out);
        return;
    }

    if (which == HEARTH_FRONT_CONFIG_PROBLEM) {
        hearth_reload_explain(self, problem);
        hearth_buf_cstr(out, problem);
        return;
    }

    hearth_config_write_part(atomic_load_explicit(&self->now, memory_order_acquire), which, out);
}
