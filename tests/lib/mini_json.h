/*
 * mini_json.h -- a strict JSON reader for tests that may not link the codec layer. Header only.
 *
 * Values live in an arena. Any deviation from RFC 8259 gives NULL. Nesting is limited to 32.
 */
#ifndef HEARTH_TESTS_MINI_JSON_H
#define HEARTH_TESTS_MINI_JSON_H

#include "hearth/base/arena.h"

enum mini_json_kind {
    MINI_JSON_NULL,
    MINI_JSON_BOOL,
    MINI_JSON_NUMBER,
    MINI_JSON_STRING,
    MINI_JSON_ARRAY,
    MINI_JSON_OBJECT,
};

struct mini_json {
    enum mini_json_kind kind;
    bool truth;
    double number;
    struct hearth_str text;  /* STRING */
    struct hearth_str key;   /* of a member */
    struct mini_json *first; /* ARRAY, OBJECT */
    struct mini_json *next;  /* sibling */
    size_t n;                /* children */
};

struct mini_json_reader {
    const char *p, *end;
    struct hearth_arena *arena;
    unsigned depth;
};

static struct mini_json *mini_json_value(struct mini_json_reader *r);

static inline void mini_json_blank(struct mini_json_reader *r)
{
    while (r->p < r->end && (*r->p == ' ' || *r->p == '\t' || *r->p == '\n' || *r->p == '\r')) {
        r->p++;
    }
}

static inline bool mini_json_take(struct mini_json_reader *r, const char *what)
{
    size_t n = strlen(what);
    if ((size_t)(r->end - r->p) < n || memcmp(r->p, what, n) != 0) {
        return false;
    }
    r->p += n;
    return true;
}

static inline bool mini_json_hex4(struct mini_json_reader *r, uint32_t *ret)
{
    uint64_t value;
    if (r->end - r->p < 4 || !hearth_str_hex_to_u64(hearth_str_n(r->p, 4), &value)) {
        return false;
    }
    *ret = (uint32_t)value;
    r->p += 4;
    return true;
}

/* What follows a backslash, as UTF-8 at `out`; its length, 0 on error. */
static inline size_t mini_json_escape(struct mini_json_reader *r, char *out)
{
    static const char names[] = "\"\\/bfnrt", bytes[] = "\"\\/\b\f\n\r\t";
    if (r->p == r->end) {
        return 0;
    }
    char c = *r->p++;
    const char *name = strchr(names, c);
    if (c != '\0' && name != NULL) {
        out[0] = bytes[name - names];
        return 1;
    }
    uint32_t high, low;
    if (c != 'u' || !mini_json_hex4(r, &high)) {
        return 0;
    }
    if (high >= 0xD800 && high < 0xDC00) {
        if (!mini_json_take(r, "\\u") || !mini_json_hex4(r, &low) || low < 0xDC00 || low > 0xDFFF) {
            return 0;
        }
        high = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
    } else if (high >= 0xDC00 && high < 0xE000) {
        return 0;
    }
    size_t len = high < 0x80 ? 1 : high < 0x800 ? 2 : high < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (size_t i = len - 1; i > 0; i--, high >>= 6) {
        out[i] = (char)(unsigned char)(0x80 | (high & 0x3F));
    }
    out[0] = (char)(unsigned char)(lead[len] | high);
    return len;
}

static inline bool mini_json_string(struct mini_json_reader *r, struct hearth_str *ret_text)
{
    if (!mini_json_take(r, "\"")) {
        return false;
    }
    char *out = hearth_arena_alloc(r->arena, (size_t)(r->end - r->p) + 1);
    size_t n = 0;
    while (out != NULL && r->p < r->end && *r->p != '"') {
        if ((unsigned char)*r->p < 0x20) {
            return false;
        }
        if (*r->p != '\\') {
            out[n++] = *r->p++;
            continue;
        }
        r->p++;
        size_t len = mini_json_escape(r, out + n);
        if (len == 0) {
            return false;
        }
        n += len;
    }
    *ret_text = hearth_str_n(out, n);
    return out != NULL && mini_json_take(r, "\"");
}

static inline bool mini_json_children(struct mini_json_reader *r, struct mini_json *parent)
{
    bool object = parent->kind == MINI_JSON_OBJECT;
    const char *close = object ? "}" : "]";
    struct mini_json **link = &parent->first;
    mini_json_blank(r);
    if (mini_json_take(r, close)) {
        return true;
    }
    do {
        struct hearth_str key = {NULL, 0};
        mini_json_blank(r);
        if (object) {
            if (!mini_json_string(r, &key)) {
                return false;
            }
            mini_json_blank(r);
            if (!mini_json_take(r, ":")) {
                return false;
            }
        }
        struct mini_json *child = mini_json_value(r);
        if (child == NULL) {
            return false;
        }
        child->key = key;
        *link = child;
        link = &child->next;
        parent->n++;
        mini_json_blank(r);
    } while (mini_json_take(r, ","));
    return mini_json_take(r, close);
}

static inline bool mini_json_number(struct mini_json_reader *r, double *ret)
{
    const char *from = r->p;
    while (r->p < r->end && strchr("+-.eE0123456789", *r->p) != NULL) {
        r->p++;
    }
    struct hearth_str text = hearth_str_n(from, (size_t)(r->p - from));
    bool padded = text.n > 1 && text.p[0] == '0' && text.p[1] >= '0' && text.p[1] <= '9';
    return text.n > 0 && text.p[0] != '+' && text.p[0] != '.' && !padded &&
           hearth_str_to_double(text, ret);
}

static struct mini_json *mini_json_value(struct mini_json_reader *r)
{
    struct mini_json *v = hearth_arena_zalloc(r->arena, sizeof *v);
    bool ok = v != NULL && r->depth < 32;
    mini_json_blank(r);
    if (!ok) {
        return NULL;
    }
    r->depth++;
    if (mini_json_take(r, "{") || mini_json_take(r, "[")) {
        v->kind = r->p[-1] == '{' ? MINI_JSON_OBJECT : MINI_JSON_ARRAY;
        ok = mini_json_children(r, v);
    } else if (r->p < r->end && *r->p == '"') {
        v->kind = MINI_JSON_STRING;
        ok = mini_json_string(r, &v->text);
    } else if (mini_json_take(r, "true") || mini_json_take(r, "false")) {
        v->kind = MINI_JSON_BOOL;
        v->truth = r->p[-2] == 'u';
    } else if (!mini_json_take(r, "null")) {
        v->kind = MINI_JSON_NUMBER;
        ok = mini_json_number(r, &v->number);
    }
    r->depth--;
    return ok ? v : NULL;
}

/* One whole document, or NULL. */
static inline struct mini_json *mini_json_parse(struct hearth_str text, struct hearth_arena *arena)
{
    struct mini_json_reader r = {.p = text.p, .end = text.p + text.n, .arena = arena};
    struct mini_json *v = mini_json_value(&r);
    mini_json_blank(&r);
    return r.p == r.end ? v : NULL;
}

/* The member of an object, or NULL. */
static inline const struct mini_json *mini_json_get(const struct mini_json *object, const char *key)
{
    for (const struct mini_json *v = object->first; v != NULL; v = v->next) {
        if (hearth_str_eq_c(v->key, key)) {
            return v;
        }
    }
    return NULL;
}

#endif
