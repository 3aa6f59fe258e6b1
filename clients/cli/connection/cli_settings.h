/*
 * cli_settings.h -- how `hearth` reaches a server: settings of options, variables and contexts.
 *
 * An option counts before a variable, a variable before the context, the context before the default.
 * token, token-file and token-command are one setting in this order. What a context has for its own
 * server (credentials, headers, files of TLS) is used for no other server.
 *
 * Not thread-safe.
 */
#ifndef HEARTH_CLIENTS_CLI_SETTINGS_H
#define HEARTH_CLIENTS_CLI_SETTINGS_H

#include "cli.h"

#include <stdlib.h>

#define CONTEXT_FILE_BYTES ((size_t)1 << 20)
#define CONTEXT_TEXT_BYTES ((size_t)4 << 10) /* of a name or a value */
#define MAX_CONTEXTS       256

/* A setting whose value is a text. */
struct cli_setting {
    const char *key;      /* in the file; with --, the option */
    const char *variable; /* NULL: none */
    size_t at;            /* offset of the field in struct cli */
    bool is_in_file;
    bool is_path;      /* absolute in the file */
    bool is_of_server; /* used for the server of the context only */
    bool is_token;     /* one of the sources of the token */
};

extern const struct cli_setting cli_settings[CLI_N_SETTINGS];

/* The field of a setting. */
const char **cli_setting_at(struct cli *cli, size_t setting);
/* NULL if the variable is unset or empty. */
static inline const char *cli_find_variable(const char *name)
{
    const char *value = name == NULL ? NULL : getenv(name);
    return value == NULL || value[0] == '\0' ? NULL : value;
}

struct cli_context {
    const char *name;
    const char *values[CLI_N_SETTINGS]; /* NULL: not set */
    struct cli_texts headers;           /* "NAME: VALUE" */
    bool skip_verify;
};

struct cli_contexts {
    const char *path;
    const char *current; /* NULL: none */
    struct cli_context *v;
    size_t n;
};

/*
 * The proxy for a URL of a server, in the arena, by the variables grpc_proxy, HTTPS_PROXY,
 * https_proxy and http_proxy; NULL: none, or NO_PROXY has the host. *ret_variable names the one it
 * is from. NO_MEMORY.
 */
HEARTH_MUST_CHECK enum hearth_status cli_find_proxy(struct cli *cli, const char *url,
                                                    const char **ret, const char **ret_variable);

/* ---- cli_settle.c ---- */

/*
 * Fills the settings that no option gives from variables, the context and defaults. NOT_FOUND for a
 * context that does not exist; INVALID_ARGUMENT for mistakes in headers and in the file of contexts.
 */
HEARTH_MUST_CHECK enum hearth_status cli_settle(struct cli *cli);

/* ---- user_file.c ---- */

/* hearth/NAME below the folder that the variable names, otherwise below a folder of the home, in the arena; NULL:
 * neither the variable nor HOME is set. */
const char *cli_user_path(struct cli *cli, const char *variable, const char *folder,
                          const char *name);
/* Replaces a file as a whole, with mode 0600, and makes the two folders above it. FAILED_PRECONDITION if it cannot be
 * written. */
HEARTH_MUST_CHECK enum hearth_status cli_replace_file(struct cli *cli, const char *path,
                                                      struct hearth_str text);

/* ---- completion_cache.c ---- */

#define CLI_CACHE_SECONDS 30

/*
 * Finds names that the same server sent to completion within CLI_CACHE_SECONDS, for the same tenant
 * and credentials: lines of text in the arena. `kind` is a plain word. Returns false if the cache
 * has no such names, or if other users can access its file.
 */
bool cli_cache_find(struct cli *cli, const char *kind, struct hearth_str *ret);
/* Keeps them, if they are few; a failure is ignored: the server is asked again. */
void cli_cache_keep(struct cli *cli, const char *kind, struct hearth_str lines);

/* ---- context_file.c ---- */

/*
 * Reads contexts from the text of a file, which may be empty. INVALID_ARGUMENT, with the line. The contexts live in the
 * arena, with room for one more; the path is not set.
 */
HEARTH_MUST_CHECK enum hearth_status cli_parse_contexts(struct hearth_str text,
                                                        struct hearth_arena *arena,
                                                        struct cli_contexts *ret,
                                                        struct hearth_err *err);
/* Appends a text that reads as the same contexts. */
void cli_format_contexts(const struct cli_contexts *contexts, struct hearth_buf *out);
/*
 * Reads the file of the user, hearth/config.yaml below $XDG_CONFIG_HOME or ~/.config; without one
 * there are no contexts. INVALID_ARGUMENT, with file and line, for mistakes in it, and if others may
 * write it, or read it although it has secrets (headers, commands).
 */
HEARTH_MUST_CHECK enum hearth_status cli_read_contexts(struct cli *cli, struct cli_contexts *ret);
/* Replaces the file as a whole, with mode 0600. FAILED_PRECONDITION if it cannot be written. */
HEARTH_MUST_CHECK enum hearth_status cli_write_contexts(struct cli *cli,
                                                        const struct cli_contexts *contexts);
/* The context of a name; NOT_FOUND with the nearest name. */
HEARTH_MUST_CHECK enum hearth_status cli_find_context(struct cli *cli,
                                                      const struct cli_contexts *contexts,
                                                      const char *name, struct cli_context **ret);
/* INVALID_ARGUMENT if a text cannot be a name: 1 to 64 letters, digits, "." "_" and "-". */
HEARTH_MUST_CHECK enum hearth_status cli_check_context_name(const char *name,
                                                            struct hearth_err *err);
/* INVALID_ARGUMENT if one of the first n headers has the name, too: the file has one value for it. */
HEARTH_MUST_CHECK enum hearth_status cli_check_header_is_first(const struct cli_texts *headers,
                                                               size_t n, struct hearth_str name,
                                                               struct hearth_err *err);

#endif
