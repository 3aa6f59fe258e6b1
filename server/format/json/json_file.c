/* json_file.c -- recognises profiles by their keys. */
#include "json/json_file.h"

#include "hearth/codec/json_reader.h"

static enum json_file_kind find_key_kind(struct hearth_str key)
{
    static const struct {
        const char *key;
        enum json_file_kind kind;
    } keys[] = {
        {"shared", JSON_FILE_SPEEDSCOPE},
        {"nodes", JSON_FILE_CPU_PROFILE},
        {"timeDeltas", JSON_FILE_CPU_PROFILE},
        {"head", JSON_FILE_HEAP_PROFILE},
    };

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(keys); i++) {
        if (hearth_str_eq_c(key, keys[i].key)) {
            return keys[i].kind;
        }
    }

    return JSON_FILE_UNKNOWN;
}

enum json_file_kind hearth_json_file_kind(struct hearth_str text)
{
    struct hearth_json_reader r;
    struct hearth_str key;

    hearth_json_reader_init(&r, text);
    if (hearth_json_reader_peek(&r) != '{') {
        return JSON_FILE_UNKNOWN;
    }

    hearth_json_reader_object(&r);
    while (hearth_json_reader_member(&r, &key)) {
        enum json_file_kind kind = find_key_kind(key);
        if (kind != JSON_FILE_UNKNOWN) {
            return kind;
        }
        hearth_json_reader_skip(&r);
    }

    return JSON_FILE_UNKNOWN;
}
