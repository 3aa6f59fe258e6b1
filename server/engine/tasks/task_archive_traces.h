/*
 * task_archive_traces.h -- segments and thread snapshots of exported and imported trace tasks (private to the engine).
 *
 * Ownership: what is read lives in the call's arena, texts borrow from the archive.
 */
#ifndef HEARTH_ENGINE_TASK_ARCHIVE_TRACES_H
#define HEARTH_ENGINE_TASK_ARCHIVE_TRACES_H

#include "hearth/engine/query.h"
#include "hearth/format/task_archive_format.h"
#include "hearth/store/store_spans.h"
#include "hearth/store/store_tasks.h"

/* Append what a task found; of other than trace tasks: nothing. */
HEARTH_MUST_CHECK
enum hearth_status hearth_archive_export_traces(const struct hearth_call *call,
                                                const struct hearth_task *task,
                                                struct hearth_buf *out, struct hearth_err *err);

/* An archive's, as they are stored. */
struct hearth_archive_traces {
    struct hearth_span_group *groups;
    struct hearth_snapshot_run *runs;
    size_t n_groups, n_runs;
    int64_t n_snapshots;
};

/* INVALID_ARGUMENT says what is wrong with them. */
HEARTH_MUST_CHECK
enum hearth_status hearth_archive_read_traces(const struct hearth_call *call,
                                              const struct hearth_task_archive *archive,
                                              struct hearth_archive_traces *ret,
                                              struct hearth_err *err);
HEARTH_MUST_CHECK
enum hearth_status hearth_archive_store_traces(const struct hearth_call *call,
                                               const struct hearth_archive_traces *traces,
                                               const struct hearth_task *task,
                                               struct hearth_err *err);

#endif
