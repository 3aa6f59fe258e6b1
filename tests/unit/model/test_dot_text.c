/*
 * test_dot_text.c -- Graphviz text: exact for a small graph, and read back by the language's grammar for names of all kinds.
 */
#include "hearth/model/dot_text.h"
#include "hearth/model/profile_type.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static const struct hearth_profile_type g_cpu = {HEARTH_STR("process_cpu"), HEARTH_STR("cpu"),
                                                 HEARTH_STR("nanoseconds"), HEARTH_STR("cpu"),
                                                 HEARTH_STR("nanoseconds")};
static const struct hearth_profile_type g_heap = {HEARTH_STR("memory"), HEARTH_STR("inuse_space"),
                                                  HEARTH_STR("bytes"), HEARTH_STR("space"),
                                                  HEARTH_STR("bytes")};
static const struct hearth_profile_type g_locks = {HEARTH_STR("block"), HEARTH_STR("contentions"),
                                                   HEARTH_STR("count"), HEARTH_STR("contentions"),
                                                   HEARTH_STR("count")};

static void write_graph(const struct hearth_call_graph *graph,
                        const struct hearth_profile_type *type, struct hearth_buf *out)
{
    struct hearth_buf title;

    hearth_buf_init(out, 0);
    hearth_buf_init(&title, 0);
    hearth_profile_type_format(type, &title);
    hearth_dot_write(graph, hearth_buf_view(&title), type->sample_unit, out);
    hearth_buf_release(&title);
    hearth_buf_byte(out, 0);
    assert_false(hearth_buf_failed(out));
}

static void a_small_graph_has_the_expected_text(void **state)
{
    (void)state;
    struct hearth_call_node nodes[] = {
        {HEARTH_STR("main"), 0, 2000000000},
        {HEARTH_STR("db.(*Conn).Query"), 500000000, 1500000000},
    };
    struct hearth_call_edge edges[] = {{0, 1, 1500000000, false}, {1, 1, 250000, true}};
    struct hearth_call_graph graph = {nodes, 2, 7, edges, 2, 3, 2000000000};
    struct hearth_buf text;
    write_graph(&graph, &g_cpu, &text);
    assert_string_equal(
        text.p,
        "digraph \"process_cpu:cpu:nanoseconds:cpu:nanoseconds\" {\n"
        "  graph [fontname=\"sans-serif\", labelloc=t, labeljust=l, "
        "label=\"process_cpu:cpu:nanoseconds:cpu:nanoseconds\\ltotal 2.00 s, 2 of 7 "
        "functions\\l\"];\n"
        "  node [fontname=\"sans-serif\", shape=box, style=filled, margin=\"0.16,0.08\"];\n"
        "  edge [fontname=\"sans-serif\", fontsize=10];\n"
        "  n1 [label=\"main\\n0 of 2.00 s (100.00%)\", self=0, total=2000000000,"
        " fontsize=10, fillcolor=\"#f49858\", tooltip=\"main\"];\n"
        "  n2 [label=\"db.(*Conn).Query\\n500 ms (25.00%)\\nof 1.50 s (75.00%)\", self=500000000,"
        " total=1500000000, fontsize=17, fillcolor=\"#f5b080\", tooltip=\"db.(*Conn).Query\"];\n"
        "  n1 -> n2 [label=\" 1.50 s\", value=1500000000, weight=76, penwidth=4.0, "
        "tooltip=\"main -> db.(*Conn).Query\"];\n"
        "  n2 -> n2 [label=\" 250 us\", value=250000, weight=1, penwidth=1.0, style=dashed, "
        "tooltip=\"db.(*Conn).Query -> db.(*Conn).Query\"];\n"
        "}\n");
    hearth_buf_release(&text);
}

/* The label of a single node with that name and value. */
static void assert_label(const char *name, int64_t value, const struct hearth_profile_type *type,
                         const char *want)
{
    struct hearth_call_node node = {hearth_str_c(name), value, value};
    struct hearth_call_graph graph = {
        .nodes = &node, .n_nodes = 1, .n_functions = 1, .total = value};
    struct hearth_buf text;
    write_graph(&graph, type, &text);
    const char *from = strstr(text.p, "n1 [label=\"");
    assert_non_null(from);
    from += strlen("n1 [label=\"");
    const char *to = strstr(from, " (100.00%)\", self=");
    assert_non_null(to);
    assert_int_equal((size_t)(to - from), strlen(want));
    assert_memory_equal(from, want, strlen(want));
    hearth_buf_release(&text);
}

static void values_are_in_the_unit_of_the_type(void **state)
{
    (void)state;
    assert_label("f", 999, &g_cpu, "f\\n999 ns");
    assert_label("f", 1500, &g_cpu, "f\\n1.50 us");
    assert_label("f", INT64_C(90) * 1000000000, &g_cpu, "f\\n1.50 min");
    assert_label("f", INT64_C(172800) * 1000000000, &g_cpu, "f\\n2.00 d");
    assert_label("f", 1536, &g_heap, "f\\n1.50 KiB");
    assert_label("f", INT64_C(5) << 40, &g_heap, "f\\n5.00 TiB");
    assert_label("f", 123456789, &g_locks, "f\\n123456789");
}

static void names_cannot_leave_their_quotes(void **state)
{
    (void)state;
    assert_label("operator\"\" _km", 1, &g_locks, "operator\\\"\\\" _km\\n1");
    assert_label("C:\\new\\N", 1, &g_locks, "C:\\\\new\\\\N\\n1");
    assert_label("two\nlines\tand\x7f", 1, &g_locks, "two lines and \\n1");
    assert_label("f(A&, B&&) & x", 1, &g_locks, "f(A&, B&&) & x\\n1");
    assert_label("a&lt;b &#38; &;", 1, &g_locks, "a&amp;lt;b &amp;#38; &;\\n1");
    assert_label("std::vector<int>", 1, &g_locks, "std::vector<int>\\n1");
    assert_label("\xc3\xa4 \xe2\x82\xac", 1, &g_locks, "\xc3\xa4 \xe2\x82\xac\\n1");
    assert_label("ends with \\", 1, &g_locks, "ends with \\\\\\n1");
}

static void long_names_are_broken_between_their_parts_and_whole_in_the_tooltip(void **state)
{
    (void)state;
    assert_label(
        "github.com/prometheus/client_golang/prometheus/promhttp.HandlerForTransactional.func1", 1,
        &g_locks,
        "github.com/prometheus/client_golang/prometheus/promhttp.\\n"
        "HandlerForTransactional.func1\\n1");
    assert_label("std::collections::btree::map::BTreeMap::first_of_all_keys::closure", 1, &g_locks,
                 "std::collections::btree::map::BTreeMap::\\nfirst_of_all_keys::closure\\n1");
    char name[121], want[160];
    memset(name, 'x', 120);
    name[120] = '\0';
    (void)snprintf(want, sizeof want, "%.56s\\n%.56s\\n%.8s\\n1", name, name, name);
    assert_label(name, 1, &g_locks, want);
    for (size_t i = 0; i + 2 <= 120;
         i += 2) { /* characters of two bytes, cut by neither 55 nor 56 */
        memcpy(name + i, "\xc3\xa4", 2);
    }
    name[0] = 'a';
    name[1] = 'b';
    name[118] = '\0';
    memmove(name + 1, name + 2, 117);
    (void)snprintf(want, sizeof want, "%.55s\\n%.56s\\n%s\\n1", name, name + 55, name + 111);
    assert_label(name, 1, &g_locks, want);

    struct hearth_call_node node = {
        hearth_str_c("a/\"long\"/name/that/is/broken/somewhere/in/the/middle/of/it/all"), 1, 1};
    struct hearth_call_graph graph = {.nodes = &node, .n_nodes = 1, .n_functions = 1, .total = 1};
    struct hearth_buf text;
    write_graph(&graph, &g_locks, &text);
    assert_non_null(strstr(
        text.p,
        "tooltip=\"a/\\\"long\\\"/name/that/is/broken/somewhere/in/the/middle/of/it/all\"];"));
    hearth_buf_release(&text);
}

/* ---- the grammar: digraph ID { stmt; ... }, as far as it is used ---- */

enum token {
    TOKEN_END,
    TOKEN_ID,
    TOKEN_ARROW,
    TOKEN_PUNCTUATION,
};

struct reader {
    const char *p;
    char punctuation;
};

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-';
}

static enum token next(struct reader *r)
{
    r->punctuation = 0;
    while (*r->p == ' ' || *r->p == '\n') {
        r->p++;
    }
    if (*r->p == '\0') {
        return TOKEN_END;
    }
    if (r->p[0] == '-' && r->p[1] == '>') {
        r->p += 2;
        return TOKEN_ARROW;
    }
    if (*r->p == '"') {
        for (r->p++; *r->p != '"'; r->p++) {
            assert_true((unsigned char)*r->p >= ' ');
            if (*r->p == '\\') {
                r->p++;
                assert_non_null(strchr("\"\\nl", *r->p)); /* no escape but those that we write */
            }
        }
        r->p++;
        return TOKEN_ID;
    }
    if (is_word(*r->p)) {
        while (is_word(*r->p)) {
            r->p++;
        }
        return TOKEN_ID;
    }
    r->punctuation = *r->p++;
    assert_non_null(strchr("{}[]=,;", r->punctuation));
    return TOKEN_PUNCTUATION;
}

static void expect(struct reader *r, char punctuation)
{
    assert_int_equal(next(r), TOKEN_PUNCTUATION);
    assert_int_equal(r->punctuation, punctuation);
}

static void read_attributes(struct reader *r)
{
    do {
        assert_int_equal(next(r), TOKEN_ID);
        expect(r, '=');
        assert_int_equal(next(r), TOKEN_ID);
        assert_int_equal(next(r), TOKEN_PUNCTUATION);
    } while (r->punctuation == ',');
    assert_int_equal(r->punctuation, ']');
    expect(r, ';');
}

/* Statements in the braces. */
static size_t read_digraph(const char *text)
{
    struct reader r = {.p = text};
    size_t n = 0;
    assert_int_equal(next(&r), TOKEN_ID);
    assert_int_equal(next(&r), TOKEN_ID);
    expect(&r, '{');
    while (next(&r) == TOKEN_ID) {
        enum token token = next(&r);
        if (token == TOKEN_ARROW) {
            assert_int_equal(next(&r), TOKEN_ID);
            token = next(&r);
        }
        assert_int_equal(token, TOKEN_PUNCTUATION);
        assert_int_equal(r.punctuation, '[');
        read_attributes(&r);
        n++;
    }
    assert_int_equal(r.punctuation, '}');
    assert_int_equal(next(&r), TOKEN_END);
    return n;
}

static void the_text_is_a_digraph_for_any_names(void **state)
{
    (void)state;
    static const char bytes[] = "\"\\\n&;<>{}[]=,-#lN \t\x01/a*";
    uint64_t random = 1;
    for (int round = 0; round < 500; round++) {
        char names[6][140];
        struct hearth_call_node nodes[6];
        struct hearth_call_edge edges[36];
        size_t n_edges = 0;
        for (uint32_t i = 0; i < 6; i++) {
            for (size_t k = 0; k < sizeof names[i]; k++) {
                random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
                names[i][k] = bytes[(random >> 33) % (sizeof bytes - 1)];
            }
            nodes[i] = (struct hearth_call_node){hearth_str_n(names[i], sizeof names[i]), (int)i,
                                                 INT64_MAX - (int)i};
            for (uint32_t to = 0; to < 6; to++) {
                edges[n_edges++] = (struct hearth_call_edge){i, to, (int)to + 1, to % 2 == 0};
            }
        }
        struct hearth_call_graph graph = {nodes, 6, 6, edges, n_edges, n_edges, INT64_MAX};
        struct hearth_buf text;
        write_graph(&graph, &g_cpu, &text);
        assert_int_equal(read_digraph(text.p), 3 + 6 + 36);
        hearth_buf_release(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_small_graph_has_the_expected_text),
        cmocka_unit_test(values_are_in_the_unit_of_the_type),
        cmocka_unit_test(names_cannot_leave_their_quotes),
        cmocka_unit_test(long_names_are_broken_between_their_parts_and_whole_in_the_tooltip),
        cmocka_unit_test(the_text_is_a_digraph_for_any_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
