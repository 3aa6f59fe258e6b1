/* test_elf_symbols.c -- functions by offset in a real program; damaged and other files. */
#include "hearth/format/elf_symbols.h"

#include "test_files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define PROGRAM HEARTH_TEST_DIR "/golden/perf/spin.elf"

static struct hearth_buf g_program;

static int start(void **state)
{
    (void)state;
    hearth_buf_init(&g_program, 0);
    return read_file(PROGRAM, &g_program) ? 0 : -1;
}

static int stop(void **state)
{
    (void)state;
    hearth_buf_release(&g_program);
    return 0;
}

static enum hearth_status read_symbols(struct hearth_str bytes, struct hearth_arena *arena,
                                       const struct hearth_elf_symbols **ret,
                                       struct hearth_err *err)
{
    *err = (struct hearth_err)HEARTH_ERR_INIT;
    return hearth_elf_symbols_read(bytes, arena, ret, err);
}

struct function_at {
    uint64_t offset;
    const char *name;
};

static void assert_functions(const struct function_at *expected, size_t n)
{
    struct hearth_arena arena;
    struct hearth_err err;
    const struct hearth_elf_symbols *symbols;

    hearth_arena_init(&arena, 0);
    assert_int_equal(read_symbols(hearth_buf_view(&g_program), &arena, &symbols, &err), HEARTH_OK);
    for (size_t i = 0; i < n; i++) {
        struct hearth_str name = hearth_elf_symbols_find(symbols, expected[i].offset);
        if (!hearth_str_eq_c(name, expected[i].name)) {
            fail_msg("%#lx is " HEARTH_STR_FMT ", expected %s", (unsigned long)expected[i].offset,
                     HEARTH_STR_ARG(name), expected[i].name);
        }
    }
    assert_true(hearth_str_eq_c(hearth_elf_symbols_build_id(symbols),
                                "e7bad9216aab96dab12fe530561f23b40d778582"));
    hearth_arena_release(&arena);
}

/* Offsets are those of nm: the program's segments have equal offsets and addresses. */
static void finds_the_function_that_contains_an_offset(void **state)
{
    static const struct function_at expected[] = {
        {0x11ba, "spin"},  {0x11f0, "spin"}, {0x11f1, "inner"}, {0x1206, "inner"},
        {0x1207, "outer"}, {0x1248, "main"}, {0x12a5, "main"},  {0x12a6, ""},
        {0x0, ""},         {0x99999, ""},    {UINT64_MAX, ""},
    };

    (void)state;
    assert_functions(expected, HEARTH_ARRAY_LEN(expected));
}

/* _init is the only symbol of its section; the stubs of functions of libraries follow. */
static void a_function_without_a_size_ends_with_its_section(void **state)
{
    static const struct function_at expected[] = {
        {0x1000, "_init"}, {0x1016, "_init"}, {0x1017, ""}, {0x1020, ""},
        {0x1076, ""},      {0x12a8, "_fini"}, {0x12b1, ""},
    };

    (void)state;
    assert_functions(expected, HEARTH_ARRAY_LEN(expected));
}

static void other_files_are_refused(void **state)
{
    static const char big_endian[64] = "\177ELF\2\2\1";
    struct hearth_arena arena;
    struct hearth_err err;
    const struct hearth_elf_symbols *symbols;

    (void)state;
    hearth_arena_init(&arena, 0);
    assert_int_equal(read_symbols(HEARTH_STR(""), &arena, &symbols, &err), HEARTH_INVALID_ARGUMENT);
    assert_int_equal(read_symbols(HEARTH_STR("#!/bin/sh"), &arena, &symbols, &err),
                     HEARTH_INVALID_ARGUMENT);
    assert_int_equal(read_symbols(hearth_str_n(big_endian, 64), &arena, &symbols, &err),
                     HEARTH_INVALID_ARGUMENT);
    assert_non_null(strstr(err.msg, "big-endian"));
    assert_int_equal(read_symbols(hearth_str_n(g_program.p, 40), &arena, &symbols, &err),
                     HEARTH_INVALID_ARGUMENT);
    hearth_arena_release(&arena);
}

static void damage_is_refused_or_yields_names_within_the_file(void **state)
{
    uint32_t seed = 3;

    (void)state;
    for (int round = 0; round < 3000; round++) {
        struct hearth_arena arena;
        struct hearth_err err;
        const struct hearth_elf_symbols *symbols;
        seed = seed * 1664525 + 1013904223;
        /* Mostly in the header and in the tables of sections at the end. */
        size_t at = round % 3 == 0 ? (seed >> 8) % 64 : g_program.n - 1 - (seed >> 8) % 4096;
        char old = g_program.p[at];

        g_program.p[at] = (char)(seed >> 3);
        hearth_arena_init(&arena, 16u << 20);
        if (read_symbols(hearth_buf_view(&g_program), &arena, &symbols, &err) == HEARTH_OK) {
            struct hearth_str name = hearth_elf_symbols_find(symbols, seed % g_program.n);
            assert_true(name.n == 0 ||
                        (name.p > g_program.p && name.p + name.n <= g_program.p + g_program.n));
        } else {
            assert_true(err.msg[0] != '\0');
        }
        hearth_arena_release(&arena);
        g_program.p[at] = old;
    }
}

static void write_at(struct hearth_buf *file, size_t at, uint64_t value, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        file->p[at + i] = (char)(value >> 8 * i);
    }
}

/* 60,000 sections of notes that all are the same 2 MiB of empty notes. */
static void many_overlapping_notes_cost_little(void **state)
{
    const size_t n_sections = 60000, n_notes = 2u << 20, head = 64, section = 64;
    size_t n = head + n_sections * section + n_notes;
    struct hearth_buf file;
    struct hearth_arena arena;
    struct hearth_err err;
    const struct hearth_elf_symbols *symbols;

    (void)state;
    hearth_buf_init(&file, 0);
    char *p = hearth_buf_reserve(&file, n);
    assert_non_null(p);
    memset(p, 0, n);
    file.n = n;
    memcpy(p, "\177ELF\2\1\1", 7);
    write_at(&file, 40, head, 8);
    write_at(&file, 58, section, 2);
    write_at(&file, 60, n_sections, 2);
    for (size_t i = 0; i < n_sections; i++) {
        write_at(&file, head + i * section + 4, 7, 4);
        write_at(&file, head + i * section + 24, n - n_notes, 8);
        write_at(&file, head + i * section + 32, n_notes, 8);
    }

    clock_t start = clock();
    hearth_arena_init(&arena, 16u << 20);
    assert_int_equal(read_symbols(hearth_buf_view(&file), &arena, &symbols, &err), HEARTH_OK);
    assert_int_equal(hearth_elf_symbols_build_id(symbols).n, 0);
    assert_true((clock() - start) / CLOCKS_PER_SEC < 10);
    hearth_arena_release(&arena);
    hearth_buf_release(&file);
}

/* Ten thousand files of a header only, whose counts name 65,535 segments and sections. */
static void headers_that_are_not_there_cost_little(void **state)
{
    char header[64] = "\177ELF\2\1\1";
    struct hearth_buf file = {.p = header, .n = sizeof header};
    const struct hearth_elf_symbols *symbols;
    struct hearth_arena arena;
    struct hearth_err err;

    (void)state;
    for (size_t at = 32; at <= 40; at += 8) {
        write_at(&file, at, sizeof header - 8, 8); /* a part of a header is there */
    }
    write_at(&file, 54, 56, 2);
    write_at(&file, 56, 65535, 2);
    write_at(&file, 58, 64, 2);
    write_at(&file, 60, 65535, 2);

    clock_t start = clock();
    for (int i = 0; i < 10000; i++) {
        hearth_arena_init(&arena, 16u << 20);
        assert_int_equal(read_symbols(hearth_buf_view(&file), &arena, &symbols, &err), HEARTH_OK);
        assert_int_equal(hearth_elf_symbols_count(symbols), 0);
        hearth_arena_release(&arena);
    }
    assert_true((clock() - start) / CLOCKS_PER_SEC < 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_function_that_contains_an_offset),
        cmocka_unit_test(a_function_without_a_size_ends_with_its_section),
        cmocka_unit_test(other_files_are_refused),
        cmocka_unit_test(damage_is_refused_or_yields_names_within_the_file),
        cmocka_unit_test(many_overlapping_notes_cost_little),
        cmocka_unit_test(headers_that_are_not_there_cost_little),
    };

    return cmocka_run_group_tests(tests, start, stop);
}
