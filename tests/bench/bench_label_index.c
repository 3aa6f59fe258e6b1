/*
 * bench_label_index.c -- the label index with 100,000 series of 10 labels: load, memory, and what
 * queries cost.
 *
 * 200 services of 500 series (one pod each), shapes of 1, 2 and 5 profile types, 7 days of 24
 * hours. Prints the median and the slowest of the repetitions in milliseconds.
 */
#include "hearth/base/clock.h"
#include "hearth/selector/label_index.h"

#include <stdio.h>
#include <stdlib.h>

#define N_SERVICES 200
#define N_PODS     500
#define FIRST_DAY  20700
#define N_DAYS     7
#define REPEAT     21

static void must(enum hearth_status status)
{
    if (status != HEARTH_OK) {
        (void)fprintf(stderr, "failed: %s\n", hearth_status_name(status));
        exit(1);
    }
}

static double ms_since(int64_t from_ns)
{
    return (double)(hearth_clock_mono_ns() - from_ns) / 1e6;
}

/* Pair ids are handed out as a database would: one for each distinct pair, in order of appearance.
 */
static int32_t g_next_pair = 1;
static int32_t g_shared[10][2048];

static int32_t shared_pair(struct hearth_label_index *index, int name, int value)
{
    static const char *const names[] = {"namespace", "cluster",  "region", "zone", "version",
                                        "team",      "language", "node",   "tier"};
    if (g_shared[name][value] == 0) {
        char text[48];
        (void)snprintf(text, sizeof text, "%s-%d", names[name], value);
        g_shared[name][value] = g_next_pair;
        must(hearth_label_index_add_pair(index, g_next_pair++, hearth_str_c(names[name]),
                                         hearth_str_c(text)));
    }
    return g_shared[name][value];
}

static void add_shapes(struct hearth_label_index *index)
{
    static const char *const ids[] = {
        "process_cpu:cpu:nanoseconds:cpu:nanoseconds", "process_cpu:samples:count:cpu:nanoseconds",
        "memory:alloc_objects:count:space:bytes",      "memory:alloc_space:bytes:space:bytes",
        "memory:inuse_objects:count:space:bytes",      "memory:inuse_space:bytes:space:bytes",
        "goroutine:goroutine:count:goroutine:count"};
    struct hearth_str types[7];
    for (size_t i = 0; i < 7; i++) {
        types[i] = hearth_str_c(ids[i]);
    }
    must(hearth_label_index_add_shape(index, 1, types, 2));
    must(hearth_label_index_add_shape(index, 2, types + 2, 4));
    must(hearth_label_index_add_shape(index, 3, types + 6, 1));
}

static struct hearth_label_index *load(void)
{
    static const int n_values[] = {20, 3, 5, 9, 40, 25, 6, 400, 4};
    struct hearth_label_index *index = hearth_label_index_new();
    if (index == NULL) {
        must(HEARTH_NO_MEMORY);
    }
    int32_t series_id = 1;
    add_shapes(index);
    for (int s = 0; s < N_SERVICES; s++) {
        char text[64];
        (void)snprintf(text, sizeof text, "service-%03d", s);
        must(hearth_label_index_add_service(index, s + 1, hearth_str_c(text)));
        for (int p = 0; p < N_PODS; p++) {
            int32_t pairs[10];
            for (int i = 0; i < 9; i++) {
                int value =
                    i < 7 ? (s * 7 + p / 100 * i) % n_values[i] : (s * 31 + p * 17) % n_values[i];
                pairs[i] = shared_pair(index, i, value);
            }
            (void)snprintf(text, sizeof text, "service-%03d-7d9f8b6c5-%05d", s, p);
            pairs[9] = g_next_pair;
            must(hearth_label_index_add_pair(index, g_next_pair++, HEARTH_STR("pod"),
                                             hearth_str_c(text)));
            must(hearth_label_index_add_series(index, series_id, s + 1, p % 3 + 1, pairs, 10));
            for (int32_t day = 0; day < N_DAYS; day++) {
                must(hearth_label_index_add_day(index, series_id, FIRST_DAY + day, 0xFFFFFF));
            }
            series_id++;
        }
    }
    return index;
}

enum question {
    SELECT,
    NAMES,
    VALUES,
    PROJECT,
};

static size_t ask(const struct hearth_label_index *index, enum question question,
                  const struct hearth_selector *selector, const struct hearth_str *names,
                  size_t n_names, struct hearth_arena *arena)
{
    int64_t to = (FIRST_DAY + N_DAYS) * HEARTH_NS_PER_DAY - 1, from = to - HEARTH_NS_PER_HOUR;
    struct hearth_err err;
    const struct hearth_index_filter filter = {selector, from, to};
    struct hearth_series_hits hits;
    struct hearth_index_texts texts;
    struct hearth_label_sets sets;
    size_t n = 0;
    switch (question) {
    case SELECT:
        must(hearth_label_index_select(index, &filter, arena, &hits, &err));
        n = hits.n;
        break;
    case NAMES:
        must(hearth_label_index_names(index, &filter, arena, &texts, &err));
        n = texts.n;
        break;
    case VALUES:
        must(hearth_label_index_values(index, &filter, names[0], arena, &texts, &err));
        n = texts.n;
        break;
    case PROJECT:
        must(hearth_label_index_project(
            index, &filter, (struct hearth_projected_names){names, n_names}, arena, &sets, &err));
        n = sets.n;
        break;
    }
    return n;
}

static int compare_doubles(const void *a, const void *b)
{
    double left, right;
    memcpy(&left, a, sizeof left);
    memcpy(&right, b, sizeof right);
    return left < right ? -1 : left > right;
}

/* Floor of an answer: writing it. A hit is a struct, everything else a text of 32 bytes. */
static double floor_ms(enum question question, size_t n)
{
    static const char text[32] = "service-042-7d9f8b6c5-00042-abc";
    double ms[REPEAT];
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    for (int i = 0; i < REPEAT; i++) {
        int64_t start = hearth_clock_mono_ns();
        size_t size =
            question == SELECT ? sizeof(struct hearth_series_hit) : sizeof(struct hearth_str);
        char *answers = hearth_arena_array(&arena, n, size);
        for (size_t k = 0; answers != NULL && k < n; k++) {
            if (question == SELECT) {
                struct hearth_series_hit hit = {.series_id = (int32_t)k};
                memcpy(answers + k * size, &hit, size);
            } else {
                struct hearth_str copy = hearth_arena_str(&arena, hearth_str_n(text, sizeof text));
                memcpy(answers + k * size, &copy, size);
            }
        }
        ms[i] = ms_since(start);
        hearth_arena_reset(&arena);
    }
    hearth_arena_release(&arena);
    qsort(ms, REPEAT, sizeof *ms, compare_doubles);
    return ms[REPEAT / 2];
}

/* `name`: what values and projections ask for, several separated by a comma. */
static void measure(const struct hearth_label_index *index, enum question question,
                    const char *text, const char *name)
{
    static const char *const labels[] = {"select", "names", "values", "project"};
    struct hearth_str all = hearth_str_c(name), names[4];
    size_t n_names = 0, n = 0;
    for (size_t at = 0; name != NULL && at < all.n; n_names++) {
        size_t end = hearth_str_find(all, ',', at);
        names[n_names] = hearth_str_n(all.p + at, end - at);
        at = end + 1;
    }
    struct hearth_arena arena;
    double ms[REPEAT];
    hearth_arena_init(&arena, 0);
    for (int i = 0; i < REPEAT; i++) {
        struct hearth_selector selector;
        struct hearth_err err = HEARTH_ERR_INIT;
        int64_t start = hearth_clock_mono_ns();
        hearth_selector_init(&selector);
        must(hearth_selector_parse(&selector, hearth_str_c(text), &arena, NULL, &err));
        n = ask(index, question, &selector, names, n_names, &arena);
        ms[i] = ms_since(start);
        hearth_selector_release(&selector);
        hearth_arena_reset(&arena);
    }
    hearth_arena_release(&arena);
    qsort(ms, REPEAT, sizeof *ms, compare_doubles);
    printf("%-8s %-52s %-30s %8zu %9.3f %9.3f %9.4f\n", labels[question], text,
           name == NULL ? "" : name, n, ms[REPEAT / 2], ms[REPEAT - 1], floor_ms(question, n));
}

int main(void)
{
    int64_t start = hearth_clock_mono_ns();
    struct hearth_label_index *index = load();
    double load_ms = ms_since(start);
    printf("series %zu, load %.1f ms, memory %.1f MB\n", hearth_label_index_series(index), load_ms,
           (double)hearth_label_index_bytes(index) / 1e6);
    printf("%-8s %-52s %-30s %8s %9s %9s %9s\n", "", "selector", "names", "answers", "median ms",
           "max ms", "floor ms");
    static const char one[] = "{service_name=\"service-042\"}";
    measure(index, SELECT, one, NULL);
    measure(index, NAMES, one, NULL);
    measure(index, VALUES, one, "pod");
    measure(index, VALUES, one, "namespace");
    measure(index, PROJECT, one, "pod,__profile_type__");
    measure(index, PROJECT, one, NULL);
    measure(index, PROJECT, "{}", "service_name,__profile_type__");
    measure(index, NAMES, "{}", NULL);
    measure(index, VALUES, "{}", "service_name");
    measure(index, VALUES, "{}", "__profile_type__");
    measure(index, VALUES, "{}", "namespace");
    measure(index, VALUES, "{}", "pod");
    measure(index, SELECT, "{pod=\"service-042-7d9f8b6c5-00007\"}", NULL);
    measure(index, SELECT, "{namespace=\"namespace-7\"}", NULL);
    measure(index, SELECT, "{namespace=\"namespace-7\", language=\"language-1\", tier!=\"tier-2\"}",
            NULL);
    measure(index, SELECT, "{service_name=\"service-042\", pod=~\".*(1|3)[0-9]$\"}", NULL);
    measure(index, SELECT, "{pod=~\"service-012-.*\"}", NULL);
    measure(index, SELECT, "{pod=~\".*9.*\"}", NULL);
    measure(index, SELECT, "{pod=~\".*[13]7$\"}", NULL);
    measure(index, SELECT, "process_cpu{region=~\"region-(1|2)\"}", NULL);
    measure(index, SELECT, "{}", NULL);
    start = hearth_clock_mono_ns();
    hearth_label_index_trim(index, (FIRST_DAY + 2) * 24);
    printf("trim of two days, no series gone: %.1f ms\n", ms_since(start));
    start = hearth_clock_mono_ns();
    for (int32_t id = 1; id <= N_SERVICES * N_PODS; id += 2) {
        must(hearth_label_index_add_day(index, id, FIRST_DAY + N_DAYS, 1));
    }
    hearth_label_index_trim(index, (FIRST_DAY + N_DAYS) * 24);
    printf("trim that forgets half the series:  %.1f ms, %zu left\n", ms_since(start),
           hearth_label_index_series(index));
    hearth_label_index_free(index);
    return 0;
}
