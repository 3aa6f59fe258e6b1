/*
 * perf_file.h -- header, events, features and records of a recording (private to the reader of
 * perf.data).
 *
 * Ownership: arrays live in the arena; texts borrow from the bytes.
 * Threads:   not thread-safe.
 */
#ifndef HEARTH_FORMAT_PERF_FILE_H
#define HEARTH_FORMAT_PERF_FILE_H

#include "hearth/base/buf.h"
#include "hearth/base/status.h"
#include "hearth/format/perf_data.h"

#include "perf/perf_cursor.h"
#include "perf/perf_index.h"

/* Types of records; others are ignored. */
enum perf_record_type {
    PERF_MMAP = 1,
    PERF_LOST = 2,
    PERF_COMM = 3,
    PERF_FORK = 7,
    PERF_SAMPLE = 9,
    PERF_MMAP2 = 10,
    PERF_LOST_SAMPLES = 13,
    PERF_HEADER_ATTR = 64,
    PERF_TRACING_DATA = 66,
    PERF_BUILD_ID = 67,
    PERF_AUXTRACE = 71,
    PERF_EVENT_UPDATE = 78,
    PERF_HEADER_FEATURE = 80,
    PERF_COMPRESSED = 81,
    PERF_COMPRESSED2 = 83,
};

/* Bits of sample_type: the fields of a sample. */
enum perf_sample_bit {
    PERF_HAS_IP = 1 << 0,
    PERF_HAS_TID = 1 << 1,
    PERF_HAS_TIME = 1 << 2,
    PERF_HAS_ADDR = 1 << 3,
    PERF_HAS_READ = 1 << 4,
    PERF_HAS_CALLCHAIN = 1 << 5,
    PERF_HAS_ID = 1 << 6,
    PERF_HAS_CPU = 1 << 7,
    PERF_HAS_PERIOD = 1 << 8,
    PERF_HAS_STREAM_ID = 1 << 9,
    PERF_HAS_STACK_COPY = 1 << 13,
    PERF_HAS_IDENTIFIER = 1 << 16,
};

#define PERF_MISC_CPU_MODE      0x7u
#define PERF_MISC_MMAP_BUILD_ID (1u << 14) /* of PERF_MMAP2 */
#define PERF_MISC_BUILD_ID_SIZE (1u << 15) /* of PERF_BUILD_ID */

#define PERF_BUILD_ID_BYTES 20

/* What one perf_event_attr says. */
struct perf_event {
    uint32_t type;
    uint64_t config;
    uint64_t sample_type;
    uint64_t read_format;
    uint64_t period; /* fixed period, or frequency */
    bool is_freq, has_sample_ids;
    struct hearth_str name; /* as perf prints it; may be empty */
};

struct perf_record {
    uint32_t type;
    uint16_t misc;
    struct hearth_str body; /* without its header */
};

struct perf_build_id {
    struct hearth_str path;
    uint8_t bytes[PERF_BUILD_ID_BYTES];
    uint8_t n;
};

struct perf_file {
    struct hearth_arena *arena;
    struct hearth_str bytes;
    struct hearth_str records;  /* the plain records */
    size_t records_at;          /* position of the records in the file, for messages */
    struct hearth_buf inflated; /* records that were compressed */
    struct perf_event *events;
    size_t n_events, cap_events, n_ids;
    struct perf_index ids; /* id of an event to its index */
    struct perf_build_id *build_ids;
    size_t n_build_ids, cap_build_ids;
    int64_t wall_ns; /* time of day at clock_ns of the recording's clock; 0: unknown */
    uint64_t clock_ns;
};

/*
 * Reads header, events and features of a file; of a stream only the header, the rest is in records
 * (hearth_perf_take_header). Release the file in any case.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_perf_file_open(struct perf_file *file, struct hearth_str bytes,
                                         struct hearth_arena *arena, struct hearth_err *err);
void hearth_perf_file_release(struct perf_file *file);

/*
 * Visits the plain records; compressed ones are inflated, and visited after them. An error of visit
 * ends the walk. The bodies remain valid until the release.
 */
typedef enum hearth_status perf_visit_record_fn(void *context, const struct perf_record *record,
                                                struct hearth_err *err);
HEARTH_MUST_CHECK
enum hearth_status hearth_perf_visit_records(struct perf_file *file, perf_visit_record_fn *visit,
                                             void *context, struct hearth_err *err);

/* Takes events, names and features from a record; does nothing for records of other types. */
HEARTH_MUST_CHECK
enum hearth_status hearth_perf_take_header(struct perf_file *file, const struct perf_record *record,
                                           struct hearth_err *err);

/* The event with this id, or HEARTH_IDMAP_NONE. */
uint32_t hearth_perf_find_event(const struct perf_file *file, uint64_t id);

#endif
