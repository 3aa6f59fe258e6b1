/*
 * word_list.h -- lists of words in the tables: "a|b|c" of values, "a b c" of keys.
 *
 * Threads: pure.
 */
#ifndef HEARTH_CLIENTS_WORD_LIST_H
#define HEARTH_CLIENTS_WORD_LIST_H

#include "hearth/base/str.h"

/* Whether "a b c" has a word. */
bool cli_list_has(const char *keys, const char *key);
/* The value of `values`, "a|b|c", at *at, which moves past it; false: the list has ended. */
bool cli_next_value(const char *values, const char **at, struct hearth_str *ret);
/* NAME of a value "NAME=FILE" or "NAME[=FILE]"; *ret_after: '=' or '[', NUL for a value without FILE. */
struct hearth_str cli_value_name(struct hearth_str value, char *ret_after);

#endif
