/*
 * jfr_types.c -- reads a chunk's metadata: a table of strings, then a tree of elements with
 * attributes; root, metadata, class, field. Other elements (annotations, settings, region) are
 * passed over.
 */
#include "jfr/jfr_types.h"

#include <assert.h>

#define MAX_ELEMENT_DEPTH 16u
#define MAX_STRUCT_DEPTH  8u
#define MAX_STEPS         65536u /* of all types of a chunk; recordings have about 3,000 */

/* ---- metadata ---- */

enum element {
    ELEMENT_OTHER,
    ELEMENT_METADATA,
    ELEMENT_CLASS,
    ELEMENT_FIELD
};

struct metadata_reader {
    struct jfr_types *types;
    struct jfr_cursor c;
    struct hearth_str *strings;
    uint64_t n_strings;
};

/* The text with an index; "" after a fault. */
static struct hearth_str read_string_ref(struct metadata_reader *r)
{
    uint64_t i = jfr_int(&r->c);
    if (i >= r->n_strings) {
        (void)jfr_fail(&r->c);
        return HEARTH_STR("");
    }
    return r->strings[i];
}

static bool read_metadata_strings(struct metadata_reader *r)
{
    uint64_t constant, n = jfr_int(&r->c);

    /* Each text has at least one byte. */
    if (n > (uint64_t)(r->c.end - r->c.at)) {
        (void)jfr_fail(&r->c);
        return true;
    }

    r->strings = hearth_arena_array(r->types->arena, (size_t)n, sizeof *r->strings);
    if (r->strings == NULL) {
        return false;
    }

    for (r->n_strings = 0; r->n_strings < n && !r->c.failed; r->n_strings++) {
        (void)hearth_jfr_text(&r->c, r->types->arena, &r->strings[r->n_strings], &constant);
    }

    return !r->types->arena->refused;
}

static enum element element_of(struct hearth_str name, enum element parent)
{
    if (hearth_str_eq_c(name, "metadata")) {
        return ELEMENT_METADATA;
    }
    if (parent == ELEMENT_METADATA && hearth_str_eq_c(name, "class")) {
        return ELEMENT_CLASS;
    }
    return parent == ELEMENT_CLASS && hearth_str_eq_c(name, "field") ? ELEMENT_FIELD
                                                                     : ELEMENT_OTHER;
}

/* Adds an empty type or field; false: no memory. */
static bool add_element(struct metadata_reader *r, enum element element)
{
    struct jfr_types *types = r->types;

    if (element == ELEMENT_CLASS) {
        if (!hearth_arena_grow(types->arena, &types->types, &types->cap_types, types->n_types + 1,
                               sizeof *types->types)) {
            return false;
        }
        types->types[types->n_types++] =
            (struct jfr_type){.first_field = (uint32_t)types->n_fields};
    } else if (element == ELEMENT_FIELD) {
        assert(types->n_types > 0);
        if (!hearth_arena_grow(types->arena, &types->fields, &types->cap_fields,
                               types->n_fields + 1, sizeof *types->fields)) {
            return false;
        }
        types->fields[types->n_fields++] = (struct jfr_field){0};
        types->types[types->n_types - 1].n_fields++;
    }

    return true;
}

static void set_attribute(struct metadata_reader *r, enum element element, struct hearth_str key,
                          struct hearth_str value)
{
    struct jfr_types *types = r->types;
    uint64_t number = 0;

    if (element == ELEMENT_CLASS) {
        struct jfr_type *type = &types->types[types->n_types - 1];
        if (hearth_str_eq_c(key, "name")) {
            type->name = value;
        } else if (hearth_str_eq_c(key, "id") && hearth_str_to_u64(value, &number)) {
            type->id = number;
        }
    } else if (element == ELEMENT_FIELD) {
        struct jfr_field *field = &types->fields[types->n_fields - 1];
        if (hearth_str_eq_c(key, "name")) {
            field->name = value;
        } else if (hearth_str_eq_c(key, "class") && hearth_str_to_u64(value, &number)) {
            field->type_id = number;
        } else if (hearth_str_eq_c(key, "constantPool")) {
            field->is_constant = hearth_str_eq_c(value, "true");
        } else if (hearth_str_eq_c(key, "dimension")) {
            field->is_array = hearth_str_to_u64(value, &number) && number > 0;
        }
    }
}

/* Reads an element and its children; false: no memory. The depth is limited. */
static bool read_element(struct metadata_reader *r, enum element parent, unsigned depth)
{
    if (depth > MAX_ELEMENT_DEPTH) {
        (void)jfr_fail(&r->c);
        return true;
    }

    enum element element = element_of(read_string_ref(r), parent);
    if (!add_element(r, element)) {
        return false;
    }

    for (uint64_t n = jfr_int(&r->c); n > 0 && !r->c.failed; n--) {
        struct hearth_str key = read_string_ref(r);
        set_attribute(r, element, key, read_string_ref(r));
    }

    for (uint64_t n = jfr_int(&r->c); n > 0 && !r->c.failed; n--) {
        if (!read_element(r, element, depth + 1)) { /* NOLINT(misc-no-recursion) */
            return false;
        }
    }

    return true;
}

static struct hearth_hash128 key_of_id(uint64_t id)
{
    return (struct hearth_hash128){hearth_hash_mix(id, hearth_hash_process_seed()), id};
}

static enum hearth_status index_types(struct jfr_types *types, struct hearth_err *err)
{
    for (size_t i = 0; i < types->n_types; i++) {
        bool fresh;
        if (hearth_idmap_intern(&types->by_id, key_of_id(types->types[i].id), (uint32_t)i,
                                &fresh) == HEARTH_IDMAP_NONE) {
            return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "no memory for the types of a recording");
        }
        if (!fresh) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                               "the metadata declares the type id %llu twice",
                               (unsigned long long)types->types[i].id);
        }
        if (types->types[i].id < JFR_N_SMALL_IDS) {
            types->by_small_id[types->types[i].id] = (uint32_t)i + 1;
        }
    }

    return HEARTH_OK;
}

/* ---- translation to steps ---- */

static const struct {
    const char *outer, *field;
} g_slots[JFR_N_SLOTS] = {
#define X(id, outer_, field_) {outer_, field_},
    JFR_SLOTS(X)
#undef X
};

static uint8_t slot_of(struct hearth_str outer, struct hearth_str field)
{
    for (uint8_t i = 0; i < JFR_N_SLOTS; i++) {
        if (hearth_str_eq_c(field, g_slots[i].field) && hearth_str_eq_c(outer, g_slots[i].outer)) {
            return i;
        }
    }
    return JFR_N_SLOTS;
}

/* Whether a type is a primitive one, and the step that reads it. */
static bool find_primitive(struct hearth_str name, uint8_t *ret_kind)
{
    static const struct {
        const char *name;
        enum jfr_step_kind kind;
    } primitives[] = {
        {"boolean", JFR_STEP_BYTE},
        {"byte", JFR_STEP_BYTE},
        {"char", JFR_STEP_INT},
        {"short", JFR_STEP_INT},
        {"int", JFR_STEP_INT},
        {"long", JFR_STEP_INT},
        {"float", JFR_STEP_FLOAT},
        {"double", JFR_STEP_DOUBLE},
        {"java.lang.String", JFR_STEP_TEXT},
    };

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(primitives); i++) {
        if (hearth_str_eq_c(name, primitives[i].name)) {
            *ret_kind = (uint8_t)primitives[i].kind;
            return true;
        }
    }

    return false;
}

static enum hearth_status add_step(struct jfr_types *types, struct jfr_step step,
                                   struct hearth_err *err)
{
    if (types->n_steps >= MAX_STEPS) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "the types of the metadata have more than %u fields", MAX_STEPS);
    }
    if (!hearth_arena_grow(types->arena, &types->steps, &types->cap_steps, types->n_steps + 1,
                           sizeof *types->steps)) {
        return HEARTH_FAIL_ARENA(err, types->arena);
    }

    types->steps[types->n_steps++] = step;

    return HEARTH_OK;
}

static enum hearth_status add_type_steps(struct jfr_types *types, const struct jfr_type *type,
                                         struct hearth_str outer, unsigned depth,
                                         struct hearth_err *err);

/* The steps of one value of a field, without its count if it is an array. */
static enum hearth_status add_value_steps(struct jfr_types *types, const struct jfr_field *field,
                                          uint8_t slot, unsigned depth, struct hearth_err *err)
{
    const struct jfr_type *type = hearth_jfr_type_of_id(types, field->type_id);
    uint8_t kind = JFR_STEP_INT;

    if (field->is_constant) {
        return add_step(types, (struct jfr_step){.kind = kind, .slot = slot}, err);
    }
    if (type == NULL) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "the field \"%.*s\" has the type id %llu, which the metadata does not "
                           "declare",
                           (int)(field->name.n > 64 ? 64 : field->name.n), field->name.p,
                           (unsigned long long)field->type_id);
    }
    if (find_primitive(type->name, &kind)) {
        return add_step(types, (struct jfr_step){.kind = kind, .slot = slot}, err);
    }

    return add_type_steps(types, type, field->name, depth + 1, err);
}

static enum hearth_status add_field_steps(struct jfr_types *types, struct jfr_field field,
                                          struct hearth_str outer, unsigned depth,
                                          struct hearth_err *err)
{
    uint8_t slot = slot_of(outer, field.name);

    if (!field.is_array) {
        return add_value_steps(types, &field, slot, depth, err);
    }

    /* The number of inner steps is known when they are there. */
    size_t array = types->n_steps;
    HEARTH_TRY(add_step(types, (struct jfr_step){.kind = JFR_STEP_ARRAY, .slot = slot}, err));
    HEARTH_TRY(add_value_steps(types, &field, JFR_N_SLOTS, depth, err));
    types->steps[array].n_inner = (uint32_t)(types->n_steps - array - 1);
    types->steps[array].is_inner_int = true;
    for (size_t i = array + 1; i < types->n_steps; i++) {
        types->steps[array].is_inner_int &= types->steps[i].kind == JFR_STEP_INT;
    }

    return HEARTH_OK;
}

static enum hearth_status add_type_steps(struct jfr_types *types, const struct jfr_type *type,
                                         struct hearth_str outer, unsigned depth,
                                         struct hearth_err *err)
{
    if (depth > MAX_STRUCT_DEPTH) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "the type \"%.*s\" contains itself, or is nested more than %u deep",
                           (int)(type->name.n > 64 ? 64 : type->name.n), type->name.p,
                           MAX_STRUCT_DEPTH);
    }

    for (uint32_t i = 0; i < type->n_fields; i++) {
        HEARTH_TRY(add_field_steps(types, types->fields[type->first_field + i], outer, depth, err));
    }

    return HEARTH_OK;
}

static enum hearth_status translate_type(struct jfr_types *types, struct jfr_type *type,
                                         struct hearth_err *err)
{
    uint8_t kind;

    /* A pool of primitives, such as java.lang.String, has a type without fields. */
    type->first_step = (uint32_t)types->n_steps;
    if (type->n_fields == 0 && find_primitive(type->name, &kind)) {
        HEARTH_TRY(add_step(types, (struct jfr_step){.kind = kind, .slot = JFR_SLOT_STRING}, err));
    } else {
        HEARTH_TRY(add_type_steps(types, type, HEARTH_STR(""), 0, err));
    }

    type->n_steps = (uint32_t)types->n_steps - type->first_step;
    type->is_translated = true;

    return HEARTH_OK;
}

/* ---- reading ---- */

enum hearth_status hearth_jfr_types_read(struct jfr_types *types, struct hearth_str chunk,
                                         uint64_t at, struct hearth_arena *arena,
                                         struct hearth_err *err)
{
    assert(types != NULL && arena != NULL);

    *types = (struct jfr_types){.arena = arena, .chunk = chunk};
    hearth_idmap_init(&types->by_id);
    struct metadata_reader r = {.types = types, .c = hearth_jfr_at(chunk, at)};

    /* The event's size and type, start, duration and id of the metadata. */
    (void)jfr_int(&r.c);
    bool is_metadata = jfr_int(&r.c) == 0;
    for (int i = 0; i < 3; i++) {
        (void)jfr_int(&r.c);
    }

    if (!read_metadata_strings(&r) || (!r.c.failed && !read_element(&r, ELEMENT_OTHER, 0))) {
        return HEARTH_FAIL_ARENA(err, arena);
    }
    if (r.c.failed || !is_metadata) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "the metadata at byte %llu is damaged",
                           (unsigned long long)at);
    }

    HEARTH_TRY(index_types(types, err));
    for (size_t i = 0; i < types->n_types; i++) {
        HEARTH_TRY(translate_type(types, &types->types[i], err));
    }

    return HEARTH_OK;
}

void hearth_jfr_types_release(struct jfr_types *types)
{
    hearth_idmap_release(&types->by_id);
}

const struct jfr_type *hearth_jfr_type_of_id(const struct jfr_types *types, uint64_t id)
{
    if (HEARTH_LIKELY(id < JFR_N_SMALL_IDS)) {
        uint32_t small = types->by_small_id[id];
        return small == 0 ? NULL : &types->types[small - 1];
    }

    uint32_t i = hearth_idmap_find(&types->by_id, key_of_id(id));
    return i == HEARTH_IDMAP_NONE ? NULL : &types->types[i];
}

const struct jfr_type *hearth_jfr_type_of_name(const struct jfr_types *types, const char *name)
{
    for (size_t i = 0; i < types->n_types; i++) {
        if (hearth_str_eq_c(types->types[i].name, name)) {
            return &types->types[i];
        }
    }
    return NULL;
}

struct jfr_cursor hearth_jfr_at(struct hearth_str chunk, uint64_t offset)
{
    const uint8_t *begin = (const uint8_t *)chunk.p, *end = begin + chunk.n;
    return offset <= chunk.n ? (struct jfr_cursor){begin + offset, end, false}
                             : (struct jfr_cursor){end, end, true};
}

bool hearth_jfr_field_is_constant(const struct jfr_types *types, const struct jfr_type *type,
                                  const char *name)
{
    for (uint32_t i = 0; i < type->n_fields; i++) {
        const struct jfr_field *field = &types->fields[type->first_field + i];
        if (hearth_str_eq_c(field->name, name)) {
            return field->is_constant;
        }
    }

    return false;
}

double hearth_jfr_number(const struct jfr_values *values, enum jfr_slot slot)
{
    double real;

    if (!jfr_has(values, slot)) {
        return 0;
    }
    if ((values->real >> slot & 1) == 0) {
        return (double)(int64_t)values->v[slot];
    }

    memcpy(&real, &values->v[slot], sizeof real);

    return real;
}

static void capture(struct jfr_values *values, uint8_t slot, uint64_t value)
{
    if (values != NULL && slot != JFR_N_SLOTS) {
        values->set |= UINT64_C(1) << slot;
        values->real &= ~(UINT64_C(1) << slot);
        values->v[slot] = value;
    }
}

static void capture_real(struct jfr_values *values, uint8_t slot, double real)
{
    uint64_t bits;

    memcpy(&bits, &real, sizeof bits);
    capture(values, slot, bits);
    if (values != NULL && slot != JFR_N_SLOTS) {
        values->real |= UINT64_C(1) << slot;
    }
}

static double read_float(struct jfr_cursor *c)
{
    uint32_t bits = (uint32_t)jfr_big_endian(c, 4);
    float value;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

static double read_double(struct jfr_cursor *c)
{
    uint64_t bits = jfr_big_endian(c, 8);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Passes over the elements of an array whose steps read at least one byte each. */
static void skip_elements(const struct jfr_types *types, const struct jfr_step *array,
                          struct jfr_cursor *c)
{
    const struct jfr_step *inner = array + 1;
    uint64_t count = jfr_int(c), n_ints;
    uint32_t n = array->n_inner;

    if (n == 0) {
        return; /* elements without fields have no bytes */
    }

    /* Stack traces are most bytes of a recording, and their frames are integers. */
    if (array->is_inner_int) {
        hearth_jfr_skip_ints(c, __builtin_mul_overflow(count, n, &n_ints) ? UINT64_MAX : n_ints);
        return;
    }

    for (; count > 0 && !c->failed; count--) {
        hearth_jfr_read_steps(types, inner, n, c, NULL); /* NOLINT(misc-no-recursion) */
    }
}

void hearth_jfr_read_steps(const struct jfr_types *types, const struct jfr_step *steps, uint32_t n,
                           struct jfr_cursor *c, struct jfr_values *values)
{
    const uint8_t *begin = (const uint8_t *)types->chunk.p;

    for (uint32_t i = 0; i < n && !c->failed; i++) {
        const struct jfr_step *step = &steps[i];
        switch ((enum jfr_step_kind)step->kind) {
        case JFR_STEP_INT:
            capture(values, step->slot, jfr_int(c));
            break;
        case JFR_STEP_BYTE:
            capture(values, step->slot, jfr_byte(c));
            break;
        case JFR_STEP_FLOAT:
            capture_real(values, step->slot, read_float(c));
            break;
        case JFR_STEP_DOUBLE:
            capture_real(values, step->slot, read_double(c));
            break;
        case JFR_STEP_TEXT:
            capture(values, step->slot, (uint64_t)(c->at - begin));
            hearth_jfr_skip_text(c);
            break;
        case JFR_STEP_ARRAY:
            capture(values, step->slot, (uint64_t)(c->at - begin));
            skip_elements(types, step, c);
            i += step->n_inner;
            break;
        }
    }
}

/* A recording may have no steps at all: its types have no fields. */
static const struct jfr_step *steps_of(const struct jfr_types *types, const struct jfr_type *type)
{
    return type->n_steps == 0 ? NULL : types->steps + type->first_step;
}

void hearth_jfr_read_value(const struct jfr_types *types, const struct jfr_type *type,
                           struct jfr_cursor *c, struct jfr_values *values)
{
    assert(type->is_translated);
    if (values != NULL) {
        values->set = values->real = 0;
    }
    hearth_jfr_read_steps(types, steps_of(types, type), type->n_steps, c, values);
}

const struct jfr_step *hearth_jfr_array_steps(const struct jfr_types *types,
                                              const struct jfr_type *type, enum jfr_slot slot,
                                              uint32_t *ret_n)
{
    const struct jfr_step *steps = steps_of(types, type);

    for (uint32_t i = 0; i < type->n_steps; i++) {
        if (steps[i].kind == JFR_STEP_ARRAY && steps[i].slot == slot) {
            *ret_n = steps[i].n_inner;
            return &steps[i + 1];
        }
    }

    *ret_n = 0;

    return NULL;
}
