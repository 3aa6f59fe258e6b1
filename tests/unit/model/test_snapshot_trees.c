/*
 * test_snapshot_trees.c -- thread snapshots: trees with durations, the published cases, stored
 * bytes.
 */
#include "hearth/model/snapshot_trees.h"

#include "arena_fixture.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum {
    MOST = 64
};

static struct hearth_err g_err;

/* ---- snapshots as texts: "A-B-C" ---- */

static struct hearth_snapshot snapshot(uint32_t segment, int32_t sequence, int64_t at_ms,
                                       const char *text)
{
    struct hearth_str rest = hearth_arena_str(&g_arena, hearth_str_c(text));
    struct hearth_str *frames = hearth_arena_array(&g_arena, MOST, sizeof *frames);
    uint32_t n = 0;
    while (rest.n > 0) {
        size_t end = hearth_str_find(rest, '-', 0);
        assert_true(n < MOST);
        frames[n++] = hearth_str_n(rest.p, end);
        rest = end < rest.n ? hearth_str_n(rest.p + end + 1, rest.n - end - 1) : HEARTH_STR("");
    }
    return (struct hearth_snapshot){segment, sequence, at_ms, frames, n};
}

/* ---- trees as texts: a line "A/B 3 20:0" for each node, sorted ---- */

static int compare_lines(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

struct lines {
    char *all[512];
    size_t n;
};

static void add_line(struct lines *lines, const char *path, int64_t count, int64_t ms, int64_t self)
{
    assert_true(lines->n < HEARTH_ARRAY_LEN(lines->all));
    lines->all[lines->n++] =
        hearth_arena_printf(&g_arena, "%s %" PRId64 " %" PRId64 ":%" PRId64, path, count, ms, self);
}

static char *joined(struct lines *lines)
{
    qsort(lines->all, lines->n, sizeof lines->all[0], compare_lines);
    char *text = hearth_arena_strndup(&g_arena, "", 0);
    for (size_t i = 0; i < lines->n; i++) {
        text = hearth_arena_printf(&g_arena, "%s%s\n", text, lines->all[i]);
    }
    return text;
}

static char *text_of(const struct hearth_snapshot_trees *trees)
{
    struct lines lines = {.n = 0};
    for (size_t t = 0; t < trees->n_trees; t++) {
        const struct hearth_snapshot_tree *tree = &trees->trees[t];
        char **paths = hearth_arena_array(&g_arena, tree->n_nodes + 1, sizeof *paths);
        for (size_t i = 0; i < tree->n_nodes; i++) {
            const struct hearth_snapshot_node *node = &tree->nodes[i];
            assert_int_equal(node->id, i + 1);
            assert_true(node->parent_id < node->id && (node->parent_id == 0) == (i == 0));
            if (i > 0) { /* breadth first */
                assert_true(node->parent_id >= tree->nodes[i - 1].parent_id);
            }
            const char *code = hearth_arena_strndup(&g_arena, node->code.p, node->code.n);
            paths[node->id] =
                node->parent_id == 0
                    ? hearth_arena_printf(&g_arena, "%s", code)
                    : hearth_arena_printf(&g_arena, "%s/%s", paths[node->parent_id], code);
            add_line(&lines, paths[node->id], node->count, node->duration_ms,
                     node->duration_child_excluded_ms);
        }
    }
    return joined(&lines);
}

static struct hearth_snapshot_trees make(const struct hearth_snapshot *snapshots, size_t n,
                                         const struct hearth_snapshot_query *queries,
                                         size_t n_queries, int64_t limit)
{
    struct hearth_snapshot_trees trees;
    const struct hearth_snapshot_choice choice = {snapshots, n, queries, n_queries, limit};
    assert_int_equal(hearth_snapshot_trees_make(&choice, &g_arena, &trees, &g_err), HEARTH_OK);
    return trees;
}

/* ---- by hand ---- */

static void time_between_two_dumps_belongs_to_the_frames_that_both_have(void **state)
{
    (void)state;
    struct hearth_snapshot snapshots[] = {
        snapshot(0, 0, 0, "A-B-C"),
        snapshot(0, 1, 10, "A-B-C-A"),
        snapshot(0, 2, 20, "A-C-A"),
        snapshot(0, 3, 30, "A-B-C-B"),
    };
    struct hearth_snapshot_query query = {0, 0, 30};
    struct hearth_snapshot_trees trees = make(snapshots, 4, &query, 1, 0);
    assert_string_equal(text_of(&trees), "A 4 30:20\n"
                                         "A/B 3 10:0\n"
                                         "A/B/C 3 10:10\n"
                                         "A/B/C/A 1 0:0\n"
                                         "A/B/C/B 1 0:0\n"
                                         "A/C 1 0:0\n"
                                         "A/C/A 1 0:0\n");
    assert_int_equal(trees.n_found, 4);
}

static void durations_are_real_times_not_periods(void **state)
{
    (void)state;
    struct hearth_snapshot snapshots[] = {
        snapshot(0, 2, 1017, "A"),
        snapshot(0, 0, 1000, "A"),
        snapshot(0, 1, 1011, "A"),
        snapshot(0, 4, 5000, "A"),
    };
    struct hearth_snapshot_query query = {0, INT64_MIN, INT64_MAX};
    struct hearth_snapshot_trees trees = make(snapshots, 4, &query, 1, 0);
    assert_string_equal(text_of(&trees), "A 4 17:17\n");
    assert_int_equal(trees.n_found, 5); /* number 3 is missing, but counted */
}

static void equal_numbers_in_two_segments_are_two_snapshots(void **state)
{
    (void)state;
    struct hearth_snapshot snapshots[] = {
        snapshot(0, 0, 0, "A-B"),  snapshot(0, 1, 10, "A-B"), snapshot(1, 0, 3, "A-C"),
        snapshot(1, 1, 15, "A-C"), snapshot(1, 1, 99, "Z"), /* sent twice: the first one is kept */
    };
    struct hearth_snapshot_query queries[] = {{0, 0, 100}, {1, 0, 100}, {2, 0, 100}};
    struct hearth_snapshot_trees trees = make(snapshots, 5, queries, 3, 0);
    assert_string_equal(text_of(&trees), "A 4 22:0\n"
                                         "A/B 2 10:10\n"
                                         "A/C 2 12:12\n");
    assert_int_equal(trees.trees[0].nodes[1].duration_ms, 12); /* children are sorted by duration */
}

static void a_clock_set_back_and_snapshots_without_frames_are_tolerated(void **state)
{
    (void)state;
    struct hearth_snapshot snapshots[] = {
        snapshot(0, 0, 50, "A"),
        snapshot(0, 1, 40, "A"),
        snapshot(0, 2, 45, ""),
        snapshot(0, INT32_MAX, 45, "B"),
    };
    struct hearth_snapshot_query query = {0, 0, 100};
    struct hearth_snapshot_trees trees = make(snapshots, 4, &query, 1, 0);
    assert_string_equal(text_of(&trees), "A 2 0:0\nB 1 0:0\n");
    assert_int_equal(trees.n_found, INT64_C(1) << 31);
}

static void an_empty_range_has_no_tree(void **state)
{
    (void)state;
    struct hearth_snapshot snapshots[] = {snapshot(0, 0, 50, "A")};
    struct hearth_snapshot_query query = {0, 51, 100};
    struct hearth_snapshot_trees trees = make(snapshots, 1, &query, 1, 10);
    assert_int_equal(trees.n_trees, 0);
    assert_int_equal(trees.n_found, 0);
    trees = make(NULL, 0, NULL, 0, 10);
    assert_int_equal(trees.n_trees, 0);
}

static void many_siblings_are_sorted(void **state)
{
    (void)state;
    struct hearth_snapshot snapshots[300];
    for (int32_t i = 0; i < 300; i++) {
        char text[16];
        (void)snprintf(text, sizeof text, "R-%03d", i * 7 % 100);
        snapshots[i] = snapshot(0, i * 2, i, text);
    }
    struct hearth_snapshot_query query = {0, 0, 1000};
    struct hearth_snapshot_trees trees = make(snapshots, 300, &query, 1, 0);
    assert_int_equal(trees.n_trees, 1);
    assert_int_equal(trees.trees[0].n_nodes, 101);
    for (size_t i = 2; i < 101; i++) {
        const struct hearth_snapshot_node *nodes = trees.trees[0].nodes;
        assert_int_equal(nodes[i].count, 3);
        assert_true(hearth_str_cmp(nodes[i - 1].code, nodes[i].code) < 0);
    }
}

/* ---- the published cases ---- */

struct published {
    int64_t step_ms;
    struct hearth_snapshot_query queries[8];
    size_t n_queries;
    struct hearth_snapshot snapshots[MOST];
    size_t n_snapshots;
    struct lines expected;
    char *paths[16]; /* by depth */
    size_t depth;
    int64_t count;
};

/* "0-2,4-5": numbers of steps. */
static void read_ranges(struct published *to, struct hearth_str text)
{
    to->n_queries = 0;
    while (text.n > 0) {
        size_t comma = hearth_str_find(text, ',', 0), dash = hearth_str_find(text, '-', 0);
        struct hearth_snapshot_query *query = &to->queries[to->n_queries++];
        assert_true(to->n_queries <= HEARTH_ARRAY_LEN(to->queries) && dash < comma);
        query->segment = 0;
        assert_true(hearth_str_to_i64(hearth_str_n(text.p, dash), &query->start_ms));
        assert_true(
            hearth_str_to_i64(hearth_str_n(text.p + dash + 1, comma - dash - 1), &query->end_ms));
        query->start_ms *= to->step_ms;
        query->end_ms *= to->step_ms;
        text =
            comma < text.n ? hearth_str_n(text.p + comma + 1, text.n - comma - 1) : HEARTH_STR("");
    }
}

static void check_case(struct published *it, int number)
{
    struct hearth_snapshot_trees trees =
        make(it->snapshots, it->n_snapshots, it->queries, it->n_queries, 10);
    char *found = text_of(&trees), *expected = joined(&it->expected);
    if (strcmp(found, expected) != 0) {
        print_error("case %d: found\n%sexpected\n%s", number, found, expected);
    }
    assert_string_equal(found, expected);
    *it = (struct published){0};
}

/* Scalars are texts: 20:20 is not a number in base 60. Four columns per level below "expected". */
static void read_line(struct published *to, struct hearth_str line)
{
    size_t indent = 0;
    while (indent < line.n && line.p[indent] == ' ') {
        indent++;
    }
    struct hearth_str text = hearth_str_trim(line);
    size_t colon = hearth_str_find(text, ':', 0);
    struct hearth_str key = hearth_str_n(text.p, colon);
    struct hearth_str value =
        colon < text.n ? hearth_str_trim(hearth_str_n(text.p + colon + 1, text.n - colon - 1))
                       : HEARTH_STR("");
    if (hearth_str_eq_c(key, "limit")) {
        assert_true(hearth_str_to_i64(value, &to->step_ms));
    } else if (hearth_str_eq_c(key, "timeRanges")) {
        read_ranges(to, value);
    } else if (hearth_str_eq_c(key, "- code")) {
        to->depth = (indent - 6) / 4;
        assert_true(to->depth < HEARTH_ARRAY_LEN(to->paths));
        to->paths[to->depth] = hearth_arena_printf(
            &g_arena, "%s%s%.*s", to->depth == 0 ? "" : to->paths[to->depth - 1],
            to->depth == 0 ? "" : "/", (int)value.n, value.p);
    } else if (hearth_str_eq_c(key, "count")) {
        assert_true(hearth_str_to_i64(value, &to->count));
    } else if (hearth_str_eq_c(key, "duration")) {
        int64_t ms, self;
        size_t at = hearth_str_find(value, ':', 0);
        assert_true(hearth_str_to_i64(hearth_str_n(value.p, at), &ms));
        assert_true(hearth_str_to_i64(hearth_str_n(value.p + at + 1, value.n - at - 1), &self));
        add_line(&to->expected, to->paths[to->depth], to->count, ms, self);
    } else if (colon == text.n && hearth_str_starts(text, HEARTH_STR("- "))) {
        char *stack = hearth_arena_strndup(&g_arena, text.p + 2, text.n - 2);
        int32_t i = (int32_t)to->n_snapshots++;
        to->snapshots[i] = snapshot(0, i, i * to->step_ms, stack);
    }
}

static void the_published_cases_are_reproduced(void **state)
{
    (void)state;
    const char *path = HEARTH_SHARED_DATA "/skywalking/thread-snapshot-analysis-cases.yml";
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        print_message("%s is not there: the published cases were not looked at\n", path);
        skip();
    }
    struct published it = {0};
    int n_cases = 0;
    char buffer[512];
    while (fgets(buffer, sizeof buffer, file) != NULL) {
        struct hearth_str line = hearth_str_c(buffer);
        if (hearth_str_starts(line, HEARTH_STR("  - data:")) && n_cases++ > 0) {
            check_case(&it, n_cases - 1);
        }
        if (buffer[0] == ' ' && buffer[2] != '#') {
            read_line(&it, line);
        }
    }
    (void)fclose(file);
    check_case(&it, n_cases);
    assert_int_equal(n_cases, 9);
}

/* ---- stored bytes ---- */

static void stored_snapshots_are_restored(void **state)
{
    (void)state;
    struct hearth_snapshot snapshots[] = {
        snapshot(7, 0, 1700000000000, "A-B-C"), snapshot(7, 1, 1700000000010, "A-B-D"),
        snapshot(7, INT32_MAX, INT64_MAX, "A"), snapshot(7, INT32_MIN, INT64_MIN, ""),
        snapshot(7, 3, 0, "X-A-B-C"),
    };
    struct hearth_buf packed;
    hearth_buf_init(&packed, 0);
    hearth_snapshots_encode(snapshots, 5, &packed);
    assert_false(hearth_buf_failed(&packed));
    struct hearth_snapshot *again;
    size_t n;
    assert_int_equal(
        hearth_snapshots_decode(hearth_buf_view(&packed), 7, &g_arena, &again, &n, &g_err),
        HEARTH_OK);
    assert_int_equal(n, 5);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(again[i].segment, 7);
        assert_int_equal(again[i].sequence, snapshots[i].sequence);
        assert_int_equal(again[i].at_ms, snapshots[i].at_ms);
        assert_int_equal(again[i].n_frames, snapshots[i].n_frames);
        for (uint32_t k = 0; k < again[i].n_frames; k++) {
            assert_true(hearth_str_eq(again[i].frames[k], snapshots[i].frames[k]));
        }
    }
    for (size_t cut = 0; cut < packed.n; cut++) {
        assert_int_equal(
            hearth_snapshots_decode(hearth_str_n(packed.p, cut), 0, &g_arena, &again, &n, &g_err),
            HEARTH_CORRUPT);
    }
    hearth_buf_release(&packed);
}

static void cut_snapshots_are_restored_and_counted(void **state)
{
    (void)state;
    struct hearth_snapshot snapshots[] = {snapshot(7, 0, 10, "A-B"), snapshot(7, 1, 20, "A-B"),
                                          snapshot(7, 2, 30, "A-B"), snapshot(7, 3, 40, "A-B")};
    for (unsigned mask = 0; mask < 16; mask++) {
        for (unsigned i = 0; i < 4; i++) {
            snapshots[i].is_cut = (mask >> i & 1) != 0;
        }
        struct hearth_buf packed;
        hearth_buf_init(&packed, 0);
        hearth_snapshots_encode(snapshots, 4, &packed);
        struct hearth_snapshot *again;
        size_t n;
        assert_int_equal(
            hearth_snapshots_decode(hearth_buf_view(&packed), 7, &g_arena, &again, &n, &g_err),
            HEARTH_OK);
        for (unsigned i = 0; i < 4; i++) {
            assert_int_equal(again[i].is_cut, mask >> i & 1);
        }

        /* A query that selects the middle two. */
        const struct hearth_snapshot_query query = {7, 20, 30};
        struct hearth_snapshot_trees trees;
        const struct hearth_snapshot_choice choice = {again, n, &query, 1, 0};
        assert_int_equal(hearth_snapshot_trees_make(&choice, &g_arena, &trees, &g_err), HEARTH_OK);
        assert_int_equal(trees.n_cut, (mask >> 1 & 1) + (mask >> 2 & 1));
        hearth_buf_release(&packed);
    }
}

static void impossible_marks_of_cut_snapshots_are_refused(void **state)
{
    (void)state;
    struct hearth_snapshot snapshots[] = {snapshot(7, 0, 10, "A"), snapshot(7, 1, 20, "A")};
    static const struct {
        const char *bytes;
        size_t n;
    } marks[] = {
        {"\0", 1},                    /* none */
        {"\1\2", 2},                  /* a third snapshot */
        {"\2\1\0", 3},                /* the second, and one after it */
        {"\3\0\0\0", 4},              /* three of two snapshots */
        {"\1", 1},       {"\2\0", 2}, /* truncated */
        {"\1\0\0", 3},                /* bytes left over */
    };
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(marks); i++) {
        struct hearth_buf packed;
        hearth_buf_init(&packed, 0);
        hearth_snapshots_encode(snapshots, 2, &packed);
        hearth_buf_append(&packed, marks[i].bytes, marks[i].n);
        struct hearth_snapshot *again;
        size_t n;
        assert_int_equal(
            hearth_snapshots_decode(hearth_buf_view(&packed), 7, &g_arena, &again, &n, &g_err),
            HEARTH_CORRUPT);
        hearth_buf_release(&packed);
    }
}

/* ---- CPU profiles ---- */

static void a_cpu_profile_makes_one_tree_of_periods(void **state)
{
    (void)state;
    struct hearth_str strings[] = {HEARTH_STR(""),   HEARTH_STR("main"), HEARTH_STR("work"),
                                   HEARTH_STR("gc"), HEARTH_STR("cpu"),  HEARTH_STR("nanoseconds"),
                                   HEARTH_STR("inl")};
    struct hearth_value_type types[] = {{4, 5}, {4, 5}};
    struct hearth_function functions[] = {{.name = 1}, {.name = 2}, {.name = 3}, {.name = 6}};
    struct hearth_line lines[] = {{0, 3}, {1, 7}, {2, 1}, {3, 9}};
    struct hearth_location locations[] = {{.first_line = 0, .n_lines = 1},
                                          {.first_line = 1, .n_lines = 1},
                                          {.first_line = 2, .n_lines = 2}};
    uint32_t stack_first[] = {0, 2, 3, 4};
    uint32_t stack_locs[] = {1, 0, 0, 2}; /* leaf first */
    int64_t values[] = {5, 50, 2, 20, 1, 10};
    struct hearth_profile profile = {.strings = strings,
                                     .types = types,
                                     .functions = functions,
                                     .lines = lines,
                                     .locations = locations,
                                     .stack_first = stack_first,
                                     .stack_locs = stack_locs,
                                     .values = values,
                                     .n_types = 2,
                                     .n_samples = 3,
                                     .n_locations = 3,
                                     .period_type = {4, 5},
                                     .period = 20000000};
    struct hearth_snapshot_trees trees;
    assert_int_equal(
        hearth_snapshot_trees_of_profile(&profile, NULL, NULL, &g_arena, &trees, &g_err),
        HEARTH_OK);
    assert_int_equal(trees.n_trees, 1);
    assert_string_equal(text_of(&trees), "root 8 160:0\n"
                                         "root/gc:1;inl:9 1 20:20\n"
                                         "root/main:3 7 140:40\n"
                                         "root/main:3/work:7 5 100:100\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(time_between_two_dumps_belongs_to_the_frames_that_both_have,
                                        make_arena, free_arena),
        cmocka_unit_test_setup_teardown(durations_are_real_times_not_periods, make_arena,
                                        free_arena),
        cmocka_unit_test_setup_teardown(equal_numbers_in_two_segments_are_two_snapshots, make_arena,
                                        free_arena),
        cmocka_unit_test_setup_teardown(a_clock_set_back_and_snapshots_without_frames_are_tolerated,
                                        make_arena, free_arena),
        cmocka_unit_test_setup_teardown(an_empty_range_has_no_tree, make_arena, free_arena),
        cmocka_unit_test_setup_teardown(many_siblings_are_sorted, make_arena, free_arena),
        cmocka_unit_test_setup_teardown(the_published_cases_are_reproduced, make_arena, free_arena),
        cmocka_unit_test_setup_teardown(stored_snapshots_are_restored, make_arena, free_arena),
        cmocka_unit_test_setup_teardown(cut_snapshots_are_restored_and_counted, make_arena,
                                        free_arena),
        cmocka_unit_test_setup_teardown(impossible_marks_of_cut_snapshots_are_refused, make_arena,
                                        free_arena),
        cmocka_unit_test_setup_teardown(a_cpu_profile_makes_one_tree_of_periods, make_arena,
                                        free_arena),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
