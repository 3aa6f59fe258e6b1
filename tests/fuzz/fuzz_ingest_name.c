/*
 * fuzz_ingest_name.c -- any bytes as the name of an upload: what is read keeps the rules, and what was
 * read and written again reads the same.
 */
#include "hearth/base/buf.h"
#include "hearth/format/ingest_name.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_name(const struct hearth_ingest_name *name, struct hearth_buf *out)
{
    hearth_buf_str(out, name->app);
    hearth_buf_byte(out, '{');
    for (size_t i = 0; i < name->n_labels; i++) {
        hearth_buf_str(out, name->labels[i].name);
        hearth_buf_cstr(out, "=\"");
        hearth_buf_str(out, name->labels[i].value);
        hearth_buf_cstr(out, "\",");
    }
    hearth_buf_byte(out, '}');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hearth_arena arena;
    struct hearth_ingest_name name, again;
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_buf out;
    hearth_arena_init(&arena, 1u << 20);
    hearth_buf_init(&out, 0);
    struct hearth_str text = {(const char *)data, size};
    if (hearth_ingest_name_parse(text, &arena, &name, &err) == HEARTH_OK) {
        HEARTH_ASSERT(name.app.n > 0 && name.n_labels <= HEARTH_INGEST_NAME_MAX_LABELS);
        write_name(&name, &out);
        HEARTH_ASSERT(hearth_ingest_name_parse(hearth_buf_view(&out), &arena, &again, &err) ==
                      HEARTH_OK);
        HEARTH_ASSERT(hearth_str_eq(name.app, again.app) && name.n_labels == again.n_labels);
        for (size_t i = 0; i < name.n_labels; i++) {
            HEARTH_ASSERT(name.labels[i].name.n > 0);
            HEARTH_ASSERT(hearth_str_eq(name.labels[i].name, again.labels[i].name));
            HEARTH_ASSERT(hearth_str_eq(name.labels[i].value, again.labels[i].value));
        }
    } else {
        HEARTH_ASSERT(err.msg[0] != '\0');
    }
    hearth_buf_release(&out);
    hearth_arena_release(&arena);
    return 0;
}
