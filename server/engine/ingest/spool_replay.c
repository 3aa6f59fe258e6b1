/*
 * spool_replay.c -- pushes the records that wait, from the first to the last, while the database
 * can be reached.
 *
 * A pass goes through the file once. A record that could not be stored for now waits for the next
 * pass; passes that settle nothing come less and less often.
 */
#include "hearth/base/budget.h"
#include "hearth/base/clock.h"
#include "hearth/base/log.h"
#include "hearth/base/metrics.h"
#include "hearth/model/ingest_error.h"
#include "hearth/store/store.h"

#include "ingest/push_job.h"
#include "ingest/push_wait.h"
#include "ingest/spool_internal.h"

#include <assert.h>
#include <unistd.h>

#define TICK_NS        (200 * HEARTH_NS_PER_MS)
#define FIRST_PAUSE_NS HEARTH_NS_PER_SEC
#define LAST_PAUSE_NS  (30 * HEARTH_NS_PER_SEC)

/* A record in work. */
struct replay {
    struct hearth_spool *spool;
    int64_t at;
    struct hearth_spool_header header;
    struct hearth_buf body;
    struct hearth_arena arena;
    struct hearth_spool_record record;
};

/* ---- which record ---- */

/* After a pass: empty the file, or go through it again later. */
static void end_pass(struct hearth_spool *spool)
{
    hearth_mutex_assert_held(&spool->lock);

    /* Headers that were damaged since the records were counted. */
    if (spool->is_pass_first && spool->n_waiting > 0) {
        HEARTH_LOG(HEARTH_LOG_ERROR, "spool", "spooled pushes cannot be found any more", "records",
                   hearth_log_i64(spool->n_waiting), NULL);
        hearth_metric_add(HEARTH_M_SPOOL_DAMAGED, spool->n_waiting);
        spool->n_waiting = 0;
    }

    hearth_spool_trim(spool);
    spool->pause_ns = spool->has_progress                   ? FIRST_PAUSE_NS
                      : spool->pause_ns * 2 > LAST_PAUSE_NS ? LAST_PAUSE_NS
                                                            : spool->pause_ns * 2;
    spool->pause_ns = spool->pause_ns < FIRST_PAUSE_NS ? FIRST_PAUSE_NS : spool->pause_ns;
    spool->next_pass_mono_ns = hearth_clock_mono_ns() + spool->pause_ns;
    spool->cursor = 0;
    spool->has_progress = false;
    spool->is_pass_first = true;
}

/* Take the next record that waits. False: none is left in this pass. The caller holds the lock. */
static bool take_record(struct hearth_spool *spool, struct replay *ret)
{
    hearth_mutex_assert_held(&spool->lock);

    int unread;

    ret->at = spool->cursor;
    while (hearth_spool_find(spool, &ret->at, spool->end, &ret->header, &unread)) {
        spool->cursor = ret->at + HEARTH_SPOOL_HEADER_BYTES + (int64_t)ret->header.n_body;
        if (ret->header.state == HEARTH_SPOOL_WAITING) {
            spool->oldest_ns = spool->is_pass_first ? ret->header.received_ns : spool->oldest_ns;
            spool->is_pass_first = false;
            spool->n_active++;
            return true;
        }
        ret->at = spool->cursor;
    }

    spool->cursor = spool->end;
    if (unread != 0) { /* what waits behind this place is not lost: the next pass tries again */
        HEARTH_LOG(HEARTH_LOG_ERROR, "spool", "cannot read the spool", "error",
                   strerrordesc_np(unread), NULL);
        spool->is_pass_first = false;
    }

    return false;
}

/* Wait for a record; false at the stop. */
static bool wait_for_record(struct hearth_spool *spool, struct replay *ret)
{
    bool found = false;

    hearth_mutex_lock(&spool->lock);
    while (!found && !spool->is_stopping) {
        int64_t now_ns = hearth_clock_mono_ns();
        bool is_due = spool->n_waiting > 0 && now_ns >= spool->next_pass_mono_ns &&
                      !hearth_store_is_away(spool->store);
        found = is_due && take_record(spool, ret);
        if (is_due && !found && spool->n_active == 0) {
            end_pass(spool);
        }
        if (!found) {
            hearth_spool_publish(spool);
            (void)hearth_mutex_wait_until(&spool->lock, &spool->waiting, now_ns + TICK_NS);
        }
    }
    hearth_mutex_unlock(&spool->lock);

    return found;
}

/* ---- the push of a record ---- */

static enum hearth_status read_record(struct replay *r, struct hearth_err *err)
{
    char *p = hearth_buf_reserve(&r->body, r->header.n_body);

    if (p == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for a spooled push");
    }

    for (uint32_t n = 0; n < r->header.n_body;) {
        ssize_t got = pread(r->spool->fd, p + n, r->header.n_body - n,
                            r->at + HEARTH_SPOOL_HEADER_BYTES + (int64_t)n);
        if (got <= 0) {
            return HEARTH_FAIL(err, HEARTH_UNAVAILABLE, "cannot read the spool");
        }
        n += (uint32_t)got;
    }
    r->body.n = r->header.n_body;

    return hearth_spool_body_read(&r->header, hearth_buf_view(&r->body), &r->arena, &r->record,
                                  err);
}

/* The series of the push, one for each profile. NULL: no memory. */
static struct hearth_push_series *make_series(struct replay *r)
{
    const struct hearth_spool_record *record = &r->record;
    struct hearth_push_series *series =
        hearth_arena_calloc(&r->arena, record->n_profiles, sizeof *series);
    struct hearth_push_sample *samples =
        hearth_arena_calloc(&r->arena, record->n_profiles, sizeof *samples);
    struct hearth_push_file *files =
        hearth_arena_calloc(&r->arena, record->n_files + 1, sizeof *files);

    if (series == NULL || samples == NULL || files == NULL) {
        return NULL;
    }

    for (size_t i = 0; i < record->n_files; i++) {
        const struct hearth_spool_file *in = &record->files[i];
        files[i] = (struct hearth_push_file){.name = in->name,
                                             .bytes = in->bytes,
                                             .part = (int32_t)in->part,
                                             .client_tags = in->client_tags};
    }
    for (size_t i = 0; i < record->n_profiles; i++) {
        const struct hearth_spool_profile *in = &record->profiles[i];
        samples[i] = (struct hearth_push_sample){
            .profile = in->is_file ? record->files[in->file].bytes : in->profile,
            .id = in->id,
            .file = in->file == HEARTH_SPOOL_NO_FILE ? NULL : &files[in->file],
        };
        series[i] = (struct hearth_push_series){in->labels, in->n_labels, &samples[i], 1};
    }

    return series;
}

/* Whether a profile failed for now; one that is refused would be refused again. */
static bool is_passing(enum hearth_status status, const struct hearth_err *err)
{
    return status == HEARTH_UNAVAILABLE || status == HEARTH_NO_MEMORY ||
           status == HEARTH_DEADLINE_EXCEEDED || status == HEARTH_CANCELLED ||
           status == HEARTH_ABORTED || (status == HEARTH_RESOURCE_EXHAUSTED && err->is_passing);
}

static enum hearth_spool_state push_record(struct replay *r, struct hearth_err *err)
{
    const struct hearth_spool_record *record = &r->record;
    const struct hearth_push_replay replay = {r->header.received_ns, record->head.key};
    const struct hearth_push_request request = {
        .tenant = record->head.tenant,
        .series = make_series(r),
        .n_series = record->n_profiles,
        .client = "spool",
        .held_bytes = r->body.cap,
        .is_one_upload = record->head.is_one_upload,
        .app_name = record->head.app_name,
        .replay = &replay,
    };
    struct hearth_push_outcome outcome = {
        .receipts = hearth_arena_calloc(&r->arena, record->n_profiles, sizeof *outcome.receipts)};

    if (request.series == NULL || outcome.receipts == NULL) {
        return HEARTH_SPOOL_WAITING;
    }

    enum hearth_status status =
        hearth_push_wait_outcome(r->spool->ingest, &request, &r->spool->cancel, &outcome, err);
    if (status == HEARTH_OK) {
        return HEARTH_SPOOL_STORED;
    }
    if (!outcome.has_ended || outcome.n_failed == 0) {
        return HEARTH_SPOOL_WAITING;
    }

    for (size_t i = 0; i < record->n_profiles; i++) {
        if (is_passing(outcome.receipts[i].status, err)) {
            return HEARTH_SPOOL_WAITING;
        }
    }

    return HEARTH_SPOOL_REFUSED;
}

/* ---- the outcome ---- */

static void report_loss(struct replay *r, enum hearth_spool_state state,
                        const struct hearth_err *err)
{
    bool is_refused = state == HEARTH_SPOOL_REFUSED;
    int64_t now_ms = hearth_clock_wall_ns() / HEARTH_NS_PER_MS;

    HEARTH_LOG(HEARTH_LOG_ERROR, "spool",
               is_refused ? "a spooled push was refused" : "a spooled push is damaged", "error",
               err->msg, NULL);
    hearth_metric_add(is_refused ? HEARTH_M_SPOOL_REFUSED : HEARTH_M_SPOOL_DAMAGED, 1);
    if (is_refused && r->spool->refused != NULL) {
        const struct hearth_ingest_error error = {
            .tenant = r->record.head.tenant,
            .client = HEARTH_STR("spool"),
            .route = HEARTH_STR("spool"),
            .code = hearth_str_c(hearth_status_name(err->status)),
            .message = hearth_str_c(err->msg),
            .n_bytes = r->header.n_body,
            .n = 1,
            .first_ms = now_ms,
            .last_ms = now_ms,
        };
        r->spool->refused(r->spool->refused_context, &error);
    }
}

static void settle_record(struct replay *r, enum hearth_spool_state state)
{
    struct hearth_spool *spool = r->spool;

    if (state != HEARTH_SPOOL_WAITING) {
        hearth_spool_mark(spool, r->at, state);
    }
    if (state == HEARTH_SPOOL_STORED) {
        hearth_metric_add(HEARTH_M_SPOOL_REPLAYED, 1);
    }

    hearth_mutex_lock(&spool->lock);
    assert(spool->n_active > 0 && spool->n_waiting > 0);
    spool->n_active--;
    spool->n_waiting -= state != HEARTH_SPOOL_WAITING;
    spool->has_progress = spool->has_progress || state != HEARTH_SPOOL_WAITING;
    hearth_spool_trim(spool);
    hearth_spool_publish(spool);
    hearth_mutex_unlock(&spool->lock);
}

static void replay_record(struct replay *r)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    enum hearth_status status = read_record(r, &err);
    enum hearth_spool_state state = HEARTH_SPOOL_WAITING;

    if (status == HEARTH_OK) {
        state = push_record(r, &err);
    } else if (status == HEARTH_INVALID_ARGUMENT) {
        state = HEARTH_SPOOL_DAMAGED;
    }
    if (state == HEARTH_SPOOL_REFUSED || state == HEARTH_SPOOL_DAMAGED) {
        report_loss(r, state, &err);
    }

    settle_record(r, state);
}

void *hearth_spool_replay(void *arg)
{
    struct replay r = {.spool = arg};

    hearth_buf_init(&r.body, 0);
    hearth_arena_init(&r.arena, 0);
    r.body.budget = r.arena.budget = r.spool->ingest->options.budget;
    while (wait_for_record(r.spool, &r)) {
        replay_record(&r);
        hearth_buf_release(&r.body);
        hearth_arena_release(&r.arena);
        hearth_buf_init(&r.body, 0);
        hearth_arena_init(&r.arena, 0);
        r.body.budget = r.arena.budget = r.spool->ingest->options.budget;
    }

    return NULL;
}
