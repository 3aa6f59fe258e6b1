/*
 * traces_analyze.c -- where segments spent their time: trees of their thread snapshots, or of CPU
 * profiles of Go programs (contract: hearth/engine/traces.h).
 */
#include "hearth/base/hash.h"
#include "hearth/codec/compress.h"
#include "hearth/engine/traces.h"
#include "hearth/format/pprof.h"
#include "hearth/store/store_spans.h"
#include "hearth/store/task_results.h"

#include "common/shown.h"
#include "ingest/ingest_internal.h"
#include "select/query_internal.h"
#include "spans/span_stored.h"

#include <assert.h>
#include <inttypes.h>

static struct hearth_hash128 hash_text_key(struct hearth_str text)
{
    return hearth_hash128(text.p, text.n, 0);
}

/* State of an analysis: the requested ranges, and their segments, each once. */
struct segment_analysis {
    const struct hearth_call *call;
    const struct hearth_segment_range *ranges;
    size_t n_ranges;
    struct hearth_inflater *inflater;
    struct hearth_limits limits;
    struct hearth_str *ids;
    size_t n;
    struct hearth_idmap index; /* index of an id in ids */
    struct hearth_snapshot_query *queries;
    size_t n_queries;
};

static enum hearth_status read_segment_ranges(struct segment_analysis *state,
                                              struct hearth_err *err)
{
    struct hearth_arena *arena = state->call->arena;
    const struct hearth_segment_range *ranges = state->ranges;
    size_t n = state->n_ranges;

    state->ids = hearth_arena_array(arena, n, sizeof *state->ids);
    state->queries = hearth_arena_array(arena, n, sizeof *state->queries);
    if (state->ids == NULL || state->queries == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    /* Check the ranges, and number the segments. */
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

        uint32_t id = hearth_idmap_intern(&state->index, hash_text_key(ranges[i].segment_id),
                                          (uint32_t)state->n, &is_new);
        if (id == HEARTH_IDMAP_NONE) {
            return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for %zu segments", n);
        }
        if (is_new) {
            state->ids[state->n++] = ranges[i].segment_id;
        }

        state->queries[i] =
            (struct hearth_snapshot_query){id, ranges[i].has_range ? ranges[i].start_ms : INT64_MIN,
                                           ranges[i].has_range ? ranges[i].end_ms : INT64_MAX};
    }

    state->n_queries = n;

    return HEARTH_OK;
}

static enum hearth_status decode_snapshot_run(struct segment_analysis *state,
                                              const struct hearth_snapshot_run *run,
                                              struct hearth_snapshot **ret, size_t *ret_n,
                                              struct hearth_err *err)
{
    struct hearth_arena *arena = state->call->arena;
    struct hearth_str plain;

    HEARTH_TRY(hearth_stored_unpack(arena, state->inflater, run->snapshots, &plain, err));

    uint32_t segment = hearth_idmap_find(&state->index, hash_text_key(run->segment_id));

    return hearth_snapshots_decode(plain, segment, arena, ret, ret_n, err);
}

/* Drop the runs of tasks that the call does not see. */
static enum hearth_status keep_shown_runs(const struct hearth_call *call,
                                          struct hearth_snapshot_run *runs, size_t *n,
                                          struct hearth_err *err)
{
    size_t n_shown = 0;

    for (size_t i = 0; i < *n; i++) {
        bool shows;
        HEARTH_TRY(hearth_call_shows_task(call, runs[i].task_id, &shows, err));
        if (shows) {
            runs[n_shown++] = runs[i];
        }
    }

    *n = n_shown;

    return HEARTH_OK;
}

static enum hearth_status analyze_snapshots(struct segment_analysis *state,
                                            struct hearth_snapshot_trees *ret,
                                            struct hearth_err *err)
{
    const struct hearth_call *call = state->call;
    struct hearth_snapshot_run *runs;
    size_t n_runs, n = 0;

    /* Read the runs of all segments. */
    HEARTH_TRY(hearth_store_snapshot_runs(HEARTH_CALL_SCOPE(call), state->ids, state->n, &runs,
                                          &n_runs, err));
    HEARTH_TRY(keep_shown_runs(call, runs, &n_runs, err));
    for (size_t i = 0; i < n_runs; i++) {
        n += (size_t)runs[i].n_snapshots;
    }

    /* Decode their snapshots. */
    struct hearth_snapshot *all = hearth_arena_array(call->arena, n, sizeof *all);
    if (all == NULL) {
        return HEARTH_FAIL_ARENA(err, call->arena);
    }

    size_t at = 0;
    for (size_t i = 0; i < n_runs; i++) {
        struct hearth_snapshot *some;
        size_t n_some;
        HEARTH_TRY(decode_snapshot_run(state, &runs[i], &some, &n_some, err));

        if (n_some != (size_t)runs[i].n_snapshots) {
            return HEARTH_FAIL(err, HEARTH_CORRUPT,
                               "a run has %zu stored snapshots, its row says %" PRId32, n_some,
                               runs[i].n_snapshots);
        }

        memcpy(all + at, some, n_some * sizeof *all);
        at += n_some;
    }

    /* Make the trees. */
    const struct hearth_snapshot_choice choice = {all, n, state->queries, state->n_queries,
                                                  state->limits.max_analyzed_snapshots};
    return hearth_snapshot_trees_make(&choice, call->arena, ret, err);
}

/* ---- Go programs ---- */

/* Labels that name a sample's segment; the first one present counts. */
static const char *const SEGMENT_LABELS[] = {"segment_id", "trace_segment_id", "segmentId",
                                             "traceSegmentId", "traceSegmentID"};

struct segment_filter {
    const struct hearth_profile *profile;
    struct hearth_str segment_id;
};

static bool is_sample_of_segment(void *context, uint32_t sample)
{
    const struct segment_filter *filter = context;
    const struct hearth_profile *profile = filter->profile;

    for (size_t k = 0; k < HEARTH_ARRAY_LEN(SEGMENT_LABELS); k++) {
        for (uint32_t l = profile->label_first[sample]; l < profile->label_first[sample + 1]; l++) {
            const struct hearth_sample_label *label = &profile->sample_labels[l];
            if (hearth_str_eq_c(profile->strings[label->key], SEGMENT_LABELS[k])) {
                return hearth_str_eq(profile->strings[label->str], filter->segment_id);
            }
        }
    }

    return false;
}

static enum hearth_status read_upload_profile(struct segment_analysis *state,
                                              struct hearth_str upload_id,
                                              struct hearth_profile *ret, struct hearth_err *err)
{
    const struct hearth_call *call = state->call;
    struct hearth_task_upload upload;

    /* Read the file. */
    HEARTH_TRY(hearth_store_task_upload_get(HEARTH_CALL_SCOPE(call), upload_id, &upload, err));
    struct hearth_buf plain;
    hearth_buf_init(&plain, 0);
    plain.budget = call->arena->budget;

    /* Decompress it. */
    int64_t max = state->limits.max_profile_bytes;
    enum hearth_status status =
        hearth_inflate(state->inflater, hearth_compression_detect(upload.content), upload.content,
                       max > 0 ? (size_t)max : SIZE_MAX, &plain, err);
    struct hearth_str bytes = {0};
    if (status == HEARTH_OK) {
        bytes = hearth_arena_str(call->arena, hearth_buf_view(&plain));
        status = bytes.p == NULL ? HEARTH_FAIL_ARENA(err, call->arena) : HEARTH_OK;
    }

    hearth_buf_release(&plain);
    HEARTH_TRY(status);

    /* Decode it. */
    const struct hearth_pprof_limits limits = hearth_ingest_pprof_limits(&state->limits);
    struct hearth_pprof_notes notes = {0};

    return hearth_pprof_decode(bytes, &limits, call->arena, ret, &notes, err);
}

/*
 * Make a tree for each segment and upload. Rows are sorted by upload, so each upload is read once.
 */
static enum hearth_status analyze_profiles(struct segment_analysis *state,
                                           struct hearth_snapshot_trees *ret,
                                           struct hearth_err *err)
{
    const struct hearth_call *call = state->call;
    struct hearth_go_segment *found;
    size_t n;

    /* Find the uploads with samples of the segments. */
    const struct hearth_go_segment_filter by_ids = {HEARTH_STR(""), state->ids, state->n};
    HEARTH_TRY(hearth_store_go_segments(HEARTH_CALL_SCOPE(call), &by_ids, &found, &n, err));
    ret->trees = hearth_arena_array(call->arena, n, sizeof *ret->trees);
    if (ret->trees == NULL) {
        return HEARTH_FAIL_ARENA(err, call->arena);
    }

    /* Make the trees. */
    struct hearth_profile profile;
    size_t n_read = 0;
    for (size_t i = 0; i < n; i++) {
        bool shows;
        HEARTH_TRY(hearth_call_shows_task(call, found[i].task_id, &shows, err));
        if (!shows) {
            continue;
        }
        if (n_read++ == 0 || !hearth_str_eq(found[i].upload_id, found[i - 1].upload_id)) {
            HEARTH_TRY(read_upload_profile(state, found[i].upload_id, &profile, err));
        }

        struct segment_filter filter = {&profile, found[i].segment_id};
        struct hearth_snapshot_trees own;
        HEARTH_TRY(hearth_snapshot_trees_of_profile(&profile, is_sample_of_segment, &filter,
                                                    call->arena, &own, err));
        if (own.n_trees > 0) {
            ret->trees[ret->n_trees++] = own.trees[0];
        }
    }

    return HEARTH_OK;
}

static enum hearth_status analyze_segments(struct segment_analysis *state,
                                           struct hearth_snapshot_trees *ret,
                                           struct hearth_str *ret_tip, struct hearth_err *err)
{
    struct hearth_arena *arena = state->call->arena;
    int64_t limit = state->limits.max_analyzed_snapshots;

    /* Analyse snapshots. */
    HEARTH_TRY(read_segment_ranges(state, err));
    HEARTH_TRY(analyze_snapshots(state, ret, err));

    /* Say what is missing. */
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

    /* Without snapshots, analyse profiles of Go programs. */
    if (ret->n_trees == 0) {
        HEARTH_TRY(analyze_profiles(state, ret, err));
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
    assert(call != NULL && ret != NULL && ret_tip != NULL);

    *ret = (struct hearth_snapshot_trees){0};
    *ret_tip = HEARTH_STR("");
    struct segment_analysis state = {.call = call, .ranges = ranges, .n_ranges = n};
    hearth_call_limits(call, &state.limits);

    assert(ranges != NULL || n == 0);

    int64_t max = state.limits.max_analyzed_segments;
    if (n == 0 || (max > 0 && n > (uint64_t)max)) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "queries has %zu ranges of segments: 1 to %" PRId64
                           " are allowed (max-analyzed-segments)",
                           n, max);
    }

    /* Analyse. */
    state.inflater = hearth_inflater_new();
    if (state.inflater == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for a decompressor");
    }

    hearth_idmap_init(&state.index);
    enum hearth_status status = analyze_segments(&state, ret, ret_tip, err);
    hearth_idmap_release(&state.index);
    hearth_inflater_free(state.inflater);

    return status;
}
