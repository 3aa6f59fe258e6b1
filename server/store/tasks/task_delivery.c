/*
 * task_delivery.c -- handing tasks out (contract: hearth/store/task_delivery.h).
 *
 * A poll asks first whether any task could concern who asks, which is small: mostly there is none. If there is, one
 * statement notes that commands below the cursor have arrived and reads what there is to say. Only what has not been
 * said yet needs a transaction: under a lock of the agent (so that two polls of one agent on two servers do not give the
 * same time to different tasks) rows are added, with the task and the process locked (so that a task that is
 * cancelled, or a process that another agent reports now, is not handed out), and the question is asked again.
 *
 * That an agent asks is noted once a minute by each server, which remembers for whom it did.
 */
#include "hearth/store/task_delivery.h"

#include "hearth/base/mem.h"

#include "pg/pg.h"
#include "pg/session.h"
#include "pg/store_state.h"
#include "tasks/poll_memo.h"
#include "tasks/task_rows.h"

/* Of the keys of agents' locks: random, so that they are nobody else's. */
#define LOCK_SEED "4721170935208671311"

/* A note is left out when another server left one so shortly before; a longer pause than the second begins a new row. */
#define NOTED "30000"
#define GAP   "600000"
/* An agent that has not asked for so long has gone: NOTED, a minute, and some of its own pauses. */
#define GONE "120000"
/* A task is looked at for so long after its end: that its command arrived is seen when the agent asks next. */
#define AFTER "60000"

#define NOTE_EACH_S 60

struct question {
    const struct hearth_task_poll *poll;
    struct hearth_cancel *cancel;
    struct hearth_arena *arena;
    const char *note, *gate, *read, *add;
    void (*params)(const struct hearth_task_poll *poll, struct hearth_pg_params *params);
    struct hearth_str lock;
    struct hearth_poll_memo *memo;
    uint64_t key; /* of who asks, for what */
    struct hearth_told_task *told;
    size_t n, cap;
    bool has_new;
};

/* ---- agents of processes: $1 tenant, $2 agent, $3 cursor, $4 now, $5 processes seen after ---- */

static void agent_params(const struct hearth_task_poll *poll, struct hearth_pg_params *params)
{
    hearth_pg_param_text(params, poll->tenant);
    hearth_pg_param_text(params, poll->agent_id);
    hearth_pg_param_i64(params, poll->cursor_ms < 0 ? 0 : poll->cursor_ms);
    hearth_pg_param_i64(params, poll->now_ms);
    hearth_pg_param_i64(params, poll->seen_after_ms);
}

/* The processes that the agent reports, with the tasks that run now and select them. */
#define AGENT_PAIRS                                                                          \
    " FROM " HEARTH_TASK_TABLES " JOIN hearth_data.process p ON p.service_id = t.service_id" \
    " LEFT JOIN hearth_data.task_delivery d ON d.task_id = t.task_id AND d.target ="         \
    " p.process_id AND d.agent_id = $2 WHERE p.agent_id = $2 AND p.last_seen >= $5"          \
    " AND p.detect_type <> 3 AND t.kind <= 3 AND t.origin = 1 AND t.cancelled_at IS NULL"    \
    " AND t.start_at <= $4 AND t.start_at + t.duration >= $4 AND CASE WHEN t.kind = 3"       \
    " THEN EXISTS (SELECT FROM hearth_data.instance i WHERE i.instance_id = p.instance_id"   \
    " AND i.name = t.instance) ELSE p.can_be_profiled AND p.labels @> t.labels END"

/* Never handed out for this process to an agent that may still run it; or kept alive since. */
#define AGENT_NEW                                                                      \
    "(d.task_id IS NULL AND NOT EXISTS (SELECT FROM hearth_data.task_delivery o"       \
    " JOIN hearth_data.agent_poll a ON a.tenant_id = s.tenant_id AND a.service_id = 0" \
    " AND a.kind = 1 AND a.instance = o.agent_id AND a.at > $4 - " GONE                \
    " WHERE o.task_id = t.task_id AND o.target = p.process_id AND o.agent_id <> $2)"   \
    " OR d.task_updated_at < t.updated_at)"

static const char agent_note[] =
    "WITH noted AS (INSERT INTO hearth_data.agent_poll AS a (tenant_id, service_id, kind, "
    "instance, since, at)"
    " SELECT n.tenant_id, 0, 1, $2, CASE WHEN l.at >= $4 - " GAP " THEN l.since ELSE $4 END, $4"
    " FROM hearth_data.tenant n LEFT JOIN LATERAL (SELECT since, at FROM hearth_data.agent_poll"
    " WHERE tenant_id = n.tenant_id AND service_id = 0 AND kind = 1 AND instance = $2"
    " ORDER BY since DESC LIMIT 1) l ON true WHERE n.name = $1 AND (l.at IS NULL OR l.at <= $4 "
    "- " NOTED ") ON CONFLICT (tenant_id, service_id, kind, instance, since) DO UPDATE SET"
    " at = greatest(a.at, excluded.at)) SELECT 1 FROM hearth_data.tenant WHERE name = $1";

static const char agent_gate[] =
    "SELECT 1 FROM hearth_data.process p JOIN hearth_data.task t ON t.service_id = p.service_id"
    " WHERE p.agent_id = $2 AND t.origin = 1 AND t.cancelled_at IS NULL AND t.start_at +"
    " t.duration >= $4 - " AFTER " AND t.start_at <= $4 AND t.kind <= 3 LIMIT 1";

static const char agent_read[] =
    "WITH confirmed AS (UPDATE hearth_data.task_delivery c SET confirmed_at = $4"
    " FROM " HEARTH_TASK_TABLES " WHERE c.agent_id = $2 AND c.confirmed_at IS NULL"
    " AND c.cursor_at <= $3 AND t.task_id = c.task_id)"
    " SELECT " HEARTH_TASK_COLUMNS ", CASE WHEN " AGENT_NEW " THEN 0 ELSE d.cursor_at END,"
    " p.process_id" AGENT_PAIRS " AND (t.kind = 3 OR d.cursor_at > $3 OR " AGENT_NEW ")"
    " AND (d.task_id IS NOT NULL OR " AGENT_NEW ") ORDER BY d.cursor_at, t.created_at, t.task_id,"
    " p.process_id";

static const char agent_add[] =
    "INSERT INTO hearth_data.task_delivery (task_id, target, agent_id, cursor_at, task_updated_at,"
    " delivered_at) SELECT t.task_id, p.process_id, $2, greatest($4, $3 + 1, (SELECT"
    " max(cursor_at) + 1 FROM hearth_data.task_delivery WHERE agent_id = $2)), t.updated_at, "
    "$4" AGENT_PAIRS " AND " AGENT_NEW " FOR SHARE OF t, p ON CONFLICT (task_id, target, agent_id)"
    " DO UPDATE SET cursor_at = excluded.cursor_at, task_updated_at = excluded.task_updated_at,"
    " confirmed_at = NULL";

/* ---- instances: $1 tenant, $2 service, $3 instance, $4 kind, $5 cursor, $6 now, $7 ahead, $8 limit ---- */

static void instance_params(const struct hearth_task_poll *poll, struct hearth_pg_params *params)
{
    hearth_pg_param_text(params, poll->tenant);
    hearth_task_param_service(params, poll->service);
    hearth_pg_param_text(params, poll->instance);
    hearth_pg_param_i32(params, (int32_t)poll->kind);
    hearth_pg_param_i64(params, poll->cursor_ms < 0 ? 0 : poll->cursor_ms);
    hearth_pg_param_i64(params, poll->now_ms);
    hearth_pg_param_i64(params, poll->ahead_ms);
    hearth_pg_param_i64(params, poll->limit > 0 ? (int64_t)poll->limit : INT64_MAX);
}

#define HANDED_OUT_UNTIL HEARTH_TASK_HANDED_OUT_UNTIL("t")

/* The instance has reported the task as finished or failed. */
#define IS_OVER(t)                                                               \
    "EXISTS (SELECT FROM hearth_data.task_log l WHERE l.task_id = " t ".task_id" \
    " AND l.instance = $3 AND l.process_id = '' AND l.event > 1)"
#define T_IS_OVER IS_OVER("t")
#define U_IS_OVER IS_OVER("u")

/*
 * The instance may still run a task that it was told of before, beside which `t` would fail: the Java agent drops a
 * second async-profiler task without an error; in Go a second CPU profile is an error, and the end of a block or mutex
 * task ends another one, too.
 */
#define IS_BUSY                                                                           \
    "EXISTS (SELECT FROM hearth_data.task_delivery o JOIN hearth_data.task u"             \
    " ON u.task_id = o.task_id AND u.service_id = t.service_id AND u.kind = t.kind WHERE" \
    " t.kind >= 5 AND o.target = $3 AND o.agent_id = '' AND u.task_id <> t.task_id"       \
    " AND (u.kind = 5 OR u.events && t.events) AND (d.task_id IS NULL OR o.cursor_at <"   \
    " d.cursor_at) AND o.delivered_at + u.duration >= $6 - " HEARTH_TASK_BEGINS_AFTER     \
    " AND NOT " U_IS_OVER ")"

#define INSTANCE_PAIRS                                                                       \
    " FROM " HEARTH_TASK_TABLES " LEFT JOIN hearth_data.task_delivery d ON"                  \
    " d.task_id = t.task_id AND d.target = $3 AND d.agent_id = '' WHERE s.fingerprint = $2"  \
    " AND t.kind = $4 AND t.origin = 1 AND t.cancelled_at IS NULL AND t.start_at <= $6 + $7" \
    " AND " HANDED_OUT_UNTIL " >= $6 AND (t.instances = '{}' OR $3 = ANY (t.instances))"     \
    " AND NOT " T_IS_OVER " AND NOT " IS_BUSY

static const char instance_note[] =
    "WITH noted AS (INSERT INTO hearth_data.agent_poll AS a (tenant_id, service_id, kind, "
    "instance, since, at)"
    " SELECT n.tenant_id, s.service_id, $4, $3, CASE WHEN l.at >= $6 - " GAP " THEN l.since ELSE"
    " $6 END, $6 FROM hearth_data.tenant n JOIN hearth_data.service s ON s.tenant_id = n.tenant_id"
    " AND s.fingerprint = $2 LEFT JOIN LATERAL (SELECT since, at FROM hearth_data.agent_poll"
    " WHERE tenant_id = n.tenant_id AND service_id = s.service_id AND kind = $4 AND instance = $3"
    " ORDER BY since DESC LIMIT 1) l ON true WHERE n.name = $1 AND (l.at IS NULL OR l.at <= $6 "
    "- " NOTED ") ON CONFLICT (tenant_id, service_id, kind, instance, since) DO UPDATE SET"
    " at = greatest(a.at, excluded.at)) SELECT 1 FROM hearth_data.tenant n JOIN"
    " hearth_data.service s ON s.tenant_id = n.tenant_id AND s.fingerprint = $2 WHERE n.name = $1";

/* The first bound of the end is the index's. */
static const char instance_gate[] =
    "SELECT 1 FROM " HEARTH_TASK_TABLES " WHERE s.fingerprint = $2 AND t.origin = 1"
    " AND t.cancelled_at IS NULL AND t.start_at + t.duration >= $6 - 300000 - " AFTER
    " AND " HANDED_OUT_UNTIL " >= $6 - " AFTER " AND t.start_at <= $6 + $7 AND t.kind = $4 LIMIT 1";

static const char instance_read[] =
    "WITH confirmed AS (UPDATE hearth_data.task_delivery c SET confirmed_at = $6"
    " FROM " HEARTH_TASK_TABLES " WHERE c.agent_id = '' AND c.target = $3"
    " AND c.confirmed_at IS NULL AND c.cursor_at <= $5 AND t.task_id = c.task_id"
    " AND t.kind = $4 AND s.fingerprint = $2),"
    /* Said again, it runs from then: the answer was lost, or the instance has restarted. */
    " again AS (UPDATE hearth_data.task_delivery c SET delivered_at = $6, agent_cursor = $5 FROM"
    " (SELECT t.task_id" INSTANCE_PAIRS
    " AND t.kind >= 5 AND d.cursor_at > $5 ORDER BY d.cursor_at LIMIT $8) r"
    " WHERE c.task_id = r.task_id AND c.target = $3 AND c.agent_id = '' AND c.delivered_at < $6)"
    " SELECT " HEARTH_TASK_COLUMNS ", coalesce(d.cursor_at, 0), NULL::text" INSTANCE_PAIRS
    " AND (d.task_id IS NULL OR d.cursor_at > $5) ORDER BY d.cursor_at, t.created_at LIMIT $8";

static const char instance_add[] =
    "INSERT INTO hearth_data.task_delivery (task_id, target, agent_id, cursor_at, task_updated_at,"
    " delivered_at, agent_cursor) SELECT t.task_id, $3, '', greatest(t.created_at, $5 + 1, (SELECT"
    " max(c.cursor_at) + 1 FROM hearth_data.task_delivery c JOIN hearth_data.task u"
    " ON u.task_id = c.task_id WHERE c.target = $3 AND c.agent_id = '' AND u.kind = $4"
    " AND u.service_id = t.service_id)), t.updated_at, $6, $5" INSTANCE_PAIRS
    " AND d.task_id IS NULL ORDER BY t.created_at LIMIT $8 FOR SHARE OF t";

/* ---- both ---- */

static bool is_same_command(const struct hearth_told_task *told, struct hearth_str task_id)
{
    return told->task.kind == HEARTH_TASK_NETWORK && hearth_str_eq(told->task.task_id, task_id);
}

/* A network task is one command for all its processes, others are one for each. */
static struct hearth_told_task *told_for(struct question *question, const PGresult *rows, int row,
                                         struct hearth_err *err)
{
    struct hearth_str task_id = hearth_pg_str(rows, row, 0);
    for (size_t i = 0; i < question->n; i++) {
        if (is_same_command(&question->told[i], task_id)) {
            return &question->told[i];
        }
    }
    struct hearth_told_task *told = &question->told[question->n];
    *told = (struct hearth_told_task){0};
    if (hearth_task_take(rows, row, 0, question->arena, &told->task, err) != HEARTH_OK) {
        return NULL;
    }
    /* Room for all that may follow: memory of one answer, which is bounded by what an agent reports. */
    size_t n = told->task.kind == HEARTH_TASK_NETWORK ? (size_t)(PQntuples(rows) - row) : 1;
    told->process_ids = hearth_arena_array(question->arena, n, sizeof *told->process_ids);
    if (told->process_ids == NULL) {
        (void)HEARTH_FAIL_ARENA(err, question->arena);
        return NULL;
    }
    question->n++;
    return told;
}

static enum hearth_status take_told(struct question *question, const PGresult *rows,
                                    struct hearth_err *err)
{
    size_t n_rows = (size_t)PQntuples(rows);
    question->n = 0;
    question->has_new = false;
    question->told = hearth_arena_array(question->arena, n_rows, sizeof *question->told);
    if (question->told == NULL) {
        return HEARTH_FAIL_ARENA(err, question->arena);
    }
    for (int row = 0; row < (int)n_rows; row++) {
        int64_t cursor_ms = hearth_pg_i64(rows, row, HEARTH_N_TASK_COLUMNS);
        question->has_new = question->has_new || cursor_ms == 0;
        struct hearth_told_task *told = told_for(question, rows, row, err);
        if (told == NULL) {
            return HEARTH_NO_MEMORY;
        }
        told->cursor_ms = cursor_ms > told->cursor_ms ? cursor_ms : told->cursor_ms;
        struct hearth_str process_id = hearth_pg_str(rows, row, HEARTH_N_TASK_COLUMNS + 1);
        if (process_id.p != NULL) {
            told->process_ids[told->n_process_ids++] =
                hearth_arena_str(question->arena, process_id);
        }
    }
    return question->arena->refused ? HEARTH_FAIL_ARENA(err, question->arena) : HEARTH_OK;
}

static enum hearth_status read_told(struct question *question, struct hearth_pg *pg,
                                    enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, question->arena);
    question->params(question->poll, &params);
    PGresult *rows = NULL;
    HEARTH_TRY(
        hearth_pg_exec(pg, question->read, &params, question->cancel, &rows, ret_fault, err));
    enum hearth_status status = take_told(question, rows, err);
    PQclear(rows);
    return status;
}

static enum hearth_status add_told(struct question *question, struct hearth_pg *pg,
                                   enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct hearth_pg_params params;
    HEARTH_TRY(hearth_pg_script(pg, "BEGIN ISOLATION LEVEL READ COMMITTED", ret_fault, err));
    hearth_pg_params_init(&params, question->arena);
    hearth_pg_param_text(&params, question->lock);
    HEARTH_TRY(hearth_pg_exec(pg,
                              "SELECT pg_advisory_xact_lock(hashtextextended($1, " LOCK_SEED "))",
                              &params, question->cancel, NULL, ret_fault, err));
    hearth_pg_params_init(&params, question->arena);
    question->params(question->poll, &params);
    HEARTH_TRY(hearth_pg_exec(pg, question->add, &params, question->cancel, NULL, ret_fault, err));
    HEARTH_TRY(read_told(question, pg, ret_fault, err));
    return hearth_pg_script(pg, "COMMIT", ret_fault, err);
}

/* ---- who has been noted ---- */

/* A word: the upper bits of a key and when it was noted, in seconds. Who is not found is noted again. */
#define MEMO_SLOTS   (1u << 16)
#define MEMO_SECONDS 0xFFFFFFu

struct hearth_poll_memo {
    _Atomic uint64_t words[MEMO_SLOTS];
};

struct hearth_poll_memo *hearth_poll_memo_new(void)
{
    return hearth_mem_zalloc(sizeof(struct hearth_poll_memo));
}

void hearth_poll_memo_free(struct hearth_poll_memo *memo)
{
    hearth_mem_free(memo);
}

static size_t slot_of(uint64_t key)
{
    return (size_t)(key >> 48) % MEMO_SLOTS;
}

static bool is_noted(struct hearth_poll_memo *memo, uint64_t key, int64_t now_ms)
{
    uint64_t word = atomic_load_explicit(&memo->words[slot_of(key)], memory_order_relaxed);
    uint64_t age_s = ((uint64_t)(now_ms / 1000) - word) & MEMO_SECONDS;
    return ((word ^ key) & ~(uint64_t)MEMO_SECONDS) == 0 && age_s < NOTE_EACH_S;
}

static void remember(struct hearth_poll_memo *memo, uint64_t key, int64_t now_ms)
{
    uint64_t word = (key & ~(uint64_t)MEMO_SECONDS) | ((uint64_t)(now_ms / 1000) & MEMO_SECONDS);
    atomic_store_explicit(&memo->words[slot_of(key)], word, memory_order_relaxed);
}

static uint64_t key_of(const struct hearth_task_poll *poll)
{
    uint64_t seed = hearth_hash_process_seed();
    const struct hearth_str texts[] = {poll->tenant, poll->agent_id, poll->service, poll->instance};
    uint64_t key = (uint64_t)poll->kind;
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(texts); i++) {
        key = hearth_hash64(texts[i].p == NULL ? "" : texts[i].p, texts[i].n, key ^ seed);
    }
    return key;
}

/* ---- a poll ---- */

/* *ret_any: it has rows. */
static enum hearth_status run_one(struct question *question, struct hearth_pg *pg, const char *sql,
                                  bool *ret_any, enum hearth_pg_fault *ret_fault,
                                  struct hearth_err *err)
{
    struct hearth_pg_params params;
    PGresult *rows = NULL;
    hearth_pg_params_init(&params, question->arena);
    question->params(question->poll, &params);
    HEARTH_TRY(hearth_pg_exec(pg, sql, &params, question->cancel, &rows, ret_fault, err));
    *ret_any = PQntuples(rows) > 0;
    PQclear(rows);
    return HEARTH_OK;
}

static enum hearth_status tell(void *context, struct hearth_pg *pg, enum hearth_pg_fault *ret_fault,
                               struct hearth_err *err)
{
    struct question *question = context;
    int64_t now_ms = question->poll->now_ms;
    bool any = false;
    question->n = 0;
    if (!is_noted(question->memo, question->key, now_ms)) {
        HEARTH_TRY(run_one(question, pg, question->note, &any, ret_fault, err));
        if (any) { /* else nobody knows its tenant or service yet */
            remember(question->memo, question->key, now_ms);
        }
    }
    HEARTH_TRY(run_one(question, pg, question->gate, &any, ret_fault, err));
    if (!any) {
        return HEARTH_OK;
    }
    HEARTH_TRY(read_told(question, pg, ret_fault, err));
    if (!question->has_new) {
        return HEARTH_OK;
    }
    enum hearth_status status = add_told(question, pg, ret_fault, err);
    hearth_pg_rollback(pg);
    return status;
}

/* What is not to be said: network tasks that were read for their processes, and what turned out not to be new. */
static size_t drop_said(struct question *question)
{
    size_t n = 0;
    int64_t cursor_ms = question->poll->cursor_ms < 0 ? 0 : question->poll->cursor_ms;
    for (size_t i = 0; i < question->n; i++) {
        if (question->told[i].cursor_ms > cursor_ms) {
            question->told[n++] = question->told[i];
        }
    }
    return n;
}

static enum hearth_status check_poll(const struct hearth_task_poll *poll, struct hearth_err *err)
{
    if (poll->cursor_ms > HEARTH_TASK_CURSOR_MAX) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "the time of the last command, %lld, is out of range",
                           (long long)poll->cursor_ms);
    }
    if (poll->agent_id.n > HEARTH_AGENT_NAME_BYTES || poll->instance.n > HEARTH_AGENT_NAME_BYTES) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "the name of an agent or instance has more than %d bytes",
                           HEARTH_AGENT_NAME_BYTES);
    }
    return HEARTH_OK;
}

static enum hearth_status answer(struct hearth_store *store, struct question *question,
                                 struct hearth_told_task **ret, size_t *ret_n,
                                 struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_check_open(store, err));
    HEARTH_TRY(check_poll(question->poll, err));
    question->memo = store->poll_memo;
    question->key = key_of(question->poll);
    HEARTH_TRY(hearth_store_with_pg(store, question->cancel, tell, question, err));
    *ret = question->told;
    *ret_n = drop_said(question);
    return HEARTH_OK;
}

enum hearth_status hearth_store_tell_agent(const struct hearth_scope *scope,
                                           const struct hearth_task_poll *poll,
                                           struct hearth_told_task **ret, size_t *ret_n,
                                           struct hearth_err *err)
{
    struct question question = {.poll = poll,
                                .cancel = scope->cancel,
                                .arena = scope->arena,
                                .note = agent_note,
                                .gate = agent_gate,
                                .read = agent_read,
                                .add = agent_add,
                                .params = agent_params,
                                .lock = poll->agent_id};
    return answer(scope->store, &question, ret, ret_n, err);
}

enum hearth_status hearth_store_tell_instance(const struct hearth_scope *scope,
                                              const struct hearth_task_poll *poll,
                                              struct hearth_told_task **ret, size_t *ret_n,
                                              struct hearth_err *err)
{
    struct question question = {.poll = poll,
                                .cancel = scope->cancel,
                                .arena = scope->arena,
                                .note = instance_note,
                                .gate = instance_gate,
                                .read = instance_read,
                                .add = instance_add,
                                .params = instance_params,
                                .lock = poll->instance};
    return answer(scope->store, &question, ret, ret_n, err);
}
