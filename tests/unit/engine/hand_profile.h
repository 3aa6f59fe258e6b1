/*
 * hand_profile.h -- small profiles written down sample by sample; for the tests of ingest.
 *
 * Strings are not interned unless asked, so that a text can stand under two indices. Samples have
 * no stacks: what is tested gets stack ids beside.
 */
#ifndef HEARTH_TESTS_HAND_PROFILE_H
#define HEARTH_TESTS_HAND_PROFILE_H

#include "ingest/ingest_internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

struct hand {
    struct hearth_profile p;
    struct hearth_str strings[256];
    struct hearth_value_type types[4];
    int64_t values[256];
    uint32_t label_first[129];
    struct hearth_sample_label labels[256];
    bool skip[128];
    uint64_t discards[HEARTH_N_DISCARDS];
    struct hearth_limits limits;
    struct hearth_arena arena;
    struct hearth_err err;
};

static inline uint32_t hand_string(struct hand *h, const char *text)
{
    assert_true(h->p.n_strings < HEARTH_ARRAY_LEN(h->strings));
    h->strings[h->p.n_strings] = hearth_str_c(text);
    return h->p.n_strings++;
}

/* The first index of the text. */
static inline uint32_t hand_intern(struct hand *h, const char *text)
{
    for (uint32_t i = 0; i < h->p.n_strings; i++) {
        if (hearth_str_eq_c(h->strings[i], text)) {
            return i;
        }
    }
    return hand_string(h, text);
}

static inline void hand_type(struct hand *h, const char *type, const char *unit)
{
    h->types[h->p.n_types++] =
        (struct hearth_value_type){hand_intern(h, type), hand_intern(h, unit)};
}

/* A profile of one type (cpu in nanoseconds) and default limits. */
static inline void hand_init(struct hand *h)
{
    memset(h, 0, sizeof *h);
    h->p.strings = h->strings;
    h->p.types = h->types;
    h->p.values = h->values;
    h->p.label_first = h->label_first;
    h->p.sample_labels = h->labels;
    (void)hand_string(h, "");
    hand_type(h, "cpu", "nanoseconds");
    hearth_limits_init(&h->limits);
    hearth_arena_init(&h->arena, 0);
}

/* The context of a step: scratch and rows share the arena. */
static inline struct hearth_push_work hand_work(struct hand *h)
{
    return (struct hearth_push_work){
        .limits = &h->limits,
        .arena = &h->arena,
        .keep = &h->arena,
        .discards = h->discards,
        .profile = &h->p,
    };
}

static inline void hand_release(struct hand *h)
{
    hearth_arena_release(&h->arena);
}

/* Another sample; `values` has one for each type. */
static inline uint32_t hand_sample_of(struct hand *h, const int64_t *values)
{
    struct hearth_profile *p = &h->p;
    assert_true(p->n_samples + 1 < HEARTH_ARRAY_LEN(h->label_first));
    assert_true((p->n_samples + 1) * p->n_types <= HEARTH_ARRAY_LEN(h->values));
    memcpy(h->values + p->n_samples * p->n_types, values, p->n_types * sizeof values[0]);
    h->label_first[p->n_samples + 1] = p->n_sample_labels;
    return p->n_samples++;
}

static inline uint32_t hand_sample(struct hand *h, int64_t value)
{
    return hand_sample_of(h, &value);
}

/* A label of the newest sample, by string indices. */
static inline void hand_label_at(struct hand *h, uint32_t key, uint32_t str, int64_t num)
{
    assert_true(h->p.n_sample_labels < HEARTH_ARRAY_LEN(h->labels));
    h->labels[h->p.n_sample_labels++] =
        (struct hearth_sample_label){.key = key, .str = str, .num = num};
    h->label_first[h->p.n_samples] = h->p.n_sample_labels;
}

static inline void hand_label(struct hand *h, const char *key, const char *value)
{
    hand_label_at(h, hand_intern(h, key), hand_intern(h, value), 0);
}

static inline void hand_number(struct hand *h, const char *key, int64_t value)
{
    hand_label_at(h, hand_intern(h, key), 0, value);
}

/* "name=count" of all that was discarded, in the order of discards.def; "" for nothing. */
static inline const char *discards_text(const uint64_t *discards, char out[256])
{
    size_t n = 0;
    out[0] = '\0';
    for (size_t i = 0; i < HEARTH_N_DISCARDS; i++) {
        if (discards[i] > 0) {
            n += (size_t)snprintf(out + n, 256 - n, "%s%s=%llu", n > 0 ? " " : "",
                                  hearth_discard_name((enum hearth_discard)i),
                                  (unsigned long long)discards[i]);
        }
    }
    return out;
}

#define assert_discards(discards, text)                                               \
    do {                                                                              \
        char assert_discards_text[256];                                               \
        assert_string_equal(discards_text((discards), assert_discards_text), (text)); \
    } while (0)

/* "{a="b"}" of a label set, in arena. */
static inline const char *labels_text_of(const struct hearth_labels *labels,
                                         struct hearth_arena *arena)
{
    struct hearth_buf text;
    hearth_buf_init(&text, 0);
    hearth_labels_format(labels, 0, &text);
    const char *copy = hearth_arena_strndup(arena, text.p, text.n);
    hearth_buf_release(&text);
    assert_non_null(copy);
    return copy;
}

/* For cmocka: a hand for each test, which is its state. */
static inline int make_hand(void **state)
{
    struct hand *h = test_malloc(sizeof *h);
    hand_init(h);
    *state = h;
    return 0;
}

static inline int free_hand(void **state)
{
    hand_release(*state);
    test_free(*state);
    return 0;
}

#endif
