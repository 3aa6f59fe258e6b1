/* test_pprof_packed.c -- packed location ids by byte shuffles: the same as without them. */
#include "hearth/format/pprof.h"

#include "pprof/pprof_packed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define N_BEHIND 16 /* readable bytes after the ids */

static uint64_t g_random = 1;

static uint32_t draw(uint32_t below)
{
    g_random = g_random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(g_random >> 33) % below;
}

static void put_varint(struct hearth_buf *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7) {
        hearth_buf_byte(out, (char)(value | 0x80));
    }
    hearth_buf_byte(out, (char)value);
}

static void put_field(struct hearth_buf *out, char tag, const struct hearth_buf *payload)
{
    hearth_buf_byte(out, tag);
    put_varint(out, payload->n);
    hearth_buf_str(out, hearth_buf_view(payload));
}

/* ---- the reader alone ---- */

static void reads_all_ids_of_one_and_two_bytes(void **state)
{
    (void)state;
    if (!hearth_pprof_packed_works()) {
        skip();
    }

    for (uint32_t round = 0; round < 20000; round++) {
        uint32_t want[64], got[64 + PPROF_PACKED_SPARE], n = draw(48);
        size_t n_got;
        struct hearth_buf ids;
        hearth_buf_init(&ids, 0);
        hearth_buf_byte(&ids, '\x7f'); /* the last byte of a length */
        for (uint32_t i = 0; i < n; i++) {
            uint32_t id = 1 + draw(draw(2) == 0 ? 127 : 0x3fff);
            want[i] = id - 1;
            put_varint(&ids, id);
        }

        size_t n_bytes = ids.n - 1;
        for (int i = 0; i < N_BEHIND; i++) {
            hearth_buf_byte(&ids, (char)draw(256));
        }
        const uint8_t *p = (const uint8_t *)ids.p + 1;
        assert_true(
            hearth_pprof_packed_read(p, p + n_bytes, PPROF_PACKED_MAX_LOCATIONS, got, &n_got));
        assert_int_equal(n_got, n);
        assert_memory_equal(got, want, n * sizeof want[0]);
        hearth_buf_release(&ids);
    }
}

static void reads_no_ids_if_one_is_not_its_own(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t n_bytes;
    } odd[] = {
        {"\0", 1}, {"\x33", 1}, {"\x80\x00", 2}, {"\xb3\x00", 2}, {"\x80\x80\x01", 3}, {"\x81", 1},
    };
    if (!hearth_pprof_packed_works()) {
        skip();
    }

    for (size_t k = 0; k < HEARTH_ARRAY_LEN(odd); k++) {
        for (uint32_t before = 0; before < 20; before++) {
            for (uint32_t after = 0; after < 20; after++) {
                uint8_t bytes[96] = {0};
                uint32_t got[96];
                size_t n, n_bytes = before + odd[k].n_bytes + after;
                memset(bytes + 1, 7, n_bytes);
                memcpy(bytes + 1 + before, odd[k].bytes, odd[k].n_bytes);
                /* The byte that is cut off is whole if another one follows. */
                bool whole = odd[k].bytes[0] == '\x81' && odd[k].n_bytes == 1 && after > 0;
                assert_int_equal(hearth_pprof_packed_read(bytes + 1, bytes + 1 + n_bytes,
                                                          whole ? 1000 : 50, got, &n),
                                 whole);
            }
        }
    }

    uint8_t one[32] = {1, 1};
    uint32_t got[16];
    size_t n;
    assert_false(
        hearth_pprof_packed_read(one + 1, one + 2, PPROF_PACKED_MAX_LOCATIONS + 1, got, &n));
}

/* ---- the decoder ---- */

/* An id of any kind; most are those of locations. */
static void put_any_id(struct hearth_buf *out, uint32_t n_locations)
{
    switch (draw(40)) {
    case 0:
        put_varint(out, 0);
        break;
    case 1:
        put_varint(out, n_locations + draw(3));
        break;
    case 2:
        put_varint(out, (uint64_t)1 << draw(64));
        break;
    case 3: /* with bytes that are not needed */
        hearth_buf_byte(out, (char)(0x80 | draw(128)));
        hearth_buf_byte(out, (char)(draw(2) * 0x80));
        hearth_buf_byte(out, '\0');
        break;
    default:
        put_varint(out, 1 + draw(draw(2) == 0 && n_locations > 100 ? 100 : n_locations));
        break;
    }
}

static void put_sample(struct hearth_buf *out, uint32_t n_locations)
{
    struct hearth_buf sample, ids;

    hearth_buf_init(&sample, 0);
    hearth_buf_init(&ids, 0);
    for (uint32_t n = draw(30); n > 0; n--) {
        put_any_id(&ids, n_locations);
    }
    if (draw(50) == 0) {
        hearth_buf_byte(&ids, '\x85'); /* cut off */
    }

    put_field(&sample, 1 << 3 | 2, &ids);
    hearth_buf_append(&sample, "\x10\x01", 2); /* a value */
    put_field(out, 2 << 3 | 2, &sample);
    hearth_buf_release(&ids);
    hearth_buf_release(&sample);
}

/* A profile of numbered locations; up to 79 bytes follow its last sample. */
static void make_profile(struct hearth_buf *out, uint32_t n_locations)
{
    hearth_buf_append(out, "\x0a\x00\x32\x00", 4); /* a sample type, and the empty string */
    for (uint32_t i = 1; i <= n_locations; i++) {
        struct hearth_buf location;
        hearth_buf_init(&location, 0);
        hearth_buf_byte(&location, 1 << 3);
        put_varint(&location, i);
        put_field(out, 4 << 3 | 2, &location);
        hearth_buf_release(&location);
    }

    for (uint32_t n = 1 + draw(4); n > 0; n--) {
        put_sample(out, n_locations);
    }
    for (uint32_t n = draw(40); n > 0; n--) {
        hearth_buf_append(out, "\x68\x00", 2); /* a comment */
    }
}

static void decodes_equal_ids_without_byte_shuffles(void **state)
{
    (void)state;
    static const uint32_t counts[] = {1, 3, 127, 128, 130, 300, 16384, 20000};

    for (uint32_t round = 0; round < 6000; round++) {
        struct hearth_profile profiles[2];
        struct hearth_arena arenas[2];
        struct hearth_err errs[2] = {HEARTH_ERR_INIT, HEARTH_ERR_INIT};
        enum hearth_status statuses[2];
        struct hearth_buf bytes;
        hearth_buf_init(&bytes, 0);
        make_profile(&bytes, counts[draw(round % 300 == 0 ? 8 : 6)]);

        /* In a block of its own, so that ASan finds a read behind the end. */
        uint8_t *copy = malloc(bytes.n);
        assert_non_null(copy);
        memcpy(copy, bytes.p, bytes.n);
        for (int portable = 0; portable < 2; portable++) {
            const struct hearth_pprof_limits limits = {.portable = portable == 1};
            struct hearth_pprof_notes notes;
            hearth_arena_init(&arenas[portable], 0);
            statuses[portable] = hearth_pprof_decode(hearth_str_n((const char *)copy, bytes.n),
                                                     &limits, &arenas[portable],
                                                     &profiles[portable], &notes, &errs[portable]);
        }

        assert_int_equal(statuses[0], statuses[1]);
        assert_string_equal(errs[0].msg, errs[1].msg);
        if (statuses[0] == HEARTH_OK) {
            uint32_t n = profiles[0].n_samples, n_locs = profiles[0].n_stack_locs;
            assert_int_equal(n, profiles[1].n_samples);
            assert_memory_equal(profiles[0].stack_first, profiles[1].stack_first,
                                (n + 1) * sizeof(uint32_t));
            assert_memory_equal(profiles[0].stack_locs, profiles[1].stack_locs,
                                n_locs * sizeof(uint32_t));
            assert_memory_equal(profiles[0].values, profiles[1].values, n * sizeof(int64_t));
        }

        hearth_arena_release(&arenas[0]);
        hearth_arena_release(&arenas[1]);
        hearth_buf_release(&bytes);
        free(copy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_all_ids_of_one_and_two_bytes),
        cmocka_unit_test(reads_no_ids_if_one_is_not_its_own),
        cmocka_unit_test(decodes_equal_ids_without_byte_shuffles),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
