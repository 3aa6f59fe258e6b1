/*
 * yaml_reader.h -- reads values of a YAML tree that libyaml makes; a mistake is an error with its
 * line.
 *
 * Limits:    the nesting is libyaml's, 1,000; the caller limits the text.
 * Ownership: texts are copied to the arena.
 * Threads:   pure.
 * Errors:    INVALID_ARGUMENT, "line N: ..."; NO_MEMORY.
 * Source:    YAML 1.1 by libyaml; aliases are not expanded.
 */
#ifndef HEARTH_CODEC_YAML_READER_H
#define HEARTH_CODEC_YAML_READER_H

#include "hearth/base/arena.h"
#include "hearth/base/secret.h"
#include "hearth/base/status.h"

#include <stdio.h>
#include <yaml.h>

/* A tree, and where its texts and errors are written. */
struct hearth_yaml {
    yaml_document_t document;
    struct hearth_arena *arena;
    struct hearth_err *err;
    int key_line;    /* of the member that is given to a hearth_yaml_member_fn */
    bool may_repeat; /* set by a hearth_yaml_member_fn that itself refuses repeated keys */
};

/* The text of a scalar, in the tree; empty for other nodes. */
struct hearth_str hearth_yaml_text(const yaml_node_t *node);
int hearth_yaml_line(const yaml_node_t *node);
/* A node by its number, which comes from the tree. */
yaml_node_t *hearth_yaml_node(struct hearth_yaml *reading, int id);

/* Reads the value of a member; sets *ret_known to false for a key that it does not know. */
typedef enum hearth_status hearth_yaml_member_fn(struct hearth_yaml *reading, void *context,
                                                 struct hearth_str key, const yaml_node_t *value,
                                                 bool *ret_known);
/* Give each member of a mapping to `take`. An unknown key is an error, and so is a repeated one,
 * because one of its values would be ignored. Each key is compared with all before it: `take`
 * limits their number. */
HEARTH_MUST_CHECK
enum hearth_status hearth_yaml_mapping(struct hearth_yaml *reading, const yaml_node_t *node,
                                       hearth_yaml_member_fn *take, void *context);

/* Give each member of the mapping that a file or a text is to `take`. The tree is deleted
 * afterwards. */
HEARTH_MUST_CHECK
enum hearth_status hearth_yaml_read_file(FILE *file, struct hearth_arena *arena,
                                         hearth_yaml_member_fn *take, void *context,
                                         struct hearth_err *err);
HEARTH_MUST_CHECK
enum hearth_status hearth_yaml_read_text(struct hearth_str text, struct hearth_arena *arena,
                                         hearth_yaml_member_fn *take, void *context,
                                         struct hearth_err *err);

typedef enum hearth_status hearth_yaml_item_fn(struct hearth_yaml *reading, void *context,
                                               const yaml_node_t *item, size_t index);
/* Give each item of a list to `take`; fails if there are more than max. */
HEARTH_MUST_CHECK
enum hearth_status hearth_yaml_list(struct hearth_yaml *reading, const yaml_node_t *node,
                                    size_t max, hearth_yaml_item_fn *take, void *context);
/* Number of items of a list; 0 for other nodes. */
size_t hearth_yaml_count(const yaml_node_t *node);

/* Whether a value is absent: empty, null or ~, without quotes. */
bool hearth_yaml_is_null(const yaml_node_t *node);
/* A text that is not empty, NUL-terminated, in the arena. */
HEARTH_MUST_CHECK
enum hearth_status hearth_yaml_string(struct hearth_yaml *reading, const yaml_node_t *node,
                                      const char **ret);
/* A secret, which the caller frees; its text in the tree is overwritten. */
HEARTH_MUST_CHECK
enum hearth_status hearth_yaml_secret(struct hearth_yaml *reading, const yaml_node_t *node,
                                      struct hearth_secret **ret);
/* true or false. */
HEARTH_MUST_CHECK
enum hearth_status hearth_yaml_switch(struct hearth_yaml *reading, const yaml_node_t *node,
                                      bool *ret);
#endif
