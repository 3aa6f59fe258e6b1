/*
 * task_stacks.h -- stack traces that agents send for on-CPU and off-CPU tasks: intake and analysis.
 *
 * Intake: data are gathered by run (task, process, start) and flush, and written together, as
 * chunks (store/task_results.h) and as ordinary profiles through ingest. Written data are committed
 * when the call returns. A repeated flush is not stored twice: in chunks never, in profiles within
 * an hour.
 *
 * Profiles: __name__ process_cpu with samples:count and, if the limit agent_oncpu_period_ns gives
 * the time that a dump stands for, cpu:nanoseconds; off_cpu with off_cpu:nanoseconds and
 * switches:count. Labels service_name, instance and process_name; process_id if the process is
 * unknown. Kernel frames have the mapping [kernel], frames of the program a mapping named like its
 * process. Time: the flush; duration: since the previous flush.
 *
 * Ownership: inputs are borrowed; answers live in the call's arena.
 * Threads:   an intake belongs to one thread at a time; calls wait for the database.
 * Source:    Apache SkyWalking's public protocol, ebpf/profiling/Profile.proto;
 *            docs/reference/skywalking.md.
 */
#ifndef HEARTH_ENGINE_TASK_STACKS_H
#define HEARTH_ENGINE_TASK_STACKS_H

#include "hearth/engine/call.h"
#include "hearth/engine/ingest.h"
#include "hearth/model/task.h"
#include "hearth/model/task_chunk.h"
#include "hearth/store/task_results.h"

/* ---- intake ---- */

struct hearth_task_intake;

struct hearth_task_metadata {
    struct hearth_str task_id, process_id;
    int64_t start_ms, at_ms; /* start of the run; time of this flush */
};

/*
 * Make an intake for the tenant and view of a call, which are copied. ingest and the engine of the
 * call are kept. budget: for gathered data; may be NULL.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_task_intake_new(struct hearth_ingest *ingest,
                                          const struct hearth_call *call,
                                          struct hearth_budget *budget,
                                          struct hearth_task_intake **ret, struct hearth_err *err);
/* Free an intake; data that were not written are discarded. NULL-safe. */
void hearth_task_intake_free(struct hearth_task_intake *intake);
/*
 * Set the run and flush of the data that follow. INVALID_ARGUMENT: an id is missing or too long, or
 * the time is outside the ingestion window. PERMISSION_DENIED: the call is narrowed, and no
 * selector of its view names the service of the task, or that of the process, alone.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_task_intake_metadata(struct hearth_task_intake *intake,
                                               const struct hearth_task_metadata *metadata,
                                               struct hearth_err *err);
/*
 * Gather one stack trace. Gathered data are written when they reach max_task_chunk_bytes or are 5 s
 * old. INVALID_ARGUMENT: no metadata yet. Further errors as of hearth_task_builder_add and
 * hearth_task_intake_write.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_task_intake_add(struct hearth_task_intake *intake,
                                          enum hearth_stack_kind kind,
                                          const struct hearth_task_datum *datum,
                                          struct hearth_cancel *cancel, struct hearth_err *err);
/*
 * Note in the log of the task of the latest metadata why its data were refused. Failures are only
 * logged.
 */
void hearth_task_intake_refused(struct hearth_task_intake *intake, const struct hearth_err *why,
                                struct hearth_cancel *cancel);
/*
 * Write the gathered data. Errors as of hearth_ingest_push; UNAVAILABLE if the outcome is unknown.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_task_intake_write(struct hearth_task_intake *intake,
                                            struct hearth_cancel *cancel, struct hearth_err *err);

/*
 * Push, in parts, the stored flushes in [from, to] that are not profiles yet, with the budget of
 * the call's arena. Returns the status of the last push that failed; the other pushes were made.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_task_stacks_push_left(const struct hearth_call *call,
                                                struct hearth_ingest *ingest, int64_t from_ms,
                                                int64_t to_ms, struct hearth_err *err);

/* ---- analysis ---- */

HEARTH_MUST_CHECK
enum hearth_status hearth_task_schedules(const struct hearth_call *call, struct hearth_str task_id,
                                         struct hearth_task_schedule **ret, size_t *ret_n,
                                         struct hearth_err *err);

struct hearth_stack_analysis {
    struct hearth_stack_tree *trees;
    size_t n_trees;
    const char *unit;      /* "dumps", "switches" or "nanoseconds"; "": no data */
    struct hearth_str tip; /* what is missing and why; empty: nothing is missing */
};

/*
 * Build trees of the schedules' stack traces in the ranges. Ranges include both ends, overlapping
 * parts count once, and an empty list selects everything. NOT_FOUND: a schedule does not exist.
 * INVALID_ARGUMENT: no schedule, a range that ends before it starts, or schedules of on-CPU and
 * off-CPU tasks together. OUT_OF_RANGE: a sum exceeds 64 bits.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_task_analyze_stacks(const struct hearth_call *call,
                                              const struct hearth_str *schedule_ids, size_t n_ids,
                                              const struct hearth_task_range *ranges,
                                              size_t n_ranges, enum hearth_stack_weight weight,
                                              struct hearth_stack_analysis *ret,
                                              struct hearth_err *err);

#endif
