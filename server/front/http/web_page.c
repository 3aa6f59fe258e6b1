/*
 * web_page.c -- files of the web page and of the documents (web_page.h).
 *
 * The build embeds each file of the page as it is and, where that is smaller, as NAME.gz and
 * NAME.br. Documents are many and seldom read: they are embedded once, by gzip, and inflated for
 * clients that do not accept it.
 */
#include "http/web_page.h"

#include "hearth/base/embedded.h"
#include "hearth/base/hash.h"
#include "hearth/codec/compress.h"

#include "rpc/media.h"

#include <assert.h>
#include <stdio.h>

#define PAGE_NAME "/index.html"
#define ASSETS    "/assets/"
#define DOCUMENTS "/docs"
/* Far more than any document has. */
#define LARGEST_DOCUMENT_BYTES ((size_t)4 << 20)

/*
 * Scripts, styles and answers come from this server only; nothing may frame the page, and no text
 * becomes markup (clients/web/src/flame/trusted.ts makes the only trusted value, a worker's
 * address).
 */
static const char g_policy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data: blob:; worker-src 'self'; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'none'; require-trusted-types-for 'script'; trusted-types hearth";

static const struct {
    const char *ending, *content_type;
} g_content_types[] = {
    {".html", "text/html; charset=utf-8"},
    {".js", "text/javascript; charset=utf-8"},
    {".css", "text/css; charset=utf-8"},
    {".svg", "image/svg+xml"},
    {".png", "image/png"},
    {".json", "application/json"},
    {".yaml", "text/plain; charset=utf-8"},
};

/* ---- files ---- */

/* The file whose name is the path and the ending. */
static const struct hearth_embedded *find_embedded(const struct hearth_embedded *files,
                                                   struct hearth_str path, const char *ending)
{
    size_t n_ending = strlen(ending);

    for (const struct hearth_embedded *file = files; file->name != NULL; file++) {
        struct hearth_str name = hearth_str_c(file->name);
        if (name.n == path.n + n_ending && memcmp(name.p, path.p, path.n) == 0 &&
            strcmp(file->name + path.n, ending) == 0) {
            return file;
        }
    }

    return NULL;
}

bool hearth_web_page_is_here(void)
{
    return find_embedded(hearth_embedded_web, HEARTH_STR(PAGE_NAME), "") != NULL;
}

/* True for one segment of letters and dashes, as addresses within the page have it. */
static bool is_page_address(struct hearth_str path)
{
    for (size_t i = 1; i < path.n; i++) {
        if (path.p[i] != '-' && (path.p[i] < 'a' || path.p[i] > 'z')) {
            return false;
        }
    }

    return path.n > 0 && path.p[0] == '/';
}

/* A browser that opens an address says so; a script or curl that asks for anything does not. */
static bool is_navigation(struct hearth_str accept)
{
    const struct hearth_str html = HEARTH_STR("text/html");

    for (size_t i = 0; i + html.n <= accept.n; i++) {
        if (hearth_str_eq_nocase(hearth_str_n(accept.p + i, html.n), html)) {
            return true;
        }
    }

    return false;
}

static const char *find_content_type(struct hearth_str path)
{
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_content_types); i++) {
        if (hearth_str_ends(path, hearth_str_c(g_content_types[i].ending))) {
            return g_content_types[i].content_type;
        }
    }

    return "application/octet-stream";
}

/* ---- answers ---- */

static void add_header(struct hearth_route_answer *answer, const char *name, const char *value)
{
    assert(answer->n_headers < HEARTH_ROUTE_HEADERS);
    answer->headers[answer->n_headers++] = (struct hearth_rpc_header){name, value};
}

/* The smallest form that the client accepts. */
static const struct hearth_embedded *choose_coding(struct hearth_str path,
                                                   const struct hearth_embedded *plain,
                                                   struct hearth_str accept_encoding,
                                                   struct hearth_route_answer *answer)
{
    static const struct {
        const char *ending, *name;
    } codings[] = {{".br", "br"}, {".gz", "gzip"}};

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(codings); i++) {
        const struct hearth_embedded *coded =
            find_embedded(hearth_embedded_web, path, codings[i].ending);
        if (coded != NULL &&
            hearth_accept_encoding_has(accept_encoding, hearth_str_c(codings[i].name))) {
            add_header(answer, "Content-Encoding", codings[i].name);
            return coded;
        }
    }

    return plain;
}

/* The tag names the content and not its coding, which is why it is a weak one. */
static void add_etag(const struct hearth_embedded *file, struct hearth_route_answer *answer)
{
    struct hearth_hash128 hash = hearth_hash128(file->bytes, file->n_bytes, 0);

    (void)snprintf(answer->etag, sizeof answer->etag, "W/\"%016llx%016llx\"",
                   (unsigned long long)hash.hi, (unsigned long long)hash.lo);
    add_header(answer, "ETag", answer->etag);
}

static bool names_etag(struct hearth_str if_none_match, const char *etag)
{
    struct hearth_str bare = hearth_str_c(etag + 2); /* a weak comparison ignores "W/" */

    for (size_t i = 0; i + bare.n <= if_none_match.n; i++) {
        if (memcmp(if_none_match.p + i, bare.p, bare.n) == 0) {
            return true;
        }
    }

    return hearth_str_eq_c(hearth_str_trim(if_none_match), "*");
}

static void begin_answer(struct hearth_route_answer *answer, unsigned code)
{
    *answer = (struct hearth_route_answer){.code = code};
    hearth_buf_init(&answer->body, 0);
}

/*
 * Begins the answer with what all files have. Returns false if the client has the file, and the
 * answer says so.
 */
static bool begin_file(struct hearth_route_answer *answer, const struct hearth_http_head *head,
                       const struct hearth_embedded *file, const char *cache_control)
{
    begin_answer(answer, 200);
    add_header(answer, "Cache-Control", cache_control);
    add_header(answer, "Content-Security-Policy", g_policy);
    add_header(answer, "X-Content-Type-Options", "nosniff");
    add_header(answer, "Referrer-Policy", "no-referrer");
    add_etag(file, answer);
    add_header(answer, "Vary", "Accept, Accept-Encoding");

    if (names_etag(head->if_none_match, answer->etag)) {
        answer->code = 304;
        return false;
    }

    return true;
}

/* Answers with the file inflated, or with 503 if memory was refused. */
static void inflate_document(struct hearth_str packed, struct hearth_route_answer *answer)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_inflater *inflater = hearth_inflater_new();

    if (inflater == NULL ||
        hearth_inflate(inflater, HEARTH_COMPRESSION_GZIP, packed, LARGEST_DOCUMENT_BYTES,
                       &answer->body, &err) != HEARTH_OK) {
        answer->code = 503;
    }
    hearth_inflater_free(inflater);
}

/* A document; `path` begins after "/docs". A directory is answered with its index.html. */
static bool get_document(struct hearth_str path, const struct hearth_http_head *head,
                         struct hearth_route_answer *answer)
{
    bool is_directory = hearth_str_ends(path, HEARTH_STR("/"));
    const struct hearth_embedded *file =
        find_embedded(hearth_embedded_documents, path, is_directory ? "index.html" : "");
    bool is_packed = file == NULL;
    if (is_packed) {
        file =
            find_embedded(hearth_embedded_documents, path, is_directory ? "index.html.gz" : ".gz");
    }
    if (file == NULL) {
        return false;
    }

    if (!begin_file(answer, head, file, "no-cache")) {
        return true;
    }

    answer->content_type =
        is_directory ? find_content_type(HEARTH_STR(PAGE_NAME)) : find_content_type(path);
    struct hearth_str bytes = hearth_str_n((const char *)file->bytes, file->n_bytes);
    if (is_packed && !hearth_accept_encoding_has(head->accept_encoding, HEARTH_STR("gzip"))) {
        inflate_document(bytes, answer);
    } else {
        if (is_packed) {
            add_header(answer, "Content-Encoding", "gzip");
        }
        answer->fixed = bytes;
    }

    return true;
}

bool hearth_web_page_get(struct hearth_str path, const struct hearth_http_head *head,
                         struct hearth_route_answer *answer)
{
    if (hearth_str_starts(path, HEARTH_STR(DOCUMENTS "/"))) {
        size_t n_prefix = strlen(DOCUMENTS);
        return get_document(hearth_str_n(path.p + n_prefix, path.n - n_prefix), head, answer);
    }
    /* Links between documents are relative, and need the slash. */
    if (hearth_str_eq_c(path, DOCUMENTS) && hearth_embedded_documents[0].name != NULL) {
        begin_answer(answer, 308);
        add_header(answer, "Location", DOCUMENTS "/");
        return true;
    }

    bool is_asset = hearth_str_starts(path, HEARTH_STR(ASSETS));
    if (!is_asset) {
        if (!is_page_address(path) || !is_navigation(head->accept)) {
            return false;
        }
        path = HEARTH_STR(PAGE_NAME);
    }

    const struct hearth_embedded *plain = find_embedded(hearth_embedded_web, path, "");
    if (plain == NULL) {
        return false;
    }

    if (!begin_file(answer, head, plain,
                    is_asset ? "public, max-age=31536000, immutable" : "no-cache")) {
        return true;
    }

    const struct hearth_embedded *chosen =
        choose_coding(path, plain, head->accept_encoding, answer);
    answer->content_type = find_content_type(path);
    answer->fixed = hearth_str_n((const char *)chosen->bytes, chosen->n_bytes);

    return true;
}
