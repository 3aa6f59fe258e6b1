/*
 * task_archive.h -- a task with all that it brought as one file, and back: for bug reports.
 *
 * An import is another task: a new id, origin IMPORTED, nothing runs, and its data are no profiles of the service. It is
 * kept as long as a task that ends now.
 *
 * Ownership: answers live in the call's arena. Threads: safe; calls wait for the database.
 */
#ifndef HEARTH_ENGINE_TASK_ARCHIVE_H
#define HEARTH_ENGINE_TASK_ARCHIVE_H

#include "hearth/engine/call.h"

/*
 * The file (zstd). max_bytes: inflated, less than max_task_export_bytes counts; 0: that. NOT_FOUND; INVALID_ARGUMENT when
 * it is larger.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_task_export(const struct hearth_call *call, struct hearth_str task_id,
                                      int64_t max_bytes, struct hearth_str *ret,
                                      struct hearth_err *err);

/* Of an archive's task: are `sampling` and `causes`, each one array of JSON, what tasks are shown by? */
struct hearth_task_json_check {
    void *context;
    bool (*is_shown)(void *context, struct hearth_str sampling, struct hearth_str causes);
};

/* INVALID_ARGUMENT for what is no such file, or too large; then nothing was stored. */
HEARTH_MUST_CHECK
enum hearth_status hearth_task_import(const struct hearth_call *call, struct hearth_str archive,
                                      const struct hearth_task_json_check *check,
                                      struct hearth_str *ret_task_id, int64_t *ret_n_records,
                                      struct hearth_err *err);

#endif
