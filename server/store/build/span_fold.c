/*
 * span_fold.c -- moves fresh associations into the span index, and merges its parts
 * (docs/decisions/0016-span-index.md).
 *
 * Fold.  Associations that commits have stored in span_fresh are read, sorted by key for each
 * tenant and day, divided into rows by the leading bits of their keys, and written in the
 * transaction that deletes the fresh rows. Lookups read fresh rows, too, so a delay does no harm:
 * the builder waits until there are enough for a part, at most some minutes.
 *
 * Merge. When enough parts of one size have gathered, their rows are merged bucket by bucket into
 * rows of the same or a finer division, some buckets in a transaction. Keys are spread evenly, so
 * the number of rows of bucket 0 stands for all buckets. Bucket 0 is merged last, so an interrupted
 * merge is found again.
 *
 * Each row is moved in one transaction, so a lookup, which reads one snapshot, sees each
 * association once; a merge makes one of repeated associations.
 */
#include "hearth/base/clock.h"
#include "hearth/base/metrics.h"

#include "build/builder.h"
#include "build/span_work.h"
#include "pg/pg.h"
#include "pg/store_state.h"
#include "session/partitions.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define STEP_NS          HEARTH_NS_PER_SEC
#define MAX_FOLD         262144 /* associations in a transaction, plus the rest of the last row */
#define MAX_FOLD_ROWS    16384
#define WORTH_A_PART     131072 /* fresh associations that are folded at once */
#define ROUNDS_OF_PAUSE  90     /* after which fewer are folded, too */
#define ROW_ASSOCIATIONS 640u   /* of a row, at most; only ids in very many profiles have more */
#define LARGE_ROW        32768u /* longest row; rows of this length are not merged again */
#define FAN_IN           16     /* parts of one size that are merged */
#define MAX_MERGE        200000 /* associations that a transaction should merge */
#define MOST_MERGED      (2 * MAX_MERGE) /* associations in a transaction of a merge */
#define MOST_PARTS       64              /* parts merged of a bucket with more than MOST_MERGED */
#define WORTH_VACUUM     100000          /* associations moved by merges of a day */
#define PIECE_BITS       10 /* low bits of part: the piece of a bucket of more than LARGE_ROW */
#define N_INDEX_COLUMNS  7

/* ---- rows ---- */

/* Writes one part of the index. */
struct writer {
    struct hearth_builder *builder;
    struct hearth_buf copy;   /* rows of COPY */
    struct hearth_buf packed; /* scratch of one row */
    int64_t part;             /* number of the part, in its high bits */
};

/* Starts a part, with a new number. The caller releases the writer, even after a failure. */
static enum hearth_status begin_part(struct writer *writer, struct hearth_builder *builder,
                                     struct hearth_err *err)
{
    *writer = (struct writer){.builder = builder};
    hearth_buf_init(&writer->copy, 0);
    hearth_buf_init(&writer->packed, 0);

    PGresult *result = NULL;
    HEARTH_TRY(hearth_pg_exec(&builder->pg, "SELECT nextval('hearth_data.span_index_part')", NULL,
                              NULL, &result, NULL, err));
    writer->part = hearth_pg_i64(result, 0, 0) << PIECE_BITS;
    PQclear(result);

    return HEARTH_OK;
}

/* Sorted associations of a tenant and day, for rows of one size. */
struct sorted_associations {
    const struct hearth_association *all; /* [n] */
    size_t n;
    const struct hearth_span_merge *at; /* tenant and day */
    unsigned bits;                      /* size of the rows */
};

/* Appends one row of COPY, of n associations from `from` on. A failure is kept in writer->copy. */
static void put_index_row(struct writer *writer, const struct sorted_associations *sorted,
                          size_t from, size_t n, size_t piece)
{
    assert(n > 0 && n <= LARGE_ROW && from + n <= sorted->n);
    assert(sorted->bits <= HEARTH_SPAN_BUCKET_BITS);

    /* Pack the associations. */
    const struct hearth_association *first = &sorted->all[from];
    struct hearth_buf *out = &writer->copy;
    unsigned bits = sorted->bits;
    hearth_buf_reset(&writer->packed);
    hearth_associations_pack(first, n, sorted->at->day, bits, &writer->packed);

    /* Append the row. */
    hearth_copy_row(out, N_INDEX_COLUMNS);
    hearth_copy_i32(out, sorted->at->tenant_id);
    hearth_copy_i32(out, sorted->at->day);
    hearth_buf_append(out, (const char[]){0, 0, 0, 2, 0, (char)bits}, 6); /* an int2 */
    hearth_copy_i32(out, (int32_t)hearth_span_bucket(first->key, bits));
    hearth_copy_i64(out, writer->part + (int64_t)piece);
    hearth_copy_i32(out, (int32_t)n);
    hearth_copy_bytes(out, hearth_buf_view(&writer->packed));
    out->failed = out->failed || writer->packed.failed;
}

/* Appends the rows of the associations, one or more for each bucket. */
static void put_index_rows(struct writer *writer, const struct sorted_associations *sorted)
{
    const struct hearth_association *all = sorted->all;
    unsigned bits = sorted->bits;
    size_t piece = 0, n = sorted->n;

    for (size_t from = 0, to; from < n; from = to) {
        /* The row ends with its bucket, or after LARGE_ROW associations. */
        uint32_t bucket = hearth_span_bucket(all[from].key, bits);
        for (to = from + 1;
             to < n && to - from < LARGE_ROW && hearth_span_bucket(all[to].key, bits) == bucket;) {
            to++;
        }

        put_index_row(writer, sorted, from, to - from, piece);

        /* A further row of the same bucket is told apart by its piece. */
        bool continues = to < n && hearth_span_bucket(all[to].key, bits) == bucket;
        piece = continues ? piece + 1 : 0;
    }
}

/* Sends the appended rows. */
static enum hearth_status send_index_rows(struct writer *writer, struct hearth_err *err)
{
    if (hearth_buf_failed(&writer->copy)) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for a part of the span index");
    }

    return hearth_pg_copy(&writer->builder->pg,
                          "COPY hearth_data.span_index (tenant_id, day, bits, bucket, part,"
                          " n_associations, associations) FROM STDIN (FORMAT binary)",
                          hearth_buf_view(&writer->copy), NULL, err);
}

static void release_part_writer(struct writer *writer)
{
    hearth_buf_release(&writer->copy);
    hearth_buf_release(&writer->packed);
}

/* The least number of bits, not below `bits`, with at most ROW_ASSOCIATIONS in a row. */
static unsigned choose_bits(size_t n, unsigned bits)
{
    for (; n > ROW_ASSOCIATIONS && bits < HEARTH_SPAN_BUCKET_BITS; bits += HEARTH_SPAN_SIZE_BITS) {
        n >>= HEARTH_SPAN_SIZE_BITS;
    }

    return bits;
}

/* Frees the space of moved rows at once, so that it is used again before autovacuum runs. */
static enum hearth_status vacuum_table(struct hearth_builder *builder, const char *table,
                                       struct hearth_err *err)
{
    char sql[128];
    (void)snprintf(sql, sizeof sql, "VACUUM (TRUNCATE false, SKIP_LOCKED) %s", table);

    return hearth_pg_exec(&builder->pg, sql, NULL, NULL, NULL, NULL, err);
}

/* ---- fold ---- */

/* The associations of a tenant and day in one transaction. */
struct group {
    struct hearth_span_merge at;
    size_t n, from; /* n associations, in fold->all from here */
};

/* The state of one fold. */
struct fold {
    struct hearth_builder *builder;
    struct hearth_arena arena;
    PGresult *rows; /* fresh_no, service_id, tenant_id or NULL, n_associations, associations */
    struct hearth_association *all, *scratch; /* [cap] each */
    uint32_t *group_of; /* [n]: index of each one's group, before they are sorted */
    size_t n, cap;
    struct group *groups;
    size_t n_groups, cap_groups;
};

/*
 * The index of a group, which is made if it is new; SIZE_MAX: no memory. A transaction has few
 * groups, so they are searched in order, beginning with `hint`, the last one found.
 */
static size_t find_group(struct fold *fold, int32_t tenant_id, int32_t day, size_t hint)
{
    assert(fold->n_groups <= fold->cap_groups);

    /* Find it. */
    size_t i = hint < fold->n_groups ? hint : 0;
    for (size_t tried = 0; tried < fold->n_groups; tried++, i = (i + 1) % fold->n_groups) {
        if (fold->groups[i].at.tenant_id == tenant_id && fold->groups[i].at.day == day) {
            return i;
        }
    }

    /* Make room for a new group. */
    if (fold->n_groups == fold->cap_groups) {
        size_t cap = fold->cap_groups == 0 ? 16 : 2 * fold->cap_groups;
        struct group *groups = hearth_arena_array(&fold->arena, cap, sizeof *groups);
        if (groups == NULL) {
            return SIZE_MAX;
        }

        if (fold->n_groups > 0) {
            memcpy(groups, fold->groups, fold->n_groups * sizeof *groups);
        }

        fold->groups = groups;
        fold->cap_groups = cap;
    }

    fold->groups[fold->n_groups] = (struct group){.at = {.tenant_id = tenant_id, .day = day}};

    return fold->n_groups++;
}

/* Adds the associations of a fresh row to their groups. */
static enum hearth_status take_fresh_row(struct fold *fold, int row, struct hearth_arena *scratch,
                                         struct hearth_err *err)
{
    if (hearth_pg_is_null(fold->rows, row, 2)) {
        return HEARTH_OK; /* the service was deleted: its profiles are gone */
    }

    int32_t tenant_id = hearth_pg_i32(fold->rows, row, 2);
    struct hearth_association *all;
    size_t n, group = 0;

    /* Read them. */
    hearth_arena_reset(scratch);
    HEARTH_TRY(hearth_associations_read_fresh(hearth_pg_str(fold->rows, row, 4),
                                              hearth_pg_i32(fold->rows, row, 1), scratch, &all, &n,
                                              err));
    if (n != (size_t)hearth_pg_i32(fold->rows, row, 3)) {
        return HEARTH_FAIL(err, HEARTH_CORRUPT,
                           "a row of span_fresh has another number of associations than it says");
    }

    /* Assign each to its group. */
    assert(fold->n + n <= fold->cap);
    for (size_t i = 0; i < n; i++) {
        group = find_group(fold, tenant_id, hearth_day_of(all[i].ts_ns), group);
        if (group == SIZE_MAX) {
            return HEARTH_FAIL_ARENA(err, &fold->arena);
        }

        fold->groups[group].n++;
        fold->group_of[fold->n] = (uint32_t)group;
        fold->all[fold->n++] = all[i];
    }

    return HEARTH_OK;
}

/* Allocates room for the associations of all rows. */
static bool allocate_fold(struct fold *fold)
{
    for (int i = 0; i < PQntuples(fold->rows); i++) {
        fold->cap += (size_t)hearth_pg_i32(fold->rows, i, 3);
    }

    fold->all = hearth_arena_array(&fold->arena, fold->cap, sizeof *fold->all);
    fold->scratch = hearth_arena_array(&fold->arena, fold->cap, sizeof *fold->scratch);
    fold->group_of = hearth_arena_array(&fold->arena, fold->cap, sizeof *fold->group_of);

    return fold->all != NULL && fold->scratch != NULL && fold->group_of != NULL;
}

/*
 * Reads the next fresh rows. Only the builder deletes rows, so they may be read before the
 * transaction. The statement returns the oldest rows, up to the one with which their associations
 * reach MAX_FOLD: the first row in any case.
 */
static enum hearth_status read_fresh_rows(struct fold *fold, struct hearth_err *err)
{
    char sql[640];
    (void)snprintf(
        sql, sizeof sql,
        "SELECT m.fresh_no, m.service_id, s.tenant_id, m.n_associations, m.associations FROM "
        "(SELECT l.*,"
        " sum(n_associations) OVER (ORDER BY fresh_no ROWS UNBOUNDED PRECEDING) - "
        "n_associations AS"
        " before FROM (SELECT fresh_no, service_id, n_associations, associations FROM"
        " hearth_data.span_fresh ORDER BY fresh_no LIMIT %d) l) m LEFT JOIN "
        "hearth_data.service s"
        " USING (service_id) WHERE before < %d",
        MAX_FOLD_ROWS, MAX_FOLD);

    HEARTH_TRY(hearth_pg_exec(&fold->builder->pg, sql, NULL, NULL, &fold->rows, NULL, err));
    if (!allocate_fold(fold)) {
        return HEARTH_FAIL_ARENA(err, &fold->arena);
    }

    struct hearth_arena scratch;
    hearth_arena_init(&scratch, 0);
    enum hearth_status status = HEARTH_OK;
    for (int i = 0; i < PQntuples(fold->rows) && status == HEARTH_OK; i++) {
        status = take_fresh_row(fold, i, &scratch, err);
    }

    hearth_arena_release(&scratch);

    return status;
}

/*
 * Moves the associations of each group together in fold->all, and sorts them by key. There is
 * usually one group.
 */
static enum hearth_status sort_groups(struct fold *fold, struct hearth_err *err)
{
    size_t *next = hearth_arena_array(&fold->arena, fold->n_groups, sizeof *next);
    if (next == NULL) {
        return HEARTH_FAIL_ARENA(err, &fold->arena);
    }

    assert(fold->n <= fold->cap);

    /* Find the place of each group. */
    size_t at = 0;
    for (size_t g = 0; g < fold->n_groups; g++) {
        fold->groups[g].from = next[g] = at;
        at += fold->groups[g].n;
    }

    assert(at == fold->n);

    /* Move the associations there; a single group is in place. */
    if (fold->n_groups > 1) {
        struct hearth_association *grouped = fold->scratch;
        for (size_t i = 0; i < fold->n; i++) {
            grouped[next[fold->group_of[i]]++] = fold->all[i];
        }

        fold->scratch = fold->all;
        fold->all = grouped;
    }

    /* Sort each group. */
    for (size_t g = 0; g < fold->n_groups; g++) {
        struct group *group = &fold->groups[g];
        group->n = hearth_associations_sort(fold->all + group->from, fold->scratch, group->n);
    }

    return HEARTH_OK;
}

/* Deletes the fresh rows that were read; all must still be there. */
static enum hearth_status delete_fresh_rows(struct fold *fold, struct hearth_err *err)
{
    int n = PQntuples(fold->rows);
    int64_t *numbers = hearth_arena_array(&fold->arena, (size_t)n, sizeof *numbers);
    if (numbers == NULL) {
        return HEARTH_FAIL_ARENA(err, &fold->arena);
    }

    for (int i = 0; i < n; i++) {
        numbers[i] = hearth_pg_i64(fold->rows, i, 0);
    }

    struct hearth_pg_params params;
    hearth_pg_params_init(&params, &fold->arena);
    hearth_pg_param_i64_array(&params, numbers, (size_t)n);
    PGresult *result = NULL;
    HEARTH_TRY(hearth_pg_exec(&fold->builder->pg,
                              "WITH d AS (DELETE FROM hearth_data.span_fresh WHERE fresh_no = ANY"
                              " ($1) RETURNING fresh_no) SELECT count(*)::int4 FROM d",
                              &params, NULL, &result, NULL, err));

    int32_t n_deleted = hearth_pg_i32(result, 0, 0);
    PQclear(result);
    if (n_deleted != n) {
        return HEARTH_FAIL(err, HEARTH_ABORTED,
                           "%d of %d rows of span_fresh were deleted by another program",
                           n - n_deleted, n);
    }

    return HEARTH_OK;
}

/*
 * Ensures the leaves of all days of the fold or, if `forget`, drops them from the cache of leaves.
 */
static enum hearth_status ensure_group_days(const struct fold *fold, bool forget,
                                            struct hearth_err *err)
{
    struct hearth_builder *builder = fold->builder;
    for (size_t g = 0; g < fold->n_groups; g++) {
        if (forget) {
            hearth_partitions_forget(builder->store, fold->groups[g].at.day);
        } else {
            HEARTH_TRY(hearth_partitions_ensure(
                builder->store, &builder->pg, HEARTH_LEAF_SPAN_INDEX, fold->groups[g].at.day, err));
        }
    }

    return HEARTH_OK;
}

/* Moves the associations from span_fresh into the index, and commits. */
static enum hearth_status fold_fresh_in_transaction(struct fold *fold, struct hearth_err *err)
{
    HEARTH_TRY(delete_fresh_rows(fold, err));

    struct writer writer;
    enum hearth_status status = begin_part(&writer, fold->builder, err);
    if (status == HEARTH_OK) {
        for (size_t g = 0; g < fold->n_groups; g++) {
            const struct group *group = &fold->groups[g];
            struct sorted_associations sorted = {
                .all = fold->all + group->from,
                .n = group->n,
                .at = &group->at,
                .bits = choose_bits(group->n, 0),
            };
            put_index_rows(&writer, &sorted);
        }

        status = send_index_rows(&writer, err);
    }

    release_part_writer(&writer);
    HEARTH_TRY(status);

    return hearth_builder_commit(fold->builder, err);
}

/*
 * Notes that parts of this tenant and day may have gathered. If the list is full, the day is not
 * noted until its next fold.
 */
static void note_merge(struct hearth_builder *builder, const struct hearth_span_merge *at)
{
    assert(builder->n_merges <= HEARTH_ARRAY_LEN(builder->merges));

    for (size_t i = 0; i < builder->n_merges; i++) {
        if (builder->merges[i].tenant_id == at->tenant_id && builder->merges[i].day == at->day) {
            return;
        }
    }

    if (builder->n_merges < HEARTH_ARRAY_LEN(builder->merges)) {
        builder->merges[builder->n_merges++] = *at;
    }
}

/* Folds the next fresh rows, if any. On failure, the caller rolls back. */
static enum hearth_status fold_fresh(struct fold *fold, struct hearth_err *err)
{
    HEARTH_TRY(read_fresh_rows(fold, err));
    if (PQntuples(fold->rows) == 0) {
        return HEARTH_OK;
    }

    /* Prepare outside the transaction, then move the rows in it. */
    HEARTH_TRY(sort_groups(fold, err));
    HEARTH_TRY(ensure_group_days(fold, false, err));
    HEARTH_TRY(hearth_builder_begin(fold->builder, err));
    HEARTH_TRY(fold_fresh_in_transaction(fold, err));

    /* Parts of these days may have gathered now. */
    for (size_t g = 0; g < fold->n_groups; g++) {
        note_merge(fold->builder, &fold->groups[g].at);
    }

    return HEARTH_OK;
}

/* Folds once. *ret_more: there may be more fresh rows than one transaction takes. */
static enum hearth_status fold_fresh_rows(struct hearth_builder *builder, bool *ret_more,
                                          struct hearth_err *err)
{
    struct fold fold = {.builder = builder};
    hearth_arena_init(&fold.arena, 0);

    enum hearth_status status = fold_fresh(&fold, err);
    if (status == HEARTH_OK) {
        hearth_metric_add(HEARTH_M_SPAN_FOLDED, (int64_t)fold.n);
        *ret_more = fold.cap >= MAX_FOLD || PQntuples(fold.rows) >= MAX_FOLD_ROWS;
    } else {
        hearth_builder_rollback(builder);
        (void)ensure_group_days(&fold, true, NULL);
    }

    PQclear(fold.rows);
    hearth_arena_release(&fold.arena);

    return status;
}

/* ---- merge ---- */

/* The state of one transaction of a merge. */
struct merge {
    struct hearth_builder *builder;
    struct hearth_span_merge *at;
    struct hearth_arena arena, row_arena;
    struct writer writer;
    PGresult *rows;       /* bucket, n_associations, associations; in any order */
    struct place *places; /* of rows, sorted by bucket */
    struct hearth_association *all, *scratch; /* room for the largest bucket */
    size_t n;                                 /* associations read so far */
};

/* Where a row of a bucket is in merge->rows. */
struct place {
    uint32_t bucket;
    int row;
};

/*
 * Finds a size of which at least FAN_IN parts have gathered, and sets up its merge; at->is_running
 * is false if there is no such size. Bucket 0 stands for all buckets: its rows are counted for each
 * size.
 */
static enum hearth_status find_size(struct hearth_builder *builder, struct hearth_span_merge *at,
                                    struct hearth_err *err)
{
    char sql[512];
    (void)snprintf(sql, sizeof sql,
                   "SELECT q.bits, p.n FROM generate_series(0, %u, %u) q (bits), LATERAL (SELECT"
                   " count(*) AS n_rows, sum(n_associations) AS n FROM hearth_data.span_index WHERE"
                   " tenant_id = %" PRId32 " AND day = %" PRId32
                   " AND bits = q.bits AND bucket = 0 AND n_associations < %u) p"
                   " WHERE p.n_rows >= %d ORDER BY q.bits LIMIT 1",
                   HEARTH_SPAN_BUCKET_BITS, HEARTH_SPAN_SIZE_BITS, at->tenant_id, at->day,
                   LARGE_ROW, FAN_IN);

    PGresult *result = NULL;
    HEARTH_TRY(hearth_pg_exec(&builder->pg, sql, NULL, NULL, &result, NULL, err));
    at->is_running = PQntuples(result) > 0;

    /*
     * Merge from the last bucket down, about MAX_MERGE associations at once. A constraint of the
     * table makes n greater than 0.
     */
    if (at->is_running) {
        int64_t n = hearth_pg_i64(result, 0, 1);
        at->bits = (unsigned)hearth_pg_i32(result, 0, 0);
        at->to_bits = choose_bits((size_t)n, at->bits);
        at->end_bucket = 1u << at->bits;
        at->n_buckets = n >= MAX_MERGE ? 1 : (uint32_t)(MAX_MERGE / n);
    }

    PQclear(result);

    return HEARTH_OK;
}

/*
 * Finds the buckets of the next transaction: from *ret_from up to at->end_bucket. Usually they are
 * n_buckets; fewer, if unevenly spread ids give them more than MOST_MERGED associations.
 * *ret_most_part: the last part to merge, INT64_MAX for all; a single bucket with more than
 * MOST_MERGED has only its first MOST_PARTS rows merged.
 *
 * The statement sums the associations from the last bucket down (w) and takes the lowest bucket
 * within MOST_MERGED, or else the last bucket alone (f).
 */
static enum hearth_status find_window(struct hearth_builder *builder,
                                      const struct hearth_span_merge *at, uint32_t *ret_from,
                                      int64_t *ret_most_part, struct hearth_err *err)
{
    assert(at->is_running && at->end_bucket > 0 && at->n_buckets > 0);

    char sql[768];
    uint32_t to = at->end_bucket, from = to > at->n_buckets ? to - at->n_buckets : 0;
    (void)snprintf(
        sql, sizeof sql,
        "WITH x AS MATERIALIZED (SELECT bucket, part, n_associations AS n FROM"
        " hearth_data.span_index WHERE tenant_id = %" PRId32 " AND day = %" PRId32
        " AND bits = %u AND bucket >= %" PRIu32 " AND bucket < %" PRIu32
        " AND n_associations < %u), w AS (SELECT bucket, sum(sum(n)) OVER (ORDER BY bucket "
        "DESC)"
        " AS n FROM x GROUP BY bucket), f AS (SELECT coalesce(min(bucket) FILTER (WHERE n <= "
        "%d),"
        " max(bucket), 0) AS bucket, coalesce(min(n) > %d, false) AS is_too_much FROM w)"
        " SELECT f.bucket, coalesce((SELECT part FROM x WHERE x.bucket = f.bucket AND "
        "is_too_much"
        " ORDER BY part OFFSET %d LIMIT 1), %" PRId64 ") FROM f",
        at->tenant_id, at->day, at->bits, from, to, LARGE_ROW, MOST_MERGED, MOST_MERGED,
        MOST_PARTS - 1, INT64_MAX);

    PGresult *result = NULL;
    HEARTH_TRY(hearth_pg_exec(&builder->pg, sql, NULL, NULL, &result, NULL, err));
    uint32_t bucket = (uint32_t)hearth_pg_i32(result, 0, 0);
    *ret_from = bucket > from ? bucket : from;
    *ret_most_part = hearth_pg_i64(result, 0, 1);
    PQclear(result);

    return HEARTH_OK;
}

/* By bucket, then in the order of the result. */
static int compare_row_places(const void *left, const void *right)
{
    const struct place *a = left, *b = right;
    int order = (a->bucket > b->bucket) - (a->bucket < b->bucket);
    return order != 0 ? order : (a->row > b->row) - (a->row < b->row);
}

/* Sorts the places of the rows by bucket, and allocates room for the largest bucket. */
static enum hearth_status sort_merge_rows(struct merge *merge, struct hearth_err *err)
{
    size_t n_rows = (size_t)PQntuples(merge->rows), most = 0, here = 0;
    merge->places = hearth_arena_array(&merge->arena, n_rows, sizeof *merge->places);
    if (merge->places == NULL) {
        return HEARTH_FAIL_ARENA(err, &merge->arena);
    }

    /* Sort the places. */
    for (size_t i = 0; i < n_rows; i++) {
        merge->places[i] = (struct place){(uint32_t)hearth_pg_i32(merge->rows, (int)i, 0), (int)i};
    }

    if (n_rows > 1) {
        qsort(merge->places, n_rows, sizeof *merge->places, compare_row_places);
    }

    /* Find the largest bucket. */
    for (size_t i = 0; i < n_rows; i++) {
        here = i > 0 && merge->places[i].bucket == merge->places[i - 1].bucket ? here : 0;
        here += (size_t)hearth_pg_i32(merge->rows, merge->places[i].row, 1);
        most = here > most ? here : most;
    }

    merge->all = hearth_arena_array(&merge->arena, most, sizeof *merge->all);
    merge->scratch = hearth_arena_array(&merge->arena, most, sizeof *merge->scratch);
    if (merge->all == NULL || merge->scratch == NULL) {
        return HEARTH_FAIL_ARENA(err, &merge->arena);
    }

    return HEARTH_OK;
}

/* Merges the rows of one bucket, places[from] up to places[to], into rows of to_bits. */
static enum hearth_status merge_bucket(struct merge *merge, size_t from, size_t to,
                                       struct hearth_err *err)
{
    assert(from < to && merge->at->bits <= merge->at->to_bits);

    /* Gather the associations of all rows. */
    size_t n_all = 0;
    for (size_t i = from; i < to; i++) {
        const struct place *place = &merge->places[i];
        struct hearth_association *some;
        size_t n;
        unsigned key_bits;

        hearth_arena_reset(&merge->row_arena);
        HEARTH_TRY(hearth_associations_unpack(
            &(struct hearth_association_row){hearth_pg_str(merge->rows, place->row, 2),
                                             merge->at->day, merge->at->bits, place->bucket},
            &merge->row_arena, &some, &n, &key_bits, err));
        if (n != (size_t)hearth_pg_i32(merge->rows, place->row, 1)) {
            return HEARTH_FAIL(
                err, HEARTH_CORRUPT,
                "a row of span_index has another number of associations than it says");
        }

        memcpy(merge->all + n_all, some, n * sizeof *some);
        n_all += n;
    }

    /* Write them sorted; repeated ones become one. */
    merge->n += n_all;
    n_all = hearth_associations_sort(merge->all, merge->scratch, n_all);
    struct sorted_associations sorted = {
        .all = merge->all, .n = n_all, .at = merge->at, .bits = merge->at->to_bits};
    put_index_rows(&merge->writer, &sorted);

    return HEARTH_OK;
}

/* Merges the read rows, bucket by bucket, and sends the new rows. */
static enum hearth_status merge_rows(struct merge *merge, struct hearth_err *err)
{
    size_t n_rows = (size_t)PQntuples(merge->rows);
    HEARTH_TRY(sort_merge_rows(merge, err));

    for (size_t from = 0, to; from < n_rows; from = to) {
        for (to = from + 1;
             to < n_rows && merge->places[to].bucket == merge->places[from].bucket;) {
            to++;
        }

        HEARTH_TRY(merge_bucket(merge, from, to, err));
    }

    return send_index_rows(&merge->writer, err);
}

/* Deletes the rows of the buckets, from `from` to at->end_bucket, and writes them merged. */
static enum hearth_status merge_in_transaction(struct merge *merge, uint32_t from,
                                               int64_t most_part, struct hearth_err *err)
{
    const struct hearth_span_merge *at = merge->at;
    assert(at->is_running && from < at->end_bucket);

    /* Delete the rows. */
    char sql[384];
    (void)snprintf(sql, sizeof sql,
                   "DELETE FROM hearth_data.span_index WHERE tenant_id = %" PRId32
                   " AND day = %" PRId32 " AND bits = %u AND bucket >= %" PRIu32
                   " AND bucket < %" PRIu32 " AND n_associations < %u AND part <= %" PRId64
                   " RETURNING bucket, n_associations, associations",
                   at->tenant_id, at->day, at->bits, from, at->end_bucket, LARGE_ROW, most_part);
    HEARTH_TRY(hearth_builder_begin(merge->builder, err));
    HEARTH_TRY(hearth_pg_exec(&merge->builder->pg, sql, NULL, NULL, &merge->rows, NULL, err));

    /* Write the new part. */
    if (PQntuples(merge->rows) > 0) {
        enum hearth_status status = begin_part(&merge->writer, merge->builder, err);
        if (status == HEARTH_OK) {
            status = merge_rows(merge, err);
        }

        release_part_writer(&merge->writer);
        HEARTH_TRY(status);
    }

    return hearth_builder_commit(merge->builder, err);
}

/* Merges the next buckets of a running merge, from the last one down. */
static enum hearth_status merge_some(struct hearth_builder *builder, struct hearth_span_merge *at,
                                     struct hearth_err *err)
{
    struct merge merge = {.builder = builder, .at = at};
    uint32_t from = 0;
    int64_t most_part = 0;

    HEARTH_TRY(find_window(builder, at, &from, &most_part, err));
    hearth_arena_init(&merge.arena, 0);
    hearth_arena_init(&merge.row_arena, 0);

    /* Move the rows; the merge ends with bucket 0. */
    enum hearth_status status = merge_in_transaction(&merge, from, most_part, err);
    if (status == HEARTH_OK) {
        hearth_metric_add(HEARTH_M_SPAN_MERGED, (int64_t)merge.n);
        at->end_bucket = from;
        at->is_running = from > 0;
        at->n_moved += merge.n;
    } else {
        hearth_builder_rollback(builder);
    }

    PQclear(merge.rows);
    hearth_arena_release(&merge.arena);
    hearth_arena_release(&merge.row_arena);

    /* After a merge, make the space of its rows usable. */
    if (status == HEARTH_OK && !at->is_running && at->n_moved >= WORTH_VACUUM) {
        char leaf[64];
        hearth_partition_name("span_index", at->day, leaf);
        at->n_moved = 0;
        status = vacuum_table(builder, leaf, err);
    }

    return status;
}

/* Merges until the time is over, or no noted day is left. */
static enum hearth_status merge_until(struct hearth_builder *builder, int64_t until_ns,
                                      struct hearth_err *err)
{
    while (builder->n_merges > 0 && hearth_clock_mono_ns() < until_ns) {
        struct hearth_span_merge *at = &builder->merges[builder->n_merges - 1];
        enum hearth_status status = HEARTH_OK;

        /* Continue the merge of the last day, or find its next one. */
        if (!at->is_running) {
            status = find_size(builder, at, err);
        }

        bool is_done = !at->is_running;
        if (status == HEARTH_OK && !is_done) {
            status = merge_some(builder, at, err);
        }

        if (status != HEARTH_OK || is_done) {
            builder->n_merges--; /* a failed day waits for its next fold */
        }

        HEARTH_TRY(status);
    }

    return HEARTH_OK;
}

/* ---- the step ---- */

/* Checks whether the fresh rows are enough for a part, or have waited long enough. */
static enum hearth_status check_fresh(struct hearth_builder *builder, bool *ret_worth,
                                      struct hearth_err *err)
{
    PGresult *result = NULL;
    HEARTH_TRY(hearth_pg_exec(&builder->pg,
                              "SELECT coalesce(sum(n_associations), 0)::int8 FROM"
                              " hearth_data.span_fresh",
                              NULL, NULL, &result, NULL, err));

    int64_t n = hearth_pg_i64(result, 0, 0);
    PQclear(result);
    hearth_metric_set(HEARTH_M_SPAN_FRESH, n);

    /* Fold now if there are enough or the pause is over. */
    int64_t now_ns = hearth_clock_mono_ns();
    *ret_worth = n >= WORTH_A_PART || (n > 0 && now_ns >= builder->next_spans_mono_ns);
    if (*ret_worth || n == 0) {
        builder->next_spans_mono_ns =
            now_ns + ROUNDS_OF_PAUSE * hearth_store_live(builder->store)->builder_interval_ns;
    }

    return HEARTH_OK;
}

enum hearth_status hearth_step_spans(struct hearth_builder *builder, bool *ret_more,
                                     struct hearth_err *err)
{
    int64_t until_ns = hearth_clock_mono_ns() + STEP_NS;
    bool worth = false;
    HEARTH_TRY(check_fresh(builder, &worth, err));

    /* Fold the fresh rows, and free their space. */
    bool more = worth;
    while (more && hearth_clock_mono_ns() < until_ns) {
        HEARTH_TRY(fold_fresh_rows(builder, &more, err));
    }

    if (worth) {
        HEARTH_TRY(vacuum_table(builder, "hearth_data.span_fresh", err));
    }

    /* Use the rest of the time to merge parts. */
    HEARTH_TRY(merge_until(builder, until_ns, err));
    *ret_more = more || builder->n_merges > 0;

    return HEARTH_OK;
}
