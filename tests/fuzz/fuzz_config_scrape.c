/*
 * fuzz_config_scrape.c -- any bytes as the file of --scrape-config: it is refused with a reason, or its jobs keep what
 * scraper.h promises.
 */
#include "input_file.h"
#include "scrape_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_group(const struct hearth_scrape_group *group)
{
    for (size_t i = 0; i < group->n_addresses; i++) {
        size_t n = strlen(group->addresses[i]);
        HEARTH_ASSERT(n > 0 && n <= HEARTH_SCRAPE_MAX_ADDRESS);
    }
    for (size_t i = 0; i < group->n_labels; i++) {
        HEARTH_ASSERT(group->labels[i].name.n > 0);
    }
}

static void check_job(const struct hearth_scrape_job *job)
{
    HEARTH_ASSERT(job->name[0] != '\0' && job->tenant[0] != '\0');
    HEARTH_ASSERT(strcmp(job->scheme, "http") == 0 || strcmp(job->scheme, "https") == 0);
    HEARTH_ASSERT(job->interval_ns > 0 && job->timeout_ns > 0);
    for (size_t i = 0; i < job->n_paths; i++) {
        HEARTH_ASSERT(job->paths[i].path[0] == '/');
        HEARTH_ASSERT(strlen(job->paths[i].path) <= HEARTH_SCRAPE_MAX_PATH);
    }
    for (size_t i = 0; i < job->n_groups; i++) {
        check_group(&job->groups[i]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hearth_arena arena;
    struct hearth_scrape_options options = {.n_jobs = 0};
    struct hearth_err err = HEARTH_ERR_INIT;

    hearth_arena_init(&arena, 64u << 20);
    if (hearth_scrape_file_load(write_input_file(data, size), &arena, &options, &err) ==
        HEARTH_OK) {
        for (size_t i = 0; i < options.n_jobs; i++) {
            check_job(&options.jobs[i]);
        }
        hearth_scrape_file_release(&options);
    } else {
        HEARTH_ASSERT(err.msg[0] != '\0');
    }
    hearth_arena_release(&arena);

    return 0;
}
