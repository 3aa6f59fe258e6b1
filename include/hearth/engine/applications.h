/*
 * applications.h -- services as their owners see them: who they belong to, whether their profiles
 * are accepted (model/application.h).
 *
 * A narrowed call sees and changes the applications whose services it sees wholly, and no rules.
 *
 * Ownership: answers live in the arena of the call.
 * Threads:   safe.
 * Errors:    INVALID_ARGUMENT names the error; NOT_FOUND; PERMISSION_DENIED; RESOURCE_EXHAUSTED;
 *            UNAVAILABLE, NO_MEMORY.
 */
#ifndef HEARTH_ENGINE_APPLICATIONS_H
#define HEARTH_ENGINE_APPLICATIONS_H

#include "hearth/engine/call.h"
#include "hearth/model/application.h"

#define HEARTH_MAX_APPLICATION_RULES      100
#define HEARTH_MAX_APPLICATION_TEXT_BYTES 4096u /* of an owner or a description */
#define HEARTH_MAX_APPLICATIONS           10000 /* in one answer */

/* Sorted by name; at most HEARTH_MAX_APPLICATIONS. */
HEARTH_MUST_CHECK
enum hearth_status hearth_applications_list(const struct hearth_call *call,
                                            struct hearth_application **ret, size_t *ret_n,
                                            struct hearth_err *err);
HEARTH_MUST_CHECK
enum hearth_status hearth_application_get(const struct hearth_call *call, struct hearth_str name,
                                          struct hearth_application *ret, struct hearth_err *err);

struct hearth_application_update {
    struct hearth_str name;
    const struct hearth_str *owner, *description; /* NULL: unchanged */
    int32_t profiling, approved;                  /* negative: unchanged */
    struct hearth_str updated_by;
};

/* Change an application, which need not have been seen yet; *ret is its new state. */
HEARTH_MUST_CHECK
enum hearth_status hearth_application_set(const struct hearth_call *call,
                                          const struct hearth_application_update *update,
                                          struct hearth_application *ret, struct hearth_err *err);
HEARTH_MUST_CHECK
enum hearth_status hearth_application_delete(const struct hearth_call *call, struct hearth_str name,
                                             struct hearth_err *err);

/* Sorted by name, the order in which they count. */
HEARTH_MUST_CHECK
enum hearth_status hearth_application_rules_list(const struct hearth_call *call,
                                                 struct hearth_application_rule **ret,
                                                 size_t *ret_n, struct hearth_err *err);
/* Create or replace a rule; its time is set. */
HEARTH_MUST_CHECK
enum hearth_status hearth_application_rule_set(const struct hearth_call *call,
                                               struct hearth_application_rule *rule,
                                               struct hearth_err *err);
HEARTH_MUST_CHECK
enum hearth_status hearth_application_rule_delete(const struct hearth_call *call,
                                                  struct hearth_str name, struct hearth_err *err);

#endif
