/*
 * redact_text.c -- words and values in captured texts (contract: redact_text.h).
 *
 * A word that is a name is followed by its value if the next character is ':', '=' or the end of an
 * XML tag, after the quotes and brackets that belong to the name.
 */
#include "network/redact_text.h"

#include <assert.h>

/* Limits of look-ahead and of backslashes, so that every text takes linear time. */
#define MAX_GAP_BYTES 4096u
#define MAX_SLASHES   64u
/* Maximum length of the prefix of an XML name. */
#define MAX_PREFIX_BYTES 64u
/* Maximum distance between a name that is itself a value and the value that it names. */
#define MAX_PAIR_BYTES 256u

/* ---- characters and words ---- */

static int parse_hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Bytes of %XX at p, also if it was encoded more than once (%25XX); 0: no such sequence. */
static size_t count_percent_bytes(const char *p, size_t left)
{
    size_t n = 3;

    if (left < n || parse_hex_digit(p[1]) < 0 || parse_hex_digit(p[2]) < 0) {
        return 0;
    }

    assert(p[0] == '%');

    while (n < MAX_SLASHES && left >= n + 2 && memcmp(p + n - 2, "25", 2) == 0 &&
           parse_hex_digit(p[n]) >= 0 && parse_hex_digit(p[n + 1]) >= 0) {
        n += 2;
    }

    return n;
}

/* A quote as an HTML entity; otherwise '&', and *ret_n is unchanged. */
static char read_entity(const char *p, size_t left, size_t *ret_n)
{
    static const char *const names[] = {"&quot;", "&#34;", "&#x22;", "&apos;", "&#39;", "&#x27;"};

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(names); i++) {
        size_t n = strlen(names[i]);
        if (left >= n && memcmp(p, names[i], n) == 0) {
            *ret_n = n;
            return i < 3 ? '"' : '\'';
        }
    }

    return '&';
}

char hearth_redact_read_char(struct hearth_str text, size_t at, size_t *ret_n)
{
    assert(at < text.n);

    const char *p = text.p + at;
    size_t left = text.n - at;

    *ret_n = 1;

    /* Entities of HTML. */
    if (*p == '&') {
        return read_entity(p, left, ret_n);
    }

    /* Percent encoding. */
    size_t n_percent = *p == '%' ? count_percent_bytes(p, left) : 0;
    if (n_percent > 0) {
        *ret_n = n_percent;
        int c = parse_hex_digit(p[n_percent - 2]) * 16 + parse_hex_digit(p[n_percent - 1]);
        return c < 0x80 ? (char)c : 0x7f;
    }

    /* Escapes of JSON. */
    if (*p == '\\') { /* any number of backslashes, for JSON within JSON */
        size_t i = 0;
        while (i < left && i < MAX_SLASHES && p[i] == '\\') {
            i++;
        }
        if (left - i >= 5 && p[i] == 'u') {
            int c = 0;
            for (size_t k = 1; k <= 4; k++) {
                c = parse_hex_digit(p[i + k]) < 0 ? -100000 : c * 16 + parse_hex_digit(p[i + k]);
            }
            if (c >= 0) {
                *ret_n = i + 5;
                return c < 0x80 ? (char)c : 0x7f;
            }
        }
    }

    return *p;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static size_t skip_blank(struct hearth_str text, size_t at)
{
    while (at < text.n && is_blank(text.p[at])) {
        at++;
    }
    return at;
}

/* Number of backslashes that end before `at`. */
static size_t count_slashes_before(struct hearth_str text, size_t from, size_t at)
{
    size_t n = 0;

    while (at - n > from && text.p[at - n - 1] == '\\') {
        n++;
    }
    return n;
}

static bool is_quote(char c)
{
    return c == '"' || c == '\'';
}

size_t hearth_redact_read_word(struct hearth_str text, size_t at,
                               char word[HEARTH_REDACT_NAME_BYTES], size_t *ret_n)
{
    size_t length = 0, n;

    while (at < text.n) {
        char c = hearth_redact_read_char(text, at, &n);
        if (!hearth_redact_is_word_char(c)) {
            break;
        }
        if (!hearth_redact_is_separator(c)) {
            if (length < HEARTH_REDACT_NAME_BYTES) {
                word[length] = hearth_redact_fold_case(c);
            }
            length++;
        }
        at += n;
    }

    *ret_n = length <= HEARTH_REDACT_NAME_BYTES ? length : 0;

    return at;
}

/* ---- values ---- */

/*
 * End of a quoted value; at `at` is the opening quote with `slashes` backslashes before it. A quote
 * with as many backslashes, or that many more levels up, closes it.
 */
static size_t find_quoted_end(struct hearth_str text, size_t at, size_t slashes)
{
    assert(at < text.n && is_quote(text.p[at]));

    char quote = text.p[at];

    for (size_t i = at + 1; i < text.n; i++) {
        if (text.p[i] == quote) {
            size_t n = count_slashes_before(text, at + 1, i);
            if (n % (2 * (slashes + 1)) == slashes) {
                return i - slashes;
            }
        }
    }

    return text.n;
}

/* End of an array or object that begins at `at`; quotes within it are like the first one. */
static size_t find_nested_end(struct hearth_str text, size_t at)
{
    size_t depth = 0;

    for (size_t i = at; i < text.n; i++) {
        char c = text.p[i];
        if (c == '"') {
            size_t slashes = count_slashes_before(text, at, i);
            size_t end = find_quoted_end(text, i, slashes);
            i = end + slashes; /* the closing quote, or the end */
        } else if (c == '[' || c == '{') {
            depth++;
        } else if ((c == ']' || c == '}') && --depth == 0) {
            return i + 1;
        }
    }

    return text.n;
}

static size_t find_stop(struct hearth_str text, size_t at, const char *stops)
{
    while (at < text.n && strchr(stops, text.p[at]) == NULL) {
        at++;
    }
    return at;
}

/* End of the line and of its continuation lines. */
static size_t find_lines_end(struct hearth_str text, size_t at)
{
    for (;;) {
        at = find_stop(text, at, "\n");
        if (at + 1 >= text.n || (text.p[at + 1] != ' ' && text.p[at + 1] != '\t')) {
            return at > 0 && at < text.n && text.p[at - 1] == '\r' ? at - 1 : at;
        }
        at++;
    }
}

/* Whether only blanks precede `at` on its line. */
static bool begins_line(struct hearth_str text, size_t at)
{
    while (at > 0 && (text.p[at - 1] == ' ' || text.p[at - 1] == '\t')) {
        at--;
    }
    return at == 0 || text.p[at - 1] == '\n';
}

/*
 * Find a value in quotes or brackets, plain or encoded; otherwise a bare value, which ends at a
 * stop character.
 */
static struct hearth_redact_span find_plain_value(struct hearth_str text, size_t at, bool is_equals)
{
    size_t slashes = 0, n = 0;

    /* In quotes, perhaps escaped. */
    while (at + slashes < text.n && text.p[at + slashes] == '\\') {
        slashes++;
    }

    if (at + slashes < text.n && is_quote(text.p[at + slashes])) {
        size_t quote = at + slashes;
        return (struct hearth_redact_span){quote + 1, find_quoted_end(text, quote, slashes)};
    }

    /* In brackets. */
    if (at < text.n && (text.p[at] == '{' || text.p[at] == '[')) {
        return (struct hearth_redact_span){at, find_nested_end(text, at)};
    }

    /* In encoded quotes. */
    if (at < text.n && is_quote(hearth_redact_read_char(text, at, &n)) && n > 1) {
        size_t to = at + n;
        while (to < text.n && (text.n - to < n || memcmp(text.p + to, text.p + at, n) != 0)) {
            to++;
        }
        return (struct hearth_redact_span){at + n, to};
    }

    /* Bare. */
    return (struct hearth_redact_span){
        at, find_stop(text, at, is_equals ? "&; \t\r\n\"'<>#" : ",}]\"'<>\r\n")};
}

/*
 * Find the value after "name:" or "name=". The value of a header is the rest of its line, whatever
 * it begins with.
 */
static struct hearth_redact_span find_delimited_value(struct hearth_str text, size_t at,
                                                      bool is_line, bool is_equals)
{
    size_t line_at = at;

    /* Skip blanks on the line. */
    while (line_at < text.n && (text.p[line_at] == ' ' || text.p[line_at] == '\t')) {
        line_at++;
    }

    bool is_enclosed = line_at < text.n && (is_quote(text.p[line_at]) || text.p[line_at] == '{' ||
                                            text.p[line_at] == '[');

    /* A header's value is the rest of its lines. */
    if (is_line && !is_enclosed) {
        return (struct hearth_redact_span){line_at, find_lines_end(text, line_at)};
    }

    /* A value in quotes, in brackets or bare. */
    struct hearth_redact_span value =
        find_plain_value(text, is_equals || is_line ? line_at : skip_blank(text, at), is_equals);
    size_t rest = value.to; /* a header may continue after its quotes; YAML does not */
    while (rest < text.n && strchr(" \t\r\\\"',;]})", text.p[rest]) != NULL) {
        rest++;
    }

    /* A header that continues after its quotes. */
    if (is_line && rest < text.n && text.p[rest] != '\n') {
        return (struct hearth_redact_span){line_at, find_lines_end(text, rest)};
    }

    return value;
}

/* Whether the name at `from` begins an XML tag, perhaps after the prefix of a namespace. */
static bool begins_tag(struct hearth_str text, size_t from)
{
    size_t least = from > MAX_PREFIX_BYTES ? from - MAX_PREFIX_BYTES : 0;

    if (from > 0 && text.p[from - 1] == ':') {
        from--;
        while (from > least && hearth_redact_is_word_char(text.p[from - 1])) {
            from--;
        }
    }

    return from > 0 && text.p[from - 1] == '<';
}

/*
 * Find the value of an XML element: <name>value<, <name a="b">value<, <name><![CDATA[value]]>. at:
 * after the name.
 */
static struct hearth_redact_span find_element_value(struct hearth_str text, size_t at)
{
    assert(at <= text.n);

    struct hearth_str near =
        hearth_str_n(text.p, text.n - at > MAX_GAP_BYTES ? at + MAX_GAP_BYTES : text.n);
    size_t from = find_stop(near, at, "<>");

    if (from >= near.n || text.p[from] == '<' || text.p[from - 1] == '/') {
        return (struct hearth_redact_span){at, at};
    }

    /* The value follows, perhaps as a section of characters. */
    const struct hearth_str section = HEARTH_STR("<![CDATA[");
    size_t value = skip_blank(text, from + 1);
    if (!hearth_str_starts(hearth_str_n(text.p + value, text.n - value), section)) {
        return (struct hearth_redact_span){from + 1, find_stop(text, from + 1, "<")};
    }

    value += section.n;
    const char *end = memmem(text.p + value, text.n - value, "]]>", 3);

    return (struct hearth_redact_span){value, end == NULL ? text.n : (size_t)(end - text.p)};
}

/*
 * Find the value of a part of a form: name="name", headers until an empty line, then the value
 * until the next boundary.
 */
static struct hearth_redact_span find_part_value(struct hearth_str text, size_t at)
{
    static const char *const gaps[] = {"\r\n\r\n", "\n\n"};
    size_t near = text.n - at > MAX_GAP_BYTES ? MAX_GAP_BYTES : text.n - at;

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(gaps); i++) {
        const char *gap = memmem(text.p + at, near, gaps[i], strlen(gaps[i]));
        if (gap != NULL) {
            size_t from = (size_t)(gap - text.p) + strlen(gaps[i]);
            const char *end = memmem(text.p + from, text.n - from, "\n--", 3);
            size_t to = end == NULL ? text.n : (size_t)(end - text.p);
            return (struct hearth_redact_span){from,
                                               to > from && text.p[to - 1] == '\r' ? to - 1 : to};
        }
    }

    return (struct hearth_redact_span){at, at};
}

static bool is_preceded_by(struct hearth_str text, size_t at, const char *what)
{
    size_t n = strlen(what);
    return at >= n && memcmp(text.p + at - n, what, n) == 0;
}

/* Whether the line up to `at` is a header of a part of a form. */
static bool is_form_header(struct hearth_str text, size_t at)
{
    size_t from = at;

    while (from > 0 && at - from < MAX_GAP_BYTES && text.p[from - 1] != '\n') {
        from--;
    }
    return memmem(text.p + from, at - from, "form-data", 9) != NULL;
}

/* Whether the word "name" or "key" precedes `at`, with the characters that make it a field. */
static bool is_named_by_field(struct hearth_str text, size_t at)
{
    size_t from = at, least = at > MAX_SLASHES ? at - MAX_SLASHES : 0;

    while (from > least && strchr("\"'\\ \t:=", text.p[from - 1]) != NULL) {
        from--;
    }
    struct hearth_str before = hearth_str_n(text.p, from);

    return from < at && ((from >= 4 && hearth_str_eq_nocase(hearth_str_n(before.p + from - 4, 4),
                                                            HEARTH_STR("name"))) ||
                         (from >= 3 && hearth_str_eq_nocase(hearth_str_n(before.p + from - 3, 3),
                                                            HEARTH_STR("key"))));
}

/*
 * Find the value in {"name":"password","value":"x"} or <input name="password" value="x">. at: after
 * the name.
 */
static struct hearth_redact_span find_pair_value(struct hearth_str text, size_t at)
{
    size_t end = text.n - at > MAX_PAIR_BYTES ? at + MAX_PAIR_BYTES : text.n;
    struct hearth_str near = hearth_str_n(text.p, find_stop(hearth_str_n(text.p, end), at, "<>{}"));
    char word[HEARTH_REDACT_NAME_BYTES];
    size_t n, step;

    for (size_t i = at; i < near.n;) {
        (void)hearth_redact_read_char(near, i, &step);
        size_t from = i;
        i = hearth_redact_read_word(near, i, word, &n);
        if (i == from) {
            i += step;
        } else if ((n == 5 && memcmp(word, "value", 5) == 0) ||
                   (n == 3 && memcmp(word, "val", 3) == 0)) {
            for (; i < near.n; i += step) {
                char c = hearth_redact_read_char(near, i, &step);
                if (c == ':' || c == '=') {
                    return find_delimited_value(text, i + step, begins_line(text, from) && c == ':',
                                                c == '=');
                }
                if (!is_quote(c) && c != '\\' && !is_blank(c)) {
                    break;
                }
            }
        }
    }

    return (struct hearth_redact_span){at, at};
}

struct hearth_redact_span hearth_redact_find_value(struct hearth_str text, size_t from, size_t at)
{
    size_t behind = at;

    assert(from <= at && at <= text.n);

    /* An XML element. */
    if (begins_tag(text, from)) {
        return find_element_value(text, at);
    }

    /* A part of a form. */
    if ((is_preceded_by(text, from, "name=\"") || is_preceded_by(text, from, "name=")) &&
        is_form_header(text, from)) {
        struct hearth_redact_span part = find_part_value(text, at);
        if (part.to > part.from) {
            return part;
        }
    }

    /* Skip the characters that close the name. */
    bool is_line = begins_line(text, from);
    size_t n;
    for (char c; at < text.n; at += n) { /* skip quotes, brackets and blanks that close the name */
        c = hearth_redact_read_char(text, at, &n);
        bool is_slash = c == '\\' && text.p[at] == '\\';
        if (!is_quote(c) && c != ']' && c != ' ' && c != '\t' && !is_slash &&
            !(is_blank(c) && !is_line)) {
            break;
        }
    }

    if (at >= text.n) {
        return (struct hearth_redact_span){at, at};
    }

    /* Without a delimiter, the name may itself be the value of a field. */
    char c = hearth_redact_read_char(text, at, &n);
    if (c != ':' && c != '=') {
        return is_named_by_field(text, from) ? find_pair_value(text, behind)
                                             : (struct hearth_redact_span){at, at};
    }

    /* With a delimiter, the value follows. */
    at += n;
    if (c == '=' && at < text.n && text.p[at] == '>') {
        at++;
    }

    return find_delimited_value(text, at, is_line && c == ':', c == '=');
}
