/* singles.c -- collects values of single profiles, and looks up their ids. */
#include "select/singles.h"

#include <assert.h>
#include <stdlib.h>

/*
 * Above this number, all rows of the selection are read instead: looking one up costs as much as
 * reading a few neighbouring rows.
 */
#define MAX_LOOKED_UP 100000

void hearth_singles_init(struct hearth_singles *singles, const struct hearth_query *query,
                         struct hearth_grouping *grouping)
{
    *singles = (struct hearth_singles){.query = query, .grouping = grouping};
    struct hearth_limits limits;

    hearth_call_limits(&query->call, &limits);
    int64_t limit = limits.max_query_memory_bytes;
    hearth_buf_init(&singles->rows, limit > 0 ? (size_t)limit : 0);
    singles->rows.budget = query->call.arena->budget;
}

void hearth_singles_release(struct hearth_singles *singles)
{
    hearth_buf_release(&singles->rows);
}

void hearth_singles_forget(struct hearth_singles *singles)
{
    hearth_buf_reset(&singles->rows);
}

enum hearth_status hearth_singles_add(struct hearth_singles *singles,
                                      const struct hearth_single *single, struct hearth_err *err)
{
    hearth_buf_append(&singles->rows, single, sizeof *single);
    return HEARTH_LIKELY(!hearth_buf_failed(&singles->rows))
               ? HEARTH_OK
               : HEARTH_FAIL(
                     err, HEARTH_NO_MEMORY,
                     "the values of single profiles need more memory than max-query-memory-bytes: "
                     "shorten the range or add label matchers");
}

static int compare_singles(const void *left, const void *right)
{
    const struct hearth_single *a = left, *b = right;
    if (a->group != b->group) {
        return a->group < b->group ? -1 : 1;
    }

    if (a->ts_ns != b->ts_ns) {
        return a->ts_ns < b->ts_ns ? -1 : 1;
    }

    if (a->writer_id != b->writer_id) {
        return a->writer_id < b->writer_id ? -1 : 1;
    }

    if (a->profile_no != b->profile_no) {
        return a->profile_no < b->profile_no ? -1 : 1;
    }

    if (a->hit != b->hit) {
        return a->hit < b->hit ? -1 : 1;
    }

    return (a->value > b->value) - (a->value < b->value);
}

void hearth_singles_sort(struct hearth_singles *singles)
{
    assert(singles != NULL);

    singles->v = (struct hearth_single *)(void *)singles->rows.p;
    assert(singles->rows.n % sizeof singles->v[0] == 0);
    singles->n = singles->rows.n / sizeof singles->v[0];
    if (singles->n > 1) {
        qsort(singles->v, singles->n, sizeof singles->v[0], compare_singles);
    }
}

static int32_t find_single_service(const struct hearth_singles *singles,
                                   const struct hearth_single *single)
{
    return singles->grouping->hits[single->hit].service_id;
}

static int64_t add_saturated(int64_t sum, int64_t value)

{
    return __builtin_add_overflow(sum, value, &sum) ? INT64_MAX : sum;
}

/*
 * Hits are sorted by service, so rows of one service are neighbours while no profile is identified.
 */
size_t hearth_singles_moment(const struct hearth_singles *singles, size_t i, int64_t *ret_sum)
{
    const struct hearth_single *first = &singles->v[i];
    size_t n = 0;
    int64_t sum = 0;

    while (i + n < singles->n && first[n].group == first->group && first[n].ts_ns == first->ts_ns &&
           find_single_service(singles, &first[n]) == find_single_service(singles, first)) {
        sum = add_saturated(sum, first[n++].value);
    }

    *ret_sum = sum;
    return n;
}

size_t hearth_singles_profile(const struct hearth_singles *singles, size_t i, int64_t *ret_sum)
{
    const struct hearth_single *first = &singles->v[i];
    size_t n = 1;
    int64_t sum = first->value;

    while (first->writer_id != 0 && i + n < singles->n && first[n].group == first->group &&
           first[n].ts_ns == first->ts_ns && first[n].writer_id == first->writer_id &&
           first[n].profile_no == first->profile_no) {
        sum = add_saturated(sum, first[n++].value);
    }

    *ret_sum = sum;
    return n;
}

/* ---- looking up ---- */

/*
 * Rows of one series and time are distinguished by their value; if the value is equal, too, it does
 * not matter which is which.
 */
static enum hearth_status set_single_identity(void *context, const struct hearth_read_total *total,
                                              struct hearth_err *err)
{
    struct hearth_singles *singles = context;

    (void)err;
    uint32_t hit =
        hearth_grouping_hit(singles->grouping, total->service_id, total->series_id, total->column);
    if (hit == HEARTH_IDMAP_NONE) {
        return HEARTH_OK;
    }

    uint32_t group = singles->grouping->of_hit[hit];

    /* Singles are sorted by group and time: find the first one, then one with the value. */
    size_t low = 0, high = singles->n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        const struct hearth_single *single = &singles->v[mid];
        if (single->group != group ? single->group < group : single->ts_ns < total->ts_ns) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }

    for (size_t i = low;
         i < singles->n && singles->v[i].group == group && singles->v[i].ts_ns == total->ts_ns;
         i++) {
        struct hearth_single *single = &singles->v[i];
        if (single->wanted && single->writer_id == 0 && single->hit == hit &&
            single->value == total->total) {
            single->writer_id = total->writer_id;
            single->profile_no = total->profile_no;
            break;
        }
    }

    return HEARTH_OK;
}

/* Resets the ids of wanted singles: a read begins again. */
static void reset_single_identities(void *context)
{
    struct hearth_singles *singles = context;
    for (size_t i = 0; i < singles->n; i++) {
        if (singles->v[i].wanted) {
            singles->v[i].writer_id = 0;
            singles->v[i].profile_no = 0;
        }
    }
}

/* Lists the distinct series and times of wanted singles, sorted as a read expects them. */
static enum hearth_status list_wanted_instants(const struct hearth_singles *singles,
                                               size_t n_wanted, struct hearth_read_detail *detail,
                                               struct hearth_err *err)
{
    struct hearth_arena *arena = singles->query->call.arena;
    struct hearth_read_instant *v = hearth_arena_array(arena, n_wanted, sizeof v[0]);
    if (v == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    size_t n = 0;
    for (size_t i = 0; i < singles->n; i++) {
        const struct hearth_single *single = &singles->v[i];
        if (single->wanted) {
            const struct hearth_series_hit *hit = &singles->grouping->hits[single->hit];
            v[n++] = (struct hearth_read_instant){hit->service_id, hit->series_id, single->ts_ns};
        }
    }

    /* Several singles may have the same series and time. */
    detail->some = true;
    detail->instants = v;
    detail->n_instants = hearth_read_instants_sort(v, n);

    return HEARTH_OK;
}

enum hearth_status hearth_singles_identify(struct hearth_singles *singles,
                                           const struct hearth_selection *selection,
                                           struct hearth_err *err)
{
    assert(singles != NULL && selection != NULL);

    size_t n_wanted = 0;
    int64_t from_ns = INT64_MAX, to_ns = INT64_MIN;

    for (size_t i = 0; i < singles->n; i++) {
        const struct hearth_single *single = &singles->v[i];
        if (single->wanted) {
            n_wanted++;
            from_ns = single->ts_ns < from_ns ? single->ts_ns : from_ns;
            to_ns = single->ts_ns > to_ns ? single->ts_ns : to_ns;
        }
    }

    if (n_wanted == 0) {
        return HEARTH_OK;
    }

    struct hearth_selection rows = *selection;
    rows.totals = rows.rows = true;
    rows.from_ns = from_ns;
    rows.to_ns = to_ns;
    rows.detail = (struct hearth_read_detail){.identity = true};
    if (n_wanted <= MAX_LOOKED_UP) {
        HEARTH_TRY(list_wanted_instants(singles, n_wanted, &rows.detail, err));
    }

    struct hearth_query quiet = *singles->query; /* its notes have been written */
    quiet.call.notes = NULL;
    const struct hearth_reader reader = {
        .reset = reset_single_identities, .total = set_single_identity, .context = singles};

    return hearth_selection_read(&quiet, &rows, &reader, err);
}

/* The order can differ only within a group and time. */
void hearth_singles_settle(struct hearth_singles *singles)
{
    assert(singles != NULL);

    for (size_t i = 0, n; i < singles->n; i += n) {
        struct hearth_single *first = &singles->v[i];
        bool wanted = false;
        for (n = 0;
             i + n < singles->n && first[n].group == first->group && first[n].ts_ns == first->ts_ns;
             n++) {
            wanted = wanted || first[n].wanted;
            first[n].wanted = false;
        }
        if (wanted && n > 1) {
            qsort(first, n, sizeof first[0], compare_singles);
        }
    }
}

enum hearth_status hearth_singles_gather(struct hearth_singles *singles,
                                         const struct hearth_selection *selection,
                                         struct hearth_err *err)
{
    assert(singles != NULL && selection != NULL);

    int64_t sum;

    hearth_singles_sort(singles);
    for (size_t i = 0, n; i < singles->n; i += n) {
        n = hearth_singles_moment(singles, i, &sum);
        for (size_t k = 0; k < n; k++) {
            singles->v[i + k].wanted = n > 1;
        }
    }

    HEARTH_TRY(hearth_singles_identify(singles, selection, err));

    hearth_singles_settle(singles);
    return HEARTH_OK;
}
