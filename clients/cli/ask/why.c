/*
 * why.c -- why a query found nothing, and what was probably meant.
 *
 * After an empty answer, the server is asked what it has at any time: labels, values, types, the newest profile. A
 * failure of these calls leaves the plain message.
 */
#include "why.h"

#include "hearth/base/clock.h"
#include "hearth/model/labels.h"
#include "hearth/model/profile_type.h"
#include "hearth/pb/hearth/v1/profiles.pb-c.h"
#include "hearth/selector/selector.h"

#include "cli_call.h"
#include "cli_messages.h"
#include "filters.h"
#include "guess.h"
#include "text.h"

#include <stdio.h>

#define QUERIER "querier.v1.QuerierService/"

enum {
    MAX_LISTED = 6 /* names in a message */
};

/* ---- what the server has ---- */

struct names {
    char **v;
    size_t n;
};

enum hearth_status cli_ask_values(struct cli *cli, const char *label, const char *selector,
                                  int64_t from_ms, int64_t to_ms, char ***ret, size_t *ret_n)
{
    Types__V1__LabelValuesRequest request;
    Types__V1__LabelValuesResponse *answer;
    char *matchers[] = {cli_field(cli, selector)};

    types__v1__label_values_request__init(&request);
    request.name = cli_field(cli, label);
    request.matchers = matchers;
    request.n_matchers = 1;
    request.start = from_ms;
    request.end = to_ms;
    if (cli->arena.refused) {
        return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
    }
    HEARTH_TRY(cli_call(cli, QUERIER "LabelValues", &request,
                        &types__v1__label_values_response__descriptor, &answer));
    *ret = answer->names;
    *ret_n = answer->n_names;

    return HEARTH_OK;
}

/* Values at any time. */
static bool find_values(struct cli *cli, const char *label, const char *selector, struct names *ret)
{
    return cli_ask_values(cli, label, selector, 1, cli->now_ns / HEARTH_NS_PER_MS, &ret->v,
                          &ret->n) == HEARTH_OK;
}

enum hearth_status cli_ask_labels(struct cli *cli, char ***ret, size_t *ret_n)
{
    Types__V1__LabelNamesRequest request;
    Types__V1__LabelNamesResponse *answer;
    char every[] = "{}";
    char *matchers[] = {every};

    types__v1__label_names_request__init(&request);
    request.matchers = matchers;
    request.n_matchers = 1;
    request.start = 1;
    request.end = cli->now_ns / HEARTH_NS_PER_MS;
    HEARTH_TRY(cli_call(cli, QUERIER "LabelNames", &request,
                        &types__v1__label_names_response__descriptor, &answer));
    *ret = answer->names;
    *ret_n = answer->n_names;

    return HEARTH_OK;
}

/* The time of the newest profile of a selection; 0: it has no profile, or the server did not say. */
static int64_t find_newest(struct cli *cli, const char *selector)
{
    Hearth__V1__ListProfilesRequest request;
    Hearth__V1__ListProfilesResponse *answer;
    Hearth__V1__ProfileFilter filter;

    hearth__v1__list_profiles_request__init(&request);
    hearth__v1__profile_filter__init(&filter);
    filter.label_selector = cli_field(cli, selector);
    filter.start = 1;
    filter.end = cli->now_ns / HEARTH_NS_PER_MS;
    request.filter = &filter;
    request.order = HEARTH__V1__PROFILE_ORDER__PROFILE_ORDER_TIME;
    request.page_size = 1;
    cli->is_quiet = true; /* the notes are about the whole past, which the user did not ask for */
    if (cli->arena.refused ||
        cli_call(cli, "hearth.v1.ProfileService/ListProfiles", &request,
                 &hearth__v1__list_profiles_response__descriptor, &answer) != HEARTH_OK) {
        return 0;
    }

    return answer->n_profiles == 0 ? 0 : answer->profiles[0]->time_ns / HEARTH_NS_PER_MS;
}

/* ---- the reason ---- */

static bool has_name(const struct names *names, struct hearth_str name)
{
    for (size_t i = 0; i < names->n; i++) {
        if (hearth_str_eq_c(name, names->v[i])) {
            return true;
        }
    }
    return false;
}

/* Appends the nearest of the names, otherwise some of them. */
static void put_nearest(const struct names *names, struct hearth_str name, const char *what,
                        struct hearth_buf *out)
{
    struct cli_guess guess;
    char text[65];
    size_t shown = 0;

    (void)snprintf(text, sizeof text, "%.*s", (int)(name.n < 64 ? name.n : 64), name.p);
    cli_guess_begin(&guess, text);
    for (size_t i = 0; i < names->n; i++) {
        cli_guess_try(&guess, hearth_str_c(names->v[i]));
    }
    cli_guess_say(&guess, out);
    for (size_t i = 0; guess.best.p == NULL && i < names->n && shown < MAX_LISTED; i++) {
        if (strncmp(names->v[i], "__", 2) != 0) {
            hearth_buf_cstr(out, shown++ == 0 ? "; there are " : ", ");
            cli_fit(hearth_str_c(names->v[i]), 60, false, out);
        }
    }
    hearth_buf_cstr(out, shown == MAX_LISTED ? ", ..; " : "; ");
    hearth_buf_printf(out, "`hearth query %s` lists them", what);
}

static bool put_no_label(struct cli *cli, const char *label, struct hearth_buf *out)
{
    struct names labels;

    if (cli_ask_labels(cli, &labels.v, &labels.n) != HEARTH_OK ||
        has_name(&labels, hearth_str_c(label))) {
        return false;
    }
    hearth_buf_cstr(out, "there is no label ");
    cli_fit(hearth_str_c(label), 60, false, out);
    put_nearest(&labels, hearth_str_c(label), "labels", out);

    return true;
}

/* Appends what is wrong with a condition NAME="VALUE"; false: nothing is. */
static bool put_matcher(struct cli *cli, const struct hearth_matcher *matcher,
                        struct hearth_buf *out)
{
    const char *name = hearth_arena_strndup(&cli->arena, matcher->name.p, matcher->name.n);
    struct names values;

    if (matcher->op != HEARTH_MATCH_EQ || matcher->value.n == 0 || name == NULL ||
        !find_values(cli, name, "{}", &values) || has_name(&values, matcher->value)) {
        return false;
    }
    if (values.n == 0) {
        return put_no_label(cli, name, out);
    }
    char what[96];
    bool is_service = strcmp(name, HEARTH_LABEL_SERVICE) == 0;
    (void)snprintf(what, sizeof what, "%s%.80s", is_service ? "services" : "values ",
                   is_service ? "" : name);
    hearth_buf_printf(out, "there is no %.60s \"", is_service ? "service" : name);
    cli_fit(matcher->value, 60, false, out);
    hearth_buf_byte(out, '"');
    put_nearest(&values, matcher->value, what, out);

    return true;
}

/* Appends that --type is not among the types of a selection; false: it is. */
static bool put_type(struct cli *cli, const struct names *types, struct hearth_buf *out)
{
    if (cli->type == NULL || has_name(types, hearth_str_c(cli->type))) {
        return false;
    }
    hearth_buf_cstr(out, "there are no profiles of the type ");
    cli_fit(hearth_str_c(cli->type), 100, false, out);
    for (size_t i = 0; i < types->n && i < MAX_LISTED; i++) {
        hearth_buf_cstr(out, i == 0 ? "; there are " : ", ");
        cli_fit(hearth_str_c(types->v[i]), 100, false, out);
    }
    hearth_buf_cstr(out, types->n > MAX_LISTED ? ", ..; `hearth query types` lists them" : "");

    return true;
}

static bool put_reason(struct cli *cli, struct hearth_buf *out)
{
    const char *text = cli->selector == NULL ? "{}" : cli->selector;
    struct names types;
    struct hearth_selector selector;

    /* An empty store. */
    if (!find_values(cli, HEARTH_LABEL_PROFILE_TYPE, "{}", &types)) {
        return false;
    }
    if (types.n == 0) {
        hearth_buf_cstr(out, "there are no profiles yet; send one: hearth upload FILE --label "
                             "service_name=NAME");
        return true;
    }

    /* A condition that no series meets. */
    hearth_selector_init(&selector);
    bool is_said = false;
    if (hearth_selector_parse(&selector, hearth_str_c(text), &cli->arena, NULL, &cli->err) ==
        HEARTH_OK) {
        for (size_t i = 0; i < selector.n && !is_said; i++) {
            is_said = put_matcher(cli, &selector.matchers[i], out);
        }
    }
    hearth_selector_release(&selector);
    if (is_said || !find_values(cli, HEARTH_LABEL_PROFILE_TYPE, text, &types)) {
        return is_said;
    }

    /* The whole selector, its type, its time. */
    if (types.n == 0) {
        hearth_buf_printf(out, "no series matches all of %.200s", text);
        return true;
    }
    if (put_type(cli, &types, out)) {
        return true;
    }
    int64_t newest = find_newest(cli, text);
    if (newest == 0 || (newest >= cli->from_ms && newest <= cli->to_ms)) {
        return false;
    }
    char when[32];
    int64_t hours = (cli->now_ns - newest * HEARTH_NS_PER_MS) / HEARTH_NS_PER_HOUR + 1;
    cli_zoned(newest * HEARTH_NS_PER_MS, when);
    hearth_buf_printf(out,
                      "no data in this range; the newest matching profile is of %s, which --since "
                      "%lldh includes",
                      when, (long long)hours);

    return true;
}

enum hearth_status cli_fail_no_data(struct cli *cli)
{
    struct hearth_buf out;

    hearth_buf_init(&out, 0);
    if (!put_reason(cli, &out)) {
        hearth_buf_reset(&out);
        hearth_buf_cstr(&out, cli_has_stack_filter(cli)
                                  ? "no data in this range that the filters leave; their names "
                                    "must be exact"
                                  : "no data in this range; try a longer --since");
    }
    hearth_buf_byte(&out, '\0');
    enum hearth_status status =
        HEARTH_FAIL(&cli->err, HEARTH_NOT_FOUND, "%s",
                    hearth_buf_failed(&out) ? "no data in this range" : out.p);
    hearth_buf_release(&out);

    return status;
}

enum cli_exit cli_no_data(struct cli *cli)
{
    return cli_fail(cli, cli_fail_no_data(cli));
}

enum hearth_status cli_check_label(struct cli *cli, const char *label)
{
    struct hearth_buf out;

    hearth_buf_init(&out, 0);
    bool is_missing = strncmp(label, "__", 2) != 0 && put_no_label(cli, label, &out);
    hearth_buf_byte(&out, '\0');
    enum hearth_status status = is_missing && !hearth_buf_failed(&out)
                                    ? HEARTH_FAIL(&cli->err, HEARTH_NOT_FOUND, "%s", out.p)
                                    : HEARTH_OK;
    hearth_buf_release(&out);

    return status;
}

enum hearth_status cli_fail_no_function(struct cli *cli, Hearth__V1__Selection *selection,
                                        const char *function)
{
    Hearth__V1__TopRequest request;
    Hearth__V1__TopResponse *answer;
    struct hearth_buf out, regex;

    /* Names that contain it, the largest first. */
    hearth__v1__top_request__init(&request);
    hearth_buf_init(&regex, 0);
    for (const char *at = function; *at != '\0'; at++) {
        hearth_buf_cstr(&regex, strchr("\\.+*?()|[]{}^$", *at) != NULL ? "\\" : "");
        hearth_buf_byte(&regex, (uint8_t)*at);
    }
    hearth_buf_byte(&regex, '\0');
    request.selection = selection;
    request.kind = HEARTH__V1__TOP_KIND__TOP_KIND_FUNCTION;
    request.sort = HEARTH__V1__TOP_SORT__TOP_SORT_TOTAL;
    request.search = cli_field(cli, hearth_buf_failed(&regex) ? "" : regex.p);
    request.limit = MAX_LISTED;
    hearth_buf_release(&regex);
    bool is_asked = !cli->arena.refused &&
                    cli_call(cli, "hearth.v1.QueryService/Top", &request,
                             &hearth__v1__top_response__descriptor, &answer) == HEARTH_OK;

    hearth_buf_init(&out, 0);
    hearth_buf_cstr(&out, "no selected stack trace contains the function \"");
    cli_fit(hearth_str_c(function), 100, false, &out);
    hearth_buf_byte(&out, '"');
    for (size_t i = 0; is_asked && i < answer->n_rows; i++) {
        hearth_buf_cstr(&out, i == 0 ? "; names are exact: did you mean " : ", ");
        cli_fit(hearth_str_c(answer->rows[i]->name), 100, false, &out);
    }
    hearth_buf_cstr(&out, is_asked && answer->n_rows > 0 ? "?" : "");
    hearth_buf_byte(&out, '\0');
    enum hearth_status status = HEARTH_FAIL(&cli->err, HEARTH_NOT_FOUND, "%s",
                                            hearth_buf_failed(&out) ? "no such function" : out.p);
    hearth_buf_release(&out);

    return status;
}

/* ---- short names ---- */

/* Whether a short type is the sample type of a type, or its first parts. */
static bool is_short_for(const char *brief, const char *type)
{
    struct hearth_profile_type parts;

    if (hearth_profile_type_parse(hearth_str_c(type), &parts, NULL) != HEARTH_OK) {
        return false;
    }
    size_t n = strlen(brief);
    bool begins = strncmp(type, brief, n) == 0 && type[n] == ':';

    return begins || hearth_str_eq_c(parts.sample_type, brief);
}

enum hearth_status cli_complete_type(struct cli *cli, const char *selector)
{
    struct hearth_profile_type parts;
    struct names types;
    const char *found = NULL;
    size_t n = 0;

    if (hearth_profile_type_parse(hearth_str_c(cli->type), &parts, NULL) == HEARTH_OK) {
        return HEARTH_OK;
    }
    HEARTH_TRY(cli_ask_values(cli, HEARTH_LABEL_PROFILE_TYPE, selector, cli->from_ms, cli->to_ms,
                              &types.v, &types.n));
    if (types.n == 0) {
        cli->type = NULL;
        return cli_fail_no_data(cli);
    }
    for (size_t i = 0; i < types.n; i++) {
        if (is_short_for(cli->type, types.v[i])) {
            found = types.v[i];
            n++;
        }
    }
    if (n == 1) {
        cli_say("type", found);
        cli->type = found;
        return HEARTH_OK;
    }

    /* None or several: list them. */
    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    size_t shown = 0;
    for (size_t i = 0; i < types.n && shown < MAX_LISTED; i++) {
        if (n == 0 || is_short_for(cli->type, types.v[i])) {
            hearth_buf_cstr(&out, shown++ == 0 ? "" : ", ");
            cli_fit(hearth_str_c(types.v[i]), 100, false, &out);
        }
    }
    hearth_buf_byte(&out, '\0');
    enum hearth_status status =
        HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT, "--type %.60s is %s: %s", cli->type,
                    n == 0 ? "no type of this selection, which has" : "short for several types",
                    hearth_buf_failed(&out) ? "" : out.p);
    hearth_buf_release(&out);

    return status;
}

enum hearth_status cli_complete_selector(struct cli *cli, const char *word, const char **ret)
{
    struct names types = {NULL, 0};
    struct hearth_selector selector;

    /* A family of this name is what the word means to PromQL. */
    hearth_selector_init(&selector);
    bool is_family =
        hearth_selector_parse(&selector, hearth_str_c(word), &cli->arena, NULL, NULL) == HEARTH_OK;
    hearth_selector_release(&selector);
    if (is_family && find_values(cli, HEARTH_LABEL_PROFILE_TYPE, word, &types) && types.n > 0) {
        *ret = word;
        return HEARTH_OK;
    }

    *ret = hearth_arena_printf(&cli->arena, "{" HEARTH_LABEL_SERVICE "=\"%s\"}", word);
    if (*ret == NULL) {
        return HEARTH_FAIL_ARENA(&cli->err, &cli->arena);
    }
    cli_say("selector", *ret);

    return HEARTH_OK;
}
