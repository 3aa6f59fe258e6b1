/*
 * fuzz_http_caller.c -- headers in which a client names itself: tenants, credentials, cookies, addresses, request id
 * and trace.
 *
 * Input: lines "name: value". What the header files promise of the results is checked.
 */
#include "hearth/model/credential.h"

#include "rpc/caller.h"
#include "rpc/request_ids.h"
#include "rpc/tenant.h"

#define MAX_TEXT 300u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_request_id(const struct hearth_request_ids *ids)
{
    size_t n = strlen(ids->request_id);

    HEARTH_ASSERT(n > 0 && n <= HEARTH_REQUEST_ID_MAX_BYTES);
    for (size_t i = 0; i < n; i++) {
        HEARTH_ASSERT(ids->request_id[i] > ' ' && ids->request_id[i] < 0x7f);
        HEARTH_ASSERT(strchr("\"\\<>,;", ids->request_id[i]) == NULL);
    }
    HEARTH_ASSERT((ids->parent_span == 0) == hearth_trace_id_is_none(ids->trace));
}

static void check_tenants(const struct hearth_front_caller *caller, struct hearth_arena *arena)
{
    struct hearth_tenant_rules rules = {
        .multitenancy = true, .max_tenants = 20, .path = "/querier.v1.QuerierService/LabelNames"};
    struct hearth_tenants tenants;
    struct hearth_err err = HEARTH_ERR_INIT;

    if (hearth_tenant_find(&rules, caller->n_tenants, caller->tenant, arena, &tenants, &err) !=
        HEARTH_OK) {
        HEARTH_ASSERT(err.msg[0] != '\0');
        return;
    }

    HEARTH_ASSERT(tenants.n >= 1 && tenants.n <= 20);
    HEARTH_ASSERT(tenants.n == 1 || tenants.text != NULL);
    for (size_t i = 0; i < tenants.n; i++) {
        struct hearth_str name = tenants.v[i].tenant;
        HEARTH_ASSERT(name.n >= 1 && name.n <= HEARTH_TENANT_MAX_BYTES);
        HEARTH_ASSERT(hearth_str_find(name, '|', 0) == name.n);
        HEARTH_ASSERT(i == 0 || hearth_str_cmp(tenants.v[i - 1].tenant, name) < 0);
    }
}

static void check_credentials(const struct hearth_front_caller *caller, struct hearth_arena *arena)
{
    struct hearth_str token, jwt, id;
    unsigned char hash[HEARTH_SHA256_BYTES];
    struct hearth_err err = HEARTH_ERR_INIT;

    if (hearth_caller_token(caller, arena, &token, &jwt, &err) != HEARTH_OK) {
        HEARTH_ASSERT(err.msg[0] != '\0');
        return;
    }

    HEARTH_ASSERT(token.p == NULL || jwt.p == NULL);
    if (token.p != NULL && hearth_token_parse(token, &id, hash)) {
        HEARTH_ASSERT(token.n == HEARTH_TOKEN_TEXT_CHARS && id.n == HEARTH_TOKEN_ID_CHARS);
    }
}

/* A range that is read contains the address that it was read from. */
static void check_range(struct hearth_str value)
{
    struct hearth_network_range range;
    char address[HEARTH_CALLER_ADDRESS_BYTES];

    if (hearth_network_range_parse(value, &range)) {
        size_t n = hearth_str_find(value, '/', 0);
        HEARTH_ASSERT(range.n_bits <= 128 && n < sizeof address);
        memcpy(address, value.p, n);
        address[n] = '\0';
        HEARTH_ASSERT(hearth_network_range_has(&range, address));
    }
}

static void take_line(struct hearth_front_caller *caller, struct hearth_request_ids *ids,
                      struct hearth_str line)
{
    static const struct hearth_proxy_headers proxy = {"x-user", "x-groups"};
    size_t colon = hearth_str_find(line, ':', 0);
    struct hearth_str name = hearth_str_trim(hearth_str_n(line.p, colon));
    struct hearth_str value =
        colon == line.n ? name
                        : hearth_str_trim(hearth_str_n(line.p + colon + 1, line.n - colon - 1));
    char text[MAX_TEXT];

    hearth_caller_take_field(caller, &proxy, name, value);
    if (hearth_str_eq_nocase(name, HEARTH_STR(HEARTH_REQUEST_ID_HEADER))) {
        hearth_request_ids_take_id(ids, value);
    } else if (hearth_str_eq_nocase(name, HEARTH_STR("traceparent"))) {
        hearth_request_ids_take_traceparent(ids, value);
    } else if (hearth_str_eq_nocase(name, HEARTH_STR("peer")) && value.n < sizeof text) {
        memcpy(text, value.p, value.n);
        text[value.n] = '\0';
        hearth_caller_set_address(caller, text);
        HEARTH_ASSERT(strlen(caller->address) < sizeof caller->address);
    }
    check_range(value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const ranges[] = {"10.0.0.0/8", "::1", NULL};
    struct hearth_front_caller caller = {.modes = 0};
    struct hearth_request_ids ids;
    struct hearth_arena arena;
    struct hearth_str text = {(const char *)data, size};

    hearth_request_ids_init(&ids);
    hearth_arena_init(&arena, 1u << 20);
    for (size_t from = 0; from < text.n;) {
        size_t to = hearth_str_find(text, '\n', from);
        take_line(&caller, &ids, hearth_str_n(text.p + from, to - from));
        from = to + 1;
    }

    check_request_id(&ids);
    bool is_recorded = hearth_request_ids_begin_span(&ids, 1 + (int64_t)(size % 3));
    HEARTH_ASSERT(is_recorded == (ids.span != 0));
    check_tenants(&caller, &arena);
    check_credentials(&caller, &arena);
    if (hearth_caller_is_within(&caller, ranges)) {
        hearth_caller_use_forwarded(&caller);
        HEARTH_ASSERT(caller.address[0] != '\0');
    }
    (void)hearth_caller_is_same_origin(&caller);
    hearth_arena_release(&arena);

    return 0;
}
