/* push_view.c -- the series of a push under the view of its sender (push_view.h). */
#include "ingest/push_view.h"

#include "common/call_index.h"
#include "common/shown.h"
#include "ingest/shown_keys.h"

#include <assert.h>

void hearth_push_view_init(struct hearth_push_view *view, const struct hearth_view *of,
                           struct hearth_shown_keys *shown)
{
    assert(view != NULL && shown != NULL);

    *view = (struct hearth_push_view){.view = of, .shown = shown};
    hearth_arena_init(&view->arena, 0);
}

/* Parses the selectors of the view, unless that is done. */
static enum hearth_status parse_selectors(struct hearth_push_view *view, struct hearth_err *err)
{
    const struct hearth_view *of = view->view;

    if (view->selectors != NULL) {
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

/* Whether the view shows the series: as remembered, or as the selectors say. */
static enum hearth_status decide_shown(struct hearth_push_view *view,
                                       const struct hearth_series_key *series, bool *ret,
                                       struct hearth_err *err)
{
    struct hearth_shown_key key;

    hearth_shown_key_make(view->view, series, &key);
    *ret = hearth_shown_keys_has(view->shown, &key);
    if (*ret) {
        return HEARTH_OK;
    }

    HEARTH_TRY(parse_selectors(view, err));
    HEARTH_TRY(hearth_key_is_shown(series, view->selectors, view->n, ret, err));
    if (*ret) {
        hearth_shown_keys_add(view->shown, &key);
    }

    return HEARTH_OK;
}

enum hearth_status hearth_push_view_check(struct hearth_push_view *view,
                                          const struct hearth_series_key *keys, size_t n,
                                          size_t *ret_n_hidden, struct hearth_err *err)
{
    assert(view != NULL && ret_n_hidden != NULL);

    *ret_n_hidden = 0;
    if (!hearth_view_is_narrow(view->view)) {
        return HEARTH_OK;
    }

    size_t n_hidden = 0, first = 0;
    for (size_t i = 0; i < n; i++) {
        bool is_shown;
        HEARTH_TRY(decide_shown(view, &keys[i], &is_shown, err));
        first = n_hidden == 0 ? i : first;
        n_hidden += is_shown ? 0 : 1;
    }

    *ret_n_hidden = n_hidden;

    return n_hidden == 0 ? HEARTH_OK : refuse_series(view, &keys[first], err);
}
