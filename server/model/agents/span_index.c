/*
 * span_index.c -- associations as bytes (contract: hearth/model/span_index.h).
 *
 * Numbers are varints (unsigned LEB128).
 *
 * Fresh: runs of associations with the same series and time.
 *
 *   varint         n, not 0
 *   varint         series id
 *   signed         time, zigzag-coded
 *   n x 8          keys, big-endian: position(int8send(key) in ..) finds them
 *   n x 1          their kinds (enum hearth_association_of)
 *
 * Packed:
 *
 *   varint         n
 *   byte           number of known leading bits of the keys, including those of the bucket
 *   varint         scale: a common divisor of all times; not 0
 *   n times
 *     varint       known bits of the key minus the previous ones (the first: minus the bucket's
 *                  first key)
 *     varint       service id * 16 + kinds
 *     varint       series id
 *     varint       time since the start of the day / scale
 *
 * 44 bits of a key are known, however few associations a row has: rows are merged into larger ones,
 * and dropped bits cannot be restored. Among 10 million associations of a day, a key that is absent
 * matches one in 1.8 million look-ups.
 */
#include "hearth/model/span_index.h"

#include "hearth/base/clock.h"
#include "hearth/base/radix.h"
#include "hearth/base/varint.h"

#include "profile/gcd.h"

#include <assert.h>
#include <stdlib.h>

#define KEY_BITS   44u
#define MAX_VARINT 10u
#define OF_BITS    4u
#define ALL_OF     ((1u << OF_BITS) - 1)

/* The finaliser of MurmurHash3: a bijection in which each bit of the id affects the whole key. */
uint64_t hearth_span_key(uint64_t id)
{
    id ^= id >> 33;
    id *= 0xFF51AFD7ED558CCDull;
    id ^= id >> 33;
    id *= 0xC4CEB9FE1A85EC53ull;
    return id ^ id >> 33;
}

static enum hearth_status fail_span_row(const char *what, struct hearth_err *err)
{
    return HEARTH_FAIL(err, HEARTH_CORRUPT, "a row of the span index is damaged: %s", what);
}

/* ---- order ---- */

static int compare_associations(const void *left, const void *right)
{
    const struct hearth_association *a = left, *b = right;
    int order = (a->key > b->key) - (a->key < b->key);
    order = order != 0 ? order : (a->service_id > b->service_id) - (a->service_id < b->service_id);
    order = order != 0 ? order : (a->series_id > b->series_id) - (a->series_id < b->series_id);
    return order != 0 ? order : (a->ts_ns > b->ts_ns) - (a->ts_ns < b->ts_ns);
}

enum {
    DIGIT_BITS = 11,
    WORTH_DIGITS = 512, /* from this number on, radix sort is faster */
};

/*
 * Sort by the 22 bits after the common prefix of all keys, to scratch and back; then sort the runs
 * with equal bits by comparison. Keys are spread evenly, so these runs are short.
 */
static void sort_many(struct hearth_association *all, struct hearth_association *scratch, size_t n)
{
    const struct hearth_radix_entry entry = HEARTH_RADIX_ENTRY(struct hearth_association, key);
    uint64_t differ = hearth_radix_differ(all, n, entry) | 1ull << (2 * DIGIT_BITS - 1);
    unsigned shift = 64 - (unsigned)__builtin_clzll(differ) - 2 * DIGIT_BITS;

    hearth_radix_pass(all, scratch, n, entry, shift, DIGIT_BITS);
    hearth_radix_pass(scratch, all, n, entry, shift + DIGIT_BITS, DIGIT_BITS);
    for (size_t from = 0, to; from < n; from = to) {
        for (to = from + 1; to < n && all[to].key >> shift == all[from].key >> shift;) {
            to++;
        }

        if (to - from > 1) {
            qsort(all + from, to - from, sizeof *all, compare_associations);
        }
    }
}

size_t hearth_associations_sort(struct hearth_association *all, struct hearth_association *scratch,
                                size_t n)
{
    assert((all != NULL && scratch != NULL) || n == 0);

    if (n >= WORTH_DIGITS) {
        sort_many(all, scratch, n);
    } else if (n > 1) {
        qsort(all, n, sizeof *all, compare_associations);
    }

    /* Merge duplicates. */
    size_t n_out = 0;
    for (size_t i = 0; i < n; i++) {
        if (n_out > 0 && compare_associations(&all[n_out - 1], &all[i]) == 0) {
            all[n_out - 1].of |= all[i].of;
        } else {
            all[n_out++] = all[i];
        }
    }

    return n_out;
}

/* ---- associations of samples ---- */

/* A set of distinct keys; slots hold index + 1, at most half of them are in use. */
struct key_collector {
    struct hearth_association *found;
    uint32_t *slots;
    size_t n, mask;
};

static void collect_key(struct key_collector *c, uint64_t id, uint64_t *last, unsigned of)
{
    if (id == 0 || id == *last) {
        return; /* neighbouring samples usually belong to the same span */
    }

    *last = id;
    uint64_t key = hearth_span_key(id);
    size_t slot = (size_t)key & c->mask;
    while (c->slots[slot] != 0 && c->found[c->slots[slot] - 1].key != key) {
        slot = (slot + 1) & c->mask;
    }

    if (c->slots[slot] == 0) {
        c->found[c->n] = (struct hearth_association){.key = key};
        c->slots[slot] = (uint32_t)++c->n;
    }

    c->found[c->slots[slot] - 1].of |= (uint8_t)of;
}

static size_t count_ids(const struct hearth_attr_sample *samples, size_t n)
{
    size_t n_ids = 0;

    for (size_t i = 0; i < n; i++) {
        const struct hearth_sample_attrs *attrs = &samples[i].attrs;
        n_ids += attrs->span_id != 0;
        n_ids += attrs->local_root_span_id != 0;
        n_ids += (attrs->trace_id_lo | attrs->trace_id_hi) != 0;
    }

    return n_ids;
}

enum hearth_status hearth_associations_of_samples(const struct hearth_attr_sample *samples,
                                                  size_t n, struct hearth_arena *scratch,
                                                  struct hearth_arena *keep,
                                                  struct hearth_association **ret, size_t *ret_n,
                                                  struct hearth_err *err)
{
    assert((samples != NULL || n == 0) && scratch != NULL && keep != NULL);
    assert(ret != NULL && ret_n != NULL);

    *ret = NULL;
    *ret_n = 0;
    /* At most n_ids keys; twice as many slots. */
    size_t n_ids = count_ids(samples, n), n_slots = 2;
    if (n_ids == 0) {
        return HEARTH_OK;
    }

    while (n_slots < 2 * n_ids) {
        n_slots *= 2;
    }

    struct key_collector c = {.found = hearth_arena_array(scratch, n_ids, sizeof *c.found),
                              .slots = hearth_arena_calloc(scratch, n_slots, sizeof *c.slots),
                              .mask = n_slots - 1};
    if (c.found == NULL || c.slots == NULL) {
        return HEARTH_FAIL_ARENA(err, scratch);
    }

    /* Collect the ids of all samples. */
    uint64_t last_span = 0, last_root = 0, last_trace = 0;
    for (size_t i = 0; i < n; i++) {
        const struct hearth_sample_attrs *attrs = &samples[i].attrs;
        collect_key(&c, attrs->span_id, &last_span, HEARTH_OF_SPAN);
        collect_key(&c, attrs->local_root_span_id, &last_root, HEARTH_OF_LOCAL_ROOT);

        /* The same choice as in hearth_trace_id_key. */
        collect_key(&c, attrs->trace_id_lo != 0 ? attrs->trace_id_lo : attrs->trace_id_hi,
                    &last_trace, HEARTH_OF_TRACE);
    }

    /* Keep only the result. */
    struct hearth_association *found = hearth_arena_array(keep, c.n, sizeof *found);
    if (found == NULL) {
        return HEARTH_FAIL_ARENA(err, keep);
    }

    memcpy(found, c.found, c.n * sizeof *found);
    *ret = found;
    *ret_n = c.n;

    return HEARTH_OK;
}

/* ---- fresh ---- */

static void write_key(char *out, uint64_t value)
{
    for (int i = 7; i >= 0; i--, value >>= 8) {
        out[i] = (char)(value & 0xFF);
    }
}

static uint64_t read_key(const uint8_t *from)
{
    uint64_t value = 0;
    for (int i = 0; i < 8; i++) {
        value = value << 8 | from[i];
    }
    return value;
}

void hearth_associations_put_fresh(const struct hearth_association *associations, size_t n,
                                   int32_t series_id, int64_t ts_ns, struct hearth_buf *out)
{
    assert((associations != NULL || n == 0) && out != NULL);
    assert(series_id >= 0);

    if (n == 0) {
        return;
    }

    /* The head of the run. */
    hearth_buf_varint(out, n);
    hearth_buf_varint(out, (uint32_t)series_id);
    hearth_buf_varint(out, hearth_zigzag(ts_ns));

    /* Keys, then kinds. */
    char *keys = hearth_buf_reserve(out, n * 9);
    if (keys == NULL) {
        return;
    }

    for (size_t i = 0; i < n; i++) {
        write_key(keys + 8 * i, associations[i].key);
        keys[8 * n + i] = (char)associations[i].of;
    }

    out->n += n * 9;
}

enum hearth_status hearth_associations_read_fresh(struct hearth_str bytes, int32_t service_id,
                                                  struct hearth_arena *arena,
                                                  struct hearth_association **ret, size_t *ret_n,
                                                  struct hearth_err *err)
{
    if (bytes.n == 0) { /* there need not be an address to point into */
        *ret = NULL;
        *ret_n = 0;
        return HEARTH_OK;
    }

    const uint8_t *at = (const uint8_t *)bytes.p, *end = at + bytes.n;
    struct hearth_association *all = hearth_arena_array(arena, bytes.n / 9, sizeof *all);
    size_t n_all = 0;
    if (all == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    while (at < end) {
        uint64_t n, series_id, ts;
        if (!hearth_varint_read(&at, end, &n) || !hearth_varint_read(&at, end, &series_id) ||
            !hearth_varint_read(&at, end, &ts) || n == 0 || n > (size_t)(end - at) / 9 ||
            series_id > INT32_MAX) {
            return fail_span_row("head of a run", err);
        }

        /* The run itself. */
        for (size_t i = 0; i < n; i++) {
            uint8_t of = at[8 * n + i];
            if (of == 0 || of > ALL_OF) {
                return fail_span_row("a kind", err);
            }
            all[n_all++] = (struct hearth_association){.key = read_key(at + 8 * i),
                                                       .of = of,
                                                       .service_id = service_id,
                                                       .series_id = (int32_t)series_id,
                                                       .ts_ns = hearth_unzigzag(ts)};
        }
        at += 9 * n;
    }

    *ret = all;
    *ret_n = n_all;

    return HEARTH_OK;
}

/* ---- packed ---- */

/* The common divisor of all times since origin_ns; 1 if all are equal to it. */
static uint64_t find_scale(const struct hearth_association *associations, size_t n,
                           int64_t origin_ns)
{
    uint64_t scale = 0;
    for (size_t i = 0; i < n && scale != 1; i++) {
        scale = hearth_gcd((uint64_t)(associations[i].ts_ns - origin_ns), scale);
    }
    return scale == 0 ? 1 : scale;
}

void hearth_associations_pack(const struct hearth_association *associations, size_t n, int32_t day,
                              unsigned bits, struct hearth_buf *out)
{
    assert(bits <= HEARTH_SPAN_BUCKET_BITS && out != NULL);
    assert(n < 2 || associations[0].key <= associations[n - 1].key);

    int64_t origin_ns = day * HEARTH_NS_PER_DAY;
    uint64_t scale = find_scale(associations, n, origin_ns);
    uint64_t mask = UINT64_MAX >> bits, previous = 0;

    hearth_buf_varint(out, n);
    hearth_buf_byte(out, KEY_BITS);
    hearth_buf_varint(out, scale);
    for (size_t i = 0; i < n; i++) {
        const struct hearth_association *a = &associations[i];
        uint8_t *p = (uint8_t *)hearth_buf_reserve(out, 4 * MAX_VARINT);
        if (p == NULL) {
            return;
        }

        uint64_t key = (a->key & mask) >> (64 - KEY_BITS);
        size_t used = hearth_varint_write(p, key - previous);
        used += hearth_varint_write(p + used, (uint64_t)(uint32_t)a->service_id << OF_BITS | a->of);
        used += hearth_varint_write(p + used, (uint32_t)a->series_id);
        used += hearth_varint_write(p + used, (uint64_t)(a->ts_ns - origin_ns) / scale);
        out->n += used;
        previous = key;
    }
}

struct unpacker {
    const uint8_t *at, *end;
    uint64_t scale;
    uint64_t first_key;    /* first key of the bucket */
    uint64_t key, max_key; /* known bits after those of the bucket: of the previous key; largest */
    unsigned shift;        /* number of unknown bits */
    int64_t origin_ns;
};

static bool take_association(struct unpacker *u, struct hearth_association *ret)
{
    uint64_t delta, service, series_id, time, since_ns;

    if (!hearth_varint_read(&u->at, u->end, &delta) ||
        !hearth_varint_read(&u->at, u->end, &service) ||
        !hearth_varint_read(&u->at, u->end, &series_id) ||
        !hearth_varint_read(&u->at, u->end, &time) || delta > u->max_key - u->key ||
        (service & ALL_OF) == 0 || service >> OF_BITS > INT32_MAX || series_id > INT32_MAX ||
        __builtin_mul_overflow(time, u->scale, &since_ns) ||
        since_ns >= (uint64_t)HEARTH_NS_PER_DAY) {
        return false;
    }

    u->key += delta;
    *ret = (struct hearth_association){.key = u->first_key | u->key << u->shift,
                                       .of = (uint8_t)(service & ALL_OF),
                                       .service_id = (int32_t)(service >> OF_BITS),
                                       .series_id = (int32_t)series_id,
                                       .ts_ns = u->origin_ns + (int64_t)since_ns};

    return true;
}

enum hearth_status hearth_associations_unpack(const struct hearth_association_row *row,
                                              struct hearth_arena *arena,
                                              struct hearth_association **ret, size_t *ret_n,
                                              unsigned *ret_key_bits, struct hearth_err *err)
{
    assert(arena != NULL && ret != NULL && ret_n != NULL && ret_key_bits != NULL);

    struct unpacker u = {.at = (const uint8_t *)row->bytes.p};

    /* The arguments and the head. */
    u.end = u.at + row->bytes.n;
    uint64_t n;
    if (row->bits > HEARTH_SPAN_BUCKET_BITS || row->bucket >> row->bits != 0 ||
        !hearth_varint_read(&u.at, u.end, &n) || u.at == u.end || *u.at > 64 ||
        *u.at <= row->bits || row->day > INT64_MAX / HEARTH_NS_PER_DAY - 1 ||
        row->day < INT64_MIN / HEARTH_NS_PER_DAY + 1) {
        return fail_span_row("head", err);
    }

    unsigned key_bits = *u.at++;
    if (!hearth_varint_read(&u.at, u.end, &u.scale) || u.scale == 0 ||
        n > (size_t)(u.end - u.at) / 4) {
        return fail_span_row("number of associations", err);
    }

    /* The associations. */
    u.shift = 64 - key_bits;
    u.first_key = row->bits == 0 ? 0 : (uint64_t)row->bucket << (64 - row->bits);
    u.max_key = UINT64_MAX >> row->bits >> u.shift;
    u.origin_ns = row->day * HEARTH_NS_PER_DAY;
    struct hearth_association *all = hearth_arena_array(arena, (size_t)n, sizeof *all);
    if (all == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (size_t i = 0; i < n; i++) {
        if (!take_association(&u, &all[i])) {
            return fail_span_row("an association", err);
        }
    }

    if (u.at != u.end) {
        return fail_span_row("bytes are left over", err);
    }

    *ret = all;
    *ret_n = (size_t)n;
    *ret_key_bits = key_bits;

    return HEARTH_OK;
}
