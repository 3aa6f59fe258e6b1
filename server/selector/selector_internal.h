/*
 * selector_internal.h -- declarations that selector.c shares with the generated lexer and parser
 * (grammar/).
 *
 * Private to the selector layer.
 */
#ifndef HEARTH_SELECTOR_SELECTOR_INTERNAL_H
#define HEARTH_SELECTOR_SELECTOR_INTERNAL_H

#include "hearth/selector/selector.h"

#include <stdio.h>

#define HEARTH_SELECTOR_MAX_BYTES    (64u * 1024u)
#define HEARTH_SELECTOR_MAX_MATCHERS 200u
/* The grammar is flat and its lists are left-recursive: no input needs more than eight entries. */
#define HEARTH_SELECTOR_STACK 16

/* A part of the text; borrowed. */
struct hearth_selector_token {
    const char *p;
    size_t n;
};

/* A NUL that is not counted follows the text: start <= cursor <= limit, *limit == 0. */
struct hearth_selector_lexer {
    const unsigned char *start, *cursor, *marker, *limit;
    bool in_list; /* between brackets, where names cannot contain ':' */
};

struct hearth_selector_ctx {
    struct hearth_selector *selector;
    struct hearth_arena *arena;
    struct hearth_selector_lexer lexer;
    struct hearth_str metric; /* the name before the list; p is NULL if there is none */
    /*
     * The parser's states before the current token. After default reductions the parser no longer
     * knows which other tokens were possible.
     */
    uint16_t states[HEARTH_SELECTOR_STACK];
    size_t n_states;
    enum hearth_status status; /* of the first error; later errors are ignored */
    size_t offset;
    struct hearth_err *err;
};

/* ---- grammar/selector_lex.re ---- */

/* Returns the TOK_ number of the next token, 0 at the end, -1 for a string without an end. */
int hearth_selector_lex(struct hearth_selector_lexer *lexer,
                        struct hearth_selector_token *ret_token);

/* ---- grammar/selector_parse.y ---- */

/* Lex and parse the whole text; the result is ctx->status. */
void hearth_selector_run(struct hearth_selector_ctx *ctx);

/* Entry points of the generated parser, which has no header. */
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
/* Set the first error, at position `at` of the text; "at offset N" is appended to the message. */
void hearth_selector_fail(struct hearth_selector_ctx *ctx, const char *at, const char *fmt, ...)
    HEARTH_PRINTF(3, 4);

/* ---- selector_text.c ---- */
/* Copy a quoted string without quotes and escapes to the arena. False after an error. */
bool hearth_selector_unquote(struct hearth_selector_ctx *ctx, struct hearth_selector_token token,
                             struct hearth_str *ret_text);
/* Number of bytes of the UTF-8 character at p[0..n); 0 if it is malformed. */
size_t hearth_selector_utf8_len(const char *p, size_t n);

/* ---- matcher.c ---- */
/*
 * Compile a matcher whose name, op and value are set. n_engines is the number of the selector's
 * compiled patterns.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_matcher_compile(struct hearth_matcher *matcher, size_t n_engines,
                                          struct hearth_arena *arena, struct hearth_err *err);

/* ---- regex_classify.c ---- */
/* Classify a pattern: sets kind and literals; kind is REGEX if the pattern needs the engine. */
HEARTH_MUST_CHECK
enum hearth_status hearth_regex_classify(struct hearth_str pattern, struct hearth_arena *arena,
                                         enum hearth_match_kind *ret_kind,
                                         struct hearth_str **ret_literals, size_t *ret_n);

#endif
