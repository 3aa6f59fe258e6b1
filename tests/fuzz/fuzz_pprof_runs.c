/*
 * fuzz_pprof_runs.c -- profiles of usual messages, in which some are a little unusual: both readers of pprof agree. Random
 * bytes hardly ever become a profile whose messages the loops of pprof_runs.c take, with one fault deep inside: its length
 * would have to be changed in all messages around it, too.
 *
 * Input: ten bytes choose limits and counts; then the number of edits, of three bytes each. The rest changes bytes
 * of the profile, by three bytes each: an offset and what is added.
 */
#include "same_profile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    MAX_EDITS = 12,
    MAX_CHANGES = 8,
};

enum kind {
    TYPE = 1,
    SAMPLE,
    MAPPING,
    LOCATION,
    FUNCTION,
    STRING,
};

/* What is unusual about a message. */
enum action {
    NOTHING,
    CUT_PAYLOAD, /* its last packed field or line lacks `amount` bytes, but not in its length */
    LONG_LENGTH, /* that length has one byte more than it needs */
    OMIT_FIELD,  /* field number `amount` */
    ADD_FIELD,   /* an unknown one, or a known one again */
    SET_ID,      /* its id, or one that it refers to, is `amount` */
    SET_NUMBER,  /* a number has `amount` bits */
    SET_COUNT,   /* `amount` lines, or location ids */
    N_ACTIONS
};

struct edit {
    enum kind kind;
    enum action action;
    uint32_t index;
    uint8_t amount;
};

struct source {
    const uint8_t *p, *end;
};

struct shape {
    uint32_t n_types, n_samples, n_mappings, n_locations, n_functions, n_strings, depth, step;
    uint32_t seed;
    struct edit edits[MAX_EDITS];
    uint32_t n_edits;
};

static uint8_t take_byte(struct source *source)
{
    return source->p < source->end ? *source->p++ : 0;
}

static uint32_t take_count(struct source *source)
{
    static const uint32_t counts[] = {1, 2, 3, 5, 20, 60, 126, 127, 128, 129, 130, 200, 300};
    return counts[take_byte(source) % (sizeof counts / sizeof counts[0])];
}

/* A number that depends on the seed; of any length, mostly short. */
static uint64_t draw(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    uint64_t number = (uint64_t)*seed * UINT64_C(0x9e3779b97f4a7c15);
    return number >> (*seed >> 28 == 0 ? *seed >> 8 & 63 : 44 + (*seed >> 8) % 16);
}

static void take_shape(struct source *source, struct shape *ret)
{
    *ret = (struct shape){0};
    uint8_t types = take_byte(source);
    ret->n_types = types % 8 == 7 ? 1 + types : 1 + types % 8;
    ret->n_samples = take_byte(source) % 40;
    ret->n_mappings = 1 + take_byte(source) % 4;
    ret->n_locations = take_count(source);
    ret->n_functions = take_count(source);
    ret->n_strings = take_count(source);
    ret->depth = 1 + take_byte(source) % 40;
    uint8_t step = take_byte(source);
    ret->step = step < 200 ? 1 : step - 198;
    ret->seed = take_byte(source);
    for (uint32_t n = take_byte(source) % (MAX_EDITS + 1); ret->n_edits < n; ret->n_edits++) {
        uint8_t what = take_byte(source);
        ret->edits[ret->n_edits] = (struct edit){
            .kind = (enum kind)(1 + what % 6),
            .action = (enum action)(what / 6 % N_ACTIONS),
            .index = take_byte(source),
            .amount = take_byte(source),
        };
    }
}

/* Returns the edit of message i, or an edit without an action. */
static struct edit find_edit(const struct shape *shape, enum kind kind, uint32_t i)
{
    for (uint32_t k = 0; k < shape->n_edits; k++) {
        if (shape->edits[k].kind == kind && shape->edits[k].index == i) {
            return shape->edits[k];
        }
    }
    return (struct edit){.kind = kind, .index = i};
}

static bool has_field(const struct edit *edit, unsigned field)
{
    return edit->action != OMIT_FIELD || edit->amount % 8 != field;
}

static uint64_t choose_id(const struct edit *edit, uint64_t id)
{
    return edit->action == SET_ID ? edit->amount : id;
}

static uint64_t choose_number(const struct edit *edit, uint64_t number)
{
    return edit->action == SET_NUMBER ? UINT64_MAX >> edit->amount % 64 : number;
}

static void put_int(struct hearth_buf *out, unsigned field, uint64_t value)
{
    hearth_buf_byte(out, (unsigned char)(field << 3));
    hearth_buf_varint(out, value);
}

static void put_payload(struct hearth_buf *out, unsigned field, const struct hearth_buf *payload)
{
    hearth_buf_byte(out, (unsigned char)(field << 3 | 2));
    hearth_buf_varint(out, payload->n);
    hearth_buf_str(out, hearth_buf_view(payload));
}

/* A field inside a message, whose length may not be its own. */
static void put_inner(struct hearth_buf *out, unsigned field, const struct edit *edit,
                      const struct hearth_buf *payload)
{
    struct hearth_str bytes = hearth_buf_view(payload);

    hearth_buf_byte(out, (unsigned char)(field << 3 | 2));
    if (edit->action == LONG_LENGTH && bytes.n < 0x80) {
        hearth_buf_byte(out, (unsigned char)(bytes.n | 0x80));
        hearth_buf_byte(out, edit->amount & 1);
    } else {
        hearth_buf_varint(out, bytes.n);
    }
    if (edit->action == CUT_PAYLOAD) {
        size_t n_cut = 1 + edit->amount % 4;
        bytes.n = bytes.n > n_cut ? bytes.n - n_cut : 0;
    }
    hearth_buf_str(out, bytes);
}

static void put_odd_field(struct hearth_buf *out, const struct edit *edit)
{
    if (edit->action == ADD_FIELD && edit->amount < 128) {
        put_int(out, 1 + edit->amount % 16, edit->amount / 16);
    } else if (edit->action == ADD_FIELD) {
        hearth_buf_byte(out, (unsigned char)(edit->amount / 16 << 3 | 2));
        hearth_buf_byte(out, 4);
        hearth_buf_append(out, "\x08\x01\x10\x01", 4);
    }
}

static void put_function(struct hearth_buf *out, struct shape *shape, const struct edit *edit)
{
    uint32_t i = edit->index;

    put_int(out, 1, choose_id(edit, (uint64_t)i * shape->step + 1));
    for (unsigned field = 2; field <= 4; field++) {
        if (has_field(edit, field)) {
            put_int(out, field, (i + field) % shape->n_strings);
        }
    }
    if (i % 2 == 0) {
        put_int(out, 5, choose_number(edit, draw(&shape->seed)));
    }
}

static void put_location(struct hearth_buf *out, struct shape *shape, const struct edit *edit,
                         struct hearth_buf *scratch)
{
    uint32_t i = edit->index;

    put_int(out, 1, choose_id(edit, (uint64_t)i * shape->step + 1));
    if (has_field(edit, 2)) {
        put_int(out, 2, (i / 16 % shape->n_mappings) * shape->step + 1);
    }
    if (has_field(edit, 3)) {
        put_int(out, 3, choose_number(edit, i % 8 == 0 ? draw(&shape->seed) : 0x400000 + 37 * i));
    }

    uint32_t n_lines = edit->action == SET_COUNT ? edit->amount % 40 : 1 + (i % 11 == 0);
    for (uint32_t k = 0; k < n_lines; k++) {
        hearth_buf_reset(scratch);
        put_int(scratch, 1, (uint64_t)((i + k) % shape->n_functions) * shape->step + 1);
        put_int(scratch, 2, draw(&shape->seed));
        if (k + 1 == n_lines) {
            put_inner(out, 4, edit, scratch);
        } else {
            put_payload(out, 4, scratch);
        }
    }
}

static void put_sample(struct hearth_buf *out, struct shape *shape, const struct edit *edit,
                       struct hearth_buf *scratch)
{
    const struct edit none = {.action = NOTHING};
    bool is_ids = edit->amount >= 128; /* whether the ids or the values are odd */
    uint32_t depth = edit->action == SET_COUNT ? edit->amount : shape->depth;

    hearth_buf_reset(scratch);
    for (uint32_t k = 0; k < depth; k++) {
        uint64_t id = (uint64_t)((edit->index + k * 7) % shape->n_locations) * shape->step + 1;
        hearth_buf_varint(scratch, k == 0 ? choose_id(edit, id) : id);
    }
    put_inner(out, 1, is_ids ? edit : &none, scratch);

    hearth_buf_reset(scratch);
    for (uint32_t k = 0; k < shape->n_types; k++) {
        uint64_t value = k < 4 ? draw(&shape->seed) : 1;
        hearth_buf_varint(scratch, k == 0 ? choose_number(edit, value) : value);
    }
    put_inner(out, 2, is_ids ? &none : edit, scratch);
}

static void put_message(struct hearth_buf *out, struct shape *shape, enum kind kind, uint32_t i,
                        struct hearth_buf scratch[2])
{
    struct hearth_buf *message = &scratch[0];
    struct edit edit = find_edit(shape, kind, i);

    hearth_buf_reset(message);
    switch (kind) {
    case TYPE:
        put_int(message, 1, i % shape->n_strings);
        break;
    case SAMPLE:
        put_sample(message, shape, &edit, &scratch[1]);
        break;
    case MAPPING:
        put_int(message, 1, choose_id(&edit, (uint64_t)i * shape->step + 1));
        break;
    case LOCATION:
        put_location(message, shape, &edit, &scratch[1]);
        break;
    case FUNCTION:
        put_function(message, shape, &edit);
        break;
    case STRING:
        for (uint32_t n = i == 0 ? 0 : i % 8 == 0 ? i % 90 : i % 12; n > 0; n--) {
            hearth_buf_byte(message, (unsigned char)(choose_number(&edit, 'a' + n % 26)));
        }
        break;
    }
    put_odd_field(message, &edit);
    put_payload(out, kind, message);
}

/* The kinds stand in the order of their numbers, strings last: so there are bytes behind the rest. */
static void make_profile(struct shape *shape, struct hearth_buf *out)
{
    const uint32_t counts[] = {[TYPE] = shape->n_types,         [SAMPLE] = shape->n_samples,
                               [MAPPING] = shape->n_mappings,   [LOCATION] = shape->n_locations,
                               [FUNCTION] = shape->n_functions, [STRING] = shape->n_strings};
    struct hearth_buf scratch[2];

    hearth_buf_init(&scratch[0], 0);
    hearth_buf_init(&scratch[1], 0);
    for (enum kind kind = TYPE; kind <= STRING; kind++) {
        for (uint32_t i = 0; i < counts[kind]; i++) {
            put_message(out, shape, kind, i, scratch);
        }
    }
    REQUIRE(!hearth_buf_failed(&scratch[0]) && !hearth_buf_failed(&scratch[1]));
    hearth_buf_release(&scratch[0]);
    hearth_buf_release(&scratch[1]);
}

/* A copy of the exact size, so that ASan sees a read behind its end. */
static struct hearth_str copy_exactly(const struct hearth_buf *bytes)
{
    char *copy = malloc(bytes->n == 0 ? 1 : bytes->n);

    REQUIRE(copy != NULL && !hearth_buf_failed(bytes));
    memcpy(copy, bytes->p, bytes->n);

    return hearth_str_n(copy, bytes->n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct source source = {data, data + size};
    struct hearth_profile profile;
    struct hearth_arena arena;
    struct hearth_err err = HEARTH_ERR_INIT;
    struct shape shape;
    struct hearth_buf out;

    uint8_t which = take_byte(&source);
    const struct hearth_pprof_limits limits = {
        .max_sample_labels = which & 1 ? 1 : 0,
        .max_depth = which & 2 ? 5 : 0,
        .max_string_bytes = which & 4 ? 60 : 0,
        .number_functions = (which & 8) != 0,
    };
    take_shape(&source, &shape);
    hearth_buf_init(&out, 0);
    make_profile(&shape, &out);
    for (unsigned k = 0; k < MAX_CHANGES && source.p < source.end; k++) {
        size_t at = (size_t)take_byte(&source) << 8;
        at |= take_byte(&source);
        out.p[at % out.n] = (char)(out.p[at % out.n] + take_byte(&source));
    }

    struct hearth_str bytes = copy_exactly(&out);
    hearth_arena_init(&arena, PPROF_ARENA_BYTES);
    (void)decode_both_ways(bytes, &limits, &arena, &profile, &err);
    hearth_arena_release(&arena);
    free((void *)(uintptr_t)bytes.p);
    hearth_buf_release(&out);

    return 0;
}
