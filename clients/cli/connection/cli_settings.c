/* cli_settings.c -- the table of settings (contract: cli_settings.h). */
#include "cli_settings.h"

#include <assert.h>
#include <stddef.h>

#define FIELD(name) offsetof(struct cli, name)

/* The order of the sources of the token is their precedence. */
const struct cli_setting cli_settings[CLI_N_SETTINGS] = {
    [CLI_SETTING_URL] = {"url", "HEARTH_URL", FIELD(url), .is_in_file = true},
    [CLI_SETTING_TENANT] = {"tenant", "HEARTH_TENANT", FIELD(tenant), .is_in_file = true},
    [CLI_SETTING_TOKEN] = {"token", "HEARTH_TOKEN", FIELD(token), .is_token = true},
    [CLI_SETTING_TOKEN_FILE] = {"token-file", "HEARTH_TOKEN_FILE", FIELD(token_file),
                                .is_in_file = true, .is_path = true, .is_of_server = true,
                                .is_token = true},
    [CLI_SETTING_TOKEN_COMMAND] = {"token-command", NULL, FIELD(token_command), .is_in_file = true,
                                   .is_of_server = true, .is_token = true},
    [CLI_SETTING_CA_FILE] = {"ca-file", "HEARTH_CA_FILE", FIELD(ca_file), .is_in_file = true,
                             .is_path = true, .is_of_server = true},
    [CLI_SETTING_CERT_FILE] = {"cert-file", "HEARTH_CERT_FILE", FIELD(cert_file),
                               .is_in_file = true, .is_path = true, .is_of_server = true},
    [CLI_SETTING_KEY_FILE] = {"key-file", "HEARTH_KEY_FILE", FIELD(key_file), .is_in_file = true,
                              .is_path = true, .is_of_server = true},
    [CLI_SETTING_TIMEOUT] = {"timeout", NULL, FIELD(timeout), .is_in_file = true},
};

const char **cli_setting_at(struct cli *cli, size_t setting)
{
    assert(setting < CLI_N_SETTINGS);

    void *field = (char *)cli + cli_settings[setting].at;

    return field;
}
