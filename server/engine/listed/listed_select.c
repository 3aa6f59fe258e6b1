/*
 * listed_select.c -- the series of a filter: one hit of each, so that a scan visits a row once.
 */
#include "listed/listed_scan.h"

#include <assert.h>

/* Bounds of the rows of a piece. */
#define FEW_ROWS  ((size_t)16 << 10)
#define MANY_ROWS ((size_t)256 << 10)

/* Parses the filter. */
static enum hearth_status parse_listed_filter(const struct hearth_query *query,
                                              const struct hearth_listed_filter *filter,
                                              struct hearth_selector *selector,
                                              struct hearth_err *err)
{
    struct hearth_arena *arena = query->call.arena;
    struct hearth_str text = filter->selector.n > 0 ? filter->selector : HEARTH_STR("{}");

    enum hearth_status status = hearth_selector_parse(selector, text, arena, NULL, err);
    if (status != HEARTH_OK) {
        hearth_err_prefix(err, "selector");
        return status;
    }

    for (size_t i = 0; i < filter->n_labels; i++) {
        if (filter->labels[i].name.n == 0) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                               "labels: the name of label %zu is empty", i);
        }
        HEARTH_TRY(hearth_selector_add(selector, filter->labels[i].name, HEARTH_MATCH_EQ,
                                       filter->labels[i].value, arena, err));
    }

    if (filter->profile_type.n == 0) {
        return HEARTH_OK;
    }

    /* The canonical id of the type, as the label index has it. */
    struct hearth_profile_type type;
    HEARTH_TRY(hearth_profile_type_parse(filter->profile_type, &type, err));
    struct hearth_buf id;
    hearth_buf_init(&id, 0);
    hearth_profile_type_format(&type, &id);
    struct hearth_str copy = hearth_arena_str(arena, hearth_buf_view(&id));
    hearth_buf_release(&id);
    if (copy.p == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    return hearth_selector_add(selector, HEARTH_STR(HEARTH_LABEL_PROFILE_TYPE), HEARTH_MATCH_EQ,
                               copy, arena, err);
}

/* Keeps one hit of each series, so that a row is visited once, and lists their services. */
static enum hearth_status keep_first_hits(struct hearth_selection *selection,
                                          struct hearth_arena *arena, struct hearth_err *err)
{
    size_t n = selection->n_hits;
    selection->service_ids = hearth_arena_array(arena, n, sizeof selection->service_ids[0]);
    if (selection->service_ids == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    /* Hits are sorted by service and series. */
    selection->n_hits = selection->n_services = 0;
    for (size_t i = 0; i < n; i++) {
        const struct hearth_series_hit hit = selection->hits[i];
        const struct hearth_series_hit *last =
            selection->n_hits > 0 ? &selection->hits[selection->n_hits - 1] : NULL;
        if (last != NULL && last->series_id == hit.series_id) {
            continue;
        }
        if (last == NULL || last->service_id != hit.service_id) {
            selection->service_ids[selection->n_services++] = hit.service_id;
        }
        selection->hits[selection->n_hits++] = hit;
    }

    return HEARTH_OK;
}

static enum hearth_status select_listed_series(struct listed_scan *scan,
                                               const struct hearth_listed_filter *filter,
                                               struct hearth_err *err)
{
    const struct hearth_call *call = &scan->query->call;
    struct hearth_selector selector;
    const struct hearth_call_index *index;
    struct hearth_series_hits hits = {0};

    hearth_selector_init(&selector);
    enum hearth_status status = parse_listed_filter(scan->query, filter, &selector, err);
    status = status == HEARTH_OK ? hearth_call_index_lock(call, &index, err) : status;
    if (status == HEARTH_OK) {
        const struct hearth_index_filter chosen = {&selector, scan->from_ns, scan->to_ns};
        status = hearth_call_index_select(index, &chosen, call->arena, &hits, err);
        hearth_call_index_unlock(index);
    }
    hearth_selector_release(&selector);
    HEARTH_TRY(status);

    scan->selection = (struct hearth_selection){
        .hits = hits.v,
        .n_hits = hits.n,
        .totals = true,
        .rows = true,
        .detail = {.identity = true},
    };

    return keep_first_hits(&scan->selection, call->arena, err);
}

enum hearth_status hearth_listed_scan_init(struct listed_scan *scan,
                                           const struct hearth_query *query,
                                           const struct hearth_listed_filter *filter,
                                           struct hearth_err *err)
{
    assert(scan != NULL && query != NULL && filter != NULL);

    *scan = (struct listed_scan){.query = query, .few_rows = FEW_ROWS, .many_rows = MANY_ROWS};
    struct hearth_limits limits;
    hearth_call_limits(&query->call, &limits);
    int64_t limit = limits.max_query_memory_bytes;
    hearth_buf_init(&scan->rows, limit > 0 ? (size_t)limit : 0);
    scan->rows.budget = query->call.arena->budget;

    /* The range contains its whole last millisecond. */
    struct hearth_range range;
    HEARTH_TRY(hearth_query_range(query, &range, err));
    scan->from_ns = range.from_ns;
    if (__builtin_add_overflow(range.to_ns, HEARTH_NS_PER_MS - 1, &scan->to_ns)) {
        scan->to_ns = INT64_MAX;
    }

    HEARTH_TRY(select_listed_series(scan, filter, err));
    scan->selection.n_hits = range.empty ? 0 : scan->selection.n_hits;

    return HEARTH_OK;
}

static enum hearth_status explain_listed(const struct hearth_query *query, const void *filter,
                                         struct hearth_explanation *ret, struct hearth_err *err)
{
    struct listed_scan scan;
    enum hearth_status status = hearth_listed_scan_init(&scan, query, filter, err);

    if (status == HEARTH_OK) {
        hearth_call_note(&query->call, "a list by time ends when its page is full; lists in other "
                                       "orders and facets read all of this");
        scan.selection.from_ns = scan.from_ns;
        scan.selection.to_ns = scan.to_ns;
        status = hearth_selection_explain(query, &scan.selection, ret, err);
    }
    hearth_listed_scan_release(&scan);

    return status;
}

enum hearth_status hearth_listed_explain(const struct hearth_query *query,
                                         const struct hearth_listed_filter *filter,
                                         struct hearth_explanation *ret, struct hearth_err *err)
{
    assert(query != NULL && filter != NULL && ret != NULL);

    return hearth_explain_with_notes(query, explain_listed, filter, ret, err);
}

void hearth_listed_scan_release(struct listed_scan *scan)
{
    hearth_buf_release(&scan->rows);
}
