/*
 * doctor.h -- what the checks of the doctor share (private to the store).
 *
 * Threads: confined to one thread. Ownership: texts are in the doctor's arena, or literals.
 */
#ifndef HEARTH_STORE_DOCTOR_H
#define HEARTH_STORE_DOCTOR_H

#include "hearth/model/node_layout.h"
#include "hearth/store/background.h"

#include "pg/pg.h"

#define HEARTH_KB (1024LL)
#define HEARTH_MB (1024 * HEARTH_KB)
#define HEARTH_GB (1024 * HEARTH_MB)

struct hearth_doctor {
    struct hearth_store *store;
    struct hearth_arena *arena;
    struct hearth_pg *pg;
    struct hearth_check *checks; /* [HEARTH_DOCTOR_MAX_CHECKS] */
    size_t n_checks;
    int64_t
        n_servers; /* hearthd that were seen lately, at least 1; set by the check of connections */
};

enum {
    HEARTH_DOCTOR_MAX_CHECKS = 80,
};

/* ---- doctor_report.c ---- */

/* Add a check. The texts are in the arena, or literals; `advice` is ignored if all is well. */
void hearth_doctor_report(struct hearth_doctor *doctor, const char *name,
                          enum hearth_verdict verdict, const char *found, const char *advice);

/* Copy a text column into the arena. If the arena refuses, the text is empty. */
const char *hearth_doctor_copy(struct hearth_doctor *doctor, const PGresult *result, int row,
                               int column);

/* The most connections that one hearthd can need, otherwise as below. */
int64_t hearth_doctor_connections_of_one(const struct hearth_doctor *doctor, bool to_node);

/*
 * The most connections that all servers, of which some may have ended minutes ago, can need to the
 * database of the URL; or to a node, which gets some of Citus, too. After the check of connections.
 */
int64_t hearth_doctor_count_connections(const struct hearth_doctor *doctor, bool to_node);

/* ---- doctor_settings.c ---- */

/* Check the settings that this version of PostgreSQL has. */
HEARTH_MUST_CHECK enum hearth_status hearth_doctor_check_settings(struct hearth_doctor *doctor,
                                                                  struct hearth_err *err);

/* ---- doctor_nodes.c ---- */

/*
 * Check the nodes, if the database has the extension citus. Runs no statement. Returns whether data
 * tables can be read: no node of theirs is away.
 */
bool hearth_doctor_check_nodes(struct hearth_doctor *doctor,
                               const struct hearth_node_layout *layout);

#endif
