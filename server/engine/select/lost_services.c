/* lost_services.c -- leaves the services of lost nodes out of a selection (lost_services.h). */
#include "select/lost_services.h"

#include "common/partial_state.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- names for the note ---- */

/* Append a name if there is room for it. A note is one line, so control characters become '?'. */
static bool append_name(char *list, size_t size, const char *name, size_t n_name)
{
    size_t n = strlen(list);
    const char *comma = n > 0 ? ", " : "";

    if (n + strlen(comma) + n_name + 1 > size) {
        return false;
    }

    (void)snprintf(list + n, size - n, "%s%.*s", comma, (int)n_name, name);
    for (; list[n] != '\0'; n++) {
        bool is_control = (unsigned char)list[n] < ' ' || list[n] == 0x7f;
        list[n] = is_control ? '?' : list[n];
    }

    return true;
}

static void name_nodes(struct hearth_partial *partial, struct hearth_store *store,
                       const struct hearth_node_set *added)
{
    for (unsigned node = 1; node <= HEARTH_MAX_NODES; node++) {
        if (!added->has[node]) {
            continue;
        }
        char name[HEARTH_NODE_NAME_BYTES];
        hearth_store_node_name(store, node, name);
        bool is_first_left = partial->n_nodes == partial->n_named_nodes;
        partial->n_named_nodes +=
            is_first_left && append_name(partial->nodes, sizeof partial->nodes, name, strlen(name));
        partial->n_nodes++;
    }
}

/* ---- services that are left out ---- */

static int compare_lost_ids(const void *left, const void *right)
{
    int32_t a, b;
    memcpy(&a, left, sizeof a);
    memcpy(&b, right, sizeof b);
    return (a > b) - (a < b);
}

/* Remember the service of a hit, with its name. The caller holds the lock of the index. */
static enum hearth_status add_service(const struct hearth_query *query,
                                      const struct hearth_call_index *index,
                                      const struct hearth_series_hit *hit, struct hearth_err *err)
{
    struct hearth_partial *partial = query->call.partial;
    struct hearth_arena *arena = query->call.arena;
    int32_t id = hit->service_id;

    if (partial->n_services > 0 && bsearch(&id, partial->service_ids, partial->n_services,
                                           sizeof id, compare_lost_ids) != NULL) {
        return HEARTH_OK;
    }
    if (!hearth_arena_grow(arena, &partial->service_ids, &partial->cap_services,
                           partial->n_services + 1, sizeof id)) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    size_t at = partial->n_services++;
    for (; at > 0 && partial->service_ids[at - 1] > id; at--) {
        partial->service_ids[at] = partial->service_ids[at - 1];
    }
    partial->service_ids[at] = id;

    /* Once a name had no room, later ones are only counted. */
    if (partial->n_named_services + 1 < partial->n_services) {
        return HEARTH_OK;
    }

    /* A series that was pruned since it was selected has no labels any more. */
    char number[32];
    (void)snprintf(number, sizeof number, "service %d", (int)id);
    struct hearth_str name = hearth_str_c(number);
    struct hearth_labels labels;
    if (hearth_call_index_labels(index, hit, arena, &labels, NULL) == HEARTH_OK) {
        name = hearth_labels_get(&labels, HEARTH_STR(HEARTH_LABEL_SERVICE));
    }
    partial->n_named_services +=
        append_name(partial->services, sizeof partial->services, name.p, name.n);

    return HEARTH_OK;
}

/* The hits whose services are read; the others' services are remembered. */
static enum hearth_status filter_hits(const struct hearth_query *query,
                                      const struct hearth_call_index *index,
                                      const struct hearth_selection *selection,
                                      struct hearth_selection *ret, struct hearth_err *err)
{
    const struct hearth_node_set *lost = &query->call.partial->lost;
    struct hearth_store *store = query->call.engine->store;
    bool is_left_out = false;

    ret->n_hits = ret->n_services = 0;
    for (size_t i = 0; i < selection->n_hits; i++) {
        const struct hearth_series_hit *hit = &selection->hits[i];
        bool is_new = i == 0 || hit->service_id != selection->hits[i - 1].service_id;
        is_left_out =
            is_new ? lost->has[hearth_store_node_of(store, hit->service_id)] : is_left_out;
        if (is_left_out) {
            HEARTH_TRY(is_new ? add_service(query, index, hit, err) : HEARTH_OK);
            continue;
        }
        if (is_new) {
            ret->service_ids[ret->n_services++] = hit->service_id;
        }
        if (selection->same_labels != NULL) {
            ret->same_labels[ret->n_hits] = selection->same_labels[i];
        }
        ret->hits[ret->n_hits++] = *hit;
    }

    return HEARTH_OK;
}

/* Covered series are of services that the hits have, too. */
static void filter_covered(const struct hearth_selection *selection, struct hearth_selection *ret)
{
    ret->n_covered = 0;
    for (size_t i = 0; i < selection->n_covered; i++) {
        const struct hearth_series_hit *hit = &selection->covered[i];
        if (ret->n_services > 0 && bsearch(&hit->service_id, ret->service_ids, ret->n_services,
                                           sizeof hit->service_id, compare_lost_ids) != NULL) {
            ret->covered[ret->n_covered++] = *hit;
        }
    }
}

static enum hearth_status copy_selection(const struct hearth_query *query,
                                         const struct hearth_selection *selection,
                                         struct hearth_selection *ret, struct hearth_err *err)
{
    struct hearth_arena *arena = query->call.arena;

    *ret = *selection;
    ret->hits = hearth_arena_array(arena, selection->n_hits, sizeof ret->hits[0]);
    ret->covered = hearth_arena_array(arena, selection->n_covered, sizeof ret->covered[0]);
    ret->service_ids = hearth_arena_array(arena, selection->n_hits, sizeof ret->service_ids[0]);
    ret->same_labels =
        selection->same_labels == NULL
            ? NULL
            : hearth_arena_array(arena, selection->n_hits, sizeof ret->same_labels[0]);
    bool is_refused = ret->hits == NULL || ret->covered == NULL || ret->service_ids == NULL ||
                      (ret->same_labels == NULL && selection->same_labels != NULL);
    if (is_refused) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    const struct hearth_call_index *index = NULL;
    enum hearth_status status = hearth_call_index_lock(&query->call, &index, err);
    if (status == HEARTH_OK) {
        status = filter_hits(query, index, selection, ret, err);
    }
    hearth_call_index_unlock(index);
    if (status == HEARTH_OK) {
        filter_covered(selection, ret);
    }

    return status;
}

/* ---- which nodes ---- */

static void find_nodes(const struct hearth_query *query, const struct hearth_selection *selection,
                       struct hearth_node_set *ret)
{
    *ret = (struct hearth_node_set){0};
    for (size_t i = 0; i < selection->n_services; i++) {
        unsigned node = hearth_store_node_of(query->call.engine->store, selection->service_ids[i]);
        ret->has[node] = node > 0;
    }
}

/* Leave out these nodes of which nothing was read. Returns how many there are of them. */
static unsigned add_nodes(const struct hearth_query *query, const struct hearth_node_set *lost)
{
    struct hearth_partial *partial = query->call.partial;
    struct hearth_node_set added = {0};
    unsigned n = 0;

    for (unsigned node = 1; node <= HEARTH_MAX_NODES; node++) {
        added.has[node] = lost->has[node] && !partial->lost.has[node] && !partial->read.has[node];
        partial->lost.has[node] |= added.has[node];
        n += added.has[node];
    }
    name_nodes(partial, query->call.engine->store, &added);

    return n;
}

enum hearth_status hearth_lost_leave_out(const struct hearth_query *query,
                                         const struct hearth_selection *selection,
                                         struct hearth_selection *ret_kept, struct hearth_err *err)
{
    struct hearth_partial *partial = query->call.partial;
    assert(selection != NULL && ret_kept != NULL);

    *ret_kept = *selection;
    if (partial == NULL) {
        return HEARTH_OK;
    }

    if (HEARTH_UNLIKELY(hearth_store_has_lost_nodes(query->call.engine->store))) {
        struct hearth_node_set lost;
        find_nodes(query, selection, &lost);
        hearth_store_known_lost(query->call.engine->store, &lost);
        (void)add_nodes(query, &lost);
    }
    if (partial->n_nodes == 0) {
        return HEARTH_OK;
    }

    HEARTH_TRY(copy_selection(query, selection, ret_kept, err));
    if (ret_kept->n_hits == 0 && selection->n_hits > 0) {
        return HEARTH_FAIL(err, HEARTH_UNAVAILABLE,
                           "no answer from %s, where all services of this query lie; lacking: %s",
                           partial->nodes, partial->services);
    }

    return HEARTH_OK;
}

bool hearth_lost_retry(const struct hearth_query *query, const struct hearth_selection *kept,
                       enum hearth_status status)
{
    if (status != HEARTH_UNAVAILABLE || query->call.partial == NULL) {
        return false;
    }

    struct hearth_node_set lost;
    find_nodes(query, kept, &lost);
    hearth_store_find_lost(query->call.engine->store, query->call.cancel, &lost);

    return add_nodes(query, &lost) > 0;
}

void hearth_lost_done(const struct hearth_query *query, const struct hearth_selection *kept)
{
    struct hearth_partial *partial = query->call.partial;

    for (size_t i = 0; partial != NULL && i < kept->n_services; i++) {
        unsigned node = hearth_store_node_of(query->call.engine->store, kept->service_ids[i]);
        partial->read.has[node] = node > 0;
    }
}
