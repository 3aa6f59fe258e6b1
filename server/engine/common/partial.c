/* partial.c -- the note of an answer that leaves out services (hearth/engine/partial.h). */
#include "common/partial_state.h"

#include <assert.h>
#include <stdio.h>

struct hearth_partial *hearth_partial_new(struct hearth_arena *arena)
{
    return hearth_arena_zalloc(arena, sizeof(struct hearth_partial));
}

void hearth_partial_note(const struct hearth_partial *partial, char out[HEARTH_PARTIAL_NOTE_BYTES])
{
    assert(partial->n_named_services <= partial->n_services);
    assert(partial->n_named_nodes <= partial->n_nodes);

    char more_nodes[32] = "", more_services[48] = "";
    size_t n_unnamed = partial->n_services - partial->n_named_services;

    out[0] = '\0';
    if (partial->n_services == 0) {
        return;
    }

    if (partial->n_nodes > partial->n_named_nodes) {
        (void)snprintf(more_nodes, sizeof more_nodes, " and %u more",
                       partial->n_nodes - partial->n_named_nodes);
    }
    if (n_unnamed > 0) {
        (void)snprintf(more_services, sizeof more_services, "%s%zu%s",
                       partial->n_named_services > 0 ? " and " : "", n_unnamed,
                       partial->n_named_services > 0 ? " more" : " services");
    }
    (void)snprintf(out, HEARTH_PARTIAL_NOTE_BYTES,
                   "partial: the node%s %s%s do%s not answer; the answer lacks %s%s",
                   partial->n_nodes > 1 ? "s" : "", partial->nodes, more_nodes,
                   partial->n_nodes > 1 ? "" : "es", partial->services, more_services);
}
