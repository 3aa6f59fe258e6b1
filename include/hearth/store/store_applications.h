/*
 * store_applications.h -- stores applications and their rules (model/application.h), and decides in
 * memory whether a profile is accepted.
 *
 * Each server reads both tables again a few seconds after they have changed, and at once when it
 * has changed them itself. While the database cannot be reached, the last known state decides.
 *
 * Ownership: answers live in scope->arena.
 * Threads:   safe, also between servers.
 * Errors:    UNAVAILABLE, INTERNAL, NO_MEMORY, and the errors named at each function.
 */
#ifndef HEARTH_STORE_STORE_APPLICATIONS_H
#define HEARTH_STORE_STORE_APPLICATIONS_H

#include "hearth/model/application.h"
#include "hearth/model/labels.h"
#include "hearth/store/store.h"

/*
 * Decide about a profile, and note that its service was seen: it is in the table some seconds
 * later, approved unless require_approval. No round trip; allocates for a service that this server
 * has not seen yet.
 *
 * labels  own labels of the series, without the service; rules see both
 */
enum hearth_acceptance hearth_store_accepts(struct hearth_store *store, struct hearth_str tenant,
                                            struct hearth_str service,
                                            const struct hearth_labels *labels,
                                            bool require_approval);

/* The applications of the tenant, sorted by name: one, or all if name is empty; at most limit. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_applications(const struct hearth_scope *scope,
                                             struct hearth_str name, int64_t limit,
                                             struct hearth_application **ret, size_t *ret_n,
                                             struct hearth_err *err);

/* Members to change; the others keep their values. */
struct hearth_application_change {
    struct hearth_str name;
    const struct hearth_str *owner, *description; /* NULL: unchanged */
    int32_t profiling, approved;                  /* negative: unchanged */
    bool approves_new;                            /* a new one is approved unless `approved` is 0 */
    struct hearth_str updated_by;
    int64_t now_ms;
};

/* Change an application; one that was not seen yet is created, unless the tenant has max. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_application_set(const struct hearth_scope *scope,
                                                const struct hearth_application_change *change,
                                                int64_t max, struct hearth_err *err);
/* NOT_FOUND. The service's next profile makes it again, with the state of a new one. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_application_delete(const struct hearth_scope *scope,
                                                   struct hearth_str name, struct hearth_err *err);

/* Sorted by name. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_application_rules(const struct hearth_scope *scope,
                                                  struct hearth_application_rule **ret,
                                                  size_t *ret_n, struct hearth_err *err);
/* Create or replace. RESOURCE_EXHAUSTED: the tenant has max_rules others. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_application_rule_put(const struct hearth_scope *scope,
                                                     const struct hearth_application_rule *rule,
                                                     int64_t max_rules, struct hearth_err *err);
/* NOT_FOUND. */
HEARTH_MUST_CHECK
enum hearth_status hearth_store_application_rule_delete(const struct hearth_scope *scope,
                                                        struct hearth_str name,
                                                        struct hearth_err *err);

#endif
