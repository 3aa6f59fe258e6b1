/*
 * label_index_cover.c -- which services and shapes a selection covers completely, and which of its
 * series differ only in their shapes.
 */
#include "hearth/base/clock.h"

#include "label_index_internal.h"

#include <assert.h>
#include <stdlib.h>

int hearth_series_hit_compare(const void *a, const void *b)
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

    return (left.column > right.column) - (left.column < right.column);
}

size_t hearth_series_hits_sort(struct hearth_series_hit *v, size_t n)
{
    size_t n_distinct = 0;

    if (n > 1) {
        qsort(v, n, sizeof v[0], hearth_series_hit_compare);
    }

    for (size_t i = 0; i < n; i++) {
        if (n_distinct == 0 || hearth_series_hit_compare(&v[n_distinct - 1], &v[i]) != 0) {
            v[n_distinct++] = v[i];
        }
    }

    return n_distinct;
}

/*
 * A column of a service and shape: how many of its series were selected, and how many are active.
 */
struct claim {
    struct hearth_series_hit hit; /* series_id = -shape_id; first member, for the comparison */
    size_t n_selected, n_active;
};

struct claims {
    struct claim *v; /* sorted by hit */
    size_t n;
    int64_t from_hour, to_hour; /* series count as active in this range */
};

/* Make one claim per (service, shape, column) of the hits. */
static enum hearth_status make_claims(const struct hearth_series_hits *hits,
                                      struct hearth_arena *arena, struct claims *ret,
                                      struct hearth_err *err)
{
    struct claim *claims = hearth_arena_array(arena, hits->n, sizeof *claims);

    if (claims == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    size_t n = 0, of_service = 0; /* first claim of the current service */
    for (size_t i = 0; i < hits->n; i++) {
        struct hearth_series_hit hit = hits->v[i];
        hit.series_id = -hit.shape_id;
        of_service = i > 0 && hits->v[i - 1].service_id == hit.service_id ? of_service : n;

        /* Find the claim, or add it. */
        size_t c = of_service; /* a service has few shapes */
        while (c < n && hearth_series_hit_compare(&claims[c].hit, &hit) != 0) {
            c++;
        }
        if (c == n) {
            claims[n++] = (struct claim){.hit = hit};
        }
        claims[c].n_selected++;
    }

    if (n > 0) {
        qsort(claims, n, sizeof *claims, hearth_series_hit_compare);
    }

    ret->v = claims;
    ret->n = n;

    return HEARTH_OK;
}

/*
 * Add a group's active series to the claims of its service and shape, unless these have too many.
 */
static void count_group(const struct hearth_label_index *index, const struct index_group *group,
                        struct claims *claims)
{
    struct claim *v = claims->v;
    struct hearth_series_hit first = {.service_id = index->services[group->service].id,
                                      .series_id = -index->shapes[group->shape].id};
    size_t low = 0, high = claims->n;

    /* Find these claims: [low, end). */
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (hearth_series_hit_compare(&v[mid].hit, &first) < 0) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }

    size_t end = low, most = 0;
    while (end < claims->n && v[end].hit.service_id == first.service_id &&
           v[end].hit.series_id == first.series_id) {
        most = v[end].n_selected > most ? v[end].n_selected : most;
        end++;
    }

    if (end == low || v[low].n_active > most ||
        !activity_meets(&group->activity, claims->from_hour, claims->to_hour)) {
        return;
    }

    /* Count until there are more active series than selected ones. */
    size_t n_active = v[low].n_active;
    const uint32_t *series = ord_list_at(&group->series);
    for (uint32_t i = 0; i < group->series.n && n_active <= most; i++) {
        n_active +=
            activity_meets(&index->series[series[i]].activity, claims->from_hour, claims->to_hour);
    }

    for (size_t c = low; c < end; c++) {
        v[c].n_active = n_active;
    }
}

enum hearth_status hearth_label_index_covered(const struct hearth_label_index *index,
                                              const struct hearth_index_filter *filter,
                                              const struct hearth_series_hits *hits,
                                              struct hearth_arena *arena,
                                              struct hearth_series_hits *ret_covered,
                                              struct hearth_err *err)
{
    assert((hits->v != NULL || hits->n == 0) && arena != NULL);
    assert(filter != NULL && ret_covered != NULL);

    struct claims claims = {.from_hour = floor_div(filter->from_ns, HEARTH_NS_PER_HOUR),
                            .to_hour = floor_div(filter->to_ns, HEARTH_NS_PER_HOUR)};

    /* Compare the hits with the active series of all groups. */
    HEARTH_TRY(make_claims(hits, arena, &claims, err));
    for (size_t g = 0; claims.n > 0 && g < index->n_groups; g++) {
        count_group(index, &index->groups[g], &claims);
    }

    /* Complete claims are covered. */
    struct hearth_series_hits covered = {
        .v = hearth_arena_array(arena, claims.n, sizeof *covered.v)};
    if (covered.v == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (size_t i = 0; i < claims.n; i++) {
        if (claims.v[i].n_active == claims.v[i].n_selected) {
            covered.v[covered.n++] = claims.v[i].hit;
        }
    }

    *ret_covered = covered;

    return HEARTH_OK;
}

enum hearth_status hearth_label_index_same_labels(const struct hearth_label_index *index,
                                                  const struct hearth_series_hits *hits,
                                                  struct hearth_arena *arena, uint32_t **ret_first,
                                                  struct hearth_err *err)
{
    assert((hits->v != NULL || hits->n == 0) && arena != NULL && ret_first != NULL);

    const struct hearth_series_hit *v = hits->v;
    uint32_t *first = hearth_arena_array(arena, hits->n, sizeof first[0]);

    if (first == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    struct hearth_idmap by_labels;
    hearth_idmap_init(&by_labels);
    enum hearth_status status = HEARTH_OK;
    uint64_t place = 0; /* position among the hits of one series */
    for (size_t i = 0; i < hits->n && status == HEARTH_OK; i++) {
        uint32_t ordinal = id_table_get(&index->series_ids, v[i].series_id);
        HEARTH_ASSERT(ordinal != ORD_NONE);
        const struct index_series *series = &index->series[ordinal];
        size_t n_pairs = index->schemas[index->groups[series->group].schema].n_names;
        place = i > 0 && v[i].series_id == v[i - 1].series_id ? place + 1 : 0;

        /*
         * Equal pairs are equal labels: a service and a position have them in one series of each
         * shape.
         */
        uint64_t seed = hearth_hash_mix(index->seed, (uint64_t)v[i].service_id << 32 | place);
        struct hearth_hash128 key = hearth_hash128(hearth_index_series_pairs(index, series),
                                                   n_pairs * sizeof(uint32_t), seed);

        bool inserted;
        first[i] = hearth_idmap_intern(&by_labels, key, (uint32_t)i, &inserted);
        if (first[i] == HEARTH_IDMAP_NONE) {
            status =
                HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory to compare series by their labels");
        }
    }

    hearth_idmap_release(&by_labels);
    *ret_first = first;

    return status;
}
