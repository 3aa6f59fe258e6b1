/*
 * cmd_record.c -- hearth record: runs a profiler that is installed, then uploads its file.
 *
 *     perf      perf record -g, then perf script: its text has symbols, perf.data has none
 *     py-spy    collapsed stacks
 *     asprof    a JFR recording
 *     curl      a pprof that a program offers over HTTP
 *
 * The profiler runs in the process group of the command: a key that interrupts both ends the
 * recording, and what was recorded until then is uploaded.
 */
#include "hearth/base/clock.h"
#include "hearth/selector/timeexpr.h"

#include "ask.h"
#include "cli_messages.h"
#include "text.h"

#include <assert.h>
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_WORDS           64
#define DEFAULT_NS          (10 * HEARTH_NS_PER_SEC)
#define LONGEST_NS          HEARTH_NS_PER_DAY
#define STEP_US             200000
#define NOT_FOUND_CODE      127 /* of a program that is not there, as in shells */
#define MAX_TARGET_BYTES    4096
#define MAX_DIRECTORY_BYTES 1024

enum profiler {
    PROFILER_PERF,
    PROFILER_PY_SPY,
    PROFILER_ASPROF,
    PROFILER_CURL,
};

static const struct {
    const char *name, *program, *file, *hint;
} g_profilers[] = {
    [PROFILER_PERF] = {"perf", "perf", "perf.txt", "on Debian: apt install linux-perf"},
    [PROFILER_PY_SPY] = {"py-spy", "py-spy", "py-spy.txt", "pip install py-spy"},
    [PROFILER_ASPROF] = {"asprof", "asprof", "async-profiler.jfr",
                         "it is in the archive of async-profiler 3 and later"},
    [PROFILER_CURL] = {"curl", "curl", "profile.pb.gz", "on Debian: apt install curl"},
};

struct recording {
    struct cli *cli;
    enum profiler profiler;
    int64_t ns;       /* 0: until the program ends */
    char seconds[24]; /* the same, as a word */
    char directory[MAX_DIRECTORY_BYTES];
    char file[MAX_DIRECTORY_BYTES + 80]; /* of the profiler */
    char text[MAX_DIRECTORY_BYTES + 64]; /* to be uploaded: what perf script printed; else file */
    const char *words[MAX_WORDS];
    size_t n_words;
    bool is_too_long; /* more words than there is room for */
    bool is_kept;     /* text stays, because it could not be uploaded */
};

/* ---- what to run ---- */

static void add_word(struct recording *r, const char *word)
{
    if (r->n_words + 1 < MAX_WORDS) {
        r->words[r->n_words++] = word;
    } else {
        r->is_too_long = true;
    }
}

static void add_words(struct recording *r, const char *const *words)
{
    for (size_t i = 0; words[i] != NULL; i++) {
        add_word(r, words[i]);
    }
}

/* The words of the profiled program, after "--". */
static void add_program(struct recording *r)
{
    add_word(r, "--");
    add_words(r, (const char *const *)r->cli->program);
}

static void make_perf_words(struct recording *r)
{
    add_words(r, (const char *const[]){"perf", "record", "-q", "-g", "-F", "99", "-e", "cpu-clock",
                                       "-o", r->file, NULL});
    if (r->cli->pid != NULL) {
        add_words(r, (const char *const[]){"-p", r->cli->pid, "--", "sleep", r->seconds, NULL});
    } else {
        add_program(r);
    }
}

static void make_py_spy_words(struct recording *r)
{
    add_words(r, (const char *const[]){"py-spy", "record", "--format", "raw", "--rate", "99",
                                       "--output", r->file, NULL});
    if (r->ns > 0) {
        add_words(r, (const char *const[]){"--duration", r->seconds, NULL});
    }
    if (r->cli->pid != NULL) {
        add_words(r, (const char *const[]){"--pid", r->cli->pid, NULL});
    } else {
        add_program(r);
    }
}

static void make_asprof_words(struct recording *r)
{
    add_words(r, (const char *const[]){"asprof", "-d", r->seconds, "-o", "jfr", "-f", r->file,
                                       r->cli->pid, NULL});
}

/* "seconds" makes the program measure for so long, if the URL does not say it. */
static void make_curl_words(struct recording *r)
{
    const char *url = r->cli->pprof_url;

    if (strstr(url, "seconds=") == NULL && r->cli->duration != NULL) {
        url = hearth_arena_printf(&r->cli->arena, "%s%cseconds=%s", url,
                                  strchr(url, '?') == NULL ? '?' : '&', r->seconds);
    }
    add_words(r, (const char *const[]){"curl", "-sS", "--fail", "-o", r->file, "--", url, NULL});
}

static void make_words(struct recording *r)
{
    r->n_words = 0;
    switch (r->profiler) {
    case PROFILER_PERF:
        make_perf_words(r);
        break;
    case PROFILER_PY_SPY:
        make_py_spy_words(r);
        break;
    case PROFILER_ASPROF:
        make_asprof_words(r);
        break;
    case PROFILER_CURL:
        make_curl_words(r);
        break;
    }
    r->words[r->n_words] = NULL;
}

/* ---- which profiler ---- */

/* The name of the profiled program; empty if it is unknown. */
static void find_target_name(const struct cli *cli, char out[MAX_TARGET_BYTES])
{
    char link[64], path[MAX_TARGET_BYTES] = "";

    if (cli->program != NULL) {
        (void)snprintf(path, sizeof path, "%s", cli->program[0]);
    } else if (cli->pid != NULL) {
        (void)snprintf(link, sizeof link, "/proc/%.20s/exe", cli->pid);
        ssize_t n = readlink(link, path, sizeof path - 1);
        path[n > 0 ? n : 0] = '\0';
    }

    (void)snprintf(out, MAX_TARGET_BYTES, "%s", path[0] == '\0' ? "" : basename(path));
}

static enum hearth_status choose_profiler(struct recording *r)
{
    struct cli *cli = r->cli;
    char target[MAX_TARGET_BYTES];

    if (cli->pprof_url != NULL) {
        r->profiler = PROFILER_CURL;
        return HEARTH_OK;
    }
    if (cli->profiler == NULL) {
        find_target_name(cli, target);
        r->profiler = strncmp(target, "python", 6) == 0 ? PROFILER_PY_SPY
                      : strcmp(target, "java") == 0     ? PROFILER_ASPROF
                                                        : PROFILER_PERF;
        return HEARTH_OK;
    }

    for (size_t i = 0; i < PROFILER_CURL; i++) {
        if (strcmp(cli->profiler, g_profilers[i].name) == 0) {
            r->profiler = (enum profiler)i;
            return HEARTH_OK;
        }
    }

    return HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT,
                       "unknown profiler \"%.60s\"; profilers are perf, py-spy, asprof",
                       cli->profiler);
}

static enum hearth_status read_length(struct recording *r)
{
    struct cli *cli = r->cli;

    r->ns = cli->program != NULL ? 0 : DEFAULT_NS;
    if (cli->duration != NULL) {
        HEARTH_TRY(hearth_duration_parse(hearth_str_c(cli->duration), &r->ns, &cli->err));
        if (r->ns < HEARTH_NS_PER_SEC || r->ns > LONGEST_NS) {
            return HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT,
                               "--for must be from 1s to 1d, not \"%.60s\"", cli->duration);
        }
    }

    (void)snprintf(r->seconds, sizeof r->seconds, "%lld", (long long)(r->ns / HEARTH_NS_PER_SEC));

    return HEARTH_OK;
}

static enum hearth_status check_pid(struct cli *cli)
{
    int64_t pid = 0;

    if (!hearth_str_to_i64(hearth_str_c(cli->pid), &pid) || pid <= 0) {
        return HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT, "\"%.60s\" is not a process id",
                           cli->pid);
    }
    if (pid > INT_MAX || (kill((pid_t)pid, 0) != 0 && errno == ESRCH)) {
        return HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT,
                           "there is no process with the id %lld", (long long)pid);
    }

    return HEARTH_OK;
}

static bool can_execute(const char *path)
{
    struct stat file;

    return stat(path, &file) == 0 && S_ISREG(file.st_mode) && access(path, X_OK) == 0;
}

/* Whether one of the folders of PATH has the program. */
static bool is_in_path(struct cli *cli, const char *program)
{
    const char *folder = getenv("PATH");
    folder = folder == NULL ? "/bin:/usr/bin" : folder; /* as execvp does */

    while (folder != NULL) {
        size_t n = strcspn(folder, ":");
        const char *path = hearth_arena_printf(&cli->arena, "%.*s/%s", n == 0 ? 1 : (int)n,
                                               n == 0 ? "." : folder, program);
        if (path != NULL && can_execute(path)) {
            return true;
        }
        folder = folder[n] == ':' ? folder + n + 1 : NULL;
    }

    return false;
}

/* A profiler would say it in its own way, after others of its warnings. */
static enum hearth_status check_program(struct cli *cli)
{
    const char *program = cli->program[0];
    bool has_folder = strchr(program, '/') != NULL;

    if (has_folder ? !can_execute(program) : !is_in_path(cli, program)) {
        return HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT,
                           has_folder ? "\"%.200s\" is not a program that can be run"
                                      : "there is no program \"%.200s\" in PATH",
                           program);
    }

    return HEARTH_OK;
}

/* What the options ask for, and what no profiler can do. */
static enum hearth_status prepare_recording(struct recording *r)
{
    struct cli *cli = r->cli;
    int n_targets = (cli->pid != NULL) + (cli->pprof_url != NULL) + (cli->program != NULL);

    if (n_targets != 1 || (cli->program != NULL && cli->program[0] == NULL)) {
        return HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT,
                           "record requires one of --pid PID, --pprof-url URL and -- PROGRAM ...");
    }
    if (cli->pid != NULL) {
        HEARTH_TRY(check_pid(cli));
    }

    HEARTH_TRY(choose_profiler(r));
    HEARTH_TRY(read_length(r));
    if (r->profiler == PROFILER_ASPROF && cli->program != NULL) {
        return HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT,
                           "asprof records a running process: start the program, then use --pid");
    }
    if (r->profiler == PROFILER_PERF && cli->program != NULL && r->ns > 0) {
        return HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT,
                           "perf records a program until it ends: leave --for out");
    }

    return cli->program == NULL ? HEARTH_OK : check_program(cli);
}

/* ---- running ---- */

/* In the child: the profiler, with its standard output in a file if there is one. Never returns. */
static void become_program(const char *const *words, const char *output)
{
    char *plain[MAX_WORDS];
    size_t n = 0;

    for (; words[n] != NULL && n + 1 < MAX_WORDS; n++) {
        memcpy(&plain[n], &words[n], sizeof plain[n]); /* exec takes words that are not const */
    }
    plain[n] = NULL;

    (void)signal(SIGINT, SIG_DFL);
    if (output == NULL || freopen(output, "w", stdout) != NULL) {
        (void)execvp(plain[0], plain);
    }
    _exit(NOT_FOUND_CODE);
}

static void print_progress(const struct recording *r, int64_t since_ns)
{
    if (isatty(STDERR_FILENO) != 1 || r->cli->program != NULL) {
        return;
    }

    int64_t done_ns = hearth_clock_mono_ns() - since_ns;
    (void)fprintf(stderr, "\r%s: %lld of %s s ", g_profilers[r->profiler].name,
                  (long long)(done_ns / HEARTH_NS_PER_SEC), r->seconds);
}

/* Waits for a child and shows progress. Returns its exit code, or 128 and its signal. */
static int wait_for_program(const struct recording *r, pid_t child)
{
    int64_t since_ns = hearth_clock_mono_ns();
    int state = 0;

    while (waitpid(child, &state, WNOHANG) == 0) {
        print_progress(r, since_ns);
        (void)usleep(STEP_US);
    }
    if (isatty(STDERR_FILENO) == 1 && r->cli->program == NULL) {
        (void)fprintf(stderr, "\r%40s\r", "");
    }

    return WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
}

static enum hearth_status run_program(struct recording *r, const char *const *words,
                                      const char *output, int *ret_code)
{
    struct cli *cli = r->cli;

    (void)fflush(stdout);
    pid_t child = fork();
    if (child < 0) {
        return HEARTH_FAIL(&cli->err, HEARTH_UNAVAILABLE, "cannot start %s: %s", words[0],
                           strerrordesc_np(errno));
    }
    if (child == 0) {
        become_program(words, output);
    }

    *ret_code = wait_for_program(r, child);

    return HEARTH_OK;
}

static bool has_bytes(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && status.st_size > 0;
}

/* Runs the profiler. A profiled program that failed has a profile nevertheless. */
static enum hearth_status run_profiler(struct recording *r)
{
    struct cli *cli = r->cli;
    int code;

    assert(r->file[0] != '\0');
    make_words(r);
    if (r->is_too_long) {
        return HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT,
                           "the program has more arguments than record can pass on");
    }

    HEARTH_TRY(run_program(r, r->words, NULL, &code));
    if (has_bytes(r->file)) {
        return HEARTH_OK;
    }
    if (code == NOT_FOUND_CODE) {
        return HEARTH_FAIL(&cli->err, HEARTH_FAILED_PRECONDITION, "%s is not installed; %s",
                           g_profilers[r->profiler].program, g_profilers[r->profiler].hint);
    }

    return HEARTH_FAIL(&cli->err, HEARTH_FAILED_PRECONDITION,
                       "%s ended with code %d and recorded nothing",
                       g_profilers[r->profiler].program, code);
}

/* The text of perf script, which has the symbols that perf.data lacks. */
static enum hearth_status print_perf_script(struct recording *r)
{
    const char *const words[] = {"perf", "script", "-i", r->file, NULL};
    int code;

    HEARTH_TRY(run_program(r, words, r->text, &code));

    return code == 0 && has_bytes(r->text)
               ? HEARTH_OK
               : HEARTH_FAIL(&r->cli->err, HEARTH_FAILED_PRECONDITION,
                             "perf recorded no samples (perf script ended with code %d): the "
                             "program ended too early, or used no processor time",
                             code);
}

/* ---- uploading ---- */

/* The service is the name of the program, unless a label says otherwise. */
static void name_service(struct cli *cli)
{
    char target[MAX_TARGET_BYTES];

    find_target_name(cli, target);
    if (!cli_names_service(cli) && target[0] != '\0' && cli->n_labels < CLI_MAX_LABELS) {
        cli->labels[cli->n_labels++] =
            hearth_arena_printf(&cli->arena, "service_name=%.200s", target);
    }
}

/* How to send what could not be uploaded. */
static void say_kept(const struct recording *r)
{
    const struct cli *cli = r->cli;
    struct hearth_buf out;

    hearth_buf_init(&out, 0);
    hearth_buf_cstr(&out, "hearth upload ");
    cli_shell_word(r->text, &out);
    hearth_buf_cstr(&out, " --time now");
    for (size_t i = 0; i < cli->n_labels; i++) {
        hearth_buf_cstr(&out, " -l ");
        cli_shell_word(cli->labels[i], &out);
    }
    if (cli->name != NULL) {
        hearth_buf_cstr(&out, " --name ");
        cli_shell_word(cli->name, &out);
    }
    hearth_buf_byte(&out, '\0');
    cli_say("the recording is kept", hearth_buf_failed(&out) ? r->text : out.p);
    hearth_buf_release(&out);
}

static enum cli_exit upload_recording(struct recording *r)
{
    struct cli *cli = r->cli;

    if (r->profiler == PROFILER_PERF) {
        enum hearth_status status = print_perf_script(r);
        if (status != HEARTH_OK) {
            return cli_fail(cli, status);
        }
    }

    name_service(cli);
    if (cli->arena.refused) {
        return cli_fail(cli, HEARTH_FAIL_ARENA(&cli->err, &cli->arena));
    }

    /* Messages name the file; its directory is of no interest. */
    if (chdir(r->directory) != 0) {
        return cli_fail(cli, HEARTH_FAIL(&cli->err, HEARTH_INTERNAL, "%s: %s", r->directory,
                                         strerrordesc_np(errno)));
    }

    /* Times of perf script are not those of a clock. */
    cli->time_mode = "now";
    cli->args[0] = g_profilers[r->profiler].file;
    cli->n_args = 1;

    enum cli_exit code = cli_upload(cli);
    if (code != CLI_OK) {
        r->is_kept = true;
        say_kept(r);
    }

    return code;
}

static void remove_files(const struct recording *r)
{
    if (r->profiler == PROFILER_PERF) {
        (void)unlink(r->file);
    }
    if (!r->is_kept) {
        (void)unlink(r->text);
        (void)rmdir(r->directory);
    }
}

static enum hearth_status make_files(struct recording *r)
{
    const char *parent = getenv("TMPDIR");
    parent = parent == NULL || parent[0] == '\0' ? "/tmp" : parent;
    int n = snprintf(r->directory, sizeof r->directory, "%s/hearth-record-XXXXXX", parent);
    if (n >= (int)sizeof r->directory) {
        return HEARTH_FAIL(&r->cli->err, HEARTH_INVALID_ARGUMENT, "TMPDIR is longer than %d bytes",
                           MAX_DIRECTORY_BYTES - 22);
    }

    if (mkdtemp(r->directory) == NULL) {
        return HEARTH_FAIL(&r->cli->err, HEARTH_UNAVAILABLE,
                           "cannot make a directory in %s (TMPDIR): %s", parent,
                           strerrordesc_np(errno));
    }

    bool is_perf = r->profiler == PROFILER_PERF;
    (void)snprintf(r->text, sizeof r->text, "%s/%s", r->directory, g_profilers[r->profiler].file);
    (void)snprintf(r->file, sizeof r->file, "%s%s", r->text, is_perf ? ".data" : "");

    return HEARTH_OK;
}

enum cli_exit cli_record(struct cli *cli)
{
    struct recording r = {.cli = cli};

    enum hearth_status status = prepare_recording(&r);
    if (status != HEARTH_OK) {
        (void)cli_fail(cli, status);
        return CLI_USAGE;
    }

    status = make_files(&r);
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }

    /* An interrupt is for the profiler; what it has until then is uploaded. */
    void (*old)(int) = signal(SIGINT, SIG_IGN);
    status = run_profiler(&r);
    (void)signal(SIGINT, old);
    enum cli_exit code = status == HEARTH_OK ? upload_recording(&r) : cli_fail(cli, status);
    remove_files(&r);

    return code;
}
