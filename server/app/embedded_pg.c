/*
 * embedded_pg.c -- the directories, settings and life of the embedded PostgreSQL. The programs are
 * run by the starter (pg_starter.h).
 */
#include "hearth/app/embedded_pg.h"

#include "hearth/base/buf.h"
#include "hearth/base/clock.h"
#include "hearth/base/log.h"
#include "hearth/base/mem.h"

#include "data_lock.h"
#include "pg_starter.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#define INSTALLED      "/usr/lib/postgresql"
#define FIRST_PAUSE_NS (HEARTH_NS_PER_SEC / 2) /* before a restart; doubles */

struct hearth_embedded_pg {
    struct hearth_arena arena;
    const char *data_dir, *pg_dir, *run_dir, *log_path, *url;
    const char *bin_dir;
    uid_t uid; /* owner of the cluster; 0: the user that hearthd was started as */
    gid_t gid;
    struct hearth_pg_starter *starter; /* NULL before hearth_embedded_pg_prepare */
    int lock_fd;                       /* holds the lock of the data directory; -1: none */
    pid_t pid;                         /* 0: not running */
    pid_t waiting_for; /* another PostgreSQL on the cluster, already logged; 0: none */
    int64_t started_mono_ns, restart_at_mono_ns, pause_ns;
};

/* ---- directories ---- */

static enum hearth_status make_dir(const struct hearth_embedded_pg *pg, const char *path,
                                   mode_t mode, bool for_cluster, struct hearth_err *err)
{
    if (mkdir(path, mode) != 0 && errno != EEXIST) {
        return HEARTH_FAIL(err, HEARTH_FAILED_PRECONDITION,
                           "cannot create directory \"%s\": %s (choose another with --data-dir)",
                           path, strerrordesc_np(errno));
    }

    if (for_cluster && pg->uid != 0 && chown(path, pg->uid, pg->gid) != 0) {
        return HEARTH_FAIL(err, HEARTH_FAILED_PRECONDITION,
                           "cannot give directory \"%s\" to the database's user: %s", path,
                           strerrordesc_np(errno));
    }

    return HEARTH_OK;
}

/* Create a directory and its parents. */
static enum hearth_status make_dirs(const struct hearth_embedded_pg *pg, const char *path,
                                    struct hearth_err *err)
{
    char part[4096];
    size_t n = strlen(path);
    if (n == 0 || n >= sizeof part) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "data-dir is empty or too long");
    }

    for (size_t i = 1; i <= n; i++) {
        if (path[i] == '/' || path[i] == '\0') {
            memcpy(part, path, i);
            part[i] = '\0';
            HEARTH_TRY(make_dir(pg, part, 0755, false, err));
        }
    }

    return HEARTH_OK;
}

/* The first line of a file, or an empty text. */
static struct hearth_str read_first_line(const char *path, char *room, size_t n_room)
{
    FILE *file = fopen(path, "re");
    char *line = file == NULL ? NULL : fgets(room, (int)n_room, file);
    if (file != NULL) {
        (void)fclose(file);
    }

    return hearth_str_trim(hearth_str_c(line == NULL ? "" : line));
}

/* The major version in PG_VERSION, such as 15; 0 if there is no cluster. */
static long read_cluster_version(const char *pg_dir)
{
    char path[4096], room[16];
    int64_t version;
    (void)snprintf(path, sizeof path, "%s/PG_VERSION", pg_dir);
    return hearth_str_to_i64(read_first_line(path, room, sizeof room), &version) ? (long)version
                                                                                 : 0;
}

/* Choose the newest /usr/lib/postgresql/N/bin or, if there is a cluster, the one of its version. */
static enum hearth_status find_bin_dir(struct hearth_embedded_pg *pg, struct hearth_err *err)
{
    long wanted = read_cluster_version(pg->pg_dir), best = 0;
    DIR *dir = opendir(INSTALLED);
    for (struct dirent *e = dir == NULL ? NULL : readdir(dir); e != NULL; e = readdir(dir)) {
        int64_t version;
        char path[4096];
        (void)snprintf(path, sizeof path, INSTALLED "/%s/bin/initdb", e->d_name);
        if (hearth_str_to_i64(hearth_str_c(e->d_name), &version) && access(path, X_OK) == 0 &&
            (wanted == 0 ? version > best : version == wanted)) {
            best = (long)version;
        }
    }

    if (dir != NULL) {
        (void)closedir(dir);
    }

    if (best == 0 && wanted != 0) {
        return HEARTH_FAIL(err, HEARTH_FAILED_PRECONDITION,
                           "the cluster in \"%s\" was created by PostgreSQL %ld, which is not "
                           "installed in " INSTALLED
                           " (install it, or upgrade the cluster with pg_upgrade)",
                           pg->pg_dir, wanted);
    }

    if (best == 0) {
        return HEARTH_FAIL(err, HEARTH_FAILED_PRECONDITION,
                           "no PostgreSQL server found in " INSTALLED
                           ": install one (Debian: postgresql-15), or use --database-url");
    }

    pg->bin_dir = hearth_arena_printf(&pg->arena, INSTALLED "/%ld/bin", best);

    return pg->bin_dir == NULL ? HEARTH_FAIL_ARENA(err, &pg->arena) : HEARTH_OK;
}

/* Take postgres-bin, as an absolute path: the programs are started in "/". */
static enum hearth_status take_bin_dir(struct hearth_embedded_pg *pg, const char *bin_dir,
                                       struct hearth_err *err)
{
    static const char *const programs[] = {"initdb", "postgres"};
    char *absolute = realpath(bin_dir, NULL);

    pg->bin_dir = hearth_arena_printf(&pg->arena, "%s", absolute == NULL ? bin_dir : absolute);
    free(absolute);
    if (pg->bin_dir == NULL) {
        return HEARTH_FAIL_ARENA(err, &pg->arena);
    }

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(programs); i++) {
        char path[4096];
        (void)snprintf(path, sizeof path, "%s/%s", pg->bin_dir, programs[i]);
        if (access(path, X_OK) != 0) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "postgres-bin: cannot run \"%s\": %s",
                               path, strerrordesc_np(errno));
        }
    }

    return HEARTH_OK;
}

/*
 * The log and the lock may have been created by root: give them to the cluster's user, who opens
 * them from now on.
 */
static enum hearth_status give_files(const struct hearth_embedded_pg *pg, struct hearth_err *err)
{
    int log =
        open(pg->log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, 0600);
    bool ok = log >= 0 && (pg->uid == 0 || (fchown(log, pg->uid, pg->gid) == 0 &&
                                            fchown(pg->lock_fd, pg->uid, pg->gid) == 0));
    int saved = errno;

    if (log >= 0) {
        (void)close(log);
    }

    return ok ? HEARTH_OK
              : HEARTH_FAIL(err, HEARTH_FAILED_PRECONDITION,
                            "cannot open \"%s\" for the database's user: %s", pg->log_path,
                            strerrordesc_np(saved));
}

static enum hearth_status set_up_cluster(struct hearth_embedded_pg *pg, const char *data_dir,
                                         const char *bin_dir, struct hearth_err *err)
{
    HEARTH_TRY(make_dirs(pg, data_dir, err));
    char *absolute = realpath(data_dir, NULL);
    if (absolute == NULL) {
        return HEARTH_FAIL(err, HEARTH_FAILED_PRECONDITION, "cannot resolve data-dir \"%s\"",
                           data_dir);
    }

    pg->data_dir = hearth_arena_printf(&pg->arena, "%s", absolute);
    pg->pg_dir = hearth_arena_printf(&pg->arena, "%s/postgres", absolute);
    pg->run_dir = hearth_arena_printf(&pg->arena, "%s/run", absolute);
    pg->log_path = hearth_arena_printf(&pg->arena, "%s/postgres.log", absolute);
    pg->url = hearth_arena_printf(
        &pg->arena, "host='%s/run' user=hearth dbname=postgres application_name=hearthd", absolute);
    bool too_long = strlen(absolute) > 85; /* sun_path holds 108 bytes */
    free(absolute);
    if (too_long) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "data-dir \"%s\" is too long for a unix socket: at most 85 bytes",
                           data_dir);
    }

    if (pg->arena.refused) {
        return HEARTH_FAIL_ARENA(err, &pg->arena);
    }

    /* Lock the directory before anything in it is created or changed. */
    HEARTH_TRY(hearth_data_lock_take(pg->data_dir, &pg->lock_fd, err));
    HEARTH_TRY(make_dir(pg, pg->run_dir, 0700, true, err));
    HEARTH_TRY(make_dir(pg, pg->pg_dir, 0700, true, err));
    HEARTH_TRY(give_files(pg, err));

    return bin_dir[0] == '\0' ? find_bin_dir(pg, err) : take_bin_dir(pg, bin_dir, err);
}

static void release_cluster(struct hearth_embedded_pg *pg)
{
    hearth_pg_starter_close(pg->starter);
    if (pg->lock_fd >= 0) {
        (void)close(pg->lock_fd);
    }
    hearth_arena_release(&pg->arena);
    hearth_mem_free(pg);
}

enum hearth_status hearth_embedded_pg_new(const char *data_dir, const char *bin_dir,
                                          const struct hearth_identity *owner,
                                          struct hearth_embedded_pg **ret_pg,
                                          struct hearth_err *err)
{
    struct hearth_embedded_pg *pg = hearth_mem_zalloc(sizeof *pg);
    if (pg == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the embedded database's state");
    }

    hearth_arena_init(&pg->arena, 0);
    pg->lock_fd = -1;
    pg->uid = owner->uid;
    pg->gid = owner->gid;
    enum hearth_status status = set_up_cluster(pg, data_dir, bin_dir, err);
    if (status != HEARTH_OK) {
        release_cluster(pg);
        return status;
    }

    *ret_pg = pg;
    return HEARTH_OK;
}

enum hearth_status hearth_embedded_pg_prepare(struct hearth_embedded_pg *pg, struct hearth_err *err)
{
    const struct hearth_pg_programs programs = {.bin_dir = pg->bin_dir,
                                                .pg_dir = pg->pg_dir,
                                                .log_path = pg->log_path,
                                                .uid = pg->uid,
                                                .gid = pg->gid};

    assert(pg->starter == NULL);

    return hearth_pg_starter_open(&programs, &pg->starter, err);
}

const char *hearth_embedded_pg_url(const struct hearth_embedded_pg *pg)
{
    return pg->url;
}

/* ---- settings ---- */

/* Megabytes of memory that this process may use: those of the machine or of its control group. */
static unsigned long find_memory_mb(void)
{
    struct sysinfo info;
    unsigned long long bytes = 8ULL << 30, limit;
    if (sysinfo(&info) == 0) {
        bytes = (unsigned long long)info.totalram * info.mem_unit;
    }

    FILE *file = fopen("/sys/fs/cgroup/memory.max", "re");
    if (file != NULL) {
        if (fscanf(file, "%llu", &limit) == 1 && limit < bytes) { /* otherwise the text is "max" */
            bytes = limit;
        }
        (void)fclose(file);
    }

    return (unsigned long)(bytes >> 20);
}

/* Free megabytes on the disk of the cluster. */
static unsigned long find_free_disk_mb(const struct hearth_embedded_pg *pg)
{
    struct statvfs disk;
    return statvfs(pg->pg_dir, &disk) == 0
               ? (unsigned long)((unsigned long long)disk.f_bavail * disk.f_frsize >> 20)
               : ULONG_MAX;
}

static unsigned long clamp_value(unsigned long value, unsigned long low, unsigned long high)
{
    return value < low ? low : value > high ? high : value;
}

/* docs/how-to/embedded-postgresql.md explains each setting. */
static void write_settings_text(const struct hearth_embedded_pg *pg, struct hearth_buf *out)
{
    unsigned long mb = find_memory_mb();
    long version = read_cluster_version(pg->pg_dir);

    hearth_buf_printf(
        out,
        "# Written by hearthd at every start. Put your own settings into local.conf in this "
        "directory.\n"
        "listen_addresses = ''\n"
        "unix_socket_directories = '%s'\n"
        "unix_socket_permissions = 0700\n"
        "max_connections = 100\n"
        "# Memory: the cluster shares the machine with hearthd and other programs.\n"
        "shared_buffers = %luMB\neffective_cache_size = %luMB\n"
        "work_mem = %luMB\nmaintenance_work_mem = %luMB\nhuge_pages = try\n"
        "# Acknowledged means committed.\n"
        "fsync = on\nsynchronous_commit = on\nfull_page_writes = on\n"
        "# Rows are written once and in order: large, rare checkpoints, compressed full pages.\n"
        "max_wal_size = %luMB\nmin_wal_size = 256MB\ncheckpoint_timeout = 15min\n"
        "checkpoint_completion_target = 0.9\nwal_compression = %s\n"
        "# Statements are short: compilation takes longer than it saves. Cold reads are "
        "scattered.\n"
        "jit = off\neffective_io_concurrency = 64\nmaintenance_io_concurrency = 64\n"
        "random_page_cost = 1.1\n%s"
        "# Index-only scans of the newest day need its visibility map.\n"
        "autovacuum_naptime = 60s\nautovacuum_vacuum_insert_scale_factor = 0.05\n"
        "autovacuum_vacuum_cost_limit = 1000\n"
        "logging_collector = off\nlog_line_prefix = '%%m [%%p] '\nlog_min_messages = warning\n"
        "log_checkpoints = off\n"
        "include_if_exists = 'local.conf'\n",
        pg->run_dir, clamp_value(mb / 8, 128, 4096), clamp_value(mb / 2, 256, ULONG_MAX),
        clamp_value(mb / 512, 4, 32), clamp_value(mb / 32, 64, 512),
        clamp_value(find_free_disk_mb(pg) / 10, 512, 4096), version >= 15 ? "lz4" : "on",
        version >= 14 ? "default_toast_compression = lz4\n" : "");
}

static enum hearth_status write_file(const struct hearth_embedded_pg *pg, const char *path,
                                     struct hearth_str text, struct hearth_err *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    bool ok = fd >= 0 && write(fd, text.p, text.n) == (ssize_t)text.n &&
              (pg->uid == 0 || pg->uid == geteuid() || fchown(fd, pg->uid, pg->gid) == 0);
    int saved = errno;

    if (fd >= 0 && close(fd) != 0) {
        ok = false;
    }

    return ok ? HEARTH_OK
              : HEARTH_FAIL(err, HEARTH_FAILED_PRECONDITION, "cannot write \"%s\": %s", path,
                            strerrordesc_np(saved));
}

/* Write hearth.conf and, in a new cluster, include it in postgresql.conf. */
static enum hearth_status write_settings(struct hearth_embedded_pg *pg, bool new_cluster,
                                         struct hearth_err *err)
{
    struct hearth_buf text;

    hearth_buf_init(&text, 0);
    write_settings_text(pg, &text);
    const char *path = hearth_arena_printf(&pg->arena, "%s/hearth.conf", pg->pg_dir);
    enum hearth_status status = HEARTH_OK;
    if (path == NULL || hearth_buf_failed(&text)) {
        status = HEARTH_FAIL_ARENA(err, &pg->arena);
    } else {
        status = write_file(pg, path, hearth_buf_view(&text), err);
    }

    hearth_buf_release(&text);
    if (status != HEARTH_OK || !new_cluster) {
        return status;
    }

    path = hearth_arena_printf(&pg->arena, "%s/postgresql.conf", pg->pg_dir);
    FILE *file = path == NULL ? NULL : fopen(path, "ae");
    if (file == NULL || fputs("\ninclude 'hearth.conf'\n", file) < 0) {
        status = HEARTH_FAIL(err, HEARTH_FAILED_PRECONDITION, "cannot append to postgresql.conf");
    }
    if (file != NULL && fclose(file) != 0 && status == HEARTH_OK) {
        status = HEARTH_FAIL(err, HEARTH_FAILED_PRECONDITION, "cannot append to postgresql.conf");
    }

    return status;
}

/* ---- start, watch, stop ---- */

/* True if `dir` is among the arguments of a process, as in `postgres -D DIR`. */
static bool has_argument(int64_t pid, const char *dir)
{
    char path[64], text[4096];

    (void)snprintf(path, sizeof path, "/proc/%lld/cmdline", (long long)pid);
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return false;
    }

    size_t n = fread(text, 1, sizeof text - 1, file);
    (void)fclose(file);
    text[n] = '\0';
    bool found = false;
    for (size_t at = 0; at < n && !found; at += strlen(text + at) + 1) {
        found = strcmp(text + at, dir) == 0;
    }

    return found;
}

/*
 * The PostgreSQL that already runs on the cluster, or 0: that of a killed hearthd, until it has
 * ended, or one that was started by hand. The lock file may be stale and contain the number of an
 * unrelated process.
 */
static pid_t find_running_postgres(const struct hearth_embedded_pg *pg)
{
    char path[4096], room[32];
    int64_t pid;

    (void)snprintf(path, sizeof path, "%s/postmaster.pid", pg->pg_dir);

    return hearth_str_to_i64(read_first_line(path, room, sizeof room), &pid) &&
                   has_argument(pid, pg->pg_dir)
               ? (pid_t)pid
               : 0;
}

static enum hearth_status start_server(struct hearth_embedded_pg *pg, struct hearth_err *err)
{
    /* Only one server can run on a cluster: wait until the other one has ended. */
    pid_t other = find_running_postgres(pg);
    if (other != 0 && other != pg->waiting_for) {
        HEARTH_LOG(HEARTH_LOG_WARN, "postgres",
                   "another PostgreSQL still runs on the cluster; waiting until it has ended",
                   "pid", hearth_log_i64(other), "dir", pg->pg_dir, NULL);
    }

    pg->waiting_for = other;
    if (other != 0) {
        return HEARTH_OK;
    }

    assert(pg->pid == 0);
    HEARTH_TRY(hearth_pg_starter_run(pg->starter, &pg->pid, err));
    pg->started_mono_ns = hearth_clock_mono_ns();
    HEARTH_LOG(HEARTH_LOG_INFO, "postgres", "started", "pid", hearth_log_i64(pg->pid), "dir",
               pg->pg_dir, "log", pg->log_path, NULL);

    return HEARTH_OK;
}

enum hearth_status hearth_embedded_pg_start(struct hearth_embedded_pg *pg, struct hearth_err *err)
{
    assert(pg->lock_fd >= 0 && pg->pid == 0 && pg->starter != NULL);

    bool new_cluster = read_cluster_version(pg->pg_dir) == 0;
    if (new_cluster) {
        HEARTH_LOG(HEARTH_LOG_INFO, "postgres", "creating a cluster", "dir", pg->pg_dir, NULL);
        HEARTH_TRY(hearth_pg_starter_initdb(pg->starter, err));
    }

    HEARTH_TRY(write_settings(pg, new_cluster, err));
    pg->pause_ns = FIRST_PAUSE_NS;

    return start_server(pg, err);
}

/* What follows the severity in a line of PostgreSQL's log; NULL: the line has another one. */
static const char *find_message(const char *line, const char *severity)
{
    const char *at = strstr(line, severity);
    return at == NULL ? NULL : at + strlen(severity) + strspn(at + strlen(severity), " ");
}

/*
 * Why the main process ended: its last FATAL or PANIC near the end of the log, after its LOG before
 * that, which has the line of a mistake in a file. "": it wrote none, as when it was killed.
 */
static void read_last_error(const struct hearth_embedded_pg *pg, char out[512])
{
    char tail[4096], process[32], *rest = tail;
    const char *before = "";
    int fd = open(pg->log_path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY);
    off_t size = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
    off_t from = size < (off_t)sizeof tail ? 0 : size - (off_t)sizeof tail + 1;
    ssize_t n = size < 0 ? -1 : pread(fd, tail, sizeof tail - 1, from);

    out[0] = '\0';
    if (fd >= 0) {
        (void)close(fd);
    }
    tail[n < 0 ? 0 : n] = '\0';

    (void)snprintf(process, sizeof process, "[%ld] ", (long)pg->pid);
    for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
        if (strstr(line, process) == NULL) {
            continue; /* of a connection, or of an earlier server */
        }
        const char *fatal = find_message(line, " FATAL:"), *log = find_message(line, " LOG:");
        fatal = fatal == NULL ? find_message(line, " PANIC:") : fatal;
        if (fatal != NULL) {
            (void)snprintf(out, 512, "%s%s%s", before, before[0] == '\0' ? "" : "; ", fatal);
        }
        before = log == NULL ? "" : log;
    }
}

void hearth_embedded_pg_watch(struct hearth_embedded_pg *pg)
{
    if (pg->pid != 0 && hearth_clock_mono_ns() - pg->started_mono_ns > 60 * HEARTH_NS_PER_SEC) {
        pg->pause_ns = FIRST_PAUSE_NS; /* it ran well: a later end is unrelated to earlier ones */
    }

    if (pg->pid != 0 && hearth_pg_starter_has_ended(pg->starter)) {
        char error[512];
        read_last_error(pg, error);
        HEARTH_LOG(HEARTH_LOG_ERROR, "postgres", "the embedded PostgreSQL ended; restarting it",
                   "pid", hearth_log_i64(pg->pid), "error", error, "log", pg->log_path, NULL);
        pg->pid = 0;
        pg->restart_at_mono_ns = hearth_clock_mono_ns() + pg->pause_ns;
        if (pg->pause_ns < 10 * HEARTH_NS_PER_SEC) {
            pg->pause_ns *= 2;
        }
    }

    if (pg->pid == 0 && hearth_clock_mono_ns() >= pg->restart_at_mono_ns) {
        struct hearth_err err = HEARTH_ERR_INIT;
        if (start_server(pg, &err) != HEARTH_OK) {
            HEARTH_LOG(HEARTH_LOG_ERROR, "postgres", "cannot start", "error", err.msg, NULL);
            pg->restart_at_mono_ns = hearth_clock_mono_ns() + pg->pause_ns;
        }
    }
}

void hearth_embedded_pg_stop(struct hearth_embedded_pg *pg, int64_t deadline_mono_ns)
{
    if (pg == NULL) {
        return;
    }

    if (pg->pid != 0) {
        bool killed = false;
        hearth_pg_starter_stop(pg->starter, false); /* ends connections, writes a checkpoint */
        while (!hearth_pg_starter_has_ended(pg->starter)) {
            if (!killed && hearth_clock_mono_ns() >= deadline_mono_ns) {
                HEARTH_LOG(
                    HEARTH_LOG_WARN, "postgres",
                    "PostgreSQL did not shut down in time; it will recover at the next start",
                    "pid", hearth_log_i64(pg->pid), NULL);
                hearth_pg_starter_stop(pg->starter, true);
                killed = true;
            }
            (void)usleep(10000);
        }
    }

    release_cluster(pg);
}
