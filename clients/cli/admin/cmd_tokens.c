/*
 * cmd_tokens.c -- hearth admin tokens.
 *
 * A new token alone stands on standard output, so that `> FILE` makes a token file; what it may do
 * stands on standard error.
 */
#include "hearth/base/clock.h"
#include "hearth/selector/timeexpr.h"

#include "ask.h"
#include "cli_call.h"
#include "cli_messages.h"
#include "cmd_access.h"
#include "text.h"

#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- options ---- */

/* --expires as a time; 0: never, or the option is missing. */
static enum hearth_status read_expiry(struct cli *cli, int64_t *ret_ms)
{
    const char *text = cli->access.expires;
    struct hearth_err ignored = HEARTH_ERR_INIT;
    int64_t ns;

    *ret_ms = 0;
    if (text == NULL || strcmp(text, "never") == 0) {
        return HEARTH_OK;
    }
    if (hearth_duration_parse(hearth_str_c(text), &ns, &ignored) == HEARTH_OK) {
        if (__builtin_add_overflow(cli->now_ns, ns, &ns)) {
            ns = INT64_MAX;
        }
    } else if (cli_parse_time(cli, text, &ns) != HEARTH_OK) {
        return HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT,
                           "--expires must be a duration like 90d, a time like 2027-01-31, or "
                           "never, not \"%.100s\"",
                           text);
    }
    if (ns <= cli->now_ns) {
        return HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT,
                           "--expires %.100s is over already: the token would never be valid",
                           text);
    }
    *ret_ms = ns / HEARTH_NS_PER_MS;

    return HEARTH_OK;
}

/* TENANT:ROLE[:SELECTOR]; only the selector may contain colons. */
static enum hearth_status read_grant(struct cli *cli, const char *text, Hearth__V1__Grant *ret)
{
    struct hearth_str all = hearth_str_c(text);
    size_t first = hearth_str_find(all, ':', 0);
    size_t second = first < all.n ? hearth_str_find(all, ':', first + 1) : all.n;

    if (first == 0 || first >= all.n || second == first + 1) {
        return HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT,
                           "--grant \"%.100s\" is not TENANT:ROLE or TENANT:ROLE:SELECTOR", text);
    }
    const char *tenant = hearth_arena_strndup(&cli->arena, text, first);
    const char *role = hearth_arena_strndup(&cli->arena, text + first + 1, second - first - 1);
    if (tenant == NULL || role == NULL) {
        return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
    }

    return cli_make_grant(cli, tenant, second < all.n ? text + second + 1 : NULL, role, ret);
}

/* That of --role first, then those of --grant. */
static enum hearth_status read_grants(struct cli *cli, Hearth__V1__CreateTokenRequest *request)
{
    const struct cli_access *access = &cli->access;
    size_t n = access->grants.n + (access->role != NULL ? 1 : 0), at = 0;

    if (n == 0) {
        return HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT,
                           "tokens create requires --role ROLE, which is ingest, viewer, profiler, "
                           "editor or admin, or --grant TENANT:ROLE");
    }
    if (access->selector != NULL && access->role == NULL) {
        return HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT,
                           "--selector narrows --role; for --grant write TENANT:ROLE:SELECTOR");
    }
    Hearth__V1__Grant *grants = hearth_arena_array(&cli->arena, n, sizeof *grants);
    request->grants = hearth_arena_array(&cli->arena, n, sizeof *request->grants);
    if (grants == NULL || request->grants == NULL) {
        return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
    }

    if (access->role != NULL) {
        HEARTH_TRY(cli_make_grant(cli, NULL, access->selector, access->role, &grants[at++]));
    }
    for (size_t i = 0; i < access->grants.n; i++) {
        HEARTH_TRY(read_grant(cli, access->grants.v[i], &grants[at++]));
    }
    for (size_t i = 0; i < n; i++) {
        request->grants[i] = &grants[i];
    }
    request->n_grants = n;

    return HEARTH_OK;
}

/* ---- new tokens ---- */

static void advise_about_file(void)
{
    struct stat found;
    bool is_open = fstat(STDOUT_FILENO, &found) == 0 && S_ISREG(found.st_mode) &&
                   (found.st_mode & (S_IRWXG | S_IRWXO)) != 0;
    (void)fprintf(stderr, "It is shown this once.%s\n",
                  is_open ? " Others can read the file: chmod 600 it, or hearth refuses it." : "");
}

static enum cli_exit print_created(struct cli *cli, const Hearth__V1__CreatedToken *created)
{
    struct hearth_buf out;

    advise_about_file();
    hearth_buf_init(&out, 0);
    cli_fit(hearth_str_c(created->token), INT_MAX, false, &out);
    hearth_buf_byte(&out, '\n');

    return cli_print_answer(cli, &created->base, &out);
}

/* "never ends", "ends 2026-11-20T10:36:00Z". */
static void put_end(int64_t expires_ms, char out[48])
{
    char end[32];

    cli_date(expires_ms, end);
    (void)snprintf(out, 48, "%s%s", expires_ms == 0 ? "never ends" : "ends ",
                   expires_ms == 0 ? "" : end);
}

static void say_created(const Hearth__V1__CreatedToken *created,
                        const Hearth__V1__CreateTokenRequest *request)
{
    char end[48];
    struct hearth_buf text;

    hearth_buf_init(&text, 0);
    hearth_buf_printf(&text, "%s \"%s\"", created->id, request->name);
    for (size_t i = 0; i < request->n_grants; i++) {
        hearth_buf_cstr(&text, i == 0 ? ": " : "; ");
        cli_put_grant(request->grants[i], &text);
    }
    put_end(created->expires_ms, end);
    hearth_buf_printf(&text, "; %s", end);
    hearth_buf_byte(&text, '\0');
    if (!hearth_buf_failed(&text)) {
        cli_say("token", text.p);
    }
    hearth_buf_release(&text);
}

enum cli_exit cli_tokens_create(struct cli *cli)
{
    Hearth__V1__CreateTokenRequest request;
    Hearth__V1__CreatedToken *answer = NULL;
    hearth__v1__create_token_request__init(&request);
    request.name = cli_field(cli, cli->args[0]);
    enum hearth_status status = read_expiry(cli, &request.expires_ms);
    if (status == HEARTH_OK) {
        status = read_grants(cli, &request);
    }
    if (status == HEARTH_OK) {
        status = cli_call(cli, CLI_ACCESS "CreateToken", &request,
                          &hearth__v1__created_token__descriptor, &answer);
    }
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    say_created(answer, &request);

    return print_created(cli, answer);
}

enum cli_exit cli_tokens_rotate(struct cli *cli)
{
    Hearth__V1__RotateTokenRequest request;
    Hearth__V1__CreatedToken *answer = NULL;
    hearth__v1__rotate_token_request__init(&request);
    request.id = cli_field(cli, cli->args[0]);
    enum hearth_status status = read_expiry(cli, &request.expires_ms);
    request.never_expires = cli->access.expires != NULL && request.expires_ms == 0;
    int64_t overlap_ns = 0;
    if (status == HEARTH_OK && cli->access.overlap != NULL &&
        strcmp(cli->access.overlap, "0") != 0) {
        status = hearth_duration_parse(hearth_str_c(cli->access.overlap), &overlap_ns, &cli->err);
    }
    request.overlap_ms = overlap_ns / HEARTH_NS_PER_MS;
    if (status == HEARTH_OK) {
        status = cli_call(cli, CLI_ACCESS "RotateToken", &request,
                          &hearth__v1__created_token__descriptor, &answer);
    }
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }

    char end[48], overlap[48];
    put_end(answer->expires_ms, end);
    cli_duration(request.overlap_ms, overlap);
    (void)fprintf(stderr, "token: %s has the name and grants of %s; %s; the old one %s%s\n",
                  answer->id, cli->args[0], end, request.overlap_ms == 0 ? "has ended" : "ends in ",
                  request.overlap_ms == 0 ? "" : overlap);

    return print_created(cli, answer);
}

/* ---- the others ---- */

enum cli_exit cli_tokens_delete(struct cli *cli)
{
    Hearth__V1__DeleteTokenRequest request;
    Hearth__V1__DeleteTokenResponse *answer = NULL;
    hearth__v1__delete_token_request__init(&request);
    request.id = cli_field(cli, cli->args[0]);
    enum hearth_status status = cli_call(cli, CLI_ACCESS "DeleteToken", &request,
                                         &hearth__v1__delete_token_response__descriptor, &answer);

    return status == HEARTH_OK
               ? cli_print_done(cli, &answer->base, "token %s is deleted", cli->args[0])
               : cli_fail(cli, status);
}

enum cli_exit cli_tokens_list(struct cli *cli)
{
    Hearth__V1__ListTokensRequest request;
    Hearth__V1__ListTokensResponse *answer = NULL;
    hearth__v1__list_tokens_request__init(&request);
    enum hearth_status status = cli_call(cli, CLI_ACCESS "ListTokens", &request,
                                         &hearth__v1__list_tokens_response__descriptor, &answer);
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }

    struct cli_listing list;
    cli_list_begin(cli, &list);
    list.empty = "there are no tokens";
    for (size_t i = 0; i < answer->n_tokens; i++) {
        const Hearth__V1__Token *token = answer->tokens[i];
        cli_list_text(&list, token->id);
        cli_list_text(&list, token->name);
        cli_list_time(&list, token->created_ms);
        cli_list_text(&list, token->created_by);
        cli_list_time(&list, token->expires_ms);
        cli_list_time(&list, token->last_used_ms);
        cli_list_text(&list, token->last_used_from);
        cli_list_grants(&list, token->grants, token->n_grants);
    }

    return cli_list_end(&list, &answer->base);
}
