/* http_trailers.c -- sends a body from memory in chunks, and lines as trailers. */
#include "http/http_trailers.h"

#include "hearth/base/mem.h"

#include <assert.h>

#define CHUNK_BYTES (32u << 10)

struct trailed_body {
    size_t n;
    char *bytes;
};

static ssize_t read_trailed_body(void *cls, uint64_t position, char *to, size_t n)
{
    const struct trailed_body *trailed = cls;
    assert(position <= trailed->n);
    size_t left = trailed->n - (size_t)position;

    if (left == 0) {
        return MHD_CONTENT_READER_END_OF_STREAM;
    }
    size_t n_read = left < n ? left : n;
    memcpy(to, trailed->bytes + position, n_read);

    return (ssize_t)n_read;
}

static void free_trailed(void *cls)
{
    struct trailed_body *trailed = cls;
    hearth_mem_free(trailed->bytes);
    hearth_mem_free(trailed);
}

/* Splits each line into two NUL-terminated texts, in place. False if the library had no memory. */
static bool add_trailers(struct MHD_Response *response, struct hearth_buf *lines)
{
    for (size_t from = 0; from < lines->n;) {
        struct hearth_str text = hearth_buf_view(lines);
        size_t colon = hearth_str_find(text, ':', from), end = hearth_str_find(text, '\r', colon);
        HEARTH_ASSERT(colon + 2 <= end && end + 2 <= lines->n);
        lines->p[colon] = lines->p[end] = '\0';
        if (MHD_add_response_footer(response, lines->p + from, lines->p + colon + 2) == MHD_NO) {
            return false;
        }
        from = end + 2;
    }

    return true;
}

struct MHD_Response *hearth_http_trailed_response(struct hearth_buf *body,
                                                  struct hearth_buf *trailers)
{
    struct trailed_body *trailed = hearth_mem_zalloc(sizeof *trailed);
    bool failed = hearth_buf_failed(body) || hearth_buf_failed(trailers) || trailed == NULL;
    struct MHD_Response *response = NULL;

    if (!failed) {
        trailed->bytes = hearth_buf_take(body, &trailed->n);
        response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, CHUNK_BYTES,
                                                     read_trailed_body, trailed, free_trailed);
        if (response == NULL) {
            hearth_mem_free(trailed->bytes);
        }
    }

    if (response == NULL) {
        hearth_mem_free(trailed);
    } else if (!add_trailers(response, trailers)) {
        MHD_destroy_response(response); /* also frees the body */
        response = NULL;
    }

    hearth_buf_release(body);
    hearth_buf_release(trailers);

    return response;
}
