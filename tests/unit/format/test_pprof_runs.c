/*
 * test_pprof_runs.c -- messages in their usual form are read as the general reader reads them, whatever
 * else stands in the profile, and however it is damaged or cut.
 */
#include "hearth/format/pprof.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static uint64_t g_random = 1;

static uint32_t draw(uint32_t below)
{
    g_random = g_random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(g_random >> 33) % below;
}

static bool one_in(uint32_t n)
{
    return draw(n) == 0;
}

static void put_varint(struct hearth_buf *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7) {
        hearth_buf_byte(out, (char)(value | 0x80));
    }
    hearth_buf_byte(out, (char)value);
}

static void put_int(struct hearth_buf *out, char field, uint64_t value)
{
    hearth_buf_byte(out, (char)(field << 3));
    put_varint(out, value);
}

static void put_message(struct hearth_buf *out, char field, const struct hearth_buf *message)
{
    hearth_buf_byte(out, (char)(field << 3 | 2));
    put_varint(out, message->n);
    hearth_buf_str(out, hearth_buf_view(message));
}

/* What a profile has, and how odd it is. */
struct shape {
    uint32_t n_strings, n_functions, n_locations, n_mappings, n_samples, n_types;
    uint32_t one_odd_in, one_label_in; /* messages */
    uint64_t step;                     /* between ids */
    bool is_runtime;                   /* in the order of Go's runtime */
};

/* A number of any length; mostly short. */
static uint64_t draw_number(void)
{
    uint64_t n = (uint64_t)draw(UINT32_MAX) << 32 | draw(UINT32_MAX);
    return one_in(3) ? draw(200) : n >> draw(64);
}

/* Something that a usual message does not have: an unknown field, a repeated one, none at all. */
static void put_odd_field(struct hearth_buf *out)
{
    switch (draw(4)) {
    case 0:
        put_int(out, 12, draw_number());
        break;
    case 1:
        put_int(out, 1, 1 + draw(3));
        break;
    case 2:
        put_int(out, 5, draw(2));
        break;
    default:
        hearth_buf_append(out, "\x7a\x02xy", 4);
        break;
    }
}

static void put_function(struct hearth_buf *out, const struct shape *shape, uint32_t i)
{
    struct hearth_buf f;
    hearth_buf_init(&f, 0);
    put_int(&f, 1, 1 + i * shape->step);
    for (char field = 2; field <= 4; field++) {
        if (!one_in(30)) {
            put_int(&f, field, draw(shape->n_strings + (one_in(2000) ? 1 : 0)));
        }
    }
    if (one_in(2)) {
        put_int(&f, 5, one_in(2) ? draw(20000) : draw_number());
    }
    if (one_in(shape->one_odd_in)) {
        put_odd_field(&f);
    }
    put_message(out, 5, &f);
    hearth_buf_release(&f);
}

static void put_line(struct hearth_buf *out, const struct shape *shape)
{
    struct hearth_buf line;
    hearth_buf_init(&line, 0);
    put_int(&line, 1, 1 + draw(shape->n_functions + (one_in(5000) ? 1 : 0)) * shape->step);
    if (!one_in(30)) {
        put_int(&line, 2, one_in(2) ? draw(3000) : draw_number());
    }
    if (one_in(shape->one_odd_in)) {
        put_int(&line, 3, draw(100));
    }
    put_message(out, 4, &line);
    hearth_buf_release(&line);
}

static void put_location(struct hearth_buf *out, const struct shape *shape, uint32_t i)
{
    struct hearth_buf l;
    uint64_t mapping = 1 + (one_in(20) ? draw(shape->n_mappings + 2) : 0) * shape->step;
    bool has_mapping = !one_in(20), is_last = shape->is_runtime != one_in(50);
    hearth_buf_init(&l, 0);
    put_int(&l, 1, 1 + i * shape->step);
    if (has_mapping && !is_last) {
        put_int(&l, 2, mapping);
    }
    if (!one_in(20)) {
        put_int(&l, 3, one_in(2) ? 0x400000 + draw(1 << 22) : draw_number());
    }
    for (uint32_t n = one_in(5) ? draw(4) : one_in(100) ? draw(90) : 1; n > 0; n--) {
        put_line(&l, shape);
    }
    if (has_mapping && is_last) {
        put_int(&l, 2, mapping);
    }
    if (one_in(shape->one_odd_in)) {
        put_odd_field(&l);
    }
    put_message(out, 4, &l);
    hearth_buf_release(&l);
}

/* Numbers of a sample: packed, or, mostly if there are one or two, a field for each of them. */
static void put_numbers(struct hearth_buf *out, char field, const uint64_t *numbers, uint32_t n)
{
    struct hearth_buf packed;
    if (n < 3 ? !one_in(10) : one_in(50)) {
        for (uint32_t i = 0; i < n; i++) {
            put_int(out, field, numbers[i]);
        }
        return;
    }

    hearth_buf_init(&packed, 0);
    for (uint32_t i = 0; i < n; i++) {
        put_varint(&packed, numbers[i]);
    }
    put_message(out, field, &packed);
    hearth_buf_release(&packed);
}

static void put_label(struct hearth_buf *out, const struct shape *shape)
{
    struct hearth_buf label;
    hearth_buf_init(&label, 0);
    for (char field = 1; field <= 4; field++) {
        if (field == 3 ? one_in(2) : one_in(field)) {
            put_int(&label, field,
                    field == 3 ? draw_number() : draw(shape->n_strings + (one_in(2000) ? 1 : 0)));
        }
    }
    if (one_in(shape->one_odd_in)) {
        put_odd_field(&label);
    }
    put_message(out, 3, &label);
    hearth_buf_release(&label);
}

static void put_sample(struct hearth_buf *out, const struct shape *shape)
{
    uint64_t ids[300], values[4];
    struct hearth_buf sample;
    hearth_buf_init(&sample, 0);
    uint32_t n_ids = one_in(20) ? draw(300) : one_in(5) ? draw(3) : 1 + draw(40);
    for (uint32_t i = 0; i < n_ids; i++) {
        ids[i] = 1 + draw(shape->n_locations + (one_in(3000) ? 2 : 0)) * shape->step;
    }
    uint32_t n_values = shape->n_types - (one_in(2000) ? 1 : 0);
    for (uint32_t k = 0; k < n_values; k++) {
        values[k] = draw_number();
    }

    bool values_first = shape->is_runtime != one_in(50);
    if (values_first) {
        put_numbers(&sample, 2, values, n_values);
    }
    put_numbers(&sample, 1, ids, n_ids);
    if (!values_first) {
        put_numbers(&sample, 2, values, n_values);
    }
    for (uint32_t n = one_in(shape->one_label_in) ? 1 + draw(4) : 0; n > 0; n--) {
        put_label(&sample, shape);
    }
    if (one_in(shape->one_odd_in)) {
        put_odd_field(&sample);
    }
    put_message(out, 2, &sample);
    hearth_buf_release(&sample);
}

static void draw_shape(struct shape *ret)
{
    static const uint32_t counts[] = {2, 126, 127, 128, 129, 300, 700};
    *ret = (struct shape){
        .n_strings = counts[draw(7)],
        .n_functions = counts[draw(7)],
        .n_locations = one_in(200) ? 16383 + draw(3) : counts[draw(7)],
        .n_mappings = 1 + draw(3),
        .n_samples = draw(100),
        .n_types = 1 + draw(4),
        .one_odd_in = one_in(2) ? 10 : 1000000,
        .one_label_in = one_in(2) ? 1 + draw(20) : 1000000,
        .is_runtime = one_in(2),
        .step = one_in(4) ? 1 + draw(300) : 1,
    };
}

/* The kinds stand in any order. */
static void make_profile(struct hearth_buf *out)
{
    struct shape shape;
    draw_shape(&shape);
    char order[] = {1, 2, 3, 4, 5, 6};
    for (uint32_t i = 5; i > 0; i--) {
        uint32_t other = draw(i + 1);
        char kind = order[i];
        order[i] = order[other];
        order[other] = kind;
    }

    for (size_t k = 0; k < sizeof order; k++) {
        uint32_t n = order[k] == 1   ? shape.n_types
                     : order[k] == 2 ? shape.n_samples
                     : order[k] == 3 ? shape.n_mappings
                     : order[k] == 4 ? shape.n_locations
                     : order[k] == 5 ? shape.n_functions
                                     : shape.n_strings;
        for (uint32_t i = 0; i < n; i++) {
            struct hearth_buf message;
            hearth_buf_init(&message, 0);
            switch (order[k]) {
            case 2:
                put_sample(out, &shape);
                break;
            case 3:
                put_int(&message, 1, 1 + i * shape.step);
                put_message(out, 3, &message);
                break;
            case 4:
                put_location(out, &shape, i);
                break;
            case 5:
                put_function(out, &shape, i);
                break;
            default:
                for (uint32_t c = order[k] == 6 && i > 0 ? draw(one_in(9) ? 200 : 40) : 0; c > 0;
                     c--) {
                    hearth_buf_byte(&message, (char)(one_in(5000) ? draw(256) : 'a' + draw(26)));
                }
                put_message(out, order[k], &message);
                break;
            }
            hearth_buf_release(&message);
        }
    }
}

static void assert_same_tables(const struct hearth_profile *a, const struct hearth_profile *b)
{
    assert_int_equal(a->n_strings, b->n_strings);
    for (uint32_t i = 0; i < a->n_strings; i++) {
        assert_true(hearth_str_eq(a->strings[i], b->strings[i]));
    }
    assert_int_equal(a->n_functions, b->n_functions);
    for (uint32_t i = 0; i < a->n_functions; i++) {
        const struct hearth_function *x = &a->functions[i], *y = &b->functions[i];
        assert_true(x->name == y->name && x->system_name == y->system_name &&
                    x->filename == y->filename && x->start_line == y->start_line);
    }
    assert_int_equal(a->n_locations, b->n_locations);
    for (uint32_t i = 0; i < a->n_locations; i++) {
        const struct hearth_location *x = &a->locations[i], *y = &b->locations[i];
        assert_true(x->mapping == y->mapping && x->address == y->address &&
                    x->first_line == y->first_line && x->n_lines == y->n_lines &&
                    x->is_folded == y->is_folded);
    }
    assert_int_equal(a->n_lines, b->n_lines);
    for (uint32_t i = 0; i < a->n_lines; i++) {
        assert_int_equal(a->lines[i].function, b->lines[i].function);
        assert_int_equal(a->lines[i].line, b->lines[i].line);
    }
}

static void assert_same_samples(const struct hearth_profile *a, const struct hearth_profile *b)
{
    size_t n = a->n_samples;
    assert_int_equal(n, b->n_samples);
    assert_int_equal(a->n_stack_locs, b->n_stack_locs);
    assert_int_equal(a->n_sample_labels, b->n_sample_labels);
    assert_memory_equal(a->stack_first, b->stack_first, (n + 1) * sizeof a->stack_first[0]);
    assert_memory_equal(a->label_first, b->label_first, (n + 1) * sizeof a->label_first[0]);
    if (n > 0) {
        assert_memory_equal(a->stack_locs, b->stack_locs,
                            a->n_stack_locs * sizeof a->stack_locs[0]);
        assert_memory_equal(a->values, b->values, n * a->n_types * sizeof a->values[0]);
    }
    for (uint32_t i = 0; i < a->n_sample_labels; i++) {
        const struct hearth_sample_label *x = &a->sample_labels[i], *y = &b->sample_labels[i];
        assert_true(x->key == y->key && x->str == y->str && x->num_unit == y->num_unit &&
                    x->num == y->num);
    }
}

/* Decodes bytes in a block of their own, so that ASan finds a read behind the end. */
static enum hearth_status decode(struct hearth_str bytes, bool portable, uint32_t max_depth,
                                 struct hearth_arena *arena, struct hearth_profile *ret,
                                 struct hearth_err *err)
{
    const struct hearth_pprof_limits limits = {.portable = portable, .max_depth = max_depth};
    struct hearth_pprof_notes notes;
    return hearth_pprof_decode(bytes, &limits, arena, ret, &notes, err);
}

/* Returns whether the profile was accepted. */
static bool check_both_ways(const char *bytes, size_t n, uint32_t max_depth)
{
    char *copy = malloc(n == 0 ? 1 : n);
    struct hearth_profile fast, plain;
    struct hearth_arena arena;
    struct hearth_err errs[2] = {HEARTH_ERR_INIT, HEARTH_ERR_INIT};

    assert_non_null(copy);
    memcpy(copy, bytes, n);
    hearth_arena_init(&arena, 0);
    enum hearth_status status =
        decode(hearth_str_n(copy, n), false, max_depth, &arena, &fast, &errs[0]);
    assert_int_equal(decode(hearth_str_n(copy, n), true, max_depth, &arena, &plain, &errs[1]),
                     status);
    assert_string_equal(errs[0].msg, errs[1].msg);
    if (status == HEARTH_OK) {
        assert_same_tables(&fast, &plain);
        assert_same_samples(&fast, &plain);
    }
    hearth_arena_release(&arena);
    free(copy);

    return status == HEARTH_OK;
}

static void reads_usual_messages_as_the_general_reader_does(void **state)
{
    (void)state;
    uint32_t n_accepted = 0;
    for (uint32_t round = 0; round < 600; round++) {
        struct hearth_buf bytes;
        hearth_buf_init(&bytes, 0);
        make_profile(&bytes);
        n_accepted += check_both_ways(bytes.p, bytes.n, one_in(3) ? 30 : 0);
        hearth_buf_release(&bytes);
    }
    assert_in_range(n_accepted, 200, 600);
}

static void finds_the_same_faults_in_cut_and_changed_profiles(void **state)
{
    (void)state;
    for (uint32_t round = 0; round < 150; round++) {
        struct hearth_buf bytes;
        hearth_buf_init(&bytes, 0);
        make_profile(&bytes);
        for (uint32_t i = 0; i < 8; i++) {
            uint32_t at = draw((uint32_t)bytes.n);
            char byte = bytes.p[at];
            bytes.p[at] = (char)draw(256);
            (void)check_both_ways(bytes.p, bytes.n, 0);
            bytes.p[at] = byte;
            (void)check_both_ways(bytes.p, at, 0);
        }
        hearth_buf_release(&bytes);
    }
}

/* Zeros are a tag that does not exist, wherever they stand. */
static void refuses_messages_of_zeros(void **state)
{
    (void)state;
    static const uint32_t places[] = {0, 1, 126, 127, 128, 200};
    for (size_t k = 0; k < HEARTH_ARRAY_LEN(places); k++) {
        for (uint32_t n_zeros = 1; n_zeros < 24; n_zeros++) {
            for (char field = 4; field <= 5; field++) {
                struct hearth_buf bytes, message;
                hearth_buf_init(&bytes, 0);
                hearth_buf_append(&bytes, "\x0a\x00\x32\x00", 4);
                for (uint32_t i = 0; i < 220; i++) {
                    hearth_buf_init(&message, 0);
                    if (i == places[k]) {
                        (void)memset(hearth_buf_reserve(&message, n_zeros), 0, n_zeros);
                        message.n += n_zeros;
                    } else {
                        put_int(&message, 1, i + 1);
                    }
                    put_message(&bytes, field, &message);
                    hearth_buf_release(&message);
                }
                assert_false(check_both_ways(bytes.p, bytes.n, 0));
                hearth_buf_release(&bytes);
            }
        }
    }
}

/* 133 values whose length would be 133 if it ended with its first byte; its second one is the first value. */
static void refuses_values_that_end_before_their_length_says(void **state)
{
    (void)state;
    enum {
        N_TYPES = 133
    };
    struct hearth_buf bytes, message;
    hearth_buf_init(&bytes, 0);
    hearth_buf_init(&message, 0);
    for (uint32_t i = 0; i < N_TYPES; i++) {
        hearth_buf_append(&bytes, "\x0a\x00", 2);
    }
    hearth_buf_append(&message, "\x08\x01", 2);
    put_message(&bytes, 4, &message);
    hearth_buf_reset(&message);
    hearth_buf_append(&message, "\x0a\x01\x01\x12\x85", 5);
    (void)memset(hearth_buf_reserve(&message, N_TYPES), 1, N_TYPES);
    message.n += N_TYPES;
    put_message(&bytes, 2, &message);
    put_message(&bytes, 2, &message); /* the usual reader has room for one of two */
    hearth_buf_append(&bytes, "\x32\x00\x32\x40", 4);
    (void)memset(hearth_buf_reserve(&bytes, 64), 'x', 64);
    bytes.n += 64;

    assert_false(check_both_ways(bytes.p, bytes.n, 0));

    hearth_buf_release(&message);
    hearth_buf_release(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_usual_messages_as_the_general_reader_does),
        cmocka_unit_test(finds_the_same_faults_in_cut_and_changed_profiles),
        cmocka_unit_test(refuses_messages_of_zeros),
        cmocka_unit_test(refuses_values_that_end_before_their_length_says),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
