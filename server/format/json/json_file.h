/* json_file.h -- which profile a JSON text is (private to this layer). */
#ifndef HEARTH_FORMAT_JSON_FILE_H
#define HEARTH_FORMAT_JSON_FILE_H

#include "hearth/base/str.h"

enum json_file_kind {
    JSON_FILE_UNKNOWN, /* no JSON, or none of these */
    JSON_FILE_SPEEDSCOPE,
    JSON_FILE_CPU_PROFILE,  /* of V8 */
    JSON_FILE_HEAP_PROFILE, /* of V8 */
};

/*
 * Decides by the keys of the outermost object: the text is read up to the first key that only one
 * of the formats has, and its rest may be damaged.
 */
enum json_file_kind hearth_json_file_kind(struct hearth_str text);

#endif
