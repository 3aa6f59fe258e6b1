/*
 * ingest_name.h -- the name of an upload to /ingest: app{key=value,key2="value2"}.
 *
 *     name = app [ "{" [ pair ] { "," [ pair ] } [ "}" rest ] ]     pair = key [ "=" value ]
 *
 * app: letters, digits and "_.-/", not empty. key: letters, digits, "_" and ".", not empty; without
 * "=" its value is empty. value: any bytes except "," and "}"; one pair of double quotes around it
 * is removed, and there are no escapes. Blanks around each part are ignored. If a key is repeated,
 * its last value is used. Text after "}" is ignored. The name must be UTF-8 without NUL.
 *
 * Limits:    HEARTH_INGEST_NAME_MAX_LABELS pairs.
 * Ownership: texts borrow from `text`; the array is in the arena.
 * Threads:   pure.
 * Errors:    INVALID_ARGUMENT, naming the invalid part; NO_MEMORY.
 * Source:    docs/reference/api-push.md, "Ingest".
 */
#ifndef HEARTH_FORMAT_INGEST_NAME_H
#define HEARTH_FORMAT_INGEST_NAME_H

#include "hearth/model/labels.h"

#define HEARTH_INGEST_NAME_MAX_LABELS 256u

struct hearth_ingest_name {
    struct hearth_str app;
    struct hearth_label *labels; /* in order of first appearance; names are distinct */
    size_t n_labels;
};

HEARTH_MUST_CHECK
enum hearth_status hearth_ingest_name_parse(struct hearth_str text, struct hearth_arena *arena,
                                            struct hearth_ingest_name *ret, struct hearth_err *err);

#endif
