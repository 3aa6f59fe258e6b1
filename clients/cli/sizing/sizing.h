/*
 * sizing.h -- how much processor, disk and memory a fleet needs: arithmetic over the constants of
 * sizing.def. A model, good to perhaps a third; docs/how-to/sizing.md says how to check it.
 *
 * Threads: pure.
 */
#ifndef HEARTH_CLIENTS_SIZING_H
#define HEARTH_CLIENTS_SIZING_H

#include "hearth/base/status.h"

enum sizing_input_id {
#define INPUT(id, flag, kind, text_default, text) SIZING_##id,
#include "sizing.def"
    SIZING_N_INPUTS
};

enum sizing_kind {
    SIZING_COUNT,
    SIZING_DURATION, /* value in seconds */
    SIZING_SWITCH,   /* 0 or 1 */
};

struct sizing_field {
    const char *flag; /* "--processes" */
    enum sizing_kind kind;
    const char *text_default, *text;
};
extern const struct sizing_field sizing_fields[SIZING_N_INPUTS];

enum sizing_core {
    SIZING_CORE_RECEIVE, /* hearthd: inflate, decode, encode */
    SIZING_CORE_COMMIT,  /* PostgreSQL */
    SIZING_CORE_ROLL_UP, /* both */
    SIZING_CORE_COMPACT,
    SIZING_N_CORES
};

enum sizing_disk {
    SIZING_DISK_PROFILE,
    SIZING_DISK_SEGMENT,
    SIZING_DISK_10M,
    SIZING_DISK_1H,
    SIZING_DISK_1D,
    SIZING_DISK_TOTALS,
    SIZING_DISK_DICT,
    SIZING_N_DISKS
};

struct sizing {
    double profiles_per_s, samples_per_s, wire_bytes_per_s;
    double cores[SIZING_N_CORES], cores_busy; /* busy on the mean */
    double cores_wanted;                      /* a whole number */
    struct {
        double kept_s, bytes;
    } disk[SIZING_N_DISKS];
    double disk_bytes, wal_bytes, disk_wanted_bytes; /* wanted: with the log and headroom */
    double server_bytes;                             /* of one hearthd */
    double cache_bytes; /* of PostgreSQL: the last hour of profiles, a day of blocks */
};

extern const char *const sizing_core_names[SIZING_N_CORES]; /* "receive", .. */
extern const char *const sizing_disk_names[SIZING_N_DISKS]; /* "profiles", .. */

/* One value as people write it: "5000", "15s", "on". INVALID_ARGUMENT names the flag. */
HEARTH_MUST_CHECK
enum hearth_status sizing_parse(enum sizing_input_id id, const char *text, double *ret,
                                struct hearth_err *err);

/* inputs: by enum sizing_input_id, as sizing_parse gives them. */
void sizing_compute(const double inputs[SIZING_N_INPUTS], struct sizing *ret);

#endif
