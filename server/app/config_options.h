/*
 * config_options.h -- options.def as a table (private to the app layer).
 *
 *   config_options.c  the table
 *   config.c          reads options from file, environment and flags
 *   secret_options.c  secrets in files; overwrites those in arguments and environment
 *   config_print.c    --help and --print-config
 *   mask_url.c        hides passwords
 */
#ifndef HEARTH_APP_CONFIG_OPTIONS_H
#define HEARTH_APP_CONFIG_OPTIONS_H

#include "hearth/app/config.h"

enum hearth_option_kind {
    TEXT,
    SECRET,
    TOKEN,
    LIST,
    INT,
    BYTES,
    DURATION,
    BOOL,
};

struct hearth_option {
    const char *group; /* the row begins a group with this name and has no option; otherwise NULL */
    enum hearth_option_kind kind;
    size_t offset;
    const char *flag, *def, *help;
};

extern const struct hearth_option hearth_options[];
extern const size_t hearth_n_options;

/* By flag ("max-samples") and by variable ("HEARTH_MAX_SAMPLES"); NULL: none. */
const struct hearth_option *hearth_option_find(struct hearth_str flag);
const struct hearth_option *hearth_option_find_variable(struct hearth_str name);

/* The text of --help; NULL: no option has the name. */
const char *hearth_option_help(const char *flag);
bool hearth_option_is_secret(const struct hearth_option *option);
/* The option that names the file of a secret, such as "agent-token-file" of "agent-token". */
const struct hearth_option *hearth_option_find_file(const struct hearth_option *secret);

/* Read the secrets whose -file option is set. */
HEARTH_MUST_CHECK
enum hearth_status hearth_config_read_secrets(struct hearth_config *config,
                                              char *const *environment, struct hearth_err *err);
HEARTH_MUST_CHECK
enum hearth_status hearth_config_copy_secrets(struct hearth_config *to,
                                              const struct hearth_config *from,
                                              struct hearth_err *err);
void hearth_config_free_secrets(struct hearth_config *config);
/* Add a line for the log of the start; the text is in the config's arena; NULL is ignored. */
void hearth_config_warn(struct hearth_config *config, const char *text);

#endif
