/* policy_file.c -- policies in files (contract: policy_file.h). libyaml makes a tree; this takes what it knows. */
#include "policy_file.h"

#include "hearth/codec/yaml_reader.h"

#include <assert.h>

#define MAX_TARGETS 64
#define MAX_ITEMS   64
#define MAX_URIS    1000

/* True for one of the names, which end with NULL. */
static bool is_named(struct hearth_str text, const char *const *names)
{
    for (; *names != NULL; names++) {
        if (hearth_str_eq_c(text, *names)) {
            return true;
        }
    }
    return false;
}

/* ---- values ---- */

static enum hearth_status read_number(struct hearth_yaml *reading, const yaml_node_t *node,
                                      int64_t max, int64_t *ret)
{
    if (!hearth_str_to_i64(hearth_yaml_text(node), ret) || *ret > max || *ret < -max) {
        return HEARTH_FAIL(reading->err, HEARTH_INVALID_ARGUMENT,
                           "line %d: \"" HEARTH_STR_FMT "\" is not a whole number up to %lld",
                           hearth_yaml_line(node), HEARTH_STR_ARG(hearth_yaml_text(node)),
                           (long long)max);
    }
    return HEARTH_OK;
}

/* A text in the arena; empty for null. */
static enum hearth_status read_text(struct hearth_yaml *reading, const yaml_node_t *node,
                                    struct hearth_str *ret)
{
    const char *text = "";

    if (!hearth_yaml_is_null(node) && hearth_yaml_text(node).n > 0) {
        HEARTH_TRY(hearth_yaml_string(reading, node, &text));
    }
    *ret = hearth_str_c(text);

    return HEARTH_OK;
}

/* Gives each item of a list to `take`; none for null. */
static enum hearth_status read_list(struct hearth_yaml *reading, const yaml_node_t *node,
                                    size_t max, hearth_yaml_item_fn *take, void *context)
{
    return hearth_yaml_is_null(node) ? HEARTH_OK
                                     : hearth_yaml_list(reading, node, max, take, context);
}

static struct hearth_str without_prefix(struct hearth_str text, struct hearth_str prefix)
{
    return hearth_str_starts(text, prefix) ? hearth_str_n(text.p + prefix.n, text.n - prefix.n)
                                           : text;
}

/* ---- checkers ---- */

static enum hearth_status take_uri(struct hearth_yaml *reading, void *context,
                                   const yaml_node_t *node, size_t index)
{
    struct hearth_check_item *item = context;
    return read_text(reading, node, &item->uri_paths[index]);
}

static enum hearth_status read_uris(struct hearth_yaml *reading, const yaml_node_t *node,
                                    struct hearth_check_item *item)
{
    item->n_uri_paths = hearth_yaml_count(node);
    item->uri_paths =
        hearth_arena_array(reading->arena, item->n_uri_paths, sizeof item->uri_paths[0]);
    if (item->uri_paths == NULL) {
        return HEARTH_FAIL_ARENA(reading->err, reading->arena);
    }

    return read_list(reading, node, MAX_URIS, take_uri, item);
}

static enum hearth_status take_item_member(struct hearth_yaml *reading, void *context,
                                           struct hearth_str key, const yaml_node_t *value,
                                           bool *ret_known)
{
    static const char *const type[] = {"type", "monitor", NULL};
    static const char *const period[] = {"period", "periodSeconds", "period_seconds", NULL};
    static const char *const uris[] = {"uriList", "uriPaths", "uri_paths", NULL};
    static const char *const regex[] = {"uriRegex", "uri_regex", NULL};
    struct hearth_check_item *item = context;
    int64_t number = 0;

    if (is_named(key, type)) {
        if (!hearth_monitor_find(
                without_prefix(hearth_yaml_text(value), HEARTH_STR("MONITOR_KIND_")),
                &item->monitor)) {
            return HEARTH_FAIL(reading->err, HEARTH_INVALID_ARGUMENT,
                               "line %d: unknown monitor \"" HEARTH_STR_FMT
                               "\"; monitors are PROCESS_CPU, PROCESS_THREAD_COUNT, SYSTEM_LOAD,"
                               " HTTP_ERROR_RATE, HTTP_AVG_RESPONSE_TIME",
                               hearth_yaml_line(value), HEARTH_STR_ARG(hearth_yaml_text(value)));
        }
    } else if (hearth_str_eq_c(key, "threshold")) {
        HEARTH_TRY(read_number(reading, value, INT64_MAX, &item->threshold));
    } else if (is_named(key, period)) {
        HEARTH_TRY(read_number(reading, value, INT32_MAX, &number));
        item->period_seconds = (int32_t)number;
    } else if (hearth_str_eq_c(key, "count")) {
        HEARTH_TRY(read_number(reading, value, INT32_MAX, &number));
        item->count = (int32_t)number;
    } else if (is_named(key, uris)) {
        HEARTH_TRY(read_uris(reading, value, item));
    } else if (is_named(key, regex)) {
        HEARTH_TRY(read_text(reading, value, &item->uri_regex));
    } else {
        *ret_known = false;
    }

    return HEARTH_OK;
}

static enum hearth_status take_item(struct hearth_yaml *reading, void *context,
                                    const yaml_node_t *node, size_t index)
{
    struct hearth_policy_target *target = context;
    struct hearth_check_item *item = &target->items[index];

    HEARTH_TRY(hearth_yaml_mapping(reading, node, take_item_member, item));

    return item->monitor != 0
               ? HEARTH_OK
               : HEARTH_FAIL(reading->err, HEARTH_INVALID_ARGUMENT,
                             "line %d: a checker has no type", hearth_yaml_line(node));
}

/* ---- targets ---- */

static enum hearth_status take_target_member(struct hearth_yaml *reading, void *context,
                                             struct hearth_str key, const yaml_node_t *value,
                                             bool *ret_known)
{
    static const char *const type[] = {"type", "kind", NULL};
    static const char *const items[] = {"checkers", "checkItems", "check_items", NULL};
    struct hearth_policy_target *target = context;

    if (is_named(key, type)) {
        if (!hearth_policy_kind_find(
                without_prefix(hearth_yaml_text(value), HEARTH_STR("TASK_KIND_")), &target->kind)) {
            return HEARTH_FAIL(reading->err, HEARTH_INVALID_ARGUMENT,
                               "line %d: unknown target \"" HEARTH_STR_FMT
                               "\"; targets are ON_CPU, OFF_CPU, NETWORK",
                               hearth_yaml_line(value), HEARTH_STR_ARG(hearth_yaml_text(value)));
        }
        return HEARTH_OK;
    }
    if (!is_named(key, items)) {
        *ret_known = false;
        return HEARTH_OK;
    }
    target->n_items = hearth_yaml_count(value);
    target->items = hearth_arena_calloc(reading->arena, target->n_items, sizeof target->items[0]);
    if (target->items == NULL) {
        return HEARTH_FAIL_ARENA(reading->err, reading->arena);
    }

    return read_list(reading, value, MAX_ITEMS, take_item, target);
}

struct targets {
    struct hearth_policy_target *v;
    size_t n;
};

static enum hearth_status take_target(struct hearth_yaml *reading, void *context,
                                      const yaml_node_t *node, size_t index)
{
    struct targets *targets = context;
    struct hearth_policy_target *target = &targets->v[index];

    HEARTH_TRY(hearth_yaml_mapping(reading, node, take_target_member, target));

    return target->kind != 0 ? HEARTH_OK
                             : HEARTH_FAIL(reading->err, HEARTH_INVALID_ARGUMENT,
                                           "line %d: a target has no type", hearth_yaml_line(node));
}

static enum hearth_status read_targets(struct hearth_yaml *reading, const yaml_node_t *node,
                                       struct targets *ret)
{
    ret->n = hearth_yaml_count(node);
    ret->v = hearth_arena_calloc(reading->arena, ret->n, sizeof ret->v[0]);
    if (ret->v == NULL) {
        return HEARTH_FAIL_ARENA(reading->err, reading->arena);
    }

    return read_list(reading, node, MAX_TARGETS, take_target, ret);
}

/* What answers say besides is passed over. */
static enum hearth_status take_policy(struct hearth_yaml *reading, void *context,
                                      struct hearth_str key, const yaml_node_t *value,
                                      bool *ret_known)
{
    static const char *const others[] = {"service",      "version",    "uuid",        "modifiedMs",
                                         "modified_ms",  "modifiedBy", "modified_by", "isObserving",
                                         "is_observing", NULL};
    if (hearth_str_eq_c(key, "targets")) {
        return read_targets(reading, value, context);
    }
    *ret_known = is_named(key, others);
    return HEARTH_OK;
}

static enum hearth_status take_root(struct hearth_yaml *reading, void *context,
                                    struct hearth_str key, const yaml_node_t *value,
                                    bool *ret_known)
{
    if (hearth_str_eq_c(key, "policy")) {
        return value->type == YAML_MAPPING_NODE
                   ? hearth_yaml_mapping(reading, value, take_policy, context)
                   : read_targets(reading, value, context);
    }
    if (hearth_str_eq_c(key, "status") || hearth_str_eq_c(key, "warnings")) {
        return HEARTH_OK;
    }
    return take_policy(reading, context, key, value, ret_known);
}

enum hearth_status policy_file_read(struct hearth_str text, struct hearth_arena *arena,
                                    struct hearth_policy_target **ret, size_t *ret_n,
                                    struct hearth_err *err)
{
    assert(arena != NULL && ret != NULL && ret_n != NULL);
    struct targets targets = {0};

    if (text.n > POLICY_FILE_BYTES) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "larger than 1 MiB");
    }
    HEARTH_TRY(hearth_yaml_read_text(text, arena, take_root, &targets, err));
    *ret = targets.v;
    *ret_n = targets.n;

    return HEARTH_OK;
}
