/*
 * timeexpr.c -- parses points in time and durations to nanoseconds of 64 bits.
 *
 *     time     = "now" [ ("+" | "-") duration ] | calendar | digits | decimal
 *     duration = part { part }                     units from large to small, each at most once
 */
#include "hearth/selector/timeexpr.h"

#include "hearth/base/clock.h"

#include "time_internal.h"

#include <assert.h>
#include <stdio.h>

#define MAX_TEXT_BYTES 95u
#define SHOWN(text)    (int)((text).n > 64 ? 64 : (text).n), ((text).n ? (text).p : "")

static const int64_t g_unit_ns[] = {
    [HEARTH_TIME_PART_NS] = 1,
    [HEARTH_TIME_PART_US] = 1000,
    [HEARTH_TIME_PART_MS] = HEARTH_NS_PER_MS,
    [HEARTH_TIME_PART_S] = HEARTH_NS_PER_SEC,
    [HEARTH_TIME_PART_MIN] = 60 * HEARTH_NS_PER_SEC,
    [HEARTH_TIME_PART_H] = HEARTH_NS_PER_HOUR,
    [HEARTH_TIME_PART_D] = HEARTH_NS_PER_DAY,
    [HEARTH_TIME_PART_W] = 7 * HEARTH_NS_PER_DAY,
    [HEARTH_TIME_PART_MONTH] = 30 * HEARTH_NS_PER_DAY,
    [HEARTH_TIME_PART_Y] = 365 * HEARTH_NS_PER_DAY,
};

/* A copy of the text, followed by the lexer's sentinel. */
struct time_source {
    char copy[MAX_TEXT_BYTES + 1];
    struct hearth_time_lexer lexer;
};

static bool open_source(struct time_source *source, struct hearth_str text)
{
    if (text.n > MAX_TEXT_BYTES) {
        return false;
    }

    if (text.n > 0) {
        memcpy(source->copy, text.p, text.n);
    }

    source->copy[text.n] = '\0';
    source->lexer.cursor = (const unsigned char *)source->copy;
    source->lexer.limit = source->lexer.cursor + text.n;

    return true;
}

static struct hearth_str get_token_text(const struct hearth_time_lexer *lexer)
{
    return hearth_str_n((const char *)lexer->from, (size_t)(lexer->cursor - lexer->from));
}

/* Parse the digits at the start of a token; false if the number is too large. */
static bool parse_leading_number(struct hearth_str token, int64_t *ret)
{
    size_t n = 0;
    while (n < token.n && token.p[n] >= '0' && token.p[n] <= '9') {
        n++;
    }
    return hearth_str_to_i64(hearth_str_n(token.p, n), ret);
}

/* Parse parts up to the end of the text. `what` is the name of the text in messages. */
static enum hearth_status parse_parts(struct hearth_time_lexer *lexer, const char *what,
                                      struct hearth_str text, int64_t *ret_ns,
                                      struct hearth_err *err)
{
    int64_t total = 0;
    int before = HEARTH_TIME_PART_Y + 1;
    enum hearth_time_token token = hearth_time_lex(lexer);

    do {
        /* A number with a smaller unit than the one before. */
        int64_t number;
        if (token < HEARTH_TIME_PART_NS) {
            return HEARTH_FAIL(
                err, HEARTH_INVALID_ARGUMENT,
                "bad %s \"%.*s\", expected numbers with units like 1h30m (ns us ms s m h d w M y)",
                what, SHOWN(text));
        }
        if ((int)token >= before) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                               "bad %s \"%.*s\", units go from large to small, each once", what,
                               SHOWN(text));
        }

        /* Add it. */
        if (!parse_leading_number(get_token_text(lexer), &number) ||
            __builtin_mul_overflow(number, g_unit_ns[token], &number) ||
            __builtin_add_overflow(total, number, &total)) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                               "bad %s \"%.*s\", a duration is at most 292 years", what,
                               SHOWN(text));
        }

        before = (int)token;
        token = hearth_time_lex(lexer);
    } while (token != HEARTH_TIME_END);

    *ret_ns = total;

    return HEARTH_OK;
}

static int64_t parse_two_digits(const char *p)
{
    return (p[0] - '0') * 10 + (p[1] - '0');
}

/* Days from 1970-01-01 in the Gregorian calendar; years are counted from 1 March. */
static int64_t count_days(int64_t year, int64_t month, int64_t day)
{
    year -= month <= 2;
    int64_t era = (year >= 0 ? year : year - 399) / 400;
    int64_t year_of_era = year - era * 400;
    int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year -
           719468;
}

struct time_fields {
    int64_t year, month, day, hour, minute, second, fraction_ns, zone_minutes;
};

/* The reason why the fields are not a valid time; NULL if they are. */
static const char *check_fields(const struct time_fields *f)
{
    static const unsigned char month_days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

    if (f->month < 1 || f->month > 12) {
        return "the month is not in 01 to 12";
    }

    bool leap = f->year % 4 == 0 && (f->year % 100 != 0 || f->year % 400 == 0);
    int64_t last = month_days[f->month - 1] + (f->month == 2 && leap ? 1 : 0);
    if (f->day < 1 || f->day > last) {
        return "the month has no such day";
    }

    /* Second 60 is a leap second; it counts as the following second. */
    if (f->hour > 23 || f->minute > 59 || f->second > 60) {
        return "the time of day is not in 00:00:00 to 23:59:60";
    }

    return NULL;
}

static bool convert_fields(const struct time_fields *f, int64_t *ret_ns)
{
    int64_t seconds = count_days(f->year, f->month, f->day) * 86400 + f->hour * 3600 +
                      (f->minute - f->zone_minutes) * 60 + f->second;

    /* Wide, because the first second of the range fits only together with its fraction. */
    __extension__ typedef __int128 wide;
    wide ns = (wide)seconds * HEARTH_NS_PER_SEC + f->fraction_ns;
    *ret_ns = (int64_t)ns;
    return ns >= INT64_MIN && ns <= INT64_MAX;
}

/* Nanoseconds of the digits after a point; digits after the ninth are ignored. */
static int64_t parse_fraction(const char *p, const char *end)
{
    int64_t value = 0, unit = HEARTH_NS_PER_SEC;
    for (; p < end && *p >= '0' && *p <= '9'; p++) {
        unit /= 10;
        value += (*p - '0') * unit;
    }
    return value;
}

/*
 * Read a calendar token, whose form the lexer has checked. Returns the reason of an error, or NULL.
 */
static const char *parse_calendar(struct hearth_str token, struct time_fields *f)
{
    const char *p = token.p, *end = token.p + token.n;

    *f = (struct time_fields){.year = parse_two_digits(p) * 100 + parse_two_digits(p + 2),
                              .month = parse_two_digits(p + 5),
                              .day = 1};

    /* Everything after the month is optional, from left to right. */
    p += 7;
    if (p < end) {
        f->day = parse_two_digits(p + 1);
        p += 3;
    }

    if (p < end) {
        f->hour = parse_two_digits(p + 1);
        p += 3;
    }

    if (p < end && *p == ':') {
        f->minute = parse_two_digits(p + 1);
        p += 3;
    }

    if (p < end && *p == ':') {
        f->second = parse_two_digits(p + 1);
        p += 3;
    }

    if (p < end && *p == '.') {
        f->fraction_ns = parse_fraction(p + 1, end);
        for (p++; p < end && *p >= '0' && *p <= '9'; p++) {
        }
    }

    /* The zone. */
    if (p < end && (*p == '+' || *p == '-')) {
        int64_t hours = parse_two_digits(p + 1), minutes = parse_two_digits(p + 4);
        if (hours > 23 || minutes > 59) {
            return "the zone is not in -23:59 to +23:59";
        }
        f->zone_minutes = (*p == '-' ? -1 : 1) * (hours * 60 + minutes);
    }

    return check_fields(f);
}

static const char g_out_of_range[] = "it is not in the years 1677 to 2262";

static const char *parse_digits(struct hearth_str token, int64_t *ret_ns)
{
    int64_t value;

    if (token.n == 8) {
        const char *p = token.p;
        struct time_fields f = {.year = parse_two_digits(p) * 100 + parse_two_digits(p + 2),
                                .month = parse_two_digits(p + 4),
                                .day = parse_two_digits(p + 6)};
        const char *wrong = check_fields(&f);
        return wrong != NULL ? wrong : convert_fields(&f, ret_ns) ? NULL : g_out_of_range;
    }

    int64_t unit = token.n == 13   ? HEARTH_NS_PER_MS
                   : token.n == 16 ? 1000
                   : token.n == 19 ? 1
                                   : HEARTH_NS_PER_SEC;
    bool fits = hearth_str_to_i64(token, &value) && !__builtin_mul_overflow(value, unit, ret_ns);

    return fits ? NULL : g_out_of_range;
}

static const char *parse_decimal(struct hearth_str token, int64_t *ret_ns)
{
    assert(hearth_str_find(token, '.', 0) < token.n);

    int64_t value;
    size_t point = hearth_str_find(token, '.', 0);
    bool fits = parse_leading_number(token, &value) &&
                !__builtin_mul_overflow(value, HEARTH_NS_PER_SEC, &value) &&
                !__builtin_add_overflow(
                    value, parse_fraction(token.p + point + 1, token.p + token.n), ret_ns);
    return fits ? NULL : g_out_of_range;
}

/* Parse the rest of "now", which may be followed by a signed duration. */
static enum hearth_status parse_now(struct hearth_time_lexer *lexer, struct hearth_str text,
                                    int64_t now_ns, int64_t *ret_ns, struct hearth_err *err)
{
    enum hearth_time_token sign = hearth_time_lex(lexer);
    int64_t shift = 0, ns;

    if (sign == HEARTH_TIME_PLUS || sign == HEARTH_TIME_MINUS) {
        HEARTH_TRY(parse_parts(lexer, "time", text, &shift, err));
    } else if (sign != HEARTH_TIME_END) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "bad time \"%.*s\", expected + or - and a duration after now",
                           SHOWN(text));
    }

    if (__builtin_add_overflow(now_ns, sign == HEARTH_TIME_MINUS ? -shift : shift, &ns)) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "bad time \"%.*s\", %s", SHOWN(text),
                           g_out_of_range);
    }

    *ret_ns = ns;

    return HEARTH_OK;
}

enum hearth_status hearth_time_parse(struct hearth_str text, int64_t now_ns, int64_t *ret_ns,
                                     struct hearth_err *err)
{
    assert(ret_ns != NULL);

    struct time_source source;
    const char *wrong = NULL;
    int64_t ns = 0;
    struct time_fields fields;
    enum hearth_time_token first = HEARTH_TIME_OTHER;

    /* The first token decides the form. */
    text = hearth_str_trim(text);
    if (open_source(&source, text)) {
        first = hearth_time_lex(&source.lexer);
    }

    if (first == HEARTH_TIME_NOW) {
        return parse_now(&source.lexer, text, now_ns, ret_ns, err);
    }

    if (first != HEARTH_TIME_CALENDAR && first != HEARTH_TIME_DIGITS &&
        first != HEARTH_TIME_DECIMAL) {
        wrong = "expected now, now-1h30m, a date like 2026-11-20T08:00:00Z or a Unix time";
    } else if (source.lexer.cursor != source.lexer.limit) {
        wrong = "unexpected text after the time";
    } else if (first == HEARTH_TIME_CALENDAR) {
        wrong = parse_calendar(get_token_text(&source.lexer), &fields);
        wrong = wrong != NULL ? wrong : convert_fields(&fields, &ns) ? NULL : g_out_of_range;
    } else if (first == HEARTH_TIME_DIGITS) {
        wrong = parse_digits(get_token_text(&source.lexer), &ns);
    } else {
        wrong = parse_decimal(get_token_text(&source.lexer), &ns);
    }

    if (wrong != NULL) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "bad time \"%.*s\", %s", SHOWN(text),
                           wrong);
    }

    *ret_ns = ns;

    return HEARTH_OK;
}

int64_t hearth_attime_parse(struct hearth_str text, int64_t now_ns, bool *ret_understood)
{
    int64_t ns = now_ns;
    bool understood =
        hearth_str_trim(text).n == 0 || hearth_time_parse(text, now_ns, &ns, NULL) == HEARTH_OK;
    if (ret_understood != NULL) {
        *ret_understood = understood;
    }
    return ns;
}

enum hearth_status hearth_duration_parse(struct hearth_str text, int64_t *ret_ns,
                                         struct hearth_err *err)
{
    assert(ret_ns != NULL);

    struct time_source source;
    int64_t ns;

    text = hearth_str_trim(text);
    if (!open_source(&source, text)) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "a duration is longer than %u bytes",
                           MAX_TEXT_BYTES);
    }

    HEARTH_TRY(parse_parts(&source.lexer, "duration", text, &ns, err));
    if (ns == 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "bad duration \"%.*s\", it must be above zero", SHOWN(text));
    }

    *ret_ns = ns;

    return HEARTH_OK;
}

void hearth_duration_format(int64_t ns, char out[48])
{
    static const struct {
        uint64_t ns;
        const char *name;
    } units[] = {
        {HEARTH_NS_PER_DAY, "d"},
        {HEARTH_NS_PER_HOUR, "h"},
        {60 * HEARTH_NS_PER_SEC, "m"},
        {HEARTH_NS_PER_SEC, "s"},
        {HEARTH_NS_PER_MS, "ms"},
        {1000, "us"},
        {1, "ns"},
    };

    /* Each unit at most once, from large to small. */
    uint64_t rest = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
    size_t at = (size_t)snprintf(out, 48, "%s", ns < 0 ? "-" : ns == 0 ? "0s" : "");
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(units); i++) {
        uint64_t count = rest / units[i].ns;
        if (count > 0) {
            at += (size_t)snprintf(out + at, 48 - at, "%llu%s", (unsigned long long)count,
                                   units[i].name);
            rest %= units[i].ns;
        }
    }
}
