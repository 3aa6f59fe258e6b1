/* page_link.c -- addresses of the web page (contract: page_link.h). */
#include "page_link.h"

#include <string.h>

void page_link_begin(const char *url, const char *page, struct hearth_buf *out)
{
    size_t n = strlen(url);

    hearth_buf_cstr(out, strstr(url, "://") == NULL ? "http://" : "");
    hearth_buf_append(out, url, n > 0 && url[n - 1] == '/' ? n - 1 : n);
    hearth_buf_byte(out, '/');
    hearth_buf_cstr(out, strcmp(page, "explore") == 0 ? "" : page);
}

void page_link_param(struct hearth_buf *out, const char *name, struct hearth_str value)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789*-._";

    if (value.n == 0) {
        return;
    }
    hearth_buf_byte(out, memchr(out->p, '?', out->n) == NULL ? '?' : '&');
    hearth_buf_printf(out, "%s=", name);
    for (size_t i = 0; i < value.n; i++) {
        char c = value.p[i];
        if (c != '\0' && strchr(plain, c) != NULL) {
            hearth_buf_byte(out, (unsigned char)c);
        } else if (c == ' ') {
            hearth_buf_byte(out, '+');
        } else {
            hearth_buf_printf(out, "%%%02X", (unsigned)(unsigned char)c);
        }
    }
}

void page_link_entry(struct hearth_buf *list, const char *word, const char *entry)
{
    hearth_buf_cstr(list, list->n > 0 ? "\n" : "");
    hearth_buf_cstr(list, word);
    for (const char *at = entry; *at != '\0'; at++) {
        if (*at == '\\' || *at == '\n') {
            hearth_buf_byte(list, '\\');
        }
        hearth_buf_byte(list, *at == '\n' ? 'n' : (unsigned char)*at);
    }
}

void page_link_query(const char *url, const char *page, const struct page_query *query,
                     struct hearth_buf *out)
{
    page_link_begin(url, page, out);
    hearth_buf_printf(out, "?from=%lld&to=%lld", (long long)query->from_ms,
                      (long long)query->to_ms);
    page_link_param(out, "q", hearth_str_c(query->selector));
    page_link_param(out, "type", hearth_str_c(query->type));
}
