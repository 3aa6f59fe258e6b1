/*
 * listed_scan.c -- reads rows in pieces of whole minutes, and gathers those with one id.
 *
 * The rows of an upload are of one minute (model/profile_id.h) or, from older servers, of one time.
 * So a piece that begins and ends at whole minutes has them all. Pieces grow while they have few
 * rows, and are halved when they have too many. Empty ones grow to years, because a range may begin
 * at the epoch.
 */
#include "listed/listed_scan.h"

#include <assert.h>
#include <stdlib.h>

#define NS_PER_MIN  (INT64_C(60) * HEARTH_NS_PER_SEC)
#define LONGEST_NS  (24 * HEARTH_NS_PER_HOUR)
#define EMPTY_NS    (LONGEST_NS << 12) /* of a piece after empty ones: 11 years */
#define NOTES_BYTES ((size_t)64 << 10)

/* ---- rows of a piece ---- */

static void forget_listed_rows(void *context)
{
    struct listed_scan *scan = context;

    hearth_buf_reset(&scan->rows);
    scan->is_too_long = false;
}

/* The hit of a series; most rows have the one of the row before. */
static uint32_t find_listed_hit(struct listed_scan *scan, int32_t service_id, int32_t series_id)
{
    const struct hearth_selection *selection = &scan->selection;
    const struct hearth_series_hit *last = &selection->hits[scan->last_hit];
    if (last->series_id == series_id && last->service_id == service_id) {
        return scan->last_hit;
    }

    size_t low = 0, high = selection->n_hits;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        const struct hearth_series_hit *hit = &selection->hits[mid];
        if (hit->service_id != service_id ? hit->service_id < service_id
                                          : hit->series_id < series_id) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }

    if (low == selection->n_hits || selection->hits[low].series_id != series_id) {
        return HEARTH_IDMAP_NONE;
    }
    scan->last_hit = (uint32_t)low;

    return scan->last_hit;
}

static enum hearth_status take_listed_row(void *context, const struct hearth_read_total *total,
                                          struct hearth_err *err)
{
    struct listed_scan *scan = context;
    uint32_t hit = find_listed_hit(scan, total->service_id, total->series_id);
    if (hit == HEARTH_IDMAP_NONE) {
        return HEARTH_OK;
    }

    if (scan->rows.n / sizeof(struct listed_row) >= scan->max_rows) {
        scan->is_too_long = true;
        return HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE, "a piece of the list has too many rows");
    }

    const struct listed_row row = {
        .ts_ns = total->ts_ns,
        .duration_ns = total->duration_ns,
        .profile_no = total->profile_no,
        .total = total->total,
        .writer_id = total->writer_id,
        .hit = hit,
    };
    hearth_buf_append(&scan->rows, &row, sizeof row);

    return HEARTH_LIKELY(!hearth_buf_failed(&scan->rows))
               ? HEARTH_OK
               : HEARTH_FAIL(err, HEARTH_NO_MEMORY,
                             "the list of a minute needs more memory than max-query-memory-bytes: "
                             "add label matchers");
}

static int compare_i64(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int compare_listed_rows(const void *left, const void *right)
{
    const struct listed_row *a = left, *b = right;
    if (a->writer_id != b->writer_id) {
        return a->writer_id < b->writer_id ? -1 : 1;
    }

    return a->profile_no != b->profile_no ? compare_i64(a->profile_no, b->profile_no)
           : a->hit != b->hit             ? (a->hit < b->hit ? -1 : 1)
                                          : compare_i64(a->ts_ns, b->ts_ns);
}

int hearth_listed_place_compare(const struct hearth_listed_place *a,
                                const struct hearth_listed_place *b)
{
    if (a->key != b->key || a->ts_ns != b->ts_ns) {
        return a->key != b->key ? compare_i64(a->key, b->key) : compare_i64(a->ts_ns, b->ts_ns);
    }

    return a->id.writer_id != b->id.writer_id ? compare_i64(a->id.writer_id, b->id.writer_id)
                                              : compare_i64(a->id.profile_no, b->id.profile_no);
}

static int compare_listed_uploads(const void *left, const void *right)
{
    const struct listed_rows *a = left, *b = right;
    return hearth_listed_place_compare(&a->place, &b->place);
}

/* Gathers the rows that share an id; *ret_uploads are sorted by time, in `arena`. */
static enum hearth_status gather_uploads(struct listed_scan *scan, struct hearth_arena *arena,
                                         struct listed_rows **ret_uploads, size_t *ret_n,
                                         struct hearth_err *err)
{
    struct listed_row *rows = (struct listed_row *)(void *)scan->rows.p;
    size_t n_rows = scan->rows.n / sizeof rows[0], n = 0;
    struct listed_rows *uploads = hearth_arena_array(arena, n_rows, sizeof uploads[0]);
    if (uploads == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    if (n_rows > 1) {
        qsort(rows, n_rows, sizeof rows[0], compare_listed_rows);
    }

    for (size_t i = 0; i < n_rows; i++) {
        const struct listed_row *row = &rows[i];
        struct listed_rows *last = n > 0 ? &uploads[n - 1] : NULL;
        if (last == NULL || last->place.id.writer_id != row->writer_id ||
            last->place.id.profile_no != row->profile_no) {
            last = &uploads[n++];
            *last = (struct listed_rows){
                .rows = row,
                .place = {row->ts_ns, row->ts_ns, {row->writer_id, row->profile_no}},
            };
        }

        last->n++;
        last->place.ts_ns = row->ts_ns < last->place.ts_ns ? row->ts_ns : last->place.ts_ns;
        last->place.key = last->place.ts_ns;
        last->duration_ns =
            row->duration_ns > last->duration_ns ? row->duration_ns : last->duration_ns;
        if (__builtin_add_overflow(last->total, row->total, &last->total)) {
            last->total = row->total < 0 ? INT64_MIN : INT64_MAX;
        }
    }

    if (n > 1) {
        qsort(uploads, n, sizeof uploads[0], compare_listed_uploads);
    }
    *ret_uploads = uploads;
    *ret_n = n;

    return HEARTH_OK;
}

/* ---- pieces ---- */

static int64_t floor_to_minute(int64_t ns)
{
    int64_t rest = ns % NS_PER_MIN;
    rest += rest < 0 ? NS_PER_MIN : 0;

    return ns < INT64_MIN + rest ? INT64_MIN : ns - rest;
}

/* The piece of at most length_ns at one end of what is left, [from_ns, to_ns]. */
static void cut_listed_piece(struct hearth_selection *piece, int64_t from_ns, int64_t to_ns,
                             int64_t length_ns, bool newest)
{
    piece->from_ns = from_ns;
    piece->to_ns = to_ns;

    int64_t edge_ns;
    if (newest &&
        !__builtin_sub_overflow(floor_to_minute(to_ns), length_ns - NS_PER_MIN, &edge_ns)) {
        piece->from_ns = edge_ns > from_ns ? edge_ns : from_ns;
    } else if (!newest &&
               !__builtin_add_overflow(floor_to_minute(from_ns), length_ns - 1, &edge_ns)) {
        piece->to_ns = edge_ns < to_ns ? edge_ns : to_ns;
    }
}

/* The length of the next piece, after one with so many rows. */
static int64_t grow_listed_piece(const struct listed_scan *scan, size_t n_rows, int64_t length_ns)
{
    int64_t longest_ns = n_rows == 0 ? EMPTY_NS : LONGEST_NS;

    return n_rows < scan->few_rows && length_ns < longest_ns ? 2 * length_ns : length_ns;
}

/* A run of a scan. */
struct listed_run {
    struct listed_scan *scan;
    struct hearth_query query; /* the scan's, with notes of its own */
    bool newest;               /* the direction */
    listed_visit_fn *visit;
    void *context;
    bool stop; /* set by `visit` */
};

/* Reads the selection's piece and visits its uploads. */
static enum hearth_status visit_listed_piece(struct listed_run *run, struct hearth_err *err)
{
    struct listed_scan *scan = run->scan;
    const struct hearth_reader reader = {
        .reset = forget_listed_rows, .total = take_listed_row, .context = scan};
    HEARTH_TRY(hearth_selection_read(&run->query, &scan->selection, &reader, err));

    struct hearth_arena arena;
    struct listed_rows *uploads;
    size_t n;
    hearth_arena_init_like(&arena, run->query.call.arena);
    enum hearth_status status = gather_uploads(scan, &arena, &uploads, &n, err);
    for (size_t i = 0; status == HEARTH_OK && !run->stop && i < n; i++) {
        status = run->visit(run->context, &uploads[run->newest ? n - 1 - i : i], &run->stop, err);
    }
    hearth_arena_release(&arena);

    return status;
}

static enum hearth_status run_listed_pieces(struct listed_run *run, struct hearth_err *err)
{
    struct listed_scan *scan = run->scan;
    int64_t from_ns = scan->from_ns, to_ns = scan->to_ns, length_ns = NS_PER_MIN;
    struct hearth_selection *piece = &scan->selection;
    bool newest = run->newest;

    while (!run->stop && from_ns <= to_ns) {
        /* A minute has no limit but that of memory. */
        scan->max_rows = length_ns > NS_PER_MIN ? scan->many_rows : SIZE_MAX;
        cut_listed_piece(piece, from_ns, to_ns, length_ns, newest);
        enum hearth_status status = visit_listed_piece(run, err);
        if (scan->is_too_long) {
            length_ns = length_ns > LONGEST_NS ? LONGEST_NS : floor_to_minute(length_ns / 2);
            continue;
        }
        HEARTH_TRY(status);

        /* The rest, in pieces that fit its number of rows. */
        bool was_last = newest ? piece->from_ns == from_ns : piece->to_ns == to_ns;
        if (was_last) {
            break;
        }
        to_ns = newest ? piece->from_ns - 1 : to_ns;
        from_ns = newest ? from_ns : piece->to_ns + 1;
        length_ns = grow_listed_piece(scan, scan->rows.n / sizeof(struct listed_row), length_ns);
    }

    return HEARTH_OK;
}

enum hearth_status hearth_listed_scan_run(struct listed_scan *scan, bool newest,
                                          listed_visit_fn *visit, void *context,
                                          struct hearth_err *err)
{
    assert(scan != NULL && visit != NULL);

    if (scan->selection.n_hits == 0) {
        return HEARTH_OK;
    }

    /* Equal notes of the pieces are added once. */
    struct listed_run run = {
        .scan = scan, .query = *scan->query, .newest = newest, .visit = visit, .context = context};
    struct hearth_buf notes;
    hearth_buf_init(&notes, NOTES_BYTES);
    run.query.call.notes = run.query.call.notes == NULL ? NULL : &notes;
    enum hearth_status status = run_listed_pieces(&run, err);
    hearth_call_note_lines(&scan->query->call, hearth_buf_view(&notes));
    hearth_buf_release(&notes);

    return status;
}
