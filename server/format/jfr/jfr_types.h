/*
 * jfr_types.h -- the types that a chunk's metadata declares, and reading values of any type
 * (private to the JFR reader).
 *
 * A chunk describes the fields of all its events and constants itself, and producers differ: no
 * layout is assumed. A type is translated once into steps, a flat list of what its bytes hold.
 * Fields that the reader knows by name have a slot, in which their value is captured; all others
 * are passed over.
 *
 * Ownership: types live in an arena, and borrow the names from the bytes of the chunk.
 * Threads:   not thread-safe.
 */
#ifndef HEARTH_FORMAT_JFR_TYPES_H
#define HEARTH_FORMAT_JFR_TYPES_H

#include "hearth/base/hash.h"
#include "hearth/base/status.h"

#include "jfr/jfr_cursor.h"

/*
 * X(ID, outer, field): the fields that are captured. outer: "" for a field of the value itself,
 * otherwise the field that it is nested in.
 */
#define JFR_SLOTS(X)                             \
    /* events */                                 \
    X(START_TIME, "", "startTime")               \
    X(DURATION, "", "duration")                  \
    X(STACK_TRACE, "", "stackTrace")             \
    X(SAMPLED_THREAD, "", "sampledThread")       \
    X(EVENT_THREAD, "", "eventThread")           \
    X(STATE, "", "state")                        \
    X(TLAB_SIZE, "", "tlabSize")                 \
    X(ALLOCATION_SIZE, "", "allocationSize")     \
    X(SIZE, "", "size")                          \
    X(WEIGHT, "", "weight")                      \
    X(SAMPLES, "", "samples")                    \
    X(SAMPLING_PERIOD, "", "samplingPeriod")     \
    X(BYTES_READ, "", "bytesRead")               \
    X(BYTES_WRITTEN, "", "bytesWritten")         \
    X(CONTEXT_ID, "", "contextId")               \
    X(SPAN_ID, "", "spanId")                     \
    X(SPAN_NAME, "", "spanName")                 \
    X(LOCAL_ROOT_SPAN_ID, "", "localRootSpanId") \
    X(TRACE_ID_HI, "", "traceIdHi")              \
    X(TRACE_ID_LO, "", "traceIdLo")              \
    X(ENDPOINT, "", "endpoint")                  \
    X(CPU_INTERVAL, "", "cpuInterval")           \
    X(WALL_INTERVAL, "", "wallInterval")         \
    X(ID, "", "id")                              \
    X(NAME, "", "name")                          \
    X(VALUE, "", "value")                        \
    /* constants */                              \
    X(TRUNCATED, "", "truncated")                \
    X(FRAMES, "", "frames")                      \
    X(FRAME_METHOD, "frames", "method")          \
    X(FRAME_LINE, "frames", "lineNumber")        \
    X(METHOD_CLASS, "", "type")                  \
    X(DESCRIPTOR, "", "descriptor")              \
    X(STRING, "", "string")                      \
    X(OS_NAME, "", "osName")                     \
    X(OS_THREAD_ID, "", "osThreadId")            \
    X(JAVA_NAME, "", "javaName")                 \
    X(JAVA_THREAD_ID, "", "javaThreadId")

enum jfr_slot {
#define X(id, outer, field) JFR_SLOT_##id,
    JFR_SLOTS(X)
#undef X
    JFR_N_SLOTS,
};
_Static_assert(JFR_N_SLOTS <= 64, "a set of slots is a word");

/* Captured values. */
struct jfr_values {
    uint64_t set;            /* bit of each slot that has a value */
    uint64_t real;           /* bit of each slot whose value is a double */
    uint64_t v[JFR_N_SLOTS]; /* integers; bits of doubles; offsets of texts and arrays */
};

static inline bool jfr_has(const struct jfr_values *values, enum jfr_slot slot)
{
    return (values->set >> slot & 1) != 0;
}

/* The value of an integer or the key of a constant; 0 if the field is absent. */
static inline uint64_t jfr_u64(const struct jfr_values *values, enum jfr_slot slot)
{
    return jfr_has(values, slot) ? values->v[slot] : 0;
}

/* A number of any type as a double; 0 if the field is absent. */
double hearth_jfr_number(const struct jfr_values *values, enum jfr_slot slot);

enum jfr_step_kind {
    JFR_STEP_INT,    /* a compressed integer, or the key of a constant */
    JFR_STEP_BYTE,   /* boolean, byte */
    JFR_STEP_FLOAT,  /* 4 bytes */
    JFR_STEP_DOUBLE, /* 8 bytes */
    JFR_STEP_TEXT,   /* captured: its offset in the chunk */
    JFR_STEP_ARRAY,  /* a count, then n_inner steps for each element; captured: the offset */
};

struct jfr_step {
    uint8_t kind;
    uint8_t slot;      /* JFR_N_SLOTS: not captured */
    bool is_inner_int; /* all inner steps are JFR_STEP_INT */
    uint32_t n_inner;
};

struct jfr_field {
    struct hearth_str name;
    uint64_t type_id;
    bool is_constant, is_array;
};

struct jfr_type {
    uint64_t id;
    struct hearth_str name;
    uint32_t first_field, n_fields;
    uint32_t first_step, n_steps;
    bool is_translated;
};

#define JFR_N_SMALL_IDS 1024

struct jfr_types {
    struct hearth_arena *arena;
    struct hearth_str chunk; /* offsets count from its beginning */
    struct jfr_type *types;
    struct jfr_field *fields;
    struct jfr_step *steps;
    size_t n_types, cap_types, n_fields, cap_fields, n_steps, cap_steps;
    uint32_t by_small_id[JFR_N_SMALL_IDS]; /* index + 1; 0: none. Producers count from 0. */
    struct hearth_idmap by_id;             /* of all; released by hearth_jfr_types_release */
};

/*
 * Reads the metadata event at offset `at` of a chunk. INVALID_ARGUMENT says what is wrong and
 * where; NO_MEMORY. Release the types in any case.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_jfr_types_read(struct jfr_types *types, struct hearth_str chunk,
                                         uint64_t at, struct hearth_arena *arena,
                                         struct hearth_err *err);
void hearth_jfr_types_release(struct jfr_types *types);

/* The type with an id or a name, translated; NULL if there is none. */
const struct jfr_type *hearth_jfr_type_of_id(const struct jfr_types *types, uint64_t id);
const struct jfr_type *hearth_jfr_type_of_name(const struct jfr_types *types, const char *name);

/* Whether a field of this name holds the key of a constant instead of a value. */
bool hearth_jfr_field_is_constant(const struct jfr_types *types, const struct jfr_type *type,
                                  const char *name);

/*
 * Reads a value of a type and captures its slots; the cursor fails if the bytes end early. values
 * NULL: only passes over it.
 */
void hearth_jfr_read_value(const struct jfr_types *types, const struct jfr_type *type,
                           struct jfr_cursor *c, struct jfr_values *values);

/*
 * Reads one element of a captured array. inner: the steps of the array, of which
 * hearth_jfr_array_steps returns the first; the element's slots are captured.
 */
const struct jfr_step *hearth_jfr_array_steps(const struct jfr_types *types,
                                              const struct jfr_type *type, enum jfr_slot slot,
                                              uint32_t *ret_n);
void hearth_jfr_read_steps(const struct jfr_types *types, const struct jfr_step *steps, uint32_t n,
                           struct jfr_cursor *c, struct jfr_values *values);

/* A cursor at an offset of the chunk, such as that of a captured text. */
struct jfr_cursor hearth_jfr_at(struct hearth_str chunk, uint64_t offset);

#endif
