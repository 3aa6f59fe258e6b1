/* cli_settle.c -- options over variables over the context over defaults (contract: cli_settings.h). */
#include "hearth/base/clock.h"
#include "hearth/selector/timeexpr.h"

#include "cli_settings.h"

#include <stdio.h>

static bool has_any_token(struct cli *cli)
{
    for (size_t i = 0; i < CLI_N_SETTINGS; i++) {
        if (cli_settings[i].is_token && *cli_setting_at(cli, i) != NULL) {
            return true;
        }
    }

    return false;
}

/* Sets what is not set yet. A token of any source stands for all of them. */
static void offer_value(struct cli *cli, size_t setting, const char *value, enum cli_origin origin)
{
    const char **at = cli_setting_at(cli, setting);

    if (value != NULL && *at == NULL && !(cli_settings[setting].is_token && has_any_token(cli))) {
        *at = value;
        cli->origins[setting] = origin;
    }
}

/* Headers of the options, then those of the context with other names. */
static enum hearth_status add_headers(struct cli *cli, const struct cli_texts *texts,
                                      enum cli_origin origin)
{
    size_t n_before = cli->n_headers;

    for (size_t i = 0; i < texts->n; i++) {
        struct hearth_header header;
        HEARTH_TRY(hearth_header_parse(hearth_str_c(texts->v[i]), &header, &cli->err));
        bool is_given = false;
        for (size_t k = 0; k < n_before; k++) {
            is_given = is_given || hearth_str_eq_nocase(cli->headers[k].name, header.name);
        }
        if (is_given) {
            continue;
        }
        if (cli->n_headers == HEARTH_CLIENT_MAX_HEADERS) {
            return HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT, "there are more than %d headers",
                               HEARTH_CLIENT_MAX_HEADERS);
        }
        cli->header_origins[cli->n_headers] = origin;
        cli->header_lines[cli->n_headers] = texts->v[i];
        cli->headers[cli->n_headers++] = header;
    }

    return HEARTH_OK;
}

static bool has_header(const struct cli *cli, struct hearth_str name)
{
    for (size_t i = 0; i < cli->n_headers; i++) {
        if (hearth_str_eq_nocase(cli->headers[i].name, name)) {
            return true;
        }
    }

    return false;
}

/* Sets what the context has. */
static enum hearth_status use_context(struct cli *cli, const struct cli_context *context)
{
    bool is_its_server =
        cli->url == NULL || strcmp(cli->url, context->values[CLI_SETTING_URL]) == 0;
    struct hearth_str authorization = HEARTH_STR("authorization");
    bool is_authorized = has_header(cli, authorization) || has_any_token(cli);

    for (size_t i = 0; i < CLI_N_SETTINGS; i++) {
        bool is_used = is_its_server || !cli_settings[i].is_of_server;
        if (is_used && !(cli_settings[i].is_token && is_authorized)) {
            offer_value(cli, i, context->values[i], CLI_CONTEXT);
        }
    }
    if (is_its_server) {
        HEARTH_TRY(add_headers(cli, &context->headers, CLI_CONTEXT));
        if (context->skip_verify && !cli->skip_verify) {
            cli->skip_verify = true;
            cli->skip_verify_origin = CLI_CONTEXT;
        }
    } else if (cli->context_origin != CLI_CONTEXT) {
        (void)fprintf(
            stderr, "note: the credentials of the context %s are not sent to %s, which %s names\n",
            context->name, cli->url,
            cli->origins[CLI_SETTING_URL] == CLI_FLAG ? "--url"
                                                      : cli_settings[CLI_SETTING_URL].variable);
    }

    return HEARTH_OK;
}

/* --timeout, or that of the context, in milliseconds. */
static enum hearth_status read_timeout(struct cli *cli)
{
    int64_t ns = 0;

    if (cli->timeout == NULL) {
        return HEARTH_OK;
    }
    if (hearth_duration_parse(hearth_str_c(cli->timeout), &ns, &cli->err) != HEARTH_OK ||
        ns < HEARTH_NS_PER_MS) {
        return HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT,
                           "the timeout must be a duration like 90s, at least 1ms");
    }
    cli->timeout_ms = ns / HEARTH_NS_PER_MS;

    return HEARTH_OK;
}

/* Finds the context by --context, HEARTH_CONTEXT, or the file. */
static enum hearth_status find_used_context(struct cli *cli, struct cli_context **ret)
{
    struct cli_contexts contexts;
    const char *variable = cli_find_variable("HEARTH_CONTEXT");

    *ret = NULL;
    HEARTH_TRY(cli_read_contexts(cli, &contexts));
    if (cli->context_name != NULL) {
        cli->context_origin = CLI_FLAG;
    } else if (variable != NULL) {
        cli->context_name = variable;
        cli->context_origin = CLI_ENVIRONMENT;
    } else {
        cli->context_name = contexts.current;
        cli->context_origin = CLI_CONTEXT;
    }

    return cli->context_name == NULL ? HEARTH_OK
                                     : cli_find_context(cli, &contexts, cli->context_name, ret);
}

enum hearth_status cli_settle(struct cli *cli)
{
    struct cli_context *context;

    /* Options, of which --token and --token-file are for different uses. */
    if (cli->token != NULL && cli->token_file != NULL) {
        return HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT,
                           "--token and --token-file cannot be combined");
    }
    for (size_t i = 0; i < CLI_N_SETTINGS; i++) {
        cli->origins[i] = *cli_setting_at(cli, i) == NULL ? CLI_DEFAULT : CLI_FLAG;
    }
    cli->skip_verify_origin = cli->skip_verify ? CLI_FLAG : CLI_DEFAULT;
    HEARTH_TRY(add_headers(cli, &cli->header_texts, CLI_FLAG));

    /* Variables. */
    for (size_t i = 0; i < CLI_N_SETTINGS; i++) {
        offer_value(cli, i, cli_find_variable(cli_settings[i].variable), CLI_ENVIRONMENT);
    }

    /* The context. */
    HEARTH_TRY(find_used_context(cli, &context));
    if (context != NULL) {
        HEARTH_TRY(use_context(cli, context));
    }
    if (cli->url == NULL) {
        cli->url = CLI_DEFAULT_URL;
    }
    HEARTH_TRY(read_timeout(cli));

    return cli_find_proxy(cli, cli->url, &cli->proxy, &cli->proxy_variable);
}
