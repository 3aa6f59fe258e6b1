/* test_pieces.c -- answers made in pieces: any window, any way, and failures on the way. */
#include "hearth/base/budget.h"
#include "hearth/codec/compress.h"

#include "query/flamebearer.h"
#include "rpc/pieces.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define LARGE (5 * HEARTH_PIECES_WHOLE_BYTES + 12345)
#define SMALL 1000u

/* Lines with numbers, made as far as they are requested. */
struct lines {
    size_t n, at;
    unsigned n_released;
};

static bool more_lines(void *context, size_t n_bytes, struct hearth_buf *out)
{
    struct lines *lines = context;
    size_t from = out->n;
    while (lines->at < lines->n && out->n - from < n_bytes && !hearth_buf_failed(out)) {
        size_t before = out->n;
        hearth_buf_printf(out, "line at %zu\n", lines->at);
        lines->at += out->n - before;
    }
    return lines->at < lines->n;
}

static void release_lines(void *context)
{
    ((struct lines *)context)->n_released++;
}

static struct hearth_pieces pieces_of(struct lines *lines, size_t n)
{
    *lines = (struct lines){.n = n};
    return (struct hearth_pieces){.more = more_lines, .release = release_lines, .context = lines};
}

static struct hearth_buf whole(size_t n)
{
    struct hearth_buf text;
    struct lines lines = {.n = n};
    hearth_buf_init(&text, 0);
    assert_false(more_lines(&lines, SIZE_MAX, &text));
    return text;
}

static void assert_same(const struct hearth_buf *a, const struct hearth_buf *b)
{
    assert_int_equal(a->n, b->n);
    assert_memory_equal(a->p, b->p, a->n);
}

static enum hearth_status begin(struct hearth_pieces *pieces, enum hearth_pieces_way way,
                                struct hearth_buf *out, bool *is_gzip)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    hearth_buf_init(out, 0);
    return hearth_pieces_begin(pieces, way, NULL, out, is_gzip, &err);
}

static void a_small_text_is_made_at_once_in_every_way(void **state)
{
    (void)state;
    static const enum hearth_pieces_way ways[] = {HEARTH_PIECES_AT_ONCE, HEARTH_PIECES_AS_SENT,
                                                  HEARTH_PIECES_AS_GZIP};
    struct hearth_buf want = whole(SMALL);
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(ways); i++) {
        struct lines lines;
        struct hearth_buf out;
        bool is_gzip = true;
        struct hearth_pieces pieces = pieces_of(&lines, SMALL);
        assert_int_equal(begin(&pieces, ways[i], &out, &is_gzip), HEARTH_OK);
        assert_false(is_gzip);
        assert_null(pieces.more);
        assert_int_equal(lines.n_released, 1);
        assert_same(&out, &want);
        hearth_buf_release(&out);
    }
    hearth_buf_release(&want);
}

static void reads_of_any_size_return_the_text(void **state)
{
    (void)state;
    static const size_t windows[] = {13, 100, 4095, 65536, 1u << 20, 1u << 24};
    struct hearth_buf want = whole(LARGE);
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(windows); i++) {
        struct lines lines;
        struct hearth_buf window, all;
        bool is_gzip;
        struct hearth_pieces pieces = pieces_of(&lines, LARGE);
        hearth_buf_init(&all, 0);
        assert_int_equal(begin(&pieces, HEARTH_PIECES_AS_SENT, &window, &is_gzip), HEARTH_OK);
        assert_non_null(pieces.more);
        size_t sent = 0;
        ssize_t n;
        do {
            char *to = hearth_buf_reserve(&all, windows[i]);
            n = hearth_pieces_read(&pieces, &window, &sent, to, windows[i]);
            assert_true(n >= 0 && (size_t)n <= windows[i]);
            all.n += (size_t)n;
        } while (n > 0);
        assert_same(&all, &want);
        assert_int_equal(lines.n_released, 1);
        hearth_buf_release(&window);
        hearth_buf_release(&all);
    }
    hearth_buf_release(&want);
}

static void a_text_whose_length_is_needed_is_built_at_once(void **state)
{
    (void)state;
    struct lines lines;
    struct hearth_buf out, want = whole(LARGE);
    bool is_gzip;
    struct hearth_pieces pieces = pieces_of(&lines, LARGE);
    assert_int_equal(begin(&pieces, HEARTH_PIECES_AT_ONCE, &out, &is_gzip), HEARTH_OK);
    assert_null(pieces.more);
    assert_same(&out, &want);
    hearth_buf_release(&out);
    hearth_buf_release(&want);
}

static void the_compressed_text_inflates_to_the_text(void **state)
{
    (void)state;
    struct lines lines;
    struct hearth_buf out, text, want = whole(LARGE);
    bool is_gzip;
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_pieces pieces = pieces_of(&lines, LARGE);
    assert_int_equal(begin(&pieces, HEARTH_PIECES_AS_GZIP, &out, &is_gzip), HEARTH_OK);
    assert_true(is_gzip);
    assert_null(pieces.more);
    assert_int_equal(lines.n_released, 1);
    struct hearth_inflater *inflater = hearth_inflater_new();
    hearth_buf_init(&text, 0);
    assert_int_equal(hearth_inflate(inflater, HEARTH_COMPRESSION_GZIP, hearth_buf_view(&out),
                                    2 * LARGE, &text, &err),
                     HEARTH_OK);
    assert_same(&text, &want);
    hearth_inflater_free(inflater);
    hearth_buf_release(&text);
    hearth_buf_release(&out);
    hearth_buf_release(&want);
}

/* Much less than the text: only its windows need memory. */
static void a_large_text_needs_the_memory_of_its_windows(void **state)
{
    (void)state;
    struct lines lines;
    struct hearth_buf window;
    struct hearth_budget budget;
    struct hearth_err err = HEARTH_ERR_INIT;
    bool is_gzip;
    char to[5000];
    size_t sent = 0, n_all = 0, most = 0;
    hearth_budget_init(&budget, "test", 3 * HEARTH_PIECES_WHOLE_BYTES);
    hearth_buf_init(&window, 0);
    window.budget = &budget;
    struct hearth_pieces pieces = pieces_of(&lines, LARGE);
    assert_int_equal(
        hearth_pieces_begin(&pieces, HEARTH_PIECES_AS_SENT, NULL, &window, &is_gzip, &err),
        HEARTH_OK);
    for (ssize_t n = 1; n > 0; n_all += (size_t)n) {
        n = hearth_pieces_read(&pieces, &window, &sent, to, sizeof to);
        assert_true(n >= 0);
        size_t used = atomic_load(&budget.used_bytes);
        most = n_all > HEARTH_PIECES_WHOLE_BYTES + sizeof to && used > most ? used : most;
    }
    assert_true(n_all >= LARGE);
    assert_in_range(most, 1, 4 * HEARTH_PIECES_WINDOW_BYTES);
    hearth_buf_release(&window);

    budget.limit_bytes = LARGE * 3 / 4; /* the text does not fit, its gzip does */
    window.budget = &budget;
    pieces = pieces_of(&lines, LARGE);
    assert_int_equal(
        hearth_pieces_begin(&pieces, HEARTH_PIECES_AT_ONCE, NULL, &window, &is_gzip, &err),
        HEARTH_NO_MEMORY);
    assert_int_equal(lines.n_released, 1);
    hearth_buf_release(&window);
    pieces = pieces_of(&lines, LARGE);
    assert_int_equal(
        hearth_pieces_begin(&pieces, HEARTH_PIECES_AS_GZIP, NULL, &window, &is_gzip, &err),
        HEARTH_OK);
    hearth_buf_release(&window);
    assert_int_equal(atomic_load(&budget.used_bytes), 0);
}

static void a_piece_without_memory_breaks_the_answer_off(void **state)
{
    (void)state;
    struct lines lines;
    struct hearth_buf window;
    bool is_gzip;
    char to[5000];
    size_t sent = 0;
    ssize_t n;
    struct hearth_pieces pieces = pieces_of(&lines, LARGE);
    assert_int_equal(begin(&pieces, HEARTH_PIECES_AS_SENT, &window, &is_gzip), HEARTH_OK);
    window.limit_bytes = 10;
    do {
        n = hearth_pieces_read(&pieces, &window, &sent, to, sizeof to);
    } while (n > 0);
    assert_int_equal(n, -1);
    assert_int_equal(hearth_pieces_read(&pieces, &window, &sent, to, sizeof to), -1);
    hearth_pieces_release(&pieces);
    assert_int_equal(lines.n_released, 1);
    hearth_buf_release(&window);
}

static void a_client_that_left_ends_the_compressing(void **state)
{
    (void)state;
    struct lines lines;
    struct hearth_buf out;
    struct hearth_cancel cancel;
    struct hearth_err err = HEARTH_ERR_INIT;
    bool is_gzip;
    hearth_cancel_init(&cancel, INT64_MAX);
    atomic_store(&cancel.cancelled, true);
    hearth_buf_init(&out, 0);
    struct hearth_pieces pieces = pieces_of(&lines, LARGE);
    assert_int_equal(
        hearth_pieces_begin(&pieces, HEARTH_PIECES_AS_GZIP, &cancel, &out, &is_gzip, &err),
        HEARTH_CANCELLED);
    assert_false(is_gzip);
    assert_null(pieces.more);
    assert_int_equal(lines.n_released, 1);
    assert_true(lines.at < lines.n);
    hearth_buf_release(&out);
}

static void a_flamebearer_in_pieces_is_the_whole_one(void **state)
{
    (void)state;
    static int64_t values[3][1000];
    struct hearth_str names[] = {HEARTH_STR("total"), HEARTH_STR("a\"b"), HEARTH_STR("\xc3\xa4")};
    struct hearth_flame_level levels[] = {{.values = values[0], .n = 4},
                                          {.values = values[1], .n = 0},
                                          {.values = values[1], .n = 512},
                                          {.values = values[2], .n = 1000}};
    struct hearth_flamegraph graph = {
        .names = names, .n_names = 3, .levels = levels, .n_levels = 4, .total = 7, .max_self = 3};
    const struct hearth_flamebearer_about about = {HEARTH_STR("cpu"), HEARTH_STR("cpu"),
                                                   HEARTH_STR("nanoseconds")};
    for (size_t i = 0; i < 1000; i++) {
        values[1][i] = (int64_t)i * 1000003;
        values[2][i] = -(int64_t)i;
    }
    struct hearth_buf want;
    hearth_buf_init(&want, 0);
    for (size_t n = 1; n < 6000; n += n < 20 ? 1 : 577) {
        struct hearth_buf out;
        struct hearth_json json;
        struct hearth_flamebearer bearer = hearth_flamebearer_single(&graph, &about);
        hearth_buf_init(&out, 0);
        hearth_json_init(&json, &out);
        hearth_json_object(&json);
        bool more = true;
        while (more) {
            size_t before = out.n;
            more = hearth_flamebearer_more(&bearer, n, &json);
            assert_true(!more || out.n - before >= n);
        }
        hearth_json_object_end(&json);
        if (want.n == 0) {
            hearth_buf_str(&want, hearth_buf_view(&out));
            hearth_buf_byte(&out, '\0'); /* to look at it as a text */
            assert_non_null(strstr(out.p, "\"names\":[\"total\",\"a\\\"b\",\"\xc3\xa4\"],"
                                          "\"levels\":[[0,0,0,0],[],[0,1000003,"));
            out.n--;
        }
        assert_same(&out, &want);
        hearth_buf_release(&out);
    }
    hearth_buf_release(&want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_small_text_is_made_at_once_in_every_way),
        cmocka_unit_test(reads_of_any_size_return_the_text),
        cmocka_unit_test(a_text_whose_length_is_needed_is_built_at_once),
        cmocka_unit_test(the_compressed_text_inflates_to_the_text),
        cmocka_unit_test(a_large_text_needs_the_memory_of_its_windows),
        cmocka_unit_test(a_piece_without_memory_breaks_the_answer_off),
        cmocka_unit_test(a_client_that_left_ends_the_compressing),
        cmocka_unit_test(a_flamebearer_in_pieces_is_the_whole_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
