/* json_number.c -- numbers of JSON as a mantissa of 64 bits and a power of ten. */
#include "json_number.h"

#include <assert.h>

#define MAX_DIGITS   19      /* of the mantissa: 10^19 - 1 fits 64 bits */
#define MAX_POWER    38      /* 10^38 fits 128 bits; mantissa and factor are at most 10^37 */
#define MAX_EXPONENT 1000000 /* larger ones are 0 or exceed all limits, too */

__extension__ typedef unsigned __int128 u128;

static size_t count_digits(struct hearth_str text, size_t from)
{
    size_t at = from;

    while (at < text.n && text.p[at] >= '0' && text.p[at] <= '9') {
        at++;
    }

    return at - from;
}

size_t json_number_measure(struct hearth_str text)
{
    size_t at = text.n > 0 && text.p[0] == '-';
    size_t n_digits = count_digits(text, at);

    /* The integer: no digit follows a leading 0. */
    if (n_digits == 0 || (n_digits > 1 && text.p[at] == '0')) {
        return 0;
    }
    at += n_digits;

    /* The fraction. */
    if (at < text.n && text.p[at] == '.') {
        n_digits = count_digits(text, at + 1);
        if (n_digits == 0) {
            return 0;
        }
        at += 1 + n_digits;
    }

    /* The exponent. */
    if (at < text.n && (text.p[at] == 'e' || text.p[at] == 'E')) {
        at++;
        at += at < text.n && (text.p[at] == '+' || text.p[at] == '-');
        n_digits = count_digits(text, at);
        at = n_digits == 0 ? 0 : at + n_digits;
    }

    return at;
}

/* ±mantissa · 10^exponent */
struct decimal {
    uint64_t mantissa;
    int64_t exponent;
    bool is_negative, is_exact;
};

static int64_t read_exponent(struct hearth_str number, size_t at)
{
    bool is_negative = number.p[at] == '-';
    int64_t exponent = 0;

    at += number.p[at] == '-' || number.p[at] == '+';
    for (; at < number.n; at++) {
        exponent = exponent * 10 + (number.p[at] - '0');
        exponent = exponent > MAX_EXPONENT ? MAX_EXPONENT : exponent;
    }

    return is_negative ? -exponent : exponent;
}

static struct decimal read_decimal(struct hearth_str number)
{
    struct decimal d = {.is_negative = number.p[0] == '-', .is_exact = true};
    bool is_fraction = false;
    int n_digits = 0;

    for (size_t i = d.is_negative; i < number.n; i++) {
        char c = number.p[i];
        if (c == 'e' || c == 'E') {
            d.exponent += read_exponent(number, i + 1);
            break;
        }
        if (c == '.') {
            is_fraction = true;
            continue;
        }

        /* Digits after the 19th only move the point. */
        bool is_kept = n_digits < MAX_DIGITS;
        d.mantissa = is_kept ? d.mantissa * 10 + (uint64_t)(c - '0') : d.mantissa;
        d.is_exact = d.is_exact && (is_kept || c == '0');
        d.exponent += !is_kept && !is_fraction ? 1 : is_kept && is_fraction ? -1 : 0;
        n_digits += d.mantissa > 0;
    }

    return d;
}

static u128 raise_ten(int64_t power)
{
    u128 value = 1;

    assert(power >= 0 && power <= MAX_POWER);
    for (int64_t i = 0; i < power; i++) {
        value *= 10;
    }

    return value;
}

bool json_number_scale(struct hearth_str number, int64_t factor, int64_t *ret, bool *ret_is_exact)
{
    assert(number.n > 0 && factor > 0 && factor <= INT64_C(1000000000000000000));

    struct decimal d = read_decimal(number);
    u128 value = (u128)d.mantissa * (uint64_t)factor;
    if (value > 0 && d.exponent > 0) {
        if (d.exponent > MAX_DIGITS || value > (u128)INT64_MAX + 1) {
            return false;
        }
        value *= raise_ten(d.exponent);
    } else if (value > 0 && d.exponent < -MAX_POWER) {
        value = 0;
        d.is_exact = false;
    } else if (value > 0 && d.exponent < 0) {
        u128 divisor = raise_ten(-d.exponent), rest = value % divisor;
        value = value / divisor + (rest >= divisor - rest);
        d.is_exact = d.is_exact && rest == 0;
    }

    /* INT64_MIN has one more than INT64_MAX. */
    if (value > (u128)INT64_MAX + d.is_negative) {
        return false;
    }

    *ret = d.is_negative ? (int64_t)(0 - (uint64_t)value) : (int64_t)value;
    if (ret_is_exact != NULL) {
        *ret_is_exact = d.is_exact;
    }

    return true;
}
