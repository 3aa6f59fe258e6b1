/*
 * trace_services.c -- ids of services by their names: from memory, otherwise from the database,
 * which creates new ones (trace_writer.h).
 */
#include "hearth/store/store_agents.h"

#include "spans/trace_writer.h"

#include <assert.h>

#define MAX_REQUESTED 1000u /* services in one statement */

void hearth_trace_names_init(struct hearth_trace_names *names)
{
    hearth_idmap_init(&names->services);
    hearth_idmap_init(&names->refreshed);
}

void hearth_trace_names_release(struct hearth_trace_names *names)
{
    hearth_idmap_release(&names->services);
    hearth_idmap_release(&names->refreshed);
}

struct hearth_hash128 hearth_trace_name_key(const struct hearth_str *parts, size_t n, uint64_t seed)
{
    assert(parts != NULL && n > 0);

    struct hearth_hash128 key = {seed, n};
    for (size_t i = 0; i < n; i++) {
        key = hearth_hash128(parts[i].p, parts[i].n, hearth_hash_mix(key.lo, key.hi));
    }

    return key;
}

static struct hearth_hash128 make_service_key(struct hearth_str tenant, struct hearth_str service)
{
    const struct hearth_str parts[] = {tenant, service};
    return hearth_trace_name_key(parts, 2, 0);
}

/* A failure of memory means that the service is looked up again. */
static void remember_service(struct hearth_trace_names *names, struct hearth_hash128 key,
                             int32_t service_id)
{
    bool is_new = false;

    if (names->services.n >= HEARTH_TRACE_MAX_KNOWN) {
        hearth_idmap_reset(&names->services);
    }

    (void)hearth_idmap_intern(&names->services, key, (uint32_t)service_id, &is_new);
}

enum hearth_status hearth_trace_service_find(const struct hearth_scope *scope,
                                             struct hearth_trace_names *names,
                                             struct hearth_str service, int32_t *ret,
                                             struct hearth_err *err)
{
    assert(names != NULL && ret != NULL);

    /* From memory. */
    struct hearth_hash128 key = make_service_key(scope->tenant, service);
    uint32_t id = hearth_idmap_find(&names->services, key);
    if (id != HEARTH_IDMAP_NONE) {
        *ret = (int32_t)id;
        return HEARTH_OK;
    }

    /* From the database. */
    int32_t service_id;
    HEARTH_TRY(hearth_store_service_id(scope, service, true, &service_id, err));
    remember_service(names, key, service_id);
    *ret = service_id;

    return HEARTH_OK;
}

/* ---- many ---- */

/* Services that are not remembered. */
struct unknown {
    struct hearth_str names[MAX_REQUESTED];
    struct hearth_hash128 keys[MAX_REQUESTED];
    int32_t ids[MAX_REQUESTED];
    size_t n;
};

static enum hearth_status learn_unknown(const struct hearth_scope *scope,
                                        struct hearth_trace_names *names, struct unknown *unknown,
                                        struct hearth_err *err)
{
    assert(unknown->n <= MAX_REQUESTED);
    if (unknown->n == 0) {
        return HEARTH_OK;
    }

    HEARTH_TRY(hearth_store_service_ids(scope, unknown->names, unknown->n, unknown->ids, err));
    for (size_t i = 0; i < unknown->n; i++) {
        remember_service(names, unknown->keys[i], unknown->ids[i]);
    }

    unknown->n = 0;

    return HEARTH_OK;
}

/* True if the service is not remembered, the first time for each service of an item. */
static bool is_first_unknown(const struct hearth_trace_names *names, struct hearth_hash128 key,
                             struct hearth_idmap *requested)
{
    bool is_new = false;

    if (hearth_idmap_find(&names->services, key) == HEARTH_IDMAP_NONE) {
        (void)hearth_idmap_intern(requested, key, 0, &is_new);
    }

    return is_new;
}

enum hearth_status hearth_trace_services_learn(const struct hearth_scope *scope,
                                               struct hearth_trace_names *names,
                                               const struct hearth_trace_item *item,
                                               struct hearth_err *err)
{
    assert(scope->arena != NULL);
    assert(hearth_str_eq(scope->tenant, item->tenant));

    struct unknown *unknown = NULL; /* allocated when there is one, which is rare */
    HEARTH_CLEANUP(hearth_idmap_release) struct hearth_idmap requested;
    hearth_idmap_init(&requested);

    for (size_t i = 0; i < item->n_groups; i++) {
        struct hearth_hash128 key = make_service_key(item->tenant, item->groups[i].service);
        if (!is_first_unknown(names, key, &requested)) {
            continue;
        }

        if (unknown == NULL) {
            unknown = hearth_arena_alloc(scope->arena, sizeof *unknown);
            if (unknown == NULL) {
                return HEARTH_FAIL_ARENA(err, scope->arena);
            }

            unknown->n = 0;
        }

        unknown->names[unknown->n] = item->groups[i].service;
        unknown->keys[unknown->n++] = key;
        if (unknown->n == MAX_REQUESTED) {
            HEARTH_TRY(learn_unknown(scope, names, unknown, err));
        }
    }

    return unknown == NULL ? HEARTH_OK : learn_unknown(scope, names, unknown, err);
}
