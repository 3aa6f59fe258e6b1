/* test_span_tags.c -- which selector the tags of a span make. */
#include "hearth/engine/span_profiles.h"
#include "hearth/selector/selector.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct hearth_arena g_arena;
static struct hearth_err g_err;
static struct hearth_str g_selector, g_reason;
static struct hearth_known_span g_span; /* ids and name, for tests that set them */

/* Pairs, ended by a NULL. */
#define MAX_PAIRS 300
struct pairs {
    const char *v[2 * MAX_PAIRS + 1];
};

static enum hearth_status ask(const char *query, struct pairs mappings, const char *service,
                              struct pairs tags)
{
    struct hearth_tag_mapping mapping[MAX_PAIRS];
    struct hearth_span_tag tag[MAX_PAIRS];
    struct hearth_tag_rules rules = {.mappings = mapping, .query = hearth_str_c(query)};
    size_t n_tags = 0;
    for (; mappings.v[2 * rules.n_mappings] != NULL; rules.n_mappings++) {
        mapping[rules.n_mappings].tag = hearth_str_c(mappings.v[2 * rules.n_mappings]);
        mapping[rules.n_mappings].label = hearth_str_c(mappings.v[2 * rules.n_mappings + 1]);
    }
    for (; tags.v[2 * n_tags] != NULL; n_tags++) {
        tag[n_tags].key = hearth_str_c(tags.v[2 * n_tags]);
        tag[n_tags].value = hearth_str_c(tags.v[2 * n_tags + 1]);
    }
    g_err = (struct hearth_err)HEARTH_ERR_INIT;
    g_span.service = hearth_str_c(service);
    g_span.tags = tag;
    g_span.n_tags = n_tags;
    return hearth_span_selector(&rules, &g_span, &g_arena, &g_selector, &g_reason, &g_err);
}

/* What came out is read by the selector's own parser, as the same. */
static void assert_parses(struct hearth_str text)
{
    struct hearth_selector selector;
    struct hearth_buf again;
    hearth_selector_init(&selector);
    hearth_buf_init(&again, 0);
    assert_int_equal(hearth_selector_parse(&selector, text, &g_arena, NULL, &g_err), HEARTH_OK);
    hearth_selector_format(&selector, &again);
    assert_true(hearth_str_eq(hearth_buf_view(&again), text));
    hearth_buf_release(&again);
    hearth_selector_release(&selector);
}

#define TAGS(...) ((struct pairs){{__VA_ARGS__}})
#define NONE      ((struct pairs){{NULL}})

static void assert_selector(const char *query, struct pairs mappings, const char *service,
                            struct pairs tags, const char *expected)
{
    assert_int_equal(ask(query, mappings, service, tags), HEARTH_OK);
    assert_int_equal(g_reason.n, 0);
    assert_non_null(g_selector.p);
    assert_string_equal(g_selector.p, expected);
    assert_parses(g_selector);
}

static void assert_no_selector(const char *query, struct pairs mappings, const char *service,
                               struct pairs tags, const char *reason)
{
    assert_int_equal(ask(query, mappings, service, tags), HEARTH_OK);
    assert_int_equal(g_selector.n, 0);
    assert_non_null(g_reason.p);
    assert_non_null(strstr(g_reason.p, reason));
}

static void assert_refused(const char *query, struct pairs mappings, const char *message)
{
    assert_int_equal(ask(query, mappings, "api", TAGS("pod", "p-1")), HEARTH_INVALID_ARGUMENT);
    if (strstr(g_err.msg, message) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", g_err.msg, message);
    }
}

static void six_tags_become_labels_by_default(void **state)
{
    (void)state;
    assert_selector("", NONE, "",
                    TAGS("service.namespace", "shop", "pod", "p-1", "http.method", "GET", "cluster",
                         "eu", "hostname", "h", "namespace", "default", "service.name", "cart"),
                    "{cluster=\"eu\", hostname=\"h\", namespace=\"default\", pod=\"p-1\", "
                    "service_name=\"cart\", service_namespace=\"shop\"}");
}

static void only_tags_that_the_span_has_are_used(void **state)
{
    (void)state;
    assert_selector("", NONE, "", TAGS("pod", "p-1", "other", "x"), "{pod=\"p-1\"}");
    assert_selector("", NONE, "", TAGS("pod", "p-1", "cluster", ""), "{pod=\"p-1\"}");
    assert_selector("", NONE, "", TAGS("pod", "\xff", "pod", "p-2"), "{pod=\"p-2\"}");
}

static void a_tag_overrides_the_service_as_service_name(void **state)
{
    (void)state;
    assert_selector("", NONE, "cart", TAGS("pod", "p-1"), "{pod=\"p-1\", service_name=\"cart\"}");
    assert_selector("", NONE, "cart", TAGS("service.name", "basket"), "{service_name=\"basket\"}");
    assert_selector("", TAGS("app", "service_name"), "cart", TAGS("app", "a"),
                    "{service_name=\"a\"}");
    assert_selector("", TAGS("app", ""), "cart", TAGS("app", "a", "pod", "p"),
                    "{app=\"a\", service_name=\"cart\"}");
}

static void tags_are_renamed_and_characters_that_labels_cannot_have_become_underscores(void **state)
{
    (void)state;
    assert_selector("", TAGS("k8s.pod.name", "pod", "k8s.node-name", "", "1st", "", "a/b c", ""),
                    "", TAGS("k8s.pod.name", "p", "k8s.node-name", "n", "1st", "f", "a/b c", "d"),
                    "{pod=\"p\", k8s_node_name=\"n\", _1st=\"f\", a_b_c=\"d\"}");
    assert_selector("", TAGS("x", "service.name"), "", TAGS("x", "y"), "{\"service.name\"=\"y\"}");
}

static void the_first_of_several_tags_for_one_label_counts(void **state)
{
    (void)state;
    assert_selector("", TAGS("k8s.pod.name", "pod", "pod", ""), "",
                    TAGS("pod", "second", "k8s.pod.name", "first"), "{pod=\"first\"}");
    assert_selector("", TAGS("k8s.pod.name", "pod", "pod", ""), "", TAGS("pod", "second"),
                    "{pod=\"second\"}");
    assert_selector("", NONE, "", TAGS("pod", "of the span", "pod", "of the resource"),
                    "{pod=\"of the span\"}");
}

static void values_cannot_leave_their_string(void **state)
{
    (void)state;
    assert_selector("", NONE, "", TAGS("pod", "a\"} \\ \n\t\x01`'"),
                    "{pod=\"a\\\"} \\\\ \\n\\t\\x01`'\"}");
    assert_selector("{x='${__span.tags.pod}', y=`${__span.tags.pod}`}", NONE, "",
                    TAGS("pod", "'`\", z=\"1"), "{x=\"'`\\\", z=\\\"1\", y=\"'`\\\", z=\\\"1\"}");
}

static void a_span_without_selectable_tags_has_a_reason_and_no_selector(void **state)
{
    (void)state;
    assert_no_selector("", NONE, "", NONE, "nothing is known of the span");
    assert_no_selector("", NONE, "", TAGS("http.method", "GET"), "nothing is known of the span");
    assert_no_selector("{${__tags}}", NONE, "", NONE, "nothing is known of the span");
    assert_no_selector("", TAGS("pod", ""), "", TAGS("cluster", "eu"),
                       "nothing is known of the span");
}

static void the_tags_are_inserted_at_their_variable(void **state)
{
    (void)state;
    assert_selector("{${__tags}}", NONE, "api", TAGS("pod", "p"),
                    "{pod=\"p\", service_name=\"api\"}");
    assert_selector("{a=\"b\", ${__tags}, c!=\"d\"}", NONE, "api", TAGS("pod", "p"),
                    "{a=\"b\", pod=\"p\", service_name=\"api\", c!=\"d\"}");
    assert_selector("process_cpu{${__tags}}", NONE, "api", NONE,
                    "{__name__=\"process_cpu\", service_name=\"api\"}");
}

static void missing_tags_leave_no_comma_behind(void **state)
{
    (void)state;
    static const char *const queries[] = {"{${__tags}, x=\"y\"}", "{ ${__tags} ,x=\"y\"}",
                                          "{x=\"y\", ${__tags}}", "{x=\"y\",${__tags},}"};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(queries); i++) {
        assert_selector(queries[i], NONE, "", NONE, "{x=\"y\"}");
    }
}

static void a_query_names_tags_with_dots_and_brackets(void **state)
{
    (void)state;
    struct pairs tags = TAGS("pod", "p", "http.route", "/a", "odd}\" name", "o", "a]", "z");
    assert_selector("{pod=\"${__span.tags.pod}\"}", NONE, "", tags, "{pod=\"p\"}");
    assert_selector("{r=\"${__span.tags[\"http.route\"]}\"}", NONE, "", tags, "{r=\"/a\"}");
    assert_selector("{r=\"${__span.tags['http.route']}\"}", NONE, "", tags, "{r=\"/a\"}");
    assert_selector("{r=\"${__span.tags.http.route}\"}", NONE, "", tags, "{r=\"/a\"}");
    assert_selector("{r='${__span.tags['odd}\" name']}'}", NONE, "", tags, "{r=\"o\"}");
    assert_selector("{r=\"${__span.tags[\"a]\"]}\"}", NONE, "", tags, "{r=\"z\"}");
    assert_selector("{r=\"<${__span.tags.pod}${__span.tags.pod}-${__span.tags.a]}>\", q=\"\\\"\"}",
                    NONE, "", tags, "{r=\"<pp-z>\", q=\"\\\"\"}");
}

static void the_service_is_also_the_tag_service_name(void **state)
{
    (void)state;
    assert_selector("{app=\"${__span.tags.service.name}\"}", NONE, "cart", NONE, "{app=\"cart\"}");
    assert_selector("{app=\"${__span.tags[\"service.name\"]}\"}", NONE, "cart",
                    TAGS("service.name", "basket"), "{app=\"basket\"}");
}

static void a_tag_in_a_regular_expression_means_its_text(void **state)
{
    (void)state;
    assert_selector("{pod=~\"${__span.tags.pod}-.*\", x!~\"[${__span.tags.c}]\"}", NONE, "",
                    TAGS("pod", "a.b(c", "c", "]"), "{pod=~\"a\\\\.b\\\\(c-.*\", x!~\"[\\\\]]\"}");
}

static void a_query_with_a_missing_tag_has_no_selector_and_names_the_tag(void **state)
{
    (void)state;
    assert_no_selector("{pod=\"${__span.tags.pod}\"}", NONE, "api", NONE, "has no tag pod");
    assert_no_selector("{pod=\"${__span.tags.pod}\"}", NONE, "api", TAGS("pod", ""),
                       "has no tag pod");
    assert_no_selector("{a=\"b\", ${__tags}, x=~\"[${__span.tags[\"http.route\"]}]\"}", NONE, "api",
                       TAGS("pod", "p"), "has no tag http.route");
    assert_no_selector("{a=\"${__span.tags.one}${__span.tags.two}\"}", NONE, "api", NONE,
                       "has no tag one");
}

static void a_query_names_the_ids_and_the_name_of_the_span(void **state)
{
    (void)state;
    g_span.span_id = HEARTH_STR("00000000000000aa");
    g_span.trace_id = HEARTH_STR("000000000000000000000000000000cc");
    g_span.name = HEARTH_STR("GET /a\"}.*");
    assert_selector("{id=\"${__span.spanId}\", t=\"${__span.traceId}\", u='<${__trace.traceId}>'}",
                    NONE, "", NONE,
                    "{id=\"00000000000000aa\", t=\"000000000000000000000000000000cc\", "
                    "u=\"<000000000000000000000000000000cc>\"}");
    assert_selector(
        "{${__tags}, op=\"${__span.name}\", like=~\"${__span.name}|${__span.tags.pod}\"}", NONE,
        "api", TAGS("pod", "p"),
        "{pod=\"p\", service_name=\"api\", op=\"GET /a\\\"}.*\", "
        "like=~\"GET /a\\\"\\\\}\\\\.\\\\*|p\"}");
    g_span.name = HEARTH_STR("\xff");
    assert_no_selector("{a=\"${__span.name}\"}", NONE, "api", NONE,
                       "the name of the span is not known, which the query names");
    g_span.span_id = g_span.trace_id = g_span.name = (struct hearth_str){0};
    assert_no_selector("{a=\"${__span.spanId}${__span.name}\"}", NONE, "api", NONE,
                       "the id of the span is not known, which the query names");
    assert_no_selector("{a=\"${__trace.traceId}\"}", NONE, "api", NONE,
                       "the trace of the span is not known, which the query names");
}

static void a_backslash_of_a_regular_expression_cannot_take_a_byte_of_a_value(void **state)
{
    (void)state;
    assert_refused(
        "{pod=~`\\${__span.tags.pod}`}", NONE,
        "a backslash or \\Q of a regular expression stands before the variable at offset 8");
    assert_refused("{pod=~`\\Q${__span.tags.pod}\\E`}", NONE, "at offset 9");
    assert_refused("{pod=~`\\Qa\\Eb\\Qc\\\\d${__span.tags.pod}\\E`}", NONE, "at offset 19");
    assert_selector("{pod=~`\\Qa\\\\E${__span.tags.pod}`, x=~`\\\\Q${__span.tags.pod}`}", NONE, "",
                    TAGS("pod", "d"), "{pod=~\"\\\\Qa\\\\\\\\Ed\", x=~\"\\\\\\\\Qd\"}");
    assert_refused("{pod!~\"a\\\\\\\\\\\\${__span.tags.pod}\"}", NONE, "a backslash or");
    assert_selector("{pod=~`\\\\${__span.tags.pod}`, x=`\\${__span.tags.pod}`}", NONE, "",
                    TAGS("pod", "d"), "{pod=~\"\\\\\\\\d\", x=\"\\\\d\"}");
}

static void unknown_variables_are_refused_by_name_and_place(void **state)
{
    (void)state;
    assert_refused("{pod=\"${__span.duration}\"}", NONE,
                   "unknown variable ${__span.duration} in the query, at offset 6: there are "
                   "${__tags}, ${__span.tags.NAME}, also ${__span.tags[\"NAME\"]}, "
                   "${__span.spanId}, ${__span.traceId}, ${__trace.traceId} and ${__span.name}");
    assert_refused("{pod=\"${__trace.name}\"}", NONE, "unknown variable ${__trace.name}");
    assert_refused("{pod=\"${__span.spanId.x}\"}", NONE, "unknown variable ${__span.spanId.x}");
    assert_refused("{pod=\"${__span.span}\"}", NONE, "unknown variable ${__span.span}");
    assert_refused("{${__tag}}", NONE, "unknown variable ${__tag} in the query, at offset 1");
    assert_refused("{a=\"${", NONE, "unknown variable ${ in the query, at offset 4");
    assert_refused("{a=\"${__span.tags.}\"}", NONE, "unknown variable ${__span.tags.}");
    assert_refused("{a=\"${__span.tags[x]}\"}", NONE, "unknown variable ${__span.tags[x]}");
    assert_refused("{a=\"${__span.tags[\"x\"}\"}", NONE, "unknown variable");
    assert_refused("{a=\"${__span.tags[\"x\"]", NONE, "unknown variable");
    assert_refused("{a=\"${__span.tags.x", NONE, "unknown variable");
    assert_refused("{a=\"${__span.tags", NONE, "unknown variable");
}

static void variables_in_the_wrong_place_are_refused(void **state)
{
    (void)state;
    assert_refused("{a=${__span.tags.pod}}", NONE, "outside of quotes, at offset 3");
    assert_refused("{a=${__span.spanId}}", NONE, "outside of quotes, at offset 3");
    assert_refused("{\"${__span.name}\"=\"\"}", NONE, "means nothing");
    assert_refused("{a=\"${__tags}\"}", NONE, "in quotes, at offset 4");
    assert_refused("{\"${__span.tags.pod}\"=\"x\"}", NONE, "means nothing");
    assert_refused("{a=\"b\"} # \"${__span.tags.pod}\"", NONE, "means nothing");
    assert_refused("{${__tags}=\"x\"}", NONE, "query: ");
    assert_refused("${__tags}", NONE, "query: ");
    assert_refused("{a=\"\\x01\\x01\", b=\"${__span.tags.pod}\"}", NONE, "means nothing");
    assert_refused("{a=\"\x01\"}", NONE, "a control character in the query, at offset 4");
}

static void an_invalid_selector_is_refused_with_its_place(void **state)
{
    (void)state;
    assert_refused("{pod=\"${__span.tags.pod}\", }}", NONE, "at offset 28");
    assert_refused("{a=~\"(\"}", NONE, "query: ");
    assert_refused("", TAGS("", "pod"), "a tag mapping names no tag");
    assert_refused("", TAGS("pod", "\xff"), "not UTF-8");
}

static void selectors_of_any_size_stay_within_those_that_can_be_read(void **state)
{
    (void)state;
    static char large[40 * 1024], query[70 * 1024];
    memset(large, 'x', sizeof large - 1);
    assert_int_equal(
        ask("{a=\"${__span.tags.pod}${__span.tags.pod}\"}", NONE, "", TAGS("pod", large)),
        HEARTH_INVALID_ARGUMENT);
    assert_int_equal(ask("", TAGS("pod", "", "pod", "b"), "", TAGS("pod", large)),
                     HEARTH_INVALID_ARGUMENT);
    memset(query, 'x', sizeof query - 1);
    assert_refused(query, NONE, "longer than");
    char *end = query + sprintf(query, "{a=\"");
    for (int i = 0; i < 201; i++) {
        end += sprintf(end, "${__span.tags.pod}");
    }
    (void)sprintf(end, "\"}");
    assert_refused(query, NONE, "more than 200 variables");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(six_tags_become_labels_by_default),
        cmocka_unit_test(only_tags_that_the_span_has_are_used),
        cmocka_unit_test(a_tag_overrides_the_service_as_service_name),
        cmocka_unit_test(
            tags_are_renamed_and_characters_that_labels_cannot_have_become_underscores),
        cmocka_unit_test(the_first_of_several_tags_for_one_label_counts),
        cmocka_unit_test(values_cannot_leave_their_string),
        cmocka_unit_test(a_span_without_selectable_tags_has_a_reason_and_no_selector),
        cmocka_unit_test(the_tags_are_inserted_at_their_variable),
        cmocka_unit_test(missing_tags_leave_no_comma_behind),
        cmocka_unit_test(a_query_names_tags_with_dots_and_brackets),
        cmocka_unit_test(the_service_is_also_the_tag_service_name),
        cmocka_unit_test(a_tag_in_a_regular_expression_means_its_text),
        cmocka_unit_test(a_query_with_a_missing_tag_has_no_selector_and_names_the_tag),
        cmocka_unit_test(a_query_names_the_ids_and_the_name_of_the_span),
        cmocka_unit_test(a_backslash_of_a_regular_expression_cannot_take_a_byte_of_a_value),
        cmocka_unit_test(unknown_variables_are_refused_by_name_and_place),
        cmocka_unit_test(variables_in_the_wrong_place_are_refused),
        cmocka_unit_test(an_invalid_selector_is_refused_with_its_place),
        cmocka_unit_test(selectors_of_any_size_stay_within_those_that_can_be_read),
    };
    hearth_arena_init(&g_arena, 0);
    int status = cmocka_run_group_tests(tests, NULL, NULL);
    hearth_arena_release(&g_arena);
    return status;
}
