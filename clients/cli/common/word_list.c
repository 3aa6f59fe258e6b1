/* word_list.c -- lists of words in the tables of commands, options, columns and tools. */
#include "word_list.h"

#include <string.h>

bool cli_list_has(const char *keys, const char *key)
{
    size_t n = strlen(key);

    for (const char *at = keys; *at != '\0';) {
        size_t word = strcspn(at, " ");
        if (word == n && memcmp(at, key, n) == 0) {
            return true;
        }
        at += word + strspn(at + word, " ");
    }

    return false;
}

bool cli_next_value(const char *values, const char **at, struct hearth_str *ret)
{
    const char *from = *at == NULL ? values : *at;

    if (values == NULL || values[0] == '@' || *from == '\0') {
        return false;
    }
    size_t n = strcspn(from, "|");
    *ret = hearth_str_n(from, n);
    *at = from + n + (from[n] == '|' ? 1 : 0);

    return true;
}

struct hearth_str cli_value_name(struct hearth_str value, char *ret_after)
{
    size_t n = 0;

    while (n < value.n && value.p[n] != '=' && value.p[n] != '[') {
        n++;
    }
    *ret_after = n < value.n ? value.p[n] : '\0';

    return hearth_str_n(value.p, n);
}
