/*
 * requests.c -- which segments of a trace are one request in one instance (contract: hearth/model/spans.h).
 *
 * Parents are found by a table of segments; each segment then hangs below its parent, or begins a request. Segments that
 * name each other in a circle are below nobody that begins one: the first of them is made to.
 */
#include "hearth/base/hash.h"
#include "hearth/model/spans.h"

#define NONE SIZE_MAX

struct link {
    size_t parent, first_child, last_child, next_sibling;
    bool is_placed;
};

static struct hearth_hash128 key_of(struct hearth_str trace_id, struct hearth_str instance,
                                    int32_t service_id, struct hearth_str segment_id)
{
    struct hearth_hash128 a = hearth_hash128(trace_id.p, trace_id.n, (uint64_t)service_id);
    struct hearth_hash128 b = hearth_hash128(instance.p, instance.n, a.lo);
    return hearth_hash128(segment_id.p, segment_id.n, hearth_hash_mix(b.lo, a.hi));
}

/* Which segment called the first span of it across threads; NONE: none that is known. */
static size_t parent_of(const struct hearth_idmap *ids,
                        const struct hearth_request_segment *segment, size_t own)
{
    const struct hearth_span *first = segment->n_spans > 0 ? &segment->spans[0] : NULL;

    for (size_t i = 0; first != NULL && i < first->n_refs; i++) {
        const struct hearth_span_ref *ref = &first->refs[i];
        if (!ref->across_threads) {
            continue;
        }
        uint32_t found = hearth_idmap_find(ids, key_of(segment->trace_id, segment->instance,
                                                       segment->service_id, ref->segment_id));
        if (found != HEARTH_IDMAP_NONE && found != own) {
            return found;
        }
    }

    return NONE;
}

static void hang(struct link *links, size_t child, size_t parent)
{
    links[child].parent = parent;
    if (links[parent].first_child == NONE) {
        links[parent].first_child = child;
    } else {
        links[links[parent].last_child].next_sibling = child;
    }
    links[parent].last_child = child;
}

/* Everything below `root`, parents first. */
static void place(struct link *links, size_t root, size_t *order, size_t *ret_n)
{
    size_t n = 0;

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

static bool take_request(const struct hearth_request_segment *segments, const size_t *order,
                         size_t n, struct hearth_arena *arena, struct hearth_request *requests,
                         size_t *n_requests)
{
    bool is_profiled = false;

    for (size_t i = 0; i < n; i++) {
        is_profiled = is_profiled || segments[order[i]].is_profiled;
    }

    if (!is_profiled) {
        return true;
    }

    struct hearth_request *request = &requests[(*n_requests)++];
    request->segments = hearth_arena_array(arena, n, sizeof *request->segments);
    request->n_segments = n;
    for (size_t i = 0; i < n && request->segments != NULL; i++) {
        request->segments[i] = &segments[order[i]];
    }

    return request->segments != NULL;
}

static bool link_all(const struct hearth_request_segment *segments, size_t n, struct link *links,
                     struct hearth_idmap *ids)
{
    for (size_t i = 0; i < n; i++) {
        bool is_new = false;
        links[i] = (struct link){NONE, NONE, NONE, NONE, false};
        if (hearth_idmap_intern(ids,
                                key_of(segments[i].trace_id, segments[i].instance,
                                       segments[i].service_id, segments[i].segment_id),
                                (uint32_t)i, &is_new) == HEARTH_IDMAP_NONE) {
            return false;
        }
    }

    for (size_t i = 0; i < n; i++) {
        size_t parent = parent_of(ids, &segments[i], i);
        if (parent != NONE) {
            hang(links, i, parent);
        }
    }

    return true;
}

enum hearth_status hearth_requests_make(const struct hearth_request_segment *segments, size_t n,
                                        struct hearth_arena *arena, struct hearth_request **ret,
                                        size_t *ret_n, struct hearth_err *err)
{
    struct link *links = hearth_arena_array(arena, n, sizeof *links);
    size_t *order = hearth_arena_array(arena, n, sizeof *order), n_requests = 0;
    struct hearth_request *requests = hearth_arena_array(arena, n, sizeof *requests);

    if (links == NULL || order == NULL || requests == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    struct hearth_idmap ids;
    hearth_idmap_init(&ids);
    bool linked = link_all(segments, n, links, &ids);
    hearth_idmap_release(&ids);
    if (!linked) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory to join %zu segments", n);
    }

    /* First those that nobody known called; what is left then are circles. */
    for (int with_circles = 0; with_circles < 2; with_circles++) {
        for (size_t i = 0; i < n; i++) {
            size_t n_placed = 0;
            if (links[i].is_placed || (!with_circles && links[i].parent != NONE)) {
                continue;
            }
            place(links, i, order, &n_placed);
            if (!take_request(segments, order, n_placed, arena, requests, &n_requests)) {
                return HEARTH_FAIL_ARENA(err, arena);
            }
        }
    }

    *ret = requests;
    *ret_n = n_requests;

    return HEARTH_OK;
}
