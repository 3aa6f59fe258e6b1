/*
 * selector_parse.y -- the selector language: its rules, and the loop that runs the parser.
 *
 * The parser is on the stack of hearth_selector_run and allocates nothing; each action is one call
 * to server/selector/selector.c. README.md has the EBNF and all error messages.
 */
%name hearth_selector_yy
%token_prefix TOK_
%token_type {struct hearth_selector_token}
%extra_context {struct hearth_selector_ctx *ctx}
%stack_size 16
%start_symbol selector

%include {
#define hearth_selector_yy_ENGINEALWAYSONSTACK 1

#include "selector_internal.h"

/*
 * Lemon's trace code fails with our warnings, so it is disabled, and with it Lemon's own asserts.
 */
#ifndef NDEBUG
#define NDEBUG
#endif
#include <assert.h>

static void report_syntax(struct hearth_selector_ctx *ctx, int major,
                          struct hearth_selector_token found);
}

/* In no rule: the lexer drops blanks, and OTHER is an error everywhere. */
%token BLANK OTHER.

%syntax_error { report_syntax(ctx, yymajor, yyminor); }
%stack_overflow { HEARTH_BUG("the grammar is flat: no text can fill the stack"); }

selector ::= metric.
selector ::= metric list.
selector ::= list.

metric ::= METRIC(M). { hearth_selector_on_metric(ctx, M); }

list ::= LBRACE RBRACE.
list ::= LBRACE matchers RBRACE.
list ::= LBRACE matchers COMMA RBRACE.
list ::= LANGLE RANGLE.
list ::= LANGLE matchers RANGLE.
list ::= LANGLE matchers COMMA RANGLE.

matchers ::= matcher.
matchers ::= matchers COMMA matcher.

matcher ::= label(N) op(O) STRING(V). { hearth_selector_on_matcher(ctx, N, O, V); }
matcher ::= STRING(N). { hearth_selector_on_quoted_metric(ctx, N); }

label(A) ::= NAME(A).
label(A) ::= STRING(A).

%type op {enum hearth_match_op}
op(O) ::= EQ. { O = HEARTH_MATCH_EQ; }
op(O) ::= NE. { O = HEARTH_MATCH_NE; }
op(O) ::= RE. { O = HEARTH_MATCH_RE; }
op(O) ::= NRE. { O = HEARTH_MATCH_NRE; }

%code {
/*
 * True if the parser would have accepted `major` instead of the bad token. Runs the tables on a
 * copy of the states before that token, because default reductions have already excluded some of
 * the tokens that could follow.
 */
static bool accepts_token(const struct hearth_selector_ctx *ctx, int major)
{
    YYACTIONTYPE states[HEARTH_SELECTOR_STACK];
    size_t n = ctx->n_states;

    for (size_t i = 0; i < n; i++) {
        states[i] = (YYACTIONTYPE)ctx->states[i];
    }

    /* Reduce until the token is shifted or refused. */
    for (;;) {
        YYACTIONTYPE action = yy_find_shift_action((YYCODETYPE)major, states[n - 1]);
        if (action < YY_MIN_REDUCE) {
            return action <= YY_MAX_SHIFTREDUCE || action == YY_ACCEPT_ACTION;
        }

        size_t rule = (size_t)(action - YY_MIN_REDUCE);
        n -= (size_t)-yyRuleInfoNRhs[rule];
        states[n] = yy_find_reduce_action(states[n - 1], yyRuleInfoLhs[rule]);
        n++;
    }
}

/*
 * The order in which they are listed. A token is omitted if another one that includes it is listed.
 */
static const struct {
    int major, unless;
    const char *name;
} g_expected[] = {
    {TOK_METRIC, 0, "a metric name"},
    {TOK_NAME, 0, "a label name"},
    {TOK_STRING, TOK_NAME, "a quoted string"},
    {TOK_EQ, 0, "one of = != =~ !~"},
    {TOK_COMMA, 0, "\",\""},
    {TOK_LBRACE, 0, "\"{\""},
    {TOK_RBRACE, 0, "\"}\""},
    {TOK_RANGLE, 0, "\">\""},
    {0, -1, "the end"},
};

/* Report "unexpected A, expected B, C or D", read from the parser's own tables. */
static void report_syntax(struct hearth_selector_ctx *ctx, int major,
                          struct hearth_selector_token found)
{
    const char *names[HEARTH_ARRAY_LEN(g_expected)];
    size_t n = 0;

    /* Collect the expected tokens. */
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_expected); i++) {
        int unless = g_expected[i].unless;
        if (accepts_token(ctx, g_expected[i].major) &&
            (unless <= 0 || !accepts_token(ctx, unless))) {
            names[n++] = g_expected[i].name;
        }
    }

    char expected[160];
    size_t at = 0;

    /* Join them. */
    for (size_t i = 0; i < n && at < sizeof expected; i++) {
        const char *glue = i == 0 ? "" : i + 1 == n ? " or " : ", ";
        at += (size_t)snprintf(expected + at, sizeof expected - at, "%s%s", glue, names[i]);
    }

    /* Report the error, at the end or at a token. */
    if (major == 0 && ctx->n_states == 1) {
        hearth_selector_fail(
            ctx, found.p, "the selector is empty, expected %s ({} matches everything)", expected);
    } else if (major == 0) {
        hearth_selector_fail(ctx, found.p, "unexpected end, expected %s", expected);
    } else {
        const char *open = major == TOK_STRING ? "string " : "\"";
        const char *close = major == TOK_STRING ? "" : "\"";
        int shown = found.n > 64 ? 64 : (int)found.n;
        const char *cut = found.n > 64 ? "..." : "";
        hearth_selector_fail(ctx,
                             found.p,
                             "unexpected %s%.*s%s%s, expected %s",
                             open,
                             shown,
                             found.p,
                             cut,
                             close,
                             expected);
    }
}

void hearth_selector_run(struct hearth_selector_ctx *ctx)
{
    yyParser parser;
    hearth_selector_yyInit(&parser, ctx);

    int major;
    do {
        struct hearth_selector_token token;
        major = hearth_selector_lex(&ctx->lexer, &token);
        if (major < 0) {
            hearth_selector_fail(
                ctx, token.p, "the string that starts with %c has no end", token.p[0]);
            break;
        }

        /* Keep the states before the token, for messages. */
        ctx->n_states = 0;
        for (const yyStackEntry *entry = parser.yystack; entry <= parser.yytos; entry++) {
            ctx->states[ctx->n_states++] = entry->stateno;
        }
        hearth_selector_yy(&parser, major, token);
    } while (major != 0 && ctx->status == HEARTH_OK);

    hearth_selector_yyFinalize(&parser);
}
}
