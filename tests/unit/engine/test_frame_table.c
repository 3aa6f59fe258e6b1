/*
 * test_frame_table.c -- tables of functions, lines, files, ... against a count that looks at every frame of
 * every stack with texts only.
 */
#include "hearth/model/frame_name.h"
#include "hearth/model/symbol_parts.h"

#include "answer/frame_table.h"
#include "synth_profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define N_STACKS 120
#define MAX_ROWS 4000
#define TEXT     320

static const char *const g_strings[] = {
    "",         "main",         "a.(*T).Read", "a.(*T).Write",   "java.util.List.add", "ns::C::m",
    "run",      "src/a.go",     "src/b.go",    "/lib/List.java", "shop/cart.py",       "c.cc",
    "/bin/app", "/lib/libc.so", "build-1",     "build-2"};

/* A dictionary as a reader has it, of random parts that often agree. */
static struct hearth_dict random_dict(uint64_t *rng, struct hearth_arena *arena)
{
    struct hearth_dict d = {.n_strings = HEARTH_ARRAY_LEN(g_strings),
                            .n_mappings = 3,
                            .n_functions = 14,
                            .n_locations = 40,
                            .n_stacks = N_STACKS};
    d.strings = synth_array(arena, d.n_strings, sizeof d.strings[0]);
    d.mappings = synth_array(arena, d.n_mappings, sizeof d.mappings[0]);
    d.functions = synth_array(arena, d.n_functions, sizeof d.functions[0]);
    d.lines = synth_array(arena, 4 * d.n_locations, sizeof d.lines[0]);
    d.locations = synth_array(arena, d.n_locations, sizeof d.locations[0]);
    d.stack_first = synth_array(arena, N_STACKS + 1, sizeof d.stack_first[0]);
    d.stack_locs = synth_array(arena, N_STACKS * 10, sizeof d.stack_locs[0]);
    d.stack_node = synth_array(arena, N_STACKS, sizeof d.stack_node[0]);
    for (uint32_t i = 0; i < d.n_strings; i++) {
        d.strings[i] = hearth_str_c(g_strings[i]);
    }
    for (uint32_t i = 0; i < d.n_mappings; i++) {
        d.mappings[i].filename = i == 0 ? 0 : 11 + i;
        d.mappings[i].build_id = synth_below(rng, 2) == 0 ? 0 : 14 + synth_below(rng, 2);
    }
    for (uint32_t i = 0; i < d.n_functions; i++) {
        d.functions[i].name = synth_below(rng, 7);
        d.functions[i].filename = synth_below(rng, 3) == 0 ? 0 : 7 + synth_below(rng, 5);
    }
    for (uint32_t i = 0; i < d.n_locations; i++) {
        uint32_t n = synth_below(rng, 5) == 0 ? synth_below(rng, 5) : 1;
        d.locations[i] = (struct hearth_location){
            .mapping = synth_below(rng, 4) == 0 ? HEARTH_NO_INDEX : synth_below(rng, 3),
            .first_line = d.n_lines,
            .n_lines = n,
            .address = 0x10 * synth_below(rng, 3)};
        for (; n > 0; n--) {
            d.lines[d.n_lines++] = (struct hearth_line){
                synth_below(rng, 20) == 0 ? HEARTH_NO_INDEX : synth_below(rng, d.n_functions),
                synth_below(rng, 3)};
        }
    }
    for (uint32_t s = 0; s < N_STACKS; s++) {
        uint32_t at = d.stack_first[s];
        for (uint32_t n = synth_below(rng, 10); n > 0; n--) {
            d.stack_locs[at++] = synth_below(rng, d.n_locations);
        }
        d.stack_first[s + 1] = at;
        d.stack_node[s] = s;
    }
    return d;
}

/* ---- the naive count ---- */

struct row {
    char key[TEXT], file[64], mapping[64];
    bool mixed_file, mixed_mapping;
    int64_t self, total;
    uint32_t last_stack;
};

struct count {
    enum hearth_top_kind kind;
    const char *function; /* lines of it */
    struct row *rows;
    size_t n_rows;
    int64_t total, counted;
    uint32_t n_stacks;
};

static const char *string(const struct hearth_dict *d, uint32_t i)
{
    return d->strings[i].p;
}

static void text_of_symbol(struct hearth_str part, char *out)
{
    (void)snprintf(out, TEXT, "%.*s", (int)part.n, part.p);
}

/* What the row of a frame is called; false: it does not count. */
static bool key_of(const struct count *c, const struct hearth_dict *d,
                   const struct hearth_location *l, uint32_t line, char key[TEXT])
{
    const struct hearth_line *at = line < l->n_lines ? &d->lines[l->first_line + line] : NULL;
    const struct hearth_function *f =
        at == NULL || at->function == HEARTH_NO_INDEX ? NULL : &d->functions[at->function];
    const char *mapping =
        l->mapping == HEARTH_NO_INDEX ? "" : string(d, d->mappings[l->mapping].filename);
    const char *build =
        l->mapping == HEARTH_NO_INDEX ? "" : string(d, d->mappings[l->mapping].build_id);
    const char *file = f == NULL ? "" : string(d, f->filename);
    char name[TEXT] = "", room[TEXT];
    if (f != NULL) {
        (void)snprintf(name, sizeof name, "%s", string(d, f->name));
    } else if (at == NULL) {
        const struct hearth_mapping *m =
            l->mapping == HEARTH_NO_INDEX ? NULL : &d->mappings[l->mapping];
        name[hearth_frame_name(l->address, m, d->strings, name)] = '\0';
    }
    int64_t number = at == NULL ? 0 : at->line;
    if (c->function != NULL) {
        (void)snprintf(key, TEXT, "%s %s %s %lld", file, mapping, build, (long long)number);
        return strcmp(name, c->function) == 0;
    }

    /* Only the name of the row: packages and classes are those of the name as stored. */
    const char *shown = name[0] == '\0' ? "[unknown]" : name;
    struct hearth_str symbol = f == NULL ? HEARTH_STR("") : hearth_str_c(name);
    switch (c->kind) {
    case HEARTH_TOP_FUNCTION:
        (void)snprintf(key, TEXT, "%s", shown);
        break;
    case HEARTH_TOP_LINE:
        (void)snprintf(key, TEXT, "%s:%lld", shown, (long long)number);
        break;
    case HEARTH_TOP_FILE:
        (void)snprintf(key, TEXT, "%s", file);
        break;
    case HEARTH_TOP_DIRECTORY:
        text_of_symbol(hearth_symbol_directory(hearth_str_c(file)), key);
        break;
    case HEARTH_TOP_CLASS:
        text_of_symbol(hearth_symbol_class(symbol, hearth_str_c(file), room), key);
        break;
    case HEARTH_TOP_PACKAGE:
        text_of_symbol(hearth_symbol_package(symbol, hearth_str_c(file), room), key);
        if (key[0] == '\0') {
            text_of_symbol(hearth_symbol_library(hearth_str_c(mapping)), key);
        }
        break;
    case HEARTH_TOP_FRAME_KIND:
        text_of_symbol(hearth_symbol_kind(f == NULL ? HEARTH_STR("") : d->strings[f->name],
                                          hearth_str_c(file), hearth_str_c(mapping)),
                       key);
        break;
    case HEARTH_TOP_MODULE:
    case HEARTH_TOP_THREAD:
        (void)snprintf(key, TEXT, "%s", mapping);
        break;
    }
    return true;
}

static void note_attribute(char *known, bool *mixed, const char *text)
{
    *mixed = *mixed || (known[0] != '\0' && text[0] != '\0' && strcmp(known, text) != 0);
    if (known[0] == '\0') {
        (void)snprintf(known, 64, "%s", text);
    }
}

static void count_frame(struct count *c, const struct hearth_dict *d,
                        const struct hearth_location *l, uint32_t line, int64_t value, bool leaf,
                        bool *counted)
{
    char key[TEXT];
    if (!key_of(c, d, l, line, key)) {
        return;
    }
    size_t r = 0;
    while (r < c->n_rows && strcmp(c->rows[r].key, key) != 0) {
        r++;
    }
    if (r == c->n_rows) {
        assert_true(c->n_rows++ < MAX_ROWS);
        (void)strcpy(c->rows[r].key, key);
    }
    struct row *row = &c->rows[r];
    uint32_t f = line < l->n_lines ? d->lines[l->first_line + line].function : HEARTH_NO_INDEX;
    note_attribute(row->file, &row->mixed_file,
                   f == HEARTH_NO_INDEX ? "" : string(d, d->functions[f].filename));
    note_attribute(row->mapping, &row->mixed_mapping,
                   l->mapping == HEARTH_NO_INDEX ? ""
                                                 : string(d, d->mappings[l->mapping].filename));
    row->self += leaf ? value : 0;
    row->total += row->last_stack == c->n_stacks ? 0 : value;
    row->last_stack = c->n_stacks;
    *counted = true;
}

static void count_dict(struct count *c, const struct hearth_dict *d, const int64_t *acc,
                       const bool *inside)
{
    for (uint32_t s = 0; s < N_STACKS; s++) {
        if (acc[s] == 0 || (inside != NULL && !inside[s])) {
            continue;
        }
        bool counted = false;
        c->n_stacks++;
        c->total += acc[s];
        for (uint32_t i = d->stack_first[s]; i < d->stack_first[s + 1]; i++) {
            const struct hearth_location *l = &d->locations[d->stack_locs[i]];
            for (uint32_t line = 0; line == 0 || line < l->n_lines; line++) {
                count_frame(c, d, l, line, acc[s], i == d->stack_first[s] && line == 0, &counted);
            }
        }
        c->counted += counted ? acc[s] : 0;
    }
}

/* ---- comparing ---- */

static const char *text_of(const struct hearth_frame_table *t, uint32_t text, char out[TEXT])
{
    (void)snprintf(out, TEXT, "%.*s", (int)t->texts.v[text].n, t->texts.v[text].p);
    return out;
}

static void key_of_row(const struct hearth_frame_table *t, size_t i, char out[4 * TEXT])
{
    char a[TEXT], b[TEXT], e[TEXT];
    const struct hearth_frame_row *row = &t->rows[i];
    if (t->function.p != NULL) {
        (void)snprintf(out, 4 * TEXT, "%s %s %s %lld", text_of(t, row->file, a),
                       text_of(t, row->mapping, b), text_of(t, row->build_id, e),
                       (long long)row->line);
    } else if (t->kind == HEARTH_TOP_LINE) {
        (void)snprintf(out, 4 * TEXT, "%s:%lld", text_of(t, row->name, a), (long long)row->line);
    } else {
        (void)snprintf(out, 4 * TEXT, "%s", text_of(t, row->name, a));
    }
}

static void assert_attribute(const struct hearth_frame_table *t, uint32_t text,
                             const char *expected, bool mixed)
{
    char out[TEXT];
    assert_int_equal(text == HEARTH_TEXT_MIXED, mixed);
    if (!mixed) {
        assert_string_equal(text_of(t, text, out), expected);
    }
}

static void assert_same(const struct hearth_frame_table *t, const struct count *c)
{
    assert_int_equal(t->n_rows, c->n_rows);
    assert_int_equal(t->total, c->total);
    assert_int_equal(t->counted, c->counted);
    for (size_t i = 0; i < t->n_rows; i++) {
        char key[4 * TEXT];
        size_t r = 0;
        key_of_row(t, i, key);
        while (r < c->n_rows && strcmp(c->rows[r].key, key) != 0) {
            r++;
        }
        if (r == c->n_rows) {
            fail_msg("a row of its own: %s", key);
        }
        assert_int_equal(t->tallies[i].self, c->rows[r].self);
        assert_int_equal(t->tallies[i].total, c->rows[r].total);
        if (t->function.p == NULL &&
            (t->kind == HEARTH_TOP_FUNCTION || t->kind == HEARTH_TOP_LINE)) {
            assert_attribute(t, t->rows[i].file, c->rows[r].file, c->rows[r].mixed_file);
            assert_attribute(t, t->rows[i].mapping, c->rows[r].mapping, c->rows[r].mixed_mapping);
        }
    }
}

/* Several random dictionaries into one table. */
static void run_round(uint64_t seed, enum hearth_top_kind kind, const char *function)
{
    uint64_t rng = seed;
    struct hearth_arena arena;
    struct hearth_frame_table table;
    struct hearth_err err = HEARTH_ERR_INIT;
    hearth_arena_init(&arena, 0);
    struct count count = {.kind = kind, .function = function};
    count.rows = synth_array(&arena, MAX_ROWS, sizeof count.rows[0]);
    if (function != NULL) {
        hearth_frame_table_init_lines(&table, hearth_str_c(function), &arena);
    } else {
        hearth_frame_table_init(&table, kind, &arena);
    }
    for (int i = 0; i < 3; i++) {
        struct hearth_dict dict = random_dict(&rng, &arena);
        struct hearth_dict_sums sums = {.bound = N_STACKS};
        bool *inside = i == 0 ? NULL : synth_array(&arena, N_STACKS, sizeof inside[0]);
        sums.acc = synth_array(&arena, N_STACKS, sizeof sums.acc[0]);
        for (uint32_t s = 0; s < N_STACKS; s++) {
            sums.acc[s] = synth_below(&rng, 3) == 0 ? 0 : (int64_t)synth_below(&rng, 1000);
            if (inside != NULL) {
                inside[s] = synth_below(&rng, 3) > 0;
            }
        }
        count_dict(&count, &dict, sums.acc, inside);
        assert_int_equal(hearth_frame_table_add(&table, &dict, &sums, inside, &err), HEARTH_OK);
    }
    assert_true(count.n_rows > 0);
    assert_same(&table, &count);
    hearth_frame_table_release(&table);
    hearth_arena_release(&arena);
}

static void tables_of_all_kinds_are_those_of_a_naive_count(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        for (int kind = HEARTH_TOP_FUNCTION; kind <= HEARTH_TOP_MODULE; kind++) {
            run_round(seed, (enum hearth_top_kind)kind, NULL);
        }
        run_round(seed, HEARTH_TOP_FRAME_KIND, NULL);
    }
}

static void lines_of_a_function_are_those_of_a_naive_count(void **state)
{
    (void)state;
    static const char *const functions[] = {"main", "run", "", "ns::C::m"};
    for (uint64_t seed = 0; seed < 20; seed++) {
        run_round(seed, HEARTH_TOP_LINE, functions[seed % HEARTH_ARRAY_LEN(functions)]);
    }
}

static struct hearth_dict one_stack_dict(struct hearth_arena *arena)
{
    uint64_t rng = 1;
    struct hearth_dict dict = random_dict(&rng, arena);
    dict.locations[0] = (struct hearth_location){.mapping = HEARTH_NO_INDEX, .n_lines = 1};
    dict.lines[0] = (struct hearth_line){0, 1};
    dict.stack_first[1] = 3; /* the same function three times */
    dict.stack_locs[0] = dict.stack_locs[1] = dict.stack_locs[2] = 0;
    return dict;
}

static void recursion_counts_once_and_overflow_is_an_error(void **state)
{
    (void)state;
    struct hearth_arena arena;
    struct hearth_frame_table table;
    struct hearth_err err = HEARTH_ERR_INIT;
    int64_t value = INT64_MAX - 1;
    hearth_arena_init(&arena, 0);
    struct hearth_dict dict = one_stack_dict(&arena);
    const struct hearth_dict_sums sums = {.bound = 1, .acc = &value};
    hearth_frame_table_init(&table, HEARTH_TOP_FUNCTION, &arena);
    assert_int_equal(hearth_frame_table_add(&table, &dict, &sums, NULL, &err), HEARTH_OK);
    assert_int_equal(table.n_rows, 1);
    assert_int_equal(table.tallies[0].self, value);
    assert_int_equal(table.tallies[0].total, value);
    assert_int_equal(hearth_frame_table_add(&table, &dict, &sums, NULL, &err), HEARTH_OUT_OF_RANGE);
    hearth_frame_table_release(&table);
    hearth_arena_release(&arena);
}

static void a_table_that_does_not_fit_fails_with_no_memory(void **state)
{
    (void)state;
    bool refused = false, fits = false;
    for (size_t limit = 1000; limit < 200000; limit = limit * 5 / 4) {
        struct hearth_arena dicts, arena;
        struct hearth_frame_table table;
        struct hearth_err err = HEARTH_ERR_INIT;
        uint64_t rng = 3;
        int64_t acc[N_STACKS];
        hearth_arena_init(&dicts, 0);
        hearth_arena_init(&arena, limit);
        struct hearth_dict dict = random_dict(&rng, &dicts);
        for (uint32_t s = 0; s < N_STACKS; s++) {
            acc[s] = 1;
        }
        const struct hearth_dict_sums sums = {.bound = N_STACKS, .acc = acc};
        hearth_frame_table_init(&table, HEARTH_TOP_LINE, &arena);
        enum hearth_status status = hearth_frame_table_add(&table, &dict, &sums, NULL, &err);
        assert_true(status == HEARTH_OK || status == HEARTH_NO_MEMORY);
        refused = refused || status == HEARTH_NO_MEMORY;
        fits = fits || status == HEARTH_OK;
        hearth_frame_table_release(&table);
        hearth_arena_release(&arena);
        hearth_arena_release(&dicts);
    }
    assert_true(refused && fits);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_of_all_kinds_are_those_of_a_naive_count),
        cmocka_unit_test(lines_of_a_function_are_those_of_a_naive_count),
        cmocka_unit_test(recursion_counts_once_and_overflow_is_an_error),
        cmocka_unit_test(a_table_that_does_not_fit_fails_with_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
