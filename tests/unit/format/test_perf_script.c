/*
 * test_perf_script.c -- perf script text: the forms of lines, what becomes of them, recordings of
 * our own and real files with the totals an independent reader found.
 */
#include "hearth/base/mem.h"
#include "hearth/format/collapsed.h"
#include "hearth/format/perf_script.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

struct decoded {
    struct hearth_arena arena;
    struct hearth_profile p;
    struct hearth_perf_notes notes;
    struct hearth_err err;
    enum hearth_status status;
};

static void decode(struct decoded *d, struct hearth_str text)
{
    *d = (struct decoded){.err = HEARTH_ERR_INIT};
    hearth_arena_init(&d->arena, 0);
    d->status = hearth_perf_script_decode(text, &d->arena, &d->p, &d->notes, &d->err);
}

static void decode_ok(struct decoded *d, struct hearth_str text)
{
    decode(d, text);
    if (d->status != HEARTH_OK) {
        fail_msg("%s", d->err.msg);
    }
}

static void assert_string(const struct hearth_profile *p, uint32_t string, const char *want)
{
    assert_true(string < p->n_strings);
    if (!hearth_str_eq_c(p->strings[string], want)) {
        fail_msg("got \"%.*s\", want \"%s\"", (int)p->strings[string].n, p->strings[string].p,
                 want);
    }
}

static void assert_type(const struct hearth_profile *p, uint32_t i, const char *type,
                        const char *unit)
{
    assert_true(i < p->n_types);
    assert_string(p, p->types[i].type, type);
    assert_string(p, p->types[i].unit, unit);
}

static int64_t total(const struct hearth_profile *p, uint32_t type)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < p->n_samples; i++) {
        sum += p->values[(size_t)i * p->n_types + type];
    }
    return sum;
}

static void assert_collapsed(const struct hearth_profile *p, uint32_t type, const char *want)
{
    struct hearth_buf out;

    hearth_buf_init(&out, 0);
    hearth_collapsed_encode(p, type, &out);
    hearth_buf_byte(&out, 0);
    assert_string_equal(out.p, want);
    hearth_buf_release(&out);
}

static void assert_decodes_to(const char *text, const char *collapsed)
{
    struct decoded d;
    decode_ok(&d, hearth_str_c(text));
    assert_collapsed(&d.p, 0, collapsed);
    hearth_arena_release(&d.arena);
}

/* The whole file, or {NULL, 0}; valid until the next call. */
static struct hearth_str read_file(const char *dir, const char *name)
{
    static char bytes[1 << 21];
    char path[512];

    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        return hearth_str_n(NULL, 0);
    }

    size_t n = fread(bytes, 1, sizeof bytes, file);
    (void)fclose(file);
    assert_true(n < sizeof bytes);

    return hearth_str_n(bytes, n);
}

static void decode_fixture(struct decoded *d, const char *name)
{
    struct hearth_str text = read_file(HEARTH_TEST_DIR "/fuzz/corpus/perf_script", name);
    assert_non_null(text.p);
    decode_ok(d, text);
}

/* ---- recordings of our own (perf 6.1) ---- */

static void reads_a_clock_recording_with_call_graphs(void **state)
{
    (void)state;
    struct decoded d;
    decode_fixture(&d, "callgraph.txt");
    assert_int_equal(d.notes.records, 4);
    assert_int_equal(d.p.n_types, 2);
    assert_type(&d.p, 0, "samples", "count");
    assert_type(&d.p, 1, "cpu", "nanoseconds");
    assert_collapsed(&d.p, 0,
                     "busy loop (x86);__libc_start_call_main;main;demo::hot;demo::spin 3\n"
                     "busy loop (x86);__libc_start_call_main;main;demo::walk;demo::walk;"
                     "demo::fn::operator()(long) const;demo::spin 1\n");
    assert_int_equal(total(&d.p, 1), 4 * 10101010);
    assert_int_equal(d.p.period, 10101010);
    assert_string(&d.p, d.p.period_type.type, "cpu");
    assert_string(&d.p, d.p.period_type.unit, "nanoseconds");
    assert_int_equal(d.p.duration_ns, 30302000);
    assert_int_equal(d.p.n_mappings, 2);
    assert_string(&d.p, d.p.mappings[0].filename, "/opt/busy loop (x86)");
    assert_string(&d.p, d.p.mappings[1].filename, "/usr/lib/x86_64-linux-gnu/libc.so.6");
    assert_true(d.p.mappings[0].has_functions && d.p.mappings[1].has_functions);
    hearth_arena_release(&d.arena);
}

static void reads_source_lines(void **state)
{
    (void)state;
    struct decoded d;
    decode_fixture(&d, "srcline.txt");
    assert_int_equal(d.p.n_samples, 1);
    const struct {
        const char *function, *file;
        int64_t line;
    } want[] = {{"outer", "busy.c", 1},
                {"main", "busy.c", 4},
                {"__libc_start_call_main", "libc-start.c", 74}};
    for (size_t i = 0; i < 3; i++) {
        const struct hearth_line *line = &d.p.lines[d.p.locations[d.p.stack_locs[i]].first_line];
        assert_string(&d.p, d.p.functions[line->function].name, want[i].function);
        assert_string(&d.p, d.p.functions[line->function].filename, want[i].file);
        assert_int_equal(line->line, want[i].line);
    }

    hearth_arena_release(&d.arena);
}

static void reads_records_without_call_graphs_and_several_events(void **state)
{
    (void)state;
    struct decoded d;
    decode_fixture(&d, "no_callgraph.txt");
    assert_int_equal(d.notes.records, 7);
    assert_int_equal(d.p.n_types, 2);
    assert_type(&d.p, 0, "page-faults", "count");
    assert_type(&d.p, 1, "cpu", "nanoseconds");
    assert_collapsed(&d.p, 0, "inl;elf_load 2\ninl;_copy_to_user 1\ninl;_start 96\n");
    assert_collapsed(&d.p, 1, "inl;outer 61224489\n");
    assert_int_equal(d.p.period, 0); /* they differ */
    hearth_arena_release(&d.arena);
}

static void reads_process_ids_and_nanoseconds(void **state)
{
    (void)state;
    struct decoded d;
    decode_fixture(&d, "two_events.txt");
    assert_int_equal(d.notes.records, 4);
    assert_int_equal(total(&d.p, 0), 2);
    assert_int_equal(total(&d.p, 1), 40816326);
    assert_int_equal(d.p.duration_ns, INT64_C(40883633));
    const struct hearth_location *root = &d.p.locations[d.p.stack_locs[d.p.stack_first[1] - 1]];
    assert_string(&d.p, d.p.functions[d.p.lines[root->first_line].function].name, "inl");
    assert_int_equal(root->mapping, HEARTH_NO_INDEX);
    hearth_arena_release(&d.arena);
}

/* ---- single forms ---- */

static void a_record_ends_at_a_blank_line_a_header_or_the_end(void **state)
{
    (void)state;
    assert_decodes_to("a 1 1.5: 1 cycles: \n\t1 f (x)\n\nb 2 1.5: 1 cycles: \n\t1 g (x)\n"
                      "c 3 1.5: 1 cycles: \nd 4 1.5: 1 cycles: \r\n\t1 h (x)\r",
                      "a;f 1\nb;g 1\nc 1\nd;h 1\n");
}

static void command_names_may_contain_spaces_digits_and_brackets(void **state)
{
    (void)state;
    assert_decodes_to(
        "Web Content 12/34 [002] 9.5: 250000 cycles: \n\t1 f (x)\n\n"
        "Thread (pool 1) 5 77 [001] 9.5: 250000 cycles: \n\t1 f (x)\n\n"
        "kworker/0:1-ev 9 9.5: 1 cycles: \n\t1 f (x)\n\n"
        ":-1 -1 [000] 9.5: 1 cycles: \n\t1 f (x)\n\n"
        "1.5: 3 9.5: 1 cycles: \n\t1 f (x)\n",
        "Web Content;f 1\nThread (pool 1) 5;f 1\nkworker/0:1-ev;f 1\n:-1;f 1\n1.5:;f 1\n");
}

static void headers_without_time_cpu_or_period_are_read(void **state)
{
    (void)state;
    assert_decodes_to("node-v011 31912 cpu-clock: \n"
                      "            13a80b608e0a RegExp:[&<>] (/tmp/perf-7539.map)\n\n"
                      "java  3244 [001] cpu-clock: \n\t7f1e214c24d9 SpinPause (/opt/libjvm.so)\n",
                      "node-v011;RegExp:[&<>] 1\njava;SpinPause 1\n");
    struct decoded d;
    decode_ok(&d, HEARTH_STR("java 3244 [001] 250 cycles:\n\n"
                             "java 3244 250 cycles:\n"));
    assert_type(&d.p, 1, "cycles", "count");
    assert_int_equal(total(&d.p, 1), 500);
    assert_int_equal(d.p.duration_ns, 0);
    hearth_arena_release(&d.arena);
}

static void symbols_and_file_names_may_contain_spaces_and_brackets(void **state)
{
    (void)state;
    struct decoded d;
    decode_ok(
        &d,
        HEARTH_STR(
            "a 1 1.5: 1 cycles: \n"
            "\t10 operator()(std::function<void (int)> const&) const+0x1f (/opt/My App (x86)/a)\n"
            "\t11 f(int) (/tmp/gone (deleted))\n"
            "\t12 LazyCompile:~b evalmachine.<anonymous>:1 (//anon)\n"
            "\t13 a+b+0x (/x)\n"
            "\t14 vdso+0x8000000000000000 ([vdso])\n"));
    assert_collapsed(&d.p, 0,
                     "a;vdso;a+b+0x;LazyCompile:~b evalmachine.<anonymous>:1;f(int);"
                     "operator()(std::function<void (int)> const&) const 1\n");
    const char *dsos[] = {"/opt/My App (x86)/a", "/tmp/gone (deleted)", "//anon", "/x", "[vdso]"};
    assert_int_equal(d.p.n_mappings, 5);
    for (uint32_t i = 0; i < 5; i++) {
        assert_string(&d.p, d.p.mappings[i].filename, dsos[i]);
    }

    hearth_arena_release(&d.arena);
}

static void unknown_symbols_keep_address_and_file(void **state)
{
    (void)state;
    struct decoded d;
    decode_ok(&d, HEARTH_STR("a 1 1.5: 1 cycles: \n"
                             "\tffffffff81a1 [unknown] ([kernel.kallsyms])\n"
                             "\tffffffff81a2 known+0x2 ([kernel.kallsyms])\n"
                             "\t7f01 [unknown] (/lib/stripped.so)\n"
                             "\t6ce258d4c544155 [unknown] ([unknown])\n"));
    const struct hearth_profile *p = &d.p;
    assert_int_equal(p->n_stack_locs, 5);
    const struct hearth_location *l = p->locations;
    const uint32_t *at = p->stack_locs;
    assert_int_equal(l[at[0]].n_lines, 0);
    assert_int_equal(l[at[0]].address, 0xffffffff81a1);
    assert_int_equal(l[at[1]].n_lines, 1);
    assert_int_equal(l[at[0]].mapping, l[at[1]].mapping);
    assert_string(p, p->mappings[l[at[0]].mapping].filename, "[kernel.kallsyms]");
    assert_true(p->mappings[l[at[0]].mapping].has_functions);
    assert_string(p, p->mappings[l[at[2]].mapping].filename, "/lib/stripped.so");
    assert_false(p->mappings[l[at[2]].mapping].has_functions);
    assert_int_equal(l[at[3]].mapping, HEARTH_NO_INDEX);
    assert_int_equal(l[at[3]].address, 0x6ce258d4c544155);
    assert_int_equal(l[at[3]].n_lines, 0);
    hearth_arena_release(&d.arena);
}

static void inlined_frames_are_lines_of_one_location(void **state)
{
    (void)state;
    struct decoded d;
    decode_ok(
        &d,
        HEARTH_STR("a 1 1.5: 1 cycles: \n"
                   "\t10 inner (inlined)\n  a.h:3\n\t10 middle (inlined)\n\t10 outer+0x2 (/bin/x)\n"
                   "  a.c:9\n\t20 main (/bin/x)\n"));
    assert_int_equal(d.p.n_stack_locs, 3);
    const struct hearth_location *l = &d.p.locations[d.p.stack_locs[0]];
    assert_int_equal(l->n_lines, 3);
    assert_string(&d.p, d.p.mappings[l->mapping].filename, "/bin/x");
    const char *names[] = {"inner", "middle", "outer"};
    const int64_t numbers[] = {3, 0, 9};
    for (uint32_t i = 0; i < 3; i++) {
        const struct hearth_line *line = &d.p.lines[l->first_line + i];
        assert_string(&d.p, d.p.functions[line->function].name, names[i]);
        assert_int_equal(line->line, numbers[i]);
    }

    assert_collapsed(&d.p, 0, "a;main;outer;middle;inner 1\n");
    hearth_arena_release(&d.arena);
}

static void very_many_inlined_frames_are_all_kept(void **state)
{
    (void)state;
    struct hearth_buf text;
    hearth_buf_init(&text, 0);
    hearth_buf_cstr(&text, "a 1 1.5: 1 cycles: \n");
    for (int i = 0; i < 500; i++) {
        hearth_buf_printf(&text, "\t10 f%d (inlined)\n", i);
    }

    struct decoded d;
    decode_ok(&d, hearth_buf_view(&text));
    assert_int_equal(d.p.n_lines, 501);
    assert_int_equal(d.p.n_functions, 501);
    hearth_arena_release(&d.arena);
    hearth_buf_release(&text);
}

static void trace_text_is_not_a_frame(void **state)
{
    (void)state;
    assert_decodes_to(
        "java 78 [000] 10.1: sched:sched_switch: prev_comm=java prev_pid=78 ==> next (0)\n"
        "\tffffffff8101 schedule+0x2e ([kernel.kallsyms])\n\n"
        "java 78 [000] 10.1: sched:sched_switch: ab looks like (a frame)\n"
        "\tffffffff8101 schedule+0x2e ([kernel.kallsyms])\n",
        "java;schedule 2\n");
}

/* ---- types ---- */

static void one_event_without_period_gives_the_number_of_samples_only(void **state)
{
    (void)state;
    struct decoded d;
    decode_ok(&d,
              HEARTH_STR("a 1 1.5: cpu-clock: \n\t1 f (x)\n\na 1 1.5: cpu-clock: \n\t1 f (x)\n"));
    assert_int_equal(d.p.n_types, 1);
    assert_type(&d.p, 0, "samples", "count");
    assert_int_equal(total(&d.p, 0), 2);
    assert_int_equal(d.p.period_type.type, 0);
    assert_int_equal(d.p.period, 0);
    hearth_arena_release(&d.arena);
}

static void one_other_event_counts_samples_and_periods(void **state)
{
    (void)state;
    struct decoded d;
    decode_ok(
        &d, HEARTH_STR("a 1 1.5: 100 cycles:u: \n\t1 f (x)\n\na 1 1.5: 7 cycles:u: \n\t1 f (x)\n"));
    assert_int_equal(d.p.n_types, 2);
    assert_type(&d.p, 0, "samples", "count");
    assert_type(&d.p, 1, "cycles", "count");
    assert_int_equal(total(&d.p, 0), 2);
    assert_int_equal(total(&d.p, 1), 107);
    assert_string(&d.p, d.p.period_type.type, "cycles");
    assert_int_equal(d.p.period, 0);
    hearth_arena_release(&d.arena);
}

static void events_of_one_base_keep_their_modifiers(void **state)
{
    (void)state;
    struct decoded d;
    decode_ok(
        &d,
        HEARTH_STR("a 1 1.5: 10 cycles:u: \n\t1 f (x)\n\na 1 1.5: 20 cycles:k: \n\t1 f (x)\n\n"
                   "a 1 1.5: raw 0x1a8: \n\t1 f (x)\n\na 1 1.5: 5 task-clock: \n\t1 f (x)\n\n"
                   "a 1 1.5: 6 cpu-clock: \n\t1 f (x)\n\na 1 1.5: cpu/mem-loads,ldlat=30/P: \n"));
    assert_int_equal(d.p.n_types, 6);
    assert_type(&d.p, 0, "cycles:u", "count");
    assert_type(&d.p, 1, "cycles:k", "count");
    assert_type(&d.p, 2, "raw 0x1a8", "count");
    assert_type(&d.p, 3, "task-clock", "nanoseconds");
    assert_type(&d.p, 4, "cpu-clock", "nanoseconds");
    assert_type(&d.p, 5, "cpu/mem-loads,ldlat=30/P", "count");
    const int64_t want[] = {10, 20, 1, 5, 6, 1};
    for (uint32_t i = 0; i < 6; i++) {
        assert_int_equal(total(&d.p, i), want[i]);
    }

    hearth_arena_release(&d.arena);
}

/* ---- fields on request ---- */

static void records_without_an_event_are_samples(void **state)
{
    (void)state;
    struct decoded d;
    decode_ok(&d, HEARTH_STR("a b 7/8 [001] 1.5: \n\t 1f f+0x2 (x)\n\na b 7/8 [001] 2.5: \n"
                             "\t 1f f+0x3 (x)\n\nc 9 3.5:   7ff3 g h (y z)\n"));
    assert_int_equal(d.notes.records, 3);
    assert_int_equal(d.p.n_types, 1);
    assert_type(&d.p, 0, "samples", "count");
    assert_collapsed(&d.p, 0, "a b;f 2\nc;g h 1\n");
    hearth_arena_release(&d.arena);
}

static void a_missing_event_next_to_others_is_unknown(void **state)
{
    (void)state;
    struct decoded d;
    decode_ok(&d, HEARTH_STR("a 7 1.5: \n\t 1f f (x)\n\na 7 2.5: 5 cycles: \n\t 1f f (x)\n"));
    assert_int_equal(d.p.n_types, 2);
    assert_type(&d.p, 0, "unknown", "count");
    assert_type(&d.p, 1, "cycles", "count");
    assert_int_equal(total(&d.p, 0), 1);
    assert_int_equal(total(&d.p, 1), 5);
    hearth_arena_release(&d.arena);
}

static void the_field_misc_is_not_a_part_of_the_command(void **state)
{
    (void)state;
    assert_decodes_to(
        "a b 7 U 1.5: 3 cycles: \n\t 1f f (x)\n\n  c 8 [000] KM 1.6: 3 cycles: 1f g (x)\n",
        "a b;f 1\nc;g 1\n");
}

static void a_time_is_not_a_part_of_the_command(void **state)
{
    (void)state;
    struct decoded d;
    decode(&d, HEARTH_STR("a x.y 1.5: 3 cycles: \n"));
    assert_int_equal(d.status, HEARTH_INVALID_ARGUMENT);
    hearth_arena_release(&d.arena);
}

static void a_command_of_several_lines_in_the_header_is_ignored(void **state)
{
    (void)state;
    assert_decodes_to(
        "# ========\n# captured on    : Wed Nov 25 20:43:55 2026\n# cmdline : python3 -c \n"
        "a;b 2026\nx 1 1.5: 1 cycles:\n\n# ========\n#\na 1 1.5: 1 cycles: \n\t1 f (x)\n",
        "a;f 1\n");
}

static void a_header_without_an_end_is_comments(void **state)
{
    (void)state;
    assert_decodes_to("# ========\n# captured on    : Wed Nov 25 20:43:55 2026\n"
                      "a 1 1.5: 1 cycles: \n\t1 f (x)\n",
                      "a;f 1\n");
    assert_decodes_to("# ========\n# ========x\na 1 1.5: 1 cycles: \n\t1 f (x)\n", "a;f 1\n");
}

static void many_marks_of_headers_take_little_time(void **state)
{
    (void)state;
    static const char *const marks[] = {" # ========\n", "# ========\n", "# ========x\n"};
    static char text[8 << 20];
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(marks); i++) {
        size_t n = strlen(marks[i]), size = sizeof text / n * n;
        struct decoded d;

        for (size_t at = 0; at < size; at += n) {
            memcpy(text + at, marks[i], n);
        }

        decode(&d, hearth_str_n(text, size));
        assert_int_equal(d.status, HEARTH_INVALID_ARGUMENT);
        hearth_arena_release(&d.arena);
    }
}

static void instructions_are_ignored(void **state)
{
    (void)state;
    assert_decodes_to("a 1 1.5: 1 cycles: \n\t1 f (x)\n insn: c5 fb 93 c0\n"
                      "b 1 1.5: 1 cycles: 1 g (x y) insn: 89 f8\n",
                      "a;f 1\nb;g 1\n");
}

static void an_address_without_a_source_line_is_no_file(void **state)
{
    (void)state;
    struct decoded d;
    decode_ok(&d, HEARTH_STR("a 1 1.5: 1 cycles: \n\t1f f (/lib/libc.so.6)\n  libc.so.6[7ab6]\n"));
    assert_int_equal(d.p.n_functions, 2);
    for (uint32_t i = 0; i < d.p.n_functions; i++) {
        assert_string(&d.p, d.p.functions[i].filename, "");
    }

    hearth_arena_release(&d.arena);
}

/* ---- lines that are not records ---- */

static void explains_odd_lines(void **state)
{
    (void)state;
    struct decoded d;
    decode_fixture(&d, "odd.txt");
    assert_int_equal(d.notes.records, 4);
    hearth_arena_release(&d.arena);
    assert_decodes_to("# comment\nperf 1 1.5: PERF_RECORD_MMAP2 1/1: [0x1(0x2) @ 0]: r-xp /bin/a\n"
                      "a 1 1.5: 1 cycles: \n\t zz (x)\n",
                      "a;zz 1\n");
}

static void refuses_lines_of_no_known_form(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"a 1 1.5: 1 cycles: \n\t1 f (x)\n\t1 g (x)\n\ny\n",
         "line 5 is not of perf script's output: \"y\""},
        {"# comment\n\t1 f (x)\na 1 1.5: 1 cycles: \n",
         "line 2 is not of perf script's output: \"1 f (x)\""},
        {"a 1 1.5: 1 cycles: \n\tno address and no file\n\t zz (x)\n",
         "line 2 is not of perf script's output: \"no address and no file\""},
        {"# Guide\nStep 3 follows:\n",
         "line 2 is not of perf script's output: \"Step 3 follows:\""},
    };

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        struct decoded d;
        decode(&d, hearth_str_c(cases[i].text));
        assert_int_equal(d.status, HEARTH_INVALID_ARGUMENT);
        assert_string_equal(d.err.msg, cases[i].message);
        hearth_arena_release(&d.arena);
    }

    assert_decodes_to("a 1 cycles:\n\t1 f (x)\n", "a;f 1\n");
}

/* perf script -F comm,tid,event,period,ip,sym,dso of a recording without call graphs. */
static void reads_samples_without_time_and_call_graph(void **state)
{
    (void)state;
    assert_decodes_to(
        "              rs 31205    1003009 cpu-clock:      56026f11a597 m::work (/tmp/rs)\n"
        "              rs 31205    1003009 cpu-clock:      56026f11a470 m::work (/tmp/rs)\n"
        "  my: own comm 7    1003009 cpu-clock:      56026f11a470 a: b (/tmp/rs)\n",
        "rs;m::work 2\nmy: own comm;a: b 1\n");
    assert_decodes_to("rs 31205 cpu-clock:      56026f11a597 m::work (/tmp/rs)\n",
                      "rs;m::work 1\n");
}

/* perf script -F +srcline of code that has debugging information, but no file. */
static void a_source_line_may_lack_its_file(void **state)
{
    (void)state;
    assert_decodes_to("a 1  2.000000:          1 cpu-clock: \n"
                      "\t  1ab78 _dl_start_user+0x0 (/lib/ld.so)\n"
                      "  :0\n"
                      "\t  1ab79 main+0x0 (/bin/a)\n"
                      "  main.c:7\n\n",
                      "a;main;_dl_start_user 1\n");
}

static void refuses_text_without_a_record(void **state)
{
    (void)state;
    const char *texts[] = {"",           "\n\n",
                           "a;b;c 1\n",  "\t12 f (x)\n",
                           "{\"x\": 1}", "a 1 1.5: 99999999999999999999 cycles:"};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(texts); i++) {
        struct decoded d;
        decode(&d, hearth_str_c(texts[i]));
        assert_int_equal(d.status, HEARTH_INVALID_ARGUMENT);
        hearth_arena_release(&d.arena);
    }
}

static void refuses_a_new_event_in_every_record(void **state)
{
    (void)state;
    struct hearth_buf text;
    hearth_buf_init(&text, 0);
    for (int i = 0; i < 65; i++) {
        struct decoded d;
        hearth_buf_printf(&text, "a 1 1.5: 1 event%d: \n\t1 f (x)\n\n", i);
        decode(&d, hearth_buf_view(&text));
        assert_int_equal(d.status, i < 64 ? HEARTH_OK : HEARTH_RESOURCE_EXHAUSTED);
        hearth_arena_release(&d.arena);
    }

    hearth_buf_release(&text);
}

static void refuses_sums_beyond_64_bits(void **state)
{
    (void)state;
    struct decoded d;
    decode(&d, HEARTH_STR("a 1 1.5: 9223372036854775807 cycles: \n\t1 f (x)\n\n"
                          "a 1 1.5: 1 cycles: \n\t1 f (x)\n"));
    assert_int_equal(d.status, HEARTH_OUT_OF_RANGE);
    hearth_arena_release(&d.arena);
}

static void every_refused_allocation_is_reported_and_nothing_leaks(void **state)
{
    (void)state;
    struct hearth_str text = read_file(HEARTH_TEST_DIR "/fuzz/corpus/perf_script", "odd.txt");
    assert_non_null(text.p);
    enum hearth_status status = HEARTH_NO_MEMORY;
    for (uint64_t nth = 1; status != HEARTH_OK; nth++) {
        struct decoded d;
        hearth_mem_fail_after(nth);
        decode(&d, text);
        hearth_mem_fail_after(0);
        status = d.status;
        assert_true(status == HEARTH_OK || status == HEARTH_NO_MEMORY);
        hearth_arena_release(&d.arena);
        assert_true(nth < 500);
    }
}

/* ---- real files ---- */

static uint32_t max_depth(const struct hearth_profile *p)
{
    uint32_t deepest = 0;
    for (uint32_t s = 0; s < p->n_samples; s++) {
        uint32_t depth = p->stack_first[s + 1] - p->stack_first[s];
        deepest = depth > deepest ? depth : deepest;
    }

    return deepest;
}

static void skip_without_shared_files(struct hearth_str text)
{
    if (text.p == NULL) {
        print_message("no shared data at %s: real perf files not read\n", HEARTH_SHARED_DATA);
        skip();
    }
}

static void reads_real_files_with_their_totals(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint64_t n_records;
        uint32_t depth, n_types; /* depth: frames, with the command */
        int64_t totals[2];
    } files[] = {
        {"perf/perf-cycles-instructions-01.txt", 444, 14, 2, {333, 111}},
        {"perf/perf-iperf-stacks-pidtid-01.txt", 201, 37, 1, {201}},
        {"perf/perf-java-stacks-01.txt", 46, 70, 1, {46}},
        {"perf/perf-js-stacks-01.txt", 2, 19, 1, {2}},
        {"perf/perf-vertx-stacks-01.txt", 286, 69, 1, {286}},
        {"perf/rust-mangled.linux-perf.txt", 96, 6, 2, {96, INT64_C(1627118592)}},
        {"perf/system-wide.linux-perf.txt", 556, 22, 2, {556, INT64_C(556556556)}},
    };

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(files); i++) {
        struct hearth_str text = read_file(HEARTH_SHARED_DATA, files[i].name);

        skip_without_shared_files(text);
        struct decoded d;
        decode_ok(&d, text);
        if (d.notes.records != files[i].n_records || max_depth(&d.p) != files[i].depth ||
            d.p.n_types != files[i].n_types) {
            fail_msg("%s: %llu records, depth %u, %u types", files[i].name,
                     (unsigned long long)d.notes.records, max_depth(&d.p), d.p.n_types);
        }

        for (uint32_t k = 0; k < files[i].n_types; k++) {
            assert_int_equal(total(&d.p, k), files[i].totals[k]);
        }

        hearth_arena_release(&d.arena);
    }
}

/* sums[d]: the value of all stacks of d frames. */
static void sum_by_depth(const struct hearth_profile *p, int64_t sums[128])
{
    memset(sums, 0, 128 * sizeof *sums);
    for (uint32_t s = 0; s < p->n_samples; s++) {
        uint32_t depth = p->stack_first[s + 1] - p->stack_first[s];
        assert_true(depth < 128);
        sums[depth] += p->values[(size_t)s * p->n_types];
    }
}

/*
 * The collapsed files were made from these by another program. It drops the last record where no
 * blank line follows it and spells names differently; so the numbers of stacks by depth must agree
 * but for that one.
 */
static void agrees_with_the_collapsed_form_of_real_files(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"perf/perf-iperf-stacks-pidtid-01.txt", "collapsed/perf-iperf-tid.txt"},
        {"perf/perf-java-stacks-01.txt", "collapsed/perf-java-all.txt"},
        {"perf/perf-vertx-stacks-01.txt", "collapsed/perf-vertx-kernel-java-all.txt"},
    };

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(pairs); i++) {
        int64_t ours[128], theirs[128];
        struct hearth_str text = read_file(HEARTH_SHARED_DATA, pairs[i][0]);

        skip_without_shared_files(text);
        struct decoded d;
        decode_ok(&d, text);
        sum_by_depth(&d.p, ours);
        hearth_arena_reset(&d.arena);
        text = read_file(HEARTH_SHARED_DATA, pairs[i][1]);
        skip_without_shared_files(text);
        assert_int_equal(hearth_collapsed_decode(text, HEARTH_STR("s"), HEARTH_STR("c"), 1,
                                                 &d.arena, &d.p, &d.err),
                         HEARTH_OK);
        sum_by_depth(&d.p, theirs);
        int64_t more = 0;
        for (size_t depth = 0; depth < 128; depth++) {
            assert_true(ours[depth] >= theirs[depth]);
            more += ours[depth] - theirs[depth];
        }

        assert_int_equal(more, 1);
        hearth_arena_release(&d.arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_a_clock_recording_with_call_graphs),
        cmocka_unit_test(reads_source_lines),
        cmocka_unit_test(reads_records_without_call_graphs_and_several_events),
        cmocka_unit_test(reads_process_ids_and_nanoseconds),
        cmocka_unit_test(a_record_ends_at_a_blank_line_a_header_or_the_end),
        cmocka_unit_test(command_names_may_contain_spaces_digits_and_brackets),
        cmocka_unit_test(headers_without_time_cpu_or_period_are_read),
        cmocka_unit_test(symbols_and_file_names_may_contain_spaces_and_brackets),
        cmocka_unit_test(unknown_symbols_keep_address_and_file),
        cmocka_unit_test(inlined_frames_are_lines_of_one_location),
        cmocka_unit_test(very_many_inlined_frames_are_all_kept),
        cmocka_unit_test(trace_text_is_not_a_frame),
        cmocka_unit_test(one_event_without_period_gives_the_number_of_samples_only),
        cmocka_unit_test(one_other_event_counts_samples_and_periods),
        cmocka_unit_test(events_of_one_base_keep_their_modifiers),
        cmocka_unit_test(records_without_an_event_are_samples),
        cmocka_unit_test(a_missing_event_next_to_others_is_unknown),
        cmocka_unit_test(the_field_misc_is_not_a_part_of_the_command),
        cmocka_unit_test(a_time_is_not_a_part_of_the_command),
        cmocka_unit_test(a_command_of_several_lines_in_the_header_is_ignored),
        cmocka_unit_test(a_header_without_an_end_is_comments),
        cmocka_unit_test(many_marks_of_headers_take_little_time),
        cmocka_unit_test(instructions_are_ignored),
        cmocka_unit_test(an_address_without_a_source_line_is_no_file),
        cmocka_unit_test(explains_odd_lines),
        cmocka_unit_test(refuses_lines_of_no_known_form),
        cmocka_unit_test(reads_samples_without_time_and_call_graph),
        cmocka_unit_test(a_source_line_may_lack_its_file),
        cmocka_unit_test(refuses_text_without_a_record),
        cmocka_unit_test(refuses_a_new_event_in_every_record),
        cmocka_unit_test(refuses_sums_beyond_64_bits),
        cmocka_unit_test(every_refused_allocation_is_reported_and_nothing_leaks),
        cmocka_unit_test(reads_real_files_with_their_totals),
        cmocka_unit_test(agrees_with_the_collapsed_form_of_real_files),
    };

    return cmocka_run_group_tests_name("perf_script", tests, NULL, NULL);
}
