/* jwt.c -- reads tokens; contract: jwt.h. */
#include "oidc/jwt.h"

#include "hearth/base/base64.h"
#include "hearth/codec/json_reader.h"

static enum hearth_status refuse_jwt(struct hearth_err *err, const char *why)
{
    return HEARTH_FAIL(err, HEARTH_UNAUTHENTICATED, "the JWT is refused: %s", why);
}

/* ---- the three parts ---- */

/* base64url has no other characters; hearth_base64_decode would accept some. */
static bool is_base64url(struct hearth_str text)
{
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        if (!((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
              c == '-' || c == '_')) {
            return false;
        }
    }

    return true;
}

static enum hearth_status decode_part(struct hearth_str text, const char *what,
                                      struct hearth_arena *arena, struct hearth_str *ret,
                                      struct hearth_err *err)
{
    if (!is_base64url(text) || !hearth_base64_decode(text, arena, ret)) {
        return arena->refused ? HEARTH_FAIL_ARENA(err, arena)
                              : HEARTH_FAIL(err, HEARTH_UNAUTHENTICATED,
                                            "the JWT is refused: its %s is not base64url", what);
    }

    return HEARTH_OK;
}

/* ---- the header ---- */

struct jwt_header {
    struct hearth_str alg, kid, typ;
    bool is_critical; /* has the member "crit" */
};

/* Reads a text into a member that was not read before. */
static void read_header_text(struct hearth_json_reader *r, struct hearth_arena *arena,
                             struct hearth_str *ret)
{
    if (ret->p != NULL) {
        hearth_json_reader_fail(r, "a member is there twice");
    }
    *ret = hearth_json_reader_text(r, arena);
}

static enum hearth_status read_jwt_header(struct hearth_str json, struct hearth_arena *arena,
                                          struct jwt_header *ret, struct hearth_err *err)
{
    struct hearth_json_reader r;
    struct hearth_str name;
    struct hearth_err why = HEARTH_ERR_INIT;

    hearth_json_reader_init(&r, json);
    hearth_json_reader_object(&r);
    while (hearth_json_reader_member(&r, &name)) {
        if (hearth_str_eq_c(name, "alg")) {
            read_header_text(&r, arena, &ret->alg);
        } else if (hearth_str_eq_c(name, "kid")) {
            read_header_text(&r, arena, &ret->kid);
        } else if (hearth_str_eq_c(name, "typ")) {
            read_header_text(&r, arena, &ret->typ);
        } else {
            ret->is_critical = ret->is_critical || hearth_str_eq_c(name, "crit");
            hearth_json_reader_skip(&r);
        }
    }

    enum hearth_status status = hearth_json_reader_end(&r, &why);
    if (status == HEARTH_NO_MEMORY) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    return status == HEARTH_OK ? HEARTH_OK
                               : HEARTH_FAIL(err, HEARTH_UNAUTHENTICATED,
                                             "the JWT is refused: its header: %s", why.msg);
}

/* Logout tokens, proofs of possession and others must not be taken for credentials. */
static bool is_credential_type(struct hearth_str typ)
{
    static const char *const types[] = {"jwt", "at+jwt", "application/at+jwt", "application/jwt"};

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(types); i++) {
        if (hearth_str_eq_nocase(typ, hearth_str_c(types[i]))) {
            return true;
        }
    }

    return typ.p == NULL;
}

enum hearth_status hearth_jwt_parse(struct hearth_str text, struct hearth_arena *arena,
                                    struct hearth_jwt *ret, struct hearth_err *err)
{
    struct jwt_header header = {.is_critical = false};
    struct hearth_jwt jwt = {.alg = NULL};
    struct hearth_str json;

    if (text.n > HEARTH_JWT_MAX_BYTES) {
        return HEARTH_FAIL(err, HEARTH_UNAUTHENTICATED,
                           "the JWT is refused: it has %zu bytes; at most %zu are read", text.n,
                           HEARTH_JWT_MAX_BYTES);
    }

    size_t first = hearth_str_find(text, '.', 0);
    size_t second = first < text.n ? hearth_str_find(text, '.', first + 1) : text.n;
    if (second >= text.n) {
        return refuse_jwt(err, "it does not have three parts");
    }

    HEARTH_TRY(decode_part(hearth_str_n(text.p, first), "header", arena, &json, err));
    HEARTH_TRY(decode_part(hearth_str_n(text.p + first + 1, second - first - 1), "payload", arena,
                           &jwt.payload, err));
    HEARTH_TRY(decode_part(hearth_str_n(text.p + second + 1, text.n - second - 1), "signature",
                           arena, &jwt.signature, err));
    HEARTH_TRY(read_jwt_header(json, arena, &header, err));

    jwt.alg = hearth_jwt_alg_find(header.alg);
    if (jwt.alg == NULL) {
        return HEARTH_FAIL(err, HEARTH_UNAUTHENTICATED,
                           "the JWT is refused: its algorithm \"" HEARTH_STR_FMT
                           "\" is not accepted; RS, PS and ES with 256, 384 or 512, and EdDSA are",
                           HEARTH_STR_ARG(header.alg));
    }
    if (header.is_critical) {
        return refuse_jwt(err, "its header has critical extensions");
    }
    if (!is_credential_type(header.typ)) {
        return refuse_jwt(err, "its type (typ) is not JWT or at+jwt");
    }

    jwt.key_id = header.kid;
    jwt.signed_part = hearth_str_n(text.p, second);
    *ret = jwt;

    return HEARTH_OK;
}
