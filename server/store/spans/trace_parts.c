/* trace_parts.c -- rows of spans, and the parts of an item (contract: trace_parts.h). */
#include "spans/trace_parts.h"

#include "hearth/base/mem.h"
#include "hearth/base/metrics.h"
#include "hearth/store/lost_nodes.h"

#include "pg/pg_rows.h"
#include "pg/queries.h"

/* ---- rows ---- */

#define GROUP_ROW(kind, member) HEARTH_COLUMN(kind, struct hearth_trace_row, member)
static const struct hearth_column group_row_columns[] = {
    GROUP_ROW(I32, service_id),   GROUP_ROW(I64, start_ns),    GROUP_ROW(I64, segment_key),
    GROUP_ROW(I64, trace_key),    GROUP_ROW(I64, duration_ns), GROUP_ROW(I32, n_spans),
    GROUP_ROW(I32, kind),         GROUP_ROW(I32, flags),       GROUP_ROW(BYTES, trace_id),
    GROUP_ROW(BYTES, segment_id), GROUP_ROW(TEXT, instance),   GROUP_ROW(TEXT, endpoint),
    GROUP_ROW(BYTES, spans),
};
static const struct hearth_row_type group_row_type =
    HEARTH_ROW_TYPE(group_row_columns, struct hearth_trace_row);

enum hearth_status hearth_trace_rows_insert(const struct hearth_trace_row *rows, size_t n,
                                            struct hearth_pg *pg, struct hearth_arena *arena,
                                            struct hearth_cancel *cancel,
                                            enum hearth_pg_fault *ret_fault, struct hearth_err *err)
{
    struct hearth_pg_params params;
    hearth_pg_params_init(&params, arena);
    hearth_pg_param_rows(&params, &group_row_type, rows, n);

    PGresult *result = NULL;
    HEARTH_TRY(hearth_pg_exec(pg, hearth_sql_insert_span_groups, &params, cancel, &result,
                              ret_fault, err));

    int64_t n_stored = 0;
    (void)hearth_str_to_i64(hearth_str_c(PQcmdTuples(result)), &n_stored);
    PQclear(result);
    hearth_metric_add(HEARTH_M_SEGMENTS_STORED, n_stored);

    return HEARTH_OK;
}

/* ---- parts ---- */

static void free_parts(struct hearth_trace_part *parts)
{
    while (parts != NULL) {
        struct hearth_trace_part *next = parts->next;
        hearth_mem_free(parts);
        parts = next;
    }
}

/* Add the parts of rows[0] to rows[n - 1], all of one item, to the list. */
static bool add_parts_of_item(struct hearth_store *store, const struct hearth_trace_row *rows,
                              size_t n, struct hearth_trace_part **parts)
{
    struct hearth_trace_part *of[HEARTH_MAX_NODES + 1] = {NULL};

    for (size_t i = 0; i < n; i++) {
        unsigned node = hearth_store_node_of(store, rows[i].service_id);
        struct hearth_trace_part *part = of[node];
        if (part == NULL) {
            part = hearth_mem_zalloc(sizeof *part + n * sizeof part->rows[0]);
            if (part == NULL) {
                return false;
            }
            *part = (struct hearth_trace_part){.next = *parts, .item = rows[0].item, .node = node};
            *parts = of[node] = part;
        }
        part->rows[part->n++] = rows[i];
    }

    return true;
}

enum hearth_status hearth_trace_parts_make(struct hearth_store *store,
                                           const struct hearth_trace_row *rows, size_t n,
                                           struct hearth_trace_part **ret, struct hearth_err *err)
{
    struct hearth_trace_part *parts = NULL;

    for (size_t from = 0, to; from < n; from = to) {
        for (to = from + 1; to < n && rows[to].item == rows[from].item;) {
            to++;
        }
        if (!add_parts_of_item(store, &rows[from], to - from, &parts)) {
            free_parts(parts);
            return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the spans of nodes");
        }
    }

    for (struct hearth_trace_part *part = parts; part != NULL; part = part->next) {
        part->item->n_parts++;
    }
    *ret = parts;

    return HEARTH_OK;
}
