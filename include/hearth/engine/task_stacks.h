/*
 * task_stacks.h -- stack traces that agents send for on-CPU and off-CPU tasks: taken, kept twice, and analysed.
 *
 * Taken: data are gathered by run (task, process, start) and flush, and written together: as chunks (store/task_results.h)
 * and as ordinary profiles through ingest. What was written is committed when the call returns. The same flush may
 * come again: what is there already is not doubled, neither in chunks nor, within an hour, in profiles.
 *
 * Profiles: __name__ process_cpu with samples:count and, when the limit agent_oncpu_period_ns says what a dump stands for,
 * cpu:nanoseconds; off_cpu with off_cpu:nanoseconds and switches:count. Labels service_name, instance and
 * process_name; process_id where the process is not known. The kernel's frames are of the mapping [kernel], the
 * program's of one that is named like its process. Time: the flush; duration: since the flush before.
 *
 * Ownership: inputs are borrowed; answers live in the call's arena.
 * Threads:   an intake belongs to one thread at a time; calls wait for the database.
 * Source:    Apache SkyWalking's public protocol, ebpf/profiling/Profile.proto; docs/reference/skywalking.md.
 */
#ifndef HEARTH_ENGINE_TASK_STACKS_H
#define HEARTH_ENGINE_TASK_STACKS_H

#include "hearth/engine/call.h"
#include "hearth/engine/ingest.h"
#include "hearth/model/task.h"
#include "hearth/model/task_chunk.h"
#include "hearth/store/task_results.h"

/* ---- taking ---- */

struct hearth_task_intake;

struct hearth_task_metadata {
    struct hearth_str task_id, process_id;
    int64_t start_ms, at_ms; /* of the run; of this flush */
};

/* Both are kept; budget: of what is gathered, NULL: none. */
HEARTH_MUST_CHECK
enum hearth_status hearth_task_intake_new(struct hearth_ingest *ingest,
                                          struct hearth_query_engine *engine,
                                          struct hearth_str tenant, struct hearth_budget *budget,
                                          struct hearth_task_intake **ret, struct hearth_err *err);
/* What was not written is forgotten. NULL-safe. */
void hearth_task_intake_free(struct hearth_task_intake *intake);
/* Whose the next data are. INVALID_ARGUMENT: an id is missing or too long, or the time is outside the ingestion window. */
HEARTH_MUST_CHECK
enum hearth_status hearth_task_intake_metadata(struct hearth_task_intake *intake,
                                               const struct hearth_task_metadata *metadata,
                                               struct hearth_err *err);
/*
 * Gather one stack trace; writes what there is when that is max_task_chunk_bytes, or has waited 5 s.
 * INVALID_ARGUMENT before any metadata, and as hearth_task_builder_add and _write.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_task_intake_add(struct hearth_task_intake *intake,
                                          enum hearth_stack_kind kind,
                                          const struct hearth_task_datum *datum,
                                          struct hearth_cancel *cancel, struct hearth_err *err);
/* Note in the log of the task that had the latest metadata why its data was refused. Failures are only logged. */
void hearth_task_intake_refused(struct hearth_task_intake *intake, const struct hearth_err *why,
                                struct hearth_cancel *cancel);
/* Write what was gathered. As hearth_ingest_push; UNAVAILABLE when the outcome is not known. */
HEARTH_MUST_CHECK
enum hearth_status hearth_task_intake_write(struct hearth_task_intake *intake,
                                            struct hearth_cancel *cancel, struct hearth_err *err);

/*
 * Push what is stored of flushes in [from, to] and is no profile yet, some of it at a time. The status of the last that
 * failed; the others were pushed.
 */
HEARTH_MUST_CHECK
enum hearth_status
hearth_task_stacks_push_left(struct hearth_ingest *ingest, struct hearth_query_engine *engine,
                             struct hearth_str tenant, struct hearth_budget *budget, /* or NULL */
                             int64_t from_ms, int64_t to_ms, struct hearth_cancel *cancel,
                             struct hearth_err *err);

/* ---- asking ---- */

HEARTH_MUST_CHECK
enum hearth_status hearth_task_schedules(const struct hearth_call *call, struct hearth_str task_id,
                                         struct hearth_task_schedule **ret, size_t *ret_n,
                                         struct hearth_err *err);

struct hearth_stack_analysis {
    struct hearth_stack_tree *trees;
    size_t n_trees;
    const char *unit;      /* "dumps", "switches", "nanoseconds"; "": there were no data */
    struct hearth_str tip; /* what is missing, and why */
};

/*
 * Trees of the schedules' stack traces in the ranges (both ends included; overlaps count once; none: everything).
 * NOT_FOUND for a schedule that is not there, INVALID_ARGUMENT for none, for a range that ends before it starts, and
 * for schedules of on-CPU and off-CPU tasks together; OUT_OF_RANGE when a sum exceeds 64 bits.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_task_analyze_stacks(const struct hearth_call *call,
                                              const struct hearth_str *schedule_ids, size_t n_ids,
                                              const struct hearth_task_range *ranges,
                                              size_t n_ranges, enum hearth_stack_weight weight,
                                              struct hearth_stack_analysis *ret,
                                              struct hearth_err *err);

#endif
