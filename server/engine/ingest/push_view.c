/* push_view.c -- the series of a push under the view of its sender (push_view.h). */
#include "ingest/push_view.h"

#include "common/call_index.h"
#include "common/shown.h"

#include <assert.h>

enum hearth_status hearth_push_view_init(struct hearth_push_view *view,
                                         const struct hearth_view *of, struct hearth_err *err)
{
    assert(view != NULL);

    *view = (struct hearth_push_view){.view = of};
    hearth_arena_init(&view->arena, 0);
    if (!hearth_view_is_narrow(of)) {
        return HEARTH_OK;
    }

    view->selectors = hearth_arena_calloc(&view->arena, of->n_selectors, sizeof *view->selectors);
    if (view->selectors == NULL) {
        return HEARTH_FAIL_ARENA(err, &view->arena);
    }

    for (size_t i = 0; i < of->n_selectors; i++) {
        hearth_selector_init(&view->selectors[view->n]);
        enum hearth_status status = hearth_selector_parse(
            &view->selectors[view->n++], of->selectors[i], &view->arena, NULL, err);
        if (status != HEARTH_OK) {
            hearth_err_prefix(err, "a selector that narrows the credential");
            return status;
        }
    }

    return HEARTH_OK;
}

void hearth_push_view_release(struct hearth_push_view *view)
{
    for (size_t i = 0; i < view->n; i++) {
        hearth_selector_release(&view->selectors[i]);
    }
    hearth_arena_release(&view->arena);
}

static enum hearth_status refuse_series(const struct hearth_push_view *view,
                                        const struct hearth_series_key *key, struct hearth_err *err)
{
    char text[HEARTH_NARROWED_BYTES];
    struct hearth_buf labels;

    hearth_buf_init(&labels, 0);
    hearth_labels_format(&key->labels, 200, &labels);
    struct hearth_str formatted = hearth_buf_view(&labels);
    enum hearth_status status =
        HEARTH_FAIL(err, HEARTH_PERMISSION_DENIED,
                    "the credential is narrowed to %s, which does not match the series of service "
                    "\"" HEARTH_STR_FMT "\" with the labels " HEARTH_STR_FMT,
                    hearth_view_text(view->view, text), HEARTH_STR_ARG(key->service_name),
                    HEARTH_STR_ARG(formatted));
    hearth_buf_release(&labels);

    return status;
}

enum hearth_status hearth_push_view_check(const struct hearth_push_view *view,
                                          const struct hearth_series_key *keys, size_t n,
                                          size_t *ret_n_hidden, struct hearth_err *err)
{
    assert(view != NULL && ret_n_hidden != NULL);

    size_t n_hidden = 0, first = 0;

    for (size_t i = 0; view->n > 0 && i < n; i++) {
        bool shows;
        HEARTH_TRY(hearth_key_is_shown(&keys[i], view->selectors, view->n, &shows, err));
        first = n_hidden == 0 ? i : first;
        n_hidden += shows ? 0 : 1;
    }

    *ret_n_hidden = n_hidden;

    return n_hidden == 0 ? HEARTH_OK : refuse_series(view, &keys[first], err);
}
