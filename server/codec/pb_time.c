/*
 * pb_time.c -- dates as days since 0000-03-01: years that begin in March have the leap day at their
 * end.
 */
#include "pb_time.h"

#include <assert.h>

#define DAY_SECONDS       INT64_C(86400)
#define MIN_TIMESTAMP     INT64_C(-62135596800) /* 0001-01-01 */
#define MAX_TIMESTAMP     INT64_C(253402300799) /* 9999-12-31T23:59:59 */
#define MAX_DURATION      INT64_C(315576000000)
#define EPOCH_DAY         719468 /* 1970-01-01 */
#define DAYS_OF_400_YEARS 146097
#define MAX_NANOS         999999999

/* Day of the year of the first of `month`; the year begins in March, which is month 0. */
static int64_t find_month_start(int64_t month)
{
    return (153 * month + 2) / 5;
}

/* Days from 1970-01-01 to a date. */
static int64_t count_days(int64_t year, int64_t month, int64_t day)
{
    assert(month >= 1 && month <= 12);

    int64_t y = month <= 2 ? year - 1 : year;
    int64_t m = month <= 2 ? month + 9 : month - 3;
    return 365 * y + y / 4 - y / 100 + y / 400 + find_month_start(m) + day - 1 - EPOCH_DAY;
}

/* The date of a day; the inverse of count_days. */
static void split_date(int64_t day_from_epoch, int *year, int *month, int *day)
{
    assert(day_from_epoch >= -EPOCH_DAY);

    int64_t n = day_from_epoch + EPOCH_DAY;
    int64_t era = n / DAYS_OF_400_YEARS;
    int64_t in_era = n % DAYS_OF_400_YEARS;
    int64_t y = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
    int64_t in_year = in_era - (365 * y + y / 4 - y / 100);
    int64_t m = (5 * in_year + 2) / 153;
    assert(in_year >= 0 && in_year <= 365);
    *day = (int)(in_year - find_month_start(m) + 1);
    *month = (int)(m < 10 ? m + 3 : m - 9);
    *year = (int)(era * 400 + y + (*month <= 2 ? 1 : 0));
}

/* Append nothing, or a point and 3, 6 or 9 digits. */
static void put_fraction(struct hearth_buf *out, int32_t nanos)
{
    if (nanos == 0) {
        return;
    }

    if (nanos % 1000000 == 0) {
        hearth_buf_printf(out, ".%03d", nanos / 1000000);
    } else if (nanos % 1000 == 0) {
        hearth_buf_printf(out, ".%06d", nanos / 1000);
    } else {
        hearth_buf_printf(out, ".%09d", nanos);
    }
}

bool pb_timestamp_write(struct pb_time time, struct hearth_buf *out)
{
    if (time.seconds < MIN_TIMESTAMP || time.seconds > MAX_TIMESTAMP || time.nanos < 0 ||
        time.nanos > MAX_NANOS) {
        return false;
    }

    int64_t from_year_1 = time.seconds - MIN_TIMESTAMP;
    int in_day = (int)(from_year_1 % DAY_SECONDS);
    int year, month, day;
    split_date((time.seconds - in_day) / DAY_SECONDS, &year, &month, &day);
    hearth_buf_printf(out, "\"%04d-%02d-%02dT%02d:%02d:%02d", year, month, day, in_day / 3600,
                      in_day / 60 % 60, in_day % 60);
    put_fraction(out, time.nanos);
    hearth_buf_cstr(out, "Z\"");

    return true;
}

/*
 * Read exactly n digits at the start of *s, then the byte `then` unless it is 0; moves *s past
 * them.
 */
static bool take_number(struct hearth_str *s, size_t n, char then, int64_t *ret)
{
    uint64_t value;
    if (s->n < n + (then != '\0') || !hearth_str_to_u64(hearth_str_n(s->p, n), &value) ||
        (then != '\0' && s->p[n] != then)) {
        return false;
    }

    *ret = (int64_t)value;
    *s = hearth_str_n(s->p + n + (then != '\0'), s->n - n - (then != '\0'));
    return true;
}

/* Read an optional point and 1 to 9 digits as nanoseconds; moves *s past them. */
static bool take_fraction(struct hearth_str *s, int32_t *ret_nanos)
{
    *ret_nanos = 0;
    if (s->n == 0 || s->p[0] != '.') {
        return true;
    }

    size_t n = 1;
    int32_t nanos = 0;
    for (; n < s->n && n <= 9 && s->p[n] >= '0' && s->p[n] <= '9'; n++) {
        nanos = nanos * 10 + (s->p[n] - '0');
    }

    if (n == 1) {
        return false;
    }

    for (size_t i = n; i <= 9; i++) {
        nanos *= 10;
    }

    *s = hearth_str_n(s->p + n, s->n - n);
    *ret_nanos = nanos;
    return true;
}

/* Read "Z", "+hh:mm" or "-hh:mm", which must be all of s, as an offset in seconds. */
static bool take_zone(struct hearth_str s, int64_t *ret_offset)
{
    *ret_offset = 0;
    if (hearth_str_eq_c(s, "Z")) {
        return true;
    }

    if (s.n != 6 || (s.p[0] != '+' && s.p[0] != '-')) {
        return false;
    }

    bool west = s.p[0] == '-';
    struct hearth_str rest = hearth_str_n(s.p + 1, s.n - 1);
    int64_t hours, minutes;
    if (!take_number(&rest, 2, ':', &hours) || !take_number(&rest, 2, '\0', &minutes) ||
        hours > 23 || minutes > 59) {
        return false;
    }

    *ret_offset = (hours * 60 + minutes) * (west ? -60 : 60);
    return true;
}

static int64_t count_month_days(int64_t year, int64_t month)
{
    int64_t next_year = month == 12 ? year + 1 : year;
    return count_days(next_year, month == 12 ? 1 : month + 1, 1) - count_days(year, month, 1);
}

bool pb_timestamp_parse(struct hearth_str text, struct pb_time *ret)
{
    int64_t year, month, day, hour, minute, second, offset;
    int32_t nanos;

    if (!take_number(&text, 4, '-', &year) || !take_number(&text, 2, '-', &month) ||
        !take_number(&text, 2, 'T', &day) || !take_number(&text, 2, ':', &hour) ||
        !take_number(&text, 2, ':', &minute) || !take_number(&text, 2, '\0', &second) ||
        !take_fraction(&text, &nanos) || !take_zone(text, &offset)) {
        return false;
    }

    if (year < 1 || month < 1 || month > 12 || day < 1 || day > count_month_days(year, month) ||
        hour > 23 || minute > 59 || second > 59) {
        return false;
    }

    int64_t seconds =
        count_days(year, month, day) * DAY_SECONDS + hour * 3600 + minute * 60 + second - offset;
    if (seconds < MIN_TIMESTAMP || seconds > MAX_TIMESTAMP) {
        return false;
    }

    *ret = (struct pb_time){seconds, nanos};
    return true;
}

bool pb_duration_write(struct pb_time time, struct hearth_buf *out)
{
    if (time.seconds < -MAX_DURATION || time.seconds > MAX_DURATION || time.nanos < -MAX_NANOS ||
        time.nanos > MAX_NANOS || (time.seconds > 0 && time.nanos < 0) ||
        (time.seconds < 0 && time.nanos > 0)) {
        return false;
    }

    bool negative = time.seconds < 0 || time.nanos < 0;
    int64_t seconds = negative ? -time.seconds : time.seconds;
    hearth_buf_printf(out, "\"%s%lld", negative ? "-" : "", (long long)seconds);
    put_fraction(out, negative ? -time.nanos : time.nanos);
    hearth_buf_cstr(out, "s\"");

    return true;
}

bool pb_duration_parse(struct hearth_str text, struct pb_time *ret)
{
    bool negative = hearth_str_starts(text, HEARTH_STR("-"));
    if (negative) {
        text = hearth_str_n(text.p + 1, text.n - 1);
    }

    size_t point = hearth_str_find(text, '.', 0);
    size_t end = point < text.n ? point : hearth_str_find(text, 's', 0);
    uint64_t seconds;
    int32_t nanos;
    struct hearth_str rest = hearth_str_n(text.p + end, text.n - end);
    if (!hearth_str_to_u64(hearth_str_n(text.p, end), &seconds) || !take_fraction(&rest, &nanos) ||
        !hearth_str_eq_c(rest, "s") || seconds > (uint64_t)MAX_DURATION) {
        return false;
    }

    *ret = (struct pb_time){negative ? -(int64_t)seconds : (int64_t)seconds,
                            negative ? -nanos : nanos};

    return true;
}
