/* user_file.c -- files of the user that the client writes: below the folders of the XDG specification, for its owner alone. */
#include "cli_settings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

const char *cli_user_path(struct cli *cli, const char *variable, const char *folder,
                          const char *name)
{
    const char *base = cli_find_variable(variable), *home = cli_find_variable("HOME");

    /* The specification ignores relative paths. */
    if (base != NULL && base[0] == '/') {
        return hearth_arena_printf(&cli->arena, "%s/hearth/%s", base, name);
    }
    return home == NULL ? NULL
                        : hearth_arena_printf(&cli->arena, "%s/%s/hearth/%s", home, folder, name);
}

/* Makes the two last folders of a path, if they are missing. */
static void make_folders(char *path)
{
    char *last = strrchr(path, '/');
    *last = '\0';
    char *before = strrchr(path, '/');
    *before = '\0';
    (void)mkdir(path, 0700);
    *before = '/';
    (void)mkdir(path, 0700);
    *last = '/';
}

/* Writes a new file beside `path`, and renames it. */
enum hearth_status cli_replace_file(struct cli *cli, const char *path, struct hearth_str text)
{
    char reason[128];
    char *draft = hearth_arena_printf(&cli->arena, "%s.XXXXXX", path);

    if (draft == NULL) {
        return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
    }
    make_folders(draft);
    int fd = mkostemp(draft, O_CLOEXEC); /* mode 0600 */
    bool is_written = fd >= 0;
    for (size_t done = 0; is_written && done < text.n;) {
        ssize_t n = write(fd, text.p + done, text.n - done);
        is_written = n > 0;
        done += n > 0 ? (size_t)n : 0;
    }
    is_written = is_written && fsync(fd) == 0 && rename(draft, path) == 0;
    int saved = errno;
    if (fd >= 0) {
        (void)close(fd);
    }
    if (is_written) {
        return HEARTH_OK;
    }
    if (fd >= 0) {
        (void)unlink(draft);
    }

    return HEARTH_FAIL(&cli->err, HEARTH_FAILED_PRECONDITION, "cannot write %.200s: %s", path,
                       strerror_r(saved, reason, sizeof reason));
}
