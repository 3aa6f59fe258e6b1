/*
 * store_push.h -- push synthetic profiles into a store, as the engine does, and know what became of
 * each.
 */
#ifndef HEARTH_TESTS_STORE_PUSH_H
#define HEARTH_TESTS_STORE_PUSH_H

#include "hearth/base/clock.h"
#include "hearth/base/mem.h"
#include "hearth/store/store.h"

#include "synth_profile.h"
#include "test_secret.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct store_push {
    struct hearth_push_item item;
    struct hearth_push_row row;
    struct hearth_store *store;
    struct hearth_arena arena;
    int32_t writer_id; /* of its dictionary */
    int64_t total;     /* of column 0 */
    enum hearth_status status;
    struct hearth_err err;
    _Atomic bool ended;
    _Atomic unsigned n_done;
};

static inline void store_push_done(struct hearth_push_item *item, enum hearth_status status,
                                   const struct hearth_err *err)
{
    struct store_push *push = HEARTH_CONTAINER_OF(item, struct store_push, item);
    push->status = status;
    if (status != HEARTH_OK) {
        push->err = *err;
    }
    atomic_fetch_add(&push->n_done, 1);
    atomic_store(&push->ended, true);
}

/* How long a test waits for what must happen: long, since machines may be slow and busy. */
#define STORE_PATIENCE_NS (120 * HEARTH_NS_PER_SEC)

/* Wait for a store to become ready; false if it does not. */
static inline bool store_wait_ready(struct hearth_store *store)
{
    char reason[256];
    int64_t until_ns = hearth_clock_mono_ns() + STORE_PATIENCE_NS;
    while (!hearth_store_ready(store, reason)) {
        if (hearth_clock_mono_ns() > until_ns) {
            (void)fprintf(stderr, "store is not ready: %s\n", reason);
            return false;
        }
        (void)usleep(2000);
    }
    return true;
}

/* With a builder, which rolls up and moves what a test may want to find where it put it. */
static inline struct hearth_store *store_open_building(const char *url,
                                                       const struct hearth_store_options *options)
{
    struct hearth_store_options with;
    hearth_store_options_init(&with);
    if (options != NULL) {
        with = *options;
    }
    with.url = test_secret(url);
    struct hearth_store *store = NULL;
    struct hearth_err err = HEARTH_ERR_INIT;
    if (hearth_store_open(&with, &store, &err) != HEARTH_OK) {
        (void)fprintf(stderr, "store does not open: %s\n", err.msg);
        abort();
    }
    return store;
}

static inline struct hearth_store *store_open_url(const char *url,
                                                  const struct hearth_store_options *options)
{
    struct hearth_store_options with;
    hearth_store_options_init(&with);
    if (options != NULL) {
        with = *options;
    }
    with.builder = false;
    return store_open_building(url, &with);
}

static inline void store_close_soon(struct hearth_store *store)
{
    hearth_store_close(store, hearth_clock_mono_ns() + 60 * HEARTH_NS_PER_SEC);
}

struct store_push_sample {
    uint32_t id;
    int64_t value;
};

static inline int store_push_compare(const void *left, const void *right)
{
    const struct store_push_sample *a = left, *b = right;
    return (a->id > b->id) - (a->id < b->id);
}

/* Resolve the samples of a profile and encode them: two columns, the second a multiple of the
 * first. */
static inline enum hearth_status store_push_encode(struct store_push *push,
                                                   const struct hearth_profile *profile)
{
    struct hearth_arena *arena = &push->arena;
    struct hearth_stack_keys keys;
    enum hearth_status status = hearth_stack_keys_make(profile, arena, &keys, &push->err);
    uint32_t *ids = synth_array(arena, profile->n_samples, sizeof *ids);
    if (status == HEARTH_OK) {
        status = hearth_store_dict_resolve(push->item.dict, profile, &keys, ids, &push->err);
    }
    if (status != HEARTH_OK) {
        return status;
    }
    struct store_push_sample *samples = synth_array(arena, profile->n_samples, sizeof *samples);
    for (uint32_t s = 0; s < profile->n_samples; s++) {
        samples[s] = (struct store_push_sample){ids[s], profile->values[(size_t)s * 2]};
    }
    qsort(samples, profile->n_samples, sizeof *samples, store_push_compare);
    int64_t *values = synth_array(arena, (size_t)profile->n_samples * 2, sizeof *values);
    uint32_t n = 0; /* draws may give the same stack under two numbers */
    for (uint32_t s = 0; s < profile->n_samples; s++) {
        if (n == 0 || ids[n - 1] != samples[s].id) {
            ids[n++] = samples[s].id;
        }
        values[(size_t)(n - 1) * 2] += samples[s].value;
        values[(size_t)(n - 1) * 2 + 1] += samples[s].value * 10000000;
    }
    status = hearth_columns_encode(ids, values, n, 2, arena, &push->row.columns, &push->err);
    push->total = status == HEARTH_OK ? push->row.columns.totals[0] : 0;
    return status;
}

/*
 * A push of one drawn profile, not submitted. NULL when the store refuses a step (its complaint
 * goes to err, may be NULL). id 0: without a sample id.
 */
static inline struct store_push *store_push_make_pod(struct hearth_store *store,
                                                     struct synth_world *world, const char *service,
                                                     const char *pod, int64_t ts_ns,
                                                     uint32_t n_samples, uint64_t id,
                                                     struct hearth_err *err)
{
    struct store_push *push = hearth_mem_zalloc(sizeof *push);
    push->store = store;
    hearth_arena_init(&push->arena, 0);
    struct hearth_profile profile = synth_profile(world, n_samples, 2, &push->arena, NULL);
    struct hearth_str types[2] = {HEARTH_STR("process_cpu:samples:count:cpu:nanoseconds"),
                                  HEARTH_STR("process_cpu:cpu:nanoseconds:cpu:nanoseconds")};
    struct hearth_label label = {HEARTH_STR("pod"), hearth_str_c(pod)};
    struct hearth_series_key key = {hearth_str_c(service), types, 2, {&label, 1}};
    struct hearth_series_ref ref;
    enum hearth_status status = hearth_store_resolve_series(store, HEARTH_STR("anonymous"), &key, 1,
                                                            ts_ns, &ref, &push->err);
    if (status == HEARTH_OK) {
        status =
            hearth_store_dict_acquire(store, ref.service_id, ts_ns, &push->item.dict, &push->err);
    }
    if (status == HEARTH_OK) {
        push->row.series_id = ref.series_id;
        push->row.duration_ns = 10 * HEARTH_NS_PER_SEC;
        push->row.period = 10000000;
        push->item.service_id = ref.service_id;
        push->item.ts_ns = ts_ns;
        push->item.rows = &push->row;
        push->item.n_rows = 1;
        push->item.has_id = id != 0;
        push->item.id_hash = (struct hearth_hash128){id, ~id};
        push->item.done = store_push_done;
        status = store_push_encode(push, &profile);
        if (status != HEARTH_OK) {
            hearth_store_dict_release(store, push->item.dict);
        }
    }
    if (status != HEARTH_OK) {
        if (err != NULL) {
            *err = push->err;
        }
        hearth_arena_release(&push->arena);
        hearth_mem_free(push);
        return NULL;
    }
    return push;
}

static inline struct store_push *store_push_make(struct hearth_store *store,
                                                 struct synth_world *world, const char *service,
                                                 int64_t ts_ns, uint32_t n_samples, uint64_t id,
                                                 struct hearth_err *err)
{
    return store_push_make_pod(store, world, service, "pod-1", ts_ns, n_samples, id, err);
}

/* Submit; a refusal ends the push like a failed commit. */
static inline void store_push_submit(struct store_push *push)
{
    enum hearth_status status = hearth_store_submit(push->store, &push->item, &push->err);
    if (status != HEARTH_OK) {
        hearth_store_dict_release(push->store, push->item.dict);
        push->status = status;
        atomic_store(&push->ended, true);
    }
}

/* Wait for a submitted push to end; false if it does not. */
static inline bool store_push_wait(struct store_push *push)
{
    int64_t until_ns = hearth_clock_mono_ns() + STORE_PATIENCE_NS;
    while (!atomic_load(&push->ended) && hearth_clock_mono_ns() < until_ns) {
        (void)usleep(500);
    }
    return atomic_load(&push->ended);
}

static inline void store_push_free(struct store_push *push)
{
    hearth_arena_release(&push->arena);
    hearth_mem_free(push);
}

#endif
