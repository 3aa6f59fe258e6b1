/* doctor_report.c -- the report, and what several checks need (contract: doctor.h). */
#include "doctor/doctor.h"
#include "nodes/nodes.h"
#include "pg/store_state.h"

#include <assert.h>

void hearth_doctor_report(struct hearth_doctor *doctor, const char *name,
                          enum hearth_verdict verdict, const char *found, const char *advice)
{
    HEARTH_ASSERT(doctor->n_checks < HEARTH_DOCTOR_MAX_CHECKS);
    assert(name != NULL &&
           (verdict == HEARTH_VERDICT_OK || advice != NULL || doctor->arena->refused));

    doctor->checks[doctor->n_checks++] = (struct hearth_check){
        .name = hearth_str_c(name),
        .verdict = verdict,
        .found = hearth_str_c(found),
        .advice = verdict == HEARTH_VERDICT_OK ? (struct hearth_str){0} : hearth_str_c(advice),
    };
}

const char *hearth_doctor_copy(struct hearth_doctor *doctor, const PGresult *result, int row,
                               int column)
{
    struct hearth_str copy = hearth_arena_str(doctor->arena, hearth_pg_str(result, row, column));

    return copy.p == NULL ? "" : copy.p;
}

int64_t hearth_doctor_connections_of_one(const struct hearth_doctor *doctor, bool to_node)
{
    const struct hearth_store_options *options = &doctor->store->options;
    struct hearth_nodes *nodes = doctor->store->nodes;
    int64_t n_each = options->n_committers, n_readers = options->max_readers;

    /*
     * Housekeeping, the builder and the thread of spans have one connection each, as the thread
     * has that follows nodes, and each committer of a node has one for the catalogue.
     */
    int64_t n_nodes = nodes == NULL ? 0 : hearth_nodes_count(nodes);
    int64_t n = (1 + n_nodes) * n_each + n_readers + 3 + (nodes != NULL);

    /* Citus opens one to the node for each of these, beside those of hearthd. */
    return n + (to_node && nodes != NULL ? n_each + n_readers : 0);
}

int64_t hearth_doctor_count_connections(const struct hearth_doctor *doctor, bool to_node)
{
    return doctor->n_servers * hearth_doctor_connections_of_one(doctor, to_node);
}
