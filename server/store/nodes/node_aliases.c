/* node_aliases.c -- other addresses of nodes (contract: node_aliases.h). */
#include "nodes/node_aliases.h"

#include "hearth/base/mem.h"

#include <stdio.h>

/* An entry of node_addresses: how hearthd reaches a node that Citus knows as `known`. */
struct alias {
    char known[264]; /* host:port */
    bool is_found;
    struct hearth_pg_address address;
};

struct hearth_node_aliases {
    size_t n;
    struct alias all[HEARTH_MAX_NODES];
};

static bool take_address(struct hearth_str text, struct hearth_pg_address *ret)
{
    size_t colon = text.n;
    while (colon > 0 && text.p[colon - 1] != ':') {
        colon--;
    }

    int64_t port = 0;
    if (colon < 2 || colon > sizeof ret->host ||
        !hearth_str_to_i64(hearth_str_n(text.p + colon, text.n - colon), &port) || port < 1 ||
        port > 65535) {
        return false;
    }

    (void)snprintf(ret->host, sizeof ret->host, "%.*s", (int)(colon - 1), text.p);
    (void)snprintf(ret->port, sizeof ret->port, "%lld", (long long)port);

    return true;
}

/* "known:port=host:port" */
static bool take_alias(struct hearth_str text, struct alias *ret)
{
    const char *equals = text.n == 0 ? NULL : memchr(text.p, '=', text.n);
    struct hearth_pg_address known;
    if (equals == NULL) {
        return false;
    }

    size_t n = (size_t)(equals - text.p);
    if (!take_address(hearth_str_n(text.p, n), &known) ||
        !take_address(hearth_str_n(equals + 1, text.n - n - 1), &ret->address)) {
        return false;
    }

    (void)snprintf(ret->known, sizeof ret->known, "%s:%s", known.host, known.port);

    return true;
}

enum hearth_status hearth_node_aliases_parse(const char *text, struct hearth_node_aliases **ret,
                                             struct hearth_err *err)
{
    struct hearth_node_aliases *aliases = hearth_mem_zalloc(sizeof *aliases);
    if (aliases == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate the addresses of nodes");
    }

    while (*text != '\0') {
        size_t n = strcspn(text, ",");
        if (aliases->n == HEARTH_MAX_NODES ||
            !take_alias(hearth_str_n(text, n), &aliases->all[aliases->n])) {
            hearth_mem_free(aliases);
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                               "node-addresses has \"%.*s\": it is a list of at most %d "
                               "NAME:PORT=HOST:PORT, separated by commas",
                               n < 60 ? (int)n : 60, text, HEARTH_MAX_NODES);
        }
        aliases->n++;
        text += n + (text[n] == ',');
    }

    *ret = aliases;

    return HEARTH_OK;
}

void hearth_node_aliases_free(struct hearth_node_aliases *aliases)
{
    hearth_mem_free(aliases);
}

struct hearth_pg_address hearth_node_aliases_find(struct hearth_node_aliases *aliases,
                                                  struct hearth_str host, int32_t port)
{
    struct hearth_pg_address address;
    char known[264];

    (void)snprintf(address.host, sizeof address.host, HEARTH_STR_FMT, HEARTH_STR_ARG(host));
    (void)snprintf(address.port, sizeof address.port, "%d", (int)port);
    (void)snprintf(known, sizeof known, "%s:%s", address.host, address.port);
    for (size_t i = 0; i < aliases->n; i++) {
        if (strcmp(aliases->all[i].known, known) == 0) {
            aliases->all[i].is_found = true;
            return aliases->all[i].address;
        }
    }

    return address;
}

size_t hearth_node_aliases_unknown(const struct hearth_node_aliases *aliases, char out[264])
{
    size_t n = 0;

    out[0] = '\0';
    for (size_t i = aliases->n; i-- > 0;) {
        if (!aliases->all[i].is_found) {
            (void)snprintf(out, sizeof aliases->all[i].known, "%s", aliases->all[i].known);
            n++;
        }
    }

    return n;
}

void hearth_node_aliases_reset(struct hearth_node_aliases *aliases)
{
    for (size_t i = 0; i < aliases->n; i++) {
        aliases->all[i].is_found = false;
    }
}
