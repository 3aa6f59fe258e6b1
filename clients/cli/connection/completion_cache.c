/*
 * completion_cache.c -- names of the server that completion offers, kept for half a minute, so that a second Tab is
 * answered at once.
 *
 * $XDG_CACHE_HOME/hearth/completion-KIND has a line with the hash of the question (server, tenant, credentials), then
 * the names. There is one file for each kind, so that the folder does not grow.
 */
#include "hearth/base/clock.h"
#include "hearth/base/sha256.h"

#include "cli_settings.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_CACHE_BYTES ((size_t)256 << 10)

static const char *find_cache(struct cli *cli, const char *kind)
{
    const char *name = hearth_arena_printf(&cli->arena, "completion-%s", kind);
    return name == NULL ? NULL : cli_user_path(cli, "XDG_CACHE_HOME", ".cache", name);
}

/* The line that names the question; it does not tell the token. */
static void hash_question(const struct cli *cli, char ret[HEARTH_SHA256_HEX + 1])
{
    struct hearth_sha256 hash;

    hearth_sha256_init(&hash);
    const char *const texts[] = {cli->url, cli->tenant == NULL ? "" : cli->tenant};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(texts); i++) {
        hearth_sha256_add(&hash, hearth_str_n(texts[i], strlen(texts[i]) + 1));
    }
    hearth_sha256_add(&hash, cli->token_text);
    for (size_t i = 0; i < cli->header_texts.n; i++) {
        hearth_sha256_add(&hash, hearth_str_c(cli->header_texts.v[i]));
    }
    hearth_sha256_end_hex(&hash, ret);
}

/* Returns the contents of a recent file that only this user can access; otherwise n is 0. */
static struct hearth_str read_cache(struct cli *cli, const char *path)
{
    struct stat found;
    struct hearth_str text = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

    if (fd < 0) {
        return text;
    }
    if (fstat(fd, &found) == 0 && S_ISREG(found.st_mode) && found.st_uid == geteuid() &&
        (found.st_mode & (S_IRWXG | S_IRWXO)) == 0 && found.st_size > 0 &&
        (size_t)found.st_size <= MAX_CACHE_BYTES &&
        found.st_mtime <= cli->now_ns / HEARTH_NS_PER_SEC &&
        found.st_mtime > cli->now_ns / HEARTH_NS_PER_SEC - CLI_CACHE_SECONDS) {
        char *room = hearth_arena_alloc(&cli->arena, (size_t)found.st_size);
        ssize_t n = room == NULL ? -1 : read(fd, room, (size_t)found.st_size);
        text = hearth_str_n(room, n > 0 ? (size_t)n : 0);
    }
    (void)close(fd);

    return text;
}

bool cli_cache_find(struct cli *cli, const char *kind, struct hearth_str *ret)
{
    char question[HEARTH_SHA256_HEX + 1];
    const char *path = find_cache(cli, kind);

    if (path == NULL) {
        return false;
    }
    struct hearth_str text = read_cache(cli, path);
    size_t end = hearth_str_find(text, '\n', 0);
    hash_question(cli, question);
    if (end == text.n || !hearth_str_eq_c(hearth_str_n(text.p, end), question)) {
        return false;
    }
    *ret = hearth_str_n(text.p + end + 1, text.n - end - 1);

    return true;
}

void cli_cache_keep(struct cli *cli, const char *kind, struct hearth_str lines)
{
    char question[HEARTH_SHA256_HEX + 1];
    const char *path = find_cache(cli, kind);
    struct hearth_buf text;

    hash_question(cli, question);
    hearth_buf_init(&text, MAX_CACHE_BYTES);
    hearth_buf_printf(&text, "%s\n", question);
    hearth_buf_str(&text, lines);
    if (path != NULL && !hearth_buf_failed(&text) &&
        cli_replace_file(cli, path, hearth_buf_view(&text)) != HEARTH_OK) {
        cli->err = (struct hearth_err)HEARTH_ERR_INIT;
    }
    hearth_buf_release(&text);
}
