/* policy_file.c -- policies in files (contract: policy_file.h). libyaml makes a tree; this takes what it knows. */
#include "policy_file.h"

#include <assert.h>
#include <yaml.h>

#define MAX_TARGETS 64
#define MAX_ITEMS   64
#define MAX_URIS    1000

struct reading {
    yaml_document_t document;
    struct hearth_arena *arena;
    struct hearth_err *err;
};

static struct hearth_str scalar_text(const yaml_node_t *node)
{
    return node->type == YAML_SCALAR_NODE
               ? hearth_str_n((const char *)node->data.scalar.value, node->data.scalar.length)
               : hearth_str_n("", 0);
}

static int line_of(const yaml_node_t *node)
{
    return (int)node->start_mark.line + 1;
}

static bool is_null(const yaml_node_t *node)
{
    struct hearth_str text = scalar_text(node);
    return node->type == YAML_SCALAR_NODE && node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
           (text.n == 0 || hearth_str_eq_c(text, "null") || hearth_str_eq_c(text, "~"));
}

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

static enum hearth_status read_number(struct reading *reading, const yaml_node_t *node, int64_t max,
                                      int64_t *ret)
{
    if (!hearth_str_to_i64(scalar_text(node), ret) || *ret > max || *ret < -max) {
        return HEARTH_FAIL(reading->err, HEARTH_INVALID_ARGUMENT,
                           "line %d: \"" HEARTH_STR_FMT "\" is not a whole number up to %lld",
                           line_of(node), HEARTH_STR_ARG(scalar_text(node)), (long long)max);
    }
    return HEARTH_OK;
}

static enum hearth_status read_text(struct reading *reading, const yaml_node_t *node,
                                    struct hearth_str *ret)
{
    if (is_null(node)) {
        *ret = hearth_str_n("", 0);
        return HEARTH_OK;
    }
    if (node->type != YAML_SCALAR_NODE ||
        (scalar_text(node).n > 0 && memchr(scalar_text(node).p, 0, scalar_text(node).n) != NULL)) {
        return HEARTH_FAIL(reading->err, HEARTH_INVALID_ARGUMENT, "line %d: expected a text",
                           line_of(node));
    }
    *ret = hearth_arena_str(reading->arena, scalar_text(node));
    return reading->arena->refused ? HEARTH_FAIL_ARENA(reading->err, reading->arena) : HEARTH_OK;
}

/* The nodes of a list; none for null. */
static enum hearth_status open_list(struct reading *reading, const yaml_node_t *node, size_t max,
                                    const yaml_node_item_t **ret, size_t *ret_n)
{
    *ret = NULL;
    *ret_n = 0;
    if (is_null(node)) {
        return HEARTH_OK;
    }
    if (node->type != YAML_SEQUENCE_NODE) {
        return HEARTH_FAIL(reading->err, HEARTH_INVALID_ARGUMENT, "line %d: expected a list",
                           line_of(node));
    }
    *ret = node->data.sequence.items.start;
    *ret_n = (size_t)(node->data.sequence.items.top - node->data.sequence.items.start);
    if (*ret_n > max) {
        return HEARTH_FAIL(reading->err, HEARTH_INVALID_ARGUMENT,
                           "line %d: the list has %zu entries, more than %zu", line_of(node),
                           *ret_n, max);
    }

    return HEARTH_OK;
}

static yaml_node_t *node_of(struct reading *reading, int id)
{
    yaml_node_t *node = yaml_document_get_node(&reading->document, id);
    HEARTH_ASSERT(node != NULL);
    return node;
}

typedef enum hearth_status take_fn(struct reading *reading, void *context, struct hearth_str key,
                                   const yaml_node_t *value, bool *ret_known);

/* Each member of a mapping to `take`, which knows the keys. */
static enum hearth_status read_mapping(struct reading *reading, const yaml_node_t *node,
                                       take_fn *take, void *context)
{
    if (node->type != YAML_MAPPING_NODE) {
        return HEARTH_FAIL(reading->err, HEARTH_INVALID_ARGUMENT, "line %d: expected a mapping",
                           line_of(node));
    }
    for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
         pair < node->data.mapping.pairs.top; pair++) {
        const yaml_node_t *key = node_of(reading, pair->key);
        bool known = true;
        HEARTH_TRY(take(reading, context, scalar_text(key), node_of(reading, pair->value), &known));
        if (!known) {
            return HEARTH_FAIL(reading->err, HEARTH_INVALID_ARGUMENT,
                               "line %d: \"" HEARTH_STR_FMT "\" is unknown here", line_of(key),
                               HEARTH_STR_ARG(scalar_text(key)));
        }
    }

    return HEARTH_OK;
}

static struct hearth_str without_prefix(struct hearth_str text, struct hearth_str prefix)
{
    return hearth_str_starts(text, prefix) ? hearth_str_n(text.p + prefix.n, text.n - prefix.n)
                                           : text;
}

/* ---- checkers ---- */

static enum hearth_status read_uris(struct reading *reading, const yaml_node_t *node,
                                    struct hearth_check_item *item)
{
    const yaml_node_item_t *list;
    HEARTH_TRY(open_list(reading, node, MAX_URIS, &list, &item->n_uri_paths));
    item->uri_paths =
        hearth_arena_array(reading->arena, item->n_uri_paths, sizeof item->uri_paths[0]);
    if (item->uri_paths == NULL) {
        return HEARTH_FAIL_ARENA(reading->err, reading->arena);
    }
    for (size_t i = 0; i < item->n_uri_paths; i++) {
        HEARTH_TRY(read_text(reading, node_of(reading, list[i]), &item->uri_paths[i]));
    }
    return HEARTH_OK;
}

static enum hearth_status take_item(struct reading *reading, void *context, struct hearth_str key,
                                    const yaml_node_t *value, bool *ret_known)
{
    static const char *const type[] = {"type", "monitor", NULL};
    static const char *const period[] = {"period", "periodSeconds", "period_seconds", NULL};
    static const char *const uris[] = {"uriList", "uriPaths", "uri_paths", NULL};
    static const char *const regex[] = {"uriRegex", "uri_regex", NULL};
    struct hearth_check_item *item = context;
    int64_t number = 0;

    if (is_named(key, type)) {
        if (!hearth_monitor_find(without_prefix(scalar_text(value), HEARTH_STR("MONITOR_KIND_")),
                                 &item->monitor)) {
            return HEARTH_FAIL(reading->err, HEARTH_INVALID_ARGUMENT,
                               "line %d: unknown monitor \"" HEARTH_STR_FMT
                               "\"; monitors are PROCESS_CPU, PROCESS_THREAD_COUNT, SYSTEM_LOAD,"
                               " HTTP_ERROR_RATE, HTTP_AVG_RESPONSE_TIME",
                               line_of(value), HEARTH_STR_ARG(scalar_text(value)));
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

/* ---- targets ---- */

static enum hearth_status take_target(struct reading *reading, void *context, struct hearth_str key,
                                      const yaml_node_t *value, bool *ret_known)
{
    static const char *const type[] = {"type", "kind", NULL};
    static const char *const items[] = {"checkers", "checkItems", "check_items", NULL};
    struct hearth_policy_target *target = context;

    if (is_named(key, type)) {
        if (!hearth_policy_kind_find(without_prefix(scalar_text(value), HEARTH_STR("TASK_KIND_")),
                                     &target->kind)) {
            return HEARTH_FAIL(reading->err, HEARTH_INVALID_ARGUMENT,
                               "line %d: unknown target \"" HEARTH_STR_FMT
                               "\"; targets are ON_CPU, OFF_CPU, NETWORK",
                               line_of(value), HEARTH_STR_ARG(scalar_text(value)));
        }
        return HEARTH_OK;
    }
    if (!is_named(key, items)) {
        *ret_known = false;
        return HEARTH_OK;
    }
    const yaml_node_item_t *list;
    HEARTH_TRY(open_list(reading, value, MAX_ITEMS, &list, &target->n_items));
    target->items = hearth_arena_calloc(reading->arena, target->n_items, sizeof target->items[0]);
    if (target->items == NULL) {
        return HEARTH_FAIL_ARENA(reading->err, reading->arena);
    }
    for (size_t i = 0; i < target->n_items; i++) {
        const yaml_node_t *node = node_of(reading, list[i]);
        HEARTH_TRY(read_mapping(reading, node, take_item, &target->items[i]));
        if (target->items[i].monitor == 0) {
            return HEARTH_FAIL(reading->err, HEARTH_INVALID_ARGUMENT,
                               "line %d: a checker has no type", line_of(node));
        }
    }

    return HEARTH_OK;
}

struct targets {
    struct hearth_policy_target *v;
    size_t n;
};

static enum hearth_status read_targets(struct reading *reading, const yaml_node_t *node,
                                       struct targets *ret)
{
    const yaml_node_item_t *list;

    HEARTH_TRY(open_list(reading, node, MAX_TARGETS, &list, &ret->n));
    ret->v = hearth_arena_calloc(reading->arena, ret->n, sizeof ret->v[0]);
    if (ret->v == NULL) {
        return HEARTH_FAIL_ARENA(reading->err, reading->arena);
    }
    for (size_t i = 0; i < ret->n; i++) {
        const yaml_node_t *target = node_of(reading, list[i]);
        HEARTH_TRY(read_mapping(reading, target, take_target, &ret->v[i]));
        if (ret->v[i].kind == 0) {
            return HEARTH_FAIL(reading->err, HEARTH_INVALID_ARGUMENT,
                               "line %d: a target has no type", line_of(target));
        }
    }

    return HEARTH_OK;
}

/* What answers say besides is passed over. */
static enum hearth_status take_policy(struct reading *reading, void *context, struct hearth_str key,
                                      const yaml_node_t *value, bool *ret_known)
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

static enum hearth_status take_root(struct reading *reading, void *context, struct hearth_str key,
                                    const yaml_node_t *value, bool *ret_known)
{
    if (hearth_str_eq_c(key, "policy")) {
        return value->type == YAML_MAPPING_NODE ? read_mapping(reading, value, take_policy, context)
                                                : read_targets(reading, value, context);
    }
    if (hearth_str_eq_c(key, "status") || hearth_str_eq_c(key, "warnings")) {
        return HEARTH_OK;
    }
    return take_policy(reading, context, key, value, ret_known);
}

static enum hearth_status load_yaml(struct hearth_str text, struct reading *reading)
{
    yaml_parser_t parser;

    if (yaml_parser_initialize(&parser) == 0) {
        return HEARTH_FAIL(reading->err, HEARTH_NO_MEMORY, "cannot allocate a parser");
    }
    yaml_parser_set_input_string(&parser, (const unsigned char *)text.p, text.n);
    bool loaded = yaml_parser_load(&parser, &reading->document) != 0;
    enum hearth_status status = HEARTH_OK;
    if (!loaded) {
        bool said = parser.problem != NULL;
        status =
            HEARTH_FAIL(reading->err, HEARTH_INVALID_ARGUMENT, "line %zu: %s",
                        parser.problem_mark.line + 1, said ? parser.problem : "this is not YAML");
    }
    yaml_parser_delete(&parser);

    return status;
}

enum hearth_status policy_file_read(struct hearth_str text, struct hearth_arena *arena,
                                    struct hearth_policy_target **ret, size_t *ret_n,
                                    struct hearth_err *err)
{
    assert(arena != NULL && ret != NULL && ret_n != NULL);
    struct reading reading = {.arena = arena, .err = err};
    struct targets targets = {0};

    if (text.n > POLICY_FILE_BYTES) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "larger than 1 MiB");
    }
    HEARTH_TRY(load_yaml(text, &reading));
    const yaml_node_t *root = yaml_document_get_root_node(&reading.document);
    enum hearth_status status = HEARTH_OK;
    if (root == NULL) {
        status = HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "the file is empty");
    } else {
        status = read_mapping(&reading, root, take_root, &targets);
    }
    yaml_document_delete(&reading.document);
    *ret = targets.v;
    *ret_n = targets.n;

    return status;
}
