/*
 * cmd_import.c -- hearth import pyroscope: copy profiles out of a server that has querier.v1.
 *
 * The range is cut at multiples of the step. For each type, series and step with data, the merged profile of the
 * source is pushed with the labels of the series and the time of the end of the step.
 *
 * There is no file of the progress: Hearth's own totals say which steps it has. So a command that was killed can be
 * repeated at any time, from any machine, and a step with another total in Hearth is reported and left alone. The same
 * comparison after the copy is the check. Totals are doubles on the wire: exact to 2^53.
 */
#include "hearth/base/clock.h"
#include "hearth/codec/json_writer.h"
#include "hearth/selector/timeexpr.h"

#include "ask.h"
#include "cli_call.h"
#include "cli_messages.h"
#include "import.h"
#include "listing.h"
#include "progress.h"
#include "text.h"

#include <stdio.h>

#define DEFAULT_STEP_MS 15000
#define WINDOW_MS \
    (3600 * (int64_t)1000)            /* one listing of the source; a longer step is one window */
#define MAX_STEP_MS  (24 * WINDOW_MS) /* the longest query that Pyroscope answers by default */
#define DEFAULT_RATE 50
#define MAX_REPORTS  20 /* lines about differences */

/* The total of the step that ends at `ms`; 0: no data. *at moves on: steps are asked in order. */
static double find_total(const struct import_line *line, int64_t ms, size_t *at)
{
    while (line != NULL && *at < line->n_points && line->points[*at]->timestamp < ms) {
        ++*at;
    }

    return line != NULL && *at < line->n_points && line->points[*at]->timestamp == ms
               ? line->points[*at]->value
               : 0;
}

/* Whether a point is a step of the pass that has data. The source may send any. */
static bool is_step(const struct import *im, const Types__V1__Point *point)
{
    return point->timestamp > im->from_ms && point->timestamp <= im->to_ms && point->value != 0;
}

/* Adds a total, which may be any number, and stays within the range of the sum. */
static void add_total(int64_t *sum, double total)
{
    const double limit = 9e18;
    int64_t whole = total >= limit ? INT64_MAX : total > -limit ? (int64_t)total : INT64_MIN;

    if (__builtin_add_overflow(*sum, whole, sum)) {
        *sum = whole < 0 ? INT64_MIN : INT64_MAX;
    }
}

/*
 * Whether Hearth would have no more than the source after the copy. Otherwise it has profiles of other times in the
 * same window: agents that push to both, or a former import with another step.
 */
static bool has_room(const struct import *im, const struct import_line *source,
                     const struct import_line *here)
{
    double whole = 0, missing = 0, present = 0;
    size_t at = 0;

    for (size_t i = 0; i < source->n_points; i++) {
        const Types__V1__Point *point = source->points[i];
        double value = is_step(im, point) ? point->value : 0;
        whole += value;
        missing += find_total(here, point->timestamp, &at) == 0 ? value : 0;
    }
    for (size_t i = 0; here != NULL && i < here->n_points; i++) {
        present += is_step(im, here->points[i]) ? here->points[i]->value : 0;
    }

    return present + missing <= whole;
}

/* ---- one type in one window ---- */

/* Says what is wrong with a step of a series; `what` is one word. */
static void report_step(struct import *im, const struct import_line *line, int64_t ms,
                        const char *what, const char *text)
{
    struct hearth_buf whole;
    char when[48];

    if (im->n_reports++ >= MAX_REPORTS) {
        return;
    }
    cli_zoned_seconds(ms, when);
    hearth_buf_init(&whole, 0);
    hearth_buf_printf(&whole, "%s %s ", im->type->id, when);
    hearth_labels_format(&line->labels, 500, &whole);
    hearth_buf_printf(&whole, ": %s", text);
    hearth_buf_byte(&whole, '\0');
    cli_progress_end();
    cli_say(what, hearth_buf_failed(&whole) ? text : whole.p);
    hearth_buf_release(&whole);
    if (im->n_reports == MAX_REPORTS) {
        (void)fputs("further steps are only counted\n", stderr);
    }
}

/* Copies the steps of a series that Hearth does not have. */
static enum hearth_status copy_line(struct import *im, const struct import_line *line,
                                    const struct import_line *here)
{
    size_t at = 0;

    if (!has_room(im, line, here)) {
        return HEARTH_OK; /* the check reports the steps */
    }
    for (size_t i = 0; i < line->n_points; i++) {
        int64_t ms = line->points[i]->timestamp;
        double total = line->points[i]->value;
        if (!is_step(im, line->points[i]) || find_total(here, ms, &at) != 0) {
            continue;
        }
        enum hearth_status status = import_copy_step(im, line, ms, total);
        if (status == HEARTH_INVALID_ARGUMENT) { /* the others may be accepted */
            report_step(im, line, ms, "refused", im->cli->err.msg);
        } else if (status != HEARTH_OK) {
            return status;
        }
        cli_progress(im->cli, "%s: %lld steps copied", im->type->id, (long long)im->type->n_copied);
    }

    return HEARTH_OK;
}

/* Compares each step of a series with Hearth. */
static void check_line(struct import *im, const struct import_line *line,
                       const struct import_line *here)
{
    size_t at = 0;

    for (size_t i = 0; i < line->n_points; i++) {
        int64_t ms = line->points[i]->timestamp;
        double total = line->points[i]->value, found = find_total(here, ms, &at);
        if (!is_step(im, line->points[i])) {
            continue;
        }
        im->type->n_steps++;
        add_total(&im->type->source_total, total);
        add_total(&im->type->here_total, found);
        if (found != total && !(im->cli->dry_run && found == 0)) {
            char text[128];
            (void)snprintf(text, sizeof text, "the source has %.0f, Hearth has %.0f", total, found);
            report_step(im, line, ms, "differs", text);
            im->type->n_differ++;
        }
    }
}

static void count_present(struct import *im, const struct import_line *line,
                          const struct import_line *here)
{
    size_t at = 0;

    for (size_t i = 0; i < line->n_points; i++) {
        const Types__V1__Point *point = line->points[i];
        im->type->n_present +=
            is_step(im, point) && find_total(here, point->timestamp, &at) == point->value;
    }
}

static enum hearth_status import_pass(struct import *im)
{
    struct import_lines source, here;
    int64_t n_before = im->type->n_copied;

    hearth_arena_reset(&im->window);
    HEARTH_TRY(import_find_names(im));
    HEARTH_TRY(import_find_lines(im, im->source, &source));
    HEARTH_TRY(import_find_lines(im, im->cli->client, &here));
    for (size_t i = 0; i < source.n; i++) {
        const struct import_line *line = &source.v[i], *mine = import_find_line(&here, line);
        count_present(im, line, mine);
        if (!im->cli->dry_run) {
            HEARTH_TRY(copy_line(im, line, mine));
        }
    }

    if (im->type->n_copied > n_before) {
        HEARTH_TRY(import_find_lines(im, im->cli->client, &here));
    }
    for (size_t i = 0; i < source.n; i++) {
        check_line(im, &source.v[i], import_find_line(&here, &source.v[i]));
    }

    return HEARTH_OK;
}

/* ---- all ---- */

/* The row of a type, which is added if it is new. */
static enum hearth_status find_type(struct import *im, const char *id)
{
    for (size_t i = 0; i < im->n_types; i++) {
        if (strcmp(im->types[i].id, id) == 0) {
            im->type = &im->types[i];
            return HEARTH_OK;
        }
    }
    if (!hearth_arena_grow(&im->cli->arena, &im->types, &im->cap_types, im->n_types + 1,
                           sizeof im->types[0])) {
        return HEARTH_FAIL_ARENA(&im->cli->err, &im->cli->arena);
    }
    im->type = &im->types[im->n_types++];
    *im->type = (struct import_type){.id = cli_field(im->cli, id)};

    return im->type->id == NULL ? HEARTH_FAIL_ARENA(&im->cli->err, &im->cli->arena) : HEARTH_OK;
}

static enum hearth_status import_window(struct import *im)
{
    struct hearth_arena arena;
    Types__V1__LabelValuesRequest request;
    Types__V1__LabelValuesResponse *answer = NULL;
    char *matchers[] = {cli_field(im->cli, im->selector)};
    const char *only = im->cli->type;

    types__v1__label_values_request__init(&request);
    request.name = (char[]){HEARTH_LABEL_PROFILE_TYPE};
    request.matchers = matchers;
    request.n_matchers = 1;
    request.start = im->from_ms;
    request.end = im->to_ms + 1;
    if (matchers[0] == NULL) {
        return HEARTH_FAIL_ARENA(&im->cli->err, &im->cli->arena);
    }
    hearth_arena_init(&arena, 0);
    enum hearth_status status =
        import_ask(im, im->source, &arena, IMPORT_QUERIER "LabelValues", &request,
                   &types__v1__label_values_response__descriptor, &answer);
    for (size_t i = 0; status == HEARTH_OK && i < answer->n_names; i++) {
        if (only != NULL && strcmp(only, answer->names[i]) != 0) {
            continue;
        }
        status = find_type(im, answer->names[i]);
        if (status == HEARTH_OK) {
            status = import_pass(im);
        }
    }
    hearth_arena_release(&arena);

    return status;
}

static enum hearth_status read_step(struct import *im)
{
    int64_t ns = DEFAULT_STEP_MS * HEARTH_NS_PER_MS;

    if (im->cli->step != NULL) {
        HEARTH_TRY(hearth_duration_parse(hearth_str_c(im->cli->step), &ns, &im->cli->err));
    }
    im->step_ms = ns / HEARTH_NS_PER_MS;

    return im->step_ms >= 1000 && im->step_ms <= MAX_STEP_MS
               ? HEARTH_OK
               : HEARTH_FAIL(&im->cli->err, HEARTH_INVALID_ARGUMENT,
                             "--step %.60s is not between 1s and 1d", im->cli->step);
}

static enum hearth_status import_range(struct import *im)
{
    struct cli *cli = im->cli;

    HEARTH_TRY(cli_selector(cli, 1, &im->selector));
    HEARTH_TRY(cli_resolve_range(cli));
    HEARTH_TRY(read_step(im));
    HEARTH_TRY(import_connect(im));
    int64_t rate = cli->source.rate > 0 ? cli->source.rate : DEFAULT_RATE;
    im->pause_ns = HEARTH_NS_PER_SEC / rate;

    /* Whole steps, so that a second run has the same ones. */
    int64_t from_ms = cli->from_ms - cli->from_ms % im->step_ms;
    int64_t to_ms = cli->to_ms - cli->to_ms % im->step_ms;
    int64_t n_steps = im->step_ms < WINDOW_MS ? WINDOW_MS / im->step_ms : 1;
    if (from_ms <= 0 || from_ms >= to_ms) {
        return HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT,
                           "the range has no whole step of %lld ms: give --from and --to",
                           (long long)im->step_ms);
    }
    for (im->from_ms = from_ms; im->from_ms < to_ms; im->from_ms = im->to_ms) {
        int64_t end_ms = im->from_ms + n_steps * im->step_ms;
        char when[48];
        im->to_ms = end_ms < to_ms ? end_ms : to_ms;
        cli_zoned_seconds(im->from_ms, when);
        cli_progress(cli, "%s", when);
        HEARTH_TRY(import_window(im));
    }

    return HEARTH_OK;
}

static enum cli_exit print_import_json(const struct import *im)
{
    struct hearth_buf out;
    struct hearth_json json;

    hearth_buf_init(&out, 0);
    hearth_json_init(&json, &out);
    hearth_json_object(&json);
    hearth_json_key_c(&json, "types");
    hearth_json_array(&json);
    for (size_t i = 0; i < im->n_types; i++) {
        const struct import_type *type = &im->types[i];
        const struct {
            const char *key;
            int64_t value;
        } counts[] = {
            {"steps", type->n_steps},
            {"present", type->n_present},
            {"copied", type->n_copied},
            {"differing", type->n_differ},
            {"sourceTotal", type->source_total},
            {"total", type->here_total},
        };
        hearth_json_object(&json);
        hearth_json_key_c(&json, "type");
        hearth_json_string_c(&json, type->id);
        for (size_t k = 0; k < HEARTH_ARRAY_LEN(counts); k++) {
            hearth_json_key_c(&json, counts[k].key);
            hearth_json_i64_string(&json, counts[k].value);
        }
        hearth_json_object_end(&json);
    }
    hearth_json_array_end(&json);
    hearth_json_object_end(&json);
    hearth_buf_byte(&out, '\n');

    return cli_print_exact(&out);
}

/* Prints a row for each type. */
static enum cli_exit print_import_rows(const struct import *im)
{
    struct cli_listing list;

    cli_list_begin(im->cli, &list);
    list.empty = "the source has no profiles of this selection";
    for (size_t i = 0; i < im->n_types; i++) {
        const struct import_type *type = &im->types[i];
        cli_list_text(&list, type->id);
        cli_list_number(&list, type->n_steps);
        cli_list_number(&list, type->n_present);
        cli_list_number(&list, type->n_copied);
        cli_list_number(&list, type->n_differ);
        cli_list_number(&list, type->source_total);
        cli_list_number(&list, type->here_total);
    }

    return cli_list_end(&list, NULL);
}

static enum cli_exit print_import(const struct import *im)
{
    enum cli_exit code =
        im->cli->output == CLI_JSON ? print_import_json(im) : print_import_rows(im);

    for (size_t i = 0; code == CLI_OK && i < im->n_types; i++) {
        code = im->types[i].n_differ > 0 ? CLI_FAILED : CLI_OK;
    }

    /* A mistyped selector must not pass for a copy. */
    return code == CLI_OK && im->n_types == 0 ? CLI_NO_DATA : code;
}

enum cli_exit cli_import_pyroscope(struct cli *cli)
{
    struct import im = {.cli = cli, .url = cli->args[0]};

    cli->is_quiet = true; /* notes about each of thousands of answers */
    hearth_arena_init(&im.window, 0);
    hearth_arena_init(&im.step, 0);
    enum hearth_status status = import_range(&im);
    cli_progress_end();
    hearth_client_free(im.source);
    hearth_arena_release(&im.step);
    hearth_arena_release(&im.window);
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }

    return print_import(&im);
}
