/*
 * label_index_lists.c -- the small containers of the label index: id tables, ordinal lists,
 * activity.
 *
 * Every growth is a separate _reserve, so that the fill functions can allocate all memory before
 * they change anything.
 */
#include "hearth/base/mem.h"

#include "label_index_internal.h"

#include <assert.h>

#define PAGE_IDS 4096u

bool id_table_reserve(struct id_table *table, int32_t id)
{
    assert(id >= 0);

    size_t page = (uint32_t)id / PAGE_IDS;
    size_t cap = table->cap;

    if (!hearth_mem_grow(&table->pages, &table->cap, page + 1, sizeof *table->pages)) {
        return false;
    }

    /* Pages up to this one, then the page itself. */
    table->n_bytes += (table->cap - cap) * sizeof *table->pages;
    for (; table->n_pages <= page; table->n_pages++) {
        table->pages[table->n_pages] = NULL;
    }

    if (table->pages[page] == NULL) {
        table->pages[page] = hearth_mem_calloc(PAGE_IDS, sizeof **table->pages);
        table->n_bytes += table->pages[page] == NULL ? 0 : PAGE_IDS * sizeof **table->pages;
    }

    return table->pages[page] != NULL;
}

void id_table_set(struct id_table *table, int32_t id, uint32_t ordinal)
{
    assert((uint32_t)id / PAGE_IDS < table->n_pages &&
           table->pages[(uint32_t)id / PAGE_IDS] != NULL);

    table->pages[(uint32_t)id / PAGE_IDS][(uint32_t)id % PAGE_IDS] = ordinal + 1;
}

uint32_t id_table_get(const struct id_table *table, int32_t id)
{
    size_t page = (uint32_t)id / PAGE_IDS;
    if (id < 0 || page >= table->n_pages || table->pages[page] == NULL) {
        return ORD_NONE;
    }
    return table->pages[page][(uint32_t)id % PAGE_IDS] - 1;
}

void id_table_release(struct id_table *table)
{
    for (size_t i = 0; i < table->n_pages; i++) {
        hearth_mem_free(table->pages[i]);
    }
    hearth_mem_free(table->pages);
}

bool ord_list_reserve(struct ord_list *list, size_t *n_bytes)
{
    uint32_t have = list->cap == 0 ? HEARTH_ARRAY_LEN(list->u.few) : list->cap;

    if (list->n < have) {
        return true;
    }

    if (have > UINT32_MAX / 2) {
        return false;
    }

    uint32_t cap = have < 8 ? 8 : have + have / 2;
    uint32_t *old = list->cap == 0 ? NULL : list->u.many;
    uint32_t *grown = hearth_mem_reallocarray(old, cap, sizeof *grown);
    if (grown == NULL) {
        return false;
    }

    if (list->cap == 0) {
        memcpy(grown, list->u.few, sizeof list->u.few);
    }

    *n_bytes += (cap - list->cap) * sizeof *grown;
    list->u.many = grown;
    list->cap = cap;

    return true;
}

void ord_list_push(struct ord_list *list, uint32_t ordinal)
{
    assert(list->n < (list->cap == 0 ? HEARTH_ARRAY_LEN(list->u.few) : list->cap));

    uint32_t *at = list->cap == 0 ? list->u.few : list->u.many;
    at[list->n++] = ordinal;
}

void ord_list_release(struct ord_list *list)
{
    if (list->cap != 0) {
        hearth_mem_free(list->u.many);
    }
}

static struct day_hours *get_days(struct activity *activity)
{
    return activity->cap == 0 ? &activity->u.one : activity->u.many;
}

/* The index of the first day at or after `day`. New days are usually appended. */
static uint32_t find_day(const struct day_hours *days, uint32_t n, int64_t day)
{
    uint32_t low = 0, high = n;

    if (n > 0 && days[n - 1].day < day) {
        return n;
    }

    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (days[mid].day < day) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }

    return low;
}

bool activity_reserve(struct activity *activity, int32_t day, size_t *n_bytes)
{
    uint32_t have = activity->cap == 0 ? 1 : activity->cap;
    uint32_t at = find_day(get_days(activity), activity->n, day);

    if (activity->n < have || (at < activity->n && get_days(activity)[at].day == day)) {
        return true;
    }

    if (have > UINT32_MAX / 2) {
        return false;
    }

    uint32_t cap = have < 4 ? 4 : have + have / 2;
    struct day_hours *old = activity->cap == 0 ? NULL : activity->u.many;
    struct day_hours *grown = hearth_mem_reallocarray(old, cap, sizeof *grown);
    if (grown == NULL) {
        return false;
    }

    if (activity->cap == 0) {
        grown[0] = activity->u.one;
    }

    *n_bytes += (cap - activity->cap) * sizeof *grown;
    activity->u.many = grown;
    activity->cap = cap;

    return true;
}

void activity_add(struct activity *activity, int32_t day, uint32_t hours)
{
    assert(hours != 0 && hours < 1u << 24);

    struct day_hours *days = get_days(activity);
    uint32_t at = find_day(days, activity->n, day);

    if (at < activity->n && days[at].day == day) {
        days[at].hours |= hours;
        return;
    }

    assert(activity->n < (activity->cap == 0 ? 1 : activity->cap));

    memmove(days + at + 1, days + at, (activity->n - at) * sizeof *days);
    days[at] = (struct day_hours){day, hours};
    activity->n++;
}

bool activity_meets(const struct activity *activity, int64_t from_hour, int64_t to_hour)
{
    const struct day_hours *days = activity->cap == 0 ? &activity->u.one : activity->u.many;
    int64_t from_day = floor_div(from_hour, 24), to_day = floor_div(to_hour, 24);

    for (uint32_t i = find_day(days, activity->n, from_day);
         i < activity->n && days[i].day <= to_day; i++) {
        uint32_t hours = days[i].hours;
        if (days[i].day == from_day) {
            hours &= UINT32_MAX << (from_hour - from_day * 24);
        }
        if (days[i].day == to_day) {
            hours &= (2u << (to_hour - to_day * 24)) - 1;
        }
        if (hours != 0) {
            return true;
        }
    }

    return false;
}

bool activity_first(const struct activity *activity, int64_t from_hour, int64_t *ret_hour)
{
    const struct day_hours *days = activity->cap == 0 ? &activity->u.one : activity->u.many;
    int64_t from_day = floor_div(from_hour, 24);

    for (uint32_t i = find_day(days, activity->n, from_day); i < activity->n; i++) {
        uint32_t hours = days[i].hours;
        if (days[i].day == from_day) {
            hours &= UINT32_MAX << (from_hour - from_day * 24);
        }
        if (hours != 0) {
            *ret_hour = (int64_t)days[i].day * 24 + __builtin_ctz(hours);
            return true;
        }
    }

    return false;
}

bool activity_last(const struct activity *activity, int64_t to_hour, int64_t *ret_hour)
{
    const struct day_hours *days = activity->cap == 0 ? &activity->u.one : activity->u.many;
    int64_t to_day = floor_div(to_hour, 24);

    for (uint32_t i = find_day(days, activity->n, to_day + 1); i-- > 0;) {
        uint32_t hours = days[i].hours;
        if (days[i].day == to_day) {
            hours &= (2u << (to_hour - to_day * 24)) - 1;
        }
        if (hours != 0) {
            *ret_hour = (int64_t)days[i].day * 24 + 31 - __builtin_clz(hours);
            return true;
        }
    }

    return false;
}

void activity_trim(struct activity *activity, int32_t hour)
{
    assert(activity != NULL);

    struct day_hours *days = get_days(activity);
    int64_t day = floor_div(hour, 24);
    uint32_t first = find_day(days, activity->n, day);

    /* Clear the earlier hours of the day itself, then remove the days before. */
    if (first < activity->n && days[first].day == day) {
        days[first].hours &= UINT32_MAX << (hour - day * 24);
        first += days[first].hours == 0 ? 1 : 0;
    }

    if (first > 0) {
        memmove(days, days + first, (activity->n - first) * sizeof *days);
        activity->n -= first;
    }
}

void activity_release(struct activity *activity)
{
    if (activity->cap != 0) {
        hearth_mem_free(activity->u.many);
    }
}
