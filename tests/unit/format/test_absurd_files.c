/*
 * test_absurd_files.c -- files with absurd counts are refused before they take much memory, and the
 * refusal names the option that raises the limit. Memory is counted by a budget.
 */
#include "hearth/base/budget.h"
#include "hearth/base/buf.h"
#include "hearth/format/otlp_profiles.h"
#include "hearth/format/profile_file.h"

#include "perf_writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define MIB ((size_t)1 << 20)

/* The defaults of the server. */
static const struct hearth_pprof_limits g_limits = {
    .max_samples = 1000000,
    .max_sample_labels = 100,
    .max_types = 64,
    .max_depth = 1000,
    .max_string_bytes = 65535,
    .max_entries = 500000,
    .max_frames = 10000000,
    .max_memory = 64 * MIB,
};

struct decoded {
    struct hearth_budget budget, part;
    struct hearth_arena arena;
    struct hearth_file_profiles file;
    struct hearth_otlp_export export;
    struct hearth_err err;
    enum hearth_status status;
    size_t peak_bytes;
};

static void begin_decoding(struct decoded *d)
{
    *d = (struct decoded){.err = HEARTH_ERR_INIT};
    hearth_budget_init(&d->budget, "push-memory-bytes", 0);
    hearth_budget_init_part(&d->part, "test", 0, 0, &d->budget);
    hearth_arena_init(&d->arena, 0);
    d->arena.budget = &d->part;
}

static void end_decoding(struct decoded *d, struct hearth_buf *text)
{
    d->peak_bytes = d->part.peak_bytes;
    hearth_arena_release(&d->arena);
    assert_int_equal(d->part.used_bytes, 0);
    assert_int_equal(d->budget.used_bytes, 0);
    hearth_buf_release(text);
}

static void decode_file(struct decoded *d, struct hearth_buf *text,
                        const struct hearth_pprof_limits *limits)
{
    const struct hearth_file_options options = {.limits = *limits};

    begin_decoding(d);
    d->status =
        hearth_profile_file_decode(hearth_buf_view(text), &options, &d->arena, &d->file, &d->err);
    end_decoding(d, text);
}

static void decode_otlp(struct decoded *d, struct hearth_buf *text)
{
    const struct hearth_otlp_options options = {.limits = g_limits};

    begin_decoding(d);
    d->status = hearth_otlp_decode(hearth_buf_view(text), &options, &d->arena, &d->export, &d->err);
    end_decoding(d, text);
}

static void assert_refused(const struct decoded *d, size_t max_bytes, const char *why)
{
    assert_int_not_equal(d->status, HEARTH_OK);
    assert_int_not_equal(d->status, HEARTH_NO_MEMORY);
    if (strstr(d->err.msg, why) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", d->err.msg, why);
    }
    assert_true(d->peak_bytes <= max_bytes);
}

/* ---- protobuf ---- */

/* A message of n empty messages in a field. */
static struct hearth_buf make_empty_entries(unsigned char field, size_t n)
{
    struct hearth_buf out;

    hearth_buf_init(&out, 0);
    for (size_t i = 0; i < n; i++) {
        hearth_buf_byte(&out, (unsigned char)(field << 3 | 2));
        hearth_buf_byte(&out, 0);
    }

    return out;
}

static void write_message(struct hearth_buf *out, unsigned char field, const struct hearth_buf *of)
{
    hearth_buf_byte(out, (unsigned char)(field << 3 | 2));
    hearth_buf_varint(out, of->n);
    hearth_buf_append(out, of->p, of->n);
}

static void an_absurd_table_of_a_pprof_is_refused(void **state)
{
    (void)state;
    static const unsigned char tables[] = {3, 4, 5, 6};

    for (size_t i = 0; i < sizeof tables; i++) {
        struct decoded d;
        struct hearth_buf text = make_empty_entries(1, 1), table;
        table = make_empty_entries(tables[i], 2000000);
        hearth_buf_append(&text, table.p, table.n);
        hearth_buf_release(&table);
        decode_file(&d, &text, &g_limits);
        assert_refused(&d, 8 * MIB,
                       "has 2000000 strings, functions, locations and mappings; the "
                       "limit is 500000; raise it with --max-table-entries");
    }
}

static void an_absurd_number_of_pprof_samples_is_counted_only(void **state)
{
    (void)state;
    struct decoded d;
    struct hearth_buf text = make_empty_entries(1, 1), table = make_empty_entries(2, 8000000);

    hearth_buf_append(&text, table.p, table.n);
    hearth_buf_release(&table);
    decode_file(&d, &text, &g_limits);
    assert_refused(&d, 16 * MIB, "(max-samples, actual: 8000000, limit: 1000000); raise it with");
}

static void an_absurd_dictionary_is_refused(void **state)
{
    (void)state;

    for (unsigned char table = 1; table <= 7; table++) {
        struct decoded d;
        struct hearth_buf text, dictionary = make_empty_entries(table, 2000000);
        hearth_buf_init(&text, 0);
        write_message(&text, 2, &dictionary);
        hearth_buf_release(&dictionary);
        decode_otlp(&d, &text);
        assert_refused(&d, MIB,
                       "the dictionary has more than 500000 entries; raise it with "
                       "--max-table-entries");
    }
}

/* Each of them would be left out by itself. */
static void an_absurd_number_of_exported_samples_rejects_the_profile(void **state)
{
    (void)state;
    struct decoded d;
    struct hearth_buf text, scope, resource, profile = make_empty_entries(2, 4000000);

    hearth_buf_init(&text, 0);
    hearth_buf_init(&scope, 0);
    hearth_buf_init(&resource, 0);
    write_message(&scope, 2, &profile);
    write_message(&resource, 2, &scope);
    write_message(&text, 1, &resource);
    hearth_buf_release(&profile);
    hearth_buf_release(&scope);
    hearth_buf_release(&resource);
    decode_otlp(&d, &text);
    assert_int_equal(d.status, HEARTH_OK);
    assert_int_equal(d.export.n_rejected, 1);
    assert_int_equal(d.export.n_bad_samples, 0); /* none was read */
    assert_true(d.peak_bytes <= MIB);
}

/* ---- perf.data ---- */

static void an_absurd_number_of_maps_is_refused(void **state)
{
    (void)state;
    struct decoded d;
    struct hearth_buf text;

    hearth_buf_init(&text, 0);
    write_stream_header(&text);
    write_event(&text, 1, 0, 7, NULL);
    for (uint64_t i = 0; i < 600000; i++) {
        const struct written_map map = {1, (i * 7919 % 600000) << 13, 4096, 0, "a"};
        write_map(&text, i, &map);
    }
    decode_file(&d, &text, &g_limits);
    assert_refused(&d, 64 * MIB,
                   "the recording has more than 500000 processes, threads, files and "
                   "maps (with changed copies of shared ones); raise it with "
                   "--max-table-entries");
}

/* ---- JSON ---- */

static void an_absurd_number_of_frames_is_refused(void **state)
{
    (void)state;
    struct hearth_pprof_limits limits = g_limits;
    struct decoded d;
    struct hearth_buf text;

    hearth_buf_init(&text, 0);
    hearth_buf_cstr(&text, "{\"shared\":{\"frames\":[{}");
    for (int i = 0; i < 100000; i++) {
        hearth_buf_printf(&text, ",{\"name\":\"%d\"}", i);
    }
    hearth_buf_cstr(&text, "]},\"profiles\":[{\"type\":\"sampled\",\"unit\":\"none\","
                           "\"samples\":[],\"weights\":[]}]}");
    limits.max_entries = 100000;
    limits.max_memory = 0;
    decode_file(&d, &text, &limits);
    assert_refused(&d, 64 * MIB, "more than 100000 frames; raise it with --max-table-entries");
}

static void memory_far_beyond_the_size_of_the_file_is_refused(void **state)
{
    (void)state;
    struct hearth_pprof_limits limits = g_limits;
    struct decoded d;
    struct hearth_buf text;

    /* A frame takes about 17 times its bytes. */
    hearth_buf_init(&text, 0);
    hearth_buf_cstr(&text, "{\"shared\":{\"frames\":[{}");
    for (int i = 0; i < 100000; i++) {
        hearth_buf_printf(&text, ",{\"name\":\"%x\"}", i);
    }
    hearth_buf_cstr(&text, "]},\"profiles\":[{\"type\":\"sampled\",\"unit\":\"none\","
                           "\"samples\":[],\"weights\":[]}]}");
    limits.max_entries = 0;
    limits.max_memory = MIB;
    decode_file(&d, &text, &limits);
    assert_refused(&d, 27 * MIB, "decoding needs more than");
    assert_non_null(strstr(d.err.msg, "raise it with --max-decode-memory-bytes"));
}

static void absurdly_nested_calls_are_refused(void **state)
{
    (void)state;
    struct decoded d;
    struct hearth_buf text;

    hearth_buf_init(&text, 0);
    hearth_buf_cstr(&text, "{\"shared\":{\"frames\":[{\"name\":\"a\"}]},\"profiles\":[{\"type\":"
                           "\"evented\",\"unit\":\"none\",\"events\":[{\"type\":\"O\",\"frame\":0,"
                           "\"at\":0}");
    for (int i = 1; i <= 500000; i++) {
        hearth_buf_printf(&text, ",{\"type\":\"O\",\"frame\":0,\"at\":%d}", i);
    }
    hearth_buf_cstr(&text, "]}]}");
    decode_file(&d, &text, &g_limits);
    assert_refused(&d, 32 * MIB,
                   "the calls have more than 500000 nodes; raise it with "
                   "--max-table-entries");
}

/* 9,000 functions below 998 others: 9 million frames from half a megabyte. */
static void large_stacks_of_a_small_file_are_in_memory_once(void **state)
{
    (void)state;
    const int n_deep = 998, n_leaves = 9000;
    struct decoded d;
    struct hearth_buf text;

    hearth_buf_init(&text, 0);
    hearth_buf_cstr(&text, "{\"nodes\":[");
    for (int i = 1; i < n_deep; i++) {
        hearth_buf_printf(&text, "{\"id\":%d,\"callFrame\":{},\"children\":[%d]},", i, i + 1);
    }
    hearth_buf_printf(&text, "{\"id\":%d,\"callFrame\":{},\"children\":[", n_deep);
    for (int i = 1; i <= n_leaves; i++) {
        hearth_buf_printf(&text, "%s%d", i == 1 ? "" : ",", n_deep + i);
    }
    hearth_buf_cstr(&text, "]}");
    for (int i = 1; i <= n_leaves; i++) {
        hearth_buf_printf(&text,
                          ",{\"id\":%d,\"callFrame\":{\"functionName\":\"%d\"},"
                          "\"hitCount\":1}",
                          n_deep + i, i);
    }
    hearth_buf_cstr(&text, "],\"startTime\":0,\"endTime\":9}");
    decode_file(&d, &text, &g_limits);
    if (d.status != HEARTH_OK) {
        fail_msg("%s", d.err.msg);
    }
    assert_true(d.peak_bytes <= 64 * MIB);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_absurd_table_of_a_pprof_is_refused),
        cmocka_unit_test(an_absurd_number_of_pprof_samples_is_counted_only),
        cmocka_unit_test(an_absurd_dictionary_is_refused),
        cmocka_unit_test(an_absurd_number_of_exported_samples_rejects_the_profile),
        cmocka_unit_test(an_absurd_number_of_maps_is_refused),
        cmocka_unit_test(an_absurd_number_of_frames_is_refused),
        cmocka_unit_test(memory_far_beyond_the_size_of_the_file_is_refused),
        cmocka_unit_test(absurdly_nested_calls_are_refused),
        cmocka_unit_test(large_stacks_of_a_small_file_are_in_memory_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
