/*
 * perf_decode.c -- samples and the records that explain them, in the order of their times.
 *
 * perf writes the buffers of the processors one after the other, so a sample may stand before the
 * map that it needs. All records are collected first, sorted by time, and then applied.
 */
#include "hearth/base/limit.h"
#include "hearth/format/ingest_types.h"
#include "hearth/format/perf_data.h"

#include "perf/perf_events.h"
#include "text/perf_lines.h"

#include <assert.h>
#include <stdlib.h>

/* A record that waits for its turn. */
struct perf_entry {
    uint64_t time;
    const char *body;
    uint32_t order; /* in the file */
    uint16_t type, misc, n_body;
    uint16_t event; /* of a sample */
};

_Static_assert(sizeof(struct perf_entry) == 32, "large recordings have a million of them");
_Static_assert(HEARTH_PERF_MAX_EVENTS <= UINT16_MAX, "an event fits into an entry");

struct perf_decoder {
    const struct hearth_perf_options *options;
    struct perf_file file;
    struct perf_space space;
    struct hearth_arena scratch;
    struct perf_entry *entries;
    size_t n_entries, cap_entries, n_samples;
    bool is_unsorted; /* the times of the entries fall */
    struct perf_output outputs[HEARTH_PERF_MAX_EVENTS];
    struct perf_index of_counter; /* id of a counter to its index */
    uint64_t *counters;           /* their values so far */
    size_t n_counters, cap_counters;
    uint64_t n_counted_frames;
    uint64_t first_time, last_time; /* of samples */
    uint64_t n_lost, n_unknown, n_copied;
};

/* ---- collecting ---- */

static uint64_t sum_to_limit(uint64_t a, uint64_t b)
{
    uint64_t sum;

    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static void count_lost(struct perf_decoder *d, const struct perf_record *record)
{
    struct perf_cursor c = perf_cursor_at(record->body);

    if (record->type == PERF_LOST) {
        perf_skip(&c, 8); /* the id of the event */
    }
    d->n_lost = sum_to_limit(d->n_lost, perf_u64(&c));
}

static enum hearth_status add_entry(struct perf_decoder *d, const struct perf_record *record,
                                    uint64_t time, uint32_t event, struct hearth_err *err)
{
    assert(record->type <= UINT16_MAX && record->body.n <= UINT16_MAX && event <= UINT16_MAX);
    if (!hearth_arena_regrow(&d->scratch, &d->entries, &d->cap_entries, d->n_entries + 1,
                             sizeof *d->entries)) {
        return HEARTH_FAIL_ARENA(err, &d->scratch);
    }

    d->is_unsorted =
        d->is_unsorted || (d->n_entries > 0 && d->entries[d->n_entries - 1].time > time);
    d->entries[d->n_entries] = (struct perf_entry){
        .time = time,
        .body = record->body.p,
        .order = (uint32_t)d->n_entries,
        .type = (uint16_t)record->type,
        .misc = record->misc,
        .n_body = (uint16_t)record->body.n,
        .event = (uint16_t)event,
    };
    d->n_entries++;

    return HEARTH_OK;
}

static enum hearth_status collect_sample(struct perf_decoder *d, const struct perf_record *record,
                                         struct hearth_err *err)
{
    uint32_t max_samples = d->options->limits.max_samples;

    if (d->file.n_events == 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "a sample stands before the description of any event");
    }

    uint32_t event = hearth_perf_sample_event(&d->file, record->body);
    if (event >= d->file.n_events) {
        d->n_unknown++;
        return HEARTH_OK;
    }
    if (max_samples > 0 && d->n_samples == max_samples) {
        return HEARTH_FAIL(
            err, HEARTH_RESOURCE_EXHAUSTED,
            "the recording has more than %u samples" HEARTH_RAISE_LIMIT("max-samples"),
            max_samples);
    }

    d->n_samples++;
    d->n_copied += (d->file.events[event].sample_type & PERF_HAS_STACK_COPY) != 0;

    return add_entry(d, record, hearth_perf_sample_time(&d->file.events[event], record->body),
                     event, err);
}

static enum hearth_status collect_record(void *context, const struct perf_record *record,
                                         struct hearth_err *err)
{
    struct perf_decoder *d = context;

    switch (record->type) {
    case PERF_SAMPLE:
        return collect_sample(d, record, err);
    case PERF_MMAP:
    case PERF_MMAP2:
    case PERF_COMM:
    case PERF_FORK:
        return add_entry(
            d, record,
            d->file.n_events > 0 ? hearth_perf_record_time(&d->file.events[0], record->body) : 0, 0,
            err);
    case PERF_LOST:
    case PERF_LOST_SAMPLES:
        count_lost(d, record);
        return HEARTH_OK;
    default:
        return hearth_perf_take_header(&d->file, record, err);
    }
}

/* ---- applying ---- */

static int compare_entries(const void *a, const void *b)
{
    const struct perf_entry *x = a, *y = b;

    if (x->time != y->time) {
        return x->time < y->time ? -1 : 1;
    }

    return x->order < y->order ? -1 : x->order > y->order;
}

/* Sorts by time, unless a record may lack one: then the order of the file counts. */
static void sort_entries(struct perf_decoder *d)
{
    for (size_t i = 0; i < d->file.n_events; i++) {
        const struct perf_event *event = &d->file.events[i];
        if (!event->has_sample_ids || (event->sample_type & PERF_HAS_TIME) == 0) {
            return;
        }
    }

    if (d->is_unsorted) {
        qsort(d->entries, d->n_entries, sizeof *d->entries, compare_entries);
    }
}

/* By how much a counter has grown since the sample before. */
static enum hearth_status find_growth(struct perf_decoder *d, uint64_t id, uint64_t value,
                                      uint64_t *ret_growth, struct hearth_err *err)
{
    bool is_new = false;

    if (!hearth_arena_regrow(&d->scratch, &d->counters, &d->cap_counters, d->n_counters + 1,
                             sizeof *d->counters)) {
        return HEARTH_FAIL_ARENA(err, &d->scratch);
    }

    uint32_t i = perf_index_intern(&d->of_counter, &d->scratch, perf_key(id, 4),
                                   (uint32_t)d->n_counters, &is_new);
    if (i == HEARTH_IDMAP_NONE) {
        return HEARTH_FAIL_ARENA(err, &d->scratch);
    }

    if (is_new) {
        d->counters[d->n_counters++] = 0;
    }
    *ret_growth = value - d->counters[i];
    d->counters[i] = value;

    return HEARTH_OK;
}

/*
 * A sample that reads counters counts for each of their events, with the growth of the counter:
 * only the leader of a group is sampled.
 */
static enum hearth_status add_counters(struct perf_decoder *d, const struct perf_event *event,
                                       struct perf_sample *sample, uint16_t misc,
                                       struct hearth_err *err)
{
    uint32_t max_frames = d->options->limits.max_frames;

    for (uint64_t i = 0; i < sample->n_counters; i++) {
        uint64_t value, id;
        hearth_perf_counter_read(event, sample, &value, &id);
        uint32_t of_id = hearth_perf_find_event(&d->file, id);
        if (of_id >= d->file.n_events) {
            d->n_unknown++;
            continue;
        }

        HEARTH_TRY(find_growth(d, id, value, &sample->period, err));
        sample->has_period = true;
        if (sample->period == 0) {
            continue;
        }

        /* A small file may count a large stack many times. */
        d->n_counted_frames += sample->n_chain + 1;
        if (max_frames > 0 && d->n_counted_frames > max_frames) {
            return HEARTH_FAIL(err, HEARTH_RESOURCE_EXHAUSTED,
                               "the samples of groups have more than %u frames in "
                               "sum" HEARTH_RAISE_LIMIT("max-stack-frames"),
                               max_frames);
        }
        HEARTH_TRY(hearth_perf_output_add(&d->outputs[of_id], &d->space, &d->file.events[of_id],
                                          sample, misc, err));
    }

    return HEARTH_OK;
}

static enum hearth_status apply_sample(struct perf_decoder *d, const struct perf_entry *entry,
                                       struct hearth_err *err)
{
    const struct perf_event *event = &d->file.events[entry->event];
    struct perf_sample sample;

    HEARTH_TRY(hearth_perf_space_settle(&d->space, err));
    if (!hearth_perf_sample_read(event, hearth_str_n(entry->body, entry->n_body), &sample)) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "sample %u has fewer bytes than its fields need", entry->order);
    }

    d->first_time = sample.time < d->first_time ? sample.time : d->first_time;
    d->last_time = sample.time > d->last_time ? sample.time : d->last_time;
    if (sample.n_counters > 0) {
        return add_counters(d, event, &sample, entry->misc, err);
    }

    return hearth_perf_output_add(&d->outputs[entry->event], &d->space, event, &sample, entry->misc,
                                  err);
}

static enum hearth_status apply_entries(struct perf_decoder *d, struct hearth_err *err)
{
    sort_entries(d);
    d->first_time = UINT64_MAX;
    for (size_t i = 0; i < d->n_entries; i++) {
        const struct perf_entry *entry = &d->entries[i];
        const struct perf_record record = {entry->type, entry->misc,
                                           hearth_str_n(entry->body, entry->n_body)};
        HEARTH_TRY(entry->type == PERF_SAMPLE ? apply_sample(d, entry, err)
                                              : hearth_perf_space_apply(&d->space, &record, err));
    }

    return HEARTH_OK;
}

/* ---- profiles ---- */

/* A text as __name__: other characters than letters and digits become '_'. */
static struct hearth_str make_plain_name(struct hearth_str text, struct hearth_arena *arena)
{
    char *p = hearth_arena_strndup(arena, text.n > 0 ? text.p : "", text.n);

    for (size_t i = 0; p != NULL && i < text.n; i++) {
        bool is_plain = (p[i] >= '0' && p[i] <= '9') || (p[i] >= 'a' && p[i] <= 'z') ||
                        (p[i] >= 'A' && p[i] <= 'Z');
        p[i] = is_plain ? p[i] : '_';
    }

    return p == NULL ? (struct hearth_str){NULL, 0} : hearth_str_n(p, text.n);
}

static bool is_name_taken(const struct hearth_perf_recording *r, struct hearth_str name)
{
    for (size_t i = 0; i < r->n_profiles; i++) {
        if (hearth_str_eq(r->profiles[i].name, name)) {
            return true;
        }
    }

    return false;
}

/* process_cpu, the event without or with its modifiers, or with its number: the first free one. */
static struct hearth_str name_perf_profile(const struct perf_decoder *d, uint32_t event_idx,
                                           const struct hearth_perf_recording *r)
{
    const struct perf_event *event = &d->file.events[event_idx];
    struct hearth_arena *arena = d->file.arena;
    struct hearth_str text = hearth_perf_event_name(event, arena);

    if (hearth_perf_event_is_clock(event) && !is_name_taken(r, HEARTH_STR("process_cpu"))) {
        return HEARTH_STR("process_cpu");
    }

    struct hearth_str name = make_plain_name(hearth_perf_event_base(text), arena);
    if (name.p != NULL && is_name_taken(r, name)) {
        name = make_plain_name(text, arena);
    }
    if (name.p != NULL && is_name_taken(r, name)) {
        char *numbered =
            hearth_arena_printf(arena, HEARTH_STR_FMT "_%u", HEARTH_STR_ARG(name), event_idx);
        name = numbered == NULL ? (struct hearth_str){NULL, 0} : hearth_str_c(numbered);
    }

    return name;
}

/* The time of day of a time of the recording; 0: not known. */
static int64_t find_wall_time(const struct perf_decoder *d, uint64_t time)
{
    int64_t since, wall;

    if (d->file.wall_ns == 0 || __builtin_sub_overflow(time, d->file.clock_ns, &since) ||
        __builtin_add_overflow(d->file.wall_ns, since, &wall)) {
        return 0;
    }

    return wall;
}

static enum hearth_status
finish_recording(struct perf_decoder *d, struct hearth_perf_recording *ret, struct hearth_err *err)
{
    struct hearth_arena *arena = d->file.arena;
    struct hearth_perf_recording r = {
        .n_lost = d->n_lost, .n_unknown = d->n_unknown, .n_copied = d->n_copied};

    r.profiles = hearth_arena_calloc(arena, d->file.n_events, sizeof *r.profiles);
    if (r.profiles == NULL && d->file.n_events > 0) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (uint32_t i = 0; i < d->file.n_events; i++) {
        struct hearth_perf_profile *p = &r.profiles[r.n_profiles];
        if (d->outputs[i].builder == NULL) {
            continue;
        }

        p->name = name_perf_profile(d, i, &r);
        if (p->name.p == NULL) {
            return HEARTH_FAIL_ARENA(err, arena);
        }
        HEARTH_TRY(
            hearth_perf_output_finish(&d->outputs[i], &d->file.events[i], arena, &p->profile, err));
        HEARTH_TRY(hearth_ingest_cut(&d->options->limits, arena, &p->profile, &r.notes, err));

        uint64_t duration = d->last_time - d->first_time;
        p->profile.time_ns = find_wall_time(d, d->first_time);
        p->profile.duration_ns = duration > INT64_MAX ? 0 : (int64_t)duration;
        r.n_profiles++;
    }

    *ret = r;

    return HEARTH_OK;
}

/* ---- all of it ---- */

static enum hearth_status decode_perf_data(struct perf_decoder *d, struct hearth_str bytes,
                                           struct hearth_arena *arena,
                                           struct hearth_perf_recording *ret,
                                           struct hearth_err *err)
{
    HEARTH_TRY(hearth_perf_file_open(&d->file, bytes, arena, err));
    HEARTH_TRY(hearth_perf_visit_records(&d->file, collect_record, d, err));
    HEARTH_TRY(hearth_perf_space_init(&d->space, &d->file, d->options, &d->scratch, err));
    HEARTH_TRY(apply_entries(d, err));

    return finish_recording(d, ret, err);
}

enum hearth_status hearth_perf_data_decode(struct hearth_str bytes,
                                           const struct hearth_perf_options *options,
                                           struct hearth_arena *arena,
                                           struct hearth_perf_recording *ret,
                                           struct hearth_err *err)
{
    assert(options != NULL && arena != NULL && ret != NULL);
    struct perf_decoder *d = hearth_arena_zalloc(arena, sizeof *d);
    if (d == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    d->options = options;
    hearth_arena_init_like(&d->scratch, arena);
    enum hearth_status status = decode_perf_data(d, bytes, arena, ret, err);
    if (status != HEARTH_OK) {
        hearth_err_prefix(err, "perf.data");
    }

    for (size_t i = 0; i < d->file.n_events; i++) {
        hearth_perf_output_release(&d->outputs[i], arena);
    }
    perf_index_release(&d->of_counter, &d->scratch);
    hearth_perf_space_release(&d->space);
    hearth_perf_file_release(&d->file);
    hearth_arena_release(&d->scratch);

    return status;
}
