/*
 * matcher.h -- one compiled label matcher (name, operator, value), ready to test values.
 *
 * An absent label counts as the empty string. Regular expressions have RE2's syntax, are anchored
 * at both ends, and '.' matches newline. Before compilation they are classified: literal,
 * alternation of literals, prefix, suffix, contains, ".*", ".+"; all others need the regex engine.
 *
 * Threads: immutable after compilation; hearth_matcher_matches is safe.
 */
#ifndef HEARTH_SELECTOR_MATCHER_H
#define HEARTH_SELECTOR_MATCHER_H

#include "hearth/base/arena.h"
#include "hearth/base/buf.h"
#include "hearth/base/status.h"

enum hearth_match_op {
    HEARTH_MATCH_EQ,  /* = */
    HEARTH_MATCH_NE,  /* != */
    HEARTH_MATCH_RE,  /* =~ */
    HEARTH_MATCH_NRE, /* !~ */
};

enum hearth_match_kind {
    HEARTH_MATCH_KIND_LITERAL,     /* equality with literals[0] */
    HEARTH_MATCH_KIND_ALTERNATION, /* equality with one of literals[n_literals], sorted, distinct */
    HEARTH_MATCH_KIND_PREFIX,      /* literals[0].* */
    HEARTH_MATCH_KIND_SUFFIX,      /* .*literals[0] */
    HEARTH_MATCH_KIND_CONTAINS,    /* .*literals[0].* */
    HEARTH_MATCH_KIND_ANY,         /* .* */
    HEARTH_MATCH_KIND_NOT_EMPTY,   /* .+ */
    HEARTH_MATCH_KIND_REGEX,
};

struct hearth_regex; /* defined in regex_re2.cc */

struct hearth_matcher {
    enum hearth_match_op op;
    enum hearth_match_kind kind;
    struct hearth_str name, value; /* decoded text, in the selector's arena */
    struct hearth_str *literals;
    size_t n_literals;
    struct hearth_regex *regex; /* freed by hearth_selector_release */
    bool matches_empty;         /* whether an absent label matches */
};

bool hearth_matcher_matches(const struct hearth_matcher *matcher, struct hearth_str value);

#endif
