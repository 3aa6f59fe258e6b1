/*
 * page_link.h -- addresses of the web page; clients/web/src/url.ts has their grammar.
 *
 * Threads: pure.
 */
#ifndef HEARTH_CLIENTS_PAGE_LINK_H
#define HEARTH_CLIENTS_PAGE_LINK_H

#include "hearth/base/buf.h"

/* Appends the address of a page, such as "profile", on the server of a URL. */
void page_link_begin(const char *url, const char *page, struct hearth_buf *out);
/* Appends a parameter to such an address, unless it is empty. */
void page_link_param(struct hearth_buf *out, const char *name, struct hearth_str value);

/*
 * Appends an entry, behind a word or "", to the list of a parameter: entries are separated by line
 * feeds, a backslash quotes.
 */
void page_link_entry(struct hearth_buf *list, const char *word, const char *entry);

/* What most pages show. */
struct page_query {
    const char *selector, *type;
    int64_t from_ms, to_ms;
};

/* Appends the address of a page with a query. */
void page_link_query(const char *url, const char *page, const struct page_query *query,
                     struct hearth_buf *out);

#endif
