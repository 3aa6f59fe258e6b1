/*
 * fuzz_json_reader.c -- any bytes as JSON: a walk over all values ends where skipping ends, and
 * faults where it faults, but for numbers and escapes, which only the walk looks into.
 */
#include "hearth/codec/json_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Reads a scalar, or enters a container. */
static void read_value(struct hearth_json_reader *r, struct hearth_arena *arena)
{
    struct hearth_json_reader again = *r;

    switch (hearth_json_reader_peek(r)) {
    case '{':
        hearth_json_reader_object(r);
        break;
    case '[':
        hearth_json_reader_array(r);
        break;
    case '"':
        (void)hearth_json_reader_text(r, arena);
        break;
    case '0':
        (void)hearth_json_reader_i64(&again);
        (void)hearth_json_reader_scaled(r, 1000000000);
        HEARTH_ASSERT(hearth_json_reader_failed(&again) || !hearth_json_reader_failed(r) ||
                      again.at == r->at);
        break;
    default:
        hearth_json_reader_skip(r);
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hearth_json_reader walk, skip;
    struct hearth_arena arena;
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_str key;

    hearth_arena_init(&arena, 8u << 20);
    hearth_json_reader_init(&walk, hearth_str_n((const char *)data, size));
    skip = walk;
    hearth_json_reader_skip(&skip);

    read_value(&walk, &arena);
    while (!hearth_json_reader_failed(&walk) && walk.depth > 0) {
        if (hearth_json_reader_is_in_object(&walk) ? hearth_json_reader_member(&walk, &key)
                                                   : hearth_json_reader_element(&walk)) {
            read_value(&walk, &arena);
        }
    }

    HEARTH_ASSERT(walk.at <= size && skip.at <= size);
    HEARTH_ASSERT(hearth_json_reader_failed(&walk) ||
                  (!hearth_json_reader_failed(&skip) && skip.at == walk.at));
    if (hearth_json_reader_end(&skip, &err) != HEARTH_OK) {
        HEARTH_ASSERT(err.msg[0] != '\0' && hearth_json_reader_end(&walk, &err) != HEARTH_OK);
    }
    hearth_arena_release(&arena);

    return 0;
}
