/* pg_starter.c -- the process that runs initdb and postgres (contract: pg_starter.h). */
#include "pg_starter.h"

#include "hearth/base/mem.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum request { /* one byte each */
    REQUEST_INITDB = 'i',
    REQUEST_RUN = 'r',
    REQUEST_HAS_ENDED = 'e',
    REQUEST_STOP = 's',
    REQUEST_QUIT = 'q',
};

/* status: 0, or errno of the step that failed. value: of initdb 0, or the state of waitpid(2). */
struct reply {
    int32_t status, value;
};

struct hearth_pg_starter {
    int fd;
    pid_t pid;
    const char *log_path;
};

/* ---- the starter ---- */

struct starter {
    const struct hearth_pg_programs *programs;
    pid_t postgres; /* 0: does not run */
};

/* In the child: become the program. Ends with the starter. */
static void exec_program(const struct hearth_pg_programs *programs, pid_t parent, int log,
                         char *const *argv)
{
    char *const environment[] = {NULL};
    sigset_t none;

    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)signal(SIGPIPE, SIG_DFL);
    (void)dup2(log, STDOUT_FILENO);
    (void)dup2(log, STDERR_FILENO);

    /* A session of its own: Ctrl-C goes to hearthd only, which then stops the cluster in order. */
    (void)setsid();
    if (geteuid() == 0 &&
        (setgroups(0, NULL) != 0 || setgid(programs->gid) != 0 || setuid(programs->uid) != 0)) {
        _exit(126);
    }

    /* After setuid, which would clear it. The parent may have ended already. */
    if (prctl(PR_SET_PDEATHSIG, SIGINT) != 0 || getppid() != parent || chdir("/") != 0) {
        _exit(125);
    }

    (void)execve(argv[0], argv, environment);
    _exit(127);
}

static struct reply fork_program(const struct starter *starter, const char *name,
                                 const char *const *options)
{
    const struct hearth_pg_programs *programs = starter->programs;
    char path[4096];
    const char *argv[16] = {path, "-D", programs->pg_dir};
    size_t n = 3;

    (void)snprintf(path, sizeof path, "%s/%s", programs->bin_dir, name);
    for (; *options != NULL && n < HEARTH_ARRAY_LEN(argv) - 1; options++) {
        argv[n++] = *options;
    }

    int log = open(programs->log_path,
                   O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, 0600);
    if (log < 0) { /* the file was moved away, and the directory is root's */
        log = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
    }
    if (log < 0) {
        return (struct reply){.status = errno};
    }

    pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        char *words[HEARTH_ARRAY_LEN(argv)];
        memcpy(words, argv, sizeof words); /* exec takes words that are not const */
        exec_program(programs, parent, log, words);
    }

    int saved = errno;
    (void)close(log);

    return pid < 0 ? (struct reply){.status = saved} : (struct reply){.value = (int32_t)pid};
}

static struct reply run_initdb(const struct starter *starter)
{
    static const char *const options[] = {"--username=hearth", "--auth=trust",
                                          "--encoding=UTF8",   "--locale=C.UTF-8",
                                          "--data-checksums",  NULL};
    struct reply reply = fork_program(starter, "initdb", options);
    int state = 0;

    if (reply.status != 0) {
        return reply;
    }

    while (waitpid((pid_t)reply.value, &state, 0) < 0) {
        if (errno != EINTR) {
            return (struct reply){.status = errno};
        }
    }

    return (struct reply){.value = state};
}

static struct reply answer_request(struct starter *starter, char request)
{
    static const char *const no_options[] = {NULL};
    struct reply reply = {0};

    if (starter->postgres != 0 && waitpid(starter->postgres, NULL, WNOHANG) == starter->postgres) {
        starter->postgres = 0;
    }

    switch ((enum request)request) {
    case REQUEST_INITDB:
        reply = run_initdb(starter);
        break;
    case REQUEST_RUN:
        if (starter->postgres == 0) {
            reply = fork_program(starter, "postgres", no_options);
            starter->postgres = reply.status == 0 ? (pid_t)reply.value : 0;
        } else {
            reply.status = EBUSY;
        }
        break;
    case REQUEST_HAS_ENDED:
        reply.value = starter->postgres == 0;
        break;
    case REQUEST_STOP:
    case REQUEST_QUIT:
        if (starter->postgres != 0) {
            (void)kill(starter->postgres, request == REQUEST_STOP ? SIGINT : SIGQUIT);
        }
        break;
    }

    return reply;
}

/* Keep standard error and the socket; hearthd's other descriptors are not for PostgreSQL. */
static void serve_requests(const struct hearth_pg_programs *programs, pid_t parent, int fd)
{
    struct starter starter = {.programs = programs};
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    (void)prctl(PR_SET_NAME, "hearth-starter");
    (void)prctl(PR_SET_DUMPABLE, 0);
    if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 ||
        (fd != 3 && dup3(fd, 3, O_CLOEXEC) < 0) || close_range(4, ~0u, 0) != 0 ||
        prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) {
        _exit(125);
    }

    for (;;) {
        char request;
        ssize_t n = recv(3, &request, 1, 0);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n != 1) {
            _exit(0); /* hearthd has closed its end */
        }

        struct reply reply = answer_request(&starter, request);
        if (send(3, &reply, sizeof reply, MSG_NOSIGNAL) != (ssize_t)sizeof reply) {
            _exit(0);
        }
    }
}

/* ---- hearthd's side ---- */

static enum hearth_status ask_starter(struct hearth_pg_starter *starter, enum request request,
                                      struct reply *ret, struct hearth_err *err)
{
    char byte = (char)request;
    ssize_t n = send(starter->fd, &byte, 1, MSG_NOSIGNAL);

    if (n == 1) {
        do {
            n = recv(starter->fd, ret, sizeof *ret, 0);
        } while (n < 0 && errno == EINTR);
    }

    if (n != (ssize_t)sizeof *ret) {
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE,
                           "the process that starts PostgreSQL has ended; start hearthd again");
    }
    if (ret->status != 0) {
        return HEARTH_FAIL(err, HEARTH_FAILED_PRECONDITION,
                           "cannot start a program of PostgreSQL with its log \"%s\": %s",
                           starter->log_path, strerrordesc_np(ret->status));
    }

    return HEARTH_OK;
}

enum hearth_status hearth_pg_starter_open(const struct hearth_pg_programs *programs,
                                          struct hearth_pg_starter **ret, struct hearth_err *err)
{
    int ends[2];
    struct hearth_pg_starter *starter = hearth_mem_zalloc(sizeof *starter);
    if (starter == NULL || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        hearth_mem_free(starter);
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY,
                           "no memory or descriptors for the process that starts PostgreSQL");
    }

    pid_t parent = getpid();
    starter->fd = ends[0];
    starter->log_path = programs->log_path;
    starter->pid = fork();
    if (starter->pid == 0) {
        serve_requests(programs, parent, ends[1]);
    }

    (void)close(ends[1]);
    if (starter->pid < 0) {
        int saved = errno;
        (void)close(ends[0]);
        hearth_mem_free(starter);
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE, "cannot fork for PostgreSQL: %s",
                           strerrordesc_np(saved));
    }

    *ret = starter;

    return HEARTH_OK;
}

void hearth_pg_starter_close(struct hearth_pg_starter *starter)
{
    if (starter == NULL) {
        return;
    }

    (void)close(starter->fd);
    while (waitpid(starter->pid, NULL, 0) < 0 && errno == EINTR) {
    }
    hearth_mem_free(starter);
}

enum hearth_status hearth_pg_starter_initdb(struct hearth_pg_starter *starter,
                                            struct hearth_err *err)
{
    struct reply reply;

    HEARTH_TRY(ask_starter(starter, REQUEST_INITDB, &reply, err));
    if (!WIFEXITED(reply.value) || WEXITSTATUS(reply.value) != 0) {
        return HEARTH_FAIL(err, HEARTH_FAILED_PRECONDITION,
                           "initdb failed; its output is in \"%s\"", starter->log_path);
    }

    return HEARTH_OK;
}

enum hearth_status hearth_pg_starter_run(struct hearth_pg_starter *starter, pid_t *ret_pid,
                                         struct hearth_err *err)
{
    struct reply reply;

    HEARTH_TRY(ask_starter(starter, REQUEST_RUN, &reply, err));
    *ret_pid = (pid_t)reply.value;

    return HEARTH_OK;
}

bool hearth_pg_starter_has_ended(struct hearth_pg_starter *starter)
{
    struct reply reply;
    return ask_starter(starter, REQUEST_HAS_ENDED, &reply, NULL) != HEARTH_OK || reply.value != 0;
}

void hearth_pg_starter_stop(struct hearth_pg_starter *starter, bool at_once)
{
    struct reply reply;
    if (ask_starter(starter, at_once ? REQUEST_QUIT : REQUEST_STOP, &reply, NULL) != HEARTH_OK) {
        return; /* the kernel has sent SIGINT to PostgreSQL */
    }
}
