/*
 * perf_writer.h -- writes streams of perf.data record by record, for tests.
 *
 * Each event records identifier, address, thread, time, period and call chain; other records end
 * with thread, time and identifier.
 */
#ifndef HEARTH_TESTS_PERF_WRITER_H
#define HEARTH_TESTS_PERF_WRITER_H

#include "hearth/base/buf.h"

#define PERF_WRITER_SAMPLE_TYPE (1u | 2u | 4u | 32u | 256u | 65536u)

static inline void write_u32(struct hearth_buf *out, uint32_t value)
{
    for (int i = 0; i < 4; i++) {
        hearth_buf_byte(out, (unsigned char)(value >> 8 * i));
    }
}

static inline void write_u64(struct hearth_buf *out, uint64_t value)
{
    write_u32(out, (uint32_t)value);
    write_u32(out, (uint32_t)(value >> 32));
}

/* Begins a record; end_record sets its size. Returns where it begins. */
static inline size_t begin_record(struct hearth_buf *out, uint32_t type, uint16_t misc)
{
    size_t at = out->n;

    write_u32(out, type);
    write_u32(out, misc);

    return at;
}

static inline void end_record(struct hearth_buf *out, size_t at)
{
    size_t n = out->n - at;

    out->p[at + 6] = (char)(n & 0xff);
    out->p[at + 7] = (char)(n >> 8);
}

/* A text with its NUL, up to a multiple of 8 bytes. */
static inline void write_text(struct hearth_buf *out, const char *text)
{
    size_t n = 0;

    do {
        hearth_buf_byte(out, (unsigned char)text[n]);
    } while (text[n++] != '\0');
    for (; n % 8 != 0; n++) {
        hearth_buf_byte(out, 0);
    }
}

/* The fields behind a record that is no sample. */
static inline void write_trailer(struct hearth_buf *out, uint64_t time)
{
    write_u64(out, 0);
    write_u64(out, time);
    write_u64(out, 0);
}

static inline void write_stream_header(struct hearth_buf *out)
{
    hearth_buf_cstr(out, "PERFILE2");
    write_u64(out, 16);
}

/* An event with one id, and its name unless that is NULL. */
static inline void write_event(struct hearth_buf *out, uint32_t type, uint64_t config, uint64_t id,
                               const char *name)
{
    size_t at = begin_record(out, 64, 0);

    write_u32(out, type);
    write_u32(out, 64);
    write_u64(out, config);
    write_u64(out, 1);
    write_u64(out, PERF_WRITER_SAMPLE_TYPE);
    write_u64(out, 0);
    write_u64(out, 1u << 18);
    write_u64(out, 0);
    write_u64(out, 0);
    write_u64(out, id);
    end_record(out, at);
    if (name == NULL) {
        return;
    }

    at = begin_record(out, 78, 0);
    write_u64(out, 2);
    write_u64(out, id);
    write_text(out, name);
    end_record(out, at);
}

static inline void write_comm(struct hearth_buf *out, uint64_t time, uint32_t pid, uint32_t tid,
                              const char *comm)
{
    size_t at = begin_record(out, 3, 0);

    write_u32(out, pid);
    write_u32(out, tid);
    write_text(out, comm);
    write_trailer(out, time);
    end_record(out, at);
}

static inline void write_fork(struct hearth_buf *out, uint64_t time, uint32_t pid, uint32_t parent)
{
    size_t at = begin_record(out, 7, 0);

    write_u32(out, pid);
    write_u32(out, parent);
    write_u32(out, pid);
    write_u32(out, parent);
    write_u64(out, time);
    write_trailer(out, time);
    end_record(out, at);
}

struct written_map {
    uint32_t pid;
    uint64_t start, n_bytes, offset;
    const char *path;
};

static inline void write_map(struct hearth_buf *out, uint64_t time, const struct written_map *map)
{
    size_t at = begin_record(out, 1, map->pid == UINT32_MAX ? 1 : 2);

    write_u32(out, map->pid);
    write_u32(out, map->pid);
    write_u64(out, map->start);
    write_u64(out, map->n_bytes);
    write_u64(out, map->offset);
    write_text(out, map->path);
    write_trailer(out, time);
    end_record(out, at);
}

struct written_sample {
    uint64_t id, time;
    uint32_t pid, tid;
    uint64_t period;
    uint64_t chain[8]; /* ends at the first 0; none: the address is 0x42 */
};

static inline void write_sample(struct hearth_buf *out, const struct written_sample *sample)
{
    size_t at = begin_record(out, 9, 2), n = 0;

    while (n < 8 && sample->chain[n] != 0) {
        n++;
    }

    write_u64(out, sample->id);
    write_u64(out, n > 1 ? sample->chain[1] : 0x42);
    write_u32(out, sample->pid);
    write_u32(out, sample->tid);
    write_u64(out, sample->time);
    write_u64(out, sample->period);
    write_u64(out, n);
    for (size_t i = 0; i < n; i++) {
        write_u64(out, sample->chain[i]);
    }
    end_record(out, at);
}

#endif
