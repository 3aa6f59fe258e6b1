/*
 * selector_internal.h -- what the generated lexer and parser (grammar/) share with selector.c.
 *
 * Private to the query layer.
 */
#ifndef HEARTH_QUERY_SELECTOR_INTERNAL_H
#define HEARTH_QUERY_SELECTOR_INTERNAL_H

#include "hearth/selector/selector.h"

#include <stdio.h>

#define HEARTH_SELECTOR_MAX_BYTES    (64u * 1024u)
#define HEARTH_SELECTOR_MAX_MATCHERS 200u
/* The grammar is flat and its lists are left-recursive: no input needs more than eight. */
#define HEARTH_SELECTOR_STACK 16

/* A piece of the text; never copied. */
struct hearth_selector_token {
    const char *p;
    size_t n;
};

/* The text is followed by a NUL that is not counted: start <= cursor <= limit, *limit == 0. */
struct hearth_selector_lexer {
    const unsigned char *start, *cursor, *marker, *limit;
    bool in_list; /* between brackets names hold no ':' */
};

struct hearth_selector_ctx {
    struct hearth_selector *selector;
    struct hearth_arena *arena;
    struct hearth_selector_lexer lexer;
    struct hearth_str metric; /* the name before the list; p is NULL without one */
    /* The parser's states before the current token: default reductions would hide what else was
     * possible. */
    uint16_t states[HEARTH_SELECTOR_STACK];
    size_t n_states;
    enum hearth_status status; /* of the first error; later ones are not recorded */
    size_t offset;
    struct hearth_err *err;
};

/* ---- grammar/selector_lex.re: the next token's TOK_ number, 0 at the end, -1 for an open string
 * ---- */
int hearth_selector_lex(struct hearth_selector_lexer *lexer,
                        struct hearth_selector_token *ret_token);

/* ---- grammar/selector_parse.y: lex and parse the whole text; the outcome is ctx->status ---- */
void hearth_selector_run(struct hearth_selector_ctx *ctx);

/* Entry points of the generated parser, which declares none. */
void hearth_selector_yyInit(void *parser, struct hearth_selector_ctx *ctx);
void hearth_selector_yyFinalize(void *parser);
void hearth_selector_yy(void *parser, int major, struct hearth_selector_token minor);
int hearth_selector_yyFallback(int token);

/* ---- selector.c: the parser's actions ---- */
void hearth_selector_on_metric(struct hearth_selector_ctx *ctx, struct hearth_selector_token name);
void hearth_selector_on_quoted_metric(struct hearth_selector_ctx *ctx,
                                      struct hearth_selector_token name);
void hearth_selector_on_matcher(struct hearth_selector_ctx *ctx, struct hearth_selector_token name,
                                enum hearth_match_op op, struct hearth_selector_token value);
/* Record the first error at `at`, a place in the text. "at offset N" is appended. */
void hearth_selector_fail(struct hearth_selector_ctx *ctx, const char *at, const char *fmt, ...)
    HEARTH_PRINTF(3, 4);

/* ---- selector_text.c ---- */
/* The text of a quoted string without its quotes and escapes, in the arena; false after an error.
 */
bool hearth_selector_unquote(struct hearth_selector_ctx *ctx, struct hearth_selector_token token,
                             struct hearth_str *ret_text);
/* Bytes of the UTF-8 character at p[0..n), 0 when it is malformed. */
size_t hearth_selector_utf8_len(const char *p, size_t n);

/* ---- matcher.c ---- */
/* Name, op and value are set; fills the rest. n_engines: regexes of this selector that need the
 * engine. */
HEARTH_MUST_CHECK
enum hearth_status hearth_matcher_compile(struct hearth_matcher *matcher, size_t n_engines,
                                          struct hearth_arena *arena, struct hearth_err *err);

/* ---- regex_classify.c ---- */
/* Recognise a pattern that needs no engine: fills kind and literals, else kind is REGEX. */
HEARTH_MUST_CHECK
enum hearth_status hearth_regex_classify(struct hearth_str pattern, struct hearth_arena *arena,
                                         enum hearth_match_kind *ret_kind,
                                         struct hearth_str **ret_literals, size_t *ret_n);

#endif
