/*
 * fuzz_http_framing.c -- compares the check of heads with a second parser of the same bytes.
 *
 * Input: a head, which is changed as libmicrohttpd 0.9.75 changes it in its buffer. The second
 * parser reads the raw bytes and accepts only the strict grammar of RFC 9112. A head that the check
 * accepts must be a correct head for both.
 */
#include "http/http_framing.h"

#include <stdlib.h>
#include <string.h>

#define MAX_HEAD   4096u
#define MAX_FIELDS 512u

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

struct library {
    char head[MAX_HEAD + 1], moved[2 * MAX_HEAD];
    size_t n, n_moved, n_fields;
    struct hearth_str names[MAX_FIELDS], values[MAX_FIELDS];
};

/* The next line, with its end replaced; NULL if there is none. */
static char *take_line(struct library *library, size_t *at, size_t *ret_n)
{
    char *line = library->head + *at;
    char *lf = memchr(line, '\n', library->n - *at);
    if (lf == NULL) {
        return NULL;
    }
    *lf = '\0';
    *ret_n = (size_t)(lf - line);
    if (lf > line && lf[-1] == '\r') {
        lf[-1] = '\0';
        --*ret_n;
    }
    *at = (size_t)(lf + 1 - library->head);
    return line;
}

/* A folded line is appended to the name, which is moved. */
static void fold(struct library *library, const char *line)
{
    struct hearth_str *name = &library->names[library->n_fields - 1];
    const char *rest = line + strspn(line, " \t");
    size_t n = strlen(rest);
    if (library->n_moved + name->n + n + 1 > sizeof library->moved) {
        return;
    }
    char *moved = library->moved + library->n_moved;
    memcpy(moved, name->p, name->n);
    memcpy(moved + name->n, rest, n + 1);
    *name = hearth_str_n(moved, name->n + n);
    library->n_moved += name->n + 1;
}

/* False if the library itself refuses the head, or waits for more bytes. */
static bool read_fields(struct library *library, size_t at)
{
    for (;;) {
        size_t n;
        char *line = take_line(library, &at, &n);
        if (line == NULL) {
            return false;
        }
        if (*line == '\0') {
            library->n = at;
            return true;
        }
        if (library->n_fields > 0 && (*line == ' ' || *line == '\t')) {
            fold(library, line);
            continue;
        }
        char *colon = strchr(line, ':');
        if (colon == NULL || library->n_fields == MAX_FIELDS) {
            return false;
        }
        *colon++ = '\0';
        colon += strspn(colon, " \t");
        library->names[library->n_fields] = hearth_str_c(line);
        library->values[library->n_fields++] = hearth_str_c(colon);
    }
}

/* ---- the second parser ---- */

struct raw {
    const char *p;
    size_t n, n_lengths, n_chunked, n_other_codings;
};

static struct hearth_str raw_line(struct raw *raw)
{
    for (size_t i = 0; i + 1 < raw->n; i++) {
        unsigned char c = (unsigned char)raw->p[i];
        if (c == '\r' && raw->p[i + 1] == '\n') {
            struct hearth_str line = {raw->p, i};
            raw->p += i + 2;
            raw->n -= i + 2;
            return line;
        }
        if ((c < ' ' && c != '\t') || c == 0x7f) {
            abort(); /* no line of a head holds it */
        }
    }
    abort();
}

static void check_raw(const char *head, size_t n)
{
    struct raw raw = {.p = head, .n = n};
    (void)raw_line(&raw);
    for (;;) {
        struct hearth_str line = raw_line(&raw);
        if (line.n == 0) {
            break;
        }
        size_t colon = hearth_str_find(line, ':', 0);
        struct hearth_str name = hearth_str_n(line.p, colon);
        if (colon == 0 || colon == line.n || memchr(name.p, ' ', name.n) != NULL ||
            memchr(name.p, '\t', name.n) != NULL) {
            abort();
        }
        struct hearth_str value =
            hearth_str_trim(hearth_str_n(line.p + colon + 1, line.n - colon - 1));
        if (hearth_str_eq_nocase(name, HEARTH_STR("content-length"))) {
            raw.n_lengths++;
        } else if (hearth_str_eq_nocase(name, HEARTH_STR("transfer-encoding"))) {
            bool is_chunked = hearth_str_eq_nocase(value, HEARTH_STR("chunked"));
            *(is_chunked ? &raw.n_chunked : &raw.n_other_codings) += 1;
        }
    }
    if (raw.n != 0 || raw.n_other_codings > 0 || raw.n_lengths + raw.n_chunked > 1) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static struct library library;
    struct hearth_http_framing framing;
    if (size > MAX_HEAD) {
        return 0;
    }
    memcpy(library.head, bytes, size);
    library.n = size;
    library.n_fields = library.n_moved = 0;

    size_t at = 0, n = 0;
    char *line = take_line(&library, &at, &n);
    char *uri = line != NULL ? strchr(line, ' ') : NULL;
    char *version = uri != NULL ? strchr(uri + 1, ' ') : NULL;
    if (version == NULL || version + 9 != line + n ||
        (strcmp(version, " HTTP/1.0") != 0 && strcmp(version, " HTTP/1.1") != 0)) {
        return 0;
    }
    *uri++ = *version++ = '\0';
    if (!read_fields(&library, at)) {
        return 0;
    }
    hearth_http_framing_uri(&framing, hearth_str_c(uri));
    hearth_http_framing_begin(&framing, hearth_str_c(line), hearth_str_c(version),
                              library.head + library.n);
    for (size_t i = 0; i < library.n_fields; i++) {
        hearth_http_framing_field(&framing, library.names[i], library.values[i]);
    }
    hearth_http_framing_end(&framing, hearth_str_c(version));
    /* After a NUL byte at the end of a line, a bare LF cannot be told from CR LF. */
    if (framing.code == 0 && memchr(bytes, '\0', library.n) == NULL) {
        check_raw((const char *)bytes, library.n);
    }
    return 0;
}
