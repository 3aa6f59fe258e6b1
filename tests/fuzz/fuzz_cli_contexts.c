/*
 * fuzz_cli_contexts.c -- any bytes as the file of contexts of `hearth`: it is refused with a line, or what it says is
 * written again as a text that says the same. Inputs of every sixteenth size also are a real file, which others may
 * read or write if the first byte says so, and are replaced by a real one.
 */
#include "cli_settings.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require_same_text(const char *a, const char *b)
{
    HEARTH_ASSERT((a == NULL) == (b == NULL) && (a == NULL || strcmp(a, b) == 0));
}

static void require_same_context(const struct cli_context *a, const struct cli_context *b)
{
    require_same_text(a->name, b->name);
    HEARTH_ASSERT(a->values[CLI_SETTING_URL] != NULL);
    for (size_t i = 0; i < CLI_N_SETTINGS; i++) {
        require_same_text(a->values[i], b->values[i]);
    }
    HEARTH_ASSERT(a->headers.n == b->headers.n && a->skip_verify == b->skip_verify);
    for (size_t i = 0; i < a->headers.n; i++) {
        struct hearth_header left, right;
        struct hearth_err err = HEARTH_ERR_INIT;
        HEARTH_ASSERT(hearth_header_parse(hearth_str_c(a->headers.v[i]), &left, &err) == HEARTH_OK);
        HEARTH_ASSERT(hearth_header_parse(hearth_str_c(b->headers.v[i]), &right, &err) ==
                      HEARTH_OK);
        HEARTH_ASSERT(hearth_str_eq(left.name, right.name) &&
                      hearth_str_eq(left.value, right.value));
    }
}

static void check_written(const struct cli_contexts *contexts, struct hearth_arena *arena)
{
    struct cli_contexts again = {.n = 0};
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_buf text;

    hearth_buf_init(&text, 0);
    cli_format_contexts(contexts, &text);
    HEARTH_ASSERT(cli_parse_contexts(hearth_buf_view(&text), arena, &again, &err) == HEARTH_OK);
    require_same_text(contexts->current, again.current);
    HEARTH_ASSERT(contexts->n == again.n);
    for (size_t i = 0; i < contexts->n; i++) {
        require_same_context(&contexts->v[i], &again.v[i]);
    }
    hearth_buf_release(&text);
}

/* ---- files ---- */

static char g_directory[PATH_MAX];

static void remove_directory(void)
{
    char path[PATH_MAX + 32];

    (void)snprintf(path, sizeof path, "%s/hearth/config.yaml", g_directory);
    (void)unlink(path);
    (void)snprintf(path, sizeof path, "%s/hearth", g_directory);
    (void)rmdir(path);
    (void)rmdir(g_directory);
}

/* The user's folder of this process, which ends with it. */
static void make_directory(void)
{
    const char *in = getenv("TMPDIR");
    char path[PATH_MAX + 32];

    (void)snprintf(g_directory, sizeof g_directory, "%s/fuzz-contexts-XXXXXX",
                   in == NULL ? "/tmp" : in);
    HEARTH_ASSERT(mkdtemp(g_directory) != NULL);
    HEARTH_ASSERT(setenv("XDG_CONFIG_HOME", g_directory, 1) == 0);
    (void)snprintf(path, sizeof path, "%s/hearth", g_directory);
    HEARTH_ASSERT(mkdir(path, 0700) == 0 && atexit(remove_directory) == 0);
}

static void write_file(const uint8_t *data, size_t size, mode_t mode)
{
    char path[PATH_MAX + 32];

    (void)snprintf(path, sizeof path, "%s/hearth/config.yaml", g_directory);
    HEARTH_ASSERT(unlink(path) == 0 || errno == ENOENT);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    HEARTH_ASSERT(fd >= 0 && fchmod(fd, mode) == 0);
    HEARTH_ASSERT(write(fd, data, size) == (ssize_t)size);
    HEARTH_ASSERT(close(fd) == 0);
}

static void check_file(const uint8_t *data, size_t size)
{
    static const mode_t modes[] = {0600, 0644, 0666};
    struct cli cli = {.err = HEARTH_ERR_INIT};
    struct cli_contexts contexts, again;
    struct cli_context *one;

    if (g_directory[0] == '\0') {
        make_directory();
    }

    hearth_arena_init(&cli.arena, 64u << 20);
    write_file(data, size, modes[size == 0 ? 0 : data[0] % HEARTH_ARRAY_LEN(modes)]);
    if (cli_read_contexts(&cli, &contexts) != HEARTH_OK) {
        HEARTH_ASSERT(cli.err.msg[0] != '\0');
    } else {
        HEARTH_ASSERT(cli_write_contexts(&cli, &contexts) == HEARTH_OK);
        HEARTH_ASSERT(cli_read_contexts(&cli, &again) == HEARTH_OK && again.n == contexts.n);
        for (size_t i = 0; i < contexts.n; i++) {
            HEARTH_ASSERT(cli_find_context(&cli, &again, contexts.v[i].name, &one) == HEARTH_OK);
            require_same_context(&contexts.v[i], one);
        }
        HEARTH_ASSERT(cli_find_context(&cli, &again, "-", &one) == HEARTH_NOT_FOUND);
    }
    hearth_arena_release(&cli.arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hearth_arena arena;
    struct cli_contexts contexts = {.n = 0};
    struct hearth_err err = HEARTH_ERR_INIT;

    hearth_arena_init(&arena, 64u << 20);
    if (cli_parse_contexts(hearth_str_n((const char *)data, size), &arena, &contexts, &err) ==
        HEARTH_OK) {
        check_written(&contexts, &arena);
    } else {
        HEARTH_ASSERT(err.msg[0] != '\0');
    }
    hearth_arena_release(&arena);
    if (size % 16 == 0) {
        check_file(data, size);
    }

    return 0;
}
