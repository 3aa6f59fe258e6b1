/*
 * compress.h -- whole-buffer inflating under a cap (gzip, zlib, zstd, or plain); deflating, of gzip also in
 * pieces.
 *
 * Every size in a compressed stream is hostile: output grows in steps and never beyond max_bytes; a
 * bomb costs at most max_bytes of memory. Concatenated gzip members are inflated as one.
 *
 * Ownership: output goes to a caller's hearth_buf (appended).
 * Threads: pure; a struct hearth_inflater belongs to one thread (it keeps decompressor state warm).
 * Source: RFC 1950-1952, RFC 8878.
 */
#ifndef HEARTH_CODEC_COMPRESS_H
#define HEARTH_CODEC_COMPRESS_H

#include "hearth/base/buf.h"

enum hearth_compression {
    HEARTH_COMPRESSION_NONE,
    HEARTH_COMPRESSION_GZIP,
    HEARTH_COMPRESSION_ZLIB, /* HTTP and gRPC call it "deflate" */
    HEARTH_COMPRESSION_ZSTD,
};

/* By magic bytes: gzip 1f 8b, zstd 28 b5 2f fd; otherwise NONE (zlib is never guessed). */
enum hearth_compression hearth_compression_detect(struct hearth_str bytes);

/*
 * The size after inflating that the bytes themselves announce, 0 when they do not. It may lie, but then inflating them
 * fails. Sources: RFC 1952 (ISIZE; modulo 2^32, of the last member), RFC 8878 (Frame_Content_Size, of the first frame).
 */
uint64_t hearth_inflated_bytes(enum hearth_compression format, struct hearth_str in);

struct hearth_inflater;
struct hearth_inflater *hearth_inflater_new(void); /* NULL when memory was refused */
void hearth_inflater_free(struct hearth_inflater *inflater);

/*
 * Append the inflated bytes to `out`. NONE copies.
 * Returns OK; INVALID_ARGUMENT for a damaged or cut stream (the message says which format and
 * roughly where); RESOURCE_EXHAUSTED when more than max_bytes would come out; NO_MEMORY. On failure
 * `out` may hold a part; its length is restored.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_inflate(struct hearth_inflater *inflater, enum hearth_compression format,
                                  struct hearth_str in, size_t max_bytes, struct hearth_buf *out,
                                  struct hearth_err *err);

/* Append a gzip member. level 1..9. */
HEARTH_MUST_CHECK
enum hearth_status hearth_gzip(struct hearth_str in, int level, struct hearth_buf *out,
                               struct hearth_err *err);

/*
 * The same from pieces: add appends what is known of the member so far, end the rest. After end a
 * stream can only be freed. Errors are those of the buffer. Holds about 260 KiB.
 */
struct hearth_gzip_stream;
struct hearth_gzip_stream *hearth_gzip_stream_new(int level); /* NULL when memory was refused */
void hearth_gzip_stream_free(struct hearth_gzip_stream *stream);
void hearth_gzip_stream_add(struct hearth_gzip_stream *stream, struct hearth_str in,
                            struct hearth_buf *out);
void hearth_gzip_stream_end(struct hearth_gzip_stream *stream, struct hearth_buf *out);

/* One zstd frame with content size and checksum; level 1..19. */
HEARTH_MUST_CHECK
enum hearth_status hearth_zstd(struct hearth_str in, int level, struct hearth_buf *out,
                               struct hearth_err *err);

/*
 * Packed bytes: 0x00 and the bytes as they are, or 0x01 and a zstd frame where that saves a third. With
 * a warm compressor: a builder packs a thousand columns a second.
 */
struct hearth_packer;
struct hearth_packer *hearth_packer_new(int level); /* NULL when memory was refused */
void hearth_packer_free(struct hearth_packer *packer);
HEARTH_MUST_CHECK
enum hearth_status hearth_pack(struct hearth_packer *packer, struct hearth_str in,
                               struct hearth_buf *out, struct hearth_err *err);
/* The same form for what has texts in it: all matches are looked for, and an eighth is worth a frame. */
HEARTH_MUST_CHECK
enum hearth_status hearth_pack_text(struct hearth_str in, struct hearth_buf *out,
                                    struct hearth_err *err);
/*
 * *ret_view borrows from `in` when it is plain, else from `scratch`, to which the bytes were
 * appended (a later append may move them). CORRUPT for damaged bytes, RESOURCE_EXHAUSTED beyond
 * max_bytes, NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_unpack(struct hearth_inflater *inflater, struct hearth_str in,
                                 size_t max_bytes, struct hearth_buf *scratch,
                                 struct hearth_str *ret_view, struct hearth_err *err);

#endif
