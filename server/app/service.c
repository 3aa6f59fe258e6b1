/* service.c -- the protocol of systemd's services, which is too small for a library. */
#include "service.h"

#include "hearth/base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define FIRST_SOCKET 3

/* A decimal number up to `max`; *ret is 0 if the variable is not set. */
static enum hearth_status read_number(const char *variable, int64_t max, int64_t *ret,
                                      struct hearth_err *err)
{
    const char *text = getenv(variable);
    char *end = NULL;

    *ret = 0;
    if (text == NULL) {
        return HEARTH_OK;
    }

    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || number > max) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "%s is \"%.40s\", but must be a number up to %lld", variable, text,
                           (long long)max);
    }

    *ret = number;
    return HEARTH_OK;
}

/* Variables of another process, from which this one inherited them, do not count. */
static enum hearth_status read_own_number(const char *variable, const char *pid_variable,
                                          int64_t max, int64_t *ret, struct hearth_err *err)
{
    int64_t pid;

    HEARTH_TRY(read_number(pid_variable, INT32_MAX, &pid, err));
    if (pid != 0 && pid != getpid()) {
        *ret = 0;
        return HEARTH_OK;
    }

    return read_number(variable, max, ret, err);
}

/* A path, or a name of the abstract namespace after "@". */
static enum hearth_status connect_notify(const char *name, int *ret_fd, struct hearth_err *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t n = strlen(name);

    if ((name[0] != '/' && name[0] != '@') || n >= sizeof address.sun_path) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "NOTIFY_SOCKET is \"%.120s\", but must be an absolute path or begin "
                           "with @",
                           name);
    }

    memcpy(address.sun_path, name, n);
    if (name[0] == '@') {
        address.sun_path[0] = '\0';
    }

    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&address, size) != 0) {
        int saved = errno;
        if (fd >= 0) {
            (void)close(fd);
        }
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE, "cannot reach NOTIFY_SOCKET \"%.120s\": %s",
                           name, strerrordesc_np(saved));
    }

    *ret_fd = fd;
    return HEARTH_OK;
}

enum hearth_status hearth_service_open(struct hearth_service *service, struct hearth_err *err)
{
    static const char *const variables[] = {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID",
                                            "LISTEN_FDS",    "LISTEN_PID",    "LISTEN_FDNAMES"};
    int64_t watchdog_us, n_sockets;

    *service = (struct hearth_service){.notify_fd = -1};
    HEARTH_TRY(
        read_own_number("LISTEN_FDS", "LISTEN_PID", HEARTH_MAX_PASSED_SOCKETS, &n_sockets, err));
    HEARTH_TRY(
        read_own_number("WATCHDOG_USEC", "WATCHDOG_PID", INT64_MAX / 1000, &watchdog_us, err));
    const char *name = getenv("NOTIFY_SOCKET");
    if (name != NULL) {
        HEARTH_TRY(connect_notify(name, &service->notify_fd, err));
    }

    service->watchdog_ns = watchdog_us * 1000;
    for (; service->n_sockets < (size_t)n_sockets; service->n_sockets++) {
        service->sockets[service->n_sockets] = FIRST_SOCKET + (int)service->n_sockets;
    }

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(variables); i++) {
        (void)unsetenv(variables[i]);
    }

    return HEARTH_OK;
}

void hearth_service_close(struct hearth_service *service)
{
    if (service->notify_fd >= 0) {
        (void)close(service->notify_fd);
        service->notify_fd = -1;
    }
}

void hearth_service_tell(const struct hearth_service *service, const char *state)
{
    if (service->notify_fd >= 0) {
        (void)send(service->notify_fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT);
    }
}

void hearth_service_show(struct hearth_service *service, const char *status)
{
    char state[sizeof service->status + sizeof "STATUS="];

    if (strncmp(service->status, status, sizeof service->status - 1) == 0) {
        return;
    }

    (void)snprintf(service->status, sizeof service->status, "%s", status);
    (void)snprintf(state, sizeof state, "STATUS=%s", service->status);
    hearth_service_tell(service, state);
}

void hearth_service_feed(struct hearth_service *service, int64_t now_mono_ns,
                         int64_t progress_mono_ns)
{
    int64_t half_ns = service->watchdog_ns / 2;

    /* Three times in the half, since main wakes every half second only. */
    if (service->watchdog_ns == 0 || now_mono_ns - service->fed_mono_ns < half_ns / 3 ||
        now_mono_ns - progress_mono_ns > half_ns) {
        return;
    }

    service->fed_mono_ns = now_mono_ns;
    hearth_service_tell(service, "WATCHDOG=1");
}
