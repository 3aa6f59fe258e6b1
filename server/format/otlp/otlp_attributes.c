/*
 * otlp_attributes.c -- values, attributes and the labels made of them.
 *
 * A text stands in its message or in the table of strings, by index. Senders that encode a message
 * again may fill both; the literal text then counts. Values nest, but only scalars and arrays of
 * one scalar are used, so nothing here is recursive.
 */
#include "otlp/otlp_scan.h"
#include "pprof/pprof_text.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>

/* Field numbers of AnyValue. */
enum {
    VALUE_STRING = 1,
    VALUE_BOOL,
    VALUE_INT,
    VALUE_DOUBLE,
    VALUE_ARRAY,
    VALUE_MAP,
    VALUE_BYTES,
    VALUE_STRINDEX,
};

/* The text at an index; INVALID_ARGUMENT beyond the table. */
static enum hearth_status find_string(const struct otlp_scan *s, uint64_t idx,
                                      struct hearth_str *ret)
{
    if (idx >= s->dictionary.n_strings) {
        return HEARTH_FAIL(s->err, HEARTH_INVALID_ARGUMENT,
                           "an attribute refers to string %lld; the string_table has %u",
                           (long long)idx, s->dictionary.n_strings);
    }

    *ret = s->dictionary.strings[idx];

    return HEARTH_OK;
}

static enum hearth_status mend_literal(struct otlp_scan *s, struct hearth_str *text)
{
    return hearth_pprof_mend_text(text, 0, s->arena, &s->out->notes)
               ? HEARTH_OK
               : HEARTH_FAIL_ARENA(s->err, s->arena);
}

/* In the fewest digits that are read back as the same number: 0.1, not 0.10000000000000001. */
static enum hearth_status print_double(struct otlp_scan *s, uint64_t bits, struct otlp_value *ret)
{
    double number;
    char text[32];

    memcpy(&number, &bits, sizeof number);
    for (int n_digits = DBL_DIG; n_digits <= DBL_DECIMAL_DIG; n_digits++) {
        (void)snprintf(text, sizeof text, "%.*g", n_digits, number);
        if (strtod(text, NULL) == number) {
            break;
        }
    }

    char *copy = hearth_arena_strndup(s->arena, text, strlen(text));
    if (copy == NULL) {
        return HEARTH_FAIL_ARENA(s->err, s->arena);
    }

    *ret = (struct otlp_value){.kind = OTLP_TEXT, .text = hearth_str_c(copy)};

    return HEARTH_OK;
}

static enum hearth_status print_integer(struct otlp_scan *s, uint64_t bits, struct otlp_value *ret)
{
    char *text = hearth_arena_printf(s->arena, "%lld", (long long)bits);
    if (text == NULL) {
        return HEARTH_FAIL_ARENA(s->err, s->arena);
    }

    *ret = (struct otlp_value){OTLP_NUMBER, hearth_str_c(text), (int64_t)bits};

    return HEARTH_OK;
}

static enum hearth_status read_string(struct otlp_scan *s, struct pprof_cursor text,
                                      struct otlp_value *ret)
{
    *ret = (struct otlp_value){.kind = OTLP_TEXT, .text = otlp_view(text)};
    return mend_literal(s, &ret->text);
}

/* Reads the field whose tag was just read. An array is returned as *ret_array. */
static enum hearth_status read_value_field(struct otlp_scan *s, struct pprof_cursor *c,
                                           uint64_t tag, struct pprof_cursor *ret_array,
                                           struct otlp_value *ret)
{
    struct pprof_cursor payload;
    uint64_t number;
    bool flag;

    if (tag == PPROF_LEN(VALUE_STRING) && pprof_payload(c, &payload)) {
        return read_string(s, payload, ret);
    }
    if (tag == PPROF_INT(VALUE_BOOL) && pprof_bool(c, &flag)) {
        *ret = (struct otlp_value){OTLP_TEXT, hearth_str_c(flag ? "true" : "false"), 0};
    } else if (tag == PPROF_INT(VALUE_INT) && pprof_int(c, &number)) {
        return print_integer(s, number, ret);
    } else if (tag == OTLP_FIXED64(VALUE_DOUBLE) && otlp_fixed64(c, &number)) {
        return print_double(s, number, ret);
    } else if (tag == PPROF_INT(VALUE_STRINDEX) && pprof_int(c, &number)) {
        ret->kind = OTLP_TEXT;
        return find_string(s, number, &ret->text);
    } else if (tag == PPROF_LEN(VALUE_ARRAY) && pprof_payload(c, &payload)) {
        ret->kind = OTLP_COMPLEX;
        *ret_array = payload;
    } else if ((tag == PPROF_LEN(VALUE_MAP) || tag == PPROF_LEN(VALUE_BYTES)) &&
               pprof_payload(c, &payload)) {
        ret->kind = OTLP_COMPLEX;
    } else if (c->why == NULL) {
        *c = hearth_pprof_skip(*c, tag, VALUE_STRINDEX);
    }

    return HEARTH_OK;
}

/* Reads a value whose members other than scalars stay COMPLEX. */
static enum hearth_status read_flat_value(struct otlp_scan *s, struct pprof_cursor c,
                                          struct pprof_cursor *ret_array, struct otlp_value *ret)
{
    uint64_t tag;

    *ret = (struct otlp_value){0};
    while (pprof_next(&c, &tag)) {
        HEARTH_TRY(read_value_field(s, &c, tag, ret_array, ret));
        if (c.why != NULL) {
            break;
        }
    }

    return c.why == NULL ? HEARTH_OK : hearth_otlp_damaged(s, "the value of an attribute", c);
}

/* Reads an AnyValue. INVALID_ARGUMENT for damage and an index beyond the strings. */
static enum hearth_status read_any_value(struct otlp_scan *s, struct pprof_cursor c,
                                         struct otlp_value *ret)
{
    struct pprof_cursor array = {0}, element = {0}, ignored = {0};
    uint64_t tag;
    size_t n = 0;

    HEARTH_TRY(read_flat_value(s, c, &array, ret));
    if (ret->kind != OTLP_COMPLEX || array.p == NULL) {
        return HEARTH_OK;
    }

    /* An array: its only element, if that is a scalar. */
    while (array.why == NULL && n < 2 && pprof_next(&array, &tag)) {
        if (tag == PPROF_LEN(1) && pprof_payload(&array, &element)) {
            n++;
        } else if (array.why == NULL) {
            array = hearth_pprof_skip(array, tag, 1);
        }
    }

    if (array.why != NULL) {
        return hearth_otlp_damaged(s, "an array of an attribute", array);
    }

    return n == 1 ? read_flat_value(s, element, &ignored, ret) : HEARTH_OK;
}

enum hearth_status hearth_otlp_read_attribute(struct otlp_scan *s, struct pprof_cursor c,
                                              bool is_indexed, struct otlp_attribute *ret)
{
    const uint32_t key_index = is_indexed ? 1 : 3;
    struct pprof_cursor payload;
    struct hearth_str indexed = {0};
    uint64_t tag, idx;

    *ret = (struct otlp_attribute){0};
    while (pprof_next(&c, &tag)) {
        if (!is_indexed && tag == PPROF_LEN(1) && pprof_payload(&c, &payload)) {
            ret->key = otlp_view(payload);
        } else if (tag == PPROF_LEN(2) && pprof_payload(&c, &payload)) {
            HEARTH_TRY(read_any_value(s, payload, &ret->value));
        } else if (tag == PPROF_INT(key_index) && pprof_int(&c, &idx)) {
            HEARTH_TRY(find_string(s, idx, &indexed));
        } else if (c.why == NULL) { /* the unit of an indexed attribute, too */
            c = hearth_pprof_skip(c, tag, 2);
        }
        if (c.why != NULL) {
            return hearth_otlp_damaged(s, "an attribute", c);
        }
    }

    if (ret->key.n == 0) {
        ret->key = indexed;
        return HEARTH_OK;
    }

    return mend_literal(s, &ret->key);
}

/* ---- labels ---- */

static bool is_too_long(size_t n, uint32_t limit)
{
    return limit > 0 && n > limit;
}

void hearth_otlp_add_label(struct otlp_scan *s, struct otlp_labels *labels,
                           const struct otlp_attribute *attribute)
{
    const struct otlp_value *value = &attribute->value;
    struct hearth_str key = attribute->key;

    /* The service is not a label of its own. */
    assert(labels->n <= HEARTH_OTLP_MAX_LABELS);
    if (hearth_str_eq_c(key, OTLP_SERVICE_NAME)) {
        labels->service = labels->service.n == 0 ? value->text : labels->service;
        return;
    }
    if (hearth_str_eq_c(key, OTLP_EXECUTABLE_NAME) && labels->executable.n == 0) {
        labels->executable = value->text;
    }

    if (value->kind == OTLP_COMPLEX) {
        s->out->n_complex++;
        return;
    }
    if (key.n == 0 || value->text.n == 0) {
        return;
    }
    if (hearth_str_eq_c(key, "service_name") || hearth_str_starts(key, HEARTH_STR("__"))) {
        s->out->n_reserved++;
        return;
    }

    if (is_too_long(key.n, s->options->max_label_name_bytes) ||
        is_too_long(value->text.n, s->options->max_label_value_bytes)) {
        s->out->n_long++;
        return;
    }

    /* The first attribute of a name wins. */
    for (size_t i = 0; i < labels->n; i++) {
        if (hearth_str_eq(labels->v[i].name, key)) {
            return;
        }
    }

    if (labels->n == HEARTH_OTLP_MAX_LABELS) {
        labels->is_full = true;
        return;
    }

    labels->v[labels->n++] = (struct hearth_label){key, value->text};
}

enum hearth_status hearth_otlp_add_labels(struct otlp_scan *s, struct pprof_cursor message,
                                          uint32_t field, struct otlp_labels *labels)
{
    struct pprof_cursor payload;
    struct otlp_attribute attribute;
    uint64_t tag;

    assert(labels->v != NULL);
    while (pprof_next(&message, &tag)) {
        if (tag == PPROF_LEN(field) && pprof_payload(&message, &payload)) {
            HEARTH_TRY(hearth_otlp_read_attribute(s, payload, false, &attribute));
            hearth_otlp_add_label(s, labels, &attribute);
        } else if (message.why == NULL) {
            message = hearth_pprof_skip(message, tag, 0);
        }
        if (message.why != NULL) {
            return hearth_otlp_damaged(s, "a resource or scope", message);
        }
    }

    return HEARTH_OK;
}

void hearth_otlp_begin_labels(const struct otlp_scan *s, struct otlp_labels *labels)
{
    if (labels->n > 0 && labels->v != s->gathered) {
        memcpy(s->gathered, labels->v, labels->n * sizeof *labels->v);
    }
    labels->v = s->gathered;
}

enum hearth_status hearth_otlp_end_labels(const struct otlp_scan *s, struct otlp_labels *labels)
{
    struct hearth_label *copy = hearth_arena_array(s->arena, labels->n, sizeof *copy);
    if (copy == NULL) {
        return HEARTH_FAIL_ARENA(s->err, s->arena);
    }

    if (labels->n > 0) {
        memcpy(copy, labels->v, labels->n * sizeof *copy);
    }
    labels->v = copy;

    return HEARTH_OK;
}
