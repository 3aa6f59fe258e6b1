/*
 * traces_analyze.c -- where segments spent their time: trees of their thread snapshots, or of the CPU profiles of Go
 * programs (contract: hearth/engine/traces.h).
 */
#include "hearth/base/hash.h"
#include "hearth/codec/compress.h"
#include "hearth/engine/traces.h"
#include "hearth/format/pprof.h"
#include "hearth/store/store_spans.h"
#include "hearth/store/task_results.h"

#include "ingest/ingest_internal.h"
#include "select/query_internal.h"

#include <inttypes.h>

static struct hearth_hash128 text_key(struct hearth_str text)
{
    return hearth_hash128(text.p, text.n, 0);
}

/* Segments that are asked for, each once. */
struct asked {
    const struct hearth_call *call;
    struct hearth_inflater *inflater;
    struct hearth_limits limits;
    struct hearth_str *ids;
    size_t n;
    struct hearth_idmap index; /* of an id in ids */
    struct hearth_snapshot_query *queries;
    size_t n_queries;
};

static enum hearth_status read_ranges(struct asked *asked,
                                      const struct hearth_segment_range *ranges, size_t n,
                                      struct hearth_err *err)
{
    struct hearth_arena *arena = asked->call->arena;
    asked->ids = hearth_arena_array(arena, n, sizeof *asked->ids);
    asked->queries = hearth_arena_array(arena, n, sizeof *asked->queries);
    if (asked->ids == NULL || asked->queries == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }
    for (size_t i = 0; i < n; i++) {
        bool is_new = false;
        if (ranges[i].segment_id.n == 0) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "queries[%zu] has no segment id", i);
        }
        if (ranges[i].has_range && ranges[i].start_ms > ranges[i].end_ms) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                               "queries[%zu]: the range begins at %" PRId64
                               ", after its end %" PRId64,
                               i, ranges[i].start_ms, ranges[i].end_ms);
        }
        uint32_t id = hearth_idmap_intern(&asked->index, text_key(ranges[i].segment_id),
                                          (uint32_t)asked->n, &is_new);
        if (id == HEARTH_IDMAP_NONE) {
            return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for %zu segments", n);
        }
        if (is_new) {
            asked->ids[asked->n++] = ranges[i].segment_id;
        }
        asked->queries[i] =
            (struct hearth_snapshot_query){id, ranges[i].has_range ? ranges[i].start_ms : INT64_MIN,
                                           ranges[i].has_range ? ranges[i].end_ms : INT64_MAX};
    }
    asked->n_queries = n;
    return HEARTH_OK;
}

static enum hearth_status decode_run(struct asked *asked, const struct hearth_snapshot_run *run,
                                     struct hearth_snapshot **ret, size_t *ret_n,
                                     struct hearth_err *err)
{
    struct hearth_arena *arena = asked->call->arena;
    struct hearth_buf scratch;
    hearth_buf_init(&scratch, 0);
    scratch.budget = arena->budget;
    struct hearth_str plain;
    size_t max = arena->limit_bytes > 0 ? arena->limit_bytes : SIZE_MAX;
    enum hearth_status status =
        hearth_unpack(asked->inflater, run->snapshots, max, &scratch, &plain, err);
    if (status == HEARTH_OK) {
        plain = hearth_arena_str(arena, plain);
        status = plain.p == NULL ? HEARTH_FAIL_ARENA(err, arena) : HEARTH_OK;
    }
    hearth_buf_release(&scratch);
    HEARTH_TRY(status);
    uint32_t segment = hearth_idmap_find(&asked->index, text_key(run->segment_id));
    return hearth_snapshots_decode(plain, segment, arena, ret, ret_n, err);
}

static enum hearth_status analyze_snapshots(struct asked *asked, struct hearth_snapshot_trees *ret,
                                            struct hearth_err *err)
{
    const struct hearth_call *call = asked->call;
    struct hearth_snapshot_run *runs;
    size_t n_runs, n = 0;
    HEARTH_TRY(hearth_store_snapshot_runs(HEARTH_CALL_SCOPE(call), asked->ids, asked->n, &runs,
                                          &n_runs, err));
    for (size_t i = 0; i < n_runs; i++) {
        n += (size_t)runs[i].n_snapshots;
    }
    struct hearth_snapshot *all = hearth_arena_array(call->arena, n, sizeof *all);
    if (all == NULL) {
        return HEARTH_FAIL_ARENA(err, call->arena);
    }
    size_t at = 0;
    for (size_t i = 0; i < n_runs; i++) {
        struct hearth_snapshot *some;
        size_t n_some;
        HEARTH_TRY(decode_run(asked, &runs[i], &some, &n_some, err));
        if (n_some != (size_t)runs[i].n_snapshots) {
            return HEARTH_FAIL(err, HEARTH_CORRUPT, "%zu stored snapshots are said to be %" PRId32,
                               n_some, runs[i].n_snapshots);
        }
        memcpy(all + at, some, n_some * sizeof *all);
        at += n_some;
    }
    return hearth_snapshot_trees_make(all, n, asked->queries, asked->n_queries,
                                      asked->limits.max_analyzed_snapshots, call->arena, ret, err);
}

/* ---- Go programs ---- */

/* Labels that name a sample's segment, the first of them counts. */
static const char *const SEGMENT_LABELS[] = {"segment_id", "trace_segment_id", "segmentId",
                                             "traceSegmentId", "traceSegmentID"};

struct wanted {
    const struct hearth_profile *profile;
    struct hearth_str segment_id;
};

static bool is_of_segment(void *context, uint32_t sample)
{
    const struct wanted *wanted = context;
    const struct hearth_profile *profile = wanted->profile;
    for (size_t k = 0; k < HEARTH_ARRAY_LEN(SEGMENT_LABELS); k++) {
        for (uint32_t l = profile->label_first[sample]; l < profile->label_first[sample + 1]; l++) {
            const struct hearth_sample_label *label = &profile->sample_labels[l];
            if (hearth_str_eq_c(profile->strings[label->key], SEGMENT_LABELS[k])) {
                return hearth_str_eq(profile->strings[label->str], wanted->segment_id);
            }
        }
    }
    return false;
}

static enum hearth_status read_profile(struct asked *asked, struct hearth_str upload_id,
                                       struct hearth_profile *ret, struct hearth_err *err)
{
    const struct hearth_call *call = asked->call;
    struct hearth_task_upload upload;
    HEARTH_TRY(hearth_store_task_upload_get(HEARTH_CALL_SCOPE(call), upload_id, &upload, err));
    struct hearth_buf plain;
    hearth_buf_init(&plain, 0);
    plain.budget = call->arena->budget;
    int64_t max = asked->limits.max_profile_bytes;
    enum hearth_status status =
        hearth_inflate(asked->inflater, hearth_compression_detect(upload.content), upload.content,
                       max > 0 ? (size_t)max : SIZE_MAX, &plain, err);
    struct hearth_str bytes = {0};
    if (status == HEARTH_OK) {
        bytes = hearth_arena_str(call->arena, hearth_buf_view(&plain));
        status = bytes.p == NULL ? HEARTH_FAIL_ARENA(err, call->arena) : HEARTH_OK;
    }
    hearth_buf_release(&plain);
    HEARTH_TRY(status);
    const struct hearth_pprof_limits limits = hearth_ingest_pprof_limits(&asked->limits);
    struct hearth_pprof_notes notes = {0};
    return hearth_pprof_decode(bytes, &limits, call->arena, ret, &notes, err);
}

/* A tree for each segment and upload; uploads come one after the other. */
static enum hearth_status analyze_profiles(struct asked *asked, struct hearth_snapshot_trees *ret,
                                           struct hearth_err *err)
{
    const struct hearth_call *call = asked->call;
    struct hearth_go_segment *found;
    size_t n;
    HEARTH_TRY(hearth_store_go_segments(HEARTH_CALL_SCOPE(call), HEARTH_STR(""), asked->ids,
                                        asked->n, &found, &n, err));
    ret->trees = hearth_arena_array(call->arena, n, sizeof *ret->trees);
    if (ret->trees == NULL) {
        return HEARTH_FAIL_ARENA(err, call->arena);
    }
    struct hearth_profile profile;
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || !hearth_str_eq(found[i].upload_id, found[i - 1].upload_id)) {
            HEARTH_TRY(read_profile(asked, found[i].upload_id, &profile, err));
        }
        struct wanted wanted = {&profile, found[i].segment_id};
        struct hearth_snapshot_trees own;
        HEARTH_TRY(hearth_snapshot_trees_of_profile(&profile, is_of_segment, &wanted, call->arena,
                                                    &own, err));
        if (own.n_trees > 0) {
            ret->trees[ret->n_trees++] = own.trees[0];
        }
    }
    return HEARTH_OK;
}

static enum hearth_status analyze(struct asked *asked, const struct hearth_segment_range *ranges,
                                  size_t n, struct hearth_snapshot_trees *ret,
                                  struct hearth_str *ret_tip, struct hearth_err *err)
{
    struct hearth_arena *arena = asked->call->arena;
    int64_t limit = asked->limits.max_analyzed_snapshots;
    HEARTH_TRY(read_ranges(asked, ranges, n, err));
    HEARTH_TRY(analyze_snapshots(asked, ret, err));
    bool is_over = limit > 0 && ret->n_found > limit;
    if (is_over) {
        *ret_tip = hearth_str_c(hearth_arena_printf(arena,
                                                    "Out of snapshot analyze limit, %" PRId64
                                                    " snapshots found, but analysis first %" PRId64
                                                    " snapshots only.",
                                                    ret->n_found, limit));
    }
    if (ret->n_cut > 0 && !arena->refused) {
        *ret_tip = hearth_str_c(hearth_arena_printf(
            arena,
            HEARTH_STR_FMT "%s%" PRId64 " snapshots were cut when they came (max-snapshot-frames, "
                           "max-symbol-bytes): frames at the leaf's end, or the beginnings of long "
                           "names, are missing",
            HEARTH_STR_ARG(*ret_tip), is_over ? " " : "", ret->n_cut));
    }
    if (ret->n_trees == 0) {
        HEARTH_TRY(analyze_profiles(asked, ret, err));
    }
    if (ret->n_trees == 0 && ret_tip->n == 0) {
        *ret_tip = HEARTH_STR("Data not found");
    }
    return arena->refused ? HEARTH_FAIL_ARENA(err, arena) : HEARTH_OK;
}

enum hearth_status hearth_traces_analyze(const struct hearth_call *call,
                                         const struct hearth_segment_range *ranges, size_t n,
                                         struct hearth_snapshot_trees *ret,
                                         struct hearth_str *ret_tip, struct hearth_err *err)
{
    *ret = (struct hearth_snapshot_trees){0};
    *ret_tip = HEARTH_STR("");
    struct asked asked = {.call = call};
    hearth_call_limits(call, &asked.limits);
    int64_t max = asked.limits.max_analyzed_segments;
    if (n == 0 || (max > 0 && n > (uint64_t)max)) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "queries has %zu ranges of segments: 1 to %" PRId64
                           " are allowed (max-analyzed-segments)",
                           n, max);
    }
    asked.inflater = hearth_inflater_new();
    if (asked.inflater == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for a decompressor");
    }
    hearth_idmap_init(&asked.index);
    enum hearth_status status = analyze(&asked, ranges, n, ret, ret_tip, err);
    hearth_idmap_release(&asked.index);
    hearth_inflater_free(asked.inflater);
    return status;
}
