/*
 * task_uploads.h -- files that agents send for tasks: pprof of Go programs, JFR of JVMs.
 *
 * A file is stored unchanged. A pprof also becomes an ordinary profile, through ingest: __name__ by
 * the event of its task, otherwise by its sample types as for /ingest; labels service_name and
 * instance. Values that Go counts from the start of the process are stored as differences to the
 * previous file (docs/reference/skywalking.md, Files). The labels of the Go agent, which tie
 * samples to traced requests, do not split series: the requests of a file are stored with it, and
 * their samples are read from it.
 *
 * Ownership: inputs are borrowed; answers live in the call's arena.
 * Threads:   safe; calls wait for the database.
 * Source:    Apache SkyWalking's public protocol; docs/reference/skywalking.md.
 */
#ifndef HEARTH_ENGINE_TASK_UPLOADS_H
#define HEARTH_ENGINE_TASK_UPLOADS_H

#include "hearth/engine/call.h"
#include "hearth/engine/ingest.h"
#include "hearth/model/task.h"
#include "hearth/store/task_results.h"

#define HEARTH_UPLOAD_PPROF "pprof"
#define HEARTH_UPLOAD_JFR   "jfr"

struct hearth_upload_spec {
    struct hearth_str task_id;
    struct hearth_str service, instance; /* empty: taken from the task, if it is known */
    const char *format;
    struct hearth_str content;
};

/*
 * Store a file; it is committed, also as a profile, when the call returns. A repeated file changes
 * nothing. INVALID_ARGUMENT: the file is larger than max_task_upload_bytes, empty, or not valid in
 * its format; it is not stored then, and the caller calls hearth_task_upload_refused.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_task_upload(const struct hearth_call *call, struct hearth_ingest *ingest,
                                      const struct hearth_upload_spec *spec,
                                      struct hearth_err *err);

/* Entry in the log of a task about an instance's file. Numbers as in hearth.v1.TaskEvent. */
enum hearth_upload_event {
    HEARTH_UPLOAD_FINISHED = 2,
    HEARTH_UPLOAD_TOO_LARGE = 3,
    HEARTH_UPLOAD_FAILED = 4,
};

/* Add an entry to the log of a task. An unknown task is ignored. */
HEARTH_MUST_CHECK
enum hearth_status hearth_task_upload_log(const struct hearth_call *call, struct hearth_str task_id,
                                          struct hearth_str instance,
                                          enum hearth_upload_event event, struct hearth_str message,
                                          struct hearth_err *err);

/*
 * Check that a file may be sent: the task exists and was delivered to the instance, or, if service
 * and instance are empty because the agent does not send them, to any instance. NOT_FOUND,
 * FAILED_PRECONDITION.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_task_upload_expected(const struct hearth_call *call,
                                               struct hearth_str task_id, struct hearth_str service,
                                               struct hearth_str instance, struct hearth_err *err);
/*
 * Count a refused file, and note the reason in the log of its task. An empty instance means the
 * only one that the task was delivered to. Failures are only logged.
 */
void hearth_task_upload_refused(const struct hearth_call *call, struct hearth_str task_id,
                                struct hearth_str instance, const struct hearth_err *why);

HEARTH_MUST_CHECK
enum hearth_status hearth_task_uploads(const struct hearth_call *call, struct hearth_str task_id,
                                       struct hearth_task_upload **ret, size_t *ret_n,
                                       struct hearth_err *err);
/* One upload with its content. NOT_FOUND. */
HEARTH_MUST_CHECK
enum hearth_status hearth_task_upload_get(const struct hearth_call *call,
                                          struct hearth_str upload_id,
                                          struct hearth_task_upload *ret, struct hearth_err *err);

struct hearth_upload_element {
    uint32_t id;                      /* in depth-first order, from 0 */
    int64_t parent_id;                /* -1 for the root */
    struct hearth_str code_signature; /* function:line; inlined frames joined with ";" */
    int64_t total, self;
};

struct hearth_upload_analysis {
    struct hearth_upload_element *elements;
    size_t n_elements;
    struct hearth_str unit;
    struct hearth_str *sample_types; /* sample types that can be analysed */
    size_t n_sample_types;
    struct hearth_str tip;
};

/*
 * Build one tree of the pprof uploads of a task: values of one sample type, summed over instances
 * (empty list: all). The root is "root"; children are sorted by total. The tip says since when
 * cumulative values count. INVALID_ARGUMENT: no upload has the sample type.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_task_analyze_uploads(const struct hearth_call *call,
                                               struct hearth_str task_id,
                                               const struct hearth_str *instances,
                                               size_t n_instances, struct hearth_str sample_type,
                                               struct hearth_upload_analysis *ret,
                                               struct hearth_err *err);

#endif
