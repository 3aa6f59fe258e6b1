/*
 * hearth_example.c -- a complete program for libhearth: pushes a pprof, queries a flame graph,
 * creates a profiling task and follows it.
 *
 *     cc -o hearth_example hearth_example.c $(pkg-config --cflags --libs hearth)
 *     ./hearth_example http://127.0.0.1:4040 cpu.pb.gz api
 */
#include <hearth/client.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define HOUR_MS 3600000

static int fail(const char *what, const struct hearth_client_error *error)
{
    (void)fprintf(stderr, "%s: %s%s\n", what, error->text,
                  error->is_open ? " (it may have been carried out)" : "");
    return 1;
}

/* The bytes of a file, which the caller frees; NULL with a message. */
static void *read_file(const char *path, size_t *ret_n)
{
    FILE *file = fopen(path, "rb");
    long n = 0;
    void *bytes = NULL;

    if (file != NULL && fseek(file, 0, SEEK_END) == 0 && (n = ftell(file)) > 0) {
        rewind(file);
        bytes = malloc((size_t)n);
    }
    if (bytes == NULL || fread(bytes, 1, (size_t)n, file) != (size_t)n) {
        (void)fprintf(stderr, "%s: cannot read it\n", path);
        free(bytes);
        bytes = NULL;
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    *ret_n = (size_t)n;

    return bytes;
}

static int push_file(struct hearth_client *client, const char *path, const char *service)
{
    const struct hearth_client_label labels[] = {{"__name__", "process_cpu"},
                                                 {"service_name", service}};
    struct hearth_client_profile profile = {.labels = labels, .n_labels = 2};
    struct hearth_client_pushed pushed;
    struct hearth_client_error error;
    void *bytes = read_file(path, &profile.n_bytes);

    if (bytes == NULL) {
        return 1;
    }
    profile.pprof = bytes;
    enum hearth_client_status status = hearth_client_push(client, &profile, 1, &pushed, &error);
    free(bytes);
    if (status != HEARTH_CLIENT_OK) {
        return fail("push", &error);
    }
    (void)printf("pushed %s%s%s\n", path,
                 pushed.dropped[0] == '\0' ? "" : ", dropped: ", pushed.dropped);

    return 0;
}

static int print_flame(struct hearth_client *client, const char *service)
{
    char selector[256];
    (void)snprintf(selector, sizeof selector, "{service_name=\"%s\"}", service);
    int64_t now_ms = (int64_t)time(NULL) * 1000;
    const struct hearth_client_query query = {
        .selector = selector,
        .type = "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
        .from_ms = now_ms - HOUR_MS,
        .to_ms = now_ms + HOUR_MS,
    };
    const struct hearth_client_flame *flame;
    struct hearth_client_error error;

    if (hearth_client_flame(client, &query, &flame, &error) != HEARTH_CLIENT_OK) {
        return fail("flame graph", &error);
    }
    (void)printf("total %" PRId64 " %s\n", flame->total, flame->unit);
    for (size_t i = 0; i < flame->n_nodes; i++) {
        const struct hearth_client_node *node = &flame->nodes[i];
        (void)printf("%zu below %" PRIu32 ": %s self %" PRId64 " total %" PRId64 "\n", i,
                     node->parent, node->name, node->self, node->total);
    }
    hearth_client_flame_free(flame);

    return 0;
}

static bool print_state(void *context, const struct hearth_client_task *task)
{
    (void)context;
    (void)printf("task %s: %s\n", task->state, task->reason);
    (void)fflush(stdout);

    return true;
}

static int run_task(struct hearth_client *client, const char *service)
{
    const struct hearth_client_task_request request = {
        .kind = HEARTH_CLIENT_TASK_TRACE,
        .service = service,
        .endpoint = "/pay",
        .duration_ms = 60000,
        .min_duration_ms = 100,
        .dump_period_ms = 10,
        .max_samples = 1,
    };
    struct hearth_client_bytes id;
    struct hearth_client_error error;

    if (hearth_client_task_create(client, &request, &id, &error) != HEARTH_CLIENT_OK) {
        return fail("create a task", &error);
    }
    (void)printf("created %s\n", id.p);
    enum hearth_client_status status =
        hearth_client_task_follow(client, id.p, INT64_MAX, print_state, NULL, &error);
    hearth_client_bytes_free(&id);

    return status == HEARTH_CLIENT_OK ? 0 : fail("follow the task", &error);
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        (void)fprintf(stderr, "usage: hearth_example URL FILE SERVICE\n");
        return 2;
    }
    struct hearth_client_options options;
    struct hearth_client *client;
    struct hearth_client_error error;
    hearth_client_options_init(&options);
    options.url = argv[1];
    if (hearth_client_new(&options, &client, &error) != HEARTH_CLIENT_OK) {
        return fail("client", &error);
    }
    int code = push_file(client, argv[2], argv[3]);
    code = code != 0 ? code : print_flame(client, argv[3]);
    code = code != 0 ? code : run_task(client, argv[3]);
    hearth_client_free(client);

    return code;
}
