/* cluster_cpu.h -- the CPU time that a PostgreSQL has used. */
#ifndef HEARTH_TESTS_CLUSTER_CPU_H
#define HEARTH_TESTS_CLUSTER_CPU_H

#include "hearth/base/clock.h"

#include "pg_cluster.h"

#include <dirent.h>

/*
 * CPU of the postmaster and its children, also of those that ended, in nanoseconds; in steps of a
 * clock tick.
 */
static int64_t cluster_cpu_ns(const struct pg_cluster *cluster)
{
    int64_t ticks = 0;
    DIR *proc = opendir("/proc");
    for (struct dirent *entry; proc != NULL && (entry = readdir(proc)) != NULL;) {
        char path[300], stat[1024] = "";
        (void)snprintf(path, sizeof path, "/proc/%s/stat", entry->d_name);
        FILE *file = entry->d_name[0] >= '1' && entry->d_name[0] <= '9' ? fopen(path, "r") : NULL;
        if (file == NULL) {
            continue;
        }
        size_t n = fread(stat, 1, sizeof stat - 1, file);
        (void)fclose(file);
        stat[n] = '\0';
        int ppid = 0;
        long long utime = 0, stime = 0, cutime = 0, cstime = 0;
        const char *rest = strrchr(stat, ')');
        if (rest != NULL &&
            sscanf(rest + 2, "%*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lld %lld %lld %lld",
                   &ppid, &utime, &stime, &cutime, &cstime) == 5) {
            bool is_master = strtol(entry->d_name, NULL, 10) == cluster->pid;
            if (is_master || ppid == cluster->pid) {
                ticks += utime + stime + (is_master ? cutime + cstime : 0);
            }
        }
    }
    (void)closedir(proc);
    return ticks * (HEARTH_NS_PER_SEC / sysconf(_SC_CLK_TCK));
}

#endif
