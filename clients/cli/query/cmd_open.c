/*
 * cmd_open.c -- hearth open: the link of the web page that shows the same query.
 *
 * The address is the whole state of the page; clients/web/src/url.ts has its grammar, and
 * pages/profile/profile-state.ts the parameters of filters.
 */
#include "hearth/base/clock.h"
#include "hearth/selector/timeexpr.h"

#include "ask.h"
#include "cli_messages.h"
#include "filters.h"
#include "flame_transforms.h"
#include "page_link.h"
#include "text.h"

#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- filters ---- */

static void put_texts(struct hearth_buf *out, const char *name, const struct cli_texts *texts)
{
    struct hearth_buf list;

    hearth_buf_init(&list, 0);
    for (size_t i = 0; i < texts->n; i++) {
        page_link_entry(&list, "", texts->v[i]);
    }
    page_link_param(out, name, hearth_buf_view(&list));
    hearth_buf_release(&list);
}

/* --class and its like, as "CLASS name". */
static void put_rows(struct hearth_buf *out, const struct cli *cli)
{
    static const char *const kinds[CLI_ROW_KINDS] = {
        NULL,     "FUNCTION ", "LINE ",   "FILE ",   "DIRECTORY ",
        "CLASS ", "PACKAGE ",  "MODULE ", "THREAD ", "FRAME_KIND "};
    struct hearth_buf list;

    hearth_buf_init(&list, 0);
    for (size_t kind = 1; kind < CLI_ROW_KINDS; kind++) {
        for (size_t i = 0; i < cli->rows[kind].with.n; i++) {
            page_link_entry(&list, kinds[kind], cli->rows[kind].with.v[i]);
        }
    }
    page_link_param(out, "rows", hearth_buf_view(&list));
    hearth_buf_release(&list);
}

/* ---- times ---- */

/* "now-90s", or milliseconds: the page knows a number with one unit. */
static enum hearth_status format_page_time(struct cli *cli, const char *text, char out[32])
{
    int64_t ns;

    HEARTH_TRY(cli_parse_time(cli, text, &ns));
    if (strncmp(text, "now", 3) != 0) {
        (void)snprintf(out, 32, "%lld", (long long)(ns / HEARTH_NS_PER_MS));
        return HEARTH_OK;
    }
    int64_t seconds = (cli->now_ns - ns) / HEARTH_NS_PER_SEC;
    if (seconds <= 0) {
        (void)snprintf(out, 32, "now");
    } else if (seconds % 3600 == 0) {
        (void)snprintf(out, 32, "now-%lldh", (long long)(seconds / 3600));
    } else {
        (void)snprintf(out, 32, seconds % 60 == 0 ? "now-%lldm" : "now-%llds",
                       (long long)(seconds % 60 == 0 ? seconds / 60 : seconds));
    }

    return HEARTH_OK;
}

/* The ends of the range; empty: the page's own. A range that ends now moves on. */
static enum hearth_status read_page_range(struct cli *cli, char from[32], char to[32])
{
    const char *start = cli->from;

    if (cli->to != NULL) {
        HEARTH_TRY(format_page_time(cli, cli->to, to));
    }
    if (start == NULL && cli->to != NULL) {
        HEARTH_TRY(cli_resolve_range(cli));
        (void)snprintf(from, 32, "%lld", (long long)cli->from_ms);
        return HEARTH_OK;
    }
    if (start == NULL && cli->since != NULL) {
        start = hearth_arena_printf(&cli->arena, "now-%s", cli->since);
    }

    return start == NULL ? HEARTH_OK : format_page_time(cli, start, from);
}

/* ---- the command ---- */

static enum hearth_status make_page_link(struct cli *cli, struct hearth_buf *out)
{
    char from[32] = "", to[32] = "";
    const char *selector = "", *type = "";

    if (cli->n_args > 0) {
        HEARTH_TRY(cli_query_selector(cli, 0, &selector));
    }
    if (cli->type != NULL) {
        HEARTH_TRY(cli_resolve_range(cli));
        HEARTH_TRY(cli_profile_type(cli, cli->n_args > 0 ? selector : "{}", &type));
    }
    HEARTH_TRY(read_page_range(cli, from, to));

    /* A page of its own for a query; without one, the first page. Parameters are sorted. */
    bool is_query =
        cli->n_args > 0 || cli->type != NULL || cli_has_stack_filter(cli) || cli->transforms.n > 0;
    page_link_begin(cli->url,
                    cli->page != NULL ? cli->page
                    : is_query        ? "profile"
                                      : "explore",
                    out);
    page_link_param(out, "from", hearth_str_c(from));
    page_link_param(out, "q", hearth_str_c(selector));
    put_rows(out, cli);
    page_link_param(out, "to", hearth_str_c(to));
    if (!flame_put_transforms(cli, out)) {
        return HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT,
                           "transforms of the page name one function: /RE/ is for flame and top");
    }
    page_link_param(out, "type", hearth_str_c(type));
    put_texts(out, "with", &cli->functions);
    put_texts(out, "without", &cli->without);

    return hearth_buf_failed(out)
               ? HEARTH_FAIL(&cli->err, HEARTH_NO_MEMORY, "cannot allocate the link")
               : HEARTH_OK;
}

/* Gives the link to the desktop's browser. */
static enum hearth_status browse_link(struct cli *cli, const char *link)
{
    pid_t child = fork();

    if (child == 0) {
        (void)execlp("xdg-open", "xdg-open", link, (char *)NULL);
        _exit(errno == ENOENT ? 127 : 126);
    }
    int ended = -1;
    if (child < 0 || waitpid(child, &ended, 0) != child) {
        return HEARTH_FAIL(&cli->err, HEARTH_FAILED_PRECONDITION, "cannot start xdg-open");
    }
    if (ended == 0) {
        return HEARTH_OK;
    }

    return HEARTH_FAIL(&cli->err, HEARTH_FAILED_PRECONDITION, "%s",
                       WIFEXITED(ended) && WEXITSTATUS(ended) == 127
                           ? "xdg-open is not installed: open the link by hand"
                           : "xdg-open found no browser: open the link by hand");
}

enum cli_exit cli_open(struct cli *cli)
{
    struct hearth_buf link;

    hearth_buf_init(&link, 0);
    enum hearth_status status = make_page_link(cli, &link);
    char *text = hearth_arena_strndup(&cli->arena, link.p, link.n);
    if (status == HEARTH_OK && text == NULL) {
        status = HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
    }
    if (status != HEARTH_OK) {
        hearth_buf_release(&link);
        return cli_fail(cli, status);
    }
    hearth_buf_byte(&link, '\n');
    enum cli_exit code = cli_print(&link);
    if (code == CLI_OK && cli->browser) {
        status = browse_link(cli, text);
        code = status == HEARTH_OK ? CLI_OK : cli_fail(cli, status);
    }

    return code;
}
