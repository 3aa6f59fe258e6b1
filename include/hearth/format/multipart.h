/*
 * multipart.h -- the files and fields of a complete multipart/form-data body.
 *
 * A part with a filename is a file, any other part a field. Lines of headers and delimiters end
 * with CRLF or LF. Text before the first delimiter and after the last one is
 * ignored. Escapes in quoted parameters are not decoded: names are only compared.
 *
 * Limits:    HEARTH_MULTIPART_MAX_PARTS parts of any kind, HEARTH_MULTIPART_MAX_HEADER_BYTES for
 *            the headers of one part.
 * Ownership: everything borrows from the two inputs.
 * Threads:   pure.
 * Errors:    INVALID_ARGUMENT: boundary missing or invalid, body does not end with its last
 *            delimiter, part without Content-Disposition, limit exceeded.
 * Source:    RFC 7578, RFC 2046 section 5.1.
 */
#ifndef HEARTH_FORMAT_MULTIPART_H
#define HEARTH_FORMAT_MULTIPART_H

#include "hearth/base/status.h"

#define HEARTH_MULTIPART_MAX_PARTS        64u
#define HEARTH_MULTIPART_MAX_HEADER_BYTES 8192u

struct hearth_multipart_file {
    struct hearth_str name, filename, body;
};

struct hearth_multipart_field {
    struct hearth_str name, value;
};

/* Both in the order of the body; names may be repeated. */
struct hearth_multipart {
    struct hearth_multipart_file files[HEARTH_MULTIPART_MAX_PARTS];
    size_t n_files;
    struct hearth_multipart_field fields[HEARTH_MULTIPART_MAX_PARTS];
    size_t n_fields;
};

HEARTH_MUST_CHECK
enum hearth_status hearth_multipart_parse(struct hearth_str content_type, struct hearth_str body,
                                          struct hearth_multipart *ret, struct hearth_err *err);
/* The first file with the name `name` (not filename), or NULL. */
const struct hearth_multipart_file *hearth_multipart_find(const struct hearth_multipart *form,
                                                          const char *name);

#endif
