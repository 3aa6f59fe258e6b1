/* test_label_index.c -- the label index by hand: small worlds, each rule once. */
#include "label_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static void assert_out(struct world *w, const char *want)
{
    hearth_buf_byte(&w->out, 0);
    assert_string_equal(w->out.p, want);
    hearth_buf_reset(&w->out);
}

/* "service/series.column ..." */
static void assert_hits(struct world *w, const char *text, int64_t from, int64_t to,
                        const char *want)
{
    const struct hearth_index_filter filter = make_filter(w, text, from, to);
    struct hearth_series_hits hits;
    assert_int_equal(hearth_label_index_select(w->index, &filter, &w->arena, &hits, &w->err),
                     HEARTH_OK);
    for (size_t i = 0; i < hits.n; i++) {
        hearth_buf_printf(&w->out, "%s%d/%d.%u", i == 0 ? "" : " ", (int)hits.v[i].service_id,
                          (int)hits.v[i].series_id, hits.v[i].column);
    }
    assert_out(w, want);
}

static void assert_texts(struct world *w, const struct hearth_index_texts *texts, const char *want)
{
    for (size_t i = 0; i < texts->n; i++) {
        hearth_buf_cstr(&w->out, i == 0 ? "" : " ");
        hearth_buf_str(&w->out, texts->v[i]);
    }
    assert_out(w, want);
}

static void assert_names(struct world *w, const char *text, int64_t from, int64_t to,
                         const char *want)
{
    const struct hearth_index_filter filter = make_filter(w, text, from, to);
    struct hearth_index_texts names;
    assert_int_equal(hearth_label_index_names(w->index, &filter, &w->arena, &names, &w->err),
                     HEARTH_OK);
    assert_texts(w, &names, want);
}

static void assert_values(struct world *w, const char *text, const char *name, int64_t from,
                          int64_t to, const char *want)
{
    const struct hearth_index_filter filter = make_filter(w, text, from, to);
    struct hearth_index_texts values;
    assert_int_equal(hearth_label_index_values(w->index, &filter, hearth_str_c(name), &w->arena,
                                               &values, &w->err),
                     HEARTH_OK);
    assert_texts(w, &values, want);
}

static void assert_sets(struct world *w, const char *text, const struct hearth_str *names,
                        size_t n_names, int64_t from, int64_t to, const char *want)
{
    const struct hearth_index_filter filter = make_filter(w, text, from, to);
    struct hearth_label_sets sets;
    assert_int_equal(hearth_label_index_project(w->index, &filter,
                                                (struct hearth_projected_names){names, n_names},
                                                &w->arena, &sets, &w->err),
                     HEARTH_OK);
    for (size_t i = 0; i < sets.n; i++) {
        hearth_buf_cstr(&w->out, i == 0 ? "" : " ");
        hearth_labels_format(&sets.v[i], 0, &w->out);
    }
    assert_out(w, want);
}

static void a_selector_selects_series_and_columns(void **state)
{
    struct world *w = *state;
    assert_hits(w, "{}", 0, 200, "5/3.0 5/4.0 7/1.0 7/1.1 7/2.0 7/2.1");
    assert_hits(w, "{service_name=\"api\"}", 0, 200, "7/1.0 7/1.1 7/2.0 7/2.1");
    assert_hits(w, "{__service_name__=~\"d.*\"}", 0, 200, "5/3.0 5/4.0");
    assert_hits(w, "{pod=\"b\"}", 0, 200, "7/2.0 7/2.1");
    assert_hits(w, "{pod=~\"a|c\"}", 0, 200, "5/3.0 7/1.0 7/1.1");
    assert_hits(w, "process_cpu", 0, 200, "7/1.0 7/1.1 7/2.0 7/2.1");
    assert_hits(w, "{__profile_type__=\"" COUNT "\", zone=\"y\"}", 0, 200, "7/2.1");
    assert_hits(w, "{__unit__=~\"n.*s\"}", 0, 200, "5/3.0 7/1.0 7/2.0");
    assert_hits(w, "{__period_unit__=\"milliseconds\"}", 0, 200, "5/4.0");
    assert_hits(w, "{service_name=\"api\", service_name=\"db\"}", 0, 200, "");
    assert_hits(w, "{pod=\"nobody\"}", 0, 200, "");
    assert_hits(w, "{nothing=\"x\"}", 0, 200, "");
}

static void a_missing_label_has_the_empty_value(void **state)
{
    struct world *w = *state;
    assert_hits(w, "{zone=\"\"}", 0, 200, "5/3.0 5/4.0");
    assert_hits(w, "{zone!=\"\"}", 0, 200, "7/1.0 7/1.1 7/2.0 7/2.1");
    assert_hits(w, "{zone!=\"x\"}", 0, 200, "5/3.0 5/4.0 7/2.0 7/2.1");
    assert_hits(w, "{zone!=\"unheard of\"}", 0, 200, "5/3.0 5/4.0 7/1.0 7/1.1 7/2.0 7/2.1");
    assert_hits(w, "{zone=~\"x|\"}", 0, 200, "5/3.0 5/4.0 7/1.0 7/1.1");
    assert_hits(w, "{zone!~\".+\", pod=~\".+\"}", 0, 200, "5/3.0");
    assert_hits(w, "{nothing!=\"x\", pod=\"c\"}", 0, 200, "5/3.0");
    assert_hits(w, "{__period_type__=\"\"}", 0, 200, "5/3.0 5/4.0");
}

static void a_range_includes_whole_hours(void **state)
{
    struct world *w = *state;
    assert_hits(w, "{}", 100, 100, "5/3.0 7/1.0 7/1.1");
    assert_hits(w, "{}", 101, 109, "");
    assert_hits(w, "{}", 109, 110, "7/2.0 7/2.1");
    assert_hits(w, "{}", 120, 1000000, "5/4.0");
    assert_hits(w, "{}", 121, 1000000, "");
    assert_hits(w, "{}", 200, 100, "");
    struct hearth_series_hits hits;
    struct hearth_index_filter filter = {select_text(w, "{}"), at_hour(111) - 1, at_hour(120) - 1};
    assert_int_equal(hearth_label_index_select(w->index, &filter, &w->arena, &hits, &w->err),
                     HEARTH_OK);
    assert_int_equal(hits.n, 2);

    filter.from_ns = INT64_MIN;
    filter.to_ns = INT64_MAX;
    assert_int_equal(hearth_label_index_select(w->index, &filter, &w->arena, &hits, &w->err),
                     HEARTH_OK);
    assert_int_equal(hits.n, 6);
}

static void hours_before_the_epoch_are_found(void **state)
{
    struct world *w = *state;
    assert_int_equal(hearth_label_index_add_hour(w->index, 4, -1), HEARTH_OK);
    assert_int_equal(hearth_label_index_add_hour(w->index, 4, -25), HEARTH_OK);
    assert_hits(w, "{}", -1, -1, "5/4.0");
    assert_hits(w, "{}", -24, -2, "");
    assert_hits(w, "{}", -25, -25, "5/4.0");
    assert_hits(w, "{}", -30, 99, "5/4.0");
}

static void names_include_the_derived_ones(void **state)
{
    struct world *w = *state;
    assert_names(w, "{}", 0, 200,
                 "__name__ __period_type__ __period_unit__ __profile_type__ __service_name__ "
                 "__type__ __unit__ "
                 "pod service_name zone");
    assert_names(w, "{service_name=\"db\"}", 100, 100,
                 "__name__ __profile_type__ __service_name__ __type__ __unit__ pod service_name");
    assert_names(w, "{service_name=\"db\"}", 120, 120,
                 "__name__ __period_unit__ __profile_type__ __service_name__ __type__ __unit__ "
                 "service_name");
    assert_names(w, "{service_name=\"db\"}", 130, 140, "");
}

static void values_are_those_of_matching_series(void **state)
{
    struct world *w = *state;
    assert_values(w, "{}", "pod", 0, 200, "a b c");
    assert_values(w, "{service_name=\"api\"}", "pod", 0, 200, "a b");
    assert_values(w, "{zone!=\"x\"}", "pod", 0, 200, "b c");
    assert_values(w, "{}", "pod", 110, 120, "b");
    assert_values(w, "{}", "service_name", 0, 200, "api db");
    assert_values(w, "{pod=\"a\"}", "__service_name__", 0, 200, "api");
    assert_values(w, "{}", "__profile_type__", 0, 200, MILLIS " " CPU " " COUNT " " WALL);
    assert_values(w, "{__type__=\"samples\"}", "__profile_type__", 0, 200, COUNT);
    assert_values(w, "{}", "__period_type__", 0, 200, "cpu");
    assert_values(w, "{}", "nothing", 0, 200, "");
    assert_values(w, "{pod=\"nobody\"}", "service_name", 0, 200, "");
}

static void projections_are_distinct_and_sorted(void **state)
{
    struct world *w = *state;
    const struct hearth_str landing[] = {HEARTH_STR("service_name"),
                                         HEARTH_STR("__profile_type__")};
    const struct hearth_str own[] = {HEARTH_STR("zone"), HEARTH_STR("pod"), HEARTH_STR("zone")};
    const struct hearth_str none[] = {HEARTH_STR("nothing")};
    assert_sets(w, "{}", landing, 2, 0, 200,
                "{__profile_type__=\"" MILLIS "\", service_name=\"db\"} "
                "{__profile_type__=\"" CPU "\", service_name=\"api\"} "
                "{__profile_type__=\"" COUNT "\", service_name=\"api\"} "
                "{__profile_type__=\"" WALL "\", service_name=\"db\"}");
    assert_sets(w, "{}", own, 3, 0, 200,
                "{} {pod=\"a\", zone=\"x\"} {pod=\"b\", zone=\"y\"} {pod=\"c\"}");
    assert_sets(w, "{}", own, 1, 0, 200, "{} {zone=\"x\"} {zone=\"y\"}");
    assert_sets(w, "{}", none, 1, 0, 200, "");
    assert_sets(w, "{service_name=\"db\"}", own, 1, 0, 200, "{}");
    /* No series of that hour has a zone: no set, not even an empty one. */
    assert_sets(w, "{service_name=\"db\"}", own, 1, 120, 120, "");
}

/* "labels: hits; ..." */
static void assert_groups(struct world *w, const char *text, const struct hearth_str *names,
                          size_t n_names, const char *want)
{
    const struct hearth_index_filter filter = make_filter(w, text, 0, 200);
    struct hearth_series_hits hits;
    struct hearth_label_groups groups;
    assert_int_equal(hearth_label_index_select(w->index, &filter, &w->arena, &hits, &w->err),
                     HEARTH_OK);
    assert_int_equal(hearth_label_index_group(w->index, &hits,
                                              (struct hearth_projected_names){names, n_names},
                                              &w->arena, &groups, &w->err),
                     HEARTH_OK);
    for (size_t g = 0; g < groups.n; g++) {
        hearth_buf_cstr(&w->out, g == 0 ? "" : "; ");
        hearth_labels_format(&groups.v[g], 0, &w->out);
        for (size_t i = 0; i < hits.n; i++) {
            if (groups.of_hit[i] == g) {
                hearth_buf_printf(&w->out, " %d.%u", hits.v[i].series_id, hits.v[i].column);
            }
        }
    }
    assert_out(w, want);
}

static void hits_with_equal_labels_are_one_group(void **state)
{
    struct world *w = *state;
    const struct hearth_str own[] = {HEARTH_STR("zone"), HEARTH_STR("pod"), HEARTH_STR("zone")};
    const struct hearth_str derived[] = {HEARTH_STR("__period_unit__")};
    const struct hearth_str service[] = {HEARTH_STR("service_name")};
    assert_groups(w, "{}", own, 3,
                  "{pod=\"c\"} 3.0; {} 4.0; {pod=\"a\", zone=\"x\"} 1.0 1.1; "
                  "{pod=\"b\", zone=\"y\"} 2.0 2.1");
    assert_groups(w, "{}", own, 1, "{} 3.0 4.0; {zone=\"x\"} 1.0 1.1; {zone=\"y\"} 2.0 2.1");
    assert_groups(w, "{}", service, 1,
                  "{service_name=\"db\"} 3.0 4.0; {service_name=\"api\"} 1.0 1.1 2.0 2.1");
    assert_groups(w, "{pod=~\".+\"}", derived, 1,
                  "{} 3.0; {__period_unit__=\"nanoseconds\"} 1.0 1.1 2.0 2.1");
    assert_groups(w, "{pod=\"c\"}", derived, 1, "{} 3.0");
    assert_groups(w, "{pod=\"nobody\"}", own, 2, "");
}

static void projecting_on_nothing_gives_all_labels(void **state)
{
    struct world *w = *state;
    assert_sets(
        w, "{__type__=\"cpu\", pod=\"a\"}", NULL, 0, 0, 200,
        "{__name__=\"process_cpu\", __period_type__=\"cpu\", __period_unit__=\"nanoseconds\", "
        "__profile_type__=\"" CPU "\", __service_name__=\"api\", __type__=\"cpu\", "
        "__unit__=\"nanoseconds\", pod=\"a\", service_name=\"api\", zone=\"x\"}");
}

static void sets_with_missing_labels_are_in_label_order(void **state)
{
    struct world *w = *state;
    static const struct {
        const char *name, *value;
    } pairs[] = {{"a", "1"}, {"b", "1"}, {"c", "1"}, {"a", "2"}};
    for (int32_t i = 0; i < 4; i++) {
        assert_int_equal(hearth_label_index_add_pair(w->index, 20 + i, hearth_str_c(pairs[i].name),
                                                     hearth_str_c(pairs[i].value)),
                         HEARTH_OK);
    }
    add(w, 21, 7, 2, (const int32_t[]){20}, 1, 500);
    add(w, 22, 7, 2, (const int32_t[]){20, 22}, 2, 500);
    add(w, 23, 7, 2, (const int32_t[]){20, 21}, 2, 500);
    add(w, 24, 7, 2, (const int32_t[]){22}, 1, 500);
    add(w, 25, 7, 2, (const int32_t[]){21}, 1, 500);
    add(w, 26, 7, 2, (const int32_t[]){23}, 1, 500);
    add(w, 27, 7, 2, NULL, 0, 500);
    const struct hearth_str names[] = {HEARTH_STR("c"), HEARTH_STR("a"), HEARTH_STR("b")};
    assert_sets(w, "{}", names, 3, 500, 500,
                "{} {a=\"1\"} {a=\"1\", b=\"1\"} {a=\"1\", c=\"1\"} {a=\"2\"} {b=\"1\"} {c=\"1\"}");
}

static void services_may_share_a_name(void **state)
{
    struct world *w = *state;
    const struct hearth_str name = HEARTH_STR("service_name");
    assert_int_equal(hearth_label_index_add_service(w->index, 9, HEARTH_STR("api")), HEARTH_OK);
    add(w, 30, 9, 1, (const int32_t[]){1, 4}, 2, 100);
    assert_values(w, "{}", "service_name", 0, 200, "api db");
    assert_sets(w, "{pod=\"a\"}", &name, 1, 0, 200, "{service_name=\"api\"}");
    assert_hits(w, "{service_name=\"api\", pod=\"a\"}", 0, 200, "7/1.0 7/1.1 9/30.0 9/30.1");
    const struct hearth_index_filter filter = make_filter(w, "{pod=\"a\"}", 0, 200);
    struct hearth_label_sets sets;
    assert_int_equal(
        hearth_label_index_project(w->index, &filter, g_all_names, &w->arena, &sets, &w->err),
        HEARTH_OK);
    assert_int_equal(sets.n, 2); /* one per profile type: the two series have the same labels */
}

static void adding_an_id_again_changes_nothing(void **state)
{
    struct world *w = *state;
    const struct hearth_str wall = HEARTH_STR(WALL);
    size_t bytes = hearth_label_index_bytes(w->index);
    assert_int_equal(hearth_label_index_add_service(w->index, 7, HEARTH_STR("other")), HEARTH_OK);
    assert_int_equal(hearth_label_index_add_pair(w->index, 1, HEARTH_STR("q"), HEARTH_STR("r")),
                     HEARTH_OK);
    assert_int_equal(hearth_label_index_add_shape(w->index, 1, &wall, 1), HEARTH_OK);
    assert_int_equal(hearth_label_index_add_series(w->index, 1, 5, 2, NULL, 0), HEARTH_OK);
    assert_int_equal(hearth_label_index_add_hour(w->index, 1, 100), HEARTH_OK);
    assert_int_equal(hearth_label_index_series(w->index), 4);
    assert_int_equal(hearth_label_index_bytes(w->index), bytes);
    assert_hits(w, "{pod=\"a\"}", 0, 200, "7/1.0 7/1.1");
}

static void two_ids_of_the_same_pair_are_one_value(void **state)
{
    struct world *w = *state;
    assert_int_equal(hearth_label_index_add_pair(w->index, 99, HEARTH_STR("pod"), HEARTH_STR("a")),
                     HEARTH_OK);
    add(w, 31, 5, 2, (const int32_t[]){99}, 1, 100);
    assert_hits(w, "{pod=\"a\"}", 0, 200, "5/31.0 7/1.0 7/1.1");
    assert_values(w, "{}", "pod", 0, 200, "a b c");
}

static void references_to_missing_rows_are_corrupt(void **state)
{
    struct world *w = *state;
    const int32_t unknown = 77, twice[] = {1, 2};
    assert_int_equal(hearth_label_index_add_series(w->index, 50, 8, 1, NULL, 0), HEARTH_CORRUPT);
    assert_int_equal(hearth_label_index_add_series(w->index, 50, 7, 9, NULL, 0), HEARTH_CORRUPT);
    assert_int_equal(hearth_label_index_add_series(w->index, 50, 7, 1, &unknown, 1),
                     HEARTH_CORRUPT);
    assert_int_equal(hearth_label_index_add_series(w->index, 50, 7, 1, twice, 2), HEARTH_CORRUPT);
    assert_int_equal(hearth_label_index_add_series(w->index, 0, 7, 1, NULL, 0), HEARTH_CORRUPT);
    assert_int_equal(hearth_label_index_add_series(w->index, 50, -7, 1, NULL, 0), HEARTH_CORRUPT);
    assert_int_equal(hearth_label_index_add_service(w->index, -1, HEARTH_STR("x")), HEARTH_CORRUPT);
    assert_int_equal(hearth_label_index_add_pair(w->index, 51, HEARTH_STR("x"), HEARTH_STR("")),
                     HEARTH_CORRUPT);
    assert_int_equal(hearth_label_index_add_shape(w->index, 51, NULL, 0), HEARTH_CORRUPT);
    assert_int_equal(hearth_label_index_add_hour(w->index, 50, 1), HEARTH_NOT_FOUND);
    assert_int_equal(hearth_label_index_series(w->index), 4);
}

static void a_stored_label_cannot_shadow_a_derived_one(void **state)
{
    struct world *w = *state;
    assert_int_equal(
        hearth_label_index_add_pair(w->index, 60, HEARTH_STR("service_name"), HEARTH_STR("liar")),
        HEARTH_OK);
    add(w, 60, 5, 2, (const int32_t[]){60, 3}, 2, 300);
    assert_values(w, "{}", "service_name", 300, 300, "db");
    assert_hits(w, "{service_name=\"liar\"}", 0, 400, "");
    assert_hits(w, "{service_name=\"db\", pod=\"c\"}", 300, 300, "5/60.0");
}

static void a_malformed_type_keeps_its_column(void **state)
{
    struct world *w = *state;
    const struct hearth_str types[] = {HEARTH_STR("what is this"), HEARTH_STR(WALL)};
    assert_int_equal(hearth_label_index_add_shape(w->index, 40, types, 2), HEARTH_OK);
    add(w, 40, 5, 40, NULL, 0, 300);
    assert_hits(w, "{__name__=\"wall\"}", 300, 300, "5/40.1");
    assert_values(w, "{}", "__profile_type__", 300, 300, WALL " what is this");
}

static void cpu_time_of_a_wall_profile_is_found_by_either_type_id(void **state)
{
    static const char stored[] = "process_cpu:cpu:nanoseconds:wall:nanoseconds";
    static const char listed[] = "wall:cpu:nanoseconds:wall:nanoseconds";
    struct world *w = *state;
    char text[128];
    const struct hearth_str node[] = {HEARTH_STR(WALL), hearth_str_c(stored)};
    const struct hearth_str alone[] = {hearth_str_c(stored)};
    assert_int_equal(hearth_label_index_add_shape(w->index, 40, node, 2), HEARTH_OK);
    add(w, 40, 5, 40, NULL, 0, 300);
    assert_values(w, "{}", "__profile_type__", 300, 300,
                  "wall:cpu:nanoseconds:wall:nanoseconds " WALL);
    assert_values(w, "{}", "__name__", 300, 300, "wall");
    for (int i = 0; i < 2; i++) {
        const char *id = i == 0 ? stored : listed;
        (void)snprintf(text, sizeof text, "{__profile_type__=\"%s\"}", id);
        assert_hits(w, text, 300, 300, "5/40.1");
        (void)snprintf(text, sizeof text, "{__profile_type__=~\"%s|x\"}", id);
        assert_hits(w, text, 300, 300, "5/40.1");
    }
    (void)snprintf(text, sizeof text, "{__profile_type__!=\"%s\"}", listed);
    assert_hits(w, text, 300, 300, "5/40.0");

    /* Without a wall type in its shape it is a type of its own. */
    assert_int_equal(hearth_label_index_add_shape(w->index, 41, alone, 1), HEARTH_OK);
    add(w, 41, 5, 41, NULL, 0, 301);
    assert_values(w, "{}", "__profile_type__", 301, 301, stored);
    (void)snprintf(text, sizeof text, "{__profile_type__=\"%s\"}", listed);
    assert_hits(w, text, 301, 301, "");
}

static void series_that_differ_only_in_their_shapes_are_recognised(void **state)
{
    struct world *w = *state;
    /*
     * Labels of 1 {pod=a, zone=x} and 2 {pod=b, zone=y}, but with one type; and of 1, in another
     * service.
     */
    const struct hearth_str cpu[] = {HEARTH_STR(CPU)};
    assert_int_equal(hearth_label_index_add_shape(w->index, 40, cpu, 1), HEARTH_OK);
    add(w, 40, 7, 40, (const int32_t[]){4, 1}, 2, 300);
    add(w, 41, 7, 40, (const int32_t[]){2, 5}, 2, 300);
    add(w, 42, 5, 40, (const int32_t[]){1, 4}, 2, 300);
    add(w, 43, 7, 40, (const int32_t[]){1}, 1, 300);
    add(w, 44, 7, 40, NULL, 0, 300);
    struct hearth_index_filter filter = make_filter(w, "{__profile_type__=\"" CPU "\"}", 0, 400);
    struct hearth_series_hits hits;
    uint32_t *first;
    assert_int_equal(hearth_label_index_select(w->index, &filter, &w->arena, &hits, &w->err),
                     HEARTH_OK);
    assert_int_equal(hearth_label_index_same_labels(w->index, &hits, &w->arena, &first, &w->err),
                     HEARTH_OK);
    /* 5/42, 7/1, 7/2, 7/40, 7/41, 7/43, 7/44 */
    static const uint32_t want[] = {0, 1, 2, 1, 2, 5, 6};
    assert_int_equal(hits.n, HEARTH_ARRAY_LEN(want));
    assert_memory_equal(first, want, sizeof want);

    /* Different types of a series are different. */
    filter = make_filter(w, "{pod=\"a\"}", 0, 400);
    assert_int_equal(hearth_label_index_select(w->index, &filter, &w->arena, &hits, &w->err),
                     HEARTH_OK);
    assert_int_equal(hits.n, 5);
    assert_int_equal(hearth_label_index_same_labels(w->index, &hits, &w->arena, &first, &w->err),
                     HEARTH_OK);
    assert_int_not_equal(first[1], first[2]);
}

static void the_largest_ids_are_sorted_correctly(void **state)
{
    struct world *w = *state;
    assert_int_equal(hearth_label_index_add_service(w->index, INT32_MAX, HEARTH_STR("last")),
                     HEARTH_OK);
    add(w, INT32_MAX, INT32_MAX, 2, NULL, 0, 300);
    add(w, 299, INT32_MAX, 2, NULL, 0, 300);
    add(w, 300, 7, 2, NULL, 0, 300);
    assert_hits(w, "{}", 300, 300, "7/300.0 2147483647/299.0 2147483647/2147483647.0");
}

static void trimming_deletes_hours_and_then_series(void **state)
{
    struct world *w = *state;
    assert_int_equal(hearth_label_index_add_day(w->index, 1, 5, 0xFFFFFF),
                     HEARTH_OK); /* hours 120-143 */
    assert_int_equal(hearth_label_index_add_series(w->index, 70, 7, 1, NULL, 0), HEARTH_OK);
    hearth_label_index_trim(w->index, 130);
    /* 2, 3 and 4 are deleted; 70 has not had an hour yet, so it stays. */
    assert_int_equal(hearth_label_index_series(w->index), 2);
    assert_hits(w, "{}", 0, 129, "");
    assert_hits(w, "{}", 0, 200, "7/1.0 7/1.1");
    assert_values(w, "{}", "pod", 0, 200, "a");
    assert_names(w, "{}", 0, 200,
                 "__name__ __period_type__ __period_unit__ __profile_type__ __service_name__ "
                 "__type__ __unit__ "
                 "pod service_name zone");
    assert_int_equal(hearth_label_index_add_hour(w->index, 2, 140), HEARTH_NOT_FOUND);
    add(w, 2, 7, 1, (const int32_t[]){2, 5}, 2, 140);
    assert_int_equal(hearth_label_index_add_hour(w->index, 70, 141), HEARTH_OK);
    assert_hits(w, "{}", 0, 200, "7/1.0 7/1.1 7/2.0 7/2.1 7/70.0 7/70.1");
    assert_hits(w, "{pod=\"b\"}", 0, 200, "7/2.0 7/2.1");
    hearth_label_index_trim(w->index, INT32_MAX);
    assert_int_equal(hearth_label_index_series(w->index), 0);
    assert_hits(w, "{}", -1000000, 1000000, "");
}

static void labels_of_a_deleted_hit_are_not_found(void **state)
{
    struct world *w = *state;
    struct hearth_labels labels;
    struct hearth_series_hit hit = {.series_id = 3, .column = 1};
    assert_int_equal(hearth_label_index_labels(w->index, &hit, &w->arena, &labels, &w->err),
                     HEARTH_NOT_FOUND);
    hit.column = 0;
    assert_int_equal(hearth_label_index_labels(w->index, &hit, &w->arena, &labels, &w->err),
                     HEARTH_OK);
    assert_int_equal(labels.n, 7);
    hit.series_id = 1234;
    assert_int_equal(hearth_label_index_labels(w->index, &hit, &w->arena, &labels, &w->err),
                     HEARTH_NOT_FOUND);
}

/* Every series has its own name: a table of all series by all names would be huge and sparse.
 */
static void many_rare_names_are_projected_without_a_table_of_all(void **state)
{
    struct world *w = *state;
    enum {
        N = 2200
    };
    for (int32_t i = 0; i < N; i++) {
        char name[16];
        const int32_t pairs[] = {1000 + i, i % 2 ? 1 : 2};
        (void)snprintf(name, sizeof name, "n%04d", (int)i);
        assert_int_equal(
            hearth_label_index_add_pair(w->index, 1000 + i, hearth_str_c(name), HEARTH_STR("v")),
            HEARTH_OK);
        add(w, 1000 + i, 5, 2, pairs, 2, 300);
    }
    struct hearth_label_sets sets;
    struct hearth_index_texts names;
    const struct hearth_index_filter filter = make_filter(w, "{}", 300, 300);
    assert_int_equal(
        hearth_label_index_project(w->index, &filter, g_all_names, &w->arena, &sets, &w->err),
        HEARTH_OK);
    assert_int_equal(sets.n, N);
    for (size_t i = 0; i < sets.n; i++) {
        /* Labels derived from the type, from the service, and own ones. */
        assert_int_equal(sets.v[i].n, 4 + 2 + 2);
        assert_true(i == 0 || hearth_labels_cmp(&sets.v[i - 1], &sets.v[i]) < 0);
    }
    assert_int_equal(hearth_label_index_names(w->index, &filter, &w->arena, &names, &w->err),
                     HEARTH_OK);
    assert_int_equal(names.n, 4 + 2 + 1 + N);
}

/* Hours 100, 110 and 120 have profiles. */
static void first_and_last_hours_are_those_of_any_series(void **state)
{
    struct world *w = *state;
    struct hearth_label_index *empty = hearth_label_index_new();
    int64_t hour = 0;
    static const int64_t first[][2] = {{INT32_MIN, 100}, {0, 100},   {100, 100}, {101, 110},
                                       {110, 110},       {111, 120}, {120, 120}};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(first); i++) {
        assert_true(hearth_label_index_first_hour(w->index, first[i][0], &hour));
        assert_int_equal(hour, first[i][1]);
    }
    assert_false(hearth_label_index_first_hour(w->index, 121, &hour));
    static const int64_t last[][2] = {{INT32_MAX, 120}, {120, 120}, {119, 110},
                                      {110, 110},       {109, 100}, {100, 100}};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(last); i++) {
        assert_true(hearth_label_index_last_hour(w->index, last[i][0], &hour));
        assert_int_equal(hour, last[i][1]);
    }
    assert_false(hearth_label_index_last_hour(w->index, 99, &hour));
    assert_non_null(empty);
    assert_false(hearth_label_index_first_hour(empty, 0, &hour));
    assert_false(hearth_label_index_last_hour(empty, INT32_MAX, &hour));
    hearth_label_index_free(empty);
}

static void one_hit_matches_as_a_selection_decides(void **state)
{
    static const char *const texts[] = {
        "{}",
        "{pod=\"a\"}",
        "{pod!=\"a\"}",
        "{pod=\"\"}",
        "{zone=~\"x|y\"}",
        "{service_name=\"db\"}",
        "{__profile_type__=\"" CPU "\"}",
        "{__type__=~\"wall|samples\"}",
        "{no_such=\"\"}",
        "{no_such=~\".+\"}",
        "{service_name=\"api\", pod=~\"[ab]\", __unit__!=\"count\"}"};
    struct world *w = *state;
    const struct hearth_series_hit missing = {.series_id = 99},
                                   beyond = {.series_id = 1, .column = 2};

    for (size_t t = 0; t < HEARTH_ARRAY_LEN(texts); t++) {
        struct hearth_series_hits all, chosen;
        struct hearth_index_filter filter = make_filter(w, "{}", 0, 1000);
        assert_int_equal(hearth_label_index_select(w->index, &filter, &w->arena, &all, &w->err),
                         HEARTH_OK);
        filter = make_filter(w, texts[t], 0, 1000);
        assert_int_equal(hearth_label_index_select(w->index, &filter, &w->arena, &chosen, &w->err),
                         HEARTH_OK);
        size_t n = 0;
        for (size_t i = 0; i < all.n; i++) {
            bool is_chosen = n < chosen.n && memcmp(&all.v[i], &chosen.v[n], sizeof all.v[i]) == 0;
            n += is_chosen;
            assert_int_equal(hearth_label_index_matches(w->index, filter.selector, &all.v[i]),
                             is_chosen);
        }
        assert_int_equal(n, chosen.n);
        assert_false(hearth_label_index_matches(w->index, filter.selector, &missing));
        assert_false(hearth_label_index_matches(w->index, filter.selector, &beyond));
    }
    assert_true(hearth_label_index_has_series(w->index, 4));
    assert_false(hearth_label_index_has_series(w->index, 5));
}

static void hours_of_a_selection_are_those_of_its_series(void **state)
{
    static const struct {
        const char *text;
        int64_t from, to, first, last; /* first 0: none */
    } cases[] = {{"{}", 0, 1000, 100, 120},
                 {"{service_name=\"api\"}", 0, 1000, 100, 110},
                 {"{service_name=\"api\"}", 101, 1000, 110, 110},
                 {"{pod=\"\"}", 0, 1000, 120, 120},
                 {"{pod=\"\"}", 0, 119, 0, 0},
                 {"{pod=\"nothing\"}", 0, 1000, 0, 0}};
    struct world *w = *state;

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        struct hearth_index_filter filter =
            make_filter(w, cases[i].text, cases[i].from, cases[i].to);
        bool any;
        int64_t first, last;
        assert_int_equal(
            hearth_label_index_hours(w->index, &filter, &w->arena, &any, &first, &last, &w->err),
            HEARTH_OK);
        assert_int_equal(any, cases[i].first != 0);
        assert_int_equal(first, cases[i].first);
        assert_int_equal(last, cases[i].last);
    }
}

static void hits_of_several_selections_become_one_sorted_list(void **state)
{
    (void)state;
    struct hearth_series_hit v[] = {
        {.service_id = 2, .series_id = 1, .column = 0},
        {.service_id = 1, .series_id = 9, .column = 1},
        {.service_id = 1, .series_id = 9, .column = 0},
        {.service_id = 2, .series_id = 1, .column = 0},
        {.service_id = 1, .series_id = 8, .column = 1},
    };

    assert_int_equal(hearth_series_hits_sort(v, 5), 4);
    for (size_t i = 1; i < 4; i++) {
        assert_true(hearth_series_hit_compare(&v[i - 1], &v[i]) < 0);
    }
    assert_int_equal(v[0].series_id, 8);
    assert_int_equal(v[3].service_id, 2);
    assert_int_equal(hearth_series_hits_sort(v, 0), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_selector_selects_series_and_columns),
        TEST(a_missing_label_has_the_empty_value),
        TEST(a_range_includes_whole_hours),
        TEST(first_and_last_hours_are_those_of_any_series),
        TEST(hours_before_the_epoch_are_found),
        TEST(one_hit_matches_as_a_selection_decides),
        TEST(hours_of_a_selection_are_those_of_its_series),
        TEST(names_include_the_derived_ones),
        TEST(values_are_those_of_matching_series),
        TEST(projections_are_distinct_and_sorted),
        TEST(hits_with_equal_labels_are_one_group),
        TEST(projecting_on_nothing_gives_all_labels),
        TEST(sets_with_missing_labels_are_in_label_order),
        TEST(services_may_share_a_name),
        TEST(adding_an_id_again_changes_nothing),
        TEST(two_ids_of_the_same_pair_are_one_value),
        TEST(references_to_missing_rows_are_corrupt),
        TEST(a_stored_label_cannot_shadow_a_derived_one),
        TEST(a_malformed_type_keeps_its_column),
        TEST(cpu_time_of_a_wall_profile_is_found_by_either_type_id),
        TEST(series_that_differ_only_in_their_shapes_are_recognised),
        TEST(the_largest_ids_are_sorted_correctly),
        TEST(trimming_deletes_hours_and_then_series),
        TEST(labels_of_a_deleted_hit_are_not_found),
        TEST(many_rare_names_are_projected_without_a_table_of_all),
        TEST(hits_of_several_selections_become_one_sorted_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
