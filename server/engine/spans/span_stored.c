/*
 * span_stored.c -- stored spans: by trace, by segment, by ids through the index; and their
 * descendants.
 */
#include "spans/span_stored.h"

#include "hearth/codec/compress.h"
#include "hearth/store/store_span_index.h"

#include "common/shown.h"
#include "select/span_places.h"

#include <assert.h>
#include <stdlib.h>

/* ---- groups ---- */

enum hearth_status hearth_stored_unpack(struct hearth_arena *arena,
                                        struct hearth_inflater *inflater, struct hearth_str packed,
                                        struct hearth_str *ret, struct hearth_err *err)
{
    struct hearth_buf scratch;
    struct hearth_str plain;
    size_t max = arena->limit_bytes > 0 ? arena->limit_bytes : SIZE_MAX;

    assert(ret != NULL);
    assert(inflater != NULL);

    hearth_buf_init(&scratch, 0);
    scratch.budget = arena->budget;
    enum hearth_status status = hearth_unpack(inflater, packed, max, &scratch, &plain, err);

    /* Decoded texts borrow from the copy. */
    if (status == HEARTH_OK) {
        *ret = hearth_arena_str(arena, plain);
        status = ret->p == NULL ? HEARTH_FAIL_ARENA(err, arena) : HEARTH_OK;
    }

    hearth_buf_release(&scratch);

    return status;
}

static enum hearth_status unpack_stored_group(struct hearth_arena *arena,
                                              struct hearth_inflater *inflater,
                                              struct hearth_stored_group *group,
                                              struct hearth_err *err)
{
    struct hearth_str plain;

    HEARTH_TRY(hearth_stored_unpack(arena, inflater, group->group.spans, &plain, err));

    return hearth_spans_decode(plain, group->group.start_ns, arena, &group->spans, &group->n_spans,
                               err);
}

static enum hearth_status unpack_stored_groups(const struct hearth_query *query,
                                               const struct hearth_span_group *groups, size_t n,
                                               size_t max_spans, struct hearth_stored_groups *ret,
                                               struct hearth_err *err)
{
    size_t n_spans = 0;
    struct hearth_inflater *inflater = hearth_inflater_new();

    ret->v = hearth_arena_calloc(query->call.arena, n, sizeof ret->v[0]);
    enum hearth_status status = HEARTH_OK;
    if (ret->v == NULL || inflater == NULL) {
        status = HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for stored spans");
    }

    /* Unpack until the limit of spans; the first group is always unpacked. */
    for (size_t i = 0; i < n && status == HEARTH_OK; i++) {
        n_spans += groups[i].n_spans > 0 ? (size_t)groups[i].n_spans : 0;

        if (n_spans > max_spans && i > 0) {
            ret->is_cut = true;
            break;
        }
        ret->v[ret->n].group = groups[i];
        status = unpack_stored_group(query->call.arena, inflater, &ret->v[ret->n++], err);
    }

    hearth_inflater_free(inflater);

    return status;
}

/* Drop the groups of services that the call does not see wholly. */
static enum hearth_status keep_shown_groups(const struct hearth_call *call,
                                            struct hearth_span_group *groups, size_t *n,
                                            struct hearth_err *err)
{
    struct hearth_shown shown = {0};
    size_t n_shown = 0;

    for (size_t i = 0; i < *n; i++) {
        bool shows;
        HEARTH_TRY(hearth_call_shows_service(call, &shown, groups[i].service, &shows, err));
        if (shows) {
            groups[n_shown++] = groups[i];
        }
    }

    *n = n_shown;

    return HEARTH_OK;
}

enum hearth_status hearth_stored_groups_read(const struct hearth_query *query,
                                             const struct hearth_span_query *asked,
                                             struct hearth_stored_groups *ret,
                                             struct hearth_err *err)
{
    struct hearth_limits limits;

    assert(query != NULL && ret != NULL);

    /* Read one group more than the limit, to notice that there are more. */
    hearth_call_limits(&query->call, &limits);
    size_t max = hearth_lookup_limit(limits.max_lookup_spans), n;
    struct hearth_span_query limited = *asked;
    struct hearth_span_group *groups;
    limited.limit = max + 1;
    *ret = (struct hearth_stored_groups){0};

    HEARTH_TRY(
        hearth_store_span_groups(HEARTH_CALL_SCOPE(&query->call), &limited, &groups, &n, err));
    HEARTH_TRY(keep_shown_groups(&query->call, groups, &n, err));

    return n == 0 ? HEARTH_OK : unpack_stored_groups(query, groups, n, max, ret, err);
}

/*
 * Read the groups that the span index names for the spans. A span may have no group, and a group
 * may contain none of the spans.
 */
static enum hearth_status read_groups_of_spans(const struct hearth_query *query,
                                               const uint64_t *span_ids, size_t n,
                                               struct hearth_stored_groups *ret,
                                               struct hearth_err *err)
{
    struct hearth_limits limits;

    assert(query != NULL && ret != NULL);

    /* Ask the index where the spans are stored. */
    hearth_call_limits(&query->call, &limits);
    struct hearth_arena *arena = query->call.arena;
    struct hearth_span_lookup *lookups = hearth_arena_array(arena, n, sizeof lookups[0]);
    if (lookups == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (size_t i = 0; i < n; i++) {
        lookups[i] =
            (struct hearth_span_lookup){hearth_span_key(span_ids[i]), HEARTH_OF_STORED_SPAN};
    }

    const struct hearth_span_search search = {
        .lookups = lookups,
        .n_lookups = n,
        .from_ns = INT64_MIN,
        .to_ns = INT64_MAX,
        .limit = hearth_lookup_limit(limits.max_lookup_spans),
    };
    struct hearth_found_spans found;
    HEARTH_TRY(
        hearth_store_find_spans(&(const struct hearth_scope){.store = query->call.engine->store,
                                                             .tenant = query->call.tenant,
                                                             .cancel = query->call.cancel,
                                                             .arena = arena},
                                &search, &found, err));

    /* Read the groups there. */
    struct hearth_group_place *places = hearth_arena_array(arena, found.n, sizeof places[0]);
    if (places == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (size_t i = 0; i < found.n; i++) {
        places[i] = (struct hearth_group_place){found.associations[i].service_id,
                                                found.associations[i].ts_ns};
    }

    *ret = (struct hearth_stored_groups){0};
    if (found.n > 0) {
        const struct hearth_span_query asked = {.places = places, .n_places = found.n};
        HEARTH_TRY(hearth_stored_groups_read(query, &asked, ret, err));
    }

    /* Either of the two reads may have been limited. */
    ret->is_cut = ret->is_cut || found.is_cut;

    return HEARTH_OK;
}

enum hearth_status hearth_stored_trace_texts(struct hearth_str id, struct hearth_arena *arena,
                                             struct hearth_str ret[HEARTH_TRACE_TEXTS],
                                             size_t *ret_n, struct hearth_err *err)
{
    struct hearth_trace_id meanings[HEARTH_TRACE_ID_MEANINGS];
    size_t n_meanings = hearth_trace_id_meanings(id, meanings), n = 0;

    assert(ret_n != NULL);

    /* The id as given, and every meaning of it. */
    ret[n++] = id;
    for (size_t i = 0; i < n_meanings; i++) {
        char text[HEARTH_TRACE_ID_TEXT + 1];
        hearth_trace_id_format(meanings[i], text);
        ret[n++] = hearth_arena_str(arena, hearth_str_c(text));
    }

    *ret_n = n;

    return arena->refused ? HEARTH_FAIL_ARENA(err, arena) : HEARTH_OK;
}

/* ---- spans ---- */

const struct hearth_span *hearth_stored_span_in(const struct hearth_stored_group *group,
                                                uint64_t span_id)
{
    for (size_t i = 0; i < group->n_spans && group->group.is_raw; i++) {
        if ((uint64_t)group->spans[i].span_id == span_id) {
            return &group->spans[i];
        }
    }

    return NULL;
}

const struct hearth_stored_span *hearth_stored_span_make(const struct hearth_stored_group *group,
                                                         const struct hearth_span *span,
                                                         struct hearth_arena *arena)
{
    struct hearth_stored_span *out = hearth_arena_alloc(arena, sizeof *out);

    if (out == NULL) {
        return NULL;
    }

    const struct hearth_span_group *from = &group->group;
    *out = (struct hearth_stored_span){
        .span_id = (uint64_t)span->span_id,
        .parent_id = span->has_parent ? (uint64_t)span->parent_id : 0,
        .trace = from->is_raw ? hearth_trace_id_of_bytes(from->trace_id)
                              : hearth_trace_id_of_text(from->trace_id, HEARTH_ID_HEX),
        .service = from->service,
        .instance = from->instance,
        .trace_text = from->is_raw ? HEARTH_STR("") : from->trace_id,
        .segment = from->is_raw ? HEARTH_STR("") : from->segment_id,
        .span = span,
    };

    return out;
}

size_t hearth_stored_profile_ids(const struct hearth_span *span,
                                 uint64_t ret[HEARTH_SPAN_ID_MEANINGS])
{
    for (size_t i = 0; i < span->n_tags; i++) {
        if (hearth_str_eq_c(span->tags[i].key, "pyroscope.profile.id")) {
            return hearth_span_id_meanings(span->tags[i].value, ret);
        }
    }

    return 0;
}

/* ---- rows ---- */

static uint64_t find_row_id(const struct hearth_span_row *row, bool of_root)
{
    return of_root ? row->local_root_id : row->span_id;
}

/*
 * Find the stored span of a row, preferring the row's trace; NULL: not stored, or the arena is
 * full.
 */
static const struct hearth_stored_span *find_row_span(const struct hearth_stored_groups *groups,
                                                      const struct hearth_span_row *row,
                                                      bool of_root, struct hearth_arena *arena)
{
    const struct hearth_stored_group *in = NULL;
    const struct hearth_span *found = NULL;

    for (size_t i = 0; i < groups->n; i++) {
        /* Look in all groups. */
        const struct hearth_span *span =
            hearth_stored_span_in(&groups->v[i], find_row_id(row, of_root));

        if (span == NULL) {
            continue;
        }

        struct hearth_trace_id trace = hearth_trace_id_of_bytes(groups->v[i].group.trace_id);
        bool is_its = trace.hi == row->trace.hi && trace.lo == row->trace.lo;
        if (found == NULL || is_its) {
            in = &groups->v[i];
            found = span;
        }
        if (is_its) {
            break;
        }
    }

    return found == NULL ? NULL : hearth_stored_span_make(in, found, arena);
}

static enum hearth_status read_row_groups(const struct hearth_query *query, bool of_roots,
                                          const struct hearth_span_row *rows, size_t n,
                                          struct hearth_stored_groups *ret, struct hearth_err *err)
{
    bool any = false;

    HEARTH_TRY(hearth_store_has_span_groups(HEARTH_CALL_SCOPE(&query->call), &any, err));
    if (!any) {
        return HEARTH_OK;
    }

    uint64_t *ids = hearth_arena_array(query->call.arena, n, sizeof ids[0]);
    if (ids == NULL) {
        return HEARTH_FAIL_ARENA(err, query->call.arena);
    }

    /* Read the groups of the ids. */
    for (size_t i = 0; i < n; i++) {
        ids[i] = find_row_id(&rows[i], of_roots);
    }

    return read_groups_of_spans(query, ids, n, ret, err);
}

enum hearth_status hearth_stored_spans_of_rows(const struct hearth_query *query, bool of_roots,
                                               struct hearth_span_row *rows, size_t n,
                                               struct hearth_err *err)
{
    struct hearth_stored_groups groups = {0};

    if (n == 0) {
        return HEARTH_OK;
    }

    enum hearth_status status = read_row_groups(query, of_roots, rows, n, &groups, err);

    /* The rows are complete without stored spans: other errors become a note. */
    if (status != HEARTH_OK) {
        bool is_final = status == HEARTH_NO_MEMORY || status == HEARTH_CANCELLED ||
                        status == HEARTH_DEADLINE_EXCEEDED;
        if (!is_final) {
            hearth_call_note(&query->call, "the stored spans of these rows could not be read: %s",
                             err->msg);
        }
        return is_final ? status : HEARTH_OK;
    }

    /* Add them to the rows. */
    for (size_t i = 0; i < n; i++) {
        rows[i].stored = find_row_span(&groups, &rows[i], of_roots, query->call.arena);
    }

    if (groups.is_cut) {
        struct hearth_limits limits;
        hearth_call_limits(&query->call, &limits);
        hearth_call_note(&query->call,
                         "more spans are stored with those of these rows than one request reads: "
                         "only the latest %lld are shown (max-lookup-spans)",
                         (long long)limits.max_lookup_spans);
    }

    return query->call.arena->refused ? HEARTH_FAIL_ARENA(err, query->call.arena) : HEARTH_OK;
}

/* ---- families ---- */

struct parent_link {
    uint64_t parent, id;
};

static int compare_links(const void *left, const void *right)
{
    const struct parent_link *a = left, *b = right;

    if (a->parent != b->parent) {
        return a->parent < b->parent ? -1 : 1;
    }
    return (a->id > b->id) - (a->id < b->id);
}

static int compare_family_ids(const void *left, const void *right)
{
    uint64_t a, b;
    memcpy(&a, left, sizeof a);
    memcpy(&b, right, sizeof b);
    return (a > b) - (a < b);
}

/* Read all groups of the traces of the given groups. */
static enum hearth_status read_trace_groups(const struct hearth_query *query,
                                            const struct hearth_stored_groups *own,
                                            struct hearth_stored_groups *ret,
                                            struct hearth_err *err)
{
    struct hearth_str *ids = hearth_arena_array(query->call.arena, own->n, sizeof ids[0]);
    size_t n = 0;

    if (ids == NULL) {
        return HEARTH_FAIL_ARENA(err, query->call.arena);
    }

    /* List the distinct traces. */
    for (size_t i = 0; i < own->n; i++) {
        bool is_new = own->v[i].group.is_raw;
        for (size_t k = 0; k < n && is_new; k++) {
            is_new = !hearth_str_eq(ids[k], own->v[i].group.trace_id);
        }
        if (is_new) {
            ids[n++] = own->v[i].group.trace_id;
        }
    }

    /* Read them. */
    const struct hearth_span_query asked = {.trace_ids = ids, .n_trace_ids = n, .is_raw = true};
    *ret = (struct hearth_stored_groups){0};

    return n == 0 ? HEARTH_OK : hearth_stored_groups_read(query, &asked, ret, err);
}

static bool is_span_stored(const struct hearth_stored_groups *groups, uint64_t span_id)
{
    for (size_t i = 0; i < groups->n; i++) {
        if (hearth_stored_span_in(&groups->v[i], span_id) != NULL) {
            return true;
        }
    }

    return false;
}

/* Make the links of all spans, sorted by parent. In arena; NULL: the arena is full. */
static struct parent_link *make_parent_links(const struct hearth_stored_groups *groups,
                                             struct hearth_arena *arena, size_t *ret_n)
{
    size_t n = 0;

    for (size_t i = 0; i < groups->n; i++) {
        n += groups->v[i].n_spans;
    }

    /* Spans with a parent have a link. */
    struct parent_link *links = hearth_arena_array(arena, n, sizeof links[0]);
    *ret_n = 0;
    for (size_t i = 0; i < groups->n && links != NULL; i++) {
        for (size_t k = 0; k < groups->v[i].n_spans; k++) {
            const struct hearth_span *span = &groups->v[i].spans[k];
            if (span->has_parent && span->parent_id != 0) {
                links[(*ret_n)++] =
                    (struct parent_link){(uint64_t)span->parent_id, (uint64_t)span->span_id};
            }
        }
    }

    /* Sort them. */
    if (links != NULL && *ret_n > 1) {
        qsort(links, *ret_n, sizeof links[0], compare_links);
    }

    return links;
}

static bool add_family_id(struct hearth_idmap *seen, struct hearth_span_family *family, uint64_t id)
{
    bool is_new = false;

    assert(family->ids != NULL);

    struct hearth_hash128 key = hearth_hash128(&id, sizeof id, hearth_hash_process_seed());

    if (hearth_idmap_intern(seen, key, 0, &is_new) == HEARTH_IDMAP_NONE) {
        return false;
    }

    if (is_new && id != 0) {
        family->ids[family->n++] = id;
    }

    return true;
}

/* Add the descendants, generation by generation. Each id is added once, so cycles of links end. */
static bool add_descendants(const struct parent_link *links, size_t n_links,
                            struct hearth_idmap *seen, struct hearth_span_family *family)
{
    for (size_t at = 0; at < family->n; at++) {
        uint64_t parent = family->ids[at];

        size_t low = 0, high = n_links;
        while (low < high) {
            size_t mid = (low + high) / 2;
            if (links[mid].parent < parent) {
                low = mid + 1;
            } else {
                high = mid;
            }
        }

        /* Add the children. */
        for (; low < n_links && links[low].parent == parent; low++) {
            if (!add_family_id(seen, family, links[low].id)) {
                return false;
            }
        }
    }

    return true;
}

enum hearth_status hearth_stored_family(const struct hearth_query *query, const uint64_t *span_ids,
                                        size_t n, struct hearth_span_family *ret,
                                        struct hearth_err *err)
{
    struct hearth_stored_groups own, traces;
    struct hearth_arena *arena = query->call.arena;
    size_t n_links;

    assert(query != NULL && ret != NULL);

    /* Read the traces of the spans. */
    HEARTH_TRY(read_groups_of_spans(query, span_ids, n, &own, err));
    HEARTH_TRY(read_trace_groups(query, &own, &traces, err));
    struct parent_link *links = make_parent_links(&traces, arena, &n_links);

    /* Reserve room for all descendants. */
    struct hearth_span_family family = {
        .ids = hearth_arena_array(arena, n + n_links, sizeof family.ids[0]),
        .missing = hearth_arena_array(arena, n, sizeof family.missing[0]),
        .is_cut = own.is_cut || traces.is_cut,
    };
    if (links == NULL || family.ids == NULL || family.missing == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    /* Begin with the spans themselves, and add their descendants. */
    struct hearth_idmap seen;
    hearth_idmap_init(&seen);
    bool has_memory = true;
    for (size_t i = 0; i < n && has_memory; i++) {
        if (!is_span_stored(&own, span_ids[i])) {
            family.missing[family.n_missing++] = span_ids[i];
        }
        has_memory = add_family_id(&seen, &family, span_ids[i]);
    }

    has_memory = has_memory && add_descendants(links, n_links, &seen, &family);
    hearth_idmap_release(&seen);
    if (!has_memory) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the spans below others");
    }

    /* Sort the ids. */
    if (family.n > 1) {
        qsort(family.ids, family.n, sizeof family.ids[0], compare_family_ids);
    }

    *ret = family;

    return HEARTH_OK;
}
