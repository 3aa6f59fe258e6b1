/*
 * views_fixture.h -- tenants with services and labels to be narrowed, over a real PostgreSQL whose
 * builder is the test.
 */
#ifndef HEARTH_TESTS_UNIT_ENGINE_VIEWS_FIXTURE_H
#define HEARTH_TESTS_UNIT_ENGINE_VIEWS_FIXTURE_H

#include "hearth/store/background.h"

#include "answers_text.h"
#include "step_fixture.h"

#define SECOND       HEARTH_NS_PER_SEC
#define MINUTE       (60 * SECOND)
#define N_HOURS      6
#define MAX_PROFILES 1024

/* The labels of a profile, and its place. */
struct drawn {
    int service, team, env, pod, shape; /* team and env 0: without the label */
    int64_t ts_ns;
    struct hearth_profile_id id;
    struct hearth_str tenant;
};

static struct fixture g_fix;
static struct hearth_limits g_limits;
static struct hearth_query_engine *g_engine;
static struct drawn g_drawn[MAX_PROFILES];
static size_t g_n_drawn;
static uint64_t g_rng = 33;

static const char *const g_types[][2] = {
    {"process_cpu:samples:count:cpu:nanoseconds", "process_cpu:cpu:nanoseconds:cpu:nanoseconds"},
    {"process_cpu:cpu:nanoseconds:cpu:nanoseconds", "process_cpu:wall:nanoseconds:cpu:nanoseconds"},
    {"memory:inuse_objects:count:space:bytes", "memory:inuse_space:bytes:space:bytes"},
};

static inline int64_t first_ns(void)
{
    return the_day() * HEARTH_NS_PER_DAY + 20 * HOUR; /* over midnight */
}

static inline struct drawn draw(void)
{
    return (struct drawn){
        .service = (int)synth_below(&g_rng, 4),
        .team = (int)synth_below(&g_rng, 3),
        .env = (int)synth_below(&g_rng, 3),
        .pod = (int)synth_below(&g_rng, 3),
        .shape = (int)synth_below(&g_rng, 3),
        .ts_ns = first_ns() + (int64_t)(synth_next(&g_rng) % (uint64_t)(N_HOURS * HOUR)),
    };
}

/* The labels of a profile, with the tenant as a label of its own if there is one. */
static inline struct hearth_labels labels_of(const struct drawn *d, const char *tenant_label,
                                             char text[3][16], struct hearth_label v[4])
{
    struct hearth_labels labels = {v, 0};

    (void)snprintf(text[0], 16, "prod-%d", d->env);
    (void)snprintf(text[1], 16, "pod-%d", d->pod);
    (void)snprintf(text[2], 16, "team-%d", d->team);
    if (tenant_label != NULL) {
        v[labels.n++] =
            (struct hearth_label){HEARTH_STR("__tenant_id__"), hearth_str_c(tenant_label)};
    }
    if (d->env > 0) {
        v[labels.n++] = (struct hearth_label){HEARTH_STR("env"), hearth_str_c(text[0])};
    }
    v[labels.n++] = (struct hearth_label){HEARTH_STR("pod"), hearth_str_c(text[1])};
    if (d->team > 0) {
        v[labels.n++] = (struct hearth_label){HEARTH_STR("team"), hearth_str_c(text[2])};
    }

    return labels;
}

/* Stores `profile` as drawn, in a tenant; returns its id. */
static inline struct hearth_profile_id store_drawn(const struct drawn *d,
                                                   const struct hearth_profile *profile,
                                                   struct hearth_str tenant,
                                                   const char *tenant_label)
{
    struct hearth_str types[2] = {hearth_str_c(g_types[d->shape][0]),
                                  hearth_str_c(g_types[d->shape][1])};
    char service[16], text[3][16];
    struct hearth_label v[4];
    struct store_push *push = hearth_mem_zalloc(sizeof *push);
    struct hearth_series_ref ref;

    (void)snprintf(service, sizeof service, "svc-%d", d->service);
    const struct hearth_series_key key = {hearth_str_c(service), types, 2,
                                          labels_of(d, tenant_label, text, v)};
    push->store = g_fix.store;
    hearth_arena_init(&push->arena, 0);
    assert_ok(hearth_store_resolve_series(g_fix.store, tenant, &key, 1, d->ts_ns, &ref, &err));
    assert_ok(
        hearth_store_dict_acquire(g_fix.store, ref.service_id, d->ts_ns, &push->item.dict, &err));
    assert_int_equal(store_push_encode(push, profile), HEARTH_OK);
    push->row.series_id = ref.series_id;
    push->item.service_id = ref.service_id;
    push->item.ts_ns = d->ts_ns;
    push->item.rows = &push->row;
    push->item.n_rows = 1;
    push->item.done = store_push_done;
    store_push_submit(push);
    assert_true(store_push_wait(push));
    assert_int_equal(push->status, HEARTH_OK);
    struct hearth_profile_id id = {push->item.writer_id, push->item.profile_no};
    store_push_free(push);

    return id;
}

static inline struct hearth_query query_of(struct hearth_arena *arena, struct hearth_str tenant)
{
    return (struct hearth_query){
        .call = {.engine = g_engine, .tenant = tenant, .arena = arena},
        .start_ms = first_ns() / HEARTH_NS_PER_MS,
        .end_ms = (first_ns() + N_HOURS * HOUR) / HEARTH_NS_PER_MS,
    };
}

/* Fails, and prints the first line that differs. */
static inline void assert_same_text(const struct hearth_buf *left, const struct hearth_buf *right,
                                    const char *about)
{
    struct hearth_str a = hearth_buf_view(left), b = hearth_buf_view(right);
    size_t at = 0, line = 0;

    while (at < a.n && at < b.n && a.p[at] == b.p[at]) {
        line = a.p[at] == '\n' ? at + 1 : line;
        at++;
    }
    if (at < a.n || at < b.n) {
        fail_msg("%s, byte %zu:\n%.*s\ninstead of\n%.*s", about, at,
                 (int)(a.n - line > 800 ? 800 : a.n - line), a.p + line,
                 (int)(b.n - line > 800 ? 800 : b.n - line), b.p + line);
    }
}

static inline int start_views(void **state)
{
    int status = start_cluster(state);
    hearth_limits_init(&g_limits);
    g_limits.max_query_lookback_ns = 0;
    open_fixture(&g_fix);
    assert_ok(hearth_query_engine_new(&g_limits, 0, g_fix.store, &g_engine, &err));
    return status;
}

static inline int stop_views(void **state)
{
    hearth_query_engine_free(g_engine);
    close_fixture(&g_fix);
    return stop_cluster(state);
}

#endif
