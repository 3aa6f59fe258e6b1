/*
 * metrics.c -- the metric table, its cells, and the Prometheus text.
 *
 * Every metric has one cell, or one per label value. Cells of label values are found without a lock
 * in an open-addressed table of pointers that only grows; g_insert serialises insertions. Updates
 * are relaxed: a scrape may read each number at a different moment.
 */
#include "hearth/base/metrics.h"

#include "hearth/base/clock.h"
#include "hearth/base/hash.h"
#include "hearth/base/mem.h"
#include "hearth/base/sync.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>

#define N_SLOTS         512u /* power of two, more than twice HEARTH_METRIC_MAX_VALUES */
#define MAX_VALUE_BYTES 256u
#define MAX_DECLARED    16

enum kind {
    COUNTER,
    GAUGE,
    COUNTER_NS, /* nanoseconds, written as seconds */
    GAUGE_NS,
    HISTOGRAM,
};

static const struct {
    enum kind kind;
    const char *name, *label, *help;
} g_table[] = {
#define X(id, kind, name, label, help) {kind, name, label, help},
#include "hearth/base/metrics.def"
#undef X
};

static const struct {
    enum hearth_metric metric;
    const char *values[MAX_DECLARED + 1]; /* NULL-terminated */
} g_declared[] = {
#define X(...)
#define V(id, ...) {HEARTH_M_##id, {__VA_ARGS__}},
#include "hearth/base/metrics.def"
#undef X
};

static const struct {
    int64_t upper_ns;
    const char *text;
} g_buckets[] = {
    {INT64_C(500000), "0.0005"},  {INT64_C(1000000), "0.001"},  {INT64_C(2000000), "0.002"},
    {INT64_C(4000000), "0.004"},  {INT64_C(8000000), "0.008"},  {INT64_C(16000000), "0.016"},
    {INT64_C(32000000), "0.032"}, {INT64_C(64000000), "0.064"}, {INT64_C(125000000), "0.125"},
    {INT64_C(250000000), "0.25"}, {INT64_C(500000000), "0.5"},  {INT64_C(1000000000), "1"},
    {INT64_C(2000000000), "2"},   {INT64_C(4000000000), "4"},   {INT64_C(8000000000), "8"},
    {INT64_C(15000000000), "15"}, {INT64_C(30000000000), "30"}, {INT64_C(60000000000), "60"},
};
#define N_BUCKETS HEARTH_ARRAY_LEN(g_buckets)

/* The latest observation of one bucket that had a trace; wall_ns is 0 if there was none. */
struct exemplar {
    char trace_id[HEARTH_METRIC_TRACE_BYTES];
    int64_t wall_ns, ns;
};

struct cell {
    struct hearth_str value; /* label value; immutable */
    _Atomic int64_t number;  /* counter, gauge: the value; histogram: the sum in nanoseconds */
    /* Histogram: observations per bucket, not cumulated; the last one is above all limits. */
    _Atomic int64_t n_in[N_BUCKETS + 1];
    struct exemplar *exemplars; /* one per bucket, guarded by g_exemplars; NULL: no trace yet */
};

struct family {
    struct cell plain; /* without a label value, or with the empty one */
    struct cell other; /* label values beyond the limit, too long, not UTF-8, or without memory */
    _Atomic bool plain_used, other_used;
    struct cell *_Atomic slots[N_SLOTS]; /* released by insert_cell, acquired by find_cell */
    struct cell *_Atomic cells[HEARTH_METRIC_MAX_VALUES]; /* the same, in order of insertion */
    _Atomic size_t n_cells; /* written under g_insert; released after cells[n] */
};

static struct family g_families[HEARTH_N_METRICS];
static struct hearth_mutex g_insert =
    HEARTH_MUTEX_INITIALIZER(HEARTH_RANK_METRICS, "metrics.insert");
static struct hearth_mutex g_exemplars =
    HEARTH_MUTEX_INITIALIZER(HEARTH_RANK_METRICS, "metrics.exemplars");

_Static_assert(HEARTH_ARRAY_LEN(g_table) == HEARTH_N_METRICS, "one row per metric");
_Static_assert(N_SLOTS > 2 * HEARTH_METRIC_MAX_VALUES, "a probe always finds an empty slot");

/* The cell of `value`, or NULL; *ret_slot is then the empty slot for it. */
static struct cell *find_cell(struct family *family, struct hearth_str value, size_t *ret_slot)
{
    size_t i = (size_t)hearth_hash64(value.p, value.n, hearth_hash_process_seed()) % N_SLOTS;
    for (;; i = (i + 1) % N_SLOTS) {
        struct cell *cell = atomic_load_explicit(&family->slots[i], memory_order_acquire);
        if (cell == NULL || hearth_str_eq(cell->value, value)) {
            *ret_slot = i;
            return cell;
        }
    }
}

static struct cell *use_other_cell(struct family *family)
{
    atomic_store_explicit(&family->other_used, true, memory_order_relaxed);
    return &family->other;
}

/* The caller holds g_insert. NULL: too many values, or no memory. */
static struct cell *insert_cell(struct family *family, struct hearth_str value)
{
    hearth_mutex_assert_held(&g_insert);

    size_t n = atomic_load_explicit(&family->n_cells, memory_order_relaxed);
    if (n == HEARTH_METRIC_MAX_VALUES) {
        return NULL;
    }

    struct cell *cell = hearth_mem_zalloc(sizeof *cell + value.n);
    if (cell == NULL) {
        return NULL;
    }

    /* The value is stored after the cell. */
    char *text = (char *)(cell + 1);
    memcpy(text, value.p, value.n);
    cell->value = hearth_str_n(text, value.n);

    /* Publish: readers that see the slot or the count must see the whole cell. */
    size_t slot;
    (void)find_cell(family, value, &slot);
    atomic_store_explicit(&family->slots[slot], cell, memory_order_release);
    atomic_store_explicit(&family->cells[n], cell, memory_order_relaxed);
    atomic_store_explicit(&family->n_cells, n + 1, memory_order_release);

    return cell;
}

static struct cell *find_or_add_cell(enum hearth_metric metric, struct hearth_str value)
{
    assert((unsigned)metric < HEARTH_N_METRICS);

    struct family *family = &g_families[metric];
    if (value.n == 0 || g_table[metric].label[0] == '\0') {
        atomic_store_explicit(&family->plain_used, true, memory_order_relaxed);
        return &family->plain;
    }

    size_t slot;
    struct cell *cell = find_cell(family, value, &slot);
    if (cell != NULL) {
        return cell;
    }

    if (value.n > MAX_VALUE_BYTES || !hearth_str_utf8_valid(value) ||
        atomic_load_explicit(&family->n_cells, memory_order_relaxed) == HEARTH_METRIC_MAX_VALUES) {
        return use_other_cell(family);
    }

    if (hearth_str_eq_c(value, "other")) { /* "other" must have one line only */
        return use_other_cell(family);
    }

    /* Search again under the lock: another thread may have inserted the value. */
    hearth_mutex_lock(&g_insert);
    cell = find_cell(family, value, &slot);
    cell = cell == NULL ? insert_cell(family, value) : cell;
    hearth_mutex_unlock(&g_insert);

    return cell == NULL ? use_other_cell(family) : cell;
}

static bool is_counter(enum hearth_metric metric)
{
    return g_table[metric].kind == COUNTER || g_table[metric].kind == COUNTER_NS;
}

void hearth_metric_add_label(enum hearth_metric metric, struct hearth_str label_value,
                             int64_t value)
{
    HEARTH_ASSERT(g_table[metric].kind != HISTOGRAM);
    if (is_counter(metric) && value < 0) {
        return; /* a clock that was set back must not look like a restart */
    }

    struct cell *cell = find_or_add_cell(metric, label_value);
    (void)atomic_fetch_add_explicit(&cell->number, value, memory_order_relaxed);
}

/* A truncated pair is still longer than a value may be, so it counts as "other". */
static struct hearth_str join_labels(const char *first, const char *second,
                                     char pair[MAX_VALUE_BYTES + 2])
{
    assert(strchr(first, ',') == NULL);
    (void)snprintf(pair, MAX_VALUE_BYTES + 2, "%s,%s", first, second);
    return hearth_str_c(pair);
}

void hearth_metric_add_labels(enum hearth_metric metric, const char *first, const char *second,
                              int64_t value)
{
    char pair[MAX_VALUE_BYTES + 2];
    hearth_metric_add_label(metric, join_labels(first, second, pair), value);
}

void hearth_metric_add(enum hearth_metric metric, int64_t value)
{
    hearth_metric_add_label(metric, hearth_str_n(NULL, 0), value);
}

void hearth_metric_set_label(enum hearth_metric metric, struct hearth_str label_value,
                             int64_t value)
{
    HEARTH_ASSERT(g_table[metric].kind != HISTOGRAM);
    struct cell *cell = find_or_add_cell(metric, label_value);
    atomic_store_explicit(&cell->number, value, memory_order_relaxed);
}

void hearth_metric_set_labels(enum hearth_metric metric, const char *first, const char *second,
                              int64_t value)
{
    char pair[MAX_VALUE_BYTES + 2];
    hearth_metric_set_label(metric, join_labels(first, second, pair), value);
}

void hearth_metric_set(enum hearth_metric metric, int64_t value)
{
    hearth_metric_set_label(metric, hearth_str_n(NULL, 0), value);
}

void hearth_metric_declare(enum hearth_metric metric, const char *label_value)
{
    (void)find_or_add_cell(metric, hearth_str_c(label_value));
}

void hearth_metrics_start(const char *version)
{
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_declared); i++) {
        for (size_t k = 0; g_declared[i].values[k] != NULL; k++) {
            hearth_metric_declare(g_declared[i].metric, g_declared[i].values[k]);
        }
    }

    for (unsigned status = HEARTH_OK + 1; status < HEARTH_N_STATUSES; status++) {
        hearth_metric_declare(HEARTH_M_RPC_ERRORS, hearth_status_name(status));
    }

    hearth_metric_add_label(HEARTH_M_BUILD_INFO, hearth_str_c(version), 1);
    hearth_metric_set(HEARTH_M_PROCESS_START, hearth_clock_wall_ns());
}

/* Without memory the bucket has no exemplar. */
static void set_exemplar(struct cell *cell, size_t bucket, struct hearth_str trace_id, int64_t ns)
{
    assert(trace_id.n == HEARTH_METRIC_TRACE_BYTES);

    hearth_mutex_lock(&g_exemplars);
    if (cell->exemplars == NULL) {
        cell->exemplars = hearth_mem_zalloc((N_BUCKETS + 1) * sizeof cell->exemplars[0]);
    }
    if (cell->exemplars != NULL) {
        struct exemplar *exemplar = &cell->exemplars[bucket];
        memcpy(exemplar->trace_id, trace_id.p, sizeof exemplar->trace_id);
        exemplar->wall_ns = hearth_clock_wall_ns();
        exemplar->ns = ns;
    }
    hearth_mutex_unlock(&g_exemplars);
}

void hearth_metric_observe_ns(enum hearth_metric metric, struct hearth_str label_value, int64_t ns)
{
    hearth_metric_observe_traced_ns(metric, label_value, ns, hearth_str_n(NULL, 0));
}

void hearth_metric_observe_traced_ns(enum hearth_metric metric, struct hearth_str label_value,
                                     int64_t ns, struct hearth_str trace_id)
{
    HEARTH_ASSERT(g_table[metric].kind == HISTOGRAM);
    ns = ns < 0 ? 0 : ns;
    size_t bucket = 0;
    while (bucket < N_BUCKETS && ns > g_buckets[bucket].upper_ns) {
        bucket++;
    }

    struct cell *cell = find_or_add_cell(metric, label_value);
    (void)atomic_fetch_add_explicit(&cell->n_in[bucket], 1, memory_order_relaxed);
    (void)atomic_fetch_add_explicit(&cell->number, ns, memory_order_relaxed);
    if (trace_id.n > 0) {
        set_exemplar(cell, bucket, trace_id, ns);
    }
}

static int64_t read_cell(enum hearth_metric metric, struct cell *cell)
{
    if (g_table[metric].kind != HISTOGRAM) {
        return atomic_load_explicit(&cell->number, memory_order_relaxed);
    }

    int64_t n = 0;
    for (size_t i = 0; i <= N_BUCKETS; i++) {
        n += atomic_load_explicit(&cell->n_in[i], memory_order_relaxed);
    }

    return n;
}

int64_t hearth_metric_value(enum hearth_metric metric)
{
    struct family *family = &g_families[metric];
    int64_t sum = read_cell(metric, &family->plain) + read_cell(metric, &family->other);
    size_t n = atomic_load_explicit(&family->n_cells, memory_order_acquire);
    for (size_t i = 0; i < n; i++) {
        sum += read_cell(metric, atomic_load_explicit(&family->cells[i], memory_order_relaxed));
    }

    return sum;
}

/*
 * In HELP texts backslash and line feed are escaped; in label values (quoted) also the double
 * quote.
 */
static void write_escaped(struct hearth_buf *out, struct hearth_str text, bool quoted)
{
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        if (c == '\n') {
            hearth_buf_cstr(out, "\\n");
        } else {
            if (c == '\\' || (quoted && c == '"')) {
                hearth_buf_byte(out, '\\');
            }
            hearth_buf_byte(out, (unsigned char)c);
        }
    }
}

/* Append name_suffix{label="value",le="..."} and a blank. */
static void write_name(struct hearth_buf *out, enum hearth_metric metric, const char *suffix,
                       struct hearth_str value, const char *le)
{
    struct hearth_str label = hearth_str_c(g_table[metric].label);
    bool labelled = label.n > 0;

    hearth_buf_cstr(out, g_table[metric].name);
    hearth_buf_cstr(out, suffix);
    if (labelled) {
        size_t comma = hearth_str_find(label, ',', 0);
        bool is_pair = comma < label.n;
        size_t end = is_pair ? hearth_str_find(value, ',', 0) : value.n;

        hearth_buf_printf(out, "{%.*s=\"", (int)comma, label.p);
        write_escaped(out, hearth_str_n(value.p, end), true);
        hearth_buf_byte(out, '"');
        if (is_pair) { /* a value without a second part is "other", a sum over pairs */
            hearth_buf_printf(out, ",%s=\"", label.p + comma + 1);
            write_escaped(
                out, end < value.n ? hearth_str_n(value.p + end + 1, value.n - end - 1) : value,
                true);
            hearth_buf_byte(out, '"');
        }
    }

    if (le != NULL) {
        hearth_buf_printf(out, "%sle=\"%s\"", labelled ? "," : "{", le);
    }

    hearth_buf_cstr(out, labelled || le != NULL ? "} " : " ");
}

static void write_seconds(struct hearth_buf *out, int64_t ns)
{
    uint64_t size = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
    hearth_buf_printf(out, "%s%llu.%09llu", ns < 0 ? "-" : "",
                      (unsigned long long)(size / HEARTH_NS_PER_SEC),
                      (unsigned long long)(size % HEARTH_NS_PER_SEC));
}

/* Appends the exemplar of a bucket, if any, to its line. */
static void write_exemplar(struct hearth_buf *out, struct cell *cell, size_t bucket)
{
    struct exemplar exemplar = {.wall_ns = 0};

    hearth_mutex_lock(&g_exemplars);
    if (cell->exemplars != NULL) {
        exemplar = cell->exemplars[bucket];
    }
    hearth_mutex_unlock(&g_exemplars);

    if (exemplar.wall_ns != 0) {
        hearth_buf_printf(out, " # {trace_id=\"%.*s\"} ", (int)sizeof exemplar.trace_id,
                          exemplar.trace_id);
        write_seconds(out, exemplar.ns);
        hearth_buf_byte(out, ' ');
        write_seconds(out, exemplar.wall_ns);
    }
}

/* OpenMetrics wants the canonical form of a float, which has a fraction. */
static void write_bucket_name(struct hearth_buf *out, enum hearth_metric metric,
                              struct hearth_str value, size_t bucket,
                              enum hearth_metrics_format format)
{
    const char *text = bucket == N_BUCKETS ? "+Inf" : g_buckets[bucket].text;
    bool is_whole = bucket < N_BUCKETS && strchr(text, '.') == NULL;
    char le[16];

    (void)snprintf(le, sizeof le, "%s%s", text,
                   is_whole && format == HEARTH_METRICS_OPENMETRICS ? ".0" : "");
    write_name(out, metric, "_bucket", value, le);
}

static void write_histogram(struct hearth_buf *out, enum hearth_metric metric, struct cell *cell,
                            struct hearth_str value, enum hearth_metrics_format format)
{
    /* Cumulated here, so that _count equals the last bucket despite concurrent updates. */
    int64_t n = 0;
    for (size_t i = 0; i <= N_BUCKETS; i++) {
        n += atomic_load_explicit(&cell->n_in[i], memory_order_relaxed);
        write_bucket_name(out, metric, value, i, format);
        hearth_buf_printf(out, "%lld", (long long)n);
        if (format == HEARTH_METRICS_OPENMETRICS) {
            write_exemplar(out, cell, i);
        }
        hearth_buf_byte(out, '\n');
    }

    write_name(out, metric, "_sum", value, NULL);
    write_seconds(out, atomic_load_explicit(&cell->number, memory_order_relaxed));
    hearth_buf_byte(out, '\n');
    write_name(out, metric, "_count", value, NULL);
    hearth_buf_printf(out, "%lld\n", (long long)n);
}

static void write_cell(struct hearth_buf *out, enum hearth_metric metric, struct cell *cell,
                       struct hearth_str value, enum hearth_metrics_format format)
{
    if (g_table[metric].kind == HISTOGRAM) {
        write_histogram(out, metric, cell, value, format);
        return;
    }

    write_name(out, metric, "", value, NULL);
    if (g_table[metric].kind == COUNTER_NS || g_table[metric].kind == GAUGE_NS) {
        write_seconds(out, read_cell(metric, cell));
    } else {
        hearth_buf_printf(out, "%lld", (long long)read_cell(metric, cell));
    }
    hearth_buf_byte(out, '\n');
}

/* In OpenMetrics, the family of a counter is its name without "_total". */
static void write_family_head(struct hearth_buf *out, enum hearth_metric metric,
                              enum hearth_metrics_format format)
{
    static const char *const kinds[] = {"counter", "gauge", "counter", "gauge", "histogram"};
    bool is_open = format == HEARTH_METRICS_OPENMETRICS;
    struct hearth_str name = hearth_str_c(g_table[metric].name);

    if (is_open && is_counter(metric)) {
        assert(hearth_str_ends(name, HEARTH_STR("_total")));
        name.n -= strlen("_total");
    }

    hearth_buf_printf(out, "# HELP " HEARTH_STR_FMT " ", HEARTH_STR_ARG(name));
    write_escaped(out, hearth_str_c(g_table[metric].help), is_open);
    hearth_buf_printf(out, "\n# TYPE " HEARTH_STR_FMT " %s\n", HEARTH_STR_ARG(name),
                      kinds[g_table[metric].kind]);
}

static void write_family(struct hearth_buf *out, enum hearth_metric metric,
                         enum hearth_metrics_format format)
{
    struct family *family = &g_families[metric];

    write_family_head(out, metric, format);
    if (g_table[metric].label[0] == '\0' ||
        atomic_load_explicit(&family->plain_used, memory_order_relaxed)) {
        write_cell(out, metric, &family->plain, hearth_str_n(NULL, 0), format);
    }

    size_t n = atomic_load_explicit(&family->n_cells, memory_order_acquire);
    for (size_t i = 0; i < n; i++) {
        struct cell *cell = atomic_load_explicit(&family->cells[i], memory_order_relaxed);
        write_cell(out, metric, cell, cell->value, format);
    }

    if (atomic_load_explicit(&family->other_used, memory_order_relaxed)) {
        write_cell(out, metric, &family->other, HEARTH_STR("other"), format);
    }
}

void hearth_metrics_write(struct hearth_buf *out, enum hearth_metrics_format format)
{
    for (unsigned i = 0; i < HEARTH_N_METRICS; i++) {
        write_family(out, (enum hearth_metric)i, format);
    }

    if (format == HEARTH_METRICS_OPENMETRICS) {
        hearth_buf_cstr(out, "# EOF\n");
    }
}
