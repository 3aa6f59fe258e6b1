/*
 * read_fixture.h -- series made to order, and what selectors find of them.
 */
#ifndef HEARTH_TESTS_UNIT_STORE_READ_FIXTURE_H
#define HEARTH_TESTS_UNIT_STORE_READ_FIXTURE_H

#include "store_fixture.h"

/* A Wednesday, 10:00 UTC. */
#define T0 (INT64_C(1763546400) * HEARTH_NS_PER_SEC)

/* Group set-up: the clock stands at T0, so that nothing written at T0 expires. */
static inline int start_cluster_at_t0(void **state)
{
    hearth_clock_fake(T0);
    return start_cluster(state);
}

/* A series of service svc-<service> with labels pod=pod-<pod>, region=r-<pod % 3> and two profile
 * types. */
struct made_series {
    char text[4][32];
    struct hearth_label labels[2];
    struct hearth_str types[2];
    struct hearth_series_key key;
};

static inline const struct hearth_series_key *make_series(struct made_series *made, int service,
                                                          int pod)
{
    (void)snprintf(made->text[0], 32, "svc-%d", service);
    (void)snprintf(made->text[1], 32, "pod-%d", pod);
    (void)snprintf(made->text[2], 32, "r-%d", pod % 3);
    made->labels[0] = (struct hearth_label){HEARTH_STR("pod"), hearth_str_c(made->text[1])};
    made->labels[1] = (struct hearth_label){HEARTH_STR("region"), hearth_str_c(made->text[2])};
    made->types[0] = HEARTH_STR("process_cpu:samples:count:cpu:nanoseconds");
    made->types[1] = HEARTH_STR("process_cpu:cpu:nanoseconds:cpu:nanoseconds");
    made->key =
        (struct hearth_series_key){hearth_str_c(made->text[0]), made->types, 2, {made->labels, 2}};
    return &made->key;
}

static inline struct hearth_series_ref resolve_one(struct hearth_store *store,
                                                   struct hearth_str tenant, int service, int pod,
                                                   int64_t ts_ns)
{
    struct made_series made;
    struct hearth_series_ref ref = {0, 0};
    assert_ok(hearth_store_resolve_series(store, tenant, make_series(&made, service, pod), 1, ts_ns,
                                          &ref, &err));
    return ref;
}

/* The hits of a selector text in [from, to], in arena. */
static inline size_t select_hits(struct hearth_store *store, struct hearth_str tenant,
                                 const char *text, int64_t from_ns, int64_t to_ns,
                                 struct hearth_arena *arena, struct hearth_series_hit **ret_hits)
{
    const struct hearth_label_index *index = NULL;
    struct hearth_selector selector;
    const struct hearth_index_filter filter = {&selector, from_ns, to_ns};
    struct hearth_series_hits hits;
    hearth_selector_init(&selector);
    assert_ok(hearth_selector_parse(&selector, hearth_str_c(text), arena, NULL, &err));
    assert_ok(hearth_store_index_lock(store, tenant, NULL, &index, &err));
    assert_ok(hearth_label_index_select(index, &filter, arena, &hits, &err));
    hearth_store_index_unlock(store, index);
    hearth_selector_release(&selector);
    *ret_hits = hits.v;
    return hits.n;
}

/* How many API series: two for each made series. */
static inline size_t count_hits(struct hearth_store *store, struct hearth_str tenant,
                                const char *text, int64_t from_ns, int64_t to_ns)
{
    struct hearth_arena arena;
    struct hearth_series_hit *hits = NULL;
    hearth_arena_init(&arena, 0);
    size_t n = select_hits(store, tenant, text, from_ns, to_ns, &arena, &hits);
    hearth_arena_release(&arena);
    return n;
}

#endif
