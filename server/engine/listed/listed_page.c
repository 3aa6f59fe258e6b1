/*
 * listed_page.c -- one page of the list.
 *
 * By time, the scan begins at the minute of the page before and ends when the page is full. In
 * other orders all uploads of the range are visited, and the first ones of the order are kept.
 */
#include "listed/listed_scan.h"

#include <assert.h>

#define NS_PER_MIN (INT64_C(60) * HEARTH_NS_PER_SEC)

/* An upload of the page. The array of hits is used again when another upload takes the slot. */
struct page_slot {
    struct hearth_listed_place place;
    int64_t duration_ns, total;
    uint32_t *hits;
    size_t n_hits, cap_hits;
};

struct page_fill {
    struct listed_scan scan;
    const struct hearth_listed_page *page;
    struct page_slot *slots; /* [page->limit + 1], in the order of the page */
    size_t n;
};

/* True if a is before b on a page. */
static bool is_listed_before(const struct hearth_listed_page *page,
                             const struct hearth_listed_place *a,
                             const struct hearth_listed_place *b)
{
    int order = hearth_listed_place_compare(a, b);

    return page->ascending ? order < 0 : order > 0;
}

/* Copies the distinct hits of an upload, whose rows are in the order of their hits. */
static enum hearth_status fill_page_slot(struct page_fill *fill, const struct listed_rows *upload,
                                         const struct hearth_listed_place *place,
                                         struct page_slot *slot, struct hearth_err *err)
{
    struct hearth_arena *arena = fill->scan.query->call.arena;
    if (slot->cap_hits < upload->n) {
        slot->cap_hits = upload->n;
        slot->hits = hearth_arena_array(arena, slot->cap_hits, sizeof slot->hits[0]);
        if (slot->hits == NULL) {
            return HEARTH_FAIL_ARENA(err, arena);
        }
    }

    slot->place = *place;
    slot->duration_ns = upload->duration_ns;
    slot->total = upload->total;
    slot->n_hits = 0;
    for (size_t i = 0; i < upload->n; i++) {
        uint32_t hit = upload->rows[i].hit;
        if (slot->n_hits == 0 || slot->hits[slot->n_hits - 1] != hit) {
            slot->hits[slot->n_hits++] = hit;
        }
    }

    return HEARTH_OK;
}

/* Keeps an upload if it belongs to the page, or is the one that shows that others follow. */
static enum hearth_status take_page_upload(void *context, const struct listed_rows *upload,
                                           bool *ret_stop, struct hearth_err *err)
{
    struct page_fill *fill = context;
    const struct hearth_listed_page *page = fill->page;
    struct hearth_listed_place place = upload->place;
    size_t cap = page->limit + 1;

    place.key = page->order == HEARTH_LISTED_BY_DURATION ? upload->duration_ns
                : page->order == HEARTH_LISTED_BY_TOTAL  ? upload->total
                                                         : place.ts_ns;
    if (page->has_after && !is_listed_before(page, &page->after, &place)) {
        return HEARTH_OK;
    }

    /* Its position among the uploads so far. */
    size_t low = 0, high = fill->n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (is_listed_before(page, &fill->slots[mid].place, &place)) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    if (low == cap) {
        return HEARTH_OK;
    }

    /* The last slot is free, or its upload is pushed off the page. */
    struct page_slot slot = fill->slots[fill->n < cap ? fill->n : cap - 1];
    fill->n += fill->n < cap;
    memmove(fill->slots + low + 1, fill->slots + low, (fill->n - 1 - low) * sizeof slot);
    HEARTH_TRY(fill_page_slot(fill, upload, &place, &slot, err));
    fill->slots[low] = slot;
    *ret_stop = page->order == HEARTH_LISTED_BY_TIME && fill->n == cap;

    return HEARTH_OK;
}

/* By time, uploads before the minute of the page before need not be read again. */
static void skip_earlier_pages(struct page_fill *fill)
{
    const struct hearth_listed_page *page = fill->page;
    if (!page->has_after || page->order != HEARTH_LISTED_BY_TIME) {
        return;
    }

    int64_t rest = page->after.ts_ns % NS_PER_MIN, begin_ns, end_ns;
    rest += rest < 0 ? NS_PER_MIN : 0;
    if (__builtin_sub_overflow(page->after.ts_ns, rest, &begin_ns) ||
        __builtin_add_overflow(begin_ns, NS_PER_MIN - 1, &end_ns)) {
        return;
    }

    if (page->ascending) {
        fill->scan.from_ns = begin_ns > fill->scan.from_ns ? begin_ns : fill->scan.from_ns;
    } else {
        fill->scan.to_ns = end_ns < fill->scan.to_ns ? end_ns : fill->scan.to_ns;
    }
}

/* Describes the uploads of the page. */
static enum hearth_status write_page(const struct page_fill *fill, size_t n,
                                     struct hearth_listed_upload **ret, struct hearth_err *err)
{
    const struct hearth_call *call = &fill->scan.query->call;
    struct hearth_listed_upload *uploads = hearth_arena_calloc(call->arena, n, sizeof uploads[0]);
    if (uploads == NULL) {
        return HEARTH_FAIL_ARENA(err, call->arena);
    }

    const struct hearth_call_index *index;
    HEARTH_TRY(hearth_call_index_lock(call, &index, err));
    enum hearth_status status = HEARTH_OK;
    for (size_t i = 0; status == HEARTH_OK && i < n; i++) {
        const struct page_slot *slot = &fill->slots[i];
        uploads[i].id = slot->place.id;
        uploads[i].ts_ns = slot->place.ts_ns;
        uploads[i].duration_ns = slot->duration_ns;
        uploads[i].total = slot->total;
        status = hearth_listed_describe(
            &fill->scan, index, (struct listed_hits){slot->hits, slot->n_hits}, &uploads[i], err);
    }
    hearth_call_index_unlock(index);
    *ret = uploads;

    return status;
}

static enum hearth_status check_page(const struct hearth_listed_filter *filter,
                                     const struct hearth_listed_page *page, struct hearth_err *err)
{
    if (page->limit == 0 || page->limit > HEARTH_LISTED_MAX_PAGE) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "a page has 1 to %d profiles, not %zu",
                           HEARTH_LISTED_MAX_PAGE, page->limit);
    }

    if (page->order == HEARTH_LISTED_BY_TOTAL && filter->profile_type.n == 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "a list by total needs profile_type: totals of different types cannot "
                           "be compared");
    }

    return HEARTH_OK;
}

enum hearth_status hearth_listed_uploads(const struct hearth_query *query,
                                         const struct hearth_listed_filter *filter,
                                         const struct hearth_listed_page *page,
                                         struct hearth_listed_uploads *ret, struct hearth_err *err)
{
    assert(query != NULL && filter != NULL && page != NULL && ret != NULL);

    HEARTH_TRY(check_page(filter, page, err));
    struct hearth_arena *arena = query->call.arena;
    struct page_fill fill = {.page = page};
    fill.slots = hearth_arena_calloc(arena, page->limit + 1, sizeof fill.slots[0]);
    if (fill.slots == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    /* Fill the slots. */
    enum hearth_status status = hearth_listed_scan_init(&fill.scan, query, filter, err);
    if (status == HEARTH_OK) {
        bool newest = page->order != HEARTH_LISTED_BY_TIME || !page->ascending;
        skip_earlier_pages(&fill);
        status = hearth_listed_scan_run(&fill.scan, newest, take_page_upload, &fill, err);
    }

    /* Describe those of the page. */
    struct hearth_listed_upload *uploads = NULL;
    size_t n = fill.n < page->limit ? fill.n : page->limit;
    if (status == HEARTH_OK) {
        /* Without a profile type, a row's total is that of any of its columns. */
        for (size_t i = 0; filter->profile_type.n == 0 && i < n; i++) {
            fill.slots[i].total = 0;
        }
        status = write_page(&fill, n, &uploads, err);
    }
    hearth_listed_scan_release(&fill.scan);
    HEARTH_TRY(status);

    *ret = (struct hearth_listed_uploads){.v = uploads, .n = n, .more = fill.n > n};
    if (n > 0) {
        ret->last = fill.slots[n - 1].place;
    }

    return HEARTH_OK;
}
