/*
 * spool_record.h -- the records of the spool file: pushes that wait on the disk for a database that
 * is away (engine/spool.h).
 *
 * A file is a sequence of records without anything between them. A record:
 *
 *   offset  bytes
 *        0      4  "HSPR"
 *        4      4  bytes of the body, 1 to HEARTH_SPOOL_MAX_BODY
 *        8      8  XXH3 of the body, seed 0
 *       16      8  time of the push, nanoseconds since the Unix epoch
 *       24      8  seal: the first bytes of SHA-256 of the key of the spool and bytes 0 to 23
 *       32      1  state: 0 waiting, 1 stored, 2 refused, 3 damaged; the only byte that changes
 *       33      7  zero
 *       40         the body
 *
 * Numbers are little-endian; those in the body are varints, texts have their length before them.
 * The body is a version (1), flags, the key (16 bytes), tenant and application, then any number of
 * files (1, name, bytes, part, client tags) and profiles (2, flags, number of the file + 1, id,
 * labels, bytes as sent, bytes). A profile refers to a file before it.
 *
 * Checked: seal and hash, every length and index, and that nothing is left over. A record whose
 * header is right says where the next one begins, even if its body is damaged. A client cannot
 * forge a header inside the bytes that it sends, because sealing a header takes the key.
 *
 * Limits:    HEARTH_SPOOL_MAX_BODY. Decoded arrays take at most about 30 times the body.
 * Ownership: decoded texts borrow from the body; arrays live in the arena.
 * Threads:   pure.
 */
#ifndef HEARTH_FORMAT_SPOOL_RECORD_H
#define HEARTH_FORMAT_SPOOL_RECORD_H

#include "hearth/base/arena.h"
#include "hearth/base/buf.h"
#include "hearth/base/hash.h"
#include "hearth/model/labels.h"

#define HEARTH_SPOOL_HEADER_BYTES 40
#define HEARTH_SPOOL_STATE_AT     32
#define HEARTH_SPOOL_MAX_BODY     ((uint32_t)256 << 20)
#define HEARTH_SPOOL_NO_FILE      UINT32_MAX

enum hearth_spool_state {
    HEARTH_SPOOL_WAITING,
    HEARTH_SPOOL_STORED,
    HEARTH_SPOOL_REFUSED,
    HEARTH_SPOOL_DAMAGED,
};

/* Random, and known to this spool only. */
struct hearth_spool_key {
    unsigned char bytes[32];
};

struct hearth_spool_header {
    uint32_t n_body;
    uint64_t body_hash;
    int64_t received_ns;
    enum hearth_spool_state state;
};

/* A file that profiles were made of, to be kept next to them. */
struct hearth_spool_file {
    struct hearth_str name, bytes, client_tags;
    uint32_t part;
};

struct hearth_spool_profile {
    struct hearth_label *labels; /* of its series, as sent; with __name__ */
    size_t n_labels;
    struct hearth_str id;      /* as sent; may be empty */
    uint64_t n_sent;           /* bytes of the profile as sent */
    struct hearth_str profile; /* pprof, plain or compressed; empty if is_file */
    bool is_file;              /* the profile is the file itself */
    uint32_t file;             /* index, or HEARTH_SPOOL_NO_FILE */
};

/* What all profiles of a push share. */
struct hearth_spool_head {
    struct hearth_hash128 key; /* random; no other record has it */
    bool is_one_upload;        /* its profiles are parts of one upload */
    struct hearth_str tenant, app_name;
};

struct hearth_spool_record {
    struct hearth_spool_head head;
    struct hearth_spool_file *files;
    size_t n_files;
    struct hearth_spool_profile *profiles;
    size_t n_profiles;
};

/* ---- writing: head, then files and profiles, then end; the buffer is empty at first ---- */

void hearth_spool_put_head(const struct hearth_spool_head *head, struct hearth_buf *out);
void hearth_spool_put_file(const struct hearth_spool_file *file, struct hearth_buf *out);
void hearth_spool_put_profile(const struct hearth_spool_profile *profile, struct hearth_buf *out);
/* Fill the header in. Returns false if the buffer has failed or the body is too long. */
HEARTH_MUST_CHECK bool hearth_spool_end(const struct hearth_spool_key *key, int64_t received_ns,
                                        struct hearth_buf *out);

/* ---- reading ---- */

/* Returns false if the HEARTH_SPOOL_HEADER_BYTES at `bytes` are no header sealed with the key. */
HEARTH_MUST_CHECK bool hearth_spool_header_read(const struct hearth_spool_key *key,
                                                const void *bytes, struct hearth_spool_header *ret);
/* Returns the offset of the first whole header in `bytes`, or bytes.n if it holds no header. */
size_t hearth_spool_header_find(const struct hearth_spool_key *key, struct hearth_str bytes);
/* INVALID_ARGUMENT: the checksum or the encoding of the body is wrong. NO_MEMORY. */
HEARTH_MUST_CHECK
enum hearth_status hearth_spool_body_read(const struct hearth_spool_header *header,
                                          struct hearth_str body, struct hearth_arena *arena,
                                          struct hearth_spool_record *ret, struct hearth_err *err);

#endif
