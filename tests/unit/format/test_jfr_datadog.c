/*
 * test_jfr_datadog.c -- a recording of Datadog's Java agent: two chunks, one of the JDK and one of
 * Datadog's own profiler. The sums are those of `jfr print`.
 */
#include "hearth/codec/compress.h"
#include "hearth/format/jfr.h"
#include "hearth/format/multipart.h"

#include "test_files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define UPLOAD HEARTH_TEST_DIR "/golden/datadog/java.upload"
#define MS     INT64_C(1000000)

static struct hearth_buf g_upload, g_plain;
static struct hearth_arena g_arena;
static struct hearth_jfr_recording g_recording;
static struct hearth_err g_err;

/* Takes the recording out of its form, and decodes it. */
static int start(void **state)
{
    static struct hearth_multipart form;
    static const struct hearth_jfr_options options;
    (void)state;

    hearth_buf_init(&g_upload, 0);
    hearth_buf_init(&g_plain, 0);
    hearth_arena_init(&g_arena, 0);
    assert_true(read_file(UPLOAD, &g_upload));
    size_t line = hearth_str_find(hearth_buf_view(&g_upload), '\r', 0);
    struct hearth_str type = hearth_str_n(g_upload.p, line);
    struct hearth_str body = hearth_str_n(g_upload.p + line + 2, g_upload.n - line - 2);
    assert_int_equal(hearth_multipart_parse(type, body, &form, &g_err), HEARTH_OK);
    const struct hearth_multipart_file *main = hearth_multipart_find(&form, "main");
    assert_non_null(main);

    struct hearth_inflater *inflater = hearth_inflater_new();
    assert_non_null(inflater);
    assert_int_equal(hearth_inflate(inflater, hearth_compression_detect(main->body), main->body,
                                    1u << 20, &g_plain, &g_err),
                     HEARTH_OK);
    hearth_inflater_free(inflater);

    return hearth_jfr_decode(hearth_buf_view(&g_plain), &options, &g_arena, &g_recording, &g_err) ==
                   HEARTH_OK
               ? 0
               : -1;
}

static int stop(void **state)
{
    (void)state;
    hearth_arena_release(&g_arena);
    hearth_buf_release(&g_upload);
    hearth_buf_release(&g_plain);
    return 0;
}

static const struct hearth_profile *find_profile(const char *name, const char *type,
                                                 uint32_t *ret_column)
{
    for (size_t i = 0; i < g_recording.n_profiles; i++) {
        const struct hearth_profile *p = &g_recording.profiles[i].profile;
        for (uint32_t k = 0; k < p->n_types; k++) {
            if (strcmp(g_recording.profiles[i].name, name) == 0 &&
                hearth_str_eq_c(p->strings[p->types[k].type], type)) {
                *ret_column = k;
                return p;
            }
        }
    }

    fail_msg("no profile %s with %s", name, type);
    return NULL;
}

static int64_t sum(const char *name, const char *type)
{
    uint32_t k;
    const struct hearth_profile *p = find_profile(name, type, &k);
    int64_t total = 0;

    for (uint32_t s = 0; s < p->n_samples; s++) {
        total += p->values[(size_t)s * p->n_types + k];
    }

    return total;
}

static void samples_have_the_interval_of_their_own_event(void **state)
{
    (void)state;
    assert_int_equal(sum("process_cpu", "cpu"), 448 * 10 * MS);
    assert_int_equal(sum("wall", "wall"), 118 * 50 * MS);
}

static void events_of_both_chunks_are_summed(void **state)
{
    (void)state;
    /* Weights are fractions; each event is rounded. The exact sums are 121870.6 and 173496.9. */
    assert_int_equal(sum("memory", "alloc_sample_objects"), 121827);
    assert_int_equal(sum("memory", "live"), 173501);
    assert_int_equal(sum("mutex", "contentions"), 16);
    assert_int_equal(sum("exceptions", "exceptions"), 18);
}

/* The sum of the samples that have a label with this key and, unless it is NULL, this text. */
static int64_t sum_labelled(const struct hearth_profile *p, const char *key, const char *text)
{
    int64_t total = 0;

    for (uint32_t s = 0; s < p->n_samples; s++) {
        for (uint32_t i = p->label_first[s]; i < p->label_first[s + 1]; i++) {
            const struct hearth_sample_label *l = &p->sample_labels[i];
            if (hearth_str_eq_c(p->strings[l->key], key) &&
                (text == NULL || hearth_str_eq_c(p->strings[l->str], text))) {
                total += p->values[(size_t)s * p->n_types];
            }
        }
    }

    return total;
}

static void samples_of_spans_have_the_endpoint_of_their_request(void **state)
{
    (void)state;
    uint32_t k;
    const struct hearth_profile *cpu = find_profile("process_cpu", "cpu", &k);

    /* A request had not ended: its samples have a root, but no endpoint. */
    assert_int_equal(sum_labelled(cpu, "local root span id", NULL), 417 * 10 * MS);
    assert_int_equal(sum_labelled(cpu, "trace endpoint", "Shop.answerOrder"), 413 * 10 * MS);
    assert_int_equal(sum_labelled(cpu, "thread name", "main"), 417 * 10 * MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_have_the_interval_of_their_own_event),
        cmocka_unit_test(events_of_both_chunks_are_summed),
        cmocka_unit_test(samples_of_spans_have_the_endpoint_of_their_request),
    };

    return cmocka_run_group_tests(tests, start, stop);
}
