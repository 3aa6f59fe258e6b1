/*
 * token_text.c -- texts of tokens: making and checking them (contract: hearth/model/credential.h).
 *
 * A character is the upper half of the product of 64 random bits and 62: of the 62 characters, none
 * is more likely than another by more than 2^-58.
 */
#include "hearth/model/credential.h"

#include <assert.h>

#define PREFIX       "hearth_"
#define PREFIX_CHARS 7
#define ID_AT        PREFIX_CHARS
#define SECRET_AT    (ID_AT + HEARTH_TOKEN_ID_CHARS + 1)
#define SUM_AT       (SECRET_AT + HEARTH_TOKEN_SECRET_CHARS)

_Static_assert(sizeof PREFIX - 1 == PREFIX_CHARS, "the length of the prefix");
_Static_assert(SUM_AT + HEARTH_TOKEN_SUM_CHARS == HEARTH_TOKEN_TEXT_CHARS, "the parts of a token");

static const char g_digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/* ---- digits ---- */

static uint64_t read_big_endian(const unsigned char bytes[8])
{
    uint64_t word = 0;

    for (size_t i = 0; i < 8; i++) {
        word = word << 8 | bytes[i];
    }

    return word;
}

/* The first digit of the fraction *word / 2^64 in base 62; *word becomes the rest. */
static char take_digit(uint64_t *word)
{
    /* The upper 64 of the 128 bits of the product, from its halves. */
    uint64_t low = (*word & UINT32_MAX) * 62, high = (*word >> 32) * 62;
    uint64_t digit = (high + (low >> 32)) >> 32;
    assert(digit < 62);

    *word *= 62;

    return g_digits[digit];
}

static void write_random_digits(const unsigned char *random, size_t n, char *out)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t word = read_big_endian(random + i * 8);
        out[i] = take_digit(&word);
    }
}

/* ---- hashes ---- */

static void hash_token_part(struct hearth_str text, unsigned char ret[HEARTH_SHA256_BYTES])
{
    struct hearth_sha256 hash;

    hearth_sha256_init(&hash);
    hearth_sha256_add(&hash, text);
    hearth_sha256_end(&hash, ret);
}

/* Writes the checksum of the characters before it. */
static void write_checksum(const char *text, char out[HEARTH_TOKEN_SUM_CHARS])
{
    unsigned char digest[HEARTH_SHA256_BYTES];

    hash_token_part(hearth_str_n(text, SUM_AT), digest);

    /* 64 bits have more than ten digits. */
    uint64_t word = read_big_endian(digest);
    for (size_t i = 0; i < HEARTH_TOKEN_SUM_CHARS; i++) {
        out[i] = take_digit(&word);
    }
}

/* ---- texts ---- */

void hearth_token_make(const unsigned char random[HEARTH_TOKEN_RANDOM_BYTES],
                       char ret_text[HEARTH_TOKEN_TEXT_CHARS + 1])
{
    assert(random != NULL && ret_text != NULL);

    memcpy(ret_text, PREFIX, PREFIX_CHARS);
    write_random_digits(random, HEARTH_TOKEN_ID_CHARS, ret_text + ID_AT);
    ret_text[SECRET_AT - 1] = '_';
    write_random_digits(random + HEARTH_TOKEN_ID_CHARS * 8, HEARTH_TOKEN_SECRET_CHARS,
                        ret_text + SECRET_AT);

    write_checksum(ret_text, ret_text + SUM_AT);
    ret_text[HEARTH_TOKEN_TEXT_CHARS] = '\0';
}

/* Whether all bytes are digits of base 62. Looks at all of them. */
static bool are_digits(const char *p, size_t n)
{
    unsigned n_wrong = 0;

    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)p[i];
        n_wrong += !((unsigned)(c - '0') < 10u) & !((unsigned)(c - 'A') < 26u) &
                   !((unsigned)(c - 'a') < 26u);
    }

    return n_wrong == 0;
}

bool hearth_token_parse(struct hearth_str text, struct hearth_str *ret_id,
                        unsigned char ret_hash[HEARTH_SHA256_BYTES])
{
    assert(ret_id != NULL && ret_hash != NULL);

    if (text.n != HEARTH_TOKEN_TEXT_CHARS) {
        return false;
    }

    /* All checks run, even if the first ones fail. */
    bool has_prefix = hearth_str_eq_secret(hearth_str_n(text.p, PREFIX_CHARS), HEARTH_STR(PREFIX));
    bool has_digits = are_digits(text.p + ID_AT, HEARTH_TOKEN_ID_CHARS);
    bool has_more_digits = are_digits(text.p + SECRET_AT, HEARTH_TOKEN_TEXT_CHARS - SECRET_AT);
    bool is_split = text.p[SECRET_AT - 1] == '_';

    char sum[HEARTH_TOKEN_SUM_CHARS];
    write_checksum(text.p, sum);
    bool has_sum = hearth_str_eq_secret(hearth_str_n(text.p + SUM_AT, HEARTH_TOKEN_SUM_CHARS),
                                        hearth_str_n(sum, sizeof sum));
    if (!(has_prefix & has_digits & has_more_digits & is_split & has_sum)) {
        return false;
    }

    *ret_id = hearth_str_n(text.p + ID_AT, HEARTH_TOKEN_ID_CHARS);
    hash_token_part(hearth_str_n(text.p + SECRET_AT, HEARTH_TOKEN_SECRET_CHARS), ret_hash);

    return true;
}
