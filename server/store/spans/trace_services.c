/* trace_services.c -- services of spans by their names: from memory, else from the database, made when they are new (trace_writer.h). */
#include "hearth/store/store_agents.h"

#include "spans/trace_writer.h"

#define MAX_ASKED 1000u /* services in one statement */

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
    struct hearth_hash128 key = {seed, n};
    for (size_t i = 0; i < n; i++) {
        key = hearth_hash128(parts[i].p, parts[i].n, hearth_hash_mix(key.lo, key.hi));
    }
    return key;
}

static struct hearth_hash128 service_key(struct hearth_str tenant, struct hearth_str service)
{
    const struct hearth_str parts[] = {tenant, service};
    return hearth_trace_name_key(parts, 2, 0);
}

static void remember(struct hearth_trace_names *names, struct hearth_hash128 key,
                     int32_t service_id)
{
    bool is_new = false;
    if (names->services.n >= HEARTH_TRACE_MAX_KNOWN) {
        hearth_idmap_reset(&names->services);
    }
    (void)hearth_idmap_intern(&names->services, key, (uint32_t)service_id, &is_new);
}

enum hearth_status hearth_trace_service_of(struct hearth_store *store,
                                           struct hearth_trace_names *names,
                                           struct hearth_str tenant, struct hearth_str service,
                                           struct hearth_cancel *cancel, int32_t *ret,
                                           struct hearth_err *err)
{
    struct hearth_hash128 key = service_key(tenant, service);
    uint32_t id = hearth_idmap_find(&names->services, key);
    if (id != HEARTH_IDMAP_NONE) {
        *ret = (int32_t)id;
        return HEARTH_OK;
    }

    HEARTH_TRY(hearth_store_service_id(
        &(const struct hearth_scope){.store = store, .tenant = tenant, .cancel = cancel}, service,
        true, ret, err));
    remember(names, key, *ret);

    return HEARTH_OK;
}

/* ---- many ---- */

struct unknown {
    struct hearth_str names[MAX_ASKED];
    struct hearth_hash128 keys[MAX_ASKED];
    int32_t ids[MAX_ASKED];
    size_t n;
};

static enum hearth_status ask(struct hearth_store *store, struct hearth_trace_names *names,
                              struct hearth_str tenant, struct hearth_cancel *cancel,
                              struct unknown *unknown, struct hearth_err *err)
{
    if (unknown->n == 0) {
        return HEARTH_OK;
    }

    HEARTH_TRY(hearth_store_service_ids(
        &(const struct hearth_scope){.store = store, .tenant = tenant, .cancel = cancel},
        unknown->names, unknown->n, unknown->ids, err));
    for (size_t i = 0; i < unknown->n; i++) {
        remember(names, unknown->keys[i], unknown->ids[i]);
    }

    unknown->n = 0;

    return HEARTH_OK;
}

static bool is_unknown(const struct hearth_trace_names *names, struct hearth_hash128 key,
                       struct hearth_idmap *asked)
{
    bool is_new = false;
    if (hearth_idmap_find(&names->services, key) == HEARTH_IDMAP_NONE) {
        (void)hearth_idmap_intern(asked, key, 0, &is_new);
    }
    return is_new;
}

static enum hearth_status know(struct hearth_store *store, struct hearth_trace_names *names,
                               const struct hearth_trace_item *item, struct hearth_cancel *cancel,
                               struct hearth_arena *arena, struct hearth_idmap *asked,
                               struct hearth_err *err)
{
    struct unknown *unknown = NULL; /* there are none, most of the time */

    for (size_t i = 0; i < item->n_groups; i++) {
        struct hearth_hash128 key = service_key(item->tenant, item->groups[i].service);
        if (!is_unknown(names, key, asked)) {
            continue;
        }

        if (unknown == NULL) {
            unknown = hearth_arena_alloc(arena, sizeof *unknown);
            if (unknown == NULL) {
                return HEARTH_FAIL_ARENA(err, arena);
            }

            unknown->n = 0;
        }

        unknown->names[unknown->n] = item->groups[i].service;
        unknown->keys[unknown->n++] = key;
        if (unknown->n == MAX_ASKED) {
            HEARTH_TRY(ask(store, names, item->tenant, cancel, unknown, err));
        }
    }

    return unknown == NULL ? HEARTH_OK : ask(store, names, item->tenant, cancel, unknown, err);
}

enum hearth_status hearth_trace_services_know(struct hearth_store *store,
                                              struct hearth_trace_names *names,
                                              const struct hearth_trace_item *item,
                                              struct hearth_cancel *cancel,
                                              struct hearth_arena *arena, struct hearth_err *err)
{
    struct hearth_idmap asked;
    hearth_idmap_init(&asked);
    enum hearth_status status = know(store, names, item, cancel, arena, &asked, err);
    hearth_idmap_release(&asked);
    return status;
}
