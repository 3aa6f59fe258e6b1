/* yaml_reader.c -- values of a YAML tree, with the lines of mistakes (contract: yaml_reader.h). */
#include "hearth/codec/yaml_reader.h"

#include <string.h>

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

static enum hearth_status check_is_first(struct hearth_yaml *reading, const yaml_node_t *node,
                                         const yaml_node_pair_t *pair)
{
    const yaml_node_t *key = hearth_yaml_node(reading, pair->key);
    struct hearth_str text = hearth_yaml_text(key);

    for (const yaml_node_pair_t *other = node->data.mapping.pairs.start; other < pair; other++) {
        const yaml_node_t *earlier = hearth_yaml_node(reading, other->key);
        if (hearth_str_eq(hearth_yaml_text(earlier), text)) {
            return HEARTH_FAIL(reading->err, HEARTH_INVALID_ARGUMENT,
                               "line %d: \"" HEARTH_STR_FMT "\" is already set on line %d",
                               hearth_yaml_line(key), HEARTH_STR_ARG(text),
                               hearth_yaml_line(earlier));
        }
    }

    return HEARTH_OK;
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
        if (!reading->may_repeat) {
            HEARTH_TRY(check_is_first(reading, node, pair));
        }
        reading->key_line = hearth_yaml_line(key);
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

bool hearth_yaml_is_null(const yaml_node_t *node)
{
    struct hearth_str text = hearth_yaml_text(node);

    return node->type == YAML_SCALAR_NODE && node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
           (text.n == 0 || hearth_str_eq_c(text, "null") || hearth_str_eq_c(text, "~"));
}

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

/* ---- trees ---- */

/* Loads the tree of a parser that has its input, reads it, and deletes both. */
static enum hearth_status read_tree(yaml_parser_t *parser, struct hearth_yaml *reading,
                                    hearth_yaml_member_fn *take, void *context)
{
    bool is_loaded = yaml_parser_load(parser, &reading->document) != 0;

    if (!is_loaded) {
        const char *problem = parser->problem != NULL ? parser->problem : "this is not YAML";
        bool may_be_tab = strcmp(problem, "found character that cannot start any token") == 0;
        enum hearth_status failed = HEARTH_FAIL(
            reading->err, HEARTH_INVALID_ARGUMENT, "line %zu: %s%s", parser->problem_mark.line + 1,
            problem, may_be_tab ? "; lines are indented by blanks, not by tabs" : "");
        yaml_parser_delete(parser);
        return failed;
    }
    yaml_parser_delete(parser);

    const yaml_node_t *root = yaml_document_get_root_node(&reading->document);
    enum hearth_status status;
    if (root == NULL) {
        status = HEARTH_FAIL(reading->err, HEARTH_INVALID_ARGUMENT, "line 1: the file is empty");
    } else {
        status = hearth_yaml_mapping(reading, root, take, context);
    }
    yaml_document_delete(&reading->document);

    return status;
}

enum hearth_status hearth_yaml_read_file(FILE *file, struct hearth_arena *arena,
                                         hearth_yaml_member_fn *take, void *context,
                                         struct hearth_err *err)
{
    struct hearth_yaml reading = {.arena = arena, .err = err};
    yaml_parser_t parser;

    if (yaml_parser_initialize(&parser) == 0) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate a parser");
    }
    yaml_parser_set_input_file(&parser, file);

    return read_tree(&parser, &reading, take, context);
}

enum hearth_status hearth_yaml_read_text(struct hearth_str text, struct hearth_arena *arena,
                                         hearth_yaml_member_fn *take, void *context,
                                         struct hearth_err *err)
{
    struct hearth_yaml reading = {.arena = arena, .err = err};
    yaml_parser_t parser;

    if (yaml_parser_initialize(&parser) == 0) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate a parser");
    }
    yaml_parser_set_input_string(&parser, (const unsigned char *)text.p, text.n);

    return read_tree(&parser, &reading, take, context);
}
