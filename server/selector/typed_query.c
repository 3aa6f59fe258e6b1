/* typed_query.c -- separates the profile type from the rest of a selector. */
#include "hearth/selector/typed_query.h"

#include "hearth/model/labels.h"
#include "hearth/model/profile_type.h"
#include "hearth/selector/selector.h"

#include <assert.h>

static bool names_type(const struct hearth_matcher *matcher)
{
    struct hearth_profile_type type;
    return matcher->op == HEARTH_MATCH_EQ &&
           (hearth_str_eq_c(matcher->name, HEARTH_LABEL_NAME) ||
            hearth_str_eq_c(matcher->name, HEARTH_LABEL_PROFILE_TYPE)) &&
           hearth_profile_type_parse(matcher->value, &type, NULL) == HEARTH_OK;
}

/*
 * Remove the matchers on the type from the list. Equalities have no compiled pattern, so nothing
 * leaks.
 */
static enum hearth_status take_type(struct hearth_selector *selector, struct hearth_str *ret_type,
                                    struct hearth_err *err)
{
    struct hearth_str type = {0};
    size_t n = 0;

    for (size_t i = 0; i < selector->n; i++) {
        const struct hearth_matcher *matcher = &selector->matchers[i];
        if (!names_type(matcher)) {
            selector->matchers[n++] = *matcher;
        } else if (type.p == NULL || hearth_str_eq(type, matcher->value)) {
            type = matcher->value;
        } else {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                               "the query names two profile types, \"" HEARTH_STR_FMT
                               "\" is one of them",
                               HEARTH_STR_ARG(matcher->value));
        }
    }

    selector->n = n;
    *ret_type = type;

    return HEARTH_OK;
}

enum hearth_status hearth_typed_query_parse(struct hearth_str text, struct hearth_arena *arena,
                                            struct hearth_typed_query *ret, struct hearth_err *err)
{
    assert(arena != NULL && ret != NULL);

    struct hearth_selector selector;
    struct hearth_buf rest;
    struct hearth_typed_query query = {0};

    hearth_selector_init(&selector);
    hearth_buf_init(&rest, 0);
    enum hearth_status status = hearth_selector_parse(&selector, text, arena, NULL, err);
    if (status == HEARTH_OK) {
        status = take_type(&selector, &query.profile_type, err);
    }

    /* Format the rest. */
    if (status == HEARTH_OK) {
        hearth_selector_format(&selector, &rest);
        query.selector = hearth_arena_str(arena, hearth_buf_view(&rest));
        if (hearth_buf_failed(&rest) || query.selector.p == NULL) {
            status = HEARTH_FAIL_ARENA(err, arena);
        } else {
            *ret = query;
        }
    }

    hearth_buf_release(&rest);
    hearth_selector_release(&selector);

    return status;
}
