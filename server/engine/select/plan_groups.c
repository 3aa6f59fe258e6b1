/*
 * plan_groups.c -- which services and series of a query are planned alike.
 *
 * Services in the same state form a group: the plan depends only on how far blocks are built, where
 * they are absent, and how far rows are compacted, and all matter only within the range. Hits that
 * blocks of whole services answer lack fewer blocks: they leave such a group for one of their own.
 * Series that a tombstone names form groups of their own, in which blocks that the tombstone
 * overlaps are not used; meanwhile their services do without blocks of whole services. The number
 * of groups is bounded: the remaining services share one, with the lowest bound of blocks, the
 * holes of all, and a stretch in which rows may be in either table (the reader knows which rows
 * count).
 */
#include "select/plan_internal.h"

#include <assert.h>
#include <stdlib.h>

/* Services with the same bounds, and with the same blocks absent. */
struct service_bounds {
    int64_t built_ns, compacted_ns, kept_from_ns;
    const struct hearth_absent_blocks *absent;
    size_t n_absent;
    size_t n_hits;  /* of all these services */
    uint32_t group; /* index of planner.groups */
};

/* Finds the tombstones of a service, which are neighbours. */
static void find_service_tombstones(const struct planner *p, struct plan_service *service,
                                    int32_t service_id)
{
    const struct hearth_read_state *state = p->in->state;
    size_t low = 0, high = state->n_tombstones;

    while (low < high) {
        size_t mid = (low + high) / 2;
        if (state->tombstones[mid].service_id < service_id) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }

    service->tombstones = low < state->n_tombstones ? &state->tombstones[low] : NULL;
    while (low < state->n_tombstones && state->tombstones[low].service_id == service_id) {
        service->n_tombstones++;
        low++;
    }
}

const struct hearth_service_state *hearth_plan_find_state(const struct hearth_read_state *state,
                                                          int32_t service_id)
{
    size_t low = 0, high = state->n_services;

    while (low < high) {
        size_t mid = (low + high) / 2;
        if (state->services[mid].service_id < service_id) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }

    bool found = low < state->n_services && state->services[low].service_id == service_id;
    return found ? &state->services[low] : NULL;
}

/* Whether an absent block matters to a query of totals: it says that the open hour is sparse. */
static bool is_absent_in_open_hour(const struct plan_service *service,
                                   const struct hearth_absent_blocks *absent)
{
    return absent->length_ns == PLAN_NS_PER_10M &&
           absent->to_ns > floor_to(service->built_ns, HEARTH_NS_PER_HOUR);
}

/*
 * Copies which blocks are absent within the range, as far as the service is built. Single profiles
 * lack none. Packed totals lack none either, but many series have few in a sparse hour
 * (find_end_of_totals in plan.c). False: memory was refused.
 */
static bool copy_absent_blocks(struct planner *p, struct plan_service *service)
{
    const struct hearth_service_state *state = service->state;
    if (state == NULL || state->n_absent == 0 || p->in->rows ||
        (p->in->totals && p->in->n_hits < PLAN_MANY_HITS)) {
        return true;
    }

    service->absent = hearth_arena_array(p->arena, state->n_absent, sizeof service->absent[0]);
    if (service->absent == NULL) {
        return false;
    }

    for (size_t i = 0; i < state->n_absent; i++) {
        struct hearth_absent_blocks cut = state->absent[i];
        cut.from_ns = max_i64(cut.from_ns, floor_to(p->range.from_ns, cut.length_ns));
        cut.to_ns = min_i64(cut.to_ns, ceil_to(p->range.to_ns, cut.length_ns));
        cut.to_ns = min_i64(cut.to_ns, service->built_ns);
        if (cut.from_ns < cut.to_ns && cut.to_ns > p->range.from_ns &&
            (!p->in->totals || is_absent_in_open_hour(service, &cut))) {
            service->absent[service->n_absent++] = cut;
        }
    }

    return true;
}

/*
 * The begin of the first day that lacks blocks of an hour or a day, clamped to the range: retention
 * keeps the service's profiles from there on. INT64_MAX: that is not longer than retain-raw says,
 * which is so nearly always; or the query is about single profiles, which end with retain-raw.
 */
static int64_t find_kept_from(const struct planner *p, const struct hearth_service_state *state)
{
    int64_t first_ns = INT64_MAX;
    size_t n = state == NULL || p->in->rows ? 0 : state->n_absent;

    for (size_t i = 0; i < n; i++) {
        const struct hearth_absent_blocks *absent = &state->absent[i];
        if (absent->length_ns > PLAN_NS_PER_10M && absent->from_ns < state->built_to_ns) {
            first_ns = min_i64(first_ns, floor_to(absent->from_ns, HEARTH_NS_PER_DAY));
        }
    }

    return first_ns < p->rows_cutoff_ns ? max_i64(first_ns, p->range.from_ns) : INT64_MAX;
}

/* Makes the services of the hits, which are sorted by service. False: memory was refused. */
static bool make_plan_services(struct planner *p)
{
    const struct hearth_plan_input *in = p->in;

    for (size_t i = 0; i < in->n_hits; i++) {
        p->n_services += i == 0 || in->hits[i].service_id != in->hits[i - 1].service_id;
    }

    p->services = hearth_arena_calloc(p->arena, p->n_services, sizeof p->services[0]);
    if (p->services == NULL) {
        return false;
    }

    size_t n = 0;
    for (size_t i = 0; i < in->n_hits; i++) {
        if (i > 0 && in->hits[i].service_id == in->hits[i - 1].service_id) {
            p->services[n - 1].n_hits++;
            continue;
        }
        struct plan_service *service = &p->services[n++];
        *service =
            (struct plan_service){.first_hit = i, .n_hits = 1, .deleted_group = PLAN_NO_GROUP};
        service->state = hearth_plan_find_state(in->state, in->hits[i].service_id);
        int64_t built = service->state == NULL ? INT64_MIN : service->state->built_to_ns;
        int64_t compacted = service->state == NULL ? INT64_MIN : service->state->compacted_to_ns;

        /* A block of totals may extend beyond the end of the range. */
        int64_t last_ns = ceil_to(p->range.to_ns, HEARTH_NS_PER_DAY);
        service->built_ns = max_i64(min_i64(built, last_ns), p->range.from_ns);
        service->compacted_ns = max_i64(min_i64(compacted, p->range.to_ns), p->range.from_ns);
        service->kept_from_ns = find_kept_from(p, service->state);

        find_service_tombstones(p, service, in->hits[i].service_id);
        if (!copy_absent_blocks(p, service)) {
            return false;
        }
    }

    return true;
}

static int compare_absent_blocks(const struct hearth_absent_blocks *x,
                                 const struct hearth_absent_blocks *y)
{
    if (x->length_ns != y->length_ns) {
        return x->length_ns < y->length_ns ? -1 : 1;
    }

    if (x->from_ns != y->from_ns) {
        return x->from_ns < y->from_ns ? -1 : 1;
    }

    return x->to_ns != y->to_ns ? (x->to_ns > y->to_ns) - (x->to_ns < y->to_ns)
                                : x->whole - y->whole;
}

static int compare_bounds(const void *a, const void *b)
{
    struct service_bounds x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    if (x.built_ns != y.built_ns) {
        return x.built_ns < y.built_ns ? -1 : 1;
    }

    if (x.compacted_ns != y.compacted_ns) {
        return x.compacted_ns < y.compacted_ns ? -1 : 1;
    }

    if (x.kept_from_ns != y.kept_from_ns) {
        return x.kept_from_ns < y.kept_from_ns ? -1 : 1;
    }

    if (x.n_absent != y.n_absent) {
        return x.n_absent < y.n_absent ? -1 : 1;
    }

    for (size_t i = 0; i < x.n_absent; i++) {
        int order = compare_absent_blocks(&x.absent[i], &y.absent[i]);
        if (order != 0) {
            return order;
        }
    }

    return 0;
}

static int compare_bounds_by_hits(const void *a, const void *b)
{
    struct service_bounds x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return x.n_hits != y.n_hits ? (x.n_hits < y.n_hits) - (x.n_hits > y.n_hits)
                                : compare_bounds(a, b);
}

/* ---- holes ---- */

/* Joins the two neighbours with the least time between them. */
static void join_nearest_holes(struct plan_holes *holes)
{
    size_t nearest = 1;
    for (size_t i = 2; i < holes->n; i++) {
        uint64_t gap = (uint64_t)holes->at[i].from_ns - (uint64_t)holes->at[i - 1].to_ns;
        uint64_t least =
            (uint64_t)holes->at[nearest].from_ns - (uint64_t)holes->at[nearest - 1].to_ns;
        nearest = gap < least ? i : nearest;
    }

    holes->at[nearest - 1].to_ns = holes->at[nearest].to_ns;
    memmove(&holes->at[nearest], &holes->at[nearest + 1],
            (holes->n - nearest - 1) * sizeof holes->at[0]);
    holes->n--;
}

/* Adds a stretch; the holes stay ascending, disjoint and few: two are joined if necessary. */
static void add_hole(struct plan_holes *holes, struct plan_stretch s)
{
    size_t n = 0, at = 0;
    struct plan_stretch kept[PLAN_MAX_HOLES + 1];
    assert(holes->n <= PLAN_MAX_HOLES);

    /* Keep the others, and join those that it meets. */
    for (size_t i = 0; i < holes->n; i++) {
        struct plan_stretch old = holes->at[i];
        if (old.to_ns < s.from_ns || s.to_ns < old.from_ns) {
            kept[n++] = old;
            at += old.from_ns < s.from_ns;
        } else {
            s.from_ns = min_i64(s.from_ns, old.from_ns);
            s.to_ns = max_i64(s.to_ns, old.to_ns);
        }
    }

    /* Insert it. */
    memcpy(holes->at, kept, at * sizeof kept[0]);
    holes->at[at] = s;
    memcpy(&holes->at[at + 1], kept + at, (n - at) * sizeof kept[0]);
    holes->n = n + 1;
    if (holes->n > PLAN_MAX_HOLES) {
        join_nearest_holes(holes);
    }
}

/* Adds what is absent of a service to the holes of a group; only_whole: of the whole service. */
static void add_absent_blocks(struct plan_group *group, const struct service_bounds *bounds,
                              bool only_whole)
{
    for (size_t i = 0; i < bounds->n_absent; i++) {
        const struct hearth_absent_blocks *absent = &bounds->absent[i];
        size_t length = absent->length_ns == PLAN_NS_PER_10M      ? 0
                        : absent->length_ns == HEARTH_NS_PER_HOUR ? 1
                                                                  : PLAN_N_LENGTHS - 1;
        if (absent->whole || !only_whole) {
            add_hole(&group->holes[length], (struct plan_stretch){absent->from_ns, absent->to_ns});
        }
    }
}

/* ---- groups ---- */

static struct service_bounds bounds_of(const struct plan_service *service)
{
    return (struct service_bounds){.built_ns = service->built_ns,
                                   .compacted_ns = service->compacted_ns,
                                   .kept_from_ns = service->kept_from_ns,
                                   .absent = service->absent,
                                   .n_absent = service->n_absent,
                                   .group = PLAN_NO_GROUP};
}

/*
 * Finds the group of each service; services with the fewest hits share one if there are too many.
 * False: memory was refused.
 */
static bool make_plan_groups(struct planner *p)
{
    struct service_bounds *all = hearth_arena_array(p->arena, p->n_services, sizeof all[0]);

    p->groups = hearth_arena_calloc(p->arena, PLAN_N_GROUPS, sizeof p->groups[0]);
    if (all == NULL || p->groups == NULL) {
        return false;
    }

    /* Distinct bounds, and the number of hits that have them. */
    for (size_t i = 0; i < p->n_services; i++) {
        const struct plan_service *s = &p->services[i];
        all[i] = bounds_of(s);
        all[i].n_hits = s->n_hits;
    }

    qsort(all, p->n_services, sizeof all[0], compare_bounds);
    size_t n = 0;
    for (size_t i = 0; i < p->n_services; i++) {
        if (n > 0 && compare_bounds(&all[n - 1], &all[i]) == 0) {
            all[n - 1].n_hits += all[i].n_hits;
        } else {
            all[n++] = all[i];
        }
    }

    /* The most frequent bounds get groups of their own. */
    qsort(all, n, sizeof all[0], compare_bounds_by_hits);
    for (size_t i = 0; i < n; i++) {
        bool shared = i >= PLAN_MAX_GROUPS;
        struct plan_group *group = &p->groups[shared ? PLAN_MAX_GROUPS - 1 : i];
        all[i].group = (uint32_t)(group - p->groups);
        group->built_ns = shared ? min_i64(group->built_ns, all[i].built_ns) : all[i].built_ns;
        group->compacted_from_ns =
            shared ? min_i64(group->compacted_from_ns, all[i].compacted_ns) : all[i].compacted_ns;
        group->compacted_to_ns =
            shared ? max_i64(group->compacted_to_ns, all[i].compacted_ns) : all[i].compacted_ns;
        group->kept_from_ns =
            shared ? max_i64(group->kept_from_ns, all[i].kept_from_ns) : all[i].kept_from_ns;
        add_absent_blocks(group, &all[i], false);
        add_absent_blocks(group + (ptrdiff_t)2 * PLAN_MAX_GROUPS, &all[i], true);
    }

    /* Services find their group by their bounds. */
    qsort(all, n, sizeof all[0], compare_bounds);
    for (size_t i = 0; i < p->n_services; i++) {
        struct service_bounds key = bounds_of(&p->services[i]);
        const struct service_bounds *found = bsearch(&key, all, n, sizeof all[0], compare_bounds);
        assert(found != NULL);
        p->services[i].group = found->group;
    }

    return true;
}

/* ---- deletions ---- */

/* Whether a tombstone is for a series. */
static bool has_tombstone_series(const struct hearth_tombstone *t, int32_t series_id)
{
    size_t low = 0, high = t->n_series;

    while (low < high) {
        size_t mid = (low + high) / 2;
        if (t->series_ids[mid] < series_id) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }

    return low < t->n_series && t->series_ids[low] == series_id;
}

/* The part of the range that a tombstone hides. False: no part. */
static bool find_hidden_stretch(const struct planner *p, const struct hearth_tombstone *t,
                                struct plan_stretch *ret)
{
    int64_t end = t->to_ns == INT64_MAX ? INT64_MAX : t->to_ns + 1;
    *ret =
        (struct plan_stretch){max_i64(t->from_ns, p->range.from_ns), min_i64(end, p->range.to_ns)};
    return ret->from_ns < ret->to_ns;
}

/* Leaves a stretch out of the blocks of each length. */
static void forbid_stretch(struct plan_group *group, struct plan_stretch s)
{
    for (size_t i = 0; i < PLAN_N_LENGTHS; i++) {
        add_hole(&group->holes[i], s);
    }

    group->has_deletions = true;
}

enum plan_fate hearth_plan_fate(const struct planner *p, const struct plan_service *service,
                                int32_t series_id)
{
    enum plan_fate fate = PLAN_ALIVE;

    for (size_t i = 0; i < service->n_tombstones; i++) {
        const struct hearth_tombstone *t = &service->tombstones[i];
        struct plan_stretch hidden;
        if (!has_tombstone_series(t, series_id) || !find_hidden_stretch(p, t, &hidden)) {
            continue;
        }
        if (hidden.from_ns == p->range.from_ns && hidden.to_ns == p->range.to_ns) {
            return PLAN_GONE;
        }
        fate = PLAN_TOUCHED;
    }

    return fate;
}

/* Finds or makes the group of a service's series with deletions. */
static struct plan_group *find_group_of_deleted(struct planner *p, struct plan_service *service)
{
    if (service->deleted_group == PLAN_NO_GROUP) {
        size_t i = p->n_deleted_groups;
        const struct plan_group *own = &p->groups[service->group];
        if (i < PLAN_MAX_GROUPS) {
            p->n_deleted_groups++;
        } else {
            i = PLAN_MAX_GROUPS - 1;
        }

        /* A shared group has the lowest bound of blocks, and both bounds of segments. */
        struct plan_group *group = &p->groups[PLAN_MAX_GROUPS + i];
        bool shared = group->has_deletions;
        group->built_ns = shared ? min_i64(group->built_ns, own->built_ns) : own->built_ns;
        group->compacted_from_ns = shared
                                       ? min_i64(group->compacted_from_ns, own->compacted_from_ns)
                                       : own->compacted_from_ns;
        group->compacted_to_ns =
            shared ? max_i64(group->compacted_to_ns, own->compacted_to_ns) : own->compacted_to_ns;
        group->kept_from_ns =
            shared ? max_i64(group->kept_from_ns, service->kept_from_ns) : service->kept_from_ns;

        const struct service_bounds bounds = bounds_of(service);
        add_absent_blocks(group, &bounds, false);
        for (size_t t = 0; t < service->n_tombstones; t++) {
            struct plan_stretch hidden;
            if (find_hidden_stretch(p, &service->tombstones[t], &hidden)) {
                forbid_stretch(group, hidden);
            }
        }

        service->deleted_group = (uint32_t)(PLAN_MAX_GROUPS + i);
    }

    return &p->groups[service->deleted_group];
}

/* ---- hits of the groups ---- */

/* Whether series of the group lack blocks in the range. */
static bool lacks_blocks(const struct plan_group *group)
{
    for (size_t i = 0; i < PLAN_N_LENGTHS; i++) {
        if (group->holes[i].n > 0) {
            return true;
        }
    }

    return false;
}

/*
 * The group of the hits of a service that blocks of the whole service answer: another one than that
 * of its other hits if these lack blocks.
 */
static struct plan_group *find_group_of_whole(struct planner *p, const struct plan_service *service)
{
    struct plan_group *own = &p->groups[service->group];
    return lacks_blocks(own) ? own + (ptrdiff_t)2 * PLAN_MAX_GROUPS : own;
}

/*
 * The covered hit whose whole-service blocks answer for a hit; NULL if there is none. Both lists
 * are sorted.
 */
static const struct hearth_series_hit *find_covered_hit(const struct hearth_plan_input *in,
                                                        const struct hearth_series_hit *hit)
{
    size_t low = 0, high = in->n_covered;

    while (low < high) {
        size_t mid = (low + high) / 2;
        const struct hearth_series_hit *c = &in->covered[mid];
        bool before = c->service_id != hit->service_id ? c->service_id < hit->service_id
                      : c->series_id != -hit->shape_id ? c->series_id < -hit->shape_id
                                                       : c->column < hit->column;
        if (before) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }

    const struct hearth_series_hit *c = low < in->n_covered ? &in->covered[low] : NULL;
    bool found = c != NULL && c->service_id == hit->service_id && c->series_id == -hit->shape_id &&
                 c->column == hit->column;

    return found ? c : NULL;
}

/* Counts the hits of each group and allocates its lists. False: memory was refused. */
static bool allocate_group_hits(struct planner *p)
{
    for (size_t i = 0; i < p->n_services; i++) {
        struct plan_service *service = &p->services[i];
        struct plan_group *group = &p->groups[service->group];
        group->cap_rows += service->n_hits;
        if (service->n_tombstones > 0) {
            for (size_t h = 0; h < service->n_hits; h++) {
                int32_t series = p->in->hits[service->first_hit + h].series_id;
                if (hearth_plan_fate(p, service, series) == PLAN_TOUCHED) {
                    find_group_of_deleted(p, service)->cap_rows++;
                }
            }
        }
    }

    /* A group of whole services gets hits of one group, and its bounds. */
    for (size_t i = 0; i < PLAN_MAX_GROUPS; i++) {
        const struct plan_group *own = &p->groups[i];
        struct plan_group *whole = &p->groups[2 * PLAN_MAX_GROUPS + i];
        whole->built_ns = own->built_ns;
        whole->compacted_from_ns = own->compacted_from_ns;
        whole->compacted_to_ns = own->compacted_to_ns;
        whole->kept_from_ns = own->kept_from_ns;
        whole->cap_rows = lacks_blocks(own) && p->in->n_covered > 0 ? own->cap_rows : 0;
    }

    /* Each list of a group has at most as many hits as the group. */
    for (size_t i = 0; i < PLAN_N_GROUPS; i++) {
        struct plan_group *group = &p->groups[i];
        if (group->cap_rows == 0) {
            continue;
        }
        group->rows.v = hearth_arena_array(p->arena, group->cap_rows, sizeof group->rows.v[0]);
        group->blocks.v = hearth_arena_array(p->arena, group->cap_rows, sizeof group->rows.v[0]);
        group->whole.v = hearth_arena_array(p->arena, group->cap_rows, sizeof group->rows.v[0]);
        if (group->rows.v == NULL || group->blocks.v == NULL || group->whole.v == NULL) {
            return false;
        }
    }

    return true;
}

/* Puts each hit into the lists of its group. False: memory was refused. */
static bool assign_hits_to_groups(struct planner *p)
{
    if (!allocate_group_hits(p)) {
        return false;
    }

    assert(p->groups != NULL);
    bool whole_allowed = !p->in->gauge && !p->in->totals && p->in->n_covered > 0;
    for (size_t i = 0; i < p->n_services; i++) {
        struct plan_service *service = &p->services[i];
        bool whole = whole_allowed && service->n_tombstones == 0;
        for (size_t h = 0; h < service->n_hits; h++) {
            const struct hearth_series_hit *hit = &p->in->hits[service->first_hit + h];
            enum plan_fate fate = service->n_tombstones == 0
                                      ? PLAN_ALIVE
                                      : hearth_plan_fate(p, service, hit->series_id);
            if (fate == PLAN_GONE) {
                continue;
            }

            const struct hearth_series_hit *cover = whole ? find_covered_hit(p->in, hit) : NULL;
            struct plan_group *group = fate == PLAN_TOUCHED ? find_group_of_deleted(p, service)
                                       : cover != NULL      ? find_group_of_whole(p, service)
                                                            : &p->groups[service->group];
            push_hit(&group->rows, hit);

            bool again = cover != NULL && group->whole.n > 0 &&
                         hearth_series_hit_compare(&group->whole.v[group->whole.n - 1], cover) == 0;
            if (cover == NULL) {
                push_hit(&group->blocks, hit);
            } else if (!again) {
                push_hit(&group->whole, cover);
            }
        }
    }

    /* Each series adds the covered hit of its shape: one is enough. */
    for (size_t i = 0; i < PLAN_N_GROUPS; i++) {
        struct plan_hits *whole = &p->groups[i].whole;
        whole->n = hearth_series_hits_sort(whole->v, whole->n);
    }

    return true;
}

bool hearth_plan_group(struct planner *p)
{
    return make_plan_services(p) && make_plan_groups(p) && assign_hits_to_groups(p);
}
