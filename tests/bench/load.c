/*
 * load.c -- push the profiles of a pool, or ask one small question, as fast as the server answers or at a rate.
 *
 * load push  HOST:PORT POOL PODS IN_FLIGHT SECONDS RATE [CALLS]  gRPC Push, one profile a call; CALLS: no more than these
 * load http  HOST:PORT POOL PODS IN_FLIGHT SECONDS RATE [CALLS]  the same over HTTP/1.1 (Connect, application/proto)
 * load call  HOST:PORT /METHOD IN_FLIGHT SECONDS                 gRPC with an empty message
 * load post  HOST:PORT /PATH IN_FLIGHT SECONDS                   HTTP/1.1 POST of {} as JSON
 *
 * Calls of gRPC carry a credential by the environment: BENCH_TOKEN a bearer token; BENCH_CA the file of an
 * authority, then TLS is spoken; BENCH_CERT and BENCH_KEY the files of a client certificate.
 *
 * RATE 0: a new call for each answer. Otherwise calls start when they are due, whether the server keeps up or
 * not (as far as IN_FLIGHT allows), and latency counts from the due time. Every push has another time and
 * its services and pods take turns. Prints JSON; the generator's own CPU is not part of any figure.
 */
#include "pool.h"

#include <grpc/byte_buffer.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/slice.h>
#include <grpc/support/alloc.h>
#include <grpc/support/time.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>

#define MAX_LATENCIES (1u << 22)
#define MAX_HEAD      512
#define MAX_CHANNELS  4
#define NS_PER_SEC    INT64_C(1000000000)

struct job {
    const char *target;
    struct pool pool;
    bool has_pool;
    uint32_t n_pods, n_in_flight;
    double seconds, rate;
    uint64_t n_calls;
    const char *method;
    grpc_metadata credential;
    size_t n_credentials;
    int64_t end_ns, start_ns;
    _Atomic uint64_t n_started, n_ok, n_failed;
    float *latency_ms;
    _Atomic uint32_t n_latencies;
    char first_error[256];
};

static struct job g_job;

static int64_t mono_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * NS_PER_SEC + t.tv_nsec;
}

static void die(const char *what)
{
    perror(what);
    exit(1);
}

/* ---- messages ---- */

/* A message in three pieces: head, body of the pool, tail. */
struct message {
    unsigned char head[MAX_HEAD], tail[POOL_TAIL_BYTES];
    size_t n_head, n_body;
    const unsigned char *body;
};

static size_t varint_size(size_t n)
{
    size_t size = 1;
    for (; n >= 0x80; n >>= 7) {
        size++;
    }
    return size;
}

static unsigned char *put_varint(unsigned char *to, size_t n)
{
    for (; n >= 0x80; n >>= 7) {
        *to++ = (unsigned char)(n | 0x80);
    }
    *to++ = (unsigned char)n;
    return to;
}

static unsigned char *put_label(unsigned char *to, const char *name, const char *value)
{
    size_t n_name = strlen(name), n_value = strlen(value);
    *to++ = 1 << 3 | 2;
    *to++ = (unsigned char)(4 + n_name + n_value);
    *to++ = 1 << 3 | 2;
    *to++ = (unsigned char)n_name;
    to = (unsigned char *)memcpy(to, name, n_name) + n_name;
    *to++ = 2 << 3 | 2;
    *to++ = (unsigned char)n_value;
    return (unsigned char *)memcpy(to, value, n_value) + n_value;
}

/* PushRequest {series {labels..., samples {raw_profile}}}: the bytes before the profile, and the profile. */
static void make_message(uint64_t no, struct message *out)
{
    const struct pool *pool = &g_job.pool;
    uint32_t n_services = pool->head->n_services;
    uint32_t service = (uint32_t)(no % n_services),
             pod = (uint32_t)(no / n_services % g_job.n_pods);
    uint32_t profile = (uint32_t)(no / n_services % pool->head->n_profiles);
    const struct pool_entry *entry = pool_entry(pool, service, profile);
    char service_name[32], pod_name[48];
    (void)snprintf(service_name, sizeof service_name, "bench-%02u", service);
    (void)snprintf(pod_name, sizeof pod_name, "bench-%02u-7d4f9c6b5-%05u", service, pod);
    unsigned char labels[MAX_HEAD], *to = labels;
    to = put_label(to, "__name__", pool->head->is_heap ? "memory" : "process_cpu");
    to = put_label(to, "service_name", service_name);
    to = put_label(to, "namespace", "production");
    to = put_label(to, "cluster", "eu-west-1");
    to = put_label(to, "pod", pod_name);
    to = put_label(to, "version", "1.42.0");
    size_t n_labels = (size_t)(to - labels);
    size_t n_profile = entry->n_bytes + POOL_TAIL_BYTES;
    size_t n_sample = 1 + varint_size(n_profile) + n_profile;
    size_t n_series = n_labels + 1 + varint_size(n_sample) + n_sample;
    to = out->head;
    *to++ = 1 << 3 | 2;
    to = put_varint(to, n_series);
    to = (unsigned char *)memcpy(to, labels, n_labels) + n_labels;
    *to++ = 2 << 3 | 2;
    to = put_varint(to, n_sample);
    *to++ = 1 << 3 | 2;
    to = put_varint(to, n_profile);
    out->n_head = (size_t)(to - out->head);
    out->body = pool->bytes + entry->offset;
    out->n_body = entry->n_bytes;
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    pool_tail(pool, entry, now.tv_sec * NS_PER_SEC + now.tv_nsec, out->tail);
}

/* ---- pace and outcome ---- */

/* When the next call is due; false when the time is up. */
static bool next_call(uint64_t *ret_no, int64_t *ret_due_ns)
{
    uint64_t no = atomic_fetch_add(&g_job.n_started, 1);
    *ret_no = no;
    *ret_due_ns =
        g_job.rate > 0 ? g_job.start_ns + (int64_t)((double)no * 1e9 / g_job.rate) : mono_ns();
    return no < g_job.n_calls && *ret_due_ns < g_job.end_ns && mono_ns() < g_job.end_ns;
}

static void count_answer(bool ok, int64_t due_ns, const char *why)
{
    if (!ok) {
        if (atomic_fetch_add(&g_job.n_failed, 1) == 0) {
            (void)snprintf(g_job.first_error, sizeof g_job.first_error, "%s", why);
        }
        return;
    }
    atomic_fetch_add(&g_job.n_ok, 1);
    uint32_t i = atomic_fetch_add(&g_job.n_latencies, 1);
    if (i < MAX_LATENCIES) {
        g_job.latency_ms[i] = (float)((double)(mono_ns() - due_ns) / 1e6);
    }
}

static void sleep_until(int64_t ns)
{
    struct timespec t = {ns / NS_PER_SEC, ns % NS_PER_SEC};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR) {
    }
}

/* ---- gRPC ---- */

struct call {
    grpc_call *call;
    grpc_byte_buffer *out, *in;
    grpc_metadata_array leading, trailing;
    grpc_status_code status;
    grpc_slice details;
    int64_t due_ns;
};

static grpc_byte_buffer *grpc_message(uint64_t no)
{
    if (!g_job.has_pool) {
        grpc_slice empty = grpc_empty_slice();
        return grpc_raw_byte_buffer_create(&empty, 1);
    }
    struct message message;
    make_message(no, &message);
    grpc_slice slices[3] = {
        grpc_slice_from_copied_buffer((const char *)message.head, message.n_head),
        grpc_slice_from_static_buffer(message.body, message.n_body),
        grpc_slice_from_copied_buffer((const char *)message.tail, sizeof message.tail),
    };
    grpc_byte_buffer *buffer = grpc_raw_byte_buffer_create(slices, 3);
    for (size_t i = 0; i < 3; i++) {
        grpc_slice_unref(slices[i]);
    }
    return buffer;
}

static void start_call(struct call *call, grpc_channel *channel, grpc_completion_queue *queue,
                       uint64_t no, int64_t due_ns)
{
    *call = (struct call){.due_ns = due_ns, .out = grpc_message(no)};
    grpc_metadata_array_init(&call->leading);
    grpc_metadata_array_init(&call->trailing);
    call->call = grpc_channel_create_call(channel, NULL, GRPC_PROPAGATE_DEFAULTS, queue,
                                          grpc_slice_from_static_string(g_job.method), NULL,
                                          gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
    grpc_op ops[6] = {
        {.op = GRPC_OP_SEND_INITIAL_METADATA},  {.op = GRPC_OP_SEND_MESSAGE},
        {.op = GRPC_OP_SEND_CLOSE_FROM_CLIENT}, {.op = GRPC_OP_RECV_INITIAL_METADATA},
        {.op = GRPC_OP_RECV_MESSAGE},           {.op = GRPC_OP_RECV_STATUS_ON_CLIENT},
    };
    ops[0].data.send_initial_metadata.count = g_job.n_credentials;
    ops[0].data.send_initial_metadata.metadata = &g_job.credential;
    ops[1].data.send_message.send_message = call->out;
    ops[3].data.recv_initial_metadata.recv_initial_metadata = &call->leading;
    ops[4].data.recv_message.recv_message = &call->in;
    ops[5].data.recv_status_on_client.trailing_metadata = &call->trailing;
    ops[5].data.recv_status_on_client.status = &call->status;
    ops[5].data.recv_status_on_client.status_details = &call->details;
    if (grpc_call_start_batch(call->call, ops, 6, call, NULL) != GRPC_CALL_OK) {
        die("grpc_call_start_batch");
    }
}

static void end_call(struct call *call)
{
    char *why = grpc_slice_to_c_string(call->details);
    count_answer(call->status == GRPC_STATUS_OK, call->due_ns, why);
    gpr_free(why);
    grpc_slice_unref(call->details);
    grpc_metadata_array_destroy(&call->leading);
    grpc_metadata_array_destroy(&call->trailing);
    grpc_byte_buffer_destroy(call->out);
    grpc_byte_buffer_destroy(call->in);
    grpc_call_unref(call->call);
}

static gpr_timespec deadline_of(int64_t due_ns)
{
    int64_t left = due_ns - mono_ns();
    return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                        gpr_time_from_nanos(left < 0 ? 0 : left, GPR_TIMESPAN));
}

/* The file that a variable of the environment names, as a text; NULL without the variable. */
static char *file_of(const char *variable)
{
    const char *path = getenv(variable);
    if (path == NULL) {
        return NULL;
    }
    static const size_t cap = 64 << 10;
    char *text = calloc(1, cap);
    FILE *f = fopen(path, "re");
    if (f == NULL || fread(text, 1, cap - 1, f) == 0) {
        die(path);
    }
    (void)fclose(f);
    return text;
}

static grpc_channel_credentials *make_credentials(void)
{
    const char *token = getenv("BENCH_TOKEN");
    if (token != NULL) {
        static char value[8192];
        (void)snprintf(value, sizeof value, "Bearer %s", token);
        g_job.credential.key = grpc_slice_from_static_string("authorization");
        g_job.credential.value = grpc_slice_from_static_string(value);
        g_job.n_credentials = 1;
    }
    char *ca = file_of("BENCH_CA"), *cert = file_of("BENCH_CERT"), *key = file_of("BENCH_KEY");
    grpc_ssl_pem_key_cert_pair own = {key, cert};
    grpc_channel_credentials *made =
        ca == NULL ? grpc_insecure_credentials_create()
                   : grpc_ssl_credentials_create(ca, cert == NULL ? NULL : &own, NULL, NULL);
    free(ca);
    free(cert);
    free(key);
    return made;
}

static void run_grpc(void)
{
    grpc_init();
    grpc_completion_queue *queue = grpc_completion_queue_create_for_next(NULL);
    grpc_channel_credentials *credentials = make_credentials();
    grpc_channel *channels[MAX_CHANNELS];
    for (int i = 0; i < MAX_CHANNELS; i++) {
        grpc_arg args[2] = {
            {.type = GRPC_ARG_INTEGER,
             .key = (char *)(uintptr_t) "bench.channel",
             .value.integer = i},
            {.type = GRPC_ARG_INTEGER,
             .key = (char *)(uintptr_t)GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL,
             .value.integer = 1},
        };
        grpc_channel_args with = {2, args};
        channels[i] = grpc_channel_create(g_job.target, credentials, &with);
    }
    struct call *calls = calloc(g_job.n_in_flight, sizeof calls[0]);
    struct call **idle = calloc(g_job.n_in_flight, sizeof idle[0]);
    uint32_t n_idle = 0;
    for (uint32_t i = 0; i < g_job.n_in_flight; i++) {
        idle[n_idle++] = &calls[i];
    }
    uint64_t no;
    int64_t due_ns;
    bool more = next_call(&no, &due_ns);
    while (more || n_idle < g_job.n_in_flight) {
        while (more && n_idle > 0 && due_ns <= mono_ns()) {
            start_call(idle[--n_idle], channels[no % MAX_CHANNELS], queue, no, due_ns);
            more = next_call(&no, &due_ns);
        }
        gpr_timespec until =
            more && n_idle > 0 ? deadline_of(due_ns) : gpr_inf_future(GPR_CLOCK_MONOTONIC);
        grpc_event event = grpc_completion_queue_next(queue, until, NULL);
        if (event.type == GRPC_OP_COMPLETE) {
            end_call(event.tag);
            idle[n_idle++] = event.tag;
        }
    }
    for (int i = 0; i < MAX_CHANNELS; i++) {
        grpc_channel_destroy(channels[i]);
    }
    grpc_channel_credentials_release(credentials);
    free(calls);
    free(idle);
}

/* ---- HTTP/1.1 ---- */

static int connect_target(void)
{
    char host[64];
    const char *colon = strrchr(g_job.target, ':');
    struct sockaddr_in at = {.sin_family = AF_INET};
    (void)snprintf(host, sizeof host, "%.*s", (int)(colon - g_job.target), g_job.target);
    at.sin_port = htons((uint16_t)strtoul(colon + 1, NULL, 10));
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
    if (inet_pton(AF_INET, host, &at.sin_addr) != 1 ||
        connect(fd, (struct sockaddr *)&at, sizeof at) != 0) {
        die(g_job.target);
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

static void write_all(int fd, struct iovec *iov, int n)
{
    while (n > 0) {
        ssize_t rc = writev(fd, iov, n);
        if (rc < 0) {
            die("writev");
        }
        size_t done = (size_t)rc;
        for (; n > 0 && done >= iov->iov_len; iov++, n--) {
            done -= iov->iov_len;
        }
        if (n > 0) {
            iov->iov_base = (char *)iov->iov_base + done;
            iov->iov_len -= done;
        }
    }
}

/* One response with a Content-Length. True for 200; text[] holds its start. */
static bool read_response(int fd, char *text, size_t cap)
{
    size_t n = 0;
    char *end = NULL;
    while (end == NULL) {
        ssize_t rc = n + 1 < cap ? read(fd, text + n, cap - 1 - n) : 0;
        if (rc <= 0) {
            die("read");
        }
        n += (size_t)rc;
        text[n] = '\0';
        end = strstr(text, "\r\n\r\n");
    }
    const char *field = strcasestr(text, "\r\ncontent-length:");
    size_t length = field == NULL || field > end ? 0 : strtoul(field + 17, NULL, 10);
    size_t got = n - (size_t)(end + 4 - text);
    while (got < length) {
        char rest[4096];
        ssize_t rc = read(fd, rest, sizeof rest);
        if (rc <= 0) {
            die("read");
        }
        got += (size_t)rc;
    }
    return strncmp(text, "HTTP/1.1 200 ", 13) == 0;
}

static void *run_connection(void *arg)
{
    (void)arg;
    int fd = connect_target();
    uint64_t no;
    int64_t due_ns;
    while (next_call(&no, &due_ns)) {
        if (g_job.rate > 0) {
            sleep_until(due_ns);
        }
        struct message message = {.body = (const unsigned char *)"{}", .n_body = 2};
        if (g_job.has_pool) {
            make_message(no, &message);
        }
        size_t n_tail = g_job.has_pool ? sizeof message.tail : 0;
        char head[512], answer[16384];
        int n = snprintf(head, sizeof head,
                         "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: "
                         "application/%s\r\nContent-Length: %zu\r\n\r\n",
                         g_job.method, g_job.target, g_job.has_pool ? "proto" : "json",
                         message.n_head + message.n_body + n_tail);
        struct iovec iov[4] = {{head, (size_t)n},
                               {message.head, message.n_head},
                               {(void *)(uintptr_t)message.body, message.n_body},
                               {message.tail, n_tail}};
        write_all(fd, iov, 4);
        bool ok = read_response(fd, answer, sizeof answer);
        count_answer(ok, due_ns, answer);
    }
    (void)close(fd);
    return NULL;
}

static void run_http(void)
{
    pthread_t *threads = calloc(g_job.n_in_flight, sizeof threads[0]);
    for (uint32_t i = 0; i < g_job.n_in_flight; i++) {
        if (pthread_create(&threads[i], NULL, run_connection, NULL) != 0) {
            die("pthread_create");
        }
    }
    for (uint32_t i = 0; i < g_job.n_in_flight; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    free(threads);
}

/* ---- report ---- */

static int by_value(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static double percentile(size_t n, double p)
{
    return n == 0 ? 0 : (double)g_job.latency_ms[(size_t)((double)(n - 1) * p)];
}

static void report(void)
{
    size_t n = g_job.n_latencies < MAX_LATENCIES ? g_job.n_latencies : MAX_LATENCIES;
    qsort(g_job.latency_ms, n, sizeof g_job.latency_ms[0], by_value);
    for (char *c = g_job.first_error; *c != '\0'; c++) {
        *c = *c < ' ' || *c == '"' || *c == '\\' ? ' ' : *c;
    }
    (void)printf(
        "{\"ok\": %llu, \"failed\": %llu, \"seconds\": %.3f, \"p50_ms\": %.3f, \"p99_ms\": %.3f, "
        "\"max_ms\": %.3f, \"error\": \"%s\"}\n",
        (unsigned long long)g_job.n_ok, (unsigned long long)g_job.n_failed,
        (double)(mono_ns() - g_job.start_ns) / 1e9, percentile(n, 0.5), percentile(n, 0.99),
        percentile(n, 1), g_job.first_error);
}

int main(int argc, char **argv)
{
    bool pushes =
        (argc == 8 || argc == 9) && (strcmp(argv[1], "push") == 0 || strcmp(argv[1], "http") == 0);
    bool asks = argc == 6 && (strcmp(argv[1], "call") == 0 || strcmp(argv[1], "post") == 0);
    if (!pushes && !asks) {
        (void)fprintf(stderr, "load push|http HOST:PORT POOL PODS IN_FLIGHT SECONDS RATE [CALLS]\n"
                              "load call|post HOST:PORT /METHOD IN_FLIGHT SECONDS\n");
        return 2;
    }
    int at = 3;
    g_job.target = argv[2];
    g_job.has_pool = pushes;
    if (pushes) {
        pool_open(argv[at++], &g_job.pool);
        g_job.n_pods = (uint32_t)strtoul(argv[at++], NULL, 10);
        g_job.method = "/push.v1.PusherService/Push";
    } else {
        g_job.method = argv[at++];
    }
    g_job.n_in_flight = (uint32_t)strtoul(argv[at++], NULL, 10);
    g_job.seconds = strtod(argv[at++], NULL);
    g_job.rate = pushes ? strtod(argv[at++], NULL) : 0;
    g_job.n_calls = at < argc ? strtoull(argv[at], NULL, 10) : UINT64_MAX;
    g_job.latency_ms = calloc(MAX_LATENCIES, sizeof g_job.latency_ms[0]);
    g_job.start_ns = mono_ns();
    g_job.end_ns = g_job.start_ns + (int64_t)(g_job.seconds * 1e9);
    if (strcmp(argv[1], "push") == 0 || strcmp(argv[1], "call") == 0) {
        run_grpc();
    } else {
        run_http();
    }
    report();
    return g_job.n_ok > 0 ? 0 : 1;
}
