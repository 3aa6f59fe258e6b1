/*
 * perf_lines.c -- headers and frames of `perf script`.
 *
 * Command names, symbols and file names may contain spaces, digits, brackets and colons. So a
 * header is found by an unambiguous part, "seconds.fraction:" after a thread id, and read outwards
 * from there. A frame is read from both ends: the address at the beginning, the file name in the
 * last balanced brackets.
 */
#include "text/perf_lines.h"

#include <assert.h>
#include <ctype.h>

#define MAX_EVENT_WORDS 4

static bool is_perf_blank(char c)
{
    return c == ' ' || c == '\t';
}

static bool is_perf_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The next run of non-blank bytes at or after *pos, which moves past it; false at the end. */
static bool read_next_token(struct hearth_str line, size_t *pos, struct hearth_str *ret)
{
    size_t from = *pos;
    while (from < line.n && is_perf_blank(line.p[from])) {
        from++;
    }

    size_t end = from;
    while (end < line.n && !is_perf_blank(line.p[end])) {
        end++;
    }

    *ret = hearth_str_n(line.p + from, end - from);
    *pos = end;
    return end > from;
}

static bool has_only_digits(struct hearth_str s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (!is_perf_digit(s.p[i])) {
            return false;
        }
    }

    return s.n > 0;
}

/* "1234", "-1" or "1234/1235". */
static bool is_thread_id(struct hearth_str s)
{
    size_t slash = hearth_str_find(s, '/', 0);
    if (slash < s.n) {
        return is_thread_id(hearth_str_n(s.p, slash)) &&
               has_only_digits(hearth_str_n(s.p + slash + 1, s.n - slash - 1));
    }

    if (s.n > 0 && s.p[0] == '-') {
        s = hearth_str_n(s.p + 1, s.n - 1);
    }

    /* ids have 32 bits: a longer number is a period or an address */
    return s.n <= 10 && has_only_digits(s);
}

/* For example "[003]". */
static bool is_cpu_number(struct hearth_str s)
{
    return s.n > 2 && s.p[0] == '[' && s.p[s.n - 1] == ']' &&
           has_only_digits(hearth_str_n(s.p + 1, s.n - 2));
}

/* The field "misc" between the thread and the time: some letters, such as "U" or "KM". */
static bool is_misc_field(struct hearth_str s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (!((s.p[i] >= 'A' && s.p[i] <= 'Z') || (s.p[i] >= 'a' && s.p[i] <= 'z'))) {
            return false;
        }
    }

    return s.n > 0 && s.n <= 3;
}

/* "441995.133575:" as nanoseconds; 1 to 9 decimals. */
static bool parse_time(struct hearth_str s, int64_t *ret)
{
    size_t dot = hearth_str_find(s, '.', 0);
    if (s.n < 4 || s.p[s.n - 1] != ':' || dot >= s.n - 2) {
        return false;
    }

    struct hearth_str decimals = hearth_str_n(s.p + dot + 1, s.n - dot - 2);
    int64_t seconds, fraction;
    if (decimals.n > 9 || !has_only_digits(decimals) || !has_only_digits(hearth_str_n(s.p, dot)) ||
        !hearth_str_to_i64(hearth_str_n(s.p, dot), &seconds) ||
        !hearth_str_to_i64(decimals, &fraction)) {
        return false;
    }

    for (size_t i = decimals.n; i < 9; i++) {
        fraction *= 10;
    }

    int64_t ns;
    if (__builtin_mul_overflow(seconds, INT64_C(1000000000), &ns) ||
        __builtin_add_overflow(ns, fraction, &ns)) {
        return false;
    }

    *ret = ns;
    return true;
}

/*
 * Read the part after the time of a header without an event: nothing, or the only frame of a record
 * without call graph.
 */
static bool parse_eventless(struct hearth_str rest, struct hearth_perf_header *h)
{
    struct hearth_perf_frame frame;

    h->event = HEARTH_STR("unknown");
    h->period = 1;
    h->has_period = false;
    h->rest = hearth_str_trim(rest);

    return h->rest.n == 0 || (hearth_perf_parse_frame(h->rest, &frame) && frame.address > 0);
}

/*
 * Read the part after the time: an optional period, the event up to a token that ends in ':', the
 * rest.
 */
static bool parse_after_time(struct hearth_str line, size_t pos, struct hearth_perf_header *h)
{
    struct hearth_str token, after = hearth_str_n(line.p + pos, line.n - pos);
    if (!read_next_token(line, &pos, &token)) {
        return parse_eventless(after, h);
    }

    h->period = 1;
    h->has_period = has_only_digits(token);
    if (h->has_period &&
        (!hearth_str_to_i64(token, &h->period) || !read_next_token(line, &pos, &token))) {
        return false;
    }

    const char *event = token.p;
    if (hearth_str_starts(token, HEARTH_STR("PERF_RECORD_"))) {
        return false;
    }

    assert(token.n > 0);
    while (token.p[token.n - 1] != ':') { /* "raw 0x1a8:" */
        if (!read_next_token(line, &pos, &token)) {
            return parse_eventless(after, h);
        }
    }

    h->event = hearth_str_trim(hearth_str_n(event, (size_t)(token.p + token.n - 1 - event)));
    h->rest = hearth_str_trim(hearth_str_n(line.p + pos, line.n - pos));

    return h->event.n > 0;
}

static bool parse_timed(struct hearth_str line, struct hearth_perf_header *h)
{
    struct hearth_str token, before[3] = {{NULL, 0}}; /* the tokens to the left, nearest first */
    for (size_t pos = 0; read_next_token(line, &pos, &token);) {
        int64_t time_ns;
        size_t at = is_misc_field(before[0]);
        at += is_cpu_number(before[at]);
        struct hearth_str tid = before[at];
        if (is_thread_id(tid) && parse_time(token, &time_ns)) {
            *h = (struct hearth_perf_header){.time_ns = time_ns, .has_time = true};
            h->comm = hearth_str_trim(hearth_str_n(line.p, (size_t)(tid.p - line.p)));
            return parse_after_time(line, pos, h);
        }
        memmove(before + 1, before, 2 * sizeof *before);
        before[0] = token;
    }

    return false;
}

/* True if a token looks like a time: such a line is not a header without a time. */
static bool has_time_token(struct hearth_str line)
{
    struct hearth_str token;
    int64_t time_ns;
    for (size_t pos = 0; read_next_token(line, &pos, &token);) {
        if (parse_time(token, &time_ns)) {
            return true;
        }
    }

    return false;
}

/*
 * Without a time: "comm tid [cpu] period event:", read from the right; cpu and period may be
 * missing.
 */
static bool parse_untimed(struct hearth_str line, struct hearth_perf_header *h)
{
    struct hearth_str last[5] = {{NULL, 0}}; /* the last tokens, last[0] the rightmost */
    struct hearth_str token;
    size_t n = 0;
    for (size_t pos = 0; read_next_token(line, &pos, &token); n++) {
        memmove(last + 1, last, 4 * sizeof *last);
        last[0] = token;
    }

    if (n < 3 || last[0].n < 2 || last[0].p[last[0].n - 1] != ':' || has_time_token(line)) {
        return false;
    }

    *h = (struct hearth_perf_header){.period = 1};
    h->event = hearth_str_n(last[0].p, last[0].n - 1);
    h->rest = hearth_str_n(line.p + line.n, 0);
    size_t at = 1;
    if (n > 3 && has_only_digits(last[1]) && (is_cpu_number(last[2]) || is_thread_id(last[2]))) {
        h->has_period = true;
        if (!hearth_str_to_i64(last[1], &h->period)) {
            return false;
        }
        at++;
    }

    at += is_cpu_number(last[at]);
    if (!is_thread_id(last[at])) {
        return false;
    }

    h->comm = hearth_str_trim(hearth_str_n(line.p, (size_t)(last[at].p - line.p)));

    return h->comm.n > 0;
}

/*
 * Without a time and a call graph: "comm tid period event: address symbol (dso)", where the command
 * is right-aligned; prose has neither period nor dso. Only the first words that end in ':' can be
 * the event, so that a line costs no more than some times its length.
 */
static bool parse_untimed_sample(struct hearth_str line, struct hearth_perf_header *h)
{
    struct hearth_perf_frame frame;
    struct hearth_str token;
    int n_tried = 0;

    for (size_t pos = 0; n_tried < MAX_EVENT_WORDS && read_next_token(line, &pos, &token);) {
        if (token.p[token.n - 1] != ':') {
            continue;
        }

        struct hearth_str rest = hearth_str_trim(hearth_str_n(line.p + pos, line.n - pos));
        n_tried++;
        if (hearth_perf_parse_frame(rest, &frame) && frame.address > 0 &&
            parse_untimed(hearth_str_n(line.p, pos), h) && (h->has_period || frame.dso.n > 0)) {
            h->rest = rest;
            return true;
        }
    }

    return false;
}

bool hearth_perf_parse_header(struct hearth_str line, struct hearth_perf_header *ret)
{
    struct hearth_perf_header h;
    bool indented = line.n > 0 && is_perf_blank(line.p[0]);
    if (!parse_timed(line, &h) && (indented || !parse_untimed(line, &h)) &&
        !parse_untimed_sample(line, &h)) {
        return false;
    }

    *ret = h;
    return true;
}

/*
 * The index of the bracket that matches the closing one at the end of s, or s.n. A file name may
 * contain brackets itself: if they do not balance, the last opening bracket at the beginning of a
 * word is used.
 */
static size_t find_opening_bracket(struct hearth_str s)
{
    size_t depth = 0, last_open = s.n;
    for (size_t i = s.n; i-- > 0;) {
        if (s.p[i] == ')') {
            depth++;
        } else if (s.p[i] == '(') {
            bool at_word = i == 0 || is_perf_blank(s.p[i - 1]);
            last_open = at_word && last_open == s.n ? i : last_open;
            if (--depth == 0) {
                return at_word ? i : last_open;
            }
        }
    }

    return last_open;
}

/* Remove a suffix such as "+0x1a". */
static struct hearth_str remove_offset(struct hearth_str symbol)
{
    size_t at = symbol.n;
    while (at > 0 && symbol.p[at - 1] != '+') {
        at--;
    }

    uint64_t offset;
    if (at > 1 && symbol.n - at > 2 && symbol.p[at] == '0' && symbol.p[at + 1] == 'x' &&
        hearth_str_hex_to_u64(hearth_str_n(symbol.p + at + 2, symbol.n - at - 2), &offset)) {
        symbol.n = at - 1;
    }

    return symbol;
}

/* Remove the bytes of the instruction, " insn: c5 fb 93", that perf prints on request. */
static struct hearth_str remove_instruction(struct hearth_str line)
{
    static const char mark[] = " insn: ";
    size_t at = line.n;
    while (at > 0 && (is_perf_blank(line.p[at - 1]) || isxdigit((unsigned char)line.p[at - 1]))) {
        at--;
    }

    size_t n = sizeof mark - 1;
    size_t from = at + 1 >= n ? at + 1 - n : line.n;
    bool is_marked = from < line.n && at < line.n && memcmp(line.p + from, mark, n) == 0;

    return is_marked ? hearth_str_n(line.p, from) : line;
}

bool hearth_perf_parse_frame(struct hearth_str line, struct hearth_perf_frame *ret)
{
    struct hearth_perf_frame frame = {0};

    line = hearth_str_trim(remove_instruction(line));
    size_t pos = 0;
    struct hearth_str token;
    if (!read_next_token(line, &pos, &token)) {
        return false;
    }

    bool has_address = hearth_str_hex_to_u64(token, &frame.address);
    struct hearth_str rest =
        has_address ? hearth_str_trim(hearth_str_n(line.p + pos, line.n - pos)) : line;
    if (rest.n > 0 && rest.p[rest.n - 1] == ')') {
        size_t open = find_opening_bracket(rest);
        if (open < rest.n) {
            frame.dso = hearth_str_n(rest.p + open + 1, rest.n - open - 2);
            rest = hearth_str_trim(hearth_str_n(rest.p, open));
        }
    }

    frame.symbol = remove_offset(rest);
    if (hearth_str_eq_c(frame.symbol, "[unknown]")) {
        frame.symbol.n = 0;
    }
    if (!has_address && (frame.symbol.n == 0 || frame.dso.n == 0)) {
        return false;
    }

    frame.is_inlined = hearth_str_eq_c(frame.dso, "inlined");
    if (frame.is_inlined || hearth_str_eq_c(frame.dso, "[unknown]")) {
        frame.dso.n = 0;
    }

    *ret = frame;
    return true;
}

/* "libc.so.6[7ab6]", which perf prints for an address without a source line. */
static bool parse_unknown_srcline(struct hearth_str line, struct hearth_str *ret_file)
{
    size_t open = line.n;
    while (open > 0 && line.p[open - 1] != '[') {
        open--;
    }

    uint64_t address;
    if (open < 2 || line.p[line.n - 1] != ']' ||
        !hearth_str_hex_to_u64(hearth_str_n(line.p + open, line.n - open - 1), &address)) {
        return false;
    }

    *ret_file = hearth_str_n(line.p, open - 1);
    return true;
}

bool hearth_perf_parse_srcline(struct hearth_str line, struct hearth_str *ret_file,
                               int64_t *ret_line)
{
    line = hearth_str_trim(line);
    if (parse_unknown_srcline(line, ret_file)) {
        *ret_line = 0;
        return true;
    }

    size_t colon = line.n;
    while (colon > 0 && line.p[colon - 1] != ':') {
        colon--;
    }

    struct hearth_str number = hearth_str_n(line.p + colon, line.n - colon);
    int64_t value;
    if (colon == 0 || !has_only_digits(number) || !hearth_str_to_i64(number, &value)) {
        return false;
    }
    if (colon == 1 && value > 0) {
        return false; /* ":0" is code without a file, ":5" is unknown */
    }

    *ret_file = hearth_str_n(line.p, colon - 1);
    *ret_line = value;
    return true;
}

bool hearth_perf_is_header_mark(struct hearth_str line)
{
    static const char mark[] = "# ========";
    size_t n = sizeof mark - 1;

    return hearth_str_starts(line, hearth_str_n(mark, n)) &&
           hearth_str_trim(hearth_str_n(line.p + n, line.n - n)).n == 0;
}

bool hearth_perf_is_instruction(struct hearth_str line)
{
    return hearth_str_starts(hearth_str_trim(line), HEARTH_STR("insn: "));
}

struct hearth_str hearth_perf_event_base(struct hearth_str event)
{
    static const char modifiers[] = "ukhGHIpPSDWeb";
    size_t colon = event.n;
    while (colon > 0 && event.p[colon - 1] != ':') {
        colon--;
    }

    if (colon < 2) {
        return event;
    }

    for (size_t i = colon; i < event.n; i++) {
        if (memchr(modifiers, event.p[i], sizeof modifiers - 1) == NULL) {
            return event;
        }
    }

    return hearth_str_n(event.p, colon - 1);
}
