/*
 * config_options.h -- options.def as a table (private to the app layer).
 *
 *   config_options.c  the table
 *   option_values.c   values from text
 *   config.c          reads options from environment and flags; what the table cannot express
 *   config_file.c     reads options from the file
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

/* Places of values that are not lines of a file; messages show them. */
#define HEARTH_FROM_FLAG        "flag"
#define HEARTH_FROM_ENVIRONMENT "environment"

struct hearth_option {
    /*
     * The row begins a group with this name, and with this name in files, and has no option;
     * otherwise NULL.
     */
    const char *group, *section;
    enum hearth_option_kind kind;
    bool is_live; /* a reload applies a new value */
    size_t offset;
    const char *flag, *def, *help;
};

extern const struct hearth_option hearth_options[];
extern const size_t hearth_n_options;

/* By flag ("max-samples") and by variable ("HEARTH_MAX_SAMPLES"); NULL: none. */
const struct hearth_option *hearth_option_find(struct hearth_str flag);
const struct hearth_option *hearth_option_find_variable(struct hearth_str name);

/* The name in files of the group of an option. */
const char *hearth_option_section(const struct hearth_option *option);
/* The name of an option in its section: its flag, without "SECTION." before it. */
const char *hearth_option_key(const struct hearth_option *option);
/* The row that begins a section; NULL: none has the name. */
const struct hearth_option *hearth_option_find_section(struct hearth_str name);
/* The option of a section by its key; NULL: none. */
const struct hearth_option *hearth_option_find_key(const struct hearth_option *section,
                                                   struct hearth_str key);
/* The flag, or the section, that differs from a text in the fewest letters; NULL: none is near. */
const char *hearth_option_nearest(struct hearth_str text);
const char *hearth_option_nearest_section(struct hearth_str text);

/*
 * Set one option from text. `from`: place of the text, for messages; it is kept. `more`: append to
 * a list. INVALID_ARGUMENT names place, option and value.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_option_set(struct hearth_config *config,
                                     const struct hearth_option *option, struct hearth_str text,
                                     const char *from, bool more, struct hearth_err *err);
/* Set a list from items, which may have commas. */
HEARTH_MUST_CHECK
enum hearth_status hearth_option_set_items(struct hearth_config *config,
                                           const struct hearth_option *option,
                                           const struct hearth_str *items, size_t n,
                                           const char *from, struct hearth_err *err);
/* Copy the value of an option that is not a secret; texts stay where they are. */
void hearth_option_copy(struct hearth_config *to, const struct hearth_config *from,
                        const struct hearth_option *option);
/* A text as quoted in messages: the password of a URL in the wrong place must not be shown. */
const char *hearth_config_quote(struct hearth_config *config, struct hearth_str text);

/* Read the file. Mistakes in it are noted; an error says that it cannot be read. */
HEARTH_MUST_CHECK
enum hearth_status hearth_config_load_file(struct hearth_config *config, const char *path,
                                           struct hearth_err *err);

/* The text of --help; NULL: no option has the name. */
const char *hearth_option_help(const char *flag);
bool hearth_option_is_secret(const struct hearth_option *option);
/* The option that names the file of a secret, such as "agent-token-file" of "agent-token". */
const struct hearth_option *hearth_option_find_file(const struct hearth_option *secret);

/*
 * Read the secrets whose -file option is set, and note mistakes. A reload keeps a secret that it
 * cannot read any more, with a warning if it would have applied another one.
 */
void hearth_config_read_secrets(struct hearth_config *config, char *const *environment);
/* True in a reload for a secret that stood in an argument or a variable, which was overwritten. */
bool hearth_option_was_wiped(const struct hearth_config *config,
                             const struct hearth_option *option);
/* In a reload: copy those secrets, and those of files of their own, which may be unreadable now. */
HEARTH_MUST_CHECK
enum hearth_status hearth_config_copy_secrets(struct hearth_config *config, struct hearth_err *err);
/* After a reload: give secrets that need a restart the values that they have in `before`. */
HEARTH_MUST_CHECK
enum hearth_status hearth_config_keep_start_secrets(struct hearth_config *config,
                                                    struct hearth_err *err);
void hearth_config_free_secrets(struct hearth_config *config);
/* Add a line for the log of the start; the text is in the config's arena; NULL is ignored. */
void hearth_config_warn(struct hearth_config *config, const char *text);

#endif
