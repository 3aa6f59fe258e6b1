/* jfr_decode.c -- the chunks of a recording, one after the other. */
#include "hearth/format/jfr.h"

#include "jfr/jfr_samples.h"

#include <assert.h>

/* Offsets in the header of a chunk. */
enum {
    AT_MAJOR = 4,
    AT_MINOR = 6,
    AT_SIZE = 8,
    AT_CHECKPOINT = 16,
    AT_METADATA = 24,
    AT_START_NS = 32,
    AT_DURATION_NS = 40,
    AT_TICKS_PER_SECOND = 56,
    AT_FEATURES = 64,
};

#define FEATURE_COMPRESSED_INTS 1u

struct chunk_header {
    uint64_t size, metadata_at;
    struct jfr_clock clock;
};

static uint64_t read_number(struct hearth_str chunk, uint64_t at, size_t n)
{
    struct jfr_cursor c = hearth_jfr_at(chunk, at);
    return jfr_big_endian(&c, n);
}

/* Reads the header of the chunk that the bytes, which hearth_jfr_check has passed, begin with. */
static enum hearth_status read_header(struct hearth_str bytes, struct chunk_header *ret,
                                      struct hearth_err *err)
{
    uint64_t major = read_number(bytes, AT_MAJOR, 2), minor = read_number(bytes, AT_MINOR, 2);

    if (major != 2) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "its version is %llu.%llu; recordings of JDK 11 and later, 2.0 and 2.1, "
                           "can be read",
                           (unsigned long long)major, (unsigned long long)minor);
    }
    if ((read_number(bytes, AT_FEATURES, 4) & FEATURE_COMPRESSED_INTS) == 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "its integers are not compressed");
    }

    *ret = (struct chunk_header){
        .size = read_number(bytes, AT_SIZE, 8),
        .metadata_at = read_number(bytes, AT_METADATA, 8),
        .clock = {.start_ns = (int64_t)read_number(bytes, AT_START_NS, 8),
                  .duration_ns = (int64_t)read_number(bytes, AT_DURATION_NS, 8),
                  .ticks_per_second = read_number(bytes, AT_TICKS_PER_SECOND, 8)},
    };

    /* The profiler writes the offsets when it finishes a chunk. */
    if (ret->metadata_at == 0 || read_number(bytes, AT_CHECKPOINT, 8) == 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "it is unfinished: the recording was copied before it ended");
    }
    if (ret->clock.ticks_per_second == 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "its clock has no ticks per second");
    }

    return HEARTH_OK;
}

static enum hearth_status visit_checkpoint(void *context, uint64_t type_id, struct jfr_cursor c,
                                           struct hearth_err *err)
{
    return type_id == 1 ? hearth_jfr_pools_add(context, c, err) : HEARTH_OK;
}

static enum hearth_status read_chunk(struct jfr_sampler *sampler, struct hearth_str chunk,
                                     const struct chunk_header *header,
                                     struct hearth_arena *scratch, struct hearth_err *err)
{
    struct jfr_types types;
    struct jfr_pools pools;

    enum hearth_status status =
        hearth_jfr_types_read(&types, chunk, header->metadata_at, scratch, err);
    if (status == HEARTH_OK) {
        hearth_jfr_pools_init(&pools, &types, scratch);
        status = hearth_jfr_visit_events(chunk, visit_checkpoint, &pools, err);
        if (status == HEARTH_OK) {
            status = hearth_jfr_sample_chunk(sampler, &pools, &header->clock, scratch, err);
        }
        hearth_jfr_pools_release(&pools);
    }

    hearth_jfr_types_release(&types);

    return status;
}

/* Reads all chunks; *ret_start_ns and *ret_end_ns become the time they cover. */
static enum hearth_status read_chunks(struct jfr_sampler *sampler, struct hearth_str bytes,
                                      struct hearth_arena *scratch, int64_t *ret_start_ns,
                                      int64_t *ret_end_ns, struct hearth_err *err)
{
    int64_t start_ns = INT64_MAX, end_ns = 0;
    size_t at = 0;

    for (unsigned number = 1; at < bytes.n; number++) {
        struct chunk_header header;
        enum hearth_status status =
            read_header(hearth_str_n(bytes.p + at, bytes.n - at), &header, err);
        if (status == HEARTH_OK) {
            struct hearth_str chunk = hearth_str_n(bytes.p + at, (size_t)header.size);
            status = read_chunk(sampler, chunk, &header, scratch, err);
        }
        if (status != HEARTH_OK) {
            hearth_err_prefix(err, "JFR chunk %u at byte %zu", number, at);
            return status;
        }

        int64_t chunk_end;
        if (!__builtin_add_overflow(header.clock.start_ns, header.clock.duration_ns, &chunk_end)) {
            start_ns = header.clock.start_ns < start_ns ? header.clock.start_ns : start_ns;
            end_ns = chunk_end > end_ns ? chunk_end : end_ns;
        }

        hearth_arena_reset(scratch);
        at += (size_t)header.size;
    }

    *ret_start_ns = start_ns == INT64_MAX ? 0 : start_ns;
    *ret_end_ns = end_ns;

    return HEARTH_OK;
}

enum hearth_status hearth_jfr_decode(struct hearth_str bytes,
                                     const struct hearth_jfr_options *options,
                                     struct hearth_arena *arena, struct hearth_jfr_recording *ret,
                                     struct hearth_err *err)
{
    struct jfr_sampler sampler;
    struct hearth_arena scratch;
    int64_t start_ns = 0, end_ns = 0;

    assert(options != NULL && arena != NULL && ret != NULL);
    HEARTH_TRY(hearth_jfr_check(bytes, err));

    hearth_arena_init_like(&scratch, arena);
    enum hearth_status status = hearth_jfr_sampler_init(&sampler, options, arena, err);
    if (status == HEARTH_OK) {
        status = read_chunks(&sampler, bytes, &scratch, &start_ns, &end_ns, err);
    }
    if (status == HEARTH_OK) {
        status = hearth_jfr_finish(&sampler, ret, err);
    }

    for (size_t i = 0; i < ret->n_profiles && status == HEARTH_OK; i++) {
        ret->profiles[i].profile.time_ns = start_ns;
        ret->profiles[i].profile.duration_ns = end_ns > start_ns ? end_ns - start_ns : 0;
    }

    hearth_jfr_sampler_release(&sampler);
    hearth_arena_release(&scratch);

    return status;
}
