/*
 * side_by_side.c -- several files at a time, each by a thread with a client of its own.
 *
 * A failure does not stop the others. Lines about files are printed as they end; the summary and the
 * exit code are in the order of the arguments.
 */
#include "side_by_side.h"

#include "hearth/base/mem.h"

#include "cli_call.h"
#include "cli_credential.h"
#include "cli_messages.h"
#include "progress.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

struct batch {
    struct cli *cli;
    cli_file_fn *run;
    enum cli_exit *codes; /* of each file */
    atomic_size_t next, n_done;
};

static void run_files(struct batch *batch, struct cli *cli)
{
    const struct cli *whole = batch->cli;

    for (size_t i = atomic_fetch_add(&batch->next, 1); i < whole->n_args;
         i = atomic_fetch_add(&batch->next, 1)) {
        batch->codes[i] = batch->run(cli, whole->args[i]);
        size_t n_done = atomic_fetch_add(&batch->n_done, 1) + 1;
        if (whole->n_args > 1 && n_done < whole->n_args) {
            cli_progress(whole, "%zu of %zu files", n_done, whole->n_args);
        }
    }
}

/* A thread: its own errors, memory and client. Without them the other threads do its work. */
static void *work_on_files(void *context)
{
    struct batch *batch = context;
    struct hearth_client_options options;
    struct cli *own = hearth_mem_alloc(sizeof *own);

    if (own == NULL) {
        return NULL;
    }
    *own = *batch->cli;
    hearth_arena_init(&own->arena, 0);
    own->client = NULL;
    cli_client_options(own, &options);
    if (cli_connect(own, &options, &own->client, &own->err) == HEARTH_OK) {
        run_files(batch, own);
    }
    hearth_client_free(own->client);
    hearth_arena_release(&own->arena);
    hearth_mem_free(own);

    return NULL;
}

/* How many failed, and which. */
static void print_summary(const struct batch *batch)
{
    const struct cli *cli = batch->cli;
    size_t n_failed = 0;

    for (size_t i = 0; i < cli->n_args; i++) {
        n_failed += batch->codes[i] != CLI_OK;
    }
    (void)fprintf(stderr, "%zu files: %zu sent, %zu failed\n", cli->n_args, cli->n_args - n_failed,
                  n_failed);
    for (size_t i = 0; i < cli->n_args; i++) {
        if (batch->codes[i] != CLI_OK) {
            cli_say("failed", cli->args[i]);
        }
    }
}

enum cli_exit cli_each_file(struct cli *cli, cli_file_fn *run)
{
    enum cli_exit codes[CLI_MAX_ARGS] = {CLI_OK};
    struct batch batch = {.cli = cli, .run = run, .codes = codes};
    pthread_t threads[MAX_JOBS];
    size_t n_threads = 0;
    size_t n_jobs = cli->jobs == 0 ? DEFAULT_JOBS : (size_t)cli->jobs;
    assert(cli->n_args > 0);

    if (n_jobs > MAX_JOBS) {
        return cli_usage("--jobs must be 1 to 16");
    }
    n_jobs = n_jobs < cli->n_args ? n_jobs : cli->n_args;
    while (n_threads + 1 < n_jobs &&
           pthread_create(&threads[n_threads], NULL, work_on_files, &batch) == 0) {
        n_threads++;
    }
    run_files(&batch, cli);
    for (size_t i = 0; i < n_threads; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    cli_progress_end();

    /* The exit code is that of the first file that failed. */
    if (cli->n_args > 1) {
        print_summary(&batch);
    }
    for (size_t i = 0; i < cli->n_args; i++) {
        if (codes[i] != CLI_OK) {
            return codes[i];
        }
    }

    return CLI_OK;
}
