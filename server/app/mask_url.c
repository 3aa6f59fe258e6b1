/*
 * mask_url.c -- hides the passwords in database URLs and key=value texts.
 *
 * The text may be invalid in any way (texts that could not be parsed are masked, too), so the rule
 * is to hide too much rather than too little.
 */
#include "hearth/app/config.h"

#include <assert.h>

#define MASK "***"

static bool is_white_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
}

/*
 * The index of "?key=", where parameters begin, or the end. Another '?' may be part of a password.
 */
static size_t find_query(struct hearth_str url, size_t from)
{
    for (size_t i = from; i < url.n; i++) {
        size_t k = i + 1;
        while (url.p[i] == '?' && k < url.n &&
               ((url.p[k] >= 'a' && url.p[k] <= 'z') || url.p[k] == '_')) {
            k++;
        }
        if (k > i + 1 && k < url.n && url.p[k] == '=') {
            return i;
        }
    }

    return url.n;
}

/*
 * The last '@' before `end`, or `end`. A password may contain '@' and '/' that should have been
 * encoded.
 */
static size_t find_last_at(struct hearth_str url, size_t from, size_t end)
{
    for (size_t i = end; i > from; i--) {
        if (url.p[i - 1] == '@') {
            return i - 1;
        }
    }

    return end;
}

/*
 * Append the "user:password@" of a URL with its password masked; returns the index after the
 * password, 0 if there is none.
 */
static size_t mask_user(struct hearth_str url, size_t from, struct hearth_buf *out)
{
    size_t end = find_query(url, from);
    size_t at = find_last_at(url, from, end);
    if (at == end) { /* the '?' may be part of the password */
        end = url.n;
        at = find_last_at(url, from, end);
    }

    size_t colon = hearth_str_find(url, ':', from);
    if (at == end || colon >= at) {
        return 0;
    }

    hearth_buf_append(out, url.p, colon + 1);
    hearth_buf_cstr(out, MASK);

    return at;
}

/* The end of the value at `from`: at '&' in a URL, otherwise as libpq reads key=value. */
static size_t find_value_end(struct hearth_str text, size_t from, bool is_url)
{
    size_t end = from;
    if (is_url) {
        return hearth_str_find(text, '&', from);
    }

    bool is_quoted = from < text.n && text.p[from] == '\'';
    for (end += is_quoted ? 1 : 0; end < text.n; end++) {
        if (text.p[end] == '\\') {
            end++; /* the escaped character belongs to the value */
        } else if (is_quoted ? text.p[end] == '\'' : is_white_space(text.p[end])) {
            end += is_quoted ? 1 : 0;
            break;
        }
    }

    return end < text.n ? end : text.n;
}

/* Mask every password=... and sslpassword=...; libpq allows white space around '='. */
static void mask_parameters(struct hearth_str rest, bool is_url, struct hearth_buf *out)
{
    static const char key[] = "password";
    const char *found;
    while (rest.n > 0 && (found = memmem(rest.p, rest.n, key, sizeof key - 1)) != NULL) {
        size_t at = (size_t)(found - rest.p) + sizeof key - 1;
        while (at < rest.n && is_white_space(rest.p[at])) {
            at++;
        }

        if (at < rest.n && rest.p[at] == '=') {
            for (at++; at < rest.n && !is_url && is_white_space(rest.p[at]); at++) {
            }
            hearth_buf_append(out, rest.p, at);
            hearth_buf_cstr(out, MASK);
            size_t end = find_value_end(rest, at, is_url);
            rest = hearth_str_n(rest.p + end, rest.n - end);
        } else {
            hearth_buf_append(out, rest.p, at);
            rest = hearth_str_n(rest.p + at, rest.n - at);
        }
    }

    hearth_buf_str(out, rest);
}

const char *hearth_config_mask_url(const char *url, struct hearth_arena *arena)
{
    assert(url != NULL);

    struct hearth_str all = hearth_str_c(url);
    const char *scheme = strstr(url, "://");
    const char *key = strstr(url, "password");

    /* After "password", "://" is part of the value. */
    bool is_url = scheme != NULL && (key == NULL || scheme < key);
    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    size_t done = is_url ? mask_user(all, (size_t)(scheme - url) + 3, &out) : 0;
    mask_parameters(hearth_str_n(all.p + done, all.n - done), is_url, &out);
    const char *copy = hearth_buf_failed(&out) ? NULL : hearth_arena_strndup(arena, out.p, out.n);
    hearth_buf_release(&out);

    return copy;
}
