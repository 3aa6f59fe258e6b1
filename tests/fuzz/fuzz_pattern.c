/*
 * fuzz_pattern.c -- any bytes as a pattern of a search: it is refused with the name of its field, or what it finds in a
 * text is what it says to occur there.
 */
#include "hearth/selector/pattern.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct hearth_str text = HEARTH_STR("net/http.(*conn).serve\nfoo");
    struct hearth_pattern *pattern;
    struct hearth_err err = HEARTH_ERR_INIT;
    size_t from, to;

    if (hearth_pattern_new(hearth_str_n((const char *)data, size), "search", &pattern, &err) !=
        HEARTH_OK) {
        HEARTH_ASSERT(hearth_str_starts(hearth_str_c(err.msg), HEARTH_STR("search")));
        return 0;
    }

    bool found = hearth_pattern_find(pattern, text, 0, &from, &to);
    HEARTH_ASSERT(found == hearth_pattern_occurs(pattern, text));
    HEARTH_ASSERT(!found || (from <= to && to <= text.n));
    hearth_pattern_free(pattern);

    return 0;
}
