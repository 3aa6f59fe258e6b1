/*
 * bench_flame_screen.c -- the interactive flame graph of `hearth flame`: its memory, first frame and
 * keys. No terminal: the time of a frame is that of its text.
 *
 *   bench_flame_screen [nodes, 1048576] [columns, 220] [rows, 60]
 *
 * The graph has 50,000 names; each node has up to three children. Prints medians and the worst of
 * all keys of a kind, as time of the processor.
 */
#include "hearth/base/clock.h"
#include "hearth/base/mem.h"

#include "flame_screen.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

enum {
    N_NAMES = 50000,
    KEYS = 200
};

static uint64_t g_random = 1;

static uint32_t next_random(uint32_t below)
{
    g_random = g_random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(g_random >> 33) % below;
}

static void *must(void *p)
{
    if (p == NULL) {
        (void)fprintf(stderr, "bench_flame_screen: no memory\n");
        exit(1);
    }
    return p;
}

/* A level of the graph; `from` has the place of each node. */
struct level {
    int64_t *values, *from;
    size_t n, cap, cap_from;
};

static void add_to_level(struct level *level, int64_t *end, int64_t from, int64_t total,
                         int64_t self)
{
    if (!hearth_mem_grow((void *)&level->values, &level->cap, 4 * (level->n + 1), 8) ||
        !hearth_mem_grow((void *)&level->from, &level->cap_from, level->n + 1, 8)) {
        (void)must(NULL);
    }
    int64_t *v = level->values + 4 * level->n;
    v[0] = from - *end;
    v[1] = total;
    v[2] = self;
    v[3] = level->n == 0 && *end == 0 && from == 0 && total > 1ll << 49
               ? 0
               : 1 + (int64_t)next_random(N_NAMES - 1);
    level->from[level->n++] = from;
    *end = from + total;
}

/* Children of the nodes of a level, while fewer than `left` were made. */
static struct level make_next(struct level *above, size_t left)
{
    struct level level = {0};
    int64_t end = 0;

    for (size_t i = 0; i < above->n; i++) {
        int64_t *v = above->values + 4 * i;
        int64_t from = above->from[i], rest = v[1];
        uint32_t n = 1 + next_random(10) / 5 + next_random(10) / 8;
        for (uint32_t k = 0; k < n && level.n < left && rest > 8; k++) {
            int64_t total = k + 1 == n ? rest - rest / 8 : rest / (2 + (int64_t)next_random(4));
            add_to_level(&level, &end, from, total, total);
            from += total;
            rest -= total;
        }
        v[2] = rest;
    }

    return level;
}

static size_t make_graph(size_t n_nodes, struct hearth_flamegraph *graph)
{
    struct level *levels = must(calloc(4096, sizeof *levels));
    int64_t end = 0;
    size_t n = 1;

    add_to_level(&levels[0], &end, 0, 1ll << 50, 0);
    graph->n_levels = 1;
    while (n < n_nodes && graph->n_levels < 4096) {
        struct level *level = &levels[graph->n_levels];
        *level = make_next(level - 1, n_nodes - n);
        if (level->n == 0) {
            break;
        }
        n += level->n;
        graph->n_levels++;
    }
    graph->levels = must(calloc(graph->n_levels, sizeof *graph->levels));
    for (size_t i = 0; i < graph->n_levels; i++) {
        graph->levels[i].values = levels[i].values;
        graph->levels[i].n = 4 * levels[i].n;
        free(levels[i].from);
    }
    free(levels);

    graph->n_names = N_NAMES;
    graph->names = must(calloc(N_NAMES, sizeof *graph->names));
    for (size_t i = 0; i < N_NAMES; i++) {
        char text[64];
        int length = snprintf(text, sizeof text, i == 0 ? "total" : "package%zu.Class%zu.method%zu",
                              i % 97, i % 1009, i);
        graph->names[i] =
            hearth_str_n(must(hearth_mem_strndup(text, (size_t)length)), (size_t)length);
    }
    graph->total = 1ll << 50;

    return n;
}

static double peak_mib(void)
{
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss / 1024;
}

static int compare_times(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static int g_columns = 220, g_rows = 60;

/* Presses keys in turn, each followed by a frame. */
static void press(struct flame_screen *screen, const char *what, const int *keys, size_t n_keys,
                  size_t n)
{
    int64_t times[KEYS];
    struct hearth_buf frame;

    hearth_buf_init(&frame, 0);
    for (size_t i = 0; i < n; i++) {
        int64_t start = hearth_clock_thread_cpu_ns();
        flame_screen_key(screen, keys[i % n_keys]);
        hearth_buf_reset(&frame);
        flame_screen_paint(screen, g_columns, g_rows, &frame);
        times[i] = hearth_clock_thread_cpu_ns() - start;
    }
    qsort(times, n, sizeof times[0], compare_times);
    (void)printf("%-36s %10.2f ms %10.2f ms\n", what, (double)times[n / 2] / 1e6,
                 (double)times[n - 1] / 1e6);
    hearth_buf_release(&frame);
}

int main(int argc, char **argv)
{
    size_t n_nodes = argc > 1 ? strtoull(argv[1], NULL, 10) : 1 << 20;
    g_columns = argc > 2 ? (int)strtol(argv[2], NULL, 10) : g_columns;
    g_rows = argc > 3 ? (int)strtol(argv[3], NULL, 10) : g_rows;
    struct hearth_flamegraph graph = {0};
    size_t n = make_graph(n_nodes, &graph);
    const struct flame_facts facts = {.selector = "{}",
                                      .type = "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
                                      .range = "",
                                      .no_page = ""};
    const struct flame_ink ink = {.colors = FLAME_TRUE_COLOR, .unit = HEARTH_STR("nanoseconds")};
    struct hearth_err err = HEARTH_ERR_INIT;
    struct flame_screen screen;
    struct hearth_buf frame;

    (void)printf("%zu nodes, %zu levels, %d x %d cells\n", n, graph.n_levels, g_columns, g_rows);
    double before = peak_mib();
    int64_t start = hearth_clock_thread_cpu_ns();
    if (flame_screen_init(&screen, &graph, &facts, &ink, &err) != HEARTH_OK) {
        (void)fprintf(stderr, "bench_flame_screen: %s\n", err.msg);
        return 1;
    }
    hearth_buf_init(&frame, 0);
    flame_screen_paint(&screen, g_columns, g_rows, &frame);
    (void)printf("%-36s %10.2f ms\n", "first frame, with reading the graph",
                 (double)(hearth_clock_thread_cpu_ns() - start) / 1e6);
    (void)printf("%-36s %10.1f MiB, of %.1f with the graph\n", "memory", peak_mib() - before,
                 peak_mib());
    (void)printf("%-36s %10zu bytes\n", "a frame", frame.n);
    hearth_buf_release(&frame);

    (void)printf("%-36s %13s %13s\n", "key and frame", "median", "worst");
    press(&screen, "down", (int[]){FLAME_KEY_DOWN}, 1, 20);
    press(&screen, "left, right", (int[]){FLAME_KEY_LEFT, FLAME_KEY_RIGHT}, 2, KEYS);
    press(&screen, "zoom in, zoom out", (int[]){FLAME_KEY_ENTER, 'u'}, 2, KEYS);
    press(&screen, "whole graph, up", (int[]){'0', FLAME_KEY_UP}, 2, 40);
    for (const char *p = "/Class10.*9$"; *p != '\0'; p++) {
        flame_screen_key(&screen, *p);
    }
    press(&screen, "search", (int[]){FLAME_KEY_ENTER}, 1, 1);
    press(&screen, "next match", (int[]){'n'}, 1, KEYS);
    flame_screen_key(&screen, FLAME_KEY_ESCAPE);
    press(&screen, "table", (int[]){'t'}, 1, 1);
    press(&screen, "sandwich of its first function", (int[]){'s'}, 1, 1);
    flame_screen_key(&screen, FLAME_KEY_ESCAPE);
    press(&screen, "stacks from their leaves", (int[]){'i'}, 1, 1);
    (void)printf("%-36s %10u nodes\n", "stacks from their leaves", screen.leaves.n);
    (void)printf("%-36s %10.1f MiB\n", "memory, with all of these", peak_mib() - before);
    if (screen.message[0] != '\0') {
        (void)printf("message: %s\n", screen.message);
    }
    flame_screen_release(&screen);

    return 0;
}
