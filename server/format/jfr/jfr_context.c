/* jfr_context.c -- the labels of contexts beside a recording, from their protobuf form. */
#include "jfr/jfr_context.h"

#include "pprof/pprof_wire.h"

#include <assert.h>
#include <stdlib.h>

enum {
    SNAPSHOT_CONTEXTS = 1,
    SNAPSHOT_STRINGS = 2,
    CONTEXT_LABELS = 1
};
enum {
    ENTRY_KEY = 1,
    ENTRY_VALUE = 2
};

/* An entry of a map: an integer key, and an integer or bytes as value. */
struct map_entry {
    uint64_t key, number;
    struct pprof_cursor bytes;
};

static bool read_entry(struct pprof_cursor c, struct map_entry *ret)
{
    uint64_t tag;

    *ret = (struct map_entry){0};
    while (pprof_next(&c, &tag)) {
        bool ok = true;
        if (tag == PPROF_INT(ENTRY_KEY)) {
            ok = pprof_int(&c, &ret->key);
        } else if (tag == PPROF_INT(ENTRY_VALUE)) {
            ok = pprof_int(&c, &ret->number);
        } else if (tag == PPROF_LEN(ENTRY_VALUE)) {
            ok = pprof_payload(&c, &ret->bytes);
        } else {
            c = hearth_pprof_skip(c, tag, 0);
        }
        if (!ok) {
            return false;
        }
    }

    return c.why == NULL;
}

/* Adds the labels of a context; false: damaged, or no memory. */
static bool read_context(struct pprof_cursor c, uint64_t context, struct hearth_arena *arena,
                         struct jfr_contexts *ret)
{
    uint64_t tag;

    while (pprof_next(&c, &tag)) {
        struct pprof_cursor bytes;
        struct map_entry entry;

        if (tag != PPROF_LEN(CONTEXT_LABELS)) {
            c = hearth_pprof_skip(c, tag, 0);
            continue;
        }
        if (!pprof_payload(&c, &bytes) || !read_entry(bytes, &entry) ||
            !hearth_arena_grow(arena, &ret->labels, &ret->cap_labels, ret->n_labels + 1,
                               sizeof *ret->labels)) {
            return false;
        }
        ret->labels[ret->n_labels++] = (struct jfr_context_label){context, entry.key, entry.number};
    }

    return c.why == NULL;
}

/* Reads contexts and strings in any order; false: damaged, or no memory. */
static bool read_snapshot(struct pprof_cursor c, struct hearth_arena *arena,
                          struct jfr_contexts *ret)
{
    uint64_t tag;

    while (pprof_next(&c, &tag)) {
        struct pprof_cursor bytes;
        struct map_entry entry;

        if (tag != PPROF_LEN(SNAPSHOT_CONTEXTS) && tag != PPROF_LEN(SNAPSHOT_STRINGS)) {
            c = hearth_pprof_skip(c, tag, 0);
            continue;
        }
        if (!pprof_payload(&c, &bytes) || !read_entry(bytes, &entry)) {
            return false;
        }

        if (tag == PPROF_LEN(SNAPSHOT_CONTEXTS)) {
            if (!read_context(entry.bytes, entry.key, arena, ret)) {
                return false;
            }
            continue;
        }
        if (!hearth_arena_grow(arena, &ret->strings, &ret->cap_strings, ret->n_strings + 1,
                               sizeof *ret->strings)) {
            return false;
        }
        ret->strings[ret->n_strings++] =
            (struct jfr_string){entry.key, hearth_str_n((const char *)entry.bytes.p,
                                                        (size_t)(entry.bytes.end - entry.bytes.p))};
    }

    return c.why == NULL;
}

static int compare_u64(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int compare_strings(const void *a, const void *b)
{
    return compare_u64(((const struct jfr_string *)a)->id, ((const struct jfr_string *)b)->id);
}

static int compare_labels(const void *a, const void *b)
{
    const struct jfr_context_label *x = a, *y = b;
    return x->context != y->context ? compare_u64(x->context, y->context)
                                    : compare_u64(x->key, y->key);
}

enum hearth_status hearth_jfr_contexts_read(struct hearth_str bytes, struct hearth_arena *arena,
                                            struct jfr_contexts *ret, struct hearth_err *err)
{
    assert(arena != NULL && ret != NULL);

    *ret = (struct jfr_contexts){0};
    if (bytes.n == 0) {
        return HEARTH_OK;
    }

    const uint8_t *begin = (const uint8_t *)bytes.p;
    if (!read_snapshot((struct pprof_cursor){begin, begin + bytes.n, NULL}, arena, ret)) {
        return arena->refused ? HEARTH_FAIL_ARENA(err, arena)
                              : HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                                            "the labels of the recording are damaged");
    }

    if (ret->n_strings > 0) {
        qsort(ret->strings, ret->n_strings, sizeof *ret->strings, compare_strings);
    }
    if (ret->n_labels > 0) {
        qsort(ret->labels, ret->n_labels, sizeof *ret->labels, compare_labels);
    }

    return HEARTH_OK;
}

const struct jfr_context_label *hearth_jfr_context_labels(const struct jfr_contexts *contexts,
                                                          uint64_t context, size_t *ret_n)
{
    size_t low = 0, high = contexts->n_labels;

    *ret_n = 0;
    if (high == 0) {
        return NULL;
    }

    /* The first label of the context. */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (contexts->labels[middle].context < context) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }

    for (high = low; high < contexts->n_labels && contexts->labels[high].context == context;) {
        high++;
    }

    *ret_n = high - low;

    return contexts->labels + low;
}

struct hearth_str hearth_jfr_context_string(const struct jfr_contexts *contexts, uint64_t id)
{
    const struct jfr_string key = {.id = id};
    const struct jfr_string *found =
        contexts->n_strings == 0
            ? NULL
            : bsearch(&key, contexts->strings, contexts->n_strings, sizeof key, compare_strings);
    return found == NULL ? HEARTH_STR("") : found->text;
}
