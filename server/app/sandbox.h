/*
 * sandbox.h -- the filter of system calls that hearthd runs under.
 *
 * Calls that are not in syscalls.def are refused with EPERM: above all those that start programs,
 * trace other processes, mount, load code into the kernel, change users, listen on further sockets
 * or open sockets of other kinds than unix, IPv4, IPv6 and routing. Memory is never writable and
 * executable at once. The filter holds for the calling thread and all threads that it starts, so it
 * is entered before the first one is started, and cannot be left.
 *
 * A refused call is counted by a handler of SIGSYS; hearth_sandbox_report logs it.
 *
 * Threads:   enter and report from the main thread.
 * Source:    seccomp(2), libseccomp's seccomp_rule_add(3).
 */
#ifndef HEARTH_APP_SANDBOX_H
#define HEARTH_APP_SANDBOX_H

#include "hearth/base/status.h"

enum hearth_sandbox {
    HEARTH_SANDBOX_OFF,
    HEARTH_SANDBOX_LOG, /* the kernel logs the calls, and lets them pass */
    HEARTH_SANDBOX_ON,
};

/* "on", "off" or "log". */
HEARTH_MUST_CHECK bool hearth_sandbox_parse(const char *text, enum hearth_sandbox *ret);

/* Also sets no_new_privs. UNAVAILABLE: this kernel or container has no filters; nothing changed. */
HEARTH_MUST_CHECK
enum hearth_status hearth_sandbox_enter(enum hearth_sandbox mode, struct hearth_err *err);
/* Log and count the calls that were refused since the last report, once per call. */
void hearth_sandbox_report(void);

#endif
