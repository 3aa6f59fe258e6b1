/*
 * regex_classify.c -- recognises the patterns that need no regex engine.
 *
 *     pattern     = alternatives | [ "^" ] [ ".*" ] literal [ ".*" ] [ "$" ] | ".*" | ".+"
 *     alternatives= alternative { "|" alternative }
 *     alternative = [ "^" ] { piece } [ "$" ]              anchors at the outermost level only
 *     piece       = character | "\" punctuation | "(" [ "?:" ] alternatives ")"
 *
 * Alternatives are multiplied out: a(b|c) is the list ab, ac. All other patterns, including every
 * quantifier, are left to RE2, which also reports all errors: a pattern accepted here is valid in
 * RE2 and has the same meaning there.
 */
#include "selector_internal.h"

#include <assert.h>
#include <stdlib.h>

#define MAX_DEPTH    16u
#define MAX_LITERALS 32768u
#define MAX_PRODUCT  1024u /* results of (a|b)(c|d): a short text can make a long list */
#define MAX_WORK     (2u * 1024 * 1024) /* bytes from the arena for one pattern */

struct scanner {
    const char *p, *end;
    struct hearth_arena *arena;
    size_t work_bytes;
    bool refused; /* memory was refused */
};

/* A growing list of texts; the first one needs no memory. */
struct text_set {
    struct hearth_str first, *v;
    size_t n, cap;
};

static const struct hearth_str *set_texts(const struct text_set *set)
{
    return set->v == NULL ? &set->first : set->v;
}

/* Allocate. NULL if the pattern exceeds MAX_WORK, or if memory was refused. */
static void *alloc_work(struct scanner *s, size_t n_bytes)
{
    if (n_bytes > MAX_WORK - s->work_bytes) {
        return NULL;
    }
    s->work_bytes += n_bytes;
    void *p = hearth_arena_alloc(s->arena, n_bytes);
    s->refused = s->refused || p == NULL;
    return p;
}

static bool set_add(struct scanner *s, struct text_set *set, struct hearth_str text)
{
    if (set->n == 0) {
        set->first = text;
        set->n = 1;
        return true;
    }

    if (set->n >= MAX_LITERALS) {
        return false;
    }

    if (set->n >= set->cap) {
        size_t cap = set->cap == 0 ? 4 : set->cap * 2;
        struct hearth_str *v = alloc_work(s, cap * sizeof *v);
        if (v == NULL) {
            return false;
        }
        memcpy(v, set_texts(set), set->n * sizeof *v);
        set->v = v;
        set->cap = cap;
    }

    set->v[set->n++] = text;

    return true;
}

static bool join_texts(struct scanner *s, struct hearth_str a, struct hearth_str b,
                       struct hearth_str *ret_text)
{
    if (a.n == 0 || b.n == 0) {
        *ret_text = a.n == 0 ? b : a;
        return true;
    }

    char *joined = alloc_work(s, a.n + b.n);
    if (joined == NULL) {
        return false;
    }

    memcpy(joined, a.p, a.n);
    memcpy(joined + a.n, b.p, b.n);
    *ret_text = hearth_str_n(joined, a.n + b.n);

    return true;
}

/* Replace `left` by every text of `left` followed by every text of `right`. */
static bool set_multiply(struct scanner *s, struct text_set *left, const struct text_set *right)
{
    struct text_set product = {0};

    if (left->n > 1 && right->n > 1 && left->n * right->n > MAX_PRODUCT) {
        return false;
    }

    for (size_t i = 0; i < left->n; i++) {
        for (size_t j = 0; j < right->n; j++) {
            struct hearth_str text;
            if (!join_texts(s, set_texts(left)[i], set_texts(right)[j], &text) ||
                !set_add(s, &product, text)) {
                return false;
            }
        }
    }

    *left = product;

    return true;
}

static bool is_special(char c)
{
    return c != '\0' && strchr("\\.+*?()|[]{}^$", c) != NULL;
}

static bool is_quantifier(const struct scanner *s)
{
    return s->p < s->end && strchr("*+?{", *s->p) != NULL;
}

/* Scan a run of plain and escaped characters, at least one. */
static bool scan_literal(struct scanner *s, struct hearth_str *ret_text)
{
    char *text = NULL; /* made at the first escape; until then the pattern's bytes are used */
    const char *from = s->p;
    size_t n = 0;

    while (s->p < s->end) {
        char c = *s->p;
        if (c == '\\') {
            if (s->end - s->p < 2 ||
                !(is_special(s->p[1]) || strchr("-/:,;=@#%&!\"'<>~` ", s->p[1]))) {
                return false;
            }

            if (text == NULL) {
                text = alloc_work(s, (size_t)(s->end - from));
                if (text == NULL) {
                    return false;
                }
                memcpy(text, from, n);
            }

            c = s->p[1];
            s->p++;
        } else if (is_special(c)) {
            break;
        }

        if (text != NULL) {
            text[n] = c;
        }
        n++;
        s->p++;
    }

    *ret_text = hearth_str_n(text == NULL ? from : text, n);

    return n > 0 && !is_quantifier(s);
}

static bool scan_alternatives(struct scanner *s, unsigned depth, struct text_set *ret_set);

/* Scan one alternative, up to '|', ')' or the end. */
static bool scan_alternative(struct scanner *s, unsigned depth, struct text_set *ret_set)
{
    struct text_set set = {0};

    if (!set_add(s, &set, HEARTH_STR(""))) {
        return false;
    }

    if (depth == 0 && s->p < s->end && *s->p == '^') {
        s->p++;
        if (is_quantifier(s)) {
            return false;
        }
    }

    while (s->p < s->end && *s->p != '|' && *s->p != ')') {
        /* '$' ends the alternative; a group or a literal is the next piece. */
        struct text_set piece = {0};
        if (*s->p == '$') {
            s->p++;
            if (depth != 0 || (s->p < s->end && *s->p != '|')) {
                return false;
            }
            break;
        }

        if (*s->p == '(') {
            s->p++;
            if (s->end - s->p >= 2 && s->p[0] == '?' && s->p[1] == ':') {
                s->p += 2;
            }
            if (!scan_alternatives(s, depth + 1, &piece) || s->p == s->end || *s->p != ')') {
                return false;
            }
            s->p++;
            if (is_quantifier(s)) {
                return false;
            }
        } else {
            struct hearth_str text;
            if (!scan_literal(s, &text) || !set_add(s, &piece, text)) {
                return false;
            }
        }

        if (!set_multiply(s, &set, &piece)) {
            return false;
        }
    }

    *ret_set = set;

    return true;
}

static bool scan_alternatives(struct scanner *s, unsigned depth, struct text_set *ret_set)
{
    struct text_set all = {0};

    if (depth > MAX_DEPTH) {
        return false;
    }

    for (;;) {
        struct text_set one;
        if (!scan_alternative(s, depth, &one)) {
            return false;
        }
        for (size_t i = 0; i < one.n; i++) {
            if (!set_add(s, &all, set_texts(&one)[i])) {
                return false;
            }
        }
        if (s->p == s->end || *s->p != '|') {
            *ret_set = all;
            return true;
        }
        s->p++;
    }
}

static bool skip_text(struct scanner *s, const char *what)
{
    size_t n = strlen(what);
    if ((size_t)(s->end - s->p) < n || memcmp(s->p, what, n) != 0) {
        return false;
    }
    s->p += n;
    return true;
}

/* Scan [^][.*]literal[.*][$], .* and .+ */
static bool scan_affixed(struct scanner *s, enum hearth_match_kind *ret_kind,
                         struct hearth_str *ret_text)
{
    *ret_text = HEARTH_STR("");
    (void)skip_text(s, "^");

    /* ".+" alone. */
    if (skip_text(s, ".+")) {
        (void)skip_text(s, "$");
        *ret_kind = HEARTH_MATCH_KIND_NOT_EMPTY;
        return s->p == s->end;
    }

    /* ".*" alone, or before a literal. */
    bool before = skip_text(s, ".*");
    if (is_quantifier(s)) {
        return false;
    }

    if (before && (s->p == s->end || *s->p == '$')) {
        (void)skip_text(s, "$");
        *ret_kind = HEARTH_MATCH_KIND_ANY;
        return s->p == s->end;
    }

    /* A literal with ".*" on at least one side. */
    if (!scan_literal(s, ret_text)) {
        return false;
    }

    bool after = skip_text(s, ".*");
    (void)skip_text(s, "$");
    *ret_kind = !before ? HEARTH_MATCH_KIND_PREFIX
                : after ? HEARTH_MATCH_KIND_CONTAINS
                        : HEARTH_MATCH_KIND_SUFFIX;

    return s->p == s->end && (before || after);
}

static int compare_literals(const void *a, const void *b)
{
    struct hearth_str left, right;
    memcpy(&left, a, sizeof left);
    memcpy(&right, b, sizeof right);
    return hearth_str_cmp(left, right);
}

/* Sort the texts of `set` and remove duplicates; the result is in the arena. */
static bool finish_set(struct scanner *s, const struct text_set *set, struct hearth_str **ret_v,
                       size_t *ret_n)
{
    struct hearth_str *v = set->v != NULL ? set->v : alloc_work(s, sizeof *v);

    if (v == NULL) {
        return false;
    }

    if (set->v == NULL) {
        v[0] = set->first;
    }

    qsort(v, set->n, sizeof *v, compare_literals);
    size_t kept = 0;
    for (size_t i = 0; i < set->n; i++) {
        if (kept == 0 || !hearth_str_eq(v[kept - 1], v[i])) {
            v[kept++] = v[i];
        }
    }

    *ret_v = v;
    *ret_n = kept;

    return true;
}

enum hearth_status hearth_regex_classify(struct hearth_str pattern, struct hearth_arena *arena,
                                         enum hearth_match_kind *ret_kind,
                                         struct hearth_str **ret_literals, size_t *ret_n)
{
    assert(arena != NULL && ret_kind != NULL && ret_literals != NULL && ret_n != NULL);

    const char *from = pattern.n == 0 ? "" : pattern.p;
    struct scanner s = {.p = from, .end = from + pattern.n, .arena = arena};
    struct text_set set = {0};
    enum hearth_match_kind kind = HEARTH_MATCH_KIND_ALTERNATION;
    bool known = scan_alternatives(&s, 0, &set) && s.p == s.end;

    /* Not a list of literals: try the other forms. */
    if (!known && !s.refused) {
        struct hearth_str text = HEARTH_STR("");
        s.p = from;
        s.work_bytes = 0;
        known = scan_affixed(&s, &kind, &text);
        set = (struct text_set){.first = text, .n = 1};
    }

    if (known && finish_set(&s, &set, ret_literals, ret_n)) {
        bool one = kind == HEARTH_MATCH_KIND_ALTERNATION && *ret_n == 1;
        *ret_kind = one ? HEARTH_MATCH_KIND_LITERAL : kind;
        return HEARTH_OK;
    }

    *ret_kind = HEARTH_MATCH_KIND_REGEX;
    *ret_literals = NULL;
    *ret_n = 0;

    return s.refused ? HEARTH_NO_MEMORY : HEARTH_OK;
}
