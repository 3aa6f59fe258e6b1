/*
 * json_pick.h -- reads chosen members of a large JSON object: their texts, or the texts of an
 * array.
 *
 * A path names members from the outermost object, separated by dots: "info.application.service".
 * Members whose names contain dots cannot be picked. All other members are skipped, but they must
 * be valid JSON.
 *
 * Limits:    HEARTH_JSON_PICK_BYTES of JSON, 16 levels, 16 MiB of memory while parsing.
 * Ownership: texts are copies in the arena.
 * Threads:   pure.
 * Errors:    INVALID_ARGUMENT (not JSON, not an object, too long, too large while parsing, a picked
 *            member of another type), NO_MEMORY.
 */
#ifndef HEARTH_CODEC_JSON_PICK_H
#define HEARTH_CODEC_JSON_PICK_H

#include "hearth/base/arena.h"

#define HEARTH_JSON_PICK_BYTES (1u << 20)

struct hearth_json_pick {
    const char *path;
    bool is_array;            /* an array of strings is expected; otherwise a string */
    struct hearth_str text;   /* out: UTF-8 without NUL; p is NULL if there is no such member */
    struct hearth_str *items; /* out: the strings of an array */
    size_t n_items;
};

/* null counts as a missing member. Elements of an array that are not strings are ignored. */
HEARTH_MUST_CHECK
enum hearth_status hearth_json_pick(struct hearth_str json, struct hearth_json_pick *picks,
                                    size_t n, struct hearth_arena *arena, struct hearth_err *err);

#endif
