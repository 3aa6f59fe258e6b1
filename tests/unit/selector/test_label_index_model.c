/*
 * test_label_index_model.c -- the label index against a model that has no index.
 *
 * Worlds, selectors and ranges are random. The model keeps every API series with its labels and
 * hours in a flat list and answers each query by applying hearth_matcher_matches to all of them.
 */
#include "hearth/base/clock.h"
#include "hearth/selector/label_index.h"

#include "rounds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define MAX_SERIES 300
#define N_SERVICES 5
#define N_SHAPES   4
#define N_NAMES    6
#define N_VALUES   5
#define N_HOURS    100 /* starting at FIRST_HOUR */
#define FIRST_HOUR (-30)

static uint64_t g_random;

static uint32_t below(uint32_t n)
{
    g_random = g_random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(g_random >> 33) % n;
}

/* ---- the model ---- */

static const char *const g_types[] = {"cpu:cpu:ns:cpu:ns", "cpu:samples:count:cpu:ns",
                                      "mem:space:bytes::", "mem:objects:count::ms",
                                      "wall:wall:ns:wall:"};
static const uint8_t g_shapes[N_SHAPES][4] = {{0}, {0, 1}, {2, 3}, {4, 0, 2, 1}};
static const uint8_t g_shape_n[N_SHAPES] = {1, 2, 2, 4};
/* Two services with one name. */
static const char *const g_services[N_SERVICES] = {"api", "db", "web", "api", "q-1"};
static const char *const g_names[N_NAMES] = {"pod", "zone", "a", "Z", "k.8s", "x_y"};
static const char *const g_values[N_VALUES] = {"a", "b", "ab", "a.b", "q-1"};

struct model_series {
    bool exists;
    uint32_t service, shape;
    uint8_t value[N_NAMES]; /* 0: the label is absent */
    uint8_t hours[N_HOURS];
    bool had_hours;
};

struct world {
    struct hearth_label_index *index;
    struct model_series series[MAX_SERIES]; /* series id - 1 */
    struct hearth_arena arena;
    struct hearth_selector selector;
    int64_t from_ns, to_ns;
    int from_hour, to_hour;
};

static int32_t pair_id(uint32_t name, uint32_t value)
{
    return (int32_t)(name * 5000 + value + 1); /* far apart: several pages of ids */
}

static int32_t series_id(size_t i)
{
    return (int32_t)(i * 37 % MAX_SERIES * 1000 + 1); /* not in the order of adding */
}

static void labels_of(const struct world *w, size_t i, size_t column, struct hearth_labels *ret)
{
    static struct hearth_label v[N_NAMES + 8];
    const struct model_series *s = &w->series[i];
    struct hearth_profile_type type;
    struct hearth_str id = hearth_str_c(g_types[g_shapes[s->shape][column]]);
    struct hearth_str service = hearth_str_c(g_services[s->service]);
    assert_int_equal(hearth_profile_type_parse(id, &type, NULL), HEARTH_OK);
    const struct hearth_label derived[] = {{HEARTH_STR("__name__"), type.name},
                                           {HEARTH_STR("__profile_type__"), id},
                                           {HEARTH_STR("__type__"), type.sample_type},
                                           {HEARTH_STR("__unit__"), type.sample_unit},
                                           {HEARTH_STR("__period_type__"), type.period_type},
                                           {HEARTH_STR("__period_unit__"), type.period_unit},
                                           {HEARTH_STR("service_name"), service},
                                           {HEARTH_STR("__service_name__"), service}};
    *ret = (struct hearth_labels){.v = v};
    for (size_t k = 0; k < HEARTH_ARRAY_LEN(derived); k++) {
        if (derived[k].value.n > 0) {
            v[ret->n++] = derived[k];
        }
    }
    for (size_t k = 0; k < N_NAMES; k++) {
        if (s->value[k] != 0) {
            v[ret->n++] = (struct hearth_label){hearth_str_c(g_names[k]),
                                                hearth_str_c(g_values[s->value[k] - 1])};
        }
    }
    hearth_labels_sort(ret);
}

static bool is_active(const struct world *w, size_t i)
{
    const struct model_series *s = &w->series[i];
    int first = w->from_hour - FIRST_HOUR, last = w->to_hour - FIRST_HOUR;
    for (int hour = first < 0 ? 0 : first; s->exists && hour < N_HOURS && hour <= last; hour++) {
        if (s->hours[hour]) {
            return true;
        }
    }
    return false;
}

static bool takes(const struct world *w, const struct hearth_labels *labels)
{
    for (size_t i = 0; i < w->selector.n; i++) {
        struct hearth_str value = hearth_labels_get(labels, w->selector.matchers[i].name);
        if (!hearth_matcher_matches(&w->selector.matchers[i], value)) {
            return false;
        }
    }
    return true;
}

/* ---- random worlds ---- */

static struct hearth_label_index *new_index(void)
{
    struct hearth_label_index *index = hearth_label_index_new();
    assert_non_null(index);
    for (int32_t i = 0; i < N_SERVICES; i++) {
        assert_int_equal(hearth_label_index_add_service(index, 9 - i, hearth_str_c(g_services[i])),
                         HEARTH_OK);
    }
    for (int32_t i = 0; i < N_SHAPES; i++) {
        struct hearth_str types[4];
        for (size_t k = 0; k < g_shape_n[i]; k++) {
            types[k] = hearth_str_c(g_types[g_shapes[i][k]]);
        }
        assert_int_equal(hearth_label_index_add_shape(index, i + 1, types, g_shape_n[i]),
                         HEARTH_OK);
    }
    for (uint32_t n = 0; n < N_NAMES; n++) {
        for (uint32_t v = 1; v <= N_VALUES; v++) {
            assert_int_equal(hearth_label_index_add_pair(index, pair_id(n, v),
                                                         hearth_str_c(g_names[n]),
                                                         hearth_str_c(g_values[v - 1])),
                             HEARTH_OK);
        }
    }
    return index;
}

static void add_to_index(struct world *w, size_t i)
{
    const struct model_series *s = &w->series[i];
    int32_t pairs[N_NAMES];
    size_t n = 0;
    for (uint32_t k = N_NAMES; k-- > 0;) {
        if (s->value[k] != 0) {
            pairs[n++] = pair_id(k, s->value[k]);
        }
    }
    assert_int_equal(hearth_label_index_add_series(w->index, series_id(i), 9 - (int32_t)s->service,
                                                   (int32_t)s->shape + 1, pairs, n),
                     HEARTH_OK);
}

static void add_series(struct world *w, size_t i)
{
    struct model_series *s = &w->series[i];
    *s = (struct model_series){
        .exists = true, .service = below(N_SERVICES), .shape = below(N_SHAPES)};
    uint32_t richness = below(4); /* few schemas, so that groups have several series */
    for (size_t k = 0; k < N_NAMES; k++) {
        s->value[k] =
            richness > k || (richness == 3 && k == 5) ? (uint8_t)(1 + below(N_VALUES)) : 0;
    }
    add_to_index(w, i);
}

static void add_hours(struct world *w, size_t i)
{
    struct model_series *s = &w->series[i];
    for (uint32_t n = below(6); n > 0; n--) {
        uint32_t hour = below(N_HOURS);
        s->hours[hour] = 1;
        s->had_hours = true;
        assert_int_equal(
            hearth_label_index_add_hour(w->index, series_id(i), (int32_t)hour + FIRST_HOUR),
            HEARTH_OK);
    }
}

static void trim(struct world *w, int before)
{
    hearth_label_index_trim(w->index, before);
    for (size_t i = 0; i < MAX_SERIES; i++) {
        struct model_series *s = &w->series[i];
        bool left = false;
        for (int hour = 0; hour < N_HOURS; hour++) {
            s->hours[hour] = hour + FIRST_HOUR < before ? 0 : s->hours[hour];
            left = left || s->hours[hour];
        }
        s->exists = s->exists && (left || !s->had_hours);
    }
}

/* ---- random queries ---- */

static const char *const g_asked[] = {"pod",
                                      "zone",
                                      "a",
                                      "Z",
                                      "k.8s",
                                      "x_y",
                                      "service_name",
                                      "__service_name__",
                                      "__name__",
                                      "__profile_type__",
                                      "__type__",
                                      "__unit__",
                                      "__period_type__",
                                      "__period_unit__",
                                      "unknown"};

static void random_selector(struct world *w)
{
    static const char *const values[] = {
        "", "a", "b", "ab", "a.b", "q-1", "api", "cpu", "cpu:cpu:ns:cpu:ns", "ns", "nothing"};
    static const char *const regexes[] = {
        "",   ".*",    ".+",      "a|b",    "a.*", ".*b",           ".*a.*", "(?i)A",
        "a|", "[ab]+", "q-[0-9]", "api|db", "x?",  "cpu:.*|mem:.*", "a\\.b"};
    hearth_selector_release(&w->selector);
    struct hearth_err err = HEARTH_ERR_INIT;
    for (uint32_t n = below(4); n > 0; n--) {
        enum hearth_match_op op = (enum hearth_match_op)below(4);
        bool regex = op == HEARTH_MATCH_RE || op == HEARTH_MATCH_NRE;
        const char *value = regex ? regexes[below(HEARTH_ARRAY_LEN(regexes))]
                                  : values[below(HEARTH_ARRAY_LEN(values))];
        assert_int_equal(hearth_selector_add(
                             &w->selector, hearth_str_c(g_asked[below(HEARTH_ARRAY_LEN(g_asked))]),
                             op, hearth_str_c(value), &w->arena, &err),
                         HEARTH_OK);
    }
    int from = (int)below(N_HOURS) + FIRST_HOUR, length = (int)below(below(2) ? N_HOURS : 5);
    w->from_ns = from * HEARTH_NS_PER_HOUR + below(3600) * HEARTH_NS_PER_SEC;
    w->to_ns = w->from_ns + length * HEARTH_NS_PER_HOUR;
    w->from_hour = from;
    w->to_hour = from + length;
}

static int compare_texts(const void *a, const void *b)
{
    struct hearth_str left, right;
    memcpy(&left, a, sizeof left);
    memcpy(&right, b, sizeof right);
    return hearth_str_cmp(left, right);
}

static void assert_same_texts(struct hearth_str *want, size_t n_want, const struct hearth_str *got,
                              size_t n_got)
{
    size_t n = 0;
    qsort(want, n_want, sizeof *want, compare_texts);
    for (size_t i = 0; i < n_want; i++) {
        if (n == 0 || !hearth_str_eq(want[n - 1], want[i])) {
            want[n++] = want[i];
        }
    }
    assert_int_equal(n_got, n);
    for (size_t i = 0; i < n; i++) {
        assert_true(hearth_str_eq(got[i], want[i]));
    }
}

static int compare_sets(const void *a, const void *b)
{
    struct hearth_labels left, right;
    memcpy(&left, a, sizeof left);
    memcpy(&right, b, sizeof right);
    return hearth_labels_cmp(&left, &right);
}

static struct hearth_labels keep(struct world *w, const struct hearth_labels *labels,
                                 const struct hearth_str *names, size_t n)
{
    struct hearth_labels out = {.v = hearth_arena_array(&w->arena, labels->n, sizeof *out.v)};
    for (size_t i = 0; i < labels->n; i++) {
        bool wanted = n == 0;
        for (size_t k = 0; k < n; k++) {
            wanted = wanted || hearth_str_eq(labels->v[i].name, names[k]);
        }
        if (wanted) {
            out.v[out.n++] = labels->v[i];
        }
    }
    return out;
}

/* All results of the model for the current selector, range and names. */
struct answers {
    struct hearth_series_hit *hits;
    struct hearth_str *names, *values;
    struct hearth_labels *sets;
    size_t n_hits, n_names, n_values, n_sets;
    bool some_name_exists;
};

static struct answers ask_model(struct world *w, const struct hearth_str *names, size_t n_names)
{
    enum {
        MAX = MAX_SERIES * 4
    };
    struct answers a = {.hits = hearth_arena_array(&w->arena, MAX, sizeof *a.hits),
                        .names = hearth_arena_array(&w->arena, MAX * 16, sizeof *a.names),
                        .values = hearth_arena_array(&w->arena, MAX, sizeof *a.values),
                        .sets = hearth_arena_array(&w->arena, MAX, sizeof *a.sets)};
    for (size_t i = 0; i < MAX_SERIES; i++) {
        for (size_t c = 0; is_active(w, i) && c < g_shape_n[w->series[i].shape]; c++) {
            struct hearth_labels labels;
            labels_of(w, i, c, &labels);
            a.some_name_exists = a.some_name_exists || keep(w, &labels, names, n_names).n > 0;
            if (!takes(w, &labels)) {
                continue;
            }
            a.hits[a.n_hits++] =
                (struct hearth_series_hit){.series_id = series_id(i),
                                           .service_id = 9 - (int32_t)w->series[i].service,
                                           .shape_id = (int32_t)w->series[i].shape + 1,
                                           .column = (uint16_t)c,
                                           .n_types = g_shape_n[w->series[i].shape]};
            for (size_t k = 0; k < labels.n; k++) {
                a.names[a.n_names++] = labels.v[k].name;
            }
            struct hearth_str value =
                n_names == 0 ? HEARTH_STR("") : hearth_labels_get(&labels, names[0]);
            if (value.n > 0) {
                a.values[a.n_values++] = value;
            }
            a.sets[a.n_sets++] = keep(w, &labels, names, n_names);
        }
    }
    return a;
}

static int compare_hits(const void *a, const void *b)
{
    struct hearth_series_hit left, right;
    memcpy(&left, a, sizeof left);
    memcpy(&right, b, sizeof right);
    if (left.service_id != right.service_id) {
        return left.service_id < right.service_id ? -1 : 1;
    }
    if (left.series_id != right.series_id) {
        return left.series_id < right.series_id ? -1 : 1;
    }
    return left.column < right.column ? -1 : left.column > right.column;
}

static struct hearth_index_filter make_filter(const struct world *w)
{
    return (struct hearth_index_filter){&w->selector, w->from_ns, w->to_ns};
}

static void check_hits(struct world *w, struct answers *want)
{
    const struct hearth_index_filter filter = make_filter(w);
    struct hearth_series_hits found;
    struct hearth_err err;
    qsort(want->hits, want->n_hits, sizeof *want->hits, compare_hits);
    assert_int_equal(hearth_label_index_select(w->index, &filter, &w->arena, &found, &err),
                     HEARTH_OK);
    const struct hearth_series_hit *hits = found.v;
    size_t n = found.n;
    assert_int_equal(n, want->n_hits);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(compare_hits(&hits[i], &want->hits[i]), 0);
        assert_int_equal(hits[i].shape_id, want->hits[i].shape_id);
        assert_int_equal(hits[i].n_types, want->hits[i].n_types);
    }
    if (n > 0) {
        struct hearth_labels got, expected;
        struct hearth_series_hit hit = hits[below((uint32_t)n)];
        size_t i = 0;
        while (series_id(i) != hit.series_id) {
            i++;
        }
        labels_of(w, i, hit.column, &expected);
        assert_int_equal(hearth_label_index_labels(w->index, &hit, &w->arena, &got, &err),
                         HEARTH_OK);
        assert_int_equal(hearth_labels_cmp(&got, &expected), 0);
    }
}

static void check_sets(struct world *w, struct answers *want, const struct hearth_str *names,
                       size_t n_names)
{
    const struct hearth_index_filter filter = make_filter(w);
    struct hearth_label_sets sets;
    struct hearth_err err;
    size_t n_want = 0;
    assert_int_equal(hearth_label_index_project(w->index, &filter,
                                                (struct hearth_projected_names){names, n_names},
                                                &w->arena, &sets, &err),
                     HEARTH_OK);
    qsort(want->sets, want->n_sets, sizeof *want->sets, compare_sets);
    for (size_t i = 0; i < want->n_sets; i++) {
        bool repeated =
            n_want > 0 && hearth_labels_cmp(&want->sets[n_want - 1], &want->sets[i]) == 0;
        if (!repeated && (want->sets[i].n > 0 || want->some_name_exists)) {
            want->sets[n_want++] = want->sets[i];
        }
    }
    assert_int_equal(sets.n, n_want);
    for (size_t i = 0; i < sets.n; i++) {
        assert_int_equal(hearth_labels_cmp(&sets.v[i], &want->sets[i]), 0);
    }
}

/* Groups are distinct, in the order of their first hits, and have the labels of their hits. */
static void check_groups(struct world *w, const struct answers *want,
                         const struct hearth_str *names, size_t n_names)
{
    const struct hearth_series_hits hits = {want->hits, want->n_hits};
    struct hearth_label_groups groups;
    struct hearth_err err;
    assert_int_equal(hearth_label_index_group(w->index, &hits,
                                              (struct hearth_projected_names){names, n_names},
                                              &w->arena, &groups, &err),
                     HEARTH_OK);
    size_t n_seen = 0;
    for (size_t i = 0; i < hits.n; i++) {
        struct hearth_labels all;
        assert_int_equal(hearth_label_index_labels(w->index, &hits.v[i], &w->arena, &all, &err),
                         HEARTH_OK);
        assert_true(groups.of_hit[i] <= n_seen);
        n_seen += groups.of_hit[i] == n_seen;
        const struct hearth_labels *got = &groups.v[groups.of_hit[i]];
        size_t n_present = 0;
        for (size_t k = 0; k < n_names; k++) {
            struct hearth_str value = hearth_labels_get(&all, names[k]);
            bool repeated = false;
            for (size_t earlier = 0; earlier < k; earlier++) {
                repeated = repeated || hearth_str_eq(names[earlier], names[k]);
            }
            assert_true(hearth_str_eq(hearth_labels_get(got, names[k]), value));
            n_present += value.p != NULL && !repeated;
        }
        assert_int_equal(got->n, n_present);
    }
    assert_int_equal(groups.n, n_seen);
    qsort(groups.v, groups.n, sizeof groups.v[0], compare_sets);
    for (size_t i = 1; i < groups.n; i++) {
        assert_true(hearth_labels_cmp(&groups.v[i - 1], &groups.v[i]) < 0);
    }
}

/* A column is covered if every active series of its service and shape is among the hits. */
static size_t check_covered(struct world *w, const struct answers *want)
{
    const struct hearth_index_filter filter = make_filter(w);
    const struct hearth_series_hits hits = {want->hits, want->n_hits};
    struct hearth_series_hits found;
    struct hearth_err err;
    size_t n_want = 0;
    assert_int_equal(hearth_label_index_covered(w->index, &filter, &hits, &w->arena, &found, &err),
                     HEARTH_OK);
    const struct hearth_series_hit *covered = found.v;
    size_t n = found.n;
    for (int32_t service = 1; service <= 9; service++) {
        for (int32_t shape = N_SHAPES; shape >= 1; shape--) {
            for (uint16_t c = 0; c < g_shape_n[shape - 1]; c++) {
                size_t n_hits = 0, n_active = 0;
                for (size_t i = 0; i < MAX_SERIES; i++) {
                    n_active += 9 - (int32_t)w->series[i].service == service &&
                                (int32_t)w->series[i].shape + 1 == shape && is_active(w, i);
                }
                for (size_t i = 0; i < want->n_hits; i++) {
                    n_hits += want->hits[i].service_id == service &&
                              want->hits[i].shape_id == shape && want->hits[i].column == c;
                }
                if (n_hits == 0 || n_hits < n_active) {
                    continue;
                }
                assert_true(n_want < n);
                assert_int_equal(covered[n_want].service_id, service);
                assert_int_equal(covered[n_want].series_id, -shape);
                assert_int_equal(covered[n_want].shape_id, shape);
                assert_int_equal(covered[n_want].column, c);
                assert_int_equal(covered[n_want++].n_types, g_shape_n[shape - 1]);
            }
        }
    }
    assert_int_equal(n, n_want);
    return n;
}

static size_t check_random_question(struct world *w, size_t *n_covered)
{
    struct hearth_str names[4];
    struct hearth_index_texts texts;
    struct hearth_err err;
    size_t n_names = below(5);
    random_selector(w);
    const struct hearth_index_filter filter = make_filter(w);
    for (size_t i = 0; i < n_names; i++) {
        names[i] = hearth_str_c(g_asked[below(HEARTH_ARRAY_LEN(g_asked))]);
    }
    struct answers want = ask_model(w, names, n_names);
    check_hits(w, &want);
    *n_covered += check_covered(w, &want);
    assert_int_equal(hearth_label_index_names(w->index, &filter, &w->arena, &texts, &err),
                     HEARTH_OK);
    assert_same_texts(want.names, want.n_names, texts.v, texts.n);
    if (n_names > 0) {
        assert_int_equal(
            hearth_label_index_values(w->index, &filter, names[0], &w->arena, &texts, &err),
            HEARTH_OK);
        assert_same_texts(want.values, want.n_values, texts.v, texts.n);
    }
    check_sets(w, &want, names, n_names);
    if (n_names > 0) {
        check_groups(w, &want, names, n_names);
    }
    return want.n_hits;
}

static void the_index_agrees_with_the_model(void **state)
{
    (void)state;
    g_random = 1795132800;
    print_message("seed %llu\n", (unsigned long long)g_random);
    static struct world w;
    size_t n_questions = 0, n_hits = 0, n_empty = 0, n_covered = 0;
    for (int round = 0; round < test_rounds(40); round++) {
        w = (struct world){.index = new_index()};
        hearth_selector_init(&w.selector);
        hearth_arena_init(&w.arena, 0);
        size_t n_series = 1 + below(below(2) ? MAX_SERIES - 1 : 20);
        for (size_t i = 0; i < n_series; i++) {
            add_series(&w, i);
            add_hours(&w, i);
        }
        for (int step = 0; step < 120; step++) {
            size_t i = below((uint32_t)n_series);
            if (step % 40 == 39) {
                trim(&w, (int)below(N_HOURS / 2) + FIRST_HOUR);
            } else if (step % 10 == 9) {
                if (!w.series[i].exists) {
                    add_series(&w, i);
                }
                add_hours(&w, i);
            }
            size_t hits = check_random_question(&w, &n_covered);
            n_questions++;
            n_hits += hits;
            n_empty += hits == 0;
            hearth_selector_release(&w.selector);
            hearth_arena_reset(&w.arena);
        }
        hearth_label_index_free(w.index);
        hearth_arena_release(&w.arena);
    }
    print_message("%zu questions, %zu hits, %zu without a hit, %zu shapes covered\n", n_questions,
                  n_hits, n_empty, n_covered);
    assert_true(n_hits > n_questions && n_empty > 0 && n_covered > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_index_agrees_with_the_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
