/*
 * cmd_sql.c -- hearth sql: copy stack traces of a selector and range into the table hearth.sample,
 * for SQL (docs/how-to/sql.md).
 *
 * It writes a script for psql, into psql itself when a database is named: the client needs no
 * driver, and psql knows all ways to log in. The script is one transaction, so what fails half-way
 * leaves nothing.
 *
 * Steps are half open, [a, b), but the range of a query includes both its milliseconds. So the
 * profiles of the very instant b are asked for by themselves and taken off: that is exact for times
 * between milliseconds too.
 */
#include "hearth/base/clock.h"
#include "hearth/model/stacktree.h"
#include "hearth/selector/timeexpr.h"

#include "ask.h"
#include "cli_call.h"
#include "cli_messages.h"
#include "psql_url.h"
#include "text.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEFAULT_STEP "10m"
#define MAX_STEPS    10000
#define FLUSH_BYTES  (64 * 1024)

struct export
{
    struct cli *cli;
    const char *selector, *type;
    int64_t from_ms, to_ms, step_ms;
    FILE *out;
    int64_t n_rows;
};

/* ---- text ---- */

/* 'text', for SQL. */
static void sql_text(const char *text, struct hearth_buf *out)
{
    hearth_buf_byte(out, '\'');
    for (const char *p = text; *p != '\0'; p++) {
        hearth_buf_append(out, p, 1);
        if (*p == '\'') {
            hearth_buf_byte(out, '\'');
        }
    }
    hearth_buf_byte(out, '\'');
}

static void sql_time(int64_t ms, struct hearth_buf *out)
{
    hearth_buf_printf(out, "'epoch'::timestamptz + %" PRId64 " * interval '1 millisecond'", ms);
}

/* One element of an array inside a COPY line: quoted for the array, then escaped for COPY. */
static void copy_element(struct hearth_str text, struct hearth_buf *out)
{
    hearth_buf_byte(out, '"');
    for (size_t i = 0; i < text.n; i++) {
        switch (text.p[i]) {
        case '"':
            hearth_buf_cstr(out, "\\\\\"");
            break;
        case '\\':
            hearth_buf_cstr(out, "\\\\\\\\");
            break;
        case '\n':
            hearth_buf_cstr(out, "\\n");
            break;
        case '\r':
            hearth_buf_cstr(out, "\\r");
            break;
        case '\t':
            hearth_buf_cstr(out, "\\t");
            break;
        default:
            hearth_buf_append(out, text.p + i, 1);
        }
    }
    hearth_buf_byte(out, '"');
}

/* ---- writing ---- */

/* Write and empty the buffer. */
static enum hearth_status write_script(struct export *export, struct hearth_buf *text)
{
    bool ok = !hearth_buf_failed(text) &&
              (text->n == 0 || fwrite(text->p, 1, text->n, export->out) == text->n);
    int saved = errno;
    hearth_buf_reset(text);
    return ok ? HEARTH_OK
              : HEARTH_FAIL(&export->cli->err, HEARTH_NO_MEMORY, "cannot write the script: %s",
                            strerrordesc_np(saved));
}

static enum hearth_status put_head(struct export *export)
{
    const char *tenant = export->cli->tenant == NULL ? "anonymous" : export->cli->tenant;
    struct hearth_buf text;

    hearth_buf_init(&text, 0);
    hearth_buf_cstr(&text, "BEGIN;\nDELETE FROM hearth.materialized WHERE tenant = ");
    sql_text(tenant, &text);
    hearth_buf_cstr(&text, " AND selector = ");
    sql_text(export->selector, &text);
    hearth_buf_cstr(&text, " AND profile_type = ");
    sql_text(export->type, &text);
    hearth_buf_cstr(&text, "\n  AND from_time >= ");
    sql_time(export->from_ms, &text);
    hearth_buf_cstr(&text, " AND to_time <= ");
    sql_time(export->to_ms, &text);
    hearth_buf_cstr(&text, ";\nINSERT INTO hearth.materialized"
                           " (tenant, selector, profile_type, from_time, to_time, step) VALUES (");
    sql_text(tenant, &text);
    hearth_buf_cstr(&text, ", ");
    sql_text(export->selector, &text);
    hearth_buf_cstr(&text, ", ");
    sql_text(export->type, &text);
    hearth_buf_cstr(&text, ",\n  ");
    sql_time(export->from_ms, &text);
    hearth_buf_cstr(&text, ", ");
    sql_time(export->to_ms, &text);
    hearth_buf_printf(&text, ", %" PRId64 " * interval '1 millisecond');\n", export->step_ms);
    hearth_buf_cstr(&text, "COPY hearth.sample (\"time\", value, stack) FROM stdin;\n");
    enum hearth_status status = write_script(export, &text);
    hearth_buf_release(&text);

    return status;
}

static void copy_stack(const struct hearth_stacktree *tree, uint32_t node, uint32_t *path,
                       struct hearth_buf *out)
{
    size_t depth = 0;
    for (uint32_t at = node; at != 0; at = tree->nodes[at].parent) {
        path[depth++] = tree->nodes[at].name;
    }
    hearth_buf_byte(out, '{');
    while (depth-- > 0) {
        copy_element(tree->names[path[depth]], out);
        if (depth > 0) {
            hearth_buf_byte(out, ',');
        }
    }
    hearth_buf_cstr(out, "}\n");
}

/* A line for each stack of the step. */
static enum hearth_status put_stacks(struct export *export, const struct hearth_stacktree *tree,
                                     int64_t at_ms)
{
    struct cli *cli = export->cli;

    /* No path is longer than there are nodes. */
    uint32_t *path = hearth_arena_array(&cli->arena, tree->n_nodes, sizeof path[0]);
    if (path == NULL) {
        return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
    }
    char when[32];
    hearth_clock_format(at_ms * HEARTH_NS_PER_MS, when);
    struct hearth_buf text;
    hearth_buf_init(&text, 0);
    enum hearth_status status = HEARTH_OK;
    for (uint32_t node = 0; status == HEARTH_OK && node < tree->n_nodes; node++) {
        int64_t value = tree->nodes[node].self;
        if (value < 0) {
            status = HEARTH_FAIL(&cli->err, HEARTH_ABORTED,
                                 "profiles arrived during the export; run it again");
        } else if (value > 0) {
            hearth_buf_printf(&text, "%s\t%" PRId64 "\t", when, value);
            copy_stack(tree, node, path, &text);
            export->n_rows++;
            status = text.n > FLUSH_BYTES ? write_script(export, &text) : HEARTH_OK;
        }
    }
    if (status == HEARTH_OK) {
        status = write_script(export, &text);
    }
    hearth_buf_release(&text);

    return status;
}

/* ---- asking ---- */

/* Add the stacks of the profiles from one millisecond to the other, both included. */
static enum hearth_status add_range(struct export *export, struct hearth_stacktree *tree,
                                    int64_t from_ms, int64_t to_ms, bool take_off)
{
    struct cli *cli = export->cli;
    struct hearth_str wire;
    struct hearth_profile profile;

    cli->from_ms = from_ms;
    cli->to_ms = to_ms;
    Hearth__V1__Selection selection;
    hearth__v1__selection__init(&selection);
    selection.profile_type = cli_field(cli, export->type);
    selection.label_selector = cli_field(cli, export->selector);
    selection.start = from_ms;
    selection.end = to_ms;
    selection.aggregation = HEARTH__V1__AGGREGATION__AGGREGATION_SUM; /* steps add up */
    HEARTH_TRY(cli_ask_profile(cli, &selection, &wire, &profile));
    if (profile.n_samples == 0) {
        return HEARTH_OK;
    }
    for (size_t i = 0; take_off && i < (size_t)profile.n_samples * profile.n_types; i++) {
        profile.values[i] = -profile.values[i];
    }

    return hearth_stacktree_add_shown(tree, &profile, 0, &cli->err);
}

static enum hearth_status put_step(struct export *export, int64_t at_ms)
{
    struct cli *cli = export->cli;
    int64_t end_ms = at_ms + export->step_ms;

    struct hearth_arena kept = cli->arena; /* what a step needs is gone with it */
    hearth_arena_init(&cli->arena, 0);
    struct hearth_stacktree tree;
    hearth_stacktree_init(&tree, &cli->arena);
    enum hearth_status status = add_range(export, &tree, at_ms, end_ms, false);
    if (status == HEARTH_OK && tree.n_nodes > 0) {
        status = add_range(export, &tree, end_ms, end_ms, true);
    }
    if (status == HEARTH_OK) {
        status = put_stacks(export, &tree, at_ms);
    }
    hearth_stacktree_release(&tree);
    hearth_arena_release(&cli->arena);
    cli->arena = kept;

    return status;
}

static enum hearth_status put_script(struct export *export)
{
    HEARTH_TRY(put_head(export));
    for (int64_t at = export->from_ms; at < export->to_ms; at += export->step_ms) {
        HEARTH_TRY(put_step(export, at));
    }
    bool ok = fputs("\\.\nCOMMIT;\n", export->out) >= 0 && fflush(export->out) == 0;
    return ok ? HEARTH_OK
              : HEARTH_FAIL(&export->cli->err, HEARTH_NO_MEMORY, "cannot write the script: %s",
                            strerrordesc_np(errno));
}

/* ---- psql ---- */

static FILE *start_psql(const char *url, pid_t *ret_pid)
{
    int ends[2];

    if (pipe(ends) != 0) {
        return NULL;
    }
    *ret_pid = fork();
    if (*ret_pid == 0) {
        (void)dup2(ends[0], STDIN_FILENO);
        (void)close(ends[0]);
        (void)close(ends[1]);
        (void)execlp("psql", "psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", "-", "-d", url,
                     (char *)NULL);
        (void)fprintf(stderr,
                      "hearth: cannot run psql: %s; without --database-url the script is "
                      "printed\n",
                      strerrordesc_np(errno));
        _exit(127);
    }
    (void)close(ends[0]);
    FILE *out = *ret_pid < 0 ? NULL : fdopen(ends[1], "w");
    if (out == NULL) {
        (void)close(ends[1]);
    }

    return out;
}

/* Its own complaint is on standard error. */
static bool end_psql(FILE *out, pid_t pid)
{
    int state = 0;
    bool ok = fclose(out) == 0;
    while (waitpid(pid, &state, 0) < 0) {
        if (errno != EINTR) {
            return false;
        }
    }
    return ok && WIFEXITED(state) && WEXITSTATUS(state) == 0;
}

static enum cli_exit run_export(struct export *export)
{
    struct cli *cli = export->cli;
    pid_t pid = 0;

    export->out = stdout;
    if (cli->database != NULL) {
        const char *url;
        if (cli_psql_url(cli->database, &cli->arena, &url, &cli->err) != HEARTH_OK) {
            return cli_fail(cli, cli->err.status);
        }
        (void)signal(SIGPIPE, SIG_IGN); /* psql may end first, and says why */
        export->out = start_psql(url, &pid);
    }
    if (export->out == NULL) {
        (void)fprintf(stderr, "hearth: cannot start psql: %s\n", strerrordesc_np(errno));
        return CLI_FAILED;
    }
    enum hearth_status status = put_script(export);

    /* Without its COMMIT the script leaves nothing. */
    bool ended = pid == 0 || end_psql(export->out, pid);
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    if (!ended) {
        return CLI_FAILED;
    }
    (void)fprintf(stderr, "%s %" PRId64 " stacks in %" PRId64 " steps\n",
                  pid == 0 ? "printed" : "materialized", export->n_rows,
                  (export->to_ms - export->from_ms) / export->step_ms);

    return CLI_OK;
}

/* Whole steps since the epoch, and none that is not over yet. */
static enum hearth_status cut_range(struct export *export)
{
    struct cli *cli = export->cli;
    int64_t step_ns;

    HEARTH_TRY(hearth_duration_parse(hearth_str_c(cli->step == NULL ? DEFAULT_STEP : cli->step),
                                     &step_ns, &cli->err));
    export->step_ms = step_ns / HEARTH_NS_PER_MS;
    if (export->step_ms < 1) {
        return HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT,
                           "--step must be at least a millisecond");
    }
    int64_t now_ms = cli->now_ns / HEARTH_NS_PER_MS;
    int64_t to_ms = cli->to_ms > now_ms ? now_ms : cli->to_ms;
    export->from_ms = cli->from_ms / export->step_ms * export->step_ms;
    export->to_ms = to_ms / export->step_ms * export->step_ms;
    if (export->from_ms < 1 || export->from_ms >= export->to_ms) {
        return HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT,
                           "the range has no whole step of %s; use a longer range or a shorter "
                           "--step",
                           cli->step == NULL ? DEFAULT_STEP : cli->step);
    }
    if ((export->to_ms - export->from_ms) / export->step_ms > MAX_STEPS) {
        return HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT,
                           "the range has more than %d steps; use a longer --step", MAX_STEPS);
    }
    char from[32], to[32];
    cli_zoned(export->from_ms * HEARTH_NS_PER_MS, from);
    cli_zoned(export->to_ms * HEARTH_NS_PER_MS, to);
    (void)fprintf(stderr, "whole steps: %s to %s\n", from, to);

    return HEARTH_OK;
}

enum cli_exit cli_sql(struct cli *cli)
{
    if (cli->materialize == NULL) {
        return cli_usage("sql requires --materialize SELECTOR");
    }
    struct export export = {.cli = cli};
    cli->args[0] = cli->materialize;
    cli->n_args = 1;
    enum hearth_status status = cli_query_selector(cli, 0, &export.selector);
    if (status == HEARTH_OK) {
        status = cli_resolve_range(cli);
    }
    if (status == HEARTH_OK) {
        status = cut_range(&export);
    }
    if (status == HEARTH_OK) {
        status = cli_profile_type(cli, export.selector, &export.type);
    }

    return status == HEARTH_OK ? run_export(&export) : cli_fail(cli, status);
}
