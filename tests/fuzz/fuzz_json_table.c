/* fuzz_json_table.c -- any bytes as a sample_type_config: texts are UTF-8, and a name comes out. */
#include "hearth/format/ingest_types.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct hearth_str strings[] = {{"", 0}, {"samples", 7}, {"cpu", 3}};
    static struct hearth_value_type types[] = {{1, 0}, {2, 0}};
    const struct hearth_profile profile = {
        .strings = strings, .n_strings = 3, .types = types, .n_types = 2};
    struct hearth_arena arena;
    struct hearth_json_cell *cells;
    struct hearth_err err = HEARTH_ERR_INIT;
    size_t n;
    hearth_arena_init(&arena, 1u << 20);
    struct hearth_str json = {(const char *)data, size};
    if (hearth_json_table_read(json, &arena, &cells, &n, &err) == HEARTH_OK) {
        for (size_t i = 0; i < n; i++) {
            HEARTH_ASSERT(hearth_str_utf8_valid(cells[i].row));
            HEARTH_ASSERT(hearth_str_utf8_valid(cells[i].column));
            HEARTH_ASSERT(hearth_str_utf8_valid(cells[i].text));
        }
        HEARTH_ASSERT(hearth_ingest_pprof_name(&profile, cells, n).n > 0);
    } else {
        HEARTH_ASSERT(err.msg[0] != '\0');
    }
    hearth_arena_release(&arena);
    return 0;
}
