/*
 * selector_lex.re -- tokens of the selector language.
 *
 * The buffer is counted. A NUL follows it as the sentinel that `re2c:eof` requires; the text itself
 * contains no NUL and only well-formed UTF-8 (selector.c has checked it). A character that starts
 * no token becomes TOK_OTHER, so that the parser reports it in the same words as a misplaced token.
 */
#include "selector_internal.h"
#include "selector_parse.h"

/*!re2c
    re2c:define:YYCTYPE  = "unsigned char";
    re2c:define:YYCURSOR = "lexer->cursor";
    re2c:define:YYMARKER = "lexer->marker";
    re2c:define:YYLIMIT  = "lexer->limit";
    re2c:yyfill:enable   = 0;
    re2c:eof             = 0;

    blank      = [ \t\r\n]+;
    comment    = "#" [^\n\x00]*;
    label      = [a-zA-Z_][a-zA-Z0-9_]*;
    metric     = [a-zA-Z_:][a-zA-Z0-9_:]*;
    double     = ["] ([^"\\\n\x00] | [\\][^\n\x00])*;
    single     = ['] ([^'\\\n\x00] | [\\][^\n\x00])*;
    raw        = [`] [^`\x00]*;
    tail       = [\x80-\xbf];
    character  = [\x01-\x7f] | [\xc2-\xdf] tail | [\xe0-\xef] tail{2} | [\xf0-\xf4] tail{3};
*/

static int lex_in_list(struct hearth_selector_lexer *lexer)
{
    /*!re2c
        "="     { return TOK_EQ; }
        "!="    { return TOK_NE; }
        "=~"    { return TOK_RE; }
        "!~"    { return TOK_NRE; }
        ","     { return TOK_COMMA; }
        "{"     { return TOK_LBRACE; }
        "}"     { return TOK_RBRACE; }
        "<"     { return TOK_LANGLE; }
        ">"     { return TOK_RANGLE; }
        label   { return TOK_NAME; }
        double ["] | single ['] | raw [`] { return TOK_STRING; }
        double | single | raw             { return -1; }
        blank | comment                   { return TOK_BLANK; }
        character                         { return TOK_OTHER; }
        *                                 { return TOK_OTHER; }
        $       { return 0; }
    */
}

static int lex_outside(struct hearth_selector_lexer *lexer)
{
    /*!re2c
        "{"     { return TOK_LBRACE; }
        "}"     { return TOK_RBRACE; }
        "<"     { return TOK_LANGLE; }
        ">"     { return TOK_RANGLE; }
        metric  { return TOK_METRIC; }
        double ["] | single ['] | raw [`] { return TOK_STRING; }
        double | single | raw             { return -1; }
        blank | comment                   { return TOK_BLANK; }
        character                         { return TOK_OTHER; }
        *                                 { return TOK_OTHER; }
        $       { return 0; }
    */
}

int hearth_selector_lex(struct hearth_selector_lexer *lexer,
                        struct hearth_selector_token *ret_token)
{
    for (;;) {
        const unsigned char *from = lexer->cursor;
        int token = lexer->in_list ? lex_in_list(lexer) : lex_outside(lexer);
        if (token == TOK_BLANK) {
            continue;
        }
        if (token == TOK_LBRACE || token == TOK_LANGLE) {
            lexer->in_list = true;
        } else if (token == TOK_RBRACE || token == TOK_RANGLE) {
            lexer->in_list = false;
        }
        *ret_token =
            (struct hearth_selector_token){(const char *)from, (size_t)(lexer->cursor - from)};
        return token;
    }
}
