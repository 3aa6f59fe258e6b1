/*
 * stack_line.c -- decides whether a line is a stack, "frame;frame 12".
 *
 * Any line that ends in a number could be one, since frames may contain anything. Other texts are
 * recognised by their beginning: no real stack begins with a date, an address or a quoted key. A
 * weaker hint, such as several words or "key:" without any ';', makes a line doubtful; the caller
 * decides by the number of doubtful lines.
 */
#include "text/stack_line.h"

#include "text/perf_lines.h"

#include <assert.h>

#define BYTE_ORDER_MARK "\xEF\xBB\xBF"

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* ---- values ---- */

/* The digits after the dot, in units of HEARTH_FRACTION_ONE; further ones do not matter. */
static bool parse_fraction(struct hearth_str digits, uint64_t *ret)
{
    uint64_t place = HEARTH_FRACTION_ONE / 10, fraction = 0;
    for (size_t i = 0; i < digits.n; i++, place /= 10) {
        if (!is_digit(digits.p[i])) {
            return false;
        }
        fraction += place * (uint64_t)(digits.p[i] - '0');
    }

    *ret = fraction;
    return true;
}

/* Parse digits with an optional fraction. Exponents are refused: no tool writes them. */
static bool parse_value(struct hearth_str text, struct hearth_stack_line *ret)
{
    size_t dot = hearth_str_find(text, '.', 0);
    int64_t value = 0;
    if (text.n == 0 || text.p[0] == '-' ||
        (dot > 0 && !hearth_str_to_i64(hearth_str_n(text.p, dot), &value))) {
        return false;
    }

    uint64_t fraction = 0;
    if (dot < text.n &&
        (text.n == 1 /* a dot alone */ ||
         !parse_fraction(hearth_str_n(text.p + dot + 1, text.n - dot - 1), &fraction))) {
        return false;
    }

    ret->value = value;
    ret->fraction = fraction;
    return true;
}

bool hearth_stack_line_scale(const struct hearth_stack_line *line, int64_t factor, int64_t *ret)
{
    assert(factor >= 1 && factor <= HEARTH_FACTOR_MAX && line->fraction < HEARTH_FRACTION_ONE);

    uint64_t scaled = line->fraction * (uint64_t)factor + HEARTH_FRACTION_ONE / 2;
    int64_t rounded = (int64_t)(scaled / HEARTH_FRACTION_ONE);

    return !__builtin_mul_overflow(line->value, factor, ret) &&
           !__builtin_add_overflow(*ret, rounded, ret);
}

/*
 * Split the value after the last space off. False if there is none; a line with only a number has
 * no value.
 */
static bool split_value(struct hearth_str line, struct hearth_stack_line *ret)
{
    size_t space = line.n;
    while (space > 0 && line.p[space - 1] != ' ') {
        space--;
    }

    if (space == 0 || !parse_value(hearth_str_n(line.p + space, line.n - space), ret)) {
        return false;
    }

    ret->stack = hearth_str_n(line.p, space - 1); /* blanks before the value may be a frame */
    return true;
}

/* ---- beginnings of other texts ---- */

/*
 * True if the text begins with the pattern: '9' matches a digit, '+' any number of further digits,
 * ' ' one or more blanks; other characters match themselves.
 */
static bool matches_pattern(struct hearth_str text, const char *pattern)
{
    size_t at = 0;
    for (; *pattern != '\0'; pattern++) {
        if (*pattern == '+') {
            while (at < text.n && is_digit(text.p[at])) {
                at++;
            }
            continue;
        }

        bool fits = at < text.n && (*pattern == '9'   ? is_digit(text.p[at])
                                    : *pattern == ' ' ? is_blank(text.p[at])
                                                      : text.p[at] == *pattern);
        if (!fits) {
            return false;
        }

        at++;
        while (*pattern == ' ' && at < text.n && is_blank(text.p[at])) {
            at++;
        }
    }

    return true;
}

static bool matches_any_pattern(struct hearth_str text, const char *const *patterns)
{
    for (; *patterns != NULL; patterns++) {
        if (matches_pattern(text, *patterns)) {
            return true;
        }
    }

    return false;
}

static bool is_log_beginning(struct hearth_str text)
{
    static const char *const patterns[] = {
        "9999-99-99 ",  "9999-99-99T99:", "9999/99/99 ", "99:99:99 ",    "99:99:99.",
        "99:99:99,",    "[9999-99-99",    "[9999/99/99", "[99:99:99",    "[9+.9+] ",
        "[ 9+.9+] ",    "9+.9+.9+.9+ ",   "<9+>",        "I9999 99:99:", "W9999 99:99:",
        "E9999 99:99:", "F9999 99:99:",   NULL};
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

    if (matches_any_pattern(text, patterns)) {
        return true;
    }

    /* "Nov  3 01:02:03 host ..." */
    for (size_t m = 0; text.n > 3 && m < sizeof months - 1; m += 3) {
        if (memcmp(text.p, months + m, 3) == 0) {
            return matches_pattern(hearth_str_n(text.p + 3, text.n - 3), " 9+ 99:99");
        }
    }

    return false;
}

/*
 * '{"', "{}", '["', "[{", and the quoted key of a member on its own line. "{main}" is a frame of
 * PHP.
 */
static bool is_json_beginning(struct hearth_str text)
{
    assert(text.n > 0);

    if (text.p[0] == '"') {
        size_t end = hearth_str_find(text, '"', 1);
        struct hearth_str rest = hearth_str_n(text.p + end, text.n - end);
        return matches_pattern(rest, "\":") || matches_pattern(rest, "\" :");
    }

    if (text.p[0] != '{' && text.p[0] != '[') {
        return false;
    }

    struct hearth_str rest = hearth_str_trim(hearth_str_n(text.p + 1, text.n - 1));

    return rest.n > 0 &&
           (rest.p[0] == '"' || rest.p[0] == '{' || rest.p[0] == (text.p[0] == '{' ? '}' : '['));
}

/* The name of the kind of text that begins with this frame; NULL if it may be a stack. */
static const char *name_foreign_text(struct hearth_str frame)
{
    static const char *const xml[] = {"<?", "<!", "</", NULL};
    static const char *const metrics[] = {"# HELP ", "# TYPE ", NULL};

    if (frame.n == 0) {
        return NULL;
    }
    if (frame.p[0] == '#') {
        return matches_any_pattern(frame, metrics) ? "a line of Prometheus metrics" : NULL;
    }
    if (is_json_beginning(frame)) {
        return "JSON";
    }
    if (matches_any_pattern(frame, xml)) {
        return "HTML or XML";
    }
    if (matches_pattern(frame, "--- ") || hearth_str_eq_c(frame, "---")) {
        return "the beginning of a document";
    }

    return is_log_beginning(frame) ? "a line of a log" : NULL;
}

/* For example "WARN ...", "[WARN] ..." or "WARN: ...". */
static bool is_level_beginning(struct hearth_str frame)
{
    static const char *const levels[] = {"TRACE",   "DEBUG", "INFO",  "NOTICE",
                                         "WARNING", "WARN",  "ERROR", "FATAL"};

    if (frame.n > 0 && frame.p[0] == '[') {
        frame = hearth_str_n(frame.p + 1, frame.n - 1);
    }

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(levels); i++) {
        struct hearth_str level = hearth_str_c(levels[i]);
        if (hearth_str_starts(frame, level)) {
            char next = frame.n > level.n ? frame.p[level.n] : '\0';
            return is_blank(next) || next == ':' || next == ']';
        }
    }

    return false;
}

/*
 * True for several words, not counting those in brackets: "std::map<int, int>::find" is one word.
 */
static bool has_several_words(struct hearth_str frame)
{
    size_t depth = 0;
    for (size_t i = 0; i < frame.n; i++) {
        char c = frame.p[i];
        if (c == '(' || c == '[' || c == '<' || c == '{') {
            depth++;
        } else if ((c == ')' || c == ']' || c == '>' || c == '}') && depth > 0) {
            depth--;
        } else if (is_blank(c) && depth == 0) {
            return true;
        }
    }

    return false;
}

/*
 * A single frame is doubtful if it looks like a right-aligned number, a sentence, "key: 12", "key =
 * 12" or "a, b, 12".
 */
static bool is_doubtful(struct hearth_str frame, bool is_alone)
{
    if (!is_alone) {
        return is_level_beginning(frame);
    }
    char last = frame.n > 0 ? frame.p[frame.n - 1] : '\0';
    return frame.n == 0 || last == ':' || last == '=' || last == ',' || has_several_words(frame);
}

/* ---- lines ---- */

static bool is_comment(struct hearth_str line)
{
    assert(line.n > 0);

    if (line.p[0] != '#') {
        return false;
    }
    return line.n == 1 || is_blank(line.p[1]) || hearth_str_find(line, ';', 0) == line.n;
}

enum hearth_line_kind hearth_stack_line_read(struct hearth_str line, bool has_values,
                                             struct hearth_stack_line *ret)
{
    /* Concatenated files have byte order marks in the middle. */
    struct hearth_str text = hearth_str_trim(line);
    while (hearth_str_starts(text, HEARTH_STR(BYTE_ORDER_MARK))) {
        text = hearth_str_trim(hearth_str_n(text.p + 3, text.n - 3));
    }

    if (text.n == 0) {
        return HEARTH_LINE_IGNORED;
    }

    *ret = (struct hearth_stack_line){.stack = text, .value = 1};
    if (is_comment(text)) {
        ret->foreign = name_foreign_text(text);
        return ret->foreign == NULL ? HEARTH_LINE_IGNORED : HEARTH_LINE_FOREIGN;
    }

    struct hearth_perf_header header;
    bool has_one_frame = hearth_str_find(text, ';', 0) == text.n;
    if (has_one_frame && hearth_perf_parse_header(text, &header) && header.has_time) {
        ret->foreign = "a record of perf script";
        return HEARTH_LINE_FOREIGN;
    }

    /* The blank before the number may be all that an empty stack consists of. */
    bool is_indented = text.p > line.p && text.p[-1] == ' ';
    struct hearth_str whole = is_indented ? hearth_str_n(text.p - 1, text.n + 1) : text;
    if (has_values && !split_value(whole, ret)) {
        return HEARTH_LINE_OTHER;
    }

    size_t end = hearth_str_find(ret->stack, ';', 0);
    struct hearth_str frame = hearth_str_trim(hearth_str_n(ret->stack.p, end));
    ret->foreign = name_foreign_text(frame);
    if (ret->foreign != NULL) {
        return HEARTH_LINE_FOREIGN;
    }

    bool in_doubt = has_values && is_doubtful(frame, end == ret->stack.n);

    return in_doubt ? HEARTH_LINE_DOUBTFUL : HEARTH_LINE_STACK;
}
