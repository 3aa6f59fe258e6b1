/*
 * config_options.h -- options.def as a table (private to the app layer).
 *
 *   config_options.c  the table
 *   config.c          reads options from file, environment and flags
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

#endif
