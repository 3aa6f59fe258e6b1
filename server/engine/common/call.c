/* call.c -- limits and notes of a call (call_internal.h). */
#include "hearth/store/background.h"
#include "hearth/store/store.h"

#include "common/call_internal.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

void hearth_call_limits(const struct hearth_call *call, struct hearth_limits *ret)
{
    assert(call->engine != NULL);

    if (hearth_call_has_tenants(call)) {
        hearth_limits_strictest(hearth_engine_limits(call->engine), call->engine->store,
                                call->tenants, call->n_tenants, ret);
    } else {
        hearth_limits_of_tenant(hearth_engine_limits(call->engine), call->engine->store,
                                call->tenant, ret);
    }

    if (call->is_own) {
        ret->max_query_range_ns = ret->max_query_lookback_ns = ret->max_points = 0;
    }
}

static int64_t choose_shorter(int64_t a, int64_t b)
{
    return a == 0 || (b != 0 && b < a) ? b : a; /* 0: for ever */
}

static int64_t choose_later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

void hearth_call_retention(const struct hearth_call *call, struct hearth_retention *ret)
{
    assert(call->engine != NULL && ret != NULL);

    hearth_store_retention(call->engine->store, call->tenant, ret);

    for (size_t i = 0; hearth_call_has_tenants(call) && i < call->n_tenants; i++) {
        struct hearth_retention own;
        hearth_store_retention(call->engine->store, call->tenants[i].tenant, &own);
        ret->profiles_ns = choose_shorter(ret->profiles_ns, own.profiles_ns);
        ret->roll_10m_ns = choose_shorter(ret->roll_10m_ns, own.roll_10m_ns);
        ret->roll_1h_ns = choose_shorter(ret->roll_1h_ns, own.roll_1h_ns);
        ret->roll_1d_ns = choose_shorter(ret->roll_1d_ns, own.roll_1d_ns);
        ret->profiles_from_ns = choose_later(ret->profiles_from_ns, own.profiles_from_ns);
        ret->roll_10m_from_ns = choose_later(ret->roll_10m_from_ns, own.roll_10m_from_ns);
        ret->roll_1h_from_ns = choose_later(ret->roll_1h_from_ns, own.roll_1h_from_ns);
        ret->roll_1d_from_ns = choose_later(ret->roll_1d_from_ns, own.roll_1d_from_ns);
    }
}

/* Whether the notes contain the line. */
static bool contains_note(struct hearth_str notes, struct hearth_str line)
{
    for (size_t from = 0; from < notes.n;) {
        size_t to = hearth_str_find(notes, '\n', from);
        if (hearth_str_eq(line, hearth_str_n(notes.p + from, to - from))) {
            return true;
        }
        from = to + 1;
    }

    return false;
}

void hearth_call_note(const struct hearth_call *call, const char *format, ...)
{
    char line[512];
    va_list arguments;

    if (call->notes == NULL) {
        return;
    }

    va_start(arguments, format);
    int n = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);

    size_t length = n < 0 ? 0 : (size_t)n < sizeof line ? (size_t)n : sizeof line - 1;
    struct hearth_str text = {line, length};
    if (text.n > 0 && !contains_note(hearth_buf_view(call->notes), text)) {
        hearth_buf_printf(call->notes, HEARTH_STR_FMT "\n", HEARTH_STR_ARG(text));
    }
}

void hearth_call_note_lines(const struct hearth_call *call, struct hearth_str lines)
{
    assert(call != NULL);

    for (size_t from = 0; from < lines.n;) {
        size_t to = hearth_str_find(lines, '\n', from);
        hearth_call_note(call, "%.*s", (int)(to - from), lines.p + from);
        from = to + 1;
    }
}

void hearth_call_note_series(const struct hearth_call *call, size_t n, size_t n_all)
{
    assert(call != NULL);

    if (n < n_all) {
        hearth_call_note(call, "%zu of %zu series are in the answer: raise limit to see more", n,
                         n_all);
    }
}
