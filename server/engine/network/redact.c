/*
 * redact.c -- secrets out of captured texts (contract: redact.h).
 *
 * Names first: one pass over the words of the text. A word that is a name is followed by its value if a ':', a '=' or
 * the end of an XML tag comes next, past the quotes and brackets that belong to the name. Then the expressions, one after
 * the other, over what is left.
 */
#include "network/redact.h"

#include "hearth/base/mem.h"
#include "hearth/selector/pattern.h"

#define MAX_NAME_BYTES 128u
/* How far is looked for what belongs to a name, and how many backslashes: so that no text takes more than linear time. */
#define MAX_GAP_BYTES 4096u
#define MAX_SLASHES   64u
/* Between a name that is a value and the value that it names. */
#define MAX_PAIR_BYTES 256u

struct hearth_redactor {
    char (*names)[MAX_NAME_BYTES + 1]; /* as fold() makes them */
    size_t *name_bytes;
    struct hearth_pattern **patterns;
    size_t n_names, n_patterns;
};

/* ---- rules ---- */

static char fold(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

/* Does not count: accessToken, access_token, Access-Token and --access-token are one name. */
static bool is_separator(char c)
{
    return c == '_' || c == '-';
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
}

static enum hearth_status add_name(struct hearth_redactor *redactor, struct hearth_str rule,
                                   struct hearth_err *err)
{
    bool ok = rule.n <= MAX_NAME_BYTES;
    size_t n = 0;
    for (size_t i = 0; i < rule.n && ok; i++) {
        ok = is_word(rule.p[i]);
        if (!is_separator(rule.p[i])) {
            redactor->names[redactor->n_names][n++] = fold(rule.p[i]);
        }
    }
    if (!ok || n == 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "redact: \"" HEARTH_STR_FMT
                           "\" is neither a name (letters, digits, - and _, %u at most) nor an"
                           " /expression/",
                           HEARTH_STR_ARG(rule), MAX_NAME_BYTES);
    }
    redactor->name_bytes[redactor->n_names++] = n;
    return HEARTH_OK;
}

static enum hearth_status add_rule(struct hearth_redactor *redactor, struct hearth_str rule,
                                   struct hearth_err *err)
{
    if (rule.n > 2 && rule.p[0] == '/' && rule.p[rule.n - 1] == '/') {
        HEARTH_TRY(hearth_pattern_new(hearth_str_n(rule.p + 1, rule.n - 2), "redact",
                                      &redactor->patterns[redactor->n_patterns], err));
        redactor->n_patterns++;
        return HEARTH_OK;
    }
    return add_name(redactor, rule, err);
}

enum hearth_status hearth_redactor_new(const char *const *rules, struct hearth_redactor **ret,
                                       struct hearth_err *err)
{
    size_t n = 0;
    while (rules != NULL && rules[n] != NULL) {
        n++;
    }
    struct hearth_redactor *redactor = hearth_mem_zalloc(sizeof *redactor);
    if (redactor != NULL) {
        redactor->names = hearth_mem_zalloc((n + 1) * sizeof redactor->names[0]);
        redactor->name_bytes = hearth_mem_zalloc((n + 1) * sizeof redactor->name_bytes[0]);
        redactor->patterns = hearth_mem_zalloc((n + 1) * sizeof redactor->patterns[0]);
    }
    if (redactor == NULL || redactor->names == NULL || redactor->name_bytes == NULL ||
        redactor->patterns == NULL) {
        hearth_redactor_free(redactor);
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for %zu rules of redaction", n);
    }
    for (size_t i = 0; i < n; i++) {
        enum hearth_status status = add_rule(redactor, hearth_str_c(rules[i]), err);
        if (status != HEARTH_OK) {
            hearth_redactor_free(redactor);
            return status;
        }
    }
    *ret = redactor;
    return HEARTH_OK;
}

void hearth_redactor_free(struct hearth_redactor *redactor)
{
    if (redactor != NULL) {
        for (size_t i = 0; i < redactor->n_patterns; i++) {
            hearth_pattern_free(redactor->patterns[i]);
        }
        hearth_mem_free(redactor->names);
        hearth_mem_free(redactor->name_bytes);
        hearth_mem_free((void *)redactor->patterns);
        hearth_mem_free(redactor);
    }
}

/* ---- characters ---- */

static int hex_of(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* %XX, also where it was encoded more than once (%25XX), at p; 0: it is none. */
static size_t percent_bytes(const char *p, size_t left)
{
    size_t n = 3;
    if (left < n || hex_of(p[1]) < 0 || hex_of(p[2]) < 0) {
        return 0;
    }
    while (n < MAX_SLASHES && left >= n + 2 && memcmp(p + n - 2, "25", 2) == 0 &&
           hex_of(p[n]) >= 0 && hex_of(p[n + 1]) >= 0) {
        n += 2;
    }
    return n;
}

/* A quote as HTML says it; *ret_n stays when there is none. */
static char entity_char(const char *p, size_t left, size_t *ret_n)
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

/* The character at `at`, which is in the text, and how many bytes say it. What is not ASCII becomes 0x7f. */
static char read_char(struct hearth_str text, size_t at, size_t *ret_n)
{
    const char *p = text.p + at;
    size_t left = text.n - at;
    *ret_n = 1;
    if (*p == '&') {
        return entity_char(p, left, ret_n);
    }
    size_t n_percent = *p == '%' ? percent_bytes(p, left) : 0;
    if (n_percent > 0) {
        *ret_n = n_percent;
        int c = hex_of(p[n_percent - 2]) * 16 + hex_of(p[n_percent - 1]);
        return c < 0x80 ? (char)c : 0x7f;
    }
    if (*p == '\\') { /* any number of backslashes, where JSON stands in JSON */
        size_t i = 0;
        while (i < left && i < MAX_SLASHES && p[i] == '\\') {
            i++;
        }
        if (left - i >= 5 && p[i] == 'u') {
            int c = 0;
            for (size_t k = 1; k <= 4; k++) {
                c = hex_of(p[i + k]) < 0 ? -100000 : c * 16 + hex_of(p[i + k]);
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

/* Backslashes that end before `at`. */
static size_t slashes_before(struct hearth_str text, size_t from, size_t at)
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

/* ---- values ---- */

struct value {
    size_t from, to; /* from == to: there is none */
};

/* In quotes, at `at` the opening one with `slashes` before it: as many, or that many more levels up, close it. */
static size_t end_of_quoted(struct hearth_str text, size_t at, size_t slashes)
{
    char quote = text.p[at];
    for (size_t i = at + 1; i < text.n; i++) {
        if (text.p[i] == quote) {
            size_t n = slashes_before(text, at + 1, i);
            if (n % (2 * (slashes + 1)) == slashes) {
                return i - slashes;
            }
        }
    }
    return text.n;
}

/* An array or object that begins at `at`; quotes within it are as the first one. */
static size_t end_of_nested(struct hearth_str text, size_t at)
{
    size_t depth = 0;
    for (size_t i = at; i < text.n; i++) {
        char c = text.p[i];
        if (c == '"') {
            size_t slashes = slashes_before(text, at, i);
            size_t end = end_of_quoted(text, i, slashes);
            i = end + slashes; /* the closing quote, or the end */
        } else if (c == '[' || c == '{') {
            depth++;
        } else if ((c == ']' || c == '}') && --depth == 0) {
            return i + 1;
        }
    }
    return text.n;
}

static size_t end_at(struct hearth_str text, size_t at, const char *stops)
{
    while (at < text.n && strchr(stops, text.p[at]) == NULL) {
        at++;
    }
    return at;
}

/* The rest of the line, and lines that go on with it. */
static size_t end_of_lines(struct hearth_str text, size_t at)
{
    for (;;) {
        at = end_at(text, at, "\n");
        if (at + 1 >= text.n || (text.p[at + 1] != ' ' && text.p[at + 1] != '\t')) {
            return at > 0 && at < text.n && text.p[at - 1] == '\r' ? at - 1 : at;
        }
        at++;
    }
}

/* Only blanks stand before `at` on its line. */
static bool begins_line(struct hearth_str text, size_t at)
{
    while (at > 0 && (text.p[at - 1] == ' ' || text.p[at - 1] == '\t')) {
        at--;
    }
    return at == 0 || text.p[at - 1] == '\n';
}

/* In quotes or brackets, plain or encoded; else it ends where such values do. */
static struct value enclosed_or_bare(struct hearth_str text, size_t at, bool is_equals)
{
    size_t slashes = 0, n = 0;
    while (at + slashes < text.n && text.p[at + slashes] == '\\') {
        slashes++;
    }
    if (at + slashes < text.n && is_quote(text.p[at + slashes])) {
        size_t quote = at + slashes;
        return (struct value){quote + 1, end_of_quoted(text, quote, slashes)};
    }
    if (at < text.n && (text.p[at] == '{' || text.p[at] == '[')) {
        return (struct value){at, end_of_nested(text, at)};
    }
    if (at < text.n && is_quote(read_char(text, at, &n)) && n > 1) {
        size_t to = at + n;
        while (to < text.n && (text.n - to < n || memcmp(text.p + to, text.p + at, n) != 0)) {
            to++;
        }
        return (struct value){at + n, to};
    }
    return (struct value){at, end_at(text, at, is_equals ? "&; \t\r\n\"'<>#" : ",}]\"'<>\r\n")};
}

/* What comes after "name:" or "name=". A header is its line, whatever its value begins with. */
static struct value after_delimiter(struct hearth_str text, size_t at, bool is_line, bool is_equals)
{
    size_t line_at = at;
    while (line_at < text.n && (text.p[line_at] == ' ' || text.p[line_at] == '\t')) {
        line_at++;
    }
    bool is_enclosed = line_at < text.n && (is_quote(text.p[line_at]) || text.p[line_at] == '{' ||
                                            text.p[line_at] == '[');
    if (is_line && !is_enclosed) {
        return (struct value){line_at, end_of_lines(text, line_at)};
    }
    struct value value =
        enclosed_or_bare(text, is_equals || is_line ? line_at : skip_blank(text, at), is_equals);
    size_t rest = value.to; /* a header may go on behind its quotes; YAML does not */
    while (rest < text.n && strchr(" \t\r\\\"',;]})", text.p[rest]) != NULL) {
        rest++;
    }
    if (is_line && rest < text.n && text.p[rest] != '\n') {
        return (struct value){line_at, end_of_lines(text, rest)};
    }
    return value;
}

/* <name>value<, <name a="b">value<; at: behind the name. */
static struct value of_element(struct hearth_str text, size_t at)
{
    struct hearth_str near =
        hearth_str_n(text.p, text.n - at > MAX_GAP_BYTES ? at + MAX_GAP_BYTES : text.n);
    size_t from = end_at(near, at, "<>");
    if (from >= near.n || text.p[from] == '<' || text.p[from - 1] == '/') {
        return (struct value){at, at};
    }
    return (struct value){from + 1, end_at(text, from + 1, "<")};
}

/* A part of a form: name="name", then heads until an empty line, then the value until the next boundary. */
static struct value of_part(struct hearth_str text, size_t at)
{
    static const char *const gaps[] = {"\r\n\r\n", "\n\n"};
    size_t near = text.n - at > MAX_GAP_BYTES ? MAX_GAP_BYTES : text.n - at;
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(gaps); i++) {
        const char *gap = memmem(text.p + at, near, gaps[i], strlen(gaps[i]));
        if (gap != NULL) {
            size_t from = (size_t)(gap - text.p) + strlen(gaps[i]);
            const char *end = memmem(text.p + from, text.n - from, "\n--", 3);
            size_t to = end == NULL ? text.n : (size_t)(end - text.p);
            return (struct value){from, to > from && text.p[to - 1] == '\r' ? to - 1 : to};
        }
    }
    return (struct value){at, at};
}

static bool follows(struct hearth_str text, size_t at, const char *what)
{
    size_t n = strlen(what);
    return at >= n && memcmp(text.p + at - n, what, n) == 0;
}

/* Its line so far is one of a form's heads. */
static bool is_of_form(struct hearth_str text, size_t at)
{
    size_t from = at;
    while (from > 0 && at - from < MAX_GAP_BYTES && text.p[from - 1] != '\n') {
        from--;
    }
    return memmem(text.p + from, at - from, "form-data", 9) != NULL;
}

/* A word "name" or "key" stands before `at`, with what makes it a field. */
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

static size_t read_word(struct hearth_str text, size_t at, char word[MAX_NAME_BYTES],
                        size_t *ret_n);

/* {"name":"password","value":"x"}, <input name="password" value="x">: at: behind the name. */
static struct value of_pair(struct hearth_str text, size_t at)
{
    size_t end = text.n - at > MAX_PAIR_BYTES ? at + MAX_PAIR_BYTES : text.n;
    struct hearth_str near = hearth_str_n(text.p, end_at(hearth_str_n(text.p, end), at, "<>{}"));
    char word[MAX_NAME_BYTES];
    size_t n, step;
    for (size_t i = at; i < near.n;) {
        (void)read_char(near, i, &step);
        size_t from = i;
        i = read_word(near, i, word, &n);
        if (i == from) {
            i += step;
        } else if (n == 5 && memcmp(word, "value", 5) == 0) {
            for (; i < near.n; i += step) {
                char c = read_char(near, i, &step);
                if (c == ':' || c == '=') {
                    return after_delimiter(text, i + step, begins_line(text, from) && c == ':',
                                           c == '=');
                }
                if (!is_quote(c) && c != '\\' && !is_blank(c)) {
                    break;
                }
            }
        }
    }
    return (struct value){at, at};
}

/* The value of the name in [from, at). */
static struct value value_of(struct hearth_str text, size_t from, size_t at)
{
    size_t behind = at;
    if (follows(text, from, "<")) {
        return of_element(text, at);
    }
    if ((follows(text, from, "name=\"") || follows(text, from, "name=")) &&
        is_of_form(text, from)) {
        struct value part = of_part(text, at);
        if (part.to > part.from) {
            return part;
        }
    }
    bool is_line = begins_line(text, from);
    size_t n;
    for (char c; at < text.n; at += n) { /* quotes, brackets and blanks that close the name */
        c = read_char(text, at, &n);
        bool is_slash = c == '\\' && text.p[at] == '\\';
        if (!is_quote(c) && c != ']' && c != ' ' && c != '\t' && !is_slash &&
            !(is_blank(c) && !is_line)) {
            break;
        }
    }
    if (at >= text.n) {
        return (struct value){at, at};
    }
    char c = read_char(text, at, &n);
    if (c != ':' && c != '=') {
        return is_named_by_field(text, from) ? of_pair(text, behind) : (struct value){at, at};
    }
    at += n;
    if (c == '=' && at < text.n && text.p[at] == '>') {
        at++;
    }
    return after_delimiter(text, at, is_line && c == ':', c == '=');
}

/* ---- passes ---- */

static bool is_name(const struct hearth_redactor *redactor, const char *word, size_t n)
{
    for (size_t i = 0; i < redactor->n_names; i++) {
        if (redactor->name_bytes[i] == n && memcmp(redactor->names[i], word, n) == 0) {
            return true;
        }
    }
    return false;
}

bool hearth_redact_is_name(const struct hearth_redactor *redactor, struct hearth_str name)
{
    char word[MAX_NAME_BYTES];
    size_t end = name.n, n;
    while (end > 0 && !is_word(name.p[end - 1])) {
        end--;
    }
    size_t from = end;
    while (from > 0 && is_word(name.p[from - 1])) {
        from--;
    }
    return end > from && read_word(hearth_str_n(name.p, end), from, word, &n) == end && n > 0 &&
           is_name(redactor, word, n);
}

/* A word from `at`: its end, and itself when it is not longer than names are (else *ret_n is 0). */
static size_t read_word(struct hearth_str text, size_t at, char word[MAX_NAME_BYTES], size_t *ret_n)
{
    size_t length = 0, n;
    while (at < text.n) {
        char c = read_char(text, at, &n);
        if (!is_word(c)) {
            break;
        }
        if (!is_separator(c)) {
            if (length < MAX_NAME_BYTES) {
                word[length] = fold(c);
            }
            length++;
        }
        at += n;
    }
    *ret_n = length <= MAX_NAME_BYTES ? length : 0;
    return at;
}

/* What goes, found and not reached yet: between a name and its value there may be others (attributes, heads of a part). */
struct pending {
    struct value next, later; /* next comes first; from == to: none */
    size_t kept;              /* of the text, written so far */
    size_t n_gone;
};

/* In doubt one value covers what lies between, too. */
static void wait_for(struct pending *pending, struct value value)
{
    struct value *next = &pending->next, *later = &pending->later;
    bool has_next = next->to > next->from, has_later = later->to > later->from;
    if (!has_next) {
        *next = value;
    } else if (value.to <= next->from) { /* it comes before */
        *later = (struct value){next->from, has_later ? later->to : next->to};
        *next = value;
    } else {
        next->from = value.from < next->from ? value.from : next->from;
        next->to = value.to > next->to ? value.to : next->to;
    }
}

static void found(struct pending *pending, struct value value)
{
    if (value.to > value.from) {
        wait_for(pending, value);
    }
}

static void write_next(struct pending *pending, struct hearth_str text, struct hearth_buf *out)
{
    struct value value = pending->next, later = pending->later;
    size_t from = value.from > pending->kept ? value.from : pending->kept;
    hearth_buf_append(out, text.p + pending->kept, from - pending->kept);
    hearth_buf_cstr(out, HEARTH_REDACTED);
    pending->kept = value.to > from ? value.to : from;
    pending->n_gone++;
    if (later.to <= pending->kept) {
        later = (struct value){0, 0};
    }
    pending->next = later;
    pending->later = (struct value){0, 0};
}

static size_t by_name(const struct hearth_redactor *redactor, struct hearth_str text,
                      struct hearth_buf *out)
{
    char word[MAX_NAME_BYTES];
    struct pending pending = {.kept = 0};
    size_t at = 0, n, step;
    while (at < text.n) {
        if (pending.next.to > pending.next.from && at >= pending.next.from) {
            write_next(&pending, text, out);
            at = at > pending.kept ? at : pending.kept;
            continue;
        }
        size_t from = at;
        (void)read_char(text, at, &step);
        at = read_word(text, at, word, &n);
        if (at == from) {
            /* Or is it a percent sign, and a name after it? */
            for (size_t k = 1; k < step && text.p[at] == '%'; k += 2) {
                size_t end = read_word(text, at + k, word, &n);
                if (n > 0 && is_name(redactor, word, n)) {
                    found(&pending, value_of(text, at + k, end));
                }
            }
            at += step;
        } else if (n > 0 && is_name(redactor, word, n)) {
            found(&pending, value_of(text, from, at));
        }
    }
    while (pending.next.to > pending.next.from) {
        write_next(&pending, text, out);
    }
    hearth_buf_append(out, text.p + pending.kept, text.n - pending.kept);
    return pending.n_gone;
}

static size_t by_pattern(const struct hearth_pattern *pattern, struct hearth_str text,
                         struct hearth_buf *out)
{
    size_t kept = 0, at = 0, n_gone = 0, from, to;
    while (at < text.n && hearth_pattern_find(pattern, text, at, &from, &to)) {
        if (to > from) {
            hearth_buf_append(out, text.p + kept, from - kept);
            hearth_buf_cstr(out, HEARTH_REDACTED);
            kept = to;
            n_gone++;
        }
        at = to > at ? to : at + 1;
    }
    hearth_buf_append(out, text.p + kept, text.n - kept);
    return n_gone;
}

size_t hearth_redact(const struct hearth_redactor *redactor, struct hearth_str text,
                     struct hearth_buf *out)
{
    struct hearth_buf first, second;
    hearth_buf_init(&first, 0);
    hearth_buf_init(&second, 0);
    size_t n_gone = text.n == 0 ? 0 : by_name(redactor, text, &first);
    for (size_t i = 0; i < redactor->n_patterns && !hearth_buf_failed(&first); i++) {
        hearth_buf_reset(&second);
        n_gone += by_pattern(redactor->patterns[i], hearth_buf_view(&first), &second);
        struct hearth_buf swap = first;
        first = second;
        second = swap;
    }
    if (hearth_buf_failed(&first)) {
        out->failed = true;
    } else {
        hearth_buf_str(out, hearth_buf_view(&first));
    }
    hearth_buf_release(&first);
    hearth_buf_release(&second);
    return n_gone;
}
