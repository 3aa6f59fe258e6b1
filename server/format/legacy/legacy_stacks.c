/*
 * legacy_stacks.c -- stacks: the addresses of a sample, or the functions that Go writes below it:
 *
 *     3 @ 0x47de8e 0x4158ee
 *     # labels: {"job":"x"}
 *     #	0x4dd1f8	main.wait+0x18	/src/main.go:26
 */
#include "legacy/legacy_reader.h"
#include "text/named_frame.h"

#define MAX_STACK 65536u /* addresses and functions of one sample */

static enum hearth_status push_legacy_location(struct legacy_reader *r, uint32_t location,
                                               struct hearth_err *err)
{
    size_t n = r->n_addresses + r->n_functions;

    if (n == MAX_STACK) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "line %llu: the stack has more than %u addresses and functions",
                           (unsigned long long)r->line_no, MAX_STACK);
    }
    if (location == HEARTH_NO_INDEX ||
        !hearth_arena_grow(r->arena, &r->stack, &r->cap_stack, n + 1, sizeof *r->stack)) {
        return HEARTH_FAIL_ARENA(err, r->arena);
    }
    r->stack[n] = location;

    return HEARTH_OK;
}

static uint32_t make_address_location(struct legacy_reader *r, uint64_t address)
{
    const struct hearth_location location = {
        .mapping = hearth_legacy_find_mapping(r, address),
        .address = address,
    };

    return hearth_profile_builder_location(r->builder, &location, NULL, 0);
}

enum hearth_status hearth_legacy_add_address(struct legacy_reader *r, uint64_t address,
                                             struct hearth_err *err)
{
    HEARTH_TRY(push_legacy_location(r, make_address_location(r, address), err));
    r->n_addresses++;

    return HEARTH_OK;
}

enum hearth_status hearth_legacy_add_addresses(struct legacy_reader *r, struct hearth_str rest,
                                               struct hearth_err *err)
{
    struct hearth_str left = rest;
    uint64_t address;

    while (left.n > 0) {
        if (!hearth_str_starts(left, HEARTH_STR("0x")) ||
            !hearth_legacy_take_hex(&left, &address)) {
            return hearth_legacy_fail_line(r, rest, "list of addresses", err);
        }

        /* Go pads stacks with null. An address of return is one byte after the call. */
        if (address > 0) {
            HEARTH_TRY(hearth_legacy_add_address(r, address - 1, err));
        }
    }

    return HEARTH_OK;
}

/* ---- functions ---- */

/* The next column, which is removed with the tabs after it. */
static struct hearth_str take_column(struct hearth_str *line)
{
    size_t n = hearth_str_find(*line, '\t', 0);
    struct hearth_str column = {line->p, n};

    *line = hearth_str_trim(hearth_str_n(line->p + n, line->n - n));

    return column;
}

/* Index of the last `c`; s.n if there is none. */
static size_t find_last(struct hearth_str s, char c)
{
    for (size_t i = s.n; i > 0; i--) {
        if (s.p[i - 1] == c) {
            return i - 1;
        }
    }

    return s.n;
}

/* "main.wait+0x18" and "/src/main.go:26" as a location without address. */
static uint32_t make_function_location(struct legacy_reader *r, struct hearth_str function,
                                       struct hearth_str place)
{
    struct hearth_named_frame frame = {.name = function, .filename = place};
    size_t plus = find_last(function, '+'), colon = find_last(place, ':');
    int64_t line;

    if (plus < function.n) {
        frame.name.n = plus;
    }
    if (colon < place.n &&
        hearth_str_to_i64(hearth_str_n(place.p + colon + 1, place.n - colon - 1), &line) &&
        line >= 0) {
        frame.filename.n = colon;
        frame.line = line;
    }

    return hearth_named_location(r->builder, HEARTH_NO_INDEX, &frame, 1);
}

static enum hearth_status read_go_function(struct legacy_reader *r, struct hearth_str line,
                                           struct hearth_err *err)
{
    struct hearth_str column = take_column(&line);
    uint64_t address;

    if (!hearth_legacy_take_hex(&column, &address) || column.n > 0) {
        return HEARTH_OK; /* another comment */
    }

    struct hearth_str function = take_column(&line);
    uint32_t location = function.n > 0 ? make_function_location(r, function, line)
                                       : make_address_location(r, address);
    HEARTH_TRY(push_legacy_location(r, location, err));
    r->n_functions++;
    r->has_names = r->has_names || function.n > 0;

    return HEARTH_OK;
}

/* ---- labels ---- */

/* Writes the text without Go's escapes, which is not longer; SIZE_MAX: an unknown escape. */
static size_t unescape_go_text(struct hearth_str text, char *out)
{
    static const char names[] = "abfnrtv\\\"", values[] = "\a\b\f\n\r\t\v\\\"";
    size_t n = 0;

    for (size_t i = 0; i < text.n;) {
        if (text.p[i] != '\\') {
            out[n++] = text.p[i++];
            continue;
        }

        char c = i + 1 < text.n ? text.p[i + 1] : '\0';
        const char *name = c == '\0' ? NULL : strchr(names, c);
        i += 2;
        if (name != NULL) {
            out[n++] = values[name - names];
            continue;
        }

        /* A byte that is no character, or a character. */
        size_t n_digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
        uint64_t value;
        if (n_digits == 0 || n_digits > text.n - i ||
            !hearth_str_hex_to_u64(hearth_str_n(text.p + i, n_digits), &value) ||
            value > 0x10FFFF) {
            return SIZE_MAX;
        }
        i += n_digits;
        if (c == 'x') {
            out[n++] = (char)(unsigned char)value;
        } else {
            n += hearth_str_utf8_put(out + n, (uint32_t)value);
        }
    }

    return n;
}

/* A text in quotes, which is removed from the line; *ret.p is NULL for other texts. */
static enum hearth_status take_go_text(struct legacy_reader *r, struct hearth_str *line,
                                       struct hearth_str *ret, struct hearth_err *err)
{
    size_t end = 1;

    *ret = hearth_str_n(NULL, 0);
    while (end < line->n && line->p[end] != '"') {
        end += line->p[end] == '\\' ? 2 : 1;
    }
    if (end >= line->n || line->p[0] != '"') {
        return HEARTH_OK;
    }

    char *text = hearth_arena_alloc(r->arena, end);
    if (text == NULL) {
        return HEARTH_FAIL_ARENA(err, r->arena);
    }

    size_t n = unescape_go_text(hearth_str_n(line->p + 1, end - 1), text);
    if (n != SIZE_MAX) {
        *ret = hearth_str_n(text, n);
        *line = hearth_str_trim(hearth_str_n(line->p + end + 1, line->n - end - 1));
    }

    return HEARTH_OK;
}

static enum hearth_status add_go_label(struct legacy_reader *r, struct hearth_str key,
                                       struct hearth_str value, struct hearth_err *err)
{
    if (r->n_labels == LEGACY_MAX_LABELS) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "the sample before line %llu has more than %u labels",
                           (unsigned long long)r->line_no, LEGACY_MAX_LABELS);
    }

    struct hearth_sample_label label = {
        .key = hearth_profile_builder_string(r->builder, key),
        .str = hearth_profile_builder_string(r->builder, value),
    };
    if (label.key == HEARTH_NO_INDEX || label.str == HEARTH_NO_INDEX) {
        return HEARTH_FAIL_ARENA(err, r->arena);
    }
    r->labels[r->n_labels++] = label;

    return HEARTH_OK;
}

/* {"key":"value", "key":"value"} */
static enum hearth_status read_labels(struct legacy_reader *r, struct hearth_str text,
                                      struct hearth_err *err)
{
    struct hearth_str left = text, key, value;
    bool is_open = hearth_legacy_take(&left, "{"), is_closed = hearth_legacy_take(&left, "}");

    while (is_open && !is_closed) {
        HEARTH_TRY(take_go_text(r, &left, &key, err));
        is_open = key.p != NULL && hearth_legacy_take(&left, ":");
        if (!is_open) {
            break;
        }

        HEARTH_TRY(take_go_text(r, &left, &value, err));
        is_closed = hearth_legacy_take(&left, "}");
        is_open = value.p != NULL && (is_closed || hearth_legacy_take(&left, ","));
        if (is_open) {
            HEARTH_TRY(add_go_label(r, key, value, err));
        }
    }

    return is_open && left.n == 0 ? HEARTH_OK
                                  : hearth_legacy_fail_line(r, text, "list of labels", err);
}

enum hearth_status hearth_legacy_read_comment(struct legacy_reader *r, struct hearth_str line,
                                              struct hearth_err *err)
{
    if (!r->is_open || !hearth_legacy_take(&line, "#")) {
        return HEARTH_OK;
    }

    return hearth_legacy_take(&line, "labels:") ? read_labels(r, line, err)
                                                : read_go_function(r, line, err);
}

/* ---- samples ---- */

enum hearth_status hearth_legacy_close_sample(struct legacy_reader *r, struct hearth_err *err)
{
    const struct hearth_named_frame no_stack = {.name = HEARTH_STR("[no stack]")};

    if (!r->is_open) {
        return HEARTH_OK;
    }

    /* Functions, if any has a name; otherwise addresses. */
    const uint32_t *stack = r->has_names ? r->stack + r->n_addresses : r->stack;
    size_t n = r->has_names ? r->n_functions : r->n_addresses;
    uint32_t none;
    if (n == 0) {
        none = hearth_named_location(r->builder, HEARTH_NO_INDEX, &no_stack, 1);
        if (none == HEARTH_NO_INDEX) {
            return HEARTH_FAIL_ARENA(err, r->arena);
        }
        stack = &none;
        n = 1;
    }

    enum hearth_status status = hearth_profile_builder_labelled_sample(
        r->builder, stack, (uint32_t)n, r->labels, r->n_labels, r->values, err);
    r->is_open = r->has_names = false;
    r->n_addresses = r->n_functions = 0;
    r->n_labels = 0;

    return status;
}
