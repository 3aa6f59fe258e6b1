/* yaml_reader.c -- values of a YAML tree, with the lines of mistakes (contract: yaml_reader.h). */
#include "yaml_reader.h"

#include "hearth/base/clock.h"
#include "hearth/selector/timeexpr.h"

#include <string.h>

#define MAX_DURATION_NS HEARTH_NS_PER_DAY

/* ---- nodes ---- */

struct hearth_str hearth_yaml_text(const yaml_node_t *node)
{
    return node->type == YAML_SCALAR_NODE
               ? hearth_str_n((const char *)node->data.scalar.value, node->data.scalar.length)
               : hearth_str_n("", 0);
}

int hearth_yaml_line(const yaml_node_t *node)
{
    return (int)node->start_mark.line + 1;
}

yaml_node_t *hearth_yaml_node(struct hearth_yaml *reading, int id)
{
    yaml_node_t *node = yaml_document_get_node(&reading->document, id);

    HEARTH_ASSERT(node != NULL);

    return node;
}

enum hearth_status hearth_yaml_mapping(struct hearth_yaml *reading, const yaml_node_t *node,
                                       hearth_yaml_member_fn *take, void *context)
{
    if (node->type != YAML_MAPPING_NODE) {
        return HEARTH_FAIL(reading->err, HEARTH_INVALID_ARGUMENT, "line %d: expected a mapping",
                           hearth_yaml_line(node));
    }

    for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
         pair < node->data.mapping.pairs.top; pair++) {
        const yaml_node_t *key = hearth_yaml_node(reading, pair->key);
        bool known = true;
        HEARTH_TRY(take(reading, context, hearth_yaml_text(key),
                        hearth_yaml_node(reading, pair->value), &known));
        if (!known) {
            return HEARTH_FAIL(reading->err, HEARTH_INVALID_ARGUMENT,
                               "line %d: \"" HEARTH_STR_FMT "\" is unknown here",
                               hearth_yaml_line(key), HEARTH_STR_ARG(hearth_yaml_text(key)));
        }
    }

    return HEARTH_OK;
}

enum hearth_status hearth_yaml_list(struct hearth_yaml *reading, const yaml_node_t *node,
                                    size_t max, hearth_yaml_item_fn *take, void *context)
{
    if (node->type != YAML_SEQUENCE_NODE) {
        return HEARTH_FAIL(reading->err, HEARTH_INVALID_ARGUMENT, "line %d: expected a list",
                           hearth_yaml_line(node));
    }

    const yaml_node_item_t *first = node->data.sequence.items.start;
    size_t n = (size_t)(node->data.sequence.items.top - first);
    if (n > max) {
        return HEARTH_FAIL(reading->err, HEARTH_INVALID_ARGUMENT,
                           "line %d: the list has %zu entries, more than %zu",
                           hearth_yaml_line(node), n, max);
    }

    for (size_t i = 0; i < n; i++) {
        HEARTH_TRY(take(reading, context, hearth_yaml_node(reading, first[i]), i));
    }

    return HEARTH_OK;
}

size_t hearth_yaml_count(const yaml_node_t *node)
{
    return node->type == YAML_SEQUENCE_NODE
               ? (size_t)(node->data.sequence.items.top - node->data.sequence.items.start)
               : 0;
}

/* ---- values ---- */

enum hearth_status hearth_yaml_string(struct hearth_yaml *reading, const yaml_node_t *node,
                                      const char **ret)
{
    struct hearth_str text = hearth_yaml_text(node);

    if (node->type != YAML_SCALAR_NODE || text.n == 0 || memchr(text.p, 0, text.n) != NULL) {
        return HEARTH_FAIL(reading->err, HEARTH_INVALID_ARGUMENT, "line %d: expected a text",
                           hearth_yaml_line(node));
    }

    *ret = hearth_arena_strndup(reading->arena, text.p, text.n);

    return *ret == NULL ? HEARTH_FAIL_ARENA(reading->err, reading->arena) : HEARTH_OK;
}

enum hearth_status hearth_yaml_secret(struct hearth_yaml *reading, const yaml_node_t *node,
                                      struct hearth_secret **ret)
{
    struct hearth_str text = hearth_yaml_text(node);
    struct hearth_secret *secret = NULL;

    HEARTH_TRY(hearth_secret_new(text, &secret, reading->err));
    if (secret == NULL) {
        return HEARTH_FAIL(reading->err, HEARTH_INVALID_ARGUMENT, "line %d: expected a text",
                           hearth_yaml_line(node));
    }

    explicit_bzero(node->data.scalar.value, text.n);
    *ret = secret;

    return HEARTH_OK;
}

enum hearth_status hearth_yaml_switch(struct hearth_yaml *reading, const yaml_node_t *node,
                                      bool *ret)
{
    struct hearth_str text = hearth_yaml_text(node);

    if (!hearth_str_eq_c(text, "true") && !hearth_str_eq_c(text, "false")) {
        return HEARTH_FAIL(reading->err, HEARTH_INVALID_ARGUMENT, "line %d: expected true or false",
                           hearth_yaml_line(node));
    }

    *ret = hearth_str_eq_c(text, "true");

    return HEARTH_OK;
}

enum hearth_status hearth_yaml_duration(struct hearth_yaml *reading, const yaml_node_t *node,
                                        int64_t *ret)
{
    struct hearth_err why = HEARTH_ERR_INIT;
    int64_t ns = 0;

    if (hearth_duration_parse(hearth_yaml_text(node), &ns, &why) != HEARTH_OK ||
        ns < HEARTH_NS_PER_SEC || ns > MAX_DURATION_NS) {
        return HEARTH_FAIL(reading->err, HEARTH_INVALID_ARGUMENT,
                           "line %d: expected a duration from 1s to 1d", hearth_yaml_line(node));
    }

    *ret = ns;

    return HEARTH_OK;
}

/* ---- the file ---- */

enum hearth_status hearth_yaml_parse(FILE *file, yaml_document_t *document, struct hearth_err *err)
{
    yaml_parser_t parser;
    enum hearth_status status = HEARTH_OK;

    if (yaml_parser_initialize(&parser) == 0) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory to read the file");
    }

    yaml_parser_set_input_file(&parser, file);
    if (yaml_parser_load(&parser, document) == 0) {
        status = HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "line %d: %s",
                             (int)parser.problem_mark.line + 1,
                             parser.problem != NULL ? parser.problem : "not YAML");
    }

    yaml_parser_delete(&parser);

    return status;
}
