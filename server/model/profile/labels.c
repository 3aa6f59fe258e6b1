/* labels.c -- sorted label sets: sort, look up, compare, fingerprint, print. */
#include "hearth/model/labels.h"

#include "hearth/base/mem.h"
#include "hearth/base/varint.h"

#include <assert.h>

/* Up to this size a plain insertion sort is faster; clients' sets have 5 to 30 labels. */
#define SMALL_SET 32u

static void insertion_sort(struct hearth_label *v, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        struct hearth_label label = v[i];
        size_t at = i;
        while (at > 0 && hearth_str_cmp(v[at - 1].name, label.name) > 0) {
            v[at] = v[at - 1];
            at--;
        }
        v[at] = label;
    }
}

/* Merge the sorted halves from[lo..mid) and from[mid..hi) into `to`; of equal names, left first. */
static void merge_halves(const struct hearth_label *from, struct hearth_label *to, size_t lo,
                         size_t mid, size_t hi)
{
    assert(lo <= mid && mid <= hi);

    size_t left = lo, right = mid;
    for (size_t i = lo; i < hi; i++) {
        bool take_left =
            right >= hi || (left < mid && hearth_str_cmp(from[left].name, from[right].name) <= 0);
        to[i] = take_left ? from[left++] : from[right++];
    }
}

void hearth_labels_sort(struct hearth_labels *labels)
{
    assert(labels != NULL && (labels->v != NULL || labels->n == 0));

    size_t n = labels->n;
    struct hearth_label *spare =
        n <= SMALL_SET ? NULL : hearth_mem_reallocarray(NULL, n, sizeof *spare);

    if (spare == NULL) { /* a small set, or memory was refused: slower, but correct */
        insertion_sort(labels->v, n);
        return;
    }

    /* Bottom-up merge sort between the labels and the spare array. */
    struct hearth_label *from = labels->v, *to = spare;
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t lo = 0; lo < n; lo += 2 * width) {
            size_t mid = lo + width < n ? lo + width : n;
            size_t hi = lo + 2 * width < n ? lo + 2 * width : n;
            merge_halves(from, to, lo, mid, hi);
        }
        struct hearth_label *swap = from;
        from = to;
        to = swap;
    }

    /* The result must end up in the set itself. */
    if (from != labels->v) {
        memcpy(labels->v, from, n * sizeof *from);
    }

    hearth_mem_free(spare);
}

struct hearth_str hearth_labels_get(const struct hearth_labels *labels, struct hearth_str name)
{
    assert(labels != NULL);

    size_t lo = 0, hi = labels->n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int order = hearth_str_cmp(labels->v[mid].name, name);
        if (order == 0) {
            return labels->v[mid].value;
        }
        if (order < 0) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }

    return (struct hearth_str){NULL, 0};
}

int hearth_labels_cmp(const struct hearth_labels *a, const struct hearth_labels *b)
{
    assert(a != NULL && b != NULL);

    size_t n = a->n < b->n ? a->n : b->n;

    for (size_t i = 0; i < n; i++) {
        int order = hearth_str_cmp(a->v[i].name, b->v[i].name);
        if (order == 0) {
            order = hearth_str_cmp(a->v[i].value, b->v[i].value);
        }
        if (order != 0) {
            return order;
        }
    }

    return a->n < b->n ? -1 : a->n > b->n;
}

/*
 * The serialised set is hashed in blocks of this size; each block after the first starts with the
 * 16-byte digest of the previous one. This needs no allocation, which might be refused. Nearly
 * every set is one block. Stored: must not change.
 */
#define BLOCK_BYTES 4096u

struct fingerprint {
    size_t n; /* bytes used of the block */
    uint8_t block[BLOCK_BYTES];
};

static void store_le64(uint8_t *out, uint64_t value)
{
    for (unsigned i = 0; i < 8; i++) {
        out[i] = (uint8_t)(value >> (8 * i));
    }
}

static void feed_bytes(struct fingerprint *fp, const void *bytes, size_t n)
{
    const uint8_t *from = bytes;

    while (n > 0) {
        if (fp->n == BLOCK_BYTES) {
            struct hearth_hash128 digest = hearth_hash128(fp->block, fp->n, 0);
            store_le64(fp->block, digest.lo);
            store_le64(fp->block + 8, digest.hi);
            fp->n = 16;
        }

        size_t take = BLOCK_BYTES - fp->n < n ? BLOCK_BYTES - fp->n : n;
        memcpy(fp->block + fp->n, from, take);
        fp->n += take;
        from += take;
        n -= take;
    }
}

static void feed_str(struct fingerprint *fp, struct hearth_str s)
{
    uint8_t prefix[10];
    feed_bytes(fp, prefix, hearth_varint_write(prefix, s.n));
    feed_bytes(fp, s.p, s.n);
}

struct hearth_hash128 hearth_labels_fingerprint(const struct hearth_labels *labels)
{
    struct fingerprint fp;
    fp.n = 0;
    for (size_t i = 0; i < labels->n; i++) {
        feed_str(&fp, labels->v[i].name);
        feed_str(&fp, labels->v[i].value);
    }
    return hearth_hash128(fp.block, fp.n, 0);
}

static void append_quoted(struct hearth_buf *out, struct hearth_str s)
{
    hearth_buf_byte(out, '"');
    size_t plain = 0; /* start of the run without escapes */
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c >= 0x20 && c != 0x7f && c != '"' && c != '\\') {
            continue;
        }

        hearth_buf_append(out, s.p + plain, i - plain);
        plain = i + 1;
        if (c == '"' || c == '\\') {
            hearth_buf_byte(out, '\\');
            hearth_buf_byte(out, c);
        } else if (c == '\n') {
            hearth_buf_cstr(out, "\\n");
        } else if (c == '\t') {
            hearth_buf_cstr(out, "\\t");
        } else if (c == '\r') {
            hearth_buf_cstr(out, "\\r");
        } else {
            hearth_buf_printf(out, "\\x%02x", (unsigned)c);
        }
    }

    hearth_buf_append(out, plain < s.n ? s.p + plain : NULL, s.n - plain);
    hearth_buf_byte(out, '"');
}

/*
 * Cut the text after `start` to max_bytes, with "..." at its end and not inside a UTF-8 sequence.
 */
static void cut_with_dots(struct hearth_buf *out, size_t start, size_t max_bytes)
{
    assert(out->n - start > max_bytes);

    size_t dots = max_bytes < 3 ? max_bytes : 3;
    size_t end = start + max_bytes - dots;
    while (end > start && ((unsigned char)out->p[end] & 0xC0) == 0x80) {
        end--;
    }
    out->n = end;
    hearth_buf_append(out, "...", dots);
}

void hearth_labels_format(const struct hearth_labels *labels, size_t max_bytes,
                          struct hearth_buf *out)
{
    assert(labels != NULL && out != NULL);

    size_t start = out->n;

    hearth_buf_byte(out, '{');
    for (size_t i = 0; i < labels->n; i++) {
        struct hearth_label label = labels->v[i];
        if (i > 0) {
            hearth_buf_cstr(out, ", ");
        }

        /* Cut long labels before they are copied, so that messages stay cheap. */
        if (max_bytes != 0) {
            label.name.n = label.name.n > max_bytes ? max_bytes : label.name.n;
            label.value.n = label.value.n > max_bytes ? max_bytes : label.value.n;
        }

        if (hearth_label_name_is_legacy(label.name)) {
            hearth_buf_str(out, label.name);
        } else {
            append_quoted(out, label.name);
        }
        hearth_buf_byte(out, '=');
        append_quoted(out, label.value);

        if (max_bytes != 0 && out->n - start > max_bytes) {
            break;
        }
    }

    hearth_buf_byte(out, '}');
    if (max_bytes != 0 && !hearth_buf_failed(out) && out->n - start > max_bytes) {
        cut_with_dots(out, start, max_bytes);
    }
}

bool hearth_label_name_is_legacy(struct hearth_str name)
{
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!letter && (i == 0 || c < '0' || c > '9')) {
            return false;
        }
    }

    return name.n > 0;
}
