/* network_book.c -- the address book: names of addresses (contract: hearth/engine/network.h). */
#include "hearth/base/mem.h"
#include "hearth/store/store_network.h"

#include "common/shown.h"
#include "network/network_internal.h"

#include <arpa/inet.h>
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_CONFIGURED 100000

/* ---- addresses ---- */

/* Split an address into ip and port; false: it has no port, and *ret_ip is the whole text. */
static bool split_address_port(struct hearth_str text, struct hearth_str *ret_ip,
                               struct hearth_str *ret_port)
{
    size_t colon = text.n;

    while (colon > 0 && text.p[colon - 1] != ':') {
        colon--;
    }

    /* Brackets enclose an IPv6 address; without them, more than one colon means that there is no
     * port. */
    *ret_ip = text;
    *ret_port = (struct hearth_str){0};
    bool is_v6 = text.n > 0 && text.p[0] == '[';
    if (colon == 0 || (!is_v6 && hearth_str_find(text, ':', 0) != colon - 1) ||
        (is_v6 && (colon < 3 || text.p[colon - 2] != ']'))) {
        return false;
    }

    /* Split at the last colon. */
    *ret_ip = is_v6 ? hearth_str_n(text.p + 1, colon - 3) : hearth_str_n(text.p, colon - 1);
    *ret_port = hearth_str_n(text.p + colon, text.n - colon);

    return true;
}

/*
 * Bring an address into one form: "ip", "ip:port" or "[ip]:port" (IPv6). INVALID_ARGUMENT names it.
 */
static enum hearth_status normalize_address(struct hearth_str text, struct hearth_arena *arena,
                                            struct hearth_str *ret, struct hearth_err *err)
{
    struct hearth_str ip, port;
    int64_t number = 0;
    unsigned char bytes[16];
    char in[INET6_ADDRSTRLEN + 1], normal[INET6_ADDRSTRLEN + 1];
    bool has_port = split_address_port(text, &ip, &port);
    bool ok = ip.n > 0 && ip.n < sizeof in &&
              (!has_port || (hearth_str_to_i64(port, &number) && number > 0 && number < 65536));

    assert(ret != NULL);

    int family = ok && hearth_str_find(ip, ':', 0) < ip.n ? AF_INET6 : AF_INET;

    /* Parse and print the ip. */
    if (ok) {
        memcpy(in, ip.p, ip.n);
        in[ip.n] = '\0';
        ok = strlen(in) == ip.n && inet_pton(family, in, bytes) == 1 &&
             inet_ntop(family, bytes, normal, sizeof normal) != NULL;
    }

    if (!ok) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "\"" HEARTH_STR_FMT
                           "\" is not an address: expected ip, ip:port or [ipv6]:port",
                           HEARTH_STR_ARG(text));
    }

    /* Print it with the port. */
    const char *copy = !has_port ? hearth_arena_printf(arena, "%s", normal)
                       : family == AF_INET6
                           ? hearth_arena_printf(arena, "[%s]:%d", normal, (int)number)
                           : hearth_arena_printf(arena, "%s:%d", normal, (int)number);
    *ret = hearth_str_c(copy);

    return copy == NULL ? HEARTH_FAIL_ARENA(err, arena) : HEARTH_OK;
}

/*
 * The same for an address that an agent sent. SkyWalking's rover writes an IPv6 address before its
 * port without brackets.
 */
static enum hearth_status normalize_sent_address(struct hearth_str text, struct hearth_arena *arena,
                                                 struct hearth_str *ret, struct hearth_err *err)
{
    size_t first = hearth_str_find(text, ':', 0), last = text.n;

    while (last > first && text.p[last - 1] != ':') {
        last--;
    }

    /* With more than one colon, what follows the last one is the port. */
    if (last > first + 1 && text.p[0] != '[') {
        const char *bracketed = hearth_arena_printf(arena, "[%.*s]:%.*s", (int)(last - 1), text.p,
                                                    (int)(text.n - last), text.p + last);
        if (bracketed == NULL) {
            return HEARTH_FAIL_ARENA(err, arena);
        }
        if (normalize_address(hearth_str_c(bracketed), arena, ret, err) == HEARTH_OK) {
            return HEARTH_OK;
        }
    }

    return normalize_address(text, arena, ret, err);
}

static enum hearth_status check_address_name(struct hearth_str name, struct hearth_err *err)
{
    if (hearth_str_trim(name).n > 0 && name.n <= HEARTH_AGENT_NAME_BYTES &&
        hearth_str_utf8_valid(name)) {
        return HEARTH_OK;
    }

    return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                       "the name of an address is 1 to %d bytes of UTF-8 and not blank",
                       HEARTH_AGENT_NAME_BYTES);
}

/* ---- the option ---- */

static int compare_addresses(const void *left, const void *right)
{
    const struct hearth_network_address *a = left, *b = right;
    return hearth_str_cmp(a->address, b->address);
}

static enum hearth_status add_configured_name(struct hearth_network *network, const char *text,
                                              struct hearth_err *err)
{
    struct hearth_str item = hearth_str_c(text);
    size_t equals = hearth_str_find(item, '=', 0);

    if (equals == item.n) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "\"%s\" is not ip=name or ip:port=name",
                           text);
    }

    struct hearth_network_address *to = &network->configured[network->n_configured];
    to->is_configured = true;
    HEARTH_TRY(normalize_address(hearth_str_trim(hearth_str_n(text, equals)), &network->arena,
                                 &to->address, err));
    to->name = hearth_arena_str(
        &network->arena, hearth_str_trim(hearth_str_n(text + equals + 1, item.n - equals - 1)));
    HEARTH_TRY(check_address_name(to->name, err));
    network->n_configured++;

    return HEARTH_OK;
}

static enum hearth_status read_network_options(struct hearth_network *network,
                                               const struct hearth_network_options *options,
                                               struct hearth_err *err)
{
    size_t n = 0;

    /* Count the names. */
    while (options->addresses != NULL && options->addresses[n] != NULL && n < MAX_CONFIGURED) {
        n++;
    }

    network->configured = hearth_arena_calloc(&network->arena, n, sizeof network->configured[0]);
    if (network->configured == NULL) {
        return HEARTH_FAIL_ARENA(err, &network->arena);
    }

    /* Read them. */
    for (size_t i = 0; i < n; i++) {
        enum hearth_status status = add_configured_name(network, options->addresses[i], err);
        if (status != HEARTH_OK) {
            hearth_err_prefix(err, "network-addresses");
            return status;
        }
    }

    /* No address may have two names. */
    qsort(network->configured, n, sizeof network->configured[0], compare_addresses);
    for (size_t i = 1; i < n; i++) {
        if (compare_addresses(&network->configured[i - 1], &network->configured[i]) == 0) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                               "network-addresses: " HEARTH_STR_FMT " has two names",
                               HEARTH_STR_ARG(network->configured[i].address));
        }
    }

    return hearth_redactor_new(options->redact, &network->redactor, err);
}

enum hearth_status hearth_query_set_network(struct hearth_query_engine *engine,
                                            const struct hearth_network_options *options,
                                            struct hearth_err *err)
{
    assert(engine->network == NULL && options != NULL);

    struct hearth_network *network = hearth_mem_zalloc(sizeof *network);

    if (network == NULL) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate the names of addresses");
    }

    hearth_arena_init(&network->arena, 0);
    hearth_mutex_init(&network->lock, HEARTH_RANK_NETWORK, "network.lock");
    engine->network = network;

    return read_network_options(network, options, err);
}

void hearth_network_free(struct hearth_network *network)
{
    if (network != NULL) {
        hearth_redactor_free(network->redactor);
        hearth_arena_release(&network->arena);
        hearth_mutex_destroy(&network->lock);
        hearth_mem_free(network);
    }
}

static const struct hearth_network_address *
find_configured_address(const struct hearth_network *network, struct hearth_str address)
{
    const struct hearth_network_address key = {.address = address};

    return network == NULL || network->n_configured == 0
               ? NULL
               : bsearch(&key, network->configured, network->n_configured,
                         sizeof network->configured[0], compare_addresses);
}

/* ---- look-ups ---- */

static struct hearth_str find_address_name(const struct hearth_network *network,
                                           const struct hearth_address_name *own, size_t n_own,
                                           struct hearth_str address)
{
    const struct hearth_network_address *configured = find_configured_address(network, address);

    if (configured != NULL) {
        return configured->name;
    }

    for (size_t i = 0; i < n_own; i++) {
        if (hearth_str_eq(own[i].address, address)) {
            return own[i].name;
        }
    }

    return HEARTH_STR("");
}

enum hearth_status hearth_network_names(const struct hearth_call *call,
                                        const struct hearth_str *addresses, size_t n,
                                        struct hearth_str *ret_names, struct hearth_err *err)
{
    assert(call != NULL && ret_names != NULL);

    /* Two forms of each address: with its port, and without it. */
    struct hearth_str *forms = hearth_arena_calloc(call->arena, 2 * n, sizeof *forms);

    if (forms == NULL) {
        return HEARTH_FAIL_ARENA(err, call->arena);
    }

    /* Bring the addresses into one form. */
    for (size_t i = 0; i < n; i++) {
        struct hearth_err ignored;
        struct hearth_str port;
        if (normalize_sent_address(addresses[i], call->arena, &forms[2 * i], &ignored) !=
            HEARTH_OK) {
            forms[2 * i] = addresses[i];
        }
        (void)split_address_port(forms[2 * i], &forms[2 * i + 1], &port);
    }

    /* Read the names that the tenant has set. */
    struct hearth_address_name *own;
    size_t n_own = 0;
    if (n > 0) {
        HEARTH_TRY(
            hearth_store_addresses(HEARTH_CALL_SCOPE(call), forms, 2 * n, &own, &n_own, err));
    }

    /* A name of ip and port takes precedence over a name of the ip. */
    for (size_t i = 0; i < n; i++) {
        ret_names[i] = find_address_name(call->engine->network, own, n_own, forms[2 * i]);
        if (ret_names[i].n == 0) {
            ret_names[i] = find_address_name(call->engine->network, own, n_own, forms[2 * i + 1]);
        }
    }

    return HEARTH_OK;
}

/* ---- the book ---- */

enum hearth_status hearth_network_addresses(const struct hearth_call *call,
                                            struct hearth_network_address **ret, size_t *ret_n,
                                            struct hearth_err *err)
{
    const struct hearth_network *network = call->engine->network;
    size_t n_configured = network == NULL ? 0 : network->n_configured, n_own;
    struct hearth_address_name *own;

    assert(call != NULL && ret != NULL && ret_n != NULL);

    if (hearth_call_is_narrow(call)) {
        *ret = NULL;
        *ret_n = 0;
        return HEARTH_OK;
    }

    HEARTH_TRY(hearth_store_addresses(HEARTH_CALL_SCOPE(call), NULL, 0, &own, &n_own, err));
    struct hearth_network_address *all =
        hearth_arena_array(call->arena, n_own + n_configured, sizeof *all);
    if (all == NULL) {
        return HEARTH_FAIL_ARENA(err, call->arena);
    }

    /* Configured names take precedence. */
    size_t n = 0;
    for (size_t i = 0; i < n_configured; i++) {
        all[n++] = network->configured[i];
    }

    /* Names of the tenant that were set before they were configured are hidden. */
    for (size_t i = 0; i < n_own; i++) {
        if (find_configured_address(network, own[i].address) == NULL) {
            all[n++] = (struct hearth_network_address){own[i].address, own[i].name, false};
        }
    }

    qsort(all, n, sizeof *all, compare_addresses);
    *ret = all;
    *ret_n = n;

    return HEARTH_OK;
}

enum hearth_status hearth_network_addresses_set(const struct hearth_call *call,
                                                const struct hearth_address_name *names, size_t n,
                                                struct hearth_err *err)
{
    struct hearth_limits limits;

    HEARTH_TRY(hearth_call_check_whole(call, err));
    hearth_call_limits(call, &limits);
    struct hearth_address_name *normal = hearth_arena_array(call->arena, n, sizeof *normal);
    if (normal == NULL) {
        return HEARTH_FAIL_ARENA(err, call->arena);
    }

    /* Check the names, and bring the addresses into one form. */
    for (size_t i = 0; i < n; i++) {
        normal[i].name = hearth_str_trim(names[i].name);
        HEARTH_TRY(normalize_address(hearth_str_trim(names[i].address), call->arena,
                                     &normal[i].address, err));
        if (normal[i].name.n > 0) {
            HEARTH_TRY(check_address_name(normal[i].name, err));
        }

        if (find_configured_address(call->engine->network, normal[i].address) != NULL) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                               HEARTH_STR_FMT " is named by the option network-addresses",
                               HEARTH_STR_ARG(normal[i].address));
        }
    }

    if (n == 0) {
        return HEARTH_OK;
    }

    return hearth_store_addresses_set(HEARTH_CALL_SCOPE(call), normal, n, limits.max_addresses,
                                      err);
}
