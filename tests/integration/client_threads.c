/*
 * client_threads.c -- one client of libhearth in several threads: each pushes a profile and queries
 * the flame graph, in turn; before, it asks for the server's health. Every call must succeed, whatever happens to the server meanwhile.
 *
 *     client_threads URL FILE THREADS ROUNDS
 *
 * Prints a line after each round of a thread.
 */
#include <hearth/client.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAX_THREADS    64
#define MAX_FILE_BYTES 65536

static struct hearth_client *g_client;
static char g_file[MAX_FILE_BYTES];
static size_t g_file_bytes;
static int g_rounds;

static bool push_and_query(void)
{
    static const struct hearth_client_label labels[] = {{"__name__", "process_cpu"},
                                                        {"service_name", "threads"}};
    const struct hearth_client_profile profile = {
        .labels = labels, .n_labels = 2, .pprof = g_file, .n_bytes = g_file_bytes};
    int64_t now_ms = (int64_t)time(NULL) * 1000;
    const struct hearth_client_query query = {
        .selector = "{service_name=\"threads\"}",
        .type = "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
        .from_ms = now_ms - 3600000,
        .to_ms = now_ms + 3600000,
    };
    const struct hearth_client_flame *flame;
    struct hearth_client_error error;

    if (hearth_client_push(g_client, &profile, 1, NULL, &error) != HEARTH_CLIENT_OK ||
        hearth_client_flame(g_client, &query, &flame, &error) != HEARTH_CLIENT_OK) {
        (void)fprintf(stderr, "status %d: %s\n", (int)error.status, error.text);
        return false;
    }
    bool has_data = flame->n_nodes > 1;
    hearth_client_flame_free(flame);

    return has_data;
}

static void *run_rounds(void *failed)
{
    for (int i = 0; i < g_rounds; i++) {
        if (!push_and_query()) {
            return failed;
        }
        (void)printf("round\n");
        (void)fflush(stdout);
    }

    return NULL;
}

/* HealthCheckResponse{status: SERVING} */
static bool is_serving(const void *message, size_t n)
{
    return n == 2 && memcmp(message, "\x08\x01", 2) == 0;
}

static bool end_when_serving(void *count, const void *message, size_t n)
{
    ++*(int *)count;

    return !is_serving(message, n);
}

/* A method that has no typed call, and a stream, which its callback ends. */
static bool check_health(void)
{
    struct hearth_client_error error;
    struct hearth_client_bytes answer;
    int n_messages = 0;

    if (hearth_client_call(g_client, "grpc.health.v1.Health/Check", "", 0, &answer, &error) !=
        HEARTH_CLIENT_OK) {
        (void)fprintf(stderr, "%s\n", error.text);
        return false;
    }
    bool is_well = is_serving(answer.p, answer.n);
    hearth_client_bytes_free(&answer);

    return is_well &&
           hearth_client_stream(g_client, "grpc.health.v1.Health/Watch", "", 0, 60000,
                                end_when_serving, &n_messages, &error) == HEARTH_CLIENT_CANCELLED &&
           n_messages == 1 &&
           hearth_client_call(g_client, "no.Service/Method", "", 0, &answer, &error) ==
               HEARTH_CLIENT_UNIMPLEMENTED;
}

int main(int argc, char **argv)
{
    struct hearth_client_options options;
    struct hearth_client_error error;
    pthread_t threads[MAX_THREADS];
    int n_threads = argc == 5 ? (int)strtol(argv[3], NULL, 10) : 0;
    FILE *file = n_threads > 0 && n_threads <= MAX_THREADS ? fopen(argv[2], "rb") : NULL;

    if (file == NULL) {
        return 2;
    }
    g_file_bytes = fread(g_file, 1, sizeof g_file, file);
    (void)fclose(file);
    g_rounds = (int)strtol(argv[4], NULL, 10);

    hearth_client_options_init(&options);
    options.url = argv[1];
    options.timeout_ms = options.retry_ms = 300000; /* slow machines restart slowly */
    if (hearth_client_new(&options, &g_client, &error) != HEARTH_CLIENT_OK) {
        (void)fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    if (!check_health()) {
        (void)fprintf(stderr, "health\n");
        return 1;
    }
    for (int i = 0; i < n_threads; i++) {
        if (pthread_create(&threads[i], NULL, run_rounds, &error) != 0) {
            return 1;
        }
    }
    bool has_failed = false;
    for (int i = 0; i < n_threads; i++) {
        void *result;
        has_failed = pthread_join(threads[i], &result) != 0 || result != NULL || has_failed;
    }
    hearth_client_free(g_client);

    return has_failed ? 1 : 0;
}
