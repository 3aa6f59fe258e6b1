/* jfr_frames.c -- stack traces of a chunk as locations of a profile. */
#include "jfr/jfr_frames.h"

#include <assert.h>

/* The descriptor that async-profiler gives to native functions; their class is the library. */
#define NATIVE_DESCRIPTOR "()L;"

enum hearth_status hearth_jfr_frames_init(struct jfr_frames *frames, struct jfr_pools *pools,
                                          struct hearth_err *err)
{
    size_t n = pools->pools[JFR_POOL_METHOD].n;

    *frames = (struct jfr_frames){.pools = pools};
    frames->methods = hearth_arena_calloc(pools->arena, n, sizeof *frames->methods);

    return frames->methods == NULL ? HEARTH_FAIL_ARENA(err, pools->arena) : HEARTH_OK;
}

/* ---- methods ---- */

static struct hearth_str find_class_name(struct jfr_pools *pools, uint64_t key)
{
    uint32_t i = hearth_jfr_pool_find(pools, JFR_POOL_CLASS, key);
    struct jfr_values values;

    if (i == JFR_NO_CONSTANT || !hearth_jfr_pool_read(pools, JFR_POOL_CLASS, i, &values)) {
        return HEARTH_STR("");
    }

    return hearth_jfr_symbol(pools, jfr_u64(&values, JFR_SLOT_NAME));
}

/* "java/lang/Thread" and "run" as "java.lang.Thread.run". */
static struct hearth_str join_java_name(struct hearth_str class, struct hearth_str method,
                                        struct hearth_arena *arena)
{
    char *text = hearth_arena_array(arena, class.n + method.n + 1, 1);
    if (text == NULL) {
        return HEARTH_STR("");
    }

    for (size_t i = 0; i < class.n; i++) {
        text[i] = class.p[i];
        if (text[i] == '/') {
            text[i] = '.';
        }
    }
    text[class.n] = '.';
    if (method.n > 0) {
        memcpy(text + class.n + 1, method.p, method.n);
    }

    return hearth_str_n(text, class.n + 1 + method.n);
}

static void decode_method(struct jfr_frames *frames, uint32_t i, struct jfr_method *ret)
{
    struct jfr_pools *pools = frames->pools;
    struct jfr_values values;

    *ret = (struct jfr_method){.is_decoded = true};
    if (!hearth_jfr_pool_read(pools, JFR_POOL_METHOD, i, &values)) {
        return;
    }

    struct hearth_str class = find_class_name(pools, jfr_u64(&values, JFR_SLOT_METHOD_CLASS));
    struct hearth_str name = hearth_jfr_symbol(pools, jfr_u64(&values, JFR_SLOT_NAME));
    struct hearth_str descriptor = hearth_jfr_symbol(pools, jfr_u64(&values, JFR_SLOT_DESCRIPTOR));

    class = hearth_jfr_plain_name(class, pools->arena);
    if (hearth_str_eq_c(descriptor, NATIVE_DESCRIPTOR) || class.n == 0) {
        ret->name = name;
        ret->library = class;
    } else {
        ret->name = join_java_name(class, name, pools->arena);
    }
}

/* ---- locations ---- */

/* Makes the function of a method, and its mapping, in a builder; false: no memory. */
static bool add_function(struct hearth_profile_builder *builder, struct jfr_method *method)
{
    struct hearth_function function = {0};
    struct hearth_mapping mapping = {.has_functions = true};

    /* A frame without a name is still a frame. */
    function.name = function.system_name = hearth_profile_builder_string(
        builder, method->name.n == 0 ? HEARTH_STR("[unknown]") : method->name);
    mapping.filename = hearth_profile_builder_string(builder, method->library);
    if (function.name == HEARTH_NO_INDEX || mapping.filename == HEARTH_NO_INDEX) {
        return false;
    }

    method->builder = builder;
    method->location = HEARTH_NO_INDEX;
    method->function = hearth_profile_builder_function(builder, &function);
    method->mapping = HEARTH_NO_INDEX;
    if (method->library.n > 0) {
        method->mapping = hearth_profile_builder_mapping(builder, &mapping);
        if (method->mapping == HEARTH_NO_INDEX) {
            return false;
        }
    }

    return method->function != HEARTH_NO_INDEX;
}

static uint32_t add_location(struct hearth_profile_builder *builder, struct jfr_method *method,
                             int32_t line)
{
    if (method->builder != builder && !add_function(builder, method)) {
        return HEARTH_NO_INDEX;
    }

    /* Most methods occur with one line, the call of the next one. */
    if (method->location == HEARTH_NO_INDEX || method->line != line) {
        struct hearth_location location = {.mapping = method->mapping};
        struct hearth_line at = {method->function, line};
        method->location = hearth_profile_builder_location(builder, &location, &at, 1);
        method->line = line;
    }

    return method->location;
}

/* The location of a frame; HEARTH_NO_INDEX: no memory. */
static uint32_t add_frame(struct jfr_frames *frames, const struct jfr_values *frame,
                          struct hearth_profile_builder *builder)
{
    uint32_t i =
        hearth_jfr_pool_find(frames->pools, JFR_POOL_METHOD, jfr_u64(frame, JFR_SLOT_FRAME_METHOD));
    int32_t line = (int32_t)jfr_u64(frame, JFR_SLOT_FRAME_LINE);
    struct jfr_method missing = {0};

    if (i == JFR_NO_CONSTANT) {
        return add_location(builder, &missing, 0);
    }

    struct jfr_method *method = &frames->methods[i];
    if (!method->is_decoded) {
        decode_method(frames, i, method);
        if (frames->pools->arena->refused) {
            return HEARTH_NO_INDEX;
        }
    }

    return add_location(builder, method, line > 0 ? line : 0);
}

/* Appends a location; false: no memory. */
static bool push_frame(struct jfr_frames *frames, uint32_t location, uint32_t *n)
{
    if (location == HEARTH_NO_INDEX ||
        !hearth_arena_grow(frames->pools->arena, &frames->stack, &frames->cap_stack, (size_t)*n + 1,
                           sizeof *frames->stack)) {
        return false;
    }

    frames->stack[(*n)++] = location;

    return true;
}

/* Appends a frame that no method has. */
static enum hearth_status push_marker(struct jfr_frames *frames, const char *name,
                                      struct hearth_profile_builder *builder, uint32_t *n,
                                      struct hearth_err *err)
{
    struct jfr_method marker = {.name = hearth_str_c(name)};
    return push_frame(frames, add_location(builder, &marker, 0), n)
               ? HEARTH_OK
               : HEARTH_FAIL_ARENA(err, frames->pools->arena);
}

enum hearth_status hearth_jfr_stack(struct jfr_frames *frames, uint32_t stack,
                                    struct hearth_profile_builder *builder,
                                    const uint32_t **ret_locations, uint32_t *ret_n,
                                    struct hearth_err *err)
{
    const struct jfr_pools *pools = frames->pools;
    const struct jfr_types *types = pools->types;
    struct jfr_values values = {0}, frame = {0};
    uint32_t n_steps = 0, n = 0;
    const struct jfr_step *steps = NULL;

    if (stack != JFR_NO_CONSTANT) {
        if (!hearth_jfr_pool_read(pools, JFR_POOL_STACK_TRACE, stack, &values)) {
            return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "a stack trace is damaged");
        }
        steps = hearth_jfr_array_steps(types, pools->pools[JFR_POOL_STACK_TRACE].type,
                                       JFR_SLOT_FRAMES, &n_steps);
    }

    /* Frames are leaf first, as in a profile. */
    if (steps != NULL && n_steps > 0) {
        struct jfr_cursor c = hearth_jfr_at(types->chunk, values.v[JFR_SLOT_FRAMES]);
        for (uint64_t left = jfr_int(&c); left > 0 && !c.failed; left--) {
            frame.set = frame.real = 0;
            hearth_jfr_read_steps(types, steps, n_steps, &c, &frame);
            if (!push_frame(frames, add_frame(frames, &frame, builder), &n)) {
                return HEARTH_FAIL_ARENA(err, pools->arena);
            }
        }
    }

    /* A root for stack traces without one, and a frame for samples without any. */
    if (jfr_u64(&values, JFR_SLOT_TRUNCATED) != 0) {
        HEARTH_TRY(push_marker(frames, "[truncated]", builder, &n, err));
    } else if (n == 0) {
        HEARTH_TRY(push_marker(frames, "[no stack]", builder, &n, err));
    }

    *ret_locations = frames->stack;
    *ret_n = n;

    return HEARTH_OK;
}
