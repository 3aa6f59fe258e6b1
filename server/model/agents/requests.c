/*
 * requests.c -- groups segments of traces into requests (contract: hearth/model/spans.h).
 *
 * Parents are found by a table of segments. Each segment is then linked below its parent, or begins
 * a request. Segments that refer to each other in a circle are below no segment that begins a
 * request; the first segment of a circle then begins one.
 */
#include "hearth/base/hash.h"
#include "hearth/model/spans.h"

#include <assert.h>

#define NONE SIZE_MAX

struct segment_link {
    size_t parent, first_child, last_child, next_sibling; /* indices, or NONE */
    bool is_placed;                                       /* part of a request already */
};

static struct hearth_hash128 hash_segment(struct hearth_str trace_id, struct hearth_str instance,
                                          int32_t service_id, struct hearth_str segment_id)
{
    struct hearth_hash128 a = hearth_hash128(trace_id.p, trace_id.n, (uint64_t)service_id);
    struct hearth_hash128 b = hearth_hash128(instance.p, instance.n, a.lo);
    return hearth_hash128(segment_id.p, segment_id.n, hearth_hash_mix(b.lo, a.hi));
}

/* The segment that called the first span of `segment` across threads; NONE if it is unknown. */
static size_t find_parent(const struct hearth_idmap *ids,
                          const struct hearth_request_segment *segment, size_t own)
{
    const struct hearth_span *first = segment->n_spans > 0 ? &segment->spans[0] : NULL;

    for (size_t i = 0; first != NULL && i < first->n_refs; i++) {
        const struct hearth_span_ref *ref = &first->refs[i];
        if (!ref->across_threads) {
            continue;
        }

        uint32_t found = hearth_idmap_find(ids, hash_segment(segment->trace_id, segment->instance,
                                                             segment->service_id, ref->segment_id));
        if (found != HEARTH_IDMAP_NONE && found != own) {
            return found;
        }
    }

    return NONE;
}

static void link_child(struct segment_link *links, size_t child, size_t parent)
{
    links[child].parent = parent;
    if (links[parent].first_child == NONE) {
        links[parent].first_child = child;
    } else {
        links[links[parent].last_child].next_sibling = child;
    }

    links[parent].last_child = child;
}

/* Collect all unplaced segments below `root`, parents first. */
static void place_segments(struct segment_link *links, size_t root, size_t *order, size_t *ret_n)
{
    size_t n = 0;

    assert(!links[root].is_placed);

    order[n++] = root;
    links[root].is_placed = true;
    for (size_t i = 0; i < n; i++) {
        for (size_t c = links[order[i]].first_child; c != NONE; c = links[c].next_sibling) {
            if (!links[c].is_placed) {
                links[c].is_placed = true;
                order[n++] = c;
            }
        }
    }

    *ret_n = n;
}

struct request_list {
    struct hearth_arena *arena;
    struct hearth_request *v;
    size_t n;
};

/*
 * Append the request of n segments, unless none of them is profiled; `order` has their numbers.
 * False if memory was refused.
 */
static bool keep_request(struct request_list *list, const struct hearth_request_segment *segments,
                         const size_t *order, size_t n)
{
    bool is_profiled = false;

    for (size_t i = 0; i < n; i++) {
        is_profiled = is_profiled || segments[order[i]].is_profiled;
    }

    if (!is_profiled) {
        return true;
    }

    struct hearth_request *request = &list->v[list->n++];
    request->segments = hearth_arena_array(list->arena, n, sizeof *request->segments);
    request->n_segments = n;
    for (size_t i = 0; i < n && request->segments != NULL; i++) {
        request->segments[i] = &segments[order[i]];
    }

    return request->segments != NULL;
}

static bool link_segments(const struct hearth_request_segment *segments, size_t n,
                          struct segment_link *links, struct hearth_idmap *ids)
{
    /* Enter all segments into the table, then find their parents. */
    for (size_t i = 0; i < n; i++) {
        bool is_new = false;
        links[i] = (struct segment_link){NONE, NONE, NONE, NONE, false};
        if (hearth_idmap_intern(ids,
                                hash_segment(segments[i].trace_id, segments[i].instance,
                                             segments[i].service_id, segments[i].segment_id),
                                (uint32_t)i, &is_new) == HEARTH_IDMAP_NONE) {
            return false;
        }
    }

    for (size_t i = 0; i < n; i++) {
        size_t parent = find_parent(ids, &segments[i], i);
        if (parent != NONE) {
            link_child(links, i, parent);
        }
    }

    return true;
}

enum hearth_status hearth_requests_make(const struct hearth_request_segment *segments, size_t n,
                                        struct hearth_arena *arena, struct hearth_request **ret,
                                        size_t *ret_n, struct hearth_err *err)
{
    assert(segments != NULL || n == 0);
    assert(arena != NULL && ret != NULL && ret_n != NULL);

    struct segment_link *links = hearth_arena_array(arena, n, sizeof *links);
    size_t *order = hearth_arena_array(arena, n, sizeof *order);
    struct request_list list = {arena, hearth_arena_array(arena, n, sizeof *list.v), 0};

    if (links == NULL || order == NULL || list.v == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    struct hearth_idmap ids;
    hearth_idmap_init(&ids);
    bool linked = link_segments(segments, n, links, &ids);
    hearth_idmap_release(&ids);
    if (!linked) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory to join %zu segments", n);
    }

    /* First the segments without a known caller; the others are then in circles. */
    for (int with_circles = 0; with_circles < 2; with_circles++) {
        for (size_t i = 0; i < n; i++) {
            size_t n_placed = 0;
            if (links[i].is_placed || (!with_circles && links[i].parent != NONE)) {
                continue;
            }

            place_segments(links, i, order, &n_placed);
            if (!keep_request(&list, segments, order, n_placed)) {
                return HEARTH_FAIL_ARENA(err, arena);
            }
        }
    }

    *ret = list.v;
    *ret_n = list.n;

    return HEARTH_OK;
}
