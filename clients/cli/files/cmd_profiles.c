/* cmd_profiles.c -- hearth profiles: uploads as a list, counted by labels, one by its id. */
#include "hearth/base/clock.h"
#include "hearth/pb/hearth/v1/profiles.pb-c.h"

#include "ask.h"
#include "cli_call.h"
#include "cli_messages.h"
#include "cmd_explain.h"
#include "cmd_uploads.h"
#include "filters.h"
#include "merged_profile.h"
#include "text.h"
#include "why.h"

#include <limits.h>
#include <stdio.h>

#define PROFILES   "hearth.v1.ProfileService/"
#define ROWS       30
#define PAGE_MAX   1000
#define FACET_ROWS 10

/* ---- requests ---- */

/* Selector, labels, type and range. Totals of different types cannot be compared. */
static enum hearth_status read_filter(struct cli *cli, Hearth__V1__ProfileFilter *filter)
{
    const char *selector;

    hearth__v1__profile_filter__init(filter);
    HEARTH_TRY(cli_query_selector(cli, 0, &selector));
    HEARTH_TRY(cli_resolve_range(cli));
    filter->label_selector = cli_field(cli, selector);
    if (cli->type != NULL || (cli->sort != NULL && strcmp(cli->sort, "total") == 0)) {
        HEARTH_TRY(cli_profile_type(cli, selector, &cli->type));
        filter->profile_type = cli_field(cli, cli->type);
    }
    filter->start = cli->from_ms;
    filter->end = cli->to_ms;

    return cli_label_pairs(cli, NULL, 0, &filter->labels, &filter->n_labels);
}

static enum hearth_status read_order(struct cli *cli, Hearth__V1__ProfileOrder *ret)
{
    static const char *const names[] = {NULL, "time", "duration", "total"};

    *ret = HEARTH__V1__PROFILE_ORDER__PROFILE_ORDER_TIME;
    if (cli->sort == NULL) {
        return HEARTH_OK;
    }
    for (size_t i = 1; i < HEARTH_ARRAY_LEN(names); i++) {
        if (strcmp(cli->sort, names[i]) == 0) {
            *ret = (Hearth__V1__ProfileOrder)i;
            return HEARTH_OK;
        }
    }

    return HEARTH_FAIL(&cli->err, HEARTH_INVALID_ARGUMENT,
                       "--sort must be time, duration or total, not \"%.40s\"", cli->sort);
}

/* ---- text ---- */

static void put_field(struct hearth_buf *out, const char *text)
{
    cli_fit(hearth_str_c(text), INT_MAX, false, out);
}

/* "host=a pod=b", without the label of the service: exact texts. */
static void put_labels(Types__V1__LabelPair **labels, size_t n, struct hearth_buf *out)
{
    bool any = false;

    for (size_t i = 0; i < n; i++) {
        if (strcmp(labels[i]->name, "service_name") != 0) {
            hearth_buf_printf(out, "%s%s=%s", any ? " " : "", labels[i]->name, labels[i]->value);
            any = true;
        }
    }
}

/* "cpu,samples": the names of the types. */
static void put_types(char **types, size_t n, struct hearth_buf *out)
{
    for (size_t i = 0; i < n; i++) {
        hearth_buf_cstr(out, i > 0 ? "," : "");
        hearth_buf_str(out, cli_type_name(types[i]));
    }
}

static void put_duration(int64_t duration_ns, struct hearth_buf *out)
{
    char text[48] = "-";

    if (duration_ns > 0) {
        cli_value((double)duration_ns, HEARTH_STR("nanoseconds"), text);
    }
    hearth_buf_printf(out, "%9s", text);
}

/* ---- list ---- */

static void add_listed(struct cli_listing *list, const Hearth__V1__ListedProfile *row,
                       const char *type)
{
    struct hearth_buf types, labels;
    struct hearth_str unit = type == NULL ? HEARTH_STR("") : cli_type_unit(type);

    hearth_buf_init(&types, 0);
    hearth_buf_init(&labels, 0);
    put_types(row->profile_types, row->n_profile_types, &types);
    put_labels(row->labels, row->n_labels, &labels);
    cli_list_time(list, row->time_ns / HEARTH_NS_PER_MS);
    cli_list_text(list, row->id);
    if (row->duration_ns > 0) {
        cli_list_number(list, row->duration_ns);
    } else {
        cli_list_absent(list);
    }
    if (type != NULL) {
        cli_list_value(list, row->total, unit);
    } else {
        cli_list_absent(list);
    }
    cli_list_str(list, unit);
    cli_list_text(list, row->service);
    cli_list_take(list, &types);
    cli_list_take(list, &labels);
}

enum cli_exit cli_profiles_list(struct cli *cli)
{
    Hearth__V1__ListProfilesRequest request;
    Hearth__V1__ProfileFilter filter;
    Hearth__V1__ListProfilesResponse *answer = NULL;
    int64_t limit = cli->has_limit ? cli->limit : ROWS;

    hearth__v1__list_profiles_request__init(&request);
    enum hearth_status status = read_filter(cli, &filter);
    status = status == HEARTH_OK ? read_order(cli, &request.order) : status;
    request.filter = &filter;
    request.page_size = (int32_t)(limit < PAGE_MAX ? limit : PAGE_MAX);
    if (status == HEARTH_OK) {
        status = cli_call(cli, PROFILES "ListProfiles", &request,
                          &hearth__v1__list_profiles_response__descriptor, &answer);
    }
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    if (answer->n_profiles == 0) {
        return cli_no_data(cli);
    }

    struct cli_listing list;
    cli_list_begin(cli, &list);
    for (size_t i = 0; i < answer->n_profiles; i++) {
        add_listed(&list, answer->profiles[i], cli->type);
    }
    if (answer->next_page_token[0] != '\0') {
        cli_say("hearth", "there are more; --limit N prints up to 1000, --to T earlier ones");
    }

    return cli_list_end(&list, &answer->base);
}

/* ---- facets ---- */

static void add_facet(struct cli_listing *list, const Hearth__V1__ProfileFacet *facet,
                      int64_t n_uploads)
{
    for (size_t i = 0; i < facet->n_values; i++) {
        int64_t n = facet->values[i]->profile_count;
        cli_list_text(list, facet->label);
        cli_list_number(list, n);
        cli_list_share(list, (double)n, (double)n_uploads);
        cli_list_text(list, facet->values[i]->value);
    }

    int64_t left = facet->value_count - (int64_t)facet->n_values;
    if (left > 0) {
        char values[64];
        cli_number(left, "other value", "other values", values);
        cli_fit(hearth_str_c(facet->label), INT_MAX, false, &list->foot);
        hearth_buf_printf(&list->foot, ": %s; --limit shows more\n", values);
    }
}

enum cli_exit cli_exemplars(struct cli *cli)
{
    cli->sort = "total";

    return cli_is_by_span(cli) ? cli_spans_list(cli) : cli_profiles_list(cli);
}

enum cli_exit cli_explain_profiles(struct cli *cli)
{
    Hearth__V1__ExplainRequest request;
    Hearth__V1__ProfileFilter filter;
    enum hearth_status status = read_filter(cli, &filter);

    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    hearth__v1__explain_request__init(&request);
    request.kind = HEARTH__V1__QUESTION_KIND__QUESTION_KIND_PROFILE_LIST;
    request.profile_type = filter.profile_type;
    request.label_selector = filter.label_selector;
    request.start = filter.start;
    request.end = filter.end;
    request.n_labels = filter.n_labels;
    request.labels = filter.labels;

    return cli_ask_explain(cli, &request);
}

enum cli_exit cli_explain_exemplars(struct cli *cli)
{
    cli->sort = "total";

    return cli_is_by_span(cli) ? cli_explain_spans(cli) : cli_explain_profiles(cli);
}

enum cli_exit cli_profiles_facets(struct cli *cli)
{
    Hearth__V1__ProfileFacetsRequest request;
    Hearth__V1__ProfileFilter filter;
    Hearth__V1__ProfileFacetsResponse *answer = NULL;
    int64_t limit = cli->has_limit ? cli->limit : FACET_ROWS;

    hearth__v1__profile_facets_request__init(&request);
    enum hearth_status status = read_filter(cli, &filter);
    request.filter = &filter;
    request.n_labels = cli->n_by;
    request.labels = cli_by_names(cli);
    request.limit = (int32_t)(limit < PAGE_MAX ? limit : PAGE_MAX);
    if (status == HEARTH_OK) {
        status = cli_call(cli, PROFILES "ProfileFacets", &request,
                          &hearth__v1__profile_facets_response__descriptor, &answer);
    }
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    if (answer->profile_count == 0) {
        return cli_no_data(cli);
    }

    struct cli_listing list;
    cli_list_begin(cli, &list);
    for (size_t i = 0; i < answer->n_facets; i++) {
        add_facet(&list, answer->facets[i], answer->profile_count);
    }

    return cli_list_end(&list, &answer->base);
}

/* ---- one upload ---- */

static void print_totals(Hearth__V1__ProfileTypeTotal **types, size_t n, struct hearth_buf *out)
{
    for (size_t i = 0; i < n; i++) {
        char total[48];
        cli_value((double)types[i]->total, cli_type_unit(types[i]->profile_type), total);
        hearth_buf_printf(out, "%14s  ", total);
        put_field(out, types[i]->profile_type);
        hearth_buf_byte(out, '\n');
    }
}

static void print_upload(const Hearth__V1__GetProfileResponse *answer, struct hearth_buf *out)
{
    const Hearth__V1__ListedProfile *row = answer->profile;
    char when[32];

    hearth_clock_format(row->time_ns, when);
    hearth_buf_printf(out, "%s  %s", row->id, when);
    if (row->duration_ns > 0) {
        put_duration(row->duration_ns, out);
    }
    hearth_buf_cstr(out, "\n");
    for (size_t i = 0; i < row->n_labels; i++) {
        put_field(out, row->labels[i]->name);
        hearth_buf_cstr(out, ": ");
        put_field(out, row->labels[i]->value);
        hearth_buf_byte(out, '\n');
    }
    for (size_t i = 0; i < answer->n_client_tags; i++) {
        hearth_buf_cstr(out, "client ");
        put_field(out, answer->client_tags[i]->name);
        hearth_buf_cstr(out, ": ");
        put_field(out, answer->client_tags[i]->value);
        hearth_buf_byte(out, '\n');
    }
    print_totals(answer->types, answer->n_types, out);

    for (size_t i = 0; i < answer->n_originals; i++) {
        char size[48];
        cli_value((double)answer->originals[i]->size_bytes, HEARTH_STR("bytes"), size);
        hearth_buf_printf(out, "original %s: ", size);
        put_field(out, answer->originals[i]->name);
        hearth_buf_byte(out, '\n');
    }

    /* A single series repeats the upload. */
    for (size_t i = 0; answer->n_series > 1 && i < answer->n_series; i++) {
        const Hearth__V1__ListedSeries *series = answer->series[i];
        struct hearth_buf labels;
        hearth_buf_init(&labels, 0);
        put_labels(series->labels, series->n_labels, &labels);
        hearth_buf_cstr(out, "series ");
        hearth_human_escape(hearth_buf_view(&labels), out);
        hearth_buf_byte(out, '\n');
        hearth_buf_release(&labels);
        print_totals(series->types, series->n_types, out);
    }
}

enum cli_exit cli_profiles_show(struct cli *cli)
{
    Hearth__V1__GetProfileRequest request;
    Hearth__V1__GetProfileResponse *answer = NULL;

    hearth__v1__get_profile_request__init(&request);

    request.id = cli_field(cli, cli->args[0]);
    enum hearth_status status = cli_call(cli, PROFILES "GetProfile", &request,
                                         &hearth__v1__get_profile_response__descriptor, &answer);
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }

    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    print_upload(answer, &out);

    return cli_print_answer(cli, &answer->base, &out);
}

enum cli_exit cli_profiles_pprof(struct cli *cli)
{
    Hearth__V1__GetProfileRequest request;
    Google__V1__Profile *answer = NULL;

    hearth__v1__get_profile_request__init(&request);
    if (cli->output != CLI_PPROF) {
        return cli_usage("profiles pprof requires -o pprof=FILE");
    }

    request.id = cli_field(cli, cli->args[0]);
    enum hearth_status status = cli_call(cli, PROFILES "GetProfilePprof", &request,
                                         &google__v1__profile__descriptor, &answer);
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }

    struct hearth_buf wire;
    hearth_buf_init(&wire, 0);
    hearth_pb_pack(&answer->base, &wire);
    enum cli_exit code = cli_save_pprof(cli, hearth_buf_view(&wire), (uint32_t)answer->n_sample);
    hearth_buf_release(&wire);

    return code;
}

/* ---- originals ---- */

/* Finds the file with the name, or the only one. Returns false and says why otherwise. */
static bool find_original(struct cli *cli, const Hearth__V1__GetProfileResponse *profile,
                          const char *name, int32_t *ret_index)
{
    size_t n = profile->n_originals;

    for (size_t i = 0; i < n; i++) {
        if (name != NULL ? strcmp(profile->originals[i]->name, name) == 0 : n == 1) {
            *ret_index = (int32_t)i;
            return true;
        }
    }

    if (n == 0) {
        (void)HEARTH_FAIL(&cli->err, HEARTH_NOT_FOUND,
                          "no original of this profile is kept (see --keep-originals of hearthd)");
    } else {
        (void)HEARTH_FAIL(&cli->err, HEARTH_NOT_FOUND,
                          "the profile has %zu originals; name one of those that profiles show "
                          "prints",
                          n);
    }
    return false;
}

/* Writes all bytes of the file, a part at a time. */
static enum hearth_status write_original(struct cli *cli, Hearth__V1__ReadOriginalRequest *request,
                                         FILE *to)
{
    for (;;) {
        HEARTH_CLEANUP(hearth_arena_release) struct hearth_arena arena;
        struct ProtobufCMessage *message;
        hearth_arena_init(&arena, 0);
        struct hearth_call call = {.method = PROFILES "ReadOriginal"};
        HEARTH_TRY(hearth_call_message(cli->client, &call, &request->base,
                                       &hearth__v1__read_original_response__descriptor, &arena,
                                       &message, &cli->err));

        const Hearth__V1__ReadOriginalResponse *part = (Hearth__V1__ReadOriginalResponse *)message;
        if (part->data.len > 0 &&
            fwrite(part->data.data, 1, part->data.len, to) != part->data.len) {
            return cli_fail_file(cli, "write");
        }
        request->offset += (int64_t)part->data.len;
        if (request->offset >= part->size_bytes) {
            return HEARTH_OK;
        }
        if (part->data.len == 0) {
            return HEARTH_FAIL(&cli->err, HEARTH_CORRUPT, "the original ends after %lld bytes",
                               (long long)request->offset);
        }
    }
}

enum cli_exit cli_profiles_original(struct cli *cli)
{
    Hearth__V1__GetProfileRequest ask = HEARTH__V1__GET_PROFILE_REQUEST__INIT;
    Hearth__V1__ReadOriginalRequest request = HEARTH__V1__READ_ORIGINAL_REQUEST__INIT;
    Hearth__V1__GetProfileResponse *profile = NULL;

    /* Find the file. */
    ask.id = request.id = cli_field(cli, cli->args[0]);
    enum hearth_status status = cli_call(cli, PROFILES "GetProfile", &ask,
                                         &hearth__v1__get_profile_response__descriptor, &profile);
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }
    if (!find_original(cli, profile, cli->n_args > 2 ? cli->args[2] : NULL, &request.index)) {
        return cli_fail(cli, HEARTH_NOT_FOUND);
    }

    /* Write it. */
    bool is_stdout = strcmp(cli->args[1], "-") == 0;
    FILE *to = is_stdout ? stdout : fopen(cli->args[1], "wbxe"); /* never overwrites */
    if (to == NULL) {
        (void)cli_fail_file(cli, "create the file");
        return cli_fail(cli, HEARTH_INVALID_ARGUMENT);
    }
    status = write_original(cli, &request, to);
    bool failed = is_stdout ? fflush(to) != 0 : fclose(to) != 0;
    if (status == HEARTH_OK && failed) {
        status = cli_fail_file(cli, "write");
    }

    return status == HEARTH_OK ? CLI_OK : cli_fail(cli, status);
}
