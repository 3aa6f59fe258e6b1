/*
 * embedded.h -- files compiled into the binary (server/cmake/EmbedFiles.cmake writes the tables).
 */
#ifndef HEARTH_BASE_EMBEDDED_H
#define HEARTH_BASE_EMBEDDED_H

#include <stddef.h>

struct hearth_embedded {
    const char *name;           /* base name; NULL ends a table */
    const unsigned char *bytes; /* NUL behind the last, not counted */
    size_t n_bytes;
};

/* sql/NNNN_*.sql in order of their numbers. */
extern const struct hearth_embedded hearth_embedded_migrations[];
/* One file: proto/ as a FileDescriptorSet, with what it imports. */
extern const struct hearth_embedded hearth_embedded_descriptors[];

#endif
