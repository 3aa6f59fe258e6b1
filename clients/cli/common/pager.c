/* pager.c -- long answers through the pager of the user. */
#include "text.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum {
    NO_PROGRAM = 127 /* exit code of the shell */
};

/* Writes until the reader has enough. */
static void feed_pager(int fd, struct hearth_str text)
{
    for (size_t at = 0; at < text.n;) {
        ssize_t n = write(fd, text.p + at, text.n - at);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return;
        }
        at += (size_t)n;
    }
}

bool cli_page(struct hearth_str text)
{
    const char *named = getenv("PAGER");
    const char *pager = named == NULL || named[0] == '\0' ? "less -FRX" : named;
    char shell[] = "sh", option[] = "-c";
    char *argv[] = {shell, option, (char *)(uintptr_t)pager, NULL};
    posix_spawn_file_actions_t actions;
    int ends[2], state = 0;
    pid_t pid;

    if (strcmp(pager, "cat") == 0 || pipe(ends) != 0) {
        return false;
    }

    /* Its standard input is the pipe; a pager without options passes colours and short texts. */
    (void)setenv("LESS", "FRX", 0);
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO);
    (void)posix_spawn_file_actions_addclose(&actions, ends[0]);
    (void)posix_spawn_file_actions_addclose(&actions, ends[1]);
    bool is_started = posix_spawn(&pid, "/bin/sh", &actions, NULL, argv, environ) == 0;
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)close(ends[0]);

    /* It may end early, and Ctrl-C is for it. */
    void (*on_pipe)(int) = signal(SIGPIPE, SIG_IGN);
    void (*on_interrupt)(int) = signal(SIGINT, SIG_IGN);
    if (is_started) {
        feed_pager(ends[1], text);
    }
    (void)close(ends[1]);
    while (is_started && waitpid(pid, &state, 0) < 0 && errno == EINTR) {
    }
    (void)signal(SIGPIPE, on_pipe);
    (void)signal(SIGINT, on_interrupt);

    return is_started && !(WIFEXITED(state) && WEXITSTATUS(state) == NO_PROGRAM);
}
