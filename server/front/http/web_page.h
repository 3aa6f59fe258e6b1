/*
 * web_page.h -- the web page (clients/web) and the documents (docs) out of this program: their
 * files in the coding that the client accepts, with the headers that keep them safe and quick.
 *
 * Files below /assets/ have a hash of their bytes in their names and are kept by browsers for good;
 * the page itself is asked for again each time with If-None-Match.
 *
 * Threads: pure.
 * Source:  RFC 9110 (8.8.3 ETag, 12.5 negotiation), Content Security Policy Level 3, Trusted Types.
 */
#ifndef HEARTH_FRONT_WEB_PAGE_H
#define HEARTH_FRONT_WEB_PAGE_H

#include "http/http_head.h"
#include "http/routes.h"

/*
 * Answers a GET of a file of the page, or of a document below "/docs/". Addresses within the page,
 * such as "/profile", are answered with the page if a browser opens them: links and reloads begin
 * there.
 *
 * Returns false, and leaves the answer alone, if the path is no such file, or the program was built
 * without them (HEARTH_UI=OFF). The bytes of the file are not copied: answer->body stays empty, so
 * that many readers of large files cost no memory. For a client that does not accept gzip, a
 * document is inflated into it; the caller owns answer->body.
 */
bool hearth_web_page_get(struct hearth_str path, const struct hearth_http_head *head,
                         struct hearth_route_answer *answer);

/* False if the program was built without the page and the documents. */
bool hearth_web_page_is_here(void);

#endif
