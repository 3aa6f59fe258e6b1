/*
 * fuzz_multipart.c -- a line of Content-Type, then a body: what is found lies within the body, and a
 * file's bytes hold no delimiter.
 */
#include "hearth/format/multipart.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool lies_within(struct hearth_str part, struct hearth_str whole)
{
    return part.p >= whole.p && part.n <= whole.n && (size_t)(part.p - whole.p) <= whole.n - part.n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct hearth_multipart form;
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_str all = {(const char *)data, size};
    size_t line = hearth_str_find(all, '\n', 0);
    struct hearth_str type = {all.p, line};
    struct hearth_str body = {all.p + line, all.n - line};
    if (body.n > 0) {
        body = hearth_str_n(body.p + 1, body.n - 1);
    }
    if (hearth_multipart_parse(type, body, &form, &err) != HEARTH_OK) {
        HEARTH_ASSERT(err.status == HEARTH_INVALID_ARGUMENT && err.msg[0] != '\0');
        return 0;
    }
    HEARTH_ASSERT(form.n_files + form.n_fields <= HEARTH_MULTIPART_MAX_PARTS);
    for (size_t i = 0; i < form.n_fields; i++) {
        HEARTH_ASSERT(lies_within(form.fields[i].value, body));
        HEARTH_ASSERT(form.fields[i].name.n == 0 || lies_within(form.fields[i].name, body));
    }
    for (size_t i = 0; i < form.n_files; i++) {
        HEARTH_ASSERT(lies_within(form.files[i].body, body));
        HEARTH_ASSERT(form.files[i].name.n == 0 || lies_within(form.files[i].name, body));
        HEARTH_ASSERT(form.files[i].filename.n > 0 && lies_within(form.files[i].filename, body));
        HEARTH_ASSERT(i == 0 || form.files[i].body.p > form.files[i - 1].body.p);
    }
    return 0;
}
