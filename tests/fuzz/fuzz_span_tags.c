/*
 * fuzz_span_tags.c -- any bytes as the custom query of a tag mapping (the first line), and as tags of a span (a line each,
 * name=value): what comes out is read by the selector's parser as the same, and values never add or take away a matcher.
 */
#include "hearth/engine/span_profiles.h"
#include "hearth/selector/selector.h"

#include <stdio.h>
#include <stdlib.h>

#define MAX_TAGS 16

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition, const char *what)
{
    if (!condition) {
        (void)fprintf(stderr, "broken: %s\n", what);
        abort();
    }
}

static struct hearth_str take_line(struct hearth_str *rest)
{
    size_t n = hearth_str_find(*rest, '\n', 0);
    struct hearth_str line = hearth_str_n(rest->p, n);
    n += n < rest->n;
    *rest = hearth_str_n(rest->p + n, rest->n - n);
    return line;
}

/* How many matchers; 0: no selector. */
static size_t count_matchers(struct hearth_str query, const struct hearth_span_tag *tags,
                             size_t n_tags, struct hearth_arena *arena)
{
    const struct hearth_str first = n_tags > 0 ? tags[0].value : HEARTH_STR("");
    const struct hearth_known_span span = {.service = HEARTH_STR("cart"),
                                           .tags = tags,
                                           .n_tags = n_tags,
                                           .span_id = HEARTH_STR("00000000000000aa"),
                                           .trace_id = HEARTH_STR("seg/1"),
                                           .name = first};
    const struct hearth_tag_rules rules = {.query = query};
    struct hearth_str text, reason;
    struct hearth_selector selector;
    struct hearth_buf again;
    struct hearth_err err = HEARTH_ERR_INIT;
    enum hearth_status status = hearth_span_selector(&rules, &span, arena, &text, &reason, &err);
    if (status != HEARTH_OK) {
        require(status == HEARTH_INVALID_ARGUMENT, "what cannot be read is the caller's fault");
        return 0;
    }
    require((text.n == 0) != (reason.n == 0), "a selector or a reason");
    if (text.n == 0) {
        return 0;
    }
    hearth_selector_init(&selector);
    hearth_buf_init(&again, 0);
    require(hearth_selector_parse(&selector, text, arena, NULL, &err) == HEARTH_OK, "it parses");
    hearth_selector_format(&selector, &again);
    require(hearth_str_eq(hearth_buf_view(&again), text), "as the same");
    size_t n = selector.n;
    hearth_buf_release(&again);
    hearth_selector_release(&selector);
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hearth_arena arena;
    struct hearth_span_tag tags[MAX_TAGS];
    struct hearth_str rest = hearth_str_n((const char *)data, size);
    struct hearth_str query = take_line(&rest);
    size_t n_tags = 0;
    bool all_count = true;
    for (; rest.n > 0 && n_tags < MAX_TAGS; n_tags++) {
        struct hearth_str line = take_line(&rest);
        size_t n = hearth_str_find(line, '=', 0), skip = n + (n < line.n);
        tags[n_tags] = (struct hearth_span_tag){hearth_str_n(line.p, n),
                                                hearth_str_n(line.p + skip, line.n - skip)};
        all_count = all_count && skip < line.n && hearth_str_utf8_valid(tags[n_tags].value);
    }
    hearth_arena_init(&arena, (size_t)64 << 20);
    size_t n = count_matchers(query, tags, n_tags, &arena);
    for (size_t i = 0; i < n_tags; i++) {
        tags[i].value = HEARTH_STR("v");
    }
    size_t n_plain = all_count ? count_matchers(query, tags, n_tags, &arena) : 0;
    require(n == 0 || n_plain == 0 || n == n_plain, "as many matchers, whatever the values");
    hearth_arena_release(&arena);
    return 0;
}
