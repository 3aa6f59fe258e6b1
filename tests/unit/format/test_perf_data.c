/* test_perf_data.c -- recordings of perf as profiles: real ones, written ones, damage and limits. */
#include "hearth/base/mem.h"
#include "hearth/format/elf_symbols.h"
#include "hearth/format/perf_data.h"

#include "perf_writer.h"
#include "test_files.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define GOLDEN      HEARTH_TEST_DIR "/golden/perf/"
#define USER_MARK   ((uint64_t)-512)
#define KERNEL_MARK ((uint64_t)-128)

struct decoded {
    struct hearth_arena arena;
    struct hearth_perf_recording recording;
    struct hearth_err err;
    enum hearth_status status;
};

static void decode(struct decoded *d, struct hearth_str bytes,
                   const struct hearth_perf_options *options, size_t arena_bytes)
{
    const struct hearth_perf_options plain = {0};

    d->err = (struct hearth_err)HEARTH_ERR_INIT;
    hearth_arena_init(&d->arena, arena_bytes);
    d->status = hearth_perf_data_decode(bytes, options == NULL ? &plain : options, &d->arena,
                                        &d->recording, &d->err);
}

static void release(struct decoded *d)
{
    hearth_arena_release(&d->arena);
}

/* ---- as text ---- */

static void print_location(const struct hearth_profile *p, const struct hearth_location *l,
                           struct hearth_buf *out)
{
    if (l->n_lines > 0) {
        hearth_buf_str(out, p->strings[p->functions[p->lines[l->first_line].function].name]);
    } else if (l->mapping == HEARTH_NO_INDEX) {
        hearth_buf_printf(out, "0x%" PRIx64, l->address);
    } else {
        const struct hearth_mapping *m = &p->mappings[l->mapping];
        hearth_buf_str(out, p->strings[m->filename]);
        hearth_buf_printf(out, "+0x%" PRIx64, l->address - m->start + m->offset);
    }
}

/* Each sample as "root;...;leaf values", in order. */
static void print_profile(const struct hearth_perf_profile *profile, struct hearth_buf *out)
{
    const struct hearth_profile *p = &profile->profile;

    hearth_buf_str(out, profile->name);
    hearth_buf_byte(out, '\n');
    for (uint32_t s = 0; s < p->n_samples; s++) {
        for (uint32_t i = p->stack_first[s + 1]; i > p->stack_first[s]; i--) {
            print_location(p, &p->locations[p->stack_locs[i - 1]], out);
            hearth_buf_byte(out, i - 1 > p->stack_first[s] ? ';' : ' ');
        }
        for (uint32_t t = 0; t < p->n_types; t++) {
            hearth_buf_printf(out, t == 0 ? "%" PRId64 : "/%" PRId64,
                              p->values[(size_t)s * p->n_types + t]);
        }
        hearth_buf_byte(out, '\n');
    }
}

static void assert_text(const struct hearth_buf *recording, const char *expected)
{
    struct decoded d;
    struct hearth_buf text;

    decode(&d, hearth_buf_view(recording), NULL, 0);
    if (d.status != HEARTH_OK) {
        fail_msg("%s", d.err.msg);
    }

    hearth_buf_init(&text, 0);
    for (size_t i = 0; i < d.recording.n_profiles; i++) {
        print_profile(&d.recording.profiles[i], &text);
    }
    hearth_buf_byte(&text, 0);
    assert_string_equal(text.p, expected);
    hearth_buf_release(&text);
    release(&d);
}

static int64_t sum_of(const struct hearth_profile *p, uint32_t type)
{
    int64_t sum = 0;

    for (uint32_t s = 0; s < p->n_samples; s++) {
        sum += p->values[(size_t)s * p->n_types + type];
    }

    return sum;
}

static void read_golden(const char *name, struct hearth_buf *out)
{
    char path[512];

    hearth_buf_init(out, 0);
    (void)snprintf(path, sizeof path, GOLDEN "%s", name);
    if (!read_file(path, out)) {
        fail_msg("cannot read %s", path);
    }
}

/* ---- real recordings ---- */

/* The numbers are those of perf script. */
static void a_file_has_a_profile_for_each_event(void **state)
{
    struct hearth_buf bytes;
    struct decoded d;

    (void)state;
    read_golden("work.perf.data", &bytes);
    decode(&d, hearth_buf_view(&bytes), NULL, 0);
    assert_int_equal(d.status, HEARTH_OK);
    assert_int_equal(d.recording.n_profiles, 2);

    const struct hearth_profile *cpu = &d.recording.profiles[0].profile;
    assert_true(hearth_str_eq_c(d.recording.profiles[0].name, "process_cpu"));
    assert_int_equal(sum_of(cpu, 0), 27);
    assert_int_equal(sum_of(cpu, 1), 27081243);
    assert_true(hearth_str_eq_c(cpu->strings[cpu->types[1].type], "cpu"));
    assert_true(hearth_str_eq_c(cpu->strings[cpu->types[1].unit], "nanoseconds"));
    assert_int_equal(cpu->period, 1003009);

    const struct hearth_profile *faults = &d.recording.profiles[1].profile;
    assert_true(hearth_str_eq_c(d.recording.profiles[1].name, "minor_faults"));
    assert_int_equal(sum_of(faults, 0), 10);
    assert_int_equal(sum_of(faults, 1), 11121);
    assert_true(hearth_str_eq_c(faults->strings[faults->types[1].type], "minor-faults"));
    assert_int_equal(faults->period, 0); /* it differs from sample to sample */
    release(&d);
    hearth_buf_release(&bytes);
}

static void a_compressed_stream_is_read_with_its_time(void **state)
{
    struct hearth_buf bytes;
    struct decoded d;

    (void)state;
    read_golden("stream.perf.data", &bytes);
    decode(&d, hearth_buf_view(&bytes), NULL, 0);
    assert_int_equal(d.status, HEARTH_OK);
    assert_int_equal(d.recording.n_profiles, 1);

    const struct hearth_profile *p = &d.recording.profiles[0].profile;
    assert_int_equal(sum_of(p, 0), 14);
    assert_int_equal(sum_of(p, 1), 28000000);
    assert_int_equal(p->time_ns, 1795640926849145495);
    release(&d);
    hearth_buf_release(&bytes);
}

static void functions_of_a_program_beside_it_are_named(void **state)
{
    struct hearth_buf bytes, elf, text;
    struct hearth_arena arena;
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_perf_object object = {.path = HEARTH_STR("another name")};
    const struct hearth_perf_options options = {.objects = &object, .n_objects = 1};
    struct decoded d;

    (void)state;
    hearth_arena_init(&arena, 0);
    read_golden("work.perf.data", &bytes);
    read_golden("spin.elf", &elf);
    assert_int_equal(hearth_elf_symbols_read(hearth_buf_view(&elf), &arena, &object.symbols, &err),
                     HEARTH_OK);
    decode(&d, hearth_buf_view(&bytes), &options, 0);
    assert_int_equal(d.status, HEARTH_OK);

    hearth_buf_init(&text, 0);
    print_profile(&d.recording.profiles[0], &text);
    hearth_buf_byte(&text, 0);
    assert_string_equal(text.p,
                        "process_cpu\n"
                        "spin;/usr/lib/x86_64-linux-gnu/libc.so.6+0x2724a;main;outer;inner;spin "
                        "13/13039117\n"
                        "spin;/usr/lib/x86_64-linux-gnu/libc.so.6+0x2724a;main;outer;inner;spin "
                        "14/14042126\n");

    hearth_buf_release(&text);
    release(&d);
    hearth_buf_release(&bytes);
    hearth_buf_release(&elf);
    hearth_arena_release(&arena);
}

/* What find_symbols was asked for, and what it returns. */
struct symbol_source {
    const struct hearth_elf_symbols *symbols;
    unsigned n_calls, n_spin;
};

static const struct hearth_elf_symbols *find_spin(void *context, struct hearth_str path)
{
    struct symbol_source *source = context;

    source->n_calls++;
    source->n_spin += hearth_str_eq_c(path, "/tmp/g/spin");

    return source->symbols; /* for other files, too: their build ids differ */
}

static void symbols_are_searched_once_for_each_file_with_samples(void **state)
{
    struct hearth_buf bytes, elf;
    struct hearth_arena arena;
    struct hearth_err err = HEARTH_ERR_INIT;
    struct symbol_source source = {0};
    const struct hearth_perf_options options = {.find_symbols = find_spin,
                                                .symbols_context = &source};
    struct decoded d;

    (void)state;
    hearth_arena_init(&arena, 0);
    read_golden("work.perf.data", &bytes);
    read_golden("spin.elf", &elf);
    assert_int_equal(hearth_elf_symbols_read(hearth_buf_view(&elf), &arena, &source.symbols, &err),
                     HEARTH_OK);
    decode(&d, hearth_buf_view(&bytes), &options, 0);
    assert_int_equal(d.status, HEARTH_OK);
    assert_int_equal(source.n_spin, 1);
    assert_int_equal(source.n_calls, 3); /* the C library and the dynamic linker */

    const struct hearth_profile *p = &d.recording.profiles[0].profile;
    assert_int_equal(p->n_samples, 2);
    for (uint32_t i = 0; i < p->n_locations; i++) {
        assert_true(p->locations[i].n_lines > 0 || p->locations[i].address == 0x2724a);
    }
    release(&d);
    hearth_buf_release(&bytes);
    hearth_buf_release(&elf);
    hearth_arena_release(&arena);
}

/* ---- written recordings ---- */

static void start_stream(struct hearth_buf *out)
{
    hearth_buf_init(out, 0);
    write_stream_header(out);
    write_event(out, 0, 0, 7, "cycles:u");
}

static void records_count_in_the_order_of_their_times(void **state)
{
    struct hearth_buf b;

    /* The sample stands before its map, and after a map that replaces it later. */
    (void)state;
    start_stream(&b);
    write_map(&b, 30, &(struct written_map){5, 0x1000, 0x1000, 0, "/new"});
    write_sample(&b, &(struct written_sample){7, 20, 5, 5, 3, {USER_MARK, 0x1010}});
    write_sample(&b, &(struct written_sample){7, 40, 5, 5, 4, {USER_MARK, 0x1010}});
    write_map(&b, 10, &(struct written_map){5, 0x1000, 0x1000, 0x6000, "/old"});
    write_comm(&b, 35, 5, 5, "renamed");
    write_comm(&b, 5, 5, 5, "named");
    assert_text(&b, "cycles\nnamed;/old+0x6010 1/3\nrenamed;/new+0x10 1/4\n");
    hearth_buf_release(&b);
}

static void maps_are_replaced_in_part(void **state)
{
    struct hearth_buf b;

    (void)state;
    start_stream(&b);
    write_comm(&b, 1, 5, 5, "p");
    write_map(&b, 1, &(struct written_map){5, 0x1000, 0x9000, 0x100000, "/a"});
    write_map(&b, 2, &(struct written_map){5, 0x3000, 0x1000, 0, "/b"});
    const uint64_t at[] = {0x2fff, 0x3000, 0x3fff, 0x4000, 0x9fff, 0xa000, 0xfff};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(at); i++) {
        write_sample(&b, &(struct written_sample){7, 9 + i, 5, 5, 1, {USER_MARK, at[i]}});
    }
    assert_text(&b, "cycles\np;/a+0x101fff 1/1\np;/b+0x0 1/1\np;/b+0xfff 1/1\n"
                    "p;/a+0x103000 1/1\np;/a+0x108fff 1/1\np;0xa000 1/1\np;0xfff 1/1\n");
    hearth_buf_release(&b);
}

static void maps_of_no_bytes_and_at_the_end_of_memory_are_harmless(void **state)
{
    struct hearth_buf b;

    (void)state;
    start_stream(&b);
    write_comm(&b, 1, 5, 5, "p");
    write_map(&b, 1, &(struct written_map){5, 0x1000, 0, 0, "/a"});
    write_map(&b, 1, &(struct written_map){5, UINT64_MAX, 1, 0, "/b"});
    write_map(&b, 1, &(struct written_map){5, UINT64_MAX - 0x1fff, UINT64_MAX, 0, "/c"});
    write_map(&b, 1, &(struct written_map){5, 0x1000, 0x1000, UINT64_MAX - 1, "/d"});
    write_sample(&b, &(struct written_sample){7, 2, 5, 5, 1, {0x1001, UINT64_MAX - 0x1ffe}});
    assert_text(&b, "cycles\np;/c+0x1;/d+0xffffffffffffffff 1/1\n");
    hearth_buf_release(&b);
}

static void a_child_has_the_maps_of_its_parent_and_changes_its_own(void **state)
{
    struct hearth_buf b;

    (void)state;
    start_stream(&b);
    write_comm(&b, 1, 5, 5, "p");
    write_map(&b, 1, &(struct written_map){5, 0x1000, 0x1000, 0, "/a"});
    write_fork(&b, 2, 6, 5);
    write_sample(&b, &(struct written_sample){7, 3, 6, 6, 1, {USER_MARK, 0x1001}});
    write_map(&b, 4, &(struct written_map){6, 0x1000, 0x1000, 0, "/child"});
    write_map(&b, 4, &(struct written_map){5, 0x2000, 0x1000, 0, "/parent"});
    write_sample(&b, &(struct written_sample){7, 5, 6, 6, 1, {USER_MARK, 0x1002, 0x2000}});
    write_sample(&b, &(struct written_sample){7, 6, 5, 5, 1, {USER_MARK, 0x1003, 0x2001}});
    assert_text(&b, "cycles\np;/a+0x1 1/1\np;0x2000;/child+0x2 1/1\n"
                    "p;/parent+0x1;/a+0x3 1/1\n");
    hearth_buf_release(&b);
}

static void equal_code_of_two_processes_is_one_location(void **state)
{
    struct hearth_buf b;

    (void)state;
    start_stream(&b);
    for (uint32_t pid = 5; pid < 7; pid++) {
        uint64_t start = pid * UINT64_C(0x10000);
        write_comm(&b, 1, pid, pid, "p");
        write_map(&b, 1, &(struct written_map){pid, start, 0x1000, 0x2000, "/lib"});
        write_sample(&b, &(struct written_sample){7, 2, pid, 9, 1, {USER_MARK, start + 5}});
    }
    assert_text(&b, "cycles\np;/lib+0x2005 2/2\n");
    hearth_buf_release(&b);
}

static void kernel_frames_are_relative_to_their_map_or_named(void **state)
{
    const uint64_t text = UINT64_C(0xffffffff81000000);
    struct hearth_buf b;

    (void)state;
    start_stream(&b);
    write_comm(&b, 1, 5, 5, "p");
    write_map(&b, 0,
              &(struct written_map){UINT32_MAX, text, 0x1000, text, "[kernel.kallsyms]_text"});
    write_sample(&b, &(struct written_sample){
                         7, 2, 5, 5, 1, {KERNEL_MARK, text + 8, 0x77, USER_MARK, 0x50}});
    assert_text(&b, "cycles\np;0x50;[kernel.kallsyms]+0x77;[kernel.kallsyms]+0x8 1/1\n");
    hearth_buf_release(&b);
}

static void samples_belong_to_the_event_of_their_id(void **state)
{
    struct hearth_buf b;
    struct decoded d;

    (void)state;
    start_stream(&b);
    write_event(&b, 0, 0, 8, "cycles:k");
    write_event(&b, 1, 0, 9, "cpu-clock");
    write_event(&b, 1, 1, 10, "task-clock:u");
    write_event(&b, 2, 333, 11, "sched:sched_switch");
    for (uint64_t id = 7; id < 14; id++) {
        write_sample(&b, &(struct written_sample){id, id, 5, 5, id, {0}});
    }

    size_t at = begin_record(&b, 2, 0);
    write_u64(&b, 7);
    write_u64(&b, 21);
    end_record(&b, at);
    assert_text(&b, "cycles\n:5;0x42 1/7\ncycles_k\n:5;0x42 1/8\nprocess_cpu\n:5;0x42 1/9\n"
                    "task_clock\n:5;0x42 1/10\nsched_sched_switch\n:5;0x42 1/11\n");

    decode(&d, hearth_buf_view(&b), NULL, 0);
    assert_int_equal(d.recording.n_unknown, 2);
    assert_int_equal(d.recording.n_lost, 21);
    release(&d);
    hearth_buf_release(&b);
}

/* ---- damage and limits ---- */

static void assert_refused(struct hearth_str bytes, enum hearth_status status, const char *part)
{
    const struct hearth_perf_options options = {.limits = {.max_samples = 2}};
    struct decoded d;

    decode(&d, bytes, &options, 64u << 20);
    assert_int_equal(d.status, status);
    if (strstr(d.err.msg, part) == NULL) {
        fail_msg("\"%s\" lacks \"%s\"", d.err.msg, part);
    }
    release(&d);
}

static void other_bytes_and_foreign_recordings_are_named(void **state)
{
    struct hearth_buf b;

    (void)state;
    assert_refused(HEARTH_STR(""), HEARTH_INVALID_ARGUMENT, "no header");
    assert_refused(HEARTH_STR("PERFILE2"), HEARTH_INVALID_ARGUMENT, "no header");
    assert_refused(HEARTH_STR("2ELIFREP\0\0\0\0\0\0\0\20"), HEARTH_INVALID_ARGUMENT, "big-endian");
    start_stream(&b);
    size_t end = b.n;
    write_sample(&b, &(struct written_sample){7, 1, 5, 5, 1, {USER_MARK, 1}});
    assert_refused(hearth_str_n(b.p, b.n - 1), HEARTH_INVALID_ARGUMENT, "does not end");

    /* Too many samples; a call chain that is longer than its record. */
    for (int i = 0; i < 2; i++) {
        write_sample(&b, &(struct written_sample){7, 1, 5, 5, 1, {USER_MARK, 1}});
    }
    assert_refused(hearth_buf_view(&b), HEARTH_RESOURCE_EXHAUSTED, "max-samples");
    b.n = end + 64;
    b.p[end + 6] = 64;
    assert_refused(hearth_buf_view(&b), HEARTH_INVALID_ARGUMENT, "fewer bytes");
    b.p[end + 6] = 7;
    assert_refused(hearth_buf_view(&b), HEARTH_INVALID_ARGUMENT, "no record begins");
    hearth_buf_release(&b);
}

static void damage_is_refused_or_yields_valid_profiles(void **state)
{
    static const char *const files[] = {"work.perf.data", "stream.perf.data"};
    uint32_t seed = 1;

    (void)state;
    for (size_t f = 0; f < HEARTH_ARRAY_LEN(files); f++) {
        struct hearth_buf bytes;
        read_golden(files[f], &bytes);
        for (int round = 0; round < 3000; round++) {
            struct decoded d;
            size_t at[3];
            char old[3];
            for (size_t i = 0; i < 3; i++) {
                seed = seed * 1664525 + 1013904223;
                at[i] = (seed >> 8) % bytes.n;
                old[i] = bytes.p[at[i]];
                bytes.p[at[i]] = (char)(seed >> 3);
            }
            decode(&d, hearth_buf_view(&bytes), NULL, 64u << 20);
            assert_true(d.status == HEARTH_OK || d.err.msg[0] != '\0');
            release(&d);
            for (size_t i = 3; i > 0; i--) {
                bytes.p[at[i - 1]] = old[i - 1];
            }
        }
        hearth_buf_release(&bytes);
    }
}

static void refused_memory_is_an_error(void **state)
{
    struct hearth_buf bytes;
    enum hearth_status status = HEARTH_NO_MEMORY;

    (void)state;
    read_golden("stream.perf.data", &bytes);
    for (uint64_t n = 1; status != HEARTH_OK; n++) {
        struct decoded d;
        hearth_mem_fail_after(n);
        decode(&d, hearth_buf_view(&bytes), NULL, 0);
        hearth_mem_fail_after(0);
        status = d.status;
        assert_true(status == HEARTH_OK || status == HEARTH_NO_MEMORY);
        release(&d);
        assert_true(n < 10000);
    }
    hearth_buf_release(&bytes);
}

/* A file of 256 events, whose ids are the whole file each. */
static void events_that_share_their_ids_are_bounded(void **state)
{
    const size_t n_events = 256, attr_bytes = 80, head = 104, n_ids = 8192;
    size_t n = head + n_events * attr_bytes + n_ids * 8;
    struct hearth_buf file;

    (void)state;
    hearth_buf_init(&file, 0);
    hearth_buf_cstr(&file, "PERFILE2");
    write_u64(&file, head);
    write_u64(&file, attr_bytes);
    write_u64(&file, head);
    write_u64(&file, n_events * attr_bytes);
    write_u64(&file, head);
    write_u64(&file, 8);
    while (file.n < head) {
        write_u64(&file, 0);
    }
    for (size_t i = 0; i < n_events; i++) {
        for (size_t k = 0; k < 8; k++) {
            write_u64(&file, 0);
        }
        write_u64(&file, 0);
        write_u64(&file, n);
    }
    for (size_t i = 0; i < n_ids; i++) {
        write_u64(&file, i);
    }

    assert_int_equal(file.n, n);
    assert_refused(hearth_buf_view(&file), HEARTH_RESOURCE_EXHAUSTED, "more than 1048576 ids");
    hearth_buf_release(&file);
}

/* Samples of a group with 200 counters and 2,000 frames: each counter repeats the stack. */
static void samples_of_groups_are_bounded(void **state)
{
    const uint64_t n_counters = 200, n_chain = 2000;
    struct hearth_buf text;

    (void)state;
    hearth_buf_init(&text, 0);
    write_stream_header(&text);
    size_t at = begin_record(&text, 64, 0);
    write_u32(&text, 0);
    write_u32(&text, 64);
    write_u64(&text, 0);
    write_u64(&text, 1);
    write_u64(&text, 16u | 32u); /* counters, call chain */
    write_u64(&text, 4u | 8u);   /* ids, group */
    write_u64(&text, 0);
    write_u64(&text, 0);
    write_u64(&text, 0);
    write_u64(&text, 7);
    end_record(&text, at);
    for (uint64_t i = 1; i <= 50; i++) {
        at = begin_record(&text, 9, 2);
        write_u64(&text, n_counters);
        for (uint64_t k = 0; k < n_counters; k++) {
            write_u64(&text, i * n_counters + k);
            write_u64(&text, 7);
        }
        write_u64(&text, n_chain);
        for (uint64_t k = 1; k <= n_chain; k++) {
            write_u64(&text, k);
        }
        end_record(&text, at);
    }

    struct decoded d;
    const struct hearth_perf_options options = {.limits = {.max_frames = 10000000}};
    decode(&d, hearth_buf_view(&text), &options, 0);
    assert_int_equal(d.status, HEARTH_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(d.err.msg, "more than 10000000 frames in sum; raise it with "
                                      "--max-stack-frames"));
    release(&d);
    hearth_buf_release(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_has_a_profile_for_each_event),
        cmocka_unit_test(a_compressed_stream_is_read_with_its_time),
        cmocka_unit_test(functions_of_a_program_beside_it_are_named),
        cmocka_unit_test(symbols_are_searched_once_for_each_file_with_samples),
        cmocka_unit_test(records_count_in_the_order_of_their_times),
        cmocka_unit_test(maps_are_replaced_in_part),
        cmocka_unit_test(maps_of_no_bytes_and_at_the_end_of_memory_are_harmless),
        cmocka_unit_test(a_child_has_the_maps_of_its_parent_and_changes_its_own),
        cmocka_unit_test(equal_code_of_two_processes_is_one_location),
        cmocka_unit_test(kernel_frames_are_relative_to_their_map_or_named),
        cmocka_unit_test(samples_belong_to_the_event_of_their_id),
        cmocka_unit_test(other_bytes_and_foreign_recordings_are_named),
        cmocka_unit_test(damage_is_refused_or_yields_valid_profiles),
        cmocka_unit_test(refused_memory_is_an_error),
        cmocka_unit_test(events_that_share_their_ids_are_bounded),
        cmocka_unit_test(samples_of_groups_are_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
