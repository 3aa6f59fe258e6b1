/*
 * series_order.c -- sorts series by sum, then by labels (series_order.h).
 *
 * Thin series have few distinct sums and many labels, which mostly begin alike. So both are made
 * numbers: the sum, and then, among equal sums, the first bytes by which the values of the first
 * label differ. Whole labels are compared only where these are equal, too.
 */
#include "select/series_order.h"

#include "hearth/base/radix.h"

#include <assert.h>
#include <endian.h>
#include <stdlib.h>

#define FEW 32 /* so many are inserted one by one */

#define FEW_LABELS 4 /* so many are compared label by label */
#define MAX_DEPTH  8 /* then they are, too */

/* A number that falls as the sum grows, so that the largest sum is sorted first. */
static uint64_t key_of_sum(double sum)
{
    uint64_t bits;

    sum += 0.0; /* -0 equals 0 */
    memcpy(&bits, &sum, sizeof bits);

    return bits >> 63 != 0 ? bits : ~bits & INT64_MAX;
}

static void insert_by_key(struct hearth_ranked_series *v, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        struct hearth_ranked_series one = v[i];
        size_t at = i;

        for (; at > 0 && v[at - 1].key > one.key; at--) {
            v[at] = v[at - 1];
        }
        v[at] = one;
    }
}

static void sort_by_key(struct hearth_ranked_series *v, struct hearth_ranked_series *spare,
                        size_t n)
{
    const struct hearth_radix_entry entry = HEARTH_RADIX_ENTRY(struct hearth_ranked_series, key);

    if (n <= FEW) {
        insert_by_key(v, n);
        return;
    }

    const void *sorted = hearth_radix_sort(v, spare, n, entry, hearth_radix_differ(v, n, entry));
    if (sorted != v) {
        memcpy(v, sorted, n * sizeof v[0]);
    }
}

/* ---- labels ---- */

/* Sets the value of the first label if it has this name. */
static bool first_value(const struct hearth_labels *labels, struct hearth_str name,
                        struct hearth_str *ret)
{
    if (labels->n == 0 || !hearth_str_eq(labels->v[0].name, name)) {
        return false;
    }
    *ret = labels->v[0].value;

    return true;
}

/* The length of the common prefix of two texts: at least `from` bytes, at most n. */
static size_t count_common(struct hearth_str a, struct hearth_str b, size_t from, size_t n)
{
    n = a.n < n ? a.n : n;
    n = b.n < n ? b.n : n;
    while (from < n && a.p[from] == b.p[from]) {
        from++;
    }

    return from;
}

/* The next bytes of a text as a number that sorts as they do, with zeros after its end. */
static uint64_t key_of_text(struct hearth_str text, size_t from)
{
    uint64_t bytes = 0;
    size_t n = text.n - from;

    assert(from <= text.n);
    if (n > 0) {
        memcpy(&bytes, text.p + from, n < sizeof bytes ? n : sizeof bytes);
    }

    return be64toh(bytes);
}

/*
 * Sets keys that sort as the labels do, but may be equal where these are not. *common: bytes that
 * the first values are known to have in common, and then those that they have. False: the first
 * labels have several names.
 */
static bool set_label_keys(struct hearth_ranked_series *v, size_t n,
                           const struct hearth_timeseries *made, size_t *common)
{
    const struct hearth_labels *labels = &made[v[0].group].labels;
    struct hearth_str first, value;

    if (labels->n == 0) {
        return false;
    }

    struct hearth_str name = labels->v[0].name;
    first = labels->v[0].value;
    size_t n_common = first.n;
    for (size_t i = 1; i < n; i++) {
        if (!first_value(&made[v[i].group].labels, name, &value)) {
            return false;
        }
        n_common = count_common(first, value, *common, n_common);
    }

    for (size_t i = 0; i < n; i++) {
        v[i].key = key_of_text(made[v[i].group].labels.v[0].value, n_common);
    }
    *common = n_common;

    return true;
}

static int compare_labels(const void *a, const void *b, void *made)
{
    const struct hearth_ranked_series *x = a, *y = b;
    const struct hearth_timeseries *series = made;

    return hearth_labels_cmp(&series[x->group].labels, &series[y->group].labels);
}

/* The end of the run of equal keys that begins at i. */
static size_t end_of_run(const struct hearth_ranked_series *v, size_t i, size_t n)
{
    size_t end = i + 1;

    while (end < n && v[end].key == v[i].key) {
        end++;
    }

    return end;
}

/* common: bytes that the first values have in common. depth: how often keys were made of them. */
static void order_by_labels(struct hearth_ranked_series *v, struct hearth_ranked_series *spare,
                            size_t n, struct hearth_timeseries *made, size_t common, unsigned depth)
{
    if (n <= FEW_LABELS || depth == MAX_DEPTH || !set_label_keys(v, n, made, &common)) {
        qsort_r(v, n, sizeof v[0], compare_labels, made);
        return;
    }

    sort_by_key(v, spare, n);
    for (size_t i = 0, end; i < n; i = end) {
        end = end_of_run(v, i, n);
        if (end - i > 1) {
            unsigned next = end - i < n ? depth + 1 : MAX_DEPTH; /* keys tell no more of them */
            order_by_labels(&v[i], spare, end - i, made, common, next);
        }
    }
}

void hearth_series_order(struct hearth_ranked_series *ranked, struct hearth_ranked_series *spare,
                         size_t n, struct hearth_timeseries *made)
{
    assert((ranked != NULL && spare != NULL && made != NULL) || n == 0);

    for (size_t i = 0; i < n; i++) {
        ranked[i].key = key_of_sum(made[ranked[i].group].sum);
    }
    sort_by_key(ranked, spare, n);

    for (size_t i = 0, end; i < n; i = end) {
        end = end_of_run(ranked, i, n);
        if (end - i > 1) {
            order_by_labels(&ranked[i], spare, end - i, made, 0, 0);
        }
    }
}
