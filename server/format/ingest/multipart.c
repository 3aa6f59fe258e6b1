/*
 * multipart.c -- splits a body at its delimiters.
 *
 * A delimiter is a line that begins with "--boundary"; the line end before it belongs to it. Each
 * byte is read once to find line ends, and the first bytes of each line once to find the delimiter.
 */
#include "hearth/format/multipart.h"

#include <assert.h>

#define MAX_BOUNDARY_BYTES 70u

struct form_reader {
    struct hearth_str body;
    size_t at;
    char delimiter[2 + MAX_BOUNDARY_BYTES]; /* "--boundary" */
    size_t n_delimiter;
    struct hearth_err *err;
};

/* ---- parameters of header values ---- */

/*
 * The next parameter, "; name=value" or `; name="value"`, at or after *at, which moves past it.
 * False at the end and for a syntax error.
 */
static bool read_next_parameter(struct hearth_str header, size_t *at, struct hearth_str *ret_name,
                                struct hearth_str *ret_value)
{
    size_t from = hearth_str_find(header, ';', *at);
    if (from == header.n) {
        return false;
    }

    size_t equals = from + 1;
    while (equals < header.n && header.p[equals] != '=' && header.p[equals] != ';') {
        equals++;
    }

    *ret_name = hearth_str_trim(hearth_str_n(header.p + from + 1, equals - from - 1));
    *ret_value = hearth_str_n("", 0);
    *at = equals;
    if (equals == header.n || header.p[equals] == ';') {
        return true;
    }

    size_t value = equals + 1;
    while (value < header.n && (header.p[value] == ' ' || header.p[value] == '\t')) {
        value++;
    }

    size_t end;
    if (value < header.n && header.p[value] == '"') {
        end = ++value;
        while (end < header.n && header.p[end] != '"') {
            end += header.p[end] == '\\' && end + 1 < header.n ? 2 : 1;
        }
        *ret_value = hearth_str_n(header.p + value, end - value);
        *at = end < header.n ? end + 1 : end;
        return end < header.n; /* a quotation without its end has no value */
    }

    end = hearth_str_find(header, ';', value);
    *ret_value = hearth_str_trim(hearth_str_n(header.p + value, end - value));
    *at = end;
    return true;
}

/* The value of the parameter `wanted`; false if there is none. */
static bool find_parameter(struct hearth_str header, struct hearth_str wanted,
                           struct hearth_str *ret_value)
{
    struct hearth_str name, value;
    for (size_t at = 0; read_next_parameter(header, &at, &name, &value);) {
        if (hearth_str_eq_nocase(name, wanted)) {
            *ret_value = value;
            return true;
        }
    }

    return false;
}

static struct hearth_str read_plain_value(struct hearth_str header)
{
    return hearth_str_trim(hearth_str_n(header.p, hearth_str_find(header, ';', 0)));
}

static bool is_boundary_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("'()+_,-./:=? ", c) != NULL);
}

static enum hearth_status read_boundary(struct form_reader *r, struct hearth_str content_type)
{
    struct hearth_str boundary = {"", 0};
    if (!find_parameter(content_type, HEARTH_STR("boundary"), &boundary) || boundary.n == 0) {
        return HEARTH_FAIL(r->err, HEARTH_INVALID_ARGUMENT,
                           "multipart/form-data has no boundary in its Content-Type");
    }

    bool bad = boundary.n > MAX_BOUNDARY_BYTES || boundary.p[boundary.n - 1] == ' ';
    for (size_t i = 0; i < boundary.n && !bad; i++) {
        bad = !is_boundary_char(boundary.p[i]);
    }

    if (bad) {
        return HEARTH_FAIL(
            r->err, HEARTH_INVALID_ARGUMENT,
            "the boundary of multipart/form-data is not 1 to %u of the characters of "
            "RFC 2046",
            MAX_BOUNDARY_BYTES);
    }

    assert(2 + boundary.n <= sizeof r->delimiter);
    memcpy(r->delimiter, "--", 2);
    memcpy(r->delimiter + 2, boundary.p, boundary.n);
    r->n_delimiter = 2 + boundary.n;

    return HEARTH_OK;
}

/* ---- delimiters ---- */

/* The index after the line at `from` and its line end. */
static size_t find_line_end(struct hearth_str body, size_t from)
{
    size_t end = hearth_str_find(body, '\n', from);
    return end < body.n ? end + 1 : body.n;
}

/* The kind of a line. */
enum delimiter {
    NO_DELIMITER,
    DELIMITER,
    LAST_DELIMITER
};

static enum delimiter read_delimiter(const struct form_reader *r, size_t at)
{
    struct hearth_str rest = {r->body.p + at, r->body.n - at};
    if (!hearth_str_starts(rest, hearth_str_n(r->delimiter, r->n_delimiter))) {
        return NO_DELIMITER;
    }

    rest = hearth_str_n(rest.p + r->n_delimiter, rest.n - r->n_delimiter);
    if (hearth_str_starts(rest, HEARTH_STR("--"))) {
        return LAST_DELIMITER;
    }

    struct hearth_str padding = {rest.p, find_line_end(rest, 0)};
    bool ends = padding.n > 0 && padding.p[padding.n - 1] == '\n';

    return ends && hearth_str_trim(padding).n == 0 ? DELIMITER : NO_DELIMITER;
}

/*
 * The bytes from r->at to the next delimiter, without the line end before it; r->at moves to the
 * line after the delimiter. Returns the kind of the delimiter; NO_DELIMITER if the body ends first.
 */
static enum delimiter find_next_delimiter(struct form_reader *r, struct hearth_str *ret_before)
{
    size_t from = r->at;
    for (size_t at = from; at < r->body.n; at = find_line_end(r->body, at)) {
        enum delimiter found = read_delimiter(r, at);
        if (found != NO_DELIMITER) {
            size_t end = at;
            if (end > from && r->body.p[end - 1] == '\n') {
                end--;
            }
            if (end > from && r->body.p[end - 1] == '\r') {
                end--;
            }
            *ret_before = hearth_str_n(r->body.p + from, end - from);
            r->at = find_line_end(r->body, at);
            return found;
        }
    }

    return NO_DELIMITER;
}

/* ---- parts ---- */

static enum hearth_status read_part(struct form_reader *r, struct hearth_str part, unsigned index,
                                    struct hearth_multipart *form)
{
    struct hearth_multipart_file file = {.body = {"", 0}};
    bool is_named = false, has_filename = false;
    size_t at = 0;
    /* The headers, up to an empty line. */
    for (;;) {
        size_t end = find_line_end(part, at);
        struct hearth_str line = hearth_str_trim(hearth_str_n(part.p + at, end - at));
        bool cut = end == at || part.p[end - 1] != '\n';

        at = end;
        if (line.n == 0) {
            break; /* a part that ends with its headers has an empty body */
        }

        if (cut || at > HEARTH_MULTIPART_MAX_HEADER_BYTES) {
            return HEARTH_FAIL(r->err, HEARTH_INVALID_ARGUMENT,
                               "part %u of multipart/form-data: the headers do not end within %u "
                               "bytes",
                               index, HEARTH_MULTIPART_MAX_HEADER_BYTES);
        }

        size_t colon = hearth_str_find(line, ':', 0);
        struct hearth_str name = hearth_str_trim(hearth_str_n(line.p, colon));
        if (colon < line.n && hearth_str_eq_nocase(name, HEARTH_STR("content-disposition"))) {
            struct hearth_str value = {line.p + colon + 1, line.n - colon - 1};
            is_named = hearth_str_eq_nocase(read_plain_value(value), HEARTH_STR("form-data")) &&
                       find_parameter(value, HEARTH_STR("name"), &file.name);
            has_filename = find_parameter(value, HEARTH_STR("filename"), &file.filename);
        }
    }

    if (!is_named) {
        return HEARTH_FAIL(r->err, HEARTH_INVALID_ARGUMENT,
                           "part %u of multipart/form-data has no Content-Disposition: form-data "
                           "with a name",
                           index);
    }

    assert(form->n_files + form->n_fields < HEARTH_MULTIPART_MAX_PARTS);
    file.body = hearth_str_n(part.p + at, part.n - at);
    if (has_filename && file.filename.n > 0) {
        form->files[form->n_files++] = file;
    } else {
        form->fields[form->n_fields++] = (struct hearth_multipart_field){file.name, file.body};
    }

    return HEARTH_OK;
}

enum hearth_status hearth_multipart_parse(struct hearth_str content_type, struct hearth_str body,
                                          struct hearth_multipart *ret, struct hearth_err *err)
{
    struct form_reader r = {.body = body, .err = err};
    struct hearth_str part;

    ret->n_files = ret->n_fields = 0;
    HEARTH_TRY(read_boundary(&r, content_type));

    /* Skip the preamble; then each delimiter ends a part and begins the next one. */
    enum delimiter found = find_next_delimiter(&r, &part);
    for (unsigned i = 0; found == DELIMITER; i++) {
        found = find_next_delimiter(&r, &part);
        if (found == NO_DELIMITER) {
            break;
        }
        if (i == HEARTH_MULTIPART_MAX_PARTS) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                               "multipart/form-data has more than %u parts",
                               HEARTH_MULTIPART_MAX_PARTS);
        }
        HEARTH_TRY(read_part(&r, part, i, ret));
    }

    if (found != LAST_DELIMITER) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "multipart/form-data does not end with its boundary: the body of "
                           "%zu bytes is truncated",
                           body.n);
    }

    return HEARTH_OK;
}

const struct hearth_multipart_file *hearth_multipart_find(const struct hearth_multipart *form,
                                                          const char *name)
{
    for (size_t i = 0; i < form->n_files; i++) {
        if (hearth_str_eq_c(form->files[i].name, name)) {
            return &form->files[i];
        }
    }

    return NULL;
}
