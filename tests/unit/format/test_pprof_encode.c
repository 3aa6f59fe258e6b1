/*
 * test_pprof_encode.c -- the pprof writer: what it writes, and that readers take it for the same
 * profile.
 */
#include "hearth/format/pprof.h"
#include "hearth/pb/google/v1/profile.pb-c.h"

#include "profile_text.h"
#include "rounds.h"
#include "test_files.h"
#include "wire_text.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#define GOLDEN HEARTH_TEST_DIR "/golden/pprof/"
#define SHARED HEARTH_SHARED_DATA "/pprof/"

static const struct hearth_pprof_limits NO_LIMITS;

struct decoded {
    struct hearth_arena arena;
    struct hearth_profile profile;
};

static void decode(struct decoded *d, struct hearth_str in)
{
    struct hearth_pprof_notes notes;
    struct hearth_err err = HEARTH_ERR_INIT;

    hearth_arena_init(&d->arena, 0);
    if (hearth_pprof_decode(in, &NO_LIMITS, &d->arena, &d->profile, &notes, &err) != HEARTH_OK) {
        fail_msg("%s", err.msg);
    }
}

/* ---- exact bytes ---- */

static void assert_encodes(const char *from, const char *want)
{
    struct hearth_buf in, out, expected;

    hearth_buf_init(&in, 0);
    hearth_buf_init(&out, 0);
    hearth_buf_init(&expected, 0);
    wire_text(from, &in);
    wire_text(want, &expected);
    struct decoded d;
    decode(&d, hearth_buf_view(&in));
    hearth_pprof_encode(&d.profile, &out);
    assert_false(hearth_buf_failed(&out));
    assert_int_equal(out.n, expected.n);
    assert_memory_equal(out.p, expected.p, out.n);
    hearth_arena_release(&d.arena);
    hearth_buf_release(&in);
    hearth_buf_release(&out);
    hearth_buf_release(&expected);
}

static void packs_numbers_renumbers_ids_and_leaves_zeros_out(void **state)
{
    (void)state;
    assert_encodes("6'' 6'x' 6'y' 15:1 14:2 13:1 13:2 12:5 9:7 10:8 11{ 2:1 1:2 }"
                   "5{ 1:20 2:1 3:2 4:1 5:3 }"
                   "4{ 5:1 4{ 2:9 1:20 } 3:300 2:11 1:30 } 4{ 1:31 2:12 }"
                   "3{ 1:11 2:1 3:2 4:3 5:1 6:2 7:1 8:1 9:1 10:1 }"
                   "2{ 3{ 1:1 2:2 } 3{ 1:1 3:-1 4:2 } 2:1 1:30 1:31 2:0 } 2{ 2[0 0] }"
                   "1{ 1:1 2:2 } 1{ }",
                   "1{ 1:1 2:2 } 1{ }"
                   "2{ 1[1 2] 2[1 0] 3{ 1:1 2:2 } 3{ 1:1 3:-1 4:2 } } 2{ 2[0 0] }"
                   "3{ 1:1 2:1 3:2 4:3 5:1 6:2 7:1 8:1 9:1 10:1 }"
                   "4{ 1:1 2:1 3:300 4{ 1:1 2:9 } 5:1 } 4{ 1:2 }"
                   "5{ 1:1 2:1 3:2 4:1 5:3 }"
                   "6'' 6'x' 6'y' 9:7 10:8 12:5 13[1 2] 14:2 15:1 11{ 1:2 2:1 }");
}

/* Messages of 127, 128, 16383 and 16384 bytes: there the length needs one more byte. */
static void writes_lengths_of_every_size(void **state)
{
    (void)state;
    for (uint32_t n = 1; n < 20000; n = n < 400 ? n + 1 : n + 1 + n / 9) {
        struct hearth_buf text, in, out;

        hearth_buf_init(&text, 0);
        hearth_buf_init(&in, 0);
        hearth_buf_init(&out, 0);
        hearth_buf_cstr(&text, "1{ } 2{ 1[");
        for (uint32_t i = 0; i < n; i++) {
            hearth_buf_cstr(&text, " 1");
        }

        hearth_buf_cstr(&text, "] 2[3] } 4{ 1:1 ");
        for (uint32_t i = 0; i < n; i++) {
            hearth_buf_cstr(&text, "4{ 1:1 }");
        }

        hearth_buf_cstr(&text, "} 5{ 1:1 } 6''");
        hearth_buf_byte(&text, '\0');
        wire_text(text.p, &in);
        struct decoded d;
        decode(&d, hearth_buf_view(&in));
        hearth_pprof_encode(&d.profile, &out);
        if (!hearth_str_eq(hearth_buf_view(&in), hearth_buf_view(&out))) {
            fail_msg("%u locations in a stack, and lines in a location", n);
        }

        hearth_arena_release(&d.arena);
        hearth_buf_release(&text);
        hearth_buf_release(&in);
        hearth_buf_release(&out);
    }
}

static void writes_missing_indices_as_id_0(void **state)
{
    (void)state;
    uint32_t stack_first[] = {0, 2}, stack_locs[] = {0, HEARTH_NO_INDEX}, label_first[] = {0, 0};
    int64_t values[] = {4};
    struct hearth_str strings[] = {HEARTH_STR("")};
    struct hearth_value_type types[] = {{0, 0}};
    struct hearth_location locations[] = {{.mapping = HEARTH_NO_INDEX, .address = 5}};
    struct hearth_profile profile = {
        .strings = strings,
        .n_strings = 1,
        .types = types,
        .n_types = 1,
        .locations = locations,
        .n_locations = 1,
        .stack_first = stack_first,
        .stack_locs = stack_locs,
        .n_stack_locs = 2,
        .values = values,
        .label_first = label_first,
        .n_samples = 1,
    };

    struct hearth_buf out, expected;
    hearth_buf_init(&out, 0);
    hearth_buf_init(&expected, 0);
    hearth_pprof_encode(&profile, &out);
    wire_text("1{ } 2{ 1[1 0] 2[4] } 4{ 1:1 3:5 } 6''", &expected);
    assert_int_equal(out.n, expected.n);
    assert_memory_equal(out.p, expected.p, out.n);
    hearth_buf_release(&out);
    hearth_buf_release(&expected);
}

static void stops_at_the_limit_of_the_buffer(void **state)
{
    (void)state;
    struct hearth_buf in, out;
    struct hearth_err err = HEARTH_ERR_INIT;
    hearth_buf_init(&in, 0);
    assert_true(read_inflated(GOLDEN "go-heap.pb.gz", &in, &err));
    struct decoded d;
    decode(&d, hearth_buf_view(&in));
    for (size_t limit = 1; limit < in.n; limit += 97) {
        hearth_buf_init(&out, limit);
        hearth_pprof_encode(&d.profile, &out);
        assert_true(hearth_buf_failed(&out));
        assert_true(out.n <= limit);
        hearth_buf_release(&out);
    }

    hearth_arena_release(&d.arena);
    hearth_buf_release(&in);
}

/* ---- the same profile for other readers ---- */

static void check_round_trip(const char *path)
{
    struct hearth_buf in, out, before, after;
    struct hearth_err err = HEARTH_ERR_INIT;

    hearth_buf_init(&in, 0);
    hearth_buf_init(&out, 0);
    hearth_buf_init(&before, 0);
    hearth_buf_init(&after, 0);
    if (!read_inflated(path, &in, &err)) {
        fail_msg("%s: %s", path, err.msg);
    }

    struct decoded first, second;
    decode(&first, hearth_buf_view(&in));
    hearth_pprof_encode(&first.profile, &out);
    assert_false(hearth_buf_failed(&out));
    decode(&second, hearth_buf_view(&out));
    profile_text(&first.profile, &before);
    profile_text(&second.profile, &after);
    if (!hearth_str_eq(hearth_buf_view(&before), hearth_buf_view(&after))) {
        fail_msg("%s changed by encoding", path);
    }

    /* An independent reader, which only checks the wire form. */
    Google__V1__Profile *other = google__v1__profile__unpack(NULL, out.n, (const uint8_t *)out.p);
    assert_non_null(other);
    assert_int_equal(other->n_sample, first.profile.n_samples);
    assert_int_equal(other->n_location, first.profile.n_locations);
    assert_int_equal(other->n_function, first.profile.n_functions);
    assert_int_equal(other->n_string_table, first.profile.n_strings);
    google__v1__profile__free_unpacked(other, NULL);
    hearth_arena_release(&first.arena);
    hearth_arena_release(&second.arena);
    hearth_buf_release(&in);
    hearth_buf_release(&out);
    hearth_buf_release(&before);
    hearth_buf_release(&after);
}

/* Checks every nth profile of a directory; returns the number of all its profiles. */
static int round_trip_directory(const char *directory, int nth)
{
    DIR *dir = opendir(directory);
    int n = 0;

    for (struct dirent *e = dir == NULL ? NULL : readdir(dir); e != NULL; e = readdir(dir)) {
        struct hearth_str name = hearth_str_c(e->d_name);
        char path[512];
        (void)snprintf(path, sizeof path, "%s%s", directory, e->d_name);
        if (hearth_str_ends(name, HEARTH_STR(".gz")) || hearth_str_ends(name, HEARTH_STR(".pb")) ||
            hearth_str_ends(name, HEARTH_STR(".pprof"))) {
            if (n++ % nth == 0) {
                check_round_trip(path);
            }
        }
    }

    if (dir != NULL) {
        (void)closedir(dir);
    }

    return n;
}

static void golden_profiles_survive_the_round_trip(void **state)
{
    (void)state;
    assert_int_equal(round_trip_directory(GOLDEN, 1), 2);
}

static void real_profiles_survive_the_round_trip(void **state)
{
    (void)state;
    int n = round_trip_directory(SHARED, 3 / test_rounds(3));
    if (n == 0) {
        print_message("no shared collection of profiles at " SHARED ": skipped\n");
        skip();
    }

    assert_true(n >= 30);
    assert_true(round_trip_directory(SHARED "malformed/", 1) >= 3);
}

/* ---- go tool pprof ---- */

static const char *find_go(void)
{
    static const char *places[] = {"/usr/lib/go-1.19/bin/go", "/usr/bin/go",
                                   "/usr/local/go/bin/go"};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(places); i++) {
        if (access(places[i], X_OK) == 0) {
            return places[i];
        }
    }

    return NULL;
}

/* The output of `go tool pprof -raw` for a file; empty if it refuses the file. */
static void go_raw(const char *go, const char *path, struct hearth_buf *out)
{
    char command[1024];

    (void)snprintf(command, sizeof command, "HOME=/tmp '%s' tool pprof -raw '%s' 2>&1", go, path);
    FILE *pipe = popen(command, "r"); /* NOLINT(cert-env33-c): fixed command, paths of our own */
    assert_non_null(pipe);
    char chunk[4096];
    for (size_t n; (n = fread(chunk, 1, sizeof chunk, pipe)) > 0;) {
        hearth_buf_append(out, chunk, n);
    }

    assert_int_equal(pclose(pipe), 0);
}

static void go_reads_our_output_like_the_original(void **state)
{
    (void)state;
    const char *go = find_go();
    if (go == NULL) {
        print_message("no go tool on this machine: skipped\n");
        skip();
    }

    static const char *files[] = {GOLDEN "go-cpu-labels.pb.gz", GOLDEN "go-heap.pb.gz"};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(files); i++) {
        struct hearth_buf in, out, want, got;
        struct hearth_err err = HEARTH_ERR_INIT;
        struct decoded d;

        hearth_buf_init(&in, 0);
        hearth_buf_init(&out, 0);
        hearth_buf_init(&want, 0);
        hearth_buf_init(&got, 0);
        assert_true(read_inflated(files[i], &in, &err));
        decode(&d, hearth_buf_view(&in));
        hearth_pprof_encode(&d.profile, &out);
        char path[] = "/tmp/hearth-pprof-XXXXXX";
        int fd = mkstemp(path);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, out.p, out.n), out.n);
        (void)close(fd);
        go_raw(go, files[i], &want);
        go_raw(go, path, &got);
        (void)unlink(path);
        assert_true(want.n > 500);
        if (!hearth_str_eq(hearth_buf_view(&want), hearth_buf_view(&got))) {
            fail_msg("go reads:\n%.*s\ninstead of:\n%.*s", (int)got.n, got.p, (int)want.n, want.p);
        }

        hearth_arena_release(&d.arena);
        hearth_buf_release(&in);
        hearth_buf_release(&out);
        hearth_buf_release(&want);
        hearth_buf_release(&got);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packs_numbers_renumbers_ids_and_leaves_zeros_out),
        cmocka_unit_test(writes_lengths_of_every_size),
        cmocka_unit_test(writes_missing_indices_as_id_0),
        cmocka_unit_test(stops_at_the_limit_of_the_buffer),
        cmocka_unit_test(golden_profiles_survive_the_round_trip),
        cmocka_unit_test(real_profiles_survive_the_round_trip),
        cmocka_unit_test(go_reads_our_output_like_the_original),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
