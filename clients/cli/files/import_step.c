/* import_step.c -- one step of one series: its merged profile in the source becomes a profile in Hearth. */
#include "hearth/base/clock.h"
#include "hearth/codec/compress.h"
#include "hearth/pb/push/v1/push.pb-c.h"
#include "hearth/pb/querier/v1/querier.pb-c.h"

#include "cli.h"
#include "import.h"
#include "listing.h"

#include <time.h>

/*
 * The labels of a series as pairs. The first *ret_n are those of the series; the names behind them, without a value,
 * exclude series that have more labels.
 */
static enum hearth_status make_pairs(struct import *im, const struct import_line *line,
                                     Types__V1__LabelPair ***ret, size_t *ret_n, size_t *ret_n_all)
{
    size_t n_max = line->labels.n + im->n_names + 1, n = 0;
    Types__V1__LabelPair **list = hearth_arena_array(&im->step, n_max, sizeof list[0]);
    Types__V1__LabelPair *pairs = hearth_arena_array(&im->step, n_max, sizeof pairs[0]);

    if (list == NULL || pairs == NULL) {
        return HEARTH_FAIL_ARENA(&im->cli->err, &im->step);
    }
    for (size_t i = 0; i < n_max; i++) {
        types__v1__label_pair__init(&pairs[i]);
        list[i] = &pairs[i];
    }
    for (; n < line->labels.n; n++) {
        pairs[n].name = (char *)(uintptr_t)line->labels.v[n].name.p;
        pairs[n].value = (char *)(uintptr_t)line->labels.v[n].value.p;
    }
    *ret_n = n;
    for (size_t i = 0; i < im->n_names; i++) {
        if (hearth_labels_get(&line->labels, hearth_str_c(im->names[i])).p == NULL) {
            pairs[n++].name = im->names[i];
        }
    }
    *ret = list;
    *ret_n_all = n;

    return HEARTH_OK;
}

/* Adds up a profile of one sample type. */
static enum hearth_status add_samples(struct import *im, const Google__V1__Profile *profile,
                                      int64_t *ret_total)
{
    int64_t total = 0;

    for (size_t i = 0; i < profile->n_sample; i++) {
        const Google__V1__Sample *sample = profile->sample[i];
        if (sample->n_value != 1 || __builtin_add_overflow(total, sample->value[0], &total)) {
            return HEARTH_FAIL(&im->cli->err, HEARTH_CORRUPT,
                               "%.200s: sample %zu of the merged profile has %zu values, or the "
                               "total is too large",
                               im->url, i, sample->n_value);
        }
    }
    *ret_total = total;

    return HEARTH_OK;
}

static enum hearth_status merge_step(struct import *im, char *selector, int64_t from_ms,
                                     int64_t to_ms, Google__V1__Profile **ret, int64_t *ret_total)
{
    Querier__V1__SelectMergeProfileRequest request;

    querier__v1__select_merge_profile_request__init(&request);
    request.profile_typeid = im->type->id;
    request.label_selector = selector;
    request.start = from_ms;
    request.end = to_ms;
    HEARTH_TRY(import_ask(im, im->source, &im->step, IMPORT_QUERIER "SelectMergeProfile", &request,
                          &google__v1__profile__descriptor, ret));

    return add_samples(im, *ret, ret_total);
}

/* Waits until the rate allows the next push. */
static void keep_rate(struct import *im)
{
    int64_t now = hearth_clock_mono_ns(), wait = im->next_ns - now;

    if (wait > 0) {
        const struct timespec pause = {.tv_sec = wait / HEARTH_NS_PER_SEC,
                                       .tv_nsec = wait % HEARTH_NS_PER_SEC};
        (void)nanosleep(&pause, NULL);
    }
    im->next_ns = (wait > 0 ? im->next_ns : now) + im->pause_ns;
}

/* Pushes bytes with an id of what they are and where they were found. */
static enum hearth_status push_step(struct import *im, struct hearth_str bytes,
                                    const char *selector, Types__V1__LabelPair **labels,
                                    size_t n_labels)
{
    Push__V1__RawSample sample, *samples[] = {&sample};
    Push__V1__RawProfileSeries series, *all[] = {&series};
    Push__V1__PushRequest request;
    Push__V1__PushResponse *answer;
    struct hearth_hash128 content = hearth_hash128(bytes.p, bytes.n, 0);
    struct hearth_hash128 place = hearth_hash128(selector, strlen(selector), 0);

    push__v1__raw_sample__init(&sample);
    push__v1__raw_profile_series__init(&series);
    push__v1__push_request__init(&request);
    sample.id = hearth_arena_printf(&im->step, "import-%016llx%016llx%016llx",
                                    (unsigned long long)content.hi, (unsigned long long)content.lo,
                                    (unsigned long long)place.lo);
    sample.raw_profile = (ProtobufCBinaryData){bytes.n, (uint8_t *)(uintptr_t)bytes.p};
    series.labels = labels;
    series.n_labels = n_labels;
    series.samples = samples;
    series.n_samples = 1;
    request.series = all;
    request.n_series = 1;
    if (sample.id == NULL) {
        return HEARTH_FAIL_ARENA(&im->cli->err, &im->step);
    }

    return import_ask(im, im->cli->client, &im->step, "push.v1.PusherService/Push", &request,
                      &push__v1__push_response__descriptor, &answer);
}

/*
 * The merged profile of the step that ends at `ms`. Points are of whole milliseconds and have the profiles within the
 * last one; merged profiles end at its beginning.
 */
static enum hearth_status ask_step(struct import *im, char *selector, int64_t ms, double expected,
                                   Google__V1__Profile **ret)
{
    int64_t from_ms = ms - im->step_ms + 1, total, longer_total;
    Google__V1__Profile *profile, *longer;

    HEARTH_TRY(merge_step(im, selector, from_ms, ms, &profile, &total));
    if ((double)total != expected) {
        HEARTH_TRY(merge_step(im, selector, from_ms, ms + 1, &longer, &longer_total));
        profile = (double)longer_total == expected ? longer : profile;
    }
    profile->time_nanos = ms * HEARTH_NS_PER_MS;
    profile->duration_nanos = im->step_ms * HEARTH_NS_PER_MS;
    *ret = profile;

    return HEARTH_OK;
}

enum hearth_status import_copy_step(struct import *im, const struct import_line *line, int64_t ms,
                                    double expected)
{
    Types__V1__LabelPair **pairs;
    Google__V1__Profile *profile;
    size_t n, n_all;
    char name[] = HEARTH_LABEL_NAME;

    hearth_arena_reset(&im->step);
    HEARTH_TRY(make_pairs(im, line, &pairs, &n, &n_all));
    char *selector = import_select(&im->step, pairs, n_all);
    char *family = hearth_arena_strndup(&im->step, im->type->id, strcspn(im->type->id, ":"));
    if (selector == NULL || family == NULL) {
        return HEARTH_FAIL_ARENA(&im->cli->err, &im->step);
    }
    HEARTH_TRY(ask_step(im, selector, ms, expected, &profile));
    if (profile->n_sample == 0) {
        return HEARTH_OK; /* the check reports it */
    }

    /* The family takes the place of the first excluded label. */
    pairs[n]->name = name;
    pairs[n]->value = family;
    struct hearth_buf wire, packed;
    hearth_buf_init(&wire, 0);
    hearth_buf_init(&packed, 0);
    hearth_pb_pack(&profile->base, &wire);
    enum hearth_status status = HEARTH_OK;
    if (hearth_buf_failed(&wire)) {
        status = HEARTH_FAIL(&im->cli->err, HEARTH_NO_MEMORY, "cannot allocate a profile");
    } else {
        status = hearth_gzip(hearth_buf_view(&wire), 6, &packed, &im->cli->err);
    }
    hearth_buf_release(&wire);
    if (status == HEARTH_OK) {
        keep_rate(im);
        status = push_step(im, hearth_buf_view(&packed), selector, pairs, n + 1);
    }
    hearth_buf_release(&packed);
    im->type->n_copied += status == HEARTH_OK;

    return status;
}
