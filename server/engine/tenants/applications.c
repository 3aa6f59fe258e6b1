/* applications.c -- checks changes of applications and rules (contract: applications.h). */
#include "hearth/engine/applications.h"

#include "hearth/base/clock.h"
#include "hearth/selector/selector.h"
#include "hearth/store/store_applications.h"

#include "common/call_internal.h"
#include "common/shown.h"

#include <assert.h>

#define MAX_RULE_NAME_BYTES 128u
#define MAX_NAME_BYTES      2048u

static enum hearth_status check_application_text(const char *what, struct hearth_str text,
                                                 size_t min, size_t max, struct hearth_err *err)
{
    if (text.n < min || text.n > max || !hearth_str_utf8_valid(text)) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "%s has %zu bytes; it must be UTF-8 of %zu to %zu bytes", what, text.n,
                           min, max);
    }

    return HEARTH_OK;
}

/* Keep the applications that the call may see. */
static enum hearth_status keep_shown(const struct hearth_call *call,
                                     struct hearth_application *applications, size_t *n,
                                     struct hearth_err *err)
{
    struct hearth_shown shown = {0};
    size_t n_kept = 0;

    for (size_t i = 0; i < *n; i++) {
        bool is_shown;
        HEARTH_TRY(hearth_call_shows_service(call, &shown, applications[i].name, &is_shown, err));
        if (is_shown) {
            applications[n_kept++] = applications[i];
        }
    }
    *n = n_kept;

    return HEARTH_OK;
}

enum hearth_status hearth_applications_list(const struct hearth_call *call,
                                            struct hearth_application **ret, size_t *ret_n,
                                            struct hearth_err *err)
{
    HEARTH_TRY(hearth_store_applications(HEARTH_CALL_SCOPE(call), HEARTH_STR(""),
                                         HEARTH_MAX_APPLICATIONS, ret, ret_n, err));

    return hearth_call_is_narrow(call) ? keep_shown(call, *ret, ret_n, err) : HEARTH_OK;
}

static enum hearth_status fail_unknown(struct hearth_str name, struct hearth_err *err)
{
    return HEARTH_FAIL(err, HEARTH_NOT_FOUND, "there is no application \"" HEARTH_STR_FMT "\"",
                       HEARTH_STR_ARG(name));
}

enum hearth_status hearth_application_get(const struct hearth_call *call, struct hearth_str name,
                                          struct hearth_application *ret, struct hearth_err *err)
{
    struct hearth_application *found;
    size_t n = 0;
    bool is_shown;

    HEARTH_TRY(check_application_text("name", name, 1, MAX_NAME_BYTES, err));
    HEARTH_TRY(hearth_call_shows_service(call, NULL, name, &is_shown, err));
    if (is_shown) {
        HEARTH_TRY(hearth_store_applications(HEARTH_CALL_SCOPE(call), name, 1, &found, &n, err));
    }
    if (n == 0) {
        return fail_unknown(name, err);
    }
    *ret = found[0];

    return HEARTH_OK;
}

enum hearth_status hearth_application_set(const struct hearth_call *call,
                                          const struct hearth_application_update *update,
                                          struct hearth_application *ret, struct hearth_err *err)
{
    const size_t max = HEARTH_MAX_APPLICATION_TEXT_BYTES;
    struct hearth_limits limits;
    assert(update != NULL && ret != NULL);

    /* Check it. */
    HEARTH_TRY(check_application_text("name", update->name, 1, MAX_NAME_BYTES, err));
    HEARTH_TRY(hearth_call_check_service(call, update->name, err));
    HEARTH_TRY(check_application_text("updated_by", update->updated_by, 0, 256, err));
    if (update->owner != NULL) {
        HEARTH_TRY(check_application_text("owner", *update->owner, 0, max, err));
    }
    if (update->description != NULL) {
        HEARTH_TRY(check_application_text("description", *update->description, 0, max, err));
    }

    /* Store it, and read it back. */
    hearth_limits_of_tenant(hearth_engine_limits(call->engine), call->engine->store, call->tenant,
                            &limits);
    const struct hearth_application_change change = {
        .name = update->name,
        .owner = update->owner,
        .description = update->description,
        .profiling = update->profiling,
        .approved = update->approved,
        .approves_new = !limits.require_approval,
        .updated_by = update->updated_by,
        .now_ms = hearth_clock_wall_ns() / HEARTH_NS_PER_MS,
    };
    HEARTH_TRY(
        hearth_store_application_set(HEARTH_CALL_SCOPE(call), &change, limits.max_services, err));

    return hearth_application_get(call, update->name, ret, err);
}

enum hearth_status hearth_application_delete(const struct hearth_call *call, struct hearth_str name,
                                             struct hearth_err *err)
{
    bool is_shown;

    HEARTH_TRY(hearth_call_shows_service(call, NULL, name, &is_shown, err));

    return is_shown ? hearth_store_application_delete(HEARTH_CALL_SCOPE(call), name, err)
                    : fail_unknown(name, err);
}

/* ---- rules ---- */

enum hearth_status hearth_application_rules_list(const struct hearth_call *call,
                                                 struct hearth_application_rule **ret,
                                                 size_t *ret_n, struct hearth_err *err)
{
    /* Their selectors tell about services that a narrowed call does not see. */
    if (hearth_call_is_narrow(call)) {
        *ret = NULL;
        *ret_n = 0;
        return HEARTH_OK;
    }

    return hearth_store_application_rules(HEARTH_CALL_SCOPE(call), ret, ret_n, err);
}

/* Rules are asked before a profile is decoded: they see its service and labels, not its types. */
static enum hearth_status check_rule_selector(const struct hearth_call *call,
                                              struct hearth_str text, struct hearth_err *err)
{
    struct hearth_selector selector;
    hearth_selector_init(&selector);
    enum hearth_status status = hearth_selector_parse(&selector, text, call->arena, NULL, err);

    for (size_t i = 0; status == HEARTH_OK && i < selector.n; i++) {
        struct hearth_str name = selector.matchers[i].name;
        if (hearth_str_starts(name, HEARTH_STR("__"))) {
            status = HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                                 "a rule of applications matches service_name and labels, not "
                                 "\"" HEARTH_STR_FMT "\"",
                                 HEARTH_STR_ARG(name));
        }
    }
    hearth_selector_release(&selector);

    return status;
}

enum hearth_status hearth_application_rule_set(const struct hearth_call *call,
                                               struct hearth_application_rule *rule,
                                               struct hearth_err *err)
{
    assert(rule != NULL);

    HEARTH_TRY(hearth_call_check_whole(call, err));
    HEARTH_TRY(check_application_text("name", rule->name, 1, MAX_RULE_NAME_BYTES, err));
    HEARTH_TRY(check_application_text("updated_by", rule->updated_by, 0, 256, err));
    if (rule->profiling != HEARTH_PROFILING_ON && rule->profiling != HEARTH_PROFILING_OFF) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "profiling is %d; a rule must switch it on (1) or off (2)",
                           (int)rule->profiling);
    }
    HEARTH_TRY(check_rule_selector(call, rule->selector, err));
    rule->updated_ms = hearth_clock_wall_ns() / HEARTH_NS_PER_MS;

    return hearth_store_application_rule_put(HEARTH_CALL_SCOPE(call), rule,
                                             HEARTH_MAX_APPLICATION_RULES, err);
}

enum hearth_status hearth_application_rule_delete(const struct hearth_call *call,
                                                  struct hearth_str name, struct hearth_err *err)
{
    HEARTH_TRY(hearth_call_check_whole(call, err));
    return hearth_store_application_rule_delete(HEARTH_CALL_SCOPE(call), name, err);
}
