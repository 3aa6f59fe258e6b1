/*
 * service.h -- what hearthd and the service manager that started it tell each other (private to
 * app).
 *
 * The manager passes listening sockets as descriptors from 3 on, LISTEN_FDS of them. hearthd tells
 * it by datagrams to NOTIFY_SOCKET when it listens, what it waits for, and, at least every half of
 * WATCHDOG_USEC, that its threads make progress; without that the manager kills it.
 *
 * Threads:   confined to the main thread.
 * Source:    sd_listen_fds(3), sd_notify(3), sd_watchdog_enabled(3).
 */
#ifndef HEARTH_APP_SERVICE_H
#define HEARTH_APP_SERVICE_H

#include "hearth/base/status.h"

#include <stddef.h>
#include <stdint.h>

#define HEARTH_MAX_PASSED_SOCKETS 16

struct hearth_service {
    int notify_fd;       /* -1: there is no manager that wants to be told */
    int64_t watchdog_ns; /* 0: it has no watchdog */
    int64_t fed_mono_ns; /* when it was last told of progress; 0: never */
    char status[256];    /* what it was last told to show */
    size_t n_sockets;
    int sockets[HEARTH_MAX_PASSED_SOCKETS];
};

/*
 * Reads the variables of the manager and removes them from the environment, which PostgreSQL
 * inherits. Must precede hearth_identity_take.
 *
 * Returns  OK, also without a manager; INVALID_ARGUMENT for a variable without the documented form;
 *          UNAVAILABLE if NOTIFY_SOCKET cannot be reached.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_service_open(struct hearth_service *service, struct hearth_err *err);
void hearth_service_close(struct hearth_service *service);

/* `state` as in sd_notify(3), such as "READY=1". A datagram that cannot be sent is lost. */
void hearth_service_tell(const struct hearth_service *service, const char *state);
/* Tells `status`, one line, if it has changed. */
void hearth_service_show(struct hearth_service *service, const char *status);
/* Feeds the watchdog when it is time, unless the last progress is older than half of its time. */
void hearth_service_feed(struct hearth_service *service, int64_t now_mono_ns,
                         int64_t progress_mono_ns);

#endif
