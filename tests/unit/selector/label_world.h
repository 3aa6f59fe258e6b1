/* label_world.h -- the label index of a small tenant, and filters on it. */
#ifndef HEARTH_TESTS_LABEL_WORLD_H
#define HEARTH_TESTS_LABEL_WORLD_H

#include "hearth/base/clock.h"
#include "hearth/selector/label_index.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define CPU    "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
#define COUNT  "process_cpu:samples:count:cpu:nanoseconds"
#define WALL   "wall:wall:nanoseconds::"
#define MILLIS "mutex:delay:milliseconds::milliseconds"

static inline int64_t at_hour(int64_t hour)
{
    return hour * HEARTH_NS_PER_HOUR;
}

struct world {
    struct hearth_label_index *index;
    struct hearth_arena arena;
    struct hearth_selector selector;
    struct hearth_buf out;
    struct hearth_err err;
};

static inline void add(struct world *w, int32_t id, int32_t service, int32_t shape,
                       const int32_t *pairs, size_t n, int32_t hour)
{
    assert_int_equal(hearth_label_index_add_series(w->index, id, service, shape, pairs, n),
                     HEARTH_OK);
    assert_int_equal(hearth_label_index_add_hour(w->index, id, hour), HEARTH_OK);
}

/*
 * api:  1 {pod=a, zone=x} cpu+count, hour 100;  2 {pod=b, zone=y} cpu+count, hour 110
 * db:   3 {pod=c} wall, hour 100;               4 {} mutex, hour 120
 */
static inline int set_up(void **state)
{
    static struct world w;
    w = (struct world){.index = hearth_label_index_new()};
    hearth_arena_init(&w.arena, 0);
    hearth_selector_init(&w.selector);
    hearth_buf_init(&w.out, 0);
    static const struct {
        const char *name, *value;
    } pairs[] = {{"pod", "a"}, {"pod", "b"}, {"pod", "c"}, {"zone", "x"}, {"zone", "y"}};
    const struct hearth_str both[] = {HEARTH_STR(CPU), HEARTH_STR(COUNT)};
    const struct hearth_str wall[] = {HEARTH_STR(WALL)}, mutex[] = {HEARTH_STR(MILLIS)};
    assert_int_equal(hearth_label_index_add_service(w.index, 7, HEARTH_STR("api")), HEARTH_OK);
    assert_int_equal(hearth_label_index_add_service(w.index, 5, HEARTH_STR("db")), HEARTH_OK);
    for (int32_t i = 0; i < (int32_t)HEARTH_ARRAY_LEN(pairs); i++) {
        assert_int_equal(hearth_label_index_add_pair(w.index, i + 1, hearth_str_c(pairs[i].name),
                                                     hearth_str_c(pairs[i].value)),
                         HEARTH_OK);
    }
    assert_int_equal(hearth_label_index_add_shape(w.index, 1, both, 2), HEARTH_OK);
    assert_int_equal(hearth_label_index_add_shape(w.index, 2, wall, 1), HEARTH_OK);
    assert_int_equal(hearth_label_index_add_shape(w.index, 3, mutex, 1), HEARTH_OK);
    add(&w, 1, 7, 1, (const int32_t[]){1, 4}, 2, 100);
    add(&w, 2, 7, 1, (const int32_t[]){5, 2}, 2, 110);
    add(&w, 3, 5, 2, (const int32_t[]){3}, 1, 100);
    add(&w, 4, 5, 3, NULL, 0, 120);
    *state = &w;
    return 0;
}

static inline int tear_down(void **state)
{
    struct world *w = *state;
    hearth_label_index_free(w->index);
    hearth_selector_release(&w->selector);
    hearth_buf_release(&w->out);
    hearth_arena_release(&w->arena);
    return 0;
}

static inline const struct hearth_selector *select_text(struct world *w, const char *text)
{
    hearth_selector_release(&w->selector);
    if (hearth_selector_parse(&w->selector, hearth_str_c(text), &w->arena, NULL, &w->err) !=
        HEARTH_OK) {
        fail_msg("%s: %s", text, w->err.msg);
    }
    return &w->selector;
}

static const struct hearth_projected_names g_all_names = {NULL, 0};

static inline struct hearth_index_filter make_filter(struct world *w, const char *text,
                                                     int64_t from, int64_t to)
{
    return (struct hearth_index_filter){select_text(w, text), at_hour(from), at_hour(to)};
}

#endif
