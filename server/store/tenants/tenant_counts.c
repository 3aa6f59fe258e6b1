/* tenant_counts.c -- counts services, series and tasks of a tenant (contract: tenant_counts.h). */
#include "hearth/store/tenant_counts.h"

#include "hearth/base/clock.h"

#include "session/statements.h"

#include <assert.h>

#define COUNT(member) HEARTH_COLUMN(I64, struct hearth_tenant_counts, member)
static const struct hearth_column count_columns[] = {
    COUNT(n_services),
    COUNT(n_series),
    COUNT(n_tasks),
};
static const struct hearth_row_type count_rows =
    HEARTH_ROW_TYPE(count_columns, struct hearth_tenant_counts);

enum hearth_status hearth_store_tenant_counts(const struct hearth_scope *scope,
                                              struct hearth_tenant_counts *ret,
                                              struct hearth_err *err)
{
    assert(scope->arena != NULL && ret != NULL);

    struct hearth_pg_params params;
    hearth_pg_params_init(&params, scope->arena);
    hearth_pg_param_text(&params, scope->tenant);
    hearth_pg_param_i64(&params, hearth_clock_wall_ns() / HEARTH_NS_PER_MS);
    bool found;

    /* Services by (tenant_id, fingerprint), then their series by (service_id, series_id). */
    return hearth_store_select_one(
        scope,
        "WITH s AS MATERIALIZED (SELECT service_id FROM hearth_data.service JOIN"
        " hearth_data.tenant t USING (tenant_id) WHERE t.name = $1)"
        " SELECT (SELECT count(*) FROM s),"
        " (SELECT coalesce(sum(n), 0)::int8 FROM s, LATERAL (SELECT count(*) AS n FROM"
        " hearth_data.series e WHERE e.service_id = s.service_id) x),"
        " (SELECT count(*) FROM s JOIN hearth_data.task t USING (service_id) WHERE"
        " t.cancelled_at IS NULL AND t.start_at + t.duration > $2)",
        &params, &count_rows, ret, &found, err);
}
