/* test_message_map.c -- structs as messages, by tables of their members. */
#include "hearth/model/labels.h"
#include "hearth/pb/hearth/v1/processes.pb-c.h"
#include "hearth/pb/types/v1/types.pb-c.h"

#include "rpc/message_map.h"
#include "rpc/rpc.h"
#include "rpc_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct pair {
    const char *name;
    struct hearth_str value;
};

HEARTH_MAP_TYPES(pair, struct pair, Hearth__V1__Property);
static const struct hearth_message_member pair_members[] = {
    HEARTH_MAP(pair, name, name),
    HEARTH_MAP(pair, value, value),
};
static const struct hearth_message_map pair_map =
    HEARTH_MESSAGE_MAP(pair, hearth__v1__property__descriptor);

struct thing {
    struct {
        struct hearth_str name;
    } who;
    size_t n_all;
    int64_t small;
    int64_t seen_ns;
    uint32_t last;
    bool is_open;
    struct hearth_str *labels;
    size_t n_labels;
    struct pair *pairs;
    size_t n_pairs;
};

static void fill_agent(struct hearth_rpc *rpc, const void *from, void *message)
{
    const struct thing *thing = from;
    Hearth__V1__Process *out = message;
    (void)rpc;

    out->agent_id = (char *)(thing->is_open ? "open" : "closed");
}

HEARTH_MAP_TYPES(thing, struct thing, Hearth__V1__Process);
static const struct hearth_message_member thing_members[] = {
    HEARTH_MAP(thing, who.name, name),
    HEARTH_MAP(thing, is_open, can_be_profiled),
    HEARTH_MAP(thing, last, last_seen_ms),
    HEARTH_MAP_MS(thing, seen_ns, first_seen_ms),
    HEARTH_MAP_TEXTS(thing, labels, n_labels, labels),
    HEARTH_MAP_LIST(thing, pairs, n_pairs, properties, &pair_map),
};
static const struct hearth_message_map thing_map =
    HEARTH_MESSAGE_MAP_AND(thing, hearth__v1__process__descriptor, fill_agent);

static const char *const SIZES[] = {"unknown", "small", "large"};

HEARTH_MAP_TYPES(size, struct thing, Hearth__V1__Property);
static const struct hearth_message_member size_members[] = {
    HEARTH_MAP_NAME(size, is_open, name, SIZES),
    HEARTH_MAP_NAME(size, small, value, SIZES),
};
static const struct hearth_message_map size_map =
    HEARTH_MESSAGE_MAP(size, hearth__v1__property__descriptor);

HEARTH_MAP_TYPES(count, struct thing, Hearth__V1__ReportedService);
static const struct hearth_message_member count_members[] = {
    HEARTH_MAP(count, n_all, instance_count),
    HEARTH_MAP(count, small, process_count),
};
static const struct hearth_message_map count_map =
    HEARTH_MESSAGE_MAP(count, hearth__v1__reported_service__descriptor);

struct ids {
    struct hearth_profile_id profile;
    uint64_t span;
    struct hearth_trace_id trace;
    struct hearth_labels labels;
};

HEARTH_MAP_TYPES(ids, struct ids, Types__V1__Exemplar);
static const struct hearth_message_member ids_members[] = {
    HEARTH_MAP(ids, profile, profile_id),
    HEARTH_MAP_SPAN_ID(ids, span, span_id),
    HEARTH_MAP(ids, trace, trace_id),
    HEARTH_MAP_LABELS(ids, labels, labels),
};
static const struct hearth_message_map ids_map =
    HEARTH_MESSAGE_MAP(ids, types__v1__exemplar__descriptor);

static void fills_numbers_texts_lists_and_the_rest(void **state)
{
    struct hearth_str labels[] = {HEARTH_STR("a"), HEARTH_STR("bc")};
    struct pair pairs[] = {{"os", HEARTH_STR("linux")}, {NULL, HEARTH_STR("")}};
    const struct thing thing = {
        .who.name = HEARTH_STR("java"),
        .seen_ns = 1999999,
        .last = UINT32_MAX,
        .is_open = true,
        .labels = labels,
        .n_labels = 2,
        .pairs = pairs,
        .n_pairs = 2,
    };

    const Hearth__V1__Process *out = hearth_rpc_map(*state, &thing_map, &thing);
    assert_non_null(out);
    assert_string_equal(out->name, "java");
    assert_int_equal(out->can_be_profiled, 1);
    assert_int_equal(out->first_seen_ms, 1);
    assert_int_equal(out->last_seen_ms, UINT32_MAX);
    assert_string_equal(out->agent_id, "open");
    assert_int_equal(out->n_labels, 2);
    assert_string_equal(out->labels[1], "bc");
    assert_int_equal(out->n_properties, 2);
    assert_string_equal(out->properties[0]->name, "os");
    assert_string_equal(out->properties[0]->value, "linux");

    /* Members that have no text leave the field as it is initialised. */
    assert_string_equal(out->properties[1]->name, "");
    assert_string_equal(out->properties[1]->value, "");
    assert_string_equal(out->service, "");
}

static void a_number_becomes_its_text_in_a_table(void **state)
{
    struct thing thing = {.is_open = true, .small = 2};
    const Hearth__V1__Property *out = hearth_rpc_map(*state, &size_map, &thing);
    assert_string_equal(out->name, "small");
    assert_string_equal(out->value, "large");

    /* Numbers outside the table have the text of 0. */
    thing.small = 3;
    out = hearth_rpc_map(*state, &size_map, &thing);
    assert_string_equal(out->value, "unknown");
    thing.small = -1;
    out = hearth_rpc_map(*state, &size_map, &thing);
    assert_string_equal(out->value, "unknown");
}

static void a_number_that_the_field_cannot_hold_becomes_the_nearest(void **state)
{
    struct thing thing = {.n_all = (size_t)INT32_MAX + 7, .small = INT64_MIN};
    const Hearth__V1__ReportedService *out = hearth_rpc_map(*state, &count_map, &thing);
    assert_int_equal(out->instance_count, INT32_MAX);
    assert_int_equal(out->process_count, INT32_MIN);

    thing.n_all = SIZE_MAX;
    thing.small = 5;
    out = hearth_rpc_map(*state, &count_map, &thing);
    assert_int_equal(out->instance_count, INT32_MAX);
    assert_int_equal(out->process_count, 5);
}

static void an_empty_list_leaves_the_field_unset(void **state)
{
    const struct thing thing = {0};
    const Hearth__V1__Process *out = hearth_rpc_map(*state, &thing_map, &thing);
    assert_int_equal(out->n_labels, 0);
    assert_int_equal(out->n_properties, 0);
    assert_string_equal(out->agent_id, "closed");
}

static void writes_ids_as_texts_and_no_id_as_no_text(void **state)
{
    struct ids ids = {
        .profile = {.writer_id = 7, .profile_no = 9}, .span = 0xABC, .trace = {.hi = 1, .lo = 2}};
    char profile[HEARTH_PROFILE_ID_TEXT + 1];
    hearth_profile_id_format(ids.profile, profile);

    const Types__V1__Exemplar *out = hearth_rpc_map(*state, &ids_map, &ids);
    assert_string_equal(out->profile_id, profile);
    assert_string_equal(out->span_id, "0000000000000abc");
    assert_string_equal(out->trace_id, "00000000000000010000000000000002");

    ids.span = 0;
    ids.trace = (struct hearth_trace_id){0};
    out = hearth_rpc_map(*state, &ids_map, &ids);
    assert_string_equal(out->span_id, "");
    assert_string_equal(out->trace_id, "");
}

static void writes_labels_as_pairs(void **state)
{
    struct hearth_label pairs[] = {{HEARTH_STR("a"), HEARTH_STR("1")},
                                   {HEARTH_STR("b"), HEARTH_STR("")}};
    const struct ids ids = {.labels = {pairs, 2}};

    const Types__V1__Exemplar *out = hearth_rpc_map(*state, &ids_map, &ids);
    assert_int_equal(out->n_labels, 2);
    assert_string_equal(out->labels[0]->name, "a");
    assert_string_equal(out->labels[0]->value, "1");
    assert_string_equal(out->labels[1]->name, "b");
    assert_string_equal(out->labels[1]->value, "");

    const Types__V1__Labels *set = hearth_rpc_map(*state, &hearth_labels_map, &ids.labels);
    assert_int_equal(set->n_labels, 2);
    assert_string_equal(set->labels[1]->name, "b");
}

static void a_full_arena_yields_no_message_and_is_remembered(void **state)
{
    struct hearth_rpc *rpc = *state;
    struct pair pairs[64] = {{"name", HEARTH_STR("value")}};
    Hearth__V1__Process out = HEARTH__V1__PROCESS__INIT;

    rpc->arena.limit_bytes = 1;
    assert_null(hearth_rpc_map(rpc, &pair_map, pairs));
    HEARTH_RPC_LIST(rpc, &pair_map, pairs, 64, &out, properties);
    assert_int_equal(out.n_properties, 0);
    assert_true(rpc->arena.refused);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(fills_numbers_texts_lists_and_the_rest, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_number_becomes_its_text_in_a_table, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_number_that_the_field_cannot_hold_becomes_the_nearest,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_empty_list_leaves_the_field_unset, set_up, tear_down),
        cmocka_unit_test_setup_teardown(writes_ids_as_texts_and_no_id_as_no_text, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(writes_labels_as_pairs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_full_arena_yields_no_message_and_is_remembered, set_up,
                                        tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
