/*
 * embedded.h -- files compiled into the binary (server/cmake/EmbedFiles.cmake writes the tables).
 *
 * Threads: immutable.
 */
#ifndef HEARTH_BASE_EMBEDDED_H
#define HEARTH_BASE_EMBEDDED_H

#include <stddef.h>

struct hearth_embedded {
    const char *name;           /* base name; NULL at the end of a table */
    const unsigned char *bytes; /* followed by a NUL, which n_bytes does not count */
    size_t n_bytes;
};

/* sql/NNNN_*.sql, sorted by number. */
extern const struct hearth_embedded hearth_embedded_migrations[];
/*
 * Files of the web page by their paths ("/index.html", "/assets/..."), also as NAME.gz and NAME.br;
 * may be none.
 */
extern const struct hearth_embedded hearth_embedded_web[];
/*
 * Files of the documents by their paths ("/index.html", "/how-to/push.html"), as NAME.gz instead
 * where that is smaller; may be none.
 */
extern const struct hearth_embedded hearth_embedded_documents[];
/* One file: the protocols of proto/ and their imports as a FileDescriptorSet. */
extern const struct hearth_embedded hearth_embedded_descriptors[];
/* One file: clients/viewer/viewer.html. */
extern const struct hearth_embedded hearth_embedded_viewer[];

#endif
