/*
 * task_archive.h -- export of a task with all its data to one file, and its import: for bug
 * reports.
 *
 * An imported task is a new task: it has a new id and the origin IMPORTED, nothing runs, and its
 * data do not become profiles of the service. It is kept as long as a task that ends now.
 *
 * Ownership: answers live in the call's arena. Threads: safe; calls wait for the database.
 */
#ifndef HEARTH_ENGINE_TASK_ARCHIVE_H
#define HEARTH_ENGINE_TASK_ARCHIVE_H

#include "hearth/engine/call.h"

/*
 * Export a task as a file compressed with zstd. max_bytes: bound of the decompressed size; 0, or
 * more than max_task_export_bytes, means max_task_export_bytes. NOT_FOUND; INVALID_ARGUMENT: the
 * file would be larger.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_task_export(const struct hearth_call *call, struct hearth_str task_id,
                                      int64_t max_bytes, struct hearth_str *ret,
                                      struct hearth_err *err);

/*
 * Checks that `sampling` and `causes` of an archive's task, each a JSON array, can be shown as part
 * of a task.
 */
struct hearth_task_json_check {
    void *context;
    bool (*is_shown)(void *context, struct hearth_str sampling, struct hearth_str causes);
};

/*
 * Import an archive. INVALID_ARGUMENT: the file is not an archive, or too large; nothing is stored
 * then.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_task_import(const struct hearth_call *call, struct hearth_str archive,
                                      const struct hearth_task_json_check *check,
                                      struct hearth_str *ret_task_id, int64_t *ret_n_records,
                                      struct hearth_err *err);

#endif
