/*
 * span_group_rows.h -- groups of spans out of hearth_data.span_group and task_segment (private to
 * the store).
 *
 * Threads: safe.
 */
#ifndef HEARTH_STORE_SPAN_GROUP_ROWS_H
#define HEARTH_STORE_SPAN_GROUP_ROWS_H

#include "hearth/store/store_spans.h"

#include "session/statements.h"

/* The flags of a group in one number (enum hearth_span_group_flags). */
int32_t hearth_span_group_flags_of(const struct hearth_span_group *group);

/*
 * The rows of a statement, in scope->arena. Its columns: service_id, service, instance, trace_id,
 * segment_id, start_at, duration, n_spans, kind::int4, flags::int4, endpoint, spans.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_select_span_groups(const struct hearth_scope *scope, const char *sql,
                                             const struct hearth_pg_params *params,
                                             struct hearth_span_group **ret, size_t *ret_n,
                                             struct hearth_err *err);

#endif
