/* fuzz_json_fields.c -- any bytes as the JSON of a sampled request: paths and texts are UTF-8, or there is a reason. */
#include "hearth/codec/json_fields.h"

#include "short_memory.h"

static void run_input(const uint8_t *data, size_t size)
{
    struct hearth_arena arena;
    struct hearth_json_field *fields;
    struct hearth_err err = HEARTH_ERR_INIT;
    size_t n;
    begin_memory(&arena);
    struct hearth_str json = {(const char *)data, size};
    if (hearth_json_fields_read(json, &arena, &fields, &n, &err) == HEARTH_OK) {
        for (size_t i = 0; i < n; i++) {
            HEARTH_ASSERT(fields[i].path.p != NULL && hearth_str_utf8_valid(fields[i].path));
            HEARTH_ASSERT(fields[i].kind != HEARTH_JSON_TEXT ||
                          hearth_str_utf8_valid(fields[i].text));
        }
        (void)hearth_json_field_find(fields, n, "client_process.local", HEARTH_JSON_BOOL);
    } else {
        HEARTH_ASSERT(err.msg[0] != '\0');
    }
    end_memory(&arena);
}
