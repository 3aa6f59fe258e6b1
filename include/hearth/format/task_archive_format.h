/*
 * task_archive_format.h -- a task with all its results as one file, for another server (hearth task
 * export, import).
 *
 * The file is one zstd frame; docs/reference/task-export.md describes the inflated bytes.
 *
 * Limits:    the caller limits the size of the inflated bytes. Decoded texts are valid UTF-8
 *            without NUL, as the tables require.
 * Ownership: decoded texts borrow from the bytes; arrays live in the arena.
 * Threads:   pure.
 */
#ifndef HEARTH_FORMAT_TASK_ARCHIVE_H
#define HEARTH_FORMAT_TASK_ARCHIVE_H

#include "hearth/base/arena.h"
#include "hearth/base/buf.h"

/* Texts, numbers and lists of a task, in the order of the file. */
enum {
    HEARTH_ARCHIVE_TASK_ID,
    HEARTH_ARCHIVE_SERVICE,
    HEARTH_ARCHIVE_INSTANCE,
    HEARTH_ARCHIVE_PROCESS_ID,
    HEARTH_ARCHIVE_PROCESS,
    HEARTH_ARCHIVE_ENDPOINT,
    HEARTH_ARCHIVE_EXEC_ARGS,
    HEARTH_ARCHIVE_SAMPLING,
    HEARTH_ARCHIVE_CAUSES,
    HEARTH_ARCHIVE_N_TEXTS
};
enum {
    HEARTH_ARCHIVE_KIND,
    HEARTH_ARCHIVE_ORIGIN,
    HEARTH_ARCHIVE_START_MS,
    HEARTH_ARCHIVE_DURATION_MS,
    HEARTH_ARCHIVE_CREATED_MS,
    HEARTH_ARCHIVE_CANCELLED_MS,
    HEARTH_ARCHIVE_MIN_DURATION_MS,
    HEARTH_ARCHIVE_DUMP_PERIOD_MS,
    HEARTH_ARCHIVE_MAX_SAMPLES,
    HEARTH_ARCHIVE_N_NUMBERS
};
enum {
    HEARTH_ARCHIVE_LABELS,
    HEARTH_ARCHIVE_INSTANCES,
    HEARTH_ARCHIVE_EVENTS,
    HEARTH_ARCHIVE_N_LISTS
};

struct hearth_archive_list {
    struct hearth_str *v;
    size_t n;
};

struct hearth_archive_task {
    struct hearth_str texts[HEARTH_ARCHIVE_N_TEXTS];
    int64_t numbers[HEARTH_ARCHIVE_N_NUMBERS];
    struct hearth_archive_list lists[HEARTH_ARCHIVE_N_LISTS];
};

struct hearth_archive_log {
    struct hearth_str instance, process_id, message;
    int64_t event, at_ms, last_at_ms;
};

struct hearth_archive_run {
    struct hearth_str process_id, process, instance;
    int64_t start_ms, end_ms;
};

struct hearth_archive_chunk {
    uint64_t run; /* index in runs */
    int64_t at_ms;
    struct hearth_str bytes; /* model/task_chunk.h; not checked here */
};

struct hearth_archive_upload {
    struct hearth_str service, instance, format;
    int64_t received_ms;
    struct hearth_str content;
};

/* The part of a request that one thread executed. */
struct hearth_archive_segment {
    struct hearth_str service, instance, endpoint;
    struct hearth_str trace_id, segment_id; /* bytes or text, depending on `flags` */
    int64_t start_ns, end_ns, kind, flags;  /* kind, flags: as in hearth_data.span_group */
    /* model/spans.h, relative to start_ns; not checked here */
    struct hearth_str spans;
};

struct hearth_archive_snapshots {
    struct hearth_str segment_id;
    struct hearth_str bytes; /* model/snapshot_trees.h; not checked here */
};

struct hearth_task_archive {
    struct hearth_archive_task task;
    struct hearth_archive_log *logs;
    struct hearth_archive_run *runs;
    struct hearth_archive_chunk *chunks;
    struct hearth_archive_upload *uploads;
    struct hearth_archive_segment *segments;
    struct hearth_archive_snapshots *snapshots;
    size_t n_logs, n_runs, n_chunks, n_uploads, n_segments, n_snapshots;
};

/*
 * Append to the inflated bytes: the task first, runs before their chunks, _end last. Failures are
 * the buffer's.
 */
void hearth_archive_put_task(const struct hearth_archive_task *task, struct hearth_buf *out);
void hearth_archive_put_log(const struct hearth_archive_log *log, struct hearth_buf *out);
void hearth_archive_put_run(const struct hearth_archive_run *run, struct hearth_buf *out);
void hearth_archive_put_chunk(const struct hearth_archive_chunk *chunk, struct hearth_buf *out);
void hearth_archive_put_upload(const struct hearth_archive_upload *upload, struct hearth_buf *out);
void hearth_archive_put_segment(const struct hearth_archive_segment *segment,
                                struct hearth_buf *out);
void hearth_archive_put_snapshots(const struct hearth_archive_snapshots *snapshots,
                                  struct hearth_buf *out);
void hearth_archive_end(struct hearth_buf *out);

/* Decode inflated bytes. INVALID_ARGUMENT, with what is wrong; NO_MEMORY. */
HEARTH_MUST_CHECK
enum hearth_status hearth_archive_decode(struct hearth_str bytes, struct hearth_arena *arena,
                                         struct hearth_task_archive *ret, struct hearth_err *err);

#endif
