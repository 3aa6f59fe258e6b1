/* perf_file.c -- the header of a recording, its events and features. */
#include "perf/perf_file.h"

#include "hearth/base/mem.h"

#include <assert.h>

#define MAGIC         "PERFILE2"
#define FOREIGN_MAGIC "2ELIFREP"

#define STREAM_HEADER_BYTES 16
#define FILE_HEADER_BYTES   104
#define MIN_ATTR_BYTES      64 /* the first version of perf_event_attr */
#define SECTION_BYTES       16
#define N_FEATURES          256
#define UPDATE_NAME         2 /* the kind of PERF_EVENT_UPDATE that names an event */

enum perf_feature {
    FEATURE_BUILD_ID = 2,
    FEATURE_EVENT_DESC = 12,
    FEATURE_CLOCK_DATA = 29,
};

/* Bits of perf_event_attr. */
#define ATTR_FREQ          (UINT64_C(1) << 10)
#define ATTR_SAMPLE_ID_ALL (UINT64_C(1) << 18)

bool hearth_perf_data_recognise(struct hearth_str bytes)
{
    return hearth_str_starts(bytes, HEARTH_STR(MAGIC)) ||
           hearth_str_starts(bytes, HEARTH_STR(FOREIGN_MAGIC));
}

/* ---- events ---- */

uint32_t hearth_perf_find_event(const struct perf_file *file, uint64_t id)
{
    return perf_index_find(&file->ids, perf_key(id, 1));
}

/* Makes ids those of the next event. They are counted: sections of ids may overlap. */
static enum hearth_status add_event_ids(struct perf_file *file, struct perf_cursor ids,
                                        struct hearth_err *err)
{
    bool inserted;

    file->n_ids += perf_left(&ids) / 8;
    if (file->n_ids > HEARTH_PERF_MAX_IDS) {
        return HEARTH_FAIL(err, HEARTH_RESOURCE_EXHAUSTED, "its events have more than %d ids",
                           HEARTH_PERF_MAX_IDS);
    }

    while (perf_left(&ids) >= 8) {
        if (perf_index_intern(&file->ids, file->arena, perf_key(perf_u64(&ids), 1),
                              (uint32_t)file->n_events, &inserted) == HEARTH_IDMAP_NONE) {
            return HEARTH_FAIL_ARENA(err, file->arena);
        }
    }

    return HEARTH_OK;
}

/* Adds an event and the ids in the rest of a cursor. */
static enum hearth_status add_event(struct perf_file *file, struct hearth_str attr,
                                    struct perf_cursor ids, struct hearth_err *err)
{
    if (file->n_events == HEARTH_PERF_MAX_EVENTS) {
        return HEARTH_FAIL(err, HEARTH_RESOURCE_EXHAUSTED, "it has more than %d events",
                           HEARTH_PERF_MAX_EVENTS);
    }
    if (attr.n < MIN_ATTR_BYTES) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "the description of event %zu has %zu bytes, fewer than %d",
                           file->n_events, attr.n, MIN_ATTR_BYTES);
    }
    if (!hearth_arena_grow(file->arena, &file->events, &file->cap_events, file->n_events + 1,
                           sizeof *file->events)) {
        return HEARTH_FAIL_ARENA(err, file->arena);
    }

    struct perf_event event = {0};
    struct perf_cursor c = perf_cursor_at(attr);
    event.type = perf_u32(&c);
    perf_skip(&c, 4);
    event.config = perf_u64(&c);
    event.period = perf_u64(&c);
    event.sample_type = perf_u64(&c);
    event.read_format = perf_u64(&c);
    uint64_t flags = perf_u64(&c);
    event.is_freq = (flags & ATTR_FREQ) != 0;
    event.has_sample_ids = (flags & ATTR_SAMPLE_ID_ALL) != 0;

    HEARTH_TRY(add_event_ids(file, ids, err));
    file->events[file->n_events++] = event;

    return HEARTH_OK;
}

/* ---- features ---- */

/* Names of events: each with its attr and its ids. */
static void take_event_names(struct perf_file *file, struct hearth_str section)
{
    struct perf_cursor c = perf_cursor_at(section);
    uint32_t n = perf_u32(&c), attr_bytes = perf_u32(&c);

    for (uint32_t i = 0; i < n && !c.failed; i++) {
        perf_skip(&c, attr_bytes);
        uint32_t n_ids = perf_u32(&c);
        uint32_t n_text = perf_u32(&c);
        struct hearth_str name = perf_text(&c, n_text);
        struct perf_cursor ids = perf_cursor_at(perf_bytes(&c, (uint64_t)n_ids * 8));

        /* An event without ids is the only one, or has this position. */
        uint32_t event = n_ids == 0 ? i : hearth_perf_find_event(file, perf_u64(&ids));
        if (!c.failed && event < file->n_events) {
            file->events[event].name = name;
        }
    }
}

static enum hearth_status take_build_id(struct perf_file *file, uint16_t misc,
                                        struct hearth_str body, struct hearth_err *err)
{
    struct perf_cursor c = perf_cursor_at(body);
    struct perf_build_id id = {.n = PERF_BUILD_ID_BYTES};

    perf_skip(&c, 4); /* the process, of machines in machines */
    struct hearth_str bytes = perf_bytes(&c, PERF_BUILD_ID_BYTES);
    uint32_t size = perf_u32(&c);
    id.path = perf_text(&c, perf_left(&c));
    if (c.failed) {
        return HEARTH_OK;
    }

    memcpy(id.bytes, bytes.p, PERF_BUILD_ID_BYTES);
    if ((misc & PERF_MISC_BUILD_ID_SIZE) != 0 && (size & 0xff) <= PERF_BUILD_ID_BYTES) {
        id.n = (uint8_t)size;
    }
    if (!hearth_arena_grow(file->arena, &file->build_ids, &file->cap_build_ids,
                           file->n_build_ids + 1, sizeof *file->build_ids)) {
        return HEARTH_FAIL_ARENA(err, file->arena);
    }

    file->build_ids[file->n_build_ids++] = id;

    return HEARTH_OK;
}

static enum hearth_status take_build_ids(struct perf_file *file, struct hearth_str section,
                                         struct hearth_err *err)
{
    struct perf_cursor c = perf_cursor_at(section);

    while (perf_left(&c) >= 8) {
        perf_skip(&c, 4);
        uint16_t misc = perf_u16(&c), size = perf_u16(&c);
        if (size < 8) {
            break;
        }
        HEARTH_TRY(take_build_id(file, misc, perf_bytes(&c, size - 8u), err));
    }

    return HEARTH_OK;
}

/* The time of day at a time of the recording's clock. */
static void take_clock(struct perf_file *file, struct hearth_str section)
{
    struct perf_cursor c = perf_cursor_at(section);

    perf_skip(&c, 8); /* version, clock */
    uint64_t wall_ns = perf_u64(&c);
    file->clock_ns = perf_u64(&c);
    file->wall_ns = c.failed || wall_ns > INT64_MAX ? 0 : (int64_t)wall_ns;
}

static enum hearth_status take_feature(struct perf_file *file, uint64_t feature,
                                       struct hearth_str section, struct hearth_err *err)
{
    switch (feature) {
    case FEATURE_BUILD_ID:
        return take_build_ids(file, section, err);
    case FEATURE_EVENT_DESC:
        take_event_names(file, section);
        return HEARTH_OK;
    case FEATURE_CLOCK_DATA:
        take_clock(file, section);
        return HEARTH_OK;
    default:
        return HEARTH_OK;
    }
}

/* The bytes of a section whose offset and size are next; fails the cursor if they are outside. */
static struct hearth_str read_section(const struct perf_file *file, struct perf_cursor *c)
{
    uint64_t at = perf_u64(c), size = perf_u64(c);

    if (at > file->bytes.n || size > file->bytes.n - at) {
        c->failed = true;
        return hearth_str_n("", 0);
    }

    return hearth_str_n(file->bytes.p + at, (size_t)size);
}

/* Features follow the records: a section for each bit that is set. */
static enum hearth_status read_features(struct perf_file *file, struct perf_cursor flags,
                                        struct hearth_err *err)
{
    size_t end = file->records_at + file->records.n;
    struct perf_cursor c = perf_cursor_at(hearth_str_n(file->bytes.p + end, file->bytes.n - end));

    for (unsigned word = 0; word < N_FEATURES / 64; word++) {
        uint64_t bits = perf_u64(&flags);
        for (; bits != 0; bits &= bits - 1) {
            unsigned feature = word * 64 + (unsigned)__builtin_ctzll(bits);
            struct hearth_str section = read_section(file, &c);
            if (c.failed) {
                return HEARTH_FAIL(
                    err, HEARTH_INVALID_ARGUMENT,
                    "feature %u is not in the file, which has %zu bytes: it is truncated", feature,
                    file->bytes.n);
            }
            HEARTH_TRY(take_feature(file, feature, section, err));
        }
    }

    return HEARTH_OK;
}

/* ---- header ---- */

static enum hearth_status read_events(struct perf_file *file, struct hearth_str section,
                                      uint64_t attr_bytes, struct hearth_err *err)
{
    if (attr_bytes < MIN_ATTR_BYTES + SECTION_BYTES || attr_bytes > section.n) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "its events have %llu bytes each, all of them %zu",
                           (unsigned long long)attr_bytes, section.n);
    }

    struct perf_cursor c = perf_cursor_at(section);
    while (perf_left(&c) >= attr_bytes) {
        struct hearth_str attr = perf_bytes(&c, attr_bytes - SECTION_BYTES);
        struct perf_cursor at = perf_cursor_at(perf_bytes(&c, SECTION_BYTES));
        struct hearth_str ids = read_section(file, &at);
        if (at.failed) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                               "the ids of event %zu are not in the file", file->n_events);
        }
        HEARTH_TRY(add_event(file, attr, perf_cursor_at(ids), err));
    }

    return HEARTH_OK;
}

static enum hearth_status read_file_header(struct perf_file *file, struct hearth_err *err)
{
    struct perf_cursor c = perf_cursor_at(file->bytes);

    perf_skip(&c, STREAM_HEADER_BYTES);
    uint64_t attr_bytes = perf_u64(&c);
    struct hearth_str attrs = read_section(file, &c);
    file->records = read_section(file, &c);
    perf_skip(&c, SECTION_BYTES); /* names of events, in the files of old versions */
    if (c.failed) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "a section is not in the file, which has %zu bytes: it is truncated",
                           file->bytes.n);
    }
    if (file->records.n == 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "it is unfinished or empty: perf record was killed before its end, or "
                           "nothing was recorded");
    }

    file->records_at = (size_t)(file->records.p - file->bytes.p);
    HEARTH_TRY(read_events(file, attrs, attr_bytes, err));

    return read_features(file, c, err);
}

enum hearth_status hearth_perf_file_open(struct perf_file *file, struct hearth_str bytes,
                                         struct hearth_arena *arena, struct hearth_err *err)
{
    assert(file != NULL && arena != NULL);
    *file = (struct perf_file){.arena = arena, .bytes = bytes};
    hearth_buf_init(&file->inflated, arena->limit_bytes);
    file->inflated.budget = arena->budget;

    if (hearth_str_starts(bytes, HEARTH_STR(FOREIGN_MAGIC))) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "it is big-endian; send the output of perf script from that machine");
    }
    if (!hearth_perf_data_recognise(bytes) || bytes.n < STREAM_HEADER_BYTES) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "it has no header");
    }

    struct perf_cursor c = perf_cursor_at(bytes);
    perf_skip(&c, sizeof MAGIC - 1);
    uint64_t size = perf_u64(&c);
    if (size == STREAM_HEADER_BYTES) {
        file->records_at = STREAM_HEADER_BYTES;
        file->records = hearth_str_n(bytes.p + STREAM_HEADER_BYTES, bytes.n - STREAM_HEADER_BYTES);
        return HEARTH_OK;
    }
    if (size != FILE_HEADER_BYTES) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "its header has %llu bytes instead of %d or %d",
                           (unsigned long long)size, FILE_HEADER_BYTES, STREAM_HEADER_BYTES);
    }

    return read_file_header(file, err);
}

void hearth_perf_file_release(struct perf_file *file)
{
    perf_index_release(&file->ids, file->arena);
    hearth_buf_release(&file->inflated);
}

/* ---- the header of a stream ---- */

/* An attr, whose own size says where its ids begin. */
static enum hearth_status take_attr_record(struct perf_file *file, struct hearth_str body,
                                           struct hearth_err *err)
{
    struct perf_cursor c = perf_cursor_at(body), size = c;

    perf_skip(&size, 4);
    struct hearth_str attr = perf_bytes(&c, perf_u32(&size));

    return add_event(file, attr, c, err);
}

static void take_event_update(struct perf_file *file, struct hearth_str body)
{
    struct perf_cursor c = perf_cursor_at(body);
    uint64_t kind = perf_u64(&c), id = perf_u64(&c);
    uint32_t event = hearth_perf_find_event(file, id);

    if (!c.failed && kind == UPDATE_NAME && event < file->n_events) {
        file->events[event].name = perf_text(&c, perf_left(&c));
    }
}

enum hearth_status hearth_perf_take_header(struct perf_file *file, const struct perf_record *record,
                                           struct hearth_err *err)
{
    struct perf_cursor c = perf_cursor_at(record->body);
    uint64_t feature;

    switch (record->type) {
    case PERF_HEADER_ATTR:
        return take_attr_record(file, record->body, err);
    case PERF_EVENT_UPDATE:
        take_event_update(file, record->body);
        return HEARTH_OK;
    case PERF_BUILD_ID:
        return take_build_id(file, record->misc, record->body, err);
    case PERF_HEADER_FEATURE:
        if (perf_left(&c) < 8) {
            return HEARTH_OK;
        }
        feature = perf_u64(&c);
        return take_feature(file, feature, perf_bytes(&c, perf_left(&c)), err);
    default:
        return HEARTH_OK;
    }
}
