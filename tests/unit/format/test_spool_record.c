/* test_spool_record.c -- records of the spool: what is written is read; damage is recognised. */
#include "hearth/format/spool_record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const struct hearth_spool_key g_key = {"a key of thirty-two bytes, or so"};

/* A record of two profiles and a file; the first profile is the file. */
static void write_record(struct hearth_buf *out)
{
    struct hearth_label labels[] = {{HEARTH_STR("__name__"), HEARTH_STR("process_cpu")},
                                    {HEARTH_STR("service_name"), HEARTH_STR("api")}};
    const struct hearth_spool_head head = {.key = {1, UINT64_MAX},
                                           .is_one_upload = true,
                                           .tenant = HEARTH_STR("t"),
                                           .app_name = HEARTH_STR("app")};
    const struct hearth_spool_file file = {HEARTH_STR("a.pb"), HEARTH_STR("bytes"),
                                           HEARTH_STR("x:y"), 7};
    struct hearth_spool_profile profile = {
        .labels = labels, .n_labels = 2, .id = HEARTH_STR("id"), .n_sent = 5, .is_file = true};

    hearth_buf_init(out, 0);
    hearth_spool_put_head(&head, out);
    hearth_spool_put_file(&file, out);
    hearth_spool_put_profile(&profile, out);
    profile = (struct hearth_spool_profile){
        .profile = HEARTH_STR("pprof"), .n_sent = 9, .file = HEARTH_SPOOL_NO_FILE};
    hearth_spool_put_profile(&profile, out);
    assert_true(hearth_spool_end(&g_key, -12, out));
}

static enum hearth_status read_record(struct hearth_str bytes, struct hearth_arena *arena,
                                      struct hearth_spool_record *ret)
{
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_spool_header header;

    if (!hearth_spool_header_read(&g_key, bytes.p, &header)) {
        return HEARTH_NOT_FOUND;
    }

    struct hearth_str body =
        hearth_str_n(bytes.p + HEARTH_SPOOL_HEADER_BYTES, bytes.n - HEARTH_SPOOL_HEADER_BYTES);
    return hearth_spool_body_read(&header, body, arena, ret, &err);
}

static void a_record_is_read_as_it_was_written(void **state)
{
    (void)state;
    struct hearth_buf out;
    struct hearth_arena arena;
    struct hearth_spool_record record;
    struct hearth_spool_header header;

    write_record(&out);
    hearth_arena_init(&arena, 0);
    assert_true(hearth_spool_header_read(&g_key, out.p, &header));
    assert_int_equal(header.received_ns, -12);
    assert_int_equal(header.state, HEARTH_SPOOL_WAITING);
    assert_int_equal(read_record(hearth_buf_view(&out), &arena, &record), HEARTH_OK);
    assert_true(record.head.key.lo == 1 && record.head.key.hi == UINT64_MAX);
    assert_true(record.head.is_one_upload);
    assert_true(hearth_str_eq_c(record.head.tenant, "t"));
    assert_true(hearth_str_eq_c(record.head.app_name, "app"));
    assert_int_equal(record.n_files, 1);
    assert_true(hearth_str_eq_c(record.files[0].bytes, "bytes"));
    assert_true(hearth_str_eq_c(record.files[0].client_tags, "x:y"));
    assert_int_equal(record.files[0].part, 7);
    assert_int_equal(record.n_profiles, 2);
    const struct hearth_spool_profile *first = &record.profiles[0], *second = first + 1;
    assert_true(first->is_file && first->file == 0 && first->n_sent == 5);
    assert_true(hearth_str_eq_c(first->id, "id"));
    assert_int_equal(first->n_labels, 2);
    assert_true(hearth_str_eq_c(first->labels[1].value, "api"));
    assert_true(!second->is_file && second->file == HEARTH_SPOOL_NO_FILE);
    assert_true(second->n_labels == 0 && second->id.n == 0);
    assert_true(hearth_str_eq_c(second->profile, "pprof"));
    hearth_arena_release(&arena);
    hearth_buf_release(&out);
}

static void every_flipped_bit_is_noticed_but_those_of_the_state(void **state)
{
    (void)state;
    struct hearth_buf out;
    struct hearth_arena arena;
    struct hearth_spool_record record;

    write_record(&out);
    hearth_arena_init(&arena, 0);
    for (size_t i = 0; i < out.n * 8; i++) {
        bool is_hashed = i / 8 < HEARTH_SPOOL_STATE_AT || i / 8 >= HEARTH_SPOOL_HEADER_BYTES;
        out.p[i / 8] = (char)(out.p[i / 8] ^ (1 << i % 8));
        bool is_right = read_record(hearth_buf_view(&out), &arena, &record) == HEARTH_OK;
        assert_int_equal(is_right, !is_hashed);
        out.p[i / 8] = (char)(out.p[i / 8] ^ (1 << i % 8));
    }
    hearth_arena_release(&arena);
    hearth_buf_release(&out);
}

static void a_torn_record_is_refused_at_every_length(void **state)
{
    (void)state;
    struct hearth_buf out;
    struct hearth_arena arena;
    struct hearth_spool_record record;

    write_record(&out);
    hearth_arena_init(&arena, 0);
    for (size_t n = HEARTH_SPOOL_HEADER_BYTES; n < out.n; n++) {
        assert_int_equal(read_record(hearth_str_n(out.p, n), &arena, &record),
                         HEARTH_INVALID_ARGUMENT);
    }
    for (size_t n = 0; n < HEARTH_SPOOL_HEADER_BYTES; n++) {
        assert_int_equal(hearth_spool_header_find(&g_key, hearth_str_n(out.p, n)), n);
    }
    hearth_arena_release(&arena);
    hearth_buf_release(&out);
}

static void the_next_record_is_found_behind_damaged_bytes(void **state)
{
    (void)state;
    struct hearth_buf out, bytes;

    write_record(&out);
    hearth_buf_init(&bytes, 0);
    hearth_buf_cstr(&bytes, "HHSPRxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxHSP");
    size_t at = bytes.n;
    hearth_buf_append(&bytes, out.p, out.n);
    assert_int_equal(hearth_spool_header_find(&g_key, hearth_buf_view(&bytes)), at);
    hearth_buf_release(&bytes);
    hearth_buf_release(&out);
}

static void a_header_that_a_client_forged_is_not_accepted(void **state)
{
    (void)state;
    struct hearth_buf out, bytes;
    struct hearth_spool_header header;
    struct hearth_spool_key guess = g_key;

    /* A whole record of a spool whose key differs by a bit, before one of ours. */
    write_record(&out);
    guess.bytes[31] ^= 1;
    assert_true(hearth_spool_header_read(&g_key, out.p, &header));
    assert_false(hearth_spool_header_read(&guess, out.p, &header));
    hearth_buf_init(&bytes, 0);
    hearth_buf_append(&bytes, out.p, out.n);
    assert_true(hearth_spool_end(&guess, -12, &bytes));
    assert_memory_equal(bytes.p, out.p, 24);
    hearth_buf_append(&bytes, out.p, out.n);
    assert_int_equal(hearth_spool_header_find(&g_key, hearth_buf_view(&bytes)), out.n);
    assert_int_equal(hearth_spool_header_find(&guess, hearth_buf_view(&bytes)), 0);
    hearth_buf_release(&bytes);
    hearth_buf_release(&out);
}

static void a_body_with_a_right_checksum_may_still_be_malformed(void **state)
{
    (void)state;
    static const char *const bodies[] = {
        "\x02",                             /* another version */
        "\x01\x00 0123456789abcde\x00\x00", /* no profile */
        "\x01\x00"
        "0123456789abcdef\x00\x00\x03", /* an unknown tag */
        "\x01\x00"
        "0123456789abcdef\x7f", /* a text that is longer than all */
        "\x01\x00"
        "0123456789abcdef\x00\x00\x02\x00\x05", /* a file that is not there */
        "\x01\x00"
        "0123456789abcdef\x00\x00\x02\x00\x00\x00\x7f", /* more labels than bytes */
    };
    static const size_t sizes[] = {1, 20, 21, 19, 23, 25};
    struct hearth_arena arena;

    hearth_arena_init(&arena, 0);
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        struct hearth_err err = HEARTH_ERR_INIT;
        struct hearth_spool_record record;
        const struct hearth_spool_header header = {
            .n_body = (uint32_t)sizes[i], .body_hash = hearth_hash64(bodies[i], sizes[i], 0)};
        assert_int_equal(hearth_spool_body_read(&header, hearth_str_n(bodies[i], sizes[i]), &arena,
                                                &record, &err),
                         HEARTH_INVALID_ARGUMENT);
        assert_string_equal(err.msg, "its body is malformed");
    }
    hearth_arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_record_is_read_as_it_was_written),
        cmocka_unit_test(every_flipped_bit_is_noticed_but_those_of_the_state),
        cmocka_unit_test(a_torn_record_is_refused_at_every_length),
        cmocka_unit_test(the_next_record_is_found_behind_damaged_bytes),
        cmocka_unit_test(a_header_that_a_client_forged_is_not_accepted),
        cmocka_unit_test(a_body_with_a_right_checksum_may_still_be_malformed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
