/*
 * time_lex.re -- tokens of points in time and of durations (timeexpr.h).
 *
 * A calendar time is one token with fixed columns; timeexpr.c reads the numbers from it. The buffer
 * is counted, and a NUL follows it as the sentinel.
 */
#include "time_internal.h"

/*!re2c
    re2c:define:YYCTYPE  = "unsigned char";
    re2c:define:YYCURSOR = "lexer->cursor";
    re2c:define:YYMARKER = "lexer->marker";
    re2c:define:YYLIMIT  = "lexer->limit";
    re2c:yyfill:enable   = 0;
    re2c:eof             = 0;

    d        = [0-9];
    zone     = [zZ] | [+-] d d ":" d d;
    seconds  = ":" d d ("." d+)?;
    clock    = [tT ] d d (":" d d seconds?)? zone?;
    calendar = d{4} "-" d d ("-" d d clock?)?;
    micro    = "us" | "\xc2\xb5s" | "\xce\xbcs";
*/

enum hearth_time_token hearth_time_lex(struct hearth_time_lexer *lexer)
{
    lexer->from = lexer->cursor;
    /*!re2c
        "now"       { return HEARTH_TIME_NOW; }
        "+"         { return HEARTH_TIME_PLUS; }
        "-"         { return HEARTH_TIME_MINUS; }
        calendar    { return HEARTH_TIME_CALENDAR; }
        d+          { return HEARTH_TIME_DIGITS; }
        d+ "." d+   { return HEARTH_TIME_DECIMAL; }
        d+ "ns"     { return HEARTH_TIME_PART_NS; }
        d+ micro    { return HEARTH_TIME_PART_US; }
        d+ "ms"     { return HEARTH_TIME_PART_MS; }
        d+ "s"      { return HEARTH_TIME_PART_S; }
        d+ "m"      { return HEARTH_TIME_PART_MIN; }
        d+ "h"      { return HEARTH_TIME_PART_H; }
        d+ "d"      { return HEARTH_TIME_PART_D; }
        d+ "w"      { return HEARTH_TIME_PART_W; }
        d+ "min"    { return HEARTH_TIME_PART_MIN; }
        d+ "M"      { return HEARTH_TIME_PART_MONTH; }
        d+ "mon"    { return HEARTH_TIME_PART_MONTH; }
        d+ "y"      { return HEARTH_TIME_PART_Y; }
        *           { return HEARTH_TIME_OTHER; }
        $           { return HEARTH_TIME_END; }
    */
}
