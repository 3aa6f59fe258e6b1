/* legacy_lines.c -- lines of legacy profiles, and the numbers in them. */
#include "legacy/legacy_reader.h"

bool hearth_legacy_line(struct legacy_reader *r, struct hearth_str *ret)
{
    if (r->at >= r->text.n) {
        return false;
    }

    size_t end = hearth_str_find(r->text, '\n', r->at);
    *ret = hearth_str_trim(hearth_str_n(r->text.p + r->at, end - r->at));
    r->at = end + 1;
    r->line_no++;

    return true;
}

bool hearth_legacy_is_comment(struct hearth_str line)
{
    return line.n == 0 || line.p[0] == '#';
}

static void skip_n(struct hearth_str *line, size_t n)
{
    *line = hearth_str_trim(hearth_str_n(line->p + n, line->n - n));
}

bool hearth_legacy_take(struct hearth_str *line, const char *prefix)
{
    struct hearth_str wanted = hearth_str_c(prefix);

    if (!hearth_str_starts(*line, wanted)) {
        return false;
    }

    skip_n(line, wanted.n);

    return true;
}

bool hearth_legacy_take_i64(struct hearth_str *line, int64_t *ret)
{
    *line = hearth_str_trim(*line);
    size_t n = line->n > 0 && line->p[0] == '-';
    while (n < line->n && line->p[n] >= '0' && line->p[n] <= '9') {
        n++;
    }

    if (!hearth_str_to_i64(hearth_str_n(line->p, n), ret)) {
        return false;
    }

    skip_n(line, n);

    return true;
}

static bool is_hex_digit(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

bool hearth_legacy_take_hex(struct hearth_str *line, uint64_t *ret)
{
    *line = hearth_str_trim(*line);
    size_t from = hearth_str_starts(*line, HEARTH_STR("0x")) ? 2 : 0, n = from;
    while (n < line->n && is_hex_digit(line->p[n])) {
        n++;
    }

    if (!hearth_str_hex_to_u64(hearth_str_n(line->p + from, n - from), ret)) {
        return false;
    }

    skip_n(line, n);

    return true;
}

enum hearth_status hearth_legacy_fail_line(const struct legacy_reader *r, struct hearth_str line,
                                           const char *what, struct hearth_err *err)
{
    return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "line %llu is no %s: \"%.*s\"",
                       (unsigned long long)r->line_no, what, (int)(line.n > 100 ? 100 : line.n),
                       line.p);
}
