/* test_flamebearer.c -- flame graphs as Pyroscope's JSON, whole and in pieces. */
#include "query/flamebearer.h"
#include "tree_fixture.h"

#include <stdio.h>

/* Writes an object with all of a flame graph, so many bytes at a time; how many times. */
static size_t write_object(struct hearth_flamebearer bearer, size_t n_bytes, struct hearth_buf *out)
{
    struct hearth_json json;
    size_t n_times = 1;

    hearth_buf_init(out, 0);
    hearth_json_init(&json, out);
    hearth_json_object(&json);
    while (hearth_flamebearer_more(&bearer, n_bytes, &json)) {
        n_times++;
    }
    hearth_json_object_end(&json);

    assert_false(hearth_buf_failed(out));
    hearth_buf_byte(out, '\0');
    return n_times;
}

static struct hearth_flamebearer_about about(const char *name, const char *type, const char *unit)
{
    return (struct hearth_flamebearer_about){
        .name = hearth_str_c(name), .type = hearth_str_c(type), .unit = hearth_str_c(unit)};
}

static struct hearth_flamegraph make_graph(struct fixture *f)
{
    struct hearth_flamegraph graph;
    seal(f);
    assert_int_equal(hearth_flamegraph_make(&f->tree, 0, &f->arena, &graph, NULL), HEARTH_OK);
    return graph;
}

static void a_graph_has_names_levels_totals_and_metadata(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    add(&f, "main;work", 3);
    add(&f, "main", 1);
    struct hearth_flamegraph graph = make_graph(&f);
    struct hearth_flamebearer_about shop = about("shop \"a\"", "cpu", "nanoseconds");
    struct hearth_buf out;

    (void)write_object(hearth_flamebearer_single(&graph, &shop), SIZE_MAX, &out);
    assert_string_equal(
        out.p, "{\"version\":1,\"flamebearer\":{\"names\":[\"total\",\"main\",\"work\"],\"levels\":"
               "[[0,4,0,0],[0,4,1,1],[1,3,3,2]],\"numTicks\":4,\"maxSelf\":3},\"metadata\":"
               "{\"format\":\"single\",\"spyName\":\"\",\"sampleRate\":1000000000,\"units\":"
               "\"samples\",\"name\":\"shop \\\"a\\\"\"}}");

    hearth_buf_release(&out);
    fixture_release(&f);
}

static void an_empty_graph_is_its_root(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct hearth_flamegraph graph = make_graph(&f);
    struct hearth_flamebearer_about none = about("", "", "");
    struct hearth_buf out;

    (void)write_object(hearth_flamebearer_single(&graph, &none), SIZE_MAX, &out);
    assert_non_null(strstr(out.p, "\"names\":[\"total\"],\"levels\":[[0,0,0,0]],\"numTicks\":0,"));

    hearth_buf_release(&out);
    fixture_release(&f);
}

static void units_and_rates_depend_on_the_type(void **state)
{
    (void)state;
    static const struct {
        const char *type, *unit, *rate_and_units;
    } cases[] = {
        {"cpu", "nanoseconds", "\"sampleRate\":1000000000,\"units\":\"samples\""},
        {"samples", "count", "\"sampleRate\":100,\"units\":\"objects\""},
        {"alloc_objects", "count", "\"sampleRate\":100,\"units\":\"objects\""},
        {"inuse_objects", "count", "\"sampleRate\":100,\"units\":\"objects\""},
        {"goroutine", "count", "\"sampleRate\":100,\"units\":\"objects\""},
        {"inuse_space", "bytes", "\"sampleRate\":100,\"units\":\"bytes\""},
        {"wall", "nanoseconds", "\"sampleRate\":100,\"units\":\"nanoseconds\""},
    };
    struct fixture f;
    fixture_init(&f);
    add(&f, "main", 1);
    struct hearth_flamegraph graph = make_graph(&f);

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        struct hearth_flamebearer_about of = about("x", cases[i].type, cases[i].unit);
        struct hearth_buf out;
        (void)write_object(hearth_flamebearer_single(&graph, &of), SIZE_MAX, &out);
        assert_non_null(strstr(out.p, cases[i].rate_and_units));
        hearth_buf_release(&out);
    }

    fixture_release(&f);
}

static void a_comparison_has_the_totals_of_both_sides(void **state)
{
    (void)state;
    struct fixture left, right;
    fixture_init(&left);
    fixture_init(&right);
    add(&left, "main;a", 2);
    add(&right, "main;b", 5);
    seal(&left);
    seal(&right);
    struct hearth_flame_diff diff;
    assert_int_equal(hearth_flame_diff_make(&left.tree, &right.tree, 0, &left.arena, &diff, NULL),
                     HEARTH_OK);
    struct hearth_flamebearer_about of = about("x", "cpu", "nanoseconds");
    struct hearth_buf out;

    (void)write_object(hearth_flamebearer_double(&diff, &of), SIZE_MAX, &out);
    assert_non_null(strstr(out.p, "\"levels\":[[0,2,0,0,5,0,0],"));
    assert_non_null(strstr(out.p, "\"numTicks\":7,\"maxSelf\":5}"));
    assert_non_null(strstr(out.p, "\"format\":\"double\""));
    assert_non_null(strstr(out.p, "},\"leftTicks\":2,\"rightTicks\":5}"));

    hearth_buf_release(&out);
    fixture_release(&left);
    fixture_release(&right);
}

/* A level of more values than are written at once, so that pieces end inside it. */
static void pieces_of_any_size_make_the_same_text(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    for (int i = 0; i < 300; i++) {
        char stack[32];
        (void)snprintf(stack, sizeof stack, "main;f%d;g", i);
        add(&f, stack, 1 + i);
    }
    struct hearth_flamegraph graph = make_graph(&f);
    struct hearth_flamebearer_about of = about("x", "cpu", "nanoseconds");
    struct hearth_buf whole;
    assert_int_equal(write_object(hearth_flamebearer_single(&graph, &of), SIZE_MAX, &whole), 1);

    static const size_t sizes[] = {1, 7, 100, 1000, 5000};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(sizes); i++) {
        struct hearth_buf out;
        size_t n = write_object(hearth_flamebearer_single(&graph, &of), sizes[i], &out);
        assert_true(n > 1);
        assert_string_equal(out.p, whole.p);
        hearth_buf_release(&out);
    }

    hearth_buf_release(&whole);
    fixture_release(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_graph_has_names_levels_totals_and_metadata),
        cmocka_unit_test(an_empty_graph_is_its_root),
        cmocka_unit_test(units_and_rates_depend_on_the_type),
        cmocka_unit_test(a_comparison_has_the_totals_of_both_sides),
        cmocka_unit_test(pieces_of_any_size_make_the_same_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
