/*
 * roll_fill.c -- writes the hours and days that were left out before their profiles are dropped
 * (hearth_step_fill).
 *
 * Blocks of hours and days are kept longer than profiles, so they may only be absent as long as
 * profiles can answer in their place. LEAD_NS before the first profiles of a day expire, all that
 * the day lacks is written in one transaction, which takes the day out of roll_state.absent. The
 * retention of profiles waits for that (retention_step.c), and so do readers: they use the profiles
 * until then, whatever retain-raw says (engine/plan.h). Blocks that would expire with the profiles
 * are not written; only their absence is forgotten.
 */
#include "build/roll_fill.h"

#include "hearth/base/clock.h"
#include "hearth/base/log.h"
#include "hearth/base/metrics.h"
#include "hearth/store/background.h"

#include "build/roll.h"
#include "pg/pg.h"
#include "pg/pg_rows.h"
#include "pg/store_state.h"
#include "session/partitions.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define STEP_NS      HEARTH_NS_PER_SEC
#define PASS_EACH_NS (60 * HEARTH_NS_PER_SEC)
/* Before the begin of a day is past retain-raw, its blocks are written. */
#define LEAD_NS HEARTH_NS_PER_HOUR

/* ---- services that lack blocks ---- */

static enum hearth_status take_unfilled(const PGresult *result, struct hearth_unfilled *ret,
                                        size_t *ret_n, struct hearth_err *err)
{
    for (int row = 0; row < PQntuples(result); row++) {
        struct hearth_absent_set absent;
        struct hearth_unfilled *to = &ret[*ret_n];
        *to = (struct hearth_unfilled){.service_id = hearth_pg_i32(result, row, 0),
                                       .built_to_ns = hearth_pg_i64(result, row, 1)};
        HEARTH_TRY(hearth_absent_set_take(result, row, 2, &absent, err));
        int64_t first_ns = hearth_absent_set_first_long(&absent, to->built_to_ns);
        if (first_ns != INT64_MAX) {
            to->day_ns = hearth_floor_ns(first_ns, HEARTH_NS_PER_DAY);
            (*ret_n)++;
        }
    }

    return HEARTH_OK;
}

enum hearth_status hearth_unfilled_list(struct hearth_pg *pg, struct hearth_arena *arena,
                                        struct hearth_unfilled **ret, size_t *ret_n,
                                        struct hearth_err *err)
{
    PGresult *result = NULL;
    *ret_n = 0;
    HEARTH_TRY(hearth_pg_exec(pg,
                              "SELECT service_id, built_to, absent FROM hearth_data.roll_state"
                              " WHERE cardinality(absent) > 0 ORDER BY service_id",
                              NULL, NULL, &result, NULL, err));
    size_t n_rows = (size_t)PQntuples(result);
    *ret = hearth_arena_array(arena, n_rows + 1, sizeof **ret);
    if (*ret == NULL) {
        PQclear(result);
        return HEARTH_FAIL_ARENA(err, arena);
    }

    enum hearth_status status = take_unfilled(result, *ret, ret_n, err);
    PQclear(result);

    return status;
}

static int compare_unfilled(const void *key, const void *element)
{
    int32_t a = *(const int32_t *)key, b = ((const struct hearth_unfilled *)element)->service_id;
    return (a > b) - (a < b);
}

int64_t hearth_unfilled_day(const struct hearth_unfilled *services, size_t n, int32_t service_id)
{
    const struct hearth_unfilled *found =
        n == 0 ? NULL : bsearch(&service_id, services, n, sizeof *services, compare_unfilled);

    return found == NULL ? INT64_MAX : found->day_ns;
}

enum hearth_status hearth_unfilled_before(struct hearth_pg *pg, int32_t tenant_id, int64_t end_ns,
                                          bool *ret, struct hearth_err *err)
{
    HEARTH_CLEANUP(hearth_arena_release) struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct hearth_unfilled *services = NULL;
    size_t n_services = 0, n = 0;
    HEARTH_TRY(hearth_unfilled_list(pg, &arena, &services, &n_services, err));

    int32_t *ids = hearth_arena_array(&arena, n_services + 1, sizeof *ids);
    if (ids == NULL) {
        return HEARTH_FAIL_ARENA(err, &arena);
    }

    for (size_t i = 0; i < n_services; i++) {
        if (services[i].day_ns < end_ns) {
            ids[n++] = services[i].service_id;
        }
    }

    *ret = false;
    if (n == 0) {
        return HEARTH_OK;
    }

    struct hearth_pg_params params;
    hearth_pg_params_init(&params, &arena);
    hearth_pg_param_i32_array(&params, ids, n);
    hearth_pg_param_i32(&params, tenant_id);
    PGresult *result = NULL;
    HEARTH_TRY(hearth_pg_exec(pg,
                              "SELECT FROM hearth_data.service JOIN hearth_data.tenant USING"
                              " (tenant_id) WHERE service_id = ANY ($1) AND ($2 = 0 OR tenant_id ="
                              " $2) LIMIT 1",
                              &params, NULL, &result, NULL, err));
    *ret = PQntuples(result) > 0;
    PQclear(result);

    return HEARTH_OK;
}

/* ---- a day of a service ---- */

/* A day that is due, and what of it outlives its profiles. */
struct fill {
    struct hearth_builder *builder;
    int32_t service_id;
    int64_t day_ns;
    bool hours, days; /* are kept longer than profiles */
};

/* Whether blocks of a day are kept longer than its profiles. */
static bool outlives(const struct fill *fill, int64_t kept_ns, int64_t profiles_ns, int64_t now_ns)
{
    return kept_ns == 0 ||
           (kept_ns > profiles_ns && kept_ns > now_ns - fill->day_ns - HEARTH_NS_PER_DAY);
}

/* Writes the hours of the day that are absent: first of series, then of the whole service. */
static enum hearth_status fill_hours(const struct fill *fill, struct hearth_roll *roll,
                                     const struct hearth_absent_set *absent, struct hearth_err *err)
{
    for (int64_t at = fill->day_ns; at < fill->day_ns + HEARTH_NS_PER_DAY;
         at += HEARTH_NS_PER_HOUR) {
        int64_t end_ns = at + HEARTH_NS_PER_HOUR;
        if (hearth_absent_set_meets(absent, HEARTH_NS_PER_HOUR, false, at, end_ns)) {
            bool whole = hearth_absent_set_meets(absent, HEARTH_NS_PER_HOUR, true, at, end_ns);
            HEARTH_TRY(hearth_roll_hour_rows(roll, at, whole, err));
        }
    }

    return HEARTH_OK;
}

/* Writes what the day lacks, as far as it is kept longer. */
static enum hearth_status fill_blocks(const struct fill *fill, struct hearth_roll *roll,
                                      struct hearth_err *err)
{
    const struct hearth_absent_set absent = roll->absent;
    int64_t end_ns = fill->day_ns + HEARTH_NS_PER_DAY;
    hearth_absent_set_cut_long(&roll->absent, end_ns);

    if (fill->hours) {
        HEARTH_TRY(fill_hours(fill, roll, &absent, err));
    }

    if (!fill->days ||
        !hearth_absent_set_meets(&absent, HEARTH_NS_PER_DAY, false, fill->day_ns, end_ns)) {
        return HEARTH_OK;
    }

    /* If hours are not kept as long, some of this day may be gone. */
    bool whole = hearth_absent_set_meets(&absent, HEARTH_NS_PER_DAY, true, fill->day_ns, end_ns);

    return hearth_roll_day(roll, fill->day_ns, whole ? HEARTH_ROLL_UP_ALL : HEARTH_ROLL_UP_SERIES,
                           !fill->hours, err);
}

/* The state of the service under its lock. */
struct fill_state {
    int64_t part; /* 0: the day is built again, or a deletion is going on, which decides by it */
    int64_t compacted_to_ns;
    struct hearth_absent_set absent;
};

static enum hearth_status lock_fill_state(const struct fill *fill, struct fill_state *ret,
                                          struct hearth_err *err)
{
    char sql[320];
    (void)snprintf(
        sql, sizeof sql,
        "UPDATE hearth_data.roll_state SET generation = generation + 1 WHERE service_id"
        " = %" PRId32 " AND built_to >= %" PRId64
        " AND NOT EXISTS (SELECT 1 FROM hearth_data.tombstone WHERE service_id = %" PRId32
        ") RETURNING generation, compacted_to, absent",
        fill->service_id, fill->day_ns + HEARTH_NS_PER_DAY, fill->service_id);
    PGresult *result = NULL;
    HEARTH_TRY(hearth_pg_exec(&fill->builder->pg, sql, NULL, NULL, &result, NULL, err));

    enum hearth_status status = HEARTH_OK;
    ret->part = 0;
    if (PQntuples(result) > 0) {
        ret->part = hearth_pg_i64(result, 0, 0);
        ret->compacted_to_ns = hearth_pg_i64(result, 0, 1);
        status = hearth_absent_set_take(result, 0, 2, &ret->absent, err);
    }
    PQclear(result);

    return status;
}

static enum hearth_status fill_in_transaction(const struct fill *fill, struct hearth_roll *roll,
                                              bool *ret_filled, struct hearth_err *err)
{
    struct fill_state state;
    HEARTH_TRY(lock_fill_state(fill, &state, err));
    *ret_filled = state.part != 0;
    if (!*ret_filled) {
        return HEARTH_OK;
    }

    HEARTH_TRY(hearth_roll_init(roll, fill->builder, fill->service_id, state.part, 0, 0, err));
    roll->absent = state.absent;
    roll->compacted_to_ns = state.compacted_to_ns;
    HEARTH_TRY(fill_blocks(fill, roll, err));
    HEARTH_TRY(hearth_roll_store_state(roll, 0, err)); /* built_to stays */

    return hearth_builder_commit(fill->builder, err);
}

/* Fills a day of a service in a transaction. *ret_filled: it could be filled now. */
static enum hearth_status fill_day(const struct fill *fill, bool *ret_filled,
                                   struct hearth_err *err)
{
    struct hearth_builder *builder = fill->builder;
    int32_t day = hearth_day_of(fill->day_ns);
    if (fill->hours || fill->days) {
        HEARTH_TRY(
            hearth_partitions_ensure(builder->store, &builder->pg, HEARTH_LEAVES_ROLL, day, err));
    }

    HEARTH_TRY(hearth_builder_begin(builder, err));
    struct hearth_roll roll = {0};
    enum hearth_status status = fill_in_transaction(fill, &roll, ret_filled, err);
    if (status == HEARTH_OK) {
        hearth_roll_count(&roll);
    } else {
        hearth_partitions_forget(builder->store, day); /* a leaf may have been missing */
        hearth_err_prefix(err, "the absent hours of service %" PRId32, fill->service_id);
    }
    hearth_roll_release(&roll);
    hearth_builder_rollback(builder); /* no effect after a commit */

    return status;
}

/* ---- the step ---- */

/* Reads the tenants of the services: rows (service_id, name), by service. */
static enum hearth_status read_tenants_of(struct hearth_builder *builder,
                                          const struct hearth_unfilled *services, size_t n,
                                          struct hearth_arena *arena, PGresult **ret,
                                          struct hearth_err *err)
{
    int32_t *ids = hearth_arena_array(arena, n + 1, sizeof *ids);
    if (ids == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (size_t i = 0; i < n; i++) {
        ids[i] = services[i].service_id;
    }

    struct hearth_pg_params params;
    hearth_pg_params_init(&params, arena);
    hearth_pg_param_i32_array(&params, ids, n);

    return hearth_pg_exec(&builder->pg,
                          "SELECT service_id, t.name FROM hearth_data.service JOIN"
                          " hearth_data.tenant t USING (tenant_id) WHERE service_id = ANY ($1)"
                          " ORDER BY service_id",
                          &params, NULL, ret, NULL, err);
}

/* A pass over the services. */
struct fill_pass {
    struct hearth_builder *builder;
    int64_t now_ns, until_mono_ns;
    int64_t lag_ns; /* for how long the profiles of the oldest day have waited past retain-raw */
    bool more;
    enum hearth_status failed; /* the first failure; it does not stop the other services */
    struct hearth_err failure;
};

/* Fills the first day of a service if it is due. */
static void fill_service(struct fill_pass *pass, const struct hearth_unfilled *service,
                         struct hearth_str tenant)
{
    struct hearth_retention keep;
    hearth_store_retention(pass->builder->store, tenant, &keep);
    struct fill fill = {pass->builder, service->service_id, service->day_ns, false, false};
    int64_t end_ns = fill.day_ns + HEARTH_NS_PER_DAY;
    if (keep.profiles_ns == 0 || keep.profiles_ns > pass->now_ns + LEAD_NS - fill.day_ns ||
        end_ns > service->built_to_ns) {
        return;
    }

    /* The lag is what it is before the day is filled. */
    int64_t lag_ns = pass->now_ns - keep.profiles_ns - end_ns;
    pass->lag_ns = lag_ns > pass->lag_ns ? lag_ns : pass->lag_ns;
    if (hearth_clock_mono_ns() >= pass->until_mono_ns) {
        pass->more = true;
        return;
    }

    struct hearth_err failure = HEARTH_ERR_INIT;
    fill.hours = outlives(&fill, keep.roll_1h_ns, keep.profiles_ns, pass->now_ns);
    fill.days = outlives(&fill, keep.roll_1d_ns, keep.profiles_ns, pass->now_ns);
    bool filled = false;
    enum hearth_status status = fill_day(&fill, &filled, &failure);
    pass->more = pass->more || filled;
    if (status != HEARTH_OK && pass->failed == HEARTH_OK) {
        pass->failed = status;
        pass->failure = failure;
    }
}

static enum hearth_status fill_services(struct fill_pass *pass, struct hearth_arena *arena,
                                        struct hearth_err *err)
{
    struct hearth_builder *builder = pass->builder;
    struct hearth_unfilled *services = NULL;
    size_t n = 0, at = 0;
    HEARTH_TRY(hearth_unfilled_list(&builder->pg, arena, &services, &n, err));
    if (n == 0) {
        return HEARTH_OK;
    }

    PGresult *tenants = NULL;
    HEARTH_TRY(read_tenants_of(builder, services, n, arena, &tenants, err));
    for (int row = 0; row < PQntuples(tenants); row++) {
        int32_t service_id = hearth_pg_i32(tenants, row, 0);
        while (at < n && services[at].service_id < service_id) {
            at++;
        }

        /* Without the connection or the lease, the others would fail too. */
        if (at == n || !hearth_pg_usable(&builder->pg) || builder->token == 0) {
            break;
        }
        if (services[at].service_id == service_id) {
            fill_service(pass, &services[at], hearth_pg_str(tenants, row, 1));
        }
    }
    PQclear(tenants);

    return HEARTH_OK;
}

enum hearth_status hearth_step_fill(struct hearth_builder *builder, bool *ret_more,
                                    struct hearth_err *err)
{
    int64_t now_ns = hearth_clock_mono_ns();
    if (now_ns < builder->next_fill_mono_ns) {
        return HEARTH_OK;
    }

    HEARTH_CLEANUP(hearth_arena_release) struct hearth_arena arena;
    hearth_arena_init(&arena, 0);
    struct fill_pass pass = {.builder = builder,
                             .now_ns = hearth_clock_wall_ns(),
                             .until_mono_ns = now_ns + STEP_NS,
                             .failure = HEARTH_ERR_INIT};
    HEARTH_TRY(fill_services(&pass, &arena, err));

    hearth_metric_set(HEARTH_M_FILL_LAG, pass.lag_ns);
    *ret_more = pass.more;
    builder->next_fill_mono_ns = pass.more ? 0 : now_ns + PASS_EACH_NS;
    if (pass.failed != HEARTH_OK && !pass.more) {
        *err = pass.failure;
        return pass.failed;
    }

    return HEARTH_OK;
}
