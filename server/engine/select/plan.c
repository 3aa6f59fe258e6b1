/*
 * plan.c -- divides a range into days, hours, 10 minutes and single profiles.
 *
 * For each group: the largest blocks that lie wholly inside, then on both sides of them, and where
 * they are absent, blocks of the next smaller size, and so on down to single profiles. Where
 * retention has deleted even those, there is a gap, which gets a note.
 */
#include "select/plan_internal.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

/* The first time at which a tier still has its data; INT64_MIN: no bound. */
static int64_t find_tier_cutoff(int64_t now_ns, int64_t keep_ns, int64_t length_ns)
{
    int64_t oldest;
    if (keep_ns <= 0 || __builtin_sub_overflow(now_ns, keep_ns, &oldest)) {
        return INT64_MIN;
    }
    return floor_to(oldest, length_ns);
}

/* The same for blocks, which may have been deleted under a shorter retention. */
static int64_t find_blocks_cutoff(int64_t now_ns, int64_t keep_ns, int64_t emptied_ns,
                                  int64_t length_ns)
{
    int64_t cutoff_ns = find_tier_cutoff(now_ns, keep_ns, length_ns);
    int64_t whole_ns = emptied_ns == 0 ? INT64_MIN : floor_to(emptied_ns, length_ns);
    return max_i64(cutoff_ns, whole_ns);
}

int64_t hearth_plan_profiles_from(const struct hearth_retention *keep, int64_t now_ns)
{
    return find_tier_cutoff(now_ns, keep->profiles_ns, HEARTH_NS_PER_HOUR);
}

/*
 * Sets the range, the bound of single profiles, and the tiers that may answer this query, largest
 * first.
 */
static void set_up_tiers(struct planner *p)
{
    const struct hearth_plan_input *in = p->in;
    const struct hearth_retention *keep = &in->retention;

    p->range.from_ns = in->from_ns;
    p->range.to_ns = in->to_ns == INT64_MAX ? INT64_MAX : in->to_ns + 1;
    p->rows_cutoff_ns = hearth_plan_profiles_from(keep, in->now_ns);
    p->rows_whole_from_ns = max_i64(
        p->rows_cutoff_ns, keep->profiles_from_ns == 0 ? INT64_MIN : keep->profiles_from_ns);

    /* Single profiles need no tier; totals have one. */
    if (in->rows) {
        return;
    }

    if (in->totals) {
        p->tiers[p->n_tiers++] =
            (struct plan_tier){HEARTH_SOURCE_TOTALS, HEARTH_NS_PER_HOUR,
                               find_blocks_cutoff(in->now_ns, keep->roll_1h_ns,
                                                  keep->roll_1h_from_ns, HEARTH_NS_PER_HOUR),
                               .cuts_edges = true};
        return;
    }

    const int64_t kept[3] = {keep->roll_1d_ns, keep->roll_1h_ns, keep->roll_10m_ns};
    const int64_t emptied[3] = {keep->roll_1d_from_ns, keep->roll_1h_from_ns,
                                keep->roll_10m_from_ns};
    const enum hearth_source sources[3] = {HEARTH_SOURCE_ROLL_1D, HEARTH_SOURCE_ROLL_1H,
                                           HEARTH_SOURCE_ROLL_10M};
    const int64_t lengths[3] = {HEARTH_NS_PER_DAY, HEARTH_NS_PER_HOUR, PLAN_NS_PER_10M};
    for (size_t i = 0; i < 3; i++) {
        bool is_long = in->longest_block_ns > 0 && lengths[i] > in->longest_block_ns;
        int64_t shorter_from_ns =
            i < 2 ? find_blocks_cutoff(in->now_ns, kept[i + 1], emptied[i + 1], lengths[i + 1])
                  : p->rows_whole_from_ns;
        if (is_long && shorter_from_ns <= in->from_ns) {
            continue;
        }
        p->tiers[p->n_tiers++] = (struct plan_tier){
            sources[i], lengths[i], find_blocks_cutoff(in->now_ns, kept[i], emptied[i], lengths[i]),
            false};
    }
}

/* ---- the cut ---- */

/*
 * Grows the array *v of n elements in the arena for one more, doubling it. False: memory was
 * refused.
 */
static bool grow_planner_array(struct planner *p, void **v, size_t n, size_t *cap, size_t size)
{
    if (n < *cap) {
        return true;
    }

    size_t more = *cap == 0 ? 16 : 2 * *cap;
    void *bigger = hearth_arena_array(p->arena, more, size);
    if (bigger == NULL) {
        p->refused = true;
        return false;
    }

    if (n > 0) {
        memcpy(bigger, *v, n * size);
    }

    *v = bigger;
    *cap = more;
    return true;
}

/* Adds a piece; extends the latest one if it continues it. */
static void add_plan_piece(struct planner *p, int source, int64_t from_ns, int64_t to_ns)
{
    if (from_ns >= to_ns) {
        return;
    }

    /* Pieces are added in order, but in one stretch there may be both kinds of rows. */
    for (size_t i = p->n_pieces; i > 0 && i + 2 > p->n_pieces; i--) {
        struct plan_piece *last = &p->pieces[i - 1];
        if (last->source == source && last->at.to_ns == from_ns) {
            last->at.to_ns = to_ns;
            return;
        }
    }

    void *v = p->pieces;
    if (grow_planner_array(p, &v, p->n_pieces, &p->cap_pieces, sizeof p->pieces[0])) {
        p->pieces = v;
        p->pieces[p->n_pieces++] = (struct plan_piece){source, {from_ns, to_ns}};
    }
}

/* Covers a stretch with segments and profiles; the part before the oldest profile is a gap. */
static void cover_with_rows(struct planner *p, const struct plan_group *group,
                            struct plan_stretch s)
{
    int64_t oldest_ns = min_i64(p->rows_cutoff_ns, group->kept_from_ns);
    int64_t from_ns = max_i64(s.from_ns, min_i64(s.to_ns, oldest_ns));
    add_plan_piece(p, PLAN_GAP, s.from_ns, from_ns);
    add_plan_piece(p, HEARTH_SOURCE_SEGMENT, from_ns, min_i64(s.to_ns, group->compacted_to_ns));
    add_plan_piece(p, HEARTH_SOURCE_PROFILE, max_i64(from_ns, group->compacted_from_ns), s.to_ns);
}

/*
 * Where the packed totals of a group end. In the open hour, each closed 10 minutes of a series have
 * a row, which costs no more than a profile. Only many series with few profiles cost less as single
 * profiles, which are read in arrays. Absent blocks tell that profiles are few.
 */
static int64_t find_end_of_totals(const struct plan_group *group)
{
    bool is_sparse = hearth_plan_holes_of(group, HEARTH_SOURCE_ROLL_10M)->n > 0;

    return is_sparse && group->rows.n >= PLAN_MANY_HITS
               ? floor_to(group->built_ns, HEARTH_NS_PER_HOUR)
               : group->built_ns;
}

/*
 * Covers s with the blocks of tiers[tier] that lie wholly within it, and its rest with smaller
 * ones.
 */
static void cover_stretch(struct planner *p, const struct plan_group *group, size_t tier,
                          struct plan_stretch s)
{
    if (s.from_ns >= s.to_ns) {
        return;
    }

    if (tier == p->n_tiers) {
        cover_with_rows(p, group, s);
        return;
    }

    /* The part of the stretch in which blocks of this tier exist and may be used. */
    const struct plan_tier *t = &p->tiers[tier];
    int64_t length = t->length_ns;
    int64_t begin = t->cuts_edges ? s.from_ns : ceil_to(s.from_ns, length);
    int64_t end = t->cuts_edges ? s.to_ns : floor_to(s.to_ns, length);
    int64_t built_ns =
        t->cuts_edges ? find_end_of_totals(group) : floor_to(group->built_ns, length);
    begin = max_i64(begin, t->cutoff_ns);
    end = min_i64(end, built_ns);
    if (begin >= end) {
        cover_stretch(p, group, tier + 1, s);
        return;
    }

    /* Before, between and after them, the next tier answers. */
    cover_stretch(p, group, tier + 1, (struct plan_stretch){s.from_ns, begin});
    int64_t at = begin;
    const struct plan_holes *holes = hearth_plan_holes_of(group, t->source);
    for (size_t i = 0; i < holes->n; i++) {
        int64_t hole = max_i64(floor_to(holes->at[i].from_ns, length), at);
        int64_t hole_end = min_i64(ceil_to(holes->at[i].to_ns, length), end);
        if (hole < hole_end) {
            add_plan_piece(p, (int)t->source, at, hole);
            cover_stretch(p, group, tier + 1, (struct plan_stretch){hole, hole_end});
            at = hole_end;
        }
    }

    add_plan_piece(p, (int)t->source, at, end);
    cover_stretch(p, group, tier + 1, (struct plan_stretch){end, s.to_ns});
}

/* ---- notes ---- */

const char *hearth_plan_moment(int64_t ns, char out[32])
{
    hearth_clock_format(ns, out);
    size_t n = strlen(out);
    if (n > 5 && strcmp(out + n - 5, ".000Z") == 0) {
        memcpy(out + n - 5, "Z", 2);
    }

    return out;
}

/* Appends a line unless it is in the notes already. */
static void add_plan_note(struct planner *p, const char *line)
{
    struct hearth_str text = hearth_buf_view(p->notes);
    size_t n = strlen(line);

    for (size_t i = 0; i + n < text.n; i++) {
        if (memcmp(text.p + i, line, n) == 0 && text.p[i + n] == '\n' &&
            (i == 0 || text.p[i - 1] == '\n')) {
            return;
        }
    }

    hearth_buf_printf(p->notes, "%s\n", line);
}

/* Notes which part of the range has no data, and why. */
static void note_plan_gap(struct planner *p, struct plan_stretch gap, bool deleted)
{
    char gone[32], from[32], to[32], line[256];

    (void)hearth_plan_moment(p->rows_cutoff_ns, gone);
    (void)hearth_plan_moment(gap.from_ns, from);
    (void)hearth_plan_moment(gap.to_ns, to);
    const char *what = p->in->totals && !p->in->rows ? "totals over time" : "roll-ups";
    bool whole = gap.from_ns == p->range.from_ns && gap.to_ns == p->range.to_ns;

    /* The sentence depends on whether the gap is all, the beginning, the end, or a middle part. */
    if (p->in->rows && whole) {
        (void)snprintf(line, sizeof line,
                       "profiles before %s are gone (retain-raw), and the query is about single "
                       "profiles: nothing is left of its range",
                       gone);
    } else if (deleted && !p->in->rows) {
        (void)snprintf(line, sizeof line,
                       "series with deleted profiles lack the time from %s to %s: profiles before "
                       "%s are gone (retain-raw), and %s there are not used",
                       from, to, gone, what);
    } else if (whole) {
        (void)snprintf(line, sizeof line,
                       "profiles before %s are gone (retain-raw), and no %s fit into the range: "
                       "nothing is left of it",
                       gone, what);
    } else if (gap.from_ns == p->range.from_ns) {
        (void)snprintf(line, sizeof line,
                       "profiles before %s are gone (retain-raw); the range begins at %s", gone,
                       to);
    } else if (gap.to_ns == p->range.to_ns) {
        (void)snprintf(line, sizeof line,
                       "profiles before %s are gone (retain-raw); the range ends at %s", gone,
                       from);
    } else {
        (void)snprintf(line, sizeof line,
                       "profiles before %s are gone (retain-raw); the time from %s to %s is left "
                       "out",
                       gone, from, to);
    }

    add_plan_note(p, line);
}

/* Notes that a part of the range has only those profiles that were stored after a deletion. */
static void note_emptied_rows(struct planner *p, const struct plan_group *group,
                              struct plan_stretch at)
{
    char gone[32], from[32], to[32], line[256];
    int64_t whole_from_ns = min_i64(p->rows_whole_from_ns, group->kept_from_ns);

    if (at.from_ns < whole_from_ns) {
        (void)snprintf(line, sizeof line,
                       "profiles before %s were deleted while retain-raw was shorter: from %s to "
                       "%s, only those that were stored later are counted",
                       hearth_plan_moment(whole_from_ns, gone),
                       hearth_plan_moment(at.from_ns, from),
                       hearth_plan_moment(min_i64(at.to_ns, whole_from_ns), to));
        add_plan_note(p, line);
    }
}

/* ---- legs ---- */

/* Adds a leg unless it has no hits or no time. */
static void add_plan_leg(struct planner *p, enum hearth_source source, struct plan_stretch at,
                         const struct plan_hits *hits)
{
    if (hits->n == 0 || at.from_ns >= at.to_ns) {
        return;
    }

    void *v = p->legs;
    if (grow_planner_array(p, &v, p->n_legs, &p->cap_legs, sizeof p->legs[0])) {
        p->legs = v;
        p->legs[p->n_legs++] =
            (struct hearth_read_leg){source, at.from_ns, at.to_ns, hits->v, hits->n};
    }
}

/* Adds the legs of a group, and notes its gaps. */
static void plan_group_legs(struct planner *p, const struct plan_group *group, bool deleted)
{
    if (group->rows.n == 0) {
        return;
    }

    assert(p->n_tiers <= HEARTH_ARRAY_LEN(p->tiers));
    p->n_pieces = 0;
    cover_stretch(p, group, 0, p->range);
    for (size_t i = 0; i < p->n_pieces; i++) {
        const struct plan_piece *piece = &p->pieces[i];
        if (piece->source == PLAN_GAP) {
            if (p->notes != NULL) {
                note_plan_gap(p, piece->at, deleted);
            }
        } else if (hearth_source_length_ns((enum hearth_source)piece->source) == 0 ||
                   piece->source == HEARTH_SOURCE_TOTALS) {
            if (p->notes != NULL && piece->source != HEARTH_SOURCE_TOTALS) {
                note_emptied_rows(p, group, piece->at);
            }
            add_plan_leg(p, (enum hearth_source)piece->source, piece->at, &group->rows);
        } else {
            add_plan_leg(p, (enum hearth_source)piece->source, piece->at, &group->whole);
            add_plan_leg(p, (enum hearth_source)piece->source, piece->at, &group->blocks);
        }
    }
}

/*
 * Adds one leg for the late profiles of services from one time to another. They are earlier than
 * the service's watermark. kept: only of services that keep profiles longer than retain-raw says.
 */
static void plan_late_between(struct planner *p, struct plan_stretch at, bool kept)
{
    struct plan_hits late = {
        hearth_arena_array(p->arena, p->in->n_hits, sizeof(struct hearth_series_hit)), 0};
    if (late.v == NULL) {
        p->refused = true;
        return;
    }

    int64_t to_ns = INT64_MIN;
    for (size_t i = 0; i < p->n_services; i++) {
        struct plan_service *service = &p->services[i];
        if (service->state == NULL || service->state->watermark_ns <= at.from_ns ||
            (kept && service->kept_from_ns == INT64_MAX)) {
            continue;
        }
        to_ns = max_i64(to_ns, service->state->watermark_ns);

        /* Series whose whole range is deleted have no late profiles. */
        for (size_t h = 0; h < service->n_hits; h++) {
            const struct hearth_series_hit *hit = &p->in->hits[service->first_hit + h];
            if (service->n_tombstones == 0 ||
                hearth_plan_fate(p, service, hit->series_id) != PLAN_GONE) {
                push_hit(&late, hit);
            }
        }
    }

    add_plan_leg(p, HEARTH_SOURCE_LATE, (struct plan_stretch){at.from_ns, min_i64(to_ns, at.to_ns)},
                 &late);
}

/* Adds the late profiles of all services. */
static void plan_late_profiles(struct planner *p)
{
    int64_t from_ns = max_i64(p->range.from_ns, p->rows_cutoff_ns);
    plan_late_between(p, (struct plan_stretch){from_ns, p->range.to_ns}, false);

    int64_t kept_ns = INT64_MAX;
    for (size_t i = 0; i < p->n_services; i++) {
        kept_ns = min_i64(kept_ns, p->services[i].kept_from_ns);
    }

    if (kept_ns != INT64_MAX) {
        const struct plan_stretch before = {kept_ns, min_i64(from_ns, p->range.to_ns)};
        plan_late_between(p, before, true);
    }
}

static int compare_legs(const void *a, const void *b)
{
    struct hearth_read_leg x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    if (x.source != y.source) {
        return x.source < y.source ? -1 : 1;
    }

    return (x.from_ns > y.from_ns) - (x.from_ns < y.from_ns);
}

enum hearth_status hearth_plan_make(const struct hearth_plan_input *input,
                                    struct hearth_arena *arena, struct hearth_read_plan *ret,
                                    struct hearth_buf *notes, struct hearth_err *err)
{
    assert(input != NULL && arena != NULL && ret != NULL);

    *ret = (struct hearth_read_plan){.state = input->state};
    assert(input->state != NULL || input->n_hits == 0);
    struct planner p = {.in = input, .arena = arena, .notes = notes};
    set_up_tiers(&p);

    if (input->n_hits == 0 || p.range.from_ns >= p.range.to_ns) {
        return HEARTH_OK;
    }

    if (!hearth_plan_group(&p)) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    plan_late_profiles(&p);
    for (size_t i = 0; i < PLAN_N_GROUPS; i++) {
        plan_group_legs(&p, &p.groups[i], p.groups[i].has_deletions);
    }

    if (p.refused) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    if (notes != NULL && hearth_buf_failed(notes)) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate the notes of a plan");
    }

    /* Legs of one source and time are read together. */
    if (p.n_legs > 0) {
        qsort(p.legs, p.n_legs, sizeof p.legs[0], compare_legs);
    }

    ret->legs = p.legs;
    ret->n_legs = p.n_legs;
    return HEARTH_OK;
}
