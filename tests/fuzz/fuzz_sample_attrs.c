/*
 * fuzz_sample_attrs.c -- hostile attributes of samples: read without a crash, and by column the same as by sample.
 *
 * Input: the stored column.
 */
#include "hearth/model/sample_attrs.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
    if (!ok) {
        abort();
    }
}

static void compare(const struct hearth_attr_columns *columns,
                    const struct hearth_attr_sample *samples, size_t n, uint32_t k)
{
    require(columns->n == n);
    for (size_t i = 0; i < n; i++) {
        const struct hearth_attr_column *spans = &columns->of[HEARTH_ATTR_SPAN_ID];
        const struct hearth_attr_column *names = &columns->of[HEARTH_ATTR_SPAN_NAME];
        struct hearth_attr_value span = {0}, name = {0};
        if (spans->values != NULL && spans->index[i] != 0) {
            span = spans->values[spans->index[i] - 1];
        }
        if (names->values != NULL && names->index[i] != 0) {
            name = names->values[names->index[i] - 1];
        }
        require(columns->stack_ids[i] == samples[i].stack_id);
        require(columns->values[i] == samples[i].values[k]);
        require(span.lo == samples[i].attrs.span_id);
        require(hearth_str_eq(name.text, samples[i].attrs.span_name));
    }
}

/* Samples that are encoded again are decoded as the same. */
static void encode_again(const struct hearth_attr_sample *samples, size_t n, uint32_t n_types,
                         struct hearth_arena *arena)
{
    struct hearth_attr_sample *again = NULL;
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_str bytes;
    size_t n_again;
    uint32_t n_types_again;

    if (hearth_sample_attrs_encode(samples, n, n_types, arena, &bytes, &err) != HEARTH_OK ||
        n == 0) {
        return;
    }
    enum hearth_status status =
        hearth_sample_attrs_decode(bytes, arena, &again, &n_again, &n_types_again, &err);
    if (status != HEARTH_NO_MEMORY) {
        require(status == HEARTH_OK && n_again == n && n_types_again == n_types);
        for (size_t i = 0; i < n; i++) {
            require(again[i].stack_id == samples[i].stack_id);
            require(hearth_sample_attrs_eq(&again[i].attrs, &samples[i].attrs));
            require(hearth_sample_attrs_empty(&again[i].attrs) ==
                    hearth_sample_attrs_empty(&samples[i].attrs));
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hearth_arena arena;
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_attr_sample *samples = NULL;
    struct hearth_attr_columns columns;
    size_t n = 0;
    uint32_t n_types = 0;
    char *copy = malloc(size == 0 ? 1 : size);
    require(copy != NULL);
    if (size > 0) {
        memcpy(copy, data, size);
    }
    struct hearth_str bytes = hearth_str_n(copy, size);
    hearth_arena_init(&arena, 64 << 20);
    enum hearth_status status =
        hearth_sample_attrs_decode(bytes, &arena, &samples, &n, &n_types, &err);
    require(status == HEARTH_OK || status == HEARTH_CORRUPT || status == HEARTH_NO_MEMORY);
    uint32_t k = n_types > 0 ? n_types - 1 : 0;
    const struct hearth_attr_wish wish = {
        .attrs = 1u << HEARTH_ATTR_SPAN_ID | 1u << HEARTH_ATTR_SPAN_NAME,
        .column = k,
        .stacks = true,
    };
    enum hearth_status by_column =
        hearth_sample_attrs_columns(bytes, &wish, &arena, &columns, &err);
    require(by_column == HEARTH_OK || by_column == HEARTH_CORRUPT || by_column == HEARTH_NO_MEMORY);
    bool has_last = false; /* of stacks: no dictionary has so many */
    for (size_t i = 0; status == HEARTH_OK && i < n; i++) {
        has_last = has_last || samples[i].stack_id == UINT32_MAX;
    }
    if (status == HEARTH_OK && n > 0 && n_types > 0 && !has_last && by_column != HEARTH_NO_MEMORY) {
        require(by_column == HEARTH_OK);
        compare(&columns, samples, n, k);
    }
    if (status == HEARTH_OK) {
        encode_again(samples, n, n_types, &arena);
    }
    hearth_arena_release(&arena);
    free(copy);
    return 0;
}
