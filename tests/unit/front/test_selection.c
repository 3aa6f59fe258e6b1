/* test_selection.c -- hearth.v1.Selection as the engine gets it, and what is refused. */
#include "query/selection.h"
#include "rpc/front_internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define CPU    "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
#define MEMORY "memory:inuse_space:bytes:space:bytes"
#define UUID   "0123abcd-0000-4000-8000-00000000000f"

static struct hearth_front g_front; /* without an engine: nothing here asks it */

static const struct hearth_method g_method = {.pool = HEARTH_POOL_QUERY};

static void begin(struct hearth_rpc *rpc)
{
    *rpc = (struct hearth_rpc){.front = &g_front, .method = &g_method};
    hearth_arena_init(&rpc->arena, 1 << 20);
}

static char *text(const char *constant)
{
    return (char *)(uintptr_t)constant; /* messages have pointers to char; nobody writes */
}

static Hearth__V1__Selection select_type(const char *type)
{
    Hearth__V1__Selection in = HEARTH__V1__SELECTION__INIT;
    in.profile_type = text(type);
    in.label_selector = text("{pod=\"a\"}");
    in.start = 1000;
    in.end = 2000;
    return in;
}

static void expect_refused(Hearth__V1__Selection *in, const char *part)
{
    struct hearth_rpc rpc;
    struct hearth_rpc_selection got;

    begin(&rpc);
    assert_int_equal(hearth_rpc_selection(&rpc, in, &got), HEARTH_INVALID_ARGUMENT);
    assert_non_null(strstr(rpc.err.msg, part));
    hearth_arena_release(&rpc.arena);
}

static void range_type_and_selector_are_those_of_the_message(void **state)
{
    (void)state;
    struct hearth_rpc rpc;
    struct hearth_rpc_selection got;
    Hearth__V1__Selection in = select_type(CPU);

    begin(&rpc);
    assert_int_equal(hearth_rpc_selection(&rpc, &in, &got), HEARTH_OK);
    assert_int_equal(got.query.start_ms, 1000);
    assert_int_equal(got.query.end_ms, 2000);
    assert_ptr_equal(got.query.call.arena, &rpc.arena);
    assert_true(hearth_str_eq_c(got.merge.profile_type, CPU));
    assert_true(hearth_str_eq_c(got.merge.selector, "{pod=\"a\"}"));
    assert_true(hearth_stack_filter_is_empty(&got.merge.stacks));
    assert_int_equal(got.merge.profiles.n_profiles, 0);
    assert_string_equal(got.unit, "nanoseconds");
    hearth_arena_release(&rpc.arena);
}

static void only_gauges_have_means(void **state)
{
    (void)state;
    static const struct {
        const char *type;
        Hearth__V1__Aggregation asked, answered;
    } cases[] = {
        {MEMORY, HEARTH__V1__AGGREGATION__AGGREGATION_MEAN,
         HEARTH__V1__AGGREGATION__AGGREGATION_MEAN},
        {MEMORY, HEARTH__V1__AGGREGATION__AGGREGATION_SUM,
         HEARTH__V1__AGGREGATION__AGGREGATION_SUM},
        {CPU, HEARTH__V1__AGGREGATION__AGGREGATION_MEAN, HEARTH__V1__AGGREGATION__AGGREGATION_SUM},
    };

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        struct hearth_rpc rpc;
        struct hearth_rpc_selection got;
        Hearth__V1__Selection in = select_type(cases[i].type);
        in.aggregation = cases[i].asked;
        begin(&rpc);
        assert_int_equal(hearth_rpc_selection(&rpc, &in, &got), HEARTH_OK);
        assert_int_equal(got.aggregation, cases[i].answered);
        assert_int_equal(got.merge.mean,
                         cases[i].answered == HEARTH__V1__AGGREGATION__AGGREGATION_MEAN);
        hearth_arena_release(&rpc.arena);
    }
}

static void ids_are_read_and_bad_ones_named_with_their_field(void **state)
{
    (void)state;
    struct hearth_rpc rpc;
    struct hearth_rpc_selection got;
    Hearth__V1__Selection in = select_type(CPU);
    char *profiles[] = {text(UUID), text("no id")}, *empty[] = {text("")};
    char *spans[] = {text("00000000000000ff")};

    in.profile_ids = profiles;
    in.n_profile_ids = 1;
    in.span_ids = spans;
    in.n_span_ids = 1;
    begin(&rpc);
    assert_int_equal(hearth_rpc_selection(&rpc, &in, &got), HEARTH_OK);
    assert_int_equal(got.merge.profiles.n_profiles, 1);
    assert_true(got.merge.profiles.n_spans >= 1); /* all that the text may mean */
    assert_int_equal(got.merge.profiles.spans[0], 0xff);
    hearth_arena_release(&rpc.arena);

    in.n_profile_ids = 2;
    expect_refused(&in, "selection.profile_ids");
    in = select_type(CPU);
    in.trace_ids = empty;
    in.n_trace_ids = 1;
    expect_refused(&in, "selection.trace_ids");
}

static void a_selection_without_a_type_is_refused(void **state)
{
    (void)state;
    Hearth__V1__Selection in = select_type("process_cpu");

    expect_refused(NULL, "selection is missing");
    expect_refused(&in, "process_cpu");
}

static void conditions_of_stacks_are_passed_on(void **state)
{
    (void)state;
    struct hearth_rpc rpc;
    struct hearth_stack_filter got;
    Hearth__V1__StackFilter in = HEARTH__V1__STACK_FILTER__INIT;
    char *site[] = {text("main"), text("run")}, *without[] = {text("idle")};

    in.call_site = site;
    in.n_call_site = 2;
    in.without = without;
    in.n_without = 1;
    in.all_functions = true;
    in.regex = text("^a");
    begin(&rpc);
    assert_int_equal(hearth_rpc_stack_filter(&rpc, &in, &got), HEARTH_OK);
    assert_int_equal(got.n_call_site, 2);
    assert_true(hearth_str_eq_c(got.call_site[0], "main"));
    assert_true(hearth_str_eq_c(got.call_site[1], "run"));
    assert_int_equal(got.n_without, 1);
    assert_true(hearth_str_eq_c(got.without[0], "idle"));
    assert_true(got.all_functions);
    assert_true(hearth_str_eq_c(got.regex, "^a"));
    assert_int_equal(got.without_regex.n, 0);

    assert_int_equal(hearth_rpc_stack_filter(&rpc, NULL, &got), HEARTH_OK);
    assert_true(hearth_stack_filter_is_empty(&got));
    hearth_arena_release(&rpc.arena);
}

static void conditions_on_rows_are_passed_on_and_empty_ones_refused(void **state)
{
    (void)state;
    struct hearth_rpc rpc;
    struct hearth_stack_filter got;
    Hearth__V1__StackFilter in = HEARTH__V1__STACK_FILTER__INIT;
    Hearth__V1__RowFilter thread = HEARTH__V1__ROW_FILTER__INIT;
    Hearth__V1__RowFilter function = HEARTH__V1__ROW_FILTER__INIT;
    Hearth__V1__RowFilter *rows[] = {&thread, &function};
    char *names[] = {text("main"), text("")};

    thread.kind = HEARTH__V1__TOP_KIND__TOP_KIND_THREAD;
    thread.names = names;
    thread.n_names = 2;
    thread.without_regex = text("^pool");
    function.without = names;
    function.n_without = 1;
    in.rows = rows;
    in.n_rows = 2;
    begin(&rpc);
    assert_int_equal(hearth_rpc_stack_filter(&rpc, &in, &got), HEARTH_OK);
    assert_int_equal(got.n_rows, 2);
    assert_int_equal(got.rows[0].kind, HEARTH_TOP_THREAD);
    assert_int_equal(got.rows[0].n_names, 2);
    assert_true(hearth_str_eq_c(got.rows[0].names[0], "main"));
    assert_int_equal(got.rows[0].names[1].n, 0);
    assert_true(hearth_str_eq_c(got.rows[0].without_regex, "^pool"));
    assert_int_equal(got.rows[1].kind, HEARTH_TOP_FUNCTION); /* unset */
    assert_int_equal(got.rows[1].n_without, 1);
    assert_true(hearth_stack_filter_needs_stacks(&got));

    function.n_without = 0;
    assert_int_equal(hearth_rpc_stack_filter(&rpc, &in, &got), HEARTH_INVALID_ARGUMENT);
    assert_non_null(strstr(rpc.err.msg, "stacks.rows[1] has no condition"));
    function.kind = (Hearth__V1__TopKind)99;
    assert_int_equal(hearth_rpc_stack_filter(&rpc, &in, &got), HEARTH_INVALID_ARGUMENT);
    assert_non_null(strstr(rpc.err.msg, "kind 99 is not known"));

    in.n_rows = 1;
    assert_int_equal(hearth_rpc_stack_filter(&rpc, &in, &got), HEARTH_OK);
    assert_false(hearth_stack_filter_needs_stacks(&got)); /* threads are no part of stacks */
    assert_false(hearth_stack_filter_is_empty(&got));
    hearth_arena_release(&rpc.arena);
}

static void go_stacks_stay_as_stored_unless_repair_is_requested(void **state)
{
    (void)state;
    struct hearth_rpc rpc;
    enum hearth_go_stacks got = HEARTH_GO_REPAIRED;

    begin(&rpc);
    assert_int_equal(hearth_rpc_go_stacks(&rpc, HEARTH__V1__GO_STACKS__GO_STACKS_UNSPECIFIED, &got),
                     HEARTH_OK);
    assert_int_equal(got, HEARTH_GO_STORED);
    assert_int_equal(hearth_rpc_go_stacks(&rpc, HEARTH__V1__GO_STACKS__GO_STACKS_REPAIRED, &got),
                     HEARTH_OK);
    assert_int_equal(got, HEARTH_GO_REPAIRED);
    assert_int_equal(hearth_rpc_go_stacks(&rpc, (Hearth__V1__GoStacks)7, &got),
                     HEARTH_INVALID_ARGUMENT);
    assert_non_null(strstr(rpc.err.msg, "7"));
    hearth_arena_release(&rpc.arena);
}

static void a_full_arena_is_reported(void **state)
{
    (void)state;
    struct hearth_rpc rpc;
    struct hearth_rpc_selection got;
    Hearth__V1__Selection in = select_type(CPU);
    static char *sites[100000];

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(sites); i++) {
        sites[i] = text("main");
    }
    Hearth__V1__StackFilter stacks = HEARTH__V1__STACK_FILTER__INIT;
    stacks.call_site = sites;
    stacks.n_call_site = HEARTH_ARRAY_LEN(sites);
    in.stacks = &stacks;
    begin(&rpc);
    assert_int_not_equal(hearth_rpc_selection(&rpc, &in, &got), HEARTH_OK);
    hearth_arena_release(&rpc.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(range_type_and_selector_are_those_of_the_message),
        cmocka_unit_test(only_gauges_have_means),
        cmocka_unit_test(ids_are_read_and_bad_ones_named_with_their_field),
        cmocka_unit_test(a_selection_without_a_type_is_refused),
        cmocka_unit_test(conditions_of_stacks_are_passed_on),
        cmocka_unit_test(conditions_on_rows_are_passed_on_and_empty_ones_refused),
        cmocka_unit_test(go_stacks_stay_as_stored_unless_repair_is_requested),
        cmocka_unit_test(a_full_arena_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
