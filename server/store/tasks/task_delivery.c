/*
 * task_delivery.c -- hands tasks out to agents (contract: hearth/store/task_delivery.h).
 *
 * A poll first checks whether any task could concern the agent (the gate). This is cheap, and
 * usually there is no such task. If there is one, one statement records that commands up to the
 * cursor have arrived, and reads the commands to be sent. Only tasks that have not been handed out
 * yet need a transaction. It holds a lock of the agent, so that two polls of one agent on two
 * servers do not give the same time to different tasks. It adds rows, with the task and the process
 * locked, so that a task that is being cancelled, or a process that another agent reports now, is
 * not handed out. Then the commands are read again.
 *
 * Each server records once a minute that an agent polls. The memo holds, in memory, the agents for
 * which it did so.
 */
#include "hearth/store/task_delivery.h"

#include "hearth/base/mem.h"

#include "pg/pg_rows.h"
#include "pg/store_state.h"
#include "tasks/poll_memo.h"
#include "tasks/task_rows.h"

#include <assert.h>

/* Seed of the keys of agents' locks: random, so that no other program of the database has them. */
#define LOCK_SEED "4721170935208671311"

/* Times in milliseconds. A poll is not noted if the latest note of any server is younger. */
#define NOTED "30000"
/* After so long without polls, the next note is a new row. */
#define GAP "600000"
/*
 * An agent that has not polled for this long is gone: NOTED, a minute, and a few of its own pauses.
 */
#define GONE "120000"
/* A task is read for this long after its end: the next poll shows that its command has arrived. */
#define AFTER "60000"

/* A server notes the polls of an agent once in so many seconds. */
#define NOTE_EACH_S 60

/* A poll: its statements and parameters, and the commands found. */
struct poll {
    const char *note, *gate, *read, *add; /* statements with params */
    struct hearth_pg_params params, lock_params;
    struct hearth_str lock; /* name of the agent or instance, for the advisory lock */
    struct hearth_cancel *cancel;
    struct hearth_arena *arena;
    int64_t now_ms, cursor_ms;
    struct hearth_poll_memo *memo;
    uint64_t key; /* of the agent and the kind of tasks in memo */
    struct hearth_told_task *told;
    size_t n;
    bool has_new; /* some of them have not been handed out yet */
};

static int64_t valid_cursor(const struct hearth_task_poll *poll)
{
    return poll->cursor_ms < 0 ? 0 : poll->cursor_ms;
}

/* ---- agents that report processes ---- */

/* $1 tenant, $2 agent, $3 cursor, $4 now, $5 processes seen after. */
static void make_agent_params(const struct hearth_task_poll *poll, struct hearth_arena *arena,
                              struct hearth_pg_params *params)
{
    hearth_pg_params_init(params, arena);
    hearth_pg_param_text(params, poll->tenant);
    hearth_pg_param_text(params, poll->agent_id);
    hearth_pg_param_i64(params, valid_cursor(poll));
    hearth_pg_param_i64(params, poll->now_ms);
    hearth_pg_param_i64(params, poll->seen_after_ms);
}

/* Pairs of a process that the agent reports and a task that runs now and selects it. */
#define AGENT_PAIRS                                                                          \
    " FROM " HEARTH_TASK_TABLES " JOIN hearth_data.process p ON p.service_id = t.service_id" \
    " LEFT JOIN hearth_data.task_delivery d ON d.task_id = t.task_id AND d.target ="         \
    " p.process_id AND d.agent_id = $2 WHERE p.agent_id = $2 AND p.last_seen >= $5"          \
    " AND p.detect_type <> 3 AND t.kind <= 3 AND t.origin = 1 AND t.cancelled_at IS NULL"    \
    " AND t.start_at <= $4 AND t.start_at + t.duration >= $4 AND CASE WHEN t.kind = 3"       \
    " THEN EXISTS (SELECT FROM hearth_data.instance i WHERE i.instance_id = p.instance_id"   \
    " AND i.name = t.instance) ELSE p.can_be_profiled AND p.labels @> t.labels END"

/*
 * The pair is new: the task is not handed out for this process to this agent, nor to another agent
 * that may still run it; or it was extended since.
 */
#define AGENT_NEW                                                                      \
    "(d.task_id IS NULL AND NOT EXISTS (SELECT FROM hearth_data.task_delivery o"       \
    " JOIN hearth_data.agent_poll a ON a.tenant_id = s.tenant_id AND a.service_id = 0" \
    " AND a.kind = 1 AND a.instance = o.agent_id AND a.at > $4 - " GONE                \
    " WHERE o.task_id = t.task_id AND o.target = p.process_id AND o.agent_id <> $2)"   \
    " OR d.task_updated_at < t.updated_at)"

/* Notes the poll. Returns a row if the tenant is known. By the primary key of agent_poll. */
static const char agent_note[] =
    "WITH noted AS (INSERT INTO hearth_data.agent_poll AS a (tenant_id, service_id, kind, "
    "instance, since, at)"
    " SELECT n.tenant_id, 0, 1, $2, CASE WHEN l.at >= $4 - " GAP " THEN l.since ELSE $4 END, $4"
    " FROM hearth_data.tenant n LEFT JOIN LATERAL (SELECT since, at FROM hearth_data.agent_poll"
    " WHERE tenant_id = n.tenant_id AND service_id = 0 AND kind = 1 AND instance = $2"
    " ORDER BY since DESC LIMIT 1) l ON true WHERE n.name = $1 AND (l.at IS NULL OR l.at <= $4 "
    "- " NOTED ") ON CONFLICT (tenant_id, service_id, kind, instance, since) DO UPDATE SET"
    " at = greatest(a.at, excluded.at)) SELECT 1 FROM hearth_data.tenant WHERE name = $1";

/* Returns a row if a task of a service of the agent's processes runs. By process (agent_id). */
static const char agent_gate[] =
    "SELECT 1 FROM hearth_data.process p JOIN hearth_data.task t ON t.service_id = p.service_id"
    " WHERE p.agent_id = $2 AND t.origin = 1 AND t.cancelled_at IS NULL AND t.start_at +"
    " t.duration >= $4 - " AFTER " AND t.start_at <= $4 AND t.kind <= 3 LIMIT 1";

/*
 * Confirms the deliveries up to the cursor, and returns the pairs that are new or not confirmed, by
 * cursor; of network tasks (3) all pairs. By the index task_delivery_agent.
 */
static const char agent_read[] =
    "WITH confirmed AS (UPDATE hearth_data.task_delivery c SET confirmed_at = $4"
    " FROM " HEARTH_TASK_TABLES " WHERE c.agent_id = $2 AND c.confirmed_at IS NULL"
    " AND c.cursor_at <= $3 AND t.task_id = c.task_id)"
    " SELECT " HEARTH_TASK_COLUMNS ", CASE WHEN " AGENT_NEW " THEN 0 ELSE d.cursor_at END,"
    " p.process_id" AGENT_PAIRS " AND (t.kind = 3 OR d.cursor_at > $3 OR " AGENT_NEW ")"
    " AND (d.task_id IS NOT NULL OR " AGENT_NEW ") ORDER BY d.cursor_at, t.created_at, t.task_id,"
    " p.process_id";

/* Adds deliveries of the new pairs, with a time above all cursors of the agent. */
static const char agent_add[] =
    "INSERT INTO hearth_data.task_delivery (task_id, target, agent_id, cursor_at, task_updated_at,"
    " delivered_at) SELECT t.task_id, p.process_id, $2, greatest($4, $3 + 1, (SELECT"
    " max(cursor_at) + 1 FROM hearth_data.task_delivery WHERE agent_id = $2)), t.updated_at, "
    "$4" AGENT_PAIRS " AND " AGENT_NEW " FOR SHARE OF t, p ON CONFLICT (task_id, target, agent_id)"
    " DO UPDATE SET cursor_at = excluded.cursor_at, task_updated_at = excluded.task_updated_at,"
    " confirmed_at = NULL";

/* ---- instances ---- */

/* $1 tenant, $2 service, $3 instance, $4 kind, $5 cursor, $6 now, $7 ahead, $8 limit. */
static void make_instance_params(const struct hearth_task_poll *poll, struct hearth_arena *arena,
                                 struct hearth_pg_params *params)
{
    hearth_pg_params_init(params, arena);
    hearth_pg_param_text(params, poll->tenant);
    hearth_task_param_service(params, poll->service);
    hearth_pg_param_text(params, poll->instance);
    hearth_pg_param_i32(params, (int32_t)poll->kind);
    hearth_pg_param_i64(params, valid_cursor(poll));
    hearth_pg_param_i64(params, poll->now_ms);
    hearth_pg_param_i64(params, poll->ahead_ms);
    hearth_pg_param_i64(params, poll->limit > 0 ? (int64_t)poll->limit : INT64_MAX);
}

#define HANDED_OUT_UNTIL HEARTH_TASK_HANDED_OUT_UNTIL("t")

/* The instance has reported that the task finished, was too large or failed. */
#define IS_OVER(t)                                                               \
    "EXISTS (SELECT FROM hearth_data.task_log l WHERE l.task_id = " t ".task_id" \
    " AND l.instance = $3 AND l.process_id = '' AND l.event > 1)"
#define T_IS_OVER IS_OVER("t")
#define U_IS_OVER IS_OVER("u")

/*
 * The instance may still run an earlier task that would make `t` fail: the Java agent drops a
 * second async-profiler task without an error; in Go a second CPU profile is an error, and the end
 * of a block or mutex task also ends another one.
 */
#define IS_BUSY                                                                           \
    "EXISTS (SELECT FROM hearth_data.task_delivery o JOIN hearth_data.task u"             \
    " ON u.task_id = o.task_id AND u.service_id = t.service_id AND u.kind = t.kind WHERE" \
    " t.kind >= 5 AND o.target = $3 AND o.agent_id = '' AND u.task_id <> t.task_id"       \
    " AND (u.kind = 5 OR u.events && t.events) AND (d.task_id IS NULL OR o.cursor_at <"   \
    " d.cursor_at) AND o.delivered_at + u.duration >= $6 - " HEARTH_TASK_BEGINS_AFTER     \
    " AND NOT " U_IS_OVER ")"

/* Tasks of the instance that can be handed out now, with their delivery to it, if any. */
#define INSTANCE_PAIRS                                                                       \
    " FROM " HEARTH_TASK_TABLES " LEFT JOIN hearth_data.task_delivery d ON"                  \
    " d.task_id = t.task_id AND d.target = $3 AND d.agent_id = '' WHERE s.fingerprint = $2"  \
    " AND t.kind = $4 AND t.origin = 1 AND t.cancelled_at IS NULL AND t.start_at <= $6 + $7" \
    " AND " HANDED_OUT_UNTIL " >= $6 AND (t.instances = '{}' OR $3 = ANY (t.instances))"     \
    " AND NOT " T_IS_OVER " AND NOT " IS_BUSY

/* Notes the poll. Returns a row if the service is known. By the primary key of agent_poll. */
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

/*
 * Returns a row if a task of the service can be handed out now. The first bound of the end is for
 * the index on (service_id, start_at + duration).
 */
static const char instance_gate[] =
    "SELECT 1 FROM " HEARTH_TASK_TABLES " WHERE s.fingerprint = $2 AND t.origin = 1"
    " AND t.cancelled_at IS NULL AND t.start_at + t.duration >= $6 - 300000 - " AFTER
    " AND " HANDED_OUT_UNTIL " >= $6 - " AFTER " AND t.start_at <= $6 + $7 AND t.kind = $4 LIMIT 1";

/*
 * Confirms the deliveries up to the cursor, and returns the tasks that are new or not confirmed, by
 * cursor. By the index task_delivery_target.
 */
static const char instance_read[] =
    "WITH confirmed AS (UPDATE hearth_data.task_delivery c SET confirmed_at = $6"
    " FROM " HEARTH_TASK_TABLES " WHERE c.agent_id = '' AND c.target = $3"
    " AND c.confirmed_at IS NULL AND c.cursor_at <= $5 AND t.task_id = c.task_id"
    " AND t.kind = $4 AND s.fingerprint = $2),"
    /* Sent again, the task runs from now: the answer was lost, or the instance has restarted. */
    " again AS (UPDATE hearth_data.task_delivery c SET delivered_at = $6, agent_cursor = $5 FROM"
    " (SELECT t.task_id" INSTANCE_PAIRS
    " AND t.kind >= 5 AND d.cursor_at > $5 ORDER BY d.cursor_at LIMIT $8) r"
    " WHERE c.task_id = r.task_id AND c.target = $3 AND c.agent_id = '' AND c.delivered_at < $6)"
    " SELECT " HEARTH_TASK_COLUMNS ", coalesce(d.cursor_at, 0), NULL::text" INSTANCE_PAIRS
    " AND (d.task_id IS NULL OR d.cursor_at > $5) ORDER BY d.cursor_at, t.created_at LIMIT $8";

/* Adds deliveries of the new tasks, with a time above all cursors of the instance. */
static const char instance_add[] =
    "INSERT INTO hearth_data.task_delivery (task_id, target, agent_id, cursor_at, task_updated_at,"
    " delivered_at, agent_cursor) SELECT t.task_id, $3, '', greatest(t.created_at, $5 + 1, (SELECT"
    " max(c.cursor_at) + 1 FROM hearth_data.task_delivery c JOIN hearth_data.task u"
    " ON u.task_id = c.task_id WHERE c.target = $3 AND c.agent_id = '' AND u.kind = $4"
    " AND u.service_id = t.service_id)), t.updated_at, $6, $5" INSTANCE_PAIRS
    " AND d.task_id IS NULL ORDER BY t.created_at LIMIT $8 FOR SHARE OF t";

/* ---- both ---- */

/* A row of a read: a task, and the process that it is for, if any. */
struct told_row {
    struct hearth_task task;
    int64_t cursor_ms; /* 0: not handed out yet */
    struct hearth_str process_id;
};

static const struct hearth_column told_columns[] = {
    HEARTH_TASK_COLUMN_TABLE(struct told_row, task.),
    HEARTH_COLUMN(I64, struct told_row, cursor_ms),
    HEARTH_COLUMN(TEXT, struct told_row, process_id),
};
static const struct hearth_row_type told_rows = HEARTH_ROW_TYPE(told_columns, struct told_row);

/*
 * The command of a row, which may exist already: a network task is one command for all its
 * processes, other tasks are one command for each. n_more: the number of rows after this one. NULL:
 * no memory.
 */
static struct hearth_told_task *find_command(struct poll *poll, const struct told_row *row,
                                             size_t n_more)
{
    bool is_network = row->task.kind == HEARTH_TASK_NETWORK;

    /* Find the command of a network task. */
    for (size_t i = 0; is_network && i < poll->n; i++) {
        if (hearth_str_eq(poll->told[i].task.task_id, row->task.task_id)) {
            return &poll->told[i];
        }
    }

    /* Make a new one, with room for the processes of all rows that may follow. */
    struct hearth_told_task *told = &poll->told[poll->n];
    *told = (struct hearth_told_task){.task = row->task};
    told->process_ids =
        hearth_arena_array(poll->arena, is_network ? 1 + n_more : 1, sizeof *told->process_ids);
    if (told->process_ids == NULL) {
        return NULL;
    }

    poll->n++;

    return told;
}

/* Makes the commands of the rows, which are sorted by cursor. */
static enum hearth_status take_commands(struct poll *poll, const struct told_row *rows,
                                        size_t n_rows, struct hearth_err *err)
{
    poll->n = 0;
    poll->has_new = false;
    poll->told = hearth_arena_array(poll->arena, n_rows, sizeof *poll->told);
    if (poll->told == NULL) {
        return HEARTH_FAIL_ARENA(err, poll->arena);
    }

    for (size_t i = 0; i < n_rows; i++) {
        poll->has_new = poll->has_new || rows[i].cursor_ms == 0;
        struct hearth_told_task *told = find_command(poll, &rows[i], n_rows - i - 1);
        if (told == NULL) {
            return HEARTH_FAIL_ARENA(err, poll->arena);
        }

        told->cursor_ms = rows[i].cursor_ms > told->cursor_ms ? rows[i].cursor_ms : told->cursor_ms;
        if (rows[i].process_id.n > 0) {
            told->process_ids[told->n_process_ids++] = rows[i].process_id;
        }
    }

    assert(poll->n <= n_rows);

    return HEARTH_OK;
}

static enum hearth_status read_commands(struct poll *poll, struct hearth_pg *pg,
                                        enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct told_row *rows;
    size_t n;
    const struct hearth_pg_query query = {poll->read, &poll->params, &told_rows, poll->cancel,
                                          poll->arena};
    HEARTH_TRY(hearth_pg_select(pg, &query, &rows, &n, ret_fault, err));

    return take_commands(poll, rows, n, err);
}

/* Hands new tasks out in a transaction, and reads the commands. The caller rolls back a failure. */
static enum hearth_status add_commands(struct poll *poll, struct hearth_pg *pg,
                                       enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    assert(poll->has_new);

    /* Lock the agent. */
    HEARTH_TRY(hearth_pg_begin(pg, "BEGIN ISOLATION LEVEL READ COMMITTED", ret_fault, err));
    HEARTH_TRY(hearth_pg_exec(pg,
                              "SELECT pg_advisory_xact_lock(hashtextextended($1, " LOCK_SEED "))",
                              &poll->lock_params, poll->cancel, NULL, ret_fault, err));

    /* Add the deliveries. */
    HEARTH_TRY(hearth_pg_exec(pg, poll->add, &poll->params, poll->cancel, NULL, ret_fault, err));
    HEARTH_TRY(read_commands(poll, pg, ret_fault, err));

    return hearth_pg_script(pg, "COMMIT", ret_fault, err);
}

/* ---- the memo ---- */

/*
 * A word holds the upper 40 bits of a key, and the time of its note in seconds. A key whose slot
 * was overwritten is noted again.
 */
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

static size_t memo_slot(uint64_t key)
{
    return (size_t)(key >> 48) % MEMO_SLOTS;
}

/* Whether this server has noted the agent within NOTE_EACH_S. */
static bool is_noted(struct hearth_poll_memo *memo, uint64_t key, int64_t now_ms)
{
    uint64_t word = atomic_load_explicit(&memo->words[memo_slot(key)], memory_order_relaxed);
    uint64_t age_s = ((uint64_t)(now_ms / 1000) - word) & MEMO_SECONDS;

    return ((word ^ key) & ~(uint64_t)MEMO_SECONDS) == 0 && age_s < NOTE_EACH_S;
}

static void remember_noted(struct hearth_poll_memo *memo, uint64_t key, int64_t now_ms)
{
    uint64_t word = (key & ~(uint64_t)MEMO_SECONDS) | ((uint64_t)(now_ms / 1000) & MEMO_SECONDS);
    atomic_store_explicit(&memo->words[memo_slot(key)], word, memory_order_relaxed);
}

/* The key of the agent or instance, and of the kind of tasks. */
static uint64_t make_poll_key(const struct hearth_task_poll *poll)
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

/* *ret_any: the statement returns rows. */
static enum hearth_status run_poll_statement(struct poll *poll, struct hearth_pg *pg,
                                             const char *sql, bool *ret_any,
                                             enum hearth_pg_fault *ret_fault,
                                             struct hearth_err *err)
{
    PGresult *rows = NULL;
    HEARTH_TRY(hearth_pg_exec(pg, sql, &poll->params, poll->cancel, &rows, ret_fault, err));

    *ret_any = PQntuples(rows) > 0;
    PQclear(rows);

    return HEARTH_OK;
}

/* Runs the statements of a poll. Called again after a passing fault. */
static enum hearth_status run_poll(void *context, struct hearth_pg *pg,
                                   enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct poll *poll = context;
    bool any = false;
    poll->n = 0;

    /* Note that the agent polls, unless its tenant or service is not known yet. */
    if (!is_noted(poll->memo, poll->key, poll->now_ms)) {
        HEARTH_TRY(run_poll_statement(poll, pg, poll->note, &any, ret_fault, err));
        if (any) {
            remember_noted(poll->memo, poll->key, poll->now_ms);
        }
    }

    /* Usually no task concerns the agent, or it has received all commands. */
    HEARTH_TRY(run_poll_statement(poll, pg, poll->gate, &any, ret_fault, err));
    if (!any) {
        return HEARTH_OK;
    }

    HEARTH_TRY(read_commands(poll, pg, ret_fault, err));
    if (!poll->has_new) {
        return HEARTH_OK;
    }

    /* Hand the new ones out. */
    enum hearth_status status = add_commands(poll, pg, ret_fault, err);
    hearth_pg_rollback(pg);

    return status;
}

/*
 * Removes commands that the agent has: network tasks, which are read for their processes, and tasks
 * that another poll has handed out. Returns the number of commands that are left.
 */
static size_t drop_received(struct poll *poll)
{
    size_t n = 0;

    for (size_t i = 0; i < poll->n; i++) {
        if (poll->told[i].cursor_ms > poll->cursor_ms) {
            poll->told[n++] = poll->told[i];
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

/* Answers a poll. `poll` has its statements, parameters and lock. */
static enum hearth_status answer_poll(const struct hearth_scope *scope,
                                      const struct hearth_task_poll *request, struct poll *poll,
                                      struct hearth_told_task **ret, size_t *ret_n,
                                      struct hearth_err *err)
{
    assert(scope->arena != NULL && scope->store->poll_memo != NULL);
    assert(poll->note != NULL && poll->gate != NULL && poll->read != NULL && poll->add != NULL);
    HEARTH_TRY(hearth_store_check_open(scope->store, err));
    HEARTH_TRY(check_poll(request, err));

    /* Complete the poll, and run it. */
    hearth_pg_params_init(&poll->lock_params, scope->arena);
    hearth_pg_param_text(&poll->lock_params, poll->lock);
    poll->cancel = scope->cancel;
    poll->arena = scope->arena;
    poll->now_ms = request->now_ms;
    poll->cursor_ms = valid_cursor(request);
    poll->memo = scope->store->poll_memo;
    poll->key = make_poll_key(request);
    HEARTH_TRY(hearth_store_with_pg(scope, run_poll, poll, err));

    *ret = poll->told;
    *ret_n = drop_received(poll);

    return HEARTH_OK;
}

enum hearth_status hearth_store_tell_agent(const struct hearth_scope *scope,
                                           const struct hearth_task_poll *poll,
                                           struct hearth_told_task **ret, size_t *ret_n,
                                           struct hearth_err *err)
{
    struct poll state = {.note = agent_note,
                         .gate = agent_gate,
                         .read = agent_read,
                         .add = agent_add,
                         .lock = poll->agent_id};
    make_agent_params(poll, scope->arena, &state.params);

    return answer_poll(scope, poll, &state, ret, ret_n, err);
}

enum hearth_status hearth_store_tell_instance(const struct hearth_scope *scope,
                                              const struct hearth_task_poll *poll,
                                              struct hearth_told_task **ret, size_t *ret_n,
                                              struct hearth_err *err)
{
    struct poll state = {.note = instance_note,
                         .gate = instance_gate,
                         .read = instance_read,
                         .add = instance_add,
                         .lock = poll->instance};
    make_instance_params(poll, scope->arena, &state.params);

    return answer_poll(scope, poll, &state, ret, ret_n, err);
}
