/* limits.c -- defaults of limits.def; limits of tenants; limits as text. */
#include "hearth/engine/limits.h"

#include "hearth/model/access.h"
#include "hearth/selector/timeexpr.h"
#include "hearth/store/settings.h"

#include <assert.h>

void hearth_limits_init(struct hearth_limits *limits)
{
    *limits = (struct hearth_limits){
#define X(type, field, def) .field = (def),
#include "hearth/engine/limits.def"
#undef X
        .demangle = HEARTH_DEMANGLE_SIMPLE,
    };
}

const struct hearth_limit hearth_tenant_limits[] = {
#define T(kind, field, name) {name, HEARTH_LIMIT_##kind, offsetof(struct hearth_limits, field)},
#include "hearth/engine/tenant_limits.def"
#undef T
};

const size_t hearth_n_tenant_limits = HEARTH_ARRAY_LEN(hearth_tenant_limits);

/* Values are accessed through the offset, so a member must have the type of its kind. */
#define COUNT_TYPE    int64_t
#define BYTES_TYPE    int64_t
#define DURATION_TYPE int64_t
#define SWITCH_TYPE   bool
#define T(kind, field, name)                                                                      \
    _Static_assert(_Generic(&((struct hearth_limits *)0)->field, kind##_TYPE * : 1, default : 0), \
                   "the type of " name);
#include "hearth/engine/tenant_limits.def"
#undef T

const struct hearth_limit *hearth_limit_find(struct hearth_str name)
{
    for (size_t i = 0; i < hearth_n_tenant_limits; i++) {
        if (hearth_str_eq_c(name, hearth_tenant_limits[i].name)) {
            return &hearth_tenant_limits[i];
        }
    }

    return NULL;
}

int64_t hearth_limit_get(const struct hearth_limit *limit, const struct hearth_limits *limits)
{
    assert(limit != NULL && limits != NULL);

    const char *at = (const char *)limits + limit->offset;
    bool on;
    int64_t value;

    assert(limit->offset < sizeof *limits);

    if (limit->kind == HEARTH_LIMIT_SWITCH) {
        memcpy(&on, at, sizeof on);
        return on;
    }

    memcpy(&value, at, sizeof value);
    return value;
}

/* Called by hearth_store_settings for each setting of a tenant; context: struct hearth_limits. */
static void apply_limit_setting(void *context, struct hearth_str name, int64_t value)
{
    const struct hearth_limit *limit = hearth_limit_find(name);
    if (limit == NULL || value < 0) {
        return;
    }

    char *at = (char *)context + limit->offset;
    if (limit->kind == HEARTH_LIMIT_SWITCH) {
        bool on = value != 0;
        memcpy(at, &on, sizeof on);
    } else {
        memcpy(at, &value, sizeof value);
    }
}

void hearth_limits_of_tenant(const struct hearth_limits *server, struct hearth_store *store,
                             struct hearth_str tenant, struct hearth_limits *ret)
{
    assert(ret != NULL);

    *ret = *server;
    if (store != NULL) {
        hearth_store_settings(store, tenant, apply_limit_setting, ret);
    }
}

/* Keeps the stricter one of two values of a limit. */
static void keep_stricter(const struct hearth_limit *limit, struct hearth_limits *limits,
                          const struct hearth_limits *other)
{
    char *at = (char *)limits + limit->offset;
    int64_t a = hearth_limit_get(limit, limits), b = hearth_limit_get(limit, other);

    if (limit->kind == HEARTH_LIMIT_SWITCH) {
        bool on = a != 0 && b != 0;
        memcpy(at, &on, sizeof on);
    } else if (b != 0 && (a == 0 || b < a)) { /* 0: no limit */
        memcpy(at, &b, sizeof b);
    }
}

void hearth_limits_strictest(const struct hearth_limits *server, struct hearth_store *store,
                             const struct hearth_view *tenants, size_t n, struct hearth_limits *ret)
{
    assert(tenants != NULL && n > 0 && ret != NULL);

    hearth_limits_of_tenant(server, store, tenants[0].tenant, ret);
    for (size_t i = 1; i < n; i++) {
        struct hearth_limits own;
        hearth_limits_of_tenant(server, store, tenants[i].tenant, &own);
        for (size_t k = 0; k < hearth_n_tenant_limits; k++) {
            keep_stricter(&hearth_tenant_limits[k], ret, &own);
        }
    }
}

/* ---- text ---- */

/* A number with an optional unit k, m or g. */
static bool parse_byte_count(struct hearth_str text, int64_t *ret)
{
    static const char units[] = "kmg";
    int64_t factor = 1;

    for (size_t i = 0; text.n > 1 && i < sizeof units - 1; i++) {
        if ((text.p[text.n - 1] | 0x20) == units[i]) {
            factor = INT64_C(1) << 10 * (i + 1);
            text.n--;
            break;
        }
    }

    return hearth_str_to_i64(text, ret) && *ret >= 0 && !__builtin_mul_overflow(*ret, factor, ret);
}

static bool parse_limit_duration(struct hearth_str text, int64_t *ret)
{
    if (hearth_str_eq_c(text, "0")) {
        *ret = 0;
        return true;
    }
    return hearth_duration_parse(text, ret, NULL) == HEARTH_OK && *ret >= 0;
}

static bool parse_limit_switch(struct hearth_str text, int64_t *ret)
{
    *ret = hearth_str_eq_c(text, "true");
    return *ret != 0 || hearth_str_eq_c(text, "false");
}

enum hearth_status hearth_limit_parse(const struct hearth_limit *limit, struct hearth_str text,
                                      int64_t *ret, struct hearth_err *err)
{
    assert(limit != NULL && ret != NULL);

    bool ok = false;
    const char *wanted = "";

    switch (limit->kind) {
    case HEARTH_LIMIT_COUNT:
        wanted = "a whole number";
        ok = hearth_str_to_i64(text, ret) && *ret >= 0;
        break;
    case HEARTH_LIMIT_BYTES:
        wanted = "a number of bytes (64k, 16m, 2g)";
        ok = parse_byte_count(text, ret);
        break;
    case HEARTH_LIMIT_DURATION:
        wanted = "a duration (500ms, 90s, 2h, 7d)";
        ok = parse_limit_duration(text, ret);
        break;
    case HEARTH_LIMIT_SWITCH:
        wanted = "true or false";
        ok = parse_limit_switch(text, ret);
        break;
    }

    return ok ? HEARTH_OK
              : HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "%s = \"%.*s\" is not %s", limit->name,
                            (int)(text.n > 64 ? 64 : text.n), text.n > 0 ? text.p : "", wanted);
}

void hearth_limit_format(const struct hearth_limit *limit, int64_t value, struct hearth_buf *out)
{
    assert(limit != NULL && out != NULL);

    static const char units[] = "kmg";
    char duration[48];
    size_t unit = 0;

    if (limit->kind == HEARTH_LIMIT_SWITCH) {
        hearth_buf_cstr(out, value != 0 ? "true" : "false");
        return;
    }

    if (limit->kind == HEARTH_LIMIT_DURATION && value != 0) {
        hearth_duration_format(value, duration);
        hearth_buf_cstr(out, duration);
        return;
    }

    /* Bytes get the largest unit that divides them. */
    while (limit->kind == HEARTH_LIMIT_BYTES && value != 0 && value % 1024 == 0 &&
           unit < sizeof units - 1) {
        value /= 1024;
        unit++;
    }

    hearth_buf_printf(out, "%lld%.1s", (long long)value, unit == 0 ? "" : &units[unit - 1]);
}
