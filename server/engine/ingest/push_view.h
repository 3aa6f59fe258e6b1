/*
 * push_view.h -- which series a narrowed credential may push (private to the engine).
 *
 * A series is accepted if the view shows all of its profile types. It need not exist yet: the label
 * index of this one series decides, so that a push is accepted exactly if its sender would see it.
 *
 * Threads: an object is used by the thread of its push only.
 */
#ifndef HEARTH_ENGINE_PUSH_VIEW_H
#define HEARTH_ENGINE_PUSH_VIEW_H

#include "hearth/model/access.h"
#include "hearth/selector/selector.h"
#include "hearth/store/store.h"

struct hearth_shown_keys;

struct hearth_push_view {
    const struct hearth_view *view; /* NULL or without selectors: everything is accepted */
    struct hearth_shown_keys *shown;
    struct hearth_selector *selectors; /* those of the view, once a series needed them */
    size_t n;
    struct hearth_arena arena;
};

/* Keeps the view, which may be NULL, and `shown`, which remembers the answers for all pushes. */
void hearth_push_view_init(struct hearth_push_view *view, const struct hearth_view *of,
                           struct hearth_shown_keys *shown);
void hearth_push_view_release(struct hearth_push_view *view);

/*
 * PERMISSION_DENIED names the first series that is not accepted. *ret_n_hidden: their number.
 * INVALID_ARGUMENT for a malformed selector of the view; NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_push_view_check(struct hearth_push_view *view,
                                          const struct hearth_series_key *keys, size_t n,
                                          size_t *ret_n_hidden, struct hearth_err *err);

#endif
