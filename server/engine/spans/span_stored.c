/*
 * span_stored.c -- spans as they were stored: by trace, by segment, by what the index says of their ids; and which are below
 * which.
 */
#include "spans/span_stored.h"

#include "hearth/codec/compress.h"
#include "hearth/store/store_span_index.h"

#include "select/span_places.h"

#include <stdlib.h>

/* ---- groups ---- */

static enum hearth_status unpack(const struct hearth_query *query, struct hearth_inflater *inflater,
                                 struct hearth_stored_group *group, struct hearth_err *err)
{
    struct hearth_arena *arena = query->call.arena;
    struct hearth_buf scratch;
    hearth_buf_init(&scratch, 0);
    scratch.budget = arena->budget;
    struct hearth_str plain;
    size_t max = arena->limit_bytes > 0 ? arena->limit_bytes : SIZE_MAX;
    enum hearth_status status =
        hearth_unpack(inflater, group->group.spans, max, &scratch, &plain, err);
    if (status == HEARTH_OK) {
        plain = hearth_arena_str(arena, plain); /* names borrow from it */
        status = plain.p == NULL ? HEARTH_FAIL_ARENA(err, arena) : HEARTH_OK;
    }
    hearth_buf_release(&scratch);
    return status == HEARTH_OK ? hearth_spans_decode(plain, group->group.start_ns, arena,
                                                     &group->spans, &group->n_spans, err)
                               : status;
}

static enum hearth_status unpack_all(const struct hearth_query *query,
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
    for (size_t i = 0; i < n && status == HEARTH_OK; i++) {
        n_spans += groups[i].n_spans > 0 ? (size_t)groups[i].n_spans : 0;
        if (n_spans > max_spans && i > 0) {
            ret->is_cut = true;
            break;
        }
        ret->v[ret->n].group = groups[i];
        status = unpack(query, inflater, &ret->v[ret->n++], err);
    }
    hearth_inflater_free(inflater);
    return status;
}

enum hearth_status hearth_stored_groups_read(const struct hearth_query *query,
                                             const struct hearth_span_query *asked,
                                             struct hearth_stored_groups *ret,
                                             struct hearth_err *err)
{
    struct hearth_limits limits;
    hearth_call_limits(&query->call, &limits);
    size_t max = hearth_lookup_limit(limits.max_lookup_spans), n;
    struct hearth_span_query limited = *asked;
    struct hearth_span_group *groups;
    limited.limit = max + 1;
    *ret = (struct hearth_stored_groups){0};
    HEARTH_TRY(
        hearth_store_span_groups(HEARTH_CALL_SCOPE(&query->call), &limited, &groups, &n, err));
    return n == 0 ? HEARTH_OK : unpack_all(query, groups, n, max, ret, err);
}

enum hearth_status hearth_stored_groups_of_spans(const struct hearth_query *query,
                                                 const uint64_t *span_ids, size_t n,
                                                 struct hearth_stored_groups *ret,
                                                 struct hearth_err *err)
{
    struct hearth_limits limits;
    hearth_call_limits(&query->call, &limits);
    struct hearth_arena *arena = query->call.arena;
    struct hearth_span_question *questions = hearth_arena_array(arena, n, sizeof questions[0]);
    struct hearth_association *found;
    size_t n_found;
    if (questions == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }
    for (size_t i = 0; i < n; i++) {
        questions[i] =
            (struct hearth_span_question){hearth_span_key(span_ids[i]), HEARTH_OF_STORED_SPAN};
    }
    bool is_cut;
    HEARTH_TRY(hearth_store_find_spans(
        &(const struct hearth_scope){.store = query->call.engine->store,
                                     .tenant = query->call.tenant,
                                     .cancel = query->call.cancel,
                                     .arena = arena},
        questions, n, INT64_MIN, INT64_MAX, hearth_lookup_limit(limits.max_lookup_spans), &found,
        &n_found, &is_cut, err));
    struct hearth_group_place *places = hearth_arena_array(arena, n_found, sizeof places[0]);
    if (places == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }
    for (size_t i = 0; i < n_found; i++) {
        places[i] = (struct hearth_group_place){found[i].service_id, found[i].ts_ns};
    }
    *ret = (struct hearth_stored_groups){0};
    if (n_found > 0) {
        const struct hearth_span_query asked = {.places = places, .n_places = n_found};
        HEARTH_TRY(hearth_stored_groups_read(query, &asked, ret, err));
    }
    ret->is_cut = ret->is_cut || is_cut;
    return HEARTH_OK;
}

enum hearth_status hearth_stored_trace_texts(struct hearth_str id, struct hearth_arena *arena,
                                             struct hearth_str ret[HEARTH_TRACE_TEXTS],
                                             size_t *ret_n, struct hearth_err *err)
{
    struct hearth_trace_id meanings[HEARTH_TRACE_ID_MEANINGS];
    size_t n_meanings = hearth_trace_id_meanings(id, meanings), n = 0;
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

static uint64_t id_of(const struct hearth_span_row *row, bool of_root)
{
    return of_root ? row->local_root_id : row->span_id;
}

/* NULL: none, or the arena is full. */
static const struct hearth_stored_span *stored_of(const struct hearth_stored_groups *groups,
                                                  const struct hearth_span_row *row, bool of_root,
                                                  struct hearth_arena *arena)
{
    const struct hearth_stored_group *in = NULL;
    const struct hearth_span *found = NULL;
    for (size_t i = 0; i < groups->n; i++) {
        const struct hearth_span *span = hearth_stored_span_in(&groups->v[i], id_of(row, of_root));
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

static enum hearth_status read_groups_of_rows(const struct hearth_query *query, bool of_roots,
                                              const struct hearth_span_row *rows, size_t n,
                                              struct hearth_stored_groups *ret,
                                              struct hearth_err *err)
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
    for (size_t i = 0; i < n; i++) {
        ids[i] = id_of(&rows[i], of_roots);
    }
    return hearth_stored_groups_of_spans(query, ids, n, ret, err);
}

enum hearth_status hearth_stored_spans_of_rows(const struct hearth_query *query, bool of_roots,
                                               struct hearth_span_row *rows, size_t n,
                                               struct hearth_err *err)
{
    struct hearth_stored_groups groups = {0};
    if (n == 0) {
        return HEARTH_OK;
    }
    enum hearth_status status = read_groups_of_rows(query, of_roots, rows, n, &groups, err);
    if (status != HEARTH_OK) {
        bool is_final = status == HEARTH_NO_MEMORY || status == HEARTH_CANCELLED ||
                        status == HEARTH_DEADLINE_EXCEEDED;
        if (!is_final) {
            hearth_call_note(&query->call, "how these spans are stored could not be read: %s",
                             err->msg);
        }
        return is_final ? status : HEARTH_OK;
    }
    for (size_t i = 0; i < n; i++) {
        rows[i].stored = stored_of(&groups, &rows[i], of_roots, query->call.arena);
    }
    if (groups.is_cut) {
        struct hearth_limits limits;
        hearth_call_limits(&query->call, &limits);
        hearth_call_note(&query->call,
                         "more spans are stored with those of these rows than one request looks "
                         "at: of the latest %lld is told what they are (max-lookup-spans)",
                         (long long)limits.max_lookup_spans);
    }
    return query->call.arena->refused ? HEARTH_FAIL_ARENA(err, query->call.arena) : HEARTH_OK;
}

/* ---- families ---- */

struct link {
    uint64_t parent, id;
};

static int by_parent(const void *left, const void *right)
{
    const struct link *a = left, *b = right;
    if (a->parent != b->parent) {
        return a->parent < b->parent ? -1 : 1;
    }
    return (a->id > b->id) - (a->id < b->id);
}

static int by_number(const void *left, const void *right)
{
    uint64_t a, b;
    memcpy(&a, left, sizeof a);
    memcpy(&b, right, sizeof b);
    return (a > b) - (a < b);
}

/* All groups of the traces of these. */
static enum hearth_status read_traces(const struct hearth_query *query,
                                      const struct hearth_stored_groups *own,
                                      struct hearth_stored_groups *ret, struct hearth_err *err)
{
    struct hearth_str *ids = hearth_arena_array(query->call.arena, own->n, sizeof ids[0]);
    size_t n = 0;
    if (ids == NULL) {
        return HEARTH_FAIL_ARENA(err, query->call.arena);
    }
    for (size_t i = 0; i < own->n; i++) {
        bool is_new = own->v[i].group.is_raw;
        for (size_t k = 0; k < n && is_new; k++) {
            is_new = !hearth_str_eq(ids[k], own->v[i].group.trace_id);
        }
        if (is_new) {
            ids[n++] = own->v[i].group.trace_id;
        }
    }
    const struct hearth_span_query asked = {.trace_ids = ids, .n_trace_ids = n, .is_raw = true};
    *ret = (struct hearth_stored_groups){0};
    return n == 0 ? HEARTH_OK : hearth_stored_groups_read(query, &asked, ret, err);
}

static bool is_stored(const struct hearth_stored_groups *groups, uint64_t span_id)
{
    for (size_t i = 0; i < groups->n; i++) {
        if (hearth_stored_span_in(&groups->v[i], span_id) != NULL) {
            return true;
        }
    }
    return false;
}

/* Links of all spans by parent. In arena; NULL: it is full. */
static struct link *make_links(const struct hearth_stored_groups *groups,
                               struct hearth_arena *arena, size_t *ret_n)
{
    size_t n = 0;
    for (size_t i = 0; i < groups->n; i++) {
        n += groups->v[i].n_spans;
    }
    struct link *links = hearth_arena_array(arena, n, sizeof links[0]);
    *ret_n = 0;
    for (size_t i = 0; i < groups->n && links != NULL; i++) {
        for (size_t k = 0; k < groups->v[i].n_spans; k++) {
            const struct hearth_span *span = &groups->v[i].spans[k];
            if (span->has_parent && span->parent_id != 0) {
                links[(*ret_n)++] =
                    (struct link){(uint64_t)span->parent_id, (uint64_t)span->span_id};
            }
        }
    }
    if (links != NULL && *ret_n > 1) {
        qsort(links, *ret_n, sizeof links[0], by_parent);
    }
    return links;
}

static bool add_id(struct hearth_idmap *seen, struct hearth_span_family *family, uint64_t id)
{
    bool is_new = false;
    struct hearth_hash128 key = hearth_hash128(&id, sizeof id, hearth_hash_process_seed());
    if (hearth_idmap_intern(seen, key, 0, &is_new) == HEARTH_IDMAP_NONE) {
        return false;
    }
    if (is_new && id != 0) {
        family->ids[family->n++] = id;
    }
    return true;
}

/* From generation to generation; ids that come again end it, whatever circles the links make. */
static bool descend(const struct link *links, size_t n_links, struct hearth_idmap *seen,
                    struct hearth_span_family *family)
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
        for (; low < n_links && links[low].parent == parent; low++) {
            if (!add_id(seen, family, links[low].id)) {
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
    HEARTH_TRY(hearth_stored_groups_of_spans(query, span_ids, n, &own, err));
    HEARTH_TRY(read_traces(query, &own, &traces, err));
    struct link *links = make_links(&traces, arena, &n_links);
    struct hearth_span_family family = {
        .ids = hearth_arena_array(arena, n + n_links, sizeof family.ids[0]),
        .missing = hearth_arena_array(arena, n, sizeof family.missing[0]),
        .is_cut = own.is_cut || traces.is_cut,
    };
    if (links == NULL || family.ids == NULL || family.missing == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }
    struct hearth_idmap seen;
    hearth_idmap_init(&seen);
    bool has_memory = true;
    for (size_t i = 0; i < n && has_memory; i++) {
        if (!is_stored(&own, span_ids[i])) {
            family.missing[family.n_missing++] = span_ids[i];
        }
        has_memory = add_id(&seen, &family, span_ids[i]);
    }
    has_memory = has_memory && descend(links, n_links, &seen, &family);
    hearth_idmap_release(&seen);
    if (!has_memory) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the spans below others");
    }
    if (family.n > 1) {
        qsort(family.ids, family.n, sizeof family.ids[0], by_number);
    }
    *ret = family;
    return HEARTH_OK;
}
