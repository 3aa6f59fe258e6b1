/* test_chrome_profile.c -- V8's CPU and heap profiles: times, hits, trees, and what is refused. */
#include "hearth/format/chrome_profile.h"

#include "print_profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#define FRAME(name, line) \
    "\"callFrame\":{\"functionName\":\"" name "\",\"url\":\"x.js\",\"lineNumber\":" line "}"
#define NODE(id, name, rest) "{\"id\":" id "," FRAME(name, "1") rest "}"

typedef enum hearth_status decode_fn(struct hearth_str bytes,
                                     const struct hearth_pprof_limits *limits,
                                     struct hearth_arena *arena, struct hearth_profile *ret,
                                     struct hearth_pprof_notes *notes, struct hearth_err *err);

struct decoded {
    struct hearth_arena arena;
    struct hearth_profile profile;
    struct hearth_pprof_notes notes;
    struct hearth_err err;
    enum hearth_status status;
};

static void decode(struct decoded *d, decode_fn *by, struct hearth_str text, uint32_t max_depth)
{
    const struct hearth_pprof_limits limits = {.max_depth = max_depth, .max_entries = 500000};

    *d = (struct decoded){.err = HEARTH_ERR_INIT};
    hearth_arena_init(&d->arena, 256u << 20);
    d->status = by(text, &limits, &d->arena, &d->profile, &d->notes, &d->err);
}

static void release(struct decoded *d)
{
    hearth_arena_release(&d->arena);
}

static void expect_text(decode_fn *by, const char *text, const char *want)
{
    struct decoded d;
    struct hearth_buf got;

    decode(&d, by, hearth_str_c(text), 0);
    if (d.status != HEARTH_OK) {
        fail_msg("%s: %s", text, d.err.msg);
    }
    hearth_buf_init(&got, 0);
    print_profile("x", &d.profile, &got);
    if (!hearth_str_eq_c(hearth_buf_view(&got), want)) {
        fail_msg("%s is read as:\n%.*s", text, (int)got.n, got.p);
    }
    hearth_buf_release(&got);
    release(&d);
}

static void expect_refusal(decode_fn *by, const char *text, const char *part)
{
    struct decoded d;

    decode(&d, by, hearth_str_c(text), 0);
    if (d.status != HEARTH_INVALID_ARGUMENT || strstr(d.err.msg, part) == NULL) {
        fail_msg("expected \"%s\", got status %d: %s", part, (int)d.status, d.err.msg);
    }
    release(&d);
}

/* ---- CPU ---- */

static void counts_each_sample_until_the_next_one(void **state)
{
    (void)state;
    expect_text(
        hearth_cpuprofile_decode,
        "{\"samples\":[3,3,2,4],\"timeDeltas\":[100,10,20,30],\"startTime\":1000,\"endTime\":1200,"
        "\"nodes\":[" NODE("4", "(idle)", "") "," NODE("3", "", ",\"children\":[]") "," NODE(
            "1", "(root)", ",\"children\":[2,4]") "," NODE("2", "f", ",\"children\":[3]") "]}",
        "x, period cpu/nanoseconds, from 0 for 200000\n  samples/count  wall/nanoseconds\n"
        "f:2 1 30000\n(idle):2 1 40000\nf:2;(anonymous):2 2 30000\n");
}

static void builds_the_tree_of_nodes_that_name_their_parents(void **state)
{
    (void)state;
    static const char *const nodes[] = {
        /* only parents, as in the chunks of a trace */
        NODE("3", "b", ",\"parent\":2") "," NODE("2", "a", ",\"parent\":1") "," NODE("1", "(root)",
                                                                                     ""),
        /* parents and children */
        NODE("1", "(root)", ",\"children\":[2]") "," NODE(
            "2", "a", ",\"parent\":1,\"children\":[3]") "," NODE("3", "b", ",\"parent\":2"),
        /* a root whose parent is null */
        NODE("2", "a", ",\"children\":[3]") "," NODE(
            "1", "(root)", ",\"parent\":null,\"children\":[2]") "," NODE("3", "b", ""),
    };

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(nodes); i++) {
        char text[1024];
        (void)snprintf(text, sizeof text,
                       "{\"samples\":[3,2],\"timeDeltas\":[0,10],\"startTime\":0,\"endTime\":30,"
                       "\"nodes\":[%s]}",
                       nodes[i]);
        expect_text(hearth_cpuprofile_decode, text,
                    "x, period cpu/nanoseconds, from 0 for 30000\n"
                    "  samples/count  wall/nanoseconds\na:2 1 20000\na:2;b:2 1 10000\n");
    }
}

static void lets_time_stand_still_while_it_runs_backwards(void **state)
{
    (void)state;
    expect_text(hearth_cpuprofile_decode,
                "{\"samples\":[1,2,1],\"timeDeltas\":[50,-20,30],\"startTime\":0,\"endTime\":70,"
                "\"nodes\":[" NODE("1", "a", "") "," NODE("2", "b", "") "]}",
                "x, period cpu/nanoseconds, from 0 for 70000\n  samples/count  wall/nanoseconds\n"
                "a:2 2 10000\nb:2 1 10000\n");
}

static void divides_the_time_among_hits_without_samples(void **state)
{
    (void)state;
    expect_text(
        hearth_cpuprofile_decode,
        "{\"startTime\":0,\"endTime\":10,\"nodes\":[" NODE(
            "1", "(root)",
            ",\"hitCount\":1,\"children\":[2,3]") "," NODE("2", "a",
                                                           ",\"hitCount\":1") "," NODE("3", "b",
                                                                                       ",\"hitCount"
                                                                                       "\":1") "]}",
        "x, period cpu/nanoseconds, from 0 for 10000\n  samples/count  wall/nanoseconds\n"
        "(root):0 1 3333\na:2 1 3333\nb:2 1 3334\n");
}

static void names_the_fault_of_a_cpu_profile(void **state)
{
    (void)state;
#define CPU(nodes, samples, deltas) \
    "{\"nodes\":[" nodes "],\"samples\":[" samples "],\"timeDeltas\":[" deltas "]}"
    static const char *const cases[][2] = {
        {CPU(NODE("1", "a", ""), "2", "1"), "there is no node 2"},
        {CPU(NODE("1", "a", ",\"children\":[9]"), "", ""), "there is no node 9"},
        {CPU(NODE("1", "a", "") "," NODE("1", "b", ""), "", ""), "node 1 is there twice"},
        {CPU(NODE("1", "a", ",\"children\":[2,2]") "," NODE("2", "b", ""), "", ""),
         "node 2 has two parents"},
        {CPU(NODE("1", "a", ",\"children\":[2]") "," NODE("2", "b", ",\"children\":[1]"), "", ""),
         "2 nodes are among their own callers"},
        {CPU(NODE("1", "a", ",\"children\":[2]") "," NODE("2", "b",
                                                          ",\"parent\":3") "," NODE("3", "c", ""),
             "", ""),
         "node 2 has two parents"},
        {CPU(NODE("1", "a", ",\"parent\":4"), "", ""), "there is no node 4"},
        {CPU(NODE("1", "a", ",\"children\":[1]"), "", ""), "1 nodes are among their own callers"},
        {CPU(NODE("1", "a", ",\"hitCount\":-1"), "", ""), "node 1 has a negative hitCount"},
        {CPU("{\"id\":3}", "", ""), "node 3 has no callFrame"},
        {CPU(NODE("1", "a", ""), "1,1", "1"), "sample 1 has no time in timeDeltas"},
        {CPU(NODE("1", "a", ""), "1", "1,1"), "more timeDeltas than the 1 samples"},
        {CPU(NODE("1", "a", ""), "1,1", "9e15,9e15"), "the times of the samples exceed 64 bits"},
        {CPU(NODE("1", "a", ""), "1.5", "1"), "no integer of 64 bits"},
        {"{\"nodes\":[],\"samples\":[]}", "only one of \"samples\" and \"timeDeltas\""},
        {"{\"samples\":[]}", "the file has no \"nodes\""},
        {"{\"nodes\":[],\"startTime\":-1}", "the time is negative"},
    };

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        expect_refusal(hearth_cpuprofile_decode, cases[i][0], cases[i][1]);
    }
}

/* ---- heap ---- */

#define HEAP(name, size, children) \
    "{\"children\":[" children "],\"selfSize\":" size "," FRAME(name, "4") "}"

static void reads_nodes_that_follow_their_children(void **state)
{
    (void)state;
    expect_text(hearth_heapprofile_decode,
                "{\"samples\":[{\"size\":1}],\"head\":" HEAP(
                    "(root)", "0", HEAP("a", "5", HEAP("b", "7", "")) "," HEAP("a", "1", "")) "}",
                "x, period /, from 0 for 0\n  inuse_space/bytes\na:5 6\na:5;b:5 7\n");
}

static void names_the_fault_of_a_heap_profile(void **state)
{
    (void)state;
    expect_refusal(hearth_heapprofile_decode, "{}", "the file has no \"head\"");
    expect_refusal(hearth_heapprofile_decode, "{\"head\":" HEAP("a", "-1", "") "}",
                   "the size of a node is negative");
    expect_refusal(hearth_heapprofile_decode, "{\"head\":{\"selfSize\":1}}",
                   "the node that ends here has no callFrame");
    expect_refusal(hearth_heapprofile_decode, "{\"head\":{" FRAME("f", "1") ",\"hitCount\":1}}",
                   "the node that ends here has no selfSize");
    expect_refusal(hearth_heapprofile_decode, "{\"head\":[]}", "'[' where an object is expected");
    expect_refusal(hearth_heapprofile_decode, "{\"head\":" HEAP("a", "1", "7") "}",
                   "'7' where an object is expected");
}

/* A chain of nodes. */
static struct hearth_buf make_deep_heap(size_t depth)
{
    struct hearth_buf text;

    hearth_buf_init(&text, 0);
    hearth_buf_cstr(&text, "{\"head\":");
    for (size_t i = 0; i < depth; i++) {
        hearth_buf_cstr(&text, "{\"selfSize\":1," FRAME("f", "1") ",\"children\":[");
    }
    for (size_t i = 0; i < depth; i++) {
        hearth_buf_cstr(&text, "]}");
    }
    hearth_buf_byte(&text, '}');

    return text;
}

static void limits_the_depth_of_a_heap_profile(void **state)
{
    (void)state;
    struct hearth_buf text = make_deep_heap(511);
    struct decoded d;

    decode(&d, hearth_heapprofile_decode, hearth_buf_view(&text), 500);
    assert_int_equal(d.status, HEARTH_OK);
    assert_int_equal(d.profile.n_samples, 500);
    assert_int_equal(d.profile.values[499], 12);
    assert_int_equal(d.notes.stacks_cut, 11);
    release(&d);
    hearth_buf_release(&text);

    text = make_deep_heap(100000);
    decode(&d, hearth_heapprofile_decode, hearth_buf_view(&text), 500);
    assert_int_equal(d.status, HEARTH_INVALID_ARGUMENT);
    assert_non_null(strstr(d.err.msg, "nested deeper than 1024 levels"));
    release(&d);
    hearth_buf_release(&text);
}

static void limits_the_number_of_nodes(void **state)
{
    (void)state;
    struct hearth_buf text;
    struct decoded d;

    hearth_buf_init(&text, 0);
    hearth_buf_cstr(&text, "{\"nodes\":[");
    for (int i = 0; i <= 500000; i++) {
        hearth_buf_printf(&text, "%s{\"id\":%d,\"callFrame\":{}}", i == 0 ? "" : ",", i);
    }
    hearth_buf_cstr(&text, "]}");
    decode(&d, hearth_cpuprofile_decode, hearth_buf_view(&text), 500);
    assert_int_equal(d.status, HEARTH_INVALID_ARGUMENT);
    assert_non_null(strstr(d.err.msg, "more than 500000 nodes; raise it with --max-table-entries"));
    release(&d);
    hearth_buf_release(&text);
}

/* A walk through all callers of each root would take minutes. */
static void reads_roots_within_roots_in_linear_time(void **state)
{
    (void)state;
    struct hearth_buf text;
    struct decoded d;
    const int n = 300000;

    hearth_buf_init(&text, 0);
    hearth_buf_cstr(&text, "{\"nodes\":[");
    for (int i = 0; i < n; i++) {
        hearth_buf_printf(&text,
                          "%s{\"id\":%d,\"hitCount\":1,\"children\":[%d],"
                          "\"callFrame\":{\"functionName\":\"(root)\"}}",
                          i == 0 ? "" : ",", i, i + 1);
    }
    hearth_buf_printf(&text, ",{\"id\":%d,\"hitCount\":1," FRAME("leaf", "1") "}]}", n);

    clock_t start = clock();
    decode(&d, hearth_cpuprofile_decode, hearth_buf_view(&text), 500);
    assert_int_equal(d.status, HEARTH_OK);
    assert_int_equal(d.profile.n_samples, 2);
    assert_int_equal(d.profile.values[0], n);
    assert_int_equal(d.profile.stack_first[2], 2);
    assert_true((clock() - start) / CLOCKS_PER_SEC < 10);
    release(&d);
    hearth_buf_release(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_each_sample_until_the_next_one),
        cmocka_unit_test(builds_the_tree_of_nodes_that_name_their_parents),
        cmocka_unit_test(lets_time_stand_still_while_it_runs_backwards),
        cmocka_unit_test(divides_the_time_among_hits_without_samples),
        cmocka_unit_test(names_the_fault_of_a_cpu_profile),
        cmocka_unit_test(reads_nodes_that_follow_their_children),
        cmocka_unit_test(names_the_fault_of_a_heap_profile),
        cmocka_unit_test(limits_the_depth_of_a_heap_profile),
        cmocka_unit_test(limits_the_number_of_nodes),
        cmocka_unit_test(reads_roots_within_roots_in_linear_time),
    };

    return cmocka_run_group_tests_name("chrome_profile", tests, NULL, NULL);
}
