/* cmd_task.h -- what the commands `hearth task ...` share. */
#ifndef HEARTH_CLIENTS_CMD_TASK_H
#define HEARTH_CLIENTS_CMD_TASK_H

#include "hearth/pb/hearth/v1/task_results.pb-c.h"
#include "hearth/pb/hearth/v1/tasks.pb-c.h"

#include "cli.h"
#include "listing.h"

#define CLI_TASKS "hearth.v1.TaskService/"

/* "on-CPU" ..; "finished" .. for people. */
const char *cli_task_kind(Hearth__V1__TaskKind kind);
const char *cli_task_state(Hearth__V1__TaskState state);
/* oncpu, offcpu, network, trace, async, pprof; false: none of them. */
HEARTH_MUST_CHECK bool cli_task_kind_of(const char *word, Hearth__V1__TaskKind *ret);
/* A text with commas as the repeated field of a request; NULL: none. */
HEARTH_MUST_CHECK enum hearth_status cli_task_texts(struct cli *cli, const char *text,
                                                    size_t *ret_n, char ***ret);
/* The request that arguments and options of `task create` describe. INVALID_ARGUMENT names an option
 * that the kind needs or that is malformed. */
HEARTH_MUST_CHECK enum hearth_status cli_task_request(struct cli *cli,
                                                      Hearth__V1__CreateTaskRequest *request);

/* Ask until the task has ended and print each change; CLI_OK only if it ended with data. */
enum cli_exit cli_task_watch(struct cli *cli, const char *task_id);
/* Say on standard error that a task has none of them, and its state; CLI_NO_DATA, or that there is no such task. */
enum cli_exit cli_task_nothing(struct cli *cli, const char *task_id, const char *what);
/* Say what the archive of an exported task does not have. */
void cli_task_say_left_out(struct cli *cli, const char *task_id);
void cli_task_print(const Hearth__V1__Task *task, struct hearth_buf *out);

/* ---- cmd_task_tree.c: stack traces as the file that -o names; CLI_NO_DATA without any ---- */

enum cli_exit cli_task_write_stacks(struct cli *cli,
                                    const Hearth__V1__AnalyzeStacksResponse *answer);
enum cli_exit cli_task_write_analysis(struct cli *cli,
                                      const Hearth__V1__AnalyzeUploadsResponse *answer);

#endif
