/*
 * task_intake.c -- stack traces of agents: gathered, then written as chunks and as profiles
 * (contract: hearth/engine/task_stacks.h).
 *
 * A write has three steps: store new chunks in one transaction; push profiles of all chunks that
 * are not profiles yet; mark these chunks. If a step fails, the agent gets no answer and sends the
 * data again; the first step then finds the stored chunks. The idempotency key of a profile is the
 * hash of its chunk, so the second step may be repeated. For agents that do not send again,
 * task_leftovers.c repeats the second and third step.
 */
#include "hearth/base/budget.h"
#include "hearth/base/log.h"
#include "hearth/base/mem.h"
#include "hearth/base/metrics.h"
#include "hearth/engine/task_stacks.h"
#include "hearth/model/entity_id.h"
#include "hearth/store/store_agents.h"
#include "hearth/store/store_tasks.h"
#include "hearth/store/task_results.h"

#include "common/shown.h"
#include "common/task_refusals.h"
#include "ingest/push_wait.h"
#include "select/query_internal.h"
#include "tasks/task_profile.h"
#include "tasks/tasks_internal.h"

#include <assert.h>
#include <stdio.h>

#define MAX_GROUPS        1000 /* flushes gathered together */
#define MAX_WAIT_NS       (5 * HEARTH_NS_PER_SEC)
#define MAX_ID_BYTES      1024
#define GROUP_BYTES       4096 /* approximate size of an empty group's tables */
#define UNKNOWN_SERVICE   "unknown_service"
#define MAX_SERIES_LABELS 5
#define MAX_LEFT          20 /* leftover flushes read at once */

/* The gathered data of one run and flush. */
struct flush_group {
    struct hearth_task_metadata metadata; /* texts in the intake's arena */
    enum hearth_stack_kind kind;
    struct hearth_task_builder *builder;
    int64_t n_ns; /* sum over the group; for on-CPU data of unknown period, dumps */
};

struct hearth_task_intake {
    struct hearth_ingest *ingest;
    struct hearth_query_engine *engine;
    struct hearth_str tenant;       /* owned */
    const struct hearth_view *view; /* NULL: all of the tenant; in of_view */
    struct hearth_arena of_view;
    struct hearth_limits limits; /* limits of the tenant */
    struct hearth_arena arena;   /* gathered data; reset by each write */
    struct hearth_arena about;   /* texts of the latest metadata */
    struct hearth_task_metadata metadata;
    bool has_metadata;
    struct flush_group groups[MAX_GROUPS];
    size_t n_groups, last; /* last: index of the group of the latest datum */
    size_t n_bytes;
    int64_t first_mono_ns;
    struct hearth_task_notes notes;
    uint64_t n_repeated;
};

/* ---- gathering ---- */

enum hearth_status hearth_task_intake_new(struct hearth_ingest *ingest,
                                          const struct hearth_call *call,
                                          struct hearth_budget *budget,
                                          struct hearth_task_intake **ret, struct hearth_err *err)
{
    assert(ret != NULL);
    assert(ingest != NULL && call != NULL && call->engine != NULL);

    struct hearth_str tenant = call->tenant;

    struct hearth_task_intake *intake = hearth_mem_zalloc(sizeof *intake);

    if (intake == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory to gather stack traces");
    }

    /* Both arenas are unlimited; gathered data count in the budget. */
    intake->ingest = ingest;
    intake->engine = call->engine;
    hearth_query_tenant_limits(call->engine, tenant, &intake->limits);
    hearth_arena_init(&intake->arena, 0);
    hearth_arena_init(&intake->about, 0);
    intake->arena.budget = budget;

    /* The tenant's name and the view must outlive the message that made the intake. */
    hearth_arena_init(&intake->of_view, 0);
    if (hearth_call_is_narrow(call)) {
        intake->view = hearth_view_copy(call->view, &intake->of_view);
    }
    char *copy = hearth_mem_alloc(tenant.n + 1);
    if (copy == NULL || (hearth_call_is_narrow(call) && intake->view == NULL)) {
        hearth_arena_release(&intake->of_view);
        hearth_mem_free(copy);
        hearth_mem_free(intake);
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory to gather stack traces");
    }

    memcpy(copy, tenant.p, tenant.n);
    intake->tenant = hearth_str_n(copy, tenant.n);
    *ret = intake;

    return HEARTH_OK;
}

static void discard_groups(struct hearth_task_intake *intake)
{
    assert(intake->n_groups <= MAX_GROUPS);

    for (size_t i = 0; i < intake->n_groups; i++) {
        hearth_task_builder_free(intake->groups[i].builder);
    }
    intake->n_groups = intake->last = intake->n_bytes = 0;
    hearth_arena_reset(&intake->arena);
}

void hearth_task_intake_free(struct hearth_task_intake *intake)
{
    if (intake == NULL) {
        return;
    }

    /* Gathered data that were not written are discarded. */
    discard_groups(intake);
    hearth_arena_release(&intake->arena);
    hearth_arena_release(&intake->about);
    hearth_arena_release(&intake->of_view);
    char *tenant;
    memcpy(&tenant, &intake->tenant.p, sizeof tenant);
    hearth_mem_free(tenant);
    hearth_mem_free(intake);
}

static enum hearth_status check_metadata_id(const char *what, struct hearth_str id,
                                            struct hearth_err *err)
{
    if (id.n == 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "task metadata without %s", what);
    }
    if (id.n > MAX_ID_BYTES) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "%s of %zu bytes; at most %d are taken",
                           what, id.n, MAX_ID_BYTES);
    }

    return HEARTH_OK;
}

/*
 * Check times like those of profiles, so that ingest does not refuse a chunk later, and so that
 * every run expires some day.
 */
static enum hearth_status check_metadata_times(const struct hearth_limits *limits,
                                               const struct hearth_task_metadata *metadata,
                                               struct hearth_err *err)
{
    int64_t now_ms = hearth_clock_wall_ns() / HEARTH_NS_PER_MS, at_ms = metadata->at_ms;
    int64_t oldest = limits->reject_older_than_ns > 0
                         ? now_ms - limits->reject_older_than_ns / HEARTH_NS_PER_MS
                         : 1;
    int64_t newest =
        limits->reject_newer_than_ns > 0 && limits->reject_newer_than_ns < INT64_MAX / 2
            ? now_ms + limits->reject_newer_than_ns / HEARTH_NS_PER_MS
            : INT64_MAX / HEARTH_NS_PER_MS;

    /* The time of the flush must lie within the ingestion window. */
    if (at_ms < oldest || at_ms <= 0 || at_ms > newest) {
        char clock[96];
        hearth_task_clock_text(((double)at_ms - (double)now_ms) * 1e6, clock);
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "%s: currentTime %lld is outside of the ingestion window, from %lld to "
                           "%lld (limits reject-older-than, reject-newer-than)",
                           clock, (long long)at_ms, (long long)oldest, (long long)newest);
    }

    /* The start of the run may lie far back, but not ahead. */
    if (metadata->start_ms < 0 || metadata->start_ms > newest) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "profilingStartTime is %lld; 0 to %lld is taken (limit "
                           "reject-newer-than)",
                           (long long)metadata->start_ms, (long long)newest);
    }

    return HEARTH_OK;
}

/*
 * A narrowed sender must see the whole service of the task, and that of the process, whose names
 * the profiles get; one of the two must exist. The refusal names no hidden service, because the
 * sender gave ids only.
 */
static enum hearth_status check_metadata_view(struct hearth_task_intake *intake,
                                              struct hearth_err *err)
{
    const struct hearth_call call = {.engine = intake->engine,
                                     .tenant = intake->tenant,
                                     .view = intake->view,
                                     .arena = &intake->about};
    const struct hearth_process_filter filter = {.process_id = intake->metadata.process_id};
    struct hearth_str services[2];
    struct hearth_process *found;
    struct hearth_task task;
    char text[HEARTH_NARROWED_BYTES];
    size_t n, n_services = 0;

    if (!hearth_call_is_narrow(&call)) {
        return HEARTH_OK;
    }

    /* Find the services. */
    enum hearth_status status =
        hearth_store_task_get(HEARTH_CALL_SCOPE(&call), intake->metadata.task_id, &task, err);
    if (status == HEARTH_OK) {
        services[n_services++] = task.service;
    } else if (status != HEARTH_NOT_FOUND) {
        return status;
    }
    HEARTH_TRY(hearth_store_processes(HEARTH_CALL_SCOPE(&call), &filter, &found, &n, err));
    if (n > 0) {
        services[n_services++] = found[0].service;
    }

    /* Check that the sender sees them. */
    bool shows = n_services > 0;
    for (size_t i = 0; i < n_services && shows; i++) {
        HEARTH_TRY(hearth_call_shows_service(&call, NULL, services[i], &shows, err));
    }
    if (!shows) {
        return HEARTH_FAIL(err, HEARTH_PERMISSION_DENIED,
                           "the credential is narrowed to %s, and does not see task "
                           "\"" HEARTH_STR_FMT "\" and process \"" HEARTH_STR_FMT "\"",
                           hearth_view_text(call.view, text),
                           HEARTH_STR_ARG(intake->metadata.task_id),
                           HEARTH_STR_ARG(intake->metadata.process_id));
    }

    for (size_t i = 0; i < n_services; i++) {
        HEARTH_TRY(hearth_call_check_later(&call, services[i], err));
    }

    return HEARTH_OK;
}

enum hearth_status hearth_task_intake_metadata(struct hearth_task_intake *intake,
                                               const struct hearth_task_metadata *metadata,
                                               struct hearth_err *err)
{
    /* Until the metadata are valid, data are refused. */
    intake->has_metadata = false;
    intake->metadata = (struct hearth_task_metadata){0};
    HEARTH_TRY(check_metadata_id("taskId", metadata->task_id, err));
    HEARTH_TRY(check_metadata_id("processId", metadata->process_id, err));

    /* Keep the metadata before the times are checked, because a refusal is logged with the task. */
    hearth_arena_reset(&intake->about);
    intake->metadata = *metadata;
    intake->metadata.task_id = hearth_arena_str(&intake->about, metadata->task_id);
    intake->metadata.process_id = hearth_arena_str(&intake->about, metadata->process_id);
    if (intake->about.refused) {
        return HEARTH_FAIL_ARENA(err, &intake->about);
    }

    HEARTH_TRY(check_metadata_view(intake, err));
    HEARTH_TRY(check_metadata_times(&intake->limits, metadata, err));
    intake->has_metadata = true;

    return HEARTH_OK;
}

void hearth_task_intake_refused(struct hearth_task_intake *intake, const struct hearth_err *why,
                                struct hearth_cancel *cancel)
{
    struct hearth_task_refusal refusal = {
        .task_id = intake->metadata.task_id,
        .process_id = intake->metadata.process_id,
        .at_ms = hearth_clock_wall_ns() / HEARTH_NS_PER_MS,
        .message = hearth_task_refusal_text(why, &intake->about),
    };

    /* Without a task, the refusal cannot be logged. */
    if (refusal.task_id.n == 0 || refusal.message.p == NULL) {
        return;
    }

    struct hearth_err err = {0};
    if (hearth_store_task_log_refusal(&(const struct hearth_scope){.store = intake->engine->store,
                                                                   .tenant = intake->tenant,
                                                                   .cancel = cancel},
                                      &refusal, &err) != HEARTH_OK) {
        HEARTH_LOG(HEARTH_LOG_WARN, "tasks", "could not log a refusal with its task", "error",
                   err.msg, NULL);
    }
}

static bool belongs_to_flush(const struct flush_group *group,
                             const struct hearth_task_metadata *metadata,
                             enum hearth_stack_kind kind)
{
    return group->kind == kind && group->metadata.at_ms == metadata->at_ms &&
           group->metadata.start_ms == metadata->start_ms &&
           hearth_str_eq(group->metadata.process_id, metadata->process_id) &&
           hearth_str_eq(group->metadata.task_id, metadata->task_id);
}

static enum hearth_status make_flush_group(struct hearth_task_intake *intake,
                                           enum hearth_stack_kind kind, struct flush_group *ret,
                                           struct hearth_err *err)
{
    const struct hearth_limits *limits = &intake->limits;
    const struct hearth_task_limits cut = {
        .max_depth = limits->max_stack_depth > 0 && limits->max_stack_depth < UINT32_MAX
                         ? (uint32_t)limits->max_stack_depth
                         : 0,
        .max_symbol_bytes = limits->max_symbol_bytes > 0 && limits->max_symbol_bytes < UINT32_MAX
                                ? (uint32_t)limits->max_symbol_bytes
                                : 0,
    };
    struct hearth_arena *arena = &intake->arena;

    *ret = (struct flush_group){.kind = kind, .metadata = intake->metadata};
    ret->metadata.task_id = hearth_arena_str(arena, intake->metadata.task_id);
    ret->metadata.process_id = hearth_arena_str(arena, intake->metadata.process_id);
    if (arena->refused) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    ret->builder = hearth_task_builder_new(kind, &cut, arena);

    return ret->builder != NULL ? HEARTH_OK
                                : (enum hearth_status)HEARTH_FAIL(
                                      err, HEARTH_NO_MEMORY, "no memory to gather stack traces");
}

/* Find or make the group of the latest metadata, and set intake->last. */
static enum hearth_status find_flush_group(struct hearth_task_intake *intake,
                                           enum hearth_stack_kind kind, struct hearth_err *err)
{
    /* Most data belong to the group of the previous datum. */
    assert(intake->n_groups < MAX_GROUPS);

    if (intake->last < intake->n_groups &&
        belongs_to_flush(&intake->groups[intake->last], &intake->metadata, kind)) {
        return HEARTH_OK;
    }

    size_t i = 0;
    while (i < intake->n_groups && !belongs_to_flush(&intake->groups[i], &intake->metadata, kind)) {
        i++;
    }

    /* Make a new group; the first one starts the wait. */
    if (i == intake->n_groups) {
        HEARTH_TRY(make_flush_group(intake, kind, &intake->groups[i], err));
        intake->n_groups++;
        intake->n_bytes += GROUP_BYTES;
        if (i == 0) {
            intake->first_mono_ns = hearth_clock_mono_ns();
        }
    }

    intake->last = i;

    return HEARTH_OK;
}

static bool is_write_due(const struct hearth_task_intake *intake)
{
    int64_t max = intake->limits.max_task_chunk_bytes;
    return (max > 0 && intake->n_bytes >= (uint64_t)max) || intake->n_groups == MAX_GROUPS ||
           hearth_clock_mono_ns() - intake->first_mono_ns >= MAX_WAIT_NS;
}

/*
 * Add the duration of a datum to the group. Equal stacks are summed in the profile, so the sum must
 * fit 64 bits before anything is stored.
 */
static enum hearth_status add_duration(const struct hearth_task_intake *intake,
                                       const struct hearth_task_datum *datum,
                                       struct flush_group *group, struct hearth_err *err)
{
    int64_t period_ns = intake->limits.agent_oncpu_period_ns, n_ns = datum->duration_ns;
    bool is_on = group->kind == HEARTH_STACKS_ON_CPU;

    if ((is_on && __builtin_mul_overflow(datum->count, period_ns > 0 ? period_ns : 1, &n_ns)) ||
        __builtin_add_overflow(group->n_ns, n_ns, &group->n_ns)) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "the stack traces of a flush last longer than 64 bits of nanoseconds");
    }

    return HEARTH_OK;
}

enum hearth_status hearth_task_intake_add(struct hearth_task_intake *intake,
                                          enum hearth_stack_kind kind,
                                          const struct hearth_task_datum *datum,
                                          struct hearth_cancel *cancel, struct hearth_err *err)
{
    if (!intake->has_metadata) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "stack traces came before the metadata of their task");
    }

    /* Add the datum to its group. */
    HEARTH_TRY(find_flush_group(intake, kind, err));
    struct flush_group *group = &intake->groups[intake->last];
    struct hearth_task_builder *builder = group->builder;
    size_t before = hearth_task_builder_bytes(builder);
    HEARTH_TRY(hearth_task_builder_add(builder, datum, &intake->notes, err));
    HEARTH_TRY(add_duration(intake, datum, group, err));

    /* Write if enough was gathered. */
    intake->n_bytes += hearth_task_builder_bytes(builder) - before;

    return is_write_due(intake) ? hearth_task_intake_write(intake, cancel, err) : HEARTH_OK;
}

/* ---- writing ---- */

/* List the groups that have data as flushes. */
static enum hearth_status list_flushes(struct hearth_task_intake *intake,
                                       struct hearth_arena *arena, struct hearth_task_flush **ret,
                                       size_t *ret_n, struct hearth_err *err)
{
    struct hearth_task_flush *flushes =
        hearth_arena_calloc(arena, intake->n_groups, sizeof *flushes);
    struct hearth_task_chunk *chunks = hearth_arena_array(arena, intake->n_groups, sizeof *chunks);
    struct hearth_entity_hash hash;
    size_t n = 0;

    if (flushes == NULL || chunks == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    /* A group is empty if all its data were dropped. */
    for (size_t i = 0; i < intake->n_groups; i++) {
        const struct hearth_task_metadata *m = &intake->groups[i].metadata;
        hearth_task_builder_chunk(intake->groups[i].builder, &chunks[n]);
        if (chunks[n].n_records == 0) {
            continue;
        }
        if (!hearth_schedule_public_id(m->task_id, m->process_id, m->start_ms, &hash)) {
            return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the id of a schedule");
        }

        flushes[n] = (struct hearth_task_flush){
            .task_id = m->task_id,
            .process_id = m->process_id,
            .schedule_id = hearth_arena_str(arena, hearth_str_c(hash.text)),
            .start_ms = m->start_ms,
            .at_ms = m->at_ms,
            .chunk = &chunks[n],
        };
        n++;
    }

    *ret = flushes;
    *ret_n = n;

    return arena->refused ? (enum hearth_status)HEARTH_FAIL_ARENA(err, arena) : HEARTH_OK;
}

static enum hearth_status store_flushes(const struct hearth_scope *scope,
                                        struct hearth_task_flush *flushes, size_t n,
                                        struct hearth_err *err)
{
    int32_t unknown;

    assert(flushes != NULL && n > 0);

    /* A process that no agent reported belongs to the service unknown_service, made on demand. */
    enum hearth_status status = hearth_store_task_flushes_put(scope, flushes, n, 0, false, err);
    if (status != HEARTH_NOT_FOUND) {
        return status;
    }

    HEARTH_TRY(hearth_store_service_id(scope, HEARTH_STR(UNKNOWN_SERVICE), true, &unknown, err));

    return hearth_store_task_flushes_put(scope, flushes, n, unknown, false, err);
}

static void log_unknown_process(const struct hearth_task_flush *flush)
{
    char process[96], task[96];

    (void)snprintf(process, sizeof process, "%.*s", HEARTH_STR_ARG(flush->process_id));
    (void)snprintf(task, sizeof task, "%.*s", HEARTH_STR_ARG(flush->task_id));
    HEARTH_LOG(HEARTH_LOG_WARN, "tasks", "stack traces of a process that no agent reported",
               "process_id", process, "task_id", task, NULL);
}

static void add_series_label(struct hearth_push_series *series, const char *name,
                             struct hearth_str value)
{
    if (value.n > 0) {
        series->labels[series->n_labels++] = (struct hearth_label){hearth_str_c(name), value};
    }
}

static void make_series_labels(const struct hearth_task_flush *flush,
                               struct hearth_push_series *series)
{
    struct hearth_str service = flush->service.n > 0        ? flush->service
                                : flush->task_service.n > 0 ? flush->task_service
                                                            : HEARTH_STR(UNKNOWN_SERVICE);

    add_series_label(series, HEARTH_LABEL_NAME, hearth_task_profile_name(flush->chunk->kind));
    add_series_label(series, HEARTH_LABEL_SERVICE, service);
    add_series_label(series, "instance", flush->instance);
    add_series_label(series, "process_name", flush->process);
    if (flush->process.n == 0) {
        add_series_label(series, "process_id", flush->process_id);
    }
}

/* The push id of a chunk, the same whenever it is pushed. */
static struct hearth_str make_chunk_push_id(const struct hearth_task_flush *flush,
                                            const struct hearth_task_part *part,
                                            struct hearth_arena *arena)
{
    return hearth_str_c(
        hearth_arena_printf(arena, "stacks " HEARTH_STR_FMT " %lld %016llx%016llx",
                            HEARTH_STR_ARG(flush->schedule_id), (long long)flush->at_ms,
                            (unsigned long long)part->hash.hi, (unsigned long long)part->hash.lo));
}

static enum hearth_status make_chunk_sample(const struct hearth_task_intake *intake,
                                            const struct hearth_task_flush *flush,
                                            const struct hearth_task_part *part,
                                            struct hearth_arena *arena,
                                            struct hearth_push_sample *ret, struct hearth_err *err)
{
    int64_t from_ms = flush->previous_ms > 0 ? flush->previous_ms : flush->start_ms;
    int64_t lasted_ms = flush->at_ms > from_ms ? flush->at_ms - from_ms : 0;
    const struct hearth_task_profile_about about = {
        .process = flush->process,
        .oncpu_period_ns = intake->limits.agent_oncpu_period_ns,
        .time_ns = flush->at_ms * HEARTH_NS_PER_MS,
        .duration_ns = lasted_ms < INT64_MAX / HEARTH_NS_PER_MS ? lasted_ms * HEARTH_NS_PER_MS : 0,
    };
    struct hearth_profile *profile = hearth_arena_alloc(arena, sizeof *profile);

    if (profile == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    /* Make the profile, and its push id from the hash of the chunk. */
    HEARTH_TRY(hearth_task_profile_make(&part->chunk, &about, arena, profile, err));
    *ret = (struct hearth_push_sample){
        .id = make_chunk_push_id(flush, part, arena),
        .decoded = profile,
        .n_bytes = part->chunk.n_records * sizeof(struct hearth_task_record),
    };

    return ret->id.p == NULL ? (enum hearth_status)HEARTH_FAIL_ARENA(err, arena) : HEARTH_OK;
}

/*
 * Make a series with one sample for each part that is not a profile yet, in the order of flushes
 * and parts.
 */
static enum hearth_status make_chunk_series(const struct hearth_task_intake *intake,
                                            const struct hearth_task_flush *flushes, size_t n,
                                            struct hearth_arena *arena,
                                            struct hearth_push_series **ret, size_t *ret_n,
                                            struct hearth_err *err)
{
    size_t n_parts = 0;

    for (size_t i = 0; i < n; i++) {
        n_parts += flushes[i].n_parts;
    }

    /* Reserve all series at once. */
    struct hearth_push_series *series = hearth_arena_calloc(arena, n_parts, sizeof *series);
    struct hearth_push_sample *samples = hearth_arena_array(arena, n_parts, sizeof *samples);
    struct hearth_label *labels =
        hearth_arena_array(arena, n_parts * MAX_SERIES_LABELS, sizeof *labels);
    if (series == NULL || samples == NULL || labels == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    *ret = series;
    *ret_n = n_parts;

    /* Fill them one by one. */
    for (size_t i = 0; i < n; i++) {
        for (size_t p = 0; p < flushes[i].n_parts; p++) {
            series->labels = labels;
            series->samples = samples;
            series->n_samples = 1;
            make_series_labels(&flushes[i], series);
            HEARTH_TRY(
                make_chunk_sample(intake, &flushes[i], &flushes[i].parts[p], arena, samples, err));
            series++;
            samples++;
            labels += MAX_SERIES_LABELS;
        }
    }

    return HEARTH_OK;
}

static enum hearth_status push_chunk_parts(struct hearth_task_intake *intake,
                                           const struct hearth_scope *scope,
                                           struct hearth_task_flush *flushes, size_t n,
                                           struct hearth_err *err)
{
    struct hearth_push_series *series;
    size_t n_series;

    /* Push all parts as one request. */
    HEARTH_TRY(make_chunk_series(intake, flushes, n, scope->arena, &series, &n_series, err));
    if (n_series == 0) {
        return HEARTH_OK;
    }

    struct hearth_push_receipt *receipts =
        hearth_arena_array(scope->arena, n_series, sizeof *receipts);
    if (receipts == NULL) {
        return HEARTH_FAIL_ARENA(err, scope->arena);
    }

    const struct hearth_push_request push = {
        .tenant = intake->tenant, .view = intake->view, .series = series, .n_series = n_series};
    HEARTH_TRY(hearth_push_wait(intake->ingest, &push, scope->cancel, receipts, err));

    /* Note the profile of each part, and mark the parts as pushed. */
    for (size_t i = 0; i < n; i++) {
        for (size_t p = 0; p < flushes[i].n_parts; p++) {
            flushes[i].parts[p].profile = (receipts++)->profile;
        }
    }

    return hearth_store_task_parts_pushed(scope, flushes, n, err);
}

static void count_records(struct hearth_task_intake *intake,
                          const struct hearth_task_flush *flushes, size_t n)
{
    uint64_t discards[HEARTH_N_DISCARDS] = {0};
    uint64_t n_repeated = intake->notes.n_repeated, n_records = 0;

    /* Count truncated and dropped data. */
    discards[HEARTH_DISCARD_CUT_STACKS] = intake->notes.stacks_cut;
    discards[HEARTH_DISCARD_CUT_FRAMES] = intake->notes.frames_cut;
    discards[HEARTH_DISCARD_CUT_STRINGS] = intake->notes.strings_cut;
    discards[HEARTH_DISCARD_ZERO_SAMPLES] = intake->notes.n_empty;
    hearth_discards_count(discards);
    intake->notes = (struct hearth_task_notes){0};

    /* Count the stored records of each flush. */
    for (size_t i = 0; i < n; i++) {
        n_records += flushes[i].chunk->n_records - flushes[i].n_repeated;
        n_repeated += flushes[i].n_repeated;
        if (flushes[i].process.n == 0) {
            log_unknown_process(&flushes[i]);
        }
    }

    hearth_metric_add_label(HEARTH_M_TASK_STACKS, HEARTH_STR("stored"), (int64_t)n_records);
    hearth_metric_add_label(HEARTH_M_TASK_STACKS, HEARTH_STR("repeated"), (int64_t)n_repeated);
}

static enum hearth_status write_flush_groups(struct hearth_task_intake *intake,
                                             const struct hearth_scope *scope,
                                             struct hearth_err *err)
{
    struct hearth_task_flush *flushes;
    size_t n;

    /* The steps of the file's head: chunks, then profiles, then marks. */
    HEARTH_TRY(list_flushes(intake, scope->arena, &flushes, &n, err));
    if (n > 0) {
        HEARTH_TRY(store_flushes(scope, flushes, n, err));
        HEARTH_TRY(push_chunk_parts(intake, scope, flushes, n, err));
    }

    count_records(intake, flushes, n);

    return HEARTH_OK;
}

/* ---- leftovers ---- */

static enum hearth_status fail_damaged(const struct hearth_task_flush *flush,
                                       struct hearth_err *err)
{
    return HEARTH_FAIL(err, HEARTH_CORRUPT,
                       "stored stack traces of task \"" HEARTH_STR_FMT
                       "\", flushed at %lld ms, are damaged",
                       HEARTH_STR_ARG(flush->task_id), (long long)flush->at_ms);
}

/* Push the flushes one by one, so that one that fails does not hold up the others. */
static enum hearth_status push_leftover_flushes(struct hearth_task_intake *intake,
                                                const struct hearth_scope *scope, int64_t from_ms,
                                                int64_t to_ms, struct hearth_err *err)
{
    const struct hearth_task_range range = {from_ms, to_ms};
    struct hearth_task_flush *flushes;
    size_t n;

    HEARTH_TRY(hearth_store_task_flushes_left(scope, &range, MAX_LEFT, &flushes, &n, err));

    enum hearth_status status = HEARTH_OK;
    for (size_t i = 0; i < n; i++) {
        enum hearth_status one = flushes[i].n_parts == 0
                                     ? fail_damaged(&flushes[i], err)
                                     : push_chunk_parts(intake, scope, &flushes[i], 1, err);
        status = one == HEARTH_OK ? status : one;
    }

    return status;
}

enum hearth_status hearth_task_stacks_push_left(const struct hearth_call *call,
                                                struct hearth_ingest *ingest, int64_t from_ms,
                                                int64_t to_ms, struct hearth_err *err)
{
    struct hearth_task_intake *intake;

    HEARTH_TRY(hearth_task_intake_new(ingest, call, call->arena->budget, &intake, err));

    struct hearth_arena arena;
    hearth_arena_init_like(&arena, &intake->arena);
    const struct hearth_scope scope = {.store = intake->engine->store,
                                       .tenant = intake->tenant,
                                       .cancel = call->cancel,
                                       .arena = &arena};
    enum hearth_status status = push_leftover_flushes(intake, &scope, from_ms, to_ms, err);
    hearth_arena_release(&arena);
    hearth_task_intake_free(intake);

    return status;
}

enum hearth_status hearth_task_intake_write(struct hearth_task_intake *intake,
                                            struct hearth_cancel *cancel, struct hearth_err *err)
{
    if (intake->n_groups == 0) {
        return HEARTH_OK;
    }

    struct hearth_arena arena;
    hearth_arena_init_like(&arena, &intake->arena);
    const struct hearth_scope scope = {.store = intake->engine->store,
                                       .tenant = intake->tenant,
                                       .cancel = cancel,
                                       .arena = &arena};
    enum hearth_status status = write_flush_groups(intake, &scope, err);
    hearth_arena_release(&arena);
    discard_groups(intake);

    return status;
}
