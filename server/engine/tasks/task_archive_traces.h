/*
 * task_archive_traces.h -- segments and thread snapshots of exported and imported trace tasks
 * (private to the engine).
 *
 * Ownership: results live in the call's arena, their texts are borrowed from the archive.
 */
#ifndef HEARTH_ENGINE_TASK_ARCHIVE_TRACES_H
#define HEARTH_ENGINE_TASK_ARCHIVE_TRACES_H

#include "hearth/engine/query.h"
#include "hearth/format/task_archive_format.h"
#include "hearth/store/store_spans.h"
#include "hearth/store/store_tasks.h"

/* INVALID_ARGUMENT with the reason why an archive cannot be imported. */
HEARTH_MUST_CHECK
enum hearth_status hearth_archive_refuse(struct hearth_err *err, const char *reason);

/* Append the segments and snapshots of a trace task; nothing for tasks of other kinds. */
HEARTH_MUST_CHECK
enum hearth_status hearth_archive_export_traces(const struct hearth_call *call,
                                                const struct hearth_task *task,
                                                struct hearth_buf *out, struct hearth_err *err);

/* The segments and snapshots of an archive, as rows of the store. */
struct hearth_archive_traces {
    struct hearth_span_group *groups;
    struct hearth_snapshot_run *runs;
    size_t n_groups, n_runs;
    int64_t n_snapshots;
};

/* Check and decode the segments and snapshots of an archive. INVALID_ARGUMENT names the error. */
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
