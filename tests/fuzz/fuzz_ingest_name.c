/*
 * fuzz_ingest_name.c -- any bytes as the name of an upload: what is read keeps the rules, and what was
 * read and written again reads the same. Its labels units, aggregationType and format are taken for
 * the parameters of these names, content_type for the header: there is a type, or a message.
 */
#include "hearth/base/buf.h"
#include "hearth/format/ingest_name.h"
#include "hearth/format/ingest_types.h"

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

static struct hearth_str find_value(const struct hearth_ingest_name *name, const char *label)
{
    for (size_t i = 0; i < name->n_labels; i++) {
        if (hearth_str_eq_c(name->labels[i].name, label)) {
            return name->labels[i].value;
        }
    }

    return HEARTH_STR("");
}

static void check_type(const struct hearth_ingest_name *name)
{
    enum hearth_ingest_format format =
        hearth_ingest_format_of(find_value(name, "format"), find_value(name, "content_type"));
    HEARTH_ASSERT(format <= HEARTH_INGEST_FILE);

    const struct hearth_ingest_values values = {find_value(name, "units"),
                                                find_value(name, "aggregationType"), 100};
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_ingest_type type;
    struct hearth_str service;

    if (hearth_ingest_type_find(name->app, &values, &type, &service, &err) == HEARTH_OK) {
        HEARTH_ASSERT(type.name[0] != '\0' && type.type[0] != '\0' && type.factor >= 0);
        HEARTH_ASSERT(service.n <= name->app.n);
    } else {
        HEARTH_ASSERT(err.msg[0] != '\0');
    }
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
        check_type(&name);
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
