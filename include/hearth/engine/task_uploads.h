/*
 * task_uploads.h -- whole files that agents send for tasks: pprof of Go programs, JFR of JVMs.
 *
 * A file is kept as it came. A pprof is an ordinary profile, too, through ingest: __name__ by the event of its task, else
 * by its sample types as for /ingest; labels service_name and instance. Values that Go counts from the start of the
 * process are what came since the file before (docs/reference/skywalking.md, Files). What ties samples to traced requests
 * (the labels of the Go agent) does not split series: which requests a file has is kept beside it, and their samples are
 * read from it.
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
    struct hearth_str service, instance; /* empty: as the task says, when it is known */
    const char *format;
    struct hearth_str content;
};

/*
 * Keep a file; it is committed, as a profile as well, when this returns. The same file again changes nothing.
 * INVALID_ARGUMENT: larger than max_task_upload_bytes, empty, no pprof or no JFR; nothing is kept then, and the caller
 * calls hearth_task_upload_refused.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_task_upload(const struct hearth_call *call, struct hearth_ingest *ingest,
                                      const struct hearth_upload_spec *spec,
                                      struct hearth_err *err);

/* What the log of a task says of an instance's file. Numbers as in hearth.v1.TaskEvent. */
enum hearth_upload_event {
    HEARTH_UPLOAD_FINISHED = 2,
    HEARTH_UPLOAD_TOO_LARGE = 3,
    HEARTH_UPLOAD_FAILED = 4,
};

/* A task that is not known has no log: nothing happens. */
HEARTH_MUST_CHECK
enum hearth_status hearth_task_upload_log(const struct hearth_call *call, struct hearth_str task_id,
                                          struct hearth_str instance,
                                          enum hearth_upload_event event, struct hearth_str message,
                                          struct hearth_err *err);

/*
 * Whether a file may come: the task exists and was handed out to the instance; service and instance empty, where the agent
 * does not say them: to anybody. NOT_FOUND, FAILED_PRECONDITION.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_task_upload_expected(const struct hearth_call *call,
                                               struct hearth_str task_id, struct hearth_str service,
                                               struct hearth_str instance, struct hearth_err *err);
/*
 * Count a file that was refused, and note in the log of its task why; instance empty: of the only one that was told. Failures are only
 * logged.
 */
void hearth_task_upload_refused(const struct hearth_call *call, struct hearth_str task_id,
                                struct hearth_str instance, const struct hearth_err *why);

HEARTH_MUST_CHECK
enum hearth_status hearth_task_uploads(const struct hearth_call *call, struct hearth_str task_id,
                                       struct hearth_task_upload **ret, size_t *ret_n,
                                       struct hearth_err *err);
/* With its content. NOT_FOUND. */
HEARTH_MUST_CHECK
enum hearth_status hearth_task_upload_get(const struct hearth_call *call,
                                          struct hearth_str upload_id,
                                          struct hearth_task_upload *ret, struct hearth_err *err);

struct hearth_upload_element {
    uint32_t id;       /* depth first, from 0 */
    int64_t parent_id; /* -1: the root */
    struct hearth_str
        code_signature; /* function:line; of inlined frames the lines joined with ";" */
    int64_t total, self;
};

struct hearth_upload_analysis {
    struct hearth_upload_element *elements;
    size_t n_elements;
    struct hearth_str unit;
    struct hearth_str *sample_types; /* that could be asked for */
    size_t n_sample_types;
    struct hearth_str tip;
};

/*
 * One tree of the pprof uploads of a task, values of one sample type added over instances (none: all); the root is
 * "root", children by total. The tip says since when cumulative values count. INVALID_ARGUMENT for a sample type that none has.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_task_analyze_uploads(const struct hearth_call *call,
                                               struct hearth_str task_id,
                                               const struct hearth_str *instances,
                                               size_t n_instances, struct hearth_str sample_type,
                                               struct hearth_upload_analysis *ret,
                                               struct hearth_err *err);

#endif
