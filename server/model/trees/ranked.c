/* ranked.c -- siblings in byte order of their names. */
#include "trees/ranked.h"

#include <assert.h>
#include <stdlib.h>

static uint64_t take_prefix(struct hearth_str name)
{
    uint64_t prefix = 0;

    if (name.n >= 8) {
        memcpy(&prefix, name.p, 8);
        return __builtin_bswap64(prefix); /* all supported machines are little-endian */
    }

    for (size_t i = 0; i < name.n; i++) {
        prefix |= (uint64_t)(unsigned char)name.p[i] << (56 - 8 * i);
    }

    return prefix;
}

struct hearth_ranked hearth_ranked(uint32_t node, struct hearth_str name)
{
    return (struct hearth_ranked){take_prefix(name), node, name};
}

static int compare_ranked(const void *a_ptr, const void *b_ptr)
{
    const struct hearth_ranked *a = a_ptr, *b = b_ptr;
    if (a->prefix != b->prefix) {
        return a->prefix < b->prefix ? -1 : 1;
    }
    return hearth_str_cmp(a->name, b->name);
}

void hearth_ranked_sort(struct hearth_ranked *kids, size_t n)
{
    assert(kids != NULL || n == 0);

    if (n > 16) {
        qsort(kids, n, sizeof *kids, compare_ranked);
        return;
    }

    for (size_t i = 1; i < n; i++) {
        struct hearth_ranked kid = kids[i];
        size_t at = i;
        while (at > 0 && compare_ranked(&kids[at - 1], &kid) > 0) {
            kids[at] = kids[at - 1];
            at--;
        }
        kids[at] = kid;
    }
}
