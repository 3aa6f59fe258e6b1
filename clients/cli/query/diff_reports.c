/*
 * diff_reports.c -- the outcome of conditions on a diff: for people, as JUnit's XML, as annotations
 * of GitHub and GitLab (contract: diff_gate.h).
 *
 * Names of functions are untrusted: each format escapes them.
 *
 * Source: JUnit XML as CI systems read it (testsuites, testsuite, testcase, failure, error);
 *         GitHub's workflow command "error"; GitLab's Code Quality report.
 */
#include "hearth/base/hash.h"
#include "hearth/codec/json_writer.h"

#include "diff_gate.h"
#include "text.h"

#include <limits.h>
#include <stdio.h>

#define GITLAB  "gitlab="
#define NO_PATH "unknown" /* where a profile has no files */

static bool is_crossed_gate(const struct diff_gate *gate)
{
    return gate->n_crossed > 0;
}

static size_t count_crossed(const struct diff_gates *gates)
{
    size_t n = 0;

    for (size_t i = 0; i < gates->n; i++) {
        n += is_crossed_gate(&gates->v[i]);
    }

    return n;
}

/* ---- people ---- */

static void print_gate(const struct diff_gate *gate, struct hearth_buf *out)
{
    size_t n = diff_gate_n_listed(gate);

    hearth_buf_cstr(out, is_crossed_gate(gate) ? "crossed: " : "not crossed: ");
    cli_fit(hearth_str_c(gate->text), 200, false, out);
    if (gate->n_matched == 0) {
        hearth_buf_cstr(out, " (no function has such a name)");
    }
    hearth_buf_byte(out, '\n');
    for (size_t i = 0; i < n; i++) {
        hearth_buf_printf(out, "  %s\n", gate->crossings[i]);
    }
    if (n < gate->n_crossed) {
        hearth_buf_printf(out, "  and %zu more\n", gate->n_crossed - n);
    }
}

/* ---- JUnit ---- */

/* A text in an attribute or an element; characters that XML cannot have become '?'. */
static void append_xml(const char *text, struct hearth_buf *out)
{
    struct hearth_buf plain;

    hearth_buf_init(&plain, 0);
    cli_fit(hearth_str_c(text), INT_MAX, false, &plain);
    hearth_str_utf8_mend(plain.p, plain.n);
    for (size_t i = 0; i < plain.n; i++) {
        const char *at = plain.p + i;
        bool is_noncharacter = plain.n - i >= 3 && (memcmp(at, "\xEF\xBF\xBE", 3) == 0 ||
                                                    memcmp(at, "\xEF\xBF\xBF", 3) == 0);
        if (is_noncharacter) {
            hearth_buf_byte(out, '?');
            i += 2;
        } else if (strchr("&<>\"", *at) != NULL) {
            hearth_buf_printf(out, "&#%u;", (unsigned)(unsigned char)*at);
        } else {
            hearth_buf_append(out, at, 1);
        }
    }
    hearth_buf_release(&plain);
}

static void append_test_case(const struct diff_gate *gate, const char *missing,
                             struct hearth_buf *out)
{
    hearth_buf_cstr(out, "    <testcase classname=\"hearth.diff\" name=\"");
    append_xml(gate->text, out);
    hearth_buf_cstr(out, "\"");
    if (missing != NULL) {
        hearth_buf_cstr(out, "><error message=\"");
        append_xml(missing, out);
        hearth_buf_cstr(out, "\"/></testcase>\n");
    } else if (is_crossed_gate(gate)) {
        hearth_buf_cstr(out, "><failure message=\"");
        append_xml(gate->crossings[0], out);
        hearth_buf_cstr(out, "\">");
        for (size_t i = 0; i < diff_gate_n_listed(gate); i++) {
            append_xml(gate->crossings[i], out);
            hearth_buf_byte(out, '\n');
        }
        hearth_buf_printf(out, "functions: %zu</failure></testcase>\n", gate->n_crossed);
    } else {
        hearth_buf_cstr(out, "/>\n");
    }
}

static void append_junit(const struct diff_gates *gates, const char *missing,
                         struct hearth_buf *out)
{
    hearth_buf_printf(out,
                      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                      "<testsuites>\n"
                      "  <testsuite name=\"hearth diff\" tests=\"%zu\" failures=\"%zu\" "
                      "errors=\"%zu\">\n",
                      gates->n, missing == NULL ? count_crossed(gates) : 0,
                      missing == NULL ? 0 : gates->n);
    for (size_t i = 0; i < gates->n; i++) {
        append_test_case(&gates->v[i], missing, out);
    }
    hearth_buf_cstr(out, "  </testsuite>\n</testsuites>\n");
}

/* ---- GitHub and GitLab ---- */

/* A text in a workflow command, with the bytes of `special` as "%25"; control characters are shown
 * as elsewhere. */
static void append_escaped(const char *text, int most, const char *special, struct hearth_buf *out)
{
    struct hearth_buf plain;

    hearth_buf_init(&plain, 0);
    cli_fit(hearth_str_c(text), most, false, &plain);
    for (size_t i = 0; i < plain.n; i++) {
        if (plain.p[i] != '\0' && strchr(special, plain.p[i]) != NULL) {
            hearth_buf_printf(out, "%%%02X", (unsigned)(unsigned char)plain.p[i]);
        } else {
            hearth_buf_append(out, &plain.p[i], 1);
        }
    }
    hearth_buf_release(&plain);
}

/* A workflow command; a colon or a comma would end a property. */
static void append_command(const char *condition, const char *text, const struct diff_place *place,
                           struct hearth_buf *out)
{
    hearth_buf_cstr(out, "::error ");
    if (place != NULL && place->path != NULL) {
        hearth_buf_cstr(out, "file=");
        append_escaped(place->path, INT_MAX, "%:,", out);
        hearth_buf_printf(out, ",line=%lld,", (long long)place->line);
    }
    hearth_buf_cstr(out, "title=hearth diff::");
    append_escaped(condition, 200, "%", out);
    hearth_buf_cstr(out, ": ");
    append_escaped(text, INT_MAX, "%", out);
    hearth_buf_byte(out, '\n');
}

/* The runner reads commands from both streams; standard output keeps the answer alone. */
static void append_github(const struct diff_gates *gates, const char *missing,
                          struct hearth_buf *out)
{
    for (size_t i = 0; i < gates->n; i++) {
        const struct diff_gate *gate = &gates->v[i];
        size_t n = missing != NULL ? 1 : diff_gate_n_listed(gate);
        for (size_t k = 0; k < n; k++) {
            append_command(gate->text, missing != NULL ? missing : gate->crossings[k],
                           missing != NULL ? NULL : &gate->places[k], out);
        }
    }
}

/* The fingerprint is that of the condition and the function, so that it outlives numbers and lines. */
static void append_issue(struct hearth_json *json, const struct diff_gate *gate, size_t i)
{
    const struct diff_place *place = &gate->places[i];
    char fingerprint[17];
    uint64_t parts[2] = {hearth_hash64(gate->text, strlen(gate->text), 0),
                         hearth_hash64(gate->functions[i], strlen(gate->functions[i]), 0)};

    (void)snprintf(fingerprint, sizeof fingerprint, "%016llx",
                   (unsigned long long)hearth_hash64(parts, sizeof parts, 0));
    hearth_json_object(json);
    hearth_json_key_c(json, "description");
    hearth_json_string_c(json, gate->crossings[i]);
    hearth_json_key_c(json, "check_name");
    hearth_json_string_c(json, gate->text);
    hearth_json_key_c(json, "fingerprint");
    hearth_json_string_c(json, fingerprint);
    hearth_json_key_c(json, "severity");
    hearth_json_string_c(json, "major");

    /* The schema demands a path and a line. */
    hearth_json_key_c(json, "location");
    hearth_json_object(json);
    hearth_json_key_c(json, "path");
    hearth_json_string_c(json, place->path != NULL ? place->path : NO_PATH);
    hearth_json_key_c(json, "lines");
    hearth_json_object(json);
    hearth_json_key_c(json, "begin");
    hearth_json_i64(json, place->path != NULL ? place->line : 1);
    hearth_json_object_end(json);
    hearth_json_object_end(json);
    hearth_json_object_end(json);
}

static void append_gitlab(const struct diff_gates *gates, struct hearth_buf *out)
{
    struct hearth_json json;

    hearth_json_init(&json, out);
    hearth_json_array(&json);
    for (size_t i = 0; i < gates->n; i++) {
        for (size_t k = 0; k < diff_gate_n_listed(&gates->v[i]); k++) {
            append_issue(&json, &gates->v[i], k);
        }
    }
    hearth_json_array_end(&json);
    hearth_buf_byte(out, '\n');
}

bool diff_save_report(const char *path, struct hearth_buf *out)
{
    bool is_whole = !hearth_buf_failed(out);
    enum cli_exit code = is_whole ? cli_save(path, hearth_buf_view(out), "") : CLI_FAILED;

    if (!is_whole) {
        (void)fprintf(stderr, "hearth: cannot allocate %s\n", path);
    }
    hearth_buf_release(out);

    return code == CLI_OK;
}

enum cli_exit diff_gates_report(struct cli *cli, const struct diff_gates *gates,
                                const char *missing)
{
    struct hearth_buf text, junit, gitlab;
    bool ok = true;

    /* To standard error. */
    hearth_buf_init(&text, 0);
    for (size_t i = 0; missing == NULL && i < gates->n; i++) {
        print_gate(&gates->v[i], &text);
    }
    if (cli->annotate != NULL && strcmp(cli->annotate, "github") == 0) {
        append_github(gates, missing, &text);
    }
    (void)fwrite(text.p, 1, text.n, stderr);
    hearth_buf_release(&text);

    /* Into files. */
    if (cli->junit != NULL) {
        hearth_buf_init(&junit, 0);
        append_junit(gates, missing, &junit);
        ok = diff_save_report(cli->junit, &junit);
    }
    if (cli->annotate != NULL && strncmp(cli->annotate, GITLAB, strlen(GITLAB)) == 0) {
        hearth_buf_init(&gitlab, 0);
        append_gitlab(gates, &gitlab);
        ok = diff_save_report(cli->annotate + strlen(GITLAB), &gitlab) && ok;
    }

    return missing != NULL ? CLI_NO_DATA : !ok || count_crossed(gates) > 0 ? CLI_FAILED : CLI_OK;
}
