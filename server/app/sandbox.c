/* sandbox.c -- the filter of system calls, and what is told about refused ones (sandbox.h). */
#include "sandbox.h"

#include "hearth/base/log.h"
#include "hearth/base/metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <ucontext.h>
#include <unistd.h>

#define N_CALLS   512u /* numbers of system calls that are counted each; the last one: all others */
#define TYPE_MASK 0xf  /* of the type of a socket; the other bits are flags */

/* Refused calls by number; the first counts what a handler saw, the second what was logged. */
static _Atomic unsigned g_n_refused[N_CALLS];
static unsigned g_n_reported[N_CALLS];

bool hearth_sandbox_parse(const char *text, enum hearth_sandbox *ret)
{
    static const char *const names[] = {"off", "log", "on"};

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(names); i++) {
        if (strcmp(text, names[i]) == 0) {
            *ret = (enum hearth_sandbox)i;
            return true;
        }
    }

    return false;
}

/* ---- refused calls ---- */

/* The call returns -EPERM, as if the kernel had refused it. */
static void on_refused_call(int number, siginfo_t *info, void *context)
{
    ucontext_t *at = context;
    unsigned call = (unsigned)info->si_syscall;

    (void)number;
#if defined(__x86_64__)
    at->uc_mcontext.gregs[REG_RAX] = -EPERM;
#elif defined(__aarch64__)
    at->uc_mcontext.regs[0] = (unsigned long long)-EPERM;
#else
#    error "the register with the result of a system call is unknown for this processor"
#endif
    (void)atomic_fetch_add(&g_n_refused[call < N_CALLS ? call : N_CALLS - 1], 1);
}

static void report_call(unsigned call, unsigned n)
{
    char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, (int)call);

    hearth_metric_add(HEARTH_M_REFUSED_CALLS, n);
    HEARTH_LOG(HEARTH_LOG_WARN, "app",
               "the sandbox refused a system call; if hearthd needs it, set --sandbox log, and "
               "report it",
               "call", name != NULL ? name : "unknown", "number", hearth_log_i64(call), "times",
               hearth_log_i64(n), NULL);
    free(name);
}

void hearth_sandbox_report(void)
{
    for (unsigned i = 0; i < N_CALLS; i++) {
        unsigned n = atomic_load(&g_n_refused[i]);
        if (n != g_n_reported[i]) {
            report_call(i, n - g_n_reported[i]);
            g_n_reported[i] = n;
        }
    }
}

/* ---- the filter ---- */

/* A call that is allowed if an argument, masked, has a value. */
struct argument_rule {
    int call;
    unsigned index;
    scmp_datum_t mask, value;
};

#define WHOLE ((scmp_datum_t)-1)
#define FLAGS ((scmp_datum_t)0xffffffff) /* of arguments of 32 bits */

static bool allow_by_argument(scmp_filter_ctx filter)
{
    const scmp_datum_t pid = (scmp_datum_t)getpid(), wx = PROT_WRITE | PROT_EXEC;
    const struct argument_rule rules[] = {
        /* Threads, not processes. */
        {SCMP_SYS(clone), 0, CLONE_THREAD, CLONE_THREAD},
        {SCMP_SYS(tgkill), 0, FLAGS, pid},
        /* Memory is writable or executable; it never becomes executable. */
        {SCMP_SYS(mmap), 2, wx, 0},
        {SCMP_SYS(mmap), 2, wx, PROT_WRITE},
        {SCMP_SYS(mmap), 2, wx, PROT_EXEC},
        {SCMP_SYS(mprotect), 2, PROT_EXEC, 0},
        /* Few of many commands. */
        {SCMP_SYS(prctl), 0, FLAGS, PR_SET_NAME},
        {SCMP_SYS(prctl), 0, FLAGS, PR_GET_NAME},
        {SCMP_SYS(prctl), 0, FLAGS, PR_GET_DUMPABLE},
        {SCMP_SYS(ioctl), 1, FLAGS, FIONBIO},
        {SCMP_SYS(ioctl), 1, FLAGS, FIONREAD},
        {SCMP_SYS(ioctl), 1, FLAGS, TCGETS},
        {SCMP_SYS(prlimit64), 2, WHOLE, 0},
        {SCMP_SYS(socketpair), 0, FLAGS, AF_UNIX},
        {SCMP_SYS(socket), 0, FLAGS, AF_UNIX},
    };

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(rules); i++) {
        struct scmp_arg_cmp is_equal = {.arg = rules[i].index,
                                        .op = SCMP_CMP_MASKED_EQ,
                                        .datum_a = rules[i].mask,
                                        .datum_b = rules[i].value};
        if (seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, rules[i].call, 1, &is_equal) != 0) {
            return false;
        }
    }

    return true;
}

/* TCP, UDP, and the routing table, from which the C library learns the addresses of this host. */
static bool allow_sockets(scmp_filter_ctx filter)
{
    static const struct {
        scmp_datum_t family, type;
        bool is_routing;
    } kinds[] = {
        {AF_INET, SOCK_STREAM, false}, {AF_INET, SOCK_DGRAM, false}, {AF_INET6, SOCK_STREAM, false},
        {AF_INET6, SOCK_DGRAM, false}, {AF_NETLINK, SOCK_RAW, true},
    };

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(kinds); i++) {
        struct scmp_arg_cmp are[] = {
            {.arg = 0, .op = SCMP_CMP_MASKED_EQ, .datum_a = FLAGS, .datum_b = kinds[i].family},
            {.arg = 1, .op = SCMP_CMP_MASKED_EQ, .datum_a = TYPE_MASK, .datum_b = kinds[i].type},
            {.arg = 2, .op = SCMP_CMP_MASKED_EQ, .datum_a = FLAGS, .datum_b = 0},
        };
        unsigned n = kinds[i].is_routing ? 3 : 2;
        if (seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, SCMP_SYS(socket), n, are) != 0) {
            return false;
        }
    }

    return true;
}

static bool allow_named(scmp_filter_ctx filter, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int call = seccomp_syscall_resolve_name(names[i]);
        if (call >= 0 && seccomp_rule_add(filter, SCMP_ACT_ALLOW, call, 0) != 0) {
            return false;
        }
    }

    return true;
}

static bool add_rules(scmp_filter_ctx filter)
{
    static const char *const names[] = {
#define G(purpose)
#define X(name) #name,
#include "syscalls.def"
#undef X
#undef G
    };
    /* With --user root, files are given to the user of PostgreSQL. */
    static const char *const root[] = {"fchown"};

    return allow_named(filter, names, HEARTH_ARRAY_LEN(names)) && allow_sockets(filter) &&
           (geteuid() != 0 || allow_named(filter, root, HEARTH_ARRAY_LEN(root))) &&
           allow_by_argument(filter) &&
           /* Its flags cannot be filtered; the C library tries clone instead. */
           seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0) == 0;
}

enum hearth_status hearth_sandbox_enter(enum hearth_sandbox mode, struct hearth_err *err)
{
    struct sigaction action = {.sa_sigaction = on_refused_call, .sa_flags = SA_SIGINFO};

    if (mode == HEARTH_SANDBOX_OFF) {
        return HEARTH_OK;
    }
    if (sigaction(SIGSYS, &action, NULL) != 0) {
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE, "sigaction: %s", strerrordesc_np(errno));
    }

    /*
     * Loading it sets no_new_privs. The leak check of a sanitizer is a process that traces this one
     * with all signals blocked: its calls cannot be refused by a signal, so they pass.
     */
    scmp_filter_ctx filter = seccomp_init(
        mode == HEARTH_SANDBOX_LOG || HEARTH_IS_SANITIZED ? SCMP_ACT_LOG : SCMP_ACT_TRAP);
    int rc = filter == NULL || !add_rules(filter) ? -ENOMEM : 0;
    if (rc == 0) {
        (void)seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2); /* a search tree */
        rc = seccomp_load(filter);
    }

    if (filter != NULL) {
        seccomp_release(filter);
    }

    return rc == 0 ? HEARTH_OK
                   : HEARTH_FAIL(err, HEARTH_UNAVAILABLE,
                                 "system calls cannot be filtered here: %s", strerrordesc_np(-rc));
}
