/* access_fixture.h -- a store, tokens, users and sessions for tests of store_access.h. */
#ifndef HEARTH_TESTS_UNIT_STORE_ACCESS_FIXTURE_H
#define HEARTH_TESTS_UNIT_STORE_ACCESS_FIXTURE_H

#include "hearth/store/store_access.h"

#include "housekeeping.h"
#include "pg/pg.h"
#include "pg/store_state.h"
#include "store_fixture.h"
#include "store_scope.h"

#define DAY_MS (HEARTH_NS_PER_DAY / HEARTH_NS_PER_MS)

struct access_fixture {
    char url[256];
    struct hearth_store *store;
    struct hearth_arena arena;
    struct hearth_pg pg; /* of this thread */
};

static inline void open_access(struct access_fixture *fix)
{
    *fix = (struct access_fixture){0};
    struct hearth_store_options options;
    hearth_store_options_init(&options);
    options.retain_audit_ns = 0; /* until a test says otherwise */
    fix->store = open_fresh(fix->url, &options);
    hearth_arena_init(&fix->arena, 0);
    fix->pg.url = test_secret(fix->url);
    assert_ok(hearth_pg_connect(&fix->pg, CONNECT_MS, &err));
}

static inline void close_access(struct access_fixture *fix)
{
    hearth_pg_close(&fix->pg);
    hearth_arena_release(&fix->arena);
    close_store(fix->store);
}

#define SCOPE(fix) STORE_SCOPE((fix)->store, HEARTH_STR(""), &(fix)->arena)

static inline int64_t now_ms(void)
{
    return hearth_clock_wall_ns() / HEARTH_NS_PER_MS;
}

/* 32 bytes that differ by `n`; valid until the call with the same n of 0 to 15. */
static inline struct hearth_str make_hash(int n)
{
    static char hashes[16][HEARTH_SHA256_BYTES];
    memset(hashes[n], 'a' + n, HEARTH_SHA256_BYTES);
    return hearth_str_n(hashes[n], HEARTH_SHA256_BYTES);
}

static inline struct hearth_token make_token(const char *id, int n)
{
    return (struct hearth_token){.id = hearth_str_c(id),
                                 .name = HEARTH_STR("ci"),
                                 .hash = make_hash(n),
                                 .created_by = HEARTH_STR("user:root"),
                                 .created_ms = 1000};
}

static inline struct hearth_user make_user(const char *name)
{
    return (struct hearth_user){.name = hearth_str_c(name),
                                .password = HEARTH_STR("$argon2id$1"),
                                .created_by = HEARTH_STR("user:root"),
                                .created_ms = 2000,
                                .password_ms = 2000};
}

static inline struct hearth_session make_session(const char *subject, int n, int64_t created_ms)
{
    return (struct hearth_session){.hash = make_hash(n),
                                   .subject = hearth_str_c(subject),
                                   .created_ms = created_ms,
                                   .last_used_ms = created_ms,
                                   .expires_ms = now_ms() + DAY_MS,
                                   .address = HEARTH_STR("127.0.0.1"),
                                   .agent = HEARTH_STR("browser")};
}

static inline struct hearth_stored_grant make_grant(const char *subject, const char *tenant,
                                                    const char *selector)
{
    return (struct hearth_stored_grant){.grant = {.subject = hearth_str_c(subject),
                                                  .tenant = hearth_str_c(tenant),
                                                  .role = HEARTH_ROLE_VIEWER,
                                                  .selector = hearth_str_c(selector)},
                                        .created_by = HEARTH_STR("user:root"),
                                        .created_ms = 3000};
}

static inline void add_token(struct access_fixture *fix, const struct hearth_token *token)
{
    assert_ok(hearth_store_token_add(SCOPE(fix), token, NULL, 0, &err));
}

static inline void add_user(struct access_fixture *fix, const char *name)
{
    struct hearth_user user = make_user(name);
    assert_ok(hearth_store_user_add(SCOPE(fix), &user, &err));
}

static inline void add_session(struct access_fixture *fix, const char *subject, int n,
                               int64_t created_ms, int64_t max)
{
    struct hearth_session session = make_session(subject, n, created_ms);
    assert_ok(hearth_store_session_add(SCOPE(fix), &session, max, &err));
}

static inline int32_t add_grant(struct access_fixture *fix, const char *subject, const char *tenant,
                                const char *selector)
{
    struct hearth_stored_grant grant = make_grant(subject, tenant, selector);
    int32_t id = 0;
    assert_ok(hearth_store_grant_add(SCOPE(fix), &grant, &id, &err));
    return id;
}

static inline struct hearth_access_rows load(struct access_fixture *fix)
{
    struct hearth_access_rows rows;
    assert_ok(hearth_store_access_load(SCOPE(fix), &rows, &err));
    return rows;
}

static inline int64_t version_of(struct hearth_store *store)
{
    int64_t version = 0;
    assert_ok(
        hearth_store_access_version(STORE_SCOPE(store, HEARTH_STR(""), NULL), &version, &err));
    return version;
}

/* Expects this status of an expression that may use `err`, with a message that has the text. */
#define assert_fails(expr, status, text)         \
    do {                                         \
        struct hearth_err err = HEARTH_ERR_INIT; \
        assert_int_equal((expr), (status));      \
        assert_non_null(strstr(err.msg, text));  \
    } while (0)

#endif
