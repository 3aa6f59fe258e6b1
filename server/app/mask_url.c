/*
 * mask_url.c -- database URLs and key=value texts without their passwords.
 *
 * What is printed may be damaged in any way (this is also used for what could not be parsed), so
 * the rule is to hide too much rather than too little.
 */
#include "hearth/app/config.h"

#define MASK "***"

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
}

/* Where parameters begin ("?key="), or the end. A lone '?' may belong to a password. */
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

/* The last '@' before `end`, or `end`. A password may hold '@' and '/' when nobody encoded them. */
static size_t find_last_at(struct hearth_str url, size_t from, size_t end)
{
    for (size_t i = end; i > from; i--) {
        if (url.p[i - 1] == '@') {
            return i - 1;
        }
    }
    return end;
}

/* user:password@ of a URL: append it masked to out; returns the offset behind the password. */
static size_t mask_user(struct hearth_str url, size_t from, struct hearth_buf *out)
{
    size_t end = find_query(url, from);
    size_t at = find_last_at(url, from, end);
    if (at == end) { /* the '?' may stand in the password */
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

/* The end of a value that begins at `from`: to '&' in a URL, else as libpq reads key=value. */
static size_t value_end(struct hearth_str text, size_t from, bool is_url)
{
    size_t end = from;
    if (is_url) {
        return hearth_str_find(text, '&', from);
    }
    bool is_quoted = from < text.n && text.p[from] == '\'';
    for (end += is_quoted ? 1 : 0; end < text.n; end++) {
        if (text.p[end] == '\\') {
            end++; /* whatever follows belongs to the value */
        } else if (is_quoted ? text.p[end] == '\'' : is_space(text.p[end])) {
            end += is_quoted ? 1 : 0;
            break;
        }
    }
    return end < text.n ? end : text.n;
}

/* password=..., sslpassword=...: every occurrence, with white space around '=' as libpq allows. */
static void mask_parameters(struct hearth_str rest, bool is_url, struct hearth_buf *out)
{
    static const char key[] = "password";
    const char *hit;
    while (rest.n > 0 && (hit = memmem(rest.p, rest.n, key, sizeof key - 1)) != NULL) {
        size_t at = (size_t)(hit - rest.p) + sizeof key - 1;
        while (at < rest.n && is_space(rest.p[at])) {
            at++;
        }
        if (at < rest.n && rest.p[at] == '=') {
            for (at++; at < rest.n && !is_url && is_space(rest.p[at]); at++) {
            }
            hearth_buf_append(out, rest.p, at);
            hearth_buf_cstr(out, MASK);
            size_t end = value_end(rest, at, is_url);
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
    struct hearth_str all = hearth_str_c(url);
    const char *scheme = strstr(url, "://");
    const char *key = strstr(url, "password");
    /* Behind "password" a "://" is part of the value. */
    bool is_url = scheme != NULL && (key == NULL || scheme < key);
    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    size_t done = is_url ? mask_user(all, (size_t)(scheme - url) + 3, &out) : 0;
    mask_parameters(hearth_str_n(all.p + done, all.n - done), is_url, &out);
    const char *copy = hearth_buf_failed(&out) ? NULL : hearth_arena_strndup(arena, out.p, out.n);
    hearth_buf_release(&out);
    return copy;
}
