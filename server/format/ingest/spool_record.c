/* spool_record.c -- the records of the spool file (contract: hearth/format/spool_record.h). */
#include "hearth/format/spool_record.h"

#include "hearth/base/sha256.h"
#include "hearth/base/varint.h"

#include <assert.h>
#include <endian.h>

#define VERSION     1
#define FILE_TAG    1
#define PROFILE_TAG 2

/* Flags of a head, and of a profile. */
#define IS_ONE_UPLOAD 1u
#define IS_FILE       1u

#define N_SEALED 24 /* bytes of the header that its seal covers */
#define N_SEAL   8

static const char g_magic[4] = {'H', 'S', 'P', 'R'};

/* ---- writing ---- */

static void put_text(struct hearth_str text, struct hearth_buf *out)
{
    hearth_buf_varint(out, text.n);
    hearth_buf_str(out, text);
}

static void put_word(uint64_t word, struct hearth_buf *out)
{
    uint64_t little = htole64(word);
    hearth_buf_append(out, &little, sizeof little);
}

void hearth_spool_put_head(const struct hearth_spool_head *head, struct hearth_buf *out)
{
    static const char header[HEARTH_SPOOL_HEADER_BYTES];

    assert(head != NULL && out != NULL && out->n == 0);

    hearth_buf_append(out, header, sizeof header);
    hearth_buf_varint(out, VERSION);
    hearth_buf_varint(out, head->is_one_upload ? IS_ONE_UPLOAD : 0);
    put_word(head->key.lo, out);
    put_word(head->key.hi, out);
    put_text(head->tenant, out);
    put_text(head->app_name, out);
}

void hearth_spool_put_file(const struct hearth_spool_file *file, struct hearth_buf *out)
{
    assert(file != NULL && out != NULL && (out->failed || out->n > HEARTH_SPOOL_HEADER_BYTES));

    hearth_buf_varint(out, FILE_TAG);
    put_text(file->name, out);
    put_text(file->bytes, out);
    hearth_buf_varint(out, file->part);
    put_text(file->client_tags, out);
}

void hearth_spool_put_profile(const struct hearth_spool_profile *profile, struct hearth_buf *out)
{
    assert(profile != NULL && out != NULL);
    assert(!profile->is_file || profile->file != HEARTH_SPOOL_NO_FILE);

    hearth_buf_varint(out, PROFILE_TAG);
    hearth_buf_varint(out, profile->is_file ? IS_FILE : 0);
    hearth_buf_varint(out, profile->file == HEARTH_SPOOL_NO_FILE ? 0 : (uint64_t)profile->file + 1);
    put_text(profile->id, out);
    hearth_buf_varint(out, profile->n_labels);
    for (size_t i = 0; i < profile->n_labels; i++) {
        put_text(profile->labels[i].name, out);
        put_text(profile->labels[i].value, out);
    }

    hearth_buf_varint(out, profile->n_sent);
    put_text(profile->is_file ? HEARTH_STR("") : profile->profile, out);
}

/* All parts have fixed lengths, so the hash of one after the other proves who made it. */
static void seal(const struct hearth_spool_key *key, const char *header, char ret[N_SEAL])
{
    struct hearth_sha256 hash;
    unsigned char digest[HEARTH_SHA256_BYTES];

    hearth_sha256_init(&hash);
    hearth_sha256_add(&hash, hearth_str_n((const char *)key->bytes, sizeof key->bytes));
    hearth_sha256_add(&hash, hearth_str_n(header, N_SEALED));
    hearth_sha256_end(&hash, digest);
    memcpy(ret, digest, N_SEAL);
}

bool hearth_spool_end(const struct hearth_spool_key *key, int64_t received_ns,
                      struct hearth_buf *out)
{
    if (hearth_buf_failed(out) || out->n <= HEARTH_SPOOL_HEADER_BYTES ||
        out->n - HEARTH_SPOOL_HEADER_BYTES > HEARTH_SPOOL_MAX_BODY) {
        return false;
    }

    size_t n = out->n - HEARTH_SPOOL_HEADER_BYTES;
    uint32_t n_body = htole32((uint32_t)n);
    uint64_t hash = htole64(hearth_hash64(out->p + HEARTH_SPOOL_HEADER_BYTES, n, 0));
    uint64_t received = htole64((uint64_t)received_ns);
    memcpy(out->p, g_magic, sizeof g_magic);
    memcpy(out->p + 4, &n_body, sizeof n_body);
    memcpy(out->p + 8, &hash, sizeof hash);
    memcpy(out->p + 16, &received, sizeof received);
    seal(key, out->p, out->p + N_SEALED);

    return true;
}

/* ---- headers ---- */

static uint64_t read_spool_word(const char *p)
{
    uint64_t little;
    memcpy(&little, p, sizeof little);
    return le64toh(little);
}

bool hearth_spool_header_read(const struct hearth_spool_key *key, const void *bytes,
                              struct hearth_spool_header *ret)
{
    const char *p = bytes;
    uint32_t n_body;
    char own[N_SEAL];

    assert(key != NULL && bytes != NULL && ret != NULL);
    memcpy(&n_body, p + 4, sizeof n_body);
    n_body = le32toh(n_body);
    if (memcmp(p, g_magic, sizeof g_magic) != 0 || n_body == 0 || n_body > HEARTH_SPOOL_MAX_BODY) {
        return false;
    }
    seal(key, p, own);
    if (memcmp(own, p + N_SEALED, N_SEAL) != 0) {
        return false;
    }

    uint8_t state = (uint8_t)p[HEARTH_SPOOL_STATE_AT];
    *ret = (struct hearth_spool_header){
        .n_body = n_body,
        .body_hash = read_spool_word(p + 8),
        .received_ns = (int64_t)read_spool_word(p + 16),
        /* A state that is unknown may be a damaged one: such a record is stored again, once. */
        .state =
            state <= HEARTH_SPOOL_DAMAGED ? (enum hearth_spool_state)state : HEARTH_SPOOL_WAITING,
    };

    return true;
}

size_t hearth_spool_header_find(const struct hearth_spool_key *key, struct hearth_str bytes)
{
    struct hearth_spool_header header;

    for (size_t at = 0; at + HEARTH_SPOOL_HEADER_BYTES <= bytes.n; at++) {
        const char *p = memchr(bytes.p + at, g_magic[0], bytes.n - at);
        at = p == NULL ? bytes.n : (size_t)(p - bytes.p);
        if (at + HEARTH_SPOOL_HEADER_BYTES <= bytes.n &&
            hearth_spool_header_read(key, p, &header)) {
            return at;
        }
    }

    return bytes.n;
}

/* ---- bodies ---- */

/* A place in a body. After the first fault it stays at the end. */
struct reader {
    const uint8_t *cur, *end;
    bool failed;
};

static uint64_t take_spool_number(struct reader *r)
{
    uint64_t value = 0;
    if (!hearth_varint_read(&r->cur, r->end, &value)) {
        r->failed = true;
        r->cur = r->end;
    }
    return value;
}

static struct hearth_str take_spool_bytes(struct reader *r, uint64_t n)
{
    if (r->failed || n > (uint64_t)(r->end - r->cur)) {
        r->failed = true;
        r->cur = r->end;
        return HEARTH_STR("");
    }

    struct hearth_str bytes = hearth_str_n((const char *)r->cur, (size_t)n);
    r->cur += n;

    return bytes;
}

static struct hearth_str take_spool_text(struct reader *r)
{
    return take_spool_bytes(r, take_spool_number(r));
}

static void take_spool_head(struct reader *r, struct hearth_spool_head *ret)
{
    r->failed = take_spool_number(r) != VERSION || r->failed;
    ret->is_one_upload = (take_spool_number(r) & IS_ONE_UPLOAD) != 0;
    struct hearth_str key = take_spool_bytes(r, 16);
    if (key.n == 16) {
        ret->key = (struct hearth_hash128){read_spool_word(key.p), read_spool_word(key.p + 8)};
    }
    ret->tenant = take_spool_text(r);
    ret->app_name = take_spool_text(r);
}

static void take_spool_file(struct reader *r, struct hearth_spool_file *ret)
{
    ret->name = take_spool_text(r);
    ret->bytes = take_spool_text(r);
    uint64_t part = take_spool_number(r);
    r->failed = r->failed || part > INT32_MAX;
    ret->part = (uint32_t)part;
    ret->client_tags = take_spool_text(r);
}

/* The labels are skipped if there is no arena. A label has two lengths, so 2 bytes or more. */
static void take_spool_labels(struct reader *r, struct hearth_arena *arena,
                              struct hearth_spool_profile *ret)
{
    uint64_t n = take_spool_number(r);
    if (r->failed || n > (uint64_t)(r->end - r->cur) / 2) {
        r->failed = true;
        return;
    }

    ret->n_labels = (size_t)n;
    ret->labels =
        arena == NULL ? NULL : hearth_arena_array(arena, (size_t)n, sizeof ret->labels[0]);
    for (size_t i = 0; i < n && !r->failed; i++) {
        struct hearth_label label = {.name = take_spool_text(r)};
        label.value = take_spool_text(r);
        if (ret->labels != NULL) {
            ret->labels[i] = label;
        }
    }
}

static void take_spool_profile(struct reader *r, size_t n_files, struct hearth_arena *arena,
                               struct hearth_spool_profile *ret)
{
    *ret = (struct hearth_spool_profile){.is_file = (take_spool_number(r) & IS_FILE) != 0};
    uint64_t file = take_spool_number(r);
    r->failed = r->failed || file > n_files || (ret->is_file && file == 0);
    ret->file = file == 0 ? HEARTH_SPOOL_NO_FILE : (uint32_t)(file - 1);
    ret->id = take_spool_text(r);
    take_spool_labels(r, arena, ret);
    ret->n_sent = take_spool_number(r);
    ret->profile = take_spool_text(r);
}

/* Reads files and profiles to the end; counts only if `record` has no arrays. */
static void take_spool_parts(struct reader *r, struct hearth_arena *arena,
                             struct hearth_spool_record *record)
{
    struct hearth_spool_file file;
    struct hearth_spool_profile profile;
    bool keeps = record->profiles != NULL;

    record->n_files = record->n_profiles = 0;
    while (r->cur < r->end && !r->failed) {
        uint64_t tag = take_spool_number(r);
        if (tag == FILE_TAG) {
            take_spool_file(r, keeps ? &record->files[record->n_files] : &file);
            record->n_files++;
        } else if (tag == PROFILE_TAG) {
            take_spool_profile(r, record->n_files, keeps ? arena : NULL,
                               keeps ? &record->profiles[record->n_profiles] : &profile);
            record->n_profiles++;
        } else {
            r->failed = true;
        }
    }
}

enum hearth_status hearth_spool_body_read(const struct hearth_spool_header *header,
                                          struct hearth_str body, struct hearth_arena *arena,
                                          struct hearth_spool_record *ret, struct hearth_err *err)
{
    assert(header != NULL && arena != NULL && ret != NULL);

    if (body.n != header->n_body || hearth_hash64(body.p, body.n, 0) != header->body_hash) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "its checksum is wrong");
    }

    /* Count, then fill arrays of that size. */
    struct reader r = {.cur = (const uint8_t *)body.p, .end = (const uint8_t *)body.p + body.n};
    *ret = (struct hearth_spool_record){0};
    take_spool_head(&r, &ret->head);
    struct reader parts = r;
    take_spool_parts(&parts, NULL, ret);
    if (parts.failed || ret->n_profiles == 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "its body is malformed");
    }

    ret->files = hearth_arena_array(arena, ret->n_files, sizeof ret->files[0]);
    ret->profiles = hearth_arena_array(arena, ret->n_profiles, sizeof ret->profiles[0]);
    if (ret->files != NULL && ret->profiles != NULL) {
        take_spool_parts(&r, arena, ret);
    }

    return arena->refused ? HEARTH_FAIL_ARENA(err, arena) : HEARTH_OK;
}
