/*
 * floor_loopback.c -- the floor of a small call: CPU of a process that receives BYTES and sends
 * BYTES back over loopback TCP, IN_FLIGHT connections at a time, and does nothing else.
 *
 * Usage: bench_floor_loopback BYTES IN_FLIGHT SECONDS; prints {"us": CPU of a round trip, "n": ...}.
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    MAX_BYTES = 65536,
    MAX_CONNECTIONS = 1024
};

static char g_bytes[MAX_BYTES];

static void must(int ok, const char *what)
{
    if (!ok) {
        perror(what);
        exit(1);
    }
}

static double now(void)
{
    struct timespec ts;
    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Echo until all connections are closed. */
static void serve(int listener, int n)
{
    int poll = epoll_create1(0);
    for (int i = 0; i < n; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.fd = accept(listener, NULL, NULL)};
        must(event.data.fd >= 0 && epoll_ctl(poll, EPOLL_CTL_ADD, event.data.fd, &event) == 0,
             "accept");
    }
    while (n > 0) {
        struct epoll_event events[64];
        int ready = epoll_wait(poll, events, 64, -1);
        for (int i = 0; i < ready; i++) {
            ssize_t got = recv(events[i].data.fd, g_bytes, sizeof g_bytes, 0);
            if (got <= 0) {
                (void)close(events[i].data.fd);
                n--;
            } else {
                must(send(events[i].data.fd, g_bytes, (size_t)got, 0) == got, "send");
            }
        }
    }
}

int main(int argc, char **argv)
{
    must(argc == 4, "usage: bench_floor_loopback BYTES IN_FLIGHT SECONDS");
    size_t n_bytes = strtoul(argv[1], NULL, 10);
    int n = atoi(argv[2]);
    double seconds = atof(argv[3]);
    must(n_bytes > 0 && n_bytes <= MAX_BYTES && n > 0 && n <= MAX_CONNECTIONS, "arguments");
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    must(bind(listener, (struct sockaddr *)&address, size) == 0 && listen(listener, n) == 0 &&
             getsockname(listener, (struct sockaddr *)&address, &size) == 0,
         "listen");
    pid_t child = fork();
    must(child >= 0, "fork");
    if (child == 0) {
        serve(listener, n);
        _exit(0);
    }
    static int connections[MAX_CONNECTIONS];
    int one = 1;
    for (int i = 0; i < n; i++) {
        connections[i] = socket(AF_INET, SOCK_STREAM, 0);
        must(connect(connections[i], (struct sockaddr *)&address, size) == 0, "connect");
        (void)setsockopt(connections[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    }
    uint64_t n_done = 0;
    for (double until = now() + seconds; now() < until;) {
        for (int i = 0; i < n; i++) {
            must(send(connections[i], g_bytes, n_bytes, 0) == (ssize_t)n_bytes, "send");
        }
        for (int i = 0; i < n; i++) {
            must(recv(connections[i], g_bytes, n_bytes, MSG_WAITALL) == (ssize_t)n_bytes, "recv");
            n_done++;
        }
    }
    for (int i = 0; i < n; i++) {
        (void)close(connections[i]);
    }
    must(waitpid(child, NULL, 0) == child, "waitpid");
    struct rusage usage;
    must(getrusage(RUSAGE_CHILDREN, &usage) == 0, "getrusage");
    double us = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 +
                (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
    (void)printf("{\"us\": %.3f, \"n\": %llu}\n", us / (double)n_done, (unsigned long long)n_done);
    return 0;
}
