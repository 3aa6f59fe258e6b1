/*
 * compress.h -- inflates whole buffers up to a limit (gzip, zlib, zstd, LZ4, or plain), and
 * deflates them by gzip and zstd; gzip also piece by piece.
 *
 * Every size in a compressed stream is hostile: the output grows in steps and never beyond
 * max_bytes, so a bomb costs at most max_bytes of memory. Concatenated gzip members, and
 * frames of zstd or LZ4, are inflated as one.
 *
 * Ownership: output is appended to the caller's hearth_buf.
 * Threads: pure; a struct hearth_inflater belongs to one thread (it reuses its decompressor state).
 * Source: RFC 1950-1952, RFC 8878, LZ4 Frame Format 1.6.2.
 */
#ifndef HEARTH_CODEC_COMPRESS_H
#define HEARTH_CODEC_COMPRESS_H

#include "hearth/base/arena.h"
#include "hearth/base/buf.h"

enum hearth_compression {
    HEARTH_COMPRESSION_NONE,
    HEARTH_COMPRESSION_GZIP,
    HEARTH_COMPRESSION_ZLIB, /* HTTP and gRPC call it "deflate" */
    HEARTH_COMPRESSION_ZSTD,
    HEARTH_COMPRESSION_LZ4, /* LZ4 frames, not the legacy format of lz4 -l */
};

/*
 * Decides by magic bytes: gzip 1f 8b, zstd 28 b5 2f fd, LZ4 04 22 4d 18; otherwise NONE (zlib is
 * not detected). Skippable frames, which pzstd writes, may precede those of zstd and LZ4.
 */
enum hearth_compression hearth_compression_detect(struct hearth_str bytes);

/*
 * The inflated size that the bytes declare; 0 if they declare none. It may be false, but then
 * inflating the bytes fails.
 * Sources: RFC 1952 (ISIZE of the last member, modulo 2^32), RFC 8878 (Frame_Content_Size of the
 *          first frame), LZ4 Frame Format (content size of the first frame).
 */
uint64_t hearth_inflated_bytes(enum hearth_compression format, struct hearth_str in);

struct hearth_inflater;
struct hearth_inflater *hearth_inflater_new(void); /* NULL when memory was refused */
void hearth_inflater_free(struct hearth_inflater *inflater);

/*
 * Append the inflated bytes to `out`. NONE copies. Returns OK; INVALID_ARGUMENT for a damaged or
 * truncated stream (the message names the format and roughly the place); RESOURCE_EXHAUSTED if the
 * output would exceed max_bytes; NO_MEMORY. On failure the length of `out` is restored.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_inflate(struct hearth_inflater *inflater, enum hearth_compression format,
                                  struct hearth_str in, size_t max_bytes, struct hearth_buf *out,
                                  struct hearth_err *err);

/*
 * The same into an arena, whose budget also counts the bytes while they are inflated. `inflater`
 * may be NULL, which is NO_MEMORY. *ret is set on success only.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_inflate_in_arena(struct hearth_inflater *inflater,
                                           enum hearth_compression format, struct hearth_str in,
                                           size_t max_bytes, struct hearth_arena *arena,
                                           struct hearth_str *ret, struct hearth_err *err);

/* Append a gzip member. level: 1..9. */
HEARTH_MUST_CHECK
enum hearth_status hearth_gzip(struct hearth_str in, int level, struct hearth_buf *out,
                               struct hearth_err *err);

/*
 * The same from pieces of input: _add appends the part of the member that is already determined,
 * _end the rest. After _end a stream can only be freed. Errors are those of the buffer. Uses about
 * 260 KiB.
 */
struct hearth_gzip_stream;
struct hearth_gzip_stream *hearth_gzip_stream_new(int level); /* NULL when memory was refused */
void hearth_gzip_stream_free(struct hearth_gzip_stream *stream);
void hearth_gzip_stream_add(struct hearth_gzip_stream *stream, struct hearth_str in,
                            struct hearth_buf *out);
void hearth_gzip_stream_end(struct hearth_gzip_stream *stream, struct hearth_buf *out);

/* Append one zstd frame with content size and checksum. level: 1..19. */
HEARTH_MUST_CHECK
enum hearth_status hearth_zstd(struct hearth_str in, int level, struct hearth_buf *out,
                               struct hearth_err *err);

/*
 * The same, by tables that are kept for the next time, up to 1 MiB of them: to make them takes as
 * long as to compress a kilobyte. For one thread at a time. They may be NULL: none are kept.
 */
struct hearth_zstd_tables;
struct hearth_zstd_tables *hearth_zstd_tables_new(void); /* NULL when memory was refused */
void hearth_zstd_tables_free(struct hearth_zstd_tables *tables);
HEARTH_MUST_CHECK
enum hearth_status hearth_zstd_by(struct hearth_zstd_tables *tables, struct hearth_str in,
                                  int level, struct hearth_buf *out, struct hearth_err *err);

/*
 * A zstd stream from pieces of input, which need not end: _add appends what is determined by the
 * pieces so far. Errors: INVALID_ARGUMENT for a damaged stream; RESOURCE_EXHAUSTED if `out` reaches
 * its limit; NO_MEMORY. After an error a stream can only be freed.
 */
struct hearth_unzstd_stream;
struct hearth_unzstd_stream *hearth_unzstd_stream_new(void); /* NULL when memory was refused */
void hearth_unzstd_stream_free(struct hearth_unzstd_stream *stream);
HEARTH_MUST_CHECK
enum hearth_status hearth_unzstd_stream_add(struct hearth_unzstd_stream *stream,
                                            struct hearth_str in, struct hearth_buf *out,
                                            struct hearth_err *err);

/*
 * Packed bytes: 0x00 followed by the plain bytes, or 0x01 followed by a zstd frame if that saves a
 * third. A packer reuses its compressor: the builder packs a thousand columns a second.
 */
struct hearth_packer;
struct hearth_packer *hearth_packer_new(int level); /* NULL when memory was refused */
void hearth_packer_free(struct hearth_packer *packer);
HEARTH_MUST_CHECK
enum hearth_status hearth_pack(struct hearth_packer *packer, struct hearth_str in,
                               struct hearth_buf *out, struct hearth_err *err);
/*
 * The same form for bytes that contain text: searches all matches, and uses a frame if it saves an
 * eighth.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_pack_text(struct hearth_str in, struct hearth_buf *out,
                                    struct hearth_err *err);
/*
 * *ret_view borrows from `in` if that is plain, otherwise from `scratch`, to which the bytes are
 * appended (a later append may move them). CORRUPT for damaged bytes, RESOURCE_EXHAUSTED if they
 * inflate to more than max_bytes, NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_unpack(struct hearth_inflater *inflater, struct hearth_str in,
                                 size_t max_bytes, struct hearth_buf *scratch,
                                 struct hearth_str *ret_view, struct hearth_err *err);

#endif
