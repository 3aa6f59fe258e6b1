/*
 * selector_text.c -- strings of the selector language: unquoting, quoting, and the caret.
 */
#include "hearth/model/labels.h"

#include "selector_internal.h"

#include <assert.h>

void hearth_selector_fail(struct hearth_selector_ctx *ctx, const char *at, const char *fmt, ...)
{
    assert(at >= (const char *)ctx->lexer.start && at <= (const char *)ctx->lexer.limit);

    if (ctx->status != HEARTH_OK) {
        return;
    }

    char text[400];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    ctx->offset = (size_t)(at - (const char *)ctx->lexer.start);
    ctx->status =
        HEARTH_FAIL(ctx->err, HEARTH_INVALID_ARGUMENT, "%s, at offset %zu", text, ctx->offset);
    if (ctx->err != NULL) {
        ctx->err->selector_place = (uint32_t)ctx->offset + 1;
    }
}

size_t hearth_selector_utf8_len(const char *p, size_t n)
{
    unsigned char c = n == 0 ? 0x80 : (unsigned char)p[0];
    size_t len = c < 0x80 ? 1 : c < 0xC2 ? 0 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : c < 0xF5 ? 4 : 0;
    if (len < 2) {
        return len;
    }
    return n >= len && hearth_str_utf8_valid(hearth_str_n(p, len)) ? len : 0;
}

static int parse_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : 16;
}

/* Decodes the escapes of a string. */
struct unescaper {
    struct hearth_selector_ctx *ctx;
    char quote;
    const char *p, *end; /* the rest of the string, without its closing quote */
    char *out;           /* decoded text, of n bytes */
    size_t n;
};

/* Decode \x41 \101 \u20ac \U0001f600 at u->p; its digits begin at `digits`. */
static bool unescape_number(struct unescaper *u, const char *digits)
{
    const char *from = u->p;
    int base = from[1] == 'x' || from[1] == 'u' || from[1] == 'U' ? 16 : 8;
    size_t want = from[1] == 'x' ? 2 : from[1] == 'u' ? 4 : from[1] == 'U' ? 8 : 3;
    uint32_t value = 0;

    /* A fixed number of digits. */
    for (size_t i = 0; i < want; i++) {
        if (digits + i == u->end || parse_digit(digits[i]) >= base) {
            hearth_selector_fail(u->ctx, from,
                                 "an escape that begins with \\%c needs %zu %s digits", from[1],
                                 want, base == 16 ? "hexadecimal" : "octal");
            return false;
        }
        value = value * (uint32_t)base + (uint32_t)parse_digit(digits[i]);
    }

    /* A byte, which may be part of a character, or a whole character. */
    u->p = digits + want;
    if (from[1] != 'u' && from[1] != 'U') {
        if (value > 0xFF) {
            hearth_selector_fail(u->ctx, from, "octal escape is above \\377");
            return false;
        }
        u->out[u->n++] = (char)(unsigned char)value;
        return true;
    }

    if (value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) {
        hearth_selector_fail(u->ctx, from, "escape is not a Unicode character");
        return false;
    }

    u->n += hearth_str_utf8_put(u->out + u->n, value);

    return true;
}

/* Decode the escape at u->p (a backslash). */
static bool unescape_char(struct unescaper *u)
{
    static const char names[] = "abfnrtv\\";
    static const char bytes[] = "\a\b\f\n\r\t\v\\";
    char c = u->p[1]; /* the lexer guarantees a character between backslash and closing quote */
    const char *name = strchr(names, c);

    if (name != NULL || c == u->quote) {
        u->out[u->n++] = name != NULL ? bytes[name - names] : c;
        u->p += 2;
        return true;
    }

    if (c >= '0' && c <= '7') {
        return unescape_number(u, u->p + 1);
    }

    if (c == 'x' || c == 'u' || c == 'U') {
        return unescape_number(u, u->p + 2);
    }

    size_t len = hearth_selector_utf8_len(u->p + 1, (size_t)(u->end - u->p - 1));
    hearth_selector_fail(u->ctx, u->p, "unknown escape \\%.*s", (int)len, u->p + 1);

    return false;
}

bool hearth_selector_unquote(struct hearth_selector_ctx *ctx, struct hearth_selector_token token,
                             struct hearth_str *ret_text)
{
    assert(token.n >= 2);
    assert(token.p[0] == token.p[token.n - 1]);

    char quote = token.p[0];
    const char *p = token.p + 1, *end = token.p + token.n - 1;

    if (quote == '`' || memchr(p, '\\', (size_t)(end - p)) == NULL) {
        *ret_text = hearth_str_n(p, (size_t)(end - p));
        return true;
    }

    char *out = hearth_arena_alloc(ctx->arena, token.n); /* decoded text is never longer */
    if (out == NULL) {
        ctx->status = HEARTH_FAIL_ARENA(ctx->err, ctx->arena);
        return false;
    }

    struct unescaper u = {.ctx = ctx, .quote = quote, .p = p, .end = end, .out = out};
    while (u.p < end) {
        if (*u.p != '\\') {
            out[u.n++] = *u.p++;
        } else if (!unescape_char(&u)) {
            return false;
        }
    }

    if (!hearth_str_utf8_valid(hearth_str_n(out, u.n))) {
        hearth_selector_fail(ctx, token.p,
                             "the string holds a NUL or is not UTF-8 after its escapes");
        return false;
    }

    *ret_text = hearth_str_n(out, u.n);

    return true;
}

static void append_quoted(struct hearth_buf *out, struct hearth_str text)
{
    hearth_buf_byte(out, '"');
    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];
        if (c == '"' || c == '\\') {
            hearth_buf_byte(out, '\\');
            hearth_buf_byte(out, c);
        } else if (c == '\n') {
            hearth_buf_cstr(out, "\\n");
        } else if (c == '\t') {
            hearth_buf_cstr(out, "\\t");
        } else if (c < 0x20 || c == 0x7F) {
            hearth_buf_printf(out, "\\x%02x", c);
        } else {
            hearth_buf_byte(out, c);
        }
    }

    hearth_buf_byte(out, '"');
}

void hearth_selector_format(const struct hearth_selector *selector, struct hearth_buf *out)
{
    assert(selector != NULL && out != NULL);

    static const char *const ops[] = {[HEARTH_MATCH_EQ] = "=",
                                      [HEARTH_MATCH_NE] = "!=",
                                      [HEARTH_MATCH_RE] = "=~",
                                      [HEARTH_MATCH_NRE] = "!~"};

    hearth_buf_byte(out, '{');
    for (size_t i = 0; i < selector->n; i++) {
        const struct hearth_matcher *m = &selector->matchers[i];
        hearth_buf_cstr(out, i == 0 ? "" : ", ");
        if (hearth_label_name_is_legacy(m->name)) {
            hearth_buf_str(out, m->name);
        } else {
            append_quoted(out, m->name);
        }
        hearth_buf_cstr(out, ops[m->op]);
        append_quoted(out, m->value);
    }

    hearth_buf_byte(out, '}');
}

/*
 * The caret counts characters, not bytes, because a terminal shows one column per character. (Wide
 * characters are not considered.)
 */
void hearth_selector_caret(struct hearth_str text, size_t offset, struct hearth_buf *out)
{
    assert(out != NULL);

    size_t columns = 0;

    for (size_t i = 0; i < text.n;) {
        size_t len = hearth_selector_utf8_len(text.p + i, text.n - i);
        unsigned char c = (unsigned char)text.p[i];
        if (len == 0) {
            hearth_buf_byte(out, '?');
            len = 1;
        } else if (c < 0x20 || c == 0x7F) {
            hearth_buf_byte(out, ' ');
        } else {
            hearth_buf_append(out, text.p + i, len);
        }
        i += len;
        columns += i <= offset ? 1 : 0;
    }

    /* The caret's line. */
    hearth_buf_byte(out, '\n');
    for (size_t i = 0; i < columns; i++) {
        hearth_buf_byte(out, ' ');
    }

    hearth_buf_cstr(out, "^\n");
}
