/*
 * test_plan.c -- the planner against what each instant of each series needs.
 *
 * States, ranges, deletions and retention are random. An oracle that knows nothing of groups asks for
 * a series and an instant: which legs answer it? Exactly one, never with more than was asked for,
 * unless retention has taken it.
 */
#include "hearth/base/clock.h"
#include "hearth/engine/plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define SEC          HEARTH_NS_PER_SEC
#define MIN10        (600 * SEC)
#define HOUR         HEARTH_NS_PER_HOUR
#define DAY          HEARTH_NS_PER_DAY
#define MAX_SERVICES 40
#define MAX_HITS     (MAX_SERVICES * 8)
#define MAX_DELETED  6
#define MAX_ABSENT   HEARTH_MAX_ABSENT
#define MAX_LEGS     300
/* 2026-11-20T10:36:30Z */
#define NOW (INT64_C(1795170990) * SEC)

static uint64_t g_random;

static uint32_t below(uint32_t n)
{
    g_random = g_random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(g_random >> 33) % n;
}

static int64_t floor_to(int64_t t, int64_t length)
{
    return t - ((t % length) + length) % length;
}

struct world {
    struct hearth_service_state services[MAX_SERVICES];
    struct hearth_absent_blocks absent[MAX_SERVICES][MAX_ABSENT];
    struct hearth_tombstone tombstones[MAX_DELETED];
    int32_t deleted[MAX_DELETED][8];
    struct hearth_read_state state;
    struct hearth_series_hit hits[MAX_HITS], covered[MAX_HITS];
    struct hearth_plan_input in;
    struct hearth_arena arena;
    struct hearth_read_plan plan;
    struct hearth_buf notes;
};

/* A time near now, on a boundary more often than not. */
static int64_t random_time(void)
{
    int64_t t = NOW - (int64_t)below(12 * 24 * 3600) * SEC - below(1000000);
    switch (below(5)) {
    case 0:
        return floor_to(t, DAY);
    case 1:
        return floor_to(t, HOUR);
    case 2:
        return floor_to(t, MIN10);
    case 3:
        return floor_to(t, HOUR) - 1;
    default:
        return t;
    }
}

/* Ranges of 10 minutes, hours and days: none, one or many. Half of the services share their times. */
static void random_absent_blocks(struct world *w, size_t i)
{
    struct hearth_service_state *s = &w->services[i];
    uint32_t kind = below(4);
    size_t n_each = kind < 2 ? 0 : kind == 2 ? 1 : 1 + below(MAX_ABSENT / 3);
    s->absent = w->absent[i];
    for (int tier = 0; tier < 3; tier++) {
        int64_t length = tier == 0 ? MIN10 : tier == 1 ? HOUR : DAY;
        int64_t at = floor_to(random_time(), length);
        for (size_t k = 0; k < n_each; k++) {
            int64_t to = at + (int64_t)(1 + below(kind == 2 ? 1000 : 6)) * length;
            w->absent[i][s->n_absent++] =
                (struct hearth_absent_blocks){length, at, to, below(3) == 0};
            at = to + (int64_t)(1 + below(6)) * length;
        }
    }
    if (i > 0 && below(2) == 0) {
        s->absent = w->services[i - 1].absent;
        s->n_absent = w->services[i - 1].n_absent;
    }
}

static void random_states(struct world *w, size_t n_services)
{
    int64_t standing[12][2];
    uint32_t n_standing = below(4) == 0 ? 12 : 1 + below(3);
    for (size_t i = 0; i < n_standing; i++) {
        standing[i][0] = floor_to(random_time(), MIN10);
        standing[i][1] = below(3) == 0 ? INT64_MIN : floor_to(random_time(), HOUR);
    }
    w->state = (struct hearth_read_state){w->services, n_services, w->tombstones, 0};
    for (size_t i = 0; i < n_services; i++) {
        struct hearth_service_state *s = &w->services[i];
        const int64_t *at = standing[below(n_standing)];
        *s = (struct hearth_service_state){.service_id = (int32_t)(10 * i + 1),
                                           .watermark_ns = INT64_MIN,
                                           .built_to_ns = INT64_MIN,
                                           .compacted_to_ns = INT64_MIN};
        if (below(8) > 0) {
            s->built_to_ns = at[0];
            s->compacted_to_ns = at[1];
            s->watermark_ns = at[0] + (below(2) ? 0 : MIN10);
            s->generation = 1 + below(100);
            random_absent_blocks(w, i);
        }
    }
}

/* Two shapes per service; the first may be covered. */
static void random_hits(struct world *w, size_t n_services)
{
    size_t n = 0, n_covered = 0;
    for (size_t i = 0; i < n_services; i++) {
        bool covered = below(2) == 0;
        uint32_t n_series = 1 + below(4);
        bool any = false;
        for (uint32_t s = 0; s < n_series; s++) {
            int32_t shape = 100 + (int32_t)(2 * i) + (int32_t)below(2);
            struct hearth_series_hit hit = {.series_id = (int32_t)(1000 + i * 8 + s),
                                            .service_id = w->services[i].service_id,
                                            .shape_id = shape,
                                            .column = (uint16_t)(shape % 2),
                                            .n_types = 2};
            w->hits[n++] = hit;
            any = any || shape % 2 == 0;
        }
        if (covered && any) {
            w->covered[n_covered++] =
                (struct hearth_series_hit){.series_id = -(100 + (int32_t)(2 * i)),
                                           .service_id = w->services[i].service_id,
                                           .shape_id = 100 + (int32_t)(2 * i),
                                           .column = 0,
                                           .n_types = 2};
        }
    }
    w->in.hits = w->hits;
    w->in.n_hits = n;
    w->in.covered = w->covered;
    w->in.n_covered = n_covered;
}

static void random_tombstones(struct world *w)
{
    size_t n = below(3) == 0 ? below(MAX_DELETED + 1) : 0;
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        const struct hearth_series_hit *hit = &w->hits[at];
        struct hearth_tombstone *t = &w->tombstones[i];
        int64_t from = random_time();
        *t = (struct hearth_tombstone){
            hit->service_id, from, below(5) == 0 ? INT64_MAX : from + (int64_t)below(1000) * MIN10,
            w->deleted[i], 0};
        for (size_t h = at; h < w->in.n_hits && w->hits[h].service_id == hit->service_id; h++) {
            if (t->n_series == 0 || below(2)) {
                w->deleted[i][t->n_series++] = w->hits[h].series_id;
            }
        }
        at += below(2) ? 0 : below((uint32_t)(w->in.n_hits - at)); /* by service */
    }
    w->state.n_tombstones = n;
}

static void random_world(struct world *w)
{
    size_t n_services = 1 + below(below(4) == 0 ? MAX_SERVICES : 4);
    w->in = (struct hearth_plan_input){.now_ns = NOW, .state = &w->state};
    random_states(w, n_services);
    random_hits(w, n_services);
    random_tombstones(w);
    int64_t a = random_time(), b = random_time();
    w->in.from_ns = a < b ? a : b;
    w->in.to_ns = a < b ? b : a;
    if (below(20) == 0) {
        w->in.from_ns = INT64_MIN;
    }
    if (below(20) == 0) {
        w->in.to_ns = INT64_MAX;
    }
    w->in.totals = below(3) == 0;
    w->in.rows = below(8) == 0;
    w->in.gauge = below(4) == 0;
    if (below(2)) {
        w->in.retention.profiles_ns = (int64_t)(1 + below(6 * 24)) * HOUR;
        w->in.retention.roll_10m_ns = (int64_t)(1 + below(6 * 24)) * HOUR;
        w->in.retention.roll_1h_ns = (int64_t)(1 + below(10 * 24)) * HOUR;
        w->in.retention.roll_1d_ns = below(3) == 0 ? 0 : (int64_t)(1 + below(20 * 24)) * HOUR;
    }
    if (below(4) == 0) {
        w->in.retention.profiles_from_ns = NOW - (int64_t)below(6 * 24) * HOUR;
        w->in.retention.roll_10m_from_ns = NOW - (int64_t)below(6 * 24) * HOUR;
        w->in.retention.roll_1h_from_ns = NOW - (int64_t)below(10 * 24) * HOUR;
        w->in.retention.roll_1d_from_ns = NOW - (int64_t)below(20 * 24) * HOUR;
    }
    hearth_arena_reset(&w->arena);
    hearth_buf_reset(&w->notes);
    assert_int_equal(hearth_plan_make(&w->in, &w->arena, &w->plan, &w->notes, NULL), HEARTH_OK);
}

/* ---- what a series and an instant need ---- */

static const struct hearth_service_state *state_of(const struct world *w, int32_t service_id)
{
    return &w->services[(service_id - 1) / 10];
}

static bool names(const struct hearth_tombstone *t, int32_t series_id)
{
    for (size_t i = 0; i < t->n_series; i++) {
        if (t->series_ids[i] == series_id) {
            return true;
        }
    }
    return false;
}

/* Is something of the series deleted in [from, to)? */
static bool touched(const struct world *w, int32_t series_id, int64_t from, int64_t to)
{
    for (size_t i = 0; i < w->state.n_tombstones; i++) {
        const struct hearth_tombstone *t = &w->tombstones[i];
        if (names(t, series_id) && t->from_ns < to && t->to_ns >= from) {
            return true;
        }
    }
    return false;
}

static bool leg_names(const struct hearth_read_leg *leg, const struct hearth_series_hit *hit)
{
    size_t n = 0;
    for (size_t i = 0; i < leg->n_hits; i++) {
        const struct hearth_series_hit *l = &leg->hits[i];
        bool whole = l->series_id == -hit->shape_id;
        n += l->service_id == hit->service_id && l->column == hit->column &&
             (whole || l->series_id == hit->series_id);
    }
    assert_true(n <= 1);
    return n == 1;
}

static bool is_rows(enum hearth_source source)
{
    return source == HEARTH_SOURCE_PROFILE || source == HEARTH_SOURCE_SEGMENT;
}

/* Does the leg's row or block count for the instant? */
static bool leg_answers(const struct world *w, const struct hearth_read_leg *leg,
                        const struct hearth_series_hit *hit, int64_t t)
{
    if (t < leg->from_ns || t >= leg->to_ns || leg->source == HEARTH_SOURCE_LATE ||
        !leg_names(leg, hit)) {
        return false;
    }
    int64_t compacted = state_of(w, hit->service_id)->compacted_to_ns;
    return leg->source == HEARTH_SOURCE_PROFILE   ? t >= compacted
           : leg->source == HEARTH_SOURCE_SEGMENT ? t < compacted
                                                  : true;
}

static int64_t oldest(int64_t keep, int64_t length)
{
    return keep == 0 ? INT64_MIN : floor_to(NOW - keep, length);
}

/* The same for blocks, which were deleted before emptied if that is not 0. */
static int64_t oldest_block(int64_t keep, int64_t emptied, int64_t length)
{
    int64_t kept = oldest(keep, length);
    int64_t whole = emptied == 0 ? INT64_MIN : floor_to(emptied, length);
    return kept > whole ? kept : whole;
}

/* Are the blocks of series that lie at t0 absent, or those of the whole service? */
static bool is_absent(const struct hearth_service_state *state, int64_t length, int64_t t0,
                      bool series)
{
    for (size_t i = 0; i < state->n_absent; i++) {
        const struct hearth_absent_blocks *a = &state->absent[i];
        if (a->length_ns == length && t0 >= a->from_ns && t0 < a->to_ns && (series || a->whole)) {
            return true;
        }
    }
    return false;
}

/* Can a block of that kind serve the instant, by what the contract says? `series`: one of its own. */
static bool block_serves(const struct world *w, enum hearth_source source,
                         const struct hearth_series_hit *hit, int64_t t, bool series)
{
    int64_t n_ns = hearth_source_length_ns(source);
    if (source != HEARTH_SOURCE_TOTALS &&
        is_absent(state_of(w, hit->service_id), n_ns, floor_to(t, n_ns), series)) {
        return false;
    }

    const struct hearth_retention *keep = &w->in.retention;
    int64_t length = hearth_source_length_ns(source);
    int64_t t0 = floor_to(t, length);
    int64_t kept = source == HEARTH_SOURCE_ROLL_1D
                       ? oldest_block(keep->roll_1d_ns, keep->roll_1d_from_ns, DAY)
                   : source == HEARTH_SOURCE_ROLL_10M
                       ? oldest_block(keep->roll_10m_ns, keep->roll_10m_from_ns, MIN10)
                       : oldest_block(keep->roll_1h_ns, keep->roll_1h_from_ns, HOUR);
    int64_t built = state_of(w, hit->service_id)->built_to_ns;
    bool is_totals = source == HEARTH_SOURCE_TOTALS; /* those of an open hour may be there */
    bool inside = is_totals || (t0 >= w->in.from_ns && t0 + length - 1 <= w->in.to_ns);
    return inside && t0 >= kept && built != INT64_MIN &&
           (is_totals ? t + 1 : t0 + length) <= built &&
           !touched(w, hit->series_id, t0, t0 + length);
}

/*
 * From when on the service has profiles: those of days that lack blocks of hours or days stay,
 * whatever the retention says.
 */
static int64_t oldest_row(const struct world *w, const struct hearth_series_hit *hit)
{
    const struct hearth_service_state *state = state_of(w, hit->service_id);
    int64_t first = oldest(w->in.retention.profiles_ns, HOUR);
    for (size_t i = 0; !w->in.rows && i < state->n_absent; i++) {
        const struct hearth_absent_blocks *a = &state->absent[i];
        int64_t day = floor_to(a->from_ns, DAY);
        first =
            a->length_ns > MIN10 && a->from_ns < state->built_to_ns && day < first ? day : first;
    }
    return first;
}

static bool anything_serves(const struct world *w, const struct hearth_series_hit *hit, int64_t t)
{
    if (t >= oldest_row(w, hit)) {
        return true;
    }
    if (w->in.rows) {
        return false;
    }
    if (w->in.totals) {
        return block_serves(w, HEARTH_SOURCE_TOTALS, hit, t, true);
    }
    return block_serves(w, HEARTH_SOURCE_ROLL_10M, hit, t, true) ||
           block_serves(w, HEARTH_SOURCE_ROLL_1H, hit, t, true) ||
           block_serves(w, HEARTH_SOURCE_ROLL_1D, hit, t, true);
}

/*
 * Deleted series share groups when there are many, and may then lose more than they must. So may
 * series with many ranges of absent blocks, whose nearest neighbours are joined.
 */
static bool crowded(const struct world *w)
{
    bool many = w->state.n_tombstones > 0 || w->state.n_services > 8;
    for (size_t i = 0; i < w->state.n_services; i++) {
        many = many || w->services[i].n_absent > 2 * 16;
    }
    return many;
}

static void check_instant(const struct world *w, const struct hearth_series_hit *hit, int64_t t)
{
    size_t n = 0;
    bool whole = false;
    for (size_t i = 0; i < w->plan.n_legs; i++) {
        const struct hearth_read_leg *leg = &w->plan.legs[i];
        if (!leg_answers(w, leg, hit, t)) {
            continue;
        }
        n++;
        whole = whole || leg->hits[0].series_id < 0;
        if (is_rows(leg->source)) {
            assert_true(t >= oldest_row(w, hit));
        } else {
            assert_true(block_serves(w, leg->source, hit, t, leg->hits[0].series_id > 0));
            assert_false(w->in.rows);
            assert_int_equal(w->in.totals, leg->source == HEARTH_SOURCE_TOTALS);
        }
    }
    bool served = anything_serves(w, hit, t) || whole;
    if (touched(w, hit->series_id, t, t + 1)) {
        assert_true(n <= 1); /* rows that the reader leaves out, or nothing at all */
    } else if (served && !(crowded(w) && t < oldest(w->in.retention.profiles_ns, HOUR))) {
        assert_int_equal(n, 1);
    } else {
        assert_true(n <= (served ? 1u : 0u));
    }
    if (n == 0 && !touched(w, hit->series_id, t, t + 1)) {
        assert_true(w->notes.n > 0);
    }
}

static void check_late(const struct world *w, const struct hearth_series_hit *hit, int64_t t)
{
    size_t n = 0;
    for (size_t i = 0; i < w->plan.n_legs; i++) {
        const struct hearth_read_leg *leg = &w->plan.legs[i];
        n += leg->source == HEARTH_SOURCE_LATE && t >= leg->from_ns && t < leg->to_ns &&
             leg_names(leg, hit);
    }
    assert_true(n <= 1);
    bool needed = t < state_of(w, hit->service_id)->watermark_ns && t >= oldest_row(w, hit) &&
                  !touched(w, hit->series_id, t, t + 1);
    assert_true(n == 1 || !needed);
}

static void check_legs(const struct world *w)
{
    for (size_t i = 0; i < w->plan.n_legs; i++) {
        const struct hearth_read_leg *leg = &w->plan.legs[i];
        int64_t length = hearth_source_length_ns(leg->source);
        assert_true(leg->from_ns < leg->to_ns && leg->n_hits > 0);
        assert_true(leg->from_ns >= w->in.from_ns);
        assert_true(leg->to_ns - 1 <= w->in.to_ns);
        if (length > 0 && leg->source != HEARTH_SOURCE_TOTALS) {
            assert_true(leg->from_ns == INT64_MIN ||
                        floor_to(leg->from_ns, length) == leg->from_ns);
            assert_int_equal(floor_to(leg->to_ns, length), leg->to_ns);
        }
        for (size_t h = 0; h < leg->n_hits; h++) {
            const struct hearth_series_hit *hit = &leg->hits[h];
            bool whole = hit->series_id < 0;
            assert_false(whole && (w->in.gauge || w->in.totals || w->in.rows || length == 0));
            assert_int_equal(whole, leg->hits[0].series_id < 0);
            if (h > 0) {
                const struct hearth_series_hit *before = hit - 1;
                assert_true(
                    before->service_id < hit->service_id ||
                    (before->service_id == hit->service_id && before->series_id < hit->series_id));
            }
        }
    }
}

/* Instants where something may go wrong: edges of legs, of deletions, of the range. */
static size_t instants(const struct world *w, int64_t out[1024])
{
    size_t n = 0;
    out[n++] = w->in.from_ns;
    out[n++] = w->in.to_ns == INT64_MAX ? INT64_MAX - 1 : w->in.to_ns;
    for (size_t i = 0; i < w->plan.n_legs && n < 600; i++) {
        out[n++] = w->plan.legs[i].from_ns;
        out[n++] = w->plan.legs[i].from_ns - (w->plan.legs[i].from_ns > INT64_MIN);
        out[n++] = w->plan.legs[i].to_ns;
        out[n++] = w->plan.legs[i].to_ns - 1;
    }
    for (size_t i = 0; i < w->state.n_tombstones; i++) {
        out[n++] = w->tombstones[i].from_ns;
        out[n++] = w->tombstones[i].to_ns;
        out[n++] = w->tombstones[i].from_ns - 1;
    }
    while (n < 700) {
        out[n++] = random_time();
    }
    return n;
}

static void every_instant_of_every_series_is_answered_exactly_once(void **state)
{
    (void)state;
    g_random = 1795132800;
    static struct world w;
    hearth_arena_init(&w.arena, 0);
    hearth_buf_init(&w.notes, 0);
    size_t n_legs = 0, n_whole = 0, n_noted = 0;
    for (int round = 0; round < 4000; round++) {
        random_world(&w);
        check_legs(&w);
        int64_t t[1024];
        size_t n = instants(&w, t);
        for (size_t k = 0; k < 12; k++) {
            const struct hearth_series_hit *hit = &w.hits[below((uint32_t)w.in.n_hits)];
            for (size_t i = k % 3; i < n; i += 1 + k / 3) {
                if (t[i] >= w.in.from_ns && t[i] <= w.in.to_ns && t[i] < INT64_MAX &&
                    t[i] > INT64_MIN + DAY) {
                    check_instant(&w, hit, t[i]);
                    check_late(&w, hit, t[i]);
                }
            }
        }
        n_legs += w.plan.n_legs;
        n_noted += w.notes.n > 0;
        for (size_t i = 0; i < w.plan.n_legs; i++) {
            n_whole += w.plan.legs[i].hits[0].series_id < 0;
        }
        assert_true(w.plan.n_legs <= MAX_LEGS);
    }
    print_message("%zu legs, %zu of whole services, %zu plans with notes\n", n_legs, n_whole,
                  n_noted);
    assert_true(n_whole > 1000 && n_noted > 300);
    hearth_buf_release(&w.notes);
    hearth_arena_release(&w.arena);
}

/* ---- plans as one would draw them ---- */

static struct world g_simple;

/* One service of two series, built to `built` before now. */
static void simple_world(int64_t built_to_ns, int64_t compacted_to_ns)
{
    struct world *w = &g_simple;
    hearth_arena_reset(&w->arena);
    hearth_buf_reset(&w->notes);
    w->services[0] = (struct hearth_service_state){.service_id = 1,
                                                   .watermark_ns = built_to_ns,
                                                   .built_to_ns = built_to_ns,
                                                   .compacted_to_ns = compacted_to_ns,
                                                   .generation = 7};
    w->state = (struct hearth_read_state){w->services, 1, w->tombstones, 0};
    for (int i = 0; i < 2; i++) {
        w->hits[i] = (struct hearth_series_hit){5 + i, 1, 100, 0, 1};
    }
    w->covered[0] = (struct hearth_series_hit){-100, 1, 100, 0, 1};
    w->in = (struct hearth_plan_input){.hits = w->hits,
                                       .n_hits = 2,
                                       .now_ns = NOW,
                                       .state = &w->state,
                                       .covered = w->covered,
                                       .n_covered = 1};
}

static void expect_plan(int64_t from_ns, int64_t to_ns, const char *expected)
{
    struct world *w = &g_simple;
    w->in.from_ns = from_ns;
    w->in.to_ns = to_ns;
    assert_int_equal(hearth_plan_make(&w->in, &w->arena, &w->plan, &w->notes, NULL), HEARTH_OK);
    struct hearth_buf text;
    hearth_buf_init(&text, 0);
    for (size_t i = 0; i < w->plan.n_legs; i++) {
        const struct hearth_read_leg *leg = &w->plan.legs[i];
        int64_t day = floor_to(NOW, DAY);
        hearth_buf_printf(&text, "%s%s %.2f..%.2f\n", hearth_source_name(leg->source),
                          leg->hits[0].series_id < 0 ? "*" : "",
                          (double)(leg->from_ns - day) / (double)HOUR,
                          (double)(leg->to_ns - day) / (double)HOUR);
    }
    hearth_buf_byte(&text, '\0');
    assert_string_equal(text.p, expected);
    hearth_buf_release(&text);
}

static void expect_notes(const char *expected)
{
    hearth_buf_byte(&g_simple.notes, '\0');
    assert_string_equal(g_simple.notes.p, expected);
}

static void a_range_becomes_days_hours_minutes_and_rows(void **state)
{
    (void)state;
    int64_t today = floor_to(NOW, DAY);
    simple_world(today + 10 * HOUR + 3 * MIN10, INT64_MIN);
    expect_plan(today - 26 * HOUR - 1, NOW,
                "profile -26.00..-26.00\nprofile 10.50..10.61\nlate -26.00..10.50\n"
                "roll_10m* 10.00..10.50\nroll_1h* -26.00..-24.00\nroll_1h* 0.00..10.00\n"
                "roll_1d* -24.00..0.00\n");
    g_simple.in.gauge = true;
    expect_plan(today - DAY, today - 1, "late -24.00..0.00\nroll_1d -24.00..0.00\n");
    g_simple.in.gauge = false;
    g_simple.in.rows = true;
    expect_plan(today - DAY, today - 1, "profile -24.00..0.00\nlate -24.00..0.00\n");
    simple_world(today + 10 * HOUR + 3 * MIN10, today + 4 * HOUR);
    g_simple.in.rows = true;
    expect_plan(today, NOW, "profile 4.00..10.61\nlate 0.00..10.50\nsegment 0.00..4.00\n");
    g_simple.in.rows = false;
    g_simple.in.totals = true;
    expect_plan(today + HOUR / 2, NOW,
                "profile 10.50..10.61\nlate 0.50..10.50\ntotals 0.50..10.50\n");
    expect_plan(5, 4, "");
    simple_world(INT64_MIN, INT64_MIN);
    g_simple.services[0].generation = 0;
    expect_plan(today, NOW, "profile 0.00..10.61\n");
    expect_notes("");
}

static void long_blocks_are_used_only_where_nothing_shorter_is_kept(void **state)
{
    (void)state;
    int64_t today = floor_to(NOW, DAY);
    simple_world(today + 10 * HOUR, INT64_MIN);
    g_simple.in.longest_block_ns = HOUR;
    expect_plan(today - DAY, today - 1, "late -24.00..0.00\nroll_1h* -24.00..0.00\n");
    g_simple.in.longest_block_ns = MIN10 - 1;
    expect_plan(today - HOUR, today - 1, "profile -1.00..0.00\nlate -1.00..0.00\n");

    /* Blocks of hours are kept for 31 days, those of days for a year. */
    g_simple.in.retention = (struct hearth_retention){7 * DAY, 7 * DAY, 31 * DAY, 366 * DAY};
    g_simple.in.longest_block_ns = HOUR;
    expect_plan(today - 40 * DAY, today - 39 * DAY - 1, "roll_1d* -960.00..-936.00\n");
    expect_plan(today - 20 * DAY, today - 19 * DAY - 1, "roll_1h* -480.00..-456.00\n");
    g_simple.in.longest_block_ns = MIN10;
    expect_plan(today - 20 * DAY, today - 19 * DAY - 1, "roll_1h* -480.00..-456.00\n");
    expect_notes("");
}

static void a_deletion_is_cut_out_of_the_blocks_it_touches_only(void **state)
{
    (void)state;
    int64_t today = floor_to(NOW, DAY);
    simple_world(today + 10 * HOUR, INT64_MIN);
    static int32_t series[1] = {5};
    g_simple.tombstones[0] =
        (struct hearth_tombstone){1, today - 12 * HOUR + 1, today - 12 * HOUR + MIN10, series, 1};
    g_simple.state.n_tombstones = 1;
    /* Series 6 keeps its day; series 5 loses 20 minutes of it to single profiles. */
    expect_plan(today - DAY, today - 1,
                "profile -12.00..-11.67\nlate -24.00..0.00\nroll_10m -11.67..-11.00\n"
                "roll_1h -24.00..-12.00\nroll_1h -11.00..0.00\nroll_1d -24.00..0.00\n");
    g_simple.tombstones[0].from_ns = INT64_MIN;
    g_simple.tombstones[0].to_ns = INT64_MAX;
    expect_plan(today - DAY, today - 1, "late -24.00..0.00\nroll_1d -24.00..0.00\n");
    assert_int_equal(g_simple.plan.legs[0].n_hits, 1);
    assert_int_equal(g_simple.plan.legs[0].hits[0].series_id, 6);
    expect_notes("");
}

static void totals_of_the_open_hour_are_read_packed(void **state)
{
    (void)state;
    int64_t today = floor_to(NOW, DAY), built = today + 10 * HOUR + 3 * MIN10;
    simple_world(built, INT64_MIN);
    g_simple.in.totals = true;
    expect_plan(today, NOW, "profile 10.50..10.61\nlate 0.00..10.50\ntotals 0.00..10.50\n");
    expect_plan(built - MIN10, built - 1, "late 10.33..10.50\ntotals 10.33..10.50\n");

    /* A deletion in it leaves that hour to single profiles. */
    static int32_t series[2] = {5, 6};
    g_simple.tombstones[0] = (struct hearth_tombstone){1, built - MIN10, built - 1, series, 2};
    g_simple.state.n_tombstones = 1;
    expect_plan(today, NOW, "profile 10.00..10.61\nlate 0.00..10.50\ntotals 0.00..10.00\n");
    expect_notes("");
}

static void many_series_with_few_profiles_are_read_singly_in_the_open_hour(void **state)
{
    (void)state;
    enum {
        N = 4096
    };
    static struct hearth_series_hit hits[N];
    int64_t today = floor_to(NOW, DAY), hour = today + 10 * HOUR;
    struct hearth_absent_blocks absent = {MIN10, hour + MIN10, hour + 2 * MIN10, false};
    const char *packed = "profile 10.50..10.61\nlate 9.00..10.50\ntotals 9.00..10.50\n";
    simple_world(hour + 3 * MIN10, INT64_MIN);
    for (int i = 0; i < N; i++) {
        hits[i] = (struct hearth_series_hit){5 + i, 1, 100, 0, 1};
    }
    g_simple.services[0].absent = &absent;
    g_simple.services[0].n_absent = 1;
    g_simple.in.totals = true;
    g_simple.in.hits = hits;
    g_simple.in.n_hits = N;
    expect_plan(hour - HOUR, NOW, "profile 10.00..10.61\nlate 9.00..10.50\ntotals 9.00..10.00\n");

    /* Fewer series; and many, whose open hour lacks no blocks. */
    g_simple.in.n_hits = N - 1;
    expect_plan(hour - HOUR, NOW, packed);
    g_simple.in.n_hits = N;
    absent.from_ns = hour - HOUR;
    absent.to_ns = hour;
    expect_plan(hour - HOUR, NOW, packed);
    expect_notes("");
}

static void absent_blocks_of_series_are_stepped_over_with_the_next_smaller_ones(void **state)
{
    (void)state;
    int64_t today = floor_to(NOW, DAY);
    const struct hearth_absent_blocks absent[] = {{MIN10, today, today + 2 * HOUR, false},
                                                  {HOUR, today + HOUR, today + 2 * HOUR, false},
                                                  {HOUR, today + 2 * HOUR, today + 3 * HOUR, true}};
    simple_world(today + 10 * HOUR, today + HOUR + MIN10);
    g_simple.services[0].absent = absent;
    g_simple.services[0].n_absent = 3;

    /* Blocks of the whole service lack one hour only. */
    expect_plan(today, today + 4 * HOUR - 1,
                "late 0.00..4.00\nroll_10m* 2.00..3.00\nroll_1h* 0.00..2.00\n"
                "roll_1h* 3.00..4.00\n");

    /* Of series 5 alone: minutes from 2 o'clock on, profiles before. */
    g_simple.in.n_covered = 0;
    g_simple.in.n_hits = 1;
    expect_plan(today, today + 4 * HOUR - 1,
                "profile 1.17..2.00\nlate 0.00..4.00\nsegment 1.00..1.17\nroll_10m 2.00..3.00\n"
                "roll_1h 0.00..1.00\nroll_1h 3.00..4.00\n");

    /* Totals are there, days too, and ranges beyond what is built mean nothing. */
    g_simple.in.totals = true;
    expect_plan(today, today + 4 * HOUR - 1, "late 0.00..4.00\ntotals 0.00..4.00\n");
    g_simple.in.totals = false;
    expect_plan(today - DAY, today - 1, "late -24.00..0.00\nroll_1d -24.00..0.00\n");
    g_simple.services[0].built_to_ns = today + HOUR;
    expect_plan(today, today + 2 * HOUR - 1,
                "profile 1.17..2.00\nlate 0.00..2.00\nsegment 1.00..1.17\nroll_1h 0.00..1.00\n");
    expect_notes("");
}

static void an_absent_day_is_read_from_its_hours_and_profiles(void **state)
{
    (void)state;
    int64_t today = floor_to(NOW, DAY);
    const struct hearth_absent_blocks absent[] = {
        {HOUR, today - 2 * DAY, today - 2 * DAY + 4 * HOUR, true},
        {DAY, today - 2 * DAY, today - DAY, false},
        {DAY, today - DAY, today, true}};
    simple_world(today + 10 * HOUR, INT64_MIN);
    g_simple.services[0].absent = absent;
    g_simple.services[0].n_absent = 3;

    /* The whole service has the first of these days, its series do not. */
    expect_plan(today - 3 * DAY, today - 1,
                "late -72.00..0.00\nroll_1h* -24.00..0.00\nroll_1d* -72.00..-24.00\n");
    g_simple.in.n_covered = 0;
    expect_plan(today - 3 * DAY, today - 1,
                "late -72.00..0.00\nroll_10m -48.00..-44.00\nroll_1h -44.00..0.00\n"
                "roll_1d -72.00..-48.00\n");
    expect_notes("");
}

/* Retention waits until the builder has written them. */
static void profiles_past_their_retention_answer_while_hours_or_days_are_absent(void **state)
{
    (void)state;
    int64_t today = floor_to(NOW, DAY), day = today - 9 * DAY;
    struct hearth_absent_blocks absent[] = {{HOUR, day + 3 * HOUR, day + 4 * HOUR, false},
                                            {DAY, day, day + DAY, false}};
    simple_world(today + 10 * HOUR, today);
    g_simple.services[0].absent = absent;
    g_simple.services[0].n_absent = 1;
    g_simple.in.n_covered = 0;
    g_simple.in.retention = (struct hearth_retention){.profiles_ns = 7 * DAY,
                                                      .roll_10m_ns = 7 * DAY,
                                                      .roll_1h_ns = 31 * DAY,
                                                      .roll_1d_ns = 366 * DAY,
                                                      .profiles_from_ns = today - 2 * DAY};
    expect_plan(day, day + 5 * HOUR - 1,
                "late -216.00..-211.00\nsegment -213.00..-212.00\nroll_1h "
                "-216.00..-213.00\nroll_1h -212.00..-211.00\n");
    expect_notes("");
    hearth_buf_reset(&g_simple.notes);

    /* All of the day is there, but nothing before it. */
    expect_plan(day - HOUR / 2, day + HOUR / 2 - 1,
                "late -216.00..-215.50\nsegment -216.00..-215.50\n");
    expect_notes("profiles before 2026-11-13T10:00:00Z are gone (retain-raw); the range begins at "
                 "2026-11-11T00:00:00Z\n");
    hearth_buf_reset(&g_simple.notes);

    /* Single profiles end with retain-raw; what is not built means nothing. */
    g_simple.in.rows = true;
    expect_plan(day, day + 5 * HOUR - 1, "");
    g_simple.in.rows = false;
    hearth_buf_reset(&g_simple.notes);
    g_simple.services[0].built_to_ns = day + 3 * HOUR;
    expect_plan(day, day + 4 * HOUR - 1, "roll_1h -216.00..-213.00\n");
    hearth_buf_reset(&g_simple.notes);
}

/* The setting of retain-raw may change after blocks were left out. */
static void deleted_profiles_leave_a_noted_gap_where_blocks_are_absent(void **state)
{
    (void)state;
    int64_t today = floor_to(NOW, DAY);
    const struct hearth_absent_blocks absent[] = {
        {MIN10, today - 8 * DAY, today - 8 * DAY + HOUR, false}};
    simple_world(today + 10 * HOUR, INT64_MIN);
    g_simple.services[0].absent = absent;
    g_simple.services[0].n_absent = 1;
    g_simple.in.n_covered = 0;
    g_simple.in.retention = (struct hearth_retention){7 * DAY, 9 * DAY, 31 * DAY, 366 * DAY};
    expect_plan(today - 8 * DAY - HOUR / 2, today - 8 * DAY + HOUR + HOUR / 2 - 1,
                "roll_10m -192.50..-192.00\nroll_10m -191.00..-190.50\nroll_1h -192.00..-191.00\n");
    expect_notes("");
    hearth_buf_reset(&g_simple.notes);
    expect_plan(today - 8 * DAY, today - 8 * DAY + HOUR / 2 - 1, "");
    expect_notes("profiles before 2026-11-13T10:00:00Z are gone (retain-raw), and no roll-ups fit "
                 "into the range: nothing is left of it\n");
}

static void ranges_deleted_by_retention_are_cut_inward_with_a_note(void **state)
{
    (void)state;
    int64_t today = floor_to(NOW, DAY);
    const struct hearth_retention keep = {7 * DAY, 7 * DAY, 31 * DAY, 366 * DAY};
    simple_world(today + 10 * HOUR, INT64_MIN);
    g_simple.in.retention = keep;
    expect_plan(today - 8 * DAY + HOUR / 2, today - 7 * DAY - 1, "roll_1h* -191.00..-168.00\n");
    expect_notes("profiles before 2026-11-13T10:00:00Z are gone (retain-raw); the range begins at "
                 "2026-11-12T01:00:00Z\n");
    hearth_buf_reset(&g_simple.notes);
    expect_plan(today - 40 * DAY, today - 38 * DAY - HOUR, "roll_1d* -960.00..-936.00\n");
    expect_notes("profiles before 2026-11-13T10:00:00Z are gone (retain-raw); the range ends at "
                 "2026-10-12T00:00:00Z\n");
    hearth_buf_reset(&g_simple.notes);
    expect_plan(today - 400 * DAY, today - 380 * DAY, "");
    expect_notes("profiles before 2026-11-13T10:00:00Z are gone (retain-raw), and no roll-ups fit "
                 "into the range: nothing is left of it\n");
    hearth_buf_reset(&g_simple.notes);
    g_simple.in.rows = true; /* roll-ups could not answer */
    expect_plan(today - 12 * DAY, today - 10 * DAY, "");
    expect_notes("profiles before 2026-11-13T10:00:00Z are gone (retain-raw), and the query is "
                 "about single profiles: nothing is left of its range\n");
    g_simple.in.rows = false;
    hearth_buf_reset(&g_simple.notes);
    g_simple.in.totals = true;
    expect_plan(today - 40 * DAY, today - 20 * DAY, "totals -734.00..-480.00\n");
    expect_notes("profiles before 2026-11-13T10:00:00Z are gone (retain-raw); the range begins at "
                 "2026-10-20T10:00:00Z\n");
}

static void ranges_deleted_by_a_shorter_retention_are_read_from_longer_blocks(void **state)
{
    (void)state;
    int64_t today = floor_to(NOW, DAY);
    const struct hearth_retention raised = {.profiles_ns = 30 * DAY,
                                            .roll_10m_ns = 30 * DAY,
                                            .roll_1h_ns = 31 * DAY,
                                            .roll_1d_ns = 366 * DAY,
                                            .profiles_from_ns = today - 7 * DAY,
                                            .roll_10m_from_ns = today - 7 * DAY};
    simple_world(today + 10 * HOUR, INT64_MIN);
    g_simple.in.retention = raised;

    /* Points of ten minutes: hours before the deletion; minutes after it. */
    g_simple.in.longest_block_ns = MIN10;
    expect_plan(today - 8 * DAY, today - 8 * DAY + HOUR - 1,
                "late -192.00..-191.00\nroll_1h* -192.00..-191.00\n");
    expect_plan(today - 7 * DAY, today - 7 * DAY + HOUR - 1,
                "late -168.00..-167.00\nroll_10m* -168.00..-167.00\n");
    expect_notes("");
    hearth_buf_reset(&g_simple.notes);

    /* The edge that no hour covers has what was stored since, and says so. */
    g_simple.in.longest_block_ns = 0;
    expect_plan(today - 8 * DAY - HOUR / 2, today - 8 * DAY + HOUR - 1,
                "profile -192.50..-192.00\nlate -192.50..-191.00\nroll_1h* -192.00..-191.00\n");
    expect_notes("profiles before 2026-11-13T00:00:00Z were deleted while retain-raw was shorter: "
                 "from 2026-11-11T23:30:00Z to 2026-11-12T00:00:00Z, only those that were stored "
                 "later are counted\n");
    hearth_buf_reset(&g_simple.notes);
}

/* ---- many services ---- */

static void many_services_that_stand_apart_still_make_few_legs(void **state)
{
    (void)state;
    enum {
        N = 3000
    };
    static struct hearth_service_state services[N];
    static struct hearth_series_hit hits[N * 10];
    int64_t today = floor_to(NOW, DAY);
    for (int i = 0; i < N; i++) {
        services[i] = (struct hearth_service_state){.service_id = i + 1,
                                                    .watermark_ns = today + (i % 50) * MIN10,
                                                    .built_to_ns = today + (i % 50) * MIN10,
                                                    .compacted_to_ns = today - DAY + (i % 7) * HOUR,
                                                    .generation = 1};
        for (int s = 0; s < 10; s++) {
            hits[i * 10 + s] = (struct hearth_series_hit){i * 10 + s + 1, i + 1, 1, 0, 1};
        }
    }
    struct hearth_read_state read_state = {services, N, NULL, 0};
    struct hearth_plan_input in = {.hits = hits,
                                   .n_hits = (size_t)N * 10,
                                   .from_ns = today - 3 * DAY + 5,
                                   .to_ns = NOW,
                                   .now_ns = NOW,
                                   .state = &read_state};
    struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_read_plan plan;
    int64_t begin_ns = hearth_clock_thread_cpu_ns();
    assert_int_equal(hearth_plan_make(&in, &arena, &plan, NULL, NULL), HEARTH_OK);
    print_message("%d series of %d services: %zu legs in %lld us\n", N * 10, N, plan.n_legs,
                  (long long)((hearth_clock_thread_cpu_ns() - begin_ns) / 1000));
    assert_in_range(plan.n_legs, 10, 100);
    hearth_arena_release(&arena);

    hearth_arena_init(&arena, 10000);
    assert_int_equal(hearth_plan_make(&in, &arena, &plan, NULL, NULL), HEARTH_NO_MEMORY);
    hearth_arena_release(&arena);
}

static int set_up(void **state)
{
    (void)state;
    hearth_arena_init(&g_simple.arena, 0);
    hearth_buf_init(&g_simple.notes, 0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    hearth_arena_release(&g_simple.arena);
    hearth_buf_release(&g_simple.notes);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_instant_of_every_series_is_answered_exactly_once),
        cmocka_unit_test(a_range_becomes_days_hours_minutes_and_rows),
        cmocka_unit_test(long_blocks_are_used_only_where_nothing_shorter_is_kept),
        cmocka_unit_test(a_deletion_is_cut_out_of_the_blocks_it_touches_only),
        cmocka_unit_test(totals_of_the_open_hour_are_read_packed),
        cmocka_unit_test(many_series_with_few_profiles_are_read_singly_in_the_open_hour),
        cmocka_unit_test(absent_blocks_of_series_are_stepped_over_with_the_next_smaller_ones),
        cmocka_unit_test(an_absent_day_is_read_from_its_hours_and_profiles),
        cmocka_unit_test(profiles_past_their_retention_answer_while_hours_or_days_are_absent),
        cmocka_unit_test(deleted_profiles_leave_a_noted_gap_where_blocks_are_absent),
        cmocka_unit_test(ranges_deleted_by_retention_are_cut_inward_with_a_note),
        cmocka_unit_test(ranges_deleted_by_a_shorter_retention_are_read_from_longer_blocks),
        cmocka_unit_test(many_services_that_stand_apart_still_make_few_legs),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
