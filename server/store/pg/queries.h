/*
 * queries.h -- long SQL statements, one in each file of sql/queries/, as constants (private to the
 * store).
 *
 * The build embeds the files without their comments, which say what a statement answers, by which
 * index, and its parameters. Statements that C composes out of parts stand in C.
 *
 * Threads: immutable.
 */
#ifndef HEARTH_STORE_QUERIES_H
#define HEARTH_STORE_QUERIES_H

/* sql/queries/NAME.sql */
extern const char hearth_sql_count_segment_snapshots[];
extern const char hearth_sql_find_spans[];
extern const char hearth_sql_insert_snapshot_runs[];
extern const char hearth_sql_insert_span_groups[];
extern const char hearth_sql_measure_tiers[];
extern const char hearth_sql_select_data_disk[];
extern const char hearth_sql_select_left_task_flushes[];
extern const char hearth_sql_select_originals[];
extern const char hearth_sql_select_service_disk[];
extern const char hearth_sql_select_task_original[];
extern const char hearth_sql_select_task_runs[];
extern const char hearth_sql_select_task_upload_origin[];
extern const char hearth_sql_upsert_task_run[];

struct hearth_query_text {
    const char *file; /* base name; NULL at the end of the table */
    const char *sql;
    const char *types; /* of the parameters, as in PREPARE: "text, int4[]" */
};

/* All of them, sorted by file. */
extern const struct hearth_query_text hearth_query_texts[];

#endif
